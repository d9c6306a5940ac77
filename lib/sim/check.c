/* The sanitizer's part in a launch: which records it watches, and what it does at each of them. */
#include <config.h>

#include "sim/check.h"

#include <stdlib.h>

static const struct check_op *op_of(const struct sim_warp *w, const struct sim_op *op)
{
    return &w->block->launch->check->op[op - w->code];
}

const struct sim_op *check_handle(struct sim_warp *w, const struct check_op *o,
                                  const struct sim_op *op)
{
    return o->fn[w->em != UINT32_MAX](w, op);
}

/* ---- where accesses go ----------------------------------------------------------------------- */

static void aim_at(struct sim_warp *w, const struct sim_op *op, struct check_aim *aim)
{
    w->block->launch->build->check_aim(w, op, aim);
}

static enum sim_space space_of(unsigned space, uint64_t address)
{
    if (space != SIM_IN_GENERIC)
        return space;
    const uint64_t window = address >> SIM_WINDOW_BITS;
    return window == SIM_WINDOW_SHARED  ? SIM_IN_SHARED
           : window == SIM_WINDOW_LOCAL ? SIM_IN_LOCAL
                                        : SIM_IN_GLOBAL;
}

/* The memory around an address; bytes 0: none. A lane's local memory is a part of its block's. */
struct check_memory check_memory_at(const struct sim_warp *w, struct check_op *o, unsigned space,
                                    uint64_t address)
{
    const struct sim_block *b = w->block;
    struct check_memory m = {.space = space_of(space, address)};
    if (m.space == SIM_IN_SHARED) {
        m.origin = space == SIM_IN_GENERIC ? SIM_SHARED_BASE : 0;
        const uint64_t rank = (address - m.origin) >> SIM_RANK_SHIFT;
        if (rank > b->npeer)
            return m;
        if (rank)
            b = b->peer[rank - 1];
        m.origin += rank << SIM_RANK_SHIFT;
        m.shadow = &b->check->shared;
        m.host = b->shared;
        m.bytes = b->shared_bytes;
    } else if (m.space == SIM_IN_LOCAL) {
        m.shadow = &b->check->local;
        m.host = b->local;
        m.bytes = w->local_bytes;
        m.origin = space == SIM_IN_GENERIC ? SIM_LOCAL_BASE : 0;
    } else {
        if (!o->buffer || address - o->buffer->base >= o->buffer->bytes || o->buffer->released)
            o->buffer = sim_mem_near(b->launch->memory, address);
        if (!o->buffer || o->buffer->released)
            return m;
        m.shadow = o->buffer->shadow;
        m.host = o->buffer->host;
        m.bytes = o->buffer->bytes;
        m.origin = o->buffer->base;
    }
    return m;
}

/* The others the handler reports, or they belong to other memory. */
void check_inside(const struct check_memory *m, const struct sim_op *op, uint32_t lanes,
                  const struct check_aim *aim, struct check_access *x)
{
    *x = (struct check_access){.m = m, .at = aim->at, .origin = m->origin};
    if (m->bytes < op->size)
        return;
    const uint64_t last = m->bytes - op->size;
    if (aim->low - m->origin <= last && aim->high - m->origin <= last && !aim->skew) {
        x->lanes = lanes;
        x->row = aim->row;
        x->one = aim->low == aim->high;
        return;
    }
    FOR_LANES(i, lanes) {
        if (aim->at[i] - m->origin <= last && !(aim->at[i] & (op->size - 1u)))
            x->lanes |= 1u << i;
    }
}

static void look(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                 struct check_access *x)
{
    const struct check_memory *m = x->m;
    const struct sim_launch *l = w->block->launch;
    const unsigned bits = l->check->bits;
    /* what libraries do in the system's memory is not the program's: cooperative groups sets bits
     * of words that nobody has written, and lets shuffles order accesses */
    if (l->code->reserves && m->space == SIM_IN_SHARED &&
        check_offset(x, (uint32_t)__builtin_ctz(x->lanes)) >= m->bytes - SIM_RESERVED)
        return;
    if (m->space == SIM_IN_LOCAL) { /* each lane has its own */
        x->origin -= w->index * SIM_LANES * m->bytes;
        x->step = m->bytes;
        x->row = x->one = false;
    } else if (bits & DEVICE_CHECK_RACE ||
               (bits & DEVICE_CHECK_ASYNC && (m->space == SIM_IN_SHARED || l->check->flies))) {
        check_races(w, o, op, x);
    }
    if (!m->shadow->defined || (!m->shadow->undefined && !(o->tainted && m->space == SIM_IN_LOCAL)))
        return;
    if (o->kind == CHECK_LOAD && o->matrix)
        check_matrix_loads(w, op, x);
    else if (o->kind != CHECK_STORE)
        check_loads(w, o, op, x);
    if (o->writes)
        check_stores(w, o, op, x);
}

/* Lanes access shared memory, where `address` names the block of the cluster. */
static void touch_shared(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                         const struct check_access *x, uint64_t address)
{
    const uint32_t rank = (uint32_t)(address >> SIM_RANK_SHIFT);
    struct sim_block *b = rank ? w->block->peer[rank - 1] : w->block;
    if (b != w->block) {
        const struct check_slot s = check_slot_of(
            (uint32_t)w->block->index, w->block->launch->check->clock,
            w->index * SIM_LANES + (uint32_t)__builtin_ctz(x->lanes), (uint32_t)(op - w->code));
        check_remote(w, b, &s);
    }
    if (o->writes && b->check->nmbar)
        check_over_mbar(w, op, b, x);
}

/* Gives each lane's access its memory; most often all have the same. */
void check_watch(struct sim_warp *w, struct check_op *o, const struct sim_op *op,
                 const struct check_aim *aim)
{
    struct check_access x;
    for (uint32_t left = w->em; left;) {
        const uint32_t first = (uint32_t)__builtin_ctz(left);
        const struct check_memory m = check_memory_at(w, o, op->more, aim->at[first]);
        check_inside(&m, op, left, aim, &x);
        left &= ~(x.lanes | 1u << first);
        if (!x.lanes || !m.shadow)
            continue;
        if (m.space == SIM_IN_SHARED)
            touch_shared(w, o, op, &x, aim->at[first] & (SIM_SHARED_BASE - 1));
        look(w, o, op, &x);
    }
}

/* ---- the watched records --------------------------------------------------------------------- */

/* Does an access leave the variable that its address was made from? */
bool check_strays(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                  const struct check_aim *aim)
{
    if (aim->low >= o->low && aim->high < o->high && aim->high + op->size <= o->high)
        return false;
    FOR_LANES(i, w->em) {
        if (aim->at[i] >= o->low && aim->at[i] + op->size <= o->high)
            continue;
        struct sim_fault *f = &w->block->fault;
        sim_fault_at(w, op, i, SIM_F_BOUNDS);
        f->address = aim->at[i];
        f->bytes = op->size;
        f->store = op->flags & SIM_STORES;
        f->space = op->more;
        f->var = o->var;
        return true;
    }
    return false;
}

static const struct sim_op *on_access(struct sim_warp *w, const struct sim_op *op)
{
    struct check_op *o = &w->block->launch->check->op[op - w->code];
    struct check_aim aim;
    aim_at(w, op, &aim);
    if (o->var && check_strays(w, o, op, &aim))
        return NULL;
    check_watch(w, o, op, &aim);
    return check_handle(w, o, op);
}

/* Handles a record where nothing but that is checked, and several threads run the launch. */
static const struct sim_op *on_bounded(struct sim_warp *w, const struct sim_op *op)
{
    const struct check_op *o = op_of(w, op);
    struct check_aim aim;
    if (o->var) {
        aim_at(w, op, &aim);
        if (check_strays(w, o, op, &aim))
            return NULL;
    }
    return check_handle(w, o, op);
}

/* What a strong access's location publishes, before and after. */
static struct check_more *location(struct sim_warp *w, struct check_op *o, const struct sim_op *op,
                                   uint64_t address)
{
    const struct check_memory m = check_memory_at(w, o, op->more, address);
    const uint64_t offset = address - m.origin;
    return m.shadow && m.space != SIM_IN_LOCAL && offset < m.bytes ? check_more_at(m.shadow, offset)
                                                                   : NULL;
}

/* Has a compare-and-swap that found `old` written? */
static bool swapped(const struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                    const unsigned char *compare)
{
    const unsigned each = op->size > 4 ? 8 : 4;
    return memcmp(w->r + op->d + lane * each, compare + lane * each, op->size) == 0;
}

static const struct sim_op *on_strong(struct sim_warp *w, const struct sim_op *op)
{
    struct check_op *o = &w->block->launch->check->op[op - w->code];
    const uint32_t lanes = w->em;
    unsigned char compare[8 * SIM_LANES];
    struct check_aim aim;
    aim_at(w, op, &aim);
    if (o->var && check_strays(w, o, op, &aim))
        return NULL;
    check_watch(w, o, op, &aim);
    if (o->compares)
        memcpy(compare, w->r + op->b, (op->size > 4 ? 8 : 4) * SIM_LANES);
    const struct sim_op *next = check_handle(w, o, op);
    FOR_LANES(lane, next && check_tells(w, o) ? lanes : 0) {
        struct check_more *m = location(w, o, op, aim.at[lane]);
        if (!m)
            continue;
        if (o->kind != CHECK_STORE)
            check_observe(w, lane, o, m);
        if (o->writes && !(o->compares && !swapped(w, op, lane, compare)))
            check_publish(w, lane, o, o->kind == CHECK_ATOMIC, m);
    }
    return next;
}

uint32_t check_guarded(const struct sim_warp *w, const struct sim_op *op)
{
    uint32_t p = UINT32_MAX;
    if (op->guard != SIM_NO_GUARD)
        memcpy(&p, w->r + op->guard, sizeof p);
    return w->mask & (op->flags & SIM_GUARD_NOT ? ~p : p);
}

static const struct sim_op *on_fence(struct sim_warp *w, const struct sim_op *op)
{
    const struct check_op *o = op_of(w, op);
    if (w->block->check)
        check_fence(w, check_guarded(w, op), o->scope, o->acquire, o->release);
    return o->fn[w->part](w, op);
}

static const struct sim_op *on_proxy(struct sim_warp *w, const struct sim_op *op)
{
    const struct check_op *o = op_of(w, op);
    const uint32_t lanes = check_guarded(w, op);
    if (w->block->check && lanes)
        check_proxy_fence(w, op, lanes);
    return o->fn[w->part](w, op);
}

static const struct sim_op *on_meeting(struct sim_warp *w, const struct sim_op *op)
{
    const struct check_op *o = op_of(w, op);
    if (w->block->check)
        check_masks(w, op, check_guarded(w, op));
    return o->fn[w->part](w, op);
}

/* ---- instrumenting --------------------------------------------------------------------------- */

static const struct {
    uint16_t handler;
    uint8_t kind;
    bool wide;
} watched[] = {
    {SIM_H_LD_U8, CHECK_LOAD, 0},       {SIM_H_LD_S8, CHECK_LOAD, 0},
    {SIM_H_LD_S8_H, CHECK_LOAD, 0},     {SIM_H_LD_U16, CHECK_LOAD, 0},
    {SIM_H_LD_S16, CHECK_LOAD, 0},      {SIM_H_LD_32, CHECK_LOAD, 0},
    {SIM_H_LD_U8_W, CHECK_LOAD, 0},     {SIM_H_LD_S8_W, CHECK_LOAD, 0},
    {SIM_H_LD_U16_W, CHECK_LOAD, 0},    {SIM_H_LD_S16_W, CHECK_LOAD, 0},
    {SIM_H_LD_U32_W, CHECK_LOAD, 0},    {SIM_H_LD_S32_W, CHECK_LOAD, 0},
    {SIM_H_LD_64, CHECK_LOAD, 0},       {SIM_H_LD_VEC, CHECK_LOAD, 0},
    {SIM_H_ST_8, CHECK_STORE, 0},       {SIM_H_ST_16, CHECK_STORE, 0},
    {SIM_H_ST_32, CHECK_STORE, 0},      {SIM_H_ST_8_W, CHECK_STORE, 1},
    {SIM_H_ST_16_W, CHECK_STORE, 1},    {SIM_H_ST_32_W, CHECK_STORE, 1},
    {SIM_H_ST_64, CHECK_STORE, 1},      {SIM_H_ST_VEC, CHECK_STORE, 0},
    {SIM_H_ATOM_16, CHECK_ATOMIC, 0},   {SIM_H_ATOM_32, CHECK_ATOMIC, 0},
    {SIM_H_ATOM_64, CHECK_ATOMIC, 1},   {SIM_H_ATOM_128, CHECK_ATOMIC, 1},
    {SIM_H_SHFL, CHECK_MEETING, 0},     {SIM_H_VOTE, CHECK_MEETING, 0},
    {SIM_H_MATCH, CHECK_MEETING, 0},    {SIM_H_REDUX, CHECK_MEETING, 0},
    {SIM_H_WARPSYNC, CHECK_MEETING, 0}, {SIM_H_LDMATRIX, CHECK_LOAD, 0},
    {SIM_H_STMATRIX, CHECK_STORE, 0},   {SIM_H_COPY, CHECK_COPY, 0},
};

static enum check_scope scope_of(enum ptx_mod m)
{
    return m == PTX_CTA ? CHECK_CTA : CHECK_GPU; /* a cluster is taken for the device */
}

static void describe_access(struct check_op *o, const struct sim_op *op, const struct ptx_inst *in)
{
    const enum ptx_mod order = in->mod[PTX_MC_ORDER];
    o->element = op->size;
    if (o->kind != CHECK_ATOMIC && in->mod[PTX_MC_VECTOR]) {
        o->element = (uint8_t)(op->size / op->elems);
        o->wide = op->round & SIM_V_WIDE;
    }
    o->strong = o->kind == CHECK_ATOMIC || (order && order != PTX_WEAK);
    o->writes = o->kind != CHECK_LOAD;
    o->acquire = order == PTX_ACQUIRE || order == PTX_ACQ_REL;
    o->release = order == PTX_RELEASE || order == PTX_ACQ_REL;
    o->scope = (uint8_t)scope_of(in->mod[PTX_MC_SCOPE]);
    o->compares = o->kind == CHECK_ATOMIC && in->mod[PTX_MC_OP] == PTX_CAS;
}

static bool is_fence(const struct ptx_inst *in)
{
    return in->op == PTX_OP_FENCE || in->op == PTX_OP_MEMBAR;
}

static bool is_proxy_fence(const struct ptx_inst *in)
{
    return in->op == PTX_OP_FENCE_PROXY_SPACE || in->op == PTX_OP_FENCE_MBARRIER_INIT ||
           (in->op == PTX_OP_FENCE_PROXY && in->mod[PTX_MC_MODE] == PTX_ASYNC);
}

/* What is done beside the threads, and the mbarriers that it completes at. */
static void describe_agent(struct check_op *o, const struct ptx_inst *in)
{
    static const uint8_t kinds[PTX_FAMILY_COUNT] = {
        [PTX_FAMILY_BULK_LOAD] = CHECK_BRINGS,   [PTX_FAMILY_BULK_PEER] = CHECK_BRINGS,
        [PTX_FAMILY_TENSOR_LOAD] = CHECK_BRINGS, [PTX_FAMILY_ST_ASYNC] = CHECK_BRINGS,
        [PTX_FAMILY_BULK_STORE] = CHECK_SENDS,   [PTX_FAMILY_BULK_REDUCE] = CHECK_SENDS,
        [PTX_FAMILY_TENSOR_STORE] = CHECK_SENDS, [PTX_FAMILY_TENSOR_REDUCE] = CHECK_SENDS,
        [PTX_FAMILY_WGMMA] = CHECK_WGMMA,        [PTX_FAMILY_MBAR] = CHECK_MBAR,
        [PTX_FAMILY_MBAR_WAIT] = CHECK_MBAR,
    };
    const enum ptx_family family = ptx_op_family(in->op);
    o->kind = kinds[family];
    o->strong = family == PTX_FAMILY_BULK_REDUCE || family == PTX_FAMILY_TENSOR_REDUCE;
    o->scope = (uint8_t)(in->mod[PTX_MC_SCOPE] ? scope_of(in->mod[PTX_MC_SCOPE]) : CHECK_CTA);
    o->scope = o->strong ? CHECK_GPU : o->scope;
    o->acquire = o->release = in->mod[PTX_MC_ORDER] != PTX_RELAXED;
    o->writes = o->kind != CHECK_WGMMA;
}

static void describe_fence(struct check_op *o, const struct ptx_inst *in)
{
    const enum ptx_mod order = in->mod[PTX_MC_ORDER];
    o->kind = CHECK_FENCE;
    o->scope = (uint8_t)scope_of(in->mod[PTX_MC_SCOPE]);
    o->acquire = order != PTX_RELEASE;
    o->release = order != PTX_ACQUIRE;
}

/* What a record is to the checks; the function that stands before its handler, NULL: none. */
static sim_fn describe(const struct check *c, struct check_op *o, const struct sim_op *op,
                       const struct ptx_inst *in, const struct sim_build *build)
{
    for (size_t k = 0; k < sizeof watched / sizeof *watched; k++)
        if (op->fn[0] == build->h[watched[k].handler].full) {
            o->kind = watched[k].kind;
            o->wide = watched[k].wide;
        }
    if (o->kind == CHECK_MEETING)
        return on_meeting;
    if (o->kind != CHECK_OTHER) {
        describe_access(o, op, in);
        o->matrix = op->fn[0] == build->h[SIM_H_LDMATRIX].full ||
                    op->fn[0] == build->h[SIM_H_STMATRIX].full;
        if (o->kind == CHECK_COPY)
            return check_on_copy;
        if (o->matrix)
            return check_on_matrix;
        if (!(c->bits & (DEVICE_CHECK_INIT | DEVICE_CHECK_RACE | DEVICE_CHECK_ASYNC)))
            return on_bounded;
        return o->strong ? on_strong : on_access;
    }
    if (op->fn[0] == build->h[SIM_H_GUARD].full)
        return NULL;
    if (is_proxy_fence(in)) {
        o->kind = CHECK_PROXY;
        return c->bits & (DEVICE_CHECK_RACE | DEVICE_CHECK_ASYNC) ? on_proxy : NULL;
    }
    if (!is_fence(in)) {
        describe_agent(o, in);
        return NULL;
    }
    describe_fence(o, in);
    return on_fence;
}

/* Finds where each record comes from. */
static void find_lines(struct check *c, const struct sim_code *code)
{
    const struct ptx_func *f = code->func;
    uint64_t *line = ARENA_ARRAY(c->launch->arena, f->items.n + 1, uint64_t), now = 0;
    for (size_t i = 0; i < f->items.n; i++) {
        const struct ptx_item *it = &f->items.v[i];
        if (it->kind == PTX_I_LOC)
            now = (uint64_t)it->file << 48 | (uint64_t)it->line << 16 | (it->column & 0xffff);
        line[i] = now;
    }
    for (uint32_t i = 0; i < code->nop; i++) {
        const uint32_t item = code->op[i].item;
        const uint64_t known = item < f->items.n ? line[item] : 0;
        c->op[i].line = known ? known : (uint64_t)1 << 63 | i;
    }
}

void sim_check_instrument(struct check *c, struct sim_launch *l, const struct sim_build *build)
{
    const struct sim_code *code = l->code;
    l->check = c;
    c->launch = l;
    c->op = ARENA_ARRAY(l->arena, code->nop, struct check_op);
    c->flies = false;
    find_lines(c, code);
    if (c->bits & (DEVICE_CHECK_SYNC | DEVICE_CHECK_INIT))
        check_taints(c, code, build);
    for (uint32_t i = 0; i < code->nop && i < CHECK_OPS; i++) {
        struct sim_op *op = &code->op[i];
        struct check_op *o = &c->op[i];
        if (op->item >= code->func->items.n || code->func->items.v[op->item].kind != PTX_I_INST)
            continue;
        const sim_fn fn = describe(c, o, op, &code->func->items.v[op->item].inst, build);
        o->fn[0] = op->fn[0];
        o->fn[1] = op->fn[1];
        if (fn)
            op->fn[0] = op->fn[1] = fn;
        c->flies |= check_flies(o->kind);
    }
    if (c->bits & DEVICE_CHECK_MEMORY)
        check_symbols(c, code);
    check_instrument_taints(c, code);
    check_ignored(c, code);
    c->words = 0;
    if (c->flies && c->bits & DEVICE_CHECK_ASYNC)
        check_registers(c, code);
}

/* ---- devices, buffers, launches, blocks ------------------------------------------------------ */

struct check *sim_check_new(unsigned bits)
{
    struct check *c = calloc(1, sizeof *c);
    if (c) {
        c->bits = bits;
        c->clock = 1; /* 0 is no access */
    }
    return c;
}

void sim_check_free(struct check *c)
{
    if (c)
        check_forget(c);
    free(c);
}

bool sim_check_alloc(struct check *c, struct sim_buffer *b)
{
    b->shadow = calloc(1, sizeof *b->shadow);
    if (!b->shadow)
        return false;
    b->shadow->bytes = b->bytes;
    return !(c->bits & DEVICE_CHECK_INIT) || !b->bytes || check_define_none(b->shadow, b->bytes);
}

void sim_check_written(struct sim_buffer *b, uint64_t address, uint64_t bytes)
{
    if (b->shadow && b->shadow->undefined && !b->label.undefined)
        check_define(b->shadow, address - b->base, bytes);
}

void sim_check_fresh(struct sim_buffer *b, uint64_t offset, uint64_t bytes)
{
    if (!b->shadow || !bytes)
        return;
    check_undefine(b->shadow, offset, bytes);
    check_wipe(b->shadow, offset, bytes);
}

void sim_check_release(struct sim_buffer *b)
{
    if (b->shadow)
        check_shadow_free(b->shadow);
    free(b->shadow);
    b->shadow = NULL;
}

void sim_check_begin(struct check *c, const struct sim_launch *l)
{
    check_forget(c);
    c->lists = c->starved = false;
    c->floor = check_tick(c);
    for (unsigned w = 0; w < SIM_WINDOWS; w++) {
        struct sim_buffer *b = &l->memory->window[w];
        struct check_shadow *s = b->shadow;
        /* a module's own variables are defined, but threads can race for them */
        if (!s && b->host && !b->read_only && (s = b->shadow = calloc(1, sizeof *s)))
            s->bytes = b->bytes;
        if (s)
            s->since = c->floor;
    }
}

bool sim_check_end(struct check *c, struct sim_launch *l, struct diags *d)
{
    check_known_end(c);
    check_maps_end(c);
    if (c->starved) {
        diag_error(d, SPAN_NONE, "no memory left for the checks of kernel '%s'", l->what->entry);
        return false;
    }
    return !c->nfinding || !check_report(l, d);
}

bool sim_check_block_start(struct sim_block *b)
{
    struct check *c = b->launch->check;
    struct check_block *cb = b->check;
    if (!cb && !(cb = b->check = calloc(1, sizeof *cb)))
        return false;
    const uint64_t local = b->nwarp * SIM_LANES * b->launch->code->local_bytes;
    cb->shared.bytes = b->shared_bytes;
    cb->shared.since = c->clock;
    if (cb->shared.span)
        memset(cb->shared.span, 0, (size_t)(cb->shared.bytes / 16) + 1);
    check_order_start(b);
    return !(c->bits & DEVICE_CHECK_INIT) || (check_define_none(&cb->shared, b->shared_bytes) &&
                                              check_define_none(&cb->local, local));
}

void sim_check_unit_end(struct sim_block *first)
{
    for (uint32_t i = 0; i < first->npeer; i++) {
        check_flights_end(first->peer[i]);
        check_remote_end(first->peer[i]);
        check_wgmma_left(first->peer[i]);
    }
}

void sim_check_block_end(struct sim_block *b)
{
    /* what was not waited for ends with the block */
    for (uint32_t i = 0; i < b->nwarp; i++)
        check_abandon_copies(&b->warp[i]);
    check_mbars_free(b);
    check_wgmma_end(b);
    check_order_end(b);
}

void sim_check_block_free(struct sim_block *b)
{
    if (!b->check)
        return;
    check_mbars_free(b);
    check_wgmma_end(b);
    check_order_end(b);
    check_shadow_free(&b->check->shared);
    check_shadow_free(&b->check->local);
    free(b->check);
    b->check = NULL;
}
