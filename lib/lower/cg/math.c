#include <config.h>

#include "lower/cg/cg.h"
#include "base/internal.h"
#include "lower/cg/library.h"

#include <math.h>
#include <stdio.h>

/* Builtins: what the hardware does exactly is one instruction, the hardware's approximations are
 * used where fast asks for them, everything else is inlined from the library. */

static struct cg_val op1(struct cg *g, const char *name, struct cg_val x)
{
    char m[40];
    cg_dotted(m, name, cg_suffix(x.type));
    return cg_value(x.type, CG(g, cg_regtype(x.type), m, cg_op(g, x)));
}

/* cvt.rXi.f32.f32: to an integral value. */
static struct cg_val integral(struct cg *g, const char *round, struct cg_val x)
{
    char m[40];
    snprintf(m, sizeof m, "cvt.%s.%s.%s", round, cg_suffix(x.type), cg_suffix(x.type));
    return cg_value(x.type, CG(g, cg_regtype(x.type), m, ptx_r(cg_reg(g, x))));
}

static struct cg_val mul(struct cg *g, struct cg_val x, struct cg_val y)
{
    return cg_binary(g, OP_MUL, x, y);
}

static struct cg_val f32(struct cg *g, double v)
{
    return cg_float(g, DT_F32, v);
}

static const double LOG2_E = 1.4426950408889634, LN_2 = 0.6931471805599453,
                    LOG10_2 = 0.30102999566398120;

/* ---- the hardware's approximations (f32) ----------------------------------------------------- */

static struct cg_val fast_exp(struct cg *g, struct cg_val x, double scale)
{
    return op1(g, "ex2.approx", mul(g, x, f32(g, scale * LOG2_E)));
}

static struct cg_val fast_sigmoid(struct cg *g, struct cg_val x, double scale)
{
    struct cg_val d = cg_binary(g, OP_ADD, fast_exp(g, x, -scale), f32(g, 1));
    return op1(g, "rcp.approx", d);
}

static struct cg_val fast_tanh(struct cg *g, struct cg_val x)
{
    if (g->target->sm >= 75)
        return op1(g, "tanh.approx", x);
    /* 2 sigmoid(2x) - 1 */
    return cg_fma(g, fast_sigmoid(g, x, 2), f32(g, 2), f32(g, -1));
}

/* x / 2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3) */
static struct cg_val fast_gelu_tanh(struct cg *g, struct cg_val x)
{
    struct cg_val c =
        cg_fma(g, mul(g, x, x), f32(g, 0.7978845608028654 * 0.044715), f32(g, 0.7978845608028654));
    struct cg_val t = fast_tanh(g, mul(g, x, c)), h = mul(g, x, f32(g, 0.5));
    return cg_fma(g, h, t, h);
}

static bool fast_call(struct cg *g, enum lang_builtin fn, const struct cg_val *x, struct cg_val *r)
{
    switch (fn) {
    case FN_EXP: *r = fast_exp(g, x[0], 1); return true;
    case FN_EXP2: *r = op1(g, "ex2.approx", x[0]); return true;
    case FN_LOG: *r = mul(g, op1(g, "lg2.approx", x[0]), f32(g, LN_2)); return true;
    case FN_LOG2: *r = op1(g, "lg2.approx", x[0]); return true;
    case FN_LOG10: *r = mul(g, op1(g, "lg2.approx", x[0]), f32(g, LOG10_2)); return true;
    case FN_SIN: *r = op1(g, "sin.approx", x[0]); return true;
    case FN_COS: *r = op1(g, "cos.approx", x[0]); return true;
    case FN_TANH: *r = fast_tanh(g, x[0]); return true;
    case FN_SQRT: *r = op1(g, "sqrt.approx", x[0]); return true;
    case FN_RSQRT: *r = op1(g, "rsqrt.approx", x[0]); return true;
    case FN_RCP: *r = op1(g, "rcp.approx", x[0]); return true;
    case FN_SIGMOID: *r = fast_sigmoid(g, x[0], 1); return true;
    case FN_SILU: *r = mul(g, x[0], fast_sigmoid(g, x[0], 1)); return true;
    case FN_GELU_TANH: *r = fast_gelu_tanh(g, x[0]); return true;
    default:
        return false; /* no hardware help, or none of use near the poles of tan and for pow's
                         negative bases */
    }
}

/* ---- exact operations ------------------------------------------------------------------------ */

static struct cg_val absolute(struct cg *g, struct cg_val x)
{
    int64_t i;
    if (dtype_class(x.type) == DTC_U)
        return x;
    if (cg_is_const(x, &i))
        return cg_int(x.type, i < 0 ? (int64_t)(0 - (uint64_t)i) : i);
    return op1(g, "abs", x);
}

static struct cg_val zero_of(struct cg *g, enum dtype t)
{
    return dtype_is_float(t) ? cg_float(g, t, 0) : cg_int(t, 0);
}

/* Rounded up, by the quotient and whether something is left, so that no sum can overflow. */
static struct cg_val ceil_div(struct cg *g, struct cg_val x, struct cg_val y)
{
    struct cg_val q = cg_binary(g, OP_DIV, x, y), r = cg_binary(g, OP_MOD, x, y);
    struct cg_val zero = cg_int(x.type, 0), more = cg_binary(g, OP_NE, r, zero);
    int64_t c;
    bool positive = x.narrow == CG_U32 && (y.narrow == CG_U32 || (cg_is_const(y, &c) && c > 0));
    if (dtype_class(x.type) == DTC_I && !positive) /* the quotient was cut towards zero */
        more = cg_binary(g, OP_LAND, more, cg_binary(g, OP_GE, cg_binary(g, OP_XOR, r, y), zero));
    return cg_binary(g, OP_ADD, q, cg_convert(g, more, x.type));
}

/* The sign of one, the size of the other. */
static struct cg_val copy_sign(struct cg *g, struct cg_val sign, struct cg_val size)
{
    char m[32];
    cg_dotted(m, "copysign", cg_suffix(size.type));
    return cg_value(
        size.type, CG(g, cg_regtype(size.type), m, ptx_r(cg_reg(g, sign)), ptx_r(cg_reg(g, size))));
}

/* Half away from zero: the fraction is exact, so the comparison is. */
static struct cg_val round_away(struct cg *g, struct cg_val x)
{
    struct cg_val t = integral(g, "rzi", x);
    struct cg_val fraction = absolute(g, cg_binary(g, OP_SUB, x, t));
    struct cg_val up = cg_binary(g, OP_GE, fraction, cg_float(g, x.type, 0.5));
    struct cg_val step = copy_sign(g, x, cg_float(g, x.type, 1));
    const struct cg_val further = cg_binary(g, OP_ADD, t, step);
    return cg_select(g, cg_reg(g, up), further, t);
}

/* Before there were instructions for it as these do it: of a NaN the low bits are dropped. */
static struct cg_val to_tf32(struct cg *g, struct cg_val x, bool even)
{
    if (g->target->sm >= (even ? 90 : 80)) {
        const char *text = even ? "cvt.rn.tf32.f32" : "cvt.rna.tf32.f32";
        const int32_t bits = CG(g, PTX_B32, text, ptx_r(cg_reg(g, x)));
        return cg_bitcast(g, cg_value(DT_U32, bits), DT_F32);
    }
    const struct cg_val bits = cg_bitcast(g, x, DT_U32), kept = cg_int(DT_U32, 0xffffe000);
    struct cg_val half = cg_int(DT_U32, 0x1000);
    if (even) {
        half = cg_binary(g, OP_SHR, bits, cg_int(DT_U32, 13));
        half = cg_binary(g, OP_AND, half, cg_int(DT_U32, 1));
        half = cg_binary(g, OP_ADD, half, cg_int(DT_U32, 0xfff));
    }
    const struct cg_val up = cg_binary(g, OP_ADD, bits, half);
    const int32_t nan = CG(g, PTX_PRED, "setp.nan.f32", cg_op(g, x), cg_op(g, x));
    return cg_bitcast(g, cg_binary(g, OP_AND, cg_select(g, nan, bits, up), kept), DT_F32);
}

/* The bits that it has not are zero; a NaN, which may have no others, stays as it is. */
static struct cg_val cut_to_tf32(struct cg *g, struct cg_val x)
{
    const struct cg_val bits = cg_bitcast(g, x, DT_U32);
    const struct cg_val cut = cg_binary(g, OP_AND, bits, cg_int(DT_U32, 0xffffe000));
    const int32_t nan = CG(g, PTX_PRED, "setp.nan.f32", cg_op(g, x), cg_op(g, x));
    return cg_bitcast(g, cg_select(g, nan, bits, cut), DT_F32);
}

static struct cg_val bit_count(struct cg *g, const char *name, struct cg_val x)
{
    char m[32];
    enum dtype narrow = dtype_bits(x.type) == 64 ? x.type : DT_U32;
    cg_dotted(m, name, cg_bits_suffix(narrow));
    return cg_value(DT_U32, CG(g, PTX_B32, m, cg_op(g, x)));
}

/* bfe() of a byte or a half of an i32: see cg_signed_part. */
static bool is_whole_part(enum dtype t, const struct cg_val *x, unsigned *part, unsigned *bits)
{
    int64_t start, length;
    if (t != DT_I32 || x[0].type != t || !cg_is_const(x[1], &start) || !cg_is_const(x[2], &length))
        return false;
    if ((length != 8 && length != 16) || start < 0 || start > 32 - length || start % length != 0)
        return false;
    *part = (unsigned)(start / length);
    *bits = (unsigned)length;
    return true;
}

static struct cg_val bits_call(struct cg *g, const struct lang_expr *e, const struct cg_val *x)
{
    char m[40];
    unsigned part, bits;
    enum dtype t = e->type;
    switch (e->fn) {
    case FN_POPC: return bit_count(g, "popc", x[0]);
    case FN_CLZ: return bit_count(g, "clz", x[0]);
    case FN_BREV:
        cg_dotted(m, "brev", cg_bits_suffix(t));
        return cg_value(t, CG(g, cg_regtype(t), m, cg_op(g, x[0])));
    case FN_BFE:
        if (is_whole_part(t, x, &part, &bits))
            return cg_value(t, cg_signed_part(g, cg_reg(g, x[0]), part, bits));
        cg_dotted(m, "bfe", cg_suffix(t));
        return cg_value(t, CG(g, cg_regtype(t), m, cg_op(g, x[0]),
                              cg_op(g, cg_convert(g, x[1], DT_U32)),
                              cg_op(g, cg_convert(g, x[2], DT_U32))));
    case FN_BFI:
        cg_dotted(m, "bfi", cg_bits_suffix(t));
        return cg_value(t, CG(g, cg_regtype(t), m, cg_op(g, cg_convert(g, x[0], t)), cg_op(g, x[1]),
                              cg_op(g, cg_convert(g, x[2], DT_U32)),
                              cg_op(g, cg_convert(g, x[3], DT_U32))));
    case FN_MULHI:
        cg_dotted(m, "mul.hi", cg_suffix(t));
        return cg_value(t, CG(g, cg_regtype(t), m, cg_op(g, x[0]), cg_op(g, x[1])));
    case FN_DP4A:
        snprintf(m, sizeof m, "dp4a.%s.%s", cg_suffix(x[0].type), cg_suffix(x[1].type));
        return cg_value(t, CG(g, PTX_B32, m, cg_op(g, x[0]), cg_op(g, x[1]), cg_op(g, x[2])));
    default: INTERNAL_ERROR("builtin %d is no function of bits", (int)e->fn);
    }
}

static struct cg_val classify(struct cg *g, enum lang_builtin fn, struct cg_val x)
{
    char m[32];
    if (x.type != DT_F64)
        x = cg_convert(g, x, DT_F32);
    if (fn == FN_ISINF)
        return cg_binary(g, OP_EQ, op1(g, "abs", x), cg_float(g, x.type, INFINITY));
    cg_dotted(m, "setp.nan", cg_suffix(x.type));
    return cg_value(DT_BOOL, CG(g, PTX_PRED, m, x.op, x.op));
}

static bool exact_call(struct cg *g, const struct lang_expr *e, const struct cg_val *x,
                       struct cg_val *r)
{
    switch (e->fn) {
    case FN_SQRT: *r = op1(g, "sqrt.rn", x[0]); return true;
    case FN_RCP: *r = op1(g, "rcp.rn", x[0]); return true;
    case FN_COPYSIGN: *r = copy_sign(g, x[1], x[0]); return true;
    case FN_FMA: *r = cg_fma(g, x[0], x[1], x[2]); return true;
    case FN_ABS: *r = absolute(g, x[0]); return true;
    case FN_MIN:
    case FN_MAX: *r = cg_minmax(g, e->fn == FN_MAX, x[0], x[1]); return true;
    case FN_CLAMP: *r = cg_minmax(g, false, cg_minmax(g, true, x[0], x[1]), x[2]); return true;
    case FN_RELU: *r = cg_minmax(g, true, x[0], zero_of(g, x[0].type)); return true;
    case FN_FLOOR: *r = integral(g, "rmi", x[0]); return true;
    case FN_CEIL: *r = integral(g, "rpi", x[0]); return true;
    case FN_TRUNC: *r = integral(g, "rzi", x[0]); return true;
    case FN_RINT: *r = integral(g, "rni", x[0]); return true;
    case FN_TF32: *r = to_tf32(g, x[0], false); return true;
    case FN_TF32_RN: *r = to_tf32(g, x[0], true); return true;
    case FN_TF32_RZ: *r = cut_to_tf32(g, x[0]); return true;
    case FN_ROUND: *r = round_away(g, x[0]); return true;
    case FN_CEIL_DIV: *r = ceil_div(g, x[0], x[1]); return true;
    case FN_POPC:
    case FN_CLZ:
    case FN_BREV:
    case FN_BFE:
    case FN_BFI:
    case FN_MULHI:
    case FN_DP4A: *r = bits_call(g, e, x); return true;
    case FN_AS_U32:
    case FN_AS_I32:
    case FN_AS_F32:
    case FN_AS_U64:
    case FN_AS_I64:
    case FN_AS_F64:
    case FN_AS_U16:
    case FN_AS_F16:
    case FN_AS_BF16: *r = cg_bitcast(g, x[0], e->type); return true;
    case FN_ISNAN:
    case FN_ISINF: *r = classify(g, e->fn, x[0]); return true;
    default: return false;
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

struct cg_val cg_library(struct cg *g, const char *name, size_t n, const struct cg_val *arg)
{
    const struct lang_func *f = library_find(g->library, name);
    if (!f)
        INTERNAL_ERROR("the library has no '%s'", name);
    bool fma = g->contract_fma, fast = g->fast;
    g->contract_fma = g->fast = false; /* it writes every fma itself */
    struct cg_val r = cg_inline(g, f, n, arg, NULL);
    g->contract_fma = fma;
    g->fast = fast;
    return r;
}

/* 1 / y rounded, where both are normal; size: |y|, but for a power of two. The bits are those of
 * rcp.rn, whose branch and what waits behind it are left out. */
static struct cg_val reciprocal(struct cg *g, struct cg_val y, struct cg_val size)
{
    struct cg_val near = cg_value(DT_F32, CG(g, PTX_F32, "rcp.approx.ftz.f32", y.op));
    const struct cg_val of[] = {y, near};
    struct cg_val rounded = cg_library(g, "rcp_round_f32", 2, of);
    /* 0, infinities, NaN */
    struct cg_val bits = cg_binary(g, OP_SUB, cg_bitcast(g, size, DT_U32), cg_int(DT_U32, 1));
    int32_t is_number = cg_reg(g, cg_binary(g, OP_LT, bits, cg_int(DT_U32, 0x7f7fffff)));
    return cg_select(g, is_number, rounded, near);
}

struct cg_val cg_times_reciprocal(struct cg *g, struct cg_val x, struct cg_val y)
{
    struct cg_val size = cg_value(DT_F32, CG(g, PTX_F32, "abs.f32", y.op));
    struct cg_val one = cg_float(g, DT_F32, 1), big = cg_float(g, DT_F32, 0x1p64),
                  tiny = cg_float(g, DT_F32, 0x1p-64);
    int32_t is_small = cg_reg(g, cg_binary(g, OP_LT, size, tiny));
    int32_t is_large = cg_reg(g, cg_binary(g, OP_GT, size, big));
    struct cg_val scale = cg_select(g, is_large, tiny, cg_select(g, is_small, big, one));
    struct cg_val rcp = reciprocal(g, cg_binary(g, OP_MUL, y, scale), size);
    return cg_binary(g, OP_MUL, cg_binary(g, OP_MUL, x, scale), rcp);
}

/* Each call once, though it may be inlined many times. */
static void explain_half(struct cg *g, const struct lang_expr *e)
{
    for (size_t i = 0; i < g->explained.n; i++)
        if (g->explained.v[i] == e)
            return;
    if (!g->opt->report)
        return;
    *VEC_PUSH(g->a, &g->explained) = e;
    lower_explain(g, "  line %zu: %s() is the variant for results rounded to 16 bits at once\n",
                  span_line_col(e->span).line, lang_builtin_name(e->fn));
}

enum { MOST_ARGS = 16 };

struct cg_val cg_call(struct cg *g, const struct lang_expr *e)
{
    struct cg_val x[MOST_ARGS];
    if (!e->func && (e->fn == FN_PRINT || e->fn == FN_ASSERT)) {
        if (e->fn == FN_PRINT)
            cg_print(g, e);
        else
            cg_assert(g, e);
        return cg_int(DT_U32, 0);
    }
    if (e->nargs > MOST_ARGS) {
        cg_error(g, e->span, "more than %d arguments", MOST_ARGS);
        return cg_int(DT_U32, 0);
    }
    if (!e->func && lang_builtin_acts(e->fn))
        return cg_act(g, e);
    if (!e->func && (e->fn == FN_UNIFORM || e->fn == FN_NORMAL))
        return cg_random(g, e);
    if (!e->func && e->fn >= FN_LOAD2 && e->fn <= FN_STORE16)
        return cg_memory_call(g, e);
    struct cg_val answer;
    if (!e->func && g->called && g->called(g, e, &answer))
        return answer;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!e->func || !lang_given_itself(e->func->param[i]))
            x[i] = cg_expr(g, e->args[i]);
    if (!e->func)
        return cg_builtin(g, e, x);
    struct cg_site site;
    cg_enter(g, &site, e->func, e->span);
    struct cg_val r = cg_inline(g, e->func, e->nargs, x, e);
    cg_leave(g, &site, e->span);
    return r;
}

/* Computes exp as exp_falling_short_f32 of mathlib/f32.k does; below e^-87.7 s is 0, so that
 * exp(-inf) is, which may be all that a sum has. */
void cg_falling_parts(struct cg *g, struct cg_val x, bool large, struct cg_val *p, struct cg_val *s)
{
    struct cg_val least = f32(g, -88), log2_e = f32(g, 0x1.715476p0), magic = f32(g, 0x1.8p23);
    x = cg_select(g, cg_reg(g, cg_binary(g, OP_LT, x, least)), least, x);
    /* above 89 r is large, p is positive or +inf, and s is +inf */
    struct cg_val most = large ? cg_minmax(g, false, x, f32(g, 89)) : x;
    struct cg_val t = cg_fma(g, most, log2_e, magic);
    struct cg_val r = cg_fma(g, x, log2_e, cg_binary(g, OP_SUB, magic, t));
    *p = cg_library(g, "exp2_short_f32", 1, &r);
    struct cg_val bits = cg_binary(g, OP_SHL, cg_bitcast(g, t, DT_U32), cg_int(DT_U32, 23));
    *s = cg_bitcast(g, cg_binary(g, OP_ADD, bits, cg_int(DT_U32, 0x3f800000)), DT_F32);
}

struct cg_val cg_builtin(struct cg *g, const struct lang_expr *e, const struct cg_val *x)
{
    struct cg_val r;
    if ((e->fast || g->fast) && e->type == DT_F32 && fast_call(g, e->fn, x, &r))
        return r;
    if (exact_call(g, e, x, &r))
        return r;
    if (cg_tensor_call(g, e, x[0], &r)) {
        explain_half(g, e);
        return r;
    }
    char name[64];
    snprintf(name, sizeof name, "%s_half", lang_builtin_name(e->fn));
    if (e->rounded && library_find(g->library, name)) {
        explain_half(g, e);
        return cg_library(g, name, e->nargs, x);
    }
    bool rough;
    if (e->fn == FN_EXP && e->type == DT_F32 && g->falling && g->falling(g, e, &rough))
        return cg_library(g, rough ? "exp_falling_short_f32" : "exp_falling_f32", 1, x);
    snprintf(name, sizeof name, "%s_%s", lang_builtin_name(e->fn), cg_suffix(x[0].type));
    if (!library_find(g->library, name)) {
        cg_error(g, e->span, "%s() of %s is not in this version", lang_builtin_name(e->fn),
                 dtype_name(x[0].type));
        return x[0];
    }
    return cg_library(g, name, e->nargs, x);
}
