/* What the strategy is called, what a schedule may say to it, which schedules are worth trying, and
 * its entries. */
#include <config.h>

#include "lower/scan/scan.h"

#include "lower/variant.h"

#define AT(member) offsetof(struct scan_options, member)
static const struct strategy_option options[] = {
    {"block", OPTION_POWER, 32, 1024, AT(block), "threads of a block"},
    {"vector", OPTION_POWER, 1, 16, AT(vector), "elements of each access"},
    {"held", OPTION_POWER, 1, 16, AT(held), "accesses in flight for each buffer and thread"},
    {"threads", OPTION_POWER, 1, 1024, AT(threads), "threads that share a row or a column"},
    {"split", OPTION_NUMBER, 1, 2, AT(split),
     "1: one team of threads goes through a row; 2: each of its tiles has a block"},
};

static void candidates(struct arena *a, const struct spec *s, const struct ptx_target *target,
                       struct lower_candidates *out)
{
    static const struct candidates_axis teams[] = {{"threads", {0, 8, 32, 128, 256, 512}, 6},
                                                   {"held", {0, 1, 2, 4, 8}, 5}};
    static const struct candidates_axis tiles[] = {
        {"split", {2}, 1}, {"block", {128, 256, 512}, 3}, {"held", {0, 2, 4, 8}, 4}};
    (void)s;
    (void)target;
    candidates_multiply(a, "scan", teams, COUNT(teams), out);
    candidates_multiply(a, "scan", tiles, COUNT(tiles), out);
}

const struct strategy scan_strategy = {
    .name = "scan",
    .takes = "prefixes: reductions up to each element, or from it on, along any one axis",
    .options = options,
    .noption = COUNT(options),
    .options_size = sizeof(struct scan_options),
    .analyse = scan_fit,
    .lower = scan_lower,
    .candidates = candidates,
    .minds_inouts = true,
    .takes_prefixes = true,
};

/* ---- entries --------------------------------------------------------------------------------- */

static void explain(struct cg *g, const struct scan_form *f, const struct scan_plan *p)
{
    if (!g->report)
        return;
    struct buf how = buf_in(g->a);
    const char *n = lang_expr_text(g->a, f->extent[f->axis]);
    switch (p->way) {
    case SCAN_BY_LANES:
        buf_printf(&how, "along %s, %u threads for each row", n, (unsigned)p->threads);
        break;
    case SCAN_BY_BLOCK:
        buf_printf(&how, "along %s, a block of %u threads for each row", n, (unsigned)p->threads);
        break;
    case SCAN_BY_BLOCKS:
        buf_printf(&how, "along %s, a block of %u threads for each tile of a row", n,
                   (unsigned)p->threads);
        break;
    case SCAN_DOWN:
        buf_printf(&how, "down %s, %u threads side by side and %u below each other", n,
                   (unsigned)p->across, (unsigned)p->threads);
        break;
    }
    const char *more =
        arena_printf(g->a, ", %u x %u elements of each", (unsigned)p->held, (unsigned)p->lanes);
    lower_tell(g, &(struct lower_entry){.name = p->entry,
                                        .how = buf_text(&how),
                                        .more = more,
                                        .when = p->when ? lang_expr_text(g->a, p->when) : NULL});
    if (p->way == SCAN_BY_BLOCKS)
        lower_explain(g, "    each block looks back at the totals of those before it, which it "
                         "adds up in their order\n");
}

static void lower_entry(struct cg *g, const struct scan_form *f, struct scan_plan *p,
                        struct variant_set *all)
{
    static const char *const part[] = {"lanes", "block", "blocks", "down"};
    struct variant_condition when = variant_condition(g);
    struct scan s = {.g = g, .f = f, .p = p};
    if (p->when)
        variant_require(&when, p->when);
    variant_begin(g, all, part[p->way], p->block);
    g->func->minnctapersm = p->least;
    p->entry = g->func->name;
    explain(g, f, p);
    cg_at(g, f->stage->eq[0]->span);
    scan_open(&s);
    if (p->way == SCAN_DOWN)
        scan_columns(&s);
    else
        scan_rows(&s);
    g->read = NULL;
    g->reduced = NULL;
    g->read_ctx = NULL;
    g->converts = false;
    variant_end(g, all, &when, p->blocks.e, p->block);
}

bool scan_lower(struct cg *g, void *form, const void *opt)
{
    const struct scan_form *f = form;
    struct scan_plan p[SCAN_VARIANTS];
    struct variant_set all = {.s = f->stage};
    const uint32_t n = scan_plans(g, f, opt, p);
    for (uint32_t i = 0; i < n && !g->failed; i++) {
        lower_entry(g, f, &p[i], &all);
        struct lang_expr *when = p[i].when ? p[i].when : lx_bool(g->a, true);
        /* what is no segment is added up term by term */
        lower_depth(g, f->has_segments
                           ? NULL
                           : lx_select(g->a, when, scan_depth(g, &p[i]), lx_int(g->a, 0)));
    }
    return !g->failed;
}
