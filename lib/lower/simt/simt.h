/* Contractions by fma (simt/simt.c): what its parts share. Private to them. */
#ifndef KAIO_LOWER_MATMUL_SIMT_H
#define KAIO_LOWER_MATMUL_SIMT_H

#include "lower/matmul/matmul.h"

enum {
    SIMT_DOWN = 4, /* threads of a warp */
    SIMT_ACROSS = 8,
    SIMT_TILE = 16,   /* sums of a thread, at most: down and across */
    SIMT_PASSES = 32, /* vectors of a thread in an operand's tile, at most */
    SIMT_FETCH = 8,   /* elements of one */
};

/* An operand's tile. */
struct simt_slab {
    const struct matmul_operand *o;
    uint32_t operand, side;
    bool turned, copied; /* lies along k; its elements are moved as they are */
    uint32_t lanes, passes;
    struct cg_val at, k; /* u32: the thread's first element in the tile */
    uint32_t at_by[SIMT_PASSES], k_by[SIMT_PASSES];
    int32_t idle; /* a predicate of the threads that have elements; -1: all */
    struct cg_place_of from[SIMT_PASSES]; /* copied: base is a register that moves along k */
    bool moves[SIMT_PASSES];              /* the pass has a base of its own */
    struct cg_val step;                   /* bytes from one element to the next along k */
    int32_t to;                           /* u32: where the thread stores */
    int64_t offset;                       /* bytes, in a stage */
    struct cg_val v[SIMT_PASSES * SIMT_FETCH];
    int32_t frag[2][SIMT_TILE];
};

struct simt {
    struct matmul *m;
    struct cg *g;
    uint32_t bytes, v, pad; /* of an element; elements of a fragment; elements between rows */
    const char *type;
    uint32_t nslab;
    struct simt_slab slab[MATMUL_OPERANDS];
    uint32_t stage; /* bytes */
    bool streams;   /* by cp.async, in more stages than two */
    struct cg_val warp_row, warp_col, tx, ty;
    int32_t sum[MATMUL_PRODUCTS][SIMT_TILE][SIMT_TILE];
    int32_t k;            /* u32: the first of the tile that is loaded next */
    int32_t read[2];      /* u32: by side, the thread's first fragment in the stage that is read */
    int32_t swap;         /* s32: bytes to the other stage, of two */
    int32_t turn;         /* u32: the number of the stage that is read, of more */
    int32_t loads, again; /* predicates: is there a tile to load, another one to multiply? */
};

/* ---- simt/bring.c: tiles to shared memory ---- */

uint32_t simt_stage_bytes(const struct matmul_form *f, const struct matmul_plan *p);
uint32_t simt_side(const struct matmul_plan *p, const struct matmul_operand *o);
/* Registers that a thread's part in bringing takes. */
uint32_t simt_bring_words(const struct matmul_form *f, const struct matmul_plan *p);
/* Are the operands such that threads can bring them, in the plan's stages? */
bool simt_brings(const struct ptx_target *target, const struct matmul_form *f,
                 const struct matmul_plan *p);
/* What the thread brings of each operand. */
void simt_find_slabs(struct simt *s);
/* The first tiles; the first of all can be read behind it. */
void simt_bring_first(struct simt *s);
/* Around the work on a tile, in the loop over tiles: before all of it, and when only a row of k is
 * left, whose fragments are loaded already. What is read behind is the next tile. Sets s->again. */
void simt_bring_next(struct simt *s);
void simt_turn(struct simt *s);
/* A u32 register that steps between the stages: where an element of the first one is. */
int32_t simt_address(struct simt *s, struct cg_val element);
void simt_zero(struct simt *s, int32_t reg);
void simt_barrier(struct simt *s);

#endif
