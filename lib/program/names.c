/* What steps can name: parameters, and the temps of the blocks around. */
#include <config.h>

#include "program/program_int.h"

struct variable *find_variable(const struct builder *b, const char *name)
{
    for (const struct block *k = b->block; k; k = k->up)
        for (size_t i = k->vars.n; i-- > 0;)
            if (strcmp(k->vars.v[i]->name, name) == 0)
                return k->vars.v[i];
    return NULL;
}

struct variable *need_variable(struct builder *b, const char *name, struct span at)
{
    struct variable *var = find_variable(b, name);
    VEC(const char *) names = {0};
    if (var)
        return var;
    for (const struct block *k = b->block; k; k = k->up)
        for (size_t i = 0; i < k->vars.n; i++)
            *VEC_PUSH(b->a, &names) = k->vars.v[i]->name;
    *VEC_PUSH(b->a, &names) = NULL;
    const struct lang_symbol *sym = lang_find(&b->block->scope, name);
    const char *near = diag_nearest(name, strlen(name), names.v);
    if (sym)
        diag_error(b->d, at, "'%s' is a number, and a buffer is needed here", name);
    else if (near)
        diag_error(b->d, at, "there is no buffer '%s' here; did you mean '%s'?", name, near);
    else
        diag_error(b->d, at,
                   "there is no buffer '%s' here; one that a block gives its first value is "
                   "known in that block alone",
                   name);
    return NULL;
}

const char *take_name(struct builder *b, const char *name)
{
    const char *free = name;
    for (unsigned k = 2;; k++) {
        bool taken = false;
        for (size_t i = 0; i < b->names.n && !taken; i++)
            taken = strcmp(b->names.v[i], free) == 0;
        if (!taken && !lang_find(&b->spec->params_scope, free)) {
            *VEC_PUSH(b->a, &b->names) = free;
            return free;
        }
        free = arena_printf(b->a, "%s_%u", name, k);
    }
}

struct variable *add_temp(struct builder *b, const char *name, struct span at,
                          const struct shape *s)
{
    enum { MOST = 256 }; /* as many as a contract has */
    struct variable *var = ARENA_NEW(b->a, struct variable);
    for (uint32_t i = 0; i < s->rank; i++) {
        const struct lang_symbol *loop = expr_loop(b, s->dim[i]);
        if (loop) {
            diag_error(b->d, at,
                       "'%s' would be %s, of another size in each round of '%s'; declare it in "
                       "temps, as large as it gets",
                       name, shape_text(b, s), loop->name);
            return NULL;
        }
    }
    if (b->out->contract->temps.n >= MOST) {
        if (!b->too_much)
            diag_error(b->d, at, "more than %d temps", MOST);
        b->too_much = true;
        return NULL;
    }
    const char *unique = take_name(b, name);
    *var = (struct variable){.name = name,
                             .unique = unique,
                             .sym = contract_add_temp(b->a, b->out->contract,
                                                      arena_printf(b->a, "$%s", unique), s->type,
                                                      s->rank, s->dim, false),
                             .span = at};
    *VEC_PUSH(b->a, &b->block->vars) = var;
    return var;
}
