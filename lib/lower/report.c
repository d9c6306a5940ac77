#include <config.h>

#include "lower/explain.h"
#include "lower/strategy.h"

void lower_tell(struct cg *g, const struct lower_entry *e)
{
    lower_explain(g, "  %s: %s%s%s%s\n", e->name, e->how, e->more ? e->more : "",
                  e->when ? ", when " : "", e->when ? e->when : "");
    lower_note(g, e);
}

void lower_note(struct cg *g, const struct lower_entry *e)
{
    if (g->report)
        *VEC_PUSH(g->a, &g->report->entries) = *e;
}

void lower_missed(struct cg *g, const char *what, const char *why)
{
    if (!g->report)
        return;
    struct lower_kernel *k = g->report;
    *VEC_PUSH(g->a, &k->lacks) = (struct lower_lack){what, arena_strdup(g->a, why)};
}

/* ---- a kernel -------------------------------------------------------------------------------- */

void report_kernel(struct cg *g)
{
    struct lower_report *r = g->opt->report;
    const struct spec *s = g->spec;
    if (!r)
        return;
    struct lower_kernel *k = g->report = ARENA_ARRAY(g->a, 1, struct lower_kernel);
    *VEC_PUSH(g->a, &r->kernels) = k;
    k->name = s->name;
    for (size_t i = 0; i < s->types.n; i++)
        *VEC_PUSH(g->a, &k->types) =
            (struct lower_type){s->types.v[i].name, dtype_name(s->types.v[i].chosen)};
    for (size_t i = 0; i < s->dims.n; i++)
        if (!s->dims.v[i]->has_value)
            *VEC_PUSH(g->a, &k->open) = s->dims.v[i]->name;
    for (size_t i = 0; i < s->derived.n; i++)
        *VEC_PUSH(g->a, &k->derived) = (struct lower_derived){
            s->derived.v[i]->name, lang_expr_text(g->a, s->derived.v[i]->of)};
}

void report_attempt(struct cg *g)
{
    if (g->report)
        g->report->lacks.n = 0;
}

void report_part(struct cg *g, const char *entry, const char *strategy, bool scheduled)
{
    struct lower_kernel *k = g->report;
    if (!k)
        return;
    *VEC_PUSH(g->a, &k->parts) = (struct lower_part){
        .entry = entry, .strategy = strategy, .scheduled = scheduled, .step = g->step};
}

void report_part_end(struct cg *g)
{
    struct lower_kernel *k = g->report;
    if (!k)
        return;
    struct lower_part *p = &k->parts.v[k->parts.n - 1];
    for (size_t i = 0; i < k->lacks.n; i++)
        if (strcmp(k->lacks.v[i].what, p->strategy) != 0) /* which fits since ranges are widened */
            *VEC_PUSH(g->a, &p->lacks) = k->lacks.v[i];
    k->lacks.n = 0;
}

void lower_next_step(struct cg *g, const char *entry, const struct strategy *by)
{
    report_part_end(g);
    g->step++;
    *VEC_PUSH(g->a, &g->entries) = entry;
    report_part(g, entry, by->name, false);
}

/* ---- its launches ---------------------------------------------------------------------------- */

static void report_launch(struct cg *g, const struct contract_launch *l)
{
    struct lower_kernel *k = g->report;
    struct lower_launch *out = VEC_PUSH(g->a, &k->launches);
    *out = (struct lower_launch){.entry.name = l->entry, .step = l->step};
    for (size_t i = 0; i < k->entries.n; i++)
        if (strcmp(k->entries.v[i].name, l->entry) == 0)
            out->entry = k->entries.v[i];
    out->entry.when = l->when ? lang_expr_text(g->a, l->when) : NULL;
    for (uint32_t i = 0; i < 3; i++) {
        out->grid[i] = l->grid[i] ? lang_expr_text(g->a, l->grid[i]) : "1";
        out->block[i] = l->block[i] ? lang_expr_text(g->a, l->block[i]) : "1";
    }
    out->shared = l->shared ? lang_expr_text(g->a, l->shared) : "0";
}

void report_launches(struct cg *g)
{
    const struct contract *c = g->contract;
    if (!g->report)
        return;
    for (size_t i = 0; i < c->launches.n; i++) {
        const struct contract_launch *l = &c->launches.v[i];
        lower_explain(g, "  launch %s: grid %s, block %s\n", l->entry,
                      lang_expr_text(g->a, l->grid[0]), lang_expr_text(g->a, l->block[0]));
        report_launch(g, l);
    }
    for (size_t i = 0; i < c->temps.n; i++) {
        struct buf bytes = buf_in(g->a);
        explain_bytes(c->temps.v[i].sym, &bytes);
        *VEC_PUSH(g->a, &g->report->temps) =
            (struct lower_temp){c->temps.v[i].sym->name, buf_text(&bytes)};
    }
}
