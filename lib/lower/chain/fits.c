/* What of chains fits wgmma, and what lies where (chain/wgmma.h). */
#include <config.h>

#include "lower/chain/wgmma.h"

enum { STAGES = 2, SETS = 2 }; /* of k, and of v; of barriers */

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
static void lay(struct chain_box *s, const struct matmul_form *f, enum matmul_side side,
                uint32_t rows, uint32_t terms, struct chain_store *in)
{
    s->m.f = f;
    s->operand = of_side(f, side);
    const bool along = f->operand[s->operand].along_k;
    s->lay = wgmma_layout(along, CHAIN_SIZE, along ? rows : round_up(rows, CHAIN_SPAN),
                          along ? round_up(terms, CHAIN_SPAN) : terms);
    s->offset = in->bytes;
    in->bytes += round_up(s->lay.atoms * s->lay.atom_bytes, WGMMA_ALIGN);
}

uint32_t chain_wgmma_terms_of(const struct chain_wgmma *k, uint32_t n)
{
    return chain_terms(&k->t->score[n], k->p->terms);
}

/* Bytes of dynamic shared memory. */
uint32_t chain_wgmma_lay_all(struct chain_wgmma *k)
{
    const struct chain_plan *p = k->p;
    k->of_q.stages = 1;
    k->of_k.stages = k->of_v.stages = STAGES;
    for (uint32_t i = 0; i < k->t->f->nscore; i++) {
        const struct matmul_form *f = &k->t->score[i].form;
        lay(&k->q[i], f, MATMUL_A, chain_wgmma_block_rows(p), chain_wgmma_terms_of(k, i), &k->of_q);
        lay(&k->k[i], f, MATMUL_B, p->wide, chain_wgmma_terms_of(k, i), &k->of_k);
    }
    for (uint32_t i = 0; i < k->t->ncolumn; i++)
        lay(&k->v[i], &k->t->column[i].form, MATMUL_B, p->columns, p->wide, &k->of_v);
    uint32_t bytes = 0, barriers = 0;
    struct chain_store *const all[] = {&k->of_q, &k->of_k, &k->of_v};
    for (uint32_t i = 0; i < 3; i++)
        barriers += all[i]->bytes * all[i]->stages;
    for (uint32_t i = 0; i < 3; i++) {
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
    /* multiples of 8: of two warpgroups that multiply and one that does not 504, or 512 of three */
    const uint32_t all = chain_wgmma_consumers(p) > 2 ? 512 : 504;
    const uint32_t keeps = chain_wgmma_consumers(p) > 2 ? 32 : p->keeps;
    return produces ? keeps : (all - keeps) / (chain_wgmma_consumers(p) > 2 ? 3 : 2);
}

/* Words of a lane's: scores, sums and left operands. */
static uint32_t words_of(const struct chain_tensor *t, const struct chain_plan *p)
{
    uint32_t n = t->f->nscore * (p->wide / 2);
    for (uint32_t i = 0; i < t->ncolumn; i++)
        n += t->column[i].parts * (p->wide / 4) + p->columns / 2;
    return n;
}

static bool is_matrix(const struct matmul_operand *o, const struct matmul_form *f)
{
    const struct lang_symbol *side = o->side == MATMUL_A ? f->i : f->j;
    const struct lang_symbol *last = o->along_k ? f->k : side;
    const struct lang_expr *e = o->plain;
    uint32_t sides = 0, ks = 0;
    if (!e || !side || e->nargs != e->sym->rank || e->nargs > CONTRACT_MAP_RANK ||
        dtype_bits(e->sym->type) != CHAIN_SIZE * 8)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        sides += inspect_is_index(e->args[i], side);
        ks += inspect_is_index(e->args[i], f->k);
    }
    return sides == 1 && ks == 1 && inspect_is_index(e->args[e->nargs - 1], last);
}

/* Do tiles lie along j, whose width is then one of whole atoms? */
static bool lies_along_j(const struct chain_tensor *t)
{
    for (uint32_t i = 0; i < t->f->nscore; i++) {
        const struct matmul_form *f = &t->score[i].form;
        if (!f->operand[of_side(f, MATMUL_B)].along_k)
            return true;
    }
    for (uint32_t i = 0; i < t->ncolumn; i++) {
        const struct matmul_form *f = &t->column[i].form;
        if (f->operand[of_side(f, MATMUL_B)].along_k)
            return true;
    }
    return false;
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
    for (uint32_t i = 0; i < t->f->nscore; i++) {
        const struct matmul_form *f = &t->score[i].form;
        if (!is_matrix(&f->operand[0], f) || !is_matrix(&f->operand[1], f))
            return lower_lacks(why, s, "the scores' factors are no matrices as they lie in memory");
    }
    for (uint32_t i = 0; i < t->ncolumn; i++) {
        const struct matmul_form *f = &t->column[i].form;
        if (!is_matrix(&f->operand[of_side(f, MATMUL_B)], f))
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

/* Does e read memory, select or call anything but exponentials? */
static bool is_busy(const struct lang_expr *e)
{
    const bool plain = e->fn == FN_EXP || e->fn == FN_EXP2 || e->fn == FN_MAX || e->fn == FN_MIN;
    bool busy = e->kind == E_INDEX || e->kind == E_COND || (e->kind == E_CALL && !plain);
    for (uint32_t i = 0; i < e->nargs && !busy; i++)
        busy = is_busy(e->args[i]);
    return busy;
}

/* Is what stands between the products more than a normalised exponential? */
static bool has_busy_terms(const struct chain_tensor *t)
{
    bool busy = false;
    for (uint32_t i = 0; i < t->f->nscore; i++)
        busy |= is_busy(t->score[i].value);
    for (uint32_t i = 0; i < t->f->nstream; i++) {
        const struct chain_stream *s = &t->f->stream[i];
        busy |= s->has_column ? is_busy(s->part[0].e) : is_busy(s->term);
    }
    return busy;
}

/* Do ranges come from memory? The producer's threads find them, too. */
static bool has_busy_ranges(const struct chain_tensor *t)
{
    bool busy = false;
    for (uint32_t i = 0; i < t->f->nstream; i++) {
        const struct chain_stream *s = &t->f->stream[i];
        busy |= is_busy(s->high) || (s->low && is_busy(s->low));
    }
    return busy;
}

/* Elements of memory that e reads for each j. */
static uint32_t reads_of(const struct chain_tensor *t, const struct lang_expr *e)
{
    uint32_t n = e->kind == E_INDEX && chain_mentions(e, t->f->j);
    for (uint32_t i = 0; i < e->nargs; i++)
        n += reads_of(t, e->args[i]);
    return n;
}

/* Words of a lane's that come from memory for a row of a tile: they are loaded together. */
static uint32_t loaded(const struct chain_tensor *t, const struct chain_plan *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->f->nscore; i++)
        n += reads_of(t, t->score[i].value);
    for (uint32_t i = 0; i < t->f->nstream; i++) {
        const struct chain_stream *s = &t->f->stream[i];
        const uint32_t of = reads_of(t, s->has_column ? s->part[0].e : s->term);
        n = of > n ? of : n;
    }
    return n * p->wide / 4;
}

/* Registers of a lane's for all but words: so many that ptxas keeps none in memory. */
static uint32_t others(const struct chain_tensor *t, const struct chain_plan *p)
{
    enum { FEW_COLUMNS = 128 };
    const bool busy = has_busy_terms(t);
    if (is_known(t) && busy)
        return (p->columns > FEW_COLUMNS ? 64 : 88) + loaded(t, p);
    if (is_known(t))
        return chain_wgmma_consumers(p) > 2 ? 56 : 40;
    return busy ? 120 + loaded(t, p) : p->columns > FEW_COLUMNS ? 56 : 88;
}

bool chain_wgmma_plan(const struct ptx_target *target, const struct chain_tensor *t,
                      struct chain_plan *p)
{
    enum { WIDEST = 128, NARROWEST = 48, HIGH_TERMS = 64, KEEPS = 24, KEEPS_MORE = 40 };
    const uint32_t unit = lies_along_j(t) ? CHAIN_SPAN : CHAIN_STEP;
    const bool light = is_known(t) && !has_busy_terms(t) && !has_busy_ranges(t);
    int64_t rows;
    uint32_t most = light && p->terms <= HIGH_TERMS && p->columns <= HIGH_TERMS ? 3 : 2;
    if (lang_const_int(t->f->row[t->i]->dims[0], &rows) && rows <= (int64_t)most * WGMMA_ROWS)
        most = rows <= WGMMA_ROWS ? 1 : 2;
    p->high = 1;
    p->keeps = has_busy_ranges(t) ? KEEPS_MORE : KEEPS;
    for (uint32_t n = most; n > 0; n--)
        for (p->wide = WIDEST; p->wide >= NARROWEST; p->wide -= unit) {
            p->warps = n * CHAIN_WARPS;
            if (words_of(t, p) + others(t, p) <= chain_wgmma_registers(p, false) &&
                chain_wgmma_shared(t, p) <= target->shared_optin)
                return true;
        }
    return false;
}

uint32_t chain_wgmma_threads(const struct chain_plan *p)
{
    return (1 + chain_wgmma_consumers(p)) * WGMMA_GROUP;
}
