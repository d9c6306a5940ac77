/* The registers of a warp's rows (chain.h). */
#include <config.h>

#include "lower/chain/chain.h"

static void make_columns(struct chain_tile *x, uint32_t n)
{
    struct cg *g = x->g;
    const uint32_t sums = x->high * x->columns / 2;
    const uint32_t words = x->t->column[n].parts * x->high * chain_words(x, n);
    x->sum[n] = ARENA_ARRAY(g->a, sums, int32_t);
    x->word[n] = ARENA_ARRAY(g->a, words, int32_t);
    for (uint32_t i = 0; i < sums; i++)
        x->sum[n][i] = cg_new_mutable(g, DT_F32);
    for (uint32_t i = 0; i < words; i++)
        x->word[n][i] = cg_new_mutable(g, DT_U32);
    for (uint32_t i = 1; i < words && x->half; i += 2)
        cg_move(g, x->word[n][i], cg_u32(0));
    for (uint32_t i = 0; i < chain_tile_rows(x); i++)
        x->scale[n][i] = cg_new_mutable(g, DT_F32);
}

void chain_tile_clear(struct chain_tile *x)
{
    struct cg *g = x->g;
    for (uint32_t i = 0; i < x->t->f->nstream; i++)
        for (uint32_t n = 0; n < chain_tile_rows(x) && !chain_tile_stream(x, i)->has_column; n++)
            cg_move(g, x->state[i][n],
                    cg_reduce_identity(g, chain_tile_stream(x, i)->reduce,
                                       chain_tile_stream(x, i)->type));
    for (uint32_t i = 0; i < x->t->ncolumn; i++)
        for (uint32_t w = 0; w < x->high * x->columns / 2; w++)
            cg_move(g, x->sum[i][w], chain_f32(g, 0));
    chain_fall_follow(x);
}

void chain_tile_begin(struct chain_tile *x)
{
    struct cg *g = x->g;
    chain_tile_find(x);
    chain_tile_find_ranges(x);
    if (x->t->repairs)
        chain_repair_cover(x);
    for (uint32_t i = 0; i < x->t->f->nstream; i++) {
        const struct chain_stream *s = chain_tile_stream(x, i);
        for (uint32_t n = 0; n < chain_tile_rows(x) && !s->has_column; n++)
            x->state[i][n] = cg_new_mutable(g, s->type);
    }
    for (uint32_t i = 0; i < x->t->ncolumn; i++)
        make_columns(x, i);
    chain_fall_begin(x);
    chain_tile_clear(x);
    bool splits = false;
    for (uint32_t i = 0; i < x->t->f->nscore; i++)
        splits |= x->t->score[i].splits;
    x->bad = splits ? cg_new_mutable(g, DT_F32) : -1;
    if (splits)
        cg_move(g, x->bad, chain_f32(g, 0));
}

void chain_tile_look(struct chain_tile *x, uint32_t words, int32_t *const *score)
{
    struct cg *g = x->g;
    for (uint32_t n = 0; n < x->t->f->nscore; n++)
        for (uint32_t w = 0; w < words && x->t->score[n].splits; w++)
            cg_move(g, x->bad,
                    cg_fma(g, cg_value(DT_F32, score[n][w]), chain_f32(g, 0),
                           cg_value(DT_F32, x->bad)));
}
