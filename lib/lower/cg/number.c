/* Registers, and the numbers that values are known by: what a pure instruction made is found
 * again. */
#include <config.h>

#include "lower/cg/cg.h"

#include "base/internal.h"

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

void cg_assign(struct cg *g, int32_t pred, int32_t reg, const char *mnemonic, size_t n,
               const struct ptx_operand *op)
{
    enum { MOST = 8 };
    struct ptx_operand all[MOST] = {ptx_r(reg)};
    if (n >= MOST)
        INTERNAL_ERROR("no instruction has %zu operands, as %s", n, mnemonic);
    memcpy(all + 1, op, n * sizeof *op);
    ptx_emit(&g->b, pred, false, mnemonic, n + 1, all);
    cg_assigned(g, reg);
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
