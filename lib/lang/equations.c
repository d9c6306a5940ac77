/* compute: and reference: texts -> checked equations in order. */
#include <config.h>

#include "lang/equations_int.h"

struct context {
    struct checker c;
    struct lang_scope names; /* intermediates, over the parameters */
    struct equation_text text;
    size_t *order;
    uint32_t ntensor;
    checked_list checked;
};

static bool already_defined(struct context *x, size_t i)
{
    const struct equation_syntax *s = &x->text.v.v[i];
    for (size_t k = 0; k < i; k++)
        if (strcmp(x->text.v.v[k].name, s->name) == 0) {
            diag_error(x->c.d, s->name_span, "'%s' is defined twice", s->name);
            diag_note(x->c.d, x->text.v.v[k].name_span, "the first definition is here");
            return true;
        }
    return false;
}

static struct lang_symbol *new_tensor(struct context *x, struct equation_syntax *s)
{
    struct lang_symbol *sym = ARENA_NEW(x->c.a, struct lang_symbol);
    sym->kind = SYM_TENSOR;
    sym->name = s->name;
    sym->span = s->name_span;
    sym->type = DT_VOID;
    sym->rank = s->eq->nindex;
    sym->id = x->ntensor++;
    sym->def = s->eq;
    scope_add(x->c.a, &x->names, sym);
    return sym;
}

/* The left side's symbol: an output, or a new intermediate. */
static bool declare(struct context *x, size_t i)
{
    struct equation_syntax *s = &x->text.v.v[i];
    struct span at = s->name_span;
    struct diags *d = x->c.d;
    const char *why = lang_reserved(s->name, x->c.opt.types);
    if (why)
        return diag_error(d, at, "'%s' is %s and can't be defined", s->name, why);
    if (already_defined(x, i))
        return false;
    struct lang_symbol *sym = lang_find(x->names.up, s->name);
    if (!sym) {
        s->eq->sym = new_tensor(x, s);
        return true;
    }
    if (sym->kind != SYM_BUFFER)
        return diag_error(d, at, "'%s' is %s and can't be defined by an equation", s->name,
                          sym->kind == SYM_DIM    ? "a dimension"
                          : sym->kind == SYM_FUNC ? "a function"
                                                  : "a scalar parameter");
    if (sym->mode == MODE_IN) {
        diag_error(d, at, "'%s' is an input; declare it out or inout to define it", s->name);
        diag_note(d, sym->span, "'%s' is declared here", s->name);
        return false;
    }
    if (sym->rank != s->eq->nindex)
        return diag_error(d, at, "'%s' has %u dimension%s, not %u", s->name, (unsigned)sym->rank,
                          sym->rank == 1 ? "" : "s", (unsigned)s->eq->nindex);
    s->eq->sym = sym;
    return true;
}

static bool declare_left_index(struct context *x, const struct lang_equation *eq, uint32_t k)
{
    const struct lang_symbol *s = eq->index[k], *other = lang_find(x->c.scope, s->name);
    for (uint32_t j = 0; j < k; j++)
        if (strcmp(eq->index[j]->name, s->name) == 0)
            return diag_error(x->c.d, s->span,
                              "the index '%s' is there twice; each dimension needs "
                              "its own",
                              s->name);
    if (!other)
        return true;
    diag_error(x->c.d, s->span, "'%s' is the name of %s; give the index another name", s->name,
               other->kind == SYM_DIM ? "a dimension" : "something else");
    if (other->span.src)
        diag_note(x->c.d, other->span, "'%s' is defined here", s->name);
    return false;
}

/* Extents of the left side's indices: declared (outputs), written, found on the right, or said by
 * those who read it. */
static bool left_ranges(struct context *x, struct equation_syntax *s)
{
    struct lang_equation *eq = s->eq;
    struct lang_symbol *sym = eq->sym;
    bool good = true;
    int64_t low;
    if (sym->kind == SYM_TENSOR)
        sym->dims = ARENA_ARRAY(x->c.a, sym->rank, struct lang_expr *);
    struct lang_expr **dims = sym->dims;
    if (sym->kind == SYM_TENSOR)
        sym->dims = NULL; /* its own extents say nothing yet */
    for (uint32_t k = 0; k < eq->nindex; k++) {
        struct lang_symbol *i = eq->index[k];
        i->id = k;
        if (!declare_left_index(x, eq, k)) {
            good = false;
            continue;
        }
        if (sym->kind == SYM_BUFFER && !i->written) {
            i->dims = &sym->dims[k];
            continue;
        }
        if (!(index_has_range(&x->c, i, eq->rhs) ? check_index_range(&x->c, i, eq->rhs)
                                                 : range_by_uses(&x->c, &x->text, eq, k))) {
            good = false;
            continue;
        }
        if (i->low && (!lang_const_int(i->low, &low) || low != 0))
            good = diag_error(x->c.d, i->low->span, "a range on the left starts at 0");
        if (sym->kind == SYM_BUFFER && !expr_same(i->dims[0], sym->dims[k]))
            good = diag_error(x->c.d, i->dims[0]->span,
                              "'%s' has %s there, and every element must be defined", sym->name,
                              lang_expr_text(x->c.a, sym->dims[k]));
        dims[k] = i->dims[0];
    }
    sym->dims = dims;
    return good;
}

/* The right side, in a scope with the left side's indices. */
static bool check_right(struct context *x, struct equation_syntax *s, struct lang_expr *rhs,
                        struct diags *d)
{
    struct lang_scope inner = {.up = &x->names};
    struct diags *outer = x->c.d;
    for (uint32_t k = 0; k < s->eq->nindex; k++)
        scope_add(x->c.a, &inner, s->eq->index[k]);
    x->c.scope = &inner;
    x->c.d = d;
    x->c.made = s->eq->is_recurrence ? NULL : &x->checked; /* whose parts would be steps of it */
    bool good = check_expr(&x->c, rhs);
    if (good && rhs->type == DT_VOID)
        good = diag_error(d, rhs->span, "this function returns no value");
    x->c.scope = &x->names;
    x->c.d = outer;
    return good;
}

/* The types of a recurrence's tensors: guessed as i32, then as what their right sides come to,
 * until that is stable. */
static bool recurrence_types(struct context *x, const size_t *member, size_t n)
{
    struct arena *a = x->c.a;
    enum { ROUNDS = 8 };
    for (size_t i = 0; i < n; i++) {
        struct lang_symbol *sym = x->text.v.v[member[i]].eq->sym;
        if (sym->kind == SYM_TENSOR)
            sym->type = DT_I32;
    }
    for (int round = 0; round < ROUNDS; round++) {
        bool stable = true;
        for (size_t i = 0; i < n; i++) {
            struct equation_syntax *s = &x->text.v.v[member[i]];
            struct lang_expr *rhs = expr_clone(a, s->eq->rhs);
            if (s->eq->sym->kind != SYM_TENSOR)
                continue;
            x->c.guessing = true;
            const bool good = check_right(x, s, rhs, diags_new(a)) ||
                              check_right(x, s, s->eq->rhs, x->c.d); /* for what is wrong */
            x->c.guessing = false;
            if (!good)
                return false;
            stable &= rhs->type == s->eq->sym->type;
            s->eq->sym->type = rhs->type;
        }
        if (stable)
            return true;
    }
    return diag_error(x->c.d, x->text.v.v[member[0]].name_span,
                      "the type of '%s' can't be found; convert its right side, as in f64(...)",
                      x->text.v.v[member[0]].name);
}

static bool check_equation(struct context *x, struct equation_syntax *s)
{
    struct lang_equation *eq = s->eq;
    if (!check_right(x, s, eq->rhs, x->c.d))
        return false;
    if (eq->sym->kind == SYM_TENSOR && !eq->is_recurrence)
        eq->sym->type = eq->rhs->type;
    if (!check_coerce(&x->c, eq->rhs, eq->sym->type, arena_printf(x->c.a, "'%s'", s->name)))
        return false;
    expr_settle(eq->rhs);
    *VEC_PUSH(x->c.a, &x->checked) = eq;
    return true;
}

/* A recurrence's equations walk along one index together. */
static bool same_steps(struct context *x, const size_t *member, size_t n)
{
    const struct lang_equation *first = x->text.v.v[member[0]].eq;
    for (size_t i = 0; i < n; i++) {
        const struct equation_syntax *s = &x->text.v.v[member[i]];
        if (!expr_same(first->index[first->nindex - 1]->dims[0],
                       s->eq->index[s->eq->nindex - 1]->dims[0]))
            return diag_error(x->c.d, s->name_span,
                              "'%s' and '%s' depend on each other and must have the same number of "
                              "steps",
                              s->name, x->text.v.v[member[0]].name);
    }
    return true;
}

static bool has_ranges(const struct context *x, const struct lang_equation *eq)
{
    for (uint32_t k = 0; k < eq->nindex && eq->sym->kind == SYM_TENSOR; k++)
        if (!index_has_range(&x->c, eq->index[k], eq->rhs))
            return false;
    return true;
}

/* In a recurrence the extents of one tensor may follow from those of another: first what is known,
 * then the rest. */
static bool component_ranges(struct context *x, const size_t *member, size_t n)
{
    enum { ROUNDS = 8 }; /* more would be a chain that no one writes, and n * n work */
    bool *done = ARENA_ARRAY(x->c.a, n, bool), good = true, progress = true;
    for (int round = 0; progress && round < ROUNDS; round++) {
        progress = false;
        for (size_t i = 0; i < n; i++) {
            struct equation_syntax *s = &x->text.v.v[member[i]];
            if (done[i] || !has_ranges(x, s->eq))
                continue;
            good &= left_ranges(x, s);
            done[i] = progress = true;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (!done[i])
            good &= left_ranges(x, &x->text.v.v[member[i]]);
    return good;
}

/* The equations member[0..n) are one component. */
static bool check_component(struct context *x, const size_t *member, size_t n)
{
    bool good = component_ranges(x, member, n);
    if (!good)
        return false;
    if (x->text.v.v[member[0]].eq->is_recurrence &&
        (!same_steps(x, member, n) || !recurrence_types(x, member, n)))
        return false;
    for (size_t i = 0; i < n; i++)
        good &= check_equation(x, &x->text.v.v[member[i]]);
    return good;
}

/* Does the component read what could not be checked? Its own errors would only be echoes. */
static bool reads_failed(const struct context *x, const size_t *member, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct equation_syntax *s = &x->text.v.v[member[i]];
        for (size_t r = 0; r < s->refs.n; r++)
            if (x->text.v.v[s->refs.v[r].to].failed)
                return true;
    }
    return false;
}

static bool check_components(struct context *x)
{
    bool good = true;
    for (size_t i = 0, n; i < x->text.v.n; i += n) {
        unsigned component = x->text.v.v[x->order[i]].component;
        for (n = 1; i + n < x->text.v.n && x->text.v.v[x->order[i + n]].component == component;)
            n++;
        if (reads_failed(x, x->order + i, n) || !check_component(x, x->order + i, n)) {
            good = false;
            for (size_t k = 0; k < n; k++)
                x->text.v.v[x->order[i + k]].failed = true;
        }
    }
    return good;
}

static bool all_outputs_defined(struct context *x, struct span text)
{
    bool good = true;
    for (struct lang_scope *s = x->names.up; s; s = s->up)
        for (size_t i = 0; i < s->syms.n; i++) {
            struct lang_symbol *sym = s->syms.v[i];
            if (sym->kind != SYM_BUFFER || sym->mode == MODE_IN)
                continue;
            bool defined = false;
            for (size_t k = 0; k < x->text.v.n; k++)
                defined |= x->text.v.v[k].eq->sym == sym;
            if (!defined) {
                good = diag_error(x->c.d, sym->span, "'%s' is %s, but no equation defines it",
                                  sym->name, sym->mode == MODE_OUT ? "an output" : "inout");
                diag_note(x->c.d, (struct span){text.src, text.off, 1}, "the equations are here");
            }
        }
    return good;
}

static void warn_unused(const struct context *x)
{
    for (size_t i = 0; i < x->names.syms.n; i++) {
        const struct lang_symbol *s = x->names.syms.v[i];
        if (!s->used)
            diag_warning(x->c.d, s->span, "'%s' is defined but nothing uses it", s->name);
    }
}

/* The first read of sym in e; NULL: there is none. */
static const struct lang_expr *read_of(const struct lang_expr *e, const struct lang_symbol *sym)
{
    const struct lang_expr *found =
        (e->kind == E_INDEX || e->kind == E_NAME) && e->sym == sym ? e : NULL;
    for (uint32_t i = 0; i < e->nargs && !found; i++)
        found = read_of(e->args[i], sym);
    for (uint32_t i = 0; i < e->nindex && !found; i++) {
        found = e->index[i]->low ? read_of(e->index[i]->low, sym) : NULL;
        found = found ? found : read_of(e->index[i]->dims[0], sym);
    }
    return found || !e->pad ? found : read_of(e->pad, sym);
}

/* The first read of sym in the text below an equation; NULL: there is none. */
static const struct lang_expr *read_below(const struct context *x, const struct lang_symbol *sym,
                                          const struct lang_equation *above)
{
    const struct lang_expr *first = NULL;
    size_t off = SIZE_MAX;
    for (size_t i = 0; i < x->checked.n; i++) {
        const struct lang_equation *eq = x->checked.v[i];
        if (eq->span.off < above->span.off + above->span.len || eq->span.off >= off)
            continue;
        const struct lang_expr *read = read_of(eq->rhs, sym);
        off = read ? eq->span.off : off;
        first = read ? read : first;
    }
    return first;
}

/* An equation below the one that assigns an inout reads what was there before, which is not what
 * programs do. */
static void warn_old_values(const struct context *x)
{
    for (size_t i = 0; i < x->text.v.n; i++) {
        const struct lang_symbol *sym = x->text.v.v[i].eq->sym;
        if (sym->kind != SYM_BUFFER || sym->mode != MODE_INOUT)
            continue;
        const struct lang_expr *read = read_below(x, sym, x->text.v.v[i].eq);
        if (!read)
            continue;
        diag_warning(x->c.d, read->span,
                     "this reads '%s' as it was before line %zu assigns it; put that equation "
                     "last if this is meant",
                     sym->name, span_line_col(x->text.v.v[i].name_span).line);
    }
}

bool lang_equations(struct arena *a, struct span text, struct lang_scope *params,
                    const struct lang_options *opt, struct lang_equations *out, struct diags *d)
{
    struct context *x = ARENA_NEW(a, struct context);
    x->c = (struct checker){.a = a, .d = d, .opt = *opt, .place = IN_COMPUTE};
    x->c.scope = &x->names;
    x->names.up = params;
    *out = (struct lang_equations){0};
    if (!parse_equations(a, text, opt->types, &x->text, d))
        return false;
    bool good = true;
    for (size_t i = 0; i < x->text.v.n; i++)
        good &= declare(x, i);
    good = good && all_outputs_defined(x, text);
    x->order = ARENA_ARRAY(a, x->text.v.n, size_t);
    if (!good || !order_equations(a, &x->text, opt, x->order, d) || !check_components(x))
        return false;
    warn_unused(x);
    warn_old_values(x);
    out->v = x->checked.v;
    out->n = x->checked.n;
    for (size_t i = 0; i < out->n; i++)
        out->v[i]->sym->def = out->v[i];
    check_rounded_equations(&x->c, out);
    return true;
}
