#include <config.h>

#include "kernels/eval_int.h"

/* A function of numbers: lane by lane, a scalar standing for as many lanes as are needed. */
static void arithmetic(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    union scalar v[ARGS_MOST][LANES_MOST], x[ARGS_MOST];
    enum dtype type[ARGS_MOST];
    for (uint32_t i = 0; i < e->nargs; i++) {
        eval_expr(t, e->args[i], v[i]);
        type[i] = e->args[i]->type;
    }
    for (unsigned k = 0; k < eval_lanes(e); k++) {
        for (uint32_t i = 0; i < e->nargs; i++)
            x[i] = v[i][e->args[i]->lanes ? k : 0];
        out[k].u = 0;
        if (e->rounded && library_half(lang_builtin_name(e->fn), x, &out[k]))
            continue;
        if (!scalar_call(e->fn, e->type, type, x, &out[k]))
            eval_fault(t, e->span, "the evaluator does not know %s()", lang_builtin_name(e->fn));
    }
}

/* philox(), uniform(), normal(): of a seed, a counter and a stream. */
static void random_call(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    uint64_t of[3] = {0};
    uint32_t w[4];
    for (uint32_t i = 0; i < e->nargs; i++)
        of[i] = scalar_convert(e->args[i]->type, DT_U64, eval_scalar(t, e->args[i])).u;
    scalar_philox(of[0], of[1], of[2], w);
    if (e->fn == FN_UNIFORM)
        out->f = (double)(w[0] >> 8) * 0x1p-24;
    else if (e->fn == FN_NORMAL)
        out->f = library_normal(w[0], w[1]);
    for (int k = 0; k < 4 && e->fn == FN_PHILOX; k++)
        out[k].u = w[k];
}

/* What a thread does with others: the arguments are its part of it. */
static void together(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    union scalar v[ARGS_MOST][LANES_MOST];
    for (uint32_t i = 0; i < e->nargs; i++)
        eval_expr(t, e->args[i], v[i]);
    memcpy(t->operand, v, e->nargs * sizeof *v);
    eval_meet(t, e);
    memcpy(out, t->outcome, eval_lanes(e) * sizeof *out);
}

/* load4(&x[i]), store4(&x[i], v): neighbouring elements. */
static void neighbours(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    const struct lang_expr *of = e->args[0]->args[0];
    struct storage made, *s = &made;
    int lane;
    bool store = e->fn >= FN_STORE2;
    unsigned n = 2u << (e->fn - (store ? FN_STORE2 : FN_LOAD2));
    union scalar v[LANES_MOST];
    uint64_t at = eval_place(t, of, &s, &lane);
    if (at == UINT64_MAX || at % n != 0 || at + n > s->count) {
        eval_fault(t, e->span, "elements %llu and on are not aligned or not there",
                   (unsigned long long)at);
        return;
    }
    if (store)
        eval_expr(t, e->args[1], v);
    for (unsigned k = 0; k < n; k++)
        if (store)
            eval_write(t, s, at + k, &v[k]);
        else
            eval_read(t, s, at + k, &out[k]);
}

static bool alone(const struct thread *t, enum lang_builtin fn, union scalar *out)
{
    uint32_t lane = t->linear % 32;
    const uint32_t *n = t->block->machine->cluster, *at = t->block->at;
    switch (fn) {
    case FN_LANEMASK_LT: out->u = (UINT32_C(1) << lane) - 1; return true;
    case FN_LANEMASK_LE: out->u = (UINT64_C(2) << lane) - 1; return true;
    case FN_LANEMASK_EQ: out->u = UINT32_C(1) << lane; return true;
    case FN_LANEMASK_GE: out->u = (uint32_t)(UINT32_MAX << lane); return true;
    case FN_LANEMASK_GT: out->u = (uint32_t)(UINT64_C(0xfffffffe) << lane); return true;
    case FN_CLUSTER_SIZE: out->u = (uint64_t)n[0] * n[1] * n[2]; return true;
    case FN_CLUSTER_RANK:
        out->u = at[0] % n[0] + n[0] * (at[1] % n[1] + n[1] * (at[2] % n[2]));
        return true;
    case FN_THREADFENCE:
    case FN_THREADFENCE_BLOCK:
    case FN_THREADFENCE_SYSTEM:
    case FN_CLUSTER_ARRIVE:
    case FN_FENCE: return true; /* one thread runs at a time */
    default: return false;
    }
}

void eval_call(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    if (e->func) {
        eval_function(t, e, out);
        return;
    }
    if (e->fast || e->nargs > ARGS_MOST) {
        eval_fault(t, e->span, "no approximations here");
        return;
    }
    if (e->fn == FN_PHILOX || e->fn == FN_UNIFORM || e->fn == FN_NORMAL)
        random_call(t, e, out);
    else if (e->fn >= FN_ATOMIC_ADD && e->fn <= FN_STORE)
        eval_atomic(t, e, out);
    else if (e->fn == FN_BARRIER_ARRIVE)
        t->block->arrived[eval_scalar(t, e->args[0]).u % 16]++;
    else if (e->fn == FN_ASSERT && !eval_condition(t, e->args[0]))
        eval_fault(t, e->span, "an assertion fails");
    else if (e->fn == FN_ASSERT)
        ;
    else if (e->fn >= FN_LOAD2 && e->fn <= FN_STORE16)
        neighbours(t, e, out);
    else if (meet_in_block(e->fn) || meet_in_warp(e->fn))
        together(t, e, out);
    else if (!alone(t, e->fn, out))
        arithmetic(t, e, out);
}
