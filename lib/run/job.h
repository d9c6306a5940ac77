/* A run's buffers on a device, and its launches. Private to lib/run. */
#ifndef KAIO_RUN_JOB_H
#define KAIO_RUN_JOB_H

#include "run/messages.h"
#include "run/plan.h"

/* Buffers: one allocation each. */
struct job_set {
    uint64_t *base;    /* by run_buffer(); 0: none */
    uint64_t *address; /* behind the guard band */
};

struct job {
    struct run *r;
    const struct device_ops *ops;
    struct device *dev;
    struct run_options opt;
    struct message_buffer messages;
    bool untold; /* messages are not read */
    bool params; /* the temps are somewhere else */
    /* of what buffers are filled with; made when it is needed */
    unsigned char *piece;
    size_t piece_bytes;
};

/* What reports call the run's buffer. */
struct device_label job_label(struct run *r, size_t buffer);
/* Has every input its contents? */
bool job_inputs_given(struct run *r);
/* s is to be released also when it fails. */
enum device_status job_allocate(struct job *j, struct job_set *s);
void job_release(struct job *j, struct job_set *s);
/* The inputs' contents, zeros, the poison of outputs, guard bands. */
enum device_status job_upload(struct job *j, struct job_set *s);
/* Inputs that are to be kept (keep.h) are no longer the set's, and not released with it. */
void job_keep(struct job *j, struct job_set *s);
/* The same of a program's state, once its launch is over and read back. */
void job_keep_states(struct job *j, struct job_set *s);
/* The inouts' contents alone: what a run changes of its inputs. */
enum device_status job_restore(struct job *j, struct job_set *s);
/* Clears the temps that every run finds zero: before each run but the first after job_upload(). */
enum device_status job_clear(struct job *j, const struct job_set *s);
/* The outputs' contents into result, after a look at the guard bands. */
enum device_status job_download(struct job *j, struct job_set *s);
/* All launches of the plan in order, each waited for. */
enum device_status job_launch(struct job *j, const struct plan *plan, struct run_stats *stats);

#endif
