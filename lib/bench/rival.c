/* What rivals have in common: buffers in several sets, and how their preparation ends. */
#include <config.h>

#include "bench/rival.h"

unsigned rival_sets(const struct bench_device *dev, uint64_t bytes)
{
    uint64_t stride = bytes ? bytes : 1, most = dev->info.memory / 4 / stride;
    uint64_t n = 2 * dev->info.l2_bytes / stride + 1;
    n = n < most ? n : most;
    n = n < RIVAL_SETS_MOST ? n : RIVAL_SETS_MOST;
    return n ? (unsigned)n : 1;
}

enum rival_status rival_failed(struct rival *v, const struct diags *d, enum rival_status status)
{
    v->why = "it failed";
    for (size_t i = d->list.n; i > 0; i--)
        if (d->list.v[i - 1].level == DIAG_ERROR)
            v->why = d->list.v[i - 1].text;
    return status;
}

enum rival_status rival_prepared(struct rival *v, enum device_status status,
                                 const struct diags *own, struct diags *d)
{
    if (status == DEVICE_OK)
        return RIVAL_OK;
    if (status == DEVICE_REFUSED)
        return rival_failed(v, own, RIVAL_REFUSED);
    diags_append(d, own);
    return rival_failed(v, own, RIVAL_FAILED);
}

/* ---- buffers ---- */

uint64_t rival_reserve(struct rival *v, uint64_t bytes)
{
    const uint64_t at = v->set_bytes;
    v->set_bytes += (bytes + RIVAL_ALIGN - 1) / RIVAL_ALIGN * RIVAL_ALIGN;
    return at;
}

enum device_status rival_allocate(struct rival *v, struct diags *d)
{
    const struct bench_device *b = v->dev;
    const struct device_label label = {.name = v->name, .type = ""};
    return b->ops->alloc(b->dev, v->nset * v->set_bytes, &label, &v->base, d);
}

void rival_place(struct rival *v, struct rival_buffer *x)
{
    x->at = rival_reserve(v, x->bytes);
    v->bytes += x->bytes;
}

uint64_t rival_address(const struct rival *v, const struct rival_buffer *x, unsigned set)
{
    return v->base + set * v->set_bytes + x->at;
}

enum device_status rival_upload(struct rival *v, const struct rival_buffer *x, struct diags *d)
{
    const struct bench_device *b = v->dev;
    const uint64_t first = rival_address(v, x, 0);
    enum device_status status = b->ops->write(b->dev, first, x->host, x->bytes, d);
    for (unsigned k = 1; k < v->nset && status == DEVICE_OK; k++)
        status = b->queue->copy(b->dev, rival_address(v, x, k), first, x->bytes, d);
    return status;
}

enum device_status rival_make_buffers(struct rival *v, const struct rival_buffer *x, size_t n,
                                      struct diags *d)
{
    enum device_status status = rival_allocate(v, d);
    for (size_t i = 0; i < n && status == DEVICE_OK; i++)
        if (x[i].host)
            status = rival_upload(v, &x[i], d);
    return status == DEVICE_OK ? v->dev->queue->wait(v->dev->dev, NULL, d) : status;
}
