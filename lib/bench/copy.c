/* The device's own copy of as many bytes as the kernel moves: half of them read, half of them
 * written. */
#include <config.h>

#include "bench/rival.h"

/* Bytes at each end of a copy that are looked at. */
enum { LOOK = 16 << 20 };

static uint64_t half(const struct rival *v)
{
    return v->bytes / 2;
}
static uint64_t from(const struct rival *v, unsigned set)
{
    return v->base + set * v->set_bytes;
}
static uint64_t to(const struct rival *v, unsigned set)
{
    return from(v, set) + v->set_bytes / 2;
}

/* Random bytes, in blocks that go round all sets: what is copied matters to the power drawn. */
static enum device_status fill_sources(struct rival *v, struct diags *d)
{
    static const struct fill_use use = {0};
    const struct bench_device *b = v->dev;
    struct buffer block = {0};
    uint64_t bytes = half(v) < DATA_PERIOD ? half(v) : DATA_PERIOD;
    enum device_status status = DEVICE_OK;
    buffer_shape(&block, DT_U8, 1, &bytes);
    buffer_alloc(v->a, &block, "the copy");
    fill_buffer(FILL_UNIFORM, v->data_options.seed, "copy", &use, 1, &block);
    if (bytes)
        status = b->ops->write(b->dev, from(v, 0), block.data, bytes, d);
    for (unsigned k = 0; k < v->nset && status == DEVICE_OK; k++)
        for (uint64_t at = k ? 0 : bytes; at < half(v) && status == DEVICE_OK; at += bytes) {
            uint64_t n = half(v) - at < bytes ? half(v) - at : bytes;
            status = b->queue->copy(b->dev, from(v, k) + at, from(v, 0), n, d);
        }
    return status == DEVICE_OK ? b->queue->wait(b->dev, NULL, d) : status;
}

static enum rival_status prepare(struct rival *v, struct diags *d)
{
    v->bytes = v->subject->bytes / 2 * 2;
    if (v->bytes == 0) {
        v->why = "there is nothing to copy";
        return RIVAL_ABSENT;
    }
    v->set_bytes = 2 * ((half(v) + RIVAL_ALIGN - 1) / RIVAL_ALIGN * RIVAL_ALIGN);
    v->nset = rival_sets(v->dev, v->set_bytes);
    v->launches = 1;
    v->repeatable = true;
    enum device_status status = rival_allocate(v, d);
    if (status == DEVICE_OK)
        status = fill_sources(v, d);
    return status == DEVICE_OK ? RIVAL_OK : rival_failed(v, d, RIVAL_FAILED);
}

static enum device_status enqueue(struct rival *v, unsigned set, struct diags *d)
{
    return v->dev->queue->copy(v->dev->dev, to(v, set), from(v, set), half(v), d);
}

static enum device_status poison(struct rival *v, unsigned set, struct diags *d)
{
    return v->dev->queue->fill(v->dev->dev, to(v, set), 0, half(v), d);
}

static enum rival_status check(struct rival *v, unsigned set, struct diags *d)
{
    const struct bench_device *b = v->dev;
    uint64_t n = half(v) < LOOK ? half(v) : LOOK;
    unsigned char *want = arena_alloc(v->a, (size_t)n), *got = arena_alloc(v->a, (size_t)n);
    for (int end = 0; end < 2; end++) {
        uint64_t at = end ? half(v) - n : 0;
        if (b->ops->read(b->dev, want, from(v, set) + at, n, d) != DEVICE_OK ||
            b->ops->read(b->dev, got, to(v, set) + at, n, d) != DEVICE_OK)
            return rival_failed(v, d, RIVAL_FAILED);
        v->checked.right = memcmp(want, got, (size_t)n) == 0;
        v->checked.compared += n;
        if (!v->checked.right) {
            v->why = "what was copied is not what was there";
            return RIVAL_WRONG;
        }
    }
    return RIVAL_OK;
}

static void release(struct rival *v)
{
    if (v->base)
        v->dev->ops->release(v->dev->dev, v->base);
    v->base = 0;
}

const struct rival_ops rival_copy = {
    .prepare = prepare,
    .enqueue = enqueue,
    .poison = poison,
    .check = check,
    .release = release,
};
