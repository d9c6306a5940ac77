/* What part of a buffer a view is, for the numbers at hand. */
#include <config.h>

#include <inttypes.h>

#include "run/program.h"

struct viewing {
    struct program *p;
    const struct contract_view *v;
    const struct buffer *whole;
    uint64_t at; /* elements */
    uint32_t rank;
    uint64_t dim[BUFFER_RANK];
};

/* "u[t, 0..n]" */
static const char *view_text(struct viewing *w)
{
    struct buf out = buf_in(w->p->r->arena);
    lang_print_view(w->v->part, &out);
    return buf_text(&out);
}

static const char *whole_text(struct viewing *w)
{
    struct buf out = buf_in(w->p->r->arena);
    buffer_print_type(w->whole, &out);
    return buf_text(&out);
}

/* "; t is 3 and n is 7" */
static const char *because(struct viewing *w, const struct lang_expr *e)
{
    const char *values = e ? run_values_text(w->p->r, e) : "";
    return *values ? arena_printf(w->p->r->arena, "; %s", values) : "";
}

static bool no_element(struct viewing *w, const struct lang_subscript *sub, int64_t at,
                       uint64_t dim)
{
    return diag_error(w->p->r->d, sub->at->span,
                      "'%s' is %s, and subscript %" PRId64 " of '%s' is not below %" PRIu64 "%s",
                      w->v->part->name, whole_text(w), at, view_text(w), dim, because(w, sub->at));
}

static bool no_range(struct viewing *w, const struct lang_subscript *sub, int64_t low, int64_t high,
                     uint64_t dim)
{
    struct diags *d = w->p->r->d;
    const struct span span = sub->at ? sub->at->span : sub->end ? sub->end->span : w->v->span;
    if (high < low)
        return diag_error(d, span,
                          "range %" PRId64 "..%" PRId64 " of '%s' ends before it begins%s%s", low,
                          high, view_text(w), because(w, sub->at), because(w, sub->end));
    return diag_error(d, span,
                      "'%s' is %s, and range %" PRId64 "..%" PRId64
                      " of '%s' is not within 0..%" PRIu64 "%s%s",
                      w->v->part->name, whole_text(w), low, high, view_text(w), dim,
                      because(w, sub->at), because(w, sub->end));
}

static bool take_subscript(struct viewing *w, const struct lang_subscript *sub, uint64_t dim,
                           uint64_t stride)
{
    struct run *r = w->p->r;
    int64_t low = 0, high = (int64_t)dim;
    if ((sub->at && !run_eval(r, sub->at, &low)) || (sub->end && !run_eval(r, sub->end, &high)))
        return false;
    if (!sub->is_range && (low < 0 || low >= (int64_t)dim))
        return no_element(w, sub, low, dim);
    if (sub->is_range && (low < 0 || high < low || high > (int64_t)dim))
        return no_range(w, sub, low, high, dim);
    w->at += (uint64_t)low * stride;
    if (sub->is_range)
        w->dim[w->rank++] = (uint64_t)(high - low);
    return true;
}

/* Elements from one to the next along the dimension. */
static uint64_t stride_of(const struct buffer *b, uint32_t dim)
{
    uint64_t n = 1;
    for (uint32_t i = dim + 1; i < b->rank; i++)
        n *= b->dim[i];
    return n;
}

static bool take_subscripts(struct viewing *w)
{
    const struct lang_view *part = w->v->part;
    for (uint32_t i = 0; i < w->whole->rank; i++)
        if (i >= part->nsub)
            w->dim[w->rank++] = w->whole->dim[i];
        else if (!take_subscript(w, &part->sub[i], w->whole->dim[i], stride_of(w->whole, i)))
            return false;
    return true;
}

/* Behind 'as': other dimensions of as many elements. */
static bool take_shape(struct viewing *w)
{
    const struct lang_view *part = w->v->part;
    struct diags *d = w->p->r->d;
    uint64_t have = 1, wanted = 1;
    for (uint32_t i = 0; i < w->rank; i++)
        have *= w->dim[i];
    if (part->nextent > BUFFER_RANK)
        return diag_error(d, w->v->span, "'%s' has more than %d dimensions", view_text(w),
                          BUFFER_RANK);
    for (w->rank = 0; w->rank < part->nextent; w->rank++) {
        const struct lang_expr *e = part->extent[w->rank];
        int64_t n;
        if (!run_eval(w->p->r, e, &n))
            return false;
        if (n < 0)
            return diag_error(d, e->span, "an extent of '%s' is %" PRId64 "%s", view_text(w), n,
                              because(w, e));
        w->dim[w->rank] = (uint64_t)n;
        if (__builtin_mul_overflow(wanted, (uint64_t)n, &wanted))
            wanted = UINT64_MAX;
    }
    if (wanted == have)
        return true;
    struct buf shape = buf_in(w->p->r->arena);
    shape_print(w->rank, w->dim, &shape);
    return diag_error(d, w->v->span,
                      "'%s' has %" PRIu64 " elements, which are not those of %s: '%s' is %s",
                      view_text(w), have, buf_text(&shape), part->name, whole_text(w));
}

bool program_view(struct program *p, const struct contract_view *v, size_t buffer,
                  struct program_part *out)
{
    struct viewing w = {.p = p, .v = v, .whole = &run_buffer(p->r, buffer)->host};
    const enum dtype type = w.whole->type;
    const unsigned bits = dtype_bits(type);
    if (!take_subscripts(&w) || (v->part->is_shaped && !take_shape(&w)))
        return false;
    if (w.at * bits % 8)
        return diag_error(p->r->d, v->span,
                          "'%s' begins at element %" PRIu64
                          ", in the middle of a byte: two elements of %s share one",
                          view_text(&w), w.at, dtype_name(type));
    if (!buffer_shape(&out->shape, type, w.rank, w.dim)) {
        struct buf shape = buf_in(p->r->arena);
        shape_print(w.rank, w.dim, &shape);
        return diag_error(p->r->d, v->span, "'%s' can't be %s%s: %s", view_text(&w),
                          dtype_name(type), buf_text(&shape),
                          bits < 8 ? "the last dimension of a packed type is even"
                                   : "it does not fit in memory");
    }
    out->at = w.at * bits / 8;
    return true;
}
