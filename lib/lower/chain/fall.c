/* Exponentials of scores that fall off from a row's maximum (chain.h), and what sums of them are
 * rescaled by when it grows.
 *
 * Where products round them to 16 bits anyway, exp(x - b) is exp2(x f - b f), f being log2(e): one
 * fma and the hardware's exp2. By how much b f is rounded is the same in all terms of a row and in
 * what they are rescaled by, and is taken off at last. Of a b so large that its neighbours'
 * exponentials count for nothing beside its own f is 1, and nothing is rounded. Between these,
 * where terms might overflow, rows are computed anew (chain_is_coarse()).
 *
 * Where scores are products of tensor cores times the same number w, the maximum is that of the
 * products times w, and w f is their factor: then nothing is multiplied for each score alone. A w
 * below 0 takes their minimum. The same is so where w multiplies a function of them, which stands
 * in their place then (chain/lift.c).
 *
 * Such sums are rescaled rarely: terms fall off from a reference, which follows the maximum when
 * that has grown by more than SLACK in a row of the warp. Terms are exp(SLACK) at most until then,
 * which 8 or 16 bits have room for, and nothing of their precision is lost. So the four lanes of a
 * row need not know each other's maxima before one of these has grown as much: until then each has
 * its own, and a step waits for no other lane but in the vote that says so.
 */
#include <config.h>

#include "lower/chain/chain.h"

#include <float.h>
#include <math.h>

#define LOG2_E      0x1.715476p0
#define COARSE_FROM 0x1p23
#define COARSE_TO   0x1p29
#define SLACK       5.5
#define LEAST       -0x1p126 /* log2(e) times this is finite */

bool chain_is_rough(const struct chain_tile *x)
{
    bool rough = x->t->ncolumn > 0;
    for (uint32_t c = 0; c < x->t->ncolumn; c++)
        rough &= x->t->column[c].parts == 1 && !x->t->column[c].splits;
    return rough;
}

bool chain_is_plain(const struct chain_stream *s)
{
    return s->running >= 0 && !s->weight && !s->base2 && s->base->type == DT_F32;
}

struct cg_val chain_for_terms(struct chain_tile *x, struct cg_val m)
{
    const double least = x->scale_by ? LEAST : m.type == DT_F64 ? -DBL_MAX : -FLT_MAX;
    return cg_minmax(x->g, true, m, cg_float(x->g, m.type, least));
}

/* ---- exponentials ---------------------------------------------------------------------------- */

static struct cg_val size_of(struct cg *g, struct cg_val b)
{
    return cg_value(DT_F32, CG(g, PTX_F32, "abs.f32", cg_op(g, b)));
}

static struct cg_val factor_of(struct chain_tile *x, struct cg_val b)
{
    struct cg *g = x->g;
    if (x->scale_by)
        return chain_f32(g, LOG2_E);
    const struct cg_val is_large = cg_binary(g, OP_GE, size_of(g, b), chain_f32(g, COARSE_TO));
    return cg_select(g, cg_reg(g, is_large), chain_f32(g, 1), chain_f32(g, LOG2_E));
}

/* b f */
static struct cg_val product_of(struct chain_tile *x, struct cg_val b)
{
    return cg_binary(x->g, OP_MUL, b, factor_of(x, b));
}

static struct cg_val approx_exp2(struct cg *g, struct cg_val v)
{
    return cg_value(DT_F32, CG(g, PTX_F32, "ex2.approx.ftz.f32", cg_op(g, v)));
}

/* Below 2^-126 it is 0, but where that may count. */
static struct cg_val exp2_of(struct chain_tile *x, struct cg_val v)
{
    return x->deep ? cg_exp2_root(x->g, v, 1) : approx_exp2(x->g, v);
}

struct cg_val chain_fall(struct chain_tile *x, struct cg_val from, struct cg_val b)
{
    const struct cg_val minus = cg_unary(x->g, OP_NEG, product_of(x, b));
    return exp2_of(x, cg_fma(x->g, from, factor_of(x, b), minus));
}

struct cg_val chain_fall_raw(struct chain_tile *x, struct cg_val raw, struct cg_val b)
{
    struct cg *g = x->g;
    const struct cg_val minus = cg_unary(g, OP_NEG, product_of(x, b));
    const struct cg_val factor = factor_of(x, b);
    const struct cg_val by = cg_binary(g, OP_MUL, cg_expr(g, x->scale_by), factor);
    return exp2_of(x, cg_fma(g, raw, by, minus));
}

struct cg_val chain_is_coarse(struct chain_tile *x, struct cg_val b)
{
    struct cg *g = x->g;
    const struct cg_val size = size_of(g, b), from = chain_f32(g, COARSE_FROM);
    const struct cg_val to = chain_f32(g, x->scale_by ? INFINITY : COARSE_TO);
    const struct cg_val below = cg_binary(g, OP_LT, size, to);
    const struct cg_val is_rounded = cg_binary(g, OP_LAND, cg_binary(g, OP_GE, size, from), below);
    const struct cg_val is_less = cg_binary(g, OP_LE, b, chain_f32(g, FLT_MAX));
    return cg_binary(g, OP_LOR, is_rounded, cg_unary(g, OP_NOT, is_less)); /* inf, NaN */
}

/* What the terms of stream n of the row subtract where its maximum is m. */
static struct cg_val base_at(struct chain_tile *x, uint32_t n, uint32_t row, struct cg_val m)
{
    struct cg *g = x->g;
    const size_t bound = g->bindings.n;
    chain_bind_row(x, row);
    const struct cg_val b = cg_convert(
        g, chain_base(g, x->t->f, chain_tile_stream(x, n), chain_for_terms(x, m)), DT_F32);
    g->bindings.n = bound;
    return b;
}

/* What terms that fall off from `was` are multiplied by, so that they fall off from `now`. */
static struct cg_val falls(struct chain_tile *x, struct cg_val was, struct cg_val now)
{
    const struct cg_val to = product_of(x, now), from = product_of(x, was);
    return exp2_of(x, cg_binary(x->g, OP_SUB, from, to));
}

/* The same as the equations have it. */
static struct cg_val falls_exactly(struct chain_tile *x, const struct chain_stream *of,
                                   uint32_t row, struct cg_val was, struct cg_val now)
{
    struct cg *g = x->g;
    struct cg_val by = cg_binary(g, OP_SUB, was, now);
    if (!of->weight)
        return cg_library(g, of->base2 ? "exp2_f32" : "exp_falling_f32", 1, &by);
    const size_t bound = g->bindings.n;
    chain_bind_row(x, row);
    const struct cg_val weight = cg_convert(g, cg_expr(g, of->weight), DT_F32);
    by = cg_binary(g, OP_MUL, cg_unary(g, OP_NEG, by), weight);
    g->bindings.n = bound;
    return cg_library(g, of->base2 ? "exp2_f32" : "exp_f32", 1, &by);
}

struct cg_val chain_rescaling(struct chain_tile *x, uint32_t n, uint32_t row, struct cg_val was)
{
    struct cg *g = x->g;
    const struct chain_stream *of = chain_tile_stream(x, n);
    const struct cg_val now = base_at(x, n, row, chain_tile_state(x, (uint32_t)of->running, row));
    was = base_at(x, n, row, was);
    if (chain_is_rough(x) && chain_is_plain(of))
        return falls(x, was, now);
    const struct cg_val by = falls_exactly(x, of, row, was, now);
    if (!x->deep)
        return by;
    /* an infinite maximum of no term makes no NaN */
    const int32_t same = cg_reg(g, cg_binary(g, OP_EQ, was, now));
    return cg_select(g, same, chain_f32(g, 1), by);
}

static bool is_name(const struct lang_expr *e, const struct lang_symbol *sym)
{
    return e->kind == E_NAME && e->sym == sym;
}

/* ---- references ------------------------------------------------------------------------------ */

/* The maximum whose sums are rescaled rarely: the only one there is; -1: none is. */
static int find_top(const struct chain_tile *x)
{
    int top = -1;
    bool one = chain_is_rough(x);
    for (uint32_t c = 0; c < x->t->ncolumn; c++)
        one &= chain_size(&x->t->column[c], MATMUL_A) <= 2;
    for (uint32_t n = 0; n < x->t->f->nstream; n++) {
        const struct chain_stream *s = chain_tile_stream(x, n);
        one &= s->running < 0 || (chain_is_plain(s) && (top < 0 || top == s->running));
        top = s->running >= 0 ? s->running : top;
    }
    return one && top >= 0 && chain_tile_stream(x, (uint32_t)top)->type == DT_F32 ? top : -1;
}

static bool is_in_batch(const struct chain_tile *x, const struct lang_expr *e)
{
    const struct chain_form *f = x->t->f;
    for (uint32_t a = 0; a < f->nrow; a++)
        if ((a == x->t->i || (x->packs && a == x->t->pack.axis)) && chain_mentions(e, f->row[a]))
            return false;
    return true;
}

/* Is e the same for all rows and all j of a tile, as scales of 8-bit operands are? */
static bool is_of_tile(const struct chain_tile *x, const struct lang_expr *e)
{
    bool same = !chain_mentions(e, x->t->f->j) && is_in_batch(x, e) && !e->pad;
    if (e->kind == E_INDEX) {
        same &= e->nargs == e->sym->rank && cg_is_constant(x->g, e->sym);
        for (uint32_t i = 0; same && i < e->nargs; i++)
            same = cg_in_range(e->args[i], e->sym->dims[i]);
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        same &= is_of_tile(x, e->args[i]);
    return same;
}

/* Is e the same for all rows and all j? */
static bool is_uniform(const struct chain_tile *x, const struct lang_expr *e)
{
    const struct chain_form *f = x->t->f;
    bool uniform = e->kind != E_INDEX && !chain_mentions(e, f->j);
    for (uint32_t a = 0; a < f->nrow; a++)
        uniform &= !chain_mentions(e, f->row[a]);
    for (uint32_t i = 0; i < e->nargs; i++)
        uniform &= is_uniform(x, e->args[i]);
    return uniform;
}

static bool selects(const struct lang_expr *e)
{
    return chain_has_kind(e, 1U << E_COND);
}

static bool is_same_end(const struct lang_expr *x, const struct lang_expr *y)
{
    return x == y || (x && y && matmul_same(x, y));
}

/* Is there more in what terms subtract than their maximum, and numbers for where that is -inf? */
static bool is_more(const struct lang_expr *base, const struct lang_symbol *top)
{
    bool more = base->kind == E_INDEX || (base->kind == E_NAME && base->sym != top);
    for (uint32_t i = 0; i < base->nargs && !more; i++)
        more = is_more(base->args[i], top);
    return more;
}

bool chain_is_deep(const struct chain_form *f)
{
    bool deep = false;
    for (uint32_t n = 0; n < f->nstream; n++) {
        const struct chain_stream *s = &f->stream[n];
        if (s->running < 0)
            continue;
        const struct chain_stream *top = &f->stream[s->running];
        const struct lang_expr *term = s->has_column ? s->part[0].e : s->term;
        deep |= is_more(s->base, top->sym) || !is_same_end(s->low, top->low) ||
                !is_same_end(s->high, top->high) || (selects(term) && !selects(top->term));
    }
    return deep;
}

static bool has_streams(const struct chain_form *f, const struct lang_expr *e)
{
    return chain_mentioned_stream(f, e) >= 0 || chain_mentions_score(f, e);
}

/* The w of e, which is w times score n, or times a function of it; NULL: it is none. */
static const struct lang_expr *scale_of(struct chain_tile *x, const struct lang_expr *e, uint32_t n)
{
    const struct lang_symbol *score = x->t->f->score[n].sym;
    if (e->kind != E_BINARY || e->op != OP_MUL || e->type != DT_F32 ||
        !is_name(x->t->score[n].value, x->t->score[n].raw))
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        const struct lang_expr *of = e->args[i], *by = e->args[1 - i];
        const bool lifts = chain_can_lift(x, of, n) && is_uniform(x, of);
        if ((lifts || is_name(of, score)) && by->type == DT_F32 && is_of_tile(x, by) &&
            !has_streams(x->t->f, by)) {
            x->lifted = lifts ? of : NULL;
            return by;
        }
    }
    return NULL;
}

static bool is_lowest(const struct lang_expr *e)
{
    while (e->kind == E_CAST)
        e = e->args[0];
    if (e->kind == E_UNARY && e->op == OP_NEG)
        return e->args[0]->kind == E_FLOAT && e->args[0]->fval == INFINITY;
    return e->kind == E_FLOAT && e->fval == -INFINITY;
}

const struct lang_expr *chain_kept(const struct chain_tensor *t, const struct lang_expr *e)
{
    const struct lang_expr *of = e->kind == E_COND ? e->args[1] : e;
    bool is_maximum = false, is_product = false;
    for (uint32_t n = 0; n < t->f->nstream; n++)
        is_maximum |= t->f->stream[n].reduce == RED_MAX && matmul_same(t->f->stream[n].term, e);
    if (e->kind != E_COND || !is_maximum || !is_lowest(e->args[2]) || has_streams(t->f, e->args[0]))
        return NULL;
    for (uint32_t n = 0; n < t->f->nscore && of->kind == E_BINARY && of->op == OP_MUL; n++)
        for (uint32_t i = 0; i < 2; i++)
            is_product |= is_name(of->args[i], t->f->score[n].sym) &&
                          !has_streams(t->f, of->args[1 - i]);
    return is_product ? of : NULL;
}

/* Finds .scale_by, where .top is the maximum of a score, and terms subtract nothing else. */
static void find_scale(struct chain_tile *x)
{
    const struct chain_form *f = x->t->f;
    const struct chain_stream *top = chain_tile_stream(x, (uint32_t)x->top);
    for (uint32_t n = 0; n < f->nstream; n++)
        if (f->stream[n].running >= 0 && !is_name(f->stream[n].base, top->sym))
            return;
    const struct lang_expr *kept = chain_kept(x->t, top->term);
    for (uint32_t n = 0; n < f->nscore && !x->scale_by; n++) {
        x->scale_by = scale_of(x, kept ? kept : top->term, n);
        x->scaled = n;
    }
    x->keep = kept && x->scale_by ? top->term->args[0] : NULL;
}

bool chain_is_scaled(const struct chain_tile *x, const struct lang_expr *e)
{
    return x->scale_by && matmul_same(chain_tile_stream(x, (uint32_t)x->top)->term, e);
}

/* Is the stream's factor, or term, the exponential of what .top is the maximum of less a base, over
 * the same range? */
static bool falls_off(const struct chain_tile *x, const struct chain_stream *s)
{
    const struct chain_stream *top = chain_tile_stream(x, (uint32_t)x->top);
    const struct lang_expr *e = s->has_column && s->npart ? s->part[0].e : s->term;
    if (e->kind == E_CAST)
        e = e->args[0];
    const struct lang_expr *d = e->fn == FN_EXP && e->kind == E_CALL ? e->args[0] : NULL;
    return s->running == x->top && d && d->kind == E_BINARY && d->op == OP_SUB &&
           matmul_same(d->args[0], top->term) && matmul_same(d->args[1], s->base) &&
           is_same_end(s->low, top->low) && is_same_end(s->high, top->high);
}

/* Finds .sure, where .keep is what is left of a comparison of keys. */
static void find_sure(struct chain_tile *x)
{
    struct cg *g = x->g;
    const struct chain_runs *r = x->t->f->runs;
    const struct lang_expr *e = x->keep;
    const size_t bound = g->bindings.n;
    x->sure = (struct cg_val){.type = DT_VOID};
    if (!r || !r->first || e->kind != E_BINARY || e->op != OP_LOR ||
        !matmul_same(e->args[0], r->known) || !is_in_batch(x, e->args[0]))
        return;
    chain_bind_row(x, 0);
    x->sure = cg_freeze(g, cg_expr(g, e->args[0]));
    x->keep = e->args[1];
    g->bindings.n = bound;
}

/* Do terms subtract the maximum alone? */
static bool subtracts_top(const struct chain_tile *x)
{
    const struct lang_symbol *top = chain_tile_stream(x, (uint32_t)x->top)->sym;
    bool all = true;
    for (uint32_t n = 0; n < x->t->f->nstream; n++) {
        const struct chain_stream *s = chain_tile_stream(x, n);
        all &= s->running < 0 || is_name(s->base, top);
    }
    return all;
}

void chain_fall_begin(struct chain_tile *x)
{
    x->top = find_top(x);
    x->lone = x->top >= 0 && subtracts_top(x);
    x->deep = chain_is_deep(x->t->f);
    x->scale_by = x->lifted = x->keep = NULL;
    x->masks = x->top >= 0;
    if (x->top < 0)
        return;
    find_scale(x);
    for (uint32_t n = 0; n < x->t->f->nstream; n++)
        x->masks &= n == (uint32_t)x->top || falls_off(x, chain_tile_stream(x, n));
    if ((x->lifted || x->keep) && !x->masks) /* something else has the products */
        x->scale_by = x->lifted = x->keep = NULL;
    if (x->keep)
        find_sure(x);
    x->grown = cg_new_mutable(x->g, DT_BOOL);
    for (uint32_t row = 0; row < chain_tile_rows(x); row++)
        x->reference[row] = cg_new_mutable(x->g, DT_F32);
}

/* What the row's terms fall off from. */
static struct cg_val reference(const struct chain_tile *x, uint32_t row)
{
    return cg_value(DT_F32, x->reference[row]);
}

static struct cg_val maximum(struct chain_tile *x, uint32_t row)
{
    return chain_for_terms(x, chain_tile_state(x, (uint32_t)x->top, row));
}

void chain_fall_meet(struct chain_tile *x)
{
    for (int64_t lane = 1; lane < 4 && x->lone; lane *= 2)
        for (uint32_t row = 0; row < chain_tile_rows(x); row++) {
            const struct cg_val own = chain_tile_state(x, (uint32_t)x->top, row);
            cg_move(x->g, x->state[x->top][row], chain_over_lanes(x->g, FOLD_MAX, own, lane));
        }
}

void chain_fall_follow(struct chain_tile *x)
{
    for (uint32_t row = 0; row < chain_tile_rows(x) && x->top >= 0; row++)
        cg_move(x->g, x->reference[row], maximum(x, row));
}

/* Is x more than y by more than the slack? */
static struct cg_val is_above(struct cg *g, struct cg_val x, struct cg_val y)
{
    return cg_binary(g, OP_GT, cg_binary(g, OP_SUB, x, y), chain_f32(g, SLACK));
}

/* Has the maximum of a row of the warp grown by more than the slack, or what terms subtract? In the
 * first tile with terms it has. */
static void find_grown(struct chain_tile *x)
{
    struct cg *g = x->g;
    const struct lang_symbol *top = chain_tile_stream(x, (uint32_t)x->top)->sym;
    const struct lang_expr *before = NULL;
    struct cg_val grown = cg_bool(g, false);
    for (uint32_t row = 0; row < chain_tile_rows(x); row++)
        grown = cg_binary(g, OP_LOR, grown, is_above(g, maximum(x, row), reference(x, row)));
    for (uint32_t n = 0; n < x->t->f->nstream; n++) {
        const struct chain_stream *s = chain_tile_stream(x, n);
        if (s->running < 0 || is_name(s->base, top) || (before && matmul_same(before, s->base)))
            continue;
        before = s->base;
        for (uint32_t row = 0; row < chain_tile_rows(x); row++) {
            const struct cg_val now = base_at(x, n, row, maximum(x, row));
            const struct cg_val was = base_at(x, n, row, reference(x, row));
            grown = cg_binary(g, OP_LOR, grown, is_above(g, now, was));
        }
    }
    warp_vote(g, false, x->grown, cg_reg(g, grown));
}

/* By what the row's stream n is multiplied to fall off from its maximum. */
static struct cg_val growth(struct chain_tile *x, uint32_t n, uint32_t row)
{
    const struct cg_val now = base_at(x, n, row, maximum(x, row));
    const struct cg_val was = base_at(x, n, row, reference(x, row));
    return falls(x, was, now);
}

void chain_multiply_sums(struct chain_tile *x, uint32_t c, uint32_t row, struct cg_val by)
{
    struct cg *g = x->g;
    for (uint32_t w = 0; w < x->columns / 4; w++) {
        const uint32_t at = row / 2 * (x->columns / 2) + w / 2 * 4 + row % 2 * 2 + w % 2;
        CG_ASSIGN(g, x->sum[c][at], "mul.rn.f32", ptx_r(x->sum[c][at]), cg_op(g, by));
    }
}

void chain_fall_grow(struct chain_tile *x)
{
    struct cg *g = x->g;
    const uint32_t steady = cg_label(g, "steady");
    find_grown(x);
    cg_jump_if(g, x->grown, false, steady);
    const size_t mark = cg_scope_open(g);
    chain_fall_meet(x);
    for (uint32_t row = 0; row < chain_tile_rows(x); row++) {
        for (uint32_t n = 0; n < x->t->f->nstream; n++)
            if (chain_tile_stream(x, n)->running >= 0 && !chain_tile_stream(x, n)->has_column)
                cg_move(g, x->state[n][row],
                        cg_binary(g, OP_MUL, chain_tile_state(x, n, row), growth(x, n, row)));
        for (uint32_t c = 0; c < x->t->ncolumn; c++)
            if (chain_tile_stream(x, x->t->column[c].stream)->running >= 0)
                cg_move(g, x->scale[c][row], growth(x, x->t->column[c].stream, row));
    }
    chain_fall_follow(x);
    cg_scope_close(g, mark);
    cg_place(g, steady);
    cg_loop_head(g);
}

/* The factor that makes the row's stream n what it is to be, which chain_fall_settle() says. */
static struct cg_val settling(struct chain_tile *x, uint32_t n, uint32_t row, bool exactly)
{
    struct cg *g = x->g;
    const struct cg_val m = chain_tile_state(x, (uint32_t)chain_tile_stream(x, n)->running, row);
    const struct cg_val now = base_at(x, n, row, m);
    const struct cg_val was = x->top < 0 ? now : base_at(x, n, row, reference(x, row));
    if (!exactly)
        return falls(x, was, now);
    const struct cg_val minus = cg_unary(g, OP_NEG, now);
    const struct cg_val product = product_of(x, was);
    return exp2_of(x, cg_fma(g, minus, factor_of(x, was), product));
}

void chain_fall_settle(struct chain_tile *x, bool exactly)
{
    struct cg *g = x->g;
    if (!chain_is_rough(x) || (x->top < 0 && !exactly))
        return;
    if (!exactly)
        chain_fall_meet(x);
    for (uint32_t n = 0; n < x->t->f->nstream; n++)
        for (uint32_t row = 0; row < chain_tile_rows(x) && chain_is_plain(chain_tile_stream(x, n));
             row++) {
            const struct cg_val by = settling(x, n, row, exactly);
            if (!chain_tile_stream(x, n)->has_column)
                cg_move(g, x->state[n][row], cg_binary(g, OP_MUL, chain_tile_state(x, n, row), by));
            for (uint32_t c = 0; c < x->t->ncolumn; c++)
                if (x->t->column[c].stream == n)
                    chain_multiply_sums(x, c, row, by);
        }
    chain_fall_follow(x);
}
