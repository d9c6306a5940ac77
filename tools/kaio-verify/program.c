/* --run of a program: its inputs are filled by what the kernels do with them that get them, and
 * its calls are judged one by one while it runs (watch.c). */
#include <config.h>

#include "trial.h"

#include "values.h"

const char *program_lacks(const struct options *o)
{
    return o->shapes ? "--shapes" : o->steps ? "--steps" : NULL;
}

bool program_has(const struct session *s, const struct spec *spec)
{
    bool has_program = false;
    for (size_t i = 0; i < s->file->specs.n; i++)
        has_program |= s->file->specs.v[i]->program != NULL;
    return has_program && !spec->program && !s->opt->kernel &&
           (!spec->cases.n || !spec_oracle(spec) || s->values.n);
}

static bool same_param(struct arena *a, const struct lang_symbol *x, const struct lang_symbol *y)
{
    bool same = strcmp(x->name, y->name) == 0 && x->kind == y->kind && x->type == y->type;
    if (same && x->kind == SYM_BUFFER)
        same = x->mode == y->mode && x->rank == y->rank;
    for (uint32_t k = 0; same && x->kind == SYM_BUFFER && k < x->rank; k++)
        same = strcmp(lang_expr_text(a, x->dims[k]), lang_expr_text(a, y->dims[k])) == 0;
    return same;
}

/* PTX that is given may have been made from something else. */
static bool agrees(struct arena *a, const struct spec *s, const struct contract *c)
{
    bool same = s->params.n == c->params.n && s->dims.n == c->dims.n;
    for (size_t i = 0; same && i < s->params.n; i++)
        same = same_param(a, s->params.v[i].sym, c->params.v[i].sym);
    for (size_t i = 0; same && i < s->dims.n; i++)
        same = strcmp(s->dims.v[i]->name, c->dims.v[i]->name) == 0;
    return same;
}

struct spec *program_spec(const struct trial *t, const struct contract *kernel)
{
    const struct program *p = t->k->program;
    for (size_t i = 0; i < p->kernels.n; i++)
        if (strcmp(p->kernels.v[i].spec->name, kernel->kernel) == 0 &&
            agrees(t->a, p->kernels.v[i].spec, kernel))
            return p->kernels.v[i].spec;
    return NULL;
}

/* ---- what the calls do with the inputs ------------------------------------------------------- */

struct uses {
    struct trial *t;
    struct fill_use *use; /* by the program's parameter */
    uint64_t terms;       /* the most of a sum */
    double cost;          /* terms of one call of each step */
    bool exact;           /* all kernels can be */
};

static void merge(struct fill_use *to, const struct fill_use *from, uint32_t dropped)
{
    if (from->subscript) {
        to->padded = from->padded && (to->padded || !to->subscript);
        to->extent = to->subscript && to->extent < from->extent ? to->extent : from->extent;
        to->subscript = true;
    }
    to->divisor |= from->divisor;
    to->shift |= from->shift;
    to->reduced |= from->reduced << dropped;
}

static const struct spec_param *param_of(const struct spec *s, const char *name)
{
    for (size_t i = 0; i < s->params.n; i++)
        if (strcmp(s->params.v[i].sym->name, name) == 0)
            return &s->params.v[i];
    return NULL;
}

/* A view of a parameter has lost the first dimensions. */
static void merge_actual(struct uses *u, const struct contract_actual *actual,
                         const struct spec *spec, const struct ref_input *in)
{
    const struct run *r = u->t->run;
    const struct spec_param *param = param_of(spec, actual->param->sym->name);
    for (size_t i = 0; param && i < r->nparam; i++)
        if (r->param[i].sym == actual->view.sym && param->sym->mode != MODE_OUT) {
            const struct fill_use use = fill_use_of(in, param);
            const uint32_t all = r->param[i].host.rank, part = param->sym->rank;
            merge(&u->use[i], &use, all > part ? all - part : 0);
        }
}

/* Of a step in loops whose calls differ, the first ones will do. */
static void look(void *ctx, const struct run_call *c)
{
    enum { CALLS = 64 };
    struct uses *u = ctx;
    const struct spec *spec = program_spec(u->t, c->step->kernel);
    if (!spec || !spec_oracle(spec) || c->before >= CALLS)
        return;
    struct arena *a = arena_new();
    const struct ref_input in = values_of(a, spec, c->kernel);
    const uint64_t terms = fill_terms(&in);
    u->terms = terms > u->terms ? terms : u->terms;
    u->exact &= fill_can_be_exact(spec);
    if (!c->before)
        u->cost += cost_of(a, &in, u->t->k->s->opt->sample);
    for (size_t i = 0; i < c->step->args.n; i++)
        if (!c->step->args.v[i].value)
            merge_actual(u, &c->step->args.v[i], spec, &in);
    arena_free(a);
}

static bool find_uses(struct trial *t, struct uses *u)
{
    *u = (struct uses){.t = t, .terms = 1, .exact = true};
    u->use = ARENA_ARRAY(t->a, t->run->nparam, struct fill_use);
    return run_calls(t->run, t->k->module, look, u);
}

double program_terms(const struct trial *t)
{
    struct uses u;
    return t->k->program && find_uses((struct trial *)(uintptr_t)t, &u) ? u.cost : 0;
}

/* What a program keeps from launch to launch is zeros at first, and not filled. */
static bool fill_inputs(const struct uses *u, enum fill_kind kind)
{
    struct trial *t = u->t;
    for (size_t i = 0; i < t->run->nparam; i++) {
        struct run_param *p = &t->run->param[i];
        if (!run_is_input(p) || (p->decl->is_state && !t->made[i]))
            continue;
        if (!p->host.data)
            buffer_alloc(t->a, &p->host, p->sym->name);
        if (!t->made[i])
            fill_buffer(kind, t->k->s->opt->seed, p->sym->name, &u->use[i], u->terms, &p->host);
        else if (!trial_make_input(t, t->made[i], p))
            return false;
    }
    return true;
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* NULL after a row that says what went wrong. */
static struct watcher *run_once(const struct uses *u, enum fill_kind kind, bool may_be_nan)
{
    struct trial *t = u->t;
    struct watcher *w = watch_new(t, kind, may_be_nan);
    if (!fill_inputs(u, kind)) {
        trial_error(t, CLI_BAD_INPUT, trial_fill(t, kind));
        return NULL;
    }
    t->watch = watch_of(w);
    const bool good = trial_execute(t, trial_fill(t, kind));
    t->watch = NULL;
    return good ? w : NULL;
}

static void check(const struct uses *u, enum fill_kind kind)
{
    struct trial *t = u->t;
    const struct options *o = t->k->s->opt;
    t->d = t->run->d = diags_new(t->a); /* what was said of the inputs before has been shown */
    const bool may_turn = !o->fills && kind == FILL_NORMAL;
    struct watcher *w = run_once(u, kind, !may_turn);
    if (w && watch_saw_nan(w)) /* logarithms and roots want positive numbers */
        w = run_once(u, kind = FILL_UNIFORM, true);
    if (w && !watch_saw_wrong(w) && !session_over(t->k->s) &&
        (!o->repeat || trial_bit_stable(t, trial_fill(t, kind))))
        watch_end(w);
}

static bool takes(const struct uses *u, enum fill_kind kind)
{
    const struct options *o = u->t->k->s->opt;
    const bool floats = trial_has_float_input(u->t->k->spec);
    if (trial_all_made(u->t))
        return kind == FILL_EXACT;
    if (o->fills)
        return o->fills >> kind & 1;
    return kind == FILL_EXACT ? !floats || u->exact : kind == FILL_NORMAL && floats;
}

void program_run(struct trial *t)
{
    struct uses u;
    if (!find_uses(t, &u)) {
        trial_error(t, CLI_BAD_INPUT, NULL);
        return;
    }
    for (int kind = 0; kind < FILL_KINDS && !session_over(t->k->s); kind++)
        if (takes(&u, (enum fill_kind)kind))
            check(&u, (enum fill_kind)kind);
}
