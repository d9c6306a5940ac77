/* mbarrier objects, and what threads do with them. */
#include <config.h>

#include "sim/mbarrier.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sim/check.h"
#include "sim/flight.h"
#include "sim/report.h"

/* ---- places ---------------------------------------------------------------------------------- */

/* The block and the offset that an address names, in bounds or not; false: not in shared memory of
 * the cluster. */
static bool locate(const struct sim_block *b, uint64_t address, unsigned space, struct sim_place *p)
{
    uint64_t off = address;
    if (space == SIM_IN_GENERIC) {
        if (address >> SIM_WINDOW_BITS != SIM_WINDOW_SHARED)
            return false;
        off -= SIM_SHARED_BASE;
    }
    const uint64_t rank = off >> SIM_RANK_SHIFT;
    if (rank > b->npeer)
        return false;
    *p = (struct sim_place){rank ? b->peer[rank - 1] : b->peer[b->rank],
                            off & (((uint64_t)1 << SIM_RANK_SHIFT) - 1)};
    return true;
}

bool sim_shared_place(struct sim_warp *w, const struct sim_op *op, uint32_t lane, uint64_t address,
                      unsigned space, bool remote, uint64_t bytes, uint32_t align, bool store,
                      struct sim_place *p)
{
    struct sim_block *b = w->block;
    enum sim_fault_kind kind = SIM_NO_FAULT;
    if (!locate(b, address, space, p))
        kind = space == SIM_IN_GENERIC && address >> SIM_WINDOW_BITS != SIM_WINDOW_SHARED
                   ? SIM_F_SPACE
                   : SIM_F_BOUNDS;
    else if (p->offset % align)
        kind = SIM_F_ALIGN;
    else if (bytes > b->shared_bytes || p->offset > b->shared_bytes - bytes)
        kind = SIM_F_BOUNDS;
    else if (!remote && p->block != b)
        kind = SIM_F_REMOTE;
    if (!kind)
        return true;
    sim_fault_at(w, op, lane, kind);
    b->fault.address = address;
    b->fault.bytes = kind == SIM_F_ALIGN ? align : (uint32_t)bytes;
    b->fault.space = (uint8_t)space;
    b->fault.store = store;
    return false;
}

/* ---- objects --------------------------------------------------------------------------------- */

enum { EXPECTED = 20, BYTES = 40, PARITY = 62 };
#define VALID ((uint64_t)1 << 63)

static uint64_t state_of(uint32_t pending, uint32_t expected, int32_t bytes, unsigned parity)
{
    const uint64_t tx = (uint64_t)(int64_t)bytes & 0x1fffff;
    return pending | (uint64_t)expected << EXPECTED | tx << BYTES | (uint64_t)parity << PARITY |
           VALID;
}

static struct sim_mbarrier *known(const struct sim_block *b, uint32_t offset)
{
    for (uint32_t i = 0; i < b->nmbar; i++)
        if (b->mbar[i].offset == offset)
            return &b->mbar[i];
    return NULL;
}

static bool intact(const struct sim_block *b, const struct sim_mbarrier *m)
{
    return memcmp(b->shared + m->offset, &m->state, sizeof m->state) == 0;
}

struct sim_mbarrier *sim_mbar_find(const struct sim_block *b, uint32_t offset,
                                   enum sim_mbar_error *why)
{
    struct sim_mbarrier *m = known(b, offset);
    *why = !m              ? SIM_MBAR_NONE
           : !m->state     ? SIM_MBAR_INVALID
           : !intact(b, m) ? SIM_MBAR_SPOILT
                           : SIM_MBAR_FINE;
    return *why ? NULL : m;
}

static void put(struct sim_block *b, struct sim_mbarrier *m, uint64_t state)
{
    m->state = state;
    memcpy(b->shared + m->offset, &state, sizeof state);
}

/* Those that wait at an mbarrier of the block look again. */
static void wake(struct sim_block *b)
{
    for (uint32_t i = 0; i < b->nwarp; i++) {
        struct sim_warp *w = &b->warp[i];
        for (uint32_t g = 0; w->started && g < w->ngroup; g++)
            if (w->group[g].waits == SIM_WAIT_MBAR)
                w->group[g].waits = 0;
    }
}

/* Its counts have changed: the phase is complete when both are 0. */
static void settle(struct sim_block *b, struct sim_mbarrier *m, uint32_t pending, uint32_t expected,
                   int32_t bytes)
{
    unsigned parity = sim_mbar_parity(m->state);
    const bool complete = !pending && !bytes;
    if (complete) {
        pending = expected;
        parity ^= 1;
        m->phase++;
    }
    put(b, m, state_of(pending, expected, bytes, parity));
    if (!complete)
        return;
    if (b->check)
        sim_check_mbar_phase(b, m->offset);
    wake(b);
}

static enum sim_mbar_error arrive(struct sim_block *b, uint32_t offset, uint32_t count, bool drops,
                                  uint64_t *state)
{
    enum sim_mbar_error why;
    struct sim_mbarrier *m = sim_mbar_find(b, offset, &why);
    if (!m)
        return why;
    const uint32_t pending = sim_mbar_pending(m->state), expected = sim_mbar_expected(m->state);
    if (state)
        *state = m->state;
    if (count > pending)
        return SIM_MBAR_COUNT;
    if (drops && count > expected)
        return SIM_MBAR_DROP;
    settle(b, m, pending - count, drops ? expected - count : expected, sim_mbar_bytes(m->state));
    return SIM_MBAR_FINE;
}

enum sim_mbar_error sim_mbar_arrive(struct sim_block *b, uint32_t offset, uint32_t count,
                                    uint64_t *state)
{
    return arrive(b, offset, count, false, state);
}

static enum sim_mbar_error add_bytes(struct sim_block *b, uint32_t offset, int64_t bytes)
{
    enum sim_mbar_error why;
    struct sim_mbarrier *m = sim_mbar_find(b, offset, &why);
    if (!m)
        return why;
    const int64_t sum = sim_mbar_bytes(m->state) + bytes;
    if (sum > SIM_MBARRIER_MOST || sum < -SIM_MBARRIER_MOST)
        return SIM_MBAR_BYTES;
    settle(b, m, sim_mbar_pending(m->state), sim_mbar_expected(m->state), (int32_t)sum);
    return SIM_MBAR_FINE;
}

enum sim_mbar_error sim_mbar_expect(struct sim_block *b, uint32_t offset, uint32_t bytes)
{
    return add_bytes(b, offset, bytes);
}

enum sim_mbar_error sim_mbar_complete(struct sim_block *b, uint32_t offset, uint32_t bytes)
{
    return add_bytes(b, offset, -(int64_t)bytes);
}

enum sim_mbar_error sim_mbar_test(const struct sim_block *b, uint32_t offset, unsigned parity,
                                  bool *complete)
{
    enum sim_mbar_error why;
    const struct sim_mbarrier *m = sim_mbar_find(b, offset, &why);
    *complete = m && sim_mbar_parity(m->state) != parity;
    return why;
}

void sim_mbars_reset(struct sim_block *b)
{
    b->nmbar = 0;
}

void sim_mbars_free(struct sim_block *b)
{
    free(b->mbar);
}

bool sim_mbar_waiting(const struct sim_block *unit)
{
    for (uint32_t i = 0; i < unit->npeer; i++) {
        const struct sim_block *b = unit->peer[i];
        for (uint32_t k = 0; b->nmbar && k < b->nwarp; k++)
            for (uint32_t g = 0; b->warp[k].started && g < b->warp[k].ngroup; g++)
                if (b->warp[k].group[g].waits == SIM_WAIT_MBAR)
                    return true;
    }
    return false;
}

void sim_mbar_expire(struct sim_block *unit)
{
    for (uint32_t i = 0; i < unit->npeer; i++) {
        struct sim_block *b = unit->peer[i];
        for (uint32_t k = 0; b->nmbar && k < b->nwarp; k++) {
            struct sim_warp *w = &b->warp[k];
            for (uint32_t g = 0; w->started && g < w->ngroup; g++)
                if (w->group[g].waits == SIM_WAIT_MBAR) {
                    w->group[g].waits = 0;
                    w->expired |= w->group[g].mask;
                }
        }
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

void sim_mbar_blame(struct sim_fault *f, const struct sim_block *b, uint32_t offset,
                    enum sim_mbar_error error)
{
    const struct sim_mbarrier *m = known(b, offset);
    f->mbar.error = (uint8_t)error;
    f->mbar.offset = offset;
    f->mbar.rank = b->rank;
    f->mbar.state = m ? m->state : 0;
    f->mbar.op = m ? m->op : 0;
}

static const struct sim_op *fail(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                                 const struct sim_place *p, enum sim_mbar_error error,
                                 uint64_t count)
{
    sim_fault_at(w, op, lane, SIM_F_MBARRIER);
    sim_mbar_blame(&w->block->fault, p->block, p->offset, error);
    w->block->fault.mbar.count = count;
    return NULL;
}

/* ---- what a lane does ------------------------------------------------------------------------ */

static enum sim_mbar_error init(struct sim_warp *w, const struct sim_op *op,
                                const struct sim_place *p, uint32_t count)
{
    struct sim_block *b = p->block;
    struct sim_mbarrier *m = known(b, p->offset);
    if (!count || count > SIM_MBARRIER_MOST)
        return SIM_MBAR_RANGE;
    if (m && m->state && intact(b, m))
        return SIM_MBAR_AGAIN;
    if (!m && b->nmbar == b->cap_mbar) {
        const uint32_t cap = b->cap_mbar ? 2 * b->cap_mbar : 16;
        struct sim_mbarrier *grown = realloc(b->mbar, cap * sizeof *grown);
        if (!grown)
            return SIM_MBAR_MEMORY;
        b->mbar = grown;
        b->cap_mbar = cap;
    }
    if (!m)
        m = &b->mbar[b->nmbar++];
    *m = (struct sim_mbarrier){.offset = p->offset, .op = sim_pc(w, op), .warp = w->index};
    put(b, m, state_of(count, count, 0, 0));
    return SIM_MBAR_FINE;
}

static enum sim_mbar_error inval(const struct sim_place *p)
{
    enum sim_mbar_error why;
    struct sim_mbarrier *m = sim_mbar_find(p->block, p->offset, &why);
    if (m)
        m->state = 0;
    return why;
}

/* The phase that .noComplete arrives in goes on behind it. */
static bool would_complete(const struct sim_place *p, uint32_t count)
{
    enum sim_mbar_error why;
    const struct sim_mbarrier *m = sim_mbar_find(p->block, p->offset, &why);
    return m && sim_mbar_pending(m->state) == count && !sim_mbar_bytes(m->state);
}

static enum sim_mbar_error arrive_at(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                                     const struct sim_place *p, uint32_t count)
{
    uint64_t state = 0;
    if (!count || count > SIM_MBARRIER_MOST)
        return SIM_MBAR_RANGE;
    if (op->flags & SIM_MBAR_UNFINISHED && would_complete(p, count))
        return SIM_MBAR_PHASE;
    if (w->block->check)
        sim_check_mbar_arrives(w, op, lane, p->block, p->offset, count);
    const enum sim_mbar_error error =
        arrive(p->block, p->offset, count, op->flags & SIM_MBAR_DROPS, &state);
    if (!error && op->d)
        memcpy(w->r + op->d + 8 * lane, &state, 8);
    return error;
}

static enum sim_mbar_error expect(const struct sim_place *p, uint32_t bytes)
{
    return bytes > SIM_MBARRIER_MOST ? SIM_MBAR_BYTES : sim_mbar_expect(p->block, p->offset, bytes);
}

static enum sim_mbar_error act(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                               const struct sim_place *p, uint32_t n)
{
    enum sim_mbar_error error;
    switch ((enum sim_mbar_op)op->imm) {
    case SIM_MBAR_INIT: return init(w, op, p, n);
    case SIM_MBAR_INVAL: return inval(p);
    case SIM_MBAR_ARRIVE: return arrive_at(w, op, lane, p, n);
    case SIM_MBAR_EXPECT: return expect(p, n);
    case SIM_MBAR_EXPECTS:
        error = expect(p, n);
        return error ? error : arrive_at(w, op, lane, p, 1);
    case SIM_MBAR_COMPLETE:
        return n > SIM_MBARRIER_MOST ? SIM_MBAR_BYTES : sim_mbar_complete(p->block, p->offset, n);
    }
    return SIM_MBAR_FINE;
}

const struct sim_op *sim_mbar_do(struct sim_warp *w, const struct sim_op *op)
{
    FOR_LANES(lane, w->em) {
        const uint32_t n = op->b ? sim_word(w, op->b, lane) : 1;
        struct sim_place p;
        if (!sim_shared_place(w, op, lane, sim_wide(w, op->a, lane), op->round,
                              op->flags & SIM_MBAR_ANYWHERE, 8, 8, true, &p))
            return NULL;
        const enum sim_mbar_error error = act(w, op, lane, &p, n);
        if (error == SIM_MBAR_MEMORY)
            return sim_fault_at(w, op, lane, SIM_F_MEMORY);
        if (error)
            return fail(w, op, lane, &p, error, n);
        if (w->block->check && op->imm == SIM_MBAR_INIT)
            sim_check_mbar_made(w, op, lane, p.block, p.offset);
        if (w->block->check && op->imm == SIM_MBAR_INVAL)
            sim_check_mbar_gone(w, op, lane, p.block, p.offset);
    }
    return op + 1;
}

/* ---- cp.async.mbarrier.arrive ---------------------------------------------------------------- */

/* Without .noinc the arrival is one more than the phase waits for. */
static enum sim_mbar_error add_pending(const struct sim_place *p, uint32_t count)
{
    enum sim_mbar_error why;
    struct sim_mbarrier *m = sim_mbar_find(p->block, p->offset, &why);
    if (!m)
        return why;
    if (sim_mbar_pending(m->state) + count > SIM_MBARRIER_MOST)
        return SIM_MBAR_RANGE;
    put(p->block, m, m->state + count);
    return SIM_MBAR_FINE;
}

const struct sim_op *sim_mbar_copies(struct sim_warp *w, const struct sim_op *op)
{
    struct sim_place p, q;
    for (uint32_t left = w->em; left;) {
        const uint32_t first = (uint32_t)__builtin_ctz(left);
        uint32_t same = 0;
        if (!sim_shared_place(w, op, first, sim_wide(w, op->a, first), op->round, false, 8, 8, true,
                              &p))
            return NULL;
        for (uint32_t more = left; more; more &= more - 1)
            if (locate(w->block, sim_wide(w, op->a, (uint32_t)__builtin_ctz(more)), op->round,
                       &q) &&
                q.block == p.block && q.offset == p.offset)
                same |= more & -more;
        left &= ~same;
        const uint32_t n = (uint32_t)__builtin_popcount(same);
        enum sim_mbar_error error;
        if (op->flags & SIM_MBAR_NO_INC)
            sim_mbar_find(p.block, p.offset, &error);
        else
            error = add_pending(&p, n);
        if (error)
            return fail(w, op, first, &p, error, n);
        const struct sim_flight f = {.kind = SIM_FLY_COPIES,
                                     .mbarrier = p.offset,
                                     .fold = SIM_NO_FOLD,
                                     .lanes = same,
                                     .copies = w->copies ? w->copies->issued : 0};
        if (!sim_flight_issue(w, op, first, &f, NULL, 0))
            return NULL;
    }
    return op + 1;
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* The parity that a lane waits for: 0 or 1, or what is no parity. */
static uint32_t parity_of(const struct sim_warp *w, const struct sim_op *op, uint32_t lane)
{
    return op->more & SIM_MBAR_PARITY ? sim_word(w, op->b, lane)
                                      : sim_mbar_parity(sim_wide(w, op->b, lane));
}

static uint32_t guarded(const struct sim_warp *w, const struct sim_op *op)
{
    uint32_t p = UINT32_MAX;
    if (op->guard != SIM_NO_GUARD)
        memcpy(&p, w->r + op->guard, sizeof p);
    return w->mask & (op->flags & SIM_GUARD_NOT ? ~p : p);
}

/* Those of the lanes whose phase is complete. False: a fault. */
static bool test(struct sim_warp *w, const struct sim_op *op, uint32_t lanes, uint32_t *complete)
{
    uint64_t last = UINT64_MAX;
    uint32_t last_parity = 0;
    bool yes = false;
    *complete = 0;
    FOR_LANES(lane, lanes) {
        const uint32_t parity = parity_of(w, op, lane);
        const uint64_t address = sim_wide(w, op->a, lane);
        if (address != last || parity != last_parity) {
            struct sim_place p;
            if (!sim_shared_place(w, op, lane, address, op->round, false, 8, 8, false, &p))
                return false;
            const enum sim_mbar_error error =
                parity > 1 ? SIM_MBAR_NO_PARITY : sim_mbar_test(p.block, p.offset, parity, &yes);
            if (error)
                return fail(w, op, lane, &p, error, parity);
            last = address;
            last_parity = parity;
        }
        *complete |= (uint32_t)yes << lane;
    }
    return true;
}

/* Tells the sanitizer which lanes have passed which objects. */
static void passed(struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    while (lanes) {
        const uint64_t address = sim_wide(w, op->a, (uint32_t)__builtin_ctz(lanes));
        uint32_t same = 0;
        struct sim_place p;
        for (uint32_t left = lanes; left; left &= left - 1)
            if (sim_wide(w, op->a, (uint32_t)__builtin_ctz(left)) == address)
                same |= left & -left;
        lanes &= ~same;
        if (locate(w->block, address, op->round, &p))
            sim_check_mbar_passed(w, op, same, p.block, p.offset);
    }
}

/* Is the time limit over at once? With a seed it is now and then. */
static bool hurries(const struct sim_warp *w)
{
    enum { TIMES = 4 };
    return w->block->launch->seed && !sim_draw(w->block, TIMES);
}

const struct sim_op *sim_mbar_wait(struct sim_warp *w, const struct sim_op *op)
{
    const uint32_t lanes = guarded(w, op);
    uint32_t complete, p;
    if (!lanes)
        return op + 1;
    if (!test(w, op, lanes, &complete))
        return NULL;
    if (op->more & SIM_MBAR_SUSPENDS && lanes & ~complete & ~w->expired && !hurries(w)) {
        sim_count(w, op);
        sim_push(w, sim_pc(w, op), w->mask, SIM_WAIT_MBAR);
        return sim_next_group(w);
    }
    w->expired &= ~w->mask;
    memcpy(&p, w->r + op->d, 4);
    p = (p & ~lanes) | complete;
    memcpy(w->r + op->d, &p, 4);
    if (w->block->check)
        passed(w, op, complete);
    return op + 1;
}

/* ---- reports --------------------------------------------------------------------------------- */

static bool waits_there(const struct sim_warp *w, uint32_t pc)
{
    const struct ptx_func *f = w->block->launch->code->func;
    const uint32_t item = w->code[pc].item;
    if (item >= f->items.n || f->items.v[item].kind != PTX_I_INST)
        return false;
    const enum ptx_op op = f->items.v[item].inst.op;
    return (op == PTX_OP_MBARRIER_TEST_WAIT || op == PTX_OP_MBARRIER_TEST_PARITY ||
            op == PTX_OP_MBARRIER_TRY_WAIT || op == PTX_OP_MBARRIER_TRY_PARITY) &&
           /* the last of its records */
           w->code[pc + 1].item != item;
}

bool sim_mbar_stand(const struct sim_warp *w, const struct sim_group *g, struct sim_stand *s)
{
    enum { NEAR = 32 };
    const struct sim_code *code = w->block->launch->code;
    uint32_t pc = g->pc;
    while (!g->waits && pc + 1 < code->nop && pc < g->pc + NEAR && !waits_there(w, pc))
        pc++;
    if (pc + 1 >= code->nop || !waits_there(w, pc))
        return false;
    const struct sim_op *op = w->code + pc;
    FOR_LANES(lane, g->mask) {
        const uint32_t parity = parity_of(w, op, lane);
        enum sim_mbar_error why;
        struct sim_place p;
        if (!locate(w->block, sim_wide(w, op->a, lane), op->round, &p))
            continue;
        const struct sim_mbarrier *m = sim_mbar_find(p.block, p.offset, &why);
        if (!m || sim_mbar_parity(m->state) != parity)
            continue;
        s->mbar = true;
        s->offset = p.offset;
        s->parity = parity;
        s->came = sim_mbar_pending(m->state);
        s->wanted = sim_mbar_expected(m->state);
        s->bytes = sim_mbar_bytes(m->state);
        return true;
    }
    return false;
}
