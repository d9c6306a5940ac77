/* Types and extents of views, and the expressions that they are made of. */
#include <config.h>

#include "program/program_int.h"

static const struct lang_options integers = {.exact = true, .index_is_i64 = true};

bool expr_check(struct builder *b, struct lang_expr *e)
{
    if (!lang_check_expr(b->a, &b->block->scope, &integers, e, DT_VOID, b->d))
        return false;
    return dtype_is_int(e->type) ||
           diag_error(b->d, e->span, "an integer is needed here, not %s", dtype_name(e->type));
}

struct lang_expr *expr_of_text(struct builder *b, const char *text, struct span at)
{
    struct diags *own = diags_new(b->a);
    const struct source *src = source_new(b->a, "<extent>", text, strlen(text));
    struct lang_expr *e = lang_parse_expr(b->a, source_all(src), NULL, own);
    if (e && lang_check_expr(b->a, &b->block->scope, &integers, e, DT_VOID, own))
        return e;
    diag_error(b->d, at, "an extent here would be '%s', which means nothing to the program", text);
    return NULL;
}

static struct lang_expr *replaced(struct builder *b, const struct lang_expr *e, expr_of_name *of,
                                  void *ctx)
{
    struct lang_expr *with = e->kind == E_NAME && e->sym ? of(ctx, e->sym) : NULL;
    if (with)
        return with;
    struct lang_expr *copy = ARENA_NEW(b->a, struct lang_expr);
    *copy = *e;
    copy->args = ARENA_ARRAY(b->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++)
        copy->args[i] = replaced(b, e->args[i], of, ctx);
    return copy;
}

struct lang_expr *expr_replace(struct builder *b, const struct lang_expr *e, expr_of_name *of,
                               void *ctx, struct span at)
{
    return expr_of_text(b, lang_expr_text(b->a, replaced(b, e, of, ctx)), at);
}

static bool is_param(const struct builder *b, const struct lang_symbol *sym)
{
    return sym->id < b->spec->params.n && b->spec->params.v[sym->id].sym == sym;
}

const struct lang_symbol *expr_loop(const struct builder *b, const struct lang_expr *e)
{
    const struct lang_symbol *found = NULL;
    if (e->kind == E_NAME && e->sym && e->sym->kind == SYM_SCALAR && !is_param(b, e->sym))
        return e->sym;
    for (uint32_t i = 0; i < e->nargs && !found; i++)
        found = expr_loop(b, e->args[i]);
    return found;
}

bool expr_equal(struct builder *b, const struct lang_expr *x, const struct lang_expr *y)
{
    int64_t m, n;
    if (lang_const_int(x, &m) && lang_const_int(y, &n))
        return m == n;
    return strcmp(lang_expr_text(b->a, x), lang_expr_text(b->a, y)) == 0;
}

bool expr_differ(const struct lang_expr *x, const struct lang_expr *y)
{
    int64_t m, n;
    return lang_const_int(x, &m) && lang_const_int(y, &n) && m != n;
}

const char *shape_text(struct builder *b, const struct shape *s)
{
    struct buf text = buf_in(b->a);
    buf_printf(&text, "%s[", dtype_name(s->type));
    for (uint32_t i = 0; i < s->rank; i++)
        buf_printf(&text, "%s%s", i ? ", " : "", lang_expr_text(b->a, s->dim[i]));
    buf_putc(&text, ']');
    return buf_text(&text);
}

struct shape shape_of_symbol(const struct lang_symbol *sym)
{
    struct shape s = {.type = sym->type, .rank = sym->rank};
    for (uint32_t i = 0; i < sym->rank; i++)
        s.dim[i] = sym->dims[i];
    return s;
}

/* ---- views ----------------------------------------------------------------------------------- */

/* A constant subscript outside of a constant extent. */
static bool check_bounds(struct builder *b, const struct lang_view *v, uint32_t i,
                         const struct lang_expr *extent)
{
    const struct lang_subscript *s = &v->sub[i];
    int64_t n, at = 0, end = 0;
    const bool has_n = lang_const_int(extent, &n);
    const bool has_at = s->at && lang_const_int(s->at, &at);
    const bool has_end = s->end && lang_const_int(s->end, &end);
    if (has_at && (at < 0 || (has_n && at >= n + s->is_range)))
        return diag_error(b->d, s->at->span, "%lld is outside of '%s', which has %s there",
                          (long long)at, v->name, lang_expr_text(b->a, extent));
    if (has_end && has_n && end > n)
        return diag_error(b->d, s->end->span, "%lld is outside of '%s', which has %lld there",
                          (long long)end, v->name, (long long)n);
    if (has_end && end < at)
        return diag_error(b->d, s->end->span, "the range ends before it begins");
    return true;
}

static struct lang_expr *range_extent(struct builder *b, const struct lang_subscript *s,
                                      struct lang_expr *whole, struct span at)
{
    struct lang_expr *end = s->end ? s->end : whole;
    int64_t low = 0;
    if (!s->at || (lang_const_int(s->at, &low) && low == 0))
        return end;
    return expr_of_text(
        b,
        arena_printf(b->a, "(%s) - (%s)", lang_expr_text(b->a, end), lang_expr_text(b->a, s->at)),
        at);
}

static bool reshape(struct builder *b, const struct lang_view *v, struct shape *out)
{
    int64_t had = 1, has = 1, n;
    bool known = true;
    for (uint32_t i = 0; i < out->rank; i++) {
        known = known && lang_const_int(out->dim[i], &n);
        had *= known ? n : 1;
    }
    for (uint32_t i = 0; i < v->nextent; i++) {
        if (!expr_check(b, v->extent[i]))
            return false;
        known = known && lang_const_int(v->extent[i], &n);
        has *= known ? n : 1;
    }
    if (known && had != has)
        return diag_error(b->d, v->span, "%s has %lld elements, and as it is shaped here %lld",
                          v->name, (long long)had, (long long)has);
    out->rank = v->nextent;
    for (uint32_t i = 0; i < v->nextent; i++)
        out->dim[i] = v->extent[i];
    return true;
}

bool shape_of_view(struct builder *b, const struct lang_view *v, const struct variable *var,
                   struct shape *out)
{
    const struct shape whole = shape_of_symbol(var->sym);
    *out = (struct shape){.type = whole.type};
    if (v->nsub > whole.rank)
        return diag_error(b->d, v->span, "'%s' is %s and has no %u dimensions", v->name,
                          shape_text(b, &whole), (unsigned)v->nsub);
    for (uint32_t i = 0; i < v->nsub; i++) {
        const struct lang_subscript *s = &v->sub[i];
        if (i && v->sub[i - 1].is_range)
            return diag_error(b->d, v->span,
                              "only the last subscript of a view is a range: the elements of this "
                              "one do not follow each other; copy them by an equation");
        if ((s->at && !expr_check(b, s->at)) || (s->end && !expr_check(b, s->end)) ||
            !check_bounds(b, v, i, whole.dim[i]))
            return false;
        if (s->is_range && !(out->dim[out->rank++] = range_extent(b, s, whole.dim[i], v->span)))
            return false;
    }
    for (uint32_t i = v->nsub; i < whole.rank; i++)
        out->dim[out->rank++] = whole.dim[i];
    return !v->is_shaped || reshape(b, v, out);
}
