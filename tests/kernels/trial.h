/* Trials: a kernel's text, executed on a device and by the evaluator on the same inputs, and the
 * results compared byte by byte (one NaN being as good as another).
 *
 * The spec says everything: its first case binds the dimensions and scalars, and the inputs are
 * made from the names of the buffers and the trial's seed.
 */
#ifndef KAIO_TESTS_KERNELS_TRIAL_H
#define KAIO_TESTS_KERNELS_TRIAL_H

#include "kernels/eval.h"
#include "run/run.h"

enum verdict {
    SAME,
    REFUSED,   /* the spec or the PTX is not accepted: it should be */
    UNKNOWN,   /* the evaluator did not get through it */
    FAULT,     /* the device did not */
    DIFFERENT, /* the bytes differ */
    CRASHED,   /* the process died: set by who watches it */
};
const char *verdict_name(enum verdict v);

struct trial {
    const char *text; /* the spec */
    uint64_t seed;    /* of the inputs */
    const char *name; /* for messages */
    struct spec *spec;
    VEC(struct spec_define) fixed; /* dimensions that are fixed at emission */
    struct run *run; /* param[i].host: the inputs; param[i].result: what the device made */
    struct eval_param *expect; /* and what the evaluator made */
    const char *ptx;
    enum verdict verdict;
    const char *why; /* more than a line, maybe; "" */
};

struct trial_device {
    const struct device_ops *ops;
    struct device *dev;
    const struct ptx_target *target;
    uint32_t guard; /* run_options.guard */
};

/* A new trial with its spec read: verdict REFUSED, or SAME so far. The seed also says which
 * dimensions are fixed. */
struct trial *trial_new(struct arena *a, const char *name, const char *text, uint64_t seed);
/* Evaluates it: UNKNOWN, or SAME so far. */
void trial_evaluate(struct arena *a, struct trial *t);
/* Emits it alone, for whether that works: REFUSED, or SAME so far. */
void trial_emit(struct arena *a, struct trial *t, const struct ptx_target *target);
/* Emits all that are SAME so far as one module and runs each. After a FAULT of a GPU the device is
 * no more good and false is returned: the trials after that one have not been run. */
bool trials_execute(struct arena *a, struct trial **t, size_t n, const struct trial_device *on);

/* Everything about the trial into a directory: the spec, the PTX, the inputs and results as npy
 * files, and the command that runs it. */
bool trial_write(const struct trial *t, const char *dir);

#endif
