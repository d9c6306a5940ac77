/* How long a plan for wgmma takes, in nanoseconds: what matmul/cost.c does for the others.
 *
 * Blocks stay, one on each multiprocessor, and take tiles by turns:
 *
 *     t = begin + turns * (steps * step + out) + join
 *
 *   turns   ceil(tiles * shares / blocks): tiles are those of a cluster, so that a row of tiles too
 *           many for the last cluster is counted as well as the last, partly empty turn. 4096^3 by
 *           128 x 256 is 512 tiles on 132 blocks: 3.88 of 4 turns
 *   steps   of k, 128 bytes of each row
 *   step    the longest of
 *             multiply  bm bn bk products at the rate of the instruction
 *             shared    a 64 x n x 32-byte instruction reads 2 KB of A and 32 n bytes of B again
 *                       for every 64 rows, 128 bytes in a clock; the copies write every byte once,
 *                       which counts 0.75: kernels of 128 x 256 that read 640 clocks and write 384
 *                       reach 0.99 of the instructions' 1024. 128 x 128 takes 576 clocks for 512 of
 *                       products, 256 x 128 1056 for 1024, 64 x 128 336 for 256, 128 x 192 752 for
 *                       768
 *             cache     what the block asks the L2 cache for. A cluster's blocks in a row share
 *                       what they have in common (multicast): 128 x 256 asks for 48 bytes in a
 *                       clock, or 32 in a cluster of 2, of the 46 to 56 that the cache has for each
 *                       of 132
 *             memory    the same of its part of what comes from HBM: each turn's rows and columns
 *                       of tiles, once
 *             make      what is computed, by one or two warpgroups, each of which has to wait for
 *                       memory for every stage that it makes; its bytes are written to shared
 *                       memory by threads, which counts in full
 *             latency   of so many stages: one is multiplied, and one is given back when the next
 *                       has begun
 *             parts     of f32: a warpgroup waits, parts its left factors, multiplies and adds up,
 *                       while others multiply: its own products, and 600 clocks (4096^3: 64 x 128
 *                       by turns 1.57 ms, 64 x 64 each of two 1.48, 64 x 128 each of two 1.12,
 *                       where products are what is waited for)
 *   out     sums to shared memory and from there to the outputs; of cooperating warpgroups nothing
 *           is multiplied meanwhile, but the next tile's stages fill. Warpgroups that take tiles by
 *           turns (ping-pong) hide it, or the products hide behind it
 *   join    of blocks that share a tile along k
 *
 * An H100's numbers, fitted to 226 kernels of f16 that ran there beside cuBLAS (squares of 1024 to
 * 8192, 512 and 64 x 4096 x 4096; tiles from 64 x 64 to 256 x 128, 2 to 12 stages, clusters,
 * shares, ping-pong): the root of the mean square of log(time) is off by 0.105, and what is chosen
 * of them took at most 1.035 of the best's time. Products: 2048 of f16 each clock and
 * multiprocessor, at a clock that falls by what the products take of the machine's power: 1.9 GHz
 * of what waits, 1.4 of 4096^3. The L2 cache gives each byte to several multiprocessors that ask
 * for it at once, so that multicast saves less than it brings: a byte counts 1.5 by the fit, and
 * 1.2 here: of e4m3, which is not in it, 256 x 128 in pairs was 0.03 to 0.12 faster at 4096^3 and
 * 8192 x 1024 x 8192. A cluster needs places beside each other: of 4 blocks 30 run at a time, of 6
 * 17 (cuOccupancyMaxActiveClusters).
 */
#include <config.h>

#include "lower/matmul/plan.h"

/* The constants of the model. A multiprocessor's figures are those of one that a single block has
 * to itself. */
struct figures {
    /* A multiprocessor does these in a clock. */
    double products;     /* products of f16 */
    double shared_bytes; /* bytes that its shared memory moves */
    double
        copied_weight; /* what a byte counts there that a copy writes: 1 is a byte that is read */

    /* The clock falls by what the products take of the machine's power. */
    double ghz;       /* clocks in a nanosecond, where everything waits */
    double cooled_by; /* what these lose where the products never wait */
    double guessed; /* what they lose by the first guess, from which follows how often the products
                       wait */

    /* Memory gives these. */
    double cache_bytes; /* bytes in a nanosecond that the L2 cache gives to all multiprocessors */
    double multicast_weight; /* what a byte counts there that goes to several blocks: 1 is a byte
                                for one */
    double windows_weight;   /* what a byte counts there of windows that TMA copies: five tiles of
                                convolutions of 56 x 56 and 28 x 28 pixels took 1.7 to 2.1 ns for
                                each row of 128 bytes */
    double hbm_bytes;        /* bytes in a nanosecond from HBM */
    double hbm_bytes_each;   /* and of these what one multiprocessor can ask for */
    double kept_bytes;       /* bytes of the operands that stay in the cache beside what passes */
    double drift;            /* how often blocks that no cluster keeps together ask for a byte */

    /* Operands that are computed cost this, by four kernels of 4096^3 (weights of 4 bits, silu, a
     * scale of rows): 1900 to 3500 clocks of a single producer for a stage, of which 900 waited. */
    double fetch_clocks; /* clocks until what is computed has come from memory */
    double seen_share;   /* the part of them that a single producer waits for */
    double words_ahead;  /* words that each thread loads a stage ahead */
    double issue_clocks; /* clocks of each instruction of a warp */
    double stage_clocks; /* clocks of a stage's end */
    double paired_work;  /* instructions for an element that is made as one of a pair */
    double single_work;  /* instructions for any other, beside half of what it says itself */
    double
        apart; /* so many times as many where they are f32 that lie apart, of windows of planes */
    double gathered_work; /* and for 16 bytes that are copied as they lie */

    /* Moving bytes slows the clock down, also where nothing waits for it: a share of the time that
     * it takes alone. */
    double cache_power, hbm_power;

    /* Nanoseconds. */
    double begin; /* of a launch, of tensor maps and barriers, of the first tile from HBM and the
                     last one's way out */
    double again; /* of each further block on a multiprocessor */
    double near, far;     /* until a copy has come from the L2 cache, to a block and to a cluster */
    double cluster_begin; /* of a cluster's start and end */

    /* Clocks. */
    double part_clocks;    /* of parting and adding that a warpgroup does for each step, of parts of
                              f32 */
    double promote_clocks; /* of an addition of a stage's sums by 128 lanes, which mostly hides */
    double step_clocks;    /* of a step's waits */
    double tile_clocks;    /* of a tile's end */
    double
        find_clocks; /* until threads know where a tile's windows are, of sums that the ring holds
                        as a whole: 7 x 7 of 3 channels took 228 us by 64 x 64, 198 by 256 x 64 */
    double byte_tile_clocks; /* beside that of products of 8 bits: 1024^3 of e4m3 took 5.70 us in
                                two turns of 64 x 64 and 4.98 in one of 64 x 128, of int8 5.27 and
                                5.03 */
    /* of int8, the part that shows of the time in which HBM takes what results of 32 bits have
     * beyond those of 16: all blocks store at once. 4096^3 took 114 us in tiles of 128 x 256 and 95
     * in such of 128 x 128 by turns */
    double wide_store;
    double sum_clocks;    /* of each sum on its way out, by 128 lanes */
    double patch_clocks;  /* beside that, of each sum that goes through patches */
    double weight_clocks; /* of each instruction of the epilogue, by 128 lanes */
    double meet_clocks;   /* of an exchange of sums between blocks that share a tile */
    double join_bytes;    /* bytes of such sums in a clock */
};

/* An H100's, by the fit and the measurements above. */
static const struct figures h100 = {
    .products = 2048,
    .shared_bytes = 128,
    .copied_weight = 0.3,
    .ghz = 1.9,
    .cooled_by = 0.53,
    .guessed = 0.15,
    .cache_bytes = 19800,
    .multicast_weight = 1.2,
    .windows_weight = 2,
    .hbm_bytes = 3000,
    .hbm_bytes_each = 77,
    .kept_bytes = 40e6,
    .drift = 1.3,
    .fetch_clocks = 900,
    .seen_share = 0.6,
    .words_ahead = 32,
    .issue_clocks = 3.6,
    .stage_clocks = 150,
    .paired_work = 2.8,
    .single_work = 2,
    .apart = 2,
    .gathered_work = 10,
    .cache_power = 0.24,
    .hbm_power = 0.1,
    .begin = 1930,
    .again = 1090,
    .near = 440,
    .far = 890,
    .cluster_begin = 1050,
    .part_clocks = 600,
    .promote_clocks = 0.5,
    .step_clocks = 9,
    .tile_clocks = 270,
    .find_clocks = 1000,
    .byte_tile_clocks = 400,
    .wide_store = 0.6,
    .sum_clocks = 4.1,
    .patch_clocks = 25,
    .weight_clocks = 1.4,
    .meet_clocks = 920,
    .join_bytes = 14.8,
};

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
    case MATMUL_FP8: return 2 * h100.products;
    case MATMUL_TF32: return h100.products / 2 / (p->parts > 1 ? 3 : 1);
    default: return h100.products / (p->parts > 1 ? 3 : 1);
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
    double asks[2];                 /* by side: the same, as the L2 cache is asked for it */
    double ghz;
};

static void count_operand(struct block *b, uint32_t n)
{
    const struct matmul_operand *o = &b->f->operand[n];
    const bool a = o->side == MATMUL_A, windows = !o->plain && matmul_wgmma_copies(b->f, b->p, n);
    const double bytes = o->plain ? 1 : (double)o->bits / dtype_bits(o->type);
    *(a ? &b->lefts : &b->rights) += 1;
    *(a ? &b->left_bytes : &b->right_bytes) += bytes;
    b->asks[o->side] += windows && o->gather->boxes->im2col ? h100.windows_weight * bytes : bytes;
}

static struct block block_of(const struct matmul_form *f, const struct matmul_plan *p)
{
    struct block b = {.f = f, .p = p, .down = 1, .across = 1};
    b.down = p->cluster[0] ? p->cluster[0] : 1;
    b.across = p->cluster[1] ? p->cluster[1] : 1;
    b.bytes = p->bk * (dtype_bits(f->operand[0].type) / 8.0);
    for (uint32_t i = 0; i < f->noperand; i++)
        count_operand(&b, i);
    return b;
}

/* Do at least 16 bytes of a window lie side by side? */
static bool is_run(const struct matmul_operand *o)
{
    int64_t n;
    return o->gather->run && (!lang_const_int(o->gather->run, &n) || n * o->bits >= 128);
}

/* Elements of a step that are computed; instructions for all of them if `work`. */
static double made(const struct block *b, bool work)
{
    double n = 0;
    for (uint32_t i = 0; i < b->f->noperand; i++) {
        const struct matmul_operand *o = &b->f->operand[i];
        const bool apart = o->gather && o->bits == 32 && !is_run(o);
        const double single = (h100.single_work + o->weight / 2.0) * (apart ? h100.apart : 1);
        const double each = matmul_has_pairs(o) ? h100.paired_work : single;
        if (matmul_wgmma_copies(b->f, b->p, i))
            continue;
        if (matmul_wgmma_gathers(b->f, b->p))
            n += (double)(o->side == MATMUL_A ? b->p->bm : b->p->bn) * b->p->bk *
                 (work ? h100.gathered_work * o->bits / 128 : 1);
        else
            n += (double)(o->side == MATMUL_A ? b->p->bm : b->p->bn) * b->p->bk * (work ? each : 1);
    }
    return n;
}

/* Clocks of a step that producers are busy, by turns, and wait; or of making it alone. */
static double make_clocks(const struct block *b, bool waits_too)
{
    const double work = made(b, true), by = b->p->producers > 1 ? 2 : 1;
    if (matmul_wgmma_gathers(b->f, b->p)) /* copies are on their way stages before */
        return h100.stage_clocks + work / 128 * h100.issue_clocks;
    double words = 0, seen = by < 2 ? h100.seen_share : 0;
    for (uint32_t i = 0; i < b->f->noperand; i++) {
        const struct matmul_operand *o = &b->f->operand[i];
        const double elements = (double)(o->side == MATMUL_A ? b->p->bm : b->p->bn) * b->p->bk;
        if (matmul_wgmma_copies(b->f, b->p, i))
            continue;
        words += elements * o->bits / 32 / 128;
        seen = o->bits >= dtype_bits(o->type) ? 0 : seen; /* it has copies */
    }
    const double later = words > h100.words_ahead ? ceil_of(words / h100.words_ahead) - 1 : 0;
    const double waits = later + seen;
    const double busy = work > 0 ? h100.stage_clocks + work / 128 * h100.issue_clocks : 0;
    return waits_too && busy > 0 ? (waits * h100.fetch_clocks + busy) / by : busy;
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
    /* of tf32 the left operand's parts are in registers; f16 has half the bytes */
    const double parts = p->parts > 1 ? 3 : 1, in_f16 = matmul_in_f16(p) ? 0.5 : 1;
    const double rows = 64.0 / joined(b) * (matmul_in_f16(p) ? parts : 1);
    const double read = b->f->nproduct * tall * (rows + parts * wide) * b->bytes * in_f16;
    const double copied = (b->lefts * p->bm + b->rights * p->bn) * b->bytes;
    double rounded = 0;
    for (uint32_t i = 0; i < b->f->noperand; i++) {
        /* what is rounded, turned or parted where it lies, but for the operand that goes through
         * registers */
        const struct matmul_operand *o = &b->f->operand[i];
        const bool left = o->side == (p->turned ? MATMUL_B : MATMUL_A);
        const bool turned = !o->along_k;
        const bool converts = matmul_cut_of(o) == MATMUL_AWAY || p->parts > 1;
        if (p->type == MATMUL_TF32 && !left && (turned || converts))
            rounded += (turned && p->parts > 1 ? 3 : 2) * b->bytes *
                       (o->side == MATMUL_A ? p->bm : p->bn);
    }
    const double by_threads = made(b, false) * dtype_bits(b->f->operand[0].type) / 8;
    return (read + h100.copied_weight * copied + rounded + (1 - h100.copied_weight) * by_threads) /
           h100.shared_bytes;
}

/* Bytes that a block's step brings, from the cache. */
static double asked(const struct block *b)
{
    const double each = b->down * b->across > 1 ? h100.multicast_weight : 1;
    const double a = b->asks[MATMUL_A] * b->p->bm, c = b->asks[MATMUL_B] * b->p->bn;
    /* pairs of e4m3 that share the smaller operand are no slower (choose_wgmma.c) */
    if (b->p->type == MATMUL_FP8 && b->down * b->across == 2)
        return (larger(a, c) / 2 + smaller(a, c)) * b->bytes * each;
    return (a / b->across + c / b->down) * b->bytes * each;
}

/* Bytes of each step that come from HBM for each block: every element once, where all of them stay
 * in the cache; else the rows and columns of a turn's tiles, which are walked in groups of rows. */
static double fetched(const struct block *b, const struct matmul_size *s, double at_once,
                      double turns)
{
    const struct matmul_plan *p = b->p;
    const double left = b->left_bytes / matmul_repeats(b->f, MATMUL_A);
    const double right = b->right_bytes / matmul_repeats(b->f, MATMUL_B);
    const double once = s->batch * (left * s->m + right * s->n) / turns;
    const double rows = ceil_of(s->m / p->bm), columns = ceil_of(s->n / p->bn);
    double group = smaller(smaller(p->group * b->down, rows), at_once);
    double width = smaller(ceil_of(at_once / group), columns);
    const double turn = left * group * p->bm + right * width * p->bn;
    const bool stays = once * turns * ceil_of(s->k / p->bk) * b->bytes < h100.kept_bytes;
    const double drift = b->down * b->across > 1 ? 1 : h100.drift;
    return (stays ? once : drift * larger(turn, once)) * b->bytes / at_once;
}

/* busy: blocks. */
static double step_nanoseconds(const struct block *b, const struct matmul_size *s, double busy,
                               double turns)
{
    const struct matmul_plan *p = b->p;
    const double products = (double)b->f->nproduct * p->bm * p->bn * p->bk;
    /* sums of a stage are waited for and added by one warpgroup while another multiplies */
    const double added = p->promotes && p->parts < 2 ? products / p->bk / 128 * h100.promote_clocks
                                                     : 0;
    double multiply = larger(products / rate_of(p), shared_clocks(b)) + added;
    if (p->parts > 1) {
        const double takers = p->pingpong ? 1 : p->threads / 128.0 - p->producers;
        multiply = larger(multiply, products / rate_of(p) / takers + h100.part_clocks);
    }
    const double clocks = larger(multiply, make_clocks(b, true)) + h100.step_clocks;
    const double cache = asked(b) * busy / h100.cache_bytes;
    const double memory = fetched(b, s, larger(1, busy / p->split), turns) * busy /
                          smaller(h100.hbm_bytes, busy * h100.hbm_bytes_each);
    const double far = p->cluster[0] * p->cluster[1] > 1 ? h100.far : h100.near;
    const double fill = far + make_clocks(b, false) / b->ghz;
    const double latency = fill / (p->stages > 2 ? p->stages - 1.5 : 0.5);
    const double longest = larger(larger(clocks / b->ghz, cache), larger(memory, latency));
    return longest + h100.cache_power * cache + (longest > memory ? h100.hbm_power * memory : 0);
}

/* Clocks of each sum that goes through patches. They have 64 or 32 columns, or fewer that make up
 * a tile's: each time they are full a warp waits (128 x 112 through 16 columns took 11 us more than
 * 128 x 128 without patches). */
static double patch_clocks(const struct matmul_plan *p)
{
    double narrow = 1;
    for (uint32_t columns = 32; p->bn % columns && columns > 8; columns /= 2)
        narrow *= 2;
    return p->patched ? narrow * h100.patch_clocks : 0;
}

/* The nanoseconds of a tile's end. */
static double out_nanoseconds(const struct block *b)
{
    const struct matmul_plan *p = b->p;
    const double results = (double)p->bm * p->bn, sums = b->f->nproduct * results;
    const double each = h100.sum_clocks + patch_clocks(p);
    const double computed = h100.weight_clocks * b->f->light + (double)b->f->out_bits / 16;
    const bool of_bytes = p->type == MATMUL_INT8 || p->type == MATMUL_FP8;
    const double tile = h100.tile_clocks + (of_bytes ? h100.byte_tile_clocks : 0);
    return (tile + (sums * each + results * computed) / 128) / b->ghz;
}

/* And beside that, where another tile waits for it: what 32 bits of int8 take longer than 16. */
static double wide_nanoseconds(const struct block *b)
{
    const struct matmul_plan *p = b->p;
    const bool is_wide = p->type == MATMUL_INT8 && b->f->out_bits > 16;
    const double more = is_wide ? (b->f->out_bits - 16) / 8.0 * p->bm * p->bn : 0;
    return h100.wide_store * more * places_for(1) / h100.hbm_bytes;
}

static double join_nanoseconds(const struct block *b)
{
    const struct matmul_plan *p = b->p;
    if (p->split < 2)
        return 0;
    /* each finishes a part of the tile, and gets the others' sums of it */
    const double part = (double)b->f->nproduct * p->bm * p->bn * 4 / p->split;
    return (h100.meet_clocks + (p->split - 1) * part / h100.join_bytes) / b->ghz;
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
    const bool finds = steps <= p->stages && matmul_wgmma_gathers(b->f, p);
    const double find = finds ? h100.find_clocks / b->ghz : 0;
    const double out = out_nanoseconds(b) + join_nanoseconds(b) + find +
                       (turns > 1 ? wide_nanoseconds(b) : 0);
    const double work = p->pingpong ? turns * larger(multiply, out) + out
                                    : turns * (multiply + out);
    const double stored = s->batch * s->m * s->n * b->f->out_bits / 8 / h100.hbm_bytes;
    const double begin = h100.begin + (size > 1 ? h100.cluster_begin : 0) +
                         (stay ? 0 : (turns - 1) * h100.again);
    return begin + larger(work, stored);
}

double matmul_cost_wgmma(const struct matmul_form *f, const struct matmul_plan *p,
                         const struct matmul_size *s)
{
    struct block b = block_of(f, p);
    b.ghz = h100.ghz - h100.guessed;
    const double products = (double)f->nproduct * s->batch * s->m * s->n * s->k;
    const double busy = products / (places_for(1) * rate_of(p) * h100.ghz * nanoseconds(&b, s));
    b.ghz = h100.ghz - h100.cooled_by * smaller(1, busy);
    return nanoseconds(&b, s) + (matmul_in_f16(p) ? matmul_parts_about(f) : 0);
}
