/* Tensors in files: what a file holds, matched with what a kernel declares.
 *
 * npy (versions 1 to 3), one tensor of a safetensors file ("w.safetensors#layer.0.weight"), raw
 * bytes (".bin", ".raw"), and "-" for an npy stream on standard input or output.
 *
 * numpy's type of each of ours is dtype_npy(). Three kinds of ours travel in disguise:
 *   bf16        any 2-byte integer, or V2 (as ml_dtypes is saved by numpy.save)
 *   e4m3 e5m2   any 1-byte integer, or V1; e5m2 also f1, as ml_dtypes' is saved
 *   i4 u4       a 1-byte integer: two elements to a byte, the even index in the low nibble, the
 *               last dimension half of the declared one; or V1, as ml_dtypes saves int4: one
 *               element to a byte, in its low nibble, and the last dimension as declared. We write
 *               the former, as |u1.
 * Every other type must be met exactly.
 */
#ifndef KAIO_DATA_LOAD_H
#define KAIO_DATA_LOAD_H

#include <stdio.h>

#include "base/diag.h"
#include "data/buffer.h"

struct io_in;

/* A tensor as a file has it. */
struct loaded {
    const char *name;   /* the file, for messages */
    bool raw;           /* bytes without a type or a shape */
    char type_name[40]; /* the type in its file's words: "float64", "V2" */
    enum dtype type;    /* DT_VOID: opaque bytes, or a type we lack */
    unsigned size;      /* bytes of an element */
    bool opaque;        /* V1, V2 */
    uint32_t rank;
    uint64_t dim[BUFFER_RANK];
    const unsigned char *data;
    size_t bytes;
    struct io_in *in; /* raw bytes, still to be read; NULL: there is nothing to read */
};

/* Reads a file (or "-") and says what is in it; false with errors in d. The data stay in the arena.
 * Raw bytes are opened and no more, for only who knows the shape knows how many are needed. */
bool load_file(struct arena *a, const char *path, struct loaded *out, struct diags *d);
/* The file that this reads: "w.safetensors" of "w.safetensors#layer.0.weight". */
const char *load_path(struct arena *a, const char *path);
/* Reads raw bytes, of which this many are needed; bytes says how many there are, and where that is
 * another number data is NULL: one more is the most that is read. LOAD_ALL: all of a regular file,
 * and others are refused. */
#define LOAD_ALL SIZE_MAX
bool load_raw(struct arena *a, struct loaded *l, size_t need, struct diags *d);
/* Appends the tensors of a safetensors file as a table: name, type and shape, bytes. */
bool load_list(struct arena *a, const char *path, struct buf *out, struct diags *d);
/* The tensor as type want; raw bytes have no shape, so they are refused here. False, without a
 * message, when the types do not match. */
bool loaded_as(struct arena *a, const struct loaded *l, enum dtype want, struct buffer *out);
/* The type to take where nothing declares one: its own, or the integer of its width; DT_VOID when
 * there is none (complex numbers, strings). */
enum dtype loaded_type(const struct loaded *l);
/* "float64[4, 1000]"; "4096 raw bytes". */
void loaded_print(const struct loaded *l, struct buf *out);

/* Whether a destination's name asks for raw bytes instead of npy: ".bin", ".raw". */
bool save_is_raw(const char *path);
/* Writes npy version 1 or raw bytes. Errors show in ferror(f). */
void save_buffer(FILE *f, bool raw, const struct buffer *b);

#endif
