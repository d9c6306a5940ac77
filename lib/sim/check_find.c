/* What the sanitizer found: counted while the kernel runs, told when it is over. */
#include <config.h>

#include "sim/check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/suppress.h"
#include "sim/report.h"

/* The buffer or variable that a finding is about. */
static uint64_t subject(const struct check *c, const struct check_finding *f)
{
    const uint64_t off = f->address & (((uint64_t)1 << SIM_RANK_SHIFT) - 1);
    if (f->space == SIM_IN_GLOBAL)
        return f->address >> SIM_WINDOW_BITS;
    const struct sim_symbol *s = sim_var_at(c->launch, f->space, off);
    return s ? (uint64_t)(uintptr_t)s->var : 0;
}

static bool same_instruction(const struct check *c, uint32_t a, uint32_t b)
{
    const struct sim_code *code = c->launch->code;
    const struct ptx_item *item = code->func->items.v;
    const size_t n = code->func->items.n;
    return code->op[a].item < n && code->op[b].item < n &&
           item[code->op[a].item].inst.op == item[code->op[b].item].inst.op;
}

/* An operation beside the threads is most often one of several in a row, of the tiles of one
 * buffer: where one side is the same record, and the other the same instruction, they are one
 * finding. */
static bool in_a_row(const struct check *c, const struct check_finding *f,
                     const struct check_finding *g)
{
    return f->kind >= CHECK_F_AGENT && f->mask == g->mask && subject(c, f) == subject(c, g) &&
           ((f->at.op == g->at.op && same_instruction(c, f->other.op, g->other.op)) ||
            (f->other.op == g->other.op && same_instruction(c, f->at.op, g->at.op)));
}

/* Are both of one kind, and between the same instructions, or copies of them in an unrolled loop,
 * whichever came first? */
static bool alike(const struct check *c, const struct check_finding *f,
                  const struct check_finding *g)
{
    if (f->kind != g->kind)
        return false;
    if ((f->at.op == g->at.op && f->other.op == g->other.op) || in_a_row(c, f, g))
        return true;
    const uint64_t a = c->op[f->at.op].line, b = c->op[f->other.op].line;
    const uint64_t x = c->op[g->at.op].line, y = c->op[g->other.op].line;
    return ((a == x && b == y) || (a == y && b == x)) && subject(c, f) == subject(c, g);
}

/* The block is one of those in which the finding occurred. */
static void count_block(struct check *c, struct check_finding *f, uint64_t block)
{
    if (block / 8 >= f->seen_bytes) {
        const size_t bytes = (size_t)(block / 8 + 1) * 2;
        unsigned char *more = realloc(f->seen, bytes);
        if (!more) {
            c->starved = true;
            return;
        }
        memset(more + f->seen_bytes, 0, bytes - f->seen_bytes);
        f->seen = more;
        f->seen_bytes = bytes;
    }
    const unsigned char bit = (unsigned char)(1u << block % 8);
    f->blocks += !(f->seen[block / 8] & bit);
    f->seen[block / 8] |= bit;
}

void check_find(struct check *c, const struct check_finding *f)
{
    if (f->kind > CHECK_F_AGENT && !(c->bits & DEVICE_CHECK_ASYNC))
        return;
    for (uint32_t i = 0; i < c->nfinding; i++) {
        struct check_finding *g = &c->finding[i];
        if (alike(c, f, g)) {
            g->count += f->count;
            count_block(c, g, f->at.block);
            return;
        }
    }
    if (c->nfinding == CHECK_FINDINGS) {
        c->rest++;
        return;
    }
    struct check_finding *g = &c->finding[c->nfinding++];
    *g = *f;
    if (g->space != SIM_IN_GLOBAL) /* it may have been a generic address */
        g->address &= ((uint64_t)1 << SIM_WINDOW_BITS) - 1;
    g->seen = NULL;
    g->seen_bytes = 0;
    g->blocks = 0;
    count_block(c, g, f->at.block);
}

void check_forget(struct check *c)
{
    for (uint32_t i = 0; i < c->nfinding; i++)
        free(c->finding[i].seen);
    c->nfinding = 0;
    c->rest = 0;
}

/* What an instruction does to memory. */
static const char *act_text(const struct check *c, uint32_t op)
{
    const struct check_op *o = &c->op[op];
    switch ((enum check_class)o->kind) {
    case CHECK_LOAD: return "load";
    case CHECK_STORE: return "store";
    case CHECK_ATOMIC: return "atomic";
    case CHECK_COPY: return "asynchronous copy";
    default: return "instruction";
    }
}

static const char *side_text(const struct sim_launch *l, const struct check_side *s)
{
    return sim_thread_text(l, s->block, s->thread);
}

const char *check_count_text(const struct sim_launch *l, const struct check_finding *f,
                             const char *what)
{
    if (f->count < 2)
        return "";
    if (f->blocks < 2)
        return arena_printf(l->arena, "; %" PRIu64 " such %s in all", f->count, what);
    return arena_printf(l->arena, "; %" PRIu64 " such %s in all, in %" PRIu64 " blocks", f->count,
                        what, f->blocks);
}

static const char *count_text(const struct sim_launch *l, const struct check_finding *f)
{
    return check_count_text(l, f, "accesses");
}

static const char *race_remedy(const struct check_finding *f)
{
    if (f->at.block != f->other.block)
        return "blocks run in any order: use atomics, or release and acquire with scope = gpu";
    if (f->at.thread / SIM_LANES == f->other.thread / SIM_LANES)
        return "lanes of a warp run in any order: put __syncwarp() or __syncthreads() between "
               "them";
    return "put __syncthreads() between them, or use atomics";
}

static void report_race(struct sim_launch *l, const struct check_finding *f, struct diags *d)
{
    const struct check *c = l->check;
    const char *mine = act_text(c, f->at.op), *theirs = act_text(c, f->other.op);
    const char *place = sim_place_text(l, f->space, f->address, NULL);
    if (f->kind == CHECK_F_SCOPE)
        diag_error(d, sim_span_of(l, f->at.op),
                   "kernel '%s': race on %s: the scope of this %s or of the other %s is the "
                   "block, and they are in two blocks",
                   l->what->entry, place, mine, theirs);
    else
        diag_error(d, sim_span_of(l, f->at.op),
                   "kernel '%s': race on %s: this %s and another thread's %s are not ordered",
                   l->what->entry, place, mine, theirs);
    diag_note(d, SPAN_NONE, "this %s: %s%s", mine, side_text(l, &f->at), count_text(l, f));
    sim_note_source(l, f->at.op, d);
    diag_note(d, sim_span_of(l, f->other.op), "the other %s: %s", theirs, side_text(l, &f->other));
    sim_note_source(l, f->other.op, d);
    diag_note(d, SPAN_NONE, "%s",
              f->kind == CHECK_F_SCOPE ? "give both scope = gpu" : race_remedy(f));
}

static const char *flight_remedy(const struct check_finding *f)
{
    switch ((enum check_flight)f->mask) {
    case CHECK_UNCOMMITTED:
        return "the copy's group is still open: cp.async.commit_group closes it, then "
               "cp.async.wait_group can wait for it";
    case CHECK_OWN: return "cp.async.wait_group must come between them, or wait for more groups";
    default: break;
    }
    return "put __syncthreads() behind the wait of the copy's own thread if this is to see what "
           "it brings, before the copy if it is to see what was there";
}

static void report_async(struct sim_launch *l, const struct check_finding *f, struct diags *d)
{
    const struct check *c = l->check;
    const char *mine = act_text(c, f->at.op);
    const char *place = sim_place_text(l, f->space, f->address, NULL);
    if (f->kind == CHECK_F_FLIGHT)
        diag_error(d, sim_span_of(l, f->at.op),
                   "kernel '%s': %s at %s, to which an asynchronous copy is in flight",
                   l->what->entry, mine, place);
    else if (f->kind == CHECK_F_LANDED)
        diag_error(d, sim_span_of(l, f->at.op),
                   "kernel '%s': load of %s, which another thread's asynchronous copy brings: no "
                   "barrier is between them",
                   l->what->entry, place);
    else
        diag_error(d, sim_span_of(l, f->at.op),
                   "kernel '%s': %s was changed while this asynchronous copy of it was in flight",
                   l->what->entry, place);
    diag_note(d, SPAN_NONE, "this %s: %s%s", mine, side_text(l, &f->at), count_text(l, f));
    sim_note_source(l, f->at.op, d);
    if (f->kind == CHECK_F_CHANGED && f->other.op == f->at.op)
        return;
    diag_note(d, sim_span_of(l, f->other.op), "the %s: %s",
              f->kind == CHECK_F_CHANGED ? act_text(c, f->other.op) : "copy",
              side_text(l, &f->other));
    sim_note_source(l, f->other.op, d);
    diag_note(d, SPAN_NONE, "%s",
              f->kind != CHECK_F_CHANGED ? flight_remedy(f)
                                         : "wait for the copy before its source is written");
}

static void report_init(struct sim_launch *l, const struct check_finding *f, struct diags *d)
{
    diag_error(d, sim_span_of(l, f->at.op),
               "kernel '%s': %s of %u bytes at %s, where nothing was written", l->what->entry,
               act_text(l->check, f->at.op), f->bytes,
               sim_place_text(l, f->space, f->address, NULL));
    diag_note(d, SPAN_NONE, "%s%s", side_text(l, &f->at), count_text(l, f));
    sim_note_source(l, f->at.op, d);
    if (f->other.op == f->at.op)
        return;
    diag_note(d, sim_span_of(l, f->other.op), "the value is used here");
    if (l->check->op[f->other.op].line != l->check->op[f->at.op].line)
        sim_note_source(l, f->other.op, d);
}

static void report_barrier(struct sim_launch *l, const struct check_finding *f, struct diags *d)
{
    static const char *const what[] = {
        [CHECK_F_DIVERGED] = "the lanes of a warp come to a barrier at two places",
        [CHECK_F_EXITED] = "this barrier is not reached by every thread of the block",
        [CHECK_F_AGAIN] =
            "a warp arrives at this barrier again before those who wait there have come",
        [CHECK_F_MIXED] = "the threads of a block come to a barrier at two places",
    };
    diag_error(d, sim_span_of(l, f->at.op), "kernel '%s': %s", l->what->entry, what[f->kind]);
    if (f->kind == CHECK_F_AGAIN) {
        diag_note(d, SPAN_NONE, "%s%s", side_text(l, &f->at), check_count_text(l, f, "cases"));
        sim_note_source(l, f->at.op, d);
        return;
    }
    diag_note(d, SPAN_NONE, "%s, has come here%s", side_text(l, &f->at),
              check_count_text(l, f, "cases"));
    sim_note_source(l, f->at.op, d);
    if (f->kind == CHECK_F_EXITED) {
        diag_note(d, SPAN_NONE, "%s, has exited", side_text(l, &f->other));
    } else {
        diag_note(d, sim_span_of(l, f->other.op), "%s, has come here", side_text(l, &f->other));
        sim_note_source(l, f->other.op, d);
    }
    diag_note(d, SPAN_NONE,
              "every thread of the block must come to the same barrier: move it "
              "out of the branch");
}

static void report_mask(struct sim_launch *l, const struct check_finding *f, struct diags *d)
{
    const struct span at = sim_span_of(l, f->at.op);
    const char *kernel = l->what->entry;
    const uint32_t lane = f->at.thread % SIM_LANES;
    if (f->kind == CHECK_F_OUTSIDE)
        diag_error(d, at,
                   "kernel '%s': lane %u executes this with the mask 0x%08x, which leaves it out",
                   kernel, lane, f->mask);
    else
        diag_error(d, at,
                   "kernel '%s': lane %u takes its value from lane %u, which does not take part "
                   "(mask 0x%08x), and uses it",
                   kernel, lane, f->source, f->mask);
    diag_note(d, SPAN_NONE, "%s%s", side_text(l, &f->at), check_count_text(l, f, "cases"));
    sim_note_source(l, f->at.op, d);
    if (f->kind == CHECK_F_SOURCE) {
        diag_note(d, sim_span_of(l, f->other.op), "the value is used here");
        sim_note_source(l, f->other.op, d);
    }
}

/* A load and a copy without a barrier show as a race where the load came first, too; and where a
 * wait is missing, some loads find what has landed already. One report is enough. */
static bool told_as_async(const struct check *c, const struct check_finding *f)
{
    for (uint32_t i = 0; i < c->nfinding; i++) {
        const struct check_finding *g = &c->finding[i];
        const bool async = g->kind == CHECK_F_LANDED || g->kind == CHECK_F_FLIGHT;
        if (f->kind == CHECK_F_RACE && async && g->at.op == f->other.op && g->other.op == f->at.op)
            return true;
        if (f->kind == CHECK_F_LANDED && g->kind == CHECK_F_FLIGHT && g->at.op == f->at.op)
            return true;
    }
    return false;
}

/* A load that races with a store may come before it in this run and not in another: the race is
 * what is wrong. */
static bool explained(const struct check *c, const struct check_finding *f)
{
    if (told_as_async(c, f))
        return true;
    /* who does not wait for a copy may exit before it comes */
    for (uint32_t i = 0; f->kind == CHECK_F_GONE && i < c->nfinding; i++)
        if (c->finding[i].kind == CHECK_F_AGENT && c->finding[i].mask == CHECK_W_PHASE)
            return true;
    for (uint32_t i = 0; f->kind == CHECK_F_INIT && i < c->nfinding; i++) {
        const struct check_finding *g = &c->finding[i];
        const bool order = g->kind == CHECK_F_RACE || g->kind == CHECK_F_FLIGHT ||
                           g->kind == CHECK_F_LANDED || g->kind == CHECK_F_AGENT;
        if (order && (c->op[g->at.op].line == c->op[f->at.op].line ||
                      c->op[g->other.op].line == c->op[f->at.op].line))
            return true;
    }
    return false;
}

static void report(struct sim_launch *l, const struct check_finding *f, struct diags *d)
{
    switch (f->kind) {
    case CHECK_F_RACE:
    case CHECK_F_SCOPE: report_race(l, f, d); break;
    case CHECK_F_INIT: report_init(l, f, d); break;
    case CHECK_F_FLIGHT:
    case CHECK_F_LANDED:
    case CHECK_F_CHANGED: report_async(l, f, d); break;
    case CHECK_F_DIVERGED:
    case CHECK_F_EXITED:
    case CHECK_F_AGAIN:
    case CHECK_F_MIXED: report_barrier(l, f, d); break;
    case CHECK_F_OUTSIDE:
    case CHECK_F_SOURCE: report_mask(l, f, d); break;
    default: check_tell(l, f, d); break;
    }
}

/* One more of the kind. */
static void tally(struct finding_summary *s, const char *kind)
{
    size_t i = 0;
    while (i < s->nkind && strcmp(s->by_kind[i].kind, kind) != 0)
        i++;
    if (i == s->nkind)
        s->by_kind[s->nkind++] = (struct finding_tally){.kind = kind};
    s->by_kind[i].n++;
    s->findings++;
}

size_t check_report(struct sim_launch *l, struct diags *d)
{
    const struct check *c = l->check;
    const struct device_options *opt = l->options;
    const size_t most = opt->max_findings ? opt->max_findings : DEVICE_FINDINGS;
    struct finding_summary s = {.entry = arena_strdup(d->arena, l->what->entry)};
    s.by_kind = ARENA_ARRAY(d->arena, CHECK_FINDINGS, struct finding_tally);
    if (d->limit < d->nerror + most)
        d->limit = d->nerror + most;
    for (uint32_t i = 0; i < c->nfinding; i++) {
        const struct check_finding *f = &c->finding[i];
        if (explained(c, f))
            continue;
        const struct finding parts = sim_finding_of(l, f, d->arena);
        if (opt->suppressions && suppress_find(opt->suppressions, &parts)) {
            s.suppressed++;
            continue;
        }
        tally(&s, parts.kind);
        if (s.findings > most)
            continue;
        const size_t at = d->list.n;
        report(l, f, d);
        diags_explain(d, at, &parts);
        s.shown++;
    }
    s.rest = c->rest;
    if (s.shown)
        sim_note_no_lines(l, d);
    if (s.findings || s.suppressed || s.rest)
        diags_summarize(d, &s);
    if (s.rest && !s.findings)
        diag_error(d, SPAN_NONE, "kernel '%s': more findings than there is room for",
                   l->what->entry);
    return s.findings + (s.rest > 0);
}
