#include <config.h>

#include "lang/lang_int.h"

#include "base/num.h"

#include <math.h>

/* Binding strength: 0 conditional, 1..10 binary (as in parse_expr.c), 11 unary, 12 primary. */
enum { COND = 0, UNARY = 11, PRIMARY = 12 };

static const struct {
    const char *text;
    int level;
} ops[] = {[OP_NEG] = {"-", UNARY},  [OP_NOT] = {"!", UNARY}, [OP_BITNOT] = {"~", UNARY},
           [OP_PLUS] = {"+", UNARY}, [OP_MUL] = {"*", 10},    [OP_DIV] = {"/", 10},
           [OP_MOD] = {"%", 10},     [OP_ADD] = {"+", 9},     [OP_SUB] = {"-", 9},
           [OP_SHL] = {"<<", 8},     [OP_SHR] = {">>", 8},    [OP_LT] = {"<", 7},
           [OP_GT] = {">", 7},       [OP_LE] = {"<=", 7},     [OP_GE] = {">=", 7},
           [OP_EQ] = {"==", 6},      [OP_NE] = {"!=", 6},     [OP_AND] = {"&", 5},
           [OP_XOR] = {"^", 4},      [OP_OR] = {"|", 3},      [OP_LAND] = {"&&", 2},
           [OP_LOR] = {"||", 1}};

static void print(const struct lang_expr *e, int lowest, struct buf *out);

static void print_int(const struct lang_expr *e, struct buf *out)
{
    bool sign = dtype_class(e->type) == DTC_I;
    bool negative = sign && (int64_t)e->ival < 0;
    const char *suffix = !e->suffixed        ? ""
                         : e->type == DT_U32 ? "u"
                         : e->type == DT_I64 ? "l"
                         : e->type == DT_U64 ? "ul"
                                             : NULL;
    bool cast = !suffix && e->type != DT_VOID;
    if (cast)
        buf_printf(out, "%s(", dtype_name(e->type));
    if (negative)
        buf_printf(out, "-%llu%s", (unsigned long long)-e->ival, suffix ? suffix : "");
    else
        buf_printf(out, "%llu%s", (unsigned long long)e->ival, suffix ? suffix : "");
    if (cast)
        buf_putc(out, ')');
}

/* The fewest digits that are read back as the value. */
static void shortest(const struct lang_expr *e, char text[32])
{
    for (int digits = 1; digits <= 17; digits++) {
        double v = 0;
        num_print_digits(e->fval, digits, text);
        num_double(text, strlen(text), &v);
        if (v == e->fval || (e->type < DT_COUNT && dtype_round(e->type, v) == e->fval))
            return; /* the type is rounded to in checked expressions only */
    }
}

static void print_float(const struct lang_expr *e, struct buf *out)
{
    char text[32];
    bool finite = isfinite(e->fval);
    bool f = e->suffixed && e->type == DT_F32 && finite, cast = e->suffixed && !f;
    if (finite)
        shortest(e, text);
    const char *more = finite && !strpbrk(text, ".e") ? ".0" : "";
    const char *word = isnan(e->fval) ? "nan" : e->fval < 0 ? "-inf" : "inf";
    if (cast)
        buf_printf(out, "%s(%s%s)", dtype_name(e->type), finite ? text : word, more);
    else
        buf_printf(out, "%s%s%s", finite ? text : word, more, f ? "f" : "");
}

static void print_list(const struct lang_expr *e, const char *open, const char *close,
                       struct buf *out)
{
    buf_puts(out, open);
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (i)
            buf_puts(out, ", ");
        print(e->args[i], COND, out);
    }
    buf_puts(out, close);
}

static void print_element(const struct lang_expr *e, struct buf *out)
{
    const char *name = e->sym ? e->sym->name : e->name;
    if (e->pad)
        buf_puts(out, "pad(");
    buf_puts(out, name);
    if (e->nargs)
        print_list(e, "[", "]", out);
    if (e->pad) {
        buf_puts(out, ", ");
        print(e->pad, COND, out);
        buf_putc(out, ')');
    }
}

/* "sum[i < n](e)": of a reduction or a notation. */
static void print_indexed(const struct lang_expr *e, const char *name, struct buf *out)
{
    buf_printf(out, "%s[", name);
    for (uint32_t i = 0; i < e->nindex; i++) {
        const struct lang_symbol *s = e->index[i];
        buf_printf(out, "%s%s", i ? ", " : "", s->name);
        if (s->low) {
            buf_puts(out, " in ");
            print(s->low, 8, out);
            buf_puts(out, "..");
            print(s->dims[0], 8, out);
        } else if (s->dims) {
            buf_puts(out, " < ");
            print(s->dims[0], 8, out);
        }
    }
    print_list(e, "](", ")", out);
}

static void print_call(const struct lang_expr *e, struct buf *out)
{
    const char *comma = e->nargs ? ", " : "";
    buf_puts(out, e->func ? e->func->name : e->name);
    print_list(e, "(", "", out);
    if (e->order_span.src) {
        buf_printf(out, "%sorder = %s", comma, lang_order_name(e->order));
        comma = ", ";
    }
    if (e->scope_span.src)
        buf_printf(out, "%sscope = %s", comma, lang_memory_scope_name(e->scope));
    buf_putc(out, ')');
}

static void print_string(const char *s, struct buf *out)
{
    static const char from[] = "\n\t\r\a\\\"", to[] = "ntra\\\"";
    buf_putc(out, '"');
    for (; *s; s++) {
        const char *at = strchr(from, *s);
        if (at)
            buf_printf(out, "\\%c", to[at - from]);
        else if ((unsigned char)*s < ' ' || *s == 127)
            buf_printf(out, "\\x%02x", (unsigned)*s);
        else
            buf_putc(out, *s);
    }
    buf_putc(out, '"');
}

static int strength(const struct lang_expr *e)
{
    switch (e->kind) {
    case E_UNARY:
    case E_BINARY: return ops[e->op].level;
    case E_COND: return COND;
    case E_INT: return dtype_class(e->type) == DTC_I && (int64_t)e->ival < 0 ? UNARY : PRIMARY;
    case E_FLOAT: return signbit(e->fval) && !isnan(e->fval) ? UNARY : PRIMARY;
    default: return PRIMARY;
    }
}

static void print_operator(const struct lang_expr *e, int level, struct buf *out)
{
    if (e->kind == E_UNARY) {
        buf_puts(out, ops[e->op].text);
        /* a blank keeps - - x from becoming --x */
        size_t at = out->len;
        print(e->args[0], UNARY, out);
        if (out->len > at && out->text[at] == ops[e->op].text[0] && e->op != OP_NOT) {
            buf_putc(out, ' ');
            memmove(out->text + at + 1, out->text + at, out->len - 1 - at);
            out->text[at] = ' ';
        }
        return;
    }
    print(e->args[0], level, out);
    buf_putc(out, ' ');
    buf_puts(out, ops[e->op].text);
    buf_putc(out, ' ');
    print(e->args[1], level + 1, out);
}

static void print(const struct lang_expr *e, int lowest, struct buf *out)
{
    while ((e->kind == E_CAST || e->kind == E_VECTOR) && e->is_implicit)
        e = e->args[0];
    int level = strength(e);
    if (level < lowest)
        buf_putc(out, '(');
    switch (e->kind) {
    case E_INT: print_int(e, out); break;
    case E_FLOAT: print_float(e, out); break;
    case E_BOOL: buf_puts(out, e->ival ? "true" : "false"); break;
    case E_NAME: buf_puts(out, e->sym ? e->sym->name : e->name); break;
    case E_SPECIAL: buf_puts(out, lang_special_name(e->special)); break;
    case E_INDEX: print_element(e, out); break;
    case E_UNARY:
    case E_BINARY: print_operator(e, level, out); break;
    case E_COND:
        print(e->args[0], 1, out);
        buf_puts(out, " ? ");
        print(e->args[1], COND, out);
        buf_puts(out, " : ");
        print(e->args[2], COND, out);
        break;
    case E_VECTOR:
        if (!e->lanes) { /* a list in braces */
            print_list(e, "{", "}", out);
            break;
        }
        /* fall through */
    case E_CAST:
        buf_puts(out, lang_type_name(out->arena, e->type, e->lanes));
        print_list(e, "(", ")", out);
        break;
    case E_CALL:
        if (e->nindex)
            print_indexed(e, e->name, out);
        else
            print_call(e, out);
        break;
    case E_REDUCE: print_indexed(e, lang_reduce_name(e->reduce), out); break;
    case E_MEMBER:
        print(e->args[0], PRIMARY, out);
        buf_printf(out, ".%c", "xyzw"[e->ival & 3]);
        break;
    case E_ADDRESS:
        buf_putc(out, '&');
        print(e->args[0], PRIMARY, out);
        break;
    case E_STRING: print_string(e->text, out); break;
    }
    if (level < lowest)
        buf_putc(out, ')');
}

void lang_print_expr(const struct lang_expr *e, struct buf *out)
{
    print(e, COND, out);
}

void lang_print_shape(const struct lang_symbol *t, struct buf *out)
{
    buf_putc(out, '[');
    for (uint32_t i = 0; i < t->rank; i++) {
        buf_puts(out, i ? ", " : "");
        print(t->dims[i], COND, out);
    }
    buf_putc(out, ']');
}

const char *lang_expr_text(struct arena *a, const struct lang_expr *e)
{
    struct buf b = buf_in(a);
    print(e, COND, &b);
    return buf_text(&b);
}

struct fixed {
    struct buf text;
    const struct lang_symbol *seen[8];
    uint32_t n;
};

static void list_fixed(struct fixed *f, const struct lang_expr *e)
{
    bool new = e->kind == E_NAME && e->sym->kind == SYM_DIM && e->sym->has_value;
    for (uint32_t i = 0; i < f->n && new; i++)
        new = f->seen[i] != e->sym;
    if (new && f->n < sizeof f->seen / sizeof *f->seen) {
        buf_printf(&f->text, "%s%s is %llu", f->n ? " and " : "", e->sym->name,
                   (unsigned long long)e->sym->value);
        f->seen[f->n++] = e->sym;
    }
    if (e->kind == E_NAME && e->sym->of)
        list_fixed(f, e->sym->of);
    for (uint32_t i = 0; i < e->nargs; i++)
        list_fixed(f, e->args[i]);
}

const char *lang_fixed_text(struct arena *a, const struct lang_expr *e)
{
    struct fixed f = {.text = buf_in(a)};
    list_fixed(&f, e);
    return buf_text(&f.text);
}
