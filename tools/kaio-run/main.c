/* kaio-run: PTX and buffers -> buffers. Options and printing; the work is lib/run's. */
#include <config.h>

#include "base/cli.h"
#include "base/io.h"
#include "base/num.h"
#include "base/progress.h"
#include "base/suppress.h"
#include "data/load.h"
#include "ptx/ptx.h"
#include "run/args.h"
#include "run/choose.h"
#include "run/made.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    OPT_CHECK = CLI_LONG,
    OPT_TIME,
    OPT_LAUNCH,
    OPT_KERNEL,
    OPT_ENTRY,
    OPT_GRID,
    OPT_BLOCK,
    OPT_CLUSTER,
    OPT_SHARED,
    OPT_ARG,
    OPT_MAX_INSTRUCTIONS,
    OPT_THREADS,
    OPT_CHECK_SEED,
    OPT_ARCH,
    OPT_HEAP,
    OPT_OVERCOMMIT,
    OPT_LIST_DEVICES,
    OPT_LIST_TENSORS,
    OPT_MESSAGES,
    OPT_MESSAGES_ORDER,
    OPT_FORMAT,
    OPT_SUPPRESSIONS,
    OPT_PRINT_SUPPRESSIONS,
    OPT_MAX_FINDINGS,
    OPT_PLAN,
    OPT_PROFILE,
    OPT_MAX_ITERATIONS,
};

#define TEXT(id, name, arg, help, values) \
    {                                     \
        id, name, arg, help, values, NULL \
    }
static const struct cli_option options[] = {
    {.heading = "Device"},
    TEXT('d', "device", "DEVICE",
         "auto (default: the first GPU, else the simulator),\ncuda[:N] or cpu", "auto cuda cpu"),
    TEXT(OPT_LIST_DEVICES, "list-devices", NULL, "print the devices and exit", NULL),
    {.heading = "Files"},
    TEXT(OPT_LIST_TENSORS, "list-tensors", "FILE",
         "print the tensors of a safetensors file and exit", NULL),
    {.heading = "Launch"},
    TEXT('D', "define", "DIM=N", "give a dimension its value; the same as DIM=N", ""),
    TEXT(OPT_KERNEL, "kernel", "NAME", "which kernel or program, when the PTX holds several", ""),
    TEXT(OPT_LAUNCH, "launch", "FILE", "read the launch contract from FILE", NULL),
    TEXT(OPT_HEAP, "heap", "BYTES", "room for malloc() in kernels (default 8Mi)", ""),
    TEXT(OPT_OVERCOMMIT, "overcommit", NULL, "ask for memory that the machine does not have left",
         NULL),
    {.heading = "Programs"},
    TEXT(OPT_PLAN, "plan", NULL, "print what the program does and where its memory lies, and exit",
         NULL),
    TEXT(OPT_PROFILE, "profile", NULL, "print the time of each step behind the results", NULL),
    TEXT(OPT_MAX_ITERATIONS, "max-iterations", "N",
         "end a while after N iterations (default 1e6; 0: never)", ""),
    {.heading = "Launch of PTX without a contract"},
    TEXT(OPT_ENTRY, "entry", "NAME", "the entry to launch", ""),
    TEXT(OPT_GRID, "grid", "X[,Y[,Z]]", "blocks; expressions of dimensions", ""),
    TEXT(OPT_BLOCK, "block", "X[,Y[,Z]]", "threads of a block", ""),
    TEXT(OPT_CLUSTER, "cluster", "X[,Y[,Z]]", "blocks of a cluster", ""),
    TEXT(OPT_SHARED, "shared", "BYTES", "dynamic shared memory of a block", ""),
    TEXT(OPT_ARG, "arg", "DECL=VALUE", "the next argument: --arg 'in f32[n]=x.npy'", ""),
    {.heading = "Messages of print() and assert()"},
    TEXT(OPT_MESSAGES, "messages", "BYTES", "room for the messages of a launch (default 1Mi)", ""),
    TEXT(OPT_MESSAGES_ORDER, "messages-order", "ORDER",
         "thread (default): by block and thread;\ntime: as they were issued", "thread time"),
    {.heading = "Measuring and checking"},
    TEXT(OPT_TIME, "time", "[N]",
         "time N launches after the one that counts (default 20,\non the simulator 3)", ""),
    TEXT(OPT_CHECK, "check", "[LIST]",
         "run on the simulator and report wrong accesses; LIST: of\nmemory,init,race,sync,async "
         "(default "
         "all of them)",
         "memory init race sync async all"),
    TEXT(OPT_CHECK_SEED, "check-seed", "N",
         "draw from N when asynchronous copies arrive on the simulator\n(default 0: as late as "
         "they may)",
         ""),
    TEXT(OPT_SUPPRESSIONS, "suppressions", "FILE",
         "leave out the findings that FILE names; may be given again", NULL),
    TEXT(OPT_PRINT_SUPPRESSIONS, "print-suppressions", NULL,
         "print a suppression for each finding on standard output", NULL),
    TEXT(OPT_MAX_FINDINGS, "max-findings", "N", "show N findings of a launch at most (default 20)",
         ""),
    TEXT(OPT_FORMAT, "format", "FORMAT",
         "of errors and findings: text (default) or json, a line each", "text json"),
    TEXT(OPT_MAX_INSTRUCTIONS, "max-instructions", "N",
         "stop a simulated launch after N thread-instructions\n(default 1e12; 0: never)", ""),
    TEXT(OPT_THREADS, "threads", "N", "threads of the simulator (default: one per core)", ""),
    TEXT(OPT_ARCH, "arch", "TARGET",
         "add up matrix products as the GPUs of TARGET do\n(default: the target of the PTX)", ""),
    TEXT('q', "quiet", NULL, "neither say which device was taken nor show progress", NULL),
    {0},
};
#undef TEXT

static const struct cli_program program = {
    .name = "kaio-run",
    .usage = "[OPTION]... [PTX] [NAME=VALUE]...",
    .purpose = "Run PTX on a GPU or on the CPU simulator. Without PTX, or when it is -, read "
               "standard input.",
    .options = options,
    .epilogue =
        "NAME=VALUE gives a dimension or a scalar its number, an input its file (x.npy, x.bin,\n"
        "w.safetensors#tensor, -; as x.npy[2,3] in another shape, as x.npy::T transposed) or a\n"
        "generator (@zeros @ones @arange @uniform[:SEED] @normal[:SEED] @const:V\n"
        "@randint:LO:HI[:SEED] @sorted:LO:HI[:SEED] @offsets:TOTAL[:SEED]), an output its file,\n"
        "an inout SOURCE:DESTINATION. An output without a file is summarised.\n"
        "\n"
        "Examples:\n"
        "  kaio-emit saxpy.yaml | kaio-run n=1000 x=@normal y=@ones:y.npy alpha=2\n"
        "  kaio-run -d cpu saxpy.ptx x=x.npy y=y.npy:- alpha=2 | kaio-verify ...\n"
        "  kaio-run vec.ptx --entry add --grid 4 --block 256 --arg 'in f32[1024]=@ones' \\\n"
        "    --arg 'out f32[1024]=y.npy' --arg u32=1024\n",
};

struct job {
    struct cli cli;
    struct arena *a;
    struct diags *d;
    struct device_choice device;
    struct device_options device_options;
    struct progress progress;
    FILE *talk; /* where printf() goes; NULL: nowhere */
    const char *kernel, *launch;
    const char *tensors; /* the file whose tensors are listed; NULL: none */
    struct made_options made;
    struct run_options run_options;
    bool list, quiet, check, time, json, print_suppressions, plan, profile;
    struct suppressions suppressions;
    VEC(const char *) suppression_files;
    unsigned rounds;  /* 0: the default */
    const char *path; /* of the PTX */
    VEC(struct run_arg) args;
    VEC(const char *) decls;
    const struct source *ptx;
    struct ptx_module *module; /* NULL: not parsed; the device will tell */
};

/* ---- options ---- */

static bool is_name(const char *s, size_t len)
{
    bool good = len > 0 && !isdigit((unsigned char)s[0]);
    for (size_t i = 0; i < len; i++)
        good = good && (isalnum((unsigned char)s[i]) || s[i] == '_');
    return good;
}

static void add_define(struct job *j)
{
    const char *s = j->cli.arg, *eq = strchr(s, '=');
    if (!eq || !is_name(s, (size_t)(eq - s)))
        cli_usage_error(&j->cli, "-D takes DIM=N, as in -D n=1024, not '%s'", s);
    enum dtype type;
    if (dtype_parse(eq + 1, strlen(eq + 1), &type))
        cli_usage_error(&j->cli, "types are chosen at emission: kaio-emit -D %s", s);
    *VEC_PUSH(j->a, &j->args) = (struct run_arg){
        .name = arena_strndup(j->a, s, (size_t)(eq - s)), .value = eq + 1, .dim_only = true};
}

static void set_device(struct job *j, const char *text, const char *from)
{
    if (!device_parse(text, &j->device))
        cli_usage_error(&j->cli, "%s: '%s' is not auto, cuda, cuda:N or cpu", from, text);
}

static void set_check(struct job *j)
{
    const char *bad;
    size_t len;
    j->check = true;
    if (!device_parse_check(j->cli.arg ? j->cli.arg : "all", &j->device_options.check, &bad, &len))
        cli_usage_error(&j->cli, "--check: '%.*s' is not memory, init, race, sync, async or all",
                        (int)len, bad);
}

static void set_arch(struct job *j)
{
    const struct ptx_target *t = ptx_target_find(j->cli.arg, strlen(j->cli.arg));
    if (!t)
        cli_usage_error(&j->cli, "--arch: '%s' is no target, as sm_80 or sm_90 are", j->cli.arg);
    j->device_options.sm = t->sm;
}

static void set_overcommit(struct job *j)
{
    j->device_options.overcommit = true;
    arena_overcommit(j->a, true);
}

static void set_order(struct job *j)
{
    const char *s = j->cli.arg;
    if (strcmp(s, "thread") != 0 && strcmp(s, "time") != 0)
        cli_usage_error(&j->cli, "--messages-order: '%s' is not thread or time", s);
    j->run_options.messages_by_time = strcmp(s, "time") == 0;
}

static void take_operands(struct job *j)
{
    for (int i = 0; i < j->cli.argc; i++) {
        const char *s = j->cli.argv[i], *eq = strchr(s, '=');
        if (eq && is_name(s, (size_t)(eq - s)))
            *VEC_PUSH(j->a, &j->args) =
                (struct run_arg){.name = arena_strndup(j->a, s, (size_t)(eq - s)), .value = eq + 1};
        else if (!j->path)
            j->path = s;
        else
            cli_usage_error(&j->cli, "'%s' is not NAME=VALUE, and the PTX is '%s' already", s,
                            j->path);
    }
}

/* Options that exclude or need each other. */
static void check_options(struct job *j)
{
    const struct made_options *m = &j->made;
    bool any = m->grid || m->block || m->cluster || m->shared || m->narg;
    if (any && !m->entry)
        cli_usage_error(&j->cli, "--grid, --block, --cluster, --shared and --arg need --entry");
    if (m->entry && (!m->grid || !m->block))
        cli_usage_error(&j->cli, "--entry needs --grid and --block");
    if (m->entry && (j->launch || j->kernel))
        cli_usage_error(&j->cli, "--entry excludes --launch and --kernel");
    if (j->check && j->device.ops == &cuda_device)
        cli_usage_error(&j->cli, "--check runs on the simulator: -d cpu");
    if (j->check)
        j->device.ops = &sim_device;
    if (!j->check &&
        (j->suppression_files.n || j->print_suppressions || j->device_options.max_findings))
        cli_usage_error(&j->cli,
                        "--suppressions, --print-suppressions and --max-findings need --check");
    j->run_options.apart = j->check; /* so that reports name a temp */
    j->quiet |= j->json;             /* nothing but JSON on stderr */
    if (!j->path && isatty(STDIN_FILENO) && !j->list && !j->tensors)
        cli_usage_error(&j->cli, "no PTX: name a file, or pipe kaio-emit's output in");
}

static void read_options(struct job *j, int argc, char **argv)
{
    static const char *const formats[] = {"text", "json", NULL};
    const char *env = getenv("KAIO_DEVICE");
    j->run_options = run_default;
    cli_begin(&j->cli, &program, argc, argv);
    j->a = arena_new();
    j->d = diags_new(j->a);
    if (env && *env)
        set_device(j, env, "KAIO_DEVICE");
    for (int opt; (opt = cli_next(&j->cli)) != CLI_END;)
        switch (opt) {
        case 'd': set_device(j, j->cli.arg, "--device"); break;
        case 'D': add_define(j); break;
        case 'q': j->quiet = true; break;
        case OPT_LIST_DEVICES: j->list = true; break;
        case OPT_LIST_TENSORS: j->tensors = j->cli.arg; break;
        case OPT_KERNEL: j->kernel = j->cli.arg; break;
        case OPT_PLAN: j->plan = true; break;
        case OPT_PROFILE: j->profile = true; break;
        case OPT_MAX_ITERATIONS:
            j->run_options.max_iterations = (uint64_t)cli_int(&j->cli, 0, INT64_MAX);
            break;
        case OPT_LAUNCH: j->launch = j->cli.arg; break;
        case OPT_ENTRY: j->made.entry = j->cli.arg; break;
        case OPT_GRID: j->made.grid = j->cli.arg; break;
        case OPT_BLOCK: j->made.block = j->cli.arg; break;
        case OPT_CLUSTER: j->made.cluster = j->cli.arg; break;
        case OPT_SHARED: j->made.shared = j->cli.arg; break;
        case OPT_ARG: *VEC_PUSH(j->a, &j->decls) = j->cli.arg; break;
        case OPT_TIME:
            j->time = true;
            j->rounds = j->cli.arg ? (unsigned)cli_int(&j->cli, 1, 1000000) : 0;
            break;
        case OPT_CHECK: set_check(j); break;
        case OPT_CHECK_SEED:
            j->device_options.seed = (uint64_t)cli_int(&j->cli, 0, INT64_MAX);
            break;
        case OPT_MESSAGES:
            j->run_options.message_bytes = (uint64_t)cli_int(&j->cli, 64, RUN_MESSAGE_BYTES_MOST);
            break;
        case OPT_MESSAGES_ORDER: set_order(j); break;
        case OPT_MAX_INSTRUCTIONS:
            j->device_options.max_instructions = (uint64_t)cli_int(&j->cli, 0, INT64_MAX);
            if (!j->device_options.max_instructions)
                j->device_options.max_instructions = UINT64_MAX;
            break;
        case OPT_ARCH: set_arch(j); break;
        case OPT_HEAP:
            j->device_options.heap_bytes = (uint64_t)cli_int(&j->cli, 1024, (int64_t)1 << 34);
            break;
        case OPT_OVERCOMMIT: set_overcommit(j); break;
        case OPT_FORMAT: j->json = cli_choice(&j->cli, formats) == 1; break;
        case OPT_SUPPRESSIONS: *VEC_PUSH(j->a, &j->suppression_files) = j->cli.arg; break;
        case OPT_PRINT_SUPPRESSIONS: j->print_suppressions = true; break;
        case OPT_MAX_FINDINGS:
            j->device_options.max_findings = (unsigned)cli_int(&j->cli, 1, DEVICE_FINDINGS_MOST);
            break;
        case OPT_THREADS: j->device_options.threads = (unsigned)cli_int(&j->cli, 1, 1024); break;
        }
    j->made.arg = j->decls.v;
    j->made.narg = j->decls.n;
    take_operands(j);
    check_options(j);
}

/* ---- the module and its contract ---- */

static bool is_cubin(const struct source *s)
{
    return s->len >= 4 && memcmp(s->text, "\177ELF", 4) == 0;
}

/* The simulator needs to understand the PTX; a GPU's driver may know more of it than we do. */
static bool read_ptx(struct job *j)
{
    bool gpu = j->device.ops == &cuda_device;
    j->ptx = io_read(j->a, j->d, j->path ? j->path : "-", IO_TEXT_LIMIT);
    if (!j->ptx)
        return false;
    if (j->ptx->len == 0)
        return diag_error(j->d, SPAN_NONE, "'%s' is empty; PTX is expected", j->ptx->name);
    if (is_cubin(j->ptx))
        return gpu || diag_error(j->d, SPAN_NONE, "'%s' is a cubin, which runs on a GPU only",
                                 j->ptx->name);
    struct diags *scratch = gpu ? diags_new(j->a) : j->d;
    j->module = ptx_parse(j->a, j->ptx, scratch);
    return j->module || gpu;
}

/* The leading lines behind "//@ ": the contract's text, line for line. */
static const struct source *contract_lines(struct job *j, const struct source *s)
{
    struct buf text = buf_in(j->a);
    const char *p = s->text, *end = p + s->len;
    while (end - p >= 3 && memcmp(p, "//@", 3) == 0) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        eol = eol ? eol : end;
        const char *from = p + 3 < eol && p[3] == ' ' ? p + 4 : p + 3;
        buf_add(&text, from, (size_t)(eol - from));
        buf_putc(&text, '\n');
        p = eol < end ? eol + 1 : end;
    }
    return source_new(j->a, s->name, buf_text(&text), text.len);
}

static const struct contract *pick_kernel(struct job *j, const struct contract_file *file,
                                          const char *where)
{
    const char **names = ARENA_ARRAY(j->a, file->v.n + 1, const char *);
    struct buf list = buf_in(j->a);
    for (size_t i = 0; i < file->v.n; i++) {
        names[i] = file->v.v[i]->kernel;
        buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
        if (j->kernel && strcmp(j->kernel, names[i]) == 0)
            return file->v.v[i];
    }
    if (!j->kernel && contract_main(file))
        return contract_main(file);
    if (!j->kernel) {
        diag_error(j->d, SPAN_NONE, "'%s' holds %zu kernels (%s); choose one with --kernel", where,
                   file->v.n, buf_text(&list));
        return NULL;
    }
    const char *near = diag_nearest(j->kernel, strlen(j->kernel), names);
    if (near)
        diag_error(j->d, SPAN_NONE, "'%s' has no kernel '%s'; did you mean '%s'?", where, j->kernel,
                   near);
    else
        diag_error(j->d, SPAN_NONE, "'%s' has no kernel '%s'; it has %s", where, j->kernel,
                   buf_text(&list));
    return NULL;
}

static const struct contract *find_contract(struct job *j)
{
    const struct source *text;
    if (j->made.entry) {
        struct run_arg *value;
        size_t n;
        struct contract *c = made_contract(j->a, &j->made, &value, &n, j->d);
        for (size_t i = 0; c && i < n; i++)
            *VEC_PUSH(j->a, &j->args) = value[i];
        return c;
    }
    if (j->launch) {
        text = io_read(j->a, j->d, j->launch, IO_TEXT_LIMIT);
        if (text && text->len >= 3 && memcmp(text->text, "//@", 3) == 0)
            text = contract_lines(j, text);
    } else {
        text = contract_lines(j, j->ptx);
        if (text->len == 0) {
            diag_error(j->d, SPAN_NONE,
                       "'%s' has no launch contract; say how to launch it with --entry or --launch",
                       j->ptx->name);
            if (j->module)
                made_explain(j->module, j->d);
            return NULL;
        }
    }
    struct contract_file *file = text ? contract_read(j->a, text, j->d) : NULL;
    return file ? pick_kernel(j, file, text->name) : NULL;
}

/* ---- results ---- */

/* What the kernel printed: before anything else, and also when it failed. */
static void print_messages(const struct run *r, FILE *f)
{
    struct buf text = buf_in(r->arena);
    run_print_messages(r, &text);
    fwrite(buf_text(&text), 1, text.len, f);
}

static void print_outputs(const struct run *r, FILE *f)
{
    size_t width = 0;
    for (size_t i = 0; i < r->nparam; i++)
        if (run_is_output(&r->param[i]) && !r->param[i].destination && !r->param[i].unnamed &&
            strlen(r->param[i].sym->name) > width)
            width = strlen(r->param[i].sym->name);
    for (size_t i = 0; i < r->nparam; i++) {
        const struct run_param *p = &r->param[i];
        struct buf text = buf_in(r->arena);
        if (!run_is_output(p) || p->destination || p->unnamed)
            continue;
        buffer_print_summary(&p->result, &text);
        fprintf(f, "%-*s  %s\n", (int)width, p->sym->name, buf_text(&text));
    }
}

/* A quantity with a unit that leaves one to three digits before the point. */
static const char *scaled(struct job *j, double v, const char *const units[], double first)
{
    int k = 0;
    v /= first;
    for (; units[k + 1] && v >= 999.5; k++)
        v /= 1000;
    return arena_printf(j->a, "%.3g %s", v, units[k]);
}

static const char *seconds_text(struct job *j, double s)
{
    static const char *const units[] = {"ns", "us", "ms", "s", NULL};
    return scaled(j, s, units, 1e-9);
}

static const char *rate_text(struct job *j, double r)
{
    static const char *const units[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", NULL};
    return scaled(j, r, units, 1);
}

static void print_timing(struct job *j, const struct run_timing *t, FILE *f)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", NULL};
    fprintf(f, "time  median %s  min %s  max %s  of %u", seconds_text(j, t->median),
            seconds_text(j, t->min), seconds_text(j, t->max), t->n);
    if (t->per_sample > 1)
        fprintf(f, " x %u", t->per_sample);
    fputc('\n', f);
    if (t->thread_instructions && t->median > 0)
        fprintf(f, "speed  %.3g thread-instructions/s  (%" PRIu64 " executed)\n",
                (double)t->thread_instructions / t->median, t->thread_instructions);
    if (t->copy_median <= 0 || t->median <= 0)
        return;
    double rate = (double)t->bytes / t->median, copy = (double)t->bytes / t->copy_median;
    fprintf(f, "bytes  %s  %s  copy %s  ratio %.3f\n", scaled(j, (double)t->bytes, units, 1),
            rate_text(j, rate), rate_text(j, copy), rate / copy);
}

static void print_profile(const struct run *r, FILE *f)
{
    struct buf text = buf_in(r->arena);
    run_print_profile(r, &text);
    fwrite(buf_text(&text), 1, text.len, f);
}

static int print_plan(struct job *j, struct run *r)
{
    struct buf text = buf_in(j->a);
    if (!run_print_plan(r, j->module, &text))
        return CLI_BAD_INPUT;
    fwrite(buf_text(&text), 1, text.len, stdout);
    return CLI_OK;
}

static int exit_status(const struct job *j, enum device_status s)
{
    switch (s) {
    case DEVICE_OK: return CLI_OK;
    case DEVICE_REFUSED: return CLI_BAD_INPUT;
    case DEVICE_FAULT: return j->check ? CLI_CHECK_FAILED : CLI_DEVICE_FAILED;
    case DEVICE_FAILED: return CLI_DEVICE_FAILED;
    case DEVICE_ABSENT: return CLI_NO_DEVICE;
    }
    return CLI_DEVICE_FAILED;
}

/* ---- the work ---- */

static void show_progress(void *ctx, uint64_t done, uint64_t blocks)
{
    struct progress *p = ctx;
    p->total = blocks;
    progress_step(p, done);
}

/* What printf() of a kernel said; of timed launches nothing more. */
static void show_print(void *ctx, const char *text, size_t n)
{
    struct job *j = ctx;
    progress_clear(&j->progress);
    if (j->talk)
        fwrite(text, 1, n, j->talk);
}

/* What a launch of a program said with print(). */
static void show_said(void *ctx, const char *text, size_t n)
{
    struct job *j = ctx;
    show_print(j, text, n);
    if (j->talk)
        fflush(j->talk);
}

static volatile sig_atomic_t interrupted;

/* A launch that a signal stops says where its threads stand; all else is ended at once. */
static enum device_status execute_interruptibly(struct job *j, struct run *r, struct device *dev)
{
    cli_catch_signals(&j->cli, &interrupted);
    enum device_status status =
        run_execute(r, j->module, j->device.ops, dev, &j->run_options, NULL);
    if (status == DEVICE_OK)
        cli_catch_signals(&j->cli, NULL);
    return status;
}

/* On an open device: load, launch, write, print, time. */
static int execute(struct job *j, struct run *r, struct device *dev)
{
    const struct device_ops *ops = j->device.ops;
    FILE *talk = run_uses_stdout(r) ? stderr : stdout;
    j->talk = talk;
    enum device_status status = ops->load(dev, j->ptx, j->d);
    if (status == DEVICE_REFUSED && ops == &cuda_device && j->module)
        diag_note(j->d, SPAN_NONE, "the simulator may run it: -d cpu");
    if (status != DEVICE_OK)
        return exit_status(j, status);
    if (!run_open_outputs(r))
        return CLI_BAD_INPUT;
    progress_begin(&j->progress, arena_printf(j->a, "simulating %s, block", r->contract->kernel), 0,
                   j->quiet);
    status = execute_interruptibly(j, r, dev);
    progress_clear(&j->progress);
    j->progress.enabled = false; /* not while time is taken */
    j->talk = NULL;
    print_messages(r, talk);
    if (status != DEVICE_OK) {
        run_discard_outputs(r);
        return exit_status(j, status);
    }
    if (!run_write_outputs(r))
        return CLI_BAD_INPUT;
    print_outputs(r, talk);
    if (j->profile)
        print_profile(r, talk);
    if (j->time) {
        struct run_timing t;
        unsigned n = j->rounds ? j->rounds : ops == &sim_device ? 3 : 20;
        status = run_time(r, ops, dev, n, &t);
        if (status == DEVICE_OK)
            print_timing(j, &t, talk);
    }
    return exit_status(j, status);
}

static bool read_suppressions(struct job *j)
{
    bool good = true;
    for (size_t i = 0; i < j->suppression_files.n; i++) {
        const struct source *s = io_read(j->a, j->d, j->suppression_files.v[i], IO_TEXT_LIMIT);
        good = s && suppress_read(j->a, &j->suppressions, s, device_finding_kind, j->d) && good;
    }
    j->device_options.suppressions = &j->suppressions;
    return good;
}

/* Suppressions that were not needed, though they are for what was launched. */
static void report_unused(struct job *j, const struct run *r)
{
    suppress_unused(&j->suppressions, run_entries(r), j->d);
}

/* A suppression for each finding, once. */
static void print_suppressions(struct job *j)
{
    struct buf all = buf_in(j->a);
    for (size_t i = 0; i < j->d->list.n; i++) {
        const struct finding *f = j->d->list.v[i].finding;
        struct buf one = buf_in(j->a);
        if (!f || strcmp(f->check, "fault") == 0)
            continue;
        suppress_write(f, &one);
        if (!strstr(buf_text(&all), buf_text(&one)))
            buf_puts(&all, buf_text(&one));
    }
    fputs(buf_text(&all), stdout);
}

/* On stderr, as text or as JSON. */
static void report(struct job *j)
{
    struct buf text = buf_in(j->a);
    if (!j->json) {
        cli_report(&j->cli, j->d);
        return;
    }
    diags_json(j->d, &text);
    fflush(stdout);
    fputs(buf_text(&text), stderr);
}

static int work(struct job *j)
{
    const char *why;
    struct device *dev = NULL;
    device_settle(j->a, &j->device, &why);
    if (!read_suppressions(j) || !read_ptx(j))
        return CLI_BAD_INPUT;
    const struct contract *c = find_contract(j);
    if (!c)
        return CLI_BAD_INPUT;
    struct run *r = run_new(j->a, c, j->d);
    r->memory.simulated = j->device.ops == &sim_device;
    r->memory.overcommit = j->device_options.overcommit;
    bool stdin_taken = !j->path || strcmp(j->path, "-") == 0;
    if (!run_bind_args(r, j->args.v, j->args.n, stdin_taken) || !run_check(r, j->module))
        return CLI_BAD_INPUT;
    if (j->plan)
        return print_plan(j, r);
    if (j->profile && !c->is_program) {
        diag_error(j->d, SPAN_NONE, "'%s' is a kernel, and a profile is of programs", c->kernel);
        return CLI_BAD_INPUT;
    }
    if (why && !j->quiet)
        cli_note(&j->cli, "%s; running on the simulator", why);
    enum device_status status =
        j->device.ops->open(j->a, j->device.ordinal, &j->device_options, &dev, j->d);
    if (status != DEVICE_OK)
        return exit_status(j, status);
    int result = execute(j, r, dev);
    if (result == CLI_OK)
        result = exit_status(j, j->device.ops->finish(dev, j->d));
    j->device.ops->close(dev);
    if (j->check && !j->quiet && (result == CLI_OK || result == CLI_CHECK_FAILED))
        report_unused(j, r);
    if (j->print_suppressions)
        print_suppressions(j);
    return result;
}

static void print_device(struct job *j, const struct device_ops *ops, int k)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", NULL};
    struct device *dev = NULL;
    struct device_info info;
    if (ops->open(j->a, k, &j->device_options, &dev, j->d) != DEVICE_OK)
        return;
    ops->info(dev, &info);
    ops->close(dev);
    if (ops == &sim_device)
        printf("cpu     %s\n", info.name);
    else
        printf("cuda:%d  %s  sm_%u  %s  CUDA %u.%u\n", k, info.name, info.sm,
               scaled(j, (double)info.memory, units, 1), info.driver_version / 1000,
               info.driver_version % 1000 / 10);
}

static int list_devices(struct job *j)
{
    int n = cuda_device.count(j->d);
    for (int k = 0; k < n; k++)
        print_device(j, &cuda_device, k);
    print_device(j, &sim_device, 0);
    return j->d->nerror ? CLI_DEVICE_FAILED : CLI_OK;
}

static int list_tensors(struct job *j)
{
    struct buf text = buf_in(j->a);
    if (!load_list(j->a, j->tensors, &text, j->d))
        return CLI_BAD_INPUT;
    fputs(buf_text(&text), stdout);
    return CLI_OK;
}

int main(int argc, char **argv)
{
    struct job job = {0}, *j = &job;
    read_options(j, argc, argv);
    _Static_assert(sizeof(sig_atomic_t) == sizeof(int), "a device watches an int");
    j->device_options.interrupted = &interrupted;
    j->device_options.progress = show_progress;
    j->device_options.progress_ctx = &j->progress;
    j->run_options.interrupted = &interrupted;
    j->run_options.say = show_said;
    j->run_options.say_ctx = j;
    j->device_options.print = show_print;
    j->device_options.print_ctx = j;
    int status = j->list ? list_devices(j) : j->tensors ? list_tensors(j) : work(j);
    if (j->d->list.n)
        report(j);
    status = cli_finish(&j->cli, status);
    arena_free(j->a);
    return status;
}
