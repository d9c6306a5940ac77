#include <config.h>

#include "bench/work.h"

#include <inttypes.h>
#include <math.h>

struct at {
    const struct spec *s;
    const struct bench_point *p;
    struct arena *a; /* for the errors of expressions that have no value here */
};

static bool lookup(void *ctx, const struct lang_symbol *sym, double *f, int64_t *i)
{
    const struct at *at = ctx;
    const struct bench_value *v =
        sym->kind == SYM_DIM || sym->kind == SYM_SCALAR ? bench_find(at->p, sym->name) : NULL;
    if (v) {
        *i = v->i;
        *f = v->f;
        return true;
    }
    /* a scalar's default */
    const struct lang_expr *value = sym->kind == SYM_SCALAR ? at->s->params.v[sym->id].value : NULL;
    if (!value || !lang_eval_int(value, lookup, ctx, i, diags_new(at->a)))
        return false;
    *f = (double)*i;
    return true;
}

static bool value_of(const struct at *at, const struct lang_expr *e, int64_t *v)
{
    struct at *ctx = (struct at *)(uintptr_t)at;
    return lang_eval_int(e, lookup, ctx, v, diags_new(at->a));
}

/* ---- bytes ---- */

static uint64_t footprint(const struct at *at, const struct spec *s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->params.n; i++) {
        const struct lang_symbol *sym = s->params.v[i].sym;
        if (sym->kind != SYM_BUFFER)
            continue;
        double n = dtype_bits(sym->type);
        uint64_t bits = dtype_bits(sym->type);
        for (uint32_t k = 0; k < sym->rank; k++) {
            int64_t extent;
            if (!value_of(at, sym->dims[k], &extent) || extent < 0)
                return UINT64_MAX;
            n *= (double)extent;
            bits *= (uint64_t)extent;
        }
        if (n > 0x1p61)
            return UINT64_MAX;
        sum += (bits + 7) / 8;
    }
    return sum;
}

uint64_t work_footprint(const struct spec *s, const struct bench_point *p)
{
    struct at at = {s, p, arena_new()};
    uint64_t bytes = at.a ? footprint(&at, s) : UINT64_MAX;
    arena_free(at.a);
    return bytes;
}

static bool requirements_hold(const struct at *at, const struct spec *s)
{
    for (size_t i = 0; i < s->require.n; i++) {
        int64_t holds = 0;
        if (!value_of(at, s->require.v[i], &holds) || !holds)
            return false;
    }
    return true;
}

bool work_choose(struct arena *a, const struct spec *s, struct bench_point *p, size_t at,
                 uint64_t bytes, struct diags *d)
{
    enum { TRIES = 4096 };
    struct at ctx = {s, p, a};
    struct bench_value *v = &p->values.v[at];
    uint64_t lo = 0, hi = UINT32_MAX; /* lo fits, or is 0 */
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo + 1) / 2;
        v->i = (int64_t)mid;
        if (work_footprint(s, p) <= bytes)
            lo = mid;
        else
            hi = mid - 1;
    }
    for (int tries = 0; lo > 0 && tries < TRIES; lo--, tries++) {
        v->i = (int64_t)lo;
        v->f = (double)lo;
        v->text = arena_printf(a, "%" PRIu64, lo);
        if (requirements_hold(&ctx, s))
            return true;
    }
    return diag_error(d, SPAN_NONE,
                      "no '%s' makes the buffers of '%s' take at most %" PRIu64 " bytes", v->name,
                      s->name, bytes);
}

/* ---- operations ---- */

static double extents(const struct at *at, struct lang_symbol *const *index, uint32_t n)
{
    double p = 1;
    for (uint32_t i = 0; i < n; i++) {
        int64_t hi = 0, lo = 0;
        if (!index[i]->dims || !value_of(at, index[i]->dims[0], &hi) ||
            (index[i]->low && !value_of(at, index[i]->low, &lo)))
            return NAN;
        p *= hi > lo ? (double)(hi - lo) : 0;
    }
    return p;
}

/* Of one evaluation; NaN where an extent is not known before the data is. */
static double operations(const struct at *at, const struct lang_expr *e)
{
    double n = 0;
    bool is_float = dtype_is_float(e->type);
    for (uint32_t k = 0; k < e->nargs; k++)
        n += operations(at, e->args[k]);
    switch ((int)e->kind) {
    case E_REDUCE: return (n + 1) * extents(at, e->index, e->nindex);
    case E_BINARY: return n + is_float;
    case E_UNARY: return n + is_float;
    case E_CALL: return n + (is_float ? (e->fn == FN_FMA ? 2 : 1) : 0);
    default: return n;
    }
}

double work_operations(const struct spec *s, const struct bench_point *p)
{
    const struct lang_equations *q = spec_oracle(s);
    struct at at = {s, p, arena_new()};
    double sum = 0;
    for (size_t i = 0; q && at.a && i < q->n; i++)
        sum += extents(&at, q->v[i]->index, q->v[i]->nindex) * operations(&at, q->v[i]->rhs);
    arena_free(at.a);
    return isfinite(sum) ? sum : 0;
}

static double terms(const struct at *at, const struct lang_expr *e)
{
    double most = 1;
    for (uint32_t k = 0; k < e->nargs; k++)
        most = fmax(most, terms(at, e->args[k]));
    /* an intermediate has terms of its own */
    if (e->kind == E_INDEX && e->sym->def && e->sym->kind == SYM_TENSOR)
        most = fmax(most, terms(at, e->sym->def->rhs));
    if (e->kind != E_REDUCE)
        return most;
    double n = extents(at, e->index, e->nindex);
    return most * (isfinite(n) ? n : 1);
}

double work_terms(const struct spec *s, const struct bench_point *p)
{
    const struct lang_equations *q = spec_oracle(s);
    struct at at = {s, p, arena_new()};
    double most = 1;
    for (size_t i = 0; q && at.a && i < q->n; i++)
        if (q->v[i]->sym->kind == SYM_BUFFER && !q->v[i]->is_recurrence)
            most = fmax(most, terms(&at, q->v[i]->rhs));
    arena_free(at.a);
    return most;
}
