/* What a kernel must not do, and what is said about it. */
#include <config.h>

#include "sim.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
/* y[i] = x[i] for i = thread of the whole grid, n unused */
static const char copy_ptx[] = HEAD
    ".file 1 \"copy.yaml\"\n"
    ".visible .entry copy(.param .u64 x, .param .u64 y)\n{\n"
    "    .reg .b32 %r<5>;\n    .reg .b64 %rd<6>;\n"
    "    ld.param.u64 %rd1, [x];\n    ld.param.u64 %rd2, [y];\n"
    "    mov.u32 %r1, %tid.x;\n    mov.u32 %r2, %ctaid.x;\n    mov.u32 %r3, %ntid.x;\n"
    "    mad.lo.u32 %r4, %r2, %r3, %r1;\n"
    "    mad.wide.u32 %rd3, %r4, 4, %rd1;\n    mad.wide.u32 %rd4, %r4, 4, %rd2;\n"
    "    .loc 1 7 3\n"
    "    ld.global.u32 %r1, [%rd3];\n"
    "    .loc 1 8 5\n"
    "    st.global.u32 [%rd4], %r1;\n    ret;\n}\n";

static struct sim begin(const char *ptx, struct device_options options)
{
    struct sim s = sim_begin(options);
    if (sim_load_text(&s, "test.ptx", ptx) != DEVICE_OK) {
        fputs(sim_errors(&s), stderr);
        abort();
    }
    return s;
}

static struct sim one(const char *ptx)
{
    return begin(ptx, (struct device_options){.threads = 1});
}

/* The status, and every text that the report must contain. */
static void expect(struct sim *s, enum device_status got, enum device_status want, const char *what,
                   ...)
{
    const char *text = sim_errors(s);
    bool all = got == want;
    va_list ap;
    va_start(ap, what);
    for (const char *t = va_arg(ap, const char *); t; t = va_arg(ap, const char *))
        all = all && strstr(text, t);
    va_end(ap);
    if (!ok(all, "%s", what))
        tap_note("status %d, report:\n%s", got, text);
}

static void buffers(void)
{
    struct sim s = one(copy_ptx);
    const uint64_t x = sim_buffer(&s, "x", "f32[n]", 1024, 4, NULL, true);
    const uint64_t y = sim_buffer(&s, "y", "f32[n]", 1000, 4, NULL, false);
    sim_arg(&s, x, 8);
    sim_arg(&s, y, 8);
    enum device_status st = sim_go(&s, "copy", 8, 128);
    eq_int(st, DEVICE_FAULT, "a store outside its buffer is a fault");
    eq_str(sim_errors(&s),
           "test.ptx:20:5: error: kernel 'copy': store of 4 bytes at element 1000 of 'y' (f32[n], "
           "1000 "
           "elements)\n"
           "   20 |     st.global.u32 [%rd4], %r1;\n"
           "      |     ^~~~~~~~~~~~~~~~~~~~~~~~~\n"
           "kaio-run: note: block (7,0,0), thread (104,0,0)\n"
           "kaio-run: note: address 0x1140014d0a0\n"
           "kaio-run: note: copy.yaml:8:5 is where this instruction comes from\n",
           "... reported with the buffer, the thread and the source line");

    sim_arg(&s, x - 4, 8);
    sim_arg(&s, y, 8);
    st = sim_go(&s, "copy", 1, 32);
    expect(&s, st, DEVICE_FAULT, "an access before its buffer names it too",
           "load of 4 bytes at element -1 of 'x'", "copy.yaml:7:3", NULL);

    sim_arg(&s, x, 8);
    sim_arg(&s, x, 8);
    st = sim_go(&s, "copy", 1, 32);
    expect(&s, st, DEVICE_FAULT, "a store to an input", "store of 4 bytes at element 0 of 'x'",
           "read-only", NULL);

    sim_arg(&s, x + 2, 8);
    sim_arg(&s, y, 8);
    st = sim_go(&s, "copy", 1, 32);
    expect(&s, st, DEVICE_FAULT, "a misaligned load", "at byte 2 of 'x'", "misaligned",
           "is not a multiple of 4", NULL);

    sim_arg(&s, 0, 8);
    sim_arg(&s, y, 8);
    st = sim_go(&s, "copy", 1, 32);
    expect(&s, st, DEVICE_FAULT, "a null pointer", "address 0x0, which is in no buffer", NULL);

    sim_device.release(s.dev, y);
    sim_arg(&s, x, 8);
    sim_arg(&s, y, 8);
    st = sim_go(&s, "copy", 1, 32);
    expect(&s, st, DEVICE_FAULT, "a buffer that was released", "'y'", "which was released", NULL);
    sim_end(&s);
}

static void first_fault(void)
{
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct sim s = begin(copy_ptx, (struct device_options){.threads = threads});
        sim_arg(&s, sim_buffer(&s, "x", "f32[n]", 3000, 4, NULL, true), 8);
        sim_arg(&s, sim_buffer(&s, "y", "f32[n]", 1850, 4, NULL, false), 8);
        const enum device_status st = sim_go(&s, "copy", 60, 64);
        expect(&s, st, DEVICE_FAULT, "the lowest block's fault is reported", "element 1850 of 'y'",
               "block (28,0,0), thread (58,0,0)", NULL);
        sim_end(&s);
    }
}

static void vectors(void)
{
    struct sim s = one(HEAD ".visible .entry v(.param .u64 x)\n{\n"
                            "    .reg .f32 %f<5>;\n    .reg .b64 %rd<2>;\n"
                            "    ld.param.u64 %rd1, [x];\n"
                            "    ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+8];\n"
                            "    st.global.f32 [%rd1], %f4;\n    ret;\n}\n");
    sim_arg(&s, sim_buffer(&s, "x", "f32[8]", 8, 4, NULL, false), 8);
    enum device_status st = sim_go(&s, "v", 1, 1);
    expect(&s, st, DEVICE_FAULT, "a vector must be aligned as a whole", "load of 16 bytes",
           "multiple of 16", NULL);
    sim_arg(&s, sim_buffer(&s, "x", "f32[5]", 5, 4, NULL, false) + 8, 8);
    st = sim_go(&s, "v", 1, 1);
    expect(&s, st, DEVICE_FAULT, "... and inside its buffer as a whole",
           "load of 16 bytes at element 4 of 'x'", NULL);
    sim_end(&s);
}

static void other_memory(void)
{
    struct sim s = one(
        HEAD ".visible .entry sh(.param .u32 i)\n{\n"
             "    .reg .b32 %r<4>;\n    .shared .align 4 .b8 tile[128];\n"
             "    ld.param.u32 %r1, [i];\n    mov.u32 %r2, tile;\n    add.u32 %r3, %r1, %r2;\n"
             "    st.shared.u32 [%r3], %r1;\n    ret;\n}\n"
             ".visible .entry lo(.param .u32 i)\n{\n"
             "    .reg .b32 %r<4>;\n    .local .align 4 .b8 a[32];\n"
             "    ld.param.u32 %r1, [i];\n    mov.u32 %r2, a;\n    add.u32 %r3, %r1, %r2;\n"
             "    ld.local.u32 %r1, [%r3];\n    ret;\n}\n"
             ".visible .entry gen(.param .u32 i)\n{\n"
             "    .reg .b32 %r<4>;\n    .reg .b64 %rd<4>;\n    .shared .align 4 .b8 t2[64];\n"
             "    mov.u64 %rd1, t2;\n    cvta.shared.u64 %rd2, %rd1;\n    ld.param.u32 %r1, [i];\n"
             "    st.u32 [%rd2], %r1;\n    ld.shared.u32 %r2, [t2];\n"
             "    st.global.u32 [%rd2], %r2;\n    ret;\n}\n");
    sim_arg(&s, 124, 4);
    expect(&s, sim_go(&s, "sh", 1, 32), DEVICE_OK, "the end of shared memory", NULL);
    sim_arg(&s, 128, 4);
    enum device_status st = sim_go(&s, "sh", 1, 32);
    expect(&s, st, DEVICE_FAULT, "past the end of shared memory",
           "byte 128 of the block's shared memory (128 bytes)", NULL);
    sim_arg(&s, 32, 4);
    st = sim_go(&s, "lo", 1, 32);
    expect(&s, st, DEVICE_FAULT, "past the end of local memory", "thread's local memory (32 bytes)",
           NULL);
    sim_arg(&s, 7, 4);
    st = sim_go(&s, "gen", 1, 1);
    expect(&s, st, DEVICE_FAULT, "a shared address is not a global one",
           "which is shared memory, not global", NULL);
    sim_end(&s);
}

static const char loops_ptx[] = HEAD
    ".visible .entry spin(.param .u64 x)\n{\n"
    "$again:\n    bra $again;\n}\n"
    ".visible .entry bad(.param .u64 x)\n{\n    trap;\n}\n"
    ".visible .entry stuck(.param .u64 x)\n{\n"
    "    .reg .pred %p;\n    .reg .b32 %r;\n"
    "    mov.u32 %r, %tid.x;\n    setp.lt.u32 %p, %r, 32;\n"
    "    @%p bar.sync 1, 64;\n    @!%p bar.sync 2, 64;\n    ret;\n}\n"
    ".visible .entry pace(.param .u64 x)\n{\n"
    "$step:\n    bar.sync 0;\n    bra $step;\n}\n";

static void endless(void)
{
    for (unsigned threads = 1; threads <= 2; threads++) {
        struct sim s = begin(
            loops_ptx, (struct device_options){.threads = threads, .max_instructions = 1000000});
        sim_arg(&s, 0, 8);
        const enum device_status st = sim_go(&s, "spin", 2, 40);
        expect(&s, st, DEVICE_FAULT, "an endless loop is stopped",
               "executed more than 1000000 thread-instructions",
               "block (0,0,0), warp 0, lanes 0-31: can go on", "test.ptx:7:5", "bra $again",
               "warp 1, lanes 0-7", NULL);
        sim_arg(&s, 0, 8);
        expect(&s, sim_go(&s, "pace", 2, 64), DEVICE_FAULT, "and so is one with a barrier in it",
               "executed more than 1000000 thread-instructions", NULL);
        sim_end(&s);
    }
    volatile int interrupted = 1;
    struct sim s =
        begin(loops_ptx, (struct device_options){.threads = 1, .interrupted = &interrupted});
    sim_arg(&s, 0, 8);
    enum device_status st = sim_go(&s, "spin", 1, 32);
    expect(&s, st, DEVICE_FAULT, "an interrupt stops it", "kernel 'spin' was interrupted", NULL);
    interrupted = 0;
    sim_arg(&s, 0, 8);
    st = sim_go(&s, "bad", 1, 33);
    expect(&s, st, DEVICE_FAULT, "trap", "executed a trap", "thread (0,0,0)", "test.ptx:11:5",
           NULL);
    sim_arg(&s, 0, 8);
    st = sim_go(&s, "stuck", 1, 64);
    expect(&s, st, DEVICE_FAULT, "threads that wait at different barriers for each other",
           "no thread of block (0,0,0) can go on",
           "wait at barrier 2, where 32 of 64 threads have come", NULL);
    sim_end(&s);
}

static void total_limit(void)
{
    /* 11 instructions a thread, 32 threads a block */
    struct sim s = begin(copy_ptx, (struct device_options){.threads = 2, .max_instructions = 5000});
    const uint64_t x = sim_buffer(&s, "x", "", 4096, 4, NULL, false);
    sim_arg(&s, x, 8);
    sim_arg(&s, x, 8);
    expect(&s, sim_go(&s, "copy", 13, 32), DEVICE_OK, "a launch under the limit", NULL);
    eq_int(s.stats.thread_instructions, 13 * 32 * 11, "... by this much");
    sim_arg(&s, x, 8);
    sim_arg(&s, x, 8);
    const enum device_status st = sim_go(&s, "copy", 128, 32);
    expect(&s, st, DEVICE_FAULT, "the limit is for all blocks together", "executed more than 5000",
           NULL);
    sim_end(&s);
}

static void refusals(void)
{
    struct sim s = one(
        HEAD ".visible .entry k(.param .u64 x, .param .u32 n)\n.maxntid 64\n{\n    ret;\n}\n"
             ".visible .entry q(.param .u64 x)\n.reqntid 16, 4\n{\n    ret;\n}\n"
             ".visible .entry unwritten(.param .u64 x)\n{\n    .reg .b32 %r<3>;\n"
             "    add.u32 %r1, %r2, 1;\n    ret;\n}\n"
             ".visible .entry deep(.param .u64 x)\n{\n    .reg .b32 %r<3>;\n"
             "    .local .align 4 .b8 a[600000];\n    ld.local.u32 %r1, [a];\n    ret;\n}\n"
             ".visible .entry missing(.param .u64 x)\n{\n    .reg .b32 %r<3>;\n    .reg .pred %p;\n"
             "    mov.u32 %r1, 0;\n    setp.eq.u32 %p, %r1, 0;\n"
             "    .reg .b64 %rd;\n    stacksave.u64 %rd;\n    ret;\n}\n");
    enum device_status st = sim_go(&s, "nosuch", 1, 1);
    expect(&s, st, DEVICE_REFUSED, "an entry that is not there", "no entry 'nosuch'",
           "it has 'k', 'q', 'unwritten', 'deep', 'missing'", NULL);
    sim_arg(&s, 0, 8);
    st = sim_go(&s, "k", 1, 1);
    expect(&s, st, DEVICE_REFUSED, "too few arguments",
           "kernel 'k' has 2 parameters, the launch gives 1", NULL);
    sim_arg(&s, 0, 8);
    sim_arg(&s, 0, 8);
    st = sim_go(&s, "k", 1, 1);
    expect(&s, st, DEVICE_REFUSED, "an argument of the wrong size", "parameter 'n'", "4 bytes",
           "gives 8", NULL);
    const struct {
        const char *entry;
        struct device_dim grid, block;
        const char *text;
    } wrong[] = {
        {"q", {1, 1, 1}, {0, 1, 1}, "has no threads"},
        {"q", {1, 1, 1}, {16, 8, 16}, "over the limit"},
        {"q", {1, 1, 1}, {1, 1, 65}, "over the limit"},
        {"q", {1, 65536, 1}, {1, 1, 1}, "over the limit"},
        {"q", {0x80000000, 1, 1}, {1, 1, 1}, "over the limit"},
        {"q", {1, 1, 1}, {64, 1, 1}, "needs blocks of (16,4,1) threads"},
        {"deep", {1, 1, 1}, {1, 1, 1}, "needs 600000 bytes of local memory"},
        {"missing",
         {1, 1, 1},
         {1, 1, 1},
         "test.ptx:34:5: error: the simulator does not have 'stacksave.u64'"},
    };
    const uint64_t zero = 0;
    const void *args[] = {&zero, &zero};
    const size_t sizes[] = {8, 4};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct device_launch l = {
            wrong[i].entry, wrong[i].grid, wrong[i].block, {0, 0, 0}, 0, args, sizes, 1};
        st = sim_device.launch(s.dev, &l, 1, &s.stats, s.diags);
        expect(&s, st, DEVICE_REFUSED, wrong[i].text, wrong[i].text, NULL);
    }
    const struct device_launch unwritten = {"unwritten", {1, 1, 1}, {1, 1, 1}, {0, 0, 0},
                                            0,           args,      sizes,     1};
    st = sim_device.launch(s.dev, &unwritten, 1, &s.stats, s.diags);
    expect(&s, st, DEVICE_OK, "a register that nothing writes is warned of",
           "warning: '%r2' is read in 'unwritten' but no instruction writes it", NULL);
    const struct device_launch over = {"k", {1, 1, 1}, {65, 1, 1}, {0, 0, 0}, 0, args, sizes, 2};
    st = sim_device.launch(s.dev, &over, 1, &s.stats, s.diags);
    expect(&s, st, DEVICE_REFUSED, "more threads than .maxntid",
           "at most 64 threads, the launch has 65", NULL);
    const struct device_launch shared = {"q",    {1, 1, 1}, {16, 4, 1}, {0, 0, 0},
                                         170000, args,      sizes,      1};
    st = sim_device.launch(s.dev, &shared, 1, &s.stats, s.diags);
    expect(&s, st, DEVICE_REFUSED, "more shared memory than the target has",
           "170000 bytes of shared memory", NULL);
    const struct device_launch fine = {"q",    {1, 1, 1}, {16, 4, 1}, {1, 1, 1},
                                       160000, args,      sizes,      1};
    st = sim_device.launch(s.dev, &fine, 1, &s.stats, s.diags);
    expect(&s, st, DEVICE_OK, "as much as it has", NULL);
    sim_end(&s);
}

static void host_side(void)
{
    struct sim s = one(copy_ptx);
    uint32_t v[4] = {1, 2, 3, 4}, got[4];
    struct device_stats stats;
    const uint64_t a = sim_buffer(&s, "a", "u32[4]", 4, 4, v, false),
                   b = sim_buffer(&s, "b", "", 4, 4, NULL, false);
    ok(a % 256 == 0 && b % 256 == 0, "buffers are aligned");
    ok(sim_device.copy(s.dev, b, a, 16, &stats, s.diags) == DEVICE_OK, "a copy on the device");
    sim_fetch(&s, got, b, 16);
    ok(memcmp(got, v, 16) == 0, "... copies");
    enum device_status st = sim_device.read(s.dev, got, a + 4, 16, s.diags);
    expect(&s, st, DEVICE_REFUSED, "a read past a buffer", "not inside a buffer", NULL);
    st = sim_device.write(s.dev, 4096, got, 16, s.diags);
    expect(&s, st, DEVICE_REFUSED, "a write to nowhere", "not inside a buffer", NULL);
    ok(sim_device.release(s.dev, a) == DEVICE_OK && sim_device.release(s.dev, a) != DEVICE_OK,
       "a buffer is released once");
    uint64_t address;
    st = sim_device.alloc(s.dev, (uint64_t)1 << 60, NULL, &address, s.diags);
    expect(&s, st, DEVICE_FAILED, "more memory than there is", "no memory left", NULL);
    bool all = true;
    for (int i = 0; i < 10000; i++)
        all = all && sim_device.alloc(s.dev, 16, NULL, &address, s.diags) == DEVICE_OK &&
              sim_device.release(s.dev, address) == DEVICE_OK;
    ok(all, "buffers may come and go");
    st = sim_load_text(&s, "bad.ptx", HEAD ".visible .entry k()\n{\n    frobnicate;\n}\n");
    expect(&s, st, DEVICE_REFUSED, "PTX that does not parse", "bad.ptx:6", NULL);
    st = sim_go(&s, "copy", 1, 1);
    expect(&s, st, DEVICE_REFUSED, "... leaves nothing loaded", "no module is loaded", NULL);
    sim_end(&s);
}

int main(void)
{
    buffers();
    first_fault();
    vectors();
    other_memory();
    endless();
    total_limit();
    refusals();
    host_side();
    return tap_done();
}
