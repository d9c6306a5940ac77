/* Chains of contractions: stages that stream over an index j, with sums of products inside of what
 * is reduced. Attention is the foremost of them. Private to lib/lower.
 *
 *     s[b.., i, j]  = sum[c](q * k)                scores: sums that depend on j
 *     m[b.., i]     = max[j](f(s, ...))            streams: reductions over j, of a row (b.., i)
 *     o[b.., i, e]  = sum[j](p(s, m, ...) * v)     and with a column e, on which p does not depend
 *     y[b.., i, e]  = g(o, m, ...)                 outputs
 *
 * All streams are computed in one pass over j, and no score is ever stored. What a stream needs of
 * another one is not known before the pass ends, but for a maximum m that stands in its terms as
 * exp(x - m): there the terms so far are those of the maximum so far, and when it grows by d the
 * sum is multiplied by exp(-d). A factor that is the same for the whole row is taken out of the
 * sum.
 *
 * Equations are normalised first (chain/form.c): intermediates are expanded, every score and every
 * stream is a local variable that stands for it, and one symbol each for the row's axes, the
 * column and j is used in all of them. Binding these is all that evaluating a part takes.
 *
 * Tensor cores multiply tiles of rows that differ in one axis i, of the same k and v. Where queries
 * are grouped, so that heads h of a group of G share k[.., h / G, j, c], rows are few and one block
 * is to read k and v for all of them, a tile's rows are packed: row r is that of i = r / G and of
 * the group's head r % G. Each row binds its own i and h, and what shares k and v needs no more of
 * h than any head of the group.
 *
 *   chain/form.c     what fits, and what is computed
 *   chain/columns.c  the column, and parts of terms that don't depend on it
 *   chain/range.c    conditions on j that are ranges of it
 *   chain/skip.c     and those where terms have the weight 0
 *   chain/runs.c     and those that depend on what the keys are
 *   chain/running.c  which terms may be rescaled, and by what
 *   chain/products.c the products in it, as tensor cores multiply them
 *   chain/pair.c     a sum over the rows, beside those over j
 *   chain/pack.c     the axis of rows that share right operands beside i
 *   chain/any.c      any form, without tensor cores: a warp for each row
 *   chain/rows.c     the rows that a warp has, and their ranges of j
 *   chain/begin.c    the registers of the rows that a warp has
 *   chain/tile.c     streams of the rows that a warp has, for all kernels by tensor cores
 *   chain/fall.c     exponentials in them
 *   chain/rough.c    other operations in them
 *   chain/lift.c     functions of scores that are computed in their place
 *   chain/narrow.c   integers and reads in them
 *   chain/along.c    reads of vectors along j, and of what has an element for each row and j
 *   chain/end.c      what becomes of the rows at last
 *   chain/words.c    what they multiply by tensor cores
 *   chain/anew.c     a warp's rows one by one, where they are special
 *   chain/repair.c   rows of which j were left out that they needed
 *   chain/split.c    blocks that share a row's j
 *   chain/store.c    outputs of those
 *   chain/bring.c    operands' tiles, from memory to shared memory, by all threads
 *   chain/multiply.c instructions of mma.sync on these
 *   chain/mma.c      the kernel by mma.sync (chain/mma.h)
 *   chain/wgmma.c    the kernel by wgmma (chain/wgmma.h)
 *   chain/losses.c   what sums lose
 *   chain/cost.c     how long plans take
 *   chain/choose.c   what it chooses by that
 *   chain/strategy.c the strategy
 *   chain/candidates.c what is wrong with schedules, and which are worth trying
 */
#ifndef KAIO_LOWER_CHAIN_H
#define KAIO_LOWER_CHAIN_H

#include "lower/chain/form.h"
#include "lower/mma/fragment.h"

enum {
    CHAIN_COLUMNS = 4, /* streams with a column, by tensor cores */
    CHAIN_ALONG = 4,   /* reads that come by boxes */
};

/* ---- chain/products.c ------------------------------------------------------------------------ */

/* A product of matrices whose rows are those of a tile: of a score q k with columns j and terms c,
 * of a stream p v with the column and terms j. */
struct chain_product {
    struct matmul_form form;       /* of one product; batch: the row's axes but i, in their order */
    const struct lang_symbol *raw; /* the local that stands for the product's sums */
    struct lang_expr *value;       /* what the score or the stream is of them */
    uint32_t stream;               /* its number, of a stream */
    /* What the instructions take the operands as, f32 as tf32; and whether each of these goes as
     * two of tf32, so that there are three products. */
    struct mma_kind kind;
    bool splits;
    /* Numbers of the type that stand for an element of the left operand together: it is f32 if
     * there are several, at most 1, and multiplied by CHAIN_SCALE where the type is f16, so that
     * none of what counts is subnormal. 1 where the product .splits. */
    uint32_t parts;
};
enum { CHAIN_PARTS_MOST = 3, CHAIN_SCALE = 4096 };
/* An axis h of the row beside i. The products' right operands depend on h / G, or not on it, so
 * that G rows of neighbouring h share them for every i. */
struct chain_pack {
    uint32_t axis;              /* which of the row's axes; f->nrow: there is none */
    uint32_t batch;             /* the products' number of it */
    bool ragged;                /* the last group may be smaller */
    struct lang_symbol *member; /* an index over a group: G */
    struct lang_symbol *group;  /* over all groups */
    struct lang_symbol *rows;   /* over the rows of a group: i * G */
};
/* A read of a tensor's elements for j that may come by boxes: a vector's, the same for all rows of
 * a tile, or a sheet's, which has an element for each row and j. */
struct chain_along {
    const struct lang_expr *e;
    bool is_sheet;
};
/* A sum over the rows of tiles, for each j, beside those over j for each row (chain/pair.c): its
 * left operand is that of a column, turned, and its right one the left one of a score. */
struct chain_across {
    const struct chain_tensor *t; /* of the sum as a stage of its own, whose rows are j */
    uint32_t column, score;
    struct lang_expr
        *from; /* where the rows of its terms begin, by j; NULL: all do with the first */
    bool any;  /* tiles are added in any order */
    const struct lang_symbol *sums, *added; /* temps: see chain/across.c */
};
struct chain_tensor {
    const struct chain_form *f;
    uint32_t i; /* which of the row's axes a tile's rows run along; f->nrow: a tile has one row */
    struct chain_pack pack;
    struct chain_product score[CHAIN_SCORES];
    uint32_t ncolumn;
    struct chain_product column[CHAIN_COLUMNS]; /* operand 0: the stream's first part; 1: v */
    const struct lang_symbol *repairs;          /* see chain/repair.c; NULL: nothing is left out */
    uint32_t nalong;
    struct chain_along along[CHAIN_ALONG];
    const struct chain_across *across; /* NULL: there is none */
};
/* e with `to` in the place of the node `from`, or of the name of that symbol. */
struct lang_expr *chain_replaced(struct cg *g, struct lang_expr *e, const struct lang_expr *from,
                                 const struct lang_symbol *sym, struct lang_expr *to);
#define CHAIN_PART "part" /* the name of the left operand of a stream's product */
/* Bytes of an element of the operand on this side, as it is multiplied. */
static inline uint32_t chain_size(const struct chain_product *p, enum matmul_side side)
{
    return dtype_bits(side == MATMUL_A ? p->kind.left : p->kind.right) / 8;
}
/* Is a product of 8-bit floats, or does one split f32, among those of columns, or among all? */
bool chain_has_bytes(const struct chain_tensor *t);
bool chain_has_splits(const struct chain_tensor *t);
/* The types that are multiplied, in words: f16; tf32x3; e4m3 and f16. */
const char *chain_types(struct arena *a, const struct chain_tensor *t);
/* Are all scores, and all streams with a column, products that tensor cores take? why: what is in
 * the way. */
bool chain_find_products(struct cg *g, const struct chain_form *f, struct chain_tensor *t,
                         struct buf *why);

/* ---- chain/pair.c ---------------------------------------------------------------------------- */

/* Is `of` a sum across the rows of t's tiles? */
bool chain_find_across(struct cg *g, const struct chain_tensor *t, const struct chain_tensor *of,
                       struct chain_across *a);

/* ---- chain/pack.c ---------------------------------------------------------------------------- */

/* Finds t->pack, of products that are known. */
void chain_find_pack(struct cg *g, struct chain_tensor *t);
bool chain_can_pack(const struct chain_tensor *t);
/* The index of the rows that tiles are of: i, or all of a group's; NULL: there is one. */
const struct lang_symbol *chain_rows_index(const struct chain_tensor *t, bool packs);
/* The index of the row's axis a, by whose numbers blocks differ: where rows are packed, groups. */
const struct lang_symbol *chain_batch_index(const struct chain_tensor *t, bool packs, uint32_t a);

/* ---- chain/any.c ----------------------------------------------------------------------------- */

enum { CHAIN_ANY_BLOCK = 128 };
/* Code for any form in the entry that has begun, of so many threads: its launch's grid. */
struct lang_expr *chain_any(struct cg *g, const struct chain_form *f);
/* Computes and stores all outputs of a row, of which a warp's lanes know the axes (i64). */
void chain_any_row(struct cg *g, const struct chain_form *f, const struct cg_val *row,
                   struct cg_val lane);

/* ---- chain/tile.c ---------------------------------------------------------------------------- */

/* The rows that a warp has, 16 by 16, as instructions of mma.sync and wgmma have their sums: lane 4
 * r + c has of each 8 columns the words of rows r and r + 8, columns 2 c and 2 c + 1.
 *
 * The streams of a row are the same in its four lanes, or a part of each in every lane. */
enum { CHAIN_HIGH = 2, CHAIN_ROWS = 2 * CHAIN_HIGH, CHAIN_WIDE = 256 };
struct chain_values;
struct chain_tile {
    struct cg *g;
    const struct chain_tensor *t;
    uint32_t high, wide; /* blocks of 16 rows of a warp; j of a tile, a multiple of 16 */
    uint32_t block_rows; /* rows of the block */
    uint32_t columns;    /* of the sums, a multiple of 16: all that there are */
    /* Of each 16 columns a lane has four neighbours, 4 c to 4 c + 3: those of even numbers are in
     * the first 8. Otherwise they are as above. */
    bool fours;
    bool half;   /* there are at most 8 rows: words of others are not used, or 0 */
    bool eights; /* there are a multiple of 8 columns wherever the entry is taken */
    bool packs;  /* rows are those of .t->pack */
    struct cg_val row[CHAIN_AXES];    /* i64; that of .t->i is not used; of .t->pack's the first */
    struct cg_val first, block_first; /* u32: the first row of the warp, and of the block */
    struct cg_val lane;               /* u32 */
    struct cg_val share, shares;      /* u32: the block's number among those that share its rows */
    /* found by chain_tile_begin(): */
    struct cg_val end; /* u32: of j */
    struct chain_row {
        struct cg_val i, h;   /* i64: the axes .t->i, and .t->pack's where rows are packed */
        struct cg_val exists; /* a predicate or a constant; the last row stands for those outside */
    } at[CHAIN_ROWS];         /* the lane's */
    struct cg_val low[CHAIN_STREAMS][CHAIN_ROWS], high_of[CHAIN_STREAMS][CHAIN_ROWS]; /* i32 */
    /* u32: terms of the block's rows are those of from <= j < to, and of whole_from <= j < whole_to
     * for all of its rows and streams; the latter may be empty, and is never reached where
     * is_whole does not hold */
    struct cg_val from, to, whole_from, whole_to;
    struct cg_val all_from, all_to; /* u32: .from and .to of all blocks that share the rows */
    int32_t state[CHAIN_STREAMS][CHAIN_ROWS]; /* mutable; of streams without a column */
    int32_t scale[CHAIN_COLUMNS][CHAIN_ROWS]; /* mutable; f32, of streams with one */
    int32_t *sum[CHAIN_COLUMNS]; /* mutable: word w of 16 rows i and 8 columns b: ((i * columns / 8)
                                    + b) * 4 + w */
    int32_t *word[CHAIN_COLUMNS]; /* mutable: the left operand of the second product, of its part
                                     q, 16 rows i and step n of its steps: (((q * high + i) * steps)
                                     + n) * 4 + w */
    /* The maximum that terms don't fall off from, but from a reference that follows it: mutable,
     * f32. -1: there is none. .grown is a mutable predicate, the same in the warp: .scale counts.
     */
    int top;
    bool lone; /* each lane has the maximum of its own terms, until that has grown, or the end */
    int32_t reference[CHAIN_ROWS], grown;
    /* .top is the maximum of score number .scaled, the product times this; NULL: of something else.
     */
    const struct lang_expr *scale_by;
    uint32_t scaled;
    /* The product's registers become this first, a function of the score; NULL: they stay. */
    const struct lang_expr *lifted;
    /* Where this does not hold, all terms but the maximum's are 0, and that's own is -inf, beside
     * the ranges; NULL: there is no such condition. It is put on products, as ranges are. */
    const struct lang_expr *keep;
    struct cg_val sure;    /* a predicate: it holds for all j of the ranges; DT_VOID: never */
    bool deep;             /* terms may all be so far below it that they are subnormal */
    bool masks;            /* all terms but the maximum's are 0 where that's own is -inf */
    struct cg_val inside;  /* in a step: is the element a term? A constant or a predicate */
    struct cg_val first_j; /* in a step: the lane's first j, */
    uint32_t distance;     /* how far behind it the element's is, */
    uint32_t of_row;       /* and which of the lane's rows it is of */
    /* Of .t->along, vectors and sheets are in shared memory: the addresses of the elements for the
     * lane's first j, and its first row, u32. */
    bool has_along, has_sheets;
    int32_t along[CHAIN_ALONG];
    /* Is called when the row's elements of the left operands are there; NULL: nothing is. */
    void (*has_row)(void *ctx, const struct chain_values *v, uint32_t row);
    void *has_row_ctx;
    int32_t guard; /* the guard that it is, and what was before */
    struct cg_guard outside;
    int32_t bad; /* f32, mutable: NaN where a score that splits f32 was no number; -1: none does */
};
static inline const struct chain_stream *chain_tile_stream(const struct chain_tile *x, uint32_t n)
{
    return &x->t->f->stream[n];
}
/* Rows of a lane's. */
static inline uint32_t chain_tile_rows(const struct chain_tile *x)
{
    return x->half ? 1 : 2 * x->high;
}
/* Is the word of a lane's four of 8 columns one of a row that there may be? */
static inline bool chain_tile_uses(const struct chain_tile *x, uint32_t word)
{
    return !x->half || word % 4 < 2;
}
/* What stream n has of the lane's row so far. */
static inline struct cg_val chain_tile_state(const struct chain_tile *x, uint32_t n, uint32_t row)
{
    return cg_value(chain_tile_stream(x, n)->type, x->state[n][row]);
}
static inline struct cg_val chain_f32(struct cg *g, double v)
{
    return cg_float(g, DT_F32, v);
}
/* chain/begin.c. .g to .lane are set: finds the rest, and begins all streams. */
void chain_tile_begin(struct chain_tile *x);
/* Begins them anew. */
void chain_tile_clear(struct chain_tile *x);
/* Takes the scores of a tile whose first j is `first`, a u32: word w of 16 rows i and 8 j b is
 * score[n][((i * wide / 8) + b) * 4 + w]. Makes .word of them, and multiplies .sum by what it is
 * to be rescaled by. */
void chain_tile_step(struct chain_tile *x, struct cg_val first, int32_t *const *score);
/* The same in parts, for those that multiply meanwhile. */
/* Is it the products that are masked? Then code for tiles that may not be whole is for whole ones,
 * too. */
bool chain_masks_products(const struct chain_tile *x);
/* Streams, what .sum is to be rescaled by, and the left operands' elements, which
 * chain_tile_words() makes .word of. masked: some j may be no terms. */
struct chain_values {
    struct cg_val *of[CHAIN_COLUMNS][CHAIN_ROWS]; /* of each row those of the lane, by j */
};
struct chain_values *chain_tile_terms(struct chain_tile *x, struct cg_val first,
                                      int32_t *const *score, bool masked);
/* The left operand's words of column c alone, where all streams have columns. Scores that its terms
 * do not mention need not be there yet. */
void chain_tile_column_words(struct chain_tile *x, uint32_t c, struct cg_val first,
                             int32_t *const *score, bool masked);
void chain_tile_rescale(struct chain_tile *x);
/* Takes notice of scores that are no numbers since they are of parts. */
void chain_tile_look(struct chain_tile *x, uint32_t words, int32_t *const *score);
/* Of the lane's pair n of neighbouring columns, of a row: where in the 8 columns of which block
 * each is, and its number. */
struct chain_column {
    uint32_t block, pair;
    struct cg_val at; /* u32 */
};
struct chain_column chain_tile_column(const struct chain_tile *x, uint32_t n, uint32_t which);
/* chain/end.c. After the last tile: stores the outputs of the warp's rows; those of rows that have
 * infinities or NaN are computed anew. */
void chain_tile_end(struct chain_tile *x);

/* Are other streams rescaled by it? */
bool chain_is_maximum(const struct chain_tile *x, uint32_t n);
/* Folds the value with that of the lane so far away. */
struct cg_val chain_over_lanes(struct cg *g, enum fold_kind how, struct cg_val v, int64_t lane);

/* ---- chain/rough.c --------------------------------------------------------------------------- */

/* x / y and tanh(x) without branches, where the row is computed anew if the result is NaN. False:
 * as it is. */
bool chain_rough_quotient(struct cg *g, struct cg_val x, struct cg_val y, struct cg_val *q);
struct cg_val chain_rough_tanh(struct cg *g, struct cg_val x);

/* ---- chain/lift.c ---------------------------------------------------------------------------- */

/* Is e, which is the same for all rows and all j but for scores, a function of score n alone that
 * may stand in its place? */
bool chain_can_lift(const struct chain_tile *x, const struct lang_expr *e, uint32_t n);
/* The products of a tile in these registers become .lifted. */
void chain_lift(struct chain_tile *x, const int32_t *reg);

/* ---- chain/narrow.c -------------------------------------------------------------------------- */

/* Answer sums and products of indices, conversions of these, and reads, in a step; false: not
 * theirs. */
bool chain_narrow_binary(struct cg *g, const struct lang_expr *e, struct cg_val *v);
bool chain_narrow_cast(struct cg *g, const struct lang_expr *e, struct cg_val *v);
/* An end of a range, of i64, as an i32. */
bool chain_narrow_bound(struct cg *g, const struct lang_expr *e, struct cg_val *v);
bool chain_narrow_read(struct cg *g, const struct lang_expr *e, struct cg_val *v);

/* ---- chain/along.c --------------------------------------------------------------------------- */

/* Finds t->along, of products that are known. */
void chain_find_along(const struct cg *g, struct chain_tensor *t);
/* Is e a sheet's element that may come by boxes? Are there any? */
bool chain_is_sheet(const struct chain_tensor *t, const struct lang_expr *e);
bool chain_has_sheets(const struct chain_tensor *t);
/* Numbers of a box, and where in shared memory the number for j `distance` lies: bytes from that
 * for j 0, a multiple of CHAIN_ALONG_BYTES for each box. */
enum { CHAIN_ALONG_BOX = 32, CHAIN_ALONG_BYTES = 1024 };
static inline uint32_t chain_along_offset(uint32_t distance)
{
    return distance / CHAIN_ALONG_BOX * CHAIN_ALONG_BYTES + distance % CHAIN_ALONG_BOX * 4;
}
/* A sheet's tile lies as wgmma's operands do along their terms (wgmma/products.h): rows of so many
 * bytes, of which chunks of 16 bytes are swizzled. So are the lane's first elements, of a lane
 * `lane` (u32) of the warp whose rows begin at the shared address `at`, 1024 bytes aligned. */
enum { CHAIN_SHEET_SPAN = 128 };
struct cg_val chain_sheet_lane(struct cg *g, enum dtype t, struct cg_val at, struct cg_val lane);
/* Reads what e does from vectors, in front of a wait that ptxas moves no read over. */
void chain_fetch_along(struct chain_tile *x, const struct lang_expr *e);
/* Answers a read in a step; false: it is none of these. */
bool chain_read_along(struct chain_tile *x, const struct lang_expr *e, struct cg_val *v);

/* ---- chain/fall.c ---------------------------------------------------------------------------- */

/* May exponentials and quotients be the hardware's, to some units in the last place? Where the left
 * operands are of 16 bits or fewer, that is lost in their roundings. */
bool chain_is_rough(const struct chain_tile *x);
/* May a row's maximum be of j that are no terms of its sums, or something else be larger, as a sink
 * is, so that all of these are far below it? */
bool chain_is_deep(const struct chain_form *f);
/* Are the stream's terms exp(x - b), of a base b of type f32? */
bool chain_is_plain(const struct chain_stream *s);
/* The maximum so far, for terms: never -inf. */
struct cg_val chain_for_terms(struct chain_tile *x, struct cg_val m);
/* exp(from - b), roughly, and that of raw times .scale_by; is b such that these might overflow? */
struct cg_val chain_fall(struct chain_tile *x, struct cg_val from, struct cg_val b);
struct cg_val chain_fall_raw(struct chain_tile *x, struct cg_val raw, struct cg_val b);
struct cg_val chain_is_coarse(struct chain_tile *x, struct cg_val b);
/* What e, a maximum's term, is where its condition holds, if it is a product with a score there,
 * -inf elsewhere, and the condition is one of indices and of what is read by them; otherwise NULL.
 */
const struct lang_expr *chain_kept(const struct chain_tensor *t, const struct lang_expr *e);
/* Is e what .top is the maximum of, a score times .scale_by? */
bool chain_is_scaled(const struct chain_tile *x, const struct lang_expr *e);
/* By what stream n's sum of the lane's row is multiplied when its maximum `was` becomes what it is
 * now. */
struct cg_val chain_rescaling(struct chain_tile *x, uint32_t n, uint32_t row, struct cg_val was);
/* Finds .top, .scale_by and .masks, and makes what they need. */
void chain_fall_begin(struct chain_tile *x);
/* A row's lanes have the same maximum, where they are .lone. */
void chain_fall_meet(struct chain_tile *x);
/* The references become the maxima. */
void chain_fall_follow(struct chain_tile *x);
/* The maxima have grown, perhaps: finds .grown, and if it is so .scale, and rescales states. */
void chain_fall_grow(struct chain_tile *x);
/* Rescales all to the maxima: exactly, or so that chain_rescaling() is right for them. */
void chain_fall_settle(struct chain_tile *x, bool exactly);
void chain_multiply_sums(struct chain_tile *x, uint32_t c, uint32_t row, struct cg_val by);

/* ---- chain/words.c --------------------------------------------------------------------------- */

/* Words of 16 rows of the left operand of column c, of one part. */
uint32_t chain_words(const struct chain_tile *x, uint32_t c);
/* Finds what the left operand's element is rounded from, and its type. */
const struct lang_expr *chain_unrounded(const struct chain_tile *x, uint32_t c, enum dtype *t);
void chain_tile_words(struct chain_tile *x, const struct chain_values *v);
void chain_words_of(struct chain_tile *x, const struct chain_values *v, uint32_t c); /* of one */
void chain_row_words(struct chain_tile *x, const struct chain_values *v, uint32_t row);

/* ---- chain/rows.c ---------------------------------------------------------------------------- */

/* Finds the lane's rows and the block's ranges, up to .whole_to: enough for threads that have no
 * streams. */
void chain_tile_find(struct chain_tile *x);
/* Finds the ranges of the lane's rows. */
void chain_tile_find_ranges(struct chain_tile *x);
/* Finds the lane's rows anew, so that no registers have them in the meantime. */
void chain_tile_find_again(struct chain_tile *x);
/* Row r (u32) of the tile's batch. */
struct chain_row chain_row_of(struct chain_tile *x, struct cg_val r);
/* Binds what stands for its axes. */
void chain_bind(struct chain_tile *x, const struct chain_row *row);
/* Binds what stands for the row's axes, the lane's row n. */
void chain_bind_row(struct chain_tile *x, uint32_t n);
/* Are all j of the tile terms of all the block's rows? A constant or a predicate. */
struct cg_val chain_tile_is_whole(struct chain_tile *x, struct cg_val first);
/* Where a stream's range begins or ends for the row that is bound, an i32 in j's extent. */
struct cg_val chain_bound(struct chain_tile *x, const struct lang_expr *e);
/* The least j that a stream of the block's rows has, and the end of them: i32. */
void chain_tile_reach(struct chain_tile *x, struct cg_val *from, struct cg_val *to);

/* ---- chain/anew.c ---------------------------------------------------------------------------- */

/* Computes the warp's rows one by one, as the equations say. */
void chain_tile_anew(struct chain_tile *x);

/* ---- chain/repair.c -------------------------------------------------------------------------- */

enum { CHAIN_REPAIR_BLOCK = 128 };
/* Rows that streams leave j out of are wrong where any v behind these is infinite or NaN. Who
 * meets such a v says so for all rows of the same batch, and a launch behind that of the others
 * computes those anew. */
void chain_repair_begin(struct cg *g, struct chain_tensor *t);
/* The warp has met one. */
void chain_repair_ask(struct chain_tile *x);
/* Looks at the v that nobody else of the batch does: behind the j between the block's rows' and the
 * next ones', and a part of those in front of the first row's and behind the last one's. */
void chain_repair_cover(struct chain_tile *x);
/* The launch's entry, which has begun: its grid. */
struct lang_expr *chain_repair(struct cg *g, const struct chain_tensor *t);

/* ---- chain/split.c --------------------------------------------------------------------------- */

/* Blocks that share the j of their rows, each of which takes so many tiles that lie side by side;
 * the last one to be done goes on with what all have found. Warps of a block may share its part in
 * the same way; then the first one goes on with what all have found. */
struct chain_split {
    struct lang_expr *splits;    /* blocks that share, as the launch computes it; NULL: 1 */
    struct lang_expr *groups;    /* of so many blocks */
    struct cg_val number, group; /* u32: the block's in its group; the group's */
    struct cg_val count;         /* u32: of them */
    struct cg_val thread;        /* u32 */
    uint32_t threads;            /* of a block, those that have rows */
    uint32_t sharers;            /* warps that share the rows of one; 0: none do */
    struct cg_val sharer;        /* u32: the thread's of these */
    uint32_t before, bytes;      /* of shared memory: in front of the first one's, and of each */
    int32_t shared;              /* u32: the address of all */
    /* The sizes for which the launch takes this entry: those that meet .when and not .unless; NULL:
     * all, none. */
    struct lang_expr *when, *unless;
};
/* Can what the streams have be kept in memory? */
bool chain_can_split(const struct chain_tensor *t);
/* Bytes of what a warp that shares rows leaves. */
uint32_t chain_split_bytes(const struct chain_tensor *t, uint32_t high, uint32_t columns);
/* Share number x->share of [x->from, x->to), whose first is a multiple of x->wide: so becomes that.
 */
void chain_split_range(struct chain_tile *x);
/* After its tiles: jumps to `skip` unless the block goes on. */
void chain_split_join(struct chain_tile *x, const struct chain_split *s, uint32_t skip);

/* ---- chain/store.c --------------------------------------------------------------------------- */

/* Are there a multiple of 8 columns where all rows of memory are whole pieces of 16 bytes? */
bool chain_has_eights(const struct chain_tensor *t);
/* Stores the outputs, of states that are complete. */
void chain_store(struct chain_tile *x);
/* ---- chain/bring.c --------------------------------------------------------------------------- */

/* An operand's tile in shared memory: rows of whole pieces of 16 bytes, one of which is a thread's
 * at a time. */
struct chain_slab {
    struct matmul m; /* finds the elements of a product's operand */
    uint32_t operand;
    enum dtype type;           /* of the tile's elements */
    struct chain_tile *packed; /* the operand's rows are this tile's, packed; NULL: they are not */
    struct mma_lay lay;
    uint32_t rows, offset; /* of the tile; bytes of shared memory in front of it */
    bool aligned;          /* what lies in memory as it is, is copied by whole pieces */
    uint32_t threads;      /* of the block */
    /* found by chain_slab_begin(): */
    bool is_async;
    uint32_t row_step, count; /* rows from a thread's piece to its next; pieces of a thread */
    struct cg_val row, piece; /* u32: of the thread's first */
    int32_t to, takes_part;   /* u32: shared address of that; predicate, -1: always */
    const struct lang_expr *gathered; /* see find_gathered() there */
    int64_t next_bytes;               /* in memory from a piece to the next, if that is known; */
    struct ptx_operand next_row;      /* 0: these, of 64 bits */
};
/* Bytes of the tile. */
uint32_t chain_slab_bytes(const struct chain_slab *t);
/* .m to .threads are set; thread: u32. .m.whole_cols, .whole_k: nothing of a tile that is brought
 * is outside of the operand that way. */
void chain_slab_begin(struct chain_slab *t, struct cg_val thread);
/* Brings the tile whose first row (column) of the operand is `at`, and whose first term is k, both
 * u32: by cp.async where it may, which the caller commits. What is outside of the operand is 0. */
void chain_bring(struct chain_slab *t, struct cg_val at, struct cg_val k);

/* ---- chain/multiply.c ------------------------------------------------------------------------ */

/* A product, as a warp's lanes have it: 16 `high` rows, `wide` columns and so many steps of
 * MMA_STEP bytes. */
struct chain_multiply {
    struct cg *g;
    const struct chain_product *p;
    uint32_t high, wide, steps;
    const struct mma_lay *left, *right;
    const int32_t *left_at, *right_at; /* the lane's addresses of these */
    const int32_t *word; /* the left operand's words instead, of all parts and steps; or NULL */
    int32_t *sum;        /* mutable */
};
/* The sums of a score: its words, where there are any, as mma_load_words() loads them, step by
 * step. */
void chain_multiply_score(const struct chain_multiply *m);
/* Adds the products of a stream to its sums: words are as those of struct chain_tile. */
void chain_multiply_column(const struct chain_multiply *m);

/* ---- chain/mma.c ----------------------------------------------------------------------------- */

enum chain_choice { CHAIN_CHOSEN, CHAIN_YES, CHAIN_NO };

/* What a schedule says; 0: chosen. */
enum chain_by { CHAIN_BY_ANY, CHAIN_BY_NONE, CHAIN_BY_SYNC, CHAIN_BY_WGMMA };
enum chain_blocks { CHAIN_BLOCKS_ANY, CHAIN_BLOCKS_ALL, CHAIN_BLOCKS_TILES };
struct chain_options {
    uint32_t mma;     /* enum chain_by */
    uint32_t tile[2]; /* rows of a block, j of a step */
    uint32_t warps;   /* of a block, those that multiply */
    uint32_t split;   /* blocks that share rows */
    uint32_t stages;  /* of k, and of v */
    /* wgmma: */
    uint32_t turns, overlaps; /* enum chain_choice */
    uint32_t blocks;          /* enum chain_blocks */
    uint32_t each;            /* blocks of a multiprocessor */
    uint32_t order;           /* CHAIN_YES: any, in which blocks add to a sum */
};

struct chain_plan {
    uint32_t warps, high, wide; /* of a block; see struct chain_tile */
    uint32_t terms, columns;    /* of scores and of sums at most, multiples of 16 */
    bool aligned;               /* rows of q, k and v in memory are whole pieces of 16 bytes */
    bool packs;                 /* see struct chain_tile */
    /* blocks that share rows: at most, or 0: as many as the device has room for */
    uint32_t split;
    /* mma.sync: warps that share the rows of one, each with .stages of its own; 0: all warps have
     * rows of their own, and bring tiles together */
    uint32_t sharers;
    uint32_t keeps;          /* wgmma: registers of the producer's threads */
    uint32_t group;          /* wgmma, of 8 bits: columns that are added of a tile alone at once */
    bool sheets;             /* wgmma: they come by boxes */
    uint32_t stages;         /* of k, and of v, in shared memory */
    uint32_t queries;        /* wgmma: of q */
    enum chain_choice turns; /* wgmma: warpgroups multiply by turns */
    enum chain_choice overlaps;      /* wgmma: the tile before is multiplied under a tile's terms */
    bool own;                        /* wgmma: each block has one item */
    uint32_t each;                   /* wgmma: blocks of a multiprocessor; 0: 1 */
    struct lang_expr *few;           /* what must hold of the rows; NULL: nothing */
    struct lang_expr *when, *unless; /* see struct chain_split */
};
/* An index' extent as a multiple of 16; `most` where it is not known. */
uint32_t chain_padded(const struct lang_symbol *index, uint32_t most);
/* The same of whole steps of a score, and of the sums' columns. */
uint32_t chain_terms(const struct chain_product *p, uint32_t most);
uint32_t chain_columns(const struct chain_tensor *t, uint32_t most);
/* What the j of a tile are a multiple of. */
uint32_t chain_unit(const struct chain_tensor *t);
/* Has a thread registers for its words? */
bool chain_mma_has_registers(const struct chain_tensor *t, const struct chain_plan *p);
enum { CHAIN_SHARERS = 4 }; /* warps of a multiprocessor, where some share rows */
uint32_t chain_mma_threads(const struct chain_plan *p);
/* Bytes of dynamic shared memory. */
uint32_t chain_mma_shared(const struct chain_tensor *t, const struct chain_plan *p);
/* Code for the entry that has begun: its launch's grid. c: what the operands need is required. */
struct lang_expr *chain_mma(struct cg *g, const struct chain_tensor *t, const struct chain_plan *p,
                            struct variant_condition *c);

/* ---- chain/wgmma.c --------------------------------------------------------------------------- */

/* Has the target wgmma, and can it take the products? why: what is in the way. */
bool chain_wgmma_fits(const struct ptx_target *target, const struct chain_tensor *t,
                      struct buf *why);
/* Chooses .warps, those that multiply, .high, .wide, .keeps, .stages, .queries, .turns and
 * .overlaps for what .terms and .columns say; those that are not 0 stay. False: there is no room.
 */
bool chain_wgmma_plan(const struct ptx_target *target, const struct chain_tensor *t,
                      struct chain_plan *p);
/* What is wrong with the tile of a plan that has no room, in words. */
const char *chain_wgmma_lacks(struct arena *a, const struct ptx_target *target,
                              const struct chain_tensor *t, const struct chain_plan *p);
/* Of what j of a tile are a multiple; warpgroups that multiply at most. */
uint32_t chain_wgmma_unit(const struct chain_tensor *t);
enum { CHAIN_GROUPS = 3, CHAIN_GROUP_ROWS = 64, CHAIN_GROUP_WARPS = 4 };
uint32_t chain_wgmma_shared(const struct chain_tensor *t, const struct chain_plan *p);
uint32_t chain_wgmma_threads(const struct chain_plan *p);
struct lang_expr *chain_wgmma(struct cg *g, const struct chain_tensor *t,
                              const struct chain_plan *p, struct variant_condition *c);

/* ---- chain/across.c -------------------------------------------------------------------------- */

/* Is it a plan for a sum across? */
bool chain_across_fits(const struct chain_plan *p);
/* Makes the temps. */
void chain_across_begin(struct cg *g, struct chain_across *a, const struct chain_plan *p);

/* ---- chain/gather.c -------------------------------------------------------------------------- */

/* Code for the entry that has begun, which makes outputs of the sums: its launch's grid. */
enum { CHAIN_GATHER_BLOCK = 128 };
struct lang_expr *chain_gather(struct cg *g, const struct chain_across *a,
                               const struct chain_plan *p);

/* ---- chain/losses.c -------------------------------------------------------------------------- */

/* The roundings on a term's way into a sum of which a thread adds every `by`th term, when each
 * `step` terms may rescale it; NULL: that is not known. */
struct lang_expr *chain_depth(struct cg *g, const struct chain_form *f, int64_t by, int64_t step);
/* What sums by tensor cores lose, by the plan. */
void chain_tell_losses(struct cg *g, const struct chain_tensor *t, const struct chain_plan *p);

/* ---- chain/cost.c ---------------------------------------------------------------------------- */

/* Nanoseconds that a plan takes by wgmma, or by mma.sync; 0: not all sizes are known. */
double chain_cost_wgmma(const struct ptx_target *target, const struct chain_tensor *t,
                        const struct chain_plan *p);
double chain_cost_mma(const struct ptx_target *target, const struct chain_tensor *t,
                      const struct chain_plan *p);
/* Nanoseconds of a launch beside them, which looks for what is rarely there. */
double chain_cost_launch(void);

/* ---- chain/choose.c -------------------------------------------------------------------------- */

/* The sizes for which wgmma by plan p is faster than mma.sync by the other: NULL: all. */
struct lang_expr *chain_worth_wgmma(struct cg *g, const struct chain_tensor *t,
                                    const struct chain_plan *p, const struct chain_plan *other);

/* ---- chain/candidates.c ---------------------------------------------------------------------- */

/* Has the plan a tile, with so many rows if the schedule says them, that can be? False after an
 * error. */
bool chain_check_tile(struct cg *g, const struct chain_tensor *t, const struct chain_plan *p,
                      uint32_t rows);
/* Does the schedule say tiles that wgmma can have? False after an error. */
bool chain_check_wgmma_tile(struct cg *g, const struct chain_tensor *t,
                            const struct chain_options *want);
/* What only wgmma heeds, of what the schedule says; NULL: nothing. has_stages: stages are heeded
 * without it. */
const char *chain_word_of_wgmma(const struct chain_options *want, bool has_stages);
strategy_candidates chain_candidates;

#endif
