/* The epilogue of a contraction: outputs computed from sums in shared memory (matmul.h).
 *
 * The block's threads walk a patch by vectors along j, so that a warp writes whole lines, and reads its sums, and whatever
 * else lies along j, in whole vectors too.
 */
#include <config.h>

#include "lower/matmul.h"

enum {
    MOST_LANES = 16,
    MOST_AHEAD = 8, /* vectors of a thread that are computed before the first of them is stored */
    MOST_WEIGHT = 24,
};

struct walk {
    struct matmul *m;
    const struct matmul_patch *patch;
    uint32_t lanes, bytes; /* elements of a vector, bytes of a sum */
    uint32_t per_row;      /* vectors */
    bool aligned; /* all vectors of a thread are in one column: it counts rows, else vectors */
    uint32_t end, step;                              /* of that count: the patch's, a pass's */
    struct cg_val sum[MATMUL_PRODUCTS * MOST_LANES]; /* of the vector that is computed */
};

/* One vector of a thread. */
struct at {
    struct cg_val ok; /* a constant or a predicate: is it inside of the outputs? */
    struct cg_val flat;
    struct cg_val *v; /* of every output */
};

/* ---- sums ----------------------------------------------------------------------------------------- */

/* A sum of products in the epilogue: the lane's. */
static bool reduced(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    const struct map_reader *r = g->read_ctx;
    const struct walk *w = r->tiling;
    for (uint32_t q = 0; q < w->m->f->nproduct; q++)
        if (e == w->m->f->product[q].e) {
            *v = cg_convert(g, w->sum[q * w->lanes + r->lane], e->type);
            return true;
        }
    return false;
}

static void load_sums(struct walk *w, struct cg_val row, struct cg_val col)
{
    struct cg *g = w->m->g;
    const struct matmul_patch *p = w->patch;
    struct cg_val at = cg_add(g, cg_binary(g, OP_MUL, row, cg_u32(p->pitch)), col);
    at = cg_add(g, cg_binary(g, OP_MUL, at, cg_u32(w->bytes)), cg_value(DT_U32, p->base));
    struct cg_place_of place = {.space = CG_SHARED, .base = at.op.reg};
    for (uint32_t q = 0; q < w->m->f->nproduct; q++) {
        place.offset = (int64_t)q * p->rows * p->pitch * w->bytes;
        cg_load_words(g, w->m->f->sum, false, place, w->lanes, w->sum + q * w->lanes);
    }
}

/* ---- a vector ------------------------------------------------------------------------------------- */

/* Where the thread's vector number `count` is in the patch. */
static void find_vector(const struct walk *w, struct cg_val count, struct cg_val *row,
                        struct cg_val *col)
{
    struct cg *g = w->m->g;
    if (w->aligned) {
        *row = count;
        *col = cg_binary(g, OP_MOD, w->m->thread, cg_u32(w->per_row));
    } else {
        *row = cg_binary(g, OP_DIV, count, cg_u32(w->per_row));
        *col = cg_binary(g, OP_MOD, count, cg_u32(w->per_row));
    }
    *col = cg_binary(g, OP_MUL, *col, cg_u32(w->lanes));
}

static struct at compute(struct walk *w, struct cg_val count)
{
    struct matmul *m = w->m;
    struct cg *g = m->g;
    const struct matmul_form *f = m->f;
    const struct lang_symbol *shape = f->stage->eq[0]->sym;
    struct map_reader *r = &m->reader;
    struct at at = {.ok = cg_bool(g, true)};
    struct cg_val row, col;
    find_vector(w, count, &row, &col);
    load_sums(w, row, col);
    row = cg_add(g, cg_add(g, row, w->patch->first), cg_convert(g, m->row, DT_U32));
    if (w->patch->first_col)
        col = cg_add(g, col, *w->patch->first_col);
    col = cg_add(g, col, cg_convert(g, m->col, DT_U32));
    for (uint32_t i = 0, b = 0; i < shape->rank; i++)
        r->sub[i] = i + 1 == shape->rank     ? cg_index(g, col)
                    : f->i && i == f->axis_i ? cg_index(g, row)
                                             : m->batch[b++];
    if (f->i && !m->whole_rows)
        at.ok = cg_binary(g, OP_LT, cg_index(g, row), m->m);
    else if (!f->i)
        at.ok = cg_binary(g, OP_EQ, row, cg_u32(0));
    if (!m->whole_cols)
        at.ok = cg_binary(g, OP_LAND, at.ok, cg_binary(g, OP_LT, cg_index(g, col), m->n));
    r->shape = shape;
    r->lanes = w->lanes;
    for (uint32_t i = 1; i <= shape->rank; i++)
        r->prefix[i] = cg_flat_index(g, shape, i, r->sub);
    at.flat = r->prefix[shape->rank];
    at.v = ARENA_ARRAY(g->a, (size_t)f->stage->n * w->lanes, struct cg_val);
    const struct cg_guard before = cg_guard(g, at.ok, false);
    map_compute(g, r, f->stage->eq, f->stage->n, at.v);
    cg_unguard(g, before);
    return at;
}

static void store(const struct walk *w, const struct at *at)
{
    struct cg *g = w->m->g;
    const struct lower_stage *s = w->m->f->stage;
    const struct cg_guard before = cg_guard(g, at->ok, false);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct lang_symbol *t = s->eq[i]->sym;
        cg_at(g, s->eq[i]->span);
        const struct cg_place_of to = cg_address(g, t, at->flat);
        if (w->lanes == 1)
            cg_store(g, t, to, at->v[i]);
        else
            cg_store_vector(g, t, to.base, to.offset, w->lanes, at->v + (size_t)i * w->lanes);
    }
    cg_unguard(g, before);
}

/* ---- a patch -------------------------------------------------------------------------------------- */

/* The sums of a vector are what one access brings, where the outputs allow so much: then a warp reads them without
 * conflicts of banks. */
static struct walk plan(struct matmul *m, const struct matmul_patch *patch)
{
    struct walk w = {.m = m, .patch = patch, .bytes = dtype_bits(m->f->sum) / 8};
    w.lanes = 16 / w.bytes < m->p->store ? 16 / w.bytes : m->p->store;
    w.per_row = patch->cols / w.lanes;
    w.aligned = m->workers % w.per_row == 0;
    w.end = w.aligned ? patch->rows : patch->rows * w.per_row;
    w.step = w.aligned ? m->workers / w.per_row : m->workers;
    return w;
}

/* The vectors from `count` on that the thread computes ahead. */
static void pass(struct walk *w, struct cg_val count, uint32_t ahead)
{
    struct cg *g = w->m->g;
    struct at at[MOST_AHEAD];
    for (uint32_t i = 0; i < ahead; i++)
        at[i] = compute(w, cg_add(g, count, cg_u32(i * w->step)));
    for (uint32_t i = 0; i < ahead; i++)
        store(w, &at[i]);
}

static void walk_patch(struct walk *w)
{
    struct cg *g = w->m->g;
    const uint32_t passes = (w->end + w->step - 1) / w->step;
    const bool whole = w->end % w->step == 0;
    const bool reads = w->m->p->how == MATMUL_MMA && matmul_reads_own(w->m);
    uint32_t ahead = w->m->f->weight * w->lanes > 2 * MOST_WEIGHT ? 2
                     : reads                                      ? MOST_AHEAD
                                                                  : MOST_AHEAD / 2;
    while (!whole || passes % ahead) {
        ahead /= 2;
        if (ahead < 2)
            break;
    }
    ahead = ahead ? ahead : 1;
    struct cg_val first = w->m->thread;
    if (w->aligned)
        first = cg_binary(g, OP_DIV, first, cg_u32(w->per_row));
    if (whole && passes == ahead) {
        pass(w, first, ahead);
        return;
    }
    const int32_t at = cg_new_mutable(g, DT_U32);
    const uint32_t head = cg_label(g, "vector"), done = cg_label(g, "stored");
    const struct cg_val count = cg_value(DT_U32, at);
    struct cg_nest nest;
    cg_move(g, at, first);
    cg_place(g, head);
    cg_loop_head(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, at);
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, count, cg_u32(w->end))), false, done);
    pass(w, count, ahead);
    const struct cg_since since = cg_now(g);
    cg_move_new(g, at, cg_add(g, count, cg_u32(ahead * w->step)), since);
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, done);
}

void matmul_store(struct matmul *m, const struct matmul_patch *patch)
{
    struct cg *g = m->g;
    struct walk w = plan(m, patch);
    bool (*const before)(struct cg *, const struct lang_expr *, struct cg_val *) = g->reduced;
    const uint32_t skip = cg_label(g, "shared");
    const size_t mark = cg_scope_open(g);
    if (m->p->split > 1 && m->p->how != MATMUL_WGMMA) /* which has done it */
        matmul_share(m, patch, skip);
    g->reduced = reduced;
    m->reader.tiling = &w;
    walk_patch(&w);
    m->reader.tiling = NULL;
    g->reduced = before;
    cg_scope_close(g, mark);
    cg_place(g, skip);
}
