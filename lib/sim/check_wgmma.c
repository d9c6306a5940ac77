/* wgmma: the shared memory that it reads until its warps have waited, and the registers that nobody
 * may touch meanwhile.
 *
 * Of the registers of a kernel only those are followed that some wgmma has its sums or its A in;
 * they are numbered, and sets of them are bits. An instruction which has one of them for an operand
 * has a function before it.
 */
#include <config.h>

#include "sim/check.h"

#include <stdlib.h>

/* A set of registers: of an instruction that touches them, or of a wgmma. */
struct check_touch {
    uint32_t words;
    bool wgmma;
    uint64_t *sums; /* of a wgmma: D */
    uint64_t all[]; /* D and A; of others all operands */
};

static struct check *of(const struct sim_warp *w)
{
    return w->block->launch->check;
}

/* ---- shared memory --------------------------------------------------------------------------- */

void check_span(struct check_shadow *s, uint64_t offset, uint64_t bytes, uint8_t span)
{
    if (!s->span && !span)
        return;
    if (!s->span && !(s->span = calloc((size_t)(s->bytes / 16) + 1, 1)))
        return; /* nothing is known then */
    for (uint64_t i = offset / 16; i < (offset + bytes + 15) / 16 && i <= s->bytes / 16; i++)
        s->span[i] = span;
}

/* Does it read what a tensor copy has written with another swizzle? */
static void compare_spans(struct sim_warp *w, const struct sim_op *op,
                          const struct sim_wgmma_reads *r)
{
    const struct check_shadow *s = &w->block->check->shared;
    for (uint64_t i = r->offset / 16; s->span && i < (r->offset + r->bytes + 15) / 16; i++) {
        if (!s->span[i] || s->span[i] == r->span)
            continue;
        struct check_slot by;
        const bool known = check_last_write(s, 16 * i, &by);
        const struct check_side at = {(uint32_t)(op - w->code), w->index * SIM_LANES,
                                      w->block->index};
        check_find(of(w),
                   &(struct check_finding){.kind = CHECK_F_LAYOUT,
                                           .at = at,
                                           .other = known ? check_side_of(w->block, &by) : at,
                                           .count = 1,
                                           .address = 16 * i,
                                           .space = SIM_IN_SHARED,
                                           .bytes = 16,
                                           .mask = r->span,
                                           .source = s->span[i]});
        return;
    }
}

/* What is undefined is used at once. */
static void find_undefined(struct sim_warp *w, const struct sim_op *op,
                           const struct sim_wgmma_reads *r)
{
    const struct check_side at = {(uint32_t)(op - w->code), w->index * SIM_LANES, w->block->index};
    uint64_t offset = r->offset;
    if (check_first_undefined(&w->block->check->shared, &offset, r->bytes))
        check_find(of(w), &(struct check_finding){.kind = CHECK_F_INIT,
                                                  .at = at,
                                                  .other = at,
                                                  .count = 1,
                                                  .address = offset,
                                                  .space = SIM_IN_SHARED,
                                                  .bytes = 1});
}

static void read_shared(struct sim_warp *w, const struct sim_op *op,
                        const struct sim_wgmma_reads *r, uint32_t n)
{
    const uint32_t agent = CHECK_A_WGMMA + w->index / SIM_WARPGROUP;
    struct check_far far = {.w = w,
                            .op = op,
                            .warp = true,
                            .slot = check_slot_of((uint32_t)w->block->index, of(w)->clock, agent,
                                                  (uint32_t)(op - w->code))};
    const struct check_memory m = {.shadow = &w->block->check->shared,
                                   .host = w->block->shared,
                                   .bytes = w->block->shared_bytes,
                                   .space = SIM_IN_SHARED};
    for (uint32_t i = 0; i < n; i++) {
        if (of(w)->bits & (DEVICE_CHECK_RACE | DEVICE_CHECK_ASYNC)) {
            check_far(&far, &m, r[i].offset, r[i].bytes, CHECK_FAR_READ);
            compare_spans(w, op, &r[i]);
        }
        if (of(w)->bits & DEVICE_CHECK_INIT)
            find_undefined(w, op, &r[i]);
    }
}

/* ---- registers ------------------------------------------------------------------------------- */

static struct check_wgmma *state_of(struct sim_warp *w, uint32_t words)
{
    struct check_warp *cw = &w->block->check->warp[w->index];
    struct check_wgmma *g = cw->wgmma;
    if (!g && !(g = cw->wgmma = calloc(1, sizeof *g))) {
        of(w)->starved = true;
        return NULL;
    }
    if (words && !g->busy) {
        g->busy = calloc(words, sizeof *g->busy);
        g->dirty = calloc(words, sizeof *g->dirty);
    }
    if (words && (!g->busy || !g->dirty)) {
        of(w)->starved = true;
        return NULL;
    }
    return g;
}

static bool meet(const uint64_t *a, const uint64_t *b, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        if (a[i] & b[i])
            return true;
    return false;
}

static void unite(uint64_t *to, const uint64_t *more, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        to[i] |= more[i];
}

/* Finds a register of a wgmma in flight among those that a record touches. */
static void find_busy(struct sim_warp *w, const struct sim_op *op, const struct check_wgmma *g,
                      const uint64_t *set, uint32_t words)
{
    const uint32_t lane = (uint32_t)__builtin_ctz(w->em ? w->em : 1);
    for (uint32_t i = 0; i < g->nflight; i++) {
        const struct check_touch *t = of(w)->op[g->flight[i].op].touch;
        if (!meet(t->all, set, words))
            continue;
        check_find(of(w), &(struct check_finding){
                              .kind = CHECK_F_REGISTER,
                              .at = {(uint32_t)(op - w->code), w->index * SIM_LANES + lane,
                                     w->block->index},
                              .other = {g->flight[i].op, w->index * SIM_LANES, w->block->index},
                              .count = 1,
                              .mask = g->flight[i].group == g->group.n});
        return;
    }
}

static const struct sim_op *on_register(struct sim_warp *w, const struct sim_op *op)
{
    const struct check_op *o = &of(w)->op[op - w->code];
    if (w->block->check && w->em) {
        struct check_wgmma *g = state_of(w, o->touch->words);
        if (g && g->nflight && meet(g->busy, o->touch->all, o->touch->words))
            find_busy(w, op, g, o->touch->all, o->touch->words);
        if (g)
            unite(g->dirty, o->touch->all, o->touch->words);
    }
    return o->past[w->part || w->em != UINT32_MAX](w, op);
}

static void find_unfenced(struct sim_warp *w, const struct sim_op *op, bool ever)
{
    const struct check_side at = {(uint32_t)(op - w->code), w->index * SIM_LANES, w->block->index};
    check_find(of(w),
               &(struct check_finding){
                   .kind = CHECK_F_WGFENCE, .at = at, .other = at, .count = 1, .mask = ever});
}

static bool remember(struct check_wgmma *g, uint32_t op)
{
    if (g->nflight == g->cap) {
        const uint32_t cap = g->cap ? 2 * g->cap : 16;
        void *grown = realloc(g->flight, cap * sizeof *g->flight);
        if (!grown)
            return false;
        g->flight = grown;
        g->cap = cap;
    }
    g->flight[g->nflight].op = op;
    g->flight[g->nflight++].group = g->group.n;
    return true;
}

static void take_registers(struct sim_warp *w, const struct sim_op *op, const struct check_touch *t)
{
    struct check_wgmma *g = t ? state_of(w, t->words) : NULL;
    if (!g || !(of(w)->bits & DEVICE_CHECK_ASYNC))
        return;
    if (!g->fenced || meet(g->dirty, t->all, t->words))
        find_unfenced(w, op, g->fenced);
    /* sums of one may be those of the next, but not its A */
    for (uint32_t i = 0; i < g->nflight; i++) {
        const struct check_touch *before = of(w)->op[g->flight[i].op].touch;
        for (uint32_t k = 0; k < t->words; k++)
            if ((t->all[k] & ~t->sums[k] & before->sums[k]) ||
                (t->sums[k] & before->all[k] & ~before->sums[k])) {
                find_busy(w, op, g, t->all, t->words);
                break;
            }
    }
    if (!remember(g, (uint32_t)(op - w->code)))
        of(w)->starved = true;
    unite(g->busy, t->all, t->words);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

void sim_check_wgmma(struct sim_warp *w, const struct sim_op *op, const struct sim_wgmma_reads *r,
                     uint32_t n)
{
    read_shared(w, op, r, n);
    take_registers(w, op, of(w)->op[op - w->code].touch);
}

void sim_check_wgmma_fence(struct sim_warp *w)
{
    struct check_wgmma *g = state_of(w, of(w)->words);
    if (!g)
        return;
    g->fenced = true;
    if (g->dirty)
        memset(g->dirty, 0, of(w)->words * sizeof *g->dirty);
}

void sim_check_wgmma_commit(struct sim_warp *w)
{
    struct check_wgmma *g = state_of(w, 0);
    if (g)
        check_commit(of(w), &g->group);
}

/* What its warpgroup has read in the groups that a warp has waited for; each warp has committed the
 * same. */
static uint32_t read_up_to(const struct sim_warp *w, uint32_t groups)
{
    const uint32_t first = w->index / SIM_WARPGROUP * SIM_WARPGROUP;
    uint32_t clock = 0;
    for (uint32_t i = first; i < first + SIM_WARPGROUP && i < w->block->nwarp; i++) {
        const struct check_wgmma *g = w->block->check->warp[i].wgmma;
        const uint32_t pending = g && g->group.n >= groups ? g->group.n - groups : 0;
        const uint32_t its = g ? check_committed(&g->group, pending) : 0;
        clock = its > clock ? its : clock;
    }
    return clock;
}

void sim_check_wgmma_wait(struct sim_warp *w, uint32_t pending)
{
    struct check_wgmma *g = state_of(w, 0);
    if (!g || g->group.n <= pending)
        return;
    const uint32_t groups = g->group.n - pending;
    const uint16_t agent = (uint16_t)(CHECK_A_WGMMA + w->index / SIM_WARPGROUP);
    const struct check_fact fact = {(uint32_t)w->block->index, read_up_to(w, groups), agent, agent};
    check_learn_fact(w, w->live, &fact);
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->nflight; i++)
        if (g->flight[i].group >= groups)
            g->flight[n++] = g->flight[i];
    if (n == g->nflight || !g->busy)
        return;
    g->nflight = n;
    memset(g->busy, 0, of(w)->words * sizeof *g->busy);
    for (uint32_t i = 0; i < n; i++)
        unite(g->busy, of(w)->op[g->flight[i].op].touch->all, of(w)->words);
}

void check_wgmma_left(const struct sim_block *b)
{
    for (uint32_t i = 0; i < b->nwarp; i++) {
        const struct check_wgmma *g = b->check->warp[i].wgmma;
        if (!g || !g->nflight)
            continue;
        const struct check_side at = {g->flight[g->nflight - 1].op, i * SIM_LANES, b->index};
        check_find(b->launch->check, &(struct check_finding){
                                         .kind = CHECK_F_LEFT, .at = at, .other = at, .count = 1});
    }
}

void check_wgmma_end(struct sim_block *b)
{
    for (uint32_t i = 0; i < b->nwarp; i++) {
        struct check_wgmma *g = b->check->warp[i].wgmma;
        if (!g)
            continue;
        free(g->flight);
        free(g->busy);
        free(g->dirty);
        free(g);
        b->check->warp[i].wgmma = NULL;
    }
}

/* ---- which records --------------------------------------------------------------------------- */

static bool is_wgmma(const struct ptx_inst *in)
{
    return ptx_op_family(in->op) == PTX_FAMILY_WGMMA;
}

/* Calls see() for each register of an operand. */
static void each(const struct ptx_operand *o, void (*see)(void *to, int32_t reg), void *to)
{
    if (o->kind == PTX_O_REG || o->kind == PTX_O_MEM) {
        if (o->reg >= 0)
            see(to, o->reg);
        if (o->kind == PTX_O_REG && o->reg2 >= 0)
            see(to, o->reg2);
    }
    for (uint32_t i = 0; i < o->nelem; i++)
        each(&o->elem[i], see, to);
}

struct numbering {
    uint32_t *number; /* by register, from 1 */
    uint32_t n;
};

static void count_register(void *to, int32_t reg)
{
    struct numbering *k = to;
    if (!k->number[reg])
        k->number[reg] = ++k->n;
}

struct gathering {
    const uint32_t *number;
    uint64_t *set;
    bool any;
};

static void gather_register(void *to, int32_t reg)
{
    struct gathering *g = to;
    if (!g->number[reg])
        return;
    const uint32_t bit = g->number[reg] - 1;
    g->set[bit / 64] |= (uint64_t)1 << bit % 64;
    g->any = true;
}

/* D, and A where that is in registers. */
static uint32_t operands_of(const struct ptx_inst *in)
{
    return in->operand[1].kind == PTX_O_VEC ? 2 : 1;
}

/* The registers of an instruction that are of interest; NULL: none. */
static struct check_touch *touch_of(struct arena *a, const struct ptx_inst *in,
                                    const uint32_t *number, uint32_t words)
{
    struct check_touch *t = arena_alloc(a, sizeof *t + 2 * words * sizeof t->all[0]);
    struct gathering g = {number, t->all, false};
    memset(t, 0, sizeof *t + 2 * words * sizeof t->all[0]);
    t->words = words;
    t->wgmma = is_wgmma(in);
    t->sums = t->all + words;
    for (uint32_t i = 0; i < in->noperand && (!t->wgmma || i < operands_of(in)); i++)
        each(&in->operand[i], gather_register, &g);
    g.set = t->sums;
    if (t->wgmma)
        each(&in->operand[0], gather_register, &g);
    return g.any ? t : NULL;
}

void check_registers(struct check *c, const struct sim_code *code)
{
    const struct ptx_func *f = code->func;
    struct arena *a = c->launch->arena;
    struct numbering k = {.number = ARENA_ARRAY(a, f->regs.n + 1, uint32_t)};
    for (size_t i = 0; i < f->items.n; i++) {
        const struct ptx_inst *in = &f->items.v[i].inst;
        for (uint32_t x = 0;
             f->items.v[i].kind == PTX_I_INST && is_wgmma(in) && x < operands_of(in); x++)
            each(&in->operand[x], count_register, &k);
    }
    c->words = (k.n + 63) / 64;
    if (!k.n)
        return;
    struct check_touch **by_item = ARENA_ARRAY(a, f->items.n, struct check_touch *);
    for (size_t i = 0; i < f->items.n; i++)
        if (f->items.v[i].kind == PTX_I_INST)
            by_item[i] = touch_of(a, &f->items.v[i].inst, k.number, c->words);
    for (uint32_t i = 0; i < code->nop && i < CHECK_OPS; i++) {
        struct sim_op *op = &code->op[i];
        struct check_op *o = &c->op[i];
        o->touch = op->item < f->items.n ? by_item[op->item] : NULL;
        if (!o->touch || o->touch->wgmma || !op->fn[0])
            continue;
        o->past[0] = op->fn[0];
        o->past[1] = op->fn[1];
        op->fn[0] = op->fn[1] = on_register;
    }
}
