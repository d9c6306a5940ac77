/* temps: the buffers that a body has for itself. */
#include <config.h>

#include "spec/spec_int.h"

/* Its dimensions are over those of the parameters and integer scalars, which are known before it is
 * made. */
static bool check_dims(struct spec_reader *r, const struct lang_symbol *sym)
{
    static const struct lang_options options = {.index_is_i64 = true};
    for (uint32_t k = 0; k < sym->rank; k++) {
        struct lang_expr *e = sym->dims[k];
        if (!lang_check_expr(r->a, &r->spec->params_scope, &options, e, DT_VOID, r->d))
            return false;
        if (!dtype_is_int(e->type))
            return diag_error(r->d, e->span, "a dimension is an integer, not %s",
                              dtype_name(e->type));
        if (!params_check_constant_dim(r->d, sym, k))
            return false;
    }
    return true;
}

static bool check_name(struct spec_reader *r, const struct yaml_value *key)
{
    if (!check_symbol_name(key, &r->spec->names, "a temp", r->d))
        return false;
    const struct lang_symbol *other = lang_find(&r->spec->params_scope, key->text);
    if (!other)
        return true;
    diag_error(r->d, key->span, "'%s' is a %s already", key->text,
               other->kind == SYM_DIM ? "dimension" : "parameter");
    diag_note(r->d, other->span, "it is declared here");
    return false;
}

static bool has_mode(struct span text)
{
    static const char *const modes[] = {"in", "out", "inout"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        const size_t n = strlen(modes[i]);
        const char *t = text.src->text + text.off;
        if (text.len > n && memcmp(t, modes[i], n) == 0 && strchr(" \t\n", t[n]))
            return true;
    }
    return false;
}

static bool read_temp(struct spec_reader *r, const struct yaml_pair *pair)
{
    struct spec *s = r->spec;
    struct lang_symbol *sym = ARENA_NEW(r->a, struct lang_symbol);
    struct lang_expr *value;
    struct span text;
    if (!check_name(r, pair->key) || !text_span(pair->value, pair->key->text, &text, r->d))
        return false;
    text = text_trim(text);
    const bool is_zero = text_take_zero(&text);
    if (!lang_parse_param(r->a, text, &s->names, sym, &value, r->d))
        return false;
    if (has_mode(text))
        return diag_error(r->d, text, "a temp is no input or output; write its type alone");
    if (sym->kind != SYM_BUFFER)
        return diag_error(r->d, text,
                          "a temp is a buffer, as in 'f32[n]', or in 'u32[1] = 0' where it is "
                          "zero before every launch");
    sym->name = pair->key->text;
    sym->span = pair->key->span;
    sym->mode = MODE_INOUT;
    sym->id = (uint32_t)s->temps.n;
    *VEC_PUSH(r->a, &s->temps) = (struct spec_temp){.sym = sym, .is_zero = is_zero};
    *VEC_PUSH(r->a, &s->temps_scope.syms) = sym;
    return check_dims(r, sym);
}

bool read_body_temps(struct spec_reader *r, const struct yaml_value *v)
{
    enum { MOST = 256 }; /* as many as a contract has */
    bool good = true;
    if (v->kind != YAML_MAP)
        return diag_error(r->d, v->span, "'temps' is a map, with 'name: f32[n]' on each line");
    if (v->n > MOST)
        return diag_error(r->d, v->span, "more than %d temps", MOST);
    for (size_t i = 0; i < v->n; i++)
        good &= read_temp(r, &v->pair[i]);
    return good;
}
