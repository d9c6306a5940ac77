#include <config.h>

#include "bench/bench.h"

#include <math.h>

#include "base/io.h"
#include "bench/convolution.h"
#include "bench/product.h"
#include "bench/work.h"

/* ---- rivals ---- */

static bool add_schedule(struct arena *a, struct bench *b, struct bench_rival *v, const char *text,
                         struct diags *d)
{
    struct diags *own = diags_new(a);
    struct spec_file *f = spec_read(a, b->kernel.source.text, NULL, 0, own);
    struct spec *s = f ? spec_find(f, b->kernel.source.kernel) : NULL;
    v->ops = &rival_kernel;
    v->name = text;
    v->source = b->kernel.source;
    v->source.schedule = source_new(a, "--vs", text, strlen(text));
    v->same_spec = true;
    return s && spec_set_schedule(a, s, v->source.schedule, d);
}

static bool add_spec(struct arena *a, struct bench *b, struct bench_rival *v, const char *path,
                     struct diags *d)
{
    const char *slash = strrchr(path, '/');
    const struct source *text = io_read(a, d, path, IO_TEXT_LIMIT);
    struct spec_file *f = text ? spec_read(a, text, NULL, 0, d) : NULL;
    if (!f)
        return false;
    const struct spec *s = spec_find(f, b->kernel.source.kernel);
    if (f->specs.n == 1)
        s = f->specs.v[0];
    if (!s)
        return diag_error(d, SPAN_NONE, "'%s' has several kernels, none called '%s'", path,
                          b->kernel.source.kernel);
    v->ops = &rival_kernel;
    v->name = slash ? slash + 1 : path;
    v->source = b->kernel.source;
    v->source.text = text;
    v->source.kernel = s->name;
    return true;
}

/* Rivals that need nothing but their name. */
static const struct {
    const char *name;
    const struct rival_ops *ops;
} plain_rivals[] = {{"copy", &rival_copy},
                    {"cublas", &rival_cublas},
                    {"cublas-sgemm", &rival_cublas_sgemm},
                    {"cublas-unfused", &rival_cublas_unfused},
                    {"cublaslt", &rival_cublaslt},
                    {"cudnn", &rival_cudnn}};

static bool add_plain(struct bench_rival *v, const char *text)
{
    for (size_t i = 0; i < sizeof plain_rivals / sizeof *plain_rivals; i++)
        if (strcmp(plain_rivals[i].name, text) == 0) {
            *v = (struct bench_rival){.ops = plain_rivals[i].ops, .name = plain_rivals[i].name};
            return true;
        }
    return false;
}

bool bench_add_rival(struct arena *a, struct bench *b, const char *text, struct diags *d)
{
    static const char schedule[] = "schedule:";
    struct bench_rival *v = &b->rival[b->nrival];
    const char *dot = strrchr(text, '.');
    if (b->nrival == BENCH_RIVALS_MOST)
        return diag_error(d, SPAN_NONE, "there are more than %d rivals", BENCH_RIVALS_MOST);
    *v = (struct bench_rival){0};
    bool good = add_plain(v, text);
    if (good)
        ;
    else if (strncmp(text, schedule, strlen(schedule)) == 0)
        good = add_schedule(a, b, v, text + strlen(schedule), d);
    else if (strchr(text, '/') || (dot && strcmp(dot, ".yaml") == 0))
        good = add_spec(a, b, v, text, d);
    else
        diag_error(
            d, SPAN_NONE,
            "unknown rival '%s'; there are copy, cublas, cublas-sgemm, cublas-unfused, cublaslt, "
            "cudnn, SPEC.yaml and "
            "schedule:{KEY: VALUE}",
            text);
    for (size_t i = 0; good && i < b->nrival; i++)
        if (strcmp(b->rival[i].name, v->name) == 0)
            good = diag_error(d, SPAN_NONE, "the rival '%s' is there twice", v->name);
    b->nrival += good;
    return good;
}

/* ---- one problem ---- */

double bench_operations(struct arena *a, const struct spec *s, const struct bench_point *p,
                        const void *const *buffers)
{
    const struct attention attention = attention_find(&(struct attention_at){a, s, p, buffers});
    if (attention.is_found)
        return attention.operations;
    const struct convolution convolution =
        convolution_find(&(struct attention_at){a, s, p, buffers});
    if (!convolution.why && convolution.plain)
        return 2 * convolution.terms;
    const struct products products = products_find(a, s, p);
    return products.plain ? products_operations(&products)
                          : fmax(work_operations(s, p), products_operations(&products));
}

struct trial {
    struct bench_row row;
    struct rival *rival; /* nresult of them */
    struct arena *a;
    struct diags *d;
};

enum rival_status bench_check(struct rival *v, struct diags *d)
{
    const struct bench_device *b = v->dev;
    if (v->ops->poison(v, 0, d) != DEVICE_OK || v->ops->enqueue(v, 0, d) != DEVICE_OK ||
        b->queue->wait(b->dev, NULL, d) != DEVICE_OK) {
        v->why = d->list.n ? d->list.v[d->list.n - 1].text : "it failed";
        return RIVAL_FAILED;
    }
    return v->ops->check(v, 0, d);
}

static void prepare(struct trial *t, size_t i)
{
    const struct bench *b = t->row.bench;
    const struct bench_rival *from = i ? &b->rival[i - 1] : &b->kernel;
    struct measured *m = &t->row.result[i];
    struct rival *v = m->rival = &t->rival[i];
    *v = (struct rival){.ops = from->ops,
                        .name = from->name,
                        .a = t->a,
                        .dev = b->dev,
                        .source = from->ops == &rival_kernel ? &from->source : NULL,
                        .point = t->row.point,
                        .data_options = b->data,
                        .subject = &t->rival[0],
                        .peer = t->rival,
                        .npeer = i,
                        .same_spec = from->same_spec};
    m->status = v->ops->prepare(v, t->d);
    if (m->status == RIVAL_OK && v->launches == 0) {
        v->why = "nothing is launched: a dimension is 0";
        m->status = RIVAL_ABSENT;
    }
    if (m->status == RIVAL_OK)
        m->status = bench_check(v, t->d);
    m->why = v->why;
}

/* Checks the results that graphs and the other sets left while the rival was timed. */
static void check_again(struct trial *t)
{
    for (size_t i = 0; i < t->row.nresult; i++) {
        struct measured *m = &t->row.result[i];
        struct rival *v = m->rival;
        if (m->status != RIVAL_OK || !v->repeatable)
            continue;
        m->status = v->ops->check(v, (m->next_set + v->nset - 1) % v->nset, t->d);
        m->why = v->why ? arena_printf(t->a, "after it was timed, %s", v->why) : NULL;
    }
}

/* Outputs of all sets, so that what a graph does not write shows. */
static void poison_all(struct trial *t)
{
    for (size_t i = 0; i < t->row.nresult; i++) {
        struct measured *m = &t->row.result[i];
        for (unsigned k = 0; k < m->rival->nset && m->status == RIVAL_OK; k++)
            if (m->rival->ops->poison(m->rival, k, t->d) != DEVICE_OK)
                m->status = RIVAL_FAILED;
    }
}

static void settle(struct trial *t)
{
    struct bench_row *row = &t->row;
    row->wrong = row->device_failed = false;
    for (size_t i = 0; i < row->nresult; i++) {
        row->wrong |= row->result[i].status == RIVAL_WRONG;
        row->device_failed |= row->result[i].status == RIVAL_FAILED;
    }
    row->error = row->result[0].status == RIVAL_OK ? NULL : row->result[0].why;
}

/* Rounds in one mode, and the row that they make. */
static void measure(struct trial *t, enum bench_mode mode,
                    void (*done)(void *ctx, const struct bench_row *row), void *ctx)
{
    struct bench_row *row = &t->row;
    struct measure_options o = row->bench->burst;
    row->mode = mode;
    if (mode == BENCH_SUSTAINED)
        o.warm_seconds = row->bench->sustained;
    poison_all(t);
    if (row->result[0].status == RIVAL_OK)
        measure_rounds(t->a, row->result, row->nresult, &o, &row->conditions, t->d);
    if (*o.interrupted)
        return;
    check_again(t);
    settle(t);
    done(ctx, row);
    t->d->list.n = t->d->nerror = t->d->nwarning = 0; /* has been told */
}

void bench_problem(const struct bench *b, const struct bench_point *p,
                   void (*done)(void *ctx, const struct bench_row *row), void *ctx)
{
    struct arena *a = arena_new();
    size_t n = 1 + b->nrival;
    struct trial t = {.row = {.bench = b, .point = p, .nresult = n}, .a = a, .d = diags_new(a)};
    t.row.d = t.d;
    t.row.result = ARENA_ARRAY(a, n, struct measured);
    t.rival = ARENA_ARRAY(a, n, struct rival);
    prepare(&t, 0);
    for (size_t i = 1; i < n; i++) {
        if (t.row.result[0].status == RIVAL_OK && !*b->data.interrupted)
            prepare(&t, i);
        else
            t.row.result[i] = (struct measured){.rival = &t.rival[i], .status = RIVAL_ABSENT};
        t.rival[i].ops = b->rival[i - 1].ops;
        t.rival[i].name = b->rival[i - 1].name;
        t.rival[i].dev = b->dev;
    }
    t.row.bytes = t.rival[0].code.bytes;
    t.row.operations = t.rival[0].code.spec ? bench_operations(a, t.rival[0].code.spec, p,
                                                               t.rival[0].code.in.buffers)
                                            : 0;
    t.row.fill = t.rival[0].data.fill;
    measure_begin(a, t.row.result, n, &b->burst, t.d);
    measure(&t, BENCH_BURST, done, ctx);
    if (b->sustained > 0 && t.row.result[0].status == RIVAL_OK && !*b->data.interrupted)
        measure(&t, BENCH_SUSTAINED, done, ctx);
    measure_end(t.row.result, n);
    for (size_t i = 0; i < n; i++)
        t.rival[i].ops->release(&t.rival[i]);
    arena_free(a);
}
