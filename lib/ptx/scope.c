#include <config.h>

#include "ptx/scope.h"

static uint32_t hash(const char *s, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 16777619u;
    return h ^ (h >> 15);
}

void ptx_scopes_init(struct ptx_scopes *s, struct arena *a)
{
    *s = (struct ptx_scopes){.arena = a, .nbucket = 256};
    s->bucket = ARENA_ARRAY(a, s->nbucket, struct ptx_symbol *);
}

void ptx_scope_enter(struct ptx_scopes *s)
{
    s->depth++;
}

/* The innermost scope's symbols are the first of their chains. */
void ptx_scope_leave(struct ptx_scopes *s)
{
    while (s->stack.n && s->stack.v[s->stack.n - 1]->depth == s->depth) {
        struct ptx_symbol *sym = s->stack.v[--s->stack.n];
        s->bucket[sym->hash & (s->nbucket - 1)] = sym->next;
    }
    s->depth--;
}

static void push(struct ptx_scopes *s, struct ptx_symbol *sym)
{
    struct ptx_symbol **b = &s->bucket[sym->hash & (s->nbucket - 1)];
    sym->next = *b;
    *b = sym;
}

static void grow(struct ptx_scopes *s)
{
    s->nbucket *= 2;
    s->bucket = ARENA_ARRAY(s->arena, s->nbucket, struct ptx_symbol *);
    for (size_t i = 0; i < s->stack.n; i++)
        push(s, s->stack.v[i]);
}

static struct ptx_symbol *find(const struct ptx_scopes *s, const char *name, size_t len)
{
    uint32_t h = hash(name, len);
    struct ptx_symbol *sym = s->bucket[h & (s->nbucket - 1)];
    while (sym && !(sym->hash == h && sym->len == len && memcmp(sym->name, name, len) == 0))
        sym = sym->next;
    return sym;
}

struct ptx_symbol *ptx_scope_own(const struct ptx_scopes *s, const char *name, size_t len)
{
    struct ptx_symbol *sym = find(s, name, len);
    return sym && sym->depth == s->depth ? sym : NULL;
}

struct ptx_symbol *ptx_scope_add(struct ptx_scopes *s, const char *name, size_t len,
                                 enum ptx_symbol_kind kind)
{
    if (ptx_scope_own(s, name, len))
        return NULL;
    if (s->stack.n >= s->nbucket)
        grow(s);
    struct ptx_symbol *sym = ARENA_NEW(s->arena, struct ptx_symbol);
    *sym = (struct ptx_symbol){
        .kind = kind, .name = name, .len = len, .hash = hash(name, len), .depth = s->depth};
    push(s, sym);
    *VEC_PUSH(s->arena, &s->stack) = sym;
    return sym;
}

/* %r12 of %r<20>. The base may end in digits of its own (%r1<5> has %r12 too), so every split is
 * tried; no range is longer than seven digits. */
static struct ptx_symbol *find_in_range(const struct ptx_scopes *s, const char *name, size_t len,
                                        uint32_t *index)
{
    struct ptx_symbol *best = NULL;
    uint32_t number = 0, unit = 1;
    for (size_t i = len; i-- > 1 && len - i <= 7 && name[i] >= '0' && name[i] <= '9'; unit *= 10) {
        number += (uint32_t)(name[i] - '0') * unit;
        struct ptx_symbol *sym = find(s, name, i);
        if (sym && sym->kind == PTX_S_RANGE && number < sym->count &&
            (!best || sym->depth > best->depth)) {
            best = sym;
            *index = sym->index + number;
        }
    }
    return best;
}

struct ptx_symbol *ptx_scope_find(const struct ptx_scopes *s, const char *name, size_t len,
                                  uint32_t *index)
{
    struct ptx_symbol *exact = find(s, name, len);
    uint32_t in_range = 0;
    struct ptx_symbol *range = find_in_range(s, name, len, &in_range);
    if (exact && exact->kind == PTX_S_RANGE)
        exact = NULL; /* %r alone is no register */
    if (range && (!exact || range->depth > exact->depth)) {
        *index = in_range;
        return range;
    }
    if (exact)
        *index = exact->index;
    return exact;
}
