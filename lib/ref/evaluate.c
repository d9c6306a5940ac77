/* All that is wanted of a spec's equations: as a whole, by rows, or element by element. */
#include <config.h>

#include "ref/eval.h"
#include "ref/plan.h"
#include "ref/product.h"

#include <stdlib.h>
#include <unistd.h>

/* The sums of products in eq, or in all equations: made, or forgotten. */
static void make_products(struct ref *r, struct equation *eq)
{
    for (size_t k = 0; k < r->p.reductions.n; k++) {
        struct reduction *q = &r->p.reductions.v[k];
        if (q->eq == eq && (q->r->product = ref_product_new(&r->main, eq, q->r, r->threads)))
            r->operations += ref_product_terms(q->r->product);
    }
}

static void forget_products(struct ref *r)
{
    for (size_t k = 0; k < r->p.reductions.n; k++) {
        ref_product_free(r->p.reductions.v[k].r->product);
        r->p.reductions.v[k].r->product = NULL;
    }
}

bool ref_run_dense(struct ref *r, struct equation *eq)
{
    struct job j = {.eq = eq, .n = eq->tensor->n};
    make_products(r, eq);
    bool good = ref_run_job(r, &j);
    forget_products(r);
    return good;
}

/* All equations of a component, by ascending last index. */
static bool run_recurrence(struct ref *r, struct equation *first)
{
    uint64_t steps = first->tensor->rank ? first->tensor->shape[first->tensor->rank - 1] : 0;
    if (!steps)
        return true;
    if (first->pointwise) {
        struct job j = {.eq = first, .n = first->tensor->count / steps, .steps = steps};
        return ref_run_job(r, &j);
    }
    for (uint64_t step = 0; step < steps; step++)
        for (size_t k = 0; k < r->p.equations.n; k++) {
            struct equation *eq = r->p.equations.v[k];
            if (!eq->recurrence || eq->component != first->component)
                continue;
            struct job j = {.eq = eq, .n = eq->tensor->count / steps, .step = step, .steps = steps};
            if (!ref_run_job(r, &j))
                return false;
        }
    return true;
}

static bool evaluate_dense(struct ref *r)
{
    if (!ref_storage_take_dense(&r->storage))
        return false;
    for (size_t k = 0; k < r->p.equations.n; k++) {
        struct equation *eq = r->p.equations.v[k];
        bool done = false;
        for (size_t b = 0; b < k && eq->recurrence; b++)
            done |= r->p.equations.v[b]->recurrence &&
                    r->p.equations.v[b]->component == eq->component;
        if (!done && !(eq->recurrence ? run_recurrence(r, eq) : ref_run_dense(r, eq)))
            return false;
    }
    return true;
}

/* The outputs are what their tensors hold. */
static void show_outputs(struct ref *r)
{
    for (size_t k = 0; k < r->out.n; k++) {
        struct ref_output *o = &r->out.v[k];
        const struct tensor *t = r->out_eq.v[k]->tensor;
        o->n = t->count;
        o->v = t->v;
        o->i = t->i;
        o->e = t->e;
    }
}

static uint64_t splitmix(uint64_t *s)
{
    uint64_t z = *s += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

uint64_t *ref_sample(struct ref *r, uint64_t count, uint64_t n, uint64_t seed, uint64_t *taken)
{
    uint64_t *w = ref_storage_take(&r->storage, n, sizeof *w), kept = 0;
    if (!w)
        return NULL;
    for (uint64_t k = 0; k < n; k++)
        w[k] = k == 0 ? 0 : k == 1 ? count - 1 : splitmix(&seed) % count;
    qsort(w, (size_t)n, sizeof *w, by_value);
    for (uint64_t k = 0; k < n; k++)
        if (!kept || w[kept - 1] != w[k])
            w[kept++] = w[k];
    *taken = kept;
    return w;
}

static bool evaluate_on_demand(struct ref *r, const struct ref_options *opt)
{
    for (size_t k = 0; k < r->out.n; k++) {
        struct ref_output *o = &r->out.v[k];
        struct tensor *t = r->out_eq.v[k]->tensor;
        o->n = o->count;
        if (opt->sample && opt->sample < o->count &&
            !(o->where = ref_sample(r, o->count, opt->sample, opt->seed + k, &o->n)))
            return ref_storage_refuse(&r->storage, t, opt->sample);
        if (dtype_is_float(o->type))
            o->v = ref_storage_take(&r->storage, o->n, sizeof *o->v);
        else
            o->i = ref_storage_take(&r->storage, o->n, sizeof *o->i);
        o->e = ref_storage_take(&r->storage, o->n, sizeof *o->e);
        if ((!o->v && !o->i) || !o->e)
            return ref_storage_refuse(&r->storage, t, o->n);
        struct job j = {.eq = r->out_eq.v[k], .where = o->where, .n = o->n, .out = o};
        if (!ref_run_job(r, &j))
            return false;
    }
    return true;
}

static void list_output(struct ref *r, const struct spec_param *param, struct equation *eq)
{
    struct ref_output *o = VEC_PUSH(r->p.arena, &r->out);
    o->param = param;
    o->equation = eq->src;
    o->type = eq->tensor->type;
    o->rounds = eq->rhs->type != o->type;
    o->rank = eq->tensor->rank;
    o->shape = eq->tensor->shape;
    o->count = eq->tensor->count;
    *VEC_PUSH(r->p.arena, &r->out_eq) = eq;
}

/* The intermediates that are wanted, then the outputs in the order of the parameters. */
static void list_outputs(struct ref *r)
{
    const struct spec *s = r->p.in->spec;
    for (size_t q = 0; q < r->p.equations.n; q++) {
        struct equation *eq = r->p.equations.v[q];
        if (eq->wanted && eq->src->sym->kind == SYM_TENSOR)
            list_output(r, NULL, eq);
    }
    for (size_t k = 0; k < s->params.n; k++)
        for (size_t q = 0; q < r->p.equations.n; q++) {
            struct equation *eq = r->p.equations.v[q];
            if (eq->wanted && eq->src->sym == s->params.v[k].sym)
                list_output(r, &s->params.v[k], eq);
        }
}

static bool too_large(const struct ref *r)
{
    bool everywhere = true;
    for (size_t k = 0; k < r->p.equations.n; k++)
        everywhere &= !r->p.equations.v[k]->recurrence || r->p.equations.v[k]->pointwise;
    return ref_storage_dense(&r->p) > r->memory && everywhere;
}

struct ref *ref_evaluate(struct arena *a, const struct ref_input *in, const struct ref_options *opt,
                         struct diags *d)
{
    struct ref *r = ARENA_NEW(a, struct ref);
    r->p.arena = a;
    r->p.in = in;
    r->p.sums = opt->sums;
    r->d = d;
    r->storage = (struct ref_storage){.p = &r->p, .d = d};
    r->interrupted = opt->interrupted;
    r->memory = opt->memory ? opt->memory : (uint64_t)4 << 30;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    r->threads = opt->threads ? opt->threads : cores > 0 ? (unsigned)cores : 1;
    if (r->threads > REF_THREADS)
        r->threads = REF_THREADS;
    if (!ref_compile(&r->p, d))
        return NULL;
    bool slabs = false; /* a recurrence that must be evaluated whole, step by step */
    for (size_t k = 0; k < r->p.equations.n; k++)
        slabs |= r->p.equations.v[k]->recurrence && !r->p.equations.v[k]->pointwise;
    const struct plan *plan = plan_new(a, in, opt->sample > 0, opt->slab);
    r->on_demand = !plan && !slabs && (opt->sample > 0 || too_large(r));
    list_outputs(r);
    if (!ref_frame_begin(&r->main, r)) {
        diag_error(d, SPAN_NONE, "not enough memory");
        return NULL;
    }
    const bool ok = plan           ? ref_evaluate_rows(r, plan, opt->sample, opt->seed)
                    : r->on_demand ? evaluate_on_demand(r, opt)
                                   : evaluate_dense(r);
    if (!ok) {
        ref_free(r);
        return NULL;
    }
    if (!r->on_demand && !(plan && opt->sample))
        show_outputs(r);
    return r;
}

void ref_free(struct ref *r)
{
    if (!r)
        return;
    ref_frame_close(&r->main);
    ref_storage_free(&r->storage);
}

size_t ref_noutput(const struct ref *r)
{
    return r->out.n;
}

const struct ref_output *ref_output(const struct ref *r, size_t k)
{
    return &r->out.v[k];
}

uint64_t ref_operations(const struct ref *r)
{
    return r->operations;
}

static const struct node *arg_node(const struct equation *eq)
{
    const struct node *n = eq->rhs;
    while (n->eval == eval_int_to_int)
        n = n->args[0];
    bool arg = n->eval == eval_reduce && n->reduce->nloop == 1 &&
               (n->reduce->kind == RED_ARGMAX || n->reduce->kind == RED_ARGMIN);
    return arg ? n : NULL;
}

bool ref_has_index(const struct ref *r, size_t output)
{
    return arg_node(r->out_eq.v[output]) != NULL;
}

bool ref_accepts_index(struct ref *r, size_t output, uint64_t flat, int64_t got)
{
    struct equation *eq = r->out_eq.v[output];
    const struct node *n = arg_node(eq);
    struct frame *f = &r->main;
    f->eq = eq;
    ref_set_indices(f, eq, &flat, 1);
    bool ok = ref_reduce_accepts(f, n, got);
    f->failed = false;
    return ok;
}
