#include <config.h>

#include "spec/contract_int.h"

#include <stdlib.h>

#include "base/num.h"
#include "data/message.h"

static bool unknown_key(struct contract_reader *r, const struct yaml_value *key,
                        const char *const *names)
{
    const char *near = diag_nearest(key->text, key->len, names);
    return near ? diag_error(r->d, key->span, "unknown key '%s'; did you mean '%s'?", key->text,
                             near)
                : diag_error(r->d, key->span, "unknown key '%.60s' in the launch contract",
                             key->text);
}

bool contract_only_keys(struct contract_reader *r, const struct yaml_value *map,
                        const char *const *names)
{
    bool good = true;
    for (size_t i = 0; i < map->n; i++) {
        size_t k = 0;
        while (names[k] && strcmp(names[k], map->pair[i].key->text) != 0)
            k++;
        if (!names[k])
            good = unknown_key(r, map->pair[i].key, names);
    }
    return good;
}

bool contract_word(struct contract_reader *r, const struct yaml_value *map, const char *key,
                   bool must, const char **out)
{
    const struct yaml_value *v = yaml_get(map, key);
    if (!v)
        return !must || diag_error(r->d, map->span, "the launch contract has no '%s'", key);
    if (v->kind != YAML_SCALAR || v->len == 0)
        return diag_error(r->d, v->span, "'%s' is a word", key);
    *out = v->text;
    return true;
}

bool contract_check(struct contract_reader *r, struct lang_expr *e, enum dtype want, bool grid)
{
    const struct lang_options options = {.exact = true, .grid = grid};
    return lang_check_expr(r->a, &r->c->scope, &options, e, want, r->d);
}

static struct lang_expr *read_expr(struct contract_reader *r, struct span text, enum dtype want,
                                   bool grid)
{
    struct lang_expr *e = lang_parse_expr(r->a, text, NULL, r->d);
    return e && contract_expand(r, &e) && contract_check(r, e, want, grid) ? e : NULL;
}

static struct lang_expr *integer(struct contract_reader *r, struct span text, bool grid)
{
    struct lang_expr *e = read_expr(r, text, DT_VOID, grid);
    if (e && !dtype_is_int(e->type)) {
        diag_error(r->d, e->span, "an integer is needed here");
        return NULL;
    }
    return e;
}

struct lang_expr *contract_integer(struct contract_reader *r, struct span text)
{
    return integer(r, text, false);
}

/* ---- parameters, dimensions ------------------------------------------------------------------ */

static bool read_fixed_dim(struct contract_reader *r, const struct yaml_pair *pair)
{
    struct lang_symbol *sym = lang_find(&r->c->scope, pair->key->text);
    struct span text;
    int64_t v;
    if (!sym || sym->kind != SYM_DIM || sym->of)
        return diag_error(r->d, pair->key->span, "no dimension is called '%s'", pair->key->text);
    if (!text_span(pair->value, pair->key->text, &text, r->d))
        return false;
    struct lang_expr *e = contract_integer(r, text);
    if (!e)
        return false;
    if (!lang_const_int(e, &v) || v < 1 || v > UINT32_MAX)
        return diag_error(r->d, e->span, "a dimension is 1 to %u", UINT32_MAX);
    sym->has_value = true;
    sym->value = (uint64_t)v;
    return true;
}

static bool read_parameters(struct contract_reader *r, const struct yaml_value *map)
{
    struct param_reader p = {
        .a = r->a, .d = r->d, .scope = &r->c->scope, .states = r->c->is_program};
    const struct yaml_value *v = yaml_get(map, "params"), *dims = yaml_get(map, "dims");
    const struct yaml_value *derived = yaml_get(map, "derived");
    bool good = !derived || params_derive(&p, derived, "derived");
    if (!good || (v && !params_read(&p, v)))
        return false;
    r->c->params.v = p.params.v;
    r->c->params.n = p.params.n;
    r->c->dims.v = p.dims.v;
    r->c->dims.n = p.dims.n;
    r->c->derived.v = p.derived.v;
    r->c->derived.n = p.derived.n;
    if (dims && dims->kind != YAML_MAP)
        return diag_error(r->d, dims->span, "'dims' is a map, as in {n: 1024}");
    for (size_t i = 0; dims && i < dims->n; i++)
        good &= read_fixed_dim(r, &dims->pair[i]);
    return good && params_settle_derived(r->a, p.derived.v, p.derived.n, r->d);
}

static bool read_conditions(struct contract_reader *r, const struct yaml_value *map)
{
    const struct yaml_value *v = yaml_get(map, "require");
    span_list list = {0};
    bool good = !v || text_list(r->a, v, "require", &list, r->d);
    for (size_t i = 0; i < list.n; i++) {
        struct lang_expr *e = read_expr(r, list.v[i], DT_BOOL, false);
        good &= e != NULL;
        if (e)
            *VEC_PUSH(r->a, &r->c->require) = e;
    }
    return good;
}

static bool read_sum(struct contract_reader *r, const struct yaml_value *map, const char *key,
                     struct lang_expr **e)
{
    const struct yaml_value *v = yaml_get(map, key);
    struct span text;
    return !v || (text_span(v, key, &text, r->d) && (*e = contract_integer(r, text)));
}

static bool read_sums(struct contract_reader *r, const struct yaml_value *map)
{
    return read_sum(r, map, "depth", &r->c->depth) &&
           read_sum(r, map, "truncation", &r->c->truncation) &&
           read_sum(r, map, "products", &r->c->products) &&
           read_sum(r, map, "weights", &r->c->weights);
}

/* ---- temps ----------------------------------------------------------------------------------- */

struct lang_symbol *contract_find_temp(const struct contract *c, const char *name)
{
    for (size_t i = 0; i < c->temps.n; i++)
        if (strcmp(c->temps.v[i].sym->name, name) == 0)
            return c->temps.v[i].sym;
    return NULL;
}

struct lang_symbol *contract_symbol(const struct contract *c, const char *name)
{
    return name[0] == '$' ? contract_find_temp(c, name) : lang_find(&c->scope, name);
}

/* "f32[rows, 2]", "u32[1] = 0" or "u32[1] = 0 each run" */
static bool read_temp(struct contract_reader *r, const struct yaml_pair *pair)
{
    struct lang_symbol *sym = ARENA_NEW(r->a, struct lang_symbol);
    struct lang_expr *value = NULL;
    struct span text;
    const char *name = pair->key->text;
    if (name[0] != '$' || strcmp(name, CONTRACT_MESSAGES) == 0)
        return diag_error(r->d, pair->key->span, "the name of a temp begins with $, as in $sums");
    if (!text_span(pair->value, name, &text, r->d))
        return false;
    text = text_trim(text);
    const bool each_run = text_take_end(&text, "each run"), is_zero = text_take_zero(&text);
    if (each_run && !is_zero)
        return diag_error(r->d, pair->value->span, "'each run' stands behind '= 0'");
    if (!lang_parse_param(r->a, text, NULL, sym, &value, r->d))
        return false;
    if (sym->kind != SYM_BUFFER || sym->mode != MODE_IN)
        return diag_error(r->d, pair->value->span, "a temp is written as f32[n] or u32[1] = 0");
    for (uint32_t i = 0; i < sym->rank; i++)
        if (!contract_expand(r, &sym->dims[i]) || !contract_check(r, sym->dims[i], DT_VOID, false))
            return false;
    sym->name = name;
    sym->span = pair->key->span;
    sym->mode = MODE_INOUT;
    struct contract_temp *t = VEC_PUSH(r->a, &r->c->temps);
    *t = (struct contract_temp){
        .sym = sym, .is_zero = is_zero, .each_run = each_run, .span = pair->key->span};
    return true;
}

static bool read_temps(struct contract_reader *r, const struct yaml_value *map)
{
    enum { MOST = 256 };
    const struct yaml_value *v = yaml_get(map, "temps");
    bool good = true;
    if (!v)
        return true;
    if (v->kind != YAML_MAP || v->n > MOST)
        return diag_error(r->d, v->span, "'temps' is a map of at most %d buffers", MOST);
    for (size_t i = 0; i < v->n; i++)
        good &= read_temp(r, &v->pair[i]);
    return good;
}

struct lang_symbol *contract_add_temp(struct arena *a, struct contract *c, const char *name,
                                      enum dtype type, uint32_t rank,
                                      struct lang_expr *const *extent, bool is_zero)
{
    struct lang_symbol *sym = ARENA_NEW(a, struct lang_symbol);
    struct lang_expr **dims = ARENA_ARRAY(a, rank, struct lang_expr *);
    sym->name = name;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = extent[i];
    sym->kind = SYM_BUFFER;
    sym->mode = MODE_INOUT;
    sym->type = type;
    sym->rank = rank;
    sym->dims = dims;
    sym->id = (uint32_t)c->temps.n;
    *VEC_PUSH(a, &c->temps) = (struct contract_temp){.sym = sym, .is_zero = is_zero};
    return sym;
}

/* ---- launches -------------------------------------------------------------------------------- */

static bool read_geometry(struct contract_reader *r, const struct yaml_value *map, const char *key,
                          bool must, struct lang_expr **out)
{
    const struct yaml_value *v = yaml_get(map, key);
    span_list list = {0};
    if (!v)
        return !must || diag_error(r->d, map->span, "the launch has no '%s'", key);
    if (!text_list(r->a, v, key, &list, r->d))
        return false;
    if (list.n < 1 || list.n > 3)
        return diag_error(r->d, v->span, "'%s' has one to three numbers, not %zu", key, list.n);
    for (size_t i = 0; i < list.n; i++)
        if (!(out[i] = integer(r, list.v[i], strcmp(key, "grid") == 0)))
            return false;
    return true;
}

/* "u64 n * 4": the type in front; false when there is none, as in "n" or "u64(n)". */
static bool leading_type(struct span s, enum dtype *type, struct span *rest)
{
    const char *t = s.src->text + s.off;
    size_t n = 0;
    while (n < s.len &&
           ((t[n] >= 'a' && t[n] <= 'z') || (t[n] >= '0' && t[n] <= '9') || t[n] == '_'))
        n++;
    if (n == s.len || t[n] != ' ' || !dtype_parse(t, n, type))
        return false;
    *rest = text_trim((struct span){s.src, s.off + n, s.len - n});
    return rest->len > 0;
}

static bool read_arg(struct contract_reader *r, struct span s, struct contract_arg *a)
{
    struct span rest;
    a->span = s;
    if (leading_type(s, &a->type, &rest)) {
        a->expr = dtype_is_float(a->type) || a->type == DT_BOOL ? read_expr(r, rest, a->type, false)
                                                                : contract_integer(r, rest);
        return a->expr != NULL;
    }
    const char *name = arena_strndup(r->a, s.src->text + s.off, s.len);
    if (strcmp(name, CONTRACT_MESSAGES) == 0) {
        a->is_messages = true;
        a->type = DT_U64;
        return true;
    }
    a->sym = contract_symbol(r->c, name);
    if (!a->sym && name[0] == '$')
        return diag_error(r->d, s, "'temps' has no buffer of this name");
    if (!a->sym)
        return diag_error(r->d, s,
                          "no parameter or dimension has this name; a computed argument is "
                          "written with its type, as in 'u64 n * 4'");
    a->type = a->sym->kind == SYM_BUFFER ? DT_U64 : a->sym->kind == SYM_DIM ? DT_U32 : a->sym->type;
    return true;
}

static bool read_list(struct contract_reader *r, const struct yaml_value *v,
                      struct contract_struct *out);

/* {struct: [x, n]}, {map: x, box: [64]} */
static bool read_map_arg(struct contract_reader *r, const struct yaml_value *v,
                         struct contract_arg *a)
{
    static const char *const keys[] = {"struct", NULL};
    const struct yaml_value *members = yaml_get(v, "struct");
    a->span = v->span;
    a->type = DT_U8; /* so many of them */
    if (!members)
        return contract_read_map(r, v, &a->map);
    a->fields = ARENA_NEW(r->a, struct contract_struct);
    if (!contract_only_keys(r, v, keys) || !read_list(r, members, a->fields))
        return false;
    for (size_t i = 0; i < a->fields->args.n; i++)
        if (a->fields->args.v[i].is_messages)
            return diag_error(r->d, a->fields->args.v[i].span, "'$messages' is no member");
    return a->fields->args.n || diag_error(r->d, v->span, "a struct has members");
}

/* The map of the list that begins where s does; NULL: it is a text. */
static const struct yaml_value *map_at(const struct yaml_value *list, struct span s)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->item[i]->kind == YAML_MAP && list->item[i]->span.off == s.off)
            return list->item[i];
    return NULL;
}

/* [x, {map: a, box: [64]}, max(n, 4)]: expressions are taken as text, since their commas mean
 * something else to YAML. */
static bool read_flow_args(struct contract_reader *r, const struct yaml_value *v,
                           struct contract_struct *out)
{
    span_list list = {0};
    if (!text_list(r->a, v, "args", &list, r->d))
        return false;
    bool good = true;
    for (size_t i = 0; i < list.n; i++) {
        const struct yaml_value *map = map_at(v, list.v[i]);
        struct contract_arg *a = VEC_PUSH(r->a, &out->args);
        good &= map ? read_map_arg(r, map, a) : read_arg(r, list.v[i], a);
    }
    return good;
}

static bool read_list(struct contract_reader *r, const struct yaml_value *v,
                      struct contract_struct *out)
{
    struct span s;
    bool good = true;
    if (v->kind != YAML_LIST)
        return diag_error(r->d, v->span, "arguments are a list, as in [x, y, n]");
    if (v->is_flow)
        return read_flow_args(r, v, out);
    for (size_t i = 0; i < v->n; i++) {
        struct contract_arg *a = VEC_PUSH(r->a, &out->args);
        if (v->item[i]->kind == YAML_MAP)
            good &= read_map_arg(r, v->item[i], a);
        else
            good &= text_span(v->item[i], "args", &s, r->d) && read_arg(r, text_trim(s), a);
    }
    return good;
}

static bool read_args(struct contract_reader *r, const struct yaml_value *map,
                      struct contract_launch *l)
{
    const struct yaml_value *v = yaml_get(map, "args");
    struct contract_struct list = {0};
    const bool good = !v || read_list(r, v, &list);
    for (size_t i = 0; i < list.args.n; i++)
        *VEC_PUSH(r->a, &l->args) = list.args.v[i];
    return good;
}

static bool read_array(struct contract_reader *r, const struct yaml_value *v,
                       struct contract_launch *l)
{
    static const char *const keys[] = {"name", "type", "at", "extents", NULL};
    struct contract_array *a = VEC_PUSH(r->a, &l->arrays);
    const char *type = NULL;
    struct span at;
    span_list list = {0};
    if (v->kind != YAML_MAP)
        return diag_error(r->d, v->span, "an array is a map with name, type, at and extents");
    if (!contract_only_keys(r, v, keys) || !contract_word(r, v, "name", true, &a->name) ||
        !contract_word(r, v, "type", true, &type))
        return false;
    if (!dtype_parse(type, strlen(type), &a->type))
        return diag_error(r->d, yaml_get(v, "type")->span, "'%s' is not a type", type);
    const struct yaml_value *start = yaml_get(v, "at"), *extents = yaml_get(v, "extents");
    if (!start)
        return diag_error(r->d, v->span, "this array has no 'at'");
    if (!text_span(start, "at", &at, r->d) || !(a->at = contract_integer(r, at)))
        return false;
    if (extents && !text_list(r->a, extents, "extents", &list, r->d))
        return false;
    for (size_t i = 0; i < list.n; i++)
        if (!(*VEC_PUSH(r->a, &a->extents) = contract_integer(r, list.v[i])))
            return false;
    return true;
}

static bool read_arrays(struct contract_reader *r, const struct yaml_value *map,
                        struct contract_launch *l)
{
    const struct yaml_value *v = yaml_get(map, "arrays");
    bool good = true;
    if (!v)
        return true;
    if (v->kind != YAML_LIST)
        return diag_error(r->d, v->span, "'arrays' is a list");
    for (size_t i = 0; i < v->n; i++)
        good &= read_array(r, v->item[i], l);
    return good;
}

static bool is_entry(const char *s)
{
    for (size_t i = 0; s[i]; i++) {
        char c = (char)(s[i] | 0x20);
        bool digit = s[i] >= '0' && s[i] <= '9';
        if (!((c >= 'a' && c <= 'z') || s[i] == '_' || s[i] == '$' || (s[i] == '%' && i == 0) ||
              (digit && i > 0)))
            return false;
    }
    return *s;
}

/* A number that need not be there. */
static bool read_number(struct contract_reader *r, const struct yaml_value *map, const char *key,
                        uint32_t *out)
{
    const struct yaml_value *v = yaml_get(map, key);
    int64_t number = 0;
    if (v && (v->kind != YAML_SCALAR || num_int(v->text, v->len, 0, UINT32_MAX, &number) != NUM_OK))
        return diag_error(r->d, v->span, "'%s' is a number", key);
    *out = (uint32_t)number;
    return true;
}

static bool read_launch(struct contract_reader *r, const struct yaml_value *v)
{
    static const char *const keys[] = {"entry",   "step",   "when",   "grid", "block",
                                       "cluster", "shared", "arrays", "args", NULL};
    struct contract_launch *l = VEC_PUSH(r->a, &r->c->launches);
    const struct yaml_value *when, *shared;
    struct span text;
    l->span = v->span;
    if (v->kind != YAML_MAP)
        return diag_error(r->d, v->span, "a launch is a map with entry, grid, block and args");
    bool good = contract_only_keys(r, v, keys) && contract_word(r, v, "entry", true, &l->entry);
    if (good && !is_entry(l->entry))
        good =
            diag_error(r->d, yaml_get(v, "entry")->span, "this can't be the name of a PTX entry");
    good = good && read_geometry(r, v, "grid", true, l->grid);
    good = good && read_geometry(r, v, "block", true, l->block);
    good = good && read_geometry(r, v, "cluster", false, l->cluster);
    good = good && read_number(r, v, "step", &l->step);
    when = yaml_get(v, "when");
    shared = yaml_get(v, "shared");
    if (good && when)
        good = text_span(when, "when", &text, r->d) &&
               (l->when = read_expr(r, text, DT_BOOL, false));
    if (good && shared)
        good = text_span(shared, "shared", &text, r->d) && (l->shared = contract_integer(r, text));
    return good && read_arrays(r, v, l) && read_args(r, v, l);
}

static bool read_launches(struct contract_reader *r, const struct yaml_value *map)
{
    const struct yaml_value *v = yaml_get(map, "launches");
    bool good = true;
    if (!v)
        return diag_error(r->d, map->span, "the launch contract has no 'launches'");
    if (v->kind != YAML_LIST)
        return diag_error(r->d, v->span, "'launches' is a list");
    for (size_t i = 0; i < v->n; i++)
        good &= read_launch(r, v->item[i]);
    return good;
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool read_text(struct contract_reader *r, const struct yaml_value *map, const char *key,
                      const char **out)
{
    const struct yaml_value *v = yaml_get(map, key);
    if (v && v->kind != YAML_SCALAR)
        return diag_error(r->d, v->span, "'%s' is a text", key);
    *out = v ? v->text : NULL;
    return true;
}

static bool read_message_types(struct contract_reader *r, const struct yaml_value *v,
                               struct contract_message *m)
{
    if (!v)
        return true;
    if (v->kind != YAML_LIST || v->n > MESSAGE_MAX_ARGS)
        return diag_error(r->d, v->span, "'types' is a list of at most %d types", MESSAGE_MAX_ARGS);
    m->type = ARENA_ARRAY(r->a, v->n, enum dtype);
    m->ntype = v->n;
    for (size_t i = 0; i < v->n; i++) {
        const struct yaml_value *t = v->item[i];
        if (t->kind != YAML_SCALAR || !dtype_parse(t->text, t->len, &m->type[i]) ||
            message_type(m->type[i]) != m->type[i])
            return diag_error(r->d, t->span,
                              "an argument of a message is i32, u32, i64, u64, f32 or f64");
    }
    return true;
}

/* The format has as many conversions as there are types, each for its type. */
static bool check_format(struct contract_reader *r, const struct yaml_value *v,
                         const struct contract_message *m)
{
    struct message_conversion c;
    enum message_item what;
    size_t at = 0, n = 0;
    while ((what = message_next(m->format, &at, &c)) != MESSAGE_END) {
        const char *why = what == MESSAGE_BAD ? c.why
                          : n < m->ntype      ? message_misfit(c.letter, m->type[n])
                                              : "has no type";
        if (why)
            return diag_error(r->d, v->span, "conversion %zu of this format: %s", n + 1, why);
        n++;
    }
    return n == m->ntype ||
           diag_error(r->d, v->span, "the format has %zu conversions, not %zu", n, m->ntype);
}

static bool read_message(struct contract_reader *r, const struct yaml_value *v)
{
    static const char *const keys[] = {"print", "assert", "message", "types", "line", NULL};
    struct contract_message *m = VEC_PUSH(r->a, &r->c->messages);
    m->span = v->span;
    if (v->kind != YAML_MAP)
        return diag_error(r->d, v->span, "a message is a map with print or assert");
    m->is_assert = yaml_get(v, "assert") != NULL;
    if (!contract_only_keys(r, v, keys) ||
        !read_text(r, v, m->is_assert ? "assert" : "print", &m->format) ||
        !read_text(r, v, "message", &m->text) || !read_message_types(r, yaml_get(v, "types"), m))
        return false;
    if (!m->format)
        return diag_error(r->d, v->span, "a message is a map with print or assert");
    return read_number(r, v, "line", &m->line) && (m->is_assert || check_format(r, v, m));
}

static bool read_messages(struct contract_reader *r, const struct yaml_value *map)
{
    const struct yaml_value *v = yaml_get(map, "messages");
    bool good = true;
    if (!v)
        return true;
    if (v->kind != YAML_LIST)
        return diag_error(r->d, v->span, "'messages' is a list");
    for (size_t i = 0; i < v->n; i++)
        good &= read_message(r, v->item[i]);
    return good;
}

static bool read_version(struct contract_reader *r, const struct yaml_value *map)
{
    const char *version = NULL;
    if (!contract_word(r, map, "kaio", true, &version))
        return false;
    const size_t digits = strspn(version, "0123456789");
    int64_t v = 0; /* of more digits than fit, another than any that is read */
    if (version[digits] || num_int(version, digits, 1, INT64_MAX, &v) == NUM_SYNTAX ||
        strspn(version, "0") == digits)
        return diag_error(r->d, yaml_get(map, "kaio")->span,
                          "the version of the launch contract is a number");
    return v == CONTRACT_VERSION ||
           diag_error(r->d, yaml_get(map, "kaio")->span,
                      "the launch contract has version %s, and this program reads version %d; "
                      "emit the kernel again",
                      version, CONTRACT_VERSION);
}

static bool read_header(struct contract_reader *r, const struct yaml_value *v)
{
    const char *key = r->c->is_program ? "program" : "kernel";
    return contract_word(r, v, key, true, &r->c->kernel) &&
           contract_word(r, v, "source", false, &r->c->source) &&
           contract_word(r, v, "target", false, &r->c->target) && read_parameters(r, v) &&
           read_conditions(r, v);
}

static bool read_kernel(struct contract_reader *r, const struct yaml_value *v)
{
    static const char *const keys[] = {"kaio",       "kernel",   "source",  "target", "params",
                                       "derived",    "dims",     "require", "where",  "depth",
                                       "truncation", "products", "weights", "temps",  "launches",
                                       "messages",   NULL};
    return contract_only_keys(r, v, keys) && read_header(r, v) && contract_read_where(r, v) &&
           read_sums(r, v) && read_temps(r, v) && read_launches(r, v) && read_messages(r, v);
}

static bool read_program(struct contract_reader *r, const struct yaml_value *v,
                         const struct contract_file *file)
{
    static const char *const keys[] = {"kaio", "program", "source", "target", "params", "derived",
                                       "dims", "require", "where",  "temps",  "steps",  NULL};
    const struct yaml_value *steps = yaml_get(v, "steps");
    if (!contract_only_keys(r, v, keys) || !read_header(r, v) || !contract_read_where(r, v) ||
        !read_temps(r, v))
        return false;
    if (!steps)
        return diag_error(r->d, v->span, "the program has no 'steps'");
    return contract_read_steps(r, steps, file);
}

/* file: what stands above. */
static struct contract *read_contract(struct arena *a, const struct yaml_value *v,
                                      const struct contract_file *file, struct diags *d)
{
    struct contract_reader r = {.a = a, .d = d, .c = ARENA_NEW(a, struct contract)};
    if (v->kind != YAML_MAP) {
        diag_error(d, v->span, "a launch contract is a map that begins with 'kaio: %d'",
                   CONTRACT_VERSION);
        return NULL;
    }
    r.c->is_program = yaml_get(v, "program") != NULL;
    if (!read_version(&r, v))
        return NULL;
    return (r.c->is_program ? read_program(&r, v, file) : read_kernel(&r, v)) ? r.c : NULL;
}

struct contract_file *contract_read(struct arena *a, const struct source *text, struct diags *d)
{
    struct yaml_stream *stream = yaml_read(a, text, d);
    struct contract_file *f = ARENA_NEW(a, struct contract_file);
    bool good = stream != NULL;
    for (size_t i = 0; good && i < stream->docs.n; i++) {
        if (!stream->docs.v[i])
            continue;
        struct contract *c = read_contract(a, stream->docs.v[i], f, d);
        if (c)
            *VEC_PUSH(a, &f->v) = c;
        else
            good = false;
    }
    if (good && f->v.n == 0)
        good = diag_error(d, (struct span){text, 0, 0}, "the launch contract is empty");
    return good ? f : NULL;
}

struct contract *contract_main(const struct contract_file *f)
{
    struct contract *found = f->v.n == 1 ? f->v.v[0] : NULL;
    size_t programs = 0;
    for (size_t i = 0; i < f->v.n; i++)
        if (f->v.v[i]->is_program) {
            found = f->v.v[i];
            programs++;
        }
    return programs > 1 ? NULL : found;
}

/* ---- making one ------------------------------------------------------------------------------ */

struct contract *contract_of_spec(struct arena *a, const struct spec *s, const char *target)
{
    struct contract *c = ARENA_NEW(a, struct contract);
    c->kernel = s->name;
    c->source = s->src->name;
    c->target = target;
    for (size_t i = 0; i < s->params.n; i++) {
        *VEC_PUSH(a, &c->params) = s->params.v[i];
        *VEC_PUSH(a, &c->scope.syms) = s->params.v[i].sym;
    }
    for (size_t i = 0; i < s->dims.n; i++) {
        *VEC_PUSH(a, &c->dims) = s->dims.v[i];
        *VEC_PUSH(a, &c->scope.syms) = s->dims.v[i];
    }
    for (size_t i = 0; i < s->derived.n; i++) {
        *VEC_PUSH(a, &c->derived) = s->derived.v[i];
        *VEC_PUSH(a, &c->scope.syms) = s->derived.v[i];
    }
    for (size_t i = 0; i < s->require.n; i++)
        *VEC_PUSH(a, &c->require) = s->require.v[i];
    c->depth = s->depth;
    return c;
}
