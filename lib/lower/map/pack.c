/* Transposes of elements of one or two bytes: a thread loads a word (of `lanes` elements) of each
 * of `lanes` rows, transposes them in registers, and stores words of elements that lie in one
 * column. Shared memory then holds the tile as the outputs want it, in words:
 *
 *     row `down` of the tile: 32 words, word w at w ^ (down / lanes) % 32
 *
 * A warp stores words of 32 different down / lanes and reads the 32 words of one row: either way
 * they lie in 32 banks.
 */
#include <config.h>

#include "lower/map/tile.h"

enum { WORDS = 32, ROW = 4 * WORDS }; /* of a row of the tile: words, bytes */

static uint32_t bytes_of(const struct map_tile *tile)
{
    return dtype_bits(tile->sym->type) / 8;
}

bool map_pack_fits(const struct map_tiling *t, const struct map_tile *tile)
{
    if (t->lanes < 2 || t->side != WORDS * t->lanes || t->block % WORDS ||
        bytes_of(tile) * t->lanes != 4)
        return false;
    const uint32_t rows = map_tile_rows(t);
    return rows % t->lanes == 0 && t->side % (rows * t->lanes) == 0 && (rows & (rows - 1)) == 0;
}

static int32_t permute(struct cg *g, int32_t x, int32_t y, uint32_t how)
{
    return CG(g, PTX_B32, "prmt.b32", ptx_r(x), ptx_r(y), ptx_imm(how));
}

/* Word i of the result is element i of all words. */
static void transpose(struct cg *g, int32_t *w, uint32_t n)
{
    enum { LOW = 0x5410, HIGH = 0x7632, EVEN = 0x5140, ODD = 0x7362 };
    if (n == 2) {
        const int32_t low = permute(g, w[0], w[1], LOW);
        w[1] = permute(g, w[0], w[1], HIGH);
        w[0] = low;
        return;
    }
    const int32_t p = permute(g, w[0], w[1], EVEN), q = permute(g, w[2], w[3], EVEN);
    const int32_t r = permute(g, w[0], w[1], ODD), s = permute(g, w[2], w[3], ODD);
    w[0] = permute(g, p, q, LOW);
    w[1] = permute(g, p, q, HIGH);
    w[2] = permute(g, r, s, LOW);
    w[3] = permute(g, r, s, HIGH);
}

/* A word's address: base, whose low seven bits are a word's place in its row, with the bits of flip
 * turned. */
static struct cg_place_of word_at(struct cg *g, struct cg_val base, uint32_t flip, uint32_t row)
{
    struct cg_val at = cg_binary(g, OP_XOR, base, cg_int(DT_U32, flip));
    return (struct cg_place_of){
        .space = CG_SHARED, .base = at.op.reg, .offset = row * ROW, .nibble = cg_int(DT_U32, 0)};
}

void map_pack_bring(struct map_tiling *t, struct map_tile *tile)
{
    struct cg *g = t->g;
    const uint32_t n = t->lanes, rows = map_tile_rows(t), passes = t->side / (rows * n);
    struct cg_val first = cg_binary(g, OP_MUL, t->y, cg_u32(n)), down, word;
    struct cg_val across = cg_binary(g, OP_ADD, t->across0, first);
    struct cg_val flat = map_tile_flat(t, tile, across, &down);
    struct cg_val inside = map_tile_within(t, down, t->down);
    int32_t w[32][4];
    for (uint32_t i = 0; i < passes * n; i++) {
        const uint32_t row = i / n * rows * n + i % n;
        struct cg_val at = map_tile_step(t, tile, flat, row);
        struct cg_val y = cg_binary(g, OP_ADD, across, cg_u32(row));
        const struct cg_guard before =
            cg_guard(g, cg_binary(g, OP_LAND, inside, map_tile_within(t, y, t->rank - 1)), false);
        cg_load_words(g, DT_U32, cg_is_constant(g, tile->sym), cg_address(g, tile->sym, at), 1,
                      &word);
        w[i / n][i % n] = word.op.reg;
        cg_unguard(g, before);
    }
    struct cg_val to = cg_binary(g, OP_XOR, t->x, t->y);
    to = cg_weighted(g, t->x, n * ROW, to, 4);
    to = cg_binary(g, OP_ADD, to, tile->address);
    for (uint32_t i = 0; i < passes; i++) {
        transpose(g, w[i], n);
        for (uint32_t k = 0; k < n; k++)
            cg_store_at(g, DT_U32, word_at(g, to, i * rows * 4, k), cg_value(DT_U32, w[i][k]));
    }
}

const struct cg_val *map_pack_read(struct map_tiling *t, struct map_tile *tile)
{
    struct cg *g = t->g;
    const uint32_t n = t->lanes, rows = map_tile_rows(t), pass = t->pass;
    if (tile->word_pass == pass + 1)
        return tile->word;
    struct cg_val from = cg_binary(g, OP_XOR, t->x, cg_binary(g, OP_DIV, t->y, cg_u32(n)));
    from = cg_weighted(g, t->y, ROW, from, 4);
    from = cg_binary(g, OP_ADD, from, tile->address);
    const struct cg_guard before = {g->guard, g->guard_varies};
    cg_unguard(g, (struct cg_guard){-1, false}); /* all of the tile has been written */
    struct cg_val word =
        cg_load_at(g, DT_U32, false, word_at(g, from, pass * rows / n * 4, pass * rows));
    cg_unguard(g, before);
    cg_unpack(g, tile->sym->type, word.op.reg, n, tile->word);
    tile->word_pass = pass + 1;
    return tile->word;
}
