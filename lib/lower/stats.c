#include <config.h>

#include "lower/lower.h"

#include <stdlib.h>

/* "ld.global", "setp", "fma": the name, with the state space where there is one. */
static const char *mix_name(struct arena *a, const struct ptx_inst *in)
{
    const char *name = ptx_op_name(in->op);
    enum ptx_mod space = (enum ptx_mod)in->mod[PTX_MC_SPACE];
    return space == PTX_NONE ? name : arena_printf(a, "%s.%s", name, ptx_mod_text(space));
}

static void count(struct arena *a, struct lower_stat *s, size_t *cap, const char *name)
{
    s->instructions++;
    for (size_t i = 0; i < s->nmix; i++)
        if (strcmp(s->mix[i].name, name) == 0) {
            s->mix[i].count++;
            return;
        }
    if (s->nmix == *cap) {
        size_t more = *cap ? *cap * 2 : 32;
        s->mix = arena_grow(a, s->mix, *cap * sizeof *s->mix, more * sizeof *s->mix);
        *cap = more;
    }
    s->mix[s->nmix++] = (struct lower_mix){name, 1};
}

static int most_first(const void *x, const void *y)
{
    const struct lower_mix *p = x, *q = y;
    if (p->count != q->count)
        return p->count < q->count ? 1 : -1;
    return strcmp(p->name, q->name);
}

static struct lower_stat stat_of(struct arena *a, const struct ptx_func *f)
{
    struct lower_stat s = {.entry = f->name};
    size_t cap = 0;
    for (size_t i = 0; i < f->items.n; i++) {
        const struct ptx_item *it = &f->items.v[i];
        if (it->kind == PTX_I_INST)
            count(a, &s, &cap, mix_name(a, &it->inst));
        else if (it->kind == PTX_I_VAR && it->var->space == PTX_SHARED)
            s.shared_bytes += ptx_var_bytes(it->var);
        else if (it->kind == PTX_I_VAR && it->var->space == PTX_LOCAL)
            s.local_bytes += ptx_var_bytes(it->var);
    }
    for (size_t i = 0; i < f->regs.n; i++) {
        unsigned bits = ptx_type_bits(f->regs.v[i].type);
        *(bits == 1 ? &s.pred : bits == 16 ? &s.b16 : bits == 64 ? &s.b64 : &s.b32) += 1;
    }
    if (s.nmix)
        qsort(s.mix, s.nmix, sizeof *s.mix, most_first);
    return s;
}

struct lower_stat *lower_stats(struct arena *a, const struct ptx_module *m, size_t *n)
{
    struct lower_stat *v = ARENA_ARRAY(a, m->items.n + 1, struct lower_stat);
    *n = 0;
    for (size_t i = 0; i < m->items.n; i++)
        if (m->items.v[i].kind == PTX_I_FUNC && m->items.v[i].func->is_entry)
            v[(*n)++] = stat_of(a, m->items.v[i].func);
    return v;
}
