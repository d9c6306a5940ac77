/* A tool that only prints what it was asked, for tests/cli/base.bats. */
#include <config.h>

#include "base/cli.h"
#include "base/io.h"
#include "base/progress.h"

#include <unistd.h>

enum {
    OPT_LEVEL = CLI_LONG,
    OPT_RATE,
    OPT_MODE,
    OPT_WAIT,
    OPT_STOP,
    OPT_DEAF,
    OPT_RELEASE,
    OPT_DIAG,
    OPT_SLOW,
    OPT_STATUS
};

static const struct cli_option options[] = {
    {.heading = "Probing"},
    {'o', "output", "FILE", "write to FILE", NULL, NULL},
    {'c', "check", "[LIST]", "check what LIST says\n(default: all)", "memory race", NULL},
    {OPT_LEVEL, "level", "N", "an integer from 1 to 9", "", NULL},
    {OPT_RATE, "rate", "X", "a number from 0 to 1", "", NULL},
    {OPT_MODE, "mode", "MODE", "fast, slow or 'odd' [x:y]", "fast slow odd", NULL},
    {OPT_WAIT, "wait", "FILE", "begin to write FILE, and wait for a signal", NULL, NULL},
    {OPT_STOP, "stop", NULL, "wait for a signal, and say so", NULL, NULL},
    {OPT_DEAF, "deaf", NULL, "be told of a signal, and go on", NULL, NULL},
    {OPT_RELEASE, "release", NULL, "take a signal, and then let signals end the process", NULL,
     NULL},
    {OPT_DIAG, "diag", NULL, "report an error and a warning", NULL, NULL},
    {OPT_SLOW, "slow", NULL, "show progress for 1.5 s", NULL, NULL},
    {OPT_STATUS, "status", "N", "exit with status N", "", NULL},
    {0},
};

static const struct cli_program program = {
    .name = "cli_probe",
    .usage = "[OPTION]... [FILE]...\n--stop",
    .purpose = "Print what the command line says.",
    .options = options,
    .epilogue = "Examples:\n  cli_probe -o x\n",
    .details = "probe details\n",
};

static const char *const modes[] = {"fast", "slow", "odd", NULL};

static int diag(struct cli *cli, struct arena *a)
{
    struct diags *d = diags_new(a);
    diag_warning(d, SPAN_NONE, "odd");
    diag_error(d, source_all(source_new(a, "x.yaml", "abc", 3)), "wrong");
    return cli_report(cli, d);
}

static void wait_writing(struct cli *cli, struct arena *a)
{
    struct diags *d = diags_new(a);
    struct io_out *o = io_create(a, d, cli->arg);
    fputs("half", o->file);
    fflush(o->file);
    puts("waiting");
    fflush(stdout);
    for (;;)
        pause();
}

static volatile sig_atomic_t stopped;

static void wait_stopped(struct cli *cli)
{
    cli_catch_signals(cli, &stopped);
    puts("waiting");
    fflush(stdout);
    while (!stopped)
        usleep(1000);
    printf("stopped by %d\n", (int)stopped);
}

static void wait_deaf(struct cli *cli, struct arena *a)
{
    cli_catch_signals(cli, &stopped);
    cli->arg = "half";
    wait_writing(cli, a);
}

static void release(struct cli *cli)
{
    wait_stopped(cli);
    fflush(stdout);
    cli_catch_signals(cli, NULL);
    puts("not reached");
}

static void slow(void)
{
    struct progress p;
    progress_begin(&p, "probing", 150, false);
    for (uint64_t i = 0; i < 150; i++) {
        usleep(10000);
        progress_step(&p, i);
    }
    progress_clear(&p);
}

int main(int argc, char **argv)
{
    struct cli cli;
    struct arena *a = arena_new();
    int status = CLI_OK;
    cli_begin(&cli, &program, argc, argv);
    for (int opt; (opt = cli_next(&cli)) != CLI_END;)
        switch (opt) {
        case OPT_LEVEL: printf("level %d\n", (int)cli_int(&cli, 1, 9)); break;
        case OPT_RATE: printf("rate %g\n", cli_double(&cli, 0, 1)); break;
        case OPT_MODE: printf("mode %d\n", cli_choice(&cli, modes)); break;
        case OPT_WAIT: wait_writing(&cli, a); break;
        case OPT_STOP: wait_stopped(&cli); break;
        case OPT_DEAF: wait_deaf(&cli, a); break;
        case OPT_RELEASE: release(&cli); break;
        case OPT_DIAG: status = diag(&cli, a); break;
        case OPT_SLOW: slow(); break;
        case OPT_STATUS: status = (int)cli_int(&cli, 0, 255); break;
        default: printf("--%s %s\n", cli.shown, cli.arg ? cli.arg : "(none)");
        }
    for (int i = 0; i < cli.argc; i++)
        printf("operand %s\n", cli.argv[i]);
    arena_free(a);
    return cli_finish(&cli, status);
}
