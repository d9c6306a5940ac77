#include <config.h>

#include "kernels/coverage.h"

#include <stdio.h>

static void count(uint64_t *n)
{
    __atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

struct walk {
    struct coverage *c;
    VEC(const struct lang_func *) seen;
    struct arena *a;
};

static void add_stmt(struct walk *w, const struct lang_stmt *s);

static void add_function(struct walk *w, const struct lang_func *f)
{
    for (size_t i = 0; i < w->seen.n; i++)
        if (w->seen.v[i] == f)
            return;
    *VEC_PUSH(w->a, &w->seen) = f;
    count(&w->c->functions);
    add_stmt(w, f->body);
}

static void add_expr(struct walk *w, const struct lang_expr *e)
{
    struct coverage *c = w->c;
    if (!e)
        return;
    count(&c->expr[e->kind]);
    enum dtype first = e->nargs && e->args[0]->type < DT_COUNT ? e->args[0]->type : DT_COUNT;
    if (e->kind == E_UNARY || e->kind == E_BINARY)
        count(&c->op[e->op][first]);
    else if (e->kind == E_CAST)
        count(&c->cast[first][e->type]);
    else if (e->kind == E_SPECIAL)
        count(&c->special[e->special]);
    else if (e->kind == E_CALL && e->func)
        add_function(w, e->func);
    else if (e->kind == E_CALL)
        count(&c->builtin[e->fn][first]);
    if (e->lanes && e->type < DT_COUNT)
        count(&c->vector[e->type]);
    for (uint32_t i = 0; i < e->nargs; i++)
        add_expr(w, e->args[i]);
}

static void add_declaration(struct coverage *c, const struct lang_symbol *sym)
{
    if (sym->kind == SYM_SHARED)
        count(&c->shared);
    else if (sym->rank)
        count(sym->is_const ? &c->tables : &c->arrays);
    if (sym->type < DT_COUNT)
        count(&c->local[sym->type]);
}

static void add_stmt(struct walk *w, const struct lang_stmt *s)
{
    if (!s)
        return;
    count(&w->c->stmt[s->kind]);
    if (s->kind == S_ASSIGN && s->has_op)
        count(&w->c->compound[s->op][s->lhs->type]);
    if (s->kind == S_DECL)
        add_declaration(w->c, s->sym);
    if (s->unroll)
        count(&w->c->unrolled);
    add_expr(w, s->lhs);
    add_expr(w, s->rhs);
    add_expr(w, s->cond);
    for (uint32_t i = 0; i < s->nlist; i++)
        add_expr(w, s->list[i]);
    add_stmt(w, s->init);
    add_stmt(w, s->step);
    for (uint32_t i = 0; i < s->nbody; i++)
        add_stmt(w, s->body[i]);
}

void coverage_add(struct coverage *c, const struct spec *s)
{
    struct walk w = {.c = c, .a = arena_new()};
    if (!w.a)
        return;
    for (size_t i = 0; i < s->params.n; i++)
        if (s->params.v[i].sym->kind == SYM_BUFFER)
            count(&c->buffer[s->params.v[i].sym->type]);
    add_stmt(&w, s->body);
    arena_free(w.a);
}

/* ---- what it comes to ------------------------------------------------------------------------ */

static const char *const expr_names[COVER_EXPRS] = {
    [E_INT] = "integer literal", [E_FLOAT] = "float literal", [E_BOOL] = "bool literal",
    [E_NAME] = "name",           [E_SPECIAL] = "special",     [E_INDEX] = "element",
    [E_UNARY] = "unary",         [E_BINARY] = "binary",       [E_COND] = "?:",
    [E_CAST] = "conversion",     [E_CALL] = "call",           [E_VECTOR] = "vector",
    [E_MEMBER] = "lane",         [E_ADDRESS] = "address"};
static const char *const stmt_names[COVER_STMTS] = {[S_BLOCK] = "block",
                                                    [S_DECL] = "declaration",
                                                    [S_ASSIGN] = "assignment",
                                                    [S_EXPR] = "call",
                                                    [S_IF] = "if",
                                                    [S_FOR] = "for",
                                                    [S_WHILE] = "while",
                                                    [S_DO] = "do",
                                                    [S_BREAK] = "break",
                                                    [S_CONTINUE] = "continue",
                                                    [S_RETURN] = "return",
                                                    [S_SWITCH] = "switch",
                                                    [S_CASE] = "case"};
static const char *const op_names[COVER_OPS] = {
    "-x", "!", "~",  "+x", "*",  "/",  "%", "+", "-", "<<", ">>",
    "<",  ">", "<=", ">=", "==", "!=", "&", "^", "|", "&&", "||"};

static uint64_t sum(const uint64_t *v, size_t n)
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += v[i];
    return all;
}

static void row(struct buf *out, const char *name, const uint64_t *v, size_t n)
{
    buf_printf(out, "  %-16s %8llu ", name, (unsigned long long)sum(v, n));
    for (size_t t = 0; t < n && t < DT_COUNT; t++)
        if (v[t])
            buf_printf(out, " %s:%llu", dtype_name((enum dtype)t), (unsigned long long)v[t]);
    buf_putc(out, '\n');
}

static void one(struct buf *out, const char *name, uint64_t n)
{
    buf_printf(out, "  %-16s %8llu\n", name, (unsigned long long)n);
}

void coverage_print(const struct coverage *c, struct buf *out)
{
    buf_puts(out, "statements\n");
    for (int k = 0; k < COVER_STMTS; k++)
        one(out, stmt_names[k], c->stmt[k]);
    buf_puts(out, "expressions\n");
    for (int k = 0; k < COVER_EXPRS; k++)
        if (expr_names[k])
            one(out, expr_names[k], c->expr[k]);
    buf_puts(out, "operators, by the type of the left operand\n");
    for (int k = 0; k < COVER_OPS; k++)
        row(out, op_names[k], c->op[k], DT_COUNT);
    buf_puts(out, "compound assignments, by the type of the left side\n");
    for (int k = OP_MUL; k < COVER_OPS; k++)
        if (sum(c->compound[k], DT_COUNT))
            row(out, op_names[k], c->compound[k], DT_COUNT);
    buf_puts(out, "conversions, by the type of the result\n");
    for (int k = 0; k < DT_COUNT; k++)
        row(out, dtype_name((enum dtype)k), c->cast[k], DT_COUNT);
    buf_puts(out, "functions, by the type of the first argument\n");
    for (int k = 0; k < FN_COUNT; k++)
        row(out, lang_builtin_name((enum lang_builtin)k), c->builtin[k], DT_COUNT + 1);
    buf_puts(out, "specials\n");
    for (int k = 0; k < SP_COUNT; k++)
        one(out, lang_special_name((enum lang_special)k), c->special[k]);
    buf_puts(out, "declarations\n");
    row(out, "variables", c->local, DT_COUNT);
    row(out, "buffers", c->buffer, DT_COUNT);
    row(out, "vectors", c->vector, DT_COUNT);
    one(out, "functions", c->functions);
    one(out, "arrays", c->arrays);
    one(out, "tables", c->tables);
    one(out, "shared", c->shared);
    one(out, "#pragma unroll", c->unrolled);
}

static void need(struct buf *out, const char *kind, const char *name, uint64_t n)
{
    if (n == 0)
        buf_printf(out, "%s %s\n", kind, name);
}

/* An operator wants every type that it can have. */
static void need_operators(const struct coverage *c, struct buf *out)
{
    static const enum dtype wide[] = {DT_I32, DT_U32, DT_I64, DT_U64, DT_F32, DT_F64};
    for (int op = 0; op < COVER_OPS; op++) {
        bool logic = op == OP_NOT || op == OP_LAND || op == OP_LOR || op == OP_PLUS;
        bool ints = op == OP_BITNOT || op == OP_MOD || op == OP_SHL || op == OP_SHR ||
                    op == OP_AND || op == OP_XOR || op == OP_OR;
        for (int k = 0; k < 6 && !logic; k++)
            if (!ints || dtype_is_int(wide[k])) {
                char name[32];
                snprintf(name, sizeof name, "%s of %s", op_names[op], dtype_name(wide[k]));
                need(out, "operator", name, c->op[op][wide[k]]);
            }
        if (logic && op != OP_PLUS) /* unary + is its operand */
            need(out, "operator", op_names[op], c->op[op][DT_BOOL]);
    }
}

/* What no kernel of these can hold: approximations and clocks differ from run to run or from device
 * to device. */
static bool is_exempt(enum lang_builtin fn)
{
    static const char *const names[] = {
#include "kernels/exempt.def"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], lang_builtin_name(fn)) == 0)
            return true;
    return false;
}

void coverage_missing(const struct coverage *c, struct buf *out)
{
    for (int k = 0; k < COVER_STMTS; k++)
        need(out, "statement", stmt_names[k], c->stmt[k]);
    for (int k = 0; k < COVER_EXPRS; k++)
        if (expr_names[k])
            need(out, "expression", expr_names[k], c->expr[k]);
    need_operators(c, out);
    for (int k = 0; k < FN_COUNT; k++)
        if (!is_exempt((enum lang_builtin)k))
            need(out, "function", lang_builtin_name((enum lang_builtin)k),
                 sum(c->builtin[k], DT_COUNT + 1));
    for (int k = 0; k < SP_MULTIPROCESSORS; k++) /* the last one, which is for grids alone */
        need(out, "special", lang_special_name((enum lang_special)k), c->special[k]);
    for (int k = 0; k < DT_COUNT; k++)
        need(out, "buffer of", dtype_name((enum dtype)k), c->buffer[k]);
    need(out, "declaration of", "an array", c->arrays);
    need(out, "declaration of", "a table", c->tables);
    need(out, "declaration of", "shared memory", c->shared);
    need(out, "pragma", "unroll", c->unrolled);
}
