/* Tiles of a contraction by fma on their way to shared memory (simt/simt.h).
 *
 * In two stages: through registers, where elements may be computed. What is loaded when a tile's
 * work begins (or just before that, where nothing is to be computed) is stored when it ends. In
 * more: by cp.async, of operands that lie in memory as they are multiplied, in pieces of up to 16
 * bytes or, where they are turned, of one element; it takes neither registers nor instructions to
 * store, and more is on its way.
 *
 * Rows and columns outside are brought from the last inside: nothing that comes of them is stored.
 * Along k the first tile has what the others, which are whole, leave: 1 to bk of k, and zeros
 * behind them. So the loop needs to ask for nothing but whether there is another tile.
 */
#include <config.h>

#include "lower/simt/simt.h"

#include <stdio.h>

enum {
    CHUNK = 8, /* rows of k that a warp turns at once */
    ASYNC_SM = 80,
    /* Registers: of a place in memory; about so many for elements that are computed. */
    ADDRESS = 2,
    COMPUTED = 4,
};

static uint32_t least(uint32_t x, uint32_t y)
{
    return x < y ? x : y;
}

uint32_t simt_side(const struct matmul_plan *p, const struct matmul_operand *o)
{
    return o->side == MATMUL_A ? p->bm : p->bn;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static uint32_t pitch_of(const struct simt *s, const struct simt_slab *b)
{
    return b->side + s->pad;
}

/* The bytes of a stage in shared memory. */
uint32_t simt_stage_bytes(const struct matmul_form *f, const struct matmul_plan *p)
{
    const uint32_t bytes = dtype_bits(f->sum) / 8;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < f->noperand; i++)
        sum += p->bk * (simt_side(p, &f->operand[i]) * bytes + 16);
    return sum;
}

static bool is_copied(const struct matmul_form *f, const struct matmul_operand *o)
{
    return o->plain && !o->cut && o->type == f->sum;
}

static uint32_t lanes_of(const struct matmul_form *f, const struct matmul_plan *p, uint32_t operand)
{
    const struct matmul_operand *o = &f->operand[operand];
    uint32_t lanes = least(p->align[operand] ? p->align[operand] : 1, SIMT_FETCH);
    if (o->bits >= 32)
        lanes = least(lanes, 128 / o->bits);
    if (p->stages > 2 && o->along_k)
        return 1;
    return least(lanes, o->along_k ? CHUNK : simt_side(p, o));
}

uint32_t simt_bring_words(const struct matmul_form *f, const struct matmul_plan *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->noperand; i++) {
        const struct matmul_operand *o = &f->operand[i];
        const uint32_t side = simt_side(p, o), lanes = lanes_of(f, p, i) * p->threads;
        /* elements that have an address each */
        const uint32_t places = side * (o->along_k && is_copied(f, o) ? CHUNK : p->bk) / lanes;
        n += (places ? places : 1) * (is_copied(f, o) ? ADDRESS : COMPUTED);
        if (p->stages < 3)
            n += side * p->bk / p->threads * dtype_bits(f->sum) / 32;
    }
    return n;
}

bool simt_brings(const struct ptx_target *target, const struct matmul_form *f,
                 const struct matmul_plan *p)
{
    if (p->stages > 2 && target->sm < ASYNC_SM)
        return false;
    for (uint32_t i = 0; i < f->noperand; i++) {
        const struct matmul_operand *o = &f->operand[i];
        if (p->stages > 2 && !is_copied(f, o))
            return false;
        if (simt_side(p, o) * p->bk / lanes_of(f, p, i) > SIMT_PASSES * p->threads)
            return false;
    }
    return true;
}

/* ---- global memory to registers -------------------------------------------------------------- */

/* Which elements of the tile the thread brings: vectors are numbered along k and then the side
 * where the operand lies along k, CHUNK of k at a time; else along the side and then k. */
static void find_elements(struct simt *s, struct simt_slab *b)
{
    struct cg *g = s->g;
    const uint32_t inner = b->turned ? CHUNK / b->lanes : b->side / b->lanes;
    const uint32_t extent[3] = {inner, b->turned ? b->side : s->m->p->bk,
                                b->turned ? s->m->p->bk / CHUNK : 1};
    struct cg_val at[3], t = s->m->thread;
    uint32_t by[3][SIMT_PASSES], threads = s->m->p->threads;
    b->passes = 1;
    for (uint32_t l = 0; l < 3; l++) {
        const uint32_t have = least(threads, extent[l]), more = extent[l] / have;
        at[l] = cg_binary(g, OP_MOD, t, cg_u32(have));
        t = cg_binary(g, OP_DIV, t, cg_u32(have));
        threads /= have;
        for (uint32_t i = b->passes * more; i-- > 0;) {
            for (uint32_t k = 0; k < l; k++)
                by[k][i] = by[k][i % b->passes];
            by[l][i] = i / b->passes * have;
        }
        b->passes *= more;
    }
    b->idle = threads > 1 ? cg_reg(g, cg_binary(g, OP_EQ, t, cg_u32(0))) : -1;
    struct cg_val along = cg_mul(g, at[0], b->lanes);
    b->k = b->turned ? cg_add(g, along, cg_mul(g, at[2], CHUNK)) : at[1];
    b->at = b->turned ? at[1] : along;
    for (uint32_t i = 0; i < b->passes; i++) {
        b->k_by[i] = b->turned ? by[0][i] * b->lanes + by[2][i] * CHUNK : by[1][i];
        b->at_by[i] = b->turned ? by[1][i] : by[0][i] * b->lanes;
    }
}

/* Element numbers of A's row or B's column, no further than the last that there is: what is brought
 * from there is stored nowhere. */
static struct cg_val clamped(struct simt *s, const struct simt_slab *b, struct cg_val at)
{
    struct cg *g = s->g;
    const bool a = b->o->side == MATMUL_A;
    const struct cg_val from = cg_convert(g, a ? s->m->row : s->m->col, DT_U32);
    at = cg_add(g, from, at);
    if (a ? s->m->whole_rows || !s->m->f->i : s->m->whole_cols)
        return at;
    struct cg_val last = cg_convert(g, a ? s->m->m : s->m->n, DT_U32);
    last = cg_binary(g, OP_SUB, last, cg_u32(b->turned ? 1 : b->lanes));
    return cg_minmax(g, false, at, last);
}

/* A register for each place that is not a constant away from one before. */
static void find_places(struct simt *s, struct simt_slab *b)
{
    struct cg *g = s->g;
    struct matmul *m = s->m;
    const uint32_t size = b->o->bits / 8;
    const struct cg_val step =
        cg_binary(g, OP_MUL, matmul_step(m, b->operand), cg_int(DT_I64, size));
    b->step = step;
    for (uint32_t i = 0; i < b->passes; i++) {
        int64_t c;
        uint32_t k = i;
        while (k > 0 && !(b->moves[k - 1] && b->at_by[k - 1] == b->at_by[i]))
            k--;
        if (k > 0 && cg_is_const(step, &c)) {
            b->from[i] = b->from[k - 1];
            b->from[i].offset += c * ((int64_t)b->k_by[i] - (int64_t)b->k_by[k - 1]);
            continue;
        }
        struct cg_val row = cg_add(g, b->k, cg_u32(b->k_by[i]));
        row = cg_add(g, cg_convert(g, m->k_from, DT_U32), row);
        struct cg_val at = clamped(s, b, cg_add(g, b->at, cg_u32(b->at_by[i])));
        row = cg_index(g, row);
        struct cg_place_of from = matmul_place(m, b->operand, cg_index(g, at), row);
        const int32_t base = cg_new_mutable(g, DT_U64);
        cg_move(g, base, cg_value(DT_U64, from.base));
        from.base = base;
        b->from[i] = from;
        b->moves[i] = true;
    }
    for (uint32_t i = 0; !s->streams && i < b->passes * b->lanes; i++)
        b->v[i] = cg_value(b->o->type, cg_new_mutable(g, b->o->type));
}

static void copy_pass(struct simt *s, struct simt_slab *b, uint32_t i, int32_t pred)
{
    struct cg *g = s->g;
    char m[48];
    struct ptx_operand reg[SIMT_FETCH];
    const bool constant = cg_is_constant(g, b->o->plain->sym);
    for (uint32_t l = 0; l < b->lanes; l++)
        reg[l] = b->v[i * b->lanes + l].op;
    snprintf(m, sizeof m, "ld.global%s%s.%s", constant ? ".nc" : "",
             b->lanes == 4   ? ".v4"
             : b->lanes == 2 ? ".v2"
                             : "",
             s->type);
    const struct ptx_operand to = b->lanes == 1 ? reg[0] : ptx_vec(&g->b, b->lanes, reg);
    ptx_emit(&g->b, pred, false, m, PTX_ARGS(to, cg_mem(b->from[i])));
}

void simt_zero(struct simt *s, int32_t reg)
{
    struct cg *g = s->g;
    const enum dtype t = s->m->f->sum;
    cg_move(g, reg, dtype_is_float(t) ? cg_float(g, t, 0) : cg_int(t, 0));
}

/* Does the element of the tile at k0 exist that the thread brings in pass i? of: a predicate for
 * the whole tile, or -1; end: that of a tile that is not whole, in a register. */
static int32_t exists(struct simt *s, const struct simt_slab *b, uint32_t i, struct cg_val k0,
                      int32_t of, struct cg_val end)
{
    struct cg *g = s->g;
    int64_t all;
    struct cg_val ok = of < 0 ? cg_bool(g, true) : cg_value(DT_BOOL, of);
    if (b->idle >= 0)
        ok = cg_binary(g, OP_LAND, ok, cg_value(DT_BOOL, b->idle));
    if (end.op.kind == PTX_O_REG) {
        struct cg_val k = cg_add(g, k0, cg_add(g, b->k, cg_u32(b->k_by[i])));
        ok = cg_binary(g, OP_LAND, ok, cg_binary(g, OP_LT, k, end));
    }
    return cg_is_const(ok, &all) ? -1 : cg_reg(g, ok);
}

static struct cg_val tile_at(const struct simt *s)
{
    return cg_value(DT_U32, s->k);
}

static void move_on(struct simt *s, struct cg_val by)
{
    struct cg *g = s->g;
    for (uint32_t n = 0; n < s->nslab; n++) {
        const struct simt_slab *b = &s->slab[n];
        for (uint32_t i = 0; b->copied && i < b->passes; i++) {
            if (!b->moves[i])
                continue;
            const struct cg_val bytes = cg_binary(g, OP_MUL, cg_index(g, by), b->step);
            CG_ASSIGN(g, b->from[i].base, "add.s64", ptx_r(b->from[i].base), cg_op(g, bytes));
        }
    }
}

/* Brings the tile at s->k to registers, of operands that are copied, where `of` holds (-1: always),
 * and moves on by `by`. end: where a tile that is not whole ends; a constant: it is. */
static void copy_tile(struct simt *s, int32_t of, struct cg_val end, struct cg_val by)
{
    struct cg *g = s->g;
    for (uint32_t n = 0; n < s->nslab; n++) {
        struct simt_slab *b = &s->slab[n];
        for (uint32_t i = 0; b->copied && i < b->passes; i++)
            copy_pass(s, b, i, exists(s, b, i, tile_at(s), of, end));
    }
    move_on(s, by);
    cg_move(g, s->k, cg_add(g, tile_at(s), by));
}

/* Fetches the tile at k0 for operands that are computed. */
static void fetch_tile(struct simt *s, struct cg_val k0, int32_t of, struct cg_val end)
{
    struct cg *g = s->g;
    for (uint32_t n = 0; n < s->nslab; n++) {
        struct simt_slab *b = &s->slab[n];
        for (uint32_t i = 0; !b->copied && i < b->passes; i++) {
            const int32_t inside = exists(s, b, i, k0, of, end);
            const bool a = b->o->side == MATMUL_A;
            struct cg_val from = cg_convert(g, a ? s->m->row : s->m->col, DT_U32);
            struct cg_val at = cg_add(g, from, cg_add(g, b->at, cg_u32(b->at_by[i])));
            struct cg_val k = cg_add(g, k0, cg_add(g, b->k, cg_u32(b->k_by[i])));
            k = cg_index(g, k);
            at = cg_index(g, at);
            matmul_fetch(s->m, b->operand, at, k, b->lanes, inside, b->v + i * b->lanes);
        }
    }
}

/* ---- registers to shared memory -------------------------------------------------------------- */

static void put(struct simt *s, const struct simt_slab *b, int64_t offset, uint32_t n,
                const struct cg_val *v)
{
    struct cg *g = s->g;
    struct ptx_operand reg[4];
    for (uint32_t i = 0; i < n; i++)
        reg[i] = ptx_r(cg_reg(g, v[i]));
    const char *m = arena_printf(g->a, "st.shared%s.%s",
                                 n == 4   ? ".v4"
                                 : n == 2 ? ".v2"
                                          : "",
                                 s->type);
    const struct ptx_operand from = n == 1 ? reg[0] : ptx_vec(&g->b, n, reg);
    ptx_emit(&g->b, b->idle, false, m, PTX_ARGS(ptx_mem(b->to, offset), from));
}

/* The registers' tile to the stage that is not read. */
static void store_tile(struct simt *s)
{
    struct cg *g = s->g;
    const enum dtype t = s->m->f->sum;
    for (uint32_t n = 0; n < s->nslab; n++) {
        struct simt_slab *b = &s->slab[n];
        const uint32_t pitch = pitch_of(s, b), width = b->turned ? 1 : least(b->lanes, s->v);
        for (uint32_t i = 0; i < b->passes; i++)
            for (uint32_t l = 0; l < b->lanes; l += width) {
                struct cg_val v[4];
                const uint32_t k = b->k_by[i] + (b->turned ? l : 0);
                const uint32_t at = b->at_by[i] + (b->turned ? 0 : l);
                for (uint32_t x = 0; x < width; x++)
                    v[x] = cg_convert(g, b->v[i * b->lanes + l + x], t);
                put(s, b, b->offset + (int64_t)(k * pitch + at) * s->bytes, width, v);
            }
    }
}

/* ---- global memory to shared memory ---------------------------------------------------------- */

/* The tile at s->k to the stage where the thread stores; all as copy_tile() has it. */
static void stream_tile(struct simt *s, int32_t of, struct cg_val end, struct cg_val by)
{
    struct cg *g = s->g;
    for (uint32_t n = 0; n < s->nslab; n++) {
        const struct simt_slab *b = &s->slab[n];
        const uint32_t bytes = b->lanes * s->bytes;
        const char *m = bytes == 16 ? "cp.async.cg.shared.global.L2::128B"
                                    : "cp.async.ca.shared.global";
        for (uint32_t i = 0; i < b->passes; i++) {
            const struct ptx_operand size = ptx_imm(bytes);
            const int64_t at = (int64_t)(b->k_by[i] * pitch_of(s, b) + b->at_by[i]) * s->bytes;
            const struct ptx_operand to = ptx_mem(b->to, b->offset + at), from = cg_mem(b->from[i]);
            const int32_t here = exists(s, b, i, tile_at(s), of, cg_u32(0));
            if (end.op.kind != PTX_O_REG) {
                ptx_emit(&g->b, here, false, m, PTX_ARGS(to, from, size));
                continue;
            }
            struct cg_val k =
                cg_add(g, cg_value(DT_U32, s->k), cg_add(g, b->k, cg_u32(b->k_by[i])));
            struct cg_val ok = cg_binary(g, OP_LT, k, end);
            struct cg_val part = cg_select(g, cg_reg(g, ok), cg_u32(bytes), cg_u32(0));
            ptx_emit(&g->b, here, false, m, PTX_ARGS(to, from, size, ptx_r(cg_reg(g, part))));
        }
    }
    PTX0(&g->b, "cp.async.commit_group");
    move_on(s, by);
    cg_move(g, s->k, cg_add(g, cg_value(DT_U32, s->k), by));
}

static void step(struct simt *s, int32_t address, int32_t by)
{
    CG_ASSIGN(s->g, address, "add.s32", ptx_r(address), ptx_r(by));
}

/* To the next stage, and after the last one to the first: for what is read, and for what is stored,
 * a stage before that. */
static void turn_stages(struct simt *s)
{
    struct cg *g = s->g;
    const int32_t last = (int32_t)s->m->p->stages - 1;
    const struct cg_val turn = cg_value(DT_U32, s->turn), on = cg_int(DT_I32, s->stage);
    const struct cg_val back = cg_int(DT_I32, -last * (int64_t)s->stage);
    const int32_t from_last = cg_reg(g, cg_binary(g, OP_EQ, turn, cg_u32((uint32_t)last)));
    const int32_t from_first = cg_reg(g, cg_binary(g, OP_EQ, turn, cg_u32(0)));
    const int32_t read = cg_reg(g, cg_select(g, from_last, back, on));
    const int32_t stored = cg_reg(g, cg_select(g, from_first, back, on));
    for (uint32_t i = 0; i < 2; i++)
        step(s, s->read[i], read);
    for (uint32_t n = 0; n < s->nslab; n++)
        step(s, s->slab[n].to, stored);
    cg_move(g, s->turn, cg_select(g, from_last, cg_u32(0), cg_add(g, turn, cg_u32(1))));
}

/* ---- all operands ---------------------------------------------------------------------------- */

int32_t simt_address(struct simt *s, struct cg_val element)
{
    struct cg *g = s->g;
    const int32_t r = cg_new_mutable(g, DT_U32);
    cg_move(g, r, cg_add(g, cg_mul(g, element, s->bytes), cg_value(DT_U32, s->m->shared)));
    return r;
}

void simt_find_slabs(struct simt *s)
{
    struct cg *g = s->g;
    const struct matmul_form *f = s->m->f;
    const struct matmul_plan *p = s->m->p;
    int64_t offset = 0;
    s->nslab = f->noperand;
    s->streams = p->stages > 2;
    s->stage = simt_stage_bytes(f, p);
    s->k = cg_new_mutable(g, DT_U32);
    s->swap = cg_new_mutable(g, DT_I32);
    s->turn = cg_new_mutable(g, DT_U32);
    cg_move(g, s->k, cg_convert(g, s->m->k_from, DT_U32));
    cg_move(g, s->swap, cg_int(DT_I32, s->stage));
    cg_move(g, s->turn, cg_u32(0));
    for (uint32_t n = 0; n < s->nslab; n++) {
        struct simt_slab *b = &s->slab[n];
        b->o = &f->operand[n];
        b->operand = n;
        b->side = simt_side(p, b->o);
        b->turned = b->o->along_k;
        b->copied = is_copied(f, b->o);
        b->lanes = lanes_of(f, p, n);
        b->offset = offset;
        offset += (int64_t)p->bk * pitch_of(s, b) * s->bytes;
        find_elements(s, b);
        if (b->copied)
            find_places(s, b);
        b->to = simt_address(s, cg_add(g, cg_mul(g, b->k, pitch_of(s, b)), b->at));
    }
}

/* ---- in turn --------------------------------------------------------------------------------- */

void simt_barrier(struct simt *s)
{
    PTX(&s->g->b, "bar.sync", ptx_imm(0));
}

/* Is there a tile to load, at s->k; and one to multiply, which lies `ahead` before it? */
static void ask(struct simt *s, uint32_t ahead)
{
    struct cg *g = s->g;
    const struct cg_val end = cg_convert(g, s->m->k_to, DT_U32);
    s->loads = cg_reg(g, cg_binary(g, OP_LT, tile_at(s), end));
    s->again = cg_reg(g, cg_binary(g, OP_LT, tile_at(s), cg_add(g, end, cg_u32(ahead))));
}

void simt_bring_next(struct simt *s)
{
    struct cg *g = s->g;
    const uint32_t bk = s->m->p->bk;
    ask(s, s->streams ? (s->m->p->stages - 2) * bk : bk);
    if (s->streams)
        stream_tile(s, s->loads, cg_u32(0), cg_u32(bk));
    else
        fetch_tile(s, cg_binary(g, OP_SUB, tile_at(s), cg_u32(bk)), s->again, cg_u32(0));
}

/* What is copied is loaded in front of the barrier: behind it ptxas would move the loads to where
 * it is late for them. */
void simt_turn(struct simt *s)
{
    struct cg *g = s->g;
    if (s->streams) {
        PTX(&g->b, "cp.async.wait_group", ptx_imm((int64_t)s->m->p->stages - 2));
        turn_stages(s);
        simt_barrier(s);
        return;
    }
    store_tile(s);
    copy_tile(s, s->loads, cg_u32(0), cg_u32(s->m->p->bk));
    for (uint32_t i = 0; i < 2; i++)
        step(s, s->read[i], s->swap);
    CG_ASSIGN(g, s->swap, "neg.s32", ptx_r(s->swap));
    for (uint32_t n = 0; n < s->nslab; n++)
        step(s, s->slab[n].to, s->swap);
    simt_barrier(s);
}

/* The end of the first tile, if it need not be whole: in a register. n: what it has. */
static struct cg_val first_end(struct simt *s, struct cg_val *n)
{
    struct cg *g = s->g;
    struct cg_val from = cg_convert(g, s->m->k_from, DT_U32);
    *n = cg_u32(s->m->p->bk);
    if (s->m->whole_k)
        return cg_u32(0);
    struct cg_val all = cg_binary(g, OP_SUB, cg_convert(g, s->m->k_to, DT_U32), from);
    *n = cg_add(g, cg_binary(g, OP_MOD, cg_binary(g, OP_SUB, all, cg_u32(1)), *n), cg_u32(1));
    return cg_value(DT_U32, cg_reg(g, cg_add(g, from, *n)));
}

static void stream_first(struct simt *s, struct cg_val end, struct cg_val n)
{
    struct cg *g = s->g;
    const uint32_t ahead = s->m->p->stages - 1;
    for (uint32_t i = 0; i < ahead; i++) {
        if (i)
            ask(s, 0);
        stream_tile(s, i ? s->loads : -1, i ? cg_u32(0) : end, i ? cg_u32(s->m->p->bk) : n);
        for (uint32_t k = 0; k < s->nslab; k++)
            CG_ASSIGN(g, s->slab[k].to, "add.s32", ptx_r(s->slab[k].to), ptx_imm(s->stage));
    }
    PTX(&g->b, "cp.async.wait_group", ptx_imm((int64_t)ahead - 1));
    simt_barrier(s);
}

void simt_bring_first(struct simt *s)
{
    struct cg *g = s->g;
    struct cg_val n;
    const struct cg_val end = first_end(s, &n);
    s->m->whole_k = true; /* here on, what exists along k is asked by tiles */
    if (s->streams) {
        stream_first(s, end, n);
        return;
    }
    for (uint32_t i = 0; i < s->nslab; i++) {
        const struct simt_slab *b = &s->slab[i];
        for (uint32_t k = 0; b->copied && k < b->passes * b->lanes; k++)
            simt_zero(s, b->v[k].op.reg);
    }
    fetch_tile(s, tile_at(s), -1, end);
    copy_tile(s, -1, end, n);
    store_tile(s);
    ask(s, 0);
    copy_tile(s, s->loads, cg_u32(0), cg_u32(s->m->p->bk));
    simt_barrier(s);
    for (uint32_t i = 0; i < s->nslab; i++) /* what follows is stored to the other stage */
        CG_ASSIGN(g, s->slab[i].to, "add.s32", ptx_r(s->slab[i].to), ptx_imm(s->stage));
}
