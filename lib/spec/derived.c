/* dims: of a spec, and derived: of a contract: dimensions that others say, "oh: h - r + 1". */
#include <config.h>

#include "spec/spec_int.h"

/* MOST_NODES: of a dimension's expression with all that it is derived from put in place of their
 * names. What evaluates one walks through so many. */
enum { MOST = 512, MOST_NODES = 10000 };

static bool read_derived(struct param_reader *p, const struct yaml_pair *pair)
{
    struct span text;
    if (!check_symbol_name(pair->key, p->types, "a dimension", p->d))
        return false;
    if (p->derived.n == MOST)
        return diag_error(p->d, pair->key->span, "more than %d dimensions", MOST);
    if (pair->value->kind == YAML_SCALAR && pair->value->len == 0)
        return diag_error(p->d, pair->key->span,
                          "nothing says what '%s' is; write it after the ':', as in 'h - r + 1'",
                          pair->key->text);
    if (!text_span(pair->value, pair->key->text, &text, p->d))
        return false;
    struct lang_expr *of = lang_parse_expr(p->a, text_trim(text), p->types, p->d);
    if (!of)
        return false;
    struct lang_symbol *sym = ARENA_NEW(p->a, struct lang_symbol);
    *sym = (struct lang_symbol){.kind = SYM_DIM,
                                .name = pair->key->text,
                                .span = pair->key->span,
                                .type = DT_U32,
                                .of = of};
    *VEC_PUSH(p->a, &p->derived) = sym;
    *VEC_PUSH(p->a, &p->scope->syms) = sym;
    return true;
}

bool params_derive(struct param_reader *p, const struct yaml_value *v, const char *key)
{
    bool good = true;
    if (v->kind != YAML_MAP)
        return diag_error(p->d, v->span, "'%s' is a map, with 'name: h - r + 1' on each line", key);
    for (size_t i = 0; i < v->n && p->d->nerror <= DIAG_LIMIT; i++)
        good &= read_derived(p, &v->pair[i]);
    return good;
}

/* ---- what they are made of ------------------------------------------------------------------- */

/* A derived dimension that is looked at, and what is derived from it. */
struct path {
    const struct lang_symbol *sym;
    const struct path *up;
};

/* "a needs b, which needs c, which needs ": from `first` down to k. */
static void print_way(const struct path *k, const struct lang_symbol *first, struct buf *out)
{
    if (k->sym != first)
        print_way(k->up, first, out);
    buf_printf(out, k->sym == first ? "%s needs " : "%s, which needs ", k->sym->name);
}

static bool say_circle(struct param_reader *p, const struct path *at, const struct lang_symbol *sym)
{
    struct buf way = buf_in(p->a);
    print_way(at, sym, &way);
    return diag_error(p->d, sym->span, "'%s' is derived from itself: %s%s", sym->name,
                      buf_text(&way), sym->name);
}

static bool say_long(struct param_reader *p, const struct path *at)
{
    while (at->up)
        at = at->up;
    return diag_error(p->d, at->sym->span, "what '%s' is derived from is too long", at->sym->name);
}

/* Are the names in e dimensions and integer scalars, and nothing derived from itself? Counts the
 * nodes. */
static bool check_names(struct param_reader *p, const struct lang_expr *e, const struct path *at,
                        size_t *nodes)
{
    const struct lang_symbol *sym = e->kind == E_NAME ? lang_find(p->scope, e->name) : NULL;
    if (++*nodes > MOST_NODES)
        return say_long(p, at);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!check_names(p, e->args[i], at, nodes))
            return false;
    if (sym && (sym->kind == SYM_BUFFER || dtype_is_float(sym->type)))
        return diag_error(p->d, e->span,
                          "'%s' is no integer that is known at launch; a dimension follows from "
                          "others and from integer scalars",
                          e->name);
    if (!sym || !sym->of)
        return true;
    for (const struct path *k = at; k; k = k->up)
        if (k->sym == sym)
            return say_circle(p, at, sym);
    const struct path below = {sym, at};
    return check_names(p, sym->of, &below, nodes);
}

static bool check_derived(struct param_reader *p, struct lang_symbol *sym)
{
    static const struct lang_options options = {.index_is_i64 = true, .exact = true};
    const struct path at = {sym, NULL};
    size_t nodes = 0;
    if (!check_names(p, sym->of, &at, &nodes) ||
        !lang_check_expr(p->a, p->scope, &options, sym->of, DT_VOID, p->d))
        return false;
    return dtype_is_int(sym->of->type) ||
           diag_error(p->d, sym->of->span, "a dimension is an integer, not %s",
                      sym->of->type == DT_VOID ? "nothing" : dtype_name(sym->of->type));
}

bool params_check_derived(struct param_reader *p)
{
    for (size_t i = 0; i < p->derived.n; i++)
        if (!check_derived(p, p->derived.v[i]))
            return false;
    return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Do fixed dimensions alone say it? */
static bool is_settled(const struct lang_expr *e)
{
    if (e->kind == E_NAME)
        return e->sym->has_value || (e->sym->of && is_settled(e->sym->of));
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_settled(e->args[i]))
            return false;
    return true;
}

bool params_settle_derived(struct arena *a, struct lang_symbol *const *derived, size_t n,
                           struct diags *d)
{
    bool good = true;
    for (size_t i = 0; i < n; i++) {
        struct lang_symbol *sym = derived[i];
        int64_t v;
        if (!is_settled(sym->of))
            continue;
        if (!lang_eval_int(sym->of, NULL, NULL, &v, d)) {
            good = false;
            continue;
        }
        if (v < 1 || v > UINT32_MAX) {
            const char *fixed = lang_fixed_text(a, sym->of);
            good = diag_error(d, sym->of->span, "the dimension '%s' can't be %lld (1 to %u)%s%s",
                              sym->name, (long long)v, UINT32_MAX, *fixed ? "; " : "", fixed);
            continue;
        }
        sym->has_value = true;
        sym->value = (uint64_t)v;
    }
    return good;
}

struct names {
    const char *v[8];
    size_t n;
};

static void find_names(const struct lang_expr *e, struct names *out)
{
    bool is_new = e->kind == E_NAME && !e->sym->of && e->sym->kind == SYM_DIM;
    for (size_t i = 0; i < out->n && is_new; i++)
        is_new = strcmp(out->v[i], e->sym->name) != 0;
    if (is_new && out->n < sizeof out->v / sizeof *out->v)
        out->v[out->n++] = e->sym->name;
    if (e->kind == E_NAME && e->sym->of)
        find_names(e->sym->of, out);
    for (uint32_t i = 0; i < e->nargs; i++)
        find_names(e->args[i], out);
}

const char *spec_derived_from(struct arena *a, const struct lang_symbol *derived)
{
    struct names names = {.n = 0};
    struct buf out = buf_in(a);
    find_names(derived->of, &names);
    for (size_t i = 0; i < names.n; i++)
        buf_printf(&out, "%s%s", i == 0 ? "" : i + 1 == names.n ? " and " : ", ", names.v[i]);
    return names.n ? buf_text(&out) : "nothing";
}
