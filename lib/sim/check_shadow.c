/* Races: a cell of shadow for every granule of memory that two threads can reach. */
#include <config.h>

#include "base/memory.h"
#include "sim/check.h"

#include <stdlib.h>

enum {
    LARGEST = 4, /* log2 of the largest granule, a 16-byte vector */
    FIELDS = 10, /* words of a cell */
    LARGE = 1 << 26
};

/* One access of a warp, as the loops over its lanes need it. */
struct view {
    struct sim_warp *w;
    struct check *c;
    const struct check_op *o;
    const struct sim_op *op;
    struct check_shadow *s;
    uint32_t record;
    struct check_when when;
    bool far; /* the access is an agent's */
    const unsigned char *host;
    unsigned space;
    uint64_t origin; /* of the offsets, for reports */
};

/* ---- cells ----------------------------------------------------------------------------------- */

static bool make_cells(struct check *c, struct check_shadow *s, unsigned shift)
{
    const size_t n = (size_t)(s->bytes >> shift) + 1;
    const size_t stride = (n + 15) / 16 * 16 +
                          16; /* words: the fields of a cell in different cache sets */
    const size_t bytes = FIELDS * stride * sizeof(uint32_t);
    /* the system would promise it, and end the process when it is touched */
    uint32_t *field = bytes < LARGE || bytes <= memory_left().bytes ? calloc(1, bytes) : NULL;
    s->shift = shift;
    s->cell = (struct check_cells){0};
    if (!field) {
        c->starved = true;
        return false;
    }
    struct check_slots *const slots[] = {&s->cell.write, &s->cell.read[0], &s->cell.read[1]};
    for (int i = 0; i < 3; i++, field += 3 * stride)
        *slots[i] = (struct check_slots){field, field + stride, field + 2 * stride};
    s->cell.more = field;
    return true;
}

static void free_cells(struct check_cells *cell)
{
    free(cell->write.block); /* the first field */
}

static void copy_cell_to(const struct check_cells *from, uint64_t i, const struct check_cells *to,
                         uint64_t k)
{
    for (int j = 0; j < 2; j++) {
        const struct check_slot read = check_get(&from->read[j], i);
        check_put(&to->read[j], k, &read);
    }
    const struct check_slot write = check_get(&from->write, i);
    check_put(&to->write, k, &write);
    to->more[k] = from->more[i];
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
        copy_cell_to(&s->cell, i >> (s->shift - shift), &fine.cell, i);
        const uint32_t from = fine.cell.more[i];
        if (!from || i % (1u << (s->shift - shift)) == 0)
            continue;
        const uint32_t k = new_more(c, &fine);
        if (k) {
            fine.more[k - 1] = fine.more[from - 1];
            check_known_ref(fine.more[k - 1].gpu);
            check_known_ref(fine.more[k - 1].cta);
        }
        fine.cell.more[i] = k;
    }
    free_cells(&s->cell);
    *s = fine;
    return true;
}

/* Has the shadow cells as fine as the access needs? */
static bool ready(struct check *c, struct check_shadow *s, unsigned size)
{
    unsigned shift = (unsigned)__builtin_ctz(size);
    shift = shift < LARGEST ? shift : LARGEST;
    if (!s->cell.more)
        return make_cells(c, s, shift);
    return shift >= s->shift || refine(c, s, shift);
}

static struct check_more *more_of(struct check_shadow *s, uint64_t cell)
{
    if (!s->cell.more[cell])
        return NULL;
    struct check_more *m = &s->more[s->cell.more[cell] - 1];
    if (m->since != s->since) {
        check_unpublish(m);
        *m = (struct check_more){.since = s->since};
    }
    return m;
}

/* ..., which is made if there is none; NULL: no memory. */
static struct check_more *need_more(struct check *c, struct check_shadow *s, uint64_t cell)
{
    if (!s->cell.more[cell])
        s->cell.more[cell] = new_more(c, s);
    return more_of(s, cell);
}

struct check_more *check_more_at(struct check_shadow *s, uint64_t offset)
{
    return s->cell.more ? more_of(s, offset >> s->shift) : NULL;
}

void check_wipe(struct check_shadow *s, uint64_t offset, uint64_t bytes)
{
    const struct check_cells *cell = &s->cell;
    for (uint64_t i = offset >> s->shift; cell->more && i << s->shift < offset + bytes; i++) {
        if (cell->more[i])
            check_unpublish(&s->more[cell->more[i] - 1]);
        cell->write.clock[i] = cell->read[0].clock[i] = cell->read[1].clock[i] = cell->more[i] = 0;
    }
}

void check_shadow_free(struct check_shadow *s)
{
    for (uint32_t i = 0; i < s->nmore; i++)
        check_unpublish(&s->more[i]);
    free_cells(&s->cell);
    free(s->more);
    free(s->span);
    free(s->defined);
    *s = (struct check_shadow){0};
}

/* ---- one lane and one cell ------------------------------------------------------------------- */

static inline struct check_slot me(const struct view *v, uint32_t lane)
{
    const uint32_t thread = v->w->index * SIM_LANES + lane;
    return (struct check_slot){v->when.block, v->when.clock, thread << CHECK_OP_BITS | v->record};
}

static inline bool ordered(const struct view *v, uint32_t lane, const struct check_slot *s,
                           const struct check_slot *now)
{
    return s->clock <= v->when.floor || check_before(&v->when, s, now->who) ||
           (!v->when.coarse && check_ordered(v->w, lane, s));
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

/* (rare, and kept out of the loops over lanes) */
__attribute__((cold, noinline)) static void conflict(const struct view *v, uint32_t lane,
                                                     uint64_t at, const struct check_slot *s,
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
    else if (s->block != v->when.block && (v->o->scope == CHECK_CTA || other->scope == CHECK_CTA))
        conflict(v, lane, at, s, CHECK_F_SCOPE);
}

/* Which of two slots an access takes, 2: neither. */
static inline unsigned place(const struct view *v, uint32_t lane, const struct check_slot slot[2],
                             const struct check_slot *now)
{
    const bool settled[2] = {check_settled(&v->when, &slot[0], now->who),
                             check_settled(&v->when, &slot[1], now->who)};
    if (settled[0] | settled[1])
        return !settled[0];
    const uint32_t mine = me(v, lane).who;
    bool before[2] = {check_before(&v->when, &slot[0], mine),
                      check_before(&v->when, &slot[1], mine)};
    for (int i = 0; i < 2 && !v->when.coarse; i++)
        before[i] = before[i] || check_ordered(v->w, lane, &slot[i]);
    return check_place(slot, now, settled, before);
}

static inline void remember_read(const struct view *v, uint32_t lane, uint64_t cell,
                                 const struct check_slot *now)
{
    struct check_slots *const read = v->s->cell.read;
    const struct check_slot slot[2] = {check_get(&read[0], cell), check_get(&read[1], cell)};
    const unsigned to = place(v, lane, slot, now);
    check_put(&read[to != 0], cell, to == 2 ? &slot[1] : now);
}

static inline void remember_strong(const struct view *v, uint32_t lane, struct check_more *m,
                                   const struct check_slot *now)
{
    const unsigned to = place(v, lane, m->strong, now);
    if (to < 2)
        m->strong[to] = *now;
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

/* Would nobody see which of two unordered writes came last? Either memory holds the value already,
 * or the other is of another lane of this very instruction. */
__attribute__((cold, noinline)) static bool same_value(const struct view *v, uint32_t lane,
                                                       uint64_t at, const struct check_slot *s)
{
    const uint32_t other = check_thread_of(s) % SIM_LANES;
    const bool together = s->block == v->when.block && s->clock == v->when.clock &&
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
    for (int i = 0; v->s->far && i < CHECK_FAR; i++) {
        if (m->far[i].clock && !ordered(v, lane, &m->far[i], &now))
            conflict(v, lane, at, &m->far[i], CHECK_F_RACE);
        if (done)
            m->far[i].clock = 0;
    }
}

/* A write to a cell comes after its last one, s, */
static inline void after_write(const struct view *v, uint32_t lane, uint64_t at,
                               const struct check_slot *s, const struct check_slot *now, bool alike)
{
    if (!ordered(v, lane, s, now) && !(alike && same_value(v, lane, at, s)))
        conflict(v, lane, at, s, CHECK_F_RACE);
}

/* ... and what was read. */
static inline void after_reads(const struct view *v, uint32_t lane, uint64_t at, uint64_t cell,
                               const struct check_slot *now)
{
    for (int i = 0; i < 2; i++) {
        const struct check_slot s = check_get(&v->s->cell.read[i], cell);
        if (ordered(v, lane, &s, now))
            continue;
        if (v->o->strong)
            against_strong(v, lane, at, &s);
        else
            conflict(v, lane, at, &s, CHECK_F_RACE);
    }
}

static inline void read_cell(const struct view *v, uint32_t lane, uint64_t at)
{
    const uint64_t cell = at >> v->s->shift;
    const struct check_slot now = me(v, lane), last = check_get(&v->s->cell.write, cell);
    after_write(v, lane, at, &last, &now, false);
    if (v->s->nmore && v->s->cell.more[cell]) {
        struct check_more *m = more_of(v->s, cell);
        for (int i = 0; i < 2; i++)
            if (!ordered(v, lane, &m->strong[i], &now))
                against_strong(v, lane, at, &m->strong[i]);
    }
    remember_read(v, lane, cell, &now);
}

/* A weak write, or one that begins with clock CHECK_PENDING: a copy that is issued. */
static inline void write_cell(const struct view *v, uint32_t lane, uint64_t at, uint32_t stamp)
{
    const uint64_t cell = at >> v->s->shift;
    const struct check_cells *all = &v->s->cell;
    const bool copy = stamp == CHECK_PENDING;
    struct check_slot now = me(v, lane);
    const struct check_slot last = check_get(&all->write, cell);
    after_write(v, lane, at, &last, &now, !copy);
    after_reads(v, lane, at, cell, &now);
    if (v->s->nmore && all->more[cell]) {
        struct check_more *m = more_of(v->s, cell);
        for (int i = 0; i < 2; i++) {
            if (!ordered(v, lane, &m->strong[i], &now))
                conflict(v, lane, at, &m->strong[i], CHECK_F_RACE);
            if (!copy)
                m->strong[i].clock = 0;
        }
        after_agents(v, lane, at, m, true);
        if (!copy)
            check_unpublish(m);
    }
    now.clock = stamp;
    check_put(&all->write, cell, &now);
    all->read[0].clock[cell] = all->read[1].clock[cell] = 0;
}

/* Atomics and strong stores. */
static inline void strong_cell(const struct view *v, uint32_t lane, uint64_t at)
{
    const uint64_t cell = at >> v->s->shift;
    const struct check_slot now = me(v, lane), last = check_get(&v->s->cell.write, cell);
    after_write(v, lane, at, &last, &now, false);
    after_reads(v, lane, at, cell, &now);
    struct check_more *m = need_more(v->c, v->s, cell);
    if (!m)
        return;
    for (int i = 0; i < 2; i++) {
        const bool peer = m->strong[i].block == now.block && check_is_thread(&m->strong[i]);
        if (!peer &&
            !ordered(v, lane, &m->strong[i], &now)) /* any scope holds the block's threads */
            against_strong(v, lane, at, &m->strong[i]);
    }
    after_agents(v, lane, at, m, false);
    remember_strong(v, lane, m, &now);
}

/* ---- a warp ---------------------------------------------------------------------------------- */

static struct view view_of(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                           const struct check_memory *m)
{
    const struct check_block *cb = w->block->check;
    const struct check_warp *cw = &cb->warp[w->index];
    struct check *c = w->block->launch->check;
    return (struct view){.w = w,
                         .c = c,
                         .o = o,
                         .op = op,
                         .s = m->shadow,
                         .record = (uint32_t)(op - w->code),
                         .when = {.block = (uint32_t)w->block->index,
                                  .clock = c->clock,
                                  .floor = m->shadow->since, /* not before the launch */
                                  .base = cb->base,
                                  .warp = cw->base,
                                  .coarse = !c->lists && !cb->warps && !cw->lanes},
                         .host = m->host,
                         .space = m->space,
                         .origin = m->origin};
}

static uint32_t run(const struct view *v, const struct check_access *x, uint32_t stamp)
{
    const struct sim_build *b = v->w->block->launch->build;
    const unsigned shift = v->s->shift;
    const struct check_run r = {.when = &v->when,
                                .cell = &v->s->cell,
                                .at = x->at,
                                .origin = x->origin,
                                .lanes = x->lanes,
                                .who = me(v, 0).who,
                                .shift = shift,
                                .each = (unsigned)__builtin_ctz(v->op->size) - shift,
                                .row = x->row,
                                .one = x->one,
                                .more = v->s->nmore,
                                .stamp = stamp};
    return !v->o->writes ? b->check_read(&r) : v->o->strong ? x->lanes : b->check_write(&r);
}

static void access(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                   const struct check_access *x, uint32_t stamp)
{
    struct check_shadow *s = x->m->shadow;
    if (!x->lanes || !ready(w->block->launch->check, s, op->size))
        return;
    const struct view v = view_of(w, o, op, x->m);
    const uint64_t step = (uint64_t)1 << s->shift;
    if (o->writes && s->span)
        FOR_LANES(lane, x->lanes)
            check_span(s, check_offset(x, lane), op->size, 0);
    FOR_LANES(lane, run(&v, x, stamp)) {
        const uint64_t from = check_offset(x, lane);
        for (uint64_t at = from; at < from + op->size; at += step) {
            if (!o->writes)
                read_cell(&v, lane, at);
            else if (o->strong)
                strong_cell(&v, lane, at);
            else
                write_cell(&v, lane, at, stamp);
        }
    }
}

void check_races(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                 const struct check_access *x)
{
    access(w, o, op, x, w->block->launch->check->clock);
}

/* ---- asynchronous copies --------------------------------------------------------------------- */

void check_copy_begins(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                       const struct check_access *x)
{
    access(w, o, op, x, CHECK_PENDING);
}

void check_copy_reads(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                      const struct check_memory *m, uint32_t lane, uint64_t from, uint32_t bytes)
{
    const uint32_t least = bytes & -bytes; /* from is aligned to more */
    if (!ready(w->block->launch->check, m->shadow, least))
        return;
    const struct view v = view_of(w, o, op, m);
    for (uint64_t at = from; at < from + bytes; at += (uint64_t)1 << m->shadow->shift)
        read_cell(&v, lane, at);
}

void check_copy_ends(struct check *c, struct check_shadow *s, struct check_side who,
                     uint64_t offset, uint32_t bytes)
{
    const struct check_slots *write = &s->cell.write;
    const uint32_t copy = who.thread << CHECK_OP_BITS | who.op;
    if (!s->cell.more)
        return;
    for (uint64_t i = offset >> s->shift; i << s->shift < offset + bytes; i++)
        if (write->clock[i] == CHECK_PENDING && write->who[i] == copy)
            write->clock[i] = c->clock;
}

bool check_last_write(const struct check_shadow *s, uint64_t offset, struct check_slot *last)
{
    if (!s->cell.more)
        return false;
    *last = check_get(&s->cell.write, offset >> s->shift);
    return last->clock > s->since;
}

/* ---- agents ---------------------------------------------------------------------------------- */

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

/* Does the agent's operation come after an access? Of what a warp issues together it is enough that
 * one lane knows. */
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
    if (f->generic || s->clock <= v->when.floor || !check_is_thread(s) ||
        check_proxy_reached(v->w, f->lane, s, v->space))
        return;
    const struct check_finding found = finding(v, f->lane, at, s, CHECK_F_PROXY);
    check_find(v->c, &found);
}

static void far_after_write(const struct view *v, struct check_far *f, uint64_t at,
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
static void far_read(const struct view *v, uint64_t cell, const struct check_slot *slot)
{
    struct check_more *m = need_more(v->c, v->s, cell);
    uint32_t to = CHECK_FAR;
    v->s->far = true;
    for (uint32_t i = CHECK_FAR; m && i-- > 0;)
        if (m->far[i].clock <= v->when.floor ||
            (m->far[i].block == slot->block &&
             check_thread_of(&m->far[i]) == check_thread_of(slot)))
            to = i;
    if (to < CHECK_FAR)
        m->far[to] = *slot;
}

static void far_cell(const struct view *v, struct check_far *f, uint64_t at,
                     enum check_far_access what)
{
    const uint64_t cell = at >> v->s->shift;
    const struct check_cells *all = &v->s->cell;
    struct check_more *m = more_of(v->s, cell);
    const struct check_slot last = check_get(&all->write, cell);
    far_after_write(v, f, at, &last);
    for (int i = 0; m && what != CHECK_FAR_FOLD && i < 2; i++)
        far_after_write(v, f, at, &m->strong[i]);
    if (what == CHECK_FAR_READ) {
        if (v->space == SIM_IN_SHARED)
            far_read(v, cell, &f->slot);
        else
            remember_read(v, f->lane, cell, &f->slot);
        return;
    }
    for (int i = 0; i < 2; i++) {
        const struct check_slot read = check_get(&all->read[i], cell);
        if (read.clock && !known(v, f, &read) && !check_heard(v->w, f->lane, &read))
            conflict(v, f->lane, at, &read, CHECK_F_RACE);
    }
    for (int i = 0; m && i < CHECK_FAR; i++)
        if (m->far[i].clock && !known(v, f, &m->far[i]))
            conflict(v, f->lane, at, &m->far[i], CHECK_F_RACE);
    if (what == CHECK_FAR_FOLD) {
        if ((m = need_more(v->c, v->s, cell)))
            remember_strong(v, f->lane, m, &f->slot);
        return;
    }
    if (m) {
        check_unpublish(m);
        *m = (struct check_more){.since = v->s->since};
    }
    check_put(&all->write, cell, &f->slot);
    all->read[0].clock[cell] = all->read[1].clock[cell] = 0;
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
    struct view v = view_of(w, &c->op[check_op_of(&f->slot)], f->op, m);
    v.far = true;
    for (uint64_t at = offset; at < offset + bytes; at += (uint64_t)1 << s->shift)
        far_cell(&v, f, at, what);
}
