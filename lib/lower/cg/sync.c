/* Barriers, fences, votes, clocks: the calls that act (lang_builtin_acts). None is ever
 * value-numbered, so each is executed where it is written and nowhere else. */
#include <config.h>

#include "lower/cg/sync.h"

#include <stdio.h>
#include <stdlib.h>

static const struct cg_val nothing = {.type = DT_U32, .op = {.kind = PTX_O_IMM}};

bool cg_needs(struct cg *g, struct span s, unsigned sm, const char *what)
{
    return g->target->sm >= sm ||
           cg_error(g, s, "%s needs sm_%u; the target is %s", what, sm, g->target->name);
}

static bool call_needs(struct cg *g, const struct lang_expr *e, unsigned sm)
{
    return cg_needs(g, e->span, sm, arena_printf(g->a, "%s()", lang_builtin_name(e->fn)));
}

/* A special register that does not change, read once; text is its name. */
static struct cg_val fixed_register(struct cg *g, const char *text, enum ptx_sreg r)
{
    int32_t reg = cg_recall(g, text, 0, NULL);
    if (reg < 0) {
        reg = cg_new(g, DT_U32);
        PTX(&g->b, "mov.u32", ptx_r(reg), ptx_special(r));
        cg_remember(g, text, 0, NULL, reg);
    }
    return cg_value(DT_U32, reg);
}

static struct cg_val read_clock(struct cg *g, enum dtype t, enum ptx_sreg r)
{
    int32_t reg = cg_new(g, t);
    PTX(&g->b, t == DT_U64 ? "mov.u64" : "mov.u32", ptx_r(reg), ptx_special(r));
    return cg_value(t, reg);
}

/* ---- barriers and fences --------------------------------------------------------------------- */

static struct cg_val barrier_of_values(struct cg *g, const struct lang_expr *e)
{
    struct ptx_operand p = ptx_r(cg_reg(g, cg_expr(g, e->args[0])));
    int32_t r = cg_new(g, e->type);
    PTX(&g->b,
        e->fn == FN_SYNCTHREADS_COUNT ? "bar.red.popc.u32"
        : e->fn == FN_SYNCTHREADS_AND ? "bar.red.and.pred"
                                      : "bar.red.or.pred",
        ptx_r(r), ptx_imm(0), p);
    return cg_value(e->type, r);
}

/* Without .aligned: the lanes of a warp need not arrive together. */
static void named_barrier(struct cg *g, const struct lang_expr *e)
{
    const char *m = e->fn == FN_BARRIER_SYNC ? "barrier.sync" : "barrier.arrive";
    struct ptx_operand id = cg_op(g, cg_expr(g, e->args[0]));
    if (e->nargs == 1)
        PTX(&g->b, m, id);
    else
        PTX(&g->b, m, id, cg_op(g, cg_expr(g, e->args[1])));
}

static void cluster_barrier(struct cg *g, const struct lang_expr *e)
{
    if (!call_needs(g, e, 90))
        return;
    if (e->fn != FN_CLUSTER_WAIT)
        PTX0(&g->b, "barrier.cluster.arrive.aligned");
    if (e->fn != FN_CLUSTER_ARRIVE)
        PTX0(&g->b, "barrier.cluster.wait.aligned");
}

const char *cg_scope_word(enum lang_memory_scope s)
{
    static const char *const words[] = {"cta", "cluster", "gpu", "sys"};
    return words[s];
}

void cg_fence(struct cg *g, struct span s, enum lang_order order, enum lang_memory_scope scope)
{
    char m[40];
    if (scope == SCOPE_CLUSTER && !cg_needs(g, s, 90, "the scope cluster"))
        return;
    snprintf(m, sizeof m, "fence.%s.%s", order == ORDER_SEQ_CST ? "sc" : "acq_rel",
             cg_scope_word(scope));
    PTX0(&g->b, m);
}

static struct cg_val barrier_call(struct cg *g, const struct lang_expr *e)
{
    switch (e->fn) {
    case FN_SYNCTHREADS: PTX(&g->b, "bar.sync", ptx_imm(0)); break;
    case FN_SYNCTHREADS_COUNT:
    case FN_SYNCTHREADS_AND:
    case FN_SYNCTHREADS_OR: return barrier_of_values(g, e);
    case FN_SYNCWARP:
        PTX(&g->b, "bar.warp.sync",
            e->nargs ? cg_op(g, cg_expr(g, e->args[0])) : ptx_imm(UINT32_MAX));
        break;
    case FN_BARRIER_SYNC:
    case FN_BARRIER_ARRIVE: named_barrier(g, e); break;
    case FN_CLUSTER_SYNC:
    case FN_CLUSTER_ARRIVE:
    case FN_CLUSTER_WAIT:
        cluster_barrier(g, e);
        break;
        /* as CUDA defines them: sequentially consistent */
    case FN_THREADFENCE: cg_fence(g, e->span, ORDER_SEQ_CST, SCOPE_GPU); break;
    case FN_THREADFENCE_BLOCK: cg_fence(g, e->span, ORDER_SEQ_CST, SCOPE_BLOCK); break;
    case FN_THREADFENCE_SYSTEM: cg_fence(g, e->span, ORDER_SEQ_CST, SCOPE_SYSTEM); break;
    case FN_FENCE: cg_fence(g, e->span, e->order, e->scope); break;
    default: PTX(&g->b, "nanosleep.u32", cg_op(g, cg_expr(g, e->args[0]))); break;
    }
    return nothing;
}

/* ---- votes ----------------------------------------------------------------------------------- */

static struct cg_val vote(struct cg *g, const struct lang_expr *e)
{
    struct ptx_operand mask = cg_op(g, cg_expr(g, e->args[0]));
    struct ptx_operand p = ptx_r(cg_reg(g, cg_expr(g, e->args[1])));
    int32_t r = cg_new(g, e->type);
    PTX(&g->b,
        e->fn == FN_BALLOT ? "vote.sync.ballot.b32"
        : e->fn == FN_ANY  ? "vote.sync.any.pred"
                           : "vote.sync.all.pred",
        ptx_r(r), p, mask);
    return cg_value(e->type, r);
}

static struct cg_val match(struct cg *g, const struct lang_expr *e)
{
    char m[32];
    struct ptx_operand mask = cg_op(g, cg_expr(g, e->args[0]));
    struct ptx_operand x = ptx_r(cg_reg(g, cg_expr(g, e->args[1])));
    int32_t r = cg_new(g, DT_U32);
    snprintf(m, sizeof m, "match.%s.sync.b%u", e->fn == FN_MATCH_ANY ? "any" : "all",
             dtype_bits(e->args[1]->type));
    PTX(&g->b, m, ptx_r(r), x, mask);
    return cg_value(DT_U32, r);
}

/* ---- all ------------------------------------------------------------------------------------- */

struct cg_val cg_act(struct cg *g, const struct lang_expr *e)
{
    if (e->fn >= FN_ATOMIC_ADD && e->fn <= FN_STORE)
        return atomic_call(g, e);
    switch (e->fn) {
    case FN_SHFL:
    case FN_SHFL_UP:
    case FN_SHFL_DOWN:
    case FN_SHFL_XOR: return warp_shuffle(g, e);
    case FN_BALLOT:
    case FN_ANY:
    case FN_ALL: return vote(g, e);
    case FN_MATCH_ANY:
    case FN_MATCH_ALL: return match(g, e);
    case FN_REDUCE_ADD:
    case FN_REDUCE_MIN:
    case FN_REDUCE_MAX:
    case FN_REDUCE_AND:
    case FN_REDUCE_OR:
    case FN_REDUCE_XOR: return warp_reduce_sync(g, e);
    case FN_WARP_SUM:
    case FN_WARP_MAX:
    case FN_WARP_MIN:
    case FN_WARP_SCAN: return warp_reduction(g, e);
    case FN_BLOCK_SUM:
    case FN_BLOCK_MAX:
    case FN_BLOCK_MIN: return block_reduction(g, e);
    case FN_ACTIVEMASK: {
        int32_t r = cg_new(g, DT_U32);
        PTX(&g->b, "activemask.b32", ptx_r(r));
        return cg_value(DT_U32, r);
    }
    case FN_LANEMASK_LT: return fixed_register(g, "%lanemask_lt", PTX_SR_LANEMASK_LT);
    case FN_LANEMASK_LE: return fixed_register(g, "%lanemask_le", PTX_SR_LANEMASK_LE);
    case FN_LANEMASK_EQ: return fixed_register(g, "%lanemask_eq", PTX_SR_LANEMASK_EQ);
    case FN_LANEMASK_GE: return fixed_register(g, "%lanemask_ge", PTX_SR_LANEMASK_GE);
    case FN_LANEMASK_GT: return fixed_register(g, "%lanemask_gt", PTX_SR_LANEMASK_GT);
    case FN_CLOCK: return read_clock(g, DT_U32, PTX_SR_CLOCK);
    case FN_CLOCK64: return read_clock(g, DT_U64, PTX_SR_CLOCK64);
    case FN_GLOBALTIMER: return read_clock(g, DT_U64, PTX_SR_GLOBALTIMER);
    case FN_SMID: return read_clock(g, DT_U32, PTX_SR_SMID);
    case FN_CLUSTER_RANK:
    case FN_CLUSTER_SIZE:
        if (!call_needs(g, e, 90))
            return nothing;
        return e->fn == FN_CLUSTER_RANK
                   ? fixed_register(g, "%cluster_ctarank", PTX_SR_CLUSTER_CTARANK)
                   : fixed_register(g, "%cluster_nctarank", PTX_SR_CLUSTER_NCTARANK);
    default: return barrier_call(g, e);
    }
}

void cg_arrive(struct cg *g, struct cg_place_of counter, struct cg_val blocks, struct cg_val thread,
               uint32_t skip)
{
    const struct cg_val last = cg_binary(g, OP_SUB, blocks, cg_u32(1));
    const int32_t is_last = cg_new_mutable(g, DT_BOOL), any = cg_new(g, DT_BOOL);
    const uint32_t counted = cg_label(g, "counted");
    PTX(&g->b, "bar.sync", ptx_imm(0)); /* all threads have written */
    cg_move(g, is_last, cg_bool(g, false));
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, thread, cg_u32(0))), true, counted);
    const int32_t before = cg_new(g, DT_U32);
    PTX(&g->b, "atom.acq_rel.gpu.global.inc.u32", ptx_r(before), cg_mem(counter), cg_op(g, last));
    cg_move(g, is_last, cg_binary(g, OP_EQ, cg_value(DT_U32, before), last));
    cg_scope_close(g, mark);
    cg_place(g, counted);
    PTX(&g->b, "bar.red.or.pred", ptx_r(any), ptx_imm(0), ptx_r(is_last));
    cg_jump_if(g, any, false, skip);
}
