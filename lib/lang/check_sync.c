/* What a body says to other threads: barriers, fences, shuffles, votes, reductions over a warp or a
 * block, clocks. */
#include <config.h>

#include "lang/lang_int.h"

static const char *what(struct checker *c, const struct lang_expr *e, const char *part)
{
    return arena_printf(c->a, "the %s of %s()", part, e->name);
}

/* A plain value, of a type that registers hold: f32 for the 8-bit floats, i32 for the 4-bit
 * integers. */
static bool value(struct checker *c, struct lang_expr *e, uint32_t i)
{
    struct lang_expr *x = e->args[i];
    if (!check_expr(c, x))
        return false;
    if (x->type == DT_VOID)
        return diag_error(c->d, x->span, "this function returns no value");
    if (dtype_bits(x->type) < 8 || dtype_is_fp8(x->type))
        check_convert(c, x, type_promote(x->type));
    return true;
}

static bool as_u32(struct checker *c, struct lang_expr *e, uint32_t i, const char *part)
{
    return check_integer(c, e->args[i], what(c, e, part)) &&
           check_coerce(c, e->args[i], DT_U32, what(c, e, part));
}

static bool value_u32(struct checker *c, struct lang_expr *e, uint32_t i, const char *part)
{
    return value(c, e, i) && as_u32(c, e, i, part);
}

/* The lanes that take part. */
static bool mask(struct checker *c, struct lang_expr *e)
{
    struct lang_expr *x = e->args[0];
    int64_t v;
    if (!value(c, e, 0))
        return false;
    if (x->kind == E_INT && x->type == DT_I32) /* -1, as C converts it */
        check_convert(c, x, DT_U32);
    if (!as_u32(c, e, 0, "mask"))
        return false;
    if (lang_const_int(x, &v) && v == 0)
        return diag_error(c->d, x->span, "this mask names no lane; 0xffffffff names all of them");
    return true;
}

/* ---- barriers and fences --------------------------------------------------------------------- */

static bool barrier_number(struct checker *c, struct lang_expr *e)
{
    int64_t v;
    if (!value_u32(c, e, 0, "number"))
        return false;
    if (lang_const_int(e->args[0], &v) && (v < 1 || v > 15))
        return diag_error(c->d, e->args[0]->span, "barriers are numbered 1 to 15, not %lld%s",
                          (long long)v, v ? "" : "; 0 is __syncthreads()'s");
    return true;
}

static bool barrier_threads(struct checker *c, struct lang_expr *e)
{
    int64_t v;
    if (!value_u32(c, e, 1, "number of threads"))
        return false;
    if (lang_const_int(e->args[1], &v) && (v < 32 || v > 1024 || v % 32))
        return diag_error(c->d, e->args[1]->span,
                          "a barrier waits for whole warps: the number of threads is a multiple "
                          "of 32 from 32 to 1024, not %lld",
                          (long long)v);
    const uint32_t *block = c->opt.block;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (lang_const_int(e->args[1], &v) && threads && (uint64_t)v > threads)
        return diag_error(c->d, e->args[1]->span,
                          "this barrier waits for %lld threads, and the block has %llu",
                          (long long)v, (unsigned long long)threads);
    return true;
}

static bool fence(struct checker *c, struct lang_expr *e)
{
    if (!e->order_span.src)
        e->order = ORDER_ACQ_REL;
    if (!e->scope_span.src)
        e->scope = SCOPE_GPU;
    if (e->order == ORDER_RELAXED)
        return diag_error(c->d, e->order_span,
                          "a relaxed fence would order nothing; write acquire, release, acq_rel "
                          "or seq_cst");
    return true;
}

static bool sleep_time(struct checker *c, struct lang_expr *e)
{
    int64_t v;
    if (!value_u32(c, e, 0, "time"))
        return false;
    if (lang_const_int(e->args[0], &v) && v > 1000000)
        return diag_error(c->d, e->args[0]->span,
                          "nanosleep() sleeps for at most 1000000 ns (1 ms), not %lld",
                          (long long)v);
    return true;
}

/* ---- a warp ---------------------------------------------------------------------------------- */

static bool shuffle(struct checker *c, struct lang_expr *e)
{
    const char *part = e->fn == FN_SHFL ? "lane" : e->fn == FN_SHFL_XOR ? "lane mask" : "distance";
    int64_t v;
    if (!mask(c, e) || !value(c, e, 1) || !value_u32(c, e, 2, part))
        return false;
    if (lang_const_int(e->args[2], &v) && (v < 0 || v > 31))
        return diag_error(c->d, e->args[2]->span, "%s is 0 to 31, not %lld", what(c, e, part),
                          (long long)v);
    e->type = e->args[1]->type;
    e->lanes = e->args[1]->lanes;
    if (e->nargs < 4)
        return true;
    if (!value_u32(c, e, 3, "width"))
        return false;
    if (lang_const_int(e->args[3], &v) && (v < 1 || v > 32 || (v & (v - 1))))
        return diag_error(c->d, e->args[3]->span, "%s is 1, 2, 4, 8, 16 or 32, not %lld",
                          what(c, e, "width"), (long long)v);
    return true;
}

static bool vote(struct checker *c, struct lang_expr *e)
{
    e->type = e->fn == FN_BALLOT ? DT_U32 : DT_BOOL;
    return mask(c, e) && check_condition(c, e->args[1]);
}

static bool scalar(struct checker *c, struct lang_expr *e, uint32_t i)
{
    if (!value(c, e, i))
        return false;
    return !e->args[i]->lanes ||
           diag_error(c->d, e->args[i]->span,
                      "%s() takes one value, not a vector; call it for each lane, as in %s(v.x)",
                      e->name, e->name);
}

static bool match(struct checker *c, struct lang_expr *e)
{
    e->type = DT_U32;
    if (!mask(c, e) || !scalar(c, e, 1))
        return false;
    check_convert(c, e->args[1], type_promote(e->args[1]->type));
    return true;
}

static bool reduce_sync(struct checker *c, struct lang_expr *e)
{
    if (!mask(c, e) || !scalar(c, e, 1))
        return false;
    struct lang_expr *x = e->args[1];
    bool bits = e->fn >= FN_REDUCE_AND;
    enum dtype t = type_promote(x->type);
    if (t != DT_I32 && t != DT_U32)
        return diag_error(c->d, x->span,
                          bits ? "%s() takes u32 or i32, not %s"
                               : "%s() takes i32 or u32, not %s; warp_sum(), warp_min() and "
                                 "warp_max() take every type",
                          e->name, dtype_name(x->type));
    check_convert(c, x, t);
    e->type = t;
    return true;
}

static bool reduction(struct checker *c, struct lang_expr *e)
{
    if (!scalar(c, e, 0))
        return false;
    check_convert(c, e->args[0], type_promote(e->args[0]->type));
    e->type = e->args[0]->type;
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool in_place(struct checker *c, const struct lang_expr *e)
{
    if (c->place != IN_BODY)
        return diag_error(c->d, e->span, "%s() has a meaning only inside a body", e->name);
    if (c->func && !c->func->impure.src)
        c->func->impure = e->span;
    c->syncs |= e->fn >= FN_SYNCTHREADS && e->fn <= FN_BLOCK_MIN;
    if (e->fn == FN_FENCE || !(e->order_span.src || e->scope_span.src))
        return true;
    return diag_error(c->d, e->order_span.src ? e->order_span : e->scope_span,
                      "%s() has no order and no scope; atomic operations, load(), store() and "
                      "fence() have",
                      e->name);
}

bool check_sync(struct checker *c, struct lang_expr *e)
{
    e->type = DT_VOID;
    if (!in_place(c, e))
        return false;
    switch (e->fn) {
    case FN_SYNCTHREADS_COUNT: e->type = DT_I32; return check_condition(c, e->args[0]);
    case FN_SYNCTHREADS_AND:
    case FN_SYNCTHREADS_OR: e->type = DT_BOOL; return check_condition(c, e->args[0]);
    case FN_SYNCWARP: return e->nargs == 0 || mask(c, e);
    case FN_BARRIER_SYNC:
    case FN_BARRIER_ARRIVE: return barrier_number(c, e) && (e->nargs < 2 || barrier_threads(c, e));
    case FN_FENCE: return fence(c, e);
    case FN_NANOSLEEP: return sleep_time(c, e);
    case FN_SHFL:
    case FN_SHFL_UP:
    case FN_SHFL_DOWN:
    case FN_SHFL_XOR: return shuffle(c, e);
    case FN_BALLOT:
    case FN_ANY:
    case FN_ALL: return vote(c, e);
    case FN_MATCH_ANY:
    case FN_MATCH_ALL: return match(c, e);
    case FN_REDUCE_ADD:
    case FN_REDUCE_MIN:
    case FN_REDUCE_MAX:
    case FN_REDUCE_AND:
    case FN_REDUCE_OR:
    case FN_REDUCE_XOR: return reduce_sync(c, e);
    case FN_WARP_SUM:
    case FN_WARP_MAX:
    case FN_WARP_MIN:
    case FN_WARP_SCAN:
    case FN_BLOCK_SUM:
    case FN_BLOCK_MAX:
    case FN_BLOCK_MIN: return reduction(c, e);
    case FN_ACTIVEMASK:
    case FN_LANEMASK_LT:
    case FN_LANEMASK_LE:
    case FN_LANEMASK_EQ:
    case FN_LANEMASK_GE:
    case FN_LANEMASK_GT:
    case FN_CLOCK:
    case FN_SMID:
    case FN_CLUSTER_RANK:
    case FN_CLUSTER_SIZE: e->type = DT_U32; return true;
    case FN_CLOCK64:
    case FN_GLOBALTIMER: e->type = DT_U64; return true;
    default: return true; /* barriers and fences without arguments */
    }
}

/* ---- waiting for another thread -------------------------------------------------------------- */

/* A plain read of what another thread may write; NULL where there is none, or something that orders
 * memory too. */
static const struct lang_expr *plain_read(const struct lang_expr *e, bool *ordered)
{
    const struct lang_expr *found = NULL;
    bool names = e->kind == E_INDEX || e->kind == E_NAME;
    if (names && (e->sym->kind == SYM_SHARED || e->sym->kind == SYM_BUFFER))
        return e;
    *ordered |= e->kind == E_CALL && (e->func || lang_builtin_acts(e->fn));
    for (uint32_t i = 0; i < e->nargs && !*ordered; i++) {
        const struct lang_expr *x = plain_read(e->args[i], ordered);
        found = found ? found : x;
    }
    return *ordered ? NULL : found;
}

/* Does the statement at most wait? */
static bool is_idle(const struct lang_stmt *s)
{
    for (uint32_t i = 0; s->kind == S_BLOCK && i < s->nbody; i++)
        if (!is_idle(s->body[i]))
            return false;
    return s->kind == S_BLOCK || (s->kind == S_EXPR && s->rhs->kind == E_CALL && !s->rhs->func &&
                                  (s->rhs->fn == FN_NANOSLEEP ||
                                   (s->rhs->fn >= FN_THREADFENCE && s->rhs->fn <= FN_FENCE)));
}

void warn_waiting(struct checker *c, const struct lang_stmt *loop)
{
    bool ordered = false;
    if (!is_idle(loop->body[0]))
        return;
    const struct lang_expr *e = plain_read(loop->cond, &ordered);
    if (!e)
        return;
    if (e->sym->kind == SYM_BUFFER && e->sym->mode == MODE_IN)
        diag_warning(c->d, e->span,
                     "an input does not change while the kernel runs, so this loop runs never or "
                     "for ever; declare '%s' inout and write load(&%s, order = acquire)",
                     e->sym->name, lang_expr_text(c->a, e));
    else
        diag_warning(c->d, e->span,
                     "this waits for another thread by a plain read, which may be done once for "
                     "all turns of the loop; write load(&%s, order = acquire)",
                     lang_expr_text(c->a, e));
}
