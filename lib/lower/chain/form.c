/* Finds out what a chain is made of (chain.h). */
#include <config.h>

#include "lower/chain/chain.h"

enum { MOST_NODES = 20000, MOST_DEPTH = 64 };

struct bound {
    const struct lang_symbol *sym;
    struct lang_expr *to;
};

/* A subscript that is read in any case, so that it is in range wherever else it stands. */
struct known {
    const struct lang_expr *subscript, *dim;
};

struct build {
    struct cg *g;
    struct chain_form *f;
    struct buf *why;
    VEC(struct bound) bound;
    uint32_t naxis; /* of the first output: rows and the column */
    struct lang_symbol *axis[CHAIN_AXES];
    struct lang_symbol *c[CHAIN_SCORES]; /* indices of scores, by extent */
    uint32_t nc;
    bool in_stream, in_score;
    bool guarded; /* a condition decides whether it is evaluated */
    bool unsure;  /* or whether what is around it is */
    VEC(struct known) known;
    bool outside; /* and of an intermediate for which elements, so that it may have no such */
    bool stray;   /* what was copied reads elements that may not be there */
    unsigned nodes, depth;
};

/* NULL after saying why not. */
__attribute__((format(printf, 3, 4))) static struct lang_expr *
no(const struct build *x, struct span s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    lower_lacks(x->why, s, "%s", arena_vprintf(x->g->a, fmt, ap));
    va_end(ap);
    return NULL;
}

/* ---- questions ------------------------------------------------------------------------------- */

bool chain_mentions(const struct lang_expr *e, const struct lang_symbol *sym)
{
    if (e->kind == E_NAME && e->sym == sym)
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (chain_mentions(e->args[i], sym))
            return true;
    for (uint32_t i = 0; i < e->nindex; i++)
        if ((e->index[i]->low && chain_mentions(e->index[i]->low, sym)) ||
            chain_mentions(e->index[i]->dims[0], sym))
            return true;
    return e->pad && chain_mentions(e->pad, sym);
}

bool chain_has_kind(const struct lang_expr *e, uint32_t kinds)
{
    bool some = kinds >> e->kind & 1;
    for (uint32_t i = 0; i < e->nargs && !some; i++)
        some = chain_has_kind(e->args[i], kinds);
    return some;
}

bool chain_mentions_score(const struct chain_form *f, const struct lang_expr *e)
{
    for (uint32_t i = 0; i < f->nscore; i++)
        if (chain_mentions(e, f->score[i].sym))
            return true;
    return false;
}

int chain_mentioned_stream(const struct chain_form *f, const struct lang_expr *e)
{
    for (uint32_t i = 0; i < f->nstream; i++)
        if (chain_mentions(e, f->stream[i].sym))
            return (int)i;
    return -1;
}

enum fold_kind chain_fold(const struct chain_stream *s)
{
    return s->reduce == RED_MAX ? FOLD_MAX : s->reduce == RED_MIN ? FOLD_MIN : FOLD_SUM;
}

static const struct bound *find(const struct build *x, const struct lang_symbol *sym)
{
    for (size_t i = x->bound.n; i-- > 0;)
        if (x->bound.v[i].sym == sym)
            return &x->bound.v[i];
    return NULL;
}

/* Does what is written depend on j, which the indices around it may stand for? */
static bool depends_on_j(const struct build *x, const struct lang_expr *e)
{
    e = cg_view(x->g, e);
    if (e->kind == E_NAME) {
        const struct bound *b = find(x, e->sym);
        return b && chain_mentions(b->to, x->f->j);
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (depends_on_j(x, e->args[i]))
            return true;
    for (uint32_t i = 0; i < e->nindex; i++)
        if ((e->index[i]->low && depends_on_j(x, e->index[i]->low)) ||
            depends_on_j(x, e->index[i]->dims[0]))
            return true;
    return e->pad && depends_on_j(x, e->pad);
}

/* Is e the index that is streamed, or that divided by a number? */
static bool is_of_j(const struct build *x, const struct lang_expr *e, int64_t *by)
{
    e = inspect_strip(e);
    *by = 1;
    if (e->kind == E_BINARY && e->op == OP_DIV && lang_const_int(e->args[1], by) && *by > 0)
        e = inspect_strip(e->args[0]);
    const struct bound *b = e->kind == E_NAME ? find(x, e->sym) : NULL;
    return b && inspect_is_index(b->to, x->f->j);
}

/* Is subscript i of the read e in range? The index that is streamed never leaves its extent: that
 * is of the first dimension that is met at it, or the range where that is known at launch. */
static bool is_in_range(const struct build *x, const struct lang_expr *e, uint32_t i)
{
    struct chain_form *f = x->f;
    int64_t by;
    if (inspect_in_range(e, i))
        return true;
    if (!is_of_j(x, e->args[i], &by))
        return false;
    struct lang_expr *end = by == 1 ? e->sym->dims[i]
                                    : lx_mul_int(x->g->a, lx_operand(x->g->a, e->sym->dims[i]), by);
    if (!f->ends) {
        f->j->dims[0] = end;
        f->ends = true;
    }
    return inspect_same_expr(f->j->dims[0], end);
}

/* Is the subscript, as it was copied, one that is read in any case? */
static bool is_known(const struct build *x, const struct lang_expr *subscript,
                     const struct lang_expr *dim)
{
    for (size_t i = 0; i < x->known.n; i++)
        if (matmul_same(x->known.v[i].subscript, subscript) &&
            inspect_same_expr(x->known.v[i].dim, dim))
            return true;
    return false;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void bind(struct build *x, const struct lang_symbol *sym, struct lang_expr *to)
{
    *VEC_PUSH(x->g->a, &x->bound) = (struct bound){sym, to};
}

struct lang_expr *chain_name(struct cg *g, struct lang_symbol *sym, struct span s)
{
    struct lang_expr *e = ARENA_NEW(g->a, struct lang_expr);
    *e = (struct lang_expr){.kind = E_NAME,
                            .type = sym->kind == SYM_INDEX ? DT_I64 : sym->type,
                            .span = s,
                            .name = sym->name,
                            .sym = sym,
                            .height = 1};
    return e;
}

struct lang_symbol *chain_local(struct cg *g, const char *name, enum dtype t, struct span s)
{
    struct lang_symbol *sym = ARENA_NEW(g->a, struct lang_symbol);
    *sym = (struct lang_symbol){.kind = SYM_LOCAL, .name = name, .span = s, .type = t};
    return sym;
}

static struct lang_expr *copy(struct build *x, const struct lang_expr *from);

static bool set_height(struct lang_expr *c)
{
    c->height = 1;
    for (uint32_t i = 0; i < c->nargs; i++)
        c->height = c->args[i]->height >= c->height ? c->args[i]->height + 1 : c->height;
    if (c->pad && c->pad->height >= c->height)
        c->height = c->pad->height + 1;
    return c->height <= LANG_MAX_HEIGHT;
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* The index of scores over this extent: equal ones have the same. NULL: one too many. */
static struct lang_symbol *index_of_score(struct build *x, const struct lang_symbol *c)
{
    for (uint32_t i = 0; i < x->nc; i++)
        if (inspect_same_expr(x->c[i]->dims[0], c->dims[0]))
            return x->c[i];
    if (x->nc == CHAIN_SCORES)
        return NULL;
    struct lang_symbol *own = ARENA_NEW(x->g->a, struct lang_symbol);
    *own = *c;
    own->low = NULL;
    return x->c[x->nc++] = own;
}

static bool from_zero(const struct lang_symbol *k)
{
    int64_t v;
    return !k->low || (lang_const_int(k->low, &v) && v == 0);
}

static struct lang_expr *add_score(struct build *x, struct lang_expr *e)
{
    struct chain_form *f = x->f;
    for (uint32_t i = 0; i < f->nscore; i++)
        if (f->score[i].e->index[0] == e->index[0] &&
            matmul_same(f->score[i].e->args[0], e->args[0]))
            return chain_name(x->g, (struct lang_symbol *)f->score[i].sym, e->span);
    if (f->nscore == CHAIN_SCORES)
        return no(x, e->span, "this sum is one too many");
    struct lang_symbol *sym = chain_local(x->g, "score", e->type, e->span);
    f->score[f->nscore++] = (struct chain_score){sym, e};
    return chain_name(x->g, sym, e->span);
}

static struct lang_expr *copy_score(struct build *x, const struct lang_expr *e)
{
    if (e->reduce != RED_SUM || e->nindex != 1)
        return no(x, e->span, "this %s over %u ind%s is inside a reduction over '%s'",
                  lang_reduce_name(e->reduce), e->nindex, e->nindex == 1 ? "ex" : "ices",
                  x->f->j->name);
    if (!from_zero(e->index[0]) || !inspect_at_launch(e->index[0]->dims[0]))
        return no(x, e->span, "the range of '%s' is more than 0 to a number known at launch",
                  e->index[0]->name);
    struct lang_symbol *own = index_of_score(x, e->index[0]);
    if (!own)
        return no(x, e->span, "this sum is over one index too many");
    const size_t mark = x->bound.n;
    bind(x, e->index[0], chain_name(x->g, own, e->span));
    struct lang_expr *c = ARENA_NEW(x->g->a, struct lang_expr);
    *c = *e;
    c->index = ARENA_ARRAY(x->g->a, 1, struct lang_symbol *);
    c->index[0] = own;
    c->args = ARENA_ARRAY(x->g->a, 1, struct lang_expr *);
    const bool stray = x->stray;
    x->in_score = true;
    x->stray = false;
    c->args[0] = copy(x, e->args[0]);
    x->in_score = false;
    x->bound.n = mark;
    if (!c->args[0])
        return NULL;
    if (x->guarded && (x->outside || !e->anywhere) && x->stray)
        return no(x, e->span, "this sum may only be computed where a condition holds");
    x->stray |= stray;
    c->height = 1 + c->args[0]->height;
    return add_score(x, c);
}

/* ---- streams --------------------------------------------------------------------------------- */

static bool same_or_null(const struct lang_expr *x, const struct lang_expr *y)
{
    return x && y ? matmul_same(x, y) : x == y;
}

static bool is_same_stream(const struct chain_stream *s, const struct chain_stream *t)
{
    return s->reduce == t->reduce && s->type == t->type && matmul_same(s->term, t->term) &&
           same_or_null(s->low, t->low) && matmul_same(s->high, t->high);
}

/* Where j, or j divided by a number, leaves the tensor's dimension; NULL: e is neither. */
static struct lang_expr *end_of_j(struct cg *g, const struct lang_symbol *j,
                                  const struct lang_expr *e, struct lang_expr *dim)
{
    int64_t by;
    e = inspect_strip(e);
    if (inspect_is_index(e, j))
        return dim;
    if (e->kind != E_BINARY || e->op != OP_DIV || !lang_const_int(e->args[1], &by) || by < 1 ||
        !inspect_is_index(inspect_strip(e->args[0]), j))
        return NULL;
    return lx_mul_int(g->a, lx_operand(g->a, dim), by);
}

/* The tensor's dimension that j runs along in what the terms read, where a range is written. */
static struct lang_expr *extent_of_j(const struct build *x, const struct lang_expr *e)
{
    struct lang_expr *n = NULL;
    for (uint32_t i = 0; e->kind == E_INDEX && !e->pad && i < e->nargs && !n; i++)
        n = end_of_j(x->g, x->f->j, e->args[i], e->sym->dims[i]);
    for (uint32_t i = 0; i < e->nargs && !n; i++)
        n = extent_of_j(x, e->args[i]);
    return n;
}

/* Has another stream the range of this one? */
static bool has_range(const struct chain_form *f, const struct chain_stream *s)
{
    for (uint32_t i = 0; i < f->nstream; i++)
        if (same_or_null(f->stream[i].whole_low, s->whole_low) &&
            matmul_same(f->stream[i].whole_high, s->whole_high))
            return true;
    return false;
}

/* Are the extents equal? A product with a dimension that is fixed may be written out or computed.
 */
static bool is_same_extent(const struct lang_expr *x, const struct lang_expr *y)
{
    int64_t i, j;
    return inspect_same_expr(x, y) || (lang_const_int(x, &i) && lang_const_int(y, &j) && i == j);
}

/* Makes sure that j ends where the stream does, or where what it reads does. */
static bool set_extent(struct build *x, const struct lang_expr *e, const struct chain_stream *s)
{
    struct chain_form *f = x->f;
    struct lang_expr *n = NULL;
    if (!s->whole_low && inspect_at_launch(s->whole_high))
        n = s->whole_high;
    for (uint32_t i = 0; i < f->nscore && !n; i++)
        if (chain_mentions(s->term, f->score[i].sym))
            n = extent_of_j(x, f->score[i].e->args[0]);
    n = n ? n : extent_of_j(x, s->term);
    if ((!n && f->nstream == 0) || (n && f->j->dims[0] == n) || (!n && has_range(f, s)))
        return true;
    if (n && !f->ends) {
        f->j->dims[0] = n;
        return f->ends = true;
    }
    if (n && is_same_extent(f->j->dims[0], n))
        return true;
    no(x, e->span, "'%s' has another range than in the first reduction", e->index[0]->name);
    return false;
}

/* What stands for the reduction e, whose range and terms s has. NULL after saying why not. */
static struct lang_expr *add_stream(struct build *x, const struct lang_expr *e,
                                    struct chain_stream *s)
{
    struct chain_form *f = x->f;
    struct lang_symbol *sym = chain_local(x->g, lang_reduce_name(e->reduce), e->type, e->span);
    struct lang_expr *value = chain_name(x->g, sym, e->span);
    s->sym = sym;
    if (!set_extent(x, e, s) || !chain_make_running(x->g, f, s, &value, x->why))
        return NULL;
    for (uint32_t i = 0; i < f->nstream; i++)
        if (is_same_stream(&f->stream[i], s)) {
            sym->id = UINT32_MAX; /* the other one stands for it */
            bind(x, sym, chain_name(x->g, (struct lang_symbol *)f->stream[i].sym, e->span));
            return copy(x, value);
        }
    if (f->nstream == CHAIN_STREAMS)
        return no(x, e->span, "this %s is one too many", lang_reduce_name(e->reduce));
    f->stream[f->nstream++] = *s;
    return value;
}

/* A reduction of the row: its index becomes j. */
static struct lang_expr *copy_stream(struct build *x, const struct lang_expr *e)
{
    struct chain_stream s = {.span = e->span, .reduce = e->reduce, .type = e->type, .running = -1};
    const size_t mark = x->bound.n;
    const bool before = x->in_stream, guarded = x->guarded, stray = x->stray;
    if (e->nindex != 1)
        return no(x, e->span, "this %s is over several indices", lang_reduce_name(e->reduce));
    if (e->reduce != RED_SUM && e->reduce != RED_MAX && e->reduce != RED_MIN)
        return no(x, e->span, "%s is no sum, max or min", lang_reduce_name(e->reduce));
    const struct lang_symbol *k = e->index[0];
    if (!x->f->j->name)
        x->f->j->name = k->name;
    if (!from_zero(k) && !(s.low = copy(x, k->low)))
        return NULL;
    if (!(s.high = copy(x, k->dims[0])))
        return NULL;
    if (chain_mentioned_stream(x->f, s.high) >= 0 ||
        (s.low && chain_mentioned_stream(x->f, s.low) >= 0))
        return no(x, e->span, "the range of '%s' is reduced itself", k->name);
    bind(x, k, chain_name(x->g, x->f->j, e->span));
    x->in_stream = true;
    x->guarded = x->stray = false;
    s.term = copy(x, e->args[0]);
    x->in_stream = before;
    x->guarded = guarded;
    x->bound.n = mark;
    if (!s.term)
        return NULL;
    if (x->guarded && (x->outside || !e->anywhere) && x->stray)
        return no(x, e->span, "this %s may only be computed where a condition holds",
                  lang_reduce_name(e->reduce));
    x->stray |= stray;
    s.whole_low = s.low;
    s.whole_high = s.high;
    s.whole_term = s.term;
    chain_narrow(x->g, x->f->j, s.reduce, NULL, &s.term, &s.low, &s.high);
    return add_stream(x, e, &s);
}

static struct lang_expr *copy_reduce(struct build *x, const struct lang_expr *e)
{
    if (x->in_score)
        return no(x, e->span, "this %s is inside a sum of a reduction's terms",
                  lang_reduce_name(e->reduce));
    return x->in_stream && depends_on_j(x, e) ? copy_score(x, e) : copy_stream(x, e);
}

/* ---- everything ------------------------------------------------------------------------------ */

static struct lang_expr *copy_definition(struct build *x, const struct lang_expr *e)
{
    const struct lang_equation *eq = e->sym->def;
    const size_t mark = x->bound.n;
    const bool outside = x->outside;
    struct lang_expr *sub[CHAIN_AXES];
    bool in_range[CHAIN_AXES];
    if (x->depth == MOST_DEPTH || eq->nindex > CHAIN_AXES)
        return no(x, e->span, "'%s' is too deep", e->sym->name);
    for (uint32_t i = 0; i < eq->nindex; i++) {
        in_range[i] = is_in_range(x, e, i);
        if (!(sub[i] = copy(x, e->args[i])))
            return NULL;
    }
    for (uint32_t i = 0; i < eq->nindex; i++) {
        bind(x, eq->index[i], matmul_cast(x->g, sub[i], DT_I64));
        x->outside |= x->guarded && !in_range[i];
    }
    x->depth++;
    struct lang_expr *c = copy(x, eq->rhs);
    x->depth--;
    x->outside = outside;
    x->bound.n = mark;
    return c ? matmul_cast(x->g, c, e->type) : NULL;
}

static struct lang_expr *copy_node(struct build *x, const struct lang_expr *e)
{
    struct lang_expr *c = ARENA_NEW(x->g->a, struct lang_expr);
    const bool guards = lang_guards(e), reads = e->kind == E_INDEX && !e->pad;
    const bool before = x->guarded, unsure = x->unsure;
    *c = *e;
    c->args = ARENA_ARRAY(x->g->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++) {
        const bool in_range = !reads || is_in_range(x, e, i);
        x->guarded = before || (guards && i);
        x->unsure = unsure || (guards && i);
        c->args[i] = copy(x, e->args[i]);
        x->guarded = before;
        x->unsure = unsure;
        if (!c->args[i])
            return NULL;
        if (in_range || is_known(x, c->args[i], e->sym->dims[i]))
            continue;
        x->stray = true;
        if (!x->unsure)
            *VEC_PUSH(x->g->a, &x->known) = (struct known){c->args[i], e->sym->dims[i]};
    }
    if (e->pad && !(c->pad = copy(x, e->pad)))
        return NULL;
    return set_height(c) ? c : no(x, e->span, "the equations expand to too much");
}

static struct lang_expr *copy(struct build *x, const struct lang_expr *from)
{
    const struct lang_expr *e = cg_view(x->g, from);
    if (++x->nodes > MOST_NODES)
        return no(x, e->span, "the equations expand to too much");
    if (e->kind == E_REDUCE)
        return copy_reduce(x, e);
    const struct bound *b = e->kind == E_NAME ? find(x, e->sym) : NULL;
    if (b)
        return b->to;
    const bool tensor = e->kind == E_INDEX || (e->kind == E_NAME && (e->sym->kind == SYM_TENSOR ||
                                                                     e->sym->kind == SYM_BUFFER));
    if (tensor && cg_is_defined(x->g, e->sym)) {
        if (!e->pad)
            return copy_definition(x, e);
        if (inspect_reduces(x->g, e))
            return no(x, e->span, "'%s' is read through pad()", e->sym->name);
    }
    return copy_node(x, e);
}

/* ---- axes ------------------------------------------------------------------------------------ */

/* The axis of the first output that an index of another one stands for: of those that are free and
 * have its extent the one of its name, or else the first. */
static struct lang_symbol *axis_for(const struct build *x, const struct lang_symbol *index,
                                    uint32_t *taken)
{
    uint32_t at = x->naxis;
    for (uint32_t i = x->naxis; i-- > 0;)
        if (!(*taken & 1u << i) && inspect_same_expr(x->axis[i]->dims[0], index->dims[0]) &&
            (at == x->naxis || strcmp(x->axis[at]->name, index->name) != 0))
            at = i;
    if (at == x->naxis)
        return NULL;
    *taken |= 1u << at;
    return x->axis[at];
}

static bool copy_output(struct build *x, const struct lang_equation *eq, struct chain_out *out)
{
    struct lang_equation *own = ARENA_NEW(x->g->a, struct lang_equation);
    uint32_t taken = 0;
    *own = *eq;
    own->index = ARENA_ARRAY(x->g->a, eq->nindex, struct lang_symbol *);
    x->bound.n = 0;
    for (uint32_t i = 0; i < eq->nindex; i++) {
        own->index[i] = axis_for(x, eq->index[i], &taken);
        if (!own->index[i])
            return no(x, eq->span, "'%s' of '%s' is no index of '%s'", eq->index[i]->name,
                      eq->sym->name, x->f->stage->eq[0]->sym->name) != NULL;
        bind(x, eq->index[i], chain_name(x->g, own->index[i], eq->span));
    }
    own->rhs = copy(x, eq->rhs);
    *out = (struct chain_out){.eq = own};
    return own->rhs != NULL;
}

static const struct lang_equation *widest(const struct lower_stage *s)
{
    const struct lang_equation *eq = s->eq[0];
    for (uint32_t i = 1; i < s->n; i++)
        eq = s->eq[i]->nindex > eq->nindex ? s->eq[i] : eq;
    return eq;
}

static bool copy_outputs(struct build *x, const struct lower_stage *s)
{
    const struct lang_equation *first = widest(s);
    if (first->nindex == 0 || first->nindex > CHAIN_AXES || s->n > CHAIN_OUTS)
        return lower_lacks(x->why, first->span, "'%s' has %u dimensions", first->sym->name,
                           first->nindex);
    x->naxis = first->nindex;
    for (uint32_t i = 0; i < x->naxis; i++) {
        x->axis[i] = ARENA_NEW(x->g->a, struct lang_symbol);
        *x->axis[i] = *first->index[i];
    }
    for (uint32_t i = 0; i < s->n; i++) {
        if (dtype_bits(s->eq[i]->sym->type) < 8)
            return lower_lacks(x->why, s->eq[i]->span, "'%s' is of a packed type",
                               s->eq[i]->sym->name);
        if (!copy_output(x, s->eq[i], &x->f->out[x->f->nout++]))
            return false;
    }
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

bool chain_analyse(struct cg *g, const struct lower_stage *s, struct chain_form *f, struct buf *why)
{
    struct build x = {.g = g, .f = f, .why = why};
    *f = (struct chain_form){.stage = s, .j = ARENA_NEW(g->a, struct lang_symbol)};
    *f->j = (struct lang_symbol){.kind = SYM_INDEX, .span = s->eq[0]->span, .type = DT_I64};
    f->j->dims = ARENA_ARRAY(g->a, 1, struct lang_expr *);
    f->j->dims[0] = lx_int(g->a, -1); /* until it is known */
    if (!copy_outputs(&x, s))
        return false;
    if (f->nscore == 0)
        return lower_lacks(why, s->eq[0]->span, "no sum is inside of a reduction");
    return chain_find_column(g, f, x.naxis, x.axis, why);
}
