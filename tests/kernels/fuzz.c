/* Random kernels, executed on a device and by the evaluator of this directory, which must agree
 * byte for byte.
 *
 *     fuzz                                      some hundred kernels on the simulator, and those of
 *                                               found/, as a TAP test
 *     fuzz --seed=7 --count=100000 --keep=DIR   more; what fails is reduced and kept in DIR
 *     fuzz --device=cuda --count=10000          on a GPU: each job opens it once and loads modules
 *                                               of many kernels
 *     fuzz --seed=7 --show=123                  the text of kernel 123
 *     fuzz --device=cuda --spec=FILE            one spec from a file
 *
 * Kernels are made and run in worker processes, so that a crash is one more way to fail. Exit
 * status: 0 all the same, 1 some not, 2 usage, 77 no such device.
 */
#include <config.h>

#include "base/cli.h"
#include "base/io.h"
#include "kernels/coverage.h"
#include "kernels/generate.h"
#include "kernels/mutate.h"
#include "kernels/reduce.h"
#include "kernels/trial.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OPT_SEED = CLI_LONG,
    OPT_COUNT,
    OPT_START,
    OPT_DEVICE,
    OPT_BATCH,
    OPT_JOBS,
    OPT_KEEP,
    OPT_EMIT,
    OPT_SHOW,
    OPT_SPEC,
    OPT_COVERAGE,
    OPT_REDUCE,
    OPT_MUTATE,
};
static const struct cli_option options[] = {
    {OPT_SEED, "seed", "S", "the sequence of kernels (default 1)", ""},
    {OPT_COUNT, "count", "N", "how many (default 300)", ""},
    {OPT_START, "start", "N", "the first one's number (default 0)", ""},
    {OPT_DEVICE, "device", "DEVICE", "cpu (default) or cuda", "cpu cuda"},
    {'t', "target", "TARGET", "compile for TARGET (default sm_80)", ""},
    {OPT_BATCH, "batch", "N", "kernels in a module (default 50)", ""},
    {OPT_JOBS, "jobs", "N", "worker processes (default: one for each core, 16 at most)", ""},
    {OPT_KEEP, "keep", "DIR", "write what fails to DIR, reduced too"},
    {OPT_EMIT, "emit", "DIR",
     "write every kernel to DIR, with its inputs and what they should become"},
    {OPT_SHOW, "show", "N", "print kernel N and end", ""},
    {OPT_SPEC, "spec", "FILE", "try the spec in FILE and end; --seed is that of its inputs"},
    {OPT_REDUCE, "reduce", "N", "tests to spend on reducing a kernel (default 2000)", ""},
    {OPT_MUTATE, "mutate", NULL,
     "damage the kernels, and only compile them: they may be refused,\nbut nothing may crash"},
    {OPT_COVERAGE, "coverage", NULL, "say how often each word of the language occurred"},
    {0},
};
static const struct cli_program program = {
    .name = "fuzz",
    .usage = "[OPTION]...",
    .purpose = "Run random kernels and compare them with an evaluator of the language.",
    .options = options,
};

enum { FAILURES_MOST = 1000, JOBS_MOST = 64, VERDICTS = CRASHED + 1, SHOWN_MOST = 20 };

/* What the workers share with the process that watches them. */
struct shared {
    uint64_t verdict[VERDICTS];
    uint32_t nfailure;
    struct {
        uint64_t number;
        enum verdict verdict;
    } failure[FAILURES_MOST];
    uint64_t at[JOBS_MOST];   /* the kernel that a worker is at ... */
    bool in_batch[JOBS_MOST]; /* ... or the first of the batch that it compiles */
    bool no_device;
    struct coverage coverage;
};

struct job {
    uint64_t seed, count, start;
    unsigned batch, jobs, tests;
    const struct device_ops *ops;
    const struct ptx_target *target;
    const char *keep, *emit;
    bool mutate;
    bool coverage, plain; /* plain: no options, a TAP test */
    unsigned tests_done;
    struct shared *shared;
};

/* ---- a device -------------------------------------------------------------------------------- */

static bool open_device(struct arena *a, const struct job *j, struct trial_device *on)
{
    struct device_options opt = {.threads = 1, .max_instructions = 200000000};
    struct diags *d = diags_new(a);
    *on = (struct trial_device){.ops = j->ops, .target = j->target};
    on->guard = j->ops == &cuda_device ? 256 : 0;
    if (j->ops->open(a, 0, &opt, &on->dev, d) == DEVICE_OK)
        return true;
    struct buf b = buf_in(a);
    diags_format(d, "fuzz", false, &b);
    fputs(buf_text(&b), stderr);
    return false;
}

/* ---- workers --------------------------------------------------------------------------------- */

static void record(struct job *j, uint64_t number, enum verdict v)
{
    struct shared *s = j->shared;
    __atomic_fetch_add(&s->verdict[v], 1, __ATOMIC_RELAXED);
    if (v == SAME || (v == REFUSED && j->mutate))
        return;
    uint32_t k = __atomic_fetch_add(&s->nfailure, 1, __ATOMIC_RELAXED);
    if (k >= FAILURES_MOST)
        return;
    s->failure[k].number = number;
    s->failure[k].verdict = v;
}

static const char *kernel_text(struct arena *a, const struct job *j, uint64_t number)
{
    struct random r = random_start(j->seed ^ UINT64_C(0x6d757461), number);
    const char *name = arena_printf(a, "k%" PRIu64, number);
    const char *text = generate_kernel(a, name, j->target->sm, j->seed, number);
    return j->mutate ? mutate_kernel(a, text, &r) : text;
}

static struct trial *make(struct arena *a, const struct job *j, uint64_t number)
{
    const char *name = arena_printf(a, "k%" PRIu64, number);
    return trial_new(a, name, kernel_text(a, j, number), j->seed ^ number);
}

static void tell(const struct job *j, uint64_t number, const struct trial *t)
{
    if (t->verdict == SAME || j->shared->nfailure > SHOWN_MOST)
        return;
    const char *end = t->why; /* of its third line: one error will do */
    for (int lines = 0; *end && lines < 3; end++)
        lines += *end == '\n';
    printf("# kernel %" PRIu64 ": %s: %.*s\n", number, verdict_name(t->verdict),
           (int)(end - t->why), t->why);
    fflush(stdout);
}

static void settle(struct job *j, struct arena *a, uint64_t number, const struct trial *t)
{
    record(j, number, t->verdict);
    tell(j, number, t);
    if (j->emit)
        trial_write(t, arena_printf(a, "%s/%s", j->emit, t->name));
}

static struct trial *prepare(struct job *j, struct arena *a, unsigned w, uint64_t number)
{
    j->shared->at[w] = number;
    struct trial *t = make(a, j, number);
    if (t->verdict != SAME)
        return t;
    if (j->coverage)
        coverage_add(&j->shared->coverage, t->spec);
    trial_evaluate(a, t);
    return t;
}

/* Kernels from .. to, each by itself. False: the device is lost; *from is what to go on with. */
static bool run_singly(struct job *j, unsigned w, struct trial_device *on, uint64_t *from,
                       uint64_t to)
{
    for (bool good = true; *from < to; ++*from) {
        struct arena *a = arena_new();
        struct trial *t = prepare(j, a, w, *from);
        alarm(60);
        good = trials_execute(a, &t, 1, on);
        settle(j, a, *from, t);
        arena_free(a);
        if (!good) {
            ++*from;
            return false;
        }
    }
    return true;
}

/* Damaged kernels, which nobody runs. */
static void compile_singly(struct job *j, unsigned w, uint64_t *from, uint64_t to)
{
    for (; *from < to; ++*from) {
        struct arena *a = arena_new();
        j->shared->at[w] = *from;
        alarm(10);
        struct trial *t = make(a, j, *from);
        if (t->verdict == SAME)
            trial_emit(a, t, j->target);
        record(j, *from, t->verdict);
        arena_free(a);
    }
}

/* The same as one module. */
static bool run_batch(struct job *j, unsigned w, struct trial_device *on, uint64_t *from,
                      uint64_t to)
{
    struct arena *a = arena_new();
    struct trial **t = ARENA_ARRAY(a, (size_t)(to - *from), struct trial *);
    size_t n = 0;
    alarm(300);
    for (uint64_t k = *from; k < to; k++)
        t[n++] = prepare(j, a, w, k);
    j->shared->at[w] = *from;
    j->shared->in_batch[w] = true;
    bool good = trials_execute(a, t, n, on);
    j->shared->in_batch[w] = false;
    for (size_t i = 0; i < n; i++) {
        settle(j, a, (*from)++, t[i]);
        if (!good && t[i]->verdict == FAULT)
            break;
    }
    arena_free(a);
    return good;
}

/* Worker w's share of the numbers, in turns of one batch, from `from` on. Never returns. */
static _Noreturn void work(struct job *j, unsigned w, uint64_t from, uint64_t singly)
{
    struct arena *a = arena_new();
    struct trial_device on;
    if (!open_device(a, j, &on)) {
        j->shared->no_device = true;
        _exit(0);
    }
    const uint64_t end = j->start + j->count;
    while (from < end) {
        uint64_t b = (from - j->start) / j->batch, last = j->start + (b + 1) * j->batch;
        if (b % j->jobs != w) {
            from = last;
            continue;
        }
        last = last < end ? last : end;
        if (j->mutate) {
            compile_singly(j, w, &from, last);
            continue;
        }
        bool one_by_one = from <= singly && singly < last;
        if (one_by_one ? !run_singly(j, w, &on, &from, last) : !run_batch(j, w, &on, &from, last)) {
            j->shared->at[w] = from; /* a new process goes on with a new device */
            _exit(1);
        }
    }
    j->ops->close(on.dev);
    _exit(0);
}

static pid_t start_worker(struct job *j, unsigned w, uint64_t from, uint64_t singly)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        work(j, w, from, singly);
    return pid;
}

/* A worker ended: goes on behind what killed it. */
static pid_t restart(struct job *j, unsigned w, int status)
{
    struct shared *s = j->shared;
    uint64_t at = s->at[w];
    if (WIFEXITED(status))
        return WEXITSTATUS(status) == 0 ? 0 : start_worker(j, w, at, UINT64_MAX);
    if (s->in_batch[w]) { /* one of the batch: each by itself will tell */
        s->in_batch[w] = false;
        return start_worker(j, w, at, at);
    }
    record(j, at, CRASHED);
    printf("# kernel %" PRIu64 ": crashed by signal %d\n", at, WTERMSIG(status));
    return start_worker(j, w, at + 1, at + 1);
}

static void run_all(struct job *j)
{
    pid_t pid[JOBS_MOST];
    for (unsigned w = 0; w < j->jobs; w++)
        pid[w] = start_worker(j, w, j->start, UINT64_MAX);
    for (;;) {
        int status;
        pid_t done = wait(&status);
        if (done <= 0)
            return;
        for (unsigned w = 0; w < j->jobs; w++)
            if (pid[w] == done)
                pid[w] = restart(j, w, status);
    }
}

/* ---- one kernel, in a process of its own ----------------------------------------------------- */

enum { EXIT_VERDICT = 100 };

static enum verdict try_text(const struct job *j, const char *text, uint64_t seed,
                             const char *write_to)
{
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct arena *a = arena_new();
        struct trial_device on;
        if (!write_to && freopen("/dev/null", "w", stderr) == NULL)
            _exit(1); /* what an abort has to say is said once */
        alarm(60);
        struct trial *t = trial_new(a, "kernel.yaml", text, seed);
        if (j->mutate) {
            if (t->verdict == SAME)
                trial_emit(a, t, j->target);
            if (write_to)
                trial_write(t, write_to);
            _exit(EXIT_VERDICT + (int)t->verdict);
        }
        if (t->verdict == SAME)
            trial_evaluate(a, t);
        if (!open_device(a, j, &on))
            _exit(CLI_NO_DEVICE);
        trials_execute(a, &t, 1, &on);
        if (write_to)
            trial_write(t, write_to);
        _exit(EXIT_VERDICT + (int)t->verdict);
    }
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) < EXIT_VERDICT)
        return CRASHED;
    return (enum verdict)(WEXITSTATUS(status) - EXIT_VERDICT);
}

struct reducing {
    const struct job *job;
    uint64_t seed;
    enum verdict verdict;
};

static bool fails_too(void *ctx, const char *text)
{
    const struct reducing *r = ctx;
    return try_text(r->job, text, r->seed, NULL) == r->verdict;
}

static void keep(struct job *j, uint64_t number, enum verdict v)
{
    struct arena *a = arena_new();
    const char *name = arena_printf(a, "k%" PRIu64, number);
    const char *text = kernel_text(a, j, number);
    struct reducing r = {j, j->seed ^ number, v};
    const char *dir = arena_printf(a, "%s/%" PRIu64 "-%s", j->keep, j->seed, name);
    mkdir(j->keep, 0777);
    mkdir(dir, 0777);
    bool again = try_text(j, text, r.seed, dir) == v;
    bool reduces = again && v != REFUSED; /* much can be refused for another reason */
    const char *small = reduces ? reduce_kernel(a, text, fails_too, &r, j->tests) : text;
    try_text(j, small, r.seed, arena_printf(a, "%s/reduced", dir));
    printf("# kernel %" PRIu64 " is kept in %s%s\n%s", number, dir,
           again ? "" : "; alone it does not fail", small);
    fflush(stdout);
    arena_free(a);
}

/* Kernels that once failed. */
static bool try_found(struct job *j)
{
    struct arena *a = arena_new();
    struct dirent **entry;
    const char *top = getenv("KAIO_SRCDIR");
    const char *dir = arena_printf(a, "%s/tests/kernels/found", top ? top : ".");
    int n = scandir(dir, &entry, NULL, alphasort);
    bool good = n > 2;
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name, *path = arena_printf(a, "%s/%s", dir, name);
        const struct source *src =
            strstr(name, ".yaml") ? io_read(a, diags_new(a), path, IO_TEXT_LIMIT) : NULL;
        if (src) {
            enum verdict v = SAME;
            for (uint64_t seed = 0; seed < 4 && v == SAME; seed++)
                v = try_text(j, src->text, seed, NULL);
            good = good && v == SAME;
            printf("%sok %u - %s%s%s\n", v == SAME ? "" : "not ", ++j->tests_done, name,
                   v == SAME ? "" : " is ", v == SAME ? "" : verdict_name(v));
        }
        free(entry[i]);
    }
    free(entry);
    arena_free(a);
    return good;
}

static int try_file(struct job *j, struct cli *cli, const char *path)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    const struct source *src = io_read(a, d, path, IO_TEXT_LIMIT);
    struct trial_device on;
    if (!src)
        return cli_report(cli, d);
    if (!open_device(a, j, &on))
        return CLI_NO_DEVICE;
    struct trial *t = trial_new(a, path, src->text, j->seed);
    if (t->verdict == SAME)
        trial_evaluate(a, t);
    trials_execute(a, &t, 1, &on);
    printf("%s%s%s\n", verdict_name(t->verdict), *t->why ? ": " : "", t->why);
    if (j->keep)
        trial_write(t, j->keep);
    int status = t->verdict == SAME ? CLI_OK : CLI_CHECK_FAILED;
    arena_free(a);
    return cli_finish(cli, status);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* What the kernels came to, as a line of TAP. */
static bool report(struct job *j)
{
    struct shared *s = j->shared;
    uint64_t good = s->verdict[SAME], bad = 0;
    for (int v = SAME + 1; v < VERDICTS; v++) {
        bad += s->verdict[v];
        if (s->verdict[v] && !j->plain)
            printf("# %" PRIu64 " %s\n", s->verdict[v], verdict_name((enum verdict)v));
    }
    if (j->mutate) {
        good += s->verdict[REFUSED];
        bad -= s->verdict[REFUSED];
    }
    bool all = bad == 0 && good == j->count;
    printf("%sok %u - %" PRIu64 " of %" PRIu64 " kernels (seed %" PRIu64 ", %s) %s\n",
           all ? "" : "not ", ++j->tests_done, good, j->count, j->seed, j->target->name,
           j->mutate ? "are compiled or refused" : "give the evaluator's bytes");
    for (uint32_t i = 0; i < s->nfailure && i < SHOWN_MOST && j->keep; i++)
        keep(j, s->failure[i].number, s->failure[i].verdict);
    memset(s->verdict, 0, sizeof s->verdict);
    s->nfailure = 0;
    return all;
}

static bool report_coverage(struct job *j)
{
    struct arena *a = arena_new();
    struct buf missing = buf_in(a), table = buf_in(a);
    coverage_print(&j->shared->coverage, &table);
    coverage_missing(&j->shared->coverage, &missing);
    if (!j->plain)
        fputs(buf_text(&table), stdout);
    printf("%sok %u - every word of the language occurs in them\n", missing.len ? "not " : "",
           ++j->tests_done);
    for (const char *c = buf_text(&missing), *end; (end = strchr(c, '\n')); c = end + 1)
        printf("# missing: %.*s\n", (int)(end - c), c);
    bool good = missing.len == 0;
    arena_free(a);
    return good;
}

/* Without options: kernels for some targets, which together use every word, and those that once
 * failed. */
static bool run_test(struct job *j)
{
    static const char *const targets[] = {"sm_70", "sm_80", "sm_90"};
    bool good = true;
    j->count = 200;
    j->batch = 30;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        j->target = ptx_target_find(targets[i], strlen(targets[i]));
        run_all(j);
        good = report(j) && good;
        j->start += j->count;
    }
    good = report_coverage(j) && good;
    j->mutate = true;
    j->count = getenv("KAIO_QUICK") ? 100 : 500;
    run_all(j);
    good = report(j) && good;
    j->mutate = false;
    return try_found(j) && good;
}

static void set_target(struct cli *cli, struct job *j)
{
    j->target = ptx_target_find(cli->arg, strlen(cli->arg));
    if (!j->target)
        cli_usage_error(cli, "unknown target '%s'", cli->arg);
}

int main(int argc, char **argv)
{
    static const char *const devices[] = {"cpu", "cuda", NULL};
    struct job j = {.seed = 1, .count = 300, .batch = 50, .tests = 2000, .ops = &sim_device};
    struct cli cli;
    int64_t show = -1;
    const char *file = NULL;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    j.jobs = cores < 1 ? 1 : cores > 16 ? 16 : (unsigned)cores;
    j.plain = j.coverage = argc == 1;
    j.target = ptx_target_find("sm_80", 5);
    cli_begin(&cli, &program, argc, argv);
    for (int opt; (opt = cli_next(&cli)) != CLI_END;)
        switch (opt) {
        case OPT_SEED: j.seed = (uint64_t)cli_int(&cli, 0, INT64_MAX); break;
        case OPT_COUNT: j.count = (uint64_t)cli_int(&cli, 1, INT64_MAX / 2); break;
        case OPT_START: j.start = (uint64_t)cli_int(&cli, 0, INT64_MAX / 2); break;
        case OPT_DEVICE: j.ops = cli_choice(&cli, devices) ? &cuda_device : &sim_device; break;
        case 't': set_target(&cli, &j); break;
        case OPT_BATCH: j.batch = (unsigned)cli_int(&cli, 1, 1000); break;
        case OPT_JOBS: j.jobs = (unsigned)cli_int(&cli, 1, JOBS_MOST); break;
        case OPT_KEEP: j.keep = cli.arg; break;
        case OPT_EMIT: j.emit = cli.arg; break;
        case OPT_SHOW: show = cli_int(&cli, 0, INT64_MAX); break;
        case OPT_SPEC: file = cli.arg; break;
        case OPT_REDUCE: j.tests = (unsigned)cli_int(&cli, 0, 1000000); break;
        case OPT_MUTATE: j.mutate = true; break;
        case OPT_COVERAGE: j.coverage = true; break;
        }
    if (file)
        return try_file(&j, &cli, file);
    if (show >= 0) {
        struct arena *a = arena_new();
        fputs(kernel_text(a, &j, (uint64_t)show), stdout);
        return cli_finish(&cli, CLI_OK);
    }
    j.shared =
        mmap(NULL, sizeof *j.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (j.shared == MAP_FAILED)
        return CLI_BAD_INPUT;
    if (j.emit)
        mkdir(j.emit, 0777);
    bool good = true;
    if (j.plain) {
        good = run_test(&j);
    } else {
        run_all(&j);
        if (j.shared->no_device)
            return cli_finish(&cli, CLI_NO_DEVICE);
        good = report(&j);
        if (j.coverage)
            good = report_coverage(&j) && good;
    }
    printf("1..%u\n", j.tests_done);
    return cli_finish(&cli, good ? CLI_OK : CLI_CHECK_FAILED);
}
