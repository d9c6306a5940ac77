#include <config.h>

#include "lang/uniform.h"

enum { WARP_SHIFT = 5 };

/* ---- values ---------------------------------------------------------------------------------- */

struct value value_join(struct value x, struct value y)
{
    struct value r = x.level >= y.level ? x : y;
    r.align = x.align < y.align ? x.align : y.align;
    r.terms = x.terms == y.terms ? x.terms : 0;
    r.unit = x.unit == y.unit ? x.unit : 0;
    return r;
}

struct value value_under(struct value v, struct cause c)
{
    if (c.level == IN_THREAD)
        v.terms = 0;
    if (c.level > v.level) {
        v.level = c.level;
        v.from = c.from;
        v.unit = 0;
    }
    return v;
}

static struct value plain(struct value v)
{
    v.align = v.terms = v.unit = 0;
    return v;
}

static uint8_t align_of(uint64_t v)
{
    unsigned n = v ? (unsigned)__builtin_ctzll(v) : WARP_SHIFT;
    return (uint8_t)(n < WARP_SHIFT ? n : WARP_SHIFT);
}

static struct value differs(struct uniform *u, enum level level, struct span at, const char *what)
{
    struct origin *from = ARENA_NEW(u->a, struct origin);
    *from = (struct origin){at, what};
    return (struct value){.level = (uint8_t)level, .from = from};
}

/* ---- thread numbers -------------------------------------------------------------------------- */

static bool is_multiple_of_warp(uint32_t n)
{
    return n > 0 && n % 32 == 0;
}

/* Does a row of the block, or a plane of it, consist of whole warps? */
static bool has_whole_rows(const struct uniform *u)
{
    return u->opt->whole_rows || is_multiple_of_warp(u->opt->block[0]);
}

static bool has_whole_planes(const struct uniform *u)
{
    return has_whole_rows(u) || is_multiple_of_warp(u->opt->block[0] * u->opt->block[1]);
}

/* Is the value the lane's number plus something that is the same in the warp? */
static bool is_lane(const struct uniform *u, struct value v)
{
    const uint32_t *block = u->opt->block;
    unsigned flat = TERM_X; /* the terms of the thread's number in its block, but for whole warps */
    if (!has_whole_rows(u) && block[1] != 1)
        flat |= TERM_Y_BX;
    if (!has_whole_planes(u) && block[2] != 1)
        flat |= TERM_Z_BXY;
    return v.terms == TERM_LANE || (v.terms && v.terms == flat);
}

/* The same, and the rest is a multiple of 32: dividing by 32 leaves what is the same in the
 * warp. */
static bool is_aligned_lane(const struct uniform *u, struct value v)
{
    return is_lane(u, v) && v.align == WARP_SHIFT;
}

static struct value thread_number(struct uniform *u, const struct lang_expr *e)
{
    const uint32_t *block = u->opt->block;
    unsigned axis = e->special - SP_TID_X;
    static const uint8_t terms[] = {TERM_X, TERM_Y, TERM_Z};
    if (block[axis] == 1)
        return (struct value){.align = WARP_SHIFT};
    struct value v = differs(u, IN_THREAD, e->span, lang_special_name(e->special));
    if ((axis > 0 && has_whole_rows(u)) || (axis > 1 && has_whole_planes(u))) {
        v.level = IN_WARP;
        return v;
    }
    v.terms = terms[axis];
    v.align = WARP_SHIFT;
    return v;
}

static struct value block_extent(const struct uniform *u, enum lang_special sp)
{
    unsigned axis = sp - SP_NTID_X;
    struct value v = {.align = 0};
    if (u->opt->block[axis])
        v.align = align_of(u->opt->block[axis]);
    else if (axis == 0 && u->opt->whole_rows)
        v.align = WARP_SHIFT;
    v.unit = sp == SP_NTID_X ? UNIT_BX : sp == SP_NTID_Y ? UNIT_BY : 0;
    return v;
}

static struct value special_value(struct uniform *u, const struct lang_expr *e)
{
    const char *what = lang_special_name(e->special);
    switch (e->special) {
    case SP_TID_X:
    case SP_TID_Y:
    case SP_TID_Z: return thread_number(u, e);
    case SP_NTID_X:
    case SP_NTID_Y:
    case SP_NTID_Z: return block_extent(u, e->special);
    case SP_CTAID_X:
    case SP_CTAID_Y:
    case SP_CTAID_Z: return differs(u, IN_BLOCK, e->span, what);
    case SP_LANEID: {
        struct value v = differs(u, IN_THREAD, e->span, what);
        v.terms = TERM_LANE;
        v.align = WARP_SHIFT;
        return v;
    }
    case SP_WARPID: return differs(u, IN_WARP, e->span, what);
    case SP_CLUSTERID_X:
    case SP_CLUSTERID_Y:
    case SP_CLUSTERID_Z: return differs(u, IN_CLUSTER, e->span, what);
    default: return (struct value){0};
    }
}

/* ---- operators ------------------------------------------------------------------------------- */

static bool is_linear(struct value v)
{
    return v.level <= IN_WARP || v.terms;
}

static struct value sum(struct value x, struct value y, bool minus)
{
    struct value r = value_join(x, y);
    r.unit = 0;
    r.terms = is_linear(x) && is_linear(y) && !(x.terms & y.terms) && !(minus && y.terms)
                  ? x.terms | y.terms
                  : 0;
    return r;
}

/* The terms of a product with blockDim.x and the like. */
static uint8_t scaled(uint8_t terms, uint8_t unit)
{
    unsigned from = terms, to = 0;
    static const struct {
        uint8_t term, unit, result;
    } rules[] = {{TERM_Y, UNIT_BX, TERM_Y_BX},     {TERM_Z, UNIT_BY, TERM_Z_BY},
                 {TERM_Z, UNIT_BX, TERM_Z_BX},     {TERM_Z, UNIT_BX | UNIT_BY, TERM_Z_BXY},
                 {TERM_Z_BY, UNIT_BX, TERM_Z_BXY}, {TERM_Z_BX, UNIT_BY, TERM_Z_BXY}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if ((from & rules[i].term) && rules[i].unit == unit) {
            from &= ~(unsigned)rules[i].term;
            to |= rules[i].result;
        }
    return from ? 0 : (uint8_t)to;
}

/* A constant that equals blockDim.x is as good as it. */
static uint8_t unit_of(const struct uniform *u, const struct lang_expr *e, struct value v)
{
    int64_t n;
    if (v.unit || !lang_const_int(e, &n) || n < 2)
        return v.unit;
    return n == u->opt->block[0] ? UNIT_BX : n == u->opt->block[1] ? UNIT_BY : 0;
}

static struct value product(const struct uniform *u, const struct lang_expr *e, struct value x,
                            struct value y)
{
    struct value r = value_join(x, y);
    unsigned align = x.align + y.align;
    uint8_t ux = unit_of(u, e->args[0], x), uy = unit_of(u, e->args[1], y);
    r.align = (uint8_t)(align < WARP_SHIFT ? align : WARP_SHIFT);
    r.terms = x.terms ? scaled(x.terms, uy) : y.terms ? scaled(y.terms, ux) : 0;
    r.unit = (ux == UNIT_BX && uy == UNIT_BY) || (ux == UNIT_BY && uy == UNIT_BX)
                 ? UNIT_BX | UNIT_BY
                 : 0;
    return r;
}

static struct value in_warp(struct value v)
{
    v = plain(v);
    v.level = IN_WARP;
    return v;
}

/* t / 32, t >> 5, t & ~31. */
static struct value by_constant(const struct uniform *u, const struct lang_expr *e, struct value x,
                                struct value y)
{
    int64_t n;
    struct value r = plain(value_join(x, y));
    if (!lang_const_int(e->args[1], &n))
        return r;
    if (e->op == OP_SHL) {
        unsigned align = x.align + (n >= 0 && n < 64 ? (unsigned)n : 0);
        r.align = (uint8_t)(align < WARP_SHIFT ? align : WARP_SHIFT);
    }
    bool whole = (e->op == OP_DIV && n > 0 && n % 32 == 0) ||
                 (e->op == OP_SHR && n >= WARP_SHIFT) || (e->op == OP_AND && n % 32 == 0);
    return whole && is_aligned_lane(u, x) ? in_warp(x) : r;
}

/* t < 64 and its like: no warp lies on both sides. */
static struct value comparison(const struct uniform *u, const struct lang_expr *e, struct value x,
                               struct value y)
{
    struct value r = plain(value_join(x, y));
    bool swap = is_aligned_lane(u, y) && y.level == IN_THREAD;
    struct value t = swap ? y : x, bound = swap ? x : y;
    const struct lang_expr *at = e->args[swap ? 0 : 1];
    int64_t n;
    bool below = e->op == (swap ? OP_GT : OP_LT) || e->op == (swap ? OP_LE : OP_GE);
    bool upto = e->op == (swap ? OP_GE : OP_LE) || e->op == (swap ? OP_LT : OP_GT);
    if (!is_aligned_lane(u, t) || bound.level > IN_WARP)
        return r;
    if (below && bound.align == WARP_SHIFT)
        return in_warp(t);
    return upto && lang_const_int(at, &n) && (n + 1) % 32 == 0 ? in_warp(t) : r;
}

static struct value binary(struct uniform *u, struct place *s, struct cause around,
                           const struct lang_expr *e)
{
    struct value x = value_of(u, s, around, e->args[0]);
    if (e->op == OP_LAND || e->op == OP_LOR) {
        struct cause c = worse(around, cause_of(u, s, e->args[0], x, AT_CONDITION));
        return plain(value_join(x, value_of(u, s, c, e->args[1])));
    }
    struct value y = value_of(u, s, around, e->args[1]);
    switch (e->op) {
    case OP_ADD:
    case OP_SUB: return sum(x, y, e->op == OP_SUB);
    case OP_MUL: return product(u, e, x, y);
    case OP_DIV:
    case OP_SHR:
    case OP_SHL:
    case OP_AND: return by_constant(u, e, x, y);
    case OP_LT:
    case OP_GT:
    case OP_LE:
    case OP_GE: return comparison(u, e, x, y);
    default: return plain(value_join(x, y));
    }
}

static struct value conditional(struct uniform *u, struct place *s, struct cause around,
                                const struct lang_expr *e)
{
    struct value c = value_of(u, s, around, e->args[0]);
    struct cause cause = cause_of(u, s, e->args[0], c, AT_CONDITION);
    struct cause inner = worse(around, cause);
    struct value x = value_of(u, s, inner, e->args[1]);
    return value_under(value_join(x, value_of(u, s, inner, e->args[2])), cause);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct value load_value(struct uniform *u, struct place *s, struct cause around,
                               const struct lang_expr *e)
{
    struct value v = {0};
    const struct lang_symbol *sym = e->sym;
    for (uint32_t i = 0; i < e->nargs; i++)
        v = value_join(v, value_of(u, s, around, e->args[i]));
    v = plain(v);
    if (sym->kind == SYM_LOCAL)
        return sym->table ? v : value_join(v, s->v[slot_of(u, sym)]);
    bool fixed = sym->kind == SYM_BUFFER && sym->mode == MODE_IN;
    if (!fixed && v.level < IN_BLOCK)
        v = differs(u, IN_BLOCK, e->span, arena_printf(u->a, "'%s'", sym->name));
    return v;
}

static struct value name_value(struct uniform *u, struct place *s, struct cause around,
                               const struct lang_expr *e)
{
    const struct lang_symbol *sym = e->sym;
    if (sym->kind == SYM_LOCAL && !sym->table)
        return s->v[slot_of(u, sym)];
    if (sym->kind == SYM_DIM || sym->kind == SYM_LOCAL)
        return (struct value){.align = sym->has_value ? align_of(sym->value) : 0};
    return sym->kind == SYM_SCALAR ? (struct value){0} : load_value(u, s, around, e);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool has_full_warps(const struct uniform *u)
{
    const uint32_t *block = u->opt->block;
    return has_whole_rows(u) || is_multiple_of_warp(block[0] * block[1] * block[2]);
}

/* A warp's call names its lanes: all of them must come, or those of a mask that is computed or
 * partial, which is the writer's business, as long as there are others that do not come. */
static void demand_lanes(struct uniform *u, struct place *s, struct cause around,
                         const struct lang_expr *e)
{
    int64_t lanes;
    if (e->nargs == 0) {
        demand(u, s, around, e, IN_WARP, false);
        return;
    }
    if (!lang_const_int(e->args[0], &lanes))
        return;
    if ((uint32_t)lanes == UINT32_MAX)
        demand(u, s, around, e, IN_WARP, true);
    else if (has_full_warps(u))
        demand_mask(u, s, around, e);
}

static const char *call_text(struct uniform *u, const struct lang_expr *e)
{
    return arena_printf(u->a, "%s()", e->name);
}

/* The result of a call that acts, v being its arguments joined. */
static struct value acting_value(struct uniform *u, const struct lang_expr *e,
                                 const struct value *arg, struct value v)
{
    enum level level = IN_THREAD;
    switch (e->fn) {
    case FN_SYNCTHREADS_COUNT:
    case FN_SYNCTHREADS_AND:
    case FN_SYNCTHREADS_OR:
    case FN_BLOCK_SUM:
    case FN_BLOCK_MAX:
    case FN_BLOCK_MIN:
        if (v.level < IN_BLOCK)
            return plain(v);
        level = IN_BLOCK;
        break;
    case FN_SHFL: /* of one lane */
        level = e->nargs == 3 && arg[2].level <= IN_WARP ? IN_WARP : IN_THREAD;
        break;
    case FN_ANY:
    case FN_ALL:
        if (v.level <= IN_BLOCK)
            return plain(v);
        level = IN_WARP;
        break;
    case FN_BALLOT:
    case FN_MATCH_ALL:
    case FN_REDUCE_ADD:
    case FN_REDUCE_MIN:
    case FN_REDUCE_MAX:
    case FN_REDUCE_AND:
    case FN_REDUCE_OR:
    case FN_REDUCE_XOR: level = arg[0].level <= IN_WARP ? IN_WARP : IN_THREAD; break;
    case FN_WARP_SUM:
    case FN_WARP_MAX:
    case FN_WARP_MIN: level = IN_WARP; break;
    case FN_SMID:
    case FN_CLUSTER_RANK: level = IN_BLOCK; break;
    case FN_CLUSTER_SIZE: return (struct value){0};
    default: break;
    }
    return differs(u, level, e->span, call_text(u, e));
}

static void demand_call(struct uniform *u, struct place *s, struct cause around,
                        const struct lang_expr *e)
{
    switch (e->fn) {
    case FN_SYNCTHREADS:
    case FN_SYNCTHREADS_COUNT:
    case FN_SYNCTHREADS_AND:
    case FN_SYNCTHREADS_OR:
    case FN_BLOCK_SUM:
    case FN_BLOCK_MAX:
    case FN_BLOCK_MIN: demand(u, s, around, e, IN_BLOCK, false); break;
    case FN_BARRIER_SYNC:
    case FN_BARRIER_ARRIVE:
        demand(u, s, around, e, e->nargs > 1 ? IN_WARP : IN_BLOCK, false);
        break;
    case FN_CLUSTER_SYNC:
    case FN_CLUSTER_ARRIVE:
    case FN_CLUSTER_WAIT: demand(u, s, around, e, IN_CLUSTER, false); break;
    case FN_WARP_SUM:
    case FN_WARP_MAX:
    case FN_WARP_MIN:
    case FN_WARP_SCAN: demand(u, s, around, e, IN_WARP, false); break;
    case FN_SYNCWARP:
    case FN_SHFL:
    case FN_SHFL_UP:
    case FN_SHFL_DOWN:
    case FN_SHFL_XOR:
    case FN_BALLOT:
    case FN_ANY:
    case FN_ALL:
    case FN_MATCH_ANY:
    case FN_MATCH_ALL:
    case FN_REDUCE_ADD:
    case FN_REDUCE_MIN:
    case FN_REDUCE_MAX:
    case FN_REDUCE_AND:
    case FN_REDUCE_OR:
    case FN_REDUCE_XOR: demand_lanes(u, s, around, e); break;
    default: break;
    }
}

static struct value call_value(struct uniform *u, struct place *s, struct cause around,
                               const struct lang_expr *e)
{
    struct value v = {0}, arg[4] = {{0}};
    if (e->func)
        return value_of_function(u, s, around, e);
    for (uint32_t i = 0; i < e->nargs; i++) {
        struct value x = value_of(u, s, around, e->args[i]);
        v = value_join(v, x);
        if (i < 4)
            arg[i] = x;
    }
    v = plain(v);
    if (!lang_builtin_acts(e->fn))
        return v;
    demand_call(u, s, around, e);
    return e->type == DT_VOID ? (struct value){0} : acting_value(u, e, arg, v);
}

/* ---- all ------------------------------------------------------------------------------------- */

struct value value_of(struct uniform *u, struct place *s, struct cause around,
                      const struct lang_expr *e)
{
    struct value v = {0};
    u->steps++;
    switch (e->kind) {
    case E_INT: return (struct value){.align = align_of(e->ival)};
    case E_NAME: return name_value(u, s, around, e);
    case E_SPECIAL: return special_value(u, e);
    case E_INDEX: return load_value(u, s, around, e);
    case E_BINARY: return binary(u, s, around, e);
    case E_COND: return conditional(u, s, around, e);
    case E_CALL: return call_value(u, s, around, e);
    case E_CAST:
        v = value_of(u, s, around, e->args[0]);
        return dtype_is_int(e->type) && dtype_bits(e->type) >= 32 ? v : plain(v);
    default:
        for (uint32_t i = 0; i < e->nargs; i++)
            v = value_join(v, value_of(u, s, around, e->args[i]));
        return plain(v);
    }
}
