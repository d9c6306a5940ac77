/* kaio-run: PTX and buffers -> buffers. Options and printing; the work is lib/run's. */
#include <config.h>

#include "job.h"

#include "base/io.h"
#include "data/load.h"

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
    OPT_LINES,
    OPT_WEIGHTS,
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
    TEXT(OPT_WEIGHTS, "weights", "FILE",
         "take inputs that are not given from the tensors of the same\nnames in FILE, .safetensors "
         "or an index of them, .json\n(may be repeated)",
         NULL),
    {.heading = "Launch"},
    TEXT('D', "define", "DIM=N", "give a dimension its value; the same as DIM=N", ""),
    TEXT(OPT_KERNEL, "kernel", "NAME", "which kernel or program, when the PTX holds several", ""),
    TEXT(OPT_LAUNCH, "launch", "FILE", "read the launch contract from FILE", NULL),
    TEXT(OPT_LINES, "lines", NULL,
         "run for each line of standard input, of NAME=VALUE words,\nand answer each with a line",
         NULL),
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
        "    --arg 'out f32[1024]=y.npy' --arg u32=1024\n"
        "  kaio-run --lines model.ptx w=weights.npy <requests >answers\n",
};

/* ---- options ---- */

static void add_define(struct job *j)
{
    const char *s = j->cli.arg;
    struct run_arg arg;
    enum dtype type;
    if (!run_arg_split(j->a, s, &arg))
        cli_usage_error(&j->cli, "-D takes DIM=N, as in -D n=1024, not '%s'", s);
    if (dtype_parse(arg.value, strlen(arg.value), &type))
        cli_usage_error(&j->cli, "types are chosen at emission: kaio-emit -D %s", s);
    arg.dim_only = true;
    *VEC_PUSH(j->a, &j->args) = arg;
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
        const char *s = j->cli.argv[i];
        struct run_arg arg;
        if (run_arg_split(j->a, s, &arg))
            *VEC_PUSH(j->a, &j->args) = arg;
        else if (!j->from.path)
            j->from.path = s;
        else
            cli_usage_error(&j->cli, "'%s' is not NAME=VALUE, and the PTX is '%s' already", s,
                            j->from.path);
    }
}

/* Standard input has the lines, and standard output the answers. */
static void check_lines(struct job *j)
{
    if (!j->from.path || io_is_stdin(j->from.path))
        cli_usage_error(&j->cli,
                        "--lines reads lines from standard input, so the PTX can't come from "
                        "there: name its file, as in kaio-run --lines saxpy.ptx");
    if (j->from.launch && io_is_stdin(j->from.launch))
        cli_usage_error(&j->cli, "--lines reads lines from standard input, so --launch can't: name "
                                 "a file");
    for (size_t i = 0; i < j->suppression_files.n; i++)
        if (io_is_stdin(j->suppression_files.v[i]))
            cli_usage_error(&j->cli, "--lines reads lines from standard input, so --suppressions "
                                     "can't: name a file");
    if (j->time)
        cli_usage_error(&j->cli, "--lines runs each line once: leave --time out, or --lines");
    if (j->print_suppressions)
        cli_usage_error(&j->cli, "with --lines standard output has the answers: leave "
                                 "--print-suppressions out, or --lines");
}

/* Options that exclude or need each other. */
static void check_options(struct job *j)
{
    const struct made_options *m = &j->from.made;
    bool any = m->grid || m->block || m->cluster || m->shared || m->narg;
    if (any && !m->entry)
        cli_usage_error(&j->cli, "--grid, --block, --cluster, --shared and --arg need --entry");
    if (m->entry && (!m->grid || !m->block))
        cli_usage_error(&j->cli, "--entry needs --grid and --block");
    if (m->entry && (j->from.launch || j->kernel))
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
    if (j->list || j->tensors)
        return;
    if (j->lines)
        check_lines(j);
    if (!j->from.path && isatty(STDIN_FILENO))
        cli_usage_error(&j->cli, "no PTX: name a file, or pipe kaio-emit's output in");
    if (!j->from.path)
        j->from.path = "-";
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
        case OPT_LINES: j->lines = true; break;
        case OPT_WEIGHTS: *VEC_PUSH(j->a, &j->weight_files) = j->cli.arg; break;
        case OPT_LIST_DEVICES: j->list = true; break;
        case OPT_LIST_TENSORS: j->tensors = j->cli.arg; break;
        case OPT_KERNEL: j->kernel = j->cli.arg; break;
        case OPT_PLAN: j->plan = true; break;
        case OPT_PROFILE: j->profile = true; break;
        case OPT_MAX_ITERATIONS:
            j->run_options.max_iterations = (uint64_t)cli_int(&j->cli, 0, INT64_MAX);
            break;
        case OPT_LAUNCH: j->from.launch = j->cli.arg; break;
        case OPT_ENTRY: j->from.made.entry = j->cli.arg; break;
        case OPT_GRID: j->from.made.grid = j->cli.arg; break;
        case OPT_BLOCK: j->from.made.block = j->cli.arg; break;
        case OPT_CLUSTER: j->from.made.cluster = j->cli.arg; break;
        case OPT_SHARED: j->from.made.shared = j->cli.arg; break;
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
    j->from.made.arg = j->decls.v;
    j->from.made.narg = j->decls.n;
    take_operands(j);
    check_options(j);
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
               print_scaled(j->a, (double)info.memory, units, 1), info.driver_version / 1000,
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

/* What the command line's run has computed, and how long it takes. */
static int show(struct job *j, struct request *q)
{
    struct run_timing t;
    const unsigned n = j->rounds ? j->rounds : j->device.ops == &sim_device ? 3 : 20;
    print_outputs(q->run, q->talk);
    if (j->profile)
        print_profile(q->run, q->talk);
    if (!j->time)
        return CLI_OK;
    const enum device_status status = run_time(q->run, j->device.ops, j->dev, n, &t);
    if (status == DEVICE_OK)
        print_timing(j->a, &t, q->talk);
    return job_status(j, status);
}

/* One run, with the arguments of the command line. */
static int work(struct job *j)
{
    const char *why;
    struct request q = {.a = j->a,
                        .d = j->d,
                        .kernel = j->kernel,
                        .stdin_user = strcmp(j->from.path, "-") == 0 ? "the PTX" : NULL};
    int status = job_prepare(j, &why);
    q.arg = j->args.v;
    q.narg = j->args.n;
    if (status == CLI_OK)
        status = request_bind(j, &q);
    if (status != CLI_OK)
        return status;
    if (j->plan)
        return print_plan(q.run, j->program.module) ? CLI_OK : CLI_BAD_INPUT;
    if (j->profile && !q.run->contract->is_program) {
        diag_error(j->d, SPAN_NONE, "'%s' is a kernel, and a profile is of programs",
                   q.run->contract->kernel);
        return CLI_BAD_INPUT;
    }
    if (why && !j->quiet)
        cli_note(&j->cli, "%s; running on the simulator", why);
    q.talk = run_uses_stdout(q.run) ? stderr : stdout;
    status = job_open(j, j->d);
    if (status == CLI_OK)
        status = request_execute(j, &q);
    if (status == CLI_OK)
        status = show(j, &q);
    if (status == CLI_OK)
        status = job_status(j, j->device.ops->finish(j->dev, j->d));
    job_close(j);
    if (j->check && !j->quiet && (status == CLI_OK || status == CLI_CHECK_FAILED))
        job_report_unused(j, &q.run->contract, 1);
    if (j->print_suppressions)
        print_suppressions(j->d);
    return status;
}

int main(int argc, char **argv)
{
    static volatile sig_atomic_t interrupted; /* a handler gets no argument */
    struct job job = {.stop = &interrupted, .answers = -1}, *j = &job;
    read_options(j, argc, argv);
    job_watch(j);
    int status = j->list      ? list_devices(j)
                 : j->tensors ? list_tensors(j)
                 : j->lines   ? lines_run(j)
                              : work(j);
    if (j->d->list.n)
        print_diags(j, j->d, program.name);
    status = cli_finish(&j->cli, status);
    arena_free(j->a);
    return status;
}
