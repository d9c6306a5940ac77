/* How a vector's reads are answered (map.h): in whole aligned pieces, or element by element at
 * constant offsets from one address.
 */
#include <config.h>

#include "lower/map/map.h"

#include <stdio.h>

/* ---- addresses ------------------------------------------------------------------------------- */

/* The flat index of an element. Where the first subscripts are the thread's own, and so the
 * extents, the flat index over those axes is at hand. */
static struct cg_val flat_index(struct cg *g, const struct lang_symbol *t, uint32_t n,
                                const struct cg_val *sub)
{
    const struct map_reader *m = g->read_ctx;
    uint32_t have = 0;
    while (!m->lane_sub && have < n && have < m->shape->rank && cg_same(sub[have], m->sub[have]) &&
           (have == 0 || inspect_same_expr(t->dims[have], m->shape->dims[have])))
        have++;
    struct cg_val flat = have ? m->prefix[have] : cg_int(DT_I64, 0);
    for (uint32_t i = have; i < n; i++) {
        int64_t zero;
        if (i && !(cg_is_const(flat, &zero) && zero == 0))
            flat = cg_binary(g, OP_MUL, flat, cg_extent(g, t, i));
        flat = cg_binary(g, OP_ADD, flat, cg_index(g, sub[i]));
    }
    return flat;
}

/* The place of the element at the forms' bases, moved by the constants of all subscripts but the
 * last. */
static struct cg_place_of base_place(struct cg *g, const struct lang_symbol *t,
                                     const struct map_form *f, uint32_t n)
{
    const struct map_reader *m = g->read_ctx;
    struct cg_val sub[VARIANT_RANK] = {0}, add = cg_int(DT_I64, 0);
    int64_t zero;
    for (uint32_t i = 0; i < n; i++)
        sub[i] = f[i].base;
    struct cg_place_of at = cg_address(g, t, flat_index(g, t, n, sub));
    for (uint32_t i = 0; i + 1 < n; i++) {
        if (i && !(cg_is_const(add, &zero) && zero == 0))
            add = cg_binary(g, OP_MUL, add, cg_extent(g, t, i));
        add = cg_binary(g, OP_ADD, add, cg_int(DT_I64, f[i].k[m->lane]));
    }
    if (cg_is_const(add, &zero) && zero == 0)
        return at;
    add = cg_binary(g, OP_MUL, add, cg_extent(g, t, n - 1));
    struct cg_val bytes = dtype_bits(t->type) == 4 /* rows of whole bytes */
                              ? cg_binary(g, OP_SHR, add, cg_int(DT_U32, 1))
                              : cg_binary(g, OP_MUL, add, cg_int(DT_I64, dtype_bits(t->type) / 8));
    at.base = CG(g, PTX_B64, "add.s64", ptx_r(at.base), cg_op(g, bytes));
    return at;
}

/* ---- pads ------------------------------------------------------------------------------------ */

/* The condition that subscript i of a padded read is inside, in this lane. Lanes whose elements lie
 * in one aligned piece of `piece` elements, of which the extent is a multiple, share the
 * predicate. */
static struct cg_val inside(struct cg *g, const struct lang_expr *e, uint32_t i,
                            const struct map_form *f, uint32_t piece)
{
    const struct map_reader *m = g->read_ctx;
    if (cg_stays_inside(e->args[i], e->sym->dims[i]))
        return cg_bool(g, true);
    int64_t k = f->k[m->lane];
    if (piece > 1)
        k -= ((k % piece) + piece) % piece;
    struct cg_val s = k ? cg_binary(g, OP_ADD, f->base, cg_int(DT_I64, k)) : f->base;
    return cg_inside(g, s, cg_extent(g, e->sym, i));
}

static bool is_zero_bits(struct cg_val v)
{
    switch (v.op.kind) {
    case PTX_O_IMM:
    case PTX_O_F32:
    case PTX_O_F64: return v.op.bits == 0;
    default: return false;
    }
}

/* The first lane of the row that is computed. */
static uint32_t row_of(const struct map_reader *m)
{
    return m->lane - m->lane % map_width(m);
}

/* Does it differ between lanes of that row? */
static bool varies_in_row(const struct map_reader *m, const struct map_form *f)
{
    bool varies = !f->known;
    for (uint32_t i = row_of(m) + 1; f->known && i < row_of(m) + map_width(m); i++)
        varies |= f->k[i] != f->k[row_of(m)];
    return varies;
}

/* ---- reads of memory ------------------------------------------------------------------------- */

/* The lanes' elements as they lie in pieces of `piece` elements. */
struct span_of {
    uint32_t piece;  /* elements; 1: only single ones can be loaded */
    int64_t first;   /* of the piece that this lane's element is in, from the base */
    uint32_t wanted; /* elements of it that the read wants, over all lanes of the row */
};

static int64_t piece_of(int64_t k, uint32_t piece)
{
    return k - ((k % piece) + piece) % piece;
}

static struct span_of find_span(struct cg *g, const struct lang_symbol *t, const struct map_form *f)
{
    const struct map_reader *m = g->read_ctx;
    struct span_of s = {.piece = f->align < map_width(m) ? f->align : map_width(m)};
    uint32_t extent = map_extent_align(g, t->dims[t->rank - 1], s.piece, false);
    s.piece = extent < s.piece ? extent : s.piece;
    s.first = piece_of(f->k[m->lane], s.piece);
    for (uint32_t i = row_of(m); i < row_of(m) + map_width(m); i++) {
        bool again = false;
        for (uint32_t j = row_of(m); j < i; j++)
            again |= f->k[j] == f->k[i];
        s.wanted += !again && piece_of(f->k[i], s.piece) == s.first;
    }
    return s;
}

static struct cg_place_of offset_by(const struct lang_symbol *t, struct cg_place_of at, int64_t k)
{
    at.offset += k * (int64_t)dtype_bits(t->type) / 8;
    return at;
}

/* The piece's elements, loaded once for all lanes. NULL: not loaded yet, and not to be. */
static const struct cg_val *piece(struct cg *g, const struct lang_symbol *t, struct cg_place_of at,
                                  uint32_t n, bool load)
{
    struct map_reader *m = g->read_ctx;
    static const char what[] = "piece";
    /* what is remembered is a number of this reader's; another one may read the same */
    const struct ptx_operand key[] = {cg_mem(at), ptx_imm(n), ptx_imm((int64_t)t->type),
                                      ptx_imm((int64_t)(uintptr_t)m)};
    const size_t nkey = sizeof key / sizeof *key;
    int32_t known = cg_recall_read(g, what, nkey, key);
    if (known < 0 && !load)
        return NULL;
    if (known < 0) {
        struct cg_val *v = ARENA_ARRAY(g->a, n, struct cg_val);
        known = (int32_t)m->pieces.n;
        *VEC_PUSH(g->a, &m->pieces) = v;
        cg_load_vector(g, t, at.base, at.offset, n, v);
        cg_remember_read(g, what, nkey, key, known);
    }
    return m->pieces.v[known];
}

static bool is_half_byte(const struct lang_symbol *t)
{
    return dtype_bits(t->type) == 4;
}

/* The lane's element of a read whose last subscript alone differs between lanes. */
static struct cg_val load_lane(struct cg *g, const struct lang_symbol *t, const struct map_form *f,
                               uint32_t n)
{
    const struct map_reader *m = g->read_ctx;
    const struct map_form *last = &f[n - 1];
    struct span_of s = find_span(g, t, last);
    struct cg_place_of at = base_place(g, t, f, n);
    const int64_t k = last->k[m->lane];
    if (s.piece > 1 && varies_in_row(m, last)) {
        /* few of a piece's elements are loaded alone, unless another read has brought it; a guard
         * that differs between lanes is no reason to load all for each of them */
        const bool load = (s.wanted * 2 >= s.piece && !g->guard_varies) || is_half_byte(t);
        const struct cg_val *v = piece(g, t, offset_by(t, at, s.first), s.piece, load);
        if (v) {
            map_rely(g, last, s.piece);
            map_extent_align(g, t->dims[n - 1], s.piece, true);
            return v[k - s.first];
        }
    }
    return cg_load(g, t, offset_by(t, at, k));
}

/* The element at the forms' values in this lane. */
static struct cg_val load_element(struct cg *g, const struct lang_symbol *t,
                                  const struct map_form *f, uint32_t n)
{
    const struct map_reader *m = g->read_ctx;
    struct cg_val sub[VARIANT_RANK];
    for (uint32_t i = 0; i < n; i++)
        sub[i] = map_value(g, &f[i], m->lane);
    return cg_load(g, t, cg_address(g, t, flat_index(g, t, n, sub)));
}

/* Can all be read at a constant offset from one address? */
static bool is_regular(struct cg *g, const struct lang_symbol *t, const struct map_form *f,
                       uint32_t n)
{
    const struct map_reader *m = g->read_ctx;
    for (uint32_t i = 0; i < n; i++)
        if (!f[i].known || (i + 1 < n && varies_in_row(m, &f[i])))
            return false;
    /* halves of bytes are taken in whole bytes only */
    return !is_half_byte(t) || (varies_in_row(m, &f[n - 1]) && !g->guard_varies &&
                                find_span(g, t, &f[n - 1]).piece > 1);
}

/* The thread's own element of a tensor of the outputs' shape, where each lane has a position of its
 * own. */
static bool is_own(const struct map_reader *m, const struct lang_symbol *t,
                   const struct map_form *f)
{
    if (!m->lane_sub || !inspect_same_shape(t, m->shape))
        return false;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!cg_same(f[i].base, m->lane_sub[m->lane][i]))
            return false;
    return true;
}

static struct cg_val load(struct cg *g, const struct lang_symbol *t, const struct map_form *f,
                          uint32_t n)
{
    const struct map_reader *m = g->read_ctx;
    if (is_own(m, t, f) && !g->guard_varies) {
        const struct cg_place_of at = cg_address(g, t, m->prefix[t->rank]);
        return piece(g, t, at, m->lanes, true)[m->lane];
    }
    return is_regular(g, t, f, n) ? load_lane(g, t, f, n) : load_element(g, t, f, n);
}

/* ---- all reads ------------------------------------------------------------------------------- */

/* The forms of the subscripts; what is not known is computed for this lane. */
static void find_forms(struct cg *g, const struct lang_expr *e, struct map_form *f)
{
    for (uint32_t i = 0; i < e->nargs; i++) {
        f[i] = map_form(g, e->args[i]);
        if (f[i].rests)
            map_rely(g, &f[i], f[i].align);
        if (!f[i].known)
            f[i].base = cg_index(g, cg_expr(g, e->args[i]));
    }
}

static struct cg_val define(struct cg *g, const struct lang_expr *e, const struct map_form *f)
{
    struct map_reader *m = g->read_ctx;
    const struct lang_equation *eq = e->sym->def;
    struct cg_val sub[VARIANT_RANK];
    const size_t mark = m->bound.n;
    for (uint32_t i = 0; i < e->nargs; i++) {
        struct map_bound *b = VEC_PUSH(g->a, &m->bound);
        *b = (struct map_bound){eq->index[i], f[i]};
        sub[i] = map_value(g, &f[i], m->lane);
    }
    struct cg_val v = cg_define(g, eq, sub);
    m->bound.n = mark;
    return v;
}

static struct cg_val fetch(struct cg *g, const struct lang_expr *e, const struct map_form *f)
{
    return cg_is_defined(g, e->sym) ? define(g, e, f) : load(g, e->sym, f, e->nargs);
}

static struct cg_val padded(struct cg *g, const struct lang_expr *e, const struct map_form *f)
{
    const struct map_reader *m = g->read_ctx;
    struct cg_val ok = cg_bool(g, true);
    bool varies = false;
    int64_t always;
    for (uint32_t i = 0; i < e->nargs; i++) {
        uint32_t piece = 1;
        if (f[i].known && map_width(m) > 1 && varies_in_row(m, &f[i])) {
            const struct lang_expr *dim = e->sym->dims[i];
            piece = f[i].align < map_width(m) ? f[i].align : map_width(m);
            uint32_t extent = map_extent_align(g, dim, piece, false);
            piece = extent < piece ? extent : piece;
            if (piece > 1) {
                map_rely(g, &f[i], piece);
                map_extent_align(g, dim, piece, true);
            }
        }
        varies |= piece == 1 && varies_in_row(m, &f[i]);
        ok = cg_binary(g, OP_LAND, ok, inside(g, e, i, &f[i], piece));
    }
    if (cg_is_const(ok, &always))
        return always ? fetch(g, e, f) : cg_expr(g, e->pad);
    const struct cg_guard before = cg_guard(g, ok, varies);
    struct cg_val v = fetch(g, e, f);
    cg_unguard(g, before);
    struct cg_val pad = cg_convert(g, cg_expr(g, e->pad), e->type);
    if (is_zero_bits(pad) && !cg_is_defined(g, e->sym))
        return v; /* as it is where nothing was loaded */
    return cg_select(g, cg_reg(g, ok), v, pad);
}

static bool read(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct map_reader *m = g->read_ctx;
    struct map_form f[VARIANT_RANK];
    if (e->nargs == 0)
        return false;
    find_forms(g, e, f);
    if (m->read_tile && m->read_tile(g, e, f, v))
        return true;
    *v = e->pad ? padded(g, e, f) : fetch(g, e, f);
    return true;
}

/* ---- a vector -------------------------------------------------------------------------------- */

void map_begin_reading(struct cg *g, struct map_reader *m)
{
    g->read = read;
    g->read_ctx = m;
    g->converts = true;
    g->is_uniform = map_is_uniform;
    g->binary = map_binary;
    g->unroll = MAP_TERMS;
}

/* So many elements is a lane behind the thread's position along an axis. */
static uint32_t behind(const struct map_reader *m, uint32_t axis, uint32_t lane)
{
    const uint32_t row = lane / map_width(m);
    return (axis + 1 == m->shape->rank ? m->along + lane % map_width(m) : 0) +
           (row && axis == m->down ? row * m->apart : 0);
}

/* The subscript of a lane along output axis i. */
static struct cg_val subscript(struct cg *g, const struct map_reader *m, uint32_t i)
{
    if (m->lane_sub)
        return m->lane_sub[m->lane][i];
    const uint32_t at = behind(m, i, m->lane);
    if (!at)
        return m->sub[i];
    if (m->sub[i].narrow == CG_FULL)
        return cg_binary(g, OP_ADD, m->sub[i], cg_int(DT_I64, at));
    /* within the extent, and so a u32 */
    return cg_index(g, cg_binary(g, OP_ADD, cg_convert(g, m->sub[i], DT_U32), cg_int(DT_U32, at)));
}

/* The form of output axis i. */
static struct map_form position(const struct map_reader *m, uint32_t i)
{
    struct map_form f = {.known = true, .is_positive = true, .align = 1, .base = m->sub[i]};
    int64_t c;
    f.most = m->large ? UINT64_MAX : MAP_MOST_SMALL;
    if (m->lane_sub)
        return (struct map_form){
            .varies = true, .is_positive = true, .most = f.most, .base = m->lane_sub[m->lane][i]};
    if (cg_is_const(f.base, &c)) {
        f.is_zero = true;
        f.align = MAP_MOST_ALIGN;
        f.base = cg_int(DT_I64, 0);
        for (uint32_t l = 0; l < m->lanes; l++)
            f.k[l] = c;
    }
    if (i + 1 == m->shape->rank) {
        f.align = f.is_zero ? f.align : map_width(m);
        f.is_column = map_width(m) > 1;
        f.varies = map_width(m) > 1;
    }
    for (uint32_t l = 0; l < m->lanes; l++)
        f.k[l] += behind(m, i, l);
    f.varies |= m->lanes > map_width(m) && i == m->down;
    return f;
}

void map_compute(struct cg *g, struct map_reader *m, const struct lang_equation *const *eq,
                 uint32_t n, struct cg_val *v)
{
    struct cg_val sub[VARIANT_RANK];
    const uint32_t rank = m->shape->rank;
    for (m->lane = 0; m->lane < m->lanes; m->lane++) {
        for (uint32_t i = 0; i < n; i++) {
            m->bound.n = 0;
            for (uint32_t k = 0; k < rank; k++) {
                struct map_bound *b = VEC_PUSH(g->a, &m->bound);
                *b = (struct map_bound){eq[i]->index[k], position(m, k)};
                sub[k] = subscript(g, m, k);
            }
            cg_at(g, eq[i]->span);
            v[(size_t)i * m->lanes + m->lane] = cg_define(g, eq[i], sub);
        }
    }
    m->lane = 0;
    m->bound.n = 0;
}
