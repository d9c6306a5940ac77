/* What a spec has besides its matrix products, as a spec of its own that reads their results. */
#include <config.h>

#include "bench/blas.h"

/* The text that stands for a product: "product0[i, j]". */
static const char *element_text(struct arena *a, const struct product *p, size_t number)
{
    struct buf b = buf_in(a);
    buf_printf(&b, "product%zu[", number);
    for (uint32_t i = 0; i < p->eq->nindex; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", p->eq->index[i]->name);
    buf_putc(&b, ']');
    return buf_text(&b);
}

/* For printing only: the sum becomes a name with that text. */
static void replace(struct arena *a, const struct product *p, size_t number)
{
    struct lang_expr *e = (struct lang_expr *)(uintptr_t)p->sum;
    struct lang_symbol *sym = ARENA_NEW(a, struct lang_symbol);
    *sym = (struct lang_symbol){.kind = SYM_INDEX, .name = element_text(a, p, number)};
    e->kind = E_NAME;
    e->sym = sym;
    e->nargs = 0;
    e->nindex = 0;
}

static bool mentions(const struct lang_expr *e, const struct lang_symbol *sym)
{
    if (e->sym == sym)
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (mentions(e->args[i], sym))
            return true;
    return e->pad && mentions(e->pad, sym);
}

static bool is_needed(const struct spec *s, const struct lang_symbol *sym)
{
    if (sym->kind == SYM_BUFFER && sym->mode != MODE_IN)
        return true;
    for (size_t i = 0; i < s->compute.n; i++)
        if (mentions(s->compute.v[i]->rhs, sym))
            return true;
    return false;
}

static void write_products(const struct products *products, struct buf *out)
{
    for (size_t i = 0; i < products->v.n; i++) {
        const struct product *p = &products->v.v[i];
        buf_printf(out, "  product%zu: in %s[", i, dtype_name(p->result));
        for (uint32_t k = 0; k < p->eq->nindex; k++)
            buf_printf(out, "%s%s", k ? ", " : "",
                       lang_expr_text(out->arena, p->eq->index[k]->dims[0]));
        buf_puts(out, "]\n");
    }
}

static void write_equations(const struct spec *s, struct buf *out)
{
    buf_puts(out, "compute: |\n");
    for (size_t i = 0; i < s->compute.n; i++) {
        const struct lang_equation *q = s->compute.v[i];
        buf_printf(out, "  %s", q->sym->name);
        for (uint32_t k = 0; k < q->nindex; k++)
            buf_printf(out, "%s%s%s", k ? ", " : "[", q->index[k]->name,
                       k + 1 < q->nindex ? "" : "]");
        buf_printf(out, " = %s\n", lang_expr_text(out->arena, q->rhs));
    }
}

const struct source *blas_rest_of(struct arena *a, const struct code_source *src,
                                  const struct bench_point *p, struct diags *d)
{
    struct code code;
    struct buf out = buf_in(a);
    if (!code_read(a, src, p, &code, d))
        return NULL;
    const struct spec *s = code.spec;
    const struct products products = products_find(a, s, p);
    if (!s->has_compute || products.v.n == 0 || products.plain) {
        diag_error(d, SPAN_NONE, "the spec has nothing but the product, so nothing is left to do");
        return NULL;
    }
    for (size_t i = 0; i < products.v.n; i++)
        replace(a, &products.v.v[i], i);
    buf_printf(&out, "kernel: %s_rest\n", s->name);
    for (size_t i = 0; i < s->types.n; i++)
        buf_printf(&out, "%s  %s: [%s]\n", i ? "" : "types:\n", s->types.v[i].name,
                   dtype_name(s->types.v[i].chosen));
    buf_printf(&out, "%sparams:\n", s->math == MATH_FAST ? "math: fast\n" : "");
    for (size_t i = 0; i < s->params.n; i++)
        if (is_needed(s, s->params.v[i].sym))
            buf_printf(&out, "  %s: %s\n", s->params.v[i].sym->name, s->params.v[i].decl);
    write_products(&products, &out);
    write_equations(s, &out);
    return source_new(a, arena_printf(a, "%s_rest.yaml", s->name), buf_text(&out), out.len);
}
