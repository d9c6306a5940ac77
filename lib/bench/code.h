/* A kernel's code at one point of a sweep: read, emitted, bound. */
#ifndef KAIO_BENCH_CODE_H
#define KAIO_BENCH_CODE_H

#include "bench/sweep.h"
#include "ptx/ptx.h"
#include "ref/ref.h"
#include "run/plan.h"

/* A kernel has these in common at all points. */
struct code_source {
    const struct source *text;     /* the spec file */
    const char *kernel;            /* one of its kernels */
    const struct source *schedule; /* "{strategy: naive}", instead of the spec's own; NULL: that */
    const struct ptx_target *target;
    bool generic; /* dimensions stay arguments, but for: */
    const struct spec_define *define;
    size_t ndefine; /* fixed at emission in any case */
};

struct code {
    struct arena *a;
    struct diags *d;
    struct spec *spec;
    VEC(struct spec_define) defines; /* that it was read with */
    const struct source *ptx;
    const struct ptx_module *module;
    struct contract *contract;
    struct run *run; /* every shape known */
    struct spec_sums sums;
    struct plan plan;      /* of its launches */
    struct ref_input in;   /* its dimensions and scalars; buffers where they were filled */
    const char *case_name; /* whose inputs have what it says; NULL: none */
    uint64_t footprint;    /* bytes of all its buffers, each once */
    uint64_t bytes; /* that an execution moves at least: each in and out once, each inout twice */
};

/* The kernel called `name`, or the file's only one: NULL with an error that lists them. */
struct spec *code_choose(struct spec_file *f, const char *path, const char *name, struct diags *d);
/* Reads it for the point: spec and defines. False with errors in d. */
bool code_read(struct arena *a, const struct code_source *src, const struct bench_point *p,
               struct code *out, struct diags *d);
/* Emits the kernel for the point and binds it; only names that this kernel has are taken from the
 * point. multiprocessors: of the device that it is for, 0: of the target's. False with errors in d.
 * Memory is a's. */
bool code_make(struct arena *a, const struct code_source *src, const struct bench_point *p,
               unsigned multiprocessors, struct code *out, struct diags *d);

#endif
