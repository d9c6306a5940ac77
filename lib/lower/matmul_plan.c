/* Sizes of a contraction's tiles and variants for the sizes that the launch brings (matmul.h).
 *
 * Where all extents are known one plan is chosen, the cheapest of a table of tiles with their stages and splits by the
 * model of matmul_cost.c. Else there are a few variants, of which the launch takes the first that its sizes allow:
 *
 *     rows   m <= 4                     B is read once, no tile is kept (matmul_thin.c)
 *     small  fewer large tiles than multiprocessors: small ones, which blocks share along k
 *     tile   large tiles
 *     any    what is not made of whole vectors: small tiles, single elements
 *
 * What a schedule names is taken as it is, and the cheapest of what it leaves open.
 */
#include <config.h>

#include "lower/matmul_cost.h"

enum {
    TYPICAL = 4096, /* an extent that is not known */
    FEW_ROWS = 4,   /* for which, with 1 row too, products take less time than reading B does */
    MOST_ROWS = 16,
    MOST_SPLIT = 32,
    MOST_OPEN = 8,           /* shares, where they are counted at launch */
    HEAVY = 16,              /* of operands and epilogue */
    MOST_SIDE = 1024,        /* of a tile */
    MOST_SHARED = 160 << 10, /* bytes of more than 3 stages: the rest is the first cache's */
    MOST_SUMS = 64,          /* of a thread */
    MOST_CODE = 1500,        /* instructions */
    FLIGHT = 8,              /* accesses of a thread that are on their way together */
    LINE = 128,              /* bytes */
    BUSY = 1024,             /* threads of a multiprocessor that cover the memory's latency */
};

/* bk of mma: bytes; of fma: elements. */
struct tile {
    enum matmul_how how;
    uint16_t bm, bn, bk, wm, wn;
};
static const struct tile tiles[] = {
    {MATMUL_MMA, 256, 128, 128, 64, 64}, {MATMUL_MMA, 128, 256, 128, 64, 64},
    {MATMUL_MMA, 128, 128, 64, 64, 64},  {MATMUL_MMA, 128, 128, 128, 64, 64},
    {MATMUL_MMA, 128, 128, 128, 64, 32}, {MATMUL_MMA, 128, 256, 64, 64, 64},
    {MATMUL_MMA, 128, 64, 128, 64, 32},  {MATMUL_MMA, 64, 128, 128, 32, 64},
    {MATMUL_MMA, 64, 64, 128, 32, 32},   {MATMUL_MMA, 64, 64, 32, 32, 32},
    {MATMUL_MMA, 128, 128, 64, 64, 32},  {MATMUL_MMA, 64, 32, 128, 32, 16},
    {MATMUL_MMA, 32, 128, 128, 32, 32},  {MATMUL_MMA, 32, 64, 128, 16, 32},
    {MATMUL_MMA, 16, 128, 128, 16, 32},  {MATMUL_MMA, 16, 64, 128, 16, 16},
    {MATMUL_SIMT, 128, 128, 8, 8, 8},    {MATMUL_SIMT, 128, 64, 8, 8, 8},
    {MATMUL_SIMT, 128, 64, 8, 8, 4},     {MATMUL_SIMT, 64, 128, 8, 8, 8},
    {MATMUL_SIMT, 64, 64, 8, 8, 8},      {MATMUL_SIMT, 64, 64, 16, 4, 8},
    {MATMUL_SIMT, 64, 64, 8, 4, 4},      {MATMUL_SIMT, 32, 64, 8, 4, 8},
    {MATMUL_SIMT, 32, 32, 8, 4, 4},
};

struct planner {
    struct cg *g;
    const struct matmul_form *f;
    const struct lower_plan *want;
    bool m, n, k, batch;     /* are they known? */
    struct matmul_size size; /* what is not: typical */
    enum matmul_type type;   /* of mma.sync; of f32: tf32 */
    uint32_t parts;
    bool shorter; /* no large tiles of warps: they are much code */
    bool single;  /* elements, not vectors: of small tiles, for that is much code */
    struct matmul_plan best;
    double cost; /* of best; < 0: there is none */
};

/* ---- extents ----------------------------------------------------------------------------------------- */

static double extent(const struct lang_symbol *index, bool *known)
{
    int64_t n;
    *known = !index || lang_const_int(index->dims[0], &n);
    return !index ? 1 : *known ? (double)n : TYPICAL;
}

static const char *text_of(struct cg *g, const struct lang_symbol *index)
{
    if (!index)
        return "1";
    const struct lang_expr *dim = index->dims[0];
    const char *text = lang_expr_text(g->a, dim);
    int64_t n;
    return inspect_strip(dim)->kind == E_NAME || lang_const_int(dim, &n)
               ? text
               : arena_printf(g->a, "(%s)", text);
}

static void find_sizes(struct planner *l)
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

static bool is_known(const struct planner *l)
{
    return l->m && l->n && l->k && l->batch;
}

/* Tiles of this size: a text of the launch. */
static const char *tiles_text(struct planner *l, uint32_t bm, uint32_t bn)
{
    struct cg *g = l->g;
    struct buf b = buf_in(g->a);
    if (l->f->i)
        buf_printf(&b, "ceil_div(%s, %u) * ", text_of(g, l->f->i), (unsigned)bm);
    buf_printf(&b, "ceil_div(%s, %u)", text_of(g, l->f->j), (unsigned)bn);
    for (uint32_t i = 0; i < l->f->nbatch; i++)
        buf_printf(&b, " * %s", text_of(g, l->f->batch[i]));
    return buf_text(&b);
}

/* ---- vectors ----------------------------------------------------------------------------------------- */

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
        uint32_t n = l->single ? 1 : lanes_of(o->bits);
        if (p->how != MATMUL_THIN && n > 8 && !o->plain)
            n = 8; /* what is computed goes through registers */
        n = dividing(o->eq->sym->dims[o->eq->sym->rank - 1], n);
        if (o->main && o->main->rank)
            n = dividing(o->main->dims[o->main->rank - 1], n);
        p->align[i] = n;
    }
    p->store = l->single ? 1 : dividing(f->j->dims[0], lanes_of(f->out_bits));
}

/* ---- shares ------------------------------------------------------------------------------------------ */

static uint32_t divide_up(uint32_t n, uint32_t by)
{
    return (n + by - 1) / by;
}

/* As many shares as have something to do. */
static uint32_t shares(const struct planner *l, const struct matmul_plan *p, uint32_t split)
{
    const double all = l->size.k / p->bk + 1;
    const uint32_t steps = all > 1e9 ? 1000000000
                           : l->k    ? divide_up((uint32_t)l->size.k, p->bk)
                                     : (uint32_t)all;
    const uint32_t per = divide_up(steps, split);
    return per ? divide_up(steps, per) : 1;
}

/* At most p->split of them, as many as make `blocks` blocks of all tiles. */
static const char *splits_text(struct planner *l, const struct matmul_plan *p, unsigned blocks)
{
    struct cg *g = l->g;
    if (p->split == 1)
        return NULL;
    if (is_known(l) || l->want->split)
        return arena_printf(g->a, "%u", (unsigned)p->split);
    return arena_printf(g->a, "clamp(ceil_div(%u, max(1, %s)), 1, clamp(%s / %u, 1, %u))", blocks,
                        tiles_text(l, p->bm, p->bn), text_of(g, l->f->k),
                        (unsigned)(p->bk * (p->how == MATMUL_THIN ? p->stages : 4)),
                        (unsigned)p->split);
}

/* Additions on a term's way into the sum, but those of mma.sync. */
static const char *depth_text(struct planner *l, const struct matmul_plan *p)
{
    struct cg *g = l->g;
    const char *share = text_of(g, l->f->k);
    if (p->split > 1)
        share = arena_printf(g->a, "ceil_div(ceil_div(%s, %u), %s) * %u", share, (unsigned)p->bk,
                             p->splits, (unsigned)p->bk);
    if (p->how == MATMUL_THIN) {
        const uint32_t along = p->threads / (p->bn / p->wn);
        return arena_printf(g->a, "ceil_div(%s, %u) + %u", share, (unsigned)along,
                            (unsigned)(p->bk / along + 5 + along / 32 + p->split));
    }
    if (p->how == MATMUL_MMA)
        return arena_printf(g->a, "%u", (unsigned)p->split);
    return p->split > 1 ? arena_printf(g->a, "%s + %u", share, (unsigned)p->split) : share;
}

/* ---- the cheapest ------------------------------------------------------------------------------------ */

static bool is_wanted(const struct planner *l, const struct matmul_plan *p)
{
    const struct lower_plan *w = l->want;
    return (!w->stages || w->stages == p->stages) && (!w->split || w->split == p->split) &&
           (w->mma == LOWER_MMA_ANY || (w->mma == LOWER_MMA_NONE) == (p->how != MATMUL_MMA)) &&
           (!w->shape[0] ||
            (w->shape[0] == p->bm && w->shape[1] == p->bn && w->shape[2] == p->bk)) &&
           (!w->warps[0] || w->warps[0] * w->warps[1] * 32 == p->threads);
}

static void consider(struct planner *l, struct matmul_plan *p, uint32_t shared)
{
    if (!shared || !is_wanted(l, p))
        return;
    const double cost = matmul_cost(l->g, l->f, p, &l->size, shared);
    if (l->cost >= 0 && cost >= l->cost)
        return;
    l->cost = cost;
    l->best = *p;
}

static void consider_splits(struct planner *l, struct matmul_plan *p)
{
    const uint32_t shared = matmul_shared(l->g, l->f, p);
    static const uint8_t splits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
    const double blocks = ceil_of(l->size.m / p->bm) * ceil_of(l->size.n / p->bn) * l->size.batch;
    uint32_t before = 0;
    if (!shared || (p->stages > 3 && shared > MOST_SHARED && !l->want->stages))
        return;
    for (size_t i = 0; i < sizeof splits; i++) {
        if (i && blocks > 2 * matmul_multiprocessors(l->g))
            return; /* there is work for all, and sums to keep are many */
        p->split = l->want->split ? l->want->split : shares(l, p, splits[i]);
        if (p->split == before)
            continue;
        before = p->split;
        consider(l, p, shared);
    }
}

static struct matmul_plan begin(const struct planner *l, enum matmul_how how)
{
    struct matmul_plan p = {.how = how, .type = l->f->type, .parts = 1, .split = 1};
    p.group = l->want->group ? l->want->group : 8;
    if (how == MATMUL_MMA) {
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

static void consider_tile(struct planner *l, const struct tile *t)
{
    struct matmul_plan p = begin(l, t->how);
    p.bm = t->bm;
    p.bn = t->bn;
    p.wm = t->wm;
    p.wn = t->wn;
    const bool is_mma = t->how == MATMUL_MMA;
    p.bk = is_mma ? t->bk * 8 / element_bits(l) : t->bk;
    p.threads = p.bm / p.wm * (p.bn / p.wn) * (is_mma ? 32 : 1);
    const uint32_t sums = l->f->nproduct * p.wm * p.wn * dtype_bits(l->f->sum) / 32;
    if (!is_mma && sums > 128)
        return;
    if (l->want->stages || !is_mma) {
        p.stages = l->want->stages ? l->want->stages : 2;
        consider_splits(l, &p);
        return;
    }
    static const uint8_t stages[] = {4, 3, 5, 6, 2}; /* of equals the first */
    for (size_t i = 0; i < sizeof stages; i++) {
        p.stages = stages[i];
        consider_splits(l, &p);
    }
}

/* A tile that the schedule names, with all warps that it may have. */
static void consider_named(struct planner *l)
{
    const struct lower_plan *w = l->want;
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

static void consider_tiles(struct planner *l)
{
    if (l->want->shape[0]) {
        consider_named(l);
        return;
    }
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        const struct tile *t = &tiles[i];
        const bool is_little = t->bk <= 32 && t->bm * t->bn <= 64 * 64;
        if (l->single ? is_little : t->how != MATMUL_MMA || t->bk > 32)
            if (!l->shorter || (t->wm * t->wn <= 32 * 64 && t->bk <= 64))
                consider_tile(l, t);
    }
}

/* ---- few rows ---------------------------------------------------------------------------------------- */

static uint32_t rights(const struct matmul_form *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->noperand; i++)
        n += f->operand[i].side == MATMUL_B;
    return n;
}

/* About the instructions of a thread's steps. */
static uint32_t code_of(const struct planner *l, const struct matmul_plan *p, uint32_t along_k)
{
    uint32_t n = l->f->nproduct * p->bm * p->wn;
    for (uint32_t i = 0; i < l->f->noperand; i++) {
        const struct matmul_operand *o = &l->f->operand[i];
        const uint32_t each = o->weight + (dtype_bits(o->type) < 16 ? 4 : 1);
        n += each * (o->side == MATMUL_A ? p->bm : p->wn);
    }
    return n * along_k * p->stages;
}

/* Fewer steps, elements or columns at a time, as long as that is much code. */
static void shorten(const struct planner *l, struct matmul_plan *p, uint32_t *along_k)
{
    const uint32_t most = is_known(l) ? MOST_CODE : MOST_CODE / 6;
    while (code_of(l, p, *along_k) > most)
        if (p->stages > 1)
            p->stages--;
        else if (*along_k > 4)
            *along_k /= 2;
        else if (p->wn > 1)
            p->wn /= 2;
        else
            return;
}

/* A thread's columns and elements along k where B lies along k. */
static void thin_along_k(const struct planner *l, struct matmul_plan *p, uint32_t lanes)
{
    const uint32_t each = l->f->nproduct * p->bm, loads = rights(l->f);
    const double threads = (double)BUSY * matmul_multiprocessors(l->g);
    p->wn = 4;
    while (p->wn > 1 && (p->wn * each > MOST_SUMS / 2 || p->wn * loads > FLIGHT ||
                         (l->n && p->wn / 2 >= l->size.n)))
        p->wn /= 2;
    p->stages = FLIGHT / (p->wn * loads) ? FLIGHT / (p->wn * loads) : 1;
    shorten(l, p, &lanes);
    const double groups = ceil_of(l->size.n / p->wn) * l->size.batch;
    const double vectors = ceil_of(l->size.k / lanes);
    uint32_t along = 1;
    while (along < 256 && along < vectors &&
           (along < 32 || (along * p->stages < vectors && along * groups < threads)))
        along *= 2;
    const uint32_t across = along >= 128 ? 1 : 128 / along;
    p->threads = along * across;
    p->bn = across * p->wn;
    p->bk = along * lanes;
}

/* And where it lies along j. */
static void thin_along_j(const struct planner *l, struct matmul_plan *p, uint32_t lanes,
                         unsigned bits)
{
    const uint32_t each = l->f->nproduct * p->bm, loads = rights(l->f);
    p->wn = lanes;
    while (p->wn > 1 && p->wn * each > MOST_SUMS)
        p->wn /= 2;
    p->threads = 256;
    uint32_t across = LINE * 8 / (p->wn * (bits ? bits : 8));
    across = across > 32 ? 32 : across ? across : 1;
    while (across > 1 && l->n && across / 2 * p->wn >= l->size.n)
        across /= 2;
    uint32_t wk = FLIGHT;
    while (wk > 1 && (wk * loads > FLIGHT || (l->k && wk / 2 * (p->threads / across) >= l->size.k)))
        wk /= 2;
    p->stages = FLIGHT / (wk * loads) ? FLIGHT / (wk * loads) : 1;
    shorten(l, p, &wk);
    p->bn = across * p->wn;
    p->bk = p->threads / across * wk;
}

/* What a schedule's tile leaves of it; false: it is not possible. */
static bool thin_named(const struct planner *l, struct matmul_plan *p, uint32_t lanes, bool along_k)
{
    const struct lower_plan *w = l->want;
    p->bn = w->shape[1];
    p->bk = w->shape[2];
    p->threads = w->warps[0] ? w->warps[0] * w->warps[1] * 32 : p->threads;
    if (along_k) {
        const uint32_t along = p->bk / lanes;
        if (p->bk % lanes || !along || p->threads % along || p->bn % (p->threads / along))
            return false;
        p->wn = p->bn / (p->threads / along);
    } else {
        p->wn = lanes;
        if (p->bn % lanes || p->threads % (p->bn / lanes) || p->bk % (p->threads / (p->bn / lanes)))
            return false;
    }
    const uint32_t n = p->bn / p->wn, k = p->threads / n;
    return (n & (n - 1)) == 0 && (k & (k - 1)) == 0 && (p->wn & (p->wn - 1)) == 0;
}

static struct matmul_plan thin_plan(const struct planner *l, uint32_t rows)
{
    struct matmul_plan p = begin(l, MATMUL_THIN);
    const uint32_t b = l->f->product[0].b, lanes = p.align[b];
    const bool along_k = l->f->operand[b].along_k;
    const struct lower_plan *w = l->want;
    p.bm = p.wm = rows;
    if (along_k)
        thin_along_k(l, &p, lanes);
    else
        thin_along_j(l, &p, lanes, l->f->operand[b].bits);
    if (w->shape[0] && !thin_named(l, &p, lanes, along_k))
        p.threads = 0;
    if (w->stages)
        p.stages = w->stages;
    if (!p.threads)
        return p;
    while (p.bn % p.store)
        p.store /= 2;
    const double n = ceil_of(l->size.n / p.bn) * ceil_of(l->size.m / p.bm) * l->size.batch;
    const double most = (double)BUSY * matmul_multiprocessors(l->g) / p.threads;
    double split = n > 0 ? most / n + 0.5 : 1;
    const double steps = l->size.k / ((double)p.bk * p.stages);
    split = split > steps ? steps : split;
    split = split > MOST_SPLIT ? MOST_SPLIT : split < 1 ? 1 : split;
    p.split = w->split ? w->split : shares(l, &p, (uint32_t)split);
    return p;
}

static void consider_thin(struct planner *l)
{
    if (l->want->shape[0] ? l->want->shape[0] > MOST_ROWS : l->size.m > MOST_ROWS)
        return;
    struct matmul_plan p = thin_plan(l, l->want->shape[0]       ? l->want->shape[0]
                                        : l->size.m < 1         ? 1
                                        : l->size.m > MOST_ROWS ? MOST_ROWS
                                                                : (uint32_t)l->size.m);
    if (p.threads)
        consider(l, &p, matmul_shared(l->g, l->f, &p));
}

/* ---- variants ---------------------------------------------------------------------------------------- */

struct variants {
    struct matmul_plan *v;
    uint32_t n;
};

/* Adds the best plan so far, and begins the search again. */
static bool add(struct planner *l, struct variants *all, const char *entry, const char *when,
                uint32_t most_split)
{
    struct matmul_plan *p = &all->v[all->n];
    if (l->cost < 0)
        return false;
    *p = l->best;
    p->entry = entry;
    p->when = when;
    if (most_split && !is_known(l) && !l->want->split)
        p->split = most_split;
    const unsigned mps = matmul_multiprocessors(l->g);
    p->splits = splits_text(l, p, p->how == MATMUL_THIN ? mps * BUSY / p->threads : 2 * mps);
    p->depth = depth_text(l, p);
    all->n++;
    l->cost = -1;
    return true;
}

static void add_thin(struct planner *l, struct variants *all, uint32_t rows, const char *entry,
                     const char *when)
{
    const struct matmul_size size = l->size;
    if (!l->m)
        l->size.m = rows;
    struct matmul_plan p = thin_plan(l, rows);
    consider(l, &p, p.threads ? matmul_shared(l->g, l->f, &p) : 0);
    add(l, all, entry, when, MOST_SPLIT);
    l->size = size;
}

/* Is a variant so much code that tiles for all sizes must do, which blocks share where they are few? */
static bool is_heavy(const struct matmul_form *f)
{
    unsigned weight = f->weight;
    for (uint32_t i = 0; i < f->noperand; i++)
        weight += f->operand[i].weight + (f->type == MATMUL_FP8 ? HEAVY : 0);
    return f->nproduct > 1 || weight >= HEAVY;
}

/* For sizes of which some are not known. */
static void add_open(struct planner *l, struct variants *all)
{
    struct cg *g = l->g;
    const struct lower_plan *w = l->want;
    const bool free = !w->shape[0] && !w->warps[0] && !w->stages && !w->split;
    const bool thin = free && !(l->m && l->size.m > MOST_ROWS) &&
                      (w->mma == LOWER_MMA_ANY || w->mma == LOWER_MMA_NONE);
    const struct matmul_size size = l->size;
    if (thin)
        add_thin(l, all, l->m ? (l->size.m < 1 ? 1 : (uint32_t)l->size.m) : FEW_ROWS, "rows",
                 l->m ? NULL : arena_printf(g->a, "%s <= %d", text_of(g, l->f->i), FEW_ROWS));
    if (all->n && l->m && l->size.m <= 1)
        return;
    l->shorter = free && is_heavy(l->f);
    if (w->shape[0])
        consider_thin(l);
    consider_tiles(l);
    const struct matmul_plan large = l->best;
    const bool both = free && l->cost >= 0 && !l->shorter;
    if (both) {
        const double cost = l->cost;
        l->cost = -1;
        l->size.m = l->m ? l->size.m : 64;
        consider_tiles(l);
        l->size = size;
        add(l, all, "small",
            arena_printf(g->a, "%s < %u", tiles_text(l, large.bm, large.bn),
                         matmul_multiprocessors(g)),
            MOST_OPEN);
        l->best = large;
        l->cost = cost;
    }
    if (l->cost >= 0)
        l->best.split = w->split ? w->split : 1;
    add(l, all, "tile", NULL, free && !both ? MOST_OPEN : 0);
}

/* Do the vectors of the variants so far rest on extents that are not known? */
static bool rests(const struct planner *l)
{
    for (uint32_t i = 0; i < l->f->noperand; i++) {
        const struct matmul_operand *o = &l->f->operand[i];
        const bool along_i = !o->along_k && o->side == MATMUL_A;
        int64_t n;
        if (!(along_i      ? l->m
              : o->along_k ? l->k
                           : l->n) ||
            (o->main && o->main->rank && !lang_const_int(o->main->dims[o->main->rank - 1], &n)))
            return true;
    }
    return !l->n;
}

/* Of what is not made of vectors. */
static void add_any(struct planner *l, struct variants *all)
{
    const struct matmul_size size = l->size;
    if (all->n && !rests(l))
        return;
    l->single = true;
    if (l->m && l->size.m <= FEW_ROWS && l->want->mma <= LOWER_MMA_NONE)
        consider_thin(l);
    l->size.m = l->m ? l->size.m : 256;
    l->size.n = l->n ? l->size.n : 1024;
    consider_tiles(l);
    l->size = size;
    add(l, all, "any", NULL, MOST_OPEN);
}

static void choose_type(struct planner *l)
{
    const enum lower_mma mma = l->want->mma;
    l->type = l->f->type;
    l->parts = 1;
    if (l->type == MATMUL_FP8 && mma != LOWER_MMA_FP8)
        l->type = MATMUL_F16;
    if (l->type == MATMUL_F32 && (mma == LOWER_MMA_TF32X3 || l->g->fast)) {
        l->type = MATMUL_TF32;
        l->parts = 2;
    }
}

/* 'mma' has a word for the factors; false after an error. */
static bool check_mma(struct planner *l)
{
    struct cg *g = l->g;
    const struct lower_plan *w = l->want;
    if (w->mma == LOWER_MMA_FP8 && l->f->type != MATMUL_FP8)
        return cg_error(g, w->mma_span, "'mma: fp8' is for factors that are e4m3 or e5m2");
    if (w->mma == LOWER_MMA_TF32X3 && l->f->type != MATMUL_F32)
        return cg_error(g, w->mma_span, "'mma: tf32x3' is for factors that are f32");
    if (w->mma > LOWER_MMA_NONE && g->target->sm < 75)
        return cg_error(g, w->mma_span, "%s has no mma.sync for this: sm_75 has, sm_80 for more",
                        g->target->name);
    return true;
}

/* What mma.sync says to the schedule's tile. */
static const char *reason(struct planner *l)
{
    const struct lower_plan *w = l->want;
    struct matmul_plan p = begin(l, MATMUL_MMA);
    struct buf why = buf_in(l->g->a);
    p.bm = w->shape[0] ? w->shape[0] : 128;
    p.bn = w->shape[0] ? w->shape[1] : 128;
    p.bk = w->shape[0] ? w->shape[2] : 512 / dtype_bits(l->f->operand[0].type);
    p.wm = p.bm / (w->warps[0] ? w->warps[0] : 2);
    p.wn = p.bn / (w->warps[0] ? w->warps[1] : 2);
    p.threads = p.wm && p.wn ? p.bm / p.wm * (p.bn / p.wn) * 32 : 0;
    p.stages = w->stages ? w->stages : 2;
    if (w->mma == LOWER_MMA_NONE || matmul_mma_fits(l->g, l->f, &p, &why))
        return "no such tile, warps and stages are possible";
    return buf_text(&why);
}

static bool impossible(struct planner *l)
{
    const struct lower_plan *w = l->want;
    struct cg *g = l->g;
    const struct span s = w->shape[0]   ? w->tile_span
                          : w->warps[0] ? w->warps_span
                          : w->stages   ? w->stages_span
                          : w->split    ? w->split_span
                                        : w->mma_span;
    const char *why = reason(l);
    const struct lower_plan any = {.mma = w->mma};
    l->want = &any;
    if (w->mma <= LOWER_MMA_NONE)
        consider_thin(l);
    consider_tiles(l);
    if (l->cost < 0)
        return cg_error(g, s, "%s", why);
    const struct matmul_plan *p = &l->best;
    const bool mma = p->how == MATMUL_MMA, thin = p->how == MATMUL_THIN;
    return cg_error(g, s,
                    "%s; possible is, for instance, tile: [%u, %u, %u], warps: [%u, %u], stages: "
                    "%u",
                    why, p->bm, p->bn, p->bk, thin ? 1 : p->bm / p->wm / (mma ? 1 : 4),
                    thin ? p->threads / 32 : p->bn / p->wn / (mma ? 1 : 8), p->stages);
}

bool matmul_plan(struct cg *g, const struct matmul_form *f, const struct lower_plan *want,
                 struct matmul_plan *v, uint32_t *n)
{
    struct planner l = {.g = g, .f = f, .want = want, .cost = -1};
    struct variants all = {.v = v};
    find_sizes(&l);
    choose_type(&l);
    if (!check_mma(&l))
        return false;
    if (is_known(&l)) {
        consider_thin(&l);
        consider_tiles(&l);
        add(&l, &all, "tile", NULL, 0);
    } else {
        add_open(&l, &all);
    }
    add_any(&l, &all);
    *n = all.n;
    return all.n ? true : impossible(&l);
}
