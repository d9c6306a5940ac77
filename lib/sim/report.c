/* What a fault says: the instruction, the buffer, the thread, the source line. */
#include <config.h>

#include <inttypes.h>

#include "sim/sim.h"

/* The instruction of a record, or for a label the one behind it. */
static struct span span_of(const struct sim_launch *l, uint32_t op)
{
    const struct ptx_func *f = l->code->func;
    if (!f->items.n)
        return f->span;
    while (op + 1 < l->code->nop && f->items.v[l->code->op[op].item].kind == PTX_I_LABEL)
        op++;
    return f->items.v[l->code->op[op].item].span;
}

static const char *dim_text(struct arena *a, const struct device_dim *n, uint64_t i)
{
    return arena_printf(a, "(%" PRIu64 ",%" PRIu64 ",%" PRIu64 ")", i % n->x, i / n->x % n->y,
                        i / n->x / n->y);
}

/* The name of  .file NUMBER "name"; NULL when the module has none. */
static const char *file_name(const struct sim_launch *l, uint32_t number)
{
    const struct ptx_module *m = l->code->module;
    for (size_t i = 0; i < m->items.n; i++) {
        unsigned n;
        int at = 0;
        const char *text = m->items.v[i].text;
        if (m->items.v[i].kind != PTX_I_TEXT || !text ||
            sscanf(text, ".file %u \"%n", &n, &at) < 1 || !at || n != number)
            continue;
        return arena_strndup(l->arena, text + at, strcspn(text + at, "\""));
    }
    return NULL;
}

/* Where in the source the instruction comes from, if a .loc says so. */
static void note_source(const struct sim_launch *l, uint32_t op, struct diags *d)
{
    const struct ptx_func *f = l->code->func;
    for (uint32_t i = l->code->op[op].item; i-- > 0;)
        if (f->items.v[i].kind == PTX_I_LOC) {
            const struct ptx_item *loc = &f->items.v[i];
            const char *name = file_name(l, loc->file);
            diag_note(d, SPAN_NONE, "%s:%u:%u is where this instruction comes from",
                      name ? name : "line", loc->line, loc->column);
            return;
        }
}

static void note_thread(const struct sim_launch *l, const struct sim_fault *f, struct diags *d)
{
    diag_note(d, SPAN_NONE, "block %s, thread %s", dim_text(l->arena, &l->what->grid, f->block),
              dim_text(l->arena, &l->what->block, (uint64_t)f->warp * SIM_LANES + f->lane));
}

/* "element 1024 of 'y' (f32[n], 1024 elements)" */
static const char *place_in(struct arena *a, const struct sim_buffer *b, int64_t off)
{
    const struct device_label *l = &b->label;
    const unsigned bytes = l->element_bits / 8;
    const char *name = l->name ? arena_printf(a, "'%s'", l->name)
                               : arena_printf(a, "a %s", b->what);
    const char *type = l->type && *l->type ? arena_printf(a, "%s, ", l->type) : "";
    if (bytes && off % bytes == 0)
        return arena_printf(a, "element %" PRId64 " of %s (%s%" PRIu64 " elements)", off / bytes,
                            name, type, b->bytes / bytes);
    return arena_printf(a, "byte %" PRId64 " of %s (%s%" PRIu64 " bytes)", off, name, type,
                        b->bytes);
}

static const char *place_text(const struct sim_launch *l, const struct sim_fault *f)
{
    struct arena *a = l->arena;
    const uint64_t window = f->address >> SIM_WINDOW_BITS;
    uint64_t off = f->address;
    unsigned space = f->space;
    if (space == SIM_IN_GENERIC && window == SIM_WINDOW_SHARED)
        space = SIM_IN_SHARED, off -= SIM_SHARED_BASE;
    else if (space == SIM_IN_GENERIC && window == SIM_WINDOW_LOCAL)
        space = SIM_IN_LOCAL, off -= SIM_LOCAL_BASE;
    if (space == SIM_IN_SHARED && off >> SIM_RANK_SHIFT)
        return arena_printf(a,
                            "byte %" PRIu64 " of the shared memory of the cluster's block %" PRIu64
                            " (of %u blocks with %" PRIu64 " bytes)",
                            off & ((1u << SIM_RANK_SHIFT) - 1), (off >> SIM_RANK_SHIFT) - 1,
                            l->ncluster, l->shared_bytes);
    if (space == SIM_IN_SHARED)
        return arena_printf(a, "byte %" PRIu64 " of the block's shared memory (%" PRIu64 " bytes)",
                            off, l->shared_bytes);
    if (space == SIM_IN_LOCAL)
        return arena_printf(a, "byte %" PRIu64 " of the thread's local memory (%" PRIu64 " bytes)",
                            off, l->code->local_bytes);
    const struct sim_buffer *b = sim_mem_near(l->memory, f->address);
    if (b)
        return arena_printf(a, "%s%s", place_in(a, b, (int64_t)(f->address - b->base)),
                            b->released ? ", which was released" : "");
    if (window == SIM_WINDOW_SHARED || window == SIM_WINDOW_LOCAL)
        return arena_printf(a, "address 0x%" PRIx64 ", which is %s memory, not global", f->address,
                            window == SIM_WINDOW_SHARED ? "shared" : "local");
    return arena_printf(a, "address 0x%" PRIx64 ", which is in no buffer", f->address);
}

static void report_access(const struct sim_launch *l, const struct sim_fault *f, struct diags *d)
{
    const char *why = f->kind == SIM_F_READONLY ? ", which is read-only"
                      : f->kind == SIM_F_ALIGN  ? ", which is misaligned"
                                                : "";
    diag_error(d, span_of(l, f->op), "kernel '%s': %s of %u bytes at %s%s", l->what->entry,
               f->store ? "store" : "load", f->bytes, place_text(l, f), why);
    note_thread(l, f, d);
    if (f->kind == SIM_F_ALIGN)
        diag_note(d, SPAN_NONE, "address 0x%" PRIx64 " is not a multiple of %u", f->address,
                  f->bytes);
    else
        diag_note(d, SPAN_NONE, "address 0x%" PRIx64, f->address);
    note_source(l, f->op, d);
}

/* "lanes 0-15,31" */
static const char *lanes_text(struct arena *a, uint32_t mask)
{
    struct buf b = buf_in(a);
    buf_printf(&b, mask & (mask - 1) ? "lanes " : "lane ");
    for (unsigned first = 0; first < SIM_LANES; first++) {
        unsigned last = first;
        if (!(mask >> first & 1))
            continue;
        while (last + 1 < SIM_LANES && mask >> (last + 1) & 1)
            last++;
        buf_printf(&b, first == last ? "%s%u" : "%s%u-%u", mask & ((1u << first) - 1) ? "," : "",
                   first, last);
        first = last;
    }
    return buf_text(&b);
}

static const char *waits_text(const struct sim_launch *l, const struct sim_stand *s)
{
    struct arena *a = l->arena;
    if (s->waits == 0)
        return "can go on";
    if (s->waits == SIM_WAIT_LANES)
        return arena_printf(a, "wait for %s; their mask is 0x%08x", lanes_text(a, s->missing),
                            s->named);
    if (s->waits == SIM_WAIT_CLUSTER)
        return arena_printf(a, "wait for the cluster, of which %u of %u threads have come", s->came,
                            s->wanted);
    if (s->missing)
        return arena_printf(a, "wait at barrier %u for %s of their warp", s->barrier,
                            lanes_text(a, s->missing));
    return arena_printf(a, "wait at barrier %u, where %u of %u threads have come", s->barrier,
                        s->came, s->wanted);
}

static bool alike(const struct sim_stand *s, const struct sim_stand *t)
{
    return s->block == t->block && s->op == t->op && s->mask == t->mask && s->waits == t->waits &&
           s->named == t->named && s->missing == t->missing;
}

/* Where the block's warps stood: the first few. Warps in a row that stand alike are told of once. */
static void note_stands(const struct sim_launch *l, const struct sim_fault *f, struct diags *d)
{
    enum { SHOWN = 8 };
    struct arena *a = l->arena;
    size_t shown = 0, n;
    for (size_t i = 0; i < f->stands.n; i += n) {
        const struct sim_stand *s = &f->stands.v[i];
        n = 1;
        while (i + n < f->stands.n && f->stands.v[i + n].warp == s->warp + n && alike(s, s + n))
            n++;
        if (shown++ == SHOWN) {
            diag_note(d, SPAN_NONE, "%zu more groups of lanes are not shown", f->stands.n - i);
            return;
        }
        const char *warps = n > 1
                                ? arena_printf(a, "warps %u-%u", s->warp, s->warp + (unsigned)n - 1)
                                : arena_printf(a, "warp %u", s->warp);
        diag_note(d, span_of(l, s->op), "block %s, %s, %s: %s",
                  dim_text(a, &l->what->grid, s->block), warps, lanes_text(a, s->mask),
                  waits_text(l, s));
        note_source(l, s->op, d);
    }
}

void sim_report(const struct sim_launch *l, const struct sim_fault *f, struct diags *d)
{
    const char *kernel = l->what->entry;
    switch (f->kind) {
    case SIM_F_BOUNDS:
    case SIM_F_READONLY:
    case SIM_F_ALIGN: report_access(l, f, d); return;
    case SIM_F_TRAP:
        diag_error(d, span_of(l, f->op), "kernel '%s' executed a trap", kernel);
        note_thread(l, f, d);
        note_source(l, f->op, d);
        return;
    case SIM_F_BARRIER:
        diag_error(d, span_of(l, f->op),
                   "kernel '%s': a barrier is numbered 0 to 15, and waits for a multiple of 32 "
                   "threads that the "
                   "block has",
                   kernel);
        note_thread(l, f, d);
        note_source(l, f->op, d);
        return;
    case SIM_F_COUNT:
        diag_error(d, span_of(l, f->op),
                   "kernel '%s': this barrier is already in use with another count of threads",
                   kernel);
        note_thread(l, f, d);
        note_source(l, f->op, d);
        return;
    case SIM_F_TWICE:
        diag_error(d, span_of(l, f->op),
                   "kernel '%s': a thread arrives at the cluster's barrier again without having "
                   "waited",
                   kernel);
        note_thread(l, f, d);
        note_source(l, f->op, d);
        return;
    case SIM_F_INDEX:
        diag_error(d, span_of(l, f->op), "kernel '%s': a branch by index past its list of targets",
                   kernel);
        note_thread(l, f, d);
        note_source(l, f->op, d);
        return;
    case SIM_F_DEADLOCK:
        diag_error(d, SPAN_NONE, "kernel '%s' is stuck: no thread of %sblock %s can go on", kernel,
                   l->ncluster > 1 ? "the cluster of " : "",
                   dim_text(l->arena, &l->what->grid, f->block));
        note_stands(l, f, d);
        return;
    case SIM_F_LIMIT:
    case SIM_F_TOTAL:
        diag_error(d, SPAN_NONE,
                   "kernel '%s' was stopped: it executed more than %" PRIu64 " thread-instructions",
                   kernel, l->limit);
        note_stands(l, f, d);
        return;
    case SIM_F_INTERRUPTED:
        diag_error(d, SPAN_NONE, "kernel '%s' was interrupted", kernel);
        note_stands(l, f, d);
        return;
    case SIM_F_MEMORY:
        diag_error(d, SPAN_NONE, "no memory left to run kernel '%s'", kernel);
        return;
    case SIM_F_ABANDONED:
    case SIM_NO_FAULT: return;
    }
}
