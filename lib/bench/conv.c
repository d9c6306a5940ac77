/* The vendor's library of convolutions as a rival: cudnn, where the spec is one. */
#include <config.h>

#include "bench/choice.h"
#include "bench/convolution.h"
#include "bench/rival.h"

#include <inttypes.h>
#include <math.h>

enum { POISON = 0xff, SAMPLES = 256, SAMPLES_LEAST = 8, TERMS_MOST = 1 << 23 };

struct conv_work {
    struct convolution x;
    struct conv_plan *plan;
    unsigned choice;
    enum conv_operand result;
    struct rival_buffer buffer[CONV_OPERANDS];
};

/* ---- buffers ---- */

static void lay_out(struct rival *v)
{
    struct conv_work *w = v->conv;
    for (int k = 0; k < CONV_OPERANDS; k++) {
        const struct run_param *p = run_find_param(v->subject->code.run, w->x.sym[k]->name);
        w->buffer[k].bytes = p->host.bytes;
        w->buffer[k].host = k == (int)w->result ? NULL : p->host.data;
        rival_place(v, &w->buffer[k]);
    }
}

/* ---- execution ---- */

static enum device_status run_way(void *ctx, unsigned way, unsigned set, struct diags *d)
{
    struct rival *v = ctx;
    const struct conv_work *w = v->conv;
    uint64_t at[CONV_OPERANDS];
    for (int k = 0; k < CONV_OPERANDS; k++)
        at[k] = rival_address(v, &w->buffer[k], set) +
                dtype_bytes(w->x.problem.tensor[k].type, (size_t)w->x.offset[k]);
    return v->dev->ops->conv->execute(v->dev->dev, w->plan, way, at, d);
}

static enum device_status enqueue(struct rival *v, unsigned set, struct diags *d)
{
    return run_way(v, v->conv->choice, set, d);
}

static enum device_status poison(struct rival *v, unsigned set, struct diags *d)
{
    const struct conv_work *w = v->conv;
    const struct rival_buffer *x = &w->buffer[w->result];
    return v->dev->queue->fill(v->dev->dev, rival_address(v, x, set), POISON, x->bytes, d);
}

static enum device_status choose(struct rival *v, struct diags *d)
{
    struct conv_work *w = v->conv;
    const struct device_conv *lib = v->dev->ops->conv;
    const struct choice c = {v, run_way, v};
    const unsigned n = lib->choices(w->plan);
    enum device_status status = choice_fastest(&c, n, &w->choice, d);
    v->choice =
        arena_printf(v->a, "%s, choice %u of %u", lib->version(v->dev->dev), w->choice + 1, n);
    return status;
}

static enum rival_status prepare(struct rival *v, struct diags *d)
{
    struct diags *own = diags_new(v->a);
    struct conv_work *w = v->conv = ARENA_NEW(v->a, struct conv_work);
    const struct code *c = &v->subject->code;
    const struct attention_at at = {v->a, c->spec, v->point, c->in.buffers};
    if (!v->dev->ops->conv) {
        v->why = "this device has no library of convolutions";
        return RIVAL_ABSENT;
    }
    w->x = convolution_find(&at);
    w->result = convolution_result(&w->x.problem);
    v->why = w->x.why;
    if (v->why)
        return RIVAL_REFUSED;
    v->note = w->x.plain ? NULL : "the convolution only";
    enum device_status status = v->dev->ops->conv->plan(v->dev->dev, &w->x.problem, &w->plan, own);
    if (status == DEVICE_ABSENT)
        return rival_failed(v, own, RIVAL_ABSENT);
    if (status == DEVICE_OK) {
        lay_out(v);
        v->nset = rival_sets(v->dev, v->set_bytes);
        v->launches = 1;
        v->repeatable = true;
        status = rival_make_buffers(v, w->buffer, CONV_OPERANDS, own);
    }
    if (status == DEVICE_OK)
        status = choose(v, own);
    return rival_prepared(v, status, own, d);
}

/* ---- results ---- */

/* An element of the result is a sum over two or three axes, each of which moves through both
 * factors. */
struct walk {
    const struct conv_problem *p;
    const struct rival_buffer *buffer;
    const uint64_t *offset;
    bool cut;
    double want, size;
};

/* The library may round a factor to tf32, or leave bits out: this is the value it multiplies. */
static double taken(const struct walk *w, enum conv_operand which, uint64_t at)
{
    const double v =
        dtype_get(w->p->tensor[which].type, w->buffer[which].host, (size_t)(w->offset[which] + at));
    return !w->p->tf32 ? v : w->cut ? tf32_cut_from_double(v) : tf32_even_from_double(v);
}

static uint64_t offset_of(const struct conv_problem *p, enum conv_operand which, const uint64_t *i)
{
    uint64_t at = 0;
    for (unsigned k = 0; k < p->spatial + 2; k++)
        at += i[k] * p->tensor[which].stride[k];
    return at;
}

/* x's place for a place of y and one of the window; false: it is in the border. */
static bool place_of(const struct conv_problem *p, const uint64_t *y, const uint64_t *u,
                     uint64_t *x)
{
    for (unsigned k = 0; k < p->spatial; k++) {
        const int64_t at = (int64_t)y[k] * p->stride[k] + (int64_t)u[k] * p->dilation[k] -
                           p->pre[k];
        if (at < 0 || at >= (int64_t)p->tensor[CONV_X].dim[2 + k])
            return false;
        x[k] = (uint64_t)at;
    }
    return true;
}

static void add_term(struct walk *w, enum conv_operand a, const uint64_t *i, enum conv_operand b,
                     const uint64_t *j)
{
    const double term = taken(w, a, offset_of(w->p, a, i)) * taken(w, b, offset_of(w->p, b, j));
    w->want += term;
    w->size += fabs(term);
}

/* The next of all places below `most`; false when there is none. */
static bool next_place(const struct conv_problem *p, const uint64_t *most, uint64_t *i)
{
    for (unsigned k = p->spatial; k > 0; k--) {
        if (++i[k - 1] < most[k - 1])
            return true;
        i[k - 1] = 0;
    }
    return false;
}

static void sum_forward(struct walk *w, const uint64_t *y)
{
    const struct conv_tensor *t = w->p->tensor;
    const uint64_t group = y[1] / (t[CONV_Y].dim[1] / convolution_groups(w->p));
    uint64_t x[CONV_RANK_MOST] = {y[0]}, f[CONV_RANK_MOST] = {y[1]};
    do {
        if (place_of(w->p, y + 2, f + 2, x + 2))
            for (f[1] = 0; f[1] < t[CONV_W].dim[1]; f[1]++) {
                x[1] = group * t[CONV_W].dim[1] + f[1];
                add_term(w, CONV_X, x, CONV_W, f);
            }
    } while (next_place(w->p, t[CONV_W].dim + 2, f + 2));
}

/* y's place from which a place of x is met through one of the window. */
static bool origin_of(const struct conv_problem *p, const uint64_t *x, const uint64_t *u,
                      uint64_t *y)
{
    for (unsigned k = 0; k < p->spatial; k++) {
        const int64_t at = (int64_t)x[k] + p->pre[k] - (int64_t)u[k] * p->dilation[k];
        if (at < 0 || at % p->stride[k] != 0 ||
            at / p->stride[k] >= (int64_t)p->tensor[CONV_Y].dim[2 + k])
            return false;
        y[k] = (uint64_t)(at / p->stride[k]);
    }
    return true;
}

static void sum_data(struct walk *w, const uint64_t *x)
{
    const struct conv_tensor *t = w->p->tensor;
    const uint64_t filters = t[CONV_Y].dim[1] / convolution_groups(w->p);
    const uint64_t group = x[1] / t[CONV_W].dim[1];
    uint64_t y[CONV_RANK_MOST] = {x[0]}, f[CONV_RANK_MOST] = {0, x[1] % t[CONV_W].dim[1]};
    do {
        if (origin_of(w->p, x + 2, f + 2, y + 2))
            for (uint64_t k = 0; k < filters; k++) {
                y[1] = f[0] = group * filters + k;
                add_term(w, CONV_Y, y, CONV_W, f);
            }
    } while (next_place(w->p, t[CONV_W].dim + 2, f + 2));
}

static void sum_filter(struct walk *w, const uint64_t *f)
{
    const struct conv_tensor *t = w->p->tensor;
    const uint64_t group = f[0] / (t[CONV_Y].dim[1] / convolution_groups(w->p));
    uint64_t x[CONV_RANK_MOST] = {0, group * t[CONV_W].dim[1] + f[1]};
    uint64_t y[CONV_RANK_MOST] = {0, f[0]};
    do {
        if (place_of(w->p, y + 2, f + 2, x + 2))
            for (uint64_t n = 0; n < t[CONV_Y].dim[0]; n++) {
                x[0] = y[0] = n;
                add_term(w, CONV_X, x, CONV_Y, y);
            }
    } while (next_place(w->p, t[CONV_Y].dim + 2, y + 2));
}

static void sum_at(struct walk *w, const uint64_t *i)
{
    w->want = w->size = 0;
    if (w->p->kind == CONV_FORWARD)
        sum_forward(w, i);
    else if (w->p->kind == CONV_DATA)
        sum_data(w, i);
    else
        sum_filter(w, i);
}

/* How far the result may be off, of k terms. Libraries add up in any order, and may transform both
 * factors (Winograd, FFT), in their own type where that has 16 bits. */
static double allowed(const struct conv_work *w, const struct walk *s, double k)
{
    const struct conv_tensor *t = w->x.problem.tensor;
    const bool narrow = dtype_bits(t[CONV_X].type) == 16;
    const double transform = narrow ? dtype_roundoff(t[CONV_X].type) / 4 : 0x1p-20;
    return s->size * (0x1p-24 * (k + 2) + transform) +
           fabs(s->want) * dtype_roundoff(t[w->result].type) + dtype_smallest(t[w->result].type);
}

static bool sample_is_right(struct rival *v, const uint64_t *i, double got)
{
    const struct conv_work *w = v->conv;
    const struct conv_problem *p = &w->x.problem;
    struct walk s = {.p = p, .buffer = w->buffer, .offset = w->x.offset};
    double elements = 1;
    for (unsigned k = 0; k < p->spatial + 2; k++)
        elements *= (double)p->tensor[w->result].dim[k];
    for (int cut = 0; cut < 1 + p->tf32; cut++) {
        s.cut = cut;
        sum_at(&s, i);
        const double limit = allowed(w, &s, w->x.terms / elements), off = fabs(got - s.want);
        const bool infinite = isinf(got) && isinf(dtype_round(p->tensor[w->result].type, s.want));
        if (infinite || off <= limit) {
            v->checked.max_bound = fmax(v->checked.max_bound, infinite ? 0 : off / limit);
            v->checked.compared++;
            return true;
        }
    }
    v->why = arena_printf(v->a,
                          "the convolution at %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
                          " is %.9g instead of %.9g",
                          i[0], i[1], i[2], i[3], got, s.want);
    return false;
}

/* How many elements are compared: of long sums fewer. */
static uint64_t samples_of(const struct conv_work *w, uint64_t elements)
{
    const double each = fmax(w->x.terms / (double)elements, 1);
    const double n = fmin(fmax(TERMS_MOST / each, SAMPLES_LEAST), SAMPLES);
    return n < (double)elements ? (uint64_t)n : elements;
}

static enum rival_status check(struct rival *v, unsigned set, struct diags *d)
{
    const struct bench_device *b = v->dev;
    const struct conv_work *w = v->conv;
    const struct conv_problem *p = &w->x.problem;
    const struct conv_tensor *t = &p->tensor[w->result];
    uint64_t all = 1;
    for (unsigned k = 0; k < p->spatial + 2; k++)
        all *= t->dim[k];
    const uint64_t n = samples_of(w, all);
    v->checked = (struct data_check){0};
    for (uint64_t s = 0; s < n; s++) {
        uint64_t rest = n == all ? s : s + 1 == n ? all - 1 : (s * 0x9e3779b97f4a7c15u >> 16) % all;
        uint64_t i[CONV_RANK_MOST] = {0};
        unsigned char bytes[8];
        for (unsigned k = p->spatial + 2; k > 0; k--) {
            i[k - 1] = rest % t->dim[k - 1];
            rest /= t->dim[k - 1];
        }
        const uint64_t at = w->x.offset[w->result] + offset_of(p, w->result, i);
        const uint64_t size = dtype_bits(t->type) / 8;
        if (b->ops->read(b->dev, bytes, rival_address(v, &w->buffer[w->result], set) + at * size,
                         size, d) != DEVICE_OK)
            return rival_failed(v, d, RIVAL_FAILED);
        if (!sample_is_right(v, i, dtype_get(t->type, bytes, 0)))
            return RIVAL_WRONG;
    }
    v->checked.right = true;
    v->why = NULL;
    return RIVAL_OK;
}

static void release(struct rival *v)
{
    if (v->conv && v->conv->plan)
        v->dev->ops->conv->discard(v->dev->dev, v->conv->plan);
    if (v->base)
        v->dev->ops->release(v->dev->dev, v->base);
    v->base = 0;
    v->conv = NULL;
}

const struct rival_ops rival_convolution = {
    .prepare = prepare,
    .enqueue = enqueue,
    .poison = poison,
    .check = check,
    .release = release,
};
