/* How many threads, vectors and blocks a scan gets: scan/scan.h. None of it depends on the device,
 * since the order of the additions, and so the bits of the sums, depend on it. */
#include <config.h>

#include "lower/scan/scan.h"

/* BLOCK: threads. REGISTERS: of what a thread holds. HELD: vectors of a thread that are on their
 * way together, and single elements. FEW_ROWS: so few that a block for each leaves much of a
 * machine of 132 multiprocessors idle, where rows are longer than LONG tiles. MANY_TILES: large
 * ones, of BLOCK_LARGE threads and HELD_LARGE vectors, enough for that machine's multiprocessors;
 * blocks wait less for each other then. LEAST_THREADS: for which a multiprocessor must have room
 * there, where a thread holds SIMPLE things, and LEAST_KNOWN where the code need not ask whether a
 * vector exists. BUSY: threads that keep the machine busy. DEEP: threads below each other. GROUP:
 * tiles whose totals are added up at once, and groups of such (scan/look.c). SHARED: bytes that any
 * block may have. */
enum {
    BLOCK = 256,
    MOST_BLOCK = 512,
    REGISTERS = 100,
    HELD = 4,
    HELD_SINGLE = 8,
    BLOCK_LARGE = 1024,
    HELD_LARGE = 8,
    MANY_TILES = 528,
    LEAST_THREADS = 768,
    LEAST_KNOWN = 1024,
    SIMPLE = 3,
    FEW_ROWS = 264,
    LONG = 2,
    BUSY = 65536,
    DEEP = 16,
    GROUP = 32,
    SHARED = 48 << 10,
};

struct scan_count scan_count(struct lang_expr *e)
{
    struct scan_count c = {.e = e};
    c.is_known = lang_const_int(e, &c.n);
    return c;
}

static uint32_t power_above(int64_t n)
{
    uint32_t p = 1;
    while (p < n && p < 1024)
        p *= 2;
    return p;
}

static uint32_t log2_of(uint32_t n)
{
    return n > 1 ? 1 + log2_of(n / 2) : 0;
}

/* The product of the extents of axes [first, last). */
static struct scan_count extents(struct cg *g, const struct scan_form *f, uint32_t first,
                                 uint32_t last)
{
    struct lang_expr *n = lx_int(g->a, 1);
    for (uint32_t i = first; i < last; i++)
        n = lx_mul(g->a, n, f->extent[i]);
    return scan_count(n);
}

static struct scan_count ceiling(struct cg *g, struct scan_count n, uint32_t by)
{
    return scan_count(lx_ceil_div_int(g->a, n.e, by));
}

static bool is_down(const struct scan_form *f)
{
    return f->axis + 1 < f->naxis;
}

static uint32_t choose_lanes(const struct scan_form *f, const struct scan_options *want)
{
    const uint32_t lanes = want->vector ? want->vector : 128 / (f->widest ? f->widest : 32);
    return lanes < SCAN_LANES ? lanes : SCAN_LANES;
}

static uint32_t choose_held(const struct scan_form *f, const struct scan_options *want,
                            uint32_t lanes)
{
    uint32_t held = want->held ? want->held : lanes == 1 || is_down(f) ? HELD_SINGLE : HELD;
    while (!want->held && held > 1 && held * lanes * f->registers > REGISTERS)
        held /= 2;
    return held;
}

/* ---- along the memory ------------------------------------------------------------------------ */

static struct scan_plan along(struct cg *g, const struct scan_form *f,
                              const struct scan_options *want, uint32_t lanes)
{
    struct scan_plan p = {.lanes = lanes, .held = choose_held(f, want, lanes)};
    p.rows = extents(g, f, 0, f->axis);
    p.groups = scan_count(lx_int(g->a, 1));
    p.length = scan_count(lx_div_int(g->a, f->extent[f->axis], lanes));
    p.across = 1;
    return p;
}

/* A team of so many threads for each row. */
static struct scan_plan by_team(struct cg *g, struct scan_plan p, const struct scan_options *want,
                                uint32_t threads)
{
    p.way = threads > 32 ? SCAN_BY_BLOCK : SCAN_BY_LANES;
    p.threads = threads;
    p.block = threads > 32 ? threads : want->block ? want->block : BLOCK;
    while (p.block % p.threads)
        p.block += 32;
    while (!want->held && p.held > 1 && p.length.is_known &&
           (int64_t)threads * p.held / 2 >= p.length.n)
        p.held /= 2;
    p.tiles = ceiling(g, p.length, p.threads * p.held);
    p.blocks = ceiling(g, p.rows, p.block / p.threads);
    return p;
}

/* block, held: the largest that there may be. */
static struct scan_plan by_blocks(struct cg *g, const struct scan_form *f, struct scan_plan p,
                                  const struct scan_options *want, uint32_t block, uint32_t held)
{
    p.way = SCAN_BY_BLOCKS;
    p.block = p.threads = want->block > 32 ? want->block : block;
    while (!want->held && p.held < held && 2 * p.held * p.lanes * f->registers <= REGISTERS)
        p.held *= 2;
    const uint32_t least = p.length.is_known ? LEAST_KNOWN : LEAST_THREADS;
    if (f->registers <= SIMPLE && !f->reads_else && p.held * p.lanes <= HELD_LARGE * 128 / 32 &&
        p.block <= least)
        p.least = least / p.block;
    p.tiles = ceiling(g, p.length, p.threads * p.held);
    p.blocks = scan_count(lx_mul(g->a, p.rows.e, p.tiles.e));
    return p;
}

/* The threads of a row of so many vectors: a few vectors each, so that lines of memory are read
 * whole. */
static uint32_t team_of(const struct scan_plan *p, bool is_long)
{
    if (!p->length.is_known)
        return is_long ? BLOCK : 32;
    uint32_t threads = power_above((p->length.n + p->held - 1) / p->held);
    if (threads < 8)
        threads = power_above(p->length.n < 8 ? p->length.n : 8);
    return threads < MOST_BLOCK ? threads : MOST_BLOCK;
}

/* Adds the plan for all sizes, or for those that `when` says, unless it is known not to be for
 * them. False: what follows is for no sizes. */
static bool add(struct scan_plan *list, uint32_t *n, struct scan_plan p, struct lang_expr *when)
{
    const struct scan_count holds = scan_count(when);
    if (holds.is_known && !holds.n)
        return true;
    p.when = holds.is_known ? NULL : when;
    list[(*n)++] = p;
    return !holds.is_known;
}

/* Rows whose elements are whole vectors, or any. False: what follows is for no sizes. */
static bool add_rows(struct cg *g, const struct scan_form *f, const struct scan_options *want,
                     struct scan_plan *list, uint32_t *n, uint32_t lanes)
{
    const struct scan_plan p = along(g, f, want, lanes);
    struct lang_expr *whole = lx_is_multiple(g->a, f->extent[f->axis], lanes);
    if (want->threads)
        return add(list, n, by_team(g, p, want, want->threads), whole);
    const struct scan_plan large =
        by_blocks(g, f, p, want, p.length.is_known ? BLOCK_LARGE : BLOCK, HELD_LARGE);
    const struct scan_plan shared = by_blocks(g, f, p, want, BLOCK, HELD);
    struct lang_expr *few =
        lx_and(g->a, lx_at_most(g->a, p.rows.e, FEW_ROWS),
               lx_at_least(g->a, p.length.e, LONG * (int64_t)shared.threads * shared.held + 1));
    if (want->split)
        few = lx_bool(g->a, want->split > 1);
    few = lx_and(g->a, whole, few);
    struct lang_expr *many = lx_at_least(g->a, large.blocks.e, MANY_TILES);
    if ((large.block != shared.block || large.held != shared.held) &&
        !add(list, n, large, lx_and(g->a, few, many)))
        return false;
    if (!add(list, n, shared, few))
        return false;
    struct lang_expr *is_long =
        lx_and(g->a, whole, lx_at_least(g->a, p.length.e, 32 * (int64_t)p.held + 1));
    return add(list, n, by_team(g, p, want, team_of(&p, true)), is_long) &&
           add(list, n, by_team(g, p, want, team_of(&p, false)), whole);
}

/* ---- across it ------------------------------------------------------------------------------- */

/* threads: below each other. */
/* Bytes of shared memory that a column takes. */
static uint32_t column_bytes(const struct scan_form *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->nresult; i++) {
        const struct lang_expr *e = f->result[i].e;
        const uint32_t bytes = dtype_bits(e->args[0]->type) / 8;
        const bool is_arg = e->reduce == RED_ARGMAX || e->reduce == RED_ARGMIN;
        n += (bytes > 4 ? bytes : 4) + (is_arg ? 8 : 0) + (f->result[i].bound ? 4 : 0);
    }
    return 2 * n;
}

static struct scan_plan down(struct cg *g, const struct scan_form *f,
                             const struct scan_options *want, uint32_t lanes, uint32_t threads)
{
    struct scan_plan p = {.way = SCAN_DOWN, .lanes = lanes, .held = choose_held(f, want, lanes)};
    struct lang_expr *last = lx_div_int(g->a, f->extent[f->naxis - 1], lanes);
    const struct scan_count inner = extents(g, f, f->axis + 1, f->naxis - 1);
    p.threads = threads;
    p.block = want->block ? power_above(want->block) : BLOCK;
    while (threads > 1 && p.block > 32 && p.block * lanes * column_bytes(f) > SHARED)
        p.block /= 2;
    p.across = p.block / threads;
    p.rows = extents(g, f, 0, f->axis);
    p.groups = scan_count(lx_mul(g->a, inner.e, last));
    p.length = scan_count(f->extent[f->axis]);
    p.tiles = ceiling(g, p.length, threads * p.held);
    p.blocks = ceiling(g, scan_count(lx_mul(g->a, p.rows.e, p.groups.e)), p.across);
    return p;
}

static uint32_t choose_deep(struct cg *g, const struct scan_plan *one)
{
    const struct scan_count n = scan_count(lx_mul(g->a, one->rows.e, one->groups.e));
    uint32_t deep = 1;
    if (!n.is_known)
        return DEEP;
    while (deep < DEEP && n.n * deep < BUSY)
        deep *= 2;
    while (deep > 1 && one->length.is_known && one->length.n <= (int64_t)deep / 2 * one->held)
        deep /= 2;
    return deep;
}

static bool add_columns(struct cg *g, const struct scan_form *f, const struct scan_options *want,
                        struct scan_plan *list, uint32_t *n, uint32_t lanes)
{
    const struct scan_plan one = down(g, f, want, lanes, 1);
    struct lang_expr *whole = lx_is_multiple(g->a, f->extent[f->naxis - 1], lanes);
    const uint32_t deep = want->threads ? want->threads < 32 ? want->threads : 32
                                        : choose_deep(g, &one);
    struct lang_expr *columns = lx_mul(g->a, one.rows.e, one.groups.e);
    if (!want->threads && deep > 1 &&
        !add(list, n, one, lx_and(g->a, whole, lx_at_least(g->a, columns, BUSY))))
        return false;
    return add(list, n, down(g, f, want, lanes, deep), whole);
}

/* ---- all ------------------------------------------------------------------------------------- */

uint32_t scan_plans(struct cg *g, const struct scan_form *f, const struct scan_options *want,
                    struct scan_plan *p)
{
    const struct scan_count across = scan_count(f->extent[f->naxis - 1]);
    uint32_t lanes = choose_lanes(f, want), n = 0;
    while (across.is_known && across.n % lanes)
        lanes /= 2;
    for (;;) {
        const bool more = is_down(f) ? add_columns(g, f, want, p, &n, lanes)
                                     : add_rows(g, f, want, p, &n, lanes);
        if (!more || lanes == 1)
            return n;
        lanes = 1;
    }
}

bool scan_adds_by_lanes(uint32_t warps)
{
    enum { MANY = 8 };
    return warps >= MANY && (warps & (warps - 1)) == 0;
}

struct lang_expr *scan_depth(struct cg *g, const struct scan_plan *p)
{
    if (p->way == SCAN_DOWN)
        return lx_add_int(g->a, p->tiles.e, p->held + p->threads + 3);
    const uint32_t width = p->threads < 32 ? p->threads : 32;
    const uint32_t warps = p->threads / width;
    const uint32_t met = scan_adds_by_lanes(warps) ? log2_of(warps) : warps;
    const uint32_t own = p->lanes + log2_of(width) + p->held + met + 4;
    if (p->way != SCAN_BY_BLOCKS)
        return lx_add_int(g->a, p->tiles.e, own);
    return lx_add_int(g->a, lx_ceil_div_int(g->a, p->tiles.e, GROUP), own + log2_of(GROUP) + 4);
}
