#include <config.h>

#include "lower/row/row.h"

enum { LANES = 32, LINE_BITS = 8 * 128 };
static const int64_t NO_SUBSCRIPT = INT64_MIN / 2;

/* ---- the thread's place ---------------------------------------------------------------------- */

static struct cg_val column_number(struct row_gen *r, struct cg_val v)
{
    return cg_convert(r->g, v, r->ct);
}

static void measure(struct row_gen *r)
{
    struct cg *g = r->g;
    struct cg_val cols = cg_int(DT_I64, 1);
    for (uint32_t i = 0; i < r->row->ncol; i++) {
        r->extent[i] = cg_index(g, cg_expr(g, r->row->col[i]));
        cols = cg_binary(g, OP_MUL, cols, r->extent[i]);
    }
    r->cols = column_number(r, cols);
    r->vectors = cg_binary(g, OP_DIV, r->cols, cg_int(r->ct, r->plan.vector));
}

/* Several rows to a block. Warps without a row leave where no warp waits for another; other threads
 * without one do as those of the last row, and store nothing. */
static void number_among(struct row_gen *r, struct cg_val cta, struct cg_val tid,
                         struct cg_val total)
{
    struct cg *g = r->g;
    const struct row_plan *p = &r->plan;
    int64_t rows;
    struct cg_val first = cg_binary(g, OP_MUL, cg_index(g, cta), cg_int(DT_I64, p->rows));
    struct cg_val group = cg_binary(g, OP_DIV, tid, cg_int(DT_U32, p->threads));
    struct cg_val n = cg_binary(g, OP_ADD, first, cg_index(g, group));
    r->thread = column_number(r, cg_binary(g, OP_AND, tid, cg_int(DT_U32, p->threads - 1)));
    if (!cg_is_const(total, &rows) || rows % p->rows) {
        struct cg_val warp = cg_binary(g, OP_SHR, tid, cg_int(DT_U32, 5));
        warp = cg_binary(g, OP_MUL, warp, cg_int(DT_U32, LANES / p->threads));
        struct cg_val own = p->threads < LANES ? cg_binary(g, OP_ADD, first, cg_index(g, warp)) : n;
        if (p->threads <= LANES) {
            g->exit_used = true;
            cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, own, total)), false, g->exit);
        }
        if (p->threads != LANES) {
            struct cg_val last = cg_binary(g, OP_SUB, total, cg_int(DT_I64, 1));
            r->exists = cg_reg(g, cg_binary(g, OP_LT, n, total));
            n = cg_select(g, r->exists, n, last);
        }
    }
    r->number = n;
    if (n.op.kind == PTX_O_REG)
        cg_set_depth(g, n.op.reg, 0);
}

void row_begin(struct row_gen *r, struct cg_val total)
{
    struct cg *g = r->g;
    const struct row_plan *p = &r->plan;
    measure(r);
    struct cg_val tid = cg_special(g, SP_TID_X), cta = cg_special(g, SP_CTAID_X);
    cg_nest_open(g, &r->nest, NULL);
    if (tid.op.kind == PTX_O_REG)
        cg_nest_varies(g, &r->nest, tid.op.reg);
    r->exists = -1;
    r->stride = column_number(r, p->threads ? cg_int(DT_U32, (int64_t)p->threads * p->cluster)
                                            : cg_special(g, SP_NTID_X));
    if (p->rows > 1) {
        number_among(r, cta, tid, total);
    } else if (p->cluster > 1) {
        /* clusters are of neighbours */
        struct cg_val n = cg_binary(g, OP_DIV, cta, cg_int(DT_U32, p->cluster));
        struct cg_val rank = cg_binary(g, OP_MOD, cta, cg_int(DT_U32, p->cluster));
        rank = cg_binary(g, OP_MUL, rank, cg_int(DT_U32, p->threads));
        r->thread = column_number(r, cg_binary(g, OP_ADD, rank, tid));
        r->number = cg_index(g, n);
    } else {
        r->thread = column_number(r, tid);
        r->number = cg_index(g, cta);
    }
    struct cg_val rest = r->number;
    for (uint32_t i = r->row->nlead; i-- > 0;) {
        if (i == 0)
            r->lead[0] = rest;
        else
            cg_divmod(g, rest, cg_index(g, cg_expr(g, r->row->lead[i])), &rest, &r->lead[i]);
        if (r->lead[i].op.kind == PTX_O_REG)
            cg_set_depth(g, r->lead[i].op.reg, 0);
    }
}

struct cg_val row_first(struct row_gen *r, uint32_t vec)
{
    return cg_binary(r->g, OP_ADD, r->start[vec].from, cg_int(r->ct, r->start[vec].add));
}

/* The columns' subscripts of a lane; of two axes, the last of which is longer than a vector, with
 * one division for all lanes. */
static void split(struct row_gen *r, uint32_t lane)
{
    struct cg *g = r->g;
    uint32_t n = r->row->ncol;
    int64_t inner = 0;
    struct cg_val at = cg_index(g, row_first(r, r->vec)), add = cg_int(DT_I64, lane);
    bool fixed = n > 1 && cg_is_const(r->extent[n - 1], &inner);
    bool together = fixed &&
                    inner % r->plan.vector == 0; /* lanes differ in the last subscript only */
    bool changes = fixed && n == 2 && !together && inner >= r->plan.vector;
    if (!together && !changes)
        at = cg_binary(g, OP_ADD, at, add);
    for (uint32_t i = n; i-- > 1;)
        cg_divmod(g, at, r->extent[i], &at, &r->column[i]);
    r->column[0] = at;
    if (together || changes)
        r->column[n - 1] = cg_binary(g, OP_ADD, r->column[n - 1], add);
    if (!changes || lane == 0)
        return;
    struct cg_val last = cg_binary(g, OP_SUB, r->extent[0], cg_int(DT_I64, 1));
    struct cg_val wrapped = cg_binary(g, OP_SUB, r->column[1], r->extent[1]);
    r->carry = cg_reg(g, cg_binary(g, OP_GE, r->column[1], r->extent[1]));
    r->before = at;
    r->after = cg_minmax(g, false, cg_binary(g, OP_ADD, at, cg_int(DT_I64, 1)), last);
    r->column[0] = cg_select(g, r->carry, r->after, r->before);
    r->column[1] = cg_select(g, r->carry, wrapped, r->column[1]);
}

/* Subscripts that nothing uses but to tell elements apart are numbers instead, each given once, and
 * none that a subscript may have: a constant one is an element of its own. */
void row_at(struct row_gen *r, uint32_t vec, uint32_t lane)
{
    r->vec = vec;
    r->lane = lane;
    r->carry = -1;
    for (uint32_t i = 0; i < r->row->ncol; i++)
        r->column[i] =
            cg_int(DT_I64, NO_SUBSCRIPT + r->serial + (int64_t)vec * r->plan.vector + lane);
    if (r->row->uses_column)
        split(r, lane);
}

size_t row_bind(struct row_gen *r, const struct row_env *env)
{
    struct cg *g = r->g;
    size_t before = g->bindings.n;
    for (uint32_t i = 0; i < env->n; i++) {
        const struct row_bound *b = &env->v[i];
        struct cg_val v = cg_int(DT_I64, 0);
        if (b->kind == ROW_LEAD) {
            v = r->lead[b->n];
        } else if (b->kind == ROW_COLUMN) {
            v = r->column[b->n];
        } else {
            size_t inner = row_bind(r, b->in);
            v = cg_index(g, cg_expr(g, b->arg));
            g->bindings.n = inner;
        }
        cg_bind(g, b->sym, v, false);
    }
    return before;
}

/* ---- elements in registers ------------------------------------------------------------------- */

bool row_same_value(struct cg_val x, struct cg_val y)
{
    return x.op.kind == y.op.kind &&
           (x.op.kind == PTX_O_REG ? x.op.reg == y.op.reg : x.op.bits == y.op.bits);
}

static bool stands_for(struct cg *g, const struct lang_expr *e, struct cg_val v)
{
    e = inspect_strip(e);
    const struct cg_binding *b = e->kind == E_NAME && e->sym->kind == SYM_INDEX ? cg_find(g, e->sym)
                                                                                : NULL;
    return b && row_same_value(b->val, v);
}

/* The flat index of the first element of the row that e reads. */
static struct cg_val base_of(struct row_gen *r, const struct lang_expr *e)
{
    struct cg *g = r->g;
    struct cg_val sub[ROW_RANK], flat;
    uint32_t lead = e->nargs - r->row->ncol;
    bool own = lead == r->row->nlead;
    for (uint32_t i = 0; i < lead && own; i++)
        own = stands_for(g, e->args[i], r->lead[i]) &&
              inspect_same_expr(e->sym->dims[i], r->row->lead[i]);
    if (own) {
        flat = r->number;
    } else {
        for (uint32_t i = 0; i < lead; i++)
            sub[i] = cg_expr(g, e->args[i]);
        flat = cg_flat_index(g, e->sym, lead, sub);
    }
    return cg_binary(g, OP_MUL, flat, cg_index(g, r->cols));
}

static struct cg_val bytes_of(struct cg *g, struct cg_val elements, unsigned bits)
{
    return bits < 8 ? cg_binary(g, OP_SHR, elements, cg_int(DT_U32, 1))
                    : cg_binary(g, OP_MUL, elements, cg_int(DT_I64, bits / 8));
}

/* The place where a vector of a row lies. */
static struct cg_place_of place_of(struct row_gen *r, const struct lang_symbol *t,
                                   struct cg_val base, uint32_t vec)
{
    struct cg *g = r->g;
    unsigned bits = dtype_bits(t->type);
    struct cg_place_of at = {.base = cg_param_of(g, t).op.reg,
                             .offset = (int64_t)r->start[vec].add * bits / 8};
    struct cg_val from = cg_index(g, r->start[vec].from);
    at.base = CG(g, PTX_B64, "add.s64", ptx_r(at.base), cg_op(g, bytes_of(g, base, bits)));
    at.base = CG(g, PTX_B64, "add.s64", ptx_r(at.base), cg_op(g, bytes_of(g, from, bits)));
    return at;
}

static struct row_slot *slot_at(struct row_gen *r, const struct lang_symbol *t, struct cg_val base)
{
    for (uint32_t i = 0; i < r->nslot; i++)
        if (r->slot[i].sym == t && row_same_value(r->slot[i].base, base))
            return &r->slot[i];
    if (r->nslot == ROW_READS)
        r->nslot--; /* forgotten: read again when asked for */
    struct row_slot *s = &r->slot[r->nslot++];
    *s = (struct row_slot){.sym = t, .base = base, .shared = row_is_shared(r->row, t)};
    s->v = ARENA_ARRAY(r->g->a, (size_t)r->plan.held * r->plan.vector, struct cg_val);
    uint32_t bits = dtype_bits(t->type);
    bool packed = r->plan.packed ? bits <= 16 : bits == 16;
    if (packed && !s->shared && bits * r->plan.vector >= 32) {
        s->words = bits * r->plan.vector / 32;
        s->word = ARENA_ARRAY(r->g->a, (size_t)r->plan.held * s->words, struct cg_val);
    }
    return s;
}

static struct row_slot *slot_of(struct row_gen *r, const struct lang_expr *e)
{
    return slot_at(r, e->sym, base_of(r, e));
}

/* Returns the word after an operation with a 0 that only the launch knows, another operation for
 * each level that converts. Without it ptxas would find the conversions of the level before again,
 * and keep their results in registers all the way. */
static int32_t word_for(struct row_gen *r, int32_t word)
{
    static const char *const names[] = {"xor.b32", "or.b32", "add.u32", "sub.u32"};
    struct cg *g = r->g;
    if (r->conversions == 0)
        return word;
    struct cg_val zero = cg_param_computed(g, lx_int(g->a, 0));
    int32_t low = CG(g, PTX_B32, "cvt.u32.u64", zero.op);
    return CG(g, PTX_B32, names[(r->conversions - 1) % 4], ptx_r(word), ptx_r(low));
}

static void unpack(struct row_gen *r, struct row_slot *s, uint32_t vec)
{
    uint32_t per = s->words ? r->plan.vector / s->words : 0;
    for (uint32_t k = 0; k < s->words; k++)
        cg_unpack(r->g, s->sym->type, word_for(r, s->word[vec * s->words + k].op.reg), per,
                  s->v + (size_t)vec * r->plan.vector + (size_t)k * per);
}

void row_unpack(struct row_gen *r, uint32_t vec)
{
    for (uint32_t i = 0; i < r->nslot && r->plan.packed; i++)
        if (r->slot[i].is_loaded[vec])
            unpack(r, &r->slot[i], vec);
}

/* early: before it is needed. ptxas would move a load of constant memory (.nc) behind the
 * reductions all the same. */
static void load(struct row_gen *r, struct row_slot *s, uint32_t vec, bool early)
{
    if (s->is_loaded[vec])
        return;
    bool constant = s->sym->kind == SYM_BUFFER && s->sym->mode == MODE_IN && !early;
    struct cg_place_of at = place_of(r, s->sym, s->base, vec);
    if (!s->shared && r->row->bits_out)
        cg_read_again(r->g, s->sym, &at);
    else if (!s->shared)
        at.cache = cg_read_once(r->g, s->sym);
    constant &= !at.has_policy; /* as measured */
    s->is_loaded[vec] = true;
    if (!s->words) {
        cg_load_words(r->g, s->sym->type, constant, at, r->plan.vector,
                      s->v + (size_t)vec * r->plan.vector);
        return;
    }
    cg_load_words(r->g, DT_U32, constant, at, s->words, s->word + (size_t)vec * s->words);
    if (!r->plan.packed)
        unpack(r, s, vec);
}

int32_t row_pair(struct row_gen *r, const struct lang_expr *e)
{
    const struct row_slot *s = slot_of(r, e);
    if (!s->words || dtype_bits(s->sym->type) != 16 || !s->is_loaded[r->vec])
        return -1;
    return s->word[r->vec * s->words + r->lane / 2].op.reg;
}

void row_load(struct row_gen *r, uint32_t level, bool shared, uint32_t first, uint32_t last)
{
    const struct row *row = r->row;
    for (uint32_t i = 0; i < row->nread; i++) {
        const struct row_read *d = &row->read[i];
        uint32_t needs = d->early ? ROW_EARLY : d->scope ? d->scope->level : row->nlevel;
        bool any = level == ROW_ALL && !d->early;
        if (d->shared != shared || (!any && needs != level) || row_is_kept(row, d->e->sym))
            continue;
        row_at(r, first, 0);
        size_t bound = row_bind(r, d->env);
        cg_at(r->g, d->e->span);
        struct row_slot *s = slot_of(r, d->e);
        r->g->bindings.n = bound;
        for (uint32_t vec = first; vec < last; vec++)
            load(r, s, vec, shared && level == ROW_ALL);
    }
}

void row_read_enough(struct row_gen *r)
{
    const struct row *row = r->row;
    int64_t cols;
    for (uint32_t i = 0; i < row->nread; i++) {
        const struct row_read *d = &row->read[i];
        const struct lang_symbol *t = d->e->sym;
        bool own = d->own && row->bits_out && !row_is_kept(row, t);
        for (uint32_t k = 0; k < i; k++) /* once */
            own &= !(row->read[k].own && row->read[k].e->sym == t);
        if (!own || !cg_is_const(r->cols, &cols) || cols * dtype_bits(t->type) % LINE_BITS)
            continue;
        row_at(r, 0, 0);
        const size_t bound = row_bind(r, d->env);
        const struct cg_val base = base_of(r, d->e);
        r->g->bindings.n = bound;
        for (uint32_t vec = 0; vec < r->plan.held; vec++)
            cg_read_enough(r->g, t, place_of(r, t, base, vec));
    }
}

void row_forget(struct row_gen *r, bool shared)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->nslot; i++)
        if (r->slot[i].shared != shared)
            r->slot[n++] = r->slot[i];
    r->nslot = n;
}

void row_forget_early(struct row_gen *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->nslot; i++) {
        bool early = false, other = false;
        for (uint32_t k = 0; k < r->row->nread; k++) {
            const struct row_read *d = &r->row->read[k];
            *(d->early ? &early : &other) |= d->e->sym == r->slot[i].sym;
        }
        if (other || !early)
            r->slot[n++] = r->slot[i];
    }
    r->nslot = n;
}

/* ---- answers to cg_expr() -------------------------------------------------------------------- */

static bool mentions(struct cg *g, const struct lang_expr *e, struct cg_val v)
{
    if (stands_for(g, e, v))
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (mentions(g, e->args[i], v))
            return true;
    return false;
}

/* Reads what depends on the first column axis only, where that changes once within a vector. It
 * reads it for both subscripts, which all lanes share, and chooses. */
static bool read_both(struct row_gen *r, const struct lang_expr *e, struct cg_val *v)
{
    struct cg *g = r->g;
    const struct cg_val now = r->column[0], to[2] = {r->before, r->after};
    const int32_t carry = r->carry;
    struct cg_val x[2];
    bool mine = false;
    if (carry < 0 || r->row->guarded || row_same_value(r->before, r->after))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        mine |= mentions(g, e->args[i], now);
        if (mentions(g, e->args[i], r->column[1]))
            return false;
    }
    size_t n = g->bindings.n;
    bool *is_now = ARENA_ARRAY(g->a, n + 1, bool);
    for (size_t i = 0; i < n; i++)
        is_now[i] = row_same_value(g->bindings.v[i].val, now);
    r->carry = -1;
    for (int k = 0; k < 2 && mine; k++) {
        for (size_t i = 0; i < n; i++)
            if (is_now[i])
                g->bindings.v[i].val = to[k];
        r->column[0] = to[k];
        x[k] = cg_expr(g, e);
    }
    for (size_t i = 0; i < n; i++)
        if (is_now[i])
            g->bindings.v[i].val = now;
    r->column[0] = now;
    r->carry = carry;
    if (mine)
        *v = cg_select(g, carry, x[1], x[0]);
    return mine;
}

static bool answer_read(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct row_gen *r = g->read_ctx;
    if (!e->pad && !cg_is_defined(g, e->sym) && row_scalar_told(r, e, v))
        return true;
    const struct lang_symbol *t = e->sym;
    uint32_t n = r->row->ncol;
    if (e->kind != E_INDEX || e->pad || e->nargs != t->rank ||
        (cg_is_defined(g, t) && !row_is_kept(r->row, t)))
        return false;
    bool along = t->rank >= n;
    for (uint32_t i = 0; i < n && along; i++)
        along = stands_for(g, e->args[t->rank - n + i], r->column[i]) &&
                inspect_same_expr(t->dims[t->rank - n + i], r->row->col[i]);
    if (!along)
        return !cg_is_defined(g, t) && read_both(r, e, v);
    struct cg_val base = base_of(r, e);
    for (uint32_t i = 0; i < r->nslot; i++)
        if (r->slot[i].sym == t && row_same_value(r->slot[i].base, base) &&
            r->slot[i].is_loaded[r->vec]) {
            *v = r->slot[i].v[r->vec * r->plan.vector + r->lane];
            return true;
        }
    return false;
}

static bool answer_reduction(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct row_gen *r = g->read_ctx;
    for (uint32_t i = 0; i < r->row->nreduce; i++)
        if (r->row->reduce[i].e == e && r->row->reduce[i].is_done) {
            *v = r->row->reduce[i].value;
            return true;
        }
    return false;
}

static bool answer_quotient(struct cg *g, struct cg_val x, struct cg_val y, struct cg_val *q)
{
    if (x.type != DT_F32 || y.op.kind != PTX_O_REG || !cg_depth(g, x.op) || cg_depth(g, y.op))
        return false;
    *q = cg_times_reciprocal(g, x, y);
    return true;
}

static bool answer_falling(struct cg *g, const struct lang_expr *e, bool *rough)
{
    const struct row_gen *r = g->read_ctx;
    bool narrow = true;
    for (uint32_t i = 0; i < r->row->nout; i++)
        narrow &= !r->row->out[i].along || dtype_bits(r->row->out[i].eq->sym->type) <= 16;
    for (uint32_t i = 0; i < r->row->nfalling; i++)
        if (r->row->falling[i].e == e) {
            *rough = r->row->falling[i].damped && narrow;
            return r->row->falling[i].always && !r->row->falling[i].finite;
        }
    return false;
}

void row_answer(struct row_gen *r)
{
    struct cg *g = r->g;
    g->read = answer_read;
    g->reduced = answer_reduction;
    g->quotient = answer_quotient;
    g->falling = answer_falling;
    g->read_ctx = r;
    g->preloaded = !r->row->other_reads;
    g->converts = r->row->other_reads; /* rather than branch for each lane */
}

/* ---- outputs --------------------------------------------------------------------------------- */

static struct cg_val output(struct row_gen *r, const struct row_out *o)
{
    struct cg *g = r->g;
    struct cg_val sub[2 * ROW_RANK];
    for (uint32_t i = 0; i < o->eq->nindex; i++)
        sub[i] = i < r->row->nlead ? r->lead[i] : r->column[i - r->row->nlead];
    cg_at(g, o->eq->span);
    return cg_define(g, o->eq, sub);
}

/* Jumps to the label where there is nothing to store; whether it may. */
static bool skip(struct row_gen *r, int32_t has, uint32_t label)
{
    if (has >= 0)
        cg_jump_if(r->g, has, false, label);
    if (r->exists >= 0)
        cg_jump_if(r->g, r->exists, false, label);
    return has >= 0 || r->exists >= 0;
}

/* From now on read as if it had been loaded. */
static void keep(struct row_gen *r, struct row_slot *s, uint32_t vec, const struct cg_val *v)
{
    const uint32_t per = s->words ? r->plan.vector / s->words : 0;
    for (uint32_t i = 0; i < r->plan.vector; i++)
        s->v[vec * r->plan.vector + i] = cg_freeze(r->g, v[i]);
    for (uint32_t k = 0; k < s->words; k++) {
        struct ptx_operand word = cg_pack(r->g, s->sym->type, per, v + (size_t)k * per);
        s->word[vec * s->words + k] = cg_value(DT_U32, word.reg);
    }
    s->is_loaded[vec] = true;
}

void row_store(struct row_gen *r, uint32_t vec, bool kept)
{
    struct cg *g = r->g;
    const struct row *row = r->row;
    uint32_t width = r->plan.vector;
    struct cg_val *v = ARENA_ARRAY(g->a, (size_t)row->nout * width, struct cg_val);
    bool any = false;
    for (uint32_t i = 0; i < row->nout; i++)
        any |= row->out[i].along && row->out[i].kept == kept;
    if (!any)
        return;
    struct cg_val base = cg_binary(g, OP_MUL, r->number, cg_index(g, r->cols));
    for (uint32_t lane = 0; lane < width; lane++) {
        row_at(r, vec, lane);
        for (uint32_t i = 0; i < row->nout; i++)
            if (row->out[i].along && row->out[i].kept == kept)
                v[i * width + lane] = output(r, &row->out[i]);
    }
    for (uint32_t i = 0; i < row->nout; i++)
        if (row->out[i].along && row->out[i].kept && kept)
            keep(r, slot_at(r, row->out[i].eq->sym, base), vec, v + i * width);
    uint32_t end = cg_label(g, "stored");
    bool placed = skip(r, r->has[vec], end);
    size_t mark = cg_scope_open(g);
    for (uint32_t i = 0; i < row->nout; i++) {
        const struct row_out *o = &row->out[i];
        if (!o->along || o->kept != kept)
            continue;
        cg_at(g, o->eq->span);
        struct cg_place_of at = place_of(r, o->eq->sym, base, vec);
        cg_store_vector(g, o->eq->sym, at.base, at.offset, width, v + i * width);
    }
    cg_scope_close(g, mark);
    if (placed)
        cg_place(g, end);
}

void row_store_scalars(struct row_gen *r)
{
    struct cg *g = r->g;
    const struct row *row = r->row;
    bool any = false;
    for (uint32_t i = 0; i < row->nout; i++)
        any |= !row->out[i].along;
    if (!any)
        return;
    row_at(r, 0, 0);
    uint32_t end = cg_label(g, "told");
    struct cg_val first = cg_binary(g, OP_EQ, r->thread, cg_int(r->ct, 0));
    skip(r, cg_reg(g, first), end);
    size_t mark = cg_scope_open(g);
    struct cg_val v[ROW_OUTS];
    for (uint32_t i = 0; i < row->nout; i++)
        if (!row->out[i].along)
            v[i] = output(r, &row->out[i]);
    for (uint32_t i = 0; i < row->nout; i++)
        if (!row->out[i].along)
            cg_store(g, row->out[i].eq->sym, cg_address(g, row->out[i].eq->sym, r->number), v[i]);
    cg_scope_close(g, mark);
    cg_place(g, end);
}
