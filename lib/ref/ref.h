/* The oracle: what a spec's mathematics says, evaluated over host buffers, with a bound for every
 * element.
 *
 * Floats are evaluated in double, integers in two's complement of their type (index arithmetic in
 * 64 bits). Beside its value v every float carries e, so that any kernel that the language permits
 * computes a result within v - e .. v + e before it is stored. The rules (running error analysis;
 * N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.3 and 4.2):
 *
 *   - an operation of type T adds u_T (|v| + what its operands' errors propagate to) and half the
 *     smallest subnormal; u_f64 counts twice, because the reference is itself computed in double.
 *     Products and sums may be contracted.
 *   - an operation on exact operands whose result is representable in T is exact: e = 0.
 *   - a sum of n terms t that are not zero adds (n-1) u_T max(sum of the positive ones, sum of the
 *     negative ones) and the errors of its terms: any order, any tree. Where no term goes through
 *     more than depth roundings, it adds depth u_T sum(|t|) if that is less. If every partial sum
 *     is representable whatever the order, nothing is added.
 *   - a sum of products by tensor cores (struct spec_sums, truncation) adds what they lose to that.
 *     A step of mma.sync aligns the K products, which are exact, and what was added up before to
 *     the largest of their exponents, E, cuts them off after n fraction bits, adds exactly and cuts
 *     off the result after 24 bits. That loses less than K 2^(E-n), because the largest loses
 *     nothing, and less than 2 u of the result; 2^E and the result are at most the largest partial
 *     sum. n is 24 and K 8 (f16, bf16) or 4 (tf32) in Ampere and Ada, which do k16 in two such
 *     steps, n 25 and K all of the instruction's in Hopper and Blackwell, n 24 and K 4 in Turing
 *     (M. Fasi et al., Numerical behavior of NVIDIA tensor cores, 2021; F. Khattak and M. Mikaitis,
 *     arXiv 2512.07004; MMA-Sim, arXiv 2511.10909): K + 2 units for 8 or 4 products, K/2 + 2 for
 *     more; 6 for every four covers them all. e4m3 and e5m2 have n = 13 and results of 14 bits:
 *     2^11 (16 + 1) for every 16. A subnormal factor counts with the exponent of the smallest
 *     normal number of its type, so that E may be larger than any term; then 2^E takes the largest
 *     partial sum's place. Equality is demanded where no partial sum has more bits than alignment
 *     leaves.
 *   - f32 in two parts of tf32, a1 = tf32(a) and a2 = tf32(a - a1), has |a - a1| <= 2^-11 |a| and
 *     |a - a1 - a2| <= 2^-22 |a|: of the product a b, a1 b1 + a1 b2 + a2 b1 lacks a2 b2 and what
 *     the parts lack, 3 * 2^-22 |a b| = 12 u |a b| (products; 20 where a2 is cut off instead, 24
 *     where of one factor a1 is and of the other a2, 32 where a1 is cut off, too, but b1 is not, 48
 *     where all are). A product of 22 bits lacks nothing. Where a1 b2 is a product of bf16, which
 *     has 8 bits, a1 loses up to 2^-7 of itself (rounded toward zero, as it is where that keeps it
 *     finite) and b2, at most 2^-11 |b|, up to 2^-9 of that: 56 + 16 u |a b| more, of what has more
 *     than 19 bits. Two parts of f16, scaled so that the largest factor near by is 2^14 to 2^15 and
 *     the second part by 2^11 more, are as good for factors down to 2^-29 of that one: 12 u |a b|.
 *     What smaller ones lack, whatever their bits, is at most 2^-24 of the sum that a kernel leaves
 *     as it is, u |a b| more; so an odd number of products says that even a short one may lack
 *     something. Factors below 2^-115 count as large as that, because subnormal parts have fewer
 *     bits. Of infinities, and of what tf32 rounds to one, parts make NaN: any value is accepted.
 *   - a sum whose terms have exponentials of differences from a maximum as factors, as softmax's
 *     and attention's have, p = exp(x - top), may be added up before the maximum is known. A
 *     kernel that goes through a row once has p' = exp(x - r), where r is the maximum of what it
 *     has met; when that grows to r', it multiplies what it has added up by exp(r - r'). In the
 *     end a term has been multiplied by exp(x - r1), exp(r1 - r2), ..., exp(rk - top). The
 *     differences are of one sign and add up to x - top. Each rounds by u of itself, all together
 *     by u |x - top|, which is u |p ln p| in the term: that is added, for x - top itself may be
 *     exact. What each exponential after the first errs by (0.9 ulp, 1.8 u), the multiplication's
 *     rounding and the addition's are 4 roundings at most, of all that was added up so far, and
 *     depth counts them for each tile of a row. So depth is not limited by n - 1 here, but by that
 *     and 4 for each term after the first; where it is unknown, 4 are assumed for one term in 8.
 *     A kernel that multiplies by tensor cores may round r even of the only term that there is,
 *     and scale by what that is off at last: 4 are counted for the first term, too, and e^0 alone
 *     does not make a sum exact.
 *     What is lost before a rescaling (by truncation, to far) is scaled with the sums that it is a
 *     part of: these are the final ones times exp(top - r), and no smaller. A product with exp(r -
 *     r') may be subnormal, which depth counts as well.
 *     T(p) is T(p') then, for a T of fewer bits: with c = exp(top - r) >= 1 it stands for T(c p) /
 *     c, which is off p by u_T p and half T's smallest subnormal over c, or by 2^-126 where
 *     exponentials are the hardware's, which are 0 below that (sums by tensor cores). A kernel may
 *     rescale rarely, r being behind the maximum that it has met, and round r: c is not 1 for the
 *     maximum itself then. Both are added to what T(p) is, and to an intermediate of type T, with
 *     what T(p) is off p itself. So it is where p is a quotient by the total, too, which is at
 *     least 1 where the maximum is among the terms. Zeros that are certain stay: those are e^-inf,
 * whatever the maximum is. An f32 p beside f16 may be multiplied in two parts of f16, which lack
 * what is below 2^-weights (weights in struct spec_sums): half of that is added. A total that
 * overflows without the exponentials is unknown, because p' may be 1; so is T(p w) where w
 * overflows T. The total's logarithm and a quotient by it take their error as they take any.
 *   - a quotient whose divisor is computed by an equation or a reduction, or where something is
 *     reduced and the divisor is the same all along the left side's last index, may be a product
 *     with the divisor's reciprocal, which rounds once more (and loses more where the reciprocal is
 *     subnormal).
 *   - a function adds its documented error in ulp, and tanh of f32 3 where sums are by tensor cores
 *     and something is reduced of it; its argument's error is propagated through the
 *     ends of the interval where the function is monotone, through a Lipschitz constant elsewhere.
 *     Of 0 and of the infinities it is exact where the result is representable (a sum of e^0 and
 *     e^-inf counts), but for the variants for 16-bit results.
 *   - T(a op b), an explicit conversion to the operation's own type, is a rounding point: exact
 *     operands give the correctly rounded value with e = 0 (IEEE arithmetic, bit for bit). Under
 *     math: strict every +, -, *, /, sqrt and fma is one as it stands, but for the product that is
 *     a sum's term, which one fma adds, and for those of factors that have 12 bits at most wherever
 *     in a sum's term: f32 has all of these, and tensor cores and fma add them without another
 *     rounding. One that is too large for f32 may not be infinite then.
 *   - a comparison whose operands are nearer than their errors is undecided: both sides are
 *     evaluated and the result covers both. Conversions to integers and floor, ceil, trunc, round,
 *     rint cover what v - e .. v + e gives.
 *   - the range of T counts: a magnitude that certainly overflows T is infinite, one that might be
 *     is unknown (e = infinity: any value is accepted, and counted).
 *   - the store of an output rounds v - e and v + e to the output's type: an exact value allows one
 *     result.
 *
 * No constant is hidden in the comparison: the bound is what the rules above add up to.
 */
#ifndef KAIO_REF_REF_H
#define KAIO_REF_REF_H

#include "spec/spec.h"

struct ref_scalar {
    double f;
    int64_t i;
};

/* What the spec's names stand for. Buffers are the contents before the launch, dense and row-major,
 * in the declared type (in and inout; NULL elsewhere). Nothing is copied: it all must outlive the
 * evaluation. */
struct ref_input {
    const struct spec *spec;
    const uint64_t *dims;             /* by dimension id */
    const struct ref_scalar *scalars; /* by parameter id */
    const void *const *buffers;       /* by parameter id */
    /* By equation of the oracle: elements that stand for what it says, dense and in its type, or
     * NULL. NULL: nothing stands for any. So a value is judged by what a kernel made of the values
     * that it read, and not by the chain before them. */
    const void *const *found;
    const bool *wanted; /* by equation of the oracle: the results; NULL: all outputs */
};

struct ref_options {
    unsigned threads; /* 0: one per core. Results do not depend on it. */
    /* Evaluate only this many elements of each output, chosen at random, or about as many in whole
     * rows, at least 16, or 2 of more than a slab, where an element takes a row of an intermediate;
     * 0: all. */
    uint64_t sample;
    uint64_t seed;         /* ... by this */
    struct spec_sums sums; /* what the kernel says of itself */
    /* for intermediates; beyond it they are evaluated piecewise, on demand; 0: 4 GiB */
    uint64_t memory;
    /* Of more intermediates than this, in bytes, rows are held that their equations share, where
     * they share any; 0: 64 MiB. */
    uint64_t slab;
    /* stops the evaluation when it becomes non-zero; may be NULL */
    const volatile int *interrupted;
};

/* The values of one output, or of an intermediate that is wanted. Integers and bools are in i,
 * floats in v; e is the bound before the store. */
struct ref_output {
    const struct spec_param *param; /* NULL: an intermediate */
    const struct lang_equation *equation;
    enum dtype type;
    bool rounds; /* its store does, from a wider type that it is computed in */
    uint32_t rank;
    uint64_t *shape;
    uint64_t count;        /* elements of the output */
    uint64_t n;            /* elements evaluated */
    const uint64_t *where; /* their flat indices, ascending; NULL: all */
    uint64_t rows; /* they are so many rows, chosen at random; 0: elements are, or there are all */
    double *v;
    int64_t *i;
    double *e;
};

/* A reduction that does not depend on all indices around it, but on REF_KEYS at most, is computed
 * once for those that it depends on, as far as its last REF_KEPT values reach. */
enum { REF_KEYS = 4, REF_KEPT = 1 << 15 };
/* Of one whose range alone depends on an index, by one of its ends, as prefixes', no element takes
 * more than twice so many terms by itself: it goes on from what others have gathered. */
enum { REF_STEP = 256 };

struct ref;

/* Evaluates spec_oracle(in->spec), which must not be NULL. NULL with errors in d: a subscript out
 * of range, a division of integers by zero, too large, interrupted. */
struct ref *ref_evaluate(struct arena *a, const struct ref_input *in, const struct ref_options *opt,
                         struct diags *d);
/* By equation of the oracle: which part of its elements a sample evaluates that is made of whole
 * rows. NULL: it is made of elements. in->buffers is not looked at. */
const double *ref_sampled_parts(struct arena *a, const struct ref_input *in, uint64_t sample);
size_t ref_noutput(const struct ref *r);
const struct ref_output *ref_output(const struct ref *r, size_t k);
/* ref_has_index(): is an output defined as argmax or argmin over one index? The other: does index
 * got at element flat hold a value that may be the extreme one? */
bool ref_has_index(const struct ref *r, size_t output);
bool ref_accepts_index(struct ref *r, size_t output, uint64_t flat, int64_t got);
/* Elements of all evaluated intermediates and outputs, and basic operations done: for reports. */
uint64_t ref_operations(const struct ref *r);
/* Frees what ref_evaluate allocated outside the arena. */
void ref_free(struct ref *r);

/* The interval of stored values that (v, e) allows in type t: [lo, hi]; *any when every value is. A
 * NaN reference gives NaN for both. */
void ref_allowed(enum dtype t, double v, double e, double *lo, double *hi, bool *any);

#endif
