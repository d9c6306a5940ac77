/* Through a program's steps in the order of execution: in the rehearsal, which launches nothing and
 * goes through as much as there is to find out, and on the device. */
#include <config.h>

#include <inttypes.h>

#include "run/program.h"

/* Of a rehearsal: calls and iterations. Beyond it every step is still gone through once. */
static const uint64_t BUDGET = 1 << 16;

static enum device_status walk(struct program *p, const struct program_step *v, size_t n);

/* The line of a loop, or of the first call in it. */
static void note_step(struct program *p, const struct program_step *s)
{
    const struct contract_step *src = s->src;
    for (size_t i = 0; !src->line && i < s->ncall; i++)
        src = p->call[s->first + i].step;
    if (src->line)
        diag_note(p->r->d, program_span(p->r->arena, p->r->contract, src),
                  src == s->src ? "in the loop of line %" PRIu32
                                : "in the loop around the step of line %" PRIu32,
                  src->line);
}

/* A number that a loop needs. */
static bool loop_number(struct program *p, const struct program_step *s, const struct lang_expr *e,
                        int64_t *value)
{
    if (run_eval(p->r, e, value))
        return true;
    note_step(p, s);
    return false;
}

static const char *because(struct program *p, const struct lang_expr *e)
{
    const char *values = run_values_text(p->r, e);
    return *values ? arena_printf(p->r->arena, "; %s", values) : "";
}

/* Whether it is time to end; of a rehearsal never. */
static enum device_status iteration(struct program *p, const struct program_step *s)
{
    const uint64_t most = p->job.opt.max_iterations;
    if (p->rehearsal) {
        p->budget -= p->budget > 0;
        return DEVICE_OK;
    }
    if (p->job.opt.interrupted && *p->job.opt.interrupted) {
        diag_error(p->r->d, s->src->span, "interrupted in this loop");
        note_step(p, s);
        return DEVICE_FAULT;
    }
    if (most && ++p->idle > most) {
        diag_error(p->r->d, s->src->span, "%" PRIu64 " iterations in a row called no kernel", most);
        note_step(p, s);
        return DEVICE_FAULT;
    }
    return DEVICE_OK;
}

static enum device_status visit(struct program *p, struct program_call *c)
{
    p->budget -= p->budget > 0;
    p->idle = 0;
    p->visits++;
    return p->visit(p, c);
}

/* ---- loops with a count ---------------------------------------------------------------------- */

static enum device_status walk_range(struct program *p, const struct program_step *s, int64_t low,
                                     int64_t high)
{
    const bool same = p->rehearsal && !s->varies; /* one iteration is like the other */
    struct run_loop *loop = s->src->index ? &p->loop[p->r->nloop++] : NULL;
    enum device_status status = DEVICE_OK;
    for (int64_t t = low; t < high && status == DEVICE_OK; t++) {
        if (loop)
            *loop = (struct run_loop){s->src->index, t};
        const uint64_t visits = p->visits;
        status = iteration(p, s);
        if (status == DEVICE_OK)
            status = walk(p, s->body, s->nbody);
        if (same || (p->rehearsal && !p->budget))
            break;
        /* nothing was called, so nothing has changed and nothing will */
        if (!s->varies && p->visits == visits)
            break;
    }
    p->r->nloop -= loop != NULL;
    return status;
}

static enum device_status walk_for(struct program *p, const struct program_step *s)
{
    const struct contract_step *src = s->src;
    int64_t low, high;
    if (!loop_number(p, s, src->low, &low) || !loop_number(p, s, src->high, &high))
        return DEVICE_REFUSED;
    if (high < low) {
        diag_error(p->r->d, span_join(src->low->span, src->high->span),
                   "%s runs over %" PRId64 "..%" PRId64 ", which ends before it begins%s%s",
                   src->index->name, low, high, because(p, src->low), because(p, src->high));
        note_step(p, s);
        return DEVICE_REFUSED;
    }
    return walk_range(p, s, low, high);
}

static enum device_status walk_repeat(struct program *p, const struct program_step *s)
{
    int64_t n;
    if (!loop_number(p, s, s->src->high, &n))
        return DEVICE_REFUSED;
    if (n < 0) {
        diag_error(p->r->d, s->src->high->span, "this is %" PRId64 " times%s", n,
                   because(p, s->src->high));
        note_step(p, s);
        return DEVICE_REFUSED;
    }
    return walk_range(p, s, 0, n);
}

/* ---- what a kernel answers ------------------------------------------------------------------- */

static enum device_status never_ends(struct program *p, const struct program_step *s)
{
    diag_error(p->r->d, s->src->span, "this loop has not ended after %" PRIu64 " iteration%s",
               p->job.opt.max_iterations, p->job.opt.max_iterations == 1 ? "" : "s");
    note_step(p, s);
    diag_note(p->r->d, SPAN_NONE, "more are allowed by --max-iterations, all by 0");
    return DEVICE_FAULT;
}

static enum device_status walk_while(struct program *p, const struct program_step *s)
{
    const uint64_t most = p->job.opt.max_iterations;
    for (uint64_t n = 0;; n++) {
        bool go_on = true;
        enum device_status status = visit(p, s->call);
        if (status == DEVICE_OK && !p->rehearsal)
            status = program_answer(p, s->call, &go_on);
        if (status != DEVICE_OK || !go_on)
            return status;
        if (!p->rehearsal && most && n == most)
            return never_ends(p, s);
        status = iteration(p, s);
        if (status == DEVICE_OK)
            status = walk(p, s->body, s->nbody);
        if (status != DEVICE_OK || p->rehearsal)
            return status;
    }
}

static enum device_status walk_if(struct program *p, const struct program_step *s)
{
    bool holds = true;
    enum device_status status = visit(p, s->call);
    if (status == DEVICE_OK && !p->rehearsal)
        status = program_answer(p, s->call, &holds);
    if (status == DEVICE_OK && holds)
        status = walk(p, s->body, s->nbody);
    if (status == DEVICE_OK && (!holds || p->rehearsal))
        status = walk(p, s->other, s->nother);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

static enum device_status walk_step(struct program *p, const struct program_step *s)
{
    switch (s->src->kind) {
    case STEP_CALL: return visit(p, s->call);
    case STEP_FOR: return walk_for(p, s);
    case STEP_REPEAT: return walk_repeat(p, s);
    case STEP_WHILE: return walk_while(p, s);
    case STEP_IF: return walk_if(p, s);
    case STEP_EQUATION: break;
    }
    return DEVICE_OK;
}

static enum device_status walk(struct program *p, const struct program_step *v, size_t n)
{
    enum device_status status = DEVICE_OK;
    /* a loop around no call is no work, however often it is gone through; but what is wrong with
     * its numbers is */
    for (size_t i = 0; i < n && status == DEVICE_OK; i++)
        if (v[i].ncall || p->rehearsal)
            status = walk_step(p, &v[i]);
    return status;
}

enum device_status program_walk(struct program *p)
{
    p->r->nloop = 0;
    p->idle = 0;
    return walk(p, p->step, p->nstep);
}

static enum device_status rehearse(struct program *p, struct program_call *c)
{
    if (!program_resolve(p, c))
        return DEVICE_REFUSED;
    const uint64_t bytes = program_scratch(c);
    c->scratch = bytes > c->scratch ? bytes : c->scratch;
    if (p->show) {
        const struct run_call shown = program_shown(p, c);
        p->show(p->show_ctx, &shown);
        c->cost.calls++;
    }
    return DEVICE_OK;
}

bool program_rehearse(struct program *p)
{
    p->rehearsal = true;
    p->budget = BUDGET;
    p->visit = rehearse;
    const bool good = program_walk(p) == DEVICE_OK;
    p->rehearsal = false;
    return good;
}
