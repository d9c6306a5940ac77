#include <config.h>

#include "lower/inouts.h"

enum { MOST_RANK = 8 };

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
    } else if (e->kind == E_INDEX && cg_is_defined(w->g, e->sym)) {
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

bool inouts_read(struct cg *g, const struct lower_stage *r, const struct lang_symbol *buffer,
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
