/* A device with a module that must be right, to the simulator and to ptxas. */
#ifndef KAIO_TESTS_SIM_JUDGED_H
#define KAIO_TESTS_SIM_JUDGED_H

#include "sim.h"

#include "ptxas.h"

/* Aborts where the module is refused. */
static inline struct sim sim_with(const struct device_ops *ops, struct device_options options,
                                  const char *name, const char *ptx)
{
    struct sim s = {.arena = arena_new(), .options = options};
    s.diags = diags_new(s.arena);
    if (ops->open(s.arena, 0, &options, &s.dev, s.diags) != DEVICE_OK ||
        ops->load(s.dev, source_new(s.arena, name, ptx, strlen(ptx)), s.diags) != DEVICE_OK) {
        fputs(sim_errors(&s), stderr);
        abort();
    }
    return s;
}

/* ptxas must take what the simulator takes, of Hopper's instructions. */
static inline void sim_judged(const char *ptx)
{
    char said[1024];
    FILE *p = ptxas_run(ptx, strlen(ptx), 90, 'a');
    if (!p) {
        tap_note("no ptxas here to judge the kernels");
        return;
    }
    const size_t n = fread(said, 1, sizeof said - 1, p);
    said[n] = '\0';
    while (fgetc(p) != EOF)
        ;
    if (!ok(pclose(p) == 0, "ptxas takes the kernels of this test"))
        tap_note("%s", said);
    ptxas_clean();
}

#endif
