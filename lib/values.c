#include <config.h>

#include "values.h"

struct ref_input values_of(struct arena *a, const struct spec *s, struct run *r)
{
    uint64_t *dims = ARENA_ARRAY(a, s->dims.n, uint64_t);
    struct ref_scalar *scalars = ARENA_ARRAY(a, s->params.n, struct ref_scalar);
    const void **buffers = ARENA_ARRAY(a, s->params.n, const void *);
    for (size_t k = 0; k < s->dims.n; k++) {
        const struct lang_symbol *sym = s->dims.v[k];
        const struct run_dim *dim = run_find_dim(r, sym->name);
        dims[sym->id] = dim ? (uint64_t)dim->value : sym->value;
    }
    for (size_t k = 0; k < s->params.n; k++) {
        const struct lang_symbol *sym = s->params.v[k].sym;
        const struct run_param *p = run_find_param(r, sym->name);
        if (!p)
            continue;
        scalars[sym->id] = (struct ref_scalar){p->f, p->i};
        buffers[sym->id] = run_is_input(p) ? p->host.data : NULL;
    }
    return (struct ref_input){.spec = s, .dims = dims, .scalars = scalars, .buffers = buffers};
}

bool values_vary(const struct run *r)
{
    for (size_t k = 0; k < r->nparam; k++) {
        const struct run_param *p = &r->param[k];
        if (!run_is_input(p) || !p->host.data || p->host.count < 2)
            continue;
        const unsigned char *bytes = p->host.data;
        size_t size = dtype_bits(p->host.type) / 8;
        size = size ? size : 1;
        for (size_t i = size; i + size <= p->host.bytes; i += size)
            if (memcmp(bytes, bytes + i, size) != 0)
                return true;
    }
    return false;
}
