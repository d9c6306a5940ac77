/* What the sanitizer makes of PTX that the emitter does not write, and of several launches. The
 * corpus of kernels is in tests/broken and tests/clean. */
#include <config.h>

#include "sim.h"

#define HEAD(sm) ".version 8.0\n.target " sm "\n.address_size 64\n"
#define ENTRY(name, body)                                                                  \
    ".visible .entry " name "(.param .u64 x, .param .u64 y)\n{\n"                          \
    "    .reg .pred %p<4>;\n    .reg .b32 %r<12>;\n    .reg .b64 %rd<12>;\n"               \
    "    ld.param.u64 %rd1, [x];\n    ld.param.u64 %rd2, [y];\n    mov.u32 %r1, %tid.x;\n" \
    "    mov.u32 %r2, %ctaid.x;\n    mov.u32 %r3, %ntid.x;\n"                              \
    "    mad.lo.u32 %r4, %r2, %r3, %r1;\n    mad.wide.u32 %rd3, %r4, 4, %rd1;\n"           \
    "    mad.wide.u32 %rd4, %r4, 4, %rd2;\n    setp.lt.u32 %p1, %r1, 16;\n" body "    ret;\n}\n"

static struct sim begin(const char *ptx, unsigned check, unsigned threads)
{
    struct sim s = sim_begin((struct device_options){.threads = threads, .check = check});
    if (sim_load_text(&s, "test.ptx", ptx) != DEVICE_OK) {
        fputs(sim_errors(&s), stderr);
        abort();
    }
    return s;
}

/* A launch with buffers x and y: the status, and every text that the report must contain; none: it
 * must be empty. */
static void expect(struct sim *s, const char *entry, uint32_t grid, uint32_t block, uint64_t x,
                   uint64_t y, const char *what, ...)
{
    sim_arg(s, x, 8);
    sim_arg(s, y, 8);
    const enum device_status st = sim_go(s, entry, grid, block);
    const char *text = sim_errors(s), *t;
    va_list ap;
    va_start(ap, what);
    t = va_arg(ap, const char *);
    bool all = t ? st == DEVICE_FAULT : st == DEVICE_OK && !*text;
    for (; t; t = va_arg(ap, const char *))
        all = all && strstr(text, t);
    va_end(ap);
    if (!ok(all, "%s", what))
        tap_note("status %d, report:\n%s", st, text);
}

static const char barriers_ptx[] = HEAD("sm_80")
    /* half of each warp, then the other half; whole warps in two places; some leave */
    ENTRY("lanes", "    @%p1 bra $a;\n    bar.sync 0;\n    bra $b;\n$a:\n    bar.sync 0;\n$b:\n")
        ENTRY("warps", "    setp.lt.u32 %p1, %r1, 32;\n    @%p1 bra $a;\n    bar.sync 0;\n    bra "
                       "$b;\n$a:\n    bar.sync 0;\n$b:\n")
            ENTRY("leave", "    @%p1 ret;\n    bar.sync 0;\n")
                ENTRY("named", "    setp.lt.u32 %p1, %r1, 32;\n    @%p1 bra $a;\n    bar.sync 1, "
                               "64;\n    bra $b;\n$a:\n    bar.sync 1, 64;\n$b:\n");

static void barriers(void)
{
    struct sim s = begin(barriers_ptx, DEVICE_CHECK_SYNC, 1);
    const uint64_t x = sim_buffer(&s, "x", "u32[n]", 64, 4, NULL, false);
    expect(&s, "lanes", 1, 64, x, x, "lanes of one warp at two barriers",
           "test.ptx:", "the lanes of a warp come to a barrier at two places", NULL);
    expect(&s, "warps", 1, 64, x, x, "warps of one block at two barriers",
           "the threads of a block come to a barrier at two places",
           "thread (32,0,0), has come here", NULL);
    expect(&s, "leave", 1, 64, x, x, "threads that exit before the barrier",
           "not reached by every thread", "thread (0,0,0), has exited", NULL);
    expect(&s, "named", 1, 64, x, x, "a barrier for a number of threads may be met anywhere", NULL);
    sim_end(&s);
}

static const char spaces_ptx[] = HEAD("sm_80") ".global .u32 counter;\n"
    /* shared memory by generic addresses; a module's variable; a shared address taken for a global
     * one */
    ENTRY("generic", "    .shared .b32 cell[64];\n    mov.u32 %r5, cell;\n"
                     "    mad.lo.u32 %r6, %r1, 4, %r5;\n    cvt.u64.u32 %rd5, %r6;\n"
                     "    cvta.shared.u64 %rd6, %rd5;\n    st.u32 [%rd6], %r1;\n"
                     "    xor.b32 %r7, %r1, 1;\n    mad.lo.u32 %r8, %r7, 4, %r5;\n"
                     "    ld.shared.u32 %r9, [%r8];\n    st.global.u32 [%rd4], %r9;\n")
        ENTRY("variable", "    ld.global.u32 %r5, [counter];\n    add.u32 %r5, %r5, 1;\n"
                          "    st.global.u32 [counter], %r5;\n")
            ENTRY("wrong", "    .shared .b32 cell[64];\n    mov.u64 %rd5, cell;\n"
                           "    cvta.shared.u64 %rd6, %rd5;\n    st.global.u32 [%rd6], %r1;\n");

static void spaces(void)
{
    struct sim s = begin(spaces_ptx, DEVICE_CHECK_ALL, 1);
    const uint64_t y = sim_buffer(&s, "y", "u32[n]", 64, 4, NULL, false);
    expect(&s, "generic", 1, 64, y, y, "generic addresses reach the same shadow", "race on element",
           "of 'cell' (shared b32[64])", "put __syncwarp()", NULL);
    expect(&s, "variable", 2, 32, y, y, "threads race for a module's variable",
           "race on element 0 of 'counter'", "blocks run in any order", NULL);
    expect(&s, "wrong", 1, 32, y, y, "shared memory is not global", "which is shared memory", NULL);
    sim_end(&s);
}

static const char launches_ptx[] = HEAD("sm_80") ENTRY("put", "    st.global.u32 [%rd4], %r4;\n")
    ENTRY("get", "    xor.b32 %r5, %r4, 33;\n    mad.wide.u32 %rd5, %r5, 4, %rd1;\n"
                 "    ld.global.u32 %r6, [%rd5];\n    st.global.u32 [%rd4], %r6;\n");

static void launches(void)
{
    struct sim s = begin(launches_ptx, DEVICE_CHECK_ALL, 2);
    const uint64_t x = sim_buffer(&s, "x", "u32[n]", 256, 4, NULL, false);
    const uint64_t y = sim_buffer(&s, "y", "u32[n]", 256, 4, NULL, false);
    expect(&s, "get", 4, 64, x, y, "nothing has written x",
           "load of 4 bytes at element 33 of 'x' (u32[n], 256 elements), where nothing was written",
           "block (0,0,0), thread (0,0,0); 256 such accesses", NULL);
    expect(&s, "put", 4, 64, x, x, "a launch writes it", NULL);
    expect(&s, "get", 4, 64, x, y, "another reads it: launches are ordered", NULL);
    expect(&s, "get", 4, 64, y, y, "a launch in place is not", "race on element", "of 'y'", NULL);
    expect(&s, "put", 4, 64, x, y, "and the next one starts afresh", NULL);
    sim_end(&s);
}

static void undefined(void)
{
    static const uint32_t data[64];
    struct sim s = begin(launches_ptx, DEVICE_CHECK_INIT, 1);
    const struct device_label out = {.name = "y", .element_bits = 32, .undefined = true};
    const uint64_t x = sim_buffer(&s, "x", "u32[n]", 64, 4, data, false);
    uint64_t y = 0;
    sim_device.alloc(s.dev, sizeof data, &out, &y, s.diags);
    sim_device.write(s.dev, y, data, sizeof data, s.diags);
    expect(&s, "get", 1, 64, x, x, "what the host has written is defined", NULL);
    expect(&s, "get", 1, 64, y, x, "but not in an output", "of 'y'", "where nothing was written",
           NULL);
    sim_end(&s);
}

static const char unused_ptx[] = HEAD("sm_80")
    /* x[i] is undefined: selected away, decided by the other half of a condition, a branch on it,
     * an address of it */
    ENTRY("selects", "    ld.global.u32 %r5, [%rd3];\n    add.u32 %r6, %r5, 1;\n"
                     "    setp.gt.u32 %p2, %r1, 100;\n    selp.b32 %r7, %r6, %r1, %p2;\n"
                     "    st.global.u32 [%rd4], %r7;\n")
        ENTRY("decided", "    ld.global.u32 %r5, [%rd3];\n    setp.gt.u32 %p2, %r5, 7;\n"
                         "    setp.gt.u32 %p3, %r1, 100;\n    and.pred %p2, %p2, %p3;\n"
                         "    selp.b32 %r7, 1, 2, %p2;\n    st.global.u32 [%rd4], %r7;\n")
            ENTRY("branches", "    ld.global.u32 %r5, [%rd3];\n    setp.gt.u32 %p2, %r5, 7;\n"
                              "    @%p2 bra $a;\n    st.global.u32 [%rd4], %r1;\n$a:\n")
                ENTRY("addresses", "    ld.global.u32 %r5, [%rd3];\n    and.b32 %r5, %r5, 7;\n"
                                   "    mad.wide.u32 %rd5, %r5, 4, %rd2;\n"
                                   "    ld.global.u32 %r6, [%rd5];\n"
                                   "    st.global.u32 [%rd4], %r1;\n")
                    ENTRY("again", "    ld.global.u32 %r5, [%rd3];\n    mov.u32 %r5, %r1;\n"
                                   "    st.global.u32 [%rd4], %r5;\n");

static void unused(void)
{
    static const uint32_t data[64];
    struct sim s = begin(unused_ptx, DEVICE_CHECK_INIT, 1);
    const uint64_t x = sim_buffer(&s, "x", "u32[n]", 64, 4, NULL, false);
    const uint64_t y = sim_buffer(&s, "y", "u32[n]", 64, 4, data, false);
    expect(&s, "selects", 1, 64, x, y, "an undefined value that is not selected", NULL);
    expect(&s, "decided", 1, 64, x, y, "a condition that the other half decides", NULL);
    expect(&s, "again", 1, 64, x, y, "a register that is written again", NULL);
    expect(&s, "branches", 1, 64, x, y, "a branch on it", "load of 4 bytes at element 0 of 'x'",
           "the value is used here", "64 such accesses", NULL);
    expect(&s, "addresses", 1, 64, x, y, "an address of it", "at element 0 of 'x'",
           "ld.global.u32 %r6", NULL);
    sim_end(&s);
}

static const char fields_ptx[] = HEAD("sm_80")
    /* bits 4 to 11 of an undefined word are set, and read; so is bit 12 */
    ENTRY("masks", "    ld.global.u32 %r5, [%rd3];\n    and.b32 %r5, %r5, -4081;\n"
                   "    shl.b32 %r6, %r1, 4;\n    and.b32 %r6, %r6, 4080;\n"
                   "    or.b32 %r5, %r5, %r6;\n    bfe.u32 %r7, %r5, 4, 8;\n"
                   "    shl.b32 %r8, %r5, 20;\n    shr.s32 %r8, %r8, 24;\n"
                   "    add.u32 %r7, %r7, %r8;\n    st.global.u32 [%rd4], %r7;\n")
        ENTRY("beside", "    ld.global.u32 %r5, [%rd3];\n    and.b32 %r5, %r5, -4081;\n"
                        "    bfe.u32 %r7, %r5, 4, 9;\n    st.global.u32 [%rd4], %r7;\n")
            ENTRY("inserts", "    ld.global.u32 %r5, [%rd3];\n    bfi.b32 %r5, %r1, %r5, 8, 8;\n"
                             "    prmt.b32 %r5, %r5, %r1, 0x4151;\n    xor.b32 %r5, %r5, 7;\n"
                             "    st.global.u32 [%rd4], %r5;\n")
                ENTRY("bytes", "    ld.global.u32 %r5, [%rd3];\n"
                               "    bfi.b32 %r5, %r1, %r5, 8, 8;\n"
                               "    prmt.b32 %r5, %r5, %r1, 0x4251;\n"
                               "    st.global.u32 [%rd4], %r5;\n");

static void fields(void)
{
    static const uint32_t data[64];
    struct sim s = begin(fields_ptx, DEVICE_CHECK_INIT, 1);
    const uint64_t x = sim_buffer(&s, "x", "u32[n]", 64, 4, NULL, false);
    const uint64_t y = sim_buffer(&s, "y", "u32[n]", 64, 4, data, false);
    expect(&s, "masks", 1, 64, x, y, "the bits of a word that were set", NULL);
    expect(&s, "inserts", 1, 64, x, y, "its byte that was set", NULL);
    expect(&s, "beside", 1, 64, x, y, "one bit more", "at element 0 of 'x'", NULL);
    expect(&s, "bytes", 1, 64, x, y, "another byte", "at element 0 of 'x'", NULL);
    sim_end(&s);
}

/* The same findings, word for word, for any number of threads. */
static void reports(void)
{
    const char *first = NULL;
    for (unsigned threads = 1; threads <= 8; threads *= 2) {
        struct sim s = begin(launches_ptx, DEVICE_CHECK_ALL, threads);
        const uint64_t x = sim_buffer(&s, "x", "u32[n]", 4096, 4, NULL, false);
        sim_arg(&s, x, 8);
        sim_arg(&s, x, 8);
        sim_go(&s, "get", 64, 64);
        char *text = strdup(sim_errors(&s));
        if (!first)
            first = text;
        eq_str(text, first, "the report of %u threads", threads);
        if (text != first)
            free(text);
        sim_end(&s);
    }
    free((char *)(uintptr_t)first);
}

static const char variables_ptx[] = HEAD("sm_80")
    ENTRY("stray", "    .shared .b32 a[8];\n    .shared .b32 b[64];\n    mov.u32 %r6, b;\n"
                   "    mov.u32 %r5, a;\n    mad.lo.u32 %r7, %r1, 4, %r5;\n"
                   "    st.shared.u32 [%r7], %r1;\n")
    /* an address that may be of either, and one that went through memory */
    ENTRY("either", "    .shared .b32 a[8];\n    .shared .b32 b[64];\n    mov.u32 %r6, b;\n"
                    "    mov.u32 %r5, a;\n    setp.lt.u32 %p2, %r1, 4;\n"
                    "    selp.b32 %r7, %r5, %r6, %p2;\n    mad.lo.u32 %r8, %r1, 4, %r7;\n"
                    "    st.shared.u32 [%r8], %r1;\n    st.shared.u32 [%r6], %r6;\n"
                    "    ld.shared.u32 %r9, [%r6];\n    sub.u32 %r9, %r9, %r5;\n"
                    "    add.u32 %r9, %r9, %r5;\n    st.shared.u32 [%r9+0], %r6;\n");

static void variables(void)
{
    for (unsigned threads = 1; threads <= 2; threads++) {
        struct sim s = begin(variables_ptx, DEVICE_CHECK_MEMORY, threads);
        const uint64_t x = sim_buffer(&s, "x", "u32[n]", 64, 4, NULL, false);
        expect(&s, "stray", 4, 32, x, x, "an access that leaves its variable",
               "store of 4 bytes at element 8 of 'a' (shared b32[8])",
               "block (0,0,0), thread (8,0,0)", NULL);
        expect(&s, "either", 4, 32, x, x, "an address of two variables is of neither", NULL);
        sim_end(&s);
    }
}

static const char cluster_ptx[] = HEAD("sm_90")
/* each thread stores in its own block, and reads in the other of the cluster */
#define MEET "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n"
#define RING(between, behind)                                                                \
    "    .shared .b32 cell[32];\n    mov.u32 %r5, cell;\n    mad.lo.u32 %r5, %r1, 4, %r5;\n" \
    "    st.shared.u32 [%r5], %r4;\n" between                                                \
    "    mov.u32 %r6, %cluster_ctarank;\n    xor.b32 %r6, %r6, 1;\n"                         \
    "    mapa.shared::cluster.u32 %r7, %r5, %r6;\n    ld.shared::cluster.u32 %r8, [%r7];\n"  \
    "    st.global.u32 [%rd4], %r8;\n" behind
    ENTRY("ordered", RING(MEET, MEET)) ENTRY("racing", RING("    bar.sync 0;\n", MEET))
        ENTRY("leaving", RING(MEET, "")) ENTRY(
            "relaxed",
            RING("    barrier.cluster.arrive.relaxed.aligned;\n    barrier.cluster.wait.aligned;\n",
                 MEET))
            ENTRY("late",
                  RING("    barrier.cluster.arrive.aligned;\n    st.shared.u32 [%r5], %r1;\n"
                       "    barrier.cluster.wait.aligned;\n",
                       MEET));

static void finds(struct sim *s, struct device_launch *l, const char *entry, const char *text,
                  const char *what)
{
    l->entry = entry;
    eq_int(sim_device.launch(s->dev, l, 1, &s->stats, s->diags), DEVICE_FAULT, "%s", what);
    ok(strstr(sim_errors(s), text), "with what it is: %s", text);
}

static void clusters(void)
{
    struct sim s = begin(cluster_ptx, DEVICE_CHECK_ALL, 1);
    static const uint32_t zero[64];
    uint64_t x = sim_buffer(&s, "x", "u32[n]", 64, 4, zero, false);
    const void *arg[] = {&x, &x};
    const size_t bytes[] = {8, 8};
    struct device_launch l = {.entry = "ordered",
                              .grid = {2, 1, 1},
                              .block = {32, 1, 1},
                              .cluster = {2, 1, 1},
                              .args = arg,
                              .arg_bytes = bytes,
                              .narg = 2};
    eq_int(sim_device.launch(s.dev, &l, 1, &s.stats, s.diags), DEVICE_OK,
           "the cluster's barrier orders its blocks");
    eq_str(sim_errors(&s), "", "without a finding");
    finds(&s, &l, "racing", "race on", "the block's does not");
    finds(&s, &l, "leaving", "which may have exited", "a block may not leave what others read");
    finds(&s, &l, "relaxed", "race on", "a relaxed arrival orders nothing");
    finds(&s, &l, "late", "race on", "nor is what comes behind the arrival ordered");
    sim_end(&s);
}

int main(void)
{
    barriers();
    spaces();
    launches();
    undefined();
    unused();
    fields();
    reports();
    variables();
    clusters();
    return tap_done();
}
