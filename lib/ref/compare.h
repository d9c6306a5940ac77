/* A kernel's output against the reference, or against a file: what differs, by how much, and
 * where. */
#ifndef KAIO_REF_COMPARE_H
#define KAIO_REF_COMPARE_H

#include "ref/ref.h"

enum compare_status { COMPARE_PASS, COMPARE_FAIL, COMPARE_MISTRUST };

struct tolerance {
    /* these instead of the analysed bound: an element passes within atol + rtol |want|, or */
    bool given;
    double rtol, atol;
    double ulp; /* within so many units in the last place; < 0: not used */
};

enum { COMPARE_MISSES = 10, COMPARE_MAP_ROWS = 16, COMPARE_MAP_COLS = 64, COMPARE_RANK = 8 };

/* The wrong indices along one dimension: all are first + k step, up to last. step 0: there is
 * one. */
struct compare_stretch {
    uint64_t first, last, step;
};

struct compare_miss {
    uint64_t flat;
    bool is_int;
    double got, want, lo, hi; /* floats; lo..hi is what was allowed */
    int64_t igot, iwant;      /* integers and bools */
    uint64_t bits;            /* got's bytes */
};

struct compare_result {
    enum compare_status status;
    const char *why; /* of MISTRUST */
    /* the bounds say nothing; those of a part of the computation may say more */
    bool is_wide;
    enum dtype type;
    uint32_t rank;
    const uint64_t *shape;
    uint64_t count, compared; /* elements there are, elements looked at */
    uint64_t rows;            /* of a sample that is made of rows: how many */
    uint64_t wrong;           /* outside the bound */
    uint64_t unbounded;       /* whose reference allows any value */
    uint64_t exact;           /* where one value only was allowed */
    double max_abs, max_ulp;  /* largest error, against the unrounded reference */
    /* the largest part of the bound that it takes to explain a result, what a store to a narrower
     * type rounds aside; infinity: off where equality was demanded */
    double max_bound;
    uint64_t worst;             /* flat index of the largest fraction */
    double rms_error, rms_want; /* root mean squares over finite elements: their quotient is the
                                   relative L2 error */
    size_t nmiss;
    struct compare_miss miss[COMPARE_MISSES]; /* the first */
    /* Where the wrong ones are, as a picture of the output seen as a matrix (leading dimensions as
     * rows): each cell covers cell_rows x cell_cols elements, powers of two. */
    uint32_t map_rows, map_cols;
    uint64_t cell_rows, cell_cols;
    uint64_t map[COMPARE_MAP_ROWS][COMPARE_MAP_COLS];
    struct compare_stretch stretch[COMPARE_RANK]; /* by dimension, when any is wrong */
};

/* got: all o->count elements in o's type. inputs_vary: some input buffer has two different
 * elements, so that a constant reference is suspicious. r and output only serve ties of argmax. */
void compare_output(struct ref *r, size_t output, const void *got, const struct tolerance *tol,
                    bool inputs_vary, struct compare_result *res);
/* Two arrays of the same type and shape: every byte equal unless a tolerance is given. NaN equals
 * NaN. */
void compare_arrays(enum dtype t, uint32_t rank, const uint64_t *shape, const void *want,
                    const void *got, const struct tolerance *tol, struct compare_result *res);

/* "3, 17": the position of element flat. */
void compare_position(const struct compare_result *res, uint64_t flat, char *out, size_t size);
/* Distance from v to the next value of type t. */
double compare_ulp(enum dtype t, double v);

#endif
