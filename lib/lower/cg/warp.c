/* Shuffles and reductions over a warp. Every fold has a fixed order, so that each run and each
 * device gives the same bits, and every lane the same result. */
#include <config.h>

#include "lower/cg/sync.h"

#include <stdio.h>

enum { LANES = 32 };

/* ---- shuffles -------------------------------------------------------------------------------- */

static int32_t shuffle_word(struct cg *g, enum shuffle how, enum ptx_mod rt, int32_t word,
                            struct ptx_operand lane, struct ptx_operand clamp,
                            struct ptx_operand mask, int32_t *in_range)
{
    static const char *const names[] = {"shfl.sync.idx.b32", "shfl.sync.up.b32",
                                        "shfl.sync.down.b32", "shfl.sync.bfly.b32"};
    int32_t r = ptx_reg_new(&g->b, rt);
    struct ptx_operand d = ptx_r(r);
    if (in_range) {
        *in_range = cg_new(g, DT_BOOL);
        d = ptx_pair(r, *in_range);
    }
    PTX(&g->b, names[how], d, ptx_r(word), lane, clamp, mask);
    return r;
}

/* Two halves, each the same way. */
static struct cg_val shuffle_wide(struct cg *g, enum shuffle how, struct cg_val v,
                                  struct ptx_operand lane, struct ptx_operand clamp,
                                  struct ptx_operand mask, int32_t *in_range)
{
    struct ptx_operand half[2] = {ptx_r(cg_new(g, DT_U32)), ptx_r(cg_new(g, DT_U32))};
    PTX(&g->b, "mov.b64", ptx_vec(&g->b, 2, half), ptx_r(cg_reg(g, v)));
    for (int i = 0; i < 2; i++)
        half[i] = ptx_r(shuffle_word(g, how, PTX_B32, half[i].reg, lane, clamp, mask,
                                     i == 0 ? in_range : NULL));
    int32_t r = cg_new(g, v.type);
    PTX(&g->b, "mov.b64", ptx_r(r), ptx_vec(&g->b, 2, half));
    return cg_value(v.type, r);
}

void warp_vote(struct cg *g, bool all, int32_t to, int32_t p)
{
    PTX(&g->b, all ? "vote.sync.all.pred" : "vote.sync.any.pred", ptx_r(to), ptx_r(p),
        ptx_imm(UINT32_MAX));
}

struct cg_val shuffle(struct cg *g, enum shuffle how, struct cg_val v, struct ptx_operand lane,
                      struct ptx_operand clamp, struct ptx_operand mask, int32_t *in_range)
{
    bool wide = dtype_bits(v.type) == 64, half = v.type == DT_F16 || v.type == DT_BF16;
    if (wide && (v.narrow == CG_FULL || v.op.kind != PTX_O_REG))
        return shuffle_wide(g, how, v, lane, clamp, mask, in_range);
    struct cg_val word = half                ? cg_bitcast(g, v, DT_U32)
                         : v.type == DT_BOOL ? cg_convert(g, v, DT_U32)
                                             : v;
    int32_t from = wide ? v.op.reg : cg_reg(g, word);
    enum ptx_mod rt = v.type == DT_F32 ? PTX_F32 : PTX_B32;
    int32_t r = shuffle_word(g, how, rt, from, lane, clamp, mask, in_range);
    if (half)
        r = CG(g, PTX_F16, "cvt.u16.u32", ptx_r(r));
    else if (v.type == DT_BOOL)
        r = CG(g, PTX_PRED, "setp.ne.u32", ptx_r(r), ptx_imm(0));
    struct cg_val result = cg_value(v.type, r);
    result.narrow = v.narrow;
    return result;
}

/* The operand c of shfl: where a segment of `width` lanes ends, and which bits number the
 * segment. */
static struct ptx_operand clamp_of(struct cg *g, enum shuffle how, const struct lang_expr *width)
{
    int64_t end = how == SHUFFLE_UP ? 0 : LANES - 1;
    if (!width)
        return ptx_imm(end);
    struct cg_val w = cg_expr(g, width);
    struct cg_val segment = cg_binary(g, OP_SUB, cg_int(DT_U32, LANES), w);
    segment = cg_binary(g, OP_SHL, segment, cg_int(DT_U32, 8));
    return cg_op(g, cg_binary(g, OP_OR, segment, cg_int(DT_U32, end)));
}

struct cg_val warp_shuffle(struct cg *g, const struct lang_expr *e)
{
    enum shuffle how = e->fn == FN_SHFL        ? SHUFFLE_IDX
                       : e->fn == FN_SHFL_UP   ? SHUFFLE_UP
                       : e->fn == FN_SHFL_DOWN ? SHUFFLE_DOWN
                                               : SHUFFLE_XOR;
    struct ptx_operand mask = cg_op(g, cg_expr(g, e->args[0]));
    struct cg_val v = cg_expr(g, e->args[1]);
    struct ptx_operand lane = cg_op(g, cg_expr(g, e->args[2]));
    struct ptx_operand clamp = clamp_of(g, how, e->nargs > 3 ? e->args[3] : NULL);
    if (!v.lanes)
        return shuffle(g, how, v, lane, clamp, mask, NULL);
    unsigned per = 32 / dtype_bits(v.type); /* narrow lanes go in words */
    struct cg_val *part = ARENA_ARRAY(g->a, v.lanes, struct cg_val);
    for (unsigned i = 0; i < v.lanes; i += per ? per : 1)
        if (per > 1) {
            struct cg_val word = cg_value(DT_U32, cg_pack(g, v.type, per, v.lane + i).reg);
            word = shuffle(g, how, word, lane, clamp, mask, NULL);
            cg_unpack(g, v.type, word.op.reg, per, part + i);
        } else {
            part[i] = shuffle(g, how, v.lane[i], lane, clamp, mask, NULL);
        }
    return cg_vector(g, v.type, v.lanes, part);
}

/* ---- folds ----------------------------------------------------------------------------------- */

struct cg_val fold_pair(struct cg *g, enum fold_kind f, struct cg_val x, struct cg_val y)
{
    switch (f) {
    case FOLD_SUM: return cg_binary(g, OP_ADD, x, y);
    case FOLD_MAX: return cg_minmax(g, true, x, y);
    case FOLD_MIN: return cg_minmax(g, false, x, y);
    case FOLD_AND: return cg_binary(g, OP_AND, x, y);
    case FOLD_OR: return cg_binary(g, OP_OR, x, y);
    default: return cg_binary(g, OP_XOR, x, y);
    }
}

static bool has_redux(const struct cg *g, enum dtype t)
{
    return g->target->sm >= 80 && (t == DT_I32 || t == DT_U32);
}

static struct cg_val redux(struct cg *g, enum fold_kind f, struct cg_val v, struct ptx_operand mask)
{
    static const char *const names[] = {"add", "max", "min", "and", "or", "xor"};
    char m[32];
    snprintf(m, sizeof m, "redux.sync.%s.%s", names[f], f >= FOLD_AND ? "b32" : cg_suffix(v.type));
    int32_t r = cg_new(g, v.type);
    PTX(&g->b, m, ptx_r(r), ptx_r(cg_reg(g, v)), mask);
    return cg_value(v.type, r);
}

struct cg_val block_threads(struct cg *g)
{
    const struct cg_val y = cg_special(g, SP_NTID_Y), x = cg_special(g, SP_NTID_X);
    const struct cg_val n = cg_binary(g, OP_MUL, x, y);
    return cg_binary(g, OP_MUL, n, cg_special(g, SP_NTID_Z));
}

struct lanes warp_lanes(struct cg *g)
{
    int64_t known;
    struct cg_val n = block_threads(g);
    struct lanes of = {true, cg_int(DT_U32, LANES), ptx_imm(UINT32_MAX)};
    if (g->spec->whole_rows || (cg_is_const(n, &known) && known % LANES == 0))
        return of;
    of.all = false;
    if (cg_is_const(n, &known) && known < LANES) {
        of.count = n;
    } else {
        struct cg_val first = cg_binary(g, OP_SHL, cg_special(g, SP_WARPID), cg_int(DT_U32, 5));
        of.count = cg_minmax(g, false, cg_binary(g, OP_SUB, n, first), of.count);
    }
    /* 1 << 32 is 0 in PTX */
    struct cg_val bits = cg_binary(g, OP_SHL, cg_int(DT_U32, 1), of.count);
    of.mask = cg_op(g, cg_binary(g, OP_SUB, bits, cg_int(DT_U32, 1)));
    return of;
}

/* Pairs of lanes that differ in one bit, from the highest on: both get the same, as every fold
 * commutes. */
static struct cg_val butterfly(struct cg *g, enum fold_kind f, struct cg_val v, unsigned from,
                               struct ptx_operand mask)
{
    for (unsigned s = from; s; s /= 2)
        v = fold_pair(g, f, v,
                      shuffle(g, SHUFFLE_XOR, v, ptx_imm(s), ptx_imm(LANES - 1), mask, NULL));
    return v;
}

struct cg_val warp_fold(struct cg *g, enum fold_kind f, struct cg_val v, const struct lanes *of)
{
    if (has_redux(g, v.type))
        return redux(g, f, v, of->mask);
    if (of->all)
        return butterfly(g, f, v, LANES / 2, of->mask);
    /* lane 0 has it in the end, and tells the others */
    struct cg_val lane = cg_special(g, SP_LANEID);
    for (unsigned s = LANES / 2; s; s /= 2) {
        struct cg_val other =
            shuffle(g, SHUFFLE_DOWN, v, ptx_imm(s), ptx_imm(LANES - 1), of->mask, NULL);
        struct cg_val partner = cg_binary(g, OP_ADD, lane, cg_int(DT_U32, s));
        int32_t exists = cg_reg(g, cg_binary(g, OP_LT, partner, of->count));
        v = cg_select(g, exists, fold_pair(g, f, v, other), v);
    }
    return shuffle(g, SHUFFLE_IDX, v, ptx_imm(0), ptx_imm(LANES - 1), of->mask, NULL);
}

/* The inclusive sum: after the step s each lane has the sum over 2s lanes up to itself. */
static struct cg_val scan(struct cg *g, struct cg_val v, const struct lanes *of)
{
    for (unsigned s = 1; s < LANES; s *= 2) {
        int32_t exists;
        struct cg_val before = shuffle(g, SHUFFLE_UP, v, ptx_imm(s), ptx_imm(0), of->mask, &exists);
        v = cg_select(g, exists, fold_pair(g, FOLD_SUM, v, before), v);
    }
    return v;
}

struct cg_val warp_reduction(struct cg *g, const struct lang_expr *e)
{
    struct cg_val v = cg_expr(g, e->args[0]);
    struct lanes of = warp_lanes(g);
    switch (e->fn) {
    case FN_WARP_SCAN: return scan(g, v, &of);
    case FN_WARP_MAX: return warp_fold(g, FOLD_MAX, v, &of);
    case FN_WARP_MIN: return warp_fold(g, FOLD_MIN, v, &of);
    default: return warp_fold(g, FOLD_SUM, v, &of);
    }
}

/* ---- __reduce_add_sync() and its like -------------------------------------------------------- */

static struct cg_val identity(enum fold_kind f, enum dtype t)
{
    switch (f) {
    case FOLD_AND: return cg_int(t, -1);
    case FOLD_MAX: return cg_int(t, dtype_imin(t));
    case FOLD_MIN: return cg_int(t, (int64_t)dtype_imax(t));
    default: return cg_int(t, 0);
    }
}

/* Over the lanes of any mask, from the lowest to the highest: a loop that its lanes go through
 * together. */
static struct cg_val fold_lanes(struct cg *g, enum fold_kind f, struct cg_val v, struct cg_val mask)
{
    int32_t sum = cg_new_mutable(g, v.type), left = cg_new_mutable(g, DT_U32);
    struct ptx_operand members = cg_op(g, cg_freeze(g, mask));
    v = cg_freeze(g, cg_value(v.type, cg_reg(g, v)));
    cg_move(g, sum, identity(f, v.type));
    cg_move(g, left, mask);
    uint32_t head = cg_label(g, "lane");
    cg_place(g, head);
    cg_loop_head(g);
    size_t mark = cg_scope_open(g);
    int32_t reversed = CG(g, PTX_B32, "brev.b32", ptx_r(left));
    int32_t lane = CG(g, PTX_B32, "clz.b32", ptx_r(reversed));
    struct cg_val x = shuffle(g, SHUFFLE_IDX, v, ptx_r(lane), ptx_imm(LANES - 1), members, NULL);
    cg_move(g, sum, fold_pair(g, f, cg_value(v.type, sum), x));
    struct cg_val rest = cg_binary(g, OP_SUB, cg_value(DT_U32, left), cg_int(DT_U32, 1));
    cg_move(g, left, cg_binary(g, OP_AND, cg_value(DT_U32, left), rest));
    int32_t more = CG(g, PTX_PRED, "setp.ne.u32", ptx_r(left), ptx_imm(0));
    cg_jump_if(g, more, true, head);
    cg_scope_close(g, mark);
    return cg_value(v.type, sum);
}

struct cg_val warp_reduce_sync(struct cg *g, const struct lang_expr *e)
{
    static const enum fold_kind folds[] = {FOLD_SUM, FOLD_MIN, FOLD_MAX,
                                           FOLD_AND, FOLD_OR,  FOLD_XOR};
    enum fold_kind f = folds[e->fn - FN_REDUCE_ADD];
    struct cg_val mask = cg_expr(g, e->args[0]), v = cg_expr(g, e->args[1]);
    int64_t lanes;
    if (has_redux(g, v.type))
        return redux(g, f, v, cg_op(g, mask));
    if (cg_is_const(mask, &lanes) && (uint32_t)lanes == UINT32_MAX && warp_lanes(g).all)
        return butterfly(g, f, v, LANES / 2, cg_op(g, mask));
    return fold_lanes(g, f, v, mask);
}
