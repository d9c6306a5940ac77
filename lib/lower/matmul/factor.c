/* The factors of a sum's terms, shared out to two operands (matmul.h). */
#include <config.h>

#include "lower/matmul/matmul.h"

#include <math.h>

enum { MOST_SMALL = 6 }; /* factors of f16 whose product f32 has */

struct factor {
    struct lang_expr *e;
    uint32_t mask; /* axes that it depends on */
    bool divides;
    bool hoisted;
};

struct factors {
    struct factor v[MATMUL_FACTORS];
    uint32_t n;
    bool negative, too_many;
};

struct terms {
    struct cg *g;
    const struct matmul_normal *n;
    struct buf *why;
    enum dtype sum; /* its type */
};

uint32_t matmul_mask(const struct matmul_normal *n, const struct lang_expr *e)
{
    uint32_t mask = 0;
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX) {
        for (uint32_t i = 0; i < n->naxis; i++)
            mask |= e->sym == n->axis[i] ? 1u << i : 0;
        return e->sym == n->sum[0] ? MATMUL_K : mask;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        mask |= matmul_mask(n, e->args[i]);
    return e->pad ? mask | matmul_mask(n, e->pad) : mask;
}

/* ---- factors --------------------------------------------------------------------------------- */

static void add_factor(const struct terms *a, struct factors *fs, struct lang_expr *e, bool divides)
{
    if (fs->n == MATMUL_FACTORS) {
        fs->too_many = true;
        return;
    }
    fs->v[fs->n++] = (struct factor){.e = e, .mask = matmul_mask(a->n, e), .divides = divides};
}

/* The magnitude of a constant; 0: it is none. */
static double magnitude(const struct lang_expr *e)
{
    e = inspect_strip(e);
    return e->kind == E_FLOAT ? fabs(e->fval)
           : e->kind == E_INT ? fabs((double)(int64_t)e->ival)
                              : 0;
}

/* A number of the launch's, or a constant that is neither large nor small. */
static bool is_scale(const struct factor *x)
{
    const double c = magnitude(x->e);
    const enum lang_expr_kind kind = inspect_strip(x->e)->kind;
    const bool is_constant = kind == E_FLOAT || kind == E_INT;
    return !x->mask && !inspect_reads(x->e) && (!is_constant || (c > 1e-20 && c < 1e20));
}

/* A quotient that can be taken after the sum. */
static bool may_divide_sum(const struct terms *a, const struct lang_expr *e)
{
    if (e->kind != E_BINARY || e->op != OP_DIV || e->type != a->sum || !dtype_is_float(e->type))
        return false;
    const struct factor by = {.e = e->args[1], .mask = matmul_mask(a->n, e->args[1])};
    return is_scale(&by) || (!(by.mask & MATMUL_K) && a->g->spec->math == MATH_FAST);
}

static void flatten(const struct terms *a, struct factors *fs, struct lang_expr *e);

/* A term that a condition makes 0 is a product with a factor that is 0 there, unless others are
 * infinite or NaN: integers are not. */
static bool may_be_zero(const struct terms *a, const struct lang_expr *e)
{
    const struct lang_expr *zero = e->kind == E_COND ? inspect_strip(e->args[2]) : NULL;
    return zero && dtype_is_int(a->sum) && e->type == a->sum && zero->kind == E_INT &&
           zero->ival == 0;
}

/* Like inspect_may_stray(), of places in what was several ranges, too. */
static bool may_stray(const struct lang_expr *e)
{
    for (uint32_t i = 0; i < e->nargs; i++)
        if (may_stray(e->args[i]))
            return true;
    for (uint32_t i = 0; e->kind == E_INDEX && !e->pad && i < e->nargs; i++)
        if (!inspect_in_range(e, i) && !cg_stays_inside(e->args[i], e->sym->dims[i]))
            return true;
    return e->nindex > 0 || (e->pad && may_stray(e->pad));
}

/* Is there a factor from the first on, but for one, that is read outside of its tensor where the
 * condition is not there to keep it? */
static bool another_strays(const struct factors *fs, uint32_t first, uint32_t one)
{
    for (uint32_t i = first; i < fs->n; i++)
        if (i != one && may_stray(fs->v[i].e))
            return true;
    return false;
}

static void flatten_zeroed(const struct terms *a, struct factors *fs, struct lang_expr *e)
{
    const uint32_t first = fs->n, mask = matmul_mask(a->n, e->args[0]) & ~MATMUL_K;
    flatten(a, fs, e->args[1]);
    uint32_t i = first; /* the factor that depends on all that the condition does */
    while (i < fs->n && (fs->v[i].divides || (mask & ~fs->v[i].mask)))
        i++;
    if (i == fs->n || another_strays(fs, first, i)) {
        fs->n = first;
        add_factor(a, fs, e, false);
        return;
    }
    struct lang_expr *c = ARENA_NEW(a->g->a, struct lang_expr);
    *c = *e;
    c->args = ARENA_ARRAY(a->g->a, 3, struct lang_expr *);
    memcpy(c->args, e->args, 3 * sizeof *c->args);
    c->args[1] = fs->v[i].e;
    fs->v[i].e = c;
    fs->v[i].mask |= matmul_mask(a->n, e->args[0]);
}

static void flatten(const struct terms *a, struct factors *fs, struct lang_expr *e)
{
    if (e->kind == E_BINARY && e->op == OP_MUL && e->type == a->sum) {
        flatten(a, fs, e->args[0]);
        flatten(a, fs, e->args[1]);
    } else if (e->kind == E_UNARY && (e->op == OP_NEG || e->op == OP_PLUS) && e->type == a->sum) {
        fs->negative ^= e->op == OP_NEG;
        flatten(a, fs, e->args[0]);
    } else if (may_be_zero(a, e)) {
        flatten_zeroed(a, fs, e);
    } else if (may_divide_sum(a, e)) {
        flatten(a, fs, e->args[0]);
        add_factor(a, fs, e->args[1], true);
    } else {
        add_factor(a, fs, e, false);
    }
}

/* May the factors be multiplied in any order, and those without k behind the sum? Integers wrap. Of
 * floats in f32 only where nothing can overflow or vanish that would not as it is written: values
 * that f16 has, and numbers. */
static bool is_free(const struct terms *a, const struct factors *fs)
{
    if (dtype_is_int(a->sum))
        return true;
    if (a->g->spec->math != MATH_DEFAULT)
        return a->g->spec->math == MATH_FAST;
    for (uint32_t i = 0; i < fs->n; i++)
        if (!is_scale(&fs->v[i]) &&
            (fs->v[i].divides || !(matmul_exact(fs->v[i].e) & MATMUL_BIT(DT_F16))))
            return false;
    return fs->n <= MOST_SMALL;
}

static void find_hoisted(const struct terms *a, struct factors *fs)
{
    const bool any = dtype_is_int(a->sum) || a->g->spec->math == MATH_FAST;
    for (uint32_t i = 0; i < fs->n; i++)
        fs->v[i].hoisted = !(fs->v[i].mask & MATMUL_K) && (any || is_scale(&fs->v[i]));
}

/* ---- operands -------------------------------------------------------------------------------- */

struct sides {
    struct lang_expr *e[2];
    uint32_t mask[2], n[2];
};

struct lang_expr *matmul_binary(struct cg *g, enum lang_op op, struct lang_expr *x,
                                struct lang_expr *y)
{
    struct lang_expr *e = ARENA_NEW(g->a, struct lang_expr);
    *e = (struct lang_expr){
        .kind = E_BINARY, .op = op, .type = x->type, .span = x->span, .nargs = 2};
    e->args = ARENA_ARRAY(g->a, 2, struct lang_expr *);
    e->args[0] = x;
    e->args[1] = y;
    e->height = 1 + (y->height > x->height ? y->height : x->height);
    return e;
}

static void join(struct cg *g, struct sides *s, enum matmul_side side, const struct factor *x)
{
    s->e[side] = s->n[side] ? matmul_binary(g, OP_MUL, s->e[side], x->e) : x->e;
    s->mask[side] |= x->mask;
    s->n[side]++;
}

/* Factors of the last axis are B's, of others A's; those of neither go where work is done
 * already. */
static void share_factors(const struct terms *a, const struct factors *fs, struct sides *s)
{
    const uint32_t j = 1u << (a->n->naxis - 1), out = (1u << a->n->naxis) - 1;
    for (uint32_t i = 0; i < fs->n; i++)
        if (!fs->v[i].hoisted && (fs->v[i].mask & out))
            join(a->g, s, fs->v[i].mask & j ? MATMUL_B : MATMUL_A, &fs->v[i]);
    for (uint32_t i = 0; i < fs->n; i++)
        if (!fs->v[i].hoisted && !(fs->v[i].mask & out))
            join(a->g, s, s->n[MATMUL_A] && s->n[MATMUL_B] > s->n[MATMUL_A] ? MATMUL_B : MATMUL_A,
                 &fs->v[i]);
}

/* Takes off e what may be taken out of the sum whatever the other factors are: signs, and constants
 * that only make it larger. */
static struct lang_expr *peel(const struct terms *a, struct factors *fs, struct lang_expr *e)
{
    for (;;) {
        const bool binary = e->kind == E_BINARY && e->type == a->sum &&
                            a->g->spec->math != MATH_STRICT;
        if (e->kind == E_UNARY && (e->op == OP_NEG || e->op == OP_PLUS)) {
            fs->negative ^= e->op == OP_NEG;
            e = e->args[0];
        } else if (binary && e->op == OP_MUL && magnitude(e->args[0]) >= 1) {
            add_factor(a, fs, e->args[0], false);
            e = e->args[1];
        } else if (binary && (e->op == OP_MUL ? magnitude(e->args[1]) >= 1
                                              : e->op == OP_DIV && magnitude(e->args[1]) > 0 &&
                                                    magnitude(e->args[1]) <= 1)) {
            add_factor(a, fs, e->args[1], e->op == OP_DIV);
            e = e->args[0];
        } else {
            return e;
        }
    }
}

/* Takes the product as it is written, its left factor as one operand and its right one as the
 * other. */
static void share_halves(const struct terms *a, struct factors *fs, struct lang_expr *e,
                         struct sides *s)
{
    const uint32_t j = 1u << (a->n->naxis - 1);
    *fs = (struct factors){0};
    e = peel(a, fs, e);
    for (uint32_t i = 0; i < fs->n; i++)
        fs->v[i].hoisted = true;
    const bool is_product = e->kind == E_BINARY && e->op == OP_MUL && e->type == a->sum;
    for (uint32_t i = 0; i < (is_product ? 2 : 1); i++) {
        struct factor x = {.e = is_product ? e->args[i] : e};
        while (x.e->kind == E_UNARY && x.e->op == OP_NEG && x.e->type == a->sum) {
            fs->negative = !fs->negative;
            x.e = x.e->args[0];
        }
        x.mask = matmul_mask(a->n, x.e);
        join(a->g, s, x.mask & j ? MATMUL_B : MATMUL_A, &x);
    }
}

static const char *last_axis(const struct terms *a)
{
    return a->n->axis[a->n->naxis - 1]->name;
}

/* e: the sum, to say what it lacks; NULL: nothing is said. */
static bool check_sides(const struct terms *a, const struct lang_expr *e, const struct sides *s)
{
    const char *k = a->n->sum[0]->name, *j = last_axis(a), *lacks = NULL;
    const char *name = j;
    if (!s->n[MATMUL_B])
        lacks = "no factor of the sum depends on '%s', the last index";
    else if (!s->n[MATMUL_A])
        lacks = "the sum is of no product of one factor with the last index, '%s', and one without";
    else if (!(s->mask[MATMUL_A] & s->mask[MATMUL_B] & MATMUL_K)) {
        lacks = "only one factor depends on '%s'";
        name = k;
    }
    return !lacks || (e && lower_lacks(a->why, e->span, lacks, name));
}

/* Notes what was taken out of the sum, in the order in which it is written. */
static void note_rest(const struct factors *fs, const struct sides *s, struct matmul_terms *t)
{
    *t = (struct matmul_terms){.negative = fs->negative};
    for (uint32_t i = 0; i < 2; i++) {
        t->e[i] = s->e[i];
        t->mask[i] = s->mask[i];
    }
    for (uint32_t i = 0; i < fs->n; i++)
        if (fs->v[i].hoisted) {
            t->divides[t->nafter] = fs->v[i].divides;
            t->after[t->nafter++] = fs->v[i].e;
        }
}

bool matmul_split_terms(struct cg *g, const struct matmul_normal *n, const struct lang_expr *sum,
                        struct matmul_terms *t, struct buf *why)
{
    const struct terms a = {.g = g, .n = n, .why = why, .sum = sum->type};
    struct factors fs = {0};
    struct sides s = {0};
    flatten(&a, &fs, sum->args[0]);
    if (fs.too_many)
        return lower_lacks(why, sum->span, "the sum's terms have too many factors");
    const bool is_any = is_free(&a, &fs);
    if (is_any)
        find_hoisted(&a, &fs);
    share_factors(&a, &fs, &s);
    if (!check_sides(&a, sum, &s))
        return false;
    if (!is_any) {
        s = (struct sides){0};
        share_halves(&a, &fs, sum->args[0], &s);
        if (!check_sides(&a, NULL, &s))
            return lower_lacks(
                why, sum->span,
                "in this order the factors may overflow where in another they would not: put each "
                "operand's in brackets, and what does not depend on '%s' outside of the sum",
                n->sum[0]->name);
    }
    note_rest(&fs, &s, t);
    return true;
}
