/* kaio-emit: YAML specs -> PTX. Options and printing; the work is lib/spec's and lib/lower's. */
#include <config.h>

#include "base/cli.h"
#include "base/finding.h"
#include "base/io.h"
#include "lower/lower.h"
#include "lower/tuned.h"
#include "print.h"
#include "program/program.h"
#include "run/device.h"

enum {
    OPT_EXPLAIN = CLI_LONG,
    OPT_STATS,
    OPT_FORMAT,
    OPT_ANNOTATE,
    OPT_KERNEL,
    OPT_LIST_TARGETS,
    OPT_LIST_STRATEGIES,
    OPT_TUNED,
};

static const struct cli_option options[] = {
    {.heading = "Code"},
    {'t', "target", "TARGET",
     "compile for TARGET: sm_70 to sm_120, or 'native' for this\n"
     "machine's GPU (default sm_80)",
     "sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 native"},
    {'D', "define", "NAME=VALUE",
     "fix a dimension, and specialise the code for it;\n"
     "or choose one of the spec's types (T=f32)",
     ""},
    {OPT_TUNED, "tuned", "[FILE]",
     "with the schedules that kaio-bench --tune found\n"
     "(default $XDG_CACHE_HOME/kaio/tuned.json)"},
    {OPT_KERNEL, "kernel", "NAME", "only the kernel or program NAME (may be repeated)", ""},
    {'I', "include", "DIR",
     "look in DIR for the kernels that programs use (may be repeated;\n"
     "then $KAIO_PATH and the installed specs)",
     "/"},
    {'g', "debug", "[LEVEL]",
     "lines of the spec for tools, as .file and .loc: 0 none, 1 those\n"
     "of bodies, 2 of equations, too, and of calls (default 1, of -g 2)",
     "0 1 2"},
    {OPT_ANNOTATE, "annotate", NULL, "write the source lines as comments"},
    {.heading = "Output"},
    {'o', "output", "FILE", "write to FILE instead of standard output"},
    {OPT_EXPLAIN, "explain", NULL, "instead of PTX, in ten lines: which strategy, and why"},
    {'v', "verbose", NULL, "of --explain: all that is known"},
    {OPT_STATS, "stats", NULL, "instead of PTX: instructions, registers and memory"},
    {OPT_FORMAT, "format", "FORMAT",
     "of what is printed but PTX, and of errors, a line each:\n"
     "text (default) or json",
     "text json"},
    {OPT_LIST_TARGETS, "list-targets", NULL, "print the targets and exit"},
    {OPT_LIST_STRATEGIES, "list-strategies", NULL,
     "print the strategies, and what a schedule may say to\n"
     "each, and exit"},
    {0},
};

static const struct cli_program program = {
    .name = "kaio-emit",
    .usage = "[OPTION]... [SPEC]...",
    .purpose =
        "Compile kernel specs (YAML) to PTX. Without SPEC, or when it is -, read standard input.",
    .options = options,
    .epilogue =
        "Examples:\n"
        "  kaio-emit specs/elementwise/saxpy.yaml | kaio-run n=1000 x=@normal y=@ones:y.npy\n"
        "  kaio-emit -t sm_90 -D cols=4096 -o scale.ptx scale.yaml\n",
};

struct job {
    struct cli cli;
    struct arena *a;
    struct diags *d;
    const struct ptx_target *target;
    const char *output;
    struct lower_options lower;
    bool explain, verbose, stats, json, tuned;
    const char *cache_file; /* NULL: where it always is */
    struct buf tuning;      /* what was taken from it, for --explain */
    VEC(struct spec_define) defines;
    VEC(const char *) kernels;
    VEC(const char *) include;
    VEC(struct spec *) read;  /* of the files, as far as they are wanted */
    VEC(struct spec *) specs; /* what is compiled: kernels */
    VEC(struct program *) programs;
};

/* On stderr, as text or as lines of JSON; the exit status. */
static int report(const struct job *j)
{
    struct buf text = buf_in(j->a);
    if (!j->json)
        return cli_report(&j->cli, j->d);
    diags_json(j->d, &text);
    fflush(stdout);
    fputs(buf_text(&text), stderr);
    return j->d->nerror ? CLI_BAD_INPUT : CLI_OK;
}

/* ---- options --------------------------------------------------------------------------------- */

static void list_targets(void)
{
    size_t n;
    const struct ptx_target *t = ptx_targets(&n);
    for (size_t i = 0; i < n; i++)
        printf("%-8s PTX %u.%u\n", t[i].name, t[i].min_ptx / 10, t[i].min_ptx % 10);
}

static void list_strategies(struct job *j)
{
    struct buf text = buf_in(j->a);
    print_strategies(j->a, j->json, &text);
    fputs(buf_text(&text), stdout);
}

/* The first GPU's architecture, or the nearest one below it that we know. */
static const struct ptx_target *native_target(struct job *j, int *status)
{
    static const struct device_options none;
    struct device *dev = NULL;
    struct device_info info = {0};
    *status = CLI_NO_DEVICE;
    if (cuda_device.count(j->d) < 1) {
        report(j);
        cli_error(&j->cli, "target 'native': there is no GPU here; name one, as in -t sm_80");
        return NULL;
    }
    enum device_status s = cuda_device.open(j->a, 0, &none, &dev, j->d);
    if (s != DEVICE_OK) {
        report(j);
        *status = s == DEVICE_ABSENT ? CLI_NO_DEVICE : CLI_DEVICE_FAILED;
        return NULL;
    }
    cuda_device.info(dev, &info);
    cuda_device.close(dev);
    const struct ptx_target *best = ptx_target_of(info.sm);
    if (!best)
        cli_error(&j->cli, "target 'native': sm_%u is older than any target", info.sm);
    *status = CLI_BAD_INPUT;
    return best;
}

static void set_target(struct job *j, const char **native)
{
    *native = NULL;
    if (strcmp(j->cli.arg, "native") == 0) {
        *native = j->cli.arg;
        return;
    }
    j->target = ptx_target_find(j->cli.arg, strlen(j->cli.arg));
    if (j->target)
        return;
    size_t n;
    const struct ptx_target *t = ptx_targets(&n);
    struct buf b = buf_in(j->a);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%s", i ? " " : "", t[i].name);
    cli_usage_error(&j->cli, "unknown target '%s'; there are: %s native", j->cli.arg, buf_text(&b));
}

static void add_define(struct job *j)
{
    struct spec_define *def = VEC_PUSH(j->a, &j->defines);
    const char *wrong = spec_parse_define(j->a, j->cli.arg, def);
    if (wrong)
        cli_usage_error(&j->cli, "%s: %s", j->cli.shown, wrong);
    for (size_t i = 0; i + 1 < j->defines.n; i++)
        if (strcmp(j->defines.v[i].name, def->name) == 0)
            cli_usage_error(&j->cli, "'%s' is given twice", def->name);
}

/* False: nothing more to do, *status is the exit status. */
static bool read_options(struct job *j, int argc, char **argv, int *status)
{
    static const char *const formats[] = {"text", "json", NULL}, *const levels[] = {"0", "1", "2",
                                                                                    NULL};
    static const enum lower_lines lines[] = {LOWER_LINES_NONE, LOWER_LINES_BODY, LOWER_LINES_ALL};
    const char *native = NULL;
    bool targets = false, strategies = false;
    j->target = ptx_target_find("sm_80", 5);
    cli_begin(&j->cli, &program, argc, argv);
    j->a = arena_new();
    arena_large(j->a);
    j->d = diags_new(j->a);
    for (int opt; (opt = cli_next(&j->cli)) != CLI_END;)
        switch (opt) {
        case 't': set_target(j, &native); break;
        case 'D': add_define(j); break;
        case 'g': j->lower.lines = lines[j->cli.arg ? cli_choice(&j->cli, levels) : 2]; break;
        case 'o': j->output = j->cli.arg; break;
        case OPT_KERNEL: *VEC_PUSH(j->a, &j->kernels) = j->cli.arg; break;
        case 'I': *VEC_PUSH(j->a, &j->include) = j->cli.arg; break;
        case OPT_EXPLAIN: j->explain = true; break;
        case 'v': j->verbose = true; break;
        case OPT_STATS: j->stats = true; break;
        case OPT_FORMAT: j->json = cli_choice(&j->cli, formats) == 1; break;
        case OPT_ANNOTATE: j->lower.annotate = true; break;
        case OPT_LIST_TARGETS: targets = true; break;
        case OPT_LIST_STRATEGIES: strategies = true; break;
        case OPT_TUNED:
            j->tuned = true;
            j->cache_file = j->cli.arg;
            break;
        }
    if (j->verbose && (!j->explain || j->json))
        cli_usage_error(&j->cli, "-v is for the text of --explain");
    if (j->explain && j->stats)
        cli_usage_error(&j->cli, "--explain and --stats exclude each other");
    if (targets || strategies) {
        if (targets)
            list_targets();
        if (strategies)
            list_strategies(j);
        *status = CLI_OK;
        return false;
    }
    return !native || (j->target = native_target(j, status)) != NULL;
}

/* ---- input ----------------------------------------------------------------------------------- */

static bool wanted(const struct job *j, const char *kernel)
{
    for (size_t i = 0; i < j->kernels.n; i++)
        if (strcmp(j->kernels.v[i], kernel) == 0)
            return true;
    return j->kernels.n == 0;
}

static bool has_name(const struct spec *s, const char *name)
{
    for (size_t i = 0; i < s->dims.n; i++)
        if (strcmp(s->dims.v[i]->name, name) == 0)
            return true;
    return spec_find_type(s, name) != NULL;
}

static bool compiles(void *ctx, struct spec *s)
{
    const struct job *j = ctx;
    return lower_specs(j->a, &s, 1, j->target, NULL, diags_new(j->a)) != NULL;
}

/* A program is the kernels that it calls, and its steps. */
static bool add_program(struct job *j, const struct spec *s, const struct spec_file *file)
{
    struct program_options opt = {.compiles = compiles, .ctx = j};
    opt.path = program_path(j->a, j->include.v, j->include.n, &opt.npath);
    struct program *p = program_build(j->a, s, file, &opt, j->target->name, j->d);
    if (!p)
        return false;
    for (size_t i = 0; i < p->kernels.n; i++)
        *VEC_PUSH(j->a, &j->specs) = p->kernels.v[i].spec;
    *VEC_PUSH(j->a, &j->programs) = p;
    return true;
}

/* The kernels of a file with a program are there for it. */
static bool add_file(struct job *j, const struct spec_file *file)
{
    bool has_program = false, good = true;
    for (size_t i = 0; i < file->specs.n; i++)
        has_program |= file->specs.v[i]->program != NULL;
    for (size_t i = 0; i < file->specs.n && good; i++) {
        struct spec *s = file->specs.v[i];
        if (!wanted(j, s->name))
            continue;
        *VEC_PUSH(j->a, &j->read) = s;
        if (s->program)
            good = add_program(j, s, file);
        else if (!has_program || j->kernels.n)
            *VEC_PUSH(j->a, &j->specs) = s;
    }
    return good;
}

static bool read_specs(struct job *j)
{
    static char *const input[] = {"-"};
    int n = j->cli.argc ? j->cli.argc : 1;
    char *const *paths = j->cli.argc ? j->cli.argv : input;
    for (int i = 0; i < n; i++) {
        const struct source *src = io_read(j->a, j->d, paths[i], IO_TEXT_LIMIT);
        const struct spec_file *file = src ? spec_read(j->a, src, j->defines.v, j->defines.n, j->d)
                                           : NULL;
        if (!file || !add_file(j, file))
            return false;
    }
    return true;
}

static bool check_selection(struct job *j)
{
    for (size_t i = 0; i < j->kernels.n; i++) {
        bool found = false;
        for (size_t k = 0; k < j->read.n; k++)
            found |= strcmp(j->read.v[k]->name, j->kernels.v[i]) == 0;
        if (!found)
            return diag_error(j->d, SPAN_NONE, "no kernel is named '%s'", j->kernels.v[i]);
    }
    for (size_t i = 0; i < j->defines.n; i++) {
        bool found = false;
        for (size_t k = 0; k < j->read.n; k++)
            found |= has_name(j->read.v[k], j->defines.v[i].name);
        if (!found)
            return diag_error(j->d, SPAN_NONE, "no kernel has a dimension or a type '%s'",
                              j->defines.v[i].name);
    }
    return true;
}

/* ---- schedules that were measured ------------------------------------------------------------ */

static void apply_one(struct job *j, const struct tuned_cache *cache, struct spec *s)
{
    bool exact;
    const char *why;
    const struct tuned_entry *e =
        tuned_apply(j->a, cache, s, j->defines.v, j->defines.n, j->target, NULL, &exact, &why);
    if (!e && exact)
        diag_warning(j->d, SPAN_NONE, "%s: not tuned: %s", s->name, why);
    if (!e)
        buf_printf(&j->tuning, "%s: not tuned: %s\n", s->name, why);
    else
        buf_printf(&j->tuning, "%s: tuned on %s%s: %s\n", s->name, e->device,
                   exact ? "" : ", for the nearest problem",
                   e->schedule ? e->schedule : "the built-in schedule");
}

static bool apply_tuned(struct job *j)
{
    struct tuned_cache cache;
    j->tuning = buf_in(j->a);
    if (!j->tuned)
        return true;
    const char *path = j->cache_file ? j->cache_file : tuned_path(j->a, j->d);
    if (!path)
        return false;
    tuned_read(j->a, path, &cache, j->d);
    for (size_t i = 0; i < j->specs.n; i++)
        if (j->specs.v[i]->has_compute)
            apply_one(j, &cache, j->specs.v[i]);
    return true;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Behind the contracts of their kernels. */
static void add_programs(struct job *j, struct ptx_module *m)
{
    struct buf header = buf_in(j->a);
    buf_puts(&header, m->header);
    for (size_t i = 0; i < j->programs.n; i++)
        contract_write(j->programs.v[i]->contract, &header);
    m->header = buf_text(&header);
}

/* The steps of programs, then their kernels. */
static void print_explained(struct job *j, struct lower_report *report, struct buf *out)
{
    for (size_t i = 0; i < j->programs.n; i++)
        print_program(j->programs.v[i], j->target->name, out);
    print_explain(report, j->target->name, buf_text(&j->tuning), j->verbose, out);
}

static bool emit(struct job *j)
{
    struct buf text = buf_in(j->a);
    struct lower_report report = {.text = buf_in(j->a)};
    j->lower.report = j->explain ? &report : NULL;
    j->lower.advises = true;
    struct ptx_module *m = lower_specs(j->a, j->specs.v, j->specs.n, j->target, &j->lower, j->d);
    if (!m)
        return false;
    add_programs(j, m);
    if (j->stats)
        print_stats(j->a, m, j->target->name, j->json, &text);
    else if (j->explain && j->json)
        print_explain_json(&report, j->target->name, buf_text(&j->tuning), &text);
    else if (j->explain)
        print_explained(j, &report, &text);
    else
        ptx_print(m, &text);
    struct io_out *out = io_create(j->a, j->d, j->output ? j->output : "-");
    if (!out)
        return false;
    io_write(out, buf_text(&text), text.len);
    return io_commit(out, j->d);
}

int main(int argc, char **argv)
{
    struct job j = {0};
    int status = CLI_BAD_INPUT;
    if (read_options(&j, argc, argv, &status)) {
        bool good = read_specs(&j) && check_selection(&j) && apply_tuned(&j) && emit(&j);
        status = report(&j);
        if (!good && status == CLI_OK)
            status = CLI_BAD_INPUT;
    }
    status = cli_finish(&j.cli, status);
    arena_free(j.a);
    return status;
}
