/* Blocks of a cluster that share a tile along k (wgmma/wgmma.h).
 *
 * Each multiplies its share of k; then the sums of a part of the tile's rows, those of one
 * warpgroup, come together in one of the blocks. Warpgroup w of all blocks belongs to block w %
 * split:
 *
 *     block 0   warpgroup 0  sums + sums of block 1     warpgroup 1  sends its sums to block 1
 *     block 1   warpgroup 0  sends its sums to block 0  warpgroup 1  sums + sums of block 0
 *
 * They are sent to where the stages were: a first barrier of the cluster says that nobody reads
 * these any more, a second one that all sums are there. They are added in the order of the blocks,
 * so that the bits do not depend on who is first. A thread gets what the same thread of the other
 * blocks had, 16 bytes at a time:
 *
 *     slot of (warpgroup w / split, the block's number among the senders): 128 threads' words 0..3,
 *       words 4..7, ...
 */
#include <config.h>

#include "lower/wgmma/wgmma.h"

enum { WORDS = 4, LINE = WGMMA_GROUP * WORDS * 4 };

static uint32_t slot_bytes(const struct wgmma_shape *s)
{
    return wgmma_sums(s) / WORDS * LINE;
}

uint32_t wgmma_share_bytes(const struct wgmma_shape *s)
{
    const uint32_t split = s->p->split;
    return (s->takers + split - 1) / split * (split - 1) * slot_bytes(s);
}

static void meet(struct wgmma *s)
{
    PTX0(&s->g->b, "barrier.cluster.arrive.release.aligned");
    PTX0(&s->g->b, "barrier.cluster.wait.acquire.aligned");
}

/* The thread's place in the first slot of its warpgroup's sums. */
static struct cg_val place_of(struct wgmma *s)
{
    struct cg *g = s->g;
    struct cg_val thread = cg_binary(g, OP_MOD, s->m->thread, cg_u32(WGMMA_GROUP));
    struct cg_val first = cg_binary(g, OP_DIV, s->part, cg_u32(s->p->split));
    first = cg_mul(g, first, (s->p->split - 1) * slot_bytes(s->shape));
    struct cg_val at = cg_add(g, cg_value(DT_U32, s->m->shared), first);
    return cg_add(g, at, cg_mul(g, thread, WORDS * 4));
}

static void send(struct wgmma *s, struct cg_val owner)
{
    struct cg *g = s->g;
    struct cg_val behind = cg_binary(g, OP_LT, owner, s->at_share);
    struct cg_val number = cg_binary(g, OP_SUB, s->at_share, cg_convert(g, behind, DT_U32));
    struct cg_val slot = cg_mul(g, number, slot_bytes(s->shape));
    struct cg_val at = cg_add(g, place_of(s), slot);
    struct cg_val rank = cg_add(g, cg_mul(g, owner, s->shape->sharing), s->rank);
    const int32_t to =
        CG(g, PTX_B32, "mapa.shared::cluster.u32", ptx_r(cg_reg(g, at)), ptx_r(cg_reg(g, rank)));
    const bool is_float = s->f->sum == DT_F32;
    for (uint32_t i = 0; i < wgmma_sums(s->shape); i += WORDS) {
        struct ptx_operand v[WORDS];
        for (uint32_t w = 0; w < WORDS; w++)
            v[w] = ptx_r(s->sum[i + w]);
        PTX(&g->b, is_float ? "st.shared::cluster.v4.f32" : "st.shared::cluster.v4.b32",
            ptx_mem(to, i / WORDS * LINE), ptx_vec(&g->b, WORDS, v));
    }
}

static void add(struct wgmma *s)
{
    struct cg *g = s->g;
    const int32_t at = cg_reg(g, place_of(s));
    const bool is_float = s->f->sum == DT_F32;
    for (uint32_t from = 0; from + 1 < s->p->split; from++)
        for (uint32_t i = 0; i < wgmma_sums(s->shape); i += WORDS) {
            struct ptx_operand v[WORDS];
            for (uint32_t w = 0; w < WORDS; w++)
                v[w] = ptx_r(cg_new(g, s->f->sum));
            PTX(&g->b, is_float ? "ld.shared.v4.f32" : "ld.shared.v4.b32", ptx_vec(&g->b, WORDS, v),
                ptx_mem(at, from * slot_bytes(s->shape) + i / WORDS * LINE));
            for (uint32_t w = 0; w < WORDS; w++) {
                const int32_t sum = s->sum[i + w];
                CG_ASSIGN(g, sum, is_float ? "add.rn.f32" : "add.s32", ptx_r(sum), v[w]);
            }
        }
}

void wgmma_share(struct wgmma *s, uint32_t skip)
{
    struct cg *g = s->g;
    const uint32_t keeps = cg_label(g, "keeps");
    struct cg_val owner = cg_binary(g, OP_MOD, s->part, cg_u32(s->p->split));
    const int32_t mine = cg_reg(g, cg_binary(g, OP_EQ, owner, s->at_share));
    meet(s);
    cg_jump_if(g, mine, true, keeps);
    const size_t mark = cg_scope_open(g);
    send(s, owner);
    cg_scope_close(g, mark);
    cg_place(g, keeps);
    meet(s);
    cg_jump_if(g, mine, false, skip);
    add(s);
}
