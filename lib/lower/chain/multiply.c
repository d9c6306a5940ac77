/* Products of tiles by mma.sync (chain.h): words of shared memory, and of the streams, to sums.
 *
 * f32 is multiplied in two parts of tf32 each, a = a0 + a1, where a0 is a rounded to 11 bits
 * (mma/parts.c says why): a1 b0 + a0 b1 + a0 b0. Instructions add up the products of TOGETHER steps
 * from zero, and these sums are added as f32 is. Of 8-bit floats, whose instructions have 14 bits
 * of a sum on some GPUs, that is done for all terms of a tile.
 *
 * The terms of a stream's product stand in an order of their own. A lane has the scores of j = 8 b
 * + 2 c and the next one; so these are what it takes for terms c and c + 4 of a step of 8 terms,
 * and for 4 c and 4 c + 1, and those of the next 8 for 4 c + 2 and 4 c + 3, of a step of 32. Rows
 * of the right operand are taken in that order: of 8 bits as pairs of neighbouring columns, which
 * are then parted.
 */
#include <config.h>

#include "lower/chain/chain.h"

enum {
    TOGETHER = 2,   /* steps of parts */
    HALF = 1 << 12, /* of the last bit that tf32 has */
    CUT = -8192,    /* its bits: 0xffffe000 */
    GROUP = 4,      /* blocks of 8 columns that are multiplied along all terms, at most */
};

static int32_t *words(struct cg *g, uint32_t n)
{
    int32_t *w = ARENA_ARRAY(g->a, n, int32_t);
    for (uint32_t i = 0; i < n; i++)
        w[i] = cg_new_mutable(g, DT_U32);
    return w;
}

static int32_t *sums(struct cg *g, uint32_t n)
{
    int32_t *w = ARENA_ARRAY(g->a, n, int32_t);
    for (uint32_t i = 0; i < n; i++)
        w[i] = cg_new_mutable(g, DT_F32);
    return w;
}

/* d = a b, or d += a b. */
static void multiply(const struct chain_multiply *m, const int32_t *d, bool fresh, const int32_t *a,
                     const int32_t *b)
{
    struct cg *g = m->g;
    const int32_t zero = fresh ? cg_reg(g, cg_float(g, DT_F32, 0)) : -1;
    const int32_t zeros[4] = {zero, zero, zero, zero};
    mma_product(g, &m->p->kind, d, fresh ? zeros : d, a, b);
    for (uint32_t i = 0; i < 4; i++)
        cg_assigned(g, d[i]);
}

static void add(struct cg *g, uint32_t n, const int32_t *to, const int32_t *from)
{
    for (uint32_t i = 0; i < n; i++)
        CG_ASSIGN(g, to[i], "add.rn.f32", ptx_r(to[i]), ptx_r(from[i]));
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Words as two of tf32 each: instructions cut the last bits of the first ones off. */
struct parts {
    int32_t *first, *rest;
};

static void part(struct cg *g, struct parts *p, uint32_t n, const int32_t *word)
{
    p->first = ARENA_ARRAY(g->a, n, int32_t);
    p->rest = ARENA_ARRAY(g->a, n, int32_t);
    for (uint32_t i = 0; i < n; i++) {
        const int32_t cut = cg_new(g, DT_U32);
        p->first[i] = cg_new(g, DT_U32);
        p->rest[i] = cg_new(g, DT_U32);
        PTX(&g->b, "add.s32", ptx_r(p->first[i]), ptx_r(word[i]), ptx_imm(HALF));
        PTX(&g->b, "and.b32", ptx_r(cut), ptx_r(p->first[i]), ptx_imm(CUT));
        PTX(&g->b, "sub.rn.f32", ptx_r(p->rest[i]), ptx_r(word[i]), ptx_r(cut));
    }
}

/* The products of words a of the left operand and b of the right one. */
static void multiply_parts(const struct chain_multiply *m, const int32_t *d, bool fresh,
                           const struct parts *left, uint32_t a, const struct parts *right,
                           uint32_t b)
{
    multiply(m, d, fresh, left->rest + a, right->first + b);
    multiply(m, d, false, left->first + a, right->rest + b);
    multiply(m, d, false, left->first + a, right->first + b);
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* Those of a step, added to `to`. */
static void multiply_step(const struct chain_multiply *m, int32_t *to, bool fresh, const int32_t *a,
                          const int32_t *b)
{
    struct parts left, right;
    if (m->p->splits) {
        part(m->g, &left, mma_words(m->left), a);
        part(m->g, &right, mma_words(m->right), b);
    }
    for (uint32_t n = 0; n < m->wide / 8; n++)
        for (uint32_t i = 0; i < m->high; i++) {
            const int32_t *d = to + (size_t)(i * m->wide / 8 + n) * 4;
            if (m->p->splits)
                multiply_parts(m, d, fresh, &left, 4 * i, &right, 2 * n);
            else
                multiply(m, d, fresh, a + (size_t)4 * i, b + (size_t)2 * n);
        }
}

void chain_multiply_score(const struct chain_multiply *m)
{
    struct cg *g = m->g;
    const uint32_t each = mma_words(m->left), all = m->high * m->wide / 2;
    int32_t *const right = words(g, mma_words(m->right));
    int32_t *const own = m->word ? NULL : words(g, each);
    int32_t *const some = m->p->splits ? sums(g, all) : NULL;
    for (uint32_t w = 0; w < all && !some; w++)
        cg_move(g, m->sum[w], cg_float(g, DT_F32, 0));
    for (uint32_t s = 0; s < m->steps; s++) {
        int32_t *const to = some && s >= TOGETHER ? some : m->sum;
        if (own)
            mma_load_words(g, m->left, m->left_at, s, own);
        mma_load_words(g, m->right, m->right_at, s, right);
        multiply_step(m, to, some && s % TOGETHER == 0, own ? own : m->word + (size_t)s * each,
                      right);
        if (to == some && (s % TOGETHER == TOGETHER - 1 || s + 1 == m->steps))
            add(g, all, m->sum, some);
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Of 16 bits: all columns of a step at once. */
static void multiply_all(const struct chain_multiply *m)
{
    int32_t *const right = words(m->g, mma_words(m->right));
    for (uint32_t s = 0; s < m->steps; s++) {
        mma_load_words(m->g, m->right, m->right_at, s, right);
        for (uint32_t q = 0; q < m->p->parts; q++)
            for (uint32_t n = 0; n < m->wide / 8; n++)
                for (uint32_t i = 0; i < m->high; i++)
                    multiply(m, m->sum + (size_t)(i * m->wide / 8 + n) * 4, false,
                             m->word + (size_t)((q * m->high + i) * m->steps + s) * 4,
                             right + (size_t)2 * n);
    }
}

/* Blocks of 8 columns of a group. */
static uint32_t blocks_of(const struct chain_multiply *m)
{
    return chain_size(m->p, MATMUL_B) == 1 ? GROUP : GROUP / 2;
}

/* Loads the words of step s, of group number c of the columns. */
static void load_group(const struct chain_multiply *m, uint32_t s, uint32_t c, const int32_t *raw,
                       int32_t *word)
{
    struct cg *g = m->g;
    if (chain_size(m->p, MATMUL_B) > 1) {
        mma_load_block(g, m->right, m->right_at, s, c, word);
        return;
    }
    for (uint32_t half = 0; half < 2; half++) {
        mma_load_block(g, m->right, m->right_at, 2 * s + half, c, raw);
        for (uint32_t w = 0; w < GROUP; w++) {
            const int32_t *pair = raw + w / 2 * 2;
            CG_ASSIGN(g, word[2 * w + half], "prmt.b32", ptx_r(pair[0]), ptx_r(pair[1]),
                      ptx_imm(w % 2 ? 0x7531 : 0x6420));
        }
    }
}

/* Of others: along all terms, some columns at a time, so that few sums are on their way to the
 * others. */
static void multiply_group(const struct chain_multiply *m, const struct parts *left, uint32_t c,
                           const int32_t *raw, int32_t *right, const int32_t *some)
{
    const uint32_t blocks = blocks_of(m), apart = m->p->splits ? TOGETHER : m->steps;
    for (uint32_t s = 0; s < m->steps; s++) {
        struct parts of;
        load_group(m, s, c, raw, right);
        if (m->p->splits)
            part(m->g, &of, 2 * blocks, right);
        for (uint32_t n = 0; n < blocks; n++)
            for (uint32_t i = 0; i < m->high; i++) {
                const int32_t *d = some + (size_t)(i * blocks + n) * 4;
                const uint32_t w = (i * m->steps + s) * 4;
                if (m->p->splits)
                    multiply_parts(m, d, s % apart == 0, left, w, &of, 2 * n);
                else
                    multiply(m, d, s % apart == 0, m->word + w, right + (size_t)2 * n);
            }
        if (s % apart != apart - 1 && s + 1 < m->steps)
            continue;
        for (uint32_t i = 0; i < m->high; i++)
            add(m->g, 4 * blocks, m->sum + (size_t)(i * m->wide / 8 + c * blocks) * 4,
                some + (size_t)i * blocks * 4);
    }
}

void chain_multiply_column(const struct chain_multiply *m)
{
    struct cg *g = m->g;
    struct parts left;
    if (chain_size(m->p, MATMUL_B) == 2) {
        multiply_all(m);
        return;
    }
    const uint32_t blocks = blocks_of(m);
    int32_t *const raw = words(g, GROUP), *const right = words(g, 2 * blocks);
    int32_t *const some = sums(g, m->high * blocks * 4);
    if (m->p->splits)
        part(g, &left, m->high * m->steps * 4, m->word);
    for (uint32_t c = 0; c < m->wide / 8 / blocks; c++)
        multiply_group(m, &left, c, raw, right, some);
}
