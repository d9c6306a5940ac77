/* steps: as source text, for launch contracts and messages. */
#include <config.h>

#include "lang/lang_int.h"

static void print_subscript(const struct lang_subscript *s, struct buf *out)
{
    if (s->at)
        lang_print_expr(s->at, out);
    if (s->is_range)
        buf_puts(out, "..");
    if (s->end)
        lang_print_expr(s->end, out);
}

void lang_print_view(const struct lang_view *v, struct buf *out)
{
    buf_puts(out, v->name);
    for (uint32_t i = 0; i < v->nsub; i++) {
        buf_puts(out, i ? ", " : "[");
        print_subscript(&v->sub[i], out);
    }
    buf_puts(out, v->nsub ? "]" : "");
    if (!v->is_shaped)
        return;
    buf_puts(out, " as [");
    for (uint32_t i = 0; i < v->nextent; i++) {
        buf_puts(out, i ? ", " : "");
        lang_print_expr(v->extent[i], out);
    }
    buf_putc(out, ']');
}

static void print_call(const struct lang_call_step *c, struct buf *out)
{
    for (uint32_t i = 0; i < c->ntarget; i++) {
        buf_puts(out, i ? ", " : "");
        lang_print_view(c->target[i], out);
    }
    buf_printf(out, "%s%s(", c->ntarget ? " = " : "", c->kernel);
    for (uint32_t i = 0; i < c->narg; i++) {
        buf_printf(out, "%s%s: ", i ? ", " : "", c->arg[i].name);
        if (c->arg[i].view)
            lang_print_view(c->arg[i].view, out);
        else
            lang_print_expr(c->arg[i].value, out);
    }
    buf_putc(out, ')');
}

static void print_condition(const struct lang_step *s, const char *word, struct buf *out)
{
    buf_printf(out, "%s (", word);
    if (s->cond)
        lang_print_expr(s->cond, out);
    else
        print_call(&s->call, out);
    buf_putc(out, ')');
}

static void print_head(const struct lang_step *s, struct buf *out)
{
    switch (s->kind) {
    case STEP_CALL: print_call(&s->call, out); break;
    case STEP_EQUATION: break;
    case STEP_FOR:
        buf_printf(out, "for %s in ", s->index->name);
        lang_print_expr(s->low, out);
        buf_puts(out, "..");
        lang_print_expr(s->high, out);
        break;
    case STEP_REPEAT:
        buf_puts(out, "repeat ");
        lang_print_expr(s->high, out);
        break;
    case STEP_WHILE: print_condition(s, "while", out); break;
    case STEP_IF: print_condition(s, "if", out); break;
    }
}

static void print_step(const struct lang_step *s, unsigned indent, struct buf *out)
{
    const struct lang_steps body = {s->body, s->nbody}, other = {s->other, s->nother};
    buf_printf(out, "%*s", (int)(2 * indent), "");
    print_head(s, out);
    if (s->line)
        buf_printf(out, " line %u", (unsigned)s->line);
    if (s->kind != STEP_CALL) {
        buf_puts(out, " {\n");
        lang_print_steps(&body, indent + 1, out);
        buf_printf(out, "%*s}", (int)(2 * indent), "");
    }
    if (other.n) {
        buf_puts(out, " else {\n");
        lang_print_steps(&other, indent + 1, out);
        buf_printf(out, "%*s}", (int)(2 * indent), "");
    }
    buf_putc(out, '\n');
}

void lang_print_steps(const struct lang_steps *s, unsigned indent, struct buf *out)
{
    for (uint32_t i = 0; i < s->n; i++)
        print_step(s->v[i], indent, out);
}
