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
 * A struct kaio is used by one thread at a time; different ones are independent. The library keeps no global
 * state, never prints and never exits. The file formats are described in kaio-spec(5) and kaio-ptx(5).
 */
#ifndef KAIO_H
#define KAIO_H

#include <stddef.h>

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
 * (file:line:column: error: text, the line, a caret); "" if there were none. Valid until the next call. */
const char *kaio_messages(const struct kaio *k);

/* What the kernel of the last kaio_run() said with print(), sorted by block and thread; "" if it said nothing. Valid until the
 * next call. */
const char *kaio_printed(const struct kaio *k);

/* Fixes a dimension at emission (kaio-emit -D name=value) for the kaio_emit() and kaio_verify() calls that follow. */
enum kaio_status kaio_define(struct kaio *k, const char *name, unsigned long value);

/* The same for a type of the spec (kaio-emit -D T=f32): type is its name, "f32" and the like. */
enum kaio_status kaio_define_type(struct kaio *k, const char *name, const char *type);

/* Compiles every kernel of a spec file. name: what messages call the text. target: "sm_80", "sm_90a" ...;
 * NULL: "sm_80". On KAIO_OK *ptx is a NUL-terminated module of *len bytes, which the caller frees with
 * free(). */
enum kaio_status kaio_emit(struct kaio *k, const char *name, const char *yaml, size_t yaml_len,
                           const char *target, char **ptx, size_t *len);

/* An argument of a kernel, by the name of its parameter or dimension. Either value, the text that kaio-run would be
 * given after NAME= ("1024", "@normal:1", "x.npy", "in.npy:out.npy"), or data, the elements of a buffer in
 * memory: dense, row-major, in the type that the kernel declares; the shape follows from the
 * dimensions, and bytes must be exactly what it takes. kaio_run() writes the data of an out or inout when it succeeds
 * and leaves it as it was when it fails; kaio_verify() writes nothing. */
struct kaio_arg {
    const char *name;
    const char *value;
    void *data;
    size_t bytes;
    const void *
        result; /* kaio_verify(): an inout's contents after the launch, where data is those before it */
};

/* Launches what the module's contract says. device: "cpu" (the simulator), "cuda", "cuda:1", or "auto" (NULL too): the first
 * GPU if there is one, else the simulator. The module must hold one kernel. */
enum kaio_status kaio_run(struct kaio *k, const char *device, const char *ptx, size_t ptx_len,
                          const struct kaio_arg *args, size_t narg);

/* Evaluates the mathematics of the spec's one kernel in float64 over the arguments and compares every output among
 * them. KAIO_MISMATCH with a report in kaio_messages() when one is outside its error bound. */
enum kaio_status kaio_verify(struct kaio *k, const char *name, const char *yaml, size_t yaml_len,
                             const struct kaio_arg *args, size_t narg);

#ifdef __cplusplus
}
#endif

#endif
