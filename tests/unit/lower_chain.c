/* A kernel that is no matmul, by the parts that products of matrices share (wgmma/ring.h,
 * products.h, tma.h, box.h): two products one after the other, the first one's sums being the left
 * factor of the second (chain.h).
 *
 * One thread copies 64 rows of q once, and tiles of k and v to a ring; a warpgroup keeps the sums
 * of both products in registers.
 *
 *     lower_chain --print     the PTX with its contract
 */
#include <config.h>

#include "lower/wgmma/box.h"
#include "lower/wgmma/products.h"
#include "lower/wgmma/ring.h"
#include "lower/wgmma/tma.h"
#include "chain.h"

enum {
    TILE = 64, /* rows of q, rows of k and v in a stage, and their columns */
    TILE_BYTES = TILE * TILE * 2,
    STAGES = 2,
    STEPS = TILE * 2 / WGMMA_STEP,
    WORDS = TILE / 2, /* sums of a lane */
    BOX_COLUMNS = BOX_SPAN / 4,
    K = 0, /* bytes in a stage */
    V = TILE_BYTES,
    Q = STAGES * 2 * TILE_BYTES, /* bytes of shared memory */
    BOXES = Q + TILE_BYTES,      /* a warp's two, one behind the other */
    BARRIERS = BOXES + 4 * 2 * BOX_BYTES,
    Q_BARRIERS = BARRIERS + 2 * STAGES * RING_BARRIER,
    ALL_BYTES = Q_BARRIERS + 2 * RING_BARRIER,
};

struct chain {
    struct cg *g;
    struct cg_val thread, lane, row, stages; /* u32; row: the block's first */
    int32_t shared, map[4];                  /* of q, k, v and o */
    struct ring ring, of_q;
};

static const struct lang_symbol *param(const struct chain *x, uint32_t n)
{
    return x->g->spec->params.v[n].sym;
}

static void begin(struct chain *x)
{
    struct cg *g = x->g;
    static const uint32_t box[] = {TILE, TILE}, out[] = {BOX_COLUMNS, BOX_ROWS};
    struct ptx_var *const area = cg_dynamic(g);
    const struct ptx_operand at = ptx_sym(area);
    area->align = WGMMA_ALIGN;
    x->thread = cg_special(g, SP_TID_X);
    x->lane = cg_binary(g, OP_AND, x->thread, cg_u32(31));
    x->row = cg_mul(g, cg_special(g, SP_CTAID_X), TILE);
    x->shared = cg_pure(g, PTX_B32, "mov.u32", 1, &at);
    for (uint32_t i = 0; i < 4; i++)
        x->map[i] = cg_param_map(g, param(x, i), i < 3 ? box : out, false);
    const struct cg_val n = cg_convert(g, cg_extent(g, param(x, 1), 0), DT_U32);
    x->stages = cg_binary(g, OP_DIV, cg_add(g, n, cg_u32(TILE - 1)), cg_u32(TILE));
    x->ring = (struct ring){.g = g,
                            .shared = x->shared,
                            .stages = STAGES,
                            .stage_bytes = 2 * TILE_BYTES,
                            .barriers = BARRIERS,
                            .sets = 2,
                            .lane = x->lane};
    x->of_q = x->ring;
    x->of_q.stages = 1;
    x->of_q.stage_bytes = TILE_BYTES;
    x->of_q.barriers = Q_BARRIERS;
}

static void make_barriers(struct chain *x)
{
    static const uint32_t arrivals[] = {1, WGMMA_GROUP / 32};
    struct cg *g = x->g;
    const uint32_t made = cg_label(g, "made");
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, x->thread, cg_u32(0))), false, made);
    ring_init(&x->ring, arrivals);
    ring_init(&x->of_q, arrivals);
    PTX0(&g->b, "fence.mbarrier_init.release.cluster");
    cg_scope_close(g, mark);
    cg_place(g, made);
    PTX(&g->b, "bar.sync", ptx_imm(0));
}

/* A tile of input n from row `row` on, to the shared address + offset, for the ring's stage. */
static void bring(struct chain *x, const struct ring *r, uint32_t n, struct cg_val row, int32_t to,
                  uint32_t offset)
{
    const struct tma_box box = {
        .map = x->map[n], .rank = 2, .at = {ptx_imm(0), ptx_r(cg_reg(x->g, row))}};
    tma_load(x->g, &box, to, offset, r->full, -1);
}

static void produce(struct chain *x)
{
    struct cg *g = x->g;
    struct ring_loop l;
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, x->thread, cg_u32(0))), false, g->exit);
    g->exit_used = true;
    ring_begin(&x->of_q, 1);
    ring_expect(&x->of_q, TILE_BYTES);
    bring(x, &x->of_q, 0, x->row, x->shared, Q);
    const int32_t j = cg_mutable(g, cg_u32(0));
    ring_begin(&x->ring, 1);
    ring_for(&x->ring, &l, x->stages);
    cg_nest_varies(g, &l.nest, j);
    ring_wait(&x->ring, RING_EMPTY);
    ring_expect(&x->ring, 2 * TILE_BYTES);
    const int32_t stage = cg_reg(g, ring_stage(&x->ring));
    bring(x, &x->ring, 1, cg_value(DT_U32, j), stage, K);
    bring(x, &x->ring, 2, cg_value(DT_U32, j), stage, V);
    cg_move(g, j, cg_add(g, cg_value(DT_U32, j), cg_u32(TILE)));
    ring_for_end(&x->ring, &l);
    cg_jump(g, g->exit);
}

/* ---- products -------------------------------------------------------------------------------- */

static int32_t predicate(struct cg *g, bool v)
{
    const int32_t p = cg_new(g, DT_BOOL);
    cg_move(g, p, cg_bool(g, v));
    return p;
}

static void operands(struct ptx_operand *to, const int32_t *sum)
{
    for (uint32_t w = 0; w < WORDS; w++)
        to[w] = ptx_r(sum[w]);
}

/* The groups of products so far are over, and have written these sums. */
static void finish(struct cg *g, const int32_t *sum)
{
    wgmma_commit(g);
    wgmma_wait_groups(g, 0);
    for (uint32_t w = 0; w < WORDS; w++)
        cg_assigned(g, sum[w]);
}

static const struct wgmma_kind kind = {
    .left = DT_F16, .right = DT_F16, .sum = DT_F32, .columns = TILE};

/* s = q k: both lie along c. */
static void multiply_first(struct chain *x, const int32_t *s, int32_t q, int32_t high)
{
    struct cg *g = x->g;
    const struct wgmma_layout l = wgmma_layout(true, 2, TILE, TILE);
    const int32_t k = wgmma_low_word(g, &l, cg_add(g, ring_stage(&x->ring), cg_u32(K)));
    const int32_t never = predicate(g, false), always = predicate(g, true);
    struct ptx_operand sum[WORDS];
    operands(sum, s);
    wgmma_fence(g);
    for (uint32_t step = 0; step < STEPS; step++)
        wgmma_multiply(g, &kind, sum, wgmma_descriptor(g, q, high, wgmma_step_bytes(&l, step)),
                       wgmma_descriptor(g, k, high, wgmma_step_bytes(&l, step)),
                       step ? always : never);
    finish(g, s);
}

/* o += f16(s) v: the left factor is in registers, v lies across. */
static void multiply_second(struct chain *x, const int32_t *s, const int32_t *o, int32_t high)
{
    struct cg *g = x->g;
    const struct wgmma_layout l = wgmma_layout(false, 2, TILE, TILE);
    const int32_t v = wgmma_low_word(g, &l, cg_add(g, ring_stage(&x->ring), cg_u32(V)));
    const int32_t always = predicate(g, true);
    struct wgmma_kind second = kind;
    struct ptx_operand sum[WORDS], word[WORDS / 2];
    second.across[1] = true;
    operands(sum, o);
    for (uint32_t w = 0; w < WORDS / 2; w++) {
        struct cg_val pair[2];
        for (uint32_t i = 0; i < 2; i++)
            pair[i] = cg_convert(g, cg_value(DT_F32, s[2 * w + i]), DT_F16);
        word[w] = cg_pack(g, DT_F16, 2, pair);
    }
    wgmma_fence(g);
    for (uint32_t step = 0; step < STEPS; step++)
        wgmma_multiply(g, &second, sum, ptx_vec(&g->b, 4, word + (size_t)4 * step),
                       wgmma_descriptor(g, v, high, wgmma_step_bytes(&l, step)), always);
    finish(g, o);
}

/* Each warp's 16 rows go by way of its boxes. */
static void store(struct chain *x, const int32_t *o)
{
    struct cg *g = x->g;
    const struct cg_val warp =
        cg_binary(g, OP_AND, cg_binary(g, OP_SHR, x->thread, cg_u32(5)), cg_u32(3));
    struct cg_val base = cg_add(g, cg_value(DT_U32, x->shared), cg_u32(BOXES));
    base = cg_add(g, base, cg_mul(g, warp, 2 * BOX_BYTES));
    int32_t at[BOX_PIECES];
    box_pieces(g, x->lane, 4, base, at);
    for (uint32_t w = 0; w < WORDS; w += 2) {
        const uint32_t columns = w / 4, half = w / 2 % 2;
        const struct ptx_operand pair[2] = {ptx_r(o[w]), ptx_r(o[w + 1])};
        box_put_pair(g, DT_F32, at[columns % 4], columns / 4 * BOX_BYTES, half, pair);
    }
    PTX0(&g->b, "fence.proxy.async.shared::cta");
    PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
    const uint32_t sent = cg_label(g, "sent");
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, x->lane, cg_u32(0))), false, sent);
    const struct cg_val row = cg_add(g, x->row, cg_mul(g, warp, BOX_ROWS));
    for (uint32_t i = 0; i < 2; i++) {
        const struct tma_box box = {
            .map = x->map[3], .rank = 2, .at = {ptx_imm(i * BOX_COLUMNS), ptx_r(cg_reg(g, row))}};
        tma_store(g, &box, cg_reg(g, base), i * BOX_BYTES);
    }
    tma_wait_read(g, 0);
    cg_place(g, sent);
}

static void consume(struct chain *x)
{
    struct cg *g = x->g;
    const struct wgmma_layout l = wgmma_layout(true, 2, TILE, TILE);
    int32_t s[WORDS], o[WORDS];
    struct ring_loop loop;
    for (uint32_t w = 0; w < WORDS; w++) {
        s[w] = cg_new_mutable(g, DT_F32);
        o[w] = cg_new_mutable(g, DT_F32);
        cg_move(g, o[w], cg_float(g, DT_F32, 0));
    }
    ring_begin(&x->of_q, 0);
    ring_begin(&x->ring, 0);
    const struct ring_release release = ring_release_here(&x->ring);
    const int32_t high = wgmma_high_word(g);
    const int32_t q = wgmma_low_word(g, &l, cg_add(g, cg_value(DT_U32, x->shared), cg_u32(Q)));
    ring_wait(&x->of_q, RING_FULL);
    ring_for(&x->ring, &loop, x->stages);
    ring_wait(&x->ring, RING_FULL);
    multiply_first(x, s, q, high);
    multiply_second(x, s, o, high);
    ring_note(&x->ring, &release);
    ring_release(&x->ring, &release, release.mine);
    ring_for_end(&x->ring, &loop);
    store(x, o);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static void generate(struct cg *g)
{
    struct chain x = {.g = g};
    cg_begin(g, "chain");
    const uint32_t consumes = cg_label(g, "consumer");
    g->block[0] = 2 * WGMMA_GROUP;
    g->block[1] = g->block[2] = 1;
    begin(&x);
    make_barriers(&x);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, x.thread, cg_u32(WGMMA_GROUP))), true, consumes);
    size_t mark = cg_scope_open(g);
    produce(&x);
    cg_scope_close(g, mark);
    cg_place(g, consumes);
    mark = cg_scope_open(g);
    consume(&x);
    cg_scope_close(g, mark);
    g->func->reqntid[0] = 2 * WGMMA_GROUP;
    g->func->reqntid[1] = g->func->reqntid[2] = 1;
    struct contract_launch *launch = cg_launch(g, blocks(g, 64), lx_int(g->a, 2 * WGMMA_GROUP));
    launch->shared = lx_int(g->a, ALL_BYTES);
    cg_end(g, launch);
}

int main(int argc, char **argv)
{
    return chain_main(argc, argv, "sm_90a", generate);
}
