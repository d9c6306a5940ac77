/* Finds where a block of a contraction is, and its operands' elements there (matmul.h). */
#include <config.h>

#include "lower/extent.h"
#include "lower/matmul/matmul.h"

enum { SHARED_ALIGN = 128 };

/* ---- the block's tile ------------------------------------------------------------------------ */

void matmul_sizes(struct cg *g, const struct matmul_form *f, struct variant_condition *c)
{
    const struct lang_symbol *index[MATMUL_BATCH + 3];
    uint32_t n = 0;
    for (uint32_t b = 0; b < f->nbatch; b++)
        index[n++] = f->batch[b];
    if (f->i)
        index[n++] = f->i;
    index[n++] = f->j;
    index[n++] = f->k;
    for (uint32_t i = 0; i < n; i++) {
        int64_t v;
        struct lang_expr *dim = index[i]->dims[0];
        if (lang_const_int(dim, &v))
            c->never |= v > MAP_MOST_SMALL;
        else
            variant_require(c, lx_at_most(g->a, dim, MAP_MOST_SMALL));
    }
}

static bool is_multiple(struct cg_val extent, uint32_t of)
{
    int64_t c;
    return cg_is_const(extent, &c) && c % of == 0;
}

/* Rows and columns of what blocks that are numbered by themselves take: of a block's tile, or of a
 * cluster's. */
static uint32_t rows_of(const struct matmul *m)
{
    return m->p->bm * (m->p->cluster[0] ? m->p->cluster[0] : 1);
}

static uint32_t cols_of(const struct matmul *m)
{
    return m->p->bn * (m->p->cluster[1] ? m->p->cluster[1] : 1);
}

/* Tiles of a group: where they may be 2^31 or more, which no launch has, at most that. */
static struct extent group_tiles(struct matmul *m, struct extent across)
{
    struct cg *g = m->g;
    int64_t c;
    struct extent n = extent_times(g, extent_constant(g, m->p->group), across);
    if (extent_is_constant(n, &c))
        return extent_constant(g, c < INT32_MAX ? c : INT32_MAX);
    if ((int64_t)m->p->group * (MAP_MOST_SMALL / cols_of(m) + 1) <= INT32_MAX)
        return n;
    n.e = lx_min(g->a, n.e, lx_int(g->a, INT32_MAX));
    n.v = extent_computed(g, n.e);
    return n;
}

/* Groups of `group` rows of tiles, each column by column, so that blocks that run at once meet in
 * few rows and columns: they find them in the L2 cache. The last group may have fewer rows. */
static void find_tile(struct matmul *m, struct cg_val t)
{
    struct cg *g = m->g;
    const struct extent down = extent_divided(g, m->f->i, rows_of(m));
    const struct extent across = extent_divided(g, m->f->j, cols_of(m));
    struct cg_val row, col, group, in_group;
    int64_t one;
    if (m->p->group < 2 || (extent_is_constant(down, &one) && one < 2)) {
        extent_split(g, t, across, &row, &col);
    } else {
        const struct cg_val most = cg_int(DT_U32, m->p->group);
        extent_split(g, t, group_tiles(m, across), &group, &in_group);
        struct cg_val first = cg_binary(g, OP_MUL, extent_u32(g, group), most), rows = most;
        if (!is_multiple(down.v, m->p->group)) {
            rows = cg_binary(g, OP_SUB, extent_u32(g, down.v), first);
            rows = cg_minmax(g, false, rows, most);
        }
        in_group = extent_u32(g, in_group);
        col = cg_binary(g, OP_DIV, in_group, rows);
        row = cg_binary(g, OP_SUB, in_group, cg_binary(g, OP_MUL, col, rows));
        row = cg_binary(g, OP_ADD, first, row);
    }
    row = cg_binary(g, OP_MUL, extent_u32(g, row), cg_int(DT_U32, rows_of(m)));
    col = cg_binary(g, OP_MUL, extent_u32(g, col), cg_int(DT_U32, cols_of(m)));
    m->row = cg_index(g, row);
    m->col = cg_index(g, col);
}

static struct extent splits_of(const struct matmul *m)
{
    struct cg *g = m->g;
    int64_t c;
    if (m->p->split < 2)
        return extent_constant(g, 1);
    if (!m->p->splits)
        return extent_constant(g, m->p->split);
    if (lang_const_int(m->p->splits, &c))
        return extent_constant(g, c);
    return (struct extent){m->p->splits, extent_computed(g, m->p->splits)};
}

/* Shares are of whole tiles along k, but for the last one; those at the end may be empty. */
static void find_share(struct matmul *m, struct extent splits)
{
    struct cg *g = m->g;
    const struct extent k = extent_of(g, m->f->k);
    int64_t one, c;
    m->k_from = cg_int(DT_I64, 0);
    m->k_to = k.v;
    if (extent_is_constant(splits, &one) && one == 1)
        return;
    struct cg_val per;
    const uint32_t bk = m->p->bk;
    if (extent_is_constant(k, &c) && extent_is_constant(splits, &one)) {
        const int64_t tiles = (c + bk - 1) / bk;
        per = cg_int(DT_U32, (tiles + one - 1) / one * bk);
    } else {
        per = extent_u32(g, extent_computed(g, matmul_share(g->a, k.e, bk, splits.e)));
    }
    struct cg_val end = extent_u32(g, k.v), from = cg_binary(g, OP_MUL, m->split, per);
    from = cg_minmax(g, false, from, end);
    m->k_from = cg_index(g, from);
    m->k_to = cg_index(g, cg_minmax(g, false, cg_binary(g, OP_ADD, from, per), end));
}

static struct extent tiles_of(struct matmul *m)
{
    struct cg *g = m->g;
    const struct extent across = extent_divided(g, m->f->j, cols_of(m));
    return extent_times(g, extent_divided(g, m->f->i, rows_of(m)), across);
}

static void find_extents(struct matmul *m)
{
    m->m = extent_of(m->g, m->f->i).v;
    m->n = extent_of(m->g, m->f->j).v;
    m->k = extent_of(m->g, m->f->k).v;
    m->whole_rows = is_multiple(m->m, rows_of(m));
    m->whole_cols = is_multiple(m->n, cols_of(m));
    m->whole_k = is_multiple(m->k, m->p->bk);
    m->k_from = cg_int(DT_I64, 0);
    m->k_to = m->k;
}

static void find_threads(struct matmul *m)
{
    struct cg *g = m->g;
    m->thread = cg_special(g, SP_TID_X);
    m->warp = cg_binary(g, OP_SHR, m->thread, cg_int(DT_U32, 5));
    m->lane = cg_binary(g, OP_AND, m->thread, cg_int(DT_U32, 31));
    m->workers = m->p->threads;
    struct ptx_var *const area = cg_dynamic(g);
    area->align = area->align < SHARED_ALIGN ? SHARED_ALIGN : area->align;
    const struct ptx_operand shared = ptx_sym(area);
    m->shared = cg_pure(g, PTX_B32, "mov.u32", 1, &shared);
    m->reader.shape = m->f->operand[0].eq->sym; /* extents may be divisions, which it looks at */
    m->reader.lanes = 1;
    map_begin_reading(g, &m->reader);
}

void matmul_prepare(struct matmul *m)
{
    find_extents(m);
    find_threads(m);
}

void matmul_find(struct matmul *m, struct cg_val number)
{
    struct cg *g = m->g;
    const struct matmul_form *f = m->f;
    const struct extent splits = splits_of(m), tiles = tiles_of(m);
    struct cg_val n = cg_index(g, number), share, t;
    m->splits = extent_u32(g, splits.v);
    extent_split(g, n, splits, &n, &share);
    m->split = extent_u32(g, share);
    m->tile = extent_u32(g, n);
    t = n;
    if (f->nbatch)
        extent_split(g, n, tiles, &n, &t);
    for (uint32_t b = f->nbatch; b-- > 1;)
        extent_split(g, n, extent_of(g, f->batch[b]), &n, &m->batch[b]);
    if (f->nbatch)
        m->batch[0] = n;
    find_tile(m, t);
    find_share(m, splits);
}

void matmul_begin(struct matmul *m)
{
    splits_of(m); /* so that parameters come in this order */
    tiles_of(m);
    const struct cg_val block = cg_special(m->g, SP_CTAID_X);
    find_extents(m);
    matmul_find(m, block);
    find_threads(m);
}

struct lang_expr *matmul_items(struct matmul *m, struct cg_val *v)
{
    struct cg *g = m->g;
    const struct matmul_form *f = m->f;
    const struct extent splits = splits_of(m);
    struct extent n = tiles_of(m);
    struct lang_expr *items = n.e;
    int64_t one;
    for (uint32_t b = 0; b < f->nbatch; b++)
        items = lx_mul(g->a, items, extent_of(g, f->batch[b]).e);
    if (!extent_is_constant(splits, &one) || one != 1)
        items = lx_mul(g->a, items, splits.e);
    if (!v)
        return items;
    for (uint32_t b = 0; b < f->nbatch; b++)
        n = extent_times(g, n, extent_of(g, f->batch[b]));
    *v = extent_u32(g, extent_times(g, n, splits).v);
    return items;
}

/* Clusters of so many blocks that there are at most. */
static struct lang_expr *most_clusters(struct arena *a, uint32_t most, uint32_t blocks)
{
    if (most != MATMUL_BLOCKS_ALL)
        return lx_int(a, most < blocks ? 1 : most / blocks);
    struct lang_expr *all = lx_multiprocessors(a);
    return blocks > 1 ? lx_max(a, lx_int(a, 1), lx_div_int(a, all, blocks)) : all;
}

struct lang_expr *matmul_grid(struct matmul *m)
{
    const struct matmul_plan *p = m->p;
    struct arena *a = m->g->a;
    struct lang_expr *items = matmul_items(m, NULL);
    const uint32_t blocks = rows_of(m) / p->bm * (cols_of(m) / p->bn);
    if (p->blocks)
        items = lx_min(a, items, most_clusters(a, p->blocks, blocks));
    return lx_mul_int(a, items, blocks);
}

/* ---- operands -------------------------------------------------------------------------------- */

/* The value of an index of a normalised equation in this block. */
static struct cg_val subscript_of(const struct matmul *m, const struct lang_symbol *index,
                                  struct cg_val at, struct cg_val k)
{
    for (uint32_t b = 0; b < m->f->nbatch; b++)
        if (m->f->batch[b] == index)
            return m->batch[b];
    return index == m->f->k ? k : at;
}

/* Is (at, k) inside? A constant or a predicate. */
static struct cg_val is_inside(struct matmul *m, const struct matmul_operand *o, struct cg_val at,
                               struct cg_val k)
{
    struct cg *g = m->g;
    const bool a = o->side == MATMUL_A;
    struct cg_val ok = cg_bool(g, true);
    if (a ? m->f->i && !m->whole_rows : !m->whole_cols)
        ok = cg_binary(g, OP_LT, at, a ? m->m : m->n);
    if (!m->whole_k)
        ok = cg_binary(g, OP_LAND, ok, cg_binary(g, OP_LT, k, m->k));
    return ok;
}

/* The reader stands at an element of a tensor of the shape. */
static void stand_at(struct matmul *m, const struct lang_symbol *shape, uint32_t lanes)
{
    m->reader.shape = shape;
    m->reader.lanes = lanes;
    for (uint32_t i = 1; i <= shape->rank; i++)
        m->reader.prefix[i] = cg_flat_index(m->g, shape, i, m->reader.sub);
}

struct cg_val matmul_stand(struct matmul *m, uint32_t operand, struct cg_val at, struct cg_val k,
                           uint32_t lanes, int32_t inside)
{
    struct cg *g = m->g;
    const struct matmul_operand *o = &m->f->operand[operand];
    for (uint32_t i = 0; i < o->eq->nindex; i++)
        m->reader.sub[i] = subscript_of(m, o->eq->index[i], at, k);
    m->reader.near = k;
    stand_at(m, o->eq->sym, lanes);
    struct cg_val ok = is_inside(m, o, at, k);
    if (inside >= 0)
        ok = cg_binary(g, OP_LAND, cg_value(DT_BOOL, inside), ok);
    return ok;
}

void matmul_fetch(struct matmul *m, uint32_t operand, struct cg_val at, struct cg_val k,
                  uint32_t lanes, int32_t inside, struct cg_val *v)
{
    struct cg *g = m->g;
    const struct matmul_operand *o = &m->f->operand[operand];
    const struct cg_val ok = matmul_stand(m, operand, at, k, lanes, inside);
    int64_t c;
    const struct cg_guard before = cg_guard(g, ok, false);
    map_compute(g, &m->reader, &o->eq, 1, v);
    cg_unguard(g, before);
    const bool always = cg_is_const(ok, &c);
    for (uint32_t l = 0; l < lanes; l++) {
        v[l] = cg_convert(g, v[l], o->type);
        if (!always && !o->plain) /* what was not loaded is zero already */
            v[l] =
                cg_select(g, cg_reg(g, ok), v[l],
                          dtype_is_float(o->type) ? cg_float(g, o->type, 0) : cg_int(o->type, 0));
    }
}

/* A subscript of a plain operand: an axis, or what is the same for the whole block. */
static struct cg_val place_subscript(struct matmul *m, const struct lang_expr *e, struct cg_val at,
                                     struct cg_val k)
{
    struct cg *g = m->g;
    const struct lang_expr *name = inspect_strip(e);
    if (name->kind == E_NAME && name->sym->kind == SYM_INDEX)
        return subscript_of(m, name->sym, at, k);
    const size_t bound = g->bindings.n;
    bool (*const binary)(struct cg *, const struct lang_expr *, struct cg_val *) = g->binary;
    bool (*const read)(struct cg *, const struct lang_expr *, struct cg_val *) = g->read;
    for (uint32_t b = 0; b < m->f->nbatch; b++)
        cg_bind(g, m->f->batch[b], m->batch[b], false);
    g->binary = NULL; /* the reader's, which knows other indices */
    g->read = NULL;
    struct cg_val v = cg_index(g, cg_expr(g, e));
    g->binary = binary;
    g->read = read;
    g->bindings.n = bound;
    return v;
}

void matmul_subscripts(struct matmul *m, uint32_t operand, struct cg_val at, struct cg_val k,
                       struct cg_val *sub)
{
    const struct lang_expr *e = m->f->operand[operand].plain;
    for (uint32_t i = 0; i < e->nargs; i++)
        sub[i] = place_subscript(m, e->args[i], at, k);
}

struct cg_place_of matmul_place(struct matmul *m, uint32_t operand, struct cg_val at,
                                struct cg_val k)
{
    struct cg *g = m->g;
    const struct lang_expr *e = m->f->operand[operand].plain;
    struct cg_val sub[VARIANT_RANK];
    matmul_subscripts(m, operand, at, k, sub);
    return cg_address(g, e->sym, cg_flat_index(g, e->sym, e->nargs, sub));
}

void matmul_result_at(struct matmul *m, struct cg_val row, struct cg_val col, struct cg_val *sub)
{
    const struct matmul_form *f = m->f;
    const struct matmul_images *images = &f->images;
    const uint32_t rank = f->stage->eq[0]->sym->rank;
    struct cg_val image = cg_int(DT_I64, 0);
    if (images->image) {
        struct lang_expr *pixels = images->pixel->dims[0];
        magic_divmod(m->g, col, pixels, cg_extent(m->g, f->stage->eq[0]->sym, rank - 1), &image,
                     &col);
    }
    for (uint32_t i = 0, b = 0; i < rank; i++)
        sub[i] = i + 1 == rank                        ? col
                 : f->i && i == f->axis_i             ? row
                 : images->image && i == images->axis ? image
                                                      : m->batch[b++];
}

struct cg_val matmul_step(struct matmul *m, uint32_t operand)
{
    struct cg *g = m->g;
    const struct lang_expr *e = m->f->operand[operand].plain;
    struct cg_val step = cg_int(DT_I64, 0);
    bool any = false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (inspect_strip(e->args[i])->sym == m->f->k)
            step = cg_int(DT_I64, any = true);
        else if (any)
            step = cg_binary(g, OP_MUL, step, cg_extent(g, e->sym, i));
    }
    return step;
}
