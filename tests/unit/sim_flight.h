/* Kernels with mbarriers and bulk copies, each an entry of one module: what they must give, or be
 * told. */
#ifndef KAIO_TESTS_SIM_FLIGHT_H
#define KAIO_TESTS_SIM_FLIGHT_H

#include "sim_judged.h"

/* %r1 is the result of each thread; %r0 its number in the block, %r9 that of its block in the
 * cluster; %rd0: y, %rd9: x, which holds 1, 2, 3 ...; %p0: thread 0; %r8: the offset of bar. */
#define HEAD                                                                                       \
    "    .reg .pred %p<8>;\n    .reg .b32 %r<24>;\n    .reg .b64 %rd<16>;\n    .reg .b16 %h<2>;\n" \
    "    .reg .f32 %f<4>;\n    .reg .f64 %fd<2>;\n"                                                \
    "    .shared .align 128 .b32 tile[1024];\n    .shared .align 8 .b64 bar[4];\n"                 \
    "    ld.param.u64 %rd9, [x];\n    ld.param.u64 %rd0, [y];\n"                                   \
    "    mov.u32 %r0, %tid.x;\n    mov.u32 %r9, %cluster_ctarank;\n"                               \
    "    mov.u32 %r8, bar;\n    mov.u32 %r1, 0;\n    setp.eq.u32 %p0, %r0, 0;\n"
#define TAIL                                                                         \
    "    mov.u32 %r22, %ntid.x;\n    mov.u32 %r23, %ctaid.x;\n"                      \
    "    mad.lo.u32 %r23, %r23, %r22, %r0;\n    mad.wide.u32 %rd1, %r23, 4, %rd0;\n" \
    "    st.global.u32 [%rd1], %r1;\n    ret;\n"
#define INIT(n) "    @%p0 mbarrier.init.shared::cta.b64 [bar], " #n ";\n    bar.sync 0;\n"
#define CLUSTER                                                                       \
    "    fence.mbarrier_init.release.cluster;\n    barrier.cluster.arrive.aligned;\n" \
    "    barrier.cluster.wait.aligned;\n"
#define ARRIVE "    mbarrier.arrive.shared.b64 %rd2, [bar];\n"
#define WAIT(p)                                                                        \
    "$wait" #p ":\n    mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], " #p ";\n" \
    "    @!%p1 bra $wait" #p ";\n"
/* %r7: bar of block 0 */
#define MAPA                                                                                       \
    "    mov.u32 %r6, 0;\n    mapa.shared::cluster.u32 %r7, %r8, %r6;\n    setp.ne.u32 %p2, %r9, " \
    "0;\n"

/* What else than the simulator, without seeds or checks, might give something else. */
enum flight_only {
    FLIGHT_LATE = 1,  /* everything is as late as it may be */
    FLIGHT_ORDER = 2, /* lanes come in the order of their numbers: not on a GPU */
};

struct flight_run {
    const char *what, *body;
    uint32_t threads, cluster;
    uint32_t (*want)(uint32_t i); /* y[i]: of the threads, or of so many */
    uint32_t words;
    unsigned only; /* enum flight_only */
};

/* The error that the launch of 32 threads, or of a cluster of such blocks, must give. */
struct flight_fault {
    const char *what, *body;
    const char *find;
    const char *line; /* the instruction at fault, as the report quotes it */
    uint32_t cluster;
    unsigned check; /* enum device_check: found with these */
};

enum { FLIGHT_WORDS = 4096 };

static void flight_entry(struct buf *b, const char *kind, size_t i, const char *body)
{
    buf_printf(b, ".visible .entry %s%zu(.param .u64 x, .param .u64 y)\n{\n%s%s%s}\n", kind, i,
               HEAD, body, TAIL);
}

static const char *flight_module(struct arena *a, const struct flight_run *run, size_t nrun,
                                 const struct flight_fault *fault, size_t nfault)
{
    struct buf b = buf_in(a);
    buf_printf(&b, ".version 8.6\n.target sm_90a\n.address_size 64\n");
    for (size_t i = 0; i < nrun; i++)
        flight_entry(&b, "run", i, run[i].body);
    for (size_t i = 0; i < nfault; i++)
        flight_entry(&b, "fault", i, fault[i].body);
    return buf_text(&b);
}

/* Where the kernels run; on a GPU only those that must be right. */
static const struct device_ops *flight_ops = &sim_device;

static void flight_end(struct sim *s)
{
    flight_ops->close(s->dev);
    arena_free(s->arena);
}

static uint64_t flight_buffer(struct sim *s, const char *name, const char *type, bool read_only,
                              const uint32_t *from)
{
    const struct device_label label = {
        .name = name, .type = type, .element_bits = 32, .read_only = read_only};
    uint64_t at = 0;
    if (flight_ops->alloc(s->dev, FLIGHT_WORDS * 4, &label, &at, s->diags) != DEVICE_OK ||
        flight_ops->write(s->dev, at, from, FLIGHT_WORDS * 4, s->diags) != DEVICE_OK)
        abort();
    return at;
}

/* x holds 1, 2, 3 ..., y zeros; what y holds afterwards is in out. */
static enum device_status flight_go(struct sim *s, const char *entry, uint32_t threads,
                                    uint32_t cluster, uint32_t *out)
{
    static uint32_t x[FLIGHT_WORDS], zeros[FLIGHT_WORDS];
    for (uint32_t i = 0; i < FLIGHT_WORDS; i++)
        x[i] = i + 1;
    const uint64_t in = flight_buffer(s, "x", "u32[4096]", true, x);
    const uint64_t y = flight_buffer(s, "y", "u32[n]", false, zeros);
    const void *const arg[] = {&in, &y};
    const size_t bytes[] = {8, 8};
    const struct device_launch l = {.entry = entry,
                                    .grid = {cluster ? cluster : 1, 1, 1},
                                    .block = {threads, 1, 1},
                                    .cluster = {cluster, cluster ? 1 : 0, cluster ? 1 : 0},
                                    .args = arg,
                                    .arg_bytes = bytes,
                                    .narg = 2};
    const enum device_status st = flight_ops->launch(s->dev, &l, 1, &s->stats, s->diags);
    if (flight_ops->read(s->dev, out, y, FLIGHT_WORDS * 4, s->diags) != DEVICE_OK)
        memset(out, 0xee, FLIGHT_WORDS * 4);
    flight_ops->release(s->dev, in);
    flight_ops->release(s->dev, y);
    return st;
}

static void flight_right(struct device_options options, const char *module,
                         const struct flight_run *run, size_t n, const char *how)
{
    static uint32_t out[FLIGHT_WORDS];
    struct sim s = sim_with(flight_ops, options, "test.ptx", module);
    for (size_t i = 0; i < n; i++) {
        const struct flight_run *r = &run[i];
        const uint32_t words = r->words ? r->words : r->threads * (r->cluster ? r->cluster : 1);
        int bad = 0;
        if ((r->only && flight_ops != &sim_device) ||
            (r->only & FLIGHT_LATE && (options.seed || options.check)))
            continue;
        const enum device_status st =
            flight_go(&s, arena_printf(s.arena, "run%zu", i), r->threads, r->cluster, out);
        const char *text = sim_errors(&s);
        for (uint32_t k = 0; k < words; k++)
            if (out[k] != r->want(k) && bad++ < 4)
                tap_note("y[%u]: got 0x%x, want 0x%x", k, out[k], r->want(k));
        if (!ok(st == DEVICE_OK && !bad, "%s%s", r->what, how))
            tap_note("%s", text);
    }
    flight_end(&s);
}

static void flight_wrong(const char *module, const struct flight_fault *fault, size_t n,
                         unsigned check)
{
    static uint32_t out[FLIGHT_WORDS];
    struct sim s = sim_with(flight_ops, (struct device_options){.threads = 1, .check = check},
                            "test.ptx", module);
    for (size_t i = 0; i < n; i++) {
        if (fault[i].check != check)
            continue;
        const enum device_status st =
            flight_go(&s, arena_printf(s.arena, "fault%zu", i), 32, fault[i].cluster, out);
        const char *text = sim_errors(&s);
        if (!ok(st == DEVICE_FAULT && strstr(text, fault[i].find) && strstr(text, fault[i].line),
                "fault: %s", fault[i].what))
            tap_note("status %d: %s", (int)st, text);
    }
    flight_end(&s);
}

/* --device=cuda: the kernels that must be right, on a GPU (77: there is none). True: the program
 * ends with *status. */
static bool flight_elsewhere(int argc, char **argv, const char *module,
                             const struct flight_run *run, size_t n, int *status)
{
    struct arena *a = arena_new();
    const bool asked = argc == 2 && strcmp(argv[1], "--device=cuda") == 0;
    *status = asked ? 77 : 2;
    if (asked && cuda_device.count(diags_new(a)) > 0) {
        flight_ops = &cuda_device;
        flight_right((struct device_options){0}, module, run, n, "");
        *status = tap_done();
    }
    arena_free(a);
    return argc > 1;
}

/* How each test of such kernels begins; its module. With --device=cuda, or what is no option, there
 * is no more to do than to give *status: NULL. */
static const char *flight_start(int argc, char **argv, struct arena *a,
                                const struct flight_run *run, size_t nrun,
                                const struct flight_fault *fault, size_t nfault, int *status)
{
    const char *module = flight_module(a, run, nrun, fault, nfault);
    if (flight_elsewhere(argc, argv, module, run, nrun, status))
        return NULL;
    sim_judged(module);
    flight_right((struct device_options){.threads = 1}, module, run, nrun, "");
    return module;
}

#endif
