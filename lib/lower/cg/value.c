#include <config.h>

#include "lower/cg/cg.h"

#include "base/internal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- types ----------------------------------------------------------------------------------- */

const char *cg_suffix(enum dtype t)
{
    switch (t) {
    case DT_F64: return "f64";
    case DT_F32: return "f32";
    case DT_F16:
    case DT_BF16:
    case DT_E4M3:
    case DT_E5M2: return "b16";
    case DT_I64: return "s64";
    case DT_U64: return "u64";
    case DT_I32:
    case DT_I16:
    case DT_I8:
    case DT_I4: return "s32";
    case DT_U32:
    case DT_U16:
    case DT_U8:
    case DT_U4: return "u32";
    case DT_BOOL: return "pred";
    case DT_COUNT: break;
    }
    INTERNAL_ERROR("no register has type %d", (int)t);
}

const char *cg_bits_suffix(enum dtype t)
{
    switch (cg_suffix(t)[1]) {
    case '3': return t == DT_F32 ? "f32" : "b32";
    case '6': return t == DT_F64 ? "f64" : "b64";
    default: return cg_suffix(t); /* b16, pred */
    }
}

enum ptx_mod cg_regtype(enum dtype t)
{
    switch (t) {
    case DT_F64: return PTX_F64;
    case DT_F32: return PTX_F32;
    case DT_F16:
    case DT_BF16: return PTX_F16;
    case DT_E4M3:
    case DT_E5M2: return PTX_B16;
    case DT_I64:
    case DT_U64: return PTX_B64;
    case DT_BOOL: return PTX_PRED;
    case DT_I32:
    case DT_I16:
    case DT_I8:
    case DT_I4:
    case DT_U32:
    case DT_U16:
    case DT_U8:
    case DT_U4:
    case DT_COUNT: break;
    }
    return PTX_B32;
}

static bool is_wide(enum dtype t)
{
    return t == DT_I64 || t == DT_U64;
}

static bool is_float_reg(enum dtype t)
{
    return t == DT_F32 || t == DT_F64;
}

const char *cg_dotted(char out[CG_WORD], const char *name, const char *suffix)
{
    char *at = stpcpy(out, name);
    *at++ = '.';
    stpcpy(at, suffix);
    return out;
}

const char *cg_joined(char *out, size_t size, ...)
{
    va_list texts;
    size_t n = 0;
    va_start(texts, size);
    for (const char *t; (t = va_arg(texts, const char *));)
        while (*t && n + 1 < size)
            out[n++] = *t++;
    va_end(texts);
    out[n] = 0;
    return out;
}

static const char *mnemonic(char out[CG_WORD], const char *name, enum dtype t)
{
    return cg_dotted(out, name, cg_suffix(t));
}

/* ---- making values --------------------------------------------------------------------------- */

/* v reduced to the type's range, as a two's complement register holds it. */
static int64_t wrap(enum dtype t, int64_t v)
{
    unsigned bits = dtype_bits(t);
    if (bits >= 64)
        return v;
    uint64_t m = (uint64_t)v & ((UINT64_C(1) << bits) - 1);
    if (dtype_class(t) == DTC_I && m >> (bits - 1))
        m |= ~UINT64_C(0) << bits;
    return (int64_t)m;
}

struct cg_val cg_int(enum dtype t, int64_t v)
{
    return (struct cg_val){.type = t, .op = ptx_imm(wrap(t, v))};
}

struct cg_val cg_bool(struct cg *g, bool v)
{
    (void)g;
    return (struct cg_val){.type = DT_BOOL, .op = ptx_imm(v)};
}

struct cg_val cg_float(struct cg *g, enum dtype t, double v)
{
    (void)g;
    uint16_t bits[2] = {0};
    if (t == DT_F64)
        return (struct cg_val){.type = t, .op = ptx_immf64(v)};
    if (t == DT_F32)
        return (struct cg_val){.type = t, .op = ptx_immf32((float)v)};
    dtype_set(t, bits, 0, v);
    return (struct cg_val){.type = t, .op = ptx_imm(bits[0])};
}

static bool is_imm(struct cg_val v)
{
    return v.op.kind == PTX_O_IMM || v.op.kind == PTX_O_F32 || v.op.kind == PTX_O_F64;
}

static inline bool is_const(struct cg_val v, int64_t *i)
{
    if (v.op.kind != PTX_O_IMM || !(dtype_is_int(v.type) || v.type == DT_BOOL))
        return false;
    *i = (int64_t)v.op.bits;
    return true;
}

bool cg_is_const(struct cg_val v, int64_t *i)
{
    return is_const(v, i);
}

static inline bool is_int_value(struct cg_val v, int64_t want)
{
    int64_t i;
    return is_const(v, &i) && i == want;
}

/* An immediate in a register; also a predicate that is a constant. */
static int32_t materialise(struct cg *g, struct cg_val v)
{
    char m[CG_WORD];
    if (v.type == DT_BOOL)
        return CG(g, PTX_PRED, "setp.ne.u32", ptx_imm((int64_t)v.op.bits), ptx_imm(0));
    cg_dotted(m, "mov", cg_bits_suffix(v.type));
    return CG(g, cg_regtype(v.type), m, v.op);
}

static int32_t materialise_copy(struct cg *g, struct cg_val v)
{
    char m[CG_WORD];
    cg_dotted(m, "mov", cg_bits_suffix(v.type));
    return CG(g, cg_regtype(v.type), m, cg_op(g, v));
}

bool cg_same(struct cg_val x, struct cg_val y)
{
    if (x.op.kind != y.op.kind || x.narrow != y.narrow)
        return false;
    return x.op.kind == PTX_O_REG ? x.op.reg == y.op.reg : x.op.bits == y.op.bits;
}

struct ptx_operand cg_made_op(struct cg *g, struct cg_val v)
{
    if (v.narrow == CG_FULL || is_imm(v))
        return v.type == DT_BOOL && is_imm(v) ? ptx_r(materialise(g, v)) : v.op;
    return ptx_r(CG(g, PTX_B64, v.narrow == CG_U32 ? "cvt.u64.u32" : "cvt.s64.s32", v.op));
}

int32_t cg_reg(struct cg *g, struct cg_val v)
{
    return is_imm(v) ? materialise(g, v) : cg_op(g, v).reg;
}

struct cg_val cg_freeze(struct cg *g, struct cg_val x)
{
    struct cg_val lane[16];
    for (unsigned i = 0; i < x.lanes; i++)
        lane[i] = cg_freeze(g, x.lane[i]);
    if (x.lanes)
        return cg_vector(g, x.type, x.lanes, lane);
    if (x.op.kind != PTX_O_REG || (size_t)x.op.reg >= g->version.n || !g->version.v[x.op.reg])
        return x;
    return cg_value(x.type, materialise_copy(g, x));
}

void cg_move(struct cg *g, int32_t reg, struct cg_val v)
{
    char m[CG_WORD];
    cg_dotted(m, "mov", cg_bits_suffix(v.type));
    CG_ASSIGN(g, reg, m, cg_op(g, v));
}

struct cg_since cg_now(const struct cg *g)
{
    return (struct cg_since){g->func->items.n, g->numbers.n};
}

void cg_move_new(struct cg *g, int32_t reg, struct cg_val v, struct cg_since since)
{
    if (v.narrow != CG_FULL && v.op.kind == PTX_O_REG)
        v = cg_value(v.type, cg_reg(g, v));
    size_t n = g->func->items.n;
    while (n > since.items && (g->func->items.v[n - 1].kind == PTX_I_LOC ||
                               g->func->items.v[n - 1].kind == PTX_I_COMMENT))
        n--; /* notes change no code */
    struct ptx_inst *in = n > since.items ? &g->func->items.v[n - 1].inst : NULL;
    int32_t from = v.op.reg;
    if (!in || g->func->items.v[n - 1].kind != PTX_I_INST || v.op.kind != PTX_O_REG ||
        in->guard >= 0 || in->noperand < 2 || in->operand[0].kind != PTX_O_REG ||
        in->operand[0].reg != from || in->operand[0].reg2 >= 0 ||
        ((size_t)from < g->version.n && g->version.v[from])) {
        cg_move(g, reg, v);
        return;
    }
    in->operand[0].reg = reg;
    for (size_t i = since.numbers; i < g->numbers.n; i++)
        if (g->numbers.v[i].reg == from)
            g->numbers.v[i].nword = 0; /* which no key has */
    cg_assigned(g, reg);
}

/* ---- narrow 64-bit values -------------------------------------------------------------------- */

struct cg_val cg_index(struct cg *g, struct cg_val x)
{
    int64_t i;
    if (is_const(x, &i))
        return cg_int(DT_I64, i);
    if (x.type == DT_I64 || x.type == DT_U64) {
        x.type = DT_I64;
        return x;
    }
    if (!dtype_is_int(x.type))
        x = cg_convert(g, x, DT_I32);
    return (struct cg_val){
        .type = DT_I64, .narrow = dtype_class(x.type) == DTC_I ? CG_S32 : CG_U32, .op = x.op};
}

/* Can v be an operand of a 32-bit instruction that reads it as `how`? */
static bool fits(struct cg_val v, enum cg_narrow how)
{
    int64_t i;
    if (is_const(v, &i))
        return how == CG_U32 ? i >= 0 && i <= UINT32_MAX : i >= INT32_MIN && i <= INT32_MAX;
    return v.narrow == how;
}

static bool both_fit(struct cg_val x, struct cg_val y, enum cg_narrow how)
{
    return fits(x, how) && fits(y, how);
}

static struct ptx_operand low_operand(struct cg_val v)
{
    return v.op.kind == PTX_O_IMM ? ptx_imm((int64_t)v.op.bits) : v.op;
}

/* ---- integers -------------------------------------------------------------------------------- */

static bool fold(enum lang_op op, enum dtype t, int64_t x, int64_t y, int64_t *r)
{
    bool is_signed = dtype_class(t) == DTC_I;
    uint64_t a = (uint64_t)x, b = (uint64_t)y;
    unsigned bits = dtype_bits(t) == 64 ? 64 : 32;
    switch (op) {
    case OP_ADD: *r = (int64_t)(a + b); break;
    case OP_SUB: *r = (int64_t)(a - b); break;
    case OP_MUL: *r = (int64_t)(a * b); break;
    case OP_DIV:
    case OP_MOD:
        if (y == 0 || (is_signed && y == -1))
            return false; /* as the hardware does */
        if (op == OP_DIV)
            *r = is_signed ? x / y : (int64_t)(a / b);
        else
            *r = is_signed ? x % y : (int64_t)(a % b);
        break;
    case OP_SHL:
        if (b >= bits)
            return false;
        *r = (int64_t)(a << b);
        break;
    case OP_SHR:
        if (b >= bits)
            return false;
        *r = is_signed ? x >> b : (int64_t)(a >> b);
        break;
    case OP_AND: *r = x & y; break;
    case OP_OR: *r = x | y; break;
    case OP_XOR: *r = x ^ y; break;
    default: return false;
    }
    *r = wrap(t, *r);
    return true;
}

static int log2_exact(int64_t v)
{
    if (v <= 0 || (v & (v - 1)))
        return -1;
    return __builtin_ctzll((uint64_t)v);
}

/* x op 0, x op 1: what needs no instruction. */
static inline bool simplify(enum lang_op op, struct cg_val x, struct cg_val y, struct cg_val *r)
{
    if (is_int_value(y, 0) && (op == OP_ADD || op == OP_SUB || op == OP_SHL || op == OP_SHR ||
                               op == OP_OR || op == OP_XOR))
        return *r = x, true;
    if (is_int_value(x, 0) && (op == OP_ADD || op == OP_OR || op == OP_XOR))
        return *r = y, true;
    if (op == OP_MUL) {
        if (is_int_value(y, 1))
            return *r = x, true;
        if (is_int_value(x, 1))
            return *r = y, true;
        if (is_int_value(x, 0) || is_int_value(y, 0))
            return *r = cg_int(x.type, 0), true;
    }
    if (op == OP_DIV && is_int_value(y, 1))
        return *r = x, true;
    if (op == OP_MOD && is_int_value(y, 1))
        return *r = cg_int(x.type, 0), true;
    return false;
}

static struct cg_val shift(struct cg *g, enum lang_op op, struct cg_val x, struct cg_val y)
{
    char m[CG_WORD];
    if (op == OP_SHL)
        cg_dotted(m, "shl", cg_bits_suffix(x.type));
    else
        cg_dotted(m, "shr", cg_suffix(x.type));
    struct ptx_operand count;
    if (is_wide(y.type) &&
        !is_imm(y)) /* the count is a u32: what does not fit shifts everything out */
        count = cg_op(g, y.narrow ? cg_value(DT_U32, y.op.reg)
                                  : cg_value(DT_U32, CG(g, PTX_B32, "cvt.sat.u32.u64", y.op)));
    else
        count = y.op;
    return cg_value(x.type, CG(g, cg_regtype(x.type), m, cg_op(g, x), count));
}

/* 64-bit operations on operands that are known to fit 32 bits; false: do it in 64. */
static bool narrow_binary(struct cg *g, enum lang_op op, struct cg_val x, struct cg_val y,
                          struct cg_val *r)
{
    enum cg_narrow how = both_fit(x, y, CG_U32)   ? CG_U32
                         : both_fit(x, y, CG_S32) ? CG_S32
                                                  : CG_FULL;
    if (how == CG_FULL)
        return false;
    struct ptx_operand p = low_operand(x), q = low_operand(y);
    if (op == OP_MUL) {
        const char *m = how == CG_U32 ? "mul.wide.u32" : "mul.wide.s32";
        if (x.op.kind == PTX_O_IMM) { /* immediates go last */
            struct ptx_operand t = p;
            p = q;
            q = t;
        }
        *r = cg_value(x.type, CG(g, PTX_B64, m, p, q));
        return true;
    }
    if (how != CG_U32)
        return false;
    const char *m;
    switch (op) {
    case OP_DIV: m = "div.u32"; break;
    case OP_MOD: m = "rem.u32"; break;
    case OP_AND: m = "and.b32"; break;
    case OP_OR: m = "or.b32"; break;
    case OP_XOR: m = "xor.b32"; break;
    default: return false;
    }
    int64_t c;
    if ((op == OP_DIV || op == OP_MOD) && is_const(y, &c) && log2_exact(c) >= 0) {
        m = op == OP_DIV ? "shr.u32" : "and.b32";
        q = ptx_imm(op == OP_DIV ? log2_exact(c) : c - 1);
    }
    *r = cg_value(x.type, CG(g, PTX_B32, m, p, q));
    r->narrow = CG_U32;
    return true;
}

static struct cg_val int_binary(struct cg *g, enum lang_op op, struct cg_val x, struct cg_val y)
{
    int64_t i, j;
    struct cg_val r;
    if (is_const(x, &i) && is_const(y, &j) && fold(op, x.type, i, j, &i))
        return cg_int(x.type, i);
    if (simplify(op, x, y, &r))
        return r;
    if (op == OP_SHL || op == OP_SHR)
        return shift(g, op, x, y);
    if (is_wide(x.type) && narrow_binary(g, op, x, y, &r))
        return r;

    enum dtype t = x.type;
    const char *name;
    char m[CG_WORD];
    switch (op) {
    case OP_ADD: name = "add"; break;
    case OP_SUB: name = "sub"; break;
    case OP_MUL: name = "mul.lo"; break;
    case OP_DIV: name = "div"; break;
    case OP_MOD: name = "rem"; break;
    case OP_AND: name = "and"; break;
    case OP_OR: name = "or"; break;
    case OP_XOR: name = "xor"; break;
    default: INTERNAL_ERROR("operator %d is no arithmetic of integers", (int)op);
    }
    bool bitwise = op == OP_AND || op == OP_OR || op == OP_XOR;
    cg_dotted(m, name, bitwise ? cg_bits_suffix(t) : cg_suffix(t));
    bool commutes = op == OP_ADD || op == OP_MUL || bitwise;
    if (commutes && is_imm(x)) {
        struct cg_val s = x;
        x = y;
        y = s;
    }
    if (dtype_class(t) == DTC_U && is_const(y, &j) && log2_exact(j) >= 0) {
        if (op == OP_DIV)
            return shift(g, OP_SHR, x, cg_int(DT_U32, log2_exact(j)));
        if (op == OP_MOD)
            return int_binary(g, OP_AND, x, cg_int(t, j - 1));
    }
    if (op == OP_MUL && is_const(y, &j) && log2_exact(j) > 0)
        return shift(g, OP_SHL, x, cg_int(DT_U32, log2_exact(j)));
    return cg_value(t, CG(g, cg_regtype(t), m, cg_op(g, x), cg_op(g, y)));
}

/* ---- floats, comparisons, predicates --------------------------------------------------------- */

static bool float_const(struct cg_val v, double *d)
{
    if (v.op.kind == PTX_O_F64) {
        memcpy(d, &v.op.bits, sizeof *d);
    } else if (v.op.kind == PTX_O_F32) {
        uint32_t bits = (uint32_t)v.op.bits;
        float f;
        memcpy(&f, &bits, sizeof f);
        *d = (double)f;
    }
    return v.op.kind == PTX_O_F64 || v.op.kind == PTX_O_F32;
}

/* Constants as the hardware would compute with them; an f32 operation in f64, rounded again, is the
 * same. NaN is left to the hardware, which has a NaN of its own. */
static bool fold_float(struct cg *g, enum lang_op op, struct cg_val x, struct cg_val y,
                       struct cg_val *r)
{
    double a, b, d;
    if (!float_const(x, &a) || !float_const(y, &b) || (g->fast && op == OP_DIV))
        return false;
    d = op == OP_ADD ? a + b : op == OP_SUB ? a - b : op == OP_MUL ? a * b : a / b;
    if (isnan(d))
        return false;
    *r = cg_float(g, x.type, d);
    return true;
}

/* 2^k, k such that 2^-k is a normal number of the type too */
static bool is_power_of_two(struct cg_val v, double *inverse)
{
    double d;
    int e;
    if (!float_const(v, &d) || fabs(frexp(d, &e)) != 0.5 ||
        abs(e) > (v.type == DT_F32 ? 120 : 1000))
        return false;
    *inverse = 1 / d;
    return true;
}

/* A whole number, small enough for what is left of a division by it to be exact. */
static bool is_whole(struct cg_val v, double *d)
{
    return float_const(v, d) && *d >= 1 && *d <= 0x1p22 && *d == trunc(*d);
}

/* x / d as div.rn has it, but for subnormal quotients halfway between two, which may go to the odd
 * one: without that instruction's test and branch the quotient by way of the reciprocal, and what
 * that is too much put right once. Too much of an infinity is NaN, for which max takes a number. */
static struct cg_val divide_by_whole(struct cg *g, struct cg_val x, double d)
{
    const float rcp = (float)(1 / d);
    const int32_t q = CG(g, PTX_F32, "mul.rn.f32", x.op, ptx_immf32(rcp));
    const int32_t minus = CG(g, PTX_F32, "neg.f32", x.op); /* so that a zero keeps its sign */
    int32_t over = CG(g, PTX_F32, "fma.rn.f32", ptx_r(q), ptx_immf32((float)d), ptx_r(minus));
    over = CG(g, PTX_F32, "max.f32", ptx_r(over), ptx_immf32(-FLT_MAX));
    return cg_value(DT_F32, CG(g, PTX_F32, "fma.rn.f32", ptx_r(over), ptx_immf32(-rcp), ptx_r(q)));
}

static struct cg_val float_binary(struct cg *g, enum lang_op op, struct cg_val x, struct cg_val y)
{
    const char *name;
    char m[CG_WORD];
    struct cg_val r;
    double d;
    if (fold_float(g, op, x, y, &r))
        return r;
    if (op == OP_DIV && is_power_of_two(y, &d))
        return float_binary(g, OP_MUL, x, cg_float(g, x.type, d));
    if (op == OP_DIV && x.type == DT_F32 && g->contract_fma && !g->fast && is_whole(y, &d))
        return divide_by_whole(g, x, d);
    if (op == OP_DIV && float_const(x, &d) && d == 1) /* correctly rounded too, and shorter */
        return cg_value(
            x.type,
            CG(g, cg_regtype(x.type),
               mnemonic(m, g->fast && x.type == DT_F32 ? "rcp.approx" : "rcp.rn", x.type), y.op));
    switch (op) {
    case OP_ADD: name = "add.rn"; break;
    case OP_SUB: name = "sub.rn"; break;
    case OP_MUL: name = "mul.rn"; break;
    case OP_DIV: name = g->fast && x.type == DT_F32 ? "div.full" : "div.rn"; break;
    default: INTERNAL_ERROR("operator %d is no arithmetic of floats", (int)op);
    }
    return cg_value(x.type, CG(g, cg_regtype(x.type), mnemonic(m, name, x.type), x.op, y.op));
}

static bool fold_compare(enum lang_op op, enum dtype t, int64_t x, int64_t y)
{
    bool less = dtype_class(t) == DTC_I ? x < y : (uint64_t)x < (uint64_t)y;
    switch (op) {
    case OP_LT: return less;
    case OP_GE: return !less;
    case OP_LE: return less || x == y;
    case OP_GT: return !less && x != y;
    case OP_EQ: return x == y;
    default: return x != y;
    }
}

static struct cg_val compare(struct cg *g, enum lang_op op, struct cg_val x, struct cg_val y)
{
    int64_t i, j;
    enum dtype t = x.type;
    if (is_const(x, &i) && is_const(y, &j))
        return cg_bool(g, fold_compare(op, t, i, j));
    if (t == DT_BOOL) { /* == and != only */
        struct cg_val r = cg_value(DT_BOOL, CG(g, PTX_PRED, "xor.pred", cg_op(g, x), cg_op(g, y)));
        return op == OP_EQ ? cg_unary(g, OP_NOT, r) : r;
    }
    static const char *const names[] = {[OP_LT] = "lt", [OP_GT] = "gt", [OP_LE] = "le",
                                        [OP_GE] = "ge", [OP_EQ] = "eq", [OP_NE] = "ne"};
    static const enum lang_op mirror[] = {[OP_LT] = OP_GT, [OP_GT] = OP_LT, [OP_LE] = OP_GE,
                                          [OP_GE] = OP_LE, [OP_EQ] = OP_EQ, [OP_NE] = OP_NE};
    if (is_imm(x)) {
        struct cg_val s = x;
        x = y;
        y = s;
        op = mirror[op];
    }
    const char *suffix = cg_suffix(t);
    struct ptx_operand p, q;
    if (is_wide(t) && (both_fit(x, y, CG_U32) || both_fit(x, y, CG_S32))) {
        suffix = both_fit(x, y, CG_U32) ? "u32" : "s32";
        p = low_operand(x);
        q = low_operand(y);
    } else {
        p = cg_op(g, x);
        q = cg_op(g, y);
    }
    char m[CG_WORD], word[CG_WORD];
    /* NaN differs from everything, itself included */
    const char *name = op == OP_NE && is_float_reg(t) ? "neu" : names[op];
    cg_dotted(m, cg_dotted(word, "setp", name), suffix);
    return cg_value(DT_BOOL, CG(g, PTX_PRED, m, p, q));
}

static struct cg_val pred_binary(struct cg *g, enum lang_op op, struct cg_val x, struct cg_val y)
{
    bool is_and = op == OP_AND || op == OP_LAND;
    for (int k = 0; k < 2; k++) {
        int64_t c;
        struct cg_val a = k ? y : x, b = k ? x : y;
        if (op != OP_XOR && is_const(a, &c))
            return is_and == (c != 0) ? b : a;
    }
    const char *m = op == OP_XOR ? "xor.pred" : is_and ? "and.pred" : "or.pred";
    return cg_value(DT_BOOL, CG(g, PTX_PRED, m, cg_op(g, x), cg_op(g, y)));
}

struct cg_val cg_binary(struct cg *g, enum lang_op op, struct cg_val x, struct cg_val y)
{
    if (op >= OP_LT && op <= OP_NE)
        return compare(g, op, x, y);
    if (x.type == DT_BOOL)
        return pred_binary(g, op, x, y);
    return is_float_reg(x.type) ? float_binary(g, op, x, y) : int_binary(g, op, x, y);
}

struct cg_val cg_unary(struct cg *g, enum lang_op op, struct cg_val x)
{
    int64_t i;
    char m[CG_WORD];
    enum dtype t = x.type;
    switch (op) {
    case OP_PLUS: return x;
    case OP_NOT:
        if (is_const(x, &i))
            return cg_bool(g, !i);
        return cg_value(DT_BOOL, CG(g, PTX_PRED, "not.pred", x.op));
    case OP_BITNOT:
        if (is_const(x, &i))
            return cg_int(t, ~i);
        cg_dotted(m, "not", cg_bits_suffix(t));
        return cg_value(t, CG(g, cg_regtype(t), m, cg_op(g, x)));
    case OP_NEG:
        if (is_const(x, &i))
            return cg_int(t, (int64_t)(0 - (uint64_t)i));
        if (x.op.kind == PTX_O_F32)
            return x.op.bits ^= UINT64_C(1) << 31, x;
        if (x.op.kind == PTX_O_F64)
            return x.op.bits ^= UINT64_C(1) << 63, x;
        snprintf(m, sizeof m, "neg.%s",
                 t == DT_F32 || t == DT_F64 ? cg_suffix(t)
                 : is_wide(t)               ? "s64"
                                            : "s32");
        return cg_value(t, CG(g, cg_regtype(t), m, cg_op(g, x)));
    default: INTERNAL_ERROR("operator %d is not unary", (int)op);
    }
}

struct cg_val cg_fma(struct cg *g, struct cg_val x, struct cg_val y, struct cg_val z)
{
    char m[CG_WORD];
    double a, b, c;
    if (float_const(x, &a) && float_const(y, &b) && float_const(z, &c) && !isnan(fma(a, b, c)))
        return cg_float(g, x.type,
                        x.type == DT_F32 ? (double)fmaf((float)a, (float)b, (float)c)
                                         : fma(a, b, c));
    return cg_value(x.type,
                    CG(g, cg_regtype(x.type), mnemonic(m, "fma.rn", x.type), x.op, y.op, z.op));
}

static bool same_operand(struct ptx_operand x, struct ptx_operand y)
{
    return x.kind == y.kind && x.bits == y.bits && (x.kind != PTX_O_REG || x.reg == y.reg);
}

struct cg_val cg_select(struct cg *g, int32_t pred, struct cg_val x, struct cg_val y)
{
    if (x.type == DT_BOOL) {
        struct cg_val p = cg_value(DT_BOOL, pred);
        struct cg_val yes = pred_binary(g, OP_AND, p, x);
        struct cg_val no = pred_binary(g, OP_AND, cg_unary(g, OP_NOT, p), y);
        return pred_binary(g, OP_OR, yes, no);
    }
    if (same_operand(x.op, y.op) && x.narrow == y.narrow)
        return x;
    enum cg_narrow how = !is_wide(x.type)         ? CG_FULL
                         : both_fit(x, y, CG_U32) ? CG_U32
                         /* -1 as a u64 is no small number */
                         : x.type == DT_I64 && both_fit(x, y, CG_S32) ? CG_S32
                                                                      : CG_FULL;
    char m[CG_WORD];
    struct ptx_operand p = how ? low_operand(x) : cg_op(g, x);
    struct ptx_operand q = how ? low_operand(y) : cg_op(g, y);
    cg_dotted(m, "selp", how ? "b32" : cg_bits_suffix(x.type));
    struct cg_val r =
        cg_value(x.type, CG(g, how ? PTX_B32 : cg_regtype(x.type), m, p, q, ptx_r(pred)));
    r.narrow = how;
    return r;
}

struct cg_val cg_minmax(struct cg *g, bool is_max, struct cg_val x, struct cg_val y)
{
    char m[CG_WORD];
    int64_t i, j;
    if (is_const(x, &i) && is_const(y, &j))
        return fold_compare(is_max ? OP_GT : OP_LT, x.type, i, j) ? x : y;
    if (is_imm(x)) {
        struct cg_val s = x;
        x = y;
        y = s;
    }
    return cg_value(x.type, CG(g, cg_regtype(x.type), mnemonic(m, is_max ? "max" : "min", x.type),
                               cg_op(g, x), cg_op(g, y)));
}

/* ---- unsigned division of indices ------------------------------------------------------------ */

void cg_divmod(struct cg *g, struct cg_val x, struct cg_val y, struct cg_val *q, struct cg_val *r)
{
    if (both_fit(x, y, CG_U32) || is_imm(y)) {
        struct cg_val u = x, v = y;
        u.type = v.type = DT_U64;
        *q = cg_binary(g, OP_DIV, u, v);
        *r = cg_binary(g, OP_MOD, u, v);
        if (r->narrow == CG_FULL && fits(y, CG_U32)) { /* less than y: the low half is all of it */
            *r = cg_value(DT_I64, CG(g, PTX_B32, "cvt.u32.u64", cg_op(g, *r)));
            r->narrow = CG_U32;
        }
        q->type = r->type = DT_I64;
        return;
    }
    /* a 64-bit division is a hundred instructions: take the 32-bit one where x has no high half */
    int32_t quotient = cg_new_mutable(g, DT_U64), x64 = cg_reg(g, x);
    struct ptx_operand divisor = cg_op(g, y);
    bool whole = !fits(y, CG_U32); /* an extent that is computed: its high half counts, too */
    int32_t both = whole ? CG(g, PTX_B64, "or.b64", ptx_r(x64), divisor) : x64;
    int32_t high = CG(g, PTX_B64, "shr.u64", ptx_r(both), ptx_imm(32));
    int32_t small = CG(g, PTX_PRED, "setp.eq.u64", ptx_r(high), ptx_imm(0));
    uint32_t narrow = cg_label(g, "div32"), end = cg_label(g, "div");
    cg_jump_if(g, small, true, narrow);
    PTX(&g->b, "div.u64", ptx_r(quotient), ptx_r(x64), divisor);
    PTX(&g->b, "bra", ptx_label(end));
    cg_place(g, narrow);
    size_t mark = cg_scope_open(g);
    int32_t x32 = CG(g, PTX_B32, "cvt.u32.u64", ptx_r(x64));
    struct ptx_operand y32 = whole ? ptx_r(CG(g, PTX_B32, "cvt.u32.u64", divisor)) : low_operand(y);
    int32_t q32 = CG(g, PTX_B32, "div.u32", ptx_r(x32), y32);
    PTX(&g->b, "cvt.u64.u32", ptx_r(quotient), ptx_r(q32));
    cg_scope_close(g, mark);
    cg_place(g, end);
    cg_assigned(g, quotient);
    *q = cg_value(DT_I64, quotient);
    int32_t back = CG(g, PTX_B64, "mul.lo.u64", ptx_r(quotient), divisor);
    int32_t rest = CG(g, PTX_B64, "sub.u64", ptx_r(x64), ptx_r(back));
    if (whole) {
        *r = cg_value(DT_I64, rest);
        return;
    }
    *r = cg_value(DT_I64, CG(g, PTX_B32, "cvt.u32.u64", ptx_r(rest)));
    r->narrow = CG_U32;
}
