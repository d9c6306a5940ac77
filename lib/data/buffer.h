/* A tensor in the host's memory: dense, row-major, little-endian. */
#ifndef KAIO_DATA_BUFFER_H
#define KAIO_DATA_BUFFER_H

#include "base/buf.h"
#include "data/dtype.h"

enum { BUFFER_RANK = 8 };

struct buffer {
    enum dtype type;
    uint32_t rank; /* 0: one element */
    uint64_t dim[BUFFER_RANK];
    uint64_t count; /* elements, the product of the dimensions */
    size_t bytes;
    void *data; /* not owned; aligned to no more than a byte where it lies in a file's contents */
};

/* Sets everything but data. False when the bytes do not fit in 2^48, or a packed type's last
 * dimension is odd (or there is none). */
bool buffer_shape(struct buffer *b, enum dtype type, uint32_t rank, const uint64_t *dim);
/* Gives it zeroed memory of the arena, aligned to 16 bytes. name: what it is called where there is
 * none; or NULL. */
void buffer_alloc(struct arena *a, struct buffer *b, const char *name);

struct buffer_summary {
    uint64_t count, nan, inf;
    double min, max, mean; /* of the finite elements; NaN when there are none */
    int64_t imin, imax;    /* integers, two's complement for u64 */
};
struct buffer_summary buffer_summarise(const struct buffer *b);

/* "[4, 1000]"; "[]" for one element. */
void shape_print(uint32_t rank, const uint64_t *dim, struct buf *out);
/* "f32[4, 1000]" */
void buffer_print_type(const struct buffer *b, struct buf *out);
/* The shortest text that reads back as element i. */
void buffer_print_element(const struct buffer *b, uint64_t i, struct buf *out);
/* One line without its newline: "f32[4, 1000]  0.25 -1.5 3 0.125 2 7 ... min -4.2 max 4.7 mean
 *                                              0.0012 nan 0 inf 0" */
void buffer_print_summary(const struct buffer *b, struct buf *out);

#endif
