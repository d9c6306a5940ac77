/* Operands of which nothing that is multiplied lies side by side (matmul.h): an image's channels
 * are apart by a whole plane of pixels.
 *
 *     y[b, f, i, j] = sum[d, u, v](pad(x[b, d, i + u - 1, j + v - 1], 0) * w[f, d, u, v])
 *
 * A launch of its own turns such a buffer into a temp, in which they do, and another the filters,
 * so that both have their terms in the same order. What is then read is a product of operands that
 * are copied as they lie:
 *
 *     X[b, h, w, d] = pad(x[b, d, h, w], 0)     W[f, u, v, d] = pad(w[f, d, u, v], 0)
 *     sum[u, v, d](pad(X[b, i + u - 1, j + v - 1, d], 0) * W[f, u, v, d])
 *
 * The last dimension of both is a whole number of pieces of 16 bytes: what is added to it is 0.
 * Where that would be most of it, of the 3 channels of an image, a window's row of pixels comes to
 * lie there as a whole, once for each window that it is in:
 *
 *     X[b, h, j, t] = t < 21 ? pad(x[b, t % 3, h, 2 * j + t / 3 - 3], 0) : 0
 *     sum[u, t](pad(X[b, 2 * i + u - 3, j, t], 0) * W[f, u, t])
 *
 * What rounds an element to tf32, or to a narrower type, does so while it is turned. The sum that
 * reads the temps stands for the other one from then on (cg_view).
 */
#include <config.h>

#include "lower/matmul/matmul.h"

enum {
    PIECE = 16, /* bytes */
    MOST_SUMS = MATMUL_SUMS,
    MOST_TAPS = 64,
};

/* A sum's factor: an element of a buffer, and what is done to it. */
struct factor {
    const struct lang_expr *e; /* the read, or the rounding of it that the temp's elements have */
    const struct lang_expr *read;
    struct lang_expr *to; /* what stands for e */
};

/* A sum of products of two factors. x is a window, or steps over elements; d is the range along
 * which x has one element beside the other in each of them. v is the range of a window's row, if
 * that comes to lie beside d: j, of the result, and v are what one subscript of x is made of. */
struct turning {
    struct cg *g;
    struct lower_turned *out;
    const struct lang_equation *eq;
    const struct lang_expr *sum; /* of eq */
    struct factor factor[2], *x, *w;
    uint32_t n;
    uint32_t at;                  /* d among the subscripts of x, */
    uint32_t along;               /* and among the sum's ranges */
    struct lang_symbol *d, *wide; /* wide: it has a whole number of pieces */
    bool rows;                    /* rows of windows are tried */
    struct lang_symbol *v, *j;    /* NULL: none is */
    uint32_t row, taps;           /* j and v's subscript, and v among the sum's ranges */
    int64_t channels, terms;      /* d's extent, and the product of d's and v's */
    bool any_rows;                /* there was such a sum */
};

/* ---- factors --------------------------------------------------------------------------------- */

static bool is_memory(const struct turning *t, const struct lang_expr *e)
{
    return e->kind == E_INDEX && !cg_is_defined(t->g, e->sym) && e->sym->mode != MODE_INOUT &&
           dtype_bits(e->sym->type) >= 8 && e->nargs == e->sym->rank && e->nargs < VARIANT_RANK;
}

static bool is_zero(const struct lang_expr *e)
{
    e = inspect_strip(e);
    return (e->kind == E_INT && e->ival == 0) ||
           (e->kind == E_FLOAT && e->fval == 0 && !__builtin_signbit(e->fval));
}

/* Is e made of products, conversions and two reads of memory alone? Then it is 0 where they are. */
static bool find_factors(struct turning *t, const struct lang_expr *e)
{
    if (e->kind == E_BINARY && e->op == OP_MUL)
        return find_factors(t, e->args[0]) && find_factors(t, e->args[1]);
    const struct lang_expr *read = e;
    if (e->kind == E_CAST || inspect_rounds_to_tf32(e))
        read = inspect_strip(e->args[0]);
    if (read->kind != E_INDEX)
        return e->kind == E_CAST && find_factors(t, e->args[0]);
    if (t->n == 2 || !is_memory(t, read) || (read->pad && !is_zero(read->pad)))
        return false;
    const bool here = inspect_rounds_to_tf32(e) || dtype_bits(e->type) < dtype_bits(read->type);
    t->factor[t->n++] = (struct factor){.e = here ? e : read, .read = read};
    return true;
}

/* The number of the sum's range that the subscript is by itself; nindex: none. */
static uint32_t which(const struct turning *t, const struct lang_expr *sub)
{
    uint32_t k = 0;
    while (k < t->sum->nindex && !inspect_is_index(sub, t->sum->index[k]))
        k++;
    return k;
}

/* The one index of e that is one of the sum's, or that is none, and how many others there are. */
struct meeting {
    struct lang_symbol *of_sum, *other;
    uint32_t more;
};

static void meet(const struct turning *t, const struct lang_expr *e, struct meeting *m)
{
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX) {
        struct lang_symbol **to = which(t, e) < t->sum->nindex ? &m->of_sum : &m->other;
        m->more += *to && *to != e->sym;
        *to = e->sym;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        meet(t, e->args[i], m);
}

/* Is subscript i made of an index j of the result and of a range v of the sum that no other one is
 * made of? */
static bool is_row(struct turning *t, const struct lang_expr *read, uint32_t i)
{
    struct meeting m = {0};
    int64_t n;
    meet(t, read->args[i], &m);
    if (m.more || !m.of_sum || !m.other || m.other->low || !inspect_at_launch(m.other->dims[0]) ||
        !lang_const_int(m.of_sum->dims[0], &n) || n < 2 || n > MOST_TAPS)
        return false;
    for (uint32_t k = 0; k < read->nargs; k++)
        if (k != i && inspect_mentions(read->args[k], 1, &m.of_sum))
            return false;
    t->v = m.of_sum;
    t->j = m.other;
    t->row = i;
    t->taps = 0;
    while (t->sum->index[t->taps] != t->v)
        t->taps++;
    t->terms = t->channels * n;
    return true;
}

/* Has d so few elements that a piece is more, and does a row of each window have several pixels? */
static bool has_rows(struct turning *t, const struct factor *f)
{
    t->v = t->j = NULL;
    if (!t->rows || !lang_const_int(t->d->dims[0], &t->channels) ||
        t->channels * dtype_bits(f->e->type) >= PIECE * 8)
        return false;
    for (uint32_t i = f->read->nargs; i-- > 0 && !t->v;)
        if (i != t->at && is_row(t, f->read, i))
            t->any_rows = true;
    return t->v != NULL;
}

/* Is it a window, or does it step over elements, and its last subscript is none of the sum's
 * ranges, but another is? Or is a row of it better brought together? */
static bool is_window(struct turning *t, const struct factor *f)
{
    const struct lang_expr *read = f->read;
    uint32_t n = 0;
    bool moves = false;
    for (uint32_t i = 0; i < read->nargs; i++) {
        const uint32_t k = which(t, read->args[i]);
        if (k < t->sum->nindex) {
            t->at = i;
            t->along = k;
            n++;
        }
        moves |= inspect_strip(read->args[i])->kind != E_NAME;
    }
    if (n != 1 || !moves)
        return false;
    t->d = t->sum->index[t->along];
    return inspect_same_expr(t->d->dims[0], read->sym->dims[t->at]) &&
           (has_rows(t, f) || t->at + 1 < read->nargs);
}

static bool is_at_launch(const struct turning *t)
{
    for (uint32_t k = 0; k < t->sum->nindex; k++)
        if (t->sum->index[k]->low || !inspect_at_launch(t->sum->index[k]->dims[0]))
            return false;
    return t->sum->nindex <= MOST_SUMS;
}

static bool find_sides(struct turning *t)
{
    t->n = 0;
    if (t->sum->reduce != RED_SUM || !is_at_launch(t) || !find_factors(t, t->sum->args[0]) ||
        t->n != 2)
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (is_window(t, &t->factor[i])) {
            t->x = &t->factor[i];
            t->w = &t->factor[1 - i];
            return t->x->e->type == t->w->e->type;
        }
    return false;
}

/* ---- temps ----------------------------------------------------------------------------------- */

static struct lang_symbol *index_of(struct cg *g, const char *name, struct lang_expr *extent,
                                    struct span s)
{
    struct lang_symbol *index = ARENA_NEW(g->a, struct lang_symbol);
    *index = (struct lang_symbol){.kind = SYM_INDEX,
                                  .name = name,
                                  .span = s,
                                  .type = DT_I64,
                                  .dims = ARENA_ARRAY(g->a, 1, struct lang_expr *)};
    index->dims[0] = extent;
    return index;
}

static struct lang_expr *zero(struct cg *g, enum dtype type, struct span s)
{
    struct lang_expr *z = ARENA_NEW(g->a, struct lang_expr);
    *z = (struct lang_expr){
        .kind = dtype_is_float(type) ? E_FLOAT : E_INT, .type = type, .span = s, .height = 1};
    return z;
}

static struct lang_expr *read_of(struct cg *g, struct lang_symbol *sym, uint32_t n, struct span s)
{
    struct lang_expr *e = ARENA_NEW(g->a, struct lang_expr);
    *e = (struct lang_expr){.kind = E_INDEX,
                            .type = sym->type,
                            .span = s,
                            .name = sym->name,
                            .sym = sym,
                            .nargs = n,
                            .args = ARENA_ARRAY(g->a, n, struct lang_expr *),
                            .height = 2};
    return e;
}

/* The factor with another read in it. */
static struct lang_expr *with_read(struct cg *g, const struct factor *f, struct lang_expr *read)
{
    if (f->e == f->read)
        return read;
    struct lang_expr *e = ARENA_NEW(g->a, struct lang_expr);
    *e = *f->e;
    e->args = ARENA_ARRAY(g->a, 1, struct lang_expr *);
    e->args[0] = read;
    e->height = read->height + 1;
    return e;
}

/* An equation of a new intermediate, of the factor's type: its indices, and nothing yet to its
 * right. */
static struct lang_equation *new_equation(struct turning *t, const struct factor *f, uint32_t n,
                                          struct lang_symbol *const *index)
{
    struct cg *g = t->g;
    struct lang_symbol *sym = ARENA_NEW(g->a, struct lang_symbol);
    struct lang_equation *q = ARENA_NEW(g->a, struct lang_equation);
    *sym = (struct lang_symbol){.kind = SYM_TENSOR,
                                .name = f->read->sym->name,
                                .span = f->e->span,
                                .type = f->e->type,
                                .rank = n,
                                .dims = ARENA_ARRAY(g->a, n, struct lang_expr *),
                                .def = q};
    *q = (struct lang_equation){.span = f->e->span,
                                .sym = sym,
                                .nindex = n,
                                .index = ARENA_ARRAY(g->a, n, struct lang_symbol *)};
    for (uint32_t i = 0; i < n; i++) {
        q->index[i] = index[i];
        sym->dims[i] = index[i]->dims[0];
    }
    return q;
}

/* A temp of the same elements that was made for another sum takes the place of q. */
static struct lang_symbol *same_temp(struct turning *t, struct lang_equation *q)
{
    struct lower_turned *out = t->out;
    for (uint32_t i = 0; i < out->n; i++)
        if (inspect_same_shape(out->eq[i]->sym, q->sym) && matmul_same(out->eq[i]->rhs, q->rhs))
            return out->eq[i]->sym;
    if (out->n == LOWER_TURNED)
        return NULL;
    out->eq[out->n++] = q;
    return q->sym;
}

/* What rounds to tf32 leaves nothing to cut off. */
static struct lang_expr *rounded(struct cg *g, const struct factor *f, struct lang_expr *read)
{
    if (!inspect_rounds_to_tf32(f->e))
        return read;
    struct lang_expr *e = with_read(g, f, read);
    e->fn = FN_TF32_RZ;
    e->name = "tf32_rz";
    return e;
}

/* e with d as `wide`, or a row's d and v as its parts, and with j as another. */
static struct lang_expr *of_wide(const struct turning *t, struct lang_expr *e,
                                 struct lang_symbol *wide, struct lang_symbol *j)
{
    struct cg *g = t->g;
    const struct lang_symbol *index = e->kind == E_NAME ? e->sym : NULL;
    if (index && t->v && index == t->j)
        return inspect_index_name(g, j, e->span);
    if (index && (index == t->d || (t->v && index == t->v))) {
        struct lang_expr *w = inspect_index_name(g, wide, e->span);
        return t->v
                   ? matmul_binary(g, index == t->d ? OP_MOD : OP_DIV, w, lx_int(g->a, t->channels))
                   : w;
    }
    struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
    *c = *e;
    c->args = ARENA_ARRAY(g->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++) {
        c->args[i] = of_wide(t, e->args[i], wide, j);
        c->height = c->args[i]->height >= c->height ? c->args[i]->height + 1 : c->height;
    }
    return c;
}

/* The temp's element: that of the buffer, and 0 behind a row's last term. */
static struct lang_expr *element_of(struct turning *t, const struct factor *f,
                                    struct lang_expr *from, struct lang_symbol *wide)
{
    struct cg *g = t->g;
    struct lang_expr *e = with_read(g, f, from);
    int64_t n;
    if (!t->v || (lang_const_int(wide->dims[0], &n) && n == t->terms))
        return e;
    struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
    *c = (struct lang_expr){.kind = E_COND,
                            .type = e->type,
                            .span = e->span,
                            .nargs = 3,
                            .args = ARENA_ARRAY(g->a, 3, struct lang_expr *),
                            .height = e->height + 2};
    c->args[0] =
        matmul_binary(g, OP_LT, inspect_index_name(g, wide, e->span), lx_int(g->a, t->terms));
    c->args[0]->type = DT_BOOL;
    c->args[1] = e;
    c->args[2] = zero(g, e->type, e->span);
    return c;
}

/* X: the window's buffer, whose dimension d, or a row of each window, comes last. */
static bool turn_window(struct turning *t)
{
    struct cg *g = t->g;
    const struct lang_expr *old = t->x->read;
    const struct lang_symbol *buffer = old->sym;
    const uint32_t n = old->nargs;
    struct lang_symbol *index[VARIANT_RANK];
    struct lang_expr *from = read_of(g, old->sym, n, old->span);
    for (uint32_t i = 0, k = 0; i < n; i++) {
        const bool is_row = t->v && i == t->row;
        const char *name = is_row ? t->j->name : arena_printf(g->a, "%c%u", 'i', i);
        struct lang_expr *extent = is_row ? t->j->dims[0] : buffer->dims[i];
        struct lang_symbol **s = &index[i == t->at ? n - 1 : k++];
        *s = i == t->at ? index_of(g, t->d->name, t->wide->dims[0], old->span)
                        : index_of(g, name, extent, old->span);
        from->args[i] = inspect_index_name(g, *s, old->span);
    }
    if (t->v) {
        struct lang_symbol *wide = index[n - 1], *j = index[t->row - (t->row > t->at)];
        from->args[t->at] = of_wide(t, old->args[t->at], wide, j);
        from->args[t->row] = of_wide(t, old->args[t->row], wide, j);
    }
    if (t->wide != t->d && (!t->v || old->pad))
        from->pad = zero(g, old->type, old->span);
    struct lang_equation *q = new_equation(t, t->x, n, index);
    q->rhs = element_of(t, t->x, from, index[n - 1]);
    struct lang_symbol *temp = same_temp(t, q);
    if (!temp)
        return false;
    struct lang_expr *read = read_of(g, temp, n, old->span);
    for (uint32_t i = 0, k = 0; i < n; i++)
        if (i != t->at)
            read->args[k++] = t->v && i == t->row ? inspect_index_name(g, t->j, old->span)
                                                  : old->args[i];
    read->args[n - 1] = inspect_index_name(g, t->wide, old->span);
    read->height = old->height;
    read->pad = old->pad ? zero(g, temp->type, old->span) : NULL;
    t->x->to = rounded(g, t->x, read);
    return true;
}

/* The indices of e that are none of the sum's, each once; false: there are too many. */
static bool find_indices(const struct turning *t, const struct lang_expr *e,
                         struct lang_symbol **index, uint32_t *n)
{
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX && which(t, e) == t->sum->nindex) {
        uint32_t i = 0;
        while (i < *n && index[i] != e->sym)
            i++;
        if (i == *n &&
            (*n == VARIANT_RANK - MOST_SUMS || e->sym->low || !inspect_at_launch(e->sym->dims[0])))
            return false;
        index[i] = e->sym;
        *n += i == *n;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!find_indices(t, e->args[i], index, n))
            return false;
    return true;
}

/* The equation's order is that of rows which are then one axis. */
static void sort_indices(const struct turning *t, struct lang_symbol **index, uint32_t n)
{
    uint32_t done = 0;
    for (uint32_t i = 0; i < t->eq->nindex; i++)
        for (uint32_t k = done; k < n; k++)
            if (index[k] == t->eq->index[i]) {
                index[k] = index[done];
                index[done++] = t->eq->index[i];
            }
}

/* W: the other factor's elements, those of d, or of a row, side by side. Other ranges keep the
 * order that they have in its buffer. */
static bool turn_other(struct turning *t)
{
    struct cg *g = t->g;
    const struct lang_expr *old = t->w->read;
    struct lang_symbol *index[VARIANT_RANK];
    uint32_t n = 0, seen = 1u << t->along | (t->v ? 1u << t->taps : 0);
    if (!find_indices(t, old, index, &n))
        return false;
    sort_indices(t, index, n);
    for (uint32_t i = 0; i < old->nargs; i++) {
        const uint32_t k = which(t, old->args[i]);
        if (k < t->sum->nindex && !(seen & 1u << k))
            index[n++] = t->sum->index[k];
        seen |= 1u << k;
    }
    for (uint32_t k = 0; k < t->sum->nindex; k++)
        if (!(seen & 1u << k))
            index[n++] = t->sum->index[k];
    index[n++] = t->wide;
    struct lang_expr *from = read_of(g, old->sym, old->nargs, old->span);
    bool has = t->v != NULL;
    for (uint32_t i = 0; i < old->nargs; i++) {
        has |= inspect_is_index(old->args[i], t->d) &&
               inspect_same_expr(old->sym->dims[i], t->d->dims[0]);
        from->args[i] = of_wide(t, old->args[i], t->wide, t->j);
    }
    from->height = old->height + 2;
    from->pad = old->pad                   ? old->pad
                : !t->v && t->wide != t->d ? zero(g, old->type, old->span)
                                           : NULL;
    struct lang_equation *q = new_equation(t, t->w, n, index);
    q->rhs = element_of(t, t->w, from, t->wide);
    struct lang_symbol *temp = has ? same_temp(t, q) : NULL;
    if (!temp)
        return false;
    struct lang_expr *read = read_of(g, temp, n, old->span);
    for (uint32_t i = 0; i < n; i++)
        read->args[i] = inspect_index_name(g, index[i], old->span);
    t->w->to = rounded(g, t->w, read);
    return true;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static struct lang_expr *copy(const struct turning *t, const struct lang_expr *e)
{
    for (uint32_t i = 0; i < 2; i++)
        if (e == t->factor[i].e)
            return t->factor[i].to;
    struct lang_expr *c = ARENA_NEW(t->g->a, struct lang_expr);
    *c = *e;
    c->args = ARENA_ARRAY(t->g->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++) {
        c->args[i] = copy(t, e->args[i]);
        c->height = c->args[i]->height >= c->height ? c->args[i]->height + 1 : c->height;
    }
    return c;
}

/* d, or a range of whole pieces in its place, or in that of a row. Where d's extent is open there
 * are variants for those that are, and turning copies tiles. */
static struct lang_symbol *widened(struct turning *t)
{
    struct cg *g = t->g;
    const int64_t by = PIECE * 8 / dtype_bits(t->x->e->type);
    int64_t n;
    if (t->v)
        return index_of(g, arena_printf(g->a, "%s_%s", t->v->name, t->d->name),
                        lx_int(g->a, (t->terms + by - 1) / by * by), t->d->span);
    struct lang_expr *extent = t->d->dims[0];
    if (!lang_const_int(extent, &n) || n % by == 0)
        return t->d;
    extent = lx_mul_int(g->a, lx_ceil_div_int(g->a, extent, by), by);
    return index_of(g, t->d->name, extent, t->d->span);
}

/* Turns the sum's factors, if they are such. */
static void turn(struct turning *t)
{
    struct cg *g = t->g;
    if (!find_sides(t))
        return;
    const uint32_t before = t->out->n;
    t->wide = widened(t);
    if (!turn_window(t) || !turn_other(t)) {
        t->out->n = before;
        return;
    }
    struct lang_expr *sum = copy(t, t->sum);
    sum->index = ARENA_ARRAY(g->a, sum->nindex, struct lang_symbol *);
    sum->nindex = 0;
    for (uint32_t k = 0; k < t->sum->nindex; k++)
        if (!t->v || k != t->taps)
            sum->index[sum->nindex++] = k == t->along ? t->wide : t->sum->index[k];
    *VEC_PUSH(g->a, &g->outlined) = (struct cg_outlined){.reduce = t->sum, .read = sum};
}

/* All sums of e, of equation eq, and of the equations that it reads. */
static void walk(struct turning *t, const struct lang_equation *eq, const struct lang_expr *e)
{
    e = cg_view(t->g, e);
    if (e->kind == E_REDUCE) {
        t->eq = eq;
        t->sum = e;
        turn(t);
        return;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        walk(t, eq, e->args[i]);
    const bool tensor = e->kind == E_INDEX || (e->kind == E_NAME && e->sym->kind == SYM_TENSOR);
    if (tensor && cg_is_defined(t->g, e->sym))
        walk(t, e->sym->def, e->sym->def->rhs);
}

bool matmul_turn_sums(struct cg *g, const struct lower_stage *s, bool rows,
                      struct lower_turned *out)
{
    struct turning t = {.g = g, .out = out, .rows = rows};
    out->n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        walk(&t, s->eq[i], s->eq[i]->rhs);
    return t.any_rows;
}
