/* A kernel that is no matmul, by the parts that products of matrices by mma.sync share
 * (mma/fragment.h, products.h): two products one after the other, the first one's sums being the
 * left factor of the second (chain.h).
 *
 * A block is one warp with 16 rows of q. It copies 16 rows of k and v at a time by cp.async: k lies
 * along c, which the first product adds up, v across j, which the second does.
 *
 *     lower_chain_mma --print     the PTX with its contract
 */
#include <config.h>

#include "lower/mma/fragment.h"

#include "chain.h"

enum {
    ROWS = MMA_ROWS, /* of each tile */
    ROW_BYTES = COLUMNS * 2,
    TILE_BYTES = ROWS * ROW_BYTES,
    CHUNKS = ROW_BYTES / MMA_CHUNK,
    STEPS = ROW_BYTES / MMA_STEP,
    BLOCKS = COLUMNS / MMA_COLUMNS, /* of the second product's sums */
    LANES = 32,
};

/* Tiles lie one behind the other: q, k, v. */
static const struct mma_lay lay[3] = {
    {.layout = MMA_ALONG_K, .tall = true, .row_bytes = ROW_BYTES, .span = ROWS},
    {.layout = MMA_ALONG_K, .row_bytes = ROW_BYTES, .span = ROWS},
    {.layout = MMA_16BIT, .row_bytes = ROW_BYTES, .span = COLUMNS},
};
static const struct mma_kind kind = {DT_F16, DT_F16};

struct chain {
    struct cg *g;
    struct cg_val lane, row; /* u32; row: the block's first */
    int32_t shared;
    int32_t at[3][MMA_WAYS]; /* the lane's addresses in each tile */
};

static const struct lang_symbol *param(const struct chain *x, uint32_t n)
{
    return x->g->spec->params.v[n].sym;
}

static void begin(struct chain *x)
{
    struct cg *g = x->g;
    struct ptx_var *const area = cg_dynamic(g);
    const struct ptx_operand at = ptx_sym(area);
    area->align = ROW_BYTES;
    x->lane = cg_special(g, SP_TID_X);
    x->row = cg_mul(g, cg_special(g, SP_CTAID_X), ROWS);
    x->shared = cg_pure(g, PTX_B32, "mov.u32", 1, &at);
    for (uint32_t n = 0; n < 3; n++)
        for (uint32_t way = 0; way < mma_ways(&lay[n], STEPS); way++)
            x->at[n][way] = cg_reg(g, mma_lane_address(g, &lay[n], x->lane, cg_u32(0), way,
                                                       x->shared, n * TILE_BYTES));
}

/* 16 rows of input n from row `first` on: a lane copies a chunk of every fourth. */
static void copy(struct chain *x, uint32_t n, struct cg_val first)
{
    struct cg *g = x->g;
    const struct cg_val chunk = cg_binary(g, OP_AND, x->lane, cg_u32(CHUNKS - 1));
    const struct cg_val of = cg_binary(g, OP_DIV, x->lane, cg_u32(CHUNKS));
    const struct cg_val end = cg_convert(g, cg_extent(g, param(x, n), 0), DT_U32);
    for (uint32_t i = 0; i < ROWS * CHUNKS / LANES; i++) {
        const struct cg_val row = cg_add(g, of, cg_u32(i * LANES / CHUNKS));
        const struct cg_val there = cg_add(g, first, row);
        const struct cg_val sub[] = {cg_index(g, there),
                                     cg_index(g, cg_mul(g, chunk, MMA_CHUNK / 2))};
        struct cg_val to = cg_add(g, mma_chunk(g, &lay[n], row, chunk), cg_u32(n * TILE_BYTES));
        to = cg_add(g, to, cg_value(DT_U32, x->shared));
        const int32_t inside = cg_reg(g, cg_binary(g, OP_LT, there, end));
        const struct cg_val bytes = cg_select(g, inside, cg_u32(MMA_CHUNK), cg_u32(0));
        const struct cg_place_of from =
            cg_address(g, param(x, n), cg_flat_index(g, param(x, n), 2, sub));
        mma_copy_async(g, -1, ptx_mem(cg_reg(g, to), 0), cg_mem(from), MMA_CHUNK, cg_reg(g, bytes));
    }
}

/* What was copied is there, for all lanes. */
static void meet(struct chain *x)
{
    mma_commit_copies(x->g);
    mma_wait_copies(x->g, 0);
    PTX(&x->g->b, "bar.warp.sync", ptx_imm(-1));
}

static void make(struct cg *g, enum dtype t, int32_t *reg, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        reg[i] = cg_new_mutable(g, t);
}

static void clear(struct cg *g, const int32_t *sum, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        cg_move(g, sum[i], cg_float(g, DT_F32, 0));
}

static void multiply(struct cg *g, const int32_t *d, const int32_t *a, const int32_t *b)
{
    mma_product(g, &kind, d, d, a, b);
    for (uint32_t i = 0; i < 4; i++)
        cg_assigned(g, d[i]);
}

/* o += f16(q k) v of the 16 rows of k and v that are there. */
static void multiply_tile(struct chain *x, const int32_t *q, const int32_t *o)
{
    struct cg *g = x->g;
    int32_t k[ROWS / 4], v[COLUMNS / 4], s[2 * 4], p[4];
    make(g, DT_U32, k, ROWS / 4);
    make(g, DT_U32, v, COLUMNS / 4);
    make(g, DT_F32, s, 2 * 4);
    clear(g, s, 2 * 4);
    for (uint32_t step = 0; step < STEPS; step++) {
        mma_load_words(g, &lay[1], x->at[1], step, k);
        for (uint32_t j = 0; j < 2; j++)
            multiply(g, s + (size_t)4 * j, q + (size_t)4 * step, k + (size_t)2 * j);
    }
    for (uint32_t w = 0; w < 4; w++) {
        struct cg_val pair[2];
        for (uint32_t i = 0; i < 2; i++)
            pair[i] = cg_convert(g, cg_value(DT_F32, s[2 * w + i]), DT_F16);
        p[w] = cg_pack(g, DT_F16, 2, pair).reg;
    }
    mma_load_words(g, &lay[2], x->at[2], 0, v);
    for (uint32_t j = 0; j < BLOCKS; j++)
        multiply(g, o + (size_t)4 * j, p, v + (size_t)2 * j);
}

static void store(struct chain *x, const int32_t *o)
{
    struct cg *g = x->g;
    const struct lang_symbol *t = param(x, 3);
    const struct cg_val group = cg_binary(g, OP_SHR, x->lane, cg_u32(2));
    const struct cg_val member = cg_mul(g, cg_binary(g, OP_AND, x->lane, cg_u32(3)), 2);
    for (uint32_t half = 0; half < 2; half++) {
        struct cg_val row = cg_add(g, x->row, cg_u32(mma_row_of(&lay[0], 0, half)));
        row = cg_index(g, cg_add(g, row, group));
        const int32_t inside = cg_reg(g, cg_binary(g, OP_LT, row, cg_extent(g, t, 0)));
        for (uint32_t j = 0; j < BLOCKS; j++) {
            const struct cg_val column = cg_add(g, member, cg_u32(mma_row_of(&lay[2], j, 0)));
            const struct cg_val sub[] = {row, cg_index(g, column)};
            const struct ptx_operand v[] = {ptx_r(o[4 * j + 2 * half]),
                                            ptx_r(o[4 * j + 2 * half + 1])};
            PTX_IF(&g->b, inside, "st.global.v2.f32",
                   cg_mem(cg_address(g, t, cg_flat_index(g, t, 2, sub))), ptx_vec(&g->b, 2, v));
        }
    }
}

static void for_tiles(struct chain *x, const int32_t *q, const int32_t *o)
{
    struct cg *g = x->g;
    const uint32_t head = cg_label(g, "tile");
    const int32_t j = cg_new_mutable(g, DT_U32);
    const struct cg_val n = cg_convert(g, cg_extent(g, param(x, 1), 0), DT_U32);
    struct cg_nest nest;
    cg_move(g, j, cg_u32(0));
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, j);
    copy(x, 1, cg_value(DT_U32, j));
    copy(x, 2, cg_value(DT_U32, j));
    meet(x);
    multiply_tile(x, q, o);
    PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
    CG_ASSIGN(g, j, "add.s32", ptx_r(j), ptx_imm(ROWS));
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, cg_value(DT_U32, j), n)), true, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
}

static void generate(struct cg *g)
{
    struct chain x = {.g = g};
    int32_t q[STEPS * 4], o[BLOCKS * 4];
    cg_begin(g, "chain");
    g->block[0] = LANES;
    g->block[1] = g->block[2] = 1;
    begin(&x);
    make(g, DT_U32, q, STEPS * 4);
    make(g, DT_F32, o, BLOCKS * 4);
    clear(g, o, BLOCKS * 4);
    copy(&x, 0, x.row);
    meet(&x);
    for (uint32_t step = 0; step < STEPS; step++)
        mma_load_words(g, &lay[0], x.at[0], step, q + (size_t)4 * step);
    for_tiles(&x, q, o);
    store(&x, o);
    g->func->reqntid[0] = LANES;
    g->func->reqntid[1] = g->func->reqntid[2] = 1;
    struct contract_launch *launch = cg_launch(g, blocks(g, 16), lx_int(g->a, LANES));
    launch->shared = lx_int(g->a, 3 * TILE_BYTES);
    cg_end(g, launch);
}

int main(int argc, char **argv)
{
    return chain_main(argc, argv, "sm_80", generate);
}
