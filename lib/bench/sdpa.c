/* The vendor's library of attention as a rival: cudnn, where the spec is no convolution. */
#include <config.h>

#include "bench/attention.h"
#include "bench/rival.h"

#include <stdlib.h>

enum { POISON = 0xff };

/* The reference's bounds are of what our kernel does. Another order of sums, other exponentials and
 * gradients that are scaled before they are rounded may be off by so many times as much. */
static const double SLACK = 4;

struct sdpa_work {
    struct attention x;
    struct sdpa_plan *plan;
    struct rival_buffer buffer[SDPA_BUFFERS];
    struct run run; /* the subject's, with results of our own */
};

static bool is_output(int which)
{
    return which == SDPA_DQ || which == SDPA_DK || which == SDPA_DV;
}

static bool writes(const struct sdpa_work *w, int which)
{
    const bool forward = !w->x.problem.backward && (which == SDPA_O || which == SDPA_LSE);
    return w->x.problem.tensor[which].is_there && (forward || is_output(which));
}

/* ---- buffers ---- */

/* How many rows each sequence has, and how many keys: no more than there are. */
static const void *make_lengths(struct rival *v, int which)
{
    struct sdpa_work *w = v->sdpa;
    const struct sdpa_problem *p = &w->x.problem;
    const struct lang_symbol *sym = w->x.sym[which];
    const int32_t *from = sym ? run_find_param(v->subject->code.run, sym->name)->host.data : NULL;
    const int64_t most = (int64_t)(which == SDPA_ROWS ? p->m : p->n);
    int32_t *made = ARENA_ARRAY(v->a, p->batch, int32_t);
    for (uint64_t z = 0; z < p->batch; z++)
        made[z] = (int32_t)(!from || from[z] > most ? most : from[z] < 0 ? 0 : from[z]);
    w->buffer[which].bytes = p->batch * sizeof *made;
    return made;
}

static void lay_out(struct rival *v)
{
    struct sdpa_work *w = v->sdpa;
    for (int k = 0; k < SDPA_BUFFERS; k++) {
        struct rival_buffer *x = &w->buffer[k];
        if (!w->x.problem.tensor[k].is_there)
            continue;
        if (k == SDPA_ROWS || k == SDPA_LENGTHS) {
            x->host = make_lengths(v, k);
        } else {
            const struct run_param *p = run_find_param(v->subject->code.run, w->x.sym[k]->name);
            x->bytes = p->host.bytes;
            x->host = writes(w, k) ? NULL : p->host.data;
        }
        rival_place(v, x);
    }
}

static enum rival_status prepare(struct rival *v, struct diags *d)
{
    struct diags *own = diags_new(v->a);
    struct sdpa_work *w = v->sdpa = ARENA_NEW(v->a, struct sdpa_work);
    const struct code *c = &v->subject->code;
    const struct attention_at at = {v->a, c->spec, v->point, c->in.buffers};
    if (!v->dev->ops->sdpa) {
        v->why = "this device has no library of attention";
        return RIVAL_ABSENT;
    }
    w->x = attention_find(&at);
    v->why = w->x.why;
    if (v->why)
        return RIVAL_REFUSED;
    enum device_status status = v->dev->ops->sdpa->plan(v->dev->dev, &w->x.problem, &w->plan, own);
    if (status == DEVICE_ABSENT || status == DEVICE_REFUSED)
        return rival_failed(v, own, status == DEVICE_ABSENT ? RIVAL_ABSENT : RIVAL_REFUSED);
    if (status == DEVICE_OK) {
        v->choice = v->dev->ops->sdpa->version(v->dev->dev);
        lay_out(v);
        v->nset = rival_sets(v->dev, v->set_bytes);
        v->launches = 1;
        v->repeatable = true;
        status = rival_make_buffers(v, w->buffer, SDPA_BUFFERS, own);
    }
    if (status == DEVICE_OK)
        return RIVAL_OK;
    diags_append(d, own);
    return rival_failed(v, own, RIVAL_FAILED);
}

static enum device_status enqueue(struct rival *v, unsigned set, struct diags *d)
{
    const struct sdpa_work *w = v->sdpa;
    uint64_t at[SDPA_BUFFERS] = {0};
    for (int k = 0; k < SDPA_BUFFERS; k++)
        at[k] = rival_address(v, &w->buffer[k], set) +
                dtype_bytes(w->x.problem.tensor[k].type, (size_t)w->x.offset[k]);
    return v->dev->ops->sdpa->execute(v->dev->dev, w->plan, at, d);
}

static enum device_status poison(struct rival *v, unsigned set, struct diags *d)
{
    const struct sdpa_work *w = v->sdpa;
    enum device_status status = DEVICE_OK;
    for (int k = 0; k < SDPA_BUFFERS && status == DEVICE_OK; k++) {
        const struct rival_buffer *x = &w->buffer[k];
        if (writes(w, k))
            status =
                v->dev->queue->fill(v->dev->dev, rival_address(v, x, set), POISON, x->bytes, d);
    }
    return status;
}

/* ---- results ---- */

/* The subject's run with memory for other results. */
static void make_results(struct rival *v)
{
    struct sdpa_work *w = v->sdpa;
    const struct run *from = v->subject->code.run;
    w->run = *from;
    w->run.param = ARENA_ARRAY(v->a, from->nparam, struct run_param);
    for (size_t i = 0; i < from->nparam; i++) {
        struct run_param *p = &w->run.param[i];
        *p = from->param[i];
        if (!run_is_output(p))
            continue;
        p->result = p->host;
        buffer_alloc(v->a, &p->result, p->sym->name);
    }
}

static enum rival_status check(struct rival *v, unsigned set, struct diags *d)
{
    const struct bench_device *b = v->dev;
    struct sdpa_work *w = v->sdpa;
    if (!w->run.param)
        make_results(v);
    for (int k = 0; k < SDPA_BUFFERS; k++) {
        if (!writes(w, k))
            continue;
        struct run_param *p = run_find_param(&w->run, w->x.sym[k]->name);
        const uint64_t at = rival_address(v, &w->buffer[k], set);
        if (b->ops->read(b->dev, p->result.data, at, w->buffer[k].bytes, d) != DEVICE_OK)
            return rival_failed(v, d, RIVAL_FAILED);
    }
    v->checked = data_compare(&v->subject->judge->data, &w->run);
    v->checked.right |= v->checked.max_bound <= SLACK;
    v->why = v->checked.right ? NULL : v->checked.why;
    return v->checked.right ? RIVAL_OK : RIVAL_WRONG;
}

static void release(struct rival *v)
{
    if (v->sdpa && v->sdpa->plan)
        v->dev->ops->sdpa->discard(v->dev->dev, v->sdpa->plan);
    if (v->base)
        v->dev->ops->release(v->dev->dev, v->base);
    v->base = 0;
    v->sdpa = NULL;
}

const struct rival_ops rival_attention = {
    .prepare = prepare,
    .enqueue = enqueue,
    .poison = poison,
    .check = check,
    .release = release,
};
