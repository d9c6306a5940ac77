/* One thread per output element (per byte of a packed output): always correct, never clever. Intermediates are
 * computed again wherever they are read; reductions are loops in ascending order.
 *
 * Outputs of one shape share an entry; the others get entries and launches of their own. An inout is read as it
 * was before: a launch that reads it comes before the one that writes it, and the one that writes it may read the
 * element it writes only, because other threads may have been there already.
 */
#include <config.h>

#include "lower/cg.h"

#include <stdlib.h>

enum { MOST_OUTPUTS = 64, MOST_RANK = 8, BLOCK = 256 };

struct group {
    const struct lang_equation *eq[MOST_OUTPUTS];
    uint32_t n;
    bool done;
};

struct groups {
    struct group *v;
    uint32_t n;
};

static struct groups group_outputs(struct cg *g)
{
    const struct lang_equations *eqs = &g->spec->compute;
    struct groups gs = {.v = ARENA_ARRAY(g->a, eqs->n, struct group)};
    for (size_t i = 0; i < eqs->n; i++) {
        const struct lang_symbol *t = eqs->v[i]->sym;
        uint32_t k = 0;
        if (t->kind != SYM_BUFFER)
            continue;
        while (k < gs.n &&
               (gs.v[k].n == MOST_OUTPUTS || !inspect_same_shape(gs.v[k].eq[0]->sym, t)))
            k++;
        if (k == gs.n)
            gs.n++;
        gs.v[k].eq[gs.v[k].n++] = eqs->v[i];
    }
    return gs;
}

/* ---- reads of inouts ------------------------------------------------------------------------------ */

/* Which axis of the output an index stands for, while intermediates are looked through. */
struct axis_of {
    const struct lang_symbol *index;
    int axis; /* -1: something else */
};

struct walk {
    struct cg *g;
    const struct lang_symbol *shape;  /* of the group that is computed */
    const struct lang_symbol *buffer; /* the inout looked for */
    VEC(struct axis_of) axes;
    const struct lang_expr *other; /* a read at another element */
    bool any;
    unsigned steps;
};

static int axis_of(const struct walk *w, const struct lang_expr *e)
{
    e = inspect_strip(e);
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX)
        for (size_t i = w->axes.n; i-- > 0;)
            if (w->axes.v[i].index == e->sym)
                return w->axes.v[i].axis;
    return -1;
}

static void walk_expr(struct walk *w, const struct lang_expr *e);

static void walk_definition(struct walk *w, const struct lang_expr *e)
{
    const struct lang_equation *eq = e->sym->def;
    size_t bound = w->axes.n;
    int axis[MOST_RANK];
    for (uint32_t i = 0; i < eq->nindex; i++)
        axis[i] = axis_of(w, e->args[i]);
    for (uint32_t i = 0; i < eq->nindex; i++) {
        struct axis_of *a = VEC_PUSH(w->g->a, &w->axes);
        a->index = eq->index[i];
        a->axis = axis[i];
    }
    walk_expr(w, eq->rhs);
    w->axes.n = bound;
}

static void walk_expr(struct walk *w, const struct lang_expr *e)
{
    if (w->other || ++w->steps > 1000000) {
        w->any = true;
        return;
    }
    if (e->kind == E_INDEX && e->sym == w->buffer) {
        w->any = true;
        for (uint32_t i = 0; i < e->nargs; i++)
            if (axis_of(w, e->args[i]) != (int)i)
                w->other = e;
    } else if (e->kind == E_INDEX && cg_is_defined(e->sym)) {
        walk_definition(w, e);
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        walk_expr(w, e->args[i]);
    if (e->pad)
        walk_expr(w, e->pad);
    for (uint32_t i = 0; i < e->nindex; i++) {
        if (e->index[i]->low)
            walk_expr(w, e->index[i]->low);
        walk_expr(w, e->index[i]->dims[0]);
    }
}

/* Whether the group reads the inout; *other is a read of an element that it does not write in the same thread. */
static bool group_reads(struct cg *g, const struct group *r, const struct lang_symbol *buffer,
                        const struct lang_expr **other)
{
    struct walk w = {.g = g, .buffer = buffer, .shape = r->eq[0]->sym};
    for (uint32_t i = 0; i < r->n && !w.other; i++) {
        w.axes.n = 0;
        for (uint32_t k = 0; k < r->eq[i]->nindex; k++) {
            struct axis_of *a = VEC_PUSH(g->a, &w.axes);
            a->index = r->eq[i]->index[k];
            a->axis = (int)k;
        }
        walk_expr(&w, r->eq[i]->rhs);
    }
    *other = w.other;
    return w.any;
}

/* Whether group r must run before group w. */
static bool must_precede(struct cg *g, const struct group *r, const struct group *w)
{
    const struct lang_expr *other;
    for (uint32_t i = 0; i < w->n; i++)
        if (w->eq[i]->sym->mode == MODE_INOUT && group_reads(g, r, w->eq[i]->sym, &other))
            return true;
    return false;
}

static bool check_in_place(struct cg *g, const struct group *gr)
{
    const struct lang_expr *other = NULL;
    for (uint32_t i = 0; i < gr->n; i++) {
        const struct lang_symbol *t = gr->eq[i]->sym;
        if (t->mode == MODE_INOUT && group_reads(g, gr, t, &other) && other) {
            cg_error(g, other->span,
                     "'%s' is updated in place, so another thread may already have changed this "
                     "element of it",
                     t->name);
            diag_note(g->d, t->span, "give the old values as an 'in' parameter and make '%s' out",
                      t->name);
            return false;
        }
    }
    return true;
}

/* The next group none of whose inouts is still to be read by another. */
static struct group *next_group(struct cg *g, struct groups *gs)
{
    for (uint32_t i = 0; i < gs->n; i++) {
        bool ready = !gs->v[i].done;
        for (uint32_t k = 0; k < gs->n && ready; k++)
            ready = k == i || gs->v[k].done || !must_precede(g, &gs->v[k], &gs->v[i]);
        if (ready)
            return &gs->v[i];
    }
    return NULL;
}

/* ---- code ----------------------------------------------------------------------------------------- */

static uint32_t packing(const struct group *gr)
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

static void compute_group(struct cg *g, const struct group *gr, struct cg_val t)
{
    const struct lang_symbol *s = gr->eq[0]->sym;
    uint32_t pack = packing(gr);
    struct cg_val sub[2][MOST_RANK], v[MOST_OUTPUTS][2];
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

static void lower_group(struct cg *g, const struct group *gr, const char *entry, uint32_t block)
{
    const struct lang_symbol *s = gr->eq[0]->sym;
    const char *text;
    int64_t n;
    cg_begin(g, entry);
    g->block[0] = block;
    g->block[1] = g->block[2] = 1;
    cg_at(g, gr->eq[0]->span);
    struct cg_val total = shape_total(g, s, packing(gr), &text);
    struct cg_val t = thread_start(g, block, 1);
    g->exit_used = true;
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, t, total)), true, g->exit);
    if (cg_is_const(total, &n) && n <= UINT32_MAX)
        t = cg_index(g, cg_value(DT_U32, CG(g, PTX_B32, "cvt.u32.u64", cg_op(g, t))));
    compute_group(g, gr, t);
    g->func->reqntid[0] = block;
    g->func->reqntid[1] = g->func->reqntid[2] = 1;
    struct contract_launch *l = cg_launch(g, arena_printf(g->a, "ceil_div(%s, %u)", text, block),
                                          arena_printf(g->a, "%u", block));
    lower_explain(g, "  %s: one thread for each %s of %s\n", entry,
                  packing(gr) == 2 ? "two elements" : "element", s->name);
    cg_end(g, l);
}

bool naive_fits(struct cg *g, struct buf *why)
{
    (void)g;
    (void)why;
    return true;
}

/* What the simplicity costs. */
static void explain_cost(struct cg *g)
{
    for (size_t i = 0; i < g->spec->compute.n && g->opt->explain; i++) {
        const struct lang_equation *eq = g->spec->compute.v[i];
        if (eq->sym->kind == SYM_TENSOR && inspect_reduces(eq->rhs))
            lower_explain(g, "  %s is a reduction, done again by every thread that reads it\n",
                          eq->sym->name);
    }
}

bool naive_lower(struct cg *g, const struct lower_plan *plan)
{
    struct groups gs = group_outputs(g);
    uint32_t block = plan->block ? plan->block : BLOCK;
    explain_cost(g);
    for (uint32_t i = 0; i < gs.n; i++)
        if (!check_in_place(g, &gs.v[i]))
            return false;
    for (uint32_t i = 0; i < gs.n && !g->failed; i++) {
        struct group *gr = next_group(g, &gs);
        if (!gr)
            return cg_error(
                g, g->spec->name_span,
                "the outputs of different shapes are updated in place from each other, which no "
                "order of launches allows; make one of them out");
        gr->done = true;
        const char *entry = g->spec->name;
        if (gs.n > 1)
            entry = lower_entry_name(g, gr->eq[0]->sym->name);
        lower_group(g, gr, entry, block);
    }
    return !g->failed;
}
