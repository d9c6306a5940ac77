#include <config.h>

#include "lower/cg/cg.h"
#include "lower/pass/pass.h"

/* ---- errors ---------------------------------------------------------------------------------- */

bool cg_error(struct cg *g, struct span s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(g->a, fmt, ap);
    va_end(ap);
    g->failed = true;
    return diag_error(g->d, s, "%s", text);
}

/* ---- control flow ---------------------------------------------------------------------------- */

uint32_t cg_label(struct cg *g, const char *stem)
{
    return ptx_label_new(&g->b, stem);
}

void cg_place(struct cg *g, uint32_t label)
{
    ptx_label_here(&g->b, label);
    g->dead = false;
}

void cg_jump(struct cg *g, uint32_t label)
{
    if (!g->dead)
        PTX(&g->b, "bra", ptx_label(label));
    g->dead = true;
}

void cg_jump_if(struct cg *g, int32_t pred, bool sense, uint32_t label)
{
    if (!g->dead)
        ptx_emit(&g->b, pred, !sense, "bra", PTX_ARGS(ptx_label(label)));
}

/* ---- positions ------------------------------------------------------------------------------- */

static void annotate(struct cg *g, struct span s)
{
    const struct source *src = s.src;
    size_t from = s.off, to = s.off;
    while (from > 0 && src->text[from - 1] != '\n')
        from--;
    while (to < src->len && src->text[to] != '\n' && src->text[to] != '\r')
        to++;
    while (from < to && src->text[from] == ' ')
        from++;
    char *text =
        arena_printf(g->a, " %zu: %.*s", span_line_col(s).line, (int)(to - from), src->text + from);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = ' ';
    ptx_comment(&g->b, text);
}

static void put_loc(struct cg *g, struct span s)
{
    const struct cg_site *site = g->site;
    const struct line_col at = span_line_col(s);
    struct ptx_item loc = {.kind = PTX_I_LOC,
                           .span = s,
                           .file = g->file,
                           .line = (uint32_t)at.line,
                           .column = (uint32_t)at.col,
                           .text = ""};
    if (site)
        loc.text = arena_printf(g->module->arena, ", function_name $fn_%s, inlined_at %u %u %u",
                                site->func, g->file, site->line, site->column);
    const size_t n = g->func->items.n;
    const struct ptx_item *last = n ? &g->func->items.v[n - 1] : NULL;
    if (last && last->kind == PTX_I_LOC && last->line == loc.line && last->column == loc.column &&
        strcmp(last->text, loc.text) == 0)
        return;
    *VEC_PUSH(g->module->arena, &g->func->items) = loc;
}

void cg_enter(struct cg *g, struct cg_site *site, const struct lang_func *f, struct span call)
{
    *site = (struct cg_site){.up = g->site};
    if (!g->calls || g->dead || call.src != g->spec->src || f->span.src != g->spec->src)
        return;
    const struct line_col at = span_line_col(call);
    put_loc(g, call); /* PTX wants the place of a call to have been a place before */
    site->func = f->name;
    site->line = (uint32_t)at.line;
    site->column = (uint32_t)at.col;
    g->site = site;
    g->line = 0;
    for (size_t i = 0; i < g->inlined->v.n; i++)
        if (strcmp(g->inlined->v.v[i], f->name) == 0)
            return;
    *VEC_PUSH(g->module->arena, &g->inlined->v) = f->name;
}

void cg_leave(struct cg *g, struct cg_site *site, struct span call)
{
    g->site = site->up;
    if (site->func)
        g->line = 0;
    cg_at(g, call); /* what follows is the caller's again */
}

void cg_at(struct cg *g, struct span s)
{
    /* the library's own functions are not the user's lines */
    if (!s.src || s.src != g->spec->src)
        return;
    g->b.span = s;
    if (!g->lines && !g->opt->annotate)
        return;
    struct line_col at = span_line_col(s);
    if (at.line == g->line || g->dead)
        return;
    g->line = (uint32_t)at.line;
    if (g->opt->annotate)
        annotate(g, s);
    if (g->lines)
        put_loc(g, s);
}

/* ---- bindings -------------------------------------------------------------------------------- */

struct cg_binding *cg_find(struct cg *g, const struct lang_symbol *sym)
{
    for (size_t i = g->bindings.n; i-- > 0;)
        if (g->bindings.v[i].sym == sym)
            return &g->bindings.v[i];
    return NULL;
}

void cg_bind(struct cg *g, const struct lang_symbol *sym, struct cg_val v, bool is_mutable)
{
    struct cg_binding *b = VEC_PUSH(g->a, &g->bindings);
    g->bound++;
    *b = (struct cg_binding){.sym = sym, .val = v, .is_mutable = is_mutable};
}

/* ---- an entry -------------------------------------------------------------------------------- */

/* The entry before keeps the items that it has. */
static void give_back(struct cg *g)
{
    struct cg_spare *const spare = g->spare;
    struct ptx_func *const f = spare->func;
    if (!f || f->items.v != spare->items.v + spare->items.n)
        return; /* they were moved, since there was no room */
    f->items.cap = f->items.n;
    spare->items.n += f->items.n;
}

static void take_spare(struct cg *g)
{
    struct cg_spare *const spare = g->spare;
    give_back(g);
    if (spare->items.cap - spare->items.n < CG_ITEMS) {
        spare->items.v = ARENA_ARRAY(g->module->arena, 2 * CG_ITEMS, struct ptx_item);
        spare->items.cap = 2 * CG_ITEMS;
        spare->items.n = 0;
    }
    VEC_RESERVE(g->module->arena, &spare->regs, CG_ITEMS);
    g->func->items.v = spare->items.v + spare->items.n;
    g->func->items.cap = spare->items.cap - spare->items.n;
    g->func->regs.v = spare->regs.v;
    g->func->regs.cap = spare->regs.cap;
    spare->func = g->func;
}

void cg_begin(struct cg *g, const char *entry)
{
    g->func = ptx_entry_new(g->module, entry);
    take_spare(g);
    g->b = ptx_builder_new(g->module, g->func);
    g->b.span = g->spec->name_span;
    g->params.n = 0;
    g->prologue.n = g->prologue_order.n = 0;
    for (int i = 0; i < SP_COUNT; i++)
        g->sreg[i] = -1;
    g->area_var = NULL;
    cg_scope_close(g, 0);
    g->version.n = 0;
    g->sums.n = g->sum_of.n = 0;
    g->parts.n = 0;
    g->bindings.n = 0;
    g->loop = NULL;
    g->nest = NULL;
    g->depth_of.n = 0;
    g->ret = NULL;
    g->dead = false;
    g->line = 0;
    g->exit = cg_label(g, "exit");
    g->exit_used = false;
    g->read = NULL;
    g->reduced = NULL;
    g->quotient = NULL;
    g->falling = NULL;
    g->called = NULL;
    g->preloaded = g->converts = g->guard_varies = false;
    g->guard = -1;
    g->is_uniform = NULL;
    g->binary = g->cast = NULL;
    g->unroll = 0;
}

struct contract_launch *cg_launch(struct cg *g, struct lang_expr *grid, struct lang_expr *block)
{
    struct contract_launch *l = VEC_PUSH(g->a, &g->contract->launches);
    l->entry = g->func->name;
    l->step = g->step;
    l->grid[0] = grid;
    l->block[0] = block;
    l->span = g->spec->name_span;
    return l;
}

void cg_to_prologue(struct cg *g, size_t from, uint32_t order)
{
    for (size_t i = from; i < g->func->items.n; i++) {
        *VEC_PUSH(g->a, &g->prologue) = g->func->items.v[i];
        *VEC_PUSH(g->a, &g->prologue_order) = order;
    }
    g->func->items.n = from;
}

/* The prologue, sorted, in front of the body; labels move along. */
static void place_prologue(struct cg *g)
{
    struct ptx_func *f = g->func;
    const size_t np = g->prologue.n, nb = f->items.n;
    size_t n = 0;
    uint32_t last = 0;
    bool first = true;
    for (size_t i = 0; i < np; i++)
        VEC_PUSH(g->module->arena, &f->items);
    memmove(f->items.v + np, f->items.v, nb * sizeof *f->items.v);
    /* by ascending order, each order's items as they were made */
    for (;;) {
        uint32_t next = UINT32_MAX;
        for (size_t i = 0; i < np; i++)
            if ((first || g->prologue_order.v[i] > last) && g->prologue_order.v[i] < next)
                next = g->prologue_order.v[i];
        if (next == UINT32_MAX)
            break;
        for (size_t i = 0; i < np; i++)
            if (g->prologue_order.v[i] == next)
                f->items.v[n++] = g->prologue.v[i];
        last = next;
        first = false;
    }
    for (size_t i = np; i < np + nb; i++)
        if (f->items.v[i].kind == PTX_I_LABEL)
            f->labels.v[f->items.v[i].label].item = (uint32_t)i;
}

/* Buffers and dimensions alone are never so many, since a spec has no more than 512 of each. */
static void check_params(struct cg *g)
{
    const uint64_t bytes = ptx_param_bytes(g->func);
    uint32_t computed = 0, maps = 0;
    if (bytes <= PTX_MOST_PARAM_BYTES)
        return;
    for (size_t i = 0; i < g->params.n; i++) {
        computed += g->params.v[i].expr != NULL;
        maps += g->params.v[i].map != NULL;
    }
    cg_error(g, g->spec->name_span, "'%s' has %llu bytes of parameters, more than %d",
             g->func->name, (unsigned long long)bytes, (int)PTX_MOST_PARAM_BYTES);
    diag_note(g->d, g->spec->name_span,
              "of %zu parameters %u are computed by the launch from dimensions and %u are tensor "
              "maps; fix dimensions by -D, or make several kernels of it",
              g->params.n, (unsigned)computed, (unsigned)maps);
}

void cg_end(struct cg *g, struct contract_launch *launch)
{
    if (g->exit_used)
        cg_place(g, g->exit);
    g->dead = false;
    PTX0(&g->b, "ret");
    place_prologue(g);
    pass_hoist(g->a, g->func);
    pass_dce(g->a, g->func);
    cg_drop_unread(g);
    g->spare->regs.v = g->func->regs.v;
    g->spare->regs.cap = g->func->regs.cap;
    ptx_finish(&g->b);
    cg_add_args(g, launch);
    check_params(g);
}
