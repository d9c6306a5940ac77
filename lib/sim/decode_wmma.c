/* wmma: matrices of a warp in fragments whose order is the implementation's. Here they are the
 * fragments of mma (matrix.h), several of them side by side, and the instructions become plain
 * loads, stores and mma.
 *
 * m16n16k: one tile of A, two of B, one for every eight columns; C has two tiles of 16 x 8. m32n8k:
 * two tiles of A, one of B. m8n32k: the product is computed transposed, so that A has the place of
 * B there, B that of A, and C its columns as rows. Where f16 has more registers than that takes,
 * they repeat.
 */
#include <config.h>

#include "sim/decode.h"
#include "sim/matrix.h"

enum { MOST = 8 }; /* registers of a fragment */

/* A matrix of the instruction as tiles of mma: element (i, j) of a tile is in lane 4 (i mod 8) +
 * t. */
struct tiles {
    bool sum;      /* of C and D, else of A or B, with j along K */
    unsigned rows; /* of a tile: 16, or 8 where it has the place of B */
    unsigned bits; /* of an element */
    unsigned
        across; /* the tile that follows is so many further along j (C of m16n16), 0: along i */
    unsigned registers; /* of a tile */
    unsigned n;         /* registers of the fragment; those beyond all tiles repeat */
    unsigned total;     /* ... of all tiles */
    bool i_is_line;     /* memory holds lines of i, j within; else lines of j */
    uint32_t stride;    /* slot: elements from line to line */
};

/* Where register r begins: i and j of its first element in lane 0; lane 4 g + t is g further along
 * i, and t * step along j. */
struct place {
    unsigned i, j, step, elements;
};

static struct place place_of(const struct tiles *x, unsigned r)
{
    const unsigned tile = r / x->registers, in = r % x->registers;
    struct place p = {.i = x->across ? 0 : tile * x->rows, .j = tile * x->across};
    if (x->sum) {
        p.elements = x->bits == 16 ? 2 : 1;
        p.step = 2;
        p.i += (x->bits == 16 ? in : in / 2) * 8;
        p.j += x->bits == 16 ? 0 : in % 2;
        return p;
    }
    p.elements = x->bits >= 32 ? 1 : 32 / x->bits;
    p.step = p.elements;
    p.i += in % (x->rows / 8) * 8;
    p.j += in / (x->rows / 8) * 4 * p.elements;
    return p;
}

/* ---- addresses ------------------------------------------------------------------------------- */

struct memory {
    enum sim_space space;
    uint32_t line;    /* slot: bytes from line to line */
    uint32_t address; /* slot, 64 bits: of a lane's element (g, t step) */
};

static uint32_t wide_sum(struct dec *dc, uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t d = dec_temp(dc, DEC_64);
    dec_emit3(dc, SIM_H_MADW_U32, d, a, b, c);
    return d;
}

static uint32_t number(struct dec *dc, uint32_t v)
{
    return dec_const(dc, v, false);
}

static uint32_t binary(struct dec *dc, enum sim_handler_id h, uint32_t a, uint32_t b)
{
    const uint32_t d = dec_temp(dc, DEC_32);
    dec_emit3(dc, h, d, a, b, 0);
    return d;
}

static bool memory_of(struct dec *dc, const struct ptx_operand *m, const struct tiles *x,
                      struct memory *to)
{
    uint32_t base;
    uint64_t offset;
    bool narrow;
    if (!dec_space(dc, dc->inst->mod[PTX_MC_SPACE], &to->space) ||
        !dec_memory(dc, m, to->space, &base, &offset, &narrow))
        return false;
    if (narrow) {
        base = wide_sum(dc, base, number(dc, 1), dec_const(dc, offset, true));
    } else if (offset) {
        const uint32_t sum = dec_temp(dc, DEC_64);
        dec_emit3(dc, SIM_H_ADD_64, sum, base, dec_const(dc, offset, true), 0);
        base = sum;
    }
    const uint32_t lane = dec_special(dc, PTX_SR_LANEID, SIM_T_u32), bytes = x->bits / 8;
    const uint32_t g = binary(dc, SIM_H_SHR_U32, lane, number(dc, 2));
    const uint32_t t = binary(dc, SIM_H_AND_32, lane, number(dc, 3));
    const uint32_t step = place_of(x, 0).step;
    to->line = binary(dc, SIM_H_MUL_32, x->stride, number(dc, bytes));
    if (x->i_is_line) {
        base = wide_sum(dc, g, to->line, base);
        to->address = wide_sum(dc, t, number(dc, step * bytes), base);
    } else {
        base = wide_sum(dc, g, number(dc, bytes), base);
        to->address = wide_sum(dc, binary(dc, SIM_H_MUL_32, t, number(dc, step)), to->line, base);
    }
    return !dc->failed;
}

/* A load or store of so many bytes at element (i, j) from a lane's own. */
static void access(struct dec *dc, const struct tiles *x, const struct memory *m, bool store,
                   unsigned i, unsigned j, unsigned bytes, uint32_t slot)
{
    const unsigned lines = x->i_is_line ? i : j, within = x->i_is_line ? j : i;
    const uint32_t at = lines ? wide_sum(dc, m->line, number(dc, lines), m->address) : m->address;
    const enum sim_handler_id load = bytes == 8   ? SIM_H_LD_64
                                     : bytes == 4 ? SIM_H_LD_32
                                     : bytes == 2 ? SIM_H_LD_U16
                                                  : SIM_H_LD_U8;
    struct sim_op *op = dec_emit(dc, !store       ? load
                                     : bytes == 8 ? SIM_H_ST_64
                                     : bytes == 4 ? SIM_H_ST_32
                                                  : SIM_H_ST_16);
    op->d = slot;
    op->a = at;
    op->imm = (uint64_t)within * x->bits / 8;
    op->size = (uint8_t)bytes;
    op->more = (uint8_t)m->space;
    op->cache = dc->code->ncache++;
    op->flags = store ? SIM_STORES : 0;
}

/* Register r from or to memory: in one piece where its elements follow each other. */
static void transfer(struct dec *dc, const struct tiles *x, const struct memory *m, bool store,
                     unsigned r, uint32_t slot)
{
    const struct place p = place_of(x, r);
    const unsigned bytes = x->bits / 8;
    if (p.elements == 1 || x->i_is_line) {
        access(dc, x, m, store, p.i, p.j, p.elements * bytes, slot);
        return;
    }
    uint32_t whole = slot;
    for (unsigned e = 0; e < p.elements; e++) {
        const uint32_t by = number(dc, e * x->bits);
        if (store) {
            const uint32_t part = e ? binary(dc, SIM_H_SHR_U32, slot, by) : slot;
            access(dc, x, m, true, p.i, p.j + e, bytes, part);
            continue;
        }
        const uint32_t part = dec_temp(dc, DEC_32);
        access(dc, x, m, false, p.i, p.j + e, bytes, part);
        const uint32_t moved = e ? binary(dc, SIM_H_SHL_32, part, by) : part;
        whole = e ? binary(dc, SIM_H_OR_32, whole, moved) : moved;
    }
    if (!store)
        dec_emit3(dc, SIM_H_MOV_32, slot, whole, 0, 0);
}

/* ---- the instructions ------------------------------------------------------------------------ */

/* Tiles of a matrix (PTX_MATRIX_A and so on) of elements that have so many bits; col: its
 * layout. */
static struct tiles tiles_of(struct ptx_shape s, enum ptx_mod matrix, unsigned bits, bool col)
{
    const bool turned = s.m == 8 && s.n == 32, is_b = matrix == PTX_MATRIX_B;
    struct tiles x = {.sum = !is_b && matrix != PTX_MATRIX_A, .bits = bits};
    const unsigned wide = bits == 64 ? 64 : 32;
    unsigned i = is_b ? s.n : s.m; /* extent along i */
    x.i_is_line = is_b ? col : !col;
    if (x.sum && turned) {
        i = s.n;
        x.i_is_line = col;
    }
    const bool as_b = is_b != turned;
    x.rows = x.sum ? (i < 16 ? 8 : 16) : as_b || i < 16 ? 8 : 16;
    x.across = x.sum && s.n == 16 ? 8 : 0;
    const unsigned tiles = i / x.rows * (x.across ? 2 : 1);
    x.registers = x.rows * (x.sum ? 8 : s.k) * bits / wide / SIM_LANES;
    x.total = x.registers * tiles;
    return x;
}

/* wmma.load.X.sync.aligned.layout.shape{.space}.type r, [p]{, stride}; wmma.store.d has [p] before
 * r. */
static bool move(struct dec *dc, enum ptx_mod matrix)
{
    const struct ptx_inst *in = dc->inst;
    const struct ptx_shape s = ptx_shape(in);
    const bool store = matrix == PTX_MATRIX_D;
    const unsigned bits = ptx_type_bits(in->type[0]) == 32 || in->type[0] == PTX_TF32
                              ? 32
                              : ptx_type_bits(in->type[0]);
    const bool col = in->mod[PTX_MC_LAYOUT] == PTX_COL;
    const struct ptx_operand *list = &in->operand[store];
    const enum sim_type t = in->type[0] == PTX_F32 ? SIM_T_f32 : bits == 64 ? SIM_T_f64 : SIM_T_u32;
    struct memory m;
    uint32_t slot[MOST];
    struct tiles x = tiles_of(s, matrix, bits, col);
    x.n = list->kind == PTX_O_VEC ? list->nelem : 1;
    if (x.n < x.total || x.n > MOST)
        return dec_unsupported(dc);
    const unsigned least = matrix == PTX_MATRIX_A   ? col ? s.m : s.k
                           : matrix == PTX_MATRIX_B ? col ? s.k : s.n
                           : col                    ? s.m
                                                    : s.n;
    x.stride = in->noperand > 2 ? dec_src(dc, &in->operand[2], SIM_T_u32) : number(dc, least);
    if (!memory_of(dc, &in->operand[!store], &x, &m) || !dec_group(dc, list, x.n, t, !store, slot))
        return false;
    for (unsigned r = 0; r < x.total; r++)
        transfer(dc, &x, &m, store, r, slot[r]);
    for (unsigned r = x.total; r < x.n && !store; r++)
        dec_emit3(dc, SIM_H_MOV_32, slot[r], slot[r % x.total], 0, 0);
    return !dc->failed;
}

static bool holds(const uint32_t *list, unsigned n, uint32_t slot)
{
    for (unsigned i = 0; i < n; i++)
        if (list[i] == slot)
            return true;
    return false;
}

/* One of the products that make up the whole; d_slot has its results. */
static void part(struct dec *dc, const struct sim_mma *shared, const uint32_t *a, const uint32_t *b,
                 const uint32_t *c, const uint32_t *d)
{
    struct sim_mma *m = ARENA_NEW(dc->in->arena, struct sim_mma);
    *m = *shared;
    memcpy(m->a, a, m->na * sizeof *a);
    memcpy(m->b, b, m->nb * sizeof *b);
    memcpy(m->c, c, m->nc * sizeof *c);
    memcpy(m->d, d, m->nc * sizeof *d);
    dec_emit_mma(dc, m);
}

/* wmma.mma.sync.aligned.alayout.blayout.shape.types d, a, b, c */
static bool multiply(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const struct ptx_shape s = ptx_shape(in);
    const bool named = in->type[2]; /* else f16, with the types of D and C alone */
    struct sim_mma m = {.m = 16, .n = 8, .a_type = SIM_E_F16, .b_type = SIM_E_F16};
    unsigned bits = 16;
    uint32_t slot[4][MOST];
    if (in->type[0] != in->type[named ? 3 : 1] ||
        (named && (!dec_element(in->type[1], &m.a_type, &bits) ||
                   !dec_element(in->type[2], &m.b_type, &bits))))
        return dec_unsupported(dc);
    const bool turned = s.m == 8 && s.n == 32;
    const unsigned wide = bits == 64 ? 64 : 32, parts = bits == 64 ? 1 : 2;
    m.m = bits == 64 ? 8 : 16;
    m.k = s.k;
    m.half = in->type[0] == PTX_F16;
    m.saturate = in->mod[PTX_MC_SAT] == PTX_SATFINITE;
    m.round = dec_round(in);
    m.na = (uint8_t)(m.m * m.k * bits / wide / SIM_LANES);
    m.nb = (uint8_t)(8 * m.k * bits / wide / SIM_LANES);
    m.nc = (uint8_t)(m.m * 8u / SIM_LANES / (m.half ? 2 : 1));
    dec_accumulation(&m, dc->in->sm, bits);
    const enum sim_type t = wide == 64 ? SIM_T_f64 : SIM_T_u32;
    const enum sim_type sum = wide == 64 ? SIM_T_f64 : in->type[0] == PTX_F32 ? SIM_T_f32 : t;
    for (int i = 3; i >= 0; i--) {
        const struct ptx_operand *o = &in->operand[i];
        const unsigned n = o->kind == PTX_O_VEC ? o->nelem : 1;
        if (n > MOST || !dec_group(dc, o, n, i == 0 || i == 3 ? sum : t, i == 0, slot[i]))
            return dec_unsupported(dc);
    }
    const uint32_t *a = slot[turned ? 2 : 1], *b = slot[turned ? 1 : 2], *c = slot[3];
    if (turned) {
        const uint8_t type = m.a_type;
        m.a_type = m.b_type;
        m.b_type = type;
    }
    const unsigned next_a = s.n == 16 ? 0 : m.na, next_b = s.n == 16 ? m.nb : 0;
    /* the second part reads what the first must not have written */
    uint32_t first[MOST];
    for (unsigned i = 0; i < m.nc; i++)
        first[i] = parts > 1 && (holds(a, m.na + next_a, slot[0][i]) ||
                                 holds(b, m.nb + next_b, slot[0][i]) ||
                                 holds(c + m.nc, m.nc, slot[0][i]))
                       ? dec_temp(dc, DEC_32)
                       : slot[0][i];
    part(dc, &m, a, b, c, first);
    if (parts > 1)
        part(dc, &m, a + next_a, b + next_b, c + m.nc, slot[0] + m.nc);
    for (unsigned i = 0; i < m.nc; i++)
        if (first[i] != slot[0][i])
            dec_emit3(dc, SIM_H_MOV_32, slot[0][i], first[i], 0, 0);
    return !dc->failed;
}

bool dec_wmma(struct dec *dc)
{
    const enum ptx_mod matrix = dc->inst->mod[PTX_MC_MODE];
    return matrix ? move(dc, matrix) : multiply(dc);
}
