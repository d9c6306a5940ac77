/* A libcudnn.so for machines without a GPU, on top of tests/fake_cuda.c (KAIO_CUDNN_LIB): its
 * backend interface, as far as graphs of attention and convolutions of images go. Operations are
 * computed one after the other in double precision, tensors rounded to their types; what the real
 * library refuses about the order of calls is refused. An execution takes time as a launch of
 * "sdpa" does (FAKE_CUDA_US).
 *
 *     FAKE_CUDA_LOG=FILE        a line for each graph and execution
 *     FAKE_CUDNN_ENGINES=N (2)  what the heuristic finds; the first of several has no plan
 *     FAKE_CUDNN_FALLBACK=N (0) what the other heuristic finds, which knows some for the rest
 *     FAKE_CUDNN_VERSION=N (91900)
 *     FAKE_CUDNN_STATUS=N       every execution fails with this status
 *     FAKE_CUDNN_WRONG=1        results are a hundredth larger
 *     FAKE_CUDNN_NOTE=N         a numerical note of every engine
 */
#include <config.h>

#include "data/dtype.h"

#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API(type, name, ...) \
    type name(__VA_ARGS__);  \
    type name(__VA_ARGS__)

enum { BAD = 2000, NOT_FINISHED = 2004, UNSUPPORTED = 3000, ATTRIBUTES = 16, TENSORS = 96 };
enum { POINTWISE_OP = 13, GRAPH = 15, TENSOR = 17, MATMUL_OP = 19, REDUCTION_OP = 22 };
enum { FORWARD_OP = 10, FILTER_OP = 11, DATA_OP = 12, ENGINE = 2, CONFIG = 3 };
enum { RESHAPE_OP = 31, PAGED_OP = 35, HEURISTIC = 4, PLAN = 5, PACK = 16 };

struct attribute {
    int name, type;
    int64_t n;
    void *value;
};
struct desc {
    int type;
    bool finished;
    struct attribute attribute[ATTRIBUTES];
    int n;
    double *v; /* of a tensor, while it is computed */
};
struct handle {
    void *stream;
};

static char last_error[400];

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

static int refuse(int status, const char *why)
{
    snprintf(last_error, sizeof last_error, "%s\nand a second line", why);
    return status;
}

/* As the real library says it of an engine: on the way out every function adds a line. */
static int refuse_engine(const char *why)
{
    snprintf(last_error, sizeof last_error,
             "{\"engineId\":0}\nWarning: CUDNN_STATUS_NOT_SUPPORTED; Reason: %s at: true\n"
             "Warning: CUDNN_STATUS_NOT_SUPPORTED; Reason: ptr->isSupported()\n",
             why);
    return UNSUPPORTED;
}

/* ---- attributes ---- */

static const struct attribute *find(const struct desc *d, int name)
{
    for (int i = 0; i < d->n; i++)
        if (d->attribute[i].name == name)
            return &d->attribute[i];
    return NULL;
}

static struct desc *desc_of(const struct desc *d, int name)
{
    const struct attribute *a = find(d, name);
    return a ? *(struct desc **)a->value : NULL;
}

static int int_of(const struct desc *d, int name)
{
    const struct attribute *a = find(d, name);
    return a ? *(int *)a->value : -1;
}

static const int64_t *list_of(const struct desc *d, int name)
{
    static const int64_t none[4];
    const struct attribute *a = find(d, name);
    return a && a->n == 4 ? a->value : none;
}

/* cudnnBackendAttributeType_t */
static size_t size_of(int type)
{
    switch (type) {
    case 2:
    case 24: return 1;
    case 0:
    case 3:
    case 5:
    case 6:
    case 15: return 8;
    default: return 4;
    }
}

/* ---- tensors ---- */

static const int64_t *dims(const struct desc *t)
{
    return list_of(t, 902);
}

static int64_t count(const struct desc *t)
{
    const int64_t *n = dims(t);
    return n[0] * n[1] * n[2] * n[3];
}

static int64_t uid(const struct desc *t)
{
    return *(const int64_t *)find(t, 906)->value;
}

static bool flag(const struct desc *t, int name)
{
    return *(const bool *)find(t, name)->value;
}

static enum dtype dtype_of(const struct desc *t)
{
    switch (int_of(t, 901)) {
    case 0: return DT_F32;
    case 2: return DT_F16;
    case 4: return DT_I32;
    case 9: return DT_BF16;
    default: return DT_U8;
    }
}

/* Element i of the dense values, as it lies in memory. */
static int64_t place(const struct desc *t, int64_t i)
{
    const int64_t *n = dims(t), *s = list_of(t, 903);
    int64_t at = 0;
    for (int k = 3; k >= 0; k--) {
        at += i % n[k] * s[k];
        i /= n[k];
    }
    return at;
}

/* The element of t that goes with element i of y: where t has fewer, several of y's share one. */
static double like(const struct desc *t, const struct desc *y, int64_t i)
{
    const int64_t *n = dims(t), *m = dims(y);
    int64_t x[4], at = 0;
    for (int k = 3; k >= 0; k--) {
        x[k] = i % m[k] * n[k] / m[k];
        i /= m[k];
    }
    for (int k = 0; k < 4; k++)
        at = at * n[k] + x[k];
    return t->v[at];
}

struct job {
    struct job *next; /* kept to the end, since graphs may have it */
    struct desc *graph;
    int64_t n, uid[32];
    void *at[32];
    float number[32];
};

static void *address(struct job *j, const struct desc *t)
{
    for (int64_t i = 0; i < j->n; i++)
        if (j->uid[i] == uid(t))
            return flag(t, 908) ? (void *)&j->number[i] : j->at[i];
    return NULL;
}

static void load(struct job *j, struct desc *t)
{
    const void *p;
    if (!t || t->v)
        return;
    t->v = calloc((size_t)count(t), sizeof *t->v);
    if (t->v && !flag(t, 907) && (p = address(j, t)) != NULL)
        for (int64_t i = 0; i < count(t); i++)
            t->v[i] = dtype_get(dtype_of(t), p, (size_t)place(t, i));
}

/* Rounds what was computed to the tensor's type, and stores it where it is no intermediate. */
static void store(struct job *j, struct desc *t)
{
    void *p = flag(t, 907) ? NULL : address(j, t);
    const double factor = p && setting("FAKE_CUDNN_WRONG", 0) ? 1.01 : 1;
    for (int64_t i = 0; i < count(t); i++) {
        if (dtype_is_float(dtype_of(t)))
            t->v[i] = dtype_round(dtype_of(t), t->v[i] * factor);
        if (p)
            dtype_set(dtype_of(t), p, (size_t)place(t, i), t->v[i]);
    }
}

/* ---- operations ---- */

static double pointwise(int mode, double x, double b, double t)
{
    switch (mode) {
    case 0: return x + b;
    case 1: return x * b;
    case 6: return x / b;
    case 9: return x - b;
    case 13: return exp(x);
    case 15: return log(x);
    case 101: return tanh(x);
    case 302: return x > b;
    case 303: return x >= b;
    case 304: return x < b;
    case 400: return x != 0 && b != 0;
    case 601: return t != 0 ? x : b;
    default: return x;
    }
}

static void do_pointwise(const struct desc *op, struct job *j)
{
    const struct desc *how = desc_of(op, 750);
    struct desc *x = desc_of(op, 751), *b = desc_of(op, 752), *y = desc_of(op, 753),
                *t = desc_of(op, 758);
    const int mode = int_of(how, 0), axis = mode == 501 ? (int)*(int64_t *)find(how, 9)->value : 0;
    load(j, x);
    load(j, b);
    load(j, t);
    for (int64_t i = 0; i < count(y); i++) {
        const int64_t col = i % dims(y)[3], row = i / dims(y)[3] % dims(y)[2];
        y->v[i] = mode == 501 ? (double)(axis == 2 ? row : col)
                              : pointwise(mode, like(x, y, i), b ? like(b, y, i) : 0,
                                          t ? like(t, y, i) : 0);
    }
}

static void do_matmul(const struct desc *op, struct job *j)
{
    struct desc *a = desc_of(op, 1520), *b = desc_of(op, 1521), *c = desc_of(op, 1522);
    load(j, a);
    load(j, b);
    const int64_t *n = dims(c), k = dims(a)[3];
    for (int64_t i = 0; i < count(c); i++) {
        const int64_t col = i % n[3], row = i / n[3] % n[2], h = i / n[3] / n[2] % n[1],
                      z = i / n[3] / n[2] / n[1];
        const int64_t ha = h * dims(a)[1] / n[1], hb = h * dims(b)[1] / n[1];
        const double *x = a->v + ((z * dims(a)[1] + ha) * n[2] + row) * k;
        const double *y = b->v + (z * dims(b)[1] + hb) * k * n[3] + col;
        double sum = 0;
        for (int64_t l = 0; l < k; l++) /* what a mask has made 0 is no factor of padding */
            sum += x[l] == 0 ? 0 : x[l] * y[l * n[3]];
        c->v[i] = sum;
    }
}

static void do_reduction(const struct desc *op, struct job *j)
{
    struct desc *x = desc_of(op, 1610), *y = desc_of(op, 1611);
    const bool most = int_of(desc_of(op, 1612), 1600) == 3;
    load(j, x);
    for (int64_t i = 0; i < count(y); i++)
        y->v[i] = most ? -INFINITY : 0;
    for (int64_t i = 0; i < count(x); i++) {
        const int64_t *n = dims(x), *m = dims(y);
        int64_t rest = i, at = 0, scale = 1;
        for (int k = 3; k >= 0; k--) {
            at += rest % n[k] * m[k] / n[k] * scale;
            scale *= m[k];
            rest /= n[k];
        }
        y->v[at] = most ? fmax(y->v[at], x->v[i]) : y->v[at] + x->v[i];
    }
}

static void do_reshape(const struct desc *op, struct job *j)
{
    struct desc *x = desc_of(op, 2200), *y = desc_of(op, 2201);
    load(j, x);
    int64_t most = 0;
    for (int64_t i = 0; i < count(x); i++)
        most = place(x, i) > most ? place(x, i) : most;
    double *memory = calloc((size_t)most + 1, sizeof *memory);
    for (int64_t i = 0; i < count(x); i++)
        memory[place(x, i)] = x->v[i];
    for (int64_t i = 0; i < count(y); i++)
        y->v[i] = memory[place(y, i)];
    free(memory);
}

static void do_pages(const struct desc *op, struct job *j)
{
    struct desc *from = desc_of(op, 1950), *y = desc_of(op, 1951), *table = desc_of(op, 1953);
    load(j, from);
    load(j, table);
    const int64_t *n = dims(y), *c = dims(from), most = dims(table)[2];
    const bool turned = list_of(y, 903)[3] != 1;
    for (int64_t i = 0; i < count(y); i++) {
        const int64_t last = i % n[3], third = i / n[3] % n[2], h = i / n[3] / n[2] % n[1],
                      z = i / n[3] / n[2] / n[1];
        const int64_t key = turned ? last : third, col = turned ? third : last;
        const int64_t page = (int64_t)table->v[z * most + key / c[2]];
        y->v[i] = page < 0 || page >= c[0]
                      ? 0
                      : from->v[((page * c[1] + h) * c[2] + key % c[2]) * c[3] + col];
    }
}

/* x, w and y of a convolution, and what says how. */
static void operands_of(const struct desc *op, struct desc **t)
{
    static const int names[3][4] = {
        {704, 703, 705, 702}, {716, 715, 717, 714}, {710, 709, 711, 708}};
    for (int k = 0; k < 4; k++)
        t[k] = desc_of(op, names[op->type - FORWARD_OP][k]);
}

static int64_t window_of(const struct desc *how, int name, int k)
{
    return ((const int64_t *)find(how, name)->value)[k];
}

/* Every product of an element of x and one of w goes into one of y, and likewise for gradients. */
static void do_convolution(const struct desc *op, struct job *j)
{
    struct desc *t[4];
    operands_of(op, t);
    const int64_t *x = dims(t[0]), *w = dims(t[1]), *y = dims(t[2]);
    const int64_t filters = y[1] / (x[1] / w[1]);
    for (int k = 0; k < 3; k++)
        load(j, t[k]);
    for (int64_t i = 0; i < count(t[2]) * w[1] * w[2] * w[3]; i++) {
        const int64_t v = i % w[3], u = i / w[3] % w[2], c = i / w[3] / w[2] % w[1],
                      at = i / w[3] / w[2] / w[1], f = at / y[3] / y[2] % y[1];
        const int64_t row = at / y[3] % y[2] * window_of(t[3], 103, 0) +
                            u * window_of(t[3], 102, 0) - window_of(t[3], 105, 0);
        const int64_t col = at % y[3] * window_of(t[3], 103, 1) + v * window_of(t[3], 102, 1) -
                            window_of(t[3], 105, 1);
        if (row < 0 || row >= x[2] || col < 0 || col >= x[3])
            continue;
        const int64_t n = at / y[3] / y[2] / y[1], in = f / filters * w[1] + c;
        double *const a = &t[0]->v[((n * x[1] + in) * x[2] + row) * x[3] + col];
        double *const b = &t[1]->v[((f * w[1] + c) * w[2] + u) * w[3] + v];
        double *const sum = op->type == FORWARD_OP ? &t[2]->v[at] : op->type == DATA_OP ? a : b;
        *sum += (sum == a ? t[2]->v[at] : *a) * (sum == b ? t[2]->v[at] : *b);
    }
}

/* Do the extents of x, w and y go together? */
static bool convolves(const struct desc *op)
{
    struct desc *t[4];
    operands_of(op, t);
    const int64_t *x = dims(t[0]), *w = dims(t[1]), *y = dims(t[2]);
    bool good = x[0] == y[0] && w[0] == y[1] && x[1] % w[1] == 0;
    for (int k = 0; k < 2; k++)
        good &= (x[2 + k] + window_of(t[3], 105, k) + window_of(t[3], 104, k) -
                 (w[2 + k] - 1) * window_of(t[3], 102, k) - 1) /
                        window_of(t[3], 103, k) +
                    1 ==
                y[2 + k];
    return good;
}

/* The number of the attribute that is the operation's result. */
static int result_of(const struct desc *op)
{
    switch (op->type) {
    case FORWARD_OP: return 705;
    case FILTER_OP: return 715;
    case DATA_OP: return 710;
    case POINTWISE_OP: return 753;
    case MATMUL_OP: return 1522;
    case REDUCTION_OP: return 1611;
    case RESHAPE_OP: return 2201;
    default: return 1951;
    }
}

static void forget(const struct desc *op)
{
    for (int i = 0; i < op->n; i++) {
        struct desc *t = op->attribute[i].type == 15 ? *(struct desc **)op->attribute[i].value
                                                     : NULL;
        if (t && t->type == TENSOR) {
            free(t->v);
            t->v = NULL;
        }
    }
}

static void evaluate(const uint64_t *value)
{
    struct job *j = (struct job *)(uintptr_t)value[0];
    const struct attribute *ops = find(j->graph, 801);
    struct desc *const *op = ops->value;
    for (int64_t i = 0; i < ops->n; i++) {
        struct desc *y = desc_of(op[i], result_of(op[i]));
        free(y->v);
        y->v = calloc((size_t)count(y), sizeof *y->v);
        if (op[i]->type == POINTWISE_OP)
            do_pointwise(op[i], j);
        else if (op[i]->type == MATMUL_OP)
            do_matmul(op[i], j);
        else if (op[i]->type == REDUCTION_OP)
            do_reduction(op[i], j);
        else if (op[i]->type == RESHAPE_OP)
            do_reshape(op[i], j);
        else if (op[i]->type >= FORWARD_OP && op[i]->type <= DATA_OP)
            do_convolution(op[i], j);
        else
            do_pages(op[i], j);
        store(j, y);
    }
    for (int64_t i = 0; i < ops->n; i++)
        forget(op[i]);
}

/* ---- the interface ---- */

API(size_t, cudnnGetVersion, void)
{
    return (size_t)setting("FAKE_CUDNN_VERSION", 91900);
}

API(int, cudnnCreate, struct handle **h)
{
    *h = calloc(1, sizeof **h);
    return *h ? 0 : 4003;
}

API(int, cudnnDestroy, struct handle *h)
{
    record("cudnn destroyed");
    free(h);
    return 0;
}

API(int, cudnnSetStream, struct handle *h, void *stream)
{
    h->stream = stream;
    return 0;
}

API(void, cudnnGetLastErrorString, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", last_error);
}

static long alive;

API(int, cudnnBackendCreateDescriptor, int type, struct desc **d)
{
    *d = calloc(1, sizeof **d);
    if (!*d)
        return 4003;
    (*d)->type = type;
    alive++;
    return 0;
}

API(int, cudnnBackendDestroyDescriptor, struct desc *d)
{
    for (int i = 0; i < d->n; i++)
        free(d->attribute[i].value);
    free(d->v);
    free(d);
    if (--alive == 0)
        record("no descriptor left");
    return 0;
}

API(int, cudnnBackendSetAttribute, struct desc *d, int name, int type, int64_t n, const void *v)
{
    if (d->finished || d->n == ATTRIBUTES || n <= 0 || find(d, name))
        return refuse(BAD, "an attribute comes too late, or twice");
    for (int64_t i = 0; i < n && type == 15; i++) {
        const struct desc *other = ((struct desc *const *)v)[i];
        if (!other || !other->finished)
            return refuse(NOT_FINISHED, "a descriptor is not finished");
    }
    struct attribute *a = &d->attribute[d->n++];
    *a = (struct attribute){name, type, n, calloc((size_t)n, 8)};
    if (!a->value)
        return 4003;
    memcpy(a->value, v, (size_t)n * size_of(type));
    return 0;
}

static bool is_whole_tensor(const struct desc *t)
{
    for (int name = 901; name <= 908; name++)
        if (name != 904 && name != 905 && !find(t, name))
            return false;
    for (int k = 0; k < 4; k++)
        if (dims(t)[k] <= 0 || list_of(t, 903)[k] <= 0)
            return false;
    return find(t, 900) != NULL;
}

static bool multiplies(const struct desc *op)
{
    const struct desc *a = desc_of(op, 1520), *b = desc_of(op, 1521), *c = desc_of(op, 1522);
    return a && b && c && desc_of(op, 1523) && dims(a)[0] == dims(c)[0] &&
           dims(b)[0] == dims(c)[0] && dims(a)[3] == dims(b)[2] && dims(a)[2] == dims(c)[2] &&
           dims(b)[3] == dims(c)[3] && dims(c)[1] % dims(b)[1] == 0;
}

API(int, cudnnBackendFinalize, struct desc *d)
{
    static long plans;
    if (d->type == TENSOR && !is_whole_tensor(d))
        return refuse(BAD, "a tensor lacks something");
    if (d->type == MATMUL_OP && !multiplies(d))
        return refuse(BAD, "a product does not fit");
    if (d->type >= FORWARD_OP && d->type <= DATA_OP && !convolves(d))
        return refuse(BAD, "a convolution does not fit");
    if (d->type == PLAN && setting("FAKE_CUDNN_ENGINES", 2) > 1 && plans++ % 2 == 0)
        return refuse_engine("the fake takes the second engine");
    if (d->type == GRAPH)
        record("graph of %lld operations", (long long)find(d, 801)->n);
    d->finished = true;
    return 0;
}

/* Where there is a softmax, which has a maximum, the real library wants its logarithm, too. */
static bool is_pattern(const struct desc *graph)
{
    const struct attribute *ops = find(graph, 801);
    bool max = false, log = false;
    for (int64_t i = 0; i < ops->n; i++) {
        const struct desc *op = ((struct desc *const *)ops->value)[i];
        max |= op->type == REDUCTION_OP && int_of(desc_of(op, 1612), 1600) == 3;
        log |= op->type == POINTWISE_OP && int_of(desc_of(op, 750), 0) == 15;
    }
    return log || !max;
}

/* The heuristics count engines before they look whether those support the graph. */
static int find_engines(const struct desc *d, int64_t wanted, int64_t *n, struct desc **engine)
{
    const bool fallback = int_of(d, 200) == 2;
    const long engines = fallback ? setting("FAKE_CUDNN_FALLBACK", 0)
                                  : setting("FAKE_CUDNN_ENGINES", 2);
    struct desc *graph = desc_of(d, 201);
    *n = wanted && wanted < engines ? wanted : engines;
    if (wanted && !is_pattern(graph)) {
        *n = 0;
        refuse_engine("Dropout set of ops not configured correctly");
    } else if (engines == 0) {
        refuse_engine(fallback ? "the fake has no fallback" : "the fake has no engine");
    }
    for (int64_t i = 0; i < wanted && i < *n; i++) {
        cudnnBackendSetAttribute(engine[i], 201, 15, 1, &graph);
        engine[i]->finished = true;
    }
    return 0;
}

API(int, cudnnBackendGetAttribute, struct desc *d, int name, int type, int64_t wanted, int64_t *n,
    void *v)
{
    if (!d->finished)
        return refuse(NOT_FINISHED, "a descriptor is not finished");
    if (d->type == HEURISTIC && name == 202 && type == 15)
        return find_engines(d, wanted, n, v);
    if (d->type == CONFIG && name == 300) {
        (*(struct desc **)v)->finished = true;
        *n = 1;
        return 0;
    }
    if (d->type == ENGINE && name == 1303) {
        const long note = setting("FAKE_CUDNN_NOTE", -1);
        *n = note >= 0;
        if (note >= 0)
            *(int *)v = (int)note;
        return 0;
    }
    if (d->type != PLAN || name != 402 || type != 3 || wanted != 1)
        return refuse(BAD, "no such attribute");
    *n = 1;
    *(int64_t *)v = 1000;
    return 0;
}

static struct job *jobs;

API(int, cudnnBackendExecute, struct handle *h, struct desc *plan, struct desc *pack)
{
    static const char f[] = ".entry sdpa(";
    void *driver = dlopen(getenv("KAIO_CUDA_LIB"), RTLD_NOW | RTLD_NOLOAD);
    int (*call)(void *, const char *, void (*)(const uint64_t *), const uint64_t *, size_t);
    void *found = driver ? dlsym(driver, "fakeCall") : NULL;
    const struct attribute *ids = find(pack, 1000), *at = find(pack, 1001),
                           *space = find(pack, 1003);
    const long status = setting("FAKE_CUDNN_STATUS", 0);
    if (status)
        return refuse((int)status, "the fake fails");
    if (!plan->finished || !pack->finished || pack->type != PACK || !ids || !at || !space ||
        ids->n != at->n || ids->n > 32 || !*(void **)space->value || !h->stream)
        return refuse(BAD, "the pack lacks something");
    struct job *j = calloc(1, sizeof *j);
    if (!j || !found)
        return 4003;
    j->next = jobs;
    jobs = j;
    j->graph = desc_of(desc_of(plan, 401), 201);
    j->n = ids->n;
    memcpy(j->uid, ids->value, (size_t)j->n * 8);
    memcpy(j->at, at->value, (size_t)j->n * 8);
    /* numbers are taken now */
    const struct attribute *ops = find(j->graph, 801);
    for (int64_t i = 0; i < ops->n; i++) {
        const struct desc *op = ((struct desc *const *)ops->value)[i];
        for (int k = 0; k < op->n; k++) {
            const struct desc *t =
                op->attribute[k].type == 15 ? *(struct desc **)op->attribute[k].value : NULL;
            if (!t || t->type != TENSOR || flag(t, 907))
                continue;
            int64_t m = 0;
            while (m < j->n && j->uid[m] != uid(t))
                m++;
            if (m == j->n || !j->at[m])
                return refuse(BAD, "the pack lacks a tensor");
            if (flag(t, 908))
                memcpy(&j->number[m], j->at[m], 4);
        }
    }
    memcpy(&call, &found, sizeof call);
    const uint64_t value[] = {(uint64_t)(uintptr_t)j};
    return call(h->stream, f, evaluate, value, 1) ? 5000 : 0;
}
