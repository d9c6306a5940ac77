/* A wrong kernel is caught: changes one operand, index, constant or comparison of a spec's PTX at a
 * time, runs the result on the simulator and asks whether the validator, the simulator or the
 * comparison with the reference notices.
 *
 *     mutate [--limit=N] [--seed=N] [--verbose] [SPEC]...      default: every spec of the library
 *
 * Every instruction operand gets its mutants; with --limit N of them are drawn at random for each
 * kernel (0: all, the default is what 'make check' can afford). Prints TAP: one line a kernel with
 * its kill rate, survivors as comments, and one for each sort of kernel. A kernel's unchanged PTX
 * must pass, or nothing would be shown.
 *
 * Survivors are of two kinds. Some are equivalent, with the very bytes of the unchanged kernel on
 * all inputs: a 64-bit division where a 32-bit one would do, a clamp moved to where it still has no
 * effect, a zero set to zero. Others give other bytes, each within its documented error: the
 * low-order terms of a function that is accurate to f32 where the output is f16.
 */
#include <config.h>

#include "base/io.h"
#include "base/num.h"
#include "data/generate.h"
#include "lower/lower.h"
#include "ptx/ptx.h"
#include "ref/compare.h"
#include "ref/fill.h"
#include "run/plan.h"
#include "run/run.h"
#include "values.h"
#include "unit/tap.h"

#include <glob.h>

enum { MAX_TRIALS = 24, MOST_ELEMENTS = 1 << 19, MOST_TERMS = 1 << 24 };
static const uint64_t STOP_AFTER = 200 * 1000 *
                                   1000; /* thread-instructions: endless loops end here */

struct trial {
    struct run *run;
    struct ref *ref;
    bool vary;
    void **bytes; /* by parameter: an output's bytes from the unchanged kernel */
};

struct suite {
    struct arena *a;
    struct diags *d;
    struct spec *spec;
    struct contract *contract;
    struct device *dev;
    struct trial trial[MAX_TRIALS];
    size_t ntrial;
    const struct ptx_module *module; /* being changed in place, and put back */
};

static uint64_t random_state = 1;

static uint64_t draw(uint64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return n ? (random_state >> 33) % n : 0;
}

/* ---- running a module ------------------------------------------------------------------------ */

static bool passes(struct suite *s, const struct trial *t, const struct ptx_module *m,
                   struct diags *d)
{
    static const struct tolerance analysed = {.ulp = -1};
    struct diags *keep = t->run->d;
    t->run->d = d;
    enum device_status st = run_execute(t->run, m, &sim_device, s->dev, NULL, NULL);
    t->run->d = keep;
    if (st != DEVICE_OK || d->nwarning) /* of registers that nothing writes */
        return false;
    for (size_t k = 0; k < ref_noutput(t->ref); k++) {
        const struct run_param *p = run_find_param(t->run, ref_output(t->ref, k)->param->sym->name);
        struct compare_result res;
        compare_output(t->ref, k, p->result.data, &analysed, t->vary, &res);
        if (res.status == COMPARE_FAIL)
            return false;
    }
    return true;
}

static bool same_bytes(const struct trial *t)
{
    bool same = true;
    for (size_t k = 0; k < t->run->nparam; k++) {
        const struct run_param *p = &t->run->param[k];
        if (run_is_output(p) && p->result.data)
            same = same && memcmp(t->bytes[k], p->result.data, p->result.bytes) == 0;
    }
    return same;
}

static void keep_bytes(struct suite *s, struct trial *t)
{
    t->bytes = ARENA_ARRAY(s->a, t->run->nparam, void *);
    for (size_t k = 0; k < t->run->nparam; k++) {
        const struct run_param *p = &t->run->param[k];
        if (!run_is_output(p) || !p->result.data)
            continue;
        t->bytes[k] = arena_alloc(s->a, p->result.bytes);
        memcpy(t->bytes[k], p->result.data, p->result.bytes);
    }
}

enum fate {
    KILLED,
    WITHIN,   /* other bytes, but each within its bound: as good a kernel as the unchanged one */
    NO_EFFECT /* the same bytes in every trial */
};

/* What becomes of the module as it stands: refused, wrong in a trial, or alive. */
static enum fate fate(struct suite *s)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct buf text = buf_in(a);
    ptx_print(s->module, &text);
    const struct source *src = source_new(a, "mutant.ptx", buf_text(&text), text.len);
    struct ptx_module *m = ptx_parse(a, src, d);
    bool alive = m && ptx_validate(m, d) && sim_device.load(s->dev, src, d) == DEVICE_OK,
         same = true;
    for (size_t k = 0; k < s->ntrial && alive; k++) {
        alive = passes(s, &s->trial[k], m, d);
        if (alive && !s->trial[k].bytes)
            keep_bytes(s, &s->trial[k]);
        same = same && alive && same_bytes(&s->trial[k]);
    }
    arena_free(a);
    return !alive ? KILLED : same ? NO_EFFECT : WITHIN;
}

/* ---- setting up ------------------------------------------------------------------------------ */

/* What the case fills the input with; NULL: it does not say. */
static const char *made_by(const struct spec_case *c, const char *input)
{
    for (size_t k = 0; k < c->bind.n; k++)
        if (c->bind.v[k].made && strcmp(c->bind.v[k].name, input) == 0)
            return c->bind.v[k].made;
    return NULL;
}

static bool make_input(struct suite *s, const char *text, struct run_param *p)
{
    struct generator g;
    size_t used;
    return generator_parse(s->a, p->sym->name, text, strlen(text), &g, &used, s->d) &&
           generator_fill(&g, p->sym->name, &p->host, s->d);
}

static bool add_trial(struct suite *s, const struct spec_case *c, enum fill_kind kind)
{
    struct run *r = run_new(s->a, s->contract, s->d);
    struct trial *t = &s->trial[s->ntrial];
    uint64_t elements = 0;
    for (size_t k = 0; k < c->bind.n; k++) {
        const struct spec_binding *b = &c->bind.v[k];
        struct run_dim *dim = run_find_dim(r, b->name);
        struct run_param *p = run_find_param(r, b->name);
        if (b->type != DT_VOID || b->made)
            continue;
        if (dim ? !run_bind_dim(r, dim, b->i, c->name) : !p || !run_bind_scalar(r, p, b->f, b->i))
            return false;
    }
    if (!run_shapes(r))
        return false;
    for (size_t k = 0; k < r->nparam; k++)
        elements += r->param[k].host.count;
    if (elements > MOST_ELEMENTS || s->ntrial == MAX_TRIALS)
        return true;
    struct ref_input *in = ARENA_NEW(s->a, struct ref_input);
    *in = values_of(s->a, s->spec, r);
    if (elements * fill_terms(in) > MOST_TERMS)
        return true;
    for (size_t k = 0; k < r->nparam; k++) {
        struct run_param *p = &r->param[k];
        if (!run_is_input(p))
            continue;
        struct fill_use use = fill_use_of(in, &s->spec->params.v[k]);
        const char *made = made_by(c, p->sym->name);
        buffer_alloc(s->a, &p->host, NULL);
        if (!made)
            fill_buffer(kind, 1, p->sym->name, &use, fill_terms(in), &p->host);
        else if (!make_input(s, made, p))
            return false;
    }
    *in = values_of(s->a, s->spec, r);
    struct ref_options ro = {.threads = 1};
    const struct spec_sums none = {RUN_NOT_GIVEN, RUN_NOT_GIVEN, RUN_NOT_GIVEN};
    if (!run_sums(r, &none, &ro.sums))
        return false;
    *t = (struct trial){.run = r, .ref = ref_evaluate(s->a, in, &ro, s->d), .vary = values_vary(r)};
    s->ntrial += t->ref != NULL;
    return t->ref != NULL;
}

/* For kernels over one dimension: a whole number of blocks, whatever a thread's share, and one
 * element less. */
static bool add_sizes(struct suite *s)
{
    static const int64_t sizes[] = {16383, 16384};
    bool good = true;
    for (size_t k = 0; s->spec->dims.n == 1 && k < 2; k++) {
        struct spec_case c = {.name = "whole blocks"};
        struct spec_binding *b = VEC_PUSH(s->a, &c.bind);
        *b = (struct spec_binding){.name = s->spec->dims.v[0]->name,
                                   .type = DT_VOID,
                                   .is_int = true,
                                   .i = sizes[k],
                                   .f = (double)sizes[k]};
        good = good && add_trial(s, &c, FILL_EXACT);
    }
    return good;
}

static bool start(struct suite *s)
{
    const struct ptx_target *target = ptx_target_find("sm_80", 5);
    struct ptx_module *made =
        lower_specs(s->a, &s->spec, 1, target, &(struct lower_options){0}, s->d);
    if (!made)
        return false;
    struct buf text = buf_in(s->a);
    ptx_print(made, &text);
    struct ptx_module *m =
        ptx_parse(s->a, source_new(s->a, "kernel.ptx", buf_text(&text), text.len), s->d);
    if (!m)
        return false;
    struct contract_file *f =
        contract_read(s->a, source_new(s->a, "contract", m->header, strlen(m->header)), s->d);
    struct device_options opt = {.threads = 1, .max_instructions = STOP_AFTER};
    if (!f || sim_device.open(s->a, 0, &opt, &s->dev, s->d) != DEVICE_OK)
        return false;
    s->contract = f->v.v[0];
    s->module = m;
    for (size_t k = 0; k < s->spec->cases.n; k++)
        for (int fill = FILL_EXACT; fill <= FILL_EDGE; fill++)
            if (fill != FILL_UNIFORM && spec_case_fits(s->spec, &s->spec->cases.v[k]) &&
                !add_trial(s, &s->spec->cases.v[k], (enum fill_kind)fill))
                return false;
    return add_sizes(s) && s->ntrial > 0;
}

static void finish(struct suite *s)
{
    for (size_t k = 0; k < s->ntrial; k++)
        ref_free(s->trial[k].ref);
    if (s->dev)
        sim_device.close(s->dev);
}

/* ---- mutants --------------------------------------------------------------------------------- */

enum change {
    CHANGE_REG,
    CHANGE_UP,
    CHANGE_DOWN,
    CHANGE_SREG,
    CHANGE_SYM,
    CHANGE_LABEL,
    CHANGE_COMPARE,
    CHANGE_EDGE,
    CHANGE_GUARD,
    CHANGE_NEG
};

struct mutant {
    struct ptx_func *func;
    struct ptx_item *item;
    struct ptx_operand *operand; /* NULL: the instruction itself */
    enum change change;
};
struct mutants {
    struct arena *a;
    VEC(struct mutant) v;
};

static void add(struct mutants *l, struct ptx_func *f, struct ptx_item *i, struct ptx_operand *o,
                enum change c)
{
    *VEC_PUSH(l->a, &l->v) = (struct mutant){f, i, o, c};
}

static void list_operand(struct mutants *l, struct ptx_func *f, struct ptx_item *i,
                         struct ptx_operand *o)
{
    switch (o->kind) {
    case PTX_O_REG:
        add(l, f, i, o, CHANGE_REG);
        if (o->neg)
            add(l, f, i, o, CHANGE_NEG);
        break;
    case PTX_O_IMM:
    case PTX_O_F32:
    case PTX_O_F64:
        add(l, f, i, o, CHANGE_UP);
        add(l, f, i, o, CHANGE_DOWN);
        break;
    case PTX_O_SREG: add(l, f, i, o, CHANGE_SREG); break;
    case PTX_O_LABEL: add(l, f, i, o, CHANGE_LABEL); break;
    case PTX_O_MEM:
        if (o->reg >= 0) {
            add(l, f, i, o, CHANGE_REG);
            add(l, f, i, o, CHANGE_UP);
            add(l, f, i, o, CHANGE_DOWN);
        } else if (o->var) {
            add(l, f, i, o, CHANGE_SYM);
        }
        break;
    case PTX_O_VEC:
        for (uint32_t k = 0; k < o->nelem; k++)
            list_operand(l, f, i, &o->elem[k]);
        break;
    default: break;
    }
}

/* Of several entries for different sizes, does a trial launch this one? */
static bool is_launched(struct suite *s, const struct ptx_func *f)
{
    for (size_t k = 0; k < s->ntrial; k++) {
        struct plan plan;
        if (!plan_make(s->trial[k].run, NULL, &plan))
            return false;
        for (size_t i = 0; i < plan.n; i++)
            if (strcmp(plan.v[i].src->entry, f->name) == 0)
                return true;
    }
    return false;
}

static void list_mutants(struct mutants *l, struct suite *s)
{
    const struct ptx_module *m = s->module;
    for (size_t k = 0; k < m->items.n; k++) {
        struct ptx_func *f = m->items.v[k].kind == PTX_I_FUNC ? m->items.v[k].func : NULL;
        if (f && !is_launched(s, f))
            continue;
        for (size_t i = 0; f && i < f->items.n; i++) {
            struct ptx_item *item = &f->items.v[i];
            if (item->kind != PTX_I_INST)
                continue;
            for (unsigned o = 0; o < item->inst.noperand; o++)
                list_operand(l, f, item, &item->inst.operand[o]);
            if (item->inst.mod[PTX_MC_COMPARE]) {
                add(l, f, item, NULL, CHANGE_COMPARE);
                add(l, f, item, NULL, CHANGE_EDGE);
            }
            if (item->inst.guard >= 0)
                add(l, f, item, NULL, CHANGE_GUARD);
        }
    }
}

/* Another register of the same type; the same one when there is none. */
static int32_t other_reg(const struct ptx_func *f, int32_t reg)
{
    int32_t same[4096], n = 0;
    for (size_t k = 0; k < f->regs.n && n < 4096; k++)
        if ((int32_t)k != reg && f->regs.v[k].type == f->regs.v[reg].type)
            same[n++] = (int32_t)k;
    return n ? same[draw((uint64_t)n)] : reg;
}

static const struct ptx_var *other_param(const struct ptx_func *f, const struct ptx_var *v)
{
    const struct ptx_var *same[256];
    uint64_t n = 0;
    for (size_t k = 0; k < f->params.n && n < 256; k++)
        if (f->params.v[k] != v && f->params.v[k]->type == v->type)
            same[n++] = f->params.v[k];
    return n ? same[draw(n)] : v;
}

/* Twice the value, or the other sign. */
static uint64_t change_float(const struct ptx_operand *o, double sign)
{
    if (o->kind == PTX_O_F32) {
        float f;
        uint32_t b = (uint32_t)o->bits;
        memcpy(&f, &b, 4);
        f = f == 0 ? (float)sign : sign > 0 ? 2 * f : -f;
        memcpy(&b, &f, 4);
        return b;
    }
    double d;
    uint64_t b;
    memcpy(&d, &o->bits, 8);
    d = d == 0 ? sign : sign > 0 ? 2 * d : -d;
    memcpy(&b, &d, 8);
    return b;
}

/* lt <-> ge: the opposite. EDGE: lt <-> le, what happens at equality. */
static uint16_t other_compare(uint16_t c, bool edge)
{
    static const uint16_t pair[][3] = {
        {PTX_EQ, PTX_NE, PTX_NE},    {PTX_NE, PTX_EQ, PTX_EQ},    {PTX_LT, PTX_GE, PTX_LE},
        {PTX_LE, PTX_GT, PTX_LT},    {PTX_GT, PTX_LE, PTX_GE},    {PTX_GE, PTX_LT, PTX_GT},
        {PTX_LTU, PTX_GEU, PTX_LEU}, {PTX_GEU, PTX_LTU, PTX_GTU}, {PTX_LEU, PTX_GTU, PTX_LTU},
        {PTX_GTU, PTX_LEU, PTX_GEU}, {PTX_EQU, PTX_NEU, PTX_NEU}, {PTX_NEU, PTX_EQU, PTX_EQU},
    };
    for (size_t k = 0; k < sizeof pair / sizeof *pair; k++)
        if (pair[k][0] == c)
            return pair[k][edge ? 2 : 1];
    return c;
}

/* Makes the change; false when there is nothing to change to. The caller keeps copies to put
 * back. */
static bool apply(const struct mutant *m)
{
    struct ptx_inst *in = &m->item->inst;
    struct ptx_operand *o = m->operand;
    int64_t step = 1;
    switch (m->change) {
    case CHANGE_REG: {
        int32_t r = other_reg(m->func, o->reg);
        bool changed = r != o->reg;
        o->reg = r;
        return changed;
    }
    case CHANGE_UP:
    case CHANGE_DOWN:
        if (o->kind == PTX_O_F32 || o->kind == PTX_O_F64) {
            o->bits = change_float(o, m->change == CHANGE_UP ? 1 : -1);
            return true;
        }
        if (o->kind == PTX_O_MEM)
            step = (int64_t)(ptx_type_bits((enum ptx_mod)in->type[0]) + 7) / 8;
        o->bits += (uint64_t)(m->change == CHANGE_UP ? step : -step);
        return true;
    case CHANGE_SREG: {
        enum ptx_sreg was = o->sreg;
        while (o->sreg == was)
            o->sreg = (enum ptx_sreg)(PTX_SR_TID_X + draw(PTX_SR_NCTAID_Z - PTX_SR_TID_X + 1));
        return true;
    }
    case CHANGE_SYM: {
        const struct ptx_var *v = other_param(m->func, o->var);
        bool changed = v != o->var;
        o->var = v;
        return changed;
    }
    case CHANGE_LABEL: {
        uint32_t was = o->label;
        if (m->func->labels.n < 2)
            return false;
        while (o->label == was)
            o->label = (uint32_t)draw(m->func->labels.n);
        return true;
    }
    case CHANGE_COMPARE:
    case CHANGE_EDGE: {
        const uint16_t was = in->mod[PTX_MC_COMPARE];
        static struct ptx_words words; /* one instruction is changed at a time */
        memcpy(words.mod, in->mod, sizeof words.mod);
        memcpy(words.type, in->type, sizeof words.type);
        words.mod[PTX_MC_COMPARE] = other_compare(was, m->change == CHANGE_EDGE);
        in->mod = words.mod;
        in->type = words.type;
        return in->mod[PTX_MC_COMPARE] != was;
    }
    case CHANGE_GUARD: in->guard_neg = !in->guard_neg; return true;
    case CHANGE_NEG: o->neg = !o->neg; return true;
    }
    return false;
}

static const char *inst_text(struct arena *a, const struct mutant *m)
{
    struct buf b = buf_in(a);
    if (m->item->inst.guard >= 0)
        buf_printf(&b, "@%s%s ", m->item->inst.guard_neg ? "!" : "",
                   m->func->regs.v[m->item->inst.guard].name);
    ptx_print_inst(m->func, &m->item->inst, &b);
    return buf_text(&b);
}

struct tally {
    size_t made, count[NO_EFFECT + 1];
    double rate, caught; /* killed, of all and of those with any effect */
};
static const char *const fate_names[] = {"killed", "within the bound", "no effect"};

static void one_mutant(struct suite *s, const struct mutant *m, struct tally *t, bool verbose)
{
    struct arena *a = arena_new();
    struct ptx_inst inst = m->item->inst;
    struct ptx_operand operand = m->operand ? *m->operand : (struct ptx_operand){0};
    const char *before = inst_text(a, m);
    if (apply(m)) {
        enum fate f = fate(s);
        t->made++;
        t->count[f]++;
        if (f != KILLED || verbose)
            tap_note("%s: %s: %s -> %s", fate_names[f], s->spec->name, before, inst_text(a, m));
    }
    m->item->inst = inst;
    if (m->operand)
        *m->operand = operand;
    arena_free(a);
}

/* least: of all mutants. least_effective: of those that change any byte of an output. */
static void report(struct tally *t, const char *name, double least, double least_effective)
{
    size_t effect = t->made - t->count[NO_EFFECT];
    t->rate = (double)t->count[KILLED] / (double)(t->made ? t->made : 1);
    t->caught = (double)t->count[KILLED] / (double)(effect ? effect : 1);
    ok(t->made > 0 && t->rate >= least && t->caught >= least_effective,
       "%s: %zu of %zu mutants killed (%.2f %%; %.2f %% of those with any effect); %zu without "
       "effect, %zu within the bound",
       name, t->count[KILLED], t->made, 100 * t->rate, 100 * t->caught, t->count[NO_EFFECT],
       t->count[WITHIN]);
}

/* What must be caught, of all mutants and of those that change any byte of an output: of a kernel's
 * sample, which may be an unlucky one, and of all kernels of its sort. Equations with reductions
 * have code for every range of sizes, and what in an entry is for larger ones than the trials' has
 * no effect on them, so that the second figure means more there. A body has spare guards, a
 * reduction leaves its result with every thread, so that it is all the same which of them writes
 * it, an exchange between lanes may add them up in another order, and what the low-order terms of a
 * function in a function do is far below the bound of the whole. */
enum sort { EQUATIONS, BODIES, NSORT };
static const struct gate {
    const char *name;
    double one, one_effective, all, all_effective;
} gates[NSORT] = {
    [EQUATIONS] = {"all kernels made from equations", 0.2, 0.85, 0.65, 0.97},
    [BODIES] = {"all kernels with a body", 0.65, 0.85, 0.88, 0.96},
};

/* A sample of the kernels may have more of those that only their own sizes reach. */
static const double sample_slack = 0.2;

/* The mean over kernels, so that the longest does not stand for all when every mutant is tried. */
struct total {
    size_t kernels, made, killed;
    double rate, caught;
};

static void add_total(struct total *total, const struct tally *t)
{
    total->kernels++;
    total->made += t->made;
    total->killed += t->count[KILLED];
    total->rate += t->rate;
    total->caught += t->caught;
}

static void report_total(const struct total *t, const struct gate *g, double slack)
{
    double n = (double)t->kernels;
    ok(t->rate >= (g->all - slack) * n && t->caught >= g->all_effective * n,
       "%s, %zu: %.2f %% on average, %.2f %% of those with any effect; %zu of %zu mutants killed",
       g->name, t->kernels, 100 * t->rate / n, 100 * t->caught / n, t->killed, t->made);
}

static void mutate(struct spec *spec, size_t limit, bool verbose, struct total total[NSORT])
{
    enum sort sort = spec->has_compute ? EQUATIONS : BODIES;
    struct suite s = {.a = arena_new(), .spec = spec};
    s.d = diags_new(s.a);
    struct mutants all = {.a = s.a};
    struct tally t = {0};
    bool good = start(&s) && fate(&s) != KILLED;
    if (!ok(good, "%s: unchanged, it passes %zu trials", spec->name, s.ntrial)) {
        struct buf b = buf_in(s.a);
        diags_format(s.d, "mutate", false, &b);
        fputs(buf_text(&b), stderr);
    } else {
        list_mutants(&all, &s);
        /* the first of a random order: Fisher and Yates */
        size_t n = limit && limit < all.v.n ? limit : all.v.n;
        for (size_t k = 0; k < n; k++) {
            size_t j = limit ? k + draw(all.v.n - k) : k;
            struct mutant m = all.v.v[j];
            all.v.v[j] = all.v.v[k];
            all.v.v[k] = m;
            one_mutant(&s, &m, &t, verbose);
        }
        report(&t, spec->name, gates[sort].one, gates[sort].one_effective);
    }
    add_total(&total[sort], &t);
    finish(&s);
    arena_free(s.a);
}

static void mutate_file(const char *path, int64_t limit, uint64_t seed, bool verbose,
                        struct total total[NSORT])
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    const struct source *src = io_read(a, d, path, IO_TEXT_LIMIT);
    struct spec_file *f = src ? spec_read(a, src, NULL, 0, d) : NULL;
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
    if (!f)
        ok(false, "%s can be read", path);
    for (size_t i = 0; f && i < f->specs.n; i++)
        mutate(f->specs.v[i], (size_t)limit, verbose, total);
    arena_free(a);
}

static bool number(const char *arg, const char *name, int64_t *v)
{
    size_t n = strlen(name);
    return strncmp(arg, name, n) == 0 &&
           num_int(arg + n, strlen(arg + n), 0, INT32_MAX, v) == NUM_OK;
}

int main(int argc, char **argv)
{
    int64_t limit = 40, seed = 1;
    bool verbose = false;
    struct total total[NSORT] = {0};
    int files = 0;
    for (int k = 1; k < argc; k++) {
        if (number(argv[k], "--limit=", &limit) || number(argv[k], "--seed=", &seed))
            continue;
        if (strcmp(argv[k], "--verbose") == 0)
            verbose = true;
        else
            mutate_file(argv[k], limit, (uint64_t)seed, verbose, total), files++;
    }
    const char *top = getenv("KAIO_SRCDIR");
    /* of the library's specs, and of attention's variants, each as long as ten others, an eighth */
    size_t step = getenv("KAIO_QUICK") ? 12 : 1;
    glob_t g = {0};
    if (!files && top) {
        char pattern[4096];
        snprintf(pattern, sizeof pattern, "%s/specs/*/*.yaml", top);
        if (glob(pattern, 0, NULL, &g) == 0)
            for (size_t k = 0; k < g.gl_pathc; k += step)
                if (k % 8 == 0 || !strstr(g.gl_pathv[k], "/specs/attention/"))
                    mutate_file(g.gl_pathv[k], limit, (uint64_t)seed, verbose, total);
        globfree(&g);
    }
    for (int k = 0; k < NSORT; k++)
        if (total[k].kernels)
            report_total(&total[k], &gates[k], step > 1 ? sample_slack : 0);
    return tap_done();
}
