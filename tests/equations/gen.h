/* Between generate.c, which makes equations, and expr.c, which makes their right sides. */
#ifndef KAIO_TESTS_EQUATIONS_GEN_H
#define KAIO_TESTS_EQUATIONS_GEN_H

#include "base/buf.h"
#include "data/dtype.h"
#include "kernels/random.h"

enum { MOST_RANK = 4, MOST_DIMS = 8, MOST_TENSORS = 24, MOST_INDICES = 16 };

/* An extent: a name, a constant or an expression of names, with its value in the case. */
struct extent {
    const char *text;
    int64_t value;
    bool named;
    const char *binds; /* what the case says for its names; "" of a constant */
};

enum role { ROLE_IN, ROLE_INOUT, ROLE_OUT, ROLE_INTERMEDIATE };
enum sort { SORT_FLOAT, SORT_INT, SORT_BOOL };

struct tensor {
    const char *name;
    enum dtype type; /* of an intermediate: only its sort counts */
    enum sort sort;
    enum role role;
    unsigned rank, dim[MOST_RANK]; /* dim: numbers of extents */
    bool readable;
};

struct index {
    const char *name;
    unsigned dim;
    bool bare; /* it stands by itself in a subscript of this dimension: its range is known */
};

struct gen {
    struct arena *a;
    struct random r;
    struct extent dim[MOST_DIMS];
    unsigned ndim;
    bool empty;   /* one of them is 0 */
    bool written; /* most of them are expressions */
    struct tensor tensor[MOST_TENSORS];
    unsigned ntensor;
    struct index index[MOST_INDICES]; /* those in scope, outermost first */
    unsigned nindex;
    unsigned names;           /* made for indices */
    double work;              /* elements of the scope: the product of its extents */
    unsigned room;            /* nodes that the expression may still get */
    const struct tensor *own; /* what is being defined: an inout is read where it is written */
    bool reduces;             /* a reduction was made */
    unsigned base[MOST_RANK], nbase; /* the shape that most tensors of the spec are cut from */
    bool kept[MOST_RANK];            /* which of its axes are not reduced */
};

bool gen_one_in(struct gen *g, unsigned n);
unsigned gen_below(struct gen *g, unsigned n);
unsigned gen_index_push(struct gen *g, unsigned dim); /* its number */

/* An expression of this sort, appended. */
void gen_expr(struct gen *g, enum sort s, struct buf *b);
/* A reduction of this sort, if there is something to reduce: else false, and nothing was
 * appended. */
bool gen_reduction(struct gen *g, enum sort s, struct buf *b);
/* A read of t with the indices in scope where they fit. */
void gen_read(struct gen *g, const struct tensor *t, struct buf *b);

#endif
