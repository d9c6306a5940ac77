/* The kernel that a group is: its text read as a spec, the temps that it makes, its call. */
#include <config.h>

#include "program/group.h"

static const struct lang_symbol *tensor_of(const struct spec *s, const char *name)
{
    for (size_t i = 0; i < s->compute.n; i++)
        if (strcmp(s->compute.v[i]->sym->name, name) == 0)
            return s->compute.v[i]->sym;
    return NULL;
}

/* ---- messages about the kernel's text, as messages about the program's ----------------------- */

static struct span line_of(const struct source *src, size_t line)
{
    const char *at = src->text, *end = src->text + src->len;
    for (; line > 1 && at < end; line--) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        at = eol ? eol + 1 : end;
    }
    const char *eol = memchr(at, '\n', (size_t)(end - at));
    return (struct span){src, (size_t)(at - src->text), (size_t)((eol ? eol : end) - at)};
}

/* The equation that stands in that line, or else the first. */
static struct span equation_at(const struct group *g, size_t line)
{
    struct span found = g->v.v[0].step->span;
    for (size_t i = 0; i < g->v.n; i++)
        if (span_line_col(g->v.v[i].step->span).line <= line)
            found = g->v.v[i].step->span;
    return found;
}

/* A place in a line that is as it was is the same place; another is the whole equation. */
static struct span place_of(const struct group *g, struct span s)
{
    const size_t line = span_line_col(s).line;
    const struct span now = line_of(s.src, line), then = line_of(g->b->spec->src, line);
    const size_t shift = s.off - now.off;
    const struct span first = g->v.v[0].step->span;
    const char *was = then.src->text + then.off;
    if (line < span_line_col(first).line || now.len != then.len ||
        memcmp(s.src->text + now.off, was, now.len) != 0)
        return equation_at(g, line);
    return (struct span){then.src, then.off + shift, s.len};
}

static void tell(const struct group *g, const struct source *text, struct diags *own,
                 struct diags *d)
{
    for (size_t i = 0; i < own->list.n; i++)
        if (own->list.v[i].span.src == text)
            own->list.v[i].span = place_of(g, own->list.v[i].span);
    diags_append(d, own);
}

struct spec *group_read(struct group *g, const char *name, bool sink, struct diags *d)
{
    const struct source *text = group_text(g, name, sink);
    struct diags *own = diags_new(g->b->a);
    VEC(struct spec_define) defines = {0};
    for (size_t i = 0; i < g->b->spec->dims.n; i++) {
        const struct lang_symbol *dim = g->b->spec->dims.v[i];
        if (dim->has_value)
            *VEC_PUSH(g->b->a, &defines) = (struct spec_define){dim->name, dim->value, DT_VOID};
    }
    struct spec *s = spec_read_one(g->b->a, text, name, defines.v, defines.n, own);
    tell(g, text, own, d);
    return s;
}

/* What the names that live on are, as the kernel says it. */
bool group_shapes(struct group *g, const char *name)
{
    bool any = false;
    struct diags *own = diags_new(g->b->a);
    for (size_t i = 0; i < g->locals.n; i++)
        any |= g->locals.v[i].escapes;
    if (!any)
        return true;
    const struct spec *s = group_read(g, name, true, own);
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
            if (!(l->shape.dim[k] = group_extent(g, sym->dims[k], l->span)))
                return false;
    }
    group_settle_numbers(g);
    return true;
}

/* Does nothing that is left of it last? */
bool group_is_dead(const struct group *g)
{
    for (size_t i = 0; i < g->access.n; i++)
        if (g->access.v[i]->written)
            return false;
    for (size_t i = 0; i < g->locals.n; i++)
        if (g->locals.v[i].escapes)
            return false;
    return true;
}

/* Such equations are no kernel, but what is wrong with them is said. */
bool group_check(struct group *g)
{
    return group_read(g, group_name(g), true, g->b->d) != NULL;
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
bool group_check_stores(struct group *g, const char *name)
{
    struct diags *own = diags_new(g->b->a);
    bool any = false;
    for (size_t i = 0; i < g->access.n; i++)
        any |= g->access.v[i]->next != NULL;
    if (!any)
        return true;
    g->plain = true;
    const bool good = group_read(g, name, false, own) != NULL;
    g->plain = false;
    if (!good)
        diags_append(g->b->d, own);
    return good;
}

void group_escapes(struct group *g, struct lang_step *const *rest, uint32_t n)
{
    for (size_t i = 0; i < g->locals.n; i++)
        for (uint32_t k = 0; k < n && !g->locals.v[i].escapes; k++)
            g->locals.v[i].escapes = step_says(rest[k], g->locals.v[i].name);
}

const char *group_name(const struct group *g)
{
    return arena_printf(g->b->a, "%s_line%zu", g->b->spec->name,
                        span_line_col(g->v.v[0].step->span).line);
}

/* The kernel that the group is, and its call. */
bool group_finish(struct group *g, struct lang_call_step *out)
{
    const char *name = take_name(g->b, group_name(g));
    struct spec *s = group_read(g, name, false, g->b->d);
    if (!s || !make_temps(g))
        return false;
    add_kernel(g->b, s, g->v.v[0].step->span);
    write_call(g, s, out);
    return true;
}
