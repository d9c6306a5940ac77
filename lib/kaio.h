/* libkaio: GPU kernels from YAML specs, without a CUDA toolkit.
 *
 *     struct kaio *k = kaio_new();
 *     char *ptx;
 *     size_t len;
 *     struct kaio_arg args[] = {
 *         {.name = "n", .value = "1024"},
 *         {.name = "x", .value = "@normal:1"},
 *         {.name = "y", .data = y, .bytes = sizeof y},
 *         {.name = "alpha", .value = "2.5"},
 *     };
 *     if (kaio_emit(k, "saxpy.yaml", yaml, strlen(yaml), "sm_80", &ptx, &len) != KAIO_OK ||
 *         kaio_run(k, "auto", ptx, len, args, 4) != KAIO_OK)
 *         fputs(kaio_messages(k), stderr);
 *     kaio_free(k);
 *
 * PTX from elsewhere (nvcc, Triton, one's own compiler) is loaded and launched as on a GPU, on a
 * GPU or on the simulator: see kaio_open() below, and kaio-sim(7) for an example.
 *
 * A struct kaio, and what was opened with it, is used by one thread at a time; different ones are
 * independent. The library keeps no global state, never prints and never exits, with one exception:
 * where it finds a mistake of its own it prints "kaio: internal error: FILE:LINE: TEXT" on stderr
 * and aborts. No input should lead there; please report it. The file formats are described in
 * kaio-spec(5) and kaio-ptx(5).
 */
#ifndef KAIO_H
#define KAIO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KAIO_VERSION_MAJOR 0
#define KAIO_VERSION_MINOR 1
#define KAIO_VERSION_PATCH 0

/* What a call came to; the numbers are the tools' exit statuses. */
enum kaio_status {
    KAIO_OK = 0,
    KAIO_MISMATCH = 1,  /* kaio_verify: an output is not what the spec says */
    KAIO_FOUND = 1,     /* kaio_launch with checks: the kernel does something wrong */
    KAIO_BAD_INPUT = 2, /* the spec, the PTX or an argument is not valid; or no memory */
    KAIO_FAILED = 3,    /* the device, its driver or the kernel failed */
    KAIO_ABSENT = 77    /* no such device on this machine */
};

struct kaio;

const char *kaio_version(void); /* "0.1.0" of the library linked */

/* NULL when there is no memory. */
struct kaio *kaio_new(void);
void kaio_free(struct kaio *k); /* NULL is allowed */

/* The errors and warnings of the last call, one diagnostic after the other as the tools print them
 * (file:line:column: error: text, the line, a caret); "" if there were none. Valid until the next
 * call: here and below, of a function that gives an enum kaio_status. */
const char *kaio_messages(const struct kaio *k);

/* The same one by one. A note belongs to the error or warning before it. The library makes these:
 * members may be added at the end, and there is no array of them. */
struct kaio_message {
    const char *level; /* "error", "warning", "note" */
    const char *kind;  /* of what is wrong with a kernel: "race", "out-of-bounds" ..., kaio-run(1)
                          lists them; else "" */
    const char *text;
    const char *file; /* as the text was called when it was loaded; "": of no place in a text */
    unsigned line, column; /* from 1; 0: of no place */
    /* of what is wrong with a kernel, as far as it is known; else "" and 0 */
    const char *entry;
    const char *source_file; /* that the PTX was compiled from, by its .loc */
    unsigned source_line;
    int threads; /* how many of the following are known: 0, 1, or 2 of a race */
    uint64_t block[2][3], thread[2][3];
    const char *buffer;      /* or variable */
    uint64_t address, count; /* of the access; how often it occurred */
};
/* NULL: there are not that many. Valid until the next call. */
const struct kaio_message *kaio_message(const struct kaio *k, size_t i);

/* What the kernel of the last kaio_run() or kaio_launch() said with print() or CUDA's printf(),
 * sorted by block; "" if it said nothing (printf() on a GPU goes to standard output). Valid until
 * the next call. */
const char *kaio_printed(const struct kaio *k);

/* Fixes a dimension at emission (kaio-emit -D name=value) for the kaio_emit() and kaio_verify()
 * calls that follow. */
enum kaio_status kaio_define(struct kaio *k, const char *name, unsigned long value);

/* The same for a type of the spec (kaio-emit -D T=f32): type is its name, "f32" and the like. */
enum kaio_status kaio_define_type(struct kaio *k, const char *name, const char *type);

/* Compiles every kernel of a spec file. name: what messages call the text. target: "sm_80",
 * "sm_90a" ...; NULL: "sm_80". On KAIO_OK *ptx is a NUL-terminated module of *len bytes, which the
 * caller frees with free(). */
enum kaio_status kaio_emit(struct kaio *k, const char *name, const char *yaml, size_t yaml_len,
                           const char *target, char **ptx, size_t *len);

/* An argument of a kernel, by the name of its parameter or dimension. Either value, the text that
 * kaio-run would be given after NAME= ("1024", "@normal:1", "x.npy", "in.npy:out.npy"), or data,
 * the elements of a buffer in memory: dense, row-major, in the type that the kernel declares; the
 * shape follows from the dimensions, and bytes must be exactly what it takes. kaio_run() writes the
 * data of an out or inout when it succeeds and leaves it as it was when it fails; kaio_verify()
 * writes nothing. */
struct kaio_arg {
    const char *name;
    const char *value;
    void *data;
    size_t bytes;
    const void *result; /* kaio_verify(): an inout's contents after the launch, where data is those
                           before it */
};

/* Launches what the module's contract says. device: "cpu" (the simulator), "cuda", "cuda:1", or
 * "auto" (NULL too): the first GPU if there is one, else the simulator. The module must hold one
 * kernel, or a program and the kernels that it calls. */
enum kaio_status kaio_run(struct kaio *k, const char *device, const char *ptx, size_t ptx_len,
                          const struct kaio_arg *args, size_t narg);

/* Evaluates the mathematics of the spec's one kernel in float64 over the arguments and compares
 * every output among them. KAIO_MISMATCH with a report in kaio_messages() when one is outside its
 * error bound. */
enum kaio_status kaio_verify(struct kaio *k, const char *name, const char *yaml, size_t yaml_len,
                             const struct kaio_arg *args, size_t narg);

/* ---- any PTX, step by step
 * ------------------------------------------------------------------------
 *
 *     struct kaio_device *dev;
 *     struct kaio_module *m;
 *     uint64_t x;
 *     uint32_t n = 1000;
 *     struct kaio_shape shape = {.size = sizeof shape, .grid = {4}, .block = {256}};
 *     struct kaio_value args[] = {{&x, sizeof x}, {&n, sizeof n}};
 *     if (kaio_open(k, "cpu", "check=all", &dev) == KAIO_OK &&
 *         kaio_load(dev, "scale.ptx", ptx, len, &m) == KAIO_OK &&
 *         kaio_alloc(dev, sizeof host, &x) == KAIO_OK &&
 *         kaio_write(dev, x, host, sizeof host) == KAIO_OK &&
 *         kaio_launch(m, "scale", &shape, args, 2) == KAIO_OK &&
 *         kaio_read(dev, host, x, sizeof host) == KAIO_OK)
 *         ...
 *
 * No launch contract is needed. Device addresses are numbers, and never host pointers, on the
 * simulator either. What was opened goes when it is closed: modules and memory with their device,
 * devices with their struct kaio.
 */
struct kaio_device;
struct kaio_module;

/* name: as kaio_run()'s device. options, NULL for none, are those of kaio-run(1) of the same names,
 * separated by spaces:
 *
 *     check, check=race,memory   what to look for: memory, init, race, sync, async, all. Takes the
 *                                simulator.
 *     check-seed=N               draw when asynchronous operations take effect; 0: as late as they
 *                                may
 *     max-instructions=N         of a launch, counted per thread; 0: no limit; default 1e12
 *     threads=N                  of the simulator; default one per core
 *     arch=sm_90                 whose tensor cores; default the PTX's target
 *     heap=BYTES                 for malloc() in kernels, default 8Mi
 *     overcommit                 allow the simulator more memory than the machine has left, which
 *                                may be the end of the process
 *
 * On a GPU all but check and heap mean nothing. KAIO_ABSENT when there is no such device. */
enum kaio_status kaio_open(struct kaio *k, const char *name, const char *options,
                           struct kaio_device **dev);
void kaio_close(struct kaio_device *dev); /* NULL is allowed */

const char *kaio_device_kind(const struct kaio_device *dev); /* "cpu" or "cuda" */
const char *kaio_device_name(const struct kaio_device *dev); /* "NVIDIA H100 80GB HBM3" */
/* What 'multiprocessors' is in the grid of a contract; the simulator says 8. */
unsigned kaio_device_multiprocessors(const struct kaio_device *dev);

/* Memory of the device, aligned to 256 bytes, with undefined contents: reading it before something
 * has written it is what check=init finds. */
enum kaio_status kaio_alloc(struct kaio_device *dev, uint64_t bytes, uint64_t *address);
/* Makes memory of the caller's the device's, too: kernels read and write it in place. It must be
 * aligned to 16 bytes, and stay until it is released; on a GPU it is locked in memory and reached
 * over the bus. */
enum kaio_status kaio_bind(struct kaio_device *dev, void *host, uint64_t bytes, uint64_t *address);
/* Of either kind, by the address that it begins at. The simulator reports a kernel's use of it from
 * now on. */
enum kaio_status kaio_release(struct kaio_device *dev, uint64_t address);
/* Anywhere inside of memory of the device or a variable of a module. */
enum kaio_status kaio_write(struct kaio_device *dev, uint64_t address, const void *from,
                            uint64_t bytes);
enum kaio_status kaio_read(struct kaio_device *dev, void *to, uint64_t address, uint64_t bytes);
/* What the simulator's reports call memory: name ("x"), and type ("f32", "f16[30, 40]") or NULL.
 * read_only not 0: a kernel that writes to it fails. Strings are copied. On a GPU nothing
 * happens. */
enum kaio_status kaio_describe(struct kaio_device *dev, uint64_t address, const char *name,
                               const char *type, int read_only);

/* Checks PTX and makes it ready; name is what messages call it. Several modules may be loaded at a
 * time. */
enum kaio_status kaio_load(struct kaio_device *dev, const char *name, const char *ptx, size_t len,
                           struct kaio_module **m);
void kaio_unload(struct kaio_module *m); /* NULL is allowed */

/* The module's entries: the name of the i-th, NULL when there are not so many; the bytes of an
 * entry's i-th parameter, 0 when there are not so many. On a GPU a module that kaio can't read has
 * none that it can name. */
const char *kaio_entry(const struct kaio_module *m, size_t i);
size_t kaio_param_bytes(const struct kaio_module *m, const char *entry, size_t i);

/* A variable in global or constant memory. bytes may be NULL. */
enum kaio_status kaio_symbol(struct kaio_module *m, const char *name, uint64_t *address,
                             uint64_t *bytes);

/* How to launch. size: sizeof (struct kaio_shape), so that members can be added. Of grid (blocks),
 * block (threads) and cluster (blocks) y and z may be 0 for 1; cluster 0: as the entry says. */
struct kaio_shape {
    size_t size;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t shared_bytes; /* dynamic shared memory of a block */
};

/* A parameter's bytes: of a pointer the 8 of a device address, of a struct all of it. */
struct kaio_value {
    const void *data;
    size_t bytes;
};

/* A tensor in device memory and the box of it that cp.async.bulk.tensor copies, as
 * cuTensorMapEncodeTiled() takes them: innermost dimension first. size: sizeof (struct
 * kaio_tensor). */
struct kaio_tensor {
    size_t size;
    const char *type;               /* of an element: "f16", "u8" */
    uint64_t address;               /* a multiple of 16 */
    uint32_t rank;                  /* 1 to 5 */
    uint32_t swizzle;               /* span in bytes: 0, 32, 64, 128 */
    uint64_t dim[5], stride[5];     /* elements; bytes from one to the next, [0] is not looked at */
    uint32_t box[5], step[5];       /* elements; of every so many one is taken, 0 for 1 */
    uint32_t interleave, promotion; /* bytes: 0, 16, 32; 0, 64, 128, 256 */
    uint32_t nan_fill;              /* not 0: what is outside of it reads as NaN */
    uint32_t tf32;                  /* not 0: f32 arrive rounded to tf32 */
};
/* The 128 bytes of a CUtensorMap, for a parameter or a member of one; each device has its own. */
enum kaio_status kaio_tensor_map(struct kaio_device *dev, const struct kaio_tensor *t, void *map);

/* Launches an entry and waits for its end. KAIO_BAD_INPUT: it can't be launched so, nothing has
 * happened. KAIO_FAILED: the kernel was stopped by a fault, a trap, a failed assertion, a deadlock
 * or its limit; with checks KAIO_FOUND, also for a kernel that came to its end. kaio_messages()
 * says what and where. The simulator goes on as if nothing was; a GPU that a kernel has failed on
 * is of no use until it is closed and opened again. */
enum kaio_status kaio_launch(struct kaio_module *m, const char *entry,
                             const struct kaio_shape *shape, const struct kaio_value *args,
                             size_t narg);

/* Findings that are not to be reported and do not make a launch KAIO_FOUND: rules as in
 * kaio-run(1), SUPPRESSIONS, added to those that there are. name is what messages call the text. */
enum kaio_status kaio_suppress(struct kaio_device *dev, const char *name, const char *text,
                               size_t len);

/* Stops the launch that runs on a simulator, if one does: it fails as interrupted. From any thread,
 * or a signal handler. */
void kaio_interrupt(struct kaio_device *dev);

/* What can only be said when all is done: with check=memory KAIO_FOUND when kernels have not freed
 * what malloc() gave them. */
enum kaio_status kaio_finish(struct kaio_device *dev);

/* Of the last launch: thread-instructions executed (0 on a GPU, which does not count them), and its
 * time. */
uint64_t kaio_instructions(const struct kaio_device *dev);
double kaio_seconds(const struct kaio_device *dev);

#ifdef __cplusplus
}
#endif

#endif
