/* A file's tensor in another shape: "a.npy[2,3,-1]", "a.npy::T", "w.safetensors#q[8,64]::T".
 *
 *   [EXTENT,...]   the same elements in this shape; one extent may be -1 and follows from the
 *                  others
 *   ::T            the axes in reverse order, after that
 */
#ifndef KAIO_RUN_VIEW_H
#define KAIO_RUN_VIEW_H

#include "base/diag.h"
#include "data/buffer.h"

struct view {
    const char *file; /* without what is behind it */
    const char *text; /* all of it, for messages */
    bool shaped, transposed;
    uint32_t rank;
    int64_t dim[BUFFER_RANK]; /* -1: follows from the others */
};

/* How many bytes at the start of an inout's value, SOURCE[:DESTINATION], are its source. */
size_t view_source(const char *value);
/* Whether a destination ends in a view, which only sources have. */
bool view_is_behind(const char *path);
/* name: of the parameter, for messages. */
bool view_parse(struct arena *a, const char *name, const char *text, struct view *v,
                struct diags *d);
/* The shape of count elements, for a buffer without one. */
bool view_shape(const struct view *v, const char *name, enum dtype type, uint64_t count,
                struct buffer *b, struct diags *d);
/* The buffer as it is asked for: the same contents, or a copy in the arena where axes are
 * reversed. */
bool view_apply(struct arena *a, const struct view *v, const char *name, struct buffer *b,
                struct diags *d);

#endif
