/* --run: a kernel's code, for all sizes and for one. */
#include <config.h>

#include "trial.h"

#include "base/io.h"
#include "lower/lower.h"

/* ---- code for all sizes ---------------------------------------------------------------------- */

static bool compiles(void *ctx, struct spec *s)
{
    const struct kernel *k = ctx;
    return lower_specs(k->a, &s, 1, k->s->target, NULL, diags_new(k->a)) != NULL;
}

/* The program as calls of kernels. */
static bool build_program(struct kernel *k, struct diags *d)
{
    const struct options *o = k->s->opt;
    struct program_options opt = {.compiles = compiles, .ctx = k};
    opt.path = program_path(k->a, o->include, o->ninclude, &opt.npath);
    k->program = program_build(k->a, k->spec, k->s->file, &opt, k->s->target->name, d);
    return k->program != NULL;
}

/* What is compiled: the kernel, or the program's. */
static struct ptx_module *lower(struct kernel *k, struct diags *d)
{
    struct session *s = k->s;
    /* the simulator's findings name the spec's lines */
    const struct lower_options lo = {.lines = s->ops == &sim_device ? LOWER_LINES_ALL
                                                                    : LOWER_LINES_BODY};
    VEC(struct spec *) specs = {0};
    struct buf header = buf_in(k->a);
    if (!k->program)
        return lower_specs(k->a, &k->spec, 1, s->target, &lo, d);
    for (size_t i = 0; i < k->program->kernels.n; i++)
        *VEC_PUSH(k->a, &specs) = k->program->kernels.v[i].spec;
    struct ptx_module *m = lower_specs(k->a, specs.v, specs.n, s->target, &lo, d);
    if (m) {
        buf_puts(&header, m->header);
        contract_write(k->program->contract, &header);
        m->header = buf_text(&header);
    }
    return m;
}

/* PTX text, as another program would get it, and the contract read back from it. */
static bool emit(struct kernel *k, struct diags *d)
{
    struct session *s = k->s;
    if (k->spec->program && !build_program(k, d))
        return false;
    if (s->opt->ptx) {
        k->ptx = io_read(k->a, d, s->opt->ptx, IO_TEXT_LIMIT);
    } else {
        struct ptx_module *made = lower(k, d);
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
        if (strcmp(file->v.v[i]->kernel, k->spec->name) == 0 &&
            file->v.v[i]->is_program == (k->program != NULL))
            k->contract = file->v.v[i];
    return k->contract ? true
           : file      ? diag_error(d, SPAN_NONE, "the PTX has no %s '%s'",
                               k->program ? "program" : "kernel", k->spec->name)
                       : false;
}

void kernel_error(struct kernel *k, struct diags *d, int status)
{
    struct trial t = {.k = k, .d = d, .test = k->spec->name, .words = ""};
    trial_error(&t, status, NULL);
}

static bool same_types(const struct spec *x, const struct spec *y)
{
    for (size_t i = 0; i < x->types.n; i++)
        if (x->types.v[i].chosen != y->types.v[i].chosen)
            return false;
    return true;
}

static bool has_open_dims(const struct contract *c)
{
    for (size_t i = 0; i < c->dims.n; i++)
        if (!c->dims.v[i]->has_value)
            return true;
    return false;
}

/* Emits the kernel's code and loads it. False with errors in d. */
static bool make(struct kernel *k, int *status, struct diags *d)
{
    struct session *s = k->s;
    *status = CLI_BAD_INPUT;
    if (!emit(k, d))
        return false;
    struct diags *said = diags_new(k->a);
    enum device_status st = s->ops ? s->ops->load(s->dev, k->ptx, said) : DEVICE_OK;
    if (st == DEVICE_OK && said->nwarning) { /* of code that is slower than it is written */
        progress_clear(&s->progress);
        cli_report(s->cli, said);
    } else {
        diags_append(d, said);
    }
    if (st == DEVICE_FAILED)
        *status = CLI_DEVICE_FAILED;
    return k->loaded = st == DEVICE_OK;
}

bool kernel_prepare(struct kernel *k, struct spec *spec)
{
    struct diags *d = diags_new(k->a);
    int status;
    if (k->loaded && same_types(spec, k->spec))
        return true;
    k->loaded = false;
    k->spec = spec;
    if (!make(k, &status, d)) {
        kernel_error(k, d, status);
        return false;
    }
    k->is_fixed = k->spec->dims.n > 0 && !has_open_dims(k->contract);
    return true;
}

/* ---- code for one size ----------------------------------------------------------------------- */

/* Whether an extent that has the dimension in it is 0. A constant extent is not, so that such a
 * dimension is left for the launch to say, as kaio-bench leaves one of 0. */
static bool has_empty_extent(struct run *r, const struct lang_symbol *dim)
{
    for (size_t i = 0; i < run_nbuffer(r); i++) {
        const struct run_param *p = run_buffer(r, i);
        for (uint32_t d = 0; run_is_buffer(p) && d < p->host.rank; d++)
            if (p->host.dim[d] == 0 && cost_reads(p->sym->dims[d], dim))
                return true;
    }
    return false;
}

/* What the spec was read with, and the dimensions that are still open at the trial's values. False:
 * there is none to fix. */
static bool fix_dims(const struct trial *t, define_list *out)
{
    const struct kernel *k = t->k;
    const struct options *o = k->s->opt;
    bool any = false;
    for (size_t i = 0; i < k->spec->types.n; i++)
        *VEC_PUSH(k->a, out) = (struct spec_define){.name = k->spec->types.v[i].name,
                                                    .type = k->spec->types.v[i].chosen};
    for (size_t i = 0; i < o->ndefine; i++)
        if (o->define[i].type == DT_VOID)
            *VEC_PUSH(k->a, out) = o->define[i];
    for (size_t i = 0; i < t->run->ndim; i++) {
        const struct run_dim *dim = &t->run->dim[i];
        if (dim->sym->has_value || dim->value <= 0 || has_empty_extent(t->run, dim->sym))
            continue;
        *VEC_PUSH(k->a, out) = (struct spec_define){dim->sym->name, (uint64_t)dim->value, DT_VOID};
        any = true;
    }
    return any;
}

/* Emits and loads the trial's kernel again, with its dimensions as constants. */
static bool prepare_fixed(struct trial *t, int *status)
{
    static const struct spec_case none = {.name = "--code=fixed"};
    struct kernel *k = t->k;
    define_list defines = {0};
    *status = CLI_BAD_INPUT;
    if (!fix_dims(t, &defines)) {
        trial_skip(t, "no dimension can be fixed at emission: each makes an extent 0");
        *status = CLI_OK;
        return false;
    }
    struct spec *as = spec_read_case(k->a, k->spec, &none, defines.v, defines.n, t->d);
    if (!as)
        return false;
    k->spec = as;
    return make(k, status, t->d);
}

void kernel_run_fixed(struct kernel *k, struct spec *spec, const struct trial *problem)
{
    struct kernel fixed = *k;
    struct trial t = *problem;
    int status = CLI_BAD_INPUT;
    fixed.a = arena_new();
    fixed.spec = spec;
    fixed.is_fixed = true;
    fixed.loaded = k->loaded = false;
    fixed.contract = contract_of_spec(fixed.a, spec, k->s->target->name);
    t.k = &fixed;
    trial_begin(&t);
    if (!trial_bind(&t))
        trial_error(&t, status, NULL);
    else if (!trial_skip_large(&t)) {
        if (prepare_fixed(&t, &status))
            trial_run(&t);
        else if (status != CLI_OK)
            trial_error(&t, status, NULL);
    }
    k->seen = fixed.seen;
    k->proved = fixed.proved;
    arena_free(t.a);
    arena_free(fixed.a);
}
