/* Tensor copies: what is checked when they are issued, and the pieces that they move. */
#include <config.h>

#include "sim/atom.h"
#include "sim/check.h"
#include "sim/mbarrier.h"
#include "sim/tensor.h"

/* ---- boxes ----------------------------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void sim_tensor_box(const struct device_tensor_map *m, const int32_t *at, const uint16_t *offset,
                    bool stores, struct sim_tensor_box *x)
{
    *x = (struct sim_tensor_box){.rank = m->rank,
                                 .im2col = m->im2col,
                                 .pixels = m->box[1],
                                 .unit = device_tensor_unit(m),
                                 .pitch = device_tensor_pitch(m),
                                 .swizzle = m->swizzle ? m->swizzle - 16 : 0};
    for (unsigned i = 0; i < m->rank; i++) {
        x->at[i] = at[i];
        x->dim[i] = m->dim[i];
        x->stride[i] = i ? m->stride[i] : x->unit;
        x->count[i] = device_tensor_count(m, i);
        x->step[i] = m->step[i];
    }
    for (unsigned i = 0; m->im2col && i + 2 < m->rank; i++) {
        x->count[1 + i] = (uint32_t)device_tensor_starts(m, i);
        x->lower[i] = m->lower[i];
        x->offset[i] = offset[i];
    }
    x->row = x->count[0] * x->unit;
    const int64_t unit = x->unit, end = (int64_t)m->dim[0] * unit, start = x->at[0] * unit;
    const int64_t wide = stores ? (end + 15) & ~INT64_C(15) : end;
    x->from = start < 0 ? 0 : start;
    x->to = start < end ? least(start + x->row, wide) : start;
}

/* Along dimension i: the first and the last unit of the box that are inside of the tensor, as
 * indices of the tensor. */
static bool inside(const struct sim_tensor_box *x, unsigned i, uint64_t *first, uint64_t *last)
{
    const int64_t step = x->step[i], low = x->at[i] < 0 ? (-x->at[i] + step - 1) / step : 0;
    const int64_t past = (int64_t)x->dim[i] -
                         x->at[i]; /* units of the box, times step, before it */
    const int64_t high = least(past > 0 ? (past + step - 1) / step : 0, x->count[i]);
    if (low >= high)
        return false;
    *first = (uint64_t)(x->at[i] + low * step);
    *last = (uint64_t)(x->at[i] + (high - 1) * step);
    return true;
}

/* Adds n strides; what is past all memory stays there. */
static uint64_t beyond(uint64_t at, uint64_t n, uint64_t stride)
{
    uint64_t step;
    if (__builtin_mul_overflow(n, stride, &step) || __builtin_add_overflow(at, step, &at))
        return UINT64_MAX;
    return at;
}

/* ---- windows of pixels ----------------------------------------------------------------------- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Finds the tensor's row that the pixel is, in bytes from the tensor's start; false: outside. */
static bool pixel_at(const struct sim_tensor_box *x, uint64_t pixel, uint64_t *at)
{
    int64_t more = (int64_t)pixel; /* windows behind the first one's, or rows of them ... */
    *at = 0;
    for (unsigned i = 1; i < x->rank; i++) {
        int64_t c = x->at[i] + more;
        if (i + 1 < x->rank) {
            const int64_t n = (x->at[i] - x->lower[i - 1]) / x->step[i] + more;
            more = floor_div(n, x->count[i]);
            c = x->lower[i - 1] + (n - more * x->count[i]) * x->step[i] + x->offset[i - 1];
        }
        if (c < 0 || (uint64_t)c >= x->dim[i])
            return false;
        *at = beyond(*at, (uint64_t)c, x->stride[i]);
    }
    return true;
}

static bool pixels_extent(const struct sim_tensor_box *x, uint64_t *first, uint64_t *end)
{
    uint64_t at;
    bool any = false;
    for (uint32_t p = 0; x->from < x->to && p < x->pixels; p++) {
        if (!pixel_at(x, p, &at))
            continue;
        const uint64_t low = beyond(at, (uint64_t)x->from, 1),
                       high = beyond(at, (uint64_t)x->to, 1);
        *first = any && *first < low ? *first : low;
        *end = any && *end > high ? *end : high;
        any = true;
    }
    return any;
}

bool sim_tensor_extent(const struct sim_tensor_box *x, uint64_t *first, uint64_t *end)
{
    uint64_t low, high;
    if (x->im2col)
        return pixels_extent(x, first, end);
    if (!inside(x, 0, &low, &high))
        return false;
    *first = x->step[0] == 1 ? (uint64_t)x->from : low * x->unit;
    *end = x->step[0] == 1 ? (uint64_t)x->to : (high + 1) * x->unit;
    for (unsigned i = 1; i < x->rank; i++) {
        if (!inside(x, i, &low, &high))
            return false;
        *first = beyond(*first, low, x->stride[i]);
        *end = beyond(*end, high, x->stride[i]);
    }
    return true;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Finds where in the buffer the tensor's row is that the box's row lies on; false: outside of the
 * tensor. */
static bool row_at(const struct sim_tensor_box *x, uint64_t row, uint64_t *at)
{
    *at = x->base;
    if (!x->buffer)
        return false;
    if (x->im2col) {
        const bool in = pixel_at(x, row, at);
        *at += x->base;
        return in;
    }
    for (unsigned i = 1; i < x->rank; i++) {
        const int64_t c = x->at[i] + (int64_t)(row % x->count[i]) * x->step[i];
        row /= x->count[i];
        if (c < 0 || (uint64_t)c >= x->dim[i])
            return false;
        *at += (uint64_t)c * x->stride[i];
    }
    return true;
}

/* Bytes of the row from b on that are all inside of the tensor, at *at, or all outside. */
static uint32_t run_length(const struct sim_tensor_box *x, uint32_t b, bool *in, uint64_t *at)
{
    const uint32_t left = x->row - b;
    if (!*in)
        return left;
    if (x->step[0] != 1) {
        const uint32_t within = b % x->unit;
        const int64_t c = x->at[0] + (int64_t)(b / x->unit) * x->step[0];
        *in = c >= 0 && (uint64_t)c < x->dim[0];
        *at += *in ? (uint64_t)c * x->unit + within : 0;
        return x->unit - within;
    }
    const int64_t g = x->at[0] * x->unit + b;
    *in = g >= x->from && g < x->to;
    *at += *in ? (uint64_t)g : 0;
    return (uint32_t)(g < x->from ? least(x->from - g, left) : *in ? least(x->to - g, left) : left);
}

/* The bytes from b on of a row that are neighbours as far as one look tells. */
static struct sim_piece part(const struct sim_tensor_box *x, uint32_t start, bool in, uint64_t at,
                             uint32_t b)
{
    const uint32_t plain = start + b, chunk = 16 - (plain & 15);
    uint32_t n = run_length(x, b, &in, &at);
    if (x->swizzle && n > chunk)
        n = chunk;
    return (struct sim_piece){.shared = plain ^ (plain >> 3 & x->swizzle),
                              .bytes = n,
                              .buffer = in ? x->buffer : NULL,
                              .at = in ? at : 0};
}

static bool follows(const struct sim_piece *p, const struct sim_piece *q)
{
    return p->shared + p->bytes == q->shared && p->buffer == q->buffer &&
           (!p->buffer || p->at + p->bytes == q->at);
}

bool sim_tensor_pieces(const struct sim_flight *f, uint64_t *cursor, struct sim_piece *p)
{
    const struct sim_tensor_box *x = f->tensor;
    const uint64_t row = *cursor / x->row;
    const uint32_t start = f->shared + (uint32_t)row * x->pitch;
    uint32_t b = (uint32_t)(*cursor % x->row);
    uint64_t at;
    if (*cursor >= f->bytes)
        return false;
    const bool in = row_at(x, row, &at);
    *p = part(x, start, in, at, b);
    for (b += p->bytes; b < x->row;) {
        const struct sim_piece q = part(x, start, in, at, b);
        if (!follows(p, &q))
            break;
        p->bytes += q.bytes;
        b += q.bytes;
    }
    *cursor = row * x->row + b;
    return true;
}

/* ---- issue ----------------------------------------------------------------------------------- */

static bool access_fault(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                         enum sim_fault_kind kind, uint64_t address, uint64_t bytes, bool store)
{
    struct sim_fault *f = &w->block->fault;
    sim_fault_at(w, op, lane, kind);
    f->address = address;
    f->bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    f->space = SIM_IN_GLOBAL;
    f->store = store;
    return false;
}

/* The map that the lane's instruction names. */
static bool fetch(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                  struct device_tensor_map *m)
{
    const struct sim_tensor_op *c = sim_tensor_of(op);
    const uint64_t address = sim_wide(w, c->map, lane);
    const unsigned char *from = sim_mem_host(w->block->launch->memory, address, DEVICE_TENSOR_MAP);
    enum sim_tensor_error e = !from          ? SIM_TENSOR_PLACE
                              : address % 64 ? SIM_TENSOR_ALIGN
                                             : sim_tensor_decode(from, m);
    if (!e && !device_tensor_map_check(m, NULL, SPAN_NONE, NULL))
        e = SIM_TENSOR_RULES;
    if (!e && c->rank && c->rank != m->rank)
        e = SIM_TENSOR_RANK;
    if (!e && c->rank && c->im2col != m->im2col)
        e = SIM_TENSOR_MODE;
    if (e)
        sim_tensor_fault(w, op, lane, address, e, from);
    else if (w->block->check)
        sim_check_map_used(w, op, lane, address);
    return !e;
}

/* The buffer in which the part of the box lies that is inside of the tensor. */
static bool find_buffer(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                        const struct device_tensor_map *m, bool stores, struct sim_tensor_box *x)
{
    uint64_t first, end;
    if (!sim_tensor_extent(x, &first, &end))
        return true;
    first = beyond(m->address, first, 1);
    end = beyond(m->address, end, 1);
    struct sim_buffer *b = sim_mem_near(w->block->launch->memory, first);
    if (!b || b->released || first < b->base || first - b->base >= b->bytes)
        return access_fault(w, op, lane, SIM_F_BOUNDS, first, x->unit, stores);
    if (end - b->base > b->bytes)
        return access_fault(w, op, lane, SIM_F_BOUNDS, b->base + b->bytes, end - b->base - b->bytes,
                            stores);
    if (stores && b->read_only)
        return access_fault(w, op, lane, SIM_F_READONLY, first, x->unit, stores);
    x->buffer = b;
    x->base = m->address - b->base; /* modulo 2^64: what is copied is behind it */
    return true;
}

/* How a reduction of elements of the type is told to flight.c; false: it is not in the PTX ISA's
 * table. */
static bool fold_of(enum ptx_mod how, enum dtype t, uint8_t *fold)
{
    const bool whole = dtype_is_int(t) && dtype_bits(t) >= 32;
    const bool is_signed = dtype_class(t) == DTC_I, half = t == DT_F16, bf = t == DT_BF16;
    switch (how) {
    case PTX_ADD:
        *fold = half          ? SIM_ATOM_ADD_F16
                : bf          ? SIM_ATOM_ADD_BF16
                : t == DT_F32 ? SIM_ATOM_ADD_F
                              : SIM_ATOM_ADD;
        return half || bf || t == DT_F32 || (whole && t != DT_I64);
    case PTX_MIN:
        *fold = half        ? SIM_ATOM_MIN_F16
                : bf        ? SIM_ATOM_MIN_BF16
                : is_signed ? SIM_ATOM_MIN_S
                            : SIM_ATOM_MIN_U;
        return half || bf || whole;
    case PTX_MAX:
        *fold = half        ? SIM_ATOM_MAX_F16
                : bf        ? SIM_ATOM_MAX_BF16
                : is_signed ? SIM_ATOM_MAX_S
                            : SIM_ATOM_MAX_U;
        return half || bf || whole;
    case PTX_INC: *fold = SIM_ATOM_INC; return t == DT_U32;
    case PTX_DEC: *fold = SIM_ATOM_DEC; return t == DT_U32;
    case PTX_AND: *fold = SIM_ATOM_AND; return whole;
    case PTX_OR: *fold = SIM_ATOM_OR; return whole;
    case PTX_XOR: *fold = SIM_ATOM_XOR; return whole;
    default: return false;
    }
}

static bool reduction(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                      const struct device_tensor_map *m, struct sim_flight *f)
{
    const struct sim_tensor_op *c = sim_tensor_of(op);
    unsigned char map[DEVICE_TENSOR_MAP];
    f->type = (uint8_t)device_tensor_element(m->type);
    if (fold_of((enum ptx_mod)c->fold, m->type, &f->fold))
        return true;
    sim_tensor_encode(m, map);
    sim_tensor_fault(w, op, lane, sim_wide(w, c->map, lane), SIM_TENSOR_FOLD, map);
    return false;
}

/* The blocks that a load goes to, and the mbarrier there. */
static bool destination(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                        const struct sim_block *to, struct sim_flight *f)
{
    const struct sim_tensor_op *c = sim_tensor_of(op);
    struct sim_place p;
    f->blocks = c->mask ? sim_word(w, c->mask, lane) & 0xffff : 1u << to->rank;
    if (!f->blocks || f->blocks >> w->block->npeer) {
        sim_fault_at(w, op, lane, SIM_F_RANKS);
        w->block->fault.lanes = f->blocks;
        return false;
    }
    if (!sim_shared_place(w, op, lane, sim_wide(w, c->mbarrier, lane), SIM_IN_SHARED, true, 8, 8,
                          true, &p))
        return false;
    f->mbarrier = p.offset;
    if (p.block == to)
        return true;
    sim_fault_at(w, op, lane, SIM_F_MBARRIER);
    sim_mbar_blame(&w->block->fault, p.block, p.offset, SIM_MBAR_APART);
    return false;
}

/* Does a window begin where the copy does? */
static bool starts_at_window(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                             const struct sim_tensor_box *x)
{
    for (unsigned i = 1; i + 1 < x->rank; i++) {
        const int64_t from = x->at[i] - x->lower[i - 1];
        if (from >= 0 && from % x->step[i] == 0 && from / x->step[i] < x->count[i])
            continue;
        sim_fault_at(w, op, lane, SIM_F_START);
        w->block->fault.address = (uint64_t)x->at[i];
        w->block->fault.bytes = i;
        return false;
    }
    return true;
}

static bool issue_lane(struct sim_warp *w, const struct sim_op *op, uint32_t lane)
{
    enum { ALIGN = 128, COLUMN = 16 }; /* of the box in shared memory, and in the tensor's row */
    static const enum sim_flight_kind kinds[] = {[SIM_TENSOR_LOAD] = SIM_FLY_LOAD,
                                                 [SIM_TENSOR_STORE] = SIM_FLY_STORE,
                                                 [SIM_TENSOR_REDUCE] = SIM_FLY_REDUCE};
    /* of one dimension of pixels, two and three: an H100 was seen to take 8 bits of two */
    static const uint16_t offset_bits[] = {UINT16_MAX, 255, 31};
    const struct sim_tensor_op *c = sim_tensor_of(op);
    const bool stores = c->kind == SIM_TENSOR_STORE || c->kind == SIM_TENSOR_REDUCE;
    const bool load = c->kind == SIM_TENSOR_LOAD;
    struct device_tensor_map m;
    struct sim_tensor_box box;
    struct sim_place p;
    int32_t at[DEVICE_TENSOR_RANK];
    uint16_t offset[DEVICE_TENSOR_SPACE];
    if (!fetch(w, op, lane, &m) || c->kind == SIM_TENSOR_TOUCH)
        return w->stop != SIM_FAULT;
    for (unsigned i = 0; i < c->rank; i++)
        at[i] = (int32_t)sim_word(w, c->at[i], lane);
    for (unsigned i = 0; c->im2col && i + 2 < c->rank; i++)
        offset[i] = (uint16_t)sim_word(w, c->offset[i], lane) & offset_bits[c->rank - 3];
    sim_tensor_box(&m, at, offset, stores, &box);
    if (box.at[0] * box.unit % COLUMN) {
        sim_fault_at(w, op, lane, SIM_F_COLUMN);
        w->block->fault.address = (uint64_t)(box.at[0] * box.unit);
        return false;
    }
    if (box.im2col && !starts_at_window(w, op, lane, &box))
        return false;
    if (!find_buffer(w, op, lane, &m, stores, &box))
        return false;
    if (c->kind == SIM_TENSOR_PREFETCH)
        return true;
    struct sim_flight f = {.kind = kinds[c->kind],
                           .pieces = sim_tensor_pieces,
                           .bytes = (uint32_t)device_tensor_bytes(&m),
                           .extent = (uint32_t)device_tensor_footprint(&m),
                           .span = (uint8_t)(m.swizzle ? m.swizzle : 16),
                           .mbarrier = SIM_NO_MBARRIER,
                           .fold = SIM_NO_FOLD,
                           .tf32 = load && m.tf32,
                           .fill = m.nan_fill ? SIM_TENSOR_NAN : 0};
    if (!sim_shared_place(w, op, lane, sim_wide(w, c->shared, lane), SIM_IN_SHARED, load && !c->own,
                          device_tensor_footprint(&m), ALIGN, load, &p))
        return false;
    f.shared = p.offset;
    if (load && !destination(w, op, lane, p.block, &f))
        return false;
    if (c->kind == SIM_TENSOR_REDUCE && !reduction(w, op, lane, &m, &f))
        return false;
    return sim_flight_issue(w, op, lane, &f, &box, sizeof box);
}

const struct sim_op *sim_tensor_issue(struct sim_warp *w, const struct sim_op *op)
{
    FOR_LANES(lane, w->em)
        if (!issue_lane(w, op, lane))
            return NULL;
    return op + 1;
}
