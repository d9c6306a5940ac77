/* Reductions over any indices: to one result, to many, along the memory or across it.
 *
 * One launch. The threads of a block go through their share of the elements, the block's sums meet
 * in shared memory, and where several blocks share a result each leaves its part in a buffer and
 * counts itself. The block that finds that it is the last brings the parts together, in the order
 * of the blocks' numbers:
 *
 *     block 0   elements -> part[0] ; count 0 -> 1
 *     block 2   elements -> part[2] ; count 1 -> 2
 *     block 1   elements -> part[1] ; count 2 -> 0: the last; part[0] + part[1] + part[2] -> result
 *
 * So no order in which blocks happen to run shows in the bits, and neither does the device: the
 * number of blocks depends on the sizes alone. The count is acquire and release at the scope of the
 * GPU: it orders the parts, which one thread wrote or a barrier ordered before it, before the last
 * block's reads. It wraps to 0, for the next launch.
 */
#include <config.h>

#include "lower/reduce/reduce.h"
#include "lower/schedule.h"

#include <math.h>

/* ---- parts ----------------------------------------------------------------------------------- */

struct part_values {
    struct reduce_value v[REDUCE_LANES];
};

struct parts {
    struct reduce *r;
    const struct lang_symbol *v[REDUCE_RESULTS], *where[REDUCE_RESULTS];
    struct reduce_sweep *s;
    struct part_values *x[REDUCE_UNROLL]; /* by step of the batch: by result */
    struct cg_val at[REDUCE_UNROLL];
};

/* The thread's first of the results that block `block` (an i64) leaves. */
static struct cg_place_of part_place(struct reduce *r, const struct lang_symbol *t,
                                     struct cg_val block)
{
    struct cg *g = r->g;
    uint32_t width = r->p->width;
    struct cg_val at = cg_binary(g, OP_MUL, block, cg_int(DT_I64, (int64_t)r->p->tx * width));
    struct cg_val mine = cg_binary(g, OP_MUL, r->tx, cg_int(DT_U32, width));
    return cg_address(g, t, cg_binary(g, OP_ADD, at, cg_index(g, mine)));
}

static void name_parts(struct parts *q)
{
    struct reduce *r = q->r;
    struct cg *g = r->g;
    const struct reduce_plan *p = r->p;
    struct lang_expr *n = lx_mul_int(g->a, p->sharing.e, p->tx * p->width);
    for (uint32_t i = 0; i < r->f->nresult; i++) {
        const struct reduce_result *of = &r->f->result[i];
        q->v[i] = cg_temp(g, "part", reduce_type(of), 1, &n, false);
        if (reduce_is_pair(of))
            q->where[i] = cg_temp(g, "where", reduce_where_type(r, of), 1, &n, false);
    }
}

static void leave_parts(struct parts *q)
{
    struct reduce *r = q->r;
    struct cg *g = r->g;
    struct cg_val block = cg_index(g, cg_special(g, SP_CTAID_X));
    for (uint32_t i = 0; i < r->f->nresult; i++)
        for (int where = 0; where <= reduce_is_pair(&r->f->result[i]); where++) {
            struct cg_val v[REDUCE_LANES];
            const struct lang_symbol *t = where ? q->where[i] : q->v[i];
            for (uint32_t k = 0; k < r->p->width; k++) {
                struct reduce_value x = reduce_get(r, i, k);
                v[k] = where ? x.where : x.v;
            }
            cg_store_words(g, t->type, part_place(r, t, block), r->p->width, v);
        }
}

static void at_part(void *ctx, uint32_t u, bool is_first)
{
    struct parts *q = ctx;
    (void)is_first;
    q->at[u] = q->s->at;
}

static void load_part(void *ctx, uint32_t u)
{
    struct parts *q = ctx;
    struct reduce *r = q->r;
    struct cg *g = r->g;
    struct cg_val block = cg_index(g, cg_convert(g, q->at[u], DT_U32));
    if (!reduce_is_one(r->p->outer)) {
        struct cg_val before = cg_binary(g, OP_MUL, r->outer, r->split);
        block = cg_binary(g, OP_ADD, before, block);
    }
    if (!reduce_is_one(r->p->tiles)) {
        block = cg_binary(g, OP_MUL, block, reduce_small_count(g, r->p->tiles));
        block = cg_binary(g, OP_ADD, block, r->tile);
    }
    for (uint32_t i = 0; i < r->f->nresult; i++)
        for (int where = 0; where <= reduce_is_pair(&r->f->result[i]); where++) {
            struct cg_val v[REDUCE_LANES];
            const struct lang_symbol *t = where ? q->where[i] : q->v[i];
            cg_load_words(g, t->type, false, part_place(r, t, block), r->p->width, v);
            for (uint32_t k = 0; k < r->p->width; k++)
                *(where ? &q->x[u][i].v[k].where : &q->x[u][i].v[k].v) = v[k];
        }
}

static void take_part(void *ctx, uint32_t u)
{
    struct parts *q = ctx;
    struct reduce *r = q->r;
    for (uint32_t i = 0; i < r->f->nresult; i++)
        for (uint32_t k = 0; k < r->p->width; k++)
            reduce_set(r, i, k,
                       reduce_meet(r->g, &r->f->result[i], reduce_get(r, i, k), q->x[u][i].v[k]));
}

/* Adds one to the count of the blocks that have left their parts; jumps unless this is the last of
 * them. */
static void count_blocks(struct reduce *r, uint32_t label)
{
    struct cg *g = r->g;
    const struct reduce_plan *p = r->p;
    const struct lang_symbol *arrived = cg_temp(g, "arrived", DT_U32, 1, &p->sharing.e, true);
    struct cg_val which = r->outer;
    if (!reduce_is_one(p->tiles)) {
        which = cg_binary(g, OP_MUL, which, reduce_small_count(g, p->tiles));
        which = cg_binary(g, OP_ADD, which, r->tile);
    }
    struct cg_place_of at = cg_address(g, arrived, which);
    struct cg_val last = cg_binary(g, OP_SUB, cg_convert(g, r->split, DT_U32), cg_int(DT_U32, 1));
    if (p->tx > 1) /* several threads have written */
        PTX(&g->b, "bar.sync", ptx_imm(0));
    int32_t is_last = cg_new_mutable(g, DT_BOOL);
    uint32_t counted = cg_label(g, "counted");
    cg_move(g, is_last, cg_bool(g, false));
    size_t mark = cg_scope_open(g);
    struct cg_val tid = cg_special(g, SP_TID_X);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, tid, cg_int(DT_U32, 0))), true, counted);
    int32_t before = cg_new(g, DT_U32);
    PTX(&g->b, "atom.acq_rel.gpu.global.inc.u32", ptx_r(before), cg_mem(at), cg_op(g, last));
    cg_move(g, is_last, cg_binary(g, OP_EQ, cg_value(DT_U32, before), last));
    cg_scope_close(g, mark);
    cg_place(g, counted);
    int32_t any = cg_new(g, DT_BOOL);
    PTX(&g->b, "bar.red.or.pred", ptx_r(any), ptx_imm(0), ptx_r(is_last));
    cg_jump_if(g, any, false, label);
}

/* Folds the block's results with those of all blocks that share them; the last of these goes on. */
static void join_blocks(struct reduce *r)
{
    struct cg *g = r->g;
    const struct reduce_plan *p = r->p;
    struct parts q = {.r = r};
    struct reduce_sweep s = {.unroll = p->width * r->f->nresult > 8 ? 2 : 4,
                             .start = cg_index(g, r->ty),
                             .step = cg_int(DT_I64, p->ty),
                             .end = r->split,
                             .advance = at_part,
                             .load = load_part,
                             .take = take_part,
                             .ctx = &q};
    q.s = &s;
    for (uint32_t u = 0; u < s.unroll; u++)
        q.x[u] = ARENA_ARRAY(g->a, r->f->nresult, struct part_values);
    uint32_t left = cg_label(g, "left"), alone = cg_label(g, "alone");
    size_t mark = cg_scope_open(g);
    if (!p->split.is_known)
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, r->split, cg_int(DT_I64, 1))), true, alone);
    name_parts(&q);
    size_t inner = cg_scope_open(g);
    struct cg_val tid = cg_special(g, SP_TID_X);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, tid, cg_int(DT_U32, p->tx))), true, left);
    leave_parts(&q);
    cg_scope_close(g, inner);
    cg_place(g, left);
    g->exit_used = true;
    count_blocks(r, g->exit);
    for (uint32_t i = 0; i < r->f->nresult; i++)
        for (uint32_t k = 0; k < p->width; k++)
            reduce_set(r, i, k, reduce_identity(r, &r->f->result[i]));
    reduce_sweep(g, &s);
    reduce_block(r);
    cg_scope_close(g, mark);
    cg_place(g, alone);
}

/* ---- results --------------------------------------------------------------------------------- */

/* S2 - S1 * (S1 / n), not below 0. Where the mean has overflowed the differences to it are
 * infinite; of nothing it is 0. */
static struct cg_val squared_differences(struct reduce *r, const struct reduce_result *q,
                                         struct reduce_value x)
{
    struct cg *g = r->g;
    struct cg_val n = cg_int(DT_I64, 1), zero = cg_float(g, DT_F64, 0);
    for (uint32_t i = r->f->nkeptloop; i < r->f->nloop; i++)
        n = cg_binary(g, OP_MUL, n, r->n[i]);
    struct cg_val offset = cg_binary(g, OP_DIV, x.where, cg_convert(g, n, DT_F64));
    struct cg_val m2 = cg_fma(g, cg_unary(g, OP_NEG, x.where), offset, x.v);
    int32_t below = cg_reg(g, cg_binary(g, OP_LT, m2, zero));
    struct cg_val good = cg_convert(g, cg_select(g, below, zero, m2), DT_F32);
    struct cg_val mean = cg_expr(g, q->mean), nan = cg_binary(g, OP_MUL, m2, zero);
    struct cg_val bad = cg_fma(g, mean, mean, cg_convert(g, nan, DT_F32));
    struct cg_val size = cg_value(DT_F32, CG(g, PTX_F32, "abs.f32", ptx_r(cg_reg(g, mean))));
    struct cg_val is_finite = cg_binary(g, OP_LT, size, cg_float(g, DT_F32, INFINITY));
    struct cg_val v = cg_select(g, cg_reg(g, is_finite), good, bad);
    struct cg_val is_none = cg_binary(g, OP_EQ, n, cg_int(DT_I64, 0));
    return cg_select(g, cg_reg(g, is_none), cg_float(g, DT_F32, 0), v);
}

bool reduce_answer(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct reduce *r = g->read_ctx;
    for (uint32_t i = 0; i < r->f->nresult; i++) {
        if (r->f->result[i].e != e)
            continue;
        struct reduce_value x = reduce_get(r, i, r->p->width > 1 ? r->lane : 0);
        *v = r->f->result[i].term ? squared_differences(r, &r->f->result[i], x) : x.v;
        if (e->args[0]->type == DT_BOOL)
            *v = cg_binary(g, OP_NE, x.v, cg_int(DT_U32, 0));
        if (reduce_is_arg(e))
            *v = cg_convert(g, cg_index(g, x.where), e->type);
        return true;
    }
    return false;
}

static void store(struct reduce *r, const struct lang_equation *eq, const struct cg_val *v)
{
    struct cg *g = r->g;
    uint32_t axis[REDUCE_RANK];
    for (uint32_t i = 0; i < eq->nindex; i++)
        axis[i] = i;
    cg_at(g, eq->span);
    if (r->p->width > 1 && reduce_ends_in_lanes(r->f, eq->nindex, axis)) {
        struct cg_place_of at = reduce_place(r, eq->sym, eq->nindex, axis, 0);
        cg_store_vector(g, eq->sym, at.base, at.offset, r->p->width, v);
        return;
    }
    for (uint32_t k = 0; k < r->p->width; k++)
        cg_store(g, eq->sym, reduce_place(r, eq->sym, eq->nindex, axis, k), v[k]);
}

/* Everything is read before anything is written: an inout's old value may be among it. */
static void finish(struct reduce *r)
{
    struct cg *g = r->g;
    const struct lower_stage *s = r->f->stage;
    struct lane_values {
        struct cg_val v[REDUCE_LANES];
    } *out = ARENA_ARRAY(g->a, s->n, struct lane_values);
    struct cg_val tid = cg_special(g, SP_TID_X);
    g->exit_used = true;
    if (r->p->ty > 1)
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, tid, cg_int(DT_U32, r->p->tx))), true, g->exit);
    reduce_skip_outside(r, g->exit);
    g->reduced = reduce_answer;
    g->preloaded = false;
    for (uint32_t k = 0; k < r->p->width; k++) {
        size_t bound = g->bindings.n;
        reduce_bind_lane(r, k);
        for (uint32_t i = 0; i < s->n; i++) {
            cg_at(g, s->eq[i]->span);
            out[i].v[k] = cg_define(g, s->eq[i], r->axis);
        }
        g->bindings.n = bound;
    }
    for (uint32_t i = 0; i < s->n; i++)
        store(r, s->eq[i], out[i].v);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* ENTRY_part, or with a number behind it, unlike every entry that there is or will be by a kernel's
 * name. */
static const char *free_name(struct cg *g, const char *entry, const char *part, uint32_t i)
{
    const char *name = i > 1 ? arena_printf(g->a, "%s_%s%u", entry, part, (unsigned)i)
                             : arena_printf(g->a, "%s_%s", entry, part);
    for (size_t k = 0; k < g->nspecs; k++)
        if (strcmp(g->specs[k]->name, name) == 0 || ptx_find_entry(g->module, name)) {
            name = arena_printf(g->a, "%s_", name);
            k = (size_t)-1; /* look again from the start */
        }
    return name;
}

/* What was chosen, and why so many blocks. */
static void explain(struct cg *g, const struct reduce_form *f, const struct reduce_plan *p)
{
    const char *what = p->is_column ? "tile" : "result";
    if (!g->report)
        return;
    struct buf how = buf_in(g->a);
    buf_printf(&how, "along %s %s, %s%u threads",
               f->loop[f->lane].is_reduced ? "the reduction," : "the results,",
               lang_expr_text(g->a, f->loop[f->lane].n.e), p->is_open ? "up to " : "",
               (unsigned)p->block);
    if (p->is_open)
        buf_printf(&how, " for tiles of %u results or more, whose terms they hold: read once",
                   (unsigned)(p->tx * p->width));
    else if (f->is_tile)
        buf_printf(&how, " as %u rows of a tile of %u results, whose terms they hold: read once",
                   (unsigned)p->ty, (unsigned)(p->tx * p->width));
    else if (p->is_spread)
        buf_puts(&how, " with results of their own");
    else if (p->is_column)
        buf_printf(&how, " as %u rows of a tile of %u results", (unsigned)p->ty,
                   (unsigned)(p->tx * p->width));
    const char *more = arena_printf(g->a, ", %u x %u elements in flight for each",
                                    (unsigned)p->unroll, (unsigned)p->lanes);
    lower_tell(g, &(struct lower_entry){.name = p->entry,
                                        .how = buf_text(&how),
                                        .more = more,
                                        .when = p->when ? lang_expr_text(g->a, p->when) : NULL});
    if (p->is_spread || f->is_tile)
        return;
    if (reduce_is_one(p->split))
        lower_explain(g, "    a block for each %s: there is no more to do, or enough of them\n",
                      what);
    else
        lower_explain(g,
                      "    %s blocks for each %s, so that all are at work; the last of them brings "
                      "their parts "
                      "together\n",
                      lang_expr_text(g->a, p->split.e), what);
}

/* So many threads share a multiprocessor where tiles are held: this bounds their registers. */
enum { TILE_THREADS = 768 };

static void end_entry(struct cg *g, const struct reduce_plan *p)
{
    g->read = NULL;
    g->reduced = NULL;
    g->read_ctx = NULL;
    g->preloaded = false;
    uint32_t *threads = p->is_open ? g->func->maxntid : g->func->reqntid;
    threads[0] = p->block;
    threads[1] = threads[2] = 1;
    struct lang_expr *block = lx_int(g->a, p->block);
    if (p->is_open)
        block = lx_mul(g->a, lx_mul(g->a, p->across.e, p->down.e), p->several.e);
    struct contract_launch *l = cg_launch(g, p->blocks.e, block);
    l->when = p->when;
    cg_end(g, l);
}

static void lower_entry(struct cg *g, const struct reduce_form *f, const struct reduce_plan *p)
{
    struct reduce r = {.g = g, .f = f, .p = p};
    explain(g, f, p);
    cg_begin(g, p->entry);
    g->read = reduce_read;
    g->read_ctx = &r;
    g->preloaded = !f->reads_else;
    g->block[0] = p->block;
    g->block[1] = g->block[2] = 1;
    cg_at(g, f->stage->eq[0]->span);
    if (f->is_tile) {
        reduce_tile(&r);
        if (!p->is_open)
            g->func->minnctapersm = TILE_THREADS / p->block;
        end_entry(g, p);
        return;
    }
    reduce_take_place(&r);
    reduce_take_indices(&r);
    struct cg_val groups = reduce_count(g, p->groups);
    uint32_t walked = cg_label(g, "walked");
    reduce_open_slots(&r);
    size_t mark = cg_scope_open(g);
    reduce_skip_outside(&r, walked);
    reduce_walk(&r, groups, reduce_count(g, p->rows));
    cg_scope_close(g, mark);
    cg_place(g, walked);
    cg_at(g, f->stage->eq[0]->span);
    reduce_settle_slots(&r);
    reduce_block(&r);
    if (!reduce_is_one(p->split))
        join_blocks(&r);
    finish(&r);
    end_entry(g, p);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Rows that another strategy gives a block each, or less, would leave most of the machine idle
 * where they are few and long: no more rows than multiprocessors, of this many bytes. A single row
 * that is shorter than LONG_SINGLE is no work for more than a block either (H100, 32 KiB: 1.8 us
 * instead of 3.5). */
enum { FEW_ROWS = 132, LONG_ROW = 256 * 1024, LONG_SINGLE = 64 * 1024 };

enum shape { SHAPE_OWN, SHAPE_MANY_ROWS, SHAPE_FEW_ROWS, SHAPE_UNKNOWN };

/* A stage that fits. */
struct fitting {
    struct reduce_form form;
    enum shape shape;
    struct amount few; /* SHAPE_UNKNOWN: when rows are few and long */
    bool is_open;      /* a tile of sizes that the launch knows */
    void *rows; /* the stage as strategy row has it; NULL: that was not asked, or it does not fit */
};

static enum shape shape_of(struct cg *g, struct fitting *a)
{
    const struct reduce_form *f = &a->form;
    struct amount *few = &a->few;
    struct amount rows = reduce_known(g, 1), cols = rows;
    struct buf why = buf_in(g->a);
    for (uint32_t i = 0; i < f->nloop; i++) {
        struct amount *of = f->loop[i].is_reduced ? &cols : &rows;
        *of = reduce_amount(g, lx_mul(g->a, of->e, f->loop[i].n.e));
    }
    const int bytes = reduce_is_one(rows) ? LONG_SINGLE : LONG_ROW;
    const int64_t elements = (int64_t)bytes * 8 / (f->bits ? f->bits : 8);
    if (!f->loop[f->lane].is_reduced ||
        (reduce_is_one(rows) && (!cols.is_known || cols.n >= elements)))
        return SHAPE_OWN;
    a->rows = row_strategy.analyse(g, f->stage, &why);
    if (!a->rows)
        return SHAPE_OWN;
    if (g->spec->schedule.n) /* it names one of both, or what one of both has */
        return schedule_asks(g, &reduce_strategy) ? SHAPE_OWN : SHAPE_MANY_ROWS;
    *few = reduce_amount(
        g, lx_and(g->a, lx_at_most(g->a, rows.e, FEW_ROWS), lx_at_least(g->a, cols.e, elements)));
    if (few->is_known)
        return few->n ? SHAPE_FEW_ROWS : SHAPE_MANY_ROWS;
    bool many = (rows.is_known && rows.n > FEW_ROWS) || (cols.is_known && cols.n < elements);
    return many ? SHAPE_MANY_ROWS : SHAPE_UNKNOWN;
}

/* What is more than a tile holds must be computed otherwise: by other launches for all there is. */
static bool is_all(const struct cg *g, const struct lower_stage *s)
{
    uint32_t n = 0;
    for (size_t i = 0; i < g->spec->compute.n; i++)
        n += g->spec->compute.v[i]->sym->kind == SYM_BUFFER;
    return n == s->n && g->homes.n == 0;
}

static bool fits_open(struct cg *g, const struct lower_stage *s, const struct fitting *f,
                      struct buf *why)
{
    struct reduce_plan v[REDUCE_VARIANTS];
    struct lang_expr *holds;
    int64_t known;
    uint32_t n;
    if (g->spec->schedule.n || !reduce_plan_open(g, &f->form, v, &n, &holds, why))
        return false;
    return lang_const_int(holds, &known) ? known : !g->is_rest && is_all(g, s);
}

/* The stage as a tile that is held; NULL: it is none, or has no room. */
static void *fit_tile(struct cg *g, const struct lower_stage *s, struct fitting *f)
{
    struct buf why = buf_in(g->a);
    const struct reduce_options none = {0};
    struct reduce_plan v[REDUCE_VARIANTS];
    uint32_t n;
    f->shape = SHAPE_OWN;
    if (!reduce_analyse(g, s, true, &f->form, &why) || f->form.loop[f->form.lane].is_reduced)
        return NULL;
    const struct reduce_loop *lane = &f->form.loop[f->form.lane];
    enum { LARGE = 512 }; /* threads: two blocks of a multiprocessor hide each other's waits */
    const bool is_scheduled = g->spec->schedule.n != 0;
    const bool fits = (lane->n.is_known || is_scheduled) &&
                      reduce_plan_tile(g, &f->form, &none, v, &n, &why);
    if (fits && (v[0].block <= LARGE || is_scheduled))
        return f;
    f->is_open = fits_open(g, s, f, &why);
    return fits || f->is_open ? f : NULL;
}

void *reduce_fit(struct cg *g, const struct lower_stage *s, struct buf *why)
{
    struct fitting *f = ARENA_ARRAY(g->a, 1, struct fitting);
    if (!reduce_analyse(g, s, false, &f->form, why))
        return fit_tile(g, s, f);
    f->shape = shape_of(g, f);
    if (f->shape != SHAPE_MANY_ROWS)
        return f;
    if (why)
        buf_puts(why, "the rows are short, or enough for the machine: one need not be shared by "
                      "several blocks");
    return NULL;
}

/* The rest of the sizes by row: of launches of one step with conditions, the first that holds is
 * taken. */
static bool lower_rows(struct cg *g, void *rows)
{
    size_t first = g->contract->launches.n;
    g->depth_told = false;
    if (!row_strategy.lower(g, rows, schedule_nothing(g, &row_strategy)))
        return false;
    if (!g->depth_told)
        lower_depth(g, NULL);
    for (size_t i = first; i < g->contract->launches.n; i++)
        if (!g->contract->launches.v[i].when)
            g->contract->launches.v[i].when = lx_bool(g->a, true);
    return true;
}

/* The sizes for which tiles are none are told to whoever lowers the rest. */
static bool lower_open(struct cg *g, const struct fitting *a)
{
    const struct reduce_form *f = &a->form;
    struct reduce_plan v[REDUCE_VARIANTS];
    struct lang_expr *holds;
    struct buf why = buf_in(g->a);
    uint32_t n;
    int64_t known;
    const size_t first = g->contract->launches.n;
    if (!reduce_plan_open(g, f, v, &n, &holds, &why))
        return false;
    for (uint32_t i = 0; i < n && !g->failed; i++) {
        v[i].entry = i ? free_name(g, f->stage->entry, "any", i) : f->stage->entry;
        lower_entry(g, f, &v[i]);
        lower_depth(g, v[i].depth.e);
    }
    if (!lang_const_int(holds, &known))
        g->covered = holds;
    for (size_t i = first; g->covered && i < g->contract->launches.n; i++) {
        struct contract_launch *l = &g->contract->launches.v[i];
        l->grid[0] = lx_select(g->a, holds, l->grid[0], lx_int(g->a, 0));
    }
    return !g->failed;
}

bool reduce_lower(struct cg *g, void *form, const void *options)
{
    struct fitting *a = form;
    if (a->is_open)
        return lower_open(g, a);
    const struct reduce_form *f = &a->form;
    const char *entry = f->stage->entry;
    struct reduce_plan v[REDUCE_VARIANTS];
    uint32_t n;
    bool both = a->shape == SHAPE_UNKNOWN;
    if (!reduce_plan(g, f, options, v, &n))
        return false;
    if (both && v[0].when)
        n = 1; /* rows that are not whole vectors are left to row, too: there is code enough */
    for (uint32_t i = 0; i < n && !g->failed; i++) {
        if (both)
            v[i].when = lx_and(g->a, a->few.e, v[i].when);
        const char *part = both ? "split" : "any";
        v[i].entry = !i && !both ? entry : free_name(g, entry, part, i);
        lower_entry(g, f, &v[i]);
        struct lang_expr *when = v[i].when ? v[i].when : lx_bool(g->a, true);
        lower_depth(g, lx_select(g->a, when, v[i].depth.e, lx_int(g->a, 0)));
    }
    return !g->failed && (!both || lower_rows(g, a->rows));
}
