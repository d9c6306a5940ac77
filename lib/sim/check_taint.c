/* Undefined values: those of bytes that nothing has written, and those that a shuffle took from a
 * lane which takes no part in it.
 *
 * They do no harm until they are used: a merge reads one key past its last, a reduction over fewer
 * lanes than a warp has takes values from the others, and both throw them away. So the warp
 * remembers which lanes of which registers hold one, arithmetic and selections hand it on, and what
 * can't be undone (a store, an address, a branch, a vote) makes it a finding. Only records that
 * read or write registers to which such a value can come have this function before them.
 */
#include <config.h>

#include "sim/check.h"

#include <stdlib.h>

#include "sim/decode.h"
#include "sim/matrix.h"

enum use {
    USE_NONE,
    USE_PASSES, /* d from a, b, c, e */
    USE_SELECTS,
    USE_SHUFFLES,
    USE_LOADS,   /* d, and of vectors b, c, e; the address is a */
    USE_STORES,  /* likewise */
    USE_ATOMIC,  /* d; b, c; the address is a */
    USE_VOTES,   /* the predicate a; d is defined */
    USE_MEETS,   /* a; d is defined */
    USE_GUARD,   /* the predicate a */
    USE_BRANCH,  /* the guard */
    USE_DEFINES, /* d, and the predicate imm */
    USE_COPIES,  /* cp.async: a, b, c and the predicate e */
    USE_TURNS,   /* movmatrix: d from a */
    USE_MMA,     /* sim_mma's d from a, b, c */
};

static enum use use_of(const struct sim_build *b, const struct sim_op *op, uint16_t *row)
{
    uint16_t id = 1;
    while (id < SIM_H_COUNT && op->fn[0] != b->h[id].full && op->fn[0] != b->h[id].mod)
        id++;
    *row = id;
    switch (id) {
    case SIM_H_SELP_16:
    case SIM_H_SELP_32:
    case SIM_H_SELP_64: return USE_SELECTS;
    case SIM_H_SHFL: return USE_SHUFFLES;
    case SIM_H_VOTE: return USE_VOTES;
    case SIM_H_MATCH:
    case SIM_H_REDUX: return USE_MEETS;
    case SIM_H_GUARD: return USE_GUARD;
    case SIM_H_BRA:
    case SIM_H_EXIT: return USE_BRANCH;
    case SIM_H_ACTIVEMASK:
    case SIM_H_CLOCK: return USE_DEFINES;
    case SIM_H_PMOV:
    case SIM_H_PNOT:
    case SIM_H_PAND:
    case SIM_H_POR:
    case SIM_H_PXOR: return USE_PASSES;
    case SIM_H_ATOM_16:
    case SIM_H_ATOM_32:
    case SIM_H_ATOM_64:
    case SIM_H_ATOM_128: return USE_ATOMIC;
    case SIM_H_COPY: return USE_COPIES;
    case SIM_H_LDMATRIX: return USE_LOADS;
    case SIM_H_STMATRIX: return USE_STORES;
    case SIM_H_MOVMATRIX: return USE_TURNS;
    case SIM_H_MMA_FLOAT:
    case SIM_H_MMA_INT:
    case SIM_H_MMA_BIT:
    case SIM_H_MMA_F64: return USE_MMA;
    default: break;
    }
    if (id >= SIM_H_LD_U8 && id <= SIM_H_LD_VEC)
        return op->flags & SIM_STORES ? USE_STORES : USE_LOADS;
    if (id >= SIM_H_ST_8 && id <= SIM_H_ST_VEC)
        return USE_STORES;
    return id < SIM_H_COUNT && sim_rows[id].d != SIM_T_none ? USE_PASSES : USE_NONE;
}
_Static_assert(SIM_H_LD_64 - SIM_H_LD_U8 == 12 && SIM_H_ST_64 - SIM_H_ST_8 == 6 &&
                   SIM_H_LD_VEC == SIM_H_ST_64 + 1 && SIM_H_ST_VEC == SIM_H_LD_VEC + 1,
               "the handlers in between are all loads, or stores");

/* The slots that a record reads and writes, as far as this matters; 0: none. */
struct slots {
    uint32_t in[6], out[4];
};

static struct slots slots_of(const struct sim_op *op, const struct check_op *o)
{
    const struct sim_row *row = o->row < SIM_H_COUNT ? &sim_rows[o->row] : &sim_rows[0];
    const bool fixed = o->use == USE_PASSES && row->a == SIM_T_none; /* predicate logic */
    const bool vector = op->fn[0] && (o->row == SIM_H_LD_VEC || o->row == SIM_H_ST_VEC ||
                                      o->row == SIM_H_LDMATRIX || o->row == SIM_H_STMATRIX);
    switch ((enum use)o->use) {
    case USE_PASSES:
        return (struct slots){
            {op->a, fixed || row->b ? op->b : 0, row->c ? op->c : 0, row->c ? op->e : 0}, {op->d}};
    case USE_SELECTS: return (struct slots){{op->a, op->b, op->c}, {op->d}};
    case USE_SHUFFLES: return (struct slots){{op->a, op->b}, {op->d, (uint32_t)op->imm}};
    case USE_LOADS:
        return (struct slots){{op->a},
                              {op->d, vector ? op->b : 0, vector ? op->c : 0, vector ? op->e : 0}};
    case USE_STORES:
        return (struct slots){
            {op->a, op->d, vector ? op->b : 0, vector ? op->c : 0, vector ? op->e : 0}, {0}};
    case USE_ATOMIC:
        if (op->fn[0] && o->row == SIM_H_ATOM_128)
            return (struct slots){
                {op->a, op->b, op->b + 8 * SIM_LANES, op->c, op->c + 8 * SIM_LANES},
                {op->d, op->d + 8 * SIM_LANES}};
        return (struct slots){{op->a, op->b, op->c}, {op->d}};
    case USE_VOTES:
    case USE_MEETS: return (struct slots){{op->a, op->e}, {op->d}};
    case USE_GUARD: return (struct slots){{op->a}, {0}};
    case USE_BRANCH: return (struct slots){{op->guard == SIM_NO_GUARD ? 0 : op->guard}, {0}};
    case USE_DEFINES: return (struct slots){{0}, {op->d}};
    case USE_COPIES: return (struct slots){{op->a, op->b, op->c, op->e}, {0}};
    case USE_TURNS: return (struct slots){{op->a}, {op->d}};
    case USE_MMA: /* has more of them: mma_reads(), mma_writes() */
    case USE_NONE: break;
    }
    return (struct slots){0};
}

/* ---- while it runs --------------------------------------------------------------------------- */

static struct check_taint *find(struct check_warp *cw, uint32_t slot)
{
    for (uint32_t i = 0; i < cw->ntaint; i++)
        if (cw->taint[i].slot == slot)
            return &cw->taint[i];
    return NULL;
}

static uint32_t tainted(struct check_warp *cw, uint32_t slot)
{
    const struct check_taint *t = slot ? find(cw, slot) : NULL;
    return t ? t->lanes : 0;
}

/* Notes that among these lanes of a slot those in from->lanes hold such a value, as it says. */
static void set(struct check_warp *cw, uint32_t slot, uint32_t lanes,
                const struct check_taint *from)
{
    struct check_taint *t = slot ? find(cw, slot) : NULL;
    if (!slot || (!t && !from->lanes))
        return;
    if (!t) {
        if (!cw->taint)
            cw->taint = calloc(CHECK_TAINTS, sizeof *cw->taint);
        if (!cw->taint || cw->ntaint == CHECK_TAINTS)
            return;
        t = &cw->taint[cw->ntaint++];
        t->lanes = 0;
    }
    const uint32_t now = (t->lanes & ~lanes) | from->lanes;
    if (from->lanes) {
        struct check_taint old = *t;
        *t = *from;
        FOR_LANES(lane, old.lanes & ~lanes) {
            t->address[lane] = old.address[lane];
            t->bits[lane] = old.bits[lane];
        }
    }
    t->slot = slot;
    t->lanes = now;
    if (!now)
        *t = cw->taint[--cw->ntaint];
}

void check_taint(struct sim_warp *w, uint32_t slot, const struct check_taint *t)
{
    struct check_block *cb = w->block->check;
    set(&cb->warp[w->index], slot, t->lanes, t);
}

static void report(struct sim_warp *w, const struct sim_op *op, const struct check_taint *t,
                   uint32_t lanes)
{
    const uint32_t lane = (uint32_t)__builtin_ctz(lanes), thread = w->index * SIM_LANES + lane;
    struct check_finding f = {.kind = t->loaded ? CHECK_F_INIT : CHECK_F_SOURCE,
                              .at = {t->op, thread, w->block->index},
                              .other = {(uint32_t)(op - w->code), thread, w->block->index},
                              .count = (unsigned)__builtin_popcount(lanes),
                              .mask = t->mask,
                              .source = t->source};
    if (t->loaded) {
        f.address = t->address[lane];
        f.space = t->space;
        f.bytes = t->bytes;
    }
    check_find(w->block->launch->check, &f);
}

/* The lane that a shuffle takes its value from (PTX ISA, shfl.sync). */
static uint32_t source_lane(const struct sim_warp *w, const struct sim_op *op, uint32_t lane)
{
    const int bval = (int)(sim_word(w, op->b, lane) & 31), c = (int)sim_word(w, op->c, lane);
    const int segment = c >> 8 & 31, clamp = c & 31, self = (int)lane;
    const int least = self & segment, most = least | (clamp & ~segment);
    const int j = op->more == 0   ? self - bval
                  : op->more == 1 ? self + bval
                  : op->more == 2 ? self ^ bval
                                  : least | (bval & ~segment);
    const bool ok = op->more == 0 ? j >= most : j <= most;
    return (uint32_t)(ok ? j : self);
}

/* Do all lanes of the warp take part, each with a mask that names all? */
static bool whole(const struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    uint32_t masks = UINT32_MAX;
    for (uint32_t i = 0; i < SIM_LANES; i++)
        masks &= sim_word(w, op->e, i);
    return (masks & lanes & w->live) == UINT32_MAX;
}

static void shuffle(struct sim_warp *w, struct check_warp *cw, const struct sim_op *op,
                    uint32_t lanes)
{
    if (!cw->ntaint && whole(w, op, lanes))
        return;
    const struct check_taint *old = cw->ntaint ? find(cw, op->a) : NULL;
    const bool sync = w->block->launch->check->bits & DEVICE_CHECK_SYNC;
    struct check_taint own = {.op = (uint32_t)(op - w->code)}, passed = {0};
    uint32_t seen = 0;
    if (old)
        passed = *old;
    passed.lanes = 0;
    FOR_LANES(lane, lanes) {
        const uint32_t mask = sim_word(w, op->e, lane);
        const uint32_t source = source_lane(w, op, lane);
        if (!(mask & w->live & 1u << source)) {
            own.lanes |= sync ? 1u << lane : 0;
            own.mask = seen ? own.mask : mask;
            own.source = seen++ ? own.source : source;
        } else if (old && old->lanes >> source & 1) {
            passed.lanes |= 1u << lane;
            passed.address[lane] = old->address[source];
            passed.bits[lane] = old->bits[source];
        }
    }
    set(cw, op->d, lanes, own.lanes ? &own : &passed);
}

static uint32_t lanes_of(const struct sim_warp *w, const struct check_op *o,
                         const struct sim_op *op)
{
    const bool matrix = o->row >= SIM_H_LDMATRIX && o->row <= SIM_H_MMA_F64;
    _Static_assert(SIM_H_MMA_F64 - SIM_H_LDMATRIX == 6, "the handlers in between are of matrices");
    const bool control = o->use == USE_BRANCH || o->use == USE_SHUFFLES || o->use == USE_VOTES ||
                         o->use == USE_MEETS || matrix;
    if (control && op->guard != SIM_NO_GUARD) {
        const uint32_t p = sim_word(w, op->guard, 0);
        return w->mask & (op->flags & SIM_GUARD_NOT ? ~p : p);
    }
    return control || o->use == USE_GUARD ? w->mask : w->em;
}

/* Adds lanes of t to what is known of a result: all of it is undefined, or of a copy the same
 * bytes. */
static void join(struct check_taint *sum, const struct check_taint *t, uint32_t lanes, bool copy)
{
    const struct check_taint old = *sum;
    *sum = *t;
    sum->lanes = old.lanes | lanes;
    if (!copy)
        memset(sum->bits, 0, sizeof sum->bits);
    FOR_LANES(lane, old.lanes & ~lanes) {
        sum->address[lane] = old.address[lane];
        sum->bits[lane] = old.bits[lane];
    }
}

/* Leaves out of a result what its operands' defined bits settle. */
static void refine(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                   struct check_taint *sum)
{
    FOR_LANES(lane, sum->lanes) {
        uint64_t bits;
        if (!check_result_bits(w, op, o->row, lane, &bits))
            continue;
        sum->bits[lane] = bits;
        if (!bits)
            sum->lanes &= ~(1u << lane);
    }
}

/* What a predicate's other operand settles: false and x, true or x. */
static uint32_t settled_by(const struct sim_warp *w, const struct check_op *o, uint32_t other)
{
    const uint32_t v = sim_word(w, other, 0);
    return o->row == SIM_H_PAND ? ~v : o->row == SIM_H_POR ? v : 0;
}

uint64_t check_undefined_bits(struct sim_warp *w, uint32_t slot, uint32_t lane)
{
    const struct check_taint *t = find(&w->block->check->warp[w->index], slot);
    if (!t || !(t->lanes >> lane & 1))
        return 0;
    return t->bits[lane] ? t->bits[lane] : UINT64_MAX;
}

uint8_t check_tainted(struct sim_warp *w, uint32_t slot, uint32_t lane)
{
    const uint64_t bits = check_undefined_bits(w, slot, lane);
    uint8_t bytes = 0;
    for (unsigned k = 0; k < 8; k++)
        if ((bits >> 8 * k & 0xff) == 0xff)
            bytes |= (uint8_t)(1u << k);
    return bytes;
}

/* The lanes that store to local memory: to a thread's own variables, which is a copy and no use. */
static uint32_t stores_to_itself(struct sim_warp *w, const struct check_op *o,
                                 const struct sim_op *op)
{
    struct check_aim aim;
    uint32_t lanes = 0;
    if (o->use != USE_STORES || o->kind != CHECK_STORE || o->matrix)
        return 0;
    if (op->more != SIM_IN_GENERIC)
        return op->more == SIM_IN_LOCAL ? UINT32_MAX : 0;
    w->block->launch->build->check_aim(w, op, &aim);
    for (uint32_t i = 0; i < SIM_LANES; i++)
        lanes |= aim.at[i] >> SIM_WINDOW_BITS == SIM_WINDOW_LOCAL ? 1u << i : 0;
    return lanes;
}

static void pass(struct sim_warp *w, struct check_warp *cw, const struct check_op *o,
                 const struct sim_op *op, uint32_t lanes)
{
    const struct slots s = slots_of(op, o);
    const bool decides = o->use >= USE_LOADS && o->use != USE_DEFINES;
    const bool rows = o->row == SIM_H_LDMATRIX || o->row == SIM_H_STMATRIX;
    const uint32_t p = o->use == USE_SELECTS ? sim_word(w, op->c, 0) : 0;
    const uint32_t copied = stores_to_itself(w, o, op);
    struct check_taint sum = {0};
    /* a branch is decided by all lanes that are there */
    const uint32_t readers = o->use == USE_BRANCH ? w->mask : lanes;
    /* the lanes that have addresses of rows */
    const uint32_t first =
        rows ? (uint32_t)(((uint64_t)1 << 8 * (op->round & SIM_MATRIX_COUNT)) - 1) : UINT32_MAX;
    for (int i = 0; i < 6; i++) {
        uint32_t in = tainted(cw, s.in[i]) & readers & (i == 0 ? first : UINT32_MAX);
        if (o->use == USE_SELECTS && i < 2)
            in &= i == 0 ? p : ~p;
        if (i < 2 && (o->row == SIM_H_PAND || o->row == SIM_H_POR))
            in &= ~settled_by(w, o, s.in[1 - i]) | tainted(cw, s.in[1 - i]);
        if (!in)
            continue;
        const struct check_taint *t = find(cw, s.in[i]);
        const uint32_t used = i == 0 ? in : in & ~copied;
        if (decides && used)
            report(w, op, t, used);
        join(&sum, t, in, o->use == USE_SELECTS);
    }
    if (decides)
        sum.lanes = 0;
    else if (o->use == USE_PASSES)
        refine(w, o, op, &sum);
    for (int i = 0; i < 4; i++)
        set(cw, s.out[i], lanes, &sum);
}

/* ---- matrices -------------------------------------------------------------------------------- */

/* Some lanes of a slot get values that are undefined as t says, by what its lane `from` held; the
 * others' are defined. */
static void set_from(struct check_warp *cw, uint32_t slot, uint32_t lanes,
                     const struct check_taint *t, uint32_t from)
{
    struct check_taint sum = {0};
    if (t && lanes) {
        const uint64_t address = t->address[from];
        sum = *t;
        for (uint32_t i = 0; i < SIM_LANES; i++)
            sum.address[i] = address;
    }
    sum.lanes = t ? lanes : 0;
    set(cw, slot, UINT32_MAX, &sum);
}

/* movmatrix: row r, columns 2 t and 2 t + 1 are in lane 4 r + t. */
static void turn(struct check_warp *cw, const struct sim_op *op)
{
    const struct check_taint *t = find(cw, op->a);
    const struct check_taint old = t ? *t : (struct check_taint){0};
    uint32_t lanes = 0;
    FOR_LANES(lane, old.lanes) {
        const uint32_t r = lane / 4, col = lane % 4 * 2;
        lanes |= 1u << (4 * col + r / 2) | 1u << (4 * col + 4 + r / 2);
    }
    set_from(cw, op->d, lanes, &old, old.lanes ? (uint32_t)__builtin_ctz(old.lanes) : 0);
}

/* Rows of A, or columns of B, with undefined values; the register and lane of one. */
static uint32_t undefined_rows(struct check_warp *cw, const uint32_t *slot, uint32_t n,
                               uint32_t halves, struct check_taint *one, uint32_t *lane)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct check_taint *t = find(cw, slot[i]);
        FOR_LANES(at, t ? t->lanes : 0) {
            if (!rows) {
                *one = *t;
                *lane = at;
            }
            rows |= 1u << (at / 4 + i % halves * 8);
        }
    }
    return rows;
}

/* An undefined row of A makes that row of D undefined, an undefined column of B that column, an
 * element of C itself. */
static void multiply(struct check_warp *cw, const struct sim_mma *m)
{
    struct check_taint one = {0};
    uint32_t from = 0, rows = 0, cols = 0, in[8];
    for (uint32_t i = 0; i < m->nc; i++) {
        const struct check_taint *t = find(cw, m->c[i]);
        in[i] = t ? t->lanes : 0;
        if (in[i]) {
            one = *t;
            from = (uint32_t)__builtin_ctz(in[i]);
        }
    }
    if (!m->quads) { /* m8n8k4 has an order of its own */
        rows = undefined_rows(cw, m->a, m->na, m->m / 8, &one, &from);
        cols = undefined_rows(cw, m->b, m->nb, 1, &one, &from);
    }
    for (uint32_t i = 0; i < m->nc; i++) {
        uint32_t lanes = in[i];
        for (uint32_t lane = 0; (rows | cols) && lane < SIM_LANES; lane++) {
            const uint32_t row = lane / 4 + (m->half ? i : i / 2) * 8;
            const uint32_t pair = cols >> lane % 4 * 2 & 3;
            const bool col = m->half ? pair : pair >> i % 2 & 1;
            lanes |= (rows >> row & 1) || col ? 1u << lane : 0;
        }
        set_from(cw, m->d[i], lanes, &one, from);
    }
}

static const struct sim_op *on_value(struct sim_warp *w, const struct sim_op *op)
{
    const struct check_op *o = &w->block->launch->check->op[op - w->code];
    struct check_block *cb = w->block->check;
    if (cb) {
        struct check_warp *cw = &cb->warp[w->index];
        if (o->use == USE_SHUFFLES)
            shuffle(w, cw, op, lanes_of(w, o, op));
        else if (cw->ntaint && (o->use == USE_MMA || o->use == USE_TURNS)) {
            if (lanes_of(w, o, op) == UINT32_MAX && o->use == USE_MMA)
                multiply(cw, sim_mma_of(op));
            else if (lanes_of(w, o, op) == UINT32_MAX)
                turn(cw, op);
        } else if (cw->ntaint)
            pass(w, cw, o, op, lanes_of(w, o, op));
    }
    return o->next[w->part || w->em != UINT32_MAX](w, op);
}

/* ---- which records --------------------------------------------------------------------------- */

static bool reads_any(const struct slots *s, const bool *may)
{
    for (int i = 0; i < 6; i++)
        if (s->in[i] && may[s->in[i] / 4])
            return true;
    return false;
}

static bool writes_any(const struct slots *s, const bool *may)
{
    for (int i = 0; i < 4; i++)
        if (s->out[i] && may[s->out[i] / 4])
            return true;
    return false;
}

static bool mma_reads_any(const struct sim_mma *m, const bool *may)
{
    bool any = false;
    for (uint32_t i = 0; i < m->na; i++)
        any |= may[m->a[i] / 4];
    for (uint32_t i = 0; i < m->nb; i++)
        any |= may[m->b[i] / 4];
    for (uint32_t i = 0; i < m->nc; i++)
        any |= may[m->c[i] / 4];
    return any;
}

static bool mma_writes_any(const struct sim_mma *m, const bool *may)
{
    bool any = false;
    for (uint32_t i = 0; i < m->nc; i++)
        any |= may[m->d[i] / 4];
    return any;
}

/* The registers that a record which reads an undefined value may pass it to; true: one of them is
 * news. */
static bool spread(const struct sim_op *op, const struct check_op *o, bool *may)
{
    bool news = false;
    if (o->use == USE_MMA) {
        const struct sim_mma *m = sim_mma_of(op);
        for (uint32_t i = 0; i < m->nc && mma_reads_any(m, may); i++) {
            news |= !may[m->d[i] / 4];
            may[m->d[i] / 4] = true;
        }
        return news;
    }
    const struct slots s = slots_of(op, o);
    if ((o->use == USE_PASSES || o->use == USE_SELECTS || o->use == USE_TURNS) &&
        !may[s.out[0] / 4] && reads_any(&s, may))
        news = may[s.out[0] / 4] = true;
    return news;
}

void check_taints(struct check *c, const struct sim_code *code, const struct sim_build *build)
{
    bool *may = ARENA_ARRAY(c->launch->arena, code->file_bytes / 4 + 1, bool), changed = false;
    for (uint32_t i = 0; i < code->nop; i++) {
        c->op[i].use = (uint8_t)use_of(build, &code->op[i], &c->op[i].row);
        const struct slots s = slots_of(&code->op[i], &c->op[i]);
        const bool gives = (c->op[i].use == USE_SHUFFLES) ||
                           (c->op[i].use == USE_LOADS && c->bits & DEVICE_CHECK_INIT);
        for (int k = 0; gives && k < 4; k++)
            if (s.out[k])
                changed = may[s.out[k] / 4] = true;
    }
    if (!changed)
        return;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < code->nop; i++)
            changed |= spread(&code->op[i], &c->op[i], may);
    }
    for (uint32_t i = 0; i < code->nop; i++) {
        const struct slots s = slots_of(&code->op[i], &c->op[i]);
        c->op[i].tainted = reads_any(&s, may) || writes_any(&s, may);
        if (c->op[i].use == USE_MMA)
            c->op[i].tainted = mma_reads_any(sim_mma_of(&code->op[i]), may) ||
                               mma_writes_any(sim_mma_of(&code->op[i]), may);
    }
}

/* Behind the other instrumentation, before whose functions it stands. */
void check_instrument_taints(struct check *c, const struct sim_code *code)
{
    for (uint32_t i = 0; i < code->nop; i++) {
        struct check_op *o = &c->op[i];
        struct sim_op *op = &code->op[i];
        if (!o->tainted)
            continue;
        o->next[0] = op->fn[0];
        o->next[1] = op->fn[1];
        op->fn[0] = op->fn[1] = on_value;
    }
}
