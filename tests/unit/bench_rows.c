/* lib/bench over the library's own kernels, on a device that the simulator plays: whatever a contract has (several launches,
 * temps, messages, inouts, subscripts) is laid out, launched and checked as kaio-run and kaio-verify would. */
#include <config.h>

#include "base/io.h"
#include "bench/bench.h"
#include "tap.h"

#include <math.h>

/* ---- a queue over the simulator: every piece of work runs at once, or is kept for replay ---- */

enum { MOST_STEPS = 4096, MOST_ARGS = 32 };

struct step {
    struct device_launch l; /* entry NULL: a copy */
    uint64_t to, from, bytes;
    uint64_t value[MOST_ARGS];
    const void *args[MOST_ARGS];
};
struct device_graph {
    struct step *v;
    size_t n;
};
struct device_module {
    const struct source *ptx;
};

static double clock_s, mark_s[2], launch_s;
static struct device_module *loaded;
static struct device_graph *recording;
static size_t replays;

static enum device_status q_load(struct device *dev, const struct source *ptx,
                                 struct device_module **m, struct diags *d)
{
    *m = calloc(1, sizeof **m);
    (*m)->ptx = ptx;
    loaded = *m;
    return sim_device.load(dev, ptx, d);
}

static void q_unload(struct device *dev, struct device_module *m)
{
    (void)dev;
    if (loaded == m)
        loaded = NULL;
    free(m);
}

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
    enum device_status status = DEVICE_OK;
    if (loaded != l->module)
        status = sim_device.load(dev, l->module->ptx, d);
    loaded = l->module;
    clock_s += launch_s;
    return status == DEVICE_OK ? sim_device.launch(dev, l, 1, NULL, d) : status;
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

static enum device_status q_replay(struct device *dev, struct device_graph *g, struct diags *d)
{
    enum device_status status = DEVICE_OK;
    replays++;
    for (size_t i = 0; i < g->n && status == DEVICE_OK; i++)
        status = g->v[i].l.entry ? run_now(dev, &g->v[i].l, d) : copy_now(dev, &g->v[i], d);
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

static const char *q_sensors(struct device *dev, struct device_sensors *s)
{
    (void)dev;
    *s = (struct device_sensors){0};
    return "the simulator has none";
}

static const struct device_queue queue = {
    .load = q_load,
    .unload = q_unload,
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
    src->kernel = f->specs.v[0]->name;
    src->target = ptx_target_find("sm_80", 5);
    for (; *words; words++)
        if (!sweep_add(s->a, &sweep, *words, s->d))
            return false;
    return sweep_multiply(s->a, &sweep, f->specs.v[0], &s->points, s->d);
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

static void test_chains(void)
{
    static const char *const words[] = {"T=f32", "rows=64", "cols=50", NULL};
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

int main(void)
{
    test_library();
    test_graphs();
    test_chains();
    return tap_done();
}
