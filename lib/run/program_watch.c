/* Who watches a program: what each call was given, and what it made of that. */
#include <config.h>

#include "run/program.h"
#include "run/try.h"

struct run_call program_shown(const struct program *p, const struct program_call *c)
{
    return (struct run_call){.step = c->step,
                             .text = c->cost.text,
                             .number = c->number,
                             .n = p->ncall,
                             .before = c->cost.calls,
                             .kernel = c->bound->run,
                             .part = c->part};
}

/* What the buffer holds, from where the program has it: a copy on its way to a kernel that goes
 * wrong is seen, too. */
static enum device_status take(struct program *p, const struct program_call *c, size_t actual,
                               struct buffer *to)
{
    *to = c->part[actual].shape;
    buffer_alloc(p->seen, to, c->step->args.v[actual].param->sym->name);
    return to->bytes ? p->job.ops->read(p->job.dev, to->data, program_address(p, c, actual),
                                        to->bytes, p->r->d)
                     : DEVICE_OK;
}

/* What the kernel leaves as it is shows as what nobody computes. */
static enum device_status poison(struct program *p, const struct program_call *c, size_t actual)
{
    const struct buffer *b = &c->part[actual].shape;
    const uint64_t at = c->bound->next_address[c->param[actual]];
    if (!b->bytes)
        return DEVICE_OK;
    void *bytes = arena_alloc(p->seen, b->bytes);
    memset(bytes, p->job.opt.poison, b->bytes);
    return p->job.ops->write(p->job.dev, at, bytes, b->bytes, p->r->d);
}

enum device_status program_watch_before(struct program *p, struct program_call *c)
{
    const struct run_watch *w = p->job.opt.watch;
    if (!w)
        return DEVICE_OK;
    const struct run_call shown = program_shown(p, c);
    if (!w->wants(w->ctx, &shown))
        return DEVICE_OK;
    p->seen = arena_new();
    for (size_t i = 0; i < c->step->args.n; i++) {
        const struct contract_actual *actual = &c->step->args.v[i];
        if (actual->value)
            continue;
        TRY(actual->param->sym->mode == MODE_OUT
                ? poison(p, c, i)
                : take(p, c, i, &shown.kernel->param[c->param[i]].host));
    }
    return DEVICE_OK;
}

/* The bound kernel is kept for other calls, and the contents are not. */
static void let_go(struct program *p, struct run *kernel)
{
    for (size_t i = 0; i < kernel->nparam; i++)
        kernel->param[i].host.data = kernel->param[i].result.data = NULL;
    arena_free(p->seen);
    p->seen = NULL;
}

enum device_status program_watch_behind(struct program *p, struct program_call *c)
{
    const struct run_watch *w = p->job.opt.watch;
    if (!p->seen)
        return DEVICE_OK;
    struct run_call shown = program_shown(p, c);
    shown.before--;
    for (size_t i = 0; i < c->step->args.n; i++) {
        const struct contract_actual *actual = &c->step->args.v[i];
        if (!actual->value && actual->param->sym->mode != MODE_IN)
            TRY(take(p, c, i, &shown.kernel->param[c->param[i]].result));
    }
    p->enough = !w->saw(w->ctx, &shown);
    let_go(p, shown.kernel);
    return p->enough ? DEVICE_FAULT : DEVICE_OK; /* a way out of all loops */
}

bool run_calls(struct run *r, const struct ptx_module *m,
               void (*show)(void *ctx, const struct run_call *c), void *ctx)
{
    struct program *p = program_new(r, m);
    p->show = show;
    p->show_ctx = ctx;
    const bool good = program_rehearse(p);
    program_forget(p);
    return good;
}
