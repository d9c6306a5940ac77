#include <config.h>

#include "sim/heap.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/suppress.h"
#include "sim/check.h"
#include "sim/report.h"

enum {
    GRAIN = 16,
    GAP = 2 * GRAIN, /* behind a piece */
    NEAR = 4096      /* an access so far behind a piece is still about it */
};

struct sim_extent {
    uint64_t offset, bytes;
};

static uint64_t room_for(uint64_t bytes)
{
    return (bytes + GRAIN - 1) / GRAIN * GRAIN + GAP;
}

/* ---- the heap -------------------------------------------------------------------------------- */

/* Room for one more element; false: no memory. */
static bool grow(void **v, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return true;
    const size_t more = *room ? 2 * *room : 64;
    void *p = realloc(*v, more * size);
    if (!p)
        return false;
    *v = p;
    *room = more;
    return true;
}

struct sim_heap *sim_heap_new(struct sim_memory *m, uint64_t bytes)
{
    static const struct device_label label = {.name = "heap", .type = ""};
    struct sim_heap *h = calloc(1, sizeof *h);
    bytes = bytes / GRAIN * GRAIN;
    if (h && grow((void **)&h->extent, 0, &h->extents, sizeof *h->extent))
        h->owner = calloc((size_t)(bytes / GRAIN) + 1, sizeof *h->owner);
    if (h && h->owner)
        h->buffer = sim_mem_alloc(m, bytes, &label, "heap");
    if (!h || !h->buffer) {
        sim_heap_free(h);
        return NULL;
    }
    h->extent[h->nextent++] = (struct sim_extent){0, bytes};
    h->buffer->heap = h;
    return h;
}

void sim_heap_free(struct sim_heap *h)
{
    if (!h)
        return;
    free(h->owner);
    free(h->piece);
    free(h->extent);
    free(h->spare);
    free(h);
}

static void set_owner(struct sim_heap *h, const struct sim_chunk *p, uint32_t owner)
{
    const uint64_t n = (p->bytes + GRAIN - 1) / GRAIN;
    for (uint64_t i = 0; i < n; i++)
        h->owner[p->offset / GRAIN + i] = owner;
}

bool sim_heap_holds(const struct sim_heap *h, uint64_t offset, uint64_t bytes)
{
    const uint32_t owner = h->owner[offset / GRAIN];
    const struct sim_chunk *p = owner ? &h->piece[owner - 1] : NULL;
    return p && p->live && bytes <= p->bytes && offset - p->offset <= p->bytes - bytes;
}

const struct sim_chunk *sim_heap_near(const struct sim_heap *h, uint64_t offset)
{
    if (offset >= h->buffer->bytes)
        return NULL;
    for (uint64_t i = offset / GRAIN + 1, least = i > NEAR / GRAIN ? i - NEAR / GRAIN : 0;
         i-- > least;)
        if (h->owner[i])
            return &h->piece[h->owner[i] - 1];
    return NULL;
}

/* ---- taking and giving back ------------------------------------------------------------------ */

static bool take_extent(struct sim_heap *h, uint64_t bytes, uint64_t *offset)
{
    for (size_t i = 0; i < h->nextent; i++) {
        struct sim_extent *e = &h->extent[i];
        if (e->bytes < bytes)
            continue;
        *offset = e->offset;
        e->offset += bytes;
        e->bytes -= bytes;
        if (!e->bytes)
            memmove(e, e + 1, (--h->nextent - i) * sizeof *e);
        return true;
    }
    return false;
}

static int by_offset(const void *x, const void *y)
{
    const struct sim_extent *a = x, *b = y;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Makes what was freed free again. False: nothing was, or there is no memory. */
static bool reclaim(struct sim_heap *h)
{
    const size_t before = h->nspare;
    for (size_t i = 0; i < h->npiece; i++) {
        struct sim_chunk *p = &h->piece[i];
        if (p->live || !p->bytes)
            continue;
        if (!grow((void **)&h->extent, h->nextent, &h->extents, sizeof *h->extent) ||
            !grow((void **)&h->spare, h->nspare, &h->spares, sizeof *h->spare))
            break;
        set_owner(h, p, 0);
        h->extent[h->nextent++] = (struct sim_extent){p->offset, room_for(p->bytes)};
        h->spare[h->nspare++] = (uint32_t)i;
        p->bytes = 0;
    }
    qsort(h->extent, h->nextent, sizeof *h->extent, by_offset);
    size_t n = 0;
    for (size_t i = 0; i < h->nextent; i++) {
        struct sim_extent *last = n ? &h->extent[n - 1] : NULL;
        if (last && last->offset + last->bytes == h->extent[i].offset)
            last->bytes += h->extent[i].bytes;
        else
            h->extent[n++] = h->extent[i];
    }
    h->nextent = n;
    return h->nspare > before;
}

/* A place in the list of pieces; NULL: no memory. */
static struct sim_chunk *new_piece(struct sim_heap *h)
{
    if (h->nspare)
        return &h->piece[h->spare[--h->nspare]];
    if (h->npiece == UINT32_MAX - 1 ||
        !grow((void **)&h->piece, h->npiece, &h->room, sizeof *h->piece))
        return NULL;
    return &h->piece[h->npiece++];
}

/* NULL: there is no room. */
static struct sim_chunk *take(struct sim_heap *h, uint64_t bytes)
{
    uint64_t offset;
    if (!bytes || bytes > h->buffer->bytes ||
        (!take_extent(h, room_for(bytes), &offset) &&
         !(reclaim(h) && take_extent(h, room_for(bytes), &offset))))
        return NULL;
    struct sim_chunk *p = new_piece(h);
    if (!p)
        return NULL;
    *p = (struct sim_chunk){.offset = offset, .bytes = bytes, .live = true};
    set_owner(h, p, (uint32_t)(p - h->piece) + 1);
    return p;
}

static struct sim_heap_site site(const struct sim_warp *w, const struct sim_op *op, uint32_t lane)
{
    const struct sim_launch *l = w->block->launch;
    return (struct sim_heap_site){.entry = l->code->func->name,
                                  .span = sim_span_of(l, (uint32_t)(op - w->code)),
                                  .launch = l->memory->heap->launches,
                                  .block = w->block->index,
                                  .thread = w->index * SIM_LANES + lane};
}

const struct sim_op *sim_heap_malloc(struct sim_warp *w, const struct sim_op *op)
{
    struct sim_heap *h = w->block->launch->memory->heap;
    FOR_LANES(lane, w->em) {
        struct sim_chunk *p = take(h, sim_wide(w, op->a, lane));
        const uint64_t address = p ? h->buffer->base + p->offset : 0;
        memcpy(w->r + op->d + 8 * lane, &address, 8);
        if (!p)
            continue;
        p->taken = site(w, op, lane);
        sim_check_fresh(h->buffer, p->offset, p->bytes);
    }
    return op + 1;
}

/* The live piece that begins at an address. */
static struct sim_chunk *live_at(struct sim_heap *h, uint64_t address)
{
    const uint64_t off = address - h->buffer->base;
    const uint32_t owner = off < h->buffer->bytes && off % GRAIN == 0 ? h->owner[off / GRAIN] : 0;
    struct sim_chunk *p = owner ? &h->piece[owner - 1] : NULL;
    return p && p->live && p->offset == off ? p : NULL;
}

const struct sim_op *sim_heap_give(struct sim_warp *w, const struct sim_op *op)
{
    struct sim_heap *h = w->block->launch->memory->heap;
    FOR_LANES(lane, w->em) {
        const uint64_t address = sim_wide(w, op->a, lane);
        struct sim_chunk *p = live_at(h, address);
        if (!address)
            continue;
        if (!p) {
            sim_fault_at(w, op, lane, SIM_F_FREE);
            w->block->fault.address = address;
            return NULL;
        }
        p->live = false;
        p->freed = site(w, op, lane);
    }
    return op + 1;
}

/* ---- reports --------------------------------------------------------------------------------- */

static void forget(struct sim_heap_site *s, const struct source *src)
{
    if (s->span.src != src)
        return;
    s->span = SPAN_NONE;
    s->entry = NULL;
}

void sim_heap_forget(struct sim_heap *h, const struct source *src)
{
    for (size_t i = 0; h && i < h->npiece; i++) {
        forget(&h->piece[i].taken, src);
        forget(&h->piece[i].freed, src);
    }
}

const char *sim_heap_text(struct arena *a, const struct sim_heap *h, uint64_t offset)
{
    const struct sim_chunk *p = sim_heap_near(h, offset);
    if (!p)
        return arena_printf(a, "byte %" PRId64 " of the heap, where malloc() has given nothing",
                            (int64_t)offset);
    return arena_printf(a, "byte %" PRIu64 " of %" PRIu64 " bytes of malloc()", offset - p->offset,
                        p->bytes);
}

static void note_site(struct sim_launch *l, const struct sim_heap_site *s, const char *what,
                      struct diags *d)
{
    const bool now = s->launch == l->memory->heap->launches;
    diag_note(d, s->span, "they were %s %s%s", what, now ? "by " : "in an earlier launch",
              now ? sim_thread_text(l, s->block, s->thread) : "");
}

void sim_heap_note(struct sim_launch *l, uint64_t address, struct diags *d)
{
    const struct sim_buffer *b = sim_mem_near(l->memory, address);
    const struct sim_chunk *p = b && b->heap ? sim_heap_near(b->heap, address - b->base) : NULL;
    if (!p)
        return;
    note_site(l, &p->taken, "taken", d);
    if (!p->live)
        note_site(l, &p->freed, "freed", d);
}

const char *sim_heap_wrong(struct sim_launch *l, uint64_t address)
{
    const struct sim_heap *h = l->memory->heap;
    const struct sim_chunk *p = sim_heap_near(h, address - h->buffer->base);
    if (!p || address - h->buffer->base - p->offset >= p->bytes)
        return arena_printf(l->arena, "free() of 0x%" PRIx64 ", which malloc() has not given",
                            address);
    if (!p->live)
        return arena_printf(l->arena, "free() of %" PRIu64 " bytes that were freed already",
                            p->bytes);
    return arena_printf(l->arena,
                        "free() of byte %" PRIu64 " of %" PRIu64
                        " bytes of malloc(), of which it takes the first",
                        address - h->buffer->base - p->offset, p->bytes);
}

static bool same_call(const struct sim_chunk *p, const struct sim_chunk *q)
{
    return p->live && q->live && p->taken.span.src == q->taken.span.src &&
           p->taken.span.off == q->taken.span.off;
}

/* A call of malloc() whose pieces were not freed, unless it is suppressed. */
static bool report_leak(const struct sim_chunk *p, uint64_t bytes, uint64_t n,
                        struct suppressions *known, struct diags *d)
{
    const struct finding f = {.kind = "leak",
                              .check = "memory",
                              .entry = arena_strdup(d->arena, p->taken.entry ? p->taken.entry : ""),
                              .at = {.span = p->taken.span},
                              .space = "global",
                              .address = 0,
                              .buffer = "heap",
                              .count = n};
    if (known && suppress_find(known, &f))
        return true;
    const size_t at = d->list.n;
    diag_error(d, p->taken.span,
               "kernel '%s': %" PRIu64 " bytes that malloc() gave here were never freed, %" PRIu64
               " piece%s",
               f.entry, bytes, n, n == 1 ? "" : "s");
    diags_explain(d, at, &f);
    return false;
}

bool sim_heap_leaks(const struct sim_heap *h, struct suppressions *known, struct diags *d)
{
    bool clean = true;
    for (size_t i = 0; h && i < h->npiece; i++) {
        const struct sim_chunk *p = &h->piece[i];
        uint64_t bytes = p->bytes, n = 1;
        bool told = !p->live;
        for (size_t k = 0; k < i && !told; k++)
            told = same_call(&h->piece[k], p);
        for (size_t k = i + 1; k < h->npiece && !told; k++)
            if (same_call(&h->piece[k], p)) {
                bytes += h->piece[k].bytes;
                n++;
            }
        if (told)
            continue;
        clean &= report_leak(p, bytes, n, known, d);
    }
    return clean;
}
