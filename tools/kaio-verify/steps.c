/* --steps: what a kernel stores on its way, judged one by one.
 *
 * The bound of a long chain grows until it says nothing. But a kernel of several stages leaves its
 * intermediates in temps and in outputs, where they can be read back. Each of them is judged by
 * what its stage made it from: the reference gets the kernel's own values of those that the stage
 * read, and evaluates the equations between them alone. If every step is right so are the outputs,
 * and a step that is wrong has a name.
 *
 * A stage is the launches of one step of the contract. The first stage that has a temp or an out
 * parameter among its arguments writes it; of an inout it is the last. From then on every stage
 * that needs the value reads it there. A stage before that computes it for itself, and a value that
 * is not among a stage's arguments was not read from memory.
 */
#include <config.h>

#include "trial.h"

enum { NO_STAGE = UINT32_MAX };

/* Where the values of an equation lie. */
struct place {
    struct run_param *p;           /* NULL: nowhere */
    const struct lang_symbol *sym; /* the contract's */
    uint32_t stage;                /* which writes it */
};

struct steps {
    struct trial *t;
    const struct lang_equations *eqs;
    const struct contract *c;
    uint32_t *stage; /* by launch */
    bool *skipped;   /* it is for other sizes */
    uint32_t nstage;
    struct place *place; /* by equation */
};

/* ---- stages ---------------------------------------------------------------------------------- */

static bool arg_is(const struct contract_arg *arg, const struct lang_symbol *sym)
{
    for (size_t i = 0; arg->fields && i < arg->fields->args.n; i++)
        if (arg_is(&arg->fields->args.v[i], sym))
            return true;
    return arg->map ? arg->map->sym == sym : arg->sym == sym;
}

/* Does a launch of the stage have it among its arguments? */
static bool stage_has(const struct steps *s, uint32_t stage, const struct lang_symbol *sym)
{
    for (size_t i = 0; i < s->c->launches.n; i++) {
        const struct contract_launch *l = &s->c->launches.v[i];
        for (size_t k = 0; s->stage[i] == stage && !s->skipped[i] && k < l->args.n; k++)
            if (arg_is(&l->args.v[k], sym))
                return true;
    }
    return false;
}

/* The first stage that has it, or the last; NO_STAGE: none does. */
static uint32_t stage_of(const struct steps *s, const struct lang_symbol *sym, bool last)
{
    uint32_t found = NO_STAGE;
    for (uint32_t k = 0; k < s->nstage && (last || found == NO_STAGE); k++)
        if (stage_has(s, k, sym))
            found = k;
    return found;
}

static void number_stages(struct steps *s)
{
    s->stage = ARENA_ARRAY(s->t->a, s->c->launches.n, uint32_t);
    s->skipped = ARENA_ARRAY(s->t->a, s->c->launches.n, bool);
    for (size_t i = 0; i < s->c->launches.n; i++) {
        s->skipped[i] = run_skips(s->t->run, &s->c->launches.v[i]);
        if (i && s->c->launches.v[i].step != s->c->launches.v[i - 1].step)
            s->nstage++;
        s->stage[i] = s->nstage;
    }
    s->nstage++;
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool has_shape(const struct steps *s, const struct buffer *b, const struct lang_symbol *sym)
{
    bool same = b->type == sym->type && b->rank == sym->rank;
    for (uint32_t k = 0; same && k < sym->rank; k++)
        same = (double)b->dim[k] == cost_extent(s->t->a, &s->t->in, sym->dims[k]);
    return same;
}

/* The temp that has the intermediate's name, and so holds it: lib/lower gives that name to no
 * other. */
static struct run_param *find_temp(const struct steps *s, const struct lang_symbol *sym)
{
    struct run *r = s->t->run;
    for (size_t i = 0; i < r->ntemp; i++) {
        const struct lang_symbol *temp = r->temp[i].sym;
        if (strcmp(temp->name + 1, sym->name) == 0 && !r->contract->temps.v[i].is_zero &&
            has_shape(s, &r->temp[i].host, sym))
            return &r->temp[i];
    }
    return NULL;
}

static void find_place(struct steps *s, size_t k)
{
    const struct lang_symbol *sym = s->eqs->v[k]->sym;
    struct place *at = &s->place[k];
    at->p = sym->kind == SYM_BUFFER ? run_find_param(s->t->run, sym->name) : find_temp(s, sym);
    if (!at->p)
        return;
    at->sym = at->p->sym;
    at->stage = stage_of(s, at->sym, sym->mode == MODE_INOUT);
}

static bool steps_find(struct steps *s, const struct trial *t)
{
    const struct spec *spec = t->k->spec;
    if (spec->has_reference || !spec->has_compute)
        return false; /* the kernel's intermediates are not the oracle's */
    *s = (struct steps){
        .t = (struct trial *)(uintptr_t)t, .eqs = &spec->compute, .c = t->run->contract};
    number_stages(s);
    s->place = ARENA_ARRAY(t->a, s->eqs->n, struct place);
    for (size_t k = 0; k < s->eqs->n; k++)
        find_place(s, k);
    return true;
}

/* ---- what a stage reads ---------------------------------------------------------------------- */

/* Is the temp none of an intermediate's? */
static bool is_passage(const struct steps *s, const struct lang_symbol *temp)
{
    for (size_t k = 0; k < s->eqs->n; k++)
        if (s->place[k].p && s->place[k].sym == temp)
            return false;
    return true;
}

/* Marks the stage, and those before it whose results reach it through temps of no intermediate:
 * they compute parts of its values. */
static void find_parts(const struct steps *s, uint32_t stage, bool *part)
{
    part[stage] = true;
    for (size_t i = 0; i < s->t->run->ntemp; i++) {
        const struct lang_symbol *temp = s->t->run->temp[i].sym;
        const uint32_t from = stage_of(s, temp, false);
        if (from < stage && !part[from] && is_passage(s, temp) && stage_has(s, stage, temp))
            find_parts(s, from, part);
    }
}

/* Does every part that needs the equation's value read it from memory? So it is if it was stored
 * before any of them ran, and one has it among its arguments. */
static bool is_read(const struct steps *s, const struct place *at, const bool *part)
{
    bool read = false;
    if (!at->p || at->stage == NO_STAGE)
        return false;
    for (uint32_t k = 0; k < s->nstage; k++) {
        if (part[k] && k <= at->stage)
            return false;
        read |= part[k] && stage_has(s, k, at->sym);
    }
    return read;
}

/* By equation: the kernel's own values of those that the stage reads. from: their names. */
static const void *const *found_by(const struct steps *s, uint32_t stage, word_list *from)
{
    struct arena *a = s->t->a;
    bool *part = ARENA_ARRAY(a, s->nstage, bool);
    const void **found = ARENA_ARRAY(a, s->eqs->n, const void *);
    find_parts(s, stage, part);
    for (size_t k = 0; k < s->eqs->n; k++) {
        const struct lang_symbol *sym = s->eqs->v[k]->sym;
        if (sym->mode == MODE_INOUT || !is_read(s, &s->place[k], part))
            continue;
        found[k] = s->place[k].p->result.data;
        *VEC_PUSH(a, from) = sym->name;
    }
    return found;
}

bool steps_any(const struct trial *t)
{
    struct steps s;
    word_list from = {0};
    if (!steps_find(&s, t))
        return false;
    for (uint32_t k = 0; k < s.nstage && !from.n; k++)
        found_by(&s, k, &from);
    return from.n > 0;
}

/* ---- the verdicts ---------------------------------------------------------------------------- */

/* Marks what the stage wrote; of NO_STAGE these are the outputs that no launch takes. False: it
 * wrote nothing. */
static bool find_wanted(const struct steps *s, uint32_t stage, bool *wanted)
{
    bool any = false;
    for (size_t k = 0; k < s->eqs->n; k++) {
        const bool unused = stage == NO_STAGE && s->eqs->v[k]->sym->kind == SYM_TENSOR;
        wanted[k] = s->place[k].p && s->place[k].stage == stage && !unused;
        any |= wanted[k];
    }
    return any;
}

static void judge_one(const struct steps *s, struct ref *ref, size_t k, enum fill_kind kind,
                      const word_list *from)
{
    const struct ref_output *o = ref_output(ref, k);
    const struct lang_symbol *sym = o->equation->sym;
    const struct run_param *p = o->param ? run_find_param(s->t->run, sym->name) : find_temp(s, sym);
    struct compare_result res;
    /* that an intermediate is constant says nothing against the reference */
    compare_output(ref, k, p->result.data, &s->t->k->s->opt->tolerance,
                   o->param && trial_should_vary(s->t, kind), &res);
    struct row row = row_of_result(sym->name, &res);
    row.from = from->v;
    row.nfrom = from->n;
    trial_judged(s->t, &row, kind);
}

static void judge_stage(const struct steps *s, uint32_t stage, const bool *wanted,
                        enum fill_kind kind)
{
    struct trial *t = s->t;
    const struct ref_options ro = trial_ref_options(t);
    struct ref_input in = t->in;
    word_list from = {0};
    in.wanted = wanted;
    in.found = stage < s->nstage ? found_by(s, stage, &from) : NULL;
    t->d = diags_new(t->a);
    struct ref *ref = ref_evaluate(t->a, &in, &ro, t->d);
    if (!ref) {
        trial_no_reference(t, kind);
        return;
    }
    for (size_t k = 0; k < ref_noutput(ref) && !session_over(t->k->s); k++)
        judge_one(s, ref, k, kind, &from);
    ref_free(ref);
}

void steps_judge(struct trial *t, enum fill_kind kind)
{
    struct steps s;
    bool *wanted = ARENA_ARRAY(t->a, t->k->spec->compute.n, bool);
    if (!steps_find(&s, t))
        return;
    for (uint32_t k = 0; k <= s.nstage && !session_over(t->k->s); k++)
        if (find_wanted(&s, k < s.nstage ? k : NO_STAGE, wanted))
            judge_stage(&s, k, wanted, kind);
}
