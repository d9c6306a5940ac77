/* mbarriers: every form of every instruction, in a block and across a cluster; what is said of
 * their misuse, and of threads that wait at one for ever. */
#include "sim_flight.h"

static uint32_t one(uint32_t i)
{
    (void)i;
    return 1;
}
static uint32_t seven(uint32_t i)
{
    (void)i;
    return 7;
}
static uint32_t zero(uint32_t i)
{
    (void)i;
    return 0;
}
static uint32_t left(uint32_t i)
{
    return 32 - i;
}
static uint32_t ten(uint32_t i)
{
    return i ? 0 : 10;
}
static uint32_t block0(uint32_t i)
{
    return i < 32 ? 5 : 0;
}

static const struct flight_run runs[] = {
    {"arrive, and test_wait for the state",
     INIT(64) ARRIVE "$again:\n    mbarrier.test_wait.shared.b64 %p1, [bar], %rd2;\n"
                     "    @!%p1 bra $again;\n    mov.u32 %r1, 1;\n",
     64, 0, one},
    {"try_wait for the state, with scope and order",
     INIT(64) "    mbarrier.arrive.release.cta.shared::cta.b64 %rd2, [bar];\n$again:\n"
              "    mbarrier.try_wait.acquire.cta.shared::cta.b64 %p1, [bar], %rd2;\n"
              "    @!%p1 bra $again;\n    mov.u32 %r1, 1;\n",
     64, 0, one},
    {"the forms of test_wait and try_wait, when a phase is complete",
     INIT(64) "    mbarrier.arrive.relaxed.cluster.shared::cta.b64 %rd2, [bar];\n" WAIT(
         0) "    mbarrier.test_wait.parity.relaxed.cluster.shared::cta.b64 %p2, [bar], 0;\n"
            "    mbarrier.test_wait.acquire.cluster.shared.b64 %p3, [bar], %rd2;\n"
            "    mbarrier.try_wait.shared.b64 %p4, [bar], %rd2, 1000;\n"
            "    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p5, [bar], 0, "
            "0x989680;\n"
            "    mbarrier.test_wait.parity.shared.b64 %p6, [bar], 1;\n"
            "    and.pred %p2, %p2, %p3;\n    and.pred %p4, %p4, %p5;\n    and.pred %p2, %p2, "
            "%p4;\n"
            "    not.pred %p6, %p6;\n    and.pred %p2, %p2, %p6;\n    selp.u32 %r1, 1, 0, %p2;\n",
     64, 0, one},
    {"arrivals with a count, and without a state",
     INIT(192) "    mbarrier.arrive.shared.b64 _, [bar], 2;\n"
               "    mbarrier.arrive.release.cluster.shared::cta.b64 _, [%r8];\n" WAIT(
                   0) "    mov.u32 %r1, 1;\n",
     64, 0, one},
    {"arrive.noComplete counts",
     INIT(192) "    mbarrier.arrive.noComplete.shared.b64 %rd2, [bar], 2;\n" ARRIVE WAIT(
         0) "    mov.u32 %r1, 1;\n",
     64, 0, one},
    {"arrive_drop: half of the threads take no part in the next phase",
     INIT(64) "    and.b32 %r2, %r0, 1;\n    setp.eq.u32 %p2, %r2, 1;\n    mov.u32 %r1, 1;\n"
              "    @%p2 mbarrier.arrive_drop.shared.b64 %rd2, [bar];\n    @!%p2 bra $odd;\n"
              "    bra $both;\n$odd:\n" ARRIVE "$both:\n" WAIT(
                  0) "    @%p2 bra $end;\n" ARRIVE "$one:\n    mbarrier.try_wait.parity.shared.b64 "
                     "%p1, [bar], 1;\n    @!%p1 bra $one;\n"
                     "$end:\n",
     64, 0, one},
    {"arrive_drop with a count and no state",
     INIT(96) "    @%p0 mbarrier.arrive_drop.release.cta.shared::cta.b64 _, [bar], 32;\n" ARRIVE
         WAIT(0) ARRIVE WAIT(1) "    mov.u32 %r1, 1;\n",
     64, 0, one},
    {"a phase waits for bytes, too: expect_tx and complete_tx",
     INIT(64) "    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;\n    bar.sync "
              "0;\n" ARRIVE "    bar.sync 0;\n    mbarrier.test_wait.shared.b64 %p2, [bar], %rd2;\n"
              "    bar.sync 0;\n    mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [bar], "
              "16;\n"
              "    bar.sync 0;\n    mbarrier.test_wait.shared.b64 %p3, [bar], %rd2;\n"
              "    not.pred %p2, %p2;\n    and.pred %p2, %p2, %p3;\n    selp.u32 %r1, 1, 0, %p2;\n",
     64, 0, one},
    {"bytes may come before they are expected",
     INIT(64) "    mbarrier.complete_tx.shared.b64 [bar], 8;\n    bar.sync 0;\n"
              "    mbarrier.arrive.expect_tx.shared.b64 %rd2, [bar], 8;\n" WAIT(
                  0) "    mov.u32 %r1, 1;\n",
     64, 0, one},
    {"... and the last to be expected completes the phase",
     INIT(64) "    mbarrier.complete_tx.shared.b64 [bar], 8;\n    bar.sync 0;\n" ARRIVE
              "    mbarrier.expect_tx.shared.b64 [bar], 8;\n" WAIT(0) "    mov.u32 %r1, 1;\n",
     64, 0, one},
    {"arrive.expect_tx without a state",
     INIT(64) "    mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [bar], 4;\n"
              "    mbarrier.complete_tx.shared.b64 [bar], 4;\n" WAIT(0) "    mov.u32 %r1, 1;\n",
     64, 0, one},
    {"pending_count: the arrivals that were missing",
     INIT(32) ARRIVE "    mbarrier.pending_count.b64 %r1, %rd2;\n", 32, 0, left, 0, FLIGHT_ORDER},
    {"... under a guard",
     INIT(32) ARRIVE "    @!%p0 mbarrier.pending_count.b64 %r1, %rd2;\n"
                     "    @%p0 mov.u32 %r1, 32;\n",
     32, 0, left, 0, FLIGHT_ORDER},
    {"an mbarrier is ended and made again with another count",
     INIT(64) ARRIVE WAIT(
         0) "    bar.sync 0;\n    @%p0 mbarrier.inval.shared.b64 [bar];\n"
            "    @%p0 mbarrier.init.shared.b64 [bar], 128;\n    bar.sync 0;\n" ARRIVE
            "    mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;\n" ARRIVE
            "$last:\n    mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;\n    @!%p1 bra $last;\n"
            "    selp.u32 %r1, 0, 1, %p2;\n",
     64, 0, one},
    {"the time of a try_wait is over when nothing else can move",
     INIT(64) "    mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;\n"
              "    selp.u32 %r1, 3, 7, %p1;\n",
     64, 0, seven},
    {"... with a limit, and a state",
     INIT(65) ARRIVE "    mbarrier.try_wait.shared.b64 %p1, [bar], %rd2, 20;\n"
                     "    selp.u32 %r1, 3, 7, %p1;\n",
     64, 0, seven},
    {"who gives up after ten tries does so",
     INIT(33) "    @!%p0 bra $wait;\n$again:\n    mbarrier.try_wait.parity.shared.b64 %p1, [bar], "
              "0;\n"
              "    @%p1 bra $done;\n    add.u32 %r1, %r1, 1;\n    setp.lt.u32 %p2, %r1, 10;\n"
              "    @%p2 bra $again;\n    mbarrier.arrive.shared.b64 _, [bar], 33;\n"
              "$wait:\n" WAIT(0) "$done:\n",
     32, 0, ten},
    {"addresses of the generic space",
     "    cvta.shared.u64 %rd3, %rd4;\n    mov.u64 %rd4, bar;\n    cvta.shared.u64 %rd3, %rd4;\n"
     "    @%p0 mbarrier.init.b64 [%rd3+8], 64;\n    bar.sync 0;\n"
     "    mbarrier.arrive.b64 %rd2, [%rd3+8];\n$again:\n"
     "    mbarrier.try_wait.b64 %p1, [%rd3+8], %rd2;\n    @!%p1 bra $again;\n"
     "    bar.sync 0;\n    @%p0 mbarrier.inval.b64 [%rd3+8];\n    mov.u32 %r1, 1;\n",
     64, 0, one},
    {"lanes that wait at different mbarriers",
     "    and.b32 %r2, %r0, 3;\n    mad.lo.u32 %r3, %r2, 8, %r8;\n    setp.lt.u32 %p2, %r0, 4;\n"
     "    @%p2 mbarrier.init.shared.b64 [%r3], 8;\n    bar.sync 0;\n"
     "    mbarrier.arrive.shared.b64 %rd2, [%r3];\n$again:\n"
     "    mbarrier.try_wait.shared.b64 %p1, [%r3], %rd2;\n    @!%p1 bra $again;\n    mov.u32 %r1, "
     "1;\n",
     32, 0, one},
    {"a lane that waits for what another of its warp does behind its own wait",
     "    @%p0 mbarrier.init.shared.b64 [bar], 31;\n    @%p0 mbarrier.init.shared.b64 [bar+8], 1;\n"
     "    bar.warp.sync -1;\n    selp.u32 %r2, 0, 8, %p0;\n    add.u32 %r3, %r8, %r2;\n"
     "    @%p0 mbarrier.arrive.shared.b64 _, [bar+8];\n$again:\n"
     "    mbarrier.try_wait.parity.shared.b64 %p1, [%r3], 0;\n    @!%p1 bra $again;\n"
     "    @!%p0 mbarrier.arrive.shared.b64 _, [bar];\n    mov.u32 %r1, 1;\n",
     32, 0, one},
    {"arrivals from another block of the cluster",
     INIT(96) CLUSTER MAPA
     "    @%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];\n"
     "    @%p2 mbarrier.arrive.shared::cluster.b64 _, [%r7], 2;\n    @%p2 bra $end;\n" WAIT(
         0) "    mov.u32 %r1, 5;\n$end:\n",
     32, 2, block0},
    {"all other forms that reach another block",
     INIT(161) CLUSTER MAPA
     "    @!%p2 bra $own;\n    mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r7], 8;\n"
     "    mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r7], 4;\n"
     "    mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%r7];\n"
     "    mbarrier.arrive_drop.relaxed.cluster.shared::cluster.b64 _, [%r7], 3;\n"
     "    mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r7], 12;\n    bra $end;\n"
     "$own:\n    @%p0 mbarrier.arrive.shared.b64 _, [bar];\n" WAIT(
         0) "    mov.u32 %r1, 5;\n$end:\n" CLUSTER,
     32, 2, block0},
    {"what is there for other threads or kernels only",
     "    fence.proxy.async;\n    fence.proxy.async.global;\n    fence.proxy.async.shared::cta;\n"
     "    fence.proxy.async.shared::cluster;\n    fence.proxy.alias;\n"
     "    fence.mbarrier_init.release.cluster;\n    fence.acq_rel.cluster;\n"
     "    griddepcontrol.launch_dependents;\n    griddepcontrol.wait;\n    mov.u32 %r1, 1;\n",
     32, 0, one},
    {"special registers of clusters",
     "    mov.u32 %r2, %cluster_nctarank;\n    mov.u32 %r3, %nclusterid.x;\n"
     "    mov.u32 %r4, %cluster_ctaid.x;\n    mov.pred %p1, %is_explicit_cluster;\n"
     "    mov.u32 %r5, %aggr_smem_size;\n    mov.u32 %r6, %total_smem_size;\n"
     "    sub.u32 %r1, %r2, 2;\n    add.u32 %r1, %r1, %r3;\n    sub.u32 %r4, %r4, %r9;\n"
     "    add.u32 %r1, %r1, %r4;\n    @!%p1 add.u32 %r1, %r1, 64;\n    sub.u32 %r5, %r5, %r6;\n"
     "    add.u32 %r1, %r1, %r5;\n",
     32, 2, one},
    {"without a cluster, there is none",
     "    mov.pred %p1, %is_explicit_cluster;\n    selp.u32 %r1, 1, 0, %p1;\n", 32, 0, zero},
};

static const struct flight_fault faults[] = {
    {"use before init", ARRIVE,
     "there is no mbarrier at element 0 of 'bar' (shared b64[4]): mbarrier.init has not made one",
     "mbarrier.arrive", 0},
    {"a wait before init", "    mbarrier.test_wait.parity.shared.b64 %p1, [bar+8], 0;\n",
     "there is no mbarrier at element 1 of 'bar'", "mbarrier.test_wait", 0},
    {"use after inval",
     INIT(32) "    @%p0 mbarrier.inval.shared.b64 [bar];\n    bar.sync 0;\n" ARRIVE,
     "mbarrier.inval has ended it", "mbarrier.arrive", 0},
    {"inval of nothing", "    @%p0 mbarrier.inval.shared.b64 [bar];\n", "there is no mbarrier at",
     "mbarrier.inval", 0},
    {"init twice", "    mbarrier.init.shared.b64 [bar], 1;\n",
     "there is already an mbarrier at element 0 of 'bar'", "mbarrier.init", 0},
    {"a store over an mbarrier", INIT(32) "    st.shared.b32 [bar+4], %r0;\n" ARRIVE,
     "the mbarrier at element 0 of 'bar' (shared b64[4]) was overwritten by other data",
     "mbarrier.arrive", 0},
    {"more arrivals than expected", INIT(8) "    @%p0 mbarrier.arrive.shared.b64 _, [bar], 9;\n",
     "9 more arrivals at the mbarrier at element 0 of 'bar' (shared b64[4]), whose phase waits for "
     "8 of 8",
     "mbarrier.arrive", 0},
    {"a count of none", "    mov.u32 %r2, 0;\n    @%p0 mbarrier.init.shared.b64 [bar], %r2;\n",
     "a count of 0 at the mbarrier at element 0 of 'bar' (shared b64[4]); 1 to 1048575 can be",
     "mbarrier.init", 0},
    {"a count of too many",
     "    mov.u32 %r2, 1048576;\n    @%p0 mbarrier.init.shared.b64 [bar], %r2;\n",
     "a count of 1048576 at the mbarrier", "mbarrier.init", 0},
    {"arrivals with a count of none",
     INIT(32) "    mov.u32 %r2, 0;\n    mbarrier.arrive.shared.b64 _, [bar], %r2;\n",
     "a count of 0 at the mbarrier", "mbarrier.arrive", 0},
    {"more bytes than are counted",
     INIT(32) "    mov.u32 %r2, 524288;\n    mbarrier.expect_tx.shared.b64 [bar], %r2;\n",
     "524288 bytes at the mbarrier at element 0 of 'bar' (shared b64[4]), which waits for 524288: "
     "it counts to 1048575",
     "mbarrier.expect_tx", 0},
    {"more bytes at once",
     INIT(
         32) "    mov.u32 %r2, 1048576;\n    mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r2;\n",
     "1048576 bytes at the mbarrier", "mbarrier.arrive.expect_tx", 0},
    {"more bytes than are counted, that come",
     INIT(32) "    mov.u32 %r2, 600000;\n    mbarrier.complete_tx.shared.b64 [bar], %r2;\n",
     "600000 bytes at the mbarrier at element 0 of 'bar' (shared b64[4]), which waits for -600000",
     "mbarrier.complete_tx", 0},
    {"noComplete that completes",
     INIT(8) "    @%p0 mbarrier.arrive.noComplete.shared.b64 %rd2, [bar], 8;\n",
     "mbarrier.arrive.noComplete completes the phase of the mbarrier at element 0 of 'bar'",
     "mbarrier.arrive.noComplete", 0},
    {"more are dropped than take part",
     INIT(2) "    @%p0 mbarrier.arrive_drop.shared.b64 _, [bar];\n"
             "    @%p0 mbarrier.arrive_drop.shared.b64 _, [bar];\n"
             "    @%p0 mbarrier.arrive_drop.shared.b64 _, [bar];\n",
     "1 more arrivals at the mbarrier at element 0 of 'bar' (shared b64[4]), whose phase waits for "
     "0 of 0",
     "mbarrier.arrive_drop", 0},
    {"misaligned", "    @%p0 mbarrier.init.shared.b64 [bar+4], 1;\n",
     "store of 8 bytes at byte 4 of 'bar' (shared b64[4]), which is misaligned", "mbarrier.init",
     0},
    {"outside of shared memory", "    @%p0 mbarrier.init.shared.b64 [bar+65536], 1;\n",
     "store of 8 bytes at byte", "mbarrier.init", 0},
    {"not in shared memory", "    @%p0 mbarrier.init.b64 [%rd9], 1;\n",
     "store of 8 bytes at element 0 of 'x' (u32[4096], 4096 elements), which is not in shared "
     "memory",
     "mbarrier.init", 0},
    {"a parity that is none",
     INIT(32) "    mov.u32 %r2, 2;\n    mbarrier.try_wait.parity.shared.b64 %p1, [bar], %r2;\n",
     "the parity of a phase is 0 or 1, not 2", "mbarrier.try_wait", 0},
    {"another block's mbarrier, where only the own may be",
     INIT(32) CLUSTER "    xor.b32 %r9, %r9, 1;\n    mapa.shared::cluster.u32 %r7, %r8, %r9;\n"
                      "    mbarrier.arrive.shared::cta.b64 %rd2, [%r7];\n",
     "and it must be in the thread's own block", "mbarrier.arrive", 2},
    {"an mbarrier that the other block has not made",
     CLUSTER MAPA "    @%p2 mbarrier.arrive.shared::cluster.b64 _, [%r7];\n" CLUSTER,
     "there is no mbarrier at element 0 of 'bar' (shared b64[4]), in block 0 of the cluster",
     "mbarrier.arrive", 2},
    {"too few arrivals", INIT(33) ARRIVE WAIT(0),
     "lanes 0-31: wait for the phase of parity 0 of the mbarrier at element 0 of 'bar' (shared "
     "b64[4]), which lacks 1 of 33 arrivals",
     "mbarrier.try_wait.parity", 0},
    {"bytes that do not come",
     INIT(33) "    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 100;\n" WAIT(0),
     "which lacks 1 of 33 arrivals and 3200 bytes", "mbarrier.try_wait.parity", 0},
    {"bytes that nobody expects",
     INIT(32) "    @%p0 mbarrier.complete_tx.shared.b64 [bar], 64;\n" ARRIVE WAIT(0),
     "which lacks mbarrier.expect_tx of 64 bytes that have come", "mbarrier.try_wait.parity", 0},
    {"the wrong parity", INIT(32) ARRIVE WAIT(0) WAIT(1),
     "wait for the phase of parity 1 of the mbarrier at element 0 of 'bar' (shared b64[4]), which "
     "lacks 32 of 32 arrivals",
     "mbarrier.try_wait.parity", 0},
    {"a wait for ever by polling",
     INIT(33) ARRIVE
     "$again:\n    mbarrier.test_wait.shared.b64 %p1, [bar], %rd2;\n    @!%p1 bra $again;\n",
     "is stuck: its threads go round in loops, and nothing changes", "mbarrier.test_wait", 0},
    {"... says where, and for what",
     INIT(33) ARRIVE
     "$again:\n    mbarrier.test_wait.shared.b64 %p1, [bar], %rd2;\n    @!%p1 bra $again;\n",
     "wait for the phase of parity 0 of the mbarrier at element 0 of 'bar' (shared b64[4]), which "
     "lacks 1 of 33 arrivals",
     "mbarrier.test_wait", 0},
    {"blocks that wait for each other", INIT(33) CLUSTER ARRIVE WAIT(0),
     "is stuck: no thread of the cluster of block (0,0,0) can go on", "mbarrier.try_wait", 2},
    {"a wait for ever in blocks that may learn from each other",
     INIT(33) "    atom.global.add.u32 %r1, [%rd0], 0;\n" ARRIVE WAIT(0),
     "is stuck: no thread of block (0,0,0) can go on", "mbarrier.try_wait", 0},
    {"... says for what, too", INIT(33) "    atom.global.add.u32 %r1, [%rd0], 0;\n" ARRIVE WAIT(0),
     "lacks 1 of 33 arrivals", "mbarrier.try_wait", 0},
    {"one warp waits at an mbarrier and the others at a barrier",
     INIT(32) "    @%p0 mbarrier.arrive.shared.b64 _, [bar];\n    @%p0 bra $no;\n" WAIT(
         0) "$no:\n    bar.sync 1;\n",
     "lacks 31 of 32 arrivals", "mbarrier.try_wait", 0},
};

enum { RUNS = sizeof runs / sizeof *runs, FAULTS = sizeof faults / sizeof *faults };

int main(int argc, char **argv)
{
    int status;
    struct arena *a = arena_new();
    const char *module = flight_start(argc, argv, a, runs, RUNS, faults, FAULTS, &status);
    if (!module)
        return status;
    flight_right((struct device_options){.threads = 1, .check = DEVICE_CHECK_MEMORY, .seed = 7},
                 module, runs, RUNS, ", with a seed");
    flight_wrong(module, faults, FAULTS, 0);
    arena_free(a);
    return tap_done();
}
