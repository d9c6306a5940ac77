/* An operand's elements, two in each register (matmul.h): a factor times another that are both
 * exact in f16 (or bf16), and that is rounded once, as
 *
 *     f16((i32(w[l, j]) - 8) * scale[l / 128, j])
 *
 * is what a multiplication of pairs gives. f32 has every product of two f16, and 24 bits are enough
 * for sums of two to be rounded twice without a trace.
 *
 * Integers of 4 and 8 bits become f16 without conversions: a word's bits are put below the exponent
 * of 1024 (of bf16: 128), where they count ones, and what is too much is subtracted, together with
 * what the spec subtracts:
 *
 *     shr    h, w, 4              of u4, once for a word: low halves of its bytes
 *     prmt   p, w, h, 0x5511      elements 2 and 3 in the low bytes of p's halves
 *     lop3   p, p & 0x000f000f | 0x64006400        1024 + both
 *     sub    p, p, {1032, 1032}
 */
#include <config.h>

#include "lower/matmul/matmul.h"

enum {
    LOP_AND_OR = 0xea, /* of lop3: (a & b) | c */
    MOST_TERM = 64,    /* constants that integers are added to or taken from */
};

/* The state while pairs of one vector are made. */
struct pairs {
    struct matmul *m;
    const struct matmul_operand *o;
    uint32_t lanes;
};

/* ---- expressions ----------------------------------------------------------------------------- */

static bool is_exact(const struct lang_expr *e, enum dtype t)
{
    return (matmul_exact(e) & MATMUL_BIT(t)) != 0;
}

/* e without casts that keep its values. */
static const struct lang_expr *value_of(const struct lang_expr *e)
{
    while (e->kind == E_CAST && is_exact(e->args[0], e->type))
        e = e->args[0];
    return e;
}

/* Two factors, or terms, exact in t, whose result is rounded to t from f32. */
static const struct lang_expr *rounded_pair(const struct lang_expr *e, enum dtype t)
{
    if (e->kind != E_CAST || e->type != t || e->args[0]->type != DT_F32)
        return NULL;
    e = e->args[0];
    if (e->kind != E_BINARY || (e->op != OP_MUL && e->op != OP_ADD && e->op != OP_SUB))
        return NULL;
    return is_exact(value_of(e->args[0]), t) && is_exact(value_of(e->args[1]), t) ? e : NULL;
}

/* ---- elements one by one --------------------------------------------------------------------- */

/* Computes e, which is exact in the operand's type, for each lane: v[lanes], of e's own type. */
static void compute(struct pairs *s, const struct lang_expr *e, struct cg_val *v)
{
    struct cg *g = s->m->g;
    struct lang_symbol *sym = ARENA_NEW(g->a, struct lang_symbol);
    struct lang_equation *eq = ARENA_NEW(g->a, struct lang_equation);
    const struct lang_equation *list = eq;
    *sym = *s->o->eq->sym;
    *eq = *s->o->eq;
    sym->type = e->type;
    sym->def = eq;
    eq->sym = sym;
    eq->rhs = (struct lang_expr *)e;
    map_compute(g, &s->m->reader, &list, 1, v);
}

static void pack(struct pairs *s, const struct cg_val *v, struct ptx_operand *word)
{
    struct cg *g = s->m->g;
    for (uint32_t i = 0; i < s->lanes / 2; i++) {
        const struct cg_val pair[2] = {cg_convert(g, v[2 * i], s->o->type),
                                       cg_convert(g, v[2 * i + 1], s->o->type)};
        word[i] = cg_pack(g, s->o->type, 2, pair);
    }
}

/* ---- integers -------------------------------------------------------------------------------- */

/* A number in both halves. */
static struct ptx_operand both(struct pairs *s, double v)
{
    const uint32_t bits = s->o->type == DT_F16 ? half_from_double(v) : bf16_from_double(v);
    return ptx_r(CG(s->m->g, PTX_B32, "mov.b32", ptx_imm((int64_t)(bits | bits << 16))));
}

static bool are_neighbours(struct cg_part x, struct cg_part y)
{
    return x.bits && x.bits == y.bits && x.word == y.word && y.at == x.at + x.bits &&
           x.at % (2 * x.bits) == 0;
}

/* The float that integer bits lie below, and that they count from with the sign's bit turned. */
static double base_of(const struct pairs *s)
{
    return s->o->type == DT_F16 ? 1024 : 128;
}

static bool has_room(const struct pairs *s, struct cg_part p)
{
    return p.bits == 4 || (p.bits == 8 && s->o->type == DT_F16);
}

/* Two neighbouring parts of a word, as base_of() and more. */
static struct ptx_operand raise(struct pairs *s, struct cg_part p, bool is_signed)
{
    struct cg *g = s->m->g;
    const uint32_t high = s->o->type == DT_F16 ? 0x64 : 0x43, byte = p.at / 8;
    const uint32_t base = high << 24 | high << 8;
    struct ptx_operand w = ptx_r(p.word);
    if (is_signed)
        w = ptx_r(CG(g, PTX_B32, "xor.b32", w, ptx_imm(p.bits == 4 ? 0x88888888 : 0x80808080)));
    if (p.bits == 8)
        return ptx_r(CG(g, PTX_B32, "prmt.b32", w, ptx_imm(base),
                        ptx_imm(byte | 5u << 4 | (byte + 1) << 8 | 5u << 12)));
    const struct ptx_operand upper = ptx_r(CG(g, PTX_B32, "shr.u32", w, ptx_imm(4)));
    const struct ptx_operand pair =
        ptx_r(CG(g, PTX_B32, "prmt.b32", w, upper, ptx_imm(byte * 0x11 | (4 + byte) * 0x1100)));
    return ptx_r(
        CG(g, PTX_B32, "lop3.b32", pair, ptx_imm(0x000f000f), ptx_imm(base), ptx_imm(LOP_AND_OR)));
}

/* Is e another value plus a constant that goes with the conversion? */
static const struct lang_expr *without_term(const struct lang_expr *e, double *term)
{
    int64_t c;
    *term = 0;
    if (e->kind != E_BINARY || (e->op != OP_ADD && e->op != OP_SUB) ||
        !lang_const_int(e->args[1], &c) || c < -MOST_TERM || c > MOST_TERM)
        return e;
    *term = (double)(e->op == OP_ADD ? c : -c);
    return value_of(e->args[0]);
}

static void integers(struct pairs *s, const struct lang_expr *e, struct ptx_operand *word)
{
    struct cg *g = s->m->g;
    const enum dtype t = s->o->type;
    struct cg_val *v = ARENA_ARRAY(g->a, s->lanes, struct cg_val);
    double term;
    const struct lang_expr *from = without_term(e, &term);
    const bool is_signed = dtype_class(from->type) == DTC_I;
    bool raises = from->kind == E_INDEX && dtype_bits(from->type) <= 8;
    if (raises)
        compute(s, from, v);
    for (uint32_t i = 0; i < s->lanes && raises; i += 2) {
        const struct cg_part p = cg_part_of(g, v[i]);
        raises = are_neighbours(p, cg_part_of(g, v[i + 1])) && has_room(s, p);
    }
    if (!raises) {
        compute(s, e, v);
        pack(s, v, word);
        return;
    }
    const double bias = is_signed ? (dtype_bits(from->type) == 4 ? 8 : 128) : 0;
    const struct ptx_operand less = both(s, base_of(s) + bias - term);
    for (uint32_t i = 0; i < s->lanes / 2; i++)
        word[i] = ptx_r(CG(g, PTX_B32, t == DT_F16 ? "sub.rn.f16x2" : "sub.rn.bf16x2",
                           raise(s, cg_part_of(g, v[2 * (size_t)i]), is_signed), less));
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static void make(struct pairs *s, const struct lang_expr *e, struct ptx_operand *word)
{
    static const char *const names[][2] = {
        {"mul.rn.f16x2", "mul.rn.bf16x2"},
        {"add.rn.f16x2", "add.rn.bf16x2"},
        {"sub.rn.f16x2", "sub.rn.bf16x2"},
    };
    struct cg *g = s->m->g;
    const struct lang_expr *pair = rounded_pair(e, s->o->type);
    e = value_of(e);
    if (!pair && dtype_is_int(e->type)) {
        integers(s, e, word);
        return;
    }
    if (!pair) {
        struct cg_val *v = ARENA_ARRAY(g->a, s->lanes, struct cg_val);
        compute(s, e, v);
        pack(s, v, word);
        return;
    }
    struct ptx_operand *x = ARENA_ARRAY(g->a, s->lanes, struct ptx_operand), *const y =
                                                                                 x + s->lanes / 2;
    make(s, value_of(pair->args[0]), x);
    make(s, value_of(pair->args[1]), y);
    const char *name = names[pair->op == OP_MUL   ? 0
                             : pair->op == OP_ADD ? 1
                                                  : 2][s->o->type == DT_BF16];
    for (uint32_t i = 0; i < s->lanes / 2; i++)
        word[i] = ptx_r(CG(g, PTX_B32, name, x[i], y[i]));
}

bool matmul_has_pairs(const struct matmul_operand *o)
{
    const bool is_half = o->type == DT_F16 || o->type == DT_BF16;
    return is_half && o->eq &&
           (rounded_pair(o->eq->rhs, o->type) || dtype_is_int(value_of(o->eq->rhs)->type));
}

bool matmul_fetch_pairs(struct matmul *m, uint32_t operand, struct cg_val at, struct cg_val k,
                        uint32_t lanes, int32_t inside, struct ptx_operand *word)
{
    enum { SM_F16 = 75, SM_BF16 = 90 }; /* have mul.f16x2 and mul.bf16x2 */
    struct cg *g = m->g;
    struct pairs s = {.m = m, .o = &m->f->operand[operand], .lanes = lanes};
    const struct lang_expr *e = s.o->eq->rhs;
    int64_t c;
    if (lanes % 2 || g->target->sm < (s.o->type == DT_F16 ? SM_F16 : SM_BF16) ||
        !matmul_has_pairs(s.o))
        return false;
    const struct cg_val ok = matmul_stand(m, operand, at, k, lanes, inside);
    const struct cg_guard before = cg_guard(g, ok, false);
    make(&s, e, word);
    cg_unguard(g, before);
    for (uint32_t i = 0; i < lanes / 2 && !cg_is_const(ok, &c); i++)
        word[i] = ptx_r(CG(g, PTX_B32, "selp.b32", word[i], ptx_imm(0), ptx_r(cg_reg(g, ok))));
    return true;
}
