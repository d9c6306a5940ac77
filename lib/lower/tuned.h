/* What kaio-bench --tune found: a file of schedules, each the fastest that was measured for one
 * problem on one GPU.
 *
 *     {"kaio_tuned": 1, "entries": [
 *     {"kernel": "softmax", "hash": "8d5c...", "device": "NVIDIA H100 80GB HBM3", "target":
 *       "sm_90", "emitter": "0.1.0",
 *      "types": {"T": "f16"}, "dims": {"rows": 4096, "cols": 1000}, "code": "fixed", "schedule":
 *        "{strategy: row, ...}",
 *      "seconds": 1.1e-05, "builtin_seconds": 1.3e-05, "tried": 31},
 *     ...
 *     ]}
 *
 * An entry is for the spec whose mathematics has that hash (the kernel's parameters, types chosen,
 * equations, requirements, math and schedule; not its name or its comments) and for the version of
 * the emitter that it was measured with. A schedule of null says that the emitter's own choice was
 * the fastest.
 */
#ifndef KAIO_LOWER_TUNED_H
#define KAIO_LOWER_TUNED_H

#include "ptx/ptx.h"
#include "spec/spec.h"

struct tuned_entry {
    const char *kernel, *hash, *device, *target, *emitter;
    VEC(struct spec_define) types, dims;
    bool generic;         /* measured with dimensions that are arguments */
    const char *schedule; /* NULL: the emitter's own choice */
    double seconds, builtin_seconds;
    unsigned tried; /* schedules measured */
};
struct tuned_cache {
    VEC(struct tuned_entry) v;
};

/* $XDG_CACHE_HOME/kaio/tuned.json, or $HOME/.cache/kaio/tuned.json; NULL with an error where
 * neither is set. */
const char *tuned_path(struct arena *a, struct diags *d);
/* A file that is not there is an empty cache. One that cannot be read, what is no such file, or no
 * such entry in it, is a warning with its position, and left away. */
void tuned_read(struct arena *a, const char *path, struct tuned_cache *out, struct diags *d);
/* Parses the text of such a file; false where the whole is left away. */
bool tuned_parse(struct arena *a, const struct source *text, struct tuned_cache *out,
                 struct diags *d);
/* Adds an entry, in the place of one for the same problem: the file is locked (FILE.lock), read,
 * and replaced as a whole, so that no reader sees a part and no writer loses what another wrote. A
 * file that is no cache is kept as FILE.corrupt. The folder is made. False with an error in d. */
bool tuned_add(struct arena *a, const char *path, const struct tuned_entry *e, struct diags *d);

/* The hash of a spec, whatever dimensions it was read with. Memory is a's. */
const char *tuned_hash(struct arena *a, const struct spec *s);
/* An entry for the spec as it was read, its types and its fixed dimensions in it, without a device
 * and figures. */
struct tuned_entry tuned_entry_of(struct arena *a, const struct spec *s,
                                  const struct ptx_target *target);
/* The entry for the same problem: on the device called so, or the last of any (NULL); NULL if
 * absent. */
const struct tuned_entry *tuned_find(const struct tuned_cache *c, const struct tuned_entry *problem,
                                     const char *device);

/* Can the kernel, read with the same defines, be emitted by this schedule? */
bool tuned_fits(struct arena *a, const struct spec *s, const struct spec_define *defines,
                size_t ndefine, const char *schedule, const struct ptx_target *target);
/* Gives the spec the cache's schedule: that of its own dimensions; else that of the nearest, where
 * none differs by more than a factor of two; where dimensions are left open, the one that all
 * entries for the others agree on. Only a schedule that can be emitted is taken. defines: those
 * that s was read with. Returns what was taken, or NULL with the reason in *why; *exact: what there
 * is is for the very dimensions. */
const struct tuned_entry *tuned_apply(struct arena *a, const struct tuned_cache *c, struct spec *s,
                                      const struct spec_define *defines, size_t ndefine,
                                      const struct ptx_target *target, const char *device,
                                      bool *exact, const char **why);

#endif
