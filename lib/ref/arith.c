#include <config.h>

#include "ref/program.h"

#include <float.h>

/* The evaluation of the bounds themselves rounds: a relative 2^-40 on top covers it. */
static const double SLACK = 1 + 0x1p-40;

struct rounding ref_rounding(enum dtype t)
{
    if (t == DT_F64)
        return (struct rounding){.unit = 2 * 0x1p-53 * SLACK, .tiny = 0x1p-1074, .limit = DBL_MAX};
    /* Narrower types are computed in f32. The reference's own double rounding is added. */
    return (struct rounding){.unit = (0x1p-24 + 0x1p-53) * SLACK,
                             .tiny = 0x1p-150,
                             .limit = (double)FLT_MAX,
                             .f32 = true};
}

void ref_range(const struct rounding *r, double *v, double *e)
{
    if (isnan(*v))
        return;
    if (isinf(*v)) {
        if (*e != INFINITY)
            *e = 0;
        return;
    }
    double a = fabs(*v);
    if (!r->f32) {
        if (isnan(*e) || a + *e > r->limit)
            *e = INFINITY;
        return;
    }
    /* beyond this, rounding to nearest gives infinity (f32: half an ulp above the largest) */
    double over = r->limit * (1 + 0x1p-25);
    if (a - *e >= over) {
        *v = copysign(INFINITY, *v);
        *e = 0;
    } else if (isnan(*e) || (a + *e >= over && *e > 0)) {
        *e = INFINITY;
    }
}

void ref_hull(double *v, double *e, double w, double f)
{
    if (*e == INFINITY || f == INFINITY) {
        *e = INFINITY;
    } else if (isnan(*v) || isnan(w)) {
        if (isnan(*v) != isnan(w))
            *e = INFINITY;
    } else if (isinf(*v) || isinf(w)) {
        if (*v != w)
            *e = INFINITY;
    } else {
        double far = fabs(*v - w) * SLACK + f;
        *e = far > *e ? far : *e;
    }
}

/* ---- the slow path: anything not finite, or near the end of the range ------------------------ */

typedef double op2(double a, double b);

static double op_add(double a, double b)
{
    return a + b;
}
static double op_sub(double a, double b)
{
    return a - b;
}
static double op_mul(double a, double b)
{
    return a * b;
}
static double op_div(double a, double b)
{
    return a / b;
}

/* Value and error from the corners of the operands' intervals; right for operations that are
 * monotone in each operand over them. */
static void corners(op2 *op, double a, double ea, double b, double eb, double *v, double *e)
{
    double r = op(a, b), spread = 0;
    for (int k = 0; k < 4; k++) {
        double c = op(k & 1 ? a + ea : a - ea, k & 2 ? b + eb : b - eb);
        if (isnan(c) != isnan(r) || ((isinf(c) || isinf(r)) && !isnan(c) && c != r))
            spread = INFINITY;
        else if (isfinite(c) && fabs(c - r) > spread)
            spread = fabs(c - r);
    }
    *v = r;
    *e = spread;
}

static void slow2(op2 *op, const struct rounding *r, bool rounded, double a, double ea, double b,
                  double eb, double *v, double *e)
{
    if ((isnan(a) && ea == 0) || (isnan(b) && eb == 0)) {
        *v = NAN;
        *e = 0;
        return;
    }
    if (ea == INFINITY || eb == INFINITY) {
        *v = op(a, b);
        *e = INFINITY;
        return;
    }
    if (ea == 0 && eb == 0) {
        *v = op(a, b);
        *e = 0;
        if (!isfinite(*v))
            return;
        double near = r->f32 ? (double)(float)*v : *v;
        if (rounded || isinf(near))
            *v = near;
        else
            *e = r->unit * fabs(*v) + r->tiny;
        return;
    }
    corners(op, a, ea, b, eb, v, e);
    if (op == op_div && fabs(b) <= eb)
        *e = INFINITY;
    if (isfinite(*v) && isfinite(*e))
        *e = (*e + r->unit * (fabs(*v) + *e) + r->tiny) * SLACK;
    ref_range(r, v, e);
}

/* Does a lane need the slow path? NaN does, too. */
#define OUT_OF_RANGE(v, e, limit) (!(fabs(v) + (e) < (limit)))

static void redo(op2 *op, const struct node *n, const struct vec *a, const struct vec *b,
                 struct vec *o)
{
    const double limit = n->round.limit * 0.999;
    for (int l = 0; l < LANES; l++) {
        if (!OUT_OF_RANGE(o->v[l], o->e[l], limit))
            continue;
        slow2(op, &n->round, n->rounded, a->v[l], a->e[l], b->v[l], b->e[l], &o->v[l], &o->e[l]);
        if (n->contracts && !n->rounded && isinf(o->v[l]) && isfinite(a->v[l]) && isfinite(b->v[l]))
            o->e[l] = INFINITY;
    }
}

/* ---- the fast paths -------------------------------------------------------------------------- */

/* p: the operands' propagated error (0: both exact); exact: the result needs no rounding. Written
 * without branches, so that the loops below vectorise. */
static inline double settle(const struct rounding *r, bool f32, bool rounded, double *v, double p,
                            bool exact)
{
    double near = f32 ? (double)(float)*v : *v;
    double full = (p + r->unit * (fabs(*v) + p) + r->tiny) * SLACK;
    bool none = (p == 0) & (rounded | (exact & (near == *v)));
    *v = none ? near : *v;
    return none ? 0 : full;
}

static inline double settled(const struct rounding *r, bool f32, bool rounded, double *v, double p,
                             bool exact)
{
    return f32 ? (rounded ? settle(r, true, true, v, p, exact)
                          : settle(r, true, false, v, p, exact))
               : (rounded ? settle(r, false, true, v, p, exact)
                          : settle(r, false, false, v, p, exact));
}

static inline int add_lanes(const struct node *n, double sign, bool f32, bool rounded,
                            const struct vec *restrict a, const struct vec *restrict b,
                            struct vec *restrict o)
{
    const struct rounding r = n->round;
    const double limit = r.limit * 0.999;
    int bad = 0;
    for (int l = 0; l < LANES; l++) {
        double x = a->v[l], y = sign * b->v[l], v = x + y;
        /* Knuth's TwoSum: what the addition lost */
        double bb = v - x, lost = (x - (v - bb)) + (y - bb);
        double e = settle(&r, f32, rounded, &v, a->e[l] + b->e[l], lost == 0);
        o->v[l] = v;
        o->e[l] = e;
        bad |= OUT_OF_RANGE(v, e, limit);
    }
    return bad;
}

static int add_any(const struct node *n, double sign, const struct vec *a, const struct vec *b,
                   struct vec *o)
{
    if (n->round.f32)
        return n->rounded ? add_lanes(n, sign, true, true, a, b, o)
                          : add_lanes(n, sign, true, false, a, b, o);
    return n->rounded ? add_lanes(n, sign, false, true, a, b, o)
                      : add_lanes(n, sign, false, false, a, b, o);
}

void eval_fadd(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask), *b = node_arg(f, n, 1, mask);
    struct vec *o = node_out(f, n);
    if (add_any(n, 1, a, b, o))
        redo(op_add, n, a, b, o);
}

void eval_fsub(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask), *b = node_arg(f, n, 1, mask);
    struct vec *o = node_out(f, n);
    if (add_any(n, -1, a, b, o))
        redo(op_sub, n, a, b, o);
}

static inline int mul_lanes(const struct node *n, bool f32, bool rounded,
                            const struct vec *restrict a, const struct vec *restrict b,
                            struct vec *restrict o)
{
    const struct rounding r = n->round;
    const double limit = r.limit * 0.999;
    int bad = 0;
    for (int l = 0; l < LANES; l++) {
        double x = a->v[l], y = b->v[l], ex = a->e[l], ey = b->e[l], v = x * y;
        double p = fabs(x) * ey + fabs(y) * ex + ex * ey;
        /* operands of 24 bits have a product that is exact in double (f64 operands are looked
         * at) */
        bool exact = f32 || ((double)(float)x == x && (double)(float)y == y);
        double e = settle(&r, f32, rounded, &v, p, exact);
        o->v[l] = v;
        o->e[l] = e;
        bad |= OUT_OF_RANGE(v, e, limit);
    }
    return bad;
}

void eval_fmul(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask), *b = node_arg(f, n, 1, mask);
    struct vec *o = node_out(f, n);
    int bad = n->round.f32 ? (n->rounded ? mul_lanes(n, true, true, a, b, o)
                                         : mul_lanes(n, true, false, a, b, o))
                           : (n->rounded ? mul_lanes(n, false, true, a, b, o)
                                         : mul_lanes(n, false, false, a, b, o));
    if (bad)
        redo(op_mul, n, a, b, o);
}

/* What x * (1/y) loses beside the product's own rounding: half an ulp of 1/y. A kernel may scale y
 * first, so that 1/y neither overflows nor is subnormal; where y is 0 or no number it must divide.
 * A power of two loses nothing. */
static double reciprocal_loss(const struct rounding *r, double x, double y, double ey)
{
    double a = fabs(y);
    int exponent;
    if (!(a > 0 && a < INFINITY) || (frexp(a, &exponent) == 0.5 && ey == 0))
        return 0;
    return fabs(x) * fmax(r->unit / a, r->tiny);
}

/* Quotients that may be products with a reciprocal. */
static void reciprocals(const struct node *n, const struct vec *a, const struct vec *b,
                        struct vec *o)
{
    for (int l = 0; l < LANES; l++) {
        double loss = reciprocal_loss(&n->round, a->v[l], b->v[l], b->e[l]);
        if (!(loss > 0) || !isfinite(o->v[l]) || o->e[l] == INFINITY)
            continue;
        if (o->e[l] == 0) /* exact as a quotient */
            loss += n->round.unit * fabs(o->v[l]) + n->round.tiny;
        o->e[l] = (o->e[l] + loss) * SLACK;
        ref_range(&n->round, &o->v[l], &o->e[l]);
    }
}

void eval_fdiv(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask), *b = node_arg(f, n, 1, mask);
    struct vec *o = node_out(f, n);
    const struct rounding r = n->round;
    const double limit = r.limit * 0.999;
    int bad = 0;
    for (int l = 0; l < LANES; l++) {
        double x = a->v[l], y = b->v[l], v = x / y;
        double room = fabs(y) - b->e[l];
        double p = (a->e[l] + fabs(v) * b->e[l]) / room;
        bool narrow = (double)(float)v == v &&
                      (double)(float)y == y; /* then v * y is exact in double */
        double e = settled(&r, r.f32, n->rounded, &v, p, narrow && v * y == x);
        e = room > 0 ? e : INFINITY;
        o->v[l] = v;
        o->e[l] = e;
        bad |= OUT_OF_RANGE(v, e, limit);
    }
    if (bad)
        redo(op_div, n, a, b, o);
    if (n->reciprocal && !n->rounded)
        reciprocals(n, a, b, o);
}

void eval_fsqrt(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    const struct rounding r = n->round;
    for (int l = 0; l < LANES; l++) {
        double x = a->v[l], ex = a->e[l], v = sqrt(x), p = 0;
        if (ex == INFINITY || (ex > 0 && x - ex < 0)) {
            o->v[l] = v;
            o->e[l] = isnan(x) && ex == 0 ? 0 : INFINITY;
            if (x + ex < 0)
                o->e[l] = 0; /* NaN for certain */
            continue;
        }
        if (ex > 0)
            p = fmax(v - sqrt(x - ex), sqrt(x + ex) - v) * SLACK;
        bool narrow = (double)(float)v == v;
        o->e[l] = isfinite(v) ? settled(&r, r.f32, n->rounded, &v, p, narrow && v * v == x) : 0;
        o->v[l] = v;
    }
}

/* fma(a, b, c): exact operands round once. */
static void fma_lane(const struct node *n, const struct vec *a, const struct vec *b,
                     const struct vec *c, int l, double *v, double *e)
{
    const struct rounding *r = &n->round;
    double x = a->v[l], y = b->v[l], z = c->v[l];
    if (a->e[l] == 0 && b->e[l] == 0 && c->e[l] == 0) {
        /* through float the result is rounded to f32 once, which a double fma then rounded would
         * not be */
        *v = r->f32 ? (double)fmaf((float)x, (float)y, (float)z) : fma(x, y, z);
        *e = 0;
        if (isfinite(*v) && !n->rounded) {
            double p = x * y, s = p + z, bb = s - p;
            bool narrow = (double)(float)x == x && (double)(float)y == y;
            bool exact = narrow && (p - (s - bb)) + (z - bb) == 0 && s == *v;
            *e = exact ? 0 : r->unit * fabs(*v) + r->tiny;
        }
        return;
    }
    /* the double product of two f32 is exact; in general its error is within the unit that f64
     * counts twice */
    struct rounding none = *r;
    double p, ep;
    none.unit = r->f32 ? 0 : r->unit;
    none.limit = DBL_MAX;
    none.f32 = false;
    slow2(op_mul, &none, false, x, a->e[l], y, b->e[l], &p, &ep);
    slow2(op_add, r, false, p, ep, z, c->e[l], v, e);
    if (isnan(z) && c->e[l] == 0) {
        *v = NAN;
        *e = 0;
    }
}

void eval_ffma(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask), *b = node_arg(f, n, 1, mask),
                     *c = node_arg(f, n, 2, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++)
        fma_lane(n, a, b, c, l, &o->v[l], &o->e[l]);
}

void eval_fneg(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        o->v[l] = -a->v[l];
        o->e[l] = a->e[l];
    }
}

void eval_fabs(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        o->v[l] = fabs(a->v[l]);
        o->e[l] = a->e[l];
    }
}

/* IEEE 754-2008 maxNum and minNum, as PTX's max and min: a number beats a NaN. */
static void minmax_lane(bool is_max, double a, double ea, double b, double eb, double *v, double *e)
{
    if (isnan(a) && ea == 0) {
        *v = b;
        *e = eb;
    } else if (isnan(b) && eb == 0) {
        *v = a;
        *e = ea;
    } else {
        bool first = is_max ? a >= b : a <= b;
        *v = first ? a : b;
        *e = fmax(ea, eb);
        /* the other one can't reach: the winner's own error is enough */
        if (fabs(a - b) > ea + eb)
            *e = first ? ea : eb;
    }
}

static void minmax(struct frame *f, const struct node *n, const uint8_t *mask, bool is_max)
{
    const struct vec *a = node_arg(f, n, 0, mask), *b = node_arg(f, n, 1, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++)
        minmax_lane(is_max, a->v[l], a->e[l], b->v[l], b->e[l], &o->v[l], &o->e[l]);
}

void eval_fmin(struct frame *f, const struct node *n, const uint8_t *mask)
{
    minmax(f, n, mask, false);
}

void eval_fmax(struct frame *f, const struct node *n, const uint8_t *mask)
{
    minmax(f, n, mask, true);
}

/* clamp(x, lo, hi) = min(max(x, lo), hi) */
void eval_fclamp(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask), *b = node_arg(f, n, 1, mask),
                     *c = node_arg(f, n, 2, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        double v, e;
        minmax_lane(true, a->v[l], a->e[l], b->v[l], b->e[l], &v, &e);
        minmax_lane(false, v, e, c->v[l], c->e[l], &o->v[l], &o->e[l]);
    }
}

void eval_frelu(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++)
        minmax_lane(true, a->v[l], a->e[l], 0, 0, &o->v[l], &o->e[l]);
}

/* round() is half away from zero, rint() half to even. */
static double whole(enum lang_builtin fn, double x)
{
    switch ((int)fn) {
    case FN_FLOOR: return floor(x);
    case FN_CEIL: return ceil(x);
    case FN_TRUNC: return trunc(x);
    case FN_ROUND: return round(x);
    default: return nearbyint(x);
    }
}

void eval_ffloor(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        double x = a->v[l], ex = a->e[l], v = whole(n->src->fn, x);
        o->v[l] = v;
        o->e[l] = ex;
        if (ex > 0 && isfinite(ex) && isfinite(x))
            o->e[l] = fmax(v - whole(n->src->fn, x - ex), whole(n->src->fn, x + ex) - v);
    }
}

static bool compare(enum lang_op op, double a, double b)
{
    switch ((int)op) {
    case OP_LT: return a < b;
    case OP_GT: return a > b;
    case OP_LE: return a <= b;
    case OP_GE: return a >= b;
    case OP_EQ: return a == b;
    default: return a != b;
    }
}

void eval_fcompare(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask), *b = node_arg(f, n, 1, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        double x = a->v[l], y = b->v[l], e = a->e[l] + b->e[l];
        o->i[l] = compare(n->op, x, y);
        o->e[l] = 0;
        bool nan = (isnan(x) && a->e[l] == 0) || (isnan(y) && b->e[l] == 0);
        if (e > 0 && !nan && !(fabs(x - y) > e))
            o->e[l] = 1;
    }
}

/* Each side of  c ? a : b  in the lanes that may take it; where neither is certain, both. */
struct sides eval_sides(struct frame *f, const struct node *n, const uint8_t *mask)
{
    uint8_t yes[LANES], no[LANES];
    const struct vec *c = node_arg(f, n, 0, mask);
    for (int l = 0; l < LANES; l++) {
        uint8_t m = mask[l] && c->e[l] > 0 ? LANE_MAYBE : mask[l];
        yes[l] = c->e[l] > 0 || c->i[l] ? m : LANE_OFF;
        no[l] = c->e[l] > 0 || !c->i[l] ? m : LANE_OFF;
    }
    const struct vec *a = mask_any(yes) ? node_arg(f, n, 1, yes) : &f->slot[n->args[1]->slot];
    const struct vec *b = mask_any(no) ? node_arg(f, n, 2, no) : &f->slot[n->args[2]->slot];
    return (struct sides){c, a, b};
}

void eval_fcond(struct frame *f, const struct node *n, const uint8_t *mask)
{
    struct sides s = eval_sides(f, n, mask);
    const struct vec *c = s.cond, *a = s.yes, *b = s.no;
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        bool first = c->i[l] != 0;
        o->v[l] = first ? a->v[l] : b->v[l];
        o->e[l] = first ? a->e[l] : b->e[l];
        if (mask[l] && c->e[l] > 0)
            ref_hull(&o->v[l], &o->e[l], first ? b->v[l] : a->v[l], first ? b->e[l] : a->e[l]);
    }
}

void eval_isnan(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        o->i[l] = isnan(a->v[l]) != 0;
        o->e[l] = a->e[l] == INFINITY;
    }
}

void eval_isinf(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        o->i[l] = isinf(a->v[l]) != 0;
        o->e[l] = a->e[l] == INFINITY;
    }
}
