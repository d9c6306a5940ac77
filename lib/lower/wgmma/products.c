/* Instructions of wgmma (wgmma/products.h). */
#include <config.h>

#include "lower/wgmma/products.h"

#include <stdio.h>

enum {
    ADDRESS = (1 << 18) - 1,
    UNIT = 16
}; /* bits of an address, and bytes, that a descriptor counts */

/* ---- tiles ----------------------------------------------------------------------------------- */

struct wgmma_layout wgmma_layout(bool along_k, uint32_t size, uint32_t rows, uint32_t terms)
{
    return (struct wgmma_layout){.along_k = along_k,
                                 .size = size,
                                 .atoms = (along_k ? terms : rows) * size / WGMMA_SPAN,
                                 .atom_bytes = (along_k ? rows : terms) * WGMMA_SPAN};
}

uint32_t wgmma_row_bytes(const struct wgmma_layout *l, uint32_t row)
{
    return l->along_k ? row * WGMMA_SPAN : row / (WGMMA_SPAN / l->size) * l->atom_bytes;
}

uint32_t wgmma_step_bytes(const struct wgmma_layout *l, uint32_t step)
{
    const uint32_t per_atom = WGMMA_SPAN / WGMMA_STEP;
    return l->along_k ? step / per_atom * l->atom_bytes + step % per_atom * WGMMA_STEP
                      : step * (WGMMA_STEP / l->size) * WGMMA_SPAN;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

int32_t wgmma_low_word(struct cg *g, const struct wgmma_layout *l, struct cg_val at)
{
    /* in a cluster an address has the block's number above the 18 bits that a descriptor takes */
    at = cg_binary(g, OP_SHR, cg_binary(g, OP_AND, at, cg_u32(ADDRESS)), cg_u32(4));
    const uint32_t apart = l->along_k ? 0 : l->atom_bytes / UNIT;
    return cg_reg(g, cg_add(g, at, cg_u32(apart << 16)));
}

int32_t wgmma_high_word(struct cg *g)
{
    return cg_reg(g, cg_u32(WGMMA_ALIGN / UNIT | 1u << 30));
}

struct ptx_operand wgmma_descriptor(struct cg *g, int32_t low, int32_t high, uint32_t offset)
{
    const struct cg_val at = cg_add(g, cg_value(DT_U32, low), cg_u32(offset / UNIT));
    const struct ptx_operand words[2] = {ptx_r(cg_reg(g, at)), ptx_r(high)};
    const int32_t d = cg_new(g, DT_U64);
    PTX(&g->b, "mov.b64", ptx_r(d), ptx_vec(&g->b, 2, words));
    return ptx_r(d);
}

/* ---- instructions ---------------------------------------------------------------------------- */

static const char *type_word(enum dtype t)
{
    return t == DT_F32 ? "tf32" : t == DT_I8 ? "s8" : dtype_name(t);
}

void wgmma_multiply(struct cg *g, const struct wgmma_kind *k, const struct ptx_operand *sum,
                    struct ptx_operand a, struct ptx_operand b, int32_t adds)
{
    const uint32_t size = dtype_bits(k->left) / 8;
    char text[96];
    snprintf(text, sizeof text, "wgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s",
             (unsigned)k->columns, (unsigned)(WGMMA_STEP / size), k->sum == DT_F32 ? "f32" : "s32",
             type_word(k->left), type_word(k->right));
    const struct ptx_operand all = ptx_vec(&g->b, k->columns / 2, sum), one = ptx_imm(1);
    const bool in_registers = a.kind == PTX_O_VEC;
    if (k->sum != DT_F32)
        PTX(&g->b, text, all, a, b, ptx_r(adds));
    else if (size != 2)
        PTX(&g->b, text, all, a, b, ptx_r(adds), one, one);
    else if (in_registers) /* which have no direction */
        PTX(&g->b, text, all, a, b, ptx_r(adds), one, one, ptx_imm(k->across[1]));
    else
        PTX(&g->b, text, all, a, b, ptx_r(adds), one, one, ptx_imm(k->across[0]),
            ptx_imm(k->across[1]));
}

void wgmma_fence(struct cg *g)
{
    PTX0(&g->b, "wgmma.fence.sync.aligned");
}

void wgmma_commit(struct cg *g)
{
    PTX0(&g->b, "wgmma.commit_group.sync.aligned");
}

void wgmma_wait_groups(struct cg *g, uint32_t but)
{
    PTX(&g->b, "wgmma.wait_group.sync.aligned", ptx_imm(but));
}

/* ---- a lane's place -------------------------------------------------------------------------- */

struct cg_val wgmma_lane_row(struct cg *g, struct cg_val lane)
{
    return cg_binary(g, OP_SHR, lane, cg_u32(2));
}

struct cg_val wgmma_lane_column(struct cg *g, struct cg_val lane)
{
    return cg_mul(g, cg_binary(g, OP_AND, lane, cg_u32(3)), 2);
}
