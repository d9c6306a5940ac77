#include <config.h>

#include "verify.h"

#include <math.h>

/* Terms that the reference adds up in seconds, as products of matrices; and where a sample is taken, term by term. */
static const double MOST = 0x1p32, MOST_OF_SAMPLE = 0x1p26;

enum { LARGEST_SAMPLE = 4096, SMALLEST_SAMPLE = 64 };

static bool value_of(void *ctx, const struct lang_symbol *sym, double *f, int64_t *i)
{
    const struct ref_input *in = ctx;
    if (sym->kind == SYM_DIM) {
        *i = (int64_t)in->dims[sym->id];
        *f = (double)*i;
    } else if (sym->kind == SYM_SCALAR) {
        *i = in->scalars[sym->id].i;
        *f = in->scalars[sym->id].f;
    }
    return sym->kind == SYM_DIM || sym->kind == SYM_SCALAR;
}

/* The extent, 1 where it depends on an index or on what is in a tensor. */
static double extent_of(struct arena *a, const struct ref_input *in, const struct lang_expr *e)
{
    int64_t v = 1;
    if (!e || !lang_eval_int(e, value_of, (void *)(uintptr_t)in, &v, diags_new(a)))
        return 1;
    return v > 0 ? (double)v : 1;
}

static double product_of(struct arena *a, const struct ref_input *in,
                         struct lang_symbol *const *index, uint32_t n)
{
    double p = 1;
    for (uint32_t i = 0; i < n; i++)
        p *= extent_of(a, in, index[i]->dims ? index[i]->dims[0] : NULL);
    return p;
}

static double terms_of(struct arena *a, const struct ref_input *in, const struct lang_expr *e)
{
    double most = 1;
    for (uint32_t k = 0; k < e->nargs; k++)
        most = fmax(most, terms_of(a, in, e->args[k]));
    return e->kind == E_REDUCE ? most * product_of(a, in, e->index, e->nindex) : most;
}

double cost_of(struct arena *a, const struct ref_input *in, uint64_t sample)
{
    const struct lang_equations *q = spec_oracle(in->spec);
    double sum = 0;
    for (size_t k = 0; k < q->n; k++) {
        double n = product_of(a, in, q->v[k]->index, q->v[k]->nindex);
        if (sample && q->v[k]->sym->kind == SYM_BUFFER)
            n = fmin(n, (double)sample);
        sum += n * terms_of(a, in, q->v[k]->rhs);
    }
    return sum;
}

uint64_t cost_sample(struct arena *a, const struct ref_input *in, const struct options *o)
{
    if (o->sample || o->every || cost_of(a, in, 0) <= MOST)
        return o->sample;
    uint64_t n = LARGEST_SAMPLE;
    while (n > SMALLEST_SAMPLE && cost_of(a, in, n) > MOST_OF_SAMPLE)
        n /= 2;
    return n;
}
