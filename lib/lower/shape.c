#include <config.h>

#include "lower/strategy.h"

struct cg_val shape_total(struct cg *g, const struct lang_symbol *t, uint32_t divide,
                          struct lang_expr **at_launch)
{
    struct lang_expr *all = lx_int(g->a, 1);
    int64_t product = 1, one;
    struct cg_val extent = cg_int(DT_I64, 1);
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        struct cg_val x = cg_extent(g, t, i);
        if (cg_is_const(x, &one)) {
            if (__builtin_mul_overflow(product, one, &product))
                cg_error(g, t->span, "'%s' has more than 2^63 elements", t->name);
            continue;
        }
        all = lx_mul(g->a, all, t->dims[i]);
        extent = x;
        unknown++;
    }
    if (!unknown) {
        *at_launch = lx_int(g->a, product / divide);
        return cg_int(DT_I64, product / divide);
    }
    *at_launch = lx_div_int(g->a, lx_mul_int(g->a, all, product), divide);
    if (unknown == 1 && product == 1 && divide == 1)
        return extent;
    struct cg_val v = cg_param_computed(g, *at_launch);
    v.type = DT_I64;
    return v;
}

struct cg_val thread_start(struct cg *g, uint32_t per_block, uint32_t per_thread)
{
    struct cg_val block = cg_index(g, cg_special(g, SP_CTAID_X));
    struct cg_val at = cg_binary(g, OP_MUL, block, cg_int(DT_I64, per_block));
    if (!per_thread)
        return at;
    struct cg_val mine = cg_binary(g, OP_MUL, cg_special(g, SP_TID_X), cg_int(DT_U32, per_thread));
    return cg_binary(g, OP_ADD, at, cg_index(g, mine));
}
