/* Words of the left operands of streams' products, of the elements that the streams have computed
 * (chain.h), in the order that chain/multiply.c says. */
#include <config.h>

#include "lower/chain/chain.h"

uint32_t chain_words(const struct chain_tile *x, uint32_t c)
{
    return x->wide * chain_size(&x->t->column[c], MATMUL_A) / 8;
}

const struct lang_expr *chain_unrounded(const struct chain_tile *x, uint32_t c, enum dtype *t)
{
    const struct chain_product *p = &x->t->column[c];
    const struct lang_expr *e = x->t->f->stream[p->stream].part[0].e;
    const bool casts = e->kind == E_CAST && e->type == p->kind.left && e->args[0]->type == DT_F32;
    *t = casts || p->parts > 1 || chain_size(p, MATMUL_A) == 1 ? DT_F32 : p->kind.left;
    return casts ? e->args[0] : e;
}

/* Assigns the words of the left operand's parts, of a pair of elements: what each part leaves is
 * the next one's. */
static void assign_words(struct chain_tile *x, uint32_t c, uint32_t word, struct cg_val *v)
{
    struct cg *g = x->g;
    const uint32_t parts = x->t->column[c].parts, each = x->high * chain_words(x, c);
    const enum dtype t = x->t->column[c].kind.left;
    for (uint32_t q = 0; q < parts; q++) {
        struct cg_val part[2];
        for (uint32_t i = 0; i < 2; i++) {
            part[i] = cg_convert(g, v[i], t);
            if (q + 1 < parts)
                v[i] = cg_binary(g, OP_SUB, v[i], cg_convert(g, part[i], DT_F32));
        }
        CG_ASSIGN(g, x->word[c][q * each + word], "mov.b32", cg_pack(g, t, 2, part));
    }
}

/* Assigns the word of four elements of 8 bits, which are f32 here. */
static void assign_bytes(struct chain_tile *x, uint32_t c, uint32_t word, const struct cg_val *v)
{
    struct cg *g = x->g;
    const char *m = x->t->column[c].kind.left == DT_E4M3 ? "cvt.rn.satfinite.e4m3x2.f32"
                                                         : "cvt.rn.satfinite.e5m2x2.f32";
    struct ptx_operand half[2];
    for (uint32_t i = 0; i < 2; i++)
        half[i] = ptx_r(CG(g, PTX_B16, m, cg_op(g, v[2 * i + 1]), cg_op(g, v[2 * i])));
    CG_ASSIGN(g, x->word[c][word], "mov.b32", ptx_vec(&g->b, 2, half));
}

/* Makes words of pairs of them. */
static void make_pairs(struct chain_tile *x, const struct chain_values *v, uint32_t c, uint32_t row)
{
    struct cg *g = x->g;
    const bool scaled = x->t->column[c].parts > 1 && x->t->column[c].kind.left == DT_F16;
    for (uint32_t b = 0; b < x->wide / 8; b++) {
        struct cg_val pair[2];
        for (uint32_t i = 0; i < 2; i++) {
            pair[i] = v->of[c][row][2 * b + i];
            if (scaled)
                pair[i] = cg_binary(g, OP_MUL, pair[i], cg_float(g, DT_F32, CHAIN_SCALE));
        }
        assign_words(x, c, ((row / 2 * x->wide / 16) + b / 2) * 4 + b % 2 * 2 + row % 2, pair);
    }
}

/* Makes words of them, in the order that chain/multiply.c says. */
static void make_words(struct chain_tile *x, const struct chain_values *v, uint32_t c, uint32_t row)
{
    struct cg *g = x->g;
    const uint32_t size = chain_size(&x->t->column[c], MATMUL_A),
                   first = row / 2 * chain_words(x, c);
    const struct cg_val *of = v->of[c][row];
    if (size == 2)
        make_pairs(x, v, c, row);
    for (uint32_t n = 0; n < x->wide / 4 && size == 4; n++)
        CG_ASSIGN(g, x->word[c][first + n / 2 * 4 + n % 2 * 2 + row % 2], "mov.b32",
                  cg_op(g, of[n]));
    for (uint32_t n = 0; n < x->wide / 16 && size == 1; n++)
        assign_bytes(x, c, first + n / 2 * 4 + n % 2 * 2 + row % 2, of + (size_t)4 * n);
}

void chain_words_of(struct chain_tile *x, const struct chain_values *v, uint32_t c)
{
    for (uint32_t row = 0; row < chain_tile_rows(x); row++)
        make_words(x, v, c, row);
}

void chain_tile_words(struct chain_tile *x, const struct chain_values *v)
{
    for (uint32_t c = 0; c < x->t->ncolumn; c++)
        chain_words_of(x, v, c);
}

void chain_row_words(struct chain_tile *x, const struct chain_values *v, uint32_t row)
{
    for (uint32_t c = 0; c < x->t->ncolumn; c++)
        make_words(x, v, c, row);
}
