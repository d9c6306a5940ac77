/* The elementary functions that mathlib/half.k has for results rounded to 16 bits at once, by the
 * hardware's approximations: 2^x and 1/x to about 2^-22, an instruction each. For kernels whose
 * sums are the tensor cores' (cg.h): bits of others are the same on every machine, and these need
 * not be. The errors in math.def hold here too.
 *
 * What 2^x would lose below 2^-126 is kept by a factor 2^-64 or 2^64, which the last multiplication
 * takes away: that is what rounds results in the subnormal range. min and max keep NaN, so that it
 * comes out again.
 */
#include <config.h>

#include "lower/cg/cg.h"

static struct cg_val f32(struct cg *g, double v)
{
    return cg_float(g, DT_F32, v);
}

static struct cg_val op1(struct cg *g, const char *text, struct cg_val x)
{
    return cg_value(DT_F32, CG(g, PTX_F32, text, cg_op(g, x)));
}

static struct cg_val op2(struct cg *g, const char *text, struct cg_val x, double y)
{
    return cg_value(DT_F32, CG(g, PTX_F32, text, cg_op(g, x), cg_op(g, f32(g, y))));
}

static struct cg_val mul(struct cg *g, struct cg_val x, struct cg_val y)
{
    return cg_binary(g, OP_MUL, x, y);
}

/* c[0] + c[1] x + ... + c[n] x^n */
static struct cg_val polynomial(struct cg *g, struct cg_val x, uint32_t n, const float *c)
{
    struct cg_val p = f32(g, (double)c[n]);
    while (n-- > 0)
        p = cg_fma(g, p, x, f32(g, (double)c[n]));
    return p;
}

/* 1 / (1 + 2^(x c)), if x c is below 192. */
static struct cg_val logistic(struct cg *g, struct cg_val x, struct cg_val c)
{
    struct cg_val e = op1(g, "ex2.approx.ftz.f32", cg_fma(g, x, c, f32(g, -64)));
    struct cg_val r = op1(g, "rcp.approx.ftz.f32", cg_binary(g, OP_ADD, e, f32(g, 0x1p-64)));
    return mul(g, r, f32(g, 0x1p-64));
}

/* The square of 2^(x c / 2). x c is off by 2^-17 where it is 150, and by less where the result is
 * normal. */
struct cg_val cg_exp2_root(struct cg *g, struct cg_val x, double c)
{
    const struct cg_val root = op1(g, "ex2.approx.ftz.f32", mul(g, x, f32(g, c / 2)));
    return mul(g, root, root);
}

static struct cg_val silu(struct cg *g, struct cg_val x)
{
    struct cg_val y = op2(g, "max.NaN.f32", x, -110);
    return mul(g, y, logistic(g, y, f32(g, -0x1.715476p0)));
}

static struct cg_val gelu_tanh(struct cg *g, struct cg_val x)
{
    struct cg_val y = op2(g, "max.NaN.f32", x, -11);
    struct cg_val c = cg_fma(g, mul(g, y, y), f32(g, -0x1.a5a7dp-4), f32(g, -0x1.26aec2p1));
    return mul(g, y, logistic(g, y, c));
}

/* max(x, 0) - |x| 2^P, P the logarithm of Phi(-|x|) as exactly as f16 takes it: to 0.006 of its
 * smallest number where that is all there is, and of what is left below -5.75 it has nothing. */
static struct cg_val gelu_of_f16(struct cg *g, struct cg_val x)
{
    static const float c[] = {-0x1.00008p0f,  -0x1.26aa5p0f,    -0x1.d63104p-2f, -0x1.b297f2p-5f,
                              0x1.043d8cp-7f, -0x1.8859c2p-11f, 0x1.101f5ep-15f};
    struct cg_val a = op2(g, "min.NaN.f32", op1(g, "abs.f32", x), 5.75);
    struct cg_val e = op1(g, "ex2.approx.ftz.f32", polynomial(g, a, 6, c));
    const struct cg_val positive = cg_minmax(g, true, x, f32(g, 0));
    return cg_fma(g, op1(g, "neg.f32", a), e, positive);
}

/* Computes gelu as mathlib/half.k does. */
static struct cg_val gelu(struct cg *g, struct cg_val x)
{
    static const float c[] = {-0x1.3c0ebcp5f + 64, -0x1.498394p3f,   -0x1.6a9796p-1f,
                              -0x1.266464p-10f,    0x1.c2d5bcp-14f,  -0x1.65e93cp-17f,
                              0x1.bd6fd6p-21f,     -0x1.0d2a9ep-24f, 0x1.9f9fap-27f,
                              -0x1.baa2dep-30f,    0x1.42ee78p-34f};
    struct cg_val a = op2(g, "min.NaN.f32", op1(g, "abs.f32", x), 14.5);
    struct cg_val z = cg_binary(g, OP_SUB, a, f32(g, 7));
    struct cg_val e = op1(g, "ex2.approx.ftz.f32", polynomial(g, z, 10, c));
    const struct cg_val positive = cg_minmax(g, true, x, f32(g, 0));
    return cg_fma(g, mul(g, a, e), f32(g, -0x1p-64), positive);
}

bool cg_has_tensor_call(const struct ptx_target *target, const struct lang_expr *e)
{
    if (!e->rounded || target->sm < 80)
        return false;
    return e->fn == FN_SIGMOID || e->fn == FN_SILU || e->fn == FN_GELU_TANH || e->fn == FN_GELU ||
           e->fn == FN_EXP;
}

bool cg_tensor_call(struct cg *g, const struct lang_expr *e, struct cg_val x, struct cg_val *r)
{
    if (!g->tensor || !cg_has_tensor_call(g->target, e))
        return false;
    switch ((int)e->fn) {
    case FN_EXP: *r = cg_exp2_root(g, x, 0x1.715476p0); return true;
    case FN_SIGMOID: *r = logistic(g, x, f32(g, -0x1.715476p0)); return true;
    case FN_SILU: *r = silu(g, x); return true;
    case FN_GELU_TANH: *r = gelu_tanh(g, x); return true;
    case FN_GELU: *r = e->to_f16 ? gelu_of_f16(g, x) : gelu(g, x); return true;
    default: return false;
    }
}
