/* Attention in a spec's mathematics: what a library of it would be asked for in its place, and how
 * much of its scores is not masked. It is known by its equations alone:
 *
 *     o = sum[j](exp(x - max[j](x)) * v) / sum[j](exp(x)),   x made of sum[c](q * k)
 *
 * or by the three gradients of that from lse. Masks are told by what they let through, not by how
 * they are written.
 */
#ifndef KAIO_BENCH_ATTENTION_H
#define KAIO_BENCH_ATTENTION_H

#include "bench/code.h"
#include "run/sdpa.h"

/* Who an index is in a formula of attention; NULL: there is none. */
struct attention_roles {
    const struct lang_symbol *batch, *head, *row, *key;
};
/* Which pairs of a row and a key count: those in the range of the sum, which is one of keys for
 * each row or of rows for each key, and in all conditions. */
struct attention_mask {
    struct attention_roles roles;
    const struct lang_symbol *summed; /* the sum's index, with its range */
    VEC(const struct lang_expr *) conditions;
};

struct attention {
    bool is_found;   /* it is attention, whether the library takes it or not */
    const char *why; /* the library is not asked: what is missing */
    struct sdpa_problem problem;
    const struct lang_symbol *sym[SDPA_BUFFERS]; /* the parameters; NULL: none of the spec's */
    uint64_t offset[SDPA_BUFFERS];               /* elements in front of the first */
    double pairs;      /* of rows and keys that are not masked, over all heads; 0: not known */
    double operations; /* of its products, two for each term of such a pair */
};

/* Functions here look at a spec at one point. buffers has the contents of integer inputs by
 * parameter id, or is NULL. */
struct attention_at {
    struct arena *a;
    const struct spec *s;
    const struct bench_point *p;
    const void *const *buffers;
};

struct attention attention_find(const struct attention_at *at);
/* "batch 2, heads 32 of 8, ...": appends a line. */
void attention_text(const struct attention *x, struct buf *out);

/* ---- mask.c ---------------------------------------------------------------------------------- */

/* An expression of dimensions, scalars and numbers only. */
bool attention_scalar(const struct attention_at *at, const struct lang_expr *e, double *out);
/* A whole number, with what indices stand for. */
struct attention_env {
    const struct lang_symbol *index[4];
    int64_t value[4];
    /* A buffer of lengths by sequence, read as `length`, where its contents are not looked at. */
    bool assume;
    int64_t length;
    const struct lang_symbol *lengths; /* set: which buffer that was */
};
bool attention_whole(const struct attention_at *at, const struct lang_expr *e,
                     struct attention_env *env, int64_t *out);
/* Finds causal, shift and window and the buffer of lengths; false with *why: no library has it. */
bool attention_classify(const struct attention_at *at, const struct attention_mask *mask,
                        struct attention *x);
/* Do both let the same pairs through, as far as samples tell? */
bool attention_same_mask(const struct attention_at *at, const struct attention_mask *mask,
                         const struct attention *x);
double attention_pairs(const struct attention_at *at, const struct attention_mask *mask,
                       const struct sdpa_problem *p);

#endif
