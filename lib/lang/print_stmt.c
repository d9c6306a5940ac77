#include <config.h>

#include "lang/lang_int.h"

static void indentation(unsigned indent, struct buf *out)
{
    buf_printf(out, "%*s", (int)(indent * 4), "");
}

static void extents(const struct lang_symbol *sym, struct buf *out)
{
    for (uint32_t i = 0; i < sym->rank; i++) {
        buf_putc(out, '[');
        if (sym->dims[i])
            lang_print_expr(sym->dims[i], out);
        buf_putc(out, ']');
    }
}

/* A checked array's values, flat: braces around rows may be left out. */
static void list(const struct lang_stmt *s, struct buf *out)
{
    buf_puts(out, " = {");
    for (uint32_t i = 0; i < s->nlist; i++) {
        buf_puts(out, i ? ", " : "");
        if (s->list[i])
            lang_print_expr(s->list[i], out);
        else if (s->sym->lanes)
            buf_printf(out, "%s(0)", lang_type_name(out->arena, s->sym->type, s->sym->lanes));
        else
            buf_puts(out, s->sym->type == DT_BOOL ? "false" : "0");
    }
    buf_putc(out, '}');
}

static void simple(const struct lang_stmt *s, struct buf *out)
{
    static const char *const op[] = {
        [OP_MUL] = "*",  [OP_DIV] = "/",  [OP_MOD] = "%", [OP_ADD] = "+", [OP_SUB] = "-",
        [OP_SHL] = "<<", [OP_SHR] = ">>", [OP_AND] = "&", [OP_XOR] = "^", [OP_OR] = "|"};
    switch (s->kind) {
    case S_DECL:
        buf_printf(out, "%s%s %s",
                   s->sym->kind == SYM_SHARED ? "shared "
                   : s->sym->is_const         ? "const "
                                              : "",
                   s->sym->type == DT_VOID
                       ? "auto"
                       : lang_type_name(out->arena, s->sym->type, s->sym->lanes),
                   s->sym->name);
        extents(s->sym, out);
        if (s->has_list && !s->rhs) {
            list(s, out);
        } else if (s->rhs) {
            buf_puts(out, " = ");
            lang_print_expr(s->rhs, out);
        }
        break;
    case S_ASSIGN:
        lang_print_expr(s->lhs, out);
        buf_printf(out, " %s= ", s->has_op ? op[s->op] : "");
        lang_print_expr(s->rhs, out);
        break;
    case S_EXPR: lang_print_expr(s->rhs, out); break;
    case S_BREAK: buf_puts(out, "break"); break;
    case S_CONTINUE: buf_puts(out, "continue"); break;
    case S_RETURN:
        buf_puts(out, s->rhs ? "return " : "return");
        if (s->rhs)
            lang_print_expr(s->rhs, out);
        break;
    default: break;
    }
}

/* A branch or a loop's body, always in braces. */
static void braced(const struct lang_stmt *s, unsigned indent, struct buf *out)
{
    buf_puts(out, " {\n");
    if (s->kind == S_BLOCK)
        for (uint32_t i = 0; i < s->nbody; i++)
            lang_print_stmt(s->body[i], indent + 1, out);
    else
        lang_print_stmt(s, indent + 1, out);
    indentation(indent, out);
    buf_putc(out, '}');
}

static void loop_head(const struct lang_stmt *s, unsigned indent, struct buf *out)
{
    if (s->unroll == LANG_UNROLL_FULL)
        buf_puts(out, "#pragma unroll\n");
    else if (s->unroll)
        buf_printf(out, "#pragma unroll %u\n", (unsigned)s->unroll);
    indentation(indent, out);
}

static void print_for(const struct lang_stmt *s, struct buf *out)
{
    buf_puts(out, "for (");
    if (s->init)
        simple(s->init, out);
    buf_puts(out, "; ");
    if (s->cond)
        lang_print_expr(s->cond, out);
    buf_puts(out, "; ");
    if (s->step)
        simple(s->step, out);
    buf_putc(out, ')');
}

void lang_print_stmt(const struct lang_stmt *s, unsigned indent, struct buf *out)
{
    loop_head(s, indent, out);
    switch (s->kind) {
    case S_BLOCK:
        buf_puts(out, "{\n");
        for (uint32_t i = 0; i < s->nbody; i++)
            lang_print_stmt(s->body[i], indent + 1, out);
        indentation(indent, out);
        buf_putc(out, '}');
        break;
    case S_IF:
        buf_puts(out, "if (");
        lang_print_expr(s->cond, out);
        buf_putc(out, ')');
        braced(s->body[0], indent, out);
        if (s->nbody > 1 && s->body[1]) {
            buf_puts(out, " else");
            braced(s->body[1], indent, out);
        }
        break;
    case S_FOR:
        print_for(s, out);
        braced(s->body[0], indent, out);
        break;
    case S_WHILE:
        buf_puts(out, "while (");
        lang_print_expr(s->cond, out);
        buf_putc(out, ')');
        braced(s->body[0], indent, out);
        break;
    case S_DO:
        buf_puts(out, "do");
        braced(s->body[0], indent, out);
        buf_puts(out, " while (");
        lang_print_expr(s->cond, out);
        buf_puts(out, ");");
        break;
    case S_SWITCH:
        buf_puts(out, "switch (");
        lang_print_expr(s->cond, out);
        buf_putc(out, ')');
        braced(s->body[0], indent, out);
        break;
    case S_CASE:
        if (s->rhs) {
            buf_puts(out, "case ");
            lang_print_expr(s->rhs, out);
            buf_putc(out, ':');
        } else {
            buf_puts(out, "default:");
        }
        break;
    default: simple(s, out); buf_putc(out, ';');
    }
    buf_putc(out, '\n');
}
