/* cuDNN behind run/sdpa.h, against tests/fake_cudnn.c on tests/fake_cuda.c, which computes the
 * graph operation by operation: what comes out is attention, whatever its masks, and its gradients.
 */
#include <config.h>

#include "run/sdpa.h"
#include "tap.h"

#include "base/arena.h"

enum { B = 2, H = 4, M = 6, N = 10, D = 8, PAGE = 4, PAGES = 9 };

static const char *path_of(struct arena *a, const char *name)
{
    const char *dir = getenv("KAIO_BUILDDIR");
    return arena_printf(a, "%s/tests/%s", dir ? dir : ".", name);
}

struct setup {
    struct arena *a;
    struct diags *d;
    struct device *dev;
    struct sdpa_problem p;
    double *host[SDPA_BUFFERS]; /* by place in memory */
    uint64_t at[SDPA_BUFFERS], count[SDPA_BUFFERS];
};

static struct sdpa_tensor tensor(enum dtype type, uint64_t x, uint64_t y, uint64_t r, uint64_t c)
{
    return (struct sdpa_tensor){true, type, {x, y, r, c}, {y * r * c, r * c, c, 1}};
}

/* Rows of the queries lie in another order than those of the keys. */
static struct sdpa_problem plain(uint64_t heads_of_keys)
{
    struct sdpa_problem p = {.batch = B,
                             .heads = H,
                             .kv_heads = heads_of_keys,
                             .m = M,
                             .n = N,
                             .d = D,
                             .e = D,
                             .scale = 0.5};
    p.tensor[SDPA_Q] = (struct sdpa_tensor){true, DT_F16, {B, H, M, D}, {M * H * D, D, H * D, 1}};
    p.tensor[SDPA_O] = tensor(DT_F16, B, H, M, D);
    p.tensor[SDPA_K] = p.tensor[SDPA_V] = tensor(DT_F16, B, heads_of_keys, N, D);
    p.tensor[SDPA_LSE] = tensor(DT_F32, B, H, M, 1);
    return p;
}

/* ---- what it should be ---- */

static double get(const struct setup *s, int which, uint64_t x, uint64_t y, uint64_t r, uint64_t c)
{
    const struct sdpa_tensor *t = &s->p.tensor[which];
    const uint64_t at[] = {x, y, r, c};
    uint64_t i = 0;
    for (int k = 0; k < 4; k++)
        i += (t->dim[k] == 1 ? 0 : at[k]) * t->stride[k];
    return s->host[which][i];
}

static double key(const struct setup *s, int which, uint64_t z, uint64_t h, uint64_t j, uint64_t c)
{
    h /= s->p.heads / s->p.kv_heads;
    if (!s->p.tensor[SDPA_PAGES].is_there)
        return get(s, which, z, h, j, c);
    const uint64_t page = (uint64_t)get(s, SDPA_PAGES, z, 0, j / PAGE, 0);
    return get(s, which, page, h, j % PAGE, c);
}

static double score(const struct setup *s, uint64_t z, uint64_t h, uint64_t i, uint64_t j)
{
    const struct sdpa_problem *p = &s->p;
    const bool lengths = p->tensor[SDPA_LENGTHS].is_there;
    const int64_t n = lengths ? (int64_t)get(s, SDPA_LENGTHS, z, 0, 0, 0) : (int64_t)p->n;
    const int64_t shift = lengths ? n - (int64_t)p->m : p->shift;
    const int64_t row = (int64_t)i, col = (int64_t)j;
    double x = 0;
    if (col >= n || (p->causal && col > row + shift) ||
        (p->window && col + (int64_t)p->window <= row + shift))
        return -INFINITY;
    for (uint64_t c = 0; c < p->d; c++)
        x += get(s, SDPA_Q, z, h, i, c) * key(s, SDPA_K, z, h, j, c);
    x *= p->scale;
    x = p->cap > 0 ? p->cap * tanh(x / p->cap) : x;
    if (p->tensor[SDPA_BIAS].is_there)
        x += get(s, SDPA_BIAS, z, h, i, j);
    if (p->tensor[SDPA_SLOPE].is_there)
        x += get(s, SDPA_SLOPE, 0, h, 0, 0) * (double)(col - row);
    return x;
}

static double lse_of(const struct setup *s, uint64_t z, uint64_t h, uint64_t i)
{
    double sum = 0;
    for (uint64_t j = 0; j < s->p.n; j++)
        sum += exp(score(s, z, h, i, j));
    return log(sum);
}

static double weight(const struct setup *s, uint64_t z, uint64_t h, uint64_t i, uint64_t j)
{
    return exp(score(s, z, h, i, j) - lse_of(s, z, h, i));
}

static double output(const struct setup *s, uint64_t z, uint64_t h, uint64_t i, uint64_t c)
{
    double sum = 0;
    for (uint64_t j = 0; j < s->p.n; j++) {
        const double w = weight(s, z, h, i, j);
        sum += w > 0 ? w * key(s, SDPA_V, z, h, j, c) : 0;
    }
    return sum;
}

/* scale p (dp - delta) */
static double slope(const struct setup *s, uint64_t z, uint64_t h, uint64_t i, uint64_t j)
{
    double dp = 0, delta = 0;
    for (uint64_t c = 0; c < s->p.e; c++) {
        const double dout = get(s, SDPA_DO, z, h, i, c);
        dp += dout * key(s, SDPA_V, z, h, j, c);
        delta += dout * get(s, SDPA_O, z, h, i, c);
    }
    return s->p.scale * weight(s, z, h, i, j) * (dp - delta);
}

static double gradient(const struct setup *s, int which, uint64_t z, uint64_t h, uint64_t r,
                       uint64_t c)
{
    const uint64_t group = s->p.heads / s->p.kv_heads;
    double sum = 0;
    if (which == SDPA_DQ) {
        for (uint64_t j = 0; j < s->p.n; j++)
            sum += slope(s, z, h, r, j) * key(s, SDPA_K, z, h, j, c);
        return sum;
    }
    for (uint64_t g = 0; g < group; g++)
        for (uint64_t i = 0; i < s->p.m; i++) {
            const uint64_t head = h * group + g;
            sum += which == SDPA_DV ? weight(s, z, head, i, r) * get(s, SDPA_DO, z, head, i, c)
                                    : slope(s, z, head, i, r) * get(s, SDPA_Q, z, head, i, c);
        }
    return sum;
}

static double expected(const struct setup *s, int which, uint64_t z, uint64_t h, uint64_t r,
                       uint64_t c)
{
    return which == SDPA_O     ? output(s, z, h, r, c)
           : which == SDPA_LSE ? lse_of(s, z, h, r)
                               : gradient(s, which, z, h, r, c);
}

/* ---- what it is ---- */

static bool is_result(const struct setup *s, int which)
{
    return s->p.tensor[which].is_there && (s->p.backward ? which >= SDPA_DQ && which <= SDPA_DV
                                                         : which == SDPA_O || which == SDPA_LSE);
}

static double made(int which, uint64_t e)
{
    switch (which) {
    case SDPA_ROWS: return M;
    case SDPA_LENGTHS: return e == 0 ? N : N - 3;
    case SDPA_PAGES: return (double)((e * 5 + 2) % PAGES);
    default: return (double)((e * 7 + (uint64_t)which * 3) % 23) / 16 - 0.7;
    }
}

static void upload(struct setup *s, int which)
{
    const struct sdpa_tensor *t = &s->p.tensor[which];
    uint64_t n = 1;
    for (int k = 0; k < 4; k++)
        n += (t->dim[k] - 1) * t->stride[k];
    s->count[which] = n;
    unsigned char *p = arena_alloc(s->a, dtype_bytes(t->type, (size_t)n));
    s->host[which] = ARENA_ARRAY(s->a, n, double);
    for (uint64_t e = 0; e < n; e++) {
        s->host[which][e] = dtype_is_float(t->type) ? dtype_round(t->type, made(which, e))
                                                    : made(which, e);
        dtype_set(t->type, p, (size_t)e, s->host[which][e]);
    }
    cuda_device.alloc(s->dev, dtype_bytes(t->type, (size_t)n), NULL, &s->at[which], s->d);
    cuda_device.write(s->dev, s->at[which], p, dtype_bytes(t->type, (size_t)n), s->d);
}

/* Of the gradients o and lse are those of the forward pass. */
static void fill_rows(struct setup *s)
{
    const struct sdpa_problem *p = &s->p;
    for (int which = SDPA_O; which <= SDPA_LSE; which++) {
        const struct sdpa_tensor *t = &p->tensor[which];
        unsigned char *data = arena_alloc(s->a, dtype_bytes(t->type, (size_t)s->count[which]));
        for (uint64_t e = 0; e < s->count[which]; e++) {
            const uint64_t c = e % t->dim[3], r = e / t->dim[3] % p->m,
                           h = e / t->dim[3] / p->m % p->heads, z = e / t->dim[3] / p->m / p->heads;
            s->host[which][e] = dtype_round(t->type, expected(s, which, z, h, r, c));
            dtype_set(t->type, data, (size_t)e, s->host[which][e]);
        }
        cuda_device.write(s->dev, s->at[which], data, dtype_bytes(t->type, (size_t)s->count[which]),
                          s->d);
    }
}

static double worst(struct setup *s, int which)
{
    const struct sdpa_tensor *t = &s->p.tensor[which];
    const uint64_t bytes = dtype_bytes(t->type, (size_t)s->count[which]);
    unsigned char *got = arena_alloc(s->a, (size_t)bytes);
    double most = 0;
    cuda_device.read(s->dev, got, s->at[which], bytes, s->d);
    for (uint64_t e = 0; e < s->count[which]; e++) {
        const uint64_t c = e % t->dim[3], r = e / t->dim[3] % t->dim[2],
                       h = e / t->dim[3] / t->dim[2] % t->dim[1],
                       z = e / t->dim[3] / t->dim[2] / t->dim[1];
        const double off =
            fabs(dtype_get(t->type, got, (size_t)e) - expected(s, which, z, h, r, c));
        most = isnan(off) ? INFINITY : fmax(most, off);
    }
    return most;
}

static void check(struct setup *s, const char *name, struct sdpa_problem p)
{
    const struct device_sdpa *lib = cuda_device.sdpa;
    const struct device_queue *q = cuda_device.queue;
    struct sdpa_plan *plan = NULL;
    struct device_graph *graph;
    double most = 0;
    s->p = p;
    for (int k = 0; k < SDPA_BUFFERS; k++)
        if (p.tensor[k].is_there)
            upload(s, k);
    if (p.backward)
        fill_rows(s);
    bool good = lib->plan(s->dev, &p, &plan, s->d) == DEVICE_OK;
    for (int pass = 0; pass < 2 && good; pass++) {
        for (int k = 0; k < SDPA_BUFFERS; k++)
            if (is_result(s, k))
                q->fill(s->dev, s->at[k], 0xff, dtype_bytes(p.tensor[k].type, (size_t)s->count[k]),
                        s->d);
        if (pass)
            good = q->record(s->dev, s->d) == DEVICE_OK;
        good = good && lib->execute(s->dev, plan, s->at, s->d) == DEVICE_OK;
        if (pass)
            good = good && q->recorded(s->dev, &graph, s->d) == DEVICE_OK &&
                   q->replay(s->dev, graph, s->d) == DEVICE_OK;
        good = good && q->wait(s->dev, NULL, s->d) == DEVICE_OK;
        for (int k = 0; k < SDPA_BUFFERS && good; k++)
            if (is_result(s, k))
                most = fmax(most, worst(s, k));
        if (pass && good)
            q->discard(s->dev, graph);
    }
    ok(good && most < 0.004, "%s: off by %.3g at most", name, most);
    for (size_t i = 0; i < s->d->list.n; i++)
        tap_note("%s", s->d->list.v[i].text);
    if (plan)
        lib->discard(s->dev, plan);
    for (int k = 0; k < SDPA_BUFFERS; k++)
        if (p.tensor[k].is_there)
            cuda_device.release(s->dev, s->at[k]);
}

static struct sdpa_problem gradients(uint64_t heads_of_keys)
{
    struct sdpa_problem p = plain(heads_of_keys);
    p.backward = true;
    p.tensor[SDPA_Q] = p.tensor[SDPA_DO] = p.tensor[SDPA_DQ] = p.tensor[SDPA_O];
    p.tensor[SDPA_DK] = p.tensor[SDPA_DV] = p.tensor[SDPA_K];
    return p;
}

static void forward(struct setup *s)
{
    struct sdpa_problem p = plain(H);
    check(s, "full", p);
    p.tensor[SDPA_LSE].is_there = false;
    check(s, "full, without lse", p);
    p = plain(H);
    p.causal = true;
    check(s, "causal from the first key", p);
    p.shift = N - M;
    check(s, "causal to the last key", p);
    p.window = 3;
    check(s, "window", p);
    p = plain(2);
    p.cap = 0.5;
    check(s, "grouped heads, soft cap", p);
    p = plain(H);
    p.tensor[SDPA_SLOPE] = tensor(DT_F32, 1, H, 1, 1);
    p.causal = true;
    check(s, "slopes", p);
    p = plain(H);
    p.tensor[SDPA_BIAS] = tensor(DT_F16, 1, H, M, N);
    check(s, "bias", p);
    p = plain(H);
    p.tensor[SDPA_ROWS] = p.tensor[SDPA_LENGTHS] = tensor(DT_I32, B, 1, 1, 1);
    check(s, "lengths", p);
    p.causal = true;
    check(s, "lengths, causal", p);
    p.window = 3;
    check(s, "lengths, window", p);
    p = plain(2);
    p.n = 3 * PAGE;
    p.tensor[SDPA_K] = p.tensor[SDPA_V] =
        (struct sdpa_tensor){true, DT_F16, {PAGES, 2, PAGE, D}, {PAGE * 2 * D, D, 2 * D, 1}};
    p.tensor[SDPA_PAGES] = tensor(DT_I32, B, 1, 3, 1);
    p.tensor[SDPA_ROWS] = p.tensor[SDPA_LENGTHS] = tensor(DT_I32, B, 1, 1, 1);
    check(s, "pages", p);
}

int main(void)
{
    static const struct device_options none;
    struct setup s = {.a = arena_new()};
    s.d = diags_new(s.a);
    setenv("FAKE_CUDA_MEMORY", "100000000", 1);
    setenv("KAIO_CUDA_LIB", path_of(s.a, "libfakecuda.so"), 1);
    setenv("KAIO_CUDNN_LIB", path_of(s.a, "libfakecudnn.so"), 1);
    if (!ok(cuda_device.open(s.a, 0, &none, &s.dev, s.d) == DEVICE_OK, "open"))
        return tap_done();
    forward(&s);
    struct sdpa_problem p = gradients(H);
    check(&s, "gradients", p);
    p.causal = true;
    p.shift = N - M;
    check(&s, "gradients, causal", p);
    p = gradients(2);
    p.causal = true;
    check(&s, "gradients, grouped heads", p);

    struct sdpa_plan *plan;
    setenv("FAKE_CUDNN_VERSION", "90501", 1);
    ok(cuda_device.sdpa->plan(s.dev, &p, &plan, s.d) == DEVICE_REFUSED, "gradients of cuDNN 9.5");
    unsetenv("FAKE_CUDNN_VERSION");
    setenv("FAKE_CUDNN_ENGINES", "0", 1);
    p = plain(H);
    ok(cuda_device.sdpa->plan(s.dev, &p, &plan, s.d) == DEVICE_REFUSED, "no engine is a refusal");
    cuda_device.close(s.dev);
    arena_free(s.a);
    return tap_done();
}
