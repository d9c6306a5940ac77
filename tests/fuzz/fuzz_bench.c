/* Any bytes as words of a sweep, one a line, multiplied out over a spec; and, behind a line "==", as a baseline. */
#include <config.h>

#include "bench/baseline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] = "kernel: k\n"
                           "types: {T: [f32, f16]}\n"
                           "params: {x: 'in T[m, n / 2]', y: 'out T[m]', alpha: f32 = 2.0}\n"
                           "require: [n % 2 == 0]\n"
                           "compute: 'y[i] = alpha * sum[j](x[i, j])'\n"
                           "cases: {small: {m: 2, n: 4}}\n";

static void multiply(struct arena *a, const struct sweep *sweep, struct diags *d)
{
    const struct source *src = source_new(a, "k.yaml", text, sizeof text - 1);
    struct spec_file *f = spec_read(a, src, NULL, 0, d);
    struct sweep_points points;
    uint64_t n = 1;
    for (size_t i = 0; i < sweep->axes.n && n < 1000; i++)
        n *= sweep->axes.v[i].values.n;
    if (f && n < 1000) /* more takes its time and shows nothing new */
        sweep_multiply(a, sweep, f->specs.v[0], &points, d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct sweep sweep = {.bytes = size % 2 ? 4096 : 0};
    struct baseline baseline;
    const char *p = arena_strndup(a, (const char *)data, size);
    while (*p && strncmp(p, "==\n", 3) != 0) {
        size_t n = strcspn(p, "\n");
        char *word = arena_strndup(a, p, n);
        if (strchr(word, '='))
            sweep_add(a, &sweep, word, d);
        else
            *VEC_PUSH(a, &sweep.cases) = word;
        p += n + (p[n] == '\n');
    }
    multiply(a, &sweep, d);
    if (*p)
        baseline_read(a, source_new(a, "base.json", p + 3, strlen(p + 3)), &baseline, d);
    struct buf out = buf_in(a);
    diags_format(d, "fuzz", false, &out);
    arena_free(a);
    return 0;
}
