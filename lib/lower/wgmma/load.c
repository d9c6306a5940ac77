/* The producer (wgmma/wgmma.h): tiles of the operands to shared memory, by copies of boxes (TMA).
 *
 * What is outside of a tensor reads as zeros and is counted like the rest, so edges take no code.
 */
#include <config.h>

#include "lower/wgmma/wgmma.h"

/* Which part of the tile this block brings. */
static struct cg_val part_of(const struct wgmma *s, const struct wgmma_tile *t)
{
    return t->side == MATMUL_A ? s->at_col : s->at_row;
}

void wgmma_load_begin(struct wgmma *s)
{
    for (uint32_t i = 0; i < s->shape->ntile; i++) {
        const struct wgmma_tile *t = &s->shape->tile[i];
        const struct matmul_operand *o = &s->f->operand[t->operand];
        const struct lang_expr *e = o->plain;
        if (t->made)
            continue;
        if (!e) {
            s->map[i] = matmul_boxes_map(s->m, o->gather, t->box_rows, WGMMA_SPAN / t->size);
            continue;
        }
        uint32_t box[CONTRACT_MAP_RANK];
        for (uint32_t d = 0; d < e->nargs; d++) {
            const struct lang_expr *sub = e->args[e->nargs - 1 - d];
            const bool is_k = inspect_is_index(sub, s->f->k);
            const struct lang_symbol *side = t->side == MATMUL_A ? s->f->i : s->f->j;
            const bool is_side = inspect_is_index(sub, side);
            box[d] = d == 0 ? WGMMA_SPAN / t->size : is_k || is_side ? t->box_rows : 1;
        }
        if (matmul_in_f16(s->p)) {
            const struct matmul_parted *parted = &s->m->parted[t->operand];
            s->map[i] = cg_param_map(s->g, parted->first, box, false);
            s->rest_map[i] = cg_param_map(s->g, parted->rest, box, false);
            continue;
        }
        s->map[i] = cg_param_map(s->g, e->sym, box, o->cut == MATMUL_EVEN);
    }
}

/* The blocks that get what this one brings of the tile, one bit each. */
static int32_t mask_of(struct wgmma *s, const struct wgmma_tile *t)
{
    struct cg *g = s->g;
    uint32_t bits = 0;
    struct cg_val first;
    if (t->side == MATMUL_A) { /* those in its row: at_row, at_row + down ... */
        for (uint32_t q = 0; q < s->shape->across; q++)
            bits |= 1u << (q * s->shape->down);
        first = cg_add(g, s->apart, s->at_row);
    } else {
        bits = (1u << s->shape->down) - 1;
        first = cg_add(g, s->apart, cg_mul(g, s->at_col, s->shape->down));
    }
    const int32_t mask = cg_reg(g, cg_binary(g, OP_SHL, cg_u32(bits), first));
    return CG(g, PTX_B16, "cvt.u16.u32", ptx_r(mask));
}

/* Coordinates of the box at (at, k) of a matrix. */
static struct tma_box box_of_matrix(struct wgmma *s, const struct wgmma_tile *t, struct cg_val at,
                                    struct cg_val k)
{
    struct cg *g = s->g;
    const struct lang_expr *e = s->f->operand[t->operand].plain;
    struct cg_val sub[VARIANT_RANK];
    struct tma_box box = {.rank = e->nargs};
    k = cg_index(g, k);
    matmul_subscripts(s->m, t->operand, cg_index(g, at), k, sub);
    for (uint32_t d = 0; d < e->nargs; d++)
        box.at[d] = ptx_r(cg_reg(g, cg_convert(g, sub[e->nargs - 1 - d], DT_U32)));
    return box;
}

static struct tma_box box_of_windows(struct wgmma *s, const struct wgmma_tile *t, struct cg_val at,
                                     struct cg_val k)
{
    struct matmul_box from;
    matmul_boxes_at(s->m, s->f->operand[t->operand].gather, at, k, &from);
    struct tma_box box = {.rank = from.rank, .noffset = from.noffset};
    memcpy(box.at, from.at, sizeof box.at);
    memcpy(box.offset, from.offset, sizeof box.offset);
    return box;
}

/* A box at (at, k), to `to` + offset in the tile; of f16 parts both. */
static void copy_box(struct wgmma *s, const struct wgmma_tile *t, struct cg_val at, struct cg_val k,
                     int32_t to, uint32_t offset)
{
    struct cg *g = s->g;
    struct tma_box box = s->f->operand[t->operand].plain ? box_of_matrix(s, t, at, k)
                                                         : box_of_windows(s, t, at, k);
    const int32_t mask = t->sharers > 1 ? mask_of(s, t) : -1;
    box.map = s->map[t - s->shape->tile];
    tma_load(g, &box, to, t->offset + offset, s->ring.full, mask);
    if (!matmul_in_f16(s->p))
        return;
    box.map = s->rest_map[t - s->shape->tile];
    tma_load(g, &box, to, t->rest + offset, s->ring.full, mask);
}

static void load_tile(struct wgmma *s, const struct wgmma_tile *t, struct cg_val k, int32_t stage)
{
    struct cg *g = s->g;
    const uint32_t elements = WGMMA_SPAN / t->size;
    const uint32_t atoms = t->by_rows ? t->atoms : t->atoms / t->sharers;
    struct cg_val at = cg_convert(g, t->side == MATMUL_A ? s->m->row : s->m->col, DT_U32);
    if (t->sharers > 1) {
        const struct cg_val part = part_of(s, t);
        const uint32_t bytes = t->by_rows ? t->box_rows * WGMMA_SPAN : atoms * t->atom_bytes;
        if (!t->by_rows)
            at = cg_add(g, at, cg_mul(g, part, atoms * elements));
        else if (t->along_k)
            at = cg_add(g, at, cg_mul(g, part, t->box_rows));
        else
            k = cg_add(g, k, cg_mul(g, part, t->box_rows));
        stage = cg_reg(g, cg_add(g, cg_value(DT_U32, stage), cg_mul(g, part, bytes)));
    }
    for (uint32_t a = 0; a < atoms; a++) {
        struct cg_val more = cg_u32(a * elements);
        const struct cg_val b = t->along_k ? cg_add(g, k, more) : k;
        const struct cg_val c = t->along_k ? at : cg_add(g, at, more);
        copy_box(s, t, c, b, stage, a * t->atom_bytes);
    }
}

/* By one thread. */
static void copy_stage(struct wgmma *s)
{
    struct cg *g = s->g;
    ring_expect(&s->ring, s->shape->copied);
    const struct cg_val k = cg_value(DT_U32, s->k);
    const int32_t stage = cg_reg(g, ring_stage(&s->ring));
    for (uint32_t i = 0; i < s->shape->ntile; i++)
        if (!s->shape->tile[i].made)
            load_tile(s, &s->shape->tile[i], k, stage);
}

/* The first thread of those that make the rest copies. */
static void make_stage(struct wgmma *s)
{
    struct cg *g = s->g;
    const uint32_t copied = cg_label(g, "copied");
    if (!s->shape->gathers)
        wgmma_make_ahead(s);
    ring_wait(&s->ring, RING_EMPTY);
    if (s->shape->copied) {
        const struct cg_val t = cg_binary(g, OP_AND, s->m->thread, cg_u32(WGMMA_GROUP - 1));
        const size_t mark = cg_scope_open(g);
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, t, cg_u32(0))), false, copied);
        copy_stage(s);
        cg_scope_close(g, mark);
        cg_place(g, copied);
    }
    if (s->shape->gathers)
        wgmma_gather_stage(s);
    else
        wgmma_make_stage(s);
}

/* Makes every second stage: the others are the other producer's. */
static void make_by_turns(struct wgmma *s)
{
    struct cg *g = s->g;
    const uint32_t others = cg_label(g, "others");
    const struct cg_val turn = cg_value(DT_U32, s->turn);
    const int32_t mine = cg_reg(g, cg_binary(g, OP_EQ, turn, cg_u32(0)));
    cg_move(g, s->turn, cg_binary(g, OP_XOR, turn, cg_u32(1)));
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, mine, false, others);
    make_stage(s);
    cg_scope_close(g, mark);
    cg_place(g, others);
}

static void load_stage(struct wgmma *s)
{
    struct cg *g = s->g;
    if (s->shape->made && s->shape->producers > 1) {
        make_by_turns(s);
    } else if (s->shape->made) {
        make_stage(s);
    } else {
        ring_wait(&s->ring, RING_EMPTY);
        copy_stage(s);
    }
    cg_move(g, s->k, cg_add(g, cg_value(DT_U32, s->k), cg_u32(s->p->bk)));
}

void wgmma_load_tile(struct wgmma *s)
{
    struct cg *g = s->g;
    s->k = cg_new_mutable(g, DT_U32);
    cg_move(g, s->k, cg_convert(g, s->m->k_from, DT_U32));
    if (s->shape->gathers)
        wgmma_gather_tile(s);
    else if (s->shape->made)
        wgmma_make_tile(s);
    wgmma_for_stages(s, load_stage);
}

/* Other blocks arrive at this one's barriers, which must be there as long: until all stages are
 * read. */
void wgmma_load_end(struct wgmma *s)
{
    if (s->shape->gathers)
        wgmma_gather_end(s);
    if (s->shape->sharing > 1)
        ring_drain(&s->ring);
}
