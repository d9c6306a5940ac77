/* Operands that are computed (wgmma/wgmma.h): the producers' threads write them where copies would
 * have put them.
 *
 * A thread makes vectors of 1 to 4 neighbouring chunks of a row, as many as one access to the
 * operand's main buffer brings elements for. 8 threads, whose 16 bytes are written at once, have
 * all 8 chunks of a row, or halves or quarters of 2 or 4 rows: chunk c of row r is at c ^ (r % 8),
 * so their banks are different ones. Across, the next threads have the next atoms, so that a thread
 * stays in few columns: what belongs to a column is the same for all of its rows.
 *
 *                                                                  where it gathers: rows of
 *     thread   chunks   4 a vector        2            1             8 elements from 8 rows
 *     0..7     row 0    0-3 4-7           0-1 .. 6-7   0 .. 7        0
 *                  1    0-3 4-7           0-1 .. 6-7                 0
 *                  ..   ..                                           ..
 *
 * What lies across but is multiplied along k (elements of 8 and of 32 bits) is gathered: a thread
 * fetches the elements of a chunk one by one, and threads beside each other have rows beside each
 * other.
 *
 * Loads of as much as registers hold are begun when the producer's stage before is done (or begins,
 * where there is one alone and room for copies), the rest when the stage is empty, by the same code
 * in two parts (ahead.c); behind the last stage they bring it again. Threads' writes are ordered
 * before the instructions' reads, which go another way, by a fence of each thread's before its warp
 * arrives at the stage's barrier.
 */
#include <config.h>

#include "lower/wgmma/wgmma.h"

enum {
    CHUNK = 16,
    CHUNKS = WGMMA_SPAN / CHUNK, /* of a row */
    TOGETHER = 8,                /* threads whose chunks are written at once */
    MOST_CHUNKS = 4,             /* of a vector */
    AHEAD = 16,                  /* vectors of a thread that are in registers, */
    WORDS = 32,                  /* and about so many words, but twice as many */
    MANY = 120,                  /* of so many registers, where little else is in them */
    MOST_LANES = 16,             /* elements of a chunk */
    ROW = 0,
    COLUMN = 1,
    ATOM = 2,
};

/* A vector that is on its way. */
struct wgmma_made {
    uint32_t tile, n; /* vector n of the thread's */
    struct ptx_operand word[MOST_CHUNKS][4];
};

/* ---- who makes what -------------------------------------------------------------------------- */

static uint32_t rows_of(const struct wgmma_tile *t)
{
    return t->atom_bytes / WGMMA_SPAN;
}

/* The largest power of two up to `most` that divides n. */
static uint32_t dividing(uint32_t n, uint32_t most)
{
    while (most > 1 && n % most)
        most /= 2;
    return most;
}

static struct cg_val part(struct cg *g, struct cg_val t, uint32_t per, uint32_t n)
{
    return cg_binary(g, OP_AND, cg_binary(g, OP_DIV, t, cg_u32(per)), cg_u32(n - 1));
}

/* Neighbouring threads along a row, TOGETHER of them, then atoms, then rows. */
static void share_rows(struct wgmma *s, const struct wgmma_tile *t, struct wgmma_make *m,
                       struct cg_val thread)
{
    struct cg *g = s->g;
    const uint32_t along = CHUNKS / m->chunks, atoms = dividing(t->atoms, 2 * m->chunks);
    const uint32_t rows = WGMMA_GROUP / TOGETHER / atoms;
    m->at[COLUMN] = cg_mul(g, part(g, thread, 1, along), m->chunks);
    m->at[ATOM] = part(g, thread, TOGETHER, atoms);
    m->at[ROW] = cg_mul(g, part(g, thread, TOGETHER * atoms, rows), m->chunks);
    m->at[ROW] = cg_add(g, m->at[ROW], part(g, thread, along, m->chunks));
    m->step[ROW] = rows * m->chunks;
    m->step[COLUMN] = CHUNKS;
    m->step[ATOM] = atoms;
}

/* Neighbouring threads across, then chunks, then atoms. */
static void share_columns(struct wgmma *s, const struct wgmma_tile *t, struct wgmma_make *m,
                          struct cg_val thread)
{
    struct cg *g = s->g;
    const uint32_t rows = dividing(rows_of(t), WGMMA_GROUP);
    const uint32_t chunks = rows * CHUNKS > WGMMA_GROUP ? WGMMA_GROUP / rows : CHUNKS;
    const uint32_t atoms = WGMMA_GROUP / (rows * chunks);
    m->at[ROW] = part(g, thread, 1, rows);
    m->at[COLUMN] = part(g, thread, rows, chunks);
    m->at[ATOM] = part(g, thread, rows * chunks, atoms);
    m->step[ROW] = rows;
    m->step[COLUMN] = chunks;
    m->step[ATOM] = atoms;
}

static void plan_tile(struct wgmma *s, uint32_t i)
{
    struct cg *g = s->g;
    const struct wgmma_tile *t = &s->shape->tile[i];
    struct wgmma_make *m = &s->make[i];
    const uint32_t align = s->p->align[t->operand], chunk = CHUNK / t->size;
    const struct cg_val thread = cg_binary(g, OP_AND, s->m->thread, cg_u32(WGMMA_GROUP - 1));
    m->gathers = t->along_k != s->f->operand[t->operand].along_k;
    m->chunks = align <= chunk || m->gathers ? 1 : dividing(align / chunk, MOST_CHUNKS);
    m->lanes = m->gathers ? 1 : align < chunk ? align : m->chunks * chunk;
    (m->gathers ? share_columns : share_rows)(s, t, m, thread);
    m->steps[ROW] = matmul_divide_up(rows_of(t), m->step[ROW]);
    m->steps[COLUMN] = CHUNKS / m->step[COLUMN];
    m->steps[ATOM] = matmul_divide_up(t->atoms, m->step[ATOM]);
    struct cg_val to =
        cg_binary(g, OP_XOR, m->at[COLUMN], cg_binary(g, OP_AND, m->at[ROW], cg_u32(CHUNKS - 1)));
    const struct cg_val row = cg_mul(g, m->at[ROW], WGMMA_SPAN);
    to = cg_add(g, cg_mul(g, to, CHUNK), row);
    to = cg_add(g, to, cg_mul(g, m->at[ATOM], t->atom_bytes));
    m->to = cg_reg(g, cg_add(g, cg_value(DT_U32, s->m->shared), to));
}

void wgmma_make_begin(struct wgmma *s)
{
    struct cg *g = s->g;
    for (uint32_t i = 0; i < s->shape->ntile; i++)
        if (s->shape->tile[i].made)
            plan_tile(s, i);
    s->making = ARENA_ARRAY(g->a, AHEAD, struct wgmma_made);
    if (s->shape->producers > 1)
        s->turn = cg_mutable(g, cg_binary(g, OP_SHR, s->m->thread, cg_u32(7)));
}

/* ---- vectors --------------------------------------------------------------------------------- */

static uint32_t vectors_of(const struct wgmma_make *m)
{
    return m->steps[ROW] * m->steps[COLUMN] * m->steps[ATOM];
}

/* Rows, chunks and atoms from the thread's first vector to its vector n. */
static void find_steps(const struct wgmma_make *m, uint32_t n, uint32_t by[3])
{
    for (uint32_t d = 0; d < 3; d++) {
        by[d] = n % m->steps[d] * m->step[d];
        n /= m->steps[d];
    }
}

/* Is the vector one of the tile's? A predicate, -1: it is. */
static int32_t exists(struct wgmma *s, uint32_t i, const uint32_t by[3])
{
    struct cg *g = s->g;
    const struct wgmma_make *m = &s->make[i];
    const uint32_t rows = rows_of(&s->shape->tile[i]), atoms = s->shape->tile[i].atoms;
    struct cg_val ok = cg_bool(g, true);
    int64_t always;
    if (by[ROW] + m->step[ROW] > rows)
        ok = cg_binary(g, OP_LT, m->at[ROW], cg_u32(rows - by[ROW]));
    if (by[ATOM] + m->step[ATOM] > atoms)
        ok = cg_binary(g, OP_LAND, ok, cg_binary(g, OP_LT, m->at[ATOM], cg_u32(atoms - by[ATOM])));
    return cg_is_const(ok, &always) ? -1 : cg_reg(g, ok);
}

/* The vector's elements, the first at (at, k) and the others along the operand's last axis or along
 * k. */
static void fetch(struct wgmma *s, uint32_t i, struct cg_val at, struct cg_val k, int32_t inside,
                  struct cg_val *v)
{
    struct cg *g = s->g;
    const struct wgmma_tile *t = &s->shape->tile[i];
    const struct wgmma_make *m = &s->make[i];
    const uint32_t n = m->chunks * CHUNK / t->size;
    for (uint32_t e = 0; e < n; e += m->lanes) {
        const struct cg_val more = cg_u32(e), zero = cg_u32(0);
        const struct cg_val b = cg_index(g, cg_add(g, k, t->along_k ? more : zero));
        const struct cg_val c = cg_index(g, cg_add(g, at, t->along_k ? zero : more));
        matmul_fetch(s->m, t->operand, c, b, m->lanes, inside, v + e);
    }
}

/* Fetches them as words of two elements, if instructions on pairs can make them. */
static bool fetch_pairs(struct wgmma *s, uint32_t i, struct cg_val at, struct cg_val k,
                        int32_t inside, struct ptx_operand (*word)[4])
{
    struct cg *g = s->g;
    const struct wgmma_tile *t = &s->shape->tile[i];
    const struct wgmma_make *m = &s->make[i];
    struct ptx_operand all[MOST_CHUNKS * MOST_LANES / 2];
    const uint32_t n = m->chunks * CHUNK / t->size;
    for (uint32_t e = 0; e < n; e += m->lanes) {
        const struct cg_val more = cg_u32(e), zero = cg_u32(0);
        const struct cg_val b = cg_index(g, cg_add(g, k, t->along_k ? more : zero));
        const struct cg_val c = cg_index(g, cg_add(g, at, t->along_k ? zero : more));
        if (!matmul_fetch_pairs(s->m, t->operand, c, b, m->lanes, inside, all + e / 2))
            return false;
    }
    memcpy(word, all, n / 2 * sizeof *all);
    return true;
}

/* Quotients of k are the same for all of the vector's elements, and for other threads and vectors,
 * as far as its place says. */
static void know_place(struct wgmma *s, uint32_t i, const uint32_t by[3])
{
    const struct wgmma_tile *t = &s->shape->tile[i];
    const struct wgmma_make *m = &s->make[i];
    struct map_reader *r = &s->m->reader;
    const uint32_t unit = t->along_k ? WGMMA_SPAN / t->size : 1, d = t->along_k ? ATOM : ROW;
    r->within = s->p->bk;
    r->from = cg_index(s->g, cg_value(DT_U32, s->made_k));
    r->after = by[d] * unit;
    r->spread = m->step[d] * unit;
}

static void make(struct wgmma *s, struct wgmma_made *to)
{
    struct cg *g = s->g;
    const struct wgmma_tile *t = &s->shape->tile[to->tile];
    const struct wgmma_make *m = &s->make[to->tile];
    const enum dtype type = s->f->operand[t->operand].type;
    const uint32_t chunk = CHUNK / t->size, per_word = 4 / t->size;
    struct cg_val v[MOST_CHUNKS * MOST_LANES], d[3];
    uint32_t by[3];
    find_steps(m, to->n, by);
    for (uint32_t i = 0; i < 3; i++)
        d[i] = cg_add(g, m->at[i], cg_u32(by[i]));
    struct cg_val at = cg_convert(g, t->side == MATMUL_A ? s->m->row : s->m->col, DT_U32);
    struct cg_val k = cg_value(DT_U32, s->made_k);
    const struct cg_val column = cg_mul(g, d[COLUMN], chunk);
    const struct cg_val along = cg_add(g, cg_mul(g, d[ATOM], WGMMA_SPAN / t->size), column);
    at = cg_add(g, at, t->along_k ? d[ROW] : along);
    k = cg_add(g, k, t->along_k ? along : d[ROW]);
    const int32_t inside = exists(s, to->tile, by);
    know_place(s, to->tile, by);
    if (fetch_pairs(s, to->tile, at, k, inside, to->word))
        return;
    fetch(s, to->tile, at, k, inside, v);
    for (uint32_t c = 0; c < m->chunks; c++)
        for (uint32_t w = 0; w < 4; w++) {
            const struct cg_val *from = v + (size_t)c * chunk + (size_t)w * per_word;
            to->word[c][w] = t->size == 4 ? ptx_r(cg_reg(g, *from))
                                          : cg_pack(g, type, per_word, from);
        }
}

static void put(struct wgmma *s, const struct wgmma_made *from)
{
    struct cg *g = s->g;
    const struct wgmma_tile *t = &s->shape->tile[from->tile];
    const struct wgmma_make *m = &s->make[from->tile];
    uint32_t by[3];
    find_steps(m, from->n, by);
    const int32_t pred = exists(s, from->tile, by);
    const struct cg_val to = cg_add(g, cg_value(DT_U32, m->to), cg_value(DT_U32, s->ring.offset));
    const uint32_t offset = t->offset + by[ROW] * WGMMA_SPAN + by[ATOM] * t->atom_bytes;
    for (uint32_t c = 0; c < m->chunks; c++) {
        const struct cg_val at = cg_binary(g, OP_XOR, to, cg_u32((by[COLUMN] + c) * CHUNK));
        ptx_emit(&g->b, pred, false, t->size == 4 ? "st.shared.v4.f32" : "st.shared.v4.b32",
                 PTX_ARGS(ptx_mem(cg_reg(g, at), offset), ptx_vec(&g->b, 4, from->word[c])));
    }
}

/* ---- a stage --------------------------------------------------------------------------------- */

/* The sources that a vector of an operand is made from, beside its main tensor: the bits of their
 * words and vectors. is_split: a condition stands before what is read, so elements are loaded one
 * by one. */
struct sources {
    const struct lang_symbol *main, *axis;
    unsigned bits;
    bool is_split;
};

static void look(struct sources *s, const struct lang_expr *e)
{
    if (e->kind == E_INDEX && e->nargs && e->sym != s->main &&
        inspect_is_index(e->args[e->nargs - 1], s->axis))
        s->bits += dtype_bits(e->sym->type);
    s->is_split |= e->kind == E_COND || e->pad;
    for (uint32_t i = 0; i < e->nargs; i++)
        look(s, e->args[i]);
}

/* Words of all vectors that are on their way together: what one takes, and what there is room
 * for. */
struct room {
    uint32_t each, all;
};

static struct room room_of(const struct wgmma *s, uint32_t i)
{
    const struct wgmma_make *m = &s->make[i];
    const struct wgmma_tile *t = &s->shape->tile[i];
    const struct matmul_operand *o = &s->f->operand[t->operand];
    const uint32_t elements = m->chunks * CHUNK / t->size;
    struct sources from = {.main = o->main, .axis = s->f->k};
    if (!o->along_k)
        from.axis = o->side == MATMUL_A ? s->f->i : s->f->j;
    look(&from, o->eq->rhs);
    const bool many = wgmma_registers(s->shape, true) >= MANY && matmul_has_pairs(o);
    /* strides and limits that are not known take registers of their own */
    const bool known = s->m->whole_k && (t->side == MATMUL_A ? s->m->whole_rows : s->m->whole_cols);
    const uint32_t words = (many ? 2u : 1u) * (known ? WORDS : WORDS / 2);
    const uint32_t others = elements * from.bits / 32;
    struct room r = {.each = elements * o->bits / 32, .all = words > others ? words - others : 1};
    if (m->gathers || from.is_split)
        r.each = 2 * elements;
    r.each = r.each ? r.each : 1;
    return r;
}

/* Vectors from number `first` on of all tiles, as many as registers hold: made, or put there; the
 * next one's number. */
static uint32_t some(struct wgmma *s, uint32_t first, bool puts)
{
    uint32_t before = 0, words = 0, n = 0;
    for (uint32_t i = 0; i < s->shape->ntile; i++) {
        const uint32_t all = s->shape->tile[i].made ? vectors_of(&s->make[i]) : 0;
        const struct room room = s->shape->tile[i].made ? room_of(s, i) : (struct room){0};
        for (; first < before + all; first++) {
            struct wgmma_made *v = &s->making[n];
            words += room.each;
            if (n == AHEAD || (n++ && words > room.all))
                return first;
            v->tile = i;
            v->n = first - before;
            if (puts)
                put(s, v);
            else
                make(s, v);
            s->m->reader.within = 0;
        }
        before += all;
    }
    return first;
}

static struct cg_val end_of_k(struct wgmma *s)
{
    return cg_convert(s->g, s->m->k_to, DT_U32);
}

/* A single producer makes a stage from copies while it loads the next one, where what it makes is
 * no more than what it is made from: of small integers it is, and takes the copies' registers. */
static bool has_copies(const struct wgmma *s)
{
    bool copies = s->shape->producers < 2;
    for (uint32_t i = 0; i < s->shape->ntile; i++) {
        const struct matmul_operand *o = &s->f->operand[s->shape->tile[i].operand];
        copies &= !s->shape->tile[i].made || o->bits >= dtype_bits(o->type);
    }
    return copies;
}

/* Copies the words that are written as they were loaded. */
static void copy_words(struct wgmma *s)
{
    struct cg *g = s->g;
    for (uint32_t n = 0; n < s->carried; n++) {
        const uint32_t i = s->making[n].tile;
        for (uint32_t w = 0; w < 4 * s->make[i].chunks && s->shape->tile[i].size == 4; w++) {
            struct ptx_operand *o = &s->making[n].word[w / 4][w % 4];
            const int32_t copy = cg_new(g, DT_F32);
            PTX(&g->b, "mov.f32", ptx_r(copy), *o);
            *o = ptx_r(copy);
        }
    }
}

void wgmma_make_tile(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct cg_val from = cg_value(DT_U32, s->k);
    s->next_k = cg_mutable(g, from);
    if (s->shape->producers > 1) {
        const struct cg_val k = cg_add(g, from, cg_mul(g, cg_value(DT_U32, s->turn), s->p->bk));
        const int32_t exists = cg_reg(g, cg_binary(g, OP_LT, k, end_of_k(s)));
        cg_move(g, s->next_k, cg_select(g, exists, k, from));
    }
    const size_t first = g->func->items.n, mark = cg_scope_open(g);
    s->made_k = s->next_k;
    g->keeps_loads = true;
    s->carried = some(s, 0, false);
    g->keeps_loads = false;
    copy_words(s);
    if (pass_take_apart(g->a, &g->b, first, has_copies(s), s->next_k, &s->ahead))
        pass_append(&g->b, s->ahead.load, s->ahead.nload);
    else
        s->carried = 0;
    cg_scope_close(g, mark);
}

/* Loads what this producer makes next. */
static void load_next(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct cg_val k = cg_value(DT_U32, s->next_k);
    const struct cg_val next =
        cg_add(g, cg_value(DT_U32, s->k), cg_u32(s->shape->producers * s->p->bk));
    const int32_t exists = cg_reg(g, cg_binary(g, OP_LT, next, end_of_k(s)));
    cg_move(g, s->next_k, cg_select(g, exists, next, k));
    pass_append(&g->b, s->ahead.load, s->ahead.nload);
}

void wgmma_make_ahead(struct wgmma *s)
{
    if (!s->carried || !has_copies(s))
        return;
    pass_append(&s->g->b, s->ahead.move, s->ahead.nmove);
    load_next(s);
}

void wgmma_make_stage(struct wgmma *s)
{
    struct cg *g = s->g;
    uint32_t all = 0;
    for (uint32_t i = 0; i < s->shape->ntile; i++)
        all += s->shape->tile[i].made ? vectors_of(&s->make[i]) : 0;
    uint32_t n = s->carried;
    if (n) {
        pass_append(&g->b, s->ahead.rest, s->ahead.nrest);
        some(s, 0, true);
    }
    s->made_k = s->k;
    while (n < all) {
        some(s, n, false);
        n = some(s, n, true);
    }
    ring_hand_over(&s->ring, RING_FULL);
    if (s->carried && !has_copies(s))
        load_next(s);
}
