/* Operands that are gathered as they lie in memory (wgmma/wgmma.h): the producer's threads copy
 * them by cp.async to where copies of boxes would have put them.
 *
 * A thread copies pieces of 16 bytes: 8 threads those of a row of 128 bytes, 16 rows at once, chunk
 * c of row r to c ^ (r % 8). Along k a thread knows the places of its rows for the whole tile, and
 * finds out once for each atom of a stage what follows from its k; across it is the other way.
 *
 * Such copies arrive later, and instructions read what arrived by another way, which takes a fence
 * of each thread's behind its own copies. So a stage is handed over some stages after its copies
 * were begun:
 *
 *     begun          t - 2    t - 1    t          the tiles' stages without a gap
 *     handed over    t - 2
 *
 * Up to two or three less than there are stages are on their way, so that consumers have some while
 * another is begun.
 */
#include <config.h>

#include "lower/wgmma/wgmma.h"

enum {
    PIECE = 16,
    PIECES = WGMMA_SPAN / PIECE,   /* of a row */
    ROWS = WGMMA_GROUP / PIECES,   /* at once */
    MOST_ROWS = WGMMA_WIDE / ROWS, /* of a thread */
    MOST_ATOMS = 8,
};

/* Of a tile. */
struct wgmma_gather {
    struct cg_val row, column; /* u32: the thread's first row, and its first element in a row */
    int32_t to;                /* u32: where that is in the first stage */
    uint32_t nat;              /* what is known of rows (along k) or atoms (across) */
    struct matmul_found at[MOST_ROWS];
};

bool matmul_wgmma_copies(const struct matmul_form *f, const struct matmul_plan *p, uint32_t n)
{
    const struct matmul_operand *o = &f->operand[n];
    const struct matmul_gather *from = o->gather;
    const bool a = o->side == MATMUL_A;
    const uint32_t by = p->cluster[a] > 1 ? p->cluster[a] : 1; /* blocks that bring a part each */
    const uint32_t rows = o->along_k ? (a ? p->bm : p->bn) : p->bk;
    if (o->plain)
        return true;
    return from && from->boxes && p->windows != MATMUL_WINDOWS_THREADS && p->parts == 1 &&
           p->align[n] * dtype_bits(o->type) / 8 >= PIECE &&
           (o->along_k || dtype_bits(o->type) > 8) && rows % by == 0 &&
           matmul_boxes_fit(from->boxes, rows) && matmul_boxes_fit(from->boxes, rows / by);
}

bool matmul_wgmma_computes(const struct matmul_form *f, const struct matmul_plan *p)
{
    bool copies = true;
    for (uint32_t i = 0; i < f->noperand && copies; i++)
        copies = matmul_wgmma_copies(f, p, i);
    return !copies && !matmul_wgmma_gathers(f, p);
}

bool matmul_wgmma_gathers(const struct matmul_form *f, const struct matmul_plan *p)
{
    bool any = false;
    for (uint32_t i = 0; i < f->noperand; i++) {
        const struct matmul_operand *o = &f->operand[i];
        const struct matmul_gather *from = o->gather;
        const uint32_t size = dtype_bits(o->type) / 8;
        const bool is_left = o->side == (p->turned ? MATMUL_B : MATMUL_A);
        if (matmul_wgmma_copies(f, p, i) && p->type == MATMUL_TF32 && !is_left &&
            (matmul_cut_of(o) == MATMUL_AWAY || !o->along_k))
            return false; /* no warps are left that convert it */
        if (o->plain || matmul_wgmma_copies(f, p, i))
            continue;
        if (!from || !from->run || p->align[i] * size < PIECE || p->parts > 1 ||
            (!o->along_k && size != 2) || from->cut == MATMUL_AWAY || from->cut == MATMUL_EVEN)
            return false;
        any = true;
    }
    return any;
}

static uint32_t rows_of(const struct wgmma_tile *t)
{
    return t->atom_bytes / WGMMA_SPAN;
}

static uint32_t passes_of(const struct wgmma_tile *t)
{
    return matmul_divide_up(rows_of(t), ROWS);
}

bool wgmma_gather_fits(const struct wgmma_tile *t)
{
    return passes_of(t) <= MOST_ROWS && t->atoms <= MOST_ATOMS && rows_of(t) % ROWS == 0;
}

void wgmma_gather_begin(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct cg_val thread = cg_binary(g, OP_AND, s->m->thread, cg_u32(WGMMA_GROUP - 1));
    const struct cg_val piece = cg_binary(g, OP_AND, thread, cg_u32(PIECES - 1));
    const struct cg_val row = cg_binary(g, OP_DIV, thread, cg_u32(PIECES));
    s->gather = ARENA_ARRAY(g->a, s->shape->ntile, struct wgmma_gather);
    for (uint32_t i = 0; i < s->shape->ntile; i++) {
        const struct wgmma_tile *t = &s->shape->tile[i];
        struct wgmma_gather *w = &s->gather[i];
        struct cg_val to =
            cg_binary(g, OP_XOR, piece, cg_binary(g, OP_AND, row, cg_u32(PIECES - 1)));
        const struct cg_val before = cg_mul(g, row, WGMMA_SPAN);
        to = cg_add(g, cg_mul(g, to, PIECE), before);
        w->to = cg_reg(g, cg_add(g, cg_value(DT_U32, s->m->shared), to));
        w->row = row;
        w->column = cg_mul(g, piece, PIECE / t->size);
    }
    s->behind = s->ring;
    ring_begin(&s->behind, 0);
    s->begun = cg_mutable(g, cg_u32(0));
}

/* The element's number along the rows of atoms, and within a row: of atom a and pass n. */
static struct cg_val in_row(struct wgmma *s, uint32_t i, uint32_t a)
{
    return cg_add(s->g, s->gather[i].column, cg_u32(a * WGMMA_SPAN / s->shape->tile[i].size));
}

static struct cg_val row_of(struct wgmma *s, uint32_t i, uint32_t n)
{
    return cg_add(s->g, s->gather[i].row, cg_u32(n * ROWS));
}

static struct matmul_found found_at(struct wgmma *s, uint32_t i, struct cg_val n)
{
    struct cg *g = s->g;
    const struct wgmma_tile *t = &s->shape->tile[i];
    const bool a = t->side == MATMUL_A;
    const struct cg_val at = cg_add(g, cg_convert(g, a ? s->m->row : s->m->col, DT_U32), n);
    struct cg_val ok = cg_bool(g, true);
    if (a ? !s->m->whole_rows : !s->m->whole_cols)
        ok = cg_binary(g, OP_LT, cg_index(g, at), a ? s->m->m : s->m->n);
    return matmul_gather_at(s->m, s->f->operand[t->operand].gather, at, ok);
}

static struct matmul_found found_k(struct wgmma *s, uint32_t i, struct cg_val n)
{
    struct cg *g = s->g;
    const struct cg_val k = cg_add(g, cg_value(DT_U32, s->k), n);
    struct cg_val ok = cg_bool(g, true);
    if (!s->m->whole_k)
        ok = cg_binary(g, OP_LT, cg_index(g, k), s->m->k);
    return matmul_gather_k(s->m, s->f->operand[s->shape->tile[i].operand].gather, k, ok);
}

void wgmma_gather_tile(struct wgmma *s)
{
    for (uint32_t i = 0; i < s->shape->ntile; i++) {
        const struct wgmma_tile *t = &s->shape->tile[i];
        struct wgmma_gather *w = &s->gather[i];
        if (!t->made)
            continue;
        w->nat = t->along_k ? passes_of(t) : t->atoms;
        for (uint32_t n = 0; n < w->nat; n++)
            w->at[n] = found_at(s, i, t->along_k ? row_of(s, i, n) : in_row(s, i, n));
    }
}

static void copy_piece(struct wgmma *s, uint32_t i, uint32_t a, uint32_t n,
                       const struct matmul_found *k, struct cg_val to)
{
    struct cg *g = s->g;
    const struct wgmma_tile *t = &s->shape->tile[i];
    const struct matmul_found *at = &s->gather[i].at[t->along_k ? n : a];
    struct cg_val inside;
    const int32_t from = matmul_gather_from(s->m, s->f->operand[t->operand].gather, at, k, &inside);
    const uint32_t offset = t->offset + a * t->atom_bytes + n * ROWS * WGMMA_SPAN;
    const int32_t bytes = CG(g, PTX_B32, "selp.b32", ptx_imm(PIECE), ptx_imm(0), inside.op);
    PTX(&g->b, "cp.async.cg.shared.global.L2::128B", ptx_mem(cg_reg(g, to), offset),
        ptx_mem(from, 0), ptx_imm(PIECE), ptx_r(bytes));
}

static void copy_tile(struct wgmma *s, uint32_t i)
{
    struct cg *g = s->g;
    const struct wgmma_tile *t = &s->shape->tile[i];
    const struct cg_val to =
        cg_add(g, cg_value(DT_U32, s->gather[i].to), cg_value(DT_U32, s->ring.offset));
    const uint32_t outer = t->along_k ? t->atoms : passes_of(t);
    const uint32_t inner = t->along_k ? passes_of(t) : t->atoms;
    for (uint32_t x = 0; x < outer; x++) {
        const struct matmul_found k = found_k(s, i, t->along_k ? in_row(s, i, x) : row_of(s, i, x));
        for (uint32_t y = 0; y < inner; y++)
            copy_piece(s, i, t->along_k ? x : y, t->along_k ? y : x, &k, to);
    }
}

/* The oldest stage that is not handed over yet has come. */
static void hand_over(struct wgmma *s)
{
    struct cg *g = s->g;
    ring_hand_over(&s->behind, RING_FULL);
    ring_next(&s->behind);
    CG_ASSIGN(g, s->begun, "sub.s32", ptx_r(s->begun), ptx_imm(1));
}

/* A consumer gives a stage back when it has the next one: two less than there are stages, or
 * nobody goes on. */
uint32_t wgmma_gather_begun(const struct wgmma *s)
{
    const uint32_t n = s->p->stages;
    return n > 4 ? n - 3 : n - 2;
}

void wgmma_gather_stage(struct wgmma *s)
{
    struct cg *g = s->g;
    const uint32_t few = cg_label(g, "few");
    for (uint32_t i = 0; i < s->shape->ntile; i++)
        if (s->shape->tile[i].made)
            copy_tile(s, i);
    PTX0(&g->b, "cp.async.commit_group");
    CG_ASSIGN(g, s->begun, "add.s32", ptx_r(s->begun), ptx_imm(1));
    const struct cg_val full =
        cg_binary(g, OP_GT, cg_value(DT_U32, s->begun), cg_u32(wgmma_gather_begun(s)));
    cg_jump_if(g, cg_reg(g, full), false, few);
    const size_t mark = cg_scope_open(g);
    PTX(&g->b, "cp.async.wait_group", ptx_imm(wgmma_gather_begun(s)));
    hand_over(s);
    cg_scope_close(g, mark);
    cg_place(g, few);
}

void wgmma_gather_end(struct wgmma *s)
{
    struct cg *g = s->g;
    const uint32_t done = cg_label(g, "handed");
    PTX0(&g->b, "cp.async.wait_all");
    for (uint32_t i = 0; i < wgmma_gather_begun(s); i++) {
        const struct cg_val none = cg_binary(g, OP_EQ, cg_value(DT_U32, s->begun), cg_u32(0));
        cg_jump_if(g, cg_reg(g, none), true, done);
        const size_t mark = cg_scope_open(g);
        hand_over(s);
        cg_scope_close(g, mark);
    }
    cg_place(g, done);
}

void wgmma_gather_varies(const struct wgmma *s, struct cg_nest *nest)
{
    if (!s->shape->gathers || s->begun < 0)
        return;
    ring_varies(&s->behind, nest);
    cg_nest_varies(s->g, nest, s->begun);
}
