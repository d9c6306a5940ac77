/* Plans for wgmma: a block's tile, clusters, and as many stages as shared memory holds
 * (matmul/plan.h). */
#include <config.h>

#include "lower/matmul/plan.h"

enum {
    SPAN = 128,       /* bytes of k in a step */
    GROUP = 128,      /* threads of a warpgroup */
    ROWS = 64,        /* of an instruction */
    MOST_DEEP = 4,    /* of that, of computed operands */
    MOST_STAGES = 12, /* more hide no more */
    MOST_WIDE = 192,  /* of an instruction that four warpgroups' registers hold */
    LEAST_STAGES = 3, /* fewer hide too little */
    /* Of windows whose sizes are open, operations for an element that producers have registers for.
     */
    MOST_WINDOW = 48,
    MANY = 6, /* tiles of 128 x 128 for each multiprocessor */
    FEW = 32, /* rows, of which mma.sync was measured to read B as fast as cuBLAS or faster */
};

struct shape {
    uint16_t rows, columns;
};

/* Tall tiles by two warpgroups of 64 x n each, or of 128 x n; the first of equals is taken. */
static const struct shape shapes[] = {
    {128, 256}, {128, 128}, {128, 192}, {256, 128}, {192, 128}, {128, 224}, {128, 160},
    {128, 96},  {128, 64},  {192, 64},  {64, 256},  {64, 128},  {64, 192},  {64, 96},
    {64, 64},   {64, 32},   {64, 112},  {128, 112}, {64, 160},  {64, 224},  {64, 16},
};

/* Of windows, beside these: 8 images of 64 x 64 pixels of 320 channels, 3 x 3, took 84.5 us by
 * 256 x 160 and 93.9 by 128 x 160, 8 of 16 x 16 of 1280 82.1 and 94.6. */
static const struct shape of_windows = {256, 160};
/* And where threads copy them: 7 x 7 of 3 channels 198 us, 228 by 64 x 64. */
static const struct shape of_gathers = {256, 64};

/* That warpgroups take by turns. */
static const struct shape by_turns[] = {{128, 128}, {64, 256}, {64, 128}};

/* The usual number of warpgroups for so many rows. */
static uint32_t warpgroups(uint32_t rows)
{
    return rows % (2 * ROWS) == 0 ? 2 : rows % (3 * ROWS) == 0 ? 3 : 1;
}

/* turned: warpgroups share the columns, not the rows; pingpong: they take tiles by turns. */
struct way {
    bool turned, pingpong;
};

static struct matmul_plan plan_of(const struct planner *l, uint32_t rows, uint32_t columns,
                                  struct way way)
{
    const struct matmul_options *w = l->want;
    struct matmul_plan p = planner_new(l, MATMUL_WGMMA);
    const bool turned = way.turned, pingpong = way.pingpong || w->pingpong;
    const uint32_t usual = pingpong ? 1 : warpgroups(turned ? columns : rows);
    const uint32_t down = w->warps[0] ? w->warps[0] : turned ? 1 : usual;
    const uint32_t across = w->warps[0] ? w->warps[1] : turned ? usual : 1;
    p.turned = turned;
    p.bm = rows;
    p.bn = columns;
    const uint32_t bits = matmul_in_f16(&p) ? 16 : dtype_bits(l->f->operand[0].type);
    p.bk = w->shape[0] ? w->shape[2] : SPAN * 8 / bits;
    p.wm = rows / down;
    p.wn = columns / across;
    p.pingpong = pingpong;
    p.promotes = p.parts > 1 || (l->f->type == MATMUL_FP8 && !l->fast);
    p.split = w->split ? w->split : 1;
    const uint32_t wide = turned ? p.wm : p.wn; /* an instruction's columns */
    const uint32_t consumers = down * across * (pingpong ? 2 : 1);
    p.windows = (enum matmul_windows)w->windows;
    const bool works = (p.parts > 1 && !matmul_in_f16(&p)) || matmul_wgmma_computes(l->f, &p);
    p.producers = works && consumers <= 2 && (consumers < 2 || wide <= MOST_WIDE) ? 2 : 1;
    p.threads = GROUP * (p.producers + consumers);
    if (w->blocks || (p.split < 2 && !w->tiles))
        p.blocks = w->blocks ? w->blocks : MATMUL_BLOCKS_ALL;
    return p;
}

static uint32_t stage_bytes(const struct planner *l, const struct matmul_plan *p)
{
    const struct matmul_form *f = l->f;
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < f->noperand; i++)
        bytes += (f->operand[i].side == MATMUL_A ? p->bm : p->bn) * p->bk *
                 dtype_bits(f->operand[i].type) / 8;
    return bytes;
}

/* Has a block several tiles? Of its only one all stages can be on their way before the first sum is
 * made. */
static bool has_several(const struct planner *l, const struct matmul_plan *p)
{
    const struct matmul_size *s = &l->size;
    return s->batch * ceil_of(s->m / p->bm) * ceil_of(s->n / p->bn) >
           lower_multiprocessors(l->target);
}

/* Gives the plan as many stages as fit. Returns its bytes of shared memory; 0: no stages fit. */
static uint32_t with_stages(const struct planner *l, struct matmul_plan *p)
{
    uint32_t shared = 0;
    const uint32_t bytes = stage_bytes(l, p);
    const uint32_t most = bytes ? l->target->shared_optin / bytes : 0;
    p->stages = l->want->stages ? l->want->stages : most < MOST_STAGES ? most : MOST_STAGES;
    for (; p->stages > 1; p->stages--) {
        shared = matmul_shared(l->target, l->f, p);
        if (shared || l->want->stages)
            break;
    }
    if (!shared || l->want->stages || !has_several(l, p))
        return shared;
    /* a stage or two less, if results that take work need no patches then; plain ones were measured
     * to be worth none */
    struct matmul_plan less = *p;
    while (less.stages > LEAST_STAGES && less.stages + 2 > p->stages &&
           !matmul_wgmma_direct(l->target, l->f, &less))
        less.stages--;
    if (less.stages < p->stages && matmul_wgmma_works(l->target, l->f, &less)) {
        p->stages = less.stages;
        shared = matmul_shared(l->target, l->f, p);
    }
    return shared;
}

/* Is it a pair of 256 x 128 of 8-bit floats side by side, where one above the other is possible?
 * 4096 x 14336 x 4096 of e4m3 took 407 us by such and 397 by these, 8192 x 1024 x 8192 107 and 102,
 * though these have less in common. */
static bool is_in_row(const struct planner *l, const struct matmul_plan *p)
{
    return l->f->type == MATMUL_FP8 && p->bm == 256 && p->cluster[1] > 1 &&
           !(l->m && l->size.m <= p->bm);
}

/* Without and with clusters. */
static void consider_clusters(struct planner *l, struct matmul_plan *p)
{
    static const uint8_t clusters[][2] = {{1, 1}, {2, 1}, {1, 2}};
    const struct matmul_options *w = l->want;
    const uint32_t shared = with_stages(l, p);
    if (!shared)
        return;
    p->patched = !matmul_wgmma_direct(l->target, l->f, p);
    for (size_t i = 0; i < sizeof clusters / sizeof *clusters; i++) {
        p->cluster[0] = w->clusters[0] ? w->clusters[0] : clusters[i][0];
        p->cluster[1] = w->clusters[0] ? w->clusters[1] : clusters[i][1];
        if (is_in_row(l, p) && !w->clusters[0])
            continue;
        const bool idle = (l->m && l->size.m <= (p->cluster[0] - 1) * p->bm) ||
                          (l->n && l->size.n <= (p->cluster[1] - 1) * p->bn);
        if (w->clusters[0] || !idle)
            planner_consider(l, p,
                             p->cluster[0] * p->cluster[1] > 1 ? matmul_shared(l->target, l->f, p)
                                                               : shared);
        if (w->clusters[0])
            return;
    }
}

/* And with blocks that share the tile, where there are few. */
static void consider_splits(struct planner *l, struct matmul_plan *p)
{
    static const uint8_t splits[] = {2, 3, 4};
    const struct matmul_options *w = l->want;
    const double tiles = ceil_of(l->size.m / p->bm) * ceil_of(l->size.n / p->bn) * l->size.batch;
    const double steps = ceil_of(l->size.k / p->bk);
    consider_clusters(l, p);
    if (w->split || w->blocks || p->pingpong || !planner_knows_all(l))
        return;
    for (size_t i = 0; i < sizeof splits; i++) {
        const double share = ceil_of(steps / splits[i]);
        if (tiles * splits[i] > lower_multiprocessors(l->target) ||
            share * (splits[i] - 1) >= steps)
            return;
        p->split = splits[i];
        p->blocks = 0;
        consider_clusters(l, p);
    }
}

/* Would a smaller tile hold the same? */
static bool is_mostly_empty(const struct planner *l, const struct shape *t)
{
    return (l->m && t->rows > ROWS && t->rows >= 2 * l->size.m) ||
           (l->n && t->columns >= 2 * l->size.n && t->columns > 16);
}

/* Are elements of a window made one by one, whose places take more registers than producers have?
 */
static bool is_long_window(const struct planner *l, const struct matmul_plan *p)
{
    unsigned weight = 0;
    for (uint32_t i = 0; i < l->f->noperand; i++)
        weight += l->f->operand[i].weight;
    return l->f->slides && !planner_knows_all(l) && weight > MOST_WINDOW &&
           matmul_wgmma_computes(l->f, p);
}

/* Are rows so few filters of windows that its 64 are half empty, of many pixels? mma.sync has tiles
 * of 32 x 256 for these, and 1.3 times the speed. */
static bool is_half_empty(const struct planner *l)
{
    enum { LEAST = 17, MOST = 32, PIXELS = 4096 };
    return l->f->slides && planner_knows_all(l) && l->size.m >= LEAST && l->size.m <= MOST &&
           l->size.n >= PIXELS;
}

bool planner_takes_wgmma(const struct planner *l, struct buf *why)
{
    const enum matmul_by mma = l->want->mma;
    if (mma != MATMUL_BY_WGMMA && mma != MATMUL_BY_ANY && mma != MATMUL_BY_TF32X3 &&
        mma != MATMUL_BY_F16X3)
        return false;
    if (l->single || !ptx_target_has_wgmma(l->target))
        return false;
    struct planner free = *l;
    const struct matmul_options none = {0};
    free.want = &none;
    struct matmul_plan p = plan_of(&free, ROWS, ROWS, (struct way){0});
    p.stages = 2;
    if (!matmul_wgmma_fits(l->target, l->f, &p, why))
        return false;
    if (mma != MATMUL_BY_WGMMA && mma != MATMUL_BY_F16X3 && is_long_window(l, &p)) {
        if (why)
            buf_puts(why, "where a window of open sizes is takes too many registers");
        return false;
    }
    if (mma != MATMUL_BY_WGMMA && is_half_empty(l)) {
        if (why)
            buf_puts(why, "so few filters leave half of it idle");
        return false;
    }
    if (mma == MATMUL_BY_WGMMA || mma == MATMUL_BY_F16X3 || !l->m || l->size.m > FEW ||
        l->f->computes)
        return true;
    if (why)
        buf_printf(why, "up to %d rows leave most of it idle", FEW);
    return false;
}

/* Does it spare rounding or turning of B in shared memory that it is an instruction's left operand?
 * Or are its columns, in steps of 32, nearer to the number of rows than 128 or 192 are? */
static bool may_turn(const struct planner *l)
{
    const struct matmul_form *f = l->f;
    bool spares = f->slides && l->m && (int64_t)l->size.m % (2 * ROWS) != 0 &&
                  (int64_t)l->size.m % (3 * ROWS) != 0;
    for (uint32_t i = 0; i < f->noperand; i++)
        spares |= f->operand[i].side == MATMUL_B &&
                  (matmul_cut_of(&f->operand[i]) == MATMUL_AWAY || !f->operand[i].along_k);
    return l->type == MATMUL_TF32 && spares && l->want->warps[0] < 2;
}

/* Do pairs of blocks that share tiles of 128 x 64 along k just fill the machine, where B is turned
 * in shared memory? The model can't tell that this is the fastest: of tf32 128 x 4096 x 14336 took
 * 86 us so on an H100 and 140 in tiles of 64 x 64, 128 x 4096 x 4096 30 us and 40. */
static bool is_halved(const struct planner *l)
{
    enum { LEAST = 4096 };
    const struct matmul_size *s = &l->size;
    const double blocks = 2 * ceil_of(s->n / ROWS) * s->batch,
                 all = lower_multiprocessors(l->target);
    if (l->f->type != MATMUL_TF32 || !planner_knows_all(l) || l->want->split || l->want->blocks)
        return false;
    for (uint32_t i = 0; i < l->f->noperand; i++)
        if (!l->f->operand[i].plain ||
            (l->f->operand[i].side == MATMUL_B && l->f->operand[i].along_k))
            return false;
    return s->m > ROWS && s->m <= 2 * ROWS && blocks > 0.9 * all && blocks <= all && s->k >= LEAST;
}

/* Is a tile's end worth hiding behind the other warpgroup's products? Sums of a stage that are
 * added by threads keep one warpgroup from multiplying alone. */
static bool may_take_turns(const struct planner *l)
{
    const struct matmul_options *w = l->want;
    if (w->warps[0] || w->split || w->pingpong)
        return false;
    struct matmul_plan p = plan_of(l, ROWS, ROWS, (struct way){.pingpong = true});
    p.stages = 2;
    /* int8's, of 4 bytes each, are what memory takes long for, where tiles are many */
    const bool is_long = l->f->type == MATMUL_INT8 && l->f->out_bits > 16 &&
                         l->size.m * l->size.n * l->size.batch >=
                             MANY * 128.0 * 128.0 * lower_multiprocessors(l->target);
    return !p.promotes && matmul_wgmma_fits(l->target, l->f, &p, NULL) &&
           (is_long || !matmul_wgmma_direct(l->target, l->f, &p));
}

static void consider_shape(struct planner *l, const struct shape *t, struct way way)
{
    if (is_mostly_empty(l, t))
        return;
    struct matmul_plan p = plan_of(l, t->rows, t->columns, way);
    const struct matmul_plan one = p;
    const bool computes = matmul_wgmma_computes(l->f, &p);
    consider_splits(l, &p);
    /* what is computed is waited for once for each stage: longer ones bring more at a time */
    for (uint32_t n = 2; n <= MOST_DEEP && computes; n *= 2) {
        p = one;
        p.bk *= n;
        if (p.bk < 2 * l->size.k)
            consider_splits(l, &p);
    }
}

bool planner_consider_wgmma(struct planner *l)
{
    if (!planner_takes_wgmma(l, NULL))
        return false;
    const struct matmul_options *w = l->want;
    if (w->shape[0]) {
        struct matmul_plan p = planner_wgmma_named(l, w), turned = p;
        if (p.threads && !p.turned && may_turn(l)) {
            turned = plan_of(l, p.bm, p.bn, (struct way){.turned = true});
            if (turned.wm && turned.wn)
                consider_splits(l, &turned);
        }
        if (p.threads)
            consider_splits(l, &p);
        return false;
    }
    const bool halved = is_halved(l);
    /* computed turned is the first of equals: nobody waits for others, who round or turn B */
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *t = &shapes[i], turned = {t->columns, t->rows};
        if (halved && (t->rows != 2 * ROWS || t->columns != ROWS))
            continue;
        if (may_turn(l) && !halved)
            consider_shape(l, &turned, (struct way){.turned = true});
        consider_shape(l, t, (struct way){0});
    }
    if (l->f->slides) {
        const struct matmul_plan p = plan_of(l, ROWS, ROWS, (struct way){0});
        consider_shape(l, &of_windows, (struct way){0});
        if (matmul_wgmma_gathers(l->f, &p))
            consider_shape(l, &of_gathers, (struct way){0});
    }
    for (size_t i = 0; i < sizeof by_turns / sizeof *by_turns && may_take_turns(l); i++)
        consider_shape(l, &by_turns[i], (struct way){.pingpong = true});
    return halved && l->cost >= 0;
}

struct matmul_plan planner_wgmma_named(const struct planner *l, const struct matmul_options *w)
{
    struct planner named = *l;
    named.want = w;
    const uint32_t rows = w->shape[0] ? w->shape[0] : 2 * ROWS;
    const uint32_t columns = w->shape[0] ? w->shape[1] : 2 * ROWS;
    struct matmul_plan p =
        plan_of(&named, rows, columns, (struct way){.turned = w->warps[0] == 1 && w->warps[1] > 1});
    p.stages = w->stages ? w->stages : 2;
    p.cluster[0] = w->clusters[0];
    p.cluster[1] = w->clusters[1];
    if (!p.wm || !p.wn || rows > 1024 || columns > 1024)
        p.threads = 0;
    return p;
}
