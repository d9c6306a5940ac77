#include <config.h>

#include "bench/convolution.h"
#include "bench/formula.h"

enum { MOST = 8 };

/* Indices with whole factors, and a number: (c + f0 i0 + f1 i1) / over. */
struct line {
    int64_t c, over;
    unsigned n;
    const struct lang_symbol *index[2];
    int64_t factor[2];
};
/* A buffer by the subscripts of a read of it, or by the result's indices. */
struct view {
    const struct lang_symbol *sym;
    bool tf32, pads; /* pads: with something else than zeros */
    unsigned n;
    struct line at[MOST];
    uint64_t extent[MOST], stride[MOST];
    uint64_t offset;
};
/* A dimension of an image: the place in the result of the forward pass, and in the window, which is
 * NULL where that has one element. */
struct place {
    const struct lang_symbol *at, *window;
    unsigned dim; /* of the view with both */
    int64_t stride, dilation, pre;
};
struct conv_finder {
    struct finder f;
    struct convolution *out;
    const struct lang_equation *eq;
    const struct lang_expr *sum;
    struct view both, other, result; /* the factors, the one first whose subscripts are sums */
    enum conv_kind kind;
    struct place place[CONV_SPATIAL_MOST];
    unsigned nplace;
};

static bool fail(struct conv_finder *x, const char *why)
{
    if (!x->out->why)
        x->out->why = why;
    return false;
}

/* ---- subscripts ---- */

static bool whole(struct conv_finder *x, const struct lang_expr *e, int64_t *v)
{
    struct attention_env none = {0};
    return attention_whole(x->f.at, e, &none, v);
}

static bool extent_of(struct conv_finder *x, const struct lang_symbol *index, uint64_t *n)
{
    int64_t low = 0, high;
    if (!index->dims || (index->low && (!whole(x, index->low, &low) || low != 0)) ||
        !whole(x, index->dims[0], &high) || high < 1)
        return false;
    *n = (uint64_t)high;
    return true;
}

static bool add_index(struct line *l, const struct lang_symbol *sym, int64_t factor)
{
    if (l->n == 2)
        return false;
    l->index[l->n] = sym;
    l->factor[l->n++] = factor;
    return true;
}

static bool add_to(struct conv_finder *x, struct line *l, const struct lang_expr *e, int64_t factor)
{
    int64_t v;
    e = formula_bare(e);
    if (whole(x, e, &v)) {
        l->c += factor * v;
        return true;
    }
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX)
        return add_index(l, e->sym, factor);
    if (e->kind == E_UNARY && e->op == OP_NEG)
        return add_to(x, l, e->args[0], -factor);
    if (formula_is_binary(e, OP_ADD) || formula_is_binary(e, OP_SUB))
        return add_to(x, l, e->args[0], factor) &&
               add_to(x, l, e->args[1], e->op == OP_SUB ? -factor : factor);
    if (!formula_is_binary(e, OP_MUL))
        return false;
    if (whole(x, e->args[0], &v))
        return add_to(x, l, e->args[1], factor * v);
    return whole(x, e->args[1], &v) && add_to(x, l, e->args[0], factor * v);
}

static bool line_of(struct conv_finder *x, const struct lang_expr *e, struct line *l)
{
    *l = (struct line){.over = 1};
    e = formula_bare(e);
    if (formula_is_binary(e, OP_DIV) && whole(x, e->args[1], &l->over) && l->over > 1)
        e = e->args[0];
    return add_to(x, l, e, 1);
}

static bool is_plain(const struct line *l)
{
    return l->n == 1 && l->c == 0 && l->over == 1 && l->factor[0] == 1;
}

static bool lay_out(struct conv_finder *x, struct view *v, const struct lang_symbol *sym)
{
    uint64_t stride = 1;
    v->sym = sym;
    v->n = sym->rank;
    if (v->n > MOST)
        return false;
    for (unsigned k = v->n; k > 0; k--) {
        int64_t n;
        if (!whole(x, sym->dims[k - 1], &n) || n < 1)
            return false;
        v->extent[k - 1] = (uint64_t)n;
        v->stride[k - 1] = stride;
        stride *= (uint64_t)n;
    }
    return true;
}

static bool view_of(struct conv_finder *x, const struct lang_expr *e, struct view *v)
{
    double pad;
    if (e->kind != E_INDEX || e->sym->kind != SYM_BUFFER || e->sym->mode != MODE_IN ||
        e->nargs != e->sym->rank || !lay_out(x, v, e->sym))
        return false;
    v->pads = e->pad && (!formula_scalar(&x->f, e->pad, &pad) || pad != 0);
    for (unsigned k = 0; k < v->n; k++)
        if (!line_of(x, e->args[k], &v->at[k]))
            return false;
    return true;
}

static bool is_tf32(const struct lang_expr *e)
{
    return formula_is_call(e, FN_TF32) || formula_is_call(e, FN_TF32_RN) ||
           formula_is_call(e, FN_TF32_RZ);
}

/* e without conditions where it is 0 otherwise: those of a division. */
static const struct lang_expr *unconditioned(struct conv_finder *x, const struct lang_expr *e)
{
    double otherwise;
    e = formula_bare(e);
    while (e->kind == E_COND && formula_scalar(&x->f, e->args[2], &otherwise) && otherwise == 0)
        e = formula_bare(e->args[1]);
    return e;
}

/* A factor without what is around its read: roundings, and the condition of a division. */
static bool factor_of(struct conv_finder *x, const struct lang_expr *e, struct view *v)
{
    *v = (struct view){0};
    for (e = unconditioned(x, e); is_tf32(e); e = unconditioned(x, e->args[0]))
        v->tf32 = true;
    return view_of(x, e, v);
}

static bool result_view(struct conv_finder *x)
{
    struct view *v = &x->result;
    *v = (struct view){0};
    if (!lay_out(x, v, x->eq->sym) || v->n != x->eq->nindex)
        return false;
    for (unsigned k = 0; k < v->n; k++)
        v->at[k] = (struct line){.over = 1, .n = 1, .index = {x->eq->index[k]}, .factor = {1}};
    return true;
}

/* ---- who is who ---- */

/* The subscript of a view that is an index by itself; -1: none. */
static int find(const struct view *v, const struct lang_symbol *index)
{
    for (unsigned k = 0; k < v->n; k++)
        if (is_plain(&v->at[k]) && v->at[k].index[0] == index)
            return (int)k;
    return -1;
}

static bool is_sum(const struct view *v)
{
    for (unsigned k = 0; k < v->n; k++)
        if (v->at[k].n == 2 || (v->at[k].n == 1 && !is_plain(&v->at[k])))
            return true;
    return false;
}

/* Forward and the filter's gradient differ in what is small: the window, or the gradient. */
static enum conv_kind kind_of(struct conv_finder *x)
{
    double summed = 1, kept = 1;
    for (unsigned k = 0; k < x->both.n; k++) {
        const struct line *l = &x->both.at[k];
        if (l->over > 1)
            return CONV_DATA;
        for (unsigned i = 0; i < l->n && !is_plain(l); i++) {
            uint64_t n = 1;
            extent_of(x, l->index[i], &n);
            if (l->factor[i] < 0)
                return CONV_DATA;
            *(find(&x->result, l->index[i]) >= 0 ? &kept : &summed) *= (double)n;
        }
    }
    return summed <= kept ? CONV_FORWARD : CONV_FILTER;
}

static bool add_place(struct conv_finder *x, unsigned dim)
{
    const struct line *l = &x->both.at[dim];
    struct place p = {.dim = dim, .stride = 1, .dilation = 1};
    if (x->nplace == CONV_SPATIAL_MOST)
        return fail(x, "cuDNN has convolutions of at most 3 dimensions");
    for (unsigned i = 0; i < l->n; i++) {
        const bool kept = find(&x->result, l->index[i]) >= 0;
        if (find(kept ? &x->result : &x->other, l->index[i]) < 0)
            return false;
        if (kept != (x->kind == CONV_FILTER)) {
            p.at = l->index[i];
            p.stride = l->factor[i];
        } else {
            p.window = l->index[i];
            p.dilation = l->factor[i];
        }
    }
    p.pre = -l->c;
    if (x->kind == CONV_DATA) {
        if (p.stride != 1)
            return false;
        p.stride = l->over;
        p.dilation = p.window ? -p.dilation : 1;
        p.pre = l->c;
    } else if (l->over != 1) {
        return false;
    }
    x->place[x->nplace++] = p;
    return p.at && p.stride >= 1 && p.dilation >= 1;
}

static bool find_places(struct conv_finder *x)
{
    x->kind = kind_of(x);
    x->nplace = 0;
    for (unsigned k = 0; k < x->both.n; k++) {
        const struct line *l = &x->both.at[k];
        if (l->n == 0)
            x->both.offset += (uint64_t)l->c * x->both.stride[k];
        else if (!is_plain(l) && !add_place(x, k))
            return false;
    }
    for (unsigned k = 0; k < x->other.n; k++) {
        const struct line *l = &x->other.at[k];
        if (l->n == 0)
            x->other.offset += (uint64_t)l->c * x->other.stride[k];
        else if (!is_plain(l))
            return fail(x, "the filter's subscripts are sums, too");
    }
    return x->nplace > 0;
}

static bool is_place(const struct conv_finder *x, const struct lang_symbol *index)
{
    for (unsigned k = 0; k < x->nplace; k++)
        if (x->place[k].at == index || x->place[k].window == index)
            return true;
    return false;
}

/* ---- axes ---- */

/* Which of the three have an index. */
enum { BOTH = 1, OTHER = 2, RESULT = 4 };
struct axis {
    uint64_t extent, stride;
    unsigned n;
    const struct lang_symbol *index[MOST];
};

static unsigned owners(const struct conv_finder *x, const struct lang_symbol *index)
{
    return (find(&x->both, index) >= 0 ? BOTH : 0) | (find(&x->other, index) >= 0 ? OTHER : 0) |
           (find(&x->result, index) >= 0 ? RESULT : 0);
}

/* The indices of a view that just these have, as one axis: they lie one behind the other. */
static bool axis_of(struct conv_finder *x, const struct view *v, unsigned who, struct axis *a)
{
    *a = (struct axis){.extent = 1};
    for (unsigned k = v->n; k > 0; k--) {
        const struct line *l = &v->at[k - 1];
        uint64_t n;
        if (!is_plain(l) || is_place(x, l->index[0]) || owners(x, l->index[0]) != who)
            continue;
        if (!extent_of(x, l->index[0], &n))
            return false;
        if (n > 1 && a->extent > 1 && v->stride[k - 1] != a->stride * a->extent)
            return fail(x, "cuDNN wants channels one behind the other");
        if (a->extent == 1)
            a->stride = v->stride[k - 1];
        a->extent *= n;
        a->index[a->n++] = l->index[0];
    }
    return true;
}

static bool same_order(const struct axis *a, const struct axis *b)
{
    if (a->n != b->n)
        return false;
    for (unsigned k = 0; k < a->n; k++)
        if (a->index[k] != b->index[k])
            return false;
    return true;
}

/* Groups in front of what each has. */
static bool join(struct conv_finder *x, const struct axis *groups, struct axis *a)
{
    if (groups->extent > 1 && a->extent > 1 && groups->stride != a->stride * a->extent)
        return fail(x, "cuDNN wants a group's channels one behind the other");
    if (a->extent == 1)
        a->stride = groups->stride;
    a->extent *= groups->extent;
    return true;
}

/* The two dimensions of an operand that are no places: of the images or filters, and of channels.
 */
static bool head(struct conv_finder *x, enum conv_operand which, const struct view *v,
                 unsigned first, unsigned second)
{
    struct conv_tensor *t = &x->out->problem.tensor[which];
    struct axis group, a, b;
    if (!axis_of(x, v, BOTH | OTHER | RESULT, &group) || !axis_of(x, v, first, &a) ||
        !axis_of(x, v, second, &b) || !join(x, &group, which == CONV_W ? &a : &b))
        return false;
    t->type = v->sym->type;
    t->dim[0] = a.extent;
    t->dim[1] = b.extent;
    t->stride[0] = a.stride;
    t->stride[1] = b.stride;
    x->out->sym[which] = v->sym;
    x->out->offset[which] = v->offset;
    return true;
}

static bool heads(struct conv_finder *x)
{
    /* who has the images, the channels of x, and the filters, by kind */
    static const unsigned image[] = {BOTH | RESULT, BOTH | RESULT, BOTH | OTHER};
    static const unsigned channel[] = {BOTH | OTHER, OTHER | RESULT, BOTH | RESULT};
    static const unsigned filter[] = {OTHER | RESULT, BOTH | OTHER, OTHER | RESULT};
    const enum conv_kind k = x->kind;
    const struct view *of_x = k == CONV_DATA ? &x->result : &x->both;
    const struct view *of_w = k == CONV_FILTER ? &x->result : &x->other;
    const struct view *of_y = k == CONV_FORWARD ? &x->result
                              : k == CONV_DATA  ? &x->both
                                                : &x->other;
    struct axis a, b;
    const struct view *const pair[3][2] = {{of_x, of_y}, {of_x, of_w}, {of_y, of_w}};
    const unsigned who[3] = {image[k], channel[k], filter[k]};
    for (int i = 0; i < 3; i++)
        if (!axis_of(x, pair[i][0], who[i], &a) || !axis_of(x, pair[i][1], who[i], &b) ||
            !same_order(&a, &b))
            return fail(x, "the factors have their indices in different orders");
    return head(x, CONV_X, of_x, image[k], channel[k]) &&
           head(x, CONV_W, of_w, filter[k], channel[k]) &&
           head(x, CONV_Y, of_y, image[k], filter[k]);
}

/* ---- places ---- */

/* The extent of an index, and its stride in a view of which it is a subscript. */
static bool plain_place(struct conv_finder *x, const struct view *v,
                        const struct lang_symbol *index, uint64_t *n, uint64_t *stride)
{
    *n = *stride = 1;
    if (!index)
        return true;
    const int k = find(v, index);
    if (k < 0 || !extent_of(x, index, n))
        return false;
    *stride = v->stride[k];
    return true;
}

/* How many windows begin in an image of h elements with so many zeros in front and behind. */
static int64_t windows(const struct place *q, int64_t h, int64_t pre, int64_t post, int64_t r)
{
    const int64_t room = h + pre + post - (r - 1) * q->dilation - 1;
    return room < 0 ? 0 : room / q->stride + 1;
}

/* As many zeros behind an image as in front of it, where that gives the same, as engines like it;
 * else what the last window needs, and where that is less than none, the image ends earlier. */
static bool settle_place(struct conv_finder *x, unsigned at, int64_t *h, int64_t r, int64_t o)
{
    struct conv_problem *p = &x->out->problem;
    const struct place *q = &x->place[at];
    if (q->pre < 0 && x->kind == CONV_DATA)
        return fail(x, "cuDNN has no border below 0");
    if (q->pre < 0) {
        x->out->offset[CONV_X] += (uint64_t)-q->pre * x->both.stride[q->dim];
        *h += q->pre;
    }
    const int64_t pre = q->pre < 0 ? 0 : q->pre;
    int64_t post = (o - 1) * q->stride + (r - 1) * q->dilation + 1 - *h - pre;
    if (windows(q, *h, pre, pre, r) == o)
        post = pre;
    else if (windows(q, *h, pre, 0, r) == o)
        post = 0;
    if (post < 0 && x->kind == CONV_DATA)
        return fail(x, "the result is larger than cuDNN's would be");
    *h += post < 0 ? post : 0;
    p->pre[at] = pre;
    p->post[at] = post < 0 ? 0 : post;
    p->stride[at] = q->stride;
    p->dilation[at] = q->dilation;
    return *h >= 1;
}

static bool settle_places(struct conv_finder *x)
{
    struct conv_tensor *t = x->out->problem.tensor;
    for (unsigned k = 0; k < x->nplace; k++) {
        const struct place *q = &x->place[k];
        const struct view *of_w = x->kind == CONV_FILTER ? &x->result : &x->other;
        const struct view *of_y = x->kind == CONV_FORWARD ? &x->result : &x->other;
        const unsigned at = 2 + k;
        struct conv_tensor *long_one = &t[x->kind == CONV_DATA ? CONV_Y : CONV_X];
        struct conv_tensor *plain = &t[x->kind == CONV_DATA ? CONV_X : CONV_Y];
        long_one->dim[at] = x->both.extent[q->dim];
        long_one->stride[at] = x->both.stride[q->dim];
        if (!plain_place(x, of_w, q->window, &t[CONV_W].dim[at], &t[CONV_W].stride[at]) ||
            !plain_place(x, x->kind == CONV_DATA ? &x->result : of_y, q->at, &plain->dim[at],
                         &plain->stride[at]))
            return false;
        int64_t h = (int64_t)t[CONV_X].dim[at];
        if (!settle_place(x, k, &h, (int64_t)t[CONV_W].dim[at], (int64_t)t[CONV_Y].dim[at]))
            return false;
        t[CONV_X].dim[at] = (uint64_t)h;
    }
    return true;
}

bool convolution_channels_last(const struct conv_problem *p, const struct conv_tensor *t)
{
    uint64_t places = 1;
    for (unsigned k = 0; k < p->spatial; k++)
        places *= t->dim[2 + k];
    return t->dim[1] > 1 && places > 1 && t->stride[1] == 1;
}

/* Libraries have 2 dimensions and more: one of 1 comes first. */
static void lift(struct conv_problem *p)
{
    for (int k = 0; k < CONV_OPERANDS; k++) {
        struct conv_tensor *t = &p->tensor[k];
        t->dim[3] = t->dim[2];
        t->stride[3] = t->stride[2];
        t->dim[2] = 1;
        t->stride[2] = t->dim[3] * t->stride[3];
    }
    p->pre[1] = p->pre[0];
    p->post[1] = p->post[0];
    p->stride[1] = p->stride[0];
    p->dilation[1] = p->dilation[0];
    p->pre[0] = p->post[0] = 0;
    p->stride[0] = p->dilation[0] = 1;
    p->spatial = 2;
}

/* An axis that an operand lacks gets the stride that it would have in the images' layout. */
static void fill_strides(struct conv_problem *p)
{
    for (int k = 0; k < CONV_OPERANDS; k++) {
        struct conv_tensor *t = &p->tensor[k];
        const uint64_t outermost = t->dim[2] * t->stride[2];
        if (t->stride[1] == 0)
            t->stride[1] = convolution_channels_last(p, &p->tensor[CONV_X]) ? 1 : outermost;
        if (t->stride[0] == 0)
            t->stride[0] = t->dim[1] * (t->stride[1] > outermost ? t->stride[1] : outermost);
    }
}

static bool settle_types(struct conv_finder *x)
{
    struct conv_problem *p = &x->out->problem;
    const enum dtype a = x->both.sym->type, b = x->other.sym->type, c = x->result.sym->type;
    if (a != b || (a != DT_F16 && a != DT_BF16 && a != DT_F32))
        return fail(x,
                    arena_printf(x->f.a, "cuDNN is asked for f16, bf16 and f32, not for %s and %s",
                                 dtype_name(a), dtype_name(b)));
    if (c != a && c != DT_F32)
        return fail(x, arena_printf(x->f.a, "cuDNN has no results of %s here", dtype_name(c)));
    p->tf32 = x->both.tf32 && x->other.tf32;
    return true;
}

/* ---- the whole ---- */

static bool try_sum(struct conv_finder *x, const struct lang_expr *e)
{
    const struct lang_expr *term = unconditioned(x, e->args[0]);
    double terms = 1;
    if (!formula_is_binary(term, OP_MUL) || !result_view(x) ||
        !factor_of(x, term->args[0], &x->both) || !factor_of(x, term->args[1], &x->other))
        return false;
    if (!is_sum(&x->both)) {
        const struct view v = x->both;
        x->both = x->other;
        x->other = v;
    }
    x->sum = e;
    if (!is_sum(&x->both))
        return false;
    const bool good = find_places(x);
    x->out->is_found = good || x->out->why;
    struct conv_problem *p = &x->out->problem;
    *p = (struct conv_problem){.kind = x->kind, .spatial = x->nplace};
    if (good && (x->both.pads || x->other.pads))
        return fail(x, "cuDNN pads with zeros");
    if (!good || !settle_types(x) || !heads(x) || !settle_places(x))
        return false;
    fill_strides(p);
    if (p->spatial == 1)
        lift(p);
    for (unsigned k = 0; k < p->spatial + 2; k++)
        terms *= (double)p->tensor[CONV_Y].dim[k] * (double)(k ? p->tensor[CONV_W].dim[k] : 1);
    x->out->terms = terms;
    return true;
}

/* A sum that is reduced once more is not the result. */
static bool walk(struct conv_finder *x, const struct lang_expr *e)
{
    if (e->kind == E_REDUCE)
        return e->reduce == RED_SUM && try_sum(x, e);
    for (uint32_t k = 0; k < e->nargs; k++)
        if (walk(x, e->args[k]))
            return true;
    return false;
}

struct convolution convolution_find(const struct attention_at *at)
{
    struct convolution out = {0};
    struct attention unused = {0};
    struct conv_finder x = {.f = {.at = at, .a = at->a, .x = &unused}, .out = &out};
    const struct lang_equations *all = spec_oracle(at->s);
    for (size_t k = 0; all && k < all->n; k++) {
        x.eq = formula_output_equation(all, k);
        x.f.nodes = 0;
        if (!x.eq)
            continue;
        const struct lang_expr *e = formula_expand(&x.f, x.eq->rhs, NULL);
        if (walk(&x, e)) {
            out.why = NULL;
            out.plain = formula_bare(e) == x.sum && all->n == 1;
            return out;
        }
    }
    if (!out.why)
        out.why =
            "the spec is no convolution: a sum of x[.., i * s + u * t - p, ..] * w[.., u, ..]";
    return out;
}

enum conv_operand convolution_result(const struct conv_problem *p)
{
    return p->kind == CONV_FORWARD ? CONV_Y : p->kind == CONV_DATA ? CONV_X : CONV_W;
}

uint64_t convolution_groups(const struct conv_problem *p)
{
    return p->tensor[CONV_X].dim[1] / p->tensor[CONV_W].dim[1];
}
