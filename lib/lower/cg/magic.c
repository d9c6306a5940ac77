/* Unsigned division by a number that is known at launch only, as a multiplication.
 *
 * With m = floor((2^63 - 1) / d) and 2n + 2 for n: floor(n / d) = floor((2n + 2) m / 2^64), for all
 * n < 2^31 - 1 and 0 < d < 2^32. For (n + 1) m / 2^63 = (n + 1) / d - (n + 1) (1 + r) / (d 2^63),
 * where r = (2^63 - 1) mod d < d, so that what is taken away is less than 1 / d and not nothing:
 * with n + 1 = q d + s, 0 < s <= d, the result lies in [q, q + 1). That is Robison's form of the
 * method (N-Bit Unsigned Division Via N-Bit Multiply-Add, 2005). It needs no shift that depends on
 * d, and d = 1 is no special case. The 64-bit product's high word takes two multiplications.
 */
#include <config.h>

#include "lower/cg/cg.h"

/* The multiplier's halves, computed at launch. */
static struct cg_val multiplier(struct cg *g, struct lang_expr *d)
{
    struct lang_expr *some = lx_max(g->a, d, lx_int(g->a, 1));
    return cg_param_computed(g, lx_div(g->a, lx_int(g->a, INT64_MAX), some));
}

static int32_t low_half(struct cg *g, int32_t wide)
{
    return CG(g, PTX_B32, "cvt.u32.u64", ptx_r(wide));
}

static int32_t high_half(struct cg *g, int32_t wide)
{
    return low_half(g, CG(g, PTX_B64, "shr.u64", ptx_r(wide), ptx_imm(32)));
}

static struct cg_val as_u32(struct cg *g, struct cg_val v)
{
    int64_t c;
    if (cg_is_const(v, &c))
        return cg_int(DT_U32, c);
    if (v.narrow == CG_U32)
        return cg_value(DT_U32, v.op.reg);
    return cg_value(DT_U32, low_half(g, cg_reg(g, v)));
}

void magic_divmod(struct cg *g, struct cg_val n, struct lang_expr *at_launch, struct cg_val d,
                  struct cg_val *q, struct cg_val *r)
{
    int64_t c;
    if (cg_is_const(d, &c) || cg_is_const(n, &c)) { /* ptxas knows how */
        d = cg_is_const(d, &c) && c == 0 ? cg_int(DT_I64, 1) : d;
        cg_divmod(g, n, d, q, r);
        return;
    }
    const int32_t m = multiplier(g, at_launch).op.reg;
    const struct ptx_operand x = as_u32(g, n).op;
    const int32_t twice = CG(g, PTX_B32, "mad.lo.u32", x, ptx_imm(2), ptx_imm(2));
    const int32_t low = CG(g, PTX_B32, "mul.hi.u32", ptx_r(twice), ptx_r(low_half(g, m)));
    const int32_t carry = CG(g, PTX_B64, "cvt.u64.u32", ptx_r(low));
    const int32_t wide =
        CG(g, PTX_B64, "mad.wide.u32", ptx_r(twice), ptx_r(high_half(g, m)), ptx_r(carry));
    const struct cg_val quotient = cg_value(DT_U32, high_half(g, wide));
    const struct cg_val back = cg_binary(g, OP_MUL, quotient, as_u32(g, d));
    *q = cg_index(g, quotient);
    *r = cg_index(g, cg_binary(g, OP_SUB, cg_value(DT_U32, x.reg), back));
}
