/* Races: a cell of shadow for every granule of memory that two threads can reach. */
#include <config.h>

#include "sim/check.h"

#include <stdlib.h>

enum { LARGEST = 4 }; /* log2 of the largest granule, a 16-byte vector */

/* One access of a warp, as the loops over its lanes need it. */
struct view {
    struct sim_warp *w;
    struct check *c;
    const struct check_op *o;
    const struct sim_op *op;
    struct check_shadow *s;
    uint32_t block, record, clock;
    uint32_t floor, base; /* of the order */
    bool far;             /* the access is an agent's */
    bool coarse;          /* nothing but the block's barriers orders what this warp does */
    const unsigned char *host;
    unsigned space;
    uint64_t origin; /* of the offsets, for reports */
};

/* ---- cells -------------------------------------------------------------------------------------------- */

static bool make_cells(struct check *c, struct check_shadow *s, unsigned shift)
{
    s->shift = shift;
    s->cell = calloc((size_t)(s->bytes >> shift) + 1, sizeof *s->cell);
    if (!s->cell)
        c->starved = true;
    return s->cell;
}

static uint32_t new_more(struct check *c, struct check_shadow *s)
{
    if (s->nmore == s->cap_more) {
        const uint32_t cap = s->cap_more ? 2 * s->cap_more : 16;
        struct check_more *grown = realloc(s->more, cap * sizeof *grown);
        if (!grown) {
            c->starved = true;
            return 0;
        }
        s->more = grown;
        s->cap_more = cap;
    }
    s->more[s->nmore] = (struct check_more){.since = s->since};
    return ++s->nmore;
}

/* Smaller granules: each cell becomes several alike. */
static bool refine(struct check *c, struct check_shadow *s, unsigned shift)
{
    struct check_shadow fine = *s;
    if (!make_cells(c, &fine, shift))
        return false;
    const uint64_t n = (s->bytes >> shift) + 1;
    for (uint64_t i = 0; i < n; i++) {
        const struct check_cell *from = &s->cell[i >> (s->shift - shift)];
        fine.cell[i] = *from;
        if (!from->more || i % (1u << (s->shift - shift)) == 0)
            continue;
        const uint32_t k = new_more(c, &fine);
        if (k) {
            fine.more[k - 1] = fine.more[from->more - 1];
            check_known_ref(fine.more[k - 1].gpu);
            check_known_ref(fine.more[k - 1].cta);
        }
        fine.cell[i].more = k;
    }
    free(s->cell);
    *s = fine;
    return true;
}

/* Has the shadow cells as fine as the access needs? */
static bool ready(struct check *c, struct check_shadow *s, unsigned size)
{
    unsigned shift = (unsigned)__builtin_ctz(size);
    shift = shift < LARGEST ? shift : LARGEST;
    if (!s->cell)
        return make_cells(c, s, shift);
    return shift >= s->shift || refine(c, s, shift);
}

static struct check_more *more_of(struct check_shadow *s, const struct check_cell *cell)
{
    if (!cell->more)
        return NULL;
    struct check_more *m = &s->more[cell->more - 1];
    if (m->since != s->since) {
        check_unpublish(m);
        *m = (struct check_more){.since = s->since};
    }
    return m;
}

struct check_more *check_more_at(struct check_shadow *s, uint64_t offset)
{
    return s->cell ? more_of(s, &s->cell[offset >> s->shift]) : NULL;
}

void check_wipe(struct check_shadow *s, uint64_t offset, uint64_t bytes)
{
    for (uint64_t i = offset >> s->shift; s->cell && i << s->shift < offset + bytes; i++) {
        if (s->cell[i].more)
            check_unpublish(&s->more[s->cell[i].more - 1]);
        s->cell[i] = (struct check_cell){0};
    }
}

void check_shadow_free(struct check_shadow *s)
{
    for (uint32_t i = 0; i < s->nmore; i++)
        check_unpublish(&s->more[i]);
    free(s->cell);
    free(s->more);
    free(s->span);
    free(s->defined);
    *s = (struct check_shadow){0};
}

/* ---- one lane and one cell ------------------------------------------------------------------------------ */

static inline struct check_slot me(const struct view *v, uint32_t lane)
{
    const uint32_t thread = v->w->index * SIM_LANES + lane;
    return (struct check_slot){v->block, v->clock, thread << CHECK_OP_BITS | v->record};
}

/* The cheap part of check_ordered(). */
static inline bool settled(const struct view *v, const struct check_slot *s,
                           const struct check_slot *now)
{
    return s->clock <= v->floor ||
           (s->block == v->block && check_is_thread(s) &&
            (s->clock <= v->base ||
             (!((s->who ^ now->who) >> CHECK_OP_BITS) && s->clock != CHECK_PENDING)));
}

static inline bool ordered(const struct view *v, uint32_t lane, const struct check_slot *s,
                           const struct check_slot *now)
{
    return settled(v, s, now) || (!v->coarse && check_ordered(v->w, lane, s));
}

/* 0 the same thread, 1 the same warp, 2 the same block, 3 others. */
static inline unsigned apart(const struct check_slot *a, const struct check_slot *b)
{
    const uint32_t d = a->who ^ b->who;
    return a->block != b->block        ? 3
           : d >> (CHECK_OP_BITS + 5)  ? 2
           : (d >> CHECK_OP_BITS) != 0 ? 1
                                       : 0;
}

/* What two accesses that are not ordered are to the checks that were asked for; false: nothing. */
static bool judge(const struct view *v, uint32_t lane, const struct check_slot *s,
                  struct check_finding *f)
{
    const unsigned bits = v->c->bits;
    if (s->clock == CHECK_PENDING) {
        const enum check_flight flight = check_flight_of(v->w, lane, s);
        if (bits & DEVICE_CHECK_ASYNC) {
            f->kind = CHECK_F_FLIGHT;
            f->mask = flight;
        } else if (flight != CHECK_OTHERS) {
            return false; /* no race: it is one thread */
        }
    } else if (bits & DEVICE_CHECK_ASYNC && v->o->kind == CHECK_LOAD &&
               v->c->op[check_op_of(s)].kind == CHECK_COPY) {
        f->kind = CHECK_F_LANDED;
    }
    return f->kind == CHECK_F_FLIGHT || f->kind == CHECK_F_LANDED || bits & DEVICE_CHECK_RACE;
}

static struct check_finding finding(const struct view *v, uint32_t lane, uint64_t at,
                                    const struct check_slot *s, enum check_finding_kind kind)
{
    return (struct check_finding){
        .kind = kind,
        .at = {v->record, v->w->index * SIM_LANES + lane, v->w->block->index},
        .other = check_side_of(v->w->block, s),
        .count = 1,
        .address = v->origin + at,
        .space = (uint8_t)v->space,
        .bytes = v->far ? (uint8_t)(1u << v->s->shift) : v->op->size};
}

/* What would have ordered an agent's access, s, before others. */
static enum check_wait wait_for(const struct view *v, const struct check_slot *s)
{
    const uint32_t agent = check_thread_of(s);
    return agent >= CHECK_A_MBAR     ? CHECK_W_PHASE
           : agent >= CHECK_A_WGMMA  ? CHECK_W_WGMMA
           : agent >= CHECK_A_WRITES ? CHECK_W_GROUP
           : agent >= CHECK_A_READS  ? CHECK_W_READ
           : check_narrow(v->w)      ? CHECK_W_SCOPE
                                     : CHECK_W_ORDER;
}

static void conflict(const struct view *v, uint32_t lane, uint64_t at, const struct check_slot *s,
                     enum check_finding_kind kind)
{
    struct check_finding f = finding(v, lane, at, s, kind);
    if (v->far || !check_is_thread(s)) {
        f.kind = CHECK_F_AGENT;
        f.mask = wait_for(v, s);
    } else if (!judge(v, lane, s, &f)) {
        return;
    }
    check_find(v->c, &f);
}

/* Two strong accesses do not race, but for scopes that leave the other thread out. */
static void against_strong(const struct view *v, uint32_t lane, uint64_t at,
                           const struct check_slot *s)
{
    const struct check_op *other = &v->c->op[check_op_of(s)];
    if (!v->o->strong || !other->strong)
        conflict(v, lane, at, s, CHECK_F_RACE);
    else if (s->block != v->block && (v->o->scope == CHECK_CTA || other->scope == CHECK_CTA))
        conflict(v, lane, at, s, CHECK_F_SCOPE);
}

/* What an access leaves in two slots: the ones as far apart as any of those that are not ordered before later ones. For
 * threads ordered in nested groups (block, warp, thread) two stand for all: whoever is unordered with any of them
 * is unordered with one of these. */
static inline void remember(const struct view *v, uint32_t lane, struct check_slot slot[2],
                            const struct check_slot *now)
{
    if (settled(v, &slot[0], now))
        slot[0] = *now;
    else if (settled(v, &slot[1], now))
        slot[1] = *now;
    else if (!v->coarse && check_ordered(v->w, lane, &slot[0]))
        slot[0] = *now;
    else if ((!v->coarse && check_ordered(v->w, lane, &slot[1])) ||
             apart(&slot[0], now) > apart(&slot[0], &slot[1]))
        slot[1] = *now;
}

/* The k-th byte of what a store's lane writes. */
static unsigned char stored(const struct view *v, uint32_t lane, uint32_t k)
{
    const struct sim_op *op = v->op;
    const uint32_t slot[4] = {op->d, op->b, op->c, op->e};
    const uint32_t each = v->o->element;
    const unsigned char *from = v->w->r + slot[k / each];
    return from[lane * (v->o->wide ? 8 : 4) + k % each];
}

/* Would nobody see which of two unordered writes came last? Either memory holds the value already, or the other is of
 * another lane of this very instruction. */
static bool same_value(const struct view *v, uint32_t lane, uint64_t at, const struct check_slot *s)
{
    const uint32_t other = check_thread_of(s) % SIM_LANES;
    const bool together = s->block == v->block && s->clock == v->clock &&
                          check_op_of(s) == v->record &&
                          check_thread_of(s) / SIM_LANES == v->w->index;
    const uint64_t start = at & ~(uint64_t)(v->op->size - 1);
    bool held = true, shared = together;
    if (v->o->matrix || s->clock == CHECK_PENDING || !check_is_thread(s))
        return false;
    for (uint32_t k = 0; k < v->op->size; k++) {
        const unsigned char mine = stored(v, lane, k);
        held = held && v->host[start + k] == mine;
        shared = shared && stored(v, other, k) == mine;
    }
    return held || shared;
}

/* A write comes after what agents have read; done: and takes its place. */
static void after_agents(const struct view *v, uint32_t lane, uint64_t at, struct check_more *m,
                         bool done)
{
    const struct check_slot now = me(v, lane);
    for (int i = 0; i < CHECK_FAR; i++) {
        if (m->far[i].clock && !ordered(v, lane, &m->far[i], &now))
            conflict(v, lane, at, &m->far[i], CHECK_F_RACE);
        if (done)
            m->far[i].clock = 0;
    }
}

static void read_cell(const struct view *v, uint32_t lane, uint64_t at, struct check_cell *cell)
{
    const struct check_slot now = me(v, lane);
    if (!ordered(v, lane, &cell->write, &now))
        conflict(v, lane, at, &cell->write, CHECK_F_RACE);
    if (cell->more) {
        struct check_more *m = more_of(v->s, cell);
        for (int i = 0; i < 2; i++)
            if (!ordered(v, lane, &m->strong[i], &now))
                against_strong(v, lane, at, &m->strong[i]);
    }
    remember(v, lane, cell->read, &now);
}

static void write_cell(const struct view *v, uint32_t lane, uint64_t at, struct check_cell *cell)
{
    const struct check_slot now = me(v, lane);
    if (!ordered(v, lane, &cell->write, &now) && !same_value(v, lane, at, &cell->write))
        conflict(v, lane, at, &cell->write, CHECK_F_RACE);
    for (int i = 0; i < 2; i++)
        if (!ordered(v, lane, &cell->read[i], &now))
            conflict(v, lane, at, &cell->read[i], CHECK_F_RACE);
    if (cell->more) {
        struct check_more *m = more_of(v->s, cell);
        for (int i = 0; i < 2; i++) {
            if (!ordered(v, lane, &m->strong[i], &now))
                conflict(v, lane, at, &m->strong[i], CHECK_F_RACE);
            m->strong[i].clock = 0;
        }
        after_agents(v, lane, at, m, true);
        check_unpublish(m);
    }
    cell->write = now;
    cell->read[0].clock = cell->read[1].clock = 0;
}

/* Atomics and strong stores. */
static void strong_cell(const struct view *v, uint32_t lane, uint64_t at, struct check_cell *cell)
{
    const struct check_slot now = me(v, lane);
    if (!ordered(v, lane, &cell->write, &now))
        conflict(v, lane, at, &cell->write, CHECK_F_RACE);
    for (int i = 0; i < 2; i++)
        if (!ordered(v, lane, &cell->read[i], &now))
            against_strong(v, lane, at, &cell->read[i]);
    if (!cell->more)
        cell->more = new_more(v->c, v->s);
    struct check_more *m = more_of(v->s, cell);
    if (!m)
        return;
    for (int i = 0; i < 2; i++)
        if (!ordered(v, lane, &m->strong[i], &now))
            against_strong(v, lane, at, &m->strong[i]);
    after_agents(v, lane, at, m, false);
    remember(v, lane, m->strong, &now);
}

/* A copy that is issued; it writes from now on. */
static void copy_cell(const struct view *v, uint32_t lane, uint64_t at, struct check_cell *cell)
{
    const struct check_slot now = me(v, lane);
    if (!ordered(v, lane, &cell->write, &now))
        conflict(v, lane, at, &cell->write, CHECK_F_RACE);
    for (int i = 0; i < 2; i++)
        if (!ordered(v, lane, &cell->read[i], &now))
            conflict(v, lane, at, &cell->read[i], CHECK_F_RACE);
    if (cell->more) {
        struct check_more *m = more_of(v->s, cell);
        for (int i = 0; i < 2; i++)
            if (!ordered(v, lane, &m->strong[i], &now))
                conflict(v, lane, at, &m->strong[i], CHECK_F_RACE);
        after_agents(v, lane, at, m, true);
    }
    cell->write = now;
    cell->write.clock = CHECK_PENDING;
    cell->read[0].clock = cell->read[1].clock = 0;
}

/* ---- a warp -------------------------------------------------------------------------------------------- */

static struct view view_of(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                           struct check_shadow *s)
{
    const struct check_block *cb = w->block->check;
    const struct check_warp *cw = &cb->warp[w->index];
    struct check *c = w->block->launch->check;
    return (struct view){.w = w,
                         .c = c,
                         .o = o,
                         .op = op,
                         .s = s,
                         .block = (uint32_t)w->block->index,
                         .record = (uint32_t)(op - w->code),
                         .clock = c->clock,
                         .floor = s->since, /* not before the launch */
                         .base = cb->base,
                         .coarse = !c->lists && !cb->warps && !cw->lanes && cw->base <= cb->base};
}

/* Loads: lanes that read one cell beyond the second add nothing, for all are of one warp. */
static void read_all(const struct view *v, uint32_t lanes, const uint64_t *at)
{
    struct check_cell *const cell = v->s->cell, *last = NULL;
    const unsigned shift = v->s->shift;
    const uint64_t each = (uint64_t)v->op->size >> shift;
    unsigned same = 0;
    for (uint32_t left = lanes; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        struct check_cell *first = &cell[at[lane] >> shift];
        same = first == last ? same + 1 : 0;
        last = first;
        if (same > 1)
            continue;
        for (uint64_t k = 0; k < each; k++)
            read_cell(v, lane, at[lane] + (k << shift), &first[k]);
    }
}

void check_races(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                 const struct check_memory *m, uint32_t lanes, const uint64_t *at)
{
    struct check_shadow *s = m->shadow;
    struct check *c = w->block->launch->check;
    if (!ready(c, s, op->size))
        return;
    struct view v = view_of(w, o, op, s);
    v.host = m->host;
    v.space = m->space;
    v.origin = m->origin;
    if (!o->writes) {
        read_all(&v, lanes, at);
        return;
    }
    if (s->span)
        for (uint32_t left = lanes; left; left &= left - 1)
            check_span(s, at[__builtin_ctz(left)], op->size, 0);
    const uint64_t each = (uint64_t)op->size >> s->shift;
    for (uint32_t left = lanes; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        struct check_cell *first = &s->cell[at[lane] >> s->shift];
        for (uint64_t k = 0; k < each; k++) {
            if (o->strong)
                strong_cell(&v, lane, at[lane] + (k << s->shift), &first[k]);
            else
                write_cell(&v, lane, at[lane] + (k << s->shift), &first[k]);
        }
    }
}

/* ---- asynchronous copies --------------------------------------------------------------------------------- */

void check_copy_begins(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                       const struct check_memory *m, uint32_t lanes, const uint64_t *to)
{
    struct check_shadow *s = m->shadow;
    if (!ready(w->block->launch->check, s, op->size))
        return;
    struct view v = view_of(w, o, op, s);
    v.host = m->host;
    v.space = m->space;
    v.origin = m->origin;
    for (uint32_t left = lanes; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        struct check_cell *first = &s->cell[to[lane] >> s->shift];
        check_span(s, to[lane], op->size, 0);
        for (uint64_t k = 0; k < (uint64_t)op->size >> s->shift; k++)
            copy_cell(&v, lane, to[lane] + (k << s->shift), &first[k]);
    }
}

void check_copy_reads(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                      const struct check_memory *m, uint32_t lane, uint64_t from, uint32_t bytes)
{
    struct check_shadow *s = m->shadow;
    const uint32_t least = bytes & -bytes; /* from is aligned to more */
    if (!ready(w->block->launch->check, s, least))
        return;
    struct view v = view_of(w, o, op, s);
    v.host = m->host;
    v.space = m->space;
    v.origin = m->origin;
    for (uint64_t at = from; at < from + bytes; at += (uint64_t)1 << s->shift)
        read_cell(&v, lane, at, &s->cell[at >> s->shift]);
}

void check_copy_ends(struct check *c, struct check_shadow *s, struct check_side who,
                     uint64_t offset, uint32_t bytes)
{
    for (uint64_t at = offset; s->cell && at < offset + bytes; at += (uint64_t)1 << s->shift) {
        struct check_slot *write = &s->cell[at >> s->shift].write;
        if (write->clock == CHECK_PENDING && write->who == (who.thread << CHECK_OP_BITS | who.op))
            write->clock = c->clock;
    }
}

const struct check_slot *check_last_write(const struct check_shadow *s, uint64_t offset)
{
    const struct check_slot *w = s->cell ? &s->cell[offset >> s->shift].write : NULL;
    return w && w->clock > s->since ? w : NULL;
}

/* ---- agents ----------------------------------------------------------------------------------------------- */

struct check_side check_side_of(const struct sim_block *near, const struct check_slot *s)
{
    const uint32_t agent = check_thread_of(s);
    struct check_side side = {check_op_of(s), agent % SIM_MAX_THREADS, s->block};
    if (agent >= CHECK_A_MBAR) {
        side.thread = 0;
        for (uint32_t i = 0; i < near->npeer; i++) {
            const struct sim_block *b = near->peer[i];
            if ((uint32_t)b->index != s->block || agent - CHECK_A_MBAR >= b->check->nmbar)
                continue;
            side.thread = b->check->mbar[agent - CHECK_A_MBAR].thread;
            side.block = b->check->mbar[agent - CHECK_A_MBAR].block;
        }
    } else if (agent >= CHECK_A_WGMMA) {
        side.thread = (agent - CHECK_A_WGMMA) * 4 * SIM_LANES;
    }
    return side;
}

/* Does the agent's operation come after an access? Of what a warp issues together it is enough that one lane knows. */
static bool known(const struct view *v, struct check_far *f, const struct check_slot *s)
{
    const struct check_slot now = me(v, f->lane);
    if (s->clock == f->proved.clock && s->who == f->proved.who && s->block == f->proved.block)
        return true;
    if (!ordered(v, f->lane, s, &now) && !(f->warp && check_ordered_any(v->w, s)))
        return false;
    f->proved = *s;
    return true;
}

/* It comes after an access, which was a write. */
static void reached(const struct view *v, struct check_far *f, uint64_t at,
                    const struct check_slot *s)
{
    if (f->generic || s->clock <= v->floor || !check_is_thread(s) ||
        check_proxy_reached(v->w, f->lane, s, v->space))
        return;
    const struct check_finding found = finding(v, f->lane, at, s, CHECK_F_PROXY);
    check_find(v->c, &found);
}

static void after_write(const struct view *v, struct check_far *f, uint64_t at,
                        const struct check_slot *s)
{
    if (!s->clock)
        return;
    if (!known(v, f, s))
        conflict(v, f->lane, at, s, CHECK_F_RACE);
    else
        reached(v, f, at, s);
}

/* What an agent has read, to be found by later writes. */
static void far_read(const struct view *v, struct check_cell *cell, const struct check_slot *slot)
{
    if (!cell->more)
        cell->more = new_more(v->c, v->s);
    struct check_more *m = more_of(v->s, cell);
    uint32_t to = CHECK_FAR;
    for (uint32_t i = CHECK_FAR; m && i-- > 0;)
        if (m->far[i].clock <= v->floor || (m->far[i].block == slot->block &&
                                            check_thread_of(&m->far[i]) == check_thread_of(slot)))
            to = i;
    if (to < CHECK_FAR)
        m->far[to] = *slot;
}

static void far_cell(const struct view *v, struct check_far *f, uint64_t at,
                     struct check_cell *cell, enum check_far_access what)
{
    struct check_more *m = more_of(v->s, cell);
    after_write(v, f, at, &cell->write);
    for (int i = 0; m && what != CHECK_FAR_FOLD && i < 2; i++)
        after_write(v, f, at, &m->strong[i]);
    if (what == CHECK_FAR_READ) {
        if (v->space == SIM_IN_SHARED)
            far_read(v, cell, &f->slot);
        else
            remember(v, f->lane, cell->read, &f->slot);
        return;
    }
    for (int i = 0; i < 2; i++)
        if (cell->read[i].clock && !known(v, f, &cell->read[i]) &&
            !check_heard(v->w, f->lane, &cell->read[i]))
            conflict(v, f->lane, at, &cell->read[i], CHECK_F_RACE);
    for (int i = 0; m && i < CHECK_FAR; i++)
        if (m->far[i].clock && !known(v, f, &m->far[i]))
            conflict(v, f->lane, at, &m->far[i], CHECK_F_RACE);
    if (what == CHECK_FAR_FOLD) {
        if (!cell->more)
            cell->more = new_more(v->c, v->s);
        if ((m = more_of(v->s, cell)))
            remember(v, f->lane, m->strong, &f->slot);
        return;
    }
    if (m) {
        check_unpublish(m);
        *m = (struct check_more){.since = v->s->since};
    }
    cell->write = f->slot;
    cell->read[0].clock = cell->read[1].clock = 0;
}

void check_far(struct check_far *f, const struct check_memory *m, uint64_t offset, uint64_t bytes,
               enum check_far_access what)
{
    struct check_shadow *s = m->shadow;
    struct sim_warp *w = f->w;
    struct check *c = w->block->launch->check;
    const uint64_t least = (offset | bytes | 1u << LARGEST) & -(offset | bytes | 1u << LARGEST);
    if (offset > s->bytes || bytes > s->bytes - offset || !ready(c, s, (unsigned)least))
        return;
    struct view v = view_of(w, &c->op[check_op_of(&f->slot)], f->op, s);
    v.host = m->host;
    v.space = m->space;
    v.origin = m->origin;
    v.far = true;
    for (uint64_t at = offset; at < offset + bytes; at += (uint64_t)1 << s->shift)
        far_cell(&v, f, at, &s->cell[at >> s->shift], what);
}
