#include <config.h>

#include "lang/lang_int.h"

enum call_kind { FLOAT, ARITH, FLAW, BITS, MEMORY, OTHER, SYNC, ATOMIC };

static const struct {
    unsigned char lo, hi, kind;
} rules[FN_COUNT] = {
#define BUILTIN(NAME, text, lo, hi, kind) {lo, hi, kind},
#include "lang/builtin.def"
#undef BUILTIN
};

static bool wrong_count(struct checker *c, const struct lang_expr *e, unsigned want, unsigned most)
{
    if (most > want)
        return diag_error(c->d, e->span, "%s() takes %u to %u arguments, not %u", e->name, want,
                          most, (unsigned)e->nargs);
    return diag_error(c->d, e->span, "%s() takes %u argument%s, not %u", e->name, want,
                      want == 1 ? "" : "s", (unsigned)e->nargs);
}

/* An array is given as it is: by its name, and of the same shape. */
static bool check_array_argument(struct checker *c, struct lang_expr *e,
                                 const struct lang_symbol *p)
{
    const char *type = lang_type_name(c->a, p->type, p->lanes);
    struct lang_symbol *sym = e->kind == E_NAME ? lang_find(c->scope, e->name) : NULL;
    if (sym && sym->kind == SYM_SHARED && p->kind == SYM_LOCAL)
        return diag_error(c->d, e->span,
                          "'%s' is in shared memory; declare the parameter shared %s %s[...]",
                          sym->name, type, p->name);
    if (!sym || sym->kind != p->kind || !lang_given_itself(sym))
        return diag_error(c->d, e->span, "'%s' is %s%s of %s; give it the name of one", p->name,
                          p->kind == SYM_SHARED ? "shared memory" : "an array",
                          p->kind == SYM_SHARED && p->rank ? ", an array" : "", type);
    e->sym = sym;
    e->type = sym->type;
    e->lanes = sym->lanes;
    sym->used = true;
    bool same = sym->type == p->type && sym->lanes == p->lanes;
    bool any_size = p->rank && !p->dims[0] && sym->rank; /* shared f32 s[] */
    same &= any_size || sym->rank == p->rank;
    for (uint32_t i = 0; same && !any_size && i < p->rank; i++)
        same = sym->dims[i] && expr_same(sym->dims[i], p->dims[i]);
    if (!same) {
        diag_error(c->d, e->span,
                   "'%s' and the parameter '%s' are arrays of different types or sizes", sym->name,
                   p->name);
        diag_note(c->d, sym->span, "'%s' is declared here", sym->name);
        return false;
    }
    return !sym->is_const || p->is_const ||
           diag_error(c->d, e->span, "'%s' is const; declare the parameter const %s%s %s%s",
                      sym->name, p->kind == SYM_SHARED ? "shared " : "", type, p->name,
                      p->rank ? "[...]" : "");
}

static bool check_arguments(struct checker *c, struct lang_expr *e)
{
    bool good = true;
    bool address = !e->func && e->fn < FN_COUNT && rules[e->fn].kind == MEMORY;
    const struct lang_func *f = e->func;
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (address && i == 0)
            good = check_address(c, e->args[0], e->name);
        else if (f && lang_given_itself(f->param[i]))
            good &= check_array_argument(c, e->args[i], f->param[i]);
        else if (!check_expr(c, e->args[i]))
            good = false;
        else if (e->args[i]->type == DT_VOID)
            good = diag_error(c->d, e->args[i]->span, "this function returns no value");
    }
    return good;
}

static enum dtype common_of(const struct lang_expr *e)
{
    enum dtype t = type_promote(e->args[0]->type);
    for (uint32_t i = 1; i < e->nargs; i++)
        t = type_common(t, e->args[i]->type);
    return t;
}

static void convert_all(struct checker *c, struct lang_expr *e, enum dtype t)
{
    for (uint32_t i = 0; i < e->nargs; i++)
        check_convert(c, e->args[i], t);
    e->type = t;
}

static bool ints(struct checker *c, const struct lang_expr *e, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (!dtype_is_int(e->args[i]->type) && e->args[i]->type != DT_BOOL)
            return diag_error(c->d, e->args[i]->span, "%s() needs an integer here, not %s", e->name,
                              dtype_name(e->args[i]->type));
    return true;
}

static bool float_call(struct checker *c, struct lang_expr *e, bool fast)
{
    enum dtype t = common_of(e);
    if (!dtype_is_float(t))
        t = DT_F32;
    convert_all(c, e, t);
    if (fast && t != DT_F32)
        return diag_error(c->d, e->span, "%s() is for f32; write %s(...) for %s", e->name,
                          lang_builtin_name(e->fn), dtype_name(t));
    e->fast = t == DT_F32 && (fast || c->opt.fast_math);
    return true;
}

static bool arith_call(struct checker *c, struct lang_expr *e)
{
    convert_all(c, e, common_of(e));
    if (e->fn == FN_ABS && dtype_class(e->type) == DTC_U)
        *e = *e->args[0]; /* itself */
    return true;
}

static bool flaw_call(struct checker *c, struct lang_expr *e)
{
    if (!dtype_is_float(e->args[0]->type))
        return diag_error(c->d, e->args[0]->span, "%s() is for floats, and this is %s already",
                          e->name, dtype_name(e->args[0]->type));
    convert_all(c, e, type_promote(e->args[0]->type));
    return true;
}

static bool dp4a_call(struct checker *c, struct lang_expr *e)
{
    bool is_unsigned = true;
    for (uint32_t i = 0; i < 3; i++) {
        enum dtype t = e->args[i]->type;
        if (dtype_bits(t) != 32)
            return diag_error(c->d, e->args[i]->span, "dp4a() takes i32 or u32, not %s",
                              dtype_name(t));
        is_unsigned = is_unsigned && dtype_class(t) == DTC_U;
    }
    e->type = is_unsigned ? DT_U32 : DT_I32;
    check_convert(c, e->args[2], e->type);
    return true;
}

static bool bits_call(struct checker *c, struct lang_expr *e)
{
    if (!ints(c, e, 0, e->nargs))
        return false;
    uint32_t values = e->fn == FN_BFE ? 1 : e->fn == FN_BFI ? 2 : e->nargs;
    if (e->fn == FN_DP4A)
        return dp4a_call(c, e);
    enum dtype t = type_promote(e->args[0]->type);
    for (uint32_t i = 1; i < values; i++)
        t = type_common(t, e->args[i]->type);
    for (uint32_t i = 0; i < e->nargs; i++)
        check_convert(c, e->args[i], i < values ? t : DT_U32);
    e->type = e->fn == FN_POPC || e->fn == FN_CLZ ? DT_U32 : t;
    return true;
}

static enum dtype bit_cast_type(enum lang_builtin fn)
{
    switch (fn) {
    case FN_AS_U32: return DT_U32;
    case FN_AS_I32: return DT_I32;
    case FN_AS_F32: return DT_F32;
    case FN_AS_U64: return DT_U64;
    case FN_AS_I64: return DT_I64;
    case FN_AS_F64: return DT_F64;
    case FN_AS_U16: return DT_U16;
    case FN_AS_F16: return DT_F16;
    case FN_AS_BF16: return DT_BF16;
    default: return DT_VOID;
    }
}

static bool bit_cast(struct checker *c, struct lang_expr *e)
{
    static const enum dtype of_bits[] = {[2] = DT_U16, [4] = DT_U32, [8] = DT_U64};
    struct lang_expr *x = e->args[0];
    e->type = bit_cast_type(e->fn);
    enum dtype plain = of_bits[dtype_bits(e->type) / 8];
    if (x->kind == E_INT && !x->suffixed && int_fits(plain, x->type, x->ival))
        check_convert(c, x, plain);
    if (x->type == DT_BOOL || dtype_bits(x->type) != dtype_bits(e->type))
        return diag_error(c->d, x->span, "%s() takes a type of %u bits, not %s", e->name,
                          dtype_bits(e->type), dtype_name(x->type));
    return true;
}

bool check_written(struct checker *c, const struct lang_expr *address)
{
    const struct lang_symbol *sym = address->args[0]->sym;
    if (sym->kind == SYM_BUFFER && sym->mode == MODE_IN) {
        diag_error(c->d, address->span,
                   "'%s' is an input and can't be written; declare it out or inout", sym->name);
        diag_note(c->d, sym->span, "'%s' is declared here", sym->name);
        return false;
    }
    return !sym->is_const ||
           diag_error(c->d, address->span, "'%s' is const and can't be written", sym->name);
}

/* load4(&x[i]), store4(&x[i], v) */
static bool memory_call(struct checker *c, struct lang_expr *e)
{
    const struct lang_expr *at = e->args[0];
    bool store = e->fn >= FN_STORE2;
    uint8_t lanes = (uint8_t)(2u << (e->fn - (store ? FN_STORE2 : FN_LOAD2)));
    const char *type = lang_type_name(c->a, at->type, lanes);
    enum dtype t;
    int64_t i;
    if (c->place != IN_BODY)
        return diag_error(c->d, e->span, "%s() is for bodies", e->name);
    if (at->lanes)
        return diag_error(c->d, at->span,
                          "the elements here are %s already; read and write them as they are",
                          lang_type_name(c->a, at->type, at->lanes));
    if (!lang_vector_parse(type, strlen(type), NULL, &t))
        return diag_error(c->d, at->span, "there is no vector of %u %s; one has 4 to 16 bytes",
                          (unsigned)lanes, dtype_name(at->type));
    if (at->args[0]->kind != E_INDEX)
        return diag_error(c->d, at->span, "'%s' is one element, not %u", at->args[0]->name,
                          (unsigned)lanes);
    if (lang_const_int(at->args[0]->args[at->args[0]->nargs - 1], &i) && at->args[0]->nargs == 1 &&
        i % lanes != 0)
        return diag_error(c->d, at->args[0]->args[0]->span,
                          "%s() needs an index that is a multiple of %u, not %lld", e->name,
                          (unsigned)lanes, (long long)i);
    e->type = store ? DT_VOID : at->type;
    e->lanes = store ? 0 : lanes;
    return !store || (check_written(c, at) &&
                      check_coerce_as(c, e->args[1], at->type, lanes,
                                      arena_printf(c->a, "what %s() stores", e->name)));
}

static bool other_call(struct checker *c, struct lang_expr *e)
{
    switch (e->fn) {
    case FN_CEIL_DIV:
        if (!ints(c, e, 0, 2))
            return false;
        convert_all(c, e, common_of(e));
        return check_divisor(c, e->args[1]);
    case FN_TF32:
    case FN_TF32_RN:
    case FN_TF32_RZ:
        if (!dtype_is_float(e->args[0]->type) || e->args[0]->type == DT_F64)
            return diag_error(c->d, e->args[0]->span, "%s() is for f32, not %s", e->name,
                              dtype_name(e->args[0]->type));
        convert_all(c, e, DT_F32);
        return true;
    case FN_ISNAN:
    case FN_ISINF:
        if (!dtype_is_float(e->args[0]->type))
            return diag_error(c->d, e->args[0]->span, "%s() is for floats, not %s", e->name,
                              dtype_name(e->args[0]->type));
        convert_all(c, e, type_promote(e->args[0]->type));
        e->type = DT_BOOL;
        return true;
    case FN_PHILOX:
    case FN_UNIFORM:
    case FN_NORMAL:
        if (!ints(c, e, 0, e->nargs))
            return false;
        convert_all(c, e, DT_U64);
        e->type = e->fn == FN_PHILOX ? DT_U32 : DT_F32;
        e->lanes = e->fn == FN_PHILOX ? 4 : 0;
        return true;
    default: return bit_cast(c, e);
    }
}

/* The order of equations, and what may be computed in place, follow from what is read in their
 * text. */
static bool equation_call(struct checker *c, struct lang_expr *e)
{
    const struct lang_expr *read = reads_written(e->func->body);
    if (read) {
        diag_error(c->d, e->span, "'%s' reads '%s', which the kernel writes; give it the value",
                   e->func->name, read->sym->name);
        diag_note(c->d, read->span, "this is where");
        return false;
    }
    inline_call(c->a, e);
    return true;
}

static bool user_call(struct checker *c, struct lang_expr *e, struct lang_func *f)
{
    bool good = true;
    if (e->nargs != f->nparam)
        return wrong_count(c, e, f->nparam, f->nparam);
    e->func = f;
    e->type = f->result;
    e->lanes = f->result_lanes;
    if (c->place == IN_LAUNCH)
        return diag_error(c->d, e->span, "device functions can't be called at launch");
    if (!check_arguments(c, e) || !check_func(f, c->calls + 1, c->d))
        return false;
    if (c->calls >= LANG_MAX_CALLS || f->depth >= LANG_MAX_CALLS)
        return diag_error(c->d, e->span, "functions call each other more than %d deep",
                          LANG_MAX_CALLS);
    c->syncs |= f->priv->syncs;
    c->weight += f->weight;
    c->depth = f->depth > c->depth ? f->depth : c->depth;
    if (c->weight > LANG_MAX_INLINED)
        return diag_error(c->d, e->span, "inlining these functions makes more than %d calls",
                          LANG_MAX_INLINED);
    if (c->func && f->impure.src && !c->func->impure.src)
        c->func->impure = e->span;
    if (c->place == IN_COMPUTE && f->impure.src) {
        diag_error(c->d, e->span, "'%s' can't be called in an equation", f->name);
        diag_note(c->d, f->impure, "because of this");
        return false;
    }
    if (c->place == IN_COMPUTE && f->result == DT_VOID)
        return diag_error(c->d, e->span, "'%s' returns no value", f->name);
    for (uint32_t i = 0; i < e->nargs; i++)
        good &= lang_given_itself(f->param[i]) ||
                check_coerce_as(c, e->args[i], f->param[i]->type, f->param[i]->lanes,
                                arena_printf(c->a, "'%s' of %s()", f->param[i]->name, f->name));
    return good && (c->place != IN_COMPUTE || equation_call(c, e));
}

/* Lane by lane: min, max, abs, fma and clamp; the others take scalars. */
static bool check_vectors(struct checker *c, struct lang_expr *e)
{
    bool by_lane = e->fn == FN_MIN || e->fn == FN_MAX || e->fn == FN_ABS || e->fn == FN_FMA ||
                   e->fn == FN_CLAMP;
    if (rules[e->fn].kind == MEMORY)
        return true;
    for (uint32_t i = 0; !by_lane && i < e->nargs; i++)
        if (e->args[i]->lanes)
            return diag_error(c->d, e->args[i]->span,
                              "%s() takes scalars, and this is %s; take a lane, as in v.x", e->name,
                              lang_type_name(c->a, e->args[i]->type, e->args[i]->lanes));
    uint8_t lanes;
    if (!check_lanes(c, e, &lanes))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        check_broadcast(c, e->args[i], lanes);
    e->lanes = lanes;
    return true;
}

bool check_call(struct checker *c, struct lang_expr *e)
{
    bool fast;
    struct lang_symbol *sym;
    enum lang_reduce r;
    if (e->nindex)
        return check_notation(c, e);
    e->fn = lang_builtin_parse(e->name, &fast);
    if (e->fn == FN_COUNT) {
        sym = lang_find(c->scope, e->name);
        if (sym && sym->kind == SYM_FUNC) {
            sym->used = true;
            return user_call(c, e, sym->func);
        }
        if (lang_reduce_parse(e->name, strlen(e->name), &r) || lang_is_notation(e->name))
            return diag_error(c->d, e->span, "the index is missing; write %s[k](...)", e->name);
        return check_unknown(c, e->span, e->name, true);
    }
    if (e->nargs < rules[e->fn].lo || e->nargs > rules[e->fn].hi)
        return wrong_count(c, e, rules[e->fn].lo, rules[e->fn].hi);
    if (rules[e->fn].kind == SYNC)
        return check_sync(c, e);
    if (rules[e->fn].kind == ATOMIC)
        return check_atomic(c, e);
    if (e->order_span.src || e->scope_span.src)
        return diag_error(c->d, e->order_span.src ? e->order_span : e->scope_span,
                          "%s() has no order and no scope; atomic operations, load(), store() and "
                          "fence() have",
                          e->name);
    if (e->fn == FN_PRINT)
        return check_print(c, e);
    if (e->fn == FN_ASSERT)
        return check_assert(c, e);
    if (!check_arguments(c, e) || !check_vectors(c, e))
        return false;
    switch ((enum call_kind)rules[e->fn].kind) {
    case FLOAT: return float_call(c, e, fast);
    case ARITH: return arith_call(c, e);
    case FLAW: return flaw_call(c, e);
    case BITS: return bits_call(c, e);
    case MEMORY: return memory_call(c, e);
    case OTHER: return other_call(c, e);
    case SYNC:
    case ATOMIC: break;
    }
    return false;
}
