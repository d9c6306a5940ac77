/* A spec as text, values for its names, and its reference: what the tests of lib/ref share. */
#ifndef KAIO_TESTS_REF_CASE_H
#define KAIO_TESTS_REF_CASE_H

#include "ref/compare.h"
#include "tap.h"

struct ref_case {
    struct arena *a;
    struct diags *d;
    struct spec *spec;
    uint64_t dims[16];
    struct ref_scalar scalars[16];
    const void *buffers[16];
    struct ref_input in;
    struct ref_options opt;
    struct ref *ref;
};

__attribute__((unused)) static struct ref_case case_of(const char *yaml)
{
    struct ref_case c = {.a = arena_new()};
    const char *text = arena_printf(c.a, "%s", yaml); /* as long as the case is there */
    c.d = diags_new(c.a);
    struct spec_file *f =
        spec_read(c.a, source_new(c.a, "test.yaml", text, strlen(text)), NULL, 0, c.d);
    if (f) {
        c.spec = f->specs.v[0];
        return c;
    }
    struct buf b = buf_in(c.a);
    diags_format(c.d, "test", false, &b);
    fputs(buf_text(&b), stderr);
    abort();
}

__attribute__((unused)) static void case_dim(struct ref_case *c, const char *name, uint64_t v)
{
    for (size_t k = 0; k < c->spec->dims.n; k++)
        if (strcmp(c->spec->dims.v[k]->name, name) == 0)
            c->dims[c->spec->dims.v[k]->id] = v;
}

static uint32_t case_param(const struct ref_case *c, const char *name)
{
    for (size_t k = 0; k < c->spec->params.n; k++)
        if (strcmp(c->spec->params.v[k].sym->name, name) == 0)
            return c->spec->params.v[k].sym->id;
    abort();
}

__attribute__((unused)) static void case_scalar(struct ref_case *c, const char *name, double v)
{
    c->scalars[case_param(c, name)] = (struct ref_scalar){v, (int64_t)v};
}

__attribute__((unused)) static void case_buffer(struct ref_case *c, const char *name, const void *p)
{
    c->buffers[case_param(c, name)] = p;
}

/* NULL when the evaluation failed: case_error() says why. */
__attribute__((unused)) static struct ref *case_run(struct ref_case *c)
{
    c->in = (struct ref_input){
        .spec = c->spec, .dims = c->dims, .scalars = c->scalars, .buffers = c->buffers};
    ref_free(c->ref);
    c->ref = ref_evaluate(c->a, &c->in, &c->opt, c->d);
    return c->ref;
}

/* Output k; ends the test when there is none. */
__attribute__((unused)) static const struct ref_output *case_out(struct ref_case *c, size_t k)
{
    if (!c->ref && !case_run(c)) {
        struct buf b = buf_in(c->a);
        diags_format(c->d, "test", false, &b);
        fputs(buf_text(&b), stderr);
        abort();
    }
    return ref_output(c->ref, k);
}

__attribute__((unused)) static const char *case_error(const struct ref_case *c)
{
    return c->d->list.n ? c->d->list.v[0].text : "";
}

__attribute__((unused)) static void case_end(struct ref_case *c)
{
    ref_free(c->ref);
    arena_free(c->a);
}

/* The same numbers in every run: a multiplicative generator, in (-1, 1). */
__attribute__((unused)) static double next_random(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (double)(int32_t)(uint32_t)(*s >> 32) / 2147483648.0;
}

#endif
