#include <config.h>

#include "kernels/eval_int.h"

enum { STEPS_MOST = 200000000 };

void eval_fault(struct thread *t, struct span s, const char *fmt, ...)
{
    struct machine *m = t->block->machine;
    if (m->fault)
        return;
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(m->arena, fmt, ap);
    va_end(ap);
    size_t line = s.src ? span_line_col(s).line : 0;
    m->fault = arena_printf(m->arena, "line %zu, block (%u, %u, %u), thread (%u, %u, %u): %s", line,
                            t->block->at[0], t->block->at[1], t->block->at[2], t->tid[0], t->tid[1],
                            t->tid[2], text);
}

unsigned eval_lanes(const struct lang_expr *e)
{
    return e->lanes ? e->lanes : 1;
}

/* ---- variables ------------------------------------------------------------------------------- */

struct storage *eval_storage(struct thread *t, const struct lang_symbol *sym)
{
    if (sym->kind == SYM_LOCAL && !sym->table)
        return &t->frame->local[sym->id];
    for (size_t i = 0; i < t->block->shared.n; i++)
        if (t->block->shared.v[i]->sym == sym)
            return t->block->shared.v[i];
    return sym->table ? eval_variable(t->block, sym) : NULL;
}

void eval_read(struct thread *t, const struct storage *s, uint64_t at, union scalar *out)
{
    unsigned lanes = s->sym->lanes ? s->sym->lanes : 1;
    (void)t;
    for (unsigned k = 0; k < lanes; k++)
        out[k] = s->cell ? s->cell[at * lanes + k]
                         : scalar_load(s->sym->type, s->memory->data, at * lanes + k);
}

void eval_write(struct thread *t, struct storage *s, uint64_t at, const union scalar *v)
{
    unsigned lanes = s->sym->lanes ? s->sym->lanes : 1;
    (void)t;
    for (unsigned k = 0; k < lanes; k++)
        if (s->cell)
            s->cell[at * lanes + k] = v[k];
        else
            scalar_store(s->sym->type, s->memory->data, at * lanes + k, v[k]);
}

/* A buffer's storage is made up at each use: thread-private, so kept in the caller's hands. */
static struct storage *buffer_storage(struct thread *t, const struct lang_symbol *sym,
                                      struct storage *made)
{
    const struct eval_param *p = &t->block->machine->in->param[sym->id];
    *made = (struct storage){
        .memory = (struct buffer *)&p->buffer, .sym = sym, .count = p->buffer.count};
    for (uint32_t i = 0; i < p->buffer.rank; i++)
        made->dim[i] = p->buffer.dim[i];
    return made;
}

static uint64_t flat_index(struct thread *t, const struct lang_expr *e, uint32_t nargs,
                           const struct storage *s)
{
    uint32_t rank = e->sym->rank;
    int64_t flat = 0;
    for (uint32_t i = 0; i < nargs; i++) {
        int64_t at = eval_scalar(t, e->args[i]).i;
        if (nargs == rank && (at < 0 || (uint64_t)at >= s->dim[i]))
            eval_fault(t, e->span, "subscript %lld of '%s' is out of range", (long long)at,
                       e->sym->name);
        flat = (nargs == rank ? flat * (int64_t)s->dim[i] : 0) + at;
    }
    if (flat >= 0 && (uint64_t)flat < s->count && !t->block->machine->fault)
        return (uint64_t)flat;
    eval_fault(t, e->span, "element %lld of '%s' is out of range", (long long)flat, e->sym->name);
    return UINT64_MAX;
}

uint64_t eval_place(struct thread *t, const struct lang_expr *e, struct storage **s, int *lane)
{
    const struct lang_symbol *sym = e->sym;
    bool of_lane = sym->lanes && e->nargs == sym->rank + 1;
    if (sym->kind == SYM_BUFFER)
        *s = buffer_storage(t, sym, *s);
    else
        *s = eval_storage(t, sym);
    *lane = -1;
    if (of_lane) {
        int64_t k = eval_scalar(t, e->args[sym->rank]).i;
        if (k < 0 || k >= sym->lanes)
            eval_fault(t, e->span, "lane %lld of '%s' is out of range", (long long)k, sym->name);
        *lane = k < 0 || k >= sym->lanes ? 0 : (int)k;
    }
    return flat_index(t, e, e->nargs - of_lane, *s);
}

static void element(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    struct storage made, *s = &made;
    union scalar v[LANES_MOST];
    int lane;
    uint64_t at = eval_place(t, e, &s, &lane);
    if (at == UINT64_MAX) {
        out[0].u = 0;
        return;
    }
    eval_read(t, s, at, v);
    memcpy(out, lane < 0 ? v : v + lane, eval_lanes(e) * sizeof *out);
}

static void name(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    const struct eval_input *in = t->block->machine->in;
    const struct lang_symbol *sym = e->sym;
    switch (sym->kind) {
    case SYM_DIM: out->i = sym->has_value ? (int64_t)sym->value : in->dim[sym->id]; break;
    case SYM_SCALAR: *out = in->param[sym->id].value; break;
    case SYM_LOCAL:
        if (sym->table && !sym->rank) { /* a constant of functions: */
            eval_expr(t, sym->table->rhs, out);
            break;
        }
        eval_read(t, eval_storage(t, sym), 0, out);
        break;
    case SYM_SHARED: eval_read(t, eval_storage(t, sym), 0, out); break;
    default: element(t, e, out); break;
    }
}

/* ---- specials -------------------------------------------------------------------------------- */

static uint32_t special(const struct thread *t, enum lang_special sp)
{
    const struct machine *m = t->block->machine;
    switch (sp) {
    case SP_TID_X:
    case SP_TID_Y:
    case SP_TID_Z: return t->tid[sp - SP_TID_X];
    case SP_CTAID_X:
    case SP_CTAID_Y:
    case SP_CTAID_Z: return t->block->at[sp - SP_CTAID_X];
    case SP_NTID_X:
    case SP_NTID_Y:
    case SP_NTID_Z: return m->block[sp - SP_NTID_X];
    case SP_NCTAID_X:
    case SP_NCTAID_Y:
    case SP_NCTAID_Z: return m->grid[sp - SP_NCTAID_X];
    case SP_CLUSTERID_X:
    case SP_CLUSTERID_Y:
    case SP_CLUSTERID_Z: sp -= SP_CLUSTERID_X; return t->block->at[sp] / m->cluster[sp];
    case SP_CLUSTER_NCTAID_X:
    case SP_CLUSTER_NCTAID_Y:
    case SP_CLUSTER_NCTAID_Z: return m->cluster[sp - SP_CLUSTER_NCTAID_X];
    case SP_LANEID: return t->linear % 32;
    case SP_WARPID: return t->linear / 32;
    default: return 0;
    }
}

/* ---- operators ------------------------------------------------------------------------------- */

union scalar eval_scalar(struct thread *t, const struct lang_expr *e)
{
    union scalar v[LANES_MOST];
    eval_expr(t, e, v);
    return v[0];
}

bool eval_condition(struct thread *t, const struct lang_expr *e)
{
    return scalar_is_true(e->type, eval_scalar(t, e));
}

static void lane_by_lane(enum lang_op op, const struct lang_expr *e, const union scalar *x,
                         const union scalar *y, union scalar *out)
{
    const struct lang_expr *l = e->args[0], *r = e->args[1];
    for (unsigned k = 0; k < eval_lanes(e); k++)
        out[k] = scalar_binary(op, l->type, r->type, x[l->lanes ? k : 0], y[r->lanes ? k : 0]);
}

static bool is_product(const struct lang_expr *e, enum dtype t)
{
    return e->kind == E_BINARY && e->op == OP_MUL && e->type == t;
}

/* a*b + c, c + a*b, a*b - c and c - a*b with the product written right there; of two products the
 * left one. */
static bool contracted(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    bool sub = e->op == OP_SUB;
    if (!t->block->machine->contract || (e->op != OP_ADD && !sub) || !dtype_is_float(e->type))
        return false;
    bool left = is_product(e->args[0], e->type);
    if (!left && !is_product(e->args[1], e->type))
        return false;
    const struct lang_expr *p = e->args[left ? 0 : 1], *rest = e->args[left ? 1 : 0];
    union scalar x[LANES_MOST], y[LANES_MOST], z[LANES_MOST];
    eval_expr(t, p->args[0], x);
    eval_expr(t, p->args[1], y);
    eval_expr(t, rest, z);
    for (unsigned k = 0; k < eval_lanes(e); k++) {
        union scalar a = x[p->args[0]->lanes ? k : 0], b = y[p->args[1]->lanes ? k : 0],
                     c = z[rest->lanes ? k : 0];
        if (sub && left)
            c.f = -c.f;
        else if (sub)
            a.f = -a.f;
        out[k] = scalar_fma(e->type, a, b, c);
    }
    return true;
}

static void binary(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    if (e->op == OP_LAND || e->op == OP_LOR) {
        bool x = eval_condition(t, e->args[0]);
        out->u = x == (e->op == OP_LAND) ? eval_condition(t, e->args[1]) : x;
        return;
    }
    if (contracted(t, e, out))
        return;
    union scalar x[LANES_MOST], y[LANES_MOST];
    eval_expr(t, e->args[0], x);
    eval_expr(t, e->args[1], y);
    lane_by_lane(e->op, e, x, y, out);
}

static void vector(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    union scalar v[LANES_MOST];
    if (e->nargs == 1 && e->args[0]->lanes) { /* from another vector */
        eval_expr(t, e->args[0], v);
        for (unsigned k = 0; k < e->lanes; k++)
            out[k] = scalar_convert(e->args[0]->type, e->type, v[k]);
        return;
    }
    for (unsigned k = 0; k < e->lanes; k++) {
        if (k < e->nargs)
            v[0] = scalar_convert(e->args[k]->type, e->type, eval_scalar(t, e->args[k]));
        out[k] = v[0];
    }
}

static void cast(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    const struct lang_expr *x = e->args[0];
    union scalar v[LANES_MOST];
    eval_expr(t, x, v);
    for (unsigned k = 0; k < eval_lanes(e); k++)
        out[k] = scalar_convert(x->type, e->type, v[x->lanes ? k : 0]);
}

static void unary(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    eval_expr(t, e->args[0], out);
    for (unsigned k = 0; k < eval_lanes(e); k++)
        out[k] = scalar_unary(e->op, e->args[0]->type, out[k]);
}

void eval_expr(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    struct machine *m = t->block->machine;
    if (++m->steps > STEPS_MOST)
        eval_fault(t, e->span, "this does not seem to end");
    switch (e->kind) {
    case E_INT: *out = scalar_int(e->type, e->ival); break;
    case E_BOOL: out->u = e->ival; break;
    case E_FLOAT: *out = scalar_float(e->type, e->fval); break;
    case E_NAME: name(t, e, out); break;
    case E_SPECIAL: out->u = special(t, e->special); break;
    case E_INDEX: element(t, e, out); break;
    case E_UNARY: unary(t, e, out); break;
    case E_BINARY: binary(t, e, out); break;
    case E_COND: eval_expr(t, e->args[eval_condition(t, e->args[0]) ? 1 : 2], out); break;
    case E_CAST: cast(t, e, out); break;
    case E_CALL: eval_call(t, e, out); break;
    case E_VECTOR: vector(t, e, out); break;
    case E_MEMBER: {
        union scalar v[LANES_MOST];
        eval_expr(t, e->args[0], v);
        *out = v[e->ival];
        break;
    }
    default:
        out->u = 0;
        eval_fault(t, e->span, "an expression that the evaluator does not know");
        break;
    }
}
