/* What only programs have: use: and steps:. */
#include <config.h>

#include "spec/spec_int.h"

#include "base/num.h"

/* T: bf16, or k: 576. */
static bool read_define(struct spec_reader *r, const struct yaml_pair *pair, struct spec_use *use)
{
    struct spec_define def = {.name = pair->key->text};
    const struct yaml_value *v = pair->value;
    const bool is_text = v->kind == YAML_SCALAR;
    if (!is_text || (num_uint(v->text, v->len, UINT32_MAX, &def.value) != NUM_OK &&
                     !dtype_parse(v->text, v->len, &def.type)))
        return diag_error(r->d, pair->key->span,
                          "'%s' is none of spec, kernel and schedule, and is given no type and no "
                          "number for a dimension",
                          pair->key->text);
    *VEC_PUSH(r->a, &use->defines) = def;
    return true;
}

static bool read_word(struct spec_reader *r, const struct yaml_pair *pair, const char **out,
                      struct span *span)
{
    const struct yaml_value *v = pair->value;
    if (v->kind != YAML_SCALAR || v->len == 0)
        return diag_error(r->d, pair->key->span, "'%s' is a word", pair->key->text);
    *out = v->text;
    *span = v->span;
    return true;
}

/* {tile: [64, 64]}, whose bytes are in the file. */
static bool read_schedule_text(struct spec_reader *r, const struct yaml_pair *pair,
                               struct spec_use *use)
{
    const struct yaml_value *v = pair->value;
    if (v->kind != YAML_MAP)
        return diag_error(r->d, pair->key->span, "a schedule is a map, as in {strategy: naive}");
    struct buf text = buf_in(r->a);
    for (size_t i = 0; i < v->n; i++) {
        const struct yaml_value *value = v->pair[i].value;
        const struct span s = value->kind == YAML_LIST ? value->all : value->span;
        if (value->kind == YAML_MAP || (value->kind == YAML_LIST && !value->is_flow))
            return diag_error(r->d, value->span, "a schedule's value is a word or [a, list]");
        buf_printf(&text, "%s%s: %.*s", i ? ", " : "{", v->pair[i].key->text, (int)s.len,
                   s.src->text + s.off);
    }
    buf_puts(&text, v->n ? "}" : "{}");
    use->schedule = buf_text(&text);
    use->schedule_span = pair->key->span;
    return true;
}

static bool read_use_map(struct spec_reader *r, const struct yaml_value *v, struct spec_use *use)
{
    bool good = true;
    struct span ignored;
    for (size_t i = 0; i < v->n; i++) {
        const struct yaml_pair *pair = &v->pair[i];
        if (strcmp(pair->key->text, "spec") == 0)
            good &= read_word(r, pair, &use->path, &use->path_span);
        else if (strcmp(pair->key->text, "kernel") == 0)
            good &= read_word(r, pair, &use->kernel, &ignored);
        else if (strcmp(pair->key->text, "schedule") == 0)
            good &= read_schedule_text(r, pair, use);
        else
            good &= read_define(r, pair, use);
    }
    return good;
}

static bool read_use(struct spec_reader *r, const struct yaml_pair *pair)
{
    struct spec_use *use = VEC_PUSH(r->a, &r->spec->program->uses);
    *use = (struct spec_use){.name = pair->key->text, .span = pair->key->span};
    if (!check_symbol_name(pair->key, &r->spec->names, "a kernel", r->d))
        return false;
    if (pair->value->kind == YAML_MAP)
        return read_use_map(r, pair->value, use);
    if (pair->value->kind == YAML_LIST)
        return diag_error(r->d, pair->value->span,
                          "a kernel that is used is a file, or a map, as in "
                          "{spec: matmul/nt.yaml, T: bf16}");
    return read_word(r, pair, &use->path, &use->path_span);
}

static bool read_uses(struct spec_reader *r, const struct yaml_value *v)
{
    enum { MOST = 256 };
    bool good = true;
    if (v->kind != YAML_MAP)
        return diag_error(r->d, v->span, "'use' is a map, with 'name: file.yaml' on each line");
    if (v->n > MOST)
        return diag_error(r->d, v->span, "more than %d kernels are used", MOST);
    for (size_t i = 0; i < v->n; i++)
        good &= read_use(r, &v->pair[i]);
    return good;
}

bool read_program_parts(struct spec_reader *r, const struct yaml_value *use,
                        const struct yaml_value *functions, const struct yaml_value *steps)
{
    struct spec_program *p = r->spec->program;
    bool good = !use || read_uses(r, use);
    if (functions && !text_span(functions, "functions", &p->functions, r->d))
        good = false;
    if (!steps || !text_span(steps, "steps", &p->steps_span, r->d))
        return false;
    return lang_parse_steps(r->a, p->steps_span, &r->spec->names, &p->steps, r->d) && good;
}
