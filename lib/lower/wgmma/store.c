/* Results straight from registers (wgmma/wgmma.h): where all that the epilogue reads beside the
 * sums lies along rows or columns, and results are of 2 or 4 bytes in rows of whole 16 bytes.
 *
 * A warp's 16 rows of 128 bytes each make a box (wgmma/box.h), which is copied to memory while the
 * warp goes on: with the box after it, in the other buffer, and then with the next tile.
 *
 * Where the instructions' rows are columns of the results a warp has 16 of them, and boxes are 32
 * rows of 64 bytes, swizzled over these:
 *
 *     4 bytes: lane 4 r + c stores columns r and r + 8 of rows 2 c and 2 c + 1 of each 8; where r >
 *       3 the second row first,
 *              because 8 neighbours of a row take half of the banks, and so do those of the next
 *
 * What is outside of the results the copy leaves out.
 *
 * Where results are functions of the sums the lanes themselves store a box, 16 bytes of every 4th
 * row each. A copy by one lane is a branch, over which ptxas moves no load: so the whole tile's end
 * is one piece of code, in which loads, functions and stores of different boxes mix (bias and
 * gelu() at 4096^3 on an H100: 1 % of all). Results as they are gain nothing by it.
 *
 * What else was tried there: bias and gelu() by patches take 18 % more than nothing, tiles by turns
 * 8 %; straight from registers 9 % was predicted and 4 % measured, for gelu() is 10 instructions
 * now, not 24. Tiles by turns are slower than this by 6 % (128 x 128) and more (64 x 256): the L2
 * cache has to bring a third more. Half of the columns stored while the other half of the next
 * tile's first stages are multiplied: no faster, since instructions of 128 columns read A twice.
 */
#include <config.h>

#include "lower/wgmma/wgmma.h"

enum { LANES = 2, BUFFERS = 2, PIECES = BOX_PIECES };

struct out {
    struct wgmma *s;
    uint32_t size, rows, cols; /* bytes of a result; a box */
    uint32_t lanes;            /* neighbours in a row that a lane has */
    uint32_t i, j; /* what is computed now, of the instructions: 64 rows i, 8 columns j */
    uint32_t half; /* rows r or r + 8 of them */
    uint32_t pair; /* turned: which of the lane's two columns */
    int32_t
        to[4];    /* u32: where the lane's piece of each 16 (8) columns goes, in the first buffer */
    int32_t late; /* predicate, turned: the lane stores its second first */
    int32_t leads;                /* predicate: the lane that copies */
    struct cg_val row, col;       /* u32: the first place of the lane's in the results */
    struct cg_val at_row, at_col; /* u32: of the warp's */
    /* where threads store: a lane takes 16 bytes of each 4th row of a box. In shared memory, of
     * even and odd ones; in each output's memory, of the first box of these rows; predicates, -1:
     * is the row there? */
    int32_t piece[2], place[MATMUL_OUTS][PIECES], row_ok[PIECES];
};

/* ---- does it fit? ---------------------------------------------------------------------------- */

static bool has_function(const struct wgmma_shape *s, const struct lang_expr *e)
{
    if (e->kind == E_CALL && cg_has_tensor_call(s->target, e))
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (has_function(s, e->args[i]))
            return true;
    return e->pad && has_function(s, e->pad);
}

bool wgmma_by_threads(const struct wgmma_shape *s)
{
    if (!s->direct || s->p->turned || s->nbrought)
        return false;
    for (uint32_t o = 0; o < s->f->stage->n; o++)
        if (has_function(s, s->f->stage->eq[o]->rhs))
            return true;
    return false;
}

uint32_t wgmma_direct(struct wgmma_shape *s)
{
    const struct lower_stage *stage = s->f->stage;
    const uint32_t size = dtype_bits(stage->eq[0]->sym->type) / 8;
    const bool whole =
        s->p->turned ? size == 4 : (size == 2 || size == 4) && s->p->bn % (WGMMA_SPAN / size) == 0;
    if (!whole || s->p->store * size < 16 || wgmma_is_heavy(s) || s->f->images.image)
        return 0;
    for (uint32_t o = 0; o < stage->n; o++) {
        const struct lang_symbol *t = stage->eq[o]->sym;
        if (dtype_bits(t->type) != size * 8 || t->rank > CONTRACT_MAP_RANK)
            return 0;
    }
    if (!wgmma_find_brought(s))
        return 0;
    return s->nbrought ? epilogue_bytes(s) : BUFFERS * BOX_BYTES;
}

/* ---- begin ----------------------------------------------------------------------------------- */

static void find_box(struct out *w, const struct wgmma *s)
{
    w->size = dtype_bits(s->f->stage->eq[0]->sym->type) / 8;
    w->rows = s->p->turned ? WGMMA_TURNED : WGMMA_PATCH;
    w->cols = WGMMA_SPAN * WGMMA_PATCH / w->rows / w->size;
    w->lanes = s->p->turned ? 1 : LANES;
}

void wgmma_store_begin(struct wgmma *s)
{
    const struct lower_stage *stage = s->f->stage;
    struct out w;
    find_box(&w, s);
    for (uint32_t o = 0; o < stage->n && !s->shape->by_threads; o++) {
        const struct lang_symbol *t = stage->eq[o]->sym;
        uint32_t box[CONTRACT_MAP_RANK];
        for (uint32_t d = 0; d < t->rank; d++)
            box[d] = d == 0 ? w.cols : t->rank - 1 - d == s->f->axis_i ? w.rows : 1;
        s->out_map[o] = cg_param_map(s->g, t, box, false);
    }
    epilogue_begin(s);
}

/* Finds the places where boxes are turned: in columns r and r + 8 the rows that are stored first,
 * and the others. */
static void find_turned(struct out *w, struct cg_val base)
{
    struct cg *g = w->s->g;
    const struct cg_val c = cg_binary(g, OP_AND, w->s->m->lane, cg_u32(3));
    const struct cg_val r = cg_binary(g, OP_SHR, w->s->m->lane, cg_u32(2));
    const struct cg_val late = cg_binary(g, OP_SHR, r, cg_u32(2));
    const uint32_t span = WGMMA_SPAN / 2;
    w->late = cg_reg(g, cg_binary(g, OP_NE, late, cg_u32(0)));
    base = cg_add(g, base, cg_mul(g, c, 2 * span));
    base = cg_add(g, base, cg_mul(g, cg_binary(g, OP_AND, r, cg_u32(3)), w->size));
    for (uint32_t i = 0; i < 4; i++) {
        struct cg_val row = cg_binary(g, OP_XOR, late, cg_u32(i % 2));
        struct cg_val chunk = cg_binary(g, OP_XOR, cg_add(g, late, cg_u32(i / 2 * 2)), c);
        struct cg_val in_row = cg_mul(g, chunk, 16);
        w->to[i] = cg_reg(g, cg_add(g, base, cg_add(g, cg_mul(g, row, span), in_row)));
    }
}

/* The lane's pieces of a box: 16 bytes of rows lane / 8, that + 4 ... */
static void find_pieces(struct out *w, struct cg_val base)
{
    struct cg *g = w->s->g;
    const struct cg_val row = cg_binary(g, OP_SHR, w->s->m->lane, cg_u32(3));
    const struct cg_val chunk = cg_binary(g, OP_AND, w->s->m->lane, cg_u32(7));
    for (uint32_t i = 0; i < 2; i++) {
        struct cg_val at = cg_binary(g, OP_XOR, chunk, cg_add(g, row, cg_u32(i * 4)));
        at = cg_mul(g, at, 16);
        at = cg_add(g, cg_mul(g, row, WGMMA_SPAN), at);
        w->piece[i] = cg_reg(g, cg_add(g, base, at));
    }
}

static void find_lane(struct out *w)
{
    struct wgmma *s = w->s;
    struct cg *g = s->g;
    const struct matmul *m = s->m;
    const struct cg_val in_tile = wgmma_along(s);
    const struct cg_val r = wgmma_lane_row(g, m->lane), c = wgmma_lane_column(g, m->lane);
    const struct cg_val patch = wgmma_patch(s);
    struct cg_val *along = s->p->turned ? &w->at_col : &w->at_row;
    w->at_row = cg_convert(g, m->row, DT_U32);
    w->at_col = cg_convert(g, m->col, DT_U32);
    *along = cg_add(g, *along, in_tile);
    w->row = cg_add(g, w->at_row, s->p->turned ? c : r);
    w->col = cg_add(g, w->at_col, s->p->turned ? r : c);
    w->leads = cg_reg(g, cg_binary(g, OP_EQ, m->lane, cg_u32(0)));
    if (s->p->turned)
        find_turned(w, patch);
    else
        box_pieces(g, m->lane, w->size, patch, w->to);
    if (s->shape->by_threads)
        find_pieces(w, patch);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A sum in the epilogue. */
static bool reduced(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    const struct map_reader *r = g->read_ctx;
    const struct out *w = r->tiling;
    const struct wgmma *s = w->s;
    const uint32_t high = s->shape->high / WGMMA_ROWS;
    for (uint32_t q = 0; q < s->f->nproduct; q++)
        if (e == s->f->product[q].e) {
            const int32_t *sum = s->sum + ((size_t)q * high + w->i) * (s->shape->wide / 2);
            const int32_t reg = sum[w->j * 4 + w->half * 2 + (s->p->turned ? w->pair : r->lane)];
            *v = cg_convert(g, cg_value(s->f->sum, reg), e->type);
            return true;
        }
    return false;
}

/* An element of a tensor that was brought. */
static bool read_brought(struct cg *g, const struct lang_expr *e, const struct map_form *f,
                         struct cg_val *v)
{
    const struct map_reader *r = g->read_ctx;
    const struct out *w = r->tiling;
    (void)f;
    return epilogue_read(w->s, e, w->j % 2, w->half, r->lane, v) ||
           wgmma_column(w->s, e, w->j, r->lane, v);
}

/* The lane's neighbouring results of every output, v[o * lanes + lane]. */
static void compute(struct out *w, struct cg_val *v)
{
    struct matmul *m = w->s->m;
    struct cg *g = m->g;
    const struct matmul_form *f = m->f;
    struct map_reader *r = &m->reader;
    const struct lang_symbol *shape = f->stage->eq[0]->sym;
    const bool turned = w->s->p->turned;
    const uint32_t down = w->i * WGMMA_ROWS + w->half * 8, across = w->j * 8 + w->pair;
    const struct cg_val row = cg_add(g, w->row, cg_u32(turned ? across : down));
    struct cg_val ok = cg_bool(g, true);
    /* what lies along columns is at constant distances from one address */
    r->along = turned ? down : across;
    const struct cg_val first = cg_index(g, w->col);
    matmul_result_at(m, cg_index(g, row), first, r->sub);
    if (!m->whole_rows)
        ok = cg_binary(g, OP_LT, cg_index(g, row), m->m);
    if (!m->whole_cols) {
        const struct cg_val col = cg_index(g, cg_add(g, w->col, cg_u32(r->along)));
        ok = cg_binary(g, OP_LAND, ok, cg_binary(g, OP_LT, col, m->n));
    }
    r->shape = shape;
    r->lanes = w->lanes;
    for (uint32_t i = 1; i <= shape->rank; i++)
        r->prefix[i] = cg_flat_index(g, shape, i, r->sub);
    const struct cg_guard before = cg_guard(g, ok, false);
    map_compute(g, r, f->stage->eq, f->stage->n, v);
    cg_unguard(g, before);
    r->along = 0;
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* Columns 8 j of a box, of output o: the words of rows r and r + 8; of 2 bytes a word is a pair of
 * columns. */
static void put_halves(struct out *w, uint32_t o, uint32_t c, struct cg_val *const v[2],
                       uint32_t buffer)
{
    struct cg *g = w->s->g;
    const enum dtype t = w->s->f->stage->eq[o]->sym->type;
    for (uint32_t half = 0; half < 2; half++) {
        const struct cg_val *pair = v[half] + (size_t)o * LANES;
        const struct ptx_operand words[2] = {ptx_r(cg_reg(g, pair[0])), ptx_r(cg_reg(g, pair[1]))};
        box_put_pair(g, t, w->to[c], buffer, half, words);
    }
}

/* Fills the buffer with columns [first, first + cols) of 64 rows i, of output o; what was brought
 * for them is box number `own`. */
static void fill(struct out *w, uint32_t o, uint32_t first, uint32_t own, uint32_t buffer)
{
    struct cg *g = w->s->g;
    const struct lower_stage *stage = w->s->f->stage;
    const enum dtype t = stage->eq[o]->sym->type;
    struct ptx_operand word[4];
    for (uint32_t c = 0; c < w->cols / 8; c++) {
        struct cg_val *v[2];
        const size_t mark = cg_scope_open(g);
        w->j = first / 8 + c;
        if (w->size == 4)
            wgmma_take_brought(w->s, w->to[c], own, c);
        else if (c % 2 == 0)
            wgmma_take_brought(w->s, w->to[c / 2], own, c / 2);
        for (w->half = 0; w->half < 2; w->half++) {
            v[w->half] = ARENA_ARRAY(g->a, (size_t)stage->n * LANES, struct cg_val);
            compute(w, v[w->half]);
            if (w->size == 2)
                word[c % 2 * 2 + w->half] = cg_pack(g, t, LANES, v[w->half] + (size_t)o * LANES);
        }
        if (w->size == 4)
            put_halves(w, o, c, v, buffer);
        else if (c % 2)
            box_put_words(g, w->to[c / 2], buffer, word);
        cg_scope_close(g, mark);
    }
}

/* Fills a turned box: rows [first, first + rows) of 16 columns of each 64 i. */
static void fill_turned(struct out *w, uint32_t o, uint32_t first, uint32_t buffer)
{
    struct cg *g = w->s->g;
    const struct lower_stage *stage = w->s->f->stage;
    for (uint32_t n = 0; n < w->rows / 8; n++)
        for (w->half = 0; w->half < 2; w->half++) {
            int32_t v[LANES];
            const size_t mark = cg_scope_open(g);
            w->j = first / 8 + n;
            for (w->pair = 0; w->pair < LANES; w->pair++) {
                struct cg_val *all = ARENA_ARRAY(g->a, stage->n, struct cg_val);
                compute(w, all);
                v[w->pair] = cg_reg(g, all[o]);
            }
            for (uint32_t i = 0; i < LANES; i++) {
                const int32_t word = cg_new(g, DT_U32);
                PTX(&g->b, "selp.b32", ptx_r(word), ptx_r(v[!i]), ptx_r(v[i]), ptx_r(w->late));
                PTX(&g->b, "st.shared.b32",
                    ptx_mem(w->to[2 * w->half + i], buffer + n * 8 * w->cols * w->size),
                    ptx_r(word));
            }
            cg_scope_close(g, mark);
        }
    w->pair = 0;
}

/* One lane sends the buffer on its way. */
static void send(struct out *w, uint32_t o, uint32_t first, uint32_t buffer)
{
    struct wgmma *s = w->s;
    struct cg *g = s->g;
    const struct lang_symbol *t = s->f->stage->eq[o]->sym;
    struct tma_box box = {.map = s->out_map[o], .rank = t->rank};
    const uint32_t skip = cg_label(g, "sent"), down = w->i * WGMMA_ROWS;
    PTX0(&g->b, "fence.proxy.async.shared::cta"); /* each lane's own */
    PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
    cg_jump_if(g, w->leads, false, skip);
    const size_t mark = cg_scope_open(g);
    for (uint32_t d = 0, b = s->f->nbatch; d < t->rank; d++) {
        const uint32_t axis = t->rank - 1 - d;
        struct cg_val at = d == 0 ? cg_add(g, w->at_col, cg_u32(s->p->turned ? down : first))
                           : axis == s->f->axis_i
                               ? cg_add(g, w->at_row, cg_u32(s->p->turned ? first : down))
                               : cg_convert(g, s->m->batch[--b], DT_U32);
        box.at[d] = ptx_r(cg_reg(g, at));
    }
    tma_store(g, &box, cg_reg(g, wgmma_patch(s)), buffer);
    cg_scope_close(g, mark);
    cg_place(g, skip);
}

/* Finds where the lane's pieces of 64 rows i go. */
static void find_places(struct out *w)
{
    struct wgmma *s = w->s;
    struct cg *g = s->g;
    struct matmul *m = s->m;
    const struct cg_val of = cg_binary(g, OP_SHR, m->lane, cg_u32(3));
    const struct cg_val chunk = cg_binary(g, OP_AND, m->lane, cg_u32(7));
    const struct cg_val col = cg_add(g, w->at_col, cg_mul(g, chunk, 16 / w->size));
    for (uint32_t q = 0; q < PIECES; q++) {
        struct cg_val row = cg_add(g, w->at_row, cg_u32(w->i * WGMMA_ROWS + 4 * q));
        row = cg_index(g, cg_add(g, row, of));
        w->row_ok[q] = m->whole_rows ? -1 : cg_reg(g, cg_binary(g, OP_LT, row, m->m));
        for (uint32_t o = 0; o < s->f->stage->n; o++) {
            const struct lang_symbol *t = s->f->stage->eq[o]->sym;
            struct cg_val sub[VARIANT_RANK];
            matmul_result_at(m, row, cg_index(g, col), sub);
            const struct cg_place_of at = cg_address(g, t, cg_flat_index(g, t, t->rank, sub));
            w->place[o][q] = at.base;
        }
    }
}

/* The lanes store the buffer: a row's 128 bytes are 8 lanes'. */
static void store_box(struct out *w, uint32_t o, uint32_t first, uint32_t buffer)
{
    struct wgmma *s = w->s;
    struct cg *g = s->g;
    const struct cg_val chunk = cg_binary(g, OP_AND, s->m->lane, cg_u32(7));
    struct cg_val col = cg_add(g, w->at_col, cg_mul(g, chunk, 16 / w->size));
    col = cg_index(g, cg_add(g, col, cg_u32(first)));
    struct ptx_operand v[PIECES][4];
    PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
    for (uint32_t q = 0; q < PIECES; q++) {
        for (uint32_t i = 0; i < 4; i++)
            v[q][i] = ptx_r(cg_new(g, DT_U32));
        PTX(&g->b, "ld.shared.v4.b32", ptx_vec(&g->b, 4, v[q]),
            ptx_mem(w->piece[q % 2], buffer + q * 4 * WGMMA_SPAN));
    }
    for (uint32_t q = 0; q < PIECES; q++) {
        struct cg_val ok = cg_bool(g, true);
        if (w->row_ok[q] >= 0)
            ok = cg_value(DT_BOOL, w->row_ok[q]);
        if (!s->m->whole_cols)
            ok = cg_binary(g, OP_LAND, ok, cg_binary(g, OP_LT, col, s->m->n));
        const struct ptx_operand to = ptx_mem(w->place[o][q], first * w->size);
        int64_t always;
        if (cg_is_const(ok, &always))
            PTX(&g->b, "st.global.v4.b32", to, ptx_vec(&g->b, 4, v[q]));
        else
            PTX_IF(&g->b, cg_reg(g, ok), "st.global.v4.b32", to, ptx_vec(&g->b, 4, v[q]));
    }
}

/* That the box before the last has left, of so many buffers, or the last one too where that was in
 * this buffer. */
static void wait_for_buffer(struct out *w, uint32_t buffers, bool all)
{
    struct cg *g = w->s->g;
    if (w->s->shape->by_threads) {
        /* the lanes have met since the box before the last was stored */
        if (all)
            PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
        return;
    }
    tma_wait_read(g, all ? 0 : buffers - 1);
    PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
}

/* Box number n of `all`, of every output. What lies along columns is needed for all rows of a box's
 * at once; what registers have comes last, in places that others have left. */
static void store_number(struct out *w, uint32_t n, uint32_t all)
{
    struct wgmma *s = w->s;
    const uint32_t nout = s->f->stage->n, step = s->p->turned ? w->rows : w->cols;
    const uint32_t high = s->shape->high / WGMMA_ROWS, number = (n + s->shape->kept) % all;
    const uint32_t first = number / high * step;
    w->i = number % high;
    const uint32_t own = w->i * (s->shape->wide / step) + first / step;
    if (s->shape->by_threads)
        find_places(w);
    for (uint32_t o = 0; o < nout; o++) {
        const uint32_t box = n * nout + o;
        const uint32_t buffer = (s->shape->nbrought ? own % s->shape->places : box % BUFFERS) *
                                BOX_BYTES;
        if (!s->shape->nbrought)
            wait_for_buffer(w, BUFFERS, box == 0 && all * nout % BUFFERS);
        else if (own < s->shape->kept)
            wait_for_buffer(w, s->shape->places, false);
        if (s->p->turned)
            fill_turned(w, o, first, buffer);
        else
            fill(w, o, first, own, buffer);
        (s->shape->by_threads ? store_box : send)(w, o, first, buffer);
    }
}

void wgmma_store_tile(struct wgmma *s)
{
    struct cg *g = s->g;
    struct out w = {.s = s};
    find_box(&w, s);
    bool (*const before)(struct cg *, const struct lang_expr *, struct cg_val *) = g->reduced;
    const uint32_t all = s->shape->high / WGMMA_ROWS *
                         (s->shape->wide / (s->p->turned ? w.rows : w.cols));
    find_lane(&w);
    epilogue_wait(s);
    g->reduced = reduced;
    s->m->reader.tiling = &w;
    s->m->reader.read_tile = read_brought;
    for (uint32_t n = 0; n < all; n++)
        store_number(&w, n, all);
    s->m->reader.tiling = NULL;
    s->m->reader.read_tile = NULL;
    g->reduced = before;
}

void wgmma_store_end(struct wgmma *s)
{
    if (!s->shape->by_threads)
        tma_wait_read(s->g, 0);
}
