/* The runner as kaio-verify and the library use it: values and buffers in memory, a device that is
 * tests/fake_cuda.c. */
#include <config.h>

#include "run/run.h"
#include "tap.h"

static const char ptx[] =
    ".version 6.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry copy(.param .u64 x, .param .u64 y, .param .u32 bytes) { ret; }\n"
    ".visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 alpha, .param .u32 n) { ret; "
    "}\n"
    ".visible .entry overrun(.param .u64 y, .param .u32 bytes) { ret; }\n"
    ".visible .entry idle() { ret; }\n";

struct setup {
    struct arena *a;
    struct diags *d;
    struct run *r;
    struct device *dev;
    struct ptx_module *m;
};

static struct setup set_up(const char *contract)
{
    struct setup s = {.a = arena_new()};
    char path[4096];
    const char *dir = getenv("KAIO_BUILDDIR");
    snprintf(path, sizeof path, "%s/tests/libfakecuda.so", dir ? dir : ".");
    setenv("KAIO_CUDA_LIB", path, 1);
    s.d = diags_new(s.a);
    struct contract_file *f =
        contract_read(s.a, source_new(s.a, "c", contract, strlen(contract)), s.d);
    const struct source *src = source_new(s.a, "k.ptx", ptx, strlen(ptx));
    s.m = ptx_parse(s.a, src, s.d);
    if (!f || !s.m ||
        cuda_device.open(s.a, 0, &(struct device_options){0}, &s.dev, s.d) != DEVICE_OK ||
        cuda_device.load(s.dev, src, s.d) != DEVICE_OK) {
        printf("Bail out! the setup fails: %s\n", s.d->list.n ? s.d->list.v[0].text : "");
        exit(1);
    }
    s.r = run_new(s.a, f->v.v[0], s.d);
    return s;
}

static void finish(struct setup *s)
{
    cuda_device.close(s->dev);
    arena_free(s->a);
}

static const char *first_text(const struct setup *s)
{
    return s->d->list.n ? s->d->list.v[0].text : "";
}

static const char twice[] =
    "kaio: 1\nkernel: twice\nparams:\n  x: in f32[n]\n  y: inout f32[n]\n  z: out f32[n]\n"
    "  alpha: f32 = 2\nlaunches:\n"
    "  - {entry: saxpy, grid: [1], block: [32], args: [x, y, alpha, n]}\n"
    "  - {entry: copy, grid: [1], block: [1], args: [y, z, u32 n * 4]}\n";

static void test_execute(void)
{
    struct setup s = set_up(twice);
    struct run_stats stats;
    float x[3] = {1, 2, 3}, y[3] = {10, 20, 30};
    ok(run_bind_dim(s.r, run_find_dim(s.r, "n"), 3, "the case 'small' has n = 3"),
       "a dimension is bound");
    ok(run_bind_scalar(s.r, run_find_param(s.r, "alpha"), 0.1, 0), "a scalar is bound");
    ok(s.r->param[3].f == (double)0.1f, "and rounded to its type");
    if (ok(run_shapes(s.r), "every shape is known")) {
        eq_int(s.r->param[2].host.bytes, 12, "the output's too");
        s.r->param[0].host.data = x;
        eq_int(run_execute(s.r, s.m, &cuda_device, s.dev, NULL, &stats), DEVICE_REFUSED,
               "an input without contents");
        eq_str(first_text(&s), "y is not given", "is refused");
        s.r->param[1].host.data = y;
        eq_int(run_execute(s.r, s.m, &cuda_device, s.dev, NULL, &stats), DEVICE_OK,
               "both launches run");
        eq_int(stats.launches, 2, "and are counted");
        const float *got = s.r->param[1].result.data, *copy = s.r->param[2].result.data;
        ok(got[0] == fmaf(0.1f, 1, 10) && memcmp(got, copy, 12) == 0,
           "the second sees what the first wrote");
        ok(y[0] == 10, "the contents before the launch are kept");
    }
    finish(&s);
}

static void test_again(void)
{
    struct setup s = set_up(twice);
    float x[2] = {1, 1}, y[2] = {0, 0}, first[2];
    run_bind_dim(s.r, run_find_dim(s.r, "n"), 2, "n=2");
    run_shapes(s.r);
    s.r->param[0].host.data = x;
    s.r->param[1].host.data = y;
    for (int i = 0; i < 2; i++) {
        struct run_options opt = {.poison = 0x11, .guard = 256};
        eq_int(run_execute(s.r, s.m, &cuda_device, s.dev, &opt, NULL), DEVICE_OK, "execution %d",
               i + 1);
        if (i == 0)
            memcpy(first, s.r->param[1].result.data, sizeof first);
    }
    ok(memcmp(first, s.r->param[1].result.data, sizeof first) == 0,
       "a second execution starts from the same");
    finish(&s);
}

static void test_guard(void)
{
    struct setup s = set_up("kaio: 1\nkernel: k\nparams:\n  y: out f32[n]\nlaunches:\n"
                            "  - {entry: overrun, grid: [1], block: [1], args: [y, u32 n * 4]}\n");
    struct run_options opt = {.poison = 0xff, .guard = 256};
    run_bind_dim(s.r, run_find_dim(s.r, "n"), 3, "n=3");
    run_shapes(s.r);
    eq_int(run_execute(s.r, s.m, &cuda_device, s.dev, &opt, NULL), DEVICE_FAULT,
           "a write past the end is found");
    eq_str(first_text(&s), "the kernel wrote byte 12 of y (f32[n]), which has 12 bytes",
           "and said");
    finish(&s);
}

static void test_poison(void)
{
    struct setup s = set_up("kaio: 1\nkernel: k\nparams:\n  y: out u8[n]\nlaunches:\n"
                            "  - {entry: idle, grid: [1], block: [1], args: []}\n");
    struct run_options opt = {.poison = 0x5a};
    uint64_t n = 3 << 20;
    run_bind_dim(s.r, run_find_dim(s.r, "n"), (int64_t)n, "n");
    run_shapes(s.r);
    eq_int(run_execute(s.r, s.m, &cuda_device, s.dev, &opt, NULL), DEVICE_OK,
           "a kernel that writes nothing");
    const unsigned char *y = s.r->param[0].result.data;
    uint64_t same = 0;
    for (uint64_t i = 0; i < n; i++)
        same += y[i] == 0x5a;
    eq_int(same, n, "leaves the poison, in every byte");
    finish(&s);
}

static void test_bind(void)
{
    struct setup s = set_up(twice);
    struct run_dim *n = run_find_dim(s.r, "n");
    struct buffer b;
    uint64_t dim[2] = {4, 4};
    ok(!run_find_dim(s.r, "x") && !run_find_param(s.r, "n"),
       "dimensions and parameters are told apart");
    buffer_shape(&b, DT_F32, 1, dim);
    buffer_alloc(s.a, &b, NULL);
    ok(run_bind_buffer(s.r, &s.r->param[0], &b) && n->known && n->value == 4,
       "a buffer binds its dimensions");
    ok(!run_bind_dim(s.r, n, 5, "the case 'odd' has n = 5"), "which then are what they are");
    eq_str(first_text(&s), "x is f32[4], so n is 4, but the case 'odd' has n = 5",
           "and the message has both");
    s.d->list.n = 0;
    buffer_shape(&b, DT_F32, 2, dim);
    ok(!run_bind_buffer(s.r, &s.r->param[1], &b), "a wrong rank is refused");
    eq_str(first_text(&s), "y is f32[4, 4], the kernel declares f32[n]", "with both types");
    s.d->list.n = 0;
    ok(!run_bind_dim(s.r, n, -1, "n is -1"), "a negative dimension is refused");
    ok(!run_bind_scalar(s.r, run_find_param(s.r, "alpha"), (double)NAN, 0), "so is NaN");
    finish(&s);
}

static void test_time(void)
{
    struct setup s = set_up(twice);
    struct run_timing t;
    float x[2] = {1, 1}, y[2] = {0, 0};
    run_bind_dim(s.r, run_find_dim(s.r, "n"), 2, "n=2");
    run_shapes(s.r);
    s.r->param[0].host.data = x;
    s.r->param[1].host.data = y;
    eq_int(run_time(s.r, &cuda_device, s.dev, 5, &t), DEVICE_OK, "a run is timed");
    eq_int(t.n, 5, "five times");
    ok(t.per_sample > 1, "each time a graph of them");
    ok(t.median >= 20e-6 && t.max < 20.5e-6, "of which both launches count, 10 us each");
    eq_int(t.bytes, 8 + 2 * 8 + 8, "in and out once, inout twice");
    ok(t.copy_median > 1.9e-6 && t.copy_median < 2.2e-6, "beside a copy");
    finish(&s);
}

int main(void)
{
    test_execute();
    test_again();
    test_guard();
    test_poison();
    test_bind();
    test_time();
    return tap_done();
}
