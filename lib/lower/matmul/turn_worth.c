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

/* A way of turning: the time that it takes with the product behind it, < 0: that is not known. */
struct way {
    struct lower_turned out;
    bool any, has_rows;
    double time;
};

/* Turns the stage's sums; with rows of windows, where there are some. What is outlined stays. */
static void try_way(struct cg *g, const struct lower_stage *s, const struct matmul_options *want,
                    bool rows, struct way *w)
{
    const size_t homes = g->homes.n;
    struct matmul_form *form = ARENA_NEW(g->a, struct matmul_form);
    *w = (struct way){.time = -1};
    w->has_rows = matmul_turn_sums(g, s, rows, &w->out);
    w->any = w->out.n > 0 && form_after(g, s, &w->out, form);
    if (w->any) {
        const double turned = time_of(g, form, want), bytes = bytes_of(&w->out);
        if (turned >= 0 && bytes >= 0)
            w->time = turned + bytes * per_byte + w->out.n * (double)LAUNCH;
    }
    g->homes.n = homes;
    g->reducing->v.n = 0;
}

bool matmul_turn(struct cg *g, const struct lower_stage *s, void *form, const void *options,
                 struct lower_turned *out)
{
    const struct matmul_options *want = options;
    const struct matmul_form *before = matmul_form_of(form);
    const size_t views = g->outlined.n;
    struct way rows, way;
    out->n = 0;
    if (want->turn == MATMUL_TURN_NOT || (want->turn != MATMUL_TURN && !takes(g, before)))
        return false;
    try_way(g, s, want, true, &rows);
    const bool has_rows = rows.any && rows.has_rows;
    g->outlined.n = views;
    try_way(g, s, want, false, &way);
    if (!rows.out.n && !way.out.n && want->turn == MATMUL_TURN)
        return cg_error(g, schedule_span(g, "turn"),
                        "nothing can be turned: 'turn' is for sums of products of a window, or of "
                        "every second element, whose last subscript is no range of the sum, and of "
                        "another buffer's elements");
    if (has_rows && (!way.any || rows.time < 0 || way.time < 0 || rows.time < way.time)) {
        g->outlined.n = views;
        try_way(g, s, want, true, &way);
    }
    if (way.any && want->turn != MATMUL_TURN) {
        const double as_is = time_of(g, before, want);
        way.any = as_is < 0 || way.time < 0 || way.time < as_is;
    }
    if (!way.any) {
        g->outlined.n = views;
        return false;
    }
    *out = way.out;
    return true;
}
