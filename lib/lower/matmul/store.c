/* The epilogue of a contraction: outputs computed from sums in shared memory (matmul.h).
 *
 * The block's threads walk a patch by vectors along j, so that a warp writes whole lines, and reads
 * its sums, and whatever else lies along j, in whole vectors too.
 */
#include <config.h>

#include "lower/matmul/matmul.h"

enum {
    MOST_LANES = 16,
    MOST_AHEAD = 8, /* vectors of a thread that are computed before the first of them is stored */
    MOST_WEIGHT = 24,
    MOST_LOADED = 64, /* registers of a thread */
};

struct walk {
    struct matmul *m;
    const struct matmul_patch *patch;
    uint32_t lanes, bytes; /* elements of a vector, bytes of a sum */
    uint32_t per_row;      /* vectors */
    bool aligned; /* all vectors of a thread are in one column: it counts rows, else vectors */
    uint32_t end, step; /* of that count: the patch's, a pass's */
    struct matmul_own own;
    /* elements from a vector of the thread to its next, where that is a constant, 0: it is not; and
     * the first one's flat index */
    int64_t apart;
    struct cg_val flat;
    uint32_t number;                                 /* of the thread's vector that is computed, */
    struct cg_val sum[MATMUL_PRODUCTS * MOST_LANES]; /* and its sums */
};

/* One vector of a thread. */
struct at {
    struct cg_val ok; /* a constant or a predicate: is it inside of the outputs? */
    struct cg_val flat;
    uint32_t number;  /* among the thread's */
    struct cg_val *v; /* of every output */
};

/* ---- sums ------------------------------------------------------------------------------------ */

/* A sum of products in the epilogue: the lane's. */
static bool reduced(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    const struct map_reader *r = g->read_ctx;
    const struct walk *w = r->tiling;
    for (uint32_t q = 0; q < w->m->f->nproduct; q++)
        if (e == w->m->f->product[q].e) {
            *v = cg_convert(g, w->sum[q * w->lanes + r->lane], e->type);
            return true;
        }
    return false;
}

static void load_sums(struct walk *w, struct cg_val row, struct cg_val col)
{
    struct cg *g = w->m->g;
    const struct matmul_patch *p = w->patch;
    struct cg_val at = cg_add(g, cg_binary(g, OP_MUL, row, cg_u32(p->pitch)), col);
    at = cg_add(g, cg_binary(g, OP_MUL, at, cg_u32(w->bytes)), cg_value(DT_U32, p->base));
    struct cg_place_of place = {.space = CG_SHARED, .base = at.op.reg};
    for (uint32_t q = 0; q < w->m->f->nproduct; q++) {
        place.offset = (int64_t)q * p->rows * p->pitch * w->bytes;
        cg_load_words(g, w->m->f->sum, false, place, w->lanes, w->sum + q * w->lanes);
    }
}

/* ---- a vector -------------------------------------------------------------------------------- */

/* Finds the place of the thread's vector number `count` in the patch. */
static void find_vector(const struct walk *w, struct cg_val count, struct cg_val *row,
                        struct cg_val *col)
{
    struct cg *g = w->m->g;
    if (w->aligned) {
        *row = count;
        *col = cg_binary(g, OP_MOD, w->m->thread, cg_u32(w->per_row));
    } else {
        *row = cg_binary(g, OP_DIV, count, cg_u32(w->per_row));
        *col = cg_binary(g, OP_MOD, count, cg_u32(w->per_row));
    }
    *col = cg_binary(g, OP_MUL, *col, cg_u32(w->lanes));
}

/* The reader stands at row `row` and column `col` of the patch. */
static struct at stand(struct walk *w, struct cg_val row, struct cg_val col)
{
    struct matmul *m = w->m;
    struct cg *g = m->g;
    const struct matmul_form *f = m->f;
    const struct lang_symbol *shape = f->stage->eq[0]->sym;
    struct map_reader *r = &m->reader;
    struct at at = {.ok = cg_bool(g, true), .number = w->number};
    const struct cg_val tile_row = cg_convert(g, m->row, DT_U32);
    row = cg_add(g, cg_add(g, row, w->patch->first), tile_row);
    if (w->patch->first_col)
        col = cg_add(g, col, *w->patch->first_col);
    col = cg_add(g, col, cg_convert(g, m->col, DT_U32));
    const struct cg_val column = cg_index(g, col);
    matmul_result_at(m, cg_index(g, row), column, r->sub);
    if (f->i && !m->whole_rows)
        at.ok = cg_binary(g, OP_LT, cg_index(g, row), m->m);
    else if (!f->i)
        at.ok = cg_binary(g, OP_EQ, row, cg_u32(0));
    if (!m->whole_cols)
        at.ok = cg_binary(g, OP_LAND, at.ok, cg_binary(g, OP_LT, cg_index(g, col), m->n));
    r->shape = shape;
    r->lanes = w->lanes;
    for (uint32_t i = 1; i <= shape->rank; i++)
        r->prefix[i] = cg_flat_index(g, shape, i, r->sub);
    at.flat = r->prefix[shape->rank];
    if (w->number == 0)
        w->flat = at.flat;
    return at;
}

/* The place of its vector in a tensor of the outputs' shape. */
static struct cg_place_of place(const struct walk *w, const struct lang_symbol *t,
                                const struct at *at)
{
    if (w->apart == 0)
        return cg_address(w->m->g, t, at->flat);
    struct cg_place_of first = cg_address(w->m->g, t, w->flat);
    first.offset += at->number * w->apart * dtype_bits(t->type) / 8;
    return first;
}

static struct at compute(struct walk *w, struct cg_val count)
{
    struct matmul *m = w->m;
    struct cg *g = m->g;
    const struct matmul_form *f = m->f;
    struct cg_val row, col;
    find_vector(w, count, &row, &col);
    load_sums(w, row, col);
    struct at at = stand(w, row, col);
    at.v = ARENA_ARRAY(g->a, (size_t)f->stage->n * w->lanes, struct cg_val);
    const struct cg_guard before = cg_guard(g, at.ok, false);
    map_compute(g, &m->reader, f->stage->eq, f->stage->n, at.v);
    cg_unguard(g, before);
    return at;
}

static void store(const struct walk *w, const struct at *at)
{
    struct cg *g = w->m->g;
    const struct lower_stage *s = w->m->f->stage;
    const struct cg_guard before = cg_guard(g, at->ok, false);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct lang_symbol *t = s->eq[i]->sym;
        cg_at(g, s->eq[i]->span);
        const struct cg_place_of to = place(w, t, at);
        if (w->lanes == 1)
            cg_store(g, t, to, at->v[i]);
        else
            cg_store_vector(g, t, to.base, to.offset, w->lanes, at->v + (size_t)i * w->lanes);
    }
    cg_unguard(g, before);
}

/* ---- a patch --------------------------------------------------------------------------------- */

/* The sums of a vector are what one access brings, where the outputs allow so much: then a warp
 * reads them without conflicts of banks. */
static struct walk plan(struct matmul *m, const struct matmul_patch *patch)
{
    struct walk w = {
        .m = m, .patch = patch, .bytes = dtype_bits(m->f->sum) / 8, .own = matmul_own(m->f)};
    w.lanes = 16 / w.bytes < m->p->store ? 16 / w.bytes : m->p->store;
    w.per_row = patch->cols / w.lanes;
    w.aligned = m->workers % w.per_row == 0;
    w.end = w.aligned ? patch->rows : patch->rows * w.per_row;
    w.step = w.aligned ? m->workers / w.per_row : m->workers;
    return w;
}

/* The vectors from `count` on that the thread computes ahead. */
static void pass(struct walk *w, struct cg_val count, uint32_t ahead)
{
    struct cg *g = w->m->g;
    struct at at[MOST_AHEAD];
    for (uint32_t i = 0; i < ahead; i++, w->number++)
        at[i] = compute(w, cg_add(g, count, cg_u32(i * w->step)));
    for (uint32_t i = 0; i < ahead; i++)
        store(w, &at[i]);
}

static uint32_t vectors_of(const struct walk *w)
{
    return matmul_divide_up(w->end, w->step);
}

/* The number of vectors that are computed before any is stored, if all passes do so many. */
static uint32_t ahead_of(const struct walk *w)
{
    const bool whole = w->end % w->step == 0, mma = w->m->p->how == MATMUL_MMA;
    const uint32_t weight = mma ? w->m->f->light : w->m->f->weight;
    uint32_t ahead = weight * w->lanes > 2 * MOST_WEIGHT ? 2
                     : mma && w->own.n                   ? MOST_AHEAD
                                                         : MOST_AHEAD / 2;
    while (!whole || vectors_of(w) % ahead) {
        ahead /= 2;
        if (ahead < 2)
            break;
    }
    return ahead ? ahead : 1;
}

static struct cg_val first_vector(const struct walk *w)
{
    const struct cg_val thread = w->m->thread;
    return w->aligned ? cg_binary(w->m->g, OP_DIV, thread, cg_u32(w->per_row)) : thread;
}

static void walk_patch(struct walk *w)
{
    struct cg *g = w->m->g;
    const uint32_t ahead = ahead_of(w), n = vectors_of(w);
    const struct cg_val first = first_vector(w);
    if (w->m->loaded || (w->end % w->step == 0 && n == ahead)) {
        for (uint32_t i = 0; i < n; i += ahead)
            pass(w, cg_add(g, first, cg_u32(i * w->step)), ahead);
        return;
    }
    const int32_t at = cg_new_mutable(g, DT_U32);
    const uint32_t head = cg_label(g, "vector"), done = cg_label(g, "stored");
    const struct cg_val count = cg_value(DT_U32, at);
    struct cg_nest nest;
    cg_move(g, at, first);
    cg_place(g, head);
    cg_loop_head(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, at);
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, count, cg_u32(w->end))), false, done);
    pass(w, count, ahead);
    const struct cg_since since = cg_now(g);
    cg_move_new(g, at, cg_add(g, count, cg_u32(ahead * w->step)), since);
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, done);
}

/* ---- loaded before --------------------------------------------------------------------------- */

/* Words of a vector of the tensor number i of the thread's vector n are from here on. */
static uint32_t loaded_at(const struct walk *w, uint32_t n, uint32_t i)
{
    return (n * w->own.n + i) * w->lanes / 2;
}

/* The distance of vectors in one column that are w->step rows apart. */
static int64_t apart_of(const struct walk *w)
{
    const struct lang_symbol *shape = w->m->f->stage->eq[0]->sym;
    const int64_t most = INT32_MAX / (int64_t)sizeof(double);
    int64_t apart = w->aligned && w->m->f->i ? w->step : 0, extent;
    for (uint32_t i = w->m->f->axis_i + 1; i < shape->rank && apart; i++)
        apart = lang_const_int(shape->dims[i], &extent) && extent > 0 && extent < most / apart
                    ? apart * extent
                    : 0;
    return apart < most / vectors_of(w) ? apart : 0;
}

void matmul_store_begin(struct matmul *m, const struct matmul_patch *patch)
{
    struct cg *g = m->g;
    struct walk w = plan(m, patch);
    const uint32_t n = vectors_of(&w), words = loaded_at(&w, n, 0);
    bool fits = words && words <= MOST_LOADED && w.end % w.step == 0 && w.lanes % 2 == 0 &&
                m->p->split < 2 && (patch->rows == m->p->bm || patch->first_col);
    for (uint32_t i = 0; i < w.own.n; i++)
        fits &= dtype_bits(w.own.t[i]->type) == 16;
    if (!fits)
        return;
    struct cg_val *v = ARENA_ARRAY(g->a, words, struct cg_val);
    const struct cg_val first = first_vector(&w);
    w.apart = apart_of(&w);
    for (; w.number < n; w.number++) {
        struct cg_val row, col;
        find_vector(&w, cg_add(g, first, cg_u32(w.number * w.step)), &row, &col);
        const struct at at = stand(&w, row, col);
        const struct cg_guard before = cg_guard(g, at.ok, false);
        for (uint32_t i = 0; i < w.own.n; i++)
            /* as what may change: ptxas would move loads of constants behind the barrier */
            cg_load_words(g, DT_U32, false, place(&w, w.own.t[i], &at), w.lanes / 2,
                          v + loaded_at(&w, w.number, i));
        cg_unguard(g, before);
    }
    m->loaded = v;
}

/* An element of a vector that was loaded. */
static bool read_loaded(struct cg *g, const struct lang_expr *e, const struct map_form *form,
                        struct cg_val *v)
{
    const struct map_reader *r = g->read_ctx;
    const struct walk *w = r->tiling;
    (void)form;
    if (!w->m->loaded || !matmul_is_own(w->m, e))
        return false;
    for (uint32_t i = 0; i < w->own.n; i++)
        if (w->own.t[i] == e->sym) {
            struct cg_val of[2];
            const uint32_t at = loaded_at(w, w->number, i) + r->lane / 2;
            cg_unpack(g, e->sym->type, w->m->loaded[at].op.reg, 2, of);
            *v = of[r->lane % 2];
            return true;
        }
    return false;
}

/* ---- all ------------------------------------------------------------------------------------- */

void matmul_store(struct matmul *m, const struct matmul_patch *patch)
{
    struct cg *g = m->g;
    struct walk w = plan(m, patch);
    bool (*const before)(struct cg *, const struct lang_expr *, struct cg_val *) = g->reduced;
    const uint32_t skip = cg_label(g, "shared");
    const size_t mark = cg_scope_open(g);
    if (m->p->split > 1 && m->p->how != MATMUL_WGMMA) /* which has done it */
        matmul_split_join(m, patch, skip);
    w.apart = m->loaded ? apart_of(&w) : 0; /* code without loops */
    g->reduced = reduced;
    m->reader.tiling = &w;
    m->reader.read_tile = read_loaded;
    walk_patch(&w);
    m->reader.tiling = NULL;
    m->reader.read_tile = NULL;
    g->reduced = before;
    cg_scope_close(g, mark);
    cg_place(g, skip);
}
