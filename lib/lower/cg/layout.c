/* The variables of an entry in memory, and how its shared memory is laid out. */
#include <config.h>

#include "lower/cg/cg.h"

#include "base/internal.h"

#include <inttypes.h>
#include <stdio.h>

enum { STATIC_SHARED = 48 << 10, ALIGNMENT = 16 };

/* ---- variables ------------------------------------------------------------------------------- */

unsigned cg_element_bytes(const struct lang_symbol *sym)
{
    return dtype_bits(sym->type) / 8 * (sym->lanes ? sym->lanes : 1);
}

enum ptx_mod cg_memory_type(enum dtype t)
{
    switch (dtype_bits(t)) {
    case 64: return t == DT_F64 ? PTX_F64 : dtype_class(t) == DTC_I ? PTX_S64 : PTX_U64;
    case 32: return t == DT_F32 ? PTX_F32 : dtype_class(t) == DTC_I ? PTX_S32 : PTX_U32;
    case 16: return dtype_is_float(t) ? PTX_B16 : dtype_class(t) == DTC_I ? PTX_S16 : PTX_U16;
    default: return dtype_class(t) == DTC_I ? PTX_S8 : PTX_U8;
    }
}

struct cg_variable *cg_variable_of(struct cg *g, const struct lang_symbol *sym)
{
    for (size_t i = 0; i < g->variables.n; i++)
        if (g->variables.v[i].sym == sym)
            return &g->variables.v[i];
    return NULL;
}

const char *cg_variable_name(struct cg *g, const struct lang_symbol *sym)
{
    unsigned same = 0;
    for (size_t i = 0; i < g->variables.n; i++)
        same += g->variables.v[i].var && strcmp(g->variables.v[i].sym->name, sym->name) == 0;
    return same ? arena_printf(g->a, "%s$%u", sym->name, same) : sym->name;
}

/* "[16][17]", which PTX can say as C does, so that who reads it can tell rows from columns; NULL
 * for one dimension. */
static const char *shape_text(struct cg *g, const struct lang_symbol *sym)
{
    struct buf b = buf_in(g->a);
    int64_t extent;
    if (sym->rank + (sym->lanes != 0) < 2)
        return NULL;
    for (uint32_t i = 0; i < sym->rank; i++) {
        if (!lang_const_int(sym->dims[i], &extent))
            return NULL;
        buf_printf(&b, "[%" PRId64 "]", extent);
    }
    if (sym->lanes)
        buf_printf(&b, "[%u]", sym->lanes);
    return buf_text(&b);
}

struct ptx_var *cg_declare_variable(struct cg *g, enum ptx_mod space, const struct lang_symbol *sym)
{
    uint64_t count = 1;
    size_t from = g->func->items.n;
    lang_array_count(sym, &count);
    count *= sym->lanes ? sym->lanes : 1;
    struct ptx_var *v = ptx_array_new(&g->b, space, cg_variable_name(g, sym),
                                      cg_memory_type(sym->type),
                                      sym->rank ? ALIGNMENT : cg_element_bytes(sym), count);
    v->shape = shape_text(g, sym);
    if (!sym->rank && !sym->lanes)
        v->is_array = false;
    cg_to_prologue(g, from, space == PTX_SHARED ? 2900000 : 2910000);
    return v;
}

/* ---- shared memory --------------------------------------------------------------------------- */

static void collect_shared(struct cg *g, const struct lang_stmt *s)
{
    if (s->kind == S_DECL && s->sym->kind == SYM_SHARED && s->sym->used)
        *VEC_PUSH(g->a, &g->variables) = (struct cg_variable){.sym = s->sym, .space = CG_SHARED};
    for (uint32_t i = 0; i < s->nbody; i++)
        collect_shared(g, s->body[i]);
}

static uint64_t rounded(uint64_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* An extent as the launch writes it: the block's size for blockDim, constants' values for their
 * names. */
static struct lang_expr *at_launch(struct cg *g, const struct lang_expr *e)
{
    struct lang_expr *copy = ARENA_NEW(g->a, struct lang_expr);
    *copy = *e;
    if (e->kind == E_SPECIAL) {
        uint32_t i = (uint32_t)(e->special - SP_NTID_X);
        if (i < g->spec->nblock)
            *copy = *g->spec->block[i];
        else
            *copy = (struct lang_expr){.kind = E_INT, .type = DT_I32, .ival = 1, .span = e->span};
        return copy;
    }
    if (e->kind == E_NAME && e->sym->kind == SYM_LOCAL) {
        *copy = (struct lang_expr){
            .kind = E_INT, .type = DT_I64, .ival = e->sym->value, .span = e->span};
        return copy;
    }
    copy->args = ARENA_ARRAY(g->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++)
        copy->args[i] = at_launch(g, e->args[i]);
    return copy;
}

/* The bytes of an array whose extents the launch knows, rounded up. */
static struct lang_expr *launch_bytes(struct cg *g, const struct lang_symbol *sym)
{
    struct lang_expr *bytes = lx_int(g->a, 1);
    const unsigned size = cg_element_bytes(sym);
    for (uint32_t i = 0; i < sym->rank; i++)
        bytes = lx_mul(g->a, bytes, at_launch(g, sym->dims[i]));
    bytes = lx_mul_int(g->a, bytes, size);
    if (size >= ALIGNMENT)
        return bytes;
    return lx_mul_int(g->a, lx_ceil_div_int(g->a, bytes, ALIGNMENT), ALIGNMENT);
}

static bool is_unsized(const struct lang_symbol *sym)
{
    return sym->rank && !sym->dims[0];
}

/* x + y; x NULL: y. */
static struct lang_expr *plus(struct cg *g, struct lang_expr *x, struct lang_expr *y)
{
    return x ? lx_add(g->a, x, y) : y;
}

/* The next place in the dynamic part, after what ends at *at bytes and *more, which the launch
 * knows. */
static void place_dynamic(struct cg *g, struct cg_variable *v, uint64_t *at,
                          struct lang_expr **more)
{
    uint64_t count;
    v->is_dynamic = true;
    v->offset = *more ? -1 : (int64_t)*at;
    if (*more)
        v->at = lx_add_int(g->a, *more, (int64_t)*at);
    if (lang_array_count(v->sym, &count))
        *at += rounded(count * cg_element_bytes(v->sym));
    else if (!is_unsized(v->sym))
        *more = plus(g, *more, launch_bytes(g, v->sym));
}

static bool over_limit(struct cg *g, const struct lang_symbol *sym, uint64_t bytes)
{
    return cg_error(g, sym->span,
                    "the block's shared memory is %llu bytes up to here, and %s has %u; make an "
                    "array smaller",
                    (unsigned long long)bytes, g->target->name, g->target->shared_optin);
}

/* The arrays of constant size are static while all of them fit in what a kernel has without asking;
 * the others, and all if they don't, are dynamic. */
static bool place_shared(struct cg *g)
{
    uint64_t fixed = g->reserved, at = 0, count;
    struct lang_expr *bytes = NULL;
    const struct lang_symbol *unsized = NULL;
    for (size_t i = 0; i < g->variables.n; i++) {
        const struct lang_symbol *sym = g->variables.v[i].sym;
        if (lang_array_count(sym, &count))
            fixed += rounded(count * cg_element_bytes(sym));
        if (fixed > g->target->shared_optin)
            return over_limit(g, sym, fixed);
        if (is_unsized(sym))
            unsized = sym;
    }
    for (int last = 0; last < 2; last++) /* the one without a size goes behind all others */
        for (size_t i = 0; i < g->variables.n; i++) {
            struct cg_variable *v = &g->variables.v[i];
            bool is_static = lang_array_count(v->sym, &count) && fixed <= STATIC_SHARED;
            if (!is_static && is_unsized(v->sym) == (last != 0))
                place_dynamic(g, v, &at, &bytes);
        }
    if (unsized)
        bytes = plus(g, bytes, g->spec->shared);
    if (at)
        bytes = plus(g, bytes, lx_int(g->a, (int64_t)at));
    int64_t more = 0;
    if (unsized && lang_const_int(g->spec->shared, &more) &&
        (more < 0 || fixed + (uint64_t)more > g->target->shared_optin))
        return over_limit(g, unsized, fixed + (uint64_t)more);
    g->shared_bytes = bytes;
    return true;
}

bool cg_layout(struct cg *g, const struct lang_stmt *body)
{
    collect_shared(g, body);
    return place_shared(g);
}

void cg_tell_arrays(struct cg *g, struct contract_launch *l)
{
    for (size_t i = 0; i < g->variables.n; i++) {
        const struct cg_variable *v = &g->variables.v[i];
        if (!v->is_dynamic)
            continue;
        struct contract_array *a = VEC_PUSH(g->a, &l->arrays);
        a->name = v->sym->name;
        a->type = v->sym->type;
        a->at = v->offset < 0 ? v->at : lx_int(g->a, v->offset);
        for (uint32_t k = 0; !is_unsized(v->sym) && k < v->sym->rank; k++)
            *VEC_PUSH(g->a, &a->extents) = at_launch(g, v->sym->dims[k]);
        if (v->sym->lanes && !is_unsized(v->sym))
            *VEC_PUSH(g->a, &a->extents) = lx_int(g->a, v->sym->lanes);
    }
}

/* .extern .shared, of the module and of all its kernels. */
struct ptx_var *cg_dynamic(struct cg *g)
{
    static const char name[] = "$shared";
    for (size_t i = 0; i < g->module->items.n && !g->dynamic; i++) {
        const struct ptx_item *it = &g->module->items.v[i];
        if (it->kind == PTX_I_VAR && strcmp(it->var->name, name) == 0)
            g->dynamic = it->var;
    }
    if (g->dynamic)
        return g->dynamic;
    struct arena *a = g->module->arena;
    struct ptx_var *v = g->dynamic = ARENA_NEW(a, struct ptx_var);
    *v = (struct ptx_var){.name = name,
                          .space = PTX_SHARED,
                          .type = PTX_B8,
                          .align = ALIGNMENT,
                          .is_array = true,
                          .linkage = ".extern",
                          .span = g->b.span};
    cg_module_variable(g, v);
    return v;
}

void cg_module_variable(struct cg *g, struct ptx_var *v)
{
    struct ptx_module *m = g->module;
    size_t at = m->items.n;
    VEC_PUSH(m->arena, &m->items);
    while (at > 0 && m->items.v[at - 1].kind == PTX_I_FUNC) { /* before the functions */
        m->items.v[at] = m->items.v[at - 1];
        at--;
    }
    m->items.v[at] = (struct ptx_item){.kind = PTX_I_VAR, .span = v->span, .var = v};
}

const struct lang_symbol *cg_shared_symbol(struct cg *g, const struct lang_symbol *sym)
{
    const struct cg_binding *b = cg_find(g, sym);
    return b && b->array ? b->array : sym;
}

const struct ptx_var *cg_shared_variable(struct cg *g, const struct lang_symbol *sym)
{
    struct cg_variable *v = cg_variable_of(g, sym);
    if (!v)
        INTERNAL_ERROR("cg_layout() collects every shared variable that is used, but not '%s'",
                       sym->name);
    if (!v->var) {
        struct ptx_var *var = v->is_dynamic ? cg_dynamic(g)
                                            : cg_declare_variable(g, PTX_SHARED, sym);
        v = cg_variable_of(g, sym);
        v->var = var;
    }
    return v->var;
}
