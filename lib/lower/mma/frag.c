/* From shared memory to products (mma/mma.h): what each lane of a warp holds, and the instructions that multiply.
 *
 * The rows of A and the columns of B may stand in any order among a warp's, as long as the sums are put where they belong,
 * and k in any order that is the same for both. That is what makes do without transposing bytes: a lane takes pairs of
 * neighbours as they lie, which belong to different instructions. Elements of 32 bits that lie across are loaded into the
 * registers that the instruction wants them in: of a tall operand two neighbours, of a flat one one by one.
 */
#include <config.h>

#include "lower/mma/mma.h"

#include <stdio.h>
#include <stdlib.h>

static struct cg_val op(struct cg *g, enum lang_op o, struct cg_val x, uint32_t y)
{
    return cg_binary(g, o, x, cg_u32(y));
}

/* ---- places --------------------------------------------------------------------------------------- */

static bool is_a(const struct mma_tile *t)
{
    return t->side == MATMUL_A;
}

static uint32_t words_of(const struct mma_tile *t)
{
    return t->span / 4;
}

uint32_t mma_factor(const struct mma_tile *t)
{
    return t->layout == MMA_BYTES || (t->layout == MMA_SINGLES && t->tall) || t->spaced ? 2 : 1;
}

uint32_t mma_row_of(const struct mma_tile *t, uint32_t i, uint32_t half)
{
    const uint32_t f = mma_factor(t);
    if (t->tall)
        return 16 * i + (f == 1 ? 8 * half : half);
    return i / f * 8 * f + half * f + i % f;
}

/* The lane's row of the tile and chunk in it, of its way-th address; *byte: in the chunk. */
static void find_lane(struct mma *s, const struct mma_slab *t, struct cg_val base, uint32_t way,
                      struct cg_val *row, struct cg_val *chunk, struct cg_val *byte)
{
    struct cg *g = s->g;
    struct cg_val lane = s->m->lane, in8 = op(g, OP_AND, lane, 7);
    struct cg_val low = op(g, OP_AND, op(g, OP_SHR, lane, 3), 1), high = op(g, OP_SHR, lane, 4);
    struct cg_val of16 = op(g, OP_AND, lane, 15), turned = cg_add(g, in8, op(g, OP_MUL, high, 8));
    *byte = cg_u32(0);
    switch (t->of->layout) {
    case MMA_ALONG_K:
        *row = cg_add(g, base, t->of->tall ? of16 : turned);
        *chunk = cg_add(g, t->of->tall ? high : low, cg_u32(2 * way));
        return;
    case MMA_16BIT:
        *row = t->of->tall ? turned : of16;
        *chunk = cg_add(g, t->of->tall ? low : high, cg_u32(2 * way));
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
    const uint32_t f = mma_factor(t->of); /* neighbours that the lane takes at once */
    struct cg_val group = op(g, OP_SHR, lane, 2),
                  of_group = op(g, OP_DIV, group, MMA_CHUNK / 4 / f);
    *row = op(g, OP_AND, lane, 3);
    *chunk = cg_add(g, of_group, cg_u32(2 * f * way));
    *chunk = cg_add(g, op(g, OP_DIV, base, 4), *chunk);
    *byte = op(g, OP_MUL, op(g, OP_MOD, group, MMA_CHUNK / 4 / f), 4 * f);
}

static uint32_t ways_of(const struct mma_shape *s, const struct mma_tile *t)
{
    const uint32_t blocks = t->span / 16;
    switch (t->layout) {
    case MMA_ALONG_K: return s->steps < 4 ? s->steps : 4;
    case MMA_16BIT: return blocks < 4 ? blocks : 4;
    case MMA_BYTES: return blocks < 8 ? blocks : 8;
    case MMA_SINGLES: return t->tall ? (blocks < 2 ? 1 : 2) : blocks < 2 ? 2 : 4;
    }
    abort();
}

void mma_read_begin(struct mma *s)
{
    struct cg *g = s->g;
    const uint32_t across = s->p->bn / s->p->wn;
    for (uint32_t n = 0; n < s->shape->ntile; n++) {
        struct mma_slab *t = &s->slab[n];
        struct cg_val base = op(g, is_a(t->of) ? OP_DIV : OP_MOD, s->m->warp, across);
        base = op(g, OP_MUL, base, t->of->span);
        t->ways = ways_of(s->shape, t->of);
        for (uint32_t i = 0; i < t->ways; i++) {
            struct cg_val row, chunk, byte;
            find_lane(s, t, base, i, &row, &chunk, &byte);
            struct cg_val at = cg_add(g, mma_chunk(s, t, row, chunk), byte);
            at = cg_add(g, cg_add(g, at, cg_u32(t->of->offset)), cg_value(DT_U32, s->m->shared));
            t->at[i] = cg_reg(g, at);
        }
        for (uint32_t i = 0; i < words_of(t->of); i++) {
            t->word[0][i] = cg_new_mutable(g, DT_U32);
            t->word[1][i] = cg_new_mutable(g, DT_U32);
            t->rest[0][i] = s->p->parts > 1 ? cg_new_mutable(g, DT_U32) : -1;
            t->rest[1][i] = s->p->parts > 1 ? cg_new_mutable(g, DT_U32) : -1;
        }
        for (uint32_t i = 0; i < words_of(t->of) && s->p->coarse; i++)
            t->pair[i % 2][i / 2] = cg_new_mutable(g, DT_U32);
    }
}

/* ---- loads ---------------------------------------------------------------------------------------- */

static void load(struct mma *s, const char *mnemonic, const int32_t *word, uint32_t n,
                 struct ptx_operand from)
{
    struct cg *g = s->g;
    struct ptx_operand to[4];
    for (uint32_t i = 0; i < n; i++) {
        to[i] = ptx_r(word[i]);
        cg_assigned(g, word[i]);
    }
    PTX(&g->b, mnemonic, ptx_vec(&g->b, n, to), from);
}

/* Words of 16 rows of A or 16 columns of B: block number i of the warp's. */
static void load_matrices(struct mma *s, struct mma_slab *t, uint32_t step, int32_t *word,
                          uint32_t i)
{
    uint32_t way = i, offset = 0;
    switch (t->of->layout) {
    case MMA_ALONG_K:
        way = step % 4;
        offset = step / 4 * 128 + i * 16 * t->of->row_bytes;
        break;
    case MMA_16BIT:
        way = i % 4;
        offset = i / 4 * 128 + step * 16 * t->of->row_bytes;
        break;
    case MMA_BYTES:
        way = i % 8;
        offset = i / 8 * 128 + step * 32 * t->of->row_bytes;
        break;
    case MMA_SINGLES: abort();
    }
    load(s,
         t->of->layout == MMA_ALONG_K ? "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
                                      : "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
         word + (size_t)i * 4, 4, ptx_mem(t->now[way], offset));
}

/* Elements k and k + 4 of the lane's of each 8 columns of a flat operand; of each 16 rows of a tall one, two of either. */
static void load_singles(struct mma *s, struct mma_slab *t, uint32_t step, const int32_t *word)
{
    struct cg *g = s->g;
    const uint32_t f = mma_factor(t->of), ways = 4 / f;
    for (uint32_t i = 0; i < t->of->span / (8 * f); i++)
        for (uint32_t high = 0; high < 2; high++) {
            const uint32_t offset = i / ways * 128 + (step * 8 + high * 4) * t->of->row_bytes;
            const struct ptx_operand from = ptx_mem(t->now[i % ways], offset);
            if (t->of->tall) {
                load(s, "ld.shared.v2.b32", word + (size_t)4 * i + (size_t)2 * high, 2, from);
                continue;
            }
            CG_ASSIGN(g, word[2 * i + high], "ld.shared.b32", from);
        }
}

void mma_load(struct mma *s, uint32_t step, uint32_t to)
{
    struct cg *g = s->g;
    for (uint32_t n = 0; n < s->shape->ntile; n++) {
        struct mma_slab *t = &s->slab[n];
        for (uint32_t i = 0; i < t->ways; i++) {
            t->now[i] = cg_new(g, DT_U32);
            PTX(&g->b, "add.s32", ptx_r(t->now[i]), ptx_r(t->at[i]), ptx_r(s->read));
        }
        if (t->of->layout == MMA_SINGLES)
            load_singles(s, t, step, t->word[to]);
        for (uint32_t i = 0; i < t->of->span / 16 && t->of->layout != MMA_SINGLES; i++)
            load_matrices(s, t, step, t->word[to], i);
    }
}

/* ---- words as the instructions take them ---------------------------------------------------------- */

/* Of each operand up to two sets: f16 of 8 bits takes two halves of k. */
struct ready {
    int32_t set[2][MMA_HELD];
};
struct words {
    uint32_t from, to;
};

/* Pairs of neighbours of four k each become four k of each neighbour. */
static void part_bytes(struct mma *s, const struct mma_slab *t, struct words n, const int32_t *word,
                       int32_t *to)
{
    struct cg *g = s->g;
    for (uint32_t i = n.from; i < n.to; i += 4)
        for (uint32_t w = 0; w < 4; w++) {
            /* tall: neighbours are halves of an instruction's rows; flat: of instructions side by side */
            const uint32_t odd = t->of->tall ? w % 2 : w / 2, high = t->of->tall ? w / 2 : w % 2;
            to[i + w] = cg_new(g, DT_U32);
            PTX(&g->b, "prmt.b32", ptx_r(to[i + w]), ptx_r(word[i + 2 * high]),
                ptx_r(word[i + 2 * high + 1]), ptx_imm(odd ? 0x7531 : 0x6420));
        }
}

/* A predicate of whether half of what is cut off belongs to be added to x, one of a pair of words: not where one of them is
 * NaN, and not, of halves to even, where x is half above an even number. */
static int32_t takes_half(struct mma *s, const int32_t w[2], int32_t x, bool even)
{
    enum {
        HALF = 1 << 12,     /* of the last bit that tf32 has */
        LAST_BIT = 1 << 13, /* of tf32: 0 in even numbers */
        AND_XOR = 0x6a,     /* lop3: a & b ^ c */
    };
    struct cg *g = s->g;
    const int32_t takes = cg_new(g, DT_BOOL);
    if (!even) {
        PTX(&g->b, "setp.num.f32", ptx_r(takes), ptx_r(w[0]), ptx_r(w[1]));
        return takes;
    }
    const int32_t bits = cg_new(g, DT_U32), other = cg_new(g, DT_BOOL);
    PTX(&g->b, "lop3.b32", ptx_r(bits), ptx_r(x), ptx_imm(LAST_BIT | (LAST_BIT - 1)), ptx_imm(HALF),
        ptx_imm(AND_XOR));
    PTX(&g->b, "setp.ne.u32", ptx_r(other), ptx_r(bits), ptx_imm(0));
    PTX(&g->b, "setp.num.and.f32", ptx_r(takes), ptx_r(w[0]), ptx_r(w[1]), ptx_r(other));
    return takes;
}

/* In their places, so that what instructions take of them is rounded: they cut the last bits off. The words are of one row
 * or column: if either is NaN, which a sum might make something else of, so is all that comes of both, and one question
 * does for two words.
 *
 * At 4096^3 on an H100 that takes 5 % of the time: 192 of 435 instructions of the loop, of 256 x 128 x 32, and 128 if NaN did not
 * matter. Rounding an element once for all warps that load it, on its way through registers, leaves 50 of 292 and was 14 %
 * slower: loads and stores by threads cost more than cp.async and the instructions do. Not so where they become f16 on that way
 * (mma/as_f16.c). */
static void round_pair(struct mma *s, const int32_t w[2], bool even)
{
    struct cg *g = s->g;
    if (even && g->target->sm >= 90) {
        for (uint32_t i = 0; i < 2; i++)
            CG_ASSIGN(g, w[i], "cvt.rn.tf32.f32", ptx_r(w[i]));
        return;
    }
    const int32_t first = takes_half(s, w, w[0], even);
    const int32_t second = even ? takes_half(s, w, w[1], even) : first;
    CG_ASSIGN_IF(g, first, w[0], "add.s32", ptx_r(w[0]), ptx_imm(1 << 12));
    CG_ASSIGN_IF(g, second, w[1], "add.s32", ptx_r(w[1]), ptx_imm(1 << 12));
}

uint32_t mma_pair_of(const struct mma_tile *t, uint32_t i)
{
    return t->tall ? i / 2 * 4 + i % 2 : 2 * i;
}

/* Pairs [from, to) of the tile's words, if they are to be rounded or parted: those of k and k + 4. */
static void round_pairs(struct mma *s, const struct mma_slab *t, uint32_t of, uint32_t from,
                        uint32_t to)
{
    const enum matmul_cut cut = s->f->operand[t->of->operand].cut;
    if (s->p->parts > 1)
        mma_part(s, t, of, 2 * from, 2 * to);
    if (s->p->parts > 1 || (cut != MATMUL_AWAY && cut != MATMUL_EVEN))
        return;
    for (uint32_t i = from; i < to; i++) {
        const int32_t *word = t->word[of] + mma_pair_of(t->of, i);
        const int32_t pair[2] = {word[0], word[t->of->tall ? 2 : 1]};
        round_pair(s, pair, cut == MATMUL_EVEN);
    }
}

static void round_row(struct mma *s, uint32_t of, uint32_t i)
{
    for (uint32_t n = 0; n < s->shape->ntile; n++)
        if (s->shape->tile[n].tall)
            round_pairs(s, &s->slab[n], of, 2 * i, 2 * i + 2);
}

static void round_flat(struct mma *s, uint32_t of, uint32_t part, uint32_t parts)
{
    for (uint32_t n = 0; n < s->shape->ntile; n++) {
        const struct mma_slab *t = &s->slab[n];
        const uint32_t pairs = words_of(t->of) / 2;
        if (!t->of->tall)
            round_pairs(s, t, of, pairs * part / parts, pairs * (part + 1) / parts);
    }
}

void mma_round(struct mma *s, uint32_t of)
{
    round_flat(s, of, 0, 1);
    round_row(s, of, 0);
}

/* Two f16 of two bytes. */
static void widen_pairs(struct mma *s, enum dtype type, int32_t word, int32_t to[2])
{
    struct cg *g = s->g;
    if (g->target->sm >= 89) {
        struct ptx_operand half[2] = {ptx_r(ptx_reg_new(&g->b, PTX_B16)),
                                      ptx_r(ptx_reg_new(&g->b, PTX_B16))};
        PTX(&g->b, "mov.b32", ptx_vec(&g->b, 2, half), ptx_r(word));
        for (uint32_t i = 0; i < 2; i++) {
            to[i] = cg_new(g, DT_U32);
            PTX(&g->b, type == DT_E4M3 ? "cvt.rn.f16x2.e4m3x2" : "cvt.rn.f16x2.e5m2x2",
                ptx_r(to[i]), half[i]);
        }
        return;
    }
    struct cg_val v[4];
    cg_unpack(g, type, word, 4, v);
    for (uint32_t i = 0; i < 4; i++)
        v[i] = cg_convert(g, v[i], DT_F16);
    to[0] = cg_pack(g, DT_F16, 2, v).reg;
    to[1] = cg_pack(g, DT_F16, 2, v + 2).reg;
}

/* An instruction's k are those of the lane's first two bytes and of its last two: the same for A and B. */
static void widen(struct mma *s, const struct mma_slab *t, struct words n, struct ready *r)
{
    const enum dtype type = s->f->operand[t->of->operand].type;
    const uint32_t per = t->of->tall ? 4 : 2, rows = per / 2;
    int32_t word[MMA_HELD];
    memcpy(word, r->set[0], sizeof word);
    for (uint32_t i = n.from; i < n.to; i++) {
        int32_t half[2];
        const uint32_t set = i % per / rows, row = i % rows;
        widen_pairs(s, type, word[i], half);
        r->set[set][i / per * per + row] = half[0];
        r->set[set][i / per * per + row + rows] = half[1];
    }
}

static void make_ready(struct mma *s, const struct mma_slab *t, struct words n, uint32_t of,
                       struct ready *r)
{
    if (t->of->layout == MMA_BYTES)
        part_bytes(s, t, n, t->word[of], r->set[0]);
    else
        memcpy(r->set[0] + n.from, t->word[of] + n.from, (n.to - n.from) * sizeof *r->set[0]);
    if (s->p->type == MATMUL_F16 && t->of->size == 1)
        widen(s, t, n, r);
}

/* ---- products ------------------------------------------------------------------------------------- */

static void emit(struct mma *s, const char *mnemonic, uint32_t nd, const int32_t *d,
                 const int32_t *c, uint32_t na, const int32_t *a, uint32_t nb, const int32_t *b)
{
    struct cg *g = s->g;
    struct ptx_operand vd[4], va[4], vb[2], vc[4];
    for (uint32_t i = 0; i < nd; i++) {
        vd[i] = ptx_r(d[i]);
        vc[i] = ptx_r(c[i]);
    }
    for (uint32_t i = 0; i < na; i++)
        va[i] = ptx_r(a[i]);
    for (uint32_t i = 0; i < nb; i++)
        vb[i] = ptx_r(b[i]);
    PTX(&g->b, mnemonic, ptx_vec(&g->b, nd, vd), ptx_vec(&g->b, na, va), ptx_vec(&g->b, nb, vb),
        ptx_vec(&g->b, nd, vc));
}

/* sm_75 has instructions of half as many k, and of 8 bits half as many rows too. */
static void emit_small(struct mma *s, const char *types, int32_t *d, const int32_t *a,
                       const int32_t *b)
{
    char m[80];
    const bool bytes = s->p->type == MATMUL_INT8;
    snprintf(m, sizeof m, "mma.sync.aligned.%s.row.col.%s", bytes ? "m8n8k16" : "m16n8k8", types);
    for (uint32_t k = 0; k < 2; k++) {
        if (!bytes)
            emit(s, m, 4, d, d, 2, a + (size_t)k * 2, 1, b + k);
        for (uint32_t half = 0; bytes && half < 2; half++)
            emit(s, m, 2, d + (size_t)half * 2, d + (size_t)half * 2, 1, a + (size_t)k * 2 + half,
                 1, b + k);
    }
}

/* d = c + a b; c is d itself but for tf32. */
static void multiply_16x8(struct mma *s, const struct matmul_product *q, int32_t *d,
                          const int32_t *c, const int32_t *a, const int32_t *b)
{
    static const char *const shape[] = {[MATMUL_F16] = "m16n8k16",
                                        [MATMUL_BF16] = "m16n8k16",
                                        [MATMUL_TF32] = "m16n8k8",
                                        [MATMUL_INT8] = "m16n8k32",
                                        [MATMUL_FP8] = "m16n8k32"};
    static const char *const name[] = {
        [DT_I8] = "s8", [DT_U8] = "u8", [DT_E4M3] = "e4m3", [DT_E5M2] = "e5m2"};
    const enum dtype ta = s->f->operand[s->shape->turned ? q->b : q->a].type;
    const enum dtype tb = s->f->operand[s->shape->turned ? q->a : q->b].type;
    char m[80], types[32];
    switch (s->p->type) {
    case MATMUL_F16: snprintf(types, sizeof types, "f32.f16.f16.f32"); break;
    case MATMUL_BF16: snprintf(types, sizeof types, "f32.bf16.bf16.f32"); break;
    case MATMUL_TF32: snprintf(types, sizeof types, "f32.tf32.tf32.f32"); break;
    case MATMUL_INT8: snprintf(types, sizeof types, "s32.%s.%s.s32", name[ta], name[tb]); break;
    case MATMUL_FP8: snprintf(types, sizeof types, "f32.%s.%s.f32", name[ta], name[tb]); break;
    default: abort();
    }
    if (s->g->target->sm < 80) {
        emit_small(s, types, d, a, b);
        return;
    }
    snprintf(m, sizeof m, "mma.sync.aligned.%s.row.col.%s", shape[s->p->type], types);
    emit(s, m, 4, d, c, 4, a, 2, b);
}

void mma_multiply_row(struct mma *s, uint32_t q, bool back, int32_t *d, bool fresh,
                      const int32_t *a, const int32_t *b)
{
    const int32_t zeros[4] = {s->zero, s->zero, s->zero, s->zero};
    for (uint32_t n = 0; n < s->shape->wide; n++) {
        const uint32_t j = back ? s->shape->wide - 1 - n : n;
        int32_t *to = d + (size_t)j * 4;
        multiply_16x8(s, &s->f->product[q], to, fresh ? zeros : to, a, b + (size_t)j * 2);
    }
}

void mma_multiply_pairs(struct mma *s, int32_t *d, const int32_t *const a[2], const int32_t *b0,
                        const int32_t *b1)
{
    for (uint32_t n = 0; n < s->shape->wide; n++) {
        const uint32_t j = s->shape->wide - 1 - n;
        const int32_t of_a[4] = {a[0][0], a[0][1], a[1][0], a[1][1]}, of_b[2] = {b0[j], b1[j]};
        int32_t *to = d + (size_t)j * 4;
        emit(s, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 4, to, to, 4, of_a, 2, of_b);
    }
}

int32_t *mma_sums_of_row(const struct mma *s, uint32_t q, uint32_t i)
{
    return s->sum + ((size_t)q * s->shape->high + i) * s->shape->wide * 4;
}

static void multiply_rows(struct mma *s, uint32_t i, uint32_t of, const struct ready *r)
{
    const uint32_t sets = s->p->type == MATMUL_F16 && s->shape->tile[0].size == 1 ? 2 : 1;
    bool back = i * sets * s->f->nproduct % 2;
    for (uint32_t k = 0; k < sets; k++)
        for (uint32_t q = 0; q < s->f->nproduct; q++) {
            const struct matmul_product *p = &s->f->product[q];
            const struct ready *a = &r[s->shape->tile_of[s->shape->turned ? p->b : p->a]];
            const struct ready *b = &r[s->shape->tile_of[s->shape->turned ? p->a : p->b]];
            if (s->p->parts > 1)
                mma_multiply_parts(s, q, i, of);
            else
                mma_multiply_row(s, q, back, mma_sums_of_row(s, q, i), false,
                                 a->set[k] + (size_t)i * 4, b->set[k]);
            back = !back;
        }
}

void mma_multiply_rows(struct mma *s, uint32_t i, uint32_t of)
{
    for (uint32_t q = 0; q < s->f->nproduct; q++) {
        const struct matmul_product *p = &s->f->product[q];
        const struct mma_slab *a = &s->slab[s->shape->tile_of[s->shape->turned ? p->b : p->a]];
        const struct mma_slab *b = &s->slab[s->shape->tile_of[s->shape->turned ? p->a : p->b]];
        mma_multiply_row(s, q, (i * s->f->nproduct + q) % 2, mma_sums_of_row(s, q, i), false,
                         a->word[of] + (size_t)i * 4, b->word[of]);
    }
}

/* The flat operands' words are made ready for all rows, the tall ones' when their rows' turn comes: fewer wait in
 * registers. */
void mma_multiply(struct mma *s, uint32_t step, uint32_t of, uint32_t next)
{
    s->step = step;
    struct ready *r = ARENA_ARRAY(s->g->a, s->shape->ntile, struct ready);
    const uint32_t rows = s->shape->high;
    for (uint32_t n = 0; n < s->shape->ntile; n++) {
        if (s->shape->tile[n].tall)
            continue;
        make_ready(s, &s->slab[n], (struct words){0, words_of(&s->shape->tile[n])}, of, &r[n]);
        if (s->p->coarse)
            mma_pair(s, &s->slab[n], of, 0, s->shape->wide);
    }
    for (uint32_t i = 0; i < rows; i++) {
        if (i + 1 < rows)
            round_row(s, of, i + 1);
        for (uint32_t n = 0; n < s->shape->ntile; n++) {
            if (!s->shape->tile[n].tall)
                continue;
            make_ready(s, &s->slab[n], (struct words){4 * i, 4 * i + 4}, of, &r[n]);
            if (s->p->coarse)
                mma_pair(s, &s->slab[n], of, 2 * i, 2 * i + 2);
        }
        multiply_rows(s, i, of, r);
        if (next != of)
            round_flat(s, next, i, rows);
    }
    if (next != of)
        round_row(s, next, 0);
}
