/* What the files of the reduce strategy share.
 *
 * A stage's equations are all f(reductions, elements) over the same indices, the kept ones; every
 * reduction runs over the same further indices, the reduced ones. Each index is an axis. Axes that
 * every read and every output has side by side are walked as one: they make a loop.
 *
 *     y[a, c] = sum[n, h, w](x[n, a, c, h, w])      axes: a c | n h w       loops: (a c) | n, (h w)
 *
 * One loop, the lane loop, is that along which the heaviest read's elements are neighbours: a
 * thread takes `lanes` of them at a time, with one access of up to 16 bytes.
 */
#ifndef KAIO_LOWER_REDUCE_REDUCE_H
#define KAIO_LOWER_REDUCE_REDUCE_H

#include "lower/strategy.h"

enum {
    REDUCE_AXES = 16,
    REDUCE_RANK = 8,
    REDUCE_READS = 24,
    REDUCE_RESULTS = 24,
    REDUCE_LANES = 16,
    REDUCE_UNROLL = 16,
    REDUCE_WORDS = 16, /* registers of one read of one thread */
};

/* What a schedule says; 0: chosen. */
struct reduce_options {
    uint32_t block;  /* threads */
    uint32_t vector; /* elements of each access */
    uint32_t unroll; /* accesses in flight per buffer and thread */
    uint32_t split;  /* blocks that share a result */
    uint32_t tile;   /* threads across results that lie side by side */
};
strategy_analyse reduce_fit;
strategy_lower reduce_lower;

/* An extent or a count: as the launch computes it, and the number where it is known at emission. */
struct amount {
    struct lang_expr *e;
    bool is_known;
    int64_t n;
};

struct reduce_axis {
    struct lang_expr *low, *high; /* low NULL: 0 */
    bool is_reduced;
    bool is_value; /* used otherwise than as a subscript of its own dimension */
    bool in_body;  /* what is reduced depends on it */
    uint32_t loop;
};

struct reduce_loop {
    uint32_t naxis, axis[REDUCE_AXES]; /* the slowest first */
    bool is_reduced;
    bool is_narrow; /* fewer than 2^32 rounds */
    struct amount n;
};

/* An element named by axes alone, each within its dimension: always there, so that it may be read
 * ahead. */
struct reduce_read {
    const struct lang_symbol *sym;
    uint32_t axis[REDUCE_RANK];
    bool in_body; /* of a reduction; else of what is made of the results */
};

/* An output: which axis each of its indices is. along: it has an element for each that is reduced,
 * too. */
struct reduce_out {
    const struct lang_equation *eq;
    uint32_t axis[REDUCE_RANK];
    bool along;
};

/* What is reduced. level: how many reductions are between it and what is in memory; 0 but in tiles.
 * A sum of squared differences to the mean of the same terms,
 *     sum[i]((t[i] - m) * (t[i] - m)) with m = sum[i](t[i]) / n,
 * has term and mean: it is done in the same sweep as the mean, in f64, from differences to any one
 * term k:
 *     S1 = sum(t - k), S2 = sum((t - k)^2), and the result is S2 - S1 * (S1 / n).
 * k being one of the terms, n (m - k)^2 is at most n times the result: of the 53 bits no more than
 * log2(n) cancel, and what is exact in f32 by the equations is exact here. */
struct reduce_result {
    const struct lang_expr *e; /* the E_REDUCE */
    const struct lang_expr *term, *mean;
    uint32_t level;
};

/* What an index stands for, for as long as the stage is generated. */
struct reduce_index {
    const struct lang_symbol *sym;
    uint32_t axis;
};

/* What analysis finds (reduce/form.c). */
struct reduce_form {
    const struct lower_stage *stage;
    uint32_t naxis, nkept; /* kept axes first: axis i is index i of every equation but in tiles */
    /* Outputs may have an element for each that is reduced, and reductions be of others: for tiles
     * that are held (reduce/tile.c). */
    bool is_tile;
    struct reduce_out *out; /* of each equation of the stage */
    uint32_t nall;          /* indices of the output that has the most */
    uint32_t nlevel;        /* of tiles */
    struct reduce_axis axis[REDUCE_AXES];
    uint32_t nloop, nkeptloop; /* kept loops first; within each the slowest first */
    struct reduce_loop loop[REDUCE_AXES];
    uint32_t nread;
    struct reduce_read read[REDUCE_READS];
    uint32_t nresult;
    struct reduce_result result[REDUCE_RESULTS];
    VEC(struct reduce_index) index;
    VEC(const struct lang_expr *) scalar; /* read in bodies: of rank 0 */
    uint32_t lane;                        /* the loop of the lanes */
    bool has_contiguous;                  /* some read moves to the next element along it */
    unsigned widest;                      /* bits of an element of such a read */
    unsigned bits;   /* of the elements of all reads in bodies that move with the reduction */
    bool reads_else; /* bodies also read elements that are not in .read */
    unsigned weight; /* of the bodies: about the instructions for one element */
};

/* is_tile: what fits as a tile that is held. */
bool reduce_analyse(struct cg *g, const struct lower_stage *s, bool is_tile, struct reduce_form *f,
                    struct buf *why);
/* reduce/loops.c. The read that moves the most bytes, as far as one can say without the sizes;
 * NULL: none moves. */
const struct reduce_read *reduce_heaviest(const struct reduce_form *f);
/* 1 + which of its subscripts is the axis; 0: none. */
unsigned reduce_position(const struct reduce_read *r, uint32_t axis);
bool reduce_moves(const struct reduce_form *f, const struct reduce_read *r); /* with the terms */
void reduce_find_loops(struct cg *g, struct reduce_form *f, const struct reduce_read *heavy);
void reduce_find_lanes(struct reduce_form *f, const struct reduce_read *heavy);
/* The position of a read's or an output's dimension that ends the loop of its axis. */
bool reduce_ends_in_lanes(const struct reduce_form *f, uint32_t n, const uint32_t *axis);
struct amount reduce_amount(struct cg *g, struct lang_expr *e);
struct amount reduce_known(struct cg *g, int64_t n);

/* How one entry does it (reduce/plan.c). A block is ty rows of tx threads. Along the lane loop,
 * where that is kept (columns), a block's tile is tx * lanes results wide and the rows share the
 * work; else all threads share it. */
struct reduce_plan {
    bool is_column;
    bool is_spread; /* and all threads of all blocks have results of their own: ty is 1 */
    uint32_t block, lanes, tx, ty;
    uint32_t unroll;      /* accesses in flight; of tiles: terms of each thread, all of them held */
    uint32_t width;       /* results of a thread: lanes of columns, else 1 */
    uint32_t slots;       /* accumulators for each result of a thread while it reads */
    struct amount outer;  /* kept loops but the lane loop: blocks for each */
    struct amount tiles;  /* along the lane loop, where it is kept; else 1 */
    struct amount total;  /* groups, of all kept loops together */
    struct amount groups; /* lanes vectors along the lane loop */
    struct amount rows;   /* vectors to reduce, for each result or tile */
    struct amount split;  /* blocks that share them */
    struct amount blocks; /* in all */
    struct amount sharing; /* blocks, or at most as many, where several share a result */
    struct amount depth;   /* roundings between a term of a sum and the sum */
    bool has_tail;         /* the last elements are fewer than the lanes */
    /* Of tiles whose sizes the launch knows: a block is of so many rows of so many threads, for
     * several tiles one after the other; block is the most, and tx the least where there are many
     * terms. */
    bool is_open;
    struct amount across, down, several;
    struct lang_expr *when; /* NULL: always */
    const char *entry;
};

enum { REDUCE_VARIANTS = 6, REDUCE_POSITIONS = 64 };
/* Is there room for a tile? */
bool reduce_plan_tile(struct cg *g, const struct reduce_form *f, const struct reduce_options *want,
                      struct reduce_plan *v, uint32_t *n, struct buf *why);
/* reduce/open.c. The same where the launch knows the sizes. holds: for which of them it is. */
bool reduce_plan_open(struct cg *g, const struct reduce_form *f, struct reduce_plan *v, uint32_t *n,
                      struct lang_expr **holds, struct buf *why);
/* Registers for what a thread holds of one term; elements of an access. */
uint32_t reduce_held_registers(const struct reduce_form *f, uint32_t lanes);
uint32_t reduce_choose_lanes(const struct reduce_form *f, const struct reduce_options *want);
/* The variants in the order in which they are tried. False after an error. */
bool reduce_plan(struct cg *g, const struct reduce_form *f, const struct reduce_options *want,
                 struct reduce_plan *v, uint32_t *n);

/* A value in the making, or several threads' brought together. where: of argmax and argmin, the
 * index, u32 or i64; of squared differences S1, v being S2. */
struct reduce_value {
    struct cg_val v, where;
};

struct reduce_lanes {
    struct cg_val v[REDUCE_LANES];
};

/* What was loaded of one read: elements, or words that hold several. */
struct reduce_loaded {
    struct cg_val v[REDUCE_WORDS];
    uint32_t n;
    bool is_words, is_byte; /* is_byte: a bool as its byte */
};

struct reduce {
    struct cg *g;
    const struct reduce_form *f;
    const struct reduce_plan *p;
    struct cg_val n[REDUCE_AXES];    /* by loop: rounds */
    struct cg_val at[REDUCE_AXES];   /* by loop: now; of the lane loop the first lane's */
    struct cg_val axis[REDUCE_AXES]; /* by axis: of the lane that is generated */
    uint32_t lane;
    int64_t serial;               /* stands for the indices of a loop of several axes */
    struct reduce_lanes *element; /* by read: of the vector at hand */
    bool is_loaded[REDUCE_READS];
    int32_t slot[REDUCE_RESULTS][REDUCE_LANES], slot_where[REDUCE_RESULTS][REDUCE_LANES];
    int32_t one_term[REDUCE_RESULTS][REDUCE_LANES]; /* squared differences: k, an f64 */
    struct cg_val part, split, tile;
    struct cg_val group;  /* columns: the thread's vector of the lane loop */
    struct cg_val number; /* and what says whether there is one: below p->groups, or p->total */
    struct cg_val tx, ty;
    struct cg_val outer; /* the number of the block's result, or row of tiles */
    int32_t exists;      /* of open tiles, predicate: the thread's tile does; -1: for certain */
    struct ptx_var *shared;
    uint32_t level;    /* of tiles: of the results that are made now */
    uint32_t position; /* of tiles: of the terms that are at hand */
};

/* ---- reduce/place.c: where a block and a thread stand ---- */

bool reduce_is_one(struct amount a);
struct cg_val reduce_count(struct cg *g, struct amount a); /* of the launch, an i64 */
struct cg_val reduce_small_count(struct cg *g, struct amount a);
void reduce_take_place(struct reduce *r);
/* reduce/open.c: the same in an open tile. */
void reduce_take_open_place(struct reduce *r);
struct cg_val reduce_open_rows(struct reduce *r);   /* u32: of a tile */
struct cg_val reduce_open_across(struct reduce *r); /* threads of a row */
void reduce_take_indices(struct reduce *r);
/* Jumps where the thread's column is none. */
void reduce_skip_outside(struct reduce *r, uint32_t label);

/* ---- reduce/value.c: results and how they meet ---- */

enum dtype reduce_type(const struct reduce_result *q); /* of the accumulator: u32 for a bool */
bool reduce_is_arg(const struct lang_expr *e);
bool reduce_is_pair(const struct reduce_result *q); /* has a second value, .where */
enum dtype reduce_where_type(const struct reduce *r, const struct reduce_result *q);
struct reduce_value reduce_identity(struct reduce *r, const struct reduce_result *q);
/* Brings two parts of a result together, in either order. */
struct reduce_value reduce_meet(struct cg *g, const struct reduce_result *q, struct reduce_value x,
                                struct reduce_value y);
/* Takes one more element into the slot; elements come by ascending index. */
void reduce_take(struct reduce *r, uint32_t result, uint32_t slot);

/* Accumulators, at the identity; while elements are taken there are p->slots of each, a bool being
 * a predicate, */
void reduce_open_slots(struct reduce *r);
/* and from here on one for each of the thread's results. */
void reduce_settle_slots(struct reduce *r);
struct reduce_value reduce_get(const struct reduce *r, uint32_t result, uint32_t slot);
void reduce_set(struct reduce *r, uint32_t result, uint32_t slot, struct reduce_value x);

/* Folds all threads' slots into those of the threads of row 0; the others' mean nothing then. All
 * threads must come. In tiles it is the results of .level, and each thread has them. */
void reduce_block(struct reduce *r);

/* ---- reduce/sweep.c: going through positions with several accesses in flight ---- */

/* Positions start, start + step, ... below end, `unroll` at a time. For each batch first
 * advance(0), advance(1), ...: .at is the position, an i64, and with `is_first` the registers of
 * the state are of it; then load() and take() of all. */
struct reduce_sweep {
    uint32_t unroll;
    struct cg_val start, step, end;
    void (*advance)(void *ctx, uint32_t u, bool is_first);
    void (*load)(void *ctx, uint32_t u);
    void (*take)(void *ctx, uint32_t u);
    void (*leave)(void *ctx); /* assigns the state of the batch that is next; NULL: there is none */
    uint32_t nstate;
    int32_t state[REDUCE_AXES]; /* registers that vary, besides the position */
    void *ctx;
    struct cg_val at;
};
void reduce_sweep(struct cg *g, struct reduce_sweep *s);

/* ---- reduce/walk.c: a thread's share of the elements into its slots ---- */
/* groups: the vectors of the lane loop; rows: those that are gone through. */
void reduce_walk(struct reduce *r, struct cg_val groups, struct cg_val rows);
/* Loads what a thread needs of one read at its place, and makes .element of it. */
void reduce_load(struct reduce *r, uint32_t read, uint32_t lanes, struct reduce_loaded *l);
void reduce_unpack(struct reduce *r, uint32_t read, uint32_t lanes, const struct reduce_loaded *l);
/* The value of what is read at the lane that is generated: for cg's hook. */
bool reduce_read(struct cg *g, const struct lang_expr *e, struct cg_val *v);
void reduce_bind_lane(struct reduce *r, uint32_t lane);
/* reduce/reduce.c: the value of a reduction that is made, at that lane. */
bool reduce_answer(struct cg *g, const struct lang_expr *e, struct cg_val *v);
/* reduce/tile.c: all of an entry of a tile that is held. */
void reduce_tile(struct reduce *r);
struct cg_place_of reduce_place(struct reduce *r, const struct lang_symbol *sym, uint32_t n,
                                const uint32_t *axis, uint32_t lane);

#endif
