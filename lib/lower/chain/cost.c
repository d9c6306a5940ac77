/* How long a plan for a chain takes, in nanoseconds, where all sizes are known: what matmul/cost.c
 * does for contractions. It chooses between plans, and --explain says it.
 *
 * By wgmma blocks take items, tiles of rows, by turns:
 *
 *     t = begin + max(items, memory) + 0.29 memory
 *
 *   items     each takes begin + steps * step + out. Where all have as many steps, the busiest
 *             block has ceil(items / multiprocessors) of them; where they differ, a counter spreads
 *             them evenly, and the last ones to be done are the shortest
 *   steps     tiles of j that have terms of a row of the item: the streams' ranges, looked at tile
 *             by tile. A range that comes from memory counts as all j
 *   step      products at the rate of the instruction, and terms. Neither hides the other, though
 *             warpgroups multiply by turns: (multiply^p + terms^p)^(1/p), and the step's waits
 *   terms     0.45 of what exponentials take (16 in a clock), and 0.72 of what all instructions
 *             take (128 in a clock)
 *   begin     of an item: its first scores and the sums of its last tile, with no others beside
 *             them; its queries on their way; its quotients
 *   memory    every element once
 *
 * Sums one by one, as gradients have, are less hidden: p is 1.2 there and 1.3 elsewhere.
 *
 * By mma.sync multiprocessors hold several blocks. There products take 650 in a clock, whatever is
 * beside them, and warps that are fewer than eight leave some of that. Few rows wait for memory:
 * every key and value once at 3.08 TB/s, and the launch, and where blocks share rows, what they
 * leave each other.
 *
 * The numbers are an H100's, fitted to 53 rows of BENCHMARKS.md of 2026-11-23: full and causal
 * attention of 64, 128 and 256 columns and of 512 to 16384 rows, variants, 8-bit floats, and
 * gradients. The root of the mean square of log(time) is off by 0.06, and no row by more than 0.16.
 */
#include <config.h>

#include "lower/chain/wgmma.h"

#include "lower/matmul/plan.h"

#include <math.h>

/* The constants of the model. */
struct figures {
    /* A multiprocessor does these in a clock. */
    double products;      /* products of f16 by wgmma, twice as many of 8 bits */
    double sync_products; /* and by mma.sync, with their loads */
    double exponentials;
    double instructions;

    double uneven; /* by mma.sync, so much longer where blocks differ */

    /* The clock falls by what the products take of the machine's power. */
    double ghz;       /* clocks in a nanosecond, where everything waits */
    double cooled_by; /* what these lose where the products never wait */
    double guessed;   /* how often products don't wait, by the first guess */

    /* What stays of terms' times beside each other, and the power of both norms. */
    double exponentials_weight, instructions_weight;
    double norm, apart_norm;

    /* Instructions for an element. */
    double read_work;     /* that is read by row and j */
    double function_work; /* of functions that are no exponentials */
    double narrow_work;   /* of its conversion to what is multiplied */
    double byte_clocks;   /* clocks of 128 elements of 8 bits beside that, which are turned */

    /* Clocks. */
    double step_clocks; /* of a step's waits */
    double item_clocks; /* of an item's begin and end */
    double first_share; /* the part of the first tile's terms that nothing is beside */
    double out_clocks;  /* of each sum on its way out, by 128 lanes */

    double begin;         /* nanoseconds of a launch */
    double meet;          /* of blocks that share rows */
    double latency;       /* until a tile has come from memory */
    double hbm_bytes;     /* in a nanosecond */
    double hbm_share;     /* of the memory's time, what is not hidden in any case */
    double few_hbm_bytes; /* in a nanosecond, where nothing else is done */
    double busy_warps;    /* that keep a multiprocessor's mma.sync busy */
};

/* An H100's, by the fit and the measurements above. */
static const struct figures h100 = {
    .products = 2048,
    .sync_products = 650,
    .uneven = 1.16,
    .exponentials = 16,
    .instructions = 128,
    .ghz = 1.89,
    .cooled_by = 0.367,
    .guessed = 0.6,
    .exponentials_weight = 0.453,
    .instructions_weight = 0.725,
    .norm = 1.307,
    .apart_norm = 1.188,
    .read_work = 3,
    .function_work = 14,
    .narrow_work = 0.5,
    .byte_clocks = 3.77,
    .step_clocks = 142,
    .item_clocks = 1373,
    .first_share = 0.314,
    .out_clocks = 13.5,
    .begin = 3060,
    .meet = 1200,
    .latency = 900,
    .hbm_bytes = 3000,
    .hbm_share = 0.288,
    .few_hbm_bytes = 3080,
    .busy_warps = 8,
};

static double larger(double x, double y)
{
    return x > y ? x : y;
}

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

struct job {
    const struct chain_tensor *t;
    const struct chain_plan *p;
    double multiprocessors;
    double rows, j, batches;
    double block_rows;
    double bytes;              /* in memory, each once */
    double score, sum;         /* products for a row and j */
    double work, exponentials; /* instructions for these, without matrices */
    bool all;                  /* sizes are known */
};

static double extent_or(const struct lang_expr *e, bool *all)
{
    int64_t n = 1;
    if (!lang_const_int(e, &n) || n < 0)
        *all = false;
    return (double)n;
}

static double bytes_of(const struct lang_symbol *sym, bool *all)
{
    double n = dtype_bits(sym->type) / 8.0;
    for (uint32_t i = 0; i < sym->rank; i++)
        n *= extent_or(sym->dims[i], all);
    return n;
}

/* Of a tensor as it is, or of what is read for the batches to compute it, so many for each. */
static double operand_bytes(struct job *k, const struct chain_product *p, enum matmul_side side,
                            double each)
{
    const struct matmul_operand *o = &p->form.operand[p->form.operand[0].side == side ? 0 : 1];
    return o->plain ? bytes_of(o->plain->sym, &k->all) : k->batches * each * o->bits / 8;
}

/* Does it differ between elements of a tile? */
static bool depends(const struct chain_tensor *t, const struct lang_expr *e)
{
    bool any = chain_mentions(e, t->f->j) || chain_mentions_score(t->f, e);
    for (uint32_t i = 0; i < t->f->nscore; i++)
        any |= chain_mentions(e, t->score[i].raw);
    return any;
}

/* Adds what e takes for each element. */
static void add_work(const struct chain_tensor *t, const struct lang_expr *e, double *work,
                     double *exponentials)
{
    if (!depends(t, e))
        return;
    if (e->kind == E_INDEX) {
        *work += t->i < t->f->nrow && chain_mentions(e, t->f->row[t->i]) ? h100.read_work : 0;
        return;
    }
    if (e->kind == E_CALL && e->fn != FN_MAX && e->fn != FN_MIN) {
        const bool exp = e->fn == FN_EXP || e->fn == FN_EXP2;
        *work += exp ? 1 : h100.function_work;
        *exponentials += 1;
    } else if (e->kind != E_NAME && e->kind != E_CAST) {
        *work += 1;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        add_work(t, e->args[i], work, exponentials);
}

/* What stands between the products: each score's value, each reduction, and the terms, of which the
 * longest has what the others have, too. */
static void count_work(struct job *k)
{
    const struct chain_form *f = k->t->f;
    double most = 0, most_exponentials = 0;
    for (uint32_t i = 0; i < f->nscore; i++)
        add_work(k->t, k->t->score[i].value, &k->work, &k->exponentials);
    for (uint32_t i = 0; i < f->nstream; i++) {
        const struct chain_stream *s = &f->stream[i];
        double work = 0, exponentials = 0;
        if (s->has_column && s->npart)
            add_work(k->t, s->part[0].e, &work, &exponentials);
        else
            add_work(k->t, s->term, &work, &exponentials);
        k->work += s->has_column ? h100.narrow_work : 1;
        most = larger(most, work);
        most_exponentials = larger(most_exponentials, exponentials);
    }
    k->work += most;
    k->exponentials += most_exponentials;
}

/* Bytes of sheets count among the operands'. */
static void count_bytes(struct job *k)
{
    const struct chain_form *f = k->t->f;
    for (uint32_t i = 0; i < f->nscore; i++) {
        const struct chain_product *p = &k->t->score[i];
        const double terms = chain_terms(p, k->p->terms);
        k->bytes += operand_bytes(k, p, MATMUL_A, k->rows * terms) +
                    operand_bytes(k, p, MATMUL_B, k->j * terms);
    }
    for (uint32_t i = 0; i < k->t->ncolumn; i++)
        k->bytes += operand_bytes(k, &k->t->column[i], MATMUL_B, k->j * k->p->columns);
    for (uint32_t i = 0; i < k->t->nalong; i++)
        if (k->t->along[i].is_sheet)
            k->bytes += bytes_of(k->t->along[i].e->sym, &k->all);
    for (uint32_t i = 0; i < f->nout; i++)
        k->bytes += bytes_of(f->out[i].eq->sym, &k->all);
}

/* Products of an instruction's type, as so many of f16. */
static double products_of(const struct chain_product *p, double n)
{
    return n * (p->splits ? 3 : 1) * chain_size(p, MATMUL_B) / 2;
}

static struct job job_of(const struct chain_tensor *t, const struct chain_plan *p)
{
    const struct chain_form *f = t->f;
    struct job k = {.t = t, .p = p, .rows = 1, .batches = 1, .all = true};
    const struct lang_symbol *rows = chain_rows_index(t, p->packs);
    k.j = f->ends ? extent_or(f->j->dims[0], &k.all) : 1;
    k.rows = rows ? extent_or(rows->dims[0], &k.all) : 1;
    for (uint32_t a = 0; a < f->nrow; a++)
        if (a != t->i)
            k.batches *= extent_or(chain_batch_index(t, p->packs, a)->dims[0], &k.all);
    for (uint32_t i = 0; i < f->nscore; i++)
        k.score += products_of(&t->score[i], chain_terms(&t->score[i], p->terms));
    for (uint32_t i = 0; i < t->ncolumn; i++)
        k.sum += t->column[i].parts * products_of(&t->column[i], p->columns);
    k.all &= f->ends;
    count_work(&k);
    count_bytes(&k);
    return k;
}

/* ---- steps ----------------------------------------------------------------------------------- */

struct at {
    const struct chain_tensor *t;
    int64_t row;
};

/* Ranges are looked at for the first of each batch. */
static bool find(void *ctx, const struct lang_symbol *sym, double *f, int64_t *i)
{
    const struct at *at = ctx;
    for (uint32_t a = 0; a < at->t->f->nrow; a++)
        if (sym == at->t->f->row[a]) {
            *i = a == at->t->i ? at->row : 0;
            *f = (double)*i;
            return true;
        }
    return false;
}

static double value_at(const struct chain_tensor *t, const struct lang_expr *e, double row,
                       double otherwise)
{
    struct at at = {t, (int64_t)row};
    int64_t v;
    return e && lang_eval_int(e, find, &at, &v, NULL) ? (double)v : otherwise;
}

/* The tiles of j that rows from `first` to `last` have. */
static double steps_of(const struct job *k, double first, double last)
{
    const struct chain_form *f = k->t->f;
    const double wide = k->p->wide;
    double from = k->j, to = 0;
    for (uint32_t i = 0; i < f->nstream; i++) {
        const struct chain_stream *s = &f->stream[i];
        for (uint32_t end = 0; end < 2; end++) {
            const double row = end ? last : first;
            from = smaller(from, value_at(k->t, s->low, row, 0));
            to = larger(to, value_at(k->t, s->high, row, k->j));
        }
    }
    from = larger(from, 0);
    to = smaller(to, k->j);
    return from < to ? ceil_of((to - (double)(int64_t)(from / wide) * wide) / wide) : 0;
}

/* Steps of all tiles of a batch's rows, looking at some of them where they are many; *least: of
 * the shortest. */
static double all_steps(const struct job *k, double *least)
{
    enum { MOST = 64 };
    const double tiles = larger(1, ceil_of(k->rows / k->block_rows));
    const double looks = smaller(tiles, MOST);
    double sum = 0;
    *least = ceil_of(k->j / k->p->wide);
    for (double n = 0; n < looks; n++) {
        const double tile = (double)(int64_t)(n * tiles / looks);
        const double first = tile * k->block_rows;
        const double last = smaller(first + k->block_rows, k->rows) - 1;
        /* packed rows have an i for each of a group */
        const double by =
            k->p->packs && k->t->i < k->t->f->nrow
                ? larger(1, k->rows / value_at(k->t, k->t->f->row[k->t->i]->dims[0], 0, k->rows))
                : 1;
        const double n_steps =
            steps_of(k, (double)(int64_t)(first / by), (double)(int64_t)(last / by));
        sum += n_steps;
        *least = smaller(*least, n_steps);
    }
    return sum * tiles / looks;
}

static double norm(double x, double y, double power)
{
    return pow(pow(x, power) + pow(y, power), 1 / power);
}

/* Clocks of a step's terms. */
static double terms_clocks(const struct job *k)
{
    const double elements = k->block_rows * k->p->wide;
    double n = h100.exponentials_weight * k->exponentials * elements / h100.exponentials +
               h100.instructions_weight * k->work * elements / h100.instructions;
    if (chain_has_bytes(k->t))
        n += h100.byte_clocks * elements / 128 +
             h100.instructions_weight * k->block_rows * k->p->columns / h100.instructions;
    return n;
}

/* ---- wgmma ----------------------------------------------------------------------------------- */

/* busy: the part of the time in which products don't wait; becomes what it would be. */
static double wgmma_nanoseconds(const struct job *k, double *busy)
{
    const struct chain_plan *p = k->p;
    const double ghz = h100.ghz - h100.cooled_by * *busy;
    const double each = k->block_rows * p->wide / h100.products;
    const double multiply = each * (k->score + k->sum), terms = terms_clocks(k);
    const bool overlaps = p->overlaps == CHAIN_YES;
    const double power = chain_wgmma_is_apart(k->t, p) ? h100.apart_norm : h100.norm;
    const double waits = p->each > 1 ? 0 : h100.step_clocks; /* others' steps are beside them */
    const double step = norm(multiply, terms, power) + waits;
    const double out = k->t->ncolumn * k->block_rows * p->columns * h100.out_clocks / 128;
    const double alone = h100.item_clocks + out +
                         (overlaps ? multiply + h100.first_share * terms - step : 0);
    const double ends = p->each > 1 ? alone / p->each : alone;
    const double tiles = larger(1, ceil_of(k->rows / k->block_rows));
    double least;
    const double steps = all_steps(k, &least), items = tiles * k->batches;
    double clocks = ceil_of(items / k->multiprocessors) * (ends + steps / tiles * step);
    if (chain_wgmma_differs(k->t) || chain_wgmma_has_busy_ranges(k->t))
        clocks = larger(1, items / k->multiprocessors) * (ends + steps / tiles * step) +
                 (ends + least * step) / 2;
    const double memory = k->bytes / h100.hbm_bytes;
    const double all = h100.begin + larger(clocks / ghz, memory) + h100.hbm_share * memory;
    *busy = smaller(1, k->batches * steps * multiply / ghz / k->multiprocessors / all);
    return all;
}

double chain_cost_wgmma(const struct ptx_target *target, const struct chain_tensor *t,
                        const struct chain_plan *p)
{
    enum { TIMES = 3 };
    struct job k = job_of(t, p);
    double busy = h100.guessed, ns = 0;
    k.block_rows = chain_wgmma_block_rows(p);
    k.multiprocessors = lower_multiprocessors(target);
    for (int i = 0; i < TIMES && k.all; i++)
        ns = wgmma_nanoseconds(&k, &busy);
    return ns;
}

/* ---- mma.sync -------------------------------------------------------------------------------- */

/* Blocks that share a tile of rows, of `blocks` without them. */
static double shares_of(const struct job *k, double blocks, double steps)
{
    enum { MOST = 64, EACH = 4 }; /* blocks of a multiprocessor */
    const double most = k->p->split ? k->p->split : MOST;
    const double room = (double)(int64_t)(EACH * k->multiprocessors / larger(1, blocks));
    return chain_can_split(k->t) ? larger(1, smaller(smaller(most, room), steps)) : 1;
}

double chain_cost_mma(const struct ptx_target *target, const struct chain_tensor *t,
                      const struct chain_plan *p)
{
    struct job k = job_of(t, p);
    const double warps = p->sharers ? p->sharers : p->warps;
    double least;
    k.block_rows = (p->sharers ? 1.0 : p->warps) * p->high * 16;
    k.multiprocessors = lower_multiprocessors(target);
    if (!k.all)
        return 0;
    const double tiles = larger(1, ceil_of(k.rows / k.block_rows)), blocks = tiles * k.batches;
    const double steps = all_steps(&k, &least);
    const double shares = shares_of(&k, blocks, larger(1, steps / tiles));
    const double each = k.block_rows * p->wide / h100.sync_products;
    const double step = norm(each * (k.score + k.sum), terms_clocks(&k), h100.norm);
    const double held = smaller(1, blocks * shares * warps / h100.busy_warps / k.multiprocessors);
    const double uneven = t->i < t->f->nrow && chain_wgmma_differs(t) ? h100.uneven : 1;
    const double clocks = uneven * k.batches * steps * step / k.multiprocessors /
                          larger(held, 1e-3);
    const double memory = k.bytes / h100.few_hbm_bytes;
    /* tiles that wait for each other, one after the other, but for those that are on their way */
    const double chain = larger(1, steps / tiles / shares / (p->sharers ? p->sharers : 1));
    const double waits = ceil_of(chain) * h100.latency / (p->stages > 1 ? p->stages : 1);
    return h100.begin + larger(larger(clocks / h100.ghz, memory), waits) +
           (shares > 1 ? h100.meet : 0);
}

double chain_cost_launch(void)
{
    return h100.begin;
}
