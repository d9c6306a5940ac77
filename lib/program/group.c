/* Equations between calls and loops: as many as can be become one kernel. Steps see what those
 * before them have written, and equations of a kernel see what was there before it: what an
 * equation reads of a buffer that one above it assigns is therefore an intermediate of the kernel,
 * which it stores in the end. */
#include <config.h>

#include "program/group.h"

enum { MOST_EQUATIONS = 200 }; /* in a kernel, with those that store */

struct access *find_access(const struct group *g, const char *name, const char *prefix)
{
    for (size_t i = 0; i < g->access.n; i++)
        if (strcmp(g->access.v[i]->var->name, name) == 0 &&
            strcmp(g->access.v[i]->prefix, prefix) == 0)
            return g->access.v[i];
    return NULL;
}

static struct local *find_local(const struct group *g, const char *name)
{
    for (size_t i = 0; i < g->locals.n; i++)
        if (strcmp(g->locals.v[i].name, name) == 0)
            return &g->locals.v[i];
    return NULL;
}

/* ---- one equation ---------------------------------------------------------------------------- */

struct part { /* of a buffer, that an equation reads */
    struct variable *var;
    const char *prefix;
    struct lang_expr **fixed;
    uint32_t nfixed;
};

struct said { /* by an equation */
    struct group *g;
    struct reads reads;
    VEC(struct part) part;
    VEC(const struct lang_symbol *) numbers;
};

static uint32_t note_read(void *ctx, struct lang_expr *e)
{
    struct said *s = ctx;
    struct builder *b = s->g->b;
    const uint32_t n = e->kind == E_INDEX && !e->pad ? count_fixed(&s->reads, e->args, e->nargs)
                                                     : 0;
    struct variable *var = find_local(s->g, e->name) ? NULL : find_variable(b, e->name);
    if (var) {
        *VEC_PUSH(b->a, &s->part) = (struct part){var, prefix_text(b->a, e->args, n), e->args, n};
        return n;
    }
    const struct lang_symbol *sym = lang_find(&b->block->scope, e->name);
    if (sym && (sym->kind == SYM_SCALAR || sym->kind == SYM_DIM))
        *VEC_PUSH(b->a, &s->numbers) = sym;
    return 0;
}

/* Subscripts of the left side that choose a part, then indices. */
static bool split_left(struct group *g, const struct lang_equation_step *e, uint32_t *nfixed)
{
    struct reads r = {.b = g->b};
    bool fixed = true;
    *nfixed = 0;
    for (uint32_t i = 0; i < e->nleft; i++) {
        struct lang_left *left = &e->left[i];
        const struct lang_symbol *sym =
            left->index ? lang_find(&g->b->block->scope, left->index->name) : NULL;
        if (sym && !left->index->written) { /* the name of a number is one */
            left->at = lang_parse_expr(g->b->a, left->index->span, NULL, g->b->d);
            left->index = NULL;
        }
        if (!left->index && !is_fixed(&r, left->at))
            return diag_error(g->b->d, left->at->span,
                              "a subscript on the left is an index, or is made of dimensions, "
                              "integer scalars and indices of loops; what a buffer holds is known "
                              "only when the program runs");
        if (!left->index && !fixed)
            return diag_error(g->b->d, left->at->span,
                              "what chooses a part of '%s' stands in front of the indices",
                              e->name);
        fixed = fixed && !left->index;
        *nfixed += !left->index;
    }
    return true;
}

static const char *left_prefix(struct group *g, const struct lang_equation_step *e, uint32_t n,
                               struct lang_expr ***fixed)
{
    *fixed = ARENA_ARRAY(g->b->a, n, struct lang_expr *);
    for (uint32_t i = 0; i < n; i++)
        (*fixed)[i] = e->left[i].at;
    return prefix_text(g->b->a, *fixed, n);
}

static void find_said(struct said *s, const struct lang_equation_step *e)
{
    s->reads = (struct reads){.b = s->g->b, .found = note_read, .ctx = s};
    for (uint32_t i = 0; i < e->nleft; i++)
        if (e->left[i].index)
            *VEC_PUSH(s->g->b->a, &s->reads.index) = e->left[i].index->name;
    for (uint32_t i = 0; i < e->nleft; i++)
        if (e->left[i].index && e->left[i].index->written) {
            find_reads(&s->reads, e->left[i].index->dims[0]);
            if (e->left[i].index->low)
                find_reads(&s->reads, e->left[i].index->low);
        }
    find_reads(&s->reads, e->rhs);
}

/* ---- what fits in a group -------------------------------------------------------------------- */

/* Is another part of the buffer read or written in the group, so that this one might be as well? */
static bool has_other_part(const struct group *g, const struct variable *var, const char *prefix,
                           bool written)
{
    for (size_t i = 0; i < g->access.n; i++)
        if (g->access.v[i]->var == var && strcmp(g->access.v[i]->prefix, prefix) != 0 &&
            (!written || g->access.v[i]->written))
            return true;
    return false;
}

static bool is_assigned(const struct group *g, const char *name)
{
    for (size_t i = 0; i < g->access.n; i++)
        if (g->access.v[i]->written && strcmp(g->access.v[i]->var->name, name) == 0)
            return true;
    return find_local(g, name) != NULL;
}

/* A kernel updates in place only what has one shape. */
static bool updates_like(const struct group *g, const struct variable *to)
{
    for (size_t i = 0; i < g->access.n; i++) {
        const struct access *a = g->access.v[i];
        const uint32_t rank = a->var->sym->rank - a->nfixed;
        bool same = rank == to->sym->rank;
        for (uint32_t k = 0; k < rank && same; k++)
            same = expr_equal(g->b, a->var->sym->dims[a->nfixed + k], to->sym->dims[k]);
        if (a->read && a->written && !same)
            return false;
    }
    return true;
}

/* Would the equation mean something else in the kernel of those before it? */
static bool fits(const struct group *g, const struct said *s, const struct lang_equation_step *e,
                 const char *prefix)
{
    struct variable *to = find_variable(g->b, e->name);
    if (g->v.n + 1 > MOST_EQUATIONS || is_assigned(g, e->name))
        return false;
    for (size_t i = 0; i < s->part.n; i++)
        if (has_other_part(g, s->part.v[i].var, s->part.v[i].prefix, true))
            return false;
    if (!to)
        return true;
    const struct access *a = find_access(g, e->name, prefix);
    return !has_other_part(g, to, prefix, false) && !(a && a->read && !updates_like(g, to));
}

static bool is_param(const struct group *g, const char *name)
{
    for (size_t i = 0; i < g->access.n; i++)
        if (strcmp(g->access.v[i]->param, name) == 0 ||
            (g->access.v[i]->next && strcmp(g->access.v[i]->next, name) == 0))
            return true;
    return false;
}

/* A name for the kernel that means nothing yet, neither there nor in the program. */
const char *group_own_name(struct group *g, const char *name, const char *end)
{
    const char *free = arena_printf(g->b->a, "%s%s", name, end);
    for (unsigned k = 2; is_param(g, free) || find_variable(g->b, free) ||
                         lang_find(&g->b->block->scope, free) || find_local(g, free);
         k++)
        free = arena_printf(g->b->a, "%s%s%u", name, end, k);
    return free;
}

static struct access *reach(struct group *g, const struct part *p)
{
    struct access *a = find_access(g, p->var->name, p->prefix);
    if (a)
        return a;
    a = ARENA_NEW(g->b->a, struct access);
    *a =
        (struct access){.var = p->var, .prefix = p->prefix, .fixed = p->fixed, .nfixed = p->nfixed};
    a->param = p->nfixed ? group_own_name(g, p->var->name, "_part") : p->var->name;
    *VEC_PUSH(g->b->a, &g->access) = a;
    return a;
}

static void take_reads(struct group *g, const struct said *s)
{
    for (size_t i = 0; i < s->part.n; i++) {
        struct access *a = reach(g, &s->part.v[i]);
        if (!a->written)
            a->read = true;
        else if (!a->next)
            a->next = group_own_name(g, a->param, "_next");
    }
    for (size_t i = 0; i < s->numbers.n; i++) {
        bool has = false;
        for (size_t k = 0; k < g->scalars.n; k++)
            has |= g->scalars.v[k] == s->numbers.v[i];
        if (!has)
            *VEC_PUSH(g->b->a, &g->scalars) = s->numbers.v[i];
    }
}

static bool check_target(struct group *g, const struct lang_equation_step *e,
                         const struct variable *to, uint32_t nfixed)
{
    if (!to)
        return nfixed == 0 || diag_error(g->b->d, e->name_span,
                                         "there is no buffer '%s' to assign a part of", e->name);
    if (to->sym->mode == MODE_IN)
        return diag_error(g->b->d, e->name_span, "'%s' is an input of the program", e->name);
    return e->nleft == to->sym->rank ||
           diag_error(g->b->d, e->name_span, "'%s' has %u dimension%s, not %u", e->name,
                      (unsigned)to->sym->rank, to->sym->rank == 1 ? "" : "s", (unsigned)e->nleft);
}

/* Takes the equation into the group; *done is false when it is for the next one. */
bool group_take(struct group *g, const struct lang_step *step, bool *done)
{
    const struct lang_equation_step *e = &step->equation;
    struct said said = {.g = g};
    struct variable *to = find_variable(g->b, e->name);
    struct equation q = {.step = step};
    struct lang_expr **fixed;
    if (!split_left(g, e, &q.nfixed) || !check_target(g, e, to, q.nfixed))
        return false;
    const char *prefix = left_prefix(g, e, q.nfixed, &fixed);
    find_said(&said, e);
    *done = g->v.n == 0 || fits(g, &said, e, prefix);
    if (!*done)
        return true;
    take_reads(g, &said);
    if (to) {
        q.to = reach(g, &(struct part){to, prefix, fixed, q.nfixed});
        q.to->written = true;
        q.to->by = e;
    } else if (lang_find(&g->b->block->scope, e->name)) {
        return diag_error(g->b->d, e->name_span, "'%s' is a number already", e->name);
    } else {
        *VEC_PUSH(g->b->a, &g->locals) = (struct local){.name = e->name, .span = e->name_span};
    }
    *VEC_PUSH(g->b->a, &g->v) = q;
    return true;
}

/* ---- numbers that shapes say ----------------------------------------------------------------- */

static bool is_extent(struct lang_expr *const *extent, uint32_t n, const struct lang_symbol *dim)
{
    for (uint32_t i = 0; i < n; i++)
        if (extent[i]->kind == E_NAME && extent[i]->sym == dim)
            return true;
    return false;
}

/* Is the dimension an extent by itself, so that a buffer says it? */
static bool is_said(const struct group *g, const struct lang_symbol *dim)
{
    for (size_t i = 0; i < g->access.n; i++) {
        const struct access *a = g->access.v[i];
        const struct lang_symbol *sym = a->var->sym;
        if (a->nfixed < sym->rank && is_extent(sym->dims + a->nfixed, sym->rank - a->nfixed, dim))
            return true;
    }
    for (size_t i = 0; i < g->locals.n; i++)
        if (g->locals.v[i].escapes &&
            is_extent(g->locals.v[i].shape.dim, g->locals.v[i].shape.rank, dim))
            return true;
    return false;
}

static bool all_said(const struct group *g, const struct lang_expr *e)
{
    if (e->kind == E_NAME && e->sym && e->sym->kind == SYM_DIM)
        return e->sym->has_value || is_said(g, e->sym);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!all_said(g, e->args[i]))
            return false;
    return e->kind != E_NAME; /* a scalar is no part of an extent */
}

const char *group_range_text(struct group *g, const struct lang_expr *e)
{
    const char *text = lang_expr_text(g->b->a, e);
    for (size_t i = 0; i < g->extents.n; i++)
        if (strcmp(g->extents.v[i].text, text) == 0)
            return g->extents.v[i].name;
    return text;
}

static const char *extent_text(struct group *g, struct lang_expr *e)
{
    const char *text = lang_expr_text(g->b->a, e), *name = group_range_text(g, e);
    if (e->kind == E_NAME || e->kind == E_INT || strcmp(name, text) != 0 || all_said(g, e))
        return name;
    struct extent *x = VEC_PUSH(g->b->a, &g->extents);
    *x = (struct extent){e, text, NULL};
    x->name = group_own_name(g, "extent",
                             g->extents.n > 1 ? arena_printf(g->b->a, "_%zu", g->extents.n) : "");
    return x->name;
}

const char *group_shape_text(struct group *g, const struct shape *s)
{
    struct buf text = buf_in(g->b->a);
    buf_printf(&text, "%s[", dtype_name(s->type));
    for (uint32_t i = 0; i < s->rank; i++)
        buf_printf(&text, "%s%s", i ? ", " : "", extent_text(g, s->dim[i]));
    buf_putc(&text, ']');
    return buf_text(&text);
}

static struct lang_expr *extent_of(void *ctx, const struct lang_symbol *sym)
{
    const struct group *g = ctx;
    for (size_t i = 0; i < g->extents.n; i++)
        if (strcmp(g->extents.v[i].name, sym->name) == 0)
            return g->extents.v[i].e;
    return NULL;
}

struct lang_expr *group_extent(struct group *g, const struct lang_expr *e, struct span at)
{
    return expr_replace(g->b, e, extent_of, g, at);
}

void group_settle_numbers(struct group *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->scalars.n; i++)
        if (g->scalars.v[i]->kind != SYM_DIM || !is_said(g, g->scalars.v[i]))
            g->scalars.v[n++] = g->scalars.v[i];
    g->scalars.n = n;
}
