/* Operands of f32 on their way to the products (wgmma/wgmma.h), but for those that registers hold:
 * wgmma leaves out the bits that tf32 has not, and takes f32 along k alone. So some warps of the
 * producer's warpgroup round each stage where it lies, part it in two, and turn what lies across;
 * consumers wait for them, and the tensor cores for nobody as long as this takes less time than the
 * products. Parts take longer: a second warpgroup of producers converts, too, where registers
 * allow.
 *
 *     producer       copies to stage s     full[s]
 *     converters     wait full[s]          A | B  ->  A | B' | rest of B       arrive at ready[s]
 *     consumers      wait ready[s]         multiply                            arrive at empty[s]
 *
 * Of what lies along k the warps take pieces by turns; the elements' order does not matter.
 *
 * What lies across has come in atoms of 32 k by 32 i (or j), 4096 bytes, that as 32 i by 32 k
 * belong at the same place. A warp reads all of one, and writes it turned. A lane has 2 of its 8 x
 * 8 squares of 4 x 4: square (K, I), of which it reads chunk I of rows 4 K .. and writes chunk K of
 * rows 4 I ... With K = I ^ h, h the same for 8 lanes that an access takes at once, neither meets a
 * conflict of banks: chunk I of row 4 K + e is at I ^ (4 (K & 1) + e), of which no two are equal,
 * nor are the K ^ (4 (I & 1) + e).
 *
 * In two parts (tf32x3) x is what instructions take of it as it lies, and the rest, which is
 * rounded and lies in a tile of its own. Where x is infinite or NaN its first part is finite, so
 * that it makes no NaN with a rest of 0, and the rest is what x is.
 *
 * On an H100, 4096^3: tf32(), which consumers rounded themselves, all of them together before each
 * stage, 491 us of NN and 461 of NT; by converters 446 and 433 (cuBLAS, which rounds halves to even
 * on their way by TMA, 368). What is left is shared memory: a stage of 256 x 128 x 32 takes 1024
 * clocks of products and about 1100 of its bandwidth. In two parts 1.12 ms, three times cuBLAS's
 * tf32; cuBLAS sgemm takes 2.65.
 */
#include <config.h>

#include "lower/wgmma/wgmma.h"

#include <math.h>

enum {
    PIECE = 16,
    WORDS = 4,
    PASS = 32 * PIECE, /* of a warp */
    AT_ONCE = 4,
    ATOM = 32 * WGMMA_SPAN,
    SQUARES = 2, /* of a lane */
    SIDE = 4,
};

bool wgmma_rounds(const struct wgmma_shape *s, const struct wgmma_tile *t)
{
    return matmul_cut_of(&s->f->operand[t->operand]) == MATMUL_AWAY;
}

bool wgmma_is_converted(const struct wgmma_shape *s, const struct wgmma_tile *t)
{
    const bool parts = t->parted && !matmul_in_f16(s->p); /* those come as they are multiplied */
    return !t->held && !t->made && (t->turned || parts || wgmma_rounds(s, t));
}

/* ---- four elements --------------------------------------------------------------------------- */

struct converted {
    struct ptx_operand first[WORDS], rest[WORDS];
    int32_t changed; /* a predicate: is .first not what instructions take of the elements as they
                        are? -1: it is not */
};

static void part(struct cg *g, struct ptx_operand x, struct ptx_operand *first,
                 struct ptx_operand *rest)
{
    const float most = 0x1.ffcp127f; /* the largest of tf32 */
    const int32_t cut = cg_new(g, DT_U32), left = cg_new(g, DT_U32);
    *first = ptx_r(cg_new(g, DT_U32));
    *rest = ptx_r(cg_new(g, DT_U32));
    PTX(&g->b, "min.xorsign.abs.f32", *first, x, ptx_immf32(most));
    PTX(&g->b, "and.b32", ptx_r(cut), *first, ptx_imm(0xffffe000));
    PTX(&g->b, "sub.rn.f32", ptx_r(left), x, ptx_r(cut));
    PTX(&g->b, "cvt.rna.tf32.f32", *rest, ptx_r(left));
}

static void convert(struct wgmma *s, const struct wgmma_tile *t, const struct ptx_operand *x,
                    struct converted *to)
{
    struct cg *g = s->g;
    to->changed = -1;
    if (t->parted) {
        to->changed = cg_new(g, DT_BOOL);
        PTX(&g->b, "setp.geu.f32", ptx_r(to->changed), ptx_r(wgmma_range_take(s, x, WORDS)),
            ptx_immf32(INFINITY));
    }
    for (uint32_t e = 0; e < WORDS; e++) {
        to->first[e] = x[e];
        if (t->parted) {
            part(g, x[e], &to->first[e], &to->rest[e]);
        } else if (wgmma_rounds(s->shape, t)) {
            to->first[e] = ptx_r(cg_new(g, DT_U32));
            PTX(&g->b, "cvt.rna.tf32.f32", to->first[e], x[e]);
        }
    }
}

static void load(struct wgmma *s, struct ptx_operand *x, int32_t at, uint32_t offset)
{
    struct cg *g = s->g;
    for (uint32_t e = 0; e < WORDS; e++)
        x[e] = ptx_r(cg_new(g, DT_U32));
    PTX(&g->b, "ld.shared.v4.b32", ptx_vec(&g->b, WORDS, x), ptx_mem(at, offset));
}

/* guard: a predicate, or -1. */
static void store(struct wgmma *s, const struct ptx_operand *x, int32_t guard, int32_t at,
                  uint32_t offset)
{
    struct ptx_builder *b = &s->g->b;
    ptx_emit(b, guard, false, "st.shared.v4.b32",
             PTX_ARGS(ptx_mem(at, offset), ptx_vec(b, WORDS, x)));
}

/* ---- along k --------------------------------------------------------------------------------- */

/* n pieces of the lane's, from the one of number `from` on. */
static void convert_pieces(struct wgmma *s, const struct wgmma_tile *t, int32_t at, uint32_t from,
                           uint32_t n)
{
    const uint32_t apart = s->shape->converts * PASS;
    struct ptx_operand x[AT_ONCE][WORDS];
    for (uint32_t i = 0; i < n; i++)
        load(s, x[i], at, t->offset + (from + i) * apart);
    for (uint32_t i = 0; i < n; i++) {
        struct converted to;
        convert(s, t, x[i], &to);
        store(s, to.first, to.changed, at, t->offset + (from + i) * apart);
        if (t->parted)
            store(s, to.rest, -1, at, t->rest + (from + i) * apart);
    }
}

static void convert_tile(struct wgmma *s, const struct wgmma_tile *t, struct cg_val stage)
{
    struct cg *g = s->g;
    const uint32_t all = t->bytes / PASS, each = all / s->shape->converts;
    const uint32_t left = all % s->shape->converts;
    const struct cg_val piece = cg_mul(g, s->m->lane, PIECE);
    const struct cg_val own = cg_add(g, cg_mul(g, s->part, PASS), piece);
    const int32_t at = cg_reg(g, cg_add(g, stage, own));
    for (uint32_t from = 0; from < each; from += AT_ONCE)
        convert_pieces(s, t, at, from, each - from < AT_ONCE ? each - from : AT_ONCE);
    if (!left)
        return;
    const uint32_t none = cg_label(g, "none");
    const size_t mark = cg_scope_open(g); /* the last are not every warp's */
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, s->part, cg_u32(left))), false, none);
    convert_pieces(s, t, at, each, 1);
    cg_scope_close(g, mark);
    cg_place(g, none);
}

/* ---- across ---------------------------------------------------------------------------------- */

/* Chunk c of row 4 r: bytes from the atom's first. Of row 4 r + e it is at this ^ e * PIECE, and e
 * rows on. */
static int32_t chunk_at(struct cg *g, struct cg_val r, struct cg_val c)
{
    const struct cg_val odd = cg_binary(g, OP_AND, r, cg_u32(1));
    c = cg_binary(g, OP_XOR, c, cg_mul(g, odd, SIDE));
    const struct cg_val in_row = cg_mul(g, c, PIECE);
    return cg_reg(g, cg_add(g, cg_mul(g, r, SIDE * WGMMA_SPAN), in_row));
}

void wgmma_convert_begin(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct cg_val across = cg_binary(g, OP_AND, s->m->lane, cg_u32(7));
    s->part = cg_binary(g, OP_SUB, s->m->warp,
                        cg_u32(s->shape->producers * WGMMA_GROUP / 32 - s->shape->converts));
    if (s->p->parts > 1)
        wgmma_range_begin(s);
    for (uint32_t i = 0; i < SQUARES; i++) {
        struct cg_val h = cg_add(g, cg_binary(g, OP_SHR, s->m->lane, cg_u32(3)), cg_u32(4 * i));
        struct cg_val along = cg_binary(g, OP_XOR, across, h);
        s->corner[i][0] = chunk_at(g, along, across);
        s->corner[i][1] = chunk_at(g, across, along);
    }
}

/* A lane's square of 4 x 4: its atom's address, and where in it its first row is read and written.
 */
struct square {
    int32_t atom, corner[2];
};

/* Where its row e is, read (way 0) or written (1). */
static int32_t row_at(struct wgmma *s, const struct square *q, uint32_t way, uint32_t e)
{
    struct cg *g = s->g;
    const struct cg_val at = cg_add(g, cg_value(DT_U32, q->atom), cg_value(DT_U32, q->corner[way]));
    return cg_reg(g, cg_binary(g, OP_XOR, at, cg_u32(e * PIECE)));
}

/* The warp turns n squares of each lane, of the tile at the address + offset. */
static void turn_squares(struct wgmma *s, const struct wgmma_tile *t, const struct square *q,
                         uint32_t n, uint32_t offset)
{
    struct cg *g = s->g;
    struct ptx_operand w[SQUARES][SIDE][WORDS], v[WORDS];
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = 0; e < SIDE; e++)
            load(s, w[i][e], row_at(s, &q[i], 0, e), t->offset + offset + e * WGMMA_SPAN);
    PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t c = 0; c < SIDE; c++) {
            struct converted to;
            const uint32_t row = offset + c * WGMMA_SPAN;
            const int32_t there = row_at(s, &q[i], 1, c);
            for (uint32_t e = 0; e < SIDE; e++)
                v[e] = w[i][e][c];
            convert(s, t, v, &to);
            store(s, to.first, -1, there, t->offset + row);
            if (t->parted)
                store(s, to.rest, -1, there, t->rest + row);
        }
}

/* Atoms by turns. */
static void turn_atoms(struct wgmma *s, const struct wgmma_tile *t, struct cg_val stage)
{
    struct cg *g = s->g;
    const int32_t at = cg_reg(g, cg_add(g, stage, cg_mul(g, s->part, ATOM)));
    struct square q[SQUARES];
    for (uint32_t i = 0; i < SQUARES; i++)
        q[i] = (struct square){at, {s->corner[i][0], s->corner[i][1]}};
    for (uint32_t first = 0; first < t->atoms; first += s->shape->converts)
        turn_squares(s, t, q, SQUARES, first * ATOM);
}

/* Halves of atoms by turns, a square of each lane: of other numbers of atoms that leaves warps less
 * to wait for. Halves have both a square and the one that it trades places with. */
static void turn_halves(struct wgmma *s, const struct wgmma_tile *t, struct cg_val stage)
{
    struct cg *g = s->g;
    const uint32_t halves = t->atoms * SQUARES;
    for (uint32_t first = 0; first < halves; first += s->shape->converts) {
        const uint32_t none = cg_label(g, "none");
        const size_t mark = cg_scope_open(g);
        const struct cg_val n = cg_add(g, s->part, cg_u32(first));
        const struct cg_val atom = cg_mul(g, cg_binary(g, OP_SHR, n, cg_u32(1)), ATOM);
        const struct cg_val odd = cg_binary(g, OP_AND, n, cg_u32(1));
        const int32_t is_odd = cg_reg(g, cg_binary(g, OP_NE, odd, cg_u32(0)));
        struct square q = {.atom = cg_reg(g, cg_add(g, stage, atom))};
        if (first + s->shape->converts > halves) /* the last are not every warp's */
            cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, n, cg_u32(halves))), false, none);
        for (uint32_t way = 0; way < 2; way++)
            q.corner[way] = cg_reg(g, cg_select(g, is_odd, cg_value(DT_U32, s->corner[1][way]),
                                                cg_value(DT_U32, s->corner[0][way])));
        turn_squares(s, t, &q, 1, 0);
        cg_scope_close(g, mark);
        cg_place(g, none);
    }
}

static void turn_tile(struct wgmma *s, const struct wgmma_tile *t, struct cg_val stage)
{
    if (t->atoms % s->shape->converts)
        turn_halves(s, t, stage);
    else
        turn_atoms(s, t, stage);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static void convert_stage(struct wgmma *s)
{
    const struct cg_val stage = ring_stage(&s->ring);
    ring_wait(&s->ring, RING_FULL);
    if (s->p->parts > 1)
        wgmma_range_clear(s);
    for (uint32_t i = 0; i < s->shape->ntile; i++)
        if (s->shape->tile[i].turned)
            turn_tile(s, &s->shape->tile[i], stage);
        else if (wgmma_is_converted(s->shape, &s->shape->tile[i]))
            convert_tile(s, &s->shape->tile[i], stage);
    if (s->p->parts > 1)
        wgmma_range_tell(s);
    ring_hand_over(&s->ring, RING_READY);
}

void wgmma_convert_tile(struct wgmma *s)
{
    wgmma_for_stages(s, convert_stage);
}
