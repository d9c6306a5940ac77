/* One thread per output element (per byte of a packed output), all outputs of one shape: always
 * correct, never clever. Intermediates are computed again wherever they are read; reductions are
 * loops in ascending order.
 */
#include <config.h>

#include "lower/strategy.h"

enum { MOST_RANK = 8 };

/* ---- code ------------------------------------------------------------------------------------ */

static uint32_t packing(const struct lower_stage *gr)
{
    for (uint32_t i = 0; i < gr->n; i++)
        if (dtype_bits(gr->eq[i]->sym->type) < 8)
            return 2;
    return 1;
}

/* The subscripts of the element that the thread with flat number t computes. */
static void unflatten(struct cg *g, const struct lang_symbol *s, struct cg_val t, uint32_t pack,
                      struct cg_val *sub)
{
    for (uint32_t i = s->rank; i-- > 0;) {
        struct cg_val n = cg_extent(g, s, i);
        if (i + 1 == s->rank && pack == 2)
            n = cg_binary(g, OP_DIV, n, cg_int(DT_I64, 2));
        if (i > 0) {
            cg_divmod(g, t, n, &t, &sub[i]);
            continue;
        }
        sub[0] = t;
        if (t.narrow == CG_FULL && n.narrow == CG_U32) { /* less than a u32 */
            sub[0] = cg_index(g, cg_value(DT_U32, CG(g, PTX_B32, "cvt.u32.u64", cg_op(g, t))));
        }
    }
}

static void store_packed(struct cg *g, const struct lang_symbol *t, const struct cg_val *sub,
                         const struct cg_val v[2])
{
    struct cg_place_of at = cg_address(g, t, cg_flat_index(g, t, t->rank, sub));
    cg_store_vector(g, t, at.base, at.offset, 2, v);
}

static void compute_group(struct cg *g, const struct lower_stage *gr, struct cg_val t)
{
    const struct lang_symbol *s = gr->eq[0]->sym;
    uint32_t pack = packing(gr);
    struct cg_val sub[2][MOST_RANK], (*v)[2] = arena_alloc(g->a, gr->n * sizeof *v);
    unflatten(g, s, t, pack, sub[0]);
    memcpy(sub[1], sub[0], sizeof sub[0]);
    if (pack == 2) {
        struct cg_val *last = &sub[0][s->rank - 1];
        *last = cg_index(g, cg_binary(g, OP_SHL, cg_convert(g, *last, DT_U32), cg_int(DT_U32, 1)));
        sub[1][s->rank - 1] =
            cg_index(g, cg_binary(g, OP_OR, cg_convert(g, *last, DT_U32), cg_int(DT_U32, 1)));
    }
    /* everything is read before anything is written */
    for (uint32_t i = 0; i < gr->n; i++) {
        cg_at(g, gr->eq[i]->span);
        for (uint32_t k = 0; k < pack; k++)
            v[i][k] = cg_define(g, gr->eq[i], sub[k]);
    }
    for (uint32_t i = 0; i < gr->n; i++) {
        const struct lang_symbol *o = gr->eq[i]->sym;
        cg_at(g, gr->eq[i]->span);
        if (dtype_bits(o->type) < 8) {
            store_packed(g, o, sub[0], v[i]);
            continue;
        }
        for (uint32_t k = 0; k < pack; k++)
            cg_store(g, o, cg_address(g, o, cg_flat_index(g, o, o->rank, sub[k])), v[i][k]);
    }
}

struct lang_expr *naive_code(struct cg *g, const struct lower_stage *gr, uint32_t block)
{
    const struct lang_symbol *s = gr->eq[0]->sym;
    struct lang_expr *elements;
    int64_t n;
    struct cg_val total = shape_total(g, s, packing(gr), &elements);
    struct cg_val t = thread_start(g, block, 1);
    g->exit_used = true;
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, t, total)), true, g->exit);
    if (cg_is_const(total, &n) && n <= UINT32_MAX)
        t = cg_index(g, cg_value(DT_U32, CG(g, PTX_B32, "cvt.u32.u64", cg_op(g, t))));
    compute_group(g, gr, t);
    return lx_ceil_div_int(g->a, elements, block);
}

static void lower_group(struct cg *g, const struct lower_stage *gr, uint32_t block)
{
    cg_begin(g, gr->entry);
    g->block[0] = block;
    g->block[1] = g->block[2] = 1;
    cg_at(g, gr->eq[0]->span);
    struct lang_expr *grid = naive_code(g, gr, block);
    g->func->reqntid[0] = block;
    g->func->reqntid[1] = g->func->reqntid[2] = 1;
    struct contract_launch *l = cg_launch(g, grid, lx_int(g->a, block));
    const char *how = arena_printf(g->a, "one thread for each %s of %s",
                                   packing(gr) == 2 ? "two elements" : "element",
                                   gr->eq[0]->sym->name);
    lower_tell(g, &(struct lower_entry){.name = gr->entry, .how = how});
    cg_end(g, l);
}

static void *fit(struct cg *g, const struct lower_stage *s, struct buf *why)
{
    for (uint32_t i = 1; i < s->n; i++)
        if (!inspect_same_shape(s->eq[0]->sym, s->eq[i]->sym)) {
            buf_printf(why, "'%s' has another shape than '%s'", s->eq[i]->sym->name,
                       s->eq[0]->sym->name);
            return NULL;
        }
    struct lower_stage *form = ARENA_NEW(g->a, struct lower_stage);
    *form = *s;
    return form;
}

/* What a schedule says; 0: chosen. */
struct naive_options {
    uint32_t block; /* threads */
};

static bool lower(struct cg *g, void *form, const void *options)
{
    const struct naive_options *want = options;
    lower_group(g, form, want->block ? want->block : NAIVE_BLOCK);
    return !g->failed;
}

static const struct strategy_option options[] = {
    {"block", OPTION_MULTIPLE, 32, 1024, offsetof(struct naive_options, block),
     "threads of a block"},
};

static void candidates(struct arena *a, const struct spec *s, const struct ptx_target *target,
                       struct lower_candidates *out)
{
    static const struct candidates_axis axes[] = {{"block", {64, 128, 256}, 3}};
    (void)s;
    (void)target;
    candidates_multiply(a, "naive", axes, COUNT(axes), out);
}

const struct strategy naive_strategy = {
    .name = "naive",
    .takes = "anything else, one thread for each element",
    .options = options,
    .noption = COUNT(options),
    .options_size = sizeof(struct naive_options),
    .analyse = fit,
    .lower = lower,
    .candidates = candidates,
};
