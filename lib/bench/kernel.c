/* A kernel of a spec as a rival. */
#include <config.h>

#include "bench/rival.h"

#include "data/message.h"

enum { POISON = 0xff }; /* NaN, -1 */

/* Its inputs are the subject's where they have the same name, type and shape. */
static void share_inputs(struct rival *v)
{
    const struct rival *s = v->subject;
    for (size_t i = 0; i < v->code.run->nparam && s != v; i++) {
        struct run_param *p = &v->code.run->param[i];
        const struct run_param *q = run_find_param(s->code.run, p->sym->name);
        if (run_is_input(p) && q && run_is_input(q) && q->host.type == p->host.type &&
            q->host.rank == p->host.rank &&
            memcmp(q->host.dim, p->host.dim, sizeof p->host.dim) == 0)
            p->host.data = q->host.data;
    }
}

/* Other code for the same spec is judged by one reference, unless it adds in another way. */
static const struct rival *find_judge(const struct rival *v)
{
    for (size_t i = 0; i < v->npeer && v->same_spec; i++)
        if (v->peer[i].data.ref && v->peer[i].same_spec &&
            memcmp(&v->code.sums, &v->peer[i].code.sums, sizeof v->code.sums) == 0)
            return &v->peer[i];
    return NULL;
}

static bool make_data(struct rival *v, struct diags *d)
{
    const struct rival *judge = find_judge(v);
    if (v->same_spec)
        share_inputs(v);
    v->judge = judge ? judge : v;
    if (!judge)
        return data_make(&v->code, v->point, &v->data_options, &v->data, d);
    v->data = judge->data;
    v->data.ref = NULL; /* which is the judge's */
    return true;
}

/* ---- buffers ---- */

static void lay_out(struct rival *v)
{
    struct run *r = v->code.run;
    v->offset = ARENA_ARRAY(v->a, run_nbuffer(r), uint64_t);
    v->address = ARENA_ARRAY(v->a, run_nbuffer(r), uint64_t);
    v->repeatable = true;
    for (size_t i = 0; i < run_nbuffer(r); i++) {
        const struct run_param *p = run_buffer(r, i);
        if (!run_is_buffer(p))
            continue;
        v->repeatable &= i >= r->nparam || p->sym->mode != MODE_INOUT;
        if (v->lender && i < r->nparam)
            continue;
        v->offset[i] = rival_reserve(v, p->host.bytes);
    }
}

/* Buffer i in a set; parameters may be those of a lender. */
static uint64_t address_of(const struct rival *v, unsigned set, size_t i)
{
    const struct rival *of = v->lender && i < v->code.run->nparam ? v->lender : v;
    return of->base + set * of->set_bytes + of->offset[i];
}

/* The temps that begin as zeros and that kernels leave so. */
static enum device_status zero_temps(struct rival *v, struct diags *d)
{
    const struct run *r = v->code.run;
    enum device_status status = DEVICE_OK;
    for (size_t i = 0; i < r->ntemp; i++)
        for (unsigned k = 0; k < v->nset && status == DEVICE_OK; k++)
            if (run_is_zeroed(r, r->nparam + i) && !run_is_cleared(r, r->nparam + i))
                status = v->dev->queue->fill(v->dev->dev, address_of(v, k, r->nparam + i), 0,
                                             r->temp[i].host.bytes, d);
    return status;
}

/* Contents of the first set from the host, those of the others from the first. What is lent is
 * there, but for an inout that the last user has changed. */
static enum device_status upload(struct rival *v, struct diags *d)
{
    const struct bench_device *b = v->dev;
    const struct run *r = v->code.run;
    enum device_status status = DEVICE_OK;
    for (size_t i = 0; i < r->nparam && status == DEVICE_OK; i++) {
        const struct run_param *p = &r->param[i];
        if (!run_is_input(p) || (v->lender && !run_is_output(p)))
            continue;
        uint64_t first = address_of(v, 0, i);
        status = b->ops->write(b->dev, first, p->host.data, p->host.bytes, d);
        for (unsigned k = 1; k < v->nset && status == DEVICE_OK; k++)
            status = b->queue->copy(b->dev, address_of(v, k, i), first, p->host.bytes, d);
    }
    return status == DEVICE_OK ? b->queue->wait(b->dev, NULL, d) : status;
}

/* Of messages nothing is kept: a kernel that says something finds no room. */
static enum device_status no_messages(struct rival *v, struct diags *d)
{
    struct diags *own = v->code.run->d;
    v->code.run->d = d;
    enum device_status status =
        messages_allocate(v->code.run, v->dev->ops, v->dev->dev, 0, &v->messages);
    if (status == DEVICE_OK)
        status = messages_reset(v->code.run, &v->messages);
    v->code.run->d = own;
    return status;
}

static enum device_status make_ready(struct rival *v, struct diags *d)
{
    const struct bench_device *b = v->dev;
    enum device_status status = v->module ? DEVICE_OK
                                          : b->ops->load_module(b->dev, v->code.ptx, &v->module, d);
    for (size_t i = 0; i < v->code.plan.n && status == DEVICE_OK; i++) {
        v->code.plan.v[i].l.module = v->module;
        status = b->queue->prepare(b->dev, &v->code.plan.v[i].l, d);
    }
    if (status == DEVICE_OK && v->set_bytes + !v->lender > 0)
        status = rival_allocate(v, d);
    if (status == DEVICE_OK)
        status = no_messages(v, d);
    if (status == DEVICE_OK)
        status = zero_temps(v, d);
    return status == DEVICE_OK ? upload(v, d) : status;
}

static bool make_code(struct rival *v, struct diags *d)
{
    if (!v->made)
        return code_make(v->a, v->source, v->point, v->dev->info.multiprocessors, &v->code, d);
    v->code = *v->made;
    return true;
}

static enum rival_status prepare(struct rival *v, struct diags *d)
{
    if (!make_code(v, d) || !make_data(v, d))
        return rival_failed(v, d, RIVAL_REFUSED);
    v->bytes = v->code.bytes;
    v->launches = (unsigned)v->code.plan.n;
    v->clears = plan_clears(v->code.run);
    lay_out(v);
    v->nset = v->lender ? v->lender->nset : rival_sets(v->dev, v->set_bytes);
    enum device_status status = make_ready(v, d);
    if (status != DEVICE_OK)
        return rival_failed(v, d, status == DEVICE_REFUSED ? RIVAL_REFUSED : RIVAL_FAILED);
    return RIVAL_OK;
}

static enum device_status enqueue(struct rival *v, unsigned set, struct diags *d)
{
    struct run *r = v->code.run;
    for (size_t i = 0; i < run_nbuffer(r); i++)
        v->address[i] = address_of(v, set, i);
    plan_addresses(r, &v->code.plan, v->address, v->messages.address);
    enum device_status status = plan_maps(&v->code.plan, v->dev->ops, v->dev->dev, d);
    if (status == DEVICE_OK)
        status = plan_clear(r, v->dev->queue, v->dev->dev, v->address, d);
    for (size_t i = 0; i < v->code.plan.n && status == DEVICE_OK; i++)
        status = v->dev->queue->launch(v->dev->dev, &v->code.plan.v[i].l, d);
    return status;
}

static enum device_status poison(struct rival *v, unsigned set, struct diags *d)
{
    const struct run *r = v->code.run;
    enum device_status status = DEVICE_OK;
    for (size_t i = 0; i < r->nparam && status == DEVICE_OK; i++)
        if (run_is_output(&r->param[i]) && !run_is_input(&r->param[i]))
            status = v->dev->queue->fill(v->dev->dev, address_of(v, set, i), POISON,
                                         r->param[i].host.bytes, d);
    return status;
}

static enum rival_status check(struct rival *v, unsigned set, struct diags *d)
{
    const struct bench_device *b = v->dev;
    struct run *r = v->code.run;
    enum device_status status = DEVICE_OK;
    for (size_t i = 0; i < r->nparam && status == DEVICE_OK; i++) {
        struct run_param *p = &r->param[i];
        if (!run_is_output(p))
            continue;
        if (!p->result.data) {
            p->result = p->host;
            if (v->lender) /* one after the other needs it */
                p->result.data = v->lender->code.run->param[i].result.data;
            else
                buffer_alloc(v->a, &p->result, p->sym->name);
        }
        status = b->ops->read(b->dev, p->result.data, address_of(v, set, i), p->result.bytes, d);
    }
    if (status != DEVICE_OK)
        return rival_failed(v, d, RIVAL_FAILED);
    v->checked = data_compare(&v->judge->data, r);
    v->mistrust = v->checked.mistrust;
    v->why = v->checked.why;
    return v->checked.right ? RIVAL_OK : RIVAL_WRONG;
}

static void release(struct rival *v)
{
    const struct bench_device *b = v->dev;
    if (v->messages.address)
        messages_release(&v->messages);
    if (v->base)
        b->ops->release(b->dev, v->base);
    if (v->module)
        b->ops->unload_module(b->dev, v->module);
    data_free(&v->data);
    v->base = 0;
    v->module = NULL;
}

const struct rival_ops rival_kernel = {
    .prepare = prepare,
    .enqueue = enqueue,
    .poison = poison,
    .check = check,
    .release = release,
};
