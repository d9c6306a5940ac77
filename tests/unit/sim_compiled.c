/* Kernels from a compiler whose threads wait for each other (tests/ptx-run/threads.cu), unchecked
 * and under all checks, which must find nothing. */
#include "sim.h"

enum { WORDS = 4096 };
static struct sim s;
static uint32_t x[WORDS];

static bool run(const char *entry, uint32_t grid, uint32_t block)
{
    const uint64_t at = sim_buffer(&s, "x", "u32[4096]", WORDS, 4, x, false);
    sim_arg(&s, at, 8);
    const bool fine = sim_go(&s, entry, grid, block) == DEVICE_OK;
    sim_fetch(&s, x, at, sizeof x);
    sim_device.release(s.dev, at);
    if (!fine)
        tap_note("%s", sim_errors(&s));
    return fine;
}

static void reset(uint32_t mul)
{
    for (uint32_t i = 0; i < WORDS; i++)
        x[i] = i * mul;
}

static uint32_t functions(uint32_t i)
{
    const uint32_t k = i & 7; /* bump() adds to the elements before this one */
    uint32_t sum = i * k, product = 1;
    if (i & 1) {
        sum += i;
        for (uint32_t n = 0; n < (i & 3); n++)
            product = product * 3 + i;
    }
    return sum * 1000 + product % 1000;
}

static void kernels(const char *how)
{
    int bad = 0;
    reset(0);
    bool fine = run("functions", 1, 96);
    for (uint32_t i = 0; i < 96; i++)
        bad += x[i] != functions(i);
    ok(fine && !bad, "calls of functions, %s", how);

    reset(0);
    uint32_t odd = 0;
    for (uint32_t i = 0; i < 96; i++)
        x[i] = i * i + i / 3;
    uint32_t before[96];
    memcpy(before, x, sizeof before);
    fine = run("aggregate", 1, 96);
    for (uint32_t i = 0; i < 96; i++)
        if (before[i] & 1)
            fine &= x[1024 + odd++] == before[i];
    ok(fine && x[2048] == odd && odd > 20, "lanes take room together, %s", how);

    reset(1);
    fine = run("last_block", 40, 32);
    for (uint32_t i = 0; i < 32; i++)
        fine &= x[i] == 40 * 41 / 2;
    ok(fine, "the last block adds, %s", how);

    reset(0);
    fine = run("locked", 5, 64);
    ok(fine && x[0] == 5 * 63 * 64 / 2, "a lock around a loop's body, %s", how);

    reset(0);
    fine = run("cluster", 12, 32);
    for (uint32_t b = 0; b < 12; b++)
        for (uint32_t i = 0; i < 32; i++) {
            const uint32_t next = b / 4 * 4 + (b + 1) % 4;
            fine &= x[32 * b + i] == next * 100 * 1000 + b * 100 + (b % 4 ? 0 : 128);
        }
    ok(fine, "clusters, %s", how);
}

int main(void)
{
    const unsigned checks[] = {0, DEVICE_CHECK_ALL};
    for (int i = 0; i < 2; i++) {
        s = sim_begin((struct device_options){.threads = 2, .check = checks[i]});
        const char *dir = getenv("KAIO_SRCDIR");
        const char *path = arena_printf(s.arena, "%s/tests/ptx-run/threads.ptx", dir ? dir : ".");
        const struct source *src = io_read(s.arena, s.diags, path, 1 << 20);
        if (!src || sim_device.load(s.dev, src, s.diags) != DEVICE_OK) {
            fputs(sim_errors(&s), stderr);
            return 1;
        }
        kernels(i ? "checked" : "unchecked");
        sim_end(&s);
    }
    return tap_done();
}
