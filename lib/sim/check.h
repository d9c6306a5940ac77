/* The sanitizer: what loads, stores, atomics, barriers and fences mean under the PTX memory model,
 * whatever order the simulator happens to run them in. Private to lib/sim.
 *
 * A launch under checks has its records instrumented: the handlers of memory and ordering
 * instructions are replaced by functions of check.c, which look at shadow state and then call the
 * handler. A launch without checks has no part in it, and pays nothing.
 *
 * - Order (check_order.c). One clock for the device ticks at every event that orders accesses. An
 *   access is stamped with the block, the thread and the clock. Of another access a thread has to
 *   know whether it happened before: for the threads of its own block that is "all up to clock
 *   base" after a barrier of the block, kept finer for warps and lanes; for what it learnt by
 *   acquiring it is a list of such facts (struct check_known).
 * - Shadow (check_shadow.c). Memory that can race has a cell for every granule of it: the last
 *   write, two reads that are as far apart as any two, atomics. Granules are as large as the
 *   smallest access so far. A warp's accesses are looked at together (check_cells.h), those where
 *   something is not plainly in order one by one.
 * - Init (check_init.c). A bit for each byte that may be undefined. What is loaded from such bytes,
 *   or shuffled from lanes that take no part, is followed through registers to where it is used
 *   (check_taint.c).
 * - Symbols (check_symbol.c). Which array an address was made from, found in the code before it
 *   runs.
 * - Sync (check_sync.c). Who comes to a barrier, and where; member masks.
 * - Async (check_async.c). A copy by cp.async is a write that begins when it is issued and ends
 *   when its thread waits for it: until then the cell's write has the clock CHECK_PENDING, which is
 *   not before anything, the thread itself included; then the clock of the wait.
 * - Agents (check_flight.c, check_mbar.c, check_wgmma.c). What a bulk copy, a tensor copy or wgmma
 *   does to memory is done not by the thread that issues it but by an agent beside the threads, and
 *   the access is stamped with that agent and the clock of the issue. A thread knows of it by what
 *   completes it alone: agents of an mbarrier by a wait for its phase, those of a thread's bulk
 *   stores by cp.async.bulk.wait_group, that of a warpgroup by wgmma.wait_group. When the bytes
 *   really move does not matter.
 * - Proxies (check_proxy.c). A write by the generic proxy reaches the async proxy once its thread
 *   has executed fence.proxy.async behind it, and who issues the operation knows of that fence.
 * - Findings (check_find.c) are counted by kind and pair of instructions, and reported when the
 *   launch is over.
 *
 * Checked launches run on one worker thread, so that the findings are the same in every run.
 * Source: PTX ISA, memory consistency model; FastTrack (Flanagan, Freund 2009) for the cells.
 */
#ifndef KAIO_SIM_CHECK_H
#define KAIO_SIM_CHECK_H

#include "sim/check_cells.h"
#include "sim/sim.h"
#include "sim/wgmma.h"

/* ---- who knows what (check_order.c) ---------------------------------------------------------- */

/* All accesses of threads (or other agents) first .. last of a block up to a clock. */
struct check_fact {
    uint32_t block, clock;
    uint16_t first, last;
};

/* What a thread knows to have happened before. Immutable and counted. */
struct check_known {
    uint32_t refs, n;
    uint32_t all; /* everything up to this clock, too */
    uint64_t id;  /* of its own, from 1 */
    struct check_fact fact[];
};

/* What one thread, or all of a block, learnt from others. */
struct check_lists {
    struct check_known *acquired;
    struct check_known *fenced; /* what a relaxed store publishes */
    /* what came from another block by arrivals or waits with scope .cta: that tells what agents
     * have done, and what was read, but not what was written */
    struct check_known *heard;
};

/* What acquiring and fences gave one thread; NULLs for most. */
struct check_thread {
    struct check_lists lists;
    struct check_known *pending;    /* seen by a relaxed load: a fence makes it acquired */
    struct check_known *fenced_cta; /* what a relaxed store publishes to its own block only */
    /* what was learnt last, by id: who polls a location finds the same again and again */
    uint64_t seen_acquired[2], seen_pending[2];
};

struct check_bulk;
struct check_fences;
struct check_wgmma;
enum { CHECK_TAINTS = 32 }; /* registers of a warp with undefined lanes that are kept track of */

/* Lanes of a register that hold an undefined value. */
struct check_taint {
    uint32_t slot, lanes;  /* of the register file */
    uint32_t op;           /* the record that gave it: a load, or a shuffle with */
    uint32_t mask, source; /* its mask and the lane that took no part */
    bool loaded;           /* by a load of so many bytes from so many addresses: */
    uint8_t space, bytes;
    uint64_t address[SIM_LANES];
    uint64_t bits[SIM_LANES]; /* of the value that are undefined; 0: all of them */
};

struct check_warp {
    uint32_t base;   /* each lane knows the others' accesses up to here */
    uint32_t *lanes; /* [i * 32 + j]: what lane i knows of lane j; NULL: nothing beyond base */
    uint32_t holds;  /* lanes whose check_thread is not empty */
    uint32_t ntaint;
    struct check_taint *taint; /* CHECK_TAINTS of them; NULL: there was none yet */
    struct check_bulk *bulk;   /* by lane; NULL: no bulk stores yet */
    struct check_fences *fences;
    struct check_wgmma *wgmma;
};

/* A barrier that some have come to and that is not complete. */
struct check_arrival {
    uint32_t clock[SIM_MAX_WARPS]; /* what those that came know of each warp */
    uint32_t came[SIM_MAX_WARPS];  /* lanes */
    uint32_t waits;                /* warps that wait */
    uint32_t threads;              /* that wait */
    uint32_t op;                   /* the record of the first that came, + 1; 0: none came */
    uint32_t thread, named;        /* who it was, and how many threads it named */
    struct check_lists lists;      /* of all that came */
};

/* ---- shadow ---------------------------------------------------------------------------------- */

/* Agents of a block: its threads, and those beside them. */
enum check_agent {
    CHECK_A_READS = SIM_MAX_THREADS,                      /* + thread: its bulk stores read */
    CHECK_A_WRITES = CHECK_A_READS + SIM_MAX_THREADS,     /* + thread: ... and write */
    CHECK_A_WGMMA = CHECK_A_WRITES + SIM_MAX_THREADS,     /* + warpgroup */
    CHECK_A_MBAR = CHECK_A_WGMMA + SIM_MAX_THREADS / 128, /* + index of an mbarrier of the block */
    CHECK_AGENTS = 1 << (32 - CHECK_OP_BITS),
};
_Static_assert(CHECK_A_MBAR + 512 < CHECK_AGENTS, "room for agents of mbarriers");
enum { CHECK_FAR = 4 }; /* agents that read a cell, kept track of */

/* The further state of a cell that strong stores or atomics went to, or that agents read. */
struct check_more {
    uint32_t since; /* of an earlier use unless it is the shadow's */
    uint32_t from;  /* the block that published last */
    struct check_slot strong[2];
    struct check_slot far[CHECK_FAR]; /* reads by agents: of each the last */
    struct check_known *gpu, *cta;    /* what its value publishes: to all, to the block only */
};

struct check_shadow {
    uint64_t bytes;
    unsigned shift; /* log2 of a granule's bytes */
    uint32_t since; /* accesses up to this clock are settled */
    bool far;       /* agents have read of it */
    struct check_cells cell;
    struct check_more *more;
    uint32_t nmore, cap_more;
    uint8_t *span; /* of 16 bytes each: how a tensor copy swizzled them (sim_flight.span); NULL: no
                      tensor copy has come */
    uint64_t *defined;  /* a bit a byte; NULL: all of it is, or init is not checked */
    uint64_t undefined; /* bytes */
    uint64_t words;     /* that defined has room for */
};

/* ---- the launch ------------------------------------------------------------------------------ */

enum check_class {
    CHECK_OTHER,
    CHECK_LOAD,
    CHECK_STORE,
    CHECK_ATOMIC,
    CHECK_COPY, /* cp.async: writes shared memory, reads global memory */
    CHECK_FENCE,
    CHECK_MEETING, /* lanes of a warp, by a mask */
    CHECK_BRINGS,  /* bulk and tensor copies to shared memory, st.async, red.async */
    CHECK_SENDS,   /* bulk and tensor copies and reductions to global memory */
    CHECK_WGMMA,
    CHECK_MBAR,
    CHECK_PROXY, /* fence.proxy.async, fence.mbarrier_init */
};
enum check_scope { CHECK_CTA = 1, CHECK_GPU };

/* Does a record of that class go on beside its thread? */
static inline bool check_flies(enum check_class kind)
{
    return kind == CHECK_BRINGS || kind == CHECK_SENDS || kind == CHECK_WGMMA;
}

/* What the checks know of a record. */
struct check_op {
    sim_fn fn[2];  /* the handler */
    uint64_t line; /* of the source, with file and column; of PTX without .loc the record */
    uint8_t kind;  /* enum check_class */
    uint8_t scope;
    bool strong, acquire, release;
    bool writes; /* an atomic or a store */
    bool compares;
    bool matrix;     /* ldmatrix, stmatrix: the lanes' addresses are not those of their registers */
    bool ignored;    /* test_wait or try_wait: nothing looks at its result */
    bool tainted;    /* check_taint.c */
    uint8_t use;     /* its enum use */
    uint16_t row;    /* enum sim_handler_id */
    sim_fn next[2];  /* behind it */
    bool wide;       /* a store from 64-bit slots */
    uint8_t element; /* bytes; a vector has several */
    struct sim_buffer *buffer; /* that its last access was in */
    struct check_touch *touch; /* check_wgmma.c; NULL: no register of a wgmma */
    sim_fn past[2];            /* behind that */
    const struct ptx_var
        *var;           /* the shared or local variable whose address it uses, NULL: not known */
    uint64_t low, high; /* its extent */
};

enum check_finding_kind {
    CHECK_F_RACE,
    CHECK_F_SCOPE, /* two strong accesses whose scopes don't hold each other's thread */
    CHECK_F_INIT,
    CHECK_F_DIVERGED, /* a barrier that part of a warp came to */
    CHECK_F_EXITED,   /* a barrier that some threads will never come to: they have exited */
    CHECK_F_MIXED,    /* two barrier instructions met */
    CHECK_F_AGAIN,    /* a barrier that is not complete yet, by a warp that has arrived */
    CHECK_F_OUTSIDE,  /* a lane that its own mask leaves out */
    CHECK_F_SOURCE,   /* a shuffle from a lane that takes no part */
    CHECK_F_FLIGHT,   /* access to the target of a copy in flight; mask: enum check_flight */
    CHECK_F_LANDED,   /* no barrier between the wait for a copy and another thread's load */
    CHECK_F_CHANGED,  /* the source of a copy in flight has been written */
    CHECK_F_AGENT,    /* one of two that are not ordered is an operation beside the threads;
                       * mask: enum check_wait that is missing */
    CHECK_F_PROXY,    /* no fence.proxy.async between a write and an operation of the async proxy */
    CHECK_F_LAYOUT, /* wgmma reads with another swizzle (mask) than the copy wrote with (source) */
    CHECK_F_PHASE,  /* a phase completed although a copy that names the mbarrier had not landed */
    CHECK_F_MADE,   /* use of an mbarrier whose init is not ordered before it */
    CHECK_F_UNFENCED, /* no fence.mbarrier_init between init and a copy that names the mbarrier */
    CHECK_F_IN_USE,   /* mbarrier.inval of one that others may still use */
    CHECK_F_OVER,     /* an ordinary store to an mbarrier */
    CHECK_F_DROPPED,  /* nobody waited for a copy to shared memory before its block was over */
    CHECK_F_LEFT,     /* a block is over while a bulk store or wgmma reads its shared memory */
    CHECK_F_GONE,     /* shared memory of a block that may have exited */
    CHECK_F_REGISTER, /* a register of a wgmma in flight; mask: its group is still open */
    CHECK_F_MAP, /* no fence.proxy.tensormap between a change of a map and a copy by it; mask: there
                  * was a release */
    CHECK_F_WGFENCE, /* no wgmma.fence between access to a register and its wgmma; mask: to any */
};

/* What is missing between an operation beside the threads and another access. */
enum check_wait {
    CHECK_W_ORDER, /* the thread's access comes first, and nothing orders them */
    CHECK_W_SCOPE, /* ... for an arrival had the scope of the block only */
    CHECK_W_PHASE, /* the phase of an mbarrier */
    CHECK_W_READ,  /* cp.async.bulk.wait_group.read */
    CHECK_W_GROUP, /* cp.async.bulk.wait_group */
    CHECK_W_WGMMA, /* wgmma.wait_group */
};

enum check_flight {
    CHECK_UNCOMMITTED = 1, /* the thread's own, in a group that is still open */
    CHECK_OWN,             /* the thread's own */
    CHECK_OTHERS,          /* another thread's */
};

struct check_side {
    uint32_t op, thread;
    uint64_t block;
};

struct check_finding {
    enum check_finding_kind kind;
    struct check_side at, other; /* other: where two are to blame */
    uint64_t count;
    uint64_t address; /* in its space */
    uint8_t space;    /* enum sim_space, never generic */
    uint8_t bytes;
    uint32_t mask, source; /* lanes */
    /* check_find()'s own: blocks in which it occurred, and a bit for each of them */
    uint64_t blocks;
    unsigned char *seen;
    size_t seen_bytes;
};
enum { CHECK_FINDINGS = DEVICE_FINDINGS_MOST };

/* A device's; made by sim_check_new() when it is opened with checks. */
struct check {
    unsigned bits; /* enum device_check */
    uint32_t clock;
    uint32_t floor;  /* the launch began then */
    bool starved;    /* there was no memory for it */
    bool lists;      /* somebody acquired something in this launch */
    bool published;  /* some location in memory has published something, in whatever launch */
    uint32_t words;  /* of sets of registers (check_wgmma.c) */
    bool flies;      /* the code has operations of the async proxy */
    bool told_lines; /* how to get lines of the source into PTX: said once */
    struct {         /* the last arrival; lanes of one instruction share a clock: is_together() */
        uint64_t block;
        uint32_t warp, record, clock;
        uint32_t lanes, left; /* that execute it, that have not arrived */
    } arrival;
    uint64_t nknown; /* struct check_known made */
    /* the last two that were joined, by id, and what came of it: lanes of a warp often ask for the
     * same */
    uint64_t joined[2];
    struct check_known *join;
    unsigned shared_shift;
    struct check_op *op;     /* by record; in the launch's arena */
    struct check_maps *maps; /* check_map.c; NULL: no fences of tensor maps yet */
    const struct sim_launch *launch;
    struct check_finding finding[CHECK_FINDINGS];
    uint32_t nfinding;
    uint64_t rest; /* findings beyond those */
};

/* ---- agents ---------------------------------------------------------------------------------- */

enum { CHECK_GROUPS = 64 }; /* committed groups that are kept track of */

/* Groups that a thread or a warp committed: the clocks at which it did. */
struct check_groups {
    uint32_t n;
    uint32_t clock[CHECK_GROUPS]; /* of group k in [k % CHECK_GROUPS] */
};

/* Bulk stores of a thread. */
struct check_bulk {
    struct check_groups group;
    uint32_t issued, op; /* clock and record of the last; 0: none */
    uint32_t read;       /* what they read up to this clock has been read */
};

/* Proxy fences of a warp: the last of them, and for each of the two spaces what its first lane knew
 * at the last. */
struct check_fences {
    uint32_t n;
    struct {
        uint32_t clock, lanes, spaces; /* 1 << enum sim_space */
    } at[CHECK_GROUPS];
    struct check_view {
        uint32_t clock, lanes; /* 0: there was none */
        uint32_t base, warp;   /* of the block, of the warp */
        uint32_t warps[SIM_MAX_WARPS];
        struct check_known *known[2];
    } last[2]; /* by enum sim_space: global, shared */
};

/* wgmma of a warp. */
struct check_wgmma {
    struct check_groups group;
    bool fenced; /* there was a wgmma.fence */
    uint32_t nflight, cap;
    struct {
        uint32_t op, group;
    } * flight;
    uint64_t *busy, *dirty; /* sets of registers: in flight; accessed since the last fence */
};

enum check_from {
    CHECK_FROM_ALL, /* arrivals with scope .cluster, and those of the object's own block, ... */
    CHECK_FROM_OWN, /* of its own block: for waits with scope .cta */
    CHECK_FROM_ANY, /* of whatever scope; in clusters only */
};

struct check_mbar {
    uint32_t offset;
    bool live;
    bool fenced;              /* its init has reached the async proxy */
    bool narrow;              /* an arrival from another block, or a wait for one, had scope .cta */
    uint32_t flights;         /* operations in flight that complete here */
    uint32_t op, thread;      /* who issued the last */
    uint64_t block;           /* the issuer's */
    struct check_slot init;   /* when it was made */
    struct check_slot use[8]; /* the last of each warp, as far as there is room */
    /* what arrived in the phase that goes on, and what all before brought; by enum check_from */
    struct check_known *phase[3], *done[3];
};

struct check_block {
    uint32_t base; /* the block's threads know each other's accesses up to here */
    uint32_t *
        warps; /* [v * SIM_MAX_WARPS + u]: what warp v knows of warp u; NULL: nothing beyond base */
    struct check_lists lists;    /* by all threads */
    struct check_thread *thread; /* NULL: none needed one */
    struct check_shadow shared, local;
    struct check_arrival barrier[SIM_BARRIERS];
    struct check_arrival cluster; /* at the cluster's, ... */
    struct check_lists met;       /* ... and what came to it last */
    uint32_t exited;              /* threads */
    struct check_mbar *mbar;
    uint32_t nmbar, cap_mbar;
    uint32_t mbar_low, mbar_high;            /* offsets: there are no others */
    struct check_slot remote[SIM_MAX_WARPS]; /* accesses by other blocks of the cluster */
    uint32_t nremote;
    struct check_warp warp[SIM_MAX_WARPS];
};

/* NULL when there is no memory. */
struct check *sim_check_new(unsigned bits);
void sim_check_free(struct check *c);

/* A buffer is made (false: no memory), written by the host at an address in it, released. */
bool sim_check_alloc(struct check *c, struct sim_buffer *b);
void sim_check_written(struct sim_buffer *b, uint64_t address, uint64_t bytes);
/* Bytes at an offset in it are new memory: undefined, and nobody has accessed them. */
void sim_check_fresh(struct sim_buffer *b, uint64_t offset, uint64_t bytes);
void sim_check_release(struct sim_buffer *b);

/* Gives the launch's code its checks. */
void sim_check_instrument(struct check *c, struct sim_launch *l, const struct sim_build *build);
/* Around each launch of it. At the end an error for each finding: false when there was any. */
void sim_check_begin(struct check *c, const struct sim_launch *l);
bool sim_check_end(struct check *c, struct sim_launch *l, struct diags *d);

/* Must the launch run on one thread? */
static inline bool sim_check_alone(const struct check *c)
{
    return c->bits & ~(unsigned)DEVICE_CHECK_MEMORY;
}
/* Of an instrumented record (check.c): its handler; where an access goes, bytes 0: nowhere; those
 * of the lanes whose access is aligned and inside; all that is checked of the access of w->em; does
 * it leave its variable, and is that a fault now. */
struct check_memory;
struct check_access;
const struct sim_op *check_handle(struct sim_warp *w, const struct check_op *o,
                                  const struct sim_op *op);
struct check_memory check_memory_at(const struct sim_warp *w, struct check_op *o, unsigned space,
                                    uint64_t address);
void check_inside(const struct check_memory *m, const struct sim_op *op, uint32_t lanes,
                  const struct check_aim *aim, struct check_access *x);
void check_watch(struct sim_warp *w, struct check_op *o, const struct sim_op *op,
                 const struct check_aim *aim);
bool check_strays(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                  const struct check_aim *aim);
uint32_t check_guarded(const struct sim_warp *w, const struct sim_op *op);

/* Hooks of blocks and barriers, called where b->check is not NULL. */
bool sim_check_block_start(struct sim_block *b);  /* makes b->check; false: no memory */
void sim_check_unit_end(struct sim_block *first); /* of a cluster: its threads have exited; then */
void sim_check_block_end(struct sim_block *b);    /* ... for each block */
void sim_check_block_free(struct sim_block *b);   /* which may have none */
/* Lanes come to barrier id, named with so many threads (0: all); waits: and stay until it is
 * complete. */
void sim_check_arrive(struct sim_warp *w, const struct sim_op *op, uint32_t lanes, uint32_t id,
                      uint32_t threads, bool waits);
void sim_check_complete(struct sim_block *b, uint32_t id);
/* Lanes come to the barrier of their cluster; it is complete, and b is the cluster's first block;
 * lanes go on that have waited for it. */
void sim_check_cluster_arrive(struct sim_warp *w, const struct sim_op *op, uint32_t lanes);
void sim_check_cluster(struct sim_block *b);
void sim_check_cluster_passed(struct sim_warp *w, uint32_t lanes);
/* Lanes have met in bar.warp.sync, each with those that its mask op->e names. */
void sim_check_warp_sync(struct sim_warp *w, const struct sim_op *op, uint32_t lanes);

/* The copies of these lanes have been completed by a wait. */
void sim_check_landed(struct sim_warp *w, const struct sim_copy *copy, uint32_t lanes);

/* Hooks of operations beside the threads, called where the block that executes them has its check.
 *
 * An operation is in flight to f->to (nothing has moved yet); so much of it reads its source or
 * writes its destination now; all of it has, before the mbarrier is told; the cluster has ended,
 * and nobody has waited for it. */
struct sim_flight;
struct sim_piece;
void sim_check_flight_issued(struct sim_warp *w, const struct sim_op *op,
                             const struct sim_flight *f);
/* Before that, where the launch is checked at all: does it leave the shared variable that its
 * address was made from? Then the warp has stopped with the fault. */
bool sim_check_flight_strays(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                             const struct sim_flight *f);
void sim_check_flight_part(const struct sim_flight *f, const struct sim_piece *p, bool reads,
                           bool writes);
void sim_check_flight_done(const struct sim_flight *f, bool reads, bool writes);
void sim_check_flight_dropped(const struct sim_flight *f);
/* cp.async.bulk.commit_group; wait_group op->imm, .read: what it waits for has landed. */
void sim_check_bulk_commit(struct sim_warp *w, const struct sim_op *op, uint32_t lanes);
void sim_check_bulk_waited(struct sim_warp *w, const struct sim_op *op, uint32_t lanes, bool read);

/* An mbarrier of a block is made, is no longer one; an arrival, before it counts; a phase is
 * complete; lanes have learnt by test_wait or try_wait that it is. */
void sim_check_mbar_made(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                         struct sim_block *b, uint32_t offset);
void sim_check_mbar_gone(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                         struct sim_block *b, uint32_t offset);
void sim_check_mbar_arrives(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                            struct sim_block *b, uint32_t offset, uint32_t count);
void sim_check_mbar_phase(struct sim_block *b, uint32_t offset);
void sim_check_mbar_passed(struct sim_warp *w, const struct sim_op *op, uint32_t lanes,
                           struct sim_block *b, uint32_t offset);

/* Tensor maps that a kernel changes (check_map.c). A lane reads or writes the 128 bytes of one by
 * itself; a lane's copy uses the map at an address of global memory; a warp executes
 * fence.proxy.tensormap, .acquire for that address or .release (0).
 */
void sim_check_map_access(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                          unsigned space, uint64_t address, bool writes);
void sim_check_map_used(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                        uint64_t address);
void sim_check_map_fence(struct sim_warp *w, uint64_t address);

/* A warp issues wgmma.mma_async, which reads these n stretches of shared memory for it;
 * wgmma.fence, commit_group, wait_group that returns and leaves so many groups pending. */
void sim_check_wgmma(struct sim_warp *w, const struct sim_op *op, const struct sim_wgmma_reads *r,
                     uint32_t n);
void sim_check_wgmma_fence(struct sim_warp *w);
void sim_check_wgmma_commit(struct sim_warp *w);
void sim_check_wgmma_wait(struct sim_warp *w, uint32_t pending);

/* ---- between the files of the sanitizer ------------------------------------------------------ */

static inline uint32_t check_tick(struct check *c)
{
    /* at its end the clock stands still: everything counts as ordered, nothing is reported
     * wrongly */
    return c->clock < CHECK_PENDING - 1 ? c->clock++ : c->clock;
}
static inline uint32_t check_op_of(const struct check_slot *s)
{
    return s->who & (CHECK_OPS - 1);
}
/* The agent, a thread or another one. */
static inline uint32_t check_thread_of(const struct check_slot *s)
{
    return s->who >> CHECK_OP_BITS;
}
static inline bool check_is_thread(const struct check_slot *s)
{
    return s->who < CHECK_THREADS_END;
}
static inline struct check_slot check_slot_of(uint32_t block, uint32_t clock, uint32_t agent,
                                              uint32_t op)
{
    return (struct check_slot){block, clock, agent << CHECK_OP_BITS | op};
}

/* Lists (check_known.c); NULL is the empty one. When there is no memory c is starved, and they know
 * too much or too little. */
struct check_known *check_known_ref(struct check_known *k);
void check_known_drop(struct check_known *k);
/* Makes a list of n facts in any order, which it sorts. */
struct check_known *check_known_new(struct check *c, struct check_fact *fact, uint32_t n);
/* Makes a list of all of a, whose reference it takes, and all of b. */
struct check_known *check_known_join(struct check *c, struct check_known *a, struct check_known *b);
/* The part of a list that is about one block. */
struct check_known *check_known_of_block(struct check *c, const struct check_known *k,
                                         uint32_t block);
void check_known_end(struct check *c); /* of a launch */
bool check_known_has(const struct check_known *k, const struct check_slot *s);

/* Did the access happen before what the lane does now? */
bool check_ordered(const struct sim_warp *w, uint32_t lane, const struct check_slot *s);
/* Has the lane heard of an access, whatever the scope of the arrivals and waits between them? */
bool check_heard(const struct sim_warp *w, uint32_t lane, const struct check_slot *s);
/* check_ordered() of any lane of the warp. */
bool check_ordered_any(const struct sim_warp *w, const struct check_slot *s);
/* Lanes learn what an agent of a block did up to a clock; what a list says. */
void check_learn_fact(struct sim_warp *w, uint32_t lanes, const struct check_fact *fact);
void check_learn(struct sim_warp *w, uint32_t lanes, struct check_known *k, bool acquires);
void check_hear(struct sim_warp *w, uint32_t lanes, struct check_known *k);
/* The list of what a lane has heard of; with a reference. */
struct check_known *check_hearsay(const struct sim_warp *w, uint32_t lane);
/* The list that an arrival of a lane publishes: everything that the lane knows, if it releases. */
struct check_known *check_released(struct sim_warp *w, uint32_t lane, const struct check_op *o,
                                   uint32_t record);
void check_fence(struct sim_warp *w, uint32_t lanes, unsigned scope, bool acquires, bool releases);
/* Can a strong access publish something, or find something published? Then: it has been done, by a
 * lane, to the location of a cell. */
bool check_tells(const struct sim_warp *w, const struct check_op *o);
void check_publish(struct sim_warp *w, uint32_t lane, const struct check_op *o, bool joins,
                   struct check_more *m);
void check_observe(struct sim_warp *w, uint32_t lane, const struct check_op *o,
                   const struct check_more *m);
void check_unpublish(struct check_more *m);
void check_arrive_order(struct sim_warp *w, uint32_t lanes, struct check_arrival *a, bool waits);
void check_complete_order(struct sim_block *b, struct check_arrival *a);
void check_order_start(struct sim_block *b);
void check_order_end(struct sim_block *b);

/* A stretch of memory and its shadow. */
struct check_memory {
    struct check_shadow *shadow;
    const unsigned char *host;
    uint64_t bytes;
    uint64_t origin; /* the address where it starts */
    unsigned space;  /* enum sim_space, not generic */
};

/* An access of lanes to it. */
struct check_access {
    const struct check_memory *m;
    uint32_t lanes;
    bool row, one;      /* as struct check_aim has it, of all these lanes */
    const uint64_t *at; /* addresses, by lane */
    uint64_t origin, step;
};
static inline uint64_t check_offset(const struct check_access *x, uint32_t lane)
{
    return x->at[lane] - x->origin + lane * x->step;
}

/* An access of so many bytes that a lane makes an agent do. */
struct check_far {
    struct sim_warp *w;
    const struct sim_op *op;  /* the record that issued it */
    uint32_t lane;            /* who issued it */
    bool warp;                /* all of its warp did */
    bool generic;             /* it does not go through the async proxy */
    struct check_slot slot;   /* the agent's access */
    struct check_slot proved; /* the last access that it was found to come after */
};
enum check_far_access { CHECK_FAR_READ, CHECK_FAR_WRITE, CHECK_FAR_FOLD };
void check_far(struct check_far *f, const struct check_memory *m, uint64_t offset, uint64_t bytes,
               enum check_far_access what);
/* The thread that an agent's access goes back to. */
struct check_side check_side_of(const struct sim_block *near, const struct check_slot *s);

/* Proxies (check_proxy.c): lanes have fenced; has the write of a thread that a lane knows of
 * reached the async proxy for it? */
void check_proxy_fence(struct sim_warp *w, const struct sim_op *op, uint32_t lanes);
bool check_proxy_reached(const struct sim_warp *w, uint32_t lane, const struct check_slot *s,
                         unsigned space);
void check_fences_free(struct check_fences *f);
void check_maps_end(struct check *c); /* of a launch */

/* mbarriers (check_mbar.c). A copy that a lane issues, by the async proxy, names one; NULL: there
 * is none. The agent of what completes there. A block of the cluster makes an access to the shared
 * memory of another. */
struct check_mbar *check_mbar_named(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                                    struct sim_block *b, uint32_t offset, bool async);
struct check_mbar *check_mbar_at(const struct sim_block *b, uint32_t offset);
uint32_t check_mbar_agent(const struct sim_block *b, const struct check_mbar *m);
void check_remote(struct sim_warp *w, struct sim_block *b, const struct check_slot *s);
void check_remote_end(const struct sim_block *b);
void check_mbars_free(struct sim_block *b);
/* Lanes store to shared memory of a block. */
void check_over_mbar(struct sim_warp *w, const struct sim_op *op, const struct sim_block *b,
                     const struct check_access *x);
/* Which waits nobody looks at the result of. */
void check_ignored(struct check *c, const struct sim_code *code);

/* Did somebody in another block arrive with scope .cta only, where w's block has mbarriers? */
bool check_narrow(const struct sim_warp *w);
/* So many bytes of shared memory were written with that span (16, 32, 64, 128; 0: not by a tensor
 * copy). */
void check_span(struct check_shadow *s, uint64_t offset, uint64_t bytes, uint8_t span);

/* Commits a group. check_committed(): the clock up to which those groups are that a wait which
 * leaves so many pending is for; 0: none. */
void check_commit(struct check *c, struct check_groups *g);
uint32_t check_committed(const struct check_groups *g, uint32_t pending);
void check_flights_end(const struct sim_block *b);

/* wgmma (check_wgmma.c): which records touch registers of one. */
void check_registers(struct check *c, const struct sim_code *code);
void check_wgmma_left(const struct sim_block *b); /* in flight when the block is over */
void check_wgmma_end(struct sim_block *b);

/* Forgets all accesses to so many bytes. */
void check_wipe(struct check_shadow *s, uint64_t offset, uint64_t bytes);
/* Accesses that are aligned and inside the memory. */
void check_races(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                 const struct check_access *x);
/* Lanes issue a copy: they write what is there from now on; a lane reads so many bytes of another
 * memory. */
void check_copy_begins(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                       const struct check_access *x);
void check_copy_reads(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                      const struct check_memory *m, uint32_t lane, uint64_t from, uint32_t bytes);
/* The copy of a thread, by that record, has ended. */
void check_copy_ends(struct check *c, struct check_shadow *s, struct check_side who,
                     uint64_t offset, uint32_t bytes);
/* The last write to a byte; false: not known. */
bool check_last_write(const struct check_shadow *s, uint64_t offset, struct check_slot *last);
/* Copies that were not waited for end with the block. */
void check_abandon_copies(struct sim_warp *w);
/* How a thread stands to a copy in flight. */
enum check_flight check_flight_of(const struct sim_warp *w, uint32_t lane,
                                  const struct check_slot *copy);
/* A lane is about to issue a copy; all lanes are, of rows of matrices. */
const struct sim_op *check_on_copy(struct sim_warp *w, const struct sim_op *op);
const struct sim_op *check_on_matrix(struct sim_warp *w, const struct sim_op *op);
/* The cell's further state for the location at an offset, or NULL. */
struct check_more *check_more_at(struct check_shadow *s, uint64_t offset);
void check_shadow_free(struct check_shadow *s);

/* Makes so many bytes undefined. False: no memory. */
bool check_define_none(struct check_shadow *s, uint64_t bytes);
void check_define(struct check_shadow *s, uint64_t offset, uint64_t bytes);
void check_undefine(struct check_shadow *s, uint64_t offset, uint64_t bytes);
/* Makes *offset the first undefined byte of so many from there on; false: there is none. */
bool check_first_undefined(const struct check_shadow *s, uint64_t *offset, uint64_t bytes);
void check_loads(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                 const struct check_access *x);
void check_matrix_loads(struct sim_warp *w, const struct sim_op *op, const struct check_access *x);
/* What is stored becomes defined; of values that are not, in local memory, it becomes undefined. */
void check_stores(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                  const struct check_access *x);
/* The bits of a lane's value in a register slot that are undefined; and the bytes none of whose
 * bits is defined, bit by bit: memory is followed by bytes. */
uint64_t check_undefined_bits(struct sim_warp *w, uint32_t slot, uint32_t lane);
uint8_t check_tainted(struct sim_warp *w, uint32_t slot, uint32_t lane);
/* Those of the result that a lane is about to compute (check_bits.c); false: not known, so all. */
bool check_result_bits(struct sim_warp *w, const struct sim_op *op, uint16_t row, uint32_t lane,
                       uint64_t *out);
/* Bytes of one stretch become defined where those of another are. */
void check_copy_defined(struct check_shadow *s, uint64_t offset, const struct check_shadow *from,
                        uint64_t at, uint64_t bytes);

/* Counts it, with others of its kind and instructions. */
void check_find(struct check *c, const struct check_finding *f);
/* Forgets all that were found. */
void check_forget(struct check *c);
/* Adds an error for each finding that is not suppressed and a summary; gives how many those are.
 * For one that agents have part in. */
size_t check_report(struct sim_launch *l, struct diags *d);
void check_tell(struct sim_launch *l, const struct check_finding *f, struct diags *d);
/* "; 7 such accesses in all, in 2 blocks"; "" of one that occurred once. */
const char *check_count_text(const struct sim_launch *l, const struct check_finding *f,
                             const char *what);
/* Lanes are about to execute shfl.sync or the like with the masks in op->e. */
void check_masks(struct sim_warp *w, const struct sim_op *op, uint32_t lanes);
/* Which records see values that a shuffle may have left undefined (before they are instrumented);
 * and the instrumenting, after the rest. */
void check_taints(struct check *c, const struct sim_code *code, const struct sim_build *build);
void check_instrument_taints(struct check *c, const struct sim_code *code);
/* Some lanes of a slot become undefined, as t says. */
void check_taint(struct sim_warp *w, uint32_t slot, const struct check_taint *t);

/* Which variable's address each shared or local access starts from, where that can be known
 * (check_symbol.c). */
void check_symbols(struct check *c, const struct sim_code *code);

#endif
