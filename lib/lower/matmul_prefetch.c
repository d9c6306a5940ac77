/* What the epilogue will read along rows and columns, a residual for one, is asked for when the tile begins: it is in the L2
 * cache when the sums are made (matmul.h). */
#include <config.h>

#include "lower/matmul.h"

enum { LINE = 128, MOST = 4, MOST_STEPS = 16 };

struct ahead {
    const struct matmul *m;
    const struct lang_symbol *t[MOST];
    uint32_t n;
};

/* The element at the results' own place of a tensor of their shape? */
static bool is_own(const struct matmul *m, const struct lang_expr *e)
{
    const struct lang_equation *eq = m->f->stage->eq[0];
    if (e->kind != E_INDEX || e->pad || cg_is_defined(m->g, e->sym) ||
        !inspect_same_shape(e->sym, eq->sym) || dtype_bits(e->sym->type) < 8)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const struct lang_expr *name = inspect_strip(e->args[i]);
        if (name->kind != E_NAME || name->sym != eq->index[i])
            return false;
    }
    return true;
}

static void find_all(struct ahead *a, const struct lang_expr *e)
{
    for (uint32_t q = 0; q < a->m->f->nproduct; q++)
        if (e == a->m->f->product[q].e)
            return;
    if (is_own(a->m, e)) {
        bool again = a->n == MOST;
        for (uint32_t i = 0; i < a->n; i++)
            again |= a->t[i] == e->sym;
        if (!again)
            a->t[a->n++] = e->sym;
        return;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        find_all(a, e->args[i]);
    if (e->pad)
        find_all(a, e->pad);
}

/* The line that begins at the tile's row and column. */
static void ask_for(struct matmul *m, const struct lang_symbol *t, struct cg_val row,
                    struct cg_val col)
{
    struct cg *g = m->g;
    const uint32_t skip = cg_label(g, "asked");
    struct cg_val sub[MAP_RANK], ok = cg_bool(g, true);
    row = cg_index(g, cg_add(g, cg_convert(g, m->row, DT_U32), row));
    col = cg_index(g, cg_add(g, cg_convert(g, m->col, DT_U32), col));
    for (uint32_t i = 0, b = 0; i < t->rank; i++)
        sub[i] = i + 1 == t->rank ? col : i == m->f->axis_i ? row : m->batch[b++];
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
        ask_for(m, t, cg_binary(g, OP_DIV, n, cg_u32(across)),
                cg_mul(g, cg_binary(g, OP_MOD, n, cg_u32(across)), each));
    }
}

static struct ahead all_of(const struct matmul *m)
{
    struct ahead a = {.m = m};
    for (uint32_t o = 0; o < m->f->stage->n && m->f->i; o++)
        find_all(&a, m->f->stage->eq[o]->rhs);
    return a;
}

bool matmul_reads_own(const struct matmul *m)
{
    return all_of(m).n > 0;
}

void matmul_prefetch(struct matmul *m)
{
    const struct ahead a = all_of(m);
    if (m->p->split > 1) /* one of the blocks reads it, and later */
        return;
    for (uint32_t i = 0; i < a.n; i++)
        ask_for_tile(m, a.t[i]);
}
