#include <config.h>

#include "bench/tune.h"

#include <stdlib.h>

#include "lower/lower.h"

/* ---- what there is to try ---- */

static uint64_t hash_of(const struct source *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < text->len; i++)
        h = (h ^ (unsigned char)text->text[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* The hash of the code under a schedule (NULL: none is said); 0: there is no such code. */
static uint64_t code_hash(const struct code_source *from, const struct bench_point *p,
                          const char *schedule)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct code_source src = *from;
    struct code code;
    if (schedule)
        src.schedule = source_new(a, "(candidate)", schedule, strlen(schedule));
    uint64_t h = code_make(a, &src, p, &code, d) ? hash_of(code.ptx) : 0;
    arena_free(a);
    return h;
}

/* It does not fit; or it is one of the general ones, which would only take long: the emitter's own choice, `own`, is
 * another. */
static bool is_strategy_refused(struct arena *a, const struct code_source *src,
                                const struct bench_point *p, const char *strategy, uint64_t own,
                                bool others)
{
    uint64_t h = code_hash(src, p, arena_printf(a, "{strategy: %s}", strategy));
    bool general = strcmp(strategy, "naive") == 0 || (strcmp(strategy, "map") == 0 && others);
    return h == 0 || (general && h != own);
}

bool tune_list(struct arena *a, const struct code_source *src, const struct bench_point *p,
               struct tune_list *out, struct diags *d)
{
    VEC(uint64_t) seen = {0};
    struct code code;
    const char *strategy = "";
    bool refused = false;
    *out = (struct tune_list){0};
    if (!code_make(a, src, p, &code, d))
        return false;
    *VEC_PUSH(a, &seen) = hash_of(code.ptx);
    const struct lower_candidates all = lower_candidates(a, code.spec, src->target);
    for (size_t i = 0; i < all.v.n; i++) {
        const struct lower_candidate *c = &all.v.v[i];
        if (strcmp(c->strategy, strategy) != 0)
            refused = is_strategy_refused(a, src, p, c->strategy, seen.v[0], out->v.n > 0);
        strategy = c->strategy;
        uint64_t h = refused ? 0 : code_hash(src, p, c->text);
        bool known = h == 0;
        for (size_t k = 0; k < seen.n; k++)
            known |= seen.v[k] == h;
        if (known)
            continue;
        *VEC_PUSH(a, &seen) = h;
        *VEC_PUSH(a, &out->v) = c->text;
    }
    return true;
}

/* ---- the search ---- */

enum { FINALISTS = 6, SHORT_ROUNDS = 3, LONG_ROUNDS = 9 };
static const double SHORT = 1e-3, LONG = 8e-3; /* seconds of a round of each */
static const double WORTH = 1.005;             /* what a schedule must gain to be said */

struct search {
    struct arena *a;
    const struct bench *b;
    const struct bench_point *p;
    struct tune_result *out;
    struct diags *d;
    struct rival *rival; /* those that are there, the emitter's own choice first */
    struct code_source *source;
    struct measured *m; /* of those still in; m[0] is rival[0] */
    size_t n;
};

static bool fail(struct search *s, const struct rival *v, enum rival_status status)
{
    s->out->error = v->why ? v->why : "it failed";
    s->out->device_failed = status == RIVAL_FAILED;
    return false;
}

/* Prepares a contender and checks one execution of it. */
static enum rival_status enter(struct search *s, size_t i, const char *schedule)
{
    struct rival *v = &s->rival[i];
    struct diags *own = diags_new(s->a);
    s->source[i] = s->b->kernel.source;
    s->source[i].schedule = schedule ? source_new(s->a, "(candidate)", schedule, strlen(schedule))
                                     : NULL;
    *v = (struct rival){.ops = &rival_kernel,
                        .name = schedule ? schedule : "built-in",
                        .a = s->a,
                        .dev = s->b->dev,
                        .source = &s->source[i],
                        .point = s->p,
                        .data_options = s->b->data,
                        .subject = &s->rival[0],
                        .same_spec = true,
                        .peer = s->rival,
                        .npeer = i,
                        .lender = i ? &s->rival[0] : NULL};
    enum rival_status status = v->ops->prepare(v, own);
    if (status == RIVAL_OK && v->launches == 0) {
        v->why = "nothing is launched: a dimension is 0";
        status = RIVAL_ABSENT;
    }
    if (status == RIVAL_OK)
        status = bench_check(v, own);
    if (i == 0 || status == RIVAL_FAILED)
        diags_append(s->d, own);
    return status;
}

static void take_in(struct search *s, size_t i)
{
    s->m[s->n++] = (struct measured){.rival = &s->rival[i], .status = RIVAL_OK};
}

/* All that can run and are right; false: the emitter's own choice is not, or the device failed. */
static bool enter_all(struct search *s, const struct tune_list *list)
{
    enum rival_status status = enter(s, 0, NULL);
    if (status != RIVAL_OK)
        return fail(s, &s->rival[0], status);
    take_in(s, 0);
    for (size_t i = 0; i < list->v.n && !*s->b->data.interrupted; i++) {
        struct rival *v = &s->rival[i + 1];
        status = enter(s, i + 1, list->v.v[i]);
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
    return !*s->b->data.interrupted;
}

static int by_median(const void *a, const void *b)
{
    const struct measured *x = a, *y = b;
    return (x->median > y->median) - (x->median < y->median);
}

/* Rounds of all that are left; the slowest leave, `keep` of them and the emitter's own choice stay. */
static bool heat(struct search *s, unsigned rounds, double seconds, double warm, size_t keep)
{
    const struct measure_options o = {.runs = rounds,
                                      .round_seconds = seconds,
                                      .warm_seconds = warm,
                                      .interrupted = s->b->data.interrupted};
    struct conditions c;
    measure_begin(s->a, s->m, s->n, &o, s->d);
    bool good = measure_rounds(s->a, s->m, s->n, &o, &c, s->d);
    measure_end(s->m, s->n);
    for (size_t i = 0; i < s->n; i++)
        if (s->m[i].status != RIVAL_OK) {
            s->m[i].rival->why = s->m[i].why;
            return fail(s, s->m[i].rival, s->m[i].status);
        }
    if (!good)
        return false;
    qsort(s->m + 1, s->n - 1, sizeof *s->m, by_median);
    while (s->n > keep) {
        struct rival *v = s->m[--s->n].rival;
        v->ops->release(v);
    }
    return true;
}

static bool run_heats(struct search *s)
{
    double seconds = SHORT, warm = 0.25;
    s->out->tried = (unsigned)s->n;
    while (s->n > FINALISTS) {
        if (!heat(s, SHORT_ROUNDS, seconds, warm, s->n / 2 > FINALISTS ? s->n / 2 : FINALISTS))
            return false;
        seconds *= 2;
        warm = 0;
    }
    return heat(s, LONG_ROUNDS, LONG, warm, s->n);
}

static void name_winner(struct search *s)
{
    const struct measured *own = &s->m[0], *best = &s->m[s->n > 1];
    bool worth = own->median > best->median * WORTH;
    s->out->builtin_seconds = own->median;
    s->out->seconds = worth ? best->median : own->median;
    s->out->schedule = worth ? best->rival->name : NULL;
}

bool tune_search(struct arena *a, const struct bench *b, const struct bench_point *p,
                 struct tune_result *out, struct diags *d)
{
    struct search s = {.a = arena_new(), .b = b, .p = p, .out = out, .d = d};
    struct tune_list list;
    *out = (struct tune_result){0};
    bool good = tune_list(s.a, &b->kernel.source, p, &list, d);
    if (!good)
        out->error = "there is no code for it";
    if (good) {
        s.rival = ARENA_ARRAY(s.a, list.v.n + 1, struct rival);
        s.source = ARENA_ARRAY(s.a, list.v.n + 1, struct code_source);
        s.m = ARENA_ARRAY(s.a, list.v.n + 1, struct measured);
        good = enter_all(&s, &list) && run_heats(&s);
        for (size_t i = s.n; i > 0; i--)
            s.m[i - 1].rival->ops->release(s.m[i - 1].rival);
        if (s.n == 0 && s.rival[0].ops)
            s.rival[0].ops->release(&s.rival[0]);
    }
    if (good)
        name_winner(&s);
    if (out->schedule)
        out->schedule = arena_strdup(a, out->schedule);
    if (out->error)
        out->error = arena_strdup(a, out->error);
    arena_free(s.a);
    return good;
}
