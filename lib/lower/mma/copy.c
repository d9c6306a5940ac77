/* The operands' tiles on their way to shared memory (mma/mma.h): elements as they lie in memory by
 * cp.async, which fills with zeros what is outside, all others through registers.
 *
 * What is copied lies S - 1 tiles ahead of what is multiplied. The last tiles ahead are outside
 * altogether: they cost no reads, and no branch around them is needed.
 */
#include <config.h>

#include "lower/mma/mma.h"

#include <stdio.h>

/* ---- which pieces a thread takes ------------------------------------------------------------- */

static uint32_t gcd(uint32_t x, uint32_t y)
{
    while (y) {
        const uint32_t r = x % y;
        x = y;
        y = r;
    }
    return x;
}

/* Rows so far apart have their chunks in the same order. */
static uint32_t period(const struct mma_tile *t)
{
    static const uint32_t of[] = {
        [MMA_ALONG_K] = 8, [MMA_16BIT] = 8, [MMA_BYTES] = 16, [MMA_SINGLES] = 4};
    return of[t->lay.layout];
}

bool mma_plan_copy(const struct mma_shape *s, struct mma_tile *t)
{
    const struct matmul_operand *o = &s->f->operand[t->operand];
    const uint32_t bytes = s->p->align[t->operand] * t->size, threads = s->p->threads;
    const bool gathers = o->gather && !s->as_f16 && (o->gather->run || s->p->align[t->operand] < 2);
    const struct lang_expr *e = o->plain ? o->plain : gathers ? o->gather->e : NULL;
    t->is_async = e && dtype_bits(e->sym->type) == t->size * 8 && bytes >= 4 && s->target->sm >= 80;
    t->gather = t->is_async ? o->gather : NULL;
    t->source = o->plain && s->as_f16 ? dtype_bits(o->plain->sym->type) / 8 : t->size;
    t->piece = t->is_async && bytes < MMA_CHUNK ? bytes : MMA_CHUNK / t->source * t->size;
    t->lanes = t->piece / t->size;
    const uint32_t per_row = t->lay.row_bytes / t->piece;
    t->across = per_row > threads ? per_row / threads : 1;
    if (per_row > threads && per_row % threads)
        return false;
    t->row_step = per_row > threads ? 1 : threads / per_row;
    const uint32_t rows = (t->rows + t->row_step - 1) / t->row_step;
    t->count = rows * t->across;
    t->partial = t->rows % t->row_step != 0;
    t->repeat = period(t) / gcd(period(t), t->row_step);
    t->repeat = t->repeat < rows ? t->repeat : rows;
    return t->across <= MMA_ACROSS && t->across * t->repeat <= MMA_SLOTS;
}

/* ---- where they go --------------------------------------------------------------------------- */

static uint32_t row_of(const struct mma_slab *t, uint32_t i)
{
    return i / t->of->across * t->of->row_step;
}

static uint32_t col_of(const struct mma *s, const struct mma_slab *t, uint32_t i)
{
    return i % t->of->across * s->p->threads * t->of->lanes;
}

static uint32_t slot_of(const struct mma_slab *t, uint32_t i)
{
    return i % t->of->across + t->of->across * (i / t->of->across % t->of->repeat);
}

int32_t mma_target_register(const struct mma_slab *t, uint32_t i)
{
    return t->to_now[slot_of(t, i)];
}

int64_t mma_target_offset(const struct mma_slab *t, uint32_t i)
{
    const uint32_t row = i / t->of->across / t->of->repeat * t->of->repeat * t->of->row_step;
    return (int64_t)row * t->of->lay.row_bytes;
}

struct ptx_operand mma_target(const struct mma_slab *t, uint32_t i)
{
    return ptx_mem(mma_target_register(t, i), mma_target_offset(t, i));
}

/* The first byte of the row's element number c. */
static struct cg_val byte_of(struct mma *s, const struct mma_slab *t, struct cg_val c)
{
    enum { SPAN = 16 };
    struct cg *g = s->g;
    if (!t->of->lay.spaced)
        return cg_mul(g, c, t->of->size);
    const struct cg_val in = cg_binary(g, OP_AND, c, cg_u32(SPAN - 1));
    return cg_weighted(g, cg_binary(g, OP_SUB, c, in), t->of->size, in, 1);
}

static void find_targets(struct mma *s, struct mma_slab *t)
{
    struct cg *g = s->g;
    for (uint32_t i = 0; i < t->of->across * t->of->repeat; i++) {
        struct cg_val row = cg_add(g, t->row, cg_u32(row_of(t, i)));
        struct cg_val byte = byte_of(s, t, cg_add(g, t->col, cg_u32(col_of(s, t, i))));
        struct cg_val to =
            mma_chunk(g, &t->of->lay, row, cg_binary(g, OP_DIV, byte, cg_u32(MMA_CHUNK)));
        if (t->of->piece < MMA_CHUNK)
            to = cg_add(g, to, cg_binary(g, OP_AND, byte, cg_u32(MMA_CHUNK - 1)));
        to = cg_add(g, cg_add(g, to, cg_u32(t->of->offset)), cg_value(DT_U32, s->m->shared));
        t->to[i] = cg_reg(g, to);
    }
}

/* ---- where they are -------------------------------------------------------------------------- */

static struct cg_val base_of(const struct mma *s, const struct mma_slab *t)
{
    return cg_convert(s->g, t->of->side == MATMUL_A ? s->m->row : s->m->col, DT_U32);
}

static struct cg_val extent_of(const struct mma *s, const struct mma_slab *t)
{
    return cg_convert(s->g, t->of->side == MATMUL_A ? s->m->m : s->m->n, DT_I32);
}

static bool is_whole(const struct mma *s, const struct mma_slab *t)
{
    return t->of->side == MATMUL_A ? s->m->whole_rows : s->m->whole_cols;
}

/* The address of the element at the tile's row r and column c, as counted from (at, k). */
static struct cg_val address_of(struct mma *s, const struct mma_slab *t, struct cg_val at,
                                struct cg_val k, struct cg_val r, struct cg_val c)
{
    struct cg *g = s->g;
    const bool along_k = t->of->lay.layout == MMA_ALONG_K;
    at = cg_add(g, at, along_k ? r : c);
    k = cg_index(g, cg_add(g, k, along_k ? c : r));
    const struct cg_place_of p = matmul_place(s->m, t->of->operand, cg_index(g, at), k);
    return cg_binary(g, OP_ADD, cg_value(DT_I64, p.base), cg_int(DT_I64, p.offset));
}

/* Steps are the same for all threads, which shows where they are computed without the thread's
 * number. */
static struct ptx_operand row_step_of(struct mma *s, const struct mma_slab *t)
{
    struct cg *g = s->g;
    if (t->of->count == t->of->across)
        return ptx_imm(0);
    struct cg_val zero = cg_u32(0), from = address_of(s, t, zero, zero, zero, zero);
    struct cg_val to = address_of(s, t, zero, zero, cg_u32(t->of->row_step), zero);
    return cg_op(g, cg_binary(g, OP_SUB, to, from));
}

static void find_source(struct mma *s, struct mma_slab *t)
{
    struct cg *g = s->g;
    struct cg_val step = matmul_step(s->m, t->of->operand), k = cg_convert(g, s->m->k_from, DT_U32);
    step = cg_binary(g, OP_MUL, step, cg_int(DT_I64, (int64_t)s->p->bk * t->of->source));
    t->next_tile = cg_op(g, step);
    t->next_row = row_step_of(s, t);
    t->from = cg_new_mutable(g, DT_I64);
    cg_move(g, t->from, address_of(s, t, base_of(s, t), k, t->row, t->col));
}

/* What of the tile's rows or columns is inside of the operand, as far as it is the same for all
 * tiles. */
static void find_inside(struct mma *s, struct mma_slab *t)
{
    struct cg *g = s->g;
    struct cg_val base = base_of(s, t), extent = extent_of(s, t);
    t->all_rows = t->of->lay.layout == MMA_ALONG_K && is_whole(s, t);
    if (t->of->lay.layout == MMA_ALONG_K && !t->all_rows) {
        struct cg_val first = cg_convert(g, cg_add(g, base, t->row), DT_I32);
        t->left = cg_binary(g, OP_SUB, extent, first);
    }
    for (uint32_t c = 0; c < t->of->across && t->of->lay.layout != MMA_ALONG_K; c++) {
        struct cg_val at = cg_add(g, base, cg_add(g, t->col, cg_u32(col_of(s, t, c))));
        t->inside[c] = is_whole(s, t) ? cg_bool(g, true)
                                      : cg_binary(g, OP_LT, cg_convert(g, at, DT_I32), extent);
    }
}

/* ---- where they are, of what is gathered ----------------------------------------------------- */

static uint32_t rows_of(const struct mma_slab *t)
{
    return t->of->count / t->of->across;
}

/* What follows from the operand's row or column at element n of the thread's first one along that
 * axis: it does not change along k. */
static struct matmul_found found_at(struct mma *s, const struct mma_slab *t, struct cg_val n)
{
    struct cg *g = s->g;
    const struct cg_val at = cg_add(g, base_of(s, t), n);
    struct cg_val ok = cg_bool(g, true);
    if (!is_whole(s, t)) {
        const struct cg_val extent = extent_of(s, t);
        ok = cg_binary(g, OP_LT, cg_convert(g, at, DT_I32), extent);
    }
    return matmul_gather_at(s->m, t->of->gather, at, ok);
}

/* What follows from the k that is n behind the tile's first. */
static struct matmul_found found_k(struct mma *s, const struct mma_slab *t, struct cg_val n)
{
    struct cg *g = s->g;
    const struct cg_val left = cg_value(DT_I32, s->left);
    const struct cg_val ok = cg_binary(g, OP_GT, left, cg_convert(g, n, DT_I32));
    return matmul_gather_k(s->m, t->of->gather, cg_add(g, cg_value(DT_U32, s->k), n), ok);
}

static struct cg_val row_at(struct mma *s, const struct mma_slab *t, uint32_t i)
{
    return cg_add(s->g, t->row, cg_u32(row_of(t, i)));
}

static struct cg_val col_at(struct mma *s, const struct mma_slab *t, uint32_t i)
{
    return cg_add(s->g, t->col, cg_u32(col_of(s, t, i)));
}

static void gather_begin(struct mma *s, struct mma_slab *t)
{
    const bool along_k = t->of->lay.layout == MMA_ALONG_K;
    t->of_row = ARENA_ARRAY(s->g->a, rows_of(t), struct matmul_found);
    for (uint32_t r = 0; r < rows_of(t) && along_k; r++)
        t->of_row[r] = found_at(s, t, row_at(s, t, r * t->of->across));
    for (uint32_t c = 0; c < t->of->across && !along_k; c++)
        t->of_col[c] = found_at(s, t, col_at(s, t, c));
}

/* The same of a tile: the thread's pieces of a row along k are of few k, those across of one for
 * each row. */
static void gather_tile(struct mma *s, struct mma_slab *t)
{
    for (uint32_t c = 0; c < t->of->across && t->of->lay.layout == MMA_ALONG_K; c++)
        t->of_col[c] = found_k(s, t, col_at(s, t, c));
}

static struct ptx_operand gathered(struct mma *s, struct mma_slab *t, uint32_t i,
                                   struct cg_val *inside)
{
    const bool along_k = t->of->lay.layout == MMA_ALONG_K;
    const uint32_t r = i / t->of->across, c = i % t->of->across;
    if (!along_k && c == 0)
        t->of_row[r] = found_k(s, t, row_at(s, t, i));
    const struct matmul_found *at = along_k ? &t->of_row[r] : &t->of_col[c];
    const struct matmul_found *k = along_k ? &t->of_col[c] : &t->of_row[r];
    return ptx_mem(matmul_gather_from(s->m, t->of->gather, at, k, inside), 0);
}

/* ---- who takes part -------------------------------------------------------------------------- */

/* Whose pieces there are: threads that are left over from whole rows have none, and the last may be
 * fewer threads'. */
static void find_existing(struct mma *s, struct mma_slab *t)
{
    struct cg *g = s->g;
    const uint32_t last = (t->of->rows - 1) / t->of->row_step * t->of->row_step;
    const uint32_t per_row = t->of->lay.row_bytes / t->of->piece;
    struct cg_val ok = cg_bool(g, true);
    int64_t always;
    if (per_row < s->p->threads && s->p->threads % per_row)
        ok = cg_binary(g, OP_LT, t->row, cg_u32(t->of->row_step));
    t->takes_part = cg_is_const(ok, &always) ? -1 : cg_reg(g, ok);
    if (t->of->partial)
        ok = cg_binary(g, OP_LT, t->row, cg_u32(t->of->rows - last));
    t->exists = cg_is_const(ok, &always) ? -1 : cg_reg(g, ok);
}

void mma_copy_begin(struct mma *s)
{
    struct cg *g = s->g;
    const struct matmul *m = s->m;
    for (uint32_t i = 0; i < s->shape->ntile; i++) {
        struct mma_slab *t = &s->slab[i];
        const uint32_t per_row = t->of->lay.row_bytes / t->of->piece;
        const bool long_rows = per_row > s->p->threads;
        t->row = long_rows ? cg_u32(0) : cg_binary(g, OP_DIV, m->thread, cg_u32(per_row));
        t->col = cg_mul(g, long_rows ? m->thread : cg_binary(g, OP_MOD, m->thread, cg_u32(per_row)),
                        t->of->lanes);
        find_existing(s, t);
        find_targets(s, t);
        if (t->of->gather) {
            gather_begin(s, t);
        } else if (t->of->is_async || s->shape->as_f16) {
            find_source(s, t);
            find_inside(s, t);
        } else {
            t->held = arena_alloc(g->a, t->of->count * sizeof *t->held);
        }
    }
    struct cg_val from = cg_convert(g, m->k_from, DT_U32), to = cg_convert(g, m->k_to, DT_U32);
    s->k = cg_new_mutable(g, DT_U32);
    s->left = cg_new_mutable(g, DT_I32);
    s->write = cg_new_mutable(g, DT_U32);
    cg_move(g, s->k, from);
    cg_move(g, s->left, cg_convert(g, cg_binary(g, OP_SUB, to, from), DT_I32));
    cg_move(g, s->write, cg_u32(0));
}

/* ---- copies ---------------------------------------------------------------------------------- */

int32_t mma_exists(const struct mma_slab *t, uint32_t i)
{
    return i / t->of->across + 1 == t->of->count / t->of->across ? t->exists : t->takes_part;
}

static struct cg_val left_of(const struct mma *s)
{
    return cg_value(DT_I32, s->left);
}

void mma_tile_begin(struct mma *s, struct mma_slab *t)
{
    struct cg *g = s->g;
    for (uint32_t i = 0; i < t->of->across * t->of->repeat; i++) {
        t->to_now[i] = cg_new(g, DT_U32);
        PTX(&g->b, "add.s32", ptx_r(t->to_now[i]), ptx_r(t->to[i]), ptx_r(s->write));
    }
    if (t->of->gather)
        gather_tile(s, t);
    if (t->of->gather || (!t->of->is_async && !s->shape->as_f16))
        return;
    if (t->of->lay.layout != MMA_ALONG_K)
        t->left = cg_binary(g, OP_SUB, left_of(s), cg_convert(g, t->row, DT_I32));
    for (uint32_t c = 0; c < t->of->across && t->of->lay.layout == MMA_ALONG_K; c++) {
        struct cg_val col = cg_add(g, t->col, cg_u32(col_of(s, t, c)));
        t->inside[c] = cg_binary(g, OP_GT, left_of(s), cg_convert(g, col, DT_I32));
    }
}

struct ptx_operand mma_source(struct mma *s, struct mma_slab *t, uint32_t i, struct cg_val *inside)
{
    struct cg *g = s->g;
    const uint32_t across = i % t->of->across;
    int64_t always;
    if (i == 0) {
        t->here = t->from;
    } else if (across == 0) {
        const int32_t here = cg_new(g, DT_I64);
        PTX(&g->b, "add.s64", ptx_r(here), ptx_r(t->here), t->next_row);
        t->here = here;
    }
    *inside = t->inside[across];
    if (!t->all_rows) {
        const struct ptx_operand left = ptx_r(cg_reg(g, t->left)), row = ptx_imm(row_of(t, i));
        const int32_t p = cg_new(g, DT_BOOL);
        if (cg_is_const(*inside, &always))
            PTX(&g->b, "setp.gt.s32", ptx_r(p), left, row);
        else
            PTX(&g->b, "setp.gt.and.s32", ptx_r(p), left, row, inside->op);
        *inside = cg_value(DT_BOOL, p);
    }
    return ptx_mem(t->here, (int64_t)col_of(s, t, i) * t->of->source);
}

static void copy_piece(struct mma *s, struct mma_slab *t, uint32_t i)
{
    struct cg *g = s->g;
    struct cg_val inside;
    const struct ptx_operand from = t->of->gather ? gathered(s, t, i, &inside)
                                                  : mma_source(s, t, i, &inside);
    const int32_t bytes = CG(g, PTX_B32, "selp.b32", ptx_imm(t->of->piece), ptx_imm(0), inside.op);
    mma_copy_async(g, mma_exists(t, i), mma_target(t, i), from, t->of->piece, bytes);
}

/* A piece's elements, computed. */
static void fetch_piece(struct mma *s, struct mma_slab *t, uint32_t i)
{
    struct cg *g = s->g;
    const enum dtype type = s->f->operand[t->of->operand].type;
    const uint32_t align = s->p->align[t->of->operand], per_word = 4 / t->of->size;
    const uint32_t lanes = align < t->of->lanes ? align : t->of->lanes;
    struct cg_val v[MMA_CHUNK], base = base_of(s, t), k = cg_value(DT_U32, s->k);
    const bool along_k = t->of->lay.layout == MMA_ALONG_K;
    bool paired = t->of->size == 2;
    s->m->reader.within = s->m->reader.spread = s->p->bk;
    s->m->reader.after = 0;
    s->m->reader.from = cg_index(g, k);
    for (uint32_t e = 0; e < t->of->lanes; e += lanes) {
        struct cg_val row = cg_add(g, t->row, cg_u32(row_of(t, i)));
        struct cg_val col = cg_add(g, t->col, cg_u32(col_of(s, t, i) + e));
        struct cg_val of_k = along_k ? col : row;
        struct cg_val ok = cg_binary(g, OP_GT, left_of(s), cg_convert(g, of_k, DT_I32));
        if (mma_exists(t, i) >= 0)
            ok = cg_binary(g, OP_LAND, ok, cg_value(DT_BOOL, mma_exists(t, i)));
        const struct cg_val at = cg_index(g, cg_add(g, base, along_k ? row : col));
        const struct cg_val to = cg_index(g, cg_add(g, k, of_k));
        paired = paired && matmul_fetch_pairs(s->m, t->of->operand, at, to, lanes, cg_reg(g, ok),
                                              t->held[i] + e / 2);
        if (!paired)
            matmul_fetch(s->m, t->of->operand, at, to, lanes, cg_reg(g, ok), v + e);
    }
    s->m->reader.within = 0;
    for (uint32_t w = 0; w < 4 && !paired; w++)
        t->held[i][w] = t->of->size == 4 ? ptx_r(cg_reg(g, v[w]))
                                         : cg_pack(g, type, per_word, v + (size_t)w * per_word);
}

void mma_bring(struct mma *s, uint32_t part, uint32_t parts)
{
    for (uint32_t n = 0; n < s->shape->ntile; n++) {
        struct mma_slab *t = &s->slab[n];
        const uint32_t from = t->of->count * part / parts, to = t->of->count * (part + 1) / parts;
        if (part == 0)
            mma_tile_begin(s, t);
        for (uint32_t i = from; i < to; i++) {
            if (t->of->is_async)
                copy_piece(s, t, i);
            else
                fetch_piece(s, t, i);
        }
    }
}

static void put_held(struct mma *s, struct mma_slab *t)
{
    struct cg *g = s->g;
    const bool singles = s->f->operand[t->of->operand].type == DT_F32;
    for (uint32_t i = 0; i < t->of->count; i++)
        ptx_emit(&g->b, mma_exists(t, i), false, singles ? "st.shared.v4.f32" : "st.shared.v4.b32",
                 PTX_ARGS(mma_target(t, i), ptx_vec(&g->b, 4, t->held[i])));
}

static void advance_sources(struct mma *s)
{
    struct cg *g = s->g;
    for (uint32_t n = 0; n < s->shape->ntile; n++) {
        struct mma_slab *t = &s->slab[n];
        if (t->of->gather || (!t->of->is_async && !s->shape->as_f16))
            continue;
        CG_ASSIGN(g, t->from, "add.s64", ptx_r(t->from), t->next_tile);
    }
}

static void advance_k(struct mma *s)
{
    struct cg *g = s->g;
    CG_ASSIGN(g, s->k, "add.s32", ptx_r(s->k), ptx_imm(s->p->bk));
    CG_ASSIGN(g, s->left, "sub.s32", ptx_r(s->left), ptx_imm(s->p->bk));
}

void mma_advance(struct mma *s)
{
    advance_sources(s);
    advance_k(s);
}

void mma_bring_end(struct mma *s)
{
    bool any = false;
    for (uint32_t n = 0; n < s->shape->ntile; n++) {
        struct mma_slab *t = &s->slab[n];
        any |= t->of->is_async;
        if (!t->of->is_async)
            put_held(s, t);
    }
    advance_sources(s);
    if (any)
        mma_commit_copies(s->g);
    advance_k(s);
}
