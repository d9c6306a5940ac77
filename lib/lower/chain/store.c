/* Outputs of a warp's rows, from registers (chain.h). Where columns lie side by side, by fours, the
 * lanes of a row exchange words, so that each stores 16 bytes: no shared memory, and nobody waits.
 */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/extent.h"

#include <float.h>

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

/* ---- columns --------------------------------------------------------------------------------- */

bool chain_has_eights(const struct chain_tensor *t)
{
    enum { MOST_BITS = 16 }; /* of an element of which 16 bytes are 8 or more */
    bool eights = t->ncolumn > 0;
    for (uint32_t i = 0; i < t->ncolumn; i++) {
        const struct matmul_form *f = &t->column[i].form;
        const struct matmul_operand *o = &f->operand[f->operand[0].side == MATMUL_B ? 0 : 1];
        const struct lang_symbol *v = o->plain ? o->plain->sym : NULL;
        eights &= v && dtype_bits(v->type) <= MOST_BITS && dtype_bits(o->type) <= MOST_BITS &&
                  inspect_same_expr(v->dims[v->rank - 1], t->f->column->dims[0]);
    }
    return eights;
}

enum { QUAD = 4 }; /* lanes of a row, and blocks of 8 columns of which each has one at last */

/* The lane's pairs of some blocks of 8 columns. */
struct pairs {
    struct chain_tile *x;
    uint32_t row, first; /* the first block */
    struct cg_val c[QUAD][2];
    struct cg_val v[QUAD][CHAIN_OUTS][2];
    struct cg_place_of at[QUAD][CHAIN_OUTS][2];
};

/* Do elements of `by` neighbouring columns lie side by side, on a multiple of all? */
static bool lie_together(const struct chain_tile *x, const struct lang_equation *eq, int64_t by)
{
    int64_t n;
    if (eq->index[eq->nindex - 1] != x->t->f->column)
        return false;
    return x->eights || (lang_const_int(x->t->f->column->dims[0], &n) && n % by == 0);
}

static struct cg_val is_there(struct chain_tile *x, struct cg_val c)
{
    return cg_binary(x->g, OP_LT, c, extent_of(x->g, x->t->f->column).v);
}

static void compute_pair(struct pairs *p, uint32_t k)
{
    struct chain_tile *x = p->x;
    struct cg *g = x->g;
    const struct chain_form *f = x->t->f;
    for (uint32_t pair = 0; pair < 2; pair++) {
        const size_t bound = g->bindings.n;
        const struct chain_column column = chain_tile_column(x, p->first + k, pair);
        p->c[k][pair] = cg_index(g, column.at);
        cg_bind(g, f->column, p->c[k][pair], false);
        const struct cg_guard before = cg_guard(g, is_there(x, p->c[k][pair]), true);
        bind_sums(x, p->row, &column);
        for (uint32_t i = 0; i < f->nout; i++)
            if (f->out[i].has_column) {
                p->v[k][i][pair] = result(x, &f->out[i]);
                p->at[k][i][pair] = place(x, f->out[i].eq);
            }
        cg_unguard(g, before);
        g->bindings.n = bound;
    }
}

static void store_pair(struct pairs *p, uint32_t k, uint32_t out)
{
    struct chain_tile *x = p->x;
    struct cg *g = x->g;
    const struct lang_equation *eq = x->t->f->out[out].eq;
    const struct cg_place_of *at = p->at[k][out];
    const bool paired = lie_together(x, eq, 2);
    for (uint32_t pair = 0; pair < (paired ? 1 : 2); pair++) {
        const struct cg_guard before = cg_guard(g, is_there(x, p->c[k][pair]), true);
        if (paired)
            cg_store_vector(g, eq->sym, at[0].base, at[0].offset, 2, p->v[k][out]);
        else
            cg_store(g, eq->sym, at[pair], p->v[k][out][pair]);
        cg_unguard(g, before);
    }
}

/* Takes the words that lanes have for each other: of each two the lane whose bit is set keeps the
 * second, and they come in the lanes' order. */
static void exchange(struct cg *g, int32_t bit, int64_t lanes, const int32_t *word, int32_t *to)
{
    const struct cg_val first = cg_value(DT_U32, word[0]), second = cg_value(DT_U32, word[1]);
    const struct ptx_operand all = ptx_imm(UINT32_MAX), clamp = ptx_imm(31);
    const struct cg_val keeps = cg_select(g, bit, second, first);
    const struct cg_val comes =
        shuffle(g, SHUFFLE_XOR, cg_select(g, bit, first, second), ptx_imm(lanes), clamp, all, NULL);
    to[0] = cg_reg(g, cg_select(g, bit, comes, keeps));
    to[1] = cg_reg(g, cg_select(g, bit, keeps, comes));
}

static int32_t lane_bit(struct chain_tile *x, uint32_t bit)
{
    struct cg *g = x->g;
    const struct cg_val own = cg_binary(g, OP_AND, x->lane, cg_u32(bit));
    return cg_reg(g, cg_binary(g, OP_NE, own, cg_u32(0)));
}

/* Turns four blocks of 8 columns, of which each of four lanes has a word, into one block of each
 * lane: 16 bytes, which it stores at once. */
static void store_block(struct pairs *p, uint32_t out)
{
    struct chain_tile *x = p->x;
    struct cg *g = x->g;
    const struct lang_equation *eq = x->t->f->out[out].eq;
    const int32_t odd = lane_bit(x, 1), high = lane_bit(x, 2);
    int32_t word[QUAD], two[2][2];
    struct ptx_operand v[QUAD];
    for (uint32_t k = 0; k < QUAD; k++) {
        word[k] = cg_new(g, DT_U32);
        PTX(&g->b, "mov.b32", ptx_r(word[k]), cg_pack(g, eq->sym->type, 2, p->v[k][out]));
    }
    exchange(g, odd, 1, word, two[0]);
    exchange(g, odd, 1, word + 2, two[1]);
    for (uint32_t i = 0; i < 2; i++) {
        int32_t to[2];
        exchange(g, high, 2, (const int32_t[]){two[0][i], two[1][i]}, to);
        v[i] = ptx_r(to[0]);
        v[2 + i] = ptx_r(to[1]);
    }
    const size_t bound = g->bindings.n;
    const struct cg_val member = cg_binary(g, OP_AND, x->lane, cg_u32(QUAD - 1));
    const struct cg_val c = cg_index(g, cg_add(g, cg_mul(g, member, 8), cg_u32(p->first * 8)));
    cg_bind(g, x->t->f->column, c, false);
    const struct cg_place_of at = place(x, eq);
    const struct cg_val there = cg_binary(g, OP_LAND, x->at[p->row].exists, is_there(x, c));
    int64_t always;
    if (cg_is_const(there, &always))
        PTX(&g->b, "st.global.v4.b32", ptx_mem(at.base, at.offset), ptx_vec(&g->b, QUAD, v));
    else
        PTX_IF(&g->b, cg_reg(g, there), "st.global.v4.b32", ptx_mem(at.base, at.offset),
               ptx_vec(&g->b, QUAD, v));
    g->bindings.n = bound;
}

/* Stores what the row has of four blocks, or of two, with columns of which the tile is a multiple.
 */
static void store_columns(struct pairs *p, uint32_t count)
{
    struct chain_tile *x = p->x;
    const struct chain_form *f = x->t->f;
    for (uint32_t k = 0; k < count; k++)
        compute_pair(p, k);
    for (uint32_t i = 0; i < f->nout; i++) {
        const struct lang_equation *eq = f->out[i].eq;
        if (!f->out[i].has_column)
            continue;
        if (count == QUAD && !x->fours && dtype_bits(eq->sym->type) == 16 && lie_together(x, eq, 8))
            store_block(p, i);
        else
            for (uint32_t k = 0; k < count; k++)
                store_pair(p, k, i);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

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

/* x / y as x times the reciprocal, which rows have once. */
static bool answer_quotient(struct cg *g, struct cg_val x, struct cg_val y, struct cg_val *q)
{
    if (x.type != DT_F32 || y.op.kind != PTX_O_REG)
        return false;
    *q = cg_times_reciprocal(g, x, y);
    return true;
}

/* The same, of a y that is a total of which one term is about 1, or so: 1.5 units in the last
 * place. That of a y too small for it is no infinity, but that of 0 is. */
static bool answer_usual(struct cg *g, struct cg_val x, struct cg_val y, struct cg_val *q)
{
    const struct cg_val most = cg_float(g, DT_F32, FLT_MAX), least = cg_float(g, DT_F32, -FLT_MAX);
    if (x.type != DT_F32 || y.op.kind != PTX_O_REG)
        return false;
    const struct cg_val by = cg_value(DT_F32, CG(g, PTX_F32, "rcp.approx.f32", y.op));
    const struct cg_val finite = cg_minmax(g, true, cg_minmax(g, false, by, most), least);
    const struct cg_val is_zero = cg_binary(g, OP_EQ, y, cg_float(g, DT_F32, 0));
    const struct cg_val is_nan = cg_binary(g, OP_NE, y, y);
    const struct cg_val as_is = cg_binary(g, OP_LOR, is_zero, is_nan);
    *q = cg_binary(g, OP_MUL, x, cg_select(g, cg_reg(g, as_is), by, finite));
    return true;
}

void chain_store(struct chain_tile *x)
{
    struct cg *g = x->g;
    const uint32_t blocks = x->t->f->column ? x->columns / 8 : 0;
    struct pairs *const p = ARENA_NEW(g->a, struct pairs); /* large: one for all rows */
    p->x = x;
    g->converts = true;
    g->quotient = !chain_is_rough(x) ? NULL : x->deep ? answer_quotient : answer_usual;
    for (uint32_t row = 0; row < chain_tile_rows(x); row++) {
        const size_t bound = g->bindings.n;
        const struct cg_guard before = cg_guard(g, x->at[row].exists, true);
        chain_bind_row(x, row);
        bind_states(x, row);
        p->row = row;
        for (p->first = 0; p->first < blocks; p->first += QUAD)
            store_columns(p, blocks - p->first < QUAD ? blocks - p->first : QUAD);
        store_row(x);
        cg_unguard(g, before);
        g->bindings.n = bound;
    }
    g->quotient = NULL;
    g->converts = false;
}
