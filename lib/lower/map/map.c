/* Elementwise kernels: every output has the same shape, and element i of each depends on element i
 * of the inputs only.
 *
 * All buffers are walked as flat arrays. A block owns `chunk` consecutive elements:
 *
 *     |<------------------------- chunk = unroll * block * vector ------------------------>|
 *     | thread 0: vector | thread 1 | ... | thread 0: vector | thread 1 | ...
 *
 * so that each access of a warp is contiguous and a thread has `unroll` of them in flight for every
 * input. The last block, when its chunk is not full, walks the vectors that are there, and one
 * element (of packed types one byte) for each thread of the rest.
 */
#include <config.h>

#include "lower/map/map.h"
#include "lower/schedule.h"

enum { MOST_BUFFERS = 64, MOST_VECTOR = 32 };

struct element_of {
    const struct lang_symbol *sym;
    struct cg_val v[MOST_VECTOR];
};

/* The elements in registers while expressions are generated. */
struct map {
    const struct lang_symbol *in[MOST_BUFFERS];
    const struct lang_equation *out[MOST_BUFFERS];
    uint32_t nin, nout;
    struct element_of *now; /* nin of them: the vector being computed */
    uint32_t lane;
    int64_t serial;  /* stands for the subscripts: differs for every element generated */
    bool uses_index; /* rank 1: the index itself is read */
    VEC(const struct lang_equation *) seen;
};

/* ---- does it fit? ---------------------------------------------------------------------------- */

struct fit {
    struct cg *g;
    const struct lang_equation *eq;
    const struct lang_symbol *shape;
    struct map *m;
    struct buf *why;
};

static bool fits_expr(const struct fit *f, const struct lang_expr *e);

static bool fits_read(const struct fit *f, const struct lang_expr *e)
{
    const struct lang_symbol *t = e->sym;
    if (t->rank == 0)
        return true;
    if (e->pad)
        return lower_lacks(f->why, e->span, "'%s' is read through pad()", t->name);
    if (!inspect_same_shape(t, f->shape))
        return lower_lacks(f->why, e->span, "'%s' has another shape than the outputs", t->name);
    if (!inspect_is_in_place(e, f->eq))
        return lower_lacks(f->why, e->span, "'%s' is read at other elements", t->name);
    for (uint32_t i = 0; i < f->m->nin; i++)
        if (f->m->in[i] == t)
            return true;
    if (f->m->nin == MOST_BUFFERS)
        return lower_lacks(f->why, e->span, "'%s' is one buffer too many", t->name);
    f->m->in[f->m->nin++] = t;
    return true;
}

/* What an intermediate reads, at the element that is computed. */
static bool fits_definition(const struct fit *f, const struct lang_expr *e)
{
    struct fit inner = *f;
    inner.eq = e->sym->def;
    if (e->sym->rank && !inspect_same_shape(e->sym, f->shape))
        return lower_lacks(f->why, inner.eq->span, "'%s' has another shape than the outputs",
                           e->sym->name);
    if (!inspect_is_in_place(e, f->eq))
        return lower_lacks(f->why, e->span, "'%s' is read at other elements", e->sym->name);
    for (size_t i = 0; i < f->m->seen.n; i++)
        if (f->m->seen.v[i] == inner.eq)
            return true;
    *VEC_PUSH(f->g->a, &f->m->seen) = inner.eq;
    return fits_expr(&inner, inner.eq->rhs);
}

static bool fits_expr(const struct fit *f, const struct lang_expr *e)
{
    e = cg_view(f->g, e);
    if (e->kind == E_REDUCE)
        return lower_lacks(f->why, e->span, "%s is a reduction", lang_reduce_name(e->reduce));
    bool tensor = e->kind == E_INDEX ||
                  (e->kind == E_NAME && (e->sym->kind == SYM_TENSOR || e->sym->kind == SYM_BUFFER));
    if (tensor && e->pad)
        return lower_lacks(f->why, e->span, "'%s' is read through pad()", e->sym->name);
    if (tensor)
        return cg_is_defined(f->g, e->sym) ? fits_definition(f, e) : fits_read(f, e);
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX) {
        f->m->uses_index = true;
        if (f->shape->rank > 1)
            return lower_lacks(f->why, e->span,
                               "the index '%s' of a multi-dimensional shape is used as a value",
                               e->sym->name);
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!fits_expr(f, e->args[i]))
            return false;
    return true;
}

static bool analyse(struct cg *g, const struct lower_stage *s, struct map *m, struct buf *why)
{
    struct fit f = {.g = g, .m = m, .why = why, .shape = s->eq[0]->sym};
    if (s->n > MOST_BUFFERS)
        return lower_lacks(f.why, s->eq[0]->span, "'%s' is one of too many outputs",
                           s->eq[0]->sym->name);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct lang_symbol *t = s->eq[i]->sym;
        if (t->rank == 0 || !inspect_same_shape(t, f.shape))
            return lower_lacks(f.why, s->eq[i]->span,
                               t->rank ? "'%s' has another shape than the first output"
                                       : "'%s' is one element",
                               t->name);
        m->out[m->nout++] = s->eq[i];
    }
    for (uint32_t i = 0; i < s->n; i++) {
        f.eq = s->eq[i];
        if (!fits_expr(&f, f.eq->rhs))
            return false;
    }
    return true;
}

/* A stage that fits, and whether its buffers are walked as flat arrays; if not, why. */
struct fitting {
    const struct lower_stage *stage;
    struct map flat;
    bool walks; /* without loops */
    bool is_flat;
    struct buf why;
};

void *map_fit(struct cg *g, const struct lower_stage *s, struct buf *why)
{
    struct map_survey v;
    struct buf none = buf_in(g->a);
    const bool walks = map_survey(g, s, NULL, &v, why);
    if (!walks && !map_window_fits(g, s, &none))
        return NULL;
    struct fitting *f = ARENA_NEW(g->a, struct fitting);
    *f = (struct fitting){.stage = s, .why = buf_in(g->a)};
    f->walks = walks;
    f->is_flat = walks && analyse(g, s, &f->flat, &f->why);
    return f;
}

/* ---- widths ---------------------------------------------------------------------------------- */

static const struct lang_symbol *buffer(const struct map *m, uint32_t i)
{
    return i < m->nin ? m->in[i] : m->out[i - m->nin]->sym;
}

/* 16 bytes of the widest type: narrower ones are moved in smaller pieces, but each access of a warp
 * stays contiguous (two 16-byte pieces for each thread cost 3 to 20 % of the bandwidth on an H100).
 * Whole bytes of packed types. */
static uint32_t choose_vector(const struct map *m)
{
    unsigned most = 4;
    for (uint32_t i = 0; i < m->nin + m->nout; i++) {
        unsigned bits = dtype_bits(buffer(m, i)->type);
        most = bits > most ? bits : most;
    }
    return 128 / most;
}

/* 16 bytes in flight for each thread cover the memory's latency; more gained nothing on an H100. */
static uint32_t choose_unroll(const struct map *m, uint32_t vector)
{
    unsigned bits = 0;
    for (uint32_t i = 0; i < m->nin; i++)
        bits += dtype_bits(m->in[i]->type) * vector;
    return bits >= 128 || !bits ? 1 : bits >= 64 ? 2 : 4;
}

static bool has_packed(const struct map *m)
{
    for (uint32_t i = 0; i < m->nin + m->nout; i++)
        if (dtype_bits(buffer(m, i)->type) < 8)
            return true;
    return false;
}

/* ---- code ------------------------------------------------------------------------------------ */

static bool read_element(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct map *m = g->read_ctx;
    if (e->sym->rank == 0 || cg_is_defined(g, e->sym))
        return false;
    for (uint32_t i = 0; i < m->nin; i++)
        if (m->in[i] == e->sym) {
            *v = m->now[i].v[m->lane];
            return true;
        }
    return false;
}

/* The address of element `first` (i64) of a buffer. */
static int32_t address(struct cg *g, const struct lang_symbol *t, struct cg_val first)
{
    unsigned bits = dtype_bits(t->type);
    struct cg_val bytes = bits < 8 ? cg_binary(g, OP_SHR, first, cg_int(DT_U32, 1))
                                   : cg_binary(g, OP_MUL, first, cg_int(DT_I64, bits / 8));
    return CG(g, PTX_B64, "add.s64", ptx_r(cg_param_of(g, t).op.reg), cg_op(g, bytes));
}

static void load_all(struct cg *g, struct map *m, struct element_of *e, struct cg_val first,
                     uint32_t step, uint32_t width)
{
    for (uint32_t i = 0; i < m->nin; i++) {
        const struct lang_symbol *t = m->in[i];
        e[i].sym = t;
        cg_load_vector(g, t, address(g, t, first), (int64_t)step * dtype_bits(t->type) / 8, width,
                       e[i].v);
    }
}

/* Computes and stores `width` elements from `first + step` on, whose inputs are in e. */
static void compute_all(struct cg *g, struct map *m, struct element_of *e, struct cg_val first,
                        uint32_t step, uint32_t width)
{
    struct element_of *out = ARENA_ARRAY(g->a, m->nout, struct element_of);
    uint32_t rank = m->out[0]->nindex;
    struct cg_val *sub = ARENA_ARRAY(g->a, rank, struct cg_val);
    m->now = e;
    for (m->lane = 0; m->lane < width; m->lane++) {
        struct cg_val at = cg_int(DT_I64, m->serial++);
        if (m->uses_index) { /* rank 1: it fits in 32 bits, as its dimension does */
            struct cg_val low = cg_convert(g, first, DT_U32);
            at = cg_index(g, cg_binary(g, OP_ADD, low, cg_int(DT_U32, step + m->lane)));
        }
        for (uint32_t i = 0; i < rank; i++)
            sub[i] = at;
        for (uint32_t i = 0; i < m->nout; i++) {
            cg_at(g, m->out[i]->span);
            out[i].v[m->lane] = cg_define(g, m->out[i], sub);
        }
    }
    for (uint32_t i = 0; i < m->nout; i++) {
        const struct lang_symbol *t = m->out[i]->sym;
        cg_at(g, m->out[i]->span);
        cg_store_vector(g, t, address(g, t, first), (int64_t)step * dtype_bits(t->type) / 8, width,
                        out[i].v);
    }
}

struct shape {
    uint32_t block, vector, unroll, chunk, rest; /* rest: the width of the tail's accesses */
    struct cg_val total;
};

static void full_block(struct cg *g, struct map *m, const struct shape *s)
{
    struct element_of *e = ARENA_ARRAY(g->a, (size_t)s->unroll * m->nin + 1, struct element_of);
    struct cg_val first = thread_start(g, s->chunk, s->vector);
    cg_at(g, m->out[0]->span);
    for (uint32_t u = 0; u < s->unroll; u++)
        load_all(g, m, e + (size_t)u * m->nin, first, u * s->block * s->vector, s->vector);
    for (uint32_t u = 0; u < s->unroll; u++)
        compute_all(g, m, e + (size_t)u * m->nin, first, u * s->block * s->vector, s->vector);
}

static void last_vectors(struct cg *g, struct map *m, const struct shape *s)
{
    struct element_of *e = ARENA_ARRAY(g->a, m->nin + 1, struct element_of);
    int32_t at = cg_new_mutable(g, DT_I64);
    struct cg_val k = cg_value(DT_I64, at);
    uint32_t head = cg_label(g, "vector"), rest = cg_label(g, "rest");
    cg_move(g, at, thread_start(g, s->chunk, s->vector));
    cg_place(g, head);
    cg_loop_head(g);
    size_t mark = cg_scope_open(g);
    struct cg_val end = cg_binary(g, OP_ADD, k, cg_int(DT_I64, s->vector));
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GT, end, s->total)), true, rest);
    load_all(g, m, e, k, 0, s->vector);
    compute_all(g, m, e, k, 0, s->vector);
    struct cg_since since = cg_now(g);
    cg_move_new(g, at, cg_binary(g, OP_ADD, k, cg_int(DT_I64, (int64_t)s->block * s->vector)),
                since);
    cg_jump(g, head);
    cg_scope_close(g, mark);
    cg_place(g, rest);
}

static void last_elements(struct cg *g, struct map *m, const struct shape *s)
{
    struct element_of *e = ARENA_ARRAY(g->a, m->nin + 1, struct element_of);
    struct cg_val vectors = cg_binary(g, OP_AND, cg_value(DT_I64, cg_reg(g, s->total)),
                                      cg_int(DT_I64, -(int64_t)s->vector));
    struct cg_val mine = cg_binary(g, OP_MUL, cg_special(g, SP_TID_X), cg_int(DT_U32, s->rest));
    struct cg_val k = cg_binary(g, OP_ADD, vectors, cg_index(g, mine));
    g->exit_used = true;
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, k, s->total)), true, g->exit);
    load_all(g, m, e, k, 0, s->rest);
    compute_all(g, m, e, k, 0, s->rest);
}

/* Blocks of one vector for each thread: the last one needs no code of its own but for the tail. */
static void one_vector(struct cg *g, struct map *m, const struct shape *s)
{
    uint32_t rest = cg_label(g, "rest");
    struct element_of *e = ARENA_ARRAY(g->a, m->nin + 1, struct element_of);
    struct cg_val first = thread_start(g, s->chunk, s->vector);
    struct cg_val after = cg_binary(g, OP_ADD, first, cg_int(DT_I64, s->vector));
    size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GT, after, s->total)), true, rest);
    load_all(g, m, e, first, 0, s->vector);
    compute_all(g, m, e, first, 0, s->vector);
    cg_scope_close(g, mark);
    cg_place(g, rest);
    if (s->vector == s->rest)
        return;
    struct cg_val end =
        cg_binary(g, OP_ADD, thread_start(g, s->chunk, 0), cg_int(DT_I64, s->chunk));
    g->exit_used = true;
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LE, end, s->total)), true, g->exit);
    last_elements(g, m, s);
}

static void several_vectors(struct cg *g, struct map *m, const struct shape *s)
{
    uint32_t partial = cg_label(g, "partial");
    struct cg_val end =
        cg_binary(g, OP_ADD, thread_start(g, s->chunk, 0), cg_int(DT_I64, s->chunk));
    size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GT, end, s->total)), true, partial);
    full_block(g, m, s);
    g->exit_used = true;
    cg_jump(g, g->exit);
    cg_scope_close(g, mark);
    cg_place(g, partial);
    last_vectors(g, m, s);
    if (s->vector > s->rest)
        last_elements(g, m, s);
}

/* Operations of an element; a call is many. */
static unsigned weigh(const struct cg *g, const struct lang_expr *e)
{
    unsigned n = e->kind == E_CALL ? 20 : 1;
    e = cg_view(g, e);
    if ((e->kind == E_INDEX || e->kind == E_NAME) && cg_is_defined(g, e->sym))
        return n + weigh(g, e->sym->def->rhs);
    for (uint32_t i = 0; i < e->nargs && n < 20; i++)
        n += weigh(g, e->args[i]);
    return n;
}

/* Is it known that there are many blocks? */
static bool is_large(const struct map *m, uint32_t vector)
{
    const struct lang_symbol *t = m->out[0]->sym;
    double total = 1;
    int64_t n;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (!lang_const_int(t->dims[i], &n))
            return false;
        total *= (double)n;
    }
    return total >= (1 << 20) * (double)vector;
}

/* Many blocks of several inputs of one width: 8 bytes of each for a thread, in blocks of 512, were
 * .4 to 1.1 % faster on an H100 than 16 bytes; of one input they were 7 % slower. */
static bool takes_halves(const struct map *m, uint32_t vector)
{
    for (uint32_t i = 0; i < m->nin + m->nout; i++)
        if (dtype_bits(buffer(m, i)->type) * vector != 128)
            return false;
    return m->nin > 1 && m->nout == 1 && vector > 1 && is_large(m, vector);
}

/* Blocks of 1024 threads were 0.4 to 0.7 % faster than those of 256 on an H100, given many of them
 * and so little to compute that 32 registers will do. */
static uint32_t choose_block(struct cg *g, const struct map *m, const struct shape *s)
{
    unsigned weight = 0;
    for (uint32_t i = 0; i < m->nout && weight < 20; i++)
        weight += weigh(g, m->out[i]->rhs);
    const bool is_light = s->unroll == 1 && m->nin <= 2 && m->nout == 1 && weight < 20;
    return is_light && is_large(m, s->vector) ? 1024 : 256;
}

static bool check_vector(struct cg *g, const struct shape *s)
{
    if (s->vector < s->rest)
        return cg_error(
            g, schedule_span(g, "vector"),
            "packed 4-bit elements are stored two at a time: 'vector' must be at least 2");
    return true;
}

/* The buffers as flat arrays. */
static bool lower_flat(struct cg *g, const struct lower_stage *stage, struct map *m,
                       const struct map_options *want)
{
    struct shape s = {.vector = want->vector ? want->vector : choose_vector(m),
                      .rest = has_packed(m) ? 2 : 1};
    const bool halves = !want->vector && !want->unroll && !want->block && takes_halves(m, s.vector);
    if (halves)
        s.vector /= 2;
    s.unroll = want->unroll ? want->unroll : choose_unroll(m, s.vector);
    s.block = halves ? 512 : want->block ? want->block : choose_block(g, m, &s);
    s.chunk = s.block * s.vector * s.unroll;
    if (!check_vector(g, &s))
        return false;
    const char *how = arena_printf(g->a, "%u threads, %u vectors of %u elements for each thread",
                                   s.block, s.unroll, s.vector);
    lower_explain(g, "  %s: %u elements for a block\n", how, s.chunk);
    lower_note(g, &(struct lower_entry){.name = stage->entry, .how = how});

    cg_begin(g, stage->entry);
    g->read = read_element;
    g->read_ctx = m;
    g->preloaded = true;
    g->block[0] = s.block;
    g->block[1] = g->block[2] = 1;
    struct lang_expr *elements;
    s.total = shape_total(g, m->out[0]->sym, 1, &elements);
    if (s.unroll == 1)
        one_vector(g, m, &s);
    else
        several_vectors(g, m, &s);

    g->func->reqntid[0] = s.block;
    g->func->reqntid[1] = g->func->reqntid[2] = 1;
    struct contract_launch *l =
        cg_launch(g, lx_ceil_div_int(g->a, elements, s.chunk), lx_int(g->a, s.block));
    cg_end(g, l);
    return !g->failed;
}

/* Sizes that no other variant takes, one thread for each element. */
static bool lower_rest(struct cg *g, struct variant_set *all)
{
    const struct variant_condition c = variant_condition(g);
    variant_begin(g, all, "rest", NAIVE_BLOCK);
    cg_at(g, all->s->eq[0]->span);
    struct lang_expr *grid = naive_code(g, all->s, NAIVE_BLOCK);
    lower_tell(g,
               &(struct lower_entry){.name = g->func->name, .how = "one thread for each element"});
    variant_end(g, all, &c, grid, NAIVE_BLOCK);
    return !g->failed;
}

bool map_lower(struct cg *g, void *form, const void *options)
{
    struct fitting *f = form;
    if (f->is_flat)
        return lower_flat(g, f->stage, &f->flat, options);
    if (f->walks)
        lower_explain(g, "  not as flat arrays: %s\n", buf_text(&f->why));
    const struct lower_stage merged = map_merge(g, f->stage, true);
    struct variant_set all = {.s = &merged};
    if (f->walks && !map_tile_lower(g, options, &all))
        return false;
    if (all.n == 0 && !map_window_lower(g, options, f->walks, &all))
        return false;
    return all.done || (f->walks ? map_walk_lower(g, options, &all) : lower_rest(g, &all));
}
