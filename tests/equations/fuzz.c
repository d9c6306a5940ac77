/* Random equations, lowered by the strategy that fits them, run on the simulator with all its
 * checks, and compared with the reference.
 *
 *     fuzz                                     some hundred specs for several targets, as a TAP
 *                                              test
 *     fuzz --seed=7 --count=10000 --keep=DIR   more; what fails is kept in DIR
 *     fuzz --seed=7 --contractions             sums of products instead of any equations
 *     fuzz --seed=7 --show=123                 the text of spec 123
 *
 * Every spec is tried in a process of its own, so that a crash is one more way to fail. A file in
 * DIR begins with the command that repeats the failure. Exit status: 0 all are right, 1 some not, 2
 * usage.
 */
#include <config.h>

#include "base/cli.h"
#include "equations/generate.h"
#include "equations/judge.h"
#include "kernels/random.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OPT_SEED = CLI_LONG,
    OPT_COUNT,
    OPT_START,
    OPT_JOBS,
    OPT_KEEP,
    OPT_SHOW,
    OPT_WHY,
    OPT_CONTRACTIONS
};
static const struct cli_option options[] = {
    {OPT_SEED, "seed", "S", "the sequence of specs (default 1)", ""},
    {OPT_COUNT, "count", "N", "how many (default 300)", ""},
    {OPT_START, "start", "N", "the first one's number (default 0)", ""},
    {'t', "target", "TARGET", "compile for TARGET (default sm_80)", ""},
    {OPT_JOBS, "jobs", "N", "processes at a time (default: one for each core, 16 at most)", ""},
    {OPT_KEEP, "keep", "DIR", "write what fails to DIR"},
    {OPT_CONTRACTIONS, "contractions", NULL, "sums of products"},
    {OPT_SHOW, "show", "N", "print spec N and end", ""},
    {OPT_WHY, "why", NULL, "also say why specs are refused their schedule, or not compared"},
    {0},
};
static const struct cli_program program = {
    .name = "fuzz",
    .usage = "[OPTION]...",
    .purpose = "Run random equations and compare them with the reference.",
    .options = options,
};

enum { JOBS_MOST = 16, SECONDS = 60, EXIT_VERDICT = 100 };

struct job {
    uint64_t seed, count, start;
    unsigned jobs, tests_done;
    const struct ptx_target *target;
    const char *keep;
    bool why, contractions;
    uint64_t verdict[VERDICTS];
};

struct made {
    struct trial trial;
    const char *repeat; /* the command */
};

static struct made make(struct arena *a, const struct job *j, uint64_t number)
{
    static const enum fill_kind fills[] = {FILL_EXACT,   FILL_NORMAL, FILL_NORMAL,
                                           FILL_UNIFORM, FILL_EDGE,   FILL_EXTREME};
    struct random r = random_start(~j->seed, number);
    const bool all = random_one_in(&r, 2), some = random_one_in(&r, 4);
    const uint64_t fixed = all ? UINT64_MAX : some ? random_below(&r, 256) : 0;
    const char *name = arena_printf(a, "k%" PRIu64, number);
    struct generated g = (j->contractions ? generate_contraction : generate_equations)(
        a, name, j->target, j->seed, number);
    struct made m = {{.text = g.text,
                      .zero = g.zero,
                      .scheduled = g.scheduled,
                      .target = j->target,
                      .fixed = fixed,
                      .fill = fills[random_below(&r, 6)],
                      .seed = number}};
    m.repeat = arena_printf(
        a, "# kaio-verify --run -d cpu --check -t %s --seed=%" PRIu64 " --fill=%s FILE c%s%s%s\n",
        j->target->name, number, fill_names[m.trial.fill],
        all     ? " with each dimension as -D"
        : fixed ? arena_printf(a, " with -D for those of the bits 0x%" PRIx64, fixed)
                : "",
        g.zero ? " but with 0 for " : "", g.zero ? g.zero : "");
    return m;
}

static void keep(const struct job *j, uint64_t number, enum verdict v, const char *why)
{
    struct arena *a = arena_new();
    struct made m = make(a, j, number);
    mkdir(j->keep, 0777);
    FILE *f = fopen(arena_printf(a, "%s/%" PRIu64 "-%" PRIu64 "-%s.yaml", j->keep, j->seed, number,
                                 j->target->name),
                    "w");
    if (f) {
        fprintf(f, "%s# %s\n", m.repeat, verdict_names[v]);
        for (const char *c = why, *end; (end = strchr(c, '\n')); c = end + 1)
            fprintf(f, "# %.*s\n", (int)(end - c), c);
        fputs(m.trial.text, f);
        fclose(f);
    }
    arena_free(a);
}

static void tell(const struct job *j, uint64_t number, enum verdict v, const char *why)
{
    if (v == RIGHT || (v < REFUSED && !j->why))
        return;
    const char *end = why; /* of its third line */
    for (int lines = 0; *end && lines < 3; end++)
        lines += *end == '\n';
    printf("# spec %" PRIu64 " (%s): %s: %.*s%s", number, j->target->name, verdict_names[v],
           (int)(end - why), why, end > why && end[-1] == '\n' ? "" : "\n");
    fflush(stdout);
}

static pid_t start(const struct job *j, uint64_t number)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct arena *a = arena_new();
    struct made m = make(a, j, number);
    const char *why;
    alarm(SECONDS);
    enum verdict v = judge(a, &m.trial, &why);
    tell(j, number, v, why);
    if (j->keep && v >= REFUSED)
        keep(j, number, v, why);
    _exit(EXIT_VERDICT + (int)v);
}

static void ended(struct job *j, uint64_t number, int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) >= EXIT_VERDICT) {
        j->verdict[WEXITSTATUS(status) - EXIT_VERDICT]++;
        return;
    }
    j->verdict[CRASHED]++;
    const char *why = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "an exit";
    tell(j, number, CRASHED, why);
    if (j->keep)
        keep(j, number, CRASHED, why);
}

static void run_all(struct job *j)
{
    pid_t pid[JOBS_MOST] = {0};
    uint64_t number[JOBS_MOST], next = j->start, left = j->count;
    while (left > 0) {
        for (unsigned w = 0; w < j->jobs; w++)
            if (!pid[w] && next < j->start + j->count)
                pid[w] = start(j, number[w] = next++);
        int status;
        pid_t done = wait(&status);
        if (done <= 0)
            return;
        for (unsigned w = 0; w < j->jobs; w++)
            if (pid[w] == done) {
                ended(j, number[w], status);
                pid[w] = 0;
                left--;
            }
    }
}

/* As a line of TAP. Most must have been compared: a generator whose specs all come to nothing tests
 * nothing. */
static bool report(struct job *j)
{
    uint64_t bad = 0, right = j->verdict[RIGHT];
    for (int v = REFUSED; v < VERDICTS; v++)
        bad += j->verdict[v];
    bool good = bad == 0 && right >= j->count / 2;
    printf("%sok %u - %" PRIu64 " of %" PRIu64 " %s (seed %" PRIu64 ", %s) are right, %" PRIu64
           " not; nothing to compare in %" PRIu64 ", no fit of the schedule in %" PRIu64 "\n",
           good ? "" : "not ", ++j->tests_done, right, j->count,
           j->contractions ? "contractions" : "specs", j->seed, j->target->name, bad,
           j->verdict[UNKNOWN], j->verdict[UNFIT]);
    memset(j->verdict, 0, sizeof j->verdict);
    return good;
}

static bool run_test(struct job *j)
{
    static const struct {
        const char *target;
        uint64_t count, few;
        bool contractions;
    } parts[] = {{"sm_70", 300, 80, false}, {"sm_80", 300, 80, false}, {"sm_90", 300, 80, false},
                 {"sm_75", 50, 15, true},   {"sm_80", 100, 25, true},  {"sm_89", 50, 15, true},
                 {"sm_90a", 100, 25, true}};
    bool good = true;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        j->target = ptx_target_find(parts[i].target, strlen(parts[i].target));
        j->count = getenv("KAIO_QUICK") ? parts[i].few : parts[i].count;
        j->contractions = parts[i].contractions;
        run_all(j);
        good = report(j) && good;
        j->start += j->count;
    }
    return good;
}

static void set_target(struct cli *cli, struct job *j)
{
    j->target = ptx_target_find(cli->arg, strlen(cli->arg));
    if (!j->target)
        cli_usage_error(cli, "unknown target '%s'", cli->arg);
}

int main(int argc, char **argv)
{
    struct job j = {.seed = 1, .count = 300};
    struct cli cli;
    int64_t show = -1;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const bool plain = argc == 1;
    j.jobs = cores < 1 ? 1 : cores > JOBS_MOST ? JOBS_MOST : (unsigned)cores;
    j.target = ptx_target_find("sm_80", 5);
    cli_begin(&cli, &program, argc, argv);
    for (int opt; (opt = cli_next(&cli)) != CLI_END;)
        switch (opt) {
        case OPT_SEED: j.seed = (uint64_t)cli_int(&cli, 0, INT64_MAX); break;
        case OPT_COUNT: j.count = (uint64_t)cli_int(&cli, 1, INT64_MAX / 2); break;
        case OPT_START: j.start = (uint64_t)cli_int(&cli, 0, INT64_MAX / 2); break;
        case 't': set_target(&cli, &j); break;
        case OPT_JOBS: j.jobs = (unsigned)cli_int(&cli, 1, JOBS_MOST); break;
        case OPT_KEEP: j.keep = cli.arg; break;
        case OPT_SHOW: show = cli_int(&cli, 0, INT64_MAX); break;
        case OPT_WHY: j.why = true; break;
        case OPT_CONTRACTIONS: j.contractions = true; break;
        }
    if (show >= 0) {
        struct arena *a = arena_new();
        struct made m = make(a, &j, (uint64_t)show);
        printf("%s%s", m.repeat, m.trial.text);
        arena_free(a);
        return cli_finish(&cli, CLI_OK);
    }
    bool good = true;
    if (plain) {
        good = run_test(&j);
    } else {
        run_all(&j);
        good = report(&j);
    }
    printf("1..%u\n", j.tests_done);
    return cli_finish(&cli, good ? CLI_OK : CLI_CHECK_FAILED);
}
