#include <config.h>

#include "verify.h"

#include "base/num.h"
#include "run/choose.h"
#include "run/run.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPT_GOLDEN = CLI_LONG,
    OPT_RUN,
    OPT_ALL,
    OPT_STEPS,
    OPT_REPEAT,
    OPT_FILL,
    OPT_SHAPES,
    OPT_TYPES,
    OPT_CODE,
    OPT_LIST,
    OPT_FAIL_FAST,
    OPT_SEED,
    OPT_SAMPLE,
    OPT_RTOL,
    OPT_ATOL,
    OPT_ULP,
    OPT_DEPTH,
    OPT_TRUNCATION,
    OPT_PRODUCTS,
    OPT_WEIGHTS,
    OPT_FORMAT,
    OPT_PTX,
    OPT_KERNEL,
    OPT_THREADS,
    OPT_MAX_INSTRUCTIONS,
    OPT_MESSAGES,
    OPT_CHECK,
    OPT_CHECK_SEED,
    OPT_SUPPRESSIONS,
};

static const char *const formats[] = {"text", "tap", "json", "junit", NULL};

const char *const code_names[] = {"both", "generic", "fixed", NULL};

static const struct cli_option option_list[] = {
    {.heading = "What is checked (default: the outputs given as NAME=FILE)"},
    {OPT_RUN, "run", NULL, "emit, run and check the cases of each SPEC", NULL, NULL},
    {OPT_GOLDEN, "golden", NULL, "compare two files, every bit unless a tolerance is given", NULL,
     NULL},
    {OPT_KERNEL, "kernel", "NAME", "of a file with several kernels, this one", NULL, NULL},
    {'D', "define", "NAME=VALUE", "fix a dimension at emission, or choose a type (T=f32)", NULL,
     NULL},
    {'I', "include", "DIR",
     "look in DIR for the kernels that programs use (may be repeated;\n"
     "then $KAIO_PATH and the installed specs)",
     "/", NULL},
    {OPT_SAMPLE, "sample", "N",
     "check only N elements of each output, chosen at random\n(0: all, where it would be a sample)",
     NULL, NULL},
    {.heading = "Running"},
    {'d', "device", "DEVICE", "auto, cpu or cuda[:N] (default auto)", "auto cpu cuda", NULL},
    {'t', "target", "TARGET", "emit for TARGET (default sm_80)",
     "sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100", NULL},
    {OPT_SHAPES, "shapes", "N[:SEED]",
     "instead of the cases, N random shapes of each kernel,\nwith all types and fills", NULL, NULL},
    {OPT_CODE, "code", "KIND",
     "run code for all sizes, code with the sizes fixed in it,\nor both (default): generic, fixed, "
     "both",
     "both generic fixed", NULL},
    {OPT_TYPES, "types", "LIST", "run with all types of the spec, or with these: T=f16,f32", "all",
     NULL},
    {OPT_FILL, "fill", "LIST",
     "fill inputs with exact, normal, uniform, edge or extreme\nvalues, with several of these, or "
     "with all",
     "exact normal uniform edge extreme all", NULL},
    {OPT_SEED, "seed", "N", "of the random inputs (default 1)", NULL, NULL},
    {OPT_REPEAT, "repeat", "[N]",
     "run N times more (default 1): the results must have the same bits", NULL, NULL},
    {OPT_STEPS, "steps", NULL,
     "judge each value that the kernel stores for later by those\nthat it was made from (default: "
     "where the bound of the\nwhole chain says nothing)",
     NULL, NULL},
    {OPT_CHECK, "check", "[LIST]",
     "run on the simulator; wrong accesses fail, too. LIST: of\nmemory,init,race,sync,async "
     "(default all "
     "of them)",
     "memory init race sync async all", NULL},
    {OPT_SUPPRESSIONS, "suppressions", "FILE", "leave out the findings that FILE names", NULL,
     NULL},
    {OPT_CHECK_SEED, "check-seed", "N",
     "draw from N when asynchronous copies arrive on the simulator\n(default 0: as late as they "
     "may)",
     NULL, NULL},
    {OPT_ALL, "all", NULL, "large cases too, and each call of a program's steps", NULL, NULL},
    {OPT_LIST, "list", NULL, "run nothing, list the cases", NULL, NULL},
    {OPT_FAIL_FAST, "fail-fast", NULL, "stop at the first row that is not a pass", NULL, NULL},
    {OPT_PTX, "ptx", "FILE", "run the PTX in FILE instead of emitting", NULL, NULL},
    {OPT_MESSAGES, "messages", "BYTES", "room for what a launch prints (default 1Mi)", NULL, NULL},
    {OPT_MAX_INSTRUCTIONS, "max-instructions", "N",
     "stop a simulated launch after N thread-instructions\n(default 1e12; 0: never)", NULL, NULL},
    {.heading = "The bound"},
    {OPT_DEPTH, "depth", "N",
     "no term of a sum goes through more than N roundings\n(default: what the kernel says; 0: any "
     "order)",
     NULL, NULL},
    {OPT_TRUNCATION, "truncation", "N", "sums by tensor cores lose N units of 2^-24 more", NULL,
     NULL},
    {OPT_PRODUCTS, "products", "N", "and their products N units each", NULL, NULL},
    {OPT_WEIGHTS, "weights", "N", "and weights of f32 beside f16 what is below 2^-N", NULL, NULL},
    {.heading = "Tolerance (instead of the analysed bound)"},
    {OPT_RTOL, "rtol", "X", "accept an error of X times the value", NULL, NULL},
    {OPT_ATOL, "atol", "X", "accept an error of X", NULL, NULL},
    {OPT_ULP, "ulp", "X", "accept an error of X units in the last place", NULL, NULL},
    {.heading = "Output"},
    {OPT_FORMAT, "format", "FORMAT", "text, tap, json or junit (default text)",
     "text tap json junit", NULL},
    {OPT_THREADS, "threads", "N", "use N threads (default: one per core)", NULL, NULL},
    {0},
};

static const struct cli_program program = {
    "kaio-verify",
    "[OPTION]... SPEC NAME=VALUE...\n--run [OPTION]... SPEC... [CASE|NAME=VALUE]...\n--golden "
    "[OPTION]... WANT GOT",
    "Check a kernel's results against its spec's own mathematics.",
    option_list,
    "Examples:\n"
    "  kaio-verify saxpy.yaml x=x.npy y=before.npy:after.npy alpha=2.5\n"
    "  kaio-verify --run specs/elementwise/*.yaml\n"
    "  kaio-verify --run -d cpu saxpy.yaml n=1003 alpha=2.5\n"
    "  kaio-verify --golden want.npy got.npy --ulp=1\n",
    NULL,
};

static void define(struct cli *cli, struct options *opt)
{
    const size_t most = sizeof opt->define / sizeof *opt->define;
    const char *wrong = opt->ndefine == most
                            ? "given too often"
                            : spec_parse_define(opt->arena, cli->arg, &opt->define[opt->ndefine++]);
    if (wrong)
        cli_usage_error(cli, "--%s: %s", cli->shown, wrong);
    for (size_t i = 0; i + 1 < opt->ndefine; i++)
        if (strcmp(opt->define[i].name, opt->define[opt->ndefine - 1].name) == 0)
            cli_usage_error(cli, "'%s' is given twice", opt->define[i].name);
}

static void include(struct cli *cli, struct options *opt)
{
    if (opt->ninclude == sizeof opt->include / sizeof *opt->include)
        cli_usage_error(cli, "--%s: given too often", cli->shown);
    opt->include[opt->ninclude++] = cli->arg;
}

/* "exact,edge" or "all". */
static void fill(struct cli *cli, struct options *o)
{
    unsigned fills = 0;
    for (const char *s = cli->arg;; s++) {
        size_t n = strcspn(s, ",");
        int k = 0;
        while (k < FILL_KINDS && (strlen(fill_names[k]) != n || memcmp(fill_names[k], s, n) != 0))
            k++;
        if (n == 3 && memcmp(s, "all", 3) == 0)
            fills = (1u << FILL_KINDS) - 1;
        else if (k < FILL_KINDS)
            fills |= 1u << k;
        else
            cli_usage_error(cli, "--%s: '%.*s' is not exact, normal, uniform, edge, extreme or all",
                            cli->shown, (int)n, s);
        s += n;
        if (!*s)
            break;
    }
    o->fills = fills;
}

/* "8" or "8:1234" */
static void shapes(struct cli *cli, struct options *o)
{
    size_t n = strcspn(cli->arg, ":");
    const char *seed = cli->arg + n + (cli->arg[n] == ':');
    o->shapes_seed = 1;
    if (num_uint(cli->arg, n, 1000000, &o->shapes) != NUM_OK || o->shapes == 0 ||
        (cli->arg[n] && num_uint(seed, strlen(seed), INT64_MAX, &o->shapes_seed) != NUM_OK))
        cli_usage_error(cli,
                        "--%s wants a number from 1 to 1000000, or with a seed N:SEED, not '%s'",
                        cli->shown, cli->arg);
}

/* "all", "T=all" or "T=f16,bf16" */
static void types(struct cli *cli, struct options *o)
{
    const size_t most = sizeof o->type / sizeof *o->type;
    struct type_choice *c = &o->type[o->ntype];
    const char *eq = strchr(cli->arg, '='), *s = eq ? eq + 1 : cli->arg;
    if (o->ntype == most)
        cli_usage_error(cli, "--%s: given too often", cli->shown);
    o->ntype++;
    if (eq == cli->arg || (!eq && strcmp(s, "all") != 0))
        cli_usage_error(cli, "--%s wants all, or NAME=TYPE,... as in T=f16,f32, not '%s'",
                        cli->shown, cli->arg);
    *c = (struct type_choice){0};
    if (eq)
        c->name = arena_strndup(o->arena, cli->arg, (size_t)(eq - cli->arg));
    while (strcmp(s, "all") != 0) {
        size_t n = strcspn(s, ",");
        if (c->n == sizeof c->v / sizeof *c->v || !dtype_parse(s, n, &c->v[c->n]))
            cli_usage_error(cli, "--%s: '%.*s' is not a type", cli->shown, (int)n, s);
        c->n++;
        s += n;
        if (!*s++)
            break;
    }
}

static void tolerance(struct cli *cli, double *to, struct options *opt)
{
    *to = cli_double(cli, 0, 1e300);
    opt->tolerance.given = true;
}

static void check(struct cli *cli, struct options *opt)
{
    const char *bad;
    size_t len;
    opt->check_words = cli->arg ? cli->arg : "all";
    if (!device_parse_check(opt->check_words, &opt->check, &bad, &len))
        cli_usage_error(cli, "--%s: '%.*s' is not memory, init, race, sync, async or all",
                        cli->shown, (int)len, bad);
}

static void take_option(struct cli *cli, int id, struct options *o)
{
    switch (id) {
    case OPT_RUN: o->run = true; break;
    case OPT_GOLDEN: o->golden = true; break;
    case OPT_KERNEL: o->kernel = cli->arg; break;
    case 'D': define(cli, o); break;
    case 'I': include(cli, o); break;
    case OPT_SAMPLE:
        o->sample = (uint64_t)cli_int(cli, 0, INT64_MAX);
        o->every = !o->sample;
        break;
    case 'd': o->device = cli->arg; break;
    case 't': o->target = cli->arg; break;
    case OPT_FILL: fill(cli, o); break;
    case OPT_SHAPES: shapes(cli, o); break;
    case OPT_TYPES: types(cli, o); break;
    case OPT_CODE: o->code = (enum code)cli_choice(cli, code_names); break;
    case OPT_LIST: o->list = true; break;
    case OPT_FAIL_FAST: o->fail_fast = true; break;
    case OPT_SEED: o->seed = (uint64_t)cli_int(cli, 0, INT64_MAX); break;
    case OPT_REPEAT: o->repeat = cli->arg ? (uint64_t)cli_int(cli, 1, 1000000) : 1; break;
    case OPT_ALL: o->all = true; break;
    case OPT_STEPS: o->steps = true; break;
    case OPT_CHECK: check(cli, o); break;
    case OPT_SUPPRESSIONS: o->suppressions = cli->arg; break;
    case OPT_CHECK_SEED: o->check_seed = (uint64_t)cli_int(cli, 0, INT64_MAX); break;
    case OPT_PTX: o->ptx = cli->arg; break;
    case OPT_MESSAGES: o->message_bytes = (uint64_t)cli_int(cli, 64, RUN_MESSAGE_BYTES_MOST); break;
    case OPT_MAX_INSTRUCTIONS:
        o->max_instructions = (uint64_t)cli_int(cli, 0, INT64_MAX);
        if (!o->max_instructions)
            o->max_instructions = UINT64_MAX;
        break;
    case OPT_RTOL: tolerance(cli, &o->tolerance.rtol, o); break;
    case OPT_ATOL: tolerance(cli, &o->tolerance.atol, o); break;
    case OPT_ULP: tolerance(cli, &o->tolerance.ulp, o); break;
    case OPT_DEPTH: o->sums.depth = (uint64_t)cli_int(cli, 0, INT64_MAX); break;
    case OPT_TRUNCATION: o->sums.truncation = (uint64_t)cli_int(cli, 0, INT64_MAX); break;
    case OPT_PRODUCTS: o->sums.products = (uint64_t)cli_int(cli, 0, INT64_MAX); break;
    case OPT_WEIGHTS: o->sums.weights = (uint64_t)cli_int(cli, 0, 1000); break;
    case OPT_FORMAT: o->format = (enum format)cli_choice(cli, formats); break;
    case OPT_THREADS: o->threads = (unsigned)cli_int(cli, 0, 1024); break;
    default: break;
    }
}

static volatile sig_atomic_t interrupted;

int main(int argc, char **argv)
{
    struct cli cli;
    struct options opt = {.sums = {RUN_NOT_GIVEN, RUN_NOT_GIVEN, RUN_NOT_GIVEN, RUN_NOT_GIVEN},
                          .seed = 1,
                          .message_bytes = RUN_MESSAGE_BYTES,
                          .tolerance = {.ulp = -1},
                          .interrupted = &interrupted};
    cli_begin(&cli, &program, argc, argv);
    opt.arena = arena_new();
    for (int id; (id = cli_next(&cli)) != CLI_END;)
        take_option(&cli, id, &opt);
    if (opt.run && opt.golden)
        cli_usage_error(&cli, "--run and --golden exclude each other");
    if (!opt.run && (opt.device || opt.target || opt.fills || opt.repeat || opt.all || opt.ptx ||
                     opt.check || opt.suppressions || opt.check_seed || opt.shapes || opt.ntype ||
                     opt.code || opt.fail_fast || opt.list || opt.steps || opt.ninclude))
        cli_usage_error(&cli, "--device, --target, --fill, --shapes, --types, --code, --repeat, "
                              "--steps, --check, --suppressions, --check-seed, --all, --list, "
                              "--fail-fast, --ptx and -I need --run");
    bool sums = opt.sums.depth != RUN_NOT_GIVEN || opt.sums.truncation != RUN_NOT_GIVEN ||
                opt.sums.products != RUN_NOT_GIVEN || opt.sums.weights != RUN_NOT_GIVEN;
    if (opt.suppressions && !opt.check)
        cli_usage_error(&cli, "--suppressions needs --check");
    if (opt.golden && (opt.kernel || opt.ndefine || opt.sample || sums))
        cli_usage_error(&cli, "--kernel, --define, --sample, --depth, --truncation, --products and "
                              "--weights don't go with --golden");
    if (opt.ptx && opt.ntype)
        cli_usage_error(&cli, "--types emits a kernel for each, and --ptx gives one");
    if (opt.ptx && opt.code)
        cli_usage_error(&cli, "--code says what is emitted, and --ptx gives it");
    if (opt.list && opt.format != FORMAT_TEXT && opt.format != FORMAT_JSON)
        cli_usage_error(&cli, "--list writes text or json");
    if (!opt.golden) /* whose two files have nothing to say until they are compared */
        cli_catch_signals(&cli, &interrupted);
    int status = opt.golden ? verify_golden(&cli, &opt)
                 : opt.run  ? verify_run(&cli, &opt)
                            : verify_files(&cli, &opt);
    arena_free(opt.arena);
    return cli_finish(&cli, status);
}
