/* Transposes of short rows: filters of 3 x 3, whose channels are to lie side by side (map/tile.h).
 *
 *     y[f, t, d] = x[f, d, t]     of few t, so that a tile would be mostly empty
 *
 * Rows of x that follow one another lie side by side, too. A thread loads all elements of as many
 * rows as it has lanes, in vectors of 16 bytes, and stores a vector for each t.
 */
#include <config.h>

#include "lower/map/tile.h"

enum { VECTOR = 16, MOST_ROW = 15, LEAST_ROW = 2 };

static uint32_t bytes_of(const struct lang_symbol *t)
{
    return dtype_bits(t->type) / 8;
}

/* Sets the length of the rows. */
static bool find_row(const struct map_tiling *t, uint32_t *row)
{
    const struct map_tile *tile = &t->tile[0];
    const struct lang_symbol *x = tile->sym;
    int64_t n;
    if (t->ntile != 1 || tile->across + 2 != tile->n ||
        !lang_const_int(t->shape->dims[t->down], &n) || n < LEAST_ROW || n > MOST_ROW ||
        !inspect_same_expr(x->dims[tile->n - 1], t->shape->dims[t->down]) ||
        !inspect_same_expr(x->dims[tile->across], t->shape->dims[t->rank - 1]))
        return false;
    for (uint32_t i = 0; i < t->s->n; i++)
        if (dtype_bits(t->s->eq[i]->sym->type) < 8)
            return false;
    *row = (uint32_t)n;
    return true;
}

/* Element `lane` of row `pass` of what the thread loaded. */
static bool read_row(struct cg *g, const struct lang_expr *e, const struct map_form *f,
                     struct cg_val *v)
{
    const struct map_reader *m = g->read_ctx;
    const struct map_tiling *t = m->tiling;
    if (t->tile[0].sym != e->sym || e->pad || !map_tile_is_read(m, &t->tile[0], t, f))
        return false;
    *v = t->row[m->lane * t->nrow + t->pass];
    return true;
}

/* The subscripts of vector n; those along t are left out. */
static void find_place(struct map_tiling *t, struct map_reader *m, struct cg_val n)
{
    struct cg *g = t->g;
    struct cg_val last = n;
    int64_t d;
    struct lang_expr *across = t->shape->dims[t->rank - 1];
    const bool known = lang_const_int(across, &d);
    struct lang_expr *vectors = lx_div_int(g->a, across, t->lanes);
    if (t->rank > 2) {
        struct cg_val count = known ? cg_int(DT_I64, d / t->lanes) : cg_param_computed(g, vectors);
        count.type = DT_I64;
        magic_divmod(g, n, vectors, count, &n, &last);
    }
    m->sub[t->rank - 1] = cg_binary(g, OP_MUL, last, cg_int(DT_I64, t->lanes));
    for (uint32_t axis = t->rank - 1, left = t->rank - 2; axis-- > 0 && left;) {
        if (axis == t->down)
            continue;
        m->sub[axis] = n;
        if (--left)
            magic_divmod(g, n, t->shape->dims[axis], cg_extent(g, t->shape, axis), &n,
                         &m->sub[axis]);
    }
}

static void load(struct map_tiling *t, const struct map_reader *m)
{
    struct cg *g = t->g;
    struct map_tile *tile = &t->tile[0];
    struct cg_val sub[VARIANT_RANK];
    map_tile_find_others(t, m, tile);
    memcpy(sub, tile->at, sizeof sub);
    sub[tile->across] = m->sub[t->rank - 1];
    sub[tile->n - 1] = cg_int(DT_I64, 0);
    const struct cg_place_of from =
        cg_address(g, tile->sym, cg_flat_index(g, tile->sym, tile->n, sub));
    t->row = ARENA_ARRAY(g->a, (size_t)t->nrow * t->lanes, struct cg_val);
    for (uint32_t i = 0; i < t->nrow; i++)
        cg_load_vector(g, tile->sym, from.base, from.offset + (int64_t)i * VECTOR, t->lanes,
                       t->row + (size_t)i * t->lanes);
}

static void compute(struct map_tiling *t, struct map_reader *m)
{
    struct cg *g = t->g;
    struct cg_val *v = ARENA_ARRAY(g->a, (size_t)t->s->n * t->lanes, struct cg_val);
    for (t->pass = 0; t->pass < t->nrow; t->pass++) {
        m->sub[t->down] = cg_int(DT_I64, t->pass);
        for (uint32_t k = 1; k <= t->rank; k++)
            m->prefix[k] = cg_flat_index(g, t->shape, k, m->sub);
        map_compute(g, m, t->s->eq, t->s->n, v);
        map_tile_store(t, m, m->prefix[t->rank], v);
    }
}

bool map_short_lower(struct map_tiling *t, struct variant_set *all)
{
    struct cg *g = t->g;
    struct lang_expr *work;
    if (!find_row(t, &t->nrow))
        return true;
    t->lanes = VECTOR / bytes_of(t->tile[0].sym);
    struct map_reader m = {
        .lanes = t->lanes, .shape = t->shape, .assumes = true, .large = true, .tiling = t};
    struct variant_condition c = variant_condition(g);
    variant_begin(g, all, "short", t->block);
    cg_at(g, t->s->eq[0]->span);
    const struct cg_val total = shape_total(g, t->shape, t->nrow * t->lanes, &work);
    variant_require_multiple(g, &c, t->shape->dims[t->rank - 1], t->lanes);
    if (c.never) {
        variant_drop(g, all);
        return true;
    }
    map_begin_reading(g, &m);
    m.read_tile = read_row;
    const struct cg_val n = thread_start(g, t->block, 1);
    const struct cg_guard before = cg_guard(g, cg_binary(g, OP_LT, n, total), false);
    find_place(t, &m, n);
    load(t, &m);
    compute(t, &m);
    cg_unguard(g, before);
    for (size_t i = 0; i < m.needs.n; i++)
        variant_require_multiple(g, &c, m.needs.v[i].e, m.needs.v[i].of);
    const char *how = arena_printf(g->a, "%u threads, %u rows of %u elements for each", t->block,
                                   t->lanes, t->nrow);
    lower_tell(
        g, &(struct lower_entry){.name = g->func->name, .how = how, .when = variant_when_text(&c)});
    variant_end(g, all, &c, lx_ceil_div_int(g->a, work, t->block), t->block);
    return !g->failed;
}
