/* Plans for few rows: how a block's threads share B (simt/thin.c). */
#include <config.h>

#include "lower/matmul/plan.h"

enum {
    MOST_SUMS = 64,    /* of a thread */
    MOST_CODE = 1500,  /* instructions */
    FLIGHT = 8,        /* accesses of a thread that are on their way together */
    LINE = 64,         /* bytes of a row that a block reads: an access of the memory */
    LONG_LINE = 256,   /* of 4-byte elements, where that leaves no multiprocessor without a block */
    MOST_COLUMNS = 16, /* of a thread, of 4 bits: what scales them takes registers, too */
};

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
    const uint32_t most = planner_knows_all(l) ? MOST_CODE : MOST_CODE / 6;
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

/* Threads that bring B about as fast as the memory can. */
static double enough(const struct planner *l)
{
    return MATMUL_BUSY * 0.4 * lower_multiprocessors(l->target);
}

/* A thread's columns and elements along k where B lies along k. */
static void thin_along_k(const struct planner *l, struct matmul_plan *p, uint32_t lanes)
{
    const uint32_t each = l->f->nproduct * p->bm, loads = rights(l->f);
    const double threads = (double)MATMUL_BUSY * lower_multiprocessors(l->target);
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

/* Bytes of a row of B that a block reads. 1 x 14336 x 4096 of tf32 took 96 us on an H100 by 64 of
 * them, 79 by 128 and 77 by 256; 1 x 4096 x 14336 has too few columns for more than 64. */
static uint32_t line_of(const struct planner *l, unsigned bits)
{
    uint32_t line = LINE;
    while (l->n && bits == 32 && line < LONG_LINE &&
           l->size.batch * (double)(int64_t)(l->size.n * bits / 8 / (2 * line)) >=
               lower_multiprocessors(l->target))
        line *= 2;
    return line;
}

/* And where it lies along j. */
static void thin_along_j(const struct planner *l, struct matmul_plan *p, uint32_t lanes,
                         unsigned bits)
{
    const uint32_t each = l->f->nproduct * p->bm, loads = rights(l->f);
    p->wn = lanes;
    while (p->wn > 1 && (p->wn * each > MOST_SUMS || p->wn > MOST_COLUMNS))
        p->wn /= 2;
    uint32_t across = line_of(l, bits) * 8 / (p->wn * (bits ? bits : 8));
    across = across > 32 ? 32 : across ? across : 1;
    while (across > 1 && l->n && across / 2 * p->wn >= l->size.n)
        across /= 2;
    /* larger blocks rather than blocks that share columns */
    const double blocks = ceil_of(l->size.n / (across * p->wn)) * l->size.batch;
    p->threads = blocks * 256 < enough(l) ? 512 : 256;
    uint32_t wk = FLIGHT;
    while (wk > 1 && (wk * loads > FLIGHT || (l->k && wk / 2 * (p->threads / across) >= l->size.k)))
        wk /= 2;
    p->stages = FLIGHT / (wk * loads) ? FLIGHT / (wk * loads) : 1;
    shorten(l, p, &wk);
    p->bn = across * p->wn;
    p->bk = p->threads / across * wk;
}

/* Gives the plan the sizes that a schedule's tile names; false: it is not possible. */
static bool thin_named(const struct planner *l, struct matmul_plan *p, uint32_t lanes, bool along_k)
{
    const struct matmul_options *w = l->want;
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

struct matmul_plan planner_rows(const struct planner *l, uint32_t rows)
{
    struct matmul_plan p = planner_new(l, MATMUL_THIN);
    const uint32_t b = l->f->product[0].b, lanes = p.align[b];
    const bool along_k = l->f->operand[b].along_k;
    const struct matmul_options *w = l->want;
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
    const double most = (double)MATMUL_BUSY * lower_multiprocessors(l->target) / p.threads;
    double split = n * p.threads < enough(l) && n > 0 ? most / n + 0.5 : 1;
    const double steps = l->size.k / ((double)p.bk * p.stages);
    split = split > steps ? steps : split;
    split = split > MATMUL_MOST_SPLIT ? MATMUL_MOST_SPLIT : split < 1 ? 1 : split;
    p.split = w->split ? w->split : planner_shares(l, &p, (uint32_t)split);
    return p;
}

void planner_consider_rows(struct planner *l)
{
    if (l->want->shape[0] ? l->want->shape[0] > MATMUL_MOST_ROWS : l->size.m > MATMUL_MOST_ROWS)
        return;
    struct matmul_plan p = planner_rows(l, l->want->shape[0]              ? l->want->shape[0]
                                           : l->size.m < 1                ? 1
                                           : l->size.m > MATMUL_MOST_ROWS ? MATMUL_MOST_ROWS
                                                                          : (uint32_t)l->size.m);
    if (p.threads)
        planner_consider(l, &p, matmul_shared(l->target, l->f, &p));
}
