/* Constant expressions: C's operators on 64-bit integers, .s64 and .u64, as the manual's chapter on
 * constants has them. A float literal stands alone, at most with a sign. */
#include <config.h>

#include "ptx/parse.h"

struct level {
    struct ptx_parser *p;
    unsigned depth;
};

static bool expression(struct level *l, int min, struct ptx_constant *c);

static bool float_literal(struct level *l, struct ptx_constant *c)
{
    const struct ptx_token *t = &l->p->lex.tok;
    if (t->kind != PTX_T_F32 && t->kind != PTX_T_F64 && t->kind != PTX_T_DECIMAL)
        return false;
    *c = (struct ptx_constant){.kind = t->kind, .bits = t->bits};
    ptx_lex_next(&l->p->lex);
    return true;
}

static bool primary(struct level *l, struct ptx_constant *c)
{
    struct ptx_parser *p = l->p;
    const struct ptx_token *t = &p->lex.tok;
    if (float_literal(l, c))
        return true;
    if (t->kind == PTX_T_INT) {
        *c = (struct ptx_constant){PTX_T_INT, t->bits, t->is_unsigned};
        ptx_lex_next(&p->lex);
        return true;
    }
    if (t->kind == PTX_T_IDENT && t->len == 7 && memcmp(t->text, "WARP_SZ", 7) == 0) {
        *c = (struct ptx_constant){PTX_T_INT, 32, false};
        ptx_lex_next(&p->lex);
        return true;
    }
    if (ptx_accept(p, '(')) {
        bool to_signed = ptx_at_dot(p, "s64");
        if (to_signed || ptx_at_dot(p, "u64")) {
            ptx_lex_next(&p->lex);
            if (!ptx_expect(p, ')', "the cast") || !expression(l, 99, c))
                return false;
            c->is_unsigned = !to_signed;
            return c->kind == PTX_T_INT || ptx_expected(p, "an integer to cast");
        }
        return expression(l, 0, c) && ptx_expect(p, ')', "the expression");
    }
    return ptx_expected(p, "a constant");
}

static bool unary(struct level *l, struct ptx_constant *c)
{
    struct ptx_parser *p = l->p;
    char op = p->lex.tok.kind == PTX_T_PUNCT ? p->lex.tok.punct : 0;
    if (!op || !strchr("+-~!", op))
        return primary(l, c);
    if (++l->depth > PTX_MAX_DEPTH)
        return ptx_expected(p, "a simpler expression (this one is nested too deep)");
    ptx_lex_next(&p->lex);
    if (!unary(l, c))
        return false;
    l->depth--;
    if (c->kind != PTX_T_INT && op != '+' && op != '-')
        return ptx_expected(p, "an integer");
    if (c->kind == PTX_T_DECIMAL || c->kind == PTX_T_F64)
        c->bits ^= op == '-' ? 1ull << 63 : 0;
    else if (c->kind == PTX_T_F32)
        c->bits ^= op == '-' ? 1ull << 31 : 0;
    else if (op == '-')
        c->bits = -c->bits;
    else if (op == '~')
        c->bits = ~c->bits;
    else if (op == '!')
        *c = (struct ptx_constant){PTX_T_INT, c->bits == 0, false};
    return true;
}

/* The binary operator under the cursor: its precedence (0: none), and one letter for it in *op. */
static int binary(const struct ptx_parser *p, char *op, int *ntoken)
{
    static const struct {
        char text[3];
        char op;
        int precedence;
    } ops[] = {
        {"||", 'o', 1}, {"&&", 'n', 2}, {"==", '=', 6}, {"!=", '!', 6}, {"<=", 'l', 7},
        {">=", 'g', 7}, {"<<", 'L', 8}, {">>", 'R', 8}, {"|", '|', 3},  {"^", '^', 4},
        {"&", '&', 5},  {"<", '<', 7},  {">", '>', 7},  {"+", '+', 9},  {"-", '-', 9},
        {"*", '*', 10}, {"/", '/', 10}, {"%", '%', 10},
    };
    if (p->lex.tok.kind != PTX_T_PUNCT)
        return 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        size_t n = ops[i].text[1] ? 2 : 1;
        if (p->lex.tok.punct != ops[i].text[0])
            continue;
        if (n == 2 && !(p->lex.pos < p->lex.end && *p->lex.pos == ops[i].text[1]))
            continue;
        *op = ops[i].op;
        *ntoken = (int)n;
        return ops[i].precedence;
    }
    return 0;
}

static bool divide(struct ptx_parser *p, char op, bool uns, uint64_t a, uint64_t b, uint64_t *v)
{
    if (b == 0)
        return diag_error(p->diags, ptx_tok_span(p), "division by zero in a constant");
    if (uns)
        *v = op == '/' ? a / b : a % b;
    else if ((int64_t)b == -1)
        *v = op == '/' ? -a : 0;
    else
        *v = (uint64_t)(op == '/' ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b);
    return true;
}

static bool apply(struct ptx_parser *p, char op, struct ptx_constant *x,
                  const struct ptx_constant *y)
{
    uint64_t a = x->bits, b = y->bits, v = 0;
    bool uns = x->is_unsigned || y->is_unsigned, less = uns ? a < b : (int64_t)a < (int64_t)b;
    if (x->kind != PTX_T_INT || y->kind != PTX_T_INT)
        return diag_error(p->diags, ptx_tok_span(p), "an operator on a float constant");
    switch (op) {
    case '+': v = a + b; break;
    case '-': v = a - b; break;
    case '*': v = a * b; break;
    case '/':
    case '%':
        if (!divide(p, op, uns, a, b, &v))
            return false;
        break;
    case '&': v = a & b; break;
    case '|': v = a | b; break;
    case '^': v = a ^ b; break;
    case 'L':
        v = b < 64 ? a << b : 0;
        uns = x->is_unsigned;
        break;
    case 'R':
        uns = x->is_unsigned;
        v = uns ? (b < 64 ? a >> b : 0) : (uint64_t)((int64_t)a >> (b < 64 ? b : 63));
        break;
    case '=': v = a == b; break;
    case '!': v = a != b; break;
    case '<': v = less; break;
    case '>': v = !less && a != b; break;
    case 'l': v = less || a == b; break;
    case 'g': v = !less; break;
    case 'n': v = a && b; break;
    case 'o': v = a || b; break;
    }
    if (strchr("=!<>lgno", op))
        uns = false;
    *x = (struct ptx_constant){PTX_T_INT, v, uns};
    return true;
}

/* Operators of at least that precedence; 99: none, a unary expression. */
static bool expression(struct level *l, int min, struct ptx_constant *c)
{
    struct ptx_parser *p = l->p;
    char op;
    int n, precedence;
    if (++l->depth > PTX_MAX_DEPTH)
        return ptx_expected(p, "a simpler expression (this one is nested too deep)");
    if (!unary(l, c))
        return false;
    while ((precedence = binary(p, &op, &n)) && precedence >= min) {
        struct ptx_constant right;
        while (n--)
            ptx_lex_next(&p->lex);
        if (!expression(l, precedence + 1, &right) || !apply(p, op, c, &right))
            return false;
    }
    if (min == 0 && ptx_accept(p, '?')) {
        struct ptx_constant yes, no;
        if (!expression(l, 0, &yes) || !ptx_expect(p, ':', "the first choice") ||
            !expression(l, 0, &no))
            return false;
        *c = c->bits ? yes : no;
    }
    l->depth--;
    return true;
}

bool ptx_parse_constant(struct ptx_parser *p, struct ptx_constant *c)
{
    struct level l = {.p = p};
    return expression(&l, 0, c);
}

bool ptx_parse_uint(struct ptx_parser *p, uint64_t max, uint64_t *v)
{
    struct span at = ptx_tok_span(p);
    struct ptx_constant c;
    if (!ptx_parse_constant(p, &c))
        return false;
    if (c.kind != PTX_T_INT || (!c.is_unsigned && (int64_t)c.bits < 0) || c.bits > max)
        return diag_error(p->diags, at, "expected an integer from 0 to %llu",
                          (unsigned long long)max);
    *v = c.bits;
    return true;
}
