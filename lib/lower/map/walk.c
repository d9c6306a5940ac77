/* Any map: every thread computes a vector of neighbouring elements along the outputs' last axis.
 *
 * The vectors are numbered in the outputs' order; a thread finds its position from its number by
 * divisions that cost a few multiplications (magic.c). There are up to five variants, of which the
 * launch takes the first that its sizes allow: vectors with the alignment that the reads would
 * like; vectors, as far as the outputs' rows allow them; vectors that go over the ends of rows,
 * which each lane has subscripts of its own for; single elements; and single elements of more than
 * 2^31, with 64-bit arithmetic.
 */
#include <config.h>

#include "lower/map/map.h"
#include "lower/schedule.h"

#include <stdio.h>

enum {
    BLOCK = 256,
    /* Operations of an element, reductions written out: */
    MOST_WRAPPED = 100,  /* with subscripts for each lane */
    MOST_UNROLLED = 25,  /* several times, where elements are done one by one */
    MOST_SPECIAL = 1500, /* times the lanes: in a further variant of vectors */
};

struct walk {
    const struct lower_stage *s;
    const struct lang_symbol *shape;
    uint32_t vector, unroll, block;
    uint32_t least; /* elements that can be stored: two of packed types */
    uint32_t apart; /* leading axes along which a large read does not move */
    double cost;
};

/* ---- positions ------------------------------------------------------------------------------- */

struct variant {
    const char *part; /* of its name, unless it is the first */
    uint32_t lanes;
    bool assumes, large;
    bool wraps;    /* vectors may go over the ends of rows */
    bool is_whole; /* and all elements are a number of them */
};

/* The extent along an axis in vectors, and as the launch has it. */
static struct cg_val extent_of(struct cg *g, const struct walk *w, uint32_t axis, uint32_t divide,
                               struct lang_expr **at_launch)
{
    struct cg_val n = cg_extent(g, w->shape, axis);
    int64_t c;
    if (cg_is_const(n, &c)) {
        *at_launch = lx_int(g->a, c / divide);
        return cg_int(DT_I64, c / divide);
    }
    *at_launch = lx_div_int(g->a, w->shape->dims[axis], divide);
    if (divide == 1)
        return n;
    struct cg_val v = cg_param_computed(g, *at_launch);
    v.type = DT_I64;
    return v;
}

/* v, which is less than 2^32. */
static struct cg_val narrowed(struct cg *g, struct cg_val v)
{
    int64_t c;
    if (cg_is_const(v, &c) || v.narrow == CG_U32)
        return v;
    return cg_index(g, cg_convert(g, v, DT_U32));
}

/* Are the axis's subscripts less than 2^32? An extent that is a product may be more. */
static bool is_short(struct cg *g, const struct walk *w, uint32_t axis)
{
    int64_t c;
    struct cg_val n = cg_extent(g, w->shape, axis);
    return n.narrow == CG_U32 || (cg_is_const(n, &c) && c <= UINT32_MAX);
}

/* The subscripts of vector number t. */
static void find_position(struct cg *g, const struct walk *w, const struct variant *v,
                          struct map_reader *m, struct cg_val t)
{
    const uint32_t rank = w->shape->rank;
    m->prefix[rank] = cg_binary(g, OP_MUL, t, cg_int(DT_I64, v->lanes));
    for (uint32_t i = rank; i-- > 1;) {
        struct lang_expr *extent;
        struct cg_val n = extent_of(g, w, i, i + 1 == rank ? v->lanes : 1, &extent);
        if (v->large)
            cg_divmod(g, t, n, &t, &m->sub[i]);
        else
            magic_divmod(g, t, extent, n, &t, &m->sub[i]);
        m->prefix[i] = t;
    }
    m->sub[0] = !v->large || is_short(g, w, 0) ? narrowed(g, t) : t;
    struct cg_val *last = &m->sub[rank - 1];
    if (is_short(g, w, rank - 1)) {
        struct cg_val c = cg_convert(g, *last, DT_U32);
        *last = cg_index(g, cg_binary(g, OP_MUL, c, cg_int(DT_U32, v->lanes)));
    } else {
        *last = cg_binary(g, OP_MUL, *last, cg_int(DT_I64, v->lanes));
    }
    m->prefix[1] = rank == 1 ? m->prefix[1] : m->sub[0];
}

/* Each lane's subscripts, counted on from the one before. */
static void find_lanes(struct cg *g, const struct walk *w, struct map_reader *m, struct cg_val t)
{
    const uint32_t rank = w->shape->rank;
    const struct variant one = {.lanes = 1};
    find_position(
        g, w, &one, m,
        cg_index(g, cg_convert(g, cg_binary(g, OP_MUL, t, cg_int(DT_I64, m->lanes)), DT_U32)));
    m->lane_sub = arena_alloc(g->a, m->lanes * sizeof *m->lane_sub);
    memcpy(m->lane_sub[0], m->sub, sizeof m->sub);
    for (uint32_t l = 1; l < m->lanes; l++) {
        struct cg_val carry = cg_int(DT_U32, 1);
        for (uint32_t i = rank; i-- > 0;) {
            struct cg_val next =
                cg_binary(g, OP_ADD, cg_convert(g, m->lane_sub[l - 1][i], DT_U32), carry);
            m->lane_sub[l][i] = cg_index(g, next);
            if (i == 0)
                break;
            struct cg_val end = cg_convert(g, cg_extent(g, w->shape, i), DT_U32);
            const int32_t over = cg_reg(g, cg_binary(g, OP_EQ, next, end));
            m->lane_sub[l][i] = cg_index(g, cg_select(g, over, cg_int(DT_U32, 0), next));
            carry = cg_select(g, over, cg_int(DT_U32, 1), cg_int(DT_U32, 0));
        }
    }
}

/* ---- code ------------------------------------------------------------------------------------ */

static void store(struct cg *g, const struct walk *w, const struct map_reader *m,
                  const struct cg_val *v)
{
    for (uint32_t i = 0; i < w->s->n; i++) {
        const struct lang_symbol *t = w->s->eq[i]->sym;
        cg_at(g, w->s->eq[i]->span);
        struct cg_place_of at = cg_address(g, t, m->prefix[t->rank]);
        if (m->lanes == 1)
            cg_store(g, t, at, v[i]);
        else
            cg_store_vector(g, t, at.base, at.offset, m->lanes, v + (size_t)i * m->lanes);
    }
}

/* The number of the block's work. What a large read has for many positions is asked for by blocks
 * that run at the same time, so that it comes from memory once: of neighbouring blocks each is at
 * another subscript of the leading axes that the read does not move along. */
static struct cg_val block_number(struct cg *g, const struct walk *w, const struct variant *v)
{
    const struct cg_val cta = cg_special(g, SP_CTAID_X);
    const int64_t each = (int64_t)w->block * w->unroll * v->lanes;
    int64_t apart = 1, rest = 1, one;
    for (uint32_t i = 0; i < w->shape->rank && w->apart; i++)
        if (!lang_const_int(w->shape->dims[i], &one) ||
            __builtin_mul_overflow(i < w->apart ? apart : rest, one, i < w->apart ? &apart : &rest))
            return cta;
    if (apart < 2 || apart > UINT32_MAX || rest < each || rest % each)
        return cta;
    struct cg_val at, number;
    cg_divmod(g, cg_index(g, cta), cg_int(DT_I64, apart), &number, &at);
    at = cg_binary(g, OP_MUL, cg_convert(g, at, DT_U32), cg_int(DT_U32, rest / each));
    return cg_binary(g, OP_ADD, at, cg_convert(g, number, DT_U32));
}

/* The thread's number among all, and the number of vectors. */
static struct cg_val start(struct cg *g, const struct walk *w, const struct variant *v)
{
    struct cg_val t = thread_start(g, w->block * w->unroll, 1);
    if (v->large)
        return t;
    struct cg_val block =
        cg_binary(g, OP_MUL, block_number(g, w, v), cg_int(DT_U32, w->block * w->unroll));
    return cg_index(g, cg_binary(g, OP_ADD, block, cg_special(g, SP_TID_X)));
}

/* Vectors that go over the ends of rows, of which `total` are whole: the thread after the last
 * computes what is left, element by element. */
static void last_elements(struct cg *g, const struct walk *w, struct cg_val t, struct cg_val total,
                          uint32_t lanes)
{
    struct lang_expr *elements;
    const struct variant one = {.lanes = 1};
    struct map_reader m = {.lanes = 1, .shape = w->shape}, *before = g->read_ctx;
    struct cg_val end = narrowed(g, shape_total(g, w->shape, 1, &elements));
    struct cg_val *out = ARENA_ARRAY(g->a, w->s->n, struct cg_val);
    int32_t at = cg_new_mutable(g, DT_U32);
    struct cg_val k = cg_value(DT_U32, at);
    struct cg_nest nest;
    uint32_t head = cg_label(g, "element");
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, t, total)), false, g->exit);
    cg_move(g, at, cg_binary(g, OP_MUL, cg_value(DT_U32, t.op.reg), cg_int(DT_U32, lanes)));
    cg_place(g, head);
    cg_loop_head(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, at);
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, cg_index(g, k), end)), false, g->exit);
    g->read_ctx = &m;
    find_position(g, w, &one, &m, cg_index(g, k));
    map_compute(g, &m, w->s->eq, w->s->n, out);
    store(g, w, &m, out);
    g->read_ctx = before;
    const struct cg_since since = cg_now(g);
    cg_move_new(g, at, cg_binary(g, OP_ADD, k, cg_int(DT_U32, 1)), since);
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
}

static void compute_wrapped(struct cg *g, const struct walk *w, const struct variant *v,
                            struct map_reader *m, struct cg_val total)
{
    struct cg_val *out = ARENA_ARRAY(g->a, (size_t)w->s->n * v->lanes, struct cg_val);
    const uint32_t rest = v->is_whole ? g->exit : cg_label(g, "rest");
    struct cg_val t = start(g, w, v);
    const int32_t inside = cg_reg(g, cg_binary(g, OP_LT, t, total));
    g->exit_used = true;
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, inside, false, rest);
    find_lanes(g, w, m, t);
    map_compute(g, m, w->s->eq, w->s->n, out);
    store(g, w, m, out);
    cg_scope_close(g, mark);
    if (v->is_whole)
        return;
    cg_jump(g, g->exit);
    cg_place(g, rest);
    last_elements(g, w, t, total, v->lanes);
}

static void compute(struct cg *g, const struct walk *w, const struct variant *v,
                    struct map_reader *m, struct cg_val total)
{
    struct map_reader *at = ARENA_ARRAY(g->a, w->unroll, struct map_reader);
    const size_t count = (size_t)w->s->n * v->lanes;
    struct cg_val *out = ARENA_ARRAY(g->a, w->unroll * count, struct cg_val);
    int32_t *inside = ARENA_ARRAY(g->a, w->unroll, int32_t);
    struct cg_val t = start(g, w, v);
    for (uint32_t u = 0; u < w->unroll; u++) {
        struct cg_val n = t;
        if (u && v->large)
            n = cg_binary(g, OP_ADD, t, cg_int(DT_I64, (int64_t)u * w->block));
        else if (u)
            n = cg_index(g, cg_binary(g, OP_ADD, cg_value(DT_U32, t.op.reg),
                                      cg_int(DT_U32, (int64_t)u * w->block)));
        inside[u] = cg_reg(g, cg_binary(g, OP_LT, n, total));
        if (u == 0) {
            g->exit_used = true;
            cg_jump_if(g, inside[0], false, g->exit);
        }
        const struct cg_guard before = {-1, false};
        if (u)
            cg_guard(g, cg_value(DT_BOOL, inside[u]), false);
        find_position(g, w, v, m, n);
        map_compute(g, m, w->s->eq, w->s->n, out + u * count);
        cg_unguard(g, before);
        at[u] = *m;
    }
    for (uint32_t u = 0; u < w->unroll; u++) {
        if (u)
            cg_jump_if(g, inside[u], false, g->exit);
        store(g, w, &at[u], out + u * count);
    }
}

/* ---- variants -------------------------------------------------------------------------------- */

/* No row has MAP_MOST_SMALL elements. */
static void require_short(struct cg *g, struct variant_condition *c, const struct walk *w)
{
    int64_t n;
    struct lang_expr *dim = w->shape->dims[w->shape->rank - 1];
    if (lang_const_int(dim, &n))
        c->never |= n > MAP_MOST_SMALL;
    else
        variant_require(c, lx_at_most(g->a, dim, MAP_MOST_SMALL));
}

/* What the variant needs before it is generated. */
static struct variant_condition condition_of(struct cg *g, const struct walk *w,
                                             const struct variant *v, struct cg_val total,
                                             struct lang_expr *vectors)
{
    struct variant_condition c = variant_condition(g);
    int64_t n;
    if (!v->wraps)
        variant_require_multiple(g, &c, w->shape->dims[w->shape->rank - 1], v->lanes);
    if (v->large)
        return c;
    const int32_t most = v->wraps ? MAP_MOST_SMALL / (int32_t)v->lanes : MAP_MOST_SMALL;
    if (cg_is_const(total, &n))
        c.never |= n > most;
    else
        variant_require(&c, lx_at_most(g->a, vectors, most));
    return c;
}

/* One entry. *same: it relies on nothing that one without assumptions would not. */
static bool lower_variant(struct cg *g, const struct walk *w, const struct variant *v,
                          struct variant_set *all, bool *same)
{
    struct lang_expr *work;
    struct map_reader m = {
        .lanes = v->lanes, .shape = w->shape, .assumes = v->assumes, .large = v->large};
    variant_begin(g, all, v->part, w->block);
    *same = true;
    cg_at(g, w->s->eq[0]->span);
    struct cg_val total = shape_total(g, w->shape, v->lanes, &work);
    struct variant_condition c = condition_of(g, w, v, total, work);
    if (c.never) {
        variant_drop(g, all);
        return true;
    }
    if (!v->large)
        total = narrowed(g, total);
    map_begin_reading(g, &m);
    (v->wraps ? compute_wrapped : compute)(g, w, v, &m, total);
    for (size_t i = 0; i < m.needs.n; i++)
        variant_require_multiple(g, &c, m.needs.v[i].e, m.needs.v[i].of);
    if (m.short_rows)
        require_short(g, &c, w);
    if (c.never) {
        variant_drop(g, all);
        return true;
    }
    *same = m.needs.n == 0 && !m.short_rows;
    const char *how = arena_printf(g->a, "%u threads, %u x %u elements along %s for each", w->block,
                                   w->unroll, v->lanes,
                                   w->s->eq[0]->index[w->shape->rank - 1]->name);
    lower_tell(
        g, &(struct lower_entry){.name = g->func->name, .how = how, .when = variant_when_text(&c)});
    uint32_t block = w->block * w->unroll;
    if (v->wraps) { /* a thread for what is left over, too */
        shape_total(g, w->shape, 1, &work);
        block *= v->lanes;
    }
    variant_end(g, all, &c, lx_ceil_div_int(g->a, work, block), w->block);
    return !g->failed;
}

/* Are all elements a number of vectors for sure? */
static bool is_whole(const struct walk *w)
{
    int64_t n = 1, one;
    for (uint32_t i = 0; i < w->shape->rank; i++)
        if (!lang_const_int(w->shape->dims[i], &one) || __builtin_mul_overflow(n, one, &n))
            return false;
    return n % w->vector == 0;
}

bool map_walk_lower(struct cg *g, const struct map_options *want, struct variant_set *all)
{
    struct map_survey is;
    struct buf why = buf_in(g->a);
    if (!map_survey(g, all->s, NULL, &is, &why))
        return cg_error(g, all->s->eq[0]->span, "%s", buf_text(&why));
    struct walk w = {
        .s = all->s, .shape = is.shape, .least = is.least, .apart = is.apart, .cost = is.cost};
    w.block = want->block ? want->block : BLOCK;
    w.unroll = want->unroll ? want->unroll : is.unroll;
    w.vector = want->vector ? want->vector : is.vector;
    if (w.vector < w.least)
        return cg_error(
            g, schedule_span(g, "vector"),
            "packed 4-bit elements are stored two at a time: 'vector' must be at least 2");
    const struct variant variants[] = {
        {.part = "vector", .lanes = w.vector, .assumes = true},
        {.part = "rows", .lanes = w.vector},
        {.part = "wrapped", .lanes = w.vector, .wraps = true, .is_whole = is_whole(&w)},
        {.part = "single", .lanes = w.least},
        {.part = "large", .lanes = w.least, .large = true},
    };
    const uint32_t unroll = w.unroll;
    const bool has_windows = all->has_windows; /* what is left are small sizes, and large ones */
    bool same = false, wrapped = false;
    for (uint32_t i = 0; i < sizeof variants / sizeof *variants && !all->done; i++) {
        const struct variant *v = &variants[i];
        const bool again = (i == 1 && same) ||
                           (i == 3 && (wrapped || (w.vector == w.least && all->n)));
        if ((i == 1 && w.cost * w.vector > MOST_SPECIAL) || (has_windows && i < 3))
            continue; /* elements one by one will do */
        const bool vain = v->wraps && (w.least > 1 || w.vector == w.least || w.cost > MOST_WRAPPED);
        /* elements one at a time: as many in flight as a vector has, as far as that is little
         * code */
        w.unroll = v->wraps ? 1
                   : want->unroll || v->large || v->lanes == w.vector || w.cost > MOST_UNROLLED
                       ? unroll
                       : 4;
        if (!again && !vain && !lower_variant(g, &w, &variants[i], all, &same))
            return false;
        wrapped |= v->wraps && !vain;
    }
    return true;
}
