/* The command line of a tool: one option table feeds the parser, --help, --version and the shell
 * completions.
 *
 * This header and progress.h are for the tools' mains: unlike the rest of lib/ they print, and a
 * usage error ends the process. No library module includes them.
 *
 *     enum { OPT_TARGET = 't', OPT_EXPLAIN = CLI_LONG };
 *     static const struct cli_option options[] = {
 *         {.heading = "Output"},
 *         {'t', "target", "TARGET", "compile for TARGET (default sm_80)", .values = "sm_70 sm_80
 * native"}, {OPT_EXPLAIN, "explain", NULL, "say what was chosen, and why"}, {OPT_CHECK, "check",
 * "[LIST]", "run under the sanitizer"},     optional argument: --check=LIST {0},
 *     };
 *     static const struct cli_program program = {"kaio-emit", "[OPTION]... [SPEC]...", "...",
 * options};
 *
 *     int main(int argc, char **argv)
 *     {
 *         struct cli cli;
 *         cli_begin(&cli, &program, argc, argv);
 *         for (int opt; (opt = cli_next(&cli)) != CLI_END;)
 *             switch (opt) {
 *             case OPT_TARGET: target = cli.arg; break;
 *             ...
 *             }
 *         // operands: cli.argv[0 .. cli.argc)
 *         return cli_finish(&cli, status);
 *     }
 *
 * Every tool also gets --color=WHEN, -h/--help, -V/--version and the hidden --completion=SHELL,
 * which cli_next() serves itself. Options may stand anywhere, "--" ends them, and "-" is an
 * operand.
 */
#ifndef KAIO_BASE_CLI_H
#define KAIO_BASE_CLI_H

#include "base/diag.h"

#include <signal.h>

/* Exit status of every tool. The larger of two is the one to report, except that CLI_NO_DEVICE
 * stands only where nothing was tried. */
enum cli_status {
    CLI_OK = 0,
    CLI_CHECK_FAILED = 1, /* verification, sanitizer, regression */
    CLI_BAD_INPUT = 2,    /* usage, spec, PTX, buffer, I/O, no memory */
    CLI_DEVICE_FAILED = 3,
    CLI_NO_DEVICE = 77, /* the device asked for is not there */
};

enum {
    CLI_END = -1,
    CLI_LONG =
        256, /* ids of options without a short form start here; below, id is the short form */
};

struct cli_option {
    int id;           /* the short form's letter, or CLI_LONG and up */
    const char *name; /* the long form, without dashes */
    /* NULL: none; "WORD": needed; "[LIST]": may be given, as --name=LIST; "[N]": a count that may
     * be given, as --name=N or --name N. "FILE", "[FILE]" and "DIR" may not be empty: a usage error
     * says so. */
    const char *arg;
    const char *help;    /* one line or several, lower case, no full stop; NULL hides the option */
    const char *values;  /* words for completion, separated by spaces; NULL: file names */
    const char *heading; /* instead of all else: a title for the options that follow */
};

struct cli_program {
    const char *name;
    const char *usage;                /* what follows the name; further forms after newlines */
    const char *purpose;              /* one sentence for --help */
    const struct cli_option *options; /* ends with a zero row */
    const char *epilogue;             /* after the options in --help: examples; or NULL */
    const char *details;              /* further lines of --version; or NULL */
};

struct cli {
    const struct cli_program *program;
    int argc; /* operands, after cli_next() gave CLI_END */
    char **argv;
    const char *arg;           /* argument of the option cli_next() just gave; NULL if none */
    const char *shown;         /* that option as the user may know it: "target" */
    bool color_out, color_err; /* ANSI colour on stdout, stderr: terminals only, not with NO_COLOR;
                                  --color wins */
};

/* Prepares the process: standard descriptors that are closed are made to fail rather than be reused
 * for files, and signals that end the process remove unfinished output files first. From here on an
 * arena that finds no memory, and that has no guard, ends the process with a message and
 * CLI_BAD_INPUT. cli stays where it is. */
void cli_begin(struct cli *cli, const struct cli_program *program, int argc, char **argv);
/* From now on that message says that the memory was for this ("the code of 'saxpy'"; NULL: for
 * nothing in particular). The text is kept, not copied. */
void cli_doing(const char *what);
/* The id of the next option, or CLI_END. Ends the process for --help, --version and usage errors.
 */
int cli_next(struct cli *cli);

/* "kaio-emit: error: text" and "Try 'kaio-emit --help' for more information." on stderr; exits 2.
 */
_Noreturn void cli_usage_error(const struct cli *cli, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* "kaio-emit: error: text" on stderr. cli_warning: "kaio-emit: warning: ...". cli_note: "kaio-emit:
 * ...". */
void cli_error(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_warning(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_note(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints the diagnostics on stderr. CLI_BAD_INPUT if there was an error among them, else CLI_OK. */
int cli_report(const struct cli *cli, const struct diags *d);

/* Arguments of the current option as numbers (base/num.h says what they may look like); a usage
 * error that names the option otherwise. Bounds are inclusive. */
int64_t cli_int(const struct cli *cli, int64_t min, int64_t max);
double cli_double(const struct cli *cli, double min, double max); /* never NaN */
/* The index of the argument in a NULL-terminated list of words; a usage error that lists them
 * otherwise. */
int cli_choice(const struct cli *cli, const char *const *words);

/* Signals. From cli_begin() on, one that ends the process first removes unfinished outputs
 * (base/io.h), whatever the tool is doing: nothing is to be done for loops to be interruptible.
 *
 * For work that can stop early and still say something: from cli_catch_signals() on, SIGINT,
 * SIGTERM and SIGHUP set *flag to their number instead. The work then has CLI_GRACE seconds to come
 * to its end, and cli_finish() ends the process by that signal. A second signal ends it at once,
 * and so does the end of that time: work that does not look at the flag delays the end but cannot
 * prevent it. NULL goes back to ending at once, also for a signal that has come already; so catch
 * signals only around what has something to say. */
enum { CLI_GRACE = 3 };
void cli_catch_signals(struct cli *cli, volatile sig_atomic_t *flag);

/* Flushes and closes stdout and yields the exit status: status, or CLI_BAD_INPUT (with a message)
 * when what was written to stdout did not arrive and status was CLI_OK. */
int cli_finish(struct cli *cli, int status);

#endif
