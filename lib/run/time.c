/* The time of launches. On a GPU what is short is recorded as a graph and replayed, so that neither
 * the launches nor the events around them show. */
#include <config.h>

#include "run/program.h"
#include "run/try.h"

#include <math.h>
#include <stdlib.h>

static const double SHORT = 100e-6;    /* seconds; a launch costs the host a tenth of that */
static const double LONG = 10e-3;      /* beside that, what starting costs is nothing */
static const double GRAPH_TIME = 1e-3; /* that a graph takes at least, where its nodes suffice */
enum { WARM_UP = 3, PILOT = 4, SETS_MOST = 16, GRAPH_NODES = 4096 };

/* What is timed: executions, or copies. */
struct timed {
    bool copies;
    struct device_graph *graph; /* NULL: each is queued */
    unsigned per_graph, lead;   /* lead: queued before the first event */
    unsigned next_set;
    double *seconds; /* of each round, of one */
};

struct timer {
    struct job j;
    struct plan plan;
    struct job_set set[SETS_MOST];
    unsigned nset;
    uint64_t bytes;      /* moved by one execution */
    uint64_t copy_bytes; /* of each of the two copy buffers of a set; 0: no copy */
    uint64_t copy[SETS_MOST][2];
    struct timed work, copying;
};

/* Enough copies of the buffers that all of them together are twice the L2 cache, within a quarter
 * of the memory. */
static unsigned sets_wanted(const struct device_info *info, uint64_t footprint)
{
    unsigned n = 1;
    while (n < SETS_MOST && footprint * n < 2 * info->l2_bytes &&
           footprint * (n + 1) * 2 <= info->memory / 4)
        n++;
    return n;
}

/* Bytes of each copy buffer: what moves as many as an execution does, or as many as there is room
 * for. */
static uint64_t copy_wanted(const struct device_info *info, uint64_t footprint, uint64_t bytes)
{
    uint64_t room = info->memory > footprint ? (info->memory - footprint) / 4 : 0;
    return bytes / 2 < room ? bytes / 2 : room;
}

static enum device_status timer_allocate(struct timer *t)
{
    struct device_label label = {.name = "copy", .type = ""};
    /* on a GPU launches follow each other, and what they say finds no room */
    uint64_t room = t->j.ops->queue ? 0 : t->j.opt.message_bytes;
    TRY(messages_allocate(t->j.r, t->j.ops, t->j.dev, room, &t->j.messages));
    for (unsigned k = 0; k < t->nset; k++) {
        TRY(job_allocate(&t->j, &t->set[k]));
        TRY(job_upload(&t->j, &t->set[k]));
        for (int b = 0; b < 2 && t->copy_bytes; b++)
            TRY(t->j.ops->alloc(t->j.dev, t->copy_bytes, &label, &t->copy[k][b], t->j.r->d));
    }
    return DEVICE_OK;
}

static void timer_release(struct timer *t)
{
    struct device_graph *const graphs[] = {t->work.graph, t->copying.graph};
    for (int i = 0; i < 2; i++)
        if (graphs[i])
            t->j.ops->queue->discard(t->j.dev, graphs[i]);
    messages_release(&t->j.messages);
    for (unsigned k = 0; k < t->nset; k++) {
        if (t->set[k].base)
            job_release(&t->j, &t->set[k]);
        for (int b = 0; b < 2; b++)
            if (t->copy[k][b])
                t->j.ops->release(t->j.dev, t->copy[k][b]);
    }
}

static enum device_status place(struct timer *t, unsigned set)
{
    plan_addresses(t->j.r, &t->plan, t->set[set].address, t->j.messages.address);
    return plan_maps(&t->plan, t->j.ops, t->j.dev, t->j.r->d);
}

/* ---- on a GPU ---- */

/* Queues n of them, each on the next set; with a graph a multiple of what it holds. */
static enum device_status enqueue(struct timer *t, struct timed *w, unsigned n, bool direct)
{
    const struct device_queue *q = t->j.ops->queue;
    struct diags *d = t->j.r->d;
    if (w->graph && !direct) {
        for (unsigned i = 0; i < n; i += w->per_graph)
            TRY(q->replay(t->j.dev, w->graph, d));
        return DEVICE_OK;
    }
    for (unsigned i = 0; i < n; i++) {
        unsigned k = w->next_set;
        w->next_set = (k + 1) % t->nset;
        if (w->copies) {
            TRY(q->copy(t->j.dev, t->copy[k][1], t->copy[k][0], t->copy_bytes, d));
            continue;
        }
        TRY(place(t, k));
        TRY(plan_clear(t->j.r, q, t->j.dev, t->set[k].address, d));
        for (size_t l = 0; l < t->plan.n; l++)
            TRY(q->launch(t->j.dev, &t->plan.v[l].l, d));
    }
    return DEVICE_OK;
}

/* The time of one of n, between two events. */
static enum device_status batch(struct timer *t, struct timed *w, unsigned n, double *seconds)
{
    const struct device_queue *q = t->j.ops->queue;
    struct diags *d = t->j.r->d;
    /* the device is busy with these while the host queues what is timed */
    TRY(enqueue(t, w, w->lead, false));
    TRY(q->mark(t->j.dev, false, d));
    TRY(enqueue(t, w, n, false));
    TRY(q->mark(t->j.dev, true, d));
    TRY(q->wait(t->j.dev, seconds, d));
    *seconds /= n;
    return DEVICE_OK;
}

static enum device_status record(struct timer *t, struct timed *w, double seconds)
{
    const struct device_queue *q = t->j.ops->queue;
    unsigned nodes = w->copies ? 1 : (unsigned)t->plan.n + plan_clears(t->j.r);
    double rotations = ceil(GRAPH_TIME / (fmax(seconds, 1e-7) * t->nset)),
           n = fmin(fmax(rotations, 1) * t->nset, fmax(GRAPH_NODES / nodes, 1));
    w->next_set = 0;
    TRY(q->record(t->j.dev, t->j.r->d));
    enum device_status queued = enqueue(t, w, (unsigned)n, true);
    enum device_status made = q->recorded(t->j.dev, &w->graph, t->j.r->d);
    w->per_graph = w->lead = (unsigned)n;
    return queued == DEVICE_OK ? made : queued;
}

/* Warms up, and finds out how it is to be timed. */
static enum device_status begin(struct timer *t, struct timed *w)
{
    double seconds;
    w->per_graph = 1;
    TRY(batch(t, w, WARM_UP, &seconds));
    w->lead = seconds < LONG;
    TRY(batch(t, w, PILOT, &seconds));
    if (seconds >= SHORT || (!w->copies && t->plan.n == 0))
        return DEVICE_OK;
    TRY(record(t, w, seconds));
    return batch(t, w, w->per_graph, &seconds); /* its first replay may be slower */
}

static enum device_status time_queued(struct timer *t, unsigned n)
{
    for (size_t i = 0; i < t->plan.n; i++)
        TRY(t->j.ops->queue->prepare(t->j.dev, &t->plan.v[i].l, t->j.r->d));
    TRY(messages_reset(t->j.r, &t->j.messages));
    TRY(begin(t, &t->work));
    if (t->copy_bytes)
        TRY(begin(t, &t->copying));
    /* what the clock or the heat does to an execution, it does to the copy after it */
    for (unsigned i = 0; i < n; i++) {
        TRY(batch(t, &t->work, t->work.per_graph, &t->work.seconds[i]));
        if (t->copy_bytes)
            TRY(batch(t, &t->copying, t->copying.per_graph, &t->copying.seconds[i]));
    }
    return DEVICE_OK;
}

/* ---- on the simulator, which has nothing to warm ---- */

static enum device_status time_launches(struct timer *t, unsigned n, struct run_stats *stats)
{
    TRY(place(t, 0));
    for (unsigned i = 0; i < n; i++) {
        TRY(job_clear(&t->j, &t->set[0]));
        TRY(job_launch(&t->j, &t->plan, stats));
        t->work.seconds[i] = stats->seconds;
    }
    return DEVICE_OK;
}

/* ---- figures ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, unsigned n)
{
    qsort(v, n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void plan_timer(struct timer *t, unsigned n)
{
    struct run *r = t->j.r;
    struct device_info info;
    uint64_t footprint = 0;
    t->j.ops->info(t->j.dev, &info);
    for (size_t i = 0; i < r->ntemp; i++)
        footprint += r->temp[i].host.bytes;
    for (size_t i = 0; i < r->nparam; i++)
        if (run_is_buffer(&r->param[i])) {
            footprint += r->param[i].host.bytes;
            t->bytes += r->param[i].host.bytes * (r->param[i].sym->mode == MODE_INOUT ? 2 : 1);
        }
    bool gpu = t->j.ops->queue != NULL;
    t->copy_bytes = gpu ? copy_wanted(&info, footprint, t->bytes) : 0;
    t->nset = gpu ? sets_wanted(&info, footprint) : 1;
    t->copying.copies = true;
    t->work.seconds = ARENA_ARRAY(r->arena, n, double);
    t->copying.seconds = ARENA_ARRAY(r->arena, n, double);
}

enum device_status run_time(struct run *r, const struct device_ops *ops, struct device *dev,
                            unsigned n, struct run_timing *out)
{
    struct timer *t = ARENA_NEW(r->arena, struct timer);
    struct run_stats stats = {0};
    if (r->contract->is_program)
        return program_time(r, ops, dev, n, out);
    t->j = (struct job){.r = r, .ops = ops, .dev = dev, .opt = run_default, .untold = true};
    plan_for(r, ops, dev);
    if (!plan_make(r, NULL, &t->plan))
        return DEVICE_REFUSED;
    plan_timer(t, n);
    enum device_status status = timer_allocate(t);
    if (status == DEVICE_OK)
        status = ops->queue ? time_queued(t, n) : time_launches(t, n, &stats);
    timer_release(t);
    if (status != DEVICE_OK)
        return status;
    *out = (struct run_timing){.n = n,
                               .median = median(t->work.seconds, n),
                               .bytes = t->bytes,
                               .per_sample = ops->queue ? t->work.per_graph : 1};
    out->min = t->work.seconds[0];
    out->max = t->work.seconds[n - 1];
    if (t->copy_bytes) /* of as many bytes, should it have copied fewer */
        out->copy_median = median(t->copying.seconds, n) * (double)t->bytes /
                           (2 * (double)t->copy_bytes);
    out->thread_instructions = stats.thread_instructions;
    return DEVICE_OK;
}
