/* Boxes of a warp's rows (wgmma/box.h). */
#include <config.h>

#include "lower/wgmma/box.h"

/* The row's address, and the chunk as the row has them. */
void box_pieces(struct cg *g, struct cg_val lane, uint32_t size, struct cg_val base,
                int32_t at[BOX_PIECES])
{
    struct cg_val row, chunk, in_chunk = cg_u32(0);
    if (size == 2) {
        row = cg_binary(g, OP_AND, lane, cg_u32(15));
        chunk = cg_binary(g, OP_SHR, lane, cg_u32(4));
    } else {
        row = cg_binary(g, OP_SHR, lane, cg_u32(2));
        chunk = cg_binary(g, OP_AND, cg_binary(g, OP_SHR, lane, cg_u32(1)), cg_u32(1));
        in_chunk = cg_mul(g, cg_binary(g, OP_AND, lane, cg_u32(1)), 8);
    }
    base = cg_add(g, cg_add(g, base, cg_mul(g, row, BOX_SPAN)), in_chunk);
    chunk = cg_binary(g, OP_XOR, chunk, cg_binary(g, OP_AND, row, cg_u32(7)));
    for (uint32_t c = 0; c < BOX_PIECES; c++) {
        const struct cg_val to = cg_binary(g, OP_XOR, chunk, cg_u32(2 * c));
        at[c] = cg_reg(g, cg_add(g, base, cg_mul(g, to, 16)));
    }
}

void box_put_words(struct cg *g, int32_t at, uint32_t offset, const struct ptx_operand word[4])
{
    PTX(&g->b, "stmatrix.sync.aligned.m8n8.x4.shared.b16", ptx_mem(at, offset),
        ptx_vec(&g->b, 4, word));
}

void box_take_words(struct cg *g, int32_t at, uint32_t offset, const struct ptx_operand word[4])
{
    PTX(&g->b, "ldmatrix.sync.aligned.m8n8.x4.shared.b16", ptx_vec(&g->b, 4, word),
        ptx_mem(at, offset));
}

static struct ptx_operand half_at(int32_t at, uint32_t offset, uint32_t half)
{
    return ptx_mem(at, offset + half * (BOX_ROWS / 2) * BOX_SPAN);
}

void box_put_pair(struct cg *g, enum dtype t, int32_t at, uint32_t offset, uint32_t half,
                  const struct ptx_operand pair[2])
{
    PTX(&g->b, dtype_is_float(t) ? "st.shared.v2.f32" : "st.shared.v2.b32",
        half_at(at, offset, half), ptx_vec(&g->b, 2, pair));
}

void box_take_pair(struct cg *g, enum dtype t, int32_t at, uint32_t offset, uint32_t half,
                   const struct ptx_operand pair[2])
{
    PTX(&g->b, dtype_is_float(t) ? "ld.shared.v2.f32" : "ld.shared.v2.b32", ptx_vec(&g->b, 2, pair),
        half_at(at, offset, half));
}
