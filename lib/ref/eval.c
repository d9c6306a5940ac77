#include <config.h>

#include "ref/eval.h"

#include <stdlib.h>

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
    ref_so_far_free(f->so_far, f->p ? f->p->nacc : 0);
    *f = (struct frame){0};
}

bool ref_frame_open(struct frame *f, struct program *p, bool on_demand)
{
    *f = (struct frame){.p = p};
    size_t slots = (p->nslot ? p->nslot : 1) * sizeof(struct vec);
    f->slot = aligned_alloc(64, slots);
    f->acc = ref_acc_new(p->nacc);
    f->kept = ref_keeps_new(p->nacc);
    f->so_far = ref_so_far_new(p->nacc);
    if (!f->slot || !f->acc || !f->kept || !f->so_far) {
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

bool ref_frame_begin(struct frame *f, struct ref *r)
{
    bool good = ref_frame_open(f, &r->p, r->on_demand);
    f->interrupted = r->interrupted;
    return good;
}

/* ---- one batch ------------------------------------------------------------------------------- */

void ref_set_indices(struct frame *f, const struct equation *eq, const uint64_t *flat, int n)
{
    const struct tensor *t = eq->tensor;
    for (int l = 0; l < LANES; l++) {
        uint64_t x = flat[l < n ? l : 0];
        for (uint32_t d = t->rank; d-- > 0;) {
            f->slot[eq->index_slot[d]].i[l] = (int64_t)(t->lo[d] + x % t->len[d]);
            x /= t->len[d];
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
    ref_set_indices(f, eq, flat, n);
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
    if (ref_frame_begin(&f, j->r)) {
        work(&f, j);
        pthread_mutex_lock(&j->lock);
        j->operations += f.operations;
        pthread_mutex_unlock(&j->lock);
        ref_frame_close(&f);
    }
    return NULL;
}

/* The calling thread works too, so that a machine that gives no more threads only takes longer. */
bool ref_run_job(struct ref *r, struct job *j)
{
    pthread_t thread[REF_THREADS];
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
