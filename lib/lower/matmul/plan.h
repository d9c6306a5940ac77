/* How plans of a contraction are made and weighed. Private to matmul/plan.c, matmul_choose*.c,
 * matmul/rows.c and matmul_cost*.c. */
#ifndef KAIO_LOWER_MATMUL_PLAN_H
#define KAIO_LOWER_MATMUL_PLAN_H

#include "lower/matmul/matmul.h"

enum {
    MATMUL_MOST_ROWS = 16, /* of a plan without tiles */
    MATMUL_MOST_SPLIT = 32,
    MATMUL_BUSY = 1024, /* threads of a multiprocessor that cover the memory's latency */
};

struct matmul_size {
    double m, n, k, batch;
};

struct planner {
    struct arena *a;
    const struct ptx_target *target;
    bool fast, strict; /* math: */
    const struct matmul_form *f;
    const struct matmul_options *want;
    struct matmul_report *report;
    const char *mma_key;     /* of the schedule: what says how products are made */
    bool m, n, k, batch;     /* are they known? */
    struct matmul_size size; /* what is not: typical */
    enum matmul_type type;   /* of mma.sync; of f32: tf32 */
    uint32_t parts;
    bool looks;     /* in parts though nobody asked: by wgmma, or by mma.sync where there is none */
    uint32_t least; /* terms from which on it looks */
    bool shorter;   /* no large tiles of warps: they are much code */
    bool single;    /* elements, not vectors: of small tiles, for that is much code */
    struct matmul_plan best;
    double cost; /* of best; < 0: there is none */
};

/* ---- matmul/cost.c ---- */

/* Nanoseconds. shared: bytes of shared memory that the plan takes. */
double matmul_cost(const struct ptx_target *target, const struct matmul_form *f,
                   const struct matmul_plan *p, const struct matmul_size *s, uint32_t shared);
/* ---- matmul/cost_wgmma.c: the same of wgmma ---- */
double matmul_cost_wgmma(const struct matmul_form *f, const struct matmul_plan *p,
                         const struct matmul_size *s);
/* Are three products of tf32 by mma.sync, and what it takes to part factors, faster than fma? */
bool matmul_parts_pay(const struct ptx_target *target);
double ceil_of(double x); /* the next integer */
/* How often the side's operands have an element of the buffer that they are windows of, as far as
 * the sizes are known: each time but one it comes from a cache. 1 of what are no windows. */
double matmul_repeats(const struct matmul_form *f, enum matmul_side side);

/* ---- matmul/choose.c ---- */

/* The members up to .report are set; no plan is considered yet. */
void planner_begin(struct planner *l);
bool planner_knows_all(const struct planner *l); /* the extents */
/* A plan without sizes. */
struct matmul_plan planner_new(const struct planner *l, enum matmul_how how);
/* The number of shares that have something to do, of `split`. */
uint32_t planner_shares(const struct planner *l, const struct matmul_plan *p, uint32_t split);
/* Makes p the best plan, if it is possible, wanted and cheaper. */
void planner_consider(struct planner *l, struct matmul_plan *p, uint32_t shared);
/* All tiles of the table, or the schedule's. */
void planner_consider_tiles(struct planner *l);

/* ---- matmul/choose_wgmma.c ---- */

/* Are plans for wgmma to be considered? why: or NULL; what is in the way, where the target has it
 * and the schedule leaves the choice. */
bool planner_takes_wgmma(const struct planner *l, struct buf *why);
void planner_consider_wgmma(struct planner *l);
/* The plan that a schedule names, whether it fits or not; .threads is 0 where the numbers make no
 * sense. */
struct matmul_plan planner_wgmma_named(const struct planner *l, const struct matmul_options *w);

/* ---- matmul/rows.c ---- */

/* Without tiles, for so many rows; .threads is 0 where that is not possible. */
struct matmul_plan planner_rows(const struct planner *l, uint32_t rows);
void planner_consider_rows(struct planner *l); /* all rows, where they are few */

#endif
