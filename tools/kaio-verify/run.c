/* --run SPEC... [CASE]...: emit, run, check. --list: what would be run. */
#include <config.h>

#include "trial.h"

#include "base/io.h"
#include "base/num.h"

#include <stdlib.h>
#include <sys/stat.h>

void session_worse(struct session *s, int status)
{
    s->status = status > s->status ? status : s->status;
}

/* ---- the device ------------------------------------------------------------------------------ */

static bool read_suppressions(struct session *s)
{
    const char *path = s->opt->suppressions;
    const struct source *text = path ? io_read(s->a, s->d, path, IO_TEXT_LIMIT) : NULL;
    return !path ||
           (text && suppress_read(s->a, &s->suppressions, text, device_finding_kind, s->d));
}

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
    if (!read_suppressions(s))
        return CLI_BAD_INPUT;
    device_settle(s->a, &choice, &why);
    if (why)
        cli_note(s->cli, "running on the simulator: %s", why);
    s->ops = choice.ops;
    struct device_options options = {.threads = s->opt->threads,
                                     .max_instructions = s->opt->max_instructions,
                                     .check = s->opt->check,
                                     .suppressions = &s->suppressions,
                                     .seed = s->opt->check_seed,
                                     .interrupted = s->opt->interrupted};
    enum device_status st = s->ops->open(s->a, choice.ordinal, &options, &s->dev, s->d);
    if (st == DEVICE_ABSENT)
        return CLI_NO_DEVICE;
    if (st != DEVICE_OK)
        return CLI_DEVICE_FAILED;
    s->ops->info(s->dev, &s->info);
    return CLI_OK;
}

/* ---- one set of values ----------------------------------------------------------------------- */

/* --list: its name, its values, what the reference of it costs. */
static void list_trial(struct trial *t)
{
    struct session *s = t->k->s;
    struct buf b = buf_in(t->a);
    if (!trial_bind(t)) {
        trial_error(t, CLI_BAD_INPUT, NULL);
        return;
    }
    for (size_t i = 0; i < t->run->ndim; i++)
        buf_printf(&b, " %s=%lld", t->run->dim[i].sym->name, (long long)t->run->dim[i].value);
    for (size_t i = 0; i < t->run->nparam; i++) {
        const struct run_param *p = &t->run->param[i];
        char number[32];
        if (!run_is_buffer(p))
            buf_printf(&b, " %s=%s", p->sym->name,
                       dtype_is_float(p->sym->type) ? num_print(p->f, number)
                                                    : arena_printf(t->a, "%lld", (long long)p->i));
    }
    rows_list(&s->rows, t->k->spec, t->named ? t->test : t->k->spec->name, buf_text(&b),
              trial_cost(t));
}

static void run_values(struct trial *t)
{
    trial_begin(t);
    if (t->k->s->opt->list)
        list_trial(t);
    else
        trial_run(t);
    arena_free(t->a);
}

/* Whether code of this kind is to be run. Where there is one code only, it is, whatever was asked
 * for. */
static bool runs_generic(const struct kernel *k)
{
    return k->one_code || k->s->opt->code != CODE_FIXED;
}

static bool runs_fixed(const struct kernel *k)
{
    return !k->one_code && k->s->opt->code != CODE_GENERIC && !k->s->opt->list;
}

/* One problem by code for all sizes, or by code for its own. false: the kernel has no code. */
static bool run_problem(struct kernel *k, struct spec *spec, struct trial *t, bool fixed)
{
    if (fixed) {
        kernel_run_fixed(k, spec, t);
        return true;
    }
    if (!kernel_prepare(k, spec))
        return false;
    run_values(t);
    return true;
}

/* A case may bind types, for which there is a kernel of its own. false: no more cases, for theirs
 * have no code either. */
static bool run_case(struct kernel *k, struct spec *spec, const struct spec_case *c, bool fixed)
{
    struct diags *d = diags_new(k->a);
    const struct options *o = k->s->opt;
    struct trial t = {.k = k, .named = c};
    bool fits = spec_case_fits(spec, c);
    if (!fits && k->types.n)
        return true; /* it comes with its own choice */
    if (!fits && (o->ptx || spec_case_conflict(c, o->define, o->ndefine))) {
        k->is_fixed = fixed;
        trial_begin(&t);
        trial_skip(&t, o->ptx ? "the case binds a type, and the PTX is given"
                              : "-D chooses another type than the case");
        arena_free(t.a);
        return true;
    }
    struct spec *as = fits ? spec : spec_read_case(k->a, spec, c, o->define, o->ndefine, d);
    if (!as) {
        kernel_error(k, d, CLI_BAD_INPUT);
        return true;
    }
    return run_problem(k, as, &t, fixed) || !fits;
}

static bool has(const word_list *list, const char *word)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i], word) == 0)
            return true;
    return false;
}

typedef VEC(word_list) shape_list;

/* Runs a shape by the code for all sizes, and keeps it for code of its own. */
static void run_generic(struct kernel *k, struct trial *t, shape_list *drawn)
{
    *VEC_PUSH(k->a, drawn) = t->values;
    if (runs_generic(k) || k->s->opt->list)
        run_values(t);
}

static void run_each_fixed(struct kernel *k, struct trial *t, const shape_list *drawn)
{
    struct spec *spec = k->spec;
    for (size_t i = 0; runs_fixed(k) && i < drawn->n && !session_over(k->s); i++) {
        t->values = drawn->v[i];
        kernel_run_fixed(k, spec, t);
    }
}

/* Of an output that only empty or hopeless shapes were found for, the check has proved nothing. */
static void judge_shapes(struct kernel *k, const struct shapes *sh, size_t made)
{
    struct session *s = k->s;
    struct diags *d = diags_new(k->a);
    if (!made && !session_over(s)) {
        diag_error(d, k->spec->name_span, "no shape tried for '%s' will do: %s", k->spec->name,
                   shapes_refused(sh));
        kernel_error(k, d, CLI_BAD_INPUT);
    }
    for (size_t i = 0; i < k->seen.n && !session_over(s); i++)
        if (!has(&k->proved, k->seen.v[i])) {
            diag_error(d, k->spec->name_span, "no shape proved anything of '%s'", k->seen.v[i]);
            kernel_error(k, d, CLI_CHECK_FAILED);
        }
}

static void run_random_shapes(struct kernel *k)
{
    struct session *s = k->s;
    struct shapes *sh = shapes_new(k->a, k);
    struct trial t = {.k = k, .drawn = true, .random = true};
    shape_list drawn = {0};
    while (drawn.n < s->opt->shapes && !session_over(s) && shapes_next(sh, &t.values))
        run_generic(k, &t, &drawn);
    run_each_fixed(k, &t, &drawn);
    judge_shapes(k, sh, drawn.n);
}

/* Without cases there is nothing that the kernel says of its sizes. */
static void run_usual_shapes(struct kernel *k)
{
    struct session *s = k->s;
    struct shapes *sh = shapes_new(k->a, k);
    struct trial t = {.k = k, .drawn = true};
    shape_list drawn = {0};
    struct buf said = buf_in(k->a);
    word_list values[SHAPES_USUAL];
    for (size_t kind = 0; kind < SHAPES_USUAL; kind++) {
        values[kind] = (word_list){0};
        if (!shapes_usual(sh, kind, &t.values))
            continue;
        values[kind] = t.values;
        buf_printf(&said, "%s%s sizes (%s)", said.len ? ", " : "", shapes_usual_names[kind],
                   trial_words(k->a, &t.values));
    }
    progress_clear(&s->progress);
    if (said.len)
        cli_note(s->cli, "'%s' has no cases: it is run with %s", k->spec->name, buf_text(&said));
    for (size_t kind = 0; kind < SHAPES_USUAL && !session_over(s); kind++) {
        t.values = values[kind];
        if (t.values.n)
            run_generic(k, &t, &drawn);
    }
    run_each_fixed(k, &t, &drawn);
    judge_shapes(k, sh, drawn.n);
}

static bool has_open_dims(const struct spec *spec)
{
    bool open = false;
    for (size_t i = 0; i < spec->dims.n; i++)
        open |= !spec->dims.v[i]->has_value;
    return open;
}

/* ---- all cases of all specs ------------------------------------------------------------------ */

static bool wanted(struct session *s, const char *name)
{
    bool any = false;
    for (size_t k = 0; k < s->cases.n; k++)
        if (strcmp(s->cases.v[k], name) == 0)
            any = s->case_used[k] = true;
    return any || (s->cases.n == 0 && s->values.n == 0);
}

/* What -D says of the name; NULL: nothing. */
static const struct spec_define *defined(const struct options *o, const char *name)
{
    for (size_t i = 0; i < o->ndefine; i++)
        if (strcmp(o->define[i].name, name) == 0)
            return &o->define[i];
    return NULL;
}

/* It has a scalar that only the cases say. */
static bool cases_say_more(const struct spec *spec)
{
    bool more = false;
    for (size_t i = 0; i < spec->params.n; i++)
        more |= spec->params.v[i].sym->kind == SYM_SCALAR && !spec->params.v[i].value;
    return more && spec->cases.n > 0;
}

/* -D fixes all dimensions, and nothing else says what to run: there is one problem, and it is
 * known. */
static bool is_known(const struct session *s, const struct spec *spec)
{
    const struct options *o = s->opt;
    bool known = spec->dims.n > 0 && !s->cases.n && !s->values.n && !o->shapes &&
                 !cases_say_more(spec);
    for (size_t i = 0; i < spec->dims.n; i++)
        known = known && defined(o, spec->dims.v[i]->name);
    return known;
}

/* All dimensions, which -D fixes, as values. */
static word_list fixed_values(struct kernel *k, const struct spec *spec)
{
    word_list v = {0};
    for (size_t i = 0; i < spec->dims.n; i++) {
        const struct spec_define *d = defined(k->s->opt, spec->dims.v[i]->name);
        *VEC_PUSH(k->a, &v) = arena_printf(k->a, "%s=%llu", d->name, (unsigned long long)d->value);
    }
    return v;
}

/* The cases that are wanted, and the values that are given, by one of the two codes. False: the
 * kernel has none. */
static bool run_problems(struct kernel *k, struct spec *spec, const word_list *values, bool fixed)
{
    struct session *s = k->s;
    struct trial t = {.k = k, .values = *values};
    const bool cases = s->cases.n || !values->n;
    for (size_t c = 0; cases && c < spec->cases.n && !session_over(s); c++)
        if (wanted(s, spec->cases.v[c].name) && !run_case(k, spec, &spec->cases.v[c], fixed))
            return false;
    return session_over(s) || !values->n || run_problem(k, spec, &t, fixed);
}

/* PTX that is given is what it is; and what -D fixes is not open. */
static bool has_one_code(const struct session *s, const struct spec *spec)
{
    return s->opt->ptx || !has_open_dims(spec);
}

static void run_all(struct kernel *k, struct spec *spec)
{
    struct session *s = k->s;
    const word_list values = is_known(s, spec) ? fixed_values(k, spec) : s->values;
    k->one_code = has_one_code(s, spec);
    const bool usual = !spec->cases.n && !values.n && has_open_dims(spec);
    if (s->opt->shapes || usual) {
        if (kernel_prepare(k, spec))
            usual && !s->opt->shapes ? run_usual_shapes(k) : run_random_shapes(k);
        return;
    }
    if ((runs_generic(k) || s->opt->list) && !run_problems(k, spec, &values, false))
        return;
    if (runs_fixed(k))
        run_problems(k, spec, &values, true);
}

/* ---- types ----------------------------------------------------------------------------------- */

typedef VEC(enum dtype) type_list;

/* What --types says of one of the spec's types; nothing: its own choice. */
static bool choices_of(struct session *s, const struct spec_type *t, type_list *out,
                       struct diags *d)
{
    const struct options *o = s->opt;
    bool all = o->shapes && !o->ntype && !o->ptx;
    *out = (type_list){0};
    if (defined(o, t->name))
        return true;
    for (size_t i = 0; i < o->ntype; i++) {
        const struct type_choice *c = &o->type[i];
        if (c->name && strcmp(c->name, t->name) != 0)
            continue;
        s->type_used[i] = true;
        all |= c->n == 0;
        for (size_t k = 0; k < c->n; k++) {
            if (!spec_type_allows(t, c->v[k]))
                return diag_error(d, t->span, "--types: '%s' is one of %s, not %s", t->name,
                                  spec_type_text(s->a, t), dtype_name(c->v[k]));
            *VEC_PUSH(s->a, out) = c->v[k];
        }
    }
    for (size_t k = 0; all && k < t->choices.n; k++)
        *VEC_PUSH(s->a, out) = t->choices.v[k];
    return true;
}

/* The next combination, as an odometer. False: that was the last. */
static bool advance(size_t *at, const type_list *choice, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        if (choice[i].n && ++at[i] < choice[i].n)
            return true;
        at[i] = 0;
    }
    return false;
}

/* One combination: a kernel of its own. */
static void run_typed(struct session *s, const char *path, struct spec *spec, const size_t *at,
                      const type_list *choice)
{
    struct kernel k = {.s = s, .a = arena_new(), .path = path, .spec = spec};
    struct spec_case bound = {.name = "--types", .span = spec->name_span};
    struct diags *d = diags_new(k.a);
    for (size_t i = 0; i < spec->types.n; i++) {
        if (!choice[i].n)
            continue;
        enum dtype type = choice[i].v[at[i]];
        const char *name = spec->types.v[i].name;
        *VEC_PUSH(k.a, &bound.bind) =
            (struct spec_binding){.name = name, .span = spec->types.v[i].span, .type = type};
        *VEC_PUSH(s->a, &k.types) = arena_printf(s->a, "%s=%s", name, dtype_name(type));
    }
    struct spec *as = spec_case_fits(spec, &bound)
                          ? spec
                          : spec_read_case(k.a, spec, &bound, s->opt->define, s->opt->ndefine, d);
    if (as)
        run_all(&k, as);
    else
        kernel_error(&k, d, CLI_BAD_INPUT);
    arena_free(k.a);
}

static void run_types(struct session *s, const char *path, struct spec *spec, struct diags *d)
{
    type_list *choice = ARENA_ARRAY(s->a, spec->types.n + 1, type_list);
    size_t *at = ARENA_ARRAY(s->a, spec->types.n + 1, size_t);
    bool good = true;
    for (size_t i = 0; i < spec->types.n; i++)
        good &= choices_of(s, &spec->types.v[i], &choice[i], d);
    if (!good) {
        struct kernel k = {.s = s, .a = s->a, .path = path, .spec = spec};
        kernel_error(&k, d, CLI_BAD_INPUT);
        return;
    }
    do
        run_typed(s, path, spec, at, choice);
    while (advance(at, choice, spec->types.n) && !session_over(s));
}

static void run_kernel(struct session *s, const char *path, struct spec *spec)
{
    struct kernel k = {.s = s, .a = arena_new(), .path = path, .spec = spec};
    struct diags *d = diags_new(k.a);
    bool any = s->values.n > 0 || s->opt->shapes || is_known(s, spec) ||
               (!s->cases.n && !spec->cases.n && has_open_dims(spec) && !spec->program);
    for (size_t c = 0; c < spec->cases.n; c++)
        any |= wanted(s, spec->cases.v[c].name);
    if (!any && s->cases.n == 0) {
        diag_error(d, spec->name_span, "'%s' has no cases; give its dimensions, as in n=1000",
                   spec->name);
        kernel_error(&k, d, CLI_BAD_INPUT);
    } else if (any && spec->program && program_lacks(s->opt)) {
        diag_error(d, spec->name_span, "'%s' is a program, and %s is for kernels", spec->name,
                   program_lacks(s->opt));
        kernel_error(&k, d, CLI_BAD_INPUT);
    } else if (any && !spec->program && !spec_oracle(spec)) {
        diag_error(d, spec->name_span,
                   "'%s' has a body: and no reference:, so nothing says what it computes",
                   spec->name);
        kernel_error(&k, d, CLI_BAD_INPUT);
    } else if (any) {
        run_types(s, path, spec, d);
    }
    arena_free(k.a);
}

/* A row for a file, or a kernel in it, that could not even be read. */
static void unreadable(struct session *s, const char *name, const struct diags *d)
{
    progress_clear(&s->progress);
    session_worse(s, cli_report(s->cli, d));
    struct row row = row_of_errors(s->a, NULL, d);
    row.kernel = row.test = name;
    row.device = s->info.kind;
    row.target = s->target->name;
    rows_add(&s->rows, &row);
    s->stop |= s->opt->fail_fast;
}

static void run_part(struct session *s, const char *path, const struct spec_part *part)
{
    if (part->spec && program_has(s, part->spec))
        return;
    if (!part->spec) {
        unreadable(s, part->name ? part->name : path, part->d);
        return;
    }
    if (part->d->list.n)
        progress_clear(&s->progress);
    cli_report(s->cli, part->d);
    run_kernel(s, path, part->spec);
}

static const struct spec_file *readable(struct session *s, const struct spec_parts *parts)
{
    struct spec_file *f = ARENA_NEW(s->a, struct spec_file);
    for (size_t i = 0; i < parts->v.n; i++)
        if (parts->v.v[i].spec)
            *VEC_PUSH(s->a, &f->specs) = parts->v.v[i].spec;
    return f;
}

static void run_file(struct session *s, const char *path)
{
    struct diags *d = diags_new(s->a);
    const struct source *src = io_read(s->a, d, path, IO_TEXT_LIMIT);
    struct spec_parts *parts = src ? spec_read_parts(s->a, src, s->opt->define, s->opt->ndefine, d)
                                   : NULL;
    bool any = false;
    if (!parts) {
        unreadable(s, path, d);
        return;
    }
    s->file = readable(s, parts);
    for (size_t k = 0; k < parts->v.n && !session_over(s); k++) {
        const struct spec_part *part = &parts->v.v[k];
        const char *only = s->opt->kernel;
        if (only && !(part->name && strcmp(part->name, only) == 0))
            continue;
        any = true;
        run_part(s, path, part);
    }
    if (!any && !session_over(s))
        diag_error(d, SPAN_NONE, "'%s' has no kernel '%s'", path, s->opt->kernel);
    session_worse(s, cli_report(s->cli, d));
}

/* "ids=@randint:0:10", "ids=0..9" */
static bool is_input(const char *word)
{
    const char *value = strchr(word, '=') + 1;
    return value[0] == '@' || strstr(value, "..");
}

/* A file is a spec, NAME=VALUE a value or an input, anything else the name of a case. */
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
            *VEC_PUSH(s->a, is_input(word) ? &s->inputs : &s->values) = word;
        else
            *VEC_PUSH(s->a, &s->cases) = word;
    }
    s->case_used = ARENA_ARRAY(s->a, s->cases.n, bool);
    s->type_used = ARENA_ARRAY(s->a, s->opt->ntype, bool);
    s->input_used = ARENA_ARRAY(s->a, s->inputs.n, bool);
    if (!s->specs.n)
        cli_usage_error(s->cli, s->cases.n ? "no such file: '%s'" : "no spec given",
                        s->cases.n ? s->cases.v[0] : "");
    if (s->opt->shapes && s->cases.n)
        cli_usage_error(s->cli, "--shapes goes with values, as in rows=3, not with the case '%s'",
                        s->cases.v[0]);
    if (s->opt->ptx && s->specs.n != 1)
        cli_usage_error(s->cli, "--ptx goes with one spec");
}

/* Words that nothing answered to, and sessions that checked nothing. */
static void finish(struct session *s)
{
    const struct options *o = s->opt;
    for (size_t k = 0; k < s->cases.n && !session_over(s); k++)
        if (!s->case_used[k]) {
            cli_error(s->cli, "no spec has a case '%s'", s->cases.v[k]);
            session_worse(s, CLI_BAD_INPUT);
        }
    for (size_t k = 0; k < o->ntype && !session_over(s); k++)
        if (!s->type_used[k] && o->type[k].name) {
            cli_error(s->cli, "--types: no kernel has a type '%s'", o->type[k].name);
            session_worse(s, CLI_BAD_INPUT);
        }
    for (size_t k = 0; k < s->inputs.n && !session_over(s); k++)
        if (!s->input_used[k]) {
            cli_error(s->cli, "no kernel has the input of '%s'", s->inputs.v[k]);
            session_worse(s, CLI_BAD_INPUT);
        }
    if (!s->status && !s->rows.count[ROW_PASS] && !o->list) {
        cli_error(s->cli, "nothing was checked");
        session_worse(s, CLI_BAD_INPUT);
    }
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
                           .summary = !opt->list,
                           .tolerance = opt->tolerance};
    int status = opt->list ? CLI_OK : open_device(&s);
    if (status != CLI_OK) {
        cli_report(cli, s.d);
        arena_free(a);
        return status;
    }
    progress_begin(&s.progress, "verifying", 0, opt->format != FORMAT_TEXT);
    rows_begin(&s.rows);
    for (size_t k = 0; k < s.specs.n && !session_over(&s); k++)
        run_file(&s, s.specs.v[k]);
    progress_clear(&s.progress);
    session_worse(&s, rows_end(&s.rows));
    finish(&s);
    if (s.ops)
        s.ops->close(s.dev);
    arena_free(a);
    return s.status;
}
