/* What the epilogue will read along rows and columns, a residual for one, is asked for some time
 * before the tile ends: it is in the L2 cache when the sums are made (matmul.h), and operands that
 * pass through have not yet driven it out again. */
#include <config.h>

#include "lower/matmul/matmul.h"

enum { LINE = 128, MOST_STEPS = 16 };

/* Is it the element at the results' own place? */
static bool is_in_place(const struct matmul_form *f, const struct lang_expr *e)
{
    const struct lang_equation *eq = f->stage->eq[0];
    return !e->pad && inspect_same_shape(e->sym, eq->sym) && dtype_bits(e->sym->type) >= 8 &&
           inspect_is_in_place(e, eq);
}

bool matmul_is_own(const struct matmul *m, const struct lang_expr *e)
{
    return e->kind == E_INDEX && !cg_is_defined(m->g, e->sym) && is_in_place(m->f, e);
}

struct matmul_own matmul_own(const struct matmul_form *f)
{
    struct matmul_own own = {.n = 0};
    for (uint32_t r = 0; r < f->nread && f->i; r++) {
        const struct lang_symbol *t = f->read[r].e->sym;
        bool again = own.n == MATMUL_OWN || !f->read[r].is_memory || !is_in_place(f, f->read[r].e);
        for (uint32_t i = 0; i < own.n; i++)
            again |= own.t[i] == t;
        if (!again)
            own.t[own.n++] = t;
    }
    return own;
}

/* The line that begins at the tile's row and column. */
static void ask_for(struct matmul *m, const struct lang_symbol *t, struct cg_val row,
                    struct cg_val col)
{
    struct cg *g = m->g;
    const uint32_t skip = cg_label(g, "asked");
    struct cg_val sub[VARIANT_RANK], ok = cg_bool(g, true);
    row = cg_index(g, cg_add(g, cg_convert(g, m->row, DT_U32), row));
    col = cg_index(g, cg_add(g, cg_convert(g, m->col, DT_U32), col));
    matmul_result_at(m, row, col, sub);
    if (!m->whole_rows)
        ok = cg_binary(g, OP_LT, row, m->m);
    if (!m->whole_cols)
        ok = cg_binary(g, OP_LAND, ok, cg_binary(g, OP_LT, col, m->n));
    const size_t mark = cg_scope_open(g);
    int64_t always;
    if (!cg_is_const(ok, &always))
        cg_jump_if(g, cg_reg(g, ok), false, skip);
    PTX(&g->b, "prefetch.global.L2", cg_mem(cg_address(g, t, cg_flat_index(g, t, t->rank, sub))));
    cg_scope_close(g, mark);
    cg_place(g, skip);
}

static void ask_for_tile(struct matmul *m, const struct lang_symbol *t)
{
    struct cg *g = m->g;
    const uint32_t each = LINE * 8 / dtype_bits(t->type);
    const uint32_t across = (m->p->bn + each - 1) / each, lines = m->p->bm * across;
    if (lines % m->p->threads != 0 || lines / m->p->threads > MOST_STEPS)
        return;
    for (uint32_t from = 0; from < lines; from += m->p->threads) {
        const struct cg_val n = cg_add(g, m->thread, cg_u32(from));
        const struct cg_val col = cg_mul(g, cg_binary(g, OP_MOD, n, cg_u32(across)), each);
        ask_for(m, t, cg_binary(g, OP_DIV, n, cg_u32(across)), col);
    }
}

void matmul_prefetch(struct matmul *m)
{
    const struct matmul_own own = matmul_own(m->f);
    for (uint32_t i = 0; i < own.n; i++)
        ask_for_tile(m, own.t[i]);
}
