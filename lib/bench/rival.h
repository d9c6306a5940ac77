/* What is timed: the kernel itself, and what it is compared with. Each kind is a struct rival_ops;
 * all are timed alike, by queueing executions on the device (measure.h).
 *
 * A rival keeps several sets of its buffers, so many that together they exceed the L2 cache twice
 * where that can be had; execution k works on set k modulo their number and so never finds its data
 * in the cache. All sets hold the same inputs.
 */
#ifndef KAIO_BENCH_RIVAL_H
#define KAIO_BENCH_RIVAL_H

#include "bench/data.h"
#include "run/messages.h"

/* Where everything runs. */
struct bench_device {
    const struct device_ops *ops;
    const struct device_queue *queue;
    struct device *dev;
    struct device_info info;
};

enum rival_status {
    RIVAL_OK,
    RIVAL_WRONG,   /* its results are not what the spec says */
    RIVAL_ABSENT,  /* there is none here: why says what is missing */
    RIVAL_REFUSED, /* no code for this problem: a requirement, a schedule that does not fit, what
                      the driver refuses */
    RIVAL_FAILED,  /* the device failed, which may not be usable any more */
};

struct rival;

struct rival_ops {
    /* Makes the code, the buffers and their contents; then v->nset and v->bytes are set. RIVAL_OK,
     * or v->why. */
    enum rival_status (*prepare)(struct rival *v, struct diags *d);
    /* Queues one execution on a set. */
    enum device_status (*enqueue)(struct rival *v, unsigned set, struct diags *d);
    /* Poisons the outputs of a set, which a fresh execution then has to write. */
    enum device_status (*poison)(struct rival *v, unsigned set, struct diags *d);
    /* Reads a set's outputs back and compares them; after prepare and any number of executions, as
     * far as their results can be told then (v->repeatable). */
    enum rival_status (*check)(struct rival *v, unsigned set, struct diags *d);
    void (*release)(struct rival *v);
};

struct rival {
    const struct rival_ops *ops;
    const char *name; /* "kaio", "copy", "naive.yaml", "{strategy: naive}" */
    struct arena *a;  /* of the row */
    const struct bench_device *dev;
    const struct code_source *source; /* of kernels that prepare emits */
    const struct code *made; /* emitted already, and for this rival only; NULL: prepare does that */
    const struct bench_point *point;
    struct data_options data_options;
    struct rival *subject;    /* the kernel that is benchmarked; itself for that one */
    bool same_spec;           /* the subject's spec: one reference serves both */
    const struct rival *peer; /* npeer that were prepared before, whose references may serve, too */
    size_t npeer;
    const struct rival
        *lender; /* of the same spec: its buffers are used, but for temps; NULL: own ones */
    struct device_module *module; /* of kernels: its code, compiled already; or prepare does that */

    /* set by prepare */
    const char *why;         /* not RIVAL_OK */
    const char *mistrust;    /* the check says little: why; or NULL */
    const char *note;        /* in what it is another problem than the subject's; or NULL */
    const char *choice;      /* of several ways, the one that was the fastest; or NULL */
    uint64_t bytes;          /* that an execution moves */
    uint64_t set_bytes;      /* of device memory in a set */
    unsigned nset, launches; /* launches of an execution */
    unsigned clears;         /* of temps, in front of an execution's launches */
    bool repeatable;         /* executions on one set give the same results each time: no inout */
    struct data_check checked;
    uint64_t base; /* of all sets */
    struct code code;
    struct data data;
    const struct rival *judge;  /* whose reference it is compared with */
    uint64_t *offset, *address; /* by run_buffer(): in a set; of the set queued */
    struct message_buffer messages;
    struct blas_work *blas; /* of the vendor's library */
    struct sdpa_work *sdpa; /* of its attention */
    struct conv_work *conv; /* of its convolutions */
};

extern const struct rival_ops rival_kernel, rival_copy;
/* The vendor's library on the products of the subject's spec (product.h), on the subject's own
 * inputs: as it chooses by itself; with inputs and sums in f32; the fastest of what it offers, each
 * of which is timed; and the first, followed by a kernel of ours for what the spec has besides. */
extern const struct rival_ops rival_cublas, rival_cublas_sgemm, rival_cublaslt,
    rival_cublas_unfused;
/* The vendor's library of attention and convolutions, where the subject's spec is one of them
 * (attention.h, convolution.h); then the two alone. */
extern const struct rival_ops rival_cudnn, rival_attention, rival_convolution;
/* Would it be asked for a convolution? */
bool rival_cudnn_convolves(struct arena *a, const struct spec *s, const struct bench_point *p);

enum { RIVAL_SETS_MOST = 4096, RIVAL_ALIGN = 256 };
/* Why it failed: the last error in d. Returns status. */
enum rival_status rival_failed(struct rival *v, const struct diags *d, enum rival_status status);
/* How many sets of `bytes` it takes to exceed twice the L2 cache, as far as a quarter of the memory
 * and RIVAL_SETS_MOST allow; at least 1. */
unsigned rival_sets(const struct bench_device *dev, uint64_t bytes);
/* How a preparation ends that the library may refuse, and that tells `own` so: a failure is told d
 * as well. */
enum rival_status rival_prepared(struct rival *v, enum device_status status,
                                 const struct diags *own, struct diags *d);

/* A buffer of each set. */
struct rival_buffer {
    const void *host; /* what is in it at first; NULL: nothing is written */
    uint64_t bytes;
    uint64_t at; /* in a set */
};
/* Makes room for `bytes` in each set, and says where in a set that is. */
uint64_t rival_reserve(struct rival *v, uint64_t bytes);
/* Allocates v->nset sets, as large as they have become. */
enum device_status rival_allocate(struct rival *v, struct diags *d);
/* Gives a buffer its place; an execution moves its bytes. */
void rival_place(struct rival *v, struct rival_buffer *x);
uint64_t rival_address(const struct rival *v, const struct rival_buffer *x, unsigned set);
/* Writes a buffer to the first set, and queues copies of it to the others. */
enum device_status rival_upload(struct rival *v, const struct rival_buffer *x, struct diags *d);
/* Allocates the sets, and fills the buffers in them that the host has the contents of. */
enum device_status rival_make_buffers(struct rival *v, const struct rival_buffer *x, size_t n,
                                      struct diags *d);

#endif
