/* Which kernels and which problems a run has. */
#include <config.h>

#include "session.h"

static const char *suite_type(const struct suite *suite, const char *kernel)
{
    for (size_t i = 0; i < suite->nkernel; i++)
        if (strcmp(suite->kernel[i].name, kernel) == 0)
            return suite->kernel[i].type;
    return "";
}

/* What repeats a row, but for the values of its problem. */
static void make_command(struct session *s, const struct job *job)
{
    struct buf b = buf_in(s->a);
    const struct bench *e = &s->bench;
    buf_printf(&b, "kaio-bench -d %s:%d -t %s", s->dry_run ? "cuda" : s->dev.info.kind,
               s->dev.info.ordinal, e->kernel.source.target->name);
    if (s->kernel)
        buf_printf(&b, " --kernel=%s", s->kernel);
    if (e->kernel.source.generic)
        buf_puts(&b, " --generic");
    for (size_t i = 0; i < s->vs.n; i++) {
        buf_puts(&b, " --vs=");
        buf_shell_word(&b, s->vs.v[i]);
    }
    if (!e->burst.least)
        buf_printf(&b, " --runs=%u", e->burst.runs);
    buf_printf(&b, " --time-per-round=%g --seed=%llu --sample=%llu", e->burst.round_seconds * 1e3,
               (unsigned long long)e->data.seed, (unsigned long long)e->data.sample);
    if (e->sustained > 0)
        buf_printf(&b, " --sustained=%g", e->sustained);
    if (s->tune || s->tuned) {
        buf_puts(&b, " --tuned=");
        buf_shell_word(&b, s->cache_file);
    }
    buf_putc(&b, ' ');
    if (s->suite)
        buf_printf(&b, "--suite=%s --types=%s", s->suite->name, suite_type(s->suite, job->kernel));
    else
        buf_shell_word(&b, e->path);
    s->bench.command = buf_text(&b);
}

/* ---- jobs ---- */

/* The spec of a job as it is without defines. */
static const struct spec *job_spec(struct session *s, const struct job *job, struct diags *d)
{
    struct spec_file *f = spec_read(s->a, job->text, NULL, 0, d);
    return f ? spec_find(f, job->kernel) : NULL;
}

static void add_job(struct session *s, const struct source *text, const char *kernel,
                    const struct sweep_points *points)
{
    struct job *job = VEC_PUSH(s->a, &s->jobs);
    *job = (struct job){text, kernel, s->points.v.n, s->points.v.n + points->v.n};
    for (size_t i = 0; i < points->v.n; i++)
        *VEC_PUSH(s->a, &s->points.v) = points->v.v[i];
}

static bool add_spec_job(struct session *s)
{
    struct sweep_points points;
    const struct source *text = io_read(s->a, s->d, s->bench.path, IO_TEXT_LIMIT);
    struct spec_file *f = text ? spec_read(s->a, text, NULL, 0, s->d) : NULL;
    const struct spec *spec = f ? code_choose(f, s->bench.path, s->kernel, s->d) : NULL;
    if (!spec || !sweep_multiply(s->a, &s->sweep, spec, &points, s->d))
        return false;
    add_job(s, text, spec->name, &points);
    return true;
}

static bool is_wanted(const char *list, const char *type)
{
    size_t n = strlen(type);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncmp(p, type, n) == 0 && (p[n] == ',' || !p[n]))
            return true;
    return !list;
}

/* Words of --types that the suite does not have. */
static bool check_types(struct session *s)
{
    const char *list = s->types;
    for (const char *p = list; p;) {
        size_t n = strcspn(p, ",");
        bool known = false;
        struct buf all = buf_in(s->a);
        for (size_t i = 0; i < s->suite->nkernel; i++) {
            const char *type = s->suite->kernel[i].type;
            known |= strlen(type) == n && strncmp(type, p, n) == 0;
            if (suite_begins_type(s->suite, i))
                buf_printf(&all, "%s%s", i ? ", " : "", type);
        }
        if (!known)
            return diag_error(s->d, SPAN_NONE, "suite '%s' has no type '%.*s'; it has %s",
                              s->suite->name, (int)n, p, buf_text(&all));
        p = p[n] ? p + n + 1 : NULL;
    }
    return true;
}

/* Of the cases that are asked for those of this kernel; false: it has none of them. */
static bool take_cases(struct session *s, const struct spec *spec, struct sweep *own)
{
    memset(&own->cases, 0, sizeof own->cases);
    for (size_t i = 0; i < s->sweep.cases.n; i++)
        for (size_t k = 0; k < spec->cases.n; k++)
            if (strcmp(spec->cases.v[k].name, s->sweep.cases.v[i]) == 0)
                *VEC_PUSH(s->a, &own->cases) = s->sweep.cases.v[i];
    return own->cases.n > 0;
}

/* The suite's own problems, or those that a sweep says. */
static bool add_suite_jobs(struct session *s)
{
    if (!check_types(s))
        return false;
    for (size_t i = 0; i < s->suite->nkernel; i++) {
        const struct suite_kernel *k = &s->suite->kernel[i];
        struct sweep_points points;
        if (!is_wanted(s->types, k->type))
            continue;
        const struct source *text =
            source_new(s->a, arena_printf(s->a, "%s.yaml", k->name), k->text, strlen(k->text));
        if (s->suite->problem)
            suite_points(s->a, s->suite, &points);
        const struct job job = {.text = text, .kernel = k->name};
        const struct spec *spec = job_spec(s, &job, s->d);
        bool swept = s->sweep.axes.n || s->sweep.bytes || !s->suite->problem;
        struct sweep own = s->sweep;
        if (!spec)
            return false;
        if (s->sweep.cases.n && !take_cases(s, spec, &own))
            continue;
        if (swept && !sweep_multiply(s->a, &own, spec, &points, s->d))
            return false;
        add_job(s, text, k->name, &points);
    }
    return s->jobs.n || diag_error(s->d, SPAN_NONE, "suite '%s' has no case '%s'", s->suite->name,
                                   s->sweep.cases.v[0]);
}

bool begin_job(struct session *s, const struct job *job)
{
    struct bench *b = &s->bench;
    b->kernel.ops = &rival_kernel;
    b->kernel.name = "kaio";
    b->kernel.same_spec = true;
    b->kernel.source.text = job->text;
    b->kernel.source.kernel = job->kernel;
    b->kernel.source.define = s->defines.v;
    b->kernel.source.ndefine = s->defines.n;
    b->kernel.source.schedule = NULL;
    b->nrival = 0;
    if (s->tune || s->tuned) {
        b->rival[b->nrival] = b->kernel;
        b->rival[b->nrival++].name = "built-in";
    }
    for (size_t i = 0; i < s->vs.n; i++)
        if (!bench_add_rival(s->a, b, s->vs.v[i], s->d))
            return false;
    make_command(s, job);
    return true;
}

static bool begin_plot(struct session *s, const struct spec *spec)
{
    s->plot = plot_begin(s->a, &s->bench, &s->sweep, &s->points, spec);
    return !s->plot_file || s->plot.x ||
           diag_error(s->d, SPAN_NONE, "--plot has no axis: no number is swept");
}

bool make_problems(struct session *s)
{
    if (s->d->nerror || !(s->suite ? add_suite_jobs(s) : add_spec_job(s)) ||
        !begin_job(s, &s->jobs.v[0]))
        return false;
    const struct job *job = &s->jobs.v[0];
    const struct spec *spec = job_spec(s, job, diags_new(s->a));
    enum report_unit unit = report_unit_of(s->a, spec, &s->points.v.v[0]);
    bool several = s->suite != NULL;
    enum report_format format = (enum report_format)s->format;
    s->table = report_begin(s->a, REPORT_TABLE, &s->bench, &s->points, unit, several);
    s->report = report_begin(s->a, format, &s->bench, &s->points, unit, several);
    if (!begin_plot(s, spec))
        return false;
    if (!s->baseline_file)
        return true;
    const struct source *base = io_read(s->a, s->d, s->baseline_file, IO_TEXT_LIMIT);
    return base && baseline_read(s->a, base, &s->baseline, s->d);
}

/* ---- plans ---- */

/* PTX under a name that tells the problem; NULL when it can't be written. */
static const char *keep_ptx(struct session *s, const struct code *c, const struct bench_rival *who,
                            const struct bench_point *p, struct diags *d)
{
    struct buf name = buf_in(c->a);
    buf_printf(&name, "%s/%s", s->keep, c->spec->name);
    for (size_t i = 0; i < p->values.n; i++)
        buf_printf(&name, "-%s=%s", p->values.v[i].name, p->values.v[i].text);
    if (who != &s->bench.kernel)
        buf_printf(&name, "-vs%zu", (size_t)(who - s->bench.rival) + 1);
    buf_puts(&name, ".ptx");
    struct io_out *out = io_create(c->a, d, buf_text(&name));
    if (!out)
        return NULL;
    io_write(out, c->ptx->text, c->ptx->len);
    return io_commit(out, d) ? buf_text(&name) : NULL;
}

/* Emits what would be timed: for a dry run, and for --keep. */
static void plan_one(struct session *s, const struct bench_rival *who, const struct bench_point *p)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct code code;
    struct buf out = buf_in(a);
    struct bench_plan plan = {
        .who = who, .point = p, .code = &code, .kernel = &s->bench.kernel.source};
    bool library = who->ops != &rival_kernel;
    bool good = code_make(a, library ? &s->bench.kernel.source : &who->source, p,
                          s->dev.info.multiprocessors, &code, d);
    if (good && s->keep && !library)
        good = (plan.ptx = keep_ptx(s, &code, who, p, d)) != NULL;
    if (good && s->format == REPORT_JSON)
        bench_plan_json(&plan, &out);
    else if (good)
        bench_plan_text(&plan, &out);
    if (s->dry_run)
        write_text(s, &out, &out);
    worse(s, cli_report(&s->cli, d));
    arena_free(a);
}

void plan_all(struct session *s)
{
    for (size_t j = 0; j < s->jobs.n && begin_job(s, &s->jobs.v[j]); j++)
        for (size_t i = s->jobs.v[j].begin; i < s->jobs.v[j].end && !*s->interrupted; i++) {
            cli_doing(problem_text(s, &s->points.v.v[i]));
            if (s->tune) {
                plan_tune(s, &s->points.v.v[i]);
                continue;
            }
            choose_schedule(s, &s->points.v.v[i]);
            plan_one(s, &s->bench.kernel, &s->points.v.v[i]);
            for (size_t k = 0; k < s->bench.nrival; k++)
                if (s->bench.rival[k].ops == &rival_kernel ||
                    (s->dry_run && s->bench.rival[k].ops != &rival_copy))
                    plan_one(s, &s->bench.rival[k], &s->points.v.v[i]);
        }
}
