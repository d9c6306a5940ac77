/* Rows: stages whose reductions all run over the last axes, or group of axes, of what they read.
 * Private to lib/lower.
 *
 * The leading indices of the outputs number a row, the axes reduced over are its columns, flattened
 * into one:
 *
 *     top[r]  = max[c](x[r, c])                       level 0
 *     e[r, c] = exp(x[r, c] - top[r])
 *     y[r, c] = e[r, c] / sum[c](e[r, c])             level 1; then the output
 *
 * A reduction's level is one more than that of the deepest one that its terms need; those of one
 * level are computed together. Threads that share a row hold its elements in registers, in vectors
 * of 16 bytes or less, thread by thread:
 *
 *     | vector of thread 0 | thread 1 | ... | thread T-1 | second vector of thread 0 | ...
 *
 * so that a warp's accesses are contiguous (row/held.c). Rows that are too long for that are read
 * again for each level (row/loop.c). A thread's own share of a reduction: row/fold.c; folding over
 * threads: row/meet.c. What a row reads beside its columns: row/scalar.c. What fits, and what is
 * read: row/walk.h. Sizes: row.c.
 */
#ifndef KAIO_LOWER_ROW_H
#define KAIO_LOWER_ROW_H

#include "lower/strategy.h"

enum {
    ROW_RANK = 8,
    ROW_READS = 64,
    ROW_REDUCES = 32,
    ROW_OUTS = 32,
    ROW_VECTOR = 32, /* elements of one */
};

/* What a schedule says; 0: chosen. */
struct row_options {
    uint32_t threads; /* that share a row in each block */
    uint32_t vectors; /* of each of them */
    uint32_t rows;    /* of a block */
    uint32_t cluster; /* blocks that share a row */
};
strategy_analyse row_fit;
strategy_lower row_lower;

/* ---- row/walk.h ------------------------------------------------------------------------------ */

struct row_reduce;

/* The kinds of what an index stands for: subscript n of the row, axis n of the columns, or any
 * other expression. */
enum row_kind { ROW_LEAD, ROW_COLUMN, ROW_OTHER };
struct row_bound {
    const struct lang_symbol *sym;
    enum row_kind kind;
    uint32_t n;
    const struct row_reduce *scope; /* in whose terms it was bound; NULL: in an output */
    const struct lang_expr *arg;    /* ROW_OTHER */
    const struct row_env *in;       /* whose indices arg mentions */
};
struct row_env {
    uint32_t n;
    struct row_bound *v;
};

/* Elements along the row that are held in registers. */
struct row_read {
    const struct lang_expr *e;
    const struct row_env *env;
    const struct row_reduce *scope;
    bool shared; /* by all rows: the subscripts are those of the columns only */
    bool own;    /* the subscripts are the row's own */
    bool early;  /* for an output that is kept */
};
/* A condition that must hold, or must not, for an expression to be evaluated. */
struct row_guard {
    const struct lang_expr *when;
    const struct row_env *env;
    bool holds;
    bool early; /* it and all around it are known before any reduction */
    const struct row_guard *outer;
};
/* One element for the whole row, read before the first reduction ends. */
struct row_scalar {
    const struct lang_expr *e;
    const struct row_env *env;
    const struct row_guard *guard; /* NULL: none */
    bool late;                     /* its address or its guard is read itself */
};
struct row_reduce {
    const struct lang_expr *e;
    const struct row_env *env; /* with its own indices */
    uint32_t level;
    struct cg_val value; /* once computed: in every thread of the row */
    bool is_done;
};
/* exp(x - max(x)) and its like, whose argument is never positive. damped: only where the error of a
 * sum is allowed for, be it as a term of one or divided by one. term: as a term only. finite: the
 * maximum is taken for 0 where it is infinite, and then x may be positive. */
struct row_falling {
    const struct lang_expr *e;
    struct row_reduce *top;
    bool always, damped, term, finite;
};
struct row_out {
    const struct lang_equation *eq;
    const struct row_env *env;
    bool along; /* an element for each column; else one for the row */
    bool kept;  /* needs no reduction, and others read it: held from when it was stored, instead of
                   what it is made of */
};

struct row {
    struct cg *g;
    const struct lower_stage *stage;
    uint32_t nlead, ncol;
    struct lang_expr *const *lead; /* extents */
    struct lang_expr *col[ROW_RANK];
    struct row_read read[ROW_READS];
    uint32_t nread;
    struct row_scalar scalar[ROW_READS];
    uint32_t nscalar;
    struct row_reduce reduce[ROW_REDUCES];
    uint32_t nreduce, nlevel;
    /* calls that take many instructions and differ by column, with the first level that needs
     * each */
    struct {
        const struct lang_expr *e;
        const struct row_reduce *scope;
    } heavy[ROW_REDUCES];
    uint32_t nheavy;
    bool is_heavy; /* one is needed at several levels */
    struct row_falling falling[ROW_REDUCES];
    uint32_t nfalling;
    struct row_out out[ROW_OUTS];
    uint32_t nout;
    bool uses_column;     /* as a value, or in a read of its own */
    bool other_reads;     /* element by element, or under a condition */
    bool guarded;         /* one of them under a condition */
    bool in_place;        /* an inout is read and written */
    unsigned least, most; /* bits of the narrowest and the widest element along the row */
    uint32_t nbuffer;     /* of which elements along the row are held */
    uint32_t bits_in;     /* of them all, for each column */
    uint32_t bits_early;  /* of what only kept outputs are made of */
    uint32_t bits_out;
    const struct lang_symbol *kept[ROW_OUTS];
    uint32_t nkept;
};

/* keeps: outputs may be kept; else what reads them computes them again. */
bool row_analyse(struct cg *g, const struct lower_stage *s, bool keeps, struct row *row,
                 struct buf *why);
bool row_is_kept(const struct row *row, const struct lang_symbol *t);
/* Is t the same for all rows, and only read? It is loaded when it is needed, which may be behind
 * the first store. */
bool row_is_shared(const struct row *row, const struct lang_symbol *t);
/* Is e the elements of a buffer along the columns, in an expression of this scope? */
bool row_is_along(const struct row *row, const struct lang_expr *e, const struct row_env *env,
                  const struct row_reduce *scope);

/* ---- row/code.c: the code -------------------------------------------------------------------- */

struct row_plan {
    uint32_t vector; /* elements of an access */
    uint32_t held;   /* vectors of each thread, or of each round of a loop */
    /* of a block that share a row: a power of two up to 32, or a multiple of 32; 0: the block,
     * whose size is known at launch */
    uint32_t threads;
    uint32_t rows;    /* of a block; more than one only where threads is a power of two */
    uint32_t cluster; /* blocks that share a row */
    bool looped;
    /* elements of 16 bits or fewer are kept as they were loaded and converted again for each
     * level */
    bool packed;
    bool lets_go;    /* of what it has read, which the L2 cache keeps for longer than the rest
                        otherwise */
    uint32_t blocks; /* that a multiprocessor should hold at least, which bounds the registers; 0:
                        no matter */
};

enum { ROW_HELD = 64 }; /* vectors of a thread */

/* The columns where a vector begins: from + add. */
struct row_start {
    struct cg_val from;
    uint32_t add;
};

/* Elements of one read in registers. */
struct row_slot {
    const struct lang_symbol *sym;
    struct cg_val base; /* flat index of the row's first element */
    bool shared;
    struct cg_val *v;    /* by vector and lane */
    struct cg_val *word; /* as loaded, 32 bits each, by vector */
    uint32_t words;      /* of a vector; 0: they are not kept */
    bool is_loaded[ROW_HELD];
};

/* A row's scalar that has been loaded. */
struct row_told {
    const struct lang_expr *e;
    struct cg_val *subscript, v;
    int32_t guard; /* where it was loaded; -1: in any case */
};

struct row_gen {
    struct cg *g;
    struct row *row;
    struct row_plan plan;
    enum dtype ct;                  /* of column numbers: u32, or i64 where they may be larger */
    struct cg_val number;           /* of the row, an i64 */
    struct cg_val lead[ROW_RANK];   /* its subscripts */
    struct cg_val thread;           /* ct: among those that share the row */
    struct cg_val stride;           /* ct: how many those are */
    struct cg_val cols, vectors;    /* ct: of a row */
    struct cg_val extent[ROW_RANK]; /* of the columns' axes, i64 */
    int32_t exists;                 /* predicate: the row does; -1: it does for certain */
    int32_t has[ROW_HELD];          /* by vector, the same */
    struct row_start start[ROW_HELD];
    struct cg_val column[ROW_RANK]; /* subscripts of the lane */
    /* For two column axes whose split differs within a vector: the first one's subscript before and
     * after the place where it changes, and the predicate that the lane is after it; -1: it does
     * not change. */
    struct cg_val before, after;
    int32_t carry;
    uint32_t vec, lane;   /* now */
    uint32_t conversions; /* levels so far that converted packed elements */
    int64_t serial;
    struct row_slot slot[ROW_READS];
    uint32_t nslot;
    struct row_told told[ROW_READS];
    uint32_t ntold;
    struct cg_nest nest;
};

/* Binds the indices of env for what is generated next. Returns the number of bindings to go back
 * to. */
size_t row_bind(struct row_gen *r, const struct row_env *env);
/* Finds the row that this thread works on; threads without one leave the entry. total: the number
 * of rows. */
void row_begin(struct row_gen *r, struct cg_val total);
/* Moves to a lane of a vector. */
void row_at(struct row_gen *r, uint32_t vec, uint32_t lane);
/* The first column of a vector. */
struct cg_val row_first(struct row_gen *r, uint32_t vec);
/* Loads vectors [first, last) of the reads that a level needs (nlevel: the outputs; ROW_ALL: any;
 * ROW_EARLY: kept outputs, which are not among any), shared ones or not. */
enum { ROW_ALL = UINT16_MAX, ROW_EARLY = UINT16_MAX - 1 };
void row_load(struct row_gen *r, uint32_t level, bool shared, uint32_t first, uint32_t last);
/* Lines that only this row reads, and has read, may leave the L2 cache as others do. */
void row_read_enough(struct row_gen *r);
void row_forget(struct row_gen *r, bool shared);
/* Forgets what only kept outputs need. */
void row_forget_early(struct row_gen *r);
/* Takes the elements of a packed vector out of their words, for the level that begins. */
void row_unpack(struct row_gen *r, uint32_t vec);
/* The word that holds this lane's element of 16 bits, of the read e, and the next one's; -1: none
 * does. */
int32_t row_pair(struct row_gen *r, const struct lang_expr *e);
bool row_same_value(struct cg_val x, struct cg_val y);
/* Computes and stores the outputs of a vector, kept ones or the others; those of the row. */
void row_store(struct row_gen *r, uint32_t vec, bool kept);
void row_store_scalars(struct row_gen *r);

/* From now on cg_expr() asks r for reads, reductions and quotients. */
void row_answer(struct row_gen *r);

/* All between row_begin() and the end: row/held.c, row/loop.c. */
void row_held(struct row_gen *r);
void row_looped(struct row_gen *r);
/* Is one reading enough for that? How many are for its reductions? */
bool row_is_read_once(struct row *row);
uint32_t row_readings(struct row *row);

/* ---- row/scalar.c ---------------------------------------------------------------------------- */

/* late: those that wait for others; they come behind the loads of the row. */
void row_load_scalars(struct row_gen *r, bool late);
/* Is e one of them, loaded where it is wanted now? */
bool row_scalar_told(struct row_gen *r, const struct lang_expr *e, struct cg_val *v);

/* ---- row/meet.c ------------------------------------------------------------------------------ */

/* A thread's share of a reduction, or what shares were folded to. */
struct row_part {
    struct cg_val v;
    struct cg_val at; /* argmax and argmin: the column */
};

bool row_is_arg(const struct row_reduce *d); /* argmax or argmin */
enum dtype row_term_type(const struct row_reduce *d);
/* Folds n parts in pairs, into p[0] too. */
struct row_part row_merge_all(struct cg *g, const struct row_reduce *d, struct row_part *p,
                              uint32_t n);

/* ---- row/fold.c ------------------------------------------------------------------------------ */

/* The accumulators of the reductions of one level. */
enum { ROW_WAYS = 4 };
struct row_fold {
    struct row_gen *r;
    uint32_t level, n; /* how many */
    struct row_reduce *reduce[ROW_REDUCES];
    uint32_t ways;           /* accumulators of each */
    bool pairs[ROW_REDUCES]; /* the first two hold the best of even and of odd elements of 16 bits
                                each */
    int32_t value[ROW_REDUCES][ROW_WAYS], at[ROW_REDUCES][ROW_WAYS];
};
struct row_fold row_fold_begin(struct row_gen *r, uint32_t level, bool pairs);
/* Takes the lane where r stands; pred: only where it holds; -1: always. */
void row_fold_lane(struct row_fold *f, int32_t pred);
/* The call exp(x - max(x)) that a sum's term is, where nothing else needs it; or NULL. */
const struct row_falling *row_falling_term(const struct row_gen *r, const struct row_reduce *d);
/* The largest of the accumulators of reduction i, a maximum; row_fold_scale() multiplies all of
 * them by x. */
struct cg_val row_fold_largest(struct row_fold *f, uint32_t i);
void row_fold_scale(struct row_fold *f, uint32_t i, struct cg_val x);
/* Folds the thread's accumulators of reduction i into one. */
struct row_part row_own_part(struct row_fold *f, uint32_t i);
/* row/meet.c: folds over all threads of the row and sets the reductions' values. */
void row_fold_end(struct row_fold *f);

#endif
