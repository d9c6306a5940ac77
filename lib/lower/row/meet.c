/* Reductions over a row: by warp, between the warps of a block, and between the blocks of a
 * cluster.
 *
 * What a thread's share comes to (row/fold.c) is folded over the lanes of a warp by pairs that
 * differ in one bit; then each warp leaves its result in shared memory, and after one barrier every
 * warp folds all of them for itself. In a cluster the first warp does, leaves the block's result in
 * the memory of every block, and after a barrier of the cluster every warp folds those. The
 * reductions of a level share the barriers, and each level has shared memory of its own, so that no
 * more are needed. The order is fixed.
 */
#include <config.h>

#include "lower/row/row.h"
#include "base/internal.h"
#include "lower/cg/sync.h"

#include <stdio.h>

/* FEW: as many results as every thread reads for itself, which takes less time than shuffles do */
enum { LANES = 32, FEW = 8 };

bool row_is_arg(const struct row_reduce *d)
{
    return d->e->reduce == RED_ARGMAX || d->e->reduce == RED_ARGMIN;
}

enum dtype row_term_type(const struct row_reduce *d)
{
    return d->e->args[0]->type;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static struct row_part merge_best(struct cg *g, const struct row_reduce *d, struct row_part x,
                                  struct row_part y)
{
    enum lang_op op = d->e->reduce == RED_ARGMAX ? OP_GT : OP_LT;
    struct cg_val better = cg_binary(g, op, y.v, x.v);
    struct cg_val same = cg_binary(g, OP_EQ, y.v, x.v);
    struct cg_val before = cg_binary(g, OP_LT, y.at, x.at);
    int32_t take = cg_reg(g, cg_binary(g, OP_LOR, better, cg_binary(g, OP_LAND, same, before)));
    return (struct row_part){cg_select(g, take, y.v, x.v), cg_select(g, take, y.at, x.at)};
}

static struct row_part merge(struct cg *g, const struct row_reduce *d, struct row_part x,
                             struct row_part y)
{
    switch (d->e->reduce) {
    case RED_SUM: return (struct row_part){.v = cg_binary(g, OP_ADD, x.v, y.v)};
    case RED_PROD: return (struct row_part){.v = cg_binary(g, OP_MUL, x.v, y.v)};
    case RED_MAX:
    case RED_MIN: return (struct row_part){.v = cg_minmax(g, d->e->reduce == RED_MAX, x.v, y.v)};
    case RED_ANY: return (struct row_part){.v = cg_binary(g, OP_LOR, x.v, y.v)};
    case RED_ALL: return (struct row_part){.v = cg_binary(g, OP_LAND, x.v, y.v)};
    case RED_ARGMAX:
    case RED_ARGMIN: return merge_best(g, d, x, y);
    }
    INTERNAL_ERROR("a row knows every reduction, but not %d", (int)d->e->reduce);
}

struct row_part row_merge_all(struct cg *g, const struct row_reduce *d, struct row_part *p,
                              uint32_t n)
{
    for (; n > 1; n = (n + 1) / 2)
        for (uint32_t i = 0; i < n / 2; i++) {
            p[i] = merge(g, d, p[2 * i], p[2 * i + 1]);
            if (i == n / 2 - 1 && n % 2)
                p[i + 1] = p[n - 1];
        }
    return p[0];
}

/* ---- a warp ---------------------------------------------------------------------------------- */

static struct cg_val other_lane(struct cg *g, struct cg_val v, uint32_t distance)
{
    return shuffle(g, SHUFFLE_XOR, v, ptx_imm(distance), ptx_imm(LANES - 1), ptx_imm(UINT32_MAX),
                   NULL);
}

static struct row_part butterfly(struct cg *g, const struct row_reduce *d, struct row_part p,
                                 uint32_t lanes)
{
    for (uint32_t s = lanes / 2; s; s /= 2) {
        struct row_part other = {.v = other_lane(g, p.v, s)};
        if (row_is_arg(d))
            other.at = other_lane(g, p.at, s);
        p = merge(g, d, p, other);
    }
    return p;
}

static enum fold_kind fold_of(enum lang_reduce how)
{
    switch (how) {
    case RED_MAX: return FOLD_MAX;
    case RED_MIN: return FOLD_MIN;
    case RED_ANY: return FOLD_OR;
    case RED_ALL: return FOLD_AND;
    default: return FOLD_SUM;
    }
}

static struct row_part fold_warp(struct row_gen *r, const struct row_reduce *d, struct row_part p,
                                 uint32_t lanes)
{
    struct cg *g = r->g;
    enum dtype t = row_term_type(d);
    bool whole = g->target->sm >= 80 && lanes == LANES && !row_is_arg(d) &&
                 d->e->reduce != RED_PROD;
    struct lanes all = {.all = true, .mask = ptx_imm(UINT32_MAX)};
    if (whole && t == DT_BOOL) {
        struct cg_val word = cg_convert(g, p.v, DT_U32);
        word = cg_value(DT_U32, cg_reg(g, word));
        word = warp_fold(g, fold_of(d->e->reduce), word, &all);
        p.v = cg_binary(g, OP_NE, word, cg_int(DT_U32, 0));
        return p;
    }
    if (whole && (t == DT_I32 || t == DT_U32)) {
        p.v = warp_fold(g, fold_of(d->e->reduce), p.v, &all);
        return p;
    }
    return butterfly(g, d, p, lanes);
}

/* ---- between warps --------------------------------------------------------------------------- */

/* Where a reduction's results lie, one for each warp: the values, then the columns of argmax. */
struct area {
    uint32_t at, where; /* bytes from the start of the exchange's */
    uint32_t size;      /* of a value */
};

struct exchange {
    struct row_fold *f;
    struct area area[ROW_REDUCES];
    uint32_t slots; /* of an area */
    const struct ptx_var *var;
};

static uint32_t slot_bytes(enum dtype t)
{
    return dtype_bits(t) == 64 ? 8 : 4;
}

static struct exchange lay_out(struct row_fold *f, const char *name, uint32_t slots)
{
    struct row_gen *r = f->r;
    struct cg *g = r->g;
    struct exchange x = {.f = f, .slots = slots};
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        struct area *a = &x.area[i];
        a->size = slot_bytes(row_term_type(f->reduce[i]));
        a->at = bytes;
        bytes += (a->size * slots + 15) / 16 * 16;
        a->where = bytes;
        if (row_is_arg(f->reduce[i]))
            bytes += (slot_bytes(r->ct) * slots + 15) / 16 * 16;
    }
    size_t from = g->func->items.n;
    x.var = ptx_array_new(&g->b, PTX_SHARED, arena_printf(g->a, "$%s%u", name, f->level), PTX_B64,
                          16, bytes / 8);
    cg_to_prologue(g, from, 3000000 + f->level);
    return x;
}

static struct ptx_operand in_memory(struct cg *g, struct cg_val *v)
{
    if (v->type == DT_BOOL)
        *v = cg_convert(g, *v, DT_U32);
    return ptx_r(cg_reg(g, *v));
}

static void put(struct cg *g, const char *space, int32_t pred, int32_t base, uint32_t at,
                struct cg_val v)
{
    char m[40];
    struct ptx_operand reg = in_memory(g, &v);
    snprintf(m, sizeof m, "st.%s.%s", space, cg_bits_suffix(v.type));
    ptx_emit(&g->b, pred, false, m, PTX_ARGS(ptx_mem(base, at), reg));
}

static int32_t base_of(struct exchange *x)
{
    return CG(x->f->r->g, PTX_B32, "mov.u32", ptx_sym(x->var));
}

/* Stores results in slot `slot`, of the areas that begin at base, where pred holds. */
static void leave(struct exchange *x, const char *space, int32_t pred, struct cg_val base,
                  struct cg_val slot, const struct row_part *part)
{
    struct cg *g = x->f->r->g;
    for (uint32_t i = 0; i < x->f->n; i++) {
        const struct area *a = &x->area[i];
        struct cg_val to = cg_binary(g, OP_MUL, slot, cg_int(DT_U32, a->size));
        put(g, space, pred, cg_reg(g, cg_binary(g, OP_ADD, base, to)), a->at, part[i].v);
        if (!row_is_arg(x->f->reduce[i]))
            continue;
        to = cg_binary(g, OP_MUL, slot, cg_int(DT_U32, slot_bytes(x->f->r->ct)));
        put(g, space, pred, cg_reg(g, cg_binary(g, OP_ADD, base, to)), a->where, part[i].at);
    }
}

static struct cg_val from_memory(struct cg *g, enum dtype t, int32_t reg)
{
    if (t == DT_BOOL)
        return cg_binary(g, OP_NE, cg_value(DT_U32, reg), cg_int(DT_U32, 0));
    return cg_value(t, reg);
}

static enum dtype memory_type(enum dtype t)
{
    return t == DT_BOOL ? DT_U32 : t;
}

/* n of them one after the other, up to 16 bytes at a time. */
static void get_all(struct cg *g, enum dtype t, int32_t base, uint32_t at, uint32_t n,
                    struct cg_val *v)
{
    enum dtype mt = memory_type(t);
    uint32_t size = slot_bytes(mt);
    for (uint32_t i = 0; i < n;) {
        struct ptx_operand reg[4];
        uint32_t k = dtype_bits(mt) < 32 ? 1 : 16 / size;
        char m[32];
        while (k > n - i)
            k /= 2;
        for (uint32_t j = 0; j < k; j++)
            reg[j] = ptx_r(cg_new(g, mt));
        snprintf(m, sizeof m, "ld.shared%s.%s",
                 k == 4   ? ".v4"
                 : k == 2 ? ".v2"
                          : "",
                 cg_bits_suffix(mt));
        PTX(&g->b, m, k == 1 ? reg[0] : ptx_vec(&g->b, k, reg),
            ptx_mem(base, (int64_t)at + (int64_t)i * size));
        for (uint32_t j = 0; j < k; j++)
            v[i + j] = from_memory(g, t, reg[j].reg);
        i += k;
    }
}

/* That of slot n (u32), where pred holds; -1: always. */
static struct cg_val get_one(struct cg *g, enum dtype t, int32_t base, uint32_t at, struct cg_val n,
                             int32_t pred, struct cg_val otherwise)
{
    enum dtype mt = memory_type(t);
    char m[32];
    int32_t reg = cg_new_mutable(g, mt);
    if (pred >= 0)
        cg_move(g, reg, cg_convert(g, otherwise, mt));
    struct cg_val from = cg_binary(g, OP_MUL, n, cg_int(DT_U32, slot_bytes(mt)));
    from = cg_binary(g, OP_ADD, cg_value(DT_U32, base), from);
    snprintf(m, sizeof m, "ld.shared.%s", cg_bits_suffix(mt));
    CG_ASSIGN_IF(g, pred, reg, m, ptx_mem(cg_reg(g, from), at));
    return from_memory(g, t, reg);
}

static struct row_part get_few(struct exchange *x, uint32_t i, int32_t base, uint32_t n)
{
    struct cg *g = x->f->r->g;
    const struct row_reduce *d = x->f->reduce[i];
    struct row_part p[FEW];
    struct cg_val v[FEW];
    get_all(g, row_term_type(d), base, x->area[i].at, n, v);
    for (uint32_t k = 0; k < n; k++)
        p[k].v = v[k];
    if (row_is_arg(d)) {
        get_all(g, x->f->r->ct, base, x->area[i].where, n, v);
        for (uint32_t k = 0; k < n; k++)
            p[k].at = v[k];
    }
    return row_merge_all(g, d, p, n);
}

static struct row_part get_lanes(struct exchange *x, uint32_t i, int32_t base, struct cg_val first,
                                 struct cg_val count, uint32_t most)
{
    struct row_gen *r = x->f->r;
    struct cg *g = r->g;
    const struct row_reduce *d = x->f->reduce[i];
    uint32_t span = 1;
    while (span < most && span < LANES)
        span *= 2;
    struct row_part sum = {0};
    for (uint32_t from = 0; from < most; from += span) {
        struct cg_val lane = cg_special(g, SP_LANEID);
        int32_t pred = -1;
        lane = cg_binary(g, OP_AND, lane, cg_int(DT_U32, span - 1));
        lane = cg_binary(g, OP_ADD, lane, cg_int(DT_U32, from));
        int64_t known;
        if (!cg_is_const(count, &known) || from + span > known)
            pred = cg_reg(g, cg_binary(g, OP_LT, lane, count));
        struct cg_val slot = cg_binary(g, OP_ADD, lane, first);
        struct row_part p = {.v = get_one(g, row_term_type(d), base, x->area[i].at, slot, pred,
                                          cg_reduce_identity(g, d->e->reduce, row_term_type(d)))};
        if (row_is_arg(d))
            p.at = get_one(g, r->ct, base, x->area[i].where, slot, pred, cg_int(r->ct, 0));
        sum = from ? merge(g, d, sum, p) : p;
    }
    return butterfly(g, d, sum, span);
}

/* Folds the results of n slots from `first` on; n 0: of as many as the block has warps. */
static void fold_slots(struct exchange *x, struct cg_val first, uint32_t n, struct row_part *part)
{
    struct cg *g = x->f->r->g;
    int64_t at;
    int32_t base = base_of(x);
    struct cg_val count = cg_int(DT_U32, n);
    if (!n)
        count = cg_binary(g, OP_SHR, cg_special(g, SP_NTID_X), cg_int(DT_U32, 5));
    for (uint32_t i = 0; i < x->f->n; i++)
        part[i] = n && n <= FEW && cg_is_const(first, &at)
                      ? get_few(x, i, base, n)
                      : get_lanes(x, i, base, first, count, n ? n : LANES);
}

/* Between the blocks of a cluster: the first warp leaves what the block's warps have left in the
 * memory of every block. Its arrival releases that; what the others did, they did before the
 * barrier that it was behind. */
static void exchange_blocks(struct row_fold *f, struct exchange *x, struct row_part *part)
{
    struct row_gen *r = f->r;
    struct cg *g = r->g;
    const uint32_t blocks = r->plan.cluster, warps = r->plan.threads / LANES;
    struct exchange y = lay_out(f, "cluster", blocks);
    struct cg_val zero = cg_int(DT_U32, 0), lane = cg_special(g, SP_LANEID);
    struct cg_val base = cg_value(DT_U32, base_of(&y));
    struct cg_val others = cg_binary(g, OP_NE, cg_special(g, SP_WARPID), zero);
    int32_t rank = CG(g, PTX_B32, "mov.u32", ptx_special(PTX_SR_CLUSTER_CTARANK));
    int32_t pred = cg_reg(g, cg_binary(g, OP_LT, lane, cg_int(DT_U32, blocks)));
    /* lanes without a block of their own do not store */
    struct cg_val to = cg_minmax(g, false, lane, cg_int(DT_U32, blocks - 1));
    base = cg_value(DT_U32, CG(g, PTX_B32, "mapa.shared::cluster.u32", base.op, to.op));
    uint32_t rest = cg_label(g, "others"), all = cg_label(g, "arrived");
    cg_jump_if(g, cg_reg(g, others), true, rest);
    size_t mark = cg_scope_open(g);
    fold_slots(x, zero, warps, part);
    leave(&y, "shared::cluster", pred, base, cg_value(DT_U32, rank), part);
    PTX0(&g->b, "barrier.cluster.arrive.release.aligned");
    cg_jump(g, all);
    cg_scope_close(g, mark);
    cg_place(g, rest);
    PTX0(&g->b, "barrier.cluster.arrive.relaxed.aligned");
    cg_place(g, all);
    PTX0(&g->b, "barrier.cluster.wait.acquire.aligned");
    fold_slots(&y, zero, blocks, part);
}

static void exchange(struct row_fold *f, struct row_part *part)
{
    struct row_gen *r = f->r;
    struct cg *g = r->g;
    const struct row_plan *p = &r->plan;
    uint32_t warps = p->threads / LANES;
    struct cg_val zero = cg_int(DT_U32, 0), first = zero, warp = cg_special(g, SP_WARPID);
    struct exchange x = lay_out(f, "level", warps ? warps * p->rows : LANES);
    struct cg_val is_first = cg_binary(g, OP_EQ, cg_special(g, SP_LANEID), zero);
    const struct cg_val base = cg_value(DT_U32, base_of(&x));
    leave(&x, "shared", cg_reg(g, is_first), base, warp, part);
    if (p->cluster > 1 && f->level == 0) /* the other blocks run, as they have arrived once */
        PTX0(&g->b, "barrier.cluster.wait.acquire.aligned");
    PTX(&g->b, "bar.sync", ptx_imm(0));
    if (p->cluster > 1) {
        exchange_blocks(f, &x, part);
        return;
    }
    if (p->rows > 1) { /* the warps of a row are neighbours */
        struct cg_val n = cg_int(DT_U32, warps);
        first = cg_binary(g, OP_MUL, cg_binary(g, OP_DIV, warp, n), n);
    }
    fold_slots(&x, first, warps, part);
}

void row_fold_end(struct row_fold *f)
{
    struct row_gen *r = f->r;
    struct cg *g = r->g;
    struct row_part part[ROW_REDUCES];
    uint32_t lanes = r->plan.threads && r->plan.threads < LANES ? r->plan.threads : LANES;
    bool alone = r->plan.threads && r->plan.threads <= LANES && r->plan.cluster == 1;
    for (uint32_t i = 0; i < f->n; i++)
        part[i] = fold_warp(r, f->reduce[i], row_own_part(f, i), lanes);
    if (!alone)
        exchange(f, part);
    for (uint32_t i = 0; i < f->n; i++) {
        struct row_reduce *d = f->reduce[i];
        struct cg_val v = part[i].v;
        if (row_is_arg(d))
            v = cg_index(g, cg_value(r->ct, cg_reg(g, part[i].at)));
        if (v.op.kind == PTX_O_REG)
            cg_set_depth(g, v.op.reg, 0); /* the same in every thread of the row */
        d->value = cg_convert(g, v, d->e->type);
        d->is_done = true;
    }
}
