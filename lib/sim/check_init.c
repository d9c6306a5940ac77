/* Bytes that nothing has written. */
#include <config.h>

#include "sim/check.h"

#include <stdlib.h>

#include "sim/matrix.h"

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
        if (fresh) {
            *word |= fresh;
            s->undefined -= (unsigned)__builtin_popcountll(fresh);
        }
        offset += n;
        bytes -= n;
    }
}

static void store(struct check_shadow *s, uint64_t offset, uint64_t defined, uint64_t undefined)
{
    uint64_t *word = &s->defined[offset / WORD];
    const uint64_t now = (*word & ~(undefined << offset % WORD)) | defined << offset % WORD;
    s->undefined += (uint64_t)__builtin_popcountll(*word) - (uint64_t)__builtin_popcountll(now);
    *word = now;
}

void check_undefine(struct check_shadow *s, uint64_t offset, uint64_t bytes)
{
    while (bytes && s->defined) {
        const uint64_t in = offset % WORD, n = bytes < WORD - in ? bytes : WORD - in;
        store(s, offset, 0, ones(n));
        offset += n;
        bytes -= n;
    }
}

bool check_first_undefined(const struct check_shadow *s, uint64_t *offset, uint64_t bytes)
{
    const uint64_t end = *offset + bytes;
    while (s->undefined && *offset < end) {
        const uint64_t in = *offset % WORD,
                       n = end - *offset < WORD - in ? end - *offset : WORD - in;
        const uint64_t missing = ~(s->defined[*offset / WORD] >> in) & ones(n);
        if (missing) {
            *offset += (unsigned)__builtin_ctzll(missing);
            return true;
        }
        *offset += n;
    }
    return false;
}

/* The bytes of a row. */
static uint64_t row_bytes(const struct sim_op *op, const struct check_access *x)
{
    return (uint64_t)op->size * (unsigned)__builtin_popcount(x->lanes);
}

void check_stores(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                  const struct check_access *x)
{
    struct check_shadow *s = x->m->shadow;
    const uint32_t slot[4] = {op->d, op->b, op->c, op->e};
    const bool copies = o->tainted && o->kind == CHECK_STORE && x->m->space == SIM_IN_LOCAL;
    const uint64_t all = ones(o->element);
    FOR_LANES(lane, copies ? x->lanes : 0) {
        for (uint32_t k = 0; k < op->size / o->element && k < 4; k++) {
            const uint64_t not = check_tainted(w, slot[k], lane);
            store(s, check_offset(x, lane) + k * o->element, all & ~not, all & not );
        }
    }
    if (!copies && x->row)
        check_define(s, check_offset(x, (uint32_t)__builtin_ctz(x->lanes)), row_bytes(op, x));
    FOR_LANES(lane, copies || x->row ? 0 : x->lanes)
        check_define(s, check_offset(x, lane), op->size);
}

/* Has a lane bytes to load that are not defined? */
static bool any_undefined(const struct sim_op *op, const struct check_access *x)
{
    const struct check_shadow *s = x->m->shadow;
    uint64_t defined = UINT64_MAX;
    if (x->row) {
        uint64_t offset = check_offset(x, (uint32_t)__builtin_ctz(x->lanes));
        return check_first_undefined(s, &offset, row_bytes(op, x));
    }
    FOR_LANES(lane, x->lanes) {
        const uint64_t at = check_offset(x, lane);
        defined &= s->defined[at / WORD] >> at % WORD;
    }
    return ~defined & ones(op->size);
}

/* Atomics use what they find at once. */
static void report(struct sim_warp *w, uint32_t lane, const struct check_taint *t)
{
    const struct check_side at = {t->op, w->index * SIM_LANES + lane, w->block->index};
    check_find(w->block->launch->check, &(struct check_finding){.kind = CHECK_F_INIT,
                                                                .at = at,
                                                                .other = at,
                                                                .count = 1,
                                                                .address = t->address[lane],
                                                                .space = t->space,
                                                                .bytes = t->bytes});
}

/* The bits of an element's undefined bytes; one of less than 8 bytes may be extended by its
 * sign. */
static uint64_t bits_of(uint64_t bytes, uint32_t element)
{
    uint64_t bits = 0;
    for (uint32_t k = 0; k < element && k < 8; k++)
        bits |= (bytes >> k & 1 ? (uint64_t)0xff : 0) << 8 * k;
    if (element < 8 && bytes >> (element - 1) & 1)
        bits |= UINT64_MAX << 8 * element;
    return bits;
}

/* Element k of what the lanes load. */
static void load_element(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                         const struct check_access *x, uint32_t k)
{
    const struct check_memory *m = x->m;
    const struct check_shadow *s = m->shadow;
    const uint64_t mask = ones(o->element), skip = k * o->element;
    const uint32_t slot[4] = {op->d, op->b, op->c, op->e};
    struct check_taint t = {.op = (uint32_t)(op - w->code),
                            .loaded = true,
                            .space = (uint8_t)m->space,
                            .bytes = o->element};
    FOR_LANES(lane, x->lanes) {
        const uint64_t from = check_offset(x, lane) + skip;
        const uint64_t missing = ~(s->defined[from / WORD] >> from % WORD) & mask;
        if (!missing)
            continue;
        t.lanes |= 1u << lane;
        t.bits[lane] = bits_of(missing, o->element);
        t.address[lane] = m->origin + (m->space == SIM_IN_LOCAL ? from % m->bytes : from);
    }
    if (o->kind == CHECK_LOAD && t.lanes)
        check_taint(w, slot[k], &t);
    FOR_LANES(lane, o->kind == CHECK_LOAD ? 0 : t.lanes)
        report(w, lane, &t);
}

void check_loads(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                 const struct check_access *x)
{
    const uint32_t n = o->kind == CHECK_LOAD ? op->size / o->element : 1;
    if (!any_undefined(op, x))
        return;
    for (uint32_t k = 0; k < n && k < 4; k++)
        load_element(w, o, op, x, k);
}

void check_copy_defined(struct check_shadow *s, uint64_t offset, const struct check_shadow *from,
                        uint64_t at, uint64_t bytes)
{
    if (!s->defined)
        return;
    if (!from || !from->undefined) {
        check_define(s, offset, bytes);
        return;
    }
    for (uint64_t i = 0; i < bytes; i++) {
        const uint64_t bit = (uint64_t)1 << (offset + i) % WORD;
        uint64_t *word = &s->defined[(offset + i) / WORD];
        const bool is = from->defined[(at + i) / WORD] >> (at + i) % WORD & 1;
        s->undefined += (*word & bit) && !is;
        s->undefined -= !(*word & bit) && is;
        *word = is ? *word | bit : *word & ~bit;
    }
}

/* Of these 8 x 8 matrices, lanes 8 k to 8 k + 7 have the addresses of the rows of the k-th. Element
 * 2 t and the next of row r go to lane 4 r + t, or with .trans element e of it to lane 4 e + r /
 * 2. */
void check_matrix_loads(struct sim_warp *w, const struct sim_op *op, const struct check_access *x)
{
    const struct check_memory *m = x->m;
    const struct check_shadow *s = m->shadow;
    const uint32_t slot[4] = {op->d, op->b, op->c, op->e};
    const bool trans = op->round & SIM_MATRIX_TRANS;
    struct check_taint t[4] = {{0}};
    if (!any_undefined(op, x))
        return;
    FOR_LANES(lane, x->lanes) {
        const uint32_t k = lane / 8, r = lane % 8;
        const uint64_t at = check_offset(x, lane);
        const uint64_t missing = ~(s->defined[at / WORD] >> at % WORD) & ones(16);
        for (uint32_t e = 0; missing && e < 8; e++) {
            if (!(missing >> 2 * e & 3))
                continue;
            const uint32_t to = trans ? 4 * e + r / 2 : 4 * r + e / 2;
            if (!(t[k].lanes >> to & 1))
                t[k].address[to] = m->origin + at + 2 * (uint64_t)e;
            t[k].lanes |= 1u << to;
        }
    }
    for (uint32_t k = 0; k < (op->round & SIM_MATRIX_COUNT); k++) {
        t[k].op = (uint32_t)(op - w->code);
        t[k].loaded = true;
        t[k].space = (uint8_t)m->space;
        t[k].bytes = 2;
        if (t[k].lanes)
            check_taint(w, slot[k], &t[k]);
    }
}
