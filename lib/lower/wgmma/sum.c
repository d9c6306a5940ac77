/* The consumers' instructions (wgmma/wgmma.h).
 *
 * While a stage's instructions are under way the next stage is waited for and sent to multiply;
 * then those before are over, and their stage is given back. So the tensor cores always have work
 * that waits for them.
 *
 * Where results take work, warpgroups that take a tile together end it one after the other: the
 * second waits, all but one of the ring's stages before its end, until the first has sent its last.
 * So the tensor cores are the first's alone, and then the second's while the first is in the
 * epilogue; and the first's again, with the next tile's stages that have come, while the second is
 * in it. The ring must be shorter than the tile: it keeps the first from ending two tiles
 * meanwhile.
 *
 *     first     ... n-3 n-2 n-1 | epilogue      | 0   1   2   3 ...
 *     second    ... (waits)       n-3 n-2 n-1   | epilogue      | 0 ...
 *
 * Bias and gelu() at 4096^3, on an H100: 277.5 thousand clocks, 275.8 in order; a plain product
 * takes 266.1. It was thought to hide three times as much.
 */
#include <config.h>

#include "lower/wgmma/wgmma.h"

/* As it is multiplied. */
static struct wgmma_layout layout_of(const struct wgmma_tile *t)
{
    return (struct wgmma_layout){.along_k = t->along_k || t->turned,
                                 .size = t->size,
                                 .atoms = t->atoms,
                                 .atom_bytes = t->atom_bytes};
}

/* The low word of the tile's first descriptor in stage 0, for the rows that the warpgroup takes. */
static int32_t first_word(struct wgmma *s, const struct wgmma_tile *t)
{
    struct cg *g = s->g;
    const struct wgmma_layout l = layout_of(t);
    struct cg_val at = cg_add(g, cg_value(DT_U32, s->m->shared), cg_u32(t->offset));
    if (t->side == s->shape->left)
        at = cg_add(g, at, cg_mul(g, s->part, wgmma_row_bytes(&l, s->shape->high)));
    return wgmma_low_word(g, &l, at);
}

/* Which lane tells which block that a stage is read: lane r of every warp block r, of those that
 * bring parts of it. */
static void find_release(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct cg_val lane = s->m->lane;
    if (s->shape->sharing < 2) {
        s->release = ring_release_here(&s->ring);
        return;
    }
    struct cg_val row = cg_binary(g, OP_MOD, lane, cg_u32(s->shape->down));
    struct cg_val col = cg_binary(g, OP_DIV, lane, cg_u32(s->shape->down));
    struct cg_val same_col = cg_binary(g, OP_EQ, col, s->at_col);
    struct cg_val same_row = cg_binary(g, OP_EQ, row, s->at_row);
    struct cg_val peer = cg_binary(g, OP_LOR, same_row, same_col);
    struct cg_val is_block = cg_binary(g, OP_LT, lane, cg_u32(s->shape->sharing));
    s->release.mine = cg_reg(g, cg_binary(g, OP_LAND, is_block, peer));
    const struct cg_val rank =
        cg_add(g, s->apart, cg_binary(g, OP_MOD, lane, cg_u32(s->shape->sharing)));
    const int32_t there =
        CG(g, PTX_B32, "mapa.shared::cluster.u32", ptx_r(s->m->shared), ptx_r(cg_reg(g, rank)));
    s->release.delta =
        cg_reg(g, cg_binary(g, OP_SUB, cg_value(DT_U32, there), cg_value(DT_U32, s->m->shared)));
    s->release.at = cg_new_mutable(g, DT_U32);
}

void wgmma_sum_begin(struct wgmma *s)
{
    struct cg *g = s->g;
    const uint32_t n = wgmma_sums(s->shape);
    s->group = cg_binary(g, OP_SHR, s->m->thread, cg_u32(7));
    s->group = cg_binary(g, OP_SUB, s->group, cg_u32(s->shape->producers));
    s->part = s->p->pingpong ? cg_u32(0) : s->group;
    s->word = wgmma_high_word(g);
    for (uint32_t i = 0; i < s->shape->ntile; i++)
        s->first[i] = s->shape->tile[i].held ? -1 : first_word(s, &s->shape->tile[i]);
    if (wgmma_held_words(s->shape))
        wgmma_hold_begin(s);
    find_release(s);
    if (matmul_in_f16(s->p))
        wgmma_scales_begin(s);
    else if (s->p->parts > 1)
        wgmma_range_begin(s);
    s->adds = cg_new_mutable(g, DT_BOOL);
    s->always = cg_new(g, DT_BOOL);
    PTX(&g->b, "setp.ne.s32", ptx_r(s->always), ptx_r(s->word), ptx_imm(0));
    s->never = cg_new(g, DT_BOOL);
    PTX(&g->b, "setp.eq.s32", ptx_r(s->never), ptx_r(s->word), ptx_imm(0));
    s->stage_sum = ARENA_ARRAY(g->a, s->shape->wide / 2, int32_t);
    for (uint32_t i = 0; i < s->shape->wide / 2 && s->p->promotes; i++)
        s->stage_sum[i] = cg_new_mutable(g, s->f->sum);
    s->sum = ARENA_ARRAY(g->a, n, int32_t);
    for (uint32_t i = 0; i < n; i++)
        s->sum[i] = cg_new_mutable(g, s->f->sum);
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* The descriptor of step `step` of the tile, of its 64 rows i, or of their second part. */
static struct ptx_operand descriptor(struct wgmma *s, const struct wgmma_tile *t, int32_t stage,
                                     uint32_t step, uint32_t i, bool rest)
{
    const struct wgmma_layout l = layout_of(t);
    const uint32_t part = rest ? t->rest - t->offset : 0;
    return wgmma_descriptor(s->g, stage, s->word,
                            part + wgmma_step_bytes(&l, step) +
                                wgmma_row_bytes(&l, i * WGMMA_ROWS));
}

static void multiply(struct wgmma *s, uint32_t left, uint32_t right, const int32_t *sum,
                     struct ptx_operand a, struct ptx_operand b, int32_t adds)
{
    struct cg *g = s->g;
    const struct wgmma_tile *ta = &s->shape->tile[left], *tb = &s->shape->tile[right];
    const uint32_t each = s->shape->wide / 2, n = s->shape->joined * each;
    const size_t apart = (size_t)s->shape->high / WGMMA_ROWS *
                         each; /* from a product to the next */
    const bool in_f16 = matmul_in_f16(s->p);
    const struct wgmma_kind kind = {.left = in_f16 ? DT_F16 : s->f->operand[ta->operand].type,
                                    .right = in_f16 ? DT_F16 : s->f->operand[tb->operand].type,
                                    .sum = s->f->sum,
                                    .columns = s->shape->joined * s->shape->wide,
                                    .across = {!ta->along_k, !tb->along_k}};
    struct ptx_operand *d = ARENA_ARRAY(g->a, n, struct ptx_operand);
    for (uint32_t w = 0; w < n; w++)
        d[w] = ptx_r(sum[w / each * apart + w % each]);
    wgmma_multiply(g, &kind, d, a, b, adds);
}

/* Of 64 rows i of product q. */
static int32_t *sums_of(const struct wgmma *s, uint32_t q, uint32_t i)
{
    return s->sum + ((size_t)q * (s->shape->high / WGMMA_ROWS) + i) * (s->shape->wide / 2);
}

/* Which parts of the left and of the right operand: their rests or not. */
struct parts {
    bool left, right;
};

static void multiply_rows(struct wgmma *s, const int32_t *stage, uint32_t step, uint32_t q,
                          uint32_t i, struct parts rest, const int32_t *sum, int32_t adds)
{
    const struct matmul_product *product = &s->f->product[q];
    const uint32_t a = s->shape->tile_of[product->a], b = s->shape->tile_of[product->b];
    const uint32_t left = s->shape->left == MATMUL_A ? a : b, right = a + b - left;
    const struct ptx_operand y =
        descriptor(s, &s->shape->tile[right], stage[right], step, 0, rest.right);
    const struct ptx_operand x =
        s->shape->tile[left].held
            ? wgmma_held(s, left, step, i, rest.left)
            : descriptor(s, &s->shape->tile[left], stage[left], step, i, rest.left);
    multiply(s, left, right, sum, x, y, adds);
}

/* The steps are sent to multiply; what was sent before is over then. */
static void multiply_steps(struct wgmma *s, const int32_t *stage, uint32_t first, uint32_t n)
{
    struct cg *g = s->g;
    wgmma_fence(g);
    for (uint32_t step = first; step < first + n; step++)
        for (uint32_t i = 0; i < s->shape->high / WGMMA_ROWS; i++)
            for (uint32_t q = 0; q < s->f->nproduct; q += s->shape->joined)
                multiply_rows(s, stage, step, q, i, (struct parts){false, false}, sums_of(s, q, i),
                              step ? s->always : s->adds);
    wgmma_commit(g);
    wgmma_wait_groups(g, 1);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* The warp says that it has read the stage before, to all that bring it; where lanes load words
 * themselves, all have. */
static void give_back(struct wgmma *s, int32_t pred)
{
    struct cg *g = s->g;
    if (wgmma_held_words(s->shape))
        PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
    ring_release(&s->ring, &s->release, pred);
}

static void note_stage(struct wgmma *s)
{
    struct cg *g = s->g;
    ring_note(&s->ring, &s->release);
    cg_move(g, s->adds, cg_bool(g, true));
}

/* Of parts the smallest products come first, so that these lose nothing to larger sums. */
static const struct parts all_parts[] = {{true, false}, {false, true}, {false, false}};
enum { FIRSTS = sizeof all_parts / sizeof *all_parts - 1 }; /* the first parts' product */

/* The stage's products of 64 rows, of those parts, added up from zero, or to what is there. */
static void multiply_parts(struct wgmma *s, const int32_t *stage, uint32_t q, uint32_t i,
                           uint32_t from, uint32_t to, bool adds)
{
    wgmma_fence(s->g);
    for (uint32_t part = from; part < to; part++)
        for (uint32_t step = 0; step < s->shape->steps; step++)
            multiply_rows(s, stage, step, q, i, all_parts[part], s->stage_sum,
                          step || part > from || adds ? s->always : s->never);
    wgmma_commit(s->g);
    wgmma_wait_groups(s->g, 0);
}

/* The tile's last products of a stage are over. */
static void end_stage(struct wgmma *s, uint32_t q, uint32_t i)
{
    if (i + 1 < s->shape->high / WGMMA_ROWS || q + 1 < s->f->nproduct)
        return;
    note_stage(s);
    give_back(s, s->release.mine);
}

static void add_stage(struct wgmma *s, uint32_t q, uint32_t i)
{
    struct cg *g = s->g;
    const int32_t *sum = sums_of(s, q, i);
    for (uint32_t w = 0; w < s->shape->wide / 2; w++)
        CG_ASSIGN(g, sum[w], "add.rn.f32", ptx_r(sum[w]), ptx_r(s->stage_sum[w]));
}

/* The stage's products of 64 rows, added up from zero, and to others. */
static void take_stage(struct wgmma *s, const int32_t *stage, uint32_t q, uint32_t i)
{
    multiply_parts(s, stage, q, i, s->p->parts > 1 ? 0 : FIRSTS, FIRSTS + 1, false);
    end_stage(s, q, i);
    add_stage(s, q, i);
}

/* The same of parts of f16, whose rests are 2^11 times what they stand for. */
static void take_f16_stage(struct wgmma *s, const int32_t *stage, uint32_t q, uint32_t i)
{
    multiply_parts(s, stage, q, i, 0, FIRSTS, false);
    wgmma_scale_rests(s);
    if (i == 0)
        wgmma_scales_take(s, q);
    multiply_parts(s, stage, q, i, FIRSTS, FIRSTS + 1, true);
    end_stage(s, q, i);
    wgmma_scaled_add(s, q, sums_of(s, q, i));
}

/* Multiplies a stage into sums of its own, one 64 rows of a product after the other, and adds these
 * to the rest. The other warpgroups keep the tensor cores busy meanwhile. */
static void promote_stage(struct wgmma *s, const int32_t *stage)
{
    for (uint32_t i = 0; i < s->shape->high / WGMMA_ROWS; i++)
        for (uint32_t q = 0; q < s->f->nproduct; q++) {
            if (q == 0 && s->p->parts > 1)
                wgmma_hold_parts(s, i);
            (matmul_in_f16(s->p) ? take_f16_stage : take_stage)(s, stage, q, i);
        }
}

/* ---- which warpgroup ends first -------------------------------------------------------------- */

enum { ORDER = 1 }; /* the barrier's number */

static bool ends_in_order(const struct wgmma *s)
{
    const bool works = s->shape->direct ? s->shape->nbrought || s->shape->by_threads
                                        : s->f->weight > 0;
    return works && s->shape->takers == 2 && !s->p->promotes && s->p->split < 2;
}

/* Finds whether the warpgroup ends this tile first, and how many stages are left where it waits; 0:
 * it does not wait. */
static void begin_order(struct wgmma *s)
{
    struct cg *g = s->g;
    int64_t is_longer;
    s->ends_first = -1;
    if (!ends_in_order(s))
        return;
    const struct cg_val longer = cg_binary(g, OP_GE, wgmma_stages(s), cg_u32(s->p->stages));
    if (cg_is_const(longer, &is_longer) && !is_longer)
        return;
    const struct cg_val is_first = cg_binary(g, OP_EQ, s->group, cg_u32(0));
    s->ends_first = cg_reg(g, cg_binary(g, OP_LAND, longer, is_first));
    const struct cg_val second = cg_binary(g, OP_LAND, longer, cg_unary(g, OP_NOT, is_first));
    /* the first one has all of these, while this one still holds the stage in front of them */
    const uint32_t come = s->p->stages - 1 - (s->shape->gathers ? wgmma_gather_begun(s) : 0);
    s->waits_at = cg_reg(g, cg_select(g, cg_reg(g, second), cg_u32(come), cg_u32(0)));
}

static void wait_for_first(struct wgmma *s)
{
    struct cg *g = s->g;
    if (s->ends_first < 0)
        return;
    const struct cg_val rest = cg_value(DT_U32, s->rest), at = cg_value(DT_U32, s->waits_at);
    PTX_IF(&g->b, cg_reg(g, cg_binary(g, OP_EQ, rest, at)), "bar.sync", ptx_imm(ORDER),
           ptx_imm(2 * WGMMA_GROUP));
}

static void say_end(struct wgmma *s)
{
    if (s->ends_first >= 0)
        PTX_IF(&s->g->b, s->ends_first, "bar.arrive", ptx_imm(ORDER), ptx_imm(2 * WGMMA_GROUP));
}

static void sum_stage(struct wgmma *s)
{
    struct cg *g = s->g;
    int32_t stage[MATMUL_OPERANDS];
    wait_for_first(s);
    ring_wait(&s->ring, RING_FULL);
    if (s->shape->converts)
        ring_wait(&s->ring, RING_READY);
    if (matmul_in_f16(s->p))
        wgmma_scales_load(s);
    else if (s->p->parts > 1)
        wgmma_range_hear(s);
    const struct cg_val at = cg_binary(g, OP_SHR, cg_value(DT_U32, s->ring.offset), cg_u32(4));
    for (uint32_t i = 0; i < s->shape->ntile; i++)
        if (!s->shape->tile[i].held)
            stage[i] = cg_reg(g, cg_add(g, cg_value(DT_U32, s->first[i]), at));
    if (s->p->promotes) {
        epilogue_tile(s);
        wgmma_columns_load(s);
        promote_stage(s, stage);
        return;
    }
    /* while two steps are under way registers take the next two's */
    const uint32_t n = wgmma_held_words(s->shape) ? 2 : s->shape->steps;
    for (uint32_t step = 0; step < s->shape->steps; step += n) {
        if (wgmma_held_words(s->shape))
            wgmma_hold(s, step);
        multiply_steps(s, stage, step, n);
        if (step == 0) {
            const int32_t frees = cg_new(g, DT_BOOL);
            PTX(&g->b, "and.pred", ptx_r(frees), ptx_r(s->adds), ptx_r(s->release.mine));
            give_back(s, frees);
            epilogue_tile(s);
            wgmma_columns_load(s);
        }
    }
    note_stage(s);
}

void wgmma_sum_tile(struct wgmma *s)
{
    struct cg *g = s->g;
    cg_move(g, s->adds, cg_bool(g, false));
    for (uint32_t i = 0; i < wgmma_sums(s->shape) && s->p->promotes; i++)
        PTX(&g->b, "mov.f32", ptx_r(s->sum[i]), ptx_immf32(0));
    if (matmul_in_f16(s->p))
        wgmma_scales_tile(s);
    else if (s->p->parts > 1)
        wgmma_range_clear(s);
    begin_order(s);
    wgmma_for_stages(s, sum_stage);
    say_end(s);
    if (!s->p->promotes) {
        wgmma_wait_groups(g, 0);
        give_back(s, s->release.mine);
    }
    for (uint32_t i = 0; i < wgmma_sums(s->shape); i++)
        cg_assigned(g, s->sum[i]);
    if (s->p->parts > 1)
        wgmma_mend(s);
}
