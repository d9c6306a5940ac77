/* Binds values to a launch contract and executes it on a device.
 *
 *     struct run *r = run_new(a, contract, d);
 *     run_bind_dim(r, dim, 1024, "n=1024 was given");     and scalars, and buffers whose shapes are
 *                                                         known
 *     run_shapes(r);                                      every shape is known now, every
 *                                                         requirement holds
 *     r->param[k].host.data = ...;                        contents of the inputs, where they were
 *                                                         not bound with it
 *     run_execute(r, module, ops, dev, NULL, &stats);     the outputs are in
 *                                                         r->param[k].result.data
 *
 * Each step returns false (or a device status) with errors in the run's diags. Nothing is allocated
 * on the device before everything that can be checked has been. All memory is the arena's; the
 * caller loads the PTX into the device. Values that users write as text (NAME=VALUE) are bound by
 * args.h.
 */
#ifndef KAIO_RUN_RUN_H
#define KAIO_RUN_RUN_H

#include "data/buffer.h"
#include "ptx/ptx.h"
#include "run/device.h"
#include "spec/contract.h"

struct io_out;
struct keep;
struct kept;
struct keep_wish;

struct run_dim {
    struct lang_symbol *sym;
    bool known;
    int64_t value;
    const char *from; /* why, in half a sentence: "n=4 was given", "x is f32[4], so n is 4" */
};

struct run_param {
    const struct spec_param *decl;
    struct lang_symbol *sym;
    bool given;           /* a scalar has its value; a buffer's shape was given, not computed */
    double f;             /* a scalar's value: floats rounded to the type ... */
    int64_t i;            /* ... integers and bool in two's complement */
    struct buffer host;   /* a buffer's shape, and contents before the launch; NULL: an output */
    struct buffer result; /* an out's or inout's contents after it */
    /* args.c: */
    const char *destination; /* where the result goes; NULL: nowhere */
    struct io_out *out;
    bool unsourced; /* a program's state that no contents were given for */
    /* keep.c: */
    const struct kept *kept; /* memory of the device that has the contents, in place of host.data */
    const struct keep_wish *wish; /* that they be kept; NULL: there is none */
};

/* A record of print() or assert(). */
struct run_message {
    const struct contract_message *what;
    struct device_dim block, thread;
    const uint32_t *words; /* the arguments */
    size_t order;          /* in which they were claimed */
};
struct run_messages {
    VEC(struct run_message)
    v;                     /* launch by launch, each sorted by block and thread unless by_time */
    uint64_t lost, needed; /* records that did not fit; message_bytes with which all do */
    struct buf said;       /* of a program that nobody listens to: what its kernels said */
};

/* The index of a loop of a program around the call at hand. */
struct run_loop {
    const struct lang_symbol *sym;
    int64_t value;
};

/* What a step of a program took, all its calls together. */
struct run_cost {
    struct span span; /* in the launch contract */
    uint32_t line;    /* of the program's source; 0: unknown */
    const char *text; /* the call */
    uint64_t calls, launches, thread_instructions;
    double seconds;
};

struct run {
    struct arena *arena;
    struct diags *d;
    const struct contract *contract;
    struct run_param *param; /* in the contract's order */
    struct run_dim *dim;     /* in the contract's order */
    size_t nparam, ndim;
    struct run_param
        *temp; /* the contract's temps, in its order: sym, and host's shape once it is known */
    size_t ntemp;
    /* of the device whose launches are planned, which a grid may take: run_execute() and run_time()
     * set it; in run_check() it may still be any, and such grids are looked at later */
    unsigned multiprocessors;
    bool any_device;
    /* Of the host's memory, set before run_bind_args(): whether the device's memory is in it, and
     * whether more may be asked for than there is. */
    struct {
        bool simulated, overcommit;
        bool lacking; /* run_fits() found that there is less */
    } memory;
    struct keep *keep;            /* set before run_bind_args(): keep.h; NULL: nothing is kept */
    struct run_messages messages; /* of the last run_execute(), also when it failed */
    /* of a program: the loops around the call at hand, and its steps after a run_execute() */
    const struct run_loop *loop;
    size_t nloop;
    VEC(struct run_cost) costs;
};

static inline bool run_is_buffer(const struct run_param *p)
{
    return p->sym->kind == SYM_BUFFER;
}
static inline bool run_is_input(const struct run_param *p) /* in or inout */
{
    return run_is_buffer(p) && p->sym->mode != MODE_OUT;
}
static inline bool run_is_output(const struct run_param *p) /* out or inout */
{
    return run_is_buffer(p) && p->sym->mode != MODE_IN;
}

/* Its buffers: the parameters, then the temps, numbered through. */
static inline size_t run_nbuffer(const struct run *r)
{
    return r->nparam + r->ntemp;
}
static inline struct run_param *run_buffer(const struct run *r, size_t i)
{
    return i < r->nparam ? &r->param[i] : &r->temp[i - r->nparam];
}

/* Is it a temp that begins as zeros, and one that is cleared before every run of the launches? */
static inline bool run_is_zeroed(const struct run *r, size_t buffer)
{
    return buffer >= r->nparam && r->contract->temps.v[buffer - r->nparam].is_zero;
}
static inline bool run_is_cleared(const struct run *r, size_t buffer)
{
    return buffer >= r->nparam && r->contract->temps.v[buffer - r->nparam].each_run;
}

/* While no device is known its multiprocessors are an H100's. */
enum { RUN_MULTIPROCESSORS = 132 };

/* d is kept and used by every later call. Dimensions that were fixed at emission are known from the
 * start. */
struct run *run_new(struct arena *a, const struct contract *c, struct diags *d);
/* Has the launch no blocks for the sizes at hand, so that it is skipped? */
bool run_skips(struct run *r, const struct contract_launch *l);
struct run_param *run_find_param(struct run *r, const char *name); /* NULL if absent */
struct run_dim *run_find_dim(struct run *r, const char *name);

/* False when the dimension is known to be something else, or is not in 0 .. 2^32 - 1. */
bool run_bind_dim(struct run *r, struct run_dim *dim, int64_t value, const char *from);
/* Rounds f to a float type. The value must be in the type's range and no NaN. */
bool run_bind_scalar(struct run *r, struct run_param *p, double f, int64_t i);
/* Takes the buffer's shape, from which dimensions are bound, and its data if it has any. Its type
 * must be the declared one. */
bool run_bind_buffer(struct run *r, struct run_param *p, const struct buffer *b);
/* Every dimension and scalar has a value (what follows from extents of given buffers, and defaults,
 * are filled in), every buffer its shape in host, and the requirements hold. */
bool run_shapes(struct run *r);

/* After run_shapes(): whether the host has the memory for the buffers that there are no contents
 * for yet, on a simulator for the device's, and for results. */
bool run_fits(struct run *r);

/* After run_shapes(): what the contract says of its sums, 0 where it says nothing. False when a
 * number is negative. Of given (NULL: none), what is not RUN_NOT_GIVEN goes before. */
#define RUN_NOT_GIVEN UINT64_MAX
bool run_sums(struct run *r, const struct spec_sums *given, struct spec_sums *sums);

/* "f32[n, 2 * k]": the parameter's type as declared, without in, out, inout. */
const char *run_type_text(struct run *r, const struct run_param *p);

/* A part of a buffer of a program: bytes from its start, and the part's shape. */
struct program_part {
    uint64_t at;
    struct buffer shape;
};

/* A call of a kernel by a program, for who watches it; valid until he returns. */
struct run_call {
    const struct contract_step *step; /* a call, or the while or if that asks */
    const char *text;                 /* "heat_step(x: u, y: v)" */
    size_t number, n;                 /* in the order of the text, of so many */
    uint64_t before;                  /* how often the step was called before */
    struct run *kernel;               /* bound to the call's sizes and numbers */
    const struct program_part *part;  /* by argument of the step, of those that are buffers */
};
struct run_watch {
    void *ctx;
    /* before each call: are its contents wanted? */
    bool (*wants)(void *ctx, const struct run_call *c);
    /* and behind one whose are: what inputs held before it is in c->kernel's .host, what outputs
     * hold in .result. False: that is enough, and the program ends here. */
    bool (*saw)(void *ctx, const struct run_call *c);
};

struct run_options {
    uint8_t poison; /* every byte of an output before the launch: one never written shows */
    uint32_t guard; /* bytes of a band on each side of every buffer, a multiple of 256, in which
                     * a write is found (for GPUs; the simulator knows the bounds); 0: none */
    uint64_t message_bytes; /* room for the records of print() and assert() in each launch */
    bool messages_by_time;  /* as they were issued, not sorted by thread */
    bool temps; /* what they hold at the end is read back, too: in r->temp[k].result.data */
    /* of a program: */
    bool apart;                      /* each temp has memory of its own, so that reports name it */
    uint64_t max_iterations;         /* of a while; 0: no limit */
    const volatile int *interrupted; /* not 0: it ends before the next call; may be NULL */
    /* gets what each launch said with print() when it is over; NULL: r->messages keeps it */
    void (*say)(void *ctx, const char *text, size_t n);
    void *say_ctx;
    const struct run_watch *watch; /* NULL: nobody watches; outs of a watched call are poisoned */
};
enum { RUN_MESSAGE_BYTES = 1 << 20, RUN_MESSAGE_BYTES_MOST = 1 << 30, RUN_ITERATIONS = 1000000 };
/* poison 0xff (NaN, -1), no guard, 1 MiB of messages sorted by thread, RUN_ITERATIONS */
extern const struct run_options run_default;

struct run_stats {
    double seconds; /* of all launches */
    uint64_t thread_instructions;
    unsigned launches; /* done: one with an empty grid is skipped */
};

/* Checks that the launches of the contract are possible, and fit the module's entries if there is a
 * module (NULL: it could not be parsed here, the device will tell). run_execute() does it too; call
 * it to find errors early. */
bool run_check(struct run *r, const struct ptx_module *m);

/* Uploads, launches, reads back; gives the device memory back. opt NULL: run_default. stats may be
 * NULL. DEVICE_FAULT also when a guard band was written or an assertion of the kernel did not
 * hold. */
enum device_status run_execute(struct run *r, const struct ptx_module *m,
                               const struct device_ops *ops, struct device *dev,
                               const struct run_options *opt, struct run_stats *stats);

/* Appends what print() said. */
void run_print_messages(const struct run *r, struct buf *out);

/* ---- programs ---- */

/* Of a contract with steps: run_check(), run_execute() and run_time() take it as they take a
 * kernel's. These are about its steps; the kernels that it calls are contracts of its file. */

/* Appends what it does for the shapes at hand and how its memory is laid out. After run_shapes();
 * false with errors. */
bool run_print_plan(struct run *r, const struct ptx_module *m, struct buf *out);
/* Shows each call once at least, without a device, loops as far as they matter. After
 * run_shapes(); false with errors. */
bool run_calls(struct run *r, const struct ptx_module *m,
               void (*show)(void *ctx, const struct run_call *c), void *ctx);
/* Appends a table of r->costs. */
void run_print_profile(const struct run *r, struct buf *out);
/* The entries of the launches of the contract, or of the kernels that it calls; NULL behind the
 * last. */
const char *const *run_entries(struct arena *a, const struct contract *c);

/* ---- time ---- */

struct run_timing {
    unsigned n;              /* rounds timed */
    unsigned per_sample;     /* executions in a round: its time is theirs, divided by this */
    double median, min, max; /* seconds of one execution of the contract's launches */
    uint64_t bytes;          /* each in and out counted once, each inout twice */
    double copy_median;      /* seconds to move as many bytes by a device-to-device copy; 0: not
                              * measured; scaled from fewer bytes where memory is short */
    uint64_t thread_instructions; /* per execution; 0 where they are not counted */
};

/* n rounds after warm-up, each an execution and, on a GPU, a copy that reads bytes / 2 and writes
 * as many; of what is short a graph of so many that neither launches nor events show. Executions go
 * round through as many copies of the buffers as are twice the L2 cache together, 16 at most. */
enum device_status run_time(struct run *r, const struct device_ops *ops, struct device *dev,
                            unsigned n, struct run_timing *t);

#endif
