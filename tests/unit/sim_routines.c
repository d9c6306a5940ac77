/* Functions that call themselves or are called through pointers, as a compiler writes them
 * (tests/ptx-run/routines.cu), with and without its optimisation. */
#include "sim.h"

enum { THREADS = 96 };
static struct sim s;
static uint32_t x[THREADS];

static enum device_status run(const char *entry)
{
    const uint64_t at = sim_buffer(&s, "x", "u32[96]", THREADS, 4, x, false);
    sim_arg(&s, at, 8);
    const enum device_status status = sim_go(&s, entry, 1, THREADS);
    sim_fetch(&s, x, at, sizeof x);
    sim_device.release(s.dev, at);
    return status;
}

static uint32_t walk(uint32_t n, uint32_t *above)
{
    uint32_t mine = n;
    if (n > 1) {
        const uint32_t down = walk(n - 1, &mine);
        *above += down;
        if (n % 3 == 0) {
            const uint32_t again = walk(n - 2, above);
            *above += again;
        }
    }
    return mine * 7 + *above;
}

struct pair {
    uint32_t a;
    uint64_t b;
};

static struct pair sum(struct pair p, uint32_t n)
{
    if (n == 0)
        return p;
    const struct pair q = sum((struct pair){p.a + n, p.b * 3 + p.a}, n - 1);
    return (struct pair){q.a ^ n, q.b + p.b};
}

static uint32_t recursive(uint32_t i)
{
    uint32_t top = 0;
    const uint32_t w = walk(i % 11, &top);
    const struct pair p = sum((struct pair){i, i * UINT64_C(5)}, i % 7);
    return w + top * 1000 + (i % 5 % 2 ? 0 : 1000000) + p.a * 3 + (uint32_t)p.b;
}

static uint32_t pointers(uint32_t i)
{
    return (i & 1 ? i * 3 : i + 3) + (i % 3 == 0 ? i + 10 : i * 10) + (i & 4 ? i + i : i * i) + 1;
}

/* area() of the four shapes of thread i */
static uint32_t area(uint32_t i, uint32_t which, uint32_t at)
{
    switch (which) {
    case 0: return at * at + i;
    case 1: return 5;
    case 2: return area(i, 0, at + 1) * 3 + area(i, 1, at + 2);
    default: return area(i, 2, at + 1) * 3 + area(i, i & 1 ? 1 : 2, at + 2);
    }
}

static uint32_t shapes(uint32_t i)
{
    return area(i, i & 3, i) + (i % 5 == 0 ? (i >> 2 & 3) == 1 : 0);
}

static void expect(const char *entry, uint32_t (*want)(uint32_t), const char *how)
{
    memset(x, 0xff, sizeof x);
    const bool fine = run(entry) == DEVICE_OK;
    int bad = 0;
    if (!ok(fine, "%s runs, %s", entry, how))
        tap_note("%s", sim_errors(&s));
    for (uint32_t i = 0; fine && i < THREADS; i++)
        if (x[i] != want(i) && bad++ < 4)
            tap_note("thread %u: %u, want %u", i, x[i], want(i));
    eq_int(bad, 0, "... as it should");
}

static void refuse(const char *entry, const char *text, const char *how)
{
    eq_int(run(entry), DEVICE_FAULT, "%s is a fault, %s", entry, how);
    if (!ok(strstr(sim_errors(&s), text) != NULL, "... and told: %s", text))
        tap_note("%s", sim_errors(&s));
}

/* Registers of all widths, the widest last: each has its own in every call. */
static const char wide_ptx[] =
    ".version 8.3\n.target sm_90\n.address_size 64\n"
    ".func (.reg .b32 %sum) down(.reg .b32 %n, .reg .b128 %above)\n{\n"
    "    .reg .pred %p<2>;\n    .reg .b16 %h;\n    .reg .b32 %m;\n    .reg .b32 %r<2>;\n"
    "    .reg .b64 %a;\n    .reg .b64 %b;\n    .reg .b128 %q;\n"
    "    setp.gt.u32 %p1, %n, 5;\n    cvt.u16.u32 %h, %n;\n"
    "    mul.wide.u32 %a, %n, 3;\n    mul.wide.u32 %b, %n, 70000;\n    mov.b128 %q, {%a, %b};\n"
    "    mov.u32 %sum, 0;\n    setp.eq.u32 %p0, %n, 0;\n    @%p0 ret;\n"
    "    sub.u32 %m, %n, 1;\n    call (%sum), down, (%m, %q);\n"
    "    mov.b128 {%a, %b}, %q;\n    cvt.u32.u64 %r0, %a;\n    add.u32 %sum, %sum, %r0;\n"
    "    cvt.u32.u64 %r0, %b;\n    add.u32 %sum, %sum, %r0;\n"
    "    mov.b128 {%a, %b}, %above;\n    cvt.u32.u64 %r0, %b;\n    xor.b32 %sum, %sum, %r0;\n"
    "    cvt.u32.u16 %r1, %h;\n    add.u32 %sum, %sum, %r1;\n    @%p1 add.u32 %sum, %sum, 1;\n"
    "    ret;\n}\n"
    ".visible .entry wide(.param .u64 out)\n{\n"
    "    .reg .b32 %r<3>;\n    .reg .b64 %rd<3>;\n    .reg .b128 %q;\n"
    "    ld.param.u64 %rd1, [out];\n    mov.u32 %r1, %tid.x;\n    mul.wide.u32 %rd2, %r1, 4;\n"
    "    add.u64 %rd1, %rd1, %rd2;\n    mov.b128 %q, {%rd2, %rd2};\n"
    "    and.b32 %r1, %r1, 15;\n"
    "    call (%r2), down, (%r1, %q);\n    st.global.u32 [%rd1], %r2;\n    ret;\n}\n";

static uint32_t down(uint32_t n, uint32_t above)
{
    return n ? ((down(n - 1, n * 70000) + n * 3 + n * 70000) ^ above) + n + (n > 5) : 0;
}

static uint32_t wide(uint32_t i)
{
    return down(i % 16, i * 4);
}

static void test_wide(unsigned check)
{
    s = sim_begin((struct device_options){.threads = 1, .check = check});
    if (sim_load_text(&s, "wide.ptx", wide_ptx) == DEVICE_OK)
        expect("wide", wide, check ? "checked" : "unchecked");
    else
        ok(false, "registers of 128 bits in a function that calls itself: %s", sim_errors(&s));
    sim_end(&s);
}

int main(void)
{
    const char *const file[] = {"routines.ptx", "routines_O0.ptx"};
    for (int i = 0; i < 4; i++) {
        s = sim_begin((struct device_options){.threads = 1, .check = i & 1 ? DEVICE_CHECK_ALL : 0});
        const char *dir = getenv("KAIO_SRCDIR"), *name = file[i / 2];
        const char *path = arena_printf(s.arena, "%s/tests/ptx-run/%s", dir ? dir : ".", name);
        const char *how = arena_printf(s.arena, "%s%s", name, i & 1 ? ", checked" : "");
        const struct source *src = io_read(s.arena, s.diags, path, 1 << 20);
        if (!src || sim_device.load(s.dev, src, s.diags) != DEVICE_OK) {
            fputs(sim_errors(&s), stderr);
            return 1;
        }
        expect("recursive", recursive, how);
        expect("pointers", pointers, how);
        expect("shapes", shapes, how);
        refuse("nowhere", "a call through a register that holds the address of no function", how);
        refuse("endless", "calls go too deep: a thread's stack has 16384 bytes", how);
        sim_end(&s);
    }
    test_wide(0);
    test_wide(DEVICE_CHECK_ALL);
    return tap_done();
}
