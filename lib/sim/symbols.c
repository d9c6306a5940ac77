/* Module-level variables: their memory and their initial values. */
#include <config.h>

#include <ctype.h>
#include <stdlib.h>

#include "sim/module.h"

/* An initialiser being read: numbers, nested braces, addresses of variables. */
struct reader {
    const struct ptx_module *m;
    const struct sim_symbols *symbols;
    const struct ptx_var *v;
    unsigned char *to;
    uint64_t at, bytes; /* next element; size of the variable */
    const char *p;
    struct diags *d;
    unsigned depth;
};

static void spaces(struct reader *r)
{
    while (isspace((unsigned char)*r->p))
        r->p++;
}

static bool bad(struct reader *r)
{
    return diag_error(r->d, r->v->span,
                      "the simulator can't read the initial value of '%s' at '%.20s'", r->v->name,
                      r->p);
}

static bool put(struct reader *r, uint64_t bits)
{
    const uint64_t each = ptx_type_bits(r->v->type) / 8;
    if (!each || each > 8 || r->at + each > r->bytes)
        return bad(r);
    memcpy(r->to + r->at, &bits, (size_t)each);
    r->at += each;
    return true;
}

static bool symbol(struct reader *r)
{
    size_t len = strspn(r->p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%");
    const bool generic = len == 7 && strncmp(r->p, "generic", 7) == 0 && r->p[7] == '(';
    if (generic) {
        r->p += 8;
        spaces(r);
        len = strcspn(r->p, ") ");
    }
    for (size_t i = 0; i < r->symbols->list.n; i++) {
        const struct sim_symbol *s = &r->symbols->list.v[i];
        if (strlen(s->var->name) != len || strncmp(s->var->name, r->p, len) != 0)
            continue;
        r->p += len;
        spaces(r);
        r->p += generic && *r->p == ')';
        spaces(r);
        int64_t off = 0;
        if (*r->p == '+' || *r->p == '-') {
            char *end;
            off = strtoll(r->p, &end, 0);
            r->p = end;
        }
        return put(r, s->address + (uint64_t)off);
    }
    const uint64_t function = sim_function_address(r->m, r->p, len);
    if (!function)
        return bad(r);
    r->p += len;
    spaces(r);
    r->p += generic && *r->p == ')';
    return put(r, function);
}

static bool number(struct reader *r)
{
    char *end;
    const char *p = r->p + (*r->p == '-' || *r->p == '+');
    uint64_t bits;
    if (p[0] == '0' && (p[1] == 'f' || p[1] == 'F')) {
        bits = strtoull(arena_printf(r->m->arena, "%.8s", p + 2), NULL, 16);
        end = (char *)p + 10;
    } else if (p[0] == '0' && (p[1] == 'd' || p[1] == 'D')) {
        bits = strtoull(arena_printf(r->m->arena, "%.16s", p + 2), NULL, 16);
        end = (char *)p + 18;
    } else if (ptx_type_is_float(r->v->type) && strcspn(p, ".eE") < strcspn(p, ",}x")) {
        const double x = strtod(r->p, &end);
        const float f = (float)x;
        uint32_t u;
        memcpy(&u, &f, 4);
        memcpy(&bits, &x, 8);
        if (r->v->type == PTX_F32)
            bits = u;
    } else {
        bits = strtoull(p, &end, 0);
        if (end == p)
            return bad(r);
        while (*end == 'U' || *end == 'u')
            end++;
        bits = *r->p == '-' ? 0 - bits : bits;
    }
    if (strnlen(r->p, (size_t)(end - r->p)) < (size_t)(end - r->p))
        return bad(r);
    r->p = end;
    return put(r, bits);
}

static bool value(struct reader *r)
{
    enum { DEEP = 16 };
    spaces(r);
    if (*r->p != '{')
        return isdigit((unsigned char)*r->p) || *r->p == '-' || *r->p == '+' ? number(r)
                                                                             : symbol(r);
    if (r->depth++ == DEEP)
        return bad(r);
    do {
        r->p++;
        spaces(r);
        if (*r->p != '}' && !value(r))
            return false;
        spaces(r);
    } while (*r->p == ',');
    r->depth--;
    return *r->p++ == '}' || bad(r);
}

static bool initialise(struct reader *r)
{
    if (!r->v->init)
        return true;
    r->p = r->v->init;
    if (!value(r))
        return false;
    spaces(r);
    return !*r->p || bad(r);
}

static bool in_memory(const struct ptx_item *item)
{
    if (item->kind != PTX_I_VAR)
        return false;
    const enum ptx_mod space = ptx_space(item->var->space);
    return space == PTX_GLOBAL || space == PTX_CONST;
}

static bool add(const struct ptx_module *m, const struct ptx_var *v, struct sim_memory *mem,
                struct sim_symbols *symbols, struct diags *d)
{
    const struct device_label label = {.name = v->name,
                                       .type = ptx_mod_text(v->type),
                                       .element_bits = ptx_type_bits(v->type),
                                       .read_only = ptx_space(v->space) == PTX_CONST};
    const struct sim_buffer *b = sim_mem_alloc(mem, ptx_var_bytes(v), &label, "variable");
    if (!b)
        return diag_error(d, v->span, "no memory left for the variable '%s'", v->name);
    struct sim_symbol *s = VEC_PUSH(m->arena, &symbols->list);
    s->var = v;
    s->address = b->base;
    return true;
}

enum device_status sim_place_symbols(const struct ptx_module *m, struct sim_memory *mem,
                                     struct sim_symbols *symbols, struct diags *d)
{
    for (size_t i = 0; i < m->items.n; i++)
        if (in_memory(&m->items.v[i]) && !add(m, m->items.v[i].var, mem, symbols, d))
            return DEVICE_FAILED;
    /* only now: an initialiser may name a variable that comes later */
    for (size_t i = 0; i < symbols->list.n; i++) {
        const struct sim_symbol *s = &symbols->list.v[i];
        struct reader r = {
            .m = m, .symbols = symbols, .v = s->var, .d = d, .bytes = ptx_var_bytes(s->var)};
        r.to = sim_mem_host(mem, s->address, r.bytes);
        if (!initialise(&r))
            return DEVICE_REFUSED;
    }
    return DEVICE_OK;
}
