/* kaio-bench: times kernels. Options and printing; the work is lib/bench's. */
#include <config.h>

#include "base/cli.h"
#include "base/io.h"
#include "base/num.h"
#include "base/progress.h"
#include "bench/baseline.h"
#include "bench/plan.h"
#include "bench/plot.h"
#include "bench/report.h"
#include "bench/work.h"
#include "run/choose.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    OPT_KERNEL = CLI_LONG,
    OPT_BYTES,
    OPT_GENERIC,
    OPT_KEEP,
    OPT_VS,
    OPT_RUNS,
    OPT_ROUND,
    OPT_SUSTAINED,
    OPT_SEED,
    OPT_SAMPLE,
    OPT_FORMAT,
    OPT_PLOT,
    OPT_BASELINE,
    OPT_FAIL_BELOW,
    OPT_DRY_RUN,
};

static const struct cli_option options[] = {
    {.heading = "Problems"},
    {OPT_KERNEL, "kernel", "NAME", "of a file with several kernels, this one", ""},
    {OPT_BYTES, "bytes", "SIZE", "choose the first free dimension so that all buffers take SIZE",
     ""},
    {.heading = "Code"},
    {'t', "target", "TARGET", "compile for TARGET (default: this GPU's)",
     "sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 native"},
    {'D', "define", "NAME=VALUE", "fix a dimension, with --generic too, or choose a type", ""},
    {OPT_GENERIC, "generic", NULL, "leave the dimensions to be given at launch"},
    {OPT_KEEP, "keep", "DIR", "write the PTX of every problem into DIR"},
    {.heading = "Rivals"},
    {OPT_VS, "vs", "RIVAL",
     "time RIVAL too: copy, cublas, cublas-sgemm, cublaslt,\n"
     "another SPEC.yaml, or the spec under another schedule,\n"
     "'schedule:{strategy: naive}'",
     "copy cublas cublas-sgemm cublaslt"},
    {.heading = "Method"},
    {'d', "device", "DEVICE", "cuda or cuda:N (default: the first GPU)", "cuda cuda:0 cuda:1"},
    {OPT_RUNS, "runs", "N", "rounds (default 10)", ""},
    {OPT_ROUND, "time-per-round", "MS", "milliseconds that each has in a round (default 20)", ""},
    {OPT_SUSTAINED, "sustained", "[SECONDS]", "then time again after SECONDS (default 3) of work",
     ""},
    {OPT_SEED, "seed", "N", "of the random inputs (default 1)", ""},
    {OPT_SAMPLE, "sample", "N", "elements of each output that are checked (default 1024)", ""},
    {.heading = "Output"},
    {OPT_FORMAT, "format", "FORMAT", "table (default), csv, json (a line for each row) or md",
     "table csv json md"},
    {'o', "output", "FILE", "write the rows to FILE; JSON is appended to it"},
    {OPT_PLOT, "plot", "FILE", "draw the rates into FILE, as SVG"},
    {OPT_BASELINE, "baseline", "FILE", "compare with the JSON rows of an earlier run in FILE"},
    {OPT_FAIL_BELOW, "fail-below", "R",
     "fail where the speed is under R times the baseline's\n"
     "(default 0.97)",
     ""},
    {OPT_DRY_RUN, "dry-run", NULL, "say what would be timed, and how it is launched"},
    {0},
};

static const struct cli_program program = {
    .name = "kaio-bench",
    .usage = "[OPTION]... SPEC [CASE]... [NAME=VALUES]...",
    .purpose = "Time a kernel on the GPU over a sweep of problems, beside rivals, after checking\n"
               "the results of all of them.",
    .options = options,
    .epilogue = "Examples:\n"
                "  kaio-bench --vs copy --bytes=256M specs/norm/softmax.yaml cols=512..65536*2\n"
                "  kaio-bench --vs 'schedule:{strategy: naive}' specs/norm/rms_norm.yaml\n",
};

struct session {
    struct cli cli;
    struct arena *a;
    struct diags *d;
    struct bench bench;
    struct bench_device dev;
    struct sweep sweep;
    struct sweep_points points;
    VEC(const char *) vs;
    VEC(struct spec_define) defines;
    const char *device, *target, *kernel, *output, *keep, *plot_file, *baseline_file;
    int format; /* enum report_format; -1: not given */
    bool dry_run;
    struct report table, report;
    bool to_stdout, to_file;
    struct io_out *out, *plot_out; /* of what is replaced as a whole */
    struct plot plot;
    struct baseline baseline;
    double fail_below;
    FILE *append; /* of JSON lines */
    struct progress progress;
    const char *no_sensors; /* told already */
    VEC(const char *) said; /* of rivals */
    int status;
};

static volatile sig_atomic_t interrupted;

static void worse(struct session *s, int status)
{
    s->status = status > s->status ? status : s->status;
}

/* ---- options ---- */

static void define(struct session *s)
{
    struct spec_define def;
    const char *wrong = spec_parse_define(s->a, s->cli.arg, &def);
    if (wrong)
        cli_usage_error(&s->cli, "%s: %s", s->cli.shown, wrong);
    if (def.type == DT_VOID)
        *VEC_PUSH(s->a, &s->defines) = def;
    sweep_add(s->a, &s->sweep, s->cli.arg, s->d);
}

static void bytes(struct session *s)
{
    int64_t v = cli_int(&s->cli, 1, (int64_t)1 << 50);
    s->sweep.bytes = (uint64_t)v;
}

static void take_option(struct session *s, int opt)
{
    static const char *const formats[] = {"table", "csv", "json", "md", NULL};
    struct bench *b = &s->bench;
    switch (opt) {
    case OPT_KERNEL: s->kernel = s->cli.arg; break;
    case OPT_BYTES: bytes(s); break;
    case 't': s->target = s->cli.arg; break;
    case 'D': define(s); break;
    case OPT_GENERIC: b->kernel.source.generic = true; break;
    case OPT_KEEP: s->keep = s->cli.arg; break;
    case OPT_VS: *VEC_PUSH(s->a, &s->vs) = s->cli.arg; break;
    case 'd': s->device = s->cli.arg; break;
    case OPT_RUNS: b->burst.runs = (unsigned)cli_int(&s->cli, 1, 100000); break;
    case OPT_ROUND: b->burst.round_seconds = cli_double(&s->cli, 0.001, 1e6) * 1e-3; break;
    case OPT_SUSTAINED: b->sustained = s->cli.arg ? cli_double(&s->cli, 0.001, 1e6) : 3; break;
    case OPT_SEED: b->data.seed = (uint64_t)cli_int(&s->cli, 0, INT64_MAX); break;
    case OPT_SAMPLE: b->data.sample = (uint64_t)cli_int(&s->cli, 1, INT64_MAX); break;
    case OPT_FORMAT: s->format = cli_choice(&s->cli, formats); break;
    case 'o': s->output = s->cli.arg; break;
    case OPT_PLOT: s->plot_file = s->cli.arg; break;
    case OPT_BASELINE: s->baseline_file = s->cli.arg; break;
    case OPT_FAIL_BELOW: s->fail_below = cli_double(&s->cli, 0, 1000); break;
    case OPT_DRY_RUN: s->dry_run = true; break;
    }
}

/* The first word that is or looks like a file is the spec, NAME=VALUES an axis, anything else a case. */
static void take_operands(struct session *s)
{
    for (int k = 0; k < s->cli.argc; k++) {
        const char *word = s->cli.argv[k];
        size_t n = strlen(word);
        struct stat st;
        bool file = strcmp(word, "-") == 0 || (stat(word, &st) == 0 && !S_ISDIR(st.st_mode)) ||
                    (n > 5 && strcmp(word + n - 5, ".yaml") == 0);
        if (file && s->bench.path)
            cli_usage_error(&s->cli, "there are two specs, '%s' and '%s'", s->bench.path, word);
        if (file)
            s->bench.path = word;
        else if (strchr(word, '='))
            sweep_add(s->a, &s->sweep, word, s->d);
        else
            *VEC_PUSH(s->a, &s->sweep.cases) = word;
    }
    if (!s->bench.path)
        cli_usage_error(&s->cli, s->sweep.cases.n ? "no such file: '%s'" : "no spec given",
                        s->sweep.cases.n ? s->sweep.cases.v[0] : "");
}

static void read_options(struct session *s, int argc, char **argv)
{
    s->format = -1;
    s->fail_below = 0.97;
    s->bench.dev = &s->dev;
    s->bench.data = (struct data_options){.seed = 1, .sample = 1024, .interrupted = &interrupted};
    s->bench.burst = (struct measure_options){
        .runs = 10, .round_seconds = 0.02, .warm_seconds = 0.25, .interrupted = &interrupted};
    cli_begin(&s->cli, &program, argc, argv);
    for (int opt; (opt = cli_next(&s->cli)) != CLI_END;)
        take_option(s, opt);
    take_operands(s);
    if (s->format < 0) { /* as the file's name says */
        const char *dot = s->output ? strrchr(s->output, '.') : NULL;
        s->format = !dot                                                      ? REPORT_TABLE
                    : strcmp(dot, ".json") == 0 || strcmp(dot, ".jsonl") == 0 ? REPORT_JSON
                    : strcmp(dot, ".csv") == 0                                ? REPORT_CSV
                    : strcmp(dot, ".md") == 0                                 ? REPORT_MD
                                                                              : REPORT_TABLE;
    }
}

/* ---- device and target ---- */

static int open_device(struct session *s)
{
    struct device_choice choice;
    const char *why, *env = getenv("KAIO_DEVICE");
    const char *name = s->device ? s->device : env && *env ? env : "auto";
    if (!device_parse(name, &choice))
        cli_usage_error(&s->cli, "%s: '%s' is not auto, cuda or cuda:N",
                        s->device ? "--device" : "KAIO_DEVICE", name);
    if (s->dry_run)
        return CLI_OK;
    if (choice.ops == &sim_device)
        cli_usage_error(&s->cli,
                        "the simulator's time says nothing about a GPU's; kaio-bench needs "
                        "a GPU, or --dry-run");
    device_settle(s->a, &choice, &why);
    if (why) {
        cli_error(&s->cli, "there is no GPU to time on: %s", why);
        return CLI_NO_DEVICE;
    }
    static const struct device_options none;
    s->dev.ops = choice.ops;
    s->dev.queue = choice.ops->queue;
    enum device_status st = choice.ops->open(s->a, choice.ordinal, &none, &s->dev.dev, s->d);
    if (st != DEVICE_OK)
        return st == DEVICE_ABSENT ? CLI_NO_DEVICE : CLI_DEVICE_FAILED;
    s->dev.ops->info(s->dev.dev, &s->dev.info);
    return CLI_OK;
}

/* The target asked for; the GPU's own; or in a dry run sm_80, as kaio-emit has it. */
static void set_target(struct session *s)
{
    const struct ptx_target **to = &s->bench.kernel.source.target;
    bool native = s->target && strcmp(s->target, "native") == 0;
    if (s->target && !native) {
        *to = ptx_target_find(s->target, strlen(s->target));
        if (!*to)
            cli_usage_error(&s->cli, "unknown target '%s'; kaio-emit --list-targets lists them",
                            s->target);
        return;
    }
    if (native && s->dry_run)
        cli_usage_error(&s->cli, "a dry run looks at no GPU; name its target, as in -t sm_90");
    size_t n;
    const struct ptx_target *t = ptx_targets(&n);
    *to = ptx_target_find("sm_80", 5);
    for (size_t i = 0; i < n && !s->dry_run; i++)
        if (!t[i].suffix && t[i].sm <= s->dev.info.sm &&
            ((*to)->sm > s->dev.info.sm || t[i].sm > (*to)->sm))
            *to = &t[i];
}

/* ---- the problems ---- */

/* What repeats a row, but for the values of its problem. */
static void make_command(struct session *s)
{
    struct buf b = buf_in(s->a);
    const struct bench *e = &s->bench;
    buf_printf(&b, "kaio-bench -d %s:%d -t %s", s->dry_run ? "cuda" : s->dev.info.kind,
               s->dev.info.ordinal, e->kernel.source.target->name);
    if (s->kernel)
        buf_printf(&b, " --kernel=%s", s->kernel);
    if (e->kernel.source.generic)
        buf_puts(&b, " --generic");
    for (size_t i = 0; i < s->vs.n; i++) {
        buf_puts(&b, " --vs=");
        buf_shell_word(&b, s->vs.v[i]);
    }
    buf_printf(&b, " --runs=%u --time-per-round=%g --seed=%llu --sample=%llu", e->burst.runs,
               e->burst.round_seconds * 1e3, (unsigned long long)e->data.seed,
               (unsigned long long)e->data.sample);
    if (e->sustained > 0)
        buf_printf(&b, " --sustained=%g", e->sustained);
    buf_putc(&b, ' ');
    buf_shell_word(&b, e->path);
    s->bench.command = buf_text(&b);
}

static bool make_problems(struct session *s)
{
    struct code_source *src = &s->bench.kernel.source;
    if (s->d->nerror)
        return false;
    src->text = io_read(s->a, s->d, s->bench.path, IO_TEXT_LIMIT);
    struct spec_file *f = src->text ? spec_read(s->a, src->text, NULL, 0, s->d) : NULL;
    const struct spec *spec = f ? code_choose(f, s->bench.path, s->kernel, s->d) : NULL;
    if (!spec)
        return false;
    s->bench.kernel.ops = &rival_kernel;
    s->bench.kernel.name = "kaio";
    s->bench.kernel.same_spec = true;
    src->kernel = spec->name;
    src->define = s->defines.v;
    src->ndefine = s->defines.n;
    if (!sweep_multiply(s->a, &s->sweep, spec, &s->points, s->d))
        return false;
    for (size_t i = 0; i < s->vs.n; i++)
        if (!bench_add_rival(s->a, &s->bench, s->vs.v[i], s->d))
            return false;
    bool operations = bench_operations(s->a, spec, &s->points.v.v[0]) > 0;
    s->table = report_begin(s->a, REPORT_TABLE, &s->bench, &s->points, operations);
    s->report =
        report_begin(s->a, (enum report_format)s->format, &s->bench, &s->points, operations);
    s->plot = plot_begin(s->a, &s->bench, &s->sweep, &s->points, spec);
    if (s->plot_file && !s->plot.x)
        return diag_error(s->d, SPAN_NONE, "--plot has no axis: no number is swept");
    if (!s->baseline_file)
        return true;
    const struct source *base = io_read(s->a, s->d, s->baseline_file, IO_TEXT_LIMIT);
    return base && baseline_read(s->a, base, &s->baseline, s->d);
}

/* ---- files ---- */

static bool open_outputs(struct session *s)
{
    s->to_file = s->output && strcmp(s->output, "-") != 0;
    s->to_stdout = !s->to_file || s->format != REPORT_TABLE;
    if (s->keep && mkdir(s->keep, 0777) != 0 && errno != EEXIST)
        return diag_error(s->d, SPAN_NONE, "cannot make '%s': %s", s->keep, strerror(errno));
    if (s->plot_file && !s->dry_run && !(s->plot_out = io_create(s->a, s->d, s->plot_file)))
        return false;
    if (!s->to_file)
        return true;
    if (s->format != REPORT_JSON || s->dry_run)
        return (s->out = io_create(s->a, s->d, s->output)) != NULL;
    s->append = fopen(s->output, "ae");
    if (!s->append)
        return diag_error(s->d, SPAN_NONE, "cannot open '%s': %s", s->output, strerror(errno));
    return true;
}

static void write_plot(struct session *s)
{
    struct buf svg = buf_in(s->a);
    plot_print(&s->plot, &svg);
    io_write(s->plot_out, buf_text(&svg), svg.len);
    io_commit(s->plot_out, s->d);
}

static void close_outputs(struct session *s, bool good)
{
    if (s->plot_out && good)
        write_plot(s);
    else
        io_discard(s->plot_out);
    if (s->append && (ferror(s->append) | fclose(s->append)) != 0)
        diag_error(s->d, SPAN_NONE, "cannot write '%s'", s->output);
    if (s->out && good)
        io_commit(s->out, s->d);
    else
        io_discard(s->out);
}

/* A part of the report; rows that a reader of JSON may follow are out at once. */
static void write_text(struct session *s, const struct buf *file, const struct buf *table)
{
    if (s->append) {
        fwrite(buf_text(file), 1, file->len, s->append);
        fflush(s->append);
    }
    if (s->out)
        io_write(s->out, buf_text(file), file->len);
    if (s->to_stdout)
        fwrite(buf_text(table), 1, table->len, stdout);
    fflush(stdout);
}

/* PTX under a name that tells the problem; NULL when it can't be written. */
static const char *keep_ptx(struct session *s, const struct code *c, const struct bench_rival *who,
                            const struct bench_point *p, struct diags *d)
{
    struct buf name = buf_in(c->a);
    buf_printf(&name, "%s/%s", s->keep, c->spec->name);
    for (size_t i = 0; i < p->values.n; i++)
        buf_printf(&name, "-%s=%s", p->values.v[i].name, p->values.v[i].text);
    if (who != &s->bench.kernel)
        buf_printf(&name, "-vs%zu", (size_t)(who - s->bench.rival) + 1);
    buf_puts(&name, ".ptx");
    struct io_out *out = io_create(c->a, d, buf_text(&name));
    if (!out)
        return NULL;
    io_write(out, c->ptx->text, c->ptx->len);
    return io_commit(out, d) ? buf_text(&name) : NULL;
}

/* ---- timing ---- */

/* Against the row of the earlier run. */
static void compare(struct session *s, struct arena *a, const struct bench_row *row)
{
    const char *id = report_id(a, row);
    struct baseline_row *old = baseline_find(&s->baseline, id);
    if (!old) {
        cli_note(&s->cli, "the baseline has no %s", id);
        return;
    }
    old->met = true;
    if (row->error)
        return; /* which is failure enough */
    double ratio = old->median / row->result[0].median;
    if (strcmp(old->device, s->dev.info.name) != 0)
        cli_warning(&s->cli, "%s: the baseline is of another device, %s", id, old->device);
    if (ratio >= s->fail_below)
        return;
    cli_error(&s->cli, "%s: %s us, and %s us in the baseline: %.3f of its speed", id,
              report_us(a, row->result[0].median), report_us(a, old->median), ratio);
    worse(s, CLI_CHECK_FAILED);
}

/* Rows of this kernel that were not measured now. */
static void name_missing(struct session *s)
{
    for (size_t i = 0; i < s->baseline.v.n; i++) {
        const struct baseline_row *r = &s->baseline.v.v[i];
        if (!r->met && strcmp(r->kernel, s->bench.kernel.source.kernel) == 0)
            cli_note(&s->cli, "of the baseline this run has no %s", r->id);
    }
}

static bool is_new(struct session *s, const char *text)
{
    for (size_t i = 0; i < s->said.n; i++)
        if (strcmp(s->said.v[i], text) == 0)
            return false;
    *VEC_PUSH(s->a, &s->said) = arena_strdup(s->a, text);
    return true;
}

/* What holds for many rows, once: that a library is not here, that it is asked for something less. */
static void say_of_rivals(struct session *s, const struct bench_row *row)
{
    for (size_t i = 1; i < row->nresult; i++) {
        const struct measured *m = &row->result[i];
        const char *note = m->status == RIVAL_OK ? m->rival->note : NULL;
        const char *why = m->status == RIVAL_ABSENT ? m->why : NULL;
        const char *name = row->bench->rival[i - 1].name;
        if (why && is_new(s, arena_printf(s->a, "%s: %s", name, why)))
            cli_warning(&s->cli, "%s: %s", name, why);
        if (note && is_new(s, arena_printf(s->a, "%s: %s", name, note)))
            cli_note(&s->cli, "%s: %s", name, note);
    }
}

static void done(void *ctx, const struct bench_row *row)
{
    struct session *s = ctx;
    struct arena *a = arena_new();
    struct buf table = buf_in(a), file = buf_in(a);
    progress_clear(&s->progress);
    report_row(&s->report, a, row, &file);
    report_row(s->to_file ? &s->table : &s->report, a, row, &table);
    write_text(s, &file, &table);
    cli_report(&s->cli, row->d);
    for (size_t i = 0; i < row->nresult; i++)
        if (row->result[i].rival->mistrust)
            cli_warning(&s->cli, "%s: the check of %s says little: %s", report_id(a, row),
                        row->result[i].rival->name, row->result[i].rival->mistrust);
    say_of_rivals(s, row);
    if (row->conditions.missing && !s->no_sensors) {
        s->no_sensors = row->conditions.missing;
        cli_note(&s->cli, "no clocks, power and temperature: %s", s->no_sensors);
    }
    if (s->plot_file)
        plot_add(s->a, &s->plot, row);
    if (s->baseline_file)
        compare(s, a, row);
    worse(s, row->device_failed                                     ? CLI_DEVICE_FAILED
             : row->error && row->result[0].status == RIVAL_REFUSED ? CLI_BAD_INPUT
             : row->wrong                                           ? CLI_CHECK_FAILED
                                                                    : CLI_OK);
    arena_free(a);
}

static void time_all(struct session *s)
{
    struct buf head = buf_in(s->a), table = buf_in(s->a);
    report_head(&s->report, &head);
    report_head(s->to_file ? &s->table : &s->report, &table);
    write_text(s, &head, &table);
    progress_begin(&s->progress, "timing", s->points.v.n, !s->to_stdout);
    for (size_t i = 0; i < s->points.v.n && !interrupted && s->status < CLI_DEVICE_FAILED; i++) {
        progress_step(&s->progress, i);
        bench_problem(&s->bench, &s->points.v.v[i], done, s);
    }
    progress_clear(&s->progress);
    if (!interrupted)
        name_missing(s);
}

/* Emits what would be timed: for a dry run, and for --keep. */
static void plan_one(struct session *s, const struct bench_rival *who, const struct bench_point *p)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct code code;
    struct buf out = buf_in(a);
    struct bench_plan plan = {.who = who, .point = p, .code = &code};
    bool library = who->ops != &rival_kernel;
    bool good = code_make(a, library ? &s->bench.kernel.source : &who->source, p, &code, d);
    if (good && s->keep && !library)
        good = (plan.ptx = keep_ptx(s, &code, who, p, d)) != NULL;
    if (good && s->format == REPORT_JSON)
        bench_plan_json(&plan, &out);
    else if (good)
        bench_plan_text(&plan, &out);
    if (s->dry_run)
        write_text(s, &out, &out);
    worse(s, cli_report(&s->cli, d));
    arena_free(a);
}

static void plan_all(struct session *s)
{
    for (size_t i = 0; i < s->points.v.n && !interrupted; i++) {
        plan_one(s, &s->bench.kernel, &s->points.v.v[i]);
        for (size_t k = 0; k < s->bench.nrival; k++)
            if (s->bench.rival[k].ops == &rival_kernel ||
                (s->dry_run && s->bench.rival[k].ops != &rival_copy))
                plan_one(s, &s->bench.rival[k], &s->points.v.v[i]);
    }
}

static void run(struct session *s)
{
    worse(s, open_device(s));
    if (s->status == CLI_OK) {
        set_target(s);
        if (make_problems(s) && open_outputs(s)) {
            make_command(s);
            if (s->dry_run || s->keep)
                plan_all(s);
            if (!s->dry_run)
                time_all(s);
            close_outputs(s, !interrupted);
        }
    }
    int reported = cli_report(&s->cli, s->d);
    if (s->status != CLI_NO_DEVICE)
        worse(s, reported);
    if (s->dev.dev)
        s->dev.ops->close(s->dev.dev);
}

int main(int argc, char **argv)
{
    struct session s = {.a = arena_new()};
    if (!s.a || setjmp(*arena_guard(s.a))) {
        fputs("kaio-bench: error: out of memory\n", stderr);
        return CLI_BAD_INPUT;
    }
    s.d = diags_new(s.a);
    read_options(&s, argc, argv);
    cli_catch_signals(&s.cli, &interrupted);
    run(&s);
    int status = cli_finish(&s.cli, s.status);
    arena_free(s.a);
    return status;
}
