/* Rows as they are measured: to the files, and against an earlier run. */
#include <config.h>

#include "session.h"

#include <errno.h>
#include <sys/stat.h>

bool open_outputs(struct session *s)
{
    s->to_file = s->output && strcmp(s->output, "-") != 0;
    s->to_stdout = !s->to_file || s->format != REPORT_TABLE;
    if (s->keep && mkdir(s->keep, 0777) != 0 && errno != EEXIST)
        return diag_error(s->d, SPAN_NONE, "cannot make '%s': %s", s->keep, strerror(errno));
    if (s->plot_file && !s->dry_run && !(s->plot_out = io_create(s->a, s->d, s->plot_file)))
        return false;
    if (!s->to_file)
        return true;
    if (s->format != REPORT_JSON || s->dry_run)
        return (s->out = io_create(s->a, s->d, s->output)) != NULL;
    s->append = fopen(s->output, "ae");
    if (!s->append)
        return diag_error(s->d, SPAN_NONE, "cannot open '%s': %s", s->output, strerror(errno));
    return true;
}

static void write_plot(struct session *s)
{
    struct buf svg = buf_in(s->a);
    plot_print(&s->plot, &svg);
    io_write(s->plot_out, buf_text(&svg), svg.len);
    io_commit(s->plot_out, s->d);
}

void close_outputs(struct session *s, bool good)
{
    if (s->plot_out && good)
        write_plot(s);
    else
        io_discard(s->plot_out);
    const bool failed = s->append && ferror(s->append);
    if ((s->append && fclose(s->append) != 0) || failed)
        diag_error(s->d, SPAN_NONE, "cannot write '%s'", s->output);
    if (s->out && good)
        io_commit(s->out, s->d);
    else
        io_discard(s->out);
}

void write_text(struct session *s, const struct buf *file, const struct buf *table)
{
    if (s->append) {
        fwrite(buf_text(file), 1, file->len, s->append);
        fflush(s->append);
    }
    if (s->out)
        io_write(s->out, buf_text(file), file->len);
    if (s->to_stdout)
        fwrite(buf_text(table), 1, table->len, stdout);
    fflush(stdout);
}

/* ---- timing ---- */

/* Against the row of the earlier run. */
static void compare(struct session *s, struct arena *a, const struct bench_row *row)
{
    const char *id = report_id(a, row);
    struct baseline_row *old = baseline_find(&s->baseline, id);
    if (!old) {
        cli_note(&s->cli, "the baseline has no %s", id);
        return;
    }
    old->met = true;
    if (row->error)
        return; /* which is failure enough */
    double ratio = old->median / row->result[0].median;
    if (strcmp(old->device, s->dev.info.name) != 0)
        cli_warning(&s->cli, "%s: the baseline is of another device, %s", id, old->device);
    if (ratio >= s->fail_below)
        return;
    cli_error(&s->cli, "%s: %s us, and %s us in the baseline: %.3f of its speed", id,
              report_us(a, row->result[0].median), report_us(a, old->median), ratio);
    worse(s, CLI_CHECK_FAILED);
}

/* Rows of these kernels that were not measured now. */
static void name_missing(struct session *s)
{
    for (size_t i = 0; i < s->baseline.v.n; i++) {
        const struct baseline_row *r = &s->baseline.v.v[i];
        bool ours = false;
        for (size_t k = 0; k < s->jobs.n; k++)
            ours |= strcmp(r->kernel, s->jobs.v[k].kernel) == 0;
        if (!r->met && ours)
            cli_note(&s->cli, "of the baseline this run has no %s", r->id);
    }
}

static bool is_new(struct session *s, const char *text)
{
    for (size_t i = 0; i < s->said.n; i++)
        if (strcmp(s->said.v[i], text) == 0)
            return false;
    *VEC_PUSH(s->a, &s->said) = arena_strdup(s->a, text);
    return true;
}

/* What holds for many rows, once: that a library is not here, that it is asked for something
 * less. */
static void say_of_rivals(struct session *s, const struct bench_row *row)
{
    for (size_t i = 1; i < row->nresult; i++) {
        const struct measured *m = &row->result[i];
        const char *note = m->status == RIVAL_OK ? m->rival->note : NULL;
        const char *why = m->status == RIVAL_ABSENT ? m->why : NULL;
        const char *name = row->bench->rival[i - 1].name;
        if (why && is_new(s, arena_printf(s->a, "%s: %s", name, why)))
            cli_warning(&s->cli, "%s: %s", name, why);
        if (note && is_new(s, arena_printf(s->a, "%s: %s", name, note)))
            cli_note(&s->cli, "%s: %s", name, note);
    }
}

static void done(void *ctx, const struct bench_row *row)
{
    struct session *s = ctx;
    struct arena *a = arena_new();
    struct buf table = buf_in(a), file = buf_in(a);
    progress_clear(&s->progress);
    report_row(&s->report, a, row, &file);
    report_row(s->to_file ? &s->table : &s->report, a, row, &table);
    write_text(s, &file, &table);
    cli_report(&s->cli, row->d);
    for (size_t i = 0; i < row->nresult; i++)
        if (row->result[i].rival->mistrust)
            cli_warning(&s->cli, "%s: the check of %s says little: %s", report_id(a, row),
                        row->result[i].rival->name, row->result[i].rival->mistrust);
    say_of_rivals(s, row);
    if (row->conditions.missing && !s->no_sensors) {
        s->no_sensors = row->conditions.missing;
        cli_note(&s->cli, "no clocks, power and temperature: %s", s->no_sensors);
    }
    means_add(s->a, &s->means, row);
    if (s->plot_file)
        plot_add(s->a, &s->plot, row);
    if (s->baseline_file)
        compare(s, a, row);
    worse(s, row->device_failed                                     ? CLI_DEVICE_FAILED
             : row->error && row->result[0].status == RIVAL_REFUSED ? CLI_BAD_INPUT
             : row->wrong                                           ? CLI_CHECK_FAILED
                                                                    : CLI_OK);
    arena_free(a);
}

static bool goes_on(const struct session *s)
{
    return !*s->interrupted && s->status < CLI_DEVICE_FAILED;
}

/* Beneath tables for people. */
static void write_means(struct session *s)
{
    struct buf text = buf_in(s->a), none = buf_in(s->a), lines = buf_in(s->a);
    bool file = s->format == REPORT_TABLE || s->format == REPORT_MD;
    means_text(&s->means, s->bench.sustained > 0, &lines);
    buf_printf(&text, "\n%s", buf_text(&lines));
    if (lines.len)
        write_text(s, file ? &text : &none, file || s->to_file ? &text : &none);
}

void time_all(struct session *s)
{
    struct buf head = buf_in(s->a), table = buf_in(s->a);
    report_head(&s->report, &head);
    report_head(s->to_file ? &s->table : &s->report, &table);
    write_text(s, &head, &table);
    progress_begin(&s->progress, "timing", s->points.v.n, false);
    for (size_t j = 0; j < s->jobs.n && begin_job(s, &s->jobs.v[j]); j++)
        for (size_t i = s->jobs.v[j].begin; i < s->jobs.v[j].end && goes_on(s); i++) {
            progress_step(&s->progress, s->at = i);
            cli_doing(problem_text(s, &s->points.v.v[i]));
            choose_schedule(s, &s->points.v.v[i]);
            if (!goes_on(s))
                break;
            bench_problem(&s->bench, &s->points.v.v[i], done, s);
        }
    progress_clear(&s->progress);
    if (s->suite)
        write_means(s);
    if (!*s->interrupted)
        name_missing(s);
}
