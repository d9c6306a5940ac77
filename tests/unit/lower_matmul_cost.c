/* The model of products by wgmma: that it ranks plans as they were measured, by others and on an
 * H100. */
#include <config.h>

#include "lower/matmul/plan.h"

#include "tap.h"

static struct matmul_form form_of(enum matmul_type type, enum dtype in, enum dtype out)
{
    static const struct lang_expr element = {.kind = E_INDEX};
    struct matmul_form f = {.type = type, .noperand = 2, .nproduct = 1};
    f.sum = type == MATMUL_INT8 ? DT_I32 : DT_F32;
    f.out_bits = dtype_bits(out);
    for (int i = 0; i < 2; i++)
        f.operand[i] = (struct matmul_operand){.side = i ? MATMUL_B : MATMUL_A,
                                               .type = in,
                                               .bits = dtype_bits(in),
                                               .plain = &element,
                                               .along_k = true};
    f.product[0].b = 1;
    return f;
}

/* A tile of 64 or 128 rows for each warpgroup, as many stages as 200 KB hold. */
static struct matmul_plan plan_of(const struct matmul_form *f, uint32_t bm, uint32_t bn)
{
    const uint32_t groups = bm == 64 ? 1 : 2, stages = (200 << 10) / ((bm + bn) * 128);
    return (struct matmul_plan){.how = MATMUL_WGMMA,
                                .type = f->type,
                                .parts = 1,
                                .bm = bm,
                                .bn = bn,
                                .bk = 1024 / dtype_bits(f->operand[0].type),
                                .wm = bm / groups,
                                .wn = bn,
                                .threads = 128 * (1 + groups),
                                .stages = stages > 12 ? 12 : stages,
                                .split = 1,
                                .group = 8,
                                .cluster = {1, 1},
                                .blocks = 132};
}

/* TFLOP/s. */
static double rate_with(const struct matmul_form *f, const struct matmul_plan *p, double m,
                        double n, double k)
{
    const struct matmul_size s = {.m = m, .n = n, .k = k, .batch = 1};
    return 2e-3 * m * n * k / matmul_cost_wgmma(f, p, &s);
}

/* Of f16. */
static double rate(const struct matmul_plan *p, double m, double n, double k)
{
    const struct matmul_form f = form_of(MATMUL_F16, DT_F16, DT_F16);
    return rate_with(&f, p, m, n, k);
}

static double rate_of(uint32_t bm, uint32_t bn, double m, double n, double k)
{
    const struct matmul_form f = form_of(MATMUL_F16, DT_F16, DT_F16);
    const struct matmul_plan p = plan_of(&f, bm, bn);
    return rate(&p, m, n, k);
}

static double clustered(uint32_t bm, uint32_t bn, double m, double n, double k)
{
    const struct matmul_form f = form_of(MATMUL_F16, DT_F16, DT_F16);
    struct matmul_plan p = plan_of(&f, bm, bn);
    p.cluster[0] = 2;
    return rate(&p, m, n, k);
}

static bool within(double x, double low, double high)
{
    printf("# %.2f, expected %g to %g\n", x, low, high);
    return x >= low && x <= high;
}

/* As measured on an H100 beside cuBLAS, whose TFLOP/s there were 672 to 711 for large squares. */
static void test_measured(void)
{
    const double small = rate_of(128, 128, 8192, 8192, 8192);
    const double large = rate_of(128, 256, 8192, 8192, 8192);
    const double shared = clustered(128, 256, 8192, 8192, 8192);
    ok(within(large / small, 1, 1.35), "128 x 256 is no slower than 128 x 128");
    ok(within(shared / large, 0.98, 1.05), "clusters change little");
    ok(within(shared, 0.9 * 677, 1.1 * 711), "which is what the library gets");
    ok(within(clustered(128, 256, 4096, 4096, 4096), 0.9 * 672, 1.1 * 706), "4096 likewise");
    ok(within(2e-6 * 512 * 4096 * 4096 / rate_of(128, 128, 512, 4096, 4096), 22, 30),
       "25 us for 512 x 4096 x 4096");
    ok(rate_of(64, 128, 1024, 1024, 1024) > 1.1 * clustered(64, 128, 1024, 1024, 1024),
       "a cluster's start is long for little work");
}

static void test_places(void)
{
    const struct matmul_form f = form_of(MATMUL_F16, DT_F16, DT_F16);
    struct matmul_plan p = plan_of(&f, 128, 256);
    p.split = 2;
    p.blocks = 0;
    const double pairs = rate(&p, 512, 4096, 4096);
    p.cluster[0] = 2;
    ok(rate(&p, 512, 4096, 4096) < 0.7 * pairs,
       "32 clusters of 4 blocks find places for 30, and take two turns");
}

static void test_turns(void)
{
    ok(rate_of(128, 256, 4096, 4096, 4096) / rate_of(128, 256, 4096, 4352, 4096) > 1.1,
       "a turn that is mostly empty costs as much as a full one");
    ok(rate_of(128, 224, 512, 14336, 4096) > rate_of(128, 256, 512, 14336, 4096),
       "tiles of odd sizes make whole turns");
    ok(rate_of(64, 128, 1024, 1024, 1024) > rate_of(128, 256, 1024, 1024, 1024),
       "small results are for small tiles");
    ok(rate_of(64, 32, 64, 4096, 4096) > rate_of(64, 256, 64, 4096, 4096) &&
           rate_of(64, 32, 64, 4096, 4096) > rate_of(128, 128, 64, 4096, 4096),
       "few rows are for many narrow tiles");
}

static void test_limits(void)
{
    const struct matmul_form f = form_of(MATMUL_F16, DT_F16, DT_F16);
    struct matmul_plan p = plan_of(&f, 128, 256);
    const double deep = rate(&p, 4096, 4096, 4096);
    p.stages = 2;
    ok(rate(&p, 4096, 4096, 4096) <= deep, "fewer stages are never faster");
    p = plan_of(&f, 64, 32);
    const double many = rate(&p, 64, 4096, 4096);
    p.stages = 2;
    ok(rate(&p, 64, 4096, 4096) < 0.8 * many, "little tiles need many on their way");
    /* 33.6 MB of weights at 3 TB/s, and a launch */
    ok(within(2e-6 * 64 * 4096 * 4096 / many, 11.2, 18), "few rows take what reading B does");
    p = plan_of(&f, 128, 256);
    const struct matmul_size none = {.m = 0, .n = 0, .k = 0, .batch = 0};
    const struct matmul_size huge = {.m = 4e18, .n = 4e18, .k = 4e18, .batch = 4e18};
    ok(isfinite(matmul_cost_wgmma(&f, &p, &none)) && isfinite(matmul_cost_wgmma(&f, &p, &huge)),
       "sizes of nothing and of too much have a cost");
}

static void test_types(void)
{
    const struct matmul_size s = {.m = 8192, .n = 8192, .k = 8192, .batch = 1};
    const struct matmul_form half = form_of(MATMUL_F16, DT_F16, DT_F16);
    const struct matmul_form single = form_of(MATMUL_TF32, DT_F32, DT_F32);
    const struct matmul_form byte = form_of(MATMUL_INT8, DT_I8, DT_I32);
    const struct matmul_plan h = plan_of(&half, 128, 256), t = plan_of(&single, 128, 256),
                             b = plan_of(&byte, 128, 256);
    const double f16 = matmul_cost_wgmma(&half, &h, &s);
    ok(within(100 * matmul_cost_wgmma(&single, &t, &s) / f16, 180, 220),
       "tf32 takes twice f16's time");
    ok(within(100 * matmul_cost_wgmma(&byte, &b, &s) / f16, 45, 60), "8 bits take half of it");
}

/* Of B computed from 8 bits by so many instructions for an element. */
static double made(uint32_t bm, uint32_t bn, uint32_t producers, unsigned weight)
{
    struct matmul_form f = form_of(MATMUL_F16, DT_F16, DT_F16);
    struct matmul_plan p = plan_of(&f, bm, bn);
    f.computes = true;
    f.operand[1].plain = NULL;
    f.operand[1].weight = weight;
    f.operand[1].bits = 8;
    p.producers = producers;
    p.threads += 128 * (producers - 1);
    return rate_with(&f, &p, 4096, 4096, 4096);
}

static void test_made(void)
{
    const double plain = rate_of(256, 128, 4096, 4096, 4096);
    ok(made(256, 128, 2, 4) > 0.9 * plain, "two producers keep up with what is light");
    ok(made(256, 128, 2, 40) < 0.8 * plain, "not with what is heavy");
    ok(made(256, 128, 2, 10) > made(128, 256, 1, 10),
       "each element is made for as many rows as there are");
}

int main(void)
{
    test_measured();
    test_places();
    test_turns();
    test_limits();
    test_types();
    test_made();
    return tap_done();
}
