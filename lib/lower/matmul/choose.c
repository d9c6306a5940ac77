/* The cheapest of a table of tiles, their stages and the number of blocks that share them
 * (matmul/plan.h). */
#include <config.h>

#include "lower/matmul/plan.h"

#include <assert.h>

enum {
    TYPICAL = 4096,          /* an extent that is not known */
    MOST_SIDE = 1024,        /* of a tile */
    COARSE = 4096,           /* terms of f32 in parts from which on bf16 does for small products */
    HEAVY_PAIR = 12,         /* instructions for each */
    MOST_SHARED = 160 << 10, /* bytes of more than 3 stages: the rest is the first cache's */
};

/* The model tells tiles of wgmma apart by some hundredths: another than the one that the fastest
 * kernels known have, which is considered first, must be that much cheaper. */
static const double WORTH = 0.97;

/* bk counts bytes for mma and elements for fma. */
struct tile {
    enum matmul_how how;
    uint16_t bm, bn, bk, wm, wn;
};
/* The last row is the smallest tile of fma: matmul_least() is that, and asserts it. */
static const struct tile tiles[] = {
    {MATMUL_MMA, 256, 128, 128, 64, 64}, {MATMUL_MMA, 128, 256, 128, 64, 64},
    {MATMUL_MMA, 256, 128, 64, 64, 64},  {MATMUL_MMA, 128, 128, 128, 64, 64},
    {MATMUL_MMA, 128, 128, 64, 64, 64},  {MATMUL_MMA, 128, 128, 128, 64, 32},
    {MATMUL_MMA, 128, 128, 64, 64, 32},  {MATMUL_MMA, 128, 64, 128, 64, 32},
    {MATMUL_MMA, 64, 128, 128, 32, 64},  {MATMUL_MMA, 64, 64, 128, 32, 32},
    {MATMUL_MMA, 64, 64, 32, 32, 32},    {MATMUL_MMA, 32, 32, 32, 16, 16},
    {MATMUL_MMA, 64, 32, 128, 32, 16},   {MATMUL_MMA, 32, 128, 128, 32, 32},
    {MATMUL_MMA, 16, 16, 256, 16, 16},   {MATMUL_MMA, 16, 32, 256, 16, 16},
    {MATMUL_MMA, 32, 64, 128, 16, 32},   {MATMUL_MMA, 16, 128, 128, 16, 32},
    {MATMUL_MMA, 16, 64, 128, 16, 16},   {MATMUL_MMA, 32, 256, 128, 32, 64},
    {MATMUL_MMA, 16, 256, 128, 16, 64},  {MATMUL_SIMT, 256, 128, 16, 16, 8},
    {MATMUL_SIMT, 128, 256, 16, 8, 16},  {MATMUL_SIMT, 128, 256, 8, 8, 16},
    {MATMUL_SIMT, 256, 128, 8, 16, 8},   {MATMUL_SIMT, 128, 128, 8, 8, 16},
    {MATMUL_SIMT, 64, 128, 8, 8, 16},    {MATMUL_SIMT, 128, 128, 8, 8, 8},
    {MATMUL_SIMT, 128, 64, 16, 8, 8},    {MATMUL_SIMT, 64, 128, 16, 8, 8},
    {MATMUL_SIMT, 128, 64, 8, 8, 4},     {MATMUL_SIMT, 64, 64, 8, 8, 8},
    {MATMUL_SIMT, 64, 64, 16, 4, 8},     {MATMUL_SIMT, 64, 64, 8, 4, 4},
    {MATMUL_SIMT, 32, 64, 8, 4, 8},      {MATMUL_SIMT, 32, 32, 8, 4, 4},
};
enum { TILES = sizeof tiles / sizeof *tiles };

static void set_tile(struct matmul_plan *p, const struct tile *t)
{
    p->bm = t->bm;
    p->bn = t->bn;
    p->bk = t->bk;
    p->wm = t->wm;
    p->wn = t->wn;
}

/* A part of wm x wn is a warp's for mma, a thread's for fma. */
static uint32_t threads_of(const struct matmul_plan *p)
{
    return p->bm / p->wm * (p->bn / p->wn) * (p->how == MATMUL_MMA ? 32 : 1);
}

static bool is_least(const struct tile *least)
{
    for (size_t i = 0; i < TILES; i++)
        if (tiles[i].how == MATMUL_SIMT &&
            (tiles[i].bm < least->bm || tiles[i].bn < least->bn || tiles[i].bk < least->bk ||
             tiles[i].wm < least->wm || tiles[i].wn < least->wn))
            return false;
    return least->how == MATMUL_SIMT;
}

struct matmul_plan matmul_least(void)
{
    struct matmul_plan p = {.how = MATMUL_SIMT, .stages = 2};
    assert(is_least(&tiles[TILES - 1]));
    set_tile(&p, &tiles[TILES - 1]);
    p.threads = threads_of(&p);
    return p;
}

/* ---- extents --------------------------------------------------------------------------------- */

static double extent(const struct lang_symbol *index, bool *known)
{
    int64_t n;
    *known = !index || lang_const_int(index->dims[0], &n);
    return !index ? 1 : *known ? (double)n : TYPICAL;
}

void planner_begin(struct planner *l)
{
    const struct matmul_form *f = l->f;
    l->size.m = extent(f->i, &l->m);
    l->size.n = extent(f->j, &l->n);
    l->size.k = extent(f->k, &l->k);
    l->size.batch = 1;
    l->batch = true;
    for (uint32_t i = 0; i < f->nbatch; i++) {
        bool known;
        const double n = extent(f->batch[i], &known);
        l->batch &= known;
        l->size.batch *= known ? n : 1;
    }
}

bool planner_knows_all(const struct planner *l)
{
    return l->m && l->n && l->k && l->batch;
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* The largest power of two up to `most` that divides the extent, where that is known. */
static uint32_t dividing(const struct lang_expr *dim, uint32_t most)
{
    int64_t n;
    if (lang_const_int(dim, &n))
        while (most > 1 && n % most)
            most /= 2;
    return most;
}

static uint32_t lanes_of(unsigned bits)
{
    const uint32_t n = bits ? 128 / bits : 1;
    return n > MAP_LANES ? MAP_LANES : n ? n : 1;
}

static void align(const struct planner *l, struct matmul_plan *p)
{
    const struct matmul_form *f = l->f;
    for (uint32_t i = 0; i < f->noperand; i++) {
        const struct matmul_operand *o = &f->operand[i];
        uint32_t n = l->single ? 1 : lanes_of(matmul_in_f16(p) ? 16 : o->bits);
        if (p->how != MATMUL_THIN && p->how != MATMUL_WGMMA && n > 8 && !o->plain)
            n = 8; /* what is computed goes through registers */
        n = dividing(o->eq->sym->dims[o->eq->sym->rank - 1], n);
        if (o->main && o->main->rank)
            n = dividing(o->main->dims[o->main->rank - 1], n);
        if (o->gather && o->gather->run)
            n = dividing(o->gather->run, n);
        else if (o->gather && p->how == MATMUL_MMA && o->bits == 32)
            n = 1; /* which is copied as it is */
        p->align[i] = n;
    }
    const struct lang_symbol *out = f->stage->eq[0]->sym;
    p->store = l->single ? 1 : dividing(out->dims[out->rank - 1], lanes_of(f->out_bits));
}

/* ---- shares ---------------------------------------------------------------------------------- */

/* The number of shares that have something to do, of `split`. */
uint32_t planner_shares(const struct planner *l, const struct matmul_plan *p, uint32_t split)
{
    enum { MOST = 1000000000 };
    const double all = l->k ? ceil_of(l->size.k / p->bk) : l->size.k / p->bk + 1;
    const uint32_t steps = all > MOST ? MOST : (uint32_t)all;
    const uint32_t per = matmul_divide_up(steps, split);
    return per ? matmul_divide_up(steps, per) : 1;
}

/* ---- the cheapest ---------------------------------------------------------------------------- */

static bool is_wanted(const struct planner *l, const struct matmul_plan *p)
{
    const struct matmul_options *w = l->want;
    const bool wgmma = p->how == MATMUL_WGMMA, mma = p->how == MATMUL_MMA;
    const bool by_wgmma = w->clusters[0] || w->pingpong || w->windows; /* what it alone has */
    const bool how = w->mma == MATMUL_BY_ANY ? wgmma || mma || !w->blocks
                     : w->mma == MATMUL_BY_WGMMA || w->mma == MATMUL_BY_F16X3 ? wgmma
                     : w->mma == MATMUL_BY_NONE                               ? !mma && !wgmma
                     : w->mma == MATMUL_BY_TF32X3 ? wgmma || (mma && !by_wgmma)
                                                  : mma;
    return how && (!w->stages || w->stages == p->stages) && (!w->split || w->split == p->split) &&
           (!w->shape[0] ||
            (w->shape[0] == p->bm && w->shape[1] == p->bn && w->shape[2] == p->bk)) &&
           (wgmma || !w->warps[0] || w->warps[0] * w->warps[1] * 32 == p->threads);
}

/* Has the plan, of wgmma, the usual tile? Others are taken where they are cheaper by WORTH. Blocks
 * that share a tile are not known to be the fastest: 512 x 4096 x 14336 of bf16 took 105 us by two
 * for each tile on an H100, where the model says 97, and 96 by tiles of 128 x 128, where it says
 * 95. */
static bool is_usual(const struct matmul_plan *p)
{
    if (p->split > 1)
        return false;
    if (p->parts > 1)
        return p->bm == (matmul_in_f16(p) ? 256 : 128) && p->bn == 128;
    return p->turned ? p->bm == 256 && p->bn == 128 : p->bm == 128 && p->bn == 256;
}

void planner_consider(struct planner *l, struct matmul_plan *p, uint32_t shared)
{
    if (!shared || !is_wanted(l, p) || (p->split > 1 && l->f->compares))
        return;
    const double cost = matmul_cost(l->target, l->f, p, &l->size, shared);
    const bool other = p->how == MATMUL_WGMMA && l->best.how == MATMUL_WGMMA &&
                       is_usual(&l->best) && !is_usual(p);
    if (l->cost >= 0 && cost >= l->cost * (other ? WORTH : 1))
        return;
    l->cost = cost;
    l->best = *p;
}

static void consider_splits(struct planner *l, struct matmul_plan *p)
{
    uint32_t shared = matmul_shared(l->target, l->f, p);
    static const uint8_t splits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
    const double blocks = ceil_of(l->size.m / p->bm) * ceil_of(l->size.n / p->bn) * l->size.batch;
    uint32_t before = 0;
    if (!shared && p->as_f16) {
        p->as_f16 = false;
        shared = matmul_shared(l->target, l->f, p);
    }
    if (!shared || (p->stages > 3 && shared > MOST_SHARED && !l->want->stages))
        return;
    if (p->blocks) {
        planner_consider(l, p, shared);
        return;
    }
    /* of fma also as many as make a block for each multiprocessor */
    const uint32_t fills = blocks < 1 ? 1 : (uint32_t)(lower_multiprocessors(l->target) / blocks);
    const size_t n = sizeof splits + (p->how == MATMUL_SIMT && planner_knows_all(l) && fills > 1);
    for (size_t i = 0; i < n; i++) {
        if (i && blocks > 2 * lower_multiprocessors(l->target))
            return; /* there is work for all, and sums to keep are many */
        const uint32_t split = i < sizeof splits ? splits[i] : fills;
        p->split = l->want->split ? l->want->split : planner_shares(l, p, split);
        if (p->split == before)
            continue;
        before = p->split;
        planner_consider(l, p, shared);
    }
}

struct matmul_plan planner_new(const struct planner *l, enum matmul_how how)
{
    struct matmul_plan p = {.how = how, .type = l->f->type, .parts = 1, .split = 1};
    p.group = l->want->group ? l->want->group : 8;
    if (how == MATMUL_MMA || (how == MATMUL_WGMMA && l->parts > 1)) {
        p.type = l->type;
        p.parts = l->parts;
    }
    align(l, &p);
    return p;
}

/* Bits of an element in shared memory. */
static unsigned element_bits(const struct planner *l)
{
    return dtype_bits(l->f->operand[0].type);
}

/* Does it pay to multiply the plan's tf32 as f16? It does for large tiles of 128 bytes of k, of f32
 * that are rounded and come in fours. */
static bool takes_as_f16(const struct planner *l, const struct matmul_plan *p)
{
    enum {
        LEAST_LANES = 4,      /* elements that one load of a thread brings: 16 bytes */
        TERMS = 32,           /* of k in a stage: 128 bytes */
        LEAST_WARP = 64 * 64, /* of a warp's tile, elements */
    };
    if (p->how != MATMUL_MMA || p->type != MATMUL_TF32 || p->parts > 1 || l->want->blocks ||
        l->want->mma == MATMUL_BY_TF32 || p->wm * p->wn < LEAST_WARP || p->bk != TERMS)
        return false;
    for (uint32_t i = 0; i < l->f->noperand; i++)
        if (!l->f->operand[i].cut || p->align[i] < LEAST_LANES)
            return false;
    return true;
}

/* Limits to time, as measured on an H100 when the model was fitted to sweeps there ("Fit the cost
 * model to sweeps on an H100"): products of 8 bits and of several parts do better in smaller tiles
 * than the model says. The commit gives what was won by all of it (1024^3 took 16 us and takes 8.4,
 * 512 x 4096 x 4096 61 and 40), not the times of single tiles. */
enum {
    /* The tile of products of 8 bits has at most so many elements, and at least so many bytes of k
     * in a stage. */
    BYTES_MOST_TILE = 128 * 128,
    BYTES_LEAST_TERMS = 128,
    /* So small a tile is for no more rows than it has, of 8-bit floats: 16 x 4096 x 4096 took 8.9
     * us in tiles of 16 x 16 on an H100, and 10.3 in tiles of 32 x 64; 16 x 14336 x 4096 25 us in
     * tiles of 16 x 16 and 22.9 in tiles of 16 x 32. */
    NARROW_TILE = 16 * 32,
    NARROW_STAGES = 4,
    /* So long a tile of so few rows is for windows of known sizes: with 32 filters of 3 x 3 and 3 x
     * 7 it took 0.72 and 1.57 ms on an H100 where tiles of 64 x 256 of wgmma, half of them empty,
     * took 0.94 and 2.08. */
    FEW_ROWS = 32,
    LONG_COLUMNS = 256,
    /* A tile of products in parts of so many elements has at most so many bytes of k in a stage. */
    PARTS_LARGE_TILE = 128 * 128,
    PARTS_MOST_TERMS = 64,
    /* A tile of fma has at most so many columns where the strides are known at launch only: one of
     * rows is better then. */
    OPEN_MOST_COLUMNS = 128,
};

static void consider_tile(struct planner *l, const struct tile *t)
{
    struct matmul_plan p = planner_new(l, t->how);
    set_tile(&p, t);
    const bool is_mma = t->how == MATMUL_MMA;
    /* parts are made of fewer words ahead where a warp is the longer along an instruction's 16 */
    const bool swaps = is_mma && l->parts > 1 && p.bm == p.bn && !l->want->warps[0];
    if (swaps && matmul_mma_turned(l->f)) {
        p.wm = t->wn;
        p.wn = t->wm;
    }
    if (is_mma)
        p.bk = t->bk * 8 / element_bits(l);
    p.coarse = is_mma && p.parts > 1 && l->k && l->size.k >= COARSE && p.bk % 16 == 0;
    p.threads = threads_of(&p);
    const bool as_f16 = takes_as_f16(l, &p);
    p.blocks = is_mma ? l->want->blocks : 0;
    const uint32_t sums = l->f->nproduct * p.wm * p.wn * dtype_bits(l->f->sum) / 32;
    const uint32_t most = !l->f->pairs                      ? 128
                          : l->f->pair_weight >= HEAVY_PAIR ? 16
                          : l->f->computes                  ? 32
                                                            : 64;
    /* terms of pairs take registers, too, and code; but the smallest tile must do */
    if (!is_mma && sums > most && (!l->f->pairs || p.wm * p.wn > 16))
        return;
    /* Of equals the first is taken. fma of 32 bits is best with two: 4096^3 on an H100 took 2595 to
     * 2818 us by layout, in tiles of 128 x 256 x 16, and with three 2665 to 3408. */
    static const uint8_t by_mma[] = {4, 3, 5, 6, 2}, by_fma[] = {2, 3}, of_f64[] = {3, 2};
    const bool is_f64 = l->f->sum == DT_F64, is_open = !planner_knows_all(l);
    const uint8_t *stages = is_mma ? by_mma : is_f64 ? of_f64 : by_fma;
    const size_t n = is_mma ? sizeof by_mma : is_open && !is_f64 ? 1 : sizeof by_fma;
    for (size_t i = 0; i < n && !l->want->stages; i++) {
        if (is_mma && (uint32_t)t->bm * t->bn == NARROW_TILE && stages[i] > NARROW_STAGES)
            continue;
        p.stages = stages[i];
        p.as_f16 = as_f16;
        consider_splits(l, &p);
    }
    if (l->want->stages) {
        p.stages = l->want->stages;
        p.as_f16 = as_f16;
        consider_splits(l, &p);
    }
}

/* A tile that the schedule names, with all warps that it may have. */
static void consider_named(struct planner *l)
{
    const struct matmul_options *w = l->want;
    struct tile t = {.bm = (uint16_t)w->shape[0], .bn = (uint16_t)w->shape[1]};
    if (w->shape[0] > MOST_SIDE || w->shape[1] > MOST_SIDE || w->shape[2] > MOST_SIDE)
        return;
    for (int how = MATMUL_SIMT; how <= MATMUL_MMA; how++)
        for (uint32_t r = w->warps[0] ? w->warps[0] : 1; r <= 32; r *= 2) {
            for (uint32_t c = w->warps[0] ? w->warps[1] : 1; c <= 32; c *= 2) {
                const uint32_t down = how == MATMUL_MMA ? r : 4 * r;
                const uint32_t across = how == MATMUL_MMA ? c : 8 * c;
                if (t.bm % down || t.bn % across || t.bm / down > 1024)
                    continue;
                t.how = (enum matmul_how)how;
                t.wm = (uint16_t)(t.bm / down);
                t.wn = (uint16_t)(t.bn / across);
                t.bk = (uint16_t)(w->shape[2] * (how == MATMUL_MMA ? element_bits(l) / 8 : 1));
                consider_tile(l, &t);
                if (w->warps[0])
                    break;
            }
            if (w->warps[0])
                break;
        }
}

/* ---- what the model can't tell --------------------------------------------------------------- */

/* Limits to the code: a warp's products and loads are written out for each step of a stage. Where
 * contractions are heavy and sizes open, there is one tile, of these; little ones are for what is
 * not aligned, alone ("Keep the code for open sizes short"). "Convert 8-bit floats in small tiles
 * where that is software and sizes are open" added the limits to these. Neither commit gives
 * figures. */
enum {
    /* A little tile has at most so many elements, and bytes of k in a stage (fma: elements). */
    LITTLE_TILE = 64 * 64,
    LITTLE_TERMS = 32,
    /* The tile of a heavy contraction has at most so many elements for a warp, and bytes of k in a
     * stage. */
    SHORT_WARP = 32 * 64,
    SHORT_TERMS = 64,
    /* A tile of mma.sync that converts e4m3 or e5m2 one by one has at most so many elements. */
    CONVERTED_SINGLE = 32 * 32,
    /* From this sm_ on an instruction converts them to f16. */
    HAS_CONVERSION = 89,
};

static uint32_t area(const struct tile *t)
{
    return (uint32_t)t->bm * t->bn;
}

static bool is_little(const struct tile *t)
{
    return t->bk <= LITTLE_TERMS && area(t) <= LITTLE_TILE;
}

/* Is much code what a tile of mma.sync would be, 8-bit floats being converted by many instructions
 * each? */
static bool converts_long(const struct planner *l)
{
    return l->shorter && l->f->type == MATMUL_FP8 && l->target->sm < HAS_CONVERSION;
}

static bool is_sensible_mma(const struct planner *l, const struct tile *t)
{
    if (converts_long(l))
        return area(t) <= (l->single ? CONVERTED_SINGLE : LITTLE_TILE) && t->bk <= LITTLE_TERMS;
    if (l->single || is_little(t)) /* of little tiles the larger one is for single elements */
        return l->single && is_little(t) && t->bm == 64;
    if (area(t) <= NARROW_TILE)
        return l->f->type == MATMUL_FP8 && l->m && l->size.m <= t->bm;
    if (t->bm <= FEW_ROWS && t->bn == LONG_COLUMNS && (!l->f->slides || !planner_knows_all(l)))
        return false;
    if (l->type == MATMUL_INT8 && (area(t) > BYTES_MOST_TILE || t->bk < BYTES_LEAST_TERMS))
        return false;
    return l->parts == 1 || area(t) < PARTS_LARGE_TILE || t->bk <= PARTS_MOST_TERMS;
}

/* Is the tile of the table worth a look, as far as measurements say more than the model? */
static bool is_sensible(const struct planner *l, const struct tile *t)
{
    const bool is_mma = t->how == MATMUL_MMA;
    const bool is_long = (uint32_t)t->wm * t->wn > SHORT_WARP || t->bk > SHORT_TERMS;
    if (is_mma)
        return !(l->looks && ptx_target_has_wgmma(l->target)) && is_sensible_mma(l, t) &&
               (!l->shorter || l->single || converts_long(l) || !is_long);
    if (l->single)
        return is_little(t);
    return (!l->shorter || !is_long) && (t->bn <= OPEN_MOST_COLUMNS || planner_knows_all(l));
}

/* Parts of f16 beside those of tf32, where these are taken without being asked for. */
static void consider_f16(struct planner *l)
{
    const enum matmul_type type = l->type;
    if (!l->looks || type != MATMUL_TF32 || !planner_knows_all(l))
        return;
    l->type = MATMUL_F16;
    planner_consider_wgmma(l);
    l->type = type;
}

void planner_consider_tiles(struct planner *l)
{
    const bool alone = planner_consider_wgmma(l);
    consider_f16(l);
    if (alone || l->want->mma == MATMUL_BY_WGMMA || l->want->mma == MATMUL_BY_F16X3)
        return;
    if (l->want->shape[0]) {
        consider_named(l);
        return;
    }
    for (size_t i = 0; i < TILES; i++)
        if (is_sensible(l, &tiles[i]))
            consider_tile(l, &tiles[i]);
}
