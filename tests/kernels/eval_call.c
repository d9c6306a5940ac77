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
        if (!scalar_call(e->fn, e->type, type, x, &out[k]))
            eval_fault(t, e->span, "the evaluator does not know %s()", lang_builtin_name(e->fn));
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
    arithmetic(t, e, out);
}
