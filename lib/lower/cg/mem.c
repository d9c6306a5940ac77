#include <config.h>

#include "lower/cg/cg.h"

#include "base/internal.h"

#include <stdio.h>

/* ---- addresses ------------------------------------------------------------------------------- */

struct cg_val cg_extent(struct cg *g, const struct lang_symbol *t, uint32_t axis)
{
    return cg_index(g, cg_expr(g, t->dims[axis]));
}

struct cg_val cg_flat_index(struct cg *g, const struct lang_symbol *t, uint32_t n,
                            const struct cg_val *subscript)
{
    if (n == 0)
        return cg_int(DT_I64, 0);
    struct cg_val flat = cg_index(g, subscript[0]);
    for (uint32_t i = 1; i < n; i++) {
        flat = cg_binary(g, OP_MUL, flat, cg_extent(g, t, i));
        flat = cg_binary(g, OP_ADD, flat, cg_index(g, subscript[i]));
    }
    return flat;
}

struct cg_place_of cg_address(struct cg *g, const struct lang_symbol *t, struct cg_val flat)
{
    struct cg_place_of at = {.base = cg_param_of(g, t).op.reg, .nibble = cg_int(DT_U32, 0)};
    unsigned bits = dtype_bits(t->type);
    int64_t i;
    if (bits == 4) {
        struct cg_val low = cg_convert(g, flat, DT_U32);
        at.nibble = cg_binary(g, OP_AND, low, cg_int(DT_U32, 1));
        flat = flat.narrow == CG_U32 ? cg_index(g, cg_binary(g, OP_SHR, low, cg_int(DT_U32, 1)))
                                     : cg_binary(g, OP_SHR, flat, cg_int(DT_U32, 1));
        bits = 8;
    }
    if (cg_is_const(flat, &i)) {
        at.offset = (int64_t)((uint64_t)i * (bits / 8));
        if (at.offset == (int32_t)at.offset)
            return at;
        at.offset = 0;
    }
    struct cg_val bytes = cg_binary(g, OP_MUL, flat, cg_int(DT_I64, bits / 8));
    at.base = CG(g, PTX_B64, "add.s64", ptx_r(at.base), cg_op(g, bytes));
    return at;
}

/* ---- one element ----------------------------------------------------------------------------- */

/* Nothing writes to an `in` parameter while the kernel runs, and the contract allows no overlap;
 * nor to what an earlier stage stored. */
bool cg_is_constant(const struct cg *g, const struct lang_symbol *t)
{
    const struct cg_home *home = cg_home_of(g, t);
    return (home && home->is_stored) || (t->kind == SYM_BUFFER && t->mode == MODE_IN);
}

static const char *load_type(enum dtype t)
{
    switch (t) {
    case DT_F64: return "f64";
    case DT_F32: return "f32";
    case DT_F16:
    case DT_BF16: return "b16";
    case DT_I64:
    case DT_U64: return "b64";
    case DT_I32:
    case DT_U32: return "b32";
    case DT_I16: return "s16";
    case DT_U16: return "u16";
    case DT_I8: return "s8";
    case DT_E4M3:
    case DT_E5M2:
    case DT_U8:
    case DT_BOOL:
    case DT_I4:
    case DT_U4: return "u8";
    case DT_COUNT: break;
    }
    INTERNAL_ERROR("no element has type %d", (int)t);
}

/* The modifier of loads from what nobody writes. */
static const char *free_word(const struct cg *g)
{
    return g->keeps_loads ? "" : ".nc";
}

/* What a loaded register means: the predicate of a bool, the nibble of a packed byte. */
static struct cg_val finish_load(struct cg *g, enum dtype t, int32_t reg, struct cg_val nibble)
{
    if (t == DT_BOOL)
        return cg_value(t, CG(g, PTX_PRED, "setp.ne.u32", ptx_r(reg), ptx_imm(0)));
    if (t == DT_I4 || t == DT_U4) {
        struct cg_val from = cg_binary(g, OP_SHL, nibble, cg_int(DT_U32, 2));
        return cg_value(
            t, CG(g, PTX_B32, t == DT_I4 ? "bfe.s32" : "bfe.u32", ptx_r(reg), from.op, ptx_imm(4)));
    }
    return cg_value(t, reg);
}

static enum ptx_mod load_regtype(enum dtype t)
{
    return t == DT_BOOL ? PTX_B32 : cg_regtype(t);
}

struct ptx_operand cg_mem(struct cg_place_of at)
{
    return at.base >= 0 ? ptx_mem(at.base, at.offset) : ptx_mem_var(at.var, at.offset);
}

const char *cg_space_word(enum cg_space s)
{
    static const char *const words[] = {"global", "shared", "local", "const"};
    return words[s];
}

/* The predicate of an access: the thread's own memory and the block's need no guarding. */
static int32_t guard_of(const struct cg *g, struct cg_place_of at)
{
    return at.space == CG_GLOBAL ? g->guard : -1;
}

enum { LOAD_TEXT = 48 };

static void load_text(struct cg *g, enum dtype t, bool is_free, struct cg_place_of at,
                      char text[LOAD_TEXT])
{
    cg_joined(text, LOAD_TEXT, "ld", at.order ? at.order : "", ".", cg_space_word(at.space),
              is_free && at.space == CG_GLOBAL ? free_word(g) : "", ".", load_type(t), NULL);
}

static void zero(struct cg *g, int32_t reg, enum ptx_mod rt)
{
    PTX(&g->b,
        rt == PTX_F32   ? "mov.f32"
        : rt == PTX_F64 ? "mov.f64"
        : rt == PTX_B64 ? "mov.b64"
        : rt == PTX_B32 ? "mov.b32"
                        : "mov.b16",
        ptx_r(reg),
        rt == PTX_F32   ? ptx_immf32(0)
        : rt == PTX_F64 ? ptx_immf64(0)
                        : ptx_imm(0));
}

/* Zero where the guard does not hold. */
static int32_t load(struct cg *g, enum dtype t, bool is_free, struct cg_place_of at)
{
    const int32_t reg = ptx_reg_new(&g->b, load_regtype(t)), guard = guard_of(g, at);
    const struct ptx_operand from = cg_mem(at);
    char text[LOAD_TEXT];
    load_text(g, t, is_free, at, text);
    if (guard >= 0)
        zero(g, reg, load_regtype(t));
    ptx_emit(&g->b, guard, false, text, PTX_ARGS(ptx_r(reg), from));
    return reg;
}

/* What does not change while it may be asked for is known by its address, whichever instruction
 * loaded it. */
static struct cg_val load_once(struct cg *g, enum dtype t, bool is_free, struct cg_place_of at)
{
    const struct ptx_operand from = cg_mem(at);
    char what[32];
    cg_joined(what, sizeof what, "load ", dtype_name(t), NULL);
    int32_t reg = cg_recall_read(g, what, 1, &from);
    if (reg < 0) {
        reg = load(g, t, is_free, at);
        if (guard_of(g, at) < 0)
            cg_set_depth(g, reg, cg_depth(g, from));
        cg_remember_read(g, what, 1, &from, reg);
    }
    return finish_load(g, t, reg, at.nibble);
}

struct cg_val cg_load_at(struct cg *g, enum dtype t, bool is_constant, struct cg_place_of at)
{
    return is_constant ? load_once(g, t, true, at)
                       : finish_load(g, t, load(g, t, false, at), at.nibble);
}

struct cg_val cg_load(struct cg *g, const struct lang_symbol *t, struct cg_place_of at)
{
    /* in compute: an inout is read before anything is written */
    const bool is_constant = cg_is_constant(g, t);
    return is_constant || g->in_body ? cg_load_at(g, t->type, is_constant, at)
                                     : cg_load_here(g, t, at);
}

struct cg_val cg_load_here(struct cg *g, const struct lang_symbol *t, struct cg_place_of at)
{
    return load_once(g, t->type, false, at);
}

struct cg_val cg_load_if(struct cg *g, const struct lang_symbol *t, struct cg_place_of at,
                         int32_t pred, struct cg_val otherwise)
{
    char m[LOAD_TEXT];
    enum dtype et = t->type;
    bool packed = et == DT_I4 || et == DT_U4 || et == DT_BOOL;
    if (g->guard >= 0)
        pred =
            cg_reg(g, cg_binary(g, OP_LAND, cg_value(DT_BOOL, g->guard), cg_value(DT_BOOL, pred)));
    /* packed elements are taken out of their byte first: the other value is chosen after that */
    int32_t reg = ptx_reg_new(&g->b, load_regtype(et));
    cg_assigned(g, reg);
    if (packed) {
        PTX(&g->b, "mov.b32", ptx_r(reg), ptx_imm(0));
    } else {
        cg_joined(m, sizeof m, "mov.", cg_bits_suffix(et), NULL);
        PTX(&g->b, m, ptx_r(reg), cg_op(g, otherwise));
    }
    load_text(g, et, cg_is_constant(g, t), at, m);
    CG_ASSIGN_IF(g, pred, reg, m, ptx_mem(at.base, at.offset));
    struct cg_val v = finish_load(g, et, reg, at.nibble);
    return packed ? cg_select(g, pred, v, otherwise) : v;
}

void cg_store_at(struct cg *g, enum dtype t, struct cg_place_of at, struct cg_val v)
{
    char m[48];
    if (t == DT_BOOL)
        v = cg_convert(g, v, DT_U32);
    const char *type = load_type(t);
    cg_joined(m, sizeof m, "st", at.order ? at.order : "", ".", cg_space_word(at.space), ".",
              type[0] == 's' ? type[1] == '8' ? "u8" : "u16" : type, NULL);
    const struct ptx_operand from = cg_op(g, v);
    ptx_emit(&g->b, guard_of(g, at), false, m, PTX_ARGS(cg_mem(at), from));
}

void cg_store(struct cg *g, const struct lang_symbol *t, struct cg_place_of at, struct cg_val v)
{
    cg_store_at(g, t->type, at, v);
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* The words that n elements are moved in: f32 and f64 registers as they are, the rest packed into
 * 32 bits (or 64 for i64), smaller pieces zero-extended. */
struct words {
    const char *type; /* of the access */
    enum ptx_mod rt;
    unsigned bits, n;
};

static struct words words_of(enum dtype t, unsigned n)
{
    unsigned bits = dtype_bits(t) * n;
    if (t == DT_F32)
        return (struct words){"f32", PTX_F32, 32, n};
    if (t == DT_F64)
        return (struct words){"f64", PTX_F64, 64, n};
    if (dtype_bits(t) == 64)
        return (struct words){"b64", PTX_B64, 64, n};
    if (bits >= 32)
        return (struct words){"b32", PTX_B32, 32, bits / 32};
    return (struct words){bits == 16 ? "u16" : "u8", PTX_B32, bits, 1};
}

/* Moves w.n words from or to a place in accesses of at most 16 bytes. */
static void move_words(struct cg *g, const char *what, struct cg_place_of place, struct words w,
                       const struct ptx_operand *reg, bool load)
{
    unsigned most = 128 / w.bits > 4 ? 4 : 128 / w.bits;
    for (unsigned i = 0; i < w.n;) {
        unsigned k = w.n - i < most ? w.n - i : most;
        char m[64];
        cg_joined(m, sizeof m, what, k == 4 ? ".v4" : k == 2 ? ".v2" : "", ".", w.type, NULL);
        struct ptx_operand at = cg_mem(place);
        place.offset += (int64_t)k * w.bits / 8;
        struct ptx_operand v = k == 1 ? reg[i] : ptx_vec(&g->b, k, reg + i);
        if (load && place.has_policy)
            ptx_emit(&g->b, guard_of(g, place), false, m, PTX_ARGS(v, at, ptx_r(place.policy)));
        else if (load)
            ptx_emit(&g->b, guard_of(g, place), false, m, PTX_ARGS(v, at));
        else
            ptx_emit(&g->b, guard_of(g, place), false, m, PTX_ARGS(at, v));
        i += k;
    }
}

static void note_part(struct cg *g, int32_t reg, struct cg_part p)
{
    while (g->parts.n <= (size_t)reg)
        VEC_PUSH(g->a, &g->parts);
    g->parts.v[reg] = p;
}

struct cg_part cg_part_of(const struct cg *g, struct cg_val v)
{
    const bool known = v.op.kind == PTX_O_REG && (size_t)v.op.reg < g->parts.n;
    return known ? g->parts.v[v.op.reg] : (struct cg_part){0};
}

void cg_unpack(struct cg *g, enum dtype t, int32_t word, unsigned n, struct cg_val *v)
{
    unsigned bits = dtype_bits(t);
    if (t == DT_F16 || t == DT_BF16) {
        if (n == 1) {
            v[0] = cg_value(t, CG(g, PTX_F16, "cvt.u16.u32", ptx_r(word)));
            return;
        }
        int32_t lo = cg_new(g, t), hi = cg_new(g, t);
        struct ptx_operand pair[2] = {ptx_r(lo), ptx_r(hi)};
        PTX(&g->b, "mov.b32", ptx_vec(&g->b, 2, pair), ptx_r(word));
        v[0] = cg_value(t, lo);
        v[1] = cg_value(t, hi);
        return;
    }
    bool is_signed = dtype_class(t) == DTC_I;
    for (unsigned i = 0; i < n; i++) {
        int32_t r = is_signed ? cg_signed_part(g, word, i, bits)
                              : CG(g, PTX_B32, "bfe.u32", ptx_r(word), ptx_imm((int64_t)i * bits),
                                   ptx_imm(bits));
        note_part(g, r, (struct cg_part){.bits = bits, .at = i * bits, .word = word});
        if (dtype_is_fp8(t))
            r = CG(g, PTX_B16, "cvt.u16.u32", ptx_r(r));
        else if (t == DT_BOOL)
            r = CG(g, PTX_PRED, "setp.ne.u32", ptx_r(r), ptx_imm(0));
        v[i] = cg_value(t, r);
    }
}

enum { MOST_WORDS = 32 };

/* Does t take more of the L2 cache than a buffer may have for itself? */
static bool is_large(const struct cg *g, const struct lang_symbol *t)
{
    enum { STAYS = 32 << 20 }; /* bytes */
    int64_t bytes = dtype_bits(t->type) / 8, n;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (!lang_const_int(t->dims[i], &n))
            return false;
        bytes *= n < STAYS ? n : STAYS;
        bytes = bytes < STAYS ? bytes : STAYS;
    }
    return g->target->sm >= 90 && bytes == STAYS;
}

const char *cg_read_once(const struct cg *g, const struct lang_symbol *t)
{
    return is_large(g, t) ? ".L1::evict_first" : NULL;
}

void cg_read_again(struct cg *g, const struct lang_symbol *t, struct cg_place_of *at)
{
    static const char policy[] = "createpolicy.fractional.L2::evict_last.b64";
    const struct ptx_operand all = ptx_immf32(1);
    if (!is_large(g, t))
        return;
    at->cache = ".L2::cache_hint";
    at->policy = cg_pure(g, PTX_B64, policy, 1, &all);
    at->has_policy = true;
}

void cg_read_enough(struct cg *g, const struct lang_symbol *t, struct cg_place_of at)
{
    enum { LINE = 128 };
    if (!is_large(g, t) || at.offset % LINE)
        return;
    const int32_t low = CG(g, PTX_B32, "cvt.u32.u64", ptx_r(at.base));
    const int32_t in_line = CG(g, PTX_B32, "and.b32", ptx_r(low), ptx_imm(LINE - 1));
    const int32_t begins = CG(g, PTX_PRED, "setp.eq.u32", ptx_r(in_line), ptx_imm(0));
    ptx_emit(&g->b, begins, false, "applypriority.global.L2::evict_normal",
             PTX_ARGS(cg_mem(at), ptx_imm(LINE)));
}

void cg_load_words(struct cg *g, enum dtype t, bool is_constant, struct cg_place_of at, unsigned n,
                   struct cg_val *v)
{
    struct words w = words_of(t, n);
    struct ptx_operand reg[MOST_WORDS];
    char what[48];
    for (unsigned i = 0; i < w.n; i++)
        reg[i] = ptx_r(ptx_reg_new(&g->b, w.rt));
    for (unsigned i = 0; guard_of(g, at) >= 0 && i < w.n; i++)
        zero(g, reg[i].reg, w.rt);
    cg_joined(what, sizeof what, "ld.", cg_space_word(at.space),
              is_constant && at.space == CG_GLOBAL ? free_word(g) : "", at.cache ? at.cache : "",
              NULL);
    move_words(g, what, at, w, reg, true);
    unsigned per = n / w.n;
    for (unsigned i = 0; i < w.n; i++) {
        if (dtype_bits(t) >= 32)
            v[i] = cg_value(t, reg[i].reg);
        else
            cg_unpack(g, t, reg[i].reg, per, v + (size_t)i * per);
    }
}

void cg_load_vector(struct cg *g, const struct lang_symbol *t, int32_t base, int64_t offset,
                    unsigned n, struct cg_val *v)
{
    struct cg_place_of at = {.base = base, .offset = offset};
    cg_load_words(g, t->type, cg_is_constant(g, t), at, n, v);
}

struct ptx_operand cg_pack(struct cg *g, enum dtype t, unsigned n, const struct cg_val *v)
{
    unsigned bits = dtype_bits(t);
    if ((t == DT_F16 || t == DT_BF16) && n == 2) {
        struct ptx_operand pair[2] = {ptx_r(cg_reg(g, v[0])), ptx_r(cg_reg(g, v[1]))};
        int32_t w = ptx_reg_new(&g->b, PTX_B32);
        PTX(&g->b, "mov.b32", ptx_r(w), ptx_vec(&g->b, 2, pair));
        return ptx_r(w);
    }
    struct cg_val word = {0};
    for (unsigned i = 0; i < n; i++) {
        struct cg_val x = v[i];
        x = dtype_is_float(t) ? cg_bitcast(g, x, DT_U32) : cg_convert(g, x, DT_U32);
        if (i == 0)
            word = bits < 32 && dtype_class(t) == DTC_I
                       ? cg_binary(g, OP_AND, x, cg_int(DT_U32, (INT64_C(1) << bits) - 1))
                       : x;
        else
            word = cg_value(DT_U32, CG(g, PTX_B32, "bfi.b32", cg_op(g, x), cg_op(g, word),
                                       ptx_imm((int64_t)i * bits), ptx_imm(bits)));
    }
    return ptx_r(cg_reg(g, word));
}

void cg_store_words(struct cg *g, enum dtype t, struct cg_place_of at, unsigned n,
                    const struct cg_val *v)
{
    struct words w = words_of(t, n);
    struct ptx_operand reg[MOST_WORDS];
    char what[32];
    unsigned per = n / w.n;
    for (unsigned i = 0; i < w.n; i++)
        reg[i] = dtype_bits(t) >= 32 ? ptx_r(cg_reg(g, v[i]))
                                     : cg_pack(g, t, per, v + (size_t)i * per);
    cg_joined(what, sizeof what, "st.", cg_space_word(at.space), at.cache ? at.cache : "", NULL);
    move_words(g, what, at, w, reg, false);
}

void cg_store_vector(struct cg *g, const struct lang_symbol *t, int32_t base, int64_t offset,
                     unsigned n, const struct cg_val *v)
{
    struct cg_place_of at = {.base = base, .offset = offset};
    cg_store_words(g, t->type, at, n, v);
}

struct cg_val cg_load_lanes(struct cg *g, enum dtype t, unsigned lanes, bool is_constant,
                            struct cg_place_of at)
{
    struct cg_val v[MOST_WORDS];
    cg_load_words(g, t, is_constant, at, lanes, v);
    return cg_vector(g, t, lanes, v);
}

void cg_store_lanes(struct cg *g, enum dtype t, struct cg_place_of at, struct cg_val v)
{
    cg_store_words(g, t, at, v.lanes, v.lane);
}
