#include <config.h>

#include "lower/explain.h"

/* ---- one equation ---------------------------------------------------------------------------- */

struct cost {
    unsigned operations; /* of one element, or of one term of the innermost reduction */
    unsigned functions;  /* among them, exp() and the like */
};

static bool counts(const struct lang_expr *e)
{
    if (e->kind == E_REDUCE)
        return true;
    if (!dtype_is_float(e->type) && !(e->nargs && dtype_is_float(e->args[0]->type)))
        return false; /* subscripts and their like are not what is computed */
    return e->kind == E_UNARY || e->kind == E_BINARY || e->kind == E_CALL || e->kind == E_COND;
}

static void add_cost(const struct lang_expr *e, struct cost *c)
{
    c->operations += counts(e);
    if (e->kind == E_CALL && dtype_is_float(e->type))
        c->functions++;
    for (uint32_t i = 0; i < e->nargs; i++)
        add_cost(e->args[i], c);
    if (e->pad)
        add_cost(e->pad, c);
}

/* Terms of a sum of products of two things of which neither has all the indices: a contraction. */
static bool is_contraction(const struct lang_expr *r, const struct lang_equation *eq)
{
    const struct lang_expr *body = inspect_strip(r->args[0]);
    if (r->reduce != RED_SUM || body->kind != E_BINARY || body->op != OP_MUL || eq->nindex < 2)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < eq->nindex; k++)
            n += inspect_mentions(body->args[i], 1, &eq->index[k]);
        if (n == 0 || n == eq->nindex)
            return false;
    }
    return true;
}

static void form_text(const struct cg *g, const struct lang_equation *eq, struct buf *out)
{
    const struct lang_expr *r = inspect_reduction(g, eq->rhs);
    if (!r) {
        buf_puts(out, "elementwise over ");
        lang_print_shape(eq->sym, out);
        return;
    }
    buf_puts(out, is_contraction(r, eq) ? "contraction, " : "");
    buf_printf(out, "%s over ", lang_reduce_name(r->reduce));
    for (uint32_t i = 0; i < r->nindex; i++) {
        buf_printf(out, "%s%s < ", i ? ", " : "", r->index[i]->name);
        lang_print_expr(r->index[i]->dims[0], out);
    }
    buf_puts(out, eq->nindex ? " for each of " : ", one result");
    if (eq->nindex)
        lang_print_shape(eq->sym, out);
}

/* The equation's text on one line. */
static void equation_text(const struct lang_equation *eq, struct buf *out)
{
    bool space = false;
    buf_printf(out, "%s", eq->sym->name);
    for (uint32_t i = 0; i < eq->nindex; i++)
        buf_printf(out, "%s%s%s", i ? ", " : "[", eq->index[i]->name,
                   i + 1 == eq->nindex ? "]" : "");
    buf_puts(out, " = ");
    const char *t = eq->rhs->span.src ? eq->rhs->span.src->text + eq->rhs->span.off : "";
    for (size_t i = 0; eq->rhs->span.src && i < eq->rhs->span.len; i++) {
        if (t[i] == ' ' || t[i] == '\n' || t[i] == '\t' || t[i] == '\r') {
            space = true;
            continue;
        }
        if (space)
            buf_putc(out, ' ');
        space = false;
        buf_putc(out, t[i]);
    }
}

static const char *plural(unsigned n)
{
    return n == 1 ? "" : "s";
}

static void explain_one(struct cg *g, const struct lang_equation *eq)
{
    const struct lang_expr *r = inspect_reduction(g, eq->rhs);
    struct buf text = buf_in(g->a), form = buf_in(g->a);
    struct cost all = {0}, term = {0};
    add_cost(eq->rhs, &all);
    if (r)
        add_cost(r, &term);
    equation_text(eq, &text);
    form_text(g, eq, &form);
    lower_explain(g, "  %s\n    %s; ", buf_text(&text), buf_text(&form));
    unsigned rest = all.operations - term.operations;
    if (r)
        lower_explain(g, "%u operation%s for each term%s", term.operations, plural(term.operations),
                      rest ? ", " : "");
    if (!r || rest)
        lower_explain(g, "%u%s for each %s", rest,
                      r           ? ""
                      : rest == 1 ? " operation"
                                  : " operations",
                      r ? "result" : "element");
    if (all.functions)
        lower_explain(g, ", with %u function%s", all.functions, plural(all.functions));
    lower_explain(g, "\n");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool reads(const struct lang_expr *e, const struct lang_symbol *t)
{
    if ((e->kind == E_INDEX || e->kind == E_NAME) && e->sym == t)
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (reads(e->args[i], t))
            return true;
    for (uint32_t i = 0; i < e->nindex; i++)
        if (reads(e->index[i]->dims[0], t) || (e->index[i]->low && reads(e->index[i]->low, t)))
            return true;
    return e->pad && reads(e->pad, t);
}

static bool any_reads(const struct cg *g, const struct lang_symbol *t)
{
    for (size_t i = 0; i < g->spec->compute.n; i++)
        if (reads(g->spec->compute.v[i]->rhs, t))
            return true;
    return false;
}

enum { MOST_RANK = 8 };

void explain_bytes(const struct lang_symbol *t, struct buf *out)
{
    const unsigned bits = dtype_bits(t->type);
    int64_t product = bits < 8 ? 1 : bits / 8, v;
    bool counted[MOST_RANK] = {false};
    for (uint32_t i = 0; i < t->rank; i++)
        counted[i] = lang_const_int(t->dims[i], &v) &&
                     !__builtin_mul_overflow(product, v, &product);
    struct lang_expr *all = lx_int(out->arena, product);
    for (uint32_t i = 0; i < t->rank; i++)
        if (!counted[i])
            all = lx_mul(out->arena, all, t->dims[i]);
    buf_printf(out, "%s%s", lang_expr_text(out->arena, all), bits < 8 ? " / 2" : "");
}

static void add_bytes(struct buf *out, const char *verb, const struct lang_symbol *t)
{
    struct buf bytes = buf_in(out->arena);
    explain_bytes(t, &bytes);
    const char *text = buf_text(&bytes);
    const bool one = strcmp(text, "1") == 0 || strcmp(text, "1 / 2") == 0;
    buf_printf(out, "%s%s %s byte%s", out->len ? ", " : verb, t->name, text, one ? "" : "s");
}

static void explain_memory(struct cg *g)
{
    struct buf in = buf_in(g->a), out = buf_in(g->a);
    for (size_t i = 0; i < g->spec->params.n; i++) {
        const struct lang_symbol *t = g->spec->params.v[i].sym;
        if (t->kind != SYM_BUFFER)
            continue;
        if (t->mode != MODE_OUT && any_reads(g, t))
            add_bytes(&in, "reads ", t);
        if (t->mode != MODE_IN)
            add_bytes(&out, "writes ", t);
    }
    lower_explain(g, "  memory, each element once: %s%s%s\n", in.len ? buf_text(&in) : "",
                  in.len && out.len ? "; " : "", out.len ? buf_text(&out) : "");
}

void explain_equations(struct cg *g)
{
    if (!g->opt->report)
        return;
    lower_explain(g, "%s:\n", g->spec->name);
    for (size_t i = 0; i < g->spec->compute.n; i++)
        explain_one(g, g->spec->compute.v[i]);
    explain_memory(g);
}
