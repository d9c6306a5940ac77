/* Programs: what run_check(), run_execute() and run_time() do for a contract that has steps. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "run/program.h"

/* Whether the simulator has the memory for the arena. */
static bool arena_fits(struct program *p)
{
    enum { SMALL = 1 << 26 }; /* is not asked for */
    struct run *r = p->r;
    char wanted[MEMORY_TEXT], has[MEMORY_TEXT];
    uint64_t bytes = p->peak;
    for (size_t i = 0; p->apart && i < r->ntemp; i++)
        bytes += r->temp[i].host.bytes; /* at most 2^48 each */
    const struct memory_left left = memory_left();
    if (bytes < SMALL || !r->memory.simulated || r->memory.overcommit || bytes <= left.bytes)
        return true;
    return diag_error(
        r->d, SPAN_NONE, "the temps of '%s' take %s of memory on the simulator, but %s has %s left",
        r->contract->kernel, memory_text(bytes, wanted), left.by, memory_text(left.bytes, has));
}

struct program *program_prepare(struct run *r, const struct ptx_module *m, bool apart)
{
    struct program *p = program_new(r, m);
    p->apart = apart;
    if (!program_rehearse(p)) {
        program_forget(p);
        return NULL;
    }
    program_place(p);
    return p;
}

bool program_check(struct run *r, const struct ptx_module *m)
{
    struct program *p = program_prepare(r, m, false);
    if (p)
        program_forget(p);
    return p != NULL;
}

static void take_costs(struct program *p)
{
    struct run *r = p->r;
    r->costs.n = 0;
    for (size_t i = 0; i < p->ncall; i++)
        *VEC_PUSH(r->arena, &r->costs) = p->call[i].cost;
}

static struct program *begin(struct run *r, const struct ptx_module *m,
                             const struct device_ops *ops, struct device *dev,
                             const struct run_options *opt)
{
    plan_for(r, ops, dev);
    struct program *p =
        job_inputs_given(r) ? program_prepare(r, m, opt->apart || opt->guard || opt->temps) : NULL;
    if (!p)
        return NULL;
    if (!arena_fits(p)) {
        program_forget(p);
        return NULL;
    }
    p->job = (struct job){.r = r, .ops = ops, .dev = dev, .opt = *opt};
    p->heard = diags_new(r->arena);
    p->said = buf_in(r->arena);
    p->visit = program_perform;
    return p;
}

enum device_status program_execute(struct run *r, const struct ptx_module *m,
                                   const struct device_ops *ops, struct device *dev,
                                   const struct run_options *opt, struct run_stats *stats)
{
    struct program *p = begin(r, m, ops, dev, opt ? opt : &run_default);
    if (!p)
        return DEVICE_REFUSED;
    r->messages = (struct run_messages){.said = buf_in(r->arena)};
    enum device_status status = program_allocate(p);
    if (status == DEVICE_OK)
        status = program_upload(p);
    if (status == DEVICE_OK)
        job_keep(&p->job, &p->set);
    if (status == DEVICE_OK)
        status = program_walk(p);
    if (p->enough)
        status = DEVICE_OK;
    if (status == DEVICE_OK)
        status = job_download(&p->job, &p->set);
    if (status == DEVICE_OK)
        job_keep_states(&p->job, &p->set);
    program_release(p);
    take_costs(p);
    if (stats)
        *stats = p->stats;
    return status;
}

/* ---- time ------------------------------------------------------------------------------------ */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Each execution begins with what the first began with: a while that asks whether there is anything
 * left to do has as much to do each time. */
static enum device_status time_once(struct program *p, double *seconds)
{
    enum device_status status = program_restore(p);
    p->stats = (struct run_stats){0};
    const double start = now();
    if (status == DEVICE_OK)
        status = program_walk(p);
    *seconds = now() - start;
    return status;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum device_status program_time(struct run *r, const struct device_ops *ops, struct device *dev,
                                unsigned n, struct run_timing *t)
{
    double *seconds = ARENA_ARRAY(r->arena, n, double), warm;
    struct program *p = begin(r, NULL, ops, dev, &run_default);
    if (!p)
        return DEVICE_REFUSED;
    p->job.untold = true;
    enum device_status status = program_allocate(p);
    if (status == DEVICE_OK)
        status = program_upload(p);
    if (status == DEVICE_OK && ops->queue)
        status = time_once(p, &warm);
    for (unsigned i = 0; i < n && status == DEVICE_OK; i++)
        status = time_once(p, &seconds[i]);
    program_release(p);
    if (status != DEVICE_OK)
        return status;
    qsort(seconds, n, sizeof *seconds, by_value);
    *t = (struct run_timing){.n = n,
                             .per_sample = 1,
                             .median = n % 2 ? seconds[n / 2]
                                             : (seconds[n / 2 - 1] + seconds[n / 2]) / 2,
                             .min = seconds[0],
                             .max = seconds[n - 1],
                             .thread_instructions = p->stats.thread_instructions};
    for (size_t i = 0; i < r->nparam; i++)
        if (run_is_buffer(&r->param[i]))
            t->bytes += r->param[i].host.bytes * (r->param[i].sym->mode == MODE_INOUT ? 2 : 1);
    return DEVICE_OK;
}
