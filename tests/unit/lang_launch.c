/* Expressions of a launch that are built as trees: what is folded, how they print, and that they
 * come to what they say. */
#include <config.h>

#include "lang/launch.h"
#include "tap.h"

struct world {
    struct arena *a;
    struct lang_scope scope;
    struct lang_symbol *sym[4];
    struct lang_expr *n, *m, *k; /* names of dimensions; k is fixed, 64 */
};

enum { FIXED = 64 };

static struct lang_expr *dimension(struct world *w, const char *name)
{
    struct lang_symbol *s = ARENA_NEW(w->a, struct lang_symbol);
    *s = (struct lang_symbol){.name = name, .kind = SYM_DIM, .type = DT_U32};
    *VEC_PUSH(w->a, &w->scope.syms) = s;
    struct lang_expr *e = ARENA_NEW(w->a, struct lang_expr);
    *e = (struct lang_expr){.kind = E_NAME, .type = DT_I64, .sym = s, .name = name, .height = 1};
    return e;
}

static struct world *world_new(void)
{
    struct arena *a = arena_new();
    struct world *w = ARENA_NEW(a, struct world);
    w->a = a;
    w->n = dimension(w, "n");
    w->m = dimension(w, "m");
    w->k = dimension(w, "k");
    w->k->sym->has_value = true;
    w->k->sym->value = FIXED;
    return w;
}

static void prints(struct world *w, const struct lang_expr *e, const char *want)
{
    eq_str(lang_expr_text(w->a, e), want, "prints as %s", want);
}

/* ---- folding --------------------------------------------------------------------------------- */

static void test_fold(struct world *w)
{
    struct arena *a = w->a;
    struct lang_expr *n = w->n, *zero = lx_int(a, 0), *one = lx_int(a, 1);
    ok(lx_add(a, n, zero) == n && lx_add(a, zero, n) == n && lx_sub(a, n, zero) == n, "n + 0");
    ok(lx_mul(a, n, one) == n && lx_mul(a, one, n) == n, "n * 1");
    ok(lx_div(a, n, one) == n && lx_ceil_div(a, n, one) == n, "n / 1");
    prints(w, lx_mul(a, n, zero), "0");
    prints(w, lx_add(a, lx_int(a, 3), lx_int(a, 4)), "7");
    prints(w, lx_ceil_div_int(a, lx_add_int(a, w->k, 1), 8), "9");
    prints(w, lx_clamp(a, lx_int(a, 40), one, lx_int(a, 32)), "32");
    prints(w, lx_clamp(a, n, one, lx_clamp(a, zero, one, lx_int(a, 32))), "1");
    ok(lx_min(a, n, n) == n && lx_max(a, n, n) == n, "the less of n and n");
    prints(w, lx_max(a, lx_int(a, 3), lx_int(a, 8)), "8");
    /* what can't be computed stays, for the launch to refuse */
    prints(w, lx_div_int(a, one, 0), "1 / 0");
    prints(w, lx_add_int(a, lx_int(a, INT64_MAX), 1), "9223372036854775807 + 1");
}

static void test_conditions(struct world *w)
{
    struct arena *a = w->a;
    struct lang_expr *yes = lx_bool(a, true), *no = lx_bool(a, false);
    struct lang_expr *small = lx_at_most(a, w->n, 4);
    ok(lx_and(a, NULL, NULL) == NULL, "no condition and none");
    ok(lx_and(a, small, NULL) == small && lx_and(a, NULL, small) == small, "one alone");
    ok(lx_and(a, small, yes) == small && lx_and(a, yes, small) == small, "and true");
    ok(lx_and(a, small, no) == no && lx_and(a, no, small) == no, "and false");
    prints(w, lx_is_multiple(a, w->n, 1), "true");
    prints(w, lx_is_multiple(a, w->k, 8), "true");
    prints(w, lx_is_multiple(a, w->k, 10), "false");
    prints(w, lx_at_least(a, w->k, 65), "false");
    ok(lx_select(a, yes, w->n, w->m) == w->n && lx_select(a, no, w->n, w->m) == w->m, "known");
    ok(lx_select(a, small, w->n, w->n) == w->n, "the same in both cases");
}

/* ---- text and value -------------------------------------------------------------------------- */

static bool lookup(void *ctx, const struct lang_symbol *sym, double *f, int64_t *i)
{
    const struct world *w = ctx;
    *f = 0;
    *i = sym == w->n->sym ? 10 : 7;
    return true;
}

/* Multiprocessors aside, which only the launch knows. */
static struct lang_expr *read_back(struct world *w, const char *text)
{
    struct diags *d = diags_new(w->a);
    const struct lang_options opt = {.index_is_i64 = true};
    const struct source *src = source_new(w->a, "text", text, strlen(text));
    struct lang_expr *e = lang_parse_expr(w->a, source_all(src), NULL, d);
    return e && lang_check_expr(w->a, &w->scope, &opt, e, DT_VOID, d) ? e : NULL;
}

static void comes_to(struct world *w, const struct lang_expr *e, const char *text, int64_t value)
{
    struct diags *d = diags_new(w->a);
    int64_t v = 0;
    prints(w, e, text);
    ok(lang_eval_int(e, lookup, w, &v, d) && v == value, "%s is %lld, not %lld", text,
       (long long)value, (long long)v);
    const struct lang_expr *again = read_back(w, text);
    ok(again && lx_same(e, again), "%s is read back as it was", text);
    v = 0;
    ok(again && lang_eval_int(again, lookup, w, &v, d) && v == value, "and comes to the same");
}

static void test_text(struct world *w)
{
    struct arena *a = w->a;
    struct lang_expr *n = w->n, *m = w->m, *sum = lx_add(a, n, m);
    comes_to(w, lx_mul(a, m, sum), "m * (n + m)", 119);
    comes_to(w, lx_add(a, m, lx_mul(a, n, m)), "m + n * m", 77);
    comes_to(w, lx_sub(a, n, lx_sub(a, m, lx_int(a, 2))), "n - (m - 2)", 5);
    comes_to(w, lx_mul(a, m, lx_div_int(a, n, 4)), "m * (n / 4)", 14);
    comes_to(w, lx_div_int(a, lx_mul(a, m, n), 4), "m * n / 4", 17);
    comes_to(w, lx_ceil_div_int(a, sum, 4), "ceil_div(n + m, 4)", 5);
    comes_to(w, lx_is_multiple(a, lx_mul_int(a, n, 2), 8), "n * 2 % 8 == 0", 0);
    comes_to(w, lx_and(a, lx_at_least(a, n, 3), lx_compare(a, OP_LT, m, lx_add_int(a, n, 1))),
             "n >= 3 && m < n + 1", 1);
    comes_to(w, lx_clamp(a, n, lx_int(a, 1), lx_min(a, m, lx_int(a, 9))), "clamp(n, 1, min(m, 9))",
             7);
    struct lang_expr *choice = lx_select(a, lx_at_most(a, n, 4), m, lx_max(a, n, m));
    comes_to(w, choice, "n <= 4 ? m : max(n, m)", 10);
    comes_to(w, lx_add_int(a, choice, 1), "(n <= 4 ? m : max(n, m)) + 1", 11);
    prints(w, lx_min(a, n, lx_multiprocessors(a)), "min(n, multiprocessors)");
}

/* Sums, products and conjunctions lean to the left, however they are put together. */
static void test_left(struct world *w)
{
    struct arena *a = w->a;
    struct lang_expr *n = w->n, *m = w->m, *k = w->k;
    comes_to(w, lx_add(a, n, lx_add(a, m, lx_add(a, n, m))), "n + m + n + m", 34);
    comes_to(w, lx_mul(a, lx_mul(a, n, m), lx_mul(a, n, k)), "n * m * n * k", 44800);
    struct lang_expr *x = lx_at_least(a, n, 1), *y = lx_at_least(a, m, 1);
    comes_to(w, lx_and(a, x, lx_and(a, y, lx_at_most(a, n, 99))), "n >= 1 && m >= 1 && n <= 99", 1);
}

static void test_same(struct world *w)
{
    struct arena *a = w->a;
    struct lang_expr *x = lx_ceil_div_int(a, lx_mul(a, w->n, w->m), 4);
    ok(lx_same(x, lx_ceil_div_int(a, lx_mul(a, w->n, w->m), 4)), "built twice");
    ok(!lx_same(x, lx_ceil_div_int(a, lx_mul(a, w->m, w->n), 4)), "in another order");
    ok(!lx_same(x, lx_ceil_div_int(a, lx_mul(a, w->n, w->m), 5)), "with another number");
    ok(!lx_same(x, lx_div_int(a, lx_mul(a, w->n, w->m), 4)), "with another function");
    struct lang_expr *copy = lx_operand(a, x);
    ok(copy != x && lx_same(copy, x), "an operand that is a copy");
    ok(!lx_same(w->n, w->m) && lx_same(w->n, lx_operand(a, w->n)), "names");
}

/* What counts beside the operands: for expressions of a launch and of equations alike. */
static void test_same_node(struct world *w)
{
    struct lang_expr *arg[] = {w->n, w->m};
    const struct lang_expr call = {
        .kind = E_CALL, .fn = FN_EXP, .type = DT_F32, .nargs = 1, .args = arg};
    struct lang_expr e = call;
    ok(lang_same_node(&call, &e), "two calls");
    e.fn = FN_SIN;
    ok(!lang_same_node(&call, &e), "of another function");
    e = call, e.rounded = true;
    ok(!lang_same_node(&call, &e), "whose result may be less accurate");
    e.rounded = false, e.fast = true;
    ok(!lang_same_node(&call, &e), "of the hardware's approximation");
    e = call, e.nargs = 2;
    ok(!lang_same_node(&call, &e), "with another number of operands");
    const struct lang_expr act = {.kind = E_CALL, .fn = FN_ATOMIC_ADD, .nargs = 2, .args = arg};
    ok(!lang_same_node(&act, &act), "what does something is never the same twice");
    const struct lang_expr read = {.kind = E_INDEX, .sym = w->n->sym, .nargs = 1, .args = arg};
    e = read;
    ok(lang_same_node(&read, &e), "two reads");
    e.pad = w->k;
    ok(!lang_same_node(&read, &e), "with a pad");
    const struct lang_expr cast = {.kind = E_CAST, .type = DT_F16, .nargs = 1, .args = arg};
    e = cast, e.type = DT_BF16;
    ok(!lang_same_node(&cast, &e), "to another type");
    const struct lang_expr zero = {.kind = E_FLOAT, .type = DT_F32, .fval = 0.0};
    e = zero, e.fval = -0.0;
    ok(!lang_same_node(&zero, &e), "-0 is another number");
    e = (struct lang_expr){.kind = E_REDUCE, .nargs = 1, .args = arg};
    ok(!lang_same_node(&e, &e), "whose indices are its own");
}

int main(void)
{
    struct world *w = world_new();
    test_fold(w);
    test_conditions(w);
    test_text(w);
    test_left(w);
    test_same(w);
    test_same_node(w);
    arena_free(w->a);
    return tap_done();
}
