#include <config.h>

#include "ref/program.h"

static const double EXACT_INT = 0x1p53;

int64_t ref_wrap(enum dtype t, int64_t v)
{
    switch (dtype_bits(t)) {
    case 64: return v;
    case 32: return dtype_class(t) == DTC_U ? (int64_t)(uint32_t)v : (int64_t)(int32_t)(uint32_t)v;
    case 16: return dtype_class(t) == DTC_U ? (int64_t)(uint16_t)v : (int64_t)(int16_t)(uint16_t)v;
    case 4: return dtype_class(t) == DTC_U ? (v & 15) : (int64_t)((uint64_t)v << 60) >> 60;
    default: break;
    }
    if (t == DT_BOOL)
        return v != 0;
    return dtype_class(t) == DTC_U ? (int64_t)(uint8_t)v : (int64_t)(int8_t)(uint8_t)v;
}

static bool is_unsigned64(enum dtype t)
{
    return t == DT_U64;
}

static double int_double(enum dtype t, int64_t v)
{
    return is_unsigned64(t) ? (double)(uint64_t)v : (double)v;
}

void ref_hull_int(int64_t *v, double *e, int64_t w, double f)
{
    double far = fabs((double)*v - (double)w) + f;
    if (far > *e)
        *e = far;
}

/* ---- arithmetic: op2 of exact operands ------------------------------------------------------- */

static int64_t shift_left(int64_t a, int64_t n, unsigned bits)
{
    return n < 0 || n >= (int64_t)bits ? 0 : (int64_t)((uint64_t)a << n);
}

static int64_t shift_right(enum dtype t, int64_t a, int64_t n)
{
    bool big = n < 0 || n >= (int64_t)dtype_bits(t);
    if (dtype_class(t) == DTC_U)
        return big ? 0 : (int64_t)((uint64_t)a >> n);
    return a >> (big ? 63 : n);
}

static int64_t divide(enum dtype t, int64_t a, int64_t b, bool remainder)
{
    if (is_unsigned64(t))
        return (int64_t)(remainder ? (uint64_t)a % (uint64_t)b : (uint64_t)a / (uint64_t)b);
    if (b == -1) /* the one quotient that overflows */
        return remainder ? 0 : (int64_t) - (uint64_t)a;
    return remainder ? a % b : a / b;
}

static int64_t ibinary(const struct node *n, int64_t a, int64_t b)
{
    switch ((int)n->op) {
    case OP_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case OP_SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
    case OP_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case OP_DIV: return divide(n->type, a, b, false);
    case OP_MOD: return divide(n->type, a, b, true);
    case OP_SHL: return shift_left(a, b, dtype_bits(n->type));
    case OP_SHR: return shift_right(n->type, a, b);
    case OP_AND: return a & b;
    case OP_OR: return a | b;
    default: return a ^ b;
    }
}

/* The error of a op b when the operands are not exact: an interval where that is simple, unknown
 * elsewhere. */
static double ibinary_error(const struct node *n, int64_t a, double ea, int64_t b, double eb,
                            int64_t r)
{
    double e = INFINITY;
    double x = int_double(n->type, a), y = int_double(n->type, b);
    if (n->op == OP_ADD || n->op == OP_SUB)
        e = ea + eb;
    else if (n->op == OP_MUL)
        e = (a == 0 && ea == 0) || (b == 0 && eb == 0) ? 0 : fabs(x) * eb + fabs(y) * ea + ea * eb;
    else if (n->op == OP_DIV && eb == 0)
        e = floor(ea / fabs(y)) + 1;
    else if (n->op == OP_SHR && eb == 0 && b >= 0 && b < 64)
        e = floor(ldexp(ea, -(int)b)) + 1;
    else if (n->op == OP_SHL && eb == 0 && b >= 0 && b < 64)
        e = ldexp(ea, (int)b);
    else if ((n->op == OP_AND || n->op == OP_OR || n->op == OP_XOR) && n->type == DT_BOOL)
        e = 1;
    /* the interval must not leave the type, where it would wrap; 0 times what is unknown is NaN
     * here */
    double v = int_double(n->type, r);
    if (n->type != DT_BOOL &&
        !(v - e >= dtype_min(n->type) && v + e <= dtype_max(n->type) && fabs(v) + e <= EXACT_INT))
        e = INFINITY;
    return e;
}

void eval_ibinary(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *restrict a = node_arg(f, n, 0, mask);
    const struct vec *restrict b = node_arg(f, n, 1, mask);
    struct vec *restrict o = node_out(f, n);
    double inexact = 0;
    for (int l = 0; l < LANES; l++)
        inexact += a->e[l] + b->e[l];
    memset(o->e, 0, sizeof o->e);
    /* index arithmetic: loops that vectorise */
    if (n->type == DT_I64 && (n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MUL)) {
        for (int l = 0; l < LANES; l++) {
            uint64_t x = (uint64_t)a->i[l], y = (uint64_t)b->i[l];
            o->i[l] = (int64_t)(n->op == OP_ADD ? x + y : n->op == OP_SUB ? x - y : x * y);
        }
    } else {
        bool divides = n->op == OP_DIV || n->op == OP_MOD;
        for (int l = 0; l < LANES; l++) {
            int64_t y = b->i[l];
            if (!mask[l] || (divides && y == 0)) {
                if (mask[l] == LANE_ON && b->e[l] == 0)
                    ref_fail(f, n->src->span, "division of integers by zero");
                o->i[l] = 0;
                o->e[l] = mask[l] ? INFINITY : 0;
                continue;
            }
            o->i[l] = ref_wrap(n->type, ibinary(n, a->i[l], y));
        }
    }
    if (!(inexact > 0))
        return;
    for (int l = 0; l < LANES; l++)
        if (mask[l] && (a->e[l] > 0 || b->e[l] > 0) && o->e[l] == 0)
            o->e[l] = ibinary_error(n, a->i[l], a->e[l], b->i[l], b->e[l], o->i[l]);
}

void eval_iunary(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        uint64_t x = (uint64_t)a->i[l];
        o->i[l] = ref_wrap(n->type, (int64_t)(n->op == OP_NEG ? -x : ~x));
        o->e[l] = a->e[l];
    }
}

static bool less(enum dtype t, int64_t a, int64_t b)
{
    return is_unsigned64(t) ? (uint64_t)a < (uint64_t)b : a < b;
}

void eval_icompare(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask), *b = node_arg(f, n, 1, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        int64_t x = a->i[l], y = b->i[l];
        bool r;
        switch ((int)n->op) {
        case OP_LT: r = less(n->from, x, y); break;
        case OP_GT: r = less(n->from, y, x); break;
        case OP_LE: r = !less(n->from, y, x); break;
        case OP_GE: r = !less(n->from, x, y); break;
        case OP_EQ: r = x == y; break;
        default: r = x != y; break;
        }
        double e = a->e[l] + b->e[l];
        o->i[l] = r;
        o->e[l] = e > 0 && !(fabs(int_double(n->from, x) - int_double(n->from, y)) > e);
    }
}

void eval_icond(struct frame *f, const struct node *n, const uint8_t *mask)
{
    struct sides s = eval_sides(f, n, mask);
    const struct vec *c = s.cond, *a = s.yes, *b = s.no;
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        bool first = c->i[l] != 0;
        o->i[l] = first ? a->i[l] : b->i[l];
        o->e[l] = first ? a->e[l] : b->e[l];
        if (mask[l] && c->e[l] > 0)
            ref_hull_int(&o->i[l], &o->e[l], first ? b->i[l] : a->i[l], first ? b->e[l] : a->e[l]);
    }
}

/* && and ||: the right side is looked at only where the left does not decide. */
void eval_logic(struct frame *f, const struct node *n, const uint8_t *mask)
{
    uint8_t more[LANES];
    bool decisive = n->op == OP_LOR;
    const struct vec *a = node_arg(f, n, 0, mask);
    for (int l = 0; l < LANES; l++) {
        more[l] = a->e[l] == 0 && (a->i[l] != 0) == decisive ? LANE_OFF : mask[l];
        if (more[l] && a->e[l] > 0)
            more[l] = LANE_MAYBE;
    }
    const struct vec *b = mask_any(more) ? node_arg(f, n, 1, more) : NULL;
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        bool x = a->i[l] != 0, y = more[l] && b->i[l] != 0;
        double e = a->e[l];
        if (more[l]) {
            bool b_decides = b->e[l] == 0 && y == decisive;
            e = b_decides ? 0 : fmax(e, b->e[l]);
            x = decisive ? x || y : x && y;
        }
        o->i[l] = x;
        o->e[l] = e > 0;
    }
}

void eval_not(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        o->i[l] = a->i[l] == 0;
        o->e[l] = a->e[l];
    }
}

/* ---- functions ------------------------------------------------------------------------------- */

static int64_t bit_field(const struct node *n, int64_t x, int64_t start, int64_t len)
{
    /* PTX bfe: bits beyond the register are copies of the sign (signed) or zero */
    unsigned bits = dtype_bits(n->type);
    start &= 255;
    len &= 255;
    if (len == 0)
        return 0;
    int64_t y = shift_right(n->type, x, start);
    if (len >= (int64_t)bits || start + len >= (int64_t)bits)
        return y;
    y &= (int64_t)(((uint64_t)1 << len) - 1);
    if (dtype_class(n->type) == DTC_I && (y >> (len - 1)) & 1)
        y -= (int64_t)((uint64_t)1 << len);
    return y;
}

static int64_t bit_insert(const struct node *n, int64_t x, int64_t into, int64_t start, int64_t len)
{
    unsigned bits = dtype_bits(n->type);
    start &= 255;
    len &= 255;
    if (start >= (int64_t)bits)
        return into;
    uint64_t field = len >= (int64_t)bits ? ~(uint64_t)0 : ((uint64_t)1 << len) - 1;
    return (int64_t)(((uint64_t)into & ~(field << start)) | (((uint64_t)x & field) << start));
}

static int64_t high_product(enum dtype t, int64_t a, int64_t b)
{
    if (dtype_bits(t) == 64)
        return t == DT_U64 ? (int64_t)(((unsigned __int128)(uint64_t)a * (uint64_t)b) >> 64)
                           : (int64_t)(((__int128)a * b) >> 64);
    return dtype_class(t) == DTC_U ? (int64_t)(((uint64_t)a * (uint64_t)b) >> 32) : (a * b) >> 32;
}

static int64_t dot4(const struct node *n, int64_t a, int64_t b, int64_t c)
{
    bool sa = dtype_class(n->args[0]->type) == DTC_I, sb = dtype_class(n->args[1]->type) == DTC_I;
    for (int k = 0; k < 4; k++) {
        int64_t x = (a >> (8 * k)) & 255, y = (b >> (8 * k)) & 255;
        c += (sa ? (int64_t)(int8_t)x : x) * (sb ? (int64_t)(int8_t)y : y);
    }
    return c;
}

static int64_t reverse_bits(int64_t v, unsigned bits)
{
    uint64_t r = 0;
    for (unsigned k = 0; k < bits; k++)
        r |= (((uint64_t)v >> k) & 1) << (bits - 1 - k);
    return (int64_t)r;
}

static int64_t ifunc(const struct node *n, const int64_t x[4])
{
    enum dtype at = n->args[0]->type;
    unsigned bits = dtype_bits(at);
    uint64_t u = bits == 64 ? (uint64_t)x[0] : (uint64_t)x[0] & (((uint64_t)1 << bits) - 1);
    switch ((int)n->src->fn) {
    case FN_ABS: return x[0] < 0 && !is_unsigned64(at) ? (int64_t) - (uint64_t)x[0] : x[0];
    case FN_RELU: return x[0] < 0 && !is_unsigned64(at) ? 0 : x[0];
    case FN_MIN: return less(n->type, x[1], x[0]) ? x[1] : x[0];
    case FN_MAX: return less(n->type, x[0], x[1]) ? x[1] : x[0];
    case FN_CLAMP: {
        int64_t v = less(n->type, x[0], x[1]) ? x[1] : x[0];
        return less(n->type, x[2], v) ? x[2] : v;
    }
    case FN_CEIL_DIV: {
        int64_t rest = divide(n->type, x[0], x[1], true);
        bool cut = rest && (dtype_class(n->type) == DTC_U || (rest ^ x[1]) >= 0);
        return divide(n->type, x[0], x[1], false) + cut;
    }
    case FN_POPC: return __builtin_popcountll(u);
    case FN_CLZ: return u ? __builtin_clzll(u) - (int)(64 - bits) : (int64_t)bits;
    case FN_BREV: return reverse_bits(x[0], bits);
    case FN_BFE: return bit_field(n, x[0], x[1], x[2]);
    case FN_BFI: return bit_insert(n, x[0], x[1], x[2], x[3]);
    case FN_MULHI: return high_product(n->type, x[0], x[1]);
    default: return dot4(n, x[0], x[1], x[2]);
    }
}

void eval_ifunc(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a[4] = {NULL};
    for (uint32_t k = 0; k < n->nargs && k < 4; k++)
        a[k] = node_arg(f, n, k, mask);
    struct vec *o = node_out(f, n);
    enum lang_builtin fn = n->src->fn;
    bool steady = fn == FN_ABS || fn == FN_RELU || fn == FN_MIN || fn == FN_MAX || fn == FN_CLAMP;
    for (int l = 0; l < LANES; l++) {
        int64_t x[4] = {0};
        double e = 0;
        for (uint32_t k = 0; k < n->nargs && k < 4; k++) {
            x[k] = a[k]->i[l];
            e = fmax(e, a[k]->e[l]);
        }
        if (!mask[l])
            continue;
        if (fn == FN_CEIL_DIV && x[1] == 0) {
            if (mask[l] == LANE_ON)
                ref_fail(f, n->src->span, "division of integers by zero");
            o->i[l] = 0;
            o->e[l] = INFINITY;
            continue;
        }
        o->i[l] = ref_wrap(n->type, ifunc(n, x));
        o->e[l] = e > 0 && !steady ? INFINITY : e;
    }
}

/* ---- conversions ----------------------------------------------------------------------------- */

void eval_bitcast(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        uint64_t bits = 0;
        if (dtype_is_float(n->from))
            dtype_set(n->from, &bits, 0, a->v[l]);
        else
            dtype_set_int(n->from, &bits, 0, a->i[l]);
        if (dtype_is_float(n->type))
            o->v[l] = dtype_get(n->type, &bits, 0);
        else
            o->i[l] = dtype_get_int(n->type, &bits, 0);
        o->e[l] = a->e[l] > 0 ? INFINITY : 0;
    }
}

/* The hardware rounds once; an implicit conversion may also be meant exactly, as the mathematics
 * says. */
void eval_int_to_float(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        double v = int_double(n->from, a->i[l]), e = a->e[l];
        double r = n->type == DT_F32
                       ? (double)(n->from == DT_U64 ? (float)(uint64_t)a->i[l] : (float)a->i[l])
                       : dtype_round(n->type, v);
        if (n->src->is_implicit && r != v) {
            e += fabs(r - v);
            o->v[l] = v;
        } else {
            o->v[l] = r;
        }
        if (a->e[l] > 0)
            e += dtype_roundoff(n->type) * (fabs(v) + e);
        o->e[l] = e;
    }
}

/* Towards zero, saturating, NaN is 0. */
static int64_t float_int(enum dtype t, double v)
{
    if (isnan(v))
        return 0;
    v = trunc(v);
    if (t == DT_U64)
        return v >= 0x1p64 ? -1 : v <= 0 ? 0 : (int64_t)(uint64_t)v;
    if (v >= dtype_max(t))
        return (int64_t)dtype_imax(t);
    if (v <= dtype_min(t))
        return dtype_imin(t);
    return (int64_t)v;
}

void eval_float_to_int(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        double v = a->v[l], e = a->e[l];
        int64_t r = float_int(n->type, v);
        o->i[l] = r;
        o->e[l] = e;
        if (e > 0 && isfinite(e)) {
            double lo = int_double(n->type, float_int(n->type, v - e)),
                   hi = int_double(n->type, float_int(n->type, v + e));
            double m = int_double(n->type, r);
            o->e[l] = fmax(m - lo, hi - m);
        }
    }
}

void eval_int_to_int(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        int64_t v = a->i[l];
        o->i[l] = ref_wrap(n->type, v);
        o->e[l] = a->e[l];
        if (a->e[l] > 0) {
            double w = int_double(n->from, v);
            if (w - a->e[l] < dtype_min(n->type) || w + a->e[l] > dtype_max(n->type))
                o->e[l] = INFINITY;
        }
    }
}

/* What every value within the error rounds to. Widening changes nothing. */
static void round_all(struct vec *o, const struct vec *a, double (*to)(const struct node *, double),
                      const struct node *n)
{
    for (int l = 0; l < LANES; l++) {
        double v = a->v[l], e = a->e[l];
        if (!isfinite(v) || e == INFINITY) {
            o->v[l] = isinf(v) ? to(n, v) : v;
            o->e[l] = e;
            continue;
        }
        double r = to(n, v), lo = to(n, v - e), hi = to(n, v + e);
        o->v[l] = r;
        o->e[l] = e == 0 || (lo == r && hi == r) ? 0 : fmax(hi - r, r - lo);
        if (isnan(o->e[l]))
            o->e[l] = INFINITY;
    }
}

static double to_type(const struct node *n, double v)
{
    return dtype_round(n->type, v);
}

static bool all_exact(const struct vec *a)
{
    bool exact = true;
    for (int l = 0; l < LANES; l++)
        exact &= a->e[l] == 0;
    return exact;
}

void eval_float_to_float(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    if (dtype_bits(n->type) > dtype_bits(n->from) && all_exact(a))
        *node_out(f, n) = *a; /* it is a number of the wider type, too */
    else
        round_all(node_out(f, n), a, to_type, n);
}

static double to_tf32(const struct node *n, double v)
{
    (void)n;
    return tf32_from_double(v);
}

void eval_tf32(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    round_all(node_out(f, n), a, to_tf32, n);
}

static double even_to_tf32(const struct node *n, double v)
{
    (void)n;
    return tf32_even_from_double(v);
}

void eval_tf32_even(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    round_all(node_out(f, n), a, even_to_tf32, n);
}

static double cut_to_tf32(const struct node *n, double v)
{
    (void)n;
    return tf32_cut_from_double(v);
}

void eval_tf32_cut(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    round_all(node_out(f, n), a, cut_to_tf32, n);
}

void eval_int_to_bool(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        o->i[l] = a->i[l] != 0;
        o->e[l] = a->e[l] > 0 && !(fabs((double)a->i[l]) > a->e[l]);
    }
}

void eval_float_to_bool(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        o->i[l] = a->v[l] != 0;
        o->e[l] = a->e[l] > 0 && !(fabs(a->v[l]) > a->e[l]);
    }
}
