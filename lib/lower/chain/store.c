/* Outputs of a warp's rows, from registers (chain.h). */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/extent.h"

/* Binds what the row's streams are; those without a column. */
static void bind_states(struct chain_tile *x, uint32_t row)
{
    const struct chain_form *f = x->t->f;
    for (uint32_t i = 0; i < f->nstream; i++)
        if (!f->stream[i].has_column)
            cg_bind(x->g, f->stream[i].sym, cg_value(f->stream[i].type, x->state[i][row]), false);
}

static void bind_sums(struct chain_tile *x, uint32_t row, const struct chain_column *at)
{
    struct cg *g = x->g;
    const uint32_t word = ((row / 2 * x->columns / 8) + at->block) * 4 + row % 2 * 2 + at->pair;
    for (uint32_t c = 0; c < x->t->ncolumn; c++) {
        const struct chain_product *p = &x->t->column[c];
        cg_bind(g, p->raw, cg_value(DT_F32, x->sum[c][word]), false);
        cg_bind(g, x->t->f->stream[p->stream].sym, cg_expr(g, p->value), false);
    }
}

static struct cg_val result(struct chain_tile *x, const struct chain_out *o)
{
    struct cg *g = x->g;
    cg_at(g, o->eq->span);
    return cg_convert(g, cg_expr(g, o->eq->rhs), o->eq->sym->type);
}

static struct cg_place_of place(struct chain_tile *x, const struct lang_equation *eq)
{
    struct cg *g = x->g;
    struct cg_val sub[CHAIN_AXES];
    for (uint32_t i = 0; i < eq->nindex; i++)
        sub[i] = cg_find(g, eq->index[i])->val;
    return cg_address(g, eq->sym, cg_flat_index(g, eq->sym, eq->nindex, sub));
}

/* Elements of two neighbouring columns lie side by side, on a multiple of both? */
static bool is_paired(const struct chain_tile *x, const struct lang_equation *eq)
{
    int64_t n;
    return eq->index[eq->nindex - 1] == x->t->f->column &&
           lang_const_int(x->t->f->column->dims[0], &n) && n % 2 == 0;
}

static void store_pair(struct chain_tile *x, uint32_t row, uint32_t n)
{
    struct cg *g = x->g;
    const struct chain_form *f = x->t->f;
    struct cg_val v[CHAIN_OUTS][2], c[2], end = extent_of(g, f->column).v;
    struct cg_place_of at[CHAIN_OUTS][2];
    for (uint32_t pair = 0; pair < 2; pair++) {
        const size_t bound = g->bindings.n;
        const struct chain_column column = chain_tile_column(x, n, pair);
        c[pair] = cg_index(g, column.at);
        cg_bind(g, f->column, c[pair], false);
        const struct cg_guard before = cg_guard(g, cg_binary(g, OP_LT, c[pair], end), true);
        bind_sums(x, row, &column);
        for (uint32_t i = 0; i < f->nout; i++)
            if (f->out[i].has_column) {
                v[i][pair] = result(x, &f->out[i]);
                at[i][pair] = place(x, f->out[i].eq);
            }
        cg_unguard(g, before);
        g->bindings.n = bound;
    }
    for (uint32_t i = 0; i < f->nout; i++) {
        const struct lang_symbol *t = f->out[i].eq->sym;
        if (!f->out[i].has_column)
            continue;
        const bool paired = is_paired(x, f->out[i].eq);
        for (uint32_t pair = 0; pair < (paired ? 1 : 2); pair++) {
            const struct cg_guard before = cg_guard(g, cg_binary(g, OP_LT, c[pair], end), true);
            if (paired)
                cg_store_vector(g, t, at[i][0].base, at[i][0].offset, 2, v[i]);
            else
                cg_store(g, t, at[i][pair], v[i][pair]);
            cg_unguard(g, before);
        }
    }
}

static void store_row(struct chain_tile *x)
{
    struct cg *g = x->g;
    const struct chain_form *f = x->t->f;
    struct cg_val v[CHAIN_OUTS];
    for (uint32_t i = 0; i < f->nout; i++)
        if (!f->out[i].has_column)
            v[i] = result(x, &f->out[i]);
    const struct cg_val member = cg_binary(g, OP_AND, x->lane, cg_u32(3));
    const struct cg_val is_first = cg_binary(g, OP_EQ, member, cg_u32(0));
    const struct cg_guard before = cg_guard(g, is_first, true);
    for (uint32_t i = 0; i < f->nout; i++)
        if (!f->out[i].has_column)
            cg_store(g, f->out[i].eq->sym, place(x, f->out[i].eq), v[i]);
    cg_unguard(g, before);
}

void chain_store(struct chain_tile *x)
{
    struct cg *g = x->g;
    g->converts = true;
    for (uint32_t row = 0; row < 2 * x->high; row++) {
        const size_t bound = g->bindings.n;
        const struct cg_guard before = cg_guard(g, x->at[row].exists, true);
        chain_bind_row(x, row);
        bind_states(x, row);
        for (uint32_t n = 0; n < x->columns / 8 && x->t->f->column; n++)
            store_pair(x, row, n);
        store_row(x);
        cg_unguard(g, before);
        g->bindings.n = bound;
    }
    g->converts = false;
}
