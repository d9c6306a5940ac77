/* Are two PTX modules the same? Numbers of registers and labels may differ (a builder hands them
 * out in another order than the parser finds them); names, types, order and operands may not. The
 * first difference is noted. */
#ifndef KAIO_TESTS_PTX_EQUAL_H
#define KAIO_TESTS_PTX_EQUAL_H

#include "ptx/ptx.h"

#include "tap.h"

/* The module's text; whether it validates, what is wrong noted. */
static const char *print(struct arena *a, const struct ptx_module *m)
{
    struct buf out = buf_in(a);
    ptx_print(m, &out);
    return buf_text(&out);
}

static bool valid(struct arena *a, const struct ptx_module *m)
{
    struct diags *d = diags_new(a);
    struct buf out = buf_in(a);
    bool good = ptx_validate(m, d);
    diags_format(d, "ptx", false, &out);
    if (out.len)
        tap_note("%s", buf_text(&out));
    return good;
}

struct pair {
    const struct ptx_func *a, *b; /* the functions that operands belong to */
};

static bool differ(const char *what, const char *a, const char *b)
{
    tap_note("%s: '%s' and '%s'", what, a ? a : "(none)", b ? b : "(none)");
    return false;
}

static bool same_text(const char *what, const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0) || differ(what, a, b);
}

static bool same_number(const char *what, uint64_t a, uint64_t b)
{
    if (a == b)
        return true;
    tap_note("%s: %" PRIu64 " and %" PRIu64, what, a, b);
    return false;
}

static bool same_reg(const struct pair *p, int32_t a, int32_t b)
{
    if (a < 0 || b < 0)
        return same_number("register", (uint64_t)(a < 0), (uint64_t)(b < 0));
    return same_text("register", p->a->regs.v[a].name, p->b->regs.v[b].name) &&
           same_number("register type", p->a->regs.v[a].type, p->b->regs.v[b].type);
}

static bool same_var(const struct ptx_var *a, const struct ptx_var *b)
{
    if (!a || !b)
        return same_number("variable", !a, !b);
    return same_text("variable", a->name, b->name) && same_number("space", a->space, b->space) &&
           same_number("type", a->type, b->type) && same_number("vector", a->vec, b->vec) &&
           same_number("alignment", a->align, b->align) &&
           same_number("array", a->is_array, b->is_array) &&
           same_number("elements", a->count, b->count) && same_text("shape", a->shape, b->shape) &&
           same_text("linkage", a->linkage, b->linkage) &&
           same_text("attribute", a->attribute, b->attribute) && same_text("ptr", a->ptr, b->ptr) &&
           same_text("initial value", a->init, b->init);
}

static bool same_operand(const struct pair *p, const struct ptx_operand *a,
                         const struct ptx_operand *b)
{
    if (!same_number("operand kind", a->kind, b->kind) ||
        !same_number("negation", a->neg, b->neg) || !same_reg(p, a->reg, b->reg) ||
        !same_reg(p, a->reg2, b->reg2) || !same_number("bits", a->bits, b->bits) ||
        !same_var(a->var, b->var) || !same_text("name", a->name, b->name) ||
        !same_number("elements", a->nelem, b->nelem))
        return false;
    if (a->kind == PTX_O_SREG && !same_number("special register", a->sreg, b->sreg))
        return false;
    if (a->kind == PTX_O_LABEL &&
        !same_text("label", p->a->labels.v[a->label].name, p->b->labels.v[b->label].name))
        return false;
    for (uint32_t i = 0; i < a->nelem; i++)
        if (!same_operand(p, &a->elem[i], &b->elem[i]))
            return false;
    return true;
}

static bool same_inst(const struct pair *p, const struct ptx_inst *a, const struct ptx_inst *b)
{
    if (!same_number("instruction", a->op, b->op) || !same_reg(p, a->guard, b->guard) ||
        !same_number("negated guard", a->guard_neg, b->guard_neg) ||
        !same_number("operands", a->noperand, b->noperand))
        return false;
    for (unsigned c = 0; c < PTX_MC_COUNT; c++)
        if (!same_number("modifier", a->mod[c], b->mod[c]))
            return false;
    for (unsigned t = 0; t < PTX_MAX_TYPES; t++)
        if (!same_number("type", a->type[t], b->type[t]))
            return false;
    for (unsigned i = 0; i < a->noperand; i++)
        if (!same_operand(p, &a->operand[i], &b->operand[i]))
            return false;
    return true;
}

static bool same_func(const struct ptx_func *a, const struct ptx_func *b);

static bool same_item(const struct pair *p, const struct ptx_item *a, const struct ptx_item *b)
{
    if (!same_number("item kind", a->kind, b->kind))
        return false;
    switch (a->kind) {
    case PTX_I_INST: return same_inst(p, &a->inst, &b->inst);
    case PTX_I_LABEL:
        return same_text("label", p->a->labels.v[a->label].name, p->b->labels.v[b->label].name);
    case PTX_I_REG:
        return same_text("register", a->text, b->text) &&
               same_number("registers", a->nreg, b->nreg) &&
               same_number("range", a->reg_range, b->reg_range) &&
               same_number("register type", a->type, b->type) &&
               (a->nreg == 0 || same_reg(p, (int32_t)a->first_reg, (int32_t)b->first_reg));
    case PTX_I_VAR: return same_var(a->var, b->var);
    case PTX_I_FUNC: return same_func(a->func, b->func);
    case PTX_I_LOC:
        return same_number("file", a->file, b->file) && same_number("line", a->line, b->line) &&
               same_number("column", a->column, b->column) &&
               same_text("location", a->text, b->text);
    case PTX_I_TARGETS:
        if (!same_number("targets", a->ntarget, b->ntarget))
            return false;
        for (uint32_t i = 0; i < a->ntarget; i++)
            if (!same_text("target", p->a->labels.v[a->target[i]].name,
                           p->b->labels.v[b->target[i]].name))
                return false;
        return true;
    case PTX_I_OPEN:
    case PTX_I_CLOSE: return true;
    case PTX_I_COMMENT:
    case PTX_I_TEXT:
    case PTX_I_PROTO: return same_text("text", a->text, b->text);
    }
    return false;
}

static bool same_func(const struct ptx_func *a, const struct ptx_func *b)
{
    struct pair p = {a, b};
    if (!same_text("function", a->name, b->name) ||
        !same_number("entry", a->is_entry, b->is_entry) ||
        !same_text("linkage", a->linkage, b->linkage) ||
        !same_text("directives", a->directives, b->directives) ||
        !same_text("attribute", a->attribute, b->attribute) ||
        !same_number("noreturn", a->noreturn, b->noreturn) ||
        !same_number("minnctapersm", a->minnctapersm, b->minnctapersm) ||
        !same_number("maxnreg", a->maxnreg, b->maxnreg) ||
        !same_number("body", a->has_body, b->has_body) ||
        !same_number("parameters", a->params.n, b->params.n) ||
        !same_number("results", a->results.n, b->results.n) ||
        !same_number("items", a->items.n, b->items.n) ||
        !same_number("registers", a->regs.n, b->regs.n))
        return false;
    for (unsigned i = 0; i < 3; i++)
        if (!same_number("maxntid", a->maxntid[i], b->maxntid[i]) ||
            !same_number("reqntid", a->reqntid[i], b->reqntid[i]))
            return false;
    for (size_t i = 0; i < a->params.n; i++)
        if (!same_var(a->params.v[i], b->params.v[i]))
            return false;
    for (size_t i = 0; i < a->results.n; i++)
        if (!same_var(a->results.v[i], b->results.v[i]))
            return false;
    for (size_t i = 0; i < a->items.n; i++)
        if (!same_item(&p, &a->items.v[i], &b->items.v[i]))
            return false;
    return true;
}

static bool same_module(const struct ptx_module *a, const struct ptx_module *b)
{
    if (!same_text("header", a->header, b->header) ||
        !same_number("version", a->version, b->version) || !same_number("target", a->sm, b->sm) ||
        !same_number("suffix", (uint64_t)a->sm_suffix, (uint64_t)b->sm_suffix) ||
        !same_text("target options", a->target_more, b->target_more) ||
        !same_number("address size", a->address_size, b->address_size) ||
        !same_number("items", a->items.n, b->items.n))
        return false;
    for (size_t i = 0; i < a->items.n; i++)
        if (!same_item(NULL, &a->items.v[i], &b->items.v[i]))
            return false;
    return true;
}

#endif
