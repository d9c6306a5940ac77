/* The left operand's fragments in registers (wgmma/wgmma.h), of tf32: what lies across is not
 * turned then, and what is to be rounded is rounded there.
 *
 * Of an instruction's 64 rows and 8 terms, warp w has rows 16 w on; lane 4 r + c of it has
 *
 *     word 0: row r, k = c   1: row r + 8, k = c   2: row r, k = c + 4   3: row r + 8, k = c + 4
 *
 * Along k that is what ldmatrix makes of four chunks of 8 rows each, if it takes two bytes for an
 * element.
 *
 * Across, 8 rows r are two chunks of row k of an atom, n and n + 1 (n even), which lie at n ^ k and
 * (n + 1) ^ k: those of k = c, 0 to 3, share the banks of four chunks, as those of k = c + 4 share
 * the other four. So while lanes of r < 4 load k = c those of r >= 4 load k = c + 4, and then the
 * other; a selection brings the words in order:
 *
 *                   chunks of an atom's row  0 1 2 3 4 5 6 7
 *     n = 0, r < 4:  k = 0, 1, 2, 3 at       0 1 2 3
 *            r >= 4: k = 4, 5, 6, 7 at               4 5 6 7    (1 ^ k: 5 4 7 6)
 */
#include <config.h>

#include "lower/wgmma/wgmma.h"

enum { WORDS = 4, CHUNK = 16, SIDE = 8, AHEAD = 2 };

uint32_t wgmma_held_words(const struct wgmma_shape *s)
{
    uint32_t n = 0;
    const uint32_t each = s->p->parts > 1 ? s->steps : AHEAD * (s->high / WGMMA_ROWS);
    for (uint32_t i = 0; i < s->ntile; i++)
        n += s->tile[i].held ? 2 * each * WORDS : 0;
    return n;
}

/* Where the lane's row of the chunks for ldmatrix begins: of step 0, in stage 0. */
static void find_along(struct wgmma *s, uint32_t tile, struct cg_val first, struct cg_val warp)
{
    struct cg *g = s->g;
    const struct cg_val lane = s->m->lane;
    struct cg_val row = cg_binary(g, OP_AND, lane, cg_u32(2 * SIDE - 1));
    const struct cg_val in_side = cg_binary(g, OP_AND, row, cg_u32(SIDE - 1));
    const struct cg_val half = cg_binary(g, OP_SHR, lane, cg_u32(4));
    const struct cg_val chunk = cg_binary(g, OP_XOR, half, in_side);
    const struct cg_val part = cg_mul(g, s->part, s->shape->high);
    row = cg_add(g, cg_add(g, row, cg_mul(g, warp, WGMMA_PATCH)), part);
    const struct cg_val in_row = cg_mul(g, chunk, CHUNK);
    const struct cg_val at = cg_add(g, cg_mul(g, row, WGMMA_SPAN), in_row);
    s->from[tile][0] = cg_reg(g, cg_add(g, first, at));
}

/* Where the lane's words are: the ones that it loads first, rows r and r + 8, and the others. */
static void find_across(struct wgmma *s, uint32_t tile, struct cg_val first, struct cg_val warp)
{
    struct cg *g = s->g;
    const struct wgmma_tile *t = &s->shape->tile[tile];
    const struct cg_val c = cg_binary(g, OP_AND, s->m->lane, cg_u32(3));
    const struct cg_val r = cg_binary(g, OP_SHR, s->m->lane, cg_u32(2));
    const struct cg_val late = cg_binary(g, OP_SHR, r, cg_u32(2));
    struct cg_val atom = cg_binary(g, OP_SHR, warp, cg_u32(1));
    atom = cg_add(g, atom, cg_mul(g, s->part, s->shape->high * t->size / WGMMA_SPAN));
    first = cg_add(g, first, cg_mul(g, atom, t->atom_bytes));
    first = cg_add(g, first, cg_mul(g, cg_binary(g, OP_AND, r, cg_u32(3)), t->size));
    for (uint32_t i = 0; i < WORDS; i++) {
        struct cg_val k = cg_binary(g, OP_XOR, late, cg_u32(i / 2));
        k = cg_add(g, c, cg_mul(g, k, SIDE / 2));
        struct cg_val chunk = cg_mul(g, cg_binary(g, OP_AND, warp, cg_u32(1)), SIDE / 2);
        chunk = cg_add(g, chunk, cg_add(g, late, cg_u32(i % 2 * 2)));
        chunk = cg_mul(g, cg_binary(g, OP_XOR, chunk, k), CHUNK);
        s->from[tile][i] = cg_reg(g, cg_add(g, first, cg_add(g, cg_mul(g, k, WGMMA_SPAN), chunk)));
    }
}

void wgmma_hold_begin(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct cg_val warp = cg_binary(g, OP_AND, s->m->warp, cg_u32(3));
    s->late = cg_reg(g, cg_binary(g, OP_GE, s->m->lane, cg_u32(16)));
    for (uint32_t i = 0; i < s->shape->ntile; i++) {
        const struct wgmma_tile *t = &s->shape->tile[i];
        const struct cg_val first = cg_add(g, cg_value(DT_U32, s->m->shared), cg_u32(t->offset));
        if (t->held && t->along_k)
            find_along(s, i, first, warp);
        else if (t->held)
            find_across(s, i, first, warp);
        for (uint32_t part = 0; part < s->p->parts; part++)
            s->held[i][part] = ARENA_ARRAY(g->a, wgmma_held_words(s->shape), int32_t);
    }
}

static struct cg_val in_stage(struct wgmma *s, int32_t from)
{
    return cg_add(s->g, cg_value(DT_U32, from), cg_value(DT_U32, s->ring.offset));
}

/* The words of 64 rows i of a step. */
static void load_along(struct wgmma *s, uint32_t tile, uint32_t step, uint32_t i, int32_t *word)
{
    struct cg *g = s->g;
    const uint32_t per_atom = WGMMA_SPAN / WGMMA_STEP;
    struct ptx_operand v[WORDS];
    for (uint32_t e = 0; e < WORDS; e++)
        v[e] = ptx_r(word[e] = cg_new(g, DT_U32));
    const struct cg_val at =
        cg_binary(g, OP_XOR, in_stage(s, s->from[tile][0]), cg_u32(step % per_atom * WGMMA_STEP));
    const uint32_t atom = step / per_atom * s->shape->tile[tile].atom_bytes;
    PTX(&g->b, "ldmatrix.sync.aligned.m8n8.x4.shared.b16", ptx_vec(&g->b, WORDS, v),
        ptx_mem(cg_reg(g, at), atom + i * WGMMA_ROWS * WGMMA_SPAN));
}

static void load_across(struct wgmma *s, uint32_t tile, uint32_t step, uint32_t i, int32_t *word)
{
    struct cg *g = s->g;
    const struct wgmma_tile *t = &s->shape->tile[tile];
    const uint32_t offset = step * SIDE * WGMMA_SPAN +
                            i * (WGMMA_ROWS * t->size / WGMMA_SPAN) * t->atom_bytes;
    int32_t w[WORDS];
    for (uint32_t e = 0; e < WORDS; e++) {
        w[e] = cg_new(g, DT_U32);
        PTX(&g->b, "ld.shared.b32", ptx_r(w[e]),
            ptx_mem(cg_reg(g, in_stage(s, s->from[tile][e])), offset));
    }
    for (uint32_t e = 0; e < WORDS; e++) {
        word[e] = cg_new(g, DT_U32);
        PTX(&g->b, "selp.b32", ptx_r(word[e]), ptx_r(w[(e + 2) % WORDS]), ptx_r(w[e]),
            ptx_r(s->late));
    }
}

void wgmma_hold(struct wgmma *s, uint32_t step)
{
    struct cg *g = s->g;
    const uint32_t high = s->shape->high / WGMMA_ROWS;
    for (uint32_t n = 0; n < s->shape->ntile; n++) {
        const struct wgmma_tile *t = &s->shape->tile[n];
        for (uint32_t i = 0; i < AHEAD * high && t->held; i++) {
            int32_t *word = s->held[n][0] + (size_t)i * WORDS;
            (t->along_k ? load_along : load_across)(s, n, step + i / high, i % high, word);
            for (uint32_t e = 0; e < WORDS && wgmma_rounds(s->shape, t); e++) {
                const int32_t r = cg_new(g, DT_U32);
                PTX(&g->b, "cvt.rna.tf32.f32", ptx_r(r), ptx_r(word[e]));
                word[e] = r;
            }
        }
    }
}

/* x rounded to tf32, finite, and the rest, which is infinite or NaN where x is; instructions cut
 * the rest's last bits off. */
static void part(struct wgmma *s, int32_t x, int32_t *first, int32_t *rest)
{
    struct cg *g = s->g;
    const float most = 0x1.ffdffep127f; /* that does not round to infinity */
    const int32_t y = cg_new(g, DT_U32), up = cg_new(g, DT_U32);
    *first = cg_new(g, DT_U32);
    *rest = cg_new(g, DT_U32);
    PTX(&g->b, "min.xorsign.abs.f32", ptx_r(y), ptx_r(x), ptx_immf32(most));
    PTX(&g->b, "add.s32", ptx_r(up), ptx_r(y), ptx_imm(1 << 12));
    PTX(&g->b, "and.b32", ptx_r(*first), ptx_r(up), ptx_imm(0xffffe000));
    PTX(&g->b, "sub.rn.f32", ptx_r(*rest), ptx_r(x), ptx_r(*first));
}

void wgmma_hold_parts(struct wgmma *s, uint32_t i)
{
    for (uint32_t n = 0; n < s->shape->ntile; n++) {
        const struct wgmma_tile *t = &s->shape->tile[n];
        for (uint32_t step = 0; step < s->shape->steps && t->held; step++) {
            int32_t *first = s->held[n][0] + (size_t)step * WORDS,
                    *rest = s->held[n][1] + (size_t)step * WORDS;
            (t->along_k ? load_along : load_across)(s, n, step, i, first);
            struct ptx_operand x[WORDS];
            for (uint32_t e = 0; e < WORDS; e++)
                x[e] = ptx_r(first[e]);
            wgmma_range_take(s, x, WORDS);
            for (uint32_t e = 0; e < WORDS; e++)
                part(s, first[e], &first[e], &rest[e]);
        }
    }
}

struct ptx_operand wgmma_held(struct wgmma *s, uint32_t tile, uint32_t step, uint32_t i, bool rest)
{
    const uint32_t at = s->p->parts > 1 ? step : step % AHEAD * (s->shape->high / WGMMA_ROWS) + i;
    const int32_t *word = s->held[tile][rest] + (size_t)at * WORDS;
    struct ptx_operand v[WORDS];
    for (uint32_t e = 0; e < WORDS; e++)
        v[e] = ptx_r(word[e]);
    return ptx_vec(&s->g->b, WORDS, v);
}
