/* Products by wgmma (matmul_wgmma.h): what fits, who does what, and the tiles that a block takes.
 *
 *     producer, one thread                         consumers, each warpgroup
 *       for each tile, for each stage of k:          for each tile:
 *         wait empty[s]                                for each stage of k:
 *         arrive at full[s], expecting its bytes         wait full[s]
 *         copy A's and B's boxes, to full[s]             multiply: 4 instructions for each 128 bytes of k, commit
 *                                                        wait for all but these; arrive at the last stage's empty[]
 *                                                      wait for these too; arrive; sums to the epilogue
 *
 * The producer goes on with the next tile while consumers are in the epilogue. Barriers' phases go by parity: a new
 * barrier counts as one whose phase of parity 1 is over, so the producer begins with that.
 */
#include <config.h>

#include "lower/matmul_wgmma.h"

#include <stdarg.h>
#include <stdio.h>

enum { BARRIER = 8, MOST_SUMS = 192, MOST_SUMS_OF_3 = 128 };

static bool fails(struct buf *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool fails(struct buf *why, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (why)
        buf_puts(why, text);
    return false;
}

static bool is_multiple(uint32_t x, uint32_t y)
{
    return x && y && x % y == 0;
}

/* ---- does it fit? ----------------------------------------------------------------------------------- */

static bool has_instruction(const struct wgmma *s, struct buf *why)
{
    const struct ptx_target *t = s->g->target;
    if (t->sm != 90 || t->suffix != 'a')
        return fails(why, "%s has no wgmma: sm_90a has", t->name);
    switch (s->p->type) {
    case MATMUL_F16:
    case MATMUL_BF16:
    case MATMUL_INT8:
    case MATMUL_FP8:
    case MATMUL_TF32: break;
    case MATMUL_F32: return fails(why, "wgmma multiplies no f32");
    case MATMUL_F64: return fails(why, "wgmma multiplies no f64");
    }
    if (s->p->parts > 1)
        return fails(why, "wgmma makes no products in parts");
    if (s->f->type == MATMUL_FP8 && s->p->type != MATMUL_FP8)
        return fails(why, "wgmma takes e4m3 and e5m2 as they are, not as f16");
    return s->f->i || fails(why, "a single row leaves most of wgmma idle");
}

/* Which axis of the buffer an operand's subscript stands for: its own side's, k's, or a batch's. */
static bool is_index(const struct lang_expr *e, const struct lang_symbol *index)
{
    const struct lang_expr *name = inspect_strip(e);
    return name->kind == E_NAME && name->sym == index;
}

static bool check_operand(const struct wgmma *s, const struct matmul_operand *o, struct buf *why)
{
    const struct lang_symbol *side = o->side == MATMUL_A ? s->f->i : s->f->j;
    const struct lang_expr *e = o->plain;
    const char *name = o->side == MATMUL_A ? "left" : "right";
    uint32_t sides = 0, ks = 0;
    if (!e)
        return fails(why, "the %s operand is computed, and TMA copies elements as they are", name);
    if (e->nargs != e->sym->rank || e->nargs > CONTRACT_MAP_RANK)
        return fails(why, "the %s operand has more than %d dimensions", name, CONTRACT_MAP_RANK);
    for (uint32_t i = 0; i < e->nargs; i++) {
        sides += is_index(e->args[i], side);
        ks += is_index(e->args[i], s->f->k);
    }
    const struct lang_symbol *last = o->along_k ? s->f->k : side;
    if (sides != 1 || ks != 1 || !is_index(e->args[e->nargs - 1], last))
        return fails(why, "the %s operand is no matrix", name);
    if (!o->along_k && dtype_bits(o->type) == 8)
        return fails(why, "wgmma takes the %s operand's %s along k alone", name,
                     dtype_name(o->type));
    return true;
}

static bool measure_tile(struct wgmma *s, uint32_t n, struct buf *why)
{
    const struct matmul_plan *p = s->p;
    const struct matmul_operand *o = &s->f->operand[n];
    struct wgmma_tile *t = &s->tile[s->ntile];
    if (!check_operand(s, o, why))
        return false;
    const bool a = o->side == MATMUL_A;
    *t = (struct wgmma_tile){.operand = n,
                             .side = o->side,
                             .along_k = o->along_k,
                             .size = dtype_bits(o->type) / 8,
                             .rows = a ? p->bm : p->bn,
                             .offset = s->stage_bytes,
                             .sharers = a ? s->across : s->down};
    t->turned = t->size == 4 && !t->along_k;
    if (t->turned && p->bk != WGMMA_SPAN / 4)
        return fails(why, "a tile of f32 that does not lie along k has %d terms, not %u",
                     WGMMA_SPAN / 4, p->bk);
    if (!is_multiple(p->bk * t->size, WGMMA_SPAN))
        return fails(why, "a tile's third side must be a multiple of %u, not %u",
                     WGMMA_SPAN / t->size, p->bk);
    if (p->align[n] * t->size < 16)
        return fails(why, "TMA copies rows of whole 16 bytes");
    if (s->steps && s->steps != p->bk * t->size / WGMMA_STEP)
        return fails(why, "operands of different sizes");
    s->steps = p->bk * t->size / WGMMA_STEP;
    t->atoms = (t->along_k ? p->bk : t->rows) * t->size / WGMMA_SPAN;
    t->by_rows = t->along_k || t->atoms % t->sharers != 0;
    const uint32_t unit = t->along_k ? 8 * t->sharers : WGMMA_SPAN / t->size;
    const uint32_t high = t->along_k ? t->rows : p->bk;
    if (!is_multiple(t->rows, unit))
        return fails(why, "a tile has multiples of %u %s here, not %u", unit,
                     a ? "rows" : "columns", t->rows);
    /* threads' stores would have to be ordered before the other block's copies */
    if ((o->rounds || t->turned) && t->sharers > 1)
        return fails(why, "blocks of a cluster share no operand that is rounded on its way");
    if (o->rounds && !t->turned && !a && !is_multiple(t->rows, wgmma_round_unit(s)))
        return fails(why, "%u warpgroups round multiples of %u columns, not %u", s->takers,
                     wgmma_round_unit(s), t->rows);
    t->atom_bytes = high * WGMMA_SPAN;
    t->box_rows = t->by_rows ? high / t->sharers : high;
    if (t->box_rows > WGMMA_WIDE)
        return fails(why, "TMA copies %u rows at once at most, not %u", WGMMA_WIDE, t->box_rows);
    t->bytes = t->atoms * t->atom_bytes;
    s->stage_bytes += t->bytes;
    s->tile_of[n] = s->ntile++;
    return true;
}

static bool measure_block(struct wgmma *s, struct buf *why)
{
    const struct matmul_plan *p = s->p;
    const uint32_t unit = p->type == MATMUL_INT8 && p->bn > 32 ? 16 : 8;
    s->down = p->cluster[0] ? p->cluster[0] : 1;
    s->across = p->cluster[1] ? p->cluster[1] : 1;
    s->sharing = s->down * s->across;
    s->blocks = s->sharing * p->split;
    s->peers = s->down + s->across - 1;
    if (s->down > 2 || s->across > 2)
        return fails(why, "a cluster has 2 blocks along each side at most, not %u x %u", s->down,
                     s->across);
    if (!is_multiple(p->wm, WGMMA_ROWS) || !is_multiple(p->bm, p->wm))
        return fails(why, "a warpgroup takes multiples of %u rows, not %u of %u", WGMMA_ROWS, p->wm,
                     p->bm);
    if (p->wn != p->bn || !is_multiple(p->bn, unit) || p->bn > WGMMA_WIDE)
        return fails(why, "a warpgroup takes all columns, a multiple of %u up to %u, not %u of %u",
                     unit, WGMMA_WIDE, p->wn, p->bn);
    s->takers = p->bm / p->wm;
    if (p->pingpong && s->takers != 1)
        return fails(why, "warpgroups that take tiles by turns take all rows, not %u of %u", p->wm,
                     p->bm);
    if (p->split > 1 && (p->pingpong || p->blocks))
        return fails(why, "blocks that share tiles take one each, and all warpgroups do together");
    if (s->blocks > WGMMA_BLOCKS)
        return fails(why,
                     "a cluster has %u blocks at most, those that share a tile among them, not %u",
                     WGMMA_BLOCKS, s->blocks);
    if (p->pingpong && !p->blocks)
        return fails(why, "warpgroups take tiles by turns where blocks do");
    s->consumers = p->pingpong ? 2 : s->takers;
    if (s->consumers > WGMMA_CONSUMERS || p->threads != (1 + s->consumers) * WGMMA_GROUP)
        return fails(why, "%u threads are no producer and %u warpgroups", p->threads, s->consumers);
    if (p->stages < 2 || p->stages > WGMMA_STAGES)
        return fails(why, "stages must be 2 to %d, not %u", WGMMA_STAGES, p->stages);
    return true;
}

/* Boxes of results, or else patches as wide as there is room, up to 64 columns. */
static void measure_memory(struct wgmma *s)
{
    const uint32_t warps = s->consumers * WGMMA_GROUP / 32;
    s->patches = s->stage_bytes * s->p->stages;
    s->patch_bytes = wgmma_direct(s);
    s->barriers = s->patches + warps * s->patch_bytes;
    s->bytes = s->barriers + 2 * s->p->stages * BARRIER;
    s->direct = s->patch_bytes && s->bytes <= s->g->target->shared_optin;
    for (uint32_t cols = 64; cols >= 8 && !s->direct; cols /= 2) {
        if (s->p->bn % cols)
            continue;
        s->patch_cols = cols;
        s->pitch = wgmma_pitch(cols);
        s->patch_bytes = s->f->nproduct * WGMMA_PATCH * s->pitch * 4;
        s->barriers = s->patches + warps * s->patch_bytes;
        s->bytes = s->barriers + 2 * s->p->stages * BARRIER;
        if (s->bytes <= s->g->target->shared_optin)
            return;
    }
}

uint32_t wgmma_sums(const struct wgmma *s)
{
    return s->f->nproduct * (s->p->wm / WGMMA_ROWS) * (s->p->wn / 2);
}

bool wgmma_measure(struct wgmma *s, struct buf *why)
{
    const struct matmul_plan *p = s->p;
    if (!has_instruction(s, why) || !measure_block(s, why))
        return false;
    for (uint32_t i = 0; i < s->f->noperand; i++)
        if (!measure_tile(s, i, why))
            return false;
    measure_memory(s);
    const uint32_t room = s->g->target->shared_optin;
    if (s->bytes > room)
        return fails(why,
                     "%u stages of %u bytes each and %u for the results don't fit %u bytes of "
                     "shared memory",
                     p->stages, s->stage_bytes, s->bytes - s->patches, room);
    if (wgmma_share_bytes(s) > s->patches)
        return fails(why, "%u bytes of other blocks' sums don't fit where %u stages were",
                     wgmma_share_bytes(s), p->stages);
    const uint32_t most = s->consumers > 2 ? MOST_SUMS_OF_3 : MOST_SUMS;
    const uint32_t sums = wgmma_sums(s) + (p->promotes ? p->wn / 2 : 0);
    if (sums > most)
        return fails(why, "a thread would keep %u sums: %u at most, of %u warpgroups", sums, most,
                     s->consumers);
    return true;
}

bool matmul_wgmma_fits(const struct cg *g, const struct matmul_form *f, const struct matmul_plan *p,
                       struct buf *why)
{
    struct wgmma s = {.g = (struct cg *)g, .f = f, .p = p};
    return wgmma_measure(&s, why);
}

uint32_t matmul_wgmma_shared(const struct cg *g, const struct matmul_form *f,
                             const struct matmul_plan *p)
{
    struct wgmma s = {.g = (struct cg *)g, .f = f, .p = p};
    return wgmma_measure(&s, NULL) ? s.bytes : 0;
}

/* No share of the sum is empty. */
static void require_shares(struct cg *g, const struct matmul_form *f, const struct matmul_plan *p,
                           struct map_condition *c)
{
    const struct lang_expr *k = f->k->dims[0];
    const unsigned split = p->split, bk = p->bk;
    int64_t n;
    if (lang_const_int(k, &n)) {
        const int64_t steps = n / bk + (n % bk != 0);
        c->never |= (steps + split - 1) / split * (split - 1) >= steps;
    } else {
        const char *steps = arena_printf(g->a, "ceil_div(%s, %u)", lang_expr_text(g->a, k), bk);
        const char *share = arena_printf(g->a, "ceil_div(%s, %u)", steps, split);
        map_require(c, split == 2 ? arena_printf(g->a, "%s < %s", share, steps)
                                  : arena_printf(g->a, "%s * %u < %s", share, split - 1, steps));
    }
}

void matmul_wgmma_require(struct cg *g, const struct matmul_form *f, const struct matmul_plan *p,
                          struct map_condition *c)
{
    if (p->split > 1)
        require_shares(g, f, p, c);
    for (uint32_t i = 0; i < f->noperand; i++) {
        const struct lang_expr *e = f->operand[i].plain;
        for (uint32_t d = 0; e && d < e->sym->rank; d++) {
            int64_t n;
            const struct lang_expr *dim = e->sym->dims[d];
            if (lang_const_int(dim, &n))
                c->never |= n < 1;
            else
                map_require(c, arena_printf(g->a, "%s > 0", lang_expr_text(g->a, dim)));
        }
    }
}

/* ---- the ring ------------------------------------------------------------------------------------- */

void wgmma_wait(struct wgmma *s, int32_t barrier, uint32_t offset, int32_t parity)
{
    struct cg *g = s->g;
    const uint32_t again = cg_label(g, "wait");
    const int32_t done = cg_new(g, DT_BOOL);
    cg_place(g, again);
    PTX(&g->b, "mbarrier.try_wait.parity.shared::cta.b64", ptx_r(done), ptx_mem(barrier, offset),
        ptx_r(parity));
    cg_jump_if(g, done, false, again);
}

static int32_t mutable_u32(struct cg *g, struct cg_val v)
{
    const int32_t reg = cg_new_mutable(g, DT_U32);
    cg_move(g, reg, v);
    return reg;
}

static struct cg_val shared_at(struct wgmma *s, uint32_t offset)
{
    return cg_binary(s->g, OP_ADD, cg_value(DT_U32, s->m->shared), cg_int(DT_U32, offset));
}

void wgmma_ring_begin(struct wgmma *s, unsigned parity)
{
    struct cg *g = s->g;
    s->ring.offset = mutable_u32(g, cg_int(DT_U32, 0));
    s->ring.full = mutable_u32(g, shared_at(s, s->barriers));
    s->ring.parity = mutable_u32(g, cg_int(DT_U32, parity));
}

void wgmma_ring_next(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct wgmma_ring *r = &s->ring;
    const uint32_t n = s->p->stages;
    const int32_t last = cg_new(g, DT_BOOL);
    PTX(&g->b, "add.s32", ptx_r(r->offset), ptx_r(r->offset), ptx_imm(s->stage_bytes));
    PTX(&g->b, "add.s32", ptx_r(r->full), ptx_r(r->full), ptx_imm(BARRIER));
    PTX(&g->b, "setp.eq.s32", ptx_r(last), ptx_r(r->offset), ptx_imm(n * s->stage_bytes));
    PTX_IF(&g->b, last, "mov.u32", ptx_r(r->offset), ptx_imm(0));
    PTX_IF(&g->b, last, "sub.s32", ptx_r(r->full), ptx_r(r->full), ptx_imm(n * BARRIER));
    PTX_IF(&g->b, last, "xor.b32", ptx_r(r->parity), ptx_r(r->parity), ptx_imm(1));
    cg_assigned(g, r->offset);
    cg_assigned(g, r->full);
    cg_assigned(g, r->parity);
}

void wgmma_ring_skip(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct wgmma_ring *r = &s->ring;
    const struct cg_val n = cg_int(DT_U32, s->p->stages), bar = cg_int(DT_U32, BARRIER);
    struct cg_val first = shared_at(s, s->barriers), full = cg_value(DT_U32, r->full);
    struct cg_val at = cg_binary(g, OP_DIV, cg_binary(g, OP_SUB, full, first), bar);
    at = cg_binary(g, OP_ADD, at, wgmma_stages(s));
    struct cg_val rounds = cg_binary(g, OP_DIV, at, n);
    at = cg_binary(g, OP_SUB, at, cg_binary(g, OP_MUL, rounds, n));
    rounds = cg_binary(g, OP_AND, rounds, cg_int(DT_U32, 1));
    cg_move(g, r->parity, cg_binary(g, OP_XOR, cg_value(DT_U32, r->parity), rounds));
    cg_move(g, r->full, cg_binary(g, OP_ADD, first, cg_binary(g, OP_MUL, at, bar)));
    cg_move(g, r->offset, cg_binary(g, OP_MUL, at, cg_int(DT_U32, s->stage_bytes)));
}

static void vary(struct wgmma *s, struct cg_nest *nest)
{
    cg_nest_varies(s->g, nest, s->ring.offset);
    cg_nest_varies(s->g, nest, s->ring.full);
    cg_nest_varies(s->g, nest, s->ring.parity);
}

struct cg_val wgmma_stages(struct wgmma *s)
{
    struct cg *g = s->g;
    struct cg_val from = cg_convert(g, s->m->k_from, DT_U32),
                  to = cg_convert(g, s->m->k_to, DT_U32);
    struct cg_val n = cg_binary(g, OP_SUB, to, from);
    n = cg_binary(g, OP_ADD, n, cg_int(DT_U32, s->p->bk - 1));
    return cg_binary(g, OP_DIV, n, cg_int(DT_U32, s->p->bk));
}

void wgmma_for_stages(struct wgmma *s, void (*body)(struct wgmma *s))
{
    struct cg *g = s->g;
    const uint32_t head = cg_label(g, "stage");
    const int32_t more = cg_new(g, DT_BOOL);
    struct cg_nest nest;
    s->left = mutable_u32(g, wgmma_stages(s));
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, s->left);
    vary(s, &nest);
    body(s);
    wgmma_ring_next(s);
    PTX(&g->b, "sub.s32", ptx_r(s->left), ptx_r(s->left), ptx_imm(1));
    PTX(&g->b, "setp.ne.s32", ptx_r(more), ptx_r(s->left), ptx_imm(0));
    cg_assigned(g, s->left);
    cg_jump_if(g, more, true, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
}

/* ---- tiles ---------------------------------------------------------------------------------------- */

/* The block's tile of the cluster's number n. */
static void find_tile(struct wgmma *s, struct cg_val n)
{
    struct cg *g = s->g;
    struct matmul *m = s->m;
    n = cg_binary(g, OP_MUL, n, cg_int(DT_U32, s->p->split));
    matmul_find(m, cg_binary(g, OP_ADD, n, s->at_share));
    if (s->down > 1) {
        struct cg_val more = cg_binary(g, OP_MUL, s->at_row, cg_int(DT_U32, s->p->bm));
        m->row = cg_index(g, cg_binary(g, OP_ADD, cg_convert(g, m->row, DT_U32), more));
    }
    if (s->across > 1) {
        struct cg_val more = cg_binary(g, OP_MUL, s->at_col, cg_int(DT_U32, s->p->bn));
        m->col = cg_index(g, cg_binary(g, OP_ADD, cg_convert(g, m->col, DT_U32), more));
    }
}

/* The numbers first, first + step ... of tiles. */
static void for_tiles(struct wgmma *s, struct cg_val first, struct cg_val step,
                      void (*body)(struct wgmma *s))
{
    struct cg *g = s->g;
    struct cg_val items;
    const uint32_t head = cg_label(g, "tile"), done = cg_label(g, "tiles");
    if (!s->p->blocks) {
        find_tile(s, first);
        body(s);
        return;
    }
    const int32_t at = mutable_u32(g, first);
    struct cg_nest nest;
    matmul_items(s->m, &items);
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, at);
    vary(s, &nest);
    const struct cg_val n = cg_value(DT_U32, at);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, n, items)), false, done);
    find_tile(s, n);
    body(s);
    cg_move(g, at, cg_binary(g, OP_ADD, n, step));
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, done);
}

/* ---- who does what -------------------------------------------------------------------------------- */

static void find_rank(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct cg_val sharing = cg_int(DT_U32, s->sharing);
    const struct cg_val in =
        cg_binary(g, OP_MOD, cg_special(g, SP_CTAID_X), cg_int(DT_U32, s->blocks));
    s->rank = cg_binary(g, OP_MOD, in, sharing);
    s->at_share = s->p->split > 1 ? cg_binary(g, OP_DIV, in, sharing) : cg_int(DT_U32, 0);
    s->apart = cg_binary(g, OP_MUL, s->at_share, sharing);
    s->at_row = cg_binary(g, OP_MOD, s->rank, cg_int(DT_U32, s->down));
    s->at_col = cg_binary(g, OP_DIV, s->rank, cg_int(DT_U32, s->down));
    const struct cg_val of = cg_int(DT_U32, s->blocks);
    s->first_tile = cg_binary(g, OP_DIV, cg_special(g, SP_CTAID_X), of);
    s->tile_step = cg_binary(g, OP_DIV, cg_special(g, SP_NCTAID_X), of);
}

/* One thread makes the barriers; then all blocks of the cluster may use them. */
static void make_barriers(struct wgmma *s)
{
    enum { WARPS = 4 };
    struct cg *g = s->g;
    const uint32_t made = cg_label(g, "made");
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, s->m->thread, cg_int(DT_U32, 0))), false, made);
    for (uint32_t i = 0; i < s->ntile; i++)
        PTX(&g->b, "prefetch.tensormap", ptx_mem(s->tile[i].map, 0));
    for (uint32_t o = 0; o < s->f->stage->n && s->direct; o++)
        PTX(&g->b, "prefetch.tensormap", ptx_mem(s->out_map[o], 0));
    for (uint32_t i = 0; i < 2 * s->p->stages; i++)
        PTX(&g->b, "mbarrier.init.shared::cta.b64",
            ptx_mem(s->m->shared, s->barriers + i * BARRIER),
            ptx_imm(i < s->p->stages ? 1 : s->peers * s->takers * WARPS));
    PTX0(&g->b, "fence.mbarrier_init.release.cluster");
    cg_scope_close(g, mark);
    cg_place(g, made);
    if (s->blocks > 1) {
        PTX0(&g->b, "barrier.cluster.arrive.release.aligned");
        PTX0(&g->b, "barrier.cluster.wait.acquire.aligned");
    } else {
        PTX(&g->b, "bar.sync", ptx_imm(0));
    }
}

/* Registers that the producer gives up and consumers take: so many that all of the block's, which it begins with, are
 * enough. One consumer needs none more. */
static void set_registers(struct wgmma *s, bool produces)
{
    static const uint8_t of[][2] = {[2] = {40, 232}, [3] = {32, 160}};
    if (s->consumers > 1)
        PTX(&s->g->b,
            produces ? "setmaxnreg.dec.sync.aligned.u32" : "setmaxnreg.inc.sync.aligned.u32",
            ptx_imm(of[s->consumers][!produces]));
}

/* Warpgroups that take tiles by turns multiply by turns, too: one waits for the other's products, not for its results. The
 * barrier of warpgroup w is number 1 + w. */
static void take_turn(struct wgmma *s, bool begins)
{
    struct cg *g = s->g;
    if (!s->p->pingpong)
        return;
    struct cg_val whose = cg_binary(g, OP_XOR, s->group, cg_int(DT_U32, !begins));
    whose = cg_binary(g, OP_ADD, whose, cg_int(DT_U32, 1));
    PTX(&g->b, begins ? "bar.sync" : "bar.arrive", ptx_r(cg_reg(g, whose)),
        ptx_imm(2 * WGMMA_GROUP));
}

static void tile_of_consumer(struct wgmma *s)
{
    struct cg *g = s->g;
    take_turn(s, true);
    wgmma_sum_tile(s);
    take_turn(s, false);
    if (s->p->pingpong)
        wgmma_ring_skip(s);
    const uint32_t skip = cg_label(g, "stored");
    const size_t mark = cg_scope_open(g);
    if (s->p->split > 1)
        wgmma_share(s, skip);
    if (s->direct)
        wgmma_store_tile(s);
    else
        wgmma_out_tile(s);
    cg_scope_close(g, mark);
    cg_place(g, skip);
}

static void produce(struct wgmma *s)
{
    struct cg *g = s->g;
    const int32_t elected = cg_new(g, DT_BOOL);
    set_registers(s, true);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, s->m->thread, cg_int(DT_U32, 32))), false, g->exit);
    PTX(&g->b, "elect.sync", ptx_pair(-1, elected), ptx_imm(-1));
    cg_jump_if(g, elected, false, g->exit);
    g->exit_used = true;
    wgmma_ring_begin(s, 1);
    for_tiles(s, s->first_tile, s->tile_step, wgmma_load_tile);
    wgmma_load_end(s);
    cg_jump(g, g->exit);
}

/* By turns: the second warpgroup begins with the second tile, and says that it is the first one's turn. */
static void begin_turns(struct wgmma *s, struct cg_val *first, struct cg_val *step)
{
    struct cg *g = s->g;
    const uint32_t begun = cg_label(g, "begun");
    *first = cg_binary(g, OP_ADD, *first, cg_binary(g, OP_MUL, s->group, *step));
    *step = cg_binary(g, OP_MUL, *step, cg_int(DT_U32, 2));
    const struct cg_val is_first = cg_binary(g, OP_EQ, s->group, cg_int(DT_U32, 0));
    cg_jump_if(g, cg_reg(g, is_first), true, begun);
    const size_t mark = cg_scope_open(g);
    take_turn(s, false);
    wgmma_ring_skip(s);
    cg_scope_close(g, mark);
    cg_place(g, begun);
}

static void consume(struct wgmma *s)
{
    struct cg_val first = s->first_tile, step = s->tile_step;
    set_registers(s, false);
    wgmma_ring_begin(s, 0);
    wgmma_sum_begin(s);
    if (s->p->pingpong)
        begin_turns(s, &first, &step);
    for_tiles(s, first, step, tile_of_consumer);
    if (s->direct)
        wgmma_store_end(s);
}

void matmul_wgmma(struct matmul *m)
{
    struct wgmma s = {.m = m, .g = m->g, .f = m->f, .p = m->p};
    struct cg *g = m->g;
    if (!wgmma_measure(&s, NULL))
        return;
    matmul_prepare(m);
    g->dynamic->align = WGMMA_ALIGN;
    g->func->minnctapersm = 1;
    if (s.blocks > 1)
        g->func->directives = arena_printf(
            g->module->arena, ".explicitcluster\n.reqnctapercluster %u, 1, 1", (unsigned)s.blocks);
    find_rank(&s);
    wgmma_load_begin(&s);
    if (s.direct)
        wgmma_store_begin(&s);
    make_barriers(&s);
    const uint32_t consumes = cg_label(g, "consumer");
    const struct cg_val group = cg_int(DT_U32, WGMMA_GROUP);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, m->thread, group)), true, consumes);
    size_t mark = cg_scope_open(g);
    produce(&s);
    cg_scope_close(g, mark);
    cg_place(g, consumes);
    mark = cg_scope_open(g);
    consume(&s);
    cg_scope_close(g, mark);
}
