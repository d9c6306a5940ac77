/* mbarriers: who arrives publishes what it knows, who finds the phase complete learns it, and with
 * it what the copies brought which completed there.
 */
#include <config.h>

#include "sim/check.h"

#include <stdlib.h>

static struct check *of(const struct sim_block *b)
{
    return b->launch->check;
}

static bool orders(const struct sim_block *b)
{
    return of(b)->bits & (DEVICE_CHECK_RACE | DEVICE_CHECK_ASYNC);
}

static struct check_slot now_of(const struct sim_warp *w, const struct sim_op *op, uint32_t lane)
{
    return check_slot_of((uint32_t)w->block->index, of(w->block)->clock,
                         w->index * SIM_LANES + lane, (uint32_t)(op - w->code));
}

static struct check_finding about(const struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                                  const struct sim_block *b, uint32_t offset,
                                  const struct check_slot *other, enum check_finding_kind kind)
{
    return (struct check_finding){
        .kind = kind,
        .at = {(uint32_t)(op - w->code), w->index * SIM_LANES + lane, w->block->index},
        .other = check_side_of(w->block, other),
        .count = 1,
        .address = offset + (b == w->block ? 0 : (uint64_t)(b->rank + 1) << SIM_RANK_SHIFT),
        .space = SIM_IN_SHARED,
        .bytes = 8};
}

/* ---- the table ------------------------------------------------------------------------------- */

struct check_mbar *check_mbar_at(const struct sim_block *b, uint32_t offset)
{
    for (uint32_t i = 0; i < b->check->nmbar; i++)
        if (b->check->mbar[i].offset == offset)
            return &b->check->mbar[i];
    return NULL;
}

/* More of them than there are agents share the last. */
uint32_t check_mbar_agent(const struct sim_block *b, const struct check_mbar *m)
{
    const uint32_t k = (uint32_t)(m - b->check->mbar), most = CHECK_AGENTS - CHECK_A_MBAR - 1;
    return CHECK_A_MBAR + (k < most ? k : most);
}

static struct check_mbar *add(struct sim_block *b, uint32_t offset)
{
    struct check_block *cb = b->check;
    struct check_mbar *m = check_mbar_at(b, offset);
    if (m)
        return m;
    if (cb->nmbar == cb->cap_mbar) {
        const uint32_t cap = cb->cap_mbar ? 2 * cb->cap_mbar : 16;
        struct check_mbar *grown = realloc(cb->mbar, cap * sizeof *grown);
        if (!grown) {
            of(b)->starved = true;
            return NULL;
        }
        cb->mbar = grown;
        cb->cap_mbar = cap;
    }
    m = &cb->mbar[cb->nmbar++];
    *m = (struct check_mbar){.offset = offset};
    cb->mbar_low = cb->nmbar == 1 || offset < cb->mbar_low ? offset : cb->mbar_low;
    cb->mbar_high = cb->nmbar == 1 || offset > cb->mbar_high ? offset : cb->mbar_high;
    return m;
}

bool check_narrow(const struct sim_warp *w)
{
    for (uint32_t i = 0; i < w->block->check->nmbar; i++)
        if (w->block->check->mbar[i].narrow)
            return true;
    return false;
}

/* ---- init, inval ----------------------------------------------------------------------------- */

void sim_check_mbar_made(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                         struct sim_block *b, uint32_t offset)
{
    if (of(b)->bits & DEVICE_CHECK_INIT)
        check_define(&b->check->shared, offset, 8);
    struct check_mbar *m = orders(b) ? add(b, offset) : NULL;
    if (!m)
        return;
    m->live = true;
    m->fenced = false;
    m->init = now_of(w, op, lane);
    m->flights = 0;
    memset(m->use, 0, sizeof m->use);
}

/* Is a use over? The instruction has been executed once another lane of its warp goes on behind a
 * shuffle or the like: then it is enough that that lane is known of. */
static bool over(const struct sim_warp *w, uint32_t lane, const struct check_slot *use)
{
    const uint32_t warp = check_thread_of(use) / SIM_LANES;
    for (uint32_t i = 0; i < SIM_LANES; i++) {
        const struct check_slot s =
            check_slot_of(use->block, use->clock, warp * SIM_LANES + i, check_op_of(use));
        if (check_ordered(w, lane, &s))
            return true;
    }
    return false;
}

void sim_check_mbar_gone(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                         struct sim_block *b, uint32_t offset)
{
    struct check_mbar *m = orders(b) ? check_mbar_at(b, offset) : NULL;
    if (!m)
        return;
    m->live = false;
    for (size_t i = 0; i < sizeof m->use / sizeof *m->use; i++)
        if (m->use[i].clock && !over(w, lane, &m->use[i])) {
            const struct check_finding f =
                about(w, op, lane, b, offset, &m->use[i], CHECK_F_IN_USE);
            check_find(of(b), &f);
        }
}

/* A lane uses it, at a clock. */
static void use(struct sim_warp *w, const struct sim_op *op, uint32_t lane, struct sim_block *b,
                struct check_mbar *m, uint32_t clock)
{
    struct check_slot now = now_of(w, op, lane);
    now.clock = clock;
    if (!check_ordered(w, lane, &m->init)) {
        const struct check_finding f = about(w, op, lane, b, m->offset, &m->init, CHECK_F_MADE);
        check_find(of(b), &f);
    }
    for (size_t i = 0; i < sizeof m->use / sizeof *m->use; i++) {
        const bool same = m->use[i].block == now.block &&
                          check_thread_of(&m->use[i]) / SIM_LANES == w->index;
        if (!m->use[i].clock || same) {
            m->use[i] = now;
            return;
        }
    }
}

/* ---- arrivals, phases, waits ----------------------------------------------------------------- */

struct check_mbar *check_mbar_named(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                                    struct sim_block *b, uint32_t offset, bool async)
{
    struct check_mbar *m = check_mbar_at(b, offset);
    if (!m || !m->live)
        return NULL;
    use(w, op, lane, b, m, of(b)->clock);
    if (async && !m->fenced && check_ordered(w, lane, &m->init)) {
        m->fenced = check_proxy_reached(w, lane, &m->init, SIM_IN_SHARED);
        if (!m->fenced) {
            const struct check_finding f =
                about(w, op, lane, b, offset, &m->init, CHECK_F_UNFENCED);
            check_find(of(b), &f);
        }
        m->fenced = true;
    }
    return m;
}

void sim_check_mbar_arrives(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                            struct sim_block *b, uint32_t offset, uint32_t count)
{
    (void)count;
    struct check *c = of(b);
    const uint32_t record = (uint32_t)(op - w->code);
    const struct check_op *o = &c->op[record];
    struct check_mbar *m = orders(b) ? check_mbar_at(b, offset) : NULL;
    if (!m)
        return;
    const bool narrow = b != w->block && o->scope == CHECK_CTA;
    struct check_known *k = check_released(w, lane, o, record);
    use(w, op, lane, b, m, c->arrival.clock);
    if (b != w->block) {
        struct check_slot now = now_of(w, op, lane);
        now.clock = c->arrival.clock;
        check_remote(w, b, &now);
    }
    m->narrow |= narrow;
    for (int i = CHECK_FROM_ALL; i <= CHECK_FROM_ANY; i++)
        if (i == CHECK_FROM_ANY ? b->npeer > 1 : i == CHECK_FROM_OWN ? b == w->block : !narrow)
            m->phase[i] = check_known_join(c, m->phase[i], k);
    check_known_drop(k);
    if (b->npeer > 1) {
        k = check_hearsay(w, lane);
        m->phase[CHECK_FROM_ANY] = check_known_join(c, m->phase[CHECK_FROM_ANY], k);
        check_known_drop(k);
    }
}

void sim_check_mbar_phase(struct sim_block *b, uint32_t offset)
{
    struct check *c = of(b);
    struct check_mbar *m = orders(b) ? check_mbar_at(b, offset) : NULL;
    if (!m)
        return;
    const uint16_t agent = (uint16_t)check_mbar_agent(b, m);
    struct check_fact fact = {(uint32_t)b->index, check_tick(c), agent, agent};
    struct check_known *landed = check_known_new(c, &fact, 1);
    for (int i = CHECK_FROM_ALL; i <= CHECK_FROM_ANY; i++) {
        m->done[i] = check_known_join(c, m->done[i], m->phase[i]);
        m->done[i] = check_known_join(c, m->done[i], landed);
        check_known_drop(m->phase[i]);
        m->phase[i] = NULL;
    }
    check_known_drop(landed);
    if (m->flights)
        check_find(c, &(struct check_finding){.kind = CHECK_F_PHASE,
                                              .at = {m->op, m->thread, m->block},
                                              .other = {m->op, m->thread, m->block},
                                              .count = 1,
                                              .address = offset,
                                              .space = SIM_IN_SHARED,
                                              .bytes = 8});
}

void sim_check_mbar_passed(struct sim_warp *w, const struct sim_op *op, uint32_t lanes,
                           struct sim_block *b, uint32_t offset)
{
    const struct check_op *o = &of(b)->op[op - w->code];
    struct check_mbar *m = orders(b) && !o->ignored ? check_mbar_at(b, offset) : NULL;
    if (!m)
        return;
    FOR_LANES(lane, lanes)
        use(w, op, lane, b, m, of(b)->clock);
    const bool narrow = o->scope == CHECK_CTA;
    m->narrow |= narrow && m->done[CHECK_FROM_OWN] != m->done[CHECK_FROM_ALL];
    check_learn(w, lanes, m->done[narrow ? CHECK_FROM_OWN : CHECK_FROM_ALL], o->acquire);
    if (b->npeer > 1)
        check_hear(w, lanes, m->done[CHECK_FROM_ANY]);
}

/* ---- what is no use of it -------------------------------------------------------------------- */

void check_over_mbar(struct sim_warp *w, const struct sim_op *op, const struct sim_block *b,
                     const struct check_access *x)
{
    const struct check_block *cb = b->check;
    FOR_LANES(lane, cb->nmbar ? x->lanes : 0) {
        const uint64_t at = check_offset(x, lane);
        if (at + op->size <= cb->mbar_low || at >= cb->mbar_high + 8)
            continue;
        for (uint32_t i = 0; i < cb->nmbar; i++) {
            const struct check_mbar *m = &cb->mbar[i];
            if (!m->live || at + op->size <= m->offset || at >= m->offset + 8)
                continue;
            const struct check_finding f = about(w, op, lane, b, m->offset, &m->init, CHECK_F_OVER);
            check_find(of(b), &f);
        }
    }
}

static bool is_wait(const struct ptx_inst *in)
{
    return ptx_op_family(in->op) == PTX_FAMILY_MBAR_WAIT;
}

static void mark(bool *read, const struct ptx_operand *o)
{
    if (o->kind == PTX_O_REG && o->reg >= 0)
        read[o->reg] = true;
    if (o->kind == PTX_O_REG && o->reg2 >= 0)
        read[o->reg2] = true;
    for (uint32_t i = 0; i < o->nelem; i++)
        mark(read, &o->elem[i]);
}

void check_ignored(struct check *c, const struct sim_code *code)
{
    const struct ptx_func *f = code->func;
    bool *read = ARENA_ARRAY(c->launch->arena, f->regs.n + 1, bool);
    for (size_t i = 0; i < f->items.n; i++) {
        const struct ptx_inst *in = &f->items.v[i].inst;
        if (f->items.v[i].kind != PTX_I_INST)
            continue;
        if (in->guard >= 0)
            read[in->guard] = true;
        for (uint32_t k = 1; k < in->noperand; k++)
            mark(read, &in->operand[k]);
    }
    for (uint32_t i = 0; i < code->nop && i < CHECK_OPS; i++) {
        if (code->op[i].item >= f->items.n || f->items.v[code->op[i].item].kind != PTX_I_INST)
            continue;
        const struct ptx_inst *in = &f->items.v[code->op[i].item].inst;
        c->op[i].ignored = is_wait(in) && in->operand[0].kind == PTX_O_REG &&
                           in->operand[0].reg >= 0 && !read[in->operand[0].reg];
    }
}

/* ---- other blocks of the cluster ------------------------------------------------------------- */

static void gone(struct sim_launch *l, const struct sim_block *b, const struct check_slot *s)
{
    const struct check_side at = check_side_of(b, s);
    check_find(l->check,
               &(struct check_finding){
                   .kind = CHECK_F_GONE, .at = at, .other = {at.op, 0, b->index}, .count = 1});
}

void check_remote(struct sim_warp *w, struct sim_block *b, const struct check_slot *s)
{
    struct check_block *cb = b->check;
    if (!orders(b))
        return;
    if (!b->nlive) {
        gone(w->block->launch, b, s);
        return;
    }
    uint32_t to = cb->nremote;
    for (uint32_t i = 0; i < cb->nremote; i++)
        if (cb->remote[i].block == s->block &&
            !((cb->remote[i].who ^ s->who) >> (CHECK_OP_BITS + 5)))
            to = i;
    if (to == sizeof cb->remote / sizeof *cb->remote)
        return;
    cb->remote[to] = *s;
    cb->nremote += to == cb->nremote;
}

/* Does a thread of the block know of an access? It has exited with what it knew. */
static bool known(const struct sim_block *b, const struct check_slot *s)
{
    for (uint32_t i = 0; i < b->nwarp; i++)
        for (uint32_t lane = 0; lane < SIM_LANES; lane++)
            if (check_ordered(&b->warp[i], lane, s) || check_heard(&b->warp[i], lane, s))
                return true;
    return false;
}

void check_remote_end(const struct sim_block *b)
{
    for (uint32_t i = 0; i < b->check->nremote; i++)
        if (!known(b, &b->check->remote[i]))
            gone(b->launch, b, &b->check->remote[i]);
}

void check_mbars_free(struct sim_block *b)
{
    struct check_block *cb = b->check;
    for (uint32_t i = 0; i < cb->nmbar; i++)
        for (int k = CHECK_FROM_ALL; k <= CHECK_FROM_ANY; k++) {
            check_known_drop(cb->mbar[i].phase[k]);
            check_known_drop(cb->mbar[i].done[k]);
        }
    free(cb->mbar);
    cb->mbar = NULL;
    cb->nmbar = cb->cap_mbar = cb->nremote = 0;
}
