/* The sum across (chain/pair.c), by wgmma: where others are sums over j of each of the block's
 * rows, it is one over rows of each j, of which every block with rows of the batch has a part.
 *
 *     consumers, each warpgroup, in each tile         writers, in every third tile
 *       words of the column's left operand, p           wait for the tile's turn
 *       wait; p's words to shared memory                for each part:
 *       of the tile before, not of the first:             wait; add it to the sums in memory
 *         wait for p's words of all warpgroups            it is read: its place is free
 *         its columns of the part: p^T times rows       they are added: the next block's turn
 *         wait; the part to shared memory
 *
 * p lies there by rows, along j: the left operand of 64 j lies across. A tile has 64 j, and each
 * warpgroup has a part of the columns. It is multiplied a tile later, so that no warpgroup waits
 * for one that is less than a tile behind.
 *
 * Sums are f32 in memory, by tiles of 64 j and by parts, each in the order in which a warpgroup's
 * threads have their registers. Writers are the three warps beside the producer's: a part is added
 * by one bulk copy (cp.reduce.async.bulk), and until that is done and others know it a writer waits
 * for longer than a tile takes. Blocks add to a tile by turns, so that sums have one order: `added`
 * counts how many have. Items come from a counter, those of a batch's first rows first, and a block
 * waits for those of the same batch with earlier rows alone, which have begun before it. It takes
 * the last j first: there all begin, and few wait where later rows begin with later j.
 *
 * The launch behind makes outputs of the sums (chain/gather.c), and leaves 0 in both for the next.
 */
#include <config.h>

#include "lower/chain/wgmma.h"

#include "lower/wgmma/tma.h"

/* Words of an access; the producer's other warps; what stands for a turn in shared memory, so that
 * rings of turns are as far apart as their barriers. */
enum { VECTOR = 4, WRITERS = CHAIN_WARPS - 1, TURN_BYTES = 2 * RING_BARRIER };

uint32_t chain_across_columns(const struct chain_plan *p)
{
    return p->columns / chain_wgmma_consumers(p);
}

bool chain_across_fits(const struct chain_plan *p)
{
    enum { WIDE = 16, MOST = 128 };
    return p->wide == WGMMA_ROWS && chain_wgmma_consumers(p) <= CHAIN_PARTS_ACROSS &&
           p->columns <= MOST && p->columns % (chain_wgmma_consumers(p) * WIDE) == 0;
}

/* Bytes of a part, and of all of a tile. */
static uint32_t part_bytes(const struct chain_plan *p)
{
    return WGMMA_ROWS * chain_across_columns(p) * 4;
}

void chain_across_lay(struct chain_wgmma *k)
{
    const struct chain_plan *p = k->p;
    const uint32_t size = chain_size(&k->t->column[k->t->across->column], MATMUL_A);
    k->left = wgmma_layout(false, size, p->wide, chain_wgmma_block_rows(p));
    k->of_left.stages = 2;
    k->of_left.bytes = k->left.atoms * k->left.atom_bytes;
    k->of_part.stages = chain_wgmma_consumers(p);
    k->of_part.bytes = part_bytes(p);
    for (uint32_t n = 0; n < chain_wgmma_consumers(p); n++) {
        k->of_turn[n].stages = WRITERS;
        k->of_turn[n].bytes = TURN_BYTES;
    }
}

void chain_across_count(struct chain_wgmma *k)
{
    k->of_left.arrivals[RING_FULL] = k->p->warps;
    for (uint32_t n = 0; n < CHAIN_PARTS_ACROSS; n++) {
        k->of_turn[n].arrivals[RING_FULL] = CHAIN_WARPS;
        k->of_turn[n].arrivals[RING_EMPTY] = 1;
    }
    k->of_item.arrivals[RING_EMPTY] = k->p->warps + WRITERS;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct lang_expr *tiles_of(struct cg *g, const struct chain_tensor *t)
{
    const struct chain_form *f = t->f;
    struct lang_expr *n = lx_ceil_div_int(g->a, f->row[t->i]->dims[0], WGMMA_ROWS);
    for (uint32_t a = 0; a < f->nrow; a++)
        n = a == t->i ? n : lx_mul(g->a, n, f->row[a]->dims[0]);
    return n;
}

void chain_across_begin(struct cg *g, struct chain_across *a, const struct chain_plan *p)
{
    struct lang_expr *tiles = tiles_of(g, a->t);
    struct lang_expr *numbers = lx_mul_int(g->a, tiles, (int64_t)WGMMA_ROWS * p->columns);
    a->sums = cg_temp(g, "sums", DT_F32, 1, &numbers, true);
    a->added = cg_temp(g, "added", DT_U32, 1, &tiles, true);
}

struct cg_val chain_across_first(struct cg *g, const struct chain_form *f, uint32_t i,
                                 const struct cg_val *row, const struct lang_symbol *j)
{
    struct cg_val n = cg_int(DT_I64, 0);
    for (uint32_t a = 0; a < f->nrow; a++)
        if (a != i)
            n = cg_add(g, cg_binary(g, OP_MUL, n, extent_of(g, f->row[a]).v), row[a]);
    return cg_binary(g, OP_MUL, n, extent_divided(g, j, WGMMA_ROWS).v);
}

/* ---- consumers ------------------------------------------------------------------------------- */

/* The warpgroup stands at the last of its turns, as if that were over. */
static void begin_turns(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    struct ring *r = &k->turn;
    *r = k->of_turn[0].ring;
    r->shared = cg_reg(g, cg_freeze(g, cg_add(g, cg_value(DT_U32, r->shared),
                                              cg_mul(g, k->group, WRITERS * TURN_BYTES))));
    ring_begin(r, 1);
    ring_go_to(r, cg_u32(WRITERS - 1));
}

void chain_across_consume(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const uint32_t words = chain_across_columns(k->p) / 2;
    if (!k->t->across)
        return;
    begin_turns(k);
    ring_begin(&k->of_left.ring, 1);
    k->part_sum = ARENA_ARRAY(g->a, words, int32_t);
    for (uint32_t i = 0; i < words; i++)
        k->part_sum[i] = cg_new_mutable(g, DT_F32);
}

/* Bytes to the lane's row and chunk of the first matrices: 8 rows, and 8 more, of one chunk and of
 * the next. */
static struct cg_val lane_bytes(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const struct cg_val lane = k->x.lane, row = cg_binary(g, OP_AND, lane, cg_u32(15));
    const struct cg_val turn = cg_binary(g, OP_AND, lane, cg_u32(7));
    const struct cg_val chunk = cg_binary(g, OP_XOR, cg_binary(g, OP_SHR, lane, cg_u32(4)), turn);
    const struct cg_val at = cg_mul(g, cg_add(g, k->before, row), WGMMA_SPAN);
    return cg_add(g, at, cg_mul(g, chunk, 16));
}

void chain_across_give(struct chain_wgmma *k, uint32_t column)
{
    struct cg *g = k->g;
    const struct ring *r = &k->of_left.ring;
    if (!k->t->across || k->t->across->column != column)
        return;
    ring_wait(r, RING_EMPTY);
    const struct cg_val own = lane_bytes(k);
    const struct cg_val at = cg_freeze(g, cg_add(g, ring_stage(r), own));
    for (uint32_t step = 0; step < k->p->wide / 16; step++) {
        struct ptx_operand word[VECTOR];
        for (uint32_t i = 0; i < VECTOR; i++)
            word[i] = ptx_r(k->x.word[column][VECTOR * step + i]);
        const struct cg_val to = cg_binary(g, OP_XOR, at, cg_u32(32 * step));
        PTX(&g->b, "stmatrix.sync.aligned.m8n8.x4.shared.b16", ptx_mem(cg_reg(g, to), 0),
            ptx_vec(&g->b, VECTOR, word));
    }
    ring_hand_over(r, RING_FULL);
    ring_next(r);
}

/* Bytes to the warpgroup's columns of the rows' tile, which lies across. */
static struct cg_val column_bytes(struct chain_wgmma *k, const struct wgmma_layout *lay)
{
    const uint32_t columns = chain_across_columns(k->p), span = WGMMA_SPAN / lay->size;
    const uint32_t bytes = columns % span ? columns * lay->size : columns / span * lay->atom_bytes;
    return cg_mul(k->g, k->group, bytes);
}

static void multiply(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const struct chain_across *a = k->t->across;
    const struct chain_box *q = &k->q[a->score];
    const uint32_t columns = chain_across_columns(k->p), rows = chain_wgmma_block_rows(k->p);
    const struct wgmma_layout lay = wgmma_layout(false, q->lay.size, k->p->columns, rows);
    const struct wgmma_kind kind = {.left = a->t->column[0].kind.left,
                                    .right = a->t->column[0].kind.right,
                                    .sum = DT_F32,
                                    .columns = columns,
                                    .across = {true, true}};
    struct ptx_operand *const sum = ARENA_ARRAY(g->a, columns / 2, struct ptx_operand);
    const struct cg_val right = cg_add(g, ring_stage(&k->of_q.ring), cg_u32(q->offset));
    const int32_t left = wgmma_low_word(g, &k->left, ring_stage(&k->of_left.ring)),
                  low = wgmma_low_word(g, &lay, cg_add(g, right, column_bytes(k, &lay)));
    for (uint32_t i = 0; i < columns / 2; i++)
        sum[i] = ptx_r(k->part_sum[i]);
    wgmma_fence(g);
    for (uint32_t i = 0; i < rows * lay.size / WGMMA_STEP; i++) {
        const struct ptx_operand value =
            wgmma_descriptor(g, low, k->high, wgmma_step_bytes(&lay, i));
        const struct ptx_operand score =
            wgmma_descriptor(g, left, k->high, wgmma_step_bytes(&k->left, i));
        wgmma_multiply(g, &kind, sum, score, value, i ? k->always : k->never);
    }
    wgmma_commit(g);
}

/* The part to shared memory, where the one before has been read, for the next writer. */
static void leave_part(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const struct ring *r = &k->turn;
    const uint32_t bytes = k->of_part.bytes;
    const struct cg_val mine = cg_binary(g, OP_AND, k->thread, cg_u32(WGMMA_GROUP - 1));
    ring_wait(r, RING_EMPTY);
    ring_next(r);
    const struct cg_val part =
        cg_add(g, cg_value(DT_U32, k->of_part.ring.shared), cg_mul(g, k->group, bytes));
    const int32_t at = cg_reg(g, cg_add(g, part, cg_mul(g, mine, VECTOR * 4)));
    for (uint32_t i = 0; i < chain_across_columns(k->p) / 2; i += VECTOR) {
        struct ptx_operand word[VECTOR];
        for (uint32_t w = 0; w < VECTOR; w++)
            word[w] = ptx_r(k->part_sum[i + w]);
        PTX(&g->b, "st.shared.v4.f32", ptx_mem(at, i * 4 * WGMMA_GROUP),
            ptx_vec(&g->b, VECTOR, word));
    }
    ring_hand_over(r, RING_FULL);
}

/* The part of the tile before. With two stages the ring stands at that one's, which comes next; and
 * waits for the stage to be read by the parity by which that was filled. */
static void take(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const struct ring *r = &k->of_left.ring;
    ring_wait(r, RING_FULL);
    multiply(k);
    wgmma_wait_groups(g, 0);
    for (uint32_t i = 0; i < chain_across_columns(k->p) / 2; i++)
        cg_assigned(g, k->part_sum[i]);
    const struct cg_val is_first = cg_binary(g, OP_EQ, r->lane, cg_u32(0));
    PTX_IF(&g->b, cg_reg(g, is_first), "mbarrier.arrive.shared::cta.b64", ptx_sink(),
           ptx_mem(r->full, r->stages * RING_BARRIER));
    leave_part(k);
}

/* That of the last tile, whose stage is the one behind. */
static void take_last(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const struct ring *r = &k->of_left.ring;
    const struct cg_val offset = cg_value(DT_U32, r->offset), full = cg_value(DT_U32, r->full),
                        parity = cg_value(DT_U32, r->parity);
    const struct cg_val was[3] = {cg_freeze(g, offset), cg_freeze(g, full), cg_freeze(g, parity)};
    ring_next(r);
    take(k);
    cg_move(g, r->offset, was[0]);
    cg_move(g, r->full, was[1]);
    cg_move(g, r->parity, was[2]);
}

void chain_across_take(struct chain_wgmma *k, bool is_last)
{
    struct cg *g = k->g;
    if (!k->t->across)
        return;
    const uint32_t none = cg_label(g, "untaken");
    if (!is_last) {
        const struct cg_val here = cg_value(DT_U32, k->j);
        const struct cg_val first = cg_binary(g, OP_EQ, here, chain_wgmma_first_j(k));
        cg_jump_if(g, cg_reg(g, first), true, none);
    }
    const size_t mark = cg_scope_open(g);
    if (is_last)
        take_last(k);
    else
        take(k);
    cg_scope_close(g, mark);
    cg_place(g, none);
    cg_loop_head(g);
}

/* ---- writers --------------------------------------------------------------------------------- */

/* The first tile of rows that has terms for the tile of j: where its first j's begin. */
static struct cg_val first_rows(struct chain_wgmma *k, struct cg_val j)
{
    struct cg *g = k->g;
    const struct chain_tensor *t = k->t;
    const size_t bound = g->bindings.n;
    if (!t->across->from)
        return cg_u32(0);
    for (uint32_t a = 0; a < t->f->nrow; a++)
        if (a != t->i)
            cg_bind(g, t->f->row[a], k->x.row[a], false);
    cg_bind(g, t->f->j, cg_index(g, j), false);
    const struct cg_val from = cg_convert(g, cg_expr(g, t->across->from), DT_I64);
    g->bindings.n = bound;
    const struct cg_val row = cg_convert(g, cg_minmax(g, true, from, cg_int(DT_I64, 0)), DT_U32);
    return cg_binary(g, OP_DIV, row, cg_u32(chain_wgmma_block_rows(k->p)));
}

/* Waits until all blocks with earlier rows have added theirs. */
static void wait_for_turn(struct chain_wgmma *k, struct cg_val j, const struct cg_place_of *added)
{
    struct cg *g = k->g;
    const struct cg_val mine =
        cg_binary(g, OP_DIV, k->x.block_first, cg_u32(chain_wgmma_block_rows(k->p)));
    const int32_t turn = cg_reg(g, cg_freeze(g, cg_binary(g, OP_SUB, mine, first_rows(k, j))));
    const int32_t now = cg_new(g, DT_U32), early = cg_new(g, DT_BOOL);
    const uint32_t again = cg_label(g, "turn");
    cg_place(g, again);
    PTX(&g->b, "ld.acquire.gpu.global.u32", ptx_r(now), cg_mem(*added));
    PTX(&g->b, "setp.ne.s32", ptx_r(early), ptx_r(now), ptx_r(turn));
    cg_jump_if(g, early, true, again);
}

/* Adds warpgroup n's part of a tile, whose sums begin there, as soon as it is there. */
static void write_part(struct chain_wgmma *k, uint32_t n, struct cg_place_of to)
{
    struct cg *g = k->g;
    const struct ring *turn = &k->of_turn[n].ring;
    const uint32_t bytes = part_bytes(k->p);
    ring_wait(turn, RING_FULL);
    PTX(&g->b, "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32",
        ptx_mem(to.base, to.offset + n * bytes), ptx_mem(k->of_part.ring.shared, n * bytes),
        ptx_imm(bytes));
    PTX0(&g->b, "cp.async.bulk.commit_group");
}

/* It has been read, though the latest `but` may not: its place is free. */
static void free_part(struct chain_wgmma *k, uint32_t n, uint32_t but)
{
    struct cg *g = k->g;
    const struct ring *turn = &k->of_turn[n].ring;
    tma_wait_read(g, but);
    PTX(&g->b, "mbarrier.arrive.shared::cta.b64", ptx_sink(),
        ptx_mem(turn->full, turn->stages * RING_BARRIER));
    CG_ASSIGN(g, turn->parity, "xor.b32", ptx_r(turn->parity), ptx_imm(1));
}

/* Adds all of the tile whose first j is `j`, of which the batch's first tile is number `first`. */
static void write_tile(struct chain_wgmma *k, struct cg_val first, struct cg_val j)
{
    struct cg *g = k->g;
    const struct chain_across *a = k->t->across;
    const struct cg_val tile = cg_binary(g, OP_DIV, j, cg_u32(WGMMA_ROWS));
    const struct cg_val n = cg_freeze(g, cg_add(g, first, cg_index(g, tile)));
    const struct cg_val numbers = cg_int(DT_I64, WGMMA_ROWS * k->p->columns);
    const struct cg_place_of to = cg_address(g, a->sums, cg_binary(g, OP_MUL, n, numbers));
    const struct cg_place_of added = cg_address(g, a->added, n);
    if (!a->any)
        wait_for_turn(k, j, &added);
    const uint32_t parts = chain_wgmma_consumers(k->p);
    for (uint32_t i = 0; i < parts; i++)
        write_part(k, i, to);
    for (uint32_t i = 0; i < parts; i++)
        free_part(k, i, parts - 1 - i);
    if (a->any)
        return;
    PTX(&g->b, "cp.async.bulk.wait_group", ptx_imm(0));
    PTX(&g->b, "red.release.gpu.global.add.u32", cg_mem(added), ptx_imm(1));
}

/* By one thread of the warp, all of which find what is written. */
static void write_item(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const uint32_t head = cg_label(g, "tile"), others = cg_label(g, "others"),
                   written = cg_label(g, "written");
    struct cg_nest nest;
    chain_tile_find(&k->x);
    chain_wgmma_find_tiles(k);
    const struct cg_val mine = cg_binary(g, OP_EQ, k->x.lane, cg_u32(0));
    const struct cg_val some = cg_binary(g, OP_NE, k->count, cg_u32(0));
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LAND, mine, some)), false, written);
    size_t mark = cg_scope_open(g);
    const struct cg_val first =
        cg_freeze(g, chain_across_first(g, k->t->f, k->t->i, k->x.row, k->t->f->j));
    const int32_t j = cg_mutable(g, chain_wgmma_first_j(k)), rest = cg_mutable(g, k->count);
    const int32_t more = cg_new(g, DT_BOOL);
    cg_place(g, head);
    cg_loop_head(g);
    const size_t inner = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, j);
    cg_nest_varies(g, &nest, rest);
    for (uint32_t n = 0; n < chain_wgmma_consumers(k->p); n++)
        ring_varies(&k->of_turn[n].ring, &nest);
    cg_nest_varies(g, &nest, k->until);
    const struct cg_val here = cg_freeze(g, cg_value(DT_U32, j));
    CG_ASSIGN(g, k->until, "sub.s32", ptx_r(k->until), ptx_imm(1));
    PTX(&g->b, "setp.ne.s32", ptx_r(more), ptx_r(k->until), ptx_imm(0));
    cg_jump_if(g, more, true, others);
    const size_t own = cg_scope_open(g);
    write_tile(k, first, here);
    CG_ASSIGN(g, k->until, "mov.u32", ptx_imm(WRITERS));
    cg_scope_close(g, own);
    cg_place(g, others);
    cg_loop_head(g);
    cg_move(g, j, chain_wgmma_next_j(k, here, false));
    CG_ASSIGN(g, rest, "sub.s32", ptx_r(rest), ptx_imm(1));
    PTX(&g->b, "setp.ne.s32", ptx_r(more), ptx_r(rest), ptx_imm(0));
    cg_jump_if(g, more, true, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, inner);
    cg_scope_close(g, mark);
    cg_place(g, written);
    cg_loop_head(g);
    PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
}

void chain_across_write(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    k->before = cg_u32(0);
    chain_wgmma_begin_rings(k, 0);
    for (uint32_t n = 0; n < chain_wgmma_consumers(k->p); n++)
        ring_go_to(&k->of_turn[n].ring, cg_binary(g, OP_SUB, k->warp, cg_u32(1)));
    k->until = cg_mutable(g, k->warp);
    chain_wgmma_for_items(k, false, write_item);
    PTX(&g->b, "cp.async.bulk.wait_group", ptx_imm(0));
}
