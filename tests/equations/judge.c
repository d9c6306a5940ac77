#include <config.h>

#include "equations/judge.h"

#include "lower/lower.h"
#include "ref/compare.h"
#include "run/run.h"
#include "sim/sim.h"
#include "values.h"

#include <inttypes.h>

const char *const verdict_names[VERDICTS] = {"right",   "unknown", "unfit",  "refused",
                                             "a fault", "wrong",   "crashed"};

struct judging {
    struct arena *a;
    const struct trial *t;
    struct spec *spec;
    struct run *run;
    struct ref_input in;
    struct ptx_module *module;
    const struct source *ptx;
    struct diags *d;
    struct spec_sums sums;
};

static const char *first_error(const struct diags *d)
{
    for (size_t i = 0; i < d->list.n; i++)
        if (d->list.v[i].level == DIAG_ERROR)
            return d->list.v[i].text;
    return "failed";
}

static const char *errors(struct judging *j)
{
    struct diags *d = diags_new(j->a);
    struct buf b = buf_in(j->a);
    for (size_t i = 0; i < j->d->list.n; i++)
        if (j->d->list.v[i].level == DIAG_ERROR)
            *VEC_PUSH(j->a, &d->list) = j->d->list.v[i];
    diags_format(d, "equations", false, &b);
    return buf_text(&b);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static struct spec *read_spec(struct judging *j, const struct spec_define *def, size_t n)
{
    const struct source *src = source_new(j->a, "spec.yaml", j->t->text, strlen(j->t->text));
    struct spec_file *f = spec_read(j->a, src, def, n, j->d);
    return f && f->specs.n == 1 && f->specs.v[0]->cases.n == 1 ? f->specs.v[0] : NULL;
}

static bool is_zero(const struct trial *t, const char *name)
{
    return t->zero && strcmp(t->zero, name) == 0;
}

static bool is_dimension(const struct spec *s, const char *name)
{
    for (size_t i = 0; i < s->dims.n; i++)
        if (strcmp(s->dims.v[i]->name, name) == 0)
            return true;
    return false;
}

static bool read_fixed(struct judging *j)
{
    j->spec = read_spec(j, NULL, 0);
    if (!j->spec || !j->t->fixed)
        return j->spec != NULL;
    const struct spec_case *c = &j->spec->cases.v[0];
    struct spec_define *def = ARENA_ARRAY(j->a, c->bind.n + 1, struct spec_define);
    size_t n = 0;
    for (size_t i = 0; i < c->bind.n; i++)
        if ((j->t->fixed >> (i & 63) & 1) && is_dimension(j->spec, c->bind.v[i].name) &&
            !is_zero(j->t, c->bind.v[i].name))
            def[n++] = (struct spec_define){c->bind.v[i].name, (uint64_t)c->bind.v[i].i, DT_VOID};
    j->spec = read_spec(j, def, n);
    return j->spec != NULL;
}

static struct contract *emit(struct judging *j)
{
    const struct lower_options lo = {.lines = LOWER_LINES_ALL};
    struct ptx_module *m = lower_specs(j->a, &j->spec, 1, j->t->target, &lo, j->d);
    struct buf text = buf_in(j->a);
    if (!m)
        return NULL;
    ptx_print(m, &text);
    j->ptx = source_new(j->a, "<ptx>", buf_text(&text), text.len);
    j->module = ptx_parse(j->a, j->ptx, j->d);
    if (!j->module || !ptx_validate(j->module, j->d))
        return NULL;
    const char *header = j->module->header;
    struct contract_file *f =
        contract_read(j->a, source_new(j->a, "<contract>", header, strlen(header)), j->d);
    return f && f->v.n ? f->v.v[0] : NULL;
}

static bool bind(struct judging *j)
{
    const struct spec_case *c = &j->spec->cases.v[0];
    for (size_t i = 0; i < c->bind.n; i++) {
        const struct spec_binding *b = &c->bind.v[i];
        struct run_dim *dim = run_find_dim(j->run, b->name);
        struct run_param *p = run_find_param(j->run, b->name);
        if (dim ? !run_bind_dim(j->run, dim, is_zero(j->t, b->name) ? 0 : b->i, "the case says so")
                : p && !run_bind_scalar(j->run, p, b->f, b->i))
            return false;
    }
    if (!run_shapes(j->run) || !run_sums(j->run, NULL, &j->sums))
        return false;
    j->in = values_of(j->a, j->spec, j->run);
    return true;
}

/* ---- the reference --------------------------------------------------------------------------- */

static void fill_inputs(struct judging *j, unsigned halve)
{
    const uint64_t terms = fill_terms(&j->in);
    for (size_t i = 0; i < j->run->nparam; i++) {
        struct run_param *p = &j->run->param[i];
        if (!run_is_input(p))
            continue;
        const struct spec_param *sp = NULL;
        for (size_t k = 0; k < j->spec->params.n; k++)
            if (strcmp(j->spec->params.v[k].sym->name, p->sym->name) == 0)
                sp = &j->spec->params.v[k];
        struct fill_use use = fill_use_of(&j->in, sp);
        use.extent = use.extent >> halve ? use.extent >> halve : 1;
        if (!p->host.data)
            buffer_alloc(j->a, &p->host, NULL);
        fill_buffer(j->t->fill, j->t->seed, p->sym->name, &use, terms, &p->host);
        ((const void **)(uintptr_t)j->in.buffers)[sp->sym->id] = p->host.data;
    }
}

/* NULL with the reason in j->d: as kaio-verify does, with smaller subscripts where they are too
 * large. */
static struct ref *reference(struct judging *j)
{
    const struct ref_options opt = {.threads = 1, .sums = j->sums};
    for (unsigned halve = 0;; halve++) {
        j->d = diags_new(j->a);
        fill_inputs(j, halve);
        struct ref *ref = ref_evaluate(j->a, &j->in, &opt, j->d);
        if (ref || halve == 12 || !strstr(first_error(j->d), "outside 0.."))
            return ref;
    }
}

static enum verdict compare(struct judging *j, struct ref *ref, const char **why)
{
    const struct tolerance exact = {.ulp = -1};
    struct compare_result r;
    bool any = false;
    for (size_t k = 0; k < ref_noutput(ref); k++) {
        const char *name = ref_output(ref, k)->param->sym->name;
        char at[128];
        compare_output(ref, k, run_find_param(j->run, name)->result.data, &exact, false, &r);
        any |= r.compared > r.unbounded;
        if (r.status != COMPARE_FAIL)
            continue;
        const struct compare_miss *m = &r.miss[0];
        compare_position(&r, m->flat, at, sizeof at);
        *why = m->is_int ? arena_printf(j->a,
                                        "%" PRIu64 " of %" PRIu64 " wrong, first %s[%s] is %" PRId64
                                        ", should be %" PRId64 "\n",
                                        r.wrong, r.count, name, at, m->igot, m->iwant)
                         : arena_printf(j->a,
                                        "%" PRIu64 " of %" PRIu64 " wrong, first %s[%s] is %.9g"
                                        ", should be in %.9g..%.9g\n",
                                        r.wrong, r.count, name, at, m->got, m->lo, m->hi);
        return WRONG;
    }
    return any ? RIGHT : UNKNOWN;
}

static enum device_status execute(struct judging *j)
{
    const struct device_options opt = {
        .threads = 1, .max_instructions = UINT64_C(2000000000), .check = DEVICE_CHECK_ALL};
    struct device *dev;
    j->run->d = j->d = diags_new(j->a);
    enum device_status st = sim_device.open(j->a, 0, &opt, &dev, j->d);
    if (st != DEVICE_OK)
        return st;
    st = sim_device.load(dev, j->ptx, j->d);
    if (st == DEVICE_OK)
        st = run_execute(j->run, j->module, &sim_device, dev, NULL, NULL);
    sim_device.close(dev);
    return st;
}

/* What the generator does not look out for: inouts that no order of launches updates, and constants
 * too large for an output. */
static bool is_legitimate(const char *why)
{
    return strstr(why, "is updated in place") || strstr(why, "no order of launches allows") ||
           strstr(why, "the value is out of range");
}

enum verdict judge(struct arena *a, const struct trial *t, const char **why)
{
    struct judging j = {.a = a, .t = t, .d = diags_new(a)};
    *why = "";
    struct contract *c = read_fixed(&j) ? emit(&j) : NULL;
    if (!c) {
        *why = errors(&j);
        bool unfit = t->scheduled || is_legitimate(*why);
        return !j.ptx && unfit ? UNFIT : REFUSED;
    }
    j.run = run_new(a, c, j.d);
    if (!bind(&j)) {
        *why = errors(&j);
        return REFUSED;
    }
    struct ref *ref = reference(&j);
    if (!ref) {
        *why = errors(&j);
        return UNKNOWN;
    }
    enum verdict v = FAULT;
    if (execute(&j) == DEVICE_OK)
        v = compare(&j, ref, why);
    else
        *why = errors(&j);
    ref_free(ref);
    return v;
}
