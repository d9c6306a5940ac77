/* Brings operands' tiles to shared memory (chain.h). What lies in memory as it is multiplied is
 * copied by cp.async, a thread's pieces being rows apart; so are rows that are found by reading
 * something else, as those of pages are. Anything else is computed, and passes registers.
 */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/extent.h"

enum {
    MOST_PIECE = MMA_CHUNK, /* elements of a piece, */
    MOST_LANES = 8,         /* and of a vector */
    MOST_OFFSET = 1 << 23,  /* bytes that an instruction adds to an address */
};

static const struct matmul_operand *operand(const struct chain_slab *t)
{
    return &t->m.f->operand[t->operand];
}

/* Elements of a piece. */
static uint32_t piece_of(const struct chain_slab *t)
{
    return MMA_CHUNK * 8 / dtype_bits(t->type);
}

static uint32_t pieces_of_row(const struct chain_slab *t)
{
    return t->lay.row_bytes / MMA_CHUNK;
}

uint32_t chain_slab_bytes(const struct chain_slab *t)
{
    return t->rows * t->lay.row_bytes;
}

static bool lies_along_k(const struct chain_slab *t)
{
    return t->lay.layout == MMA_ALONG_K;
}

/* Does the tile lie as the operand does in memory? */
static bool lies_alike(const struct chain_slab *t)
{
    return lies_along_k(t) == operand(t)->along_k;
}

/* The row (column) and the term of the operand at a tile's row r and element e of it. */
static struct cg_val at_of(const struct chain_slab *t, struct cg_val at, struct cg_val r,
                           struct cg_val e)
{
    return cg_add(t->m.g, at, lies_along_k(t) ? r : e);
}

static struct cg_val k_of(const struct chain_slab *t, struct cg_val k, struct cg_val r,
                          struct cg_val e)
{
    return cg_add(t->m.g, k, lies_along_k(t) ? e : r);
}

static struct cg_val address(struct chain_slab *t, struct cg_val at, struct cg_val k,
                             struct cg_val r, struct cg_val e)
{
    struct cg *g = t->m.g;
    k = cg_index(g, k_of(t, k, r, e));
    at = cg_index(g, at_of(t, at, r, e));
    const struct cg_place_of p = matmul_place(&t->m, t->operand, at, k);
    return cg_binary(g, OP_ADD, cg_value(DT_I64, p.base), cg_int(DT_I64, p.offset));
}

/* The element of a buffer that the operand is, one whole row of which lies along the tile's rows,
 * wherever others lie; NULL: it is none. */
static const struct lang_expr *find_gathered(const struct chain_slab *t)
{
    const struct matmul_operand *o = operand(t);
    const struct lang_expr *e = o->eq->rhs;
    const struct lang_symbol *inner = lies_along_k(t) ? t->m.f->k : t->m.f->j;
    if (o->plain || o->side == MATMUL_A || e->kind != E_INDEX || e->pad || e->type != t->type ||
        e->sym->kind != SYM_BUFFER || cg_is_defined(t->m.g, e->sym) ||
        !inspect_is_index(e->args[e->nargs - 1], inner))
        return NULL;
    for (uint32_t i = 0; i + 1 < e->nargs; i++)
        if (chain_mentions(e->args[i], inner))
            return NULL;
    return e;
}

/* Bytes in memory from a thread's piece to its next; 0: that is not known. */
static int64_t next_row_of(const struct chain_slab *t)
{
    const struct lang_expr *e = operand(t)->plain;
    const struct matmul_form *f = t->m.f;
    const struct lang_symbol *across = operand(t)->side == MATMUL_A ? f->i : f->j;
    const struct lang_symbol *of_row = lies_along_k(t) ? across : f->k;
    int64_t n, bytes = (int64_t)t->row_step * dtype_bits(t->type) / 8;
    for (uint32_t i = e->nargs; i-- > 0;) {
        if (inspect_is_index(e->args[i], of_row))
            return bytes > MOST_OFFSET / t->count ? 0 : bytes;
        if (!lang_const_int(e->sym->dims[i], &n) || n < 1 || n > MOST_OFFSET / bytes)
            return 0;
        bytes *= n;
    }
    return 0;
}

void chain_slab_begin(struct chain_slab *t, struct cg_val thread)
{
    struct cg *g = t->m.g;
    const uint32_t across = pieces_of_row(t);
    const struct cg_val zero = cg_u32(0);
    struct cg_val takes = cg_bool(g, true);
    int64_t always;
    const bool copies = t->aligned && g->target->sm >= 80 && lies_alike(t);
    t->gathered = copies ? find_gathered(t) : NULL;
    t->is_async = copies && operand(t)->plain &&
                  (operand(t)->cut == MATMUL_WHOLE || operand(t)->cut == MATMUL_CUT) &&
                  operand(t)->plain->sym->type == t->type;
    t->row_step = across > t->threads ? 1 : t->threads / across;
    t->count = (t->rows + t->row_step - 1) / t->row_step;
    t->row = across > t->threads ? zero : cg_binary(g, OP_DIV, thread, cg_u32(across));
    t->piece = across > t->threads ? thread : cg_binary(g, OP_MOD, thread, cg_u32(across));
    if (across <= t->threads && (t->threads % across || t->row_step > t->rows))
        takes = cg_binary(g, OP_LT, t->row, cg_u32(t->row_step < t->rows ? t->row_step : t->rows));
    t->takes_part = cg_is_const(takes, &always) ? -1 : cg_reg(g, takes);
    if (!t->is_async || t->count == 1 || t->packed)
        return;
    t->next_bytes = t->m.whole_cols || t->m.whole_k ? next_row_of(t) : 0;
    if (t->next_bytes)
        return;
    const struct cg_val from = address(t, zero, zero, zero, zero);
    const struct cg_val to = address(t, zero, zero, cg_u32(t->row_step), zero);
    t->next_row = cg_op(g, cg_binary(g, OP_SUB, to, from));
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static struct cg_val row_of(const struct chain_slab *t, uint32_t n)
{
    return cg_add(t->m.g, t->row, cg_u32(n * t->row_step));
}

static struct cg_val first_element(const struct chain_slab *t)
{
    return cg_mul(t->m.g, t->piece, piece_of(t));
}

static struct ptx_operand target(const struct chain_slab *t, uint32_t n)
{
    struct cg *g = t->m.g;
    struct cg_val to = mma_chunk(g, &t->lay, row_of(t, n), t->piece);
    to = cg_add(g, cg_add(g, to, cg_u32(t->offset)), cg_value(DT_U32, t->m.shared));
    return ptx_mem(cg_reg(g, to), 0);
}

/* Has the thread a piece number n? A predicate, -1: always. */
static int32_t exists(const struct chain_slab *t, uint32_t n)
{
    struct cg *g = t->m.g;
    if ((n + 1) * t->row_step <= t->rows)
        return t->takes_part;
    struct cg_val ok = cg_binary(g, OP_LT, row_of(t, n), cg_u32(t->rows));
    if (t->takes_part >= 0)
        ok = cg_binary(g, OP_LAND, ok, cg_value(DT_BOOL, t->takes_part));
    return cg_reg(g, ok);
}

/* Is the operand's element at (at, k) there? */
static struct cg_val is_inside(const struct chain_slab *t, struct cg_val at, struct cg_val k)
{
    struct cg *g = t->m.g;
    const bool is_left = operand(t)->side == MATMUL_A;
    const struct cg_val rows = is_left ? t->m.m : t->m.n;
    struct cg_val p = cg_bool(g, true);
    if (is_left ? !t->m.whole_rows : !t->m.whole_cols)
        p = cg_binary(g, OP_LT, at, cg_convert(g, rows, DT_U32));
    if (!t->m.whole_k)
        p = cg_binary(g, OP_LAND, p, cg_binary(g, OP_LT, k, cg_convert(g, t->m.k, DT_U32)));
    return p;
}

/* Bytes of a piece that are copied, others being zeros: a u32; -1: all. */
static int32_t bytes_of(const struct chain_slab *t, struct cg_val inside)
{
    struct cg *g = t->m.g;
    int64_t always;
    if (cg_is_const(inside, &always) && always)
        return -1;
    return cg_reg(g, cg_select(g, cg_reg(g, inside), cg_u32(MMA_CHUNK), cg_u32(0)));
}

static void copy_piece(const struct chain_slab *t, uint32_t n, struct ptx_operand from,
                       int32_t bytes)
{
    const struct ptx_operand to = target(t, n);
    mma_copy_async(t->m.g, exists(t, n), to, from, MMA_CHUNK, bytes);
}

/* What `at` is in the operand, where rows are packed. Is there a row, and such a term? */
static struct cg_val stand_in_group(struct chain_slab *t, struct cg_val *at, struct cg_val k)
{
    struct cg *g = t->m.g;
    const struct chain_row row = chain_row_of(t->packed, *at);
    t->m.batch[t->packed->t->pack.batch] = row.h;
    *at = cg_convert(g, row.i, DT_U32);
    return cg_binary(g, OP_LAND, row.exists, cg_binary(g, OP_LT, k, cg_convert(g, t->m.k, DT_U32)));
}

static void copy_packed_pieces(struct chain_slab *t, struct cg_val at, struct cg_val k)
{
    struct cg *g = t->m.g;
    const struct cg_val e = first_element(t), term = k_of(t, k, cg_u32(0), e);
    for (uint32_t n = 0; n < t->count; n++) {
        struct cg_val row = cg_add(g, at, row_of(t, n));
        const int32_t bytes = bytes_of(t, stand_in_group(t, &row, term));
        const int32_t from = cg_reg(g, address(t, row, k, cg_u32(0), e));
        copy_piece(t, n, ptx_mem(from, 0), bytes);
    }
}

/* The address of the operand's element (at, k), where other tensors say where it is. */
static int32_t find_row(struct chain_slab *t, struct cg_val at, struct cg_val k,
                        struct cg_val inside)
{
    struct cg *g = t->m.g;
    const struct matmul_form *f = t->m.f;
    const struct lang_expr *e = t->gathered;
    const size_t bound = g->bindings.n;
    struct cg_val sub[VARIANT_RANK];
    for (uint32_t b = 0; b < f->nbatch; b++)
        cg_bind(g, f->batch[b], t->m.batch[b], false);
    cg_bind(g, f->j, cg_index(g, at), false);
    cg_bind(g, f->k, cg_index(g, k), false);
    g->converts = true;
    const struct cg_guard before = cg_guard(g, inside, true);
    for (uint32_t i = 0; i < e->nargs; i++)
        sub[i] = cg_index(g, cg_expr(g, e->args[i]));
    cg_unguard(g, before);
    g->converts = false;
    g->bindings.n = bound;
    const struct cg_place_of p = cg_address(g, e->sym, cg_flat_index(g, e->sym, e->nargs, sub));
    return cg_reg(g, cg_binary(g, OP_ADD, cg_value(DT_I64, p.base), cg_int(DT_I64, p.offset)));
}

static void copy_gathered_pieces(struct chain_slab *t, struct cg_val at, struct cg_val k)
{
    const struct cg_val e = first_element(t);
    for (uint32_t n = 0; n < t->count; n++) {
        const struct cg_val r = row_of(t, n), x = at_of(t, at, r, e), y = k_of(t, k, r, e);
        const struct cg_val inside = is_inside(t, x, y);
        const int32_t bytes = bytes_of(t, inside);
        copy_piece(t, n, ptx_mem(find_row(t, x, y, inside), 0), bytes);
    }
}

static void copy_pieces(struct chain_slab *t, struct cg_val at, struct cg_val k)
{
    struct cg *g = t->m.g;
    const struct cg_val e = first_element(t);
    int32_t from = cg_reg(g, address(t, at, k, t->row, e));
    for (uint32_t n = 0; n < t->count; n++) {
        const struct cg_val r = row_of(t, n);
        const struct cg_val term = k_of(t, k, r, e);
        const int32_t bytes = bytes_of(t, is_inside(t, at_of(t, at, r, e), term));
        if (n && !t->next_bytes) {
            const int32_t next = cg_new(g, DT_I64);
            PTX(&g->b, "add.s64", ptx_r(next), ptx_r(from), t->next_row);
            from = next;
        }
        copy_piece(t, n, ptx_mem(from, n * t->next_bytes), bytes);
    }
}

/* ---- computed elements ----------------------------------------------------------------------- */

static void stop_reading(struct cg *g)
{
    g->read = NULL;
    g->read_ctx = NULL;
    g->converts = false;
    g->is_uniform = NULL;
    g->binary = NULL;
    g->unroll = 0;
}

static void compute_piece(struct chain_slab *t, uint32_t n, struct cg_val at, struct cg_val k)
{
    struct cg *g = t->m.g;
    const uint32_t piece = piece_of(t), most = piece < MOST_LANES ? piece : MOST_LANES;
    const uint32_t lanes = t->aligned && lies_alike(t) ? most : 1;
    const struct cg_val r = row_of(t, n);
    const int32_t there = exists(t, n);
    struct cg_val v[MOST_PIECE];
    struct ptx_operand word[MMA_CHUNK / 4];
    for (uint32_t i = 0; i < piece; i += lanes) {
        const struct cg_val e = cg_add(g, first_element(t), cg_u32(i));
        struct cg_val a = at_of(t, at, r, e), b = k_of(t, k, r, e);
        struct cg_val inside = t->packed ? stand_in_group(t, &a, b) : is_inside(t, a, b);
        if (there >= 0)
            inside = cg_binary(g, OP_LAND, inside, cg_value(DT_BOOL, there));
        const int32_t pred = cg_reg(g, inside);
        b = cg_index(g, b);
        a = cg_index(g, a);
        matmul_fetch(&t->m, t->operand, a, b, lanes, pred, v + i);
    }
    for (uint32_t w = 0; w < MMA_CHUNK / 4; w++)
        word[w] = piece == MMA_CHUNK / 4
                      ? ptx_r(cg_reg(g, v[w]))
                      : cg_pack(g, t->type, piece / 4, v + (size_t)piece / 4 * w);
    ptx_emit(&g->b, there, false, "st.shared.v4.b32",
             PTX_ARGS(target(t, n), ptx_vec(&g->b, 4, word)));
}

static void bring(struct chain_slab *t, struct cg_val at, struct cg_val k)
{
    if (t->is_async || t->gathered) {
        if (t->gathered)
            copy_gathered_pieces(t, at, k);
        else if (t->packed)
            copy_packed_pieces(t, at, k);
        else
            copy_pieces(t, at, k);
        return;
    }
    map_begin_reading(t->m.g, &t->m.reader);
    for (uint32_t n = 0; n < t->count; n++)
        compute_piece(t, n, at, k);
    stop_reading(t->m.g);
}

void chain_bring(struct chain_slab *t, struct cg_val at, struct cg_val k)
{
    struct cg *g = t->m.g;
    const struct cg_val first = t->piece;
    const int32_t takes_part = t->takes_part;
    const uint32_t across = pieces_of_row(t);
    /* rows may have more pieces than the block has threads */
    for (uint32_t done = 0; done < across; done += t->threads) {
        t->piece = cg_add(g, first, cg_u32(done));
        if (done && done + t->threads > across)
            t->takes_part = cg_reg(g, cg_binary(g, OP_LT, t->piece, cg_u32(across)));
        bring(t, at, k);
    }
    t->piece = first;
    t->takes_part = takes_part;
}
