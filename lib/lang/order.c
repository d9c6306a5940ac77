/* What reads what: references between the equations of one text, Tarjan's strongly connected
 * components, and an order of evaluation. A component with a cycle is an error, or, in reference:,
 * a recurrence over its last index. */
#include <config.h>

#include "lang/equations_int.h"

struct ordering {
    struct arena *a;
    struct diags *d;
    struct equation_text *t;
    size_t *stack, nstack;
    size_t *order, norder;
    unsigned counter, components;
    VEC(const struct lang_symbol *) index; /* those in scope */
};

static bool find_equation(const struct equation_text *t, const char *name, size_t *at)
{
    for (size_t i = 0; i < t->v.n; i++)
        if (strcmp(t->v.v[i].name, name) == 0) {
            *at = i;
            return true;
        }
    return false;
}

/* Is e  t - k  with a literal k >= 0 (or t itself)? */
static bool is_step_back(const struct lang_expr *e, const char *t, bool *same)
{
    *same = e->kind == E_NAME && strcmp(e->name, t) == 0;
    return *same ||
           (e->kind == E_BINARY && e->op == OP_SUB && e->args[0]->kind == E_NAME &&
            strcmp(e->args[0]->name, t) == 0 && e->args[1]->kind == E_INT && e->args[1]->ival > 0);
}

static void add_reference(struct ordering *o, struct equation_syntax *s, const struct lang_expr *e)
{
    struct reference r = {.at = e};
    if (!find_equation(o->t, e->name, &r.to))
        return;
    /* an inout on the right is the value before */
    const struct lang_symbol *sym = o->t->v.v[r.to].eq->sym;
    if (sym && sym->kind == SYM_BUFFER && sym->mode == MODE_INOUT)
        return;
    const struct lang_equation *eq = s->eq;
    if (eq->nindex && e->kind == E_INDEX && e->nargs) {
        bool back =
            is_step_back(e->args[e->nargs - 1], eq->index[eq->nindex - 1]->name, &r.same_step);
        r.earlier = back && !r.same_step;
    }
    *VEC_PUSH(o->a, &s->refs) = r;
}

/* Does an index have the name here? Then an equation's is not meant: that the two are the same is
 * for the checker to say. */
static bool is_index(const struct ordering *o, const char *name)
{
    for (size_t i = 0; i < o->index.n; i++)
        if (strcmp(o->index.v[i]->name, name) == 0)
            return true;
    return false;
}

static void open_indices(struct ordering *o, uint32_t n, struct lang_symbol *const *index)
{
    for (uint32_t i = 0; i < n; i++)
        *VEC_PUSH(o->a, &o->index) = index[i];
}

static void find_references(struct ordering *o, struct equation_syntax *s,
                            const struct lang_expr *e)
{
    const size_t outer = o->index.n;
    if ((e->kind == E_NAME || e->kind == E_INDEX) && e->name && !is_index(o, e->name))
        add_reference(o, s, e);
    open_indices(o, e->nindex, e->index);
    for (uint32_t i = 0; i < e->nargs; i++)
        find_references(o, s, e->args[i]);
    if (e->pad)
        find_references(o, s, e->pad);
    o->index.n = outer;
    for (uint32_t i = 0; i < e->nindex; i++) {
        if (e->index[i]->low)
            find_references(o, s, e->index[i]->low);
        if (e->index[i]->dims)
            find_references(o, s, e->index[i]->dims[0]);
    }
}

static void visit(struct ordering *o, size_t i)
{
    struct equation_syntax *s = &o->t->v.v[i];
    s->order = s->low = ++o->counter;
    s->on_stack = true;
    o->stack[o->nstack++] = i;
    for (size_t r = 0; r < s->refs.n; r++) {
        struct equation_syntax *to = &o->t->v.v[s->refs.v[r].to];
        if (!to->order) {
            visit(o, s->refs.v[r].to);
            s->low = to->low < s->low ? to->low : s->low;
        } else if (to->on_stack && to->order < s->low) {
            s->low = to->order;
        }
    }
    if (s->low != s->order)
        return;
    size_t first = o->nstack;
    do {
        first--;
        struct equation_syntax *m = &o->t->v.v[o->stack[first]];
        m->on_stack = false;
        m->component = o->components;
    } while (o->stack[first] != i);
    for (size_t k = first; k < o->nstack; k++)
        o->order[o->norder++] = o->stack[k];
    o->nstack = first;
    o->components++;
}

static bool inside(const struct ordering *o, size_t i, const struct reference *r)
{
    return o->t->v.v[i].component == o->t->v.v[r->to].component;
}

/* "'a' -> 'b' -> 'a'": a shortest cycle through i, by breadth first search within its component. */
static const char *cycle_text(struct ordering *o, size_t i)
{
    size_t n = o->t->v.n, head = 0, tail = 0;
    size_t *from = ARENA_ARRAY(o->a, n, size_t), *queue = ARENA_ARRAY(o->a, n, size_t);
    bool *seen = ARENA_ARRAY(o->a, n, bool);
    struct buf b = buf_in(o->a);
    size_t last = i;
    queue[tail++] = i;
    while (head < tail) {
        size_t at = queue[head++];
        const struct equation_syntax *s = &o->t->v.v[at];
        for (size_t r = 0; r < s->refs.n; r++) {
            size_t to = s->refs.v[r].to;
            if (to == i) {
                last = at;
                head = tail;
                break;
            }
            if (!seen[to] && inside(o, i, &s->refs.v[r])) {
                seen[to] = true;
                from[to] = at;
                queue[tail++] = to;
            }
        }
    }
    /* walk back from last to i, then print forward */
    size_t path[8], len = 0, at = last;
    for (; at != i && len < 8; at = from[at])
        path[len++] = at;
    buf_printf(&b, "'%s'", o->t->v.v[i].name);
    if (at != i)
        buf_puts(&b, " -> ...");
    while (len-- > 0)
        buf_printf(&b, " -> '%s'", o->t->v.v[path[len]].name);
    buf_printf(&b, " -> '%s'", o->t->v.v[i].name);
    return buf_text(&b);
}

/* Every reference within the component goes back in the last index, or stays in the step. */
static bool is_recurrent(const struct ordering *o, unsigned component, const struct reference **why)
{
    for (size_t i = 0; i < o->t->v.n; i++) {
        const struct equation_syntax *s = &o->t->v.v[i];
        for (size_t r = 0; s->component == component && r < s->refs.n; r++)
            if (inside(o, i, &s->refs.v[r]) && !s->refs.v[r].earlier && !s->refs.v[r].same_step) {
                *why = &s->refs.v[r];
                return false;
            }
    }
    return true;
}

/* Does the equation read, in the same step, one that is not yet in its place? */
static bool waits(const struct equation_syntax *s, const bool *pending)
{
    for (size_t r = 0; r < s->refs.n; r++)
        if (s->refs.v[r].same_step && pending[s->refs.v[r].to])
            return true;
    return false;
}

/* Orders the members of a recurrence by what they read in the same step; false when that is a
 * cycle. */
static bool order_steps(struct ordering *o, size_t *member, size_t n)
{
    bool *pending = ARENA_ARRAY(o->a, o->t->v.n, bool);
    for (size_t i = 0; i < n; i++)
        pending[member[i]] = true;
    for (size_t done = 0; done < n; done++) {
        size_t pick = done;
        while (pick < n && waits(&o->t->v.v[member[pick]], pending))
            pick++;
        if (pick == n)
            return false;
        size_t m = member[pick];
        memmove(member + done + 1, member + done, (pick - done) * sizeof *member);
        member[done] = m;
        pending[m] = false;
    }
    return true;
}

static bool check_component(struct ordering *o, size_t *member, size_t n,
                            const struct lang_options *opt)
{
    struct equation_syntax *first = &o->t->v.v[member[0]];
    const struct reference *why = NULL;
    bool cyclic = n > 1;
    for (size_t r = 0; r < first->refs.n; r++)
        cyclic |= inside(o, member[0], &first->refs.v[r]);
    if (!cyclic)
        return true;
    for (size_t i = 1; i < n; i++) /* name the one written first */
        if (o->t->v.v[member[i]].name_span.off < first->name_span.off)
            first = &o->t->v.v[member[i]];
    size_t at = (size_t)(first - o->t->v.v);
    bool recurrent = is_recurrent(o, first->component, &why);
    if (recurrent && !order_steps(o, member, n))
        recurrent = false;
    for (size_t i = 0; i < n; i++)
        o->t->v.v[member[i]].eq->is_recurrence = true;
    if (recurrent && opt->allow_recurrence)
        return true;
    if (recurrent)
        return diag_error(
            o->d, first->name_span,
            "'%s' is defined by recurrence, which can be evaluated only in reference:; "
            "write a body: with a loop",
            first->name);
    diag_error(o->d, first->name_span, "the equations go round in a circle: %s", cycle_text(o, at));
    if (why && why->at->kind == E_INDEX && opt->allow_recurrence)
        diag_note(o->d, why->at->span,
                  "a recurrence's last subscript is the last index minus a "
                  "positive number, as in '%s[..., t - 1]'",
                  why->at->name);
    else if (n == 1 && first->eq->sym && first->eq->sym->kind == SYM_BUFFER)
        diag_note(o->d, first->eq->sym->span, "declare '%s' inout to read the value from before",
                  first->name);
    return false;
}

bool order_equations(struct arena *a, struct equation_text *t, const struct lang_options *opt,
                     size_t *order, struct diags *d)
{
    struct ordering o = {.a = a, .d = d, .t = t, .order = order};
    bool good = true;
    o.stack = ARENA_ARRAY(a, t->v.n, size_t);
    for (size_t i = 0; i < t->v.n; i++) {
        const struct lang_equation *eq = t->v.v[i].eq;
        o.index.n = 0;
        open_indices(&o, eq->nindex, eq->index);
        find_references(&o, &t->v.v[i], eq->rhs);
    }
    for (size_t i = 0; i < t->v.n; i++)
        if (!t->v.v[i].order)
            visit(&o, i);
    for (size_t i = 0; i < t->v.n;) {
        size_t n = 1;
        while (i + n < t->v.n && t->v.v[order[i + n]].component == t->v.v[order[i]].component)
            n++;
        good &= check_component(&o, order + i, n, opt);
        for (size_t k = 0; k < n; k++)
            t->v.v[order[i + k]].eq->component = t->v.v[order[i]].component;
        i += n;
    }
    return good;
}
