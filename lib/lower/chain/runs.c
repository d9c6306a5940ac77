/* Keys that are equal to something of the row's, as those of its document are (chain.h).
 *
 *     of_row[i] == of_key[j] ? s[i,j] : -inf
 *
 * Where the keys of a batch are sorted, those that are equal lie side by side: they are a range of
 * j, like any other. A launch in front of the others finds out whether they are, and where each
 * row's begin and end, by bisection. What is left of the condition is
 *
 *     sorted || of_row[i] == of_key[j]
 *
 * and where they are not sorted, ranges are all j.
 */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/extent.h"

/* ---- which they are -------------------------------------------------------------------------- */

/* An element of an input for each j, and for nothing of the row's but axes. */
static bool is_key(const struct chain_form *f, const struct lang_expr *e)
{
    bool by_j = false;
    e = inspect_strip(e);
    if (e->kind != E_INDEX || e->pad || e->sym->kind != SYM_BUFFER || e->sym->mode != MODE_IN ||
        dtype_is_float(e->type) || e->nargs != e->sym->rank)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (!cg_in_range(e->args[i], e->sym->dims[i]) ||
            (by_j && inspect_is_index(e->args[i], f->j)))
            return false;
        by_j |= inspect_is_index(e->args[i], f->j);
    }
    return by_j;
}

static bool is_of_row(const struct chain_form *f, const struct lang_expr *e)
{
    bool some = false;
    for (uint32_t a = 0; a < f->nrow; a++)
        some |= chain_mentions(e, f->row[a]);
    return some && !chain_mentions(e, f->j) && !inspect_may_stray(e) && !dtype_is_float(e->type) &&
           chain_mentioned_stream(f, e) < 0 && !chain_mentions_score(f, e);
}

/* The comparison in e, all parts of which must hold. */
static bool find(const struct chain_form *f, const struct lang_expr *e, struct chain_runs *r)
{
    if (e->kind == E_BINARY && e->op == OP_LAND)
        return find(f, e->args[0], r) || find(f, e->args[1], r);
    if (e->kind != E_BINARY || e->op != OP_EQ)
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (is_key(f, e->args[i]) && is_of_row(f, e->args[1 - i])) {
            *r = (struct chain_runs){.clause = e, .key = e->args[i], .of = e->args[1 - i]};
            return true;
        }
    return false;
}

bool chain_find_runs(const struct chain_form *f, struct chain_runs *r)
{
    for (uint32_t n = 0; n < f->nstream; n++) {
        const struct lang_expr *e = f->stream[n].term;
        if (f->stream[n].reduce == RED_MAX && e->kind == E_COND && f->ends &&
            find(f, e->args[0], r))
            return true;
    }
    return false;
}

/* ---- what is found --------------------------------------------------------------------------- */

/* Axes of rows that it depends on, in their order: how many. by_key: those that keys depend on. */
static uint32_t axes_of(const struct chain_form *f, const struct chain_runs *r, bool by_key,
                        struct lang_symbol **axis)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < f->nrow; a++)
        if (chain_mentions(r->key, f->row[a]) || (!by_key && chain_mentions(r->of, f->row[a])))
            axis[n++] = f->row[a];
    return n;
}

static const struct lang_symbol *make(struct cg *g, const struct chain_form *f,
                                      const struct chain_runs *r, const char *name, bool by_key)
{
    struct lang_symbol *axis[CHAIN_AXES];
    struct lang_expr *extent[CHAIN_AXES] = {lx_int(g->a, 1)};
    const uint32_t n = axes_of(f, r, by_key, axis);
    for (uint32_t i = 0; i < n; i++)
        extent[i] = axis[i]->dims[0];
    return cg_temp(g, name, DT_I32, n ? n : 1, extent, false);
}

/* Reads what was found for the row. */
static struct lang_expr *read(struct cg *g, const struct chain_form *f, const struct chain_runs *r,
                              const struct lang_symbol *sym, bool by_key)
{
    struct lang_symbol *axis[CHAIN_AXES];
    const uint32_t n = axes_of(f, r, by_key, axis);
    struct lang_expr *e = ARENA_NEW(g->a, struct lang_expr);
    *e = (struct lang_expr){.kind = E_INDEX,
                            .sym = (struct lang_symbol *)(uintptr_t)sym,
                            .type = DT_I32,
                            .span = r->clause->span,
                            .nargs = sym->rank,
                            .args = ARENA_ARRAY(g->a, sym->rank, struct lang_expr *),
                            .height = 2};
    e->args[0] = lx_int(g->a, 0);
    for (uint32_t i = 0; i < n; i++)
        e->args[i] = chain_name(g, axis[i], e->span);
    return e;
}

void chain_begin_runs(struct cg *g, const struct chain_form *f, struct chain_runs *r)
{
    r->first = make(g, f, r, "first", false);
    r->end = make(g, f, r, "end", false);
    r->sorted = make(g, f, r, "sorted", true);
    r->low = matmul_cast(g, read(g, f, r, r->first, false), DT_I64);
    r->high = matmul_cast(g, read(g, f, r, r->end, false), DT_I64);
    r->known = matmul_binary(g, OP_NE, read(g, f, r, r->sorted, true),
                             matmul_cast(g, lx_int(g->a, 0), DT_I32));
    r->known->type = DT_BOOL;
}

/* ---- the launch in front --------------------------------------------------------------------- */

struct search {
    struct cg *g;
    const struct chain_form *f;
    const struct chain_runs *r;
    struct cg_val thread, end; /* u32 */
};

static struct cg_val key_at(const struct search *s, struct cg_val j)
{
    const size_t bound = s->g->bindings.n;
    cg_bind(s->g, s->f->j, cg_index(s->g, j), false);
    const struct cg_val v = cg_expr(s->g, s->r->key);
    s->g->bindings.n = bound;
    return v;
}

/* Is a key less than the one before it? For all threads. */
static struct cg_val are_unsorted(const struct search *s)
{
    enum { TIMES = 4 }; /* keys of a thread that are loaded together */
    struct cg *g = s->g;
    const struct cg_val last = cg_binary(g, OP_SUB, s->end, cg_u32(1));
    const int32_t some = cg_new_mutable(g, DT_U32), any = cg_new(g, DT_BOOL);
    struct cg_for l;
    cg_move(g, some, cg_u32(0));
    cg_for_open(g, &l, "key", "keys", s->thread, &s->end);
    cg_nest_varies(g, &l.nest, some);
    struct cg_val falls = cg_bool(g, false);
    for (uint32_t i = 0; i < TIMES; i++) {
        const struct cg_val j = cg_add(g, cg_value(DT_U32, l.at), cg_u32(i * CHAIN_RUNS_BLOCK));
        const struct cg_val at = cg_minmax(g, false, j, last);
        const struct cg_val next = cg_minmax(g, false, cg_add(g, j, cg_u32(1)), last);
        const struct cg_val then = key_at(s, next);
        falls = cg_binary(g, OP_LOR, falls, cg_binary(g, OP_GT, key_at(s, at), then));
    }
    cg_move(g, some, cg_select(g, cg_reg(g, falls), cg_u32(1), cg_value(DT_U32, some)));
    cg_for_close(g, &l, cg_u32(TIMES * CHAIN_RUNS_BLOCK), &s->end);
    cg_loop_head(g);
    const struct cg_val own = cg_binary(g, OP_NE, cg_value(DT_U32, some), cg_u32(0));
    PTX(&g->b, "bar.red.or.pred", ptx_r(any), ptx_imm(0), ptx_r(cg_reg(g, own)));
    return cg_value(DT_BOOL, any);
}

/* The first key that is no less than v, or more than it. */
static struct cg_val bisect(const struct search *s, struct cg_val v, bool more)
{
    struct cg *g = s->g;
    const uint32_t head = cg_label(g, "half"), done = cg_label(g, "found");
    const int32_t low = cg_new_mutable(g, DT_U32), high = cg_new_mutable(g, DT_U32);
    struct cg_nest nest;
    cg_move(g, low, cg_u32(0));
    cg_move(g, high, s->end);
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, low);
    cg_nest_varies(g, &nest, high);
    const struct cg_val from = cg_value(DT_U32, low), to = cg_value(DT_U32, high);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, from, to)), false, done);
    const struct cg_val at =
        cg_freeze(g, cg_binary(g, OP_SHR, cg_binary(g, OP_ADD, from, to), cg_u32(1)));
    const int32_t below = cg_reg(g, cg_binary(g, more ? OP_LE : OP_LT, key_at(s, at), v));
    const struct cg_val start = cg_select(g, below, cg_add(g, at, cg_u32(1)), from);
    const struct cg_val end = cg_select(g, below, to, at);
    cg_move(g, low, start);
    cg_move(g, high, end);
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, done);
    cg_loop_head(g);
    return cg_freeze(g, cg_value(DT_U32, low));
}

static void store(const struct search *s, const struct lang_symbol *to, bool by_key,
                  struct cg_val v)
{
    struct cg *g = s->g;
    struct lang_symbol *axis[CHAIN_AXES];
    struct cg_val at[CHAIN_AXES] = {cg_int(DT_I64, 0)};
    const uint32_t n = axes_of(s->f, s->r, by_key, axis);
    for (uint32_t i = 0; i < n; i++)
        at[i] = cg_find(g, axis[i])->val;
    v = cg_convert(g, v, DT_I32);
    cg_store_at(g, DT_I32, cg_element(g, to, n ? n : 1, at), v);
}

/* Binds the axes that keys depend on, or all others that rows do, to what the number n is of
 * them. */
static void bind(const struct search *s, bool by_key, struct cg_val n)
{
    struct cg *g = s->g;
    struct lang_symbol *axis[CHAIN_AXES];
    for (uint32_t a = axes_of(s->f, s->r, false, axis); a-- > 0;) {
        struct cg_val i;
        if (chain_mentions(s->r->key, axis[a]) != by_key)
            continue;
        extent_split(g, n, extent_of(g, axis[a]), &n, &i);
        cg_bind(g, axis[a], i, false);
    }
}

/* How many they are. */
static struct lang_expr *count(const struct search *s, bool by_key)
{
    struct lang_symbol *axis[CHAIN_AXES];
    struct lang_expr *e = lx_int(s->g->a, 1);
    const uint32_t n = axes_of(s->f, s->r, false, axis);
    for (uint32_t a = 0; a < n; a++)
        if (chain_mentions(s->r->key, axis[a]) == by_key)
            e = lx_mul(s->g->a, e, axis[a]->dims[0]);
    return e;
}

static struct extent computed(struct cg *g, struct lang_expr *e)
{
    int64_t n;
    return lang_const_int(e, &n) ? extent_constant(g, n)
                                 : (struct extent){e, extent_computed(g, e)};
}

struct lang_expr *chain_search_runs(struct cg *g, const struct chain_form *f)
{
    struct search s = {.g = g, .f = f, .r = f->runs};
    const struct extent rows = computed(g, count(&s, false));
    const struct extent parts = computed(g, lx_ceil_div_int(g->a, rows.e, CHAIN_RUNS_BLOCK));
    struct cg_val batch, part;
    s.thread = cg_special(g, SP_TID_X);
    s.end = extent_u32(g, extent_of(g, f->j).v);
    extent_split(g, cg_index(g, cg_special(g, SP_CTAID_X)), parts, &batch, &part);
    bind(&s, true, batch);
    const struct cg_val unsorted = are_unsorted(&s);
    const struct cg_val row = cg_add(g, cg_mul(g, extent_u32(g, part), CHAIN_RUNS_BLOCK), s.thread);
    g->exit_used = true;
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, row, extent_u32(g, rows.v))), false, g->exit);
    bind(&s, false, cg_index(g, row));
    const struct cg_val of = cg_freeze(g, cg_expr(g, f->runs->of));
    const struct cg_val first = bisect(&s, of, false), end = bisect(&s, of, true);
    const int32_t all = cg_reg(g, unsorted);
    store(&s, f->runs->first, false, cg_select(g, all, cg_u32(0), first));
    store(&s, f->runs->end, false, cg_select(g, all, s.end, end));
    store(&s, f->runs->sorted, true, cg_select(g, all, cg_u32(0), cg_u32(1)));
    return lx_mul(g->a, count(&s, true), parts.e);
}
