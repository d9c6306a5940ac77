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

int32_t cg_mutable(struct cg *g, struct cg_val v)
{
    const int32_t reg = cg_new_mutable(g, DT_U32);
    cg_move(g, reg, v);
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
        g->bucket[n->hash % CG_BUCKETS] = n->next;
        g->key_words.n = n->first;
    }
}

/* The text's bytes with its end: of what has 8 to 24, as most mnemonics, these are all. */
static struct cg_brief brief_of(const char *text)
{
    const size_t n = strlen(text) + 1;
    struct cg_brief b = {.n = n};
    if (n < sizeof b.first) {
        memcpy(&b.first, text, n);
        return b;
    }
    memcpy(&b.first, text, sizeof b.first);
    memcpy(&b.middle, text + (n - sizeof b.middle) / 2, sizeof b.middle);
    memcpy(&b.last, text + n - sizeof b.last, sizeof b.last);
    return b;
}

static bool same_text(const struct cg_text *t, const char *text, const struct cg_brief *b)
{
    return t->brief.first == b->first && t->brief.middle == b->middle && t->brief.last == b->last &&
           t->brief.n == b->n && (b->n <= 3 * sizeof b->first || strcmp(t->text, text) == 0);
}

/* The number of the text, the same for the same text. */
static uint32_t intern(struct cg *g, const char *text)
{
    const struct cg_brief b = brief_of(text);
    uint64_t h = (b.first ^ b.middle << 7 ^ b.last << 13 ^ b.n) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
    for (uint32_t i = 0; i < CG_INTERNED; i++) {
        const uint32_t k = (uint32_t)(h + i) % CG_INTERNED;
        if (!g->interned[k].text)
            g->interned[k] = (struct cg_text){.text = arena_strdup(g->a, text), .brief = b};
        if (same_text(&g->interned[k], text, &b))
            return k;
    }
    return CG_INTERNED + g->nfull++; /* full: unlike every other, and so never found */
}

/* What an instruction is known by, as one word after the other: its mnemonic, the type of its
 * result (0 where the caller knows), and for each operand its kind, which says what follows, its
 * register with the version, and its constants. */
enum {
    WORDS_PER_OPERAND = 7,
    KEY_WORDS = 2 + WORDS_PER_OPERAND * CG_KEY_MAX,
    HAS_NEG = 1 << 8,
    HAS_VERSION = 1 << 9,
    HAS_BITS = 1 << 10,
    HAS_HIGH_BITS = 1 << 11,
    HAS_VAR = 1 << 12
};
struct key {
    uint32_t hash, n;
    uint32_t word[KEY_WORDS + 1];
};

static uint32_t *put_wide(uint32_t *w, uint64_t v)
{
    *w++ = (uint32_t)v;
    *w++ = (uint32_t)(v >> 32);
    return w;
}

static uint32_t *put_operand(const struct cg *g, const struct ptx_operand *op, uint32_t *w)
{
    const bool memory = op->kind == PTX_O_MEM;
    uint32_t *const kind = w++;
    *kind = (uint32_t)op->kind | (op->neg ? HAS_NEG : 0);
    if (memory || op->kind == PTX_O_REG) {
        const uint32_t version = version_of(g, op->reg);
        *w++ = (uint32_t)op->reg;
        if (version) {
            *kind |= HAS_VERSION;
            *w++ = version;
        }
    }
    if (op->bits > UINT32_MAX) {
        *kind |= HAS_HIGH_BITS;
        w = put_wide(w, op->bits);
    } else if (op->bits) {
        *kind |= HAS_BITS;
        *w++ = (uint32_t)op->bits;
    }
    if (op->var && (memory || op->kind == PTX_O_SYM)) {
        *kind |= HAS_VAR;
        w = put_wide(w, (uintptr_t)op->var);
    }
    return w;
}

static void make_key(struct cg *g, const char *mnemonic, enum ptx_mod type, size_t n,
                     const struct ptx_operand *op, struct key *k)
{
    uint32_t *w = k->word;
    uint64_t h = 0, two;
    *w++ = intern(g, mnemonic);
    *w++ = type;
    for (size_t i = 0; i < n; i++)
        w = put_operand(g, &op[i], w);
    k->n = (uint32_t)(w - k->word);
    *w = 0; /* it may be hashed beside the last */
    for (uint32_t i = 0; i < k->n; i += 2) {
        memcpy(&two, k->word + i, sizeof two);
        h = (h ^ two) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    k->hash = (uint32_t)h;
}

static int32_t find_number(const struct cg *g, const struct key *k)
{
    for (int32_t i = g->bucket[k->hash % CG_BUCKETS]; i; i = g->numbers.v[i - 1].next) {
        const struct cg_number *e = &g->numbers.v[i - 1];
        if (e->hash == k->hash && e->nword == k->n &&
            memcmp(g->key_words.v + e->first, k->word, k->n * sizeof *k->word) == 0)
            return e->reg;
    }
    return -1;
}

static void add_number(struct cg *g, const struct key *k, int32_t reg)
{
    struct cg_number *e = VEC_PUSH(g->a, &g->numbers);
    int32_t *bucket = &g->bucket[k->hash % CG_BUCKETS];
    *e = (struct cg_number){.hash = k->hash,
                            .first = (uint32_t)g->key_words.n,
                            .nword = k->n,
                            .next = *bucket,
                            .reg = reg};
    *bucket = (int32_t)g->numbers.n;
    while (g->key_words.cap - g->key_words.n < k->n)
        VEC_RESERVE(g->a, &g->key_words, 2 * g->key_words.cap + KEY_WORDS);
    memcpy(g->key_words.v + g->key_words.n, k->word, k->n * sizeof *k->word);
    g->key_words.n += k->n;
}

/* Takes notice of a sum of a register and a constant, for cg_is_sum(). */
static void note_sum(struct cg *g, int32_t reg, const char *mnemonic, const struct ptx_operand *op)
{
    if (strcmp(mnemonic, "add.u32") != 0 && strcmp(mnemonic, "add.s32") != 0)
        return;
    while (g->sum_of.n <= (size_t)reg)
        VEC_PUSH(g->a, &g->sum_of);
    *VEC_PUSH(g->a, &g->sums) =
        (struct cg_sum){op[0].reg, version_of(g, op[0].reg), (int64_t)op[1].bits};
    g->sum_of.v[reg] = (uint32_t)g->sums.n;
}

/* The instruction of a mnemonic, whose number that is. */
static const struct ptx_inst *form_of(struct cg *g, const char *mnemonic, uint32_t number, size_t n)
{
    if (number >= CG_INTERNED)
        return ptx_form(g->module, mnemonic, n);
    struct ptx_inst *const form = &g->interned[number].form;
    if (form->noperand != n)
        *form = *ptx_form(g->module, mnemonic, n);
    return form;
}

int32_t cg_pure(struct cg *g, enum ptx_mod rt, const char *mnemonic, size_t n,
                const struct ptx_operand *op)
{
    struct key k;
    make_key(g, mnemonic, rt, n, op, &k); /* mov.b64 makes an f64 of a b64, or another b64 */
    int32_t reg = find_number(g, &k);
    if (reg >= 0)
        return reg;
    struct ptx_operand all[CG_KEY_MAX + 1];
    reg = ptx_reg_new(&g->b, rt);
    unsigned depth = 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned of_operand = cg_depth(g, op[i]);
        depth = of_operand > depth ? of_operand : depth;
    }
    cg_set_depth(g, reg, depth);
    all[0] = ptx_r(reg);
    memcpy(all + 1, op, n * sizeof *op);
    ptx_emit_form(&g->b, -1, false, form_of(g, mnemonic, k.word[0], n + 1), all);
    add_number(g, &k, reg);
    if (rt == PTX_B32 && n == 2 && op[1].kind == PTX_O_IMM && op[0].kind == PTX_O_REG)
        note_sum(g, reg, mnemonic, op);
    return reg;
}

bool cg_is_sum(const struct cg *g, int32_t reg, int32_t *base, int64_t *add)
{
    if ((size_t)reg >= g->sum_of.n || !g->sum_of.v[reg])
        return false;
    const struct cg_sum *s = &g->sums.v[g->sum_of.v[reg] - 1];
    *base = s->base;
    *add = s->add;
    return version_of(g, s->base) == s->version;
}

int32_t cg_recall(struct cg *g, const char *what, size_t n, const struct ptx_operand *op)
{
    struct key k;
    make_key(g, what, PTX_NONE, n, op, &k);
    return find_number(g, &k);
}

void cg_remember(struct cg *g, const char *what, size_t n, const struct ptx_operand *op,
                 int32_t reg)
{
    struct key k;
    make_key(g, what, PTX_NONE, n, op, &k);
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
