/* A program on a device: its memory, and a call. */
#include <config.h>

#include <inttypes.h>

#include "run/program.h"
#include "run/try.h"

/* ---- memory ---------------------------------------------------------------------------------- */

static enum device_status fill(struct program *p, uint64_t address, uint64_t bytes, uint8_t value)
{
    enum { PIECE = 1 << 16 };
    static const unsigned char zeros[PIECE];
    const struct job *j = &p->job;
    const unsigned char *from = zeros;
    if (j->ops->queue && bytes)
        return j->ops->queue->fill(j->dev, address, value, bytes, p->r->d);
    if (value)
        from = memset(arena_alloc(p->r->arena, PIECE), value, PIECE);
    for (uint64_t at = 0; at < bytes; at += PIECE) {
        const uint64_t left = bytes - at;
        TRY(j->ops->write(j->dev, address + at, from, left < PIECE ? left : PIECE, p->r->d));
    }
    return DEVICE_OK;
}

static uint64_t address_of(const struct program *p, size_t buffer)
{
    const struct run *r = p->r;
    return buffer < r->nparam || p->apart ? p->set.address[buffer]
                                          : p->base + p->temp_at[buffer - r->nparam];
}

uint64_t program_address(const struct program *p, const struct program_call *c, size_t actual)
{
    return address_of(p, c->buffer[actual]) + c->part[actual].at;
}

/* Temps that begin as zeros, or are zero when the program begins. */
static enum device_status zero_temps(struct program *p)
{
    for (size_t i = p->r->nparam; i < run_nbuffer(p->r); i++)
        if (run_is_zeroed(p->r, i))
            TRY(fill(p, address_of(p, i), run_buffer(p->r, i)->host.bytes, 0));
    return DEVICE_OK;
}

enum device_status program_allocate(struct program *p)
{
    const struct device_label label = {
        .name = "the program's temps", .type = "", .undefined = true};
    struct run *r = p->r;
    p->job.params = !p->apart;
    TRY(job_allocate(&p->job, &p->set));
    if (p->apart) {
        p->label = ARENA_ARRAY(r->arena, run_nbuffer(r), struct device_label);
        for (size_t i = 0; i < run_nbuffer(r); i++)
            if (run_is_buffer(run_buffer(r, i)))
                p->label[i] = job_label(r, i);
        return DEVICE_OK;
    }
    return p->peak ? p->job.ops->alloc(p->job.dev, p->peak, &label, &p->base, r->d) : DEVICE_OK;
}

enum device_status program_upload(struct program *p)
{
    TRY(job_upload(&p->job, &p->set));
    if (p->base)
        TRY(fill(p, p->base, p->peak, p->job.opt.poison));
    return zero_temps(p);
}

enum device_status program_restore(struct program *p)
{
    TRY(job_restore(&p->job, &p->set));
    return zero_temps(p);
}

static void take_back(struct program *p)
{
    for (size_t i = 0; i < p->lent.n; i++)
        p->job.ops->release(p->job.dev, p->lent.v[i]);
    p->lent.n = 0;
}

void program_release(struct program *p)
{
    const struct job *j = &p->job;
    arena_free(p->seen);
    program_forget(p);
    take_back(p);
    messages_release(&p->messages);
    if (p->extra)
        j->ops->release(j->dev, p->extra);
    if (p->base)
        j->ops->release(j->dev, p->base);
    if (p->set.base)
        job_release(&p->job, &p->set);
}

/* ---- what a call needs beside its buffers ---------------------------------------------------- */

/* Where it is taken from: the place that the rehearsal found, or, where that has not seen all,
 * memory that grows. */
static enum device_status open_scratch(struct program *p, const struct program_call *c)
{
    static const struct device_label label = {.name = "scratch", .type = ""};
    const struct job *j = &p->job;
    const uint64_t bytes = program_scratch(c);
    p->lend_at = p->base + c->scratch_at;
    if (p->apart || bytes <= c->scratch)
        return DEVICE_OK;
    if (bytes > p->extra_bytes) {
        if (p->extra)
            j->ops->release(j->dev, p->extra);
        p->extra = p->extra_bytes = 0;
        TRY(j->ops->alloc(j->dev, bytes, &label, &p->extra, p->r->d));
        p->extra_bytes = bytes;
    }
    p->lend_at = p->extra;
    return DEVICE_OK;
}

static enum device_status lend(struct program *p, struct run *kernel, size_t buffer,
                               uint64_t *address)
{
    const uint64_t bytes = run_buffer(kernel, buffer)->host.bytes;
    *address = p->lend_at;
    if (!p->apart) {
        p->lend_at += program_aligned(bytes);
        return DEVICE_OK;
    }
    const struct device_label label = job_label(kernel, buffer);
    TRY(p->job.ops->alloc(p->job.dev, bytes, &label, address, p->r->d));
    *VEC_PUSH(p->r->arena, &p->lent) = *address;
    return DEVICE_OK;
}

/* A temp that holds from one call to the next. */
static enum device_status keep(struct program *p, struct run *kernel, size_t buffer,
                               uint64_t *address)
{
    if (*address)
        return DEVICE_OK;
    const struct device_label label = job_label(kernel, buffer);
    const uint64_t bytes = run_buffer(kernel, buffer)->host.bytes;
    TRY(p->job.ops->alloc(p->job.dev, bytes, &label, address, p->r->d));
    return fill(p, *address, bytes, 0);
}

static enum device_status place_temps(struct program *p, struct program_bound *b)
{
    struct run *kernel = b->run;
    for (size_t i = 0; i < kernel->ntemp; i++) {
        const size_t buffer = kernel->nparam + i;
        uint64_t *address = &b->next_address[buffer];
        if (run_is_zeroed(kernel, buffer) && !run_is_cleared(kernel, buffer)) {
            TRY(keep(p, kernel, buffer, &b->persistent[i]));
            *address = b->persistent[i];
            continue;
        }
        TRY(lend(p, kernel, buffer, address));
        if (run_is_cleared(kernel, buffer))
            TRY(fill(p, *address, kernel->temp[i].host.bytes, 0));
    }
    return DEVICE_OK;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static enum device_status copy(struct program *p, struct program_call *c, uint64_t to,
                               uint64_t from, uint64_t bytes)
{
    struct device_stats stats = {0};
    TRY(p->job.ops->copy(p->job.dev, to, from, bytes, &stats, p->r->d));
    c->cost.seconds += stats.seconds;
    return DEVICE_OK;
}

static enum device_status place_buffers(struct program *p, struct program_call *c)
{
    struct program_bound *b = c->bound;
    for (size_t i = 0; i < c->step->args.n; i++) {
        const struct contract_actual *actual = &c->step->args.v[i];
        const struct program_part *part = &c->part[i];
        uint64_t *address = &b->next_address[c->param[i]];
        if (actual->value)
            continue;
        const uint64_t there = address_of(p, c->buffer[i]) + part->at;
        *address = there;
        if (!program_is_skewed(part))
            continue;
        TRY(lend(p, b->run, c->param[i], address));
        if (actual->param->sym->mode != MODE_OUT)
            TRY(copy(p, c, *address, there, part->shape.bytes));
    }
    return DEVICE_OK;
}

/* What was copied on its way in goes back. */
static enum device_status return_buffers(struct program *p, struct program_call *c)
{
    for (size_t i = 0; i < c->step->args.n; i++) {
        const struct contract_actual *actual = &c->step->args.v[i];
        const struct program_part *part = &c->part[i];
        if (!actual->value && program_is_skewed(part) && actual->param->sym->mode != MODE_IN)
            TRY(copy(p, c, address_of(p, c->buffer[i]) + part->at,
                     c->bound->next_address[c->param[i]], part->shape.bytes));
    }
    return DEVICE_OK;
}

/* Is the buffer only read by the call, though it might be written by others? */
static bool only_read(const struct program_call *c, size_t buffer)
{
    for (size_t i = 0; i < c->step->args.n; i++)
        if (!c->step->args.v[i].value && c->buffer[i] == buffer &&
            c->step->args.v[i].param->sym->mode != MODE_IN)
            return false;
    return true;
}

/* So that the simulator finds a kernel that writes what it has as an input. */
static enum device_status describe_buffers(struct program *p, const struct program_call *c)
{
    for (size_t i = 0; p->apart && i < c->step->args.n; i++) {
        const size_t buffer = c->buffer[i];
        if (c->step->args.v[i].value || p->label[buffer].read_only == only_read(c, buffer))
            continue;
        p->label[buffer].read_only = !p->label[buffer].read_only;
        TRY(p->job.ops->describe(p->job.dev, p->set.base[buffer], &p->label[buffer], p->r->d));
    }
    return DEVICE_OK;
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* The plan with the addresses, if they are not those that it has. */
static enum device_status place_plan(struct program *p, struct program_bound *b)
{
    const size_t bytes = run_nbuffer(b->run) * sizeof *b->address;
    if (b->wants_messages && !p->messages.address)
        TRY(messages_allocate(b->run, p->job.ops, p->job.dev, p->job.opt.message_bytes,
                              &p->messages));
    if (b->placed && (!bytes || memcmp(b->address, b->next_address, bytes) == 0))
        return DEVICE_OK;
    b->placed = false;
    if (bytes)
        memcpy(b->address, b->next_address, bytes);
    plan_addresses(b->run, &b->plan, b->address, p->messages.address);
    TRY(plan_maps(&b->plan, p->job.ops, p->job.dev, p->r->d));
    b->placed = true;
    return DEVICE_OK;
}

/* What the launches said with print(). */
static void hear(struct program *p, struct run *kernel)
{
    struct run_messages *all = &p->r->messages;
    p->said.len = 0;
    run_print_messages(kernel, &p->said);
    if (p->said.len && p->job.opt.say)
        p->job.opt.say(p->job.opt.say_ctx, p->said.text, p->said.len);
    else if (p->said.len)
        buf_add(&all->said, p->said.text, p->said.len);
    all->lost += kernel->messages.lost;
    if (kernel->messages.needed > all->needed)
        all->needed = kernel->messages.needed;
    kernel->messages.v.n = 0;
    kernel->messages.lost = 0;
}

static enum device_status launch(struct program *p, struct program_call *c)
{
    struct program_bound *b = c->bound;
    struct run_stats stats;
    struct job j = p->job;
    j.r = b->run;
    j.messages = b->wants_messages ? p->messages : (struct message_buffer){0};
    p->heard->list.n = p->heard->nerror = p->heard->nwarning = 0;
    b->run->d = p->heard;
    const enum device_status status = job_launch(&j, &b->plan, &stats);
    b->run->d = p->r->d;
    if (!j.untold)
        hear(p, b->run);
    if (p->heard->list.n)
        program_tell(p, c, p->r->d, p->heard);
    c->cost.calls++;
    c->cost.launches += stats.launches;
    c->cost.seconds += stats.seconds;
    c->cost.thread_instructions += stats.thread_instructions;
    p->stats.launches += stats.launches;
    p->stats.thread_instructions += stats.thread_instructions;
    p->stats.seconds += stats.seconds;
    return status;
}

enum device_status program_perform(struct program *p, struct program_call *c)
{
    if (p->job.opt.interrupted && *p->job.opt.interrupted) {
        diag_error(p->r->d, program_span(p->r->arena, p->r->contract, c->step),
                   "interrupted before the step %s", c->cost.text);
        return DEVICE_FAULT;
    }
    if (!program_resolve(p, c))
        return DEVICE_REFUSED;
    TRY(open_scratch(p, c));
    TRY(place_buffers(p, c));
    TRY(place_temps(p, c->bound));
    TRY(place_plan(p, c->bound));
    TRY(describe_buffers(p, c));
    TRY(program_watch_before(p, c));
    TRY(launch(p, c));
    TRY(return_buffers(p, c));
    TRY(program_watch_behind(p, c));
    take_back(p);
    return DEVICE_OK;
}

enum device_status program_answer(struct program *p, struct program_call *c, bool *go_on)
{
    uint32_t answer = 0;
    const uint64_t at = address_of(p, c->buffer[c->asked]) + c->part[c->asked].at;
    TRY(p->job.ops->read(p->job.dev, &answer, at, sizeof answer, p->r->d));
    *go_on = answer != 0;
    return DEVICE_OK;
}
