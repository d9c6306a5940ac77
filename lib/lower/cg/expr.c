#include <config.h>

#include "lower/cg/cg.h"

#include "base/internal.h"

#include <math.h>
#include <stdio.h>

enum { MOST_ITEMS = 200000, MOST_DEPTH = 200, MOST_RANK = 8 };

/* Inlining intermediates can multiply: stop before it becomes a matter of memory. */
static bool too_much(struct cg *g, struct span s)
{
    if (g->func->items.n < MOST_ITEMS && g->depth < MOST_DEPTH)
        return false;
    if (!g->failed)
        cg_error(g, s,
                 "'%s' expands to too many instructions: write intermediate results to an "
                 "output and read them in a second kernel",
                 g->spec->name);
    return true;
}

static struct cg_val nothing(enum dtype t)
{
    if (t == DT_F32 || t == DT_F64)
        return (struct cg_val){.type = t, .op = t == DT_F32 ? ptx_immf32(0) : ptx_immf64(0)};
    return cg_int(t < DT_COUNT ? t : DT_U32, 0);
}

/* ---- names ----------------------------------------------------------------------------------- */

static struct cg_val dim_value(struct cg *g, const struct lang_expr *e)
{
    if (e->sym->has_value)
        return cg_int(e->type, (int64_t)e->sym->value);
    return cg_convert(g, cg_param_of(g, e->sym), e->type);
}

static struct cg_val read_tensor(struct cg *g, const struct lang_expr *e);

static struct cg_val name_value(struct cg *g, const struct lang_expr *e)
{
    switch (e->sym->kind) {
    case SYM_DIM: return dim_value(g, e);
    case SYM_SCALAR: return cg_param_of(g, e->sym);
    case SYM_INDEX:
    case SYM_LOCAL: {
        const struct cg_binding *b = cg_find(g, e->sym);
        if (!b && e->sym->has_value) /* a constant in front of the functions */
            return cg_int(e->type, (int64_t)e->sym->value);
        if (!b)
            INTERNAL_ERROR("the checker let '%s' pass, which nothing binds", e->sym->name);
        return b->val;
    }
    case SYM_SHARED: return cg_vector_expr(g, e);
    default: return read_tensor(g, e);
    }
}

/* ---- tensors --------------------------------------------------------------------------------- */

const struct lang_expr *cg_view(const struct cg *g, const struct lang_expr *e)
{
    /* what stands for a reduction may be one for which another stands, since later */
    for (size_t i = 0; e->kind == E_REDUCE && i < g->outlined.n; i++)
        if (g->outlined.v[i].reduce == e)
            e = g->outlined.v[i].read;
    return e;
}

bool cg_is_defined(const struct cg *g, const struct lang_symbol *sym)
{
    const struct cg_home *home = cg_home_of(g, sym);
    if (home && home->is_stored)
        return false;
    /* an inout is read as it was before the launch */
    return sym->kind == SYM_TENSOR ||
           (sym->kind == SYM_BUFFER && sym->mode == MODE_OUT && sym->def);
}

static struct lang_expr *with_subscripts(struct cg *g, struct lang_expr *e,
                                         const struct lang_equation *eq, struct lang_expr **args)
{
    for (uint32_t i = 0; i < eq->nindex; i++)
        if (e->kind == E_NAME && e->sym == eq->index[i])
            return args[i];
    struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
    *c = *e;
    c->args = ARENA_ARRAY(g->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++)
        c->args[i] = with_subscripts(g, e->args[i], eq, args);
    c->pad = e->pad ? with_subscripts(g, e->pad, eq, args) : NULL;
    return c;
}

const struct lang_expr *cg_written_out(struct cg *g, const struct lang_expr *e)
{
    e = inspect_strip(e);
    if (e->kind != E_INDEX || e->pad || !cg_is_defined(g, e->sym) ||
        e->sym->type != e->sym->def->rhs->type || inspect_reduction(g, e->sym->def->rhs))
        return e;
    return inspect_strip(with_subscripts(g, e->sym->def->rhs, e->sym->def, e->args));
}

struct cg_val cg_define(struct cg *g, const struct lang_equation *eq,
                        const struct cg_val *subscript)
{
    if (too_much(g, eq->span) || g->failed)
        return nothing(eq->sym->type);
    static const char what[] = "definition";
    struct ptx_operand key[CG_KEY_MAX];
    const uint32_t nkey = eq->nindex + 1;
    const bool memo = nkey < CG_KEY_MAX;
    /* not its name: reductions without one are called after what they compute */
    key[0] = ptx_imm((int64_t)(uintptr_t)eq->sym);
    for (uint32_t i = 1; memo && i < nkey; i++)
        key[i] = subscript[i - 1].op;
    const int32_t known = memo ? cg_recall_read(g, what, nkey, key) : -1;
    if (known >= 0)
        return cg_value(eq->sym->type, known);

    size_t bound = g->bindings.n;
    for (uint32_t i = 0; i < eq->nindex; i++)
        cg_bind(g, eq->index[i], subscript[i], false);
    g->depth++;
    struct cg_val v = cg_convert(g, cg_expr(g, eq->rhs), eq->sym->type);
    g->depth--;
    g->bindings.n = bound;
    if (!memo || v.op.kind != PTX_O_REG)
        return v;
    v = cg_value(v.type, cg_reg(g, v));
    cg_remember_read(g, what, nkey, key, v.op.reg);
    return v;
}

struct cg_guard cg_guard(struct cg *g, struct cg_val p, bool varies)
{
    const struct cg_guard before = {g->guard, g->guard_varies};
    int64_t c;
    if (cg_is_const(p, &c) && c)
        return before;
    if (g->guard >= 0)
        p = cg_binary(g, OP_LAND, cg_value(DT_BOOL, g->guard), p);
    g->guard = cg_reg(g, p);
    g->guard_varies |= varies;
    return before;
}

void cg_unguard(struct cg *g, struct cg_guard before)
{
    g->guard = before.pred;
    g->guard_varies = before.varies;
}

static const struct lang_expr *end_of(const struct lang_expr *e);

static const struct lang_expr *end_of_quotient(const struct lang_expr *e)
{
    const struct lang_expr *all = end_of(e->args[0]);
    all = all ? inspect_strip(all) : NULL;
    return all && all->kind == E_BINARY && all->op == OP_MUL &&
                   inspect_same_expr(all->args[1], e->args[1])
               ? all->args[0]
               : NULL;
}

/* An index, or quotients and rests of one: where its values end, which begin at 0. */
static const struct lang_expr *end_of(const struct lang_expr *e)
{
    e = inspect_strip(e);
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX && !e->sym->low)
        return e->sym->dims[0];
    if (e->kind != E_BINARY || (e->op != OP_DIV && e->op != OP_MOD))
        return NULL;
    if (e->op == OP_DIV)
        return end_of_quotient(e);
    return end_of(e->args[0]) ? e->args[1] : NULL;
}

/* The same where all numbers are known: 0 where they are not. */
static int64_t known_end_of(const struct lang_expr *e)
{
    int64_t n, by;
    e = inspect_strip(e);
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX && !e->sym->low)
        return lang_const_int(e->sym->dims[0], &n) && n > 0 ? n : 0;
    if (e->kind != E_BINARY || (e->op != OP_DIV && e->op != OP_MOD) ||
        !lang_const_int(e->args[1], &by) || by < 1)
        return 0;
    n = known_end_of(e->args[0]);
    return n == 0 ? 0 : e->op == OP_DIV ? (n - 1) / by + 1 : n < by ? n : by;
}

/* Between what the values of an expression of indices lie, both ends included. False: that is not
 * known. */
static bool known_range(const struct lang_expr *e, int64_t *low, int64_t *high)
{
    int64_t a, b, c, d;
    e = inspect_strip(e);
    if (lang_const_int(e, low)) {
        *high = *low;
        return true;
    }
    if (e->kind == E_NAME) {
        *low = 0;
        *high = known_end_of(e) - 1;
        return *high >= 0;
    }
    if (e->kind != E_BINARY || !known_range(e->args[0], &a, &b) || !known_range(e->args[1], &c, &d))
        return false;
    switch (e->op) {
    case OP_ADD: return !__builtin_add_overflow(a, c, low) && !__builtin_add_overflow(b, d, high);
    case OP_SUB: return !__builtin_sub_overflow(a, d, low) && !__builtin_sub_overflow(b, c, high);
    case OP_MUL:
        return a >= 0 && c >= 0 && !__builtin_mul_overflow(a, c, low) &&
               !__builtin_mul_overflow(b, d, high);
    case OP_DIV:
        *low = c > 0 ? a / d : 0;
        *high = c > 0 ? b / c : 0;
        return a >= 0 && c > 0;
    case OP_MOD:
        *low = 0;
        *high = d - 1;
        return a >= 0 && c > 0;
    default: return false;
    }
}

/* x, the value of e, as one of 32 bits where it is known to be that: what divides it is then a few
 * instructions, not twenty. Of threads that compute nothing an index may be somewhat larger. */
static struct cg_val narrowed(struct cg *g, const struct lang_expr *e, struct cg_val x)
{
    enum { MOST_HEIGHT = 24 }; /* each of nested divisions asks for all below it */
    int64_t low, high;
    if (x.type != DT_I64 || x.narrow != CG_FULL || x.op.kind != PTX_O_REG ||
        e->height > MOST_HEIGHT || !known_range(e, &low, &high) || low < 0 || high > INT32_MAX / 2)
        return x;
    x = cg_value(DT_I64, CG(g, PTX_B32, "cvt.u32.u64", x.op));
    x.narrow = CG_U32;
    return x;
}

bool cg_in_range(const struct lang_expr *sub, const struct lang_expr *dim)
{
    sub = inspect_strip(sub);
    return sub->kind == E_NAME && sub->sym->kind == SYM_INDEX && !sub->sym->low &&
           inspect_same_expr(sub->sym->dims[0], dim);
}

bool cg_stays_inside(const struct lang_expr *sub, const struct lang_expr *dim)
{
    int64_t n;
    const struct lang_expr *end = end_of(sub);
    if (end && inspect_same_expr(end, dim))
        return true;
    const int64_t known = known_end_of(sub);
    return inspect_strip(sub)->kind == E_BINARY && known && lang_const_int(dim, &n) && known <= n;
}

struct cg_val cg_inside(struct cg *g, struct cg_val subscript, struct cg_val extent)
{
    /* a negative subscript is a huge unsigned one */
    struct cg_val s = cg_convert(g, cg_index(g, subscript), DT_U64);
    return cg_binary(g, OP_LT, s, cg_convert(g, extent, DT_U64));
}

/* The predicate that all subscripts are inside, or a constant. */
static struct cg_val inside(struct cg *g, const struct lang_expr *e, const struct cg_val *sub)
{
    struct cg_val ok = cg_bool(g, true);
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (!cg_stays_inside(e->args[i], e->sym->dims[i]))
            ok = cg_binary(g, OP_LAND, ok, cg_inside(g, sub[i], cg_extent(g, e->sym, i)));
    }
    return ok;
}

static struct cg_val padded_definition(struct cg *g, const struct lang_expr *e, struct cg_val ok,
                                       const struct cg_val *sub)
{
    int32_t r = cg_new_mutable(g, e->type);
    uint32_t end = cg_label(g, "pad");
    struct cg_since since = cg_now(g);
    cg_move_new(g, r, cg_expr(g, e->pad), since);
    cg_jump_if(g, cg_reg(g, ok), false, end);
    size_t mark = cg_scope_open(g);
    since = cg_now(g);
    cg_move_new(g, r, cg_define(g, e->sym->def, sub), since);
    cg_scope_close(g, mark);
    cg_place(g, end);
    return cg_value(e->type, r);
}

static struct cg_val read_tensor(struct cg *g, const struct lang_expr *e)
{
    struct cg_val v, sub[MOST_RANK];
    const struct lang_symbol *t = e->sym;
    if (g->read && g->read(g, e, &v))
        return v;
    for (uint32_t i = 0; i < e->nargs; i++)
        sub[i] = cg_expr(g, e->args[i]);
    bool defined = !g->in_body && cg_is_defined(g, t);
    if (defined)
        for (uint32_t i = 0; i < e->nargs; i++)
            sub[i] = cg_index(g, sub[i]);
    if (!e->pad)
        return defined ? cg_define(g, t->def, sub) : cg_load(g, t, cg_element(g, t, e->nargs, sub));
    struct cg_val ok = inside(g, e, sub);
    int64_t always;
    if (defined)
        return padded_definition(g, e, ok, sub);
    struct cg_place_of at = cg_element(g, t, e->nargs, sub);
    if (cg_is_const(ok, &always) && always)
        return cg_load(g, t, at);
    const struct cg_val pad = cg_convert(g, cg_expr(g, e->pad), t->type);
    return cg_load_if(g, t, at, cg_reg(g, ok), pad);
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* && and || whose right side must not be evaluated when the left one decides. */
static bool is_guarding(struct cg *g, const struct lang_expr *e)
{
    return e->kind == E_BINARY && lang_guards(e) && cg_reads(g, e->args[1]);
}

void cg_branch(struct cg *g, const struct lang_expr *e, bool sense, uint32_t label)
{
    if (e->kind == E_UNARY && e->op == OP_NOT) {
        cg_branch(g, e->args[0], !sense, label);
        return;
    }
    if (is_guarding(g, e)) {
        cg_promote_expr(g, e->args[1]);
        bool decides = e->op == OP_LOR; /* the left value that settles it */
        if (decides == sense) {
            cg_branch(g, e->args[0], sense, label);
            cg_branch(g, e->args[1], sense, label);
            return;
        }
        uint32_t skip = cg_label(g, "skip");
        size_t mark = cg_scope_open(g);
        cg_branch(g, e->args[0], decides, skip);
        const struct lang_expr *left = e->args[0];
        while (left->kind == E_UNARY && left->op == OP_NOT)
            left = left->args[0];
        if (!is_guarding(g, left)) /* evaluated whole on both ways */
            mark = cg_scope_open(g);
        cg_branch(g, e->args[1], sense, label);
        cg_scope_close(g, mark);
        cg_place(g, skip);
        return;
    }
    struct cg_val p = cg_expr(g, e);
    int64_t c;
    if (!cg_is_const(p, &c))
        cg_jump_if(g, cg_reg(g, p), sense, label);
    else if ((c != 0) == sense)
        cg_jump(g, label);
}

/* && and || whose right side must not run when the left one decides. */
static struct cg_val short_circuit(struct cg *g, const struct lang_expr *e)
{
    cg_promote_expr(g, e->args[1]);
    int32_t r = cg_new_mutable(g, DT_BOOL);
    uint32_t end = cg_label(g, "sc");
    struct cg_since since = cg_now(g);
    cg_move_new(g, r, cg_expr(g, e->args[0]), since);
    cg_jump_if(g, r, e->op == OP_LOR, end);
    size_t mark = cg_scope_open(g);
    since = cg_now(g);
    cg_move_new(g, r, cg_expr(g, e->args[1]), since);
    cg_scope_close(g, mark);
    cg_place(g, end);
    return cg_value(DT_BOOL, r);
}

/* Arm k where the condition asks for it, and else the other one, which takes no work. */
static void conditional_on(struct cg *g, const struct lang_expr *e, uint32_t k, int32_t r)
{
    uint32_t end = cg_label(g, "endif");
    cg_move(g, r, cg_expr(g, e->args[3 - k]));
    size_t mark = cg_scope_open(g);
    cg_branch(g, e->args[0], k == 2, end);
    struct cg_since since = cg_now(g);
    if (!g->dead)
        cg_move_new(g, r, cg_expr(g, e->args[k]), since);
    cg_scope_close(g, mark);
    cg_place(g, end);
}

/* An arm of a condition that has been made a selection. */
static struct cg_val arm(struct cg *g, const struct lang_expr *e, struct cg_val p, bool varies)
{
    if (!cg_reads(g, e))
        return cg_expr(g, e);
    const struct cg_guard before = cg_guard(g, p, varies);
    struct cg_val v = cg_expr(g, e);
    cg_unguard(g, before);
    return v;
}

static struct cg_val converted(struct cg *g, const struct lang_expr *e)
{
    const bool varies = g->is_uniform && !g->is_uniform(g, e->args[0]);
    struct cg_val p = cg_expr(g, e->args[0]);
    int64_t c;
    if (cg_is_const(p, &c))
        return cg_expr(g, e->args[c ? 1 : 2]);
    struct cg_val x = arm(g, e->args[1], p, varies);
    struct cg_val y = arm(g, e->args[2], cg_unary(g, OP_NOT, p), varies);
    return cg_select(g, cg_reg(g, p), x, y);
}

/* && and || of which the right side reads only where the left one does not decide. */
static struct cg_val converted_pair(struct cg *g, const struct lang_expr *e)
{
    const bool varies = g->is_uniform && !g->is_uniform(g, e->args[0]);
    struct cg_val p = cg_expr(g, e->args[0]);
    int64_t c;
    bool decides = e->op == OP_LOR;
    if (cg_is_const(p, &c))
        return (c != 0) == decides ? p : cg_expr(g, e->args[1]);
    struct cg_val q = arm(g, e->args[1], decides ? cg_unary(g, OP_NOT, p) : p, varies);
    return cg_binary(g, e->op, p, q);
}

static struct cg_val conditional(struct cg *g, const struct lang_expr *e)
{
    if (g->converts)
        return converted(g, e);
    if (g->preloaded || (!cg_reads(g, e->args[1]) && !cg_reads(g, e->args[2]))) {
        struct cg_val p = cg_expr(g, e->args[0]);
        int64_t c;
        if (cg_is_const(p, &c))
            return cg_expr(g, e->args[c ? 1 : 2]);
        struct cg_val x = cg_expr(g, e->args[1]);
        struct cg_val y = cg_expr(g, e->args[2]);
        return cg_select(g, cg_reg(g, p), x, y);
    }
    cg_promote_expr(g, e->args[1]);
    cg_promote_expr(g, e->args[2]);
    int32_t r = cg_new_mutable(g, e->type);
    for (uint32_t k = 1; k < 3; k++)
        if (inspect_is_leaf(e->args[3 - k])) {
            conditional_on(g, e, k, r);
            return cg_value(e->type, r);
        }
    uint32_t other = cg_label(g, "else"), end = cg_label(g, "endif");
    size_t mark = cg_scope_open(g);
    cg_branch(g, e->args[0], false, other);
    bool taken = !g->dead;
    struct cg_since since = cg_now(g);
    if (taken)
        cg_move_new(g, r, cg_expr(g, e->args[1]), since);
    cg_jump(g, end);
    cg_scope_close(g, mark);
    cg_place(g, other);
    since = cg_now(g);
    cg_move_new(g, r, cg_expr(g, e->args[2]), since);
    cg_scope_close(g, mark);
    cg_place(g, end);
    return cg_value(e->type, r);
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static bool is_product(const struct lang_expr *e, enum dtype t)
{
    return e->kind == E_BINARY && e->op == OP_MUL && e->type == t;
}

/* x * y + z and its like as one fma; the documented rule of lower.h. */
static bool contract(struct cg *g, const struct lang_expr *e, struct cg_val *r)
{
    bool sub = e->op == OP_SUB;
    if (!g->contract_fma || (e->op != OP_ADD && !sub) || (e->type != DT_F32 && e->type != DT_F64))
        return false;
    bool left = is_product(e->args[0], e->type);
    if (!left && !is_product(e->args[1], e->type))
        return false;
    const struct lang_expr *p = e->args[left ? 0 : 1];
    struct cg_val x, y, z;
    if (left) {
        x = cg_expr(g, p->args[0]);
        y = cg_expr(g, p->args[1]);
        z = cg_expr(g, e->args[1]);
        if (sub)
            z = cg_unary(g, OP_NEG, z);
    } else {
        z = cg_expr(g, e->args[0]);
        x = cg_expr(g, p->args[0]);
        y = cg_expr(g, p->args[1]);
        if (sub)
            x = cg_unary(g, OP_NEG, x);
    }
    *r = cg_fma(g, x, y, z);
    return true;
}

/* The condition that was made an integer for a comparison, or NULL. */
static const struct lang_expr *from_bool(const struct lang_expr *e)
{
    e = inspect_strip(e);
    return e->type == DT_BOOL && !e->lanes ? e : NULL;
}

static struct cg_val binary(struct cg *g, const struct lang_expr *e)
{
    struct cg_val r;
    if (!g->preloaded && is_guarding(g, e))
        return g->converts ? converted_pair(g, e) : short_circuit(g, e);
    if (contract(g, e, &r))
        return r;
    if (g->binary && g->binary(g, e, &r))
        return r;
    if ((e->op == OP_EQ || e->op == OP_NE) && from_bool(e->args[0]) && from_bool(e->args[1])) {
        struct cg_val p = cg_expr(g, from_bool(e->args[0]));
        return cg_binary(g, e->op, p, cg_expr(g, from_bool(e->args[1])));
    }
    struct cg_val x = cg_expr(g, e->args[0]);
    struct cg_val y = cg_expr(g, e->args[1]);
    if ((e->op == OP_DIV || e->op == OP_MOD) && y.op.kind == PTX_O_IMM)
        x = narrowed(g, e->args[0], x);
    if (e->op == OP_DIV && g->quotient && g->contract_fma && g->quotient(g, x, y, &r))
        return r;
    return cg_binary(g, e->op, x, y);
}

/* f32(x / y) is where x / y is rounded, and nothing else. */
static struct cg_val cast(struct cg *g, const struct lang_expr *e)
{
    const struct lang_expr *a = e->args[0];
    struct cg_val v;
    if (g->cast && g->cast(g, e, &v))
        return v;
    if (!g->quotient || e->is_implicit || a->kind != E_BINARY || a->op != OP_DIV ||
        a->type != e->type)
        return cg_convert(g, cg_expr(g, a), e->type);
    const struct cg_val x = cg_expr(g, a->args[0]);
    return cg_binary(g, OP_DIV, x, cg_expr(g, a->args[1]));
}

/* ---- reductions ------------------------------------------------------------------------------ */

struct cg_val cg_reduce_identity(struct cg *g, enum lang_reduce how, enum dtype t)
{
    bool f = dtype_is_float(t);
    switch (how) {
    case RED_SUM: return f ? cg_float(g, t, 0) : cg_int(t, 0);
    case RED_PROD: return f ? cg_float(g, t, 1) : cg_int(t, 1);
    case RED_MAX:
    case RED_ARGMAX: return f ? cg_float(g, t, -INFINITY) : cg_int(t, dtype_imin(t));
    case RED_MIN:
    case RED_ARGMIN: return f ? cg_float(g, t, INFINITY) : cg_int(t, (int64_t)dtype_imax(t));
    case RED_ANY: return cg_bool(g, false);
    case RED_ALL: return cg_bool(g, true);
    }
    INTERNAL_ERROR("no reduction %d has an identity", (int)how);
}

struct cg_val cg_reduce_meet(struct cg *g, enum lang_reduce how, struct cg_val x, struct cg_val y)
{
    switch (how) {
    case RED_SUM: return cg_binary(g, OP_ADD, x, y);
    case RED_PROD: return cg_binary(g, OP_MUL, x, y);
    case RED_MAX: return cg_minmax(g, true, x, y);
    case RED_MIN: return cg_minmax(g, false, x, y);
    case RED_ANY: return cg_binary(g, OP_OR, x, y);
    case RED_ALL: return cg_binary(g, OP_AND, x, y);
    default: INTERNAL_ERROR("reduction %d is not that of two values", (int)how);
    }
}

/* The first of equals stays; NaN compares false and is never taken. */
static void combine_best(struct cg *g, const struct lang_expr *e, struct cg_accumulator *acc,
                         struct cg_val v)
{
    struct cg_val best = cg_value(v.type, acc->value);
    struct cg_val here = cg_find(g, e->index[0])->val;
    int32_t better = cg_reg(g, cg_binary(g, e->reduce == RED_ARGMAX ? OP_GT : OP_LT, v, best));
    struct cg_val value = cg_select(g, better, v, best);
    struct cg_val where =
        cg_select(g, better, cg_value(DT_I64, cg_reg(g, here)), cg_value(DT_I64, acc->where));
    cg_move(g, acc->value, value);
    cg_move(g, acc->where, where);
}

static void accumulate(struct cg *g, int32_t acc, const char *name, struct cg_val v)
{
    char m[32];
    cg_dotted(m, name, cg_suffix(v.type));
    CG_ASSIGN(g, acc, m, ptx_r(acc), cg_op(g, v));
}

void cg_reduce_term(struct cg *g, const struct lang_expr *e, struct cg_accumulator *acc)
{
    const struct lang_expr *a = e->args[0];
    bool f = dtype_is_float(a->type);
    if (e->reduce == RED_SUM && f && is_product(a, e->type)) {
        struct cg_val x = cg_expr(g, a->args[0]), y = cg_expr(g, a->args[1]);
        CG_ASSIGN(g, acc->value, e->type == DT_F32 ? "fma.rn.f32" : "fma.rn.f64", x.op, y.op,
                  ptx_r(acc->value));
        return;
    }
    struct cg_val v = cg_expr(g, a);
    switch (e->reduce) {
    case RED_SUM: accumulate(g, acc->value, f ? "add.rn" : "add", v); break;
    case RED_PROD: accumulate(g, acc->value, f ? "mul.rn" : "mul.lo", v); break;
    case RED_MAX: accumulate(g, acc->value, "max", v); break;
    case RED_MIN: accumulate(g, acc->value, "min", v); break;
    case RED_ANY: accumulate(g, acc->value, "or", v); break;
    case RED_ALL: accumulate(g, acc->value, "and", v); break;
    case RED_ARGMAX:
    case RED_ARGMIN: combine_best(g, e, acc, v); break;
    }
}

static void reduce_loops(struct cg *g, const struct lang_expr *e, uint32_t axis,
                         struct cg_accumulator *acc)
{
    if (axis == e->nindex) {
        cg_reduce_term(g, e, acc);
        return;
    }
    const struct lang_symbol *k = e->index[axis];
    struct cg_val low = k->low ? cg_index(g, cg_expr(g, k->low)) : cg_int(DT_I64, 0);
    struct cg_val high = cg_index(g, cg_expr(g, k->dims[0]));
    int64_t lo, hi;
    bool low_const = cg_is_const(low, &lo), high_const = cg_is_const(high, &hi);
    bool narrow = (low_const ? lo >= 0 && lo <= UINT32_MAX : low.narrow == CG_U32) &&
                  (high_const ? hi >= 0 && hi <= UINT32_MAX : high.narrow == CG_U32);
    enum dtype ct = narrow ? DT_U32 : DT_I64;
    low.type = high.type = ct;
    if (narrow)
        low.narrow = high.narrow = CG_FULL;
    high = cg_freeze(g, high);
    int32_t counter = cg_new_mutable(g, ct);
    struct cg_val i = cg_value(ct, counter);
    uint32_t head = cg_label(g, k->name), end = cg_label(g, "done");
    cg_move(g, counter, low);
    if (!(low_const && high_const && lo < hi))
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, i, high)), true, end);
    cg_place(g, head);
    cg_loop_head(g);
    struct cg_nest nest;
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, counter);
    size_t mark = cg_scope_open(g), bound = g->bindings.n;
    cg_bind(g, k, cg_index(g, i), false);
    reduce_loops(g, e, axis + 1, acc);
    g->bindings.n = bound;
    struct cg_since since = cg_now(g);
    cg_move_new(g, counter, cg_binary(g, OP_ADD, i, cg_int(ct, 1)), since);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, i, high)), true, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, end);
}

/* Intermediates with reductions of their own that do not depend on the loop are computed before it:
 * the loop then finds them numbered. What only one arm of a condition evaluates stays where it
 * is. */
static void hoist(struct cg *g, const struct lang_expr *e, const struct lang_expr *reduce)
{
    bool tensor = e->kind == E_INDEX || (e->kind == E_NAME && e->sym->kind == SYM_TENSOR);
    if (tensor && cg_is_defined(g, e->sym) && !e->pad && inspect_reduces(g, e) &&
        !inspect_mentions(e, reduce->nindex, reduce->index)) {
        cg_expr(g, e);
        return;
    }
    if (e->kind == E_REDUCE)
        return; /* it hoists for itself, and its own indices are not bound here */
    for (uint32_t i = 0; i < e->nargs && !(lang_guards(e) && i); i++)
        hoist(g, e->args[i], reduce);
}

/* ---- short reductions, written out ----------------------------------------------------------- */

struct terms {
    const struct lang_expr *e;
    struct cg_val acc, where;
};

static void add_term(struct cg *g, struct terms *t)
{
    const struct lang_expr *e = t->e, *a = e->args[0];
    if (e->reduce == RED_SUM && is_product(a, e->type) && dtype_is_float(a->type)) {
        struct cg_val x = cg_expr(g, a->args[0]);
        t->acc = cg_fma(g, x, cg_expr(g, a->args[1]), t->acc);
        return;
    }
    struct cg_val v = cg_expr(g, a), better;
    switch (e->reduce) {
    case RED_SUM: t->acc = cg_binary(g, OP_ADD, t->acc, v); break;
    case RED_PROD: t->acc = cg_binary(g, OP_MUL, t->acc, v); break;
    case RED_MAX:
    case RED_MIN: t->acc = cg_minmax(g, e->reduce == RED_MAX, t->acc, v); break;
    case RED_ANY: t->acc = cg_binary(g, OP_LOR, t->acc, v); break;
    case RED_ALL: t->acc = cg_binary(g, OP_LAND, t->acc, v); break;
    case RED_ARGMAX:
    case RED_ARGMIN:
        better = cg_binary(g, e->reduce == RED_ARGMAX ? OP_GT : OP_LT, v, t->acc);
        t->acc = cg_select(g, cg_reg(g, better), v, t->acc);
        t->where = cg_select(g, cg_reg(g, better), cg_find(g, e->index[0])->val, t->where);
        break;
    }
}

static bool constant_range(struct cg *g, const struct lang_symbol *k, int64_t *low, int64_t *high)
{
    *low = 0;
    return (!k->low || cg_is_const(cg_index(g, cg_expr(g, k->low)), low)) &&
           cg_is_const(cg_index(g, cg_expr(g, k->dims[0])), high);
}

static void add_terms(struct cg *g, struct terms *t, uint32_t axis)
{
    int64_t low, high;
    if (axis == t->e->nindex) {
        add_term(g, t);
        return;
    }
    constant_range(g, t->e->index[axis], &low, &high);
    for (int64_t i = low; i < high && !g->failed; i++) {
        size_t bound = g->bindings.n;
        cg_bind(g, t->e->index[axis], cg_int(DT_I64, i), false);
        add_terms(g, t, axis + 1);
        g->bindings.n = bound;
    }
}

/* True when its ranges are constant and it has few enough terms. */
static bool written_out(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < e->nindex && g->unroll; i++) {
        int64_t low, high;
        if (!constant_range(g, e->index[i], &low, &high))
            return false;
        const uint64_t count = high > low ? (uint64_t)high - (uint64_t)low : 0;
        if (count > g->unroll || n * count > g->unroll)
            return false;
        n *= count;
    }
    if (!g->unroll)
        return false;
    const bool arg = e->reduce == RED_ARGMAX || e->reduce == RED_ARGMIN;
    struct terms t = {.e = e, .acc = cg_reduce_identity(g, e->reduce, e->args[0]->type)};
    const struct lang_expr *low = e->index[0]->low;
    t.where = arg && low ? cg_index(g, cg_expr(g, low)) : cg_int(DT_I64, 0);
    add_terms(g, &t, 0);
    *v = arg ? cg_convert(g, t.where, e->type) : t.acc;
    return true;
}

struct cg_accumulator cg_reduce_open(struct cg *g, const struct lang_expr *e)
{
    const enum dtype t = e->args[0]->type;
    struct cg_accumulator acc = {.value = cg_new_mutable(g, t)};
    cg_move(g, acc.value, cg_reduce_identity(g, e->reduce, t));
    if (e->reduce == RED_ARGMAX || e->reduce == RED_ARGMIN) {
        const struct lang_expr *low = e->index[0]->low;
        acc.where = cg_new_mutable(g, DT_I64);
        cg_move(g, acc.where, low ? cg_index(g, cg_expr(g, low)) : cg_int(DT_I64, 0));
    }
    return acc;
}

struct cg_val cg_reduce_close(struct cg *g, const struct lang_expr *e, struct cg_accumulator acc)
{
    if (e->reduce == RED_ARGMAX || e->reduce == RED_ARGMIN)
        return cg_convert(g, cg_value(DT_I64, acc.where), e->type);
    return cg_value(e->args[0]->type, acc.value);
}

static struct cg_val reduction(struct cg *g, const struct lang_expr *e)
{
    struct cg_val v;
    if (written_out(g, e, &v))
        return v;
    hoist(g, e->args[0], e);
    struct cg_accumulator acc = cg_reduce_open(g, e);
    reduce_loops(g, e, 0, &acc);
    return cg_reduce_close(g, e, acc);
}

static struct cg_val no_lanes(struct cg *g, const struct lang_expr *e)
{
    struct cg_target none = {.type = e->type, .lanes = e->lanes, .cell = cg_cells(g, 16)};
    return cg_get(g, &none);
}

static struct cg_val special(struct cg *g, const struct lang_expr *e)
{
    if (e->special >= SP_CLUSTERID_X && !cg_needs(g, e->span, 90, lang_special_name(e->special)))
        return nothing(DT_U32);
    return cg_special(g, e->special);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Has it a line that is not the statement's first? */
static bool has_own_line(const struct cg *g, const struct lang_expr *e)
{
    const struct span at = g->b.span, own = e->span;
    if (!g->lines || g->dead || own.src != g->spec->src || at.src != own.src ||
        (e->kind != E_INDEX && e->kind != E_CALL))
        return false;
    const size_t from = at.off < own.off ? at.off : own.off;
    return memchr(own.src->text + from, '\n', (at.off < own.off ? own.off : at.off) - from);
}

struct cg_val cg_expr(struct cg *g, const struct lang_expr *e)
{
    if (g->failed || too_much(g, e->span))
        return e->lanes ? no_lanes(g, e) : nothing(e->type);
    if (has_own_line(g, e)) {
        const struct span statement = g->b.span;
        cg_at(g, e->span);
        struct cg_val v = cg_expr(g, e);
        cg_at(g, statement);
        return v;
    }
    bool element = e->kind == E_INDEX && (e->sym->kind == SYM_LOCAL || e->sym->kind == SYM_SHARED);
    if (e->lanes || e->kind == E_MEMBER || element)
        return cg_vector_expr(g, e);
    e = cg_view(g, e);
    switch (e->kind) {
    case E_INT:
        return dtype_is_float(e->type) ? cg_float(g, e->type, (double)(int64_t)e->ival)
                                       : cg_int(e->type, (int64_t)e->ival);
    case E_FLOAT: return cg_float(g, e->type, e->fval);
    case E_BOOL: return cg_bool(g, e->ival != 0);
    case E_NAME: return name_value(g, e);
    case E_SPECIAL: return special(g, e);
    case E_INDEX: return read_tensor(g, e);
    case E_UNARY: return cg_unary(g, e->op, cg_expr(g, e->args[0]));
    case E_BINARY: return binary(g, e);
    case E_COND: return conditional(g, e);
    case E_CAST: return cast(g, e);
    case E_CALL: return cg_call(g, e);
    case E_REDUCE: {
        struct cg_val v;
        return g->reduced && g->reduced(g, e, &v) ? v : reduction(g, e);
    }
    case E_MEMBER:
    case E_VECTOR:
    case E_ADDRESS:
    case E_STRING: break;
    }
    INTERNAL_ERROR("no expression of kind %d is a scalar", (int)e->kind);
}
