/* Tiles of transposed inputs in shared memory, shared by map/tile.c and map/pack.c. Private to
 * them. */
#ifndef KAIO_LOWER_MAP_TILE_H
#define KAIO_LOWER_MAP_TILE_H

#include "lower/access.h"
#include "lower/map/map.h"

enum { MAP_TILES = 8 };

struct map_tile {
    const struct lang_symbol *sym;
    uint32_t n, across; /* subscripts; the one that is the outputs' last axis */
    struct access_form sub[VARIANT_RANK];
    struct cg_val at[VARIANT_RANK]; /* the other subscripts' values */
    struct cg_val address;          /* of the tile in shared memory, a u32 */
    uint32_t pitch;                 /* of its rows, elements */
    bool is_packed;                 /* map/pack.c */
    struct cg_val word[4];          /* of a packed one: the lanes' elements in the pass last read */
    uint32_t word_pass;             /* that pass + 1; 0: none */
};

struct map_tiling {
    struct cg *g;
    const struct lower_stage *s;
    const struct lang_symbol *shape;
    uint32_t rank, down; /* of the outputs; the axis along the inputs' rows */
    struct map_tile tile[MAP_TILES];
    uint32_t ntile;
    uint32_t size; /* bytes of the smallest element that is moved */
    uint32_t side, lanes, block;
    struct cg_val x, y; /* the thread's place in the tile: x in units of lanes */
    struct cg_val across0, down0;
    uint32_t pass;
    struct cg_val *row; /* map/short.c: what the thread loaded, rows of nrow elements */
    uint32_t nrow;
};

/* Rows of the tile that the block's threads walk at once. */
uint32_t map_tile_rows(const struct map_tiling *t);
/* Is the position inside the outputs along the axis? A constant or a predicate. */
struct cg_val map_tile_within(struct map_tiling *t, struct cg_val i, uint32_t axis);
/* The flat index of row `row` of the tile's input, at the thread's column. */
struct cg_val map_tile_flat(struct map_tiling *t, const struct map_tile *tile, struct cg_val row,
                            struct cg_val *down);
/* That of a row further on. */
struct cg_val map_tile_step(struct map_tiling *t, const struct map_tile *tile, struct cg_val flat,
                            uint32_t rows);

/* Finds the values of a tile's other subscripts. */
void map_tile_find_others(struct map_tiling *t, const struct map_reader *m, struct map_tile *tile);
/* Are these the forms of the subscripts of the tile's elements at the reader's place? */
bool map_tile_is_read(const struct map_reader *m, const struct map_tile *tile,
                      const struct map_tiling *t, const struct map_form *f);
/* Stores the lanes' results of all outputs, v[output * lanes + lane]. */
void map_tile_store(struct map_tiling *t, const struct map_reader *m, struct cg_val flat,
                    const struct cg_val *v);

/* ---- map/short.c: rows that are too short for tiles ---- */

/* Adds a variant for them, if the tile has such. */
bool map_short_lower(struct map_tiling *t, struct variant_set *all);

/* ---- map/pack.c: elements of one or two bytes, in words ---- */

bool map_pack_fits(const struct map_tiling *t, const struct map_tile *tile);
void map_pack_bring(struct map_tiling *t, struct map_tile *tile);
/* The elements of the pass's row that are this thread's lanes. */
const struct cg_val *map_pack_read(struct map_tiling *t, struct map_tile *tile);

#endif
