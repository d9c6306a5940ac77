#include <config.h>

#include "verify.h"

#include <math.h>

/* Terms that the reference adds up in seconds, as products of matrices; and where a sample is
 * taken, term by term. */
static const double MOST = 0x1p32, MOST_OF_SAMPLE = 0x1p26, MOST_OF_CALL = 0x1p24;

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

double cost_extent(struct arena *a, const struct ref_input *in, const struct lang_expr *e)
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
        p *= cost_extent(a, in, index[i]->dims ? index[i]->dims[0] : NULL);
    return p;
}

/* An equation's reductions, on the way down to one of them. */
struct walk {
    struct arena *a;
    const struct ref_input *in;
    const struct lang_equation *eq;
    double most; /* elements that are computed */
    VEC(const struct lang_symbol *) around;
};

bool cost_reads(const struct lang_expr *e, const struct lang_symbol *s)
{
    bool found = e->kind == E_NAME && e->sym == s;
    for (uint32_t k = 0; k < e->nargs && !found; k++)
        found = cost_reads(e->args[k], s);
    for (uint32_t k = 0; e->kind == E_REDUCE && k < e->nindex && !found; k++)
        found = cost_reads(e->index[k]->dims[0], s) ||
                (e->index[k]->low && cost_reads(e->index[k]->low, s));
    return found || (e->kind == E_INDEX && e->pad && cost_reads(e->pad, s));
}

/* How often a reduction is computed: for all indices around it, or only for those that it depends
 * on (ref.h), of which those that lead the left side change last. */
static double times_of(const struct walk *w, const struct lang_expr *e)
{
    double all = 1, keys = 1, elements = 1;
    uint32_t nkey = 0;
    bool leads = true;
    for (size_t k = 0; k < w->around.n; k++) {
        const struct lang_symbol *s = w->around.v[k];
        const bool is_key = cost_reads(e, s), is_inner = k >= w->eq->nindex;
        const double extent = cost_extent(w->a, w->in, s->dims ? s->dims[0] : NULL);
        *(is_inner ? &all : &elements) *= extent;
        keys *= is_key ? extent : 1;
        leads &= !is_key || (nkey == k && !is_inner);
        nkey += is_key;
    }
    all *= fmin(elements, w->most);
    const bool once = nkey < w->around.n && nkey <= REF_KEYS && (leads || keys <= REF_KEPT) &&
                      !w->eq->is_recurrence;
    return once ? fmin(keys, all) : all;
}

/* Does an index only say where the range begins, so that elements go on from others (ref.h)? */
static bool goes_on(const struct walk *w, const struct lang_expr *e)
{
    const struct lang_expr *low = e->nindex == 1 ? e->index[0]->low : NULL;
    bool found = false;
    for (size_t k = 0; low && k < w->around.n; k++) {
        const struct lang_symbol *s = w->around.v[k];
        found |= cost_reads(low, s) && !cost_reads(e->index[0]->dims[0], s) &&
                 !cost_reads(e->args[0], s);
    }
    return found && e->reduce != RED_ARGMAX && e->reduce != RED_ARGMIN;
}

/* The most terms of a reduction below e, in all elements. */
static double terms_of(struct walk *w, const struct lang_expr *e)
{
    double most = 0;
    const size_t n = w->around.n;
    if (e->kind == E_REDUCE) {
        const double terms = product_of(w->a, w->in, e->index, e->nindex);
        most = times_of(w, e) * (goes_on(w, e) ? fmin(terms, 2 * REF_STEP) : terms);
        for (uint32_t k = 0; k < e->nindex; k++)
            *VEC_PUSH(w->a, &w->around) = e->index[k];
    }
    for (uint32_t k = 0; k < e->nargs; k++)
        most = fmax(most, terms_of(w, e->args[k]));
    w->around.n = n;
    return most;
}

double cost_of(struct arena *a, const struct ref_input *in, uint64_t sample)
{
    const struct lang_equations *q = spec_oracle(in->spec);
    const double *part = sample ? ref_sampled_parts(a, in, sample) : NULL;
    double sum = 0;
    for (size_t k = 0; k < q->n; k++) {
        struct walk w = {.a = a, .in = in, .eq = q->v[k]};
        double n = product_of(a, in, q->v[k]->index, q->v[k]->nindex);
        if (part)
            n *= part[k];
        else if (sample && q->v[k]->sym->kind == SYM_BUFFER)
            n = fmin(n, (double)sample);
        w.most = n;
        for (uint32_t i = 0; i < q->v[k]->nindex; i++)
            *VEC_PUSH(a, &w.around) = q->v[k]->index[i];
        sum += fmax(n, terms_of(&w, q->v[k]->rhs));
    }
    return sum;
}

static uint64_t sample(struct arena *a, const struct ref_input *in, const struct options *o,
                       double most, double most_of_sample)
{
    if (o->sample || o->every || cost_of(a, in, 0) <= most)
        return o->sample;
    uint64_t n = LARGEST_SAMPLE;
    while (n > SMALLEST_SAMPLE && cost_of(a, in, n) > most_of_sample)
        n /= 2;
    return n;
}

uint64_t cost_sample(struct arena *a, const struct ref_input *in, const struct options *o)
{
    return sample(a, in, o, MOST, MOST_OF_SAMPLE);
}

uint64_t cost_sample_of_call(struct arena *a, const struct ref_input *in, const struct options *o)
{
    return sample(a, in, o, MOST_OF_CALL, MOST_OF_CALL);
}
