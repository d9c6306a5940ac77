/* What a strategy is given, what it offers, and what it says of its sums. Private to lib/lower. */
#ifndef KAIO_LOWER_STRATEGY_H
#define KAIO_LOWER_STRATEGY_H

#include "lower/cg/cg.h"

enum lower_mma {
    LOWER_MMA_ANY,
    LOWER_MMA_NONE,
    LOWER_MMA_SYNC,
    LOWER_MMA_TF32, /* by its own instructions alone */
    LOWER_MMA_TF32X3,
    LOWER_MMA_FP8,
    LOWER_MMA_WGMMA
};

/* As many blocks as the device has multiprocessors. */
#define LOWER_BLOCKS_ALL UINT32_MAX

/* What a schedule may set; 0: chosen. */
struct lower_plan {
    uint32_t block;  /* threads */
    uint32_t vector; /* map: elements of each access */
    uint32_t unroll; /* map: accesses in flight per buffer and thread */
    /* map: the side of a transpose's tiles, elements; reduce: threads across results that lie side by side */
    uint32_t tile;
    uint32_t split; /* reduce: blocks that share a result */
    struct span tile_span;
    struct span vector_span;
    /* row: threads that share a row in each block, vectors of each, rows of a block, blocks that share a row */
    uint32_t threads, vectors, rows, cluster;
    /* matmul: what multiplies; rows, columns and k of a block's tile; its warps by rows and columns; tiles of the operands
     * in shared memory; rows of tiles that are walked together (and split: blocks that share a tile along k) */
    enum lower_mma mma;
    uint32_t shape[3], warps[2], stages, group;
    /* of tensor cores: blocks of the launch, which take tiles by turns; or are there as many as tiles? Of wgmma: blocks of a cluster
     * by rows and columns; warpgroups that take whole tiles by turns */
    uint32_t blocks;
    bool tiles;
    uint32_t clusters[2];
    bool pingpong;
    struct span mma_span, warps_span, stages_span, split_span; /* and tile_span */
    struct span cluster_span, blocks_span, pingpong_span;
};

/* A part of a spec's equations that is computed together. */
struct lower_stage {
    const struct lang_equation *const
        *eq; /* what define out and inout parameters, or stored intermediates */
    uint32_t n;
    const char *entry; /* the name of the first entry; others by lower_entry_name() */
};

/* Each: could it (why: what the stage lacks, when it does not), and the code with its launches. */
typedef bool strategy_fits(struct cg *g, const struct lower_stage *s, struct buf *why);
typedef bool strategy_lower(struct cg *g, const struct lower_stage *s,
                            const struct lower_plan *plan);
/* map.c: outputs of one shape without long reductions. */
strategy_fits map_fits;
strategy_lower map_lower;
/* row.c: threads that share a row of reductions over the last axes. */
strategy_fits row_fits;
strategy_lower row_lower;
/* reduce.c: results by whole blocks, several of which may share one. */
strategy_fits reduce_fits;
strategy_lower reduce_lower;
/* matmul.c: contractions, by tiles. */
strategy_fits matmul_fits;
strategy_lower matmul_lower;
/* naive.c: one thread per output element. */
strategy_fits naive_fits;
strategy_lower naive_lower;
/* The code of an entry that has begun, of `block` threads; the launch's grid. */
enum { NAIVE_BLOCK = 256 };
const char *naive_code(struct cg *g, const struct lower_stage *gr, uint32_t block);
/* body.c */
bool body_lower(struct cg *g);

/* The product of a tensor's dimensions: a constant, a dimension or computed at launch; its text for a grid. */
struct cg_val shape_total(struct cg *g, const struct lang_symbol *t, uint32_t divide,
                          const char **text);
/* ctaid.x * elements_per_block + tid.x * elements_per_thread, an i64. */
struct cg_val thread_start(struct cg *g, uint32_t per_block, uint32_t per_thread);
/* "KERNEL_part", made unlike the name of every kernel and entry of the module. */
const char *lower_entry_name(struct cg *g, const char *part);
/* No term of the stage's sums goes through more than this many roundings on its way into the sum: a text of the launch; NULL:
 * not known. The contract says the largest of all. */
void lower_depth(struct cg *g, const char *text);
/* What the stage's sums by tensor cores lose beside that, texts of the launch in units of 2^-24 (lib/ref/ref.h derives them). The
 * contract says the largest. For k products of
 *
 *   f16, bf16, tf32   6 * ceil_div(k, 4)        on every target
 *   tf32x3            36 * ceil_div(n, 4)       three products of n terms, from 0 each time; lower_products(): 24, 72 with bf16
 *   e4m3, e5m2        34816 * ceil_div(k, 16)   by their own instruction; as f16: as f16
 *   i8, u8            nothing: they are exact
 *
 * and lower_depth() counts the additions outside of mma.sync alone, at least 1: the parts of a split sum, and where
 * mma.sync starts from 0 every so many k and its result is added to others. */
void lower_truncation(struct cg *g, const char *text);
void lower_products(struct cg *g, const char *text);
/* False; says in why (NULL: nobody asks) what a stage lacks for a strategy at s: fmt has a %s. */
bool lower_lacks(struct buf *why, struct span s, const char *fmt, const char *name)
    __attribute__((format(printf, 3, 0)));

#endif
