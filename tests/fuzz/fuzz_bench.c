/* Any bytes as words of a sweep, one a line, multiplied out over a spec; and, behind a line "==",
 * as a baseline and as a cache of schedules, which the spec is given where they are for it. */
#include <config.h>

#include "bench/baseline.h"
#include "lower/tuned.h"

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

static void tune(struct arena *a, const struct source *cache_text, struct diags *d)
{
    const struct source *src = source_new(a, "k.yaml", text, sizeof text - 1);
    struct spec_file *f = spec_read(a, src, NULL, 0, d);
    struct tuned_cache cache;
    bool exact;
    const char *why;
    if (!f || !tuned_parse(a, cache_text, &cache, d))
        return;
    /* whatever its hash was: it is the spec's */
    for (size_t i = 0; i < cache.v.n; i++)
        cache.v.v[i].hash = tuned_hash(a, f->specs.v[0]);
    tuned_apply(a, &cache, f->specs.v[0], NULL, 0, ptx_target_find("sm_80", 5), NULL, &exact, &why);
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
    if (*p) {
        const struct source *rest = source_new(a, "base.json", p + 3, strlen(p + 3));
        baseline_read(a, rest, &baseline, d);
        tune(a, rest, d);
    }
    struct buf out = buf_in(a);
    diags_format(d, "fuzz", false, &out);
    arena_free(a);
    return 0;
}
