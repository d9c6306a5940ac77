#include <config.h>

#include "lang/lang_int.h"

static bool check_stmt(struct checker *c, struct lang_stmt *s);

/* ---- declarations ---------------------------------------------------------------------------- */

static bool declare_local(struct checker *c, struct lang_symbol *sym)
{
    const struct lang_symbol *other = lang_find(c->scope, sym->name);
    if (c->nlocal >= LANG_MAX_LOCALS)
        return diag_error(c->d, sym->span, "more than %d variables", LANG_MAX_LOCALS);
    /* a local may hide a local outside of its block, but nothing else: that would be read by
     * mistake */
    bool is_local = other && (other->kind == SYM_LOCAL || other->kind == SYM_SHARED);
    if (!other || (is_local && other != scope_find_here(c->scope, sym->name)))
        return true;
    diag_error(c->d, sym->span, "'%s' is %s already; give the variable another name", sym->name,
               other->kind == SYM_DIM    ? "a dimension"
               : is_local                ? "declared"
               : other->kind == SYM_FUNC ? "a function"
                                         : "a parameter");
    if (other->span.src)
        diag_note(c->d, other->span, "'%s' is declared here", sym->name);
    return false;
}

static void add_local(struct checker *c, struct lang_symbol *sym)
{
    if (sym->kind == SYM_LOCAL)
        sym->id = c->nlocal++;
    scope_add(c->a, c->scope, sym);
}

static bool check_decl(struct checker *c, struct lang_stmt *s)
{
    struct lang_symbol *sym = s->sym;
    int64_t v;
    bool good = declare_local(c, sym);
    if (sym->rank > 0 || sym->kind == SYM_SHARED) {
        good &= check_array_decl(c, s);
    } else if (s->rhs) {
        good &= check_expr(c, s->rhs);
        if (good && s->rhs->type == DT_VOID)
            good = diag_error(c->d, s->rhs->span, "this function returns no value");
        if (sym->type == DT_VOID) { /* auto */
            enum dtype t = good ? s->rhs->type : DT_F32;
            sym->type = dtype_is_fp8(t) || dtype_bits(t) < 8 ? type_promote(t) : t;
            sym->lanes = good ? s->rhs->lanes : 0;
        }
        good = good && check_coerce_as(c, s->rhs, sym->type, sym->lanes,
                                       arena_printf(c->a, "'%s'", sym->name));
        if (good && sym->is_const && lang_const_int(s->rhs, &v) && v >= 0) {
            sym->has_value = true; /* may be an array's size */
            sym->value = (uint64_t)v;
        }
    }
    add_local(c, sym); /* after its initialiser, which does not see it */
    return good;
}

/* ---- assignments ----------------------------------------------------------------------------- */

/* An array of the function's caller. */
static bool is_given(const struct checker *c, const struct lang_symbol *sym)
{
    for (uint32_t i = 0; c->func && i < c->func->nparam; i++)
        if (c->func->param[i] == sym)
            return lang_given_itself(sym);
    return false;
}

static bool check_target(struct checker *c, struct lang_expr *e)
{
    bool was_used;
    if (e->kind == E_MEMBER) {
        if (!check_target(c, e->args[0]))
            return false;
        return check_member(c, e);
    }
    struct lang_symbol *sym = e->name ? lang_find(c->scope, e->name) : NULL;
    if (e->kind == E_SPECIAL)
        return diag_error(c->d, e->span, "'%s' can't be changed", lang_special_name(e->special));
    if (e->kind != E_NAME && e->kind != E_INDEX)
        return diag_error(c->d, e->span,
                          "only a variable or a buffer's element can be assigned to");
    if (e->pad)
        return diag_error(c->d, e->span, "pad() can be read only");
    was_used = sym && sym->used;
    if (!check_expr(c, e))
        return false;
    switch (sym->kind) {
    case SYM_LOCAL:
        if (!is_given(c, sym))
            sym->used = was_used; /* a variable that is only assigned is unused */
        return !sym->is_const ||
               diag_error(c->d, e->span, "'%s' is const and can't be assigned to", sym->name);
    case SYM_SHARED:
        return !sym->is_const ||
               diag_error(c->d, e->span, "'%s' is const and can't be assigned to", sym->name);
    case SYM_BUFFER:
        if (c->func && !c->func->impure.src)
            c->func->impure = e->span;
        if (sym->mode != MODE_IN)
            return true;
        diag_error(c->d, e->span, "'%s' is an input and can't be written; declare it out or inout",
                   sym->name);
        diag_note(c->d, sym->span, "'%s' is declared here", sym->name);
        return false;
    case SYM_DIM:
        return diag_error(c->d, e->span, "'%s' is a dimension and can't be changed", sym->name);
    case SYM_SCALAR:
        return diag_error(c->d, e->span,
                          "'%s' is a parameter and can't be changed; copy it to a variable",
                          sym->name);
    default: return diag_error(c->d, e->span, "'%s' can't be assigned to", sym->name);
    }
}

/* x op= e: computed in the common type, which must be the target's own (widened, if it is
 * narrow). */
static bool check_compound(struct checker *c, struct lang_stmt *s)
{
    struct lang_expr *l = s->lhs, *r = s->rhs;
    struct lang_expr *pair[2] = {l, r};
    bool bits = s->op == OP_AND || s->op == OP_XOR || s->op == OP_OR || s->op == OP_MOD ||
                s->op == OP_SHL || s->op == OP_SHR;
    int64_t v;
    for (int i = 0; bits && i < 2; i++)
        if (!dtype_is_int(pair[i]->type) && pair[i]->type != DT_BOOL)
            return check_integer(c, pair[i], i ? "the right side" : "the left side");
    enum dtype own = type_promote(l->type);
    bool shift = s->op == OP_SHL || s->op == OP_SHR;
    enum dtype t = shift ? own : type_common(l->type, r->type);
    if ((s->op == OP_DIV || s->op == OP_MOD) && dtype_is_int(t) && !check_divisor(c, r))
        return false;
    if (shift && lang_const_int(r, &v) && (v < 0 || v >= (int64_t)dtype_bits(own)))
        return diag_error(c->d, r->span, "a shift of %s is by 0 to %u, not %lld", dtype_name(own),
                          dtype_bits(own) - 1, (long long)v);
    if (l->type == DT_BOOL)
        return diag_error(c->d, s->span, "a bool has no arithmetic; write '%s = ...'",
                          lang_expr_text(c->a, l));
    bool same_bits = dtype_is_int(t) && dtype_is_int(own) && dtype_bits(t) == dtype_bits(own);
    if (t != own && !same_bits) {
        const char *name = lang_expr_text(c->a, l);
        return diag_error(c->d, s->span,
                          "this is computed in %s and '%s' is %s; write '%s = %s(...)'",
                          dtype_name(t), name, dtype_name(l->type), name, dtype_name(l->type));
    }
    check_convert(c, r, t);
    if (r->lanes && r->lanes != l->lanes)
        return check_coerce_as(c, r, l->type, l->lanes, "the left side");
    check_broadcast(c, r, l->lanes);
    return true;
}

static bool check_assign(struct checker *c, struct lang_stmt *s)
{
    bool good = check_target(c, s->lhs);
    good &= check_expr(c, s->rhs);
    if (!good)
        return false;
    if (s->rhs->type == DT_VOID)
        return diag_error(c->d, s->rhs->span, "this function returns no value");
    if (s->has_op)
        return check_compound(c, s);
    return check_coerce_as(c, s->rhs, s->lhs->type, s->lhs->lanes,
                           arena_printf(c->a, "'%s'", lang_expr_text(c->a, s->lhs)));
}

/* ---- control --------------------------------------------------------------------------------- */

static void warn_unused(struct checker *c, const struct lang_scope *scope)
{
    for (size_t i = 0; i < scope->syms.n; i++)
        if ((scope->syms.v[i]->kind == SYM_LOCAL || scope->syms.v[i]->kind == SYM_SHARED) &&
            !scope->syms.v[i]->used)
            diag_warning(c->d, scope->syms.v[i]->span, "'%s' is never used",
                         scope->syms.v[i]->name);
}

static bool check_in_scope(struct checker *c, struct lang_stmt *s)
{
    struct lang_scope *outer = c->scope;
    struct lang_scope inner = {.up = outer};
    bool good = true;
    c->scope = &inner;
    if (s->kind == S_BLOCK) {
        for (uint32_t i = 0; i < s->nbody; i++)
            good &= check_stmt(c, s->body[i]);
    } else { /* a for loop: its variable lives in the loop */
        good = !s->init || check_stmt(c, s->init);
        if (good && s->cond)
            good = check_condition(c, s->cond);
        good = good && (!s->step || check_stmt(c, s->step));
        c->loops++;
        good &= check_stmt(c, s->body[0]);
        c->loops--;
    }
    if (good)
        warn_unused(c, &inner);
    c->scope = outer;
    return good;
}

static bool check_loop(struct checker *c, struct lang_stmt *s)
{
    bool good = check_condition(c, s->cond);
    c->loops++;
    good &= check_stmt(c, s->body[0]);
    c->loops--;
    if (good)
        warn_waiting(c, s);
    return good;
}

static bool check_if(struct checker *c, struct lang_stmt *s)
{
    bool good = check_condition(c, s->cond);
    c->guarded++; /* an index out of range is not an error where it may never be reached */
    c->ifs++;
    for (uint32_t i = 0; i < s->nbody; i++) {
        bool excluded = s->cond->kind == E_BOOL && (s->cond->ival != 0) != (i == 0);
        c->unreached += excluded;
        good &= check_stmt(c, s->body[i]);
        c->unreached -= excluded;
    }
    c->ifs--;
    c->guarded--;
    return good;
}

static bool case_value(const struct lang_expr *e, uint64_t *v)
{
    int64_t i;
    if (e->kind == E_INT) { /* also those above i64 */
        *v = e->ival;
        return true;
    }
    bool known = lang_const_int(e, &i);
    *v = (uint64_t)i;
    return known;
}

/* A case's constant becomes one of the value's type, and no other case has it. */
static bool check_case(struct checker *c, const struct lang_stmt *s, uint32_t at)
{
    const struct lang_stmt *block = s->body[0];
    struct lang_stmt *t = block->body[at];
    uint64_t v = 0, other;
    if (t->rhs) {
        if (!check_expr(c, t->rhs) || !check_integer(c, t->rhs, "a case"))
            return false;
        if (!case_value(t->rhs, &v))
            return diag_error(c->d, t->rhs->span,
                              "a case is a constant; write if and else for this");
        if (!int_fits(s->cond->type, t->rhs->type, v))
            return diag_error(c->d, t->rhs->span, "no %s is %s, so this case is never taken",
                              dtype_name(s->cond->type), lang_expr_text(c->a, t->rhs));
        check_convert(c, t->rhs, s->cond->type);
    }
    for (uint32_t i = 0; i < at; i++) {
        const struct lang_stmt *o = block->body[i];
        if (o->kind != S_CASE || !o->rhs != !t->rhs ||
            (t->rhs && (!case_value(o->rhs, &other) || other != v)))
            continue;
        diag_error(c->d, t->span, "there is a second %s",
                   t->rhs ? "case of this value" : "default");
        diag_note(c->d, o->span, "the first one is here");
        return false;
    }
    return true;
}

static bool check_case_declaration(struct checker *c, struct lang_stmt *s)
{
    diag_error(c->d, s->span, "a declaration between cases belongs in braces: case 1: { ... }");
    check_stmt(c, s); /* so that its name is known */
    return false;
}

static bool check_switch(struct checker *c, struct lang_stmt *s)
{
    struct lang_stmt *block = s->body[0];
    bool good = check_expr(c, s->cond) && check_integer(c, s->cond, "what 'switch' chooses by"),
         any = false;
    if (!good)
        return false;
    check_convert(c, s->cond, type_promote(s->cond->type));
    if (c->func && !c->func->impure.src)
        c->func->impure = s->span;
    c->guarded++;
    c->switches++;
    for (uint32_t i = 0; i < block->nbody; i++) {
        struct lang_stmt *t = block->body[i];
        any |= t->kind == S_CASE;
        if (t->kind == S_CASE)
            good &= check_case(c, s, i);
        else if (t->kind == S_DECL)
            good = check_case_declaration(c, t);
        else if (!any)
            good = diag_error(c->d, t->span, "this stands before the first case");
        else
            good &= check_stmt(c, t);
    }
    c->switches--;
    c->guarded--;
    return good && (any || diag_error(c->d, s->span, "this switch has no case"));
}

static bool check_return(struct checker *c, struct lang_stmt *s)
{
    enum dtype want = c->func ? c->func->result : DT_VOID;
    if (!s->rhs)
        return want == DT_VOID ||
               diag_error(c->d, s->span, "'%s' returns %s; write 'return value;'", c->func->name,
                          dtype_name(want));
    if (want == DT_VOID)
        return diag_error(c->d, s->rhs->span,
                          c->func ? "this function returns no value"
                                  : "a body returns no value; write it to an output");
    return check_expr(c, s->rhs) &&
           check_coerce_as(c, s->rhs, want, c->func->result_lanes, "the result");
}

/* Is a call good for more than its value? */
static bool has_effect(enum lang_builtin fn)
{
    return (fn >= FN_SYNCTHREADS && fn <= FN_FENCE) || (fn >= FN_ATOMIC_ADD && fn <= FN_ATOMIC_CAS);
}

static bool check_stmt(struct checker *c, struct lang_stmt *s)
{
    switch (s->kind) {
    case S_BLOCK:
    case S_FOR: return check_in_scope(c, s);
    case S_DECL: return check_decl(c, s);
    case S_ASSIGN: return check_assign(c, s);
    case S_EXPR:
        if (!check_expr(c, s->rhs))
            return false;
        if (s->rhs->kind == E_CALL && !s->rhs->func && s->rhs->type != DT_VOID &&
            !has_effect(s->rhs->fn))
            return diag_error(c->d, s->rhs->span, "the value of %s() is not used; assign it",
                              s->rhs->name);
        return true;
    case S_IF: return check_if(c, s);
    case S_WHILE:
    case S_DO: return check_loop(c, s);
    case S_BREAK:
    case S_CONTINUE:
        return c->loops > 0 || (s->kind == S_BREAK && c->switches > 0) ||
               diag_error(c->d, s->span,
                          "'%s' is outside of any loop; write 'return;' to end the thread",
                          s->kind == S_BREAK ? "break" : "continue");
    case S_RETURN: return check_return(c, s);
    case S_SWITCH: return check_switch(c, s);
    case S_CASE:
        return diag_error(c->d, s->span, "'%s' stands directly in the braces of a switch",
                          s->rhs ? "case" : "default");
    }
    return false;
}

static void settle(struct lang_stmt *s)
{
    struct lang_expr *const exprs[] = {s->lhs, s->rhs, s->cond};
    for (size_t i = 0; i < 3; i++)
        if (exprs[i])
            expr_settle(exprs[i]);
    for (uint32_t i = 0; i < s->nlist; i++)
        if (s->list[i])
            expr_settle(s->list[i]);
    if (s->init)
        settle(s->init);
    if (s->step)
        settle(s->step);
    for (uint32_t i = 0; i < s->nbody; i++)
        settle(s->body[i]);
}

bool check_tables(struct arena *a, struct lang_stmt *block, struct lang_scope *scope,
                  const struct lang_options *opt, struct diags *d)
{
    struct checker c = {.a = a, .d = d, .scope = scope, .opt = *opt, .place = IN_BODY};
    bool good = true;
    for (uint32_t i = 0; i < block->nbody && good; i++) {
        struct lang_stmt *s = block->body[i];
        good = check_decl(&c, s);
        bool constant = s->sym->has_value || (s->sym->rank > 0 && s->sym->is_const);
        for (uint32_t k = 0; k < s->nlist && s->sym->rank; k++)
            constant &= !s->list[k] || s->list[k]->kind == E_INT || s->list[k]->kind == E_FLOAT ||
                        s->list[k]->kind == E_BOOL;
        if (good && (!constant || s->sym->lanes))
            good = diag_error(d, s->span,
                              "outside of functions there are constant integers and tables of "
                              "constants, as in 'const f32 w[3] = {1, 2, 1};'");
        s->sym->table = s;
        s->sym->used = true;
    }
    settle(block);
    return good;
}

bool check_stmts(struct checker *c, struct lang_stmt *body)
{
    if (!check_stmt(c, body))
        return false;
    settle(body);
    body->nlocal = c->nlocal;
    return flow_check(c->a, body, c->nlocal, c->func, c->d);
}

bool lang_check_body(struct arena *a, struct lang_scope *scope, const struct lang_options *opt,
                     struct lang_stmt *body, struct diags *d)
{
    struct checker c = {.a = a, .d = d, .scope = scope, .opt = *opt, .place = IN_BODY};
    return check_stmts(&c, body) && (!c.syncs || uniform_check(a, body, c.nlocal, opt, d));
}
