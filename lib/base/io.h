/* Files: inputs read whole, outputs that appear whole or not at all. */
#ifndef KAIO_BASE_IO_H
#define KAIO_BASE_IO_H

#include "base/diag.h"

enum { IO_TEXT_LIMIT = 64 << 20 }; /* bytes of spec or PTX that are read; more is refused */

/* The whole of a file, or of standard input for "-" (then named "<stdin>"), at most limit bytes.
 * NULL, with an error in d, when it can't be opened or read, is a directory, or is longer than
 * limit. */
const struct source *io_read(struct arena *a, struct diags *d, const char *path, size_t limit);

/* Line `line` (from 1) of a text file without its indentation, for a message about it. SPAN_NONE,
 * without an error, when the path is no regular file of at most 16 MiB that has such a line. */
enum { IO_LINE_LIMIT = 16 << 20 };
struct span io_line(struct arena *a, const char *path, size_t line);

/* An input that is read piece by piece, so that no more of it is read than is needed: /dev/zero and
 * pipes need not end. */
struct io_in {
    FILE *file;
    const unsigned char *memory; /* in its place; NULL: there is a file */
    const char *name;            /* for messages */
    uint64_t left;               /* bytes that are still to come; IO_UNKNOWN: of no regular file */
};
#define IO_UNKNOWN UINT64_MAX

/* A file, or standard input for "-". NULL, with an error in d, when it can't be opened. */
struct io_in *io_open(struct arena *a, struct diags *d, const char *path);
/* n bytes of memory as an input. */
struct io_in *io_memory(struct arena *a, const char *name, const void *bytes, size_t n);
/* Reads n bytes, fewer only where the input ends: *got. False with an error in d. */
bool io_get(struct io_in *in, void *to, size_t n, size_t *got, struct diags *d);
/* Passes n bytes, if there are so many. */
bool io_skip(struct io_in *in, uint64_t n, struct diags *d);
void io_close(struct io_in *in); /* NULL is allowed */

/* The descriptor that a path such as /dev/stdout or /dev/fd/3 names; -1: it names none. */
int io_descriptor(const char *path);
/* Whether reading from the path takes from standard input: "-", /dev/stdin, the FIFO that it is. */
bool io_is_stdin(const char *path);

/* What tells that a file is as it was: when two are the same. */
struct io_state {
    uint64_t device, inode, bytes;
    int64_t modified, changed; /* ns */
};
/* False where nothing would tell of a change: of what is no regular file, of one that was modified
 * so recently that the file system's clock may not have moved since, and of one in memory (tmpfs),
 * which is changed through a mapping without a trace. */
bool io_state(const char *path, struct io_state *s);
bool io_same_state(const struct io_state *a, const struct io_state *b);

/* An output in the making. A regular file is written under a temporary name in its directory, and
 * takes its name (over a file already there, whose mode it keeps) only at io_commit(). Where the
 * path names something else (/dev/stdout, /dev/full, a FIFO), or is "-", the bytes go straight
 * there. */
struct io_out {
    FILE *file; /* write here; check nothing, io_commit() does */
    int error;  /* why io_write() failed first; 0: it did not */
    const char *path;
    char *tmp;    /* NULL: straight through */
    char *target; /* symbolic links resolved */
    int slot;     /* in the list of files that a signal removes; -1: none */
};

/* Memory is the arena's. NULL, with an error in d, when the file can't be created: call it before
 * long work. */
struct io_out *io_create(struct arena *a, struct diags *d, const char *path);
/* fwrite() that remembers why it failed, which stdio forgets: io_commit() then says "no space left"
 * rather than "input/output error". */
void io_write(struct io_out *out, const void *p, size_t n);
/* Everything written, closed, and in place; false, with an error in d and nothing left behind,
 * otherwise. */
bool io_commit(struct io_out *out, struct diags *d);
/* Closes it and leaves nothing behind. NULL is allowed. */
void io_discard(struct io_out *out);

/* Removes the temporary files of all outputs not yet committed: for signal handlers. */
void io_remove_unfinished(void);

#endif
