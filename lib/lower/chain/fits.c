/* What of chains fits wgmma, and what lies where (chain/wgmma.h). */
#include <config.h>

#include "lower/chain/wgmma.h"

enum { STAGES = 2, SETS = 2 }; /* of k, and of v, where nobody says it; of barriers */
enum { ITEMS = 2, ITEM_BYTES = 16 };

/* ---- what lies where ------------------------------------------------------------------------- */

uint32_t chain_wgmma_consumers(const struct chain_plan *p)
{
    return p->warps / CHAIN_WARPS;
}

uint32_t chain_wgmma_block_rows(const struct chain_plan *p)
{
    return chain_wgmma_consumers(p) * WGMMA_ROWS;
}

static uint32_t of_side(const struct matmul_form *f, enum matmul_side side)
{
    return f->operand[0].side == side ? 0 : 1;
}

static uint32_t round_up(uint32_t n, uint32_t to)
{
    return (n + to - 1) / to * to;
}

/* Lays the tile of a product's operand, `rows` rows (columns) of `terms` each, behind what the
 * stage has. */
static void lay(struct chain_box *s, const struct chain_product *p, enum matmul_side side,
                bool along, uint32_t rows, uint32_t terms, struct chain_store *in)
{
    const uint32_t size = chain_size(p, side), span = WGMMA_SPAN / size;
    s->m.f = &p->form;
    s->operand = of_side(&p->form, side);
    s->lay = wgmma_layout(along, size, along ? rows : round_up(rows, span),
                          along ? round_up(terms, span) : terms);
    s->offset = in->bytes;
    in->bytes += round_up(s->lay.atoms * s->lay.atom_bytes, WGMMA_ALIGN);
}

static bool is_along_k(const struct chain_product *p, enum matmul_side side)
{
    return p->form.operand[of_side(&p->form, side)].along_k;
}

uint32_t chain_wgmma_terms_of(const struct chain_wgmma *k, uint32_t n)
{
    return chain_terms(&k->t->score[n], k->p->terms);
}

/* Does y say in form s what x says in form v, of which j and columns take the places of terms and
 * j? Batch axes have indices of each form's own. */
static bool says_same(const struct matmul_form *v, const struct lang_expr *x,
                      const struct matmul_form *s, const struct lang_expr *y)
{
    x = inspect_strip(x);
    y = inspect_strip(y);
    if (inspect_is_index(x, v->k) || inspect_is_index(x, v->j))
        return inspect_is_index(y, inspect_is_index(x, v->k) ? s->j : s->k);
    for (uint32_t i = 0; i < v->nbatch && i < s->nbatch; i++)
        if (inspect_is_index(x, v->batch[i]))
            return inspect_is_index(y, s->batch[i]);
    bool same = lang_same_node(x, y) && x->sym == y->sym && !x->pad && !y->pad;
    for (uint32_t i = 0; same && i < x->nargs; i++)
        same = says_same(v, x->args[i], s, y->args[i]);
    return same;
}

/* Is sum v's right operand score s's? */
static bool is_same_matrix(const struct chain_product *v, const struct chain_product *s)
{
    const struct lang_expr *x = v->form.operand[of_side(&v->form, MATMUL_B)].plain;
    const struct lang_expr *y = s->form.operand[of_side(&s->form, MATMUL_B)].plain;
    return x && y && says_same(&v->form, x, &s->form, y);
}

/* The box of a score's right operand that sum n's may be read from; NULL: there is none. */
static const struct chain_box *box_for(const struct chain_wgmma *k, uint32_t n)
{
    const struct wgmma_layout *v = &k->v[n].lay;
    for (uint32_t i = 0; i < k->t->f->nscore; i++) {
        const struct wgmma_layout *s = &k->k[i].lay;
        if (s->along_k && !v->along_k && s->size == v->size && s->atoms == v->atoms &&
            s->atom_bytes == v->atom_bytes && is_same_matrix(&k->t->column[n], &k->t->score[i]))
            return &k->k[i];
    }
    return NULL;
}

/* Lets v lie where k does, if all of it does. */
static void share_tiles(struct chain_wgmma *k)
{
    k->shares = chain_wgmma_is_apart(k->t, k->p);
    for (uint32_t n = 0; n < k->t->ncolumn && k->shares; n++)
        k->shares = box_for(k, n) != NULL;
    for (uint32_t n = 0; n < k->t->ncolumn && k->shares; n++)
        k->v[n].offset = box_for(k, n)->offset;
    k->at_v = k->shares ? &k->of_k : &k->of_v;
    if (k->shares)
        k->of_v = (struct chain_store){0};
}

static void lay_tiles(struct chain_wgmma *k)
{
    const struct chain_plan *p = k->p;
    for (uint32_t i = 0; i < k->t->f->nscore; i++) {
        const struct chain_product *of = &k->t->score[i];
        const uint32_t terms = chain_wgmma_terms_of(k, i);
        lay(&k->q[i], of, MATMUL_A, is_along_k(of, MATMUL_A), chain_wgmma_block_rows(p), terms,
            &k->of_q);
        lay(&k->k[i], of, MATMUL_B, is_along_k(of, MATMUL_B), p->wide, terms, &k->of_k);
    }
    for (uint32_t i = 0; i < k->t->ncolumn; i++) {
        const struct chain_product *of = &k->t->column[i];
        const bool along = k->turns || is_along_k(of, MATMUL_B);
        lay(&k->v[i], of, MATMUL_B, along, p->columns, p->wide, &k->of_v);
        if (k->turns)
            lay(&k->raw[i], of, MATMUL_B, false, p->columns, p->wide, &k->of_raw);
    }
    share_tiles(k);
    k->along_at = k->at_v->bytes;
    k->at_v->bytes += chain_wgmma_along(k) * chain_wgmma_along_boxes(k) * CHAIN_ALONG_BYTES;
    chain_wgmma_lay_sheets(k);
    if (k->t->across)
        chain_across_lay(k);
}

/* One thread fills most stages: copies arrive there, too. */
static void count_arrivals(struct chain_wgmma *k, struct chain_store *const *all, uint32_t n)
{
    const uint32_t warps = k->p->warps;
    for (uint32_t i = 0; i < n; i++) {
        all[i]->arrivals[RING_FULL] = 1;
        all[i]->arrivals[RING_EMPTY] = warps;
    }
    if (k->t->across)
        chain_across_count(k);
    if (!k->turns)
        return;
    k->of_v.arrivals[RING_FULL] = CHAIN_TURNERS;
    k->of_raw.arrivals[RING_EMPTY] = CHAIN_TURNERS;
    k->of_item.arrivals[RING_EMPTY] = warps + CHAIN_TURNERS;
}

/* The rings that there may be. */
static void list(struct chain_wgmma *k, struct chain_store *all[CHAIN_STORES])
{
    struct chain_store *const stores[CHAIN_STORES] = {
        &k->of_q,    &k->of_k,      &k->of_v,    &k->of_raw,     &k->of_left,
        &k->of_part, &k->of_sheets, &k->of_item, &k->of_turn[0], &k->of_turn[1]};
    memcpy(all, stores, sizeof stores);
}

uint32_t chain_wgmma_stores(struct chain_wgmma *k, struct chain_store *all[CHAIN_STORES])
{
    uint32_t n = 0;
    list(k, all);
    for (uint32_t i = 0; i < CHAIN_STORES; i++)
        if (all[i]->stages)
            all[n++] = all[i];
    return n;
}

/* Bytes of dynamic shared memory. */
uint32_t chain_wgmma_lay_all(struct chain_wgmma *k)
{
    struct chain_store *all[CHAIN_STORES];
    uint32_t bytes = 0, barriers = 0;
    list(k, all);
    k->turns = chain_has_bytes(k->t);
    k->of_q.stages = k->p->queries;
    k->of_k.stages = k->of_v.stages = k->p->stages;
    k->of_raw.stages = k->turns ? k->p->stages : 0;
    k->fetches = !k->p->own &&
                 (chain_wgmma_differs(k->t) || chain_wgmma_has_busy_ranges(k->t) || k->t->across);
    k->of_item.stages = k->fetches ? ITEMS : 0;
    k->of_item.bytes = ITEM_BYTES;
    k->of_sheets.stages = k->p->sheets ? k->p->stages : 0;
    lay_tiles(k);
    count_arrivals(k, all, COUNT(all));
    for (uint32_t i = 0; i < COUNT(all); i++)
        barriers += all[i]->bytes * all[i]->stages;
    for (uint32_t i = 0; i < COUNT(all); i++) {
        all[i]->ring.stages = all[i]->stages;
        all[i]->ring.stage_bytes = all[i]->bytes;
        all[i]->ring.sets = SETS;
        all[i]->ring.barriers = barriers - bytes;
        bytes += all[i]->bytes * all[i]->stages;
        barriers += ring_barrier_bytes(all[i]->stages, SETS);
    }
    return barriers;
}

uint32_t chain_wgmma_shared(const struct chain_tensor *t, const struct chain_plan *p)
{
    static const struct chain_wgmma none;
    struct chain_wgmma k = none;
    k.t = t;
    k.p = p;
    return chain_wgmma_lay_all(&k);
}

/* ---- plans ----------------------------------------------------------------------------------- */

uint32_t chain_wgmma_registers(const struct chain_plan *p, bool produces)
{
    enum { FILE = 65536, UNIT = 8 };
    const uint32_t n = chain_wgmma_consumers(p);
    if (p->each > 1) {
        const uint32_t first = FILE / (p->each * chain_wgmma_threads(p)) / UNIT * UNIT;
        return produces ? p->keeps : (first * (1 + n) - p->keeps) / n / UNIT * UNIT;
    }
    /* multiples of 8: of two warpgroups that multiply and one that does not 504, or 512 of three */
    const uint32_t all = chain_wgmma_consumers(p) > 2 ? 512 : 504;
    const uint32_t keeps = chain_wgmma_consumers(p) > 2 ? 32 : p->keeps;
    return produces ? keeps : (all - keeps) / (chain_wgmma_consumers(p) > 2 ? 3 : 2);
}

bool chain_wgmma_is_apart(const struct chain_tensor *t, const struct chain_plan *p)
{
    bool apart = p->overlaps == CHAIN_NO && !chain_has_bytes(t) && t->f->nscore > 1;
    for (uint32_t n = 0; n < t->f->nstream; n++)
        apart &= t->f->stream[n].has_column && t->f->stream[n].running < 0;
    return apart;
}

/* Words of a lane's: scores, sums and left operands. */
static uint32_t words_of(const struct chain_tensor *t, const struct chain_plan *p)
{
    uint32_t n = t->f->nscore * (p->wide / 2);
    for (uint32_t i = 0; i < t->ncolumn; i++) {
        const uint32_t size = chain_size(&t->column[i], MATMUL_A);
        const uint32_t words = t->column[i].parts * p->wide * size / 8;
        /* without overlap half of them are there before the last score is gone */
        n += (p->overlaps == CHAIN_YES ? words : words / 2) + p->columns / 2;
        n += size == 1 ? p->group / 2 : 0;
    }
    return n;
}

/* Does it lie in memory as it is brought to be multiplied? What is of 8 bits lies along k then, but
 * the right factor of a stream's product lies across. */
static bool is_matrix(const struct chain_product *p, enum matmul_side s, bool is_score)
{
    const struct matmul_form *f = &p->form;
    const struct matmul_operand *o = &f->operand[of_side(f, s)];
    const struct lang_symbol *side = o->side == MATMUL_A ? f->i : f->j;
    const struct lang_symbol *last = o->along_k ? f->k : side;
    const struct lang_expr *e = o->plain;
    uint32_t sides = 0, ks = 0;
    const uint32_t size = chain_size(p, s);
    if (!e || !side || e->nargs != e->sym->rank || e->nargs > CONTRACT_MAP_RANK || size > 2 ||
        dtype_bits(e->sym->type) != size * 8 || (size == 1 && o->along_k != is_score))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        sides += inspect_is_index(e->args[i], side);
        ks += inspect_is_index(e->args[i], f->k);
    }
    return sides == 1 && ks == 1 && inspect_is_index(e->args[e->nargs - 1], last);
}

/* Of whole atoms where tiles lie along j. */
uint32_t chain_wgmma_unit(const struct chain_tensor *t)
{
    uint32_t unit = chain_unit(t);
    for (uint32_t i = 0; i < t->f->nscore; i++)
        if (!is_along_k(&t->score[i], MATMUL_B))
            unit = WGMMA_SPAN / 2;
    for (uint32_t i = 0; i < t->ncolumn; i++)
        if (is_along_k(&t->column[i], MATMUL_B))
            unit = WGMMA_SPAN / 2;
    return unit;
}

bool chain_wgmma_fits(const struct ptx_target *target, const struct chain_tensor *t,
                      struct buf *why)
{
    const struct span s = t->f->stage->eq[0]->span;
    if (!ptx_target_has_wgmma(target))
        return lower_lacks(why, s, "%s has no wgmma: sm_90a has", target->name);
    if (t->i >= t->f->nrow)
        return lower_lacks(why, s, "a single row leaves most of wgmma idle");
    if (!t->f->nscore || !t->ncolumn)
        return lower_lacks(why, s, "there are no two products, one of the other's results");
    if (chain_has_splits(t))
        return lower_lacks(why, s, "f32 goes in parts of tf32, which mma.sync multiplies");
    for (uint32_t i = 0; i < t->f->nscore; i++) {
        if (!is_matrix(&t->score[i], MATMUL_A, true) || !is_matrix(&t->score[i], MATMUL_B, true))
            return lower_lacks(why, s, "the scores' factors are no matrices as they lie in memory");
    }
    for (uint32_t i = 0; i < t->ncolumn; i++) {
        if (!is_matrix(&t->column[i], MATMUL_B, false))
            return lower_lacks(why, s, "a sum's right factor is no matrix as it lies in memory");
    }
    return true;
}

/* Are all extents known? */
static bool is_known(const struct chain_tensor *t)
{
    int64_t n;
    bool known = lang_const_int(t->f->j->dims[0], &n) && lang_const_int(t->f->column->dims[0], &n);
    for (uint32_t i = 0; i < t->f->nrow; i++)
        known &= lang_const_int(t->f->row[i]->dims[0], &n);
    return known;
}

/* Is it read from what has come by boxes? */
static bool is_brought(const struct chain_tensor *t, const struct chain_plan *p,
                       const struct lang_expr *e)
{
    return p->sheets && chain_is_sheet(t, e);
}

/* Does e compute with indices, select, call anything but exponentials, or read memory, and not once
 * for all of a tile? Where sizes are known a read by the row alone, or by j alone, is no more than
 * what it loads. Conditions that are put on products are computed before all else. */
static bool is_busy(const struct chain_tensor *t, const struct chain_plan *p,
                    const struct lang_expr *e, bool known)
{
    const bool plain = e->fn == FN_EXP || e->fn == FN_EXP2 || e->fn == FN_MAX || e->fn == FN_MIN;
    const bool by_j = chain_mentions(e, t->f->j), by_row = chain_mentions(e, t->f->row[t->i]);
    const struct lang_expr *kept = chain_kept(t, e);
    if (kept)
        return is_busy(t, p, kept, known);
    if (is_brought(t, p, e) || (e->kind == E_INDEX && known && !(by_j && by_row)))
        return false;
    const bool reads = e->kind == E_INDEX || e->kind == E_NAME;
    bool busy = (reads && (by_j || by_row)) || e->kind == E_COND || (e->kind == E_CALL && !plain);
    for (uint32_t i = 0; i < e->nargs && !busy; i++)
        busy = is_busy(t, p, e->args[i], known);
    return busy;
}

/* Is what stands between the products more than a normalised exponential? Where sizes are not known
 * any read is. */
static bool has_busy_terms(const struct chain_tensor *t, const struct chain_plan *p)
{
    const bool known = is_known(t);
    bool busy = false;
    for (uint32_t i = 0; i < t->f->nscore; i++)
        busy |= is_busy(t, p, t->score[i].value, known);
    for (uint32_t i = 0; i < t->f->nstream; i++) {
        const struct chain_stream *s = &t->f->stream[i];
        busy |= is_busy(t, p, s->has_column ? s->part[0].e : s->term, known);
    }
    return busy;
}

/* Does e read memory, or select? */
static bool reads(const struct lang_expr *e)
{
    return chain_has_kind(e, 1U << E_INDEX | 1U << E_COND);
}

/* Do ranges come from memory? The producer's threads find them, too. */
bool chain_wgmma_has_busy_ranges(const struct chain_tensor *t)
{
    bool busy = false;
    for (uint32_t i = 0; i < t->f->nstream; i++) {
        const struct chain_stream *s = &t->f->stream[i];
        busy |= reads(s->high) || (s->low && reads(s->low));
    }
    return busy;
}

/* Elements of memory that e reads for each j. */
static uint32_t reads_of(const struct chain_tensor *t, const struct chain_plan *p,
                         const struct lang_expr *e)
{
    uint32_t n = e->kind == E_INDEX && chain_mentions(e, t->f->j);
    if (chain_kept(t, e) || is_brought(t, p, e))
        return 0;
    for (uint32_t i = 0; i < e->nargs; i++)
        n += reads_of(t, p, e->args[i]);
    return n;
}

/* Words of a lane's that come from memory for a row of a tile: they are loaded together. */
static uint32_t loaded(const struct chain_tensor *t, const struct chain_plan *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->f->nscore; i++)
        n += reads_of(t, p, t->score[i].value);
    for (uint32_t i = 0; i < t->f->nstream; i++) {
        const struct chain_stream *s = &t->f->stream[i];
        const uint32_t of = reads_of(t, p, s->has_column ? s->part[0].e : s->term);
        n = of > n ? of : n;
    }
    return n * p->wide / 4;
}

/* Are sums rescaled in rows of which some terms are masked? */
static bool masks_running(const struct chain_tensor *t)
{
    bool running = false;
    for (uint32_t i = 0; i < t->f->nstream; i++)
        running |= t->f->stream[i].running >= 0;
    return running && chain_wgmma_differs(t);
}

/* The registers that others() counts, for little between the products, where sizes are known. */
static uint32_t few_others(const struct chain_tensor *t, const struct chain_plan *p)
{
    /* terms of a step from which ptxas keeps more of it at a time; what is read at a time */
    enum { WIDE = 160, SHEETS = 8, BYTES = 24 };
    const uint32_t wide = (p->wide > WIDE ? p->wide - WIDE : 0) + (p->sheets ? SHEETS : 0);
    if (chain_has_bytes(t))
        return BYTES + wide; /* in memory is what is used once for all tiles of j */
    return (chain_wgmma_consumers(p) > 2 || p->each > 1 ? 32U : 40U) +
           (masks_running(t) ? 24U : 0U) + wide;
}

/* Registers for sums of a tile alone, beside these. */
static uint32_t for_bytes(const struct chain_tensor *t, const struct chain_plan *p)
{
    enum { WIDE = 96, FEW = 8, MANY = 24 };
    return !chain_has_bytes(t) ? 0 : p->wide > WIDE ? MANY : FEW;
}

/* Registers of a lane's for all but words: so many that ptxas keeps none in memory. That was tried
 * for f16, forward, causal, and both kernels of backward, at 64, 128 and 256 columns. */
static uint32_t others(const struct chain_tensor *t, const struct chain_plan *p)
{
    enum { FEW_COLUMNS = 128, APART = 24 };
    const bool busy = has_busy_terms(t, p);
    if (chain_wgmma_is_apart(t, p))
        return APART + (p->wide > 64 ? (p->wide - 64) / 4 : 0);
    if (is_known(t) && !busy)
        return few_others(t, p) + loaded(t, p);
    if (is_known(t))
        return (p->columns > FEW_COLUMNS ? 64 : 72) + loaded(t, p) + for_bytes(t, p);
    return (busy ? 96 + loaded(t, p) : p->columns > FEW_COLUMNS ? 56 : 72) + for_bytes(t, p);
}

/* Finds how many columns registers have room for, `least` or more. */
static bool find_group(const struct chain_tensor *t, struct chain_plan *p, uint32_t least)
{
    const uint32_t room = chain_wgmma_registers(p, false);
    const uint32_t other = others(t, p);
    for (p->group = p->columns; words_of(t, p) + other > room; p->group /= 2)
        if (!chain_has_bytes(t) || p->group % (2 * least))
            return false;
    return true;
}

/* Bytes of shared memory that a block may have. */
static uint32_t shared_room(const struct ptx_target *target, const struct chain_plan *p)
{
    enum { KEPT = 1024 }; /* beside each block's own */
    return p->each > 1 ? target->shared_per_sm / p->each - KEPT : target->shared_optin;
}

/* Finds the widest tiles for which there is room: of 8 bits first those of many columns at once. */
static bool find_tiles(const struct ptx_target *target, const struct chain_tensor *t,
                       struct chain_plan *p, uint32_t widest, uint32_t narrowest)
{
    enum { GROUP = 64, LEAST = 32 };
    for (uint32_t least = GROUP; least >= LEAST; least /= 2)
        for (p->wide = widest; p->wide >= narrowest; p->wide -= chain_wgmma_unit(t))
            if (chain_wgmma_shared(t, p) <= shared_room(target, p) && find_group(t, p, least))
                return true;
    return false;
}

/* What tiles of so many rows have in all, as far as rows do: of ranges that differ all in front of
 * the diagonal. */
static int64_t area_of(const struct chain_tensor *t, int64_t rows, int64_t by)
{
    const int64_t all = (rows + by - 1) / by * by;
    return chain_wgmma_differs(t) ? all * (all + by) : all;
}

/* Are blocks of three warpgroups so much more than rows have, beside those of two? */
static bool wastes(const struct chain_tensor *t, int64_t rows)
{
    enum { MOST = 115 }; /* percent */
    return area_of(t, rows, 3 * (int64_t)WGMMA_ROWS) * 100 >
           area_of(t, rows, 2 * (int64_t)WGMMA_ROWS) * MOST;
}

/* Warpgroups at most, by what a row takes, and as many as there are rows for. */
static uint32_t most_consumers(const struct chain_tensor *t, const struct chain_plan *p)
{
    enum { HIGH_TERMS = 64 };
    const bool light = is_known(t) && !has_busy_terms(t, p) && !chain_wgmma_has_busy_ranges(t) &&
                       t->f->nscore == 1;
    const bool short_rows = p->terms <= HIGH_TERMS && p->columns <= HIGH_TERMS;
    const uint32_t most = light && short_rows ? CHAIN_GROUPS : 2;
    int64_t rows;
    if (!lang_const_int(t->f->row[t->i]->dims[0], &rows))
        return most;
    if (rows <= (int64_t)most * WGMMA_ROWS)
        return rows <= WGMMA_ROWS ? 1 : 2;
    return most > 2 && wastes(t, rows) ? 2 : most;
}

/* By turns of several, where a tile's products are no longer than its exponentials, and are not
 * sent one by one. */
static enum chain_choice turns_of(const struct chain_tensor *t, const struct chain_plan *p,
                                  enum chain_choice want)
{
    enum { TURNS = 128 }; /* terms up to which warpgroups multiply by turns */
    if (chain_wgmma_consumers(p) < 2)
        return CHAIN_NO;
    const bool turns = p->terms <= TURNS && !chain_wgmma_is_apart(t, p);
    return want ? want : turns ? CHAIN_YES : CHAIN_NO;
}

/* One more where there is room for it and sums are multiplied one by one, since a tile stays until
 * the last of them is done. */
static uint32_t stages_of(const struct ptx_target *target, const struct chain_tensor *t,
                          const struct chain_plan *p)
{
    struct chain_plan more = *p;
    more.stages++;
    const bool fits = chain_wgmma_shared(t, &more) <= shared_room(target, p);
    return p->stages + (fits && chain_wgmma_is_apart(t, p));
}

/* Where there is room the next item's q comes while this one's is read. */
static uint32_t queries_of(const struct ptx_target *target, const struct chain_tensor *t,
                           const struct chain_plan *p)
{
    struct chain_plan two = *p;
    two.queries = 2;
    return !p->own && chain_wgmma_shared(t, &two) <= shared_room(target, p) ? 2 : 1;
}

static bool plan(const struct ptx_target *target, const struct chain_tensor *t,
                 struct chain_plan *p)
{
    enum { WIDEST = 128, NARROWEST = 48, KEEPS = 24, KEEPS_MORE = 40 };
    const struct chain_plan want = *p;
    const uint32_t consumers = want.warps / CHAIN_WARPS;
    const uint32_t widest = want.wide ? want.wide : WIDEST;
    const uint32_t narrowest = want.wide ? want.wide : NARROWEST;
    p->high = 1;
    const bool more = chain_wgmma_has_busy_ranges(t) || chain_has_bytes(t) || p->sheets ||
                      t->across;
    p->keeps = more ? KEEPS_MORE : KEEPS;
    p->stages = want.stages ? want.stages : STAGES;
    p->overlaps = want.overlaps ? want.overlaps : t->ncolumn > 1 ? CHAIN_NO : CHAIN_YES;
    p->queries = 1;
    for (uint32_t n = consumers ? consumers : most_consumers(t, p); n > 0; n--) {
        p->warps = n * CHAIN_WARPS;
        p->turns = turns_of(t, p, want.turns);
        if (find_tiles(target, t, p, widest, narrowest)) {
            p->stages = want.stages ? want.stages : stages_of(target, t, p);
            p->queries = queries_of(target, t, p);
            return true;
        }
        if (consumers)
            break;
    }
    p->wide = narrowest;
    return false;
}

/* Finds a plan by which sheets come by boxes, with as many warps as `without` has or more, whose
 * tiles are not much narrower. */
static bool plan_sheets(const struct ptx_target *target, const struct chain_tensor *t,
                        const struct chain_plan *without, struct chain_plan *p)
{
    const struct chain_plan want = *p;
    p->sheets = true;
    if (plan(target, t, p) && p->warps >= without->warps && 4 * p->wide >= 3 * without->wide)
        return true;
    *p = want;
    p->sheets = true;
    p->warps = without->warps;
    return plan(target, t, p) && 4 * p->wide >= 3 * without->wide;
}

/* Three blocks of 64 rows on each multiprocessor, where a row's keys are few: one's first scores
 * and last sums are under the other's products. */
bool chain_wgmma_crowds(const struct ptx_target *target, const struct chain_tensor *t,
                        struct chain_plan *p)
{
    enum { EACH = 3, WIDE = 64, MOST = 512, COLUMNS = 64 };
    int64_t j, n, items = 1;
    if (!is_known(t) || has_busy_terms(t, p) || chain_wgmma_has_busy_ranges(t) ||
        chain_has_bytes(t) || t->f->nscore > 1 || t->ncolumn > 1 || p->terms > COLUMNS ||
        p->columns > COLUMNS || !lang_const_int(t->f->j->dims[0], &j) || j > MOST)
        return false;
    for (uint32_t a = 0; a < t->f->nrow && items < INT32_MAX; a++)
        if (lang_const_int(t->f->row[a]->dims[0], &n))
            items *= a == t->i ? (n + WGMMA_ROWS - 1) / WGMMA_ROWS : n;
    if (items < (int64_t)2 * EACH * lower_multiprocessors(target))
        return false;
    p->each = EACH;
    p->warps = CHAIN_WARPS;
    p->wide = WIDE;
    return plan(target, t, p);
}

bool chain_wgmma_usual_plan(const struct ptx_target *target, const struct chain_tensor *t,
                            struct chain_plan *p)
{
    static const struct chain_plan none;
    struct chain_plan sheets = *p;
    const bool fits = plan(target, t, p);
    if (!chain_has_sheets(t) || !plan_sheets(target, t, fits ? p : &none, &sheets))
        return fits;
    *p = sheets;
    return true;
}

const char *chain_wgmma_lacks(struct arena *a, const struct ptx_target *target,
                              const struct chain_tensor *t, const struct chain_plan *p)
{
    return arena_printf(a,
                        "tiles of %u x %u, and of %u columns, take some %u registers of %u, and %u "
                        "bytes of shared memory of %u",
                        p->warps * 16, p->wide, p->columns, words_of(t, p) + others(t, p),
                        chain_wgmma_registers(p, false), chain_wgmma_shared(t, p),
                        target->shared_optin);
}

uint32_t chain_wgmma_threads(const struct chain_plan *p)
{
    return (1 + chain_wgmma_consumers(p)) * WGMMA_GROUP;
}
