#include <config.h>

#include "lower/extent.h"

struct extent extent_constant(struct cg *g, int64_t c)
{
    return (struct extent){lx_int(g->a, c), cg_int(DT_I64, c)};
}

bool extent_is_constant(struct extent n, int64_t *c)
{
    return cg_is_const(n.v, c);
}

struct cg_val extent_computed(struct cg *g, struct lang_expr *e)
{
    return cg_index(g, cg_convert(g, cg_param_computed(g, e), DT_U32));
}

struct extent extent_of(struct cg *g, const struct lang_symbol *index)
{
    int64_t c;
    if (!index)
        return extent_constant(g, 1);
    struct extent n = {index->dims[0], cg_index(g, cg_expr(g, index->dims[0]))};
    if (extent_is_constant(n, &c))
        return extent_constant(g, c);
    if (n.v.narrow != CG_U32)
        n.v = extent_computed(g, n.e);
    return n;
}

struct extent extent_divided(struct cg *g, const struct lang_symbol *index, uint32_t side)
{
    int64_t c;
    struct extent n = extent_of(g, index);
    if (extent_is_constant(n, &c))
        return extent_constant(g, c / side + (c % side != 0));
    n.e = lx_ceil_div_int(g->a, n.e, side);
    n.v = extent_computed(g, n.e);
    return n;
}

struct extent extent_times(struct cg *g, struct extent x, struct extent y)
{
    int64_t c = 0, d = 0;
    const bool cx = extent_is_constant(x, &c), cy = extent_is_constant(y, &d);
    if (cx && cy)
        return extent_constant(g, c * d);
    if (cx && c == 1)
        return y;
    if (cy && d == 1)
        return x;
    x.e = lx_mul(g->a, x.e, y.e);
    x.v = extent_computed(g, x.e);
    return x;
}

void extent_split(struct cg *g, struct cg_val n, struct extent d, struct cg_val *q,
                  struct cg_val *r)
{
    int64_t c;
    if (extent_is_constant(d, &c) && c == 1) {
        *q = n;
        *r = cg_int(DT_I64, 0);
        return;
    }
    magic_divmod(g, n, d.e, d.v, q, r);
}
