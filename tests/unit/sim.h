/* A simulator, a module and buffers, for the simulator's unit tests. */
#ifndef KAIO_TESTS_SIM_H
#define KAIO_TESTS_SIM_H

#include <config.h>

#include "base/io.h"
#include "run/device.h"
#include "tap.h"

struct sim {
    struct arena *arena;
    struct diags *diags;
    struct device *dev;
    struct device_options options;
    struct device_stats stats;
    const void *arg[16];
    size_t arg_bytes[16];
    uint64_t value[16];
    size_t narg;
};

__attribute__((unused)) static struct sim sim_begin(struct device_options options)
{
    struct sim s = {.arena = arena_new(), .options = options};
    s.diags = diags_new(s.arena);
    if (sim_device.open(s.arena, 0, &options, &s.dev, s.diags) != DEVICE_OK)
        abort();
    return s;
}

__attribute__((unused)) static void sim_end(struct sim *s)
{
    sim_device.close(s->dev);
    arena_free(s->arena);
}

/* What has been reported since the last call, as a tool would print it. */
__attribute__((unused)) static const char *sim_errors(struct sim *s)
{
    struct buf b = buf_in(s->arena);
    diags_format(s->diags, "kaio-run", false, &b);
    s->diags = diags_new(s->arena);
    return buf_text(&b);
}

__attribute__((unused)) static enum device_status sim_load_text(struct sim *s, const char *name,
                                                                const char *ptx)
{
    return sim_device.load(s->dev, source_new(s->arena, name, ptx, strlen(ptx)), s->diags);
}

/* A buffer with n elements of so many bytes, from data unless NULL. */
__attribute__((unused)) static uint64_t sim_buffer(struct sim *s, const char *name,
                                                   const char *type, size_t n, unsigned bytes,
                                                   const void *data, bool read_only)
{
    const struct device_label label = {
        .name = name, .type = type, .element_bits = bytes * 8, .read_only = read_only};
    uint64_t address = 0;
    if (sim_device.alloc(s->dev, n * bytes, &label, &address, s->diags) != DEVICE_OK ||
        (data && sim_device.write(s->dev, address, data, n * bytes, s->diags) != DEVICE_OK))
        abort();
    return address;
}

__attribute__((unused)) static void sim_arg(struct sim *s, uint64_t value, size_t bytes)
{
    s->value[s->narg] = value;
    s->arg[s->narg] = &s->value[s->narg];
    s->arg_bytes[s->narg++] = bytes;
}

/* Launches with the arguments given since the last launch. */
__attribute__((unused)) static enum device_status sim_go(struct sim *s, const char *entry,
                                                         uint32_t grid, uint32_t block)
{
    for (size_t i = 0; i < s->narg; i++)
        s->arg[i] = &s->value[i];
    const struct device_launch l = {.entry = entry,
                                    .grid = {grid, 1, 1},
                                    .block = {block, 1, 1},
                                    .args = s->arg,
                                    .arg_bytes = s->arg_bytes,
                                    .narg = s->narg};
    s->narg = 0;
    return sim_device.launch(s->dev, &l, 1, &s->stats, s->diags);
}

__attribute__((unused)) static void sim_fetch(struct sim *s, void *to, uint64_t address,
                                              size_t bytes)
{
    if (sim_device.read(s->dev, to, address, bytes, s->diags) != DEVICE_OK)
        abort();
}

#endif
