/* What a chain is, as its equations say it, and what is found of it before any code. Included by
 * chain.h, which has the terms; private to lib/lower. */
#ifndef KAIO_LOWER_CHAIN_FORM_H
#define KAIO_LOWER_CHAIN_FORM_H

#include "lower/cg/sync.h"
#include "lower/matmul/matmul.h"

enum {
    CHAIN_SCORES = 4,
    CHAIN_STREAMS = 16,
    CHAIN_OUTS = 16,
    CHAIN_PARTS = 8,
    CHAIN_AXES = VARIANT_RANK,
};

/* A sum of products for each row and j. */
struct chain_score {
    const struct lang_symbol *sym; /* the local that stands for it */
    struct lang_expr *e;           /* the reduction over c */
};

/* Something that depends on j, and not on the column. */
struct chain_part {
    const struct lang_symbol *sym;
    struct lang_expr *e;
};

/* A reduction over j. */
struct chain_stream {
    const struct lang_symbol *sym; /* the local that stands for it: of the row, or of its column */
    struct span span;
    enum lang_reduce reduce;
    enum dtype type;
    /* The terms are those of low <= j < high: expressions of the row's axes. low NULL: 0. */
    struct lang_expr *low, *high;
    struct lang_expr *term;
    /* The same as they were written, before chain_narrow(). */
    struct lang_expr *whole_low, *whole_high, *whole_term;
    bool has_column; /* terms depend on the column */
    /* Where they do: term is an expression of these, of the column and of j. */
    uint32_t npart;
    struct chain_part part[CHAIN_PARTS];
    /* The number of the maximum m in the terms, -1: there is none. They have exp(x - b), b being an
     * expression of m that is m or more. When b grows from y to z, the sum is multiplied by
     * exp(weight * (z - y)); weight NULL: -1. base2: by exp2(). */
    int running;
    struct lang_expr *base;
    struct lang_expr *weight;
    bool base2;
};

struct chain_out {
    const struct lang_equation *eq; /* normalised */
    bool has_column;
};

/* Keys that are equal to something of the row's (chain/runs.c). */
struct chain_runs {
    const struct lang_expr *clause;                 /* the comparison of these: */
    struct lang_expr *key, *of;                     /* of j; of the row */
    const struct lang_symbol *first, *end, *sorted; /* temps; NULL: not begun */
    /* Where they begin and end, and whether the comparison holds for all between. */
    struct lang_expr *low, *high, *known;
};

struct chain_form {
    const struct lower_stage *stage; /* as it was written */
    uint32_t nrow;                   /* axes of a row, in the order of the first output's */
    struct lang_symbol *row[CHAIN_AXES];
    struct lang_symbol *column; /* NULL: no output has one */
    struct lang_symbol *j;      /* dims[0]: where it ends in the tensors, */
    bool ends;                  /* if that is known */
    uint32_t nscore, nstream, nout;
    struct chain_score score[CHAIN_SCORES];
    struct chain_stream stream[CHAIN_STREAMS]; /* each after those that it needs */
    struct chain_out out[CHAIN_OUTS];
    /* Its streams leave out terms that are 0 only where what they multiply is finite; the form that
     * has them all. NULL: this one has. */
    const struct chain_form *exact;
    const struct chain_runs *runs; /* NULL: there are none; or this form does not heed them */
};
/* The form that results are right by in any case. */
static inline const struct chain_form *chain_exact(const struct chain_form *f)
{
    return f->exact ? f->exact : f;
}

/* ---- chain/form.c ---------------------------------------------------------------------------- */

/* Does the stage have the form? why: what it lacks, when it does not. Generates nothing. */
bool chain_analyse(struct cg *g, const struct lower_stage *s, struct chain_form *f,
                   struct buf *why);
/* An expression that names the symbol: an index, or a local. */
struct lang_expr *chain_name(struct cg *g, struct lang_symbol *sym, struct span s);
/* How the stream's terms are folded. */
enum fold_kind chain_fold(const struct chain_stream *s);
/* Does e mention the symbol? */
bool chain_mentions(const struct lang_expr *e, const struct lang_symbol *sym);
bool chain_mentions_score(const struct chain_form *f, const struct lang_expr *e);
/* Has e a node of one of the kinds, whose bits (1 << enum lang_expr_kind) these are? */
bool chain_has_kind(const struct lang_expr *e, uint32_t kinds);
/* The first stream that e mentions; -1: none. */
int chain_mentioned_stream(const struct chain_form *f, const struct lang_expr *e);

/* A local for what is computed elsewhere. */
struct lang_symbol *chain_local(struct cg *g, const char *name, enum dtype t, struct span s);

/* ---- chain/columns.c ------------------------------------------------------------------------- */

/* Finds the column among the first output's axes, the others being the row's, and takes the parts
 * out of terms with it that do not depend on it. False: outputs do not fit. */
bool chain_find_column(struct cg *g, struct chain_form *f, uint32_t naxis,
                       struct lang_symbol *const *axis, struct buf *why);

/* ---- chain/range.c --------------------------------------------------------------------------- */

/* Narrows the range [*low, *high) of j to where a condition around the whole term holds, and takes
 * the condition off the term: elsewhere the term is what the reduction begins with. What is no
 * range of j stays. runs: that is one, too; NULL: there is none. */
void chain_narrow(struct cg *g, const struct lang_symbol *j, enum lang_reduce reduce,
                  const struct chain_runs *runs, struct lang_expr **term, struct lang_expr **low,
                  struct lang_expr **high);

/* ---- chain/skip.c ---------------------------------------------------------------------------- */

/* Makes `to` of f, whose streams leave out the j where conditions inside of their terms make them 0
 * times something. False: there are none. */
bool chain_skip(struct cg *g, const struct chain_form *f, struct chain_form *to);
/* Its streams leave out what .runs do, which have begun. */
void chain_skip_runs(struct cg *g, struct chain_form *f);

/* ---- chain/runs.c ---------------------------------------------------------------------------- */

enum { CHAIN_RUNS_BLOCK = 1024 };
bool chain_find_runs(const struct chain_form *f, struct chain_runs *r);
/* Makes the temps. */
void chain_begin_runs(struct cg *g, const struct chain_form *f, struct chain_runs *r);
/* Code that fills them, in the entry that has begun: its launch's grid. */
struct lang_expr *chain_search_runs(struct cg *g, const struct chain_form *f);

/* ---- chain/running.c ------------------------------------------------------------------------- */

/* Are the stream's terms such that one pass computes it? Finds out what they are rescaled by, and
 * takes factors of the whole row out of them: *value, what the stream's local stands for, is
 * multiplied and divided by these. */
bool chain_make_running(struct cg *g, struct chain_form *f, struct chain_stream *s,
                        struct lang_expr **value, struct buf *why);

/* The value of the stream's .base for a maximum m; the row is bound. */
struct cg_val chain_base(struct cg *g, const struct chain_form *f, const struct chain_stream *s,
                         struct cg_val m);

#endif
