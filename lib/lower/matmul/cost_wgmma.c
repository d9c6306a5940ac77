/* How long a plan for wgmma takes, in nanoseconds: what matmul/cost.c does for the others.
 *
 * Blocks stay, one on each multiprocessor, and take tiles by turns:
 *
 *     t = begin + turns * (steps * step + out) + join
 *
 *   turns   ceil(tiles * shares / blocks): tiles are those of a cluster, so that a row of tiles too many for the last cluster is
 *           counted as well as the last, partly empty turn. 4096^3 by 128 x 256 is 512 tiles on 132 blocks: 3.88 of 4 turns
 *   steps   of k, 128 bytes of each row
 *   step    the longest of
 *             multiply  bm bn bk products at the rate of the instruction
 *             shared    a 64 x n x 32-byte instruction reads 2 KB of A and 32 n bytes of B again for every 64 rows, 128 bytes in a
 *                       clock; the copies write every byte once, which counts 0.75: kernels of 128 x 256 that read 640 clocks
 *                       and write 384 reach 0.99 of the instructions' 1024. 128 x 128 takes 576 clocks for 512 of
 *                       products, 256 x 128 1056 for 1024, 64 x 128 336 for 256, 128 x 192 752 for 768
 *             cache     what the block asks the L2 cache for. A cluster's blocks in a row share what they have in common
 *                       (multicast): 128 x 256 asks for 48 bytes in a clock, or 32 in a cluster of 2, of the 46 to 56 that the
 *                       cache has for each of 132
 *             memory    the same of its part of what comes from HBM: each turn's rows and columns of tiles, once
 *             make      what is computed, by one or two warpgroups, each of which has to wait for memory for every stage that it
 *                       makes; its bytes are written to shared memory by threads, which counts in full
 *             latency   of so many stages: one is multiplied, and one is given back when the next has begun
 *             parts     of f32: a warpgroup waits, parts its left factors, multiplies and adds up, while others multiply: its own
 *                       products, and 600 clocks (4096^3: 64 x 128 by turns 1.57 ms, 64 x 64 each of two 1.48, 64 x 128
 *                       each of two 1.12, where products are what is waited for)
 *   out     sums to shared memory and from there to the outputs; of cooperating warpgroups nothing is multiplied meanwhile, but
 *           the next tile's stages fill. Warpgroups that take tiles by turns (ping-pong) hide it, or the products hide behind it
 *   join    of blocks that share a tile along k
 *
 * An H100's numbers, fitted to 226 kernels of f16 that ran there beside cuBLAS (squares of 1024 to 8192, 512 and 64 x 4096 x 4096;
 * tiles from 64 x 64 to 256 x 128, 2 to 12 stages, clusters, shares, ping-pong): the root of the mean square of log(time) is off by 0.105,
 * and what is chosen of them took at most 1.035 of the best's time. Products: 2048 of f16 each clock and multiprocessor, at a
 * clock that falls by what the products take of the machine's power: 1.9 GHz of what waits, 1.4 of 4096^3. The L2 cache gives each
 * byte to several multiprocessors that ask for it at once, so that multicast saves less than it brings: a byte counts 1.5 by the
 * fit, and 1.2 here: of e4m3, which is not in it, 256 x 128 in pairs was 0.03 to 0.12 faster at 4096^3 and 8192 x 1024 x 8192.
 * A cluster needs places beside each other: of 4 blocks 30 run at a time, of 6 17 (cuOccupancyMaxActiveClusters).
 */
#include <config.h>

#include "lower/matmul/plan.h"

/* Per clock. */
static const double PRODUCTS = 2048, SHARED = 128, COPIED = 0.3;
/* Clocks per nanosecond of what waits, and what products take from them. */
static const double GHZ = 1.9, COOLED = 0.53;
static const double CACHE = 19800, MULTICAST = 1.2, HBM = 3000,
                    EACH = 77;    /* bytes per nanosecond; each multiprocessor's */
static const double STAYS = 40e6; /* bytes that the cache keeps beside what passes */
static const double DRIFT =
    1.3; /* blocks that no cluster keeps together ask for some of it twice */
/* Clocks until what is computed has come from memory, of which a single producer hides the part that another stage's end takes;
 * words of each thread that it loads a stage ahead; clocks of each instruction of a warp, of a stage's end; instructions for an
 * element as one of a pair, and of others beside half of what it says itself. By four kernels of 4096^3 (weights of 4 bits, silu, a
 * scale of rows): 1900 to 3500 clocks of a single producer for a stage, of which 900 waited. */
static const double FETCH = 900, SEEN = 0.6, CARRIED = 32, ISSUE = 3.6, WRITTEN = 150, PAIRED = 2.8,
                    MADE = 2;
/* What moving bytes takes from the clock, where that is not what is waited for. */
static const double POWER = 0.24, HBM_POWER = 0.1;
/* Nanoseconds: a launch, tensor maps and barriers, the first tile from HBM and the last on its way out; a further block on a
 * multiprocessor; until a copy has come, from the L2 cache, and to a cluster; a cluster's start and end. */
static const double BEGIN = 1930, AGAIN = 1090, NEAR = 440, FAR = 890, CLUSTER = 1050;
/* Clocks: of an addition by 128 lanes that mostly hides, of a step's waits, of a tile's end and of each sum on its way out, by 128 lanes, of one that goes through patches, and of an instruction of the epilogue; of an exchange of sums between
 * blocks, and bytes of it in a clock. */
static const double PARTED = 600, PROMOTE = 0.5, STEP = 9, TILE = 270, PER_SUM = 4.1, PATCHED = 25,
                    WEIGHT = 1.4, MEET = 920, JOIN = 14.8;

/* Clusters of so many blocks that the machine has places for, a block on each multiprocessor. */
static double places_for(double blocks)
{
    static const uint8_t places[] = {132, 132, 66, 39, 30, 22, 17, 15, 15};
    enum { KNOWN = sizeof places - 1 };
    return blocks <= KNOWN ? places[(int)blocks] : (double)(int)(120 / blocks);
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

static double rate_of(const struct matmul_plan *p)
{
    switch (p->type) {
    case MATMUL_INT8:
    case MATMUL_FP8: return 2 * PRODUCTS;
    case MATMUL_TF32: return PRODUCTS / 2 / (p->parts > 1 ? 3 : 1);
    default: return PRODUCTS;
    }
}

struct block {
    const struct matmul_form *f;
    const struct matmul_plan *p;
    double down, across; /* blocks of a cluster */
    double bytes;        /* of k in a step: 128, or a multiple */
    double rights;       /* operands of B; there is one of A, or several */
    double lefts;
    double right_bytes, left_bytes; /* of those in memory, of each in shared memory */
    double ghz;
};

static void count_operand(struct block *b, const struct matmul_operand *o)
{
    const bool a = o->side == MATMUL_A;
    *(a ? &b->lefts : &b->rights) += 1;
    *(a ? &b->left_bytes : &b->right_bytes) += o->plain ? 1 : (double)o->bits / dtype_bits(o->type);
}

static struct block block_of(const struct matmul_form *f, const struct matmul_plan *p)
{
    struct block b = {.f = f, .p = p, .down = 1, .across = 1};
    b.down = p->cluster[0] ? p->cluster[0] : 1;
    b.across = p->cluster[1] ? p->cluster[1] : 1;
    b.bytes = p->bk * (dtype_bits(f->operand[0].type) / 8.0);
    for (uint32_t i = 0; i < f->noperand; i++)
        count_operand(&b, &f->operand[i]);
    return b;
}

/* Elements of a step that are computed; instructions for all of them if `work`. */
static double made(const struct block *b, bool work)
{
    double n = 0;
    for (uint32_t i = 0; i < b->f->noperand; i++) {
        const struct matmul_operand *o = &b->f->operand[i];
        const double each = matmul_has_pairs(o) ? PAIRED : MADE + o->weight / 2.0;
        if (!o->plain)
            n += (double)(o->side == MATMUL_A ? b->p->bm : b->p->bn) * b->p->bk * (work ? each : 1);
    }
    return n;
}

/* Clocks of a step that producers are busy, by turns, and wait; or of making it alone. */
static double make_clocks(const struct block *b, bool waits_too)
{
    const double work = made(b, true), by = b->p->producers > 1 ? 2 : 1;
    double words = 0, seen = by < 2 ? SEEN : 0;
    for (uint32_t i = 0; i < b->f->noperand; i++) {
        const struct matmul_operand *o = &b->f->operand[i];
        const double elements = (double)(o->side == MATMUL_A ? b->p->bm : b->p->bn) * b->p->bk;
        words += o->plain ? 0 : elements * o->bits / 32 / 128;
        seen = !o->plain && o->bits >= dtype_bits(o->type) ? 0 : seen; /* it has copies */
    }
    const double later = words > CARRIED ? ceil_of(words / CARRIED) - 1 : 0;
    const double waits = later + seen;
    const double busy = work > 0 ? WRITTEN + work / 128 * ISSUE : 0;
    return waits_too && busy > 0 ? (waits * FETCH + busy) / by : busy;
}

/* Products of one instruction, which reads the rows of A once for all of them (wgmma/fits.c). */
static uint32_t joined(const struct block *b)
{
    const struct matmul_form *f = b->f;
    bool one = !b->p->turned && !b->p->promotes && f->nproduct * b->p->bn <= 256;
    for (uint32_t q = 1; q < f->nproduct; q++)
        one &= f->product[q].a == f->product[0].a;
    return one ? f->nproduct : 1;
}

/* Clocks of a step that shared memory is busy. */
static double shared_clocks(const struct block *b)
{
    const struct matmul_plan *p = b->p;
    const double tall = (p->turned ? p->bn : p->bm) / 64.0, wide = p->turned ? p->bm : p->bn;
    const double parts = p->parts > 1 ? 3 : 1;
    const double rows = 64.0 / joined(b);
    const double read = b->f->nproduct * tall * (rows + parts * wide) * b->bytes;
    const double copied = (b->lefts * p->bm + b->rights * p->bn) * b->bytes;
    double rounded = 0;
    for (uint32_t i = 0; i < b->f->noperand; i++) {
        /* what is rounded, turned or parted where it lies, but for the operand that goes through registers */
        const struct matmul_operand *o = &b->f->operand[i];
        const bool left = o->side == (p->turned ? MATMUL_B : MATMUL_A);
        const bool turned = !o->along_k, converts = o->cut == MATMUL_AWAY || p->parts > 1;
        if (p->type == MATMUL_TF32 && !left && (turned || converts))
            rounded += (turned && p->parts > 1 ? 3 : 2) * b->bytes *
                       (o->side == MATMUL_A ? p->bm : p->bn);
    }
    const double by_threads = made(b, false) * dtype_bits(b->f->operand[0].type) / 8;
    return (read + COPIED * copied + rounded + (1 - COPIED) * by_threads) / SHARED;
}

/* Bytes that a block's step brings, from the cache. */
static double asked(const struct block *b)
{
    const double each = b->down * b->across > 1 ? MULTICAST : 1;
    return (b->left_bytes * b->p->bm / b->across + b->right_bytes * b->p->bn / b->down) * b->bytes *
           each;
}

/* Bytes of each step that come from HBM for each block: every element once, where all of them stay in the cache; else the rows and
 * columns of a turn's tiles, which are walked in groups of rows. */
static double fetched(const struct block *b, const struct matmul_size *s, double at_once,
                      double turns)
{
    const struct matmul_plan *p = b->p;
    const double once = s->batch * (b->left_bytes * s->m + b->right_bytes * s->n) / turns;
    const double rows = ceil_of(s->m / p->bm), columns = ceil_of(s->n / p->bn);
    double group = smaller(smaller(p->group * b->down, rows), at_once);
    double width = smaller(ceil_of(at_once / group), columns);
    const double turn = b->left_bytes * group * p->bm + b->right_bytes * width * p->bn;
    const bool stays = once * turns * ceil_of(s->k / p->bk) * b->bytes < STAYS;
    const double drift = b->down * b->across > 1 ? 1 : DRIFT;
    return (stays ? once : drift * larger(turn, once)) * b->bytes / at_once;
}

/* busy: blocks. */
static double step_nanoseconds(const struct block *b, const struct matmul_size *s, double busy,
                               double turns)
{
    const struct matmul_plan *p = b->p;
    const double products = (double)b->f->nproduct * p->bm * p->bn * p->bk;
    /* sums of a stage are waited for and added by one warpgroup while another multiplies */
    const double added = p->promotes && p->parts < 2 ? products / p->bk / 128 * PROMOTE : 0;
    double multiply = larger(products / rate_of(p), shared_clocks(b)) + added;
    if (p->parts > 1) {
        const double takers = p->pingpong ? 1 : p->threads / 128.0 - 1;
        multiply = larger(multiply, products / rate_of(p) / takers + PARTED);
    }
    const double clocks = larger(multiply, make_clocks(b, true)) + STEP;
    const double cache = asked(b) * busy / CACHE;
    const double memory = fetched(b, s, larger(1, busy / p->split), turns) * busy /
                          smaller(HBM, busy * EACH);
    const double far = p->cluster[0] * p->cluster[1] > 1 ? FAR : NEAR;
    const double fill = far + make_clocks(b, false) / b->ghz;
    const double latency = fill / (p->stages > 2 ? p->stages - 1.5 : 0.5);
    const double longest = larger(larger(clocks / b->ghz, cache), larger(memory, latency));
    return longest + POWER * cache + (longest > memory ? HBM_POWER * memory : 0);
}

/* Of a tile's end. */
static double out_nanoseconds(const struct block *b)
{
    const struct matmul_plan *p = b->p;
    const double results = (double)p->bm * p->bn, sums = b->f->nproduct * results;
    const double each = PER_SUM + (p->patched ? PATCHED : 0);
    const double computed = WEIGHT * b->f->light + (double)b->f->out_bits / 16;
    return (TILE + (sums * each + results * computed) / 128) / b->ghz;
}

static double join_nanoseconds(const struct block *b)
{
    const struct matmul_plan *p = b->p;
    if (p->split < 2)
        return 0;
    /* each finishes a part of the tile, and gets the others' sums of it */
    const double part = (double)b->f->nproduct * p->bm * p->bn * 4 / p->split;
    return (MEET + (p->split - 1) * part / JOIN) / b->ghz;
}

static double nanoseconds(const struct block *b, const struct matmul_size *s)
{
    const struct matmul_plan *p = b->p;
    const double size = b->down * b->across * p->split; /* of a cluster */
    const double tiles = ceil_of(s->m / (p->bm * b->down)) * ceil_of(s->n / (p->bn * b->across)) *
                         s->batch;
    const double all = places_for(size);
    const double blocks = p->blocks == MATMUL_BLOCKS_ALL ? places_for(1) : p->blocks;
    const bool stay = p->blocks && blocks <= all * size;
    const double places = stay ? smaller(all, (double)(int64_t)(blocks / size)) : all;
    const double clusters = larger(1, smaller(places, tiles));
    const double turns = larger(1, ceil_of(tiles / clusters)), busy = clusters * size;
    const double steps = larger(1, ceil_of(ceil_of(s->k / p->bk) / p->split));
    const double multiply = steps * step_nanoseconds(b, s, busy, turns);
    const double out = out_nanoseconds(b) + join_nanoseconds(b);
    const double work = p->pingpong ? turns * larger(multiply, out) + out
                                    : turns * (multiply + out);
    const double stored = s->batch * s->m * s->n * b->f->out_bits / 8 / HBM;
    const double begin = BEGIN + (size > 1 ? CLUSTER : 0) + (stay ? 0 : (turns - 1) * AGAIN);
    return begin + larger(work, stored);
}

double matmul_cost_wgmma(const struct matmul_form *f, const struct matmul_plan *p,
                         const struct matmul_size *s)
{
    struct block b = block_of(f, p);
    b.ghz = GHZ - 0.15;
    const double products = (double)f->nproduct * s->batch * s->m * s->n * s->k;
    const double busy = products / (places_for(1) * rate_of(p) * GHZ * nanoseconds(&b, s));
    b.ghz = GHZ - COOLED * smaller(1, busy);
    return nanoseconds(&b, s);
}
