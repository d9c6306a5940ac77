/* cuBLAS behind run/blas.h, against tests/fake_cublas.c on tests/fake_cuda.c: whatever the layout,
 * the product is the one that was asked for, and the arguments are such as the library takes. */
#include <config.h>

#include "run/blas.h"
#include "tap.h"

#include <math.h>

static const char *path_of(const char *name)
{
    static char path[4][4096];
    static unsigned next;
    char *p = path[next++ % 4];
    const char *dir = getenv("KAIO_BUILDDIR");
    snprintf(p, sizeof *path, "%s/tests/%s", dir ? dir : ".", name);
    return p;
}

struct setup {
    struct arena *a;
    struct diags *d;
    struct device *dev;
    bool good;
};

static struct setup begin(void)
{
    static const struct device_options none;
    struct setup s = {.a = arena_new()};
    s.d = diags_new(s.a);
    unsetenv("FAKE_CUBLAS_STATUS");
    unsetenv("FAKE_CUBLAS_CHOICES");
    setenv("FAKE_CUDA_MEMORY", "100000000", 1);
    setenv("KAIO_CUDA_LIB", path_of("libfakecuda.so"), 1);
    setenv("KAIO_CUBLAS_LIB", path_of("libfakecublas.so"), 1);
    setenv("KAIO_CUBLASLT_LIB", path_of("libfakecublas.so"), 1);
    s.good = cuda_device.open(s.a, 0, &none, &s.dev, s.d) == DEVICE_OK;
    return s;
}

static void end(struct setup *s)
{
    cuda_device.close(s->dev);
    arena_free(s->a);
}

static bool said(const struct setup *s, const char *text)
{
    for (size_t i = 0; i < s->d->list.n; i++)
        if (strstr(s->d->list.v[i].text, text))
            return true;
    return false;
}

/* ---- products ---- */

/* Element e of a matrix as it is stored: small whole numbers. */
static double value(uint64_t e, unsigned seed)
{
    return (double)((e * 7 + seed * 3) % 11) - 5;
}

static uint64_t upload(struct setup *s, const struct blas_matrix *m, uint64_t n, unsigned seed)
{
    uint64_t at = 0, bytes = dtype_bytes(m->type, (size_t)n);
    unsigned char *p = arena_alloc(s->a, (size_t)bytes);
    for (uint64_t e = 0; e < n; e++)
        dtype_set(m->type, p, (size_t)e, value(e, seed));
    cuda_device.alloc(s->dev, bytes, NULL, &at, s->d);
    cuda_device.write(s->dev, at, p, bytes, s->d);
    return at;
}

static double expected(const struct blas_product *p, uint64_t x, uint64_t i, uint64_t j)
{
    double sum = 0;
    for (uint64_t l = 0; l < p->k; l++)
        sum += value(x * p->a.stride + (p->a.swapped ? l * p->a.ld + i : i * p->a.ld + l), 1) *
               value(x * p->b.stride + (p->b.swapped ? j * p->b.ld + l : l * p->b.ld + j), 2);
    return sum;
}

static bool result_is_right(struct setup *s, const struct blas_product *p, uint64_t at)
{
    uint64_t n = p->batch * p->m * p->n;
    unsigned char *c = arena_alloc(s->a, dtype_bytes(p->c.type, (size_t)n));
    cuda_device.read(s->dev, c, at, dtype_bytes(p->c.type, (size_t)n), s->d);
    for (uint64_t e = 0; e < n; e++) {
        double want = expected(p, e / (p->m * p->n), e / p->n % p->m, e % p->n);
        if (dtype_get(p->c.type, c, (size_t)e) != dtype_round(p->c.type, want))
            return false;
    }
    return true;
}

/* Plans and executes it, at once and from a graph, with each choice that the library does not
 * refuse. */
static bool try_product(struct setup *s, const struct blas_product *p, unsigned choices)
{
    const struct device_blas *lib = cuda_device.blas;
    const struct device_queue *q = cuda_device.queue;
    struct blas_plan *plan;
    struct device_graph *graph;
    bool good = true;
    if (lib->plan(s->dev, p, choices, &plan, s->d) != DEVICE_OK)
        return false;
    uint64_t a = upload(s, &p->a, (p->batch - 1) * p->a.stride + p->m * p->k + p->a.ld * 8, 1);
    uint64_t b = upload(s, &p->b, (p->batch - 1) * p->b.stride + p->n * p->k + p->b.ld * 8, 2);
    uint64_t c = upload(s, &p->c, p->batch * p->m * p->n, 3);
    for (unsigned i = 0; i < lib->choices(plan) && (i == 0 || i + 1 < lib->choices(plan)); i++) {
        q->fill(s->dev, c, 0xff, dtype_bytes(p->c.type, (size_t)(p->batch * p->m * p->n)), s->d);
        good &= lib->multiply(s->dev, plan, i, a, b, c, s->d) == DEVICE_OK;
        good &= q->wait(s->dev, NULL, s->d) == DEVICE_OK && result_is_right(s, p, c);
        q->fill(s->dev, c, 0xff, dtype_bytes(p->c.type, (size_t)(p->batch * p->m * p->n)), s->d);
        good &= q->record(s->dev, s->d) == DEVICE_OK;
        good &= lib->multiply(s->dev, plan, i, a, b, c, s->d) == DEVICE_OK;
        good &= q->recorded(s->dev, &graph, s->d) == DEVICE_OK && !result_is_right(s, p, c);
        good &= q->replay(s->dev, graph, s->d) == DEVICE_OK;
        good &= q->wait(s->dev, NULL, s->d) == DEVICE_OK && result_is_right(s, p, c);
        q->discard(s->dev, graph);
    }
    lib->discard(s->dev, plan);
    cuda_device.release(s->dev, a);
    cuda_device.release(s->dev, b);
    cuda_device.release(s->dev, c);
    return good;
}

static struct blas_product product(enum dtype in, enum dtype out, enum blas_math math, bool sa,
                                   bool sb, uint64_t batch, uint64_t more)
{
    enum { M = 3, N = 5, K = 4 };
    uint64_t lda = (sa ? M : K) + more, ldb = (sb ? K : N) + more;
    return (struct blas_product){.batch = batch,
                                 .m = M,
                                 .n = N,
                                 .k = K,
                                 .math = math,
                                 .a = {in, sa, lda, batch > 1 ? 8 * lda : 0},
                                 .b = {in, sb, ldb, batch > 1 ? 9 * ldb : 0},
                                 .c = {out, false, N, M * N}};
}

static void test_layouts(void)
{
    struct setup s = begin();
    for (int i = 0; i < 32; i++) {
        const struct blas_product p =
            product(DT_F32, DT_F32, BLAS_F32, i & 1, i & 2, i & 4 ? 3 : 1, i & 8 ? 2 : 0);
        ok(s.good && try_product(&s, &p, i & 16 ? BLAS_CHOICES_MOST : 1),
           "%s %c%c, %s, rows at a distance of %s", i & 16 ? "cublasLt" : "cublas",
           i & 1 ? 'T' : 'N', i & 2 ? 'T' : 'N', i & 4 ? "3 of them" : "one",
           i & 8 ? "more than their length" : "their length");
    }
    ok(strncmp(cuda_device.blas->version(s.dev), "cuBLAS 13.1.2", 13) == 0, "the version");
    end(&s);
}

static void test_types(void)
{
    static const struct {
        enum dtype in, out;
        enum blas_math math;
    } v[] = {
        {DT_F16, DT_F16, BLAS_F32},  {DT_F16, DT_F32, BLAS_F32},  {DT_BF16, DT_BF16, BLAS_F32},
        {DT_F32, DT_F32, BLAS_TF32}, {DT_F64, DT_F64, BLAS_F64},  {DT_I8, DT_I32, BLAS_I32},
        {DT_E4M3, DT_F16, BLAS_F32}, {DT_E5M2, DT_F32, BLAS_F32},
    };
    struct setup s = begin();
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        for (unsigned choices = 1; choices < 3; choices++) {
            const struct blas_product p = product(v[i].in, v[i].out, v[i].math, false, true, 1, 0);
            ok(s.good && try_product(&s, &p, choices), "%s to %s, %u choice%s", dtype_name(v[i].in),
               dtype_name(v[i].out), choices, choices > 1 ? "s" : "");
        }
    end(&s);
}

static void test_refusals(void)
{
    const struct device_blas *lib = cuda_device.blas;
    struct blas_plan *plan;
    struct setup s = begin();
    struct blas_product p = product(DT_U8, DT_I32, BLAS_I32, false, true, 1, 0);
    ok(lib->plan(s.dev, &p, 1, &plan, s.d) == DEVICE_REFUSED && said(&s, "no products of u8"),
       "a type that the library lacks");
    p = product(DT_E4M3, DT_F16, BLAS_F32, false, false, 1, 0);
    ok(lib->plan(s.dev, &p, 1, &plan, s.d) == DEVICE_REFUSED && said(&s, "not supported (15)"),
       "a layout that it refuses");
    p = product(DT_F32, DT_F32, BLAS_F32, false, false, 1, 0);
    p.m = UINT64_C(1) << 31;
    ok(lib->plan(s.dev, &p, 1, &plan, s.d) == DEVICE_REFUSED && said(&s, "too large"),
       "sizes beyond its own integers");
    setenv("FAKE_CUBLAS_STATUS", "13", 1);
    p.m = 3;
    ok(lib->plan(s.dev, &p, 1, &plan, s.d) == DEVICE_OK &&
           lib->multiply(s.dev, plan, 0, 256, 256, 256, s.d) == DEVICE_FAILED &&
           said(&s, "cublasGemmEx: the GPU failed (13)"),
       "a call that fails is named");
    lib->discard(s.dev, plan);
    end(&s);
}

static void test_absent(void)
{
    struct blas_plan *plan;
    const struct blas_product p = product(DT_F32, DT_F32, BLAS_F32, false, false, 1, 0);
    struct setup s = begin();
    setenv("KAIO_CUBLAS_LIB", "/nonexistent/libcublas.so", 1);
    ok(cuda_device.blas->plan(s.dev, &p, 1, &plan, s.d) == DEVICE_ABSENT &&
           said(&s, "KAIO_CUBLAS_LIB: /nonexistent/libcublas.so: cannot open"),
       "no library");
    setenv("KAIO_CUBLAS_LIB", path_of("libfakecuda.so"), 1);
    ok(cuda_device.blas->plan(s.dev, &p, 1, &plan, s.d) == DEVICE_ABSENT &&
           said(&s, "libcublas.so has no cublasCreate_v2"),
       "another library");
    end(&s);
    s = begin();
    setenv("KAIO_CUBLASLT_LIB", "/nonexistent", 1);
    ok(cuda_device.blas->plan(s.dev, &p, 2, &plan, s.d) == DEVICE_ABSENT &&
           said(&s, "KAIO_CUBLASLT_LIB: /nonexistent"),
       "one of the two only");
    end(&s);
    s = begin();
    setenv("FAKE_CUBLAS_CHOICES", "0", 1);
    ok(cuda_device.blas->plan(s.dev, &p, 2, &plan, s.d) == DEVICE_REFUSED,
       "a library that finds nothing");
    end(&s);
}

int main(void)
{
    test_layouts();
    test_types();
    test_refusals();
    test_absent();
    return tap_done();
}
