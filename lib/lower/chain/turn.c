/* Tiles of v, of 8 bits, from rows along the columns to rows along j, which wgmma takes alone
 * (chain/wgmma.h). The producer's warps but the first turn them while others are multiplied.
 *
 * A unit is 16 j and 32 columns. Four matrices of 8 j and 16 columns are loaded and transposed as
 * if they were of 16 bits, so that lane 4 r + c has of columns 2 r and 2 r + 1 those of j = 2 c and
 * 2 c
 * + 1, of one matrix, and those 8 further, of the other. Parted these are the words of 16 j of two
 * columns, in the order that the left operand's words have them (chain/multiply.c), and 8 columns
 * are stored at once: chunks of 16 bytes, of 8 rows. Lanes from 16 on have the odd column where the
 * others have the even one, so that these rows are in banks of their own.
 *
 *     matrix     columns of its rows r                 j
 *     0          2 r + r / 4                           0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15
 *     1          2 r + 1 - r / 4
 *     2, 3       16 more
 */
#include <config.h>

#include "lower/chain/wgmma.h"

enum {
    CHUNK = 16, /* bytes; j of a unit */
    CHUNKS = WGMMA_SPAN / CHUNK,
    WIDE = 32, /* columns of a unit */
    EVEN = 0x6420,
    ODD = 0x7531,
};

/* A lane's part of all addresses: u32. */
struct turner {
    struct chain_wgmma *k;
    struct cg_val number; /* of the warp */
    struct cg_val from;   /* bytes to its chunk of the first unit's, of those that are loaded; */
    struct cg_val to, swizzle_to;
    struct cg_val selector[2]; /* of prmt, for matrices 0 and 2, and for the others */
};

static struct cg_val op(struct cg *g, enum lang_op o, struct cg_val x, uint32_t y)
{
    return cg_binary(g, o, x, cg_u32(y));
}

static void find_lane(struct turner *u)
{
    struct chain_wgmma *k = u->k;
    struct cg *g = k->g;
    const struct cg_val lane = k->x.lane, row = op(g, OP_AND, lane, 7),
                        matrix = op(g, OP_SHR, lane, 3);
    const struct cg_val odd = op(g, OP_AND, matrix, 1), high = op(g, OP_SHR, matrix, 1);
    const struct cg_val j = cg_add(g, cg_mul(g, odd, 8), row);
    u->number = op(g, OP_SUB, k->warp, 1);
    const struct cg_val chunk = cg_mul(g, cg_binary(g, OP_XOR, high, row), CHUNK);
    u->from = cg_freeze(g, cg_add(g, cg_mul(g, j, WGMMA_SPAN), chunk));
    struct cg_val column = cg_binary(g, OP_XOR, op(g, OP_SHR, row, 2), odd);
    const struct cg_val across = cg_mul(g, high, 16);
    column = cg_add(g, cg_add(g, cg_mul(g, row, 2), column), across);
    u->to = cg_freeze(g, cg_mul(g, column, WGMMA_SPAN));
    u->swizzle_to = cg_freeze(g, cg_mul(g, op(g, OP_AND, column, CHUNKS - 1), CHUNK));
    const int32_t late = cg_reg(g, cg_binary(g, OP_GE, lane, cg_u32(16)));
    u->selector[0] = cg_freeze(g, cg_select(g, late, cg_u32(ODD), cg_u32(EVEN)));
    u->selector[1] = cg_freeze(g, cg_select(g, late, cg_u32(EVEN), cg_u32(ODD)));
}

/* Loads the unit of columns from `first` on: at, of the lane in the stage for columns 0, whose
 * chunk is bits 4 to 6 of it. */
static void load_unit(const struct turner *u, const struct chain_box *raw, uint32_t first,
                      struct cg_val at, struct ptx_operand *in)
{
    struct cg *g = u->k->g;
    const uint32_t atom = first / WGMMA_SPAN * raw->lay.atom_bytes;
    const uint32_t chunk = first % WGMMA_SPAN / CHUNK;
    for (uint32_t i = 0; i < 4; i++)
        in[i] = ptx_r(cg_new(g, DT_U32));
    at = op(g, OP_XOR, at, chunk * CHUNK);
    PTX(&g->b, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", ptx_vec(&g->b, 4, in),
        ptx_mem(cg_reg(g, at), atom));
}

/* Parts its words, and stores them: to, of the lane for columns 0. */
static void store_unit(const struct turner *u, uint32_t first, struct cg_val to,
                       const struct ptx_operand *in)
{
    struct cg *g = u->k->g;
    struct ptx_operand out[4];
    for (uint32_t i = 0; i < 4; i++) {
        out[i] = ptx_r(cg_new(g, DT_U32));
        PTX(&g->b, "prmt.b32", out[i], in[i / 2 * 2], in[i / 2 * 2 + 1],
            ptx_r(cg_reg(g, u->selector[i % 2])));
    }
    PTX(&g->b, "stmatrix.sync.aligned.m8n8.x4.shared.b16",
        ptx_mem(cg_reg(g, to), first * WGMMA_SPAN), ptx_vec(&g->b, 4, out));
}

/* Turns all columns: several units are loaded before the first is stored, since each load takes
 * longer than all that follows it. */
static void turn_columns(const struct turner *u, const struct chain_box *raw, struct cg_val at,
                         struct cg_val to)
{
    /* that the producer's few registers have room for, where addresses take few, and more */
    enum { MOST = 4, FEWER = 2 };
    const uint32_t columns = u->k->p->columns;
    const uint32_t most = columns > WGMMA_SPAN ? FEWER : MOST;
    struct ptx_operand in[MOST][4];
    for (uint32_t from = 0; from < columns; from += most * WIDE) {
        const uint32_t rest = (columns - from + WIDE - 1) / WIDE, n = rest < most ? rest : most;
        for (uint32_t i = 0; i < n; i++)
            load_unit(u, raw, from + i * WIDE, at, in[i]);
        for (uint32_t i = 0; i < n; i++)
            store_unit(u, from + i * WIDE, to, in[i]);
    }
}

/* Turns the columns of 16 j, number t of the tile. */
static void turn_row(const struct turner *u, struct cg_val t)
{
    struct chain_wgmma *k = u->k;
    struct cg *g = k->g;
    const struct cg_val chunk = cg_mul(g, op(g, OP_AND, t, CHUNKS - 1), CHUNK);
    const struct cg_val atom = op(g, OP_DIV, t, CHUNKS);
    for (uint32_t n = 0; n < k->t->ncolumn; n++) {
        const struct chain_box *raw = &k->raw[n], *v = &k->v[n];
        struct cg_val at = cg_add(g, ring_stage(&k->of_raw.ring), cg_u32(raw->offset));
        const struct cg_val whose = cg_mul(g, t, CHUNK * WGMMA_SPAN);
        at = cg_add(g, cg_add(g, at, u->from), whose);
        struct cg_val to = cg_add(g, ring_stage(&k->of_v.ring), cg_u32(v->offset));
        const struct cg_val rows = cg_mul(g, atom, v->lay.atom_bytes);
        to = cg_add(g, cg_add(g, to, u->to), rows);
        to = cg_add(g, to, cg_binary(g, OP_XOR, u->swizzle_to, chunk));
        at = cg_freeze(g, at);
        to = cg_freeze(g, to);
        turn_columns(u, raw, at, to);
    }
}

/* The warp's part of a tile. */
static void turn_tile(const struct turner *u)
{
    struct cg *g = u->k->g;
    const uint32_t head = cg_label(g, "turn"), end = cg_label(g, "turned");
    const struct cg_val all = cg_u32(u->k->p->wide / CHUNK);
    const int32_t t = cg_mutable(g, u->number);
    struct cg_nest nest;
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, cg_value(DT_U32, t), all)), true, end);
    const size_t mark = cg_scope_open(g);
    cg_place(g, head);
    cg_loop_head(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, t);
    turn_row(u, cg_freeze(g, cg_value(DT_U32, t)));
    CG_ASSIGN(g, t, "add.s32", ptx_r(t), ptx_imm(CHAIN_TURNERS));
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, cg_value(DT_U32, t), all)), true, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, end);
    cg_loop_head(g);
}

static void turn_item(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const uint32_t none = cg_label(g, "none");
    struct turner u = {.k = k};
    struct ring_loop l;
    chain_tile_find(&k->x);
    chain_wgmma_find_tiles(k);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, k->count, cg_u32(0))), false, none);
    const size_t mark = cg_scope_open(g);
    find_lane(&u);
    ring_for(&k->of_raw.ring, &l, k->count);
    ring_varies(&k->of_v.ring, &l.nest);
    ring_wait(&k->of_raw.ring, RING_FULL);
    ring_wait(&k->of_v.ring, RING_EMPTY);
    turn_tile(&u);
    PTX(&g->b, "bar.warp.sync", ptx_imm(-1)); /* all lanes have read */
    ring_note(&k->of_raw.ring, &k->of_raw.release);
    ring_release(&k->of_raw.ring, &k->of_raw.release, k->of_raw.release.mine);
    ring_hand_over(&k->of_v.ring, RING_FULL);
    ring_next(&k->of_v.ring);
    ring_for_end(&k->of_raw.ring, &l);
    cg_scope_close(g, mark);
    cg_place(g, none);
    cg_loop_head(g);
}

void chain_wgmma_turn(struct chain_wgmma *k)
{
    k->before = cg_u32(0);
    chain_wgmma_begin_rings(k, 1);
    ring_begin(&k->of_raw.ring, 0);
    if (k->fetches)
        ring_begin(&k->of_item.ring, 0);
    k->of_raw.release = ring_release_here(&k->of_raw.ring);
    chain_wgmma_for_items(k, false, turn_item);
}
