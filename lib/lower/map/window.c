/* Windows: reductions over neighbouring elements, as of poolings and depthwise convolutions, and
 * stencils.
 *
 * A thread computes several rows of the outputs along an axis on which windows lie, each of a
 * vector of neighbouring elements or of one:
 *
 *     along the last axis      | thread 0 | thread 1 | ...       a warp's accesses lie side by side
 *     along another     row 0  |   y      |
 *                       row 1  |   y      |                      windows of rows overlap: what they
 *                       row 2  |   y      |                      have in common is loaded once
 *
 * Rows are lanes that constants tell apart (map.h), so that loads, conversions and predicates of
 * what several windows have in common are the same ones by value numbering. Where windows lie along
 * the last axis alone, a warp computes 32 * rows elements of it, of which a thread has every 32nd.
 *
 * The last thread along an axis begins so far in front that its rows are inside, and does not store
 * what its neighbour does: no load needs another predicate.
 */
#include <config.h>

#include "lower/access.h"
#include "lower/map/loops.h"
#include "lower/schedule.h"

enum {
    BLOCK = 256,
    WARP = 32,
    MOST_ROWS = 8,
    FEW_ROWS = 2,
    MOST_READS = 128,
    /* Terms that are written out: what windows along the last axis have in common with it are
     * numbers for all of a vector's lanes, else vectors, for which there are not so many registers.
     */
    MOST_SCALAR = 64,
    MOST_VECTOR = 32,
    MOST_WRITTEN = 16,       /* elements of a thread whose windows are written out */
    MOST_COST = 24000,       /* operations of a thread's elements */
    LEAST_THREADS = 1 << 17, /* more rows are worth less than more threads */
};

/* ---- where windows lie ----------------------------------------------------------------------- */

struct finder {
    struct map_windows w;
    VEC(struct access) reads;
    struct cg *g;
};

static void add_index(struct map_windows *w, const struct lang_symbol *index, uint32_t axes)
{
    uint32_t i = 0;
    while (i < w->n && w->index[i] != index)
        i++;
    if (i == MAP_INDICES)
        return;
    w->index[i] = index;
    w->along[i] |= axes;
    w->n += i == w->n;
}

bool map_is_window(const struct map_windows *w, const struct lang_symbol *index)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->index[i] == index)
            return true;
    return false;
}

/* How windows of neighbours along the axis lie: apart, so that some of them have elements in
 * common, or so that each has with the next. What is not known does. */
enum overlap { APART, SOME, EACH };

static enum overlap overlap_of(const struct access_form *f, uint32_t axis, uint32_t loop,
                               const struct lang_symbol *index)
{
    int64_t n;
    if (!f->coef[axis] || !f->coef[loop] || index->low || !lang_const_int(index->dims[0], &n))
        return EACH;
    const int64_t step = f->coef[axis] < 0 ? -f->coef[axis] : f->coef[axis];
    const int64_t move = f->coef[loop] < 0 ? -f->coef[loop] : f->coef[loop];
    if (step >= move * n)
        return APART;
    return step % move == 0 ? EACH : SOME;
}

static void note_reduced(struct finder *f, const struct access_form *s,
                         const struct access_axes *axes, uint32_t out, uint32_t loops)
{
    for (uint32_t k = axes->nout; k < axes->n; k++) {
        if (!(loops >> k & 1) || ((s->other >> k & 1) && (s->other & out)))
            continue; /* of both together it is no sum */
        f->w.axes |= out;
        add_index(&f->w, axes->sym[k], out);
        for (uint32_t i = 0; i < axes->nout; i++) {
            const enum overlap o = out >> i & 1 ? overlap_of(s, i, k, axes->sym[k]) : APART;
            f->w.some |= (uint32_t)(o != APART) << i;
            f->w.each |= (uint32_t)(o == EACH) << i;
        }
    }
}

/* Two reads of a stencil that are a number of rows from each other. */
static void note_stencil(struct finder *f, const struct access *x, const struct access *y,
                         uint32_t last)
{
    for (uint32_t i = 0; i < x->n; i++) {
        const struct access_form *p = &x->sub[i], *q = &y->sub[i];
        const uint32_t mask = access_mask(p);
        const int64_t apart = p->constant - q->constant;
        if (!mask || (mask & (mask - 1)) || mask >= 1u << last || access_mask(q) != mask || !apart)
            continue;
        const int64_t step = p->coef[__builtin_ctz(mask)];
        if (step && q->coef[__builtin_ctz(mask)] == step && apart % step == 0 && !p->symbolic &&
            !q->symbolic)
            f->w.axes |= mask, f->w.some |= mask, f->w.each |= mask;
    }
}

static bool note_read(void *ctx, const struct access *a, const struct access_axes *axes)
{
    struct finder *f = ctx;
    const uint32_t outs = (1u << axes->nout) - 1;
    for (uint32_t i = 0; i < a->n; i++) {
        const uint32_t mask = access_mask(&a->sub[i]), loops = mask & ~outs & a->loops;
        if ((mask & outs) && loops)
            note_reduced(f, &a->sub[i], axes, mask & outs, loops);
    }
    for (size_t i = 0; i < f->reads.n; i++)
        if (f->reads.v[i].sym == a->sym && f->reads.v[i].n == a->n)
            note_stencil(f, &f->reads.v[i], a, axes->nout - 1);
    if (f->reads.n < MOST_READS)
        *VEC_PUSH(f->g->a, &f->reads) = *a;
    return true;
}

struct map_windows map_windows(struct cg *g, const struct lower_stage *s)
{
    struct finder f = {.g = g};
    for (uint32_t i = 0; i < s->n; i++)
        if (s->eq[i]->nindex == 0 || !access_walk(g, s->eq[i], note_read, &f))
            return (struct map_windows){0};
    const uint32_t last = s->eq[0]->nindex - 1;
    f.w.written = f.w.axes >> last & 1 ? MOST_SCALAR : MOST_VECTOR;
    return f.w;
}

/* What only neighbouring threads compute, rows that overlap, must not be read by others. */
static bool writes_inputs(const struct lower_stage *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->eq[i]->sym->kind == SYM_BUFFER && s->eq[i]->sym->mode == MODE_INOUT)
            return true;
    return false;
}

bool map_window_fits(struct cg *g, const struct lower_stage *s, struct buf *why)
{
    const struct map_windows w = map_windows(g, s);
    struct map_survey v;
    return w.axes && !writes_inputs(s) && s->eq[0]->sym->rank <= VARIANT_RANK &&
           map_survey(g, s, &w, &v, why) && v.least == 1;
}

/* ---- plans ----------------------------------------------------------------------------------- */

struct window {
    const struct lower_stage *s;
    const struct lang_symbol *shape;
    struct map_windows w;
    struct map_survey v;
    uint32_t block, rows, width, down, apart;
};

/* The elements along axis `down` of a thread; with those between them. */
static uint32_t span_of(const struct window *w)
{
    return w->rows * w->apart;
}

/* The rows along an axis: as many as waste few, given that each thread reads two more. */
static uint32_t rows_along(const struct window *w, uint32_t axis, uint32_t most)
{
    int64_t n;
    uint32_t best = 1;
    if (!lang_const_int(w->shape->dims[axis], &n))
        return most;
    for (uint32_t r = 2; r <= most && r <= n; r++) {
        const int64_t cost = (n + r - 1) / r * (r + 2), least = (n + best - 1) / best * (best + 2);
        if (cost <= least)
            best = r;
    }
    return best;
}

/* How many threads there are with one row each; 0: not known. */
static double threads_of(const struct window *w)
{
    double n = 1;
    int64_t c;
    for (uint32_t i = 0; i < w->shape->rank; i++) {
        if (!lang_const_int(w->shape->dims[i], &c))
            return 0;
        n *= (double)c;
    }
    return n / w->width;
}

static uint32_t lowest(uint32_t axes)
{
    return (uint32_t)__builtin_ctz(axes);
}

/* Are there windows that loops walk? */
static bool has_loops(const struct window *w)
{
    uint64_t n, all = 1;
    for (uint32_t i = 0; i < w->w.n; i++) {
        const struct lang_expr one = {
            .nindex = 1, .index = (struct lang_symbol *[]){(struct lang_symbol *)w->w.index[i]}};
        if (!map_count_terms(&one, &n))
            return true;
        all *= n;
    }
    return all > w->w.written;
}

/* Large windows that lie apart along the last axis: what a warp reads for one row of them is whole
 * lines, of which the cache keeps what another term needs if little else comes between. So a thread
 * has one window, whose rows it walks one after the other. */
static bool lie_apart(const struct window *w)
{
    const uint32_t last = 1u << (w->shape->rank - 1);
    return (w->w.axes & last) && !(w->w.some & last) && has_loops(w);
}

static void choose_rows(struct window *w, const struct map_options *want)
{
    const uint32_t last = w->shape->rank - 1;
    const bool loops = has_loops(w);
    if (!want->rows && w->width == 1 && lie_apart(w)) {
        w->down = last;
        w->apart = w->rows = 1;
        return;
    }
    const uint32_t lanes = loops ? MAP_LANES : MOST_WRITTEN;
    uint32_t most = lanes / w->width < MOST_ROWS ? lanes / w->width : MOST_ROWS;
    while (most > 1 && !loops && w->v.cost * w->width * most > MOST_COST)
        most /= 2;
    w->down = lowest(w->w.each ? w->w.each : w->w.some ? w->w.some : w->w.axes);
    w->apart = w->down == last ? WARP : 1;
    if (!w->w.each && w->apart == 1) /* little is shared: rows are for what all windows need */
        most = most < 2 ? most : 2;
    w->rows = w->apart == 1 ? rows_along(w, w->down, most) : most;
    const double threads = threads_of(w);
    while (w->rows > 2 && threads > 0 && threads / w->rows < LEAST_THREADS)
        w->rows = (w->rows + 1) / 2;
    w->rows = want->rows ? want->rows : w->rows;
}

/* Vectors along the last axis, as far as its extent is a multiple of them. */
static uint32_t width_of(const struct window *w, const struct map_options *want)
{
    int64_t n;
    uint32_t width = want->vector ? want->vector : w->v.vector < 4 ? w->v.vector : 4;
    if (w->w.axes == 1u << (w->shape->rank - 1) || (!want->vector && !want->rows && lie_apart(w)))
        return 1; /* rows lie along it */
    while (width > 1 && lang_const_int(w->shape->dims[w->shape->rank - 1], &n) && n % width)
        width /= 2;
    return width;
}

/* ---- positions ------------------------------------------------------------------------------- */

/* What threads are counted in along an axis, as the launch has it and as a value. */
static struct lang_expr *units_of(struct cg *g, const struct window *w, uint32_t axis)
{
    struct lang_expr *n = w->shape->dims[axis];
    if (axis == w->down)
        n = lx_ceil_div_int(g->a, n, span_of(w));
    if (axis == w->down && w->apart > 1)
        n = lx_mul_int(g->a, n, w->apart);
    return axis + 1 == w->shape->rank && w->width > 1 ? lx_div_int(g->a, n, w->width) : n;
}

static struct cg_val launch_value(struct cg *g, struct lang_expr *e)
{
    int64_t c;
    if (lang_const_int(e, &c))
        return cg_int(DT_U32, c);
    return cg_convert(g, cg_param_computed(g, e), DT_U32);
}

static struct lang_expr *all_units(struct cg *g, const struct window *w)
{
    struct lang_expr *n = lx_int(g->a, 1);
    for (uint32_t i = 0; i < w->shape->rank; i++)
        n = lx_mul(g->a, n, units_of(g, w, i));
    return n;
}

/* The first element along `down` of unit u, and the first that the thread stores; not there where
 * all are its own. */
static struct cg_val first_row(struct cg *g, const struct window *w, struct cg_val u,
                               struct cg_val *from)
{
    struct cg_val lane = cg_u32(0), at;
    int64_t n;
    if (w->apart > 1) {
        lane = cg_binary(g, OP_AND, u, cg_u32(w->apart - 1));
        u = cg_binary(g, OP_DIV, u, cg_u32(w->apart));
    }
    at = cg_mul(g, u, span_of(w));
    *from = cg_bool(g, true);
    if (!lang_const_int(w->shape->dims[w->down], &n) || n % span_of(w)) {
        struct cg_val end = cg_convert(g, cg_extent(g, w->shape, w->down), DT_U32);
        *from = at;
        at = cg_minmax(g, false, at, cg_binary(g, OP_SUB, end, cg_u32(span_of(w))));
    }
    return w->apart > 1 ? cg_add(g, at, lane) : at;
}

/* The subscripts of the thread's first element; t: its number. */
static void find_position(struct cg *g, const struct window *w, struct map_reader *m,
                          struct cg_val t, struct cg_val *from)
{
    const uint32_t rank = w->shape->rank;
    t = cg_index(g, t);
    for (uint32_t i = rank; i-- > 0;) {
        struct lang_expr *units = units_of(g, w, i);
        m->sub[i] = t;
        if (i)
            magic_divmod(g, t, units, cg_index(g, launch_value(g, units)), &t, &m->sub[i]);
        struct cg_val u = cg_convert(g, m->sub[i], DT_U32);
        if (i == w->down)
            u = first_row(g, w, u, from);
        if (i + 1 == rank && w->width > 1)
            u = cg_mul(g, u, w->width);
        m->sub[i] = cg_index(g, u);
    }
    m->prefix[1] = m->sub[0];
    for (uint32_t i = 1; i < rank; i++) {
        struct cg_val row = cg_binary(g, OP_MUL, m->prefix[i], cg_extent(g, w->shape, i));
        m->prefix[i + 1] = cg_binary(g, OP_ADD, row, m->sub[i]);
    }
}

/* ---- code ------------------------------------------------------------------------------------ */

static void store_row(struct cg *g, const struct window *w, const struct map_reader *m,
                      uint32_t row, const struct cg_val *v)
{
    struct cg_val flat = cg_int(DT_I64, (int64_t)row * w->apart);
    for (uint32_t i = w->down + 1; i < w->shape->rank; i++)
        flat = cg_binary(g, OP_MUL, flat, cg_extent(g, w->shape, i));
    flat = cg_binary(g, OP_ADD, m->prefix[w->shape->rank], flat);
    for (uint32_t i = 0; i < w->s->n; i++) {
        const struct lang_symbol *t = w->s->eq[i]->sym;
        const struct cg_val *x = v + (size_t)i * m->lanes + (size_t)row * w->width;
        cg_at(g, w->s->eq[i]->span);
        struct cg_place_of at = cg_address(g, t, flat);
        if (w->width == 1)
            cg_store(g, t, at, x[0]);
        else
            cg_store_vector(g, t, at.base, at.offset, w->width, x);
    }
}

static void store(struct cg *g, const struct window *w, const struct map_reader *m,
                  struct cg_val from, const struct cg_val *v)
{
    int64_t all;
    for (uint32_t row = 0; row < w->rows; row++) {
        struct cg_val at = cg_convert(g, m->sub[w->down], DT_U32), mine = cg_bool(g, true);
        if (!cg_is_const(from, &all))
            mine = cg_binary(g, OP_GE, cg_add(g, at, cg_u32(row * w->apart)), from);
        const struct cg_guard before = cg_guard(g, mine, false);
        store_row(g, w, m, row, v);
        cg_unguard(g, before);
    }
}

/* What the variant needs before it is generated. */
static struct variant_condition condition_of(struct cg *g, const struct window *w,
                                             struct lang_expr *units)
{
    struct variant_condition c = variant_condition(g);
    const uint32_t last = w->shape->rank - 1;
    int64_t n;
    variant_require_multiple(g, &c, w->shape->dims[last], w->width);
    for (uint32_t i = 0; i < w->shape->rank; i++) {
        struct lang_expr *dim = w->shape->dims[i];
        const int64_t least = i == w->down ? span_of(w) : 0;
        if (lang_const_int(dim, &n))
            c.never |= n < least || n > MAP_MOST_SMALL;
        else if (least > 1)
            variant_require(&c, lx_at_least(g->a, dim, least));
        if (!lang_const_int(dim, &n) && (i == w->down || i == last))
            variant_require(&c, lx_at_most(g->a, dim, MAP_MOST_SMALL));
    }
    if (lang_const_int(units, &n))
        c.never |= n > MAP_MOST_SMALL;
    else
        variant_require(&c, lx_at_most(g->a, units, MAP_MOST_SMALL));
    return c;
}

/* The indices of windows along the axis of rows: rows read the same in different rounds. */
static void begin_loops(struct cg *g, const struct window *w, struct map_reader *m)
{
    const struct lang_symbol **inner = ARENA_ARRAY(g->a, w->w.n + 1, const struct lang_symbol *);
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->w.n; i++)
        if (w->w.along[i] >> w->down & 1)
            inner[n++] = w->w.index[i];
    map_begin_loops(g, m, &w->w, inner, n);
}

static void compute(struct cg *g, const struct window *w, struct map_reader *m, struct cg_val total)
{
    struct cg_val *v = ARENA_ARRAY(g->a, (size_t)w->s->n * m->lanes, struct cg_val), from;
    struct cg_val block = cg_mul(g, cg_special(g, SP_CTAID_X), w->block);
    struct cg_val t = cg_add(g, block, cg_special(g, SP_TID_X));
    g->exit_used = true;
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, t, total)), false, g->exit);
    find_position(g, w, m, t, &from);
    map_compute(g, m, w->s->eq, w->s->n, v);
    store(g, w, m, from, v);
}

static const char *how_text(struct cg *g, const struct window *w)
{
    struct lang_symbol *const *index = w->s->eq[0]->index;
    const char *last = index[w->shape->rank - 1]->name;
    if (w->rows * w->width == 1)
        return arena_printf(g->a, "%u threads, one window for each", w->block);
    if (w->apart > 1)
        return arena_printf(g->a, "%u threads, windows of %u elements along %s for each", w->block,
                            w->rows, last);
    return arena_printf(g->a, "%u threads, windows of %u x %u elements along %s and %s for each",
                        w->block, w->rows, w->width, index[w->down]->name, last);
}

/* One entry, unless it is for no sizes. */
static bool lower_variant(struct cg *g, const struct window *w, const char *part, bool assumes,
                          struct variant_set *all, bool *same)
{
    struct map_reader m = {.lanes = w->rows * w->width,
                           .rows = w->rows,
                           .down = w->down,
                           .apart = w->apart,
                           .shape = w->shape,
                           .assumes = assumes};
    struct lang_expr *units = all_units(g, w);
    variant_begin(g, all, part, w->block);
    cg_at(g, w->s->eq[0]->span);
    struct variant_condition c = condition_of(g, w, units);
    if (!c.never) {
        struct cg_val total = launch_value(g, units);
        map_begin_reading(g, &m);
        begin_loops(g, w, &m);
        compute(g, w, &m, total);
    }
    for (size_t i = 0; i < m.needs.n; i++)
        variant_require_multiple(g, &c, m.needs.v[i].e, m.needs.v[i].of);
    *same = m.needs.n == 0;
    if (c.never) {
        variant_drop(g, all);
        return true;
    }
    lower_tell(g, &(struct lower_entry){
                      .name = g->func->name, .how = how_text(g, w), .when = variant_when_text(&c)});
    all->has_windows = true;
    variant_end(g, all, &c, lx_ceil_div_int(g->a, units, w->block), w->block);
    return !g->failed;
}

bool map_window_lower(struct cg *g, const struct map_options *want, bool walks,
                      struct variant_set *all)
{
    struct window w = {.s = all->s, .shape = all->s->eq[0]->sym, .w = map_windows(g, all->s)};
    struct buf why = buf_in(g->a);
    bool same = false;
    if (want->rows == 1 || want->tile || !w.w.axes || writes_inputs(w.s) ||
        !map_survey(g, w.s, &w.w, &w.v, &why) || w.v.least > 1 || (walks && !w.w.some))
        return true;
    w.block = want->block ? want->block : BLOCK;
    w.width = width_of(&w, want);
    choose_rows(&w, want);
    const bool vectors = w.width > 1;
    if (vectors && w.rows * w.width <= MAP_LANES &&
        !lower_variant(g, &w, "vector", true, all, &same))
        return false;
    if (vectors && !all->done && !same && !lower_variant(g, &w, "rows", false, all, &same))
        return false;
    w.width = 1;
    choose_rows(&w, want);
    if (!all->done && !lower_variant(g, &w, "single", false, all, &same))
        return false;
    w.rows = FEW_ROWS;
    return all->done || want->rows || lower_variant(g, &w, "few", false, all, &same);
}
