/* What kaio-run was told to do, and a run of it. */
#ifndef KAIO_RUN_TOOL_H
#define KAIO_RUN_TOOL_H

#include "base/cli.h"
#include "base/progress.h"
#include "base/suppress.h"
#include "run/args.h"
#include "run/choose.h"
#include "run/keep.h"
#include "run/launchable.h"
#include "run/weights.h"

struct job {
    struct cli cli;
    struct arena *a;
    struct diags *d;
    struct device_choice device;
    struct device_options device_options;
    struct progress progress;
    const char *kernel;
    const char *tensors; /* the file whose tensors are listed; NULL: none */
    struct launchable_options from;
    struct run_options run_options;
    bool list, lines, quiet, check, time, json, print_suppressions, plan, profile;
    struct suppressions suppressions;
    VEC(const char *) suppression_files, weight_files;
    safetensors_list weights; /* the tensors in those files */
    unsigned rounds;          /* 0: the default */
    VEC(struct run_arg) args;
    VEC(const char *) decls;
    struct launchable program;
    /* the device, while it is open */
    struct device *dev; /* NULL: it is not */
    struct arena *dev_arena;
    struct keep *keep;           /* NULL: no input is kept */
    struct request *now;         /* whose launches run; NULL: nobody's, or they are timed */
    volatile sig_atomic_t *stop; /* set by a signal: the simulation at hand ends */
    int answers;                 /* of --lines: the descriptor; -1: none */
};

/* One run: its arguments, and where it stands. */
struct request {
    struct arena *a;
    struct diags *d;
    const char *kernel; /* NULL: the only one */
    const struct run_arg *arg;
    size_t narg;
    const char *stdin_user; /* as run_bind_args() has it */
    FILE *talk;             /* where what the kernel prints goes; NULL: to said */
    struct buf said;
    struct run *run;           /* once there is one */
    enum device_status device; /* how the launches went */
};

/* ---- work.c: each returns an exit status ---- */

/* Reads all but buffers. *why: as device_settle() has it. */
int job_prepare(struct job *j, const char **why);
/* Opens the device and loads the module. */
int job_open(struct job *j, struct diags *d);
void job_close(struct job *j);
/* Lets signals and what the kernel prints come to j: before job_open(). */
void job_watch(struct job *j);
/* Suppressions that were not needed, though they are for what was launched. */
void job_report_unused(struct job *j, const struct contract *const *c, size_t n);
/* Binds the arguments and checks the launches: all that can be said without a device. */
int request_bind(struct job *j, struct request *q);
/* Launches, and writes the outputs that have a destination. */
int request_execute(struct job *j, struct request *q);
int job_status(const struct job *j, enum device_status s);

/* ---- print.c ---- */

/* On stderr, as text or as JSON; name: in front of what is about no place in a text. */
void print_diags(const struct job *j, const struct diags *d, const char *name);
void print_outputs(const struct run *r, FILE *f);
void print_timing(struct arena *a, const struct run_timing *t, FILE *f);
/* Of a program: what its steps took; what it does and where its memory lies. */
void print_profile(const struct run *r, FILE *f);
bool print_plan(struct run *r, const struct ptx_module *m);
/* A suppression for each finding, once. */
void print_suppressions(const struct diags *d);
/* A quantity with a unit that leaves one to three digits before the point. */
const char *print_scaled(struct arena *a, double v, const char *const units[], double first);

/* ---- answer.c ---- */

struct answer {
    size_t line; /* that is answered, from 1 */
    int status;
    bool skipped; /* the line has no words */
};

/* With its newline. */
void answer_print(const struct job *j, struct request *q, const struct answer *what,
                  struct buf *out);

/* ---- lines.c ---- */

/* --lines: a run for each line of standard input. */
int lines_run(struct job *j);
/* Ends the launch at hand when nobody reads the answers any more. */
void lines_watch(struct job *j);

#endif
