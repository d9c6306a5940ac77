/* The steps of a program's contract: calls of the kernels that the same file holds. */
#include <config.h>

#include "spec/contract_int.h"

struct steps_reader {
    struct contract_reader *r;
    const struct contract_file *file;
    struct lang_scope *scope; /* the contract's, and the indices of the loops around */
    unsigned loops;           /* with an index, around */
};

typedef VEC(struct contract_step *) step_list;

static bool read_list(struct steps_reader *s, struct lang_step *const *v, uint32_t n,
                      step_list *out);

/* An integer over dimensions, integer scalars and the indices of loops. */
static bool check_integer(struct steps_reader *s, struct lang_expr *e)
{
    static const struct lang_options options = {.exact = true};
    if (!lang_check_expr(s->r->a, s->scope, &options, e, DT_VOID, s->r->d))
        return false;
    return dtype_is_int(e->type) || diag_error(s->r->d, e->span, "an integer is needed here");
}

/* ---- arguments ------------------------------------------------------------------------------- */

static struct lang_symbol *find_buffer(struct steps_reader *s, const char *name)
{
    struct lang_symbol *sym = lang_find(&s->r->c->scope, name);
    if (sym)
        return sym->kind == SYM_BUFFER ? sym : NULL;
    return contract_find_temp(s->r->c, arena_printf(s->r->a, "$%s", name));
}

/* Subscripts are elements, then at most one range: all else would not be dense. */
static bool check_part(struct steps_reader *s, const struct lang_view *v, uint32_t rank)
{
    bool good = true;
    if (v->nsub > rank)
        return diag_error(s->r->d, v->span, "'%s' has %u dimensions, not %u", v->name,
                          (unsigned)rank, (unsigned)v->nsub);
    for (uint32_t i = 0; i < v->nsub; i++) {
        const struct lang_subscript *sub = &v->sub[i];
        if (sub->is_range && i + 1 < v->nsub)
            good = diag_error(s->r->d, v->span, "a range is the last subscript of a view");
        good = good && (!sub->at || check_integer(s, sub->at));
        good = good && (!sub->end || check_integer(s, sub->end));
    }
    for (uint32_t i = 0; i < v->nextent; i++)
        good = good && check_integer(s, v->extent[i]);
    return good;
}

static bool read_view(struct steps_reader *s, const struct lang_argument *arg,
                      struct contract_actual *out)
{
    const struct lang_view *v = arg->view;
    if (!v)
        return diag_error(s->r->d, arg->name_span, "'%s' is a buffer, not a number", arg->name);
    struct lang_symbol *sym = find_buffer(s, v->name);
    if (!sym)
        return diag_error(s->r->d, v->span, "no buffer is called '%s'", v->name);
    if (sym->mode == MODE_IN && out->param->sym->mode != MODE_IN)
        return diag_error(s->r->d, v->span, "'%s' is an input, and '%s' of '%s' is written",
                          v->name, arg->name, s->r->c->kernel);
    if (sym->type != out->param->sym->type)
        return diag_error(s->r->d, v->span, "'%s' is %s and '%s' is %s", v->name,
                          dtype_name(sym->type), arg->name, dtype_name(out->param->sym->type));
    out->view = (struct contract_view){sym, v, v->span};
    return check_part(s, v, sym->rank);
}

/* A bare name was read as a view. */
static struct lang_expr *number_of(struct steps_reader *s, const struct lang_argument *arg)
{
    if (!arg->view)
        return arg->value;
    return lang_parse_expr(s->r->a, arg->view->span, NULL, s->r->d);
}

/* What is written without a type is a number, not the nearest f32: in double precision it is what
 * any scalar needs. */
static void widen_literals(struct lang_expr *e)
{
    if (e->kind == E_FLOAT && !e->suffixed) {
        e->type = DT_F64;
        e->suffixed = true;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        widen_literals(e->args[i]);
}

static bool read_number(struct steps_reader *s, const struct lang_argument *arg,
                        struct contract_actual *out)
{
    static const struct lang_options options = {.exact = true};
    const enum dtype type = out->param->sym->type;
    struct lang_expr *e = number_of(s, arg);
    if (!e)
        return false;
    widen_literals(e);
    if (!lang_check_expr(s->r->a, s->scope, &options, e, DT_VOID, s->r->d))
        return false;
    if (dtype_is_float(e->type) && !dtype_is_float(type))
        return diag_error(s->r->d, e->span, "'%s' is %s, and this is a %s", arg->name,
                          dtype_name(type), dtype_name(e->type));
    out->value = e;
    return true;
}

static const struct lang_argument *find_argument(const struct lang_call_step *call,
                                                 const char *name)
{
    for (uint32_t i = 0; i < call->narg; i++)
        if (strcmp(call->arg[i].name, name) == 0)
            return &call->arg[i];
    return NULL;
}

/* Every argument is a parameter's, once. */
static bool check_names(struct steps_reader *s, const struct contract *kernel,
                        const struct lang_call_step *call)
{
    bool good = true;
    for (uint32_t i = 0; i < call->narg; i++) {
        const struct lang_symbol *sym = lang_find(&kernel->scope, call->arg[i].name);
        if (!sym || (sym->kind != SYM_BUFFER && sym->kind != SYM_SCALAR))
            good = diag_error(s->r->d, call->arg[i].name_span, "'%s' has no parameter '%s'",
                              kernel->kernel, call->arg[i].name);
        else if (find_argument(call, call->arg[i].name) != &call->arg[i])
            good = diag_error(s->r->d, call->arg[i].name_span, "'%s' is given twice",
                              call->arg[i].name);
    }
    return good;
}

static const struct contract *find_kernel(const struct steps_reader *s, const char *name)
{
    for (size_t i = 0; i < s->file->v.n; i++)
        if (!s->file->v.v[i]->is_program && strcmp(s->file->v.v[i]->kernel, name) == 0)
            return s->file->v.v[i];
    return NULL;
}

static bool read_call(struct steps_reader *s, const struct lang_call_step *call,
                      struct contract_step *out)
{
    const struct contract *kernel = out->kernel = find_kernel(s, call->kernel);
    bool good = true;
    if (!kernel)
        return diag_error(s->r->d, call->kernel_span, "no kernel above is called '%s'",
                          call->kernel);
    if (call->ntarget)
        return diag_error(s->r->d, call->target[0]->span,
                          "a contract names results among the arguments, as in 'y: %s'",
                          call->target[0]->name);
    if (!check_names(s, kernel, call))
        return false;
    for (size_t i = 0; i < kernel->params.n; i++) {
        const struct spec_param *param = &kernel->params.v[i];
        const struct lang_argument *arg = find_argument(call, param->sym->name);
        struct contract_actual one = {.param = param, .span = call->kernel_span};
        if (!arg && param->sym->kind == SYM_SCALAR && param->value)
            continue;
        if (!arg) {
            good = diag_error(s->r->d, call->kernel_span, "'%s' of '%s' is not given",
                              param->sym->name, kernel->kernel);
            continue;
        }
        one.span = arg->name_span;
        good &= param->sym->kind == SYM_BUFFER ? read_view(s, arg, &one)
                                               : read_number(s, arg, &one);
        *VEC_PUSH(s->r->a, &out->args) = one;
    }
    return good;
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* What the kernel that a loop asks answers with: its one output, of one u32. */
static bool find_answer(struct steps_reader *s, struct contract_step *out)
{
    const struct contract_actual *answer = NULL;
    unsigned n = 0;
    for (size_t i = 0; i < out->args.n; i++)
        if (out->args.v[i].param->sym->kind == SYM_BUFFER &&
            out->args.v[i].param->sym->mode != MODE_IN) {
            answer = &out->args.v[i];
            n++;
        }
    if (n != 1 || answer->param->sym->type != DT_U32 || answer->view.sym->rank != 0)
        return diag_error(s->r->d, out->span, "what is asked here has one output, of u32[]");
    out->asked = answer->view.sym;
    return true;
}

static bool read_body(struct steps_reader *s, const struct lang_step *in, struct contract_step *out)
{
    step_list body = {0}, other = {0};
    const bool good = read_list(s, in->body, in->nbody, &body) &&
                      read_list(s, in->other, in->nother, &other);
    out->body.v = body.v;
    out->body.n = body.n;
    out->other.v = other.v;
    out->other.n = other.n;
    return good;
}

static bool read_for(struct steps_reader *s, const struct lang_step *in, struct contract_step *out)
{
    struct lang_scope inner = {.up = s->scope}, *outer = s->scope;
    struct lang_symbol *sym = out->index = in->index;
    if (!check_integer(s, out->low) || !check_integer(s, out->high))
        return false;
    if (lang_find(s->scope, sym->name))
        return diag_error(s->r->d, sym->span, "'%s' has a meaning already", sym->name);
    *sym = (struct lang_symbol){
        .kind = SYM_SCALAR, .name = sym->name, .span = sym->span, .type = DT_I64, .id = s->loops++};
    *VEC_PUSH(s->r->a, &inner.syms) = sym;
    s->scope = &inner;
    const bool good = read_body(s, in, out);
    s->scope = outer;
    s->loops--;
    return good;
}

static bool read_asked(struct steps_reader *s, const struct lang_step *in,
                       struct contract_step *out)
{
    if (in->cond)
        return diag_error(s->r->d, in->cond->span,
                          "a contract asks a kernel, as in 'while (more(x: x, y: go))'");
    return read_call(s, &in->call, out) && find_answer(s, out) && read_body(s, in, out);
}

static bool read_step(struct steps_reader *s, const struct lang_step *in, struct contract_step *out)
{
    *out = (struct contract_step){
        .kind = in->kind, .span = in->span, .line = in->line, .low = in->low, .high = in->high};
    switch (in->kind) {
    case STEP_CALL: return read_call(s, &in->call, out);
    case STEP_FOR: return read_for(s, in, out);
    case STEP_REPEAT: return check_integer(s, out->high) && read_body(s, in, out);
    case STEP_WHILE:
    case STEP_IF: return read_asked(s, in, out);
    case STEP_EQUATION: break;
    }
    return diag_error(s->r->d, in->span, "a launch contract has calls and loops, no equations");
}

static bool read_list(struct steps_reader *s, struct lang_step *const *v, uint32_t n,
                      step_list *out)
{
    bool good = true;
    for (uint32_t i = 0; i < n; i++) {
        struct contract_step *step = ARENA_NEW(s->r->a, struct contract_step);
        good &= read_step(s, v[i], step);
        *VEC_PUSH(s->r->a, out) = step;
    }
    return good;
}

bool contract_read_steps(struct contract_reader *r, const struct yaml_value *v,
                         const struct contract_file *file)
{
    struct steps_reader s = {.r = r, .file = file, .scope = &r->c->scope};
    struct lang_steps steps = {0};
    step_list list = {0};
    struct span text;
    if (!text_span(v, "steps", &text, r->d) || !lang_parse_steps(r->a, text, NULL, &steps, r->d) ||
        !read_list(&s, steps.v, steps.n, &list))
        return false;
    r->c->written = steps;
    r->c->steps.v = list.v;
    r->c->steps.n = list.n;
    return true;
}
