/* How many threads, lanes, accesses in flight and blocks a reduction gets: reduce/reduce.h. */
#include <config.h>

#include "lower/reduce/reduce.h"
#include "lower/schedule.h"

/* BLOCKS: four of 256 threads, of up to 64 registers, for each of the 132 multiprocessors of an
 * H100. The number must not depend on the device: the order of the additions, and so the bits of
 * the sums, do. FLIGHT: bytes that each thread has on the way; 1024 threads with 128 cover the
 * memory's latency twice. LINE: bytes of a row of a tile. SPREAD: threads that keep the machine
 * busy without sharing anything. SUMS: registers of a thread's columns. MOST_BUSY: of its sums and
 * what it has on the way; more where differences are summed, of which a thread has more to compute
 * (as measured: 8 accesses on the way instead of 4 were 7 to 22 % faster). MANY: accesses of all
 * blocks, of so much that no cache has it, from where on three blocks of a multiprocessor were .4
 * to .7 % faster than four. */
enum {
    SPREAD = 65536,
    BLOCK = 256,
    BLOCKS = 528,
    FLIGHT = 128,
    LINE = 128,
    SLOTS = 4,
    MOST_CODE = 3000,
    SUMS = 40,
    MOST_BUSY = 48,
    MOST_BUSY_DIFFERENCES = 64,
    MANY = 8,
};

struct amount reduce_known(struct cg *g, int64_t n)
{
    return (struct amount){lx_int(g->a, n), true, n};
}

struct amount reduce_amount(struct cg *g, struct lang_expr *e)
{
    int64_t n;
    return lang_const_int(e, &n) ? reduce_known(g, n) : (struct amount){.e = e};
}

static struct amount product(struct cg *g, struct amount x, struct amount y)
{
    return reduce_amount(g, lx_mul(g->a, x.e, y.e));
}

static struct amount divided(struct cg *g, struct amount x, uint32_t by)
{
    return reduce_amount(g, lx_div_int(g->a, x.e, by));
}

static struct amount ceiling(struct cg *g, struct amount x, uint32_t by)
{
    return reduce_amount(g, lx_ceil_div_int(g->a, x.e, by));
}

static uint32_t log2_of(uint32_t n)
{
    uint32_t l = 0;
    while ((UINT32_C(1) << l) < n)
        l++;
    return l;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* Nothing else than the lane loop moves the reads along it, so that each begins where its buffer
 * does: aligned, and with a tail at the end only. */
static bool is_flat(const struct reduce_form *f)
{
    if (!f->loop[f->lane].is_reduced || f->nloop - f->nkeptloop != 1)
        return false;
    for (uint32_t i = 0; i < f->nread; i++) {
        const struct reduce_read *r = &f->read[i];
        if (r->in_body && reduce_ends_in_lanes(f, r->sym->rank, r->axis) &&
            r->sym->rank != f->loop[f->lane].naxis)
            return false;
    }
    return true;
}

/* What the results take in one of a thread's slots. */
static uint32_t sum_registers(const struct reduce_form *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->nresult; i++) {
        const struct reduce_result *q = &f->result[i];
        uint32_t value = dtype_bits(q->e->args[0]->type) > 32 ? 3 : 1;
        n += q->term ? 6 : value + (reduce_is_arg(q->e) ? 2 : 0);
    }
    return n;
}

uint32_t reduce_choose_lanes(const struct reduce_form *f, const struct reduce_options *want)
{
    uint32_t most = REDUCE_LANES, lanes;
    if (!f->has_contiguous || !f->widest)
        return 1;
    lanes = want->vector ? want->vector : 128 / f->widest;
    if (!f->loop[f->lane].is_reduced) /* as many accumulators for each result */
        while (most > 1 && most * sum_registers(f) > SUMS)
            most /= 2;
    return lanes < most ? lanes : most;
}

static uint32_t choose_unroll(const struct reduce_form *f, const struct reduce_options *want,
                              uint32_t lanes)
{
    unsigned bytes = f->bits * lanes / 8;
    /* of single elements more fit, if their indices take no registers */
    bool single = lanes == 1 && f->loop[f->lane].is_reduced && f->nloop - f->nkeptloop == 1;
    uint32_t u = want->unroll ? want->unroll : single ? 16 : 8;
    while (!want->unroll && u > 1 && u * bytes > FLIGHT)
        u /= 2;
    uint32_t slots = f->loop[f->lane].is_reduced && lanes > SLOTS ? SLOTS : lanes, most = MOST_BUSY;
    for (uint32_t i = 0; i < f->nresult; i++)
        most = f->result[i].term ? MOST_BUSY_DIFFERENCES : most;
    while (!want->unroll && u > 2 && u * bytes / 4 + slots * sum_registers(f) >= most)
        u /= 2;
    while (u > 1 && u * lanes * f->weight > MOST_CODE)
        u /= 2;
    return u;
}

/* ---- one variant ----------------------------------------------------------------------------- */

/* Additions from a thread's slots to the whole block's sum. */
static uint32_t block_depth(const struct reduce_plan *p)
{
    uint32_t rows = p->tx <= 32 ? p->block / 32 : p->ty;
    return (p->tx < 32 ? log2_of(32 / p->tx) : 0) + rows - 1;
}

/* A thread's additions, then those of the parts of up to `most` blocks. Fewer blocks have no more
 * than one batch for each thread. */
static struct amount depth_of(struct cg *g, const struct reduce_plan *p, struct amount most)
{
    uint32_t each = p->lanes / p->slots, fixed = 2 * block_depth(p) + log2_of(p->slots) + 2;
    struct lang_expr *threads = lx_mul(g->a, lx_int(g->a, p->ty), most.e);
    struct lang_expr *vectors = lx_ceil_div(g->a, p->rows.e, threads);
    struct lang_expr *d = lx_mul_int(g->a, lx_max(g->a, lx_int(g->a, p->unroll), vectors), each);
    struct amount parts = ceiling(g, most, p->ty);
    if (parts.is_known)
        fixed += (uint32_t)parts.n;
    else
        d = lx_add(g->a, d, parts.e);
    return reduce_amount(g, lx_add_int(g->a, d, fixed));
}

static void choose_blocks(struct cg *g, const struct reduce_form *f,
                          const struct reduce_options *want, struct reduce_plan *p)
{
    p->outer = p->rows = p->tiles = reduce_known(g, 1);
    p->groups = divided(g, f->loop[f->lane].n, p->lanes);
    for (uint32_t i = 0; i < f->nloop; i++) {
        if (f->loop[i].is_reduced)
            p->rows = product(g, p->rows, i == f->lane ? p->groups : f->loop[i].n);
        else if (i != f->lane)
            p->outer = product(g, p->outer, f->loop[i].n);
    }
    p->total = product(g, p->outer, p->groups);
    if (p->is_spread) { /* a tile of any results, one after the other */
        p->outer = reduce_known(g, 1);
        p->tiles = ceiling(g, p->total, p->tx);
    } else if (p->is_column) {
        p->tiles = ceiling(g, p->groups, p->tx);
    }
    struct amount results = product(g, p->outer, p->tiles);
    /* each block all accesses of its threads once, or more */
    uint32_t least = p->ty * p->unroll;
    struct amount most = reduce_known(g, p->is_spread ? 1 : want->split);
    if (!most.n)
        most = reduce_amount(
            g, lx_ceil_div(g->a, lx_int(g->a, BLOCKS), lx_max(g->a, lx_int(g->a, 1), results.e)));
    p->split = most.is_known && most.n == 1 ? most
               : want->split                ? most
                             : reduce_amount(g, lx_clamp(g->a, ceiling(g, p->rows, least).e,
                                                         lx_int(g->a, 1), most.e));
    if (!want->split && results.is_known && results.n == 1 && p->rows.is_known &&
        p->rows.n >= (int64_t)least * BLOCKS * MANY)
        p->split = reduce_known(g, BLOCKS * 3 / 4);
    p->blocks = product(g, results, p->split);
    /* where several blocks share a result there are fewer than BLOCKS of these */
    p->sharing = p->blocks.is_known || want->split
                     ? p->blocks
                     : reduce_amount(g, lx_min(g->a, p->blocks.e, lx_int(g->a, 2 * BLOCKS)));
    p->depth = depth_of(g, p, most);
}

/* tx 0: every thread has results of its own. */
static struct reduce_plan variant(struct cg *g, const struct reduce_form *f,
                                  const struct reduce_options *want, uint32_t lanes, uint32_t tx)
{
    struct reduce_plan p = {.is_column = !f->loop[f->lane].is_reduced, .lanes = lanes};
    p.block = want->block ? want->block : BLOCK;
    p.is_spread = tx == 0;
    p.tx = p.is_spread ? p.block : p.is_column ? tx : 1;
    if (p.is_column && want->tile)
        p.tx = want->tile;
    while (p.block % p.tx) /* 96 threads are no rows of 64 */
        p.tx /= 2;
    p.ty = p.block / p.tx;
    p.unroll = choose_unroll(f, want, lanes);
    if (p.is_column && !want->unroll && p.unroll > 4) /* of whole vectors half as much is enough */
        p.unroll = 4;
    p.width = p.is_column ? lanes : 1;
    p.slots = p.is_column ? lanes : lanes < SLOTS ? lanes : SLOTS;
    p.has_tail = lanes > 1 && is_flat(f);
    choose_blocks(g, f, want, &p);
    return p;
}

/* ---- variants -------------------------------------------------------------------------------- */

/* The threads across a tile: a line of memory of the widest read, fewer where there are fewer
 * columns. */
static uint32_t choose_tile(const struct reduce_form *f, uint32_t lanes)
{
    const struct amount *n = &f->loop[f->lane].n;
    uint32_t tx = 1;
    unsigned bytes = lanes * (f->widest ? f->widest : 32) / 8;
    unsigned line = lanes > 1 ? LINE : LINE / 2; /* less, where there may be few columns */
    while (tx < 32 && tx * (bytes ? bytes : 1) < line)
        tx *= 2;
    while (n->is_known && tx > 1 && tx / 2 * (int64_t)lanes >= n->n)
        tx /= 2;
    return tx;
}

/* Adds the variant for all sizes, or for those that `when` says, unless it is known not to be for
 * them. False: what follows is for no sizes. */
static bool add(struct cg *g, struct reduce_plan *v, uint32_t *n, struct reduce_plan p,
                struct lang_expr *when)
{
    struct amount holds = reduce_amount(g, when);
    if (holds.is_known && !holds.n)
        return true;
    p.when = holds.is_known ? NULL : when;
    if (!p.when && *n)
        p.when = lx_bool(g->a, true);
    v[(*n)++] = p;
    return !holds.is_known;
}

/* Results enough for the machine, as single elements of many terms: 0.96 of a read's speed on an
 * H100 by rows of 256 threads with 8 accesses on the way each, where a thread for each result has
 * 0.84. */
static struct reduce_plan wide_columns(struct cg *g, const struct reduce_form *f)
{
    const struct reduce_options wide = {.block = 1024, .tile = 256, .unroll = 8, .split = 1};
    return variant(g, f, &wide, 1, wide.tile);
}

static bool are_long(const struct reduce_plan *p)
{
    enum { TERMS = 128 };
    return p->lanes == 1 && p->total.is_known && p->rows.is_known && p->rows.n >= TERMS;
}

/* Columns: results enough for every thread to have its own; tiles of them; and the same where they
 * are not whole vectors. */
static void add_columns(struct cg *g, const struct reduce_form *f,
                        const struct reduce_options *want, struct reduce_plan *v, uint32_t *n,
                        uint32_t lanes)
{
    const struct amount *across = &f->loop[f->lane].n;
    bool asked = want->tile || want->split;
    while (across->is_known && across->n % lanes)
        lanes /= 2;
    for (;;) {
        struct lang_expr *whole = lx_is_multiple(g->a, across->e, lanes);
        struct reduce_plan spread = variant(g, f, want, lanes, 0);
        struct lang_expr *many = lx_and(g->a, whole, lx_at_least(g->a, spread.total.e, SPREAD));
        if (are_long(&spread) && !want->block && !want->unroll)
            spread = wide_columns(g, f);
        if (!asked && !add(g, v, n, spread, many))
            return;
        if (!add(g, v, n, variant(g, f, want, lanes, choose_tile(f, lanes)), whole) || lanes == 1)
            return;
        lanes = 1;
    }
}

/* ---- tiles that are held --------------------------------------------------------------------- */

/* Registers for what a thread holds of one term. */
uint32_t reduce_held_registers(const struct reduce_form *f, uint32_t lanes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->nread; i++) {
        const struct reduce_read *r = &f->read[i];
        const uint32_t bits = dtype_bits(r->sym->type), words = (bits + 31) / 32;
        bool varies = false;
        for (uint32_t k = 0; k < r->sym->rank; k++)
            varies |= f->axis[r->axis[k]].loop == f->lane;
        if (!reduce_moves(f, r))
            continue;
        if (varies && reduce_ends_in_lanes(f, r->sym->rank, r->axis))
            n += (bits * lanes + 31) / 32;
        else
            n += varies ? lanes * words : words;
    }
    return n ? n : 1;
}

static uint32_t ceil_of(int64_t n, uint32_t by)
{
    return (uint32_t)((n + by - 1) / by);
}

/* Rows and columns of a block's threads: as few rows as hold all terms in HELD registers each, FEW
 * at most, or in half as many again; and columns that together have a line of memory, less only
 * where there are too many terms. */
static bool choose_sides(const struct reduce_form *f, const struct reduce_options *want,
                         struct reduce_plan *p)
{
    enum { HELD = 32, FEW = 16, SIDES = 128, MOST = 1024, SECTOR = 32 };
    const uint32_t each = reduce_held_registers(f, p->lanes);
    const uint32_t bytes = p->lanes * (f->widest ? f->widest : 32) / 8;
    const struct amount *across = &f->loop[f->lane].n;
    for (uint32_t held = HELD; held <= HELD * 3 / 2; held += HELD / 2) {
        const uint32_t least = bytes < SECTOR ? SECTOR / bytes : 1;
        p->ty = 1;
        while (p->ty < MOST &&
               (ceil_of(p->rows.n, p->ty) * each > held || ceil_of(p->rows.n, p->ty) > FEW))
            p->ty *= 2;
        p->tx = p->ty < SIDES ? SIDES / p->ty : 1;
        while (p->tx * bytes < LINE)
            p->tx *= 2;
        while (across->is_known && p->tx > 1 && p->tx / 2 * (int64_t)p->lanes >= across->n)
            p->tx /= 2;
        while (p->tx > least && p->tx * p->ty > MOST)
            p->tx /= 2;
        p->tx = want->tile ? want->tile : p->tx;
        while (want->block && want->block % p->tx)
            p->tx /= 2;
        while (p->tx * p->ty < 32)
            p->ty *= 2;
        p->ty = want->block ? want->block / p->tx : p->ty;
        p->block = p->tx * p->ty;
        p->unroll = ceil_of(p->rows.n, p->ty);
        if (p->block <= MOST && p->unroll <= REDUCE_POSITIONS && p->unroll * each <= held)
            return true;
    }
    return false;
}

bool reduce_plan_tile(struct cg *g, const struct reduce_form *f, const struct reduce_options *want,
                      struct reduce_plan *v, uint32_t *n, struct buf *why)
{
    const struct amount *across = &f->loop[f->lane].n;
    const struct reduce_options alone = {.split = 1, .block = want->block};
    uint32_t lanes = reduce_choose_lanes(f, want);
    *n = 0;
    while (across->is_known && across->n % lanes)
        lanes /= 2;
    for (;; lanes = 1) {
        struct reduce_plan p = {.is_column = true, .lanes = lanes, .width = lanes, .slots = lanes};
        p.tx = p.ty = p.unroll = 1;
        choose_blocks(g, f, &alone, &p);
        if (!p.rows.is_known || p.rows.n < 1 || p.rows.n > REDUCE_POSITIONS * 1024)
            return lower_lacks(why, f->stage->eq[0]->span,
                               "how much is reduced is not known, or more than a block holds");
        if (!choose_sides(f, want, &p))
            return lower_lacks(why, f->stage->eq[0]->span, "it is more than a block holds");
        choose_blocks(g, f, &alone, &p);
        p.depth = reduce_known(g, p.unroll + block_depth(&p) + 2);
        if (!add(g, v, n, p, lx_is_multiple(g->a, across->e, lanes)) || lanes == 1)
            return true;
    }
}

/* ---- tiles of sizes that the launch knows ---------------------------------------------------- */

/* What a thread leaves in shared memory of the level that leaves most, in bytes. */
static uint32_t shared_bytes(const struct reduce_form *f, uint32_t lanes)
{
    uint32_t most = 0;
    for (uint32_t level = 0; level < f->nlevel; level++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < f->nresult; i++)
            if (f->result[i].level == level)
                n += lanes * (dtype_bits(reduce_type(&f->result[i])) / 8 +
                              (reduce_is_pair(&f->result[i]) ? 8 : 0));
        most = n > most ? n : most;
    }
    return most;
}

/* Tiles of some terms are wide, of many narrow: `least` threads or more. Rows are as many as hold
 * all terms, and blocks have several tiles where these are small. False: there is no room. */
static bool open_variant(struct cg *g, const struct reduce_form *f, uint32_t lanes, uint32_t least,
                         bool is_narrow, struct reduce_plan *p)
{
    enum { HELD = 32, LESS = 24, POSITIONS = 16, FEW = 8, LEAST = 4, SHARED = 40960 };
    enum { WIDE = 512, ACROSS = 32, ACROSS_SINGLE = 64 };
    const struct reduce_options alone = {.split = 1};
    const uint32_t each = reduce_held_registers(f, lanes), left = shared_bytes(f, lanes);
    *p = (struct reduce_plan){.is_column = true, .lanes = lanes, .width = lanes, .slots = lanes};
    p->tx = least;
    p->ty = 1;
    p->is_open = true;
    p->unroll = (is_narrow ? LESS : HELD) / each;
    p->unroll = p->unroll < POSITIONS ? p->unroll : POSITIONS;
    for (p->block = is_narrow ? 2 * WIDE : WIDE; p->block * left > SHARED;)
        p->block /= 2;
    if (p->unroll < LEAST || p->block < 4 * least)
        return false;
    while (p->unroll > FEW && p->unroll * lanes * f->weight > MOST_CODE)
        p->unroll /= 2;
    choose_blocks(g, f, &alone, p);
    struct lang_expr *one = lx_int(g->a, 1), *rows = lx_int(g->a, p->block / least);
    const uint32_t wanted = p->unroll < FEW ? p->unroll : FEW;
    const uint32_t widest = is_narrow ? 2 * least : lanes == 1 ? ACROSS_SINGLE : ACROSS;
    p->down = reduce_amount(g, lx_clamp(g->a, ceiling(g, p->rows, wanted).e, one, rows));
    /* as wide as there are threads for, and all tiles alike */
    const uint32_t most = p->block < WIDE ? p->block : WIDE;
    struct lang_expr *wide = lx_div(g->a, lx_int(g->a, most), p->down.e);
    wide = lx_clamp(g->a, wide, lx_int(g->a, least), lx_int(g->a, widest > least ? widest : least));
    wide = lx_ceil_div(g->a, p->groups.e, lx_max(g->a, one, lx_ceil_div(g->a, p->groups.e, wide)));
    p->across = reduce_amount(g, lx_max(g->a, one, wide));
    p->tiles = reduce_amount(g, lx_ceil_div(g->a, p->groups.e, p->across.e));
    struct lang_expr *threads = lx_mul(g->a, p->across.e, p->down.e);
    struct lang_expr *some = lx_div(g->a, lx_int(g->a, most < BLOCK ? most : BLOCK), threads);
    p->several = reduce_amount(g, lx_max(g->a, one, lx_min(g->a, some, p->outer.e)));
    struct lang_expr *deep = lx_ceil_div(g->a, p->outer.e, p->several.e);
    p->blocks = p->sharing = product(g, reduce_amount(g, deep), p->tiles);
    p->depth = reduce_known(g, p->unroll + log2_of(p->block) + 2);
    return true;
}

static struct lang_expr *most_terms(struct cg *g, const struct reduce_plan *p)
{
    return lx_at_most(g->a, p->rows.e, (int64_t)(p->block / p->tx) * p->unroll);
}

bool reduce_plan_open(struct cg *g, const struct reduce_form *f, struct reduce_plan *v, uint32_t *n,
                      struct lang_expr **holds, struct buf *why)
{
    enum { SECTOR = 32 };
    const struct reduce_options none = {0};
    const struct amount *across = &f->loop[f->lane].n;
    uint32_t lanes = reduce_choose_lanes(f, &none);
    *n = 0;
    while (across->is_known && across->n % lanes)
        lanes /= 2;
    for (bool goes_on = true; goes_on; lanes = 1) {
        const uint32_t bytes = lanes * (f->widest ? f->widest : 32) / 8;
        const uint32_t line = bytes < LINE ? (LINE / bytes < 32 ? LINE / bytes : 32) : 1;
        const uint32_t sector = bytes < SECTOR ? SECTOR / bytes : 1;
        struct lang_expr *whole = lx_is_multiple(g->a, across->e, lanes);
        goes_on = lanes > 1;
        for (uint32_t least = line; least; least = sector) {
            struct reduce_plan p;
            const bool fits = open_variant(g, f, lanes, least, least <= sector, &p);
            if (!fits && lanes == 1)
                return lower_lacks(why, f->stage->eq[0]->span, "it is more than a block holds");
            if (!fits)
                break;
            *holds = lx_and(g->a, whole, most_terms(g, &p));
            if (!add(g, v, n, p, *holds)) {
                goes_on = false;
                break;
            }
            int64_t always;
            if (least <= sector || (lang_const_int(most_terms(g, &p), &always) && always))
                break;
        }
    }
    if (*n == 0)
        return lower_lacks(why, f->stage->eq[0]->span, "it is more than a block holds");
    /* the last takes what is left, of which there is none where this does not hold */
    *holds = lx_and(g->a, *holds, lx_at_least(g->a, v[0].rows.e, 1));
    *holds = reduce_amount(g, *holds).e;
    if (*n > 1)
        v[*n - 1].when = lx_bool(g->a, true);
    else
        v[0].when = NULL;
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

bool reduce_plan(struct cg *g, const struct reduce_form *f, const struct reduce_options *want,
                 struct reduce_plan *v, uint32_t *n)
{
    const struct amount *across = &f->loop[f->lane].n;
    uint32_t lanes = reduce_choose_lanes(f, want), block = want->block ? want->block : BLOCK;
    bool column = !f->loop[f->lane].is_reduced;
    struct buf why = buf_in(g->a);
    *n = 0;
    if (f->is_tile && (want->split || want->unroll))
        return cg_error(g, schedule_span(g, want->split ? "split" : "unroll"),
                        "a block holds its tile: it has no '%s'", want->split ? "split" : "unroll");
    if (f->is_tile)
        return reduce_plan_tile(g, f, want, v, n, &why) ||
               cg_error(g, g->spec->schedule.v[0].key_span, "the tile does not fit: %s",
                        buf_text(&why));
    if (want->tile && !column)
        return cg_error(g, schedule_span(g, "tile"),
                        "'tile' is for results that lie side by side in memory; here the reduction "
                        "itself runs along the memory");
    if (want->tile > block || (want->tile && block % want->tile))
        return cg_error(g, schedule_span(g, "tile"),
                        "%u threads can't be rows of %u: 'tile' must divide 'block'",
                        (unsigned)block, (unsigned)want->tile);
    if (column) {
        add_columns(g, f, want, v, n, lanes);
        return true;
    }
    while (!is_flat(f) && across->is_known && across->n % lanes)
        lanes /= 2;
    struct lang_expr *whole = is_flat(f) ? lx_bool(g->a, true)
                                         : lx_is_multiple(g->a, across->e, lanes);
    if (add(g, v, n, variant(g, f, want, lanes, 1), whole))
        add(g, v, n, variant(g, f, want, 1, 1), lx_bool(g->a, true));
    return true;
}
