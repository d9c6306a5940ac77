/* Operations between the products whose code in the library has a branch for what is rare: here
 * they have none, and what is rare makes NaN, so that the row is computed anew (chain.h). */
#include <config.h>

#include "lower/chain/chain.h"

#include <float.h>
#include <math.h>

static struct cg_val size_of(struct cg *g, struct cg_val x)
{
    return cg_value(DT_F32, CG(g, PTX_F32, "abs.f32", cg_op(g, x)));
}

/* ---- quotients ------------------------------------------------------------------------------- */

/* 1 / y, correctly rounded; NaN where that or y is so large or small that what is left of a
 * quotient might not be a number that f32 has. */
static struct cg_val reciprocal(struct cg *g, struct cg_val y)
{
    const struct cg_val size = size_of(g, y);
    const struct cg_val below = cg_binary(g, OP_LE, size, chain_f32(g, 0x1p100));
    const struct cg_val fits =
        cg_binary(g, OP_LAND, cg_binary(g, OP_GE, size, chain_f32(g, 0x1p-100)), below);
    const struct cg_val by = cg_value(DT_F32, CG(g, PTX_F32, "rcp.rn.f32", cg_op(g, y)));
    return cg_select(g, cg_reg(g, fits), by, chain_f32(g, NAN));
}

/* x / y as div.rn has it, but for subnormal quotients halfway between two: the reciprocal's product
 * with x, put right once. Too much of an infinity is NaN, for which max takes a number. */
bool chain_rough_quotient(struct cg *g, struct cg_val x, struct cg_val y, struct cg_val *q)
{
    if (x.type != DT_F32 || y.op.kind != PTX_O_REG)
        return false;
    const struct cg_val by = reciprocal(g, y);
    const struct cg_val first = cg_binary(g, OP_MUL, x, by);
    const struct cg_val over = cg_fma(g, first, y, cg_unary(g, OP_NEG, x));
    const struct cg_val less =
        cg_unary(g, OP_NEG, cg_minmax(g, true, over, chain_f32(g, -FLT_MAX)));
    *q = cg_fma(g, less, by, first);
    return true;
}

/* ---- tanh ------------------------------------------------------------------------------------ */

/* x + x^3 P(x^2), for |x| < 0.625: 0.8 units in the last place. P is a minimax fit. */
static struct cg_val near_zero(struct cg *g, struct cg_val x)
{
    static const double c[] = {-0x1.76abep-8, 0x1.5256cap-6, -0x1.b84446p-5, 0x1.110768p-3,
                               -0x1.555534p-2};
    const struct cg_val z = cg_binary(g, OP_MUL, x, x);
    struct cg_val p = chain_f32(g, c[0]);
    for (size_t i = 1; i < COUNT(c); i++)
        p = cg_fma(g, p, z, chain_f32(g, c[i]));
    return cg_fma(g, cg_binary(g, OP_MUL, p, z), x, x);
}

/* 1 - 2 / (exp(2 |x|) + 1), with the sign of x: 3 units in the last place at most, near 0.625. */
static struct cg_val far_from_zero(struct cg *g, struct cg_val x)
{
    const struct cg_val twice = cg_binary(g, OP_MUL, size_of(g, x), chain_f32(g, 0x1.715476p1));
    const struct cg_val e = cg_value(DT_F32, CG(g, PTX_F32, "ex2.approx.ftz.f32", cg_op(g, twice)));
    const struct cg_val d = cg_binary(g, OP_ADD, e, chain_f32(g, 1));
    const struct cg_val r = cg_value(DT_F32, CG(g, PTX_F32, "rcp.approx.ftz.f32", cg_op(g, d)));
    const struct cg_val v = cg_fma(g, r, chain_f32(g, -2), chain_f32(g, 1));
    return cg_value(DT_F32, CG(g, PTX_F32, "copysign.f32", cg_op(g, x), cg_op(g, v)));
}

struct cg_val chain_rough_tanh(struct cg *g, struct cg_val x)
{
    const struct cg_val is_near = cg_binary(g, OP_LT, size_of(g, x), chain_f32(g, 0.625));
    const struct cg_val far = far_from_zero(g, x), near = near_zero(g, x);
    return cg_select(g, cg_reg(g, is_near), near, far);
}
