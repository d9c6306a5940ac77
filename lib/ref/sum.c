/* What a sum comes to, and its bound: what may be lost by adding its terms up. */
#include <config.h>

#include "ref/program.h"

/* No partial sum is larger, whatever the order: the terms of one sign together. *other: of the sign
 * that the sum has not. */
static double largest_partial(const struct ref_sum *s, double sum, double *other)
{
    double up = s->up, down = fmax(up - sum, 0);
    double side = (fmax(up, down) + s->es) * (1 + 0x1p-40);
    *other = (sum > 0 ? down : up) + s->es;
    return side < s->m ? side : s->m;
}

/* The roundings by which a sum may be rescaled: four for each maximum that is found after the first
 * one, or after a rounded one. Where a depth counts them that may be any number of them, else one
 * in 8 terms. */
static double rescalings(const struct reduce *r, const struct ref_sum *s)
{
    const double later = (double)s->n - !r->rough;
    return r->rescaled && s->n ? 4 * (r->sums.depth ? later : floor(later / 8)) : 0;
}

/* What adding the terms up may lose. In any order there are n - 1 roundings, each of a partial sum;
 * where a term goes through at most depth of them, it is that part of its own magnitude (Higham,
 * section 4.2). */
static double sum_loss(const struct reduce *r, const struct ref_sum *s, double side)
{
    double u = r->round.unit, add = (double)s->n - 1 + rescalings(r, s);
    double depth = r->sums.depth && (double)r->sums.depth < add ? (double)r->sums.depth : add;
    double any = add * u < 0.5 ? add * u / (1 - add * u) * side : INFINITY;
    double tree = depth * u < 0.5 ? depth * u / (1 - depth * u) * s->m : INFINITY;
    return fmin(any, tree) + (r->rescaled ? depth * r->round.tiny : 0);
}

/* What tensor cores lose beside: a part of the largest partial sum for each step, or of what the
 * exponents stand for. */
static double truncation_loss(const struct reduce *r, const struct ref_sum *s, double side)
{
    side = side > s->far ? side : s->far;
    double n = (double)r->sums.truncation, u = r->round.unit;
    return n * u < 0.5 ? n * u / (1 - n * u) * side + 2 * n * r->round.tiny : INFINITY;
}

/* Multiples of 1 below this lose nothing to tensor cores: what a term may lose, in units of 2^-24,
 * says how many bits they keep. */
static double tensor_precision(const struct reduce *r, const struct ref_sum *s)
{
    double each = (double)r->sums.truncation / (double)(s->terms ? s->terms : 1);
    return each > 1 ? ldexp(1, 24 - (int)ceil(log2(each))) : 0x1p24;
}

/* Does no partial sum round, whatever the order? */
static bool sum_exact(const struct reduce *r, const struct ref_sum *s)
{
    if (s->es != 0 || s->n == 0)
        return s->es == 0;
    const bool scales = r->rescaled && r->rough;
    if (scales || s->n == 1)
        return !scales;
    if (r->sums.truncation)
        return fmax(s->m, s->far) < tensor_precision(r, s) * s->quantum;
    return s->quantum > 0 && s->m <= ref_precision(r) * s->quantum;
}

void ref_sum_result(const struct reduce *r, const struct ref_sum *s, double *v, double *e)
{
    double plain = s->s;
    *v = isfinite(plain) ? plain + s->c : plain;
    *e = 0;
    /* a NaN, or infinities of both signs: certain unless a term is unknown, or a partial sum may
     * have overflowed to one */
    if (isnan(plain)) {
        *e = s->es == INFINITY || s->m > r->round.limit ? INFINITY : 0;
        return;
    }
    /* a partial sum may overflow although the result does not, or to the other infinity */
    double other = 0, side = isfinite(plain) ? largest_partial(s, *v, &other) : s->m;
    bool overflows = side > r->round.limit &&
                     (fabs(*v) <= r->round.limit || other > r->round.limit);
    if (s->es == INFINITY || overflows || (isinf(plain) && s->m > r->round.limit)) {
        *e = INFINITY;
    } else if (isfinite(plain)) {
        if (!sum_exact(r, s))
            *e = s->es + s->own + sum_loss(r, s, side) + truncation_loss(r, s, side) +
                 r->round.tiny;
        ref_range(&r->round, v, e);
    }
}
