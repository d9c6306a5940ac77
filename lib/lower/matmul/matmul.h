/* Contractions: stages whose outputs are pointwise in sums of products of two operands. Private to
 * lib/lower.
 *
 *     h[b, i, j] = sum[k](A(b, i, k) * B(b, k, j))      products: one or several, over the same b,
 *                                                       i, j and k
 *     y[b, i, j] = f(h..., b, i, j)                     outputs: the epilogue
 *
 * A and B are any expressions that are pointwise in their axes (the prologue). j is the last axis
 * of every output, so that results that lie side by side have neighbouring j; i is the last of the
 * other axes that A alone moves along, or missing (a product of a vector with a matrix: m = 1); all
 * others are batch axes, along which either operand may stand still. Any index order of the buffers
 * will do: an operand's `along_k` says along which of its axes its elements lie side by side.
 *
 * Equations are normalised first (matmul/form.c): intermediates expanded, neighbouring axes that
 * nothing tells apart merged, and one symbol each for b.., i, j and k in all of them, so that
 * binding those few is all that evaluating any part takes.
 *
 *   matmul/expand.c the equations, normalised
 *   matmul/fold.c   several ranges and axes as one: convolutions
 *   matmul/exact.c  in which types a value is exact
 *   matmul/factor.c the factors of their terms
 *   matmul/term.c   terms that are no products
 *   matmul/form.c   what fits, and what the operands are
 *   matmul/gather.c those that lie in memory, but are no matrices; boxes.c: and are copied as boxes
 *   matmul/turn.c   and what is better brought into another order first; turn_worth.c: when it is
 *   matmul/parts.c  f32 in parts of f16, which a launch in front makes
 *   matmul.c        the strategy: variants, their conditions, --explain
 *   matmul/plan.c   variants for the sizes that the launch brings, and what a schedule says
 *   matmul/choose.c sizes of tiles, the number of stages and splits; matmul/rows.c: of few rows
 *   matmul/cost.c   the cost model; matmul/choose_wgmma.c, matmul/cost_wgmma.c: the same of wgmma
 *   matmul/tile.c   where a block is; an operand's elements in registers
 *   matmul/pairs.c  and two in each register
 *   simt/simt.c     products by fma of scalars (simt/simt.h); bring.c: their tiles to shared
 *                   memory; thin.c: few rows, as fast as B can be read
 *   mma/mma.c       products by mma.sync (mma/mma.h); copy.c: their tiles to shared memory; frag.c:
 *                   from there to the instructions; sums.c: from there to the epilogue; as_f16.c:
 *                   tf32 as f16; parts.c: f32 in parts; range.c: whose bits
 *                   these lose
 *   wgmma/wgmma.c   products by wgmma (wgmma/wgmma.h); fits.c: when; load.c: their tiles to shared
 *                   memory, by way of a ring (ring.h); make.c: what is computed there; convert.c:
 *                   f32 there; held.c: and in registers; sum.c: the instructions; share.c: blocks
 *                   that share a tile; out.c and store.c: the epilogue; epilogue.c and columns.c:
 *                   what it reads beside the sums
 *   matmul/split.c  blocks that share a tile along k; mend.c: sums that parts lose bits of
 *   matmul/store.c  the epilogue; _prefetch.c: what it will read
 */
#ifndef KAIO_LOWER_MATMUL_H
#define KAIO_LOWER_MATMUL_H

#include "lower/cg/cg.h"
#include "lower/map/map.h"

enum {
    MATMUL_BATCH = 6,    /* axes */
    MATMUL_OPERANDS = 8, /* different ones, both sides together */
    MATMUL_PRODUCTS = 4,
    MATMUL_OUTS = 8,
};

enum matmul_side { MATMUL_A, MATMUL_B };

/* ---- matmul/expand.c ------------------------------------------------------------------------- */

enum { MATMUL_SUMS = 4 };
struct matmul_normal {
    struct lower_stage stage;
    uint32_t naxis;
    struct lang_symbol *axis[VARIANT_RANK]; /* of all outputs */
    uint32_t nsum;
    struct lang_symbol *sum[MATMUL_SUMS]; /* of all sums */
    bool folded; /* a sum over several ranges was made one over their product */
};
/* Outputs of one shape with sums over one range each, if that is what they are. merges:
 * neighbouring axes that nothing tells apart become one. */
bool matmul_normalise(struct cg *g, const struct lower_stage *s, bool merges,
                      struct matmul_normal *n, struct buf *why);
/* Gives all equations the same symbols again, which merged axes have of their own. */
void matmul_share_axes(struct cg *g, struct matmul_normal *n);
/* e, or a cast of it to t. */
struct lang_expr *matmul_cast(struct cg *g, struct lang_expr *e, enum dtype t);

/* ---- matmul/fold.c --------------------------------------------------------------------------- */

/* Makes sums over several ranges sums over one, as far as may be. */
void matmul_fold_sums(struct cg *g, struct matmul_normal *n);
/* Makes neighbouring axes that the left operand alone moves along one, and those before the last
 * that the right one alone does. left, right: on which axes each depends. False: there are none. */
bool matmul_fold_axes(struct cg *g, struct matmul_normal *n, uint32_t left, uint32_t right);
/* Images of which each is the last axis of results, with rows in between: y[b, f, p]. Pixels of all
 * images are the columns of one product, though results that lie side by side are one's alone. */
struct matmul_images {
    uint32_t axis;                            /* its number; */
    struct lang_symbol *image, *pixel, *both; /* image NULL: there are none */
};
/* Finds them where tiles of one image's pixels would be mostly empty, and makes `both` the last of
 * the axes. False: there are none. */
bool matmul_join_images(struct cg *g, struct matmul_normal *n, uint32_t left, uint32_t right,
                        struct matmul_images *to);
/* e, with quotients and rests of `both` for images and pixels. */
struct lang_expr *matmul_of_images(struct cg *g, const struct matmul_images *m,
                                   struct lang_expr *e);

/* ---- matmul/exact.c -------------------------------------------------------------------------- */

/* One bit for each type, and this one for f32 with the 10 bits of mantissa that tf32 has. */
enum { MATMUL_EXACT_TF32 = DT_COUNT };
#define MATMUL_BIT(t) (1u << (t))
/* The types that have every value that e may take. */
uint32_t matmul_exact(const struct lang_expr *e);
/* e as a value of type t that has it exactly, without conversions there and back. */
struct lang_expr *matmul_as(struct cg *g, struct lang_expr *e, enum dtype t);

/* ---- matmul/factor.c ------------------------------------------------------------------------- */

/* Axes that something depends on: bit i for that of the outputs' axis i, this for the sum's. */
#define MATMUL_K (1u << VARIANT_RANK)
uint32_t matmul_mask(const struct matmul_normal *n, const struct lang_expr *e);

enum { MATMUL_FACTORS = 16 };
/* A sum is sum[k](e[MATMUL_A] * e[MATMUL_B]), negative or not, times or divided by what comes
 * after. */
struct matmul_terms {
    struct lang_expr *e[2];
    uint32_t mask[2];
    bool negative;
    uint32_t nafter;
    struct lang_expr *after[MATMUL_FACTORS];
    bool divides[MATMUL_FACTORS];
};
/* False after saying why the sum's terms are no such product. */
bool matmul_split_terms(struct cg *g, const struct matmul_normal *n, const struct lang_expr *sum,
                        struct matmul_terms *t, struct buf *why);
struct lang_expr *matmul_binary(struct cg *g, enum lang_op op, struct lang_expr *x,
                                struct lang_expr *y);

/* ---- matmul/term.c --------------------------------------------------------------------------- */

enum { MATMUL_PARTS = 4 };
/* The term that is added up, or compared, for each pair of elements of both sides. It is an
 * expression of variables, one for each part that depends on one side alone. */
struct matmul_parts {
    struct lang_expr *term;
    uint32_t n;
    struct lang_symbol *var[MATMUL_PARTS];
    struct lang_expr *e[MATMUL_PARTS];
    uint32_t mask[MATMUL_PARTS];
    enum matmul_side side[MATMUL_PARTS];
    bool vanishes; /* it is 0 where all are 0, and added up */
};
/* False where the reduction's terms can't be taken apart so. */
bool matmul_find_parts(struct cg *g, const struct matmul_normal *n, const struct lang_expr *reduce,
                       struct matmul_parts *p);

/* ---- matmul/form.c: what is computed --------------------------------------------------------- */

/* The type that multiplies a product's factors. Sums are f32; those of integers s32, those of f64
 * f64. */
enum matmul_type {
    MATMUL_F16,
    MATMUL_BF16,
    MATMUL_TF32, /* f32 operands whose values tf32 has: calls of tf32(), tf32_rn() and tf32_rz(), or
                    bf16 with f16 */
    MATMUL_F32,
    MATMUL_F64,
    MATMUL_INT8, /* i8 or u8 each, by the operand's .type */
    MATMUL_FP8,  /* e4m3 or e5m2 each: exact as f16 too */
    MATMUL_I32,  /* where the terms are no products */
};

/* How an element is rounded, on its way or when the fragments are made. */
enum matmul_cut {
    MATMUL_WHOLE, /* it has tf32's bits alone */
    MATMUL_CUT,   /* tf32_rz(), as tensor cores do by themselves */
    MATMUL_AWAY,  /* tf32() */
    MATMUL_EVEN,  /* tf32_rn(), as tensor maps can */
};

/* A subscript of what is read: the sum of what follows from the operand's row or column and the
 * batches, and of what follows from k. NULL: 0. checked: the sum may be outside, where the element
 * is 0. */
struct matmul_part {
    struct lang_expr *at, *k;
    bool checked;
};
/* An element of a buffer, found by such subscripts. */
struct matmul_gather {
    const struct lang_expr *e; /* the read */
    uint32_t n;
    struct matmul_part sub[VARIANT_RANK];
    enum matmul_cut cut; /* as of a plain one */
    /* So many neighbours along the operand's last axis lie side by side, from each multiple of it
     * on; NULL: none do. */
    const struct lang_expr *run;
    struct lang_expr *when; /* subscripts and their parts fit 30 bits */
    /* How copies of boxes bring it (matmul/boxes.c); or why they don't. */
    const struct matmul_boxes *boxes;
    const char *no_boxes;
};
/* What e is, if it is that: an operand along its rows or columns (k: along_k). NULL: it is not. */
const struct matmul_gather *matmul_find_gather(struct cg *g, const struct matmul_normal *n,
                                               const struct lang_expr *e,
                                               const struct lang_symbol *along, bool along_k);
/* ---- matmul/boxes.c -------------------------------------------------------------------------- */

enum { MATMUL_BOX_SPAN = 128 }; /* bytes of a box's row */
/* Boxes of rows of a gathered operand: of so many neighbouring indices along its other axis. */
struct matmul_boxes {
    bool along_k;     /* the operand's */
    int64_t channels; /* that lie side by side; 0: all of the last dimension */
    /* Of windows of pixels: by dimension of pixels, the last one first, the corners and steps of
     * the tensor map, what is added to the part of the subscript that rows say, and to the part
     * that elements of a row say, which is the offset. */
    bool im2col;
    int64_t pixels; /* of an image, where images are a batch's; 0: rows count them, too */
    int32_t lower[CONTRACT_MAP_SPACE], upper[CONTRACT_MAP_SPACE];
    uint32_t step[CONTRACT_MAP_SPACE];
    int64_t more[CONTRACT_MAP_SPACE], far[CONTRACT_MAP_SPACE];
    /* Else: the subscript along which rows lie, and in how many of them from each multiple on;
     * 0: all. */
    uint32_t row;
    int64_t rows;
};
/* Sets p->boxes or p->no_boxes. row: the index whose neighbours are rows of a box, in_row: the one
 * whose neighbours lie side by side. */
void matmul_find_boxes(struct cg *g, struct matmul_gather *p, const struct lang_symbol *row,
                       const struct lang_symbol *in_row, bool along_k);
/* Can a box have so many rows, from each multiple of it on? */
bool matmul_boxes_fit(const struct matmul_boxes *b, uint32_t rows);
void matmul_boxes_require(struct cg *g, const struct matmul_gather *p, struct variant_condition *c);

/* Requires what it takes to move `align` neighbours at once. */
void matmul_gather_require(struct cg *g, const struct matmul_gather *p, uint32_t align,
                           struct variant_condition *c);

/* One factor of a product, as an equation of its own: operand[b.., i, k] = e for A and operand[b..,
 * k, j] = e for B when it lies along its last axis, else with the last two swapped, so that vectors
 * of it run along its last index. Where there is no i, A is operand[b.., k]. */
struct matmul_operand {
    enum matmul_side side;
    const struct lang_equation *eq; /* of a synthetic symbol with those dimensions */
    enum dtype type; /* what the product takes it as: f16, bf16, f32, f64, i8, u8, e4m3, e5m2 */
    bool along_k;    /* neighbours in memory have neighbouring k; else neighbouring i (A), j (B) */
    /* An element of a buffer as it is, each subscript i, j or k, that runs over just that
     * dimension, or made of batch axes: it may be copied without passing registers. NULL: it is
     * computed. */
    const struct lang_expr *plain;
    enum matmul_cut cut;                /* of a plain one of TF32 */
    const struct matmul_gather *gather; /* it is found in a buffer, as it is; NULL: it is not */
    /* The buffer whose elements along the last axis weigh most; what vectors and copies are made
     * for. */
    const struct lang_symbol *main;
    unsigned bits;   /* of main's elements */
    unsigned weight; /* of the computation: about the instructions for an element; 0: plain */
};

/* How elements are rounded that are copied as they lie. */
static inline enum matmul_cut matmul_cut_of(const struct matmul_operand *o)
{
    return o->gather ? o->gather->cut : o->cut;
}

struct matmul_product {
    const struct lang_expr
        *e;        /* the E_REDUCE, in the normalised equations; equal ones are one product */
    uint32_t a, b; /* operands: of pairs the first of each side */
    const struct matmul_parts *pair; /* NULL: what is added up is the product of a and b */
    uint32_t part[MATMUL_PARTS];     /* its variables' operands */
};

/* Something that the results read outside of their sums of products. */
struct matmul_read {
    const struct lang_expr *e; /* an E_INDEX */
    bool is_memory;            /* no equation of the stage's own defines it */
};

struct matmul_form {
    const struct lower_stage *stage; /* normalised: every equation is over the same index symbols */
    uint32_t nbatch;
    struct lang_symbol *batch[MATMUL_BATCH]; /* the first nbatch of the axes that are not i and j,
                                                in the outputs' order */
    struct lang_symbol *i, *j, *k;           /* i NULL: m is 1; dims[0] of each is its extent */
    uint32_t axis_i;             /* its place among the outputs' axes; j's is the last */
    struct matmul_images images; /* j stands for two of the outputs' axes: not for the last alone */
    uint32_t noperand, nproduct;
    struct matmul_operand operand[MATMUL_OPERANDS];
    struct matmul_product product[MATMUL_PRODUCTS];
    bool computes; /* some operand, one that is not plain */
    bool slides;   /* the terms are a window that moves along with rows or columns */
    /* Some terms are no products, and fma's tiles alone compute them; what zeros behind the last
     * term would count for, so that tiles must be whole along k; and what blocks that share a tile
     * could not add up. */
    bool pairs, whole, compares;
    const char *no_product; /* why the first of them is none */
    unsigned pair_weight;   /* about the instructions for each pair of elements */
    enum matmul_type type;  /* of all products */
    enum dtype sum;         /* of the accumulators: f32, i32, f64 */
    unsigned weight;        /* of the epilogue, for an element */
    unsigned light;         /* the same where tensor cores make the sums */
    unsigned out_bits;      /* of the widest output's element */
    uint32_t nread;         /* in the order in which they are written down */
    const struct matmul_read *read;
};

bool matmul_same(const struct lang_expr *x, const struct lang_expr *y); /* the same tree */
/* Does the stage have the form? merges: neighbouring axes may become one. why: what it lacks, when
 * it does not. Generates nothing. */
bool matmul_analyse(struct cg *g, const struct lower_stage *s, bool merges, struct matmul_form *f,
                    struct buf *why);

/* ---- what a schedule says -------------------------------------------------------------------- */

enum matmul_by {
    MATMUL_BY_ANY,
    MATMUL_BY_NONE,
    MATMUL_BY_SYNC,
    MATMUL_BY_TF32, /* by its own instructions alone */
    MATMUL_BY_TF32X3,
    MATMUL_BY_F16X3,
    MATMUL_BY_FP8,
    MATMUL_BY_WGMMA
};

/* What copies windows. */
enum matmul_windows { MATMUL_WINDOWS_ANY, MATMUL_WINDOWS_TMA, MATMUL_WINDOWS_THREADS };

/* These stand for as many blocks as the device has multiprocessors, and as there are tiles. */
#define MATMUL_BLOCKS_ALL   UINT32_MAX
#define MATMUL_BLOCKS_TILES (UINT32_MAX - 1)

enum matmul_turning { MATMUL_TURN_CHOSEN, MATMUL_TURN, MATMUL_TURN_NOT };

/* 0: chosen. */
struct matmul_options {
    uint32_t mma;         /* enum matmul_by: what multiplies */
    uint32_t shape[3];    /* rows, columns and k of a block's tile */
    uint32_t warps[2];    /* of a block by rows and columns */
    uint32_t stages;      /* tiles of the operands in shared memory */
    uint32_t split;       /* blocks that share a tile along k */
    uint32_t group;       /* rows of tiles that are walked together */
    uint32_t clusters[2]; /* of wgmma: blocks of a cluster by rows and columns */
    /* of tensor cores: blocks of the launch, which take tiles by turns, or one of the numbers
     * above */
    uint32_t blocks;
    uint32_t pingpong; /* of wgmma: 1 where warpgroups take whole tiles by turns */
    uint32_t turn;     /* enum matmul_turning: of convolutions, whether channels become innermost */
    uint32_t windows;  /* of wgmma: enum matmul_windows */
    bool tiles;        /* matmul_plan() takes MATMUL_BLOCKS_TILES out of blocks */
};
strategy_analyse matmul_fit;
strategy_lower matmul_lower;
strategy_turn matmul_turn; /* matmul/turn_worth.c */
/* What matmul_fit() found. */
const struct matmul_form *matmul_form_of(const void *fit);

/* ---- matmul/turn.c --------------------------------------------------------------------------- */

/* What is made of factors in launches of their own. */
enum matmul_turns {
    MATMUL_TURN_CHANNELS,    /* the range that is one subscript alone comes to lie side by side; */
    MATMUL_TURN_ROWS,        /* where it is short, with a row of each window */
    MATMUL_TURN_ROUND_OTHER, /* nothing turns: what is no window is rounded to tf32, */
    MATMUL_TURN_ROUND,       /* or both are */
    MATMUL_TURNS,
    MATMUL_STORE_COMPUTED, /* factors of f32 that are computed, instead of windows */
};
/* Finds temps for the factors of the stage's sums; reads of them stand for the sums from then on.
 * Returns whether there are rows of windows. */
bool matmul_turn_sums(struct cg *g, const struct lower_stage *s, enum matmul_turns how,
                      struct lower_turned *out);

/* ---- matmul/plan.c: how ---------------------------------------------------------------------- */

enum matmul_how { MATMUL_SIMT, MATMUL_MMA, MATMUL_THIN, MATMUL_WGMMA };

struct matmul_plan {
    enum matmul_how how;
    enum matmul_type
        type;       /* in which the instructions multiply: FP8 may go as F16, F32 as TF32 (parts) */
    uint32_t parts; /* tf32x3, f16x3: 2 parts of each operand, three products; else 1 */
    bool coarse;    /* mma.sync, of parts: one of the products with rests is of bf16 */
    bool as_f16;    /* mma.sync, of TF32: as f16, as far as elements allow (mma/as_f16.c) */
    /* a block's tile, elements; thin: all rows, the block's columns, and the elements along k of a
     * step */
    uint32_t bm, bn, bk;
    /* a warp's (mma), a thread's (simt, thin: all rows and its columns), a consuming warpgroup's
     * (wgmma) */
    uint32_t wm, wn;
    uint32_t threads;
    uint32_t
        stages; /* tiles of the operands in shared memory; thin: steps that are begun together */
    uint32_t split;           /* blocks that share a tile along k: at most; 1: none do */
    struct lang_expr *splits; /* their number; NULL: 1 */
    struct lang_expr *depth;  /* additions on a term's way, but those of mma.sync (lower_depth()) */
    uint32_t group;           /* rows of tiles that are walked together, for the L2 cache */
    /* wgmma, mma: blocks that the launch has at most, each of which takes tiles by turns;
     * MATMUL_BLOCKS_ALL: the device's multiprocessors; 0: one for each tile */
    uint32_t blocks;
    /* wgmma: blocks of a cluster along the rows (they share B) and along the columns (they share
     * A), 0: 1; and whether warpgroups take whole tiles by turns instead of parts of one. */
    uint32_t cluster[2];
    bool pingpong;
    enum matmul_windows windows; /* wgmma: what copies windows; ANY: TMA if it can */
    uint32_t producers;          /* wgmma: warpgroups that bring operands; 0: 1 */
    bool patched; /* wgmma: results don't go straight from registers (matmul_wgmma_direct()) */
    /* wgmma: a tile's columns are the rows of its instructions, which compute results turned:
     * warpgroups share columns */
    bool turned;
    bool promotes; /* wgmma, of FP8 and of parts: sums of a stage's products alone, which are added
                      to others as f32 is */
    /* For each operand, how many elements along its last axis one access may take: a power of two.
     * The variant's condition has what that needs of the dimensions. */
    uint32_t align[MATMUL_OPERANDS];
    uint32_t store;         /* the same of the outputs */
    struct lang_expr *when; /* what else the variant is for (m <= 16); NULL: any size */
    const char *entry;      /* part of its name */
    double about;           /* nanoseconds, by the model; 0: the sizes are not known */
};

/* n / by, rounded up. */
static inline uint32_t matmul_divide_up(uint32_t n, uint32_t by)
{
    return (n + by - 1) / by;
}

/* Is f32 multiplied in parts of f16, which a launch in front makes (matmul/parts.c)? */
static inline bool matmul_in_f16(const struct matmul_plan *p)
{
    return p->parts > 1 && p->type == MATMUL_F16;
}

/* The terms that tensor cores add up from zero, to be added to others as f32 is; 0: all of them. */
static inline uint32_t matmul_together(const struct matmul_plan *p)
{
    enum { PARTS = 16 };
    if (p->promotes)
        return p->bk;
    return p->how == MATMUL_MMA && p->parts > 1 ? p->bk < PARTS ? p->bk : PARTS : 0;
}

/* The terms of k that each of so many blocks takes, but for the last ones: whole tiles. */
struct lang_expr *matmul_share(struct arena *a, struct lang_expr *k, uint32_t bk,
                               struct lang_expr *splits);

/* The smallest tile that fma has, and the fewest stages. */
struct matmul_plan matmul_least(void);

/* The setting that plans are made for, beside the form and the schedule; .a keeps their texts. */
struct matmul_setting {
    struct arena *a;
    const struct ptx_target *target;
    bool fast, strict; /* math: */
};
/* Reasons that the plans are as they are, for reports. */
struct matmul_report {
    const char *not_wgmma; /* why it is not taken, where the target has it; or NULL */
    /* Where there is no plan: why, and the key of the schedule that is in the way. */
    const char *refusal, *key;
};

enum { MATMUL_VARIANTS = 6 };
/* The variants in the order in which the launch tries them. What none is for, as extents above
 * MAP_MOST_SMALL, is left to an entry that computes elements one by one. False with a refusal in
 * the report, which is empty before. */
bool matmul_plan(const struct matmul_setting *setting, const struct matmul_form *f,
                 const struct matmul_options *want, struct matmul_plan *v, uint32_t *n,
                 struct matmul_report *report);

/* ---- matmul/parts.c -------------------------------------------------------------------------- */

/* Elements of f32 that have one scale, 2^s: so many rows (or columns) by so many terms. */
enum { MATMUL_SCALED_SIDE = 128, MATMUL_SCALED_TERMS = 64 };
/* A word for each: the bits of 2^-s, an f32, and these. */
enum {
    /* so many elements' parts lack what is below 2^-36 of 2^-s, up to as many as there are terms */
    MATMUL_SCALED_SMALL = 0x7f,
    MATMUL_SCALED_WILD = 0x80, /* some are infinite or NaN */
    MATMUL_SCALED_BITS = 0xff
};
/* An operand in two parts of f16, x = 2^-s (first + 2^-11 rest), which lie as it does. */
struct matmul_parted {
    const struct lang_symbol *first, *rest, *scale; /* temps */
};
/* Which subscript of a plain operand's buffer is along its last axis' other one: k, or else its
 * row or column. */
uint32_t matmul_other_subscript(const struct matmul_form *f, uint32_t operand);
/* The nanoseconds that it takes to make the parts of all operands, of known sizes. */
double matmul_parts_about(const struct matmul_form *f);
/* An entry and its launch that make the parts of all operands. to: by operand. False after an
 * error. */
bool matmul_lower_parts(struct cg *g, const struct matmul_form *f, struct matmul_parted *to);

/* ---- matmul/tile.c: what every way of multiplying needs -------------------------------------- */

/* Generating one entry. */
struct matmul {
    struct cg *g;
    const struct matmul_form *f;
    const struct matmul_plan *p;
    const struct matmul_parted *parted; /* by operand, where it goes in parts of f16 */
    struct map_reader reader;           /* of prologues and the epilogue */
    struct cg_val m, n, k;              /* extents: i64, narrow */
    /* known multiples of bm, bn (of a cluster's) and bk */
    bool whole_rows, whole_cols, whole_k;
    struct cg_val batch[MATMUL_BATCH]; /* subscripts, i64 */
    struct cg_val row, col;            /* of the tile's first element, i64 narrow */
    struct cg_val k_from, k_to;        /* this block's share, multiples of bk but for the end */
    struct cg_val tile, split; /* u32: the tile's number among those of all batches, the block's
                                  among those that share it */
    struct cg_val splits;      /* u32: how many do */
    struct cg_val thread, warp, lane; /* u32, of the block */
    /* So many come to matmul_store(), numbered by .thread: all of the block's, but where a warp
     * stores what it has alone. */
    uint32_t workers;
    int32_t shared;              /* u32: address of the dynamic shared memory */
    const struct cg_val *loaded; /* u32: words that matmul_store_begin() loaded; NULL: it did not */
};

/* Begins the block, of g, f and p: which tile, which share of k. Tiles are numbered in ctaid.x,
 * groups of p->group rows of them column by column: (batch * tiles + tile) * splits + split. The
 * extents must be as matmul_sizes() says; the reader's needs and short_rows belong to the variant's
 * condition too. */
void matmul_begin(struct matmul *m);
/* The two parts of it, for blocks that take several: what is the same for all tiles, and tile
 * number n (a u32, of matmul_items()). Where blocks are in clusters n counts those of the cluster's
 * tiles, and the tile is the first of its blocks'. */
void matmul_prepare(struct matmul *m);
void matmul_find(struct matmul *m, struct cg_val n);
/* How many there are: as the launch computes it, and (v not NULL) its value, a u32. */
struct lang_expr *matmul_items(struct matmul *m, struct cg_val *v);
/* No extent is above MAP_MOST_SMALL. */
void matmul_sizes(struct cg *g, const struct matmul_form *f, struct variant_condition *c);
/* The launch's number of blocks, as a text. */
struct lang_expr *matmul_grid(struct matmul *m);
/* `lanes` elements of an operand along its last axis, the first at (row of A or column of B, k):
 * computed, in the operand's type, zero where they are outside of the extents and where `inside` (a
 * predicate; -1: none) does not hold. lanes divides what p->align gives or is 1. */
void matmul_fetch(struct matmul *m, uint32_t operand, struct cg_val at, struct cg_val k,
                  uint32_t lanes, int32_t inside, struct cg_val *v);
/* Does matmul_fetch() with words of two elements, for an operand of f16 or bf16 that instructions
 * on pairs can make (matmul/pairs.c); false: they can't, or not so many. */
bool matmul_fetch_pairs(struct matmul *m, uint32_t operand, struct cg_val at, struct cg_val k,
                        uint32_t lanes, int32_t inside, struct ptx_operand *word);
/* Is that possible at all? */
bool matmul_has_pairs(const struct matmul_operand *o);
/* mixed.c: warns of products of f32 and a narrower type that a cast would let tensor cores do. */
void matmul_advise_cast(struct cg *g, const struct matmul_form *f,
                        const struct matmul_options *want);
/* Begins both: moves the reader there. Returns whether the first element exists. */
struct cg_val matmul_stand(struct matmul *m, uint32_t operand, struct cg_val at, struct cg_val k,
                           uint32_t lanes, int32_t inside);
/* The subscripts of a plain operand's element in its buffer, and its place. */
void matmul_subscripts(struct matmul *m, uint32_t operand, struct cg_val at, struct cg_val k,
                       struct cg_val *sub);
struct cg_place_of matmul_place(struct matmul *m, uint32_t operand, struct cg_val at,
                                struct cg_val k);
/* The subscripts of the results at a row (of no matter where there is no i) and a column. */
void matmul_result_at(struct matmul *m, struct cg_val row, struct cg_val col, struct cg_val *sub);
/* From there to the next along k, in elements: i64. */
struct cg_val matmul_step(struct matmul *m, uint32_t operand);

/* ---- matmul/gather.c ------------------------------------------------------------------------- */

/* What follows from a row, a column or a k: bytes to the element (of rows and columns: from 0 on,
 * i64), the parts of the subscripts that are looked at (i32), and whether it exists, where that is
 * not said by these. */
struct matmul_found {
    struct cg_val offset, exists;
    uint32_t n;
    struct cg_val sub[VARIANT_RANK];
};
/* at: of A's rows or B's columns; k: u32. exists: a constant or a predicate. */
struct matmul_found matmul_gather_at(struct matmul *m, const struct matmul_gather *p,
                                     struct cg_val at, struct cg_val exists);
struct matmul_found matmul_gather_k(struct matmul *m, const struct matmul_gather *p,
                                    struct cg_val k, struct cg_val exists);
/* The address of the element of both, and whether there is one: else it is 0. */
int32_t matmul_gather_from(struct matmul *m, const struct matmul_gather *p,
                           const struct matmul_found *at, const struct matmul_found *k,
                           struct cg_val *inside);

/* The part of subscript i that follows from a row or column, or from k, of this value. */
struct cg_val matmul_gather_part(struct matmul *m, const struct matmul_gather *p, uint32_t i,
                                 bool of_k, struct cg_val v);

/* Where a box begins: coordinates and offsets, innermost first. */
struct matmul_box {
    uint32_t rank, noffset;
    struct ptx_operand at[CONTRACT_MAP_RANK], offset[CONTRACT_MAP_SPACE];
};
/* The register of the address of the tensor map, for boxes of so many rows of so many elements. */
int32_t matmul_boxes_map(struct matmul *m, const struct matmul_gather *p, uint32_t rows,
                         uint32_t elements);
/* The box of the element (at, k) and those behind it: at of A's rows or B's columns; u32. */
void matmul_boxes_at(struct matmul *m, const struct matmul_gather *p, struct cg_val at,
                     struct cg_val k, struct matmul_box *box);

/* Sums of the block's tile in shared memory: of product q the element (r, c) of the patch is at
 * base + ((q * rows + r) * pitch + c) * bytes of f->sum. */
struct matmul_patch {
    int32_t base;                   /* u32: shared address, of 16-byte alignment */
    struct cg_val first;            /* u32: the patch's first row in the tile */
    const struct cg_val *first_col; /* u32; NULL: 0 */
    uint32_t rows, cols;            /* cols: bn, but of patches that begin at any first_col */
    uint32_t pitch;                 /* elements; rows begin on 16 bytes */
};

/* ---- matmul/store.c -------------------------------------------------------------------------- */

/* Loads what a patch's outputs are made of beside the sums, if registers have room for it. It does
 * so where the tile's outputs are one patch, or a warp's several, and before the sums are written,
 * while threads wait for one another. */
void matmul_store_begin(struct matmul *m, const struct matmul_patch *patch);
/* Computes and stores the outputs of a patch. All workers come, behind a barrier after the sums
 * were written; what the patch holds may be overwritten behind another. Where blocks share the tile
 * it begins with matmul_split_join(). */
void matmul_store(struct matmul *m, const struct matmul_patch *patch);

/* ---- matmul/prefetch.c ----------------------------------------------------------------------- */

enum { MATMUL_OWN = 4 };
/* Tensors of the results' shape of which the epilogue reads the elements at their place. */
struct matmul_own {
    const struct lang_symbol *t[MATMUL_OWN];
    uint32_t n;
};
struct matmul_own matmul_own(const struct matmul_form *f);
/* Is that such a read? */
bool matmul_is_own(const struct matmul *m, const struct lang_expr *e);
/* Asks for what it reads of them in this tile. */
void matmul_prefetch(struct matmul *m);

/* ---- matmul/split.c -------------------------------------------------------------------------- */

/* Joins the shares of a tile, for p->split > 1. The block that comes last with this patch goes on
 * with all blocks' sums in it, added in the order of their shares; the others jump to `skip`. All
 * threads call it, and leave behind a barrier. */
void matmul_split_join(struct matmul *m, const struct matmul_patch *patch, uint32_t skip);

/* ---- matmul/mend.c --------------------------------------------------------------------------- */

/* Sums of f32 in parts, of which a few are off where factors are too small or too large for parts.
 * words: of each product, in the lane's registers; limit: an f32; place: the subscripts of word w
 * (a u32) of product q. */
struct matmul_mend {
    int32_t *sum;
    uint32_t words;
    int32_t limit;
    bool together; /* by all of a warp's lanes, which take terms by turns: not in fma's order */
    void (*place)(void *of, uint32_t q, struct cg_val w, struct cg_val *row, struct cg_val *col);
    void *of;
};
/* K M share, an f32, where a factor is small (a predicate; -1: as if one were), or else 0. M is the
 * root of the largest sum of squares (its bits), and the largest f32 where that overflows or is
 * NaN. */
int32_t matmul_mend_limit(struct matmul *m, int32_t squares, float share, int32_t is_small);
/* Computes those sums by fma, over the block's share of k, that are below the limit, infinite or
 * NaN. */
void matmul_mend(struct matmul *m, const struct matmul_mend *d);

/* ---- the ways: between matmul_begin() and the end of the entry ------------------------------- */

/* Bytes of dynamic shared memory that the plan takes; 0: it does not fit the target, or its numbers
 * don't go together. */
uint32_t matmul_shared(const struct ptx_target *target, const struct matmul_form *f,
                       const struct matmul_plan *p);
uint32_t matmul_simt_shared(const struct ptx_target *target, const struct matmul_form *f,
                            const struct matmul_plan *p);
/* Is there an instruction, and do the numbers go together? why (or NULL): what is in the way. */
bool matmul_mma_fits(const struct ptx_target *target, const struct matmul_form *f,
                     const struct matmul_plan *p, struct buf *why);
uint32_t matmul_mma_shared(const struct ptx_target *target, const struct matmul_form *f,
                           const struct matmul_plan *p);
/* Has a multiprocessor registers for one block alone, into whose stages everything is copied as it
 * is? */
bool matmul_mma_fills(const struct ptx_target *target, const struct matmul_form *f,
                      const struct matmul_plan *p);
/* Are columns the rows of an instruction's 16? */
bool matmul_mma_turned(const struct matmul_form *f);
uint32_t matmul_thin_shared(const struct ptx_target *target, const struct matmul_form *f,
                            const struct matmul_plan *p);
/* Does wgmma fit? sm_90a alone has it, for operands that are computed or plain, in rows of whole 16
 * bytes. */
bool matmul_wgmma_fits(const struct ptx_target *target, const struct matmul_form *f,
                       const struct matmul_plan *p, struct buf *why);
uint32_t matmul_wgmma_shared(const struct ptx_target *target, const struct matmul_form *f,
                             const struct matmul_plan *p);
/* Do threads bring what is no matrix as it lies in memory, for a plan of one producer? */
bool matmul_wgmma_gathers(const struct matmul_form *f, const struct matmul_plan *p);
/* Do copies of boxes bring operand n as it lies: a matrix, or windows? */
bool matmul_wgmma_copies(const struct matmul_form *f, const struct matmul_plan *p, uint32_t n);
/* Do threads compute some operand? */
bool matmul_wgmma_computes(const struct matmul_form *f, const struct matmul_plan *p);
/* Do the results of a plan that fits go straight from registers, not through patches of shared
 * memory? */
bool matmul_wgmma_direct(const struct ptx_target *target, const struct matmul_form *f,
                         const struct matmul_plan *p);
/* And are they worked on there: by functions, or with a tensor that is brought beside the sums? */
bool matmul_wgmma_works(const struct ptx_target *target, const struct matmul_form *f,
                        const struct matmul_plan *p);
/* Requires what wgmma needs of the sizes beside that: tensor maps have no empty dimensions. */
void matmul_wgmma_require(struct cg *g, const struct matmul_form *f, const struct matmul_plan *p,
                          struct variant_condition *c);
void matmul_simt(struct matmul *m);
enum { SIMT_LEAST_TERMS = 8 }; /* of a tile */
void matmul_mma(struct matmul *m);
void matmul_thin(struct matmul *m);
/* Calls matmul_prepare() and matmul_find() itself, as matmul_mma() does where p->blocks is not
 * 0. */
void matmul_wgmma(struct matmul *m);

#endif
