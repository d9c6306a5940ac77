#include <config.h>

#include "bench/measure.h"

#include "data/philox.h"
#include "run/try.h"

#include <math.h>
#include <stdlib.h>

static const double LONG = 100e-6;     /* seconds; a launch costs the host a tenth of that */
static const double VERY_LONG = 10e-3; /* beside that, what starting costs is nothing */
static const double GRAPH_TIME = 1e-3; /* that a graph takes at least, where its nodes suffice */
static const double WARM_MOST = 2;     /* seconds beyond which clocks are not waited for */
static const double WINDOW = 0.1;      /* seconds of rounds whose mean is looked at */
static const double STEADY = 0.01;     /* relative */
enum { GRAPH_NODES = 8192, PILOT = 4, READINGS = 10 };

static enum device_status enqueue(struct measured *m, uint64_t n, struct diags *d)
{
    for (uint64_t i = 0; i < n; i++) {
        TRY(m->rival->ops->enqueue(m->rival, m->next_set, d));
        m->next_set = (m->next_set + 1) % m->rival->nset;
    }
    return DEVICE_OK;
}

/* Queues n executions; with a graph a multiple of what it holds. */
static enum device_status queue(struct measured *m, uint64_t n, struct diags *d)
{
    const struct bench_device *b = m->rival->dev;
    if (!m->graph)
        return enqueue(m, n, d);
    for (uint64_t i = 0; i < n; i += m->per_graph)
        TRY(b->queue->replay(b->dev, m->graph, d));
    return DEVICE_OK;
}

/* Events around n executions. c: reads the sensors while they run; may be NULL. */
static enum device_status batch(struct measured *m, uint64_t n, struct conditions *c,
                                double *seconds, struct diags *d)
{
    const struct bench_device *b = m->rival->dev;
    struct device_sensors s;
    /* the device is busy with these while the host queues what is timed */
    TRY(queue(m, m->lead, d));
    TRY(b->queue->mark(b->dev, false, d));
    TRY(queue(m, n, d));
    TRY(b->queue->mark(b->dev, true, d));
    if (c && !c->missing && !(c->missing = b->queue->sensors(b->dev, &s))) {
        c->readings++;
        c->sm_mhz += s.sm_mhz;
        c->memory_mhz += s.memory_mhz;
        c->watts += s.watts;
        c->min_sm_mhz = c->readings == 1 ? s.sm_mhz : fmin(c->min_sm_mhz, s.sm_mhz);
        c->max_sm_mhz = s.max_sm_mhz;
        c->celsius = s.celsius;
        c->limit_watts = s.limit_watts;
        c->throttle |= s.throttle;
        memcpy(c->driver, s.driver, sizeof c->driver);
    }
    TRY(b->queue->wait(b->dev, seconds, d));
    *seconds /= (double)n;
    return DEVICE_OK;
}

/* ---- preparing ---- */

static enum device_status record(struct measured *m, double seconds, struct diags *d)
{
    const struct bench_device *b = m->rival->dev;
    unsigned most = GRAPH_NODES / (m->rival->launches + m->rival->clears), sets = m->rival->nset;
    double rotations = ceil(GRAPH_TIME / (fmax(seconds, 1e-7) * sets));
    double n = fmin(fmax(rotations, 1) * sets, fmax(most, 1));
    m->next_set = 0;
    TRY(b->queue->record(b->dev, d));
    enum device_status queued = enqueue(m, (uint64_t)n, d);
    enum device_status made = b->queue->recorded(b->dev, &m->graph, d);
    m->per_graph = (unsigned)n;
    return queued == DEVICE_OK ? made : queued;
}

/* How long an execution takes, queued one by one. */
static enum device_status pilot(struct measured *m, double *seconds, struct diags *d)
{
    m->per_graph = 1;
    m->lead = 0;
    m->next_set = 0;
    TRY(batch(m, 1, NULL, seconds, d));
    if (*seconds < VERY_LONG) {
        m->lead = 1;
        TRY(batch(m, PILOT, NULL, seconds, d));
    }
    return DEVICE_OK;
}

static enum device_status begin(struct measured *m, const struct measure_options *o,
                                struct diags *d)
{
    double seconds;
    TRY(pilot(m, &seconds, d));
    if (seconds < LONG) {
        TRY(record(m, seconds, d));
        m->lead = m->per_graph;
        TRY(batch(m, m->per_graph, NULL, &seconds, d)); /* without what queueing one by one costs */
    }
    double n = ceil(o->round_seconds / (fmax(seconds, 1e-9) * m->per_graph));
    m->per_round = (uint64_t)fmax(n, 1) * m->per_graph;
    m->expected = seconds * (double)m->per_round;
    return DEVICE_OK;
}

static void failed(struct measured *m, const struct diags *d)
{
    m->status = RIVAL_FAILED;
    m->why = d->list.n ? d->list.v[d->list.n - 1].text : "it failed";
}

bool measure_pilot(struct measured *m, double *seconds, struct diags *d)
{
    if (pilot(m, seconds, d) == DEVICE_OK)
        return true;
    failed(m, d);
    return false;
}

void measure_begin(struct arena *a, struct measured *m, size_t n, const struct measure_options *o,
                   struct diags *d)
{
    for (size_t i = 0; i < n; i++) {
        if (m[i].status != RIVAL_OK)
            continue;
        m[i].sample = ARENA_ARRAY(a, o->runs, double);
        if (begin(&m[i], o, d) != DEVICE_OK)
            failed(&m[i], d);
    }
}

void measure_end(struct measured *m, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct bench_device *b = m[i].rival->dev;
        if (m[i].graph)
            b->queue->discard(b->dev, m[i].graph);
        m[i].graph = NULL;
    }
}

/* ---- rounds ---- */

/* The contenders in an order of the round's own. */
static void draw_order(size_t *order, size_t n, unsigned round)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t left = n; left > 1; left--) {
        uint32_t word[4];
        philox_words(0, round, left, word);
        const size_t other = word[0] % left, last = order[left - 1];
        order[left - 1] = order[other];
        order[other] = last;
    }
}

/* Of n contenders; order and seconds have room for them. */
struct contest {
    struct measured *m;
    size_t n, *order;
    double *seconds;
};

static bool one_round(const struct contest *t, unsigned round, struct conditions *c,
                      struct diags *d)
{
    struct measured *m = t->m;
    draw_order(t->order, t->n, round);
    for (size_t k = 0; k < t->n; k++) {
        const size_t i = t->order[k];
        if (m[i].status == RIVAL_OK &&
            batch(&m[i], m[i].per_round, i == 0 ? c : NULL, &t->seconds[i], d) != DEVICE_OK) {
            failed(&m[i], d);
            return false;
        }
    }
    return true;
}

/* What the rounds since it began took on the device. */
struct window {
    double seconds;
    unsigned rounds;
};

static double mean(struct window w)
{
    return w.rounds ? w.seconds / w.rounds : 0;
}

static double seconds_of_round(const struct contest *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->m[i].status == RIVAL_OK)
            sum += t->seconds[i] * (double)t->m[i].per_round;
    return sum;
}

/* Rounds that do not count, until their times no longer drift: the means of two windows, one after
 * the other, are alike. Single rounds never are where power is the limit: a clock that is held at
 * it goes up and down by two or three percent. */
static bool warm_up(const struct contest *t, const struct measure_options *o, struct conditions *c,
                    struct diags *d)
{
    struct window now = {0}, before = {0};
    if (o->warm_seconds <= 0)
        return true;
    for (unsigned round = 0; !*o->interrupted; round++) {
        if (!one_round(t, round, NULL, d))
            return false;
        const double seconds = seconds_of_round(t);
        c->warm_seconds += seconds;
        now.seconds += seconds;
        now.rounds++;
        if (now.seconds >= WINDOW) {
            c->steady = fabs(mean(now) - mean(before)) <= STEADY * mean(now);
            before = now;
            now = (struct window){0};
        }
        if (c->warm_seconds >= o->warm_seconds &&
            (c->steady || c->warm_seconds >= fmax(WARM_MOST, o->warm_seconds)))
            return true;
    }
    return false;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of n numbers, in order. */
static double median_of(const double *v, unsigned n)
{
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void summarise(struct arena *a, struct measured *m, const struct measured *first)
{
    double *v = ARENA_ARRAY(a, m->n, double);
    memcpy(v, m->sample, m->n * sizeof *v);
    qsort(v, m->n, sizeof *v, by_value);
    m->best = v[0];
    m->worst = v[m->n - 1];
    m->median = median_of(v, m->n);
    if (first->status != RIVAL_OK || first->n != m->n)
        return;
    for (unsigned i = 0; i < m->n; i++)
        v[i] = m->sample[i] / first->sample[i];
    qsort(v, m->n, sizeof *v, by_value);
    m->ratio = median_of(v, m->n);
}

/* Where executions are longer than a round, as many rounds as take the time that all would. */
static unsigned rounds_of(const struct measured *m, size_t n, const struct measure_options *o)
{
    double longest = o->round_seconds;
    for (size_t i = 0; i < n; i++)
        if (m[i].status == RIVAL_OK && m[i].per_round == 1)
            longest = fmax(longest, m[i].expected);
    const double rounds = o->runs * o->round_seconds / longest;
    return o->least && rounds < o->runs ? (unsigned)fmax(rounds, o->least) : o->runs;
}

bool measure_rounds(struct arena *a, struct measured *m, size_t n, const struct measure_options *o,
                    struct conditions *c, struct diags *d)
{
    const struct contest t = {m, n, ARENA_ARRAY(a, n, size_t), ARENA_ARRAY(a, n, double)};
    *c = (struct conditions){0};
    for (size_t i = 0; i < n; i++)
        m[i].n = 0;
    if (!warm_up(&t, o, c, d))
        return false;
    const unsigned runs = rounds_of(m, n, o);
    for (unsigned round = 0; round < runs && !*o->interrupted; round++) {
        if (!one_round(&t, round, round * READINGS % runs < READINGS ? c : NULL, d))
            return false;
        for (size_t i = 0; i < n; i++)
            if (m[i].status == RIVAL_OK)
                m[i].sample[m[i].n++] = t.seconds[i];
    }
    if (c->readings) {
        c->sm_mhz /= c->readings;
        c->memory_mhz /= c->readings;
        c->watts /= c->readings;
    }
    for (size_t i = 0; i < n; i++)
        if (m[i].status == RIVAL_OK && m[i].n == runs)
            summarise(a, &m[i], &m[0]);
    return !*o->interrupted;
}
