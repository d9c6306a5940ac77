/* Tensor maps as 128 bytes: made, read, changed by tensormap.replace. */
#include <config.h>

#include <inttypes.h>

#include "sim/check.h"
#include "sim/report.h"
#include "sim/tensor.h"

/* "KAIO TMA" */
#define MAGIC UINT64_C(0x414d54204f49414b)

struct image {
    uint64_t magic;
    uint64_t address;
    uint64_t stride[DEVICE_TENSOR_RANK - 1]; /* of dimensions 1 and up */
    uint32_t dim[DEVICE_TENSOR_RANK];        /* modulo 2^32 */
    /* with .im2col of box[2 + i] the low half is lower[i] and the high half upper[i] */
    uint32_t box[DEVICE_TENSOR_RANK], step[DEVICE_TENSOR_RANK];
    uint32_t rank;
    uint8_t whole;                          /* dimensions of 2^32, a bit each */
    uint8_t type;                           /* enum dtype */
    uint8_t swizzle, interleave, promotion; /* in units of 16 bytes */
    uint8_t nan_fill, tf32;
    uint8_t im2col;
    uint32_t sum;
};
_Static_assert(sizeof(struct image) == DEVICE_TENSOR_MAP, "the size that kernels know");

enum { MAP_ALIGN = 64 };

/* The sum of all but the sum itself (FNV-1a). */
static uint32_t sum_of(const struct image *g)
{
    const unsigned char *p = (const unsigned char *)g;
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < offsetof(struct image, sum); i++)
        h = (h ^ p[i]) * 16777619u;
    return h;
}

static void seal(struct image *g, unsigned char to[DEVICE_TENSOR_MAP])
{
    g->sum = sum_of(g);
    memcpy(to, g, sizeof *g);
}

void sim_tensor_encode(const struct device_tensor_map *m, unsigned char to[DEVICE_TENSOR_MAP])
{
    struct image g = {.magic = MAGIC,
                      .address = m->address,
                      .rank = m->rank,
                      .type = (uint8_t)m->type,
                      .swizzle = (uint8_t)(m->swizzle / 16),
                      .interleave = (uint8_t)(m->interleave / 16),
                      .promotion = (uint8_t)(m->promotion / 16),
                      .nan_fill = m->nan_fill,
                      .tf32 = m->tf32,
                      .im2col = m->im2col};
    for (unsigned i = 0; i < m->rank; i++) {
        g.dim[i] = (uint32_t)m->dim[i];
        g.whole |= (uint8_t)((m->dim[i] >> 32 != 0) << i);
        g.box[i] = m->box[i];
        g.step[i] = m->step[i];
        if (i)
            g.stride[i - 1] = m->stride[i];
    }
    for (unsigned i = 0; i < DEVICE_TENSOR_SPACE && m->im2col; i++)
        g.box[2 + i] = (uint16_t)m->lower[i] | (uint32_t)(uint16_t)m->upper[i] << 16;
    seal(&g, to);
}

static enum sim_tensor_error open_image(const unsigned char from[DEVICE_TENSOR_MAP],
                                        struct image *g)
{
    memcpy(g, from, sizeof *g);
    return g->magic != MAGIC || g->type >= DT_COUNT ? SIM_TENSOR_GARBAGE
           : g->sum != sum_of(g)                    ? SIM_TENSOR_SPOILT
                                                    : SIM_TENSOR_FINE;
}

enum sim_tensor_error sim_tensor_decode(const unsigned char from[DEVICE_TENSOR_MAP],
                                        struct device_tensor_map *m)
{
    struct image g;
    const enum sim_tensor_error e = open_image(from, &g);
    if (e)
        return e;
    *m = (struct device_tensor_map){.address = g.address,
                                    .type = g.type,
                                    .rank = g.rank,
                                    .swizzle = 16u * g.swizzle,
                                    .interleave = 16u * g.interleave,
                                    .promotion = 16u * g.promotion,
                                    .nan_fill = g.nan_fill,
                                    .tf32 = g.tf32,
                                    .im2col = g.im2col};
    for (unsigned i = 0; i < DEVICE_TENSOR_RANK; i++) {
        m->dim[i] = g.dim[i] + ((uint64_t)(g.whole >> i & 1) << 32);
        m->box[i] = g.box[i];
        m->step[i] = g.step[i];
        m->stride[i] = i ? g.stride[i - 1] : device_tensor_element(m->type);
    }
    for (unsigned i = 0; i < DEVICE_TENSOR_SPACE && m->im2col; i++) {
        m->lower[i] = (int16_t)g.box[2 + i];
        m->upper[i] = (int16_t)(g.box[2 + i] >> 16);
    }
    return SIM_TENSOR_FINE;
}

/* ---- faults ---------------------------------------------------------------------------------- */

void sim_tensor_fault(struct sim_warp *w, const struct sim_op *op, uint32_t lane, uint64_t address,
                      enum sim_tensor_error error, const unsigned char *map)
{
    struct sim_fault *f = &w->block->fault;
    sim_fault_at(w, op, lane, SIM_F_TENSOR);
    f->address = address;
    f->space = SIM_IN_GENERIC;
    f->tensor.error = (uint8_t)error;
    if (map)
        memcpy(f->tensor.map, map, sizeof f->tensor.map);
}

static const char *instruction(const struct sim_launch *l, uint32_t op)
{
    const struct ptx_func *f = l->code->func;
    struct buf b = buf_in(l->arena);
    ptx_print_inst(f, &f->items.v[l->code->op[op].item].inst, &b);
    const char *s = buf_text(&b);
    s += *s == '@' ? strcspn(s, " ") + 1 : 0;
    return arena_strndup(l->arena, s, strcspn(s, " \t;"));
}

static void report_map(struct sim_launch *l, const struct sim_fault *f, struct span at,
                       const char *place, struct diags *d)
{
    const char *kernel = l->what->entry;
    switch ((enum sim_tensor_error)f->tensor.error) {
    case SIM_TENSOR_PLACE:
        diag_error(d, at,
                   "kernel '%s': a tensor map at %s; it must be in parameters, constant or global "
                   "memory",
                   kernel, place);
        return;
    case SIM_TENSOR_ALIGN:
        diag_error(d, at, "kernel '%s': a tensor map at %s, which is not a multiple of %d", kernel,
                   place, MAP_ALIGN);
        return;
    case SIM_TENSOR_GARBAGE:
        diag_error(d, at, "kernel '%s': the %d bytes at %s are no tensor map", kernel,
                   DEVICE_TENSOR_MAP, place);
        diag_note(d, SPAN_NONE,
                  "one comes from a {map: ...} among the arguments of the launch contract");
        return;
    case SIM_TENSOR_SPOILT:
        diag_error(d, at,
                   "kernel '%s': the tensor map at %s has been written to; only tensormap.replace "
                   "can change one",
                   kernel, place);
        return;
    default: return;
    }
}

void sim_tensor_report(struct sim_launch *l, const struct sim_fault *f, struct diags *d)
{
    const struct span at = sim_span_of(l, f->op);
    const char *place = sim_place_text(l, f->space, f->address, NULL);
    struct device_tensor_map m = {0};
    if (f->tensor.error >= SIM_TENSOR_RULES)
        sim_tensor_decode(f->tensor.map, &m);
    switch ((enum sim_tensor_error)f->tensor.error) {
    case SIM_TENSOR_RULES:
        device_tensor_map_check(&m, NULL, at, d);
        diag_note(d, SPAN_NONE, "the map is at %s", place);
        break;
    case SIM_TENSOR_RANK:
        diag_error(d, at, "kernel '%s': '%s' with a tensor map of %u dimension%s, which is at %s",
                   l->what->entry, instruction(l, f->op), m.rank, m.rank == 1 ? "" : "s", place);
        break;
    case SIM_TENSOR_MODE:
        diag_error(d, at, "kernel '%s': '%s' with a tensor map %s corners, which is at %s",
                   l->what->entry, instruction(l, f->op), m.im2col ? "with" : "without", place);
        diag_note(d, SPAN_NONE,
                  m.im2col ? "it is for copies in the mode .im2col"
                           : "copies in the mode .im2col take one of pixels");
        break;
    case SIM_TENSOR_FOLD:
        diag_error(d, at, "kernel '%s': '%s' on elements of %s, which can't be reduced like that",
                   l->what->entry, instruction(l, f->op), dtype_name(m.type));
        diag_note(d, SPAN_NONE,
                  "add takes u32, i32, u64, f32, f16 and bf16; min and max u32, i32, u64, i64, "
                  "f16 and bf16; inc and dec u32; and, or and xor integers of 32 and 64 bits");
        break;
    default: report_map(l, f, at, place, d);
    }
    diag_note(d, SPAN_NONE, "%s", sim_thread_text(l, f->block, f->warp * SIM_LANES + f->lane));
    sim_note_source(l, f->op, d);
}

/* ---- tensormap.replace ----------------------------------------------------------------------- */

static bool access_fault(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                         enum sim_fault_kind kind, uint64_t address, unsigned space, bool store)
{
    struct sim_fault *f = &w->block->fault;
    sim_fault_at(w, op, lane, kind);
    f->address = address;
    f->bytes = DEVICE_TENSOR_MAP;
    f->space = (uint8_t)space;
    f->store = store;
    return false;
}

/* Host address of the 128 bytes at an address of a space; NULL: the warp has stopped with a
 * fault. */
static unsigned char *reach(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                            uint64_t address, unsigned space, bool store)
{
    const struct sim_block *b = w->block;
    const bool shared = space == SIM_IN_SHARED || (space == SIM_IN_GENERIC &&
                                                   address >> SIM_WINDOW_BITS == SIM_WINDOW_SHARED);
    const uint64_t off = space == SIM_IN_GENERIC && shared ? address - SIM_SHARED_BASE : address;
    unsigned char *host = NULL;
    if (address % MAP_ALIGN) {
        sim_tensor_fault(w, op, lane, address, SIM_TENSOR_ALIGN, NULL);
        w->block->fault.space = (uint8_t)space;
        return NULL;
    }
    if (!shared)
        host = sim_mem_host(b->launch->memory, address, DEVICE_TENSOR_MAP);
    else if (b->shared_bytes >= DEVICE_TENSOR_MAP && off <= b->shared_bytes - DEVICE_TENSOR_MAP)
        host = b->shared + off;
    if (!host) {
        access_fault(w, op, lane, SIM_F_BOUNDS, address, space, store);
        return NULL;
    }
    if (!shared && store && sim_mem_near(b->launch->memory, address)->read_only) {
        access_fault(w, op, lane, SIM_F_READONLY, address, space, store);
        return NULL;
    }
    return host;
}

/* The types, as the PTX ISA numbers them for tensormap.replace. Those that should flush subnormals,
 * .f32.ftz and .tf32.ftz, an H100 copies as the ones that do not. */
static const enum dtype types[] = {DT_U8,  DT_U16, DT_U32, DT_I32,  DT_U64, DT_I64, DT_F16,
                                   DT_F32, DT_F32, DT_F64, DT_BF16, DT_F32, DT_F32};
enum { TYPE_TF32 = 11, TYPE_TF32_FTZ };

static void set_field(struct image *g, enum sim_tensor_field field, uint32_t i, uint64_t v)
{
    const uint8_t bit = (uint8_t)(1u << i);
    switch (field) {
    case SIM_TENSOR_ADDRESS: g->address = v; return;
    case SIM_TENSOR_DIMS: g->rank = (uint32_t)v + 1; return;
    case SIM_TENSOR_BOX: g->box[i] = (uint32_t)v; return;
    case SIM_TENSOR_DIM:
        g->dim[i] = (uint32_t)v;
        g->whole &= (uint8_t)~bit;
        return;
    case SIM_TENSOR_STRIDE:
        if (i < DEVICE_TENSOR_RANK - 1)
            g->stride[i] = v;
        return;
    case SIM_TENSOR_STEP: g->step[i] = (uint32_t)v; return;
    case SIM_TENSOR_TYPE:
        g->type = (uint8_t)types[v];
        g->tf32 = v == TYPE_TF32 || v == TYPE_TF32_FTZ;
        return;
    case SIM_TENSOR_INTERLEAVE: g->interleave = (uint8_t)v; return;           /* 0, 16, 32 bytes */
    case SIM_TENSOR_SWIZZLE: g->swizzle = (uint8_t)(v ? 1u << v : 0); return; /* 0, 32, 64, 128 */
    case SIM_TENSOR_FILL: g->nan_fill = v != 0; return;
    }
}

static uint64_t lane_value(const struct sim_warp *w, uint32_t slot, bool wide, uint32_t lane)
{
    uint64_t v = 0;
    memcpy(&v, w->r + slot + (wide ? 8 : 4) * lane, wide ? 8 : 4);
    return v;
}

/* Triton makes maps from nothing: 128 bytes of zeros, in which it then replaces what is not. */
static bool is_blank(const unsigned char at[DEVICE_TENSOR_MAP])
{
    for (unsigned i = 0; i < DEVICE_TENSOR_MAP; i++)
        if (at[i])
            return false;
    return true;
}

static struct image blank(void)
{
    struct image g = {.magic = MAGIC, .rank = 1, .type = DT_U8};
    for (unsigned i = 0; i < DEVICE_TENSOR_RANK; i++)
        g.box[i] = g.step[i] = 1;
    return g;
}

const struct sim_op *sim_tensor_replace(struct sim_warp *w, const struct sim_op *op)
{
    FOR_LANES(lane, w->em) {
        const uint64_t address = lane_value(w, op->a, true, lane);
        unsigned char *at = reach(w, op, lane, address, op->more, true);
        struct image g;
        if (!at)
            return NULL;
        const enum sim_tensor_error e = open_image(at, &g);
        if (e == SIM_TENSOR_GARBAGE && is_blank(at)) {
            g = blank();
        } else if (e) {
            sim_tensor_fault(w, op, lane, address, e, at);
            w->block->fault.space = op->more;
            return NULL;
        }
        if (w->block->check)
            sim_check_map_access(w, op, lane, op->more, address, true);
        set_field(&g, op->round, op->c, lane_value(w, op->b, op->e == 64, lane));
        seal(&g, at);
    }
    return op + 1;
}

/* ---- tensormap.cp_fenceproxy ----------------------------------------------------------------- */

const struct sim_op *sim_tensor_publish(struct sim_warp *w, const struct sim_op *op)
{
    if (w->em != UINT32_MAX)
        return sim_together(w, op, w->em);
    const uint64_t source = lane_value(w, op->b, true, 0), target = lane_value(w, op->a, true, 0);
    const unsigned char *from = reach(w, op, 0, source, SIM_IN_SHARED, false);
    unsigned char *to = from ? reach(w, op, 0, target, SIM_IN_GLOBAL, true) : NULL;
    if (!to)
        return NULL;
    if (w->block->check) {
        sim_check_map_access(w, op, 0, SIM_IN_SHARED, source, false);
        sim_check_map_access(w, op, 0, SIM_IN_GLOBAL, target, true);
        sim_check_map_fence(w, 0);
    }
    memcpy(to, from, DEVICE_TENSOR_MAP);
    return op + 1;
}

/* ---- fence.proxy.tensormap ------------------------------------------------------------------- */

const struct sim_op *sim_tensor_fence(struct sim_warp *w, const struct sim_op *op)
{
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t last = 0;
    for (uint32_t left = w->block->check ? w->em : 0; left; left &= left - 1) {
        const uint64_t address = op->a ? lane_value(w, op->a, true, (uint32_t)__builtin_ctz(left))
                                       : 0;
        if (left == w->em || address != last)
            sim_check_map_fence(w, address);
        last = address;
    }
    return op + 1;
}
