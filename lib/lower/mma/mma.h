/* Products by mma.sync: what the parts share. Private to mma/mma.c, mma/parts.c, mma/as_f16.c,
 * mma/range.c, mma/sums.c, mma/copy.c and mma/frag.c.
 *
 * Every operand has a tile in each stage of shared memory: rows of elements along the operand's
 * last axis, so that a row is copied as it lies. A warp takes steps of 32 bytes of k: 16 elements
 * of f16 and bf16, 8 of tf32, 32 of 8 bits; a step takes of its tall operand 4 words of each 16
 * rows, of the flat one 2 words of each 8 columns, in each lane. Lane = 4 group + member. Tall is
 * A, but where words of 32 bits of B alone lie across: as words of the tall operand two of them are
 * next to each other, and one load takes both. The sums are then those of the transposed product.
 */
#ifndef KAIO_LOWER_MATMUL_MMA_H
#define KAIO_LOWER_MATMUL_MMA_H

#include "lower/matmul/matmul.h"
#include "lower/mma/fragment.h"

enum {
    MMA_ACROSS = 8,
    MMA_TOGETHER = 2, /* steps whose products instructions add up, of parts */
    MMA_SLOTS = 32,   /* addresses of a thread's pieces */
    MMA_HELD = 128,   /* words of a warp's part of a step, in each lane */
    MMA_CHAINS = 2,   /* of additions that do not wait for each other */
};

/* How an operand's tile lies in a stage, and how the block's threads share it: they take pieces of
 * `piece` bytes, `across` of a row, of rows that are row_step apart. */
struct mma_tile {
    uint32_t operand;
    enum matmul_side side;
    struct mma_lay lay;
    uint32_t size;                      /* bytes of an element */
    uint32_t source;                    /* the same where it comes from */
    uint32_t rows;                      /* of the tile */
    uint32_t offset;                    /* in a stage, bytes */
    bool is_async;                      /* copied by cp.async, as it lies in memory */
    const struct matmul_gather *gather; /* of what is, where it is no matrix */
    uint32_t piece, lanes, across, row_step, count;
    bool partial;    /* the last piece is not every thread's */
    uint32_t repeat; /* so many rows of a thread have addresses of their own, others at an offset */
};

/* What lies where: all that a plan settles for a form and a target. mma_measure() finds it, and it
 * stays as it is then; .target, .f, .p and .as_f16 are set before. */
struct mma_shape {
    const struct ptx_target *target;
    const struct matmul_form *f;
    const struct matmul_plan *p;
    uint32_t ntile;
    struct mma_tile tile[MATMUL_OPERANDS];
    uint32_t tile_of[MATMUL_OPERANDS]; /* by operand */
    uint32_t stage_bytes, steps;
    /* sums of so many rows are in shared memory at once, the tile's or, of blocks that take several
     * tiles, each warp's; the first patch is `patches` bytes from its beginning */
    uint32_t patch_rows, pitch, patches;
    bool turned;         /* B is tall */
    bool as_f16;         /* the loop that takes f32 as f16 */
    uint32_t high, wide; /* blocks of 16 of a warp's tall operand, of 8 of its flat one */
};

/* The registers of an operand's tile, in the code that is generated. */
struct mma_slab {
    const struct mma_tile *of;
    /* copying */
    int32_t
        takes_part; /* predicates: of threads that have pieces, and that have a last one; -1: all */
    int32_t exists;
    struct cg_val row, col; /* u32: of the thread's first piece: row, element in the row */
    int32_t from;           /* 64 bits, mutable: where it is in the next tile */
    int32_t here;           /* 64 bits: where its row is that is copied now */
    struct ptx_operand next_row, next_tile; /* bytes from there to the next, 64 bits */
    struct cg_val left;                     /* s32: rows from .row on that are inside */
    bool all_rows;                          /* all are */
    struct cg_val inside[MMA_ACROSS];       /* constants or predicates of the pieces of a row */
    /* gathered: of the thread's rows and of its pieces of one, in the next tile: what follows from
     * the operand's row or column of those along k, and from k of the others, or the other way */
    struct matmul_found *of_row, of_col[MMA_ACROSS];
    int32_t to[MMA_SLOTS],
        to_now[MMA_SLOTS];         /* u32: shared addresses in the first stage, and now */
    struct ptx_operand (*held)[4]; /* words of pieces that pass registers */
    int32_t (*raw)[4];             /* as_f16: f32 of pieces on their way, mutable */

    /* reading */
    uint32_t ways;             /* addresses */
    int32_t at[MMA_WAYS];      /* u32: in the first stage */
    int32_t now[MMA_WAYS];     /* u32: in the stage that is read now */
    int32_t word[2][MMA_HELD]; /* as they were stored: of this step and of the next */
    int32_t rest[2][MMA_HELD]; /* of products in parts: the second parts of these */
    /* where they are coarse: pairs of words, or of a flat tile's rests, as bf16 */
    int32_t pair[2][MMA_HELD / 2];
};

/* The code that is generated. */
struct mma {
    struct matmul *m;
    struct cg *g;
    const struct matmul_form *f;
    const struct matmul_plan *p;
    const struct mma_shape *shape;
    struct mma_slab slab[MATMUL_OPERANDS]; /* by tile */
    int32_t *sum;  /* of product q and blocks i, j of those: word w at ((q * high + i) * wide + j) *
                      4 + w */
    int32_t *part; /* of products in parts: those of MMA_TOGETHER steps, on their way to the sums */
    int32_t zero;  /* an f32 */
    int32_t none;  /* of tiles by turns: a 0 that ptxas does not know for one */
    uint32_t step; /* that is multiplied */
    /* products in parts: of the words that were parted, f32, mutable */
    int32_t squares[MMA_CHAINS];
    /* mutable: offset of the stage that is read next and of the one that is written next, u32; the
     * first k of the tile that is copied next, u32, and how many are left from there on, s32 */
    int32_t read, write, k, left;
};
/* Without registers yet. */
void mma_begin(struct mma *s, struct matmul *m, const struct mma_shape *shape);

/* What only begins and ends of tiles take is found again for each of them, and in another loop:
 * ptxas would hold it in registers, which the loops along k do not have, did it not seem to depend
 * on n, which is less than 2^31. */
void mma_find_thread(struct mma *s, struct cg_val thread, struct cg_val n);
/* The same, and the tile of a block that takes one, for another loop of its last `left` tiles along
 * k. */
void mma_go_on(struct mma *s, int32_t left);
/* All of the block's threads meet. */
void mma_barrier(struct mma *s);
/* Does the instruction set have it, and what lies where? why: NULL or what is in the way. */
bool mma_measure(struct mma_shape *s, struct buf *why);

/* ---- mma/copy.c ------------------------------------------------------------------------------ */

/* How a thread takes pieces of the tile; false: the block's threads can't share it evenly. */
bool mma_plan_copy(const struct mma_shape *s, struct mma_tile *t);
void mma_copy_begin(struct mma *s);
/* The place of the thread's piece i of the next tile; inside: whether there is one, an operand of
 * selp or a constant. Pieces come in their order, behind mma_tile_begin(). */
struct ptx_operand mma_source(struct mma *s, struct mma_slab *t, uint32_t i, struct cg_val *inside);
void mma_tile_begin(struct mma *s, struct mma_slab *t);
/* And where it goes to. */
struct ptx_operand mma_target(const struct mma_slab *t, uint32_t i);
int32_t mma_target_register(const struct mma_slab *t, uint32_t i);
int64_t mma_target_offset(const struct mma_slab *t, uint32_t i);
/* The predicate of whether the thread has a piece i at all; -1: always. */
int32_t mma_exists(const struct mma_slab *t, uint32_t i);
/* On to the tile after the next. */
void mma_advance(struct mma *s);
/* Part `part` of `parts` of bringing the next tiles into the stage that is written next; after the
 * last, mma_bring_end(). */
void mma_bring(struct mma *s, uint32_t part, uint32_t parts);
void mma_bring_end(struct mma *s);

/* ---- mma/frag.c ------------------------------------------------------------------------------ */

void mma_read_begin(struct mma *s);
/* Loads step `step` of the stage at s->read into fragments `to`. */
void mma_load(struct mma *s, uint32_t step, uint32_t to);
/* Rounds as much of them as the first products take, of operands that are to be rounded. */
void mma_round(struct mma *s, uint32_t of);
/* Adds the products of fragments `of`, of step `step`, and rounds the rest of them and, if those
 * are others, as much of `next`, between the products: so instructions that wait for words meet
 * some that need not. */
void mma_multiply(struct mma *s, uint32_t step, uint32_t of, uint32_t next);
/* Adds the products of 16 rows i of the tall operand, of fragments `of` that are ready as they were
 * loaded. */
void mma_multiply_rows(struct mma *s, uint32_t i, uint32_t of);
/* The sums of product q, block of 16 number i and block of 8 number 0. */
int32_t *mma_sums_of_row(const struct mma *s, uint32_t q, uint32_t i);
/* Products of 16 rows of the tall operand with all columns of the flat one, along these to and fro,
 * so that registers are met again at once: added to d, of 4 words for each 8 columns; fresh: in
 * place of what it holds. */
void mma_multiply_row(struct mma *s, uint32_t q, bool back, int32_t *d, bool fresh,
                      const int32_t *a, const int32_t *b);
/* Multiplies pairs of bf16 of two steps, and adds the products to d. */
void mma_multiply_pairs(struct mma *s, int32_t *d, const int32_t *const a[2], const int32_t *b0,
                        const int32_t *b1);
/* ---- mma/parts.c: of products in parts ------------------------------------------------------- */

/* Words [from, to) of fragments `of` in two parts. */
void mma_part(struct mma *s, const struct mma_slab *t, uint32_t of, uint32_t from, uint32_t to);
/* Pairs [from, to) of fragments `of`, which are parted, as bf16. */
void mma_pair(struct mma *s, const struct mma_slab *t, uint32_t of, uint32_t from, uint32_t to);
/* Adds products of fragments `of`, of 16 rows of the tall operand. */
void mma_multiply_parts(struct mma *s, uint32_t q, uint32_t i, uint32_t of);
/* Adds those up that are not yet among the sums. */
void mma_promote_rest(struct mma *s);

/* ---- mma/range.c: factors of which parts lose bits --------------------------------------------
 */

void mma_range_begin(struct mma *s);
void mma_range_clear(struct mma *s);
/* Notes the size of a word that is not yet parted, number i. */
void mma_range_take(struct mma *s, int32_t word, uint32_t i);
/* Makes sums right that parts lost bits of. All of the block's threads come. */
void mma_mend(struct mma *s);

/* ---- mma/as_f16.c: f32 as f16 ---------------------------------------------------------------- */

/* h, and its plan p: the same as that of s for f16 in two stages; false: not with these tiles. */
bool mma_measure_as_f16(const struct mma_shape *s, struct mma_shape *h, struct matmul_plan *p);
uint32_t mma_as_f16_shared(const struct mma_shape *h);
/* Adds products of `left` tiles along k, one at least, to the sums, until elements are met that f16
 * does not have: a predicate, the same for all threads. left: mutable, those that are left then.
 * Threads leave behind a barrier. */
int32_t mma_multiply_as_f16(struct mma *h, int32_t left);

/* ---- mma/sums.c ------------------------------------------------------------------------------ */

/* How much of the sums the stages have room for at once; of blocks that take several tiles, the
 * last stage. */
void mma_measure_patch(struct mma_shape *s);
/* Bytes of the patches, from the first on. */
uint32_t mma_patch_bytes(const struct mma_shape *s);
/* The subscripts of the lane's word w (a u32) of the sums of product q. */
void mma_place_of(struct mma *s, uint32_t q, struct cg_val w, struct cg_val *row,
                  struct cg_val *col);
/* Stores the outputs made of the sums. The block's threads come, behind a barrier after the stages
 * were read. */
void mma_store(struct mma *s);

#endif
