/* Atomic operations, ordered loads and stores: one thread runs at a time, so each is what it would
 * be alone. */
#include <config.h>

#include "kernels/eval_int.h"

static union scalar wrap_around(enum lang_builtin fn, union scalar old, union scalar limit)
{
    if (fn == FN_ATOMIC_INC)
        return (union scalar){.u = old.u >= limit.u ? 0 : old.u + 1};
    return (union scalar){.u = old.u == 0 || old.u > limit.u ? limit.u : old.u - 1};
}

/* A sum of two narrow floats is exact in f64, or near enough for a single rounding. */
static union scalar add(enum dtype t, union scalar x, union scalar y, bool minus)
{
    if (dtype_is_float(t)) {
        y.f = minus ? -y.f : y.f;
        return t == DT_F32 ? scalar_binary(OP_ADD, t, t, x, y) : scalar_float(t, x.f + y.f);
    }
    return scalar_binary(minus ? OP_SUB : OP_ADD, t, t, x, y);
}

static bool same_bits(enum dtype t, union scalar x, union scalar y)
{
    unsigned char a[8] = {0}, b[8] = {0};
    scalar_store(t, a, 0, x);
    scalar_store(t, b, 0, y);
    return memcmp(a, b, sizeof a) == 0;
}

static union scalar updated(const struct lang_expr *e, enum dtype t, union scalar old,
                            union scalar x, union scalar y)
{
    switch (e->fn) {
    case FN_ATOMIC_ADD: return add(t, old, x, false);
    case FN_ATOMIC_SUB: return add(t, old, x, true);
    case FN_ATOMIC_MIN: return scalar_min(t, old, x);
    case FN_ATOMIC_MAX: return scalar_max(t, old, x);
    case FN_ATOMIC_AND: return (union scalar){.u = old.u & x.u};
    case FN_ATOMIC_OR: return (union scalar){.u = old.u | x.u};
    case FN_ATOMIC_XOR: return (union scalar){.u = old.u ^ x.u};
    case FN_ATOMIC_INC:
    case FN_ATOMIC_DEC: return wrap_around(e->fn, old, x);
    case FN_ATOMIC_CAS: return same_bits(t, old, x) ? y : old;
    default: return x; /* exch */
    }
}

void eval_atomic(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    const struct lang_expr *of = e->args[0]->args[0];
    struct storage made, *s = &made;
    union scalar x[LANES_MOST], y[LANES_MOST] = {{0}}, now[LANES_MOST];
    uint64_t at = 0;
    int lane;
    if (of->kind == E_NAME && of->sym->kind == SYM_SHARED)
        s = eval_storage(t, of->sym);
    else
        at = eval_place(t, of, &s, &lane);
    if (at == UINT64_MAX)
        return;
    if (e->nargs > 1)
        eval_expr(t, e->args[1], x);
    if (e->nargs > 2)
        eval_expr(t, e->args[2], y);
    if (e->fn == FN_LOAD) {
        eval_read(t, s, at, out);
        return;
    }
    if (e->fn == FN_STORE) {
        eval_write(t, s, at, x);
        return;
    }
    unsigned pair = e->lanes && !s->sym->lanes ? e->lanes : 1; /* elements */
    unsigned lanes = eval_lanes(e) / pair;
    for (unsigned k = 0; k < pair && at + k < s->count; k++) {
        eval_read(t, s, at + k, out + k);
        for (unsigned i = 0; i < lanes; i++)
            now[i] = updated(e, s->sym->type, out[k + i], x[k + i], y[k + i]);
        eval_write(t, s, at + k, now);
    }
}
