/* The vendor's library of attention and convolutions as a rival: cudnn. It is either of the two, by
 * what the subject's spec is. */
#include <config.h>

#include "bench/convolution.h"
#include "bench/rival.h"

bool rival_cudnn_convolves(struct arena *a, const struct spec *s, const struct bench_point *p)
{
    const struct attention_at at = {a, s, p, NULL};
    return convolution_find(&at).is_found;
}

static const struct rival_ops *of(const struct rival *v)
{
    return v->conv ? &rival_convolution : &rival_attention;
}

static enum rival_status prepare(struct rival *v, struct diags *d)
{
    if (rival_cudnn_convolves(v->a, v->subject->code.spec, v->point))
        return rival_convolution.prepare(v, d);
    return rival_attention.prepare(v, d);
}

static enum device_status enqueue(struct rival *v, unsigned set, struct diags *d)
{
    return of(v)->enqueue(v, set, d);
}

static enum device_status poison(struct rival *v, unsigned set, struct diags *d)
{
    return of(v)->poison(v, set, d);
}

static enum rival_status check(struct rival *v, unsigned set, struct diags *d)
{
    return of(v)->check(v, set, d);
}

static void release(struct rival *v)
{
    of(v)->release(v);
}

const struct rival_ops rival_cudnn = {
    .prepare = prepare,
    .enqueue = enqueue,
    .poison = poison,
    .check = check,
    .release = release,
};
