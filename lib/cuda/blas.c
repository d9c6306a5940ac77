/* cuBLAS behind run/blas.h. It works in the primary context, which is the one that is current here,
 * and on the queue's stream.
 *
 * cuBLAS thinks by columns: what is stored as rows of n elements it calls a matrix of n rows. So it
 * is asked for the transposed product, c^T = b^T a^T, with b as its first operand, and nothing is
 * moved.
 */
#include <config.h>

#include "cuda/blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/driver.h"

/* cublas_api.h, cublasLt.h, library_types.h */
enum { OP_N = 0, OP_T = 1, GEMM_DEFAULT = -1 };
enum {
    COMPUTE_32F = 68,
    COMPUTE_64F = 70,
    COMPUTE_32I = 72,
    COMPUTE_32F_FAST_TF32 = 77,
};
enum {
    R_32F = 0,
    R_64F = 1,
    R_16F = 2,
    R_8I = 3,
    R_32I = 10,
    R_16BF = 14,
    R_E4M3 = 28,
    R_E5M2 = 29
};
enum { STATUS_ALLOC_FAILED = 3, STATUS_INVALID_VALUE = 7, STATUS_NOT_SUPPORTED = 15 };
enum { LAYOUT_BATCH_COUNT = 5, LAYOUT_BATCH_STRIDE = 6 };
enum { DESC_TRANSA = 3, DESC_TRANSB = 4 };
enum { PREFERENCE_WORKSPACE = 1 };
enum { ALGORITHM_ID = 0, ALGORITHM_TILE = 1, ALGORITHM_SPLIT_K = 2, ALGORITHM_STAGES = 6 };

struct blas_plan {
    struct blas_product p;
    bool lt;
    /* lt: */
    struct lt_desc_ *desc;
    struct lt_layout_ *a, *b, *c;
    struct lt_choice choice[BLAS_CHOICES_MOST];
    unsigned nchoice;
};

static const char *status_name(int status)
{
    switch (status) {
    case 1: return "not initialised";
    case STATUS_ALLOC_FAILED: return "no memory left";
    case STATUS_INVALID_VALUE: return "not a value that it takes";
    case 8: return "not for this GPU";
    case 11: return "mapping error";
    case 13: return "the GPU failed";
    case 14: return "internal error";
    case STATUS_NOT_SUPPORTED: return "not supported";
    case 16: return "licence error";
    default: return "unknown error";
    }
}

static enum device_status failed(struct diags *d, int status, const char *function)
{
    diag_error(d, SPAN_NONE, "%s: %s (%d)", function, status_name(status), status);
    return status == STATUS_NOT_SUPPORTED || status == STATUS_INVALID_VALUE ? DEVICE_REFUSED
                                                                            : DEVICE_FAILED;
}

/* ---- loading ---- */

struct function {
    const char *symbol;
    size_t offset;
};
static const struct function blas_functions[] = {
#define BLAS(name, symbol, params) {symbol, offsetof(struct blas, name)},
#include "cuda/blas.def"
};
static const struct function lt_functions[] = {
#define LT(name, symbol, params) {symbol, offsetof(struct blas, Lt##name)},
#include "cuda/blas.def"
};

/* The newest of a library, where the loader or a toolkit has it; or the one that the environment
 * names. */
static void *open_library(struct arena *a, const char *name, const char *variable, struct diags *d)
{
    static const char *const where[] = {"%s.13", "%s.12", "%s.11", "/usr/local/cuda/lib64/%s"};
    const char *env = getenv(variable);
    if (env && *env) {
        void *library = dlopen(env, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            diag_error(d, SPAN_NONE, "%s: %s", variable, dlerror());
        return library;
    }
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        struct buf path = buf_in(a);
        const char *mark = strstr(where[i], "%s");
        buf_printf(&path, "%.*s%s%s", (int)(mark - where[i]), where[i], name, mark + 2);
        void *library = dlopen(buf_text(&path), RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    diag_error(d, SPAN_NONE,
               "there is no %s.13, .12 or .11 here; %s may name the file of one, as CUDA's toolkit "
               "and PyTorch bring it",
               name, variable);
    return NULL;
}

static bool find_functions(struct blas *b, void *library, const struct function *f, size_t n,
                           const char *name, struct diags *d)
{
    for (size_t i = 0; i < n; i++) {
        void *p = dlsym(library, f[i].symbol);
        if (!p)
            return diag_error(d, SPAN_NONE, "%s has no %s; is it of CUDA 11 or newer?", name,
                              f[i].symbol);
        memcpy((char *)b + f[i].offset, &p, sizeof p);
    }
    return true;
}

static enum device_status workspace(struct device *dev, struct diags *d)
{
    if (dev->blas.workspace)
        return DEVICE_OK;
    cu_result r = dev->cu.MemAlloc(&dev->blas.workspace, BLAS_WORKSPACE);
    return r == CU_SUCCESS ? DEVICE_OK : cu_failed(dev, d, r, "no workspace for cuBLAS");
}

static enum device_status open_blas(struct device *dev, struct diags *d)
{
    struct blas *b = &dev->blas;
    int version = 0;
    if (b->handle)
        return DEVICE_OK;
    if (!b->library)
        b->library = open_library(dev->arena, "libcublas.so", "KAIO_CUBLAS_LIB", d);
    if (!b->library ||
        !find_functions(b, b->library, blas_functions,
                        sizeof blas_functions / sizeof *blas_functions, "libcublas.so", d))
        return DEVICE_ABSENT;
    enum device_status status = workspace(dev, d);
    if (status == DEVICE_OK)
        status = cu_queue_stream(dev, d);
    if (status != DEVICE_OK)
        return status;
    struct blas_handle_ *handle = NULL;
    const char *call = "cublasCreate";
    int r = b->Create(&handle);
    if (r != 0)
        return failed(d, r, call);
    /* in this order: a new stream takes the workspace away */
    if ((r = b->SetStream(handle, dev->stream)) != 0)
        call = "cublasSetStream";
    else if ((r = b->SetWorkspace(handle, (void *)(uintptr_t)b->workspace, BLAS_WORKSPACE)) != 0)
        call = "cublasSetWorkspace";
    if (r != 0) {
        b->Destroy(handle);
        return failed(d, r, call);
    }
    b->handle = handle;
    b->GetVersion(b->handle, &version);
    snprintf(b->name, sizeof b->name, "cuBLAS %d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    return DEVICE_OK;
}

static enum device_status open_lt(struct device *dev, struct diags *d)
{
    struct blas *b = &dev->blas;
    enum device_status status = open_blas(dev, d); /* which knows the version, too */
    if (status != DEVICE_OK || b->lt_handle)
        return status;
    if (!b->lt_library)
        b->lt_library = open_library(dev->arena, "libcublasLt.so", "KAIO_CUBLASLT_LIB", d);
    if (!b->lt_library ||
        !find_functions(b, b->lt_library, lt_functions, sizeof lt_functions / sizeof *lt_functions,
                        "libcublasLt.so", d))
        return DEVICE_ABSENT;
    int r = b->LtCreate(&b->lt_handle);
    if (r == 0)
        return DEVICE_OK;
    b->lt_handle = NULL;
    return failed(d, r, "cublasLtCreate");
}

void cu_blas_close(struct device *dev)
{
    struct blas *b = &dev->blas;
    if (b->lt_handle)
        b->LtDestroy(b->lt_handle);
    if (b->handle)
        b->Destroy(b->handle);
    if (b->workspace)
        dev->cu.MemFree(b->workspace);
    *b = (struct blas){0}; /* the libraries stay: they may have threads */
}

/* ---- products ---- */

/* cudaDataType_t; -1: there is none. */
static int type_of(enum dtype t)
{
    switch (t) {
    case DT_F64: return R_64F;
    case DT_F32: return R_32F;
    case DT_F16: return R_16F;
    case DT_BF16: return R_16BF;
    case DT_E4M3: return R_E4M3;
    case DT_E5M2: return R_E5M2;
    case DT_I8: return R_8I;
    case DT_I32: return R_32I;
    case DT_I64:
    case DT_I16:
    case DT_U64:
    case DT_U32:
    case DT_U16:
    case DT_U8:
    case DT_BOOL:
    case DT_I4:
    case DT_U4:
    case DT_COUNT: break;
    }
    return -1;
}

static int compute_of(enum blas_math math)
{
    switch (math) {
    case BLAS_TF32: return COMPUTE_32F_FAST_TF32;
    case BLAS_F64: return COMPUTE_64F;
    case BLAS_I32: return COMPUTE_32I;
    case BLAS_F32: break;
    }
    return COMPUTE_32F;
}

static int scale_of(enum blas_math math)
{
    return math == BLAS_F64 ? R_64F : math == BLAS_I32 ? R_32I : R_32F;
}

/* 1 or 0, of the type of the sums. */
static const void *constant(enum blas_math math, int which)
{
    static const float f32[] = {0, 1};
    static const double f64[] = {0, 1};
    static const int i32[] = {0, 1};
    return math == BLAS_F64   ? (const void *)&f64[which]
           : math == BLAS_I32 ? (const void *)&i32[which]
                              : (const void *)&f32[which];
}

static bool is_fp8(enum dtype t)
{
    return dtype_is_fp8(t);
}

/* What fits an int, and types that there are. */
static bool can_ask(const struct blas_product *p, struct diags *d)
{
    const struct blas_matrix *const all[] = {&p->a, &p->b, &p->c};
    bool fits = p->m <= INT32_MAX && p->n <= INT32_MAX && p->k <= INT32_MAX &&
                p->batch <= INT32_MAX;
    for (size_t i = 0; i < 3; i++) {
        fits &= all[i]->ld <= INT32_MAX && all[i]->stride <= INT64_MAX;
        if (type_of(all[i]->type) < 0)
            return diag_error(d, SPAN_NONE, "cuBLAS has no products of %s",
                              dtype_name(all[i]->type));
    }
    return fits || diag_error(d, SPAN_NONE, "the product is too large for cuBLAS");
}

/* The matrix as cuBLAS sees it: rows are what lies side by side. */
static int layout(struct blas *b, const struct blas_product *p, const struct blas_matrix *m,
                  uint64_t rows, uint64_t cols, struct lt_layout_ **out)
{
    int32_t batch = (int32_t)p->batch;
    int64_t stride = (int64_t)m->stride;
    int r = b->LtMatrixLayoutCreate(out, type_of(m->type), rows, cols, (int64_t)m->ld);
    if (r == 0 && batch > 1)
        r = b->LtMatrixLayoutSetAttribute(*out, LAYOUT_BATCH_COUNT, &batch, sizeof batch);
    if (r == 0 && batch > 1)
        r = b->LtMatrixLayoutSetAttribute(*out, LAYOUT_BATCH_STRIDE, &stride, sizeof stride);
    return r;
}

static int describe_lt(struct blas *b, struct blas_plan *plan)
{
    const struct blas_product *p = &plan->p;
    int32_t ta = p->b.swapped ? OP_T : OP_N, tb = p->a.swapped ? OP_T : OP_N;
    int r = b->LtMatmulDescCreate(&plan->desc, compute_of(p->math), scale_of(p->math));
    if (r == 0)
        r = b->LtMatmulDescSetAttribute(plan->desc, DESC_TRANSA, &ta, sizeof ta);
    if (r == 0)
        r = b->LtMatmulDescSetAttribute(plan->desc, DESC_TRANSB, &tb, sizeof tb);
    if (r == 0)
        r = layout(b, p, &p->b, ta ? p->k : p->n, ta ? p->n : p->k, &plan->b);
    if (r == 0)
        r = layout(b, p, &p->a, tb ? p->m : p->k, tb ? p->k : p->m, &plan->a);
    if (r == 0)
        r = layout(b, p, &p->c, p->n, p->m, &plan->c);
    return r;
}

/* The library's own choices, the one it thinks best first. */
static int choose(struct blas *b, struct blas_plan *plan, unsigned wanted)
{
    struct lt_preference_ *preference = NULL;
    const uint64_t bytes = BLAS_WORKSPACE;
    int found = 0;
    int r = b->LtPreferenceCreate(&preference);
    if (r == 0)
        r = b->LtPreferenceSetAttribute(preference, PREFERENCE_WORKSPACE, &bytes, sizeof bytes);
    if (r == 0)
        r = b->LtGetHeuristic(b->lt_handle, plan->desc, plan->b, plan->a, plan->c, plan->c,
                              preference, (int)wanted, plan->choice, &found);
    for (int i = 0; r == 0 && i < found; i++)
        if (plan->choice[i].status == 0)
            plan->choice[plan->nchoice++] = plan->choice[i];
    if (preference)
        b->LtPreferenceDestroy(preference);
    return r ? r : plan->nchoice ? 0 : STATUS_NOT_SUPPORTED;
}

static void discard(struct device *dev, struct blas_plan *plan)
{
    struct blas *b = &dev->blas;
    struct lt_layout_ *const layouts[] = {plan->a, plan->b, plan->c};
    for (size_t i = 0; i < 3; i++)
        if (layouts[i])
            b->LtMatrixLayoutDestroy(layouts[i]);
    if (plan->desc)
        b->LtMatmulDescDestroy(plan->desc);
    free(plan);
}

static enum device_status make_plan(struct device *dev, const struct blas_product *p,
                                    unsigned choices, struct blas_plan **out, struct diags *d)
{
    bool lt = choices > 1 || is_fp8(p->a.type) || is_fp8(p->b.type);
    *out = NULL;
    enum device_status status = lt ? open_lt(dev, d) : open_blas(dev, d);
    if (status != DEVICE_OK)
        return status;
    if (!can_ask(p, d))
        return DEVICE_REFUSED;
    struct blas_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return failed(d, STATUS_ALLOC_FAILED, "cuBLAS");
    plan->p = *p;
    plan->lt = lt;
    plan->nchoice = !lt;
    choices = choices < BLAS_CHOICES_MOST ? choices : BLAS_CHOICES_MOST;
    int r = lt ? describe_lt(&dev->blas, plan) : 0;
    if (r == 0 && lt)
        r = choose(&dev->blas, plan, choices);
    if (r == 0) {
        *out = plan;
        return DEVICE_OK;
    }
    discard(dev, plan);
    return failed(d, r, "cublasLtMatmulAlgoGetHeuristic");
}

static unsigned choices_of(const struct blas_plan *plan)
{
    return plan->nchoice;
}

static const char *describe(struct device *dev, const struct blas_plan *plan, unsigned choice)
{
    static const struct {
        int attribute;
        const char *name;
    } parts[] = {{ALGORITHM_ID, "algorithm"},
                 {ALGORITHM_TILE, "tile"},
                 {ALGORITHM_STAGES, "stages"},
                 {ALGORITHM_SPLIT_K, "split-k"}};
    struct buf text = buf_in(dev->arena);
    for (size_t i = 0; plan->lt && i < sizeof parts / sizeof *parts; i++) {
        int32_t value = 0;
        size_t written;
        if (dev->blas.LtAlgoConfigGetAttribute(&plan->choice[choice].algorithm, parts[i].attribute,
                                               &value, sizeof value, &written) == 0)
            buf_printf(&text, "%s%s %d", text.len ? ", " : "", parts[i].name, value);
    }
    return buf_text(&text);
}

static int multiply_lt(struct device *dev, const struct blas_plan *plan, unsigned choice,
                       uint64_t a, uint64_t b, uint64_t c)
{
    enum blas_math math = plan->p.math;
    void *to = (void *)(uintptr_t)c;
    return dev->blas.LtMatmul(dev->blas.lt_handle, plan->desc, constant(math, 1),
                              (const void *)(uintptr_t)b, plan->b, (const void *)(uintptr_t)a,
                              plan->a, constant(math, 0), to, plan->c, to, plan->c,
                              &plan->choice[choice].algorithm,
                              (void *)(uintptr_t)dev->blas.workspace, BLAS_WORKSPACE, dev->stream);
}

static int multiply_ex(struct device *dev, const struct blas_product *p, uint64_t a, uint64_t b,
                       uint64_t c)
{
    const struct blas *lib = &dev->blas;
    const void *one = constant(p->math, 1), *zero = constant(p->math, 0);
    const void *pa = (const void *)(uintptr_t)a, *pb = (const void *)(uintptr_t)b;
    void *pc = (void *)(uintptr_t)c;
    int ta = p->b.swapped ? OP_T : OP_N, tb = p->a.swapped ? OP_T : OP_N;
    int m = (int)p->n, n = (int)p->m, k = (int)p->k;
    if (p->batch == 1)
        return lib->GemmEx(lib->handle, ta, tb, m, n, k, one, pb, type_of(p->b.type), (int)p->b.ld,
                           pa, type_of(p->a.type), (int)p->a.ld, zero, pc, type_of(p->c.type),
                           (int)p->c.ld, compute_of(p->math), GEMM_DEFAULT);
    return lib->GemmStridedBatchedEx(lib->handle, ta, tb, m, n, k, one, pb, type_of(p->b.type),
                                     (int)p->b.ld, (long long)p->b.stride, pa, type_of(p->a.type),
                                     (int)p->a.ld, (long long)p->a.stride, zero, pc,
                                     type_of(p->c.type), (int)p->c.ld, (long long)p->c.stride,
                                     (int)p->batch, compute_of(p->math), GEMM_DEFAULT);
}

static enum device_status multiply(struct device *dev, struct blas_plan *plan, unsigned choice,
                                   uint64_t a, uint64_t b, uint64_t c, struct diags *d)
{
    int r = plan->lt ? multiply_lt(dev, plan, choice, a, b, c)
                     : multiply_ex(dev, &plan->p, a, b, c);
    if (r == 0)
        return DEVICE_OK;
    return failed(d, r,
                  plan->lt            ? "cublasLtMatmul"
                  : plan->p.batch > 1 ? "cublasGemmStridedBatchedEx"
                                      : "cublasGemmEx");
}

static const char *version(struct device *dev)
{
    return dev->blas.name;
}

const struct device_blas cuda_blas = {
    .plan = make_plan,
    .choices = choices_of,
    .describe = describe,
    .multiply = multiply,
    .discard = discard,
    .version = version,
};
