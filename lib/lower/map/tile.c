/* Transposes: inputs whose rows lie along another axis of the outputs than the outputs' rows do.
 *
 * A block computes a tile of the outputs, `side` elements along their last axis (across) by as many
 * along the inputs' (down). It first brings the tiles of the inputs to shared memory, a warp
 * reading along the inputs' rows, then computes with a warp writing along the outputs' rows.
 * Threads move `lanes` elements at once, of four bytes or more:
 *
 *      input, shared memory: down ->             outputs: across ->
 *     across   | thread 0: lanes | thread 1 |    down   | thread 0: lanes | thread 1 |
 *       v      | thread 32 ...   |                 v    | thread 32 ...   |
 *
 * Rows in shared memory are a word longer than they need be, or an element, so that what a warp
 * reads down a column lies in different banks; map/pack.c has another way for elements of one or
 * two bytes. All other axes are the blocks'.
 */
#include <config.h>

#include "lower/map/tile.h"
#include "lower/schedule.h"

#include <stdio.h>

/* Rows shorter than LEAST are left to map/walk.c. */
enum { MOST_BYTES = 48 * 1024, BLOCK = 256, LEAST = 16, MOST_SIDE = 64 };

/* ---- what is transposed ---------------------------------------------------------------------- */

/* An affine form of the blocks' axes alone. */
static bool is_fixed(const struct map_tiling *t, const struct access_form *f)
{
    for (uint32_t i = 0; i < ACCESS_AXES; i++)
        if (f->coef[i] && (i == t->down || i + 1 >= t->rank))
            return false;
    return !f->symbolic && !f->other;
}

static bool same_tile(const struct map_tile *t, const struct access *a)
{
    bool same = t->sym == a->sym;
    for (uint32_t i = 0; same && i < a->n; i++)
        same = t->sub[i].constant == a->sub[i].constant &&
               memcmp(t->sub[i].coef, a->sub[i].coef, sizeof a->sub[i].coef) == 0;
    return same;
}

/* Can no element of the outputs' shape be outside of it? What a condition guards may then be read
 * all the same. */
static bool is_inside(const struct map_tiling *t, const struct access *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t axis = 0;
        while (axis < t->rank && !access_is_axis(a, i, axis))
            axis++;
        if (axis == t->rank || !inspect_same_expr(a->sym->dims[i], t->shape->dims[axis]))
            return false;
    }
    return true;
}

static bool find(void *ctx, const struct access *a, const struct access_axes *axes)
{
    struct map_tiling *t = ctx;
    uint32_t down = 0, across = 0;
    if (a->n < 2 || (a->guarded && !is_inside(t, a)) || a->loops || a->e->pad ||
        dtype_bits(a->sym->type) < 8)
        return true;
    while (down + 1 < axes->nout && !access_is_axis(a, a->n - 1, down))
        down++;
    while (across + 1 < a->n && !access_is_axis(a, across, axes->nout - 1))
        across++;
    if (down + 1 == axes->nout || across + 1 == a->n || (t->ntile && down != t->down))
        return true;
    t->down = down;
    for (uint32_t i = 0; i + 1 < a->n; i++)
        if (i != across && !is_fixed(t, &a->sub[i]))
            return true;
    for (uint32_t i = 0; i < t->ntile; i++)
        if (same_tile(&t->tile[i], a))
            return true;
    if (t->ntile == MAP_TILES)
        return true;
    struct map_tile *tile = &t->tile[t->ntile++];
    *tile = (struct map_tile){.sym = a->sym, .n = a->n, .across = across};
    memcpy(tile->sub, a->sub, a->n * sizeof *a->sub);
    return true;
}

static uint32_t bytes_of(const struct lang_symbol *t)
{
    return dtype_bits(t->type) / 8;
}

static void find_tiles(struct map_tiling *t)
{
    t->size = 4;
    for (uint32_t i = 0; i < t->s->n; i++) {
        const uint32_t size = bytes_of(t->s->eq[i]->sym);
        t->size = size < t->size ? size : t->size;
        access_walk(t->g, t->s->eq[i], find, t);
    }
    t->size = t->size ? t->size : 1; /* half a byte */
    for (uint32_t i = 0; i < t->ntile; i++) {
        const uint32_t size = bytes_of(t->tile[i].sym);
        t->size = size < t->size ? size : t->size;
    }
}

/* Shared memory that the tiles take; sets their pitch. */
static uint32_t tile_bytes(struct map_tiling *t)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < t->ntile; i++) {
        const uint32_t size = bytes_of(t->tile[i].sym);
        t->tile[i].is_packed = map_pack_fits(t, &t->tile[i]);
        t->tile[i].word_pass = 0;
        t->tile[i].pitch = t->side + (t->tile[i].is_packed        ? 0
                                      : t->lanes == 1 && size < 4 ? 4 / size
                                                                  : 1);
        sum += (t->side * t->tile[i].pitch * size + 15) / 16 * 16;
    }
    return sum;
}

/* ---- positions ------------------------------------------------------------------------------- */

/* x * k + y, of u32. */
static struct cg_val scaled(struct cg *g, struct cg_val x, uint32_t k, struct cg_val y)
{
    return cg_add(g, cg_binary(g, OP_MUL, x, cg_int(DT_U32, k)), y);
}

/* The number of tiles along an axis, and as the launch has it. */
static struct cg_val tiles_along(struct map_tiling *t, uint32_t axis, struct lang_expr **at_launch)
{
    int64_t n;
    struct cg *g = t->g;
    if (cg_is_const(cg_extent(g, t->shape, axis), &n)) {
        n = n / t->side + (n % t->side != 0);
        *at_launch = lx_int(g->a, n);
        return cg_int(DT_I64, n);
    }
    *at_launch = lx_ceil_div_int(g->a, t->shape->dims[axis], t->side);
    struct cg_val v = cg_param_computed(g, *at_launch);
    v.type = DT_I64;
    return v;
}

static struct cg_val as_u32(struct cg *g, struct cg_val v)
{
    return cg_convert(g, v, DT_U32);
}

/* The block's tile, and the subscripts of the other axes; the grid. */
static struct lang_expr *find_tile(struct map_tiling *t, struct map_reader *m)
{
    struct cg *g = t->g;
    struct lang_expr *down, *across;
    struct cg_val n = cg_index(g, cg_special(g, SP_CTAID_X)), i;
    struct cg_val count = tiles_along(t, t->down, &down);
    magic_divmod(g, n, down, count, &n, &i);
    t->down0 = cg_binary(g, OP_MUL, as_u32(g, i), cg_int(DT_U32, t->side));
    count = tiles_along(t, t->rank - 1, &across);
    struct lang_expr *grid = lx_mul(g->a, down, across);
    i = n;
    if (t->rank > 2)
        magic_divmod(g, n, across, count, &n, &i);
    t->across0 = cg_binary(g, OP_MUL, as_u32(g, i), cg_int(DT_U32, t->side));
    for (uint32_t axis = t->rank - 1, left = t->rank - 2; axis-- > 0 && left;) {
        if (axis == t->down)
            continue;
        struct lang_expr *extent = t->shape->dims[axis];
        grid = lx_mul(g->a, grid, extent);
        m->sub[axis] = n;
        if (--left)
            magic_divmod(g, n, extent, cg_extent(g, t->shape, axis), &n, &m->sub[axis]);
    }
    return grid;
}

void map_tile_find_others(struct map_tiling *t, const struct map_reader *m, struct map_tile *tile)
{
    struct cg *g = t->g;
    for (uint32_t i = 0; i + 1 < tile->n; i++) {
        const struct access_form *f = &tile->sub[i];
        struct cg_val v = cg_int(DT_I64, f->constant);
        for (uint32_t k = 0; k < t->rank && i != tile->across; k++)
            if (f->coef[k]) {
                struct cg_val term = cg_binary(g, OP_MUL, m->sub[k], cg_int(DT_I64, f->coef[k]));
                int64_t c;
                v = cg_is_const(v, &c) && c == 0 ? term : cg_add(g, term, v);
            }
        tile->at[i] = v;
    }
}

/* The elements from one step along an axis to the next. */
static struct cg_val stride(struct cg *g, const struct lang_symbol *t, uint32_t axis)
{
    struct cg_val v = cg_int(DT_I64, 1);
    for (uint32_t i = axis + 1; i < t->rank; i++)
        v = cg_binary(g, OP_MUL, v, cg_extent(g, t, i));
    return v;
}

/* ---- inputs to shared memory ----------------------------------------------------------------- */

uint32_t map_tile_rows(const struct map_tiling *t)
{
    return t->block / (t->side / t->lanes);
}

struct cg_val map_tile_within(struct map_tiling *t, struct cg_val i, uint32_t axis)
{
    const struct cg_val extent = cg_extent(t->g, t->shape, axis);
    int64_t n;
    if (cg_is_const(extent, &n) && n % t->side == 0)
        return cg_bool(t->g, true); /* tiles are whole */
    return cg_binary(t->g, OP_LT, cg_index(t->g, i), extent);
}

struct cg_val map_tile_flat(struct map_tiling *t, const struct map_tile *tile, struct cg_val row,
                            struct cg_val *down)
{
    struct cg *g = t->g;
    struct cg_val sub[VARIANT_RANK];
    *down = cg_add(g, t->down0, cg_binary(g, OP_MUL, t->x, cg_int(DT_U32, t->lanes)));
    memcpy(sub, tile->at, sizeof sub);
    sub[tile->across] = cg_index(g, row);
    sub[tile->n - 1] = cg_index(g, *down);
    return cg_flat_index(g, tile->sym, tile->n, sub);
}

struct cg_val map_tile_step(struct map_tiling *t, const struct map_tile *tile, struct cg_val flat,
                            uint32_t rows)
{
    struct cg *g = t->g;
    return cg_add(g, flat,
                  cg_binary(g, OP_MUL, stride(g, tile->sym, tile->across), cg_int(DT_I64, rows)));
}

static void bring(struct map_tiling *t, struct map_tile *tile)
{
    struct cg *g = t->g;
    const uint32_t rows = map_tile_rows(t), passes = t->side / rows, size = bytes_of(tile->sym);
    struct cg_val across = cg_add(g, t->across0, t->y), v[64 * 16], down;
    struct cg_val flat = map_tile_flat(t, tile, across, &down);
    struct cg_val inside = map_tile_within(t, down, t->down);
    for (uint32_t i = 0; i < passes; i++) {
        struct cg_val row = cg_add(g, across, cg_int(DT_U32, i * rows));
        struct cg_val at = map_tile_step(t, tile, flat, i * rows);
        const struct cg_guard before =
            cg_guard(g, cg_binary(g, OP_LAND, inside, map_tile_within(t, row, t->rank - 1)), false);
        struct cg_place_of from = cg_address(g, tile->sym, at);
        if (t->lanes == 1)
            v[i] = cg_load(g, tile->sym, from);
        else
            cg_load_vector(g, tile->sym, from.base, from.offset, t->lanes, v + i * t->lanes);
        cg_unguard(g, before);
    }
    struct cg_val to = scaled(g, t->y, tile->pitch, cg_int(DT_U32, 0));
    to = scaled(g, t->x, t->lanes, to);
    to = scaled(g, to, size, tile->address);
    for (uint32_t i = 0; i < passes * t->lanes; i++) {
        const uint32_t k = i / t->lanes * rows * tile->pitch + i % t->lanes;
        cg_store_at(g, tile->sym->type,
                    (struct cg_place_of){.space = CG_SHARED, .base = to.op.reg, .offset = k * size},
                    v[i]);
    }
}

static void declare(struct map_tiling *t)
{
    struct cg *g = t->g;
    for (uint32_t i = 0; i < t->ntile; i++) {
        struct map_tile *tile = &t->tile[i];
        const uint32_t bytes = (t->side * tile->pitch * bytes_of(tile->sym) + 15) / 16 * 16;
        struct ptx_var *var = ptx_array_new(&g->b, PTX_SHARED, arena_printf(g->a, "$tile%u", i),
                                            PTX_B8, tile->is_packed ? 128 : 16, bytes);
        const struct ptx_operand from = ptx_sym(var);
        tile->address = cg_value(DT_U32, cg_pure(g, PTX_B32, "mov.u32", 1, &from));
    }
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* Is this the form of the position along an axis (of lanes elements if it is the last), or of a
 * fixed value? */
static bool is_form(const struct map_reader *m, const struct map_form *f, struct cg_val v,
                    uint32_t step)
{
    int64_t c = 0;
    const bool constant = cg_is_const(v, &c);
    if (!f->known || (constant ? !f->is_zero : !cg_same(f->base, v)))
        return false;
    for (uint32_t i = 0; i < m->lanes; i++)
        if (f->k[i] != c + (int64_t)(i * step))
            return false;
    return true;
}

bool map_tile_is_read(const struct map_reader *m, const struct map_tile *tile,
                      const struct map_tiling *t, const struct map_form *f)
{
    for (uint32_t i = 0; i < tile->n; i++) {
        const bool across = i == tile->across;
        struct cg_val v = across             ? m->sub[t->rank - 1]
                          : i + 1 == tile->n ? m->sub[t->down]
                                             : tile->at[i];
        if (!is_form(m, &f[i], v, across))
            return false;
    }
    return true;
}

static bool read_tile(struct cg *g, const struct lang_expr *e, const struct map_form *f,
                      struct cg_val *v)
{
    const struct map_reader *m = g->read_ctx;
    struct map_tiling *t = m->tiling;
    for (uint32_t i = 0; i < t->ntile; i++) {
        struct map_tile *tile = &t->tile[i];
        if (tile->sym != e->sym || e->pad || !map_tile_is_read(m, tile, t, f))
            continue;
        if (tile->is_packed) {
            *v = map_pack_read(t, tile)[m->lane];
            return true;
        }
        const uint32_t size = bytes_of(e->sym);
        struct cg_val at = scaled(g, t->x, t->lanes * tile->pitch, t->y);
        at = scaled(g, at, size, tile->address);
        const uint32_t k = m->lane * tile->pitch + t->pass * map_tile_rows(t);
        const struct cg_guard before = {g->guard, g->guard_varies};
        cg_unguard(g, (struct cg_guard){-1, false}); /* all of the tile has been written */
        *v = cg_load_at(g, e->sym->type, false,
                        (struct cg_place_of){.space = CG_SHARED,
                                             .base = at.op.reg,
                                             .offset = k * size,
                                             .nibble = cg_int(DT_U32, 0)});
        cg_unguard(g, before);
        return true;
    }
    return false;
}

void map_tile_store(struct map_tiling *t, const struct map_reader *m, struct cg_val flat,
                    const struct cg_val *v)
{
    struct cg *g = t->g;
    for (uint32_t i = 0; i < t->s->n; i++) {
        const struct lang_symbol *o = t->s->eq[i]->sym;
        cg_at(g, t->s->eq[i]->span);
        struct cg_place_of at = cg_address(g, o, flat);
        if (m->lanes == 1)
            cg_store(g, o, at, v[i]);
        else
            cg_store_vector(g, o, at.base, at.offset, m->lanes, v + (size_t)i * m->lanes);
    }
}

static void compute(struct map_tiling *t, struct map_reader *m)
{
    struct cg *g = t->g;
    const uint32_t rows = map_tile_rows(t), passes = t->side / rows;
    const size_t count = (size_t)t->s->n * t->lanes;
    struct cg_val *v = ARENA_ARRAY(g->a, passes * count, struct cg_val);
    struct cg_val *flat = ARENA_ARRAY(g->a, passes, struct cg_val);
    struct cg_guard *guard = ARENA_ARRAY(g->a, passes, struct cg_guard);
    const struct cg_guard none = {-1, false};
    struct cg_val across =
        cg_add(g, t->across0, cg_binary(g, OP_MUL, t->x, cg_int(DT_U32, t->lanes)));
    struct cg_val down = cg_add(g, t->down0, t->y);
    struct cg_val inside = map_tile_within(t, across, t->rank - 1);
    m->sub[t->rank - 1] = cg_index(g, across);
    for (uint32_t i = 0; i < passes; i++) {
        t->pass = i;
        struct cg_val row = cg_add(g, down, cg_int(DT_U32, i * rows));
        m->sub[t->down] = cg_index(g, row);
        for (uint32_t k = 1; k <= t->rank; k++)
            m->prefix[k] = cg_flat_index(g, t->shape, k, m->sub);
        flat[i] =
            i ? cg_add(g, flat[0],
                       cg_binary(g, OP_MUL, stride(g, t->shape, t->down), cg_int(DT_I64, i * rows)))
              : m->prefix[t->rank];
        m->prefix[t->rank] = flat[i];
        cg_guard(g, cg_binary(g, OP_LAND, inside, map_tile_within(t, row, t->down)), false);
        guard[i] = (struct cg_guard){g->guard, false};
        map_compute(g, m, t->s->eq, t->s->n, v + i * count);
        cg_unguard(g, none);
    }
    for (uint32_t i = 0; i < passes; i++) {
        cg_unguard(g, guard[i]);
        map_tile_store(t, m, flat[i], v + i * count);
        cg_unguard(g, none);
    }
}

/* ---- variants -------------------------------------------------------------------------------- */

static void require_length(struct map_tiling *t, struct variant_condition *c, uint32_t axis)
{
    int64_t n;
    struct lang_expr *dim = t->shape->dims[axis];
    if (lang_const_int(dim, &n))
        c->never |= n < LEAST;
    else
        variant_require(c, lx_at_least(t->g->a, dim, LEAST));
}

/* Multiples of lanes, so that they are aligned and all inside or outside. */
static struct variant_condition condition_of(struct map_tiling *t)
{
    struct variant_condition c = variant_condition(t->g);
    require_length(t, &c, t->down);
    require_length(t, &c, t->rank - 1);
    variant_require_multiple(t->g, &c, t->shape->dims[t->down], t->lanes);
    variant_require_multiple(t->g, &c, t->shape->dims[t->rank - 1], t->lanes);
    for (uint32_t i = 0; i < t->ntile; i++) {
        struct lang_expr *dim = t->tile[i].sym->dims[t->tile[i].n - 1];
        if (!inspect_same_expr(dim, t->shape->dims[t->down]))
            variant_require_multiple(t->g, &c, dim, t->lanes);
    }
    return c;
}

static bool lower_variant(struct map_tiling *t, struct variant_set *all, const char *part)
{
    struct cg *g = t->g;
    struct map_reader m = {
        .lanes = t->lanes, .shape = t->shape, .assumes = true, .large = true, .tiling = t};
    const uint32_t bytes = tile_bytes(t), wide = t->side / t->lanes;
    variant_begin(g, all, part, t->block);
    cg_at(g, t->s->eq[0]->span);
    struct variant_condition c = condition_of(t);
    if (c.never) {
        variant_drop(g, all);
        return true;
    }
    map_begin_reading(g, &m);
    m.read_tile = read_tile;
    declare(t);
    t->x = cg_binary(g, OP_AND, cg_special(g, SP_TID_X), cg_int(DT_U32, wide - 1));
    t->y = cg_binary(g, OP_DIV, cg_special(g, SP_TID_X), cg_int(DT_U32, wide));
    struct lang_expr *grid = find_tile(t, &m);
    for (uint32_t i = 0; i < t->ntile; i++) {
        map_tile_find_others(t, &m, &t->tile[i]);
        if (t->tile[i].is_packed)
            map_pack_bring(t, &t->tile[i]);
        else
            bring(t, &t->tile[i]);
    }
    PTX(&g->b, "bar.sync", ptx_imm(0));
    compute(t, &m);
    for (size_t i = 0; i < m.needs.n; i++)
        variant_require_multiple(g, &c, m.needs.v[i].e, m.needs.v[i].of);
    const char *how = arena_printf(g->a, "tiles of %u x %u elements along %s and %s", t->side,
                                   t->side, t->s->eq[0]->index[t->down]->name,
                                   t->s->eq[0]->index[t->rank - 1]->name);
    const char *more =
        arena_printf(g->a, " through %u bytes of shared memory, %u threads, %u elements at once",
                     bytes, t->block, t->lanes);
    lower_tell(g,
               &(struct lower_entry){
                   .name = g->func->name, .how = how, .more = more, .when = variant_when_text(&c)});
    variant_end(g, all, &c, grid, t->block);
    return !g->failed;
}

/* The numbers of a schedule that make no tile. */
static bool check(struct map_tiling *t, const struct map_options *want)
{
    if (t->lanes < t->side && t->block % (t->side / t->lanes) == 0 && map_tile_rows(t) <= t->side &&
        t->side / map_tile_rows(t) <= 64 && t->lanes <= 16)
        return true;
    return cg_error(t->g, schedule_span(t->g, want->tile ? "tile" : "vector"),
                    "%u threads can't walk a tile of %u x %u elements, %u at once: 'block' must be "
                    "a multiple of 'tile' / 'vector' and at most 'tile' times that",
                    t->block, t->side, t->side, t->lanes);
}

/* Four bytes of the smallest elements at once, 32 times that for a side, or less where that does
 * not fit. */
static void choose_sides(struct map_tiling *t, const struct map_options *want)
{
    for (;;) {
        t->lanes = want->vector ? want->vector : 4 / t->size;
        t->side = want->tile ? want->tile : 32 * (4 / t->size);
        if (tile_bytes(t) <= MOST_BYTES || (t->size == 4 && t->ntile == 1))
            return;
        if (t->size < 4)
            t->size *= 2;
        else
            t->ntile--; /* the last ones are read as they lie */
    }
}

bool map_tile_lower(struct cg *g, const struct map_options *want, struct variant_set *all)
{
    struct map_tiling t = {.g = g, .s = all->s, .shape = all->s->eq[0]->sym};
    t.rank = t.shape->rank;
    t.block = want->block ? want->block : BLOCK;
    find_tiles(&t);
    if (!t.ntile)
        return true;
    if (!want->tile && !want->vector && !map_short_lower(&t, all))
        return false;
    if (all->done)
        return true;
    choose_sides(&t, want);
    const uint32_t lanes = t.lanes;
    if (!check(&t, want))
        return false;
    if (tile_bytes(&t) > MOST_BYTES)
        return cg_error(g, schedule_span(g, "tile"),
                        "a tile of %u x %u elements takes %u bytes of shared memory, more than %d",
                        t.side, t.side, tile_bytes(&t), MOST_BYTES);
    if (!lower_variant(&t, all, "tile"))
        return false;
    t.lanes = 1;
    if (!want->tile && t.side > MOST_SIDE)
        t.side = MOST_SIDE; /* fewer elements for each thread */
    for (uint32_t i = 0; i < t.s->n; i++)
        if (dtype_bits(t.s->eq[i]->sym->type) < 8)
            t.lanes = 2;
    if (all->done || lanes <= t.lanes || t.block % (t.side / t.lanes) ||
        t.side / map_tile_rows(&t) > 64)
        return true;
    return lower_variant(&t, all, "tile_single");
}
