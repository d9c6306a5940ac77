/* The strategy: which stages it takes, its entries and their conditions, and what --explain says of
 * it (matmul.h). */
#include <config.h>

#include "lower/matmul/matmul.h"

#include "base/internal.h"
#include "lower/schedule.h"

/* Below that the tiles are mostly empty, and what computes elements one by one is as good. */
enum { LEAST_COLUMNS = 8, LEAST_TERMS = 16 };

static const struct way {
    void (*emit)(struct matmul *m);
    uint32_t (*shared)(const struct ptx_target *target, const struct matmul_form *f,
                       const struct matmul_plan *p);
} ways[] = {
    [MATMUL_SIMT] = {matmul_simt, matmul_simt_shared},
    [MATMUL_MMA] = {matmul_mma, matmul_mma_shared},
    [MATMUL_THIN] = {matmul_thin, matmul_thin_shared},
    [MATMUL_WGMMA] = {matmul_wgmma, matmul_wgmma_shared},
};

uint32_t matmul_shared(const struct ptx_target *target, const struct matmul_form *f,
                       const struct matmul_plan *p)
{
    if (f->pairs && p->how != MATMUL_SIMT)
        return 0;
    return ways[p->how].shared(target, f, p);
}

/* ---- does it fit? ---------------------------------------------------------------------------- */

static bool is_less(const struct lang_symbol *index, int64_t than)
{
    int64_t n;
    return lang_const_int(index->dims[0], &n) && n < than;
}

/* A single column is a reduction, whose rows are all that there is to read. */
static bool pays(const struct matmul_form *f, struct buf *why)
{
    const struct span s = f->stage->eq[0]->span;
    if (is_less(f->j, LEAST_COLUMNS))
        return lower_lacks(why, s, "there are few columns '%s'", f->j->name);
    if (is_less(f->k, LEAST_TERMS))
        return lower_lacks(why, s, "there are few terms '%s' to a sum", f->k->name);
    if (!f->i && f->slides)
        return lower_lacks(why, s, "each result has a window of its own: there is one row");
    int64_t n;
    if (f->whole && lang_const_int(f->k->dims[0], &n) && n % SIMT_LEAST_TERMS)
        return lower_lacks(why, s, "the terms '%s' are no whole tiles, and zeros would count",
                           f->k->name);
    return true;
}

/* Is there room for the smallest of fma's tiles, which do what tensor cores do not take? */
static bool has_room(const struct cg *g, const struct matmul_form *f, struct buf *why)
{
    const struct matmul_plan least = matmul_least();
    return (!f->pairs && f->type != MATMUL_F64) || matmul_simt_shared(g->target, f, &least) ||
           lower_lacks(why, f->stage->eq[0]->span, "a thread has no registers for all of it");
}

/* A stage that fits. */
struct fitting {
    const struct lower_stage *stage; /* as it was written */
    struct matmul_form form;
};

void *matmul_fit(struct cg *g, const struct lower_stage *s, struct buf *why)
{
    struct fitting *f = ARENA_NEW(g->a, struct fitting);
    f->stage = s;
    if (!matmul_analyse(g, s, true, &f->form, why))
        return NULL;
    const bool asked = schedule_asks(g, &matmul_strategy);
    return asked || (pays(&f->form, why) && has_room(g, &f->form, why)) ? f : NULL;
}

const struct matmul_form *matmul_form_of(const void *fit)
{
    const struct fitting *f = fit;
    return &f->form;
}

/* ---- --explain ------------------------------------------------------------------------------- */

static const char *const type_names[] = {
    [MATMUL_F16] = "f16", [MATMUL_BF16] = "bf16", [MATMUL_TF32] = "tf32", [MATMUL_F32] = "f32",
    [MATMUL_F64] = "f64", [MATMUL_INT8] = "int8", [MATMUL_FP8] = "fp8",   [MATMUL_I32] = "i32",
};

static const char *extent(struct cg *g, const struct lang_symbol *index)
{
    return lang_expr_text(g->a, index->dims[0]);
}

static void explain_operand(struct cg *g, const struct matmul_form *f, uint32_t n)
{
    const struct matmul_operand *o = &f->operand[n];
    const struct lang_symbol *across = o->side == MATMUL_A ? f->i : f->j;
    const char *along = o->along_k || !across ? f->k->name : across->name;
    lower_explain(g, "  %s%s: %s of %s along %s", o->side == MATMUL_A ? "left" : "right",
                  o->cut == MATMUL_CUT ? ", as it is but for bits that are left out"
                  : o->cut             ? ", as it is but for rounding"
                  : o->plain           ? ", as it is"
                  : o->gather          ? ", gathered"
                                       : ", computed",
                  lang_expr_text(g->a, o->eq->rhs), dtype_name(o->type), along);
    if (!o->plain && o->main)
        lower_explain(g, ", from %s of %s", o->main->name, dtype_name(o->main->type));
    lower_explain(g, "\n");
}

/* The product of the extents with c, as far as they are known, and the text of the rest. */
static double times_extents(struct cg *g, double c, uint32_t n, struct lang_expr *const *dim,
                            struct buf *rest)
{
    int64_t v;
    for (uint32_t i = 0; i < n; i++)
        if (lang_const_int(dim[i], &v))
            c *= (double)v;
        else
            buf_printf(rest, inspect_strip(dim[i])->kind == E_NAME ? " * %s" : " * (%s)",
                       lang_expr_text(g->a, dim[i]));
    return c;
}

/* Bytes of what the operands are made of and of the results, each once; < 0: not known. */
static double all_bytes(struct cg *g, const struct matmul_form *f)
{
    const struct lang_symbol *seen[MATMUL_OPERANDS + MATMUL_OUTS];
    struct buf rest = buf_in(g->a);
    uint32_t n = 0;
    double bytes = 0;
    for (uint32_t i = 0; i < f->noperand + f->stage->n; i++) {
        const struct lang_symbol *t = i < f->noperand ? f->operand[i].main
                                                      : f->stage->eq[i - f->noperand]->sym;
        bool again = !t;
        for (uint32_t k = 0; k < n; k++)
            again |= seen[k] == t;
        if (again)
            continue;
        seen[n++] = t;
        bytes += times_extents(g, dtype_bits(t->type) / 8.0, t->rank, t->dims, &rest);
    }
    return rest.len ? -1 : bytes;
}

static void explain_work(struct cg *g, const struct matmul_form *f)
{
    struct buf rest = buf_in(g->a);
    struct lang_expr *dim[MATMUL_BATCH + 3];
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->nbatch; i++)
        dim[n++] = f->batch[i]->dims[0];
    if (f->i)
        dim[n++] = f->i->dims[0];
    dim[n++] = f->j->dims[0];
    dim[n++] = f->k->dims[0];
    const double each = f->pairs ? f->pair_weight : 2, bytes = all_bytes(g, f);
    const double work = times_extents(g, each * f->nproduct, n, dim, &rest);
    lower_explain(g, "  %.6g%s operations", work, buf_text(&rest));
    if (!rest.len && bytes > 0)
        lower_explain(g, " on %.6g bytes: %.4g for each", bytes, work / bytes);
    lower_explain(g, "\n");
}

static void explain_form(struct cg *g, const struct matmul_form *f)
{
    if (f->pairs)
        lower_explain(g, "  no product: %s\n  %u reduction%s of terms of %s:", f->no_product,
                      f->nproduct, f->nproduct == 1 ? "" : "s", type_names[f->type]);
    else
        lower_explain(g, "  %u product%s of %s, summed as %s:", f->nproduct,
                      f->nproduct == 1 ? "" : "s", type_names[f->type], dtype_name(f->sum));
    if (f->i)
        lower_explain(g, " rows %s < %s,", f->i->name, extent(g, f->i));
    lower_explain(g, " columns %s < %s, terms %s < %s", f->j->name, extent(g, f->j), f->k->name,
                  extent(g, f->k));
    for (uint32_t i = 0; i < f->nbatch; i++)
        lower_explain(g, "%s %s < %s", i ? "," : "; for each", f->batch[i]->name,
                      extent(g, f->batch[i]));
    lower_explain(g, "\n");
    for (uint32_t i = 0; i < f->noperand; i++)
        explain_operand(g, f, i);
    explain_work(g, f);
}

/* What copies windows; if threads do, why. */
static void explain_windows(const struct matmul_form *f, const struct matmul_plan *p,
                            struct buf *more)
{
    const bool threads = matmul_wgmma_gathers(f, p);
    for (uint32_t i = 0; i < f->noperand; i++) {
        const struct matmul_gather *from = f->operand[i].gather;
        const char *side = f->operand[i].side == MATMUL_A ? "left" : "right";
        if (from && matmul_wgmma_copies(f, p, i))
            buf_printf(more, ", %s windows by TMA", side);
        else if (from && threads)
            buf_printf(more, ", %s windows by threads%s%s%s", side, from->no_boxes ? " (" : "",
                       from->no_boxes ? from->no_boxes : "", from->no_boxes ? ")" : "");
    }
}

static void explain_plan(struct cg *g, const struct matmul_form *f, const struct matmul_plan *p,
                         const struct variant_condition *c)
{
    static const char *const how[] = {[MATMUL_SIMT] = "fma",
                                      [MATMUL_MMA] = "mma.sync",
                                      [MATMUL_THIN] = "few rows, fma",
                                      [MATMUL_WGMMA] = "wgmma"};
    if (!g->report)
        return;
    const bool tensor = !f->pairs && (p->how == MATMUL_MMA || p->how == MATMUL_WGMMA);
    struct buf more = buf_in(g->a);
    const char *of = arena_printf(g->a, "%s of %s%s", f->pairs ? "pairs" : how[p->how],
                                  type_names[p->type],
                                  p->coarse      ? " in parts, with bf16"
                                  : p->parts > 1 ? " in parts"
                                  : p->as_f16    ? ", as f16 where elements allow"
                                                 : "");
    buf_printf(&more, " of %u x %u, %u threads, %u stage%s", p->wm, p->wn, p->threads, p->stages,
               p->stages == 1 ? "" : "s");
    if (p->turned)
        buf_puts(&more, ", computed turned");
    if (p->how == MATMUL_WGMMA)
        explain_windows(f, p, &more);
    if (p->split > 1)
        buf_printf(&more, ", %s shares of the sum", lang_expr_text(g->a, p->splits));
    if (p->cluster[0] * p->cluster[1] > 1)
        buf_printf(&more, ", clusters of %u x %u", p->cluster[0], p->cluster[1]);
    if (p->blocks == MATMUL_BLOCKS_ALL)
        buf_puts(&more, ", by turns of a block on each multiprocessor");
    else if (p->blocks)
        buf_printf(&more, ", %u blocks by turns", p->blocks);
    const double ns = matmul_in_f16(p) ? p->about - matmul_parts_about(f) : p->about;
    if (ns > 0)
        buf_printf(&more, ", about %.4g us", ns / 1e3);
    lower_tell(g, &(struct lower_entry){
                      .name = g->func->name,
                      .how = arena_printf(g->a, "%s, tiles %u x %u x %u", of, p->bm, p->bn, p->bk),
                      .more = buf_text(&more),
                      .when = variant_when_text(c),
                      .multiplies = tensor ? of : NULL,
                      .ns = ns});
}

/* ---- what sums lose: cg.h -------------------------------------------------------------------- */

/* Of one entry, as the launch computes it. */
struct loss {
    struct lang_expr *when; /* NULL: always */
    struct lang_expr *depth, *truncation, *products;
};
struct losses {
    struct loss v[MATMUL_VARIANTS + 1];
    uint32_t n;
};

/* So much for every `by` terms. */
static struct lang_expr *each(struct arena *a, int64_t loss, struct lang_expr *terms, int64_t by)
{
    return lx_mul(a, lx_int(a, loss), lx_ceil_div_int(a, terms, by));
}

static struct loss loss_of(struct cg *g, const struct matmul_form *f, const struct matmul_plan *p,
                           const struct variant_condition *c)
{
    struct arena *a = g->a;
    struct lang_expr *k = f->k->dims[0], *none = lx_int(a, 0);
    struct loss l = {variant_when(c), p->depth, none, none};
    if ((p->how != MATMUL_MMA && p->how != MATMUL_WGMMA) || f->sum != DT_F32)
        return l;
    if (matmul_in_f16(p)) {
        /* 10 for each 16 terms, of the first parts' product alone: the rests' are 2^-10 of it at
         * most; partial sums of all that are added together are at most twice the largest */
        l.truncation = lx_int(a, matmul_together(p) / 16 * 20 + 4);
        /* odd: even short products may lack something (ref/ref.h) */
        l.products = lx_int(a, 25);
    } else if (p->parts > 1) {
        /* three times 6 for every 4 terms, of their own sum: all these together are at most twice
         * the largest partial sum */
        l.truncation = lx_int(a, (matmul_together(p) + 3) / 4 * 36);
        /* 4 for the rests' product, 8 for what is cut off of each rest, and 72 for what bf16 has no
         * bits for (ref/ref.h) */
        l.products = lx_int(a, p->coarse ? 88 : 24);
    } else if (p->promotes) { /* of one stage */
        l.truncation = each(a, 34816, lx_min(a, k, lx_int(a, p->bk)), 16);
    } else if (p->type == MATMUL_FP8) {
        l.truncation = each(a, 34816, k, 16);
    } else {
        l.truncation = each(a, 6, k, 4);
    }
    return l;
}

/* What the entry loses that the launch takes: the first whose condition holds. */
static struct loss chosen(struct cg *g, const struct losses *l)
{
    struct lang_expr *none = lx_int(g->a, 0);
    struct loss all = {NULL, none, none, none};
    for (uint32_t i = l->n; i-- > 0;) {
        const struct loss *v = &l->v[i];
        struct lang_expr *when = v->when ? v->when : lx_bool(g->a, true);
        all.depth = lx_select(g->a, when, v->depth, all.depth);
        all.truncation = lx_select(g->a, when, v->truncation, all.truncation);
        all.products = lx_select(g->a, when, v->products, all.products);
    }
    return all;
}

static bool is_some(const struct lang_expr *loss)
{
    int64_t n;
    return !lang_const_int(loss, &n) || n != 0;
}

static void tell_losses(struct cg *g, const struct losses *l)
{
    const struct loss all = chosen(g, l);
    lower_depth(g, all.depth);
    if (is_some(all.truncation))
        lower_truncation(g, all.truncation);
    if (is_some(all.products))
        lower_products(g, all.products);
}

/* ---- code ------------------------------------------------------------------------------------ */

/* Is operand n, which is no matrix, copied as it lies? */
static bool gathers(const struct matmul_form *f, const struct matmul_plan *p, uint32_t n)
{
    return p->how == MATMUL_MMA ||
           (p->how == MATMUL_WGMMA &&
            (matmul_wgmma_copies(f, p, n) || (p->producers < 2 && matmul_wgmma_gathers(f, p))));
}

/* Requires of the dimensions what copies and vectors of the operands need. */
static void require_align(struct cg *g, const struct matmul_form *f, const struct matmul_plan *p,
                          struct variant_condition *c)
{
    for (uint32_t i = 0; i < f->noperand; i++) {
        const struct matmul_operand *o = &f->operand[i];
        const struct lang_symbol *t = o->plain ? o->plain->sym : o->eq->sym;
        if (t->rank)
            variant_require_multiple(g, c, t->dims[t->rank - 1], p->align[i]);
        if (o->gather && gathers(f, p, i))
            matmul_gather_require(g, o->gather, p->align[i], c);
    }
    const struct lang_symbol *out = f->stage->eq[0]->sym;
    if (p->store > 1)
        variant_require_multiple(g, c, out->dims[out->rank - 1], p->store);
    if (f->whole)
        variant_require_multiple(g, c, f->k->dims[0], p->bk);
}

static void set_cluster(struct cg *g, const struct matmul_plan *p)
{
    const uint32_t n = (p->cluster[0] ? p->cluster[0] : 1) * (p->cluster[1] ? p->cluster[1] : 1) *
                       (p->how == MATMUL_WGMMA ? p->split : 1);
    struct contract_launch *l = &g->contract->launches.v[g->contract->launches.n - 1];
    if (n > 1)
        l->cluster[0] = lx_int(g->a, n);
}

/* One entry; none where its condition never holds. Adds what its sums lose. */
static bool lower_variant(struct cg *g, const struct matmul_form *f, const struct matmul_plan *p,
                          struct variant_set *all, struct losses *losses)
{
    struct variant_condition c = variant_condition(g);
    struct matmul_parted parted[MATMUL_OPERANDS];
    struct matmul m = {.g = g, .f = f, .p = p, .parted = parted};
    if (matmul_in_f16(p) && !matmul_lower_parts(g, f, parted))
        return false;
    const uint32_t shared =
        matmul_shared(g->target, f, p); /* not 0: nobody chooses what does not fit */
    if (!shared)
        INTERNAL_ERROR("matmul_plan() chose tiles that fit, but not %u x %u x %u", p->bm, p->bn,
                       p->bk);
    cg_dynamic(g); /* in front of what variant_drop() takes away */
    variant_begin(g, all, p->entry, p->threads);
    cg_at(g, f->stage->eq[0]->span);
    if (p->when)
        variant_require(&c, p->when);
    require_align(g, f, p, &c);
    if (p->how == MATMUL_WGMMA)
        matmul_wgmma_require(g, f, p, &c);
    matmul_sizes(g, f, &c);
    m.reader.assumes = true;
    if (!c.never) {
        if (p->how != MATMUL_WGMMA && !p->blocks) /* which take several tiles */
            matmul_begin(&m);
        g->tensor = f->sum == DT_F32 && (p->how == MATMUL_MMA || p->how == MATMUL_WGMMA);
        ways[p->how].emit(&m);
        g->tensor = false;
        for (size_t i = 0; i < m.reader.needs.n; i++)
            variant_require_multiple(g, &c, m.reader.needs.v[i].e, m.reader.needs.v[i].of);
    }
    if (c.never) {
        variant_drop(g, all);
        return true;
    }
    g->shared_bytes = lx_int(g->a, shared);
    explain_plan(g, f, p, &c);
    losses->v[losses->n++] = loss_of(g, f, p, &c);
    variant_end(g, all, &c, matmul_grid(&m), p->threads);
    set_cluster(g, p);
    return !g->failed;
}

/* Adds the variant for all sizes that no other one is for: each thread computes an element. */
static bool lower_rest(struct cg *g, const struct lower_stage *s, struct variant_set *all)
{
    const struct variant_condition always = variant_condition(g);
    variant_begin(g, all, "large", NAIVE_BLOCK);
    cg_at(g, s->eq[0]->span);
    struct lang_expr *grid = naive_code(g, s, NAIVE_BLOCK);
    const char *how = arena_printf(g->a, "one thread for each element of %s", s->eq[0]->sym->name);
    lower_tell(g, &(struct lower_entry){.name = g->func->name, .how = how});
    variant_end(g, all, &always, grid, NAIVE_BLOCK);
    return !g->failed;
}

/* No tile is for sizes that are known: what is counted in 32 bits may not be as large. */
static void tell_too_large(struct cg *g)
{
    const char *why = arena_printf(g->a,
                                   "more than %u rows, columns or terms, or subscripts of 2^29",
                                   (unsigned)MAP_MOST_SMALL);
    lower_explain(g, "  not by tiles: %s\n", why);
    lower_missed(g, "tiles", why);
}

/* The plans of all variants; false after an error. */
static bool make_plans(struct cg *g, const struct matmul_form *f,
                       const struct matmul_options *options, struct matmul_plan *p, uint32_t *n)
{
    const struct matmul_setting setting = {
        .a = g->a, .target = g->target, .fast = g->fast, .strict = !g->contract_fma};
    struct matmul_report report = {0};
    const bool good = matmul_plan(&setting, f, options, p, n, &report);
    if (report.not_wgmma) {
        lower_explain(g, "  not wgmma: %s\n", report.not_wgmma);
        lower_missed(g, "wgmma", report.not_wgmma);
    }
    return good || cg_error(g, schedule_span(g, report.key), "%s", report.refusal);
}

bool matmul_lower(struct cg *g, void *form, const void *options)
{
    const struct fitting *fitting = form;
    const struct matmul_form *f = &fitting->form;
    struct matmul_plan p[MATMUL_VARIANTS] = {0};
    uint32_t n = 0;
    explain_form(g, f);
    matmul_advise_cast(g, f, options);
    if (!make_plans(g, f, options, p, &n))
        return false;
    struct variant_set all = {.s = f->stage};
    struct losses losses = {.n = 0};
    for (uint32_t i = 0; i < n && !all.done; i++)
        if (!lower_variant(g, f, &p[i], &all, &losses))
            return false;
    if (!all.done) {
        if (n && losses.n == 0)
            tell_too_large(g);
        losses.v[losses.n++] = (struct loss){NULL, f->k->dims[0], lx_int(g->a, 0), lx_int(g->a, 0)};
        if (!lower_rest(g, fitting->stage, &all))
            return false;
    }
    tell_losses(g, &losses);
    return true;
}
