/* libkaio as a compiler's test suite uses it: any PTX, on the simulator and on a GPU that is
 * played. */
#include <config.h>

#include "kaio.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

/* y[i] = 2 x[i] for i < n; what cannot be told from nvcc's. */
static const char twice[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry twice(.param .u64 x, .param .u64 y, .param .u32 n)\n{\n"
    "  .reg .pred %p; .reg .f32 %f; .reg .b32 %r<5>; .reg .b64 %rd<4>;\n"
    "  ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r0, [n];\n"
    "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "  mad.lo.s32 %r4, %r1, %r2, %r3;\n"
    "  setp.ge.u32 %p, %r4, %r0;\n"
    "  @%p bra done;\n"
    "  mul.wide.u32 %rd2, %r4, 4;\n"
    "  add.s64 %rd0, %rd0, %rd2; add.s64 %rd1, %rd1, %rd2;\n"
    "  ld.global.f32 %f, [%rd0];\n"
    "  add.f32 %f, %f, %f;\n"
    "  st.global.f32 [%rd1], %f;\n"
    "done:\n  ret;\n}\n"
    ".visible .entry idle()\n{ ret; }\n";

/* A table of constants, a variable, a struct by value: out[k] = table[k] + first of the struct +
 * the variable. */
static const char tables[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .const .align 4 .u32 table[4] = {1, 2, 3, 4};\n"
    ".visible .global .align 4 .u32 bias = 100;\n"
    ".visible .entry look(.param .align 8 .b8 s[16])\n{\n"
    "  .reg .b32 %r<5>; .reg .b64 %rd<4>;\n"
    "  ld.param.u64 %rd0, [s]; ld.param.u32 %r0, [s+8];\n"
    "  mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4;\n"
    "  mov.u64 %rd2, table; add.s64 %rd2, %rd2, %rd1; ld.const.u32 %r2, [%rd2];\n"
    "  ld.global.u32 %r3, [bias];\n"
    "  add.u32 %r2, %r2, %r0; add.u32 %r2, %r2, %r3;\n"
    "  cvta.to.global.u64 %rd0, %rd0; add.s64 %rd0, %rd0, %rd1;\n"
    "  st.global.u32 [%rd0], %r2;\n"
    "  ret;\n}\n";

/* Thread 0 reads what thread 1 of the same block wrote, without a barrier. */
static const char racy[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                           ".visible .entry racy(.param .u64 y)\n{\n"
                           "  .shared .align 4 .u32 s[64];\n"
                           "  .reg .b32 %r<5>; .reg .b64 %rd<4>;\n"
                           "  ld.param.u64 %rd0, [y]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2;\n"
                           "  mov.u32 %r2, s; add.u32 %r2, %r2, %r1;\n"
                           "  st.shared.u32 [%r2], %r0;\n"
                           "  xor.b32 %r3, %r1, 128; mov.u32 %r2, s; add.u32 %r2, %r2, %r3;\n"
                           "  ld.shared.u32 %r4, [%r2];\n"
                           "  mul.wide.u32 %rd1, %r0, 4; add.s64 %rd0, %rd0, %rd1;\n"
                           "  st.global.u32 [%rd0], %r4;\n"
                           "  ret;\n}\n";

static const char endless[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry endless(.param .u64 y)\n{\n"
                              "  .reg .b32 %r; .reg .b64 %rd;\n"
                              "  ld.param.u64 %rd, [y]; mov.u32 %r, 0;\n"
                              "again:\n  add.u32 %r, %r, 1;\n  st.global.u32 [%rd], %r;\n"
                              "  bra again;\n}\n";

static const char talks[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".global .align 1 .b8 text[6] = {104, 101, 108, 108, 111, 0};\n"
    ".visible .entry talks()\n{\n"
    "  .reg .b64 %rd<2>; .reg .b32 %r;\n"
    "  mov.u64 %rd0, text; cvta.global.u64 %rd1, %rd0;\n"
    "  { .param .b64 f; st.param.b64 [f], %rd1; .param .b64 a; st.param.b64 [a], 0;\n"
    "    .param .b32 r; call.uni (r), vprintf, (f, a); ld.param.b32 %r, [r]; }\n"
    "  ret;\n}\n";

/* A box of 8 x 4 at (4, 1) of a matrix. */
static const char box[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry box(.param .align 64 .b8 map[128], .param .u64 y)\n{\n"
    "  .shared .align 128 .b32 tile[32]; .shared .align 8 .b64 full;\n"
    "  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n"
    "  mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; mov.u32 %r1, full; mov.u32 %r2, tile;\n"
    "  mov.b64 %rd0, map; cvta.param.u64 %rd0, %rd0;\n"
    "  @%p0 bra wait;\n"
    "  mbarrier.init.shared.b64 [%r1], 1;\n"
    "  fence.mbarrier_init.release.cluster;\n"
    "  mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 128;\n"
    "  mov.u32 %r3, 4; mov.u32 %r4, 1;\n"
    "  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
    " [%r2], [%rd0, {%r3, %r4}], [%r1];\n"
    "wait:\n  bar.sync 0;\n"
    "again:\n  mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;\n  @!%p1 bra again;\n"
    "  shl.b32 %r5, %r0, 2; add.u32 %r2, %r2, %r5; ld.shared.b32 %r6, [%r2];\n"
    "  ld.param.u64 %rd1, [y]; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd1, %rd1, %rd2;\n"
    "  st.global.b32 [%rd1], %r6;\n"
    "  ret;\n}\n";

static struct kaio_device *device(struct kaio *k, const char *name, const char *options)
{
    struct kaio_device *dev = NULL;
    if (kaio_open(k, name, options, &dev) != KAIO_OK)
        printf("# %s", kaio_messages(k));
    return dev;
}

static struct kaio_module *module(struct kaio *k, struct kaio_device *dev, const char *name,
                                  const char *ptx)
{
    struct kaio_module *m = NULL;
    if (kaio_load(dev, name, ptx, strlen(ptx), &m) != KAIO_OK)
        printf("# %s", kaio_messages(k));
    return m;
}

static const struct kaio_shape four = {
    .size = sizeof(struct kaio_shape), .grid = {4}, .block = {32}};

/* On any device: copies in, launches, copies out. */
static void main_job(struct kaio *k, const char *name)
{
    enum { N = 100 };
    float x[N], y[N] = {0};
    struct kaio_device *dev = device(k, name, NULL);
    struct kaio_module *m = module(k, dev, "twice.ptx", twice);
    uint64_t xa = 0, ya = 0;
    uint32_t n = N;
    const struct kaio_value args[] = {{&xa, 8}, {&ya, 8}, {&n, 4}};
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    eq_str(kaio_device_kind(dev), name, "the device says what it is");
    ok(*kaio_device_name(dev), "and has a name");
    eq_int(kaio_device_multiprocessors(dev), strcmp(name, "cpu") == 0 ? 8 : 4,
           "and so many multiprocessors");
    ok(kaio_alloc(dev, sizeof x, &xa) == KAIO_OK && kaio_alloc(dev, sizeof y, &ya) == KAIO_OK &&
           xa != ya && xa % 256 == 0 && ya % 256 == 0,
       "%s: memory", name);
    ok(kaio_write(dev, xa, x, sizeof x) == KAIO_OK, "takes the input");
    eq_int(kaio_launch(m, "twice", &four, args, 3), KAIO_OK, "a launch");
    eq_str(kaio_messages(k), "", "has nothing to say");
    ok(kaio_read(dev, y, ya, sizeof y) == KAIO_OK && y[0] == 0 && y[N - 1] == 2 * (N - 1),
       "and its result is there");
    ok(kaio_read(dev, y, ya + 4, 8) == KAIO_OK && y[0] == 2 && y[1] == 4, "part of it, too");
    eq_str(kaio_entry(m, 0), "twice", "the module's first entry");
    eq_str(kaio_entry(m, 1), "idle", "and its second");
    ok(!kaio_entry(m, 2), "and no more");
    ok(kaio_param_bytes(m, "twice", 0) == 8 && kaio_param_bytes(m, "twice", 2) == 4 &&
           kaio_param_bytes(m, "twice", 3) == 0 && kaio_param_bytes(m, "none", 0) == 0,
       "and its parameters");

    float own[N] __attribute__((aligned(16)));
    uint64_t owna = 0;
    ok(kaio_bind(dev, own, sizeof own, &owna) == KAIO_OK, "%s: memory of one's own", name);
    const struct kaio_value in_place[] = {{&xa, 8}, {&owna, 8}, {&n, 4}};
    eq_int(kaio_launch(m, "twice", &four, in_place, 3), KAIO_OK, "is written");
    ok(own[1] == 2 && own[N - 1] == 2 * (N - 1), "in place");
    eq_int(kaio_release(dev, owna), KAIO_OK, "and released");
    eq_int(kaio_release(dev, owna), KAIO_BAD_INPUT, "but not twice");
    ok(strstr(kaio_messages(k), "begins at 0x"), "which is told");
    eq_int(kaio_bind(dev, (char *)own + 4, 8, &owna), KAIO_BAD_INPUT, "misaligned it is not taken");

    eq_int(kaio_launch(m, "twice", &four, args, 2), KAIO_BAD_INPUT, "an argument too few");
    ok(strstr(kaio_messages(k), "'twice' has 3 parameters, the launch gives 2"), "is told");
    const struct kaio_value wrong[] = {{&xa, 8}, {&ya, 8}, {&xa, 8}};
    eq_int(kaio_launch(m, "twice", &four, wrong, 3), KAIO_BAD_INPUT, "one of another size");
    ok(strstr(kaio_messages(k), "twice.ptx:4:"), "is told with its line");
    eq_int(kaio_launch(m, "thrice", &four, args, 3), KAIO_BAD_INPUT, "an entry that is not there");
    struct kaio_shape none = {.grid = {1}, .block = {1}};
    eq_int(kaio_launch(m, "twice", &none, args, 3), KAIO_BAD_INPUT, "a shape without its size");
    eq_int(kaio_write(dev, 16, x, 4), KAIO_BAD_INPUT, "a write to nowhere");
    kaio_unload(m);
    kaio_close(dev);
}

static void variables(struct kaio *k, const char *name)
{
    struct kaio_device *dev = device(k, name, "heap=1Mi");
    struct kaio_module *m = module(k, dev, "tables.ptx", tables),
                       *other = module(k, dev, "tables.ptx", tables);
    uint64_t table = 0, bias = 0, other_bias = 0, bytes = 0, out = 0;
    eq_int(kaio_symbol(m, "table", &table, &bytes), KAIO_OK, "a table of constants");
    eq_int((long long)bytes, 16, "has its size");
    ok(kaio_symbol(m, "bias", &bias, NULL) == KAIO_OK &&
           kaio_symbol(other, "bias", &other_bias, NULL) == KAIO_OK && bias != other_bias,
       "each module has variables of its own");
    eq_int(kaio_symbol(m, "nothing", &out, &bytes), KAIO_BAD_INPUT, "what is not there");
    ok(out == 0 && bytes == 0 && strstr(kaio_messages(k), "no variable 'nothing'"), "is told");
    eq_int(kaio_release(dev, table), KAIO_BAD_INPUT, "a variable is not to be released");
    const uint32_t fresh[4] = {10, 20, 30, 40};
    uint32_t got[4], hundred = 0;
    ok(kaio_write(dev, table, fresh, sizeof fresh) == KAIO_OK &&
           kaio_read(dev, &hundred, bias, 4) == KAIO_OK && hundred == 100,
       "they are written and read");
    kaio_alloc(dev, sizeof got, &out);
    struct {
        uint64_t out;
        uint32_t first, pad;
    } s = {out, 1000, 0};
    const struct kaio_shape shape = {.size = sizeof shape, .grid = {1}, .block = {4}};
    eq_int(kaio_launch(m, "look", &shape, &(struct kaio_value){&s, sizeof s}, 1), KAIO_OK,
           "a struct by value");
    kaio_read(dev, got, out, sizeof got);
    ok(got[0] == 1110 && got[3] == 1140, "the launch sees all of it");
    kaio_launch(other, "look", &shape, &(struct kaio_value){&s, sizeof s}, 1);
    kaio_read(dev, got, out, sizeof got);
    eq_int(got[3], 1104, "and the other module its own");
    kaio_unload(m);
    if (!strcmp(name, "cpu"))
        eq_int(kaio_read(dev, got, bias, 4), KAIO_BAD_INPUT, "variables go with their module");
    kaio_close(dev); /* the other module, too */
}

static void tensors(struct kaio *k, const char *name, const char *options)
{
    enum { COLS = 16, ROWS = 8 };
    float x[ROWS * COLS], y[32] = {0};
    struct kaio_device *dev = device(k, name, options);
    struct kaio_module *m = module(k, dev, "box.ptx", box);
    uint64_t xa = 0, ya = 0;
    unsigned char map[128] __attribute__((aligned(64)));
    int bad = 0;
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = (float)i;
    kaio_alloc(dev, sizeof x, &xa);
    kaio_alloc(dev, sizeof y, &ya);
    kaio_write(dev, xa, x, sizeof x);
    struct kaio_tensor t = {.size = sizeof t,
                            .type = "f32",
                            .address = xa,
                            .rank = 2,
                            .dim = {COLS, ROWS},
                            .stride = {0, COLS * 4},
                            .box = {8, 4}};
    eq_int(kaio_tensor_map(dev, &t, map), KAIO_OK, "%s: a tensor map", name);
    const struct kaio_shape shape = {.size = sizeof shape, .grid = {1}, .block = {32}};
    const struct kaio_value args[] = {{map, sizeof map}, {&ya, 8}};
    if (!eq_int(kaio_launch(m, "box", &shape, args, 2), KAIO_OK, "is a parameter"))
        printf("# %s", kaio_messages(k));
    kaio_read(dev, y, ya, sizeof y);
    for (int i = 0; i < 32; i++)
        bad += y[i] != x[(1 + i / 8) * COLS + 4 + i % 8];
    eq_int(bad, 0, "and the box arrives");
    t.address += 4;
    eq_int(kaio_tensor_map(dev, &t, map), KAIO_BAD_INPUT, "a misaligned tensor");
    t.address -= 4;
    t.type = "float3";
    eq_int(kaio_tensor_map(dev, &t, map), KAIO_BAD_INPUT, "a type that there is not");
    kaio_close(dev);
}

static void findings(struct kaio *k)
{
    struct kaio_device *dev = device(k, "auto", "check=race,init");
    uint64_t y = 0;
    const struct kaio_shape shape = {.size = sizeof shape, .grid = {1}, .block = {64}};
    const struct kaio_value arg = {&y, sizeof y};
    eq_str(kaio_device_kind(dev), "cpu", "checks take the simulator");
    struct kaio_module *m = module(k, dev, "racy.ptx", racy);
    kaio_alloc(dev, 256, &y);
    eq_int(kaio_launch(m, "racy", &shape, &arg, 1), KAIO_FOUND, "a race is found");
    const struct kaio_message *first = kaio_message(k, 0);
    ok(first && !strcmp(first->level, "error") && strstr(first->text, "race on") &&
           !strcmp(first->file, "racy.ptx") && (first->line == 10 || first->line == 12) &&
           first->column > 0,
       "at its line");
    size_t n = 0;
    while (kaio_message(k, n))
        n++;
    ok(n > 1 && !strcmp(kaio_message(k, 1)->level, "note"), "with notes");
    ok(!strcmp(first->kind, "race") && !strcmp(first->entry, "racy") &&
           !strcmp(first->buffer, "s") && first->threads == 2 &&
           first->thread[0][0] != first->thread[1][0] && first->block[0][0] == 0 &&
           first->count > 0,
       "and in parts");
    eq_int(kaio_suppress(dev, "known", "race buffer=other\n", 18), KAIO_OK, "a suppression");
    eq_int(kaio_launch(m, "racy", &shape, &arg, 1), KAIO_FOUND, "of something else");
    eq_int(kaio_suppress(dev, "known", "race buffer=s\n", 14), KAIO_OK, "and one that fits");
    eq_int(kaio_launch(m, "racy", &shape, &arg, 1), KAIO_OK, "and it is known");
    eq_int(kaio_suppress(dev, "known", "rase\n", 5), KAIO_BAD_INPUT, "one that is none");
    ok(strstr(kaio_messages(k), "known:1:1: error:"), "is told with its line");
    m = module(k, dev, "twice.ptx", twice);
    uint64_t x = 0;
    uint32_t count = 8;
    const struct kaio_value args[] = {{&x, 8}, {&y, 8}, {&count, 4}};
    kaio_alloc(dev, 32, &x);
    eq_int(kaio_describe(dev, x, "x", "f32[2, 4]", 0), KAIO_OK, "a buffer is described");
    eq_int(kaio_launch(m, "twice", &shape, args, 3), KAIO_FOUND, "undefined bytes are found");
    ok(strstr(kaio_messages(k), "element [0, 0] of 'x' (f32[2, 4]"), "and named");
    kaio_write(dev, x, (float[8]){0}, 32);
    eq_int(kaio_launch(m, "twice", &shape, args, 3), KAIO_OK, "defined ones are well");
    kaio_close(dev);
    eq_int(kaio_open(k, "cuda", "check", &dev), KAIO_BAD_INPUT, "no checks on a GPU");
    ok(!dev, "and no device");
}

static void faults(struct kaio *k)
{
    struct kaio_device *dev = device(k, "cpu", "threads=1 max-instructions=1e6");
    struct kaio_module *m = module(k, dev, "twice.ptx", twice);
    uint64_t x = 0, y = 0;
    uint32_t n = 100;
    const struct kaio_value args[] = {{&x, 8}, {&y, 8}, {&n, 4}};
    kaio_alloc(dev, 400, &x);
    kaio_alloc(dev, 396, &y);
    eq_int(kaio_describe(dev, y, "y", "f32", 0), KAIO_OK, "a name for reports");
    eq_int(kaio_launch(m, "twice", &four, args, 3), KAIO_FAILED, "a store past the end fails");
    ok(strstr(kaio_messages(k), "element 99 of 'y' (f32, 99 elements)"), "with the name");
    kaio_describe(dev, y, "y", NULL, 1);
    n = 99;
    eq_int(kaio_launch(m, "twice", &four, args, 3), KAIO_FAILED, "a store to an input fails");
    ok(strstr(kaio_messages(k), "read-only"), "and says so");
    kaio_describe(dev, y, "y", NULL, 0);
    eq_int(kaio_launch(m, "twice", &four, args, 3), KAIO_OK, "and the device goes on");
    ok(kaio_instructions(dev) > 99 * 10 && kaio_instructions(dev) < 128 * 30, "and counts");
    ok(kaio_seconds(dev) > 0, "and measures");
    kaio_release(dev, y);
    eq_int(kaio_launch(m, "twice", &four, args, 3), KAIO_FAILED, "what is released");
    ok(strstr(kaio_messages(k), "'y'") && strstr(kaio_messages(k), "released"), "is known for it");
    eq_int(kaio_describe(dev, x, "x", "f32[101]", 0), KAIO_BAD_INPUT, "a type of more bytes");
    eq_int(kaio_describe(dev, x, "x", "f32[10", 0), KAIO_BAD_INPUT, "a type without its end");
    eq_int(kaio_describe(dev, x, "x", "f32[0]", 0), KAIO_BAD_INPUT, "a type of nothing");
    eq_int(kaio_describe(dev, x, "x", "string", 0), KAIO_BAD_INPUT, "a type of another language");
    eq_int(kaio_describe(dev, x, "x", "f32[4294967296, 4294967296]", 0), KAIO_BAD_INPUT,
           "a type of too many");

    struct kaio_module *loop = module(k, dev, "endless.ptx", endless);
    eq_int(kaio_launch(loop, "endless", &four, &(struct kaio_value){&x, 8}, 1), KAIO_FAILED,
           "an endless kernel ends");
    ok(strstr(kaio_messages(k), "1000000 thread-instructions") &&
           strstr(kaio_messages(k), "endless.ptx:"),
       "and says where it was");
    eq_int(kaio_load(dev, "bad.ptx", "oops", 4, &m), KAIO_BAD_INPUT, "what is no PTX");
    ok(!m && strstr(kaio_messages(k), "bad.ptx:1:1: error:"), "is told with its line");
    eq_int(kaio_launch(m, "twice", &four, args, 3), KAIO_BAD_INPUT, "and can't be launched");
    m = module(k, dev, "talks.ptx", talks);
    const struct kaio_shape one = {.size = sizeof one, .grid = {1}, .block = {2}};
    eq_int(kaio_launch(m, "talks", &one, NULL, 0), KAIO_OK, "printf()");
    eq_str(kaio_printed(k), "hellohello", "is heard");
    kaio_close(dev);
}

static void options(struct kaio *k)
{
    static const struct {
        const char *options, *why;
    } wrong[] = {
        {"chekc=race", "did you mean 'check'"},  {"check=rice", "'rice' is not memory"},
        {"threads=many", "'many' is no number"}, {"threads", "needs a value"},
        {"arch=sm_1", "'sm_1' is no target"},    {"max-instructions=-1", "is no number"},
        {"overcommit=1", "takes no value"},      {"overcomit", "did you mean 'overcommit'"},
    };
    struct kaio_device *dev;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        eq_int(kaio_open(k, "cpu", wrong[i].options, &dev), KAIO_BAD_INPUT, "%s", wrong[i].options);
        ok(!dev && strstr(kaio_messages(k), wrong[i].why), "%s", wrong[i].why);
    }
    eq_int(kaio_open(k, "cpu:1", NULL, &dev), KAIO_BAD_INPUT, "no such kind of device");
    ok(device(k, "cpu", " check  check-seed=3 max-instructions=0 arch=sm_90 "), "all of them");
    /* left open, for kaio_free() to close */
}

/* Allocates 17 GB at a time until that is refused, or 64 TB are there; nothing is touched. */
static bool promises(struct kaio_device *dev, unsigned most)
{
    uint64_t address;
    for (unsigned i = 0; i < most; i++)
        if (kaio_alloc(dev, (uint64_t)1 << 34, &address) != KAIO_OK)
            return false;
    return true;
}

static void overcommit(struct kaio *k)
{
    if (getenv("KAIO_QUICK")) { /* the sanitizer's own allocator touches what it gives */
        ok(true, "# SKIP under sanitizers");
        return;
    }
    struct kaio_device *dev = device(k, "cpu", NULL);
    ok(!promises(dev, 3800) && strstr(kaio_messages(k), "; with overcommit it is tried"),
       "buffers are no more than the memory that is left");
    kaio_close(dev);
    dev = device(k, "cpu", "overcommit");
    ok(promises(dev, 3800) || !strstr(kaio_messages(k), "overcommit"), "unless that is asked for");
    kaio_close(dev);
}

static void *stop_soon(void *dev)
{
    for (int i = 0; i < 100; i++) {
        usleep(20000);
        kaio_interrupt(dev);
    }
    return NULL;
}

static void interrupt(struct kaio *k)
{
    struct kaio_device *dev = device(k, "cpu", "max-instructions=0");
    struct kaio_module *m = module(k, dev, "endless.ptx", endless);
    uint64_t y = 0;
    pthread_t other;
    kaio_alloc(dev, 4, &y);
    ok(pthread_create(&other, NULL, stop_soon, dev) == 0, "another thread");
    eq_int(kaio_launch(m, "endless", &four, &(struct kaio_value){&y, 8}, 1), KAIO_FAILED,
           "ends a launch");
    ok(strstr(kaio_messages(k), "interrupted"), "which says so");
    pthread_join(other, NULL);
    kaio_close(dev);
}

int main(int argc, char **argv)
{
    struct kaio *k = kaio_new();
    char fake[4096];
    struct kaio_device *dev;
    if (argc > 1 && !strcmp(argv[1], "cuda")) { /* make check-gpu: on the GPU that there is */
        if (kaio_open(k, "cuda", NULL, &dev) == KAIO_ABSENT)
            return KAIO_ABSENT;
        kaio_close(dev);
        main_job(k, "cuda");
        variables(k, "cuda");
        kaio_free(k);
        return tap_done();
    }
    main_job(k, "cpu");
    snprintf(fake, sizeof fake, "%s/tests/libfakecuda.so", getenv("KAIO_BUILDDIR"));
    setenv("KAIO_CUDA_LIB", fake, 1);
    main_job(k, "cuda");
    setenv("KAIO_CUDA_LIB", "/nonexistent", 1);
    eq_int(kaio_open(k, "cuda", NULL, &dev), KAIO_ABSENT, "a machine without a GPU");
    variables(k, "cpu");
    tensors(k, "cpu", "check");
    findings(k);
    faults(k);
    options(k);
    overcommit(k);
    interrupt(k);
    kaio_close(NULL);
    kaio_unload(NULL);
    kaio_free(k);
    return tap_done();
}
