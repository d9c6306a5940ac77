/* A thread's share of what is reduced: its vectors, one after the other, into its slots.
 * reduce/reduce.h.
 *
 * The vectors of a result (or of a tile of columns) are numbered through all reduced loops. With
 * one loop the number is the index; with several the indices are kept beside it and advance by the
 * digits of the step, carrying from the fastest loop on, so that the loop divides nothing.
 */
#include <config.h>

#include "lower/reduce/reduce.h"

struct step {
    struct reduce_loaded *loaded;  /* by read */
    struct cg_val at[REDUCE_AXES]; /* by loop */
};

struct thread {
    struct reduce *r;
    struct reduce_sweep *s;
    uint32_t lanes;
    struct step *at;                  /* of the batch */
    struct cg_val digit[REDUCE_AXES]; /* by loop: of the next position */
    struct cg_val step[REDUCE_AXES],
        n[REDUCE_AXES]; /* of reduced loops: digits of the step; rounds */
    bool moves[REDUCE_READS];
};

/* ---- lanes and their indices ----------------------------------------------------------------- */

/* No index could be there: it stands for the indices of a loop of several axes, only to be told
 * apart. */
#define STAND_IN (INT64_MIN / 2)

static struct cg_val lane_index(struct reduce *r, uint32_t loop, uint32_t lane)
{
    struct cg_val at = r->at[loop];
    if (loop != r->f->lane || lane == 0)
        return at;
    if (!r->f->loop[loop].is_narrow)
        return cg_binary(r->g, OP_ADD, at, cg_int(DT_I64, lane));
    struct cg_val low = cg_convert(r->g, at, DT_U32);
    return cg_index(r->g, cg_binary(r->g, OP_ADD, low, cg_int(DT_U32, lane)));
}

/* Axes of kept loops stand for the same at each position, so that what is made of them alone is
 * computed once. */
static int64_t number_in_tile(const struct reduce *r, uint32_t axis)
{
    const struct reduce_axis *a = &r->f->axis[axis];
    const uint32_t own = a->is_reduced ? 1 + r->position : 0;
    return ((int64_t)own * REDUCE_AXES + axis) * REDUCE_LANES +
           (a->loop == r->f->lane ? r->lane : 0);
}

void reduce_bind_lane(struct reduce *r, uint32_t lane)
{
    struct cg *g = r->g;
    const struct reduce_form *f = r->f;
    r->lane = lane;
    for (uint32_t a = 0; a < f->naxis; a++) {
        const struct reduce_axis *x = &f->axis[a];
        if (f->loop[x->loop].naxis > 1) {
            r->axis[a] =
                cg_int(DT_I64, STAND_IN + (f->is_tile ? number_in_tile(r, a) : r->serial++));
            continue;
        }
        r->axis[a] = lane_index(r, x->loop, lane);
        if (x->low)
            r->axis[a] = cg_binary(g, OP_ADD, r->axis[a], cg_index(g, cg_expr(g, x->low)));
    }
    for (size_t i = 0; i < f->index.n; i++)
        cg_bind(g, f->index.v[i].sym, r->axis[f->index.v[i].axis], false);
}

struct cg_place_of reduce_place(struct reduce *r, const struct lang_symbol *sym, uint32_t n,
                                const uint32_t *axis, uint32_t lane)
{
    struct cg *g = r->g;
    struct cg_val flat = cg_int(DT_I64, 0);
    for (uint32_t i = 0; i < n;) {
        uint32_t loop = r->f->axis[axis[i]].loop;
        struct cg_val at = lane_index(r, loop, lane);
        flat = i ? cg_binary(g, OP_ADD, cg_binary(g, OP_MUL, flat, r->n[loop]), at) : at;
        i += r->f->loop[loop].naxis;
    }
    return cg_address(g, sym, flat);
}

/* ---- reads ----------------------------------------------------------------------------------- */

static bool is_read_here(struct reduce *r, const struct lang_expr *e, const struct reduce_read *q)
{
    if (e->sym != q->sym || e->nargs != q->sym->rank)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const struct lang_expr *s = inspect_strip(e->args[i]);
        const struct cg_binding *b = s->kind == E_NAME ? cg_find(r->g, s->sym) : NULL;
        if (!b || !cg_same(b->val, r->axis[q->axis[i]]))
            return false;
    }
    return true;
}

bool reduce_read(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct reduce *r = g->read_ctx;
    if (e->kind != E_INDEX || e->sym->rank == 0 || cg_is_defined(g, e->sym))
        return false;
    for (uint32_t i = 0; i < r->f->nread; i++) {
        const struct reduce_read *q = &r->f->read[i];
        if (!is_read_here(r, e, q))
            continue;
        if (r->is_loaded[i])
            *v = r->element[i].v[r->lane];
        else
            *v = cg_load(g, e->sym, reduce_place(r, e->sym, e->nargs, q->axis, r->lane));
        return true;
    }
    return false;
}

static bool in_lanes(const struct reduce *r, const struct reduce_read *q)
{
    for (uint32_t i = 0; i < q->sym->rank; i++)
        if (r->f->axis[q->axis[i]].loop == r->f->lane)
            return true;
    return false;
}

void reduce_load(struct reduce *r, uint32_t read, uint32_t lanes, struct reduce_loaded *l)
{
    struct cg *g = r->g;
    const struct reduce_read *q = &r->f->read[read];
    enum dtype type = q->sym->type;
    unsigned bits = dtype_bits(type);
    bool constant = q->sym->kind == SYM_BUFFER && q->sym->mode == MODE_IN;
    bool vector = lanes > 1 && reduce_ends_in_lanes(r->f, q->sym->rank, q->axis);
    *l = (struct reduce_loaded){.n = vector || !in_lanes(r, q) ? 1 : lanes};
    for (uint32_t k = 0; k < l->n; k++) {
        struct cg_place_of at = reduce_place(r, q->sym, q->sym->rank, q->axis, k);
        if (r->f->nall > r->f->nkept) /* as much is written */
            cg_read_again(g, q->sym, &at);
        else
            at.cache = cg_read_once(g, q->sym);
        l->is_words = vector && bits < 32 && bits * lanes >= 32;
        l->is_byte = !vector && type == DT_BOOL;
        if (l->is_words) {
            l->n = bits * lanes / 32;
            cg_load_words(g, DT_U32, constant && !at.has_policy, at, l->n, l->v);
            return;
        }
        if (vector) {
            l->n = lanes;
            cg_load_words(g, type, constant && !at.has_policy, at, l->n, l->v);
            return;
        }
        at.has_policy = false; /* of words alone */
        l->v[k] = cg_load_at(g, l->is_byte ? DT_U8 : type, constant, at);
    }
}

void reduce_unpack(struct reduce *r, uint32_t read, uint32_t lanes, const struct reduce_loaded *l)
{
    struct cg *g = r->g;
    enum dtype type = r->f->read[read].sym->type;
    struct cg_val *v = r->element[read].v;
    if (l->is_words) {
        uint32_t per = 32 / dtype_bits(type);
        for (uint32_t k = 0; k < l->n; k++)
            cg_unpack(g, type, l->v[k].op.reg, per, v + (size_t)k * per);
        return;
    }
    for (uint32_t k = 0; k < lanes; k++) {
        v[k] = l->v[l->n == 1 ? 0 : k];
        if (l->is_byte)
            v[k] = cg_convert(g, v[k], DT_BOOL);
    }
}

/* ---- one position ---------------------------------------------------------------------------- */

static struct cg_val narrowed(struct cg *g, const struct reduce_loop *l, struct cg_val at)
{
    return l->is_narrow ? cg_index(g, cg_convert(g, at, DT_U32)) : at;
}

/* The index that a digit stands for: of the lane loop, of its first lane. */
static struct cg_val index_of(struct thread *t, uint32_t loop, struct cg_val digit)
{
    struct cg *g = t->r->g;
    const struct reduce_loop *l = &t->r->f->loop[loop];
    digit = narrowed(g, l, digit);
    if (loop != t->r->f->lane || t->lanes == 1)
        return digit;
    if (!l->is_narrow)
        return cg_binary(g, OP_MUL, digit, cg_int(DT_I64, t->lanes));
    struct cg_val low = cg_convert(g, digit, DT_U32);
    return cg_index(g, cg_binary(g, OP_MUL, low, cg_int(DT_U32, t->lanes)));
}

static void set_position(struct thread *t, uint32_t u)
{
    for (uint32_t i = t->r->f->nkeptloop; i < t->r->f->nloop; i++)
        t->r->at[i] = t->at[u].at[i];
}

static void load(void *ctx, uint32_t u)
{
    struct thread *t = ctx;
    set_position(t, u);
    for (uint32_t i = 0; i < t->r->f->nread; i++)
        if (t->moves[i])
            reduce_load(t->r, i, t->lanes, &t->at[u].loaded[i]);
}

static void take(void *ctx, uint32_t u)
{
    struct thread *t = ctx;
    struct reduce *r = t->r;
    struct cg *g = r->g;
    set_position(t, u);
    for (uint32_t i = 0; i < r->f->nread; i++)
        if (t->moves[i])
            reduce_unpack(r, i, t->lanes, &t->at[u].loaded[i]);
    for (uint32_t lane = 0; lane < t->lanes; lane++) {
        size_t bound = g->bindings.n;
        reduce_bind_lane(r, lane);
        for (uint32_t i = 0; i < r->f->nresult; i++)
            reduce_take(r, i, lane % r->p->slots);
        g->bindings.n = bound;
    }
}

/* ---- from one position to the next ----------------------------------------------------------- */

static enum dtype digit_type(const struct thread *t, uint32_t loop)
{
    return t->r->f->loop[loop].is_narrow ? DT_U32 : DT_I64;
}

/* digit + step + carry, less n where that is reached: no sum exceeds n. */
static struct cg_val add_digit(struct thread *t, uint32_t loop, struct cg_val *carry)
{
    struct cg *g = t->r->g;
    enum dtype type = digit_type(t, loop);
    struct cg_val d = t->digit[loop], step = t->step[loop];
    if (carry->type == DT_BOOL)
        step = cg_binary(g, OP_ADD, step, cg_convert(g, *carry, type));
    if (loop == t->r->f->nkeptloop)
        return cg_binary(g, OP_ADD, d, step);
    struct cg_val left = cg_binary(g, OP_SUB, t->n[loop], d);
    *carry = cg_binary(g, OP_GE, step, left);
    int32_t over = cg_reg(g, *carry);
    const struct cg_val sum = cg_binary(g, OP_ADD, d, step);
    return cg_select(g, over, cg_binary(g, OP_SUB, step, left), sum);
}

static void advance(void *ctx, uint32_t u, bool is_first)
{
    struct thread *t = ctx;
    struct cg *g = t->r->g;
    uint32_t from = t->r->f->nkeptloop, end = t->r->f->nloop;
    if (end - from == 1) {
        t->at[u].at[from] = index_of(t, from, t->s->at);
        return;
    }
    struct cg_val carry = cg_int(DT_U32, 0);
    for (uint32_t i = end; i-- > from;) {
        if (is_first)
            t->digit[i] = cg_value(digit_type(t, i), t->s->state[i - from]);
        t->at[u].at[i] = index_of(t, i, cg_index(g, t->digit[i]));
    }
    for (uint32_t i = end; i-- > from;)
        t->digit[i] = add_digit(t, i, &carry);
}

static void leave(void *ctx)
{
    struct thread *t = ctx;
    uint32_t from = t->r->f->nkeptloop;
    for (uint32_t i = from; i < t->r->f->nloop; i++)
        cg_move(t->r->g, t->s->state[i - from], t->digit[i]);
}

/* The digits of a position, as values of the loops' types. */
static void split_digits(struct thread *t, struct cg_val at, struct cg_val *digit)
{
    struct cg *g = t->r->g;
    for (uint32_t i = t->r->f->nloop; i-- > t->r->f->nkeptloop;) {
        enum dtype type = digit_type(t, i);
        digit[i] = at;
        if (i > t->r->f->nkeptloop) {
            /* of nothing there is no position: then any divisor will do; positions at first are
             * below 2^32 - 1 */
            struct cg_val n = cg_minmax(g, true, t->n[i], cg_int(type, 1));
            n = cg_minmax(g, false, n, cg_int(type, UINT32_MAX));
            cg_divmod(g, at, cg_index(g, cg_convert(g, n, DT_U32)), &at, &digit[i]);
        }
        digit[i] = cg_convert(g, digit[i], type);
    }
}

static void open_digits(struct thread *t)
{
    struct cg *g = t->r->g;
    const struct reduce_form *f = t->r->f;
    struct reduce_sweep *s = t->s;
    uint32_t from = f->nkeptloop;
    if (f->nloop - from == 1)
        return;
    for (uint32_t i = from; i < f->nloop; i++) {
        struct cg_val n = t->r->n[i];
        if (i == f->lane && t->lanes > 1)
            n = cg_binary(g, OP_SHR, n, cg_int(DT_U32, __builtin_ctz(t->lanes)));
        t->n[i] = cg_convert(g, n, digit_type(t, i));
    }
    split_digits(t, s->step, t->step);
    split_digits(t, s->start, t->digit);
    for (uint32_t i = from; i < f->nloop; i++) {
        s->state[s->nstate] = cg_new_mutable(g, digit_type(t, i));
        cg_move(g, s->state[s->nstate++], t->digit[i]);
    }
    s->leave = leave;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* What does not move with the reduction is read before it. */
static void load_fixed(struct thread *t)
{
    struct reduce *r = t->r;
    for (size_t i = 0; i < r->f->scalar.n; i++)
        cg_expr(r->g, r->f->scalar.v[i]);
    for (uint32_t i = 0; i < r->f->nread; i++) {
        const struct reduce_read *q = &r->f->read[i];
        if (!q->in_body || t->moves[i])
            continue;
        struct reduce_loaded l;
        reduce_load(r, i, t->lanes, &l);
        reduce_unpack(r, i, t->lanes, &l);
    }
}

/* Loads one term of sums of squared differences, the first: it is the same for all that share the
 * result. */
static void load_one_term(struct reduce *r)
{
    struct cg *g = r->g;
    const struct reduce_form *f = r->f;
    uint32_t none = cg_label(g, "none");
    bool any = false;
    for (uint32_t i = 0; i < f->nresult; i++)
        for (uint32_t k = 0; k < r->p->width && f->result[i].term; k++) {
            any = true;
            r->one_term[i][k] = cg_new_mutable(g, DT_F64);
            cg_move(g, r->one_term[i][k], cg_float(g, DT_F64, 0));
        }
    if (!any)
        return;
    size_t mark = cg_scope_open(g), bound = g->bindings.n;
    bool preloaded = g->preloaded;
    g->preloaded = false;
    for (uint32_t i = f->nkeptloop; i < f->nloop; i++) {
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, r->n[i], cg_int(DT_I64, 0))), true, none);
        r->at[i] = cg_int(DT_I64, 0);
    }
    for (uint32_t k = 0; k < r->p->width; k++) {
        reduce_bind_lane(r, k);
        for (uint32_t i = 0; i < f->nresult; i++)
            if (f->result[i].term)
                cg_move(g, r->one_term[i][k], cg_convert(g, cg_expr(g, f->result[i].term), DT_F64));
        g->bindings.n = bound;
    }
    g->preloaded = preloaded;
    cg_scope_close(g, mark);
    cg_place(g, none);
}

/* The elements behind the last whole vector, one for each thread of the first block. */
static void tail(struct thread *t, struct cg_val groups)
{
    struct reduce *r = t->r;
    struct cg *g = r->g;
    uint32_t lane = r->f->lane, skip = cg_label(g, "whole");
    const struct reduce_loop *l = &r->f->loop[lane];
    struct cg_val first = cg_binary(g, OP_MUL, groups, cg_int(DT_I64, t->lanes));
    struct cg_val at = cg_binary(g, OP_ADD, first, cg_index(g, r->ty));
    struct cg_val outside = cg_binary(g, OP_GE, at, r->n[lane]);
    size_t mark = cg_scope_open(g);
    if (!r->p->split.is_known || r->p->split.n != 1)
        outside = cg_binary(g, OP_LOR, outside, cg_binary(g, OP_NE, r->part, cg_int(DT_I64, 0)));
    cg_jump_if(g, cg_reg(g, outside), true, skip);
    t->lanes = 1;
    t->at[0].at[lane] = narrowed(g, l, at);
    load(t, 0);
    take(t, 0);
    cg_scope_close(g, mark);
    cg_place(g, skip);
}

/* groups: of the lane loop; rows: what is gone through, in vectors. */
void reduce_walk(struct reduce *r, struct cg_val groups, struct cg_val rows)
{
    struct cg *g = r->g;
    const struct reduce_plan *p = r->p;
    struct cg_val ty = cg_int(DT_U32, p->ty);
    struct reduce_sweep s = {.unroll = p->unroll, .end = rows};
    struct thread t = {.r = r, .s = &s, .lanes = p->lanes};
    t.at = ARENA_ARRAY(g->a, p->unroll, struct step);
    for (uint32_t u = 0; u < p->unroll; u++)
        t.at[u].loaded = ARENA_ARRAY(g->a, r->f->nread + 1, struct reduce_loaded);
    r->element = ARENA_ARRAY(g->a, r->f->nread + 1, struct reduce_lanes);
    for (uint32_t i = 0; i < r->f->nread; i++) {
        const struct reduce_read *q = &r->f->read[i];
        for (uint32_t k = 0; k < q->sym->rank && q->in_body; k++)
            t.moves[i] |= r->f->axis[q->axis[k]].is_reduced;
    }
    load_one_term(r);
    for (uint32_t i = 0; i < r->f->nread; i++)
        r->is_loaded[i] = r->f->read[i].in_body;
    struct cg_val before = cg_binary(g, OP_MUL, cg_convert(g, r->part, DT_U32), ty);
    s.start = cg_index(g, cg_binary(g, OP_ADD, before, r->ty));
    s.step = cg_index(g, cg_binary(g, OP_MUL, cg_convert(g, r->split, DT_U32), ty));
    s.ctx = &t;
    s.advance = advance;
    s.load = load;
    s.take = take;
    open_digits(&t);
    load_fixed(&t);
    reduce_sweep(g, &s);
    if (p->has_tail)
        tail(&t, groups);
    for (uint32_t i = 0; i < r->f->nread; i++)
        r->is_loaded[i] = false;
}
