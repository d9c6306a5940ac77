/* A module as ptxas would judge it, as far as the table tells. */
#include <config.h>

#include "ptx/validate.h"

enum { MAX_STATIC_SHARED = 48 * 1024 };

/* ---- instructions ---------------------------------------------------------------------------- */

static bool check_needs(struct ptx_validator *v, const struct ptx_inst *in)
{
    const struct ptx_module *m = v->module;
    struct ptx_known *const known = &v->known[ptx_seen_at(in)];
    struct ptx_needs needs;
    if (known->seen.mod == in->mod && known->seen.op == in->op)
        return true;
    ptx_inst_needs(in, &needs);
    if (!ptx_sm_allows(needs.sm, m->sm, m->sm_suffix))
        return diag_error(v->diags, v->span, "'%s' needs %s (the target is sm_%u%.1s)",
                          ptx_mnemonic(v, in), ptx_sm_text(v->diags->arena, needs.sm), m->sm,
                          &m->sm_suffix);
    if (m->version < needs.ptx)
        return diag_error(v->diags, v->span, "'%s' needs PTX %u.%u (the module says %u.%u)",
                          ptx_mnemonic(v, in), needs.ptx / 10, needs.ptx % 10, m->version / 10,
                          m->version % 10);
    known->seen = (struct ptx_seen){in->op, in->mod};
    known->noperand = SIZE_MAX;
    return true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool check_count(struct ptx_validator *v, const char *name, const char *what, size_t got,
                        size_t want)
{
    return got == want || diag_error(v->diags, v->span, "'%s' has %zu %s%s, the call %zu", name,
                                     want, what, want == 1 ? "" : "s", got);
}

/* One result or argument: a .param variable as large as the formal one, or a register or constant
 * for one in a register. */
static bool check_argument(struct ptx_validator *v, const char *name, const struct ptx_operand *o,
                           const struct ptx_var *formal)
{
    if (o->kind == PTX_O_SYM && o->var->space == PTX_PARAM) {
        const bool varies = formal->is_array && formal->count == 0; /* as many as a call has */
        if (formal->space == PTX_PARAM && !varies && ptx_var_bytes(o->var) != ptx_var_bytes(formal))
            return diag_error(v->diags, v->span, "'%s' has %llu bytes, the parameter of '%s' %llu",
                              o->var->name, (unsigned long long)ptx_var_bytes(o->var), name,
                              (unsigned long long)ptx_var_bytes(formal));
        return true;
    }
    if (o->kind == PTX_O_REG || o->kind == PTX_O_IMM || o->kind == PTX_O_F32 ||
        o->kind == PTX_O_F64)
        return true;
    return diag_error(v->diags, v->span,
                      "an argument of '%s' must be a .param variable or a register", name);
}

static bool check_call(struct ptx_validator *v, const struct ptx_inst *in)
{
    const struct ptx_operand *o = in->operand;
    if (in->noperand < 3)
        return diag_error(v->diags, v->span, "'call' takes results, a function and arguments");
    if (o[1].kind == PTX_O_REG) {
        if (ptx_type_bits(v->func->regs.v[o[1].reg].type) != 64)
            return diag_error(v->diags, v->span, "an indirect call takes a 64-bit register");
        if (in->noperand < 4)
            return diag_error(v->diags, v->span,
                              "an indirect call needs the label of a .callprototype");
        return true;
    }
    uint32_t index;
    const struct ptx_symbol *s = ptx_scope_find(v->names, o[1].name, strlen(o[1].name), &index);
    if (!s || s->kind != PTX_S_FUNC)
        return diag_error(v->diags, v->span, "function '%s' is not declared before it is called",
                          o[1].name);
    const struct ptx_func *f = s->func;
    if (f->is_entry)
        return diag_error(v->diags, v->span, "'%s' is a kernel: it can't be called", f->name);
    if (!check_count(v, f->name, "result", o[0].nelem, f->results.n) ||
        !check_count(v, f->name, "parameter", o[2].nelem, f->params.n))
        return false;
    for (size_t i = 0; i < f->results.n; i++)
        if (!check_argument(v, f->name, &o[0].elem[i], f->results.v[i]))
            return false;
    for (size_t i = 0; i < f->params.n; i++)
        if (!check_argument(v, f->name, &o[2].elem[i], f->params.v[i]))
            return false;
    return true;
}

/* The label list of a brx.idx stands right behind the label that it names. */
static bool check_list(struct ptx_validator *v, const struct ptx_inst *in, unsigned index,
                       enum ptx_item_kind kind, const char *what)
{
    if (index >= in->noperand || in->operand[index].kind != PTX_O_LABEL)
        return true;
    const struct ptx_label *l = &v->func->labels.v[in->operand[index].label];
    size_t next = (size_t)l->item + 1;
    if (next < v->func->items.n && v->func->items.v[next].kind == kind)
        return true;
    return diag_error(v->diags, v->span, "'%s' is not the label of a %s", l->name, what);
}

/* Does the label before it name a list, no code? */
static bool is_list(const struct ptx_item *it)
{
    return it->kind == PTX_I_TARGETS || it->kind == PTX_I_PROTO;
}

static void check_inst(struct ptx_validator *v, const struct ptx_inst *in)
{
    if (in->guard >= 0 && v->func->regs.v[in->guard].type != PTX_PRED) {
        diag_error(v->diags, v->span, "the guard '%s' is no predicate",
                   v->func->regs.v[in->guard].name);
        return;
    }
    if (!check_needs(v, in) || !ptx_check_operands(v, in) || !ptx_check_words(v, in))
        return;
    if (in->op == PTX_OP_CALL) {
        if (check_call(v, in))
            check_list(v, in, 3, PTX_I_PROTO, ".callprototype");
    } else if (in->op == PTX_OP_BRX) {
        check_list(v, in, 1, PTX_I_TARGETS, ".branchtargets list");
    } else if (in->op == PTX_OP_BRA) {
        size_t next = (size_t)v->func->labels.v[in->operand[0].label].item + 1;
        if (next < v->func->items.n && is_list(&v->func->items.v[next]))
            diag_error(v->diags, v->span, "'%s' is not a label of code",
                       v->func->labels.v[in->operand[0].label].name);
    }
}

/* ---- variables ------------------------------------------------------------------------------- */

static void check_var(struct ptx_validator *v, const struct ptx_var *var)
{
    bool external = strcmp(var->linkage, ".extern") == 0;
    unsigned bits = ptx_type_bits(var->type);
    if (var->type == PTX_PRED || bits < 8) {
        diag_error(v->diags, var->span, "'%s': no variable has the type .%s", var->name,
                   ptx_mod_text(var->type));
        return;
    }
    if (var->init && var->space != PTX_GLOBAL && var->space != PTX_CONST)
        diag_error(v->diags, var->span,
                   "'%s': only .global and .const variables have initial values", var->name);
    if (var->is_array && var->count == 0 && !external && var->space != PTX_PARAM)
        diag_error(v->diags, var->span, "'%s': an array without a size is .extern", var->name);
}

/* A name twice in one scope (the parser finds it in text; a module that was built needs it too). */
static void declare(struct ptx_validator *v, const struct ptx_var *var)
{
    size_t len = strlen(var->name);
    const struct ptx_symbol *s = ptx_scope_own(v->names, var->name, len);
    if (s && s->kind == PTX_S_VAR && strcmp(s->var->linkage, ".extern") == 0)
        return;
    if (s)
        diag_error(v->diags, var->span, "'%s' is declared twice", var->name);
    else
        ptx_scope_add(v->names, var->name, len, PTX_S_VAR)->var = (struct ptx_var *)(uintptr_t)var;
}

/* A function may be declared again and again, and defined once. */
static void declare_func(struct ptx_validator *v, struct ptx_func *f)
{
    size_t len = strlen(f->name);
    struct ptx_symbol *s = ptx_scope_own(v->names, f->name, len);
    if (s && (s->kind != PTX_S_FUNC || (s->func->has_body && f->has_body)))
        diag_error(v->diags, f->span, "'%s' is declared twice", f->name);
    else if (!s)
        s = ptx_scope_add(v->names, f->name, len, PTX_S_FUNC);
    if (s->kind == PTX_S_FUNC && (!s->func || f->has_body))
        s->func = f;
}

/* ---- functions ------------------------------------------------------------------------------- */

static void check_params(struct ptx_validator *v)
{
    const struct ptx_func *f = v->func;
    const uint64_t bytes = ptx_param_bytes(f);
    const bool many = v->module->version >= PTX_MANY_PARAMS && v->module->sm >= 70;
    const uint64_t limit = many ? PTX_MOST_PARAM_BYTES : PTX_PARAM_BYTES;
    for (size_t i = 0; i < f->params.n; i++) {
        check_var(v, f->params.v[i]);
        declare(v, f->params.v[i]);
    }
    if (f->is_entry && bytes > limit)
        diag_error(v->diags, f->span, "'%s' has %llu bytes of parameters, more than %llu", f->name,
                   (unsigned long long)bytes, (unsigned long long)limit);
    if (f->is_entry && f->results.n)
        diag_error(v->diags, f->span, "kernel '%s' can't have results", f->name);
}

static bool leaves(const struct ptx_inst *in)
{
    switch (in->op) {
    case PTX_OP_RET:
    case PTX_OP_EXIT:
    case PTX_OP_TRAP:
    case PTX_OP_BRA:
    case PTX_OP_BRX: return in->guard < 0;
    case PTX_OP_CALL: return true; /* perhaps of a function that does not return */
    default: return false;
    }
}

/* ptxas lets control run off the end; it is a mistake all the same. Labels may stand behind the
 * last instruction (nvcc puts them there for debugging data). */
static void check_end(struct ptx_validator *v)
{
    const struct ptx_func *f = v->func;
    size_t last = f->items.n;
    while (last > 0 && f->items.v[last - 1].kind != PTX_I_INST)
        last--;
    if (last > 0 && !leaves(&f->items.v[last - 1].inst))
        diag_warning(v->diags, f->items.v[last - 1].span, "'%s' ends without 'ret'", f->name);
}

static void check_func(struct ptx_validator *v)
{
    const struct ptx_func *f = v->func;
    uint64_t shared = 0;
    ptx_scope_enter(v->names);
    check_params(v);
    ptx_scope_enter(v->names);
    unsigned depth = 0;
    for (size_t i = 0; i < f->items.n; i++) {
        const struct ptx_item *it = &f->items.v[i];
        v->span = it->span.src ? it->span : f->span;
        if (it->kind == PTX_I_INST) {
            check_inst(v, &it->inst);
        } else if (it->kind == PTX_I_VAR) {
            check_var(v, it->var);
            declare(v, it->var);
            if (it->var->space == PTX_SHARED)
                shared += ptx_var_bytes(it->var);
        } else if (it->kind == PTX_I_OPEN) {
            ptx_scope_enter(v->names);
            depth++;
        } else if (it->kind == PTX_I_CLOSE && depth > 0) {
            ptx_scope_leave(v->names);
            depth--;
        }
    }
    while (depth-- > 0)
        ptx_scope_leave(v->names);
    ptx_scope_leave(v->names);
    ptx_scope_leave(v->names);
    if (f->is_entry && shared > MAX_STATIC_SHARED)
        diag_error(v->diags, f->span, "'%s' has %llu bytes of static shared memory, more than %d",
                   f->name, (unsigned long long)shared, MAX_STATIC_SHARED);
    if (f->has_body)
        check_end(v);
}

/* ---- the module ------------------------------------------------------------------------------ */

static void check_version(struct ptx_validator *v)
{
    const struct ptx_module *m = v->module;
    char name[16];
    int n = snprintf(name, sizeof name, "sm_%u%.1s", m->sm, &m->sm_suffix);
    const struct ptx_target *t = ptx_target_any(name, (size_t)n);
    if (!t)
        diag_error(v->diags, m->target_span, "unknown target '%s'", name);
    else if (m->version < t->min_ptx)
        diag_error(v->diags, m->version_span, "target %s needs PTX %u.%u (the module says %u.%u)",
                   name, t->min_ptx / 10, t->min_ptx % 10, m->version / 10, m->version % 10);
}

bool ptx_validate(const struct ptx_module *m, struct diags *d)
{
    struct ptx_scopes names;
    struct ptx_validator v = {.module = m,
                              .diags = d,
                              .names = &names,
                              .known = ARENA_ARRAY(d->arena, PTX_SEEN, struct ptx_known)};
    size_t before = d->nerror;
    uint64_t shared = 0;
    ptx_scopes_init(&names, d->arena);
    check_version(&v);
    for (size_t i = 0; i < m->items.n; i++) {
        const struct ptx_item *it = &m->items.v[i];
        if (it->kind == PTX_I_VAR) {
            check_var(&v, it->var);
            declare(&v, it->var);
            if (it->var->space == PTX_SHARED)
                shared += ptx_var_bytes(it->var);
        }
        if (it->kind == PTX_I_FUNC) {
            declare_func(&v, it->func);
            v.func = it->func;
            check_func(&v);
        }
    }
    if (shared > MAX_STATIC_SHARED)
        diag_error(d, SPAN_NONE, "the module has %llu bytes of static shared memory, more than %d",
                   (unsigned long long)shared, MAX_STATIC_SHARED);
    return d->nerror == before;
}
