#include <config.h>

#include "ref/program.h"

/* The smallest normal number of a factor of this type. e4m3 is multiplied as f16 or as itself; what
 * f32 is taken apart into has no second part of 11 bits below 2^-115. */
static double smallest(const struct reduce *r, enum dtype t)
{
    switch (t) {
    case DT_E4M3: return 0x1p-6;
    case DT_E5M2:
    case DT_F16: return 0x1p-14;
    case DT_BF16:
    case DT_F32: return r->sums.products ? 0x1p-115 : 0x1p-126;
    case DT_F64:
    case DT_I64:
    case DT_I32:
    case DT_I16:
    case DT_I8:
    case DT_U64:
    case DT_U32:
    case DT_U16:
    case DT_U8:
    case DT_BOOL:
    case DT_I4:
    case DT_U4:
    case DT_COUNT: break;
    }
    return 0;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Is its value that of an argument, but for the sign, or 0? */
static bool is_one_of_its_arguments(const struct node *n)
{
    return n->eval == eval_fneg || n->eval == eval_fabs || n->eval == eval_frelu ||
           n->eval == eval_fmin || n->eval == eval_fmax || n->eval == eval_fclamp;
}

static double smallest_of(const struct reduce *r, const struct node *n)
{
    if (is_one_of_its_arguments(n)) {
        double least = 0;
        for (uint32_t k = 0; k < n->nargs; k++)
            least = larger(least, smallest_of(r, n->args[k]));
        return least;
    }
    if (n->eval ==
        eval_float_to_float) /* to a wider type nothing changes, to a narrower one all does */
        return larger(smallest(r, n->type), smallest(r, n->from));
    if (n->eval == eval_fcond)
        return larger(smallest_of(r, n->args[1]), smallest_of(r, n->args[2]));
    return n->eval == eval_int_to_float ? 0 : smallest(r, n->type);
}

double ref_reach(const struct frame *f, const struct reduce *r, const struct node *n, int lane,
                 bool *raised)
{
    const struct vec *o = &f->slot[n->slot];
    double v = fabs(o->v[lane]) + o->e[lane];
    if (v == 0)
        return 0;
    if (n->eval == eval_fneg)
        return ref_reach(f, r, n->args[0], lane, raised);
    if (n->eval == eval_fmul)
        return ref_reach(f, r, n->args[0], lane, raised) *
               ref_reach(f, r, n->args[1], lane, raised);
    if (n->eval == eval_fcond) {
        const struct vec *c = &f->slot[n->args[0]->slot];
        const uint32_t is = c->i[lane] ? 1 : 2;
        const double reach = ref_reach(f, r, n->args[is], lane, raised);
        return c->e[lane] > 0 ? larger(reach, ref_reach(f, r, n->args[3 - is], lane, raised))
                              : reach;
    }
    if (n->eval == eval_fdiv) {
        const struct vec *d = &f->slot[n->args[1]->slot];
        double least = fabs(d->v[lane]) - d->e[lane];
        return least > 0 ? ref_reach(f, r, n->args[0], lane, raised) / least : INFINITY;
    }
    if (r->sums.products && v >= 0x1.ffep127) /* its first part is infinite */
        return INFINITY;
    double least = smallest_of(r, n);
    *raised |= v < least;
    return larger(v, least);
}

bool ref_loop_varies(const struct reduce *r, const struct node *n)
{
    if (n->noted == r)
        return n->varies;
    for (uint32_t k = 0; k < r->nloop && !n->eval; k++)
        if (n->slot == r->loop[k].slot)
            return true;
    for (uint32_t k = 0; k < n->nargs; k++)
        if (ref_loop_varies(r, n->args[k]))
            return true;
    const struct reduce *inner = n->reduce;
    for (uint32_t k = 0; inner && k < inner->nloop; k++)
        if (ref_loop_varies(r, inner->loop[k].hi) ||
            (inner->loop[k].lo && ref_loop_varies(r, inner->loop[k].lo)))
            return true;
    return (inner && ref_loop_varies(r, inner->body)) || (n->pad && ref_loop_varies(r, n->pad));
}

void ref_note_loops(const struct reduce *r, struct node *n)
{
    const bool varies = ref_loop_varies(r, n);
    n->noted = r;
    n->varies = varies;
    if (n->eval == eval_fmul || n->eval == eval_fdiv || n->eval == eval_fneg ||
        n->eval == eval_float_to_float)
        for (uint32_t k = 0; k < n->nargs; k++)
            ref_note_loops(r, n->args[k]);
}

double ref_scale(const struct frame *f, const struct reduce *r, const struct node *n, int lane)
{
    if (n->eval == eval_rescaled) {
        const double bare = n->nargs > 1 ? fabs(f->slot[n->args[1]->slot].v[lane]) : 1;
        return (fabs(f->slot[n->slot].v[lane]) + f->slot[n->slot].e[lane]) / (bare > 0 ? bare : 1);
    }
    if (!ref_loop_varies(r, n))
        return fabs(f->slot[n->slot].v[lane]);
    if (n->eval == eval_fneg || (r->rescaled && n->eval == eval_float_to_float))
        return ref_scale(f, r, n->args[0], lane);
    if (n->eval == eval_fmul)
        return ref_scale(f, r, n->args[0], lane) * ref_scale(f, r, n->args[1], lane);
    if (n->eval == eval_fdiv && !ref_loop_varies(r, n->args[1]))
        return ref_scale(f, r, n->args[0], lane) / fabs(f->slot[n->args[1]->slot].v[lane]);
    return 1;
}
