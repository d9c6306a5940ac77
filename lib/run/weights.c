#include <config.h>

#include "run/weights.h"

static bool is_named(const run_arg_list *args, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(args->v[i].name, name) == 0)
            return true;
    return false;
}

/* The first of several. */
static const struct safetensors_place *find(const safetensors_list *w, const char *name)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->v[i].name, name) == 0)
            return &w->v[i];
    return NULL;
}

void weights_complete(struct arena *a, const struct contract *c, const safetensors_list *w,
                      run_arg_list *args)
{
    const size_t given = args->n;
    for (size_t i = 0; i < c->params.n; i++) {
        const struct lang_symbol *sym = c->params.v[i].sym;
        const struct safetensors_place *place =
            sym->kind == SYM_BUFFER && sym->mode != MODE_OUT ? find(w, sym->name) : NULL;
        if (place && !is_named(args, given, sym->name))
            *VEC_PUSH(a, args) = (struct run_arg){
                .name = sym->name, .value = arena_printf(a, "%s#%s", place->path, place->name)};
    }
}
