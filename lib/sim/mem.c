#include <config.h>

#include <stdlib.h>

#include "sim/check.h"
#include "sim/heap.h"

static const uint64_t WINDOW = (uint64_t)1 << SIM_WINDOW_BITS;
static const uint64_t START = (uint64_t)1 << (SIM_WINDOW_BITS - 2); /* of a buffer in its window */

static void drop(struct sim_memory *m, struct sim_buffer *b)
{
    sim_check_release(b);
    free(b->block);
    b->block = NULL;
    b->host = NULL;
    b->released = true;
    m->live--;
    m->bytes -= b->bytes;
}

/* The next window that holds no live buffer, so that released ones are forgotten as late as can
 * be. */
static unsigned find_window(struct sim_memory *m)
{
    enum { USABLE = SIM_WINDOWS - SIM_WINDOW_FIRST };
    for (unsigned i = 0; i < USABLE; i++) {
        const unsigned w = SIM_WINDOW_FIRST + (m->next + i) % USABLE;
        if (!m->window[w].host) {
            m->next = (m->next + i + 1) % USABLE;
            return w;
        }
    }
    return 0;
}

/* A buffer in window w. The simulated address lies to multiples of 256 as the host's does. */
static struct sim_buffer *begin(struct sim_memory *m, unsigned w, unsigned char *host,
                                uint64_t bytes, const char *what)
{
    struct sim_buffer *b = &m->window[w];
    free(b->names); /* of the one that was here */
    *b = (struct sim_buffer){.bytes = bytes, .host = host, .what = what};
    b->base = w * WINDOW + START + (uint64_t)(w * 2654435761u % 65536) * 256;
    b->base += (uintptr_t)host & 255;
    m->live++;
    m->bytes += bytes;
    return b;
}

struct sim_buffer *sim_mem_alloc(struct sim_memory *m, uint64_t bytes,
                                 const struct device_label *label, const char *what)
{
    /* three quarters of a window are behind its start; leave room for a miss to be seen */
    if (bytes > WINDOW / 2)
        return NULL;
    const unsigned w = find_window(m);
    if (!w)
        return NULL;
    /* zeroed lazily by the system, unlike a memset; aligned as the simulated address is */
    void *block = calloc(1, (size_t)bytes + 256);
    if (!block)
        return NULL;
    unsigned char *host = (unsigned char *)(((uintptr_t)block + 255) & ~(uintptr_t)255);
    struct sim_buffer *b = begin(m, w, host, bytes, what);
    b->block = block;
    if (label) {
        b->label = *label;
        b->read_only = label->read_only;
    }
    return b;
}

struct sim_buffer *sim_mem_bind(struct sim_memory *m, void *host, uint64_t bytes, const char *what)
{
    const unsigned w = bytes > WINDOW / 2 ? 0 : find_window(m);
    return w ? begin(m, w, host, bytes, what) : NULL;
}

bool sim_mem_label(struct sim_buffer *b, const struct device_label *label)
{
    const size_t dims = label->ndim * sizeof *label->dim, name = strlen(label->name) + 1,
                 type = strlen(label->type) + 1;
    char *to = malloc(dims + name + type);
    if (!to)
        return false;
    free(b->names);
    b->names = to;
    b->label = *label;
    b->label.dim = dims ? memcpy(to, label->dim, dims) : NULL;
    b->label.name = memcpy(to + dims, label->name, name);
    b->label.type = memcpy(to + dims + name, label->type, type);
    b->read_only = label->read_only;
    return true;
}

struct sim_buffer *sim_mem_near(struct sim_memory *m, uint64_t address)
{
    const uint64_t w = address >> SIM_WINDOW_BITS;
    if (w < SIM_WINDOW_FIRST || w >= SIM_WINDOWS)
        return NULL;
    struct sim_buffer *b = &m->window[w];
    return b->base ? b : NULL;
}

bool sim_mem_release(struct sim_memory *m, uint64_t address)
{
    struct sim_buffer *b = sim_mem_near(m, address);
    if (!b || b->base != address || b->released)
        return false;
    drop(m, b);
    return true;
}

unsigned char *sim_mem_host(struct sim_memory *m, uint64_t address, uint64_t bytes)
{
    struct sim_buffer *b = sim_mem_near(m, address);
    if (!b || b->released || address < b->base)
        return NULL;
    const uint64_t off = address - b->base;
    if (off > b->bytes || bytes > b->bytes - off ||
        (b->heap && bytes && !sim_heap_holds(b->heap, off, bytes)))
        return NULL;
    return b->host + off;
}

void sim_mem_free(struct sim_memory *m)
{
    for (unsigned w = 0; w < SIM_WINDOWS; w++) {
        if (m->window[w].host)
            drop(m, &m->window[w]);
        free(m->window[w].names);
        m->window[w].names = NULL;
    }
    sim_heap_free(m->heap);
    m->heap = NULL;
}

/* ---- access ---------------------------------------------------------------------------------- */

static bool fail(struct sim_warp *w, const struct sim_op *op, uint32_t lane, uint64_t address,
                 enum sim_fault_kind kind)
{
    struct sim_fault *f = &w->block->fault;
    sim_fault_at(w, op, lane, kind);
    f->address = address;
    f->bytes = op->size;
    f->store = op->flags & SIM_STORES;
    f->space = op->more;
    return false;
}

/* The memory where an access lands; NULL, with *kind set, when it must not happen. */
static unsigned char *place(struct sim_warp *w, const struct sim_op *op, uint32_t lane, uint64_t at,
                            enum sim_fault_kind *kind, struct sim_buffer **buffer)
{
    const struct sim_block *b = w->block;
    enum sim_space space = op->more;
    uint64_t off = at;
    if (space == SIM_IN_GENERIC) {
        const uint64_t window = at >> SIM_WINDOW_BITS;
        if (window == SIM_WINDOW_LOCAL)
            space = SIM_IN_LOCAL, off = at - SIM_LOCAL_BASE;
        else if (window == SIM_WINDOW_SHARED)
            space = SIM_IN_SHARED, off = at - SIM_SHARED_BASE;
        else
            space = SIM_IN_GLOBAL;
    }
    *kind = SIM_F_BOUNDS;
    if (space == SIM_IN_GLOBAL) {
        struct sim_buffer *near = sim_mem_near(b->launch->memory, at);
        *buffer = near;
        unsigned char *host = sim_mem_host(b->launch->memory, at, op->size);
        if (host && near->read_only && (op->flags & SIM_STORES)) {
            *kind = SIM_F_READONLY;
            return NULL;
        }
        return host;
    }
    const uint64_t bytes = space == SIM_IN_SHARED ? b->shared_bytes : b->launch->code->local_bytes;
    if (space == SIM_IN_SHARED && off >> SIM_RANK_SHIFT) {
        const uint64_t rank = (off >> SIM_RANK_SHIFT) - 1;
        if (rank >= b->npeer)
            return NULL;
        b = b->peer[rank];
        off &= ((uint64_t)1 << SIM_RANK_SHIFT) - 1;
    }
    if (off > bytes || op->size > bytes - off)
        return NULL;
    return space == SIM_IN_SHARED ? b->shared + off : w->local + lane * bytes + off;
}

const unsigned char *sim_mem_read(struct sim_warp *w, uint32_t lane, uint64_t address,
                                  uint32_t bytes)
{
    const struct sim_op load = {.size = (uint8_t)bytes, .more = SIM_IN_GENERIC};
    enum sim_fault_kind kind;
    struct sim_buffer *buffer;
    return place(w, &load, lane, address, &kind, &buffer);
}

bool sim_resolve(struct sim_warp *w, const struct sim_op *op, uint64_t at[SIM_LANES])
{
    struct sim_buffer *all = NULL;
    bool one = true;
    const uint32_t first = (uint32_t)__builtin_ctz(w->em);
    FOR_LANES(lane, w->em) {
        const uint64_t address = at[lane];
        struct sim_buffer *buffer = NULL;
        enum sim_fault_kind kind;
        if (address & (op->size - 1u))
            return fail(w, op, lane, address, SIM_F_ALIGN);
        unsigned char *host = place(w, op, lane, address, &kind, &buffer);
        if (!host)
            return fail(w, op, lane, address, kind);
        at[lane] = (uint64_t)(uintptr_t)host;
        if (lane == first)
            all = buffer;
        one &= buffer && buffer == all && !buffer->heap;
    }
    if (one && (op->more == SIM_IN_GLOBAL || op->more == SIM_IN_GENERIC))
        w->cache[op->cache] = (struct sim_cached){
            .base = all->base, .limit = all->bytes - op->size, .host = all->host};
    /* lanes that do not take part repeat one that does, so that loads may read all 32 */
    for (uint32_t lane = 0; lane < SIM_LANES; lane++)
        if (!((w->em >> lane) & 1))
            at[lane] = at[first];
    return true;
}
