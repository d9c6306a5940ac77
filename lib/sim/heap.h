/* The heap of kernels: malloc() and free() in CUDA C++ (Programming Guide, "Dynamic Global Memory
 * Allocation and Operations"). Private to lib/sim.
 *
 * One buffer of global memory, made when the first kernel that calls malloc() is launched; it lives
 * as long as the device, so that one launch may free what an earlier one took. Pieces are multiples
 * of 16 bytes with a gap behind each; an access that is not inside one that is live is outside of
 * every buffer (sim_mem_host()). What was freed is used again only when all else is taken, so that
 * a use after it is known for what it is.
 *
 * Where pieces lie depends on who comes first, so kernels that allocate run on one thread, and
 * alike in every run.
 */
#ifndef KAIO_SIM_HEAP_H
#define KAIO_SIM_HEAP_H

#include "sim/sim.h"

enum { SIM_HEAP_BYTES = 8 << 20 }; /* CUDA's default */

/* Who took or gave back a piece. */
struct sim_heap_site {
    struct span span;  /* of the call; no source: its module is gone ... */
    const char *entry; /* ... and this is NULL */
    uint64_t launch;   /* sim_heap.launches then */
    uint64_t block;
    uint32_t thread;
};

struct sim_chunk {
    uint64_t offset, bytes; /* in the heap's buffer; as asked for */
    struct sim_heap_site taken, freed;
    bool live;
};

struct sim_heap {
    struct sim_buffer *buffer;
    uint64_t launches;
    uint32_t
        *owner; /* of each 16 bytes: 1 + index of a piece, also of one that was freed; 0: none */
    struct sim_chunk *piece;
    size_t npiece, room;
    struct sim_extent *extent; /* free and in order */
    size_t nextent, extents;
    uint32_t *spare; /* pieces whose place in the list is free again */
    size_t nspare, spares;
};

/* In memory that has none yet. NULL: no memory. */
struct sim_heap *sim_heap_new(struct sim_memory *m, uint64_t bytes);
void sim_heap_free(struct sim_heap *h); /* NULL is allowed */
/* Are all the bytes at an offset those of one live piece? */
bool sim_heap_holds(const struct sim_heap *h, uint64_t offset, uint64_t bytes);
/* The piece at an offset or next before it; NULL: none is near. */
const struct sim_chunk *sim_heap_near(const struct sim_heap *h, uint64_t offset);
/* A source goes, and the spans in it with it. */
void sim_heap_forget(struct sim_heap *h, const struct source *src);
/* An error for each call whose pieces were never freed, and that known (NULL: none) does not name;
 * false when there is any. */
bool sim_heap_leaks(const struct sim_heap *h, struct suppressions *known, struct diags *d);

/* "byte 40 of 40 bytes of malloc()" */
const char *sim_heap_text(struct arena *a, const struct sim_heap *h, uint64_t offset);
/* Notes of where the piece at an address was taken and freed, if it is one's. */
void sim_heap_note(struct sim_launch *l, uint64_t address, struct diags *d);
/* What was wrong with free() of an address. */
const char *sim_heap_wrong(struct sim_launch *l, uint64_t address);

/* 64-bit d = malloc(a bytes), free(a) */
const struct sim_op *sim_heap_malloc(struct sim_warp *w, const struct sim_op *op);
const struct sim_op *sim_heap_give(struct sim_warp *w, const struct sim_op *op);

#endif
