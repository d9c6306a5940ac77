/* Approximations against 80-bit arithmetic of the C library. Bounds: PTX ISA 9.0, "Floating Point
 * Instructions". */
#include <config.h>

#include "approx.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- promises -------------------------------------------------------------------------------- */

static const struct {
    enum ptx_op op;
    struct opc_promise p;
} promises[] = {
    {PTX_OP_DIV_F32_FAST, {.ulp = 2}},
    {PTX_OP_RCP_F32_APPROX, {.ulp = 1}},
    {PTX_OP_RCP_F64_APPROX, {.relative = 0x1p-19}}, /* no promise: the upper word alone */
    {PTX_OP_SQRT_F32_APPROX, {.relative = 0x1p-23, .ulp = 1}},
    {PTX_OP_RSQRT_F32, {.relative = 0x1.13p-23}}, /* 2^-22.9 */
    {PTX_OP_RSQRT_F64, {.relative = 0x1p-19}},
    {PTX_OP_SIN, {.absolute = 0x1.6ap-21}}, /* 2^-20.5 */
    {PTX_OP_COS, {.absolute = 0x1.6ap-21}},
    {PTX_OP_LG2, {.relative = 0x1p-22, .absolute = 0x1p-22}},
    {PTX_OP_EX2_F32, {.relative = 0x1p-22}},
    {PTX_OP_EX2_F16, {.relative = 0x1.12p-10}}, /* 2^-9.9 */
    {PTX_OP_EX2_BF16, {.relative = 0x1p-7}},
    {PTX_OP_TANH_F32, {.relative = 0x1p-11}},
    {PTX_OP_TANH_F16, {.absolute = 0x1.02p-11}}, /* 2^-10.987 */
    {PTX_OP_TANH_BF16, {.absolute = 0x1p-8}},
};

const struct opc_promise *opc_promise(const struct opc_form *f)
{
    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++)
        if (promises[i].op == f->inst.op)
            return &promises[i].p;
    return NULL;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static enum ptx_mod type_of(const struct opc_form *f)
{
    return (enum ptx_mod)f->inst.type[0];
}

unsigned opc_halves(const struct opc_form *f)
{
    return type_of(f) == PTX_F16X2 || type_of(f) == PTX_BF16X2 ? 2 : 1;
}

struct layout {
    unsigned bits, mantissa;
};

static struct layout layout_of(const struct opc_form *f)
{
    switch (type_of(f)) {
    case PTX_F16:
    case PTX_F16X2: return (struct layout){16, 10};
    case PTX_BF16:
    case PTX_BF16X2: return (struct layout){16, 7};
    case PTX_F32: return (struct layout){32, 23};
    default: return (struct layout){64, 52};
    }
}

static uint64_t half_of(const struct layout *l, uint64_t word, unsigned h)
{
    return l->bits == 64 ? word : word >> h * l->bits & ((UINT64_C(1) << l->bits) - 1);
}

static long double value(const struct layout *l, uint64_t v)
{
    const int bias = (1 << (l->bits - l->mantissa - 2)) - 1;
    const uint64_t m = v & ((UINT64_C(1) << l->mantissa) - 1), top = UINT64_C(1) << (l->bits - 1);
    const int e = (int)((v & (top - 1)) >> l->mantissa);
    const long double sign = v & top ? -1 : 1;
    if (e == 2 * bias + 1)
        return m ? NAN : sign * INFINITY;
    return sign * ldexpl((long double)(e ? m | UINT64_C(1) << l->mantissa : m),
                         (e ? e : 1) - bias - (int)l->mantissa);
}

/* Below this a number has fewer digits. */
static long double least_normal(const struct layout *l)
{
    return ldexpl(1, 2 - (1 << (l->bits - l->mantissa - 2)));
}

static long double largest(const struct layout *l)
{
    const int bias = (1 << (l->bits - l->mantissa - 2)) - 1;
    return ldexpl(2 - ldexpl(1, -(int)l->mantissa), bias);
}

/* The distance between neighbours there. */
static long double step_at(const struct layout *l, long double x)
{
    int e;
    x = fabsl(x);
    frexpl(x < least_normal(l) ? least_normal(l) : x, &e);
    return ldexpl(1, e - 1 - (int)l->mantissa);
}

double opc_apart(const struct opc_form *f, uint64_t a, uint64_t b, unsigned h)
{
    const struct layout l = layout_of(f);
    const uint64_t x = half_of(&l, a, h), y = half_of(&l, b, h);
    const long double u = value(&l, x), v = value(&l, y);
    if (x == y || (isnan(u) && isnan(v)))
        return 0;
    if (isnan(u) || isnan(v) || isinf(u) || isinf(v))
        return INFINITY;
    const long double big = fabsl(u) > fabsl(v) ? u : v;
    return (double)(fabsl(u - v) / step_at(&l, big));
}

/* ---- what is right --------------------------------------------------------------------------- */

static long double exact(const struct opc_form *f, long double a, long double b)
{
    switch (f->inst.op) {
    case PTX_OP_DIV_F32_FAST: return a / b;
    case PTX_OP_RCP_F32_APPROX:
    case PTX_OP_RCP_F64_APPROX: return 1 / a;
    case PTX_OP_SQRT_F32_APPROX: return sqrtl(a);
    case PTX_OP_RSQRT_F32:
    case PTX_OP_RSQRT_F64: return a == 0 ? copysignl(INFINITY, a) : 1 / sqrtl(a);
    case PTX_OP_SIN: return sinl(a);
    case PTX_OP_COS: return cosl(a);
    case PTX_OP_LG2: return a == 0 ? -INFINITY : log2l(a);
    case PTX_OP_EX2_F32:
    case PTX_OP_EX2_F16:
    case PTX_OP_EX2_BF16: return exp2l(a);
    default: return tanhl(a);
    }
}

static bool flushes(const struct opc_form *f)
{
    return f->inst.mod[PTX_MC_FTZ] == PTX_FTZ;
}

/* Where the manual promises nothing, or something else. */
static bool outside(const struct opc_form *f, long double a, long double b)
{
    switch (f->inst.op) {
    case PTX_OP_SIN:
    case PTX_OP_COS: return fabsl(a) > 6.2831853L;
    case PTX_OP_DIV_F32_FAST:
        return f->inst.mod[PTX_MC_ROUND] == PTX_APPROX &&
               (fabsl(b) > 0x1p126L || fabsl(b) < 0x1p-126L);
    default: return false;
    }
}

struct opc_error opc_error(const struct opc_form *f, const uint64_t *tuple, uint64_t got,
                           unsigned h)
{
    const struct layout l = layout_of(f);
    const struct opc_promise *p = opc_promise(f);
    struct opc_error r = {.open = true};
    long double a = value(&l, half_of(&l, tuple[0], h));
    long double b = f->nsrc > 1 ? value(&l, half_of(&l, tuple[1], h)) : 0;
    if (flushes(f) && fabsl(a) < least_normal(&l))
        a = copysignl(0, a);
    if (flushes(f) && fabsl(b) < least_normal(&l))
        b = copysignl(0, b);
    const long double want = exact(f, a, b), have = value(&l, half_of(&l, got, h));
    if (outside(f, a, b))
        return r;
    if (isnan(want) || isinf(want) || want == 0)
        return (struct opc_error){.special = true};
    /* results that have not all their digits, or round to infinity */
    if (fabsl(want) < least_normal(&l) || fabsl(want) > largest(&l))
        return r;
    const long double off = fabsl(have - want);
    const double parts[] = {p->relative > 0 ? (double)(off / fabsl(want) / p->relative) : INFINITY,
                            p->absolute > 0 ? (double)(off / p->absolute) : INFINITY,
                            p->ulp > 0 ? (double)(off / step_at(&l, want) / p->ulp) : INFINITY};
    r.open = false;
    r.ulp = (double)(off / step_at(&l, want));
    r.promised = fmin(fmin(parts[0], parts[1]), parts[2]);
    if (isnan(have))
        r.promised = r.ulp = INFINITY;
    return r;
}
