/* Sizes of a contraction's tiles and variants for the sizes that the launch brings (matmul.h).
 *
 * Where all extents are known one plan is chosen, the cheapest of a table of tiles with their
 * stages and splits by the model of matmul/cost.c. Else there are a few variants, of which the
 * launch takes the first that its sizes allow:
 *
 *     rows   m <= 4                     B is read once, no tile is kept (simt/thin.c)
 *     small  fewer large tiles than multiprocessors: small ones, which blocks share along k
 *     tile   large tiles
 *     any    what is not made of whole vectors: small tiles, single elements
 *
 * With wgmma small is for m <= 64, and a further variant, medium, for fewer large tiles than two
 * thirds of the multiprocessors; any goes by mma.sync, since TMA copies rows of whole 16 bytes
 * alone.
 *
 * f32 goes by wgmma in parts, or by mma.sync where there is no wgmma, where that loses no more than
 * fma may (LEAST_TERMS); where their number is open a further variant, short, has fma for fewer.
 *
 * What a schedule names is taken as it is, and the cheapest of what it leaves open.
 */
#include <config.h>

#include "lower/matmul/plan.h"

#include <stdarg.h>

enum {
    FEW_ROWS = 4,  /* for which, with 1 row too, products take less time than reading B does */
    MOST_OPEN = 8, /* shares, where they are counted at launch */
    HEAVY = 16,    /* of operands and epilogue */
    /* Of so many terms, and of more, three products of parts may be off by no more than fma: by
     * 36 * 8 + 24 + 1 roundings and one for each 32 terms (matmul.c), where fma has one for each
     * term. */
    LEAST_TERMS = 324,
    /* By mma.sync by 36 * 4 + 24 + 2 roundings and one for each 16 terms. */
    LEAST_TERMS_BY_SYNC = 182,
};

/* ---- what is said ---------------------------------------------------------------------------- */

static bool planner_refuses(struct planner *l, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* False. */
static bool planner_refuses(struct planner *l, const char *key, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    l->report->key = key;
    l->report->refusal = arena_vprintf(l->a, fmt, ap);
    va_end(ap);
    return false;
}

/* ---- what the launch computes ---------------------------------------------------------------- */

static struct lang_expr *extent(struct planner *l, const struct lang_symbol *index)
{
    return index ? index->dims[0] : lx_int(l->a, 1);
}

/* Tiles of this size. */
static struct lang_expr *tiles_of(struct planner *l, uint32_t bm, uint32_t bn)
{
    struct lang_expr *tiles = lx_ceil_div_int(l->a, extent(l, l->f->i), bm);
    tiles = lx_mul(l->a, tiles, lx_ceil_div_int(l->a, extent(l, l->f->j), bn));
    for (uint32_t i = 0; i < l->f->nbatch; i++)
        tiles = lx_mul(l->a, tiles, extent(l, l->f->batch[i]));
    return tiles;
}

static struct lang_expr *fewer_tiles(struct planner *l, const struct matmul_plan *p, uint32_t than)
{
    return lx_compare(l->a, OP_LT, tiles_of(l, p->bm, p->bn), lx_int(l->a, than));
}

static struct lang_expr *fewer_terms(struct planner *l, uint32_t than)
{
    return lx_compare(l->a, OP_LT, extent(l, l->f->k), lx_int(l->a, than));
}

/* Has a sum terms enough for parts, which what copies less at once may take before fma does? */
static struct lang_expr *enough_terms(struct planner *l, const struct matmul_plan *p)
{
    if (!l->looks || l->k || p->parts < 2 || p->how != MATMUL_MMA)
        return NULL;
    return lx_compare(l->a, OP_GE, extent(l, l->f->k), lx_int(l->a, l->least));
}

static struct lang_expr *most_rows(struct planner *l, uint32_t most)
{
    return lx_at_most(l->a, extent(l, l->f->i), most);
}

struct lang_expr *matmul_share(struct arena *a, struct lang_expr *k, uint32_t bk,
                               struct lang_expr *splits)
{
    return lx_mul_int(a, lx_ceil_div(a, lx_ceil_div_int(a, k, bk), splits), bk);
}

/* At most p->split of them, as many as make `blocks` blocks of all tiles. */
static struct lang_expr *splits_of(struct planner *l, const struct matmul_plan *p, unsigned blocks)
{
    if (p->split == 1)
        return NULL;
    if (planner_knows_all(l) || l->want->split || p->how == MATMUL_WGMMA)
        return lx_int(l->a, p->split);
    struct arena *a = l->a;
    struct lang_expr *one = lx_int(a, 1), *tiles = lx_max(a, one, tiles_of(l, p->bm, p->bn));
    struct lang_expr *wanted = lx_ceil_div(a, lx_int(a, blocks), tiles);
    const uint32_t least = p->bk * (p->how == MATMUL_THIN ? p->stages : 4);
    struct lang_expr *possible = lx_div_int(a, extent(l, l->f->k), least);
    return lx_clamp(a, wanted, one, lx_clamp(a, possible, one, lx_int(a, p->split)));
}

/* Additions on a term's way into the sum, but those of tensor cores. */
static struct lang_expr *depth_of(struct planner *l, const struct matmul_plan *p)
{
    struct lang_expr *share = extent(l, l->f->k);
    if (p->split > 1)
        share = matmul_share(l->a, share, p->bk, p->splits);
    if (p->how == MATMUL_THIN) {
        const uint32_t along = p->threads / (p->bn / p->wn);
        return lx_add_int(l->a, lx_ceil_div_int(l->a, share, along),
                          p->bk / along + 5 + along / 32 + p->split);
    }
    const uint32_t together = matmul_together(p);
    if (together) { /* by mma.sync some of the sums begin in the midst of a tile */
        const uint32_t more = p->how == MATMUL_MMA ? 1 : 0;
        return lx_add_int(l->a, lx_ceil_div_int(l->a, share, together), p->split + more);
    }
    if (p->how == MATMUL_MMA || p->how == MATMUL_WGMMA)
        return lx_int(l->a, p->split);
    return p->split > 1 ? lx_add_int(l->a, share, p->split) : share;
}

/* ---- variants -------------------------------------------------------------------------------- */

struct variants {
    struct matmul_plan *v;
    uint32_t n;
};

/* Bits of what the epilogue reads along rows and columns beside a sum. */
static unsigned own_bits(const struct planner *l)
{
    const struct matmul_own own = matmul_own(l->f);
    unsigned bits = 0;
    for (uint32_t i = 0; i < own.n; i++)
        bits += dtype_bits(own.t[i]->type);
    return bits;
}

/* Are there more tiles than multiprocessors, of blocks that fill one? Then these take tiles by
 * turns: on an H100 .6 to 1 % faster for f16 and bf16 at 4096, with a residual, too, and as fast
 * with gelu; 8 % slower for int8. Threads that read more than MOST_OWN beside a sum would have too
 * few registers. */
static bool turns(const struct planner *l, struct matmul_plan p)
{
    enum { MOST_OWN = 32 }; /* bits */
    const struct matmul_options *w = l->want;
    const struct matmul_size *s = &l->size;
    const double tiles = ceil_of(s->m / p.bm) * ceil_of(s->n / p.bn) * s->batch;
    p.blocks = MATMUL_BLOCKS_ALL; /* which takes more shared memory */
    return p.how == MATMUL_MMA && !w->blocks && !w->tiles && p.split == 1 && p.stages > 1 &&
           p.parts == 1 && l->f->nproduct == 1 &&
           (l->f->type == MATMUL_F16 || l->f->type == MATMUL_BF16) && own_bits(l) <= MOST_OWN &&
           tiles > lower_multiprocessors(l->target) && matmul_mma_fills(l->target, l->f, &p);
}

/* Adds the best plan so far, and begins the search again. */
static bool add(struct planner *l, struct variants *all, const char *entry, struct lang_expr *when,
                uint32_t most_split)
{
    struct matmul_plan *p = &all->v[all->n];
    if (l->cost < 0)
        return false;
    *p = l->best;
    p->entry = entry;
    p->about = planner_knows_all(l) ? l->cost : 0;
    p->when = lx_and(l->a, enough_terms(l, p), when);
    if (most_split && !l->f->compares && !planner_knows_all(l) && !l->want->split &&
        p->how != MATMUL_WGMMA && !p->blocks)
        p->split = most_split;
    if (turns(l, *p))
        p->blocks = MATMUL_BLOCKS_ALL;
    const unsigned mps = lower_multiprocessors(l->target);
    p->splits = splits_of(l, p, p->how == MATMUL_THIN ? mps * MATMUL_BUSY / p->threads : 2 * mps);
    int64_t known;
    if (p->splits && lang_const_int(p->splits, &known)) /* 1 where k is fixed, and short */
        p->split = (uint32_t)known;
    p->depth = depth_of(l, p);
    all->n++;
    l->cost = -1;
    return true;
}

static void add_thin(struct planner *l, struct variants *all, uint32_t rows, const char *entry,
                     struct lang_expr *when)
{
    const struct matmul_size size = l->size;
    if (!l->m)
        l->size.m = rows;
    struct matmul_plan p = planner_rows(l, rows);
    planner_consider(l, &p, p.threads ? matmul_shared(l->target, l->f, &p) : 0);
    add(l, all, entry, when, MATMUL_MOST_SPLIT);
    l->size = size;
}

/* Is a variant so much code that tiles for all sizes must do, which blocks share where they are
 * few? */
static bool is_heavy(const struct matmul_form *f)
{
    unsigned weight = f->weight;
    for (uint32_t i = 0; i < f->noperand; i++)
        weight += f->operand[i].weight + (f->type == MATMUL_FP8 ? HEAVY : 0);
    return f->nproduct > 1 || weight >= HEAVY;
}

static bool same_tile(const struct matmul_plan *p, const struct matmul_plan *q)
{
    return p->how == MATMUL_WGMMA && q->how == MATMUL_WGMMA && p->bm == q->bm && p->bn == q->bn &&
           p->bk == q->bk;
}

/* A variant for sizes where `when` holds, as if the open ones of rows and columns were these; not
 * with the tile of the larger ones. */
static void add_for(struct planner *l, struct variants *all, const struct matmul_plan *large,
                    double m, double n, const char *entry, struct lang_expr *when)
{
    const struct matmul_size size = l->size;
    l->cost = -1;
    l->size.m = l->m ? size.m : m;
    l->size.n = l->n ? size.n : n;
    planner_consider_tiles(l);
    l->size = size;
    if (!same_tile(&l->best, large))
        add(l, all, entry, when, MOST_OPEN);
}

/* Smaller tiles than `large`, by wgmma: where blocks stay, a launch with fewer tiles than blocks
 * leaves some of them idle. */
static void add_smaller(struct planner *l, struct variants *all, const struct matmul_plan *large)
{
    enum { ROWS = 64 };
    const double cost = l->cost, few = 0.3 * lower_multiprocessors(l->target);
    const struct matmul_plan best = *large;
    const double size = few * best.bm * best.bn, half = 4.0 * best.bn;
    if (!l->m)
        add_for(l, all, &best, ROWS, l->size.n, "small", most_rows(l, ROWS));
    if ((!l->m || l->size.m > ROWS) && !l->shorter)
        add_for(l, all, &best, l->n && l->size.n * ROWS < size ? size / l->size.n : half,
                l->m ? size / l->size.m : half, "medium",
                fewer_tiles(l, &best, lower_multiprocessors(l->target) * 2 / 3));
    l->best = best;
    l->cost = cost;
}

/* Adds the variant by fma for fewer terms than parts are as good for, where that is open. */
static void add_short(struct planner *l, struct variants *all)
{
    const struct planner before = *l;
    if (!l->looks || l->k)
        return;
    l->type = l->f->type;
    l->parts = 1;
    l->size.k = l->least / 2;
    planner_consider_tiles(l);
    add(l, all, "short", fewer_terms(l, l->least), MOST_OPEN);
    l->size = before.size;
    l->type = before.type;
    l->parts = before.parts;
}

/* Adds variants for sizes of which some are not known. */
static void add_open(struct planner *l, struct variants *all)
{
    const struct matmul_options *w = l->want;
    const bool free = !w->shape[0] && !w->warps[0] && !w->stages && !w->split;
    const bool thin = free && !(l->m && l->size.m > MATMUL_MOST_ROWS) &&
                      (w->mma == MATMUL_BY_ANY || w->mma == MATMUL_BY_NONE);
    if (thin)
        add_thin(l, all, l->m ? (l->size.m < 1 ? 1 : (uint32_t)l->size.m) : FEW_ROWS, "rows",
                 l->m ? NULL : most_rows(l, FEW_ROWS));
    if (all->n && l->m && l->size.m <= 1)
        return;
    l->shorter = free && is_heavy(l->f);
    add_short(l, all);
    if (w->shape[0])
        planner_consider_rows(l);
    planner_consider_tiles(l);
    const struct matmul_plan large = l->best;
    const bool wgmma = l->cost >= 0 && large.how == MATMUL_WGMMA;
    const bool both = free && l->cost >= 0 && !l->shorter;
    if (free && wgmma) {
        add_smaller(l, all, &large);
    } else if (both) {
        const double cost = l->cost;
        add_for(l, all, &large, 64, l->size.n, "small",
                fewer_tiles(l, &large, lower_multiprocessors(l->target)));
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

/* Adds variants that access single elements, for what no vectors fit. */
static void add_any(struct planner *l, struct variants *all)
{
    static const struct matmul_options by_sync = {.mma = MATMUL_BY_SYNC},
                                       in_parts = {.mma = MATMUL_BY_TF32X3};
    const struct planner before = *l;
    const struct matmul_options *const want = l->want;
    if (all->n && !rests(l))
        return;
    if (all->n && all->v[0].how == MATMUL_WGMMA && want->mma != MATMUL_BY_ANY)
        l->want = want->mma == MATMUL_BY_TF32X3 ? &in_parts : &by_sync; /* what TMA can't copy */
    l->single = true;
    if (l->looks && !l->k) { /* for any number of terms */
        l->type = l->f->type;
        l->parts = 1;
    }
    if (l->m && l->size.m <= FEW_ROWS && l->want->mma <= MATMUL_BY_NONE)
        planner_consider_rows(l);
    l->size.m = l->m ? l->size.m : 256;
    l->size.n = l->n ? l->size.n : 1024;
    planner_consider_tiles(l);
    l->size = before.size;
    add(l, all, "any", NULL, MOST_OPEN);
    l->type = before.type;
    l->parts = before.parts;
    l->want = want;
}

static void choose_type(struct planner *l)
{
    const enum matmul_by mma = l->want->mma;
    l->type = l->f->type;
    l->parts = 1;
    if (l->type == MATMUL_FP8 && mma != MATMUL_BY_FP8)
        l->type = MATMUL_F16;
    if (l->type != MATMUL_F32 || l->f->pairs)
        return;
    if (mma == MATMUL_BY_F16X3) {
        l->type = MATMUL_F16;
        l->parts = 2;
        return;
    }
    const bool asked = mma == MATMUL_BY_TF32X3 || l->fast, wgmma = ptx_target_has_wgmma(l->target);
    l->least = wgmma ? LEAST_TERMS : LEAST_TERMS_BY_SYNC;
    l->looks = !asked && mma == MATMUL_BY_ANY && !l->strict && (!l->k || l->size.k >= l->least) &&
               (wgmma || matmul_parts_pay(l->target));
    if (asked || l->looks) {
        l->type = MATMUL_TF32;
        l->parts = 2;
    }
    struct buf why = buf_in(l->a);
    if (l->looks && wgmma && !planner_takes_wgmma(l, &why)) {
        l->report->not_wgmma = why.len ? buf_text(&why) : NULL;
        l->type = l->f->type;
        l->parts = 1;
        l->looks = false;
    } else if (!asked && !l->looks && mma == MATMUL_BY_ANY && ptx_target_has_wgmma(l->target)) {
        l->report->not_wgmma =
            l->strict
                ? "'math: strict' adds each product by one fma"
                : arena_printf(l->a, "parts of f32 may lose more than fma in fewer than %d terms",
                               LEAST_TERMS);
    }
}

/* 'mma' has a word for the factors; false: it is refused. */
static bool check_mma(struct planner *l)
{
    const struct matmul_options *w = l->want;
    if (w->mma == MATMUL_BY_FP8 && l->f->type != MATMUL_FP8)
        return planner_refuses(l, l->mma_key, "'mma: fp8' is for factors that are e4m3 or e5m2");
    if (w->mma == MATMUL_BY_TF32 && l->f->type != MATMUL_TF32)
        return planner_refuses(
            l, l->mma_key,
            "'mma: tf32' is for factors that are calls of tf32(), tf32_rn() or tf32_rz()");
    if (w->mma == MATMUL_BY_TF32X3 && (l->f->type != MATMUL_F32 || l->f->pairs))
        return planner_refuses(l, l->mma_key, "'mma: tf32x3' is for factors that are f32");
    if (w->mma == MATMUL_BY_F16X3 && (l->f->type != MATMUL_F32 || l->f->pairs))
        return planner_refuses(l, l->mma_key, "'mma: f16x3' is for factors that are f32");
    if (w->mma == MATMUL_BY_F16X3 && !planner_knows_all(l))
        return planner_refuses(l, l->mma_key,
                               "'mma: f16x3' is for sizes that are known: fix dimensions by -D");
    if ((w->mma == MATMUL_BY_WGMMA || w->mma == MATMUL_BY_F16X3) &&
        !ptx_target_has_wgmma(l->target))
        return planner_refuses(l, l->mma_key,
                               "%s has no wgmma: sm_90a alone has, other targets have 'mma: sync'",
                               l->target->name);
    if ((w->blocks || w->tiles) && w->mma == MATMUL_BY_NONE)
        return planner_refuses(l, "blocks", "'blocks' are for products by tensor cores");
    if (w->mma > MATMUL_BY_NONE && l->target->sm < 75)
        return planner_refuses(l, l->mma_key,
                               "%s has no mma.sync for this: sm_75 has, sm_80 for more",
                               l->target->name);
    return true;
}

/* Does the instruction take the schedule's tile, warps and stages, or usual ones where w is NULL?
 * why stays empty if it does. */
static bool tile_fits(struct planner *l, const struct matmul_options *w, struct buf *why)
{
    static const struct matmul_options usual = {0};
    struct matmul_plan p = planner_new(l, MATMUL_MMA);
    w = w ? w : &usual;
    /* what only wgmma has is there only where wgmma is, of tf32x3 too (read_wgmma()) */
    if (w->mma == MATMUL_BY_WGMMA || w->mma == MATMUL_BY_F16X3 || w->clusters[0] || w->pingpong ||
        w->windows) {
        p = planner_wgmma_named(l, w);
        return matmul_wgmma_fits(l->target, l->f, &p, why);
    }
    p.bm = w->shape[0] ? w->shape[0] : 128;
    p.bn = w->shape[0] ? w->shape[1] : 128;
    p.bk = w->shape[0] ? w->shape[2] : 512 / dtype_bits(l->f->operand[0].type);
    p.wm = p.bm / (w->warps[0] ? w->warps[0] : 2);
    p.wn = p.bn / (w->warps[0] ? w->warps[1] : 2);
    p.threads = p.wm && p.wn ? p.bm / p.wm * (p.bn / p.wn) * 32 : 0;
    p.stages = w->stages ? w->stages : 2;
    p.split = w->split ? w->split : 1;
    p.blocks = w->blocks;
    return matmul_mma_fits(l->target, l->f, &p, why);
}

static const char *reason(struct planner *l)
{
    const struct matmul_options *w = l->want;
    struct buf why = buf_in(l->a), always = buf_in(l->a);
    l->single = l->shorter = false;
    const bool by_fma = w->mma == MATMUL_BY_NONE ||
                        (w->mma == MATMUL_BY_ANY && !tile_fits(l, NULL, &always));
    if (by_fma && w->blocks) /* which fma has not */
        return buf_text(&always);
    if (by_fma || tile_fits(l, w, &why))
        return "no such tile, warps and stages are possible";
    return buf_text(&why);
}

/* All variants of what is wanted, into v; how many. */
static uint32_t plan_all(struct planner *l, struct matmul_plan *v)
{
    struct variants all = {.v = v};
    l->cost = -1;
    l->shorter = l->single = false;
    if (planner_knows_all(l)) {
        planner_consider_rows(l);
        planner_consider_tiles(l);
        add(l, &all, "tile", NULL, 0);
    } else {
        add_open(l, &all);
    }
    add_any(l, &all);
    return all.n;
}

/* A tile, warps and stages of the built-in choice that the schedule w could name beside what else
 * it says; *named is w with these. */
static bool possible(struct planner *l, const struct matmul_options *w,
                     struct matmul_options *named)
{
    const struct matmul_options any = {.mma = w->mma};
    struct matmul_plan v[MATMUL_VARIANTS] = {0}, again[MATMUL_VARIANTS] = {0};
    l->want = &any;
    const uint32_t n = plan_all(l, v);
    l->want = named;
    for (uint32_t i = 0; i < n; i++) {
        const struct matmul_plan *p = &v[i];
        const bool mma = p->how == MATMUL_MMA || p->how == MATMUL_WGMMA;
        const bool thin = p->how == MATMUL_THIN;
        *named = *w;
        named->shape[0] = p->bm;
        named->shape[1] = p->bn;
        named->shape[2] = p->bk;
        named->warps[0] = thin ? 1 : p->bm / p->wm / (mma ? 1 : 4);
        named->warps[1] = thin ? p->threads / 32 : p->bn / p->wn / (mma ? 1 : 8);
        named->stages = p->stages;
        if (plan_all(l, again))
            return true;
    }
    return false;
}

static bool impossible(struct planner *l)
{
    const struct matmul_options *w = l->want;
    struct matmul_options named;
    const char *key = w->shape[0]      ? "tile"
                      : w->warps[0]    ? "warps"
                      : w->stages      ? "stages"
                      : w->split       ? "split"
                      : w->clusters[0] ? "cluster"
                      : w->pingpong    ? "pingpong"
                      : w->windows     ? "windows"
                      : w->blocks      ? "blocks"
                                       : l->mma_key;
    const char *why = reason(l);
    if (!possible(l, w, &named))
        return planner_refuses(l, key, "%s", why);
    return planner_refuses(
        l, key,
        "%s; possible is, for instance, tile: [%u, %u, %u], warps: [%u, %u], stages: "
        "%u",
        why, named.shape[0], named.shape[1], named.shape[2], named.warps[0], named.warps[1],
        named.stages);
}

/* Takes options that only wgmma has for a wish for wgmma: clusters of tiles, warpgroups by turns,
 * and what copies windows. */
static bool read_wgmma(struct planner *l, struct matmul_options *w)
{
    const char *key = w->clusters[0] ? "cluster" : w->pingpong ? "pingpong" : "windows";
    if (!w->clusters[0] && !w->pingpong && !w->windows)
        return true;
    if ((w->mma == MATMUL_BY_TF32X3 && ptx_target_has_wgmma(l->target)) ||
        w->mma == MATMUL_BY_F16X3)
        return true;
    if (w->mma != MATMUL_BY_ANY && w->mma != MATMUL_BY_WGMMA)
        return planner_refuses(l, key, "'cluster', 'pingpong' and 'windows' are for 'mma: wgmma'");
    if (w->mma == MATMUL_BY_ANY)
        l->mma_key = key;
    w->mma = MATMUL_BY_WGMMA;
    return true;
}

bool matmul_plan(const struct matmul_setting *setting, const struct matmul_form *f,
                 const struct matmul_options *want, struct matmul_plan *v, uint32_t *n,
                 struct matmul_report *report)
{
    struct matmul_options said = *want;
    struct planner l = {.a = setting->a,
                        .target = setting->target,
                        .fast = setting->fast,
                        .strict = setting->strict,
                        .f = f,
                        .want = &said,
                        .report = report,
                        .mma_key = "mma",
                        .cost = -1};
    said.tiles = said.blocks == MATMUL_BLOCKS_TILES;
    said.blocks = said.tiles ? 0 : said.blocks;
    planner_begin(&l);
    choose_type(&l);
    if (!read_wgmma(&l, &said) || !check_mma(&l))
        return false;
    struct buf why = buf_in(l.a);
    if (!planner_takes_wgmma(&l, &why) && why.len && !report->not_wgmma)
        report->not_wgmma = buf_text(&why);
    *n = plan_all(&l, v);
    return *n ? true : impossible(&l);
}
