#include <config.h>

#include "job.h"

#include "base/finding.h"

#include <inttypes.h>

void print_outputs(const struct run *r, FILE *f)
{
    size_t width = 0;
    for (size_t i = 0; i < r->nparam; i++)
        if (run_is_output(&r->param[i]) && !r->param[i].destination && !r->param[i].unsourced &&
            strlen(r->param[i].sym->name) > width)
            width = strlen(r->param[i].sym->name);
    for (size_t i = 0; i < r->nparam; i++) {
        const struct run_param *p = &r->param[i];
        struct buf text = buf_in(r->arena);
        if (!run_is_output(p) || p->destination || p->unsourced)
            continue;
        buffer_print_summary(&p->result, &text);
        fprintf(f, "%-*s  %s\n", (int)width, p->sym->name, buf_text(&text));
    }
}

const char *print_scaled(struct arena *a, double v, const char *const units[], double first)
{
    int k = 0;
    v /= first;
    for (; units[k + 1] && v >= 999.5; k++)
        v /= 1000;
    return arena_printf(a, "%.3g %s", v, units[k]);
}

static const char *seconds_text(struct arena *a, double s)
{
    static const char *const units[] = {"ns", "us", "ms", "s", NULL};
    return print_scaled(a, s, units, 1e-9);
}

static const char *rate_text(struct arena *a, double r)
{
    static const char *const units[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", NULL};
    return print_scaled(a, r, units, 1);
}

void print_timing(struct arena *a, const struct run_timing *t, FILE *f)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", NULL};
    fprintf(f, "time  median %s  min %s  max %s  of %u", seconds_text(a, t->median),
            seconds_text(a, t->min), seconds_text(a, t->max), t->n);
    if (t->per_sample > 1)
        fprintf(f, " x %u", t->per_sample);
    fputc('\n', f);
    if (t->thread_instructions && t->median > 0)
        fprintf(f, "speed  %.3g thread-instructions/s  (%" PRIu64 " executed)\n",
                (double)t->thread_instructions / t->median, t->thread_instructions);
    if (t->copy_median <= 0 || t->median <= 0)
        return;
    double rate = (double)t->bytes / t->median, copy = (double)t->bytes / t->copy_median;
    fprintf(f, "bytes  %s  %s  copy %s  ratio %.3f\n", print_scaled(a, (double)t->bytes, units, 1),
            rate_text(a, rate), rate_text(a, copy), rate / copy);
}

void print_profile(const struct run *r, FILE *f)
{
    struct buf text = buf_in(r->arena);
    run_print_profile(r, &text);
    fwrite(buf_text(&text), 1, text.len, f);
}

bool print_plan(struct run *r, const struct ptx_module *m)
{
    struct buf text = buf_in(r->arena);
    if (!run_print_plan(r, m, &text))
        return false;
    fwrite(buf_text(&text), 1, text.len, stdout);
    return true;
}

void print_suppressions(const struct diags *d)
{
    struct buf all = buf_in(d->arena);
    for (size_t i = 0; i < d->list.n; i++) {
        const struct finding *f = d->list.v[i].finding;
        struct buf one = buf_in(d->arena);
        if (!f || strcmp(f->check, "fault") == 0)
            continue;
        suppress_write(f, &one);
        if (!strstr(buf_text(&all), buf_text(&one)))
            buf_puts(&all, buf_text(&one));
    }
    fputs(buf_text(&all), stdout);
}

void print_diags(const struct job *j, const struct diags *d, const char *name)
{
    struct buf text = buf_in(d->arena);
    if (j->json)
        diags_json(d, &text);
    else
        diags_format(d, name, j->cli.color_err, &text);
    fflush(stdout);
    fwrite(buf_text(&text), 1, text.len, stderr);
}
