/* Bytes that nothing has written. */
#include <config.h>

#include "sim/check.h"

#include <stdlib.h>

enum { WORD = 64 }; /* bytes that a word of bits stands for; no access straddles one */

static uint64_t ones(uint64_t n)
{
    return n >= WORD ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

bool check_define_none(struct check_shadow *s, uint64_t bytes)
{
    const uint64_t words = (bytes + WORD - 1) / WORD;
    if (words > s->words) {
        free(s->defined);
        s->defined = calloc((size_t)words, sizeof *s->defined);
        s->words = s->defined ? words : 0;
        if (!s->defined)
            return false;
    } else if (s->defined) {
        memset(s->defined, 0, (size_t)words * sizeof *s->defined);
    }
    s->undefined = bytes;
    return true;
}

void check_define(struct check_shadow *s, uint64_t offset, uint64_t bytes)
{
    while (bytes && s->undefined) {
        const uint64_t in = offset % WORD, n = bytes < WORD - in ? bytes : WORD - in;
        uint64_t *word = &s->defined[offset / WORD];
        const uint64_t fresh = (ones(n) << in) & ~*word;
        *word |= fresh;
        s->undefined -= (unsigned)__builtin_popcountll(fresh);
        offset += n;
        bytes -= n;
    }
}

void check_stores(struct check_shadow *s, uint32_t size, uint32_t lanes, const uint64_t *at)
{
    const uint64_t mask = ones(size);
    for (uint32_t left = lanes; left && s->undefined; left &= left - 1) {
        const uint64_t offset = at[__builtin_ctz(left)];
        uint64_t *word = &s->defined[offset / WORD];
        const uint64_t fresh = (mask << offset % WORD) & ~*word;
        *word |= fresh;
        s->undefined -= (unsigned)__builtin_popcountll(fresh);
    }
}

void check_loads(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                 const struct check_memory *m, uint32_t lanes, const uint64_t *at)
{
    const struct check_shadow *s = m->shadow;
    const uint64_t mask = ones(op->size);
    for (uint32_t left = lanes; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        const uint64_t missing = ~(s->defined[at[lane] / WORD] >> at[lane] % WORD) & mask;
        if (!missing)
            continue;
        /* of a vector, the first element that is not defined */
        const uint64_t first = (unsigned)__builtin_ctzll(missing) / o->element * o->element;
        const uint64_t start = m->space == SIM_IN_LOCAL ? at[lane] % m->bytes : at[lane];
        const struct check_finding f = {
            .kind = CHECK_F_INIT,
            .at = {(uint32_t)(op - w->code), w->index * SIM_LANES + lane, w->block->index},
            .count = 1,
            .address = m->origin + start + first,
            .space = (uint8_t)m->space,
            .bytes = o->element};
        check_find(w->block->launch->check, &f);
    }
}
