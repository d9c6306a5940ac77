/* What is said of operations beside the threads, of mbarriers, proxies and wgmma. */
#include <config.h>

#include "sim/check.h"

#include <inttypes.h>

#include "sim/report.h"

/* What a record does, and what that brings or takes. */
static const char *name_of(const struct check *c, uint32_t op)
{
    switch ((enum check_class)c->op[op].kind) {
    case CHECK_LOAD: return "load";
    case CHECK_STORE: return "store";
    case CHECK_ATOMIC: return "atomic";
    case CHECK_COPY: return "cp.async";
    case CHECK_BRINGS: return "copy to shared memory";
    case CHECK_SENDS: return "copy from shared memory";
    case CHECK_WGMMA: return "wgmma";
    case CHECK_MBAR: return "mbarrier instruction";
    default: return "instruction";
    }
}

static const char *side_text(const struct sim_launch *l, const struct check_side *s)
{
    return sim_thread_text(l, s->block, s->thread);
}

/* The notes of both sides. */
static void note_sides(struct sim_launch *l, const struct check_finding *f, const char *mine,
                       const char *theirs, struct diags *d)
{
    diag_note(d, SPAN_NONE, "this %s: %s%s", mine, side_text(l, &f->at),
              check_count_text(l, f, "cases"));
    sim_note_source(l, f->at.op, d);
    if (f->other.op == f->at.op && f->other.thread == f->at.thread && f->other.block == f->at.block)
        return;
    diag_note(d, sim_span_of(l, f->other.op), "the %s: %s", theirs, side_text(l, &f->other));
    sim_note_source(l, f->other.op, d);
}

static const char *const missing[] = {
    [CHECK_W_PHASE] = "the phase of the mbarrier that it completes was not waited for",
    [CHECK_W_READ] = "no cp.async.bulk.wait_group is between them",
    [CHECK_W_GROUP] = "no cp.async.bulk.wait_group is between them",
    [CHECK_W_WGMMA] = "no wgmma.wait_group is between them",
};

static const char *const remedy[] = {
    [CHECK_W_ORDER] = "the thread that issues the operation must know of the other access: by a "
                      "barrier, or by an "
                      "arrival behind that access at an mbarrier whose phase it waits for",
    [CHECK_W_SCOPE] =
        "a thread of another block has arrived with scope .cta, the default, which orders nothing "
        "between blocks: mbarrier.arrive.release.cluster",
    [CHECK_W_PHASE] =
        "mbarrier.try_wait for the phase that the copy completes, with its parity and until it is "
        "true, must come first, in this thread or in one that this one synchronises with behind it",
    [CHECK_W_READ] = "the thread that issued the copy must execute cp.async.bulk.commit_group and "
                     "cp.async.bulk.wait_group.read first, and then synchronise with this one",
    [CHECK_W_GROUP] = "the thread that issued the copy must execute cp.async.bulk.commit_group and "
                      "cp.async.bulk.wait_group (without .read) first",
    [CHECK_W_WGMMA] = "wgmma.commit_group and wgmma.wait_group must come between wgmma and the "
                      "barrier or the arrival that lets this go on",
};

static void tell_agent(struct sim_launch *l, const struct check_finding *f, struct diags *d)
{
    const struct check *c = l->check;
    const char *mine = name_of(c, f->at.op), *theirs = name_of(c, f->other.op);
    const char *place = sim_place_text(l, f->space, f->address, NULL);
    const enum check_wait w = (enum check_wait)f->mask;
    if (w == CHECK_W_ORDER || w == CHECK_W_SCOPE)
        diag_error(d, sim_span_of(l, f->at.op),
                   "kernel '%s': race on %s: nothing orders this %s%s and another thread's %s",
                   l->what->entry, place, mine,
                   check_flies(c->op[f->at.op].kind) ? ", in flight from here on," : "", theirs);
    else
        diag_error(d, sim_span_of(l, f->at.op),
                   "kernel '%s': %s at %s, which %s in flight still %s: %s", l->what->entry, mine,
                   place, w == CHECK_W_WGMMA ? "a wgmma" : "a copy",
                   w == CHECK_W_PHASE || w == CHECK_W_GROUP ? "writes" : "reads", missing[w]);
    note_sides(l, f, mine, theirs, d);
    diag_note(d, SPAN_NONE, "%s", remedy[w]);
}

static void tell_proxy(struct sim_launch *l, const struct check_finding *f, struct diags *d)
{
    const struct check *c = l->check;
    const char *mine = name_of(c, f->at.op), *theirs = name_of(c, f->other.op);
    diag_error(d, sim_span_of(l, f->at.op),
               "kernel '%s': no fence.proxy.async between this %s at %s and the %s there before",
               l->what->entry, mine, sim_place_text(l, f->space, f->address, NULL), theirs);
    note_sides(l, f, mine, theirs, d);
    diag_note(d, SPAN_NONE,
              "each thread that has written must execute fence.proxy.async%s behind it, before the "
              "barrier by which the %s comes later",
              f->space == SIM_IN_SHARED ? "" : ".global", mine);
}

static void tell_layout(struct sim_launch *l, const struct check_finding *f, struct diags *d)
{
    const char *text[2];
    const uint32_t span[2] = {f->mask, f->source};
    for (int i = 0; i < 2; i++)
        text[i] = span[i] > 16 ? arena_printf(l->arena, "a swizzle of %" PRIu32 " bytes", span[i])
                               : "no swizzle";
    diag_error(d, sim_span_of(l, f->at.op),
               "kernel '%s': wgmma reads %s with %s, and the tensor copy wrote it with %s",
               l->what->entry, sim_place_text(l, f->space, f->address, NULL), text[0], text[1]);
    note_sides(l, f, "wgmma", "copy to shared memory", d);
    diag_note(d, SPAN_NONE,
              "bits 62 and 63 of the descriptor must say the tensor map's swizzle: 0 none, 1 for "
              "128 bytes, 2 for 64, 3 for 32");
}

static void tell_mbar(struct sim_launch *l, const struct check_finding *f, struct diags *d)
{
    const struct check *c = l->check;
    const char *place = sim_place_text(l, f->space, f->address, NULL);
    const char *mine = name_of(c, f->at.op);
    static const char *const before[] = {
        [CHECK_F_PHASE] = "a phase of the mbarrier at ",
        [CHECK_F_MADE] = "use of the mbarrier at ",
        [CHECK_F_UNFENCED] =
            "no fence.mbarrier_init or fence.proxy.async between the mbarrier.init at ",
        [CHECK_F_IN_USE] = "mbarrier.inval at ",
        [CHECK_F_OVER] = "store to the mbarrier at ",
    };
    static const char *const behind[] = {
        [CHECK_F_PHASE] = " is complete although this copy, which completes there, is still in "
                          "flight",
        [CHECK_F_MADE] = ", whose mbarrier.init is not ordered before",
        [CHECK_F_UNFENCED] = " and this copy, which completes there",
        [CHECK_F_IN_USE] = ", which another thread may still use",
        [CHECK_F_OVER] = "",
    };
    static const char *const mend[] = {
        [CHECK_F_PHASE] = "the bytes of mbarrier.arrive.expect_tx or mbarrier.expect_tx must be "
                          "those of all copies of the phase",
        [CHECK_F_MADE] = "put __syncthreads() behind mbarrier.init, between blocks of a cluster "
                         "barrier.cluster",
        [CHECK_F_UNFENCED] = "the thread that made the mbarrier must execute "
                             "fence.mbarrier_init.release.cluster or fence.proxy.async behind it, "
                             "before the barrier",
        [CHECK_F_IN_USE] = "all who use it must come to a barrier first",
        [CHECK_F_OVER] = "mbarrier.inval must end it before its memory is used for anything else",
    };
    diag_error(d, sim_span_of(l, f->at.op), "kernel '%s': %s%s%s", l->what->entry, before[f->kind],
               place, behind[f->kind]);
    note_sides(l, f, mine, f->kind == CHECK_F_IN_USE ? name_of(c, f->other.op) : "mbarrier.init",
               d);
    diag_note(d, SPAN_NONE, "%s", mend[f->kind]);
}

static void tell_end(struct sim_launch *l, const struct check_finding *f, struct diags *d)
{
    const struct span at = sim_span_of(l, f->at.op);
    const char *kernel = l->what->entry, *mine = name_of(l->check, f->at.op);
    const bool wgmma = l->check->op[f->at.op].kind == CHECK_WGMMA;
    if (f->kind == CHECK_F_DROPPED)
        diag_error(d, at,
                   "kernel '%s': the block is over while this copy to %s is in flight: nobody has "
                   "waited for it",
                   kernel, sim_place_text(l, f->space, f->address, NULL));
    else if (f->kind == CHECK_F_LEFT)
        diag_error(d, at,
                   "kernel '%s': the block is over while this %s may still read its shared "
                   "memory: no %s behind it",
                   kernel, mine, wgmma ? "wgmma.wait_group" : "cp.async.bulk.wait_group.read");
    else
        diag_error(
            d, at,
            "kernel '%s': %s in the shared memory of block %s of the cluster, which may have "
            "exited",
            kernel, mine, sim_dim_text(l->arena, &l->what->grid, f->other.block));
    diag_note(d, SPAN_NONE, "this %s: %s%s", mine, side_text(l, &f->at),
              check_count_text(l, f, "cases"));
    sim_note_source(l, f->at.op, d);
    diag_note(d, SPAN_NONE, "%s",
              f->kind == CHECK_F_DROPPED ? "wait for its mbarrier before the last thread exits"
              : f->kind == CHECK_F_LEFT && wgmma
                  ? "wgmma.commit_group and wgmma.wait_group 0 must come before its warps exit"
              : f->kind == CHECK_F_LEFT
                  ? "cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0 must come "
                    "before its thread exits"
                  : "put barrier.cluster at the end of the kernel, or let a thread of that block "
                    "wait for this before it exits");
}

static void tell_registers(struct sim_launch *l, const struct check_finding *f, struct diags *d)
{
    const struct span at = sim_span_of(l, f->at.op);
    if (f->kind == CHECK_F_REGISTER)
        diag_error(d, at, "kernel '%s': access to a register of a wgmma that is in flight",
                   l->what->entry);
    else if (f->mask)
        diag_error(d, at,
                   "kernel '%s': no wgmma.fence between this wgmma and the last access to its "
                   "registers",
                   l->what->entry);
    else
        diag_error(d, at, "kernel '%s': no wgmma.fence before the first wgmma", l->what->entry);
    note_sides(l, f, f->kind == CHECK_F_REGISTER ? "access" : "wgmma", "wgmma", d);
    diag_note(d, SPAN_NONE, "%s",
              f->kind == CHECK_F_WGFENCE
                  ? "wgmma.fence.sync.aligned must come behind what reads or "
                    "writes them, before the first wgmma"
              : f->mask ? "its group is still open: wgmma.commit_group closes it, then "
                          "wgmma.wait_group can wait for it"
                        : "wgmma.wait_group must come between them, or wait for more groups");
}

static void tell_map(struct sim_launch *l, const struct check_finding *f, struct diags *d)
{
    const char *what = f->mask ? "acquire" : "release";
    diag_error(d, sim_span_of(l, f->at.op),
               "kernel '%s': no fence.proxy.tensormap::generic.%s between this use of the tensor "
               "map at %s and its change",
               l->what->entry, what, sim_place_text(l, f->space, f->address, NULL));
    note_sides(l, f, "use", "change", d);
    diag_note(d, SPAN_NONE, "%s",
              f->mask ? "fence.proxy.tensormap::generic.acquire.gpu [map], 128 must come before "
                        "the copy, in its warp"
                      : "fence.proxy.tensormap::generic.release.gpu must come behind the change, "
                        "before what lets the copy come later");
}

void check_tell(struct sim_launch *l, const struct check_finding *f, struct diags *d)
{
    switch (f->kind) {
    case CHECK_F_AGENT: tell_agent(l, f, d); break;
    case CHECK_F_PROXY: tell_proxy(l, f, d); break;
    case CHECK_F_LAYOUT: tell_layout(l, f, d); break;
    case CHECK_F_MAP: tell_map(l, f, d); break;
    case CHECK_F_DROPPED:
    case CHECK_F_LEFT:
    case CHECK_F_GONE: tell_end(l, f, d); break;
    case CHECK_F_REGISTER:
    case CHECK_F_WGFENCE: tell_registers(l, f, d); break;
    default: tell_mbar(l, f, d); break;
    }
}
