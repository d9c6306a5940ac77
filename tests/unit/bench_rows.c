/* lib/bench over the library's own kernels, on a device that the simulator plays: whatever a
 * contract has (several launches, temps, messages, inouts, subscripts) is laid out, launched and
 * checked as kaio-run and kaio-verify would. */
#include <config.h>

#include "base/io.h"
#include "bench/bench.h"
#include "bench/tune.h"
#include "run/blas.h"
#include "tap.h"

#include <math.h>

/* ---- a queue over the simulator: every piece of work runs at once, or is kept for replay ---- */

enum { MOST_STEPS = 4096, MOST_ARGS = 32 };

struct step {
    struct device_launch l; /* entry NULL: a copy */
    uint64_t to, from, bytes;
    uint64_t value[MOST_ARGS];
    const void *args[MOST_ARGS];
    const struct blas_plan *plan; /* a matrix product: to = from * value[0] */
};
struct device_graph {
    struct step *v;
    size_t n;
};

static double clock_s, mark_s[2], launch_s;
static unsigned fast_block,
    wrong_block;                    /* threads of a block: takes half of launch_s; does nothing */
static unsigned lucky_block, lucky; /* takes a bit less of it twice, then more; its launches */
static struct device_graph *recording;
static size_t replays;

static enum device_status q_prepare(struct device *dev, const struct device_launch *l,
                                    struct diags *d)
{
    (void)dev;
    (void)d;
    return l->module ? DEVICE_OK : DEVICE_REFUSED;
}

static enum device_status run_now(struct device *dev, const struct device_launch *l,
                                  struct diags *d)
{
    if (l->block.x == lucky_block)
        clock_s += launch_s * (lucky++ % 3 < 2 ? 0.98 : 1.05);
    else
        clock_s += l->block.x == fast_block ? launch_s / 2 : launch_s;
    return l->block.x == wrong_block ? DEVICE_OK : sim_device.launch(dev, l, 1, NULL, d);
}

static enum device_status q_launch(struct device *dev, const struct device_launch *l,
                                   struct diags *d)
{
    if (!recording)
        return run_now(dev, l, d);
    struct step *s = &recording->v[recording->n++];
    s->l = *l;
    for (size_t i = 0; i < l->narg; i++) {
        memcpy(&s->value[i], l->args[i], l->arg_bytes[i]);
        s->args[i] = &s->value[i];
    }
    s->l.args = s->args;
    return DEVICE_OK;
}

static enum device_status copy_now(struct device *dev, const struct step *s, struct diags *d)
{
    clock_s += launch_s;
    return sim_device.copy(dev, s->to, s->from, s->bytes, NULL, d);
}

/* ---- a library of matrix products; of three choices the second is the fastest, and the third is
 * refused when tried  */

struct blas_plan {
    struct blas_product p;
    unsigned choices;
};

static size_t made, wrong_at; /* plans; elements from the end of a result, which is off by 64 */
static struct blas_product last_product;
static bool refuses_all;

static double *matrix(struct device *dev, const struct blas_matrix *m, uint64_t at,
                      const struct blas_product *p, uint64_t rows, uint64_t cols, struct diags *d)
{
    uint64_t r = m->swapped ? cols : rows, c = m->swapped ? rows : cols;
    size_t n = (size_t)((p->batch - 1) * m->stride + (r - 1) * m->ld + c);
    double *out = calloc(p->batch * rows * cols, sizeof *out), *v = calloc(n, sizeof *v);
    unsigned char *raw = malloc(n * 8);
    if (m->ld < c)
        ok(false, "rows of %s overlap", dtype_name(m->type));
    sim_device.read(dev, raw, at, dtype_bytes(m->type, n), d);
    dtype_load(m->type, raw, 0, n, v);
    for (uint64_t x = 0; x < p->batch; x++)
        for (uint64_t i = 0; i < rows; i++)
            for (uint64_t k = 0; k < cols; k++)
                out[(x * rows + i) * cols + k] =
                    v[x * m->stride + (m->swapped ? k * m->ld + i : i * m->ld + k)];
    free(raw);
    free(v);
    return out;
}

static enum device_status multiply_now(struct device *dev, const struct step *s, struct diags *d)
{
    const struct blas_product *p = &s->plan->p;
    double *a = matrix(dev, &p->a, s->from, p, p->m, p->k, d);
    double *b = matrix(dev, &p->b, s->value[0], p, p->k, p->n, d);
    size_t n = (size_t)(p->batch * p->m * p->n);
    unsigned char *c = calloc(n, 8);
    for (size_t e = 0; e < n; e++) {
        uint64_t x = e / (p->m * p->n), i = e / p->n % p->m, j = e % p->n;
        double sum = wrong_at && e + wrong_at == n ? 64 : 0;
        for (uint64_t k = 0; k < p->k; k++)
            sum += a[(x * p->m + i) * p->k + k] * b[(x * p->k + k) * p->n + j];
        dtype_set(p->c.type, c, e, sum);
    }
    clock_s += s->l.narg ? launch_s / 2 : launch_s;
    enum device_status status = sim_device.write(dev, s->to, c, dtype_bytes(p->c.type, n), d);
    free(a);
    free(b);
    free(c);
    return status;
}

static enum device_status b_plan(struct device *dev, const struct blas_product *p, unsigned choices,
                                 struct blas_plan **plan, struct diags *d)
{
    (void)dev;
    (void)d;
    *plan = calloc(1, sizeof **plan);
    **plan = (struct blas_plan){*p, choices < 3 ? choices : 3};
    last_product = *p;
    made++;
    return DEVICE_OK;
}

static unsigned b_choices(const struct blas_plan *plan)
{
    return plan->choices;
}

static const char *b_describe(struct device *dev, const struct blas_plan *plan, unsigned choice)
{
    (void)dev;
    return plan->choices > 1 ? (choice == 1 ? "the fast one" : "a slow one") : "";
}

static enum device_status b_multiply(struct device *dev, struct blas_plan *plan, unsigned choice,
                                     uint64_t a, uint64_t b, uint64_t c, struct diags *d)
{
    struct step s = {.plan = plan, .to = c, .from = a, .value = {b}};
    s.l.narg = choice == 1;
    if (choice == 2 || refuses_all) {
        diag_error(d, SPAN_NONE, "refused");
        return DEVICE_REFUSED;
    }
    if (!recording)
        return multiply_now(dev, &s, d);
    recording->v[recording->n++] = s;
    return DEVICE_OK;
}

static void b_discard(struct device *dev, struct blas_plan *plan)
{
    (void)dev;
    made--;
    free(plan);
}

static const struct device_blas blas = {
    .plan = b_plan,
    .choices = b_choices,
    .describe = b_describe,
    .multiply = b_multiply,
    .discard = b_discard,
};

static enum device_status q_copy(struct device *dev, uint64_t to, uint64_t from, uint64_t bytes,
                                 struct diags *d)
{
    const struct step s = {.to = to, .from = from, .bytes = bytes};
    if (!recording)
        return copy_now(dev, &s, d);
    recording->v[recording->n++] = s;
    return DEVICE_OK;
}

static enum device_status q_fill(struct device *dev, uint64_t address, uint8_t value,
                                 uint64_t bytes, struct diags *d)
{
    unsigned char *p = malloc(bytes + 1);
    memset(p, value, bytes);
    enum device_status status = sim_device.write(dev, address, p, bytes, d);
    free(p);
    return status;
}

static enum device_status q_record(struct device *dev, struct diags *d)
{
    (void)dev;
    (void)d;
    recording = calloc(1, sizeof *recording);
    recording->v = calloc(MOST_STEPS, sizeof *recording->v);
    return DEVICE_OK;
}

static enum device_status q_recorded(struct device *dev, struct device_graph **g, struct diags *d)
{
    (void)dev;
    (void)d;
    *g = recording;
    recording = NULL;
    return DEVICE_OK;
}

static enum device_status multiply_now(struct device *dev, const struct step *s, struct diags *d);

static enum device_status q_replay(struct device *dev, struct device_graph *g, struct diags *d)
{
    enum device_status status = DEVICE_OK;
    replays++;
    for (size_t i = 0; i < g->n && status == DEVICE_OK; i++)
        status = g->v[i].plan      ? multiply_now(dev, &g->v[i], d)
                 : g->v[i].l.entry ? run_now(dev, &g->v[i].l, d)
                                   : copy_now(dev, &g->v[i], d);
    return status;
}

static void q_discard(struct device *dev, struct device_graph *g)
{
    (void)dev;
    free(g->v);
    free(g);
}

static enum device_status q_mark(struct device *dev, bool end, struct diags *d)
{
    (void)dev;
    (void)d;
    mark_s[end] = clock_s;
    return DEVICE_OK;
}

static enum device_status q_wait(struct device *dev, double *seconds, struct diags *d)
{
    (void)dev;
    (void)d;
    if (seconds)
        *seconds = mark_s[1] - mark_s[0];
    return DEVICE_OK;
}

static unsigned readings; /* of the sensors */

static const char *q_sensors(struct device *dev, struct device_sensors *s)
{
    (void)dev;
    *s = (struct device_sensors){0};
    readings++;
    return NULL;
}

static const struct device_queue queue = {
    .prepare = q_prepare,
    .launch = q_launch,
    .copy = q_copy,
    .fill = q_fill,
    .record = q_record,
    .recorded = q_recorded,
    .replay = q_replay,
    .discard = q_discard,
    .mark = q_mark,
    .wait = q_wait,
    .sensors = q_sensors,
};

/* ---- rows ---- */

struct setup {
    struct arena *a;
    struct diags *d;
    struct bench_device dev;
    struct bench bench;
    struct sweep_points points;
    size_t rows, bad;
    double median;
    uint64_t bytes;
    unsigned nset, nlaunch;
    const char *kernel;        /* of a file of several; NULL: its only one */
    double ratio[4];           /* of the rivals */
    const char *note, *choice; /* of the first rival */
    const char *why;
    enum rival_status status;
};

static void done(void *ctx, const struct bench_row *row)
{
    struct setup *s = ctx;
    s->rows++;
    for (size_t i = 0; i < row->nresult; i++)
        if (row->result[i].status != RIVAL_OK || row->result[i].n == 0) {
            s->bad++;
            tap_note("%s: %s", row->result[i].rival->name,
                     row->result[i].why ? row->result[i].why : "no samples");
        }
    for (size_t i = 1; i < row->nresult && i <= 4; i++)
        s->ratio[i - 1] = row->result[i].median / row->result[0].median;
    if (row->nresult > 1) {
        const struct measured *m = &row->result[1];
        s->status = m->status;
        s->why = m->why ? arena_strdup(s->a, m->why) : NULL;
        s->note = m->rival->note ? arena_strdup(s->a, m->rival->note) : NULL;
        s->choice = m->rival->choice ? arena_strdup(s->a, m->rival->choice) : NULL;
    }
    s->median = row->result[0].median;
    s->bytes = row->bytes;
    s->nset = row->result[0].rival->nset;
    s->nlaunch = row->result[0].rival->launches;
}

/* path: in the source tree. words: the sweep. */
static bool prepare(struct setup *s, const char *path, const char *const *words)
{
    static const volatile int never;
    static const struct device_options none;
    const char *dir = getenv("KAIO_SRCDIR");
    struct sweep sweep = {0};
    struct code_source *src = &s->bench.kernel.source;
    s->a = arena_new();
    s->d = diags_new(s->a);
    s->dev = (struct bench_device){.ops = &sim_device, .queue = &queue};
    sim_device.open(s->a, 0, &none, &s->dev.dev, s->d);
    sim_device.info(s->dev.dev, &s->dev.info);
    s->dev.info.l2_bytes = 20000;
    s->bench.dev = &s->dev;
    s->bench.data = (struct data_options){.seed = 1, .sample = 200, .interrupted = &never};
    s->bench.burst = (struct measure_options){
        .runs = 2, .round_seconds = 1e-6, .warm_seconds = 0, .interrupted = &never};
    s->bench.kernel.ops = &rival_kernel;
    s->bench.kernel.name = "kaio";
    s->bench.kernel.same_spec = true;
    src->text = io_read(s->a, s->d, arena_printf(s->a, "%s/%s", dir ? dir : ".", path), 1 << 20);
    struct spec_file *f = src->text ? spec_read(s->a, src->text, NULL, 0, s->d) : NULL;
    if (!f)
        return false;
    struct spec *spec = s->kernel ? spec_find(f, s->kernel) : f->specs.v[0];
    src->kernel = spec->name;
    src->target = ptx_target_find("sm_80", 5);
    for (; *words; words++)
        if (!sweep_add(s->a, &sweep, *words, s->d))
            return false;
    return sweep_multiply(s->a, &sweep, spec, &s->points, s->d);
}

/* The simulator, with the library. */
static void use_library(struct setup *s)
{
    static struct device_ops ops;
    ops = sim_device;
    ops.blas = &blas;
    s->dev.ops = &ops;
}

static void finish(struct setup *s)
{
    for (size_t i = 0; i < s->d->list.n; i++)
        tap_note("%s", s->d->list.v[i].text);
    sim_device.close(s->dev.dev);
    arena_free(s->a);
}

static void measure(struct setup *s)
{
    for (size_t i = 0; i < s->points.v.n; i++)
        bench_problem(&s->bench, &s->points.v.v[i], done, s);
}

static void test_library(void)
{
    static const struct {
        const char *path, *words[4];
    } v[] = {
        {"specs/elementwise/saxpy.yaml", {"n=1000"}}, /* an inout */
        {"specs/elementwise/add.yaml", {"T=f16,bf16,f32", "n=777"}},
        {"specs/norm/softmax.yaml", {"T=f16,f32", "rows=5", "cols=96,1000"}},
        {"specs/norm/layer_norm.yaml", {"rows=3", "cols=513"}},
        {"specs/norm/group_norm.yaml", {"images,groups=2", "channels=3", "pixels=40"}},
        {"specs/loss/cross_entropy.yaml", {"rows=7", "cols=100"}}, /* subscripts */
        {"specs/reduce/sum_all.yaml", {"n=1,20011"}},              /* several launches, temps */
        {"specs/reduce/min_max.yaml", {"n=30000"}},
        {"specs/reduce/top1.yaml", {"rows=3", "cols=300"}},
        {"specs/quant/quantize_rows.yaml", {"rows=3", "cols=100"}},
        {"specs/gather/embedding.yaml", {"tokens=10", "vocab=50", "width=32"}},
        {"specs/layout/transpose.yaml", {"rows=40", "cols=70"}},
        {"specs/reduce/block_sum.yaml", {"n=5000"}}, /* a body */
        {"tests/data/bench/speaks.yaml", {"n=100"}}, /* print() */
    };
    launch_s = 150e-6; /* long: queued one by one */
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        for (int generic = 0; generic < 2; generic++) {
            struct setup s = {0};
            bool good = prepare(&s, v[i].path, v[i].words);
            s.bench.kernel.source.generic = generic;
            replays = 0;
            if (good)
                measure(&s);
            ok(good && s.rows == s.points.v.n && s.bad == 0 && replays == 0, "%s, %s", v[i].path,
               generic ? "generic" : "fixed");
            finish(&s);
        }
}

static void test_graphs(void)
{
    static const char *const words[] = {"T=f32", "n=1000", NULL};
    struct setup s = {0};
    launch_s = 60e-6;
    bool good = prepare(&s, "specs/elementwise/add.yaml", words) &&
                bench_add_rival(s.a, &s.bench, "copy", s.d) &&
                bench_add_rival(s.a, &s.bench, "schedule:{strategy: naive}", s.d);
    replays = 0;
    if (good)
        measure(&s);
    ok(good && s.rows == 1 && s.bad == 0, "beside a copy and another schedule");
    ok(replays > 0, "short executions are replayed");
    ok(fabs(s.median - 60e-6) < 1e-9, "and their time is that of one");
    eq_int(s.bytes, 12000, "the bytes of all three buffers");
    /* 12288 bytes with their alignment, and twice 20000 */
    eq_int(s.nset, 4, "sets exceed the cache twice");
    finish(&s);
}

/* Ten rounds read them, or each where there are fewer. */
static void test_sensors(void)
{
    static const unsigned runs[] = {1, 9, 10, 11, 19, 50, 101};
    static const char *const words[] = {"T=f32", "n=100", NULL};
    launch_s = 150e-6;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct setup s = {0};
        bool good = prepare(&s, "specs/elementwise/add.yaml", words) &&
                    bench_add_rival(s.a, &s.bench, "copy", s.d);
        s.bench.burst.runs = runs[i];
        readings = 0;
        if (good)
            measure(&s);
        ok(good && s.bad == 0, "%u rounds", runs[i]);
        eq_int(readings, runs[i] < 10 ? runs[i] : 10, "the sensors are read in ten of them");
        finish(&s);
    }
}

static void test_chains(void)
{
    static const char *const words[] = {"T=f32", "rows=40000", "cols=2", NULL};
    struct setup s = {0};
    launch_s = 30e-6;
    bool good = prepare(&s, "specs/norm/batch_norm.yaml", words);
    if (good)
        measure(&s);
    ok(good && s.rows == 1 && s.bad == 0, "several launches are one execution");
    ok(s.nlaunch > 1, "there are several");
    ok(fabs(s.median - 30e-6 * s.nlaunch) < 1e-9, "and their times add up");
    finish(&s);
}

/* ---- the vendor's library ---- */

static const char products[] = "tests/data/bench/products.yaml";

static bool beside(struct setup *s, const char *kernel, const char *rival, const char *const *words)
{
    s->kernel = kernel;
    bool good = prepare(s, products, words);
    use_library(s);
    good = good && bench_add_rival(s->a, &s->bench, rival, s->d);
    if (good)
        measure(s);
    return good && s->rows == s->points.v.n;
}

/* The library's own results are compared with the spec's sums: a layout taken for another shows. */
static void test_products(void)
{
    static const struct {
        const char *kernel, *note;
        const char *words[5];
    } v[] = {
        {"nn", NULL, {"T=f16,bf16,f32,f64", "m=5", "k=33", "n=6"}},
        {"nn", NULL, {"T=f32", "m=1", "k=7", "n=1,6"}},
        {"nt_bias", "the product only", {"x=3", "m=5", "k=34", "n=6"}},
        {"tn", NULL, {"m=5", "k=33", "n=6"}},
        {"tt_turned", NULL, {"m=5", "k=33", "n=6"}},
        {"gate", "the 2 products only", {"m=5", "k=33", "n=6"}},
        {"batched", NULL, {"x=2", "y,m=3", "k=17", "n=4"}},
        {"w8a8",
         "the product only, with k the last subscript of both operands",
         {"m=5", "k=33", "n=6"}},
        {"int8", NULL, {"m=5", "k=33", "n=6"}},
        {"w4", "the product only", {"m=5", "k=66", "n=4"}},
        {"fp8", "with k the last subscript of both operands", {"m=5", "k=33", "n=6"}},
        {"slice", NULL, {"m=5", "k=33", "n=6"}},
        {"vector", NULL, {"k=33", "n=6"}},
        {"spread", NULL, {"x=3", "m=5", "k=7", "n=6"}},
        {"conv1x1", NULL, {"images=3", "channels=17", "filters=4", "pixels=6"}},
        {"between", "the product only", {"m=5", "k=33", "n=6"}},
    };
    static const char *const rivals[] = {"cublas", "cublas-sgemm", "cublaslt"};
    launch_s = 150e-6;
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        for (size_t k = 0; k < 3; k++) {
            struct setup s = {0};
            bool good = beside(&s, v[i].kernel, rivals[k], v[i].words);
            ok(good && s.bad == 0, "%s beside %s", v[i].kernel, rivals[k]);
            if (k == 0)
                eq_str(s.note ? s.note : "", v[i].note ? v[i].note : "", "what is left away");
            if (strcmp(v[i].kernel, "between") == 0 && k == 0)
                ok(last_product.c.type == DT_F16, "an intermediate is stored as the result is");
            if (k == 1)
                ok(last_product.a.type == DT_F32 && last_product.c.type == DT_F32 &&
                       last_product.math == BLAS_F32,
                   "sgemm is of f32");
            if (k == 2)
                ok(s.choice && strstr(s.choice, "the fast one, choice 2 of 3"),
                   "of three choices the fastest");
            eq_int(made, 0, "plans are given back");
            finish(&s);
        }
}

/* A library that offers choices, and takes none of them, is no reason to end. */
static void test_refused(void)
{
    const char *const words[] = {"m=5", "k=33", "n=6", NULL};
    struct setup s = {0};
    refuses_all = true;
    beside(&s, "int8", "cublaslt", words);
    refuses_all = false;
    eq_int(s.status, RIVAL_REFUSED, "all choices are refused");
    ok(s.why && strcmp(s.why, "refused") == 0, "as the library says");
    ok(s.median > 0, "the kernel is measured");
    eq_int(made, 0, "plans are given back");
    finish(&s);
}

/* The library, and then a kernel for the rest. */
static void test_unfused(void)
{
    static const struct {
        const char *kernel, *note;
        const char *words[5];
        double times; /* as long as the fused kernel */
    } v[] = {
        {"nt_bias",
         "the product, and then a kernel for the rest",
         {"x=3", "m=5", "k=34", "n=6"},
         2},
        {"gate", "the products, and then a kernel for the rest", {"m=5", "k=33", "n=6"}, 3},
        {"w8a8", "the product, and then a kernel for the rest", {"m=5", "k=33", "n=6"}, 2},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct setup s = {0};
        launch_s = 40e-6;
        bool good = beside(&s, v[i].kernel, "cublas-unfused", v[i].words);
        ok(good && s.bad == 0, "%s in two steps", v[i].kernel);
        eq_str(s.note ? s.note : "", v[i].note, "which is said");
        ok(s.nlaunch != 1 || fabs(s.ratio[0] - v[i].times) < 1e-6, "and takes %g times as long",
           v[i].times);
        eq_int(made, 0, "plans are given back");
        finish(&s);
    }
    struct setup s = {0};
    ok(beside(&s, "int8", "cublas-unfused", (const char *const[]){"m=5", "k=33", "n=6", NULL}) &&
           s.status == RIVAL_REFUSED,
       "of a product alone nothing is left");
    finish(&s);
}

static void test_no_products(void)
{
    static const char *const vector[] = {"m=5", "k=33", NULL};
    static const char *const cube[] = {"x,y=2", "m=5", "k=33", "n=6", NULL};
    struct setup s = {0};
    ok(beside(&s, "no_product", "cublas", vector) && s.status == RIVAL_REFUSED,
       "of a spec without a product the library is not asked");
    ok(s.why && strstr(s.why, "no sum[k](a * b)"), "which is said");
    finish(&s);
    s = (struct setup){0};
    ok(beside(&s, "scattered", "cublas", cube) && s.status == RIVAL_REFUSED,
       "nor of rows that do not lie at one distance");
    finish(&s);
    s = (struct setup){0};
    wrong_at = 1;
    ok(beside(&s, "batched", "cublas",
              (const char *const[]){"x,y=1", "m=20", "k=9", "n=30", NULL}) &&
           s.status == RIVAL_WRONG,
       "a wrong last element of many is found");
    ok(s.why && strstr(s.why, "the product at 19, 29 is"), "and named");
    wrong_at = 0;
    finish(&s);
    s = (struct setup){.kernel = "nn"};
    launch_s = 60e-6;
    bool good = prepare(&s, products, (const char *const[]){"T=f32", "m,k,n=16", NULL});
    good = good && bench_add_rival(s.a, &s.bench, "cublas", s.d);
    if (good)
        measure(&s);
    ok(good && s.status == RIVAL_ABSENT && s.rows == 1 && s.median > 0,
       "where there is no library the kernel is timed all the same");
    finish(&s);
}

static void test_products_in_graphs(void)
{
    static const char *const words[] = {"m,k,n=16", NULL};
    struct setup s = {.kernel = "gate"};
    launch_s = 40e-6;
    bool good = prepare(&s, products, words);
    use_library(&s);
    good = good && bench_add_rival(s.a, &s.bench, "cublas", s.d) &&
           bench_add_rival(s.a, &s.bench, "cublaslt", s.d);
    replays = 0;
    if (good)
        measure(&s);
    ok(good && s.bad == 0 && replays > 0, "products are recorded and replayed");
    ok(fabs(s.ratio[0] - 2) < 1e-6, "two of them take twice as long as one");
    ok(fabs(s.ratio[1] - 1) < 1e-6, "and half as long by the fastest choice");
    finish(&s);
}

/* ---- schedules by search ---- */

/* Blocks of 128 threads are twice as fast, or not; whatever is wrong never wins. */
/* The simulator loads one module at a time. */
static const struct tune_options tune_here = {.threads = 1};

static void test_tune(void)
{
    static const char *const words[] = {"T=f32", "rows=3", "cols=160", NULL};
    static const struct {
        unsigned fast, wrong, lucky;
        bool found; /* a schedule; false: the built-in one stays */
        const char *what;
    } v[] = {
        {128, 0, 0, true, "the fastest schedule is found"},
        {0, 0, 0, false, "of equals the emitter's own choice stays"},
        {128, 128, 0, false, "a wrong one is not taken, however fast"},
        {0, 0, 128, false,
         "one whose median is lower, and that loses every third round, is none to take"},
    };
    launch_s = 20e-3; /* one execution a round: the simulator is slow */
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct setup s = {0};
        struct tune_result r = {0};
        bool good = prepare(&s, "tests/data/bench/wide_rows.yaml", words);
        fast_block = v[i].fast;
        wrong_block = v[i].wrong;
        lucky_block = v[i].lucky;
        good = good && tune_search(s.a, &s.bench, &s.points.v.v[0], &tune_here, &r, s.d);
        ok(good && !r.error && r.tried > 3, "%u schedules were timed", r.tried);
        ok((r.schedule != NULL) == v[i].found, "%s", v[i].what);
        ok(r.seconds <= r.builtin_seconds, "which is not slower than that");
        ok((r.wrong > 0) == (v[i].wrong > 0) && (s.d->nwarning > 0) == (v[i].wrong > 0),
           "wrong ones are warned of");
        if (v[i].found)
            ok(fabs(r.builtin_seconds / r.seconds - 2) < 1e-6, "by how much");
        fast_block = wrong_block = lucky_block = 0;
        finish(&s);
    }
}

/* An inout that the last contender changed is made anew for the next one; temps are each one's
 * own. */
static void test_tune_buffers(void)
{
    static const struct {
        const char *path, *words[4];
    } v[] = {
        {"specs/elementwise/saxpy.yaml", {"n=5000"}},
        {"specs/reduce/sum_all.yaml", {"n=20011"}},
        {"specs/matmul/naive.yaml", {"m=2", "n=30", "k=40"}},
    };
    launch_s = 20e-3; /* one execution a round: the simulator is slow */
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct setup s = {0};
        struct tune_result r = {0};
        bool good = prepare(&s, v[i].path, v[i].words) &&
                    tune_search(s.a, &s.bench, &s.points.v.v[0], &tune_here, &r, s.d);
        ok(good && r.tried > 1 && r.wrong == 0, "%s: %u schedules, all right", v[i].path, r.tried);
        finish(&s);
    }
}

int main(void)
{
    test_tune();
    test_tune_buffers();
    test_products();
    test_refused();
    test_unfused();
    test_no_products();
    test_products_in_graphs();
    test_library();
    test_graphs();
    test_sensors();
    test_chains();
    return tap_done();
}
