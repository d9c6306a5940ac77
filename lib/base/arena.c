#include <config.h>

#include "base/arena.h"

#include "base/internal.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Chunks are at most LARGEST bytes unless one piece needs more; pieces of WATCHED bytes are
 * compared with what is left. */
enum {
    ALIGN = 16,
    FIRST = 32 * 1024,
    SMALL = 128 * 1024, /* the largest chunk of one that is made large, before huge pages */
    LARGEST = 8 * 1024 * 1024,
    WATCHED = 64 * 1024 * 1024,
    HUGE_PAGE = 2 * 1024 * 1024 /* of most machines: with others it is a hint in vain */
};

struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(ALIGN) unsigned char bytes[];
};

struct arena {
    struct chunk *head;
    unsigned char *last; /* the newest allocation, which arena_grow can extend in place */
    jmp_buf guard;
    bool guarded, overcommit, is_large;
    const char *purpose;
    char failure[256];
};

static void (*last_words)(const char *failure);

void arena_last_words(void (*say)(const char *failure))
{
    last_words = say;
}

struct arena *arena_new(void)
{
    struct arena *a = calloc(1, sizeof *a);
    if (!a && last_words)
        last_words("not even a few bytes are left");
    return a;
}

void arena_free(struct arena *a)
{
    if (!a)
        return;
    for (struct chunk *c = a->head, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(a);
}

jmp_buf *arena_guard(struct arena *a)
{
    a->guarded = true;
    return &a->guard;
}

void arena_unguard(struct arena *a)
{
    a->guarded = false;
}

void arena_purpose(struct arena *a, const char *what)
{
    a->purpose = what;
}

void arena_overcommit(struct arena *a, bool overcommit)
{
    a->overcommit = overcommit;
}

void arena_large(struct arena *a)
{
    a->is_large = true;
}

const char *arena_failure(const struct arena *a)
{
    return *a->failure ? a->failure : "an allocation failed";
}

static _Noreturn void no_memory(struct arena *a, size_t n)
{
    const struct memory_left left = memory_left();
    char wanted[MEMORY_TEXT], has[MEMORY_TEXT];
    memory_text(n, wanted);
    if (a->purpose)
        snprintf(a->failure, sizeof a->failure, "%s takes %s", a->purpose, wanted);
    else
        snprintf(a->failure, sizeof a->failure, "%s more %s needed", wanted, n == 1 ? "is" : "are");
    const size_t len = strlen(a->failure);
    if (left.bytes != UINT64_MAX)
        snprintf(a->failure + len, sizeof a->failure - len, "; %s has %s left", left.by,
                 memory_text(left.bytes, has));
    if (!a->guarded && last_words)
        last_words(a->failure);
    if (!a->guarded)
        INTERNAL_ERROR("nobody waits for the end of memory: %s", a->failure);
    a->guarded = false;
    longjmp(a->guard, 1);
}

/* A page at a time costs more than all else that is done with some memory. Chunks of many pieces
 * are used from one end to the other, so that the kernel may as well give 2 MB at once. */
static void prefer_huge_pages(void *p, size_t size)
{
    const uintptr_t end = ((uintptr_t)p + size) & ~(uintptr_t)(HUGE_PAGE - 1);
    const size_t lead = -(uintptr_t)p & (HUGE_PAGE - 1);
    if (size >= 2 * (size_t)HUGE_PAGE)
        madvise((unsigned char *)p + lead, end - (uintptr_t)p - lead, MADV_HUGEPAGE);
}

/* One that begins with a huge page, if there is room for that: what lies in front of it is left
 * unused, and so never touched. */
static struct chunk *new_huge_chunk(size_t size)
{
    struct chunk *c = calloc(1, sizeof *c + size + HUGE_PAGE);
    if (!c)
        return NULL;
    c->used = -(uintptr_t)c->bytes & (HUGE_PAGE - 1);
    c->size = size + HUGE_PAGE;
    madvise(c->bytes + c->used, size, MADV_HUGEPAGE);
    return c;
}

/* A chunk from the system; NULL where it has none, or would end the process for touching it. */
static struct chunk *new_chunk(const struct arena *a, size_t size, bool is_one_piece)
{
    if (size >= WATCHED && !a->overcommit && size > memory_left().bytes)
        return NULL;
    struct chunk *c = NULL;
    if (a->is_large && !is_one_piece && size >= HUGE_PAGE && (c = new_huge_chunk(size)))
        return c;
    c = calloc(1, sizeof *c + size); /* all of it is zero until it is used */
    if (!c)
        return NULL;
    c->size = size;
    if (!is_one_piece)
        prefer_huge_pages(c, size);
    return c;
}

/* That of the chunk that follows one of so many bytes. */
static size_t next_size(const struct arena *a, size_t size)
{
    size_t next = 2 * size;
    if (a->is_large && size >= SMALL)
        next = next < HUGE_PAGE ? HUGE_PAGE : next / HUGE_PAGE * HUGE_PAGE;
    return next < LARGEST ? next : LARGEST;
}

void *arena_alloc(struct arena *a, size_t n)
{
    if (n > SIZE_MAX / 2)
        no_memory(a, n);
    n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (n == 0)
        n = ALIGN;
    struct chunk *c = a->head;
    if (!c || c->size - c->used < n) {
        size_t size = c ? next_size(a, c->size) : FIRST;
        if (size < n)
            size = n;
        struct chunk *fresh = new_chunk(a, size, size == n);
        if (!fresh)
            no_memory(a, a->purpose ? n : size);
        fresh->next = c;
        a->head = c = fresh;
    }
    unsigned char *p = c->bytes + c->used;
    c->used += n;
    a->last = p;
    return p;
}

void *arena_calloc(struct arena *a, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        no_memory(a, SIZE_MAX);
    return arena_alloc(a, n * size);
}

void *arena_grow(struct arena *a, void *p, size_t old, size_t n)
{
    struct chunk *c = a->head;
    if (p && p == (void *)a->last && n >= old) {
        size_t start = (size_t)((unsigned char *)p - c->bytes);
        size_t end = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
        if (n <= SIZE_MAX / 2 && end <= c->size - start) {
            if (start + end > c->used)
                c->used = start + end;
            return p;
        }
    }
    void *q = arena_alloc(a, n);
    if (p)
        memcpy(q, p, old < n ? old : n);
    return q;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    char *p = arena_alloc(a, n + 1);
    memcpy(p, s, n);
    return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
    char few[256];
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(few, sizeof few, fmt, again);
    va_end(again);
    if (n < 0)
        no_memory(a, 0);
    if ((size_t)n < sizeof few)
        return arena_strndup(a, few, (size_t)n);
    char *p = arena_alloc(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *p = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}
