/* What the strategy is called, which stages it takes, and its entries. BENCHMARKS.md has decoding,
 * variants and gradients, and what their steps bought.
 *
 * Rows that are few go by mma.sync first: at most 16, and groups of heads of at most 32 each. On
 * sm_90a all others go by wgmma, where operands fit it, but for rows of more than 1024 terms of
 * which more than half of the multiprocessors would have no tile: by mma.sync blocks share terms.
 * Where all sizes are known the model decides that (chain/choose.c).
 *
 * The steps, and what each of them bought: TFLOP/s of attention of f16 by wgmma on an H100, medians
 * of kaio-bench --suite attention in interleaved rounds of 2026-11-23, of 16384 tokens of 2048
 * numbers. An empty place was not measured, or not as the strategy chooses.
 *
 *                                         full, rows of 4096   512    causal, 4096        512
 *                                          d64  d128  d256    d128   d64  d128  d256    d128
 *     0. at first                          420   554   640     393   346   504   517
 *     1. exponentials before the wait      408   566   650     421   366   532   566
 *     2. fewer rescalings                  483   608   721     433   387   536   635
 *     3. short ends of items               500   614           498         526           281
 *     4. items from a counter              478   593   715     473   424   573   634     294
 *
 *   1. Exponentials stay in front of wgmma.wait_group, which ptxas had moved up. Rows wait for
 *      other lanes together, and exp is one fma and ex2.
 *   2. o is rescaled only when a maximum has grown by more than 5.5. Maxima are those of products
 *      before they are scaled. A warp's number is uniform, and so are descriptors.
 *   3. The next item's q comes early, quotients are products with one reciprocal, and infinities
 *      are looked for in four chains.
 *   4. Masks are put on products, in one copy of the code. Items that differ come from a counter,
 *      those of a batch's last rows first.
 *   5. Lanes of a row wait for each other's maxima only where these have grown. Not in the table:
 *      d128 4096 took 0.970 of the time, causal 0.986, 8-bit floats 0.943, d64 and d256 0.99.
 *   6. Of 8-bit floats a tile's sums are added, and the first row's words made, under the second
 *      row's exponentials: 0.91 of the time.
 *   7. Rows of few keys have three blocks on each multiprocessor: d64, 512, took 0.90 of the time,
 *      causal, and 0.945, full.
 *
 * Polynomials in the place of some exponentials, as FlashAttention-4 has them on newer machines,
 * were slower: with one of eight or of four 8-bit floats took 1.02 and 1.09 of the time, full d64
 * 1.05 and 1.11.
 *
 * The last run was beside cuDNN, the others beside other schedules. Nothing of step 4 is for full
 * attention, which was slower all the same, and so was cuDNN: d128, full, s 4096 had 606 by it
 * after step 2, in PyTorch, and 574 after step 4.
 */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/schedule.h"

/* What analysing found. */
struct fitting {
    struct chain_form form, skipping; /* the latter is the one of .tensor, where it is another */
    struct chain_form skipped;        /* .skipping before its runs begin */
    struct chain_tensor tensor;
    bool has_tensor;
    const char *no_tensor; /* why not */
    /* Of a stage whose outputs have rows of two kinds these are of all but one; that one is: */
    struct fitting *across; /* NULL: there is none */
    struct chain_across sum;
};

enum { MOST_TERMS = 256, MOST_COLUMNS = 256 };

/* ---- does it fit? ---------------------------------------------------------------------------- */

static bool is_at_most(const struct lang_symbol *index, int64_t most)
{
    int64_t n;
    return !lang_const_int(index->dims[0], &n) || n <= most;
}

/* Are the products such that a block holds whole rows of them? */
static bool is_short(const struct chain_tensor *t, struct buf *why)
{
    const struct span s = t->f->stage->eq[0]->span;
    for (uint32_t i = 0; i < t->f->nscore; i++)
        if (!is_at_most(t->score[i].form.k, MOST_TERMS))
            return lower_lacks(why, s, "the scores' sums are of more than %d terms", MOST_TERMS);
    if (t->f->column && !is_at_most(t->f->column, MOST_COLUMNS))
        return lower_lacks(why, s, "there are more than %d columns '%s'", MOST_COLUMNS,
                           t->f->column->name);
    return true;
}

static bool is_open(const struct lang_symbol *index)
{
    int64_t n;
    return !lang_const_int(index->dims[0], &n);
}

/* Where the sizes are not known: are they likely to be short? Attention's are, which normalises its
 * rows, or has an operand for each head; two layers of a network are not. */
static bool is_likely_short(const struct chain_tensor *t)
{
    bool open = t->f->column && is_open(t->f->column);
    for (uint32_t i = 0; i < t->f->nscore; i++)
        open |= is_open(t->score[i].form.k);
    for (uint32_t i = 0; i < t->f->nstream; i++)
        if (t->f->stream[i].running >= 0)
            return true;
    return !open || t->f->nrow > 1;
}

static struct fitting *fit_one(struct cg *g, const struct lower_stage *s, struct buf *why)
{
    struct fitting *f = ARENA_NEW(g->a, struct fitting);
    struct buf no = buf_in(g->a);
    const bool named = schedule_names(g, &chain_strategy);
    struct buf lacks = buf_in(g->a);
    if (!chain_analyse(g, s, &f->form, &lacks)) {
        /* of a stage without scores there is nothing to say, unless somebody wants to know */
        if (why && (named || f->form.nscore))
            buf_puts(why, buf_text(&lacks));
        return NULL;
    }
    const bool skips = chain_skip(g, &f->form, &f->skipping);
    f->skipped = f->skipping;
    f->has_tensor = g->target->sm >= 80 &&
                    chain_find_products(g, skips ? &f->skipping : &f->form, &f->tensor, &no) &&
                    is_short(&f->tensor, &no);
    f->no_tensor = g->target->sm < 80 ? "the target has no mma.sync of 16 terms" : buf_text(&no);
    if (named || (f->has_tensor && is_likely_short(&f->tensor)))
        return f;
    if (why)
        buf_puts(why, f->no_tensor);
    return NULL;
}

/* The stage of the equations but number n, or of that alone. */
static const struct lower_stage *without(struct cg *g, const struct lower_stage *s, uint32_t n,
                                         bool alone)
{
    struct lower_stage *to = ARENA_NEW(g->a, struct lower_stage);
    const struct lang_equation **eq = ARENA_ARRAY(g->a, s->n, const struct lang_equation *);
    *to = (struct lower_stage){.eq = eq, .entry = s->entry};
    for (uint32_t i = 0; i < s->n; i++)
        if ((i == n) == alone)
            eq[to->n++] = s->eq[i];
    return to;
}

static struct fitting *fit_plain(struct cg *g, const struct lower_stage *s)
{
    struct fitting *f = fit_one(g, s, NULL);
    struct buf why = buf_in(g->a);
    const bool plain = f && f->has_tensor && !f->tensor.f->exact &&
                       chain_wgmma_fits(g->target, &f->tensor, &why);
    return plain ? f : NULL;
}

/* Rows of two kinds: one of the outputs is a sum across the rows of the others. */
static struct fitting *fit_both(struct cg *g, const struct lower_stage *s)
{
    enum { MOST = 4 };
    if (!ptx_target_has_wgmma(g->target) || s->n < 2 || s->n > MOST)
        return NULL;
    for (uint32_t n = 0; n < s->n; n++) {
        struct fitting *others = fit_plain(g, without(g, s, n, false));
        struct fitting *one = others ? fit_plain(g, without(g, s, n, true)) : NULL;
        if (!one || !chain_find_across(g, &others->tensor, &one->tensor, &others->sum))
            continue;
        others->across = one;
        return others;
    }
    return NULL;
}

/* Both together where the schedule says in which order blocks add to the same sums. Otherwise each
 * kind of rows is by itself, which was as fast (BENCHMARKS.md), and adds nothing in memory. */
static void *fit(struct cg *g, const struct lower_stage *s, struct buf *why)
{
    struct fitting *f = fit_one(g, s, why);
    struct fitting *both = schedule_option(g, "order") ? fit_both(g, s) : NULL;
    return both ? both : f;
}

/* ---- --explain ------------------------------------------------------------------------------- */

static void explain_product(struct cg *g, const struct matmul_form *f)
{
    for (uint32_t i = 0; i < f->noperand; i++) {
        const struct matmul_operand *o = &f->operand[i];
        if (o->plain && strcmp(o->plain->sym->name, CHAIN_PART) == 0)
            continue;
        lower_explain(g, "  %s%s: %s of %s\n", o->side == MATMUL_A ? "left" : "right",
                      o->plain ? ", as it is" : ", computed", lang_expr_text(g->a, o->eq->rhs),
                      dtype_name(o->type));
    }
}

static void explain_form(struct cg *g, const struct fitting *f)
{
    const struct chain_form *form = &f->form;
    lower_explain(g, "  %u score%s, %u stream%s over %s < %s", form->nscore,
                  form->nscore == 1 ? "" : "s", form->nstream, form->nstream == 1 ? "" : "s",
                  form->j->name, form->ends ? lang_expr_text(g->a, form->j->dims[0]) : "?");
    for (uint32_t i = 0; i < form->nrow; i++)
        lower_explain(g, "%s %s < %s", i ? "," : "; rows", form->row[i]->name,
                      lang_expr_text(g->a, form->row[i]->dims[0]));
    if (form->column)
        lower_explain(g, "; columns %s < %s", form->column->name,
                      lang_expr_text(g->a, form->column->dims[0]));
    lower_explain(g, "\n");
    if (!f->has_tensor) {
        lower_explain(g, "  no tensor cores: %s\n", f->no_tensor);
        lower_missed(g, "mma.sync", f->no_tensor);
    }
    for (uint32_t i = 0; i < form->nscore && f->has_tensor; i++)
        explain_product(g, &f->tensor.score[i].form);
    for (uint32_t i = 0; f->has_tensor && i < f->tensor.ncolumn; i++)
        explain_product(g, &f->tensor.column[i].form);
}

/* ---- entries --------------------------------------------------------------------------------- */

static bool lower_any(struct cg *g, const struct chain_form *f, struct variant_set *all)
{
    const struct variant_condition always = variant_condition(g);
    variant_begin(g, all, "any", CHAIN_ANY_BLOCK);
    cg_at(g, f->stage->eq[0]->span);
    struct lang_expr *grid = chain_any(g, f);
    lower_tell(g,
               &(struct lower_entry){.name = g->func->name, .how = "a warp for each row, by fma"});
    variant_end(g, all, &always, grid, CHAIN_ANY_BLOCK);
    lower_depth(g, chain_depth(g, f, 1, 32));
    return !g->failed;
}

/* Requires that an extent that is not known is at most so many. */
static bool require_most(struct cg *g, struct variant_condition *c, const struct lang_symbol *index,
                         uint32_t most)
{
    if (!is_open(index))
        return false;
    variant_require(c, lx_at_most(g->a, index->dims[0], most));
    return true;
}

/* Requires that the plan has room for what the tensors bring. */
static void require_room(struct cg *g, const struct chain_tensor *t, const struct chain_plan *p,
                         struct variant_condition *c)
{
    for (uint32_t i = 0; i < t->f->nscore; i++)
        require_most(g, c, t->score[i].form.k, p->terms);
    if (t->f->column)
        require_most(g, c, t->f->column, p->columns);
}

/* What --explain says of packed rows. */
static const char *packed_rows(struct cg *g, const struct chain_tensor *t,
                               const struct chain_plan *p)
{
    if (!p->packs)
        return NULL;
    return arena_printf(g->a, ", rows of %s '%s' packed",
                        lang_expr_text(g->a, t->pack.member->dims[0]),
                        t->f->row[t->pack.axis]->name);
}

static bool lower_mma(struct cg *g, const struct chain_tensor *t, struct chain_plan *p,
                      struct variant_set *all)
{
    struct variant_condition c = variant_condition(g);
    const uint32_t threads = chain_mma_threads(p), unit = chain_unit(t);
    uint32_t shared = chain_mma_shared(t, p);
    for (; shared > g->target->shared_optin && p->wide % (2 * unit) == 0;
         shared = chain_mma_shared(t, p))
        p->wide /= 2;
    if (shared > g->target->shared_optin)
        return true;
    cg_dynamic(g); /* in front of what variant_drop() takes away */
    variant_begin(g, all,
                  arena_printf(g->a, "%u%s", t->f->column ? p->columns : p->terms,
                               !p->aligned     ? "_odd"
                               : p->warps == 1 ? "_few"
                               : p->packs      ? "_group"
                                               : ""),
                  threads);
    cg_at(g, t->f->stage->eq[0]->span);
    require_room(g, t, p, &c);
    if (p->few)
        variant_require(&c, p->few);
    p->when = variant_when(&c);
    struct lang_expr *grid = chain_mma(g, t, p, &c);
    if (c.never) {
        variant_drop(g, all);
        return true;
    }
    g->shared_bytes = lx_int(g->a, shared);
    const char *how = arena_printf(g->a, "mma.sync of %s, tiles %u x %u, %u columns",
                                   chain_types(g->a, t), p->warps * p->high * 16, p->wide,
                                   p->columns);
    lower_tell(g, &(struct lower_entry){
                      .name = g->func->name,
                      .how = how,
                      .more = packed_rows(g, t, p),
                      .when = variant_when_text(&c),
                      .multiplies = arena_printf(g->a, "mma.sync of %s", chain_types(g->a, t)),
                      .ns = chain_cost_mma(g->target, t, p)});
    variant_end(g, all, &c, grid, threads);
    chain_tell_losses(g, t, p);
    return !g->failed;
}

/* What --explain says of tensors whose tiles come beside those of the products. */
static const char *brought_sheets(struct cg *g, const struct chain_tensor *t,
                                  const struct chain_plan *p)
{
    const char *text = "";
    for (uint32_t n = 0; n < t->nalong && p->sheets; n++)
        if (t->along[n].is_sheet)
            text = arena_printf(g->a, "%s, '%s' by tiles", text, t->along[n].e->sym->name);
    return text;
}

static const char *blocks_text(struct arena *a, const struct chain_plan *p)
{
    if (p->each > 1)
        return arena_printf(a, ", %s%u blocks on each multiprocessor", p->own ? "" : "by turns of ",
                            p->each);
    return p->own ? "" : ", by turns of a block on each multiprocessor";
}

static bool lower_wgmma(struct cg *g, const struct chain_tensor *t, struct chain_plan *p,
                        struct variant_set *all)
{
    struct variant_condition c = variant_condition(g);
    const uint32_t threads = chain_wgmma_threads(p);
    cg_dynamic(g); /* in front of what variant_drop() takes away */
    variant_begin(g, all, arena_printf(g->a, "wgmma_%u", p->columns), threads);
    cg_at(g, t->f->stage->eq[0]->span);
    require_room(g, t, p, &c);
    if (p->few)
        variant_require(&c, p->few);
    struct lang_expr *grid = chain_wgmma(g, t, p, &c);
    if (c.never) {
        variant_drop(g, all);
        return true;
    }
    p->when = variant_when(&c);
    g->shared_bytes = lx_int(g->a, chain_wgmma_shared(t, p));
    lower_tell(
        g, &(struct lower_entry){
               .name = g->func->name,
               .how = arena_printf(g->a, "wgmma of %s, tiles %u x %u, %u columns",
                                   chain_types(g->a, t), p->warps * 16, p->wide, p->columns),
               .more = arena_printf(g->a, "%s%s", brought_sheets(g, t, p), blocks_text(g->a, p)),
               .when = variant_when_text(&c),
               .multiplies = arena_printf(g->a, "wgmma of %s", chain_types(g->a, t)),
               .ns = chain_cost_wgmma(g->target, t, p)});
    variant_end(g, all, &c, grid, threads);
    chain_tell_losses(g, t, p);
    return !g->failed;
}

/* Blocks of few rows are a warp each, of which a multiprocessor has several; those of groups have
 * packed rows, where one head alone fills half a block of many at most; the operands of odd ones
 * are no whole pieces of 16 bytes. */
enum kind { FEW, GROUP, MANY, ODD, KINDS };
enum { FEW_ROWS = 16, HALF_ROWS = 32 }; /* HALF_ROWS: half a block of many */

static struct lang_expr *most_rows(struct cg *g, const struct lang_symbol *rows, int64_t most)
{
    return rows ? lx_at_most(g->a, rows->dims[0], most) : lx_bool(g->a, true);
}

/* The sizes for which launches take entries of few rows, and of groups. */
static struct lang_expr *rows_of(struct cg *g, const struct chain_tensor *t, enum kind kind)
{
    const bool packs = chain_can_pack(t);
    const struct lang_symbol *i = chain_rows_index(t, false);
    int64_t few;
    if (kind == FEW)
        return most_rows(g, chain_rows_index(t, packs), FEW_ROWS);
    if (!packs)
        return lx_bool(g->a, false);
    if (lang_const_int(most_rows(g, i, FEW_ROWS), &few) && few)
        return lx_bool(g->a, true); /* of groups of one, there is an entry of few rows before */
    return lx_and(g->a, lx_at_least(g->a, t->pack.member->dims[0], 2), most_rows(g, i, HALF_ROWS));
}

/* Does the schedule say of several warps, or of one alone, that they have 16 or 32 rows together?
 */
static bool shares_rows(const struct chain_options *want)
{
    const uint32_t rows = want->tile[0];
    return rows && rows <= 16 * CHAIN_HIGH && (want->warps == 1 || want->warps * 16 > rows);
}

/* The blocks of few rows, if that is known: 0: it is not. */
static int64_t blocks_of(const struct chain_tensor *t, const struct chain_plan *p)
{
    const bool packs = chain_can_pack(t);
    const struct lang_symbol *rows = chain_rows_index(t, packs);
    const int64_t high = (int64_t)p->high * 16;
    int64_t n = 1, each;
    if (rows && !lang_const_int(rows->dims[0], &n))
        return 0;
    n = n < 1 ? 1 : (n + high - 1) / high;
    for (uint32_t a = 0; a < t->f->nrow; a++) {
        if (a == t->i)
            continue;
        if (!lang_const_int(chain_batch_index(t, packs, a)->dims[0], &each) || each > INT32_MAX / n)
            return 0;
        n *= each < 1 ? 1 : each;
    }
    return n;
}

/* Chooses how many warps share the rows that are one's, and how many stages each has. A
 * multiprocessor has four such warps: what is on its way at the same time is more than a memory of
 * 3 TB/s and 700 ns needs. If there is a block for each, blocks leave little for others. Where
 * there are more blocks than that warps share less, so that all of them run at the same time. */
static void choose_sharers(const struct ptx_target *target, const struct chain_tensor *t,
                           const struct chain_options *want, struct chain_plan *p)
{
    enum { STAGES = 2 };
    const int64_t blocks = blocks_of(t, p), room = (int64_t)lower_multiprocessors(target);
    p->sharers = want->warps ? want->warps : CHAIN_SHARERS;
    while (!want->warps && p->sharers > 1 && blocks * p->sharers > room * CHAIN_SHARERS)
        p->sharers /= 2;
    p->stages = want->stages ? want->stages : STAGES;
    while (chain_mma_shared(t, p) > target->shared_optin) {
        if (p->stages > 1 && !want->stages)
            p->stages--;
        else if (p->sharers > 1 && !want->warps)
            p->sharers /= 2;
        else
            return;
    }
}

/* As many as a group's rows need, if these are known. */
static uint32_t warps_of_group(const struct chain_tensor *t)
{
    int64_t rows;
    const bool known = lang_const_int(t->pack.rows->dims[0], &rows);
    return known && rows <= (int64_t)2 * 16 ? 2 : 4;
}

/* The plan for so many terms and columns at most. Code for sizes that are not known is several
 * entries, and each of them half as long. */
static struct chain_plan plan_of(const struct ptx_target *target, const struct chain_tensor *t,
                                 const struct chain_options *want, uint32_t most, bool open,
                                 enum kind kind)
{
    enum { FEW_COLUMNS = 128, SHORT_COLUMNS = 64 };
    const uint32_t columns = chain_columns(t, most);
    const bool splits = chain_has_splits(t), bytes = chain_has_bytes(t);
    const bool short_steps = splits || (bytes && columns > FEW_COLUMNS);
    const bool narrow = (open && kind != MANY && kind != GROUP) || short_steps ||
                        (kind == FEW && columns > SHORT_COLUMNS);
    const bool shares = shares_rows(want);
    struct chain_plan p = {.warps = shares          ? 1
                                    : want->warps   ? want->warps
                                    : kind == FEW   ? 1
                                    : kind == GROUP ? warps_of_group(t)
                                                    : 4,
                           .wide = want->tile[1] ? want->tile[1]
                                   : narrow      ? 32
                                                 : 64,
                           .terms = most,
                           .columns = columns,
                           .aligned = kind != ODD,
                           .split = kind == ODD ? 1 : want->split};
    const bool one = open || splits || bytes || kind == FEW || kind == GROUP;
    p.high = one || columns > 64 || t->ncolumn > 1 ? 1 : 2;
    if (want->tile[0])
        p.high = want->tile[0] / (p.warps * 16);
    while (!want->tile[1] && p.wide > chain_unit(t) && !chain_mma_has_registers(t, &p))
        p.wide /= 2;
    if (kind == FEW || shares)
        choose_sharers(target, t, want, &p);
    return p;
}

/* Entries in the order in which the launch tries them, for so many terms and columns at most: where
 * these are not known, and where they are. */
static const struct {
    enum kind kind;
    uint32_t most;
} entries[2][5] = {
    {{FEW, 256}, {GROUP, 256}, {MANY, 256}, {ODD, 256}},
    {{FEW, 128}, {GROUP, 128}, {MANY, 64}, {MANY, 128}, {ODD, 256}},
};

/* The first of FEW and GROUP that is for all sizes; MANY: none is. */
static enum kind kind_for_all(struct cg *g, const struct chain_tensor *t)
{
    enum kind kind = FEW;
    int64_t always;
    while (kind < MANY && !(lang_const_int(rows_of(g, t, kind), &always) && always))
        kind++;
    return kind;
}

/* Is the entry for some sizes? */
static bool is_wanted(struct cg *g, const struct chain_tensor *t, const struct chain_options *want,
                      enum kind kind)
{
    int64_t some;
    if (kind == ODD)
        return true;
    if (want->tile[0] || want->warps)
        return kind == MANY;
    return kind <= kind_for_all(g, t) &&
           (kind == MANY || !lang_const_int(rows_of(g, t, kind), &some) || some);
}

/* Which rows the plan's blocks take. */
static void choose_rows(struct cg *g, const struct chain_tensor *t, enum kind kind,
                        struct chain_plan *p)
{
    int64_t always;
    p->packs = chain_can_pack(t) && (kind < MANY || (kind == MANY && kind_for_all(g, t) < MANY));
    p->few = kind < MANY ? rows_of(g, t, kind) : NULL;
    if (p->few && lang_const_int(p->few, &always))
        p->few = NULL;
}

static bool is_any_open(const struct chain_tensor *t)
{
    bool open = t->f->column && is_open(t->f->column);
    for (uint32_t n = 0; n < t->f->nscore; n++)
        open |= is_open(t->score[n].form.k);
    return open;
}

/* When one of the conditions holds, of which the first may be NULL. */
static struct lang_expr *either(struct cg *g, struct lang_expr *x, struct lang_expr *y)
{
    return x ? lx_select(g->a, x, lx_bool(g->a, true), y) : y;
}

/* The sizes for which wgmma is faster than mma.sync. */
static struct lang_expr *when_wgmma(struct cg *g, const struct chain_tensor *t,
                                    const struct chain_options *want, uint32_t most,
                                    const struct chain_plan *p)
{
    struct chain_plan other = plan_of(g->target, t, want, most, is_any_open(t), MANY);
    choose_rows(g, t, MANY, &other);
    return chain_worth_wgmma(g, t, p, &other);
}

/* before: when they are taken. */
static bool lower_all_wgmma(struct cg *g, const struct chain_tensor *t,
                            const struct chain_options *want, struct variant_set *all,
                            struct lang_expr **before)
{
    /* terms and columns at most: where these are known, and where they are not */
    static const uint32_t caps[2][2] = {{256}, {64, 128}};
    const char *lacks = "";
    bool some = false;
    if (!chain_check_wgmma_tile(g, t, want))
        return false;
    for (uint32_t n = 0; n < COUNT(caps[0]) && caps[is_any_open(t)][n] && !all->done; n++) {
        const uint32_t most = caps[is_any_open(t)][n];
        struct chain_plan p = {.columns = chain_columns(t, most),
                               .warps = want->tile[0] ? want->tile[0] / 16 : want->warps,
                               .wide = want->tile[1],
                               .stages = want->stages,
                               .turns = (enum chain_choice)want->turns,
                               .overlaps = (enum chain_choice)want->overlaps,
                               .own = want->blocks == CHAIN_BLOCKS_TILES,
                               .each = want->each};
        for (uint32_t k = 0; k < t->f->nscore; k++) {
            const uint32_t terms = chain_terms(&t->score[k], most);
            p.terms = terms > p.terms ? terms : p.terms;
        }
        if (!chain_wgmma_plan(g->target, t, &p)) {
            lacks = chain_wgmma_lacks(g->a, g->target, t, &p);
            continue;
        }
        int64_t never;
        if (want->mma == CHAIN_BY_ANY)
            p.few = when_wgmma(g, t, want, most, &p);
        if (p.few && lang_const_int(p.few, &never) && !never)
            continue;
        if (!lower_wgmma(g, t, &p, all))
            return false;
        *before = p.when ? either(g, *before, p.when) : *before;
        some = true;
    }
    if (!some && want->tile[1])
        return cg_error(g, schedule_span(g, "tile"), "wgmma does not fit: %s", lacks);
    return true;
}

/* Rows that are few by mma.sync first, unless wgmma is asked for; then wgmma; then what is left. */
static bool lower_tensor(struct cg *g, const struct chain_tensor *t,
                         const struct chain_options *want, bool by_wgmma, struct variant_set *all)
{
    const bool open = is_any_open(t);
    const struct chain_options rest = {.split = want->split};
    const enum kind last = by_wgmma && want->mma != CHAIN_BY_WGMMA ? GROUP : FEW;
    struct lang_expr *before = NULL;
    bool is_next = by_wgmma;
    for (uint32_t n = 0; n < COUNT(entries[0]) && entries[open][n].most && !all->done; n++) {
        const enum kind kind = entries[open][n].kind;
        if (is_next && (kind > last || last == FEW)) {
            is_next = false;
            if (!lower_all_wgmma(g, t, want, all, &before))
                return false;
            want = &rest; /* tiles and warps are wgmma's */
        }
        if (all->done || !is_wanted(g, t, want, kind))
            continue;
        struct chain_plan p = plan_of(g->target, t, want, entries[open][n].most, open, kind);
        choose_rows(g, t, kind, &p);
        if (!chain_check_tile(g, t, &p, want->tile[0]))
            return false;
        p.unless = before;
        if (!lower_mma(g, t, &p, all))
            return false;
        if (p.when)
            before = either(g, before, p.when);
    }
    return true;
}

static void begin_launch(struct cg *g, const struct lower_stage *s, const char *name,
                         uint32_t threads)
{
    cg_begin(g, lower_entry_name(g, name));
    g->block[0] = threads;
    g->block[1] = g->block[2] = 1;
    cg_at(g, s->eq[0]->span);
}

static bool end_launch(struct cg *g, struct lang_expr *grid, const char *how)
{
    const uint32_t threads = (uint32_t)g->block[0];
    g->func->reqntid[0] = threads;
    g->func->reqntid[1] = g->func->reqntid[2] = 1;
    lower_tell(g,
               &(struct lower_entry){.name = g->func->name, .how = how, .ns = chain_cost_launch()});
    cg_end(g, cg_launch(g, grid, lx_int(g->a, threads)));
    return !g->failed;
}

/* The launch in front of those whose ranges depend on what keys are. */
static bool lower_runs(struct cg *g, struct fitting *f)
{
    struct chain_runs *r = ARENA_NEW(g->a, struct chain_runs);
    f->skipping = f->skipped;
    *r = *f->skipped.runs;
    chain_begin_runs(g, &f->skipping, r);
    f->skipping.runs = r;
    chain_skip_runs(g, &f->skipping);
    begin_launch(g, f->form.stage, "runs", CHAIN_RUNS_BLOCK);
    struct lang_expr *grid = chain_search_runs(g, &f->skipping);
    return end_launch(g, grid, "where equal keys begin and end, if they are sorted");
}

/* The launch behind those of code that leaves j out. */
static bool lower_repair(struct cg *g, const struct chain_tensor *t, const struct lower_stage *s)
{
    begin_launch(g, s, "repair", CHAIN_REPAIR_BLOCK);
    struct lang_expr *grid = chain_repair(g, t);
    return end_launch(g, grid, "rows anew, where terms that were left out are not 0");
}

/* Is there an entry whose warps have stages of their own? */
static bool has_stages(struct cg *g, const struct fitting *f, const struct chain_options *want)
{
    return f->has_tensor && want->mma != CHAIN_BY_NONE &&
           (shares_rows(want) || is_wanted(g, &f->tensor, want, FEW));
}

/* Is wgmma taken? Where nobody says, unless the tile or the split is mma.sync's. */
static bool takes_wgmma(struct cg *g, const struct fitting *f, const struct chain_options *want,
                        struct buf *why)
{
    const bool may = want->mma == CHAIN_BY_WGMMA ||
                     (want->mma == CHAIN_BY_ANY && !want->tile[0] && !want->warps && !want->split);
    return f->has_tensor && may && chain_wgmma_fits(g->target, &f->tensor, why);
}

static bool lower_one(struct cg *g, struct fitting *f, const struct chain_options *want,
                      struct variant_set *all)
{
    explain_form(g, f);
    struct buf why = buf_in(g->a);
    if ((want->mma == CHAIN_BY_SYNC || want->mma == CHAIN_BY_WGMMA) && !f->has_tensor)
        return cg_error(g, schedule_span(g, "mma"), "tensor cores do not fit: %s", f->no_tensor);
    const bool by_wgmma = takes_wgmma(g, f, want, &why);
    const char *const other = by_wgmma ? NULL : chain_word_of_wgmma(want, has_stages(g, f, want));
    if (want->mma == CHAIN_BY_WGMMA && !by_wgmma)
        return cg_error(g, schedule_span(g, "mma"), "wgmma does not fit: %s", buf_text(&why));
    if (other)
        return cg_error(g, schedule_span(g, other), "'%s' is for 'mma: wgmma'%s", other,
                        strcmp(other, "stages") == 0 ? ", or for few rows" : "");
    const bool by_tensor = f->has_tensor && want->mma != CHAIN_BY_NONE;
    const bool skips = by_tensor && f->tensor.f->exact;
    if (skips)
        chain_repair_begin(g, &f->tensor);
    if (skips && f->skipped.runs && !lower_runs(g, f))
        return false;
    if (by_tensor && !lower_tensor(g, &f->tensor, want, by_wgmma, all))
        return false;
    if (!all->done && !lower_any(g, &f->form, all))
        return false;
    return !skips || lower_repair(g, &f->tensor, f->form.stage);
}

/* ---- rows of two kinds ----------------------------------------------------------------------- */

/* The plan for all outputs together; false: there is none, or the schedule says another. Where it
 * does not say wgmma, sizes must be such that it is worth it. */
static bool plan_both(struct cg *g, struct fitting *f, const struct chain_options *want,
                      struct chain_plan *p)
{
    const struct chain_options known = {.mma = want->mma, .order = want->order};
    const bool said = memcmp(&known, want, sizeof known) != 0;
    struct chain_tensor *t = &f->tensor;
    int64_t never;
    if (said || is_any_open(t) || (want->mma && want->mma != CHAIN_BY_WGMMA))
        return false;
    t->across = &f->sum;
    *p = (struct chain_plan){.columns = chain_columns(t, MOST_COLUMNS),
                             .wide = CHAIN_GROUP_ROWS,
                             .overlaps = CHAIN_NO,
                             .turns = CHAIN_NO};
    for (uint32_t k = 0; k < t->f->nscore; k++) {
        const uint32_t terms = chain_terms(&t->score[k], MOST_TERMS);
        p->terms = terms > p->terms ? terms : p->terms;
    }
    bool good = chain_wgmma_plan(g->target, t, p) && chain_across_fits(p);
    if (good && !want->mma)
        p->few = when_wgmma(g, t, want, MOST_TERMS, p);
    if (!good || (p->few && lang_const_int(p->few, &never) && !never))
        t->across = NULL;
    return t->across;
}

/* The entry for all outputs; c: when it is taken. */
static bool lower_across(struct cg *g, struct fitting *f, const struct chain_plan *p,
                         struct variant_set *all, struct variant_condition *c)
{
    const struct chain_tensor *t = &f->tensor;
    const uint32_t threads = chain_wgmma_threads(p);
    cg_dynamic(g); /* in front of what variant_drop() takes away */
    variant_begin(g, all, "both", threads);
    cg_at(g, t->f->stage->eq[0]->span);
    if (p->few)
        variant_require(c, p->few);
    chain_across_begin(g, &f->sum, p);
    struct lang_expr *grid = chain_wgmma(g, t, p, c);
    if (c->never) {
        variant_drop(g, all);
        return true;
    }
    g->shared_bytes = lx_int(g->a, chain_wgmma_shared(t, p));
    lower_tell(
        g, &(struct lower_entry){
               .name = g->func->name,
               .how = arena_printf(
                   g->a, "wgmma of %s, tiles %u x %u, %u columns, and '%s' across, %s",
                   chain_types(g->a, t), p->warps * 16, p->wide, p->columns,
                   f->across->form.out[0].eq->sym->name, f->sum.any ? "in any order" : "by turns"),
               .when = variant_when_text(c),
               .multiplies = arena_printf(g->a, "wgmma of %s", chain_types(g->a, t)),
               .ns = chain_cost_wgmma(g->target, t, p)});
    variant_end(g, all, c, grid, threads);
    chain_tell_losses(g, t, p);
    return !g->failed;
}

/* The entry behind it, which makes the output of the sum across. */
static bool lower_gather(struct cg *g, struct fitting *f, const struct chain_plan *p,
                         struct variant_set *all, const struct variant_condition *c)
{
    struct chain_plan steps = *p;
    variant_begin(g, all, "gather", CHAIN_GATHER_BLOCK);
    cg_at(g, f->across->form.stage->eq[0]->span);
    struct lang_expr *grid = chain_gather(g, &f->sum, p);
    lower_tell(g, &(struct lower_entry){.name = g->func->name,
                                        .how = "from the sums in memory",
                                        .when = variant_when_text(c)});
    variant_end(g, all, c, grid, CHAIN_GATHER_BLOCK);
    steps.wide = p->warps * 16;
    chain_tell_losses(g, &f->across->tensor, &steps);
    return !g->failed;
}

/* All outputs by one entry where its sizes are; otherwise each kind of rows by its own. */
static bool lower_both(struct cg *g, struct fitting *f, const struct chain_options *want)
{
    struct lower_stage *one = ARENA_NEW(g->a, struct lower_stage);
    struct variant_condition c = variant_condition(g);
    struct chain_plan p;
    const struct lower_stage *s = f->across->form.stage;
    *one = *s;
    one->entry = lower_entry_name(g, arena_printf(g->a, "%s_gather", s->eq[0]->sym->name));
    f->across->form.stage = one;
    struct variant_set all = {.s = f->form.stage}, rest = {.s = one};
    f->sum.any = want->order == CHAIN_YES;
    if (!plan_both(g, f, want, &p))
        return cg_error(
            g, schedule_span(g, "order"),
            "'order' is for up to 128 columns and for sizes by wgmma, and stands beside "
            "'mma: wgmma' alone");
    if (!lower_across(g, f, &p, &all, &c))
        return false;
    f->tensor.across = NULL;
    if (!all.done && !lower_one(g, f, want, &all))
        return false;
    lower_next_step(g, one->entry, &chain_strategy);
    if (!c.never && !lower_gather(g, f, &p, &rest, &c))
        return false;
    return rest.done || lower_one(g, f->across, want, &rest);
}

static bool lower(struct cg *g, void *form, const void *options)
{
    struct fitting *f = form;
    const struct chain_options *want = options;
    struct variant_set all = {.s = f->form.stage};
    if (want->order && !f->across)
        return cg_error(g, schedule_span(g, "order"),
                        "'order' is for sums that several blocks add to, of which there are none");
    return f->across ? lower_both(g, f, want) : lower_one(g, f, want, &all);
}

static const struct option_word by[] = {
    {"none", CHAIN_BY_NONE}, {"sync", CHAIN_BY_SYNC}, {"wgmma", CHAIN_BY_WGMMA}, {NULL, 0}};
static const struct option_word yes_no[] = {{"yes", CHAIN_YES}, {"no", CHAIN_NO}, {NULL, 0}};
static const struct option_word orders[] = {{"any", CHAIN_YES}, {"fixed", CHAIN_NO}, {NULL, 0}};
static const struct option_word blocks[] = {
    {"multiprocessors", CHAIN_BLOCKS_ALL}, {"tiles", CHAIN_BLOCKS_TILES}, {NULL, 0}};
#define AT(member) offsetof(struct chain_options, member)
static const struct strategy_option options[] = {
    {"mma", OPTION_WORD, 0, 0, AT(mma), "what multiplies", .words = by},
    {"tile", OPTION_LIST, 1, 4096, AT(tile), "rows of a block, and terms of a step", 2,
     "[ROWS, TERMS]"},
    {"warps", OPTION_NUMBER, 1, 16, AT(warps), "warps of a block, those that multiply"},
    {"split", OPTION_NUMBER, 1, 256, AT(split), "blocks that share rows at most, by mma.sync"},
    {"stages", OPTION_NUMBER, 1, 16, AT(stages), "steps in shared memory, by wgmma or of few rows"},
    {"pingpong", OPTION_WORD, 0, 0, AT(turns), "whether warpgroups multiply by turns, by wgmma",
     .words = yes_no},
    {"overlap", OPTION_WORD, 0, 0, AT(overlaps),
     "whether a step's sums are multiplied under the next one's exponentials, by wgmma",
     .words = yes_no},
    {"blocks", OPTION_WORD, 0, 0, AT(blocks), "blocks that take tiles by turns, by wgmma",
     .words = blocks},
    {"each", OPTION_NUMBER, 1, 4, AT(each), "blocks on each multiprocessor, by wgmma"},
    {"order", OPTION_WORD, 0, 0, AT(order), "in which blocks add to the same sums, by wgmma",
     .words = orders},
};

const struct strategy chain_strategy = {
    .name = "chain",
    .takes = "reductions of terms that have sums of products in them, streamed: attention",
    .options = options,
    .noption = COUNT(options),
    .options_size = sizeof(struct chain_options),
    .analyse = fit,
    .lower = lower,
    .candidates = chain_candidates,
    .streams = true,
};
