/* Whether the buffers of a run fit in the host's memory: asked before any of it is touched. */
#include <config.h>

#include "base/memory.h"
#include "run/run.h"

/* What a buffer takes of the host: what is made or read for it, its memory on a simulator, its
 * result. */
static uint64_t of_buffer(const struct run *r, const struct run_param *p, bool temp)
{
    uint64_t times = 0;
    /* a program's temps share memory: program_fits() */
    if (!run_is_buffer(p) || (temp && r->contract->is_program))
        return 0;
    const bool kept = !temp && p->kept;
    times += !temp && run_is_input(p) && !p->host.data && !kept;
    times += !temp && run_is_output(p);
    times += r->memory.simulated && !(kept && !run_is_output(p));
    return times * p->host.bytes; /* at most 3 * 2^48 */
}

static void list_largest(const struct run *r, uint64_t all)
{
    char text[MEMORY_TEXT];
    for (size_t i = 0; i < run_nbuffer(r); i++) {
        const struct run_param *p = run_buffer(r, i);
        const uint64_t bytes = of_buffer(r, p, i >= r->nparam);
        struct buf type = buf_in(r->arena);
        if (bytes < all / 16)
            continue;
        buffer_print_type(&p->host, &type);
        diag_note(r->d, SPAN_NONE, "%s, %s, takes %s", p->sym->name, buf_text(&type),
                  memory_text(bytes, text));
    }
}

bool run_fits(struct run *r)
{
    enum { SMALL = 1 << 26 }; /* is not asked for */
    uint64_t all = 0;
    char wanted[MEMORY_TEXT], has[MEMORY_TEXT];
    for (size_t i = 0; i < run_nbuffer(r); i++)
        all += of_buffer(r, run_buffer(r, i), i >= r->nparam);
    if (all < SMALL || r->memory.overcommit)
        return true;
    const struct memory_left left = memory_left();
    if (all <= left.bytes)
        return true;
    r->memory.lacking = true;
    diag_error(r->d, SPAN_NONE, "the buffers of '%s' take %s of memory%s, but %s has %s left",
               r->contract->kernel, memory_text(all, wanted),
               r->memory.simulated ? " on the simulator" : "", left.by,
               memory_text(left.bytes, has));
    list_largest(r, all);
    diag_note(r->d, SPAN_NONE, "with overcommit it is tried nevertheless");
    return false;
}
