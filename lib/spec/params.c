#include <config.h>

#include "spec/spec_int.h"

static struct lang_symbol *find_param(const struct param_reader *p, const char *name)
{
    for (size_t i = 0; i < p->params.n; i++)
        if (strcmp(p->params.v[i].sym->name, name) == 0)
            return p->params.v[i].sym;
    return NULL;
}

/* "state f32[n]": a program's, which keeps what is in it. */
static bool make_state(struct param_reader *p, struct lang_symbol *sym, struct span text)
{
    if (sym->kind != SYM_BUFFER || sym->mode != MODE_IN)
        return diag_error(p->d, text, "what keeps its state is a buffer, as in 'state f32[n]'");
    sym->mode = MODE_INOUT;
    return p->states ||
           diag_error(p->d, text, "only a program has state; a kernel has in, out and inout");
}

static bool read_param(struct param_reader *p, const struct yaml_pair *pair)
{
    struct lang_symbol *sym = ARENA_NEW(p->a, struct lang_symbol);
    struct lang_expr *value;
    struct span text;
    enum { MOST = 512 }; /* as many as 4 KiB of PTX parameters hold */
    if (!check_symbol_name(pair->key, p->types, "a parameter", p->d))
        return false;
    const struct lang_symbol *dim = lang_find(p->scope, pair->key->text);
    if (dim) {
        diag_error(p->d, pair->key->span, "'%s' is a dimension; rename one of the two", dim->name);
        diag_note(p->d, dim->span, "it is declared here");
        return false;
    }
    if (p->params.n == MOST)
        return diag_error(p->d, pair->key->span, "more than %d parameters", MOST);
    sym->name = pair->key->text;
    sym->span = pair->key->span;
    sym->id = (uint32_t)p->params.n;
    struct spec_param *param = VEC_PUSH(p->a, &p->params);
    param->sym = sym;
    param->span = pair->value->span;
    sym->type = DT_F32; /* until it is read */
    sym->kind = SYM_SCALAR;
    if (pair->value->kind == YAML_SCALAR && pair->value->len == 0)
        return diag_error(p->d, pair->key->span,
                          "'%s' has no declaration; write 'in f32[n]' or 'f32 = 1.0' after the ':'",
                          sym->name);
    if (!text_span(pair->value, sym->name, &text, p->d))
        return false;
    param->span = text = text_trim(text);
    param->is_state = text_take_word(&text, "state");
    param->decl = arena_strndup(p->a, text.src->text + text.off, text.len);
    if (!lang_parse_param(p->a, text, p->types, sym, &value, p->d))
        return false;
    p->params.v[sym->id].value = value;
    return !param->is_state || make_state(p, sym, text);
}

bool params_collect_dims(struct param_reader *p, const struct lang_expr *e, bool scalars)
{
    enum { MOST = 512 };
    bool good = true;
    for (uint32_t i = 0; i < e->nargs; i++)
        good &= params_collect_dims(p, e->args[i], scalars);
    if (e->kind != E_NAME || lang_find(p->scope, e->name))
        return good;
    const struct lang_symbol *param = find_param(p, e->name);
    if (param && scalars) /* which the check takes or not */
        return good;
    if (param) {
        diag_error(p->d, e->span, "'%s' is a parameter; a dimension is not declared as one",
                   e->name);
        diag_note(p->d, param->span,
                  param->kind == SYM_SCALAR
                      ? "remove this line: every dimension is known by its name already"
                      : "rename one of the two");
        return false;
    }
    const char *why = lang_reserved(e->name, p->types);
    if (why)
        return diag_error(p->d, e->span, "'%s' is %s and can't name a dimension", e->name, why);
    if (p->dims.n == MOST)
        return diag_error(p->d, e->span, "more than %d dimensions", MOST);
    struct lang_symbol *dim = ARENA_NEW(p->a, struct lang_symbol);
    dim->kind = SYM_DIM;
    dim->name = e->name;
    dim->span = e->span;
    dim->type = DT_U32;
    dim->id = (uint32_t)p->dims.n;
    *VEC_PUSH(p->a, &p->dims) = dim;
    *VEC_PUSH(p->a, &p->scope->syms) = dim;
    return good;
}

static bool check_dim(struct param_reader *p, const struct lang_symbol *sym, uint32_t k)
{
    static const struct lang_options options = {.index_is_i64 = true};
    struct lang_expr *e = sym->dims[k];
    if (!lang_check_expr(p->a, p->scope, &options, e, DT_VOID, p->d))
        return false;
    return dtype_is_int(e->type) ||
           diag_error(p->d, e->span, "a dimension is an integer, not %s", dtype_name(e->type));
}

bool params_check_constant_dim(struct diags *d, const struct lang_symbol *sym, uint32_t k)
{
    int64_t v;
    const struct lang_expr *e = sym->dims[k];
    if (!lang_const_int(e, &v)) /* what is not computed at launch is a number that i64 has not */
        return e->kind != E_INT ||
               diag_error(d, e->span, "a dimension of %llu is out of range (1 to %u)",
                          (unsigned long long)e->ival, UINT32_MAX);
    if (v < 1 || v > UINT32_MAX)
        return diag_error(d, sym->dims[k]->span, "a dimension of %lld is out of range (1 to %u)",
                          (long long)v, UINT32_MAX);
    if (k + 1 == sym->rank && dtype_bits(sym->type) < 8 && v % 2 != 0)
        return diag_error(
            d, sym->dims[k]->span,
            "the last dimension of %s is even, because two elements share a byte; here it is "
            "%lld",
            dtype_name(sym->type), (long long)v);
    return true;
}

static bool check_default(struct param_reader *p, struct spec_param *param)
{
    static const struct lang_options options = {.index_is_i64 = true};
    struct lang_expr *e = param->value;
    if (!e)
        return true;
    if (!lang_check_expr(p->a, p->scope, &options, e, param->sym->type, p->d))
        return false;
    if (e->kind != E_INT && e->kind != E_FLOAT && e->kind != E_BOOL)
        return diag_error(p->d, e->span, "a default is a constant");
    return true;
}

bool params_read(struct param_reader *p, const struct yaml_value *v)
{
    bool good = true;
    if (v->kind != YAML_MAP)
        return diag_error(p->d, v->span, "'params' is a map, with 'name: in f32[n]' on each line");
    for (size_t i = 0; i < v->n && p->d->nerror <= DIAG_LIMIT; i++)
        good &= read_param(p, &v->pair[i]);
    for (size_t i = 0; i < p->params.n; i++) {
        const struct lang_symbol *sym = p->params.v[i].sym;
        for (uint32_t k = 0; k < sym->rank; k++)
            good &= params_collect_dims(p, sym->dims[k], false);
    }
    for (size_t i = 0; i < p->derived.n; i++)
        good &= params_collect_dims(p, p->derived.v[i]->of, true);
    for (size_t i = 0; i < p->derived.n; i++)
        p->derived.v[i]->id = (uint32_t)(p->dims.n + i);
    if (!good)
        return false;
    for (size_t i = 0; i < p->params.n; i++) {
        struct lang_symbol *sym = p->params.v[i].sym;
        for (uint32_t k = 0; k < sym->rank; k++)
            good &= check_dim(p, sym, k);
        good &= check_default(p, &p->params.v[i]);
        *VEC_PUSH(p->a, &p->scope->syms) = sym;
    }
    return good && params_check_derived(p);
}

/* A dimension that others say can't be said otherwise. */
static bool refuse_derived(struct spec_reader *r, const struct spec_define *def)
{
    bool good = true;
    for (size_t k = 0; k < r->spec->derived.n; k++) {
        const struct lang_symbol *dim = r->spec->derived.v[k];
        if (strcmp(dim->name, def->name) == 0)
            good = diag_error(r->d, dim->span, "'%s' is %s and can't be defined itself; define %s",
                              dim->name, lang_expr_text(r->a, dim->of),
                              spec_derived_from(r->a, dim));
    }
    return good;
}

static bool apply_defines(struct spec_reader *r)
{
    bool good = true;
    for (size_t i = 0; i < r->ndefine; i++)
        good &= refuse_derived(r, &r->defines[i]);
    for (size_t i = 0; i < r->ndefine && good; i++)
        for (size_t k = 0; k < r->spec->dims.n; k++) {
            struct lang_symbol *dim = r->spec->dims.v[k];
            if (strcmp(dim->name, r->defines[i].name) != 0)
                continue;
            r->define_used[i] = true;
            if (r->defines[i].type != DT_VOID) {
                good = diag_error(r->d, SPAN_NONE, "the dimension '%s' is a number, not %s",
                                  dim->name, dtype_name(r->defines[i].type));
                continue;
            }
            dim->has_value = true;
            dim->value = r->defines[i].value;
            if (dim->value < 1 || dim->value > UINT32_MAX)
                good = diag_error(r->d, SPAN_NONE, "the dimension '%s' can't be %llu (1 to %u)",
                                  dim->name, (unsigned long long)dim->value, UINT32_MAX);
        }
    return good && params_settle_derived(r->a, r->spec->derived.v, r->spec->derived.n, r->d);
}

bool read_params(struct spec_reader *r, const struct yaml_value *v, const struct yaml_value *dims)
{
    struct spec *s = r->spec;
    struct param_reader p = {.a = r->a,
                             .d = r->d,
                             .scope = &s->params_scope,
                             .types = &s->names,
                             .states = s->program != NULL};
    bool good = (!dims || params_derive(&p, dims, "dims")) && params_read(&p, v);
    s->derived.v = p.derived.v;
    s->derived.n = p.derived.n;
    s->params.v = p.params.v;
    s->params.n = p.params.n;
    s->dims.v = p.dims.v;
    s->dims.n = p.dims.n;
    if (!good || !apply_defines(r))
        return false;
    for (size_t i = 0; i < s->params.n; i++)
        for (uint32_t k = 0; k < s->params.v[i].sym->rank; k++)
            good &= params_check_constant_dim(r->d, s->params.v[i].sym, k);
    for (size_t i = 0; i < s->params.n; i++)
        if (s->params.v[i].sym->kind == SYM_BUFFER && s->params.v[i].sym->mode != MODE_IN)
            return good;
    return diag_error(r->d, s->name_span,
                      "the kernel has no output; declare what it writes out or inout");
}
