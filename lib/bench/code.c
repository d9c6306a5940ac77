#include <config.h>

#include "bench/code.h"

#include "lower/lower.h"
#include "spec/contract.h"
#include "values.h"

struct spec *code_choose(struct spec_file *f, const char *path, const char *name, struct diags *d)
{
    struct buf list = buf_in(d->arena);
    struct spec *s = name ? spec_find(f, name) : f->specs.n == 1 ? f->specs.v[0] : NULL;
    for (size_t i = 0; i < f->specs.n && (!name || s); i++)
        if (f->specs.v[i]->program && (!name || f->specs.v[i] == s)) {
            diag_error(d, SPAN_NONE, "'%s' is a program, and kaio-bench times kernels%s",
                       f->specs.v[i]->name, f->specs.n > 1 ? "; choose one with --kernel" : "");
            return NULL;
        }
    if (s)
        return s;
    for (size_t i = 0; i < f->specs.n; i++)
        buf_printf(&list, "%s%s", i ? ", " : "", f->specs.v[i]->name);
    if (name)
        diag_error(d, SPAN_NONE, "'%s' has no kernel '%s'", path, name);
    else
        diag_error(d, SPAN_NONE, "'%s' has several kernels; choose one with --kernel", path);
    diag_note(d, SPAN_NONE, "it has %s", buf_text(&list));
    return NULL;
}

static bool has_dim(const struct spec *s, const char *name)
{
    for (size_t i = 0; i < s->dims.n; i++)
        if (strcmp(s->dims.v[i]->name, name) == 0)
            return true;
    return false;
}

/* Errors and nothing else: warnings were shown when the file was read first. */
static bool keep_errors(struct diags *d, const struct diags *from)
{
    struct diags errors = {.arena = d->arena};
    for (size_t i = 0; i < from->list.n; i++)
        if (from->list.v[i].level != DIAG_WARNING) {
            *VEC_PUSH(d->arena, &errors.list) = from->list.v[i];
            errors.nerror += from->list.v[i].level == DIAG_ERROR;
        }
    diags_append(d, &errors);
    return false;
}

/* The point's types, its dimensions unless the code is to be generic, and what is fixed in any
 * case. */
static bool read_spec(struct code *c, const struct code_source *src, const struct bench_point *p)
{
    struct diags *own = diags_new(c->a);
    struct spec_file *plain = spec_read(c->a, src->text, NULL, 0, own);
    const struct spec *s = plain ? spec_find(plain, src->kernel) : NULL;
    if (!s)
        return keep_errors(c->d, own);
    for (size_t i = 0; i < p->values.n; i++) {
        const struct bench_value *v = &p->values.v[i];
        bool fixed = !src->generic && has_dim(s, v->name) && v->i > 0; /* 0 is for launches only */
        for (size_t k = 0; k < src->ndefine; k++)
            fixed |= has_dim(s, v->name) && strcmp(src->define[k].name, v->name) == 0;
        if (v->type != DT_VOID ? spec_find_type(s, v->name) != NULL : fixed)
            *VEC_PUSH(c->a, &c->defines) = (struct spec_define){v->name, (uint64_t)v->i, v->type};
    }
    own = diags_new(c->a);
    struct spec_file *f = spec_read(c->a, src->text, c->defines.v, c->defines.n, own);
    c->spec = f ? spec_find(f, src->kernel) : NULL;
    if (!c->spec)
        return keep_errors(c->d, own);
    return !src->schedule || spec_set_schedule(c->a, c->spec, src->schedule, c->d);
}

static bool emit(struct code *c, const struct code_source *src)
{
    static const struct lower_options options = {0};
    struct diags *own = diags_new(c->a);
    struct buf text = buf_in(c->a);
    c->module = lower_specs(c->a, &c->spec, 1, src->target, &options, own);
    if (!c->module)
        return keep_errors(c->d, own);
    ptx_print(c->module, &text);
    c->ptx =
        source_new(c->a, arena_printf(c->a, "%s.ptx", c->spec->name), buf_text(&text), text.len);
    const struct source *header = source_new(c->a,
                                             arena_printf(c->a, "%s (contract)", c->ptx->name),
                                             c->module->header, strlen(c->module->header));
    struct contract_file *file = contract_read(c->a, header, c->d);
    c->contract = file && file->v.n == 1 ? file->v.v[0] : NULL;
    return c->contract != NULL;
}

static bool bind(struct code *c, const struct bench_point *p, unsigned multiprocessors)
{
    struct run *r = c->run = run_new(c->a, c->contract, c->d);
    r->multiprocessors = multiprocessors;
    for (size_t i = 0; i < p->values.n; i++) {
        const struct bench_value *v = &p->values.v[i];
        struct run_dim *dim = run_find_dim(r, v->name);
        struct run_param *param = run_find_param(r, v->name);
        const char *from = arena_printf(c->a, "%s=%s", v->name, v->text);
        if (v->type != DT_VOID)
            continue;
        if (dim ? !run_bind_dim(r, dim, v->i, from)
                : param && !run_is_buffer(param) && !run_bind_scalar(r, param, v->f, v->i))
            return false;
    }
    return run_shapes(r) && run_sums(r, NULL, &c->sums) && plan_make(r, c->module, &c->plan);
}

bool code_read(struct arena *a, const struct code_source *src, const struct bench_point *p,
               struct code *out, struct diags *d)
{
    *out = (struct code){.a = a, .d = d};
    return read_spec(out, src, p);
}

bool code_make(struct arena *a, const struct code_source *src, const struct bench_point *p,
               unsigned multiprocessors, struct code *out, struct diags *d)
{
    *out = (struct code){.a = a, .d = d, .case_name = p->case_name};
    if (!multiprocessors)
        multiprocessors = lower_multiprocessors(src->target);
    if (!read_spec(out, src, p) || !emit(out, src) || !bind(out, p, multiprocessors))
        return false;
    for (size_t i = 0; i < out->run->nparam; i++) {
        const struct run_param *param = &out->run->param[i];
        if (!run_is_buffer(param))
            continue;
        out->footprint += param->host.bytes;
        out->bytes += param->host.bytes * (param->sym->mode == MODE_INOUT ? 2 : 1);
    }
    out->in = values_of(a, out->spec, out->run);
    return true;
}
