#include <config.h>

#include "bench/tune.h"

#include <stdlib.h>

#include "bench/modules.h"
#include "lower/lower.h"

/* ---- what there is to try ---- */

static uint64_t hash_of(const struct source *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < text->len; i++)
        h = (h ^ (unsigned char)text->text[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* What schedules are listed for. */
struct problem {
    const struct code_source *src;
    const struct bench_point *p;
    unsigned multiprocessors;
};

/* The code under a schedule; NULL: there is none. */
static const struct code *code_under(struct arena *a, const struct problem *of,
                                     const char *schedule)
{
    struct code_source src = *of->src;
    struct code *code = ARENA_NEW(a, struct code);
    src.schedule = source_new(a, "(candidate)", schedule, strlen(schedule));
    return code_make(a, &src, of->p, of->multiprocessors, code, diags_new(a)) ? code : NULL;
}

/* It does not fit; or it is one of the general ones, which would only take long: the emitter's own
 * choice, `own`, is another. */
static bool is_strategy_refused(const struct problem *of, const char *strategy, uint64_t own,
                                bool others)
{
    struct arena *a = arena_new();
    const struct code *code = code_under(a, of, arena_printf(a, "{strategy: %s}", strategy));
    bool general = strcmp(strategy, "naive") == 0 || (strcmp(strategy, "map") == 0 && others);
    bool refused = !code || (general && hash_of(code->ptx) != own);
    arena_free(a);
    return refused;
}

bool tune_list(struct arena *a, const struct code_source *src, const struct bench_point *p,
               unsigned multiprocessors, struct tune_list *out, struct diags *d)
{
    const struct problem of = {src, p, multiprocessors};
    VEC(uint64_t) seen = {0};
    struct code *own = ARENA_NEW(a, struct code);
    const char *strategy = "";
    bool refused = false;
    *out = (struct tune_list){.builtin = own};
    if (!code_make(a, src, p, multiprocessors, own, d))
        return false;
    *VEC_PUSH(a, &seen) = hash_of(own->ptx);
    const struct lower_candidates all = lower_candidates(a, own->spec, src->target);
    for (size_t i = 0; i < all.v.n; i++) {
        const struct lower_candidate *c = &all.v.v[i];
        if (strcmp(c->strategy, strategy) != 0)
            refused = is_strategy_refused(&of, c->strategy, seen.v[0], out->v.n > 0);
        strategy = c->strategy;
        const struct code *code = refused ? NULL : code_under(a, &of, c->text);
        uint64_t h = code ? hash_of(code->ptx) : 0;
        bool known = !code;
        for (size_t k = 0; k < seen.n; k++)
            known |= seen.v[k] == h;
        if (known)
            continue;
        *VEC_PUSH(a, &seen) = h;
        *VEC_PUSH(a, &out->v) = (struct tune_candidate){c->text, code};
    }
    return true;
}

/* ---- the search ---- */

/* Rounds are short beside the time in which the clock follows the load (measure.h). */
enum { FINALISTS = 6, FIRST_ROUNDS = 3, LAST_ROUNDS = 18, DUEL_ROUNDS = 25, DUEL_WON = 18 };
static const double SHORT = 2e-3, LONG = 4e-3; /* seconds of a round of each: of heats, then */
static const double WARM = 0.25;   /* seconds of work before the first, for the clock to rise */
static const double HOPELESS = 3;  /* times as long as the emitter's own choice */
static const double BEHIND = 1.25; /* times as long as the fastest of a heat */
static const double WORTH = 1.005; /* what a schedule must gain to be said */

struct search {
    struct arena *a;
    const struct bench *b;
    const struct bench_point *p;
    const struct tune_options *o;
    struct tune_result *out;
    struct diags *d;
    struct rival *rival; /* those that are there, the emitter's own choice first */
    struct measured *m;  /* of those still in; m[0] is rival[0] */
    size_t n;
};

static void tell(const struct search *s, const char *doing, size_t done, size_t n)
{
    if (s->o->progress)
        s->o->progress(s->o->progress_ctx, doing, done, n);
}

static bool is_interrupted(const struct search *s)
{
    return *s->b->data.interrupted != 0;
}

static bool fail(struct search *s, const struct rival *v, enum rival_status status)
{
    s->out->error = v->why ? v->why : "it failed";
    s->out->device_failed = status == RIVAL_FAILED;
    return false;
}

/* What failed was one contender's own: it found no memory left, say. */
static bool device_answers(const struct search *s)
{
    const struct bench_device *b = s->b->dev;
    return b->queue->wait(b->dev, NULL, diags_new(s->a)) == DEVICE_OK;
}

/* Prepares a contender, whose code is emitted and compiled already, and checks one execution of
 * it. */
static enum rival_status enter(struct search *s, size_t i, const char *schedule,
                               const struct code *code, struct modules *modules)
{
    struct rival *v = &s->rival[i];
    struct diags *own = diags_new(s->a);
    *v = (struct rival){.ops = &rival_kernel,
                        .name = schedule ? schedule : "built-in",
                        .a = s->a,
                        .dev = s->b->dev,
                        .made = code,
                        .point = s->p,
                        .data_options = s->b->data,
                        .subject = &s->rival[0],
                        .same_spec = true,
                        .peer = s->rival,
                        .npeer = i,
                        .lender = i ? &s->rival[0] : NULL};
    enum device_status compiled = modules_take(modules, i, &v->module, own);
    enum rival_status status;
    if (is_interrupted(s))
        status = RIVAL_ABSENT;
    else if (compiled != DEVICE_OK)
        status = rival_failed(v, own, compiled == DEVICE_REFUSED ? RIVAL_REFUSED : RIVAL_FAILED);
    else
        status = v->ops->prepare(v, own);
    if (status == RIVAL_OK && v->launches == 0) {
        v->why = "nothing is launched: a dimension is 0";
        status = RIVAL_ABSENT;
    }
    if (status == RIVAL_OK)
        status = bench_check(v, own);
    bool refused = compiled == DEVICE_REFUSED || (status == RIVAL_FAILED && device_answers(s));
    if (i && refused && !is_interrupted(s)) {
        diag_warning(s->d, SPAN_NONE, "schedule %s is left out: %s", v->name, v->why);
        status = RIVAL_REFUSED;
    }
    if (i == 0 || status == RIVAL_FAILED)
        diags_append(s->d, own);
    return status;
}

static void take_in(struct search *s, size_t i)
{
    s->m[s->n++] = (struct measured){.rival = &s->rival[i], .status = RIVAL_OK};
}

/* All that can run and are right; false: the emitter's own choice is not, or the device failed. */
static bool enter_all(struct search *s, const struct tune_list *list, struct modules *modules)
{
    enum rival_status status = enter(s, 0, NULL, list->builtin, modules);
    if (is_interrupted(s))
        return false;
    if (status != RIVAL_OK)
        return fail(s, &s->rival[0], status);
    take_in(s, 0);
    for (size_t i = 0; i < list->v.n && !is_interrupted(s); i++) {
        struct rival *v = &s->rival[i + 1];
        tell(s, "compiling", i + 1, list->v.n + 1);
        status = enter(s, i + 1, list->v.v[i].schedule, list->v.v[i].code, modules);
        if (status == RIVAL_OK) {
            take_in(s, i + 1);
            continue;
        }
        v->ops->release(v);
        if (status == RIVAL_FAILED)
            return fail(s, v, status);
        s->out->refused += status != RIVAL_WRONG;
        s->out->wrong += status == RIVAL_WRONG;
        if (status == RIVAL_WRONG)
            diag_warning(s->d, SPAN_NONE, "schedule %s gives wrong results: %s", v->name, v->why);
    }
    return !is_interrupted(s);
}

/* The same when nothing is compiled any more. */
static bool compile_all(struct search *s, const struct tune_list *list)
{
    const struct source **ptx = ARENA_ARRAY(s->a, list->v.n + 1, const struct source *);
    ptx[0] = list->builtin->ptx;
    for (size_t i = 0; i < list->v.n; i++)
        ptx[i + 1] = list->v.v[i].code->ptx;
    tell(s, "compiling", 0, list->v.n + 1);
    struct modules *modules =
        modules_begin(s->a, s->b->dev, ptx, list->v.n + 1, s->o->threads, s->b->data.interrupted);
    bool good = enter_all(s, list, modules);
    modules_end(modules);
    return good;
}

static bool device_failed(struct search *s, struct measured *m)
{
    m->rival->why = m->why;
    return fail(s, m->rival, m->status);
}

/* A few executions of each: who is hopeless leaves. What disturbs the first try does not disturb
 * the second. */
static bool sift(struct search *s)
{
    double own = 0;
    size_t n = 0;
    for (size_t i = 0; i < s->n && !is_interrupted(s); i++) {
        struct measured *m = &s->m[i];
        bool hopeless = true;
        tell(s, "timing", i, s->n);
        for (int k = 0; k < 2 && hopeless; k++) {
            double seconds;
            if (!measure_pilot(m, &seconds, s->d)) {
                /* the rest are released by the caller */
                memmove(s->m + n, s->m + i, (s->n - i) * sizeof *s->m);
                s->n -= i - n;
                return device_failed(s, &s->m[n]);
            }
            if (i == 0)
                own = k == 0 || seconds < own ? seconds : own;
            else
                hopeless = seconds > HOPELESS * own;
        }
        if (i > 0 && hopeless)
            m->rival->ops->release(m->rival);
        else
            s->m[n++] = *m;
    }
    s->n = n;
    return !is_interrupted(s);
}

static int by_median(const void *a, const void *b)
{
    const struct measured *x = a, *y = b;
    return (x->median > y->median) - (x->median < y->median);
}

/* The last leaves. */
static void drop(struct search *s)
{
    struct rival *v = s->m[--s->n].rival;
    v->ops->release(v);
}

/* Rounds of the first n that are left. */
static bool rounds(struct search *s, size_t n, unsigned number, double seconds)
{
    const struct measure_options o = {
        .runs = number, .round_seconds = seconds, .interrupted = s->b->data.interrupted};
    struct conditions c;
    measure_begin(s->a, s->m, n, &o, s->d);
    bool good = measure_rounds(s->a, s->m, n, &o, &c, s->d);
    measure_end(s->m, n);
    for (size_t i = 0; i < n; i++)
        if (s->m[i].status != RIVAL_OK)
            return device_failed(s, &s->m[i]);
    return good;
}

/* Rounds of all that are left; the slowest leave: `keep` and the emitter's own choice stay, if they
 * are not far behind. */
static bool heat(struct search *s, unsigned number, double seconds, size_t keep)
{
    tell(s, "timing", 0, s->n);
    if (!rounds(s, s->n, number, seconds))
        return false;
    qsort(s->m + 1, s->n - 1, sizeof *s->m, by_median);
    double best = s->m[0].median;
    if (s->n > 1 && s->m[1].median < best)
        best = s->m[1].median;
    while (s->n > 1 && (s->n > keep || s->m[s->n - 1].median > BEHIND * best))
        drop(s);
    return true;
}

static bool run_heats(struct search *s)
{
    for (unsigned number = FIRST_ROUNDS; s->n > FINALISTS; number *= 2)
        if (!heat(s, number, SHORT, s->n / 2 > FINALISTS ? s->n / 2 : FINALISTS))
            return false;
    return heat(s, LAST_ROUNDS, LONG, s->n);
}

/* Does the fastest of the others beat the emitter's own choice, m[0]? */
static bool is_worth(const struct search *s)
{
    return s->n > 1 && s->m[0].median > s->m[1].median * WORTH;
}

/* The two alone: the best of many may have been lucky. */
static bool duel(struct search *s)
{
    unsigned won = 0;
    while (s->n > 2)
        drop(s);
    tell(s, "timing", 0, s->n);
    if (!rounds(s, 2, DUEL_ROUNDS, LONG))
        return false;
    for (unsigned i = 0; i < DUEL_ROUNDS; i++)
        won += s->m[1].sample[i] < s->m[0].sample[i];
    if (won < DUEL_WON)
        drop(s);
    return true;
}

static void name_winner(struct search *s)
{
    const struct measured *own = &s->m[0], *best = is_worth(s) ? &s->m[1] : own;
    s->out->builtin_seconds = own->median;
    s->out->seconds = best->median;
    s->out->schedule = best == own ? NULL : best->rival->name;
}

static bool find_fastest(struct search *s)
{
    enum { WARM_ROUNDS = 10 };
    s->out->tried = (unsigned)s->n;
    return rounds(s, 1, WARM_ROUNDS, WARM / WARM_ROUNDS) && sift(s) && run_heats(s) &&
           (!is_worth(s) || duel(s));
}

bool tune_search(struct arena *a, const struct bench *b, const struct bench_point *p,
                 const struct tune_options *o, struct tune_result *out, struct diags *d)
{
    struct search s = {.a = a, .b = b, .p = p, .o = o, .out = out, .d = d};
    struct tune_list list;
    *out = (struct tune_result){0};
    if (!tune_list(a, &b->kernel.source, p, b->dev->info.multiprocessors, &list, d)) {
        out->error = "there is no code for it";
        return false;
    }
    s.rival = ARENA_ARRAY(a, list.v.n + 1, struct rival);
    s.m = ARENA_ARRAY(a, list.v.n + 1, struct measured);
    bool good = compile_all(&s, &list) && find_fastest(&s);
    if (good)
        name_winner(&s);
    for (size_t i = s.n; i > 0; i--)
        s.m[i - 1].rival->ops->release(s.m[i - 1].rival);
    if (s.n == 0 && s.rival[0].ops)
        s.rival[0].ops->release(&s.rival[0]);
    return good;
}
