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

/* ---- one equation -------------------------------------------------------------------------------
 */

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

static void note_number(struct said *s, const struct lang_symbol *sym)
{
    for (size_t i = 0; i < s->numbers.n; i++)
        if (s->numbers.v[i] == sym)
            return;
    *VEC_PUSH(s->g->b->a, &s->numbers) = sym;
}

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
        note_number(s, sym);
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

/* ---- what fits in a group
 * ------------------------------------------------------------------------ */

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
static const char *own_name(struct group *g, const char *name, const char *end)
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
    a->param = p->nfixed ? own_name(g, p->var->name, "_part") : p->var->name;
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
            a->next = own_name(g, a->param, "_next");
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
static bool take(struct group *g, const struct lang_step *step, bool *done)
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

/* ---- numbers that shapes say
 * --------------------------------------------------------------------- */

static bool shape_says(const struct lang_symbol *sym, uint32_t from, const struct lang_symbol *dim)
{
    for (uint32_t i = from; i < sym->rank; i++)
        if (sym->dims[i]->kind == E_NAME && sym->dims[i]->sym == dim)
            return true;
    return false;
}

/* A dimension that is an extent of a buffer is one of the kernel's; another is a number to it. */
static void drop_said_dims(struct group *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->scalars.n; i++) {
        const struct lang_symbol *sym = g->scalars.v[i];
        bool said = false;
        for (size_t k = 0; k < g->access.n && sym->kind == SYM_DIM; k++)
            said |= shape_says(g->access.v[k]->var->sym, g->access.v[k]->nfixed, sym);
        if (!said)
            g->scalars.v[n++] = sym;
    }
    g->scalars.n = n;
}

/* ---- the kernel
 * ----------------------------------------------------------------------------------- */

static const struct lang_symbol *tensor_of(const struct spec *s, const char *name)
{
    for (size_t i = 0; i < s->compute.n; i++)
        if (strcmp(s->compute.v[i]->sym->name, name) == 0)
            return s->compute.v[i]->sym;
    return NULL;
}

static struct spec *read_text(struct group *g, const char *name, bool sink, struct diags *d)
{
    const struct source *text = group_text(g, name, sink);
    VEC(struct spec_define) defines = {0};
    for (size_t i = 0; i < g->b->spec->dims.n; i++) {
        const struct lang_symbol *dim = g->b->spec->dims.v[i];
        if (dim->has_value)
            *VEC_PUSH(g->b->a, &defines) = (struct spec_define){dim->name, dim->value, DT_VOID};
    }
    return spec_read_one(g->b->a, text, name, defines.v, defines.n, d);
}

/* What the names that live on are, as the kernel says it. */
static bool find_shapes(struct group *g, const char *name)
{
    bool any = false;
    struct diags *own = diags_new(g->b->a);
    for (size_t i = 0; i < g->locals.n; i++)
        any |= g->locals.v[i].escapes;
    if (!any)
        return true;
    const struct spec *s = read_text(g, name, true, own);
    if (!s) {
        diags_append(g->b->d, own);
        return false;
    }
    for (size_t i = 0; i < g->locals.n; i++) {
        struct local *l = &g->locals.v[i];
        const struct lang_symbol *sym = tensor_of(s, l->name);
        l->escapes = l->escapes && sym;
        if (!l->escapes)
            continue;
        l->shape = (struct shape){.type = sym->type, .rank = sym->rank};
        for (uint32_t k = 0; k < sym->rank; k++)
            if (!(l->shape.dim[k] =
                      expr_of_text(g->b, lang_expr_text(g->b->a, sym->dims[k]), l->span)))
                return false;
    }
    return true;
}

static bool make_temps(struct group *g)
{
    for (size_t i = 0; i < g->locals.n; i++) {
        struct local *l = &g->locals.v[i];
        if (l->escapes && !(l->var = add_temp(g->b, l->name, l->span, &l->shape)))
            return false;
    }
    return true;
}

static struct lang_view *part_view(struct group *g, const struct access *a)
{
    struct lang_view *v = ARENA_NEW(g->b->a, struct lang_view);
    *v = (struct lang_view){.name = a->var->unique, .nsub = a->nfixed};
    v->sub = ARENA_ARRAY(g->b->a, a->nfixed, struct lang_subscript);
    for (uint32_t i = 0; i < a->nfixed; i++)
        v->sub[i].at = a->fixed[i];
    return v;
}

static struct lang_argument *next_argument(struct lang_call_step *call, const char *name)
{
    struct lang_argument *arg = &call->arg[call->narg++];
    *arg = (struct lang_argument){.name = name};
    return arg;
}

static void write_call(struct group *g, const struct spec *s, struct lang_call_step *out)
{
    struct arena *a = g->b->a;
    *out = (struct lang_call_step){.kernel = s->name};
    out->arg = ARENA_ARRAY(a, g->access.n + g->locals.n + g->scalars.n, struct lang_argument);
    for (size_t i = 0; i < g->access.n; i++)
        next_argument(out, g->access.v[i]->param)->view = part_view(g, g->access.v[i]);
    for (size_t i = 0; i < g->locals.n; i++) {
        const struct local *l = &g->locals.v[i];
        struct lang_view *v = ARENA_NEW(a, struct lang_view);
        if (!l->var)
            continue;
        v->name = l->var->unique;
        next_argument(out, l->name)->view = v;
    }
    for (size_t i = 0; i < g->scalars.n; i++) {
        struct lang_expr *e = ARENA_NEW(a, struct lang_expr);
        *e = (struct lang_expr){.kind = E_NAME, .name = g->scalars.v[i]->name};
        next_argument(out, g->scalars.v[i]->name)->value = e;
    }
}

/* What an equation assigns must have the buffer's type, also where the kernel stores it in the end
 * only. */
static bool check_stores(struct group *g, const char *name)
{
    struct diags *own = diags_new(g->b->a);
    bool any = false;
    for (size_t i = 0; i < g->access.n; i++)
        any |= g->access.v[i]->next != NULL;
    if (!any)
        return true;
    g->plain = true;
    const bool good = read_text(g, name, false, own) != NULL;
    g->plain = false;
    if (!good)
        diags_append(g->b->d, own);
    return good;
}

static void find_escapes(struct group *g, struct lang_step *const *rest, uint32_t n)
{
    for (size_t i = 0; i < g->locals.n; i++)
        for (uint32_t k = 0; k < n && !g->locals.v[i].escapes; k++)
            g->locals.v[i].escapes = step_says(rest[k], g->locals.v[i].name);
}

static const char *group_name(const struct group *g)
{
    return arena_printf(g->b->a, "%s_line%zu", g->b->spec->name,
                        span_line_col(g->v.v[0].step->span).line);
}

/* The kernel that the group is, and its call. */
static bool finish(struct group *g, struct lang_call_step *out)
{
    const char *name = take_name(g->b, group_name(g));
    struct spec *s = read_text(g, name, false, g->b->d);
    if (!s || !make_temps(g))
        return false;
    add_kernel(g->b, s, g->v.v[0].step->span);
    write_call(g, s, out);
    return true;
}

/* ---- how many equations are one kernel
 * ------------------------------------------------------------ */

/* The first equations of v, as many as fit but at most n; rest: those behind them. */
static bool gather(struct builder *b, struct lang_step *const *v, uint32_t n, struct group *g)
{
    bool fits = true;
    *g = (struct group){.b = b};
    for (uint32_t i = 0; i < n && fits; i++)
        if (!take(g, v[i], &fits))
            return false;
    drop_said_dims(g);
    return true;
}

/* The last equation but the first that changes what others of the group have read. */
static uint32_t last_update(const struct group *g)
{
    uint32_t k = (uint32_t)g->v.n - 1;
    while (k > 0 && !(g->v.v[k].to && g->v.v[k].to->read))
        k--;
    return k;
}

/* Can it be compiled? Only what changes buffers in place may be refused. */
static bool compiles(struct group *g)
{
    const struct program_options *opt = g->b->opt;
    const uint32_t k = last_update(g);
    if (!opt->compiles || k == 0)
        return true;
    struct spec *s = read_text(g, group_name(g), false, diags_new(g->b->a));
    return !s || opt->compiles(opt->ctx, s);
}

/* The largest group that v begins with. */
static bool settle(struct builder *b, struct lang_step *const *v, uint32_t n,
                   struct lang_step *const *rest, uint32_t nrest, struct group *g)
{
    for (uint32_t most = n;; most = last_update(g)) {
        if (!gather(b, v, most, g))
            return false;
        find_escapes(g, v + g->v.n, n - (uint32_t)g->v.n);
        find_escapes(g, rest, nrest);
        if (!find_shapes(g, group_name(g)) || !check_stores(g, group_name(g)))
            return false;
        if (compiles(g))
            return true;
    }
}

bool build_group(struct builder *b, struct lang_step *const *v, uint32_t n,
                 struct lang_step *const *rest, uint32_t nrest, step_list *out)
{
    struct group g;
    for (uint32_t i = 0; i < n; i += (uint32_t)g.v.n) {
        struct lang_call_step call;
        if (!settle(b, v + i, n - i, rest, nrest, &g) || !finish(&g, &call))
            return false;
        *VEC_PUSH(b->a, out) = call_step(b, &call, v[i]->span);
    }
    return true;
}

bool build_asked(struct builder *b, struct lang_expr *cond, struct span at,
                 struct lang_call_step *out)
{
    struct lang_step *s = ARENA_NEW(b->a, struct lang_step);
    struct group g = {.b = b};
    *s = (struct lang_step){.kind = STEP_EQUATION, .span = at};
    s->equation = (struct lang_equation_step){
        .name = own_name(&g, "go", ""), .name_span = at, .rhs = cond, .rhs_span = at};
    if (!gather(b, &s, 1, &g))
        return false;
    g.asks = true;
    g.locals.v[0].escapes = true;
    return find_shapes(&g, group_name(&g)) && finish(&g, out);
}
