/* What threads do together: barriers, votes, shuffles, reductions. A thread says what it asks for
 * (eval_meet) and stops; when no thread can go on, each group that is complete gets its answer. */
#include <config.h>

#include "kernels/eval_int.h"

enum { WARP = 32 };

/* ---- which calls ----------------------------------------------------------------------------- */

bool meet_in_block(enum lang_builtin fn)
{
    /* blocks of a cluster share nothing here: its barrier is the block's */
    return fn == FN_BARRIER_SYNC || fn == FN_CLUSTER_SYNC || fn == FN_CLUSTER_WAIT ||
           (fn >= FN_SYNCTHREADS && fn <= FN_SYNCTHREADS_OR) || fn == FN_BLOCK_SUM ||
           fn == FN_BLOCK_MAX || fn == FN_BLOCK_MIN;
}

static bool whole_warp(enum lang_builtin fn)
{
    return fn >= FN_WARP_SUM && fn <= FN_WARP_SCAN;
}

bool meet_in_warp(enum lang_builtin fn)
{
    return fn == FN_SYNCWARP || (fn >= FN_SHFL && fn <= FN_ALL) ||
           (fn >= FN_MATCH_ANY && fn <= FN_REDUCE_XOR) || whole_warp(fn);
}

/* ---- folds ----------------------------------------------------------------------------------- */

static bool is_max(enum lang_builtin fn)
{
    return fn == FN_REDUCE_MAX || fn == FN_WARP_MAX || fn == FN_BLOCK_MAX;
}

static bool is_min(enum lang_builtin fn)
{
    return fn == FN_REDUCE_MIN || fn == FN_WARP_MIN || fn == FN_BLOCK_MIN;
}

static union scalar fold(enum lang_builtin fn, enum dtype t, union scalar x, union scalar y)
{
    if (is_max(fn))
        return scalar_max(t, x, y);
    if (is_min(fn))
        return scalar_min(t, x, y);
    enum lang_op op = fn == FN_REDUCE_AND   ? OP_AND
                      : fn == FN_REDUCE_OR  ? OP_OR
                      : fn == FN_REDUCE_XOR ? OP_XOR
                                            : OP_ADD;
    return scalar_binary(op, t, t, x, y);
}

/* From the first to the last: sums of floats must be exact, or the order would matter. */
static void fold_all(struct thread **v, uint32_t n, const struct lang_expr *e, unsigned arg)
{
    union scalar sum = v[0]->operand[arg][0];
    v[0]->outcome[0] = sum;
    for (uint32_t i = 1; i < n; i++) {
        sum = fold(e->fn, e->type, sum, v[i]->operand[arg][0]);
        v[i]->outcome[0] = sum;
    }
    for (uint32_t i = 0; i < n && e->fn != FN_WARP_SCAN; i++)
        v[i]->outcome[0] = sum;
}

/* ---- in a warp ------------------------------------------------------------------------------- */

static struct thread *find_lane(struct thread **v, uint32_t n, uint32_t lane)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i]->linear % WARP == lane)
            return v[i];
    return NULL;
}

static uint32_t source_lane(const struct thread *t, const struct lang_expr *e)
{
    uint32_t lane = t->linear % WARP, width = e->nargs > 3 ? (uint32_t)t->operand[3][0].u : WARP;
    uint32_t by = (uint32_t)t->operand[2][0].u % WARP, first = lane & ~(width - 1);
    uint32_t last = first | (width - 1), from;
    switch (e->fn) {
    case FN_SHFL: return first | (by & (width - 1));
    case FN_SHFL_UP: return by > lane - first ? lane : lane - by;
    case FN_SHFL_DOWN: from = lane + by; break;
    default: from = lane ^ by; break;
    }
    return from > last ? lane : from;
}

static void exchange(struct thread **v, uint32_t n, const struct lang_expr *e)
{
    for (uint32_t i = 0; i < n; i++) {
        struct thread *from = find_lane(v, n, source_lane(v[i], e));
        if (!from)
            eval_fault(v[i], e->span, "a shuffle from a lane that takes no part");
        else
            memcpy(v[i]->outcome, from->operand[1], sizeof v[i]->outcome);
    }
}

static void vote(struct thread **v, uint32_t n, const struct lang_expr *e, unsigned arg)
{
    uint32_t yes = 0, all = 0, count = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t lane = UINT32_C(1) << v[i]->linear % WARP;
        bool p = v[i]->operand[arg][0].u != 0;
        all |= lane;
        yes |= p ? lane : 0;
        count += p;
    }
    for (uint32_t i = 0; i < n; i++)
        switch (e->fn) {
        case FN_BALLOT: v[i]->outcome[0].u = yes; break;
        case FN_ANY: v[i]->outcome[0].u = yes != 0; break;
        case FN_ALL: v[i]->outcome[0].u = yes == all; break;
        case FN_SYNCTHREADS_COUNT: v[i]->outcome[0].u = count; break;
        case FN_SYNCTHREADS_OR: v[i]->outcome[0].u = count != 0; break;
        default: v[i]->outcome[0].u = count == n; break;
        }
}

static void match(struct thread **v, uint32_t n, const struct lang_expr *e)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t same = 0, all = 0;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t lane = UINT32_C(1) << v[k]->linear % WARP;
            all |= lane;
            same |= v[k]->operand[1][0].u == v[i]->operand[1][0].u ? lane : 0;
        }
        v[i]->outcome[0].u = e->fn == FN_MATCH_ANY || same == all ? same : 0;
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

static void answer(struct thread **v, uint32_t n, const struct lang_expr *e)
{
    enum lang_builtin fn = e->fn;
    if (fn >= FN_SHFL && fn <= FN_SHFL_XOR)
        exchange(v, n, e);
    else if (fn >= FN_BALLOT && fn <= FN_ALL)
        vote(v, n, e, 1);
    else if (fn == FN_MATCH_ANY || fn == FN_MATCH_ALL)
        match(v, n, e);
    else if (fn >= FN_REDUCE_ADD && fn <= FN_REDUCE_XOR)
        fold_all(v, n, e, 1);
    else if (fn >= FN_WARP_SUM && fn <= FN_BLOCK_MIN)
        fold_all(v, n, e, 0);
    else if (fn >= FN_SYNCTHREADS_COUNT && fn <= FN_SYNCTHREADS_OR)
        vote(v, n, e, 0);
    for (uint32_t i = 0; i < n; i++)
        v[i]->meets = NULL;
}

/* The lanes that this thread waits for are all there: answers them. */
static bool try_warp(struct block *b, struct thread *t)
{
    const struct lang_expr *e = t->meets;
    struct thread *v[WARP];
    uint32_t n = 0, first = t->linear / WARP * WARP, mask = UINT32_MAX;
    bool masked = !whole_warp(e->fn) && e->nargs > 0;
    if (masked)
        mask = (uint32_t)t->operand[0][0].u;
    for (uint32_t i = first; i < first + WARP; i++) {
        bool named = mask >> (i - first) & 1, exists = i < b->nthread && !b->thread[i].done;
        if (named && !exists && !masked)
            continue;
        if (named && (!exists || b->thread[i].meets != e))
            return false;
        if (named)
            v[n++] = &b->thread[i];
    }
    answer(v, n, e);
    return true;
}

static bool try_block(struct block *b, struct thread *t)
{
    const struct lang_expr *e = t->meets;
    struct thread **v = b->group;
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->nthread; i++) {
        if (b->thread[i].done)
            continue;
        if (b->thread[i].meets != e)
            return false;
        v[n++] = &b->thread[i];
    }
    answer(v, n, e);
    return true;
}

/* A barrier of a number: who waits there, wherever it stands in the text, and who has just come
 * by. */
static bool try_barrier(struct block *b, const struct thread *t)
{
    uint64_t id = t->operand[0][0].u % 16, want = t->meets->nargs > 1 ? t->operand[1][0].u : 0;
    struct thread **v = b->group;
    uint32_t n = 0, live = 0;
    for (uint32_t i = 0; i < b->nthread; i++) {
        struct thread *o = &b->thread[i];
        live += !o->done;
        if (o->meets && o->meets->fn == FN_BARRIER_SYNC && o->operand[0][0].u % 16 == id)
            v[n++] = o;
    }
    if (n + b->arrived[id] != (want ? want : live))
        return false;
    for (uint32_t i = 0; i < n; i++)
        v[i]->meets = NULL;
    b->arrived[id] = 0;
    return true;
}

bool meet_settle(struct block *b)
{
    bool some = false;
    for (uint32_t i = 0; i < b->nthread; i++) {
        struct thread *t = &b->thread[i];
        if (t->meets && t->meets->fn == FN_BARRIER_SYNC)
            some |= try_barrier(b, t);
        else if (t->meets)
            some |= meet_in_block(t->meets->fn) ? try_block(b, t) : try_warp(b, t);
    }
    return some;
}
