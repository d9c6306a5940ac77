#include <config.h>

#include "lower/cg.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- errors --------------------------------------------------------------------------------------- */

bool cg_error(struct cg *g, struct span s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(g->a, fmt, ap);
    va_end(ap);
    g->failed = true;
    return diag_error(g->d, s, "%s", text);
}

/* ---- registers and value numbering ---------------------------------------------------------------- */

int32_t cg_new(struct cg *g, enum dtype t)
{
    return ptx_reg_new(&g->b, cg_regtype(t));
}

static uint32_t version_of(const struct cg *g, int32_t reg)
{
    return reg >= 0 && (size_t)reg < g->version.n ? g->version.v[reg] : 0;
}

void cg_assigned(struct cg *g, int32_t reg)
{
    while (g->version.n <= (size_t)reg)
        VEC_PUSH(g->a, &g->version);
    g->version.v[reg] = ++g->clock;
}

int32_t cg_new_mutable(struct cg *g, enum dtype t)
{
    int32_t reg = cg_new(g, t);
    cg_assigned(g, reg);
    return reg;
}

void cg_loop_head(struct cg *g)
{
    g->clock++;
    for (size_t i = 0; i < g->version.n; i++)
        if (g->version.v[i])
            g->version.v[i] = g->clock;
}

size_t cg_scope_open(struct cg *g)
{
    return g->numbers.n;
}

void cg_scope_close(struct cg *g, size_t mark)
{
    while (g->numbers.n > mark) {
        struct cg_number *n = &g->numbers.v[--g->numbers.n];
        g->bucket[n->bucket] = n->next;
        g->key_operands.n = n->first;
    }
}

static uint32_t mix(uint32_t h, uint64_t v)
{
    h = (h ^ (uint32_t)v) * 0x9e3779b1u;
    h ^= h >> 15;
    h = (h ^ (uint32_t)(v >> 32)) * 0x85ebca6bu;
    return h ^ h >> 13;
}

/* The one copy of a text, so that pointers compare. */
static const char *intern(struct cg *g, const char *text, uint32_t h)
{
    for (uint32_t i = 0; i < CG_INTERNED; i++) {
        const char **at = &g->interned[(h + i) % CG_INTERNED];
        if (!*at)
            *at = arena_strdup(g->a, text);
        if (strcmp(*at, text) == 0)
            return *at;
    }
    return arena_strdup(g->a, text); /* full: unlike every other, and so never found */
}

struct key {
    enum ptx_mod type; /* of the result; 0 where the caller knows */
    const char *mnemonic;
    uint32_t nop, hash;
    struct cg_key_operand op[CG_KEY_MAX];
};

static struct key make_key(struct cg *g, const char *mnemonic, size_t n,
                           const struct ptx_operand *op)
{
    uint32_t h = 0;
    for (const char *c = mnemonic; *c; c++)
        h = (h ^ (unsigned char)*c) * 16777619u;
    struct key k = {.mnemonic = intern(g, mnemonic, h), .nop = (uint32_t)n};
    for (size_t i = 0; i < n; i++) {
        bool reg = op[i].kind == PTX_O_REG || op[i].kind == PTX_O_MEM;
        struct cg_key_operand *o = &k.op[i];
        o->kind = (uint32_t)op[i].kind | (uint32_t)op[i].neg << 8;
        o->bits = op[i].bits;
        o->var = op[i].kind == PTX_O_SYM || op[i].kind == PTX_O_MEM ? op[i].var : NULL;
        o->reg = reg ? op[i].reg : -1;
        o->version = version_of(g, o->reg);
        h = mix(h, o->bits);
        h = mix(h, (uint64_t)o->version << 32 | (uint32_t)o->reg);
        h = mix(h, o->kind);
    }
    k.hash = h % CG_BUCKETS;
    return k;
}

static int32_t find_number(const struct cg *g, const struct key *k)
{
    for (int32_t i = g->bucket[k->hash]; i; i = g->numbers.v[i - 1].next) {
        const struct cg_number *e = &g->numbers.v[i - 1];
        if (e->mnemonic != k->mnemonic || e->type != k->type || e->nop != k->nop)
            continue;
        const struct cg_key_operand *p = g->key_operands.v + e->first;
        uint32_t same = 0;
        while (same < k->nop && p[same].kind == k->op[same].kind &&
               p[same].reg == k->op[same].reg && p[same].bits == k->op[same].bits &&
               p[same].var == k->op[same].var && p[same].version == k->op[same].version)
            same++;
        if (same == k->nop)
            return e->reg;
    }
    return -1;
}

static void add_number(struct cg *g, const struct key *k, int32_t reg)
{
    struct cg_number *e = VEC_PUSH(g->a, &g->numbers);
    *e = (struct cg_number){.mnemonic = k->mnemonic,
                            .type = k->type,
                            .first = (uint32_t)g->key_operands.n,
                            .nop = k->nop,
                            .bucket = k->hash,
                            .next = g->bucket[k->hash],
                            .reg = reg};
    g->bucket[k->hash] = (int32_t)g->numbers.n;
    for (uint32_t i = 0; i < k->nop; i++)
        *VEC_PUSH(g->a, &g->key_operands) = k->op[i];
}

int32_t cg_pure(struct cg *g, enum ptx_mod rt, const char *mnemonic, size_t n,
                const struct ptx_operand *op)
{
    struct key k = make_key(g, mnemonic, n, op);
    k.type = rt; /* mov.b64 makes an f64 of a b64, or another b64 */
    int32_t reg = find_number(g, &k);
    if (reg >= 0)
        return reg;
    struct ptx_operand all[CG_KEY_MAX + 1];
    reg = ptx_reg_new(&g->b, rt);
    unsigned depth = 0;
    for (size_t i = 0; i < n; i++)
        depth = cg_depth(g, op[i]) > depth ? cg_depth(g, op[i]) : depth;
    cg_set_depth(g, reg, depth);
    all[0] = ptx_r(reg);
    memcpy(all + 1, op, n * sizeof *op);
    ptx_emit(&g->b, -1, false, mnemonic, n + 1, all);
    add_number(g, &k, reg);
    if (rt == PTX_B32 && n == 2 && op[1].kind == PTX_O_IMM && op[0].kind == PTX_O_REG &&
        (strcmp(mnemonic, "add.u32") == 0 || strcmp(mnemonic, "add.s32") == 0)) {
        while (g->sums.n <= (size_t)reg)
            VEC_PUSH(g->a, &g->sums);
        g->sums.v[reg] =
            (struct cg_sum){true, op[0].reg, version_of(g, op[0].reg), (int64_t)op[1].bits};
    }
    return reg;
}

bool cg_is_sum(const struct cg *g, int32_t reg, int32_t *base, int64_t *add)
{
    if ((size_t)reg >= g->sums.n || !g->sums.v[reg].is_sum)
        return false;
    const struct cg_sum *s = &g->sums.v[reg];
    *base = s->base;
    *add = s->add;
    return version_of(g, s->base) == s->version;
}

int32_t cg_recall(struct cg *g, const char *what, size_t n, const struct ptx_operand *op)
{
    struct key k = make_key(g, what, n, op);
    return find_number(g, &k);
}

void cg_remember(struct cg *g, const char *what, size_t n, const struct ptx_operand *op,
                 int32_t reg)
{
    struct key k = make_key(g, what, n, op);
    add_number(g, &k, reg);
}

/* The operands, and the guard where there is one; how many. */
static size_t guarded_key(const struct cg *g, size_t n, const struct ptx_operand *op,
                          struct ptx_operand *key)
{
    memcpy(key, op, n * sizeof *op);
    if (g->guard >= 0)
        key[n++] = ptx_r(g->guard);
    return n;
}

int32_t cg_recall_read(struct cg *g, const char *what, size_t n, const struct ptx_operand *op)
{
    struct ptx_operand key[CG_KEY_MAX];
    const size_t nkey = guarded_key(g, n, op, key);
    const int32_t known = cg_recall(g, what, n, op);
    return known < 0 && nkey > n ? cg_recall(g, what, nkey, key) : known;
}

void cg_remember_read(struct cg *g, const char *what, size_t n, const struct ptx_operand *op,
                      int32_t reg)
{
    struct ptx_operand key[CG_KEY_MAX];
    cg_remember(g, what, guarded_key(g, n, op, key), key, reg);
}

/* ---- control flow --------------------------------------------------------------------------------- */

uint32_t cg_label(struct cg *g, const char *stem)
{
    return ptx_label_new(&g->b, stem);
}

void cg_place(struct cg *g, uint32_t label)
{
    ptx_label_here(&g->b, label);
    g->dead = false;
}

void cg_jump(struct cg *g, uint32_t label)
{
    if (!g->dead)
        PTX(&g->b, "bra", ptx_label(label));
    g->dead = true;
}

void cg_jump_if(struct cg *g, int32_t pred, bool sense, uint32_t label)
{
    if (!g->dead)
        ptx_emit(&g->b, pred, !sense, "bra", PTX_ARGS(ptx_label(label)));
}

/* ---- positions ------------------------------------------------------------------------------------ */

static void annotate(struct cg *g, struct span s)
{
    const struct source *src = s.src;
    size_t from = s.off, to = s.off;
    while (from > 0 && src->text[from - 1] != '\n')
        from--;
    while (to < src->len && src->text[to] != '\n' && src->text[to] != '\r')
        to++;
    while (from < to && src->text[from] == ' ')
        from++;
    char *text =
        arena_printf(g->a, " %zu: %.*s", span_line_col(s).line, (int)(to - from), src->text + from);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = ' ';
    ptx_comment(&g->b, text);
}

static void put_loc(struct cg *g, struct span s)
{
    const struct cg_site *site = g->site;
    const struct line_col at = span_line_col(s);
    struct ptx_item loc = {.kind = PTX_I_LOC,
                           .span = s,
                           .file = g->file,
                           .line = (uint32_t)at.line,
                           .column = (uint32_t)at.col,
                           .text = ""};
    if (site)
        loc.text = arena_printf(g->module->arena, ", function_name $fn_%s, inlined_at %u %u %u",
                                site->func, g->file, site->line, site->column);
    const size_t n = g->func->items.n;
    const struct ptx_item *last = n ? &g->func->items.v[n - 1] : NULL;
    if (last && last->kind == PTX_I_LOC && last->line == loc.line && last->column == loc.column &&
        strcmp(last->text, loc.text) == 0)
        return;
    *VEC_PUSH(g->module->arena, &g->func->items) = loc;
}

void cg_enter(struct cg *g, struct cg_site *site, const struct lang_func *f, struct span call)
{
    *site = (struct cg_site){.up = g->site};
    if (!g->opt->lines || g->dead || call.src != g->spec->src || f->span.src != g->spec->src)
        return;
    const struct line_col at = span_line_col(call);
    put_loc(g, call); /* PTX wants the place of a call to have been a place before */
    site->func = f->name;
    site->line = (uint32_t)at.line;
    site->column = (uint32_t)at.col;
    g->site = site;
    g->line = 0;
    for (size_t i = 0; i < g->inlined->v.n; i++)
        if (strcmp(g->inlined->v.v[i], f->name) == 0)
            return;
    *VEC_PUSH(g->module->arena, &g->inlined->v) = f->name;
}

void cg_leave(struct cg *g, struct cg_site *site, struct span call)
{
    g->site = site->up;
    if (site->func)
        g->line = 0;
    cg_at(g, call); /* what follows is the caller's again */
}

void cg_at(struct cg *g, struct span s)
{
    /* the library's own functions are not the user's lines */
    if (!s.src || s.src != g->spec->src)
        return;
    g->b.span = s;
    if (!g->opt->lines && !g->opt->annotate)
        return;
    struct line_col at = span_line_col(s);
    if (at.line == g->line || g->dead)
        return;
    g->line = (uint32_t)at.line;
    if (g->opt->annotate)
        annotate(g, s);
    if (g->opt->lines)
        put_loc(g, s);
}

/* ---- parameters and special registers ------------------------------------------------------------- */

void cg_to_prologue(struct cg *g, size_t from, uint32_t order)
{
    for (size_t i = from; i < g->func->items.n; i++) {
        *VEC_PUSH(g->a, &g->prologue) = g->func->items.v[i];
        *VEC_PUSH(g->a, &g->prologue_order) = order;
    }
    g->func->items.n = from;
}

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
    abort();
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
    abort();
}

static struct cg_val load_param(struct cg *g, const struct lang_symbol *sym, const char *name,
                                const char *text, uint32_t order, enum dtype t, bool hidden)
{
    size_t from = g->func->items.n;
    struct cg_param *p = VEC_PUSH(g->a, &g->params);
    *p = (struct cg_param){.sym = sym, .text = text, .order = order};
    p->var = ptx_param_new(g->module, g->func, name, param_type(t));
    int32_t reg = t == DT_BOOL ? cg_new(g, DT_U32) : cg_new(g, t);
    PTX(&g->b, param_mnemonic(t), ptx_r(reg), ptx_mem_var(p->var, 0));
    p->hidden = hidden;
    if (hidden || (sym && sym->kind == SYM_BUFFER)) {
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
    cg_to_prologue(g, from, order);
    return g->params.v[g->params.n - 1].val;
}

const struct lang_symbol *cg_temp(struct cg *g, const char *name, enum dtype type, uint32_t rank,
                                  const char *const *extent, bool is_zero)
{
    return contract_add_temp(g->a, g->contract, name, type, rank, extent, is_zero);
}

struct cg_home *cg_home_of(const struct cg *g, const struct lang_symbol *sym)
{
    for (size_t i = 0; i < g->homes.n; i++)
        if (g->homes.v[i].sym == sym)
            return &g->homes.v[i];
    return NULL;
}

enum { TEMPS = 1600000 }; /* the order of temps among an entry's parameters: behind all others' */

/* ptxas 13.0 crashes where a parameter has the name of an entry, and an entry's is its kernel's, with something behind it
 * at most; and PTX's one constant can't be a name. Such a parameter gets a name that no identifier of the spec can have. */
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
    return load_param(g, sym, param_name(g, sym->name), sym->name, order, t, false);
}

struct cg_val cg_param_computed(struct cg *g, const char *expr)
{
    const char *text = arena_printf(g->a, "u64 %s", expr);
    uint32_t n = 0;
    for (size_t i = 0; i < g->params.n; i++) {
        if (!g->params.v[i].sym && strcmp(g->params.v[i].text, text) == 0)
            return g->params.v[i].val;
        n += !g->params.v[i].sym && !g->params.v[i].hidden;
    }
    /* a name that no identifier of the spec can have */
    const char *name = arena_printf(g->a, "$%u", (unsigned)n);
    return load_param(g, NULL, name, text, 1000000 + n, DT_U64, false);
}

int32_t cg_param_hidden(struct cg *g, const char *name)
{
    for (size_t i = 0; i < g->params.n; i++)
        if (g->params.v[i].hidden && strcmp(g->params.v[i].text, name) == 0)
            return g->params.v[i].val.op.reg;
    return load_param(g, NULL, name, name, 1500000, DT_U64, true).op.reg;
}

/* The contract's symbol of this name. */
static struct lang_symbol *argument(struct cg *g, const struct lang_symbol *sym)
{
    for (size_t i = 0; i < g->contract->temps.n; i++)
        if (g->contract->temps.v[i].sym == sym)
            return g->contract->temps.v[i].sym;
    return lang_find(&g->contract->scope, sym->name);
}

static struct contract_map *map_of(struct cg *g, const struct lang_symbol *t,
                                   const struct lang_symbol *place, const uint32_t *box, bool tf32)
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
        const char *dim = lang_expr_text(g->a, t->dims[t->rank - 1 - i]);
        map->dim[i] = contract_expr(g->a, g->contract, dim);
        map->box[i] = contract_expr(g->a, g->contract, arena_printf(g->a, "%u", (unsigned)box[i]));
    }
    return map;
}

static bool same_box(const struct contract_map *map, const uint32_t *box)
{
    int64_t n;
    for (uint32_t i = 0; i < map->rank; i++)
        if (!lang_const_int(map->box[i], &n) || n != box[i])
            return false;
    return true;
}

int32_t cg_param_map(struct cg *g, const struct lang_symbol *t, const uint32_t *box, bool tf32)
{
    enum { BYTES = 128, ALIGN = 64, ORDER = 1550000 };
    const struct cg_home *home = cg_home_of(g, t);
    const struct lang_symbol *place = home ? home->temp : t;
    uint32_t n = 0;
    for (size_t i = 0; i < g->params.n; i++) {
        const struct cg_param *p = &g->params.v[i];
        if (p->map && p->sym == place && p->map->tf32 == tf32 && same_box(p->map, box))
            return p->val.op.reg;
        n += p->map != NULL;
    }
    const size_t from = g->func->items.n;
    struct cg_param *p = VEC_PUSH(g->a, &g->params);
    /* a name that no identifier of the spec can have */
    const char *name = arena_printf(g->a, "%s$%u", t->name, (unsigned)n);
    *p = (struct cg_param){.sym = place, .order = ORDER + n, .map = map_of(g, t, place, box, tf32)};
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

/* The number of the warp in its block, from the thread's flat number: %warpid itself may change under way. */
static struct cg_val warp_number(struct cg *g)
{
    if (g->block[0] == 32) { /* a row of threads is a warp */
        struct cg_val z = cg_special(g, SP_TID_Z);
        z = cg_binary(g, OP_MUL, z, cg_special(g, SP_NTID_Y));
        return cg_binary(g, OP_ADD, z, cg_special(g, SP_TID_Y));
    }
    return cg_binary(g, OP_SHR, cg_thread_number(g), cg_int(DT_U32, 5));
}

/* Where the lane follows from threadIdx.x, that is mostly at hand, and the special register slow to read. */
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

/* ---- bindings ------------------------------------------------------------------------------------- */

struct cg_binding *cg_find(struct cg *g, const struct lang_symbol *sym)
{
    for (size_t i = g->bindings.n; i-- > 0;)
        if (g->bindings.v[i].sym == sym)
            return &g->bindings.v[i];
    return NULL;
}

void cg_bind(struct cg *g, const struct lang_symbol *sym, struct cg_val v, bool is_mutable)
{
    struct cg_binding *b = VEC_PUSH(g->a, &g->bindings);
    *b = (struct cg_binding){.sym = sym, .val = v, .is_mutable = is_mutable};
}

/* ---- an entry ------------------------------------------------------------------------------------- */

/* What the entry before leaves: a copy of its items is as large as they are. Its registers were copied when they were numbered. */
static void give_back(struct cg *g)
{
    struct cg_spare *const spare = g->spare;
    struct ptx_func *const f = spare->func;
    if (!f)
        return;
    spare->items.v = f->items.v;
    spare->items.cap = f->items.cap;
    f->items.cap = f->items.n;
    f->items.v = ARENA_ARRAY(g->module->arena, f->items.n, struct ptx_item);
    memcpy(f->items.v, spare->items.v, f->items.n * sizeof *f->items.v);
    spare->func = NULL;
}

static void take_spare(struct cg *g)
{
    struct cg_spare *const spare = g->spare;
    give_back(g);
    VEC_RESERVE(g->module->arena, &spare->items, CG_ITEMS);
    VEC_RESERVE(g->module->arena, &spare->regs, CG_ITEMS);
    g->func->items.v = spare->items.v;
    g->func->items.cap = spare->items.cap;
    g->func->regs.v = spare->regs.v;
    g->func->regs.cap = spare->regs.cap;
    spare->func = g->func;
}

void cg_begin(struct cg *g, const char *entry)
{
    g->func = ptx_entry_new(g->module, entry);
    take_spare(g);
    g->b = ptx_builder_new(g->module, g->func);
    g->b.span = g->spec->name_span;
    g->params.n = 0;
    g->prologue.n = g->prologue_order.n = 0;
    for (int i = 0; i < SP_COUNT; i++)
        g->sreg[i] = -1;
    g->area_var = NULL;
    cg_scope_close(g, 0);
    g->version.n = 0;
    g->sums.n = 0;
    g->parts.n = 0;
    g->bindings.n = 0;
    g->loop = NULL;
    g->nest = NULL;
    g->depth_of.n = 0;
    g->ret = NULL;
    g->dead = false;
    g->line = 0;
    g->exit = cg_label(g, "exit");
    g->exit_used = false;
    g->read = NULL;
    g->reduced = NULL;
    g->quotient = NULL;
    g->falling = NULL;
    g->preloaded = g->converts = g->guard_varies = false;
    g->guard = -1;
    g->is_uniform = NULL;
    g->binary = NULL;
    g->unroll = 0;
}

struct contract_launch *cg_launch(struct cg *g, const char *grid, const char *block)
{
    struct contract_launch *l = VEC_PUSH(g->a, &g->contract->launches);
    l->entry = g->func->name;
    l->step = g->step;
    l->grid[0] = contract_expr(g->a, g->contract, grid);
    l->block[0] = contract_expr(g->a, g->contract, block);
    l->span = g->spec->name_span;
    return l;
}

static int by_order(const void *x, const void *y)
{
    const struct cg_param *p = x, *q = y;
    return (p->order > q->order) - (p->order < q->order);
}

static void add_args(struct cg *g, struct contract_launch *l)
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
            arg->expr = contract_expr(g->a, g->contract, p->text + strlen("u64 "));
    }
}

/* Forgets the parameters that nothing reads. */
static void drop_unread(struct cg *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->params.n; i++) {
        bool read = false;
        for (size_t j = 0; j < g->func->items.n && !read; j++) {
            const struct ptx_item *it = &g->func->items.v[j];
            for (unsigned k = 0; it->kind == PTX_I_INST && k < it->inst.noperand; k++)
                read |= it->inst.operand[k].var == g->params.v[i].var;
        }
        if (read)
            g->params.v[n++] = g->params.v[i];
    }
    g->params.n = n;
}

/* The prologue, sorted, in front of the body; labels move along. */
static void place_prologue(struct cg *g)
{
    struct ptx_func *f = g->func;
    const size_t np = g->prologue.n, nb = f->items.n;
    size_t n = 0;
    uint32_t last = 0;
    bool first = true;
    for (size_t i = 0; i < np; i++)
        VEC_PUSH(g->module->arena, &f->items);
    memmove(f->items.v + np, f->items.v, nb * sizeof *f->items.v);
    /* by ascending order, each order's items as they were made */
    for (;;) {
        uint32_t next = UINT32_MAX;
        for (size_t i = 0; i < np; i++)
            if ((first || g->prologue_order.v[i] > last) && g->prologue_order.v[i] < next)
                next = g->prologue_order.v[i];
        if (next == UINT32_MAX)
            break;
        for (size_t i = 0; i < np; i++)
            if (g->prologue_order.v[i] == next)
                f->items.v[n++] = g->prologue.v[i];
        last = next;
        first = false;
    }
    for (size_t i = np; i < np + nb; i++)
        if (f->items.v[i].kind == PTX_I_LABEL)
            f->labels.v[f->items.v[i].label].item = (uint32_t)i;
}

void cg_end(struct cg *g, struct contract_launch *launch)
{
    if (g->exit_used)
        cg_place(g, g->exit);
    g->dead = false;
    PTX0(&g->b, "ret");
    place_prologue(g);
    share_func(g->a, g->func);
    dce_func(g->a, g->func);
    drop_unread(g);
    g->spare->regs.v = g->func->regs.v;
    g->spare->regs.cap = g->func->regs.cap;
    ptx_finish(&g->b);
    add_args(g, launch);
}
