/* SPEC NAME=FILE...: outputs that something else has computed. */
#include <config.h>

#include "verify.h"

#include "base/io.h"
#include "data/load.h"
#include "run/args.h"
#include "values.h"

struct files {
    struct cli *cli;
    const struct options *opt;
    struct arena *a;
    struct diags *d;
    struct spec *spec;
    struct run *run;
    struct run_arg *arg; /* dimensions, scalars and inputs */
    size_t narg;
    struct rows rows;
};

/* "n=1024" -> name and value; false for a word that is none. */
static bool split(struct arena *a, const char *word, const char **name, const char **value)
{
    const char *eq = strchr(word, '=');
    if (!eq || eq == word)
        return false;
    *name = arena_strndup(a, word, (size_t)(eq - word));
    *value = eq + 1;
    return true;
}

/* An output's file: its shape binds dimensions; its contents are what is checked. */
static bool load_output(struct files *f, struct run_param *p, const char *path)
{
    struct loaded l;
    struct buffer b;
    if (path[0] == '@')
        return diag_error(f->d, SPAN_NONE,
                          "%s is an output: give the file that holds the kernel's result, not '%s'",
                          p->sym->name, path);
    if (!load_file(f->a, path, &l, f->d) || (l.raw && !load_raw(f->a, &l, LOAD_ALL, f->d)))
        return false;
    if (l.raw) { /* bytes: the shape follows from the dimensions, once they are known */
        p->result = (struct buffer){
            .type = p->sym->type, .data = (void *)(uintptr_t)l.data, .bytes = l.bytes};
        return true;
    }
    struct buf text = buf_in(f->a);
    loaded_print(&l, &text);
    if (!loaded_as(f->a, &l, p->sym->type, &b) || b.rank != p->sym->rank)
        return diag_error(f->d, SPAN_NONE, "%s: '%s' is %s, the spec declares %s", p->sym->name,
                          l.name, buf_text(&text), run_type_text(f->run, p));
    p->result = b;
    struct buffer shape = b;
    shape.data = NULL;
    if (!run_bind_buffer(f->run, p, &shape))
        return false;
    if (p->sym->mode == MODE_INOUT) { /* its contents before the launch are still to come */
        p->given = false;
        p->host = (struct buffer){0};
    }
    return true;
}

/* "before:after" of an inout: what is behind the last colon, unless that is a generator's seed.
 * NULL: nothing. */
static const char *after_part(const char *value)
{
    const char *colon = strrchr(value, ':');
    bool seed = colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1);
    return colon && colon[1] && !(value[0] == '@' && seed) ? colon + 1 : NULL;
}

static bool take_words(struct files *f)
{
    f->arg = ARENA_ARRAY(f->a, (size_t)f->cli->argc, struct run_arg);
    for (int k = 1; k < f->cli->argc; k++) {
        const char *name, *value;
        if (!split(f->a, f->cli->argv[k], &name, &value)) {
            diag_error(f->d, SPAN_NONE, "'%s' is not NAME=VALUE", f->cli->argv[k]);
            return false;
        }
        struct run_param *p = run_find_param(f->run, name);
        bool out = p && run_is_output(p) && p->sym->mode == MODE_OUT;
        const char *file = out ? value : p && run_is_output(p) ? after_part(value) : NULL;
        if (file && !load_output(f, p, file))
            return false;
        if (out)
            continue;
        f->arg[f->narg++] = (struct run_arg){.name = name, .value = value};
    }
    return run_bind_args(f->run, f->arg, f->narg, NULL);
}

/* After binding: every result has its full shape. */
static bool settle_outputs(struct files *f)
{
    for (size_t k = 0; k < f->run->nparam; k++) {
        struct run_param *p = &f->run->param[k];
        if (!run_is_output(p) || !p->result.data)
            continue;
        struct buf want = buf_in(f->a);
        buffer_print_type(&p->host, &want);
        bool same = p->result.bytes == p->host.bytes;
        for (uint32_t i = 0; same && i < p->result.rank; i++)
            same = p->result.dim[i] == p->host.dim[i];
        if (!same)
            return diag_error(f->d, SPAN_NONE, "%s holds %zu bytes in another shape than %s",
                              p->sym->name, p->result.bytes, buf_text(&want));
    }
    return true;
}

/* Adds a row for each output that is given. False with errors in f->d. */
static bool compare_all(struct files *f)
{
    struct ref_input in = values_of(f->a, f->spec, f->run);
    struct ref_options ro = {.threads = f->opt->threads,
                             .sample = cost_sample(f->a, &in, f->opt),
                             .seed = f->opt->seed,
                             .interrupted = f->opt->interrupted};
    if (!run_sums(f->run, &f->opt->sums, &ro.sums))
        return false;
    struct ref *ref = ref_evaluate(f->a, &in, &ro, f->d);
    if (!ref)
        return false;
    for (size_t k = 0; k < ref_noutput(ref); k++) {
        const char *name = ref_output(ref, k)->param->sym->name;
        const struct run_param *p = run_find_param(f->run, name);
        struct compare_result res;
        if (!p->result.data)
            continue;
        compare_output(ref, k, p->result.data, &f->opt->tolerance, values_vary(f->run), &res);
        struct row row = row_of_result(name, &res);
        row.kernel = row.test = f->spec->name;
        rows_add(&f->rows, &row);
    }
    ref_free(ref);
    return true;
}

/* The program of the file, unless one of its kernels is asked for. */
static const struct spec *find_program(const struct files *f, const struct spec_file *file)
{
    for (size_t i = 0; i < file->specs.n; i++)
        if (file->specs.v[i]->program &&
            (!f->opt->kernel || strcmp(file->specs.v[i]->name, f->opt->kernel) == 0))
            return file->specs.v[i];
    return NULL;
}

static struct spec *one_spec(struct files *f, const char *path)
{
    const struct source *src = io_read(f->a, f->d, path, IO_TEXT_LIMIT);
    struct spec_file *file = src ? spec_read(f->a, src, f->opt->define, f->opt->ndefine, f->d)
                                 : NULL;
    if (!file)
        return NULL;
    const struct spec *program = find_program(f, file);
    if (program) {
        diag_error(f->d, program->name_span,
                   "'%s' is a program, whose steps are checked while it runs: kaio-verify --run %s",
                   program->name, path);
        return NULL;
    }
    struct spec *s = f->opt->kernel       ? spec_find(file, f->opt->kernel)
                     : file->specs.n == 1 ? file->specs.v[0]
                                          : NULL;
    if (!s && f->opt->kernel)
        diag_error(f->d, SPAN_NONE, "'%s' has no kernel '%s'", path, f->opt->kernel);
    else if (!s)
        diag_error(f->d, SPAN_NONE, "'%s' has several kernels; choose one with --kernel", path);
    if (s && !spec_oracle(s)) {
        diag_error(f->d, s->name_span,
                   "'%s' has a body: and no reference:, so nothing says what it computes", s->name);
        return NULL;
    }
    return s;
}

static bool any_output(struct files *f)
{
    bool any = false;
    for (size_t k = 0; k < f->run->nparam; k++)
        any |= f->run->param[k].result.data != NULL;
    return any || diag_error(f->d, SPAN_NONE,
                             "no output is given, so there is nothing to check; give OUTPUT=FILE "
                             "(inout: NAME=BEFORE:AFTER)");
}

static bool check_files(struct files *f)
{
    f->spec = one_spec(f, f->cli->argv[0]);
    if (!f->spec)
        return false;
    f->run = run_new(f->a, contract_of_spec(f->a, f->spec, "sm_80"), f->d);
    const bool good = take_words(f) && settle_outputs(f) && any_output(f) && compare_all(f);
    run_discard_outputs(f->run);
    return good;
}

int verify_files(struct cli *cli, const struct options *opt)
{
    if (cli->argc == 0)
        cli_usage_error(cli, "no spec given");
    struct arena *a = arena_new();
    struct files f = {.cli = cli, .opt = opt, .a = a, .d = diags_new(a)};
    f.rows = (struct rows){.format = opt->format,
                           .arena = a,
                           .out = stdout,
                           .color = cli->color_out,
                           .tolerance = opt->tolerance};
    rows_begin(&f.rows);
    const bool good = check_files(&f);
    cli_report(cli, f.d);
    if (!good) {
        struct row row = row_of_errors(a, NULL, f.d);
        row.kernel = row.test = f.spec ? f.spec->name : opt->kernel ? opt->kernel : cli->argv[0];
        rows_add(&f.rows, &row);
    }
    const int status = rows_end(&f.rows);
    arena_free(a);
    return good ? status : CLI_BAD_INPUT;
}
