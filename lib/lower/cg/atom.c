/* Atomic operations, ordered loads and stores. The PTX memory model (from sm_70 on) implements
 * C++'s orders so (Lustig, Sahasrabuddhe, Giroux: A Formal Analysis of the NVIDIA PTX Memory
 * Consistency Model, ASPLOS 2019):
 *
 *     relaxed, acquire, release, acq_rel    the word of that name on ld, st, atom, red
 *     seq_cst                               fence.sc in front, then ld.acquire, st.relaxed,
 *                                           atom.acquire
 *
 * The fence makes a release pattern of what follows it, so nothing is lost by that being weaker
 * than release.
 */
#include <config.h>

#include "lower/cg/sync.h"

#include "base/internal.h"

#include <stdio.h>

static bool is_half(enum dtype t)
{
    return t == DT_F16 || t == DT_BF16;
}

/* ---- order and scope ------------------------------------------------------------------------- */

static bool supported(struct cg *g, const struct lang_expr *e)
{
    enum dtype t = e->args[0]->type;
    bool adds = e->fn == FN_ATOMIC_ADD || e->fn == FN_ATOMIC_SUB;
    unsigned sm = e->scope == SCOPE_CLUSTER || (adds && t == DT_BF16) ? 90 : 70;
    const char *what = arena_printf(g->a, "%s() of %s (order %s, scope %s)", e->name,
                                    lang_type_name(g->a, t, e->fn == FN_STORE ? 0 : e->lanes),
                                    lang_order_name(e->order), lang_memory_scope_name(e->scope));
    return cg_needs(g, e->span, sm, what);
}

/* ".acquire.gpu"; the fence that a seq_cst operation begins with is emitted. */
static const char *order_words(struct cg *g, const struct lang_expr *e)
{
    static const char *const words[] = {"relaxed", "acquire", "release", "acq_rel"};
    const char *word;
    if (e->order == ORDER_SEQ_CST) {
        cg_fence(g, e->span, e->order, e->scope);
        word = e->fn == FN_STORE ? "relaxed" : "acquire";
    } else {
        word = words[e->order];
    }
    return arena_printf(g->a, ".%s.%s", word, cg_scope_word(e->scope));
}

/* ---- operands -------------------------------------------------------------------------------- */

/* A register as the instruction wants it: 16-bit integers are otherwise kept in 32 bits. */
static struct ptx_operand word_of(struct cg *g, struct cg_val v)
{
    if (v.lanes)
        return cg_pack(g, v.type, 2, v.lane);
    if (v.type == DT_I16 || v.type == DT_U16)
        return ptx_r(CG(g, PTX_B16, "cvt.u16.u32", ptx_r(cg_reg(g, v))));
    return ptx_r(cg_reg(g, v));
}

static struct cg_val value_of_word(struct cg *g, enum dtype t, uint8_t lanes, int32_t word)
{
    struct cg_val pair[2];
    if (lanes) {
        cg_unpack(g, t, word, 2, pair);
        return cg_vector(g, t, 2, pair);
    }
    if (t == DT_U16)
        return cg_value(t, CG(g, PTX_B32, "cvt.u32.u16", ptx_r(word)));
    if (t == DT_I16)
        return cg_value(t, CG(g, PTX_B32, "cvt.s32.s16", ptx_r(word)));
    return cg_value(t, word);
}

static int32_t new_word(struct cg *g, enum dtype t, uint8_t lanes)
{
    if (t == DT_I16 || t == DT_U16)
        return ptx_reg_new(&g->b, PTX_B16);
    return cg_new(g, lanes ? DT_U32 : t);
}

/* What atomic_sub() adds. */
static struct cg_val negated(struct cg *g, struct cg_val v)
{
    if (v.lanes) {
        struct cg_val lane[2] = {negated(g, v.lane[0]), negated(g, v.lane[1])};
        return cg_vector(g, v.type, 2, lane);
    }
    if (!is_half(v.type))
        return cg_unary(g, OP_NEG, v);
    if (v.op.kind == PTX_O_IMM) {
        v.op.bits ^= 0x8000;
        return v;
    }
    return cg_value(v.type, CG(g, PTX_F16, "xor.b16", ptx_r(v.op.reg), ptx_imm(0x8000)));
}

/* ---- instructions ---------------------------------------------------------------------------- */

static const char *operation(enum lang_builtin fn)
{
    switch (fn) {
    case FN_ATOMIC_ADD:
    case FN_ATOMIC_SUB: return "add";
    case FN_ATOMIC_MIN: return "min";
    case FN_ATOMIC_MAX: return "max";
    case FN_ATOMIC_AND: return "and";
    case FN_ATOMIC_OR: return "or";
    case FN_ATOMIC_XOR: return "xor";
    case FN_ATOMIC_EXCH: return "exch";
    case FN_ATOMIC_CAS: return "cas";
    case FN_ATOMIC_INC: return "inc";
    case FN_ATOMIC_DEC: return "dec";
    default: INTERNAL_ERROR("builtin %d is no atomic", (int)fn);
    }
}

/* The operation's type as PTX names it. */
static const char *type_word(enum lang_builtin fn, enum dtype t, uint8_t lanes)
{
    static const char *const bits[] = {[2] = "b16", [4] = "b32", [8] = "b64"};
    if (fn >= FN_ATOMIC_AND && fn <= FN_ATOMIC_CAS && fn != FN_ATOMIC_INC && fn != FN_ATOMIC_DEC)
        return bits[dtype_bits(t) / 8 * (lanes ? lanes : 1)];
    switch (t) {
    case DT_F16: return lanes ? "noftz.f16x2" : "noftz.f16";
    case DT_BF16: return lanes ? "noftz.bf16x2" : "noftz.bf16";
    case DT_I64: return fn == FN_ATOMIC_ADD || fn == FN_ATOMIC_SUB ? "u64" : "s64";
    case DT_F64:
    case DT_F32:
    case DT_E4M3:
    case DT_E5M2:
    case DT_I32:
    case DT_I16:
    case DT_I8:
    case DT_U64:
    case DT_U32:
    case DT_U16:
    case DT_U8:
    case DT_BOOL:
    case DT_I4:
    case DT_U4:
    case DT_COUNT: break;
    }
    return cg_suffix(t);
}

/* red where the old value is not used and the order has it. */
static bool is_red(const struct cg *g, const struct lang_expr *e)
{
    return g->unused == e && (e->order == ORDER_RELAXED || e->order == ORDER_RELEASE) &&
           e->fn != FN_ATOMIC_EXCH && e->fn != FN_ATOMIC_CAS;
}

static struct cg_val update(struct cg *g, const struct lang_expr *e, struct cg_place_of at)
{
    enum dtype t = e->args[0]->type;
    struct cg_val v = cg_expr(g, e->args[1]);
    char m[80];
    if (g->failed)
        return v;
    struct ptx_operand x = word_of(g, e->fn == FN_ATOMIC_SUB ? negated(g, v) : v), y = {0};
    if (e->fn == FN_ATOMIC_CAS)
        y = word_of(g, cg_expr(g, e->args[2]));
    bool red = is_red(g, e);
    const char *order = order_words(g, e);
    snprintf(m, sizeof m, "%s%s.%s.%s.%s", red ? "red" : "atom", order, cg_space_word(at.space),
             operation(e->fn), type_word(e->fn, t, e->lanes));
    if (red) {
        PTX(&g->b, m, cg_mem(at), x);
        return v;
    }
    int32_t old = new_word(g, t, e->lanes);
    if (e->fn == FN_ATOMIC_CAS)
        PTX(&g->b, m, ptx_r(old), cg_mem(at), x, y);
    else
        PTX(&g->b, m, ptx_r(old), cg_mem(at), x);
    return value_of_word(g, t, e->lanes, old);
}

/* min and max of floats, which PTX lacks: what is there is replaced until nothing has come
 * between. */
static struct cg_val float_minmax(struct cg *g, const struct lang_expr *e, struct cg_place_of at)
{
    enum dtype t = e->args[0]->type, bits = t == DT_F64 ? DT_U64 : DT_U32;
    struct cg_val v = cg_expr(g, e->args[1]);
    const char *order = order_words(g, e), *b = t == DT_F64 ? "b64" : "b32";
    char m[80];
    int32_t old = cg_new_mutable(g, bits), found = cg_new(g, bits);
    struct cg_place_of first = at;
    first.order = arena_printf(g->a, ".relaxed.%s", cg_scope_word(e->scope));
    cg_move(g, old, cg_load_at(g, bits, false, first));
    uint32_t head = cg_label(g, "cas");
    cg_place(g, head);
    cg_loop_head(g);
    size_t mark = cg_scope_open(g);
    struct cg_val now = cg_bitcast(g, cg_value(bits, old), t);
    struct cg_val next = cg_bitcast(g, cg_minmax(g, e->fn == FN_ATOMIC_MAX, now, v), bits);
    snprintf(m, sizeof m, "atom%s.%s.cas.%s", order, cg_space_word(at.space), b);
    PTX(&g->b, m, ptx_r(found), cg_mem(at), ptx_r(old), ptx_r(cg_reg(g, next)));
    snprintf(m, sizeof m, "setp.ne.%s", b);
    int32_t again = cg_new(g, DT_BOOL);
    PTX(&g->b, m, ptx_r(again), ptx_r(found), ptx_r(old));
    cg_move(g, old, cg_value(bits, found));
    cg_jump_if(g, again, true, head);
    cg_scope_close(g, mark);
    return cg_bitcast(g, cg_value(bits, old), t);
}

struct cg_val atomic_call(struct cg *g, const struct lang_expr *e)
{
    enum dtype t = e->args[0]->type;
    struct cg_val nothing = cg_int(DT_U32, 0);
    if (!supported(g, e))
        return nothing;
    struct cg_place_of at = cg_place_expr(g, e->args[0]->args[0]);
    if (e->fn == FN_LOAD) {
        at.order = order_words(g, e);
        return cg_load_at(g, t, false, at);
    }
    if (e->fn == FN_STORE) {
        struct cg_val v = cg_convert(g, cg_expr(g, e->args[1]), t);
        at.order = order_words(g, e);
        cg_store_at(g, t, at, v);
        return nothing;
    }
    bool minmax = e->fn == FN_ATOMIC_MIN || e->fn == FN_ATOMIC_MAX;
    return minmax && dtype_is_float(t) ? float_minmax(g, e, at) : update(g, e, at);
}
