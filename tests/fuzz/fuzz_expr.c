/* Any bytes as a text of the language; the first one says which kind. What is parsed prints so that
 * it parses and prints the same again, and what is checked is evaluated. */
#include <config.h>

#include "lang/lang.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        abort();
}

static struct lang_symbol *add(struct arena *a, struct lang_scope *s, const char *name,
                               enum lang_symbol_kind kind, enum dtype type)
{
    struct lang_symbol *sym = ARENA_NEW(a, struct lang_symbol);
    sym->name = name;
    sym->kind = kind;
    sym->type = type;
    *VEC_PUSH(a, &s->syms) = sym;
    return sym;
}

/* Dimensions m, n and k (64), scalars s, f and d, and buffers of one, two and no dimensions. */
static void declare(struct arena *a, struct lang_scope *s)
{
    static const char *const decl[][2] = {
        {"x", "in f32[n]"}, {"h", "in f16[m, n]"}, {"y", "out f32[n]"}, {"z", "inout i32[]"},
        {"b", "in i4[k]"},  {"s", "i32"},          {"f", "f32"},        {"d", "f64"},
    };
    const struct lang_options opt = {.index_is_i64 = true};
    add(a, s, "m", SYM_DIM, DT_U32);
    add(a, s, "n", SYM_DIM, DT_U32);
    struct lang_symbol *k = add(a, s, "k", SYM_DIM, DT_U32);
    k->has_value = true;
    k->value = 64;
    for (size_t i = 0; i < sizeof decl / sizeof *decl; i++) {
        struct lang_symbol *sym = add(a, s, decl[i][0], SYM_SCALAR, DT_F32);
        struct diags *d = diags_new(a);
        struct lang_expr *value;
        const struct source *src = source_new(a, "decl", decl[i][1], strlen(decl[i][1]));
        must(lang_parse_param(a, source_all(src), NULL, sym, &value, d));
        for (uint32_t r = 0; r < sym->rank; r++)
            must(lang_check_expr(a, s, &opt, sym->dims[r], DT_VOID, d));
    }
}

static bool lookup(void *ctx, const struct lang_symbol *sym, double *f, int64_t *i)
{
    (void)ctx;
    *f = 1.5;
    *i = 100;
    return sym->kind != SYM_BUFFER;
}

/* T is a type here. */
static const struct lang_types *some_types(struct arena *a)
{
    struct lang_types *types = ARENA_NEW(a, struct lang_types);
    types->v = ARENA_ARRAY(a, 1, struct lang_type);
    types->v[0] = (struct lang_type){"T", DT_F16, false};
    types->n = 1;
    return types;
}

static void expression(struct arena *a, struct lang_scope *scope, struct span text, struct diags *d)
{
    const struct lang_options opt = {0};
    struct lang_expr *e = lang_parse_expr(a, text, some_types(a), d);
    int64_t v;
    if (!e)
        return;
    const char *once = lang_expr_text(a, e);
    struct lang_expr *again =
        lang_parse_expr(a, source_all(source_new(a, "again", once, strlen(once))), NULL, d);
    if (d->nerror == 0) /* parentheses may make it too deep */
        must(strcmp(lang_expr_text(a, again), once) == 0);
    if (lang_check_expr(a, scope, &opt, e, DT_VOID, d)) {
        lang_eval_int(e, lookup, NULL, &v, d);
        lang_expr_text(a, e);
    }
}

static void body(struct arena *a, struct lang_scope *scope, struct span text, struct diags *d)
{
    const struct lang_options opt = {0};
    struct lang_stmt *s = lang_parse_body(a, text, some_types(a), d);
    struct buf b = buf_in(a);
    if (!s)
        return;
    lang_print_stmt(s, 0, &b);
    if (lang_check_body(a, scope, &opt, s, d))
        lang_print_stmt(s, 0, &b);
}

static void equations(struct arena *a, struct lang_scope *scope, struct span text, bool reference,
                      struct diags *d)
{
    const struct lang_options opt = {
        .types = some_types(a), .index_is_i64 = true, .allow_recurrence = reference};
    struct lang_equations e;
    if (!lang_equations(a, text, scope, &opt, &e, d))
        return;
    for (size_t i = 0; i < e.n; i++) {
        must(e.v[i]->rhs->type == e.v[i]->sym->type);
        lang_expr_text(a, e.v[i]->rhs);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct lang_scope scope = {0}, functions = {.up = &scope};
    const struct source *src = source_new(a, "fuzz", (const char *)data + 1, size - 1);
    struct span text = source_all(src);
    struct lang_symbol sym = {0};
    struct lang_expr *value;
    const struct lang_options opt = {0};
    struct buf b = buf_in(a);
    declare(a, &scope);
    switch (data[0] % 6) {
    case 0: expression(a, &scope, text, d); break;
    case 1: body(a, &scope, text, d); break;
    case 2: equations(a, &scope, text, false, d); break;
    case 3: equations(a, &scope, text, true, d); break;
    case 4: lang_functions(a, text, &functions, &opt, d); break;
    default: lang_parse_param(a, text, some_types(a), &sym, &value, d);
    }
    diags_format(d, "fuzz", false, &b);
    arena_free(a);
    return 0;
}
