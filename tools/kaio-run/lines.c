/* --lines: a run for each line of standard input. Context, module and unchanged inputs stay from
 * one to the next. */
#include <config.h>

#include "job.h"

#include "base/io.h"
#include "run/line.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_MOST = 1 << 20, CHUNK = 1 << 16 };

struct lines {
    struct job *j;
    char chunk[CHUNK]; /* of standard input: at .. n is still to be read */
    size_t at, n;
    char *text; /* the line at hand, without its newline */
    size_t len;
    size_t number; /* from 1 */
    bool too_long; /* len is LINE_MOST, and there was more */
    bool used;     /* a launch may have left something in the module */
    VEC(const struct contract *) launched;
    int worst; /* status of a line */
};

/* A line at work. It is apart from the functions that a lack of memory jumps to. */
struct turn {
    struct lines *l;
    struct request q;
    struct line words;
    struct answer answer;
    char failure[256]; /* what there was no memory for; "": there was */
    bool kept;         /* inputs took memory that a process which keeps none has */
};

/* ---- standard input -------------------------------------------------------------------------- */

/* Reads on: false at the end. */
static bool fill(struct lines *l, int *status)
{
    ssize_t n;
    do
        n = read(STDIN_FILENO, l->chunk, CHUNK);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        cli_error(&l->j->cli, "cannot read standard input: %s", strerror(errno));
        *status = CLI_BAD_INPUT;
    }
    l->at = 0;
    l->n = n < 0 ? 0 : (size_t)n;
    return n > 0;
}

static void add_bytes(struct lines *l, const char *from, size_t n)
{
    const size_t room = LINE_MOST - l->len, taken = n < room ? n : room;
    memcpy(l->text + l->len, from, taken);
    l->len += taken;
    l->too_long |= taken < n;
}

/* The next line, of which no newline is needed at the end of all; false: there is none. */
static bool next_line(struct lines *l, int *status)
{
    bool any = false;
    l->len = 0;
    l->too_long = false;
    l->number++;
    while (l->at < l->n || fill(l, status)) {
        const char *from = l->chunk + l->at, *newline = memchr(from, '\n', l->n - l->at);
        const size_t n = newline ? (size_t)(newline - from) : l->n - l->at;
        any = true;
        add_bytes(l, from, n);
        l->at += n + (newline != NULL);
        if (newline)
            return true;
    }
    return any && *status == CLI_OK;
}

/* ---- standard output ------------------------------------------------------------------------- */

/* The answers get a descriptor of their own, and what anybody else prints, a GPU's driver for
 * kernels, goes to standard error. */
static bool take_stdout(struct job *j)
{
    j->answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (j->answers >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
        return true;
    return diag_error(j->d, SPAN_NONE, "cannot use standard output: %s", strerror(errno));
}

static bool is_answers(const struct job *j, const char *path)
{
    struct stat out, st;
    if (strcmp(path, "-") == 0 || io_descriptor(path) == STDOUT_FILENO)
        return true;
    return fstat(j->answers, &out) == 0 && stat(path, &st) == 0 && st.st_dev == out.st_dev &&
           st.st_ino == out.st_ino && !S_ISCHR(st.st_mode);
}

static bool check_destinations(const struct job *j, struct run *r)
{
    for (size_t i = 0; i < r->nparam; i++)
        if (r->param[i].destination && is_answers(j, r->param[i].destination))
            return diag_error(r->d, SPAN_NONE,
                              "standard output has the answers, so %s can't go there; give %s=FILE",
                              r->param[i].sym->name, r->param[i].sym->name);
    return true;
}

/* False when the answers do not arrive. */
static bool send_answer(struct job *j, const char *p, size_t n)
{
    while (n) {
        const ssize_t sent = write(j->answers, p, n);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            if (errno != EPIPE)
                cli_error(&j->cli, "cannot write to standard output: %s", strerror(errno));
            return false;
        }
        p += sent;
        n -= (size_t)sent;
    }
    return true;
}

void lines_watch(struct job *j)
{
    struct pollfd p = {.fd = j->answers};
    if (j->answers >= 0 && !*j->stop && poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP)))
        *j->stop = SIGPIPE;
}

/* ---- a line ---------------------------------------------------------------------------------- */

/* The device as a launch of this line may find it: variables of the module have their first
 * values. */
static int make_ready(struct turn *t)
{
    struct lines *l = t->l;
    struct job *j = l->j;
    if (l->used && launchable_has_state(&j->program)) {
        struct diags *d = diags_new(t->q.a); /* warnings were told when it was loaded first */
        const enum device_status status = j->device.ops->load(j->dev, j->program.ptx, d);
        if (status != DEVICE_OK) {
            diags_append(t->q.d, d);
            return job_status(j, status);
        }
    }
    l->used = true;
    for (size_t i = 0; i < l->launched.n; i++)
        if (l->launched.v[i] == t->q.run->contract)
            return CLI_OK;
    *VEC_PUSH(j->a, &l->launched) = t->q.run->contract;
    return CLI_OK;
}

static int open_device(struct lines *l, struct diags *d, bool keep)
{
    struct job *j = l->j;
    if (j->dev)
        return CLI_OK;
    const int status = job_open(j, d);
    if (status == CLI_OK && keep)
        j->keep = keep_new(j->device.ops, j->dev);
    l->used = false;
    return status;
}

static int run_words(struct turn *t, bool keep)
{
    struct job *j = t->l->j;
    struct request *q = &t->q;
    line_complete(q->a, &t->words, j->args.v, j->args.n);
    q->kernel = t->words.kernel ? t->words.kernel : j->kernel;
    q->arg = t->words.args.v;
    q->narg = t->words.args.n;
    int status = open_device(t->l, q->d, keep);
    if (status == CLI_OK)
        status = request_bind(j, q);
    if (status == CLI_OK && !check_destinations(j, q->run))
        status = CLI_BAD_INPUT;
    if (status == CLI_OK)
        status = make_ready(t);
    if (status == CLI_OK)
        status = request_execute(j, q);
    return status == CLI_NO_DEVICE ? CLI_DEVICE_FAILED : status; /* there was one */
}

static int run_line(struct turn *t, bool keep)
{
    const struct lines *l = t->l;
    if (l->too_long) {
        diag_error(t->q.d, SPAN_NONE, "the line has more than %d bytes", LINE_MOST);
        return CLI_BAD_INPUT;
    }
    if (!line_read(t->q.a, l->text, l->len, &t->words, t->q.d))
        return CLI_BAD_INPUT;
    t->answer.skipped = !t->words.args.n && !t->words.kernel;
    return t->answer.skipped ? CLI_OK : run_words(t, keep);
}

static void begin_turn(struct turn *t)
{
    struct job *j = t->l->j;
    t->q = (struct request){.a = arena_new(), .stdin_user = "the lines"};
    arena_overcommit(t->q.a, j->device_options.overcommit);
    t->q.d = diags_new(t->q.a);
    t->q.said = buf_in(t->q.a);
    t->q.talk = j->json ? NULL : stderr;
    t->answer = (struct answer){.line = t->l->number};
}

static void end_turn(struct turn *t)
{
    if (t->q.run)
        run_discard_outputs(t->q.run);
    arena_free(t->q.a);
}

static bool keeps_any(const struct job *j)
{
    return j->keep && !keep_is_empty(j->keep);
}

/* One try at the line, in an arena of its own. */
static void attempt(struct turn *t, bool keep)
{
    struct job *j = t->l->j;
    begin_turn(t);
    *t->failure = '\0';
    if (setjmp(*arena_guard(t->q.a)) == 0) {
        t->answer.status = run_line(t, keep);
        arena_unguard(t->q.a);
    } else {
        snprintf(t->failure, sizeof t->failure, "%s", arena_failure(t->q.a));
        t->kept |= keeps_any(j);
        end_turn(t);
        job_close(j); /* it has memory that nobody knows of any more */
        begin_turn(t);
        diag_error(t->q.d, SPAN_NONE, "not enough memory: %s", t->failure);
        t->answer.status = CLI_BAD_INPUT;
    }
    t->kept |= keeps_any(j);
    /* a kernel's fault is the end of a GPU's context, and of nothing on the simulator */
    if (j->device.ops == &cuda_device &&
        (t->q.device == DEVICE_FAILED || t->q.device == DEVICE_FAULT))
        job_close(j);
    if (!*j->stop)
        cli_catch_signals(&j->cli, NULL);
}

/* Whether a process that keeps nothing might have had the memory. */
static bool lacks_memory(const struct turn *t)
{
    return *t->failure || t->q.device == DEVICE_FAILED || (t->q.run && t->q.run->memory.lacking);
}

/* The line, in two tries where memory is short. An output whose reader is gone is an error of the
 * line, and no signal. */
static void try_line(struct turn *t)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;
    struct job *j = t->l->j;
    t->kept = keeps_any(j);
    sigaction(SIGPIPE, &ignore, &before);
    attempt(t, true);
    if (t->answer.status != CLI_OK && t->kept && lacks_memory(t) && !*j->stop) {
        end_turn(t);
        job_close(j);
        attempt(t, false);
        job_close(j);
    }
    sigaction(SIGPIPE, &before, NULL);
}

/* False when it is the last line that can be answered. */
static bool do_line(struct lines *l)
{
    struct job *j = l->j;
    struct turn t = {.l = l};
    try_line(&t);
    if (t.answer.status > l->worst)
        l->worst = t.answer.status;
    if (t.q.d->list.n)
        print_diags(j, t.q.d, arena_printf(t.q.a, "<stdin>:%zu", l->number));
    struct buf text = buf_in(t.q.a);
    answer_print(j, &t.q, &t.answer, &text);
    const bool sent = send_answer(j, buf_text(&text), text.len);
    end_turn(&t);
    if (!sent && l->worst == CLI_OK)
        l->worst = CLI_BAD_INPUT;
    return sent && !*j->stop;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* A mistake in the command line's names would be one of every line. */
static int check_names(struct job *j)
{
    if (!j->kernel && j->program.contracts->v.n != 1)
        return CLI_OK; /* the lines say which */
    const struct contract *c = launchable_kernel(&j->program, j->kernel, j->d);
    return c && run_check_names(run_new(j->a, c, j->d), j->args.v, j->args.n) ? CLI_OK
                                                                              : CLI_BAD_INPUT;
}

/* What was said so far is said before the first line. */
static void tell_start(struct job *j, const char *why)
{
    if (why && !j->quiet)
        cli_note(&j->cli, "%s; running on the simulator", why);
    if (j->d->list.n)
        print_diags(j, j->d, j->cli.program->name);
    j->d = diags_new(j->a);
}

int lines_run(struct job *j)
{
    struct lines *l = ARENA_NEW(j->a, struct lines);
    const char *why;
    l->j = j;
    l->text = arena_alloc(j->a, LINE_MOST);
    int status = job_prepare(j, &why);
    if (status == CLI_OK)
        status = check_names(j);
    if (status == CLI_OK)
        status = open_device(l, j->d, true);
    if (status == CLI_OK && !take_stdout(j))
        status = CLI_BAD_INPUT;
    if (status != CLI_OK)
        return status;
    tell_start(j, why);
    while (next_line(l, &status) && do_line(l))
        ;
    if (j->dev && !*j->stop && j->device.ops->finish(j->dev, j->d) == DEVICE_FAULT)
        status = job_status(j, DEVICE_FAULT);
    job_close(j);
    if (j->check && !j->quiet && l->worst <= CLI_CHECK_FAILED)
        job_report_unused(j, l->launched.v, l->launched.n);
    return l->worst > status ? l->worst : status;
}
