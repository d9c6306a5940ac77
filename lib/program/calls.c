/* A call: which types and dimensions its kernel has here, and what its results are. */
#include <config.h>

#include "program/program_int.h"

/* What is known of the kernel's parameter: the buffer or number that it gets. */
struct actual {
    const struct lang_argument *arg; /* as it is written; NULL: a result, or nothing */
    const struct lang_view *view;    /* of a buffer, also of a result; NULL: not known yet */
    struct variable *var;            /* of the view; NULL: a result that has no buffer yet */
    struct shape shape;              /* of the view, when there is a var */
    struct lang_expr *value;         /* a number */
};

struct bound { /* a dimension of the kernel */
    const struct lang_symbol *dim;
    struct lang_expr *value; /* over the program's; NULL: not known yet */
    const char *from;        /* whose extent it was */
};

struct call {
    struct builder *b;
    const struct lang_call_step *text;
    struct span at;
    struct use use;
    define_list defines;
    struct spec *spec;
    struct actual *actual; /* by the spec's parameters */
    struct bound *bound;   /* by its dimensions, then the derived ones */
    size_t nbound;
};

static bool is_buffer(const struct spec_param *p)
{
    return p->sym->kind == SYM_BUFFER;
}

/* ---- which argument is whose ----------------------------------------------------------------- */

static size_t find_param(const struct spec *s, const char *name)
{
    size_t i = 0;
    while (i < s->params.n && strcmp(s->params.v[i].sym->name, name) != 0)
        i++;
    return i;
}

static struct bound *find_bound(struct call *c, const char *name)
{
    for (size_t i = 0; i < c->nbound; i++)
        if (strcmp(c->bound[i].dim->name, name) == 0)
            return &c->bound[i];
    return NULL;
}

static bool unknown_argument(struct call *c, const struct lang_argument *arg)
{
    VEC(const char *) names = {0};
    struct buf list = buf_in(c->b->a);
    for (size_t i = 0; i < c->spec->params.n; i++) {
        *VEC_PUSH(c->b->a, &names) = c->spec->params.v[i].sym->name;
        buf_printf(&list, "%s%s", i ? ", " : "", names.v[i]);
    }
    *VEC_PUSH(c->b->a, &names) = NULL;
    const char *near = diag_nearest(arg->name, strlen(arg->name), names.v);
    if (near)
        return diag_error(c->b->d, arg->name_span, "'%s' has no parameter '%s'; did you mean '%s'?",
                          c->use.name, arg->name, near);
    return diag_error(c->b->d, arg->name_span, "'%s' has no parameter '%s'; it has %s", c->use.name,
                      arg->name, buf_text(&list));
}

static bool place_argument(struct call *c, const struct lang_argument *arg)
{
    const size_t i = find_param(c->spec, arg->name);
    if (i == c->spec->params.n)
        return find_bound(c, arg->name) || unknown_argument(c, arg);
    if (c->actual[i].arg)
        return diag_error(c->b->d, arg->name_span, "'%s' is given twice", arg->name);
    c->actual[i].arg = arg;
    c->actual[i].view = arg->view;
    if (is_buffer(&c->spec->params.v[i]) && !arg->view)
        return diag_error(c->b->d, arg->value->span, "'%s' of '%s' is a buffer, not a number",
                          arg->name, c->use.name);
    return true;
}

/* The next output without a place, for a result in front of the '='. */
static bool place_target(struct call *c, const struct lang_view *v, size_t *next)
{
    while (*next < c->spec->params.n &&
           !(is_buffer(&c->spec->params.v[*next]) &&
             c->spec->params.v[*next].sym->mode == MODE_OUT && !c->actual[*next].view))
        ++*next;
    if (*next < c->spec->params.n) {
        c->actual[*next].view = v;
        return true;
    }
    return diag_error(c->b->d, v->span, "'%s' has no %soutput for '%s'", c->use.name,
                      c->text->ntarget > 1 ? "other " : "", v->name);
}

static bool place_all(struct call *c)
{
    bool good = true;
    size_t next = 0;
    c->actual = ARENA_ARRAY(c->b->a, c->spec->params.n, struct actual);
    for (uint32_t i = 0; i < c->text->narg; i++)
        good &= place_argument(c, &c->text->arg[i]);
    for (uint32_t i = 0; i < c->text->ntarget && good; i++)
        good &= place_target(c, c->text->target[i], &next);
    return good;
}

static void list_dims(struct call *c)
{
    const struct spec *s = c->spec;
    c->nbound = s->dims.n;
    c->bound = ARENA_ARRAY(c->b->a, c->nbound, struct bound);
    for (size_t i = 0; i < s->dims.n; i++)
        c->bound[i].dim = s->dims.v[i];
}

/* ---- types ----------------------------------------------------------------------------------- */

/* "in T[n, k]" -> the spec's T; NULL: another type. */
static const struct spec_type *type_of_decl(const struct spec *s, const struct spec_param *p)
{
    for (size_t i = 0; i < s->types.n; i++) {
        const char *name = s->types.v[i].name, *at = p->decl;
        const size_t n = strlen(name), mode = strcspn(at, " \t");
        if (strncmp(at, "in", mode) == 0 || strncmp(at, "out", mode) == 0 ||
            strncmp(at, "inout", mode) == 0)
            at += mode + strspn(at + mode, " \t");
        if (strncmp(at, name, n) == 0 && strcspn(at, "[ \t") == n)
            return &s->types.v[i];
    }
    return NULL;
}

static bool is_defined(const define_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].name, name) == 0)
            return true;
    return false;
}

/* A type of the kernel that a buffer says. */
static bool choose_type(struct call *c, size_t i)
{
    const struct actual *a = &c->actual[i];
    const struct spec_type *t = type_of_decl(c->spec, &c->spec->params.v[i]);
    const struct variable *var = a->view ? find_variable(c->b, a->view->name) : NULL;
    if (!t || !var || is_defined(&c->defines, t->name))
        return true;
    if (!spec_type_allows(t, var->sym->type))
        return diag_error(c->b->d, a->view->span, "'%s' is %s, and '%s' of '%s' is %s",
                          a->view->name, dtype_name(var->sym->type), c->spec->params.v[i].sym->name,
                          c->use.name, spec_type_text(c->b->a, t));
    *VEC_PUSH(c->b->a, &c->defines) = (struct spec_define){t->name, 0, var->sym->type};
    return true;
}

/* Reads the kernel again with what is defined by now. */
static bool reread(struct call *c)
{
    c->spec = read_kernel(c->b, &c->use, &c->defines, c->at);
    if (!c->spec)
        return false;
    list_dims(c);
    return place_all(c);
}

static bool choose_types(struct call *c)
{
    const size_t before = c->defines.n;
    for (size_t i = 0; i < c->spec->params.n; i++)
        if (is_buffer(&c->spec->params.v[i]) && !choose_type(c, i))
            return false;
    return c->defines.n == before || reread(c);
}

/* ---- dimensions ------------------------------------------------------------------------------ */

/* The value of a name of the kernel, for expr_replace(). */
static struct lang_expr *known(void *ctx, const struct lang_symbol *sym)
{
    struct call *c = ctx;
    for (size_t i = 0; i < c->nbound; i++)
        if (c->bound[i].dim == sym)
            return c->bound[i].value;
    if (sym->of)
        return expr_replace(c->b, sym->of, known, c, c->at);
    if (sym->kind == SYM_SCALAR && sym->id < c->spec->params.n) {
        const struct actual *a = &c->actual[sym->id];
        return a->value ? a->value : c->spec->params.v[sym->id].value;
    }
    return NULL;
}

/* Has every dimension in it a value? */
static bool is_known(struct call *c, const struct lang_expr *e)
{
    if (e->kind == E_NAME && e->sym && e->sym->kind == SYM_DIM) {
        if (e->sym->of)
            return is_known(c, e->sym->of);
        const struct bound *one = find_bound(c, e->sym->name);
        return one && one->value;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_known(c, e->args[i]))
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
               ? find_bound(c, extent->sym->name)
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
    if (!is_known(c, extent))
        return true; /* later */
    const struct lang_expr *want = expr_replace(c->b, extent, known, c, c->at);
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
    const bool left = !is_known(c, e->args[0]), right = !is_known(c, e->args[1]);
    if (left == right)
        return false;
    const struct lang_expr *rest = expr_replace(c->b, e->args[left ? 1 : 0], known, c, c->at);
    struct lang_expr *value = rest ? inverse(c, e->op, left, has, rest) : NULL;
    return value && solve(c, e->args[left ? 0 : 1], value);
}

static bool has_shape(const struct call *c, size_t i)
{
    return is_buffer(&c->spec->params.v[i]) && c->actual[i].var;
}

static void solve_all(struct call *c)
{
    bool progress = true;
    while (progress) {
        progress = false;
        for (size_t i = 0; i < c->spec->params.n; i++)
            for (uint32_t k = 0; has_shape(c, i) && k < c->spec->params.v[i].sym->rank; k++) {
                const struct lang_expr *e = c->spec->params.v[i].sym->dims[k];
                if (!is_known(c, e))
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
        struct bound *one =
            find_param(c->spec, arg->name) == c->spec->params.n ? find_bound(c, arg->name) : NULL;
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

static bool bind_dims(struct call *c)
{
    take_fixed_dims(c);
    if (!read_given_dims(c) || !match_all(c))
        return false;
    solve_all(c);
    return match_all(c);
}

/* Dimensions that are known numbers are the kernel's own: it is compiled for them. */
static bool fix_dims(struct call *c)
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

/* ---- arguments ------------------------------------------------------------------------------- */

static bool read_buffer(struct call *c, size_t i)
{
    struct actual *a = &c->actual[i];
    const struct lang_symbol *sym = c->spec->params.v[i].sym;
    const bool result = sym->mode == MODE_OUT;
    if (!a->view)
        return result ||
               diag_error(c->b->d, c->at, "'%s' of '%s' is not given", sym->name, c->use.name);
    a->var = result && !a->view->nsub ? find_variable(c->b, a->view->name)
                                      : need_variable(c->b, a->view->name, a->view->span);
    if (!a->var) /* a new one */
        return result && !a->view->nsub &&
               (!a->view->is_shaped ||
                diag_error(c->b->d, a->view->span, "'%s' has no shape yet", a->view->name));
    if (!shape_of_view(c->b, a->view, a->var, &a->shape))
        return false;
    if (sym->mode != MODE_IN && a->var->sym->mode == MODE_IN)
        return diag_error(c->b->d, a->view->span,
                          "'%s' is an input of the program, and '%s' of '%s' is written",
                          a->view->name, sym->name, c->use.name);
    if (a->shape.type != sym->type)
        return diag_error(c->b->d, a->view->span, "'%s' is %s, and '%s' of '%s' is %s",
                          a->view->name, dtype_name(a->shape.type), sym->name, c->use.name,
                          dtype_name(sym->type));
    if (a->shape.rank != sym->rank)
        return diag_error(c->b->d, a->view->span,
                          "'%s' is %s here, and '%s' of '%s' has %u dimension%s", a->view->name,
                          shape_text(c->b, &a->shape), sym->name, c->use.name, (unsigned)sym->rank,
                          sym->rank == 1 ? "" : "s");
    return true;
}

static bool read_number(struct call *c, size_t i)
{
    static const struct lang_options options = {.exact = true, .index_is_i64 = true};
    struct actual *a = &c->actual[i];
    const struct spec_param *p = &c->spec->params.v[i];
    if (!a->arg)
        return p->value ||
               diag_error(c->b->d, c->at, "'%s' of '%s' is not given", p->sym->name, c->use.name);
    const struct span text = a->arg->view ? a->arg->view->span : a->arg->value->span;
    if (a->arg->view && find_variable(c->b, a->arg->view->name))
        return diag_error(c->b->d, text,
                          "'%s' of '%s' is a number, and '%s' is a buffer: what is in it is known "
                          "only when the program runs",
                          p->sym->name, c->use.name, a->arg->view->name);
    struct lang_expr *e = lang_parse_expr(c->b->a, text, &c->b->spec->names, c->b->d);
    if (!e || !lang_check_expr(c->b->a, &c->b->block->scope, &options, e, DT_VOID, c->b->d))
        return false;
    if (dtype_is_float(e->type) && !dtype_is_float(p->sym->type))
        return diag_error(c->b->d, e->span, "'%s' of '%s' is %s, and this is %s", p->sym->name,
                          c->use.name, dtype_name(p->sym->type), dtype_name(e->type));
    a->value = e;
    return true;
}

static bool read_actuals(struct call *c)
{
    bool good = true;
    for (size_t i = 0; i < c->spec->params.n; i++)
        good &= is_buffer(&c->spec->params.v[i]) ? read_buffer(c, i) : read_number(c, i);
    return good;
}

/* ---- results --------------------------------------------------------------------------------- */

static bool result_shape(struct call *c, size_t i, struct shape *out)
{
    const struct lang_symbol *sym = c->spec->params.v[i].sym;
    *out = (struct shape){.type = sym->type, .rank = sym->rank};
    for (uint32_t k = 0; k < sym->rank; k++) {
        if (!is_known(c, sym->dims[k])) {
            struct buf decl = buf_in(c->b->a);
            lang_print_shape(sym, &decl);
            return diag_error(c->b->d, c->at,
                              "how large '%s' of '%s' is, %s%s, does not follow from the other "
                              "arguments; give the dimension, as in '%s: 10', or a buffer",
                              sym->name, c->use.name, dtype_name(sym->type), buf_text(&decl),
                              sym->dims[k]->kind == E_NAME ? sym->dims[k]->name : "n");
        }
        out->dim[k] = expr_replace(c->b, sym->dims[k], known, c, c->at);
        if (!out->dim[k])
            return false;
    }
    return true;
}

/* A temp for each output that has no buffer yet. */
static bool make_results(struct call *c)
{
    bool good = true;
    for (size_t i = 0; i < c->spec->params.n; i++) {
        struct actual *a = &c->actual[i];
        const struct spec_param *p = &c->spec->params.v[i];
        if (!is_buffer(p) || a->var)
            continue;
        const char *name = a->view ? a->view->name
                                   : arena_printf(c->b->a, "%s_%s", c->use.name, p->sym->name);
        if (a->view && lang_find(&c->b->block->scope, name))
            return diag_error(c->b->d, a->view->span, "'%s' is a number already", name);
        if (!result_shape(c, i, &a->shape))
            return false;
        a->var = add_temp(c->b, name, a->view ? a->view->span : c->at, &a->shape);
        good &= a->var != NULL;
    }
    return good;
}

/* ---- the call -------------------------------------------------------------------------------- */

static struct lang_view *named_view(struct builder *b, const struct variable *var,
                                    const struct lang_view *like)
{
    struct lang_view *v = ARENA_NEW(b->a, struct lang_view);
    if (like)
        *v = *like;
    v->name = var->unique;
    return v;
}

static void write_call(struct call *c, struct lang_call_step *out)
{
    *out = (struct lang_call_step){.kernel = c->spec->name, .kernel_span = c->at};
    out->arg = ARENA_ARRAY(c->b->a, c->spec->params.n, struct lang_argument);
    for (size_t i = 0; i < c->spec->params.n; i++) {
        const struct actual *a = &c->actual[i];
        struct lang_argument *arg = &out->arg[out->narg];
        *arg = (struct lang_argument){.name = c->spec->params.v[i].sym->name};
        if (a->var)
            arg->view = named_view(c->b, a->var, a->view);
        else if (a->value)
            arg->value = a->value;
        else
            continue;
        out->narg++;
    }
}

/* After the kernel was read for its dimensions, its symbols are others; the actuals are the same.
 */
static bool specialise(struct call *c)
{
    struct actual *actual = c->actual;
    if (fix_dims(c))
        return true;
    if (!reread(c))
        return false;
    c->actual = actual;
    return true;
}

static bool resolve(struct call *c)
{
    c->defines = (define_list){0};
    for (size_t i = 0; c->use.decl && i < c->use.decl->defines.n; i++)
        *VEC_PUSH(c->b->a, &c->defines) = c->use.decl->defines.v[i];
    return reread(c) && choose_types(c) && read_actuals(c) && bind_dims(c) && make_results(c) &&
           specialise(c);
}

static bool build(struct builder *b, const struct lang_call_step *text, struct span at,
                  struct lang_call_step *out)
{
    struct call c = {.b = b, .text = text, .at = at};
    if (!find_use(b, text->kernel, text->kernel_span, &c.use) || !resolve(&c))
        return false;
    c.spec = make_kernel(b, &c.use, c.spec, at);
    write_call(&c, out);
    return true;
}

struct lang_step *call_step(struct builder *b, const struct lang_call_step *call, struct span at)
{
    struct lang_step *s = ARENA_NEW(b->a, struct lang_step);
    *s = (struct lang_step){
        .kind = STEP_CALL, .span = at, .call = *call, .line = (uint32_t)span_line_col(at).line};
    return s;
}

bool build_call(struct builder *b, const struct lang_call_step *call, struct span at,
                step_list *out)
{
    struct lang_call_step made;
    if (!build(b, call, at, &made))
        return false;
    *VEC_PUSH(b->a, out) = call_step(b, &made, at);
    return true;
}

bool build_asked_call(struct builder *b, const struct lang_call_step *call, struct span at,
                      struct lang_call_step *out)
{
    const size_t temps = b->out->contract->temps.n;
    if (!build(b, call, at, out))
        return false;
    const struct lang_symbol *answer =
        b->out->contract->temps.n == temps + 1 ? b->out->contract->temps.v[temps].sym : NULL;
    if (answer && answer->type == DT_U32 && answer->rank == 0)
        return true;
    return diag_error(b->d, at,
                      "a condition is a kernel with one output, of u32[], or an expression, as in "
                      "'x[0] > 0'");
}
