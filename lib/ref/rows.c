/* Everything by rows of groups of equations (ref/plan.h). */
#include <config.h>

#include "ref/eval.h"
#include "ref/plan.h"

#include <stdlib.h>

/* A group's rows that are evaluated at once: a box of their indices. */
struct box {
    uint64_t lo[MAX_RANK], len[MAX_RANK];
};

struct run {
    struct ref *r;
    const struct plan *plan;
    const struct plan_group *g;
    const uint64_t *row; /* those of a sample; NULL: all */
    uint64_t nrow;
};

static struct equation *equation_of(const struct run *w, const struct plan_member *m)
{
    const struct program *p = &w->r->p;
    size_t k = 0;
    while (p->equations.v[k]->src != w->plan->eq[m->equation].src)
        k++;
    return p->equations.v[k];
}

static struct tensor *tensor_of(const struct run *w, size_t member)
{
    return equation_of(w, &w->g->member.v[member])->tensor;
}

static bool is_whole(const struct run *w, size_t member)
{
    return w->plan->eq[w->g->member.v[member].equation].whole;
}

/* ---- one box --------------------------------------------------------------------------------- */

static void set_window(const struct run *w, size_t member, const struct box *b)
{
    struct tensor *t = tensor_of(w, member);
    ref_tensor_all(t);
    for (uint32_t d = 0; d < w->g->rank; d++) {
        const uint8_t at = w->g->member.v[member].dim[d];
        t->lo[at] = b->lo[d];
        t->len[at] = b->len[d];
    }
    ref_tensor_window(t, !is_whole(w, member));
}

static bool run_box(const struct run *w, const struct box *b)
{
    bool good = true;
    for (size_t m = 0; m < w->g->member.n; m++)
        set_window(w, m, b);
    for (size_t m = 0; m < w->g->member.n && good; m++)
        good = ref_run_dense(w->r, equation_of(w, &w->g->member.v[m]));
    return good;
}

/* ---- what a sample gives --------------------------------------------------------------------- */

struct taken {
    uint64_t where, i;
    double v, e;
};

static int by_where(const void *a, const void *b)
{
    const struct taken *x = a, *y = b;
    return x->where < y->where ? -1 : x->where > y->where;
}

static bool is_ascending(const struct ref_output *o)
{
    bool good = true;
    for (uint64_t k = 1; k < o->n && good; k++)
        good = o->where[k - 1] < o->where[k];
    return good;
}

/* Brings the elements into the order of their indices. */
static bool sort_output(struct ref_output *o)
{
    if (is_ascending(o))
        return true;
    struct taken *all = malloc((size_t)o->n * sizeof *all);
    uint64_t *where = (uint64_t *)(uintptr_t)o->where;
    for (uint64_t k = 0; all && k < o->n; k++)
        all[k] = (struct taken){.where = where[k],
                                .i = o->i ? (uint64_t)o->i[k] : 0,
                                .v = o->v ? o->v[k] : 0,
                                .e = o->e[k]};
    if (all)
        qsort(all, (size_t)o->n, sizeof *all, by_where);
    for (uint64_t k = 0; all && k < o->n; k++) {
        where[k] = all[k].where;
        o->e[k] = all[k].e;
        if (o->v)
            o->v[k] = all[k].v;
        else
            o->i[k] = (int64_t)all[k].i;
    }
    free(all);
    return all != NULL;
}

/* Adds the elements of the box to those that were taken of an output. */
static void take_elements(struct ref_output *o, const struct tensor *t)
{
    uint64_t *where = (uint64_t *)(uintptr_t)o->where + o->n;
    for (uint64_t k = 0; k < t->n; k++)
        where[k] = ref_tensor_flat(t, k);
    memcpy(o->e + o->n, t->e, (size_t)t->n * sizeof *t->e);
    if (o->v)
        memcpy(o->v + o->n, t->v, (size_t)t->n * sizeof *t->v);
    else
        memcpy(o->i + o->n, t->i, (size_t)t->n * sizeof *t->i);
    o->n += t->n;
}

/* The output that a member is, if no group has made it before. */
static struct ref_output *output_of(const struct run *w, size_t member)
{
    const struct equation *eq = equation_of(w, &w->g->member.v[member]);
    for (size_t k = 0; k < w->r->out.n; k++)
        if (w->r->out_eq.v[k] == eq && !w->r->out.v[k].e)
            return &w->r->out.v[k];
    return NULL;
}

static bool output_storage(const struct run *w, struct ref_output *o)
{
    struct ref_storage *s = &w->r->storage;
    const uint64_t n = o->count / plan_rows(w->g) * w->nrow;
    o->rows = w->nrow;
    o->where = ref_storage_take(s, n, sizeof *o->where);
    o->e = ref_storage_take(s, n, sizeof *o->e);
    if (dtype_is_float(o->type))
        o->v = ref_storage_take(s, n, sizeof *o->v);
    else
        o->i = ref_storage_take(s, n, sizeof *o->i);
    return o->where && o->e && (o->v || o->i);
}

/* ---- all boxes of a group -------------------------------------------------------------------- */

/* Dimension d is cut into pieces; those before it are taken one by one, those behind it whole. */
struct cut {
    uint32_t d;
    uint64_t piece;
};

/* As many rows in a box as a slab has room for. */
static struct cut cut_of(const struct run *w)
{
    const double bytes = plan_row_bytes(w->plan, w->g);
    const double most = bytes > 0 ? (double)w->plan->slab / bytes : INFINITY;
    double rows = 1;
    for (uint32_t d = w->g->rank; d-- > 0; rows *= (double)w->g->extent[d])
        if (rows * (double)w->g->extent[d] > most)
            return (struct cut){d, (uint64_t)fmax(floor(most / rows), 1)};
    return (struct cut){0, w->g->rank ? w->g->extent[0] : 1};
}

static uint64_t boxes_of(const struct run *w, const struct cut *c)
{
    uint64_t n = w->g->rank ? (w->g->extent[c->d] + c->piece - 1) / c->piece : 1;
    for (uint32_t d = 0; d < c->d; d++)
        n *= w->g->extent[d];
    return n;
}

static struct box box_of(const struct run *w, const struct cut *c, uint64_t number)
{
    struct box b;
    for (uint32_t d = w->g->rank; d-- > 0;) {
        const uint64_t extent = w->g->extent[d],
                       piece = d > c->d    ? extent
                               : d == c->d ? c->piece
                                           : 1,
                       n = (extent + piece - 1) / piece;
        b.lo[d] = number % n * piece;
        b.len[d] = extent - b.lo[d] < piece ? extent - b.lo[d] : piece;
        number /= n;
    }
    return b;
}

/* Room for a member in any box: the first one is as large as any. */
static bool member_storage(const struct run *w, size_t member, const struct box *first)
{
    set_window(w, member, first);
    return is_whole(w, member) || ref_storage_tensor(&w->r->storage, tensor_of(w, member));
}

static bool run_boxes(const struct run *w, struct ref_output *const *out)
{
    struct cut c = cut_of(w);
    const uint64_t n = w->row ? w->nrow : boxes_of(w, &c);
    bool good = true;
    if (w->row)
        c = (struct cut){w->g->rank ? w->g->rank - 1 : 0, 1};
    const struct box first = box_of(w, &c, 0);
    for (size_t m = 0; m < w->g->member.n && good; m++)
        good = member_storage(w, m, &first);
    for (uint64_t k = 0; k < n && good; k++) {
        const struct box b = box_of(w, &c, w->row ? w->row[k] : k);
        good = run_box(w, &b);
        for (size_t m = 0; m < w->g->member.n && good; m++)
            if (out[m])
                take_elements(out[m], tensor_of(w, m));
    }
    return good;
}

/* What only the group had in hand is gone. */
static void end_group(const struct run *w)
{
    for (size_t m = 0; m < w->g->member.n; m++) {
        struct tensor *t = tensor_of(w, m);
        if (!is_whole(w, m))
            ref_storage_drop(&w->r->storage, t);
        ref_tensor_all(t);
    }
}

static bool run_group(struct run *w, uint64_t sample, uint64_t seed)
{
    struct arena *a = w->r->p.arena;
    struct ref_output **out = ARENA_ARRAY(a, w->g->member.n, struct ref_output *);
    bool good = true;
    if (sample) {
        const uint64_t n = plan_sampled_rows(w->plan, w->g, sample);
        w->row = ref_sample(w->r, plan_rows(w->g), n, seed, &w->nrow);
        good = w->row != NULL;
    }
    for (size_t m = 0; m < w->g->member.n && sample && good; m++)
        good = !(out[m] = output_of(w, m)) || output_storage(w, out[m]);
    if (!good)
        return ref_storage_refuse(&w->r->storage, tensor_of(w, 0), w->nrow);
    good = run_boxes(w, out);
    end_group(w);
    for (size_t m = 0; m < w->g->member.n && good; m++)
        good = !out[m] || sort_output(out[m]);
    return good;
}

bool ref_evaluate_rows(struct ref *r, const struct plan *plan, uint64_t sample, uint64_t seed)
{
    for (size_t g = 0; g < plan->group.n; g++)
        for (size_t m = 0; m < plan->group.v[g]->member.n; m++) {
            struct run w = {.r = r, .plan = plan, .g = plan->group.v[g]};
            struct tensor *t = tensor_of(&w, m);
            if (is_whole(&w, m) && !t->e && !ref_storage_tensor(&r->storage, t))
                return false;
        }
    for (size_t g = 0; g < plan->group.n; g++) {
        struct run w = {.r = r, .plan = plan, .g = plan->group.v[g]};
        if (!run_group(&w, sample, seed + g))
            return false;
    }
    return true;
}
