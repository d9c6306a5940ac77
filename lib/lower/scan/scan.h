/* What the files of the scan strategy share.
 *
 * A stage's equations all have the same indices, and every reduction in them is a prefix along one
 * of these, the scanned axis: of its terms up to the element, from the dimension's beginning, or
 * from its end where all are reversed.
 *
 *     y[r, i, c] = sum[k in 0..i + 1](x[r, k, c])      inclusive; 0..i: exclusive
 *     y[r, i, c] = max[k in i..n](x[r, k, c])          reversed
 *
 * A prefix may begin at a segment's beginning, which is read or computed:
 *
 *     y[i] = sum[k in first[i]..i + 1](x[k])
 *
 * What comes before an element that begins one is forgotten there. Whether it was a segment is seen
 * at its end: of an element that begins elsewhere than the last that began one, the terms are added
 * up for itself.
 *
 * What stands before the scanned axis numbers the rows, what stands behind it the columns. Memory
 * is gone through once: what a thread has of a row is scanned in registers, then the threads' and
 * the warps' totals are, and what comes before the tile is carried from the tile before.
 *
 *   team     the threads that share a row: some of a warp, or a block
 *   tile     what they hold in registers at a time
 *   before   what everything in front of something comes to; of nothing: the identity
 *
 * Every sum is taken in an order that depends on the sizes alone.
 *
 * What fits: scan/form.c; sizes: scan/plan.c; terms, results and their meeting: scan/value.c; tiles
 * along the memory: scan/row.c; across it: scan/column.c; tiles of other blocks: scan/look.c.
 */
#ifndef KAIO_LOWER_SCAN_SCAN_H
#define KAIO_LOWER_SCAN_SCAN_H

#include "lower/strategy.h"

enum {
    SCAN_RANK = 8,
    SCAN_READS = 24,
    SCAN_RESULTS = 8,
    SCAN_PARTS = 3 * SCAN_RESULTS,
    SCAN_LANES = 16,
    SCAN_HELD = 16,
    SCAN_OUTS = 64,
};

/* What a schedule says; 0: chosen. */
struct scan_options {
    uint32_t block;   /* threads */
    uint32_t vector;  /* elements of each access */
    uint32_t held;    /* vectors of each thread */
    uint32_t threads; /* that share a row */
    uint32_t split;   /* 2: each tile of a row has a block */
};
strategy_analyse scan_fit;
strategy_lower scan_lower;

/* An element named by axes alone, each within its dimension, or from its end: n - 1 - i. */
struct scan_read {
    const struct lang_symbol *sym;
    uint32_t axis[SCAN_RANK];
    bool flipped[SCAN_RANK];
    bool in_lanes; /* its last subscript is the last axis: neighbours lie side by side */
};

struct scan_result {
    const struct lang_expr *e; /* the E_REDUCE */
    bool exclusive;
    /* Where the element's segment begins, or behind which element it ends where prefixes are
     * reversed: something that is read
     * or rounded. NULL: where the dimension does. */
    const struct lang_expr *bound;
};

/* What an index stands for, for as long as the stage is generated. */
struct scan_index {
    const struct lang_symbol *sym;
    uint32_t axis;
};

struct scan_form {
    const struct lower_stage *stage;
    uint32_t naxis, axis; /* the scanned one */
    bool reversed, has_segments;
    struct lang_expr *extent[SCAN_RANK];
    uint32_t nresult;
    struct scan_result result[SCAN_RESULTS];
    uint32_t nread;
    struct scan_read read[SCAN_READS];
    VEC(struct scan_index) index;
    bool reads_else;    /* terms also read elements that are not in .read */
    unsigned widest;    /* bits of an element that is read or written along the last axis */
    unsigned registers; /* of what is held of one element, about */
};

/* The index that a subscript of so long a dimension is, from its beginning or its end. */
const struct lang_expr *scan_index_of(const struct lang_expr *sub, const struct lang_expr *dim,
                                      bool *flipped);

/* ---- scan/plan.c ----------------------------------------------------------------------------- */

/* An extent or a count: as the launch computes it, and the number where it is known at emission. */
struct scan_count {
    struct lang_expr *e;
    bool is_known;
    int64_t n;
};
struct scan_count scan_count(struct lang_expr *e);

enum scan_way {
    SCAN_BY_LANES, /* a power of two of a warp's lanes share a row */
    SCAN_BY_BLOCK,
    SCAN_BY_BLOCKS, /* each has a tile of a row, and looks back at those before it */
    SCAN_DOWN,      /* across the memory: threads side by side along the last axis */
};

struct scan_plan {
    enum scan_way way;
    uint32_t block, lanes, held;
    uint32_t threads;         /* of a row, or below each other along the scanned axis */
    uint32_t across;          /* SCAN_DOWN: threads along the last axis */
    struct scan_count rows;   /* of what stands before the scanned axis */
    struct scan_count groups; /* SCAN_DOWN: vectors of all columns of one row; else 1 */
    struct scan_count length; /* vectors along the scanned axis, or elements */
    struct scan_count tiles;  /* of a row */
    struct scan_count blocks;
    uint32_t least;         /* blocks of a multiprocessor at least; 0: any number */
    struct lang_expr *when; /* NULL: always */
    const char *entry;
};

enum { SCAN_VARIANTS = 8 };
/* In the order in which they are tried. */
uint32_t scan_plans(struct cg *g, const struct scan_form *f, const struct scan_options *want,
                    struct scan_plan *p);
/* Are so many warps' totals added up by shuffles? */
bool scan_adds_by_lanes(uint32_t warps);
/* Roundings that a term of a sum goes through. */
struct lang_expr *scan_depth(struct cg *g, const struct scan_plan *p);

/* ---- scan/value.c ---------------------------------------------------------------------------- */

/* What all results have come to somewhere: a value each, and behind it, of argmax and argmin, the
 * index, and of segments 1 + the bound of the last that began, or 0. */
struct scan_state {
    struct cg_val v[SCAN_PARTS];
};

struct scan_lanes {
    struct scan_state at[SCAN_LANES];
};
struct scan_elements {
    struct cg_val v[SCAN_LANES];
};

struct scan {
    struct cg *g;
    const struct scan_form *f;
    const struct scan_plan *p;
    uint32_t npart;
    enum dtype part[SCAN_PARTS];   /* their types */
    struct cg_val n[SCAN_RANK];    /* extents, i64 */
    struct cg_val sub[SCAN_RANK];  /* the thread's subscripts: of the scanned axis where its vector
                                      at hand begins, of the last one where its columns do */
    struct cg_val axis[SCAN_RANK]; /* of the element at hand */
    struct cg_val position[SCAN_HELD];   /* along the scanned axis where vector j begins, i64 */
    int32_t exists[SCAN_HELD];           /* predicate: -1: it does for certain */
    struct scan_elements *element;       /* by read and vector */
    struct scan_lanes inside[SCAN_HELD]; /* scanned up to the element: within its vector, or down a
                                            thread's column */
    struct scan_lanes before[SCAN_HELD]; /* of the vector, or of the column's elements */
    uint32_t vec, lane;                  /* at hand */
    struct ptx_var *shared;
    struct scan_memory *memory; /* scan/look.c */
    uint32_t at[SCAN_PARTS];    /* bytes in shared memory where those of a part begin */
};

void scan_open(struct scan *s);
struct scan_state scan_identity(struct scan *s);
/* What y behind x comes to. */
struct scan_state scan_meet(struct scan *s, struct scan_state x, struct scan_state y);
struct scan_state scan_select(struct scan *s, int32_t pred, struct scan_state x,
                              struct scan_state y);
/* Registers that are assigned. */
void scan_keep(struct scan *s, int32_t *reg);
void scan_move(struct scan *s, const int32_t *reg, const struct scan_state *x);
struct scan_state scan_kept(struct scan *s, const int32_t *reg);
/* Loads what is read of vector j side by side. */
void scan_load(struct scan *s, uint32_t j);
/* The terms of vector j, each by itself, into .inside. */
void scan_terms(struct scan *s, uint32_t j);
/* Computes and stores the outputs of vector j. */
void scan_store(struct scan *s, uint32_t j);
/* The thread's subscripts of rows (and columns), from their numbers. */
void scan_place(struct scan *s, struct cg_val row, struct cg_val group);
/* The state of another lane; *in_range, if not NULL: there is one. */
struct scan_state scan_shuffle_up(struct scan *s, struct scan_state x, uint32_t by, uint32_t width,
                                  int32_t *in_range);
struct scan_state scan_last_lane(struct scan *s, struct scan_state x, uint32_t width);
/* That of the lane whose number is in the register. */
struct scan_state scan_from_lane(struct scan *s, struct scan_state x, int32_t lane);
/* Shared memory for n states (those of one part side by side); where state `number` of them is
 * stored and loaded, by lanes of them. */
void scan_share(struct scan *s, uint32_t n);
void scan_leave(struct scan *s, struct cg_val number, uint32_t lanes, const struct scan_state *x);
void scan_fetch(struct scan *s, struct cg_val number, uint32_t lanes, struct scan_state *x);
/* A count of the launch as a u32. */
struct cg_val scan_number(struct cg *g, struct scan_count n);

/* ---- scan/row.c, scan/column.c, scan/look.c -------------------------------------------------- */

void scan_rows(struct scan *s);
void scan_columns(struct scan *s);
/* The tile that this block takes: its row and its number there; the state before it, of whose own
 * total this is. Every thread calls it and has the result. */
struct scan_look {
    struct cg_val row, tile;    /* tile: in the row */
    struct cg_val group, place; /* the tile's group in the row, and its place in that */
    struct cg_val first, here;  /* among all groups: the row's first one and this one */
    struct cg_val is_last;      /* this is the row's last */
};
void scan_take_tile(struct scan *s, struct scan_look *l);
struct scan_state scan_look_back(struct scan *s, const struct scan_look *l,
                                 struct scan_state total);

#endif
