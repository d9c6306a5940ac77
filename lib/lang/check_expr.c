#include <config.h>

#include "lang/lang_int.h"

#include <math.h>

static const char *op_text(enum lang_op op)
{
    static const char *const text[] = {"-", "!", "~",  "+",  "*",  "/",  "%", "+", "-", "<<", ">>",
                                       "<", ">", "<=", ">=", "==", "!=", "&", "^", "|", "&&", "||"};
    return text[op];
}

/* ---- names ----------------------------------------------------------------------------------- */

bool check_unknown(struct checker *c, struct span s, const char *name, bool function)
{
    const char *near = scope_nearest(c->a, c->scope, name, function);
    const char *kind = function ? "function" : "name";
    const char *ours = function ? lang_cuda_word(name) : NULL;
    if (ours)
        return diag_error(c->d, s, "'%s' is called %s() here", name, ours);
    if (near)
        return diag_error(c->d, s, "unknown %s '%s'; did you mean '%s'?", kind, name, near);
    if (function && lang_find(c->scope, name))
        return diag_error(c->d, s, "'%s' is not a function", name);
    return diag_error(c->d, s, "unknown %s '%s'", kind, name);
}

static bool wants_subscripts(struct checker *c, const struct lang_expr *e)
{
    static const char *const letters[] = {"i", "i, j", "i, j, k", "i, j, k, l"};
    uint32_t rank = e->sym->rank;
    if (rank >= 1 && rank <= 4)
        return diag_error(c->d, e->span, "'%s' has %u dimension%s; write %s[%s]", e->name,
                          (unsigned)rank, rank == 1 ? "" : "s", e->name, letters[rank - 1]);
    return diag_error(c->d, e->span, "'%s' has %u dimensions and needs as many subscripts", e->name,
                      (unsigned)rank);
}

static bool check_name(struct checker *c, struct lang_expr *e)
{
    e->sym = lang_find(c->scope, e->name);
    if (!e->sym)
        return check_unknown(c, e->span, e->name, false);
    e->sym->used = true;
    switch (e->sym->kind) {
    case SYM_DIM: e->type = c->opt.index_is_i64 ? DT_I64 : DT_U32; return true;
    case SYM_BUFFER:
    case SYM_TENSOR:
        if (e->sym->rank > 0 && c->place != IN_LAUNCH)
            return wants_subscripts(c, e);
        e->kind = E_INDEX;
        return check_subscripts(c, e);
    case SYM_FUNC:
        return diag_error(c->d, e->span, "'%s' is a function; call it, as in %s(x)", e->name,
                          e->name);
    case SYM_SCALAR:
    case SYM_INDEX:
    case SYM_LOCAL:
    case SYM_SHARED:
        if (e->sym->rank > 0)
            return wants_subscripts(c, e);
        e->type = e->sym->type;
        e->lanes = e->sym->lanes;
        if (e->sym->kind == SYM_SHARED && c->func && !c->func->impure.src)
            c->func->impure = e->span;
        return true;
    }
    return false;
}

static bool check_special(struct checker *c, struct lang_expr *e)
{
    e->type = DT_U32;
    if (e->special == SP_MULTIPROCESSORS)
        return c->opt.grid ||
               diag_error(c->d, e->span, "'multiprocessors' is known in 'grid' alone%s",
                          c->place == IN_BODY ? ", whose blocks a body can count: gridDim.x" : "");
    if (c->func && !c->func->impure.src)
        c->func->impure = e->span;
    if (c->place == IN_BODY)
        return true;
    return diag_error(c->d, e->span, "'%s' is known only inside a body",
                      lang_special_name(e->special));
}

/* ---- elements -------------------------------------------------------------------------------- */

static bool out_of_range(struct checker *c, const struct lang_expr *at, const char *name, int64_t v,
                         int64_t extent)
{
    return diag_error(c->d, at->span, "index %lld is out of range: '%s' has %lld element%s there",
                      (long long)v, name, (long long)extent, extent == 1 ? "" : "s");
}

/* x[i] where i's range is another dimension's is a mistake unless the range was written. */
static bool check_plain_index(struct checker *c, const struct lang_expr *arg, const char *name,
                              const struct lang_expr *extent)
{
    const struct lang_symbol *s = arg->sym;
    int64_t have, range;
    if (s->kind != SYM_INDEX || !s->dims || !s->dims[0])
        return true;
    if (s->written) {
        if (lang_const_int(s->dims[0], &range) && lang_const_int(extent, &have) && range > have)
            return out_of_range(c, arg, name, range - 1, have);
        return true;
    }
    if (range_is_within(s->dims[0], extent))
        return true;
    return diag_error(
        c->d, arg->span,
        "index '%s' runs over %s, but '%s' has %s there; make them one dimension, or, if this "
        "is meant, write the range, as in '%s < %s'",
        s->name, lang_expr_text(c->a, s->dims[0]), name, lang_expr_text(c->a, extent), s->name,
        lang_expr_text(c->a, s->dims[0]));
}

static bool check_subscript(struct checker *c, const struct lang_expr *e, uint32_t i, bool safe)
{
    struct lang_expr *arg = e->args[i];
    const struct lang_symbol *sym = e->sym;
    int64_t v, have;
    if (!check_expr(c, arg) || !check_integer(c, arg, "a subscript"))
        return false;
    check_convert(c, arg, type_promote(arg->type));
    if (safe || !sym->dims)
        return true;
    if (e->nargs == sym->rank && arg->kind == E_NAME &&
        !check_plain_index(c, arg, sym->name, sym->dims[i]))
        return false;
    if (!lang_const_int(arg, &v))
        return true;
    have = 1;
    for (uint32_t k = 0; k < sym->rank; k++) {
        int64_t one;
        if (e->nargs == sym->rank && k != i)
            continue;
        if (!sym->dims[k] || !lang_const_int(sym->dims[k], &one) ||
            __builtin_mul_overflow(have, one, &have))
            return v >= 0 || diag_error(c->d, arg->span,
                                        "index %lld is out of range: the first "
                                        "element is 0",
                                        (long long)v);
    }
    return (v >= 0 && v < have) || out_of_range(c, arg, sym->name, v, have);
}

/* Are the extents numbers in the text? */
static bool has_literal_shape(const struct lang_symbol *sym)
{
    for (uint32_t i = 0; i < sym->rank; i++)
        if (!sym->dims || !sym->dims[i] || sym->dims[i]->kind != E_INT)
            return false;
    return true;
}

/* May a constant subscript be out of range? Where something guards the element, perhaps by the
 * sizes that -D fixes; but no if makes an index right for a buffer whose extents are numbers in the
 * text. */
static bool may_be_outside(const struct checker *c, const struct lang_expr *e)
{
    if (e->pad || c->unreached)
        return true;
    return has_literal_shape(e->sym) ? c->guarded > c->ifs : c->guarded > 0;
}

bool check_subscripts(struct checker *c, struct lang_expr *e)
{
    struct lang_symbol *sym = e->sym = lang_find(c->scope, e->name);
    bool good = true;
    if (!sym)
        return check_unknown(c, e->span, e->name, false);
    sym->used = true;
    bool safe = may_be_outside(c, e);
    bool array = (sym->kind == SYM_LOCAL || sym->kind == SYM_SHARED) && (sym->rank || sym->lanes);
    if (array)
        safe = c->unreached > 0; /* its size is a constant: a guard cannot make the index right */
    if (array && c->func && !c->func->impure.src)
        c->func->impure = e->span;
    if (array && c->place != IN_BODY)
        return diag_error(c->d, e->span, "'%s' can be read in bodies and functions only",
                          sym->name);
    if (array && e->pad)
        return diag_error(c->d, e->span, "pad() is for buffers; test the index of '%s'", sym->name);
    if (sym->kind != SYM_BUFFER && sym->kind != SYM_TENSOR && !array)
        return diag_error(c->d, e->span, "'%s' is %s and has no elements", e->name,
                          sym->kind == SYM_DIM     ? "a dimension"
                          : sym->kind == SYM_INDEX ? "an index"
                          : sym->kind == SYM_FUNC  ? "a function"
                                                   : "a scalar");
    if (c->place == IN_LAUNCH)
        return diag_error(c->d, e->span,
                          "the elements of '%s' are not known at launch; use dimensions "
                          "and scalars here",
                          e->name);
    bool flat = c->place == IN_BODY && e->nargs == 1 && sym->rank > 0;
    uint32_t lane = sym->lanes && e->nargs == sym->rank + 1; /* the last subscript is a lane's */
    if (lane) {
        e->nargs--;
        flat = false;
    }
    if (e->nargs != sym->rank && !flat)
        return diag_error(c->d, e->span, "'%s' has %u dimension%s, not %u", e->name,
                          (unsigned)sym->rank, sym->rank == 1 ? "" : "s", (unsigned)e->nargs);
    for (uint32_t i = 0; i < e->nargs; i++)
        good &= check_subscript(c, e, i, safe);
    e->nargs += lane;
    if (lane)
        good &= check_lane(c, e->args[e->nargs - 1], sym->name, sym->lanes);
    e->type = sym->type;
    e->lanes = lane ? 0 : sym->lanes;
    if (e->pad && good)
        good = check_expr(c, e->pad) &&
               check_coerce(c, e->pad, e->type, arena_printf(c->a, "'%s'", e->name));
    return good;
}

/* ---- operators ------------------------------------------------------------------------------- */

bool check_integer(struct checker *c, struct lang_expr *e, const char *what)
{
    if (!check_scalar(c, e, what))
        return false;
    if (dtype_is_int(e->type) || e->type == DT_BOOL)
        return true;
    if (e->type == DT_VOID)
        return diag_error(c->d, e->span, "%s needs a value, and this function returns none", what);
    return diag_error(c->d, e->span, "%s is an integer, not %s; write i32(...)", what,
                      dtype_name(e->type));
}

static bool needs_integers(struct checker *c, const struct lang_expr *e,
                           const struct lang_expr *arg)
{
    if (dtype_is_int(arg->type) || arg->type == DT_BOOL)
        return true;
    if (e->op == OP_MOD)
        return diag_error(c->d, arg->span, "'%%' needs integers, not %s; write fmod(a, b)",
                          dtype_name(arg->type));
    return diag_error(c->d, arg->span, "'%s' needs integers, not %s", op_text(e->op),
                      dtype_name(arg->type));
}

/* Scalars among vectors become vectors. */
static bool join_lanes(struct checker *c, struct lang_expr *e, uint32_t from)
{
    uint8_t lanes;
    struct lang_expr operands = {.span = e->span, .nargs = e->nargs - from, .args = e->args + from};
    if (!check_lanes(c, &operands, &lanes))
        return false;
    for (uint32_t i = from; i < e->nargs; i++)
        check_broadcast(c, e->args[i], lanes);
    e->lanes = lanes;
    return true;
}

static bool has_value(struct checker *c, const struct lang_expr *e)
{
    return e->type != DT_VOID || diag_error(c->d, e->span, "this function returns no value");
}

bool check_condition(struct checker *c, struct lang_expr *e)
{
    if (!check_expr(c, e) || !has_value(c, e) || !check_scalar(c, e, "a condition"))
        return false;
    if (e->type == DT_BOOL)
        return true;
    if (e->kind == E_INT || e->kind == E_FLOAT) {
        e->ival = e->kind == E_INT ? e->ival != 0 : e->fval != 0;
        e->kind = E_BOOL;
        e->type = DT_BOOL;
        return true;
    }
    expr_cast(c->a, e, DT_BOOL);
    return true;
}

static bool check_unary(struct checker *c, struct lang_expr *e)
{
    struct lang_expr *x = e->args[0];
    if (e->op == OP_NOT) {
        if (!check_condition(c, x))
            return false;
        e->type = DT_BOOL;
        return fold(c, e);
    }
    if (!check_expr(c, x) || !has_value(c, x))
        return false;
    if (e->op == OP_BITNOT && !needs_integers(c, e, x))
        return false;
    e->type = type_promote(x->type);
    e->lanes = x->lanes;
    check_convert(c, x, e->type);
    if (e->op == OP_PLUS) { /* the operand itself */
        struct span s = e->span;
        *e = *x;
        e->span = s;
        return true;
    }
    return fold(c, e);
}

static bool check_shift(struct checker *c, struct lang_expr *e)
{
    struct lang_expr *l = e->args[0], *r = e->args[1];
    int64_t n;
    if (!needs_integers(c, e, l) || !needs_integers(c, e, r))
        return false;
    e->type = type_promote(l->type);
    if (c->place == IN_LAUNCH && e->type != DT_U64)
        e->type = DT_I64; /* where integers are exact, so that 1 << 40 is one */
    check_convert(c, l, e->type);
    check_convert(c, r, type_promote(r->type));
    if (lang_const_int(r, &n) && (n < 0 || n >= (int64_t)dtype_bits(e->type)))
        return diag_error(c->d, r->span, "a shift of %s is by 0 to %u, not %lld",
                          dtype_name(e->type), dtype_bits(e->type) - 1, (long long)n);
    return join_lanes(c, e, 0) && fold(c, e);
}

/* -1 < n with an unsigned n is false in C, which surprises. */
static void warn_sign(struct checker *c, const struct lang_expr *e, enum dtype common)
{
    static const bool matters[] = {
        [OP_DIV] = true, [OP_MOD] = true, [OP_LT] = true,  [OP_GT] = true,
        [OP_LE] = true,  [OP_GE] = true,  [OP_LOR] = false};
    for (uint32_t i = 0; i < 2; i++) {
        const struct lang_expr *x = e->args[i];
        if (c->place == IN_LAUNCH || !matters[e->op] || dtype_class(common) != DTC_U ||
            dtype_class(x->type) != DTC_I)
            continue;
        if (dtype_bits(x->type) < 32 || (x->kind == E_INT && (int64_t)x->ival >= 0))
            continue;
        diag_warning(c->d, e->span,
                     "'%s' of %s and %s is done in %s, so negative values become large",
                     op_text(e->op), dtype_name(e->args[0]->type), dtype_name(e->args[1]->type),
                     dtype_name(common));
        diag_note(c->d, x->span, "write %s(...) if that is meant", dtype_name(common));
    }
}

bool check_divisor(struct checker *c, const struct lang_expr *by)
{
    int64_t v;
    if (!lang_const_int(by, &v) || v != 0)
        return true;
    const char *values = lang_fixed_text(c->a, by);
    if (!*values)
        return diag_error(c->d, by->span, "division by zero");
    const char *text = lang_expr_text(c->a, by);
    diag_error(c->d, by->span, "division by zero: %s is 0, since %s", text, values);
    diag_note(c->d, by->span, "if the kernel is not for such sizes, say so: require: %s > 0", text);
    return false;
}

static bool check_division(struct checker *c, const struct lang_expr *e)
{
    return (e->op != OP_DIV && e->op != OP_MOD) || !dtype_is_int(e->type) ||
           check_divisor(c, e->args[1]);
}

static bool check_logical(struct checker *c, struct lang_expr *e)
{
    bool good = check_condition(c, e->args[0]);
    c->guarded++;
    good &= check_condition(c, e->args[1]);
    c->guarded--;
    e->type = DT_BOOL;
    return good && fold(c, e);
}

static bool check_binary(struct checker *c, struct lang_expr *e)
{
    struct lang_expr *l = e->args[0], *r = e->args[1];
    if (e->op == OP_LAND || e->op == OP_LOR)
        return check_logical(c, e);
    bool good = check_expr(c, l) && has_value(c, l);
    good &= check_expr(c, r) && has_value(c, r);
    if (!good)
        return false;
    if (e->op == OP_SHL || e->op == OP_SHR)
        return check_shift(c, e);
    bool bits = e->op == OP_AND || e->op == OP_XOR || e->op == OP_OR || e->op == OP_MOD;
    if (bits && (!needs_integers(c, e, l) || !needs_integers(c, e, r)))
        return false;
    enum dtype t = type_common(l->type, r->type);
    warn_sign(c, e, t);
    check_convert(c, l, t);
    check_convert(c, r, t);
    bool compares = e->op >= OP_LT && e->op <= OP_NE;
    e->type = compares ? DT_BOOL : t;
    if (compares && (l->lanes || r->lanes))
        return diag_error(c->d, e->span,
                          "vectors are not compared; compare their lanes, as in v.x %s w.x",
                          op_text(e->op));
    return check_division(c, e) && join_lanes(c, e, 0) && fold(c, e);
}

static bool is_literal(const struct lang_expr *e)
{
    return (e->kind == E_INT || e->kind == E_FLOAT) && !e->suffixed;
}

/* Has the type the literal's very value? */
static bool holds_exactly(enum dtype t, const struct lang_expr *lit)
{
    enum { EXACT = 53 };
    if (lit->kind == E_INT && dtype_is_int(t))
        return int_fits(t, lit->type, lit->ival);
    const double v = lit->kind == E_INT ? int_to_double(lit->type, lit->ival) : lit->fval;
    if (lit->kind == E_INT && fabs(v) >= ldexp(1, EXACT))
        return false;
    const double r = dtype_round(t, v);
    return r == v || (isnan(r) && isnan(v));
}

/* c ? x : 0 has x's type, be it narrow, where nobody can tell: its value is the same in the common
 * type, in which arithmetic would go on. Any other literal brings x to the common type, as it does
 * in c + x. */
static bool literal_joins(struct checker *c, struct lang_expr *lit, enum dtype t)
{
    if (!is_literal(lit) || t == DT_BOOL || t == DT_VOID ||
        type_common(lit->type, t) != type_promote(t) || !holds_exactly(t, lit))
        return false;
    check_convert(c, lit, t);
    return true;
}

static bool check_cond(struct checker *c, struct lang_expr *e)
{
    struct lang_expr *x = e->args[1], *y = e->args[2];
    bool good = check_condition(c, e->args[0]);
    c->guarded++;
    good &= check_expr(c, x) && has_value(c, x);
    good &= check_expr(c, y) && has_value(c, y);
    c->guarded--;
    if (!good)
        return false;
    if (x->type != y->type && !(is_literal(x) && is_literal(y)))
        if (!literal_joins(c, x, y->type))
            literal_joins(c, y, x->type);
    e->type = x->type == y->type ? x->type : type_common(x->type, y->type);
    check_convert(c, x, e->type);
    check_convert(c, y, e->type);
    return join_lanes(c, e, 1);
}

static bool check_cast(struct checker *c, struct lang_expr *e)
{
    struct lang_expr *x = e->args[0];
    if (!check_expr(c, x) || !has_value(c, x) || !check_scalar(c, x, "what is converted"))
        return false;
    if (e->type == DT_F64 && expr_adapts(x))
        expr_retype(x, DT_F64);
    check_rounded(c, x, e->type);
    return fold(c, e);
}

/* ---- reductions ------------------------------------------------------------------------------ */

static bool declare_index(struct checker *c, struct lang_symbol *s)
{
    const struct lang_symbol *other = lang_find(c->scope, s->name);
    if (!other)
        return true;
    diag_error(c->d, s->span, "'%s' is %s already; give the index another name", s->name,
               other->kind == SYM_INDEX ? "an index"
               : other->kind == SYM_DIM ? "a dimension"
                                        : "a name");
    if (other->span.src)
        diag_note(c->d, other->span, "'%s' is defined here", s->name);
    return false;
}

bool check_own_indices(struct checker *c, const struct lang_expr *e, struct lang_scope *inner)
{
    bool good = true;
    for (uint32_t i = 0; i < e->nindex && good; i++) {
        good = declare_index(c, e->index[i]) && check_index_range(c, e->index[i], e->args[0]);
        scope_add(c->a, inner, e->index[i]);
    }
    return good;
}

static bool reduced_type(struct checker *c, struct lang_expr *e)
{
    struct lang_expr *x = e->args[0];
    if (e->reduce == RED_ANY || e->reduce == RED_ALL) {
        e->type = DT_BOOL;
        return check_condition(c, x);
    }
    if (!check_expr(c, x) || !has_value(c, x))
        return false;
    check_convert(c, x, type_promote(x->type));
    e->type = e->reduce == RED_ARGMAX || e->reduce == RED_ARGMIN ? DT_I64 : x->type;
    return true;
}

static bool check_reduce(struct checker *c, struct lang_expr *e)
{
    struct lang_scope inner = {.up = c->scope};
    struct lang_scope *outer = c->scope;
    const char *name = lang_reduce_name(e->reduce);
    if (c->place != IN_COMPUTE)
        return diag_error(c->d, e->span, "%s[...] is for compute: and reference:%s", name,
                          c->place == IN_BODY ? "; write a loop here" : "");
    if (e->nindex != 1 && (e->reduce == RED_ARGMAX || e->reduce == RED_ARGMIN))
        return diag_error(c->d, e->index[1]->span, "%s is over one index", name);
    c->scope = &inner;
    const bool good = check_own_indices(c, e, &inner) && reduced_type(c, e);
    c->scope = outer;
    return good;
}

bool check_expr(struct checker *c, struct lang_expr *e)
{
    switch (e->kind) {
    case E_INT:
    case E_FLOAT:
    case E_BOOL: return true;
    case E_NAME: return check_name(c, e);
    case E_SPECIAL: return check_special(c, e);
    case E_INDEX: return check_subscripts(c, e);
    case E_UNARY: return check_unary(c, e);
    case E_BINARY: return check_binary(c, e);
    case E_COND: return check_cond(c, e);
    case E_CAST: return e->is_implicit || check_cast(c, e);
    case E_CALL: return check_call(c, e);
    case E_REDUCE: return check_reduce(c, e);
    case E_VECTOR: return e->is_implicit || check_vector(c, e);
    case E_MEMBER: return check_member(c, e);
    case E_ADDRESS:
        return diag_error(
            c->d, e->span,
            "an address is only given to functions that take one, as in load4(&x[i])");
    case E_STRING:
        return diag_error(c->d, e->span,
                          "a text is only the format of print() or the message of assert()");
    }
    return false;
}

bool lang_check_expr(struct arena *a, struct lang_scope *scope, const struct lang_options *opt,
                     struct lang_expr *e, enum dtype want, struct diags *d)
{
    struct checker c = {.a = a, .d = d, .scope = scope, .opt = *opt, .place = IN_LAUNCH};
    if (!check_expr(&c, e))
        return false;
    if (want == DT_BOOL && e->type != DT_BOOL)
        return diag_error(d, e->span,
                          "a condition is needed here, not a number; write a comparison, "
                          "as in 'n %% 8 == 0'");
    if (want != DT_VOID && !check_coerce(&c, e, want, "the parameter"))
        return false;
    expr_settle(e);
    return true;
}
