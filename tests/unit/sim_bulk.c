/* Bulk copies, st.async and cp.async with mbarriers: what they bring where, when it may show, and
 * what is said of their misuse. */
#include "sim_flight.h"

/* %rd10, %rd11: this thread's word of x and of y; %r2: its word of tile; %p2: not of the cluster's
 * first block. */
#define WORDS                                                                                      \
    "    mul.wide.u32 %rd3, %r0, 4;\n    add.u64 %rd10, %rd9, %rd3;\n"                             \
    "    add.u64 %rd11, %rd0, %rd3;\n    mov.u32 %r10, tile;\n    mad.lo.u32 %r2, %r0, 4, %r10;\n" \
    "    setp.ne.u32 %p2, %r9, 0;\n"
#define LOAD(to, from, bytes)                                                                     \
    "    @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [" to "], [" from \
    "], " bytes ", [bar];\n"
#define EXPECT(bytes) "    @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], " bytes ";\n"
#define READ          "    ld.shared.b32 %r1, [%r2];\n"
#define FILL                                                        \
    "    add.u32 %r3, %r0, 1;\n    st.shared.b32 [%r2], %r3;\n    " \
    "fence.proxy.async.shared::cta;\n    bar.sync 0;\n"
#define STORE(to, from, bytes) \
    "    @%p0 cp.async.bulk.global.shared::cta.bulk_group [" to "], [" from "], " bytes ";\n"
#define COMMIT "    @%p0 cp.async.bulk.commit_group;\n"
#define DONE   "    @%p0 cp.async.bulk.wait_group 0;\n"
#define SPOIL \
    "    bar.sync 0;\n    mov.u32 %r3, 99;\n    st.shared.b32 [%r2], %r3;\n    bar.sync 0;\n"
#define BACK "    bar.sync 0;\n    ld.global.b32 %r1, [%rd11+4096];\n"
/* tile, from values of a type, is folded twice into y[1024 ...] of zeros */
#define REDUCE(op, type, values)                                                            \
    WORDS values "    fence.proxy.async.shared::cta;\n    bar.sync 0;\n"                    \
                 "    @%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group." op "." type \
                 " [%rd0+4096], [tile], 256;\n"                                             \
                 "    @%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group." op "." type \
                 " [%rd0+4096], [tile], 256;\n" COMMIT DONE BACK
/* tile of block 1 is folded into that of block 0 */
#define TWO                                                                             \
    WORDS "    mad.lo.u32 %r3, %r9, 100, %r0;\n    add.u32 %r3, %r3, 1;\n"              \
          "    st.shared.b32 [%r2], %r3;\n    fence.proxy.async.shared::cta;\n" INIT(1) \
              EXPECT("128") CLUSTER MAPA
#define PEER(op, type)                                                                      \
    TWO "    mapa.shared::cluster.u32 %r5, %r10, %r6;\n    and.pred %p3, %p2, %p0;\n"       \
        "    @%p3 "                                                                         \
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." op \
        "." type " [%r5], [tile], 128, [%r7];\n    @%p2 bra $other;\n" WAIT(0) READ         \
        "$other:\n" CLUSTER
#define RED(op, type, to, bar)                                                                \
    TWO "    mapa.shared::cluster.u32 %r5, %r2, %r6;\n"                                       \
        "    @%p2 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." op \
        "." type " [" to "], %r3, [" bar "];\n    @%p2 bra $other;\n" WAIT(0) READ            \
        "$other:\n" CLUSTER
/* a pair of words at a time, of which the first is the lane's number; generic addresses */
#define RED64(type)                                                                        \
    WORDS "    shr.u32 %r3, %r0, 1;\n    add.u32 %r3, %r3, 1;\n    and.b32 %r4, %r0, 1;\n" \
          "    setp.eq.u32 %p3, %r4, 1;\n    @%p3 mov.u32 %r3, 2;\n"                       \
          "    st.shared.b32 [%r2], %r3;\n" INIT(1) EXPECT("128") CLUSTER MAPA             \
        "    mapa.shared::cluster.u32 %r5, %r2, %r6;\n    cvt.u64.u32 %rd4, %r5;\n"        \
        "    cvta.shared::cluster.u64 %rd4, %rd4;\n    cvt.u64.u32 %rd5, %r7;\n"           \
        "    cvta.shared::cluster.u64 %rd5, %rd5;\n    shr.u32 %r3, %r0, 1;\n"             \
        "    add.u32 %r3, %r3, 100;\n    mov.u32 %r4, 0;\n    mov.b64 %rd6, {%r4, %r3};\n" \
        "    not.pred %p3, %p3;\n    and.pred %p3, %p3, %p2;\n"                            \
        "    @%p3 red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add." type        \
        " [%rd4], %rd6, [%rd5];\n    @%p2 bra $other;\n" WAIT(0) READ "$other:\n" CLUSTER
#define NUMBERS "    add.u32 %r3, %r0, 1;\n    st.shared.b32 [%r2], %r3;\n"
#define SIGNED  "    sub.u32 %r3, 10, %r0;\n    st.shared.b32 [%r2], %r3;\n"
#define FLOATS  "    cvt.rn.f32.u32 %f1, %r0;\n    st.shared.f32 [%r2], %f1;\n"
#define DOUBLES                                                                                    \
    "    shr.u32 %r3, %r0, 1;\n    cvt.rn.f64.u32 %fd1, %r3;\n    mad.lo.u32 %r3, %r3, 8, %r10;\n" \
    "    st.shared.f64 [%r3], %fd1;\n"

static uint32_t number(uint32_t i)
{
    return i + 1;
}
static uint32_t moved(uint32_t i)
{
    return i + 1 + 16;
}
static uint32_t swapped(uint32_t i)
{
    return i < 32 ? i + 33 : i - 31;
}
static uint32_t wraps(uint32_t i) /* 0, 1, and 0 again or 2 */
{
    return i < 1 ? 0 : 2;
}
static uint32_t wraps_down(uint32_t i)
{
    return i;
}
static uint32_t half_halves(uint32_t i)
{
    (void)i;
    return 0x3c003e00;
}
static uint32_t half_brains(uint32_t i)
{
    (void)i;
    return 0x3f803fc0;
}
/* Block 0 has i + 1, block 1 i + 101: what is in block 0 when they are folded. */
static uint32_t summed(uint32_t i)
{
    return i < 32 ? 2 * i + 102 : 0;
}
static uint32_t first_block(uint32_t i)
{
    return i < 32 ? i + 1 : 0;
}
static uint32_t second_block(uint32_t i)
{
    return i < 32 ? i + 101 : 0;
}
static uint32_t both(uint32_t i)
{
    return i < 32 ? (i + 1) & (i + 101) : 0;
}
static uint32_t either(uint32_t i)
{
    return i < 32 ? (i + 1) | (i + 101) : 0;
}
static uint32_t one_of_them(uint32_t i)
{
    return i < 32 ? (i + 1) ^ (i + 101) : 0;
}
static uint32_t incremented(uint32_t i)
{
    return i < 32 ? i + 2 : 0;
}
static uint32_t decremented(uint32_t i)
{
    return i < 32 ? i : 0;
}
static uint32_t summed_pairs(uint32_t i) /* 64 bits: the low word of 2^32 (i + 1) + i + 1, twice */
{
    return i < 32 ? i % 2 ? i / 2 + 102 : i / 2 + 1 : 0;
}
static uint32_t nothing(uint32_t i)
{
    (void)i;
    return 0;
}
static uint32_t spoilt(uint32_t i)
{
    (void)i;
    return 99;
}
static uint32_t stored(uint32_t i)
{
    return i >= 1024 && i < 1024 + 64 ? i - 1023 : 0;
}
static uint32_t half_stored(uint32_t i)
{
    return i < 32 ? i + 1 : 0;
}
static uint32_t spread(uint32_t i)
{
    return i / 32 == 2 ? 0 : i % 32 + 1;
}
static uint32_t from_peer(uint32_t i)
{
    return i < 32 ? i + 101 : 0;
}
static uint32_t twice(uint32_t i)
{
    return 2 * (i + 1);
}
static uint32_t twice_signed(uint32_t i)
{
    return 2 * (10 - i);
}
static uint32_t lesser(uint32_t i)
{
    return i < 10 ? 0 : 10 - i;
}
static uint32_t greater(uint32_t i)
{
    return i < 10 ? 10 - i : 0;
}
static uint32_t pairs_added(uint32_t i) /* of 64 bits, which do not reach over */
{
    return 2 * (i + 1);
}
static uint32_t twice_float(uint32_t i)
{
    const float f = 2 * (float)i;
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static uint32_t twice_double(uint32_t i)
{
    const double d = 2 * (double)(i / 2);
    uint32_t u[2];
    memcpy(u, &d, 8);
    return u[i & 1];
}
static uint32_t halves(uint32_t i)
{
    (void)i;
    return 0x40004200; /* 2 and 3 */
}
static uint32_t brains(uint32_t i)
{
    (void)i;
    return 0x40004040; /* 2 and 3 */
}
static uint32_t ring(uint32_t i)
{
    uint32_t sum = 0;
    for (uint32_t k = 0; k < 12; k++)
        sum += k * 64 + i + 1;
    return i < 64 ? sum : 0;
}
static uint32_t sixteen(uint32_t i)
{
    return i < 32 ? i * 4 + 1 : 0;
}

static const struct flight_run runs[] = {
    {"a load, which its mbarrier tells of",
     WORDS INIT(1) EXPECT("256") LOAD("tile", "%rd9", "256") WAIT(0) READ, 64, 0, number},
    {"it shows no sooner than it must",
     WORDS INIT(1) EXPECT("256")
         LOAD("tile", "%rd9",
              "256") "    bar.sync 0;\n    bar.sync 0;\n    bar.sync 0;\n    bar.sync 0;\n" READ,
     64, 0, nothing, 0, FLIGHT_LATE},
    {"several loads of one phase, anywhere in it",
     WORDS INIT(1) LOAD("%r10+128", "%rd9+192", "128") EXPECT("256") LOAD("tile", "%rd9+64", "128")
         WAIT(0) READ,
     64, 0, moved},
    {"the other words that a load may have",
     WORDS INIT(1) "    mov.u64 %rd5, 0x12f0000000000000;\n" EXPECT(
         "256") "    @%p0 "
                "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                "[tile], "
                "[%rd9], 256, [%r8], %rd5;\n" WAIT(0) READ,
     64, 0, number},
    {"a load of nothing", WORDS INIT(1) EXPECT("0") LOAD("tile", "%rd9", "0") WAIT(0), 64, 0,
     nothing},
    {"every thread its own load",
     WORDS "    mad.lo.u32 %r3, %r0, 12, %r2;\n    mad.wide.u32 %rd4, %r0, 12, %rd10;\n" INIT(
         32) "    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n"
             "    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd4], "
             "16, "
             "[bar];\n" WAIT(0) "    ld.shared.b32 %r1, [%r3];\n",
     32, 0, sixteen},
    {"a prefetch changes nothing",
     "    cp.async.bulk.prefetch.L2.global [%rd9], 1024;\n"
     "    mov.u64 %rd5, 0x12f0000000000000;\n"
     "    cp.async.bulk.prefetch.L2.global.L2::cache_hint [%rd9+16], 64, %rd5;\n",
     32, 0, nothing},
    {"a line's priority changes nothing",
     "    applypriority.global.L2::evict_normal [%rd9], 128;\n    cvta.global.u64 %rd4, %rd9;\n"
     "    applypriority.L2::evict_normal [%rd4+16256], 128;\n",
     32, 0, nothing},
    {"a store that nobody waits for is there at the end",
     WORDS FILL STORE("%rd0+4096", "tile", "256") "    mov.u32 %r1, 0;\n", 64, 0, stored, 2048},
    {"a committed one, too", WORDS FILL STORE("%rd0+4096", "tile", "256") COMMIT, 64, 0, stored,
     2048},
    {"a store that was waited for can be read",
     WORDS FILL STORE("%rd0+4096", "tile", "256") COMMIT DONE BACK, 64, 0, number},
    {"it is no sooner there than it must be",
     WORDS FILL STORE("%rd0+4096", "tile", "256") COMMIT BACK, 64, 0, nothing, 0, FLIGHT_LATE},
    {"its source may change behind wait_group.read",
     WORDS FILL STORE("%rd0+4096", "tile", "256") COMMIT
     "    @%p0 cp.async.bulk.wait_group.read 0;\n" SPOIL DONE BACK,
     64, 0, number},
    {"and not before", WORDS FILL STORE("%rd0+4096", "tile", "256") COMMIT SPOIL DONE BACK, 64, 0,
     spoilt, 0, FLIGHT_LATE},
    {"wait_group.read does not wait for the writes",
     WORDS FILL STORE("%rd0+4096", "tile", "256") COMMIT
     "    @%p0 cp.async.bulk.wait_group.read 0;\n" BACK,
     64, 0, nothing, 0, FLIGHT_LATE},
    {"groups are waited for in order",
     WORDS FILL STORE("%rd0+4096", "tile", "128") COMMIT STORE("%rd0+4224", "tile+128", "128")
         COMMIT "    @%p0 cp.async.bulk.wait_group 1;\n" BACK,
     64, 0, half_stored, 0, FLIGHT_LATE},
    {"a store with a cache policy",
     WORDS FILL "    mov.u64 %rd5, 0x12f0000000000000;\n"
                "    @%p0 cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%rd0+4096], "
                "[tile], 256, "
                "%rd5;\n" COMMIT DONE BACK,
     64, 0, number},
    {"to several blocks at once",
     WORDS INIT(1) EXPECT("128") CLUSTER
     "    mov.u16 %h1, 11;\n    not.pred %p3, %p2;\n    and.pred %p3, %p3, %p0;\n"
     "    @%p3 "
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
     "[tile], [%rd9], 128, [bar], %h1;\n"
     "    setp.eq.u32 %p4, %r9, 2;\n    @%p4 bra $none;\n" WAIT(0) READ "$none:\n" CLUSTER,
     32, 4, spread},
    {"from block to block",
     WORDS "    add.u32 %r3, %r0, 101;\n    st.shared.b32 [%r2+512], %r3;\n"
           "    fence.proxy.async.shared::cta;\n" INIT(1) EXPECT("128") CLUSTER
     "    mov.u32 %r4, 0;\n    mapa.shared::cluster.u32 %r5, %r10, %r4;\n"
     "    mapa.shared::cluster.u32 %r6, %r8, %r4;\n    and.pred %p3, %p2, %p0;\n"
     "    @%p3 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r5], "
     "[tile+512], 128, [%r6];\n    @%p2 bra $other;\n" WAIT(0) READ "$other:\n" CLUSTER,
     32, 2, from_peer},
    {"from global memory to the other block",
     WORDS INIT(1) EXPECT("128") CLUSTER
     "    xor.b32 %r4, %r9, 1;\n    mapa.shared::cluster.u32 %r5, %r10, %r4;\n"
     "    mapa.shared::cluster.u32 %r6, %r8, %r4;\n    mul.wide.u32 %rd4, %r9, 128;\n"
     "    add.u64 %rd4, %rd4, %rd9;\n"
     "    @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd4], "
     "128, "
     "[%r6];\n" WAIT(0) READ CLUSTER,
     32, 2, swapped},
    {"add u32", REDUCE("add", "u32", NUMBERS), 64, 0, twice},
    {"add s32", REDUCE("add", "s32", SIGNED), 64, 0, twice_signed},
    {"add u64", REDUCE("add", "u64", NUMBERS), 64, 0, pairs_added},
    {"min s32", REDUCE("min", "s32", SIGNED), 64, 0, lesser},
    {"max s32", REDUCE("max", "s32", SIGNED), 64, 0, greater},
    {"min u32", REDUCE("min", "u32", NUMBERS), 64, 0, nothing},
    {"max u32", REDUCE("max", "u32", NUMBERS), 64, 0, number},
    {"min u64", REDUCE("min", "u64", NUMBERS), 64, 0, nothing},
    {"max u64", REDUCE("max", "u64", NUMBERS), 64, 0, number},
    {"add f32", REDUCE("add", "f32", FLOATS), 64, 0, twice_float},
    {"add f64", REDUCE("add", "f64", DOUBLES), 64, 0, twice_double},
    {"add f16",
     REDUCE("add.noftz", "f16", "    mov.u32 %r3, 0x3c003e00;\n    st.shared.b32 [%r2], %r3;\n"),
     64, 0, halves},
    {"add bf16",
     REDUCE("add.noftz", "bf16", "    mov.u32 %r3, 0x3f803fc0;\n    st.shared.b32 [%r2], %r3;\n"),
     64, 0, brains},
    {"min s64", REDUCE("min", "s64", NUMBERS), 64, 0, nothing},
    {"max s64", REDUCE("max", "s64", NUMBERS), 64, 0, number},
    {"and b32", REDUCE("and", "b32", NUMBERS), 64, 0, nothing},
    {"or b32", REDUCE("or", "b32", NUMBERS), 64, 0, number},
    {"xor b32", REDUCE("xor", "b32", NUMBERS), 64, 0, nothing},
    {"and b64", REDUCE("and", "b64", NUMBERS), 64, 0, nothing},
    {"or b64", REDUCE("or", "b64", NUMBERS), 64, 0, number},
    {"xor b64", REDUCE("xor", "b64", NUMBERS), 64, 0, nothing},
    {"inc u32: once, and beyond 1 it starts again", REDUCE("inc", "u32", NUMBERS), 64, 0, wraps},
    {"dec u32: from 0 to the bound", REDUCE("dec", "u32", NUMBERS), 64, 0, wraps_down},
    {"max f16",
     REDUCE("max", "f16", "    mov.u32 %r3, 0x3c003e00;\n    st.shared.b32 [%r2], %r3;\n"), 64, 0,
     half_halves},
    {"min f16",
     REDUCE("min", "f16", "    mov.u32 %r3, 0x3c003e00;\n    st.shared.b32 [%r2], %r3;\n"), 64, 0,
     nothing},
    {"max bf16",
     REDUCE("max", "bf16", "    mov.u32 %r3, 0x3f803fc0;\n    st.shared.b32 [%r2], %r3;\n"), 64, 0,
     half_brains},
    {"min bf16",
     REDUCE("min", "bf16", "    mov.u32 %r3, 0x3f803fc0;\n    st.shared.b32 [%r2], %r3;\n"), 64, 0,
     nothing},
    {"block to block: add u32", PEER("add", "u32"), 32, 2, summed},
    {"block to block: add s32", PEER("add", "s32"), 32, 2, summed},
    {"block to block: add u64", PEER("add", "u64"), 32, 2, summed},
    {"block to block: min u32", PEER("min", "u32"), 32, 2, first_block},
    {"block to block: min s32", PEER("min", "s32"), 32, 2, first_block},
    {"block to block: max u32", PEER("max", "u32"), 32, 2, second_block},
    {"block to block: max s32", PEER("max", "s32"), 32, 2, second_block},
    {"block to block: and b32", PEER("and", "b32"), 32, 2, both},
    {"block to block: or b32", PEER("or", "b32"), 32, 2, either},
    {"block to block: xor b32", PEER("xor", "b32"), 32, 2, one_of_them},
    {"block to block: inc u32", PEER("inc", "u32"), 32, 2, incremented},
    {"block to block: dec u32", PEER("dec", "u32"), 32, 2, decremented},
    {"red.async add u32", RED("add", "u32", "%r5", "%r7"), 32, 2, summed},
    {"red.async add s32", RED("add", "s32", "%r5", "%r7"), 32, 2, summed},
    {"red.async min u32", RED("min", "u32", "%r5", "%r7"), 32, 2, first_block},
    {"red.async min s32", RED("min", "s32", "%r5", "%r7"), 32, 2, first_block},
    {"red.async max u32", RED("max", "u32", "%r5", "%r7"), 32, 2, second_block},
    {"red.async max s32", RED("max", "s32", "%r5", "%r7"), 32, 2, second_block},
    {"red.async and b32", RED("and", "b32", "%r5", "%r7"), 32, 2, both},
    {"red.async or b32", RED("or", "b32", "%r5", "%r7"), 32, 2, either},
    {"red.async xor b32", RED("xor", "b32", "%r5", "%r7"), 32, 2, one_of_them},
    {"red.async inc u32", RED("inc", "u32", "%r5", "%r7"), 32, 2, incremented},
    {"red.async dec u32", RED("dec", "u32", "%r5", "%r7"), 32, 2, decremented},
    {"red.async add u64", RED64("u64"), 32, 2, summed_pairs},
    {"red.async add s64", RED64("s64"), 32, 2, summed_pairs},
    {"st.async of words",
     WORDS INIT(1) EXPECT("128") CLUSTER MAPA
     "    mapa.shared::cluster.u32 %r5, %r2, %r6;\n    add.u32 %r3, %r0, 101;\n"
     "    @%p2 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r3, [%r7];\n"
     "    @%p2 bra $other;\n" WAIT(0) READ "$other:\n" CLUSTER,
     32, 2, from_peer},
    {"st.async of two words and of four",
     WORDS INIT(1) EXPECT("128") CLUSTER MAPA
     "    mapa.shared::cluster.u32 %r5, %r10, %r6;\n    mad.lo.u32 %r5, %r0, 16, %r5;\n"
     "    shl.b32 %r11, %r0, 2;\n    add.u32 %r11, %r11, 101;\n    add.u32 %r12, %r11, 1;\n"
     "    add.u32 %r13, %r11, 2;\n    add.u32 %r14, %r11, 3;\n    setp.lt.u32 %p3, %r0, 4;\n"
     "    and.pred %p3, %p3, %p2;\n    setp.lt.u32 %p4, %r0, 8;\n    and.pred %p4, %p4, %p2;\n"
     "    @!%p3 bra $two;\n"
     "    st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r5], {%r11, %r12, %r13, "
     "%r14}, [%r7];\n    bra $sent;\n$two:\n    @!%p4 bra $sent;\n"
     "    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.s32 [%r5], {%r11, %r12}, "
     "[%r7];\n    mov.b64 %rd4, {%r13, %r14};\n"
     "    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r5+8], %rd4, [%r7];\n"
     "$sent:\n    @%p2 bra $other;\n" WAIT(0) READ "$other:\n" CLUSTER,
     32, 2, from_peer},
    {"st.async of long words and floats",
     WORDS INIT(1) EXPECT("128") CLUSTER MAPA
     "    mapa.shared::cluster.u32 %r5, %r10, %r6;\n    mad.lo.u32 %r5, %r0, 16, %r5;\n"
     "    shl.b32 %r11, %r0, 2;\n    add.u32 %r11, %r11, 101;\n    add.u32 %r12, %r11, 1;\n"
     "    add.u32 %r13, %r11, 2;\n    add.u32 %r14, %r11, 3;\n    setp.lt.u32 %p3, %r0, 4;\n"
     "    and.pred %p3, %p3, %p2;\n    setp.lt.u32 %p4, %r0, 8;\n    and.pred %p4, %p4, %p2;\n"
     "    mov.b64 %rd4, {%r11, %r12};\n    mov.b64 %rd5, {%r13, %r14};\n"
     "    mov.b32 %f1, %r11;\n    mov.b32 %f2, %r12;\n    mov.b64 %fd1, %rd5;\n    @!%p3 bra "
     "$two;\n"
     "    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u64 [%r5], {%rd4, %rd5}, "
     "[%r7];\n    bra $sent;\n$two:\n    @!%p4 bra $sent;\n"
     "    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%r5], %f1, [%r7];\n"
     "    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%r5+4], %f2, [%r7];\n"
     "    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f64 [%r5+8], %fd1, [%r7];\n"
     "$sent:\n    @%p2 bra $other;\n" WAIT(0) READ "$other:\n" CLUSTER,
     32, 2, from_peer},
    {"cp.async whose end is an arrival of its own",
     WORDS INIT(32) "    cp.async.ca.shared.global [%r2], [%rd10], 4;\n"
                    "    cp.async.mbarrier.arrive.shared.b64 [bar];\n"
                    "    mbarrier.arrive.shared.b64 _, [bar];\n" WAIT(
                        0) "    xor.b32 %r3, %r2, 4;\n    ld.shared.b32 %r1, [%r3];\n"
                           "    and.b32 %r4, %r0, 1;\n    mad.lo.u32 %r1, %r4, 2, %r1;\n"
                           "    sub.u32 %r1, %r1, 1;\n",
     32, 0, number},
    {"cp.async whose end is the arrival that was counted",
     WORDS INIT(32) "    cp.async.ca.shared::cta.global [%r2], [%rd10], 4;\n"
                    "    cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r8];\n" WAIT(0) READ,
     32, 0, number},
    {"... and not what comes behind it",
     WORDS INIT(32) "    cp.async.ca.shared.global [%r2], [%rd10], 4;\n"
                    "    cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n"
                    "    cp.async.ca.shared.global [%r2], [%rd10+4], 4;\n" WAIT(0) READ
     "    cp.async.wait_all;\n",
     32, 0, number, 0, FLIGHT_LATE},
    {"a ring of two stages, that a warp fills and two others empty",
     WORDS
     "    @%p0 mbarrier.init.shared.b64 [bar], 1;\n    @%p0 mbarrier.init.shared.b64 [bar+8], 1;\n"
     "    @%p0 mbarrier.init.shared.b64 [bar+16], 64;\n"
     "    @%p0 mbarrier.init.shared.b64 [bar+24], 64;\n"
     "    @%p0 fence.mbarrier_init.release.cluster;\n    bar.sync 0;\n    mov.u32 %r3, 0;\n"
     "    setp.ge.u32 %p3, %r0, 64;\n    mov.u64 %rd4, %rd9;\n    @%p3 bra $producer;\n"
     "$consume:\n    and.b32 %r4, %r3, 1;\n    shr.u32 %r5, %r3, 1;\n    and.b32 %r5, %r5, 1;\n"
     "    mad.lo.u32 %r6, %r4, 8, %r8;\n    mad.lo.u32 %r7, %r4, 256, %r2;\n"
     "$full:\n    mbarrier.try_wait.parity.shared.b64 %p1, [%r6], %r5;\n    @!%p1 bra $full;\n"
     "    ld.shared.b32 %r11, [%r7];\n    add.u32 %r1, %r1, %r11;\n"
     "    mbarrier.arrive.shared.b64 _, [%r6+16];\n    add.u32 %r3, %r3, 1;\n"
     "    setp.lt.u32 %p4, %r3, 12;\n    @%p4 bra $consume;\n    bra $end;\n"
     "$producer:\n    setp.ne.u32 %p4, %r0, 64;\n    @%p4 bra $end;\n"
     "$produce:\n    and.b32 %r4, %r3, 1;\n    shr.u32 %r5, %r3, 1;\n    and.b32 %r5, %r5, 1;\n"
     "    xor.b32 %r5, %r5, 1;\n    mad.lo.u32 %r6, %r4, 8, %r8;\n"
     "    mad.lo.u32 %r7, %r4, 256, %r10;\n"
     "$empty:\n    mbarrier.try_wait.parity.shared.b64 %p1, [%r6+16], %r5;\n    @!%p1 bra $empty;\n"
     "    mbarrier.arrive.expect_tx.shared.b64 _, [%r6], 256;\n"
     "    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r7], [%rd4], 256, "
     "[%r6];\n    add.u64 %rd4, %rd4, 256;\n    add.u32 %r3, %r3, 1;\n"
     "    setp.lt.u32 %p4, %r3, 12;\n    @%p4 bra $produce;\n$end:\n",
     96, 0, ring},
};

static const struct flight_fault faults[] = {
    {"a size that is no multiple of 16",
     WORDS INIT(1) "    mov.u32 %r3, 24;\n" LOAD("tile", "%rd9", "%r3"),
     "a bulk copy of 24 bytes, which must be a multiple of 16", "cp.async.bulk", 0},
    {"a target that is misaligned", WORDS INIT(1) LOAD("tile+8", "%rd9", "16"),
     "store of 16 bytes at element 2 of 'tile' (shared b32[1024]), which is misaligned",
     "cp.async.bulk", 0},
    {"a source that is misaligned", WORDS INIT(1) LOAD("tile", "%rd9+4", "16"),
     "load of 16 bytes at element 1 of 'x' (u32[4096], 4096 elements), which is misaligned",
     "cp.async.bulk", 0},
    {"a source that leaves its buffer", WORDS INIT(1) LOAD("tile", "%rd9+16368", "32"),
     "load of 32 bytes at element 4092 of 'x'", "cp.async.bulk", 0},
    {"a target outside of shared memory", WORDS INIT(1) LOAD("tile+8192", "%rd9", "16"),
     "store of 16 bytes at", "cp.async.bulk", 0},
    {"a store into what is only read", WORDS STORE("%rd9", "tile", "16"),
     "store of 16 bytes at element 0 of 'x' (u32[4096], 4096 elements), which is read-only",
     "cp.async.bulk", 0},
    {"a store that leaves its buffer", WORDS STORE("%rd0+16384", "tile", "16"),
     "store of 16 bytes at element 4096 of 'y'", "cp.async.bulk", 0},
    {"a store from elsewhere", WORDS STORE("%rd0", "tile+65536", "16"), "load of 16 bytes at",
     "cp.async.bulk", 0},
    {"a prefetch of what is not there", "    cp.async.bulk.prefetch.L2.global [%rd9+16384], 16;\n",
     "load of 16 bytes at element 4096 of 'x'", "cp.async.bulk.prefetch", 0},
    {"the priority of what is not there",
     "    applypriority.global.L2::evict_normal [%rd9+16384], 128;\n",
     "load of 128 bytes at element 4096 of 'x'", "applypriority", 0},
    {"the priority of no line", "    applypriority.global.L2::evict_normal [%rd9+64], 128;\n",
     "load of 128 bytes at element 16 of 'x' (u32[4096], 4096 elements), which is misaligned",
     "applypriority", 0},
    {"a copy without an mbarrier", WORDS LOAD("tile", "%rd9", "16") "    bar.sync 0;\n" WAIT(0),
     "there is no mbarrier at", "mbarrier.try_wait", 0},
    {"a copy to an mbarrier that is ended before it has arrived",
     WORDS INIT(1)
         LOAD("tile", "%rd9",
              "16") "    bar.sync 0;\n    @%p0 mbarrier.inval.shared.b64 [bar];\n    bar.sync 0;\n"
                    "    @%p0 mbarrier.init.shared.b64 [bar+8], 2;\n    bar.sync 0;\n"
                    "    mbarrier.try_wait.parity.shared.b64 %p1, [bar+8], 0;\n",
     "mbarrier.inval has ended it", "cp.async.bulk", 0},
    {"an mbarrier in another block than the bytes",
     WORDS INIT(1) CLUSTER
     "    xor.b32 %r4, %r9, 1;\n    mapa.shared::cluster.u32 %r5, %r8, %r4;\n"
     "    @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd9], "
     "16, [%r5];\n",
     "of the cluster is in another block than the bytes go to", "cp.async.bulk", 2},
    {"blocks that the cluster has not",
     WORDS INIT(1) CLUSTER
     "    mov.u16 %h1, 7;\n"
     "    @%p0 "
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
     "[tile], [%rd9], 16, [bar], %h1;\n",
     "the mask 0x0007 names blocks that the cluster of 2 does not have", "cp.async.bulk", 2},
    {"a misaligned st.async",
     WORDS INIT(1) CLUSTER
     "    @%p0 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [tile+4], %rd9, "
     "[bar];\n",
     "store of 8 bytes at element 1 of 'tile' (shared b32[1024]), which is misaligned", "st.async",
     2},
    {"another block's memory as the source of a store",
     WORDS CLUSTER "    mov.u32 %r4, 1;\n    mapa.shared::cluster.u32 %r5, %r10, %r4;\n"
                   "    @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r5], 16;\n",
     "and it must be in the thread's own block", "cp.async.bulk", 2},
    {"cp.async arrives where nothing is",
     WORDS "    cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n", "there is no mbarrier at",
     "cp.async.mbarrier.arrive", 0},
    {"a load that leaves its variable for the next one",
     WORDS INIT(1) LOAD("%r10+4080", "%rd9", "32"),
     "store of 32 bytes at element 1020 of 'tile' (shared b32[1024])", "cp.async.bulk", 0,
     DEVICE_CHECK_MEMORY},
    {"... found with all checks", WORDS INIT(1) LOAD("tile+4080", "%rd9", "32"),
     "store of 32 bytes at element 1020 of 'tile' (shared b32[1024])", "cp.async.bulk", 0,
     DEVICE_CHECK_ALL},
    {"a store that leaves its variable",
     "    mov.u32 %r10, tile;\n    @%p0 mbarrier.init.shared.b64 [bar], 1;\n"
     "    @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r10+4080], 32;\n",
     "load of 32 bytes at element 1020 of 'tile' (shared b32[1024])", "cp.async.bulk", 0,
     DEVICE_CHECK_MEMORY},
#define OVERTAKEN(form)                                                                          \
    "    @%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group." form " [%rd0], [tile], 16;\n" \
    "    @%p0 st.global.u32 [%rd0], %r0;\n    cp.async.bulk.commit_group;\n"                     \
    "    cp.async.bulk.wait_group 0;\n"
#define OVERTAKES(form)                                                                           \
    {                                                                                             \
        "a store to what " form " still folds into", OVERTAKEN(form),                             \
            "store at element 0 of 'y' (u32[4096], 4096 elements), which a copy in flight still " \
            "writes",                                                                             \
            "st.global.u32", 0, DEVICE_CHECK_ASYNC                                                \
    }
    OVERTAKES("add.u32"),
    OVERTAKES("min.s64"),
    OVERTAKES("and.b32"),
    OVERTAKES("inc.u32"),
    OVERTAKES("min.f16"),
    {"fewer bytes than expected", WORDS INIT(1) EXPECT("272") LOAD("tile", "%rd9", "256") WAIT(0),
     "wait for the phase of parity 0 of the mbarrier at element 0 of 'bar' (shared b64[4]), which "
     "lacks 16 bytes",
     "mbarrier.try_wait", 0},
    {"more bytes than expected", WORDS INIT(1) EXPECT("240") LOAD("tile", "%rd9", "256") WAIT(0),
     "which lacks mbarrier.expect_tx of 16 bytes that have come", "mbarrier.try_wait", 0},
};

enum { RUNS = sizeof runs / sizeof *runs, FAULTS = sizeof faults / sizeof *faults };

/* The same seed gives the same run, another one another, and none changes what a right kernel
 * gives. */
static void seeds(const char *module)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct arena *a = arena_new();
        flight_right((struct device_options){.threads = 1, .seed = seed}, module, runs, RUNS,
                     arena_printf(a, ", with seed %d", (int)seed));
        arena_free(a);
    }
}

/* What a kernel gives that does not wait for its load: a word of each sixteen bytes says whether
 * they had come. */
static uint64_t early(const char *module, uint64_t seed, unsigned threads)
{
    static uint32_t out[FLIGHT_WORDS];
    uint64_t came = 0;
    struct sim s = sim_with(flight_ops, (struct device_options){.threads = threads, .seed = seed},
                            "test.ptx", module);
    if (flight_go(&s, "run1", 64, 0, out) != DEVICE_OK)
        abort();
    for (uint32_t i = 0; i < 64; i++) {
        if (out[i] != 0 && out[i] != i + 1)
            abort();
        came |= (uint64_t)(out[i] != 0) << i;
    }
    flight_end(&s);
    return came;
}

static void draws(const char *module)
{
    unsigned none = 0, all = 0, some = 0;
    bool same = true;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        const uint64_t came = early(module, seed, 1);
        same &= came == early(module, seed, 2);
        none += came == 0;
        all += came == UINT64_MAX;
        some += came != 0 && came != UINT64_MAX;
    }
    ok(same, "a seed gives the same run every time, with any number of threads");
    ok(none > 4 && all > 4 && some > 1, "copies are late, early and torn");
    tap_note("of 40: late %u, early %u, torn %u", none, all, some);
}

int main(int argc, char **argv)
{
    int status;
    struct arena *a = arena_new();
    const char *module = flight_start(argc, argv, a, runs, RUNS, faults, FAULTS, &status);
    if (!module)
        return status;
    flight_right((struct device_options){.threads = 1, .check = DEVICE_CHECK_INIT}, module, runs,
                 RUNS, ", with checks");
    flight_right((struct device_options){.threads = 1, .check = DEVICE_CHECK_MEMORY}, module, runs,
                 RUNS, ", with bounds");
    seeds(module);
    draws(module);
    flight_wrong(module, faults, FAULTS, 0);
    flight_wrong(module, faults, FAULTS, DEVICE_CHECK_MEMORY);
    flight_wrong(module, faults, FAULTS, DEVICE_CHECK_ALL);
    arena_free(a);
    return tap_done();
}
