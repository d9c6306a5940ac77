/* Terms, what they come to, and how two such meet; loads and stores: scan/scan.h.
 *
 * argmax and argmin keep the index behind the value: of equals the lower one, and of what is no
 * better than nothing (-inf for argmax, NaN) none, which stands for where the range begins. */
#include <config.h>

#include "lower/scan/scan.h"

#include "base/internal.h"
#include "lower/cg/sync.h"

#define NONE INT64_MAX

static bool is_arg(const struct lang_expr *e)
{
    return e->reduce == RED_ARGMAX || e->reduce == RED_ARGMIN;
}

/* The part where result i's value is; its index is behind it, or its segment's bound. */
static uint32_t part_of(const struct scan *s, uint32_t i)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < i; k++)
        n += is_arg(s->f->result[k].e) || s->f->result[k].bound ? 2 : 1;
    return n;
}

/* ---- states ---------------------------------------------------------------------------------- */

struct scan_state scan_identity(struct scan *s)
{
    struct scan_state x;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->f->nresult; i++) {
        const struct lang_expr *e = s->f->result[i].e;
        struct cg_val v = cg_reduce_identity(s->g, e->reduce, e->args[0]->type);
        x.v[n++] = v.type == DT_BOOL ? cg_u32(e->reduce == RED_ALL) : v;
        if (is_arg(e))
            x.v[n++] = cg_int(DT_I64, NONE);
        if (s->f->result[i].bound)
            x.v[n++] = cg_u32(0);
    }
    return x;
}

/* Of result i alone, whose parts begin at p. */
static void meet_result(struct scan *s, uint32_t i, uint32_t p, const struct scan_state *x,
                        const struct scan_state *y, struct scan_state *out)
{
    struct cg *g = s->g;
    const struct lang_expr *e = s->f->result[i].e;
    if (!is_arg(e)) {
        out->v[p] = cg_reduce_meet(g, e->reduce, x->v[p], y->v[p]);
        if (!s->f->result[i].bound)
            return;
        const int32_t begins = cg_reg(g, cg_binary(g, OP_NE, y->v[p + 1], cg_u32(0)));
        out->v[p] = cg_select(g, begins, y->v[p], out->v[p]);
        out->v[p + 1] = cg_select(g, begins, y->v[p + 1], x->v[p + 1]);
        return;
    }
    struct cg_val better = cg_binary(g, e->reduce == RED_ARGMAX ? OP_GT : OP_LT, y->v[p], x->v[p]);
    const struct cg_val same = cg_binary(g, OP_EQ, y->v[p], x->v[p]);
    const struct cg_val first = cg_binary(g, OP_LT, y->v[p + 1], x->v[p + 1]);
    better = cg_binary(g, OP_LOR, better, cg_binary(g, OP_LAND, same, first));
    const int32_t take = cg_reg(g, better);
    out->v[p] = cg_select(g, take, y->v[p], x->v[p]);
    out->v[p + 1] = cg_select(g, take, y->v[p + 1], x->v[p + 1]);
}

struct scan_state scan_meet(struct scan *s, struct scan_state x, struct scan_state y)
{
    struct scan_state out;
    for (uint32_t i = 0; i < s->f->nresult; i++)
        meet_result(s, i, part_of(s, i), &x, &y, &out);
    return out;
}

struct scan_state scan_select(struct scan *s, int32_t pred, struct scan_state x,
                              struct scan_state y)
{
    for (uint32_t p = 0; p < s->npart; p++)
        x.v[p] = cg_select(s->g, pred, x.v[p], y.v[p]);
    return x;
}

void scan_keep(struct scan *s, int32_t *reg)
{
    for (uint32_t p = 0; p < s->npart; p++)
        reg[p] = cg_new_mutable(s->g, s->part[p]);
}

void scan_move(struct scan *s, const int32_t *reg, const struct scan_state *x)
{
    for (uint32_t p = 0; p < s->npart; p++)
        cg_move(s->g, reg[p], x->v[p]);
}

struct scan_state scan_kept(struct scan *s, const int32_t *reg)
{
    struct scan_state x;
    for (uint32_t p = 0; p < s->npart; p++)
        x.v[p] = cg_value(s->part[p], reg[p]);
    return x;
}

/* ---- other threads' -------------------------------------------------------------------------- */

/* Of segments of `width` lanes: the operand c of shfl. */
static struct ptx_operand clamp(uint32_t width, uint32_t end)
{
    return ptx_imm((int64_t)((32 - width) << 8 | end));
}

struct scan_state scan_shuffle_up(struct scan *s, struct scan_state x, uint32_t by, uint32_t width,
                                  int32_t *in_range)
{
    for (uint32_t p = 0; p < s->npart; p++)
        x.v[p] = shuffle(s->g, SHUFFLE_UP, x.v[p], ptx_imm(by), clamp(width, 0),
                         ptx_imm(UINT32_MAX), p == 0 ? in_range : NULL);
    return x;
}

struct scan_state scan_last_lane(struct scan *s, struct scan_state x, uint32_t width)
{
    for (uint32_t p = 0; p < s->npart; p++)
        x.v[p] = shuffle(s->g, SHUFFLE_IDX, x.v[p], ptx_imm(width - 1), clamp(width, 31),
                         ptx_imm(UINT32_MAX), NULL);
    return x;
}

struct scan_state scan_from_lane(struct scan *s, struct scan_state x, int32_t lane)
{
    for (uint32_t p = 0; p < s->npart; p++)
        x.v[p] =
            shuffle(s->g, SHUFFLE_IDX, x.v[p], ptx_r(lane), ptx_imm(31), ptx_imm(UINT32_MAX), NULL);
    return x;
}

static uint32_t part_bytes(const struct scan *s, uint32_t p)
{
    return dtype_bits(s->part[p]) / 8;
}

void scan_share(struct scan *s, uint32_t n)
{
    struct cg *g = s->g;
    uint32_t bytes = 0;
    for (uint32_t p = 0; p < s->npart; p++) {
        s->at[p] = bytes;
        bytes += (n * part_bytes(s, p) + 15) / 16 * 16;
    }
    const size_t from = g->func->items.n;
    s->shared = ptx_array_new(&g->b, PTX_SHARED, "$scan", PTX_B64, 16, bytes / 8);
    cg_to_prologue(g, from, 3000000);
}

static struct cg_place_of shared_place(struct scan *s, uint32_t p, struct cg_val number,
                                       uint32_t lanes)
{
    struct cg *g = s->g;
    const struct cg_val base = cg_value(DT_U32, CG(g, PTX_B32, "mov.u32", ptx_sym(s->shared)));
    const struct cg_val to = cg_mul(g, number, lanes * part_bytes(s, p));
    return (struct cg_place_of){
        .space = CG_SHARED, .base = cg_reg(g, cg_add(g, base, to)), .offset = s->at[p]};
}

void scan_leave(struct scan *s, struct cg_val number, uint32_t lanes, const struct scan_state *x)
{
    struct cg_val v[SCAN_LANES];
    for (uint32_t p = 0; p < s->npart; p++) {
        for (uint32_t k = 0; k < lanes; k++)
            v[k] = x[k].v[p];
        const struct cg_place_of at = shared_place(s, p, number, lanes);
        if (lanes == 1)
            cg_store_at(s->g, s->part[p], at, v[0]);
        else
            cg_store_words(s->g, s->part[p], at, lanes, v);
    }
}

void scan_fetch(struct scan *s, struct cg_val number, uint32_t lanes, struct scan_state *x)
{
    struct cg_val v[SCAN_LANES];
    for (uint32_t p = 0; p < s->npart; p++) {
        const struct cg_place_of at = shared_place(s, p, number, lanes);
        if (lanes == 1)
            v[0] = cg_load_at(s->g, s->part[p], false, at);
        else
            cg_load_words(s->g, s->part[p], false, at, lanes, v);
        for (uint32_t k = 0; k < lanes; k++)
            x[k].v[p] = v[k];
    }
}

/* ---- the element at hand --------------------------------------------------------------------- */

static struct cg_val moved(struct cg *g, struct cg_val at, uint32_t by)
{
    return by ? cg_index(g, cg_add(g, cg_convert(g, at, DT_U32), cg_u32(by))) : at;
}

/* Where lane k lies in a vector in memory. */
static uint32_t place_of_lane(const struct scan *s, uint32_t k)
{
    return s->p->way != SCAN_DOWN && s->f->reversed ? s->p->lanes - 1 - k : k;
}

static void go_to(struct scan *s, uint32_t j, uint32_t k)
{
    const struct scan_form *f = s->f;
    const uint32_t last = f->naxis - 1;
    s->vec = j;
    s->lane = k;
    memcpy(s->axis, s->sub, sizeof s->axis);
    s->axis[f->axis] = s->position[j];
    s->axis[last] = moved(s->g, s->axis[last], place_of_lane(s, k));
    for (size_t i = 0; i < f->index.n; i++)
        cg_bind(s->g, f->index.v[i].sym, s->axis[f->index.v[i].axis], false);
}

static struct cg_guard guard(struct scan *s, uint32_t j)
{
    const struct cg_val p = s->exists[j] < 0 ? cg_bool(s->g, true)
                                             : cg_value(DT_BOOL, s->exists[j]);
    return cg_guard(s->g, p, false);
}

/* ---- terms ----------------------------------------------------------------------------------- */

static struct cg_val *elements(struct scan *s, uint32_t read, uint32_t j)
{
    return s->element[read * SCAN_HELD + j].v;
}

static void load_read(struct scan *s, uint32_t read, uint32_t j)
{
    struct cg *g = s->g;
    const struct scan_read *r = &s->f->read[read];
    struct cg_val sub[SCAN_RANK], *v = elements(s, read, j);
    for (uint32_t i = 0; i < r->sym->rank; i++) {
        sub[i] = r->axis[i] == s->f->axis ? s->position[j] : s->sub[r->axis[i]];
        if (r->flipped[i]) {
            const uint32_t many = r->axis[i] + 1 == s->f->naxis ? s->p->lanes : 1;
            sub[i] =
                cg_binary(g, OP_SUB, s->n[r->axis[i]], cg_add(g, sub[i], cg_int(DT_I64, many)));
        }
    }
    struct cg_place_of at = cg_element(g, r->sym, r->sym->rank, sub);
    if (s->p->way == SCAN_BY_BLOCKS && s->p->lanes > 1)
        at.cache = cg_read_once(g, r->sym);
    if (s->p->lanes == 1)
        v[0] = cg_load(g, r->sym, at);
    else
        cg_load_words(g, r->sym->type, cg_is_constant(g, r->sym), at, s->p->lanes, v);
}

void scan_load(struct scan *s, uint32_t j)
{
    const struct cg_guard before = guard(s, j);
    for (uint32_t i = 0; i < s->f->nread; i++)
        if (s->f->read[i].in_lanes)
            load_read(s, i, j);
    cg_unguard(s->g, before);
}

/* Where the element at hand lies in a vector that was read. */
static uint32_t place_in_read(const struct scan *s, const struct scan_read *r)
{
    const uint32_t k = place_of_lane(s, s->lane);
    return r->flipped[r->sym->rank - 1] ? s->p->lanes - 1 - k : k;
}

static bool is_read_here(struct scan *s, const struct lang_expr *e, const struct scan_read *r)
{
    if (e->sym != r->sym || e->nargs != r->sym->rank || e->pad)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        bool flipped;
        const struct lang_expr *sub = scan_index_of(e->args[i], e->sym->dims[i], &flipped);
        const struct cg_binding *b = sub->kind == E_NAME ? cg_find(s->g, sub->sym) : NULL;
        if (!b || flipped != r->flipped[i] || !cg_same(b->val, s->axis[r->axis[i]]))
            return false;
    }
    return true;
}

static bool read_element(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct scan *s = g->read_ctx;
    if (e->kind != E_INDEX || cg_is_defined(g, e->sym))
        return false;
    for (uint32_t i = 0; i < s->f->nread; i++)
        if (s->f->read[i].in_lanes && is_read_here(s, e, &s->f->read[i])) {
            *v = elements(s, i, s->vec)[place_in_read(s, &s->f->read[i])];
            return true;
        }
    return false;
}

/* No element needs the last term of an exclusive prefix, which there may not be. */
static struct cg_guard guard_term(struct scan *s, bool exclusive)
{
    struct cg *g = s->g;
    const struct cg_val at = s->axis[s->f->axis], n = s->n[s->f->axis];
    if (!exclusive || !s->f->reads_else)
        return cg_guard(g, cg_bool(g, true), false);
    if (s->f->reversed)
        return cg_guard(g, cg_binary(g, OP_GT, at, cg_int(DT_I64, 0)), false);
    const struct cg_val next = cg_binary(g, OP_ADD, at, cg_int(DT_I64, 1));
    return cg_guard(g, cg_binary(g, OP_LT, next, n), false);
}

/* The value and the index of argmax's term; of what is no better than nothing: nothing. */
static void take_best(struct scan *s, const struct lang_expr *e, struct cg_val v,
                      struct cg_val *out)
{
    struct cg *g = s->g;
    const struct cg_val nothing = cg_reduce_identity(g, e->reduce, v.type);
    const enum lang_op op = e->reduce == RED_ARGMAX ? OP_GT : OP_LT;
    const int32_t better = cg_reg(g, cg_binary(g, op, v, nothing));
    out[0] = cg_select(g, better, v, nothing);
    out[1] = cg_select(g, better, s->axis[s->f->axis], cg_int(DT_I64, NONE));
}

/* 1 + the bound of the element's segment. */
static struct cg_val mark_of(struct scan *s, const struct scan_result *r)
{
    struct cg *g = s->g;
    const struct cg_val bound = cg_convert(g, cg_index(g, cg_expr(g, r->bound)), DT_U32);
    return cg_add(g, bound, cg_u32(1));
}

/* That where the element begins its segment, else 0. */
static struct cg_val begun(struct scan *s, const struct scan_result *r)
{
    struct cg *g = s->g;
    const struct cg_val mark = mark_of(s, r), here = cg_convert(g, s->axis[s->f->axis], DT_U32);
    const struct cg_val own = cg_add(g, here, cg_u32(s->f->reversed ? 2 : 1));
    const int32_t begins = cg_reg(g, cg_binary(g, OP_EQ, mark, own));
    return cg_select(g, begins, mark, cg_u32(0));
}

static void take_terms(struct scan *s, struct scan_state *x)
{
    struct cg *g = s->g;
    for (uint32_t i = 0; i < s->f->nresult; i++) {
        const struct scan_result *r = &s->f->result[i];
        const uint32_t p = part_of(s, i);
        const struct cg_guard before = guard_term(s, r->exclusive);
        struct cg_val v = cg_expr(g, r->e->args[0]);
        cg_unguard(g, before);
        if (is_arg(r->e))
            take_best(s, r->e, v, &x->v[p]);
        else
            x->v[p] = v.type == DT_BOOL ? cg_convert(g, v, DT_U32) : v;
        if (r->bound)
            x->v[p + 1] = begun(s, r);
    }
}

/* Extrema are of what is a number. */
static void leave_nan(struct scan *s, struct scan_state *x)
{
    const struct scan_state nothing = scan_identity(s);
    for (uint32_t i = 0; i < s->f->nresult; i++) {
        const struct lang_expr *e = s->f->result[i].e;
        const uint32_t p = part_of(s, i);
        struct scan_state out = *x;
        if (!dtype_is_float(e->args[0]->type))
            continue;
        if (is_arg(e))
            meet_result(s, i, p, &nothing, x, &out);
        else if (e->reduce == RED_MAX || e->reduce == RED_MIN)
            out.v[p] = cg_reduce_meet(s->g, e->reduce, nothing.v[p], x->v[p]);
        *x = out;
    }
}

void scan_terms(struct scan *s, uint32_t j)
{
    struct cg *g = s->g;
    const struct cg_guard before = guard(s, j);
    for (uint32_t k = 0; k < s->p->lanes; k++) {
        const size_t bound = g->bindings.n;
        go_to(s, j, k);
        cg_at(g, s->f->stage->eq[0]->span);
        take_terms(s, &s->inside[j].at[k]);
        leave_nan(s, &s->inside[j].at[k]);
        g->bindings.n = bound;
    }
    cg_unguard(g, before);
}

static bool result(struct cg *g, const struct lang_expr *e, struct cg_val *v);

/* ---- results --------------------------------------------------------------------------------- */

/* What comes before the element in its vector or column; NULL: it is the first. */
static const struct scan_state *inside_before(const struct scan *s)
{
    if (s->p->way == SCAN_DOWN)
        return s->vec ? &s->inside[s->vec - 1].at[s->lane] : NULL;
    return s->lane ? &s->inside[s->vec].at[s->lane - 1] : NULL;
}

static struct cg_val index_of(struct scan *s, const struct scan_result *r, struct cg_val where)
{
    struct cg *g = s->g;
    const struct cg_val here = s->axis[s->f->axis];
    struct cg_val start = cg_int(DT_I64, 0);
    if (s->f->reversed)
        start = r->exclusive ? cg_binary(g, OP_ADD, here, cg_int(DT_I64, 1)) : here;
    const int32_t none = cg_reg(g, cg_binary(g, OP_EQ, where, cg_int(DT_I64, NONE)));
    return cg_convert(g, cg_select(g, none, start, where), r->e->type);
}

/* Of a prefix from its segment's bound on: x.v[p], where that is the bound of the last segment that
 * began; of nothing the identity; and else its terms one by one. */
static struct cg_val of_segment(struct scan *s, uint32_t i, const struct scan_state *x)
{
    struct cg *g = s->g;
    const struct scan_result *r = &s->f->result[i];
    const uint32_t p = part_of(s, i), done = cg_label(g, "segment");
    const struct cg_val here = s->axis[s->f->axis], bound = cg_index(g, cg_expr(g, r->bound));
    struct cg_val end = here;
    if (s->f->reversed && r->exclusive)
        end = cg_binary(g, OP_ADD, here, cg_int(DT_I64, 1));
    const enum lang_op ends = s->f->reversed ? OP_LE : r->exclusive ? OP_GE : OP_GT;
    const struct cg_val is_empty = cg_binary(g, ends, bound, end);
    const struct cg_val natural = cg_binary(g, OP_GE, bound, cg_int(DT_I64, 0));
    const struct cg_val began = cg_binary(g, OP_EQ, x->v[p + 1], mark_of(s, r));
    const struct cg_val is_known = cg_binary(g, OP_LAND, natural, began);
    struct cg_val v = cg_select(g, cg_reg(g, is_empty), scan_identity(s).v[p], x->v[p]);
    if (r->e->args[0]->type == DT_BOOL)
        v = cg_binary(g, OP_NE, v, cg_u32(0));
    const int32_t reg = cg_new_mutable(g, v.type);
    cg_move(g, reg, v);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LOR, is_empty, is_known)), true, done);
    const size_t mark = cg_scope_open(g);
    g->reduced = NULL;
    cg_move(g, reg, cg_expr(g, r->e));
    g->reduced = result;
    cg_scope_close(g, mark);
    cg_place(g, done);
    return cg_freeze(g, cg_value(v.type, reg));
}

static bool result(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct scan *s = g->read_ctx;
    const bool down = s->p->way == SCAN_DOWN;
    for (uint32_t i = 0; i < s->f->nresult; i++) {
        const struct scan_result *r = &s->f->result[i];
        const uint32_t p = part_of(s, i);
        if (r->e != e)
            continue;
        const struct scan_state *before = down ? &s->before[0].at[s->lane]
                                               : &s->before[s->vec].at[0];
        const struct scan_state *inside = r->exclusive ? inside_before(s)
                                                       : &s->inside[s->vec].at[s->lane];
        struct scan_state x = *before;
        if (inside)
            meet_result(s, i, p, before, inside, &x);
        if (r->bound) {
            *v = of_segment(s, i, &x);
            return true;
        }
        *v = is_arg(e) ? index_of(s, r, x.v[p + 1]) : x.v[p];
        if (e->args[0]->type == DT_BOOL && !is_arg(e))
            *v = cg_binary(g, OP_NE, x.v[p], cg_u32(0));
        return true;
    }
    return false;
}

static void store(struct scan *s, const struct lang_equation *eq, uint32_t j,
                  const struct cg_val *v)
{
    struct cg *g = s->g;
    struct cg_val sub[SCAN_RANK];
    memcpy(sub, s->sub, sizeof sub);
    sub[s->f->axis] = s->position[j];
    cg_at(g, eq->span);
    struct cg_place_of at = cg_element(g, eq->sym, eq->nindex, sub);
    /* what one tile leaves behind is in the way of the next ones' totals */
    if (s->p->way == SCAN_BY_BLOCKS && s->p->lanes > 1)
        at.cache = cg_read_once(g, eq->sym);
    if (s->p->lanes == 1)
        cg_store(g, eq->sym, at, v[0]);
    else
        cg_store_words(g, eq->sym->type, at, s->p->lanes, v);
}

/* Everything is read before anything is written: an inout's old value may be among it. */
void scan_store(struct scan *s, uint32_t j)
{
    struct cg *g = s->g;
    const struct lower_stage *stage = s->f->stage;
    struct scan_elements *out = ARENA_ARRAY(g->a, stage->n, struct scan_elements);
    const struct cg_guard before = guard(s, j);
    for (uint32_t k = 0; k < s->p->lanes; k++) {
        const size_t bound = g->bindings.n;
        go_to(s, j, k);
        for (uint32_t i = 0; i < stage->n; i++) {
            cg_at(g, stage->eq[i]->span);
            out[i].v[place_of_lane(s, k)] = cg_define(g, stage->eq[i], s->axis);
        }
        g->bindings.n = bound;
    }
    for (uint32_t i = 0; i < stage->n; i++)
        store(s, stage->eq[i], j, out[i].v);
    cg_unguard(g, before);
}

/* ---- the thread's place ---------------------------------------------------------------------- */

struct cg_val scan_number(struct cg *g, struct scan_count n)
{
    if (n.is_known)
        return cg_u32((uint32_t)n.n);
    return cg_convert(g, cg_param_computed(g, n.e), DT_U32);
}

/* The subscripts of axes [first, last) from the number of them all together; of the last axis in
 * steps of `lanes`. */
static void split(struct scan *s, struct cg_val number, uint32_t first, uint32_t last,
                  uint32_t lanes)
{
    struct cg *g = s->g;
    struct cg_val rest = cg_index(g, number);
    for (uint32_t i = last; i-- > first;) {
        s->sub[i] = rest;
        if (i > first) {
            struct cg_val n = cg_convert(g, s->n[i], DT_U32);
            if (i + 1 == last && lanes > 1)
                n = cg_binary(g, OP_DIV, n, cg_u32(lanes));
            cg_divmod(g, rest, cg_index(g, n), &rest, &s->sub[i]);
        }
        if (i + 1 == last && lanes > 1)
            s->sub[i] = cg_index(g, cg_mul(g, cg_convert(g, s->sub[i], DT_U32), lanes));
    }
}

void scan_place(struct scan *s, struct cg_val row, struct cg_val group)
{
    split(s, row, 0, s->f->axis, 1);
    split(s, group, s->f->axis + 1, s->f->naxis, s->p->lanes);
}

void scan_open(struct scan *s)
{
    struct cg *g = s->g;
    const struct scan_form *f = s->f;
    s->npart = 0;
    for (uint32_t i = 0; i < f->nresult; i++) {
        const enum dtype t = f->result[i].e->args[0]->type;
        s->part[s->npart++] = t == DT_BOOL ? DT_U32 : t;
        if (is_arg(f->result[i].e))
            s->part[s->npart++] = DT_I64;
        if (f->result[i].bound)
            s->part[s->npart++] = DT_U32;
    }
    for (uint32_t i = 0; i < f->naxis; i++)
        s->n[i] = cg_extent(g, f->stage->eq[0]->sym, i);
    s->element = ARENA_ARRAY(g->a, (f->nread + 1) * SCAN_HELD, struct scan_elements);
    g->read = read_element;
    g->reduced = result;
    g->read_ctx = s;
    g->converts = true;
}
