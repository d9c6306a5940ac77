/* A program's steps, one after the other. */
#include <config.h>

#include "program/program_int.h"

static bool build_list(struct builder *b, struct lang_step *const *v, uint32_t n, step_list *out);

static void open_block(struct builder *b, struct block *block)
{
    *block = (struct block){.up = b->block, .scope = {.up = &b->block->scope}};
    b->block = block;
}

static bool build_body(struct builder *b, struct lang_step *const *v, uint32_t n,
                       struct lang_step ***out, uint32_t *nout)
{
    step_list list = {0};
    const bool good = build_list(b, v, n, &list);
    *out = list.v;
    *nout = (uint32_t)list.n;
    return good;
}

/* Its index is a number like any other, with a name that the contract has for nothing else. */
static bool build_for(struct builder *b, const struct lang_step *s, struct lang_step *out)
{
    struct lang_symbol *index = ARENA_NEW(b->a, struct lang_symbol);
    struct block block;
    bool good = expr_check(b, s->low) && expr_check(b, s->high);
    if (lang_find(&b->block->scope, s->index->name) || find_variable(b, s->index->name))
        return diag_error(b->d, s->index->span,
                          "'%s' has a meaning already; name the index "
                          "otherwise",
                          s->index->name);
    *index = (struct lang_symbol){.kind = SYM_SCALAR,
                                  .name = s->index->name,
                                  .span = s->index->span,
                                  .type = DT_I64,
                                  .id = UINT32_MAX};
    open_block(b, &block);
    *VEC_PUSH(b->a, &block.scope.syms) = index;
    good = build_body(b, s->body, s->nbody, &out->body, &out->nbody) && good;
    b->block = block.up;
    out->index = index;
    return good;
}

static bool build_block(struct builder *b, struct lang_step *const *v, uint32_t n,
                        struct lang_step ***out, uint32_t *nout)
{
    struct block block;
    open_block(b, &block);
    const bool good = build_body(b, v, n, out, nout);
    b->block = block.up;
    return good;
}

static bool build_condition(struct builder *b, const struct lang_step *s, struct lang_step *out)
{
    out->cond = NULL;
    return s->cond ? build_asked(b, s->cond, s->cond_span, &out->call)
                   : build_asked_call(b, &s->call, s->span, &out->call);
}

static bool build_loop(struct builder *b, const struct lang_step *s, step_list *out)
{
    struct lang_step *made = ARENA_NEW(b->a, struct lang_step);
    bool good = true;
    *made = *s;
    made->line = (uint32_t)span_line_col(s->span).line;
    if (s->kind == STEP_FOR)
        good = build_for(b, s, made);
    if (s->kind == STEP_REPEAT)
        good = expr_check(b, s->high);
    if (s->kind == STEP_WHILE || s->kind == STEP_IF)
        good = build_condition(b, s, made);
    if (s->kind != STEP_FOR)
        good = build_block(b, s->body, s->nbody, &made->body, &made->nbody) && good;
    good = build_block(b, s->other, s->nother, &made->other, &made->nother) && good;
    *VEC_PUSH(b->a, out) = made;
    return good;
}

/* A step that is wrong may have been the one to make a buffer, which those behind it then miss: the
 * block ends with it. */
static bool build_list(struct builder *b, struct lang_step *const *v, uint32_t n, step_list *out)
{
    for (uint32_t i = 0, k; i < n; i = k) {
        bool good;
        k = i;
        while (k < n && v[k]->kind == STEP_EQUATION)
            k++;
        if (k > i) {
            good = build_group(b, v + i, k - i, v + k, n - k, out);
        } else {
            k = i + 1;
            good = v[i]->kind == STEP_CALL ? build_call(b, &v[i]->call, v[i]->span, out)
                                           : build_loop(b, v[i], out);
        }
        if (!good)
            return false;
    }
    return true;
}

/* ---- parameters and temps -------------------------------------------------------------------- */

static void add_variable(struct builder *b, const char *name, struct lang_symbol *sym,
                         struct span at)
{
    struct variable *var = ARENA_NEW(b->a, struct variable);
    *var = (struct variable){.name = name, .unique = name, .sym = sym, .span = at};
    *VEC_PUSH(b->a, &b->block->vars) = var;
}

static void declare(struct builder *b)
{
    const struct spec *s = b->spec;
    for (size_t i = 0; i < s->params.n; i++)
        if (s->params.v[i].sym->kind == SYM_BUFFER)
            add_variable(b, s->params.v[i].sym->name, s->params.v[i].sym, s->params.v[i].span);
    for (size_t i = 0; i < s->temps.n; i++) {
        const struct spec_temp *t = &s->temps.v[i];
        const char *name = take_name(b, t->sym->name);
        struct lang_symbol *sym = contract_add_temp(b->a, b->out->contract,
                                                    arena_printf(b->a, "$%s", name), t->sym->type,
                                                    t->sym->rank, t->sym->dims, t->is_zero);
        b->out->contract->temps.v[b->out->contract->temps.n - 1].each_run = t->is_zero;
        add_variable(b, name, sym, t->sym->span);
    }
    for (size_t i = 0; i < s->params_scope.syms.n; i++)
        if (s->params_scope.syms.v[i]->kind != SYM_BUFFER)
            *VEC_PUSH(b->a, &b->block->scope.syms) = s->params_scope.syms.v[i];
}

/* Names that the kernels' own may not take. */
static void take_kernel_names(struct builder *b)
{
    for (size_t i = 0; i < b->file->specs.n; i++)
        *VEC_PUSH(b->a, &b->names) = b->file->specs.v[i]->name;
}

struct program *program_build(struct arena *a, const struct spec *s, const struct spec_file *file,
                              const struct program_options *opt, const char *target,
                              struct diags *d)
{
    struct block outermost = {0};
    struct builder b = {.a = a, .d = d, .spec = s, .file = file, .opt = opt, .block = &outermost};
    step_list steps = {0};
    b.out = ARENA_NEW(a, struct program);
    b.out->spec = s;
    b.out->contract = contract_of_spec(a, s, target);
    b.out->contract->is_program = true;
    take_kernel_names(&b);
    declare(&b);
    if (!build_list(&b, s->program->steps.v, s->program->steps.n, &steps))
        return NULL;
    if (steps.n == 0) {
        diag_error(d, s->program->steps_span, "nothing that these steps do lasts");
        return NULL;
    }
    b.out->contract->written = (struct lang_steps){steps.v, (uint32_t)steps.n};
    return b.out;
}
