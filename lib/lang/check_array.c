/* Arrays and vectors: declarations, lists of values, elements, lanes and addresses. */
#include <config.h>

#include "lang/lang_int.h"

/* ---- extents --------------------------------------------------------------------------------- */

const struct lang_expr *lang_unknown_at_launch(const struct lang_expr *e)
{
    bool known = true;
    if (e->kind == E_NAME)
        known = e->sym->kind == SYM_DIM || e->sym->has_value ||
                (e->sym->kind == SYM_SCALAR && dtype_is_int(e->sym->type));
    else if (e->kind == E_SPECIAL)
        known = e->special >= SP_NTID_X && e->special <= SP_NTID_Z;
    else if (e->kind == E_CALL)
        known = !e->func && (e->fn == FN_CEIL_DIV || e->fn == FN_MIN || e->fn == FN_MAX);
    else
        known = e->kind != E_INDEX && e->kind != E_MEMBER && e->kind != E_FLOAT;
    if (!known)
        return e;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const struct lang_expr *bad = lang_unknown_at_launch(e->args[i]);
        if (bad)
            return bad;
    }
    return NULL;
}

static bool constant_extent(struct checker *c, struct lang_expr *e, int64_t v)
{
    struct span s = e->span;
    *e = *expr_new(c->a, E_INT, s);
    e->type = DT_I64;
    e->ival = v < 1 ? 1 : (uint64_t)v;
    return v >= 1 || diag_error(c->d, s, "an array has at least 1 element, not %lld", (long long)v);
}

/* blockDim.x where the spec's block is a constant. */
static void fix_block(const struct checker *c, struct lang_expr *e)
{
    uint32_t axis = (uint32_t)(e->special - SP_NTID_X);
    for (uint32_t i = 0; i < e->nargs; i++)
        fix_block(c, e->args[i]);
    if (e->kind != E_SPECIAL || axis > 2 || !c->opt.block[axis])
        return;
    e->kind = E_INT;
    e->type = DT_U32;
    e->suffixed = true;
    e->ival = c->opt.block[axis];
}

static bool check_extent(struct checker *c, const struct lang_symbol *sym, struct lang_expr *e)
{
    int64_t v;
    fix_block(c, e);
    if (!check_expr(c, e) || !check_integer(c, e, "an array's size"))
        return false;
    if (lang_const_int(e, &v))
        return constant_extent(c, e, v);
    if (sym->kind == SYM_LOCAL)
        return diag_error(c->d, e->span,
                          "the size of '%s' must be a constant; a dimension is one when it is "
                          "fixed with -D",
                          sym->name);
    const struct lang_expr *bad = lang_unknown_at_launch(e);
    return !bad || diag_error(c->d, bad->span,
                              "the size of '%s' must be known at launch: constants, dimensions, "
                              "integer parameters and blockDim",
                              sym->name);
}

bool check_extents(struct checker *c, struct lang_symbol *sym)
{
    bool good = true;
    for (uint32_t i = 0; i < sym->rank && sym->dims[i]; i++)
        good &= check_extent(c, sym, sym->dims[i]);
    return good;
}

bool lang_given_itself(const struct lang_symbol *param)
{
    return param->rank > 0 || param->kind == SYM_SHARED;
}

bool lang_array_count(const struct lang_symbol *sym, uint64_t *n)
{
    *n = 1;
    for (uint32_t i = 0; i < sym->rank; i++) {
        int64_t one;
        if (!sym->dims[i] || !lang_const_int(sym->dims[i], &one) ||
            __builtin_mul_overflow(*n, (uint64_t)one, n))
            return false;
    }
    return true;
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct filler {
    struct checker *c;
    struct lang_stmt *s;
    uint64_t last; /* elements given, gaps included */
};

static bool fill(struct filler *f, const struct lang_expr *list, uint32_t level, uint64_t base,
                 uint64_t size)
{
    struct lang_symbol *sym = f->s->sym;
    struct diags *d = f->c->d;
    uint64_t at = 0, sub = size / sym->dims[level]->ival;
    bool good = true;
    for (uint32_t i = 0; i < list->nargs; i++) {
        struct lang_expr *e = list->args[i];
        bool nested = e->kind == E_VECTOR && !e->lanes;
        if (at >= size)
            return diag_error(d, e->span, "too many values: '%s' has %llu element%s here",
                              sym->name, (unsigned long long)size, size == 1 ? "" : "s");
        if (nested && level + 1 == sym->rank)
            return diag_error(d, e->span, "one pair of braces too many: '%s' has %u dimension%s",
                              sym->name, (unsigned)sym->rank, sym->rank == 1 ? "" : "s");
        if (nested && at % sub != 0)
            return diag_error(d, e->span,
                              "put braces around the values before, too: a row has %llu of them",
                              (unsigned long long)sub);
        if (nested) {
            good &= fill(f, e, level + 1, base + at, sub);
            at += sub;
            continue;
        }
        good &= check_expr(f->c, e) && check_coerce_as(f->c, e, sym->type, sym->lanes,
                                                       arena_printf(f->c->a, "'%s'", sym->name));
        f->s->list[base + at] = e;
        at++;
        if (base + at > f->last)
            f->last = base + at;
    }
    return good;
}

static bool check_list(struct checker *c, struct lang_stmt *s, uint64_t count)
{
    struct filler f = {c, s, 0};
    const struct lang_expr *list = s->rhs;
    s->rhs = NULL;
    c->listed += count;
    if (list->nargs && c->listed > LANG_MAX_LISTED)
        return diag_error(c->d, list->span, "lists for more than %d elements", LANG_MAX_LISTED);
    s->list = ARENA_ARRAY(c->a, list->nargs ? count : 1, struct lang_expr *);
    if (!fill(&f, list, 0, 0, count))
        return false;
    s->nlist = (uint32_t)f.last;
    return true;
}

bool check_array_decl(struct checker *c, struct lang_stmt *s)
{
    struct lang_symbol *sym = s->sym;
    uint64_t count, bytes, most = sym->kind == SYM_LOCAL ? LANG_MAX_LOCAL_BYTES : UINT32_MAX;
    unsigned size = dtype_bits(sym->type) / 8 * (sym->lanes ? sym->lanes : 1);
    if (sym->kind == SYM_SHARED && c->func)
        return diag_error(c->d, sym->span,
                          "shared memory is declared in the body; a function gets it as a "
                          "parameter, as in void f(shared f32 a[4])");
    if (!check_extents(c, sym))
        return false;
    if (!lang_array_count(sym, &count)) {
        for (uint32_t i = 0; i < sym->rank; i++)
            if (!sym->dims[i] || sym->dims[i]->kind != E_INT)
                return true; /* known at launch only */
        count = UINT64_MAX;
    }
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > most)
        return diag_error(c->d, sym->span, "'%s' has more than %llu bytes", sym->name,
                          (unsigned long long)most);
    return !s->has_list || check_list(c, s, count);
}

/* ---- elements and lanes ---------------------------------------------------------------------- */

bool check_lane(struct checker *c, struct lang_expr *arg, const char *name, uint8_t lanes)
{
    int64_t v;
    if (!check_expr(c, arg) || !check_integer(c, arg, "a lane's number"))
        return false;
    check_convert(c, arg, type_promote(arg->type));
    if (lang_const_int(arg, &v) && (v < 0 || v >= lanes))
        return diag_error(c->d, arg->span, "lane %lld is out of range: '%s' has %u lanes",
                          (long long)v, name, (unsigned)lanes);
    return true;
}

/* What equations do not have; a function with it can't be called from one. */
static bool only_in_bodies(struct checker *c, const struct lang_expr *e)
{
    if (c->func && !c->func->impure.src)
        c->func->impure = e->span;
    return c->place == IN_BODY ||
           diag_error(c->d, e->span, "there are no vectors in equations and at launch");
}

bool check_member(struct checker *c, struct lang_expr *e)
{
    struct lang_expr *v = e->args[0];
    if (!check_expr(c, v))
        return false;
    if (!v->lanes)
        return diag_error(c->d, e->span,
                          v->type == DT_VOID
                              ? "this function returns no value"
                              : "only a vector has parts, and this is %s; a vector is declared "
                                "f32x4 v",
                          v->type == DT_VOID ? "" : dtype_name(v->type));
    if (e->ival >= v->lanes)
        return diag_error(c->d, e->span, "%s has no .%c; its lanes are %s",
                          lang_type_name(c->a, v->type, v->lanes), "xyzw"[e->ival],
                          v -> lanes == 2 ? ".x and .y" : ".x .y .z");
    e->type = v->type;
    /* a word of random numbers is a number like any other */
    bool word = v->kind == E_CALL && !v->func && v->fn == FN_PHILOX;
    return (word && c->place == IN_COMPUTE) || only_in_bodies(c, e);
}

/* f32x4(a, b, c, d), f32x4(a), or f16x2(v) of another vector. */
bool check_vector(struct checker *c, struct lang_expr *e)
{
    bool good = true;
    for (uint32_t i = 0; i < e->nargs; i++) {
        struct lang_expr *x = e->args[i];
        if (!check_expr(c, x)) {
            good = false;
            continue;
        }
        if (x->type == DT_VOID)
            good = diag_error(c->d, x->span, "this function returns no value");
        else if (x->lanes && (e->nargs > 1 || x->lanes != e->lanes))
            good = diag_error(c->d, x->span, "%s takes %u scalars here, and this is %s",
                              lang_type_name(c->a, e->type, e->lanes), (unsigned)e->lanes,
                              lang_type_name(c->a, x->type, x->lanes));
    }
    if (!good)
        return false;
    if (e->args[0]->lanes) {
        e->kind = E_CAST;
        return true;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        check_convert(c, e->args[i], e->type);
    return only_in_bodies(c, e);
}

void check_broadcast(struct checker *c, struct lang_expr *e, uint8_t lanes)
{
    if (e->lanes || !lanes)
        return;
    struct lang_expr *inner = ARENA_NEW(c->a, struct lang_expr);
    *inner = *e;
    *e = *expr_new(c->a, E_VECTOR, inner->span);
    e->type = inner->type;
    e->lanes = lanes;
    e->is_implicit = true;
    e->height = inner->height + 1;
    e->nargs = 1;
    e->args = ARENA_NEW(c->a, struct lang_expr *);
    e->args[0] = inner;
}

bool check_lanes(struct checker *c, const struct lang_expr *e, uint8_t *lanes)
{
    *lanes = 0;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const struct lang_expr *x = e->args[i];
        if (x->lanes && *lanes && x->lanes != *lanes)
            return diag_error(c->d, e->span, "vectors of %u and of %u lanes do not go together",
                              (unsigned)*lanes, (unsigned)x->lanes);
        if (x->lanes)
            *lanes = x->lanes;
    }
    return true;
}

bool check_scalar(struct checker *c, const struct lang_expr *e, const char *what)
{
    return !e->lanes || diag_error(c->d, e->span, "%s is a scalar, not %s; take a lane, as in v.x",
                                   what, lang_type_name(c->a, e->type, e->lanes));
}

bool check_coerce_as(struct checker *c, struct lang_expr *e, enum dtype to, uint8_t lanes,
                     const char *what)
{
    if (e->type == DT_VOID || (!e->lanes && !lanes))
        return check_coerce(c, e, to, what);
    if (e->lanes && lanes && e->lanes != lanes)
        return diag_error(c->d, e->span, "%s is %s and the value is %s", what,
                          lang_type_name(c->a, to, lanes), lang_type_name(c->a, e->type, e->lanes));
    if (!lanes)
        return diag_error(c->d, e->span, "%s is %s and the value is %s; take a lane, as in v.x",
                          what, dtype_name(to), lang_type_name(c->a, e->type, e->lanes));
    if (!e->lanes)
        return diag_error(c->d, e->span,
                          "%s is %s and the value is %s; write %s(...) for all "
                          "lanes",
                          what, lang_type_name(c->a, to, lanes), dtype_name(e->type),
                          lang_type_name(c->a, to, lanes));
    if (e->type == to || check_allowed(c, e, to)) {
        check_convert(c, e, to);
        return true;
    }
    return diag_error(c->d, e->span, "%s is %s and the value is %s; write %s(...) to convert it",
                      what, lang_type_name(c->a, to, lanes),
                      lang_type_name(c->a, e->type, e->lanes), lang_type_name(c->a, to, lanes));
}

/* ---- addresses ------------------------------------------------------------------------------- */

bool check_address(struct checker *c, struct lang_expr *e, const char *taker)
{
    if (e->kind != E_ADDRESS)
        return diag_error(c->d, e->span, "%s() takes an address here, as in %s(&x[i]%s)", taker,
                          taker, strncmp(taker, "load", 4) == 0 ? "" : ", ...");
    struct lang_expr *of = e->args[0];
    if (of->kind == E_NAME) {
        const struct lang_symbol *sym = lang_find(c->scope, of->name);
        if (sym && sym->kind == SYM_LOCAL && sym->rank == 0)
            return diag_error(c->d, of->span,
                              "'%s' is in registers and has no address; an element or a shared "
                              "variable has one",
                              of->name);
    }
    if (!check_expr(c, of))
        return false;
    const struct lang_symbol *sym = of->sym;
    if (sym->kind != SYM_BUFFER && sym->kind != SYM_SHARED &&
        !(sym->kind == SYM_LOCAL && sym->rank > 0))
        return diag_error(c->d, of->span,
                          "'%s' has no address; an element or a shared variable has one",
                          sym->name);
    if (sym->lanes && !of->lanes)
        return diag_error(c->d, of->span, "a lane has no address; take the vector's");
    e->type = of->type;
    e->lanes = of->lanes;
    if (c->func && !c->func->impure.src)
        c->func->impure = e->span;
    return true;
}
