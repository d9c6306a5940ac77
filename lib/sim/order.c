/* The order in which groups of lanes run (warp.c): a rank for each record.
 *
 * The code's blocks are ordered so that every edge leads forward but those that close a loop, and
 * so that a loop's blocks stand together: a weak topological order (Bourdoncle, Efficient chaotic
 * iteration strategies with widenings, 1993). All that lies between a branch and its post-dominator
 * then comes before the post-dominator, and the whole of a loop before what follows it, wherever
 * the compiler has put them. Of two orders that will do, the one nearer to the text is taken.
 *
 * The strongly connected components of a set of blocks are ordered by a depth-first search; then
 * those of each component without its head, and so on inwards.
 */
#include <config.h>

#include "sim/decode.h"

/* Blocks to be ordered among themselves: order[from, to). */
struct range {
    uint32_t from, to;
    uint32_t head; /* of the loop whose inside they are, NONE for all */
    uint32_t depth;
};

/* A block whose successors are being visited. */
struct frame {
    uint32_t block, next;
};

struct order {
    struct arena *arena;
    const struct dec *dc;
    uint32_t n;
    uint32_t *start; /* by block: first record; start[n] is the end */
    uint32_t *block; /* by record that starts one: its block */
    uint32_t *edge;  /* by block: where its successors begin in succ; edge[n] is the end */
    VEC(uint32_t) succ;
    uint32_t *order; /* the blocks, in order */
    uint32_t
        *tail; /* by block: it is the head of a loop that ends before order[tail]; 0: it is none */
    /* of the search: */
    uint32_t *set;   /* by block: number of the range it is in */
    uint32_t *index; /* by block: when it was found, 0: not yet; DONE: its component is complete */
    uint32_t *low;
    uint32_t *stack, nstack; /* found, component not complete */
    struct frame *frame;
    uint32_t *out, nout; /* filled from the end */
    uint32_t time;
    VEC(struct range) ranges;
};

enum { NONE = UINT32_MAX, DONE = UINT32_MAX, DEEPEST = 64 };

static bool is(const struct dec *dc, uint32_t op, enum sim_handler_id h)
{
    return dc->op.v[op].fn[0] == dc->in->build->h[h].full;
}

static bool ends_block(const struct dec *dc, uint32_t op)
{
    return is(dc, op, SIM_H_BRA) || is(dc, op, SIM_H_BRX) || is(dc, op, SIM_H_EXIT);
}

/* ---- blocks and edges ------------------------------------------------------------------------ */

static void find_blocks(struct order *o)
{
    const struct dec *dc = o->dc;
    const uint32_t nop = (uint32_t)dc->op.n;
    o->block = ARENA_ARRAY(o->arena, nop + 1, uint32_t);
    o->block[0] = 1;
    for (uint32_t i = 0; i < nop; i++) {
        if (ends_block(dc, i))
            o->block[i + 1] = 1;
        if (is(dc, i, SIM_H_BRA))
            o->block[dc->op.v[i].target] = 1;
        if (is(dc, i, SIM_H_BRX))
            for (uint32_t k = 0; k < dc->code->targets[dc->op.v[i].target].n; k++)
                o->block[dc->code->targets[dc->op.v[i].target].op[k]] = 1;
    }
    for (uint32_t i = 0; i < nop; i++)
        o->n += o->block[i];
    o->start = ARENA_ARRAY(o->arena, o->n + 1, uint32_t);
    uint32_t n = 0;
    for (uint32_t i = 0; i < nop; i++)
        if (o->block[i]) {
            o->block[i] = n;
            o->start[n++] = i;
        }
    o->start[n] = nop;
}

static void add_edge(struct order *o, uint32_t op)
{
    *VEC_PUSH(o->arena, &o->succ) = o->block[op];
}

static void find_edges(struct order *o)
{
    const struct dec *dc = o->dc;
    o->edge = ARENA_ARRAY(o->arena, o->n + 1, uint32_t);
    for (uint32_t b = 0; b < o->n; b++) {
        const uint32_t last = o->start[b + 1] - 1;
        const struct sim_op *op = &dc->op.v[last];
        o->edge[b] = (uint32_t)o->succ.n;
        if (is(dc, last, SIM_H_BRA))
            add_edge(o, op->target);
        if (is(dc, last, SIM_H_BRX))
            for (uint32_t k = 0; k < dc->code->targets[op->target].n; k++)
                add_edge(o, dc->code->targets[op->target].op[k]);
        if ((!ends_block(dc, last) || op->guard != SIM_NO_GUARD) && b + 1 < o->n)
            add_edge(o, last + 1);
    }
    o->edge[o->n] = (uint32_t)o->succ.n;
    /* the last in the text is visited first, so that the first comes first when the search's order
     * is reversed */
    for (uint32_t b = 0; b < o->n; b++)
        for (uint32_t i = o->edge[b]; i < o->edge[b + 1]; i++)
            for (uint32_t k = i; k > o->edge[b] && o->succ.v[k] > o->succ.v[k - 1]; k--) {
                const uint32_t t = o->succ.v[k];
                o->succ.v[k] = o->succ.v[k - 1];
                o->succ.v[k - 1] = t;
            }
}

/* ---- components ------------------------------------------------------------------------------ */

static void enter(struct order *o, uint32_t b, uint32_t *depth)
{
    o->index[b] = o->low[b] = ++o->time;
    o->stack[o->nstack++] = b;
    o->frame[(*depth)++] = (struct frame){b, o->edge[b]};
}

/* The component whose first block is b is complete: it goes in front of what is out already, that
 * block first. */
static void leave(struct order *o, uint32_t b, const struct range *r)
{
    const uint32_t end = o->nout;
    bool loop = false;
    for (uint32_t c = NONE; c != b;) {
        c = o->stack[--o->nstack];
        o->index[c] = DONE;
        o->out[--o->nout] = c;
    }
    for (uint32_t i = o->edge[b]; i < o->edge[b + 1]; i++)
        loop |= o->succ.v[i] == b;
    if (end - o->nout > 1 || loop)
        o->tail[b] = end;
    if (end - o->nout > 1 && r->depth < DEEPEST)
        *VEC_PUSH(o->arena, &o->ranges) = (struct range){o->nout + 1, end, b, r->depth + 1};
}

static void search(struct order *o, uint32_t root, uint32_t set, const struct range *r)
{
    uint32_t depth = 0;
    if (o->set[root] != set || o->index[root])
        return;
    enter(o, root, &depth);
    while (depth) {
        struct frame *f = &o->frame[depth - 1];
        const uint32_t b = f->block;
        if (f->next < o->edge[b + 1]) {
            const uint32_t s = o->succ.v[f->next++];
            if (o->set[s] != set || o->index[s] == DONE)
                continue;
            if (!o->index[s])
                enter(o, s, &depth);
            else if (o->index[s] < o->low[b])
                o->low[b] = o->index[s];
            continue;
        }
        depth--;
        if (depth && o->low[b] < o->low[o->frame[depth - 1].block])
            o->low[o->frame[depth - 1].block] = o->low[b];
        if (o->low[b] == o->index[b])
            leave(o, b, r);
    }
}

static void order_range(struct order *o, const struct range r, uint32_t set)
{
    for (uint32_t i = r.from; i < r.to; i++) {
        o->set[o->order[i]] = set;
        o->index[o->order[i]] = 0;
    }
    o->nout = r.to;
    if (r.head == NONE)
        search(o, 0, set, &r);
    else
        for (uint32_t i = o->edge[r.head]; i < o->edge[r.head + 1]; i++)
            search(o, o->succ.v[i], set, &r);
    for (uint32_t i = r.to; i-- > r.from;) /* what nothing leads to */
        search(o, o->order[i], set, &r);
    memcpy(o->order + r.from, o->out + r.from, (r.to - r.from) * sizeof *o->order);
}

static void order_blocks(struct order *o)
{
    const uint32_t n = o->n;
    uint32_t **const by_block[] = {&o->order, &o->tail,  &o->set, &o->index,
                                   &o->low,   &o->stack, &o->out};
    for (size_t i = 0; i < sizeof by_block / sizeof *by_block; i++)
        *by_block[i] = ARENA_ARRAY(o->arena, n, uint32_t);
    o->frame = ARENA_ARRAY(o->arena, n, struct frame);
    for (uint32_t b = 0; b < n; b++)
        o->order[b] = b;
    *VEC_PUSH(o->arena, &o->ranges) = (struct range){0, n, NONE, 0};
    for (uint32_t set = 1; set <= o->ranges.n; set++)
        order_range(o, o->ranges.v[set - 1], set);
}

/* ---- records --------------------------------------------------------------------------------- */

/* A branch back, to a loop that may wait for other threads, costs more fuel. */
static void mark_branch(const struct order *o, struct sim_op *op, uint32_t at, uint32_t to,
                        const uint32_t *polls)
{
    const struct sim_code *code = o->dc->code;
    const uint32_t first = code->rank[to] / 2, here = code->rank[at] / 2;
    const uint32_t last = code->late[to] ? code->late[to] / 2 : here;
    if (first <= here && polls[(last > here ? last : here) + 1] != polls[first])
        op->more = SIM_POLL;
}

static void mark_branches(const struct order *o, const uint32_t *polls)
{
    const struct dec *dc = o->dc;
    for (uint32_t i = 0; i < dc->op.n; i++) {
        struct sim_op *op = &dc->op.v[i];
        if (is(dc, i, SIM_H_BRA))
            mark_branch(o, op, i, op->target, polls);
        if (is(dc, i, SIM_H_BRX))
            for (uint32_t k = 0; k < dc->code->targets[op->target].n; k++)
                mark_branch(o, op, i, dc->code->targets[op->target].op[k], polls);
    }
}

void dec_order(struct dec *dc)
{
    const uint32_t nop = (uint32_t)dc->op.n;
    struct order o = {.arena = dc->in->arena, .dc = dc};
    uint32_t *rank = ARENA_ARRAY(o.arena, nop, uint32_t);
    uint32_t *late = ARENA_ARRAY(o.arena, nop, uint32_t);
    uint32_t *polls = ARENA_ARRAY(o.arena, nop + 1, uint32_t); /* by place: those before it */
    find_blocks(&o);
    find_edges(&o);
    order_blocks(&o);
    uint32_t *begin = ARENA_ARRAY(o.arena, o.n + 1, uint32_t); /* places of the ordered blocks */
    uint32_t place = 0;
    for (uint32_t i = 0; i < o.n; i++) {
        const uint32_t b = o.order[i];
        begin[i] = place;
        for (uint32_t k = o.start[b]; k < o.start[b + 1]; k++, place++) {
            rank[k] = 2 * place;
            polls[place + 1] = polls[place] + dc->polls.v[k];
        }
    }
    begin[o.n] = place;
    for (uint32_t b = 0; b < o.n; b++)
        if (o.tail[b])
            late[o.start[b]] = 2 * begin[o.tail[b]] - 1;
    dc->code->rank = rank;
    dc->code->late = late;
    mark_branches(&o, polls);
}
