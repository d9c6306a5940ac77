/* Tensors that the epilogue reads along rows and columns, a residual for one (wgmma/wgmma.h).
 *
 * A warp's boxes of them are copied to its patch while its first stage is multiplied, and wait
 * there for the sums. They lie as those of the results do, which take the place of the first
 * tensor's:
 *
 *     lead lane   first stage: the results of the tile before have left the patch; expect the
 *                 bytes; copy
 *     all lanes   last stage is multiplied; wait for the bytes; box by box: load, compute, store;
 *                 copy to memory
 *
 * Where boxes would take the place of a stage, they have half of it: the first ones come, are
 * loaded to registers some stages before the end, and leave their places to the last. These are
 * stored first, then what registers have in their places:
 *
 *     all lanes   KEEPS_AT stages before the end: wait for the bytes; load
 *     lead lane   expect the others' bytes; copy
 *
 * 4096^3 of f16 with a residual, on an H100: 10 % more than without where threads read it, and
 * patches held the sums; 4 % where boxes take the place of a stage, nearly all of it for that; 0.6
 * % with all stages, as was thought.
 */
#include <config.h>

#include "lower/wgmma/wgmma.h"

enum {
    MOST_KEPT = 2,
    KEPT_WORDS = 16, /* of a box */
    KEEPS_AT = 8,    /* stages: memory has the time of so many to bring the rest */
};

/* ---- does it fit? ---------------------------------------------------------------------------- */

static uint32_t boxes_of(const struct wgmma_shape *s, uint32_t size)
{
    return s->high / WGMMA_ROWS * (s->wide * size / WGMMA_SPAN);
}

const struct lang_symbol *wgmma_index_of(const struct matmul_form *f, const struct lang_expr *e)
{
    const struct lang_expr *name = inspect_strip(e);
    const struct lang_symbol *x = name->kind == E_NAME ? name->sym : NULL;
    bool known = x && (x == f->i || x == f->j);
    for (uint32_t b = 0; b < f->nbatch; b++)
        known |= x && x == f->batch[b];
    return known ? x : NULL;
}

bool wgmma_is_same_read(const struct matmul_form *f, const struct lang_expr *x,
                        const struct lang_expr *y)
{
    if (x->sym != y->sym || x->nargs != y->nargs)
        return false;
    for (uint32_t i = 0; i < x->nargs; i++)
        if (wgmma_index_of(f, x->args[i]) != wgmma_index_of(f, y->args[i]))
            return false;
    return true;
}

/* A matrix of rows i, of elements as long as the results', that lies in rows of the results'
 * length. Of what is written too only the element itself, which no other warp writes. */
static bool may_bring(const struct wgmma_shape *s, const struct matmul_read *read)
{
    const struct lang_expr *e = read->e;
    const struct matmul_form *f = s->f;
    const struct lang_symbol *out = f->stage->eq[0]->sym, *t = e->sym;
    const bool in_place = t->mode == MODE_INOUT;
    uint32_t rows = 0;
    if (!read->is_memory || (t->mode != MODE_IN && !in_place) || e->pad || e->nargs != t->rank ||
        t->rank > CONTRACT_MAP_RANK || dtype_bits(t->type) != dtype_bits(out->type) ||
        !inspect_same_expr(t->dims[t->rank - 1], out->dims[out->rank - 1]) ||
        (in_place && !inspect_is_in_place(e, f->stage->eq[0])))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const struct lang_symbol *x = wgmma_index_of(f, e->args[i]);
        if (!x || (x == f->j) != (i + 1 == e->nargs))
            return false;
        rows += x == f->i;
    }
    return rows == 1;
}

/* One that is to be brought; false: it can't be. */
static bool note(struct wgmma_shape *s, const struct matmul_read *read)
{
    const struct lang_expr *e = read->e;
    struct lang_symbol *i[] = {s->f->i}, *j[] = {s->f->j};
    if (e->sym->mode != MODE_INOUT && !(inspect_mentions(e, 1, i) && inspect_mentions(e, 1, j)))
        return true;
    for (uint32_t n = 0; n < s->nbrought; n++)
        if (wgmma_is_same_read(s->f, s->brought[n], e))
            return true;
    if (!may_bring(s, read) || s->nbrought == EPILOGUE_TENSORS)
        return false;
    s->brought[s->nbrought++] = e;
    return true;
}

bool wgmma_find_brought(struct wgmma_shape *s)
{
    const struct lower_stage *stage = s->f->stage;
    const uint32_t size = dtype_bits(stage->eq[0]->sym->type) / 8;
    s->nbrought = 0;
    for (uint32_t r = 0; r < s->f->nread; r++)
        if (!note(s, &s->f->read[r]))
            return false;
    s->boxes = s->places = boxes_of(s, size);
    return s->nbrought == 0 || (stage->n == 1 && !s->p->turned && s->p->split < 2);
}

uint32_t epilogue_bytes(const struct wgmma_shape *s)
{
    return s->nbrought * s->places * BOX_BYTES;
}

bool wgmma_keep_brought(struct wgmma_shape *s)
{
    const enum dtype t = s->f->stage->eq[0]->sym->type;
    if (s->nbrought != 1 || s->boxes % 2 || s->boxes > 2 * MOST_KEPT || s->high != WGMMA_ROWS ||
        dtype_bits(t) != 16 || s->p->promotes)
        return false;
    s->places = s->kept = s->boxes / 2;
    return true;
}

uint32_t wgmma_kept_words(const struct wgmma_shape *s)
{
    return s->kept * KEPT_WORDS;
}

/* ---- the warp's own copies ------------------------------------------------------------------- */

void epilogue_begin(struct wgmma *s)
{
    const uint32_t size = dtype_bits(s->f->stage->eq[0]->sym->type) / 8;
    for (uint32_t n = 0; n < s->shape->nbrought; n++) {
        const struct lang_expr *e = s->shape->brought[n];
        uint32_t box[CONTRACT_MAP_RANK];
        for (uint32_t d = 0; d < e->nargs; d++) {
            const struct lang_symbol *x = wgmma_index_of(s->f, e->args[e->nargs - 1 - d]);
            box[d] = d == 0 ? WGMMA_SPAN / size : x == s->f->i ? WGMMA_PATCH : 1;
        }
        s->brought[n].map = cg_param_map(s->g, e->sym, box, false);
    }
}

void epilogue_ready(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct cg_val warp = wgmma_warp(s); /* tiles' ends take it from here, too */
    struct cg_val at =
        cg_add(g, cg_value(DT_U32, s->m->shared), cg_u32(s->shape->brought_barriers));
    if (!s->shape->nbrought)
        return;
    s->brought_barrier = cg_reg(g, cg_add(g, at, cg_mul(g, warp, RING_BARRIER)));
    s->brought_parity = cg_mutable(g, cg_u32(0));
    s->brought_to = cg_reg(g, wgmma_patch(s));
    s->leads = cg_reg(g, cg_binary(g, OP_EQ, s->m->lane, cg_u32(0)));
    s->kept_word = ARENA_ARRAY(g->a, wgmma_kept_words(s->shape), int32_t);
    for (uint32_t i = 0; i < wgmma_kept_words(s->shape); i++)
        s->kept_word[i] = cg_new_mutable(g, DT_U32);
}

static void copy_box(struct wgmma *s, uint32_t n, uint32_t box)
{
    struct cg *g = s->g;
    const struct lang_expr *e = s->shape->brought[n];
    const uint32_t size = dtype_bits(e->sym->type) / 8, cols = WGMMA_SPAN / size;
    const uint32_t across = s->shape->wide / cols;
    const struct cg_val in_tile = wgmma_along(s);
    const struct cg_val row = cg_add(g, cg_convert(g, s->m->row, DT_U32), in_tile);
    const struct cg_val col = cg_convert(g, s->m->col, DT_U32);
    struct tma_box to = {.map = s->brought[n].map, .rank = e->nargs};
    for (uint32_t d = 0; d < e->nargs; d++) {
        const struct lang_symbol *x = wgmma_index_of(s->f, e->args[e->nargs - 1 - d]);
        struct cg_val at = cg_u32(0);
        for (uint32_t b = 0; b < s->f->nbatch; b++)
            if (x == s->f->batch[b])
                at = cg_convert(g, s->m->batch[b], DT_U32);
        if (x == s->f->j)
            at = cg_add(g, col, cg_u32(box % across * cols));
        else if (x == s->f->i)
            at = cg_add(g, row, cg_u32(box / across * WGMMA_ROWS));
        to.at[d] = ptx_r(cg_reg(g, at));
    }
    tma_load(g, &to, s->brought_to, (n * s->shape->places + box % s->shape->places) * BOX_BYTES,
             s->brought_barrier, -1);
}

static void copy_boxes(struct wgmma *s, uint32_t first, uint32_t end)
{
    struct cg *g = s->g;
    PTX(&g->b, "mbarrier.arrive.expect_tx.shared::cta.b64", ptx_sink(),
        ptx_mem(s->brought_barrier, 0), ptx_imm(s->shape->nbrought * (end - first) * BOX_BYTES));
    for (uint32_t n = 0; n < s->shape->nbrought; n++)
        for (uint32_t box = first; box < end; box++)
            copy_box(s, n, box);
}

/* Loads a kept box from its place to its registers. */
static void keep_box(struct wgmma *s, uint32_t box)
{
    struct cg *g = s->g;
    int32_t at[BOX_PIECES];
    box_pieces(g, s->m->lane, 2, cg_value(DT_U32, s->brought_to), at);
    for (uint32_t c = 0; c < BOX_PIECES; c++) {
        struct ptx_operand word[4];
        for (uint32_t w = 0; w < 4; w++)
            word[w] = ptx_r(s->kept_word[box * KEPT_WORDS + c * 4 + w]);
        box_take_words(g, at[c], box * BOX_BYTES, word);
    }
}

/* Near the tile's end its first boxes leave their places to the last. */
static void keep(struct wgmma *s)
{
    struct cg *g = s->g;
    const uint32_t skip = cg_label(g, "kept");
    const struct cg_val at = cg_minmax(g, false, wgmma_stages(s), cg_u32(KEEPS_AT));
    if (!s->shape->kept)
        return;
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, cg_value(DT_U32, s->rest), at)), true, skip);
    const size_t mark = cg_scope_open(g);
    epilogue_wait(s);
    for (uint32_t box = 0; box < s->shape->kept; box++)
        keep_box(s, box);
    PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
    cg_jump_if(g, s->leads, false, skip);
    copy_boxes(s, s->shape->kept, s->shape->boxes);
    cg_scope_close(g, mark);
    cg_place(g, skip);
}

void epilogue_tile(struct wgmma *s)
{
    struct cg *g = s->g;
    const uint32_t skip = cg_label(g, "brought");
    if (!s->shape->nbrought)
        return;
    cg_jump_if(g, s->adds, true, skip);
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, s->leads, false, skip);
    tma_wait_read(g, 0);
    copy_boxes(s, 0, s->shape->kept ? s->shape->kept : s->shape->boxes);
    cg_scope_close(g, mark);
    cg_place(g, skip);
    keep(s);
}

void epilogue_wait(struct wgmma *s)
{
    struct cg *g = s->g;
    if (!s->shape->nbrought)
        return;
    ring_wait_for(g, s->brought_barrier, 0, s->brought_parity);
    cg_move(g, s->brought_parity,
            cg_binary(g, OP_XOR, cg_value(DT_U32, s->brought_parity), cg_u32(1)));
}

/* ---- its elements ---------------------------------------------------------------------------- */

void wgmma_take_brought(struct wgmma *s, int32_t at, uint32_t box, uint32_t piece)
{
    struct cg *g = s->g;
    if (box < s->shape->kept) {
        for (uint32_t w = 0; w < 4; w++)
            s->brought[0].word[w] = s->kept_word[box * KEPT_WORDS + piece * 4 + w];
        return;
    }
    for (uint32_t n = 0; n < s->shape->nbrought; n++) {
        struct epilogue_tensor *r = &s->brought[n];
        const enum dtype t = s->shape->brought[n]->sym->type;
        const uint32_t from = (n * s->shape->places + box % s->shape->places) * BOX_BYTES;
        struct ptx_operand word[4];
        for (uint32_t w = 0; w < 4; w++)
            word[w] = ptx_r(r->word[w] = cg_new(g, dtype_bits(t) == 32 ? t : DT_U32));
        if (dtype_bits(t) == 16)
            box_take_words(g, at, from, word);
        for (uint32_t half = 0; half < 2 && dtype_bits(t) == 32; half++)
            box_take_pair(g, t, at, from, half, word + 2 * half);
    }
}

bool epilogue_read(struct wgmma *s, const struct lang_expr *e, uint32_t pair, uint32_t half,
                   uint32_t lane, struct cg_val *v)
{
    for (uint32_t n = 0; n < s->shape->nbrought; n++) {
        const struct epilogue_tensor *r = &s->brought[n];
        const enum dtype t = s->shape->brought[n]->sym->type;
        struct cg_val of[2];
        if (!wgmma_is_same_read(s->f, s->shape->brought[n], e))
            continue;
        if (dtype_bits(t) == 32) {
            *v = cg_value(t, r->word[2 * half + lane]);
        } else {
            cg_unpack(s->g, t, r->word[2 * pair + half], 2, of);
            *v = of[lane];
        }
        return true;
    }
    return false;
}
