/* Tiles in shared memory, and words for mma.sync from them (mma/fragment.h). */
#include <config.h>

#include "lower/mma/fragment.h"

#include "base/internal.h"

static struct cg_val op(struct cg *g, enum lang_op o, struct cg_val x, uint32_t y)
{
    return cg_binary(g, o, x, cg_u32(y));
}

/* ---- places ---------------------------------------------------------------------------------- */

uint32_t mma_factor(const struct mma_lay *l)
{
    return l->layout == MMA_BYTES || (l->layout == MMA_SINGLES && l->tall) || l->spaced ? 2 : 1;
}

uint32_t mma_row_of(const struct mma_lay *l, uint32_t i, uint32_t half)
{
    const uint32_t f = mma_factor(l);
    if (l->tall)
        return 16 * i + (f == 1 ? 8 * half : half);
    return i / f * 8 * f + half * f + i % f;
}

uint32_t mma_pair_of(const struct mma_lay *l, uint32_t i)
{
    return l->tall ? i / 2 * 4 + i % 2 : 2 * i;
}

/* The number of row r that its chunks' order is made from. */
static struct cg_val order_of(struct cg *g, const struct mma_lay *l, struct cg_val r, uint32_t d)
{
    if (l->layout == MMA_SINGLES) {
        r = l->paired ? cg_binary(g, OP_SHR, r, cg_u32(1)) : r;
        r = cg_binary(g, OP_DIV, cg_binary(g, OP_AND, r, cg_u32(3)), cg_u32(8 / d));
        return cg_binary(g, OP_AND, cg_mul(g, r, 2), cg_u32(d - 1));
    }
    if (l->layout ==
        MMA_BYTES) { /* an ldmatrix takes rows 0 1 4 5 8 9 12 13, the next one those between */
        struct cg_val high = cg_binary(g, OP_AND, cg_binary(g, OP_SHR, r, cg_u32(1)), cg_u32(6));
        r = cg_add(g, high, cg_binary(g, OP_AND, r, cg_u32(1)));
    }
    return cg_binary(g, OP_AND, cg_binary(g, OP_DIV, r, cg_u32(8 / d)), cg_u32(d - 1));
}

struct cg_val mma_chunk(struct cg *g, const struct mma_lay *l, struct cg_val r, struct cg_val c)
{
    const uint32_t n = l->row_bytes / MMA_CHUNK, power = n & (0 - n);
    const uint32_t d = power < 8 ? power : 8; /* chunks that change places with each other */
    c = cg_binary(g, OP_XOR, c, order_of(g, l, r, d));
    return cg_weighted(g, r, l->row_bytes, c, MMA_CHUNK);
}

/* The lane's row of the tile and chunk in it, of its way-th address; *byte: in the chunk. */
static void find_lane(struct cg *g, const struct mma_lay *l, struct cg_val lane, struct cg_val base,
                      uint32_t way, struct cg_val *row, struct cg_val *chunk, struct cg_val *byte)
{
    struct cg_val in8 = op(g, OP_AND, lane, 7);
    struct cg_val low = op(g, OP_AND, op(g, OP_SHR, lane, 3), 1), high = op(g, OP_SHR, lane, 4);
    struct cg_val of16 = op(g, OP_AND, lane, 15), turned = cg_add(g, in8, op(g, OP_MUL, high, 8));
    *byte = cg_u32(0);
    switch (l->layout) {
    case MMA_ALONG_K:
        *row = cg_add(g, base, l->tall ? of16 : turned);
        *chunk = cg_add(g, l->tall ? high : low, cg_u32(2 * way));
        return;
    case MMA_16BIT:
        *row = l->tall ? turned : of16;
        *chunk = cg_add(g, l->tall ? low : high, cg_u32(2 * way));
        *chunk = cg_add(g, op(g, OP_DIV, base, 8), *chunk);
        return;
    case MMA_BYTES: {
        const struct cg_val of32 = cg_weighted(g, high, 16, op(g, OP_SHR, in8, 1), 4);
        const struct cg_val odd = op(g, OP_AND, lane, 1);
        *row = cg_add(g, of32, cg_add(g, op(g, OP_MUL, low, 2), odd));
        *chunk = cg_add(g, op(g, OP_DIV, base, 16), cg_u32(way));
        return;
    }
    case MMA_SINGLES: break;
    }
    const uint32_t f = mma_factor(l); /* neighbours that the lane takes at once */
    struct cg_val group = op(g, OP_SHR, lane, 2),
                  of_group = op(g, OP_DIV, group, MMA_CHUNK / 4 / f);
    *row = op(g, OP_MUL, op(g, OP_AND, lane, 3), l->paired ? 2 : 1);
    *chunk = cg_add(g, of_group, cg_u32(2 * f * way));
    *chunk = cg_add(g, op(g, OP_DIV, base, 4), *chunk);
    *byte = op(g, OP_MUL, op(g, OP_MOD, group, MMA_CHUNK / 4 / f), 4 * f);
}

uint32_t mma_ways(const struct mma_lay *l, uint32_t steps)
{
    const uint32_t blocks = l->span / 16;
    switch (l->layout) {
    case MMA_ALONG_K: return steps < 4 ? steps : 4;
    case MMA_16BIT: return blocks < 4 ? blocks : 4;
    case MMA_BYTES: return blocks < 8 ? blocks : 8;
    case MMA_SINGLES: return l->tall ? (blocks < 2 ? 1 : 2) : blocks < 2 ? 2 : 4;
    }
    INTERNAL_ERROR("a tile's layout is one of enum mma_layout, not %d", (int)l->layout);
}

struct cg_val mma_lane_address(struct cg *g, const struct mma_lay *l, struct cg_val lane,
                               struct cg_val base, uint32_t way, int32_t shared, uint32_t offset)
{
    struct cg_val row, chunk, byte;
    find_lane(g, l, lane, base, way, &row, &chunk, &byte);
    const struct cg_val at = cg_add(g, mma_chunk(g, l, row, chunk), byte);
    return cg_add(g, cg_add(g, at, cg_u32(offset)), cg_value(DT_U32, shared));
}

/* ---- loads ----------------------------------------------------------------------------------- */

static void load(struct cg *g, const char *mnemonic, const int32_t *word, uint32_t n,
                 struct ptx_operand from)
{
    struct ptx_operand to[4];
    for (uint32_t i = 0; i < n; i++) {
        to[i] = ptx_r(word[i]);
        cg_assigned(g, word[i]);
    }
    PTX(&g->b, mnemonic, ptx_vec(&g->b, n, to), from);
}

/* The four words of 16 rows of A or 16 columns of B: block number i of the warp's. */
static void load_matrices(struct cg *g, const struct mma_lay *l, const int32_t *at, uint32_t step,
                          const int32_t *word, uint32_t i)
{
    uint32_t way = i, offset = 0;
    switch (l->layout) {
    case MMA_ALONG_K:
        way = step % 4;
        offset = step / 4 * 128 + i * 16 * l->row_bytes;
        break;
    case MMA_16BIT:
        way = i % 4;
        offset = i / 4 * 128 + step * 16 * l->row_bytes;
        break;
    case MMA_BYTES:
        way = i % 8;
        offset = i / 8 * 128 + step * 32 * l->row_bytes;
        break;
    case MMA_SINGLES: INTERNAL_ERROR("single elements are not loaded by ldmatrix");
    }
    load(g,
         l->layout == MMA_ALONG_K ? "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
                                  : "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
         word, 4, ptx_mem(at[way], offset));
}

/* The same, of single elements: k and k + 4 of the lane's of each 8 columns of a flat operand; of a
 * tall one, two of either. */
static void load_singles(struct cg *g, const struct mma_lay *l, const int32_t *at, uint32_t step,
                         const int32_t *word, uint32_t i)
{
    const uint32_t f = mma_factor(l), ways = 4 / f, apart = l->paired ? 1 : 4;
    for (uint32_t b = i * 2 / f; b < (i + 1) * 2 / f; b++)
        for (uint32_t high = 0; high < 2; high++) {
            const uint32_t offset = b / ways * 128 + (step * 8 + high * apart) * l->row_bytes;
            const struct ptx_operand from = ptx_mem(at[b % ways], offset);
            if (l->tall) {
                load(g, "ld.shared.v2.b32", word + (size_t)2 * high, 2, from);
                continue;
            }
            CG_ASSIGN(g, word[2 * (b % 2) + high], "ld.shared.b32", from);
        }
}

void mma_load_block(struct cg *g, const struct mma_lay *l, const int32_t *at, uint32_t step,
                    uint32_t i, const int32_t *word)
{
    if (l->layout == MMA_SINGLES)
        load_singles(g, l, at, step, word, i);
    else
        load_matrices(g, l, at, step, word, i);
}

void mma_load_words(struct cg *g, const struct mma_lay *l, const int32_t *at, uint32_t step,
                    const int32_t *word)
{
    for (uint32_t i = 0; i < l->span / 16; i++)
        mma_load_block(g, l, at, step, i, word + (size_t)i * 4);
}

/* ---- copies ---------------------------------------------------------------------------------- */

void mma_copy_async(struct cg *g, int32_t exists, struct ptx_operand to, struct ptx_operand from,
                    uint32_t piece, int32_t bytes)
{
    const char *const m = piece == MMA_CHUNK ? "cp.async.cg.shared.global.L2::128B"
                                             : "cp.async.ca.shared.global";
    if (bytes < 0)
        ptx_emit(&g->b, exists, false, m, PTX_ARGS(to, from, ptx_imm(piece)));
    else
        ptx_emit(&g->b, exists, false, m, PTX_ARGS(to, from, ptx_imm(piece), ptx_r(bytes)));
}

void mma_commit_copies(struct cg *g)
{
    PTX0(&g->b, "cp.async.commit_group");
}

void mma_wait_copies(struct cg *g, uint32_t but)
{
    PTX(&g->b, "cp.async.wait_group", ptx_imm(but));
}
