/* Loads what each lane of a warp holds from shared memory, and multiplies it (mma/mma.h). */
#include <config.h>

#include "lower/mma/mma.h"

static struct cg_val op(struct cg *g, enum lang_op o, struct cg_val x, uint32_t y)
{
    return cg_binary(g, o, x, cg_u32(y));
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool is_a(const struct mma_tile *t)
{
    return t->side == MATMUL_A;
}

void mma_read_begin(struct mma *s)
{
    struct cg *g = s->g;
    const uint32_t across = s->p->bn / s->p->wn;
    for (uint32_t n = 0; n < s->shape->ntile; n++) {
        struct mma_slab *t = &s->slab[n];
        struct cg_val base = op(g, is_a(t->of) ? OP_DIV : OP_MOD, s->m->warp, across);
        base = op(g, OP_MUL, base, t->of->lay.span);
        t->ways = mma_ways(&t->of->lay, s->shape->steps);
        for (uint32_t i = 0; i < t->ways; i++) {
            const struct cg_val at =
                mma_lane_address(g, &t->of->lay, s->m->lane, base, i, s->m->shared, t->of->offset);
            t->at[i] = cg_reg(g, at);
        }
        for (uint32_t i = 0; i < mma_words(&t->of->lay); i++) {
            t->word[0][i] = cg_new_mutable(g, DT_U32);
            t->word[1][i] = cg_new_mutable(g, DT_U32);
            t->rest[0][i] = s->p->parts > 1 ? cg_new_mutable(g, DT_U32) : -1;
            t->rest[1][i] = s->p->parts > 1 ? cg_new_mutable(g, DT_U32) : -1;
        }
        for (uint32_t i = 0; i < mma_words(&t->of->lay) && s->p->coarse; i++)
            t->pair[i % 2][i / 2] = cg_new_mutable(g, DT_U32);
    }
}

/* ---- loads ----------------------------------------------------------------------------------- */

void mma_load(struct mma *s, uint32_t step, uint32_t to)
{
    struct cg *g = s->g;
    for (uint32_t n = 0; n < s->shape->ntile; n++) {
        struct mma_slab *t = &s->slab[n];
        for (uint32_t i = 0; i < t->ways; i++) {
            t->now[i] = cg_new(g, DT_U32);
            PTX(&g->b, "add.s32", ptx_r(t->now[i]), ptx_r(t->at[i]), ptx_r(s->read));
        }
        mma_load_words(g, &t->of->lay, t->now, step, t->word[to]);
    }
}

/* ---- words as the instructions take them ----------------------------------------------------- */

/* Each operand has up to two sets of words: f16 of 8 bits takes two halves of k. */
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
            /* tall: neighbours are halves of an instruction's rows; flat: of instructions side by
             * side */
            const uint32_t odd = t->of->lay.tall ? w % 2 : w / 2,
                           high = t->of->lay.tall ? w / 2 : w % 2;
            to[i + w] = cg_new(g, DT_U32);
            PTX(&g->b, "prmt.b32", ptx_r(to[i + w]), ptx_r(word[i + 2 * high]),
                ptx_r(word[i + 2 * high + 1]), ptx_imm(odd ? 0x7531 : 0x6420));
        }
}

/* A predicate of whether half of what is cut off belongs to be added to x, one of a pair of words:
 * not where one of them is NaN, and not, of halves to even, where x is half above an even
 * number. */
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

/* In their places, so that what instructions take of them is rounded: they cut the last bits off.
 * The words are of one row or column: if either is NaN, which a sum might make something else of,
 * so is all that comes of both, and one question does for two words.
 *
 * At 4096^3 on an H100 that takes 5 % of the time: 192 of 435 instructions of the loop, of 256 x
 * 128 x 32, and 128 if NaN did not matter. Rounding an element once for all warps that load it, on
 * its way through registers, leaves 50 of 292 and was 14 % slower: loads and stores by threads cost
 * more than cp.async and the instructions do. Not so where they become f16 on that way
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

/* Pairs [from, to) of the tile's words, if they are to be rounded or parted: those of k and k +
 * 4. */
static void round_pairs(struct mma *s, const struct mma_slab *t, uint32_t of, uint32_t from,
                        uint32_t to)
{
    const struct matmul_operand *o = &s->f->operand[t->of->operand];
    const enum matmul_cut cut = t->of->gather ? t->of->gather->cut : o->cut;
    if (s->p->parts > 1)
        mma_part(s, t, of, 2 * from, 2 * to);
    if (s->p->parts > 1 || (cut != MATMUL_AWAY && cut != MATMUL_EVEN))
        return;
    for (uint32_t i = from; i < to; i++) {
        const int32_t *word = t->word[of] + mma_pair_of(&t->of->lay, i);
        const int32_t pair[2] = {word[0], word[t->of->lay.tall ? 2 : 1]};
        round_pair(s, pair, cut == MATMUL_EVEN);
    }
}

static void round_row(struct mma *s, uint32_t of, uint32_t i)
{
    for (uint32_t n = 0; n < s->shape->ntile; n++)
        if (s->shape->tile[n].lay.tall)
            round_pairs(s, &s->slab[n], of, 2 * i, 2 * i + 2);
}

static void round_flat(struct mma *s, uint32_t of, uint32_t part, uint32_t parts)
{
    for (uint32_t n = 0; n < s->shape->ntile; n++) {
        const struct mma_slab *t = &s->slab[n];
        const uint32_t pairs = mma_words(&t->of->lay) / 2;
        if (!t->of->lay.tall)
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

/* An instruction's k are those of the lane's first two bytes and of its last two: the same for A
 * and B. */
static void widen(struct mma *s, const struct mma_slab *t, struct words n, struct ready *r)
{
    const enum dtype type = s->f->operand[t->of->operand].type;
    const uint32_t per = t->of->lay.tall ? 4 : 2, rows = per / 2;
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
    if (t->of->lay.layout == MMA_BYTES)
        part_bytes(s, t, n, t->word[of], r->set[0]);
    else
        memcpy(r->set[0] + n.from, t->word[of] + n.from, (n.to - n.from) * sizeof *r->set[0]);
    if (s->p->type == MATMUL_F16 && t->of->size == 1)
        widen(s, t, n, r);
}

/* ---- products -------------------------------------------------------------------------------- */

static struct mma_kind kind_of(const struct mma *s, const struct matmul_product *q)
{
    switch (s->p->type) {
    case MATMUL_F16: return (struct mma_kind){DT_F16, DT_F16}; /* 8-bit floats are widened */
    case MATMUL_BF16: return (struct mma_kind){DT_BF16, DT_BF16};
    case MATMUL_TF32: return (struct mma_kind){DT_F32, DT_F32};
    default: break;
    }
    const enum dtype a = s->f->operand[q->a].type, b = s->f->operand[q->b].type;
    return s->shape->turned ? (struct mma_kind){b, a} : (struct mma_kind){a, b};
}

void mma_multiply_row(struct mma *s, uint32_t q, bool back, int32_t *d, bool fresh,
                      const int32_t *a, const int32_t *b)
{
    const int32_t zeros[4] = {s->zero, s->zero, s->zero, s->zero};
    const struct mma_kind kind = kind_of(s, &s->f->product[q]);
    for (uint32_t n = 0; n < s->shape->wide; n++) {
        const uint32_t j = back ? s->shape->wide - 1 - n : n;
        int32_t *to = d + (size_t)j * 4;
        mma_product(s->g, &kind, to, fresh ? zeros : to, a, b + (size_t)j * 2);
    }
}

void mma_multiply_pairs(struct mma *s, int32_t *d, const int32_t *const a[2], const int32_t *b0,
                        const int32_t *b1)
{
    static const struct mma_kind kind = {DT_BF16, DT_BF16};
    for (uint32_t n = 0; n < s->shape->wide; n++) {
        const uint32_t j = s->shape->wide - 1 - n;
        const int32_t of_a[4] = {a[0][0], a[0][1], a[1][0], a[1][1]}, of_b[2] = {b0[j], b1[j]};
        int32_t *to = d + (size_t)j * 4;
        mma_product(s->g, &kind, to, to, of_a, of_b);
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

/* The flat operands' words are made ready for all rows, the tall ones' when their rows' turn comes:
 * fewer wait in registers. */
void mma_multiply(struct mma *s, uint32_t step, uint32_t of, uint32_t next)
{
    s->step = step;
    struct ready *r = ARENA_ARRAY(s->g->a, s->shape->ntile, struct ready);
    const uint32_t rows = s->shape->high;
    for (uint32_t n = 0; n < s->shape->ntile; n++) {
        if (s->shape->tile[n].lay.tall)
            continue;
        make_ready(s, &s->slab[n], (struct words){0, mma_words(&s->shape->tile[n].lay)}, of, &r[n]);
        if (s->p->coarse)
            mma_pair(s, &s->slab[n], of, 0, s->shape->wide);
    }
    for (uint32_t i = 0; i < rows; i++) {
        if (i + 1 < rows)
            round_row(s, of, i + 1);
        for (uint32_t n = 0; n < s->shape->ntile; n++) {
            if (!s->shape->tile[n].lay.tall)
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
