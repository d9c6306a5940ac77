/* A libcublas.so and a libcublasLt.so in one, for machines without a GPU, on top of
 * tests/fake_cuda.c (KAIO_CUBLAS_LIB, KAIO_CUBLASLT_LIB). Products are computed, by columns as the
 * library documents them; arguments that the real one refuses are refused. A product takes time as
 * a launch of "gemm", or of "lt0", "lt1", ... by its choice, does (FAKE_CUDA_US).
 *
 *     FAKE_CUDA_LOG=FILE         a line for each plan and product
 *     FAKE_CUBLAS_CHOICES=N (3)  what the heuristic finds; the last of several is refused when it
 *                                is tried
 *     FAKE_CUBLAS_STATUS=N       every product fails with this status
 */
#include <config.h>

#include "data/dtype.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API(name, ...)     \
    int name(__VA_ARGS__); \
    int name(__VA_ARGS__)

enum { INVALID = 7, UNSUPPORTED = 15, WORKSPACE = 32 << 20 };

__attribute__((format(printf, 1, 2))) static void record(const char *fmt, ...)
{
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f)
        return;
    va_list ap;
    va_start(ap, fmt);
    vfprintf(f, fmt, ap);
    va_end(ap);
    fputc('\n', f);
    fclose(f);
}

static long setting(const char *name, long otherwise)
{
    const char *s = getenv(name);
    return s && *s ? atol(s) : otherwise;
}

/* cudaDataType_t */
static enum dtype type_of(int t)
{
    switch (t) {
    case 0: return DT_F32;
    case 1: return DT_F64;
    case 2: return DT_F16;
    case 3: return DT_I8;
    case 10: return DT_I32;
    case 14: return DT_BF16;
    case 28: return DT_E4M3;
    case 29: return DT_E5M2;
    default: return DT_VOID;
    }
}

/* ---- a product by columns ---- */

struct matrix {
    int type;
    uint64_t rows, cols; /* as stored */
    int64_t ld, stride;
};
/* What a product is, while it waits in the queue; kept to the end, since graphs may have it. */
struct product {
    struct product *next;
    int ta, tb, m, n, k, batch, compute;
    struct matrix a, b, c;
};

static double element(const struct matrix *m, const void *p, int64_t batch, int row, int col)
{
    return dtype_get(type_of(m->type), p, (size_t)(batch * m->stride + (int64_t)col * m->ld + row));
}

/* Of tf32 it rounds factors, or (how, FAKE_CUBLAS_CUT) leaves bits out, or (2) takes them as they
 * are. */
static double taken(const struct product *p, long how, double v)
{
    return p->compute != 77 || how > 1 ? v
           : how                       ? tf32_cut_from_double(v)
                                       : tf32_even_from_double(v);
}

static void multiply(const uint64_t *value)
{
    const struct product *p = (const struct product *)(uintptr_t)value[3];
    const void *a = (const void *)(uintptr_t)value[1], *b = (const void *)(uintptr_t)value[2];
    void *c = (void *)(uintptr_t)value[0];
    const long how = setting("FAKE_CUBLAS_CUT", 0);
    for (int x = 0; x < p->batch; x++)
        for (int j = 0; j < p->n; j++)
            for (int i = 0; i < p->m; i++) {
                double sum = 0;
                for (int l = 0; l < p->k; l++)
                    sum += taken(p, how, element(&p->a, a, x, p->ta ? l : i, p->ta ? i : l)) *
                           taken(p, how, element(&p->b, b, x, p->tb ? j : l, p->tb ? l : j));
                dtype_set(type_of(p->c.type), c,
                          (size_t)(x * p->c.stride + (int64_t)j * p->c.ld + i), sum);
            }
}

/* Whether matrix m holds op(m) of rows x cols, and its columns do not overlap. */
static bool holds(const struct matrix *m, int transposed, int rows, int cols)
{
    return m->rows == (uint64_t)(transposed ? cols : rows) &&
           m->cols == (uint64_t)(transposed ? rows : cols) && m->ld >= (int64_t)m->rows &&
           type_of(m->type) != DT_VOID;
}

static const char *type_name(const struct matrix *m)
{
    return type_of(m->type) == DT_VOID ? "?" : dtype_name(type_of(m->type));
}

static bool goes_together(const struct product *p)
{
    bool same = p->a.type == p->b.type, fp8 = p->a.type >= 28 && p->b.type >= 28;
    return p->compute == 72 ? same && p->a.type == 3 && p->c.type == 10
                            : (same || fp8) && (p->a.type != 3);
}

static int check(const struct product *p)
{
    long status = setting("FAKE_CUBLAS_STATUS", 0);
    if (status)
        return (int)status;
    if (p->m <= 0 || p->n <= 0 || p->k <= 0 || !holds(&p->a, p->ta, p->m, p->k) ||
        !holds(&p->b, p->tb, p->k, p->n) || !holds(&p->c, 0, p->m, p->n))
        return INVALID;
    return goes_together(p) ? 0 : UNSUPPORTED;
}

static struct product *all;

static int queue(void *stream, const char *f, const struct product *p, const void *a, const void *b,
                 void *c)
{
    void *driver = dlopen(getenv("KAIO_CUDA_LIB"), RTLD_NOW | RTLD_NOLOAD);
    int (*call)(void *, const char *, void (*)(const uint64_t *), const uint64_t *, size_t);
    void *found = driver ? dlsym(driver, "fakeCall") : NULL;
    struct product *kept = malloc(sizeof *kept);
    if (!found || !kept)
        return 14;
    memcpy(&call, &found, sizeof call);
    *kept = *p;
    kept->next = all;
    all = kept;
    record("%s %c%c m %d n %d k %d batch %d: %s ld %lld stride %lld, %s ld %lld stride %lld, %s ld "
           "%lld, compute %d",
           f + strlen(".entry "), p->ta ? 'T' : 'N', p->tb ? 'T' : 'N', p->m, p->n, p->k, p->batch,
           type_name(&p->a), (long long)p->a.ld, (long long)p->a.stride, type_name(&p->b),
           (long long)p->b.ld, (long long)p->b.stride, type_name(&p->c), (long long)p->c.ld,
           p->compute);
    const uint64_t value[] = {(uint64_t)(uintptr_t)c, (uint64_t)(uintptr_t)a,
                              (uint64_t)(uintptr_t)b, (uint64_t)(uintptr_t)kept};
    return call(stream, f, multiply, value, 4) ? 13 : 0;
}

/* ---- cublas ---- */

struct handle {
    void *stream, *workspace;
    size_t bytes;
};

API(cublasCreate_v2, struct handle **h)
{
    *h = calloc(1, sizeof **h);
    return *h ? 0 : 3;
}

API(cublasDestroy_v2, struct handle *h)
{
    record("cublas destroyed");
    free(h);
    return 0;
}

API(cublasGetVersion_v2, struct handle *h, int *version)
{
    *version = 130102;
    return h ? 0 : 1;
}

API(cublasSetStream_v2, struct handle *h, void *stream)
{
    h->stream = stream;
    h->workspace = NULL; /* as documented */
    return 0;
}

API(cublasSetWorkspace_v2, struct handle *h, void *p, size_t bytes)
{
    h->workspace = p;
    h->bytes = bytes;
    return p ? 0 : INVALID;
}

static bool is_scale(const void *p, int compute, int want)
{
    return compute == 70   ? *(const double *)p == want
           : compute == 72 ? *(const int *)p == want
                           : *(const float *)p == (float)want;
}

API(cublasGemmStridedBatchedEx, struct handle *h, int ta, int tb, int m, int n, int k,
    const void *alpha, const void *a, int at, int lda, long long sa, const void *b, int bt, int ldb,
    long long sb, const void *beta, void *c, int ct, int ldc, long long sc, int batch, int compute,
    int algorithm)
{
    const struct product p = {
        .ta = ta,
        .tb = tb,
        .m = m,
        .n = n,
        .k = k,
        .batch = batch,
        .compute = compute,
        .a = {at, (uint64_t)(ta ? k : m), (uint64_t)(ta ? m : k), lda, sa},
        .b = {bt, (uint64_t)(tb ? n : k), (uint64_t)(tb ? k : n), ldb, sb},
        .c = {ct, (uint64_t)m, (uint64_t)n, ldc, sc},
    };
    int status = check(&p);
    if (status)
        return status;
    if (!h->stream || h->bytes < WORKSPACE || !h->workspace || algorithm != -1 || at >= 28 ||
        !is_scale(alpha, compute, 1) || !is_scale(beta, compute, 0))
        return INVALID;
    return queue(h->stream, ".entry gemm(", &p, a, b, c);
}

API(cublasGemmEx, struct handle *h, int ta, int tb, int m, int n, int k, const void *alpha,
    const void *a, int at, int lda, const void *b, int bt, int ldb, const void *beta, void *c,
    int ct, int ldc, int compute, int algorithm)
{
    return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, at, lda, 0, b, bt, ldb, 0, beta,
                                      c, ct, ldc, 0, 1, compute, algorithm);
}

/* ---- cublasLt ---- */

struct desc {
    int compute, scale, ta, tb;
};
struct layout {
    struct matrix m;
    int batch;
};
struct choice {
    uint64_t algorithm[8];
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
};

API(cublasLtCreate, int **h)
{
    static int one;
    *h = &one;
    return 0;
}

API(cublasLtDestroy, int *h)
{
    record("cublasLt destroyed");
    return h ? 0 : 1;
}

API(cublasLtMatmulDescCreate, struct desc **d, int compute, int scale)
{
    *d = calloc(1, sizeof **d);
    if (*d)
        **d = (struct desc){.compute = compute, .scale = scale};
    return *d ? 0 : 3;
}

API(cublasLtMatmulDescDestroy, struct desc *d)
{
    free(d);
    return 0;
}

API(cublasLtMatmulDescSetAttribute, struct desc *d, int attribute, const int32_t *v, size_t bytes)
{
    if (bytes != 4 || (attribute != 3 && attribute != 4))
        return INVALID;
    *(attribute == 3 ? &d->ta : &d->tb) = *v;
    return 0;
}

API(cublasLtMatrixLayoutCreate, struct layout **l, int type, uint64_t rows, uint64_t cols,
    int64_t ld)
{
    *l = calloc(1, sizeof **l);
    if (*l)
        **l = (struct layout){.m = {type, rows, cols, ld, 0}, .batch = 1};
    return *l ? 0 : 3;
}

API(cublasLtMatrixLayoutDestroy, struct layout *l)
{
    free(l);
    return 0;
}

API(cublasLtMatrixLayoutSetAttribute, struct layout *l, int attribute, const void *v, size_t bytes)
{
    if (attribute == 5 && bytes == 4)
        memcpy(&l->batch, v, 4);
    else if (attribute == 6 && bytes == 8)
        memcpy(&l->m.stride, v, 8);
    else
        return INVALID;
    return 0;
}

API(cublasLtMatmulPreferenceCreate, uint64_t **p)
{
    *p = calloc(1, sizeof **p);
    return *p ? 0 : 3;
}

API(cublasLtMatmulPreferenceDestroy, uint64_t *p)
{
    free(p);
    return 0;
}

API(cublasLtMatmulPreferenceSetAttribute, uint64_t *p, int attribute, const void *v, size_t bytes)
{
    if (attribute != 1 || bytes != 8)
        return INVALID;
    memcpy(p, v, 8);
    return 0;
}

static struct product product_of(const struct desc *d, const struct layout *a,
                                 const struct layout *b, const struct layout *c)
{
    return (struct product){.ta = d->ta,
                            .tb = d->tb,
                            .m = (int)c->m.rows,
                            .n = (int)c->m.cols,
                            .k = (int)(d->ta ? a->m.rows : a->m.cols),
                            .batch = c->batch,
                            .compute = d->compute,
                            .a = a->m,
                            .b = b->m,
                            .c = c->m};
}

static int check_lt(const struct desc *d, const struct layout *a, const struct layout *b,
                    const struct layout *c)
{
    const struct product p = product_of(d, a, b, c);
    int scale = d->compute == 70 ? 1 : d->compute == 72 ? 10 : 0;
    if (d->scale != scale || a->batch != c->batch || b->batch != c->batch)
        return INVALID;
    /* k last, on both sides */
    if ((p.a.type == 3 || p.a.type >= 28) && (!p.ta || p.tb))
        return UNSUPPORTED;
    return check(&p);
}

API(cublasLtMatmulAlgoGetHeuristic, int *h, struct desc *d, struct layout *a, struct layout *b,
    struct layout *c, struct layout *e, uint64_t *preference, int wanted, struct choice *v, int *n)
{
    int status = check_lt(d, a, b, c);
    long has = setting("FAKE_CUBLAS_CHOICES", 3);
    if (!h || status || c != e || *preference != WORKSPACE)
        return status ? status : INVALID;
    *n = (int)(has < wanted ? has : wanted);
    record("heuristic: %d of %d wanted", *n, wanted);
    for (int i = 0; i < *n; i++)
        v[i] = (struct choice){.algorithm = {(uint64_t)i, (uint64_t)*n}};
    return 0;
}

API(cublasLtMatmulAlgoConfigGetAttribute, const uint64_t *algorithm, int attribute, void *v,
    size_t bytes, size_t *written)
{
    int32_t value = (int32_t)algorithm[0] * 10 + attribute;
    if (bytes != 4)
        return INVALID;
    memcpy(v, &value, 4);
    *written = 4;
    return 0;
}

API(cublasLtMatmul, int *h, struct desc *d, const void *alpha, const void *a, struct layout *al,
    const void *b, struct layout *bl, const void *beta, const void *c, struct layout *cl, void *to,
    struct layout *tl, const uint64_t *algorithm, void *workspace, size_t bytes, void *stream)
{
    static const char *const names[] = {".entry lt0(", ".entry lt1(", ".entry lt2(", ".entry lt3("};
    int status = check_lt(d, al, bl, cl);
    if (status)
        return status;
    if (!h || c != to || cl != tl || !workspace || bytes < WORKSPACE ||
        !is_scale(alpha, d->compute, 1) || !is_scale(beta, d->compute, 0))
        return INVALID;
    if (algorithm[1] > 1 && algorithm[0] + 1 == algorithm[1])
        return UNSUPPORTED;
    const struct product p = product_of(d, al, bl, cl);
    return queue(stream, names[algorithm[0] & 3], &p, a, b, to);
}
