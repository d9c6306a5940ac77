/* What a device does for the runner: memory, modules, launches, time. lib/cuda (an NVIDIA GPU
 * through its driver) and lib/sim (the CPU, through the PTX simulator) each implement struct
 * device_ops; nothing else knows which is which.
 *
 * Addresses are 64-bit device addresses, never host pointers. Every function that can fail adds an
 * error to d.
 */
#ifndef KAIO_RUN_DEVICE_H
#define KAIO_RUN_DEVICE_H

#include "base/diag.h"
#include "data/dtype.h"

enum device_status {
    DEVICE_OK,
    DEVICE_REFUSED, /* the module or the launch is not valid here: bad PTX, a grid over the limit
                       (exit 2) */
    DEVICE_FAULT,   /* the kernel did something wrong: out of bounds, trap, endless loop (exit 3) */
    DEVICE_FAILED,  /* the device or its driver failed, or has no memory left (exit 3) */
    DEVICE_ABSENT,  /* no such device on this machine (exit 77) */
};

struct device_dim {
    uint32_t x, y, z;
};

struct device_info {
    char name[160]; /* "NVIDIA H100 80GB HBM3", "kaio simulator (2 threads, avx2)" */
    char kind[8];   /* "cuda" or "cpu" */
    int ordinal;
    unsigned sm;     /* 90; the simulator takes the module's target: 0 */
    uint64_t memory; /* bytes */
    uint64_t l2_bytes;
    uint64_t bandwidth; /* of its memory, bytes per second, by its clock and width; 0: unknown */
    unsigned multiprocessors, clock_khz, driver_version; /* 0 where it means nothing */
};

/* The name and the declared type of a buffer, for reports; strings outlive the buffer. */
struct device_label {
    const char *name;      /* the parameter: "x" */
    const char *type;      /* "f32[n]", or "" */
    unsigned element_bits; /* 0: unknown */
    bool read_only;        /* declared "in": the simulator reports writes to it */
    bool undefined;        /* declared "out": no kernel may use what the host writes there */
    unsigned ndim;         /* of its shape, for reports; 0: unknown */
    const uint64_t *dim;
};

/* What the simulator looks for, in device_options.check. An access outside every buffer, a
 * misaligned one and a write to a read-only buffer are always faults, which end the launch. What is
 * found else is an error in the launch's diags, at its end, and the launch returns DEVICE_FAULT. */
enum device_check {
    DEVICE_CHECK_MEMORY =
        1, /* also accesses that leave the shared or local variable they began with: a fault */
    DEVICE_CHECK_INIT = 2,   /* use of bytes that nothing has written */
    DEVICE_CHECK_RACE = 4,   /* accesses that no order or atomicity keeps apart */
    DEVICE_CHECK_SYNC = 8,   /* barriers that not every thread reaches, wrong member masks */
    DEVICE_CHECK_ASYNC = 16, /* use of what an asynchronous copy has not brought yet */
    DEVICE_CHECK_ALL = 31,
};

/* An array in a launch's dynamic shared memory, for reports. */
struct device_array {
    const char *name, *type; /* of an element: "f32" */
    uint64_t at;             /* bytes from the start of the dynamic part */
    unsigned ndim;           /* 0: it reaches to the end */
    const uint64_t *dim;
};

struct device_module; /* a module loaded beside others; each implementation's own */
struct device_graph;  /* recorded work */

struct device_launch {
    const char *entry;
    struct device_dim grid, block, cluster; /* cluster 0,0,0: none */
    uint32_t shared_bytes;                  /* dynamic */
    const void *const *args;                /* one pointer per .param of the entry, in order ... */
    const size_t *arg_bytes;                /* ... and its size in bytes */
    size_t narg;
    const struct device_array *array; /* narray of them; none overlap */
    size_t narray;
    struct device_module *module; /* where the entry is; NULL: what load() loaded */
};

struct device_stats {
    double seconds;               /* of the last launch: events on a GPU, wall time on the CPU */
    uint64_t thread_instructions; /* executed by the last launch; 0 where it is not counted */
};

#define DEVICE_INSTRUCTIONS UINT64_C(1000000000000)
enum { DEVICE_FINDINGS = 20, DEVICE_FINDINGS_MOST = 256 };

/* The kinds that a simulated launch gives diagnostics (diag.kind): of faults, which end it, and of
 * what the checks find else. NULL after the last. */
extern const char *const device_fault_kind[], *const device_finding_kind[];
struct suppressions;

struct device_options {
    unsigned threads; /* simulator: worker threads, 0 = one per core */
    /* simulator: thread-instructions per launch before it is stopped, 0 = DEVICE_INSTRUCTIONS,
     * UINT64_MAX = no limit */
    uint64_t max_instructions;
    unsigned check; /* simulator: enum device_check, bits */
    /* simulator: how many findings of a launch are errors in its diags; 0: DEVICE_FINDINGS;
     * DEVICE_FINDINGS_MOST at most */
    unsigned max_findings;
    /* simulator: findings that are none (base/suppress.h), faults excepted; uses are counted. NULL:
     * there are none */
    struct suppressions *suppressions;
    unsigned
        sm; /* simulator: whose tensor cores it has, 90 for sm_90; 0: those of the PTX's target */
    bool
        overcommit; /* simulator: buffers may be larger than the memory that the machine has left */
    /* Set by a signal handler; a running simulation stops soon after it becomes non-zero. May be
     * NULL. */
    const volatile int *interrupted;
    /* simulator: when asynchronous operations take effect. 0: as late as they may; else drawn from
     * it */
    uint64_t seed;
    uint64_t heap_bytes; /* of malloc() in kernels, 0 = the device's default: CUDA's and the
                            simulator's is 8 MiB */
    /* simulator: called now and then by the thread that launches, with how many of the launch's
     * blocks are done. May be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t blocks);
    void *progress_ctx;
    /* simulator: called after each launch with what CUDA's printf() said in it (on a GPU the driver
     * prints that). May be NULL. */
    void (*print)(void *ctx, const char *text, size_t n);
    void *print_ctx;
};

struct device; /* each implementation's own */

/* How a tensor lies in global memory, and which box of it cp.async.bulk.tensor copies: what
 * cuTensorMapEncodeTiled() and cuTensorMapEncodeIm2col() take (CUDA driver API, "Tensor Map Object
 * Management"). Innermost dimension first. */
enum { DEVICE_TENSOR_RANK = 5, DEVICE_TENSOR_MAP = 128, DEVICE_TENSOR_SPACE = 3 };
struct device_tensor_map {
    uint64_t address; /* a multiple of 16 */
    enum dtype type;  /* of an element: 8 to 64 bits; packed types count bytes */
    bool tf32;        /* f32 arrive rounded to 10 bits of mantissa, halves to even */
    unsigned rank;    /* 1 .. DEVICE_TENSOR_RANK */
    uint64_t dim[DEVICE_TENSOR_RANK];    /* elements: 1 .. 2^32 */
    uint64_t stride[DEVICE_TENSOR_RANK]; /* bytes from an element to the next; [0]: of an element;
                                            others multiples of 16, below 2^40 */
    uint32_t
        box[DEVICE_TENSOR_RANK]; /* elements: 1 .. 256; of the innermost bytes a multiple of 16 */
    uint32_t step[DEVICE_TENSOR_RANK]; /* of every so many elements one is taken: 1 .. 8 */
    unsigned swizzle;    /* span in bytes: 0, 32, 64, 128; the box's innermost bytes fit in it */
    unsigned interleave; /* bytes: 0, 16, 32 */
    unsigned promotion;  /* bytes that the L2 cache fetches: 0, 64, 128, 256 */
    bool nan_fill;       /* what is outside of the tensor reads as NaN, not 0 */
    /* A copy takes pixels of a tensor {channels, w[, h[, d]], images}, one after the other, through
     * all that windows begin at: w from lower[0] to dim[1] - 1 + upper[0] by step[1], and so on.
     * box is {channels of a pixel, pixels}: 1 .. 256 and 1 .. 1024. */
    bool im2col;
    int32_t lower[DEVICE_TENSOR_SPACE], upper[DEVICE_TENSOR_SPACE];
};

struct device_ops {
    const char *kind; /* "cuda", "cpu" */
    /* How many there are; 0 with a note in d why (no driver ...), which is not an error. */
    int (*count)(struct diags *d);
    enum device_status (*open)(struct arena *a, int ordinal, const struct device_options *opt,
                               struct device **dev, struct diags *d);
    void (*info)(struct device *dev, struct device_info *info);
    /* Memory is aligned to 256 bytes at least and starts undefined. */
    enum device_status (*alloc)(struct device *dev, uint64_t bytes,
                                const struct device_label *label, uint64_t *address,
                                struct diags *d);
    enum device_status (*release)(struct device *dev, uint64_t address);
    /* Host memory, aligned to 16 bytes, that kernels read and write in place; what it holds is
     * defined. unbind() takes both again. */
    enum device_status (*bind)(struct device *dev, void *host, uint64_t bytes, uint64_t *address,
                               struct diags *d);
    enum device_status (*unbind)(struct device *dev, void *host, uint64_t address);
    /* Gives memory another label, and copies it, unlike alloc(). */
    enum device_status (*describe)(struct device *dev, uint64_t address,
                                   const struct device_label *label, struct diags *d);
    enum device_status (*write)(struct device *dev, uint64_t address, const void *from,
                                uint64_t bytes, struct diags *d);
    enum device_status (*read)(struct device *dev, void *to, uint64_t address, uint64_t bytes,
                               struct diags *d);
    /* Device-to-device copy; the stats tell how long it took. */
    enum device_status (*copy)(struct device *dev, uint64_t to, uint64_t from, uint64_t bytes,
                               struct device_stats *stats, struct diags *d);
    /* Loads PTX text (src spans are used for reports; on a GPU the driver's JIT compiles it, and
     * its log is shown when it refuses). One module at a time; a second load replaces the first.
     * The text must outlive the module. */
    enum device_status (*load)(struct device *dev, const struct source *ptx, struct diags *d);
    /* Modules that are loaded side by side and named in device_launch.module. The text must outlive
     * its module. On a GPU several threads may load at a time, each with diags of its own, after
     * enter(). */
    enum device_status (*load_module)(struct device *dev, const struct source *ptx,
                                      struct device_module **m, struct diags *d);
    void (*unload_module)(struct device *dev, struct device_module *m);
    /* A variable of a module in global or constant memory. */
    enum device_status (*symbol)(struct device *dev, const struct device_module *m,
                                 const char *name, uint64_t *address, uint64_t *bytes,
                                 struct diags *d);
    /* Launches and waits. n > 1 launches n times in a row and reports the time of each in
     * stats[0..n). */
    enum device_status (*launch)(struct device *dev, const struct device_launch *l, size_t n,
                                 struct device_stats *stats, struct diags *d);
    /* Encodes a tensor map that device_tensor_map_check() has let through, for a 128-byte
     * parameter. */
    enum device_status (*tensor_map)(struct device *dev, const struct device_tensor_map *m,
                                     unsigned char to[DEVICE_TENSOR_MAP], struct diags *d);
    /* Makes the calling thread one that uses this device, where a thread uses one at a time. */
    enum device_status (*enter)(struct device *dev, struct diags *d);
    /* What can only be said when the last launch is over: memory that kernels have allocated and
     * not freed, under DEVICE_CHECK_MEMORY. DEVICE_FAULT when there is any. */
    enum device_status (*finish)(struct device *dev, struct diags *d);
    void (*close)(struct device *dev);
    const struct device_queue *queue; /* NULL: nothing can be queued; the simulator */
    const struct device_blas *blas;   /* run/blas.h; NULL: there is none */
    const struct device_sdpa *sdpa;   /* run/sdpa.h; likewise */
    const struct device_conv *conv;   /* run/conv.h; likewise */
};

/* What a device's sensors say now; a quantity without one is 0. */
struct device_sensors {
    unsigned sm_mhz, memory_mhz;         /* clocks */
    unsigned max_sm_mhz, max_memory_mhz; /* the highest they can have */
    double watts, limit_watts;           /* power drawn, and allowed */
    unsigned celsius;
    uint64_t throttle; /* why the clock is lower than it could be: enum device_throttle, bits */
    char driver[80];   /* "580.159.04" */
};
/* NVML's bits (nvml.h, nvmlClocksEventReasons); the others mean no loss. */
enum device_throttle {
    DEVICE_THROTTLE_POWER = 0x4,
    DEVICE_THROTTLE_HARDWARE = 0x8,
    DEVICE_THROTTLE_THERMAL = 0x20 | 0x40,
    DEVICE_THROTTLE_BRAKE = 0x80,
};

/* Work that is queued and runs in that order while the caller goes on: what benchmarks are made of.
 * What is queued between record() and recorded() does not run but becomes a graph, which replay()
 * queues as a whole. Queued work that went wrong shows at wait() at the latest. */
struct device_queue {
    /* Checks a launch of a module against the device, and makes the device ready for it: once, and
     * before it is recorded. Its arguments are not looked at. */
    enum device_status (*prepare)(struct device *dev, const struct device_launch *l,
                                  struct diags *d);
    /* The arguments are copied. */
    enum device_status (*launch)(struct device *dev, const struct device_launch *l,
                                 struct diags *d);
    enum device_status (*copy)(struct device *dev, uint64_t to, uint64_t from, uint64_t bytes,
                               struct diags *d);
    enum device_status (*fill)(struct device *dev, uint64_t address, uint8_t value, uint64_t bytes,
                               struct diags *d);
    enum device_status (*record)(struct device *dev, struct diags *d);
    /* Ends the recording, also one that failed; then *g is NULL. */
    enum device_status (*recorded)(struct device *dev, struct device_graph **g, struct diags *d);
    enum device_status (*replay)(struct device *dev, struct device_graph *g, struct diags *d);
    void (*discard)(struct device *dev, struct device_graph *g);
    /* Marks the begin or the end of what is timed. */
    enum device_status (*mark)(struct device *dev, bool end, struct diags *d);
    /* Waits until everything queued is done. seconds, where not NULL: between the last two
     * marks. */
    enum device_status (*wait)(struct device *dev, double *seconds, struct diags *d);
    /* Readable while work runs. NULL, or what is missing: no sensors. */
    const char *(*sensors)(struct device *dev, struct device_sensors *s);
};

extern const struct device_ops cuda_device; /* lib/cuda */
extern const struct device_ops sim_device;  /* lib/sim */

#endif
