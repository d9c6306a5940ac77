/* The vendor's library of matrix products as rivals: cublas, cublas-sgemm, cublaslt. */
#include <config.h>

#include "bench/blas.h"
#include "bench/bench.h"
#include "bench/choice.h"

#include <inttypes.h>
#include <math.h>

#include "base/parallel.h"

enum { POISON = 0xff, SAMPLES = 256, GRAIN = 1 << 16 };

struct request_memory {
    struct blas_plan *plan;
    unsigned choice;
    struct rival_buffer a, b, c;
};
struct blas_work {
    struct blas_requests requests;
    struct request_memory *memory; /* one for each request */
    /* unfused: a kernel for the rest of the spec, which reads the results where the library writes
     * them: buffer first_product of it and on */
    struct rival *rest;
    struct code_source rest_source;
    size_t first_product;
};

/* ---- what is asked for ---- */

static bool is_8_bit(enum dtype t)
{
    return dtype_bits(t) == 8;
}

/* 8-bit products want k last on both sides: turned, where the spec has it otherwise. */
static struct blas_operand place(const struct product_operand *o, uint64_t batch, uint64_t rows,
                                 uint64_t k, enum dtype type)
{
    struct blas_operand m = {.sym = o->sym,
                             .type = type,
                             .offset = o->offset,
                             .batch_stride = o->batch_stride,
                             .row_stride = o->row_stride,
                             .k_stride = o->k_stride,
                             .batch = batch,
                             .rows = rows,
                             .k = k};
    m.turned = is_8_bit(type) && o->k_stride != 1 && k > 1;
    return m;
}

/* How it lies once it is in device memory. */
static struct blas_matrix lie(const struct blas_operand *o, bool k_last_is_plain)
{
    bool k_last = o->turned || o->k_stride == 1 || o->k == 1;
    uint64_t stride = o->turned ? o->rows * o->k : o->batch_stride;
    uint64_t ld = o->turned ? o->k : k_last ? o->row_stride : o->k_stride;
    uint64_t least = k_last ? o->k : o->rows;
    return (struct blas_matrix){.type = o->type,
                                .swapped = k_last != k_last_is_plain,
                                .ld = ld < least ? least : ld,
                                .stride = stride};
}

static enum blas_math math_of(const struct product *p, enum dtype type)
{
    return type == DT_F64              ? BLAS_F64
           : type == DT_I8             ? BLAS_I32
           : type == DT_F32 && p->tf32 ? BLAS_TF32
                                       : BLAS_F32;
}

static struct blas_request request_of(const struct product *p, bool sgemm)
{
    enum dtype ta = sgemm ? DT_F32 : p->a.type, tb = sgemm ? DT_F32 : p->b.type;
    struct blas_request r = {.a = place(&p->a, p->batch, p->m, p->k, ta),
                             .b = place(&p->b, p->batch, p->n, p->k, tb)};
    r.product = (struct blas_product){
        .batch = p->batch,
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .math = sgemm ? BLAS_F32 : math_of(p, ta),
        .a = lie(&r.a, true),
        .b = lie(&r.b, false),
        .c = {.type = sgemm ? DT_F32 : p->result, .ld = p->n, .stride = p->m * p->n}};
    return r;
}

struct blas_requests blas_requests_of(struct arena *a, const struct rival_ops *ops,
                                      const struct spec *s, const struct bench_point *p)
{
    struct products products = products_find(a, s, p);
    struct blas_requests out = {.why = products.why};
    struct buf note = buf_in(a);
    bool turned = false;
    for (size_t i = 0; i < products.v.n; i++) {
        struct blas_request r = request_of(&products.v.v[i], ops == &rival_cublas_sgemm);
        turned |= r.a.turned || r.b.turned;
        *VEC_PUSH(a, &out.v) = r;
    }
    if (products.v.n > 1)
        buf_printf(&note, "the %zu products only", products.v.n);
    else if (!products.plain)
        buf_puts(&note, "the product only");
    if (turned)
        buf_printf(&note, "%swith k the last subscript of both operands", note.len ? ", " : "");
    out.note = note.len ? buf_text(&note) : NULL;
    return out;
}

static void matrix_text(const char *name, const char *outer, const char *inner,
                        const struct blas_matrix *m, bool batch, struct buf *out)
{
    buf_printf(out, ", %s %s[%s][%s] ld %" PRIu64, name, dtype_name(m->type),
               m->swapped ? inner : outer, m->swapped ? outer : inner, m->ld);
    if (batch)
        buf_printf(out, " stride %" PRIu64, m->stride);
}

const char *blas_math_name(enum blas_math math)
{
    static const char *const names[] = {
        [BLAS_F32] = "f32", [BLAS_TF32] = "tf32", [BLAS_F64] = "f64", [BLAS_I32] = "i32"};
    return names[math];
}

void blas_requests_text(const struct rival_ops *ops, const struct blas_requests *r, struct buf *out)
{
    for (size_t i = 0; i < r->v.n; i++) {
        const struct blas_product *p = &r->v.v[i].product;
        bool batch = p->batch > 1;
        bool fp8 = is_8_bit(p->a.type) && dtype_is_float(p->a.type);
        buf_printf(out, "  %s",
                   ops == &rival_cublaslt || fp8 ? "cublasLtMatmul"
                   : batch                       ? "cublasGemmStridedBatchedEx"
                                                 : "cublasGemmEx");
        buf_printf(out, ", m %" PRIu64 ", n %" PRIu64 ", k %" PRIu64, p->m, p->n, p->k);
        if (batch)
            buf_printf(out, ", batch %" PRIu64, p->batch);
        matrix_text("a", "m", "k", &p->a, batch, out);
        matrix_text("b", "k", "n", &p->b, batch, out);
        matrix_text("c", "m", "n", &p->c, batch, out);
        buf_printf(out, ", sums in %s\n", blas_math_name(p->math));
    }
}

/* ---- operands in host memory ---- */

struct conversion {
    const struct blas_operand *to;
    enum dtype from;
    const void *source;
    void *made;
};

static void convert(void *ctx, uint64_t begin, uint64_t end)
{
    const struct conversion *c = ctx;
    double v[512];
    /* pairs of packed elements stay together: the grain is even */
    for (uint64_t i = begin; i < end; i += sizeof v / sizeof *v) {
        size_t n = end - i < sizeof v / sizeof *v ? (size_t)(end - i) : sizeof v / sizeof *v;
        dtype_load(c->from, c->source, (size_t)i, n, v);
        dtype_store(c->to->type, c->made, (size_t)i, n, v);
    }
}

/* Rows begin .. end of all batches, with k last. */
static void turn(void *ctx, uint64_t begin, uint64_t end)
{
    const struct conversion *c = ctx;
    const struct blas_operand *o = c->to;
    for (uint64_t i = begin; i < end; i++) {
        uint64_t from = o->offset + i / o->rows * o->batch_stride + i % o->rows * o->row_stride;
        for (uint64_t l = 0; l < o->k; l++)
            dtype_set(o->type, c->made, (size_t)(i * o->k + l),
                      dtype_get(c->from, c->source, (size_t)(from + l * o->k_stride)));
    }
}

/* The bytes to upload, and their number of elements in o. */
static const void *make_host(struct rival *v, struct blas_operand *o)
{
    const struct run_param *p = run_find_param(v->subject->code.run, o->sym->name);
    struct conversion c = {.to = o, .from = p->sym->type, .source = p->host.data};
    o->elements = p->host.count;
    if (o->turned) {
        o->elements = o->batch * o->rows * o->k;
        c.made = arena_alloc(v->a, dtype_bytes(o->type, (size_t)o->elements));
        parallel_for(o->batch * o->rows, GRAIN / o->k + 1, turn, &c);
        o->offset = 0;
        o->batch_stride = o->rows * o->k;
        o->row_stride = o->k;
        o->k_stride = 1;
        return c.made;
    }
    if (o->type == c.from)
        return c.source;
    c.made = arena_alloc(v->a, dtype_bytes(o->type, (size_t)o->elements));
    parallel_for(o->elements, GRAIN, convert, &c);
    return c.made;
}

/* ---- device memory ---- */

/* An operand that an earlier product has already, as in several products of one input. */
static bool share(struct blas_work *w, size_t n, struct blas_operand *o, struct rival_buffer *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct blas_request *r = &w->requests.v.v[i];
        const struct request_memory *m = &w->memory[i];
        const struct blas_operand *const has[] = {&r->a, &r->b};
        for (int k = 0; k < 2; k++)
            if (has[k]->sym == o->sym && has[k]->type == o->type && !has[k]->turned && !o->turned) {
                o->elements = has[k]->elements;
                *out = k ? m->b : m->a;
                return true;
            }
    }
    return false;
}

static void place_operand(struct rival *v, size_t n, struct blas_operand *o,
                          struct rival_buffer *out)
{
    if (share(v->blas, n, o, out))
        return;
    out->host = make_host(v, o);
    out->bytes = dtype_bytes(o->type, (size_t)o->elements);
    rival_place(v, out);
}

static uint64_t result_bytes(const struct blas_product *p)
{
    return dtype_bytes(p->c.type, (size_t)(p->batch * p->m * p->n));
}

static void lay_out(struct rival *v)
{
    struct blas_work *w = v->blas;
    for (size_t i = 0; i < w->requests.v.n; i++) {
        struct blas_request *r = &w->requests.v.v[i];
        struct request_memory *m = &w->memory[i];
        place_operand(v, i, &r->a, &m->a);
        place_operand(v, i, &r->b, &m->b);
        m->c.bytes = result_bytes(&r->product);
        m->c.at = w->rest ? 0 : rival_reserve(v, m->c.bytes);
        v->bytes += m->c.bytes;
    }
}

static enum device_status make_ready(struct rival *v, struct diags *d)
{
    struct blas_work *w = v->blas;
    enum device_status status = rival_allocate(v, d);
    for (size_t i = 0; i < w->requests.v.n && status == DEVICE_OK; i++) {
        status = rival_upload(v, &w->memory[i].a, d);
        if (status == DEVICE_OK)
            status = rival_upload(v, &w->memory[i].b, d);
    }
    return status == DEVICE_OK ? v->dev->queue->wait(v->dev->dev, NULL, d) : status;
}

/* ---- execution ---- */

/* This is the place in a set that a product's result goes to. */
static uint64_t result_at(const struct rival *v, size_t i, unsigned set)
{
    const struct blas_work *w = v->blas;
    if (!w->rest)
        return rival_address(v, &w->memory[i].c, set);
    return w->rest->base + set * w->rest->set_bytes + w->rest->offset[w->first_product + i];
}

static enum device_status multiply(struct rival *v, size_t i, unsigned set, struct diags *d)
{
    struct blas_work *w = v->blas;
    const struct blas_request *r = &w->requests.v.v[i];
    const struct request_memory *m = &w->memory[i];
    const uint64_t a = rival_address(v, &m->a, set) + dtype_bytes(r->a.type, (size_t)r->a.offset);
    const uint64_t b = rival_address(v, &m->b, set) + dtype_bytes(r->b.type, (size_t)r->b.offset);
    return v->dev->ops->blas->multiply(v->dev->dev, m->plan, m->choice, a, b, result_at(v, i, set),
                                       d);
}

static enum device_status enqueue(struct rival *v, unsigned set, struct diags *d)
{
    enum device_status status = DEVICE_OK;
    for (size_t i = 0; i < v->blas->requests.v.n && status == DEVICE_OK; i++)
        status = multiply(v, i, set, d);
    if (v->blas->rest && status == DEVICE_OK)
        status = v->blas->rest->ops->enqueue(v->blas->rest, set, d);
    return status;
}

static enum device_status poison(struct rival *v, unsigned set, struct diags *d)
{
    const struct blas_work *w = v->blas;
    enum device_status status = DEVICE_OK;
    for (size_t i = 0; i < w->requests.v.n && status == DEVICE_OK; i++)
        status =
            v->dev->queue->fill(v->dev->dev, result_at(v, i, set), POISON, w->memory[i].c.bytes, d);
    return status == DEVICE_OK && w->rest ? w->rest->ops->poison(w->rest, set, d) : status;
}

/* ---- the fastest of several choices ---- */

struct chosen {
    struct rival *v;
    size_t i; /* of the products */
};

static enum device_status run_choice(void *ctx, unsigned choice, unsigned set, struct diags *d)
{
    const struct chosen *c = ctx;
    c->v->blas->memory[c->i].choice = choice;
    return multiply(c->v, c->i, set, d);
}

static enum device_status choose(struct rival *v, size_t i, struct diags *d)
{
    const struct device_blas *lib = v->dev->ops->blas;
    struct request_memory *m = &v->blas->memory[i];
    struct chosen ctx = {v, i};
    const struct choice c = {v, run_choice, &ctx};
    const unsigned n = lib->choices(m->plan);
    unsigned best;
    enum device_status status = choice_fastest(&c, n, &best, d);
    m->choice = best;
    if (status != DEVICE_OK)
        return status;
    const char *what = lib->describe(v->dev->dev, m->plan, best);
    if (n > 1 || *what)
        v->choice = arena_printf(v->a, "%s%s%s%s%u of %u", v->choice ? v->choice : "",
                                 v->choice ? "; " : "", what, *what ? ", choice " : "choice ",
                                 best + 1, n);
    return DEVICE_OK;
}

/* ---- preparing ---- */

static enum device_status make_plans(struct rival *v, struct diags *d)
{
    unsigned choices = v->ops == &rival_cublaslt ? BLAS_CHOICES_MOST : 1;
    enum device_status status = DEVICE_OK;
    for (size_t i = 0; i < v->blas->requests.v.n && status == DEVICE_OK; i++)
        status = v->dev->ops->blas->plan(v->dev->dev, &v->blas->requests.v.v[i].product, choices,
                                         &v->blas->memory[i].plan, d);
    return status;
}

/* The kernel for the rest, checked by itself on inputs of its own. */
static enum rival_status prepare_rest(struct rival *v, struct diags *d)
{
    struct blas_work *w = v->blas;
    w->rest_source = *v->subject->source;
    w->rest_source.schedule = NULL;
    w->rest_source.text = blas_rest_of(v->a, v->subject->source, v->point, d);
    if (!w->rest_source.text)
        return RIVAL_REFUSED;
    w->rest_source.kernel = arena_printf(v->a, "%s_rest", v->subject->source->kernel);
    struct rival *rest = w->rest = ARENA_NEW(v->a, struct rival);
    *rest = (struct rival){.ops = &rival_kernel,
                           .name = v->name,
                           .a = v->a,
                           .dev = v->dev,
                           .source = &w->rest_source,
                           .point = v->point,
                           .data_options = v->data_options,
                           .subject = rest};
    enum rival_status status = rest->ops->prepare(rest, d);
    if (status != RIVAL_OK)
        return status;
    for (size_t i = 0; i < rest->code.run->nparam; i++)
        if (strcmp(rest->code.run->param[i].sym->name, "product0") == 0)
            w->first_product = i;
    status = bench_check(rest, d);
    v->why = rest->why;
    return status;
}

static enum rival_status prepare(struct rival *v, struct diags *d)
{
    struct diags *own = diags_new(v->a);
    struct blas_work *w = v->blas = ARENA_NEW(v->a, struct blas_work);
    if (!v->dev->ops->blas) {
        v->why = "this device has no library of matrix products";
        return RIVAL_ABSENT;
    }
    w->requests = blas_requests_of(v->a, v->ops, v->subject->code.spec, v->point);
    w->memory = ARENA_ARRAY(v->a, w->requests.v.n, struct request_memory);
    v->why = w->requests.why;
    v->note = w->requests.note;
    if (v->why)
        return RIVAL_REFUSED;
    if (v->ops == &rival_cublas_unfused) {
        enum rival_status rest = prepare_rest(v, own);
        if (rest != RIVAL_OK && rest != RIVAL_WRONG)
            return rival_failed(v, own, rest);
        if (rest != RIVAL_OK)
            return rest;
        v->note = arena_printf(v->a, "the product%s, and then a kernel for the rest",
                               w->requests.v.n > 1 ? "s" : "");
    }
    enum device_status status = make_plans(v, own);
    if (status == DEVICE_ABSENT)
        return rival_failed(v, own, RIVAL_ABSENT);
    if (status == DEVICE_OK) {
        lay_out(v);
        v->nset = rival_sets(v->dev, v->set_bytes);
        v->launches = (unsigned)w->requests.v.n;
        if (w->rest) {
            v->launches += w->rest->launches;
            v->bytes += w->rest->bytes;
            v->nset = v->nset < w->rest->nset ? v->nset : w->rest->nset;
        }
        v->repeatable = true;
        status = make_ready(v, own);
    }
    for (size_t i = 0; i < w->requests.v.n && status == DEVICE_OK; i++)
        status = choose(v, i, own);
    return rival_prepared(v, status, own, d);
}

/* ---- results ---- */

/* Element (x, row, l) of an operand. */
static double element(const struct blas_operand *o, const void *host, uint64_t x, uint64_t row,
                      uint64_t l)
{
    return dtype_get(
        o->type, host,
        (size_t)(o->offset + x * o->batch_stride + row * o->row_stride + l * o->k_stride));
}

/* How far the result may be off, of sums of k terms with magnitudes that add up to m. */
static double allowed(const struct blas_request *r, double want, double m)
{
    const struct blas_product *p = &r->product;
    double unit = p->math == BLAS_F64 ? 0x1p-53 : 0x1p-24;
    if (p->math == BLAS_I32)
        return 0;
    double sums = m * unit * ((double)p->k + 2);
    if (is_8_bit(p->a.type)) /* tensor cores keep 13 bits of such sums */
        sums += m * 0x1p-10;
    return sums + fabs(want) * dtype_roundoff(p->c.type) + dtype_smallest(p->c.type);
}

/* The library may round a factor to tf32, or leave bits out: this is the value it multiplies. */
static double taken(const struct blas_request *r, double v, bool cut)
{
    return r->product.math != BLAS_TF32 ? v
           : cut                        ? tf32_cut_from_double(v)
                                        : tf32_even_from_double(v);
}

/* Element `at` of the result, and how far it may be off. */
static double sample(const struct blas_request *r, const struct request_memory *m, uint64_t at,
                     bool cut, double *limit)
{
    const struct blas_product *p = &r->product;
    const uint64_t x = at / (p->m * p->n), row = at / p->n % p->m, col = at % p->n;
    double want = 0, size = 0;
    for (uint64_t l = 0; l < p->k; l++) {
        const double term = taken(r, element(&r->a, m->a.host, x, row, l), cut) *
                            taken(r, element(&r->b, m->b.host, x, col, l), cut);
        want += term;
        size += fabs(term);
    }
    if (p->math == BLAS_I32) /* modulo 2^32 */
        want = (double)(int32_t)(uint32_t)(int64_t)want;
    *limit = allowed(r, want, size);
    return want;
}

static bool sample_is_right(struct rival *v, size_t i, uint64_t at, double got)
{
    const struct blas_request *r = &v->blas->requests.v.v[i];
    const struct request_memory *m = &v->blas->memory[i];
    const struct blas_product *p = &r->product;
    const uint64_t row = at / p->n % p->m, col = at % p->n;
    double limit, want = sample(r, m, at, false, &limit);
    if (p->math == BLAS_TF32 && fabs(got - want) > limit)
        want = sample(r, m, at, true, &limit);
    const double off = fabs(got - want);
    const bool infinite = isinf(got) && isinf(dtype_round(p->c.type, want));
    if (!infinite && limit > 0)
        v->checked.max_bound = fmax(v->checked.max_bound, off / limit);
    v->checked.compared++;
    if (infinite || off <= limit)
        return true;
    v->why = arena_printf(v->a, "the product at %" PRIu64 ", %" PRIu64 " is %.9g instead of %.9g",
                          row, col, got, want);
    return false;
}

/* Samples over the whole result: positions by a multiplicative sequence, the last element among
 * them. */
static enum rival_status check(struct rival *v, unsigned set, struct diags *d)
{
    const struct bench_device *b = v->dev;
    v->checked = (struct data_check){0};
    for (size_t i = 0; i < v->blas->requests.v.n; i++) {
        const struct blas_product *p = &v->blas->requests.v.v[i].product;
        uint64_t all = p->batch * p->m * p->n, base = result_at(v, i, set);
        uint64_t n = all < SAMPLES ? all : SAMPLES;
        for (uint64_t s = 0; s < n; s++) {
            unsigned char bytes[8];
            uint64_t at = n == all     ? s
                          : s + 1 == n ? all - 1
                                       : (s * 0x9e3779b97f4a7c15u >> 16) % all;
            uint64_t size = dtype_bits(p->c.type) / 8;
            if (b->ops->read(b->dev, bytes, base + at * size, size, d) != DEVICE_OK)
                return rival_failed(v, d, RIVAL_FAILED);
            if (!sample_is_right(v, i, at, dtype_get(p->c.type, bytes, 0)))
                return RIVAL_WRONG;
        }
    }
    v->checked.right = true;
    v->why = NULL;
    return RIVAL_OK;
}

static void release(struct rival *v)
{
    for (size_t i = 0; v->blas && i < v->blas->requests.v.n; i++)
        if (v->blas->memory[i].plan)
            v->dev->ops->blas->discard(v->dev->dev, v->blas->memory[i].plan);
    if (v->blas && v->blas->rest)
        v->blas->rest->ops->release(v->blas->rest);
    if (v->base)
        v->dev->ops->release(v->dev->dev, v->base);
    v->base = 0;
    v->blas = NULL;
}

#define RIVAL(name)                         \
    const struct rival_ops rival_##name = { \
        .prepare = prepare,                 \
        .enqueue = enqueue,                 \
        .poison = poison,                   \
        .check = check,                     \
        .release = release,                 \
    }
RIVAL(cublas);
RIVAL(cublas_sgemm);
RIVAL(cublaslt);
RIVAL(cublas_unfused);
