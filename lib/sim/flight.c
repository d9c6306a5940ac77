/* Operations in flight: the list, when each takes effect, and what it does then. */
#include <config.h>

#include "sim/flight.h"

#include <stdlib.h>

#include "sim/atom.h"
#include "sim/check.h"
#include "sim/mbarrier.h"

#define ALL ((uint64_t)1 << 32) /* bytes: more than one operation moves */

/* ---- numbers drawn --------------------------------------------------------------------------- */

/* Draws the next random number of a cluster (Steele, Lea, Flood, Fast splittable pseudorandom
 * number generators, 2014). */
static uint64_t draw(struct sim_flights *all)
{
    uint64_t z = all->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t sim_draw(struct sim_block *b, uint32_t n)
{
    struct sim_flights *all = &b->peer[0]->flights;
    return all->random ? (uint32_t)(draw(all) >> 32) % n : 0;
}

void sim_flights_begin(struct sim_block *unit)
{
    const uint64_t seed = unit->launch->seed;
    unit->flights = (struct sim_flights){.last = &unit->flights.first};
    if (seed) {
        unit->flights.random = seed * 0xd1342543de82ef95u ^ (unit->turn + 1);
        unit->flights.random = draw(&unit->flights) | 1;
    }
}

/* ---- moving bytes ---------------------------------------------------------------------------- */

/* Shared memory starts at a multiple of 8 for every operation, so the offset tells where in the
 * pattern a byte is. */
static void fill(unsigned char *shared, const struct sim_piece *p, uint64_t pattern)
{
    for (uint32_t i = 0; i < p->bytes; i++)
        shared[p->shared + i] = (unsigned char)(pattern >> 8 * ((p->shared + i) & 7));
}

/* Rounds a word as a tensor map of tf32 does on an H100: to 10 bits of mantissa, halves to even;
 * all NaN are one. */
static uint32_t to_tf32(uint32_t u)
{
    const uint32_t size = u & 0x7fffffff, up = size + 0xfff + (size >> 13 & 1);
    return size > 0x7f800000 ? 0x7fffe000 : (u & 0x80000000) | (up & 0xffffe000);
}

static void bring(unsigned char *to, const unsigned char *from, uint32_t bytes, bool tf32)
{
    memcpy(to, from, bytes);
    for (uint32_t i = 0; tf32 && i + 4 <= bytes; i += 4) {
        uint32_t u;
        memcpy(&u, to + i, 4);
        u = to_tf32(u);
        memcpy(to + i, &u, 4);
    }
}

static void write_out(const struct sim_flight *f, const struct sim_piece *p,
                      const unsigned char *from)
{
    const struct sim_launch *l = f->issuer->launch;
    unsigned char *to = p->buffer ? p->buffer->host + p->at : NULL;
    if (!to)
        return;
    if (f->kind == SIM_FLY_REDUCE)
        l->build->fold(to, from, p->bytes, f->type, f->fold, false, !l->many);
    else
        memcpy(to, from, p->bytes);
}

static void land(const struct sim_flight *f, const struct sim_piece *p)
{
    unsigned char *const to = f->to->shared;
    const uint32_t skip = p->shared - f->shared;
    if (f->issuer->check)
        sim_check_flight_part(f, p, !f->seen, true);
    switch (f->kind) {
    case SIM_FLY_LOAD:
        if (p->buffer)
            bring(to + p->shared, p->buffer->host + p->at, p->bytes, f->tf32);
        else
            fill(to, p, f->fill);
        return;
    case SIM_FLY_PEER:
        if (f->fold == SIM_NO_FOLD)
            memmove(to + p->shared, f->issuer->shared + p->from, p->bytes);
        else
            f->issuer->launch->build->fold(to + p->shared, f->issuer->shared + p->from, p->bytes,
                                           f->type, f->fold, true, true);
        return;
    case SIM_FLY_VALUE:
        if (f->fold == SIM_NO_FOLD)
            memcpy(to + p->shared, f->value + skip, p->bytes);
        else
            f->issuer->launch->build->fold(to + p->shared, f->value + skip, p->bytes, f->type,
                                           f->fold, true, true);
        return;
    case SIM_FLY_STORE:
    case SIM_FLY_REDUCE:
        write_out(f, p, f->seen ? f->seen + skip : f->issuer->shared + p->shared);
        return;
    case SIM_FLY_COPIES: return;
    }
}

/* The rest of the piece at hand, which has not landed, at most so many bytes. */
static struct sim_piece rest_of(const struct sim_flight *f, uint64_t most)
{
    struct sim_piece p = f->piece;
    p.shared += f->begun;
    p.at += f->begun;
    p.from += f->begun;
    p.bytes -= f->begun;
    p.bytes = p.bytes < most ? p.bytes : (uint32_t)most;
    return p;
}

/* Sees to it that a piece is at hand; false: there are no more. */
static bool have_piece(struct sim_flight *f)
{
    while (f->begun == f->piece.bytes) {
        f->begun = 0;
        f->piece.bytes = 0;
        if (!f->pieces(f, &f->cursor, &f->piece))
            return false;
    }
    return true;
}

/* Lets so many bytes land, in portions of 16 of each piece, which no element lies across; true: all
 * have landed. */
static bool advance(struct sim_flight *f, uint64_t most)
{
    while (have_piece(f)) {
        if (!most)
            return false;
        const struct sim_piece p = rest_of(f, (most + 15) & ~(uint64_t)15);
        land(f, &p);
        f->begun += p.bytes;
        most -= most < p.bytes ? most : p.bytes;
    }
    return true;
}

/* Reads now what is to be stored. False: no memory. */
static bool read_source(struct sim_flight *f)
{
    if (f->seen || !f->extent)
        return true;
    if (!(f->seen = malloc(f->extent)))
        return false;
    struct sim_flight walk = *f;
    while (have_piece(&walk)) {
        const struct sim_piece p = rest_of(&walk, ALL);
        if (f->issuer->check)
            sim_check_flight_part(f, &p, true, false);
        memcpy(f->seen + (p.shared - f->shared), f->issuer->shared + p.shared, p.bytes);
        walk.begun += p.bytes;
    }
    if (f->issuer->check)
        sim_check_flight_done(f, true, false);
    return true;
}

bool sim_flight_linear(const struct sim_flight *f, uint64_t *cursor, struct sim_piece *p)
{
    if (*cursor || !f->bytes)
        return false;
    *p = (struct sim_piece){
        .shared = f->shared, .bytes = f->bytes, .buffer = f->buffer, .at = f->at, .from = f->from};
    *cursor = 1;
    return true;
}

/* ---- the list -------------------------------------------------------------------------------- */

static void discard(struct sim_flight *f)
{
    free(f->seen);
    free(f);
}

/* Takes the flight that *at points to out of the list. */
static struct sim_flight *take(struct sim_flights *all, struct sim_flight **at)
{
    struct sim_flight *f = *at;
    *at = f->next;
    if (all->last == &f->next)
        all->last = at;
    return f;
}

static struct sim_flight *add(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                              const struct sim_flight *given, const void *tensor, size_t bytes)
{
    struct sim_flights *all = &w->block->peer[0]->flights;
    struct sim_flight *f = malloc(sizeof *f + bytes);
    if (!f)
        return NULL;
    *f = *given;
    f->issuer = f->to = w->block;
    f->warp = w->index;
    f->lane = lane;
    f->op = sim_pc(w, op);
    f->group = w->bulk[lane];
    f->id = ++all->issued;
    f->tensor = bytes ? memcpy(f + 1, tensor, bytes) : NULL;
    f->next = NULL;
    f->timing = SIM_LATE;
    f->cursor = 0;
    f->begun = 0;
    f->piece = (struct sim_piece){0};
    f->seen = NULL;
    if (all->random) {
        const uint64_t r = draw(all) >> 32;
        f->timing = r % 3 == 0 ? SIM_LATE : r % 3 == 1 ? SIM_EARLY : SIM_TORN;
    }
    *all->last = f;
    all->last = &f->next;
    return f;
}

/* ---- completion ------------------------------------------------------------------------------ */

static struct sim_fault fault_of(const struct sim_flight *f, enum sim_fault_kind kind)
{
    return (struct sim_fault){.kind = kind,
                              .op = f->op,
                              .warp = f->warp,
                              .lane = f->lane,
                              .block = f->issuer->index,
                              .turn = f->issuer->turn};
}

/* Lets all of it take effect; it has been taken out of the list. */
static enum sim_stop complete(struct sim_flight *f, struct sim_fault *fault)
{
    struct sim_warp *w = &f->issuer->warp[f->warp];
    enum sim_mbar_error error = SIM_MBAR_FINE;
    if (f->kind == SIM_FLY_COPIES)
        sim_copies_land(w, f->lanes, f->copies);
    else
        advance(f, ALL);
    if (f->issuer->check)
        sim_check_flight_done(f, !f->seen, true);
    if (f->kind == SIM_FLY_COPIES)
        error = sim_mbar_arrive(f->to, f->mbarrier, (uint32_t)__builtin_popcount(f->lanes), NULL);
    else if (sim_flies_in(f->kind))
        error = sim_mbar_complete(f->to, f->mbarrier, f->bytes);
    if (error) {
        *fault = fault_of(f, SIM_F_MBARRIER);
        sim_mbar_blame(fault, f->to, f->mbarrier, error);
        fault->mbar.count = f->kind == SIM_FLY_COPIES ? (unsigned)__builtin_popcount(f->lanes)
                                                      : f->bytes;
    }
    discard(f);
    return error ? SIM_FAULT : SIM_YIELD;
}

/* Calls complete() for a warp that executes op; false: the warp has stopped. */
static bool complete_in(struct sim_warp *w, const struct sim_op *op, struct sim_flight *f)
{
    struct sim_fault fault;
    if (complete(f, &fault) != SIM_FAULT)
        return true;
    sim_fault_at(w, op, fault.lane, fault.kind);
    w->block->fault = fault;
    return false;
}

bool sim_flight_issue(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                      const struct sim_flight *f, const void *tensor, size_t bytes)
{
    struct sim_block *b = w->block;
    struct sim_flights *all = &b->peer[0]->flights;
    const bool spread = f->kind == SIM_FLY_LOAD || f->kind == SIM_FLY_PEER ||
                        f->kind == SIM_FLY_VALUE;
    if (b->launch->check && sim_check_flight_strays(w, op, lane, f))
        return false;
    for (uint32_t left = spread ? f->blocks : 1; left; left &= left - 1) {
        struct sim_flight **at = all->last;
        struct sim_flight *one = add(w, op, lane, f, tensor, bytes);
        if (!one) {
            sim_fault_at(w, op, lane, SIM_F_MEMORY);
            return false;
        }
        if (spread)
            one->to = b->peer[__builtin_ctz(left)];
        if (b->check)
            sim_check_flight_issued(w, op, one);
        if (one->timing == SIM_EARLY && !complete_in(w, op, take(all, at)))
            return false;
    }
    return true;
}

/* Which one to complete: those that end at mbarriers come first, for threads wait for these. */
static struct sim_flight **choose(struct sim_flights *all)
{
    uint32_t n[2] = {0};
    if (!all->random && sim_flies_in(all->first->kind))
        return &all->first;
    for (struct sim_flight *f = all->first; f; f = f->next)
        n[sim_flies_in(f->kind)]++;
    const bool in = n[true];
    uint32_t skip = all->random ? (uint32_t)(draw(all) >> 32) % n[in] : 0;
    struct sim_flight **at = &all->first;
    while (sim_flies_in((*at)->kind) != in || skip--)
        at = &(*at)->next;
    return at;
}

enum sim_stop sim_flight_step(struct sim_block *unit)
{
    struct sim_flights *all = &unit->flights;
    return all->first ? complete(take(all, choose(all)), &unit->fault) : SIM_BLOCKED;
}

enum sim_stop sim_flight_drift(struct sim_block *unit)
{
    struct sim_flights *all = &unit->flights;
    for (struct sim_flight **at = &all->first; *at;) {
        struct sim_flight *f = *at;
        const uint64_t r = f->timing == SIM_TORN ? draw(all) >> 32 : 1;
        const uint32_t most = 16 * (1 + (uint32_t)(r >> 1) % (f->bytes / 32 + 1));
        if (!(r & 1) && (f->kind == SIM_FLY_COPIES || advance(f, most))) {
            if (complete(take(all, at), &unit->fault) == SIM_FAULT)
                return SIM_FAULT;
        } else {
            at = &f->next;
        }
    }
    return SIM_YIELD;
}

enum sim_stop sim_flight_end(struct sim_block *unit)
{
    struct sim_flights *all = &unit->flights;
    while (all->first) {
        struct sim_flight *f = take(all, &all->first);
        if (!sim_flies_in(f->kind)) {
            complete(f, &unit->fault);
            continue;
        }
        if (f->issuer->check)
            sim_check_flight_dropped(f);
        discard(f);
    }
    return SIM_DONE;
}

void sim_flights_free(struct sim_block *unit)
{
    struct sim_flights *all = &unit->flights;
    while (all->first)
        discard(take(all, &all->first));
}

/* ---- groups of stores ------------------------------------------------------------------------ */

const struct sim_op *sim_bulk_commit(struct sim_warp *w, const struct sim_op *op)
{
    FOR_LANES(lane, w->em)
        w->bulk[lane]++;
    if (w->block->check)
        sim_check_bulk_commit(w, op, w->em);
    return op + 1;
}

/* Does one of these lanes wait for it, when all but so many of its groups must be done? */
static bool awaited(const struct sim_warp *w, const struct sim_flight *f, uint64_t open)
{
    return !sim_flies_in(f->kind) && f->issuer == w->block && f->warp == w->index &&
           w->em >> f->lane & 1 && f->group + open < w->bulk[f->lane];
}

const struct sim_op *sim_bulk_wait(struct sim_warp *w, const struct sim_op *op)
{
    struct sim_flights *all = &w->block->peer[0]->flights;
    for (struct sim_flight **at = &all->first; *at;) {
        struct sim_flight *f = *at;
        if (!awaited(w, f, op->imm)) {
            at = &f->next;
        } else if (op->more) {
            if (!read_source(f))
                return sim_fault_at(w, op, f->lane, SIM_F_MEMORY);
            at = &f->next;
        } else if (!complete_in(w, op, take(all, at))) {
            return NULL;
        }
    }
    if (w->block->check)
        sim_check_bulk_waited(w, op, w->em, op->more);
    return op + 1;
}
