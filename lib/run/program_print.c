/* A program's plan and its costs, for people. */
#include <config.h>

#include <inttypes.h>

#include "base/memory.h"
#include "run/program.h"

struct printer {
    struct program *p;
    struct buf *out;
    size_t width; /* of the longest name */
};

/* ---- buffers --------------------------------------------------------------------------------- */

static void print_buffer(const struct printer *t, size_t i)
{
    static const char *const modes[] = {"in", "out", "inout"};
    const struct run *r = t->p->r;
    const struct run_param *p = run_buffer(r, i);
    const bool temp = i >= r->nparam;
    struct buf type = buf_in(r->arena);
    char bytes[MEMORY_TEXT];
    if (!run_is_buffer(p))
        return;
    buffer_print_type(&p->host, &type);
    buf_printf(t->out, "  %-*s  %-5s  %s  %s", (int)t->width, p->sym->name,
               temp                ? "temp"
               : p->decl->is_state ? "state"
                                   : modes[p->sym->mode],
               buf_text(&type), memory_text(p->host.bytes, bytes));
    if (temp)
        buf_printf(t->out, "  at %" PRIu64, t->p->temp_at[i - r->nparam]);
    buf_putc(t->out, '\n');
}

static void print_memory(struct printer *t)
{
    const struct program *p = t->p;
    const struct run *r = p->r;
    char peak[MEMORY_TEXT], all[MEMORY_TEXT];
    uint64_t bytes = 0;
    for (size_t i = 0; i < run_nbuffer(r); i++) {
        const size_t len = strlen(run_buffer(r, i)->sym->name);
        t->width = len > t->width ? len : t->width;
    }
    buf_puts(t->out, "buffers:\n");
    for (size_t i = 0; i < run_nbuffer(r); i++)
        print_buffer(t, i);
    for (size_t i = 0; i < r->ntemp; i++)
        bytes += program_aligned(r->temp[i].host.bytes);
    for (size_t i = 0; i < p->ncall; i++)
        bytes += p->call[i].scratch;
    buf_printf(t->out, "arena: %s", memory_text(p->peak, peak));
    if (bytes > p->peak)
        buf_printf(t->out, " for %s, which are not all needed at the same time",
                   memory_text(bytes, all));
    buf_putc(t->out, '\n');
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void print_dim(const char *what, const struct device_dim *d, struct buf *out)
{
    buf_printf(out, "%s %" PRIu32, what, d->x);
    if (d->y > 1 || d->z > 1)
        buf_printf(out, " x %" PRIu32, d->y);
    if (d->z > 1)
        buf_printf(out, " x %" PRIu32, d->z);
}

static void print_launches(const struct printer *t, const struct program_call *c, unsigned indent)
{
    char bytes[MEMORY_TEXT];
    /* the rehearsal did not come here, in a loop of no iterations */
    for (size_t i = 0; c->bound && i < c->bound->plan.n; i++) {
        const struct device_launch *l = &c->bound->plan.v[i].l;
        buf_printf(t->out, "%*s%s  ", (int)(2 * indent), "", l->entry);
        print_dim("grid", &l->grid, t->out);
        print_dim("  block", &l->block, t->out);
        buf_putc(t->out, '\n');
    }
    if (c->scratch)
        buf_printf(t->out, "%*sscratch  %s at %" PRIu64 "\n", (int)(2 * indent), "",
                   memory_text(c->scratch, bytes), c->scratch_at);
}

/* How often a loop is gone through, where that depends on no loop around it. */
static bool trips(struct program *p, const struct contract_step *s, int64_t *n)
{
    struct run *r = p->r;
    struct diags *d = r->d;
    int64_t low = 0;
    r->d = diags_new(r->arena);
    const bool good = run_eval(r, s->high, n) && (!s->low || run_eval(r, s->low, &low));
    r->d = d;
    return good && !__builtin_sub_overflow(*n, low, n);
}

static void print_head(const struct printer *t, const struct program_step *s)
{
    const struct contract_step *src = s->src;
    int64_t n;
    switch (src->kind) {
    case STEP_CALL:
    case STEP_EQUATION: return;
    case STEP_WHILE: buf_printf(t->out, "while (%s) {\n", s->call->cost.text); return;
    case STEP_IF: buf_printf(t->out, "if (%s) {\n", s->call->cost.text); return;
    case STEP_FOR:
        buf_printf(t->out, "for %s in ", src->index->name);
        lang_print_expr(src->low, t->out);
        buf_puts(t->out, "..");
        break;
    case STEP_REPEAT: buf_puts(t->out, "repeat "); break;
    }
    lang_print_expr(src->high, t->out);
    buf_puts(t->out, " {");
    if (trips(t->p, src, &n))
        buf_printf(t->out, "  # %" PRId64 " times", n);
    buf_putc(t->out, '\n');
}

static void print_steps(const struct printer *t, const struct program_step *v, size_t n,
                        unsigned indent)
{
    for (size_t i = 0; i < n; i++) {
        const struct program_step *s = &v[i];
        buf_printf(t->out, "%*s", (int)(2 * indent), "");
        if (s->src->kind == STEP_CALL) {
            buf_puts(t->out, s->call->cost.text);
            if (s->src->line)
                buf_printf(t->out, " line %" PRIu32, s->src->line);
            buf_putc(t->out, '\n');
            print_launches(t, s->call, indent + 2);
            continue;
        }
        print_head(t, s);
        if (s->call)
            print_launches(t, s->call, indent + 2);
        print_steps(t, s->body, s->nbody, indent + 1);
        if (s->nother) {
            buf_printf(t->out, "%*s} else {\n", (int)(2 * indent), "");
            print_steps(t, s->other, s->nother, indent + 1);
        }
        buf_printf(t->out, "%*s}\n", (int)(2 * indent), "");
    }
}

bool run_print_plan(struct run *r, const struct ptx_module *m, struct buf *out)
{
    if (!r->contract->is_program)
        return diag_error(r->d, SPAN_NONE, "'%s' is a kernel, and a plan is of programs",
                          r->contract->kernel);
    struct program *p = program_prepare(r, m, false);
    if (!p)
        return false;
    struct printer t = {.p = p, .out = out};
    buf_printf(out, "program: %s\n", r->contract->kernel);
    print_memory(&t);
    buf_puts(out, "steps:\n");
    print_steps(&t, p->step, p->nstep, 1);
    program_forget(p);
    return true;
}

/* ---- costs ----------------------------------------------------------------------------------- */

void run_print_profile(const struct run *r, struct buf *out)
{
    double all = 0;
    for (size_t i = 0; i < r->costs.n; i++)
        all += r->costs.v[i].seconds;
    buf_puts(out, "line     calls  launches  instructions     time/ms  share  step\n");
    for (size_t i = 0; i < r->costs.n; i++) {
        const struct run_cost *c = &r->costs.v[i];
        const double share = all > 0 ? 100 * c->seconds / all : 0;
        buf_printf(out, "%4.0" PRIu32 "  %8" PRIu64 "  %8" PRIu64 "  %12.4g  %10.3f  %4.1f%%  %s\n",
                   c->line, c->calls, c->launches, (double)c->thread_instructions, 1e3 * c->seconds,
                   share, c->text);
    }
}
