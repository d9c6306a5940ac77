/* What the epilogue reads along columns alone, a bias for one, is loaded to registers while the
 * tile's first stage is multiplied (wgmma/wgmma.h): behind the last products all threads would wait
 * for memory.
 *
 * A lane has two neighbouring columns of each 8, as mma.sync has results: a word of 16-bit
 * elements.
 */
#include <config.h>

#include "lower/wgmma/wgmma.h"

enum { MOST_WORDS = 32 };

static uint32_t words_of(const struct wgmma_shape *s)
{
    return s->wide / 8;
}

/* A row of 16-bit elements for each index of the results' batches, as long as theirs. */
static bool lies_along_columns(const struct wgmma_shape *s, const struct matmul_read *read)
{
    const struct lang_expr *e = read->e;
    const struct lang_symbol *t = e->sym, *out = s->f->stage->eq[0]->sym;
    if (e->pad || e->nargs != t->rank || !read->is_memory || t->mode != MODE_IN ||
        dtype_bits(t->type) != 16 || !dtype_is_float(t->type) ||
        !inspect_same_expr(t->dims[t->rank - 1], out->dims[out->rank - 1]))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const struct lang_symbol *x = wgmma_index_of(s->f, e->args[i]);
        if (!x || x == s->f->i || (x == s->f->j) != (i + 1 == e->nargs))
            return false;
    }
    return true;
}

static void note(struct wgmma_shape *s, const struct matmul_read *read)
{
    bool again = !lies_along_columns(s, read);
    for (uint32_t n = 0; n < s->ncolumn && !again; n++)
        again = wgmma_is_same_read(s->f, s->column[n], read->e);
    if (!again && s->ncolumn < WGMMA_COLUMNS && (s->ncolumn + 1) * words_of(s) <= MOST_WORDS)
        s->column[s->ncolumn++] = read->e;
}

uint32_t wgmma_find_columns(struct wgmma_shape *s)
{
    s->ncolumn = 0;
    for (uint32_t r = 0; r < s->f->nread && s->direct && !s->p->turned; r++)
        note(s, &s->f->read[r]);
    return s->ncolumn * words_of(s);
}

void wgmma_columns_begin(struct wgmma *s)
{
    for (uint32_t n = 0; n < s->shape->ncolumn; n++) {
        s->column[n] = ARENA_ARRAY(s->g->a, words_of(s->shape), int32_t);
        for (uint32_t w = 0; w < words_of(s->shape); w++)
            s->column[n][w] = cg_new_mutable(s->g, DT_U32);
    }
}

static void load(struct wgmma *s, uint32_t n, struct cg_val col)
{
    struct cg *g = s->g;
    const struct lang_expr *e = s->shape->column[n];
    const struct lang_symbol *t = e->sym;
    struct cg_val sub[CONTRACT_MAP_RANK] = {0};
    for (uint32_t i = 0; i < t->rank; i++) {
        const struct lang_symbol *x = wgmma_index_of(s->f, e->args[i]);
        sub[i] = cg_index(g, col);
        for (uint32_t b = 0; b < s->f->nbatch; b++)
            if (x == s->f->batch[b])
                sub[i] = s->m->batch[b];
    }
    const struct cg_place_of at = cg_address(g, t, cg_flat_index(g, t, t->rank, sub));
    for (uint32_t w = 0; w < words_of(s->shape); w++) {
        const struct ptx_operand from = ptx_mem(at.base, at.offset + w * 16),
                                 to = ptx_r(s->column[n][w]);
        if (s->m->whole_cols) {
            PTX(&g->b, "ld.global.nc.b32", to, from);
            continue;
        }
        const struct cg_val here = cg_index(g, cg_add(g, col, cg_u32(w * 8)));
        PTX(&g->b, "mov.b32", to, ptx_imm(0));
        PTX_IF(&g->b, cg_reg(g, cg_binary(g, OP_LT, here, s->m->n)), "ld.global.nc.b32", to, from);
    }
}

void wgmma_columns_load(struct wgmma *s)
{
    struct cg *g = s->g;
    if (!s->shape->ncolumn)
        return;
    const uint32_t skip = cg_label(g, "columns");
    cg_jump_if(g, s->adds, true, skip);
    const size_t mark = cg_scope_open(g);
    const struct cg_val pair = wgmma_lane_column(g, s->m->lane);
    const struct cg_val col = cg_add(g, cg_convert(g, s->m->col, DT_U32), pair);
    for (uint32_t n = 0; n < s->shape->ncolumn; n++)
        load(s, n, col);
    cg_scope_close(g, mark);
    cg_place(g, skip);
}

bool wgmma_column(struct wgmma *s, const struct lang_expr *e, uint32_t word, uint32_t lane,
                  struct cg_val *v)
{
    for (uint32_t n = 0; n < s->shape->ncolumn; n++) {
        struct cg_val of[2];
        if (!wgmma_is_same_read(s->f, s->shape->column[n], e))
            continue;
        cg_unpack(s->g, e->sym->type, s->column[n][word], 2, of);
        *v = of[lane];
        return true;
    }
    return false;
}
