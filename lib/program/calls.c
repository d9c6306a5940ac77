/* A call: which types and dimensions its kernel has here, and what its results are. */
#include <config.h>

#include "program/call.h"

/* ---- which argument is whose ----------------------------------------------------------------- */

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
    const size_t i = call_find_param(c->spec, arg->name);
    if (i == c->spec->params.n)
        return call_find_bound(c, arg->name) || unknown_argument(c, arg);
    if (c->actual[i].arg)
        return diag_error(c->b->d, arg->name_span, "'%s' is given twice", arg->name);
    c->actual[i].arg = arg;
    c->actual[i].view = arg->view;
    if (call_is_buffer(&c->spec->params.v[i]) && !arg->view)
        return diag_error(c->b->d, arg->value->span, "'%s' of '%s' is a buffer, not a number",
                          arg->name, c->use.name);
    return true;
}

/* The next output without a place, for a result in front of the '='. */
static bool place_target(struct call *c, const struct lang_view *v, size_t *next)
{
    while (*next < c->spec->params.n &&
           !(call_is_buffer(&c->spec->params.v[*next]) &&
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
        if (call_is_buffer(&c->spec->params.v[i]) && !choose_type(c, i))
            return false;
    return c->defines.n == before || reread(c);
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

/* Are they surely parts of one buffer that have elements in common? */
static bool overlap(struct builder *b, const struct actual *x, const struct actual *y)
{
    struct buf one = buf_in(b->a), two = buf_in(b->a);
    if (!x->var || x->var != y->var)
        return false;
    if (x->view->nsub == 0 || y->view->nsub == 0)
        return true;
    lang_print_view(x->view, &one);
    lang_print_view(y->view, &two);
    return strcmp(buf_text(&one), buf_text(&two)) == 0;
}

static bool check_overlap(struct call *c)
{
    const struct spec_param *p = c->spec->params.v;
    for (size_t i = 0; i < c->spec->params.n; i++)
        for (size_t k = 0; k < i; k++)
            if (call_is_buffer(&p[i]) && call_is_buffer(&p[k]) &&
                (p[i].sym->mode != MODE_IN || p[k].sym->mode != MODE_IN) &&
                overlap(c->b, &c->actual[i], &c->actual[k]))
                return diag_error(
                    c->b->d, c->actual[i].view->span,
                    "'%s' is '%s' and '%s' of one call, which writes it; let it write "
                    "a new name, and copy that by an equation",
                    c->actual[i].view->name, p[k].sym->name, p[i].sym->name);
    return true;
}

static bool read_actuals(struct call *c)
{
    bool good = true;
    for (size_t i = 0; i < c->spec->params.n; i++)
        good &= call_is_buffer(&c->spec->params.v[i]) ? read_buffer(c, i) : read_number(c, i);
    return good && check_overlap(c);
}

/* ---- results --------------------------------------------------------------------------------- */

static bool result_shape(struct call *c, size_t i, struct shape *out)
{
    const struct lang_symbol *sym = c->spec->params.v[i].sym;
    *out = (struct shape){.type = sym->type, .rank = sym->rank};
    for (uint32_t k = 0; k < sym->rank; k++) {
        if (!call_is_known(c, sym->dims[k])) {
            struct buf decl = buf_in(c->b->a);
            lang_print_shape(sym, &decl);
            return diag_error(c->b->d, c->at,
                              "how large '%s' of '%s' is, %s%s, does not follow from the other "
                              "arguments; give the dimension, as in '%s: 10', or a buffer",
                              sym->name, c->use.name, dtype_name(sym->type), buf_text(&decl),
                              sym->dims[k]->kind == E_NAME ? sym->dims[k]->name : "n");
        }
        out->dim[k] = expr_replace(c->b, sym->dims[k], call_known, c, c->at);
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
        if (!call_is_buffer(p) || a->var)
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
    if (call_fix_dims(c))
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
    return reread(c) && choose_types(c) && read_actuals(c) && call_bind_dims(c) &&
           make_results(c) && specialise(c);
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
