#include <config.h>

#include "ptx/ptx.h"

struct ptx_func *ptx_find_func(const struct ptx_module *m, const char *name)
{
    struct ptx_func *found = NULL;
    for (size_t i = 0; i < m->items.n; i++) {
        struct ptx_func *f = m->items.v[i].kind == PTX_I_FUNC ? m->items.v[i].func : NULL;
        if (f && strcmp(f->name, name) == 0 && (!found || f->has_body))
            found = f;
    }
    return found;
}

struct ptx_func *ptx_find_entry(const struct ptx_module *m, const char *name)
{
    struct ptx_func *f = ptx_find_func(m, name);
    return f && f->is_entry ? f : NULL;
}

static uint64_t element_bytes(const struct ptx_var *v)
{
    uint64_t n = (ptx_type_bits(v->type) + 7) / 8;
    return v->vec == PTX_V2 ? 2 * n : v->vec == PTX_V4 ? 4 * n : n;
}

uint64_t ptx_var_bytes(const struct ptx_var *v)
{
    return element_bytes(v) * (v->is_array ? v->count : 1);
}

uint32_t ptx_var_align(const struct ptx_var *v)
{
    return v->align ? v->align : (uint32_t)element_bytes(v);
}

uint64_t ptx_param_bytes(const struct ptx_func *f)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < f->params.n; i++) {
        const uint64_t align = ptx_var_align(f->params.v[i]);
        bytes = align ? (bytes + align - 1) / align * align : bytes;
        bytes += ptx_var_bytes(f->params.v[i]);
    }
    return bytes;
}
