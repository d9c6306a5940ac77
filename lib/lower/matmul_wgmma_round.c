/* Operands of tf32 on their way to the products (matmul_wgmma.h), but for those that registers hold: wgmma leaves out the bits that
 * tf32 has not, and takes f32 along k alone. So consumers round each stage where it lies, and turn what lies across, before
 * they multiply it; then those that take the tile together meet.
 *
 * Of what lies along k a warpgroup rounds its share; the elements' order does not matter.
 *
 * What lies across has come in atoms of 32 k by 32 i (or j), 4096 bytes, that as 32 i by 32 k belong at the same place. A
 * warp reads all of one, and writes it turned. A lane has 2 of its 8 x 8 squares of 4 x 4: square (K, I), of which it reads
 * chunk I of rows 4 K .. and writes chunk K of rows 4 I ... With K = I ^ h, h the same for 8 lanes that an access takes
 * at once, neither meets a conflict of banks: chunk I of row 4 K + e is at I ^ (4 (K & 1) + e), of which no two are
 * equal, nor are the K ^ (4 (I & 1) + e).
 *
 * It costs twice the stage's bytes of shared memory's bandwidth, beside the products' own under way.
 */
#include <config.h>

#include "lower/matmul_wgmma.h"

enum {
    PIECE = 16,
    PASS = WGMMA_GROUP * PIECE,
    AT_ONCE = 4,
    BARRIERS = 3, /* the first that is free */
    ATOM = 32 * WGMMA_SPAN,
    SQUARES = 2, /* of a lane */
    SIDE = 4,
};

static bool rounds(const struct wgmma *s, const struct wgmma_tile *t)
{
    return s->f->operand[t->operand].cut == MATMUL_AWAY && !t->held;
}

uint32_t wgmma_round_words(const struct wgmma *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->ntile; i++) {
        const uint32_t words = s->tile[i].turned        ? SQUARES * SIDE * SIDE
                               : rounds(s, &s->tile[i]) ? AT_ONCE * SIDE
                                                        : 0;
        n = words > n ? words : n;
    }
    return n;
}

uint32_t wgmma_round_unit(const struct wgmma *s)
{
    return PASS / WGMMA_SPAN * s->takers;
}

/* Passes of the warpgroup's threads over what begins at the address + offset. */
static void round_bytes(struct wgmma *s, int32_t at, uint32_t offset, uint32_t passes)
{
    struct cg *g = s->g;
    int32_t w[AT_ONCE][4];
    struct ptx_operand v[4];
    for (uint32_t from = 0; from < passes; from += AT_ONCE) {
        const uint32_t n = passes - from < AT_ONCE ? passes - from : AT_ONCE;
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t e = 0; e < 4; e++)
                v[e] = ptx_r(w[i][e] = cg_new(g, DT_U32));
            PTX(&g->b, "ld.shared.v4.b32", ptx_vec(&g->b, 4, v),
                ptx_mem(at, offset + (from + i) * PASS));
        }
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t e = 0; e < 4; e++) {
                const int32_t r = cg_new(g, DT_U32);
                PTX(&g->b, "cvt.rna.tf32.f32", ptx_r(r), ptx_r(w[i][e]));
                v[e] = ptx_r(r);
            }
            PTX(&g->b, "st.shared.v4.b32", ptx_mem(at, offset + (from + i) * PASS),
                ptx_vec(&g->b, 4, v));
        }
    }
}

static void round_tile(struct wgmma *s, const struct wgmma_tile *t, struct cg_val stage)
{
    struct cg *g = s->g;
    const bool left = t->side == s->left;
    const uint32_t bytes = left ? s->high * WGMMA_SPAN : t->bytes / s->takers;
    const struct cg_val part = cg_mul(g, s->part, bytes);
    const int32_t at = cg_reg(g, cg_add(g, stage, part));
    for (uint32_t i = 0; i < (left ? t->atoms : 1); i++)
        round_bytes(s, at, t->offset + i * t->atom_bytes, bytes / PASS);
}

/* Where a lane's rows e of its squares are read and written, bytes from the atom's first: registers. */
struct squares {
    int32_t from[SQUARES][SIDE], to[SQUARES][SIDE];
};

/* Row 4 r + e, chunk c. */
static int32_t chunk_at(struct cg *g, struct cg_val r, struct cg_val c, uint32_t e)
{
    const struct cg_val odd = cg_binary(g, OP_AND, r, cg_u32(1));
    c = cg_binary(g, OP_XOR, c, cg_mul(g, odd, SIDE));
    c = cg_binary(g, OP_MUL, cg_binary(g, OP_XOR, c, cg_u32(e)), cg_u32(PIECE));
    const struct cg_val row = cg_mul(g, r, SIDE * WGMMA_SPAN);
    return cg_reg(g, cg_add(g, cg_add(g, row, cg_u32(e * WGMMA_SPAN)), c));
}

static struct squares find_squares(struct wgmma *s)
{
    struct cg *g = s->g;
    struct squares q;
    const struct cg_val across = cg_binary(g, OP_AND, s->m->lane, cg_u32(7));
    for (uint32_t i = 0; i < SQUARES; i++) {
        struct cg_val h = cg_add(g, cg_binary(g, OP_SHR, s->m->lane, cg_u32(3)), cg_u32(4 * i));
        struct cg_val along = cg_binary(g, OP_XOR, across, h);
        for (uint32_t e = 0; e < SIDE; e++) {
            q.from[i][e] = chunk_at(g, along, across, e);
            q.to[i][e] = chunk_at(g, across, along, e);
        }
    }
    return q;
}

/* The warp turns the atom of the tile at the address + offset, and rounds it. */
static void turn_atom(struct wgmma *s, const struct wgmma_tile *t, const struct squares *q,
                      int32_t at, uint32_t offset)
{
    struct cg *g = s->g;
    struct ptx_operand w[SQUARES][SIDE][SIDE], v[SIDE];
    for (uint32_t i = 0; i < SQUARES; i++)
        for (uint32_t e = 0; e < SIDE; e++) {
            const struct cg_val from =
                cg_add(g, cg_value(DT_U32, at), cg_value(DT_U32, q->from[i][e]));
            for (uint32_t c = 0; c < SIDE; c++)
                w[i][e][c] = ptx_r(cg_new(g, DT_U32));
            PTX(&g->b, "ld.shared.v4.b32", ptx_vec(&g->b, SIDE, w[i][e]),
                ptx_mem(cg_reg(g, from), offset));
        }
    PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
    for (uint32_t i = 0; i < SQUARES; i++)
        for (uint32_t c = 0; c < SIDE; c++) {
            const struct cg_val to = cg_add(g, cg_value(DT_U32, at), cg_value(DT_U32, q->to[i][c]));
            for (uint32_t e = 0; e < SIDE; e++) {
                v[e] = w[i][e][c];
                if (rounds(s, t)) {
                    v[e] = ptx_r(cg_new(g, DT_U32));
                    PTX(&g->b, "cvt.rna.tf32.f32", v[e], w[i][e][c]);
                }
            }
            PTX(&g->b, "st.shared.v4.b32", ptx_mem(cg_reg(g, to), offset), ptx_vec(&g->b, SIDE, v));
        }
}

/* Atoms by turns among all warps that take the tile. */
static void turn_tile(struct wgmma *s, const struct wgmma_tile *t, struct cg_val stage)
{
    struct cg *g = s->g;
    const uint32_t warps = s->takers * WGMMA_GROUP / 32;
    struct cg_val warp = cg_binary(g, OP_SUB, s->m->warp, cg_u32(s->producers * WGMMA_GROUP / 32));
    if (s->p->pingpong)
        warp = cg_binary(g, OP_AND, warp, cg_u32(WGMMA_GROUP / 32 - 1));
    const struct squares q = find_squares(s);
    const int32_t at = cg_reg(g, cg_add(g, stage, cg_mul(g, warp, ATOM)));
    for (uint32_t first = 0; first < t->atoms; first += warps) {
        const uint32_t none = cg_label(g, "none");
        const size_t mark = cg_scope_open(g);
        if (first + warps > t->atoms) /* the last are not every warp's */
            cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, warp, cg_u32(t->atoms - first))), false,
                       none);
        turn_atom(s, t, &q, at, t->offset + first * ATOM);
        cg_scope_close(g, mark);
        cg_place(g, none);
    }
}

void wgmma_round_stage(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct cg_val first =
        cg_add(g, cg_value(DT_U32, s->m->shared), cg_value(DT_U32, s->ring.offset));
    const struct cg_val in_group = cg_binary(g, OP_AND, s->m->thread, cg_u32(WGMMA_GROUP - 1));
    const struct cg_val own = cg_add(g, first, cg_mul(g, in_group, PIECE));
    for (uint32_t i = 0; i < s->ntile; i++)
        if (s->tile[i].turned)
            turn_tile(s, &s->tile[i], first);
        else if (rounds(s, &s->tile[i]))
            round_tile(s, &s->tile[i], own);
    /* wgmma reads by another way than threads write */
    PTX0(&g->b, "fence.proxy.async.shared::cta");
    const struct cg_val barrier =
        cg_add(g, cg_u32(BARRIERS), s->p->pingpong ? s->group : cg_u32(0));
    PTX(&g->b, "bar.sync", cg_op(g, barrier), ptx_imm(s->takers * WGMMA_GROUP));
}
