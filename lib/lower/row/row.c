/* Sizes of rows: how many threads share one, what each holds, and which of several entries a launch
 * takes. */
#include <config.h>

#include "lower/row/row.h"
#include "lower/schedule.h"

#include <stdio.h>

/* As measured on an H100: two to five vectors of 16 bytes in each thread are best, and blocks of
 * which at least two fit a multiprocessor, so that one loads while the other computes. */
enum {
    BLOCK = 128,        /* threads, where several rows make a block */
    MOST = 1024,        /* threads */
    FEW_VECTORS = 4,    /* of a thread, of all but long rows */
    MANY_VECTORS = 8,   /* of long ones */
    REGISTERS = 32,     /* for the elements of a thread */
    LONG_BLOCK = 512,   /* threads: more of them are several blocks, in a cluster */
    MOST_CLUSTER = 8,   /* that every device has */
    MACHINE = 132 * 512 /* threads that keep a machine busy */
};

/* What a launch knows. */
struct sizes {
    struct lang_expr *rows, *cols;
    int64_t nrows, ncols; /* -1: known at launch */
};

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Something of the shape that the rows have. */
static struct lang_symbol leading(struct row *row)
{
    struct lang_symbol t = *row->stage->eq[0]->sym;
    t.rank = row->nlead; /* of its dimensions the first */
    return t;
}

/* As a launch has it. */
static struct lang_expr *product(struct cg *g, uint32_t n, struct lang_expr *const *dims)
{
    struct lang_expr *all = lx_int(g->a, 1);
    for (uint32_t i = 0; i < n; i++)
        all = lx_mul(g->a, all, dims[i]);
    return all;
}

static int64_t known(uint32_t n, struct lang_expr *const *dims)
{
    int64_t product = 1, one;
    for (uint32_t i = 0; i < n; i++)
        if (!lang_const_int(dims[i], &one) || __builtin_mul_overflow(product, one, &product))
            return -1;
    return product;
}

/* The widest vector, 16 bytes of the widest element or less. */
static uint32_t widest(const struct row *row)
{
    uint32_t v = 128 / row->most;
    return v > ROW_VECTOR ? ROW_VECTOR : v;
}

static uint32_t narrowest(const struct row *row)
{
    return row->least < 8 ? 2 : 1;
}

static uint32_t power_up(uint64_t n)
{
    uint32_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* One vector of 16 bytes is enough in flight for each of many threads. */
static struct row_plan looped_plan(uint32_t vector)
{
    return (struct row_plan){.vector = vector,
                             .held = vector > 1 ? 1 : 2,
                             .threads = LONG_BLOCK,
                             .rows = 1,
                             .cluster = 1,
                             .looped = true};
}

/* Long rows that need be read once, so that nothing is gained by holding them. Blocks half as large
 * were 1 to 2 % faster for 16-bit elements, of which there is more to compute while the next are
 * under way, and .3 % slower for wide ones (H100). */
static struct row_plan streamed_plan(const struct row *row, uint32_t vector)
{
    struct row_plan p = looped_plan(vector);
    p.threads = row->most <= 16 ? LONG_BLOCK / 2 : LONG_BLOCK;
    p.held = FEW_VECTORS;
    p.blocks = MOST / p.threads;
    return p;
}

/* How many vectors a thread may hold, up to `most`: a register for each element that is read, two
 * for wide ones. packed: they are better kept as they are in memory, which is so where they are
 * narrow, and their values many and quickly computed again. */
static uint32_t most_held(const struct row *row, uint32_t vector, uint32_t most, bool *packed)
{
    uint32_t bits = 32 * (row->nbuffer ? row->nbuffer : 1);
    uint32_t registers = row->is_heavy ? 2 * REGISTERS : REGISTERS, n = vector * most;
    bits = row->bits_in > bits ? row->bits_in : bits;
    *packed = row->nbuffer == 1 && row->bits_in <= 16 && n > registers;
    if (*packed) {
        bits = row->bits_in;
        registers = REGISTERS;
    }
    n = registers * 32 / (vector * bits);
    n = n < most ? n : most;
    return n ? n : 1;
}

static uint32_t vector_for(const struct row *row, int64_t ncols)
{
    uint32_t v = widest(row);
    while (v > narrowest(row) && ncols % v)
        v /= 2;
    return v;
}

static uint64_t ceil_div(uint64_t x, uint64_t y)
{
    return (x + y - 1) / y;
}

/* Do rows share what is read along the columns? */
static bool weighs(const struct row *row)
{
    bool any = false;
    for (uint32_t i = 0; i < row->nread; i++)
        any |= row->read[i].shared;
    return any;
}

/* More threads for each of few rows, and more multiprocessors, so that the machine is not left
 * idle: a thread is worth its start and its part of the exchange where it has a vector, in a block
 * of three warps two. More than 256 are where they have weights to hold, too, and then hold them
 * early; a cluster is where its threads have four vectors, or where the rows are a handful and
 * written: 256 threads that only reduce rather have eight. */
static void spread(const struct row *row, struct row_plan *p, uint64_t rows, uint64_t vectors,
                   bool clusters)
{
    enum { HANDFUL = 4, WARP = 32, FEW = 3 * WARP, MANY = 256 };
    const bool heavy = weighs(row);
    bool packed;
    const uint64_t holds = (uint64_t)MANY *
                           most_held(row, p->vector, MANY_VECTORS, &packed); /* MANY threads */
    if (clusters && rows <= HANDFUL && vectors >= 2 * MOST && (row->bits_out || vectors > holds)) {
        uint64_t threads = ceil_div(ceil_div(vectors, 2 * MOST_CLUSTER), WARP) * WARP;
        p->cluster = MOST_CLUSTER;
        p->threads = threads < LONG_BLOCK ? (uint32_t)threads : LONG_BLOCK;
        return;
    }
    while (p->threads >= 16 && rows * p->threads * p->cluster < MACHINE) {
        uint64_t sharing = (uint64_t)p->threads * p->cluster;
        if (clusters && p->threads >= MANY && p->cluster < MOST_CLUSTER && vectors >= 8 * sharing)
            p->cluster *= 2;
        else if (p->threads < MANY && vectors > (p->threads < FEW ? 1 : 2) * sharing)
            p->threads *= 2;
        else if (p->threads == MANY && heavy && vectors >= 4 * sharing)
            p->threads *= 2;
        else
            break;
    }
    if (rows * p->threads < MACHINE && p->cluster == 1 && p->threads > MANY && !heavy &&
        vectors <= holds && !packed)
        p->threads = MANY;
    if (p->threads > WARP) {
        const uint64_t each = ceil_div(vectors, (uint64_t)p->threads * p->cluster);
        p->threads = (uint32_t)ceil_div(vectors, each * p->cluster * WARP) * WARP;
    }
}

/* Are there many values for each thread? */
static bool is_wide(const struct row *row, const struct row_plan *p)
{
    return !p->packed && p->held * p->vector * (row->nbuffer ? row->nbuffer : 1) > REGISTERS;
}

/* So that enough threads share a multiprocessor: 1024, or 768 where each has many values. */
static void bound_registers(const struct row *row, struct row_plan *p)
{
    uint32_t threads = p->threads * p->rows;
    if (threads >= 256 || p->packed)
        p->blocks = (is_wide(row, p) ? MOST * 3 / 4 : MOST) / threads;
}

/* May the lines that a block has read leave the L2 cache as others do? Of 256 MiB on an H100 rows
 * of up to 20 KiB took .1 to .4 % less time then. Longer ones took as much, and in clusters, whose
 * blocks wait for each other, .5 to .7 % more; large blocks that hold weights, too, up to 5 %: the
 * address takes registers, and there is one block less. */
static bool lets_go(const struct row *row, const struct row_plan *p)
{
    enum { BITS = 8 * 20 << 10, LARGE = 320 };
    return p->cluster == 1 && p->threads * p->held * p->vector * row->most <= BITS &&
           (p->threads <= LARGE || !weighs(row));
}

/* Threads of a block, beyond which a row takes several. One block as long as it can, be it the only
 * one of its multiprocessor, but where blocks wait for each other once only, or store meanwhile. */
static uint64_t longest_block(const struct row *row, const struct row_plan *p, uint64_t threads,
                              bool is_long)
{
    if (p->packed && row->nheavy && threads > LONG_BLOCK) /* bound by arithmetic, not by memory */
        return threads / MOST_CLUSTER;
    if (is_wide(row, p) || (is_long && row->bits_out && (row->nlevel == 1 || row->nkept)))
        return LONG_BLOCK / 2;
    return threads > MOST ? LONG_BLOCK : MOST;
}

/* Many rows that are written, too: on an H100 two vectors for each of up to 640 threads that wait
 * for each other once were up to 0.6 % faster than four, and so for up to 512 that wait twice, of
 * 32-bit elements; of more, or of narrower ones, they were up to 22 % slower. And one was 0.5 to
 * 1.6 % faster where short rows of 32-bit elements share weights. */
static uint64_t widen(const struct row *row, uint64_t threads, uint64_t vectors)
{
    if (!row->bits_out || row->nkept || vectors <= 64)
        return threads;
    if (weighs(row) && row->most == 32 && vectors <= 256)
        return ceil_div(vectors, 32) * 32;
    const uint64_t pairs = ceil_div(ceil_div(vectors, 2), 32) * 32;
    if (row->nlevel > 1 && vectors > 256 && (row->most < 32 || pairs > LONG_BLOCK))
        return threads;
    return threads <= 320 && pairs > threads && pairs <= 640 ? pairs : threads;
}

/* Rows that are written and that a cluster's registers just hold, in all threads that its
 * multiprocessors have: of 1.5 MiB on an H100 such rows took 0.66 of the time that reading them
 * twice takes. */
static bool fills_cluster(const struct row *row, uint64_t vectors, struct row_plan *p)
{
    enum { FULL = 48 }; /* registers for a thread's elements, of 64 */
    const uint32_t bits = row->bits_in > 16 ? 32 : row->bits_in;
    const uint64_t each = ceil_div(vectors, (uint64_t)MOST * MOST_CLUSTER);
    if (row->nbuffer != 1 || row->bits_in > 32 || !row->bits_out || each > ROW_HELD ||
        each * p->vector * bits > FULL * 32)
        return false;
    p->packed = bits <= 16;
    p->threads = (uint32_t)ceil_div(vectors, each * MOST_CLUSTER * 32) * 32;
    p->held = (uint32_t)each;
    return true;
}

/* For columns that are known at emission. */
static struct row_plan plan_for(struct row *row, const struct sizes *s)
{
    struct row_plan p = {.vector = vector_for(row, s->ncols), .rows = 1, .cluster = 1};
    uint64_t vectors = (uint64_t)s->ncols / p.vector;
    bool clusters = row->g->target->sm >= 90;
    /* more of those that are narrower for the columns' sake, as many bytes */
    uint32_t times = widest(row) / p.vector < 4 ? widest(row) / p.vector : 4;
    uint32_t held = most_held(row, p.vector, FEW_VECTORS * times, &p.packed);
    if (vectors == 0)
        return looped_plan(p.vector);
    /* a kept output's threads have more to load than they hold */
    bool is_long = ceil_div(vectors, held) > (row->nkept ? MOST : LONG_BLOCK);
    const bool many = s->nrows < 0 || s->nrows >= MACHINE / LONG_BLOCK * 3;
    /* of many, where nothing is written along them, more than two blocks to a multiprocessor: 1.6 %
     * on an H100; few that leave it idle as it is are 15 % faster by more threads */
    if (is_long ||
        (many && row->nheavy && !row->bits_out && ceil_div(vectors, held) > LONG_BLOCK * 3 / 4))
        held = most_held(row, p.vector, MANY_VECTORS * times, &p.packed);
    uint64_t threads = ceil_div(vectors, held);
    if (vectors <= 32) /* 32 bytes beside each other at least: what memory moves at a time */
        threads = vectors < 4 ? power_up(vectors) : power_up(ceil_div(vectors, 2));
    else
        threads = ceil_div(threads, 32) * 32;
    p.held = held;
    uint64_t most = longest_block(row, &p, threads, is_long);
    while (clusters && threads > most && p.cluster < MOST_CLUSTER) {
        p.cluster *= 2;
        threads = ceil_div(ceil_div(vectors, (uint64_t)held * p.cluster), 32) * 32;
    }
    if ((p.cluster > 1 || threads > LONG_BLOCK) && many && row->nheavy && row_is_read_once(row))
        return streamed_plan(row, p.vector);
    if (threads > MOST && p.cluster == MOST_CLUSTER && fills_cluster(row, vectors, &p))
        return p;
    if (threads > LONG_BLOCK && is_wide(row, &p)) /* the registers are too few for so many */
        p.packed = row->nbuffer == 1 && row->bits_in <= 16;
    if (threads > MOST || (threads > LONG_BLOCK && is_wide(row, &p)))
        return looped_plan(p.vector);
    if (many && p.cluster == 1 && !p.packed && !is_long)
        threads = widen(row, threads, vectors);
    p.threads = (uint32_t)threads;
    if (s->nrows > 0)
        spread(row, &p, (uint64_t)s->nrows, vectors, clusters);
    p.held = (uint32_t)ceil_div(vectors, (uint64_t)p.threads * p.cluster);
    if (p.threads <= 32)
        p.rows = BLOCK / p.threads;
    bound_registers(row, &p);
    p.lets_go = lets_go(row, &p);
    return p;
}

/* ---- does it fit ----------------------------------------------------------------------------- */

/* Rows as they are held, and as those are that are too long for that: they are read again, and keep
 * nothing. One is both where nothing is to be kept. */
struct fitting {
    struct row *held, *again;
};

/* Rows that are too long to be held are read again for each level, by one block each. Launches of
 * their own read them once for a mean and a variance, and share few of them among all blocks: where
 * the cache does not hold the rows that are read at a time, two for each multiprocessor. */
static bool is_better_apart(struct row *row, const struct lower_stage *stage, struct buf *why)
{
    enum { ROWS = MACHINE / LONG_BLOCK, CACHE = 32 << 20 };
    const struct sizes s = {.nrows = known(row->nlead, row->lead),
                            .ncols = known(row->ncol, row->col)};
    if (s.nrows < 0 || s.ncols <= 0 || !plan_for(row, &s).looped)
        return false;
    const int64_t rows = s.nrows < 2 * ROWS ? s.nrows : 2 * ROWS;
    const int64_t bits = s.ncols * (row->bits_in ? row->bits_in : 1);
    if (bits < (int64_t)CACHE * 8 / (rows + 1) ||
        (row_readings(row) < 2 && (!row->bits_out || s.nrows >= ROWS)))
        return false;
    return !lower_lacks(why, stage->eq[0]->span,
                        "rows too long to be held are read less often, or by more of the machine, "
                        "in launches of their own");
}

void *row_fit(struct cg *g, const struct lower_stage *s, struct buf *why)
{
    struct fitting *f = ARENA_NEW(g->a, struct fitting);
    f->held = f->again = ARENA_NEW(g->a, struct row);
    if (!row_analyse(g, s, true, f->held, why))
        return NULL;
    if (f->held->nkept) {
        f->again = ARENA_NEW(g->a, struct row);
        if (!row_analyse(g, s, false, f->again, why))
            return NULL;
    }
    return !g->spec->schedule.n && is_better_apart(f->again, s, why) ? NULL : f;
}

/* ---- as scheduled ---------------------------------------------------------------------------- */

static bool check_threads(struct cg *g, const struct row_plan *p)
{
    bool power = (p->threads & (p->threads - 1)) == 0;
    if (p->threads % 32 && !(power && p->threads < 32))
        return cg_error(g, schedule_span(g, "threads"),
                        "'threads' is a power of two below 32, or a multiple of 32 up to 1024");
    if (p->threads * p->rows > MOST || p->threads * p->rows % 32)
        return cg_error(
            g, schedule_span(g, "rows"),
            "%u rows of %u threads are no block: it has 32 to 1024 threads, whole warps", p->rows,
            p->threads);
    if (p->rows > 1 && (!power || p->cluster > 1))
        return cg_error(
            g, schedule_span(g, "rows"),
            "several rows in a block share a power of two of threads each, and no cluster");
    return true;
}

/* Plans as the schedule says; what it leaves open follows from the rest. */
static bool scheduled(struct cg *g, const struct row *row, const struct sizes *s,
                      const struct row_options *want, struct row_plan *p)
{
    *p = (struct row_plan){.vector = vector_for(row, s->ncols),
                           .threads = want->threads,
                           .held = want->vectors,
                           .cluster = want->cluster ? want->cluster : 1};
    uint64_t vectors = (uint64_t)s->ncols / p->vector;
    if (p->cluster > 1 && !cg_needs(g, schedule_span(g, "cluster"), 90, "a cluster of blocks"))
        return false;
    if (!p->threads) {
        uint64_t each = p->held ? p->held : most_held(row, p->vector, MANY_VECTORS, &p->packed);
        uint64_t n = ceil_div(vectors, each * p->cluster);
        n = p->cluster > 1 && n < 32 ? 32 : n;
        p->threads = n > 16 ? n > MOST ? MOST : (uint32_t)ceil_div(n, 32) * 32 : power_up(n);
    }
    uint64_t least = ceil_div(vectors, (uint64_t)p->threads * p->cluster);
    if (p->held ? p->held < least : least > ROW_HELD)
        return cg_error(g, schedule_span(g, p->held ? "vectors" : "threads"),
                        "the row has %llu vectors of %u elements: %u threads hold them in %llu "
                        "vectors each, of at most %d",
                        (unsigned long long)vectors, p->vector, p->threads * p->cluster,
                        (unsigned long long)least, ROW_HELD);
    p->held = p->held ? p->held : least ? (uint32_t)least : 1;
    most_held(row, p->vector, p->held, &p->packed);
    p->rows = want->rows                            ? want->rows
              : p->threads <= 32 && p->cluster == 1 ? BLOCK / p->threads
                                                    : 1;
    bound_registers(row, p);
    p->lets_go = lets_go(row, p);
    return check_threads(g, p);
}

/* ---- entries --------------------------------------------------------------------------------- */

struct emission {
    struct cg *g;
    struct row *row;
    struct row *again; /* where rows are read again, nothing is kept */
    const struct sizes *s;
    const char *entry; /* the first one's name */
    uint32_t n;
};

static bool is_plain_dimension(const struct row *row)
{
    const struct lang_expr *e = inspect_strip(row->col[0]);
    return row->ncol == 1 && (e->kind == E_NAME || e->kind == E_INT);
}

/* Column numbers need 64 bits where there may be more than 2^31 vectors. */
static enum dtype number_type(const struct row *row, const struct row_plan *p,
                              const struct sizes *s)
{
    bool small = s->ncols >= 0 ? s->ncols <= INT32_MAX : is_plain_dimension(row) && p->vector > 1;
    return p->looped && !small ? DT_I64 : DT_U32;
}

static void explain(struct cg *g, const struct row_plan *p, bool once, const char *entry,
                    const char *when)
{
    struct buf b = buf_in(g->a);
    if (p->threads)
        buf_printf(&b, "%u threads for each row, ", p->threads);
    if (p->cluster > 1)
        buf_printf(&b, "in %u blocks of a cluster, ", p->cluster);
    if (p->rows > 1)
        buf_printf(&b, "%u rows for each block, ", p->rows);
    if (p->looped)
        buf_puts(&b, once ? "reading the row once" : "reading the row again for each level");
    else
        buf_printf(&b, "%u vectors held by each thread%s", p->held,
                   p->packed ? " as they were loaded" : "");
    const char *more = arena_printf(g->a, ", %u elements in a vector", p->vector);
    lower_tell(
        g, &(struct lower_entry){.name = entry, .how = buf_text(&b), .more = more, .when = when});
}

/* KERNEL_part, or of a further stage KERNEL_stage_part. */
static const char *entry_name(const struct emission *m, const char *part)
{
    const size_t n = strlen(m->g->spec->name);
    if (!m->n)
        return m->entry;
    if (strcmp(m->entry, m->g->spec->name) != 0)
        part = arena_printf(m->g->a, "%s_%s", m->entry + n + 1, part);
    return lower_entry_name(m->g, part);
}

static struct lang_expr *block_of(struct cg *g, const struct sizes *s, const struct row_plan *p)
{
    if (p->threads)
        return lx_int(g->a, p->threads * p->rows);
    const uint32_t warp = 32 * p->vector * p->held;
    return lx_mul_int(g->a, lx_ceil_div_int(g->a, s->cols, warp), 32);
}

static struct lang_expr *grid_of(struct cg *g, const struct sizes *s, const struct row_plan *p)
{
    if (p->rows > 1)
        return lx_ceil_div_int(g->a, s->rows, p->rows);
    return lx_mul_int(g->a, s->rows, p->cluster);
}

static void set_block(struct cg *g, const struct row_plan *p)
{
    uint32_t threads = p->threads * p->rows;
    g->block[0] = threads;
    g->block[1] = g->block[2] = 1;
    uint32_t *of = threads ? g->func->reqntid : g->func->maxntid;
    of[0] = threads ? threads : MOST;
    of[1] = of[2] = 1;
    g->func->minnctapersm = p->blocks;
    if (p->cluster > 1)
        g->func->directives = arena_printf(
            g->module->arena, ".explicitcluster\n.reqnctapercluster %u, 1, 1", p->cluster);
}

/* How many additions a term goes through: a thread's own, then those of lanes and of warps, by
 * twos. */
static void tell_depth(struct cg *g, const struct sizes *s, const struct row_plan *p)
{
    uint32_t ways = p->vector < ROW_WAYS ? p->vector : ROW_WAYS, pairs = 0;
    uint32_t threads = (p->threads ? p->threads : MOST) * p->cluster;
    for (uint32_t n = 1; n < threads * ways; n *= 2)
        pairs++;
    struct lang_expr *own = lx_int(g->a, p->held * (p->vector / ways));
    if (p->looped) /* and two for the scaling of a sum that is relative to a maximum */
        own = lx_mul_int(g->a, lx_ceil_div_int(g->a, s->cols, threads * p->vector),
                         p->vector / ways + 2);
    lower_depth(g, lx_add_int(g->a, own, pairs));
}

static void emit(struct emission *m, struct row_plan p, const char *part, struct lang_expr *when)
{
    struct cg *g = m->g;
    struct row *row = p.looped ? m->again : m->row;
    const char *entry = entry_name(m, part);
    struct lang_expr *rows;
    if (g->failed)
        return;
    m->n++;
    tell_depth(g, m->s, &p);
    explain(g, &p, p.looped && row_is_read_once(row), entry,
            when ? lang_expr_text(g->a, when) : NULL);
    cg_begin(g, entry);
    cg_at(g, m->row->stage->eq[0]->span);
    set_block(g, &p);
    struct row_gen *r = ARENA_NEW(g->a, struct row_gen);
    *r = (struct row_gen){.g = g, .row = row, .plan = p};
    r->ct = number_type(row, &p, m->s);
    for (uint32_t i = 0; i < row->nreduce; i++)
        row->reduce[i].is_done = false;
    struct lang_symbol lead = leading(row);
    struct cg_val total = shape_total(g, &lead, 1, &rows);
    row_answer(r);
    row_begin(r, total);
    if (p.looped)
        row_looped(r);
    else
        row_held(r);
    cg_nest_close(g, &r->nest);
    g->read = NULL;
    g->reduced = NULL;
    g->quotient = NULL;
    g->preloaded = false;
    struct contract_launch *l = cg_launch(g, grid_of(g, m->s, &p), block_of(g, m->s, &p));
    if (p.cluster > 1)
        l->cluster[0] = lx_int(g->a, p.cluster);
    l->when = when;
    cg_end(g, l);
}

/* From 1 column to so many; most 0: for any number. aligned: what else must hold; NULL: nothing. */
static struct lang_expr *when_at_most(struct cg *g, struct lang_expr *aligned,
                                      struct lang_expr *cols, uint32_t most)
{
    if (!most)
        return lx_and(g->a, aligned, lx_at_least(g->a, cols, 0));
    struct lang_expr *some = lx_compare(g->a, OP_GT, cols, lx_int(g->a, 0));
    return lx_and(g->a, aligned, lx_and(g->a, some, lx_at_most(g->a, cols, most)));
}

/* Columns known at launch: few entries, as each is as much code as one for known columns. */
static void emit_generic(struct emission *m, uint32_t vector, struct lang_expr *aligned,
                         const char *name)
{
    struct cg *g = m->g;
    struct lang_expr *cols = m->s->cols;
    bool packed;
    uint32_t held = most_held(m->row, vector, FEW_VECTORS, &packed);
    struct row_plan few = {
        .vector = vector, .held = 1, .threads = 16, .rows = BLOCK / 16, .cluster = 1};
    struct row_plan block = {
        .vector = vector, .held = held, .rows = 1, .cluster = 1, .packed = packed};
    if (vector > narrowest(m->row))
        emit(m, few, arena_printf(g->a, "short%s", name),
             when_at_most(g, aligned, cols, 16 * vector));
    emit(m, block, arena_printf(g->a, "block%s", name),
         when_at_most(g, aligned, cols, LONG_BLOCK * vector * held));
    emit(m, looped_plan(vector), arena_printf(g->a, "loop%s", name),
         when_at_most(g, aligned, cols, 0));
}

bool row_lower(struct cg *g, void *form, const void *options)
{
    const struct fitting *f = form;
    const struct row_options *want = options;
    struct row *row = f->held;
    struct sizes s = {.nrows = known(row->nlead, row->lead), .ncols = known(row->ncol, row->col)};
    s.rows = product(g, row->nlead, row->lead);
    s.cols = product(g, row->ncol, row->col);
    struct emission m = {
        .g = g, .row = row, .again = f->again, .s = &s, .entry = row->stage->entry};
    bool asked = want->threads || want->vectors || want->rows || want->cluster;
    if (asked && s.ncols <= 0)
        return cg_error(g, g->spec->schedule.v[0].key_span,
                        "how threads share a row can be said where the columns are known: fix '%s' "
                        "with -D",
                        lang_expr_text(g->a, s.cols));
    if (asked) {
        struct row_plan p;
        if (scheduled(g, row, &s, want, &p))
            emit(&m, p, "", NULL);
        return !g->failed;
    }
    if (s.ncols >= 0) {
        emit(&m, plan_for(row, &s), "", NULL);
        return !g->failed;
    }
    uint32_t wide = widest(row), narrow = narrowest(row);
    if (wide > narrow)
        emit_generic(&m, wide, lx_is_multiple(g->a, s.cols, wide), "");
    emit_generic(&m, narrow, NULL, wide > narrow ? "_odd" : "");
    return !g->failed;
}
