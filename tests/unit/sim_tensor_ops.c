/* What tensor copies are beside their boxes: reductions, copies to other blocks, where a tensor map
 * may lie and how it is changed, and what is said when something of it is wrong. */
#include "tensor.h"

#include "run/tensor_map.h"

/* ---- kernels --------------------------------------------------------------------------------- */

#define EXPECT "    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], %r2;\n"
#define COPY2                                                                                   \
    "    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" \
    " [%r4], [%rd3, {%c0, %c1}], [%r6];\n"
#define MEET "    barrier.cluster.arrive;\n    barrier.cluster.wait;\n"

/* Block 0 copies to the blocks of the mask %c4; each of them waits at its own mbarrier. All
 * dump. */
#define SPREAD                                                                                  \
    ".visible .entry spread" PARAMS FILL                                                        \
    "    mov.u32 %r13, %cluster_ctarank;\n    mul.wide.u32 %rd6, %r13, 65536;\n"                \
    "    add.u64 %rd2, %rd2, %rd6;\n    cvt.u16.u32 %h1, %c4;\n    shr.u32 %r14, %c4, %r13;\n"  \
    "    and.b32 %r14, %r14, 1;\n    setp.eq.u32 %p3, %r14, 1;\n    and.pred %p2, %p1, %p3;\n"  \
    "    @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], %r2;\n" MEET                  \
    "    or.b32 %r14, %r13, %r5;\n    setp.eq.u32 %p1, %r14, 0;\n"                              \
    "    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" \
    ".multicast::cluster [%r4], [%rd3, {%c0, %c1}], [%r6], %h1;\n    @!%p3 bra skip;\n" WAIT    \
    "skip:\n" MEET DUMP
/* Block 0 copies into block 1, whose mbarrier is told; with %c4 that of block 0 is. */
#define PEER                                                                                    \
    ".visible .entry peer" PARAMS FILL                                                          \
    "    mov.u32 %r13, %cluster_ctarank;\n    mul.wide.u32 %rd6, %r13, 65536;\n"                \
    "    add.u64 %rd2, %rd2, %rd6;\n    setp.eq.u32 %p3, %r13, 1;\n"                            \
    "    and.pred %p2, %p1, %p3;\n"                                                             \
    "    @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], %r2;\n" MEET                  \
    "    or.b32 %r14, %r13, %r5;\n    setp.eq.u32 %p1, %r14, 0;\n"                              \
    "    mapa.shared::cluster.u32 %r4, %r4, 1;\n    mapa.shared::cluster.u32 %r15, %r6, 1;\n"   \
    "    setp.ne.u32 %p2, %c4, 0;\n    selp.b32 %r15, %r6, %r15, %p2;\n"                        \
    "    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" \
    " [%r4], [%rd3, {%c0, %c1}], [%r15];\n    @!%p3 bra skip;\n" WAIT "skip:\n" MEET DUMP
#define OWN                                                                            \
    ".visible .entry own" PARAMS FILL EXPECT                                           \
    "    createpolicy.fractional.L2::evict_first.b64 %rd7;\n"                          \
    "    prefetch.tensormap [%rd3];\n"                                                 \
    "    @%p1 cp.async.bulk.prefetch.tensor.2d.L2.global.tile.L2::cache_hint"          \
    " [%rd3, {%c0, %c1}], %rd7;\n"                                                     \
    "    @%p1 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes" \
    ".L2::cache_hint [%r4], [%rd3, {%c0, %c1}], [%r6], %rd7;\n" WAIT DUMP
#define PREFETCH ".visible .entry prefetch" PARAMS "    prefetch.tensormap [%rd3];\n    ret;\n}\n"
#define IN_SHARED                                  \
    ".visible .entry in_shared" PARAMS FILL EXPECT \
    "    cvt.u64.u32 %rd3, %r3;\n    cvta.shared.u64 %rd3, %rd3;\n" COPY2 WAIT DUMP

static const char module[] = HEAD LOAD(2, "%c0, %c1") LOAD(3, "%c0, %c1, %c2") STORE(2, "%c0, %c1")
    REDUCE(add) REDUCE(min) REDUCE(max) REDUCE(inc) REDUCE(dec) REDUCE(and) REDUCE(or) REDUCE(xor)
        SPREAD PEER OWN PREFETCH IN_SHARED;

/* 20 columns and 12 rows of a type, 256 bytes apart; boxes of 16 columns and 8 rows. */
static struct device_tensor_map matrix(const struct bench *b, enum dtype t)
{
    const uint32_t size = dtype_bits(t) / 8;
    return (struct device_tensor_map){.address = b->tensor,
                                      .type = t,
                                      .rank = 2,
                                      .dim = {20, 12},
                                      .stride = {size, 256},
                                      .box = {16, 8},
                                      .step = {1, 1}};
}

/* What a load of the box at c leaves in the tile. */
static void load_matrix(struct bench *b, const struct device_tensor_map *m, const int32_t c[2],
                        uint32_t at, unsigned char *tile)
{
    const uint32_t size = (uint32_t)m->stride[0];
    for (uint32_t y = 0; y < m->box[1]; y++)
        for (uint32_t x = 0; x < m->box[0]; x++) {
            const int64_t i = c[0] + (int64_t)x, j = c[1] + (int64_t)y;
            unsigned char *to = tile + at + (y * m->box[0] + x) * size;
            memset(to, 0, size);
            if (i >= 0 && j >= 0 && i < (int64_t)m->dim[0] && j < (int64_t)m->dim[1])
                memcpy(to, b->global + j * (int64_t)m->stride[1] + i * size, size);
        }
}

/* ---- reductions ------------------------------------------------------------------------------ */

static uint64_t reduced(const char *op, enum dtype t, uint64_t old, uint64_t v)
{
    const unsigned bits = dtype_bits(t);
    const int64_t a = (int64_t)(old << (64 - bits)) >> (64 - bits);
    const int64_t b = (int64_t)(v << (64 - bits)) >> (64 - bits);
    const bool less = dtype_class(t) == DTC_I ? b < a : v < old;
    if (t == DT_F16 || t == DT_BF16 || t == DT_F32) {
        const double x = dtype_get(t, &old, 0), y = dtype_get(t, &v, 0);
        const double z = *op == 'a' ? x + y : *op == 'm' && op[1] == 'i' ? fmin(x, y) : fmax(x, y);
        uint64_t r = 0;
        dtype_set(t, &r, 0, z);
        return r;
    }
    switch (op[0] << 8 | op[1]) {
    case 'a' << 8 | 'd': return old + v;
    case 'm' << 8 | 'i': return less ? v : old;
    case 'm' << 8 | 'a': return less ? old : v;
    case 'i' << 8 | 'n': return old >= v ? 0 : old + 1;
    case 'd' << 8 | 'e': return old == 0 || old > v ? v : old - 1;
    case 'a' << 8 | 'n': return old & v;
    case 'o' << 8 | 'r': return old | v;
    default: return old ^ v;
    }
}

/* Numbers of a type without NaNs and such, so that what the operations do with them is not in
 * question. */
static void numbers(enum dtype t, unsigned char *p, size_t bytes)
{
    const uint32_t size = dtype_bits(t) / 8;
    for (size_t i = 0; i < bytes / size; i++) {
        if (dtype_is_float(t))
            dtype_set(t, p, i, (double)draw(4096) / 64 - 32);
        else
            dtype_set_int(t, p, i, (int64_t)((uint64_t)draw(1u << 31) << 33 ^ draw(1u << 31)));
    }
}

static void reduction(struct bench *b, const char *op, enum dtype t)
{
    struct device_tensor_map m = matrix(b, t);
    const uint32_t size = dtype_bits(t) / 8;
    const int32_t c[RANK] = {16, -3}; /* of 24 columns, so that 8 of 16 are there */
    unsigned char map[128];
    m.dim[0] = 24; /* which end at a multiple of 16 bytes */
    numbers(t, b->global, 4096);
    numbers(t, b->tile, 8192);
    sim_device.write(b->s.dev, b->tensor, b->global, GLOBAL, b->s.diags);
    sim_device.write(b->s.dev, b->x, b->tile, SHARED, b->s.diags);
    memcpy(b->want, b->global, GLOBAL);
    for (uint32_t y = 3; y < 8; y++)
        for (uint32_t x = 0; x < 8; x++) {
            uint64_t old = 0, v = 0;
            unsigned char *at = b->want + (y - 3) * 256 + (x + 16) * size;
            memcpy(&old, at, size);
            memcpy(&v, b->tile + 1024 + (y * 16 + x) * size, size);
            old = reduced(op, t, old, v);
            memcpy(at, &old, size);
        }
    encode(b, &m, map);
    const enum device_status s = go(b, op, map, 1024, 0, c);
    sim_fetch(&b->s, b->got, b->tensor, GLOBAL);
    ok(s == DEVICE_OK && memcmp(b->got, b->want, GLOBAL) == 0, "%s of %s", op, dtype_name(t));
    if (s != DEVICE_OK)
        tap_note("%s", sim_errors(&b->s));
}

static void no_reduction(struct bench *b, const char *op, enum dtype t)
{
    const struct device_tensor_map m = matrix(b, t);
    unsigned char map[128];
    encode(b, &m, map);
    const enum device_status s = go(b, op, map, 0, 0, (const int32_t[RANK]){0});
    const char *text = sim_errors(&b->s);
    ok(s == DEVICE_FAULT && strstr(text, "which can't be reduced like that") &&
           strstr(text, arena_printf(b->s.arena, "on elements of %s", dtype_name(t))),
       "no %s of %s", op, dtype_name(t));
}

static void reductions(struct bench *b)
{
    static const enum dtype add[] = {DT_U32, DT_I32, DT_U64, DT_F32, DT_F16, DT_BF16};
    static const enum dtype order[] = {DT_U32, DT_I32, DT_U64, DT_I64, DT_F16, DT_BF16};
    static const enum dtype bits[] = {DT_U32, DT_I32, DT_U64, DT_I64};
    for (size_t i = 0; i < 6; i++) {
        reduction(b, "add", add[i]);
        reduction(b, "min", order[i]);
        reduction(b, "max", order[i]);
    }
    reduction(b, "inc", DT_U32);
    reduction(b, "dec", DT_U32);
    for (size_t i = 0; i < 4; i++) {
        reduction(b, "and", bits[i]);
        reduction(b, "or", bits[i]);
        reduction(b, "xor", bits[i]);
    }
    no_reduction(b, "add", DT_U8);
    no_reduction(b, "add", DT_F64);
    no_reduction(b, "min", DT_F32);
    no_reduction(b, "inc", DT_I32);
    no_reduction(b, "and", DT_U16);
}

/* ---- other blocks ---------------------------------------------------------------------------- */

static void multicast(struct bench *b, uint32_t blocks, uint32_t mask)
{
    struct device_tensor_map m = matrix(b, DT_F16);
    const int32_t c[RANK] = {8, 1, 0, 0, (int32_t)mask};
    unsigned char map[128];
    unsigned wrong = 0;
    b->cluster = blocks;
    encode(b, &m, map);
    const enum device_status s = go(b, "spread", map, 4096, 256, c);
    b->cluster = 1;
    sim_fetch(&b->s, b->got, b->y, SHARED * blocks);
    for (uint32_t i = 0; i < blocks; i++) {
        memcpy(b->want, b->tile, SHARED);
        if (mask >> i & 1)
            load_matrix(b, &m, c, 4096, b->want);
        wrong += memcmp(b->got + i * SHARED, b->want, SHARED) != 0;
    }
    ok(s == DEVICE_OK && wrong == 0, "a copy to the blocks 0x%x of %u", mask, blocks);
    if (s != DEVICE_OK)
        tap_note("%s", sim_errors(&b->s));
}

static void peers(struct bench *b)
{
    const struct device_tensor_map m = matrix(b, DT_F16);
    int32_t c[RANK] = {8, 1};
    unsigned char map[128];
    encode(b, &m, map);
    b->cluster = 2;
    ok(go(b, "peer", map, 128, 256, c) == DEVICE_OK, "a copy into another block");
    sim_fetch(&b->s, b->got, b->y, 2 * SHARED);
    memcpy(b->want, b->tile, SHARED);
    ok(memcmp(b->got, b->want, SHARED) == 0, "... leaves its own alone");
    load_matrix(b, &m, c, 128, b->want);
    ok(memcmp(b->got + SHARED, b->want, SHARED) == 0, "... and is there");
    c[4] = 1;
    ok(go(b, "peer", map, 128, 256, c) == DEVICE_FAULT, "the mbarrier must be there, too");
    const char *text = sim_errors(&b->s);
    ok(strstr(text, "mbarrier"), "... which is said: %s", text);
    b->cluster = 1;
}

/* ---- maps ------------------------------------------------------------------------------------ */

static void own(struct bench *b)
{
    const struct device_tensor_map m = matrix(b, DT_F32);
    const int32_t c[RANK] = {-8, 7};
    unsigned char map[128];
    encode(b, &m, map);
    const enum device_status status = go(b, "own", map, 256, 512, c);
    ok(status == DEVICE_OK, "a copy to the block's own memory, with a hint: %s", sim_errors(&b->s));
    memcpy(b->want, b->tile, SHARED);
    load_matrix(b, &m, c, 256, b->want);
    sim_fetch(&b->s, b->got, b->y, SHARED);
    ok(memcmp(b->got, b->want, SHARED) == 0, "... is there");
}

/* The map as a variable of the module. */
static void variables(const char *space)
{
    struct bench b = begin(HEAD "\n");
    const struct device_tensor_map m = matrix(&b, DT_F16);
    const int32_t c[RANK] = {8, 2};
    struct buf text = buf_in(b.s.arena);
    unsigned char map[128];
    encode(&b, &m, map);
    buf_printf(&text, HEAD "%s .align 64 .b8 m[128] = {", space);
    for (unsigned i = 0; i < 128; i++)
        buf_printf(&text, "%s%u", i ? ", " : "", map[i]);
    buf_printf(&text, "};\n");
    buf_puts(&text, ".visible .entry k" PARAMS FILL EXPECT "    mov.u64 %rd3, m;\n");
    buf_printf(&text, "    cvta%s.u64 %%rd3, %%rd3;\n", space);
    buf_puts(&text, COPY2 WAIT DUMP);
    sim_judged(buf_text(&text));
    sim_load_text(&b.s, "variable.ptx", buf_text(&text));
    memset(map, 0, sizeof map); /* the parameter is not what is used */
    const enum device_status status = go(&b, "k", map, 0, 256, c);
    ok(status == DEVICE_OK, "a map in %s memory: %s", space, sim_errors(&b.s));
    memcpy(b.want, b.tile, SHARED);
    load_matrix(&b, &m, c, 0, b.want);
    sim_fetch(&b.s, b.got, b.y, SHARED);
    ok(memcmp(b.got, b.want, SHARED) == 0, "... is used");
    finish(&b);
}

/* A map copied to shared memory, changed into another field by field, and put into global
 * memory. */
#define FIELD(SPACE, AT, NAME, TYPE, VALUE) \
    "    @%p1 tensormap.replace.tile." NAME SPACE ".b1024." TYPE " [" AT "], " VALUE ";\n"
#define HERE(NAME, VALUE) FIELD(".shared::cta", "%r3", NAME, "b32", VALUE)
static const char edit[] = HEAD
    ".visible .entry k" PARAMS FILL EXPECT
    "    ld.param.u64 %rd6, [map];\n" FIELD(".shared::cta", "%r3", "global_address", "b64", "%rd6")
        HERE("rank", "2") HERE("box_dim", "0, 8") HERE("box_dim", "1, 12") HERE("box_dim", "2, 3")
            HERE("global_dim", "0, %c3") HERE("global_dim", "1, 9") HERE("global_dim", "2, 5")
                FIELD(".shared::cta", "%r3", "global_stride", "b64",
                      "0, 64") FIELD(".shared::cta", "%r3", "global_stride", "b64",
                                     "1, 640") HERE("element_stride", "1, 2")
                    HERE("element_stride", "2, 1") HERE("elemtype", "11") HERE(
                        "swizzle_mode",
                        "1") "    cvt.u64.u32 %rd7, %r3;\n    cvta.shared.u64 %rd7, "
                             "%rd7;\n" FIELD("", "%rd7", "interleave_layout", "b32", "0") FIELD(
                                 "", "%rd7", "fill_mode", "b32",
                                 "1") "    bar.sync 0;\n    setp.gt.u32 %p3, %r5, 31;\n    "
                                      "@%p3 bra other;\n"
                                      "    "
                                      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::"
                                      "generic.release.gpu.sync.aligned"
                                      " [%rd2], [%r3], 128;\n"
                                      "    fence.proxy.tensormap::generic.acquire.gpu "
                                      "[%rd2], 128;\n"
                                      "    @%p1 "
                                      "cp.async.bulk.tensor.3d.shared::cluster.global.tile."
                                      "mbarrier::complete_tx::bytes"
                                      " [%r4], [%rd2, {%c0, %c1, %c2}], [%r6];\nother:\n" WAIT DUMP;

static void replace(void)
{
    struct bench b = begin(edit), direct = begin(module);
    struct device_tensor_map from = matrix(&b, DT_U8), to = {.type = DT_F32,
                                                             .tf32 = true,
                                                             .rank = 3,
                                                             .dim = {11, 9, 5},
                                                             .stride = {4, 64, 640},
                                                             .box = {8, 12, 3},
                                                             .step = {1, 2, 1},
                                                             .swizzle = 32,
                                                             .nan_fill = true};
    const int32_t c[RANK] = {8, -1, 3, 11};
    const uint32_t bytes = 8 * 4 * 6 * 3;
    unsigned char map[128];
    to.address = b.tensor + 128;
    encode(&b, &from, map);
    sim_device.write(b.s.dev, b.x, map, 128, b.s.diags);
    memset(map, 0, sizeof map);
    memcpy(map, &to.address, 8);
    const enum device_status status = go(&b, "k", map, 1024, bytes, c);
    ok(status == DEVICE_OK, "a map made by tensormap.replace: %s", sim_errors(&b.s));
    sim_fetch(&b.s, b.got, b.y, SHARED);
    encode(&b, &to, map);
    ok(memcmp(b.got, map, 128) == 0, "... is the one that the host would have made");
    to.address = direct.tensor + 128;
    sim_device.write(direct.s.dev, direct.tensor, b.global, GLOBAL, direct.s.diags);
    sim_device.write(direct.s.dev, direct.x, b.tile, SHARED, direct.s.diags);
    encode(&direct, &to, map);
    ok(go(&direct, "load3", map, 1024, bytes, c) == DEVICE_OK, "the host's is used");
    sim_fetch(&direct.s, direct.got, direct.y, SHARED);
    ok(memcmp(b.got + 128, direct.got + 128, SHARED - 128) == 0, "... with the same effect");
    finish(&b);
    finish(&direct);
}

/* ---- maps under checks ----------------------------------------------------------------------- */

#define RELEASE "    fence.proxy.tensormap::generic.release.gpu;\n"
#define ACQUIRE "    fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;\n"
#define BETWEEN "    bar.sync 0;\n"
/* Thread 0 changes the map in y, thread 32 uses it. */
static const char change[] = HEAD
    ".visible .entry k" PARAMS FILL EXPECT FIELD(".global", "%rd2", "global_dim", "b32", "0, %c3")
        RELEASE BETWEEN
    "    setp.eq.u32 %p1, %r5, 32;\n" ACQUIRE
    "    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    " [%r4], [%rd2, {%c0, %c1}], [%r6];\n" WAIT "    ret;\n}\n";

/* The text without a line of it. */
static const char *without(struct arena *a, const char *text, const char *line)
{
    const char *at = strstr(text, line);
    return !line[0] ? text
           : at     ? arena_printf(a, "%.*s%s", (int)(at - text), text, at + strlen(line))
                    : NULL;
}

static const struct {
    const char *what, *line, *find;
} fences[] = {
    {"a changed map behind both fences", "", NULL},
    {"no fence behind the change", RELEASE,
     "no fence.proxy.tensormap::generic.release between this use of the tensor map at element 0 "
     "of 'y'"},
    {"no fence before the copy", ACQUIRE,
     "no fence.proxy.tensormap::generic.acquire between this use of the tensor map"},
    {"no barrier between", RELEASE BETWEEN, "race on element 0 of 'y'"},
};

static void fenced_maps(void)
{
    struct arena *a = arena_new();
    for (size_t i = 0; i < sizeof fences / sizeof *fences; i++) {
        const char *text = without(a, change, fences[i].line);
        struct bench b =
            begin_with(text, (struct device_options){.threads = 1, .check = DEVICE_CHECK_ALL});
        struct device_tensor_map m = matrix(&b, DT_F16);
        const int32_t c[RANK] = {0, 0, 0, 12};
        unsigned char map[128];
        encode(&b, &m, map);
        sim_device.write(b.s.dev, b.y, map, 128, b.s.diags);
        const enum device_status s = go(&b, "k", map, 1024, 256, c);
        const char *said = sim_errors(&b.s);
        ok(fences[i].find ? s == DEVICE_FAULT && strstr(said, fences[i].find) : s == DEVICE_OK,
           "%s: %s", fences[i].what, said);
        finish(&b);
    }
    arena_free(a);
}

/* What tensormap.cp_fenceproxy puts into global memory has been released. */
static void published_maps(void)
{
    struct arena *a = arena_new();
    for (int wrong = 0; wrong < 2; wrong++) {
        struct bench b =
            begin_with(wrong ? without(a, edit, ACQUIRE) : edit,
                       (struct device_options){.threads = 1, .check = DEVICE_CHECK_ALL});
        struct device_tensor_map m = matrix(&b, DT_U8);
        const int32_t c[RANK] = {8, -1, 3, 11};
        unsigned char map[128];
        encode(&b, &m, map);
        sim_device.write(b.s.dev, b.x, map, 128, b.s.diags);
        m.address += 128;
        memset(map, 0, sizeof map);
        memcpy(map, &m.address, 8);
        const enum device_status s = go(&b, "k", map, 1024, 8 * 4 * 6 * 3, c);
        const char *said = sim_errors(&b.s);
        ok(wrong ? s == DEVICE_FAULT && strstr(said, "generic.acquire between") : s == DEVICE_OK,
           "a map put into global memory, %s: %s", wrong ? "without a fence" : "with one", said);
        finish(&b);
    }
    arena_free(a);
}

/* ---- what is wrong --------------------------------------------------------------------------- */

enum wrong { FINE, ZEROS, SPOILT, NOWHERE, TALL, READ_ONLY, IN_TILE };

static const struct {
    const char *what, *entry;
    enum wrong wrong;
    uint32_t at;
    int32_t c[RANK];
    const char *find, *line;
} faults[] = {
    {"no map", "load2", ZEROS, 0, {0}, "the 128 bytes at byte 0 of a parameter block", "cp.async"},
    {"no map", "store2", ZEROS, 0, {0}, "are no tensor map", "cp.async.bulk.tensor.2d.global"},
    {"no map to prefetch", "prefetch", ZEROS, 0, {0}, "are no tensor map", "prefetch.tensormap"},
    {"a map written to", "load2", SPOILT, 0, {0}, "only tensormap.replace can change one", "cp."},
    {"a map of another rank", "load3", FINE, 0, {0}, "with a tensor map of 2 dimensions", "cp."},
    {"a map in shared memory",
     "in_shared",
     IN_TILE,
     0,
     {0},
     "it must be in parameters, constant or global memory",
     "cp.async"},
    {"a tile at a multiple of 64",
     "load2",
     FINE,
     64,
     {0},
     "of 'tile' (shared b8[]), which is misaligned",
     "cp.async"},
    {"a tile past the end",
     "load2",
     FINE,
     SHARED - 128,
     {0},
     "store of 256 bytes at byte 65408",
     "cp.async"},
    {"a store from past the end",
     "store2",
     FINE,
     SHARED - 128,
     {0},
     "load of 256 bytes at byte",
     "cp.async"},
    {"a box that begins inside of 16 bytes, as it is left of the row",
     "load2",
     FINE,
     0,
     {-4, 0},
     "the box begins -8 bytes into a row of the tensor",
     "cp.async"},
    {"a box to store there", "store2", FINE, 0, {9, 1}, "begins 18 bytes into", "cp.async"},
    {"a tensor in no buffer", "load2", NOWHERE, 0, {0}, "which is in no buffer", "cp.async"},
    {"a tensor past its buffer",
     "load2",
     TALL,
     0,
     {0, 1020},
     "load of 800 bytes at element 262144 of 't' (u8[n], 262144 elements)",
     "cp.async"},
    {"a tensor to read from", "store2", READ_ONLY, 0, {0}, "which is read-only", "cp.async"},
    {"blocks that are not there",
     "spread",
     FINE,
     0,
     {0, 0, 0, 0, 6},
     "names blocks that the cluster of 1 does not have",
     "cp.async"},
    {"no blocks at all",
     "spread",
     FINE,
     0,
     {0, 0, 0, 0, 0},
     "names none of the blocks",
     "cp.async"},
};

static void wrong_copies(void)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct bench b = begin(module);
        struct device_tensor_map m = matrix(&b, DT_F16);
        unsigned char map[128] = {0};
        const enum wrong w = faults[i].wrong;
        if (w == NOWHERE)
            m.address = 4096;
        if (w == TALL)
            m.dim[1] = 5000;
        if (w == READ_ONLY)
            m.address = sim_buffer(&b.s, "r", "u8[n]", 8192, 1, NULL, true);
        if (w != ZEROS)
            encode(&b, &m, map);
        if (w == SPOILT)
            map[20] ^= 1;
        if (w == IN_TILE)
            sim_device.write(b.s.dev, b.x, map, 128, b.s.diags);
        const enum device_status s = go(&b, faults[i].entry, map, faults[i].at, 256, faults[i].c);
        const char *text = sim_errors(&b.s);
        ok(s == DEVICE_FAULT && strstr(text, faults[i].find) && strstr(text, faults[i].line),
           "%s: %s", faults[i].what, text);
        finish(&b);
    }
}

static void wrong_maps(void)
{
    struct bench b = begin(edit);
    struct device_tensor_map m = matrix(&b, DT_F16);
    const int32_t c[RANK] = {0, 0, 0, 0}; /* a dimension of 0 */
    unsigned char map[128];
    encode(&b, &m, map);
    sim_device.write(b.s.dev, b.x, map, 128, b.s.diags);
    memcpy(map, &m.address, 8);
    ok(go(&b, "k", map, 1024, 256, c) == DEVICE_FAULT, "a map changed to what can't be");
    const char *text = sim_errors(&b.s);
    ok(strstr(text, "tensor map: dimension 0 is 0; it must be 1 to 4294967296") &&
           strstr(text, "the map is at element 0 of 'y'"),
       "... %s", text);
    memset(map, 0, sizeof map);
    sim_device.write(b.s.dev, b.x, map, 128, b.s.diags);
    ok(go(&b, "k", map, 1024, 256, c) == DEVICE_FAULT, "zeros become a map, here one of nothing");
    text = sim_errors(&b.s);
    ok(strstr(text, "tensor map: it starts at address 0x0"), "... %s", text);
    map[127] = 1;
    sim_device.write(b.s.dev, b.x, map, 128, b.s.diags);
    ok(go(&b, "k", map, 1024, 256, c) == DEVICE_FAULT, "tensormap.replace of what is none");
    text = sim_errors(&b.s);
    ok(strstr(text, "are no tensor map") && strstr(text, "tensormap.replace"), "... %s", text);
    m.box[0] = 300;
    ok(!encode(&b, &m, map), "a map of the host that can't be");
    text = sim_errors(&b.s);
    ok(strstr(text, "it must be 1 to 256"), "... %s", text);
    finish(&b);
}

int main(void)
{
    struct bench b = begin(module);
    sim_judged(module);
    sim_judged(edit);
    sim_judged(change);
    reductions(&b);
    multicast(&b, 4, 0xb);
    multicast(&b, 2, 0x3);
    multicast(&b, 4, 0x4);
    peers(&b);
    own(&b);
    finish(&b);
    variables(".const");
    variables(".global");
    replace();
    fenced_maps();
    published_maps();
    wrong_copies();
    wrong_maps();
    return tap_done();
}
