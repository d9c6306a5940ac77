/* What a fault says. */
#include <config.h>

#include <inttypes.h>

#include "sim/heap.h"
#include "sim/mbarrier.h"
#include "sim/report.h"
#include "sim/wgmma.h"
#include "sim/tensor.h"

static void note_thread(struct sim_launch *l, const struct sim_fault *f, struct diags *d)
{
    diag_note(d, SPAN_NONE, "%s", sim_thread_text(l, f->block, f->warp * SIM_LANES + f->lane));
}

const struct sim_symbol *sim_over_stack(const struct sim_launch *l, const struct sim_fault *f)
{
    const bool local = f->kind == SIM_F_BOUNDS && f->space == SIM_IN_LOCAL;
    for (size_t i = 0; local && i < l->code->vars.list.n; i++) {
        const struct sim_symbol *s = &l->code->vars.list.v[i];
        if (strcmp(s->var->name, SIM_STACK) == 0 && f->address >= s->address &&
            f->address + f->bytes > s->address + ptx_var_bytes(s->var))
            return s;
    }
    return NULL;
}

bool sim_after_free(const struct sim_launch *l, const struct sim_fault *f)
{
    const bool global = f->space == SIM_IN_GLOBAL || f->space == SIM_IN_GENERIC;
    const struct sim_buffer *b =
        f->kind == SIM_F_BOUNDS && global ? sim_mem_near(l->memory, f->address) : NULL;
    if (!b || !b->heap)
        return b && b->released;
    const uint64_t off = f->address - b->base;
    const struct sim_chunk *p = sim_heap_near(b->heap, off);
    return p && !p->live && off - p->offset < p->bytes;
}

static void report_access(struct sim_launch *l, const struct sim_fault *f, struct diags *d)
{
    const struct sim_symbol *stack = sim_over_stack(l, f);
    if (stack) {
        diag_error(d, sim_span_of(l, f->op),
                   "kernel '%s': calls go too deep: a thread's stack has %" PRIu64 " bytes",
                   l->what->entry, ptx_var_bytes(stack->var));
        note_thread(l, f, d);
        sim_note_source(l, f->op, d);
        return;
    }
    const char *why = sim_after_free(l, f)        ? ", which was released"
                      : f->kind == SIM_F_READONLY ? ", which is read-only"
                      : f->kind == SIM_F_ALIGN    ? ", which is misaligned"
                      : f->kind == SIM_F_SPACE    ? ", which is not in shared memory"
                      : f->kind == SIM_F_REMOTE   ? ", and it must be in the thread's own block"
                                                  : "";
    diag_error(d, sim_span_of(l, f->op), "kernel '%s': %s of %u bytes at %s%s", l->what->entry,
               f->store ? "store" : "load", f->bytes,
               sim_place_text(l, f->space, f->address, f->var), why);
    note_thread(l, f, d);
    if (f->kind == SIM_F_ALIGN)
        diag_note(d, SPAN_NONE, "address 0x%" PRIx64 " is not a multiple of %u", f->address,
                  f->bytes);
    else
        diag_note(d, SPAN_NONE, "address 0x%" PRIx64, f->address);
    sim_heap_note(l, f->address, d);
    sim_note_source(l, f->op, d);
}

/* "lanes 0-15,31" */
static const char *set_text(struct arena *a, const char *what, uint32_t set)
{
    struct buf b = buf_in(a);
    buf_printf(&b, "%s%s ", what, set & (set - 1) ? "s" : "");
    for (unsigned first = 0; first < 32; first++) {
        unsigned last = first;
        if (!(set >> first & 1))
            continue;
        while (last + 1 < 32 && set >> (last + 1) & 1)
            last++;
        buf_printf(&b, first == last ? "%s%u" : "%s%u-%u", set & ((1u << first) - 1) ? "," : "",
                   first, last);
        first = last;
    }
    return buf_text(&b);
}
_Static_assert(SIM_LANES <= 32 && SIM_MAX_WARPS <= 32, "a set is a word");

static const char *lanes_text(struct arena *a, uint32_t mask)
{
    return set_text(a, "lane", mask);
}

/* "2 of 3 arrivals and 4096 bytes" */
static const char *missing_text(struct arena *a, const struct sim_stand *s)
{
    struct buf b = buf_in(a);
    if (s->came)
        buf_printf(&b, "%u of %u arrivals", s->came, s->wanted);
    if (s->came && s->bytes)
        buf_printf(&b, " and ");
    if (s->bytes > 0)
        buf_printf(&b, "%d bytes", s->bytes);
    if (s->bytes < 0)
        buf_printf(&b, "mbarrier.expect_tx of %d bytes that have come", -s->bytes);
    return buf_text(&b);
}

static const char *mbar_text(const struct sim_launch *l, const struct sim_stand *s)
{
    return arena_printf(
        l->arena, "wait for the phase of parity %u of the mbarrier at %s, which lacks %s",
        s->parity, sim_place_text(l, SIM_IN_SHARED, s->offset, NULL), missing_text(l->arena, s));
}

static const char *waits_text(const struct sim_launch *l, const struct sim_stand *s)
{
    struct arena *a = l->arena;
    if (s->mbar)
        return mbar_text(l, s);
    if (s->waits == SIM_WAIT_MBAR)
        return "wait at an mbarrier";
    if (s->waits == 0)
        return l->fault.kind == SIM_F_LIVELOCK ? "go round here" : "can go on";
    if (s->waits == SIM_WAIT_LANES)
        return arena_printf(a, "wait for %s; their mask is 0x%08x", lanes_text(a, s->missing),
                            s->named);
    if (s->waits == SIM_WAIT_CLUSTER)
        return arena_printf(a, "wait for the cluster, of which %u of %u threads have come", s->came,
                            s->wanted);
    if (s->waits == SIM_WAIT_WARPGROUP)
        return arena_printf(a, "wait for %s of their warpgroup to commit what is waited for",
                            set_text(a, "warp", s->missing));
    if (s->waits == SIM_WAIT_REGISTERS)
        return arena_printf(a,
                            "wait for %u registers, of which other warps have released %u with "
                            "setmaxnreg.dec",
                            s->wanted, s->came);
    if (s->missing)
        return arena_printf(a, "wait at barrier %u for %s of their warp", s->barrier,
                            lanes_text(a, s->missing));
    return arena_printf(a, "wait at barrier %u, where %u of %u threads have come", s->barrier,
                        s->came, s->wanted);
}

static bool alike(const struct sim_stand *s, const struct sim_stand *t)
{
    return s->block == t->block && s->op == t->op && s->mask == t->mask && s->waits == t->waits &&
           s->named == t->named && s->missing == t->missing && s->mbar == t->mbar &&
           s->offset == t->offset && s->parity == t->parity;
}

/* Tells where the first few of the block's warps stood. Warps of which a group stands alike are
 * told of once. */
static void note_stands(struct sim_launch *l, const struct sim_fault *f, struct diags *d)
{
    enum { SHOWN = 8 };
    struct arena *a = l->arena;
    bool *told = ARENA_ARRAY(a, f->stands.n, bool);
    size_t left = f->stands.n;
    for (size_t i = 0, shown = 0; i < f->stands.n; i++) {
        const struct sim_stand *s = &f->stands.v[i];
        uint32_t warps = 0;
        if (told[i])
            continue;
        if (shown++ == SHOWN) {
            diag_note(d, SPAN_NONE, "%zu more groups of lanes are not shown", left);
            return;
        }
        for (size_t k = i; k < f->stands.n && f->stands.v[k].block == s->block; k++)
            if (alike(s, &f->stands.v[k])) {
                told[k] = true;
                left--;
                warps |= 1u << f->stands.v[k].warp;
            }
        diag_note(d, sim_span_of(l, s->op), "block %s, %s, %s: %s",
                  sim_dim_text(a, &l->what->grid, s->block), set_text(a, "warp", warps),
                  lanes_text(a, s->mask), waits_text(l, s));
        sim_note_source(l, s->op, d);
    }
}

static const char *mbar_error_text(const struct sim_launch *l, const struct sim_fault *f)
{
    struct arena *a = l->arena;
    const uint64_t n = f->mbar.count, state = f->mbar.state;
    const char *at = sim_place_text(l, SIM_IN_SHARED, f->mbar.offset, NULL);
    if (l->ncluster > 1)
        at = arena_printf(a, "%s, in block %u of the cluster", at, f->mbar.rank);
    switch ((enum sim_mbar_error)f->mbar.error) {
    case SIM_MBAR_NONE:
        return arena_printf(a, "there is no mbarrier at %s: mbarrier.init has not made one", at);
    case SIM_MBAR_INVALID:
        return arena_printf(a, "there is no mbarrier at %s: mbarrier.inval has ended it", at);
    case SIM_MBAR_SPOILT:
        return arena_printf(a, "the mbarrier at %s was overwritten by other data", at);
    case SIM_MBAR_AGAIN:
        return arena_printf(a, "there is already an mbarrier at %s; mbarrier.inval has to end it",
                            at);
    case SIM_MBAR_RANGE:
        return arena_printf(a, "a count of %" PRIu64 " at the mbarrier at %s; 1 to %d can be", n,
                            at, SIM_MBARRIER_MOST);
    case SIM_MBAR_COUNT:
        return arena_printf(a,
                            "%" PRIu64 " more arrivals at the mbarrier at %s, whose phase waits "
                            "for %u of %u",
                            n, at, sim_mbar_pending(state), sim_mbar_expected(state));
    case SIM_MBAR_BYTES:
        return arena_printf(a,
                            "%" PRIu64 " bytes at the mbarrier at %s, which waits for %d: it "
                            "counts to %d",
                            n, at, sim_mbar_bytes(state), SIM_MBARRIER_MOST);
    case SIM_MBAR_PHASE:
        return arena_printf(
            a, "mbarrier.arrive.noComplete completes the phase of the mbarrier at %s", at);
    case SIM_MBAR_APART:
        return arena_printf(a, "the mbarrier at %s is in another block than the bytes go to", at);
    case SIM_MBAR_DROP:
        return arena_printf(a,
                            "mbarrier.arrive_drop of %" PRIu64 " arrivals of the mbarrier at %s, "
                            "which has %u",
                            n, at, sim_mbar_expected(state));
    case SIM_MBAR_NO_PARITY:
        return arena_printf(a, "the parity of a phase is 0 or 1, not %" PRIu64, n);
    case SIM_MBAR_FINE:
    case SIM_MBAR_MEMORY: break;
    }
    return "";
}

static void report_mbar(struct sim_launch *l, const struct sim_fault *f, struct diags *d)
{
    diag_error(d, sim_span_of(l, f->op), "kernel '%s': %s", l->what->entry, mbar_error_text(l, f));
    note_thread(l, f, d);
    if (f->mbar.error == SIM_MBAR_AGAIN)
        diag_note(d, sim_span_of(l, f->mbar.op), "it was made here");
    sim_note_source(l, f->op, d);
}

static void report_wgmma(struct sim_launch *l, const struct sim_fault *f, struct diags *d)
{
    const char *kernel = l->what->entry;
    const struct span at = sim_span_of(l, f->op);
    switch ((enum sim_wgmma_fault)f->why) {
    case SIM_WG_BLOCK:
        diag_error(d, at,
                   "kernel '%s': warp %u is not in a warpgroup, four warps of which the first is a "
                   "multiple of 4: launch a multiple of 128 threads a block, not %u",
                   kernel, f->warp, l->threads);
        break;
    case SIM_WG_LANES:
        diag_error(
            d, at,
            "kernel '%s': lanes of a warp give this different descriptors or predicates, and "
            "all must give the same",
            kernel);
        break;
    case SIM_WG_BITS:
        diag_error(d, at,
                   "kernel '%s': descriptor 0x%016" PRIx64 " has bits set that must be 0 (14, 15, "
                   "30, 31, 46 to 48, 52 to 61)",
                   kernel, f->address);
        break;
    case SIM_WG_APART:
        diag_error(d, at,
                   "kernel '%s': the warps of a warpgroup must execute the same, and warp %u has "
                   "executed something else here, or with other operands",
                   kernel, f->others);
        break;
    case SIM_WG_LEFT:
        diag_error(d, at,
                   "kernel '%s': all four warps of a warpgroup must execute this, and warp %u has "
                   "exited",
                   kernel, f->others);
        break;
    }
    note_thread(l, f, d);
    sim_note_source(l, f->op, d);
    if (f->why == SIM_WG_APART) {
        diag_note(d, sim_span_of(l, f->bytes), "warp %u", f->others);
        sim_note_source(l, f->bytes, d);
    }
}

/* Is the branch a call through a register? */
static bool by_function(const struct sim_launch *l, const struct sim_fault *f)
{
    const struct ptx_func *func = l->code->func;
    const struct ptx_operand *list = &func->items.v[l->code->op[f->op].item].inst.operand[1];
    return strncmp(func->labels.v[list->label].name, SIM_FUNCTIONS, strlen(SIM_FUNCTIONS)) == 0;
}

/* What is wrong with the instruction at which a thread stopped; NULL: it is told otherwise. */
static const char *wrong_text(struct sim_launch *l, const struct sim_fault *f)
{
    struct arena *a = l->arena;
    switch (f->kind) {
    case SIM_F_BULK:
        return arena_printf(a, "a bulk copy of %u bytes, which must be a multiple of 16", f->bytes);
    case SIM_F_COLUMN:
        return arena_printf(a,
                            "the box begins %" PRId64 " bytes into a row of the tensor: an H100 "
                            "takes multiples of 16 bytes alone",
                            (int64_t)f->address);
    case SIM_F_START:
        return arena_printf(a,
                            "the copy begins at %" PRId64
                            " along dimension %u, where no window begins: they do from corner to "
                            "corner by steps",
                            (int64_t)f->address, f->bytes);
    case SIM_F_RANKS:
        return arena_printf(a, "the mask 0x%04x names %s that the cluster of %u %s", f->lanes,
                            f->lanes ? "blocks" : "none of the blocks", l->ncluster,
                            f->lanes ? "does not have" : "has");
    case SIM_F_ASSERT: return f->text;
    case SIM_F_FREE: return sim_heap_wrong(l, f->address);
    case SIM_F_BARRIER:
        return "a barrier is numbered 0 to 15, and waits for a multiple of 32 threads that the "
               "block has";
    case SIM_F_COUNT: return "this barrier is already in use with another count of threads";
    case SIM_F_TWICE:
        return "a thread arrives at the cluster's barrier again without having waited";
    case SIM_F_INDEX:
        return by_function(l, f) ? "a call through a register that holds the address of no function"
                                 : "a branch by index past its list of targets";
    case SIM_F_APART:
        return arena_printf(a, "%s of a warp execute this, and all 32 must do it together",
                            lanes_text(a, f->lanes));
    case SIM_F_SIZE:
        return arena_printf(a, "cp.async of %u bytes is to read %" PRIu64 " of them", f->bytes,
                            f->address);
    case SIM_F_REGISTERS:
        return arena_printf(a, "each thread has %u registers, and this is to leave it %u",
                            f->others, (unsigned)l->code->op[f->op].imm);
    default: return NULL;
    }
}

/* The launch did not come to its end. */
static void report_stop(struct sim_launch *l, const struct sim_fault *f, struct diags *d)
{
    const char *kernel = l->what->entry;
    if (f->kind == SIM_F_DEADLOCK)
        diag_error(d, SPAN_NONE, "kernel '%s' is stuck: no thread of %sblock %s can go on", kernel,
                   l->ncluster > 1 ? "the cluster of " : "",
                   sim_dim_text(l->arena, &l->what->grid, f->block));
    else if (f->kind == SIM_F_LIVELOCK)
        diag_error(d, SPAN_NONE,
                   "kernel '%s' is stuck: its threads go round in loops, and nothing changes",
                   kernel);
    else if (f->kind == SIM_F_INTERRUPTED)
        diag_error(d, SPAN_NONE, "kernel '%s' was interrupted", kernel);
    else if (f->kind == SIM_F_TOTAL)
        diag_error(d, l->code->func->span,
                   "kernel '%s' was stopped: its %" PRIu64
                   " blocks together executed more than %" PRIu64
                   " thread-instructions; --max-instructions allows more",
                   kernel, l->nblock, l->limit);
    else
        diag_error(d, SPAN_NONE,
                   "kernel '%s' was stopped: it executed more than %" PRIu64 " thread-instructions",
                   kernel, l->limit);
    note_stands(l, f, d);
    if (f->kind == SIM_F_LIVELOCK && f->others)
        diag_note(d, SPAN_NONE, "so do %u more %s", f->others,
                  l->ncluster > 1 ? "clusters" : "blocks");
}

static void report(struct sim_launch *l, const struct sim_fault *f, struct diags *d)
{
    const char *kernel = l->what->entry, *wrong = wrong_text(l, f);
    switch (f->kind) {
    case SIM_F_BOUNDS:
    case SIM_F_READONLY:
    case SIM_F_SPACE:
    case SIM_F_REMOTE:
    case SIM_F_ALIGN: report_access(l, f, d); return;
    case SIM_F_MBARRIER: report_mbar(l, f, d); return;
    case SIM_F_WGMMA: report_wgmma(l, f, d); return;
    case SIM_F_TENSOR: sim_tensor_report(l, f, d); return;
    case SIM_F_DEADLOCK:
    case SIM_F_LIVELOCK:
    case SIM_F_LIMIT:
    case SIM_F_TOTAL:
    case SIM_F_INTERRUPTED: report_stop(l, f, d); return;
    case SIM_F_MEMORY:
        diag_error(d, SPAN_NONE, "no memory left to run kernel '%s'", kernel);
        return;
    case SIM_F_ABANDONED:
    case SIM_NO_FAULT: return;
    default: break;
    }
    if (f->kind == SIM_F_TRAP)
        diag_error(d, sim_span_of(l, f->op), "kernel '%s' executed a trap", kernel);
    else if (wrong)
        diag_error(d, sim_span_of(l, f->op), "kernel '%s': %s", kernel, wrong);
    note_thread(l, f, d);
    if (f->kind == SIM_F_FREE)
        sim_heap_note(l, f->address, d);
    sim_note_source(l, f->op, d);
}

void sim_report(struct sim_launch *l, const struct sim_fault *f, struct diags *d)
{
    const size_t at = d->list.n;
    const bool stopped = f->kind == SIM_F_LIMIT || f->kind == SIM_F_TOTAL ||
                         f->kind == SIM_F_INTERRUPTED;
    report(l, f, d);
    sim_explain_fault(l, f, d, at);
    if (d->list.n > at && d->list.v[at].span.src && !stopped)
        sim_note_no_lines(l, d);
}
