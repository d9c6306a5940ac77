/* The map strategy's parts. Private to lib/lower.
 *
 * A thread computes `lanes` neighbouring elements (along the last axis) of every output. The
 * expression is generated once for each lane; what makes that one vector's work is in how reads are
 * answered (map/read.c):
 *
 *   - A subscript is analysed as base + k[lane], where the base is one register for all lanes,
 *     known to be a multiple of `align` elements, and k is constant (map/form.c). So the lanes of
 *     x[r, c], x[r, c + half], x[r, 2*c + 1] or x[r, c / 2] are found in a few aligned pieces of 16
 *     bytes, and halo elements (x[r, c - 1]) at constant offsets.
 *   - A condition becomes a selection, and reads that it guards become predicated loads (cg.h:
 *     guard). A condition that holds for all lanes alike (c < k, where k is a multiple of the
 *     lanes) is one predicate, so that the guarded reads are whole vectors too.
 *
 * Alignment that depends on a dimension is assumed and noted in `needs`: it becomes the variant's
 * `when:`.
 */
#ifndef KAIO_LOWER_MAP_H
#define KAIO_LOWER_MAP_H

#include "lower/variant.h"

enum { MAP_OUTPUTS = 64, MAP_LANES = 32, MAP_NEEDS = 6 };
/* Larger powers of two than this are not told apart; reductions of more terms than MAP_TERMS are
 * not written out. */
enum { MAP_MOST_ALIGN = 1 << 20, MAP_TERMS = 128 };
/* Positions are less, except in variants for larger sizes: no number of a thread comes near
 * 2^31. */
#define MAP_MOST_SMALL 2000000000

/* What a schedule says; 0: chosen. */
struct map_options {
    uint32_t block;  /* threads */
    uint32_t vector; /* elements of each access */
    uint32_t unroll; /* accesses in flight per buffer and thread */
    uint32_t tile;   /* the side of a transpose's tiles, elements */
    uint32_t rows;   /* of the outputs, that a thread computes where these have windows */
};
strategy_analyse map_fit;
strategy_lower map_lower;

/* An integer expression that must be a multiple of `of`. */
struct map_need {
    const struct lang_expr *e;
    uint32_t of;
};

/* base + k[lane] */
struct map_form {
    bool known;       /* false: it differs between lanes in another way */
    bool varies;      /* between lanes */
    bool is_zero;     /* the base is 0: align means nothing */
    bool is_positive; /* the base is not negative */
    bool is_column;   /* most rests on rows of less than MAP_MOST_SMALL elements */
    uint32_t align;   /* a power of two that divides the base */
    uint64_t most;    /* what base + k is at most; UINT64_MAX: not known */
    struct cg_val base;
    int64_t k[MAP_LANES];
    struct map_need need[MAP_NEEDS]; /* what the alignment rests on */
    uint32_t nneed;
    bool rests; /* k and varies rest on it too, so that any use does */
};

struct map_bound {
    const struct lang_symbol *index;
    struct map_form form;
};

struct map_reader {
    /* What a thread computes, and which of it just now: neighbouring elements of one row or of
     * several, row after row. */
    uint32_t lanes, lane;
    uint32_t rows;        /* 0: one */
    uint32_t down, apart; /* a row is so many elements behind the last one along axis `down` */
    const struct lang_symbol *shape; /* of the outputs */
    bool assumes;                    /* alignment of dimensions may be assumed */
    bool large;                      /* positions may be MAP_MOST_SMALL or more */
    bool short_rows;                 /* that rows are of less than MAP_MOST_SMALL was relied on */
    bool probes;                     /* forms are looked at only: nothing is generated */
    /* The subscript `near` is `after` to less than after + spread elements behind `from`, a
     * multiple of `within`, none of them as far as `within`: so quotients are known to be the same
     * for many positions. within is 0: nothing is known. */
    uint32_t within, after, spread;
    struct cg_val near, from;
    /* The thread's position: the subscripts of its first element; prefix[i] is the flat index over
     * the first i axes, prefix[rank] of the first element. */
    struct cg_val sub[VARIANT_RANK], prefix[VARIANT_RANK + 1];
    uint32_t
        along; /* the vector begins so many elements behind that position: a multiple of lanes */
    /* Where vectors may go over the end of a row: each lane's subscripts; else NULL. */
    struct cg_val (*lane_sub)[VARIANT_RANK];
    VEC(struct map_bound)
    bound; /* indices of intermediates that are being expanded, the outputs' first */
    VEC(struct map_need) needs;  /* that were relied on */
    VEC(struct cg_val *) pieces; /* several elements that one load brought */
    /* Answers reads from shared memory: f, the forms of the subscripts. False: not its. */
    bool (*read_tile)(struct cg *g, const struct lang_expr *e, const struct map_form *f,
                      struct cg_val *v);
    void *tiling;
    struct map_loops *loops; /* of reductions over windows: map/loops.c; NULL: none */
};

/* The lanes of a row. */
static inline uint32_t map_width(const struct map_reader *m)
{
    return m->rows ? m->lanes / m->rows : m->lanes;
}

/* ---- map/survey.c ---- */

/* The number of terms of a reduction; false when it is not constant or too large. */
bool map_count_terms(const struct lang_expr *e, uint64_t *n);
/* What the stage's elements take; false: they are no map. */
struct map_survey {
    const struct lang_symbol *shape;
    uint32_t bits;           /* of the widest element that moves along all axes */
    uint32_t vector, unroll; /* what suits them */
    uint32_t least;          /* elements that can be stored: two of packed types */
    uint32_t apart;          /* leading axes along which a large read does not move */
    double cost;
};
struct map_windows;
/* windows: their reductions may be loops; NULL: all are written out. */
bool map_survey(struct cg *g, const struct lower_stage *s, const struct map_windows *windows,
                struct map_survey *w, struct buf *why);

/* ---- map/form.c ---- */

struct map_form map_form(struct cg *g, const struct lang_expr *e);
bool map_varies(struct cg *g, const struct lang_expr *e);
/* Relies on the form's base being a multiple of `align`: notes what that needs. */
void map_rely(struct cg *g, const struct map_form *f, uint32_t align);
/* The largest power of two up to `most` that divides the extent of t's last axis; notes what that
 * needs. */
uint32_t map_extent_align(struct cg *g, const struct lang_expr *dim, uint32_t most, bool rely);
struct cg_val map_value(struct cg *g, const struct map_form *f, uint32_t lane);
/* Comparisons and divisions that cost less than they would by themselves; false: neither. */
bool map_binary(struct cg *g, const struct lang_expr *e, struct cg_val *v);
bool map_is_uniform(struct cg *g, const struct lang_expr *e);

/* ---- map/read.c ---- */

/* Makes the reader answer reads in the function that has just begun. */
void map_begin_reading(struct cg *g, struct map_reader *m);
/* Every output's elements of the vector at the position: v[i * lanes + lane]. */
void map_compute(struct cg *g, struct map_reader *m, const struct lang_equation *const *eq,
                 uint32_t n, struct cg_val *v);

/* ---- map/merge.c ---- */

/* Merges neighbouring axes of the stage where nothing tells them apart; tell: say so to
 * --explain. */
struct lower_stage map_merge(struct cg *g, const struct lower_stage *s, bool tell);
/* Merges two neighbouring indices that all reductions of the stage run over. Returns the index that
 * stands for both, and the stage with it; NULL: something tells them apart. */
struct lang_symbol *map_merge_sums(struct cg *g, struct lower_stage *s,
                                   struct lang_symbol *const *pair);
/* The same, of neighbours that something tells apart: there a quotient and a rest of the new index
 * stand for them. False, or NULL: a range depends on one of them. */
bool map_fold(struct cg *g, struct lower_stage *s, uint32_t axis);
struct lang_symbol *map_fold_sums(struct cg *g, struct lower_stage *s,
                                  struct lang_symbol *const *pair);

/* ---- map/walk.c: any map, along its outputs' last axis ---- */

bool map_walk_lower(struct cg *g, const struct map_options *want, struct variant_set *all);

/* ---- map/window.c: reductions over windows of neighbouring elements, and stencils ---- */

enum { MAP_INDICES = 16 };
struct map_windows {
    uint32_t axes; /* of the outputs, along which windows lie, one bit each */
    /* those along which windows of near ones, and of each and the next, have elements in common */
    uint32_t some, each;
    uint64_t written; /* reductions of more terms are loops */
    uint32_t n;
    const struct lang_symbol *index[MAP_INDICES]; /* of the reductions over them */
    uint32_t along[MAP_INDICES];                  /* the axes on which the windows of each lie */
};
struct map_windows map_windows(struct cg *g, const struct lower_stage *s);
bool map_is_window(const struct map_windows *w, const struct lang_symbol *index);
bool map_window_fits(struct cg *g, const struct lower_stage *s, struct buf *why);
/* Nothing is generated where there are none, or where nothing is gained; walks: map_walk_lower()
 * takes the stage, too. */
bool map_window_lower(struct cg *g, const struct map_options *want, bool walks,
                      struct variant_set *all);

/* ---- map/tile.c: inputs whose rows lie along another axis than the outputs'; map/short.c: few
 * ---- */

/* Nothing is generated where there are none. */
bool map_tile_lower(struct cg *g, const struct map_options *want, struct variant_set *all);

#endif
