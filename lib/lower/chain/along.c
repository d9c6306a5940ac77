/* Vectors along j: tensors that are read at [.., j], the same for all rows of a tile (chain.h). The
 * gradients of keys read two, of which a lane needs a quarter of a tile's numbers each.
 *
 * They come in pairs, from the address of the lane's first j. Where tiles come to shared memory by
 * copies of boxes, those of vectors may, too: a box has a row of WGMMA_SPAN bytes, and lies where
 * an atom of rows would, whose first row is not swizzled.
 *
 * So may those of sheets, which are read at [.., i, .., j], biases and masks among them: a tile of
 * one has the rows of q's and the j of k's, and a lane reads of it what it has of the scores. Of
 * elements of 8 or 16 bits the lanes' pairs are in banks of their own, since rows are swizzled; of
 * 32 bits rows r and r + 1 share banks.
 */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/cg/inspect.h"

/* Is it the element for j of what has one for each, side by side? */
static bool is_of_j(const struct cg *g, const struct chain_form *f, const struct lang_expr *e)
{
    const struct lang_symbol *t = e->sym;
    if (e->kind != E_INDEX || e->pad || e->nargs == 0 || e->nargs > CHAIN_AXES ||
        e->nargs != t->rank || !cg_is_constant(g, t) ||
        !inspect_is_index(e->args[e->nargs - 1], f->j))
        return false;
    for (uint32_t i = 0; i + 1 < e->nargs; i++)
        if (chain_mentions(e->args[i], f->j))
            return false;
    return true;
}

/* In 32 bits? */
static bool is_along(const struct cg *g, const struct chain_form *f, const struct lang_expr *e)
{
    return is_of_j(g, f, e) && dtype_bits(e->sym->type) == 32;
}

/* ---- which may come by boxes ----------------------------------------------------------------- */

/* Is it in a tensor of which a map can be made? */
static bool has_map(const struct lang_expr *e)
{
    enum { UNIT = 16 * 8, LEAST_RANK = 2 }; /* rows of memory are whole 16 bytes */
    int64_t n;
    return e->nargs >= LEAST_RANK && e->nargs <= CONTRACT_MAP_RANK &&
           lang_const_int(e->sym->dims[e->nargs - 1], &n) && n > 0 &&
           n * dtype_bits(e->sym->type) % UNIT == 0;
}

/* Is it the same for all rows of the tile? */
static bool is_vector(const struct cg *g, const struct chain_tensor *t, const struct lang_expr *e)
{
    return is_along(g, t->f, e) && e->sym->type == DT_F32 && !chain_mentions(e, t->f->row[t->i]);
}

/* Is it another one for each row, in elements of which pairs lie at multiples of their size? */
static bool is_sheet(const struct cg *g, const struct chain_tensor *t, const struct lang_expr *e)
{
    const struct lang_symbol *row = t->f->row[t->i];
    uint32_t rows = 0;
    if (!is_of_j(g, t->f, e) || dtype_bits(e->sym->type) > 32 || dtype_bits(e->sym->type) < 8)
        return false;
    for (uint32_t i = 0; i + 1 < e->nargs; i++) {
        const bool is_row = inspect_is_index(e->args[i], row);
        if (!is_row && chain_mentions(e->args[i], row))
            return false;
        rows += is_row;
    }
    return rows == 1;
}

static void find_in(const struct cg *g, struct chain_tensor *t, const struct lang_expr *e)
{
    for (uint32_t i = 0; i < e->nargs; i++)
        find_in(g, t, e->args[i]);
    if (e->kind != E_INDEX || t->nalong == CHAIN_ALONG || !has_map(e))
        return;
    const bool sheet = is_sheet(g, t, e);
    if (!sheet && !is_vector(g, t, e))
        return;
    for (uint32_t i = 0; i < t->nalong; i++)
        if (matmul_same(t->along[i].e, e))
            return;
    t->along[t->nalong++] = (struct chain_along){e, sheet};
}

void chain_find_along(const struct cg *g, struct chain_tensor *t)
{
    t->nalong = 0;
    if (t->i >= t->f->nrow)
        return;
    for (uint32_t i = 0; i < t->f->nscore; i++)
        find_in(g, t, t->score[i].value);
    for (uint32_t i = 0; i < t->f->nstream; i++) {
        const struct chain_stream *s = &t->f->stream[i];
        if (!s->has_column)
            find_in(g, t, s->term);
        for (uint32_t part = 0; part < s->npart; part++)
            find_in(g, t, s->part[part].e);
    }
}

bool chain_is_sheet(const struct chain_tensor *t, const struct lang_expr *e)
{
    bool is = false;
    for (uint32_t i = 0; i < t->nalong && e->kind == E_INDEX; i++)
        is |= t->along[i].is_sheet && matmul_same(t->along[i].e, e);
    return is;
}

bool chain_has_sheets(const struct chain_tensor *t)
{
    bool has = false;
    for (uint32_t i = 0; i < t->nalong; i++)
        has |= t->along[i].is_sheet;
    return has;
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* Do pairs of neighbours lie at multiples of their size? */
static bool has_pairs(const struct lang_symbol *t)
{
    int64_t n;
    return t->rank == 1 || (lang_const_int(t->dims[t->rank - 1], &n) && n % 2 == 0);
}

/* One element of the pair that begins there. */
static struct cg_val read_pair(struct cg *g, enum dtype t, struct cg_place_of at, uint32_t which)
{
    static const char *const what[] = {"pair's first", "pair's second"};
    const struct ptx_operand key = cg_mem(at);
    const int32_t known = cg_recall_read(g, what[which], 1, &key);
    struct cg_val v[2];
    if (known >= 0)
        return cg_value(t, known);
    cg_load_words(g, t, true, at, 2, v);
    for (uint32_t i = 0; i < 2; i++)
        cg_remember_read(g, what[i], 1, &key, cg_reg(g, v[i]));
    return v[which];
}

static struct cg_val read_memory(struct chain_tile *x, const struct lang_expr *e)
{
    struct cg *g = x->g;
    struct cg_val sub[CHAIN_AXES];
    const size_t bound = g->bindings.n;
    cg_bind(g, x->t->f->j, x->first_j, false);
    for (uint32_t i = 0; i < e->nargs; i++)
        sub[i] = cg_expr(g, e->args[i]);
    g->bindings.n = bound;
    struct cg_place_of at = cg_element(g, e->sym, e->nargs, sub);
    const bool pairs = has_pairs(e->sym);
    at.offset += (int64_t)4 * (pairs ? x->distance / 2 * 2 : x->distance);
    return pairs ? read_pair(g, e->sym->type, at, x->distance % 2) : cg_load(g, e->sym, at);
}

/* Where the pair of the element's is in a vector's box, or in a sheet's. */
static struct cg_place_of in_box(struct chain_tile *x, uint32_t n)
{
    enum { CHUNK = 16 };
    const struct lang_expr *e = x->t->along[n].e;
    struct cg_place_of at = {.space = CG_SHARED, .base = x->along[n]};
    if (!x->t->along[n].is_sheet) {
        at.offset = chain_along_offset(x->distance / 2 * 2);
        return at;
    }
    const uint32_t bytes = x->distance / 2 * 2 * dtype_bits(e->sym->type) / 8;
    const uint32_t row = x->of_row / 2 * 16 + x->of_row % 2 * 8;
    const uint32_t chunk = bytes % CHAIN_SHEET_SPAN / CHUNK * CHUNK;
    at.base = cg_reg(x->g, cg_binary(x->g, OP_XOR, cg_value(DT_U32, at.base), cg_u32(chunk)));
    at.offset = (int64_t)bytes / CHAIN_SHEET_SPAN * x->block_rows * CHAIN_SHEET_SPAN +
                row * CHAIN_SHEET_SPAN + bytes % CHUNK;
    return at;
}

struct cg_val chain_sheet_lane(struct cg *g, enum dtype t, struct cg_val at, struct cg_val lane)
{
    const struct cg_val row = cg_binary(g, OP_SHR, lane, cg_u32(2));
    const struct cg_val pair = cg_binary(g, OP_AND, lane, cg_u32(3));
    const struct cg_val of_row = cg_mul(g, row, CHAIN_SHEET_SPAN), chunk = cg_mul(g, row, 16);
    const struct cg_val first = cg_mul(g, pair, 2 * dtype_bits(t) / 8);
    const struct cg_val mine = cg_add(g, of_row, cg_binary(g, OP_XOR, chunk, first));
    return cg_add(g, at, mine);
}

static struct cg_val read_box(struct chain_tile *x, uint32_t n)
{
    struct cg *g = x->g;
    const struct cg_guard before = {g->guard, g->guard_varies};
    const struct cg_guard none = {-1, false};
    cg_unguard(g, none); /* what is outside of the tensor is 0 there */
    const struct cg_val v =
        read_pair(g, x->t->along[n].e->sym->type, in_box(x, n), x->distance % 2);
    cg_unguard(g, before);
    return v;
}

static bool has_node(const struct lang_expr *e, const struct lang_expr *node)
{
    bool has = matmul_same(e, node);
    for (uint32_t i = 0; i < e->nargs && !has; i++)
        has = has_node(e->args[i], node);
    return has;
}

void chain_fetch_along(struct chain_tile *x, const struct lang_expr *e)
{
    for (uint32_t n = 0; n < x->t->nalong && x->has_along; n++) {
        if (x->t->along[n].is_sheet || !has_node(e, x->t->along[n].e))
            continue;
        for (x->distance = 0; x->distance < x->wide; x->distance += 8)
            read_box(x, n);
    }
}

bool chain_read_along(struct chain_tile *x, const struct lang_expr *e, struct cg_val *v)
{
    for (uint32_t n = 0; n < x->t->nalong; n++) {
        const struct chain_along *a = &x->t->along[n];
        if ((a->is_sheet ? x->has_sheets : x->has_along) && matmul_same(a->e, e)) {
            *v = read_box(x, n);
            return true;
        }
    }
    if (x->g->guard >= 0 || !is_along(x->g, x->t->f, e))
        return false;
    *v = read_memory(x, e);
    return true;
}
