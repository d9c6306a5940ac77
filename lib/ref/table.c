#include <config.h>

#include "ref/program.h"

#include <stdlib.h>

/* Open addressing, linear probing; a key is stored plus one, so that zero means free. */
struct table {
    struct entry *v;
    size_t n, cap;
};

struct table *ref_table_new(void)
{
    return calloc(1, sizeof(struct table));
}

void ref_table_free(struct table *t)
{
    if (t)
        free(t->v);
    free(t);
}

void ref_table_clear(struct table *t)
{
    free(t->v);
    *t = (struct table){0};
}

size_t ref_table_bytes(const struct table *t)
{
    return t->cap * sizeof *t->v;
}

static size_t place(const struct table *t, uint64_t stored)
{
    uint64_t h = stored * 0x9e3779b97f4a7c15u;
    size_t k = (size_t)(h ^ (h >> 32)) & (t->cap - 1);
    while (t->v[k].key && t->v[k].key != stored)
        k = (k + 1) & (t->cap - 1);
    return k;
}

struct entry *ref_table_find(struct table *t, uint64_t key)
{
    if (!t->cap)
        return NULL;
    struct entry *e = &t->v[place(t, key + 1)];
    return e->key ? e : NULL;
}

static bool grow(struct table *t)
{
    struct table old = *t;
    t->cap = old.cap ? old.cap * 2 : 256;
    t->v = calloc(t->cap, sizeof *t->v);
    if (!t->v) {
        *t = old;
        return false;
    }
    for (size_t k = 0; k < old.cap; k++)
        if (old.v[k].key)
            t->v[place(t, old.v[k].key)] = old.v[k];
    free(old.v);
    return true;
}

struct entry *ref_table_add(struct table *t, uint64_t key)
{
    if (t->n * 2 >= t->cap && !grow(t))
        return NULL;
    struct entry *e = &t->v[place(t, key + 1)];
    if (!e->key) {
        e->key = key + 1;
        t->n++;
    }
    return e;
}
