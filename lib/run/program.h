/* A program at work (spec/contract.h, "programs"): its steps with what is known of each before it
 * is reached, the kernels bound to sizes, and the memory. Private to lib/run.
 *
 *     program_new()       the steps as a tree with numbered calls     program.c
 *     program_walk()      every call in the order of execution        program_walk.c
 *     program_resolve()   a call's views and numbers, bound           program_call.c,
 * program_view.c program_place()     temps in one piece of memory                program_memory.c
 *     program_perform()   a call on the device                        program_device.c
 *     program_watch_before()  and who watches it                      program_watch.c
 */
#ifndef KAIO_RUN_PROGRAM_H
#define KAIO_RUN_PROGRAM_H

#include "run/job.h"

/* A kernel with the shapes of its buffers and the numbers that decide how it is launched: made once
 * for all calls that have the same. */
struct program_bound {
    struct program_bound *next; /* in its bucket */
    const uint64_t *key;        /* the kernel, shapes and numbers */
    size_t nkey;
    struct run *run;
    struct plan plan;
    uint64_t scratch;     /* bytes of the temps that live during a call only */
    uint64_t *persistent; /* by temp: of those that keep their zeros, once it is made; else 0 */
    uint64_t *address;    /* by run_buffer(): what the plan was last given */
    uint64_t *next_address;
    bool placed, wants_messages;
};

/* A call, or what a while or an if asks. */
struct program_call {
    const struct contract_step *step;
    uint32_t number;           /* in the order of the text */
    const size_t *param;       /* by actual: the kernel's parameter */
    const bool *free;          /* by actual: a number that only travels: any will do for a bound */
    size_t *buffer;            /* by actual: the program's run_buffer() */
    struct program_part *part; /* by actual, when it is reached */
    struct run_param *value;   /* likewise, of numbers */
    uint64_t *key;
    size_t asked;                 /* the actual that holds the answer */
    struct program_bound *bound;  /* the last; NULL: none yet */
    uint64_t scratch, scratch_at; /* the most bytes beside its buffers, and where they lie */
    struct run_cost cost;
};

struct program_step {
    const struct contract_step *src;
    struct program_call *call; /* NULL: it is a for or a repeat */
    struct program_step *body, *other;
    size_t nbody, nother, ncall;
    uint32_t first; /* the number of the first of its ncall calls */
    bool varies;    /* STEP_FOR: something in its body depends on the index */
};

enum { PROGRAM_BUCKETS = 1024, PROGRAM_BOUND_MOST = 4096 };

struct program {
    struct run *r;
    const struct ptx_module *m;
    struct program_step *step;
    size_t nstep;
    struct program_call *call;
    size_t ncall;
    struct run_loop *loop; /* r->loop, to change */

    /* the walk */
    bool rehearsal;  /* nothing is launched: both ways of an if, loops as often as they matter */
    uint64_t budget; /* of a rehearsal: calls and iterations that it still goes through */
    uint64_t visits; /* calls so far */
    uint64_t idle;   /* iterations since the last of them */
    enum device_status (*visit)(struct program *p, struct program_call *c);
    void (*show)(void *ctx, const struct run_call *c); /* in a rehearsal; NULL: to nobody */
    void *show_ctx;

    /* bound kernels */
    struct arena *cache; /* of all of them; NULL: there are none */
    struct program_bound **bucket;
    size_t nbound;

    /* memory */
    bool apart;        /* every temp has memory of its own, which reports name */
    uint64_t *temp_at; /* by temp: where it lies in the arena */
    uint64_t peak;     /* bytes of the arena */

    /* the device */
    struct job job; /* the program's parameters, and its temps where they lie apart */
    struct job_set set;
    uint64_t base;                  /* the arena's address; 0: there is none */
    struct device_label *label;     /* by run_buffer(), where temps lie apart */
    struct message_buffer messages; /* of whatever kernel is launched */
    uint64_t extra, extra_bytes;    /* scratch for calls that need more than was known */
    uint64_t lend_at;               /* where the next scratch of the call at hand is */
    VEC(uint64_t) lent;             /* of the call at hand, where temps lie apart */
    struct diags *heard;            /* of the launch at hand */
    struct buf said;
    struct arena *seen; /* contents of the call that is watched; NULL: none is */
    bool enough;        /* who watches has seen enough */
    struct run_stats stats;
};

/* m may be NULL. */
struct program *program_new(struct run *r, const struct ptx_module *m);
/* A program that is rehearsed and placed, for who ends with program_forget() or program_release().
 * NULL with errors. */
struct program *program_prepare(struct run *r, const struct ptx_module *m, bool apart);
/* Goes through all calls, for the rehearsal or for the device. */
enum device_status program_walk(struct program *p);
/* Rehearses: whatever is wrong with a call is found, and c->scratch is known. */
bool program_rehearse(struct program *p);
/* Evaluates the arguments and finds the bound kernel: c->part, c->value and c->bound. False with
 * errors, and a note with the step. */
bool program_resolve(struct program *p, struct program_call *c);
void program_forget(struct program *p); /* all bound kernels */
/* The bytes that the call needs beside its buffers. */
uint64_t program_scratch(const struct program_call *c);
/* Does the part begin where a kernel may not take it, so that it is copied? */
static inline bool program_is_skewed(const struct program_part *part)
{
    return part->at % 16 != 0 && part->shape.bytes;
}
static inline uint64_t program_aligned(uint64_t bytes)
{
    return (bytes + 255) & ~UINT64_C(255);
}
bool program_view(struct program *p, const struct contract_view *v, size_t buffer,
                  struct program_part *out);
/* Gives temps and scratch their places, after the rehearsal. */
void program_place(struct program *p);

/* A call on the device. */
enum device_status program_perform(struct program *p, struct program_call *c);
enum device_status program_answer(struct program *p, struct program_call *c, bool *go_on);
enum device_status program_allocate(struct program *p);
void program_release(struct program *p);
/* Where the call's actual lies. */
uint64_t program_address(const struct program *p, const struct program_call *c, size_t actual);
/* program_watch.c: around the launches of a call. */
enum device_status program_watch_before(struct program *p, struct program_call *c);
enum device_status program_watch_behind(struct program *p, struct program_call *c);
struct run_call program_shown(const struct program *p, const struct program_call *c);
/* What parameters and temps hold when the program begins. */
enum device_status program_upload(struct program *p);
/* What is left of that after a run. */
enum device_status program_restore(struct program *p);

/* "heat_step(x: u, y: v)" */
const char *program_call_text(struct arena *a, const struct contract_step *s);
/* Where a step is: its line in the source, or in the contract. */
struct span program_span(struct arena *a, const struct contract *c, const struct contract_step *s);
/* Appends `more` to d, and the step to each error and warning. */
void program_tell(struct program *p, const struct program_call *c, struct diags *d,
                  const struct diags *more);

/* For run_check(), run_execute() and run_time(). */
bool program_check(struct run *r, const struct ptx_module *m);
enum device_status program_execute(struct run *r, const struct ptx_module *m,
                                   const struct device_ops *ops, struct device *dev,
                                   const struct run_options *opt, struct run_stats *stats);
enum device_status program_time(struct run *r, const struct device_ops *ops, struct device *dev,
                                unsigned n, struct run_timing *t);

#endif
