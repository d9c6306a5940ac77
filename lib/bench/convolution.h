/* The convolution in a spec's mathematics: what a library would be asked for in its place. It is
 * known by the subscripts in a sum of products of two inputs:
 *
 *     x[b, c, i * s + u * t - p, ...] * w[f, c, u, ...]           forward, summed over c and u;
 *                                                                 the filter's gradient, over b, i
 *     x[b, f, (i + p - u * t) / s, ...] * w[f, c, u, ...]         the image's gradient, over f, u
 *
 * in any order of the dimensions, with indices that both factors and the result have as groups.
 * What is around the sum is left away.
 */
#ifndef KAIO_BENCH_CONVOLUTION_H
#define KAIO_BENCH_CONVOLUTION_H

#include "bench/attention.h"
#include "run/conv.h"

struct convolution {
    const char *why; /* the library is not asked: what is missing; NULL: it is */
    bool is_found;   /* there is a subscript as of a convolution */
    bool plain;      /* the spec is nothing else */
    struct conv_problem problem;
    const struct lang_symbol *sym[CONV_OPERANDS]; /* the parameters */
    uint64_t offset[CONV_OPERANDS];               /* elements in front of the first */
    double terms;                                 /* of all sums */
};

struct convolution convolution_find(const struct attention_at *at);
/* "forward of f16, x 2 x 3 x ...": appends a line. */
void convolution_text(const struct convolution *x, struct buf *out);
/* Which operand of a problem the library writes. */
enum conv_operand convolution_result(const struct conv_problem *p);
bool convolution_channels_last(const struct conv_problem *p, const struct conv_tensor *t);
/* How many groups of channels there are. */
uint64_t convolution_groups(const struct conv_problem *p);

#endif
