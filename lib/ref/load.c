#include <config.h>

#include "ref/program.h"

/* ---- reading --------------------------------------------------------------------------------- */

static void input_value(const struct tensor *t, uint64_t flat, struct vec *o, int l)
{
    if (dtype_is_float(t->type))
        o->v[l] = dtype_get(t->type, t->data, (size_t)flat);
    else
        o->i[l] = t->type == DT_BOOL ? dtype_get_int(t->type, t->data, (size_t)flat) != 0
                                     : dtype_get_int(t->type, t->data, (size_t)flat);
    o->e[l] = 0;
}

/* Another equation may see an output as it was before the store or as stored: all that it may be,
 * and what the ends of that are rounded to. */
static void stored_or_not(const struct tensor *t, struct vec *o, int l)
{
    if (!t->store_rounds || !dtype_is_float(t->type) || t->type == DT_F64)
        return;
    const double v = o->v[l], e = o->e[l], r = dtype_round(t->type, v);
    if (isinf(v) && isfinite(r)) { /* it saturates: nothing is too far from both */
        o->v[l] = r;
        o->e[l] = INFINITY;
    } else if (isfinite(v) && isfinite(e)) {
        const double up = dtype_round(t->type, v + e) - v, down = v - dtype_round(t->type, v - e);
        o->e[l] = fmax(e, fmax(up, down));
    }
}

static void value(struct frame *f, const struct tensor *t, uint64_t flat, struct vec *o, int l)
{
    if (t->data) {
        input_value(t, flat, o, l);
        return;
    }
    if (f->memo) {
        struct entry *m = ref_table_find(f->memo[t->id], flat);
        o->i[l] = m ? m->i : 0;
        o->e[l] = m ? m->e : INFINITY;
    } else {
        if (t->v)
            o->v[l] = t->v[flat];
        else
            o->i[l] = t->i[flat];
        o->e[l] = t->e[flat];
    }
    stored_or_not(t, o, l);
}

/* ---- what is evaluated of a tensor, and where it lies ---------------------------------------- */

static void lay_out(struct tensor *t, const uint64_t *extent)
{
    uint64_t step = 1;
    for (uint32_t d = t->rank; d-- > 0;) {
        t->stride[d] = step;
        step *= extent[d];
    }
    t->base = 0;
    for (uint32_t d = 0; d < t->rank && t->is_part; d++)
        t->base += t->lo[d] * t->stride[d];
}

void ref_tensor_all(struct tensor *t)
{
    for (uint32_t d = 0; d < t->rank; d++) {
        t->lo[d] = 0;
        t->len[d] = t->shape[d];
    }
    t->n = t->count;
    t->is_part = false;
    lay_out(t, t->shape);
}

void ref_tensor_window(struct tensor *t, bool is_part)
{
    t->n = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        t->n *= t->len[d];
    t->is_part = is_part;
    lay_out(t, is_part ? t->len : t->shape);
}

uint64_t ref_tensor_flat(const struct tensor *t, uint64_t at)
{
    uint64_t flat = 0, step = 1;
    for (uint32_t d = t->rank; d-- > 0;) {
        flat += (t->lo[d] + at % t->len[d]) * step;
        at /= t->len[d];
        step *= t->shape[d];
    }
    return flat;
}

void ref_tensor_store(struct tensor *t, struct frame *f, uint64_t flat, const struct vec *v, int l)
{
    if (f->memo) {
        struct entry *m = ref_table_add(f->memo[t->id], flat);
        if (!m) {
            ref_fail(f, t->eq->src->span, "not enough memory for the values of '%s'", t->sym->name);
            return;
        }
        m->i = v->i[l];
        m->e = v->e[l];
        return;
    }
    if (!t->is_part && t->n != t->count)
        flat = ref_tensor_flat(t, flat);
    if (t->v)
        t->v[flat] = v->v[l];
    else
        t->i[flat] = v->i[l];
    t->e[flat] = v->e[l];
}

/* ---- subscripts ------------------------------------------------------------------------------ */

static void hull_lane(enum dtype t, struct vec *o, int l, const struct vec *w, int k)
{
    if (dtype_is_float(t))
        ref_hull(&o->v[l], &o->e[l], w->v[k], w->e[k]);
    else
        ref_hull_int(&o->i[l], &o->e[l], w->i[k], w->e[k]);
}

enum { CANDIDATES = LANES };

/* A lane whose subscripts are not exact: covers all that they may select. More than CANDIDATES, or
 * none inside the tensor: unknown. */
static void uncertain_lane(struct frame *f, const struct node *n, const struct vec **sub, int l)
{
    struct tensor *t = n->tensor;
    struct vec *o = node_out(f, n), one;
    uint64_t flats[CANDIDATES];
    int count = 0;
    double total = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        total *= 2 * sub[d]->e[l] + 1;
    o->i[l] = 0;
    o->e[l] = INFINITY;
    if (!(total <= CANDIDATES))
        return;
    for (int c = 0; c < (int)total; c++) {
        uint64_t flat = 0;
        bool inside = true;
        int rest = c;
        for (uint32_t d = 0; d < t->rank; d++) {
            int width = (int)(2 * sub[d]->e[l]) + 1;
            int64_t x = sub[d]->i[l] + rest % width - width / 2;
            rest /= width;
            inside = inside && x >= 0 && (uint64_t)x < t->shape[d];
            flat += (uint64_t)x * t->stride[d];
        }
        if (inside)
            flats[count++] = flat - t->base;
    }
    if (f->memo && !t->data && count)
        ref_demand(f, t, flats, count);
    for (int c = 0; c < count; c++) {
        value(f, t, flats[c], &one, 0);
        if (c)
            hull_lane(t->type, o, l, &one, 0);
        else
            o->i[l] = one.i[0], o->e[l] = one.e[0];
    }
}

static void out_of_range(struct frame *f, const struct node *n, const struct vec **sub, int l)
{
    const struct tensor *t = n->tensor;
    for (uint32_t d = 0; d < t->rank; d++) {
        int64_t x = sub[d]->i[l];
        if (x >= 0 && (uint64_t)x < t->shape[d])
            continue;
        char where[200] = "";
        struct equation *eq = f->eq;
        if (eq && eq->tensor->rank) {
            size_t len = 0;
            for (uint32_t k = 0; k < eq->tensor->rank && len < sizeof where; k++) {
                int w = snprintf(where + len, sizeof where - len, "%s%s = %lld", k ? ", " : " at ",
                                 eq->src->index[k]->name,
                                 (long long)f->slot[eq->index_slot[k]].i[l]);
                len += w > 0 ? (size_t)w : 0;
            }
        }
        ref_fail(f, n->src->span,
                 "subscript %u of '%s' is %lld, outside 0..%llu, in the equation of '%s'%s", d + 1,
                 t->sym->name, (long long)x, (unsigned long long)t->shape[d],
                 eq ? eq->tensor->sym->name : "?", where);
        return;
    }
}

/* ---- the node -------------------------------------------------------------------------------- */

/* Loops without a switch inside for the common input types. */
#define GATHER(dt, ctype, member)                                               \
    case dt: {                                                                  \
        const ctype *p = t->data;                                               \
        for (int l = 0; l < LANES; l++)                                         \
            o->member[l] = (__typeof__(o->member[0]))p[state[l] ? flat[l] : 0]; \
        break;                                                                  \
    }

/* The elements as their equation gives them, into the lanes that state names. */
static void here(struct frame *f, const struct tensor *t, const uint64_t *flat, int n,
                 struct vec *o, const uint8_t *state)
{
    const struct vec *v = ref_equation_value(f, t->eq, flat, n);
    for (int l = 0, k = 0; l < LANES; l++) {
        if (!state[l])
            continue;
        o->i[l] = v->i[k];
        o->e[l] = v->e[k++];
        stored_or_not(t, o, l);
    }
}

static void gather(struct frame *f, const struct node *n, const uint64_t *flat,
                   const uint8_t *state)
{
    const struct tensor *t = n->tensor;
    struct vec *o = node_out(f, n);
    if (t->data && t->count) {
        memset(o->e, 0, sizeof o->e);
        switch (t->type) {
            GATHER(DT_F32, float, v)
            GATHER(DT_F64, double, v)
            GATHER(DT_I32, int32_t, i)
            GATHER(DT_U32, uint32_t, i)
            GATHER(DT_I64, int64_t, i)
            GATHER(DT_U64, uint64_t, i)
            GATHER(DT_I8, int8_t, i)
            GATHER(DT_U8, uint8_t, i)
        default:
            for (int l = 0; l < LANES; l++)
                if (state[l])
                    input_value(t, flat[l], o, l);
        }
        return;
    }
    if (f->memo) {
        uint64_t need[LANES];
        int count = 0;
        for (int l = 0; l < LANES; l++)
            if (state[l])
                need[count++] = flat[l];
        if (count && t->eq->direct) {
            here(f, t, need, count, o, state);
            return;
        }
        if (count)
            ref_demand(f, n->tensor, need, count);
    }
    for (int l = 0; l < LANES; l++)
        if (state[l])
            value(f, t, flat[l], o, l);
}

/* Flat offsets, where all subscripts are inside, and whether any is uncertain. */
static bool subscripts(struct frame *f, const struct node *n, const uint8_t *mask,
                       const struct vec **sub, uint64_t *flat, uint8_t *inside)
{
    const struct tensor *t = n->tensor;
    double e = 0;
    memset(inside, 1, LANES);
    for (int l = 0; l < LANES; l++)
        flat[l] = -t->base;
    for (uint32_t d = 0; d < t->rank; d++) {
        const struct vec *s = sub[d] = node_arg(f, n, d, mask);
        const uint64_t extent = t->shape[d], stride = t->stride[d];
        for (int l = 0; l < LANES; l++) {
            uint64_t x = (uint64_t)s->i[l];
            inside[l] &= x < extent;
            flat[l] += x * stride;
            e += s->e[l];
        }
    }
    return !(e == 0);
}

static bool lane_uncertain(const struct tensor *t, const struct vec **sub, int l)
{
    bool any = false;
    for (uint32_t d = 0; d < t->rank; d++)
        any |= sub[d]->e[l] > 0;
    return any;
}

/* The lanes that a plain read did not serve: uncertain, padded, or out of range. */
static void other_lanes(struct frame *f, const struct node *n, const uint8_t *mask,
                        const struct vec **sub, const uint8_t *served)
{
    const struct tensor *t = n->tensor;
    const struct vec *pad = NULL;
    struct vec *o = node_out(f, n);
    if (n->pad) {
        if (n->pad->eval)
            n->pad->eval(f, n->pad, mask);
        pad = node_out(f, n->pad);
    }
    for (int l = 0; l < LANES; l++) {
        if (!mask[l] || served[l])
            continue;
        if (lane_uncertain(t, sub, l)) {
            uncertain_lane(f, n, sub, l);
            if (pad)
                hull_lane(t->type, o, l, pad, l);
        } else if (pad) {
            o->i[l] = pad->i[l];
            o->e[l] = pad->e[l];
        } else {
            if (mask[l] == LANE_ON)
                out_of_range(f, n, sub, l);
            o->i[l] = 0;
            o->e[l] = INFINITY;
        }
    }
}

void eval_load(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *sub[MAX_RANK];
    uint64_t flat[LANES];
    uint8_t inside[LANES], serve[LANES];
    bool others = false, uncertain = subscripts(f, n, mask, sub, flat, inside);
    for (int l = 0; l < LANES; l++) {
        serve[l] = mask[l] && inside[l];
        if (uncertain && lane_uncertain(n->tensor, sub, l))
            serve[l] = LANE_OFF;
        others |= mask[l] && !serve[l];
    }
    gather(f, n, flat, serve);
    if (others)
        other_lanes(f, n, mask, sub, serve);
}
