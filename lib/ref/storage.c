#include <config.h>

#include "ref/storage.h"

#include "base/memory.h"

#include <stdlib.h>

/* The system would promise more than there is, and end the process for touching it. */
static bool fits(uint64_t bytes)
{
    enum { SMALL = 64 * 1024 * 1024 }; /* is not asked for */
    return bytes < SMALL || bytes <= memory_left().bytes;
}

void *ref_storage_take(struct ref_storage *s, uint64_t n, size_t size)
{
    void *p = n <= UINT64_MAX / size && fits(n * size) ? calloc(n ? (size_t)n : 1, size) : NULL;
    if (p)
        *VEC_PUSH(s->p->arena, &s->v) = p;
    return p;
}

void ref_storage_free(struct ref_storage *s)
{
    for (size_t k = 0; k < s->v.n; k++)
        free(s->v.v[k]);
    s->v.n = 0;
}

/* Values with their errors. */
static uint64_t bytes_of(uint64_t n)
{
    return n * (sizeof(double) + sizeof(double));
}

bool ref_storage_refuse(const struct ref_storage *s, const struct tensor *t, uint64_t n)
{
    const struct memory_left left = memory_left();
    char wanted[MEMORY_TEXT], has[MEMORY_TEXT];
    return diag_error(s->d, t->eq->src->span,
                      "the %llu values of '%s' and their errors take %s, but %s has %s left",
                      (unsigned long long)n, t->sym->name, memory_text(bytes_of(n), wanted),
                      left.by, memory_text(left.bytes, has));
}

uint64_t ref_storage_dense(const struct program *p)
{
    uint64_t bytes = 0;
    for (size_t k = 0; k < p->equations.n; k++)
        bytes += bytes_of(p->equations.v[k]->tensor->count);
    return bytes;
}

bool ref_storage_tensor(struct ref_storage *s, struct tensor *t)
{
    const uint64_t n = t->is_part ? t->n : t->count;
    if (dtype_is_float(t->type))
        t->v = ref_storage_take(s, n, sizeof *t->v);
    else
        t->i = ref_storage_take(s, n, sizeof *t->i);
    t->e = ref_storage_take(s, n, sizeof *t->e);
    return (t->v || t->i) && t->e ? true : ref_storage_refuse(s, t, n);
}

static void drop(struct ref_storage *s, void *p)
{
    for (size_t k = 0; k < s->v.n; k++)
        if (s->v.v[k] == p)
            s->v.v[k] = NULL;
    free(p);
}

void ref_storage_drop(struct ref_storage *s, struct tensor *t)
{
    drop(s, t->v);
    drop(s, t->i);
    drop(s, t->e);
    t->v = t->e = NULL;
    t->i = NULL;
}

static const struct tensor *largest(const struct program *p)
{
    const struct tensor *most = p->equations.v[0]->tensor;
    for (size_t k = 1; k < p->equations.n; k++)
        if (p->equations.v[k]->tensor->count > most->count)
            most = p->equations.v[k]->tensor;
    return most;
}

bool ref_storage_take_dense(struct ref_storage *s)
{
    /* all of it together, for what has been promised is not missing until it is touched */
    if (!fits(ref_storage_dense(s->p)))
        return ref_storage_refuse(s, largest(s->p), largest(s->p)->count);
    for (size_t k = 0; k < s->p->equations.n; k++)
        if (!ref_storage_tensor(s, s->p->equations.v[k]->tensor))
            return false;
    return true;
}
