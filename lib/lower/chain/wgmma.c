/* Chains by wgmma (chain.h), on sm_90a. A block has a producer, one warp of which copies q, k and v
 * to rings in shared memory (TMA), and warpgroups of 64 rows each that multiply. Scores, streams
 * and sums stay in registers, where the left operand of the second product is made of the first
 * one's results.
 *
 *     producer, for each item                 consumers, each warpgroup, for each item
 *       wait; bring q                           wait for q; wait for k; s = q k; streams
 *       for each tile:                          for each further tile:
 *         wait; bring k                           wait for k; wait for its turn; begin s = q k
 *         wait; bring v                           wait for v; begin o += p v, of the tile before;
 *                                                   the next warpgroup's turn
 *                                                 s is done: give k back; streams
 *                                                 o is done: give v back; p; rescale o
 *                                               o += p v, of the last tile; results
 *
 * So the tensor cores multiply o while the warpgroup computes exponentials, and those of another
 * one while it rescales. Without overlap o += p v comes after its own tile's streams, which takes
 * fewer registers: other warpgroups multiply meanwhile. An item is a tile of rows of one batch: as
 * many blocks as the device has multiprocessors take them by turns, or from a counter where items
 * differ, by the rows' ranges (chain/items.c).
 *
 * Of several scores and no maxima, as gradients have, each sum is multiplied as soon as the scores
 * are there that its terms need, and a tile is done before the next begins:
 *
 *     wait for k; begin each s = q k; wait for the first; its terms; begin the sums that need it;
 *     wait for the next s; its terms; begin the sums that need that; ... all are done: give k back
 *
 * There k is v, too, where both are the same matrix: rows along terms and across lie the same. With
 * it come vectors along j (chain/along.c), which threads would wait for.
 *
 * Biases and masks, which have an element for each row and j, come by tiles to a ring of their own
 * (chain/sheets.c), between k's tile and v's.
 *
 * This is what made it fast; chain/strategy.c has what each step bought.
 *   - ptxas moves the wait for o in front of the exponentials, under which tensor cores are to
 *     multiply. An instruction that depends on them keeps it behind (hold()).
 *   - Rows of a warp wait for other lanes' maxima together, and maxima are those of the products as
 *     they are, before they are scaled (chain/tile.c). exp is one fma and the hardware's exp2, and
 *     o is rescaled only when a maximum has grown by more than 5.5 (chain/fall.c).
 *   - A warp's number is its first lane's: descriptors are made of it in uniform registers.
 *   - Where there is room q has two stages, and the next item's comes while this one's is read.
 *   - A row has one reciprocal for its quotients, and sums are looked through for infinities in
 *     four chains of fma (chain/end.c), since nothing multiplies at an item's end.
 *   - Masks are put on products, in front of all else: one copy of the code is for tiles with a
 *     mask and without one.
 *   - Of 8-bit floats a warpgroup waits for o between its two rows: what is of the tile before is
 *     added, and the first row's words are made, under the second row's exponentials (has_row()).
 * The first scores of an item, its last o += p v and its results are computed under no other item:
 * of short rows that is a large part. Where keys are few several blocks are on a multiprocessor,
 * so that they are under the other blocks' (chain_wgmma_crowds()).
 */
#include <config.h>

#include "lower/chain/wgmma.h"

#include "lower/wgmma/tma.h"

enum { FIRST_BARRIER = 1 }; /* of the turns; 0 is all threads' */

/* ---- products -------------------------------------------------------------------------------- */

void chain_wgmma_give_back(const struct chain_store *s)
{
    ring_note(&s->ring, &s->release);
    ring_release(&s->ring, &s->release, s->release.mine);
    ring_next(&s->ring);
}

static int32_t low_word(struct chain_wgmma *k, const struct chain_box *s,
                        const struct chain_store *in, uint32_t row_bytes, struct cg_val rows)
{
    struct cg *g = k->g;
    const struct cg_val at = cg_add(g, ring_stage(&in->ring), cg_u32(s->offset));
    return wgmma_low_word(g, &s->lay, cg_add(g, at, cg_mul(g, rows, row_bytes)));
}

static struct ptx_operand *operands(struct cg *g, const int32_t *reg, uint32_t n)
{
    struct ptx_operand *const o = ARENA_ARRAY(g->a, n, struct ptx_operand);
    for (uint32_t i = 0; i < n; i++)
        o[i] = ptx_r(reg[i]);
    return o;
}

/* Sends score n to multiply, s = q k. */
static void multiply_score(struct chain_wgmma *k, uint32_t n)
{
    struct cg *g = k->g;
    const struct chain_box *q = &k->q[n], *r = &k->k[n];
    const struct wgmma_kind kind = {.left = k->t->score[n].kind.left,
                                    .right = k->t->score[n].kind.right,
                                    .sum = DT_F32,
                                    .columns = k->p->wide,
                                    .across = {!q->lay.along_k, !r->lay.along_k}};
    const struct ptx_operand *sum = operands(g, k->score[n], k->p->wide / 2);
    const int32_t a = low_word(k, q, &k->of_q, wgmma_row_bytes(&q->lay, WGMMA_ROWS), k->group);
    const int32_t b = low_word(k, r, &k->of_k, 0, cg_u32(0));
    for (uint32_t i = 0; i < chain_wgmma_terms_of(k, n) * q->lay.size / WGMMA_STEP; i++) {
        const struct ptx_operand right =
            wgmma_descriptor(g, b, k->high, wgmma_step_bytes(&r->lay, i));
        const struct ptx_operand left =
            wgmma_descriptor(g, a, k->high, wgmma_step_bytes(&q->lay, i));
        wgmma_multiply(g, &kind, sum, left, right, i ? k->always : k->never);
    }
}

/* Sends all of them, in a group each if they are waited for one by one. */
static void begin_scores(struct chain_wgmma *k, bool apart)
{
    wgmma_fence(k->g);
    for (uint32_t n = 0; n < k->t->f->nscore; n++) {
        multiply_score(k, n);
        if (apart || n + 1 == k->t->f->nscore)
            wgmma_commit(k->g);
    }
}

static void have_score(struct chain_wgmma *k, uint32_t n)
{
    for (uint32_t w = 0; w < k->p->wide / 2; w++)
        cg_assigned(k->g, k->score[n][w]);
}

/* They are over, but for the latest `but` groups. */
static void end_scores(struct chain_wgmma *k, uint32_t but)
{
    wgmma_wait_groups(k->g, but);
    for (uint32_t n = 0; n < k->t->f->nscore; n++)
        have_score(k, n);
    chain_wgmma_give_back(&k->of_k);
}

/* Sends sums number n to multiply, their columns from `first` on. */
static void multiply_columns(struct chain_wgmma *k, uint32_t n, uint32_t first)
{
    struct cg *g = k->g;
    const uint32_t columns = k->turns ? k->p->group : k->p->columns;
    const struct chain_box *v = &k->v[n];
    const struct wgmma_kind kind = {.left = k->t->column[n].kind.left,
                                    .right = k->t->column[n].kind.right,
                                    .sum = DT_F32,
                                    .columns = columns,
                                    .across = {false, !v->lay.along_k}};
    const int32_t *to = k->turns ? k->part[n] : k->x.sum[n];
    const struct ptx_operand *sum = operands(g, to, columns / 2);
    const int32_t b = low_word(k, v, k->at_v, 0, cg_u32(0));
    const uint32_t steps = k->p->wide * v->lay.size / WGMMA_STEP;
    for (uint32_t i = 0; i < k->t->column[n].parts * steps; i++)
        wgmma_multiply(g, &kind, sum,
                       ptx_vec(&g->b, 4, operands(g, k->x.word[n] + (size_t)4 * i, 4)),
                       wgmma_descriptor(g, b, k->high,
                                        wgmma_row_bytes(&v->lay, first) +
                                            wgmma_step_bytes(&v->lay, i % steps)),
                       k->turns && i == 0 ? k->never : k->always);
}

/* Sends the sums' columns from `first` on to multiply. */
static void begin_group(struct chain_wgmma *k, uint32_t first)
{
    wgmma_fence(k->g);
    for (uint32_t n = 0; n < k->t->ncolumn; n++)
        multiply_columns(k, n, first);
    wgmma_commit(k->g);
}

/* Are sums rescaled in every tile, when the next terms are added? */
static bool rescales_parts(const struct chain_wgmma *k)
{
    return k->turns && k->x.top < 0;
}

/* They are over: what is of a tile alone is added to the others, after these are rescaled. */
static void end_group(struct chain_wgmma *k, uint32_t first)
{
    struct cg *g = k->g;
    const uint32_t columns = k->turns ? k->p->group : k->p->columns;
    wgmma_wait_groups(g, 0);
    for (uint32_t n = 0; n < k->t->ncolumn; n++) {
        const bool rescales = rescales_parts(k) &&
                              k->t->f->stream[k->t->column[n].stream].running >= 0;
        const int32_t *sum = k->x.sum[n] + first / 2;
        for (uint32_t w = 0; w < columns / 2; w++)
            cg_assigned(g, k->turns ? k->part[n][w] : sum[w]);
        for (uint32_t w = 0; w < columns / 2 && k->turns; w++) {
            const int32_t part = k->part[n][w], by = k->held[n][w % 4 / 2];
            if (rescales)
                CG_ASSIGN(g, sum[w], "fma.rn.f32", ptx_r(sum[w]), ptx_r(by), ptx_r(part));
            else
                CG_ASSIGN(g, sum[w], "add.rn.f32", ptx_r(sum[w]), ptx_r(part));
        }
    }
}

/* Sends o += p v to multiply: of 8 bits some columns of p v. */
static void begin_columns(struct chain_wgmma *k)
{
    for (uint32_t n = 0; n < k->t->ncolumn && rescales_parts(k); n++)
        for (uint32_t row = 0; row < 2; row++)
            cg_move(k->g, k->held[n][row], cg_value(DT_F32, k->x.scale[n][row]));
    begin_group(k, 0);
}

static void end_columns(struct chain_wgmma *k)
{
    const uint32_t columns = k->turns ? k->p->group : k->p->columns;
    end_group(k, 0);
    for (uint32_t first = columns; first < k->p->columns; first += columns) {
        begin_group(k, first);
        end_group(k, first);
    }
    chain_wgmma_give_back(k->at_v);
}

/* Warpgroups begin their products by turns, so that one multiplies while another computes. */
static void take_turn(struct chain_wgmma *k, bool begins)
{
    struct cg *g = k->g;
    const uint32_t n = chain_wgmma_consumers(k->p);
    if (k->p->turns != CHAIN_YES)
        return;
    struct cg_val whose = cg_add(g, k->group, cg_u32(FIRST_BARRIER));
    if (!begins) {
        const struct cg_val last = cg_binary(g, OP_EQ, k->group, cg_u32(n - 1));
        const struct cg_val next = cg_add(g, whose, cg_u32(1));
        whose = cg_select(g, cg_reg(g, last), cg_u32(FIRST_BARRIER), next);
    }
    PTX(&g->b, begins ? "bar.sync" : "bar.arrive", ptx_r(cg_reg(g, whose)),
        ptx_imm(2 * WGMMA_GROUP));
}

/* What comes next in the code waits until the values of these rows are there: ptxas would move it
 * in front of them, where it only waits for tensor cores. An instruction that does nothing stays in
 * its place, and depends on them. */
static void hold(struct chain_wgmma *k, const struct chain_values *v, uint32_t row, uint32_t end)
{
    struct cg *g = k->g;
    const struct chain_form *f = k->t->f;
    const int32_t idle = cg_new(g, DT_BOOL);
    struct cg_val all = cg_float(g, DT_F32, 0);
    for (; row < end; row++) {
        for (uint32_t c = 0; c < k->t->ncolumn; c++)
            all =
                cg_binary(g, OP_ADD, all, cg_convert(g, v->of[c][row][k->p->wide / 4 - 1], DT_F32));
        for (uint32_t n = 0; n < f->nstream; n++)
            if (!f->stream[n].has_column && f->stream[n].type == DT_F32)
                all = cg_binary(g, OP_ADD, all, cg_value(DT_F32, k->x.state[n][row]));
    }
    PTX(&g->b, "setp.eq.f32", ptx_r(idle), cg_op(g, all), cg_op(g, cg_float(g, DT_F32, -1)));
    PTX_IF(&g->b, idle, "nanosleep.u32", ptx_imm(0));
}

/* Under the exponentials of the second row the sums of the tile before are added up, and the first
 * row's words are made: both take as long as half of a row's exponentials. */
static void has_row(void *ctx, const struct chain_values *v, uint32_t row)
{
    struct chain_wgmma *k = ctx;
    if (row == 0) {
        hold(k, v, 0, 1);
        end_columns(k);
    }
    chain_row_words(&k->x, v, row);
}

static struct chain_values *terms_of(struct chain_wgmma *k, struct cg_val first, bool masked)
{
    chain_wgmma_take_sheets(k);
    struct chain_values *v = chain_tile_terms(&k->x, first, k->score, masked);
    chain_wgmma_leave_sheets(k);
    return v;
}

/* ---- consumers ------------------------------------------------------------------------------- */

static void first_tile(struct chain_wgmma *k)
{
    const struct cg_val is_whole = chain_tile_is_whole(&k->x, k->first);
    struct chain_values *v;
    int64_t known;
    ring_wait(&k->of_k.ring, RING_FULL);
    begin_scores(k, false);
    end_scores(k, 0);
    v = terms_of(k, k->first, !cg_is_const(is_whole, &known) || !known);
    chain_tile_words(&k->x, v);
}

static void further_tile(struct chain_wgmma *k, bool masked)
{
    const struct cg_val here = cg_freeze(k->g, cg_value(DT_U32, k->j));
    struct chain_values *v;
    ring_wait(&k->of_k.ring, RING_FULL);
    take_turn(k, true);
    begin_scores(k, false);
    ring_wait(&k->of_v.ring, RING_FULL);
    begin_columns(k);
    take_turn(k, false);
    end_scores(k, 1);
    k->x.has_row = k->turns ? has_row : NULL;
    v = terms_of(k, here, masked);
    k->x.has_row = NULL;
    if (!k->turns) {
        hold(k, v, 0, chain_tile_rows(&k->x));
        end_columns(k);
        chain_tile_words(&k->x, v);
    }
    if (!rescales_parts(k))
        chain_tile_rescale(&k->x);
}

/* All of a tile, after all of the one before. */
static void lone_tile(struct chain_wgmma *k, bool masked)
{
    const struct cg_val here = cg_freeze(k->g, cg_value(DT_U32, k->j));
    ring_wait(&k->of_k.ring, RING_FULL);
    take_turn(k, true);
    begin_scores(k, false);
    take_turn(k, false);
    end_scores(k, 0);
    chain_tile_words(&k->x, terms_of(k, here, masked));
    if (!rescales_parts(k))
        chain_tile_rescale(&k->x);
    ring_wait(&k->of_v.ring, RING_FULL);
    begin_columns(k);
    end_columns(k);
}

/* ---- sums one by one ------------------------------------------------------------------------- */

/* So many scores must be there for the terms of sums number n. */
static uint32_t scores_for(const struct chain_wgmma *k, uint32_t n)
{
    const struct chain_stream *s = &k->t->f->stream[k->t->column[n].stream];
    uint32_t all = 0;
    for (uint32_t i = 0; i < k->t->f->nscore; i++)
        for (uint32_t part = 0; part < s->npart; part++)
            if (chain_mentions(s->part[part].e, k->t->f->score[i].sym))
                all = i + 1;
    return all;
}

/* Waits until there are so many of the scores, of which `have` were there; `sent` groups have been
 * sent to multiply in all. */
static void wait_scores(struct chain_wgmma *k, uint32_t have, uint32_t want, uint32_t sent)
{
    wgmma_wait_groups(k->g, sent - want);
    for (uint32_t n = have; n < want; n++)
        have_score(k, n);
    if (want == k->t->f->nscore && !k->shares)
        chain_wgmma_give_back(&k->of_k);
}

/* All of a tile, after all of the one before: those sums first that need the fewest scores. */
static void apart_tile(struct chain_wgmma *k, bool masked)
{
    const struct cg_val here = cg_freeze(k->g, cg_value(DT_U32, k->j));
    const uint32_t nscore = k->t->f->nscore;
    uint32_t have = 0, sent = nscore;
    ring_wait(&k->of_k.ring, RING_FULL);
    take_turn(k, true);
    begin_scores(k, true);
    take_turn(k, false);
    if (!k->shares)
        ring_wait(&k->of_v.ring, RING_FULL);
    chain_wgmma_find_along(k);
    chain_wgmma_take_sheets(k);
    for (uint32_t want = 0; want <= nscore; want++)
        for (uint32_t n = 0; n < k->t->ncolumn; n++) {
            if (scores_for(k, n) != want)
                continue;
            if (want > have) {
                chain_fetch_along(&k->x, k->t->f->stream[k->t->column[n].stream].part[0].e);
                wait_scores(k, have, want, sent);
            }
            have = want;
            chain_tile_column_words(&k->x, n, here, k->score, masked);
            chain_across_give(k, n);
            wgmma_fence(k->g);
            multiply_columns(k, n, 0);
            wgmma_commit(k->g);
            sent++;
        }
    k->x.has_along = false;
    chain_wgmma_leave_sheets(k);
    if (have < nscore)
        wait_scores(k, have, nscore, sent);
    chain_across_take(k, false);
    end_columns(k);
}

static void next_tile(struct chain_wgmma *k, bool masked)
{
    if (k->p->overlaps == CHAIN_YES)
        further_tile(k, masked);
    else if (chain_wgmma_is_apart(k->t, k->p))
        apart_tile(k, masked);
    else
        lone_tile(k, masked);
}

static void either_tile(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const uint32_t whole = cg_label(g, "whole"), done = cg_label(g, "done");
    const struct cg_val is_whole = chain_tile_is_whole(&k->x, cg_value(DT_U32, k->j));
    int64_t known;
    const bool all = cg_is_const(is_whole, &known) && known;
    if (all || chain_masks_products(&k->x)) {
        next_tile(k, !all);
        return;
    }
    cg_jump_if(g, cg_reg(g, is_whole), true, whole);
    size_t mark = cg_scope_open(g);
    next_tile(k, true);
    cg_scope_close(g, mark);
    cg_jump(g, done);
    cg_place(g, whole);
    cg_loop_head(g);
    mark = cg_scope_open(g);
    next_tile(k, false);
    cg_scope_close(g, mark);
    cg_place(g, done);
    cg_loop_head(g); /* either way has assigned registers */
}

/* All tiles, or those behind the first. */
static void next_tiles(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const bool overlaps = k->p->overlaps == CHAIN_YES;
    const uint32_t head = cg_label(g, "tile"), end = cg_label(g, "tiles");
    const int32_t rest =
        cg_mutable(g, overlaps ? cg_binary(g, OP_SUB, k->count, cg_u32(1)) : k->count);
    const int32_t more = cg_new(g, DT_BOOL);
    struct cg_nest nest;
    cg_move(g, k->j, overlaps ? k->first : chain_wgmma_next_j(k, chain_wgmma_first_j(k), true));
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, k->j);
    PTX(&g->b, "setp.ne.s32", ptx_r(more), ptx_r(rest), ptx_imm(0));
    cg_jump_if(g, more, false, end);
    CG_ASSIGN(g, rest, "sub.s32", ptx_r(rest), ptx_imm(1));
    CG_ASSIGN(g, k->j, k->t->across ? "sub.s32" : "add.s32", ptx_r(k->j), ptx_imm(k->p->wide));
    either_tile(k);
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, end);
    cg_loop_head(g);
}

static void consume_item(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const uint32_t none = cg_label(g, "none");
    int64_t known;
    chain_tile_begin(&k->x);
    for (uint32_t n = 0; n < k->t->ncolumn && rescales_parts(k); n++)
        for (uint32_t row = 0; row < 2; row++)
            cg_move(g, k->x.scale[n][row], cg_float(g, DT_F32, 1));
    chain_wgmma_find_tiles(k);
    const struct cg_val some = cg_binary(g, OP_NE, k->count, cg_u32(0));
    if (!cg_is_const(some, &known) || !known)
        cg_jump_if(g, cg_reg(g, some), false, none);
    const size_t mark = cg_scope_open(g);
    ring_wait(&k->of_q.ring, RING_FULL);
    if (k->p->overlaps == CHAIN_YES)
        first_tile(k);
    next_tiles(k);
    chain_across_take(k, true);
    chain_wgmma_give_back(&k->of_q);
    if (k->p->overlaps == CHAIN_YES) {
        ring_wait(&k->of_v.ring, RING_FULL);
        begin_columns(k);
        end_columns(k);
    }
    cg_scope_close(g, mark);
    cg_place(g, none);
    cg_loop_head(g);
    chain_tile_end(&k->x);
}

/* The first warpgroup's turn is first. */
static void begin_turns(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const uint32_t begun = cg_label(g, "begun");
    const struct cg_val last = cg_u32(chain_wgmma_consumers(k->p) - 1);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, k->group, last)), false, begun);
    const size_t mark = cg_scope_open(g);
    take_turn(k, false);
    cg_scope_close(g, mark);
    cg_place(g, begun);
}

static void make_parts(struct chain_wgmma *k, uint32_t n)
{
    const uint32_t words = k->p->group / 2;
    k->part[n] = ARENA_ARRAY(k->g->a, words, int32_t);
    for (uint32_t w = 0; w < words; w++)
        k->part[n][w] = cg_new_mutable(k->g, DT_F32);
    for (uint32_t row = 0; row < 2; row++)
        k->held[n][row] = cg_new_mutable(k->g, DT_F32);
}

static void consume(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    chain_wgmma_set_registers(k, false);
    k->before = cg_mul(g, cg_binary(g, OP_SUB, k->warp, cg_u32(CHAIN_WARPS)), 16);
    k->group = cg_binary(g, OP_SUB, cg_binary(g, OP_SHR, k->warp, cg_u32(2)), cg_u32(1));
    k->high = wgmma_high_word(g);
    k->always = cg_new(g, DT_BOOL);
    k->never = cg_new(g, DT_BOOL);
    PTX(&g->b, "setp.ne.s32", ptx_r(k->always), ptx_r(k->high), ptx_imm(0));
    PTX(&g->b, "setp.eq.s32", ptx_r(k->never), ptx_r(k->high), ptx_imm(0));
    k->j = cg_new_mutable(g, DT_U32);
    for (uint32_t i = 0; i < k->t->f->nscore; i++) {
        k->score[i] = ARENA_ARRAY(g->a, k->p->wide / 2, int32_t);
        for (uint32_t w = 0; w < k->p->wide / 2; w++)
            k->score[i][w] = cg_new_mutable(g, DT_F32);
    }
    for (uint32_t n = 0; n < k->t->ncolumn && k->turns; n++)
        make_parts(k, n);
    chain_wgmma_begin_rings(k, 0);
    k->of_q.release = ring_release_here(&k->of_q.ring);
    k->of_k.release = ring_release_here(&k->of_k.ring);
    if (!k->shares)
        k->of_v.release = ring_release_here(&k->of_v.ring);
    if (k->p->sheets)
        k->of_sheets.release = ring_release_here(&k->of_sheets.ring);
    if (k->p->turns == CHAIN_YES)
        begin_turns(k);
    chain_across_consume(k);
    chain_wgmma_for_items(k, false, consume_item);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static void begin_ring(struct chain_wgmma *k, struct chain_store *s, uint32_t *bytes)
{
    struct cg *g = k->g;
    s->ring.g = g;
    s->ring.lane = k->x.lane;
    s->ring.shared = cg_reg(g, cg_add(g, cg_value(DT_U32, k->shared), cg_u32(*bytes)));
    *bytes += s->stages * s->bytes;
}

/* The first lane's, so that ptxas knows it to be the same in all of them: addresses of it are
 * uniform registers then. */
static struct cg_val warp_number(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const struct cg_val own = cg_binary(g, OP_SHR, k->thread, cg_u32(5));
    return shuffle(g, SHUFFLE_IDX, own, ptx_imm(0), ptx_imm(31), ptx_imm(UINT32_MAX), NULL);
}

static void begin(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    struct ptx_var *const area = cg_dynamic(g);
    const struct ptx_operand shared = ptx_sym(area);
    struct chain_store *all[CHAIN_STORES];
    const uint32_t stores = chain_wgmma_stores(k, all);
    uint32_t bytes = 0;
    area->align = WGMMA_ALIGN;
    k->thread = cg_special(g, SP_TID_X);
    k->warp = warp_number(k);
    k->x.lane = cg_binary(g, OP_AND, k->thread, cg_u32(31));
    k->shared = cg_pure(g, PTX_B32, "mov.u32", 1, &shared);
    for (uint32_t i = 0; i < stores; i++)
        begin_ring(k, all[i], &bytes);
    for (uint32_t i = 0; i < k->t->f->nscore; i++) {
        chain_wgmma_make_map(k, &k->q[i]);
        chain_wgmma_make_map(k, &k->k[i]);
    }
    for (uint32_t i = 0; i < k->t->ncolumn && !k->shares; i++)
        chain_wgmma_make_map(k, k->turns ? &k->raw[i] : &k->v[i]);
    chain_wgmma_make_along_maps(k);
    chain_wgmma_count_items(k);
}

/* One thread makes the barriers, and asks for the maps; then all may use them. */
static void make_barriers(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const uint32_t made = cg_label(g, "made");
    struct chain_store *all[CHAIN_STORES];
    const uint32_t stores = chain_wgmma_stores(k, all);
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, k->thread, cg_u32(0))), false, made);
    for (uint32_t i = 0; i < k->t->f->nscore; i++) {
        tma_prefetch(g, k->q[i].map);
        tma_prefetch(g, k->k[i].map);
    }
    for (uint32_t i = 0; i < k->t->ncolumn && !k->shares; i++)
        tma_prefetch(g, k->turns ? k->raw[i].map : k->v[i].map);
    for (uint32_t i = 0; i < stores; i++)
        ring_init(&all[i]->ring, all[i]->arrivals);
    PTX0(&g->b, "fence.mbarrier_init.release.cluster");
    cg_scope_close(g, mark);
    cg_place(g, made);
    PTX(&g->b, "bar.sync", ptx_imm(0));
}

/* TMA copies rows of whole 16 bytes, and tensor maps have no empty dimensions. */
static void require(struct chain_wgmma *k, const struct chain_box *s, struct variant_condition *c)
{
    const struct lang_symbol *t = s->m.f->operand[s->operand].plain->sym;
    variant_require_multiple(k->g, c, t->dims[t->rank - 1], 16 / s->lay.size);
    for (uint32_t d = 0; d < t->rank; d++)
        variant_require_some(k->g, c, t->dims[d]);
}

struct lang_expr *chain_wgmma(struct cg *g, const struct chain_tensor *t,
                              const struct chain_plan *p, struct variant_condition *c)
{
    struct chain_wgmma *k = ARENA_NEW(g->a, struct chain_wgmma);
    *k = (struct chain_wgmma){.g = g, .t = t, .p = p};
    k->x = (struct chain_tile){.g = g,
                               .t = t,
                               .high = p->high,
                               .wide = p->wide,
                               .block_rows = chain_wgmma_block_rows(p),
                               .columns = p->columns,
                               .eights = chain_has_eights(t),
                               .share = cg_u32(0),
                               .shares = cg_u32(1)};
    k->x.has_row_ctx = k;
    chain_wgmma_lay_all(k);
    g->func->minnctapersm = p->each > 1 ? p->each : 1;
    begin(k);
    make_barriers(k);
    const uint32_t consumes = cg_label(g, "consumer");
    const struct cg_val producers = cg_u32(CHAIN_WARPS);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, k->warp, producers)), true, consumes);
    size_t mark = cg_scope_open(g);
    chain_wgmma_produce(k);
    cg_scope_close(g, mark);
    cg_place(g, consumes);
    mark = cg_scope_open(g);
    consume(k);
    cg_scope_close(g, mark);
    for (uint32_t i = 0; i < t->f->nscore; i++) {
        require(k, &k->q[i], c);
        require(k, &k->k[i], c);
    }
    for (uint32_t i = 0; i < t->ncolumn; i++)
        require(k, &k->v[i], c);
    return k->grid;
}
