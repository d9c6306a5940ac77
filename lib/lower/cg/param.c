/* The parameters of an entry, made at their first use, and the special registers. */
#include <config.h>

#include "lower/cg/cg.h"

#include "base/internal.h"

#include <stdlib.h>

/* ---- parameters ------------------------------------------------------------------------------ */

static const char *param_mnemonic(enum dtype t)
{
    switch (t) {
    case DT_F64: return "ld.param.f64";
    case DT_F32: return "ld.param.f32";
    case DT_F16:
    case DT_BF16: return "ld.param.b16";
    case DT_E4M3:
    case DT_E5M2: return "ld.param.u8";
    case DT_I64: return "ld.param.s64";
    case DT_U64: return "ld.param.u64";
    case DT_I32: return "ld.param.s32";
    case DT_U32: return "ld.param.u32";
    case DT_I16: return "ld.param.s16";
    case DT_U16: return "ld.param.u16";
    case DT_I4:
    case DT_I8: return "ld.param.s8";
    case DT_U4:
    case DT_U8:
    case DT_BOOL: return "ld.param.u8";
    case DT_COUNT: break;
    }
    INTERNAL_ERROR("no parameter has type %d", (int)t);
}

static enum ptx_mod param_type(enum dtype t)
{
    switch (t) {
    case DT_F64: return PTX_F64;
    case DT_F32: return PTX_F32;
    case DT_F16:
    case DT_BF16: return PTX_B16;
    case DT_I64: return PTX_S64;
    case DT_U64: return PTX_U64;
    case DT_I32: return PTX_S32;
    case DT_U32: return PTX_U32;
    case DT_I16: return PTX_S16;
    case DT_U16: return PTX_U16;
    case DT_I4:
    case DT_I8: return PTX_S8;
    case DT_E4M3:
    case DT_E5M2:
    case DT_U4:
    case DT_U8:
    case DT_BOOL: return PTX_U8;
    case DT_COUNT: break;
    }
    INTERNAL_ERROR("no parameter has type %d", (int)t);
}

/* How an entry's parameter comes to be; its variable, type and value are load_param()'s. */
static struct cg_val load_param(struct cg *g, const char *name, enum dtype t, struct cg_param how)
{
    const struct lang_symbol *sym = how.sym;
    size_t from = g->func->items.n;
    struct cg_param *p = VEC_PUSH(g->a, &g->params);
    *p = how;
    p->var = ptx_param_new(g->module, g->func, name, param_type(t));
    int32_t reg = t == DT_BOOL ? cg_new(g, DT_U32) : cg_new(g, t);
    PTX(&g->b, param_mnemonic(t), ptx_r(reg), ptx_mem_var(p->var, 0));
    if (how.hidden || (sym && sym->kind == SYM_BUFFER)) {
        int32_t global = cg_new(g, DT_U64);
        PTX(&g->b, "cvta.to.global.u64", ptx_r(global), ptx_r(reg));
        reg = global;
    } else if (t == DT_BOOL) {
        int32_t pred = cg_new(g, DT_BOOL);
        PTX(&g->b, "setp.ne.u32", ptx_r(pred), ptx_r(reg), ptx_imm(0));
        reg = pred;
    }
    p->val = cg_value(t, reg);
    cg_set_depth(g, reg, 0);
    cg_to_prologue(g, from, how.order);
    return g->params.v[g->params.n - 1].val;
}

static bool is_intermediate(const struct cg *g, const char *name)
{
    for (size_t i = 0; i < g->spec->compute.n; i++) {
        const struct lang_symbol *t = g->spec->compute.v[i]->sym;
        if (t->kind == SYM_TENSOR && strcmp(t->name, name) == 0)
            return true;
    }
    return false;
}

/* "$NAME", or with a number behind it: unlike other temps' and the buffer of messages', and unlike
 * those that intermediates have when they are stored. own: it is such a one. */
static const char *temp_name(const struct cg *g, const char *name, bool own)
{
    const char *text = arena_printf(g->a, "$%s", name);
    for (unsigned k = 2;
         strcmp(text, CONTRACT_MESSAGES) == 0 || contract_find_temp(g->contract, text) ||
         (!own && is_intermediate(g, text + 1));
         k++) {
        text = arena_printf(g->a, "$%s%u", name, k);
        own = false;
    }
    return text;
}

const struct lang_symbol *cg_temp(struct cg *g, const char *name, enum dtype type, uint32_t rank,
                                  struct lang_expr *const *extent, bool is_zero)
{
    return contract_add_temp(g->a, g->contract, temp_name(g, name, false), type, rank, extent,
                             is_zero);
}

const struct lang_symbol *cg_temp_for(struct cg *g, const struct lang_symbol *t)
{
    bool own = false;
    for (size_t i = 0; i < g->spec->compute.n; i++)
        own |= g->spec->compute.v[i]->sym == t;
    return contract_add_temp(g->a, g->contract, temp_name(g, t->name, own), t->type, t->rank,
                             t->dims, false);
}

struct cg_home *cg_home_of(const struct cg *g, const struct lang_symbol *sym)
{
    for (size_t i = 0; i < g->homes.n; i++)
        if (g->homes.v[i].sym == sym)
            return &g->homes.v[i];
    return NULL;
}

enum { TEMPS = 1600000 }; /* the order of temps among an entry's parameters: behind all others' */

/* ptxas 13.0 crashes where a parameter has the name of an entry, and an entry's is its kernel's,
 * with something behind it at most; and PTX's one constant can't be a name. Such a parameter gets a
 * name that no identifier of the spec can have. */
static const char *param_name(struct cg *g, const char *name)
{
    if (strcmp(name, "WARP_SZ") == 0)
        return "WARP_SZ$";
    for (size_t i = 0; i < g->nspecs; i++) {
        size_t n = strlen(g->specs[i]->name);
        if (strncmp(name, g->specs[i]->name, n) == 0 && (name[n] == '\0' || name[n] == '_'))
            return arena_printf(g->a, "%s$", name);
    }
    return name;
}

struct cg_val cg_param_of(struct cg *g, const struct lang_symbol *sym)
{
    const struct cg_home *home = cg_home_of(g, sym);
    if (home)
        sym = home->temp;
    for (size_t i = 0; i < g->params.n; i++)
        if (g->params.v[i].sym == sym && !g->params.v[i].map)
            return g->params.v[i].val;
    bool is_dim = sym->kind == SYM_DIM;
    uint32_t order = sym->id + (is_dim ? (uint32_t)g->spec->params.n : 0);
    if (sym->name[0] == '$')
        order = TEMPS + sym->id;
    enum dtype t = sym->kind == SYM_BUFFER ? DT_U64 : is_dim ? DT_U32 : sym->type;
    return load_param(g, param_name(g, sym->name), t,
                      (struct cg_param){.sym = sym, .order = order});
}

struct cg_val cg_param_computed(struct cg *g, struct lang_expr *e)
{
    uint32_t n = 0;
    for (size_t i = 0; i < g->params.n; i++) {
        const struct cg_param *p = &g->params.v[i];
        /* long sums of different length are not walked down to their ends */
        if (p->expr && p->expr->height == e->height && lx_same(p->expr, e))
            return p->val;
        n += p->expr != NULL;
    }
    /* a name that no identifier of the spec can have */
    const char *name = arena_printf(g->a, "$%u", (unsigned)n);
    return load_param(g, name, DT_U64, (struct cg_param){.expr = e, .order = 1000000 + n});
}

int32_t cg_param_hidden(struct cg *g, const char *name)
{
    for (size_t i = 0; i < g->params.n; i++)
        if (g->params.v[i].hidden && strcmp(g->params.v[i].name, name) == 0)
            return g->params.v[i].val.op.reg;
    const struct cg_param how = {.name = name, .hidden = true, .order = 1500000};
    return load_param(g, name, DT_U64, how).op.reg;
}

/* The contract's symbol of this name. */
static struct lang_symbol *argument(struct cg *g, const struct lang_symbol *sym)
{
    for (size_t i = 0; i < g->contract->temps.n; i++)
        if (g->contract->temps.v[i].sym == sym)
            return g->contract->temps.v[i].sym;
    return lang_find(&g->contract->scope, sym->name);
}

static void set_windows(struct cg *g, struct contract_map *map, const struct cg_windows *w)
{
    map->im2col = true;
    map->step[0] = map->step[map->rank - 1] = lx_int(g->a, 1);
    for (uint32_t i = 0; i + 2 < map->rank; i++) {
        map->lower[i] = lx_int(g->a, w->lower[i]);
        map->upper[i] = lx_int(g->a, w->upper[i]);
        map->step[1 + i] = lx_int(g->a, w->step[i]);
    }
}

static struct contract_map *map_of(struct cg *g, const struct lang_symbol *t,
                                   const struct lang_symbol *place, const uint32_t *box,
                                   const struct cg_windows *w, bool tf32)
{
    enum { PROMOTE = 256 };
    struct contract_map *map = ARENA_NEW(g->a, struct contract_map);
    map->sym = argument(g, place);
    map->type = t->type;
    map->tf32 = tf32;
    map->rank = t->rank;
    map->swizzle = box[0] * dtype_bits(t->type) / 8;
    map->promote = PROMOTE;
    map->span = g->spec->name_span;
    for (uint32_t i = 0; i < t->rank; i++) {
        map->dim[i] = t->dims[t->rank - 1 - i];
        if (!w || i < 2)
            map->box[i] = lx_int(g->a, box[i]);
    }
    if (w)
        set_windows(g, map, w);
    return map;
}

static bool is_number(const struct lang_expr *e, int64_t n)
{
    int64_t v;
    return lang_const_int(e, &v) && v == n;
}

static bool same_box(const struct contract_map *map, const uint32_t *box,
                     const struct cg_windows *w)
{
    if (map->im2col != (w != NULL))
        return false;
    for (uint32_t i = 0; i < (w ? 2 : map->rank); i++)
        if (!is_number(map->box[i], box[i]))
            return false;
    for (uint32_t i = 0; w && i + 2 < map->rank; i++)
        if (!is_number(map->lower[i], w->lower[i]) || !is_number(map->upper[i], w->upper[i]) ||
            !is_number(map->step[1 + i], w->step[i]))
            return false;
    return true;
}

int32_t cg_param_map(struct cg *g, const struct lang_symbol *t, const uint32_t *box, bool tf32)
{
    return cg_param_windows(g, t, box, NULL, tf32);
}

int32_t cg_param_windows(struct cg *g, const struct lang_symbol *t, const uint32_t *box,
                         const struct cg_windows *windows, bool tf32)
{
    enum { BYTES = 128, ALIGN = 64, ORDER = 1550000 };
    const struct cg_home *home = cg_home_of(g, t);
    const struct lang_symbol *place = home ? home->temp : t;
    uint32_t n = 0;
    for (size_t i = 0; i < g->params.n; i++) {
        const struct cg_param *p = &g->params.v[i];
        if (p->map && p->sym == place && p->map->tf32 == tf32 && same_box(p->map, box, windows))
            return p->val.op.reg;
        n += p->map != NULL;
    }
    const size_t from = g->func->items.n;
    struct cg_param *p = VEC_PUSH(g->a, &g->params);
    /* a name that no identifier of the spec can have */
    const char *name = arena_printf(g->a, "%s$%u", t->name, (unsigned)n);
    *p = (struct cg_param){
        .sym = place, .order = ORDER + n, .map = map_of(g, t, place, box, windows, tf32)};
    p->var = ptx_param_new(g->module, g->func, name, PTX_B8);
    p->var->is_array = true;
    p->var->count = BYTES;
    p->var->align = ALIGN;
    const int32_t at = cg_new(g, DT_U64), generic = cg_new(g, DT_U64);
    PTX(&g->b, "mov.b64", ptx_r(at), ptx_sym(p->var));
    PTX(&g->b, "cvta.param.u64", ptx_r(generic), ptx_r(at));
    cg_set_depth(g, generic, 0);
    p->val = cg_value(DT_U64, generic);
    cg_to_prologue(g, from, p->order);
    return generic;
}

/* ---- the launch's arguments ------------------------------------------------------------------ */

static int by_order(const void *x, const void *y)
{
    const struct cg_param *p = x, *q = y;
    return (p->order > q->order) - (p->order < q->order);
}

void cg_add_args(struct cg *g, struct contract_launch *l)
{
    if (g->params.n)
        qsort(g->params.v, g->params.n, sizeof *g->params.v, by_order);
    g->func->params.n = 0;
    for (size_t i = 0; i < g->params.n; i++) {
        const struct cg_param *p = &g->params.v[i];
        *VEC_PUSH(g->module->arena, &g->func->params) = p->var;
        struct contract_arg *arg = VEC_PUSH(g->a, &l->args);
        arg->type = p->val.type;
        arg->span = g->spec->name_span;
        if (p->map)
            arg->map = p->map;
        else if (p->hidden)
            arg->is_messages = true;
        else if (p->sym)
            arg->sym = argument(g, p->sym);
        else
            arg->expr = p->expr;
    }
}

static void note_read(const struct cg *g, const struct ptx_var *var, bool *read)
{
    for (size_t i = 0; i < g->params.n; i++)
        read[i] |= g->params.v[i].var == var;
}

void cg_drop_unread(struct cg *g)
{
    bool *read = ARENA_ARRAY(g->a, g->params.n, bool);
    size_t n = 0;
    for (size_t j = 0; j < g->func->items.n; j++) {
        const struct ptx_item *it = &g->func->items.v[j];
        for (unsigned k = 0; it->kind == PTX_I_INST && k < it->inst.noperand; k++)
            if (it->inst.operand[k].var)
                note_read(g, it->inst.operand[k].var, read);
    }
    for (size_t i = 0; i < g->params.n; i++)
        if (read[i])
            g->params.v[n++] = g->params.v[i];
    g->params.n = n;
}

/* ---- special registers ----------------------------------------------------------------------- */

static enum ptx_sreg special_register(enum lang_special s)
{
    static const enum ptx_sreg map[SP_COUNT] = {
        [SP_TID_X] = PTX_SR_TID_X,
        [SP_TID_Y] = PTX_SR_TID_Y,
        [SP_TID_Z] = PTX_SR_TID_Z,
        [SP_CTAID_X] = PTX_SR_CTAID_X,
        [SP_CTAID_Y] = PTX_SR_CTAID_Y,
        [SP_CTAID_Z] = PTX_SR_CTAID_Z,
        [SP_NTID_X] = PTX_SR_NTID_X,
        [SP_NTID_Y] = PTX_SR_NTID_Y,
        [SP_NTID_Z] = PTX_SR_NTID_Z,
        [SP_NCTAID_X] = PTX_SR_NCTAID_X,
        [SP_NCTAID_Y] = PTX_SR_NCTAID_Y,
        [SP_NCTAID_Z] = PTX_SR_NCTAID_Z,
        [SP_LANEID] = PTX_SR_LANEID,
        [SP_CLUSTERID_X] = PTX_SR_CLUSTERID_X,
        [SP_CLUSTERID_Y] = PTX_SR_CLUSTERID_Y,
        [SP_CLUSTERID_Z] = PTX_SR_CLUSTERID_Z,
        [SP_CLUSTER_NCTAID_X] = PTX_SR_CLUSTER_NCTAID_X,
        [SP_CLUSTER_NCTAID_Y] = PTX_SR_CLUSTER_NCTAID_Y,
        [SP_CLUSTER_NCTAID_Z] = PTX_SR_CLUSTER_NCTAID_Z,
    };
    return map[s];
}

struct cg_val cg_thread_number(struct cg *g)
{
    struct cg_val z = cg_special(g, SP_TID_Z), y = cg_special(g, SP_TID_Y);
    struct cg_val t = cg_binary(g, OP_MUL, z, cg_special(g, SP_NTID_Y));
    t = cg_binary(g, OP_ADD, t, y);
    t = cg_binary(g, OP_MUL, t, cg_special(g, SP_NTID_X));
    return cg_binary(g, OP_ADD, t, cg_special(g, SP_TID_X));
}

/* The number of the warp in its block, from the thread's flat number: %warpid itself may change
 * under way. */
static struct cg_val warp_number(struct cg *g)
{
    if (g->block[0] == 32) { /* a row of threads is a warp */
        struct cg_val z = cg_special(g, SP_TID_Z);
        z = cg_binary(g, OP_MUL, z, cg_special(g, SP_NTID_Y));
        return cg_binary(g, OP_ADD, z, cg_special(g, SP_TID_Y));
    }
    return cg_binary(g, OP_SHR, cg_thread_number(g), cg_int(DT_U32, 5));
}

/* Computes the lane from threadIdx.x where it follows from that, which is mostly at hand, while the
 * special register is slow to read. */
static bool lane_of_thread(struct cg *g, struct cg_val *v)
{
    const uint64_t *b = g->block;
    if (!g->spec->whole_rows && !(b[1] == 1 && b[2] == 1))
        return false;
    *v = cg_special(g, SP_TID_X);
    if (!b[0] || b[0] > 32)
        *v = cg_binary(g, OP_AND, *v, cg_int(DT_U32, 31));
    return true;
}

struct cg_val cg_special(struct cg *g, enum lang_special s)
{
    struct cg_val v;
    if (s == SP_LANEID && lane_of_thread(g, &v))
        return v;
    if (s == SP_WARPID)
        return warp_number(g);
    if (s >= SP_NTID_X && s <= SP_NTID_Z && g->block[s - SP_NTID_X])
        return cg_int(DT_U32, (int64_t)g->block[s - SP_NTID_X]);
    if (s >= SP_TID_X && s <= SP_TID_Z && g->block[s - SP_TID_X] == 1)
        return cg_int(DT_U32, 0);
    if (g->sreg[s] < 0) {
        size_t from = g->func->items.n;
        g->sreg[s] = cg_new(g, DT_U32);
        PTX(&g->b, "mov.u32", ptx_r(g->sreg[s]), ptx_special(special_register(s)));
        cg_set_depth(g, g->sreg[s], 0);
        cg_to_prologue(g, from, 2000000 + (uint32_t)s);
    }
    return cg_value(DT_U32, g->sreg[s]);
}
