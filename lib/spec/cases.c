/* cases: and schedule:. */
#include <config.h>

#include "spec/spec_int.h"

#include "base/num.h"
#include "data/generate.h"

#include <inttypes.h>

static const struct lang_symbol *find_bindable(const struct spec *s, const char *name)
{
    const struct lang_symbol *sym = lang_find(&s->params_scope, name);
    return sym && sym->kind != SYM_BUFFER && !sym->of ? sym : NULL;
}

static const char *nearest_bindable(struct spec_reader *r, const char *name)
{
    VEC(const char *) names = {0};
    for (size_t i = 0; i < r->spec->params_scope.syms.n; i++)
        if (find_bindable(r->spec, r->spec->params_scope.syms.v[i]->name))
            *VEC_PUSH(r->a, &names) = r->spec->params_scope.syms.v[i]->name;
    *VEC_PUSH(r->a, &names) = NULL;
    return diag_nearest(name, strlen(name), names.v);
}

static bool unknown_binding(struct spec_reader *r, const struct yaml_value *key)
{
    const char *near = nearest_bindable(r, key->text);
    const struct lang_symbol *sym = lang_find(&r->spec->params_scope, key->text);
    if (sym && sym->of)
        return diag_error(r->d, key->span, "'%s' is %s; a case binds %s instead", key->text,
                          lang_expr_text(r->a, sym->of), spec_derived_from(r->a, sym));
    if (sym)
        return diag_error(r->d, key->span,
                          "'%s' is an output; a case binds dimensions, scalars, types and inputs",
                          key->text);
    if (near)
        return diag_error(r->d, key->span,
                          "no dimension or scalar is called '%s'; did you mean '%s'?", key->text,
                          near);
    return diag_error(r->d, key->span, "no dimension or scalar is called '%s'", key->text);
}

/* A constant of the symbol's type. */
static bool read_binding_value(struct spec_reader *r, const struct lang_symbol *sym,
                               const struct yaml_value *v, struct spec_binding *b)
{
    static const struct lang_options options = {.index_is_i64 = true};
    struct lang_scope none = {0};
    struct span text;
    if (!text_span(v, sym->name, &text, r->d))
        return false;
    bool is_dim = sym->kind == SYM_DIM;
    struct lang_expr *e = lang_parse_expr(r->a, text, NULL, r->d);
    if (!e || !lang_check_expr(r->a, &none, &options, e, is_dim ? DT_VOID : sym->type, r->d))
        return false;
    if (is_dim && e->kind != E_INT)
        return diag_error(r->d, v->span, "the dimension '%s' is an integer", sym->name);
    if (e->kind != E_INT && e->kind != E_FLOAT && e->kind != E_BOOL)
        return diag_error(r->d, v->span, "the value of '%s' is a constant", sym->name);
    b->is_int = e->kind != E_FLOAT;
    b->i = (int64_t)e->ival;
    b->f = b->is_int ? (e->type == DT_U64 ? (double)e->ival : (double)(int64_t)e->ival) : e->fval;
    if (is_dim && (b->i < 0 || b->i > UINT32_MAX))
        return diag_error(r->d, v->span, "the dimension '%s' is 0 to %u", sym->name, UINT32_MAX);
    return true;
}

/* "0..9": whole numbers from the first to the last. False: it is no such text. */
static bool read_range(const char *text, int64_t *first, int64_t *last)
{
    const char *dots = strstr(text, "..");
    return dots &&
           num_int(text, (size_t)(dots - text), INT64_MIN, INT64_MAX - 1, first) == NUM_OK &&
           num_int(dots + 2, strlen(dots + 2), INT64_MIN, INT64_MAX - 1, last) == NUM_OK;
}

const char *spec_input_text(struct arena *a, const char *name, const char *text, struct span at,
                            struct diags *d)
{
    struct diags *own = diags_new(a);
    struct generator g;
    int64_t first, last;
    size_t used;
    const bool range = read_range(text, &first, &last);
    if (range && first > last) {
        diag_error(d, at, "%s: there is no number in the range '%s'", name, text);
        return NULL;
    }
    if (range)
        text = arena_printf(a, "@randint:%" PRId64 ":%" PRId64, first, last + 1);
    else if (text[0] != '@') {
        diag_error(d, at,
                   "%s is an input: it takes a generator, as in @zeros or @randint:0:10, or a "
                   "range, as in 0..9; not '%s'",
                   name, text);
        return NULL;
    }
    const size_t len = strlen(text);
    if (generator_parse(a, name, text, len, &g, &used, own) && used == len)
        return text;
    if (own->nerror == 0)
        diag_error(own, at, "%s: there is more behind the generator: '%s'", name, text);
    for (size_t i = 0; i < own->list.n; i++) {
        const bool error = own->list.v[i].level == DIAG_ERROR;
        (error ? (void)diag_error(d, at, "%s", own->list.v[i].text)
               : diag_note(d, SPAN_NONE, "%s", own->list.v[i].text));
    }
    return NULL;
}

static bool read_input_binding(struct spec_reader *r, const struct lang_symbol *sym,
                               const struct yaml_value *v, struct spec_case *c)
{
    if (v->kind != YAML_SCALAR)
        return diag_error(r->d, v->span, "what '%s' is filled with is a word, as in '@zeros'",
                          sym->name);
    const char *made = spec_input_text(r->a, sym->name, v->text, v->span, r->d);
    *VEC_PUSH(r->a, &c->bind) =
        (struct spec_binding){.name = sym->name, .span = v->span, .made = made, .type = DT_VOID};
    return made != NULL;
}

static bool read_type_binding(struct spec_reader *r, const struct spec_type *t,
                              const struct yaml_value *v, struct spec_case *c)
{
    enum dtype type;
    bool word = v->kind == YAML_SCALAR;
    if (!word || !dtype_parse(v->text, v->len, &type) || !spec_type_allows(t, type))
        return type_refused(r, v->span, t,
                            word ? arena_printf(r->a, "'%.60s'", v->text) : "a list or a map");
    *VEC_PUSH(r->a, &c->bind) =
        (struct spec_binding){.name = t->name, .span = v->span, .type = type};
    return true;
}

static bool read_binding(struct spec_reader *r, const struct yaml_pair *pair, struct spec_case *c)
{
    const struct spec_type *type = spec_find_type(r->spec, pair->key->text);
    if (type)
        return read_type_binding(r, type, pair->value, c);
    const struct lang_symbol *any = lang_find(&r->spec->params_scope, pair->key->text);
    if (any && any->kind == SYM_BUFFER && any->mode != MODE_OUT)
        return read_input_binding(r, any, pair->value, c);
    const struct lang_symbol *sym = find_bindable(r->spec, pair->key->text);
    if (!sym)
        return unknown_binding(r, pair->key);
    struct spec_binding *b = VEC_PUSH(r->a, &c->bind);
    b->name = sym->name;
    b->span = pair->value->span;
    b->type = DT_VOID;
    return read_binding_value(r, sym, pair->value, b);
}

static bool binds(const struct spec_case *c, const char *name)
{
    for (size_t i = 0; i < c->bind.n; i++)
        if (strcmp(c->bind.v[i].name, name) == 0)
            return true;
    return false;
}

static bool read_case(struct spec_reader *r, const struct yaml_pair *pair)
{
    bool good = check_identifier(pair->key, "a case", r->d);
    struct spec_case *c = VEC_PUSH(r->a, &r->spec->cases);
    c->name = pair->key->text;
    c->span = pair->key->span;
    if (pair->value->kind != YAML_MAP)
        return diag_error(r->d, pair->value->span, "a case is a map, as in {n: 1000}");
    for (size_t i = 0; i < pair->value->n; i++)
        good &= read_binding(r, &pair->value->pair[i], c);
    for (size_t i = 0; good && i < r->spec->dims.n; i++) {
        const struct lang_symbol *dim = r->spec->dims.v[i];
        if (!dim->has_value && !binds(c, dim->name))
            good = diag_error(r->d, c->span, "the case '%s' does not say how large '%s' is",
                              c->name, dim->name);
    }
    return good;
}

bool read_cases(struct spec_reader *r, const struct yaml_value *v)
{
    bool good = true;
    if (v->kind != YAML_MAP)
        return diag_error(r->d, v->span, "'cases' is a map of names, as in 'small: {n: 1000}'");
    for (size_t i = 0; i < v->n; i++)
        good &= read_case(r, &v->pair[i]);
    return good;
}

bool read_schedule(struct spec_reader *r, const struct yaml_value *v)
{
    if (v->kind != YAML_MAP)
        return diag_error(r->d, v->span, "'schedule' is a map, as in {strategy: map}");
    for (size_t i = 0; i < v->n; i++) {
        const struct yaml_value *value = v->pair[i].value;
        struct spec_option *o = VEC_PUSH(r->a, &r->spec->schedule);
        o->key = v->pair[i].key->text;
        o->key_span = v->pair[i].key->span;
        o->value_span = value->kind == YAML_LIST ? value->all : value->span;
        if (value->kind == YAML_MAP || (value->kind == YAML_LIST && !value->is_flow))
            return diag_error(r->d, value->span,
                              "the value of '%s' is a word or a list in brackets", o->key);
        o->value = value->kind == YAML_SCALAR
                       ? value->text
                       : arena_strndup(r->a, o->value_span.src->text + o->value_span.off,
                                       o->value_span.len);
    }
    return true;
}

bool spec_set_schedule(struct arena *a, struct spec *s, const struct source *text, struct diags *d)
{
    struct spec_reader r = {.a = a, .d = d, .spec = s};
    struct yaml_stream *stream = yaml_read(a, text, d);
    if (!stream)
        return false;
    if (!s->has_compute)
        return diag_error(d, source_all(text), "'%s' has a body, which is its own schedule",
                          s->name);
    if (stream->docs.n != 1 || !stream->docs.v[0])
        return diag_error(d, source_all(text), "a schedule is a map, as in {strategy: map}");
    s->schedule.n = 0;
    return read_schedule(&r, stream->docs.v[0]);
}
