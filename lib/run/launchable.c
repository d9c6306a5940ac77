#include <config.h>

#include "run/launchable.h"

#include "base/io.h"

static bool is_cubin(const struct source *s)
{
    return s->len >= 4 && memcmp(s->text, "\177ELF", 4) == 0;
}

static bool read_ptx(struct arena *a, const struct launchable_options *o, struct launchable *p,
                     struct diags *d)
{
    p->ptx = io_read(a, d, o->path, IO_TEXT_LIMIT);
    if (!p->ptx)
        return false;
    if (p->ptx->len == 0)
        return diag_error(d, SPAN_NONE, "'%s' is empty; PTX is expected", p->ptx->name);
    if (is_cubin(p->ptx))
        return o->gpu ||
               diag_error(d, SPAN_NONE, "'%s' is a cubin, which runs on a GPU only", p->ptx->name);
    p->module = ptx_parse(a, p->ptx, o->gpu ? diags_new(a) : d);
    return p->module || o->gpu;
}

/* The leading lines behind "//@ ": the contract's text, line for line. */
static const struct source *contract_lines(struct arena *a, const struct source *s)
{
    struct buf text = buf_in(a);
    const char *p = s->text, *end = p + s->len;
    while (end - p >= 3 && memcmp(p, "//@", 3) == 0) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        eol = eol ? eol : end;
        const char *from = p + 3 < eol && p[3] == ' ' ? p + 4 : p + 3;
        buf_add(&text, from, (size_t)(eol - from));
        buf_putc(&text, '\n');
        p = eol < end ? eol + 1 : end;
    }
    return source_new(a, s->name, buf_text(&text), text.len);
}

static bool make_contract(struct arena *a, const struct launchable_options *o, struct launchable *p,
                          struct diags *d)
{
    struct run_arg *value = NULL;
    struct contract *c = made_contract(a, &o->made, &value, &p->narg, d);
    if (!c)
        return false;
    p->arg = value;
    p->contracts = ARENA_NEW(a, struct contract_file);
    *VEC_PUSH(a, &p->contracts->v) = c;
    return true;
}

static bool read_contracts(struct arena *a, const struct launchable_options *o,
                           struct launchable *p, struct diags *d)
{
    const struct source *text;
    if (o->launch) {
        text = io_read(a, d, o->launch, IO_TEXT_LIMIT);
        if (text && text->len >= 3 && memcmp(text->text, "//@", 3) == 0)
            text = contract_lines(a, text);
    } else {
        text = contract_lines(a, p->ptx);
        if (text->len == 0) {
            diag_error(d, SPAN_NONE,
                       "'%s' has no launch contract; say how to launch it with --entry or --launch",
                       p->ptx->name);
            if (p->module)
                made_explain(p->module, d);
            return false;
        }
    }
    p->contracts = text ? contract_read(a, text, d) : NULL;
    p->where = text ? text->name : NULL;
    return p->contracts;
}

bool launchable_read(struct arena *a, const struct launchable_options *o, struct launchable *p,
                     struct diags *d)
{
    *p = (struct launchable){0};
    return read_ptx(a, o, p, d) &&
           (o->made.entry ? make_contract(a, o, p, d) : read_contracts(a, o, p, d));
}

const struct contract *launchable_kernel(const struct launchable *p, const char *name,
                                         struct diags *d)
{
    const size_t n = p->contracts->v.n;
    const char **names = ARENA_ARRAY(d->arena, n + 1, const char *);
    struct buf list = buf_in(d->arena);
    if (!name && contract_main(p->contracts))
        return contract_main(p->contracts);
    for (size_t i = 0; i < n; i++) {
        names[i] = p->contracts->v.v[i]->kernel;
        buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
        if (name && strcmp(name, names[i]) == 0)
            return p->contracts->v.v[i];
    }
    const char *where = p->where ? p->where : p->ptx->name,
               *near = name ? diag_nearest(name, strlen(name), names) : NULL;
    if (!name)
        diag_error(d, SPAN_NONE, "'%s' holds %zu kernels (%s); choose one with --kernel", where, n,
                   buf_text(&list));
    else if (near)
        diag_error(d, SPAN_NONE, "'%s' has no kernel '%s'; did you mean '%s'?", where, name, near);
    else
        diag_error(d, SPAN_NONE, "'%s' has no kernel '%s'; it has %s", where, name,
                   buf_text(&list));
    return NULL;
}

bool launchable_has_state(const struct launchable *p)
{
    for (size_t i = 0; p->module && i < p->module->items.n; i++) {
        const struct ptx_item *it = &p->module->items.v[i];
        if (it->kind == PTX_I_VAR && it->var->space == PTX_GLOBAL)
            return true;
    }
    return !p->module;
}
