/* A simulator with a tensor in global memory and a tile in shared memory, and kernels that copy
 * between them. */
#ifndef KAIO_TESTS_TENSOR_H
#define KAIO_TESTS_TENSOR_H

#include "sim_judged.h"

#include "run/tensor_map.h"

enum { SHARED = 64 * 1024, GLOBAL = 256 * 1024, RANK = DEVICE_TENSOR_RANK };

/* ---- kernels --------------------------------------------------------------------------------- */

#define PARAMS                                                                                   \
    "(.param .align 64 .b8 map[128], .param .u64 x, .param .u64 y, .param .u32 at,\n"            \
    " .param .u32 bytes, .param .u32 c0, .param .u32 c1, .param .u32 c2, .param .u32 c3,\n"      \
    " .param .u32 c4)\n{\n    .reg .b32 %r<16>;\n    .reg .b32 %c<5>;\n    .reg .b64 %rd<8>;\n"  \
    "    .reg .pred %p<4>;\n    .reg .b16 %h<2>;\n    .shared .align 8 .b64 full;\n"             \
    "    ld.param.u64 %rd1, [x];\n    ld.param.u64 %rd2, [y];\n    ld.param.u32 %r1, [at];\n"    \
    "    ld.param.u32 %r2, [bytes];\n    ld.param.u32 %c0, [c0];\n    ld.param.u32 %c1, [c1];\n" \
    "    ld.param.u32 %c2, [c2];\n    ld.param.u32 %c3, [c3];\n    ld.param.u32 %c4, [c4];\n"    \
    "    mov.b64 %rd3, map;\n    cvta.param.u64 %rd3, %rd3;\n    mov.u32 %r3, tile;\n"           \
    "    add.u32 %r4, %r3, %r1;\n    mov.u32 %r5, %tid.x;\n    setp.eq.u32 %p1, %r5, 0;\n"       \
    "    mov.u32 %r6, full;\n"
/* The whole tile from x, by all threads, made visible to copies. */
#define FILL                                                                                     \
    "    shl.b32 %r7, %r5, 4;\nfill:\n    cvt.u64.u32 %rd4, %r7;\n"                              \
    "    add.u64 %rd5, %rd1, %rd4;\n    add.u32 %r8, %r3, %r7;\n"                                \
    "    ld.global.v4.b32 {%r9, %r10, %r11, %r12}, [%rd5];\n"                                    \
    "    st.shared.v4.b32 [%r8], {%r9, %r10, %r11, %r12};\n    add.u32 %r7, %r7, 2048;\n"        \
    "    setp.lt.u32 %p2, %r7, 65536;\n    @%p2 bra fill;\n    fence.proxy.async.shared::cta;\n" \
    "    @%p1 mbarrier.init.shared::cta.b64 [%r6], 1;\n"                                         \
    "    fence.mbarrier_init.release.cluster;\n    bar.sync 0;\n"
#define WAIT \
    "wait:\n    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;\n    @!%p2 bra wait;\n"
/* The whole tile to y. */
#define DUMP                                                                               \
    "    shl.b32 %r7, %r5, 4;\ndump:\n    cvt.u64.u32 %rd4, %r7;\n"                        \
    "    add.u64 %rd5, %rd2, %rd4;\n    add.u32 %r8, %r3, %r7;\n"                          \
    "    ld.shared.v4.b32 {%r9, %r10, %r11, %r12}, [%r8];\n"                               \
    "    st.global.v4.b32 [%rd5], {%r9, %r10, %r11, %r12};\n    add.u32 %r7, %r7, 2048;\n" \
    "    setp.lt.u32 %p2, %r7, 65536;\n    @%p2 bra dump;\n    ret;\n}\n"
#define LOAD(N, COORDS)                                                   \
    ".visible .entry load" #N PARAMS FILL                                 \
    "    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], %r2;\n" \
    "    @%p1 cp.async.bulk.tensor." #N "d.shared::cluster.global.tile"   \
    ".mbarrier::complete_tx::bytes [%r4], [%rd3, {" COORDS "}], [%r6];\n" WAIT DUMP
#define STORE(N, COORDS)                                                       \
    ".visible .entry store" #N PARAMS FILL "    @%p1 cp.async.bulk.tensor." #N \
    "d.global.shared::cta.tile.bulk_group [%rd3, {" COORDS "}], [%r4];\n"      \
    "    @%p1 cp.async.bulk.commit_group;\n    @%p1 cp.async.bulk.wait_group 0;\n    ret;\n}\n"
#define REDUCE(OP)                                                                      \
    ".visible .entry " #OP PARAMS FILL "    @%p1 cp.reduce.async.bulk.tensor.2d.global" \
    ".shared::cta." #OP ".tile.bulk_group [%rd3, {%c0, %c1}], [%r4];\n"                 \
    "    @%p1 cp.async.bulk.commit_group;\n    @%p1 cp.async.bulk.wait_group 0;\n    ret;\n}\n"

#define HEAD                                           \
    ".version 8.6\n.target sm_90a\n.address_size 64\n" \
    ".extern .shared .align 1024 .b8 tile[];\n"

/* ---- a bench --------------------------------------------------------------------------------- */

struct bench {
    struct sim s;
    uint64_t tensor, x, y;
    unsigned char *global, *tile, *got, *want; /* GLOBAL; SHARED; the larger */
    uint32_t cluster;
};

static uint64_t seed = 88172645463325252u;
__attribute__((unused)) static uint32_t draw(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 33) % n;
}

__attribute__((unused)) static struct bench begin_with(const char *ptx,
                                                       struct device_options options)
{
    struct bench b = {.s = sim_with(&sim_device, options, "tensor.ptx", ptx), .cluster = 1};
    b.global = malloc(GLOBAL);
    b.tile = malloc(SHARED);
    b.got = malloc(GLOBAL);
    b.want = malloc(GLOBAL);
    for (size_t i = 0; i < GLOBAL; i++)
        b.global[i] = (unsigned char)draw(256);
    for (size_t i = 0; i < SHARED; i++)
        b.tile[i] = (unsigned char)draw(256);
    b.tensor = sim_buffer(&b.s, "t", "u8[n]", GLOBAL, 1, b.global, false);
    b.x = sim_buffer(&b.s, "x", "u8[n]", SHARED, 1, b.tile, false);
    b.y = sim_buffer(&b.s, "y", "u8[n]", SHARED * 4, 1, NULL, false);
    return b;
}

__attribute__((unused)) static struct bench begin(const char *ptx)
{
    return begin_with(ptx, (struct device_options){.threads = 1});
}

__attribute__((unused)) static void finish(struct bench *b)
{
    free(b->global);
    free(b->tile);
    free(b->got);
    free(b->want);
    sim_end(&b->s);
}

__attribute__((unused)) static enum device_status go(struct bench *b, const char *entry,
                                                     const unsigned char map[128], uint32_t at,
                                                     uint32_t bytes, const int32_t c[RANK])
{
    const void *args[10] = {map, &b->x, &b->y, &at, &bytes, &c[0], &c[1], &c[2], &c[3], &c[4]};
    const size_t sizes[10] = {128, 8, 8, 4, 4, 4, 4, 4, 4, 4};
    const struct device_launch l = {.entry = entry,
                                    .grid = {b->cluster, 1, 1},
                                    .cluster = {b->cluster, 1, 1},
                                    .block = {128, 1, 1},
                                    .shared_bytes = SHARED,
                                    .args = args,
                                    .arg_bytes = sizes,
                                    .narg = 10};
    return sim_device.launch(b->s.dev, &l, 1, &b->s.stats, b->s.diags);
}

__attribute__((unused)) static bool encode(struct bench *b, const struct device_tensor_map *m,
                                           unsigned char to[128])
{
    return sim_device.tensor_map(b->s.dev, m, to, b->s.diags) == DEVICE_OK;
}

#endif
