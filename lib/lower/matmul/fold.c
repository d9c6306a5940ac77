/* Sums over several ranges, and rows and columns of several axes, as one of each (matmul.h).
 *
 *     y[b, i, j, f] = sum[u, v, d](pad(x[b, i + u - 1, j + v - 1, d], 0) * w[f, u, v, d])
 *
 * is a product whose rows are r = (b, i, j) and whose terms are t = (u, v, d), of
 *
 *     w[f, t]   and   pad(x[r / (h * w), r / w % h + t / c / 3 - 1, ..., t % c], 0)
 *
 * What lies side by side in a buffer stays a subscript of its own; all else reads quotients and
 * rests of r and t. So a convolution is a product with another way to find the left operand, and
 * everything behind that is as for any other.
 */
#include <config.h>

#include "lower/matmul/matmul.h"

/* ---- the order of the terms ------------------------------------------------------------------ */

struct order {
    const struct matmul_normal *n;
    const struct lang_expr *walks; /* a read with a subscript made of a result's axis and a sum's */
    const struct lang_expr *lies;  /* another, in which every range is a subscript by itself */
};

static bool is_of(uint32_t n, struct lang_symbol *const *index, const struct lang_expr *e)
{
    return inspect_mentions(e, n, index);
}

/* Which of the sums' indices is the subscript by itself? nsum: none. */
static uint32_t which(const struct order *o, const struct lang_expr *sub)
{
    uint32_t i = 0;
    while (i < o->n->nsum && !inspect_is_index(sub, o->n->sum[i]))
        i++;
    return i;
}

static void look(struct order *o, const struct lang_expr *e)
{
    uint32_t bare = 0; /* one bit for each of the sums' indices */
    bool walks = false;
    for (uint32_t i = 0; e->kind == E_INDEX && i < e->nargs; i++) {
        walks |= is_of(o->n->nsum, o->n->sum, e->args[i]) &&
                 is_of(o->n->naxis, o->n->axis, e->args[i]);
        bare |= 1u << which(o, e->args[i]) & ((1u << o->n->nsum) - 1);
    }
    if (walks && !o->walks)
        o->walks = e;
    else if (bare == (1u << o->n->nsum) - 1 && !o->lies && e->nargs <= VARIANT_RANK)
        o->lies = e;
    for (uint32_t i = 0; i < e->nargs; i++)
        look(o, e->args[i]);
    if (e->pad)
        look(o, e->pad);
}

/* The order in which terms lie side by side as far as may be: that of the buffer that has all
 * ranges, but for the range along which the elements of the other one lie side by side. That comes
 * last. */
static void order_of(const struct order *o, struct lang_symbol **sum)
{
    const uint32_t n = o->n->nsum;
    uint32_t at = 0, last = n;
    if (o->walks)
        last = which(o, o->walks->args[o->walks->nargs - 1]);
    uint32_t seen = 1u << last;
    for (uint32_t i = 0; o->lies && i < o->lies->nargs; i++) {
        const uint32_t k = which(o, o->lies->args[i]);
        if (k < n && !(seen & 1u << k))
            sum[at++] = o->n->sum[k];
        seen |= 1u << k;
    }
    for (uint32_t k = 0; !o->lies && k < n; k++)
        if (k != last)
            sum[at++] = o->n->sum[k];
    if (last < n)
        sum[at] = o->n->sum[last];
}

static void set_order(struct lang_expr *e, uint32_t n, struct lang_symbol **sum)
{
    if (e->kind == E_REDUCE) {
        e->index = sum;
        e->nindex = n;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        set_order(e->args[i], n, sum);
    if (e->pad)
        set_order(e->pad, n, sum);
}

/* ---- sums ------------------------------------------------------------------------------------ */

void matmul_fold_sums(struct cg *g, struct matmul_normal *n)
{
    struct order o = {.n = n};
    struct lang_symbol **sum = ARENA_ARRAY(g->a, n->nsum, struct lang_symbol *);
    for (uint32_t i = 0; i < n->stage.n; i++)
        look(&o, n->stage.eq[i]->rhs);
    order_of(&o, sum);
    for (uint32_t i = 0; i < n->stage.n; i++)
        set_order(n->stage.eq[i]->rhs, n->nsum, sum);
    memcpy(n->sum, sum, n->nsum * sizeof *sum);
    while (n->nsum > 1) {
        struct lang_symbol *k = map_fold_sums(g, &n->stage, &n->sum[n->nsum - 2]);
        if (!k)
            return;
        n->sum[--n->nsum - 1] = k;
        n->folded = true;
    }
}

/* ---- axes ------------------------------------------------------------------------------------ */

bool matmul_fold_axes(struct cg *g, struct matmul_normal *n, uint32_t left, uint32_t right)
{
    const uint32_t rows = left & ~right, columns = right & ~left, last = n->naxis - 1;
    bool any = false;
    for (uint32_t i = last; i-- > 0;) {
        const uint32_t pair = 3u << i;
        const bool together = (pair & columns) == pair || (i + 1 < last && (pair & rows) == pair);
        any |= together && map_fold(g, &n->stage, i);
    }
    if (any)
        matmul_share_axes(g, n);
    return any;
}

/* ---- images of planes ------------------------------------------------------------------------ */

/* Of tiles of this many pixels, those of the last one of each image that are wasted may be a sixth
 * of all: 28 x 28 is little more than 6 of them. */
enum { PIXELS = 128, WASTED = 6 };

static bool is_worth(const struct lang_symbol *image, const struct lang_symbol *pixel,
                     int64_t *images, int64_t *pixels)
{
    if (!lang_const_int(image->dims[0], images) || !lang_const_int(pixel->dims[0], pixels) ||
        *images < 2 || *pixels < 1 || *images * *pixels > MAP_MOST_SMALL)
        return false;
    const int64_t padded = (*pixels + PIXELS - 1) / PIXELS * PIXELS;
    return (padded - *pixels) * WASTED > padded;
}

/* The equations keep their axes where the list of these changes. */
static void keep_axes(struct cg *g, struct matmul_normal *n)
{
    struct lang_symbol **axis = ARENA_ARRAY(g->a, n->naxis, struct lang_symbol *);
    struct lang_equation *eq = ARENA_ARRAY(g->a, n->stage.n, struct lang_equation);
    const struct lang_equation **list = ARENA_ARRAY(g->a, n->stage.n, const struct lang_equation *);
    memcpy(axis, n->axis, n->naxis * sizeof *axis);
    for (uint32_t i = 0; i < n->stage.n; i++) {
        eq[i] = *n->stage.eq[i];
        eq[i].index = axis;
        list[i] = &eq[i];
    }
    n->stage.eq = list;
}

bool matmul_join_images(struct cg *g, struct matmul_normal *n, uint32_t left, uint32_t right,
                        struct matmul_images *to)
{
    const uint32_t last = n->naxis - 1;
    *to = (struct matmul_images){0};
    for (uint32_t i = 0; i + 1 < last; i++) {
        int64_t images, pixels;
        if (!(right & ~left & 1u << i) || !(left & ~right & ((1u << last) - (2u << i))) ||
            !is_worth(n->axis[i], n->axis[last], &images, &pixels))
            continue;
        struct lang_symbol *both = ARENA_NEW(g->a, struct lang_symbol);
        *both = *n->axis[last];
        both->name = arena_printf(g->a, "%s.%s", n->axis[i]->name, n->axis[last]->name);
        both->dims = ARENA_ARRAY(g->a, 1, struct lang_expr *);
        both->dims[0] = lx_int(g->a, images * pixels);
        *to = (struct matmul_images){
            .axis = i, .image = n->axis[i], .pixel = n->axis[last], .both = both};
        keep_axes(g, n);
        n->axis[last] = both;
        return true;
    }
    return false;
}

/* An image is a quotient of the index that stands for both, and a pixel a rest. */
static struct lang_expr *part_of(struct cg *g, const struct matmul_images *m,
                                 const struct lang_expr *e)
{
    struct lang_expr *whole = ARENA_NEW(g->a, struct lang_expr);
    *whole = *e;
    whole->sym = m->both;
    whole->name = m->both->name;
    return matmul_binary(g, e->sym == m->image ? OP_DIV : OP_MOD, whole, m->pixel->dims[0]);
}

struct lang_expr *matmul_of_images(struct cg *g, const struct matmul_images *m, struct lang_expr *e)
{
    if (e->kind == E_NAME && (e->sym == m->image || e->sym == m->pixel))
        return part_of(g, m, e);
    struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
    *c = *e;
    c->args = ARENA_ARRAY(g->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++) {
        c->args[i] = matmul_of_images(g, m, e->args[i]);
        c->height = c->args[i]->height >= c->height ? c->args[i]->height + 1 : c->height;
    }
    return c;
}
