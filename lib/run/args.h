/* NAME=VALUE as users write it, bound to a run.
 *
 *   dimension, scalar     a number: n=1024  alpha=2.5  flag=true
 *   in                    SOURCE
 *   out                   DESTINATION
 *   inout                 SOURCE[:DESTINATION]
 *
 * A SOURCE is a generator (data/generate.h) or a file (data/load.h): npy, raw bytes when the name
 * ends in ".bin" or ".raw", "w.safetensors#tensor", "-" for npy on standard input; a shape may
 * follow (run/view.h). A DESTINATION is a file or "-" likewise. Where a generator is followed by
 * ':', a number is its seed and anything else the destination; in a file's name the destination
 * begins after the last ':', so a source whose own name has one is written with another at its end.
 */
#ifndef KAIO_RUN_ARGS_H
#define KAIO_RUN_ARGS_H

#include "run/run.h"

struct run_arg {
    const char *name;
    const char *value; /* text; or NULL: */
    const void *data;  /* a buffer's contents, in the declared type; its shape follows from
                        * the dimensions */
    size_t bytes;
    bool dim_only; /* from -D: no parameter may have this name */
};

/* "n=1000" in its two parts, which are in the arena; false when it has not that form. */
bool run_arg_split(struct arena *a, const char *word, struct run_arg *arg);
/* Whether the contract has parameters or dimensions of these names, each of them once. */
bool run_check_names(struct run *r, const struct run_arg *arg, size_t n);

/* Binds everything, loads files, makes what is generated; every shape is known afterwards and every
 * requirement holds. stdin_user: what standard input is read for otherwise ("the PTX"); NULL: for
 * nothing. */
bool run_bind_args(struct run *r, const struct run_arg *arg, size_t n, const char *stdin_user);

/* Creates the destinations' files, under temporary names: before the launch, so that a folder that
 * cannot be written is found at once. */
bool run_open_outputs(struct run *r);
/* Writes them all; only when every one has been written do they get their names. */
bool run_write_outputs(struct run *r);
/* Leaves nothing behind. Safe to call at any time. */
void run_discard_outputs(struct run *r);
/* Whether a destination is standard output. */
bool run_uses_stdout(const struct run *r);

#endif
