/* How threads part, meet and wait: divergence, barriers, what lanes tell each other, clusters,
 * deadlocks. */
#include "sim.h"

#define HEAD(target) ".version 8.6\n.target " target "\n.address_size 64\n"
/* An entry that leaves its result in %r1; %r0 is the thread's number in the block, %rd0 points to
 * out. */
#define ENTRY(name, body)                                                                 \
    ".visible .entry " name "(.param .u64 out)\n{\n"                                      \
    "    .reg .pred %p<8>;\n    .reg .b32 %r<20>;\n    .reg .b64 %rd<10>;\n"              \
    "    ld.param.u64 %rd0, [out];\n    mov.u32 %r0, %tid.x;\n    mov.u32 %r1, 0;\n" body \
    "    mov.u32 %r18, %ctaid.x;\n    mov.u32 %r19, %ntid.x;\n"                           \
    "    mad.lo.u32 %r19, %r18, %r19, %r0;\n    mad.wide.u32 %rd1, %r19, 4, %rd0;\n"      \
    "    st.global.u32 [%rd1], %r1;\n    ret;\n}\n"

enum { WORDS = 1 << 14 };
static struct sim s;
static uint32_t out[WORDS];

static struct sim begin(const char *ptx, unsigned threads)
{
    struct sim v =
        sim_begin((struct device_options){.threads = threads, .max_instructions = 2000000000});
    if (sim_load_text(&v, "t.ptx", ptx) != DEVICE_OK) {
        fputs(sim_errors(&v), stderr);
        abort();
    }
    return v;
}

static enum device_status launch(const char *entry, uint32_t grid, uint32_t block, uint32_t cluster)
{
    static uint32_t zero[WORDS];
    const uint64_t address = sim_buffer(&s, "out", "u32[n]", WORDS, 4, zero, false);
    const void *arg = &address;
    const size_t bytes = 8;
    const struct device_launch l = {.entry = entry,
                                    .grid = {grid, 1, 1},
                                    .block = {block, 1, 1},
                                    .cluster = {cluster, 1, 1},
                                    .args = &arg,
                                    .arg_bytes = &bytes,
                                    .narg = 1};
    const enum device_status st = sim_device.launch(s.dev, &l, 1, &s.stats, s.diags);
    sim_fetch(&s, out, address, sizeof out);
    sim_device.release(s.dev, address);
    return st;
}

static void expect(const char *entry, uint32_t grid, uint32_t block, uint32_t (*want)(uint32_t),
                   const char *what)
{
    int bad = 0;
    const enum device_status st = launch(entry, grid, block, 0);
    if (st != DEVICE_OK)
        tap_note("%s", sim_errors(&s));
    for (uint32_t i = 0; i < grid * block; i++)
        if (out[i] != want(i) && bad++ < 4)
            tap_note("thread %u: got 0x%x, want 0x%x", i, out[i], want(i));
    ok(st == DEVICE_OK && bad == 0, "%s", what);
}

static void stuck(const char *entry, uint32_t block, const char *report, const char *what)
{
    const enum device_status st = launch(entry, 1, block, 0);
    eq_int(st, DEVICE_FAULT, "%s: a fault", what);
    eq_str(sim_errors(&s), report, "%s: the report", what);
}

/* ---- parting and meeting --------------------------------------------------------------------- */

static const char divergence_ptx[] = HEAD("sm_80")
    /* the rare side stands behind the return, as compilers like to put it; then all meet again */
    ENTRY("cold", "    and.b32 %r2, %r0, 7;\n    setp.eq.u32 %p1, %r2, 3;\n    @%p1 bra $cold;\n"
                  "    mov.u32 %r3, 1;\n"
                  "$join:\n    activemask.b32 %r1;\n    add.u32 %r1, %r1, %r3;\n    bra $end;\n"
                  "$cold:\n    mov.u32 %r3, 2;\n    bra $join;\n"
                  "$end:\n")
    /* trip counts from 0 to thousands: those who leave a loop early wait for the others */
    ENTRY("trips", "    mul.lo.u32 %r2, %r0, 1000;\n    mov.u32 %r3, 0;\n"
                   "$loop:\n    setp.ge.u32 %p1, %r3, %r2;\n    @%p1 bra $out;\n"
                   "    add.u32 %r3, %r3, 1;\n    bra $loop;\n"
                   "$out:\n    activemask.b32 %r1;\n    sub.u32 %r3, %r3, %r2;\n"
                   "    add.u32 %r1, %r1, %r3;\n")
    /* continue from the middle of a loop: all lanes are together again at its head */
    ENTRY("again",
          "    mov.u32 %r3, 0;\n    mov.u32 %r1, -1;\n"
          "$head:\n    activemask.b32 %r2;\n    and.b32 %r1, %r1, %r2;\n"
          "    setp.ge.u32 %p1, %r3, 40;\n    @%p1 bra $out;\n"
          "    add.u32 %r3, %r3, 1;\n    add.u32 %r4, %r3, %r0;\n    and.b32 %r4, %r4, 3;\n"
          "    setp.eq.u32 %p2, %r4, 1;\n    @%p2 bra $head;\n"
          "    setp.eq.u32 %p3, %r4, 2;\n    @%p3 bra $head;\n"
          "    bra $head;\n"
          "$out:\n")
    /* nested loops with breaks out of both, then lanes that exit, then those left together */
    ENTRY("breaks",
          "    mov.u32 %r2, 0;\n"
          "$outer:\n    setp.ge.u32 %p1, %r2, 10;\n    @%p1 bra $done;\n    mov.u32 %r3, 0;\n"
          "$inner:\n    setp.ge.u32 %p2, %r3, 10;\n    @%p2 bra $next;\n"
          "    mad.lo.u32 %r4, %r2, 10, %r3;\n    setp.eq.u32 %p3, %r4, %r0;\n    @%p3 bra $done;\n"
          "    add.u32 %r3, %r3, 1;\n    and.b32 %r5, %r0, 16;\n    setp.ne.u32 %p4, %r5, 0;\n"
          "    setp.gt.and.u32 %p4, %r3, 3, %p4;\n    @%p4 bra $next;\n    bra $inner;\n"
          "$next:\n    add.u32 %r2, %r2, 1;\n    bra $outer;\n"
          "$done:\n    and.b32 %r5, %r0, 1;\n    setp.eq.u32 %p5, %r5, 1;\n    @%p5 ret;\n"
          "    activemask.b32 %r1;\n    and.b32 %r1, %r1, 0xffff0000;\n"
          "    mad.lo.u32 %r2, %r2, 10, %r3;\n    or.b32 %r1, %r1, %r2;\n")
    /* a switch */
    ENTRY("table", "    rem.u32 %r2, %r0, 5;\n"
                   "    setp.lt.u32 %p1, %r2, 4;\n    @%p1 brx.idx %r2, $list;\n"
                   "    mov.u32 %r3, 50;\n    bra $join;\n"
                   "$list: .branchtargets $a, $b, $a, $c;\n"
                   "$b:\n    mov.u32 %r3, 20;\n    bra $join;\n"
                   "$c:\n    mov.u32 %r3, 30;\n    bra $join;\n"
                   "$a:\n    mov.u32 %r3, 10;\n"
                   "$join:\n    activemask.b32 %r4;\n    popc.b32 %r4, %r4;\n"
                   "    add.u32 %r1, %r3, %r4;\n");

static uint32_t want_cold(uint32_t i)
{
    return UINT32_MAX + ((i & 7) == 3 ? 2 : 1);
}
static uint32_t want_all(uint32_t i)
{
    (void)i;
    return UINT32_MAX;
}
static uint32_t want_breaks(uint32_t i)
{
    if (i & 1)
        return 0;
    for (uint32_t a = 0; a < 10; a++)
        for (uint32_t b = 0; b < 10; b++) {
            if (a * 10 + b == i)
                return 0x55550000 | i;
            if ((i & 16) && b + 1 > 3)
                break;
        }
    return 0x55550000 | (10 * 10 + 4);
}
static uint32_t want_table(uint32_t i)
{
    static const uint32_t to[] = {10, 20, 10, 30, 50};
    return to[i % 5] + 32;
}

static void divergence(void)
{
    s = begin(divergence_ptx, 1);
    expect("cold", 1, 64, want_cold, "lanes meet where a branch's ways join, wherever they lie");
    expect("trips", 1, 32, want_all, "lanes that leave a loop wait for the others");
    expect("again", 1, 32, want_all, "lanes that go back to a loop's head meet there");
    expect("breaks", 1, 32, want_breaks, "breaks out of nested loops, and exits");
    expect("table", 1, 64, want_table, "brx.idx");
    sim_end(&s);
}

/* ---- waiting for each other ------------------------------------------------------------------ */

static const char progress_ptx[] = HEAD("sm_80")
    /* a lock that the lanes of a warp fight for */
    ENTRY("lock", "$try:\n    atom.global.cas.b32 %r2, [%rd0+65528], 0, 1;\n"
                  "    setp.ne.u32 %p1, %r2, 0;\n    @%p1 bra $try;\n"
                  "    ld.volatile.global.u32 %r3, [%rd0+65532];\n    add.u32 %r3, %r3, 1;\n"
                  "    st.volatile.global.u32 [%rd0+65532], %r3;\n    membar.gl;\n"
                  "    atom.global.exch.b32 %r2, [%rd0+65528], 0;\n    mov.u32 %r1, 7;\n")
    /* lane 31 produces what the others, earlier in the code, spin on */
    ENTRY("produce",
          "    setp.eq.u32 %p1, %r0, 31;\n    @%p1 bra $make;\n"
          "$spin:\n    ld.acquire.gpu.global.u32 %r1, [%rd0+65532];\n"
          "    setp.eq.u32 %p2, %r1, 0;\n    @%p2 bra $spin;\n    bra $end;\n"
          "$make:\n    mov.u32 %r1, 99;\n    st.release.gpu.global.u32 [%rd0+65532], %r1;\n"
          "$end:\n")
    /* the same with nothing that says so */
    ENTRY("quiet", "    setp.eq.u32 %p1, %r0, 31;\n    @%p1 bra $make;\n"
                   "$spin:\n    ld.global.u32 %r1, [%rd0+65532];\n"
                   "    setp.eq.u32 %p2, %r1, 0;\n    @%p2 bra $spin;\n    bra $end;\n"
                   "$make:\n    mov.u32 %r1, 99;\n    st.global.u32 [%rd0+65532], %r1;\n"
                   "$end:\n")
    /* warp 0 waits for warp 1 with nanosleep */
    ENTRY("sleep", "    .shared .b32 flag;\n    setp.ge.u32 %p1, %r0, 32;\n    @%p1 bra $make;\n"
                   "$spin:\n    nanosleep.u32 100;\n    ld.volatile.shared.u32 %r1, [flag];\n"
                   "    setp.eq.u32 %p2, %r1, 0;\n    @%p2 bra $spin;\n    bra $end;\n"
                   "$make:\n    mov.u32 %r1, 5;\n    st.volatile.shared.u32 [flag], %r1;\n"
                   "$end:\n")
    /* every block waits for the one before it, which has a lower ticket */
    ENTRY("chain", "    setp.ne.u32 %p1, %r0, 0;\n    mov.u32 %r2, %ctaid.x;\n"
                   "    mul.wide.u32 %rd2, %r2, 4;\n    add.u64 %rd2, %rd2, %rd0;\n"
                   "    @%p1 bra $wait;\n"
                   "    mov.u32 %r3, 1;\n    setp.eq.u32 %p2, %r2, 0;\n    @%p2 bra $first;\n"
                   "$spin:\n    ld.acquire.gpu.global.u32 %r3, [%rd2+32764];\n"
                   "    setp.eq.u32 %p2, %r3, 0;\n    @%p2 bra $spin;\n    add.u32 %r3, %r3, 1;\n"
                   "$first:\n    st.release.gpu.global.u32 [%rd2+32768], %r3;\n"
                   "$wait:\n    bar.sync 0;\n    ld.relaxed.gpu.global.u32 %r1, [%rd2+32768];\n")
    /* all blocks of the grid wait until the last has come */
    ENTRY("grid",
          "    bar.sync 0;\n    setp.ne.u32 %p1, %r0, 0;\n    @%p1 bra $wait;\n"
          "    mov.u32 %r2, %nctaid.x;\n    red.release.gpu.global.add.u32 [%rd0+65532], 1;\n"
          "$spin:\n    ld.acquire.gpu.global.u32 %r3, [%rd0+65532];\n"
          "    setp.lt.u32 %p2, %r3, %r2;\n    @%p2 bra $spin;\n"
          "$wait:\n    bar.sync 0;\n    ld.relaxed.gpu.global.u32 %r1, [%rd0+65532];\n");

static uint32_t want_7(uint32_t i)
{
    (void)i;
    return 7;
}
static uint32_t want_99(uint32_t i)
{
    (void)i;
    return 99;
}
static uint32_t want_5(uint32_t i)
{
    (void)i;
    return 5;
}
static uint32_t want_ticket(uint32_t i)
{
    return i / 32 + 1;
}
static uint32_t want_200(uint32_t i)
{
    (void)i;
    return 200;
}

static void progress(void)
{
    for (unsigned threads = 1; threads <= 2; threads++) {
        s = begin(progress_ptx, threads);
        expect("lock", 3, 64, want_7, "lanes of a warp fight for a lock");
        eq_int(out[WORDS - 1], 3 * 64, "... and each has it once");
        expect("produce", 1, 32, want_99, "lanes wait for a lane of their warp");
        expect("quiet", 1, 32, want_99, "... even when nothing says that they do");
        expect("sleep", 1, 64, want_5, "a warp sleeps until another has done its part");
        expect("chain", 250, 32, want_ticket, "blocks wait for the block before them");
        expect("grid", 200, 64, want_200, "the whole grid meets");
        sim_end(&s);
    }
}

/* ---- barriers -------------------------------------------------------------------------------- */

static const char barriers_ptx[] = HEAD("sm_80")
    /* warp 0 and 1 at barrier 1, warp 2 and 3 at barrier 2, in turn; each writes what its partner
     * reads */
    ENTRY("named", "    .shared .b32 cell[128];\n    mov.u32 %r2, cell;\n"
                   "    mad.lo.u32 %r3, %r0, 4, %r2;\n    st.shared.u32 [%r3], %r0;\n"
                   "    shr.u32 %r4, %r0, 6;\n    add.u32 %r4, %r4, 1;\n    barrier.sync %r4, 64;\n"
                   "    xor.b32 %r5, %r0, 32;\n    mad.lo.u32 %r5, %r5, 4, %r2;\n"
                   "    ld.shared.u32 %r1, [%r5];\n")
    /* the first warp only arrives; the others wait for it */
    ENTRY("arrive", "    .shared .b32 cell;\n    setp.ge.u32 %p1, %r0, 32;\n    @%p1 bra $wait;\n"
                    "    mov.u32 %r1, 3;\n    st.shared.u32 [cell], %r1;\n    bar.arrive 5, 96;\n"
                    "    bra $end;\n"
                    "$wait:\n    bar.sync 5, 96;\n    ld.shared.u32 %r1, [cell];\n"
                    "$end:\n")
    /* half-warps come to one barrier from two instructions */
    ENTRY("halves", "    and.b32 %r2, %r0, 16;\n    setp.ne.u32 %p1, %r2, 0;\n    @%p1 bra $high;\n"
                    "    barrier.sync 0;\n    mov.u32 %r1, 1;\n    bra $end;\n"
                    "$high:\n    barrier.sync 0;\n    mov.u32 %r1, 2;\n"
                    "$end:\n    activemask.b32 %r3;\n    and.b32 %r3, %r3, 0x10000;\n"
                    "    add.u32 %r1, %r1, %r3;\n")
    /* some lanes, and a whole warp, leave; the barrier is for the rest */
    ENTRY("leave", "    setp.ge.u32 %p1, %r0, 64;\n    @%p1 ret;\n"
                   "    rem.u32 %r2, %r0, 3;\n    setp.eq.u32 %p1, %r2, 0;\n    @%p1 ret;\n"
                   "    bar.sync 0;\n    bar.sync 0;\n    mov.u32 %r1, 1;\n")
    /* counts and conditions over the block */
    ENTRY("red", "    rem.u32 %r2, %r0, 3;\n    setp.eq.u32 %p1, %r2, 0;\n"
                 "    bar.red.popc.u32 %r1, 0, %p1;\n"
                 "    bar.red.and.pred %p2, 0, %p1;\n    bar.red.or.pred %p3, 0, %p1;\n"
                 "    setp.lt.u32 %p4, %r0, 200;\n    barrier.red.and.pred %p5, 1, 128, %p4;\n"
                 "    barrier.red.or.aligned.pred %p6, 1, !%p4;\n"
                 "    selp.b32 %r3, 0x1000, 0, %p2;\n    or.b32 %r1, %r1, %r3;\n"
                 "    selp.b32 %r3, 0x2000, 0, %p3;\n    or.b32 %r1, %r1, %r3;\n"
                 "    selp.b32 %r3, 0x4000, 0, %p5;\n    or.b32 %r1, %r1, %r3;\n"
                 "    selp.b32 %r3, 0x8000, 0, %p6;\n    or.b32 %r1, %r1, %r3;\n")
    /* a barrier in a loop, many times */
    ENTRY("turns",
          "    .shared .b32 sum;\n    mov.u32 %r2, 0;\n    mov.u32 %r3, %ntid.x;\n"
          "$loop:\n    rem.u32 %r4, %r2, %r3;\n    setp.ne.u32 %p1, %r4, %r0;\n"
          "    @%p1 bra $skip;\n    ld.shared.u32 %r5, [sum];\n    add.u32 %r5, %r5, %r0;\n"
          "    st.shared.u32 [sum], %r5;\n"
          "$skip:\n    bar.sync 0;\n    add.u32 %r2, %r2, 1;\n"
          "    setp.lt.u32 %p1, %r2, 1000;\n    @%p1 bra $loop;\n"
          "    ld.shared.u32 %r1, [sum];\n");

static uint32_t want_partner(uint32_t i)
{
    return i % 128 ^ 32;
}
static uint32_t want_3(uint32_t i)
{
    (void)i;
    return 3;
}
static uint32_t want_halves(uint32_t i)
{
    return (i & 16 ? 2 : 1) + 0x10000;
}
static uint32_t want_leave(uint32_t i)
{
    return i < 64 && i % 3 != 0;
}
static uint32_t want_red(uint32_t i)
{
    (void)i;
    return 43 | 0x2000 | 0x4000;
}
static uint32_t want_turns(uint32_t i)
{
    (void)i;
    uint32_t sum = 0;
    for (uint32_t k = 0; k < 1000; k++)
        sum += k % 100;
    return sum;
}

static void barriers(void)
{
    s = begin(barriers_ptx, 1);
    expect("named", 2, 128, want_partner, "two barriers in use at a time");
    expect("arrive", 1, 96, want_3, "bar.arrive");
    expect("halves", 1, 64, want_halves, "half-warps come to a barrier from two places");
    expect("leave", 1, 96, want_leave, "lanes and warps that have left are not waited for");
    expect("red", 1, 128, want_red, "bar.red");
    expect("turns", 1, 100, want_turns, "a barrier in a loop");
    sim_end(&s);
}

/* ---- what lanes tell each other -------------------------------------------------------------- */

static const char lanes_ptx[] = HEAD("sm_90")
    /* the two sides of a branch meet in two shuffles, then in two votes of one mask */
    ENTRY("sides", "    and.b32 %r2, %r0, 1;\n    setp.eq.u32 %p1, %r2, 1;\n    @%p1 bra $odd;\n"
                   "    shfl.sync.bfly.b32 %r3, %r0, 1, 31, -1;\n"
                   "    vote.sync.ballot.b32 %r4, %p1, -1;\n    bra $end;\n"
                   "$odd:\n    add.u32 %r5, %r0, 100;\n"
                   "    shfl.sync.bfly.b32 %r3|%p2, %r5, 1, 31, -1;\n"
                   "    selp.b32 %r6, 1000, 0, %p2;\n    add.u32 %r3, %r3, %r6;\n"
                   "    vote.sync.ballot.b32 %r4, %p1, -1;\n"
                   "$end:\n    and.b32 %r4, %r4, 0xff0000;\n    or.b32 %r1, %r3, %r4;\n")
    /* groups of lanes with masks of their own in one instruction, some of them late */
    ENTRY("groups", "    rem.u32 %r2, %r0, 3;\n    match.any.sync.b32 %r3, %r2, -1;\n"
                    "    setp.lt.u32 %p1, %r0, 20;\n    @%p1 bra $skip;\n    add.u32 %r4, %r0, 1;\n"
                    "$skip:\n    redux.sync.add.u32 %r1, %r0, %r3;\n"
                    "    elect.sync %r5|%p2, %r3;\n    selp.b32 %r6, 0x10000, 0, %p2;\n"
                    "    or.b32 %r1, %r1, %r6;\n    bar.warp.sync %r3;\n")
    /* lanes that have exited are not waited for */
    ENTRY("gone",
          "    setp.ge.u32 %p1, %r0, 24;\n    @%p1 ret;\n"
          "    vote.sync.ballot.b32 %r2, 1, -1;\n"
          "    setp.lt.u32 %p2, %r0, 30;\n    vote.sync.all.pred %p3, %p2, -1;\n"
          "    vote.sync.uni.pred %p4, %p2, -1;\n    vote.sync.any.pred %p5, !%p2, -1;\n"
          "    match.all.sync.b64 %r3|%p6, %rd0, -1;\n"
          "    selp.b32 %r4, 1, 0, %p3;\n    selp.b32 %r5, 2, 0, %p4;\n    or.b32 %r4, %r4, %r5;\n"
          "    selp.b32 %r5, 4, 0, %p5;\n    or.b32 %r4, %r4, %r5;\n"
          "    selp.b32 %r5, 8, 0, %p6;\n    or.b32 %r4, %r4, %r5;\n"
          "    shl.b32 %r4, %r4, 28;\n    and.b32 %r2, %r2, %r3;\n    or.b32 %r1, %r2, %r4;\n")
    /* a guarded shuffle: only the lanes of its mask */
    ENTRY("guard", "    setp.lt.u32 %p1, %r0, 8;\n    mov.u32 %r1, 77;\n"
                   "    @%p1 shfl.sync.down.b32 %r1, %r0, 4, 0x181f, 0xff;\n")
    /* what the clocks say only grows, and by more than nothing */
    ENTRY("clocks", "    mov.u64 %rd2, %clock64;\n    mov.u32 %r2, %clock;\n"
                    "    mov.u64 %rd3, %globaltimer;\n    nanosleep.u32 10;\n"
                    "    mov.u64 %rd4, %clock64;\n    mov.u64 %rd5, %globaltimer;\n"
                    "    setp.gt.u64 %p1, %rd4, %rd2;\n    setp.ge.u64 %p2, %rd5, %rd3;\n"
                    "    cvt.u32.u64 %r3, %rd4;\n    setp.gt.and.u32 %p1, %r3, %r2, %p1;\n"
                    "    and.pred %p1, %p1, %p2;\n    selp.b32 %r1, 1, 0, %p1;\n");

static uint32_t want_sides(uint32_t i)
{
    return ((i & 1 ? (i ^ 1) + 1000 : (i ^ 1) + 100)) | 0xaa0000;
}
static uint32_t want_groups(uint32_t i)
{
    uint32_t sum = 0;
    for (uint32_t k = i % 3; k < 32; k += 3)
        sum += k;
    return sum | (i < 3 ? 0x10000 : 0);
}
static uint32_t want_gone(uint32_t i)
{
    return i < 24 ? 0xb0000000 | 0xffffff : 0;
}
static uint32_t want_guard(uint32_t i)
{
    return i < 4 ? i + 4 : i < 8 ? i : 77;
}
static uint32_t want_1(uint32_t i)
{
    (void)i;
    return 1;
}

static void lanes(void)
{
    s = begin(lanes_ptx, 1);
    expect("sides", 1, 32, want_sides, "the sides of a branch meet in two instructions");
    expect("groups", 1, 32, want_groups, "groups of lanes with masks of their own");
    expect("gone", 1, 32, want_gone, "lanes that have exited are not waited for");
    expect("guard", 1, 32, want_guard, "a guarded shuffle");
    expect("clocks", 2, 64, want_1, "clocks");
    sim_end(&s);
}

/* ---- clusters -------------------------------------------------------------------------------- */

static const char cluster_ptx[] = HEAD("sm_90")
    /* each thread reads its neighbour block's shared memory, through shared::cluster and a generic
     * address */
    ENTRY("ring",
          "    .shared .b32 cell[32];\n    mov.u32 %r2, cell;\n    mad.lo.u32 %r3, %r0, 4, %r2;\n"
          "    mov.u32 %r4, %cluster_ctarank;\n    mov.u32 %r5, %cluster_nctarank;\n"
          "    mad.lo.u32 %r6, %r4, 100, %r0;\n    st.shared.u32 [%r3], %r6;\n"
          "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n"
          "    add.u32 %r7, %r4, 1;\n    rem.u32 %r7, %r7, %r5;\n"
          "    mapa.shared::cluster.u32 %r8, %r3, %r7;\n"
          "    ld.shared::cluster.u32 %r9, [%r8];\n"
          "    getctarank.shared::cluster.u32 %r10, %r8;\n"
          "    cvt.u64.u32 %rd2, %r3;\n    cvta.shared.u64 %rd2, %rd2;\n"
          "    mapa.u64 %rd3, %rd2, %r7;\n    ld.u32 %r11, [%rd3];\n"
          "    atom.shared::cluster.add.u32 %r12, [%r8], 1000;\n"
          "    barrier.cluster.arrive.release;\n    barrier.cluster.wait.acquire;\n"
          "    ld.shared::cluster.u32 %r13, [%r3];\n    sub.u32 %r13, %r13, %r6;\n"
          "    mad.lo.u32 %r1, %r10, 10000, %r9;\n    sub.u32 %r11, %r11, %r9;\n"
          "    add.u32 %r1, %r1, %r11;\n    mad.lo.u32 %r1, %r13, 1000, %r1;\n")
        ENTRY("where", "    mov.u32 %r2, %clusterid.x;\n    mov.u32 %r3, %nclusterid.x;\n"
                       "    mov.u32 %r4, %cluster_ctaid.x;\n    mov.u32 %r5, %cluster_nctaid.x;\n"
                       "    mad.lo.u32 %r1, %r2, 10, %r3;\n    mad.lo.u32 %r1, %r1, 10, %r4;\n"
                       "    mad.lo.u32 %r1, %r1, 10, %r5;\n")
            ENTRY("never",
                  "    mov.u32 %r4, %cluster_ctarank;\n    setp.eq.u32 %p1, %r4, 1;\n    @%p1 bra "
                  "$wait;\n"
                  "    barrier.cluster.arrive;\n    barrier.cluster.wait;\n    ret;\n"
                  "$wait:\n    setp.ge.u32 %p2, %r0, 32;\n    @%p2 ret;\n    bar.sync 1, 64;\n")
                ENTRY("past", "    mov.u32 %r4, 7;\n    mapa.shared::cluster.u32 %r2, 16, %r4;\n"
                              "    ld.shared::cluster.u32 %r1, [%r2];\n")
                    ENTRY("twice", "    barrier.cluster.arrive;\n    barrier.cluster.arrive;\n    "
                                   "barrier.cluster.wait;\n");

static void clusters(void)
{
    int bad = 0;
    s = begin(cluster_ptx, 2);
    enum device_status st = launch("ring", 12, 32, 4);
    if (st != DEVICE_OK)
        tap_note("%s", sim_errors(&s));
    for (uint32_t i = 0; i < 12 * 32; i++) {
        const uint32_t rank = i / 32 % 4, next = (rank + 1) % 4;
        bad += out[i] != next * 10000 + next * 100 + i % 32 + 1000000;
    }
    ok(st == DEVICE_OK && bad == 0, "blocks of a cluster read each other's shared memory");
    st = launch("where", 6, 1, 3);
    const uint32_t want[6] = {203, 213, 223, 1203, 1213, 1223};
    ok(st == DEVICE_OK && memcmp(out, want, sizeof want) == 0, "the registers of clusters");
    eq_int(launch("where", 6, 1, 4), DEVICE_REFUSED, "a grid that is not made of clusters");
    sim_errors(&s);
    st = launch("never", 2, 64, 2);
    eq_int(st, DEVICE_FAULT, "a cluster that never meets");
    eq_str(sim_errors(&s),
           "kaio-run: error: kernel 'never' is stuck: no thread of the cluster of block (0,0,0) "
           "can go on\n"
           "t.ptx:80:5: note: block (0,0,0), warps 0-1, lanes 0-31: wait for the cluster, of which "
           "64 of 96 threads have come\n"
           "   80 |     barrier.cluster.wait;\n"
           "      |     ^~~~~~~~~~~~~~~~~~~~\n"
           "t.ptx:85:5: note: block (1,0,0), warp 0, lanes 0-31: wait at barrier 1, where 32 of 64 "
           "threads have come\n"
           "   85 |     bar.sync 1, 64;\n"
           "      |     ^~~~~~~~~~~~~~\n",
           "... is stuck");
    st = launch("past", 2, 1, 2);
    eq_int(st, DEVICE_FAULT, "shared memory of a block that the cluster has not");
    eq_str(sim_errors(&s),
           "t.ptx:103:5: error: kernel 'past': load of 4 bytes at byte 16 of the shared memory of "
           "the cluster's block 7 (of 2 blocks with 0 bytes)\n"
           "  103 |     ld.shared::cluster.u32 %r1, [%r2];\n"
           "      |     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
           "kaio-run: note: block (0,0,0), thread (0,0,0)\n"
           "kaio-run: note: address 0x8000010\n",
           "... is a fault");
    st = launch("twice", 2, 32, 2);
    eq_int(st, DEVICE_FAULT, "arriving twice");
    ok(strstr(sim_errors(&s), "arrives at the cluster's barrier again"), "... is a fault");
    sim_end(&s);
}

/* ---- deadlocks ------------------------------------------------------------------------------- */

static const char deadlock_ptx[] = HEAD("sm_80") ".file 1 \"dead.yaml\"\n" ENTRY(
    "some", "    setp.lt.u32 %p1, %r0, 40;\n    .loc 1 12 3\n    @%p1 bar.sync 0;\n"
            "    @!%p1 bar.sync 1;\n")
    ENTRY("lanes", "    setp.lt.u32 %p1, %r0, 16;\n    @%p1 bra $low;\n"
                   "    .loc 1 20 5\n    bar.sync 0;\n    bra $end;\n"
                   "$low:\n    .loc 1 22 7\n    shfl.sync.idx.b32 %r1, %r0, 0, 31, -1;\n"
                   "$end:\n")
        ENTRY("count", "    setp.lt.u32 %p1, %r0, 32;\n    @%p1 bar.sync 3, 64;\n"
                       "    @!%p1 bar.sync 3, 96;\n")
    /* in every warp, each half waits at a barrier for the other */
    ENTRY("crossed", "    and.b32 %r2, %r0, 16;\n    setp.eq.u32 %p1, %r2, 0;\n"
                     "    @%p1 barrier.sync 4, 64;\n    @!%p1 barrier.sync 5, 64;\n")
    /* the lanes of a warp name different barriers in one instruction */
    ENTRY("apart", "    shr.u32 %r2, %r0, 3;\n    and.b32 %r2, %r2, 1;\n    add.u32 %r2, %r2, 7;\n"
                   "    barrier.sync %r2, 64;\n");

/* Threads that wait for what never happens. */
static const char livelock_ptx[] = HEAD("sm_80") ".file 1 \"live.yaml\"\n"
    /* a lock that is taken and not given back */
    ENTRY("held", "    .loc 1 7 9\n$try:\n    atom.global.cas.b32 %r2, [%rd0+65528], 0, 1;\n"
                  "    setp.ne.u32 %p1, %r2, 0;\n    @%p1 bra $try;\n    mov.u32 %r1, 1;\n")
    /* a grid barrier that one block never comes to */
    ENTRY("absent", "    mov.u32 %r2, %ctaid.x;\n    setp.eq.u32 %p1, %r2, 3;\n    @%p1 ret;\n"
                    "    setp.ne.u32 %p1, %r0, 0;\n    @%p1 bra $wait;\n"
                    "    red.release.gpu.global.add.u32 [%rd0+65532], 1;\n"
                    "$spin:\n    nanosleep.u32 20;\n"
                    "    ld.acquire.gpu.global.u32 %r3, [%rd0+65532];\n"
                    "    setp.lt.u32 %p2, %r3, 64;\n    .loc 1 31 5\n    @%p2 bra $spin;\n"
                    "$wait:\n    .loc 1 33 3\n    bar.sync 0;\n")
    /* a flag in shared memory that nobody sets, in some blocks */
    ENTRY("flag",
          "    .shared .b32 flag;\n    mov.u32 %r2, %ctaid.x;\n    setp.lt.u32 %p1, %r2, 21;\n"
          "    @%p1 ret;\n"
          "$spin:\n    ld.volatile.shared.u32 %r3, [flag];\n    setp.eq.u32 %p2, %r3, 0;\n"
          "    @%p2 bra $spin;\n")
    /* a queue of work is no livelock, though all that its loop does is to ask */
    ENTRY("queue", "$next:\n    atom.global.add.u32 %r2, [%rd0+65528], 1;\n"
                   "    setp.lt.u32 %p1, %r2, 500000;\n    @%p1 bra $next;\n    mov.u32 %r1, 1;\n");

static void livelocks(void)
{
    s = begin(livelock_ptx, 2);
    stuck("held", 33,
          "kaio-run: error: kernel 'held' is stuck: its threads go round in loops, and nothing "
          "changes\n"
          "t.ptx:15:5: note: block (0,0,0), warp 0, lanes 1-31: go round here\n"
          "   15 |     atom.global.cas.b32 %r2, [%rd0+65528], 0, 1;\n"
          "      |     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
          "kaio-run: note: live.yaml:7:9 is where this instruction comes from\n"
          "t.ptx:15:5: note: block (0,0,0), warp 1, lane 0: go round here\n"
          "   15 |     atom.global.cas.b32 %r2, [%rd0+65528], 0, 1;\n"
          "      |     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
          "kaio-run: note: live.yaml:7:9 is where this instruction comes from\n",
          "a lock that is kept");
    eq_int(launch("absent", 64, 64, 0), DEVICE_FAULT, "a block that does not come: a fault");
    eq_str(sim_errors(&s),
           "kaio-run: error: kernel 'absent' is stuck: its threads go round in loops, and nothing "
           "changes\n"
           "t.ptx:48:5: note: block (0,0,0), warp 0, lanes 1-31: wait at barrier 0 for lane 0 of "
           "their warp\n"
           "   48 |     bar.sync 0;\n"
           "      |     ^~~~~~~~~~\n"
           "kaio-run: note: live.yaml:33:3 is where this instruction comes from\n"
           "t.ptx:42:5: note: block (0,0,0), warp 0, lane 0: go round here\n"
           "   42 |     ld.acquire.gpu.global.u32 %r3, [%rd0+65532];\n"
           "      |     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
           "t.ptx:48:5: note: block (0,0,0), warp 1, lanes 0-31: wait at barrier 0, where 32 of 64 "
           "threads have come\n"
           "   48 |     bar.sync 0;\n"
           "      |     ^~~~~~~~~~\n"
           "kaio-run: note: live.yaml:33:3 is where this instruction comes from\n"
           "kaio-run: note: so do 62 more blocks\n",
           "... the report");
    eq_int(launch("flag", 64, 32, 0), DEVICE_FAULT, "a flag that is not set: a fault");
    ok(strstr(sim_errors(&s), "block (21,0,0), warp 0, lanes 0-31: go round here"),
       "... in the first block");
    expect("queue", 2, 64, want_1, "a loop over a queue of work ends");
    sim_end(&s);
}

static void deadlocks(void)
{
    s = begin(deadlock_ptx, 1);
    stuck("some", 96,
          "kaio-run: error: kernel 'some' is stuck: no thread of block (0,0,0) can go on\n"
          "t.ptx:15:5: note: block (0,0,0), warp 0, lanes 0-31: wait at barrier 0, where 32 of 96 "
          "threads have come\n"
          "   15 |     @%p1 bar.sync 0;\n"
          "      |     ^~~~~~~~~~~~~~~\n"
          "kaio-run: note: dead.yaml:12:3 is where this instruction comes from\n"
          "t.ptx:15:5: note: block (0,0,0), warp 1, lanes 0-7: wait at barrier 0 for lanes 8-31 of "
          "their warp\n"
          "   15 |     @%p1 bar.sync 0;\n"
          "      |     ^~~~~~~~~~~~~~~\n"
          "kaio-run: note: dead.yaml:12:3 is where this instruction comes from\n"
          "t.ptx:16:5: note: block (0,0,0), warp 1, lanes 8-31: wait at barrier 1 for lanes 0-7 of "
          "their warp\n"
          "   16 |     @!%p1 bar.sync 1;\n"
          "      |     ^~~~~~~~~~~~~~~~\n"
          "kaio-run: note: dead.yaml:12:3 is where this instruction comes from\n"
          "t.ptx:16:5: note: block (0,0,0), warp 2, lanes 0-31: wait at barrier 1, where 32 of 96 "
          "threads have come\n"
          "   16 |     @!%p1 bar.sync 1;\n"
          "      |     ^~~~~~~~~~~~~~~~\n"
          "kaio-run: note: dead.yaml:12:3 is where this instruction comes from\n",
          "a barrier for some of a warp");
    stuck("lanes", 32,
          "kaio-run: error: kernel 'lanes' is stuck: no thread of block (0,0,0) can go on\n"
          "t.ptx:35:5: note: block (0,0,0), warp 0, lanes 16-31: wait at barrier 0 for lanes 0-15 "
          "of their warp\n"
          "   35 |     bar.sync 0;\n"
          "      |     ^~~~~~~~~~\n"
          "kaio-run: note: dead.yaml:20:5 is where this instruction comes from\n"
          "t.ptx:39:5: note: block (0,0,0), warp 0, lanes 0-15: wait for lanes 16-31; their mask "
          "is 0xffffffff\n"
          "   39 |     shfl.sync.idx.b32 %r1, %r0, 0, 31, -1;\n"
          "      |     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
          "kaio-run: note: dead.yaml:22:7 is where this instruction comes from\n",
          "a shuffle whose lanes wait at a barrier");
    stuck("crossed", 128,
          "kaio-run: error: kernel 'crossed' is stuck: no thread of block (0,0,0) can go on\n"
          "t.ptx:76:5: note: block (0,0,0), warps 0-3, lanes 0-15: wait at barrier 4 for lanes "
          "16-31 of their warp\n"
          "   76 |     @%p1 barrier.sync 4, 64;\n"
          "      |     ^~~~~~~~~~~~~~~~~~~~~~~\n"
          "t.ptx:77:5: note: block (0,0,0), warps 0-3, lanes 16-31: wait at barrier 5 for lanes "
          "0-15 of their warp\n"
          "   77 |     @!%p1 barrier.sync 5, 64;\n"
          "      |     ^~~~~~~~~~~~~~~~~~~~~~~~\n",
          "the halves of warps wait for each other");
    stuck("apart", 64,
          "kaio-run: error: kernel 'apart' is stuck: no thread of block (0,0,0) can go on\n"
          "t.ptx:96:5: note: block (0,0,0), warps 0-1, lanes 0-7,16-23: wait at barrier 7 for "
          "lanes 8-15,24-31 of their warp\n"
          "   96 |     barrier.sync %r2, 64;\n"
          "      |     ^~~~~~~~~~~~~~~~~~~~\n"
          "t.ptx:96:5: note: block (0,0,0), warps 0-1, lanes 8-15,24-31: wait at barrier 8 for "
          "lanes 0-7,16-23 of their warp\n"
          "   96 |     barrier.sync %r2, 64;\n"
          "      |     ^~~~~~~~~~~~~~~~~~~~\n",
          "lanes name different barriers");
    stuck("count", 96,
          "t.ptx:58:5: error: kernel 'count': this barrier is already in use with another count of "
          "threads\n"
          "   58 |     @!%p1 bar.sync 3, 96;\n"
          "      |     ^~~~~~~~~~~~~~~~~~~~\n"
          "kaio-run: note: block (0,0,0), thread (32,0,0)\n",
          "one barrier, two counts");
    sim_end(&s);
}

int main(void)
{
    divergence();
    progress();
    barriers();
    lanes();
    clusters();
    deadlocks();
    livelocks();
    return tap_done();
}
