/* Expressions: what they come to, how they print, what types they get. */
#include <config.h>

#include "lang/lang.h"
#include "tap.h"

struct world {
    struct arena *a;
    struct diags *d;
    struct lang_scope scope;
};

static struct lang_symbol *add(struct world *w, const char *name, enum lang_symbol_kind kind,
                               enum dtype t)
{
    struct lang_symbol *s = ARENA_NEW(w->a, struct lang_symbol);
    s->name = name;
    s->kind = kind;
    s->type = t;
    *VEC_PUSH(w->a, &w->scope.syms) = s;
    return s;
}

/* Dimensions n = 10 and m = 4294967295, scalars of most types. */
static struct world *world_new(void)
{
    struct arena *a = arena_new();
    struct world *w = ARENA_NEW(a, struct world);
    w->a = a;
    w->d = diags_new(a);
    add(w, "n", SYM_DIM, DT_U32);
    add(w, "m", SYM_DIM, DT_U32);
    add(w, "f", SYM_SCALAR, DT_F32);
    add(w, "d", SYM_SCALAR, DT_F64);
    add(w, "h", SYM_SCALAR, DT_F16);
    add(w, "i", SYM_SCALAR, DT_I32);
    add(w, "l", SYM_SCALAR, DT_I64);
    add(w, "u", SYM_SCALAR, DT_U32);
    add(w, "ul", SYM_SCALAR, DT_U64);
    add(w, "b", SYM_SCALAR, DT_U8);
    add(w, "q", SYM_SCALAR, DT_BOOL);
    struct lang_symbol *fixed = add(w, "k", SYM_DIM, DT_U32);
    fixed->has_value = true;
    fixed->value = 64;
    return w;
}

static bool lookup(void *ctx, const struct lang_symbol *sym, double *f, int64_t *i)
{
    (void)ctx;
    *f = 2.5;
    *i = strcmp(sym->name, "n") == 0    ? 10
         : strcmp(sym->name, "m") == 0  ? (int64_t)UINT32_MAX
         : strcmp(sym->name, "ul") == 0 ? -1
                                        : -7;
    return strcmp(sym->name, "b") != 0;
}

static struct lang_expr *checked(struct world *w, const char *text, bool i64)
{
    const struct lang_options opt = {.index_is_i64 = i64};
    const struct source *src = source_new(w->a, "text", text, strlen(text));
    struct lang_expr *e = lang_parse_expr(w->a, source_all(src), NULL, w->d);
    return e && lang_check_expr(w->a, &w->scope, &opt, e, DT_VOID, w->d) ? e : NULL;
}

static const char *first_error(const struct world *w)
{
    return w->d->list.n ? w->d->list.v[0].text : "";
}

/* ---- values ---------------------------------------------------------------------------------- */

static void test_eval(void)
{
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"7 / 2 * 2 + 7 % 2", 7},
        {"-7 / 2", -3},
        {"-7 % 3", -1},
        {"1 << 3 + 1", 16},
        {"10 - 2 - 3", 5},
        {"6 & 3 | 8 ^ 1", 11},
        {"2 < 3 == 1 > 0", 1},
        {"!0 + ~0", 0},
        {"1 ? 2 : 0 ? 3 : 4", 2},
        {"0 ? 1 : 0 ? 3 : 4", 4},
        {"0xff + 0b101", 260},
        {"n + 1", 11},
        {"n - 11", -1},
        {"n - 11 < 0", 1},
        {"ceil_div(n, 4)", 3},
        {"ceil_div(-7, 2)", -3},
        {"ceil_div(0, 4)", 0},
        {"m + 1", 4294967296},
        {"m * 2147483648l", 9223372034707292160},
        {"u32(m + 1)", 0},
        {"u8(300)", 44},
        {"i8(200)", -56},
        {"i32(2.9)", 2},
        {"i32(-2.9)", -2},
        {"u8(1e9)", 255},
        {"i32(nan)", 0},
        {"i64(1e30)", INT64_MAX},
        {"min(n, 4) + max(n, 4)", 14},
        {"clamp(n, 0, 5)", 5},
        {"abs(i)", 7},
        {"f > 2.0", 1},
        {"f == 2.5 && d == 2.5", 1},
        {"i32(f * 2)", 5},
        {"i < 0 || 1 / i == 5", 1},
        {"i > 0 && 1 / (i + 7) == 0", 0},
        {"l", -7},
        {"ul > 0", 1},
        {"k / 8", 8},
        {"k > 5 ? k : n", 64},
        {"popc(255)", 8},
        {"true + true", 2},
        {"-9223372036854775808", INT64_MIN},
        {"-2147483648", INT32_MIN},
        {"9223372036854775807", INT64_MAX},
        {"1e3 == 1000", 1},
        {"0x1p-1 * 4 == 2", 1},
        {"f32(0.1) == 0.1", 1},
        {"f64(0.1) == f64(f32(0.1))", 0},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct world *w = world_new();
        const char *text = rows[r].text;
        int64_t v = 0;
        struct lang_expr *e = checked(w, text, false);
        ok(e && lang_eval_int(e, lookup, NULL, &v, w->d), "%s: %s", text, first_error(w));
        eq_int(v, rows[r].value, "%s", text);
        arena_free(w->a);
    }
}

static void test_eval_errors(void)
{
    static const char *const rows[][2] = {
        {"m * m * m", "overflows"},
        {"m * m * m * m * m", "overflows"},
        {"n / (n - 10)", "division by zero"},
        {"n % (n - 10)", "division by zero"},
        {"ceil_div(4, n - 10)", "division by zero"},
        {"b + 1", "'b' has no value"},
        {"f * 2", "not an integer"},
        {"1 << n + 60", "out of range"},
        {"exp(f) > 2", "can't be computed at launch"},
        {"1 << n - 11", "out of range"},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct world *w = world_new();
        int64_t v;
        struct lang_expr *e = checked(w, rows[r][0], false);
        ok(e && !lang_eval_int(e, lookup, NULL, &v, w->d), "%s is refused", rows[r][0]);
        ok(strstr(first_error(w), rows[r][1]), "%s: %s", rows[r][0], first_error(w));
        arena_free(w->a);
    }
}

/* ---- types ----------------------------------------------------------------------------------- */

static void test_types(void)
{
    static const struct {
        const char *text;
        enum dtype type;
    } rows[] = {
        {"1", DT_I32},
        {"2147483648", DT_I64},
        {"9223372036854775808", DT_U64},
        {"1u", DT_U32},
        {"1l", DT_I64},
        {"1ul", DT_U64},
        {"4294967296u", DT_U64},
        {"1.0", DT_F32},
        {"1.0h", DT_F16},
        {"b + b", DT_I32},
        {"h * h", DT_F32},
        {"q + q", DT_I32},
        {"q && q", DT_BOOL},
        {"i + u", DT_U32},
        {"u + l", DT_I64},
        {"l + ul", DT_U64},
        {"i + f", DT_F32},
        {"l * f", DT_F32},
        {"f * d", DT_F64},
        {"d * 0.1", DT_F64},
        {"h * 0.1", DT_F32},
        {"i < u", DT_BOOL},
        {"b << ul", DT_I64}, /* at launch integers are exact */
        {"u >> 1", DT_I64},
        {"-b", DT_I32},
        {"~u", DT_U32},
        {"!i", DT_BOOL},
        {"q ? h : h", DT_F16},
        {"q ? h : 0", DT_F16},
        {"q ? b : 0", DT_U8},
        {"q ? b : 256", DT_I32},
        {"q ? h : f", DT_F32},
        {"q ? i : 1.0", DT_F32},
        {"exp(h)", DT_F32},
        {"exp(i)", DT_F32},
        {"exp(d)", DT_F64},
        {"pow(f, 2)", DT_F32},
        {"min(i, u)", DT_U32},
        {"min(b, b)", DT_I32},
        {"max(h, 1)", DT_F32},
        {"floor(h)", DT_F32},
        {"popc(l)", DT_U32},
        {"brev(l)", DT_I64},
        {"bfe(u, 3, 4)", DT_U32},
        {"as_u32(f)", DT_U32},
        {"as_f16(1)", DT_F16},
        {"isnan(h)", DT_BOOL},
        {"f16(f)", DT_F16},
        {"(f16)f", DT_F16},
        {"float(d)", DT_F32},
        {"n", DT_U32},
        {"n - 1", DT_U32},
        {"fast_exp(f)", DT_F32},
        {"dp4a(i, i, i)", DT_I32},
        {"dp4a(u, u, u)", DT_U32},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct world *w = world_new();
        struct lang_expr *e = checked(w, rows[r].text, false);
        if (ok(e, "%s: %s", rows[r].text, first_error(w)))
            eq_str(dtype_name(e->type), dtype_name(rows[r].type), "type of %s", rows[r].text);
        arena_free(w->a);
    }
    struct world *w = world_new();
    eq_int(checked(w, "n - 1", true)->type, DT_I64, "in equations a dimension is i64");
    arena_free(w->a);
}

/* Finds the only float literal of an expression. */
static const struct lang_expr *literal_of(const struct lang_expr *e)
{
    const struct lang_expr *found = e->kind == E_FLOAT ? e : NULL;
    for (uint32_t i = 0; i < e->nargs && !found; i++)
        found = literal_of(e->args[i]);
    return found;
}

static void test_literals(void)
{
    static const struct {
        const char *text;
        double value;
    } rows[] = {
        {"f * 0.1", (double)0.1f},
        {"d * 0.1", 0.1},
        {"d * 0.1f", (double)0.1f},
        {"f64(0.1)", 0.1},
        {"f + 1 / 3.0", (double)(float)(1 / 3.0)},
        {"d + 1 / 3.0", 1 / 3.0},
        {"d * (0.5 + 0.1) * 1", 0.6},
        {"d * (q ? 0.1 : f64(1))", 0.1},
        {"d * (q ? 0.1 : 0.5)", 0.1},
        {"d * sqrt(0.1)", 0.1},
        {"f * sqrt(0.1)", (double)0.1f},
        {"d * 16777217", 16777217},
        {"f * 16777217", 16777216},
        {"f * 9007199791611905", (double)(float)9007199791611905},
        {"f * -0.0", -0.0},
        {"d > inf", INFINITY},
        {"f16(0.1)", 0.0999755859375},
        {"e4m3(1e6)", 448},
        {"f32(1e39)", INFINITY},
        {"d * (0.1f + 0.2f)", (double)(0.1f + 0.2f)},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct world *w = world_new();
        struct lang_expr *e = checked(w, rows[r].text, false);
        const struct lang_expr *lit = e ? literal_of(e) : NULL;
        if (ok(lit, "%s: %s", rows[r].text, first_error(w)))
            eq_dbl(lit->fval, rows[r].value, "the literal of %s", rows[r].text);
        arena_free(w->a);
    }
}

static void test_casts_stay(void)
{
    struct world *w = world_new();
    struct lang_expr *e = checked(w, "f32(f * f) + f", false);
    ok(e && e->args[0]->kind == E_CAST && !e->args[0]->is_implicit,
       "a written conversion to the type it has already stays: it is a rounding point");
    e = checked(w, "h + f", false);
    ok(e && e->args[0]->kind == E_CAST && e->args[0]->is_implicit,
       "a widened operand has an implicit cast");
    arena_free(w->a);
}

/* ---- printing -------------------------------------------------------------------------------- */

static void test_print(void)
{
    static const char *const rows[] = {
        "n + 1",
        "a * (b + c)",
        "a - (b - c)",
        "a - b - c",
        "-(-a)",
        "- -a",
        "-(a + b)",
        "!(a && b) || c",
        "a ? b : c ? d : e",
        "(a ? b : c) ? d : e",
        "a + (b ? c : d)",
        "x[i, j + 1]",
        "pad(x[i - 1], 0.0)",
        "sum[k < n](x[k])",
        "sum[a, b in 0..n](x[a, b])",
        "max[k](x[k] * w[k])",
        "argmin[k < 3 * n](x[k])",
        "f16(x[i])",
        "f32(f16(1))",
        "exp(a) + fma(a, b, c)",
        "threadIdx.x + laneid",
        "1u + 2l + 3ul",
        "1.5f",
        "0.1",
        "1e+30",
        "1.0",
        "inf",
        "nan",
        "-inf",
        "a << (b + c)",
        "(a << b) + c",
        "a & (b == c)",
        "a & b == c",
        "(a & b) == c",
        "~a",
        "!a",
        "true && false",
        "a % b / c",
        "a / (b % c)",
        "4294967296",
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct world *w = world_new();
        const struct source *src = source_new(w->a, "text", rows[r], strlen(rows[r]));
        struct lang_expr *e = lang_parse_expr(w->a, source_all(src), NULL, w->d);
        if (ok(e, "%s: %s", rows[r], first_error(w))) {
            const char *once = lang_expr_text(w->a, e);
            src = source_new(w->a, "text", once, strlen(once));
            e = lang_parse_expr(w->a, source_all(src), NULL, w->d);
            eq_str(e ? lang_expr_text(w->a, e) : "", once, "%s prints as %s, and again", rows[r],
                   once);
        }
        arena_free(w->a);
    }
}

static void test_print_exact(void)
{
    static const char *const rows[][2] = {
        {"( a )+b * c", "a + b * c"},
        {"(a+b)*c", "(a + b) * c"},
        {"a-(b-c)", "a - (b - c)"},
        {"- -a", "- -a"},
        {"!!a", "!!a"},
        {"(f32) a * b", "f32(a) * b"},
        {"float(a)", "f32(a)"},
        {"a?b:c", "a ? b : c"},
        {"0x10", "16"},
        {"1.1h", "f16(1.1)"},
        {"f16(1.1)", "f16(1.1)"},
        {"1.50", "1.5"},
        {"2.", "2.0"},
        {"a<b==c", "a < b == c"},
        {"a==(b<c)", "a == b < c"},
        {"sum[ k<n ]( x[k] )", "sum[k < n](x[k])"},
        {"((a?b:c))?d:e", "(a ? b : c) ? d : e"},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct world *w = world_new();
        const struct source *src = source_new(w->a, "text", rows[r][0], strlen(rows[r][0]));
        struct lang_expr *e = lang_parse_expr(w->a, source_all(src), NULL, w->d);
        eq_str(e ? lang_expr_text(w->a, e) : first_error(w), rows[r][1], "%s", rows[r][0]);
        arena_free(w->a);
    }
}

/* Checked expressions print so that they check to the same value and type. */
static void test_print_checked(void)
{
    static const char *const rows[] = {
        "f * 0.1 + 1", "d * 0.1",   "h * 0.1h", "u8(300) + b",  "n * 4 - 1",       "i + u",
        "q ? h : 0",   "~0u",       "-5 + i",   "f64(0.1) * d", "-2147483648 + l", "u64(1) << 40",
        "e4m3(1e6)",   "f32(1e39)", "1.0f / 3", "f32(nan) + f", "fast_exp(f) * 2", "min(i, 5)",
        "i64(i) % 3",  "abs(u)",    "!f",       "f && i",       "u > 3 ? 1.0 : f",
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct world *w = world_new();
        struct lang_expr *e = checked(w, rows[r], false);
        if (ok(e, "%s: %s", rows[r], first_error(w))) {
            const char *once = lang_expr_text(w->a, e);
            struct lang_expr *again = checked(w, once, false);
            ok(again && again->type == e->type, "%s is %s after printing as %s", rows[r],
               dtype_name(e->type), once);
            eq_str(again ? lang_expr_text(w->a, again) : first_error(w), once,
                   "%s prints the same again", rows[r]);
        }
        arena_free(w->a);
    }
}

int main(void)
{
    test_eval();
    test_eval_errors();
    test_types();
    test_literals();
    test_casts_stay();
    test_print();
    test_print_exact();
    test_print_checked();
    return tap_done();
}
