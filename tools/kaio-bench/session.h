/* A run of kaio-bench: what the command line asked for, and where it has got to. */
#ifndef KAIO_BENCH_SESSION_H
#define KAIO_BENCH_SESSION_H

#include "base/cli.h"
#include "base/io.h"
#include "base/progress.h"
#include "bench/baseline.h"
#include "bench/means.h"
#include "bench/plan.h"
#include "bench/plot.h"
#include "bench/report.h"
#include "bench/suite.h"
#include "lower/tuned.h"

/* One kernel with its problems; a suite has several. */
struct job {
    const struct source *text;
    const char *kernel;
    size_t begin, end; /* in session.points */
};

struct session {
    struct cli cli;
    struct arena *a;
    struct diags *d;
    struct bench bench;
    struct bench_device dev;
    struct sweep sweep;
    struct sweep_points points; /* of all jobs */
    VEC(struct job) jobs;
    VEC(const char *) vs;
    VEC(struct spec_define) defines;
    const struct suite *suite; /* NULL: a spec */
    const char *types;         /* of the suite, "f16,f32"; NULL: all */
    const char *device, *target, *kernel, *output, *keep, *plot_file, *baseline_file;
    int format; /* enum report_format; -1: not given */
    bool dry_run;
    bool tune, retune, tuned;
    unsigned threads;       /* that compile for --tune; 0: one for each core */
    const char *cache_file; /* NULL: where it always is */
    struct tuned_cache cache;
    struct report table, report;
    bool to_stdout, to_file;
    struct io_out *out, *plot_out; /* of what is replaced as a whole */
    struct plot plot;
    struct means means;
    struct baseline baseline;
    double fail_below;
    FILE *append; /* of JSON lines */
    struct progress progress;
    size_t at;              /* the problem that it has come to */
    char doing[64];         /* what is done there */
    const char *no_sensors; /* told already */
    VEC(const char *) said; /* of rivals */
    int status;
    const volatile sig_atomic_t *interrupted;
};

static inline void worse(struct session *s, int status)
{
    s->status = status > s->status ? status : s->status;
}

/* problems.c: reads the specs and multiplies the sweeps out. False with errors in s->d. */
bool make_problems(struct session *s);
/* Makes the kernel of a job, and its rivals, those of s->bench. */
bool begin_job(struct session *s, const struct job *job);
/* Emits what would be timed: for a dry run, and for --keep. */
void plan_all(struct session *s);

/* tune.c: reads the cache if one is wanted. False with errors in s->d. */
bool read_cache(struct session *s);
/* "matmul_f16 m=64": the kernel that begin_job() has made, with a problem. */
const char *problem_text(struct session *s, const struct bench_point *p);
/* Gives the kernel the schedule that --tune or --tuned says for a problem. */
void choose_schedule(struct session *s, const struct bench_point *p);
/* What --tune would try. */
void plan_tune(struct session *s, const struct bench_point *p);

/* rows.c: the files that rows go to. False with errors in s->d. */
bool open_outputs(struct session *s);
void close_outputs(struct session *s, bool good);
/* A part of the report; rows that a reader of JSON may follow are out at once. */
void write_text(struct session *s, const struct buf *file, const struct buf *table);
void time_all(struct session *s);

#endif
