/* --run SPEC... [CASE]...: emit, run, check. */
#include <config.h>

#include "verify.h"

#include "base/io.h"
#include "base/num.h"
#include "base/progress.h"
#include "lower/lower.h"
#include "ptx/ptx.h"
#include "run/choose.h"
#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Terms that the reference adds up for a case before it counts as large. */
static const double LARGE = 0x1p22;
enum { GUARD = 4096 }; /* bytes on each side of a buffer on a GPU; the simulator knows the bounds */

struct session {
    struct cli *cli;
    const struct options *opt;
    struct arena *a;
    struct diags *d;                        /* for the session as a whole */
    VEC(const char *) specs, cases, values; /* the operands, sorted out */
    bool *case_used;
    const struct device_ops *ops;
    struct device *dev;
    struct device_info info;
    const struct ptx_target *target;
    struct rows rows;
    struct progress progress;
    int status;
};

static void worse(struct session *s, int status)
{
    s->status = status > s->status ? status : s->status;
}

/* ---- the device -------------------------------------------------------------------------------------------- */

static int open_device(struct session *s)
{
    struct device_choice choice;
    const char *why, *env = getenv("KAIO_DEVICE");
    const char *name = s->opt->device ? s->opt->device : env && *env ? env : "auto";
    if (!device_parse(name, &choice))
        cli_usage_error(s->cli, "%s: '%s' is not auto, cuda, cuda:N or cpu",
                        s->opt->device ? "--device" : "KAIO_DEVICE", name);
    if (s->opt->check && choice.ops == &cuda_device)
        cli_usage_error(s->cli, "--check runs on the simulator: -d cpu");
    if (s->opt->check)
        choice.ops = &sim_device;
    device_settle(s->a, &choice, &why);
    if (why)
        cli_note(s->cli, "running on the simulator: %s", why);
    s->ops = choice.ops;
    struct device_options options = {.threads = s->opt->threads,
                                     .max_instructions = s->opt->max_instructions,
                                     .check = s->opt->check,
                                     .interrupted = s->opt->interrupted};
    enum device_status st = s->ops->open(s->a, choice.ordinal, &options, &s->dev, s->d);
    if (st == DEVICE_ABSENT)
        return CLI_NO_DEVICE;
    if (st != DEVICE_OK)
        return CLI_DEVICE_FAILED;
    s->ops->info(s->dev, &s->info);
    return CLI_OK;
}

/* ---- one kernel ---------------------------------------------------------------------------------------------- */

struct kernel {
    struct session *s;
    struct arena *a;
    const char *path;
    struct spec *spec;
    const struct source *ptx;
    struct ptx_module *module;
    struct contract *contract;
    bool loaded;
};

static const char *first_message(const struct diags *d)
{
    for (size_t k = 0; k < d->list.n; k++)
        if (d->list.v[k].level == DIAG_ERROR)
            return d->list.v[k].text;
    return "failed";
}

static const char *test_name(const struct kernel *k, const char *name)
{
    return arena_printf(k->s->a, "%s/%s", k->spec->name, name);
}

/* The command that runs one row alone. */
static const char *repeat_command(const struct kernel *k, const char *words, const char *fill)
{
    const struct options *o = k->s->opt;
    struct buf b = buf_in(k->s->a);
    buf_printf(&b, "kaio-verify --run -d %s -t %s --seed=%llu", k->s->info.kind, k->s->target->name,
               (unsigned long long)o->seed);
    if (fill)
        buf_printf(&b, " --fill=%s", fill);
    if (o->sample)
        buf_printf(&b, " --sample=%llu", (unsigned long long)o->sample);
    if (o->all)
        buf_puts(&b, " --all");
    if (o->repeat)
        buf_puts(&b, " --repeat");
    if (o->check)
        buf_printf(&b, " --check=%s", o->check_words);
    for (size_t i = 0; i < o->ndefine; i++)
        buf_printf(&b, " -D %s", spec_define_text(k->s->a, &o->define[i]));
    if (o->depth >= 0)
        buf_printf(&b, " --depth=%lld", (long long)o->depth);
    if (o->ptx) {
        buf_puts(&b, " --ptx=");
        print_word(o->ptx, &b);
    }
    buf_printf(&b, " --kernel=%s ", k->spec->name);
    print_word(k->path, &b);
    buf_printf(&b, " %s", words);
    return buf_text(&b);
}

/* PTX text, as another program would get it, and the contract read back from it. */
static bool emit(struct kernel *k, struct diags *d)
{
    struct session *s = k->s;
    if (s->opt->ptx) {
        k->ptx = io_read(k->a, d, s->opt->ptx, IO_TEXT_LIMIT);
    } else {
        /* the simulator's findings name the spec's lines */
        const struct lower_options lo = {.lines = s->ops == &sim_device};
        struct ptx_module *made = lower_specs(k->a, &k->spec, 1, s->target, &lo, d);
        if (!made)
            return false;
        struct buf text = buf_in(k->a);
        ptx_print(made, &text);
        k->ptx = source_new(k->a, arena_printf(k->a, "%s.ptx", k->spec->name), buf_text(&text),
                            text.len);
    }
    k->module = k->ptx ? ptx_parse(k->a, k->ptx, d) : NULL;
    if (!k->module || !ptx_validate(k->module, d))
        return false;
    const struct source *header = source_new(k->a,
                                             arena_printf(k->a, "%s (contract)", k->ptx->name),
                                             k->module->header, strlen(k->module->header));
    struct contract_file *file = contract_read(k->a, header, d);
    for (size_t i = 0; file && i < file->v.n; i++)
        if (strcmp(file->v.v[i]->kernel, k->spec->name) == 0)
            k->contract = file->v.v[i];
    return k->contract ? true
           : file      ? diag_error(d, SPAN_NONE, "the PTX has no kernel '%s'", k->spec->name)
                       : false;
}

/* ---- one case --------------------------------------------------------------------------------------------------- */

struct trial {
    struct kernel *k;
    struct arena *a;
    struct diags *d;
    const char *test, *words; /* its name; how it is named on the command line */
    const struct spec_case *named;
    struct run *run;
    struct ref_input in;
    double seconds;
};

static void add_row(struct trial *t, const struct row *base, const char *fill)
{
    struct session *s = t->k->s;
    struct row row = *base;
    row.test = t->test;
    row.device = s->info.kind;
    row.target = s->target->name;
    row.fill = fill;
    row.has_seed = true;
    row.seed = s->opt->seed;
    row.seconds = t->seconds;
    row.repeat = repeat_command(t->k, t->words, fill);
    progress_clear(&s->progress);
    rows_add(&s->rows, &row);
    if (row.status == ROW_FAIL || row.status == ROW_MISTRUST)
        worse(s, CLI_CHECK_FAILED);
}

/* A trial that could not be made. Its diagnostics go to stderr. */
static void add_error(struct trial *t, int status, const char *fill)
{
    progress_clear(&t->k->s->progress);
    cli_report(t->k->s->cli, t->d);
    add_row(
        t, &(struct row){.status = ROW_ERROR, .why = arena_strdup(t->k->s->a, first_message(t->d))},
        fill);
    worse(t->k->s, status);
}

static bool bind_case(struct trial *t)
{
    for (size_t i = 0; t->named && i < t->named->bind.n; i++) {
        const struct spec_binding *b = &t->named->bind.v[i];
        if (b->type != DT_VOID)
            continue; /* the kernel was read so */
        struct run_dim *dim = run_find_dim(t->run, b->name);
        struct run_param *p = run_find_param(t->run, b->name);
        const char *from =
            arena_printf(t->a, "case '%s' says %s=%lld", t->named->name, b->name, (long long)b->i);
        if (dim ? !run_bind_dim(t->run, dim, b->i, from)
            : p ? !run_bind_scalar(t->run, p, b->f, b->i)
                : false)
            return false;
    }
    const struct session *s = t->k->s;
    for (size_t i = 0; !t->named && i < s->values.n; i++) {
        const char *word = s->values.v[i], *eq = strchr(word, '=');
        const char *name = arena_strndup(t->a, word, (size_t)(eq - word));
        struct run_dim *dim = run_find_dim(t->run, name);
        struct run_param *p = run_find_param(t->run, name);
        double f = 0;
        int64_t v = 0;
        bool whole = num_int(eq + 1, strlen(eq + 1), INT64_MIN, INT64_MAX, &v) == NUM_OK;
        bool number = num_double(eq + 1, strlen(eq + 1), &f) == NUM_OK || whole;
        if (!dim && !p)
            return diag_error(t->d, SPAN_NONE, "'%s' has no dimension or scalar '%s'",
                              t->k->spec->name, name);
        if (!number || ((dim || !dtype_is_float(p->sym->type)) && !whole) ||
            (p && run_is_buffer(p)))
            return diag_error(t->d, SPAN_NONE, "'%s': a dimension or a scalar wants a number",
                              word);
        if (dim ? !run_bind_dim(t->run, dim, v, arena_printf(t->a, "%s was given", word))
                : !run_bind_scalar(t->run, p, whole && f == 0 ? (double)v : f, v))
            return false;
    }
    return run_shapes(t->run);
}

/* Fills the inputs. halve: how often the range of integers used as subscripts is halved. */
static bool fill_inputs(struct trial *t, enum fill_kind kind, unsigned halve)
{
    uint64_t terms = fill_terms(&t->in);
    for (size_t i = 0; i < t->run->nparam; i++) {
        struct run_param *p = &t->run->param[i];
        if (!run_is_input(p))
            continue;
        const struct spec_param *sp = NULL;
        for (size_t k = 0; k < t->k->spec->params.n; k++)
            if (strcmp(t->k->spec->params.v[k].sym->name, p->sym->name) == 0)
                sp = &t->k->spec->params.v[k];
        if (!sp)
            return diag_error(t->d, SPAN_NONE, "the PTX has a buffer '%s' that the spec lacks",
                              p->sym->name);
        struct fill_use use = fill_use_of(&t->in, sp);
        use.extent = use.extent >> halve ? use.extent >> halve : 1;
        if (!p->host.data)
            buffer_alloc(t->a, &p->host);
        fill_buffer(kind, t->k->s->opt->seed, p->sym->name, &use, terms, &p->host);
        ((const void **)(uintptr_t)t->in.buffers)[sp->sym->id] = p->host.data;
    }
    return true;
}

/* The reference of the inputs; a subscript out of range makes the range of subscripts smaller. */
static struct ref *reference(struct trial *t, enum fill_kind kind)
{
    const struct options *o = t->k->s->opt;
    struct ref_options ro = {
        .threads = o->threads, .sample = o->sample, .seed = o->seed, .interrupted = o->interrupted};
    if (o->depth >= 0)
        ro.depth = (uint64_t)o->depth;
    else if (!run_depth(t->run, &ro.depth))
        return NULL;
    for (unsigned halve = 0;; halve++) {
        struct diags *d = diags_new(t->a);
        if (!fill_inputs(t, kind, halve))
            return NULL;
        struct ref *ref = ref_evaluate(t->a, &t->in, &ro, d);
        if (ref)
            return ref;
        if (halve < 32 && strstr(first_message(d), "outside 0..") && !*o->interrupted)
            continue;
        for (size_t i = 0; i < d->list.n; i++)
            diag_error(t->d, d->list.v[i].span, "%s", d->list.v[i].text);
        return NULL;
    }
}

/* How much of the reference is NaN. */
static double nan_share(struct ref *ref)
{
    uint64_t nan = 0, all = 0;
    for (size_t k = 0; k < ref_noutput(ref); k++) {
        const struct ref_output *o = ref_output(ref, k);
        for (uint64_t i = 0; o->v && i < o->n; i++)
            nan += isnan(o->v[i]) != 0;
        all += o->n;
    }
    return all ? (double)nan / (double)all : 0;
}

/* What the kernel printed goes to stderr: stdout is the report. */
static void print_messages(struct trial *t)
{
    struct buf text = buf_in(t->a);
    const struct run_messages *m = &t->run->messages;
    run_print_messages(t->run, &text);
    if (text.len == 0 && !m->lost)
        return;
    progress_clear(&t->k->s->progress);
    fwrite(buf_text(&text), 1, text.len, stderr);
    if (m->lost)
        cli_warning(t->k->s->cli, "%s: %llu messages were lost: give --messages=%llu", t->test,
                    (unsigned long long)m->lost, (unsigned long long)m->needed);
}

static bool execute(struct trial *t, const char *fill)
{
    struct session *s = t->k->s;
    struct run_options ro = run_default;
    struct run_stats stats = {0};
    ro.message_bytes = s->opt->message_bytes;
    ro.guard = s->ops == &cuda_device ? GUARD : 0;
    enum device_status st = run_execute(t->run, t->k->module, s->ops, s->dev, &ro, &stats);
    t->seconds += stats.seconds;
    print_messages(t);
    if (st == DEVICE_OK)
        return true;
    if (st != DEVICE_FAULT) {
        add_error(t, st == DEVICE_REFUSED ? CLI_BAD_INPUT : CLI_DEVICE_FAILED, fill);
        return false;
    }
    progress_clear(&s->progress);
    cli_report(s->cli, t->d);
    add_row(t, &(struct row){.status = ROW_FAIL, .why = arena_strdup(s->a, first_message(t->d))},
            fill);
    return false;
}

static bool same_bits(struct trial *t, void **before)
{
    bool same = true;
    for (size_t i = 0; i < t->run->nparam; i++) {
        const struct run_param *p = &t->run->param[i];
        if (run_is_output(p) && p->result.data)
            same = same && memcmp(before[i], p->result.data, p->result.bytes) == 0;
    }
    return same;
}

static bool bit_stable(struct trial *t, const char *fill)
{
    void **before = ARENA_ARRAY(t->a, t->run->nparam, void *);
    for (size_t i = 0; i < t->run->nparam; i++) {
        struct run_param *p = &t->run->param[i];
        if (!run_is_output(p) || !p->result.data)
            continue;
        before[i] = arena_alloc(t->a, p->result.bytes);
        memcpy(before[i], p->result.data, p->result.bytes);
    }
    if (!execute(t, fill))
        return false;
    if (same_bits(t, before))
        return true;
    add_row(t, &(struct row){.status = ROW_FAIL, .why = "two runs gave different bits"}, fill);
    return false;
}

static bool has_float_input(const struct spec *s)
{
    for (size_t k = 0; k < s->params.n; k++) {
        const struct lang_symbol *sym = s->params.v[k].sym;
        if (sym->kind == SYM_BUFFER && sym->mode != MODE_OUT && dtype_is_float(sym->type))
            return true;
    }
    return false;
}

/* Exact values are few, so that a reduction of many may well be the same everywhere: where another fill follows,
 * let that one say whether the reference depends on its inputs. */
static bool should_vary(const struct trial *t, enum fill_kind kind)
{
    if (kind == FILL_EXACT && t->k->s->opt->fill < 0 && has_float_input(t->k->spec))
        return false;
    return values_vary(t->run);
}

static void check(struct trial *t, enum fill_kind kind)
{
    struct session *s = t->k->s;
    t->d = t->run->d = diags_new(t->a); /* what was said of the inputs before has been shown */
    struct ref *ref = reference(t, kind);
    if (ref && s->opt->fill < 0 && kind == FILL_NORMAL && nan_share(ref) > 0.25) {
        ref_free(ref); /* logarithms and roots want positive numbers */
        ref = reference(t, kind = FILL_UNIFORM);
    }
    const char *fill = fill_names[kind];
    if (!ref) {
        add_error(t, *s->opt->interrupted ? CLI_CHECK_FAILED : CLI_BAD_INPUT, fill);
        return;
    }
    if (execute(t, fill) && (!s->opt->repeat || bit_stable(t, fill)))
        for (size_t k = 0; k < ref_noutput(ref); k++) {
            const char *name = ref_output(ref, k)->param->sym->name;
            const struct run_param *p = run_find_param(t->run, name);
            struct compare_result res;
            static const enum row_status of[] = {ROW_PASS, ROW_FAIL, ROW_MISTRUST};
            compare_output(ref, k, p->result.data, &s->opt->tolerance, should_vary(t, kind), &res);
            add_row(t,
                    &(struct row){
                        .status = of[res.status], .output = name, .result = &res, .why = res.why},
                    fill);
        }
    ref_free(ref);
}

static bool value_of(void *ctx, const struct lang_symbol *sym, double *f, int64_t *i)
{
    const struct trial *t = ctx;
    if (sym->kind == SYM_DIM) {
        *i = (int64_t)t->in.dims[sym->id];
        *f = (double)*i;
    } else if (sym->kind == SYM_SCALAR) {
        *i = t->in.scalars[sym->id].i;
        *f = t->in.scalars[sym->id].f;
    }
    return sym->kind == SYM_DIM || sym->kind == SYM_SCALAR;
}

/* The extent, 1 where it depends on an index or on what is in a tensor. */
static double extent_of(const struct trial *t, const struct lang_expr *e)
{
    int64_t v = 1;
    if (!e || !lang_eval_int(e, value_of, (void *)(uintptr_t)t, &v, diags_new(t->a)))
        return 1;
    return v > 0 ? (double)v : 1;
}

/* Work that the reference is: elements of every equation times the ranges of the reductions in it; a sample needs
 * less. */
static double product_of(const struct trial *t, struct lang_symbol *const *index, uint32_t n)
{
    double p = 1;
    for (uint32_t i = 0; i < n; i++)
        p *= extent_of(t, index[i]->dims ? index[i]->dims[0] : NULL);
    return p;
}

static double terms_of(const struct trial *t, const struct lang_expr *e)
{
    double most = 1;
    for (uint32_t k = 0; k < e->nargs; k++)
        most = fmax(most, terms_of(t, e->args[k]));
    return e->kind == E_REDUCE ? most * product_of(t, e->index, e->nindex) : most;
}

static double cost(const struct trial *t)
{
    const struct lang_equations *q = spec_oracle(t->k->spec);
    double sum = 0;
    for (size_t k = 0; k < q->n; k++) {
        double n = product_of(t, q->v[k]->index, q->v[k]->nindex);
        if (t->k->s->opt->sample && q->v[k]->sym->kind == SYM_BUFFER)
            n = fmin(n, (double)t->k->s->opt->sample);
        sum += n * terms_of(t, q->v[k]->rhs);
    }
    return sum;
}

static void run_trial(struct kernel *k, const struct spec_case *named, const char *words)
{
    struct session *s = k->s;
    struct trial t = {.k = k, .a = arena_new(), .named = named, .words = words};
    t.d = diags_new(t.a);
    t.test = test_name(k, named ? named->name : words);
    s->progress.what = t.test;
    progress_step(&s->progress, s->rows.n);
    t.run = run_new(t.a, k->contract, t.d);
    if (!bind_case(&t)) {
        add_error(&t, CLI_BAD_INPUT, NULL);
        arena_free(t.a);
        return;
    }
    t.in = values_of(t.a, k->spec, t.run);
    double c = cost(&t);
    bool exact = fill_can_be_exact(k->spec), floats = has_float_input(k->spec);
    if (c > LARGE && named && !s->opt->all) {
        const char *why = arena_printf(s->a, "large (%.2g terms); --all or --sample=N runs it", c);
        add_row(&t, &(struct row){.status = ROW_SKIP, .why = why}, NULL);
    } else if (s->opt->fill >= 0) {
        check(&t, (enum fill_kind)s->opt->fill);
    } else {
        if (exact || !floats)
            check(&t, FILL_EXACT);
        if (floats && !*s->opt->interrupted)
            check(&t, FILL_NORMAL);
    }
    arena_free(t.a);
}

/* ---- all cases of all specs ---------------------------------------------------------------------------------------- */

static bool wanted(struct session *s, const char *name)
{
    bool any = false;
    for (size_t k = 0; k < s->cases.n; k++)
        if (strcmp(s->cases.v[k], name) == 0)
            any = s->case_used[k] = true;
    return any || (s->cases.n == 0 && s->values.n == 0);
}

/* The kernel was refused before any case could run. */
static void kernel_error(struct kernel *k, struct diags *d, int status)
{
    struct trial t = {.k = k, .a = k->a, .d = d, .test = k->spec->name, .words = ""};
    add_error(&t, status, NULL);
}

static const char *join(struct session *s)
{
    struct buf b = buf_in(s->a);
    for (size_t k = 0; k < s->values.n; k++) {
        buf_puts(&b, k ? " " : "");
        print_word(s->values.v[k], &b);
    }
    return buf_text(&b);
}

static bool same_types(const struct spec *x, const struct spec *y)
{
    for (size_t i = 0; i < x->types.n; i++)
        if (x->types.v[i].chosen != y->types.v[i].chosen)
            return false;
    return true;
}

/* Emits and loads the kernel with the types of `spec`, unless that is what the device has. */
static bool prepare(struct kernel *k, struct spec *spec, struct diags *d)
{
    struct session *s = k->s;
    if (k->loaded && same_types(spec, k->spec))
        return true;
    k->loaded = false;
    k->spec = spec;
    if (!emit(k, d)) {
        kernel_error(k, d, CLI_BAD_INPUT);
        return false;
    }
    enum device_status st = s->ops->load(s->dev, k->ptx, d);
    if (st != DEVICE_OK)
        kernel_error(k, d, st == DEVICE_FAILED ? CLI_DEVICE_FAILED : CLI_BAD_INPUT);
    return k->loaded = st == DEVICE_OK;
}

/* A case may bind types, for which there is a kernel of its own. false: no more cases. */
static bool run_case(struct kernel *k, struct spec *spec, const struct spec_case *c)
{
    struct diags *d = diags_new(k->a);
    const struct options *o = k->s->opt;
    bool fits = spec_case_fits(spec, c);
    if (!fits && (o->ptx || spec_case_conflict(c, o->define, o->ndefine))) {
        struct trial t = {
            .k = k, .a = k->a, .d = d, .test = test_name(k, c->name), .words = c->name};
        add_row(&t,
                &(struct row){.status = ROW_SKIP,
                              .why = o->ptx ? "the case binds a type, and the PTX is given"
                                            : "-D chooses another type than the case"},
                NULL);
        return true;
    }
    struct spec *as = fits ? spec : spec_read_case(k->a, spec, c, o->define, o->ndefine, d);
    if (!as) {
        kernel_error(k, d, CLI_BAD_INPUT);
        return true;
    }
    if (!prepare(k, as, d))
        return false;
    run_trial(k, c, c->name);
    return true;
}

static void run_kernel(struct session *s, const char *path, struct spec *spec)
{
    struct kernel k = {.s = s, .a = arena_new(), .path = path, .spec = spec};
    struct diags *d = diags_new(k.a);
    bool any = s->values.n > 0, good = true;
    for (size_t c = 0; c < spec->cases.n; c++)
        any |= wanted(s, spec->cases.v[c].name);
    if (!any && s->cases.n == 0) {
        diag_error(d, spec->name_span, "'%s' has no cases; give its dimensions, as in n=1000",
                   spec->name);
        kernel_error(&k, d, CLI_BAD_INPUT);
    } else if (any && !spec_oracle(spec)) {
        diag_error(d, spec->name_span,
                   "'%s' has a body: and no reference:, so nothing says what it computes",
                   spec->name);
        kernel_error(&k, d, CLI_BAD_INPUT);
    } else if (any) {
        for (size_t c = 0; good && c < spec->cases.n && !*s->opt->interrupted; c++)
            if (wanted(s, spec->cases.v[c].name))
                good = run_case(&k, spec, &spec->cases.v[c]);
        if (good && s->values.n && prepare(&k, spec, d))
            run_trial(&k, NULL, join(s));
    }
    arena_free(k.a);
}

static void run_file(struct session *s, const char *path)
{
    struct diags *d = diags_new(s->a);
    const struct source *src = io_read(s->a, d, path, IO_TEXT_LIMIT);
    struct spec_file *file = src ? spec_read(s->a, src, s->opt->define, s->opt->ndefine, d) : NULL;
    bool any = false;
    for (size_t k = 0; file && k < file->specs.n && !*s->opt->interrupted; k++) {
        if (s->opt->kernel && strcmp(file->specs.v[k]->name, s->opt->kernel) != 0)
            continue;
        any = true;
        run_kernel(s, path, file->specs.v[k]);
    }
    if (file && !any && !*s->opt->interrupted)
        diag_error(d, SPAN_NONE, "'%s' has no kernel '%s'", path, s->opt->kernel);
    worse(s, cli_report(s->cli, d));
}

/* A file is a spec, NAME=VALUE a value, anything else the name of a case. */
static void sort_operands(struct session *s)
{
    for (int k = 0; k < s->cli->argc; k++) {
        const char *word = s->cli->argv[k];
        size_t n = strlen(word);
        struct stat st;
        bool file = strcmp(word, "-") == 0 || (stat(word, &st) == 0 && !S_ISDIR(st.st_mode));
        bool looks = strchr(word, '/') || (n > 5 && strcmp(word + n - 5, ".yaml") == 0);
        if (file || (looks && !strchr(word, '=')))
            *VEC_PUSH(s->a, &s->specs) = word;
        else if (strchr(word, '=') && word[0] != '=')
            *VEC_PUSH(s->a, &s->values) = word;
        else
            *VEC_PUSH(s->a, &s->cases) = word;
    }
    s->case_used = ARENA_ARRAY(s->a, s->cases.n, bool);
    if (!s->specs.n)
        cli_usage_error(s->cli, s->cases.n ? "no such file: '%s'" : "no spec given",
                        s->cases.n ? s->cases.v[0] : "");
    if (s->opt->ptx && s->specs.n != 1)
        cli_usage_error(s->cli, "--ptx goes with one spec");
}

int verify_run(struct cli *cli, const struct options *opt)
{
    struct arena *a = arena_new();
    struct session s = {.cli = cli, .opt = opt, .a = a, .d = diags_new(a)};
    const char *target = opt->target ? opt->target : "sm_80";
    sort_operands(&s);
    s.target = ptx_target_find(target, strlen(target));
    if (!s.target)
        cli_usage_error(cli, "unknown target '%s'", target);
    s.rows = (struct rows){.format = opt->format,
                           .arena = a,
                           .out = stdout,
                           .color = cli->color_out,
                           .summary = true,
                           .tolerance = opt->tolerance};
    int status = open_device(&s);
    if (status != CLI_OK) {
        cli_report(cli, s.d);
        arena_free(a);
        return status;
    }
    progress_begin(&s.progress, "verifying", 0, opt->format != FORMAT_TEXT);
    rows_begin(&s.rows);
    for (size_t k = 0; k < s.specs.n && !*opt->interrupted; k++)
        run_file(&s, s.specs.v[k]);
    progress_clear(&s.progress);
    worse(&s, rows_end(&s.rows));
    for (size_t k = 0; k < s.cases.n && !*opt->interrupted; k++)
        if (!s.case_used[k]) {
            cli_error(cli, "no spec has a case '%s'", s.cases.v[k]);
            worse(&s, CLI_BAD_INPUT);
        }
    if (!s.rows.n && !s.status) {
        cli_error(cli, "nothing was checked");
        worse(&s, CLI_BAD_INPUT);
    }
    s.ops->close(s.dev);
    arena_free(a);
    return s.status;
}
