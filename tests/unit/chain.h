/* Two products one after the other, as kernels that are no matmul: what the tests of the parts that
 * these share have in common.
 *
 *     s[i, j] = sum[c](q[i, c] * k[j, c])     o[i, c] = sum[j](f16(s[i, j]) * v[j, c])
 *
 * Numbers are small and whole, so that every sum is exact. The kernels run on the simulator with
 * all of its checks.
 */
#ifndef KAIO_TESTS_CHAIN_H
#define KAIO_TESTS_CHAIN_H

#include "lower/strategy.h"
#include "run/run.h"
#include "tap.h"

enum { COLUMNS = 64 };

static const char yaml[] = "kernel: chain\n"
                           "params:\n"
                           "  q: in f16[m, 64]\n"
                           "  k: in f16[n, 64]\n"
                           "  v: in f16[n, 64]\n"
                           "  o: out f32[m, 64]\n"
                           "compute: |\n"
                           "  s[i, j] = sum[c](q[i, c] * k[j, c])\n"
                           "  o[i, c] = sum[j](f16(s[i, j]) * v[j, c])\n";

/* A generator for the spec, as lower_specs() makes one for each. */
static struct cg *generator(struct arena *a, struct diags *d, const char *sm)
{
    static const struct lower_options none;
    struct spec_file *f = spec_read(a, source_new(a, "chain.yaml", yaml, strlen(yaml)), NULL, 0, d);
    const struct ptx_target *target = ptx_target_find(sm, strlen(sm));
    if (!f)
        return NULL;
    struct cg *g = ARENA_NEW(a, struct cg);
    *g = (struct cg){.a = a,
                     .d = d,
                     .target = target,
                     .opt = &none,
                     .spec = f->specs.v[0],
                     .module = ptx_module_new(a, target),
                     .bucket = ARENA_ARRAY(a, CG_BUCKETS, int32_t),
                     .reducing = ARENA_NEW(a, struct cg_reducing),
                     .inlined = ARENA_NEW(a, struct cg_inlined),
                     .spare = ARENA_NEW(a, struct cg_spare),
                     .interned = ARENA_ARRAY(a, CG_INTERNED, struct cg_text),
                     .contract = contract_of_spec(a, f->specs.v[0], target->name)};
    return g;
}

/* Of so many rows of q each. */
static struct lang_expr *blocks(struct cg *g, int64_t rows)
{
    return lx_ceil_div_int(g->a, g->spec->params.v[0].sym->dims[0], rows);
}

static const char *text_of(struct cg *g, void (*generate)(struct cg *g))
{
    struct buf header = buf_in(g->a), text = buf_in(g->a);
    generate(g);
    contract_write(g->contract, &header);
    g->module->header = buf_text(&header);
    ptx_settle_version(g->module);
    ptx_print(g->module, &text);
    return buf_text(&text);
}

/* ---- what it computes ------------------------------------------------------------------------ */

static uint16_t f16_of(int v) /* |v| < 2048 */
{
    const float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, 4);
    return v ? (uint16_t)((u >> 16 & 0x8000) | ((u >> 13 & 0x3ffff) - (112u << 10))) : 0;
}

static int number(uint32_t of, size_t i, size_t c)
{
    return (int)((3 * i + 5 * c + i * c % 7 + of) % 5) - 2;
}

static int64_t expected(size_t i, size_t c, size_t n)
{
    int64_t sum = 0;
    for (size_t j = 0; j < n; j++) {
        int s = 0;
        for (size_t x = 0; x < COLUMNS; x++)
            s += number(0, i, x) * number(1, j, x);
        sum += (int64_t)s * number(2, j, c);
    }
    return sum;
}

static uint16_t *matrix(struct arena *a, uint32_t of, size_t rows)
{
    uint16_t *m = ARENA_ARRAY(a, rows * COLUMNS, uint16_t);
    for (size_t i = 0; i < rows * COLUMNS; i++)
        m[i] = f16_of(number(of, i / COLUMNS, i % COLUMNS));
    return m;
}

static void run_sizes(struct cg *g, const char *ptx, uint32_t m, uint32_t n)
{
    struct arena *a = g->a;
    struct diags *d = diags_new(a);
    const struct device_options opt = {.check = DEVICE_CHECK_ALL};
    struct run *r = run_new(a, g->contract, d);
    struct device *dev;
    size_t wrong = 0;
    struct buf said = buf_in(a);
    run_bind_dim(r, run_find_dim(r, "m"), m, "the test");
    run_bind_dim(r, run_find_dim(r, "n"), n, "the test");
    if (!run_shapes(r) || sim_device.open(a, 0, &opt, &dev, d) != DEVICE_OK)
        abort();
    for (uint32_t i = 0; i < 3; i++)
        r->param[i].host.data = matrix(a, i, i ? n : m);
    ok(sim_device.load(dev, source_new(a, "chain.ptx", ptx, strlen(ptx)), d) == DEVICE_OK &&
           run_execute(r, g->module, &sim_device, dev, NULL, NULL) == DEVICE_OK,
       "%u x %u runs without a finding", m, n);
    diags_format(d, "lower_chain", false, &said);
    if (said.len)
        tap_note("%s", buf_text(&said));
    const float *o = r->param[3].result.data;
    for (size_t i = 0; o && i < (size_t)m * COLUMNS; i++)
        wrong += (double)o[i] != (double)expected(i / COLUMNS, i % COLUMNS, n);
    ok(o && wrong == 0, "and is right: %zu of %u are wrong", wrong, m * COLUMNS);
    sim_device.close(dev);
}

/* The test: the PTX, or with --print just that. */
static int chain_main(int argc, char **argv, const char *sm, void (*generate)(struct cg *g))
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct cg *g = generator(a, d, sm);
    if (!g)
        abort();
    const char *ptx = text_of(g, generate);
    if (argc > 1 && strcmp(argv[1], "--print") == 0) {
        fputs(ptx, stdout);
        arena_free(a);
        return 0;
    }
    ok(ptx_validate(g->module, d), "what is generated is valid PTX");
    run_sizes(g, ptx, 64, 64);
    run_sizes(g, ptx, 128, 320); /* more stages than a ring has */
    run_sizes(g, ptx, 100, 200); /* whole tiles neither way */
    arena_free(a);
    return tap_done();
}

#endif
