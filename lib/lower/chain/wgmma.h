/* Chains by wgmma: what its files share (chain/wgmma.c). Private to lib/lower/chain.
 *
 *   chain/fits.c     what lies where, and which sizes of tiles have room
 *   chain/items.c    the rows that a block takes
 *   chain/load.c     the producer
 *   chain/turn.c     those that turn v, of 8 bits
 *   chain/across.c   a sum across the others, and those that write it
 *   chain/gather.c   the launch that makes an output of that
 *   chain/sheets.c   what is read along j, beside products
 *   chain/wgmma.c    those that multiply
 */
#ifndef KAIO_LOWER_CHAIN_WGMMA_H
#define KAIO_LOWER_CHAIN_WGMMA_H

#include "lower/chain/chain.h"

#include "lower/extent.h"
#include "lower/wgmma/products.h"
#include "lower/wgmma/ring.h"

enum {
    CHAIN_WARPS = WGMMA_GROUP / 32,
    CHAIN_TURNERS = CHAIN_WARPS - 1, /* warps that turn v: the producer's others */
};

/* An operand's tile: of a stage of its ring. */
struct chain_box {
    struct matmul m; /* finds the operand's subscripts */
    uint32_t operand;
    struct wgmma_layout lay;
    uint32_t offset; /* bytes in the stage */
    int32_t map;
};

/* A ring, the bytes of a stage of it, and how many arrive at the barriers of its sets. */
struct chain_store {
    struct ring ring;
    struct ring_release release;
    uint32_t bytes, stages;
    uint32_t arrivals[2];
};
/* Warpgroups that have a part of a sum across, at most. */
enum { CHAIN_PARTS_ACROSS = 2, CHAIN_STORES = 8 + CHAIN_PARTS_ACROSS };

/* A sheet's tile (chain/along.c): of a stage of the sheets'. */
struct chain_sheet {
    struct wgmma_layout lay;
    uint32_t offset; /* bytes in the stage */
};

struct chain_wgmma {
    struct cg *g;
    const struct chain_tensor *t;
    const struct chain_plan *p;
    struct chain_tile x;
    struct cg_val thread, warp, group; /* u32; of consumers */
    struct cg_val before;              /* u32: rows of the block before the warp's */
    int32_t shared;
    /* of 8 bits v is turned: raw is what comes, and v what is multiplied */
    struct chain_box q[CHAIN_SCORES], k[CHAIN_SCORES], v[CHAIN_COLUMNS], raw[CHAIN_COLUMNS];
    struct chain_store of_q, of_k, of_v, of_raw, of_item, of_sheets;
    /* Of sums one by one v may be what scores have, too: it lies there, and of_v has no stages. */
    bool shares;
    struct chain_store *at_v;
    /* what is read along j: vectors', of sums one by one, bytes in that stage; sheets; and maps */
    uint32_t along_at;
    struct chain_sheet sheet[CHAIN_ALONG];
    int32_t along[CHAIN_ALONG];
    bool turns;
    bool fetches;        /* blocks take items from a counter: the producer does, and tells others */
    struct extent tiles; /* of rows */
    struct lang_expr *grid;
    struct cg_val items, heads; /* u32: all; batches, of which each has .tiles */
    bool mixes;                 /* items of several batches come side by side: */
    struct cg_val near;         /* u32: of so many */
    struct cg_val first, count; /* u32: where the item's first tile of j begins; of these */
    /* of consumers: */
    int32_t high, always, never;  /* the descriptors' word; predicates */
    int32_t *score[CHAIN_SCORES]; /* mutable */
    int32_t j;                    /* u32, mutable */
    /* Of 8 bits, mutable: sums of a tile's terms, in some columns, which are added to .x's as f32
     * is; and what those are rescaled by then. */
    int32_t *part[CHAIN_COLUMNS];
    int32_t held[CHAIN_COLUMNS][CHAIN_ROWS];
    /* Where there is a sum across (chain/across.c): its left operand's tiles, and each warpgroup's
     * part of its sums, with the registers of one, mutable. Writers write parts by turns: of those
     * there are barriers, at which a warpgroup stands at the turn of its part before. */
    struct chain_store of_left, of_part, of_turn[CHAIN_PARTS_ACROSS];
    struct ring turn;
    struct wgmma_layout left;
    int32_t *part_sum;
    int32_t until; /* u32, mutable: of a writer, tiles up to its next, with that */
};

/* ---- chain/fits.c ---------------------------------------------------------------------------- */

uint32_t chain_wgmma_consumers(const struct chain_plan *p); /* warpgroups that multiply */
uint32_t chain_wgmma_block_rows(const struct chain_plan *p);
/* Of score n, a multiple of an instruction's. */
uint32_t chain_wgmma_terms_of(const struct chain_wgmma *k, uint32_t n);
/* Are sums multiplied one by one, each as soon as the scores are there that its terms are made of?
 * The gradients' are: those of v need the first score alone. */
bool chain_wgmma_is_apart(const struct chain_tensor *t, const struct chain_plan *p);
/* The registers that producers keep and that consumers take. */
uint32_t chain_wgmma_registers(const struct chain_plan *p, bool produces);
/* chain_wgmma_plan() by rules alone. */
bool chain_wgmma_usual_plan(const struct ptx_target *target, const struct chain_tensor *t,
                            struct chain_plan *p);
/* The same for several blocks on each multiprocessor; false: that is not worth it, or has no room.
 */
bool chain_wgmma_crowds(const struct ptx_target *target, const struct chain_tensor *t,
                        struct chain_plan *p);
/* Lays all tiles and barriers: bytes of dynamic shared memory. */
uint32_t chain_wgmma_lay_all(struct chain_wgmma *k);

/* The rings that have stages: so many. */
uint32_t chain_wgmma_stores(struct chain_wgmma *k, struct chain_store *all[CHAIN_STORES]);

/* ---- chain/sheets.c -------------------------------------------------------------------------- */

/* Vectors along j that come by boxes, and the boxes of each; does read number n of .t->along? */
uint32_t chain_wgmma_along(const struct chain_wgmma *k);
uint32_t chain_wgmma_along_boxes(const struct chain_wgmma *k);
bool chain_wgmma_brings(const struct chain_wgmma *k, uint32_t n);
/* Lays the tiles of sheets. */
void chain_wgmma_lay_sheets(struct chain_wgmma *k);
void chain_wgmma_make_along_maps(struct chain_wgmma *k);
/* By one thread: what begins at j = `at` of vectors comes to v's stage, or of sheets to theirs. */
void chain_wgmma_copy_along(struct chain_wgmma *k, struct cg_val at, bool sheets);
/* Waits for their stage before. */
void chain_wgmma_bring_sheets(struct chain_wgmma *k, struct cg_val at);
/* Says where the vectors are that have come with v. */
void chain_wgmma_find_along(struct chain_wgmma *k);
/* Waits for the sheets' tile, and says where the warp's rows are; and gives it back. Both do
 * nothing where there are none. */
void chain_wgmma_take_sheets(struct chain_wgmma *k);
void chain_wgmma_leave_sheets(struct chain_wgmma *k);

/* ---- chain/across.c -------------------------------------------------------------------------- */

/* Columns of a warpgroup's part. */
uint32_t chain_across_columns(const struct chain_plan *p);
void chain_across_lay(struct chain_wgmma *k);
void chain_across_count(struct chain_wgmma *k);
/* The number of a batch's first tile of 64 j, of the sums in memory. row: of axes but i. */
struct cg_val chain_across_first(struct cg *g, const struct chain_form *f, uint32_t i,
                                 const struct cg_val *row, const struct lang_symbol *j);
/* By consumers; all do nothing where there is no sum across: begins; has made words of the column;
 * in each tile, once its sums are sent; after the last, before rows' tiles are given back. */
void chain_across_consume(struct chain_wgmma *k);
void chain_across_give(struct chain_wgmma *k, uint32_t column);
void chain_across_take(struct chain_wgmma *k, bool is_last);
/* Threads of the producer's warps but the first come. */
void chain_across_write(struct chain_wgmma *k);

/* ---- chain/items.c --------------------------------------------------------------------------- */

/* Do rows of the same batch have different ranges? */
bool chain_wgmma_differs(const struct chain_tensor *t);
/* Do ranges come from memory? */
bool chain_wgmma_has_busy_ranges(const struct chain_tensor *t);
/* Finds how many there are. */
void chain_wgmma_count_items(struct chain_wgmma *k);
/* Finds the tiles of j that have terms of the item's rows. */
void chain_wgmma_find_tiles(struct chain_wgmma *k);
/* Where the first of these begins that is taken, and the one that follows, or was before: the last
 * ones come first where there is a sum across. */
struct cg_val chain_wgmma_first_j(struct chain_wgmma *k);
struct cg_val chain_wgmma_next_j(struct chain_wgmma *k, struct cg_val j, bool before);
/* The block's items one after the other: .x has where their rows are. leads: the warp is the one
 * that takes them from the counter. */
void chain_wgmma_for_items(struct chain_wgmma *k, bool leads, void (*body)(struct chain_wgmma *k));

/* ---- chain/load.c ---------------------------------------------------------------------------- */

void chain_wgmma_make_map(struct chain_wgmma *k, struct chain_box *s);
/* All of the producer's threads come, and none goes on. */
void chain_wgmma_produce(struct chain_wgmma *k);
/* Every role begins with its rings. */
void chain_wgmma_begin_rings(struct chain_wgmma *k, unsigned parity);
void chain_wgmma_set_registers(struct chain_wgmma *k, bool produces);

/* ---- chain/wgmma.c --------------------------------------------------------------------------- */

/* The ring's stage has been read: its place is the producer's. */
void chain_wgmma_give_back(const struct chain_store *s);

/* ---- chain/turn.c ---------------------------------------------------------------------------- */

/* Threads of the producer's warps but the first come, and none goes on. */
void chain_wgmma_turn(struct chain_wgmma *k);

#endif
