/* Products by wgmma: what the parts share. Private to matmul_wgmma*.c.
 *
 * A block has one or two warpgroups that bring tiles of the operands (producers) and one to three
 * that multiply them (consumers), and takes tiles of the results by turns. What lies in memory as
 * it is multiplied one thread copies (TMA); what is computed all of a producer's threads make. Two
 * producers take stages by turns, so that each has the time of two stages to wait for memory in.
 * Dynamic shared memory, S stages:
 *
 *     0                 stage 0: A | B | ...          each operand's part begins on 1024 bytes
 *     stage_bytes       stage 1
 *     ...
 *     patches           of every consuming warp, sums on their way to the epilogue
 *     barriers          full[S], empty[S], ready[S] where something is converted: mbarriers of 8
 *                       bytes
 *     ranges            of products in parts: for each converter and stage, what it has noted
 *
 * An operand's part of a stage is a tile of an instruction's (wgmma/products.h). 16-bit types may
 * lie across there; f32 is held or turned (_held.c, _convert.c); what is computed is written along
 * k (_make.c). Windows of a convolution all of the producer's threads copy as they lie (_gather.c).
 *
 * Blocks of a cluster that share an operand's tile bring a part of it each, to all of them at once.
 */
#ifndef KAIO_LOWER_MATMUL_WGMMA_H
#define KAIO_LOWER_MATMUL_WGMMA_H

#include "lower/matmul/matmul.h"
#include "lower/pass/pass.h"
#include "lower/wgmma/box.h"
#include "lower/wgmma/products.h"
#include "lower/wgmma/ring.h"
#include "lower/wgmma/tma.h"

enum {
    WGMMA_PATCH = BOX_ROWS, /* rows of a warp's patch */
    WGMMA_CONSUMERS = 3,
    WGMMA_GROUPS = 4, /* warpgroups, all together */
    WGMMA_STAGES = 16,
    WGMMA_BLOCKS = 8,     /* of a cluster */
    EPILOGUE_TENSORS = 2, /* tensors that the epilogue reads along rows and columns */
    WGMMA_COLUMNS = 2,    /* and of columns alone, that registers have */
    WGMMA_TURNED = 32,    /* rows of a warp's box where an instruction's are columns */
};

struct wgmma_tile {
    uint32_t operand;
    enum matmul_side side;
    bool along_k;  /* in memory, and on its way; of what is made: as it is multiplied */
    bool made;     /* computed: producers' threads write it */
    bool held;     /* of f32: consumers load it to registers as it is needed */
    bool turned;   /* of f32: turned on its way, so that it is multiplied along k */
    bool parted;   /* of f32: in two parts, the second of which lies in a tile of its own; of
                      tf32, or copied as f16 (matmul/parts.c) */
    uint32_t size; /* bytes of an element */
    uint32_t rows; /* bm or bn */
    uint32_t atoms, atom_bytes; /* see above */
    uint32_t offset, bytes;     /* in a stage */
    uint32_t rest;              /* where the second part is */
    uint32_t sharers;           /* blocks that bring a part each: */
    bool by_rows;               /* some rows of every atom, or else some atoms */
    uint32_t box_rows;          /* rows of an atom that one copy brings */
};

/* How a producer's threads share a made tile: each makes vectors of neighbouring chunks of 16 bytes
 * of a row. */
struct wgmma_make {
    bool gathers; /* neighbours in memory are in different rows: elements are fetched one by one */
    uint32_t chunks;     /* of a vector */
    uint32_t lanes;      /* elements that are fetched together */
    uint32_t step[3];    /* rows, chunks and atoms from a vector of the thread to its next */
    uint32_t steps[3];   /* and how many there are of each */
    struct cg_val at[3]; /* u32: the first one's row, chunk and atom */
    int32_t to;          /* u32: its address, in the first stage */
};

/* Products in parts of f16: the stage's scales, and what has been noted of the tile's (scales.c).
 */
struct wgmma_scales {
    int32_t at[MATMUL_OPERANDS];   /* u64, mutable: of each tile, the address of the next word */
    int32_t step[MATMUL_OPERANDS]; /* u64: to the next stage's */
    int32_t word[MATMUL_OPERANDS]; /* u32: of this stage */
    int32_t both[MATMUL_PRODUCTS]; /* f32: of each product, 2^-(s + t) */
    int32_t lost, all, largest;    /* mutable: f32, u32, f32 */
};

/* A tensor that the epilogue reads, where its elements are copied to the warps' patches. */
struct epilogue_tensor {
    int32_t map;     /* address of its tensor map */
    int32_t word[4]; /* what the lane has of 16 (4 bytes: 8) columns, as stmatrix and mma.sync have
                        results */
};

/* All that a plan settles for a form and a target: what lies where, and who does what. .target, .f
 * and .p are set first; then fits.c measures the rest, which never changes again. */
struct wgmma_shape {
    const struct ptx_target *target;
    const struct matmul_form *f;
    const struct matmul_plan *p;
    uint32_t ntile;
    struct wgmma_tile tile[MATMUL_OPERANDS];
    uint32_t tile_of[MATMUL_OPERANDS]; /* by operand */
    uint32_t stage_bytes, steps;       /* instructions along k of a stage */
    bool makes;                        /* producers' threads bring something, or convert it */
    bool gathers;                      /* what is made is gathered: copied by threads as it lies */
    uint32_t copied, made;      /* bytes of a stage that are copied, and those that are computed */
    uint32_t producers;         /* warpgroups */
    uint32_t converts;          /* warps of the producer that convert; 0: there is nothing to */
    uint32_t consumers, takers; /* warpgroups; those that take a tile together */
    enum matmul_side left; /* whose rows are an instruction's 64: B where its results are turned */
    uint32_t high, wide;   /* a warpgroup's of these, and an instruction's columns */
    uint32_t joined;       /* products of which an instruction makes so many, side by side */
    uint32_t down, across; /* blocks of a cluster that share operands: along rows, along columns */
    uint32_t sharing, blocks; /* these, and all of the cluster: as often as blocks share a tile */
    uint32_t peers;           /* blocks that share an operand with this one, itself too */
    bool direct;              /* results go straight from registers: a warp's patch is its boxes */
    bool by_threads;          /* and threads store the boxes, not copies */
    uint32_t patch_cols, pitch, patch_bytes;   /* of a warp; elements, bytes */
    uint32_t patches, barriers, ranges, bytes; /* offsets; all */
    /* tensors that the epilogue reads along rows and columns: one read of each; boxes of each, of a
     * warp */
    uint32_t nbrought, boxes;
    const struct lang_expr *brought[EPILOGUE_TENSORS];
    uint32_t kept;   /* of the boxes, the first ones: registers take them from the patch, which has
                        places for */
    uint32_t places; /* so many; then it gets the others */
    uint32_t brought_barriers; /* offset of the warps' */
    /* tensors that it reads along columns alone */
    uint32_t ncolumn;
    const struct lang_expr *column[WGMMA_COLUMNS];
};

/* The registers of the code that is generated. */
struct wgmma {
    struct matmul *m;
    struct cg *g;
    const struct matmul_form *f;
    const struct matmul_plan *p;
    const struct wgmma_shape *shape;
    /* of each tile that is copied, the address of its tensor map, and of its second part's */
    int32_t map[MATMUL_OPERANDS], rest_map[MATMUL_OPERANDS];

    /* u32: the block among those that share operands: its number, row, column; among those that
     * share its tile; and the number in the cluster of the first of those that share operands with
     * it */
    struct cg_val rank, at_row, at_col, at_share, apart;
    struct cg_val first_tile, tile_step; /* u32: numbers of the tiles that the cluster takes */
    struct ring ring;
    int32_t rest; /* u32, mutable: stages left of this tile */
    int32_t k;    /* u32, mutable: the producer's next */
    int32_t turn; /* u32, mutable: 0: the next stage is this producer's; of two */
    struct wgmma_make make[MATMUL_OPERANDS];
    struct wgmma_gather *gather; /* by tile; where stages are handed over, */
    struct ring behind;
    int32_t begun;             /* u32, mutable: and how many are on their way */
    struct wgmma_made *making; /* what is on its way through registers */
    int32_t next_k, made_k;  /* u32, mutable: of the producer's next stage; of what is being made */
    uint32_t carried;        /* vectors of each thread that are loaded a stage ahead, */
    struct pass_ahead ahead; /* by this code */
    /* consumers: */
    struct cg_val group; /* u32: the warpgroup's number among them */
    struct cg_val
        part; /* u32: which part of the tile's rows it takes; of converters: the warp's number */
    int32_t *sum; /* of product q, 64 rows i: word w at (q * high / 64 + i) * wide / 2 + w, w = 4 *
                     (column / 8) + ... as of mma.sync */
    int32_t first[MATMUL_OPERANDS]; /* u32: of each tile, the low word of its first descriptor in
                                       the first stage */
    int32_t word;                   /* u32: the high word of all */
    /* of held tiles: addresses (u32) in the first stage, a predicate, and the words of some steps,
     * or of their parts */
    int32_t from[MATMUL_OPERANDS][4], late, *held[MATMUL_OPERANDS][2];
    int32_t corner[2][2];        /* converters: see _convert.c */
    struct ring_release release; /* of the stage before */
    /* of warpgroups that end a tile in order: a predicate, -1: they do not; and u32 */
    int32_t ends_first, waits_at;
    int32_t least, most; /* u32, mutable, of products in parts: the factors' sizes (_small.c) */
    struct wgmma_scales scales;   /* of products in parts of f16 */
    int32_t adds, always, never;  /* predicates: is this not the tile's first stage? true; false */
    int32_t *stage_sum;           /* promoted ones: words of 64 rows of one product and stage */
    int32_t out_map[MATMUL_OUTS]; /* addresses of tensor maps */
    struct epilogue_tensor brought[EPILOGUE_TENSORS];
    int32_t *kept_word; /* mutable: 16 of each box that is kept */
    /* mutable: of each tensor of columns, two neighbouring ones of each 8 of the tile's */
    int32_t *column[WGMMA_COLUMNS];
    /* the warp's: addresses of its barrier and patch; the phase that is waited for (u32, mutable);
     * a predicate: the lane that copies */
    int32_t brought_barrier, brought_to, brought_parity, leads;
};

/* ---- wgmma/fits.c ---- */

/* Is there the instruction, and what lies where? why: NULL or what is in the way. */
bool wgmma_measure(struct wgmma_shape *s, struct buf *why);
/* Sets of barriers of the ring. */
uint32_t wgmma_sets(const struct wgmma_shape *s);
/* Registers of a thread's sums. */
uint32_t wgmma_sums(const struct wgmma_shape *s);
/* Registers of a thread that brings operands, or multiplies them: together all that there are. */
uint32_t wgmma_registers(const struct wgmma_shape *s, bool produces);

/* ---- wgmma/wgmma.c ---- */

/* Stages of the tile: u32. */
struct cg_val wgmma_stages(struct wgmma *s);
/* Runs body once for each stage of the tile. */
void wgmma_for_stages(struct wgmma *s, void (*body)(struct wgmma *s));

/* ---- wgmma/load.c: the producer ---- */

void wgmma_load_begin(struct wgmma *s); /* all threads */
void wgmma_load_tile(struct wgmma *s);
/* Waits until nobody needs this block's barriers. */
void wgmma_load_end(struct wgmma *s);

/* ---- wgmma/make.c: producers, of operands that are computed ---- */

void wgmma_make_begin(struct wgmma *s); /* all of their threads */
/* At the beginning of a tile: loads of the producer's first stage. */
void wgmma_make_tile(struct wgmma *s);
/* A single producer begins to load its next stage before it waits until the one at s->k is empty,
 * and makes that from copies of what it has; of two, each does when it has made that. */
void wgmma_make_ahead(struct wgmma *s);
void wgmma_make_stage(struct wgmma *s);

/* ---- wgmma/gather.c: the producer, of operands that lie in memory, but not as matrices ---- */

bool wgmma_gather_fits(const struct wgmma_tile *t);
void wgmma_gather_begin(struct wgmma *s); /* all of its threads, behind ring_begin() */
void wgmma_gather_tile(struct wgmma *s);
/* So many stages are begun, but not handed over. */
uint32_t wgmma_gather_begun(const struct wgmma *s);
void wgmma_gather_stage(struct wgmma *s); /* that is empty */
void wgmma_gather_end(struct wgmma *s);
/* What of it varies in a loop over stages. */
void wgmma_gather_varies(const struct wgmma *s, struct cg_nest *nest);

/* ---- wgmma/sum.c: consumers ---- */

void wgmma_sum_begin(struct wgmma *s);
void wgmma_sum_tile(struct wgmma *s);

/* ---- wgmma/held.c: consumers, of a left operand that registers hold ---- */

uint32_t
wgmma_held_words(const struct wgmma_shape *s); /* registers of a thread; 0: nothing is held */
void wgmma_hold_begin(struct wgmma *s);
/* Loads what steps `step`, an even one, and the next take of the stage that has come, to registers
 * of their own; what the two before it took may be under way. */
void wgmma_hold(struct wgmma *s, uint32_t step);
/* Loads both parts of what all steps take of 64 rows i. */
void wgmma_hold_parts(struct wgmma *s, uint32_t i);
/* The words of 64 rows i of a step that is loaded; their second part, where that is wanted. */
struct ptx_operand wgmma_held(struct wgmma *s, uint32_t tile, uint32_t step, uint32_t i, bool rest);

/* ---- wgmma/convert.c: some of the producer's warps, of f32 that is rounded, turned or parted on
 * its way  */

/* Are its elements rounded to tf32, halves away from zero? */
bool wgmma_rounds(const struct wgmma_shape *s, const struct wgmma_tile *t);
bool wgmma_is_converted(const struct wgmma_shape *s, const struct wgmma_tile *t);
void wgmma_convert_begin(struct wgmma *s);
void wgmma_convert_tile(struct wgmma *s);

/* ---- wgmma/small.c: factors of which parts lose bits ---- */

/* Bytes of shared memory. */
uint32_t wgmma_range_bytes(const struct wgmma_shape *s);
/* Converters and consumers, before the first tile; and where nothing is noted yet. */
void wgmma_range_begin(struct wgmma *s);
void wgmma_range_clear(struct wgmma *s);
/* Notes n factors: the sum of their squares, an f32 that is infinite or NaN where one of them is.
 * Converters tell what they noted before they hand a stage over; consumers, who have it, hear it.
 */
int32_t wgmma_range_take(struct wgmma *s, const struct ptx_operand *x, uint32_t n);
void wgmma_range_tell(struct wgmma *s);
void wgmma_range_hear(struct wgmma *s);
/* Consumers, at a tile's end: computes once more what small factors are much of. */
void wgmma_mend(struct wgmma *s);

/* ---- wgmma/scales.c: consumers, of products in parts of f16 ---- */

void wgmma_scales_begin(struct wgmma *s);
void wgmma_scales_tile(struct wgmma *s);
/* Loads the stage's. */
void wgmma_scales_load(struct wgmma *s);
/* Takes them for product q, when they are there: notes what its factors' words say. */
void wgmma_scales_take(struct wgmma *s, uint32_t q);
/* What its sums of rests are times their first parts', so far, in units of the stage's. */
void wgmma_scale_rests(struct wgmma *s);
/* Adds the stage's sums of 64 rows of product q to others. */
void wgmma_scaled_add(struct wgmma *s, uint32_t q, const int32_t *sum);
/* At a tile's end: the size of sums of which too much may be lost, an f32; is there any, or a
 * factor that is too large? a predicate. */
int32_t wgmma_scales_limit(struct wgmma *s, int32_t *any);

/* ---- wgmma/share.c: consumers, where blocks share a tile along k ---- */

/* Bytes that it takes where the stages were. */
uint32_t wgmma_share_bytes(const struct wgmma_shape *s);
/* Goes on with all blocks' sums; the warpgroups whose sums another block has jump to `skip`. */
void wgmma_share(struct wgmma *s, uint32_t skip);

/* ---- wgmma/out.c ---- */

/* u32, of a consuming warp: its number among them all, the shared address of its patch, and the
 * first of its 16 of each 64 rows (turned: columns) of the tile. */
struct cg_val wgmma_warp(struct wgmma *s);
struct cg_val wgmma_patch(struct wgmma *s);
struct cg_val wgmma_along(struct wgmma *s);
/* Is the epilogue so much code that it is not to be written for each part of the tile? */
bool wgmma_is_heavy(const struct wgmma_shape *s);
/* Words of a row of a patch with which a warp's fragments meet no conflicts of banks. */
uint32_t wgmma_pitch(uint32_t cols);
void wgmma_out_tile(struct wgmma *s);

/* ---- wgmma/store.c: the same without patches, where that is possible ---- */

/* Bytes of shared memory of each warp; 0: not possible. */
uint32_t wgmma_direct(struct wgmma_shape *s);
/* Do threads store direct results? */
bool wgmma_by_threads(const struct wgmma_shape *s);
void wgmma_store_begin(struct wgmma *s); /* all threads */
void wgmma_store_tile(struct wgmma *s);
void wgmma_store_end(struct wgmma *s); /* consumers: shared memory is not read any more */

/* ---- wgmma/epilogue.c: tensors that the epilogue reads along rows and columns ---- */

/* The index that a subscript is, if it is one of the results'; and do both read the same
 * element? */
const struct lang_symbol *wgmma_index_of(const struct matmul_form *f, const struct lang_expr *e);
bool wgmma_is_same_read(const struct matmul_form *f, const struct lang_expr *x,
                        const struct lang_expr *y);
/* Finds them; false: some of them can't be brought. */
bool wgmma_find_brought(struct wgmma_shape *s);
/* Lets registers have half of it, where there is too little room for all at once. False: they
 * can't. */
bool wgmma_keep_brought(struct wgmma_shape *s);
uint32_t wgmma_kept_words(const struct wgmma_shape *s); /* registers of a thread */
/* The bytes of the epilogue's tensors in each warp's patch. */
uint32_t epilogue_bytes(const struct wgmma_shape *s);
void epilogue_begin(struct wgmma *s); /* all threads */
void epilogue_ready(struct wgmma *s); /* consumers, before the first tile */
/* In the loop over stages: in the tile's first, copies what the warp takes of the tensors; later
 * some of it to registers. */
void epilogue_tile(struct wgmma *s);
void epilogue_wait(struct wgmma *s);
/* Loads the lane's words of all tensors, of a box's columns 16 (8) * piece: from the lane's address
 * in the first box. */
void wgmma_take_brought(struct wgmma *s, int32_t at, uint32_t box, uint32_t piece);
/* The element that e reads, of the words: of columns 8 * pair, rows r + 8 * half, neighbour `lane`.
 * False: it is not brought. */
bool epilogue_read(struct wgmma *s, const struct lang_expr *e, uint32_t pair, uint32_t half,
                   uint32_t lane, struct cg_val *v);

/* ---- wgmma/columns.c: tensors that the epilogue reads along columns alone ---- */

/* Finds them; how many registers they take. */
uint32_t wgmma_find_columns(struct wgmma_shape *s);
void wgmma_columns_begin(struct wgmma *s); /* consumers */
/* In the loop over stages: in the tile's first. */
void wgmma_columns_load(struct wgmma *s);
/* The element that e reads of columns 8 * word, neighbour `lane`. False: it is not one of
 * theirs. */
bool wgmma_column(struct wgmma *s, const struct lang_expr *e, uint32_t word, uint32_t lane,
                  struct cg_val *v);

#endif
