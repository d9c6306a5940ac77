#include <config.h>

#include <inttypes.h>

#include "run/tensor_map.h"

uint32_t device_tensor_element(enum dtype type)
{
    const unsigned bits = dtype_bits(type);
    return bits < 8 ? 1 : bits / 8;
}

uint32_t device_tensor_unit(const struct device_tensor_map *m)
{
    return m->interleave ? m->interleave : device_tensor_element(m->type);
}

uint32_t device_tensor_count(const struct device_tensor_map *m, unsigned dim)
{
    return (m->box[dim] + m->step[dim] - 1) / m->step[dim];
}

static uint32_t row_bytes(const struct device_tensor_map *m)
{
    return device_tensor_count(m, 0) * device_tensor_unit(m);
}

uint32_t device_tensor_pitch(const struct device_tensor_map *m)
{
    const uint32_t row = row_bytes(m);
    return row < m->swizzle ? m->swizzle : row;
}

int64_t device_tensor_starts(const struct device_tensor_map *m, unsigned i)
{
    const int64_t last = (int64_t)m->dim[1 + i] - 1 + m->upper[i] - m->lower[i];
    return last < 0 ? 0 : last / m->step[1 + i] + 1;
}

static uint64_t rows(const struct device_tensor_map *m)
{
    uint64_t n = 1;
    if (m->im2col)
        return m->box[1];
    for (unsigned i = 1; i < m->rank; i++)
        n *= device_tensor_count(m, i);
    return n;
}

uint64_t device_tensor_bytes(const struct device_tensor_map *m)
{
    return rows(m) * row_bytes(m);
}

uint64_t device_tensor_footprint(const struct device_tensor_map *m)
{
    return rows(m) * device_tensor_pitch(m);
}

/* ---- rules ----------------------------------------------------------------------------------- */

struct rules {
    const struct device_tensor_map *m;
    const char *of, *name, *end;
    struct span span;
    struct diags *d;
};

#define BAD(r, fmt, ...)                                                                   \
    ((r)->d && diag_error((r)->d, (r)->span, "tensor map%s%s%s: " fmt, (r)->of, (r)->name, \
                          (r)->end, __VA_ARGS__))

static bool one_of(unsigned v, const unsigned *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v == list[i])
            return true;
    return false;
}

static bool check_kind(const struct rules *r)
{
    const struct device_tensor_map *m = r->m;
    if (m->type >= DT_COUNT)
        return BAD(r, "type %d; it must be one of 8 to 64 bits", (int)m->type);
    if (m->rank < 1 || m->rank > DEVICE_TENSOR_RANK)
        return BAD(r, "rank %u; a tensor has 1 to %d dimensions", m->rank, DEVICE_TENSOR_RANK);
    if (!one_of(m->swizzle, (const unsigned[]){0, 32, 64, 128}, 4))
        return BAD(r, "swizzle %u; it must be 0, 32, 64 or 128 bytes", m->swizzle);
    if (!one_of(m->interleave, (const unsigned[]){0, 16, 32}, 3))
        return BAD(r, "interleave %u; it must be 0, 16 or 32 bytes", m->interleave);
    if (!one_of(m->promotion, (const unsigned[]){0, 64, 128, 256}, 4))
        return BAD(r, "the L2 cache fetches %u bytes; it must be 0, 64, 128 or 256", m->promotion);
    if (m->tf32 && m->type != DT_F32)
        return BAD(r, "elements of %s are not rounded to tf32; f32 are", dtype_name(m->type));
    if (m->nan_fill && (!dtype_is_float(m->type) || dtype_bits(m->type) < 16))
        return BAD(r, "elements of %s have no NaN to fill with; fill with 0", dtype_name(m->type));
    return true;
}

static bool check_interleave(const struct rules *r)
{
    const struct device_tensor_map *m = r->m;
    if (!m->interleave)
        return true;
    if (m->rank < 3)
        return BAD(r, "an interleaved tensor has 3 to %d dimensions, not %u", DEVICE_TENSOR_RANK,
                   m->rank);
    if (m->interleave == 32 && m->swizzle != 32)
        return BAD(r, "interleave 32 goes with swizzle 32, not %u", m->swizzle);
    if (m->box[m->rank - 2] != 1)
        return BAD(r,
                   "a box of an interleaved tensor has one slice of channels: its dimension %u "
                   "must be 1, not %u",
                   m->rank - 2, m->box[m->rank - 2]);
    return true;
}

/* Where the elements are. */
static bool check_memory(const struct rules *r)
{
    static const uint64_t most = (uint64_t)1 << 32, far = (uint64_t)1 << 40;
    const struct device_tensor_map *m = r->m;
    const unsigned align = m->interleave == 32 ? 32 : 16;
    if (!m->address || m->address % align)
        return BAD(r,
                   "it starts at address 0x%" PRIx64 "; that must be a multiple of %u, and not 0",
                   m->address, align);
    for (unsigned i = 0; i < m->rank; i++)
        if (m->dim[i] < 1 || m->dim[i] > most)
            return BAD(r, "dimension %u is %" PRIu64 "; it must be 1 to %" PRIu64, i, m->dim[i],
                       most);
    if (m->stride[0] != device_tensor_element(m->type))
        return BAD(r,
                   "elements of dimension 0 are %" PRIu64
                   " bytes apart; they must follow each other, %u bytes apart: make the dimension "
                   "without gaps the first",
                   m->stride[0], device_tensor_element(m->type));
    for (unsigned i = 1; i < m->rank; i++) {
        if (m->stride[i] % align)
            return BAD(r,
                       "the stride of dimension %u is %" PRIu64
                       " bytes; it must be a multiple of %u: pad the rows",
                       i, m->stride[i], align);
        if (m->stride[i] >= far)
            return BAD(r, "the stride of dimension %u is %" PRIu64 " bytes; it must be below 2^40",
                       i, m->stride[i]);
    }
    return true;
}

static bool check_steps(const struct rules *r)
{
    const struct device_tensor_map *m = r->m;
    for (unsigned i = 0; i < m->rank; i++)
        if (m->step[i] < 1 || m->step[i] > 8)
            return BAD(r, "step %u in dimension %u; it must be 1 to 8", m->step[i], i);
    return true;
}

/* Where windows begin. */
static bool check_corners(const struct rules *r)
{
    static const int32_t least[] = {-32768, -128, -16}; /* of 1, 2, 3 dimensions of pixels */
    const struct device_tensor_map *m = r->m;
    for (unsigned i = 0; i + 2 < m->rank; i++) {
        const int32_t low = least[m->rank - 3], high = -1 - low;
        if (m->lower[i] < low || m->lower[i] > high || m->upper[i] < low || m->upper[i] > high)
            return BAD(r,
                       "its corners in dimension %u are %" PRId32 " and %" PRId32
                       "; of %u dimensions they must be %" PRId32 " to %" PRId32,
                       i + 1, m->lower[i], m->upper[i], m->rank, low, high);
        if (m->dim[i + 1] > INT32_MAX) /* the driver takes less than 2^32 */
            return BAD(r, "%" PRIu64 " pixels along dimension %u; they must be less than 2^31",
                       m->dim[i + 1], i + 1);
        if (device_tensor_starts(m, i) < 1)
            return BAD(r,
                       "no window begins in dimension %u, of %" PRIu64
                       " elements, between its corners %" PRId32 " and %" PRId32,
                       i + 1, m->dim[i + 1], m->lower[i], m->upper[i]);
    }
    return true;
}

/* Windows of pixels: what a copy takes. */
static bool check_im2col(const struct rules *r)
{
    const struct device_tensor_map *m = r->m;
    if (m->rank < 3)
        return BAD(r,
                   "pixels of %u dimensions; there are channels, 1 to 3 dimensions of pixels and "
                   "images",
                   m->rank);
    if (m->interleave)
        return BAD(r, "interleave %u, which windows of pixels don't go with", m->interleave);
    if (m->box[0] < 1 || m->box[0] > 256)
        return BAD(r, "%u channels of a pixel; they must be 1 to 256", m->box[0]);
    if (m->box[1] < 1 || m->box[1] > 1024)
        return BAD(r, "a copy of %u pixels; they must be 1 to 1024", m->box[1]);
    if (m->step[m->rank - 1] != 1)
        return BAD(r, "step %u of images, which are taken one by one; it must be 1",
                   m->step[m->rank - 1]);
    return check_corners(r);
}

static bool check_extents(const struct rules *r)
{
    const struct device_tensor_map *m = r->m;
    for (unsigned i = 0; i < m->rank; i++)
        if (m->box[i] < 1 || m->box[i] > 256)
            return BAD(r, "dimension %u of its box is %u; it must be 1 to 256", i, m->box[i]);
    return true;
}

/* What a copy takes. */
static bool check_box(const struct rules *r)
{
    const struct device_tensor_map *m = r->m;
    if (!check_steps(r) || !(m->im2col ? check_im2col(r) : check_extents(r)))
        return false;
    if (m->interleave)
        return true;
    const uint32_t row = m->box[0] * device_tensor_element(m->type);
    if (m->step[0] != 1)
        return BAD(r,
                   "step %u in dimension 0, where every element is taken; it must be 1, or the "
                   "tensor interleaved",
                   m->step[0]);
    if (row % 16)
        return BAD(r,
                   "a row of its box, %u elements of %s, has %u bytes; they must be a multiple of "
                   "16",
                   m->box[0], dtype_name(m->type), row);
    if (m->swizzle && row > m->swizzle)
        return BAD(r,
                   "a row of its box, %u elements of %s, has %u bytes and swizzle %u room for %u: "
                   "make the box narrower, and copy several",
                   m->box[0], dtype_name(m->type), row, m->swizzle, m->swizzle);
    return true;
}

bool device_tensor_map_check(const struct device_tensor_map *m, const char *name, struct span s,
                             struct diags *d)
{
    const struct rules r = {m, name ? " of '" : "", name ? name : "", name ? "'" : "", s, d};
    return check_kind(&r) && check_memory(&r) && check_box(&r) && check_interleave(&r);
}
