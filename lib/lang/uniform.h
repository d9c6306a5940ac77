/* What differs between threads: private to uniform.c (statements, messages) and uniform_value.c
 * (expressions).
 *
 * An abstract execution of a checked body, functions inlined. Every value has a level, the largest
 * group of threads in which it is known to be the same; so has every place, by the conditions
 * around it and by the threads that have left by return, break or continue. A barrier of the block
 * must stand at a place of level BLOCK or better. Loops are executed abstractly until nothing
 * changes any more; then once more to report.
 *
 * Plain loads at one address give all threads one value: anything else would be a race, which is
 * another finding. What is uniform by arithmetic on thread numbers (threadIdx.x / 32, threadIdx.x <
 * 64) is known where warps are known: see struct value.
 */
#ifndef KAIO_LANG_UNIFORM_H
#define KAIO_LANG_UNIFORM_H

#include "lang/lang_int.h"

/* The same in the whole grid, in each cluster ..., or not even in a warp. */
enum level { IN_GRID, IN_CLUSTER, IN_BLOCK, IN_WARP, IN_THREAD };

/* Where a difference comes from: "threadIdx.x", "atomic_add()". */
struct origin {
    struct span at;
    const char *what;
};

/* Terms of a value that is a sum of thread numbers and a rest that is the same in the warp. */
enum {
    TERM_X = 1,      /* threadIdx.x */
    TERM_Y = 2,      /* threadIdx.y */
    TERM_Z = 4,      /* threadIdx.z */
    TERM_Y_BX = 8,   /* threadIdx.y * blockDim.x */
    TERM_Z_BY = 16,  /* threadIdx.z * blockDim.y */
    TERM_Z_BX = 32,  /* threadIdx.z * blockDim.x */
    TERM_Z_BXY = 64, /* threadIdx.z * blockDim.x * blockDim.y */
    TERM_LANE = 128, /* laneid */
};
enum { UNIT_BX = 1, UNIT_BY = 2 }; /* is blockDim.x, blockDim.y, or their product */

struct value {
    uint8_t level;
    uint8_t
        align; /* the value, or the rest beside the terms, is a multiple of 1 << align; at most 5 */
    uint8_t terms; /* of a value of level IN_THREAD; 0: of no known form */
    uint8_t unit;
    const struct origin *from; /* of its level, where that is worse than IN_GRID */
};

enum cause_kind { AT_CONDITION, AT_LOOP, AFTER_RETURN, AFTER_BREAK, AFTER_CONTINUE };

/* Why not every thread is here. */
struct cause {
    uint8_t level;
    enum cause_kind kind;
    struct span at;   /* the condition, or the return, break or continue */
    const char *name; /* what in the condition differs: a variable, threadIdx.x, ... */
    const struct origin *from;
};

struct place {
    bool live;
    struct value *v; /* by slot */
    uint32_t room;
    struct cause gone, left, skipped; /* by return; by break and continue of the innermost loop */
    struct place *next;               /* in the pool */
};

struct loop_memory; /* what earlier passes found at a loop's head */

struct exits { /* of a loop, a switch or a function */
    struct place *leave, *again;
    struct value result; /* of a function */
};

struct uniform {
    struct arena *a;
    struct diags *d;
    const struct lang_options *opt;
    uint32_t first, nslot; /* the slots of the function's locals: from first on */
    uint32_t room;         /* slots that each new place has */
    const uint32_t *alias; /* of the function's parameters that are arrays: the caller's slot + 1 */
    struct place *pool;
    uint32_t *stamp; /* by slot: when it was last assigned */
    uint32_t clock;
    VEC(struct loop_memory *) memory; /* by the loops' order in a pass */
    size_t nloop;
    struct exits *loop, *breakable, *function;
    struct cause gone; /* by return of the functions around this one, the body's included */
    unsigned pass;
    uint64_t steps;
    bool changed, report, good;
    bool naming;      /* what is to blame is looked for, which executes nothing */
    VEC(size_t) told; /* the causes reported, by their offsets */
};

struct cause worse(struct cause x, struct cause y);
/* Why not all are here of those that have not returned. */
struct cause cause_here(const struct place *s, struct cause around);
struct value value_join(struct value x, struct value y);
struct value value_under(struct value v, struct cause c);
uint32_t slot_of(const struct uniform *u, const struct lang_symbol *sym);

/* The value of e where the conditions `around` hold; calls in it act on s. */
struct value value_of(struct uniform *u, struct place *s, struct cause around,
                      const struct lang_expr *e);
/* A condition of that value as the reason why only some threads go on. */
struct cause cause_of(struct uniform *u, struct place *s, const struct lang_expr *cond,
                      struct value v, enum cause_kind kind);
/* A call of a function of functions:. */
struct value value_of_function(struct uniform *u, struct place *s, struct cause around,
                               const struct lang_expr *e);
/* Reports that e, which needs all threads of a group to come, is where only some do. */
void demand(struct uniform *u, const struct place *s, struct cause around,
            const struct lang_expr *e, enum level need, bool exited_may);
/* Reports that all lanes come to e, whose mask leaves out some, if that is so. */
void demand_mask(struct uniform *u, const struct place *s, struct cause around,
                 const struct lang_expr *e);

#endif
