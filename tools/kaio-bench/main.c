/* kaio-bench: times kernels. Options and printing; the work is lib/bench's. */
#include <config.h>

#include "session.h"

#include "base/num.h"
#include "run/choose.h"

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
    OPT_SUITE,
    OPT_LIST_SUITES,
    OPT_TYPES,
    OPT_TUNE,
    OPT_RETUNE,
    OPT_TUNE_CACHE,
    OPT_TUNED,
    OPT_THREADS,
};

static const struct cli_option options[] = {
    {.heading = "Problems"},
    {OPT_KERNEL, "kernel", "NAME", "of a file with several kernels, this one", ""},
    {OPT_BYTES, "bytes", "SIZE", "choose the first free dimension so that all buffers take SIZE",
     ""},
    {OPT_SUITE, "suite", "NAME", "instead of a spec: a built-in suite of kernels and problems",
     "matmul attention conv"},
    {OPT_TYPES, "types", "LIST", "of the suite only these types: f16,bf16",
     "f16 bf16 f32 tf32 f64 int8 fp8 full causal decode backward backward-causal softcap alibi "
     "window documents bias varlen paged"},
    {OPT_LIST_SUITES, "list-suites", NULL, "say which suites there are, and what is in them"},
    {.heading = "Code"},
    {'t', "target", "TARGET", "compile for TARGET (default: this GPU's)",
     "sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 native"},
    {'D', "define", "NAME=VALUE", "fix a dimension, with --generic too, or choose a type", ""},
    {OPT_GENERIC, "generic", NULL, "leave the dimensions to be given at launch"},
    {OPT_KEEP, "keep", "DIR", "write the PTX of every problem into DIR"},
    {OPT_TUNE, "tune", NULL, "search for the fastest schedule of each problem, and keep it"},
    {OPT_RETUNE, "retune", NULL, "search again where the cache has one"},
    {OPT_TUNED, "tuned", "[FILE]", "take the schedules of an earlier --tune"},
    {OPT_TUNE_CACHE, "tune-cache", "FILE",
     "where --tune keeps them (default\n"
     "$XDG_CACHE_HOME/kaio/tuned.json)"},
    {OPT_THREADS, "threads", "N", "compile for --tune with N threads (default: one per core)", ""},
    {.heading = "Rivals"},
    {OPT_VS, "vs", "RIVAL",
     "time RIVAL too: copy, cublas, cublas-sgemm, cublaslt,\n"
     "cublas-unfused (then a kernel for the rest), cudnn,\n"
     "another SPEC.yaml, or the spec under another schedule,\n"
     "'schedule:{strategy: naive}'",
     "copy cublas cublas-sgemm cublas-unfused cublaslt cudnn"},
    {.heading = "Method"},
    {'d', "device", "DEVICE", "cuda or cuda:N (default: the first GPU)", "cuda cuda:0 cuda:1"},
    {OPT_RUNS, "runs", "N", "rounds (default 50)", ""},
    {OPT_ROUND, "time-per-round", "MS", "milliseconds that each has in a round (default 4)", ""},
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
    .usage =
        "[OPTION]... SPEC [CASE]... [NAME=VALUES]...\n[OPTION]... --suite=NAME [NAME=VALUES]...",
    .purpose = "Time a kernel on the GPU over a sweep of problems, beside rivals, after checking\n"
               "the results of all of them.",
    .options = options,
    .epilogue = "Examples:\n"
                "  kaio-bench --vs copy --bytes=256M specs/norm/softmax.yaml cols=512..65536*2\n"
                "  kaio-bench --suite matmul --types f16,bf16 --vs cublas\n"
                "  kaio-bench --vs 'schedule:{strategy: naive}' specs/norm/rms_norm.yaml\n",
};

static volatile sig_atomic_t interrupted;

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

static void choose_suite(struct session *s)
{
    size_t n;
    const struct suite *all = suites(&n);
    struct buf names = buf_in(s->a);
    for (size_t i = 0; i < n; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", all[i].name);
    s->suite = suite_find(s->cli.arg);
    if (!s->suite)
        cli_usage_error(&s->cli, "unknown suite '%s'; there are: %s", s->cli.arg, buf_text(&names));
}

static void list_cases(struct session *s, const struct suite_kernel *k)
{
    const struct source *text = source_new(s->a, k->name, k->text, strlen(k->text));
    struct spec_file *f = spec_read(s->a, text, NULL, 0, s->d);
    for (size_t i = 0; f && i < f->specs.v[0]->cases.n; i++)
        printf(" %s", f->specs.v[0]->cases.v[i].name);
}

static _Noreturn void list_suites(struct session *s)
{
    size_t n;
    const struct suite *all = suites(&n);
    for (size_t i = 0; i < n; i++) {
        printf("%s: %s\n  types:", all[i].name, all[i].doc);
        for (size_t k = 0; k < all[i].nkernel; k++)
            if (suite_begins_type(&all[i], k))
                printf(" %s", all[i].kernel[k].type);
        putchar('\n');
        for (size_t k = 0; k < all[i].nproblem; k++)
            printf("  %s\n", all[i].problem[k]);
        for (size_t k = 0; k < all[i].nkernel && !all[i].problem; k++) {
            if (suite_begins_type(&all[i], k))
                printf("%s  %s:", k ? "\n" : "", all[i].kernel[k].type);
            list_cases(s, &all[i].kernel[k]);
        }
        if (!all[i].problem)
            putchar('\n');
    }
    exit(cli_finish(&s->cli, CLI_OK));
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
    case OPT_RUNS:
        b->burst.runs = (unsigned)cli_int(&s->cli, 1, 100000);
        b->burst.least = 0;
        break;
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
    case OPT_SUITE: choose_suite(s); break;
    case OPT_LIST_SUITES: list_suites(s); break;
    case OPT_TUNE: s->tune = true; break;
    case OPT_RETUNE: s->tune = s->retune = true; break;
    case OPT_TUNED:
        s->tuned = true;
        s->cache_file = s->cli.arg ? s->cli.arg : s->cache_file;
        break;
    case OPT_TUNE_CACHE: s->cache_file = s->cli.arg; break;
    case OPT_THREADS: s->threads = (unsigned)cli_int(&s->cli, 0, 1024); break;
    case OPT_TYPES: s->types = s->cli.arg; break;
    }
}

/* The first word that is or looks like a file is the spec, NAME=VALUES an axis, anything else a
 * case. */
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
    if (s->suite && s->bench.path)
        cli_usage_error(&s->cli, "--suite has specs of its own, and '%s' is one more",
                        s->bench.path);
    if (s->suite && (s->kernel || s->plot_file))
        cli_usage_error(&s->cli, "--suite and --%s do not go together; time a spec for that",
                        s->kernel ? "kernel" : "plot");
    if (s->types && !s->suite)
        cli_usage_error(&s->cli, "--types is for --suite; of a spec, sweep its types: T=f16,f32");
    if (s->suite && s->suite->problem && s->sweep.cases.n)
        cli_usage_error(&s->cli, "suite '%s' has no case '%s'", s->suite->name,
                        s->sweep.cases.v[0]);
    if (s->tune && s->tuned)
        cli_usage_error(&s->cli, "--tune uses the cache anyway; --tuned alone searches nothing");
    if (s->tune && s->keep)
        cli_usage_error(&s->cli, "--keep goes with --tuned, after --tune");
    if (s->suite)
        s->bench.path = s->suite->name;
    if (!s->bench.path)
        cli_usage_error(&s->cli, s->sweep.cases.n ? "no such file: '%s'" : "no spec given",
                        s->sweep.cases.n ? s->sweep.cases.v[0] : "");
}

static void read_options(struct session *s, int argc, char **argv)
{
    s->format = -1;
    s->fail_below = 0.97;
    s->bench.dev = &s->dev;
    s->interrupted = &interrupted;
    s->bench.data = (struct data_options){.seed = 1, .sample = 1024, .interrupted = &interrupted};
    s->bench.burst = (struct measure_options){.runs = 50,
                                              .least = 10,
                                              .round_seconds = 0.004,
                                              .warm_seconds = 0.25,
                                              .interrupted = &interrupted};
    cli_begin(&s->cli, &program, argc, argv);
    s->a = arena_new();
    s->d = diags_new(s->a);
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
    *to = s->dry_run ? NULL : ptx_target_of(s->dev.info.sm);
    if (!*to)
        *to = ptx_target_find("sm_80", 5);
}

static void run(struct session *s)
{
    worse(s, open_device(s));
    if (s->status == CLI_OK) {
        set_target(s);
        if (read_cache(s) && make_problems(s) && open_outputs(s)) {
            cli_catch_signals(&s->cli, &interrupted); /* from here on rows are told */
            if (s->dry_run || (s->keep && !s->tune))
                plan_all(s);
            if (!s->dry_run)
                time_all(s);
            close_outputs(s, !*s->interrupted);
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
    struct session s = {0};
    read_options(&s, argc, argv);
    run(&s);
    int status = cli_finish(&s.cli, s.status);
    arena_free(s.a);
    return status;
}
