#include <config.h>

#include "base/cli.h"

#include "base/cli_print.h"
#include "base/io.h"
#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { OPT_COLOR = CLI_LONG + 10000, OPT_COMPLETION };

static const char *const color_words[] = {"auto", "always", "never", NULL};

/* Every tool has these options after its own. */
static const struct cli_option common[] = {
    {.heading = "General"},
    {OPT_COLOR, "color", "WHEN", "colour in messages: auto, always or never", "auto always never",
     NULL},
    {'h', "help", NULL, "print this text", NULL, NULL},
    {'V', "version", NULL, "print the version", NULL, NULL},
    {OPT_COMPLETION, "completion", "SHELL", NULL, "bash zsh", NULL},
    {0},
};

const struct cli_option *cli_row(const struct cli_program *program, size_t i)
{
    size_t n = 0;
    while (program->options[n].name || program->options[n].heading)
        n++;
    if (i < n)
        return &program->options[i];
    i -= n;
    return i < sizeof common / sizeof *common - 1 ? &common[i] : NULL;
}

/* --- the process --- */

/* A closed standard descriptor would be given to the next file opened, and what is printed would
 * land there. Opening it the wrong way round makes its use fail instead. */
static void occupy(int fd, int flags)
{
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
        (void)!open("/dev/null", flags);
}

/* Set by cli_catch_signals(); a handler gets no argument. */
static volatile sig_atomic_t *volatile interrupted;

/* These ask the process to end; work may be told of them, and be given time. */
static const int asking[] = {SIGINT, SIGTERM, SIGHUP};
/* These end it at once. SIGALRM is the end of the time that work was given. */
static const int ending[] = {SIGQUIT, SIGPIPE, SIGXCPU, SIGXFSZ, SIGALRM};

_Noreturn static void end_by(int sig)
{
    sigset_t one;
    io_remove_unfinished();
    signal(sig, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, sig);
    raise(sig);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL); /* in its own handler it waits until here */
    _exit(128 + sig);
}

static void on_request(int sig)
{
    if (!interrupted || *interrupted)
        end_by(sig);
    *interrupted = sig;
    alarm(CLI_GRACE);
}

static void on_end(int sig)
{
    const bool late = sig == SIGALRM && interrupted && *interrupted;
    end_by(late ? (int)*interrupted : sig);
}

static void install(int sig, void (*handler)(int))
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    sigemptyset(&act.sa_mask);
    if (sigaction(sig, NULL, &old) == 0 && old.sa_handler != SIG_IGN) /* nohup stays in force */
        sigaction(sig, &act, NULL);
}

static void install_handlers(void)
{
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++)
        install(asking[i], on_request);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        install(ending[i], on_end);
}

void cli_catch_signals(struct cli *cli, volatile sig_atomic_t *flag)
{
    (void)cli;
    const volatile sig_atomic_t *before = interrupted;
    interrupted = flag;
    if (!flag && before && *before)
        end_by((int)*before);
}

static const struct cli *begun; /* by cli_begin(); an arena knows no tool */
static const char *doing;

void cli_doing(const char *what)
{
    doing = what;
}

/* Any thread may find that there is no memory; the first one tells it, with nothing but what is
 * there. */
static void end_without_memory(const char *failure)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&told))
        pause();
    io_remove_unfinished();
    cli_error(begun, "out of memory%s%s: %s", doing ? " for " : "", doing ? doing : "", failure);
    _exit(CLI_BAD_INPUT);
}

static bool wants_color(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && term && strcmp(term, "dumb") != 0 && isatty(fd);
}

/* A stack grows as it is used, and a process that finds no room for that ends without a word: what
 * the programs need is taken while there is some. From its end on, as a stack grows. */
static void take_stack(void)
{
    enum { STACK = 256 * 1024, PAGE = 4096 };
    char room[STACK];
    volatile char *last = room + STACK - 1;
    for (size_t i = 0; i < STACK; i += PAGE)
        *(last - i) = 0;
}

void cli_begin(struct cli *cli, const struct cli_program *program, int argc, char **argv)
{
    take_stack();
    occupy(STDIN_FILENO, O_WRONLY);
    occupy(STDOUT_FILENO, O_RDONLY);
    occupy(STDERR_FILENO, O_WRONLY);
    install_handlers();
    *cli = (struct cli){.program = program, .argc = argc, .argv = argv};
    cli->color_out = wants_color(STDOUT_FILENO);
    cli->color_err = wants_color(STDERR_FILENO);
    begun = cli;
    arena_last_words(end_without_memory);
    optind = 0; /* getopt starts afresh */
    opterr = 0;
}

int cli_finish(struct cli *cli, int status)
{
    int error = ferror(stdout) ? EIO : 0;
    if (fflush(stdout) != 0)
        error = errno;
    if (fclose(stdout) != 0 && !error && errno != EBADF)
        error = errno;
    if (interrupted && *interrupted)
        end_by((int)*interrupted);
    if (!error)
        return status;
    if (error != EPIPE)
        cli_error(cli, "cannot write to standard output: %s", strerror(error));
    return status == CLI_OK ? CLI_BAD_INPUT : status;
}

/* --- messages --- */

static void message(const struct cli *cli, const char *level, const char *ansi, const char *fmt,
                    va_list ap)
{
    fflush(stdout);
    if (cli->color_err)
        fprintf(stderr, "\033[1m%s:\033[0m ", cli->program->name);
    else
        fprintf(stderr, "%s: ", cli->program->name);
    if (level && cli->color_err)
        fprintf(stderr, "\033[%sm%s:\033[0m ", ansi, level);
    else if (level)
        fprintf(stderr, "%s: ", level);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

void cli_error(const struct cli *cli, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    message(cli, "error", "1;31", fmt, ap);
    va_end(ap);
}

void cli_warning(const struct cli *cli, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    message(cli, "warning", "1;35", fmt, ap);
    va_end(ap);
}

void cli_note(const struct cli *cli, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    message(cli, NULL, "", fmt, ap);
    va_end(ap);
}

void cli_usage_error(const struct cli *cli, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    message(cli, "error", "1;31", fmt, ap);
    va_end(ap);
    fprintf(stderr, "Try '%s --help' for more information.\n", cli->program->name);
    exit(CLI_BAD_INPUT);
}

int cli_report(const struct cli *cli, const struct diags *d)
{
    struct arena *a = arena_new();
    if (!a) {
        cli_error(cli, "out of memory");
        return CLI_BAD_INPUT;
    }
    struct buf text = buf_in(a);
    diags_format(d, cli->program->name, cli->color_err, &text);
    fflush(stdout);
    fputs(buf_text(&text), stderr);
    arena_free(a);
    return d->nerror ? CLI_BAD_INPUT : CLI_OK;
}

/* --- options --- */

enum { MAX_OPTIONS = 64 };

/* The table as getopt_long() wants it. */
struct tables {
    char shorts[3 * MAX_OPTIONS + 2];
    struct option longs[MAX_OPTIONS + 1];
};

static int arg_kind(const struct cli_option *o)
{
    return !o->arg ? no_argument : o->arg[0] == '[' ? optional_argument : required_argument;
}

static void fill_tables(const struct cli_program *program, struct tables *t)
{
    const struct cli_option *o;
    char *s = t->shorts;
    int n = 0;
    *s++ = ':'; /* tell a missing argument from an unknown option */
    for (size_t i = 0; (o = cli_row(program, i)) && n < MAX_OPTIONS; i++) {
        if (!o->name)
            continue;
        t->longs[n++] = (struct option){o->name, arg_kind(o), NULL, o->id};
        if (o->id < CLI_LONG) {
            *s++ = (char)o->id;
            for (int k = 0; k < arg_kind(o); k++)
                *s++ = ':';
        }
    }
    t->longs[n] = (struct option){0};
    *s = '\0';
}

_Noreturn static void unknown_option(const struct cli *cli, const struct tables *t,
                                     const char *word)
{
    const char *names[MAX_OPTIONS + 1];
    size_t n = 0, matches = 0, len = strcspn(word + 2, "=");
    for (; t->longs[n].name; n++) {
        names[n] = t->longs[n].name;
        matches += strncmp(names[n], word + 2, len) == 0;
    }
    names[n] = NULL;
    if (matches > 1)
        cli_usage_error(cli, "option '--%.*s' is ambiguous", (int)len, word + 2);
    const char *near = diag_nearest(word + 2, len, names);
    if (near)
        cli_usage_error(cli, "unknown option '--%.*s'; did you mean '--%s'?", (int)len, word + 2,
                        near);
    cli_usage_error(cli, "unknown option '--%.*s'", (int)len, word + 2);
}

/* Says in words why getopt_long() returned '?' or ':'. */
_Noreturn static void bad_option(const struct cli *cli, const struct tables *t, int code)
{
    const char *word = optind > 0 ? cli->argv[optind - 1] : "";
    bool is_long = strncmp(word, "--", 2) == 0;
    if (code == ':' && is_long)
        cli_usage_error(cli, "option '--%.*s' needs an argument", (int)strcspn(word + 2, "="),
                        word + 2);
    if (code == ':')
        cli_usage_error(cli, "option '-%c' needs an argument", optopt);
    if (!is_long || (optopt > 0 && optopt < CLI_LONG && !strchr(word, '=')))
        cli_usage_error(cli, "unknown option '-%c'", optopt);
    if (optopt)
        cli_usage_error(cli, "option '--%.*s' takes no argument", (int)strcspn(word + 2, "="),
                        word + 2);
    unknown_option(cli, t, word);
}

/* Prints with one of the functions of cli_print.h and ends. */
_Noreturn static void print_and_exit(struct cli *cli,
                                     void (*print)(const struct cli_program *, FILE *))
{
    /* written at once, in the end: of what stdio writes in between it forgets why it failed */
    static char room[1 << 16];
    setvbuf(stdout, room, _IOFBF, sizeof room);
    print(cli->program, stdout);
    exit(cli_finish(cli, CLI_OK));
}

_Noreturn static void completion(struct cli *cli)
{
    static const char *const shells[] = {"bash", "zsh", NULL};
    print_and_exit(cli, cli_choice(cli, shells) == 0 ? cli_print_bash : cli_print_zsh);
}

static void set_color(struct cli *cli)
{
    int when = cli_choice(cli, color_words);
    if (when != 0)
        cli->color_out = cli->color_err = when == 1;
}

/* NULL: it is one that every tool has. */
static const struct cli_option *option_of(const struct cli *cli, int opt)
{
    const struct cli_option *o = cli->program->options;
    while (o->heading || (o->name && o->id != opt))
        o++;
    return o->name ? o : NULL;
}

/* An optional count may also stand in the next word (--time 5), which getopt would take for an
 * operand. */
static void take_count(struct cli *cli, const struct cli_option *o)
{
    if (!o->arg || strcmp(o->arg, "[N]") != 0 || optarg || optind >= cli->argc)
        return;
    const char *word = cli->argv[optind];
    if (*word && word[strspn(word, "0123456789")] == 0) {
        cli->arg = word;
        optind++;
    }
}

/* Refuses an empty file name at once: a shell makes one of "--output=$OUT" where OUT is not set,
 * and it would be found only when the file is needed, at the end. */
static void check_file(const struct cli *cli, const struct cli_option *o)
{
    if (!o->arg || !cli->arg || *cli->arg)
        return;
    if (strcmp(o->arg, "[FILE]") == 0)
        cli_usage_error(cli, "option '--%s' names no file; name one, or leave the '=' out",
                        o->name);
    if (strcmp(o->arg, "FILE") == 0 || strcmp(o->arg, "DIR") == 0)
        cli_usage_error(cli, "option '--%s' names no %s; name one, or leave the option out",
                        o->name, *o->arg == 'F' ? "file" : "folder");
}

int cli_next(struct cli *cli)
{
    struct tables t;
    fill_tables(cli->program, &t);
    for (;;) {
        int opt = getopt_long(cli->argc, cli->argv, t.shorts, t.longs, NULL);
        cli->arg = optarg;
        cli->shown = NULL;
        if (opt == -1)
            break;
        if (opt == '?' || opt == ':')
            bad_option(cli, &t, opt);
        for (size_t i = 0; t.longs[i].name; i++)
            if (t.longs[i].val == opt)
                cli->shown = t.longs[i].name;
        switch (opt) {
        case 'h': print_and_exit(cli, cli_print_help);
        case 'V': print_and_exit(cli, cli_print_version);
        case OPT_COMPLETION: completion(cli);
        case OPT_COLOR: set_color(cli); break;
        default: break;
        }
        const struct cli_option *own = option_of(cli, opt);
        if (own) {
            take_count(cli, own);
            check_file(cli, own);
            return opt;
        }
    }
    cli->argc -= optind;
    cli->argv += optind;
    return CLI_END;
}

int64_t cli_int(const struct cli *cli, int64_t min, int64_t max)
{
    int64_t v;
    switch (num_int(cli->arg, strlen(cli->arg), min, max, &v)) {
    case NUM_OK: return v;
    case NUM_SYNTAX: cli_usage_error(cli, "--%s: '%s' is not an integer", cli->shown, cli->arg);
    case NUM_RANGE: break;
    }
    cli_usage_error(cli, "--%s: '%s' is not between %" PRId64 " and %" PRId64, cli->shown, cli->arg,
                    min, max);
}

double cli_double(const struct cli *cli, double min, double max)
{
    double v;
    enum num_status status = num_double(cli->arg, strlen(cli->arg), &v);
    if (status == NUM_SYNTAX || (status == NUM_OK && isnan(v)))
        cli_usage_error(cli, "--%s: '%s' is not a number", cli->shown, cli->arg);
    if (status == NUM_OK && v >= min && v <= max)
        return v;
    cli_usage_error(cli, "--%s: '%s' is not between %g and %g", cli->shown, cli->arg, min, max);
}

int cli_choice(const struct cli *cli, const char *const *words)
{
    char list[512] = "";
    size_t n = 0;
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], cli->arg) == 0)
            return i;
        const char *comma = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", comma, words[i]);
        if (n >= sizeof list)
            n = sizeof list - 1;
    }
    cli_usage_error(cli, "--%s: '%s' is not one of %s", cli->shown, cli->arg, list);
}
