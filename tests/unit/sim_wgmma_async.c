/* When products by wgmma take effect, who has to execute them, and setmaxnreg: small kernels and
 * what they must give or be told.
 *
 *     sim_wgmma_async                    on the simulator, as TAP
 *     sim_wgmma_async --device=cuda      on a GPU, those that are right whenever products take
 *                                        effect
 */
#include "sim_judged.h"

/* 64 x 16 ones of f16 at tile, 8 x 16 ones at tile + 2048; %rd1, %rd2: their descriptors. %f0 to
 * %f3, the sums, are 5, %f4 to %f7 are 7; %r0: the thread; %r2: its warp; %p0: true; %p1: the
 * thread is in warp 0. The result is %f0. */
#define HEAD                                                                                       \
    "    .reg .pred %p<8>;\n    .reg .b32 %r<24>, %a<4>;\n    .reg .b64 %rd<16>;\n"                \
    "    .reg .f32 %f<16>;\n    .shared .align 1024 .b8 tile[4096];\n"                             \
    "    ld.param.u64 %rd0, [y];\n    mov.u32 %r0, %tid.x;\n    shr.u32 %r2, %r0, 5;\n"            \
    "    setp.lt.u32 %p0, %r0, 2000;\n    setp.eq.u32 %p1, %r2, 0;\n    mov.u32 %r3, tile;\n"      \
    "    mad.lo.u32 %r4, %r0, 4, %r3;\n    mov.u32 %r5, 0x3c003c00;\n    mov.u32 %r6, "            \
    "0;\n$fill:\n"                                                                                 \
    "    st.shared.b32 [%r4], %r5;\n    add.u32 %r4, %r4, 512;\n    add.u32 %r6, %r6, 1;\n"        \
    "    setp.lt.u32 %p2, %r6, 5;\n    @%p2 bra $fill;\n    fence.proxy.async;\n    bar.sync 0;\n" \
    "    shr.u32 %r4, %r3, 4;\n    cvt.u64.u32 %rd1, %r4;\n"                                       \
    "    add.u64 %rd2, %rd1, 0x1000080080;\n    add.u64 %rd1, %rd1, 0x1000080000;\n"               \
    "    mov.f32 %f0, 0f40a00000;\n    mov.f32 %f1, %f0;\n    mov.f32 %f2, %f0;\n"                 \
    "    mov.f32 %f3, %f0;\n    mov.f32 %f4, 0f40e00000;\n    mov.f32 %f5, %f4;\n"                 \
    "    mov.f32 %f6, %f4;\n    mov.f32 %f7, %f4;\n    mov.b32 %a0, %r5;\n    mov.b32 %a1, %r5;\n" \
    "    mov.b32 %a2, %r5;\n    mov.b32 %a3, %r5;\n"
#define TAIL           "    mad.wide.u32 %rd0, %r0, 4, %rd0;\n    st.global.f32 [%rd0], %f0;\n    ret;\n"
#define FENCE          "    wgmma.fence.sync.aligned;\n"
#define COMMIT         "    wgmma.commit_group.sync.aligned;\n"
#define WAIT0          "    wgmma.wait_group.sync.aligned 0;\n"
#define WAIT1          "    wgmma.wait_group.sync.aligned 1;\n"
#define MMA            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
#define PRODUCT        "    " MMA "{%f0, %f1, %f2, %f3}, %rd1, %rd2, 1, 1, 1, 0, 0;\n"
#define FROM_REGISTERS "    " MMA "{%f0, %f1, %f2, %f3}, {%a0, %a1, %a2, %a3}, %rd2, 1, 1, 1, 0;\n"
#define NEGATED        "    " MMA "{%f0, %f1, %f2, %f3}, %rd1, %rd2, 1, -1, -1, 0, 0;\n"
#define SECOND         "    " MMA "{%f4, %f5, %f6, %f7}, %rd1, %rd2, 1, 1, 1, 0, 0;\n"
#define TWOS           /* B becomes 2 */                                                          \
    "    mov.u32 %r5, 0x40004000;\n    and.b32 %r7, %r0, 31;\n    mad.lo.u32 %r7, %r7, 4, %r3;\n" \
    "    st.shared.b32 [%r7+2048], %r5;\n    st.shared.b32 [%r7+2176], %r5;\n"
/* Warps but the first come later. */
#define DAWDLE                                                                        \
    "    mov.u32 %r8, 0;\n$dawdle:\n    @%p1 bra $there;\n    add.u32 %r8, %r8, 1;\n" \
    "    setp.lt.u32 %p3, %r8, 9999;\n    @%p3 bra $dawdle;\n$there:\n"

static const struct run {
    const char *what, *body;
    float want;
    bool late; /* where everything is as late as it may be */
    const char *directives;
    uint32_t threads;
    bool unwaited; /* a finding under checks */
} runs[] = {
    {"a product is added", FENCE PRODUCT COMMIT WAIT0, 21},
    {"without scale-d it replaces the sums",
     FENCE "    " MMA "{%f0, %f1, %f2, %f3}, %rd1, %rd2, 0, 1, 1, 0, 0;\n" COMMIT WAIT0, 16},
    {"scale-d as a predicate",
     FENCE "    " MMA "{%f0, %f1, %f2, %f3}, %rd1, %rd2, %p0, -1, 1, 0, 0;\n" COMMIT WAIT0, -11},
    {"scale-d as a predicate that is false",
     FENCE "    " MMA "{%f0, %f1, %f2, %f3}, %rd1, %rd2, !%p0, 1, -1, 0, 0;\n" COMMIT WAIT0, -16},
    {"A in registers",
     FENCE "    " MMA
           "{%f0, %f1, %f2, %f3}, {%a0, %a1, %a2, %a3}, %rd2, 1, 1, 1, 0;\n" COMMIT WAIT0,
     21},
    /* three of the same text are one to ptxas 13.0 */
    {"products on the same sums follow each other",
     FENCE PRODUCT FROM_REGISTERS COMMIT NEGATED COMMIT WAIT0, 53},
    {"a predicated product that nobody executes",
     FENCE "    @!%p0 " MMA "{%f0, %f1, %f2, %f3}, %rd1, %rd2, 1, 1, 1, 0, 0;\n" COMMIT WAIT0, 5},
    {"sums are what they were until the wait",
     FENCE PRODUCT COMMIT "    mov.f32 %f8, %f0;\n" WAIT0 "    mov.f32 %f0, %f8;\n", 5, true},
    {"shared memory is read at the wait", FENCE PRODUCT COMMIT TWOS WAIT0, 37, true},
    {"registers with A are read at the wait",
     FENCE "    " MMA "{%f0, %f1, %f2, %f3}, {%a0, %a1, %a2, %a3}, %rd2, 1, 1, 1, 0;\n" COMMIT
           "    mov.u32 %a0, 0x40004000;\n    mov.u32 %a2, %a0;\n    mov.u32 %a1, %a0;\n"
           "    mov.u32 %a3, %a0;\n" WAIT0,
     37, true},
    {"a wait waits for what has been committed",
     FENCE PRODUCT WAIT0 "    mov.f32 %f8, %f0;\n" COMMIT WAIT0 "    mov.f32 %f0, %f8;\n", 5, true},
    {"a wait leaves the groups that it may leave",
     FENCE PRODUCT COMMIT SECOND COMMIT WAIT1 "    add.f32 %f0, %f0, %f4;\n    bar.sync 0;\n" WAIT0,
     28, true},
    {"and completes those before",
     FENCE PRODUCT COMMIT SECOND COMMIT WAIT1 "    mov.f32 %f8, %f0;\n" WAIT0
                                              "    mov.f32 %f0, %f8;\n",
     21},
    {"what nothing waits for leaves the sums as they were", FENCE SECOND COMMIT, 5,
     .unwaited = true},
    {"a warp that has waited may change what the others' products read",
     DAWDLE FENCE PRODUCT COMMIT WAIT0 TWOS, 21},
    {"setmaxnreg hands registers from one warpgroup to another",
     "    setp.lt.u32 %p4, %r0, 128;\n    @%p4 bra $less;\n"
     "    setmaxnreg.inc.sync.aligned.u32 232;\n    bra $go;\n$less:\n"
     "    setmaxnreg.dec.sync.aligned.u32 40;\n$go:\n" FENCE PRODUCT COMMIT WAIT0,
     21, false, ".maxnreg 136", 256},
    {"setmaxnreg.inc to what there is already",
     "    setmaxnreg.inc.sync.aligned.u32 160;\n" FENCE PRODUCT COMMIT WAIT0, 21, false,
     ".maxnreg 160"},
    {"setmaxnreg where the number of registers is not known",
     "    setmaxnreg.inc.sync.aligned.u32 256;\n" FENCE PRODUCT COMMIT WAIT0, 21},
};
enum { RUNS = sizeof runs / sizeof *runs };

static const struct fault {
    const char *what, *body, *find;
    uint32_t threads;
    const char *directives;
} faults[] = {
    {"a warpgroup with three warps", FENCE PRODUCT COMMIT WAIT0,
     "is not in a warpgroup, four warps of which the first is a multiple of 4: launch a "
     "multiple of 128 threads a block, not 96",
     96},
    {"lanes with descriptors of their own",
     "    cvt.u64.u32 %rd3, %r0;\n    add.u64 %rd1, %rd1, %rd3;\n" FENCE PRODUCT COMMIT WAIT0,
     "lanes of a warp give this different descriptors or predicates"},
    {"lanes with a scale-d of their own",
     "    setp.lt.u32 %p4, %r0, 7;\n" FENCE "    " MMA
     "{%f0, %f1, %f2, %f3}, %rd1, %rd2, %p4, 1, 1, 0, 0;\n" COMMIT WAIT0,
     "lanes of a warp give this different descriptors or predicates"},
    {"a descriptor of another architecture",
     "    or.b64 %rd2, %rd2, 0x400000000000;\n" FENCE PRODUCT COMMIT WAIT0,
     "descriptor 0x0000401000080080 has bits set that must be 0"},
    {"a matrix that leaves shared memory",
     "    add.u64 %rd2, %rd2, 0x71;\n" FENCE PRODUCT COMMIT WAIT0, "load of 16 bytes at"},
    {"part of a warp",
     "    setp.lt.u32 %p4, %r0, 7;\n    @%p4 bra $out;\n" FENCE PRODUCT COMMIT WAIT0 "$out:\n",
     "and all 32 must do it together"},
    {"a warp with another matrix", "    @%p1 add.u64 %rd1, %rd1, 2;\n" FENCE PRODUCT COMMIT WAIT0,
     "has executed something else here, or with other operands"},
    {"a warp that executes less", "    @%p1 bra $skip;\n" FENCE PRODUCT COMMIT WAIT0 "$skip:\n",
     "the warps of a warpgroup must execute the same"},
    {"a warp that executes more",
     FENCE PRODUCT COMMIT WAIT0 "    @!%p1 bra $skip;\n" FENCE PRODUCT COMMIT "$skip:\n",
     "has exited"},
    {"a warp that comes when the others have been waited for",
     "    @%p1 bar.sync 1, 128;\n" FENCE PRODUCT COMMIT WAIT0 "    @!%p1 bar.sync 1, 128;\n",
     "warps 1-3, lanes 0-31: wait for warp 0 of their warpgroup to commit what is waited for"},
    {"registers that nobody releases", "    setmaxnreg.inc.sync.aligned.u32 160;\n",
     "wait for 1024 registers, of which other warps have released 0 with setmaxnreg.dec", 128,
     ".maxnreg 128"},
    {"too few registers released",
     "    setp.lt.u32 %p4, %r0, 128;\n    @%p4 bra $less;\n"
     "    setmaxnreg.inc.sync.aligned.u32 240;\n    bra $go;\n$less:\n"
     "    setmaxnreg.dec.sync.aligned.u32 120;\n$go:\n",
     "with setmaxnreg.dec", 256, ".maxntid 256, 1, 1\n.minnctapersm 2"},
    {"registers that .dec does not have", "    setmaxnreg.dec.sync.aligned.u32 160;\n",
     "each thread has 128 registers, and this is to leave it 160", 128, ".maxnreg 128"},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static void entry(struct buf *b, const char *kind, int i, const char *directives, const char *body)
{
    buf_printf(b, ".visible .entry %s%d(.param .u64 y)\n%s%s{\n%s%s%s}\n", kind, i,
               directives ? directives : "", directives ? "\n" : "", HEAD, body, TAIL);
}

static const char *module_text(struct arena *a, int nfault)
{
    struct buf b = buf_in(a);
    buf_puts(&b, ".version 8.0\n.target sm_90a\n.address_size 64\n");
    for (int i = 0; i < RUNS; i++)
        entry(&b, "run", i, runs[i].directives, runs[i].body);
    for (int i = 0; i < nfault; i++)
        entry(&b, "fault", i, faults[i].directives, faults[i].body);
    return buf_text(&b);
}

struct on {
    struct arena *arena;
    struct diags *d;
    const struct device_ops *ops;
    struct device *dev;
};

static struct on begin(const struct device_ops *ops, struct device_options options,
                       const char *text)
{
    struct on on = {.arena = arena_new(), .ops = ops};
    on.d = diags_new(on.arena);
    const struct source *src = source_new(on.arena, "test.ptx", text, strlen(text));
    if (ops->count(on.d) > 0 && ops->open(on.arena, 0, &options, &on.dev, on.d) == DEVICE_OK &&
        ops->load(on.dev, src, on.d) != DEVICE_OK)
        abort();
    return on;
}

static void end(struct on *on)
{
    on->ops->close(on->dev);
    arena_free(on->arena);
}

static const char *errors_of(struct on *on)
{
    struct buf b = buf_in(on->arena);
    diags_format(on->d, "sim_wgmma_async", false, &b);
    on->d = diags_new(on->arena);
    return buf_text(&b);
}

static enum device_status go(struct on *on, const char *name, uint32_t threads, float y[256])
{
    const struct device_label label = {.name = "y", .type = "f32[256]"};
    uint64_t at = 0;
    memset(y, 0, 256 * sizeof *y);
    if (on->ops->alloc(on->dev, 256 * sizeof *y, &label, &at, on->d) != DEVICE_OK)
        abort();
    const void *const arg[] = {&at};
    const size_t bytes[] = {8};
    const struct device_launch l = {.entry = name,
                                    .grid = {1, 1, 1},
                                    .block = {threads, 1, 1},
                                    .args = arg,
                                    .arg_bytes = bytes,
                                    .narg = 1};
    struct device_stats stats;
    const enum device_status st = on->ops->launch(on->dev, &l, 1, &stats, on->d);
    on->ops->read(on->dev, y, at, 256 * sizeof *y, on->d);
    on->ops->release(on->dev, at);
    return st;
}

static bool check_runs(const struct device_ops *ops, const char *text,
                       struct device_options options, const char *how)
{
    struct on on = begin(ops, options, text);
    if (!on.dev)
        return false;
    for (int i = 0; i < RUNS; i++) {
        const uint32_t threads = runs[i].threads ? runs[i].threads : 128;
        float y[256];
        unsigned bad = 0;
        if (runs[i].late && (options.seed || options.check || ops != &sim_device))
            continue;
        const enum device_status st = go(&on, arena_printf(on.arena, "run%d", i), threads, y);
        const char *errors = errors_of(&on);
        for (uint32_t k = 0; k < threads; k++)
            bad += y[k] != runs[i].want;
        const bool found = runs[i].unwaited && options.check;
        const bool fine = found ? strstr(errors, "no wgmma.wait_group behind it") != NULL
                                : st == DEVICE_OK;
        ok(fine && !bad, "%s%s", runs[i].what, how);
        if (!fine || bad)
            tap_note("%u wrong, %g not %g; %s", bad, (double)y[0], (double)runs[i].want, errors);
    }
    end(&on);
    return true;
}

static void check_faults(const char *text)
{
    struct on on = begin(&sim_device, (struct device_options){.threads = 2}, text);
    for (int i = 0; i < FAULTS; i++) {
        float y[256];
        const enum device_status st = go(&on, arena_printf(on.arena, "fault%d", i),
                                         faults[i].threads ? faults[i].threads : 128, y);
        const char *errors = errors_of(&on);
        ok(st == DEVICE_FAULT && strstr(errors, faults[i].find), "%s", faults[i].what);
        if (st != DEVICE_FAULT || !strstr(errors, faults[i].find))
            tap_note("status %d: %s", (int)st, errors);
    }
    end(&on);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--device=cpu") == 0)
        argc = 1;
    struct arena *arena = arena_new();
    const char *right = module_text(arena, 0), *text = module_text(arena, FAULTS);
    const struct device_options plain = {.threads = 2};
    if (argc == 2 && strcmp(argv[1], "--device=cuda") == 0) {
        const bool there = check_runs(&cuda_device, right, plain, "");
        arena_free(arena);
        return there ? tap_done() : 77;
    }
    if (argc > 1)
        return 2;
    sim_judged(right);
    check_runs(&sim_device, text, plain, "");
    for (uint64_t seed = 1; seed < 9; seed++)
        check_runs(&sim_device, text, (struct device_options){.threads = 2, .seed = seed},
                   ", at times drawn");
    check_runs(&sim_device, text, (struct device_options){.threads = 2, .check = DEVICE_CHECK_ALL},
               ", under all checks");
    check_faults(text);
    arena_free(arena);
    return tap_done();
}
