#include <config.h>

#include "bench/choice.h"

#include <math.h>

static const double TRIAL = 4e-3; /* seconds of a batch */
enum { TRIALS = 3, EXECUTIONS_MOST = 1000 };

/* Seconds of an execution among n, by the sets in turn. */
static enum device_status time_batch(const struct choice *c, unsigned way, unsigned n,
                                     double *seconds, struct diags *d)
{
    const struct bench_device *b = c->v->dev;
    enum device_status status = b->queue->mark(b->dev, false, d);
    for (unsigned k = 0; k < n && status == DEVICE_OK; k++)
        status = c->run(c->ctx, way, k % c->v->nset, d);
    if (status == DEVICE_OK)
        status = b->queue->mark(b->dev, true, d);
    if (status == DEVICE_OK)
        status = b->queue->wait(b->dev, seconds, d);
    *seconds /= n;
    return status;
}

static enum device_status time_way(const struct choice *c, unsigned way, double *best,
                                   struct diags *d)
{
    double seconds = 0;
    enum device_status status = time_batch(c, way, 2, &seconds, d);
    double wanted = ceil(TRIAL / fmax(seconds, 1e-7));
    unsigned n = wanted < 2 ? 2 : wanted < EXECUTIONS_MOST ? (unsigned)wanted : EXECUTIONS_MOST;
    *best = INFINITY;
    for (int t = 0; t < TRIALS && status == DEVICE_OK; t++) {
        status = time_batch(c, way, n, &seconds, d);
        *best = fmin(*best, seconds);
    }
    return status;
}

enum device_status choice_fastest(const struct choice *c, unsigned n, unsigned *best,
                                  struct diags *d)
{
    double least = INFINITY;
    struct diags *own = NULL;
    *best = 0;
    for (unsigned k = 0; k < n && n > 1; k++) {
        double seconds;
        own = diags_new(c->v->a);
        enum device_status status = time_way(c, k, &seconds, own);
        if (status != DEVICE_OK && status != DEVICE_REFUSED) {
            diags_append(d, own);
            return status;
        }
        if (status == DEVICE_OK && seconds < least) {
            least = seconds;
            *best = k;
        }
    }
    if (own && least == INFINITY) { /* it has refused all that it has offered */
        diags_append(d, own);
        return DEVICE_REFUSED;
    }
    return DEVICE_OK;
}
