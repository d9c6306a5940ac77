/* What is known at emission of an integer expression in every lane of a vector: base + k[lane]
 * (map.h). */
#include <config.h>

#include "lower/map/map.h"

enum { MOST_ALIGN = MAP_MOST_ALIGN };

/* ---- making forms ---------------------------------------------------------------------------- */

static struct map_form constant(int64_t v)
{
    struct map_form f = {.known = true, .is_zero = true, .is_positive = true, .align = MOST_ALIGN};
    f.base = cg_int(DT_I64, 0);
    f.most = v < 0 ? UINT64_MAX : (uint64_t)v;
    for (uint32_t i = 0; i < MAP_LANES; i++)
        f.k[i] = v;
    return f;
}

/* Something that is the same in all lanes. While nothing is to be generated another number stands
 * for it. */
static struct map_form same(struct cg *g, const struct lang_expr *e)
{
    const struct map_reader *m = g->read_ctx;
    int64_t c;
    /* and so it does for the index of a reduction that is only looked into */
    if (m->probes && !(e->kind == E_NAME && e->sym->kind == SYM_INDEX && cg_find(g, e->sym)))
        return (struct map_form){.known = true,
                                 .align = 1,
                                 .is_positive = true,
                                 .most = UINT64_MAX,
                                 .base = cg_int(DT_I64, MOST_ALIGN)};
    struct cg_val v = cg_index(g, cg_expr(g, e));
    if (cg_is_const(v, &c))
        return constant(c);
    return (struct map_form){.known = true,
                             .align = 1,
                             .is_positive = v.narrow == CG_U32,
                             .most = v.narrow == CG_U32 ? UINT32_MAX : UINT64_MAX,
                             .base = v};
}

static const struct map_form unknown = {.varies = true, .most = UINT64_MAX};

static void find_variation(struct map_reader *m, struct map_form *f)
{
    f->varies = !f->known;
    for (uint32_t i = 1; i < m->lanes && f->known; i++)
        f->varies |= f->k[i] != f->k[0];
}

/* Is it known at launch, and never negative? */
static bool is_natural(const struct lang_expr *e)
{
    int64_t v;
    e = inspect_strip(e);
    if (lang_const_int(e, &v))
        return v >= 0;
    if (e->kind == E_NAME)
        return e->sym->kind == SYM_DIM || dtype_class(e->sym->type) == DTC_U;
    return e->kind == E_BINARY &&
           (e->op == OP_ADD || e->op == OP_MUL || e->op == OP_DIV || e->op == OP_MOD) &&
           is_natural(e->args[0]) && is_natural(e->args[1]);
}

static uint32_t power_in(int64_t v)
{
    uint64_t u = (uint64_t)v & -(uint64_t)v;
    return !u || u > MOST_ALIGN ? MOST_ALIGN : (uint32_t)u;
}

/* The alignment that an expression of the launch has or is assumed to have; what it rests on goes
 * to *need. */
static uint32_t launch_align(struct map_reader *m, const struct lang_expr *e, struct map_need *need)
{
    need->e = NULL;
    const struct lang_symbol *s = m->shape;
    if (!m->lane_sub && inspect_same_expr(e, s->dims[s->rank - 1]))
        return map_width(m); /* the vector runs along it */
    if (!m->assumes || map_width(m) < 2)
        return 1;
    *need = (struct map_need){e, map_width(m)};
    return map_width(m);
}

static struct map_form launch_form(struct cg *g, const struct lang_expr *e)
{
    struct map_reader *m = g->read_ctx;
    struct map_form f = same(g, e);
    if (!f.is_zero) {
        f.align = launch_align(m, inspect_strip(e), &f.need[0]);
        f.nneed = f.need[0].e != NULL;
        f.is_positive |= is_natural(e);
    }
    return f;
}

static bool add_needs(struct map_form *f, const struct map_form *y)
{
    if (f->nneed + y->nneed > MAP_NEEDS)
        return false;
    for (uint32_t i = 0; i < y->nneed; i++)
        f->need[f->nneed++] = y->need[i];
    f->rests |= y->rests;
    f->is_column |= y->is_column;
    return true;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static struct map_form sum(struct cg *g, struct map_form x, const struct map_form *y, bool minus)
{
    struct map_reader *m = g->read_ctx;
    if (!x.known || !y->known || !add_needs(&x, y))
        return unknown;
    for (uint32_t i = 0; i < m->lanes; i++)
        if (minus ? __builtin_sub_overflow(x.k[i], y->k[i], &x.k[i])
                  : __builtin_add_overflow(x.k[i], y->k[i], &x.k[i]))
            return unknown;
    if (__builtin_add_overflow(x.most, y->most, &x.most))
        x.most = UINT64_MAX;
    if (minus && !(y->is_zero && !y->varies))
        x.most = UINT64_MAX; /* what is taken away may be negative */
    if (!y->is_zero) {
        x.base = x.is_zero && !minus ? y->base
                                     : cg_binary(g, minus ? OP_SUB : OP_ADD, x.base, y->base);
        x.align = y->align < x.align ? y->align : x.align;
        x.is_positive = x.is_positive && y->is_positive && !minus;
        x.is_zero = false;
    }
    return x;
}

static struct map_form times(struct cg *g, struct map_form x, int64_t c)
{
    struct map_reader *m = g->read_ctx;
    if (!x.known)
        return unknown;
    if (c == 0)
        return constant(0);
    for (uint32_t i = 0; i < m->lanes; i++)
        if (__builtin_mul_overflow(x.k[i], c, &x.k[i]))
            return unknown;
    uint64_t align = (uint64_t)x.align * power_in(c);
    x.align = align > MOST_ALIGN ? MOST_ALIGN : (uint32_t)align;
    x.is_positive = x.is_positive && c > 0;
    if (c < 0 || __builtin_mul_overflow(x.most, (uint64_t)c, &x.most))
        x.most = UINT64_MAX;
    if (!x.is_zero)
        x.base = cg_binary(g, OP_MUL, x.base, cg_int(DT_I64, c));
    return x;
}

static bool lanes_within(const struct map_reader *m, const struct map_form *x, int64_t end)
{
    for (uint32_t i = 0; i < m->lanes; i++)
        if (x->k[i] < 0 || x->k[i] >= end)
            return false;
    return true;
}

/* x, or what divided by c gives the same. */
static struct cg_val multiple_before(struct cg *g, const struct map_reader *m, struct cg_val x,
                                     int64_t c)
{
    const bool near = m->within && x.op.kind == PTX_O_REG && m->near.op.kind == PTX_O_REG &&
                      x.op.reg == m->near.op.reg;
    if (near && c % m->within == 0)
        return m->from;
    const int64_t first = m->after / c, last = (m->after + (int64_t)m->spread - 1) / c;
    if (near && m->within % c == 0 && first == last)
        return cg_index(
            g, cg_binary(g, OP_ADD, cg_convert(g, m->from, DT_U32), cg_int(DT_U32, first * c)));
    return x;
}

/* (base + k) / c and % c, of what is not negative, by a constant: where the base's multiples and
 * the constant's meet, the quotient or the rest of the base is all that is left to compute. */
static struct map_form divide(struct cg *g, struct map_form x, int64_t c, bool rest)
{
    struct map_reader *m = g->read_ctx;
    if (!x.known || !x.is_positive || c <= 0 || !lanes_within(m, &x, INT64_MAX))
        return unknown;
    const struct cg_val by = cg_int(DT_I64, c);
    x.rests = true;
    x.most = rest ? (uint64_t)c - 1 : x.most == UINT64_MAX ? x.most : x.most / (uint64_t)c;
    if (x.is_zero || x.align % (uint64_t)c == 0) {
        for (uint32_t i = 0; i < m->lanes; i++)
            x.k[i] = rest ? x.k[i] % c : x.k[i] / c;
        if (rest) {
            struct map_form r = constant(0);
            r.most = x.most;
            r.is_column = x.is_column;
            memcpy(r.k, x.k, sizeof r.k);
            return add_needs(&r, &x), r;
        }
        x.align /= x.is_zero ? 1 : (uint32_t)c;
        if (!x.is_zero)
            x.base = cg_binary(g, OP_DIV, multiple_before(g, m, x.base, c), by);
        return x;
    }
    if (c % x.align || !lanes_within(m, &x, x.align))
        return unknown;
    x.base = rest ? cg_binary(g, OP_MOD, x.base, by)
                  : cg_binary(g, OP_DIV, multiple_before(g, m, x.base, c), by);
    x.align = rest ? x.align : 1;
    for (uint32_t i = 0; i < m->lanes && !rest; i++)
        x.k[i] = 0;
    return x;
}

/* x / y or x % y, neither negative, by something that is known at launch and is not 0 where it is
 * used. */
static struct cg_val quotient(struct cg *g, const struct lang_expr *by, const struct map_form *f,
                              struct cg_val x, struct cg_val y, bool rest)
{
    struct map_reader *m = g->read_ctx;
    struct cg_val q, r;
    m->short_rows |= f->is_column && !m->probes;
    if (m->probes || f->most > MAP_MOST_SMALL || !inspect_at_launch(by))
        return cg_binary(g, rest ? OP_MOD : OP_DIV, x, y);
    magic_divmod(g, x, lx_operand(g->a, by), y, &q, &r);
    return rest ? r : q;
}

/* Divides by a value of the launch: c / group. */
static struct map_form divide_by(struct cg *g, struct map_form x, const struct map_form *y,
                                 const struct lang_expr *by, bool rest)
{
    struct map_reader *m = g->read_ctx;
    if (y->is_zero)
        return divide(g, x, y->k[0], rest);
    if (!x.known || !y->known || y->varies || y->k[0] || !x.is_positive || y->align % x.align ||
        !lanes_within(m, &x, x.align))
        return unknown;
    if (x.align > 1 && !add_needs(&x, y)) /* what is the same in all lanes is divided by anything */
        return unknown;
    x.rests = true;
    x.base = quotient(g, by, &x, x.base, y->base, rest);
    x.align = rest ? x.align : 1;
    for (uint32_t i = 0; i < m->lanes && !rest; i++)
        x.k[i] = 0;
    return x;
}

static struct map_form binary(struct cg *g, const struct lang_expr *e)
{
    struct map_reader *m = g->read_ctx;
    struct map_form x = map_form(g, e->args[0]), y = map_form(g, e->args[1]), r = unknown;
    const bool constant_y = y.known && y.is_zero && !y.varies;
    switch (e->op) {
    case OP_ADD: r = sum(g, x, &y, false); break;
    case OP_SUB: r = sum(g, x, &y, true); break;
    case OP_MUL:
        if (constant_y)
            r = times(g, x, y.k[0]);
        else if (x.known && x.is_zero && !x.varies)
            r = times(g, y, x.k[0]);
        break;
    case OP_DIV: r = divide_by(g, x, &y, e->args[1], false); break;
    case OP_MOD: r = divide_by(g, x, &y, e->args[1], true); break;
    case OP_SHL:
        if (constant_y && y.k[0] >= 0 && y.k[0] < 20)
            r = times(g, x, INT64_C(1) << y.k[0]);
        break;
    case OP_SHR:
        if (constant_y && y.k[0] >= 0 && y.k[0] < 20)
            r = divide(g, x, INT64_C(1) << y.k[0], false);
        break;
    case OP_AND:
        if (constant_y && y.k[0] >= 0 && y.k[0] < MOST_ALIGN && (y.k[0] & (y.k[0] + 1)) == 0)
            r = divide(g, x, y.k[0] + 1, true);
        break;
    default: break;
    }
    if (!r.known && (e->op == OP_DIV || e->op == OP_MOD) && x.is_positive && y.is_positive) {
        r.is_positive = true;
        r.is_column = x.is_column;
        r.most = x.most;
    }
    find_variation(m, &r);
    return r;
}

/* ---- expressions ----------------------------------------------------------------------------- */

static const struct map_bound *bound_of(const struct map_reader *m, const struct lang_symbol *index)
{
    for (size_t i = m->bound.n; i-- > 0;)
        if (m->bound.v[i].index == index)
            return &m->bound.v[i];
    return NULL;
}

static bool varies(struct cg *g, const struct lang_expr *e)
{
    struct map_reader *m = g->read_ctx;
    e = cg_view(g, e);
    if (e->kind == E_NAME) {
        const struct map_bound *b = e->sym->kind == SYM_INDEX ? bound_of(m, e->sym) : NULL;
        return b && b->form.varies;
    }
    if (e->kind == E_INDEX) {
        for (uint32_t i = 0; i < e->nargs; i++)
            if (map_form(g, e->args[i]).varies)
                return true;
        return e->pad && varies(g, e->pad);
    }
    if (dtype_is_int(e->type) && e->kind == E_BINARY)
        return map_form(g, e).varies;
    for (uint32_t i = 0; i < e->nindex; i++)
        if ((e->index[i]->low && varies(g, e->index[i]->low)) || varies(g, e->index[i]->dims[0]))
            return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (varies(g, e->args[i]))
            return true;
    return false;
}

bool map_varies(struct cg *g, const struct lang_expr *e)
{
    struct map_reader *m = g->read_ctx;
    const bool was = m->probes;
    m->probes = true;
    const bool r = m->lanes > 1 && varies(g, e);
    m->probes = was;
    return r;
}

static struct map_form operation_form(struct cg *g, const struct lang_expr *e)
{
    struct map_form f = e->type == DT_I64 ? binary(g, e) : unknown;
    if (f.known)
        return f;
    if (inspect_at_launch(e))
        return launch_form(g, e);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (map_varies(g, e->args[i]))
            return f;
    struct map_form r = same(g, e);
    r.is_positive |= f.is_positive;
    r.most = f.most < r.most ? f.most : r.most;
    r.is_column = f.is_column;
    return r;
}

/* What an operation's form depends on: itself, what its indices and loop counters are now, and
 * whether code is generated for it. */
static size_t form_key(const struct cg *g, const struct lang_expr *e, struct ptx_operand key[4])
{
    const struct map_reader *m = g->read_ctx;
    key[0] = ptx_imm((int64_t)(uintptr_t)e);
    key[1] = ptx_imm((int64_t)(uintptr_t)m);
    key[2] = ptx_imm((int64_t)g->bound << 32 | g->clock);
    key[3] = ptx_imm(m->probes);
    return 4;
}

static bool has_parts(const struct lang_expr *e)
{
    return inspect_strip(e)->nargs > 0;
}

/* The form of an operation is asked for by whatever it is a part of, several times: each remembers
 * it, or the time doubles with every level. */
static struct map_form kept_form(struct cg *g, const struct lang_expr *e)
{
    static const char what[] = "form";
    struct ptx_operand key[4];
    if (!has_parts(e->args[0]) && !has_parts(e->args[1]))
        return operation_form(g, e);
    const int32_t known = cg_recall_read(g, what, form_key(g, e, key), key);
    if (known >= 0)
        return *(const struct map_form *)g->kept.v[known];
    struct map_form *f = ARENA_NEW(g->a, struct map_form);
    *f = operation_form(g, e);
    *VEC_PUSH(g->a, &g->kept) = f;
    cg_remember_read(g, what, form_key(g, e, key), key, (int32_t)g->kept.n - 1);
    return *f;
}

struct map_form map_form(struct cg *g, const struct lang_expr *e)
{
    struct map_reader *m = g->read_ctx;
    int64_t c;
    e = inspect_strip(cg_view(g, e));
    if (lang_const_int(e, &c))
        return constant(c);
    /* a sum or a product's parts are looked at one by one: what is added need not be aligned */
    const bool parts = e->kind == E_BINARY && e->type == DT_I64 &&
                       (e->op == OP_ADD || e->op == OP_SUB || e->op == OP_MUL);
    if (inspect_at_launch(e) && !parts)
        return launch_form(g, e);
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX) {
        const struct map_bound *b = bound_of(m, e->sym);
        return b ? b->form : same(g, e);
    }
    if (e->kind == E_BINARY && dtype_is_int(e->type))
        return kept_form(g, e);
    return map_varies(g, e) ? unknown : same(g, e);
}

struct cg_val map_value(struct cg *g, const struct map_form *f, uint32_t lane)
{
    if (f->k[lane] == 0)
        return f->base;
    return cg_binary(g, OP_ADD, f->base, cg_int(DT_I64, f->k[lane]));
}

static void note(struct cg *g, struct map_need need)
{
    struct map_reader *m = g->read_ctx;
    for (size_t i = 0; i < m->needs.n; i++)
        if (inspect_same_expr(m->needs.v[i].e, need.e)) {
            if (m->needs.v[i].of < need.of)
                m->needs.v[i].of = need.of;
            return;
        }
    *VEC_PUSH(g->a, &m->needs) = need;
}

void map_rely(struct cg *g, const struct map_form *f, uint32_t align)
{
    for (uint32_t i = 0; i < f->nneed; i++) {
        struct map_need need = f->need[i];
        if (!f->rests && f->align == need.of && align < need.of) /* it was added as it is */
            need.of = align;
        note(g, need);
    }
}

uint32_t map_extent_align(struct cg *g, const struct lang_expr *dim, uint32_t most, bool rely)
{
    struct map_reader *m = g->read_ctx;
    const struct lang_symbol *s = m->shape;
    if (!m->lane_sub && inspect_same_expr(dim, s->dims[s->rank - 1]) && map_width(m) >= most)
        return most; /* the vectors run along it */
    const bool was = m->probes;
    m->probes = true;
    const struct map_form f = map_form(g, dim);
    m->probes = was;
    uint32_t align = f.known ? f.align : 1;
    align = power_in(f.k[0]) < align ? power_in(f.k[0]) : align;
    align = align < most ? align : most;
    if (rely && align > 1)
        map_rely(g, &f, align);
    return align;
}

/* ---- comparisons ----------------------------------------------------------------------------- */

/* uniform: alike in all lanes of the row that is computed.
 * x op y, of bases that are multiples of M, is a comparison of the bases: bx - by < d is bx - by <
 * M * ceil(d / M). */
struct relation {
    struct map_form x, y;
    enum lang_op op;
    int64_t d[MAP_LANES];  /* what the bases' difference is compared with, rounded to M */
    bool never[MAP_LANES]; /* an equality that cannot be */
    bool uniform;
};

static int64_t floor_to(int64_t d, int64_t m)
{
    int64_t r = d % m;
    return d - (r < 0 ? r + m : r);
}

static bool relate(struct cg *g, const struct lang_expr *e, struct relation *r)
{
    struct map_reader *m = g->read_ctx;
    if (e->args[0]->type != DT_I64 || e->args[1]->type != DT_I64)
        return false;
    r->x = map_form(g, e->args[0]);
    r->y = map_form(g, e->args[1]);
    r->op = e->op;
    if (!r->x.known || !r->y.known)
        return false;
    const int64_t align = r->x.align < r->y.align ? r->x.align : r->y.align;
    const uint32_t row = m->lane - m->lane % map_width(m);
    r->uniform = true;
    for (uint32_t i = 0; i < m->lanes; i++) {
        const int64_t d = r->y.k[i] - r->x.k[i];
        if (d > MOST_ALIGN || d < -MOST_ALIGN)
            return false;
        bool up = e->op == OP_LT || e->op == OP_GE;
        r->d[i] = up ? floor_to(d + align - 1, align) : floor_to(d, align);
        r->never[i] = (e->op == OP_EQ || e->op == OP_NE) && r->d[i] != d;
        if (i >= row && i < row + map_width(m))
            r->uniform &= r->d[i] == r->d[row] && !r->never[i];
    }
    return true;
}

static bool compare(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct map_reader *m = g->read_ctx;
    struct relation r;
    if (m->lanes < 2 || !relate(g, e, &r))
        return false;
    const uint32_t l = m->lane;
    if (r.x.is_zero && r.y.is_zero) {
        *v = cg_binary(g, r.op, cg_int(DT_I64, r.x.k[l]), cg_int(DT_I64, r.y.k[l]));
        return true;
    }
    if (!r.uniform || !(r.x.varies || r.y.varies))
        return false;
    map_rely(g, &r.x, r.x.align);
    map_rely(g, &r.y, r.y.align);
    *v = cg_binary(g, r.op, r.x.base, cg_binary(g, OP_ADD, r.y.base, cg_int(DT_I64, r.d[l])));
    return true;
}

/* Divides by a number that is known at launch only. */
static bool divide_at_launch(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    const struct map_reader *m = g->read_ctx;
    const struct lang_expr *by = inspect_strip(e->args[1]);
    int64_t c;
    if (e->type != DT_I64 || !inspect_at_launch(by) || lang_const_int(by, &c))
        return false;
    const struct map_form x = map_form(g, e->args[0]), y = map_form(g, by);
    if (!x.is_positive || !y.is_positive || x.most > MAP_MOST_SMALL)
        return false;
    for (uint32_t i = 0; i < m->lanes; i++)
        if (x.k[i] < 0)
            return false;
    if (x.known && x.rests)
        map_rely(g, &x, x.align);
    struct cg_val n = x.known ? map_value(g, &x, m->lane) : cg_index(g, cg_expr(g, e->args[0]));
    *v = quotient(g, by, &x, n, cg_index(g, cg_expr(g, by)), e->op == OP_MOD);
    return true;
}

bool map_binary(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    if (e->op == OP_DIV || e->op == OP_MOD)
        return divide_at_launch(g, e, v);
    return e->op >= OP_LT && e->op <= OP_NE && compare(g, e, v);
}

static bool is_uniform(struct cg *g, const struct lang_expr *e)
{
    struct relation r;
    if (e->kind == E_BINARY && e->op >= OP_LT && e->op <= OP_NE && relate(g, e, &r))
        return r.uniform;
    if (e->type == DT_BOOL && (e->kind == E_UNARY || e->kind == E_BINARY) &&
        e->args[0]->type == DT_BOOL) {
        for (uint32_t i = 0; i < e->nargs; i++)
            if (!is_uniform(g, e->args[i]))
                return false;
        return true;
    }
    return !varies(g, e);
}

bool map_is_uniform(struct cg *g, const struct lang_expr *e)
{
    struct map_reader *m = g->read_ctx;
    const bool was = m->probes;
    m->probes = true;
    const bool r = m->lanes < 2 || is_uniform(g, e);
    m->probes = was;
    return r;
}
