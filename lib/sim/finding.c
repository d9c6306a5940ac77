/* Faults and findings in parts, for programs and for suppressions. */
#include <config.h>

#include "sim/check.h"
#include "sim/report.h"

/* ---- kinds ----------------------------------------------------------------------------------- */

const char *const device_fault_kind[] = {"out-of-bounds",  "use-after-free", "bad-free",
                                         "stack-overflow", "read-only",      "misaligned",
                                         "wrong-space",    "trap",           "assert",
                                         "deadlock",       "livelock",       "limit",
                                         "interrupted",    "bad-barrier",    "barrier-use",
                                         "bad-branch",     "warp-apart",     "bad-copy",
                                         "bad-mbarrier",   "bad-wgmma",      "too-few-registers",
                                         "bad-tensor-map", "no-memory",      NULL};

static const char *fault_kind(const struct sim_launch *l, const struct sim_fault *f)
{
    switch (f->kind) {
    case SIM_F_BOUNDS:
        return sim_over_stack(l, f)   ? "stack-overflow"
               : sim_after_free(l, f) ? "use-after-free"
                                      : "out-of-bounds";
    case SIM_F_FREE: return "bad-free";
    case SIM_F_READONLY: return "read-only";
    case SIM_F_ALIGN: return "misaligned";
    case SIM_F_SPACE:
    case SIM_F_REMOTE: return "wrong-space";
    case SIM_F_TRAP: return "trap";
    case SIM_F_ASSERT: return "assert";
    case SIM_F_DEADLOCK: return "deadlock";
    case SIM_F_LIVELOCK: return "livelock";
    case SIM_F_LIMIT:
    case SIM_F_TOTAL: return "limit";
    case SIM_F_INTERRUPTED: return "interrupted";
    case SIM_F_BARRIER: return "bad-barrier";
    case SIM_F_COUNT:
    case SIM_F_TWICE: return "barrier-use";
    case SIM_F_INDEX: return "bad-branch";
    case SIM_F_APART: return "warp-apart";
    case SIM_F_SIZE:
    case SIM_F_BULK:
    case SIM_F_COLUMN:
    case SIM_F_START:
    case SIM_F_RANKS: return "bad-copy";
    case SIM_F_MBARRIER: return "bad-mbarrier";
    case SIM_F_WGMMA: return "bad-wgmma";
    case SIM_F_REGISTERS: return "too-few-registers";
    case SIM_F_TENSOR: return "bad-tensor-map";
    case SIM_F_MEMORY: return "no-memory";
    case SIM_F_ABANDONED:
    case SIM_NO_FAULT: break;
    }
    return NULL;
}

/* In the order of enum check_finding_kind; of CHECK_F_AGENT it depends. */
static const char *const finding_kind[] = {
    [CHECK_F_RACE] = "race",
    [CHECK_F_SCOPE] = "race-scope",
    [CHECK_F_INIT] = "uninitialised",
    [CHECK_F_DIVERGED] = "barrier-diverged",
    [CHECK_F_EXITED] = "barrier-exited",
    [CHECK_F_MIXED] = "barrier-two-places",
    [CHECK_F_AGAIN] = "barrier-again",
    [CHECK_F_OUTSIDE] = "mask-without-lane",
    [CHECK_F_SOURCE] = "shuffle-source",
    [CHECK_F_FLIGHT] = "copy-in-flight",
    [CHECK_F_LANDED] = "copy-without-barrier",
    [CHECK_F_CHANGED] = "copy-source-changed",
    [CHECK_F_AGENT] = "async-race",
    [CHECK_F_PROXY] = "proxy-fence",
    [CHECK_F_LAYOUT] = "wgmma-swizzle",
    [CHECK_F_PHASE] = "mbarrier-phase",
    [CHECK_F_MADE] = "mbarrier-init",
    [CHECK_F_UNFENCED] = "mbarrier-init-fence",
    [CHECK_F_IN_USE] = "mbarrier-inval",
    [CHECK_F_OVER] = "mbarrier-overwritten",
    [CHECK_F_DROPPED] = "copy-dropped",
    [CHECK_F_LEFT] = "exit-in-flight",
    [CHECK_F_GONE] = "block-exited",
    [CHECK_F_REGISTER] = "wgmma-register",
    [CHECK_F_MAP] = "tensormap-fence",
    [CHECK_F_WGFENCE] = "wgmma-fence",
};

const char *const device_finding_kind[] = {"race",
                                           "race-scope",
                                           "uninitialised",
                                           "barrier-diverged",
                                           "barrier-exited",
                                           "barrier-two-places",
                                           "barrier-again",
                                           "mask-without-lane",
                                           "shuffle-source",
                                           "copy-in-flight",
                                           "copy-without-barrier",
                                           "copy-source-changed",
                                           "async-race",
                                           "async-race-scope",
                                           "wgmma-in-flight",
                                           "proxy-fence",
                                           "wgmma-swizzle",
                                           "mbarrier-phase",
                                           "mbarrier-init",
                                           "mbarrier-init-fence",
                                           "mbarrier-inval",
                                           "mbarrier-overwritten",
                                           "copy-dropped",
                                           "exit-in-flight",
                                           "block-exited",
                                           "wgmma-register",
                                           "tensormap-fence",
                                           "wgmma-fence",
                                           "leak",
                                           NULL};

static const char *kind_of(const struct check_finding *f)
{
    if (f->kind != CHECK_F_AGENT)
        return finding_kind[f->kind];
    switch ((enum check_wait)f->mask) {
    case CHECK_W_ORDER: return "async-race";
    case CHECK_W_SCOPE: return "async-race-scope";
    case CHECK_W_WGMMA: return "wgmma-in-flight";
    case CHECK_W_PHASE:
    case CHECK_W_READ:
    case CHECK_W_GROUP: break;
    }
    return "copy-in-flight";
}

/* Are they about barriers and the lanes that take part, not about memory? */
static bool is_sync(const struct check_finding *f)
{
    switch (f->kind) {
    case CHECK_F_DIVERGED:
    case CHECK_F_EXITED:
    case CHECK_F_MIXED:
    case CHECK_F_AGAIN:
    case CHECK_F_OUTSIDE:
    case CHECK_F_SOURCE: return true;
    default: return false;
    }
}

static const char *check_of(const struct check_finding *f)
{
    const bool race = f->kind == CHECK_F_RACE || f->kind == CHECK_F_SCOPE;
    return race ? "race" : f->kind == CHECK_F_INIT ? "init" : is_sync(f) ? "sync" : "async";
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void coordinates(const struct device_dim *n, uint64_t i, uint64_t to[3])
{
    to[0] = i % n->x;
    to[1] = i / n->x % n->y;
    to[2] = i / n->x / n->y;
}

static struct finding_side side_of(const struct sim_launch *l, const struct check_side *s,
                                   struct arena *a)
{
    struct finding_side side = {.has_block = true, .has_thread = true};
    coordinates(&l->what->grid, s->block, side.block);
    coordinates(&l->what->block, s->thread, side.thread);
    side.span = sim_span_of(l, s->op);
    side.source = sim_sources(l, a, s->op, &side.nsource);
    return side;
}

/* What the record does to memory. */
static const char *access_of(const struct sim_launch *l, uint32_t op)
{
    switch ((enum check_class)l->check->op[op].kind) {
    case CHECK_LOAD: return "load";
    case CHECK_STORE: return "store";
    case CHECK_ATOMIC: return "atomic";
    case CHECK_COPY:
    case CHECK_BRINGS:
    case CHECK_SENDS: return "copy";
    case CHECK_WGMMA: return "wgmma";
    case CHECK_MBAR: return "mbarrier";
    default: return NULL;
    }
}

static void put_place(const struct sim_launch *l, struct finding *to, unsigned space,
                      uint64_t address, const struct ptx_var *var, struct arena *a)
{
    const struct sim_where w = sim_place_of(l, space, address, var);
    to->space = w.space;
    to->address = w.address;
    to->buffer = w.buffer ? arena_strdup(a, w.buffer) : NULL;
    to->place = arena_strdup(a, sim_place_text(l, space, address, var));
}

/* Is there an other side, and not the same again? */
static bool has_other(const struct check_finding *f)
{
    switch (f->kind) {
    case CHECK_F_AGAIN:
    case CHECK_F_OUTSIDE: return false;
    case CHECK_F_EXITED:
    case CHECK_F_RACE:
    case CHECK_F_SCOPE: return true;
    default:
        return f->other.op != f->at.op || f->other.thread != f->at.thread ||
               f->other.block != f->at.block;
    }
}

static bool has_place(const struct check_finding *f)
{
    return !is_sync(f) && f->kind != CHECK_F_REGISTER && f->kind != CHECK_F_WGFENCE &&
           f->kind != CHECK_F_LEFT && f->kind != CHECK_F_GONE;
}

struct finding sim_finding_of(const struct sim_launch *l, const struct check_finding *f,
                              struct arena *a)
{
    struct finding to = {.kind = kind_of(f),
                         .check = check_of(f),
                         .entry = arena_strdup(a, l->what->entry),
                         .two = has_other(f),
                         .bytes = f->bytes,
                         .count = f->count,
                         .blocks = f->blocks};
    to.at = side_of(l, &f->at, a);
    to.at.access = access_of(l, f->at.op);
    if (to.two) {
        to.other = side_of(l, &f->other, a);
        to.other.access = access_of(l, f->other.op);
    }
    if (f->kind == CHECK_F_EXITED) { /* who has exited did so nowhere in particular */
        to.other.span = SPAN_NONE;
        to.other.nsource = 0;
    }
    if (has_place(f))
        put_place(l, &to, f->space, f->address, NULL, a);
    return to;
}

/* Does the fault belong to one thread at one instruction? */
static bool of_thread(const struct sim_fault *f)
{
    switch (f->kind) {
    case SIM_F_DEADLOCK:
    case SIM_F_LIVELOCK:
    case SIM_F_LIMIT:
    case SIM_F_TOTAL:
    case SIM_F_INTERRUPTED:
    case SIM_F_MEMORY:
    case SIM_F_ABANDONED:
    case SIM_NO_FAULT: return false;
    default: return true;
    }
}

static bool of_place(const struct sim_fault *f)
{
    return f->kind == SIM_F_BOUNDS || f->kind == SIM_F_READONLY || f->kind == SIM_F_ALIGN ||
           f->kind == SIM_F_SPACE || f->kind == SIM_F_REMOTE || f->kind == SIM_F_TENSOR;
}

void sim_explain_fault(const struct sim_launch *l, const struct sim_fault *f, struct diags *d,
                       size_t i)
{
    struct arena *a = d->arena;
    struct finding to = {.kind = fault_kind(l, f), .check = "fault"};
    if (!to.kind)
        return;
    to.entry = arena_strdup(a, l->what->entry);
    if (of_thread(f)) {
        const struct check_side who = {f->op, f->warp * SIM_LANES + f->lane, f->block};
        to.at = side_of(l, &who, a);
    } else if (f->kind == SIM_F_DEADLOCK || f->kind == SIM_F_LIVELOCK || f->kind == SIM_F_LIMIT) {
        to.at.has_block = true;
        coordinates(&l->what->grid, f->block, to.at.block);
    }
    if (!of_thread(f) && f->stands.n) { /* the first of those that the notes have */
        to.at.span = sim_span_of(l, f->stands.v[0].op);
        to.at.source = sim_sources(l, a, f->stands.v[0].op, &to.at.nsource);
    }
    if (of_place(f))
        put_place(l, &to, f->space, f->address, f->var, a);
    if (f->kind != SIM_F_TENSOR && of_place(f)) {
        to.at.access = f->store ? "store" : "load";
        to.bytes = f->bytes;
    }
    if (f->kind == SIM_F_MBARRIER)
        put_place(l, &to, SIM_IN_SHARED, f->mbar.offset, NULL, a);
    diags_explain(d, i, &to);
}
