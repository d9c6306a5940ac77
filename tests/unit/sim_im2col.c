/* Copies of windows of pixels (.im2col) in the simulator: where each element goes, for every rank,
 * swizzle, corner, step and offset, as an H100 was seen to copy 1260 of such boxes; and what is
 * refused. Every copy is compared with a walk from pixel to pixel. */
#include "tensor.h"

/* The offsets are in the bits of `bytes` from 16 on, 5 of each. */
#define OFFSETS                                                                             \
    "    shr.u32 %r13, %r2, 16;\n    and.b32 %r13, %r13, 31;\n    cvt.u16.u32 %o0, %r13;\n" \
    "    shr.u32 %r13, %r2, 21;\n    and.b32 %r13, %r13, 31;\n    cvt.u16.u32 %o1, %r13;\n" \
    "    shr.u32 %r13, %r2, 26;\n    and.b32 %r13, %r13, 31;\n    cvt.u16.u32 %o2, %r13;\n" \
    "    and.b32 %r2, %r2, 65535;\n"
#define COPY(NAME, N, COORDS, OFFS, MORE)                                                   \
    ".visible .entry " NAME PARAMS "    .reg .b16 %o<3>;\n" OFFSETS MORE FILL               \
    "    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], %r2;\n"                   \
    "    @%p1 cp.async.bulk.prefetch.tensor." #N "d.L2.global.im2col [%rd3, {" COORDS "}]," \
    " {" OFFS "};\n"                                                                        \
    "    @%p1 cp.async.bulk.tensor." #N "d.shared::cluster.global.im2col"                   \
    ".mbarrier::complete_tx::bytes [%r4], [%rd3, {" COORDS "}], [%r6], {" OFFS "};\n" WAIT DUMP
#define WINDOWS(N, COORDS, OFFS) COPY("windows" #N, N, COORDS, OFFS, "")

static const char module[] = HEAD WINDOWS(3, "%c0, %c1, %c2", "%o0")
    WINDOWS(4, "%c0, %c1, %c2, %c3", "%o0, %o1")
        WINDOWS(5, "%c0, %c1, %c2, %c3, %c4", "%o0, %o1, %o2") LOAD(4, "%c0, %c1, %c2, %c3")
            COPY("wraps", 4, "%c0, %c1, %c2, %c3", "%o0, %o1", "    add.u16 %o0, %o0, 256;\n");

struct copy {
    struct device_tensor_map m;
    int32_t c[RANK];
    uint32_t offset[3], at;
};

static uint32_t between(uint32_t low, uint32_t high)
{
    return low + draw(high - low + 1);
}

/* ---- pixel by pixel -------------------------------------------------------------------------- */

/* From where a window begins to where the next one does. */
static void step(const struct device_tensor_map *m, int32_t p[RANK])
{
    for (unsigned i = 1; i + 1 < m->rank; i++) {
        p[i] += (int32_t)m->step[i];
        if (p[i] <= (int32_t)m->dim[i] - 1 + m->upper[i - 1])
            return;
        p[i] = m->lower[i - 1];
    }
    p[m->rank - 1]++;
}

static void expect(struct bench *b, const struct copy *x)
{
    const struct device_tensor_map *m = &x->m;
    const uint32_t size = dtype_bits(m->type) / 8, mask = m->swizzle ? m->swizzle - 16 : 0;
    const uint32_t row = m->box[0] * size, pitch = row < m->swizzle ? m->swizzle : row;
    int32_t p[RANK];
    memcpy(b->want, b->tile, SHARED);
    memcpy(p, x->c, sizeof p);
    for (uint32_t n = 0; n < m->box[1]; n++, step(m, p)) {
        uint64_t from = m->address - b->tensor;
        bool inside = true;
        for (unsigned i = 1; i < m->rank; i++) {
            const int64_t q = p[i] + (i + 1 < m->rank ? (int64_t)x->offset[i - 1] : 0);
            inside &= q >= 0 && q < (int64_t)m->dim[i];
            from += (uint64_t)q * m->stride[i];
        }
        for (uint32_t k = 0; k < row; k++) {
            const uint32_t to = x->at + n * pitch + k;
            const int64_t q = x->c[0] + (int64_t)(k / size);
            const bool in = inside && q >= 0 && q < (int64_t)m->dim[0];
            b->want[to ^ (to >> 3 & mask)] = in ? b->global[from + (uint64_t)q * size + k % size]
                                             : m->nan_fill ? (k & 1 ? 0x7f : 0xf7)
                                                           : 0;
        }
    }
}

static bool is_right(struct bench *b, const struct copy *x)
{
    const struct device_tensor_map *m = &x->m;
    const uint32_t bytes = m->box[0] * m->box[1] * dtype_bits(m->type) / 8;
    unsigned char map[128];
    expect(b, x);
    if (!encode(b, m, map) ||
        go(b, arena_printf(b->s.arena, "windows%u", m->rank), map, x->at,
           bytes | x->offset[0] << 16 | x->offset[1] << 21 | x->offset[2] << 26, x->c) != DEVICE_OK)
        return false;
    sim_fetch(&b->s, b->got, b->y, SHARED);
    return memcmp(b->got, b->want, SHARED) == 0;
}

static void describe(const struct copy *x)
{
    const struct device_tensor_map *m = &x->m;
    tap_note("%s rank %u swizzle %u: %u pixels of %u channels at %u", dtype_name(m->type), m->rank,
             m->swizzle, m->box[1], m->box[0], x->at);
    for (unsigned k = 0; k < m->rank; k++)
        tap_note("  dim %" PRIu64 " stride %" PRIu64 " step %u from %d", m->dim[k], m->stride[k],
                 m->step[k], x->c[k]);
    for (unsigned k = 0; k + 2 < m->rank; k++)
        tap_note("  corners %d %d offset %u", m->lower[k], m->upper[k], x->offset[k]);
}

/* ---- random copies --------------------------------------------------------------------------- */

/* Where windows begin along dimension k, and the first of the copy. */
static void random_corners(struct copy *x, unsigned k)
{
    struct device_tensor_map *m = &x->m;
    m->step[k] = draw(2) ? 1 : between(1, 8);
    m->lower[k - 1] = (int32_t)draw(8) - 4;
    m->upper[k - 1] = m->lower[k - 1] + (int32_t)draw((uint32_t)m->dim[k] + 4) + 1 -
                      (int32_t)m->dim[k];
    if (m->rank == 5 && m->upper[k - 1] < -16)
        m->upper[k - 1] = -16;
    x->c[k] = m->lower[k - 1] +
              (int32_t)(draw((uint32_t)device_tensor_starts(m, k - 1)) * m->step[k]);
    x->offset[k - 1] = draw(3) ? draw(4) : draw(32);
}

/* A copy that the driver takes and whose tensor fits into the buffer, or of rank 0. */
static struct copy random_copy(const struct bench *b)
{
    static const enum dtype types[] = {DT_U8, DT_E4M3, DT_F16, DT_BF16, DT_I16, DT_F32, DT_F64};
    static const unsigned spans[] = {0, 32, 64, 128};
    struct copy x = {.m = {.type = types[draw(7)], .im2col = true}, .at = 1024 * draw(2)};
    struct device_tensor_map *m = &x.m;
    const uint32_t size = dtype_bits(m->type) / 8, most[] = {40, 12, 7};
    m->rank = between(3, 5);
    m->swizzle = spans[draw(4)];
    m->nan_fill = dtype_is_float(m->type) && size > 1 && draw(2);
    m->box[0] = 16 / size * between(1, m->swizzle ? m->swizzle / 16 : 6);
    m->box[1] = draw(4) ? between(1, 100) : between(1, 300);
    m->stride[0] = size;
    for (unsigned k = 0; k < m->rank; k++) {
        m->dim[k] = k == 0 ? between(1, 128 / size)
                           : between(1, k + 1 < m->rank ? most[m->rank - 3] : 4);
        m->step[k] = 1;
        if (k)
            m->stride[k] = (m->stride[k - 1] * m->dim[k - 1] + 15) / 16 * 16 + 16 * draw(2);
        if (k && k + 1 < m->rank)
            random_corners(&x, k);
    }
    x.c[0] = (int32_t)(draw(3) * 16 / size);
    x.c[m->rank - 1] = (int32_t)draw((uint32_t)m->dim[m->rank - 1] + 2) - 1;
    m->address = b->tensor + 16 * draw(16);
    if (m->stride[m->rank - 1] * m->dim[m->rank - 1] + 1024 > GLOBAL ||
        device_tensor_footprint(m) + 1024 > SHARED)
        m->rank = 0;
    return x;
}

static void random_copies(struct bench *b, unsigned cases)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < cases;) {
        const struct copy x = random_copy(b);
        if (!x.m.rank)
            continue;
        i++;
        if (!is_right(b, &x) && !wrong++) {
            describe(&x);
            tap_note("%s", sim_errors(&b->s));
        }
    }
    eq_int(wrong, 0, "%u copies of windows", cases);
}

/* ---- what is refused ------------------------------------------------------------------------- */

/* 10 x 8 pixels of 64 channels, 3 images; windows of 3 x 3. */
static struct copy image(const struct bench *b)
{
    return (struct copy){.m = {.address = b->tensor,
                               .type = DT_F16,
                               .rank = 4,
                               .dim = {64, 10, 8, 3},
                               .stride = {2, 128, 1280, 10240},
                               .box = {64, 16},
                               .step = {1, 1, 1, 1},
                               .swizzle = 128,
                               .im2col = true,
                               .lower = {-1, -1},
                               .upper = {-1, -1}},
                         .c = {0, -1, -1, 0}};
}

static void refused(void)
{
    struct bench b = begin(module);
    struct copy x = image(&b);
    unsigned char map[128];
    encode(&b, &x.m, map);
    ok(go(&b, "load4", map, 0, 2048, x.c) == DEVICE_FAULT, "a box with a map of windows");
    const char *text = sim_errors(&b.s);
    ok(strstr(text, "with a tensor map with corners"), "... %s", text);
    x.m.im2col = false;
    x.m.box[2] = x.m.box[3] = 1;
    encode(&b, &x.m, map);
    ok(go(&b, "windows4", map, 0, 2048, x.c) == DEVICE_FAULT, "windows with a map of boxes");
    text = sim_errors(&b.s);
    ok(strstr(text, "with a tensor map without corners"), "... %s", text);
    x = image(&b);
    encode(&b, &x.m, map);
    ok(go(&b, "windows5", map, 0, 2048, x.c) == DEVICE_FAULT, "a map of another rank");
    text = sim_errors(&b.s);
    ok(strstr(text, "with a tensor map of 4 dimensions"), "... %s", text);
    x.m.dim[3] = 300;
    x.c[3] = 299;
    encode(&b, &x.m, map);
    ok(go(&b, "windows4", map, 0, 2048, x.c) == DEVICE_FAULT, "pixels behind the buffer");
    text = sim_errors(&b.s);
    ok(strstr(text, "behind") || strstr(text, "262144 elements"), "... %s", text);
    x = image(&b);
    x.c[1] = 9;
    encode(&b, &x.m, map);
    ok(go(&b, "windows4", map, 0, 2048, x.c) == DEVICE_FAULT, "a start where no window is");
    text = sim_errors(&b.s);
    ok(strstr(text, "no window begins"), "... %s", text);
    x = image(&b);
    x.c[0] = 4;
    encode(&b, &x.m, map);
    ok(go(&b, "windows4", map, 0, 2048, x.c) == DEVICE_FAULT, "a start within 16 bytes");
    finish(&b);
}

/* An H100 takes 257 for 1. */
static void offset_bits(void)
{
    struct bench b = begin(module);
    struct copy x = image(&b);
    unsigned char map[128];
    x.offset[0] = 1;
    expect(&b, &x);
    encode(&b, &x.m, map);
    ok(go(&b, "wraps", map, 0, 2048 | 1 << 16, x.c) == DEVICE_OK, "an offset of 257");
    sim_fetch(&b.s, b.got, b.y, SHARED);
    ok(memcmp(b.got, b.want, SHARED) == 0, "... is one of 1");
    finish(&b);
}

static void missing(void)
{
    struct bench b = begin(HEAD ".visible .entry k" PARAMS
                                "    cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs"
                                ".bulk_group [%rd3, {%c0, %c1, %c2}], [%r4];\n    ret;\n}\n");
    const unsigned char map[128] = {0};
    ok(go(&b, "k", map, 0, 0, (const int32_t[RANK]){0}) == DEVICE_REFUSED, "stores of windows");
    const char *text = sim_errors(&b.s);
    ok(strstr(text, "tensor.ptx:") &&
           strstr(text, "the simulator does not have 'cp.async.bulk.tensor.3d.global.shared::cta."
                        "im2col_no_offs"),
       "... are refused where they stand: %s", text);
    finish(&b);
}

int main(void)
{
    struct bench b = begin(module);
    sim_judged(module);
    random_copies(&b, 400);
    finish(&b);
    for (uint64_t early = 0; early < 3; early++) {
        b = begin_with(module, (struct device_options){
                                   .threads = 1, .check = DEVICE_CHECK_ALL, .seed = early});
        random_copies(&b, 12);
        finish(&b);
    }
    refused();
    offset_bits();
    missing();
    return tap_done();
}
