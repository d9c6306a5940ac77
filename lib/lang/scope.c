#include <config.h>

#include "lang/lang_int.h"

void scope_add(struct arena *a, struct lang_scope *s, struct lang_symbol *sym)
{
    *VEC_PUSH(a, &s->syms) = sym;
}

struct lang_symbol *scope_find_here(const struct lang_scope *s, const char *name)
{
    for (size_t i = s->syms.n; i-- > 0;) {
        const char *other = s->syms.v[i]->name;
        if (other[0] == name[0] && strcmp(other, name) == 0)
            return s->syms.v[i];
    }
    return NULL;
}

struct lang_symbol *lang_find(const struct lang_scope *s, const char *name)
{
    for (; s; s = s->up) {
        struct lang_symbol *sym = scope_find_here(s, name);
        if (sym)
            return sym;
    }
    return NULL;
}

const char *scope_nearest(struct arena *a, const struct lang_scope *s, const char *name,
                          bool function)
{
    VEC(const char *) names = {0};
    for (; s; s = s->up)
        for (size_t i = 0; i < s->syms.n; i++)
            if ((s->syms.v[i]->kind == SYM_FUNC) == function)
                *VEC_PUSH(a, &names) = s->syms.v[i]->name;
    if (function)
        for (int i = 0; i < FN_COUNT; i++)
            *VEC_PUSH(a, &names) = lang_builtin_name((enum lang_builtin)i);
    *VEC_PUSH(a, &names) = NULL;
    return diag_nearest(name, strlen(name), names.v);
}
