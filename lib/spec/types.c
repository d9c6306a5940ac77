/* types: names for types, chosen when the spec is read. */
#include <config.h>

#include "spec/spec_int.h"

#include "base/num.h"

const char *spec_type_text(struct arena *a, const struct spec_type *t)
{
    struct buf b = buf_in(a);
    for (size_t i = 0; i < t->choices.n; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", dtype_name(t->choices.v[i]));
    return buf_text(&b);
}

bool spec_type_allows(const struct spec_type *t, enum dtype type)
{
    for (size_t i = 0; i < t->choices.n; i++)
        if (t->choices.v[i] == type)
            return true;
    return false;
}

bool type_refused(struct spec_reader *r, struct span at, const struct spec_type *t,
                  const char *given)
{
    return t->choices.n == 1 ? diag_error(r->d, at, "'%s' is %s, not %s", t->name,
                                          dtype_name(t->choices.v[0]), given)
                             : diag_error(r->d, at, "'%s' is one of %s, not %s", t->name,
                                          spec_type_text(r->a, t), given);
}

static bool read_choice(struct spec_reader *r, struct spec_type *t, const struct yaml_value *v)
{
    enum dtype type;
    if (v->kind != YAML_SCALAR)
        return diag_error(r->d, v->span, "a choice of '%s' is a type, as in [f16, f32]", t->name);
    if (!dtype_parse(v->text, v->len, &type)) {
        const char *near = diag_nearest(v->text, v->len, dtype_names());
        return near ? diag_error(r->d, v->span, "unknown type '%.60s'; did you mean '%s'?", v->text,
                                 near)
                    : diag_error(r->d, v->span,
                                 "unknown type '%.60s'; there are f64 f32 f16 bf16 e4m3 e5m2 i64 "
                                 "i32 i16 i8 i4 u64 u32 u16 u8 u4 bool",
                                 v->text);
    }
    if (spec_type_allows(t, type))
        return diag_error(r->d, v->span, "%s is there twice", dtype_name(type));
    *VEC_PUSH(r->a, &t->choices) = type;
    return true;
}

/* -D, which has the last word. */
static bool choose(struct spec_reader *r, struct spec_type *t)
{
    t->chosen = t->choices.v[0];
    for (size_t i = 0; i < r->ndefine; i++) {
        const struct spec_define *def = &r->defines[i];
        if (strcmp(def->name, t->name) != 0)
            continue;
        r->define_used[i] = true;
        if (def->type == DT_VOID)
            return type_refused(r, SPAN_NONE, t,
                                arena_printf(r->a, "%llu", (unsigned long long)def->value));
        if (!spec_type_allows(t, def->type))
            return type_refused(r, SPAN_NONE, t, dtype_name(def->type));
        t->chosen = def->type;
    }
    return true;
}

static bool read_type(struct spec_reader *r, const struct yaml_pair *pair)
{
    const struct yaml_value *v = pair->value;
    bool good = true;
    if (!check_identifier(pair->key, "a type", r->d))
        return false;
    if (lang_is_builtin(pair->key->text))
        return diag_error(r->d, pair->key->span,
                          "'%s' is a function and can't be the name of a type", pair->key->text);
    struct spec_type *t = VEC_PUSH(r->a, &r->spec->types);
    t->name = pair->key->text;
    t->span = pair->key->span;
    if (v->kind == YAML_MAP || (v->kind == YAML_SCALAR ? v->len : v->n) == 0)
        return diag_error(r->d, v->len || v->n ? v->span : pair->key->span,
                          "'%s' is a type or a list of them, as in '%s: [f16, f32]'", t->name,
                          t->name);
    if (v->kind == YAML_SCALAR)
        good = read_choice(r, t, v);
    for (size_t i = 0; v->kind == YAML_LIST && i < v->n; i++)
        good &= read_choice(r, t, v->item[i]);
    return good && choose(r, t);
}

bool read_types(struct spec_reader *r, const struct yaml_value *v)
{
    enum { MOST = 64 };
    struct spec *s = r->spec;
    bool good = true;
    if (v->kind != YAML_MAP)
        return diag_error(r->d, v->span, "'types' is a map of names, as in 'T: [f16, f32]'");
    if (v->n > MOST)
        return diag_error(r->d, v->span, "more than %d types", MOST);
    for (size_t i = 0; i < v->n; i++)
        good &= read_type(r, &v->pair[i]);
    if (!good)
        return false;
    s->names.v = ARENA_ARRAY(r->a, s->types.n, struct lang_type);
    s->names.n = s->types.n;
    for (size_t i = 0; i < s->types.n; i++)
        s->names.v[i] = (struct lang_type){s->types.v[i].name, s->types.v[i].chosen, false};
    return true;
}

const struct spec_type *spec_find_type(const struct spec *s, const char *name)
{
    for (size_t i = 0; i < s->types.n; i++)
        if (strcmp(s->types.v[i].name, name) == 0)
            return &s->types.v[i];
    return NULL;
}

bool spec_case_fits(const struct spec *s, const struct spec_case *c)
{
    for (size_t i = 0; i < c->bind.n; i++) {
        const struct spec_type *t = spec_find_type(s, c->bind.v[i].name);
        if (t && t->chosen != c->bind.v[i].type)
            return false;
    }
    return true;
}

const struct spec_binding *spec_case_conflict(const struct spec_case *c,
                                              const struct spec_define *defines, size_t ndefine)
{
    for (size_t i = 0; i < c->bind.n; i++)
        for (size_t k = 0; c->bind.v[i].type != DT_VOID && k < ndefine; k++)
            if (strcmp(defines[k].name, c->bind.v[i].name) == 0 &&
                defines[k].type != c->bind.v[i].type)
                return &c->bind.v[i];
    return NULL;
}

const char *spec_parse_define(struct arena *a, const char *text, struct spec_define *out)
{
    const char *eq = strchr(text, '=');
    size_t len = eq ? (size_t)(eq - text) : 0;
    bool name = len > 0 && !(text[0] >= '0' && text[0] <= '9');
    for (size_t i = 0; i < len; i++)
        name = name && strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_",
                              text[i]) != NULL;
    if (!name)
        return arena_printf(a, "'%s' is not NAME=VALUE, as in cols=4096 or T=f32", text);
    *out = (struct spec_define){arena_strndup(a, text, len), 0, DT_VOID};
    if (num_uint(eq + 1, strlen(eq + 1), UINT32_MAX, &out->value) == NUM_OK ||
        dtype_parse(eq + 1, strlen(eq + 1), &out->type))
        return NULL;
    return arena_printf(a, "'%s' is a number from 0 to 4294967295 or a type, not '%s'", out->name,
                        eq + 1);
}

const char *spec_define_text(struct arena *a, const struct spec_define *def)
{
    return def->type == DT_VOID
               ? arena_printf(a, "%s=%llu", def->name, (unsigned long long)def->value)
               : arena_printf(a, "%s=%s", def->name, dtype_name(def->type));
}
