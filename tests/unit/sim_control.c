/* Control flow, lanes, and memory spaces: tests/ptx-run/control.ptx. */
#include "sim.h"

static struct sim s;
static uint32_t out[4096];

static uint64_t launch_dims(const char *entry, struct device_dim grid, struct device_dim block,
                            size_t words)
{
    const uint64_t address = sim_buffer(&s, "out", "u32[n]", words, 4, NULL, false);
    s.value[0] = address;
    s.arg[0] = &s.value[0];
    s.arg_bytes[0] = 8;
    if (s.narg < 1)
        s.narg = 1;
    const struct device_launch l = {entry, grid, block, {0, 0, 0}, 0, s.arg, s.arg_bytes, s.narg};
    if (!ok(sim_device.launch(s.dev, &l, 1, &s.stats, s.diags) == DEVICE_OK, "%s runs", entry))
        tap_note("%s", sim_errors(&s));
    sim_fetch(&s, out, address, words * 4);
    s.narg = 0;
    return address;
}

static void launch(const char *entry, uint32_t threads, size_t words)
{
    launch_dims(entry, (struct device_dim){1, 1, 1}, (struct device_dim){threads, 1, 1}, words);
}

/* out[i] = want(i) for i < n */
static void each(uint32_t n, uint32_t (*want)(uint32_t), const char *what)
{
    int bad = 0;
    for (uint32_t i = 0; i < n; i++)
        if (out[i] != want(i) && bad++ < 4)
            tap_note("thread %u: got %x, want %x", i, out[i], want(i));
    eq_int(bad, 0, "%s", what);
}

static uint32_t nested(uint32_t i)
{
    return (i & 1 ? (i > 8 ? 4 : 3) : i & 3 ? 1u : 2u) + 10 + (i < 32 ? 32u : 8u) * 256;
}

static uint32_t loops(uint32_t t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t; i++)
        for (uint32_t j = 0; j < i; j++)
            if (++n == 50)
                return n;
    return n;
}

static uint32_t guards(uint32_t i)
{
    if (i >= 30)
        return 7;
    if (i & 1)
        return 7;
    return (7 + i) | (i > 10 ? 256u : 512u);
}

static uint32_t place(uint32_t i)
{
    const uint32_t in_block = i % 24;
    return in_block | (in_block / 32) << 8 | in_block << 16;
}

static uint32_t variables(uint32_t i)
{
    static const uint32_t primes[] = {2, 3, 5, 7, 11};
    return primes[i % 5] + (i & 1 ? 'd' : 'b') + 2000 + (i & 1 ? 40000 : 30000);
}

static uint32_t shuffles(uint32_t i)
{
    const uint32_t at = i % 8, base = i - at;
    const uint32_t up = at >= 1 ? (i - 1) | 0x80 : i;
    const uint32_t down = at + 2 < 8 ? (i + 2) | 0x80 : i;
    return up | down << 8 | ((i ^ 3) | 0x80) << 16 | ((base + 5) | 0x80) << 24;
}

static uint32_t votes(uint32_t i)
{
    const uint32_t members = i < 12 ? 0xfff : 0xfffff000;
    const uint32_t sum = i < 12 ? 66 : 496 - 66, most = i < 12 ? 11 : 31;
    const uint32_t same = (0x11111111u << (i & 3)) & members;
    return (((0x11111111u & members) + sum) ^ most) + same + (i < 12 ? 0 : 1) + (i < 12 ? 2 : 0);
}

static uint32_t late(uint32_t i)
{
    const uint32_t from = i ^ 31;
    return from < 16 ? from + 1000 : from;
}

static uint32_t reverse(uint32_t i)
{
    return i < 90 ? 89 - i : 0;
}

static void elements(void)
{
    unsigned char in[16 * 40];
    for (unsigned i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)(i * 37 + 100);
    s.narg = 2;
    s.value[1] = sim_buffer(&s, "in", "", sizeof in, 1, in, true);
    s.arg[1] = &s.value[1];
    s.arg_bytes[1] = 8;
    launch("elements", 40, 40 * 16);
    int bad = 0;
    for (int t = 0; t < 40; t++) {
        const unsigned char *x = in + 16 * t, *y = (const unsigned char *)(out + 16 * t);
        unsigned char want[64] = {0};
        const int16_t h = (int8_t)x[0];
        const int32_t r = (int8_t)x[1], v[2] = {(int8_t)x[4], (int8_t)x[6]};
        const int64_t rd = (int8_t)x[2];
        int32_t word;
        memcpy(&word, x + 12, 4);
        const int64_t wide[2] = {word, 5};
        memcpy(want, &h, 2);
        memcpy(want + 4, &r, 4);
        memcpy(want + 8, &rd, 8);
        want[16] = x[3];
        memcpy(want + 24, v, 8);
        memcpy(want + 32, x + 10, 2);
        memcpy(want + 34, x + 8, 2);
        memcpy(want + 48, wide, 16);
        bad += memcmp(want, y, 64) != 0;
    }
    eq_int(bad, 0, "elements of every width");
}

static void atomics(void)
{
    const uint32_t n = 80;
    launch("atomics", n, 8);
    eq_int(out[0], 3 * n, "atom.add");
    eq_int(out[1], n - 1, "red.max");
    eq_int(out[2], 3 * (n * (n - 1) / 2), "atom.add gives the old value");
    eq_int(out[3], n % 10, "atom.inc wraps round");
    eq_int(out[4], 1000, "atom.cas");
    eq_int(out[5], 0x45458000, "red.add.f32"); /* 3160.0f */
    eq_int(out[6], n - 1, "atom.exch");
    eq_int(out[7], 127, "red.or");
}

int main(void)
{
    for (unsigned threads = 1; threads <= 2; threads++) {
        s = sim_begin((struct device_options){.threads = threads});
        const char *dir = getenv("KAIO_SRCDIR");
        const char *path = arena_printf(s.arena, "%s/tests/ptx-run/control.ptx", dir ? dir : ".");
        const struct source *src = io_read(s.arena, s.diags, path, 1 << 20);
        if (!src || sim_device.load(s.dev, src, s.diags) != DEVICE_OK) {
            fputs(sim_errors(&s), stderr);
            return 1;
        }
        launch("nested", 40, 40);
        each(40, nested, "nested branches, and all lanes together behind them");
        launch("loops", 70, 70);
        each(70, loops, "nested loops with a break");
        launch("guards", 40, 40);
        each(40, guards, "guarded instructions");
        launch_dims("place", (struct device_dim){3, 2, 2}, (struct device_dim){2, 3, 4}, 12 * 24);
        each(12 * 24, place, "special registers in three dimensions");
        s.narg = 2;
        const uint64_t pair[2] = {30000, 40000};
        s.arg[1] = pair;
        s.arg_bytes[1] = 16;
        launch("variables", 40, 40);
        each(40, variables, "constants, initialised variables, an argument by address");
        elements();
        launch("shuffles", 64, 64);
        each(64, shuffles, "shuffles");
        launch("votes", 32, 32);
        each(32, votes, "votes among some lanes");
        launch("late", 32, 32);
        each(32, late, "lanes wait for those that come later");
        launch("reverse", 100, 100);
        each(100, reverse, "a barrier when some threads have left");
        atomics();
        sim_end(&s);
    }
    return tap_done();
}
