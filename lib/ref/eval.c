#include <config.h>

#include "ref/product.h"
#include "ref/storage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct ref {
    struct program p;
    struct frame main; /* the calling thread's */
    VEC(struct ref_output) out;
    VEC(struct equation *) out_eq;
    struct ref_storage storage; /* dense tensors and sampled results */
    bool on_demand;
    unsigned threads;
    uint64_t memory;
    uint64_t operations;
    const volatile int *interrupted;
    struct diags *d;
};

void ref_fail(struct frame *f, struct span s, const char *fmt, ...)
{
    if (f->failed)
        return;
    f->failed = true;
    f->fail_span = s;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->fail, sizeof f->fail, fmt, ap);
    va_end(ap);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void fill(struct vec *s, double v, int64_t i, enum dtype t)
{
    for (int l = 0; l < LANES; l++) {
        if (dtype_is_float(t))
            s->v[l] = v;
        else
            s->i[l] = i;
        s->e[l] = 0;
    }
}

void ref_frame_close(struct frame *f)
{
    if (f->memo)
        for (size_t k = 0; k < f->p->tensors.n; k++)
            ref_table_free(f->memo[k]);
    free(f->memo);
    free(f->slot);
    free(f->acc);
    ref_keeps_free(f->kept, f->p ? f->p->nacc : 0);
    *f = (struct frame){0};
}

bool ref_frame_open(struct frame *f, struct program *p, bool on_demand)
{
    *f = (struct frame){.p = p};
    size_t slots = (p->nslot ? p->nslot : 1) * sizeof(struct vec);
    f->slot = aligned_alloc(64, slots);
    f->acc = ref_acc_new(p->nacc);
    f->kept = ref_keeps_new(p->nacc);
    if (!f->slot || !f->acc || !f->kept) {
        ref_frame_close(f);
        return false;
    }
    memset(f->slot, 0, slots);
    for (size_t k = 0; k < p->constants.n; k++)
        fill(&f->slot[p->constants.v[k]->slot], p->constant_v.v[k], p->constant_i.v[k],
             p->constants.v[k]->type);
    if (!on_demand)
        return true;
    f->memo = calloc(p->tensors.n ? p->tensors.n : 1, sizeof(struct table *));
    for (size_t k = 0; f->memo && k < p->tensors.n; k++)
        if (!(f->memo[k] = ref_table_new())) {
            ref_frame_close(f);
            return false;
        }
    return f->memo != NULL;
}

static bool frame_open(struct frame *f, struct ref *r)
{
    bool good = ref_frame_open(f, &r->p, r->on_demand);
    f->interrupted = r->interrupted;
    return good;
}

/* ---- one batch ------------------------------------------------------------------------------- */

static void set_indices(struct frame *f, const struct equation *eq, const uint64_t *flat, int n)
{
    const struct tensor *t = eq->tensor;
    for (int l = 0; l < LANES; l++) {
        uint64_t x = flat[l < n ? l : 0];
        for (uint32_t d = t->rank; d-- > 0;) {
            f->slot[eq->index_slot[d]].i[l] = (int64_t)(x % t->shape[d]);
            x /= t->shape[d];
        }
    }
}

const struct vec *ref_equation_value(struct frame *f, struct equation *eq, const uint64_t *flat,
                                     int n)
{
    struct equation *outer = f->eq;
    uint8_t mask[LANES] = {0};
    memset(mask, LANE_ON, (size_t)n);
    f->eq = eq;
    set_indices(f, eq, flat, n);
    if (eq->rhs->eval)
        eq->rhs->eval(f, eq->rhs, mask);
    f->operations += LANES;
    f->eq = outer;
    return node_out(f, eq->rhs);
}

void ref_equation_batch(struct frame *f, struct equation *eq, const uint64_t *flat, int n)
{
    const struct vec *v = ref_equation_value(f, eq, flat, n);
    for (int l = 0; l < n && !f->failed; l++)
        ref_tensor_store(eq->tensor, f, flat[l], v, l);
}

/* ---- on demand ------------------------------------------------------------------------------- */

/* A recurrence that reads itself at its own place: everything up to the latest step asked for, step
 * by step. */
static void demand_steps(struct frame *f, struct tensor *t, const uint64_t *flat, int n)
{
    uint64_t steps = t->shape[t->rank - 1], last = 0;
    for (int l = 0; l < n; l++)
        last = flat[l] % steps > last ? flat[l] % steps : last;
    const struct program *p = f->p;
    for (uint64_t step = 0; step <= last && !f->failed; step++)
        for (size_t k = 0; k < p->equations.n; k++) {
            struct equation *eq = p->equations.v[k];
            if (!eq->recurrence || eq->component != t->eq->component)
                continue;
            uint64_t need[LANES];
            int count = 0;
            for (int l = 0; l < n; l++) {
                uint64_t x = flat[l] - flat[l] % steps + step;
                if (step <= flat[l] % steps && !ref_table_find(f->memo[eq->tensor->id], x))
                    need[count++] = x;
            }
            if (count)
                ref_equation_batch(f, eq, need, count);
        }
}

void ref_demand(struct frame *f, struct tensor *t, const uint64_t *flat, int n)
{
    uint64_t need[LANES];
    int count = 0;
    for (int l = 0; l < n; l++)
        if (!ref_table_find(f->memo[t->id], flat[l]))
            need[count++] = flat[l];
    if (!count || f->failed)
        return;
    if (t->eq->recurrence)
        demand_steps(f, t, need, count);
    else
        ref_equation_batch(f, t->eq, need, count);
}

/* ---- in parallel: chunks of an equation's elements ------------------------------------------- */

enum { CHUNK = 4 * LANES };

struct job {
    struct ref *r;
    struct equation *eq;
    const uint64_t *where;             /* the elements; NULL: all */
    uint64_t n;                        /* elements, or places of a pointwise recurrence */
    uint64_t step, steps;              /* one step of a recurrence; steps = 0: not a recurrence */
    struct ref_output *out;            /* on demand: results go here */
    atomic_uint_fast64_t next, failed; /* chunk numbers; failed: the lowest that did */
    pthread_mutex_t lock;
    struct span fail_span;
    char fail[sizeof((struct frame *)0)->fail];
    uint64_t operations;
};

static void output_batch(struct frame *f, struct job *j, const uint64_t *flat, uint64_t base, int n)
{
    struct equation *eq = j->eq;
    bool keep = false;
    const struct vec *v;
    if (eq->recurrence) { /* its own steps are needed first */
        ref_demand(f, eq->tensor, flat, n);
        keep = true;
    }
    struct vec stored;
    if (keep) {
        for (int l = 0; l < n; l++) {
            struct entry *m = ref_table_find(f->memo[eq->tensor->id], flat[l]);
            stored.i[l] = m ? m->i : 0;
            stored.e[l] = m ? m->e : INFINITY;
        }
        v = &stored;
    } else {
        v = ref_equation_value(f, eq, flat, n);
    }
    for (int l = 0; l < n; l++) {
        if (j->out->v)
            j->out->v[base + (uint64_t)l] = v->v[l];
        else
            j->out->i[base + (uint64_t)l] = v->i[l];
        j->out->e[base + (uint64_t)l] = v->e[l];
    }
}

static void run_batch(struct frame *f, struct job *j, uint64_t base, int n)
{
    uint64_t flat[LANES];
    struct program *p = &j->r->p;
    for (int l = 0; l < n; l++)
        flat[l] = j->where ? j->where[base + (uint64_t)l] : base + (uint64_t)l;
    if (j->out) {
        output_batch(f, j, flat, base, n);
        return;
    }
    if (!j->steps) {
        ref_equation_batch(f, j->eq, flat, n);
        return;
    }
    /* pointwise: all steps here and now; else the one step that the caller is at */
    uint64_t from = j->eq->pointwise ? 0 : j->step, to = j->eq->pointwise ? j->steps : j->step + 1;
    for (uint64_t step = from; step < to && !f->failed; step++)
        for (size_t k = 0; k < p->equations.n; k++) {
            struct equation *eq = p->equations.v[k];
            if (eq->component != j->eq->component || !eq->recurrence)
                continue;
            if (!j->eq->pointwise && eq != j->eq)
                continue;
            uint64_t at[LANES];
            for (int l = 0; l < n; l++)
                at[l] = flat[l] * j->steps + step;
            ref_equation_batch(f, eq, at, n);
        }
}

static void forget(struct frame *f, uint64_t limit)
{
    if (!f->memo)
        return;
    uint64_t bytes = 0;
    for (size_t k = 0; k < f->p->tensors.n; k++)
        bytes += ref_table_bytes(f->memo[k]);
    for (size_t k = 0; bytes > limit && k < f->p->tensors.n; k++)
        ref_table_clear(f->memo[k]);
}

static void run_chunk(struct frame *f, struct job *j, uint64_t chunk)
{
    uint64_t end = (chunk + 1) * CHUNK < j->n ? (chunk + 1) * CHUNK : j->n;
    for (uint64_t base = chunk * CHUNK; base < end && !f->failed; base += LANES) {
        uint64_t left = end - base;
        run_batch(f, j, base, left < LANES ? (int)left : LANES);
        if (f->interrupted && *f->interrupted)
            ref_fail(f, SPAN_NONE, "interrupted");
        forget(f, j->r->memory / (j->r->threads ? j->r->threads : 1));
    }
}

static void work(struct frame *f, struct job *j)
{
    uint64_t chunks = (j->n + CHUNK - 1) / CHUNK;
    for (;;) {
        uint64_t chunk = atomic_fetch_add(&j->next, 1);
        if (chunk >= chunks || chunk > atomic_load(&j->failed))
            break;
        run_chunk(f, j, chunk);
        if (!f->failed)
            continue;
        /* the lowest failing element is reported, whichever thread met it */
        pthread_mutex_lock(&j->lock);
        if (chunk < atomic_load(&j->failed)) {
            atomic_store(&j->failed, chunk);
            j->fail_span = f->fail_span;
            memcpy(j->fail, f->fail, sizeof j->fail);
        }
        pthread_mutex_unlock(&j->lock);
        break;
    }
}

static void *thread_main(void *arg)
{
    struct job *j = arg;
    struct frame f;
    if (frame_open(&f, j->r)) {
        work(&f, j);
        pthread_mutex_lock(&j->lock);
        j->operations += f.operations;
        pthread_mutex_unlock(&j->lock);
        ref_frame_close(&f);
    }
    return NULL;
}

enum { MAX_THREADS = 256 };

/* The calling thread works too, so that a machine that gives no more threads only takes longer. */
static bool run_job(struct ref *r, struct job *j)
{
    pthread_t thread[MAX_THREADS];
    unsigned started = 0;
    uint64_t chunks = (j->n + CHUNK - 1) / CHUNK;
    j->r = r;
    atomic_init(&j->next, 0);
    atomic_init(&j->failed, UINT64_MAX);
    pthread_mutex_init(&j->lock, NULL);
    while (started + 1 < r->threads && started + 1 < chunks &&
           pthread_create(&thread[started], NULL, thread_main, j) == 0)
        started++;
    work(&r->main, j);
    for (unsigned k = 0; k < started; k++)
        pthread_join(thread[k], NULL);
    pthread_mutex_destroy(&j->lock);
    r->operations += j->operations + r->main.operations;
    r->main.operations = 0;
    r->main.failed = false;
    if (atomic_load(&j->failed) != UINT64_MAX)
        return diag_error(r->d, j->fail_span, "%s", j->fail);
    return true;
}

/* ---- everything ------------------------------------------------------------------------------ */

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

static bool run_dense(struct ref *r, struct equation *eq)
{
    struct job j = {.eq = eq, .n = eq->tensor->count};
    make_products(r, eq);
    bool good = run_job(r, &j);
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
        return run_job(r, &j);
    }
    for (uint64_t step = 0; step < steps; step++)
        for (size_t k = 0; k < r->p.equations.n; k++) {
            struct equation *eq = r->p.equations.v[k];
            if (!eq->recurrence || eq->component != first->component)
                continue;
            struct job j = {.eq = eq, .n = eq->tensor->count / steps, .step = step, .steps = steps};
            if (!run_job(r, &j))
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
        if (!done && !(eq->recurrence ? run_recurrence(r, eq) : run_dense(r, eq)))
            return false;
    }
    for (size_t k = 0; k < r->out.n; k++) {
        struct ref_output *o = &r->out.v[k];
        const struct tensor *t = r->out_eq.v[k]->tensor;
        o->n = t->count;
        o->v = t->v;
        o->i = t->i;
        o->e = t->e;
    }
    return true;
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

/* n different elements at random, ascending; the first and the last are always among them. */
static uint64_t *sample(struct ref *r, uint64_t count, uint64_t n, uint64_t seed, uint64_t *taken)
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
            !(o->where = sample(r, o->count, opt->sample, opt->seed + k, &o->n)))
            return ref_storage_refuse(&r->storage, t, opt->sample);
        if (dtype_is_float(o->type))
            o->v = ref_storage_take(&r->storage, o->n, sizeof *o->v);
        else
            o->i = ref_storage_take(&r->storage, o->n, sizeof *o->i);
        o->e = ref_storage_take(&r->storage, o->n, sizeof *o->e);
        if ((!o->v && !o->i) || !o->e)
            return ref_storage_refuse(&r->storage, t, o->n);
        struct job j = {.eq = r->out_eq.v[k], .where = o->where, .n = o->n, .out = o};
        if (!run_job(r, &j))
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
    if (r->threads > MAX_THREADS)
        r->threads = MAX_THREADS;
    if (!ref_compile(&r->p, d))
        return NULL;
    bool slabs = false; /* a recurrence that must be evaluated whole, step by step */
    for (size_t k = 0; k < r->p.equations.n; k++)
        slabs |= r->p.equations.v[k]->recurrence && !r->p.equations.v[k]->pointwise;
    r->on_demand = !slabs && (opt->sample > 0 || too_large(r));
    list_outputs(r);
    if (!frame_open(&r->main, r)) {
        diag_error(d, SPAN_NONE, "not enough memory");
        return NULL;
    }
    bool ok = r->on_demand ? evaluate_on_demand(r, opt) : evaluate_dense(r);
    if (!ok) {
        ref_free(r);
        return NULL;
    }
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
    set_indices(f, eq, &flat, 1);
    bool ok = ref_reduce_accepts(f, n, got);
    f->failed = false;
    return ok;
}
