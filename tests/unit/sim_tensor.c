/* Copies of tensors in the simulator: where each element goes, for every rank, element size,
 * swizzle and interleave; what is filled or left alone outside of the tensor. Every box is compared
 * with plain loops over its elements, written from the PTX ISA's words and not from lib/sim. */
#include "tensor.h"

static const char module[] = HEAD LOAD(1, "%c0") LOAD(2, "%c0, %c1") LOAD(3, "%c0, %c1, %c2")
    LOAD(4, "%c0, %c1, %c2, %c3") LOAD(5, "%c0, %c1, %c2, %c3, %c4") STORE(1, "%c0")
        STORE(2, "%c0, %c1") STORE(3, "%c0, %c1, %c2") STORE(4, "%c0, %c1, %c2, %c3")
            STORE(5, "%c0, %c1, %c2, %c3, %c4");

/* ---- plain loops ----------------------------------------------------------------------------- */

/* The swizzle tables of the PTX ISA, a line for each 128 bytes of addresses: which 16 bytes are
 * there. */
static const unsigned char table32[2][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}};
static const unsigned char table64[4][8] = {{0, 1, 2, 3, 4, 5, 6, 7},
                                            {1, 0, 3, 2, 5, 4, 7, 6},
                                            {2, 3, 0, 1, 6, 7, 4, 5},
                                            {3, 2, 1, 0, 7, 6, 5, 4}};
static const unsigned char table128[8][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6},
                                             {2, 3, 0, 1, 6, 7, 4, 5}, {3, 2, 1, 0, 7, 6, 5, 4},
                                             {4, 5, 6, 7, 0, 1, 2, 3}, {5, 4, 7, 6, 1, 0, 3, 2},
                                             {6, 7, 4, 5, 2, 3, 0, 1}, {7, 6, 5, 4, 3, 2, 1, 0}};

static uint32_t swizzled(unsigned span, uint32_t address)
{
    const uint32_t line = address / 128, chunk = address % 128 / 16;
    const unsigned char *row = span == 32    ? table32[line % 2]
                               : span == 64  ? table64[line % 4]
                               : span == 128 ? table128[line % 8]
                                             : table128[0];
    uint32_t where = 0;
    while (row[where] != chunk)
        where++;
    return line * 128 + where * 16 + address % 16;
}

/* CUTLASS: Swizzle<B, M, S> */
static uint32_t cutlass(unsigned b, unsigned m, unsigned s, uint32_t x)
{
    const uint32_t bits = ((1u << b) - 1) << m;
    return x ^ (x >> s & bits);
}

struct element {
    bool inside;     /* of the tensor */
    uint64_t global; /* bytes from its start; of an outside one along dimension 0 only too */
    uint32_t shared; /* address, without what the swizzle does */
    bool tail;       /* outside, in the last 16 bytes of a row that the tensor reaches into */
};
typedef void (*visitor)(struct bench *b, const struct device_tensor_map *m, const struct element *e,
                        uint32_t unit);

/* Every unit of the box, from the innermost dimension on. */
static void each(struct bench *b, const struct device_tensor_map *m, const int32_t c[RANK],
                 uint32_t at, visitor visit)
{
    const uint32_t unit = m->interleave ? m->interleave : dtype_bits(m->type) / 8;
    uint32_t n[RANK] = {1, 1, 1, 1, 1}, i[RANK];
    for (unsigned k = 0; k < m->rank; k++)
        n[k] = (m->box[k] + m->step[k] - 1) / m->step[k];
    uint32_t pitch = n[0] * unit, row = 0;
    if (m->swizzle > pitch)
        pitch = m->swizzle;
    for (i[4] = 0; i[4] < n[4]; i[4]++)
        for (i[3] = 0; i[3] < n[3]; i[3]++)
            for (i[2] = 0; i[2] < n[2]; i[2]++)
                for (i[1] = 0; i[1] < n[1]; i[1]++, row++)
                    for (i[0] = 0; i[0] < n[0]; i[0]++) {
                        struct element e = {.inside = true,
                                            .shared = at + row * pitch + i[0] * unit};
                        bool outer = true;
                        for (unsigned k = 0; k < m->rank; k++) {
                            const int64_t p = c[k] + (int64_t)i[k] * m->step[k];
                            const bool in = p >= 0 && p < (int64_t)m->dim[k];
                            e.inside &= in;
                            outer &= in || k == 0;
                            e.global += (uint64_t)p * (k ? m->stride[k] : unit);
                            if (k == 0)
                                e.tail = p >= (int64_t)m->dim[0] && c[0] < (int64_t)m->dim[0] &&
                                         (uint64_t)p * unit / 16 == (m->dim[0] * unit - 1) / 16;
                        }
                        e.tail &= outer;
                        visit(b, m, &e, unit);
                    }
}

static void expect_load(struct bench *b, const struct device_tensor_map *m, const struct element *e,
                        uint32_t unit)
{
    for (uint32_t k = 0; k < unit; k++)
        b->want[swizzled(m->swizzle, e->shared + k)] =
            e->inside     ? b->global[m->address - b->tensor + e->global + k]
            : m->nan_fill ? (k & 1 ? 0x7f : 0xf7)
                          : 0;
}

static void expect_store(struct bench *b, const struct device_tensor_map *m,
                         const struct element *e, uint32_t unit)
{
    for (uint32_t k = 0; k < unit && (e->inside || e->tail); k++)
        b->want[m->address - b->tensor + e->global + k] =
            b->tile[swizzled(m->swizzle, e->shared + k)];
}

static uint32_t box_bytes(const struct device_tensor_map *m)
{
    uint32_t n = m->interleave ? m->interleave : dtype_bits(m->type) / 8;
    for (unsigned k = 0; k < m->rank; k++)
        n *= (m->box[k] + m->step[k] - 1) / m->step[k];
    return n;
}

static bool load_is_right(struct bench *b, const struct device_tensor_map *m, const int32_t c[RANK],
                          uint32_t at)
{
    unsigned char map[128];
    memcpy(b->want, b->tile, SHARED);
    each(b, m, c, at, expect_load);
    if (!encode(b, m, map) ||
        go(b, arena_printf(b->s.arena, "load%u", m->rank), map, at, box_bytes(m), c) != DEVICE_OK)
        return false;
    sim_fetch(&b->s, b->got, b->y, SHARED);
    return memcmp(b->got, b->want, SHARED) == 0;
}

static bool store_is_right(struct bench *b, const struct device_tensor_map *m,
                           const int32_t c[RANK], uint32_t at)
{
    unsigned char map[128];
    sim_device.write(b->s.dev, b->tensor, b->global, GLOBAL, b->s.diags);
    memcpy(b->want, b->global, GLOBAL);
    each(b, m, c, at, expect_store);
    if (!encode(b, m, map) ||
        go(b, arena_printf(b->s.arena, "store%u", m->rank), map, at, 0, c) != DEVICE_OK)
        return false;
    sim_fetch(&b->s, b->got, b->tensor, GLOBAL);
    const bool same = memcmp(b->got, b->want, GLOBAL) == 0;
    sim_device.write(b->s.dev, b->tensor, b->global, GLOBAL, b->s.diags);
    return same;
}

static void describe(const struct device_tensor_map *m, const int32_t c[RANK], uint32_t at)
{
    tap_note("%s rank %u swizzle %u interleave %u at %u", dtype_name(m->type), m->rank, m->swizzle,
             m->interleave, at);
    for (unsigned k = 0; k < m->rank; k++)
        tap_note("  dim %" PRIu64 " stride %" PRIu64 " box %u step %u from %d", m->dim[k],
                 m->stride[k], m->box[k], m->step[k], c[k]);
}

/* ---- layouts --------------------------------------------------------------------------------- */

static void formulas(void)
{
    unsigned wrong = 0;
    for (uint32_t x = 0; x < 4096; x++)
        wrong += swizzled(32, x) != cutlass(1, 4, 3, x) || swizzled(64, x) != cutlass(2, 4, 3, x) ||
                 swizzled(128, x) != cutlass(3, 4, 3, x) || swizzled(0, x) != x;
    eq_int(wrong, 0, "the ISA's tables are Swizzle<1,4,3>, <2,4,3>, <3,4,3> of the address");
}

/* Each element of a tile holds its own coordinates. */
static void own_coordinates(struct bench *b)
{
    static const enum dtype types[] = {DT_U8, DT_F16, DT_F32, DT_F64};
    uint16_t *v = (uint16_t *)(void *)b->global;
    for (size_t i = 0; i < GLOBAL / 2; i++) /* 8 bytes hold a row and a column of 16-byte chunks */
        v[i] = (uint16_t)(i / 64 << 6 | i % 64);
    sim_device.write(b->s.dev, b->tensor, b->global, GLOBAL, b->s.diags);
    unsigned wrong = 0;
    for (unsigned span = 32; span <= 128; span *= 2)
        for (size_t t = 0; t < 4; t++)
            for (uint32_t at = 0; at < 1024; at += 128) {
                const uint32_t size = dtype_bits(types[t]) / 8;
                const struct device_tensor_map m = {.address = b->tensor,
                                                    .type = types[t],
                                                    .rank = 2,
                                                    .dim = {128 / size, 256},
                                                    .stride = {size, 128},
                                                    .box = {span / size, 64},
                                                    .step = {1, 1},
                                                    .swizzle = span};
                const int32_t c[RANK] = {0, 3};
                if (!load_is_right(b, &m, c, at) && !wrong++)
                    describe(&m, c, at);
                /* and once more in CUTLASS's words */
                for (uint32_t y = 0; y < 64; y++)
                    for (uint32_t x = 0; x < span; x++) {
                        const unsigned bits = span == 32 ? 1 : span == 64 ? 2 : 3;
                        const uint32_t where = cutlass(bits, 4, 3, at + y * span + x);
                        wrong += b->got[where] != b->global[(y + 3) * 128 + x];
                    }
            }
    eq_int(wrong, 0, "a tile of coordinates, for each swizzle, element size and start");
}

/* ---- random boxes ---------------------------------------------------------------------------- */

static uint32_t between(uint32_t low, uint32_t high)
{
    return low + draw(high - low + 1);
}

/* A map whose tensor fits into the buffer and whose box fits into the tile, or rank 0. */
static struct device_tensor_map random_map(const struct bench *b, bool interleaved)
{
    static const enum dtype types[] = {DT_U8,  DT_E4M3, DT_F16, DT_BF16, DT_I16,
                                       DT_F32, DT_U32,  DT_F64, DT_I64};
    static const unsigned spans[] = {0, 32, 64, 128};
    struct device_tensor_map m = {.type = types[draw(9)]};
    const uint32_t size = dtype_bits(m.type) / 8;
    m.rank = interleaved ? between(3, 5) : between(1, 5);
    m.interleave = interleaved ? 16 * between(1, 2) : 0;
    m.swizzle = m.interleave == 32 ? 32 : spans[draw(4)];
    m.nan_fill = dtype_is_float(m.type) && size > 1 && draw(2);
    const uint32_t unit = m.interleave ? m.interleave : size, align = m.interleave == 32 ? 32 : 16;
    const uint32_t widest = m.interleave       ? 40
                            : m.swizzle        ? m.swizzle / size
                            : 256 > 512 / size ? 512 / size
                                               : 256;
    m.stride[0] = size;
    for (unsigned k = 0; k < m.rank; k++) {
        m.dim[k] = between(1, k ? 9 : 600 / unit);
        m.step[k] = draw(3) ? 1 : between(1, 8);
        m.box[k] = between(1, k ? 12 : widest);
        if (k)
            m.stride[k] = k == 1 ? (m.dim[0] * unit + align - 1) / align * align + align * draw(3)
                                 : m.stride[k - 1] * m.dim[k - 1] + align * draw(3);
    }
    if (m.interleave) {
        m.box[m.rank - 2] = 1;
    } else {
        m.step[0] = 1;
        m.box[0] = (m.box[0] * size + 15) / 16 * 16 / size;
    }
    const uint64_t last = m.rank - 1, end = last ? m.stride[last] * m.dim[last] : 1024;
    if (end + 1024 > GLOBAL || device_tensor_footprint(&m) + 1024 > SHARED)
        m.rank = 0;
    m.address = b->tensor + 32 * draw(16);
    return m;
}

static void random_boxes(struct bench *b, bool interleaved, unsigned cases)
{
    unsigned wrong = 0, nload = 0, nstore = 0;
    for (unsigned i = 0; i < cases;) {
        const struct device_tensor_map m = random_map(b, interleaved);
        int32_t c[RANK] = {0};
        if (!m.rank)
            continue;
        for (unsigned k = 0; k < m.rank; k++)
            c[k] = (int32_t)draw((uint32_t)m.dim[k] + m.box[k] + 1) - (int32_t)m.box[k];
        if (draw(2))
            c[0] = (int32_t)draw((uint32_t)m.dim[0]);
        if (!m.interleave) /* a multiple of 16 bytes */
            c[0] -= c[0] % (int32_t)(16 / m.stride[0]);
        const uint32_t at = 128 * draw(8);
        const bool store = i++ % 2;
        const bool right = store ? store_is_right(b, &m, c, at) : load_is_right(b, &m, c, at);
        nload += !store;
        nstore += store;
        if (!right && !wrong++) {
            describe(&m, c, at);
            tap_note("%s: %s", store ? "store" : "load", sim_errors(&b->s));
        }
    }
    eq_int(wrong, 0, "%u loads and %u stores of random %sboxes", nload, nstore,
           interleaved ? "interleaved " : "");
}

/* ---- the edge, in numbers -------------------------------------------------------------------- */

static void edges(struct bench *b)
{
    struct device_tensor_map m = {.address = b->tensor,
                                  .type = DT_F32,
                                  .rank = 2,
                                  .dim = {70, 4},
                                  .stride = {4, 288},
                                  .box = {32, 4},
                                  .step = {1, 1}};
    ok(store_is_right(b, &m, (const int32_t[RANK]){64, 0}, 0), "a store at the edge");
    unsigned char map[128];
    encode(b, &m, map);
    go(b, "store2", map, 0, 0, (const int32_t[RANK]){64, 0});
    sim_fetch(&b->s, b->got, b->tensor, GLOBAL);
    ok(memcmp(b->got + 280, b->tile + 24, 8) == 0, "columns 70 and 71 of 70 are written");
    ok(memcmp(b->got + 288, b->global + 288, 64 * 4) == 0, "nothing is past 72");
    sim_device.write(b->s.dev, b->tensor, b->global, GLOBAL, b->s.diags);
    m.dim[0] = 68;
    encode(b, &m, map);
    go(b, "store2", map, 0, 0, (const int32_t[RANK]){64, 0});
    sim_fetch(&b->s, b->got, b->tensor, GLOBAL);
    ok(memcmp(b->got + 272, b->global + 272, 16) == 0, "68 columns end where they should");
    sim_device.write(b->s.dev, b->tensor, b->global, GLOBAL, b->s.diags);
    /* a box that lies outside as a whole still counts its bytes, or the kernel would not end */
    ok(load_is_right(b, &m, (const int32_t[RANK]){0, 100}, 0), "a load far outside is zeros");
    ok(load_is_right(b, &m, (const int32_t[RANK]){INT32_MIN, INT32_MAX}, 0), "further is not");
    m.nan_fill = true;
    ok(load_is_right(b, &m, (const int32_t[RANK]){-4, -2}, 128), "before the start are NaNs");
}

int main(void)
{
    struct bench b = begin(module);
    sim_judged(module);
    formulas();
    own_coordinates(&b);
    edges(&b);
    random_boxes(&b, false, 600);
    random_boxes(&b, true, 200);
    finish(&b);
    /* the same under every check, torn and out of order */
    for (uint64_t early = 0; early < 3; early++) {
        b = begin_with(module, (struct device_options){
                                   .threads = 1, .check = DEVICE_CHECK_ALL, .seed = early});
        random_boxes(&b, false, 12);
        random_boxes(&b, true, 8);
        finish(&b);
    }
    return tap_done();
}
