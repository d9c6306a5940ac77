/* Which dimensions a call's kernel has: what the extents of its arguments say. */
#include <config.h>

#include "program/call.h"

size_t call_find_param(const struct spec *s, const char *name)
{
    size_t i = 0;
    while (i < s->params.n && strcmp(s->params.v[i].sym->name, name) != 0)
        i++;
    return i;
}

struct bound *call_find_bound(struct call *c, const char *name)
{
    for (size_t i = 0; i < c->nbound; i++)
        if (strcmp(c->bound[i].dim->name, name) == 0)
            return &c->bound[i];
    return NULL;
}

/* The value of a name of the kernel, for expr_replace(). */
struct lang_expr *call_known(void *ctx, const struct lang_symbol *sym)
{
    struct call *c = ctx;
    for (size_t i = 0; i < c->nbound; i++)
        if (c->bound[i].dim == sym)
            return c->bound[i].value;
    if (sym->of)
        return expr_replace(c->b, sym->of, call_known, c, c->at);
    if (sym->kind == SYM_SCALAR && sym->id < c->spec->params.n) {
        const struct actual *a = &c->actual[sym->id];
        return a->value ? a->value : c->spec->params.v[sym->id].value;
    }
    return NULL;
}

/* Has every dimension in it a value? */
bool call_is_known(struct call *c, const struct lang_expr *e)
{
    if (e->kind == E_NAME && e->sym && e->sym->kind == SYM_DIM) {
        if (e->sym->of)
            return call_is_known(c, e->sym->of);
        const struct bound *one = call_find_bound(c, e->sym->name);
        return one && one->value;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!call_is_known(c, e->args[i]))
            return false;
    return true;
}

static bool wrong_extent(struct call *c, size_t i, uint32_t k, const struct lang_expr *want)
{
    const struct actual *a = &c->actual[i];
    const struct lang_symbol *sym = c->spec->params.v[i].sym;
    struct buf decl = buf_in(c->b->a);
    buf_printf(&decl, "%s", dtype_name(sym->type));
    lang_print_shape(sym, &decl);
    diag_error(c->b->d, a->view->span,
               "'%s' is %s here, and '%s' of '%s' is %s: dimension %u is %s and must be %s",
               a->view->name, shape_text(c->b, &a->shape), sym->name, c->use.name, buf_text(&decl),
               (unsigned)k + 1, lang_expr_text(c->b->a, a->shape.dim[k]),
               lang_expr_text(c->b->a, want));
    return false;
}

/* The dimension that an extent is, when it is nothing else. */
static struct bound *plain_dim(struct call *c, const struct lang_expr *extent)
{
    return extent->kind == E_NAME && extent->sym && !extent->sym->of
               ? call_find_bound(c, extent->sym->name)
               : NULL;
}

/* One extent of a buffer that is given: it says its dimension, or must agree with what others say.
 * What can't be told apart here is compared at launch. */
static bool match_extent(struct call *c, size_t i, uint32_t k)
{
    struct lang_expr *has = c->actual[i].shape.dim[k];
    const struct lang_expr *extent = c->spec->params.v[i].sym->dims[k];
    struct bound *one = plain_dim(c, extent);
    if (one && !one->value) {
        one->value = has;
        one->from = c->actual[i].view->name;
        return true;
    }
    if (!call_is_known(c, extent))
        return true; /* later */
    const struct lang_expr *want = expr_replace(c->b, extent, call_known, c, c->at);
    if (!want)
        return false;
    return !expr_differ(has, want) || wrong_extent(c, i, k, want);
}

/* x for which "x + other" is has, and so on; left: x stands in front. NULL: not to be had so.
 * What was added or multiplied is taken away as it stands: of "n + k" and "k" that is "n". */
static struct lang_expr *inverse(struct call *c, enum lang_op op, bool left, struct lang_expr *has,
                                 const struct lang_expr *other)
{
    const char back = op == OP_MUL ? '/' : op == OP_ADD ? '-' : '+';
    if (op != OP_MUL && op != OP_ADD && (op != OP_SUB || !left))
        return NULL;
    while (has->kind == E_CAST && has->is_implicit)
        has = has->args[0];
    for (uint32_t i = 0; i < 2 && op != OP_SUB && has->kind == E_BINARY && has->op == op; i++)
        if (expr_equal(c->b, has->args[i], other))
            return has->args[1 - i];
    const char *text = arena_printf(c->b->a, "(%s) %c (%s)", lang_expr_text(c->b->a, has), back,
                                    lang_expr_text(c->b->a, other));
    return expr_of_text(c->b, text, c->at);
}

/* n of "2 * n", "n + 1" and the like, where the rest is known. */
static bool solve(struct call *c, const struct lang_expr *e, struct lang_expr *has)
{
    struct bound *one = plain_dim(c, e);
    if (one && !one->value) {
        one->value = has;
        return true;
    }
    if (e->kind == E_CAST)
        return solve(c, e->args[0], has);
    if (e->kind != E_BINARY)
        return false;
    const bool left = !call_is_known(c, e->args[0]), right = !call_is_known(c, e->args[1]);
    if (left == right)
        return false;
    const struct lang_expr *rest = expr_replace(c->b, e->args[left ? 1 : 0], call_known, c, c->at);
    struct lang_expr *value = rest ? inverse(c, e->op, left, has, rest) : NULL;
    return value && solve(c, e->args[left ? 0 : 1], value);
}

static bool has_shape(const struct call *c, size_t i)
{
    return call_is_buffer(&c->spec->params.v[i]) && c->actual[i].var;
}

static void solve_all(struct call *c)
{
    bool progress = true;
    while (progress) {
        progress = false;
        for (size_t i = 0; i < c->spec->params.n; i++)
            for (uint32_t k = 0; has_shape(c, i) && k < c->spec->params.v[i].sym->rank; k++) {
                const struct lang_expr *e = c->spec->params.v[i].sym->dims[k];
                if (!call_is_known(c, e))
                    progress |= solve(c, e, c->actual[i].shape.dim[k]);
            }
    }
}

static bool match_all(struct call *c)
{
    bool good = true;
    for (size_t i = 0; i < c->spec->params.n; i++)
        for (uint32_t k = 0; has_shape(c, i) && k < c->spec->params.v[i].sym->rank; k++)
            good &= match_extent(c, i, k);
    return good;
}

/* n: 10 among the arguments. */
static bool read_given_dims(struct call *c)
{
    bool good = true;
    for (uint32_t i = 0; i < c->text->narg; i++) {
        const struct lang_argument *arg = &c->text->arg[i];
        struct bound *one = call_find_param(c->spec, arg->name) == c->spec->params.n
                                ? call_find_bound(c, arg->name)
                                : NULL;
        if (!one)
            continue;
        const struct span text = arg->view ? arg->view->span : arg->value->span;
        struct lang_expr *e = lang_parse_expr(c->b->a, text, NULL, c->b->d);
        good &= e && expr_check(c->b, e);
        one->value = e;
        one->from = arg->name;
    }
    return good;
}

static void take_fixed_dims(struct call *c)
{
    for (size_t i = 0; i < c->nbound; i++)
        if (c->bound[i].dim->has_value)
            c->bound[i].value = expr_of_text(
                c->b, arena_printf(c->b->a, "%llu", (unsigned long long)c->bound[i].dim->value),
                c->at);
}

bool call_bind_dims(struct call *c)
{
    take_fixed_dims(c);
    if (!read_given_dims(c) || !match_all(c))
        return false;
    solve_all(c);
    return match_all(c);
}

/* Dimensions that are known numbers are the kernel's own: it is compiled for them. */
bool call_fix_dims(struct call *c)
{
    const size_t before = c->defines.n;
    for (size_t i = 0; i < c->nbound; i++) {
        int64_t n;
        const struct bound *one = &c->bound[i];
        if (!one->value || one->dim->has_value || !lang_const_int(one->value, &n) || n < 1 ||
            n > UINT32_MAX)
            continue;
        *VEC_PUSH(c->b->a, &c->defines) =
            (struct spec_define){one->dim->name, (uint64_t)n, DT_VOID};
    }
    return c->defines.n == before;
}
