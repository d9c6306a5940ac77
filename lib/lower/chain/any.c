/* Any chain without tensor cores: a warp computes a row, or some columns of it (chain.h).
 *
 * A lane takes every 32nd j: its scores and terms. Terms of columns need the parts of all lanes one
 * after the other, which shuffles bring, and then a lane takes every 32nd column. So a part is
 * computed once for all columns of the warp.
 *
 * Here all is as the equations say, infinities and NaN too. Where a maximum m is -inf so far its
 * terms exp(x - m) would be NaN, which they are in the end only if it stays -inf: so a least number
 * takes its place, and a row whose maximum stays -inf is computed again without that.
 */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/cg/sync.h"
#include "lower/extent.h"

#include <float.h>
#include <math.h>

enum { LANES = 32, WARPS = CHAIN_ANY_BLOCK / LANES, MOST_WIDE = 8, USUAL_WIDE = 4 };

struct any {
    struct cg *g;
    const struct chain_form *f;
    struct lanes all;
    struct cg_val row[CHAIN_AXES]; /* i64 */
    struct cg_val lane, column;    /* u32; column: the warp's first */
    uint32_t wide;                 /* columns of a lane; 0: there are none */
    struct cg_val end;             /* of columns, i64 */
    /* of streams: what they are so far, mutable: a lane's part of it; columns: `wide` of them */
    int32_t *state[CHAIN_STREAMS];
    int32_t least[CHAIN_STREAMS]; /* mutable, of maxima that others are rescaled by; -1: of none */
    struct cg_val low[CHAIN_STREAMS], high[CHAIN_STREAMS]; /* i64 */
    /* in the loop: */
    struct cg_val j, first;              /* i64: the lane's, and that of lane 0 */
    struct cg_val inside[CHAIN_STREAMS]; /* predicates */
    struct cg_val before[CHAIN_STREAMS]; /* maxima before this step */
};

static bool is_maximum(const struct any *x, uint32_t n)
{
    for (uint32_t i = 0; i < x->f->nstream; i++)
        if (x->f->stream[i].running == (int)n)
            return true;
    return false;
}

static struct cg_val state_of(const struct any *x, uint32_t n, uint32_t column)
{
    return cg_value(x->f->stream[n].type, x->state[n][column]);
}

static struct cg_val column_of(struct any *x, uint32_t n)
{
    struct cg *g = x->g;
    const struct cg_val c = cg_add(g, x->column, cg_u32(n * LANES));
    return cg_index(g, cg_add(g, c, x->lane));
}

static void bind_row(struct any *x)
{
    for (uint32_t i = 0; i < x->f->nrow; i++)
        cg_bind(x->g, x->f->row[i], x->row[i], false);
}

/* ---- the row --------------------------------------------------------------------------------- */

static void begin_states(struct any *x)
{
    struct cg *g = x->g;
    for (uint32_t i = 0; i < x->f->nstream; i++) {
        const struct chain_stream *s = &x->f->stream[i];
        const uint32_t n = s->has_column ? x->wide : 1;
        x->state[i] = ARENA_ARRAY(g->a, n, int32_t);
        for (uint32_t k = 0; k < n; k++)
            x->state[i][k] = cg_new_mutable(g, s->type);
        x->least[i] = -1;
        if (!is_maximum(x, i))
            continue;
        x->least[i] = cg_new_mutable(g, s->type);
        cg_move(g, x->least[i], cg_float(g, s->type, s->type == DT_F64 ? -DBL_MAX : -FLT_MAX));
    }
}

static void clear_states(struct any *x)
{
    struct cg *g = x->g;
    for (uint32_t i = 0; i < x->f->nstream; i++) {
        const struct chain_stream *s = &x->f->stream[i];
        for (uint32_t k = 0; k < (s->has_column ? x->wide : 1); k++)
            cg_move(g, x->state[i][k], cg_reduce_identity(g, s->reduce, s->type));
    }
}

/* The ranges of all streams; equal ones are the same registers. */
static void find_ranges(struct any *x, struct cg_val *low, struct cg_val *high)
{
    struct cg *g = x->g;
    for (uint32_t i = 0; i < x->f->nstream; i++) {
        const struct chain_stream *s = &x->f->stream[i];
        x->low[i] = s->low ? cg_index(g, cg_expr(g, s->low)) : cg_int(DT_I64, 0);
        x->high[i] = cg_index(g, cg_expr(g, s->high));
        if (x->f->ends) {
            x->low[i] = cg_minmax(g, true, cg_convert(g, x->low[i], DT_I64), cg_int(DT_I64, 0));
            const struct cg_val all = cg_convert(g, cg_expr(g, x->f->j->dims[0]), DT_I64);
            x->high[i] = cg_minmax(g, false, cg_convert(g, x->high[i], DT_I64), all);
        }
        *low = i ? cg_minmax(g, false, *low, x->low[i]) : x->low[i];
        *high = i ? cg_minmax(g, true, *high, x->high[i]) : x->high[i];
    }
}

/* ---- a step: 32 j ---------------------------------------------------------------------------- */

static void find_inside(struct any *x)
{
    struct cg *g = x->g;
    for (uint32_t i = 0; i < x->f->nstream; i++) {
        const struct cg_val from = cg_binary(g, OP_GE, x->j, x->low[i]);
        const struct cg_val to = cg_binary(g, OP_LT, x->j, x->high[i]);
        x->inside[i] = cg_binary(g, OP_LAND, from, to);
    }
}

static void find_scores(struct any *x)
{
    struct cg *g = x->g;
    struct cg_val some = x->inside[0];
    for (uint32_t i = 1; i < x->f->nstream; i++)
        some = cg_binary(g, OP_LOR, some, x->inside[i]);
    const struct cg_guard before = cg_guard(g, some, true);
    for (uint32_t i = 0; i < x->f->nscore; i++)
        cg_bind(g, x->f->score[i].sym, cg_freeze(g, cg_expr(g, x->f->score[i].e)), false);
    cg_unguard(g, before);
}

/* e for the lane's j, where that is in the stream's range. */
static struct cg_val term_of(struct any *x, uint32_t n, const struct lang_expr *e)
{
    struct cg *g = x->g;
    const struct cg_guard before = cg_guard(g, x->inside[n], true);
    const struct cg_val v = cg_expr(g, e);
    cg_unguard(g, before);
    return v;
}

/* By what the sum is multiplied since its maximum has grown; a predicate of a constant: 1. */
static struct cg_val rescaling(struct any *x, const struct chain_stream *s)
{
    struct cg *g = x->g;
    const uint32_t n = (uint32_t)s->running;
    const enum dtype t = s->type == DT_F64 ? DT_F64 : DT_F32;
    const struct cg_val least = cg_value(x->f->stream[n].type, x->least[n]);
    const struct cg_val now = chain_base(g, x->f, s, cg_minmax(g, true, state_of(x, n, 0), least));
    const struct cg_val was = chain_base(g, x->f, s, cg_minmax(g, true, x->before[n], least));
    const int32_t same = cg_reg(g, cg_binary(g, OP_EQ, x->before[n], state_of(x, n, 0)));
    const struct cg_val to = cg_convert(g, now, t);
    struct cg_val by = cg_binary(g, OP_SUB, cg_convert(g, was, t), to);
    if (s->weight) {
        const struct cg_val weight = cg_convert(g, cg_expr(g, s->weight), t);
        by = cg_binary(g, OP_MUL, cg_unary(g, OP_NEG, by), weight);
    }
    const char *exp = s->base2      ? t == DT_F64 ? "exp2_f64" : "exp2_f32"
                      : t == DT_F64 ? "exp_f64"
                                    : "exp_f32";
    by = cg_library(g, exp, 1, &by);
    return cg_convert(g, cg_select(g, same, cg_float(g, t, 1), by), s->type);
}

/* A maximum that others depend on is the whole warp's after each step. */
static void grow_maximum(struct any *x, uint32_t n, struct cg_val v)
{
    struct cg *g = x->g;
    const struct chain_stream *s = &x->f->stream[n];
    x->before[n] = cg_freeze(g, state_of(x, n, 0));
    v = warp_fold(g, FOLD_MAX, v, &x->all);
    cg_move(g, x->state[n][0], cg_minmax(g, true, state_of(x, n, 0), v));
    const struct cg_val least = cg_value(s->type, x->least[n]);
    cg_bind(g, s->sym, cg_freeze(g, cg_minmax(g, true, state_of(x, n, 0), least)), false);
}

static void fold_into(struct any *x, uint32_t n, uint32_t column, struct cg_val v)
{
    struct cg *g = x->g;
    cg_move(g, x->state[n][column],
            fold_pair(g, chain_fold(&x->f->stream[n]), state_of(x, n, column), v));
}

static void rescale(struct any *x, uint32_t n)
{
    struct cg *g = x->g;
    const struct chain_stream *s = &x->f->stream[n];
    if (s->running < 0)
        return;
    const struct cg_val by = rescaling(x, s);
    for (uint32_t k = 0; k < (s->has_column ? x->wide : 1); k++)
        cg_move(g, x->state[n][k], cg_binary(g, OP_MUL, state_of(x, n, k), by));
}

/* ---- columns --------------------------------------------------------------------------------- */

static void add_term(struct any *x, uint32_t n, uint32_t column)
{
    struct cg *g = x->g;
    const struct chain_stream *s = &x->f->stream[n];
    const struct lang_expr *e = s->term;
    const struct cg_val c = column_of(x, column);
    const size_t bound = g->bindings.n;
    const struct cg_guard before = cg_guard(g, cg_binary(g, OP_LT, c, x->end), true);
    cg_bind(g, x->f->column, c, false);
    if (s->reduce == RED_SUM && e->kind == E_BINARY && e->op == OP_MUL && dtype_is_float(e->type)) {
        const struct cg_val left = cg_expr(g, e->args[0]);
        const struct cg_val sum = cg_fma(g, left, cg_expr(g, e->args[1]), state_of(x, n, column));
        cg_move(g, x->state[n][column], sum);
    } else {
        fold_into(x, n, column, cg_expr(g, e));
    }
    cg_unguard(g, before);
    g->bindings.n = bound;
}

/* v of another lane. Of 8 bits it goes as what has all of its values. */
static struct cg_val from_lane(struct any *x, struct cg_val v, int32_t lane)
{
    struct cg *g = x->g;
    const enum dtype t = v.type;
    if (dtype_is_float(t) && dtype_bits(t) == 8)
        v = cg_convert(g, v, DT_F16);
    v = shuffle(g, SHUFFLE_IDX, v, ptx_r(lane), ptx_imm(LANES - 1), x->all.mask, NULL);
    return cg_convert(g, v, t);
}

/* The terms of all columns, j by j. */
static void add_columns(struct any *x, uint32_t n)
{
    struct cg *g = x->g;
    const struct chain_stream *s = &x->f->stream[n];
    struct cg_val part[CHAIN_PARTS];
    for (uint32_t i = 0; i < s->npart; i++)
        part[i] = cg_freeze(g, term_of(x, n, s->part[i].e));
    struct cg_val from = cg_minmax(g, true, x->low[n], x->first);
    struct cg_val to =
        cg_minmax(g, false, x->high[n], cg_binary(g, OP_ADD, x->first, cg_int(DT_I64, LANES)));
    from = cg_convert(g, cg_binary(g, OP_SUB, from, x->first), DT_I32);
    to = cg_freeze(g, cg_convert(g, cg_binary(g, OP_SUB, to, x->first), DT_I32));
    const size_t bound = g->bindings.n;
    struct cg_for loop;
    cg_for_open(g, &loop, "term", "terms", from, &to);
    for (uint32_t i = 0; i < s->npart; i++)
        cg_bind(g, s->part[i].sym, from_lane(x, part[i], loop.at), false);
    const struct cg_val here = cg_index(g, cg_value(DT_I32, loop.at));
    cg_bind(g, x->f->j, cg_index(g, cg_binary(g, OP_ADD, x->first, here)), false);
    for (uint32_t k = 0; k < x->wide; k++)
        add_term(x, n, k);
    cg_for_close(g, &loop, cg_int(DT_I32, 1), &to);
    g->bindings.n = bound;
}

/* ---- all j ----------------------------------------------------------------------------------- */

static void add_stream(struct any *x, uint32_t n)
{
    struct cg *g = x->g;
    const struct chain_stream *s = &x->f->stream[n];
    rescale(x, n);
    if (s->has_column) {
        add_columns(x, n);
        return;
    }
    struct cg_val v = cg_convert(g, term_of(x, n, s->term), s->type);
    v = cg_select(g, cg_reg(g, x->inside[n]), v, cg_reduce_identity(g, s->reduce, s->type));
    if (is_maximum(x, n))
        grow_maximum(x, n, v);
    else
        fold_into(x, n, 0, v);
}

static void add_step(struct any *x)
{
    struct cg *g = x->g;
    const size_t bound = g->bindings.n;
    g->converts = true;
    find_inside(x);
    cg_bind(g, x->f->j, x->j, false);
    find_scores(x);
    for (uint32_t i = 0; i < x->f->nstream; i++)
        add_stream(x, i);
    g->converts = false;
    g->bindings.n = bound;
}

static void for_steps(struct any *x, struct cg_val low, struct cg_val high)
{
    struct cg *g = x->g;
    struct cg_for loop;
    low = cg_convert(g, low, DT_I64);
    high = cg_freeze(g, high);
    cg_for_open(g, &loop, "step", "steps", low, &high);
    x->first = cg_freeze(g, cg_value(DT_I64, loop.at));
    x->j = cg_binary(g, OP_ADD, x->first, cg_convert(g, x->lane, DT_I64));
    add_step(x);
    cg_for_close(g, &loop, cg_int(DT_I64, LANES), &high);
}

/* Begins again where a maximum has stayed -inf: now as the equations have it. */
static void repeat_infinite(struct any *x, uint32_t again)
{
    struct cg *g = x->g;
    struct cg_val any = cg_bool(g, false);
    for (uint32_t i = 0; i < x->f->nstream; i++) {
        const enum dtype t = x->f->stream[i].type;
        if (x->least[i] < 0)
            continue;
        const struct cg_val none = cg_float(g, t, -INFINITY), least = cg_value(t, x->least[i]);
        const struct cg_val is_none = cg_binary(g, OP_EQ, state_of(x, i, 0), none);
        const struct cg_val first = cg_binary(g, OP_NE, least, none);
        const struct cg_val repeats = cg_freeze(g, cg_binary(g, OP_LAND, is_none, first));
        cg_move(g, x->least[i], cg_select(g, cg_reg(g, repeats), none, least));
        any = cg_binary(g, OP_LOR, any, repeats);
    }
    int64_t never;
    if (!cg_is_const(any, &never))
        cg_jump_if(g, cg_reg(g, any), true, again);
}

/* ---- results --------------------------------------------------------------------------------- */

static void bind_results(struct any *x, uint32_t column)
{
    struct cg *g = x->g;
    for (uint32_t i = 0; i < x->f->nstream; i++)
        cg_bind(g, x->f->stream[i].sym, state_of(x, i, x->f->stream[i].has_column ? column : 0),
                false);
}

/* Stores the outputs of a column, or of the row. */
static void store(struct any *x, bool columns)
{
    struct cg *g = x->g;
    struct cg_val v[CHAIN_OUTS], sub[CHAIN_AXES];
    for (uint32_t i = 0; i < x->f->nout; i++)
        if (x->f->out[i].has_column == columns) {
            cg_at(g, x->f->out[i].eq->span);
            v[i] = cg_convert(g, cg_expr(g, x->f->out[i].eq->rhs), x->f->out[i].eq->sym->type);
        }
    for (uint32_t i = 0; i < x->f->nout; i++) {
        const struct lang_equation *eq = x->f->out[i].eq;
        if (x->f->out[i].has_column != columns)
            continue;
        for (uint32_t k = 0; k < eq->nindex; k++)
            sub[k] = cg_find(g, eq->index[k])->val;
        cg_store(g, eq->sym, cg_address(g, eq->sym, cg_flat_index(g, eq->sym, eq->nindex, sub)),
                 v[i]);
    }
}

static bool any_out(const struct chain_form *f, bool columns)
{
    for (uint32_t i = 0; i < f->nout; i++)
        if (f->out[i].has_column == columns)
            return true;
    return false;
}

static void store_if(struct any *x, struct cg_val p, bool columns)
{
    struct cg *g = x->g;
    const uint32_t skip = cg_label(g, "stored");
    cg_jump_if(g, cg_reg(g, p), false, skip);
    const size_t mark = cg_scope_open(g);
    store(x, columns);
    cg_scope_close(g, mark);
    cg_place(g, skip);
}

static void store_all(struct any *x)
{
    struct cg *g = x->g;
    const struct cg_val zero = cg_u32(0);
    for (uint32_t i = 0; i < x->f->nstream; i++) {
        const struct chain_stream *s = &x->f->stream[i];
        if (!s->has_column && x->least[i] < 0)
            cg_move(g, x->state[i][0], warp_fold(g, chain_fold(s), state_of(x, i, 0), &x->all));
    }
    for (uint32_t k = 0; k < x->wide; k++) {
        const size_t bound = g->bindings.n;
        const struct cg_val c = column_of(x, k);
        bind_results(x, k);
        cg_bind(g, x->f->column, c, false);
        store_if(x, cg_binary(g, OP_LT, c, x->end), true);
        g->bindings.n = bound;
    }
    if (!any_out(x->f, false))
        return;
    const size_t bound = g->bindings.n;
    bind_results(x, 0);
    struct cg_val first = cg_binary(g, OP_EQ, x->lane, zero);
    first = cg_binary(g, OP_LAND, first, cg_binary(g, OP_EQ, x->column, zero));
    store_if(x, first, false);
    g->bindings.n = bound;
}

/* The columns from x->column on, and where they are the first the row itself. */
static void compute_columns(struct any *x)
{
    struct cg *g = x->g;
    const size_t bound = g->bindings.n;
    struct cg_val low, high;
    bind_row(x);
    begin_states(x);
    find_ranges(x, &low, &high);
    low = cg_freeze(g, low);
    high = cg_freeze(g, high);
    const uint32_t again = cg_label(g, "row");
    cg_place(g, again);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    clear_states(x);
    for_steps(x, low, high);
    repeat_infinite(x, again);
    cg_scope_close(g, mark);
    store_all(x);
    g->bindings.n = bound;
}

/* Columns of a lane: as few as take all, where that is known. */
static uint32_t wide_of(const struct chain_form *f)
{
    int64_t n;
    if (!f->column)
        return 0;
    if (!lang_const_int(f->column->dims[0], &n))
        return USUAL_WIDE;
    const int64_t wide = (n + LANES - 1) / LANES;
    return wide > MOST_WIDE ? MOST_WIDE : wide < 1 ? 1 : (uint32_t)wide;
}

static void find_end(struct any *x)
{
    x->all = warp_lanes(x->g);
    x->wide = wide_of(x->f);
    if (x->f->column)
        x->end = extent_of(x->g, x->f->column).v;
}

void chain_any_row(struct cg *g, const struct chain_form *f, const struct cg_val *row,
                   struct cg_val lane)
{
    struct any x = {.g = g, .f = f, .lane = lane};
    struct cg_for loop;
    struct cg_val end;
    memcpy(x.row, row, sizeof x.row);
    find_end(&x);
    cg_for_open(g, &loop, "columns", NULL, cg_u32(0), NULL);
    x.column = cg_freeze(g, cg_value(DT_U32, loop.at));
    compute_columns(&x);
    if (x.wide)
        end = cg_convert(g, x.end, DT_U32);
    cg_for_close(g, &loop, cg_u32(x.wide * LANES), x.wide ? &end : NULL);
}

/* ---- the launch ------------------------------------------------------------------------------ */

struct lang_expr *chain_any(struct cg *g, const struct chain_form *f)
{
    struct any x = {.g = g, .f = f};
    const struct cg_val thread = cg_special(g, SP_TID_X);
    struct extent rows = extent_constant(g, 1), parts = rows;
    struct cg_val block = cg_index(g, cg_special(g, SP_CTAID_X)), part = cg_int(DT_I64, 0);
    for (uint32_t i = 0; i < f->nrow; i++)
        rows = extent_times(g, rows, extent_of(g, f->row[i]));
    find_end(&x);
    if (f->column) {
        parts = extent_divided(g, f->column, x.wide * LANES);
        extent_split(g, block, parts, &block, &part);
    }
    x.lane = cg_binary(g, OP_AND, thread, cg_u32(LANES - 1));
    x.column = cg_mul(g, extent_u32(g, part), x.wide * LANES);
    struct cg_val n = cg_mul(g, extent_u32(g, block), WARPS);
    n = cg_index(g, cg_add(g, n, cg_binary(g, OP_SHR, thread, cg_u32(5))));
    g->exit_used = true;
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, n, rows.v)), true, g->exit);
    for (uint32_t i = f->nrow; i-- > 1;)
        extent_split(g, n, extent_of(g, f->row[i]), &n, &x.row[i]);
    if (f->nrow)
        x.row[0] = n;
    compute_columns(&x);
    return lx_mul(g->a, lx_ceil_div_int(g->a, rows.e, WARPS), parts.e);
}
