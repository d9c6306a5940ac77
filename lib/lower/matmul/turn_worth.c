/* Is it worth launches of their own to turn what a product reads (matmul/turn.c)? And how: with its
 * channels side by side, or with rows of windows, where these are few. */
#include <config.h>

#include "lower/matmul/plan.h"
#include "lower/schedule.h"

enum {
    PIECE = 16,    /* bytes */
    LAUNCH = 2500, /* nanoseconds: of one that another waits for */
};

/* Nanoseconds for each byte that is read or written, of the copy's. */
static const double per_byte = 1 / 2600.0;
/* Rounding alone must make so much of the time that it is as it is. */
static const double WORTH = 0.95;

/* Bytes that turning reads and writes; < 0: that is not known. */
static double bytes_of(const struct lower_turned *out)
{
    double all = 0;
    for (uint32_t i = 0; i < out->n; i++) {
        const struct lang_symbol *s = out->eq[i]->sym;
        double bytes = 2.0 * dtype_bits(s->type) / 8;
        for (uint32_t k = 0; k < s->rank; k++) {
            int64_t n;
            if (!lang_const_int(s->dims[k], &n))
                return -1;
            bytes *= (double)n;
        }
        all += bytes;
    }
    return all;
}

/* Nanoseconds of the first plan; < 0: there is none, or its sizes are not known. */
static double time_of(struct cg *g, const struct matmul_form *f,
                      const struct matmul_options *options)
{
    const struct matmul_setting setting = {
        .a = g->a, .target = g->target, .fast = g->fast, .strict = !g->contract_fma};
    struct matmul_plan p[MATMUL_VARIANTS] = {0};
    struct matmul_report report = {0};
    uint32_t n = 0;
    return matmul_plan(&setting, f, options, p, &n, &report) && n && p[0].about > 0 ? p[0].about
                                                                                    : -1;
}

/* The form that the stage has once the temps are in memory; false: it has none. */
static bool form_after(struct cg *g, const struct lower_stage *s, const struct lower_turned *out,
                       struct matmul_form *f)
{
    struct buf why = buf_in(g->a);
    for (uint32_t i = 0; i < out->n; i++)
        *VEC_PUSH(g->a, &g->homes) =
            (struct cg_home){.sym = out->eq[i]->sym, .temp = out->eq[i]->sym, .is_stored = true};
    g->reducing->v.n = 0;
    return matmul_analyse(g, s, true, f, &why);
}

/* Are fewer neighbours side by side than a piece has? */
static bool is_narrow(const struct matmul_operand *o)
{
    int64_t n;
    return lang_const_int(o->gather->run, &n) && n * dtype_bits(o->type) < PIECE * 8;
}

/* Do tensor cores multiply what is turned, and not what is not? f32 is parted from registers. */
static bool takes(const struct cg *g, const struct matmul_form *f)
{
    bool apart = false;
    for (uint32_t i = 0; i < f->noperand; i++) {
        const struct matmul_operand *o = &f->operand[i];
        apart |= !o->plain && (!o->gather || !o->gather->run || is_narrow(o) ||
                               (f->type == MATMUL_TF32 && !o->along_k));
    }
    return apart && g->target->sm >= 80 && !f->pairs && f->type != MATMUL_F32 &&
           f->type != MATMUL_F64;
}

/* Does wgmma wait for others, who round a convolution's factor? */
static bool waits(const struct cg *g, const struct matmul_form *f)
{
    bool rounds = false;
    for (uint32_t i = 0; i < f->noperand; i++)
        rounds |= matmul_cut_of(&f->operand[i]) == MATMUL_AWAY;
    return rounds && f->slides && f->type == MATMUL_TF32 && ptx_target_has_wgmma(g->target);
}

/* A way of turning: the time that it takes with the product behind it, < 0: that is not known. */
struct way {
    struct lower_turned out;
    bool any, has_rows;
    double time;
};

/* Turns the stage's sums. What is outlined stays. */
static void try_way(struct cg *g, const struct lower_stage *s, const struct matmul_options *want,
                    enum matmul_turns how, struct way *w)
{
    struct matmul_form *form = ARENA_NEW(g->a, struct matmul_form);
    *w = (struct way){.time = -1};
    w->has_rows = matmul_turn_sums(g, s, how, &w->out);
    const size_t homes = g->homes.n; /* views of buffers stay */
    w->any = w->out.n > 0 && form_after(g, s, &w->out, form);
    if (w->any) {
        const double turned = time_of(g, form, want), bytes = bytes_of(&w->out);
        if (turned >= 0 && bytes >= 0)
            w->time = turned + bytes * per_byte + w->out.n * (double)LAUNCH;
    }
    g->homes.n = homes;
    g->reducing->v.n = 0;
}

/* Does fma multiply f32 that is computed? Then it may be faster to store it for tensor cores. */
static bool computes_f32(const struct cg *g, const struct matmul_form *f,
                         const struct matmul_options *want)
{
    return f->type == MATMUL_F32 && f->computes && !f->pairs && g->target->sm >= 80 &&
           g->contract_fma && want->turn == MATMUL_TURN_CHOSEN && want->mma != MATMUL_BY_NONE;
}

/* Stores computed factors where that is known to be faster. */
static bool store_computed(struct cg *g, const struct lower_stage *s,
                           const struct matmul_form *before, const struct matmul_options *want,
                           struct lower_turned *out)
{
    const size_t views = g->outlined.n;
    const double as_is = time_of(g, before, want);
    struct way way = {.any = false};
    if (as_is >= 0)
        try_way(g, s, want, MATMUL_STORE_COMPUTED, &way);
    if (!way.any || way.time < 0 || way.time >= as_is) {
        g->outlined.n = views;
        return false;
    }
    *out = way.out;
    return true;
}

/* Is w, in this way, worth more than the best so far? Where times are not known rows are worth more
 * than channels, and nothing is rounded. */
static bool is_better(const struct way *w, const struct way *best, enum matmul_turns how)
{
    if (!w->any || (how == MATMUL_TURN_ROWS && !w->has_rows))
        return false;
    const bool known = w->time >= 0 && (!best->any || best->time >= 0);
    return known ? !best->any || w->time < best->time : how <= MATMUL_TURN_ROWS;
}

bool matmul_turn(struct cg *g, const struct lower_stage *s, void *form, const void *options,
                 struct lower_turned *out)
{
    const struct matmul_options *want = options;
    const struct matmul_form *before = matmul_form_of(form);
    const size_t views = g->outlined.n;
    const bool must = want->turn == MATMUL_TURN, turns = must || takes(g, before);
    const bool rounds = waits(g, before);
    struct way way, best = {.time = -1};
    enum matmul_turns how = MATMUL_TURNS;
    out->n = 0;
    if (computes_f32(g, before, want))
        return store_computed(g, s, before, want, out);
    if (want->turn == MATMUL_TURN_NOT || (!turns && !rounds))
        return false;
    for (enum matmul_turns i = 0; i < MATMUL_TURNS; i++) {
        if (i <= MATMUL_TURN_ROWS ? !turns : !rounds || (must && how <= MATMUL_TURN_ROWS))
            continue;
        try_way(g, s, want, i, &way);
        g->outlined.n = views;
        const bool first = must && way.any && !best.any;
        if (first || is_better(&way, &best, i)) {
            best = way;
            how = i;
        }
    }
    if (!best.any && must)
        return cg_error(g, schedule_span(g, "turn"),
                        "nothing can be turned: 'turn' is for sums of products of a window, or of "
                        "every second element, whose last subscript is no range of the sum, and of "
                        "another buffer's elements");
    const double as_is = best.any && !must ? time_of(g, before, want) : -1;
    const double worth = how > MATMUL_TURN_ROWS ? WORTH : 1;
    if (!best.any || (as_is >= 0 && best.time >= as_is * worth))
        return false;
    try_way(g, s, want, how, &best);
    *out = best.out;
    return true;
}
