/* Vectors, and arrays in registers: each lane of each element is a cell, which stands for its
 * latest value while the code is straight and has a register where ways meet. */
#include <config.h>

#include "lower/cg/cg.h"

#include "base/internal.h"

enum { MOST_LANES = 16, MOST_ARGS = 4 };

/* ---- vectors --------------------------------------------------------------------------------- */

struct cg_val cg_vector(struct cg *g, enum dtype t, unsigned n, const struct cg_val *lane)
{
    struct cg_val *v = ARENA_ARRAY(g->a, n, struct cg_val);
    memcpy(v, lane, n * sizeof *v);
    return (struct cg_val){.type = t, .op = ptx_imm(0), .lanes = (uint8_t)n, .lane = v};
}

struct cg_val cg_lanewise(struct cg *g, cg_lane_op *f, const void *how, size_t n,
                          const struct cg_val *x)
{
    struct cg_val r[MOST_LANES], one[MOST_ARGS];
    unsigned lanes = x[0].lanes;
    if (!lanes)
        return f(g, how, x);
    for (unsigned k = 0; k < lanes; k++) {
        for (size_t i = 0; i < n; i++)
            one[i] = x[i].lane[k];
        r[k] = f(g, how, one);
    }
    return cg_vector(g, r[0].type, lanes, r);
}

struct cg_cell *cg_cells(struct cg *g, uint32_t n)
{
    return ARENA_ARRAY(g->a, n, struct cg_cell);
}

static struct cg_val cell_value(struct cg *g, const struct cg_cell *c, enum dtype t)
{
    (void)g;
    if (c->is_set)
        return c->val;
    return dtype_is_float(t) ? cg_float(g, t, 0) : cg_int(t, 0); /* never assigned: any value */
}

static struct cg_val cells_value(struct cg *g, const struct cg_cell *c, enum dtype t, uint8_t lanes)
{
    struct cg_val lane[MOST_LANES];
    if (!lanes)
        return cell_value(g, c, t);
    for (unsigned k = 0; k < lanes; k++)
        lane[k] = cell_value(g, c + k, t);
    return cg_vector(g, t, lanes, lane);
}

static struct cg_val nothing(struct cg *g, enum dtype t, uint8_t lanes)
{
    static const struct cg_cell none[MOST_LANES];
    return cells_value(g, none, t, lanes);
}

/* ---- elements -------------------------------------------------------------------------------- */

static bool outside(struct cg *g, const struct lang_expr *at, const char *name, int64_t i,
                    int64_t n)
{
    return cg_error(g, at->span, "index %lld is out of range here: '%s' has %lld element%s",
                    (long long)i, name, (long long)n, n == 1 ? "" : "s");
}

/* The element's flat number, if all subscripts are constants. */
static bool constant_element(struct cg *g, const struct lang_expr *e, uint64_t *flat)
{
    const struct lang_symbol *sym = e->sym;
    uint32_t n = sym->lanes && e->nargs > sym->rank ? sym->rank : e->nargs;
    int64_t i[8], extent[8];
    struct cg_val v;
    *flat = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (!cg_constant(g, e->args[k], &v) || !cg_is_const(v, &i[k]))
            return false;
        extent[k] = (int64_t)sym->dims[k]->ival;
    }
    if (n == 1 && sym->rank > 1) {
        uint64_t all = 1;
        lang_array_count(sym, &all);
        extent[0] = (int64_t)all;
    }
    for (uint32_t k = 0; k < n; k++) {
        if (i[k] < 0 || i[k] >= extent[k])
            return outside(g, e->args[k], sym->name, i[k], extent[k]);
        *flat = *flat * (uint64_t)extent[k] + (uint64_t)i[k];
    }
    return true;
}

/* The lane that a last subscript or a .x names; false: it is not constant. */
static bool lane_of(struct cg *g, const struct lang_expr *e, uint8_t lanes, uint64_t *lane)
{
    struct cg_val v;
    int64_t i;
    if (e->kind == E_MEMBER) {
        *lane = e->ival;
        return true;
    }
    const struct lang_expr *last = e->args[e->nargs - 1];
    if (!cg_constant(g, last, &v) || !cg_is_const(v, &i))
        return cg_error(g, last->span,
                        "the number of a lane must be constant; unroll the loop with '#pragma "
                        "unroll', or keep the values in an array");
    if (i < 0 || i >= lanes)
        return outside(g, last, e->sym->name, i, lanes);
    *lane = (uint64_t)i;
    return true;
}

static bool has_lane(const struct lang_expr *e)
{
    return e->kind == E_INDEX && e->sym->lanes && e->nargs > e->sym->rank;
}

/* What e names: cells, or a place in memory. A table of constants is not a target but can be
 * read. */
struct cg_target cg_target(struct cg *g, const struct lang_expr *e)
{
    struct cg_target t = {.type = e->type, .lanes = e->lanes};
    uint64_t i = 0, lane = 0;
    const struct lang_expr *of = e->kind == E_MEMBER ? e->args[0] : e;
    if (e->kind == E_MEMBER)
        t = cg_target(g, of);
    bool part = e->kind == E_MEMBER || has_lane(e);
    if (part && !lane_of(g, e, e->kind == E_MEMBER ? of->lanes : e->sym->lanes, &lane))
        return t;
    if (e->kind == E_MEMBER) {
        t.lanes = 0;
        t.cell = t.cell ? t.cell + lane : NULL;
        t.at.offset += (int64_t)lane * dtype_bits(e->type) / 8;
        return t;
    }
    struct cg_binding *b = e->sym->kind == SYM_LOCAL ? cg_array(g, e->sym) : NULL;
    if (b && b->cell && (e->kind == E_NAME || constant_element(g, e, &i))) {
        t.cell = b->cell + i * (e->sym->lanes ? e->sym->lanes : 1) + lane;
        return t;
    }
    if (g->failed)
        return t;
    t.at = cg_place_expr(g, e);
    t.at.offset += (int64_t)lane * dtype_bits(e->type) / 8;
    return t;
}

struct cg_val cg_get(struct cg *g, const struct cg_target *t)
{
    if (g->failed)
        return nothing(g, t->type, t->lanes);
    if (t->cell)
        return cells_value(g, t->cell, t->type, t->lanes);
    return t->lanes ? cg_load_lanes(g, t->type, t->lanes, t->at.space == CG_CONST, t->at)
                    : cg_load_at(g, t->type, t->at.space == CG_CONST, t->at);
}

static void set_cell(struct cg *g, struct cg_cell *c, struct cg_val v, struct cg_since since)
{
    if (c->is_mutable) {
        cg_move_new(g, c->val.op.reg, v, since);
        return;
    }
    c->val = cg_freeze(g, v);
    c->is_set = true;
}

void cg_set(struct cg *g, const struct cg_target *t, struct cg_val v, struct cg_since since)
{
    if (g->failed)
        return;
    if (!t->cell) {
        if (t->lanes)
            cg_store_lanes(g, t->type, t->at, v);
        else
            cg_store_at(g, t->type, t->at, v);
        return;
    }
    if (!t->lanes) {
        set_cell(g, t->cell, v, since);
        return;
    }
    v = cg_freeze(g, v); /* v = f32x2(v.y, v.x) */
    for (unsigned k = 0; k < t->lanes; k++)
        set_cell(g, &t->cell[k], v.lane[k], cg_now(g));
}

struct cg_target cg_temporary(struct cg *g, enum dtype t, uint8_t lanes)
{
    unsigned n = lanes ? lanes : 1;
    struct cg_target r = {.type = t, .lanes = lanes, .cell = cg_cells(g, n)};
    for (unsigned k = 0; k < n; k++)
        r.cell[k] = (struct cg_cell){
            .val = cg_value(t, cg_new_mutable(g, t)), .is_set = true, .is_mutable = true};
    return r;
}

/* ---- promotion ------------------------------------------------------------------------------- */

static void to_register(struct cg *g, struct cg_val *val, enum dtype t)
{
    int32_t reg = cg_new_mutable(g, t);
    cg_move(g, reg, *val);
    *val = cg_value(t, reg);
}

static void promote(struct cg *g, const struct lang_symbol *sym)
{
    if (!sym || sym->kind != SYM_LOCAL)
        return;
    struct cg_binding *b = cg_find(g, sym);
    if (!b || b->var || b->table)
        return; /* declared inside, or in memory */
    for (uint32_t i = 0; i < b->ncell; i++) {
        struct cg_cell *c = &b->cell[i];
        if (c->is_mutable)
            continue;
        struct cg_val v = cell_value(g, c, sym->type);
        to_register(g, &v, sym->type);
        *c = (struct cg_cell){.val = v, .is_set = true, .is_mutable = true};
    }
    if (b->cell || b->is_mutable)
        return;
    struct cg_val v = b->val;
    to_register(g, &v, sym->type);
    b = cg_find(g, sym);
    b->val = v;
    b->is_mutable = true;
}

void cg_promote_expr(struct cg *g, const struct lang_expr *e)
{
    if (!e)
        return;
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (e->kind == E_CALL &&
            (e->args[i]->kind == E_ADDRESS || (e->func && lang_given_itself(e->func->param[i]))))
            promote(g, inspect_root(e->args[i]));
        cg_promote_expr(g, e->args[i]);
    }
}

void cg_promote(struct cg *g, const struct lang_stmt *s)
{
    if (!s)
        return;
    if (s->kind == S_ASSIGN)
        promote(g, inspect_root(s->lhs));
    cg_promote_expr(g, s->lhs);
    cg_promote_expr(g, s->rhs);
    cg_promote_expr(g, s->cond);
    for (uint32_t i = 0; i < s->nlist; i++)
        cg_promote_expr(g, s->list[i]);
    cg_promote(g, s->init);
    cg_promote(g, s->step);
    for (uint32_t i = 0; i < s->nbody; i++)
        cg_promote(g, s->body[i]);
}

/* ---- expressions ----------------------------------------------------------------------------- */

static struct cg_val lane_unary(struct cg *g, const void *how, const struct cg_val *x)
{
    return cg_unary(g, ((const struct lang_expr *)how)->op, x[0]);
}

static struct cg_val lane_binary(struct cg *g, const void *how, const struct cg_val *x)
{
    return cg_binary(g, ((const struct lang_expr *)how)->op, x[0], x[1]);
}

static struct cg_val lane_fma(struct cg *g, const void *how, const struct cg_val *x)
{
    (void)how;
    return cg_fma(g, x[0], x[1], x[2]);
}

static struct cg_val lane_negative(struct cg *g, const void *how, const struct cg_val *x)
{
    (void)how;
    return cg_unary(g, OP_NEG, x[0]);
}

static struct cg_val lane_builtin(struct cg *g, const void *how, const struct cg_val *x)
{
    return cg_builtin(g, how, x);
}

static struct cg_val lane_select(struct cg *g, const void *how, const struct cg_val *x)
{
    return cg_select(g, *(const int32_t *)how, x[0], x[1]);
}

static struct cg_val negative(struct cg *g, struct cg_val v)
{
    return cg_lanewise(g, lane_negative, NULL, 1, &v);
}

/* The rule of lower.h, as for scalars. */
static bool contract(struct cg *g, const struct lang_expr *e, struct cg_val *r)
{
    bool sub = e->op == OP_SUB;
    if (!g->contract_fma || (e->op != OP_ADD && !sub) || (e->type != DT_F32 && e->type != DT_F64))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        const struct lang_expr *p = e->args[i];
        if (p->kind != E_BINARY || p->op != OP_MUL || p->type != e->type)
            continue;
        struct cg_val z = {0}, x[3];
        if (i)
            z = cg_expr(g, e->args[0]);
        x[0] = cg_expr(g, p->args[0]);
        x[1] = cg_expr(g, p->args[1]);
        if (!i)
            z = cg_expr(g, e->args[1]);
        if (sub && i)
            x[0] = negative(g, x[0]);
        x[2] = sub && !i ? negative(g, z) : z;
        *r = cg_lanewise(g, lane_fma, NULL, 3, x);
        return true;
    }
    return false;
}

static struct cg_val binary(struct cg *g, const struct lang_expr *e)
{
    struct cg_val r;
    if (contract(g, e, &r))
        return r;
    struct cg_val x[2] = {cg_expr(g, e->args[0])};
    x[1] = cg_expr(g, e->args[1]);
    return cg_lanewise(g, lane_binary, e, 2, x);
}

static struct cg_val construct(struct cg *g, const struct lang_expr *e)
{
    struct cg_val lane[MOST_LANES];
    for (uint32_t i = 0; i < e->nargs; i++)
        lane[i] = cg_convert(g, cg_expr(g, e->args[i]), e->type);
    for (uint32_t i = e->nargs; i < e->lanes; i++)
        lane[i] = lane[0];
    return cg_vector(g, e->type, e->lanes, lane);
}

static void set_to(struct cg *g, const struct cg_target *t, const struct lang_expr *e)
{
    const struct cg_since since = cg_now(g);
    cg_set(g, t, cg_expr(g, e), since);
}

/* Arm k where the condition asks for it, and else the other one, which takes no work. */
static void conditional_on(struct cg *g, const struct lang_expr *e, uint32_t k, struct cg_target *r,
                           uint32_t end)
{
    set_to(g, r, e->args[3 - k]);
    size_t mark = cg_scope_open(g);
    cg_branch(g, e->args[0], k == 2, end);
    if (!g->dead)
        set_to(g, r, e->args[k]);
    cg_scope_close(g, mark);
    cg_place(g, end);
}

static struct cg_val conditional(struct cg *g, const struct lang_expr *e)
{
    struct cg_val p, x[2];
    int64_t c;
    if (cg_constant(g, e->args[0], &p) && cg_is_const(p, &c))
        return cg_expr(g, e->args[c ? 1 : 2]);
    if (!cg_reads(g, e->args[1]) && !cg_reads(g, e->args[2])) {
        int32_t pred = cg_reg(g, cg_expr(g, e->args[0]));
        x[0] = cg_expr(g, e->args[1]);
        x[1] = cg_expr(g, e->args[2]);
        return cg_lanewise(g, lane_select, &pred, 2, x);
    }
    cg_promote_expr(g, e->args[1]);
    cg_promote_expr(g, e->args[2]);
    struct cg_target r = cg_temporary(g, e->type, e->lanes);
    uint32_t other = cg_label(g, "else"), end = cg_label(g, "endif");
    for (uint32_t k = 1; k < 3; k++)
        if (inspect_is_leaf(e->args[3 - k])) {
            conditional_on(g, e, k, &r, end);
            return cg_get(g, &r);
        }
    size_t mark = cg_scope_open(g);
    cg_branch(g, e->args[0], false, other);
    if (!g->dead)
        set_to(g, &r, e->args[1]);
    cg_jump(g, end);
    cg_scope_close(g, mark);
    cg_place(g, other);
    set_to(g, &r, e->args[2]);
    cg_scope_close(g, mark);
    cg_place(g, end);
    return cg_get(g, &r);
}

/* A lane of something that is no variable: f(x).y */
static struct cg_val member(struct cg *g, const struct lang_expr *e)
{
    const struct lang_expr *of = e->args[0];
    if (of->kind == E_NAME || of->kind == E_INDEX) {
        struct cg_target t = cg_target(g, e);
        return cg_get(g, &t);
    }
    struct cg_val v = cg_expr(g, of);
    return v.lanes ? v.lane[e->ival] : nothing(g, e->type, 0);
}

/* An element of an array in registers, or of a table, whose subscripts are constants: there is
 * nothing to read. */
static bool is_at_hand(struct cg *g, const struct lang_expr *e)
{
    struct cg_val v;
    if (e->kind != E_INDEX || e->sym->kind != SYM_LOCAL)
        return false;
    const struct cg_binding *b = cg_array(g, e->sym);
    if (!b->cell && !b->table)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!cg_constant(g, e->args[i], &v))
            return false;
    return true;
}

bool cg_reads(struct cg *g, const struct lang_expr *e)
{
    if (is_at_hand(g, e))
        return false;
    if (inspect_reads_itself(e))
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (cg_reads(g, e->args[i]))
            return true;
    return e->pad && cg_reads(g, e->pad);
}

static struct cg_val element(struct cg *g, const struct lang_expr *e)
{
    uint64_t i = 0;
    struct cg_val v;
    const struct cg_binding *b = e->sym->kind == SYM_LOCAL ? cg_array(g, e->sym) : NULL;
    if (b && b->table && constant_element(g, e, &i) && cg_table_value(g, b, i, &v))
        return v;
    struct cg_target t = cg_target(g, e);
    return cg_get(g, &t);
}

/* load4(&x[i]), store4(&x[i], v) */
struct cg_val cg_memory_call(struct cg *g, const struct lang_expr *e)
{
    const struct lang_expr *of = e->args[0]->args[0];
    const struct lang_symbol *sym = of->sym;
    bool store = e->fn >= FN_STORE2;
    unsigned lanes = 2u << (e->fn - (store ? FN_STORE2 : FN_LOAD2));
    struct cg_target t = cg_target(g, of);
    uint64_t i = 0, count = 0;
    t.lanes = (uint8_t)lanes;
    lang_array_count(sym, &count);
    if (t.cell && constant_element(g, of, &i) && i + lanes > count)
        outside(g, of, sym->name, (int64_t)i + lanes - 1, (int64_t)count);
    if (!t.cell && t.at.base < 0 && t.at.offset % (lanes * dtype_bits(t.type) / 8) != 0)
        cg_error(g, of->span,
                 "%s() needs an address that is a multiple of %u bytes, and this element is %lld "
                 "bytes behind one",
                 lang_builtin_name(e->fn), lanes * dtype_bits(t.type) / 8,
                 (long long)(t.at.offset % (lanes * dtype_bits(t.type) / 8)));
    if (g->failed)
        return nothing(g, t.type, t.lanes);
    if (store) {
        const struct cg_since since = cg_now(g);
        cg_set(g, &t, cg_convert(g, cg_expr(g, e->args[1]), t.type), since);
        return cg_int(DT_U32, 0);
    }
    if (!t.cell)
        return cg_load_lanes(g, t.type, lanes, sym->kind == SYM_BUFFER && sym->mode == MODE_IN,
                             t.at);
    return cg_get(g, &t);
}

static struct cg_val random_words(struct cg *g, const struct lang_expr *e)
{
    struct cg_val w[4];
    cg_philox(g, e, w);
    return cg_vector(g, DT_U32, 4, w);
}

struct cg_val cg_vector_expr(struct cg *g, const struct lang_expr *e)
{
    struct cg_val x[MOST_ARGS];
    switch (e->kind) {
    case E_NAME:
    case E_INDEX: return element(g, e);
    case E_MEMBER: return member(g, e);
    case E_VECTOR: return construct(g, e);
    case E_CAST: return cg_convert(g, cg_expr(g, e->args[0]), e->type);
    case E_UNARY: x[0] = cg_expr(g, e->args[0]); return cg_lanewise(g, lane_unary, e, 1, x);
    case E_BINARY: return binary(g, e);
    case E_COND: return conditional(g, e);
    case E_CALL:
        if (e->func || lang_builtin_acts(e->fn) || (e->fn >= FN_LOAD2 && e->fn <= FN_STORE16))
            return cg_call(g, e);
        if (e->fn == FN_PHILOX)
            return random_words(g, e);
        for (uint32_t i = 0; i < e->nargs && i < MOST_ARGS; i++)
            x[i] = cg_expr(g, e->args[i]);
        return cg_lanewise(g, lane_builtin, e, e->nargs, x);
    default: INTERNAL_ERROR("no expression of kind %d is a vector", (int)e->kind);
    }
}
