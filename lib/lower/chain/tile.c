/* The streams of a warp's rows, of scores that tensor cores have summed (chain.h).
 *
 * A step takes a tile of scores: maxima first, which the four lanes of a row share where terms fall
 * off from them at once (chain/fall.c), then sums, of which each lane has a part until the end, and
 * the left operands of products. Where all j of the tile are terms of all rows there is nothing to
 * mask; that is one of two copies of the code.
 */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/cg/sync.h"

#include <math.h>

enum { LANES = 32 };

bool chain_is_maximum(const struct chain_tile *x, uint32_t n)
{
    for (uint32_t i = 0; i < x->t->f->nstream; i++)
        if (chain_tile_stream(x, i)->running == (int)n)
            return true;
    return false;
}

struct chain_column chain_tile_column(const struct chain_tile *x, uint32_t n, uint32_t which)
{
    struct cg *g = x->g;
    const struct cg_val member = cg_binary(g, OP_AND, x->lane, cg_u32(3));
    struct chain_column c = {.block = n, .pair = which};
    if (!x->fours) {
        c.at = cg_add(g, cg_mul(g, member, 2), cg_u32(n * 8 + which));
        return c;
    }
    c.block = n / 2 * 2 + which;
    c.pair = n % 2;
    c.at = cg_add(g, cg_mul(g, member, 4), cg_u32(n / 2 * 16 + n % 2 * 2 + which));
    return c;
}

/* ---- a step ---------------------------------------------------------------------------------- */

struct step {
    struct chain_tile *x;
    struct cg_val first; /* u32: of the tile's j */
    int32_t *const *score;
    bool masked;
    struct cg_val before[CHAIN_STREAMS][CHAIN_ROWS]; /* maxima before this step, */
    struct cg_val now[CHAIN_STREAMS][CHAIN_ROWS];    /* and as terms take them, */
    uint32_t known;                                  /* of so many streams */
    uint32_t row, end;        /* the lane's rows that are taken together, of which waits overlap */
    uint32_t column, columns; /* those whose left operands are made */
    struct chain_values *values;
};

/* An element of the lane's: one of 8 columns number b, of its pair of those. */
struct element {
    uint32_t row, b, pair;
};

static struct cg_val j_of(const struct step *s, const struct element *e)
{
    struct cg *g = s->x->g;
    const struct cg_val member = cg_binary(g, OP_AND, s->x->lane, cg_u32(3));
    const struct cg_val j = cg_add(g, s->first, cg_mul(g, member, 2));
    return cg_add(g, j, cg_u32(e->b * 8 + e->pair));
}

/* How far the end of a range is behind the first j of the lane's elements. */
static struct cg_val distance(const struct step *s, struct cg_val end)
{
    const struct element first = {0, 0, 0};
    struct cg *g = s->x->g;
    return cg_binary(g, OP_SUB, end, cg_convert(g, j_of(s, &first), DT_I32));
}

/* Is the element's j one of the stream's terms? */
static struct cg_val is_inside(const struct step *s, uint32_t n, const struct element *e)
{
    struct chain_tile *x = s->x;
    struct cg *g = x->g;
    const struct cg_val at = cg_int(DT_I32, e->b * 8 + e->pair);
    int64_t zero;
    if (!s->masked)
        return cg_bool(g, true);
    struct cg_val p = cg_binary(g, OP_GT, distance(s, x->high_of[n][e->row]), at);
    if (!cg_is_const(x->low[n][e->row], &zero) || zero)
        p = cg_binary(g, OP_LAND, cg_binary(g, OP_LE, distance(s, x->low[n][e->row]), at), p);
    return p;
}

/* Binds what stands for the row's axes and for its maxima. */
static void bind_row(const struct step *s, uint32_t row)
{
    chain_bind_row(s->x, row);
    for (uint32_t n = 0; n < s->known; n++)
        if (chain_is_maximum(s->x, n))
            cg_bind(s->x->g, chain_tile_stream(s->x, n)->sym, s->now[n][row], false);
}

/* Binds what stands for the element's j. */
static void bind_j(const struct step *s, const struct element *e)
{
    struct chain_tile *x = s->x;
    x->first_j = cg_index(x->g, j_of(s, &(struct element){0, 0, 0}));
    x->distance = e->b * 8 + e->pair;
    x->of_row = e->row;
    cg_bind(x->g, x->t->f->j, cg_index(x->g, j_of(s, e)), false);
}

/* Binds what stands for the element's j and scores. */
static void bind_element(const struct step *s, const struct element *e)
{
    struct chain_tile *x = s->x;
    const uint32_t i = e->row / 2, word = e->row % 2 * 2 + e->pair;
    bind_j(s, e);
    for (uint32_t n = 0; n < x->t->f->nscore; n++) {
        const int32_t reg = s->score[n][((i * x->wide / 8) + e->b) * 4 + word];
        cg_bind(x->g, x->t->score[n].raw, cg_value(DT_F32, reg), false);
        cg_bind(x->g, x->t->f->score[n].sym, cg_expr(x->g, x->t->score[n].value), false);
    }
}

/* The stream's expression e for the element: `none` outside of its range. */
static struct cg_val value_of(const struct step *s, uint32_t n, const struct element *e,
                              const struct lang_expr *term, enum dtype t, struct cg_val none)
{
    struct cg *g = s->x->g;
    const struct cg_val inside = is_inside(s, n, e);
    const struct cg_guard before = cg_guard(g, inside, true);
    const size_t bound = g->bindings.n;
    int64_t always;
    bind_element(s, e);
    s->x->inside = inside;
    s->x->guard = g->guard;
    s->x->outside = before;
    struct cg_val v = cg_convert(g, cg_expr(g, term), t);
    g->bindings.n = bound;
    cg_unguard(g, before);
    if (s->x->masks && n != (uint32_t)s->x->top)
        return v; /* exp(-inf) */
    return cg_is_const(inside, &always) && always ? v : cg_select(g, cg_reg(g, inside), v, none);
}

/* Folds all of the row's elements of the step. Maxima are folded two by two, which takes half as
 * long: each waits for the one before. */
static struct cg_val fold_row(const struct step *s, uint32_t n, uint32_t row)
{
    enum { CHAINS = 2 };
    struct chain_tile *x = s->x;
    struct cg *g = x->g;
    const struct chain_stream *of = chain_tile_stream(x, n);
    const struct cg_val none = cg_reduce_identity(g, of->reduce, of->type);
    const uint32_t chains = chain_is_maximum(x, n) ? CHAINS : 1;
    struct cg_val all[CHAINS];
    for (uint32_t i = 0; i < x->wide / 4; i++) {
        const struct element e = {row, i / 2, i % 2};
        const struct cg_val v = value_of(s, n, &e, of->term, of->type, none);
        struct cg_val *to = &all[i % chains];
        *to = i < chains ? v : fold_pair(g, chain_fold(of), *to, v);
    }
    return chains == 1 ? all[0] : fold_pair(g, chain_fold(of), all[0], all[1]);
}

struct cg_val chain_over_lanes(struct cg *g, enum fold_kind how, struct cg_val v, int64_t lane)
{
    const struct ptx_operand all = ptx_imm(UINT32_MAX), clamp = ptx_imm(LANES - 1);
    return fold_pair(g, how, v, shuffle(g, SHUFFLE_XOR, v, ptx_imm(lane), clamp, all, NULL));
}

/* By what the stream's sum is multiplied since its maximum has grown. */
static struct cg_val rescaling(const struct step *s, uint32_t n, uint32_t row)
{
    return chain_rescaling(s->x, n, row, s->before[chain_tile_stream(s->x, n)->running][row]);
}

/* Folds the rows' elements of the step. */
static void fold_rows(const struct step *s, uint32_t n, struct cg_val *v)
{
    struct cg *g = s->x->g;
    const size_t bound = g->bindings.n;
    for (uint32_t row = s->row; row < s->end; row++) {
        bind_row(s, row);
        v[row] = fold_row(s, n, row);
        g->bindings.n = bound;
    }
}

/* The largest of the row's products, or the least. */
static struct cg_val fold_raw(const struct step *s, uint32_t row, bool largest)
{
    enum { CHAINS = 2 };
    const struct chain_tile *x = s->x;
    const int32_t *reg = s->score[x->scaled] + row / 2 * (x->wide / 2) + row % 2 * 2;
    const enum fold_kind how = largest ? FOLD_MAX : FOLD_MIN;
    struct cg_val all[CHAINS];
    for (uint32_t i = 0; i < x->wide / 4; i++) {
        const struct cg_val v = cg_value(DT_F32, reg[i / 2 * 4 + i % 2]);
        all[i % CHAINS] = i < CHAINS ? v : fold_pair(x->g, how, all[i % CHAINS], v);
    }
    return fold_pair(x->g, how, all[0], all[1]);
}

/* The number that products are multiplied by, the same for all rows. */
static struct cg_val scale_of_tile(struct chain_tile *x)
{
    const size_t bound = x->g->bindings.n;
    chain_bind_row(x, 0);
    const struct cg_val by = cg_expr(x->g, x->scale_by);
    x->g->bindings.n = bound;
    return by;
}

/* The same where the maximum is that of the products times one number. */
static void fold_scaled(const struct step *s, struct cg_val *v)
{
    struct chain_tile *x = s->x;
    struct cg *g = x->g;
    const struct cg_val by = scale_of_tile(x);
    const struct cg_val is_below = cg_binary(g, OP_LT, by, chain_f32(g, 0));
    const uint32_t below = cg_label(g, "below"), done = cg_label(g, "folded");
    int32_t to[CHAIN_ROWS];
    for (uint32_t row = s->row; row < s->end; row++)
        to[row] = cg_new_mutable(g, DT_F32);
    cg_jump_if(g, cg_reg(g, is_below), true, below);
    for (uint32_t i = 0; i < 2; i++) {
        const size_t mark = cg_scope_open(g);
        for (uint32_t row = s->row; row < s->end; row++)
            cg_move(g, to[row], fold_raw(s, row, i == 0));
        cg_scope_close(g, mark);
        if (i == 0)
            cg_jump(g, done);
        cg_place(g, i == 0 ? below : done);
        cg_loop_head(g);
    }
    for (uint32_t row = s->row; row < s->end; row++)
        v[row] = cg_binary(g, OP_MUL, cg_value(DT_F32, to[row]), by);
}

/* Maxima of all rows, which wait for other lanes together. */
static void grow_maxima(struct step *s, uint32_t n)
{
    struct chain_tile *x = s->x;
    struct cg *g = x->g;
    struct cg_val v[CHAIN_ROWS];
    if (x->top == (int)n && x->scale_by && !s->masked)
        fold_scaled(s, v);
    else
        fold_rows(s, n, v);
    const bool lone = x->top == (int)n && x->lone;
    for (int64_t lane = 1; lane < 4 && !lone; lane *= 2)
        for (uint32_t row = s->row; row < s->end; row++)
            v[row] = chain_over_lanes(g, FOLD_MAX, v[row], lane);
    for (uint32_t row = s->row; row < s->end; row++) {
        s->before[n][row] = cg_freeze(g, chain_tile_state(x, n, row));
        cg_move(g, x->state[n][row], cg_minmax(g, true, chain_tile_state(x, n, row), v[row]));
    }
    if (x->top == (int)n)
        chain_fall_grow(x);
    for (uint32_t row = s->row; row < s->end; row++)
        s->now[n][row] = cg_freeze(g, x->top == (int)n
                                          ? cg_value(DT_F32, x->reference[row])
                                          : chain_for_terms(x, chain_tile_state(x, n, row)));
}

static void fold_into(const struct step *s, uint32_t n, uint32_t row, struct cg_val v)
{
    struct chain_tile *x = s->x;
    struct cg *g = x->g;
    const struct chain_stream *of = chain_tile_stream(x, n);
    if (of->running >= 0 && x->top < 0) {
        const struct cg_val by = cg_convert(g, rescaling(s, n, row), of->type);
        v = cg_fma(g, chain_tile_state(x, n, row), by, v);
    } else {
        v = fold_pair(g, chain_fold(of), chain_tile_state(x, n, row), v);
    }
    cg_move(g, x->state[n][row], v);
}

/* Computes the row's elements of the left operand. */
static void make_values(const struct step *s, uint32_t c, uint32_t row)
{
    struct chain_tile *x = s->x;
    struct cg *g = x->g;
    enum dtype t;
    const struct lang_expr *const term = chain_unrounded(x, c, &t);
    const uint32_t n = x->t->column[c].stream;
    for (uint32_t b = 0; b < x->wide / 8; b++)
        for (uint32_t pair = 0; pair < 2; pair++) {
            const struct element e = {row, b, pair};
            s->values->of[c][row][2 * b + pair] = value_of(s, n, &e, term, t, cg_float(g, t, 0));
        }
    if (chain_tile_stream(x, n)->running >= 0 && x->top < 0)
        cg_move(g, x->scale[c][row], rescaling(s, n, row));
}

/* The rows' maxima, of all streams. */
static void step_maxima(struct step *s)
{
    for (uint32_t n = 0; n < s->x->t->f->nstream; n++) {
        if (chain_is_maximum(s->x, n))
            grow_maxima(s, n);
        s->known = n + 1;
    }
}

/* The other streams of one row, and the left operands' elements. */
static void step_row(const struct step *s, uint32_t row)
{
    struct chain_tile *x = s->x;
    const size_t bound = x->g->bindings.n;
    bind_row(s, row);
    for (uint32_t n = 0; n < x->t->f->nstream; n++)
        if (!chain_tile_stream(x, n)->has_column && !chain_is_maximum(x, n))
            fold_into(s, n, row, fold_row(s, n, row));
    for (uint32_t c = s->column; c < s->columns; c++)
        make_values(s, c, row);
    x->g->bindings.n = bound;
    if (x->has_row)
        x->has_row(x->has_row_ctx, s->values, row);
}

/* All streams of the rows. */
static void step_rows(struct step *s)
{
    s->known = 0;
    step_maxima(s);
    for (uint32_t row = s->row; row < s->end; row++)
        step_row(s, row);
}

/* exp(d), a difference from a maximum. */
static struct cg_val fall(struct cg *g, const struct lang_expr *d)
{
    struct chain_tile *x = g->read_ctx;
    const struct cg_val from = cg_expr(g, d->args[1]);
    int64_t always;
    if (chain_is_scaled(x, d->args[0]))
        return chain_fall_raw(x, cg_find(g, x->t->score[x->scaled].raw)->val, from);
    struct cg_val v = cg_expr(g, d->args[0]);
    if (x->masks && !cg_is_const(x->inside, &always))
        v = cg_select(g, cg_reg(g, x->inside), v, chain_f32(g, -INFINITY));
    return chain_fall(x, v, from);
}

static bool answer_call(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    const struct chain_tile *x = g->read_ctx;
    const struct lang_expr *d = e->nargs ? e->args[0] : NULL;
    if (e->type != DT_F32 || !chain_is_rough(x))
        return false;
    if (e->fn == FN_TANH && g->contract_fma && !g->fast) {
        *v = chain_rough_tanh(g, cg_expr(g, d));
        return true;
    }
    if (e->fn != FN_EXP || d->kind != E_BINARY || d->op != OP_SUB || d->type != DT_F32)
        return false;
    for (uint32_t i = 0; i < x->t->f->nstream; i++) {
        const struct chain_stream *s = chain_tile_stream(x, i);
        if (!chain_is_plain(s) || !matmul_same(s->base, d->args[1]))
            continue;
        *v = fall(g, d);
        return true;
    }
    return false;
}

/* exp(x - m), m being the maximum of x. */
static bool is_falling(struct cg *g, const struct lang_expr *e, bool *rough)
{
    const struct chain_tile *x = g->read_ctx;
    *rough = false;
    for (uint32_t i = 0; i < x->t->f->nstream; i++)
        if (chain_is_maximum(x, i) && chain_mentions(e->args[0], chain_tile_stream(x, i)->sym))
            for (uint32_t k = 0; k < x->t->f->nstream; k++)
                if (chain_tile_stream(x, k)->running == (int)i &&
                    !chain_tile_stream(x, k)->weight && !chain_tile_stream(x, k)->base2)
                    return true;
    return false;
}

static struct chain_values *values_of(struct chain_tile *x)
{
    struct chain_values *v = ARENA_NEW(x->g->a, struct chain_values);
    for (uint32_t c = 0; c < x->t->ncolumn; c++)
        for (uint32_t row = 0; row < chain_tile_rows(x); row++)
            v->of[c][row] = ARENA_ARRAY(x->g->a, x->wide / 4, struct cg_val);
    return v;
}

bool chain_masks_products(const struct chain_tile *x)
{
    return x->masks && x->scale_by;
}

/* Does .keep hold for the element, if there is such a j? */
static struct cg_val is_kept(const struct step *s, const struct element *e)
{
    struct chain_tile *x = s->x;
    struct cg *g = x->g;
    const struct cg_val j = j_of(s, e), exists = cg_binary(g, OP_LT, j, x->end);
    const struct cg_guard before = cg_guard(g, exists, true);
    const size_t bound = g->bindings.n;
    bind_j(s, e);
    x->guard = g->guard;
    x->outside = before;
    const struct cg_val kept = cg_expr(g, x->keep);
    g->bindings.n = bound;
    cg_unguard(g, before);
    return kept;
}

/* Makes the element's product `none` where it is no term. */
static void mask_product(const struct step *s, const struct element *e, bool keeps,
                         struct cg_val none)
{
    struct chain_tile *x = s->x;
    struct cg *g = x->g;
    const uint32_t at = e->row / 2 * (x->wide / 2) + e->b * 4 + e->row % 2 * 2 + e->pair;
    const int32_t reg = s->score[x->scaled][at];
    const size_t bound = g->bindings.n;
    struct cg_val inside = is_inside(s, (uint32_t)x->top, e);
    chain_bind_row(x, e->row);
    if (keeps)
        inside = cg_binary(g, OP_LAND, inside, is_kept(s, e));
    cg_move(g, reg, cg_select(g, cg_reg(g, inside), cg_value(DT_F32, reg), none));
    g->bindings.n = bound;
}

/* Products times 0 become NaN by it, and their rows are computed anew. What keeps a column is read
 * once for all rows. */
static void mask_products(const struct step *s, bool keeps)
{
    struct chain_tile *x = s->x;
    struct cg *g = x->g;
    const struct cg_val by = scale_of_tile(x), most = chain_f32(g, INFINITY);
    const struct cg_val is_below = cg_binary(g, OP_LT, by, chain_f32(g, 0));
    const struct cg_val none = cg_select(g, cg_reg(g, is_below), most, chain_f32(g, -INFINITY));
    for (uint32_t i = 0; i < x->wide / 4; i++)
        for (uint32_t row = 0; row < chain_tile_rows(x); row++)
            mask_product(s, &(struct element){row, i / 2, i % 2}, keeps, none);
}

/* Masks them in tiles that are not whole. */
static void mask_tile(struct step *s)
{
    struct cg *g = s->x->g;
    const uint32_t whole = cg_label(g, "whole");
    const struct cg_val is_whole = chain_tile_is_whole(s->x, s->first);
    int64_t never;
    if (!cg_is_const(is_whole, &never))
        cg_jump_if(g, cg_reg(g, is_whole), true, whole);
    const size_t mark = cg_scope_open(g);
    if (s->x->keep && s->x->sure.type != DT_VOID) {
        const uint32_t unsure = cg_label(g, "unsure");
        cg_jump_if(g, cg_reg(g, s->x->sure), false, unsure);
        mask_products(s, false);
        cg_jump(g, whole);
        cg_scope_close(g, mark);
        cg_place(g, unsure);
        cg_loop_head(g);
    }
    mask_products(s, s->x->keep);
    cg_scope_close(g, mark);
    cg_place(g, whole);
    cg_loop_head(g);
    s->masked = false;
}

/* What stands between the products is computed by these rules. */
static void set_rules(struct chain_tile *x)
{
    struct cg *g = x->g;
    g->converts = true;
    g->falling = is_falling;
    g->called = answer_call;
    g->binary = chain_narrow_binary;
    g->cast = chain_narrow_cast;
    g->read = chain_narrow_read;
    g->quotient = chain_is_rough(x) && !g->fast ? chain_rough_quotient : NULL;
    g->read_ctx = x;
    g->tensor = chain_is_rough(x);
}

static void clear_rules(struct cg *g)
{
    g->falling = NULL;
    g->called = NULL;
    g->binary = g->cast = NULL;
    g->read = NULL;
    g->quotient = NULL;
    g->read_ctx = NULL;
    g->tensor = false;
    g->converts = false;
}

/* Streams without a column, and the columns' left operands. */
static void step_terms(struct step *s)
{
    struct chain_tile *x = s->x;
    set_rules(x);
    if (x->lifted)
        chain_lift(x, s->score[x->scaled]);
    if (s->masked && chain_masks_products(x))
        mask_tile(s);
    /* rows that are not rough take more registers each */
    for (s->end = 0; s->end < chain_tile_rows(x);) {
        s->row = s->end;
        s->end = chain_is_rough(x) ? chain_tile_rows(x) : s->row + 1;
        step_rows(s);
    }
    clear_rules(x->g);
}

/* Of the columns from `column` to `columns`. */
static struct chain_values *terms_of(struct chain_tile *x, struct cg_val first,
                                     int32_t *const *score, bool masked, uint32_t column,
                                     uint32_t columns)
{
    struct step *s = ARENA_NEW(x->g->a, struct step);
    *s = (struct step){.x = x,
                       .first = first,
                       .score = score,
                       .masked = masked,
                       .column = column,
                       .columns = columns,
                       .values = values_of(x)};
    step_terms(s);
    return s->values;
}

struct chain_values *chain_tile_terms(struct chain_tile *x, struct cg_val first,
                                      int32_t *const *score, bool masked)
{
    return terms_of(x, first, score, masked, 0, x->t->ncolumn);
}

void chain_tile_column_words(struct chain_tile *x, uint32_t c, struct cg_val first,
                             int32_t *const *score, bool masked)
{
    chain_words_of(x, terms_of(x, first, score, masked, c, c + 1), c);
}

void chain_tile_rescale(struct chain_tile *x)
{
    struct cg *g = x->g;
    const uint32_t steady = cg_label(g, "steady");
    if (x->top >= 0)
        cg_jump_if(g, x->grown, false, steady);
    for (uint32_t c = 0; c < x->t->ncolumn; c++)
        for (uint32_t row = 0; row < chain_tile_rows(x); row++)
            if (chain_tile_stream(x, x->t->column[c].stream)->running >= 0)
                chain_multiply_sums(x, c, row, cg_value(DT_F32, x->scale[c][row]));
    if (x->top >= 0) {
        cg_place(g, steady);
        cg_loop_head(g);
    }
}

static void step(struct chain_tile *x, struct cg_val first, int32_t *const *score, bool masked)
{
    const size_t mark = cg_scope_open(x->g);
    chain_tile_words(x, chain_tile_terms(x, first, score, masked));
    cg_scope_close(x->g, mark);
}

void chain_tile_step(struct chain_tile *x, struct cg_val first, int32_t *const *score)
{
    struct cg *g = x->g;
    const struct cg_val p = chain_tile_is_whole(x, first);
    int64_t always;
    const bool is_whole = cg_is_const(p, &always) && always;
    if (is_whole || chain_masks_products(x)) {
        step(x, first, score, !is_whole);
        chain_tile_rescale(x);
        return;
    }
    const uint32_t whole = cg_label(g, "whole"), done = cg_label(g, "done");
    cg_jump_if(g, cg_reg(g, p), true, whole);
    step(x, first, score, true);
    cg_jump(g, done);
    cg_place(g, whole);
    cg_loop_head(g); /* the other way has assigned registers */
    step(x, first, score, false);
    cg_place(g, done);
    cg_loop_head(g);
    chain_tile_rescale(x);
}
