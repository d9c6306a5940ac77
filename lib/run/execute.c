/* The launches on a device. */
#include <config.h>

#include <inttypes.h>

#include "run/keep.h"
#include "run/program.h"

const struct run_options run_default = {
    .poison = 0xff, .message_bytes = RUN_MESSAGE_BYTES, .max_iterations = RUN_ITERATIONS};

/* How many of the run's buffers are the job's. */
static size_t nbuffer(const struct job *j)
{
    return j->params ? j->r->nparam : run_nbuffer(j->r);
}

void job_release(struct job *j, struct job_set *s)
{
    for (size_t i = 0; i < nbuffer(j); i++)
        if (s->base[i])
            j->ops->release(j->dev, s->base[i]);
}

struct device_label job_label(struct run *r, size_t buffer)
{
    struct run_param *p = run_buffer(r, buffer);
    const bool temp = buffer >= r->nparam;
    return (struct device_label){.name = p->sym->name,
                                 .type = run_type_text(r, p),
                                 .element_bits = dtype_bits(p->sym->type),
                                 .read_only = p->sym->mode == MODE_IN,
                                 .undefined = temp ? !run_is_zeroed(r, buffer)
                                                   : p->sym->mode == MODE_OUT,
                                 .ndim = p->host.rank,
                                 .dim = p->host.dim};
}

enum device_status job_allocate(struct job *j, struct job_set *s)
{
    struct run *r = j->r;
    enum device_status status = DEVICE_OK;
    s->base = ARENA_ARRAY(r->arena, run_nbuffer(r), uint64_t);
    s->address = ARENA_ARRAY(r->arena, run_nbuffer(r), uint64_t);
    for (size_t i = 0; i < nbuffer(j) && status == DEVICE_OK; i++) {
        struct run_param *p = run_buffer(r, i);
        if (!run_is_buffer(p))
            continue;
        if (p->kept && !run_is_output(p)) {
            s->address[i] = keep_address(p->kept);
            continue;
        }
        const struct device_label label = job_label(r, i);
        status = j->ops->alloc(j->dev, p->host.bytes + 2 * (uint64_t)j->opt.guard, &label,
                               &s->base[i], r->d);
        s->address[i] = s->base[i] + j->opt.guard;
        if (status == DEVICE_OK)
            status = keep_label(r, j->ops, j->dev, s->base[i], &label);
    }
    return status;
}

enum { PATTERN = 0xa7 }; /* of guard bands: no small number, no float of ordinary size */

/* bytes of one value, in pieces. */
static enum device_status fill(struct job *j, uint64_t address, uint64_t bytes, uint8_t value)
{
    enum { PIECE = 1 << 20 };
    enum device_status status = DEVICE_OK;
    size_t size = bytes < PIECE ? (size_t)bytes : PIECE;
    if (size > j->piece_bytes) {
        j->piece = arena_alloc(j->r->arena, size);
        j->piece_bytes = size;
    }
    memset(j->piece, value, size);
    for (uint64_t at = 0; at < bytes && status == DEVICE_OK; at += size) {
        uint64_t n = bytes - at < size ? bytes - at : size;
        status = j->ops->write(j->dev, address + at, j->piece, n, j->r->d);
    }
    return status;
}

static bool starts_zero(const struct run *r, size_t buffer)
{
    const struct run_param *p = run_buffer(r, buffer);
    return run_is_zeroed(r, buffer) || (p->decl && p->decl->is_state);
}

static enum device_status upload_one(struct job *j, struct job_set *s, size_t i)
{
    const struct run_param *p = run_buffer(j->r, i);
    if (p->host.bytes == 0 || (p->kept && !run_is_output(p)))
        return DEVICE_OK;
    if (p->kept)
        return j->ops->copy(j->dev, s->address[i], keep_address(p->kept), p->host.bytes, NULL,
                            j->r->d);
    if (p->host.data)
        return j->ops->write(j->dev, s->address[i], p->host.data, p->host.bytes, j->r->d);
    return fill(j, s->address[i], p->host.bytes, starts_zero(j->r, i) ? 0 : j->opt.poison);
}

enum device_status job_upload(struct job *j, struct job_set *s)
{
    enum device_status status = DEVICE_OK;
    for (size_t i = 0; i < nbuffer(j) && status == DEVICE_OK; i++) {
        struct run_param *p = run_buffer(j->r, i);
        if (!run_is_buffer(p))
            continue;
        if (j->opt.guard) {
            status = fill(j, s->base[i], j->opt.guard, PATTERN);
            if (status == DEVICE_OK)
                status = fill(j, s->address[i] + p->host.bytes, j->opt.guard, PATTERN);
        }
        if (status == DEVICE_OK)
            status = upload_one(j, s, i);
    }
    return status;
}

enum device_status job_restore(struct job *j, struct job_set *s)
{
    enum device_status status = DEVICE_OK;
    for (size_t i = 0; i < j->r->nparam && status == DEVICE_OK; i++)
        if (run_is_input(&j->r->param[i]) && run_is_output(&j->r->param[i]))
            status = upload_one(j, s, i);
    return status;
}

enum device_status job_clear(struct job *j, const struct job_set *s)
{
    enum device_status status = DEVICE_OK;
    for (size_t i = 0; i < nbuffer(j) && status == DEVICE_OK; i++)
        if (run_is_cleared(j->r, i))
            status = fill(j, s->address[i], run_buffer(j->r, i)->host.bytes, 0);
    return status;
}

/* One band of a buffer is as it was. */
static enum device_status check_band(struct job *j, const struct run_param *p, uint64_t address,
                                     bool before)
{
    unsigned char *band = arena_alloc(j->r->arena, j->opt.guard);
    enum device_status status = j->ops->read(j->dev, band, address, j->opt.guard, j->r->d);
    if (status != DEVICE_OK)
        return status;
    for (uint32_t k = 0; k < j->opt.guard; k++) {
        /* the byte nearest to the buffer first */
        uint32_t at = before ? j->opt.guard - 1 - k : k;
        if (band[at] == PATTERN)
            continue;
        int64_t offset = before ? -1 - (int64_t)k : (int64_t)(p->host.bytes + k);
        diag_error(j->r->d, SPAN_NONE,
                   "the kernel wrote byte %" PRId64 " of %s (%s), which has %zu bytes", offset,
                   p->sym->name, run_type_text(j->r, p), p->host.bytes);
        return DEVICE_FAULT;
    }
    return DEVICE_OK;
}

enum device_status job_download(struct job *j, struct job_set *s)
{
    enum device_status status = DEVICE_OK;
    for (size_t i = 0; i < nbuffer(j) && status == DEVICE_OK; i++) {
        struct run_param *p = run_buffer(j->r, i);
        if (run_is_buffer(p) && j->opt.guard) {
            status = check_band(j, p, s->base[i], true);
            if (status == DEVICE_OK)
                status = check_band(j, p, s->address[i] + p->host.bytes, false);
        }
        const bool back = i < j->r->nparam || j->opt.temps;
        if (status != DEVICE_OK || !back || !run_is_output(p))
            continue;
        p->result = p->host;
        buffer_alloc(j->r->arena, &p->result, p->sym->name);
        if (p->result.bytes)
            status = j->ops->read(j->dev, p->result.data, s->address[i], p->result.bytes, j->r->d);
    }
    return status;
}

/* A launch, and its messages. */
static enum device_status launch_one(struct job *j, const struct device_launch *l,
                                     struct device_stats *stats)
{
    struct run *r = j->r;
    struct diags *d = r->d;
    if (!j->messages.address || j->untold) {
        enum device_status reset = messages_reset(r, &j->messages);
        return reset == DEVICE_OK ? j->ops->launch(j->dev, l, 1, stats, d) : reset;
    }
    /* an assertion that did not hold is told before a fault, which may be its consequence */
    struct diags *launch = diags_new(d->arena), *messages = diags_new(d->arena);
    enum device_status status = messages_reset(r, &j->messages);
    if (status != DEVICE_OK)
        return status;
    status = j->ops->launch(j->dev, l, 1, stats, launch);
    if (status == DEVICE_OK || status == DEVICE_FAULT) {
        r->d = messages;
        enum device_status told =
            messages_drain(r, &j->messages, l, j->opt.messages_by_time, status == DEVICE_FAULT);
        r->d = d;
        /* after a fault a GPU's memory can't be read any more, which is no news */
        if (status == DEVICE_OK || told != DEVICE_FAILED)
            diags_append(d, messages);
        status = status == DEVICE_OK ? told : status;
    }
    diags_append(d, launch);
    return status;
}

enum device_status job_launch(struct job *j, const struct plan *plan, struct run_stats *stats)
{
    enum device_status status = DEVICE_OK;
    *stats = (struct run_stats){0};
    for (size_t i = 0; i < plan->n && status == DEVICE_OK; i++) {
        struct device_stats one = {0};
        status = launch_one(j, &plan->v[i].l, &one);
        stats->seconds += one.seconds;
        stats->thread_instructions += one.thread_instructions;
        stats->launches++;
    }
    return status;
}

void job_keep(struct job *j, struct job_set *s)
{
    for (size_t i = 0; i < j->r->nparam; i++)
        if (run_is_input(&j->r->param[i]) && s->base[i] == s->address[i] &&
            keep_buffer(j->r, &j->r->param[i], s->base[i]))
            s->base[i] = 0;
}

void job_keep_states(struct job *j, struct job_set *s)
{
    for (size_t i = 0; i < j->r->nparam; i++)
        if (s->base[i] && s->base[i] == s->address[i] &&
            keep_state(j->r, &j->r->param[i], s->base[i]))
            s->base[i] = 0;
}

static bool is_given(const struct run_param *p)
{
    return p->host.data || p->kept || p->decl->is_state;
}

bool job_inputs_given(struct run *r)
{
    bool good = true;
    for (size_t i = 0; i < r->nparam; i++)
        if (run_is_input(&r->param[i]) && !is_given(&r->param[i]))
            good = diag_error(r->d, SPAN_NONE, "%s is not given", r->param[i].sym->name);
    return good;
}

enum device_status run_execute(struct run *r, const struct ptx_module *m,
                               const struct device_ops *ops, struct device *dev,
                               const struct run_options *opt, struct run_stats *stats)
{
    struct job j = {.r = r, .ops = ops, .dev = dev, .opt = opt ? *opt : run_default};
    struct plan plan;
    struct job_set set;
    struct run_stats none;
    if (r->contract->is_program)
        return program_execute(r, m, ops, dev, opt, stats);
    plan_for(r, ops, dev);
    if (!job_inputs_given(r) || !plan_make(r, m, &plan))
        return DEVICE_REFUSED;
    r->messages = (struct run_messages){0};
    enum device_status status = job_allocate(&j, &set);
    if (status == DEVICE_OK)
        status = job_upload(&j, &set);
    if (status == DEVICE_OK)
        job_keep(&j, &set);
    if (status == DEVICE_OK)
        status = messages_allocate(r, ops, dev, j.opt.message_bytes, &j.messages);
    plan_addresses(r, &plan, set.address, j.messages.address);
    if (status == DEVICE_OK)
        status = plan_maps(&plan, ops, dev, r->d);
    if (status == DEVICE_OK)
        status = job_launch(&j, &plan, stats ? stats : &none);
    if (status == DEVICE_OK)
        status = job_download(&j, &set);
    messages_release(&j.messages);
    job_release(&j, &set);
    return status;
}
