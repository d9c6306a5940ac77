/* --tune and --tuned: schedules by search, and from the cache. */
#include <config.h>

#include "session.h"

#include "base/json.h"
#include "bench/tune.h"

bool read_cache(struct session *s)
{
    if (!s->tune && !s->tuned)
        return true;
    if (!s->cache_file)
        s->cache_file = tuned_path(s->a, s->d);
    if (s->cache_file)
        tuned_read(s->a, s->cache_file, &s->cache, s->d);
    return s->cache_file != NULL;
}

static const struct source *schedule_source(struct session *s, const char *text)
{
    return text ? source_new(s->a, "(tuned)", text, strlen(text)) : NULL;
}

const char *problem_text(struct session *s, const struct bench_point *p)
{
    const char *values = bench_point_text(s->a, p);
    return arena_printf(s->a, "%s%s%s", s->bench.kernel.source.kernel, *values ? " " : "", values);
}

/* The schedule that the cache has for a problem, also for one near it. */
static void use_cache(struct session *s, const struct bench_point *p)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct code_source *src = &s->bench.kernel.source;
    struct code code;
    const char *why = "there is no code for it";
    bool exact = false;
    const struct tuned_entry *e = NULL;
    if (code_read(a, src, p, &code, d))
        e = tuned_apply(a, &s->cache, code.spec, code.defines.v, code.defines.n, src->target,
                        s->dry_run ? NULL : s->dev.info.name, &exact, &why);
    src->schedule = schedule_source(s, e ? e->schedule : NULL);
    if (!e)
        cli_note(&s->cli, "%s: the built-in schedule: %s", problem_text(s, p), why);
    else
        cli_note(&s->cli, "%s: %s%s", problem_text(s, p),
                 e->schedule ? e->schedule : "the built-in schedule",
                 exact ? "" : ", of the nearest problem in the cache");
    arena_free(a);
}

static void tell(void *ctx, const char *doing, size_t done, size_t n)
{
    struct session *s = ctx;
    snprintf(s->doing, sizeof s->doing, "%s %zu of %zu schedules", doing, done, n);
    if (done == 0)
        snprintf(s->doing, sizeof s->doing, "%s %zu schedules", doing, n);
    s->progress.detail = s->doing;
    progress_step(&s->progress, s->at);
}

static bool search(struct session *s, const struct bench_point *p, struct tuned_entry *e)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    const struct tune_options o = {.threads = s->threads, .progress = tell, .progress_ctx = s};
    struct tune_result r;
    bool good = tune_search(a, &s->bench, p, &o, &r, d);
    progress_clear(&s->progress);
    s->progress.detail = NULL;
    worse(s, cli_report(&s->cli, d));
    if (good) {
        e->device = s->dev.info.name;
        e->schedule = r.schedule ? arena_strdup(s->a, r.schedule) : NULL;
        e->seconds = r.seconds;
        e->builtin_seconds = r.builtin_seconds;
        e->tried = r.tried;
    } else {
        if (r.error)
            (r.device_failed ? cli_error : cli_warning)(&s->cli, "%s: not tuned: %s",
                                                        problem_text(s, p), r.error);
        worse(s, r.device_failed ? CLI_DEVICE_FAILED : CLI_OK);
    }
    arena_free(a);
    return good;
}

/* In the cache's file, and in what was read of it. */
static void keep(struct session *s, const struct tuned_entry *e)
{
    struct diags *d = diags_new(s->a);
    tuned_add(s->a, s->cache_file, e, d);
    worse(s, cli_report(&s->cli, d));
    *VEC_PUSH(s->a, &s->cache.v) = *e;
}

/* The winner for a problem: the cache's, where it is of this very problem and GPU, or a new
 * search's. */
static void find_winner(struct session *s, const struct bench_point *p)
{
    struct diags *d = diags_new(s->a);
    struct code_source *src = &s->bench.kernel.source;
    struct code code;
    src->schedule = NULL;
    if (!code_read(s->a, src, p, &code, d))
        return; /* its row says why */
    struct tuned_entry e = tuned_entry_of(s->a, code.spec, src->target);
    /* dimensions that are arguments are part of the problem, if not of the code */
    for (size_t i = 0; i < p->values.n && e.generic; i++) {
        const struct bench_value *v = &p->values.v[i];
        bool dim = false, fixed = false;
        for (size_t k = 0; k < code.spec->dims.n; k++)
            dim |= strcmp(code.spec->dims.v[k]->name, v->name) == 0;
        for (size_t k = 0; k < e.dims.n; k++)
            fixed |= strcmp(e.dims.v[k].name, v->name) == 0;
        if (dim && !fixed)
            *VEC_PUSH(s->a, &e.dims) = (struct spec_define){v->name, (uint64_t)v->i, DT_VOID};
    }
    const struct tuned_entry *old = s->retune ? NULL : tuned_find(&s->cache, &e, s->dev.info.name);
    if (old && old->schedule &&
        !tuned_fits(s->a, code.spec, code.defines.v, code.defines.n, old->schedule, src->target)) {
        cli_warning(&s->cli, "%s: the cache's %s does not fit here; searching again",
                    problem_text(s, p), old->schedule);
        old = NULL;
    }
    if (old)
        e = *old;
    else if (search(s, p, &e))
        keep(s, &e);
    else
        return;
    src->schedule = schedule_source(s, e.schedule);
    cli_note(&s->cli, "%s: %s, %.3g times the speed of the built-in choice (%s%u schedules)",
             problem_text(s, p), e.schedule ? e.schedule : "the built-in schedule",
             e.builtin_seconds / e.seconds, old ? "from the cache, of " : "of ", e.tried);
}

void choose_schedule(struct session *s, const struct bench_point *p)
{
    if (s->tune)
        find_winner(s, p);
    else if (s->tuned)
        use_cache(s, p);
}

void plan_tune(struct session *s, const struct bench_point *p)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct buf out = buf_in(a);
    struct tune_list list;
    if (tune_list(a, &s->bench.kernel.source, p, s->dev.info.multiprocessors, &list, d)) {
        struct json j = json_in(&out, 0);
        if (s->format == REPORT_JSON) {
            json_object(&j, NULL);
            json_str(&j, "name", "tune");
            json_str(&j, "kernel", s->bench.kernel.source.kernel);
            bench_json_values(&j, p);
            json_array(&j, "schedules");
            for (size_t i = 0; i < list.v.n; i++)
                json_str(&j, NULL, list.v.v[i].schedule);
            json_end(&j);
            json_end(&j);
            buf_putc(&out, '\n');
        } else {
            buf_printf(&out, "tune: %s: %zu schedules and the built-in one\n", problem_text(s, p),
                       list.v.n);
            for (size_t i = 0; i < list.v.n; i++)
                buf_printf(&out, "  %s\n", list.v.v[i].schedule);
        }
        write_text(s, &out, &out);
    }
    worse(s, cli_report(&s->cli, d));
    arena_free(a);
}
