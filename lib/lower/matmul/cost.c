/* How long a plan takes: enough to choose between tiles, not to foretell times.
 *
 *     t = start + max(multiply, caches, memory, latency) + join
 *
 *   start     a launch, the first tiles on their way, the last ones stored
 *   multiply  the busiest multiprocessor's blocks, ceil(blocks / multiprocessors), one after the
 *             other or side by side. Its rate is that of the instruction, or as many products as
 *             shared memory feeds (128 bytes each clock), if enough warps are there to keep either
 *             busy
 *   caches    what all blocks read, through the L2 cache: each of them (bm + bn) k elements
 *   memory    every element once
 *   latency   what a multiprocessor may have on its way at once, stages - 1 tiles of each block
 *             that it holds, comes once for each latency of the memory
 *   join      of blocks that share a tile: their sums, to the L2 cache and back, and the last
 *             block's work, which reads them while the others are idle
 *
 * For few rows (simt/thin.c) the same, with products and conversions as instructions, and without
 * shared memory.
 *
 * Numbers of machines: multiprocessors, clock and memory from their makers' tables, rates of L2
 * caches and of mma.sync as measured (on an H100 mma.sync reaches 0.62 of what the machine has).
 * Code for sm_80 and for targets that are not here is judged as if for an H100: it is what newer
 * machines run.
 */
#include <config.h>

#include "lower/matmul/plan.h"

/* Per clock and multiprocessor: products of f32, of f64, and of mma.sync. */
struct machine {
    unsigned sm;
    double mps, ghz, memory, cache; /* bytes per nanosecond */
    double f32, f64, half, tf32, int8;
};
static const struct machine machines[] = {
    {70, 80, 1.5, 800, 2000, 64, 32, 0, 0, 0},
    {75, 40, 1.3, 260, 1000, 64, 2, 512, 0, 1024},
    {80, 132, 1.7, 3000, 7000, 128, 64, 1270, 635, 2540},
    {86, 84, 1.7, 800, 2500, 128, 2, 256, 128, 1024},
    {89, 128, 2.4, 900, 4500, 128, 2, 256, 128, 1024},
    {90, 132, 1.7, 3000, 7000, 128, 64, 1270, 635, 2540},
};

/* Nanoseconds: a launch and its end; of memory; of a count and two barriers. */
static const double START = 2500, LATENCY = 1000, MEET = 1000;
/* Clocks of a tile's barrier; bytes of shared memory in a clock, with half of the products beside
 * them; warps that keep fma busy; bytes that a block has on its way while it adds parts. */
static const double STEP = 40, SHARED = 165, WARPS = 8, PARTS = 32768;

/* What mma.sync was measured to take of that on an H100 under load (f16 of 4096^3 341 us, of 8192^3
 * 2.7 ms; tf32 700 us, 5.5 ms), where plans for wgmma, whose model counts that, are beside it. */
static const double BESIDE = 1.15;
/* An instruction for a computed element adds to that: 1.3 to 2.6 times as much was measured
 * (weights of 4 bits, silu). */
static const double COMPUTED = 0.09;

/* Clocks for an element that is copied by itself, of 4 bytes: 3 x 3 convolutions of planes took 319
 * us (64 images of 64 x 56 x 56, 64 filters), 2065 us (16 of 64 x 256 x 256, 128 filters), 7 x 7 of
 * 3 x 224 x 224 435 us. Narrower ones go through registers: 7 x 7 of pixels of 3 channels of f16
 * took 658 us. */
static const double SINGLE = 0.55, NARROW = 1.15;

/* The rate of tf32 by way of f16, relative to tf32's own: at 4096^3 on an H100 554 us where
 * tf32_rn() took 787, tf32() 643 and tf32_rz() 589 by instructions of tf32; at 8192^3 4.58 ms,
 * 6.45, 5.26 and 4.87. */
static const double HALVES = 1.25;

/* Of parts: three, and as long as another to make the parts. */
static const double PRODUCTS_OF_PARTS = 4;

static const struct machine *machine_of(const struct ptx_target *target)
{
    const struct machine *best = &machines[2];
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (machines[i].sm == target->sm)
            best = &machines[i];
    return best;
}

unsigned lower_multiprocessors(const struct ptx_target *target)
{
    return (unsigned)machine_of(target)->mps;
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

double ceil_of(double x)
{
    if (x >= 0x1p53)
        return x; /* which is whole */
    const double whole = (double)(int64_t)x;
    return whole < x ? whole + 1 : whole;
}

/* Bits that an element along k of a row of A, or column of B, has, in memory and where it is
 * multiplied. */
static double bits_of(const struct matmul_form *f, enum matmul_side side, bool stored)
{
    double bits = 0;
    for (uint32_t i = 0; i < f->noperand; i++)
        if (f->operand[i].side == side)
            bits += stored ? f->operand[i].bits : dtype_bits(f->operand[i].type);
    return bits;
}

static double instruction_rate(const struct machine *x, const struct matmul_form *f,
                               const struct matmul_plan *p)
{
    if (p->how != MATMUL_MMA)
        return f->sum == DT_F64 ? x->f64 : x->f32;
    switch (p->type) {
    case MATMUL_INT8: return x->int8;
    case MATMUL_FP8: return x->half * (p->type == f->type ? 2 : 1);
    case MATMUL_TF32:
    case MATMUL_F32:
        if (p->as_f16)
            return HALVES * x->tf32;
        return x->tf32 / (p->parts > 1 ? PRODUCTS_OF_PARTS : 1);
    default: return x->half;
    }
}

bool matmul_parts_pay(const struct ptx_target *target)
{
    static const unsigned with[] = {80, 90, 100, 103};
    const struct machine *x = machine_of(target);
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        if (with[i] == target->sm)
            return x->tf32 > PRODUCTS_OF_PARTS * x->f32;
    return false; /* cards for graphics multiply tf32 at the rate of fma */
}

/* Products in a clock of a multiprocessor that holds so many blocks. */
static double rate_of(const struct machine *x, const struct matmul_form *f,
                      const struct matmul_plan *p, double held)
{
    const double rate = instruction_rate(x, f, p), warps = held * p->threads / 32;
    const double wm = p->wm, wn = p->wn, bm = p->bm, bn = p->bn;
    if (p->how == MATMUL_THIN) /* conversions, too, and A's elements from the first cache */
        return 0.5 * rate * wn / (wn + 4);
    if (p->how == MATMUL_SIMT)
        return rate / f->pair_weight * wm * wn / (wm * wn + 2 * (wm + wn)) *
               smaller(1, warps / WARPS);
    const double bytes = dtype_bits(f->operand[0].type) / 8.0;
    const double each = bytes * ((wm + wn) / (wm * wn) + (bm + bn) / (bm * bn));
    const double few = warps >= 8 ? 1 : warps >= 4 ? 0.9 : 0.6;
    return few / (0.5 / rate + each / SHARED);
}

/* Blocks that a multiprocessor holds, of the machine that it is judged for. */
static double resident(const struct ptx_target *target, const struct matmul_form *f,
                       const struct matmul_plan *p, uint32_t shared)
{
    const struct ptx_target *t = target->sm == 80 ? ptx_target_of(90) : target;
    const double sums = (double)f->nproduct * p->bm * p->bn / p->threads * dtype_bits(f->sum) / 32;
    const double thin = p->how == MATMUL_THIN ? p->threads / ((double)p->bn / p->wn) : 1;
    const double registers = smaller(255, sums * thin + 48);
    double n = (double)t->regs_per_sm / (registers * p->threads);
    n = smaller(n, (double)t->shared_per_sm / (shared + 1024.0));
    n = smaller(n, (double)t->threads_per_sm / p->threads);
    n = smaller(n, t->blocks_per_sm);
    return larger(1, (double)(int64_t)n);
}

/* Of what is computed: mma.sync copies windows as they lie. */
static double weight_of(const struct matmul_form *f, const struct matmul_plan *p)
{
    double weight = 0;
    for (uint32_t i = 0; i < f->noperand; i++) {
        const struct matmul_operand *o = &f->operand[i];
        const bool copied = p->how == MATMUL_MMA && o->gather &&
                            (o->gather->run || o->bits == 32) && p->align[i] * o->bits >= 32;
        weight += copied ? 0 : o->weight;
    }
    return weight;
}

/* The product of n extents, as far as they are known; all: set to false where some are not. */
static double known(uint32_t n, struct lang_expr *const *dim, bool *all)
{
    double product = 1;
    int64_t v;
    for (uint32_t i = 0; i < n; i++)
        if (lang_const_int(dim[i], &v) && v > 0)
            product *= (double)v;
        else
            *all = false;
    return product;
}

double matmul_repeats(const struct matmul_form *f, enum matmul_side side)
{
    double most = 1;
    const struct lang_symbol *across = side == MATMUL_A ? f->i : f->j;
    for (uint32_t i = 0; i < f->noperand && f->slides; i++) {
        const struct matmul_operand *o = &f->operand[i];
        bool all = o->side == side && !o->plain && o->main;
        if (!all)
            continue;
        double n = known(1, f->k->dims, &all) * (across ? known(1, across->dims, &all) : 1);
        for (uint32_t b = 0; b < f->nbatch; b++)
            n *= known(1, f->batch[b]->dims, &all);
        n /= known(o->main->rank, o->main->dims, &all);
        most = all ? larger(most, n) : most;
    }
    return most;
}

/* Clocks for those elements of a step along k that come one by one. */
static double singles(const struct matmul_form *f, const struct matmul_plan *p)
{
    double n = 0;
    for (uint32_t i = 0; i < f->noperand; i++) {
        const struct matmul_operand *o = &f->operand[i];
        const unsigned bits = (o->gather && o->gather->run ? p->align[i] : 1) * o->bits;
        if (p->how == MATMUL_MMA && o->gather && bits <= 32 && (o->gather->run || bits == 32))
            n += (o->side == MATMUL_A ? p->bm : p->bn) * (bits < 32 ? NARROW : SINGLE);
    }
    return n;
}

double matmul_cost(const struct ptx_target *target, const struct matmul_form *f,
                   const struct matmul_plan *p, const struct matmul_size *s, uint32_t shared)
{
    if (p->how == MATMUL_WGMMA)
        return matmul_cost_wgmma(f, p, s);
    const struct machine *x = machine_of(target);
    const double tiles = ceil_of(s->m / p->bm) * ceil_of(s->n / p->bn) * s->batch;
    const double blocks = tiles * p->split;
    /* by turns no more multiprocessors work than there are blocks */
    const double turns = p->blocks && p->blocks != MATMUL_BLOCKS_ALL ? p->blocks : x->mps;
    const double each = ceil_of(blocks / smaller(x->mps, turns));
    const double k = larger(1, ceil_of(ceil_of(s->k / p->bk) / p->split)) * p->bk; /* of a block */
    const double most = p->blocks ? ceil_of(turns / x->mps) : each;
    const double held = smaller(resident(target, f, p, shared), smaller(most, each));
    const double products = (double)f->nproduct * p->bm * p->bn * k;
    const double steps = p->how == MATMUL_THIN ? 0 : each * k / p->bk * STEP;
    const double multiply = (each * products / rate_of(x, f, p, held) + steps) / x->ghz;
    const double a = bits_of(f, MATMUL_A, true) / 8, b = bits_of(f, MATMUL_B, true) / 8;
    const double block = (p->bm * a + p->bn * b) * k;
    /* rows of A are few, and in the first cache */
    const double fetched = p->how == MATMUL_THIN ? p->bn * b * k : block;
    const double out = s->m * s->n * f->out_bits / 8;
    const double rows = s->m * s->k * a / matmul_repeats(f, MATMUL_A);
    const double columns = s->k * s->n * b / matmul_repeats(f, MATMUL_B);
    const double memory = s->batch * (rows + columns + out) / x->memory;
    const double stages = p->how == MATMUL_THIN || p->stages < 2 ? p->stages : p->stages - 1;
    const double ahead = held * stages * fetched / k * p->bk;
    const double latency = each * fetched / ahead * LATENCY;
    double join = 0;
    if (p->split > 1) {
        const double part = (double)f->nproduct * p->bm * p->bn * dtype_bits(f->sum) / 8;
        join = MEET + p->split * MEET / 4 + 2 * blocks * part / x->cache +
               p->split * part / PARTS * LATENCY;
    }
    const double caches = blocks * fetched / x->cache;
    const double rest =
        larger(larger(larger(caches, memory), latency), each * singles(f, p) * k / x->ghz) +
        0.2 * latency;
    /* with one stage a block copies or multiplies */
    const bool alternates = p->how == MATMUL_MMA && p->stages < 2;
    const bool is_beside = ptx_target_has_wgmma(target) && p->how == MATMUL_MMA;
    /* of windows threads of fma compute elements, too */
    const bool is_slow = is_beside || (f->slides && p->how != MATMUL_MMA);
    const double slower = is_slow ? (is_beside ? BESIDE : 1) * (1 + COMPUTED * weight_of(f, p)) : 1;
    return slower * (START + (alternates ? multiply + rest : larger(multiply, rest)) + join);
}
