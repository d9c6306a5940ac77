/* The public API over the modules: each call is a compilation or a run of its own, with its own
 * arena. */
#include <config.h>

#include "call.h"

#include "base/finding.h"
#include "lower/lower.h"
#include "ref/report.h"
#include "run/args.h"
#include "run/choose.h"
#include "values.h"

#include <stdlib.h>

const char *kaio_version(void)
{
    return PACKAGE_VERSION;
}

struct kaio *kaio_new(void)
{
    struct kaio *k = calloc(1, sizeof *k);
    if (k && !(k->memory = arena_new())) {
        free(k);
        k = NULL;
    }
    if (k)
        k->messages = "";
    return k;
}

void kaio_free(struct kaio *k)
{
    if (!k)
        return;
    kaio_close_all(k);
    arena_free(k->memory);
    arena_free(k->told);
    free(k->printed);
    free(k);
}

/* ---- messages ---- */

const char *kaio_messages(const struct kaio *k)
{
    return k->messages;
}

const struct kaio_message *kaio_message(const struct kaio *k, size_t i)
{
    return i < k->nmessage ? &k->message[i] : NULL;
}

const char *kaio_printed(const struct kaio *k)
{
    return k->printed ? k->printed : "";
}

static void tell_nothing(struct kaio *k)
{
    arena_free(k->told);
    k->told = NULL;
    k->messages = "";
    k->nmessage = 0;
}

static void tell_no_memory(struct kaio *k)
{
    static struct kaio_message no_memory = {.level = "error",
                                            .kind = "",
                                            .text = "not enough memory",
                                            .file = "",
                                            .entry = "",
                                            .source_file = "",
                                            .buffer = ""};
    tell_nothing(k);
    k->messages = "kaio: error: not enough memory\n";
    k->message = &no_memory;
    k->nmessage = 1;
}

/* The same with what there was no memory for. */
static void tell_failure(struct kaio *k, const struct arena *a)
{
    tell_no_memory(k);
    k->told = a ? arena_new() : NULL;
    if (!k->told || setjmp(*arena_guard(k->told)))
        return;
    struct kaio_message *m = ARENA_NEW(k->told, struct kaio_message);
    const char *text = arena_printf(k->told, "not enough memory: %s", arena_failure(a));
    *m = k->message[0];
    m->text = text;
    k->messages = arena_printf(k->told, "kaio: error: %s\n", text);
    k->message = m;
    arena_unguard(k->told);
}

enum kaio_status call_no_memory(struct kaio *k)
{
    tell_no_memory(k);
    return KAIO_BAD_INPUT;
}

static const char *copy_or_empty(struct arena *a, const char *s)
{
    return s ? arena_strdup(a, s) : "";
}

static void add_finding(struct arena *a, struct kaio_message *m, const struct finding *f)
{
    const struct finding_side *side[2] = {&f->at, &f->other};
    m->entry = copy_or_empty(a, f->entry);
    m->buffer = copy_or_empty(a, f->buffer);
    m->address = f->address;
    m->count = f->count;
    if (f->at.nsource) {
        m->source_file = copy_or_empty(a, f->at.source[0].file);
        m->source_line = f->at.source[0].line;
    }
    for (int i = 0; i < 1 + f->two; i++) {
        if (!side[i]->has_block || !side[i]->has_thread)
            return;
        memcpy(m->block[i], side[i]->block, sizeof m->block[i]);
        memcpy(m->thread[i], side[i]->thread, sizeof m->thread[i]);
        m->threads = i + 1;
    }
}

static struct kaio_message message_of(struct arena *a, const struct diag *d)
{
    static const char *const level[] = {
        [DIAG_NOTE] = "note", [DIAG_WARNING] = "warning", [DIAG_ERROR] = "error"};
    struct kaio_message m = {.level = level[d->level],
                             .kind = d->kind ? d->kind : "",
                             .text = arena_strdup(a, d->text),
                             .file = "",
                             .entry = "",
                             .source_file = "",
                             .buffer = ""};
    if (d->finding)
        add_finding(a, &m, d->finding);
    if (!d->span.src)
        return m;
    const struct line_col at = span_line_col(d->span);
    m.file = arena_strdup(a, d->span.src->name);
    m.line = (unsigned)at.line;
    m.column = (unsigned)at.col;
    return m;
}

/* report: behind the diagnostics. */
static void tell(struct kaio *k, const struct diags *d, struct buf *report)
{
    tell_nothing(k);
    if (!d->list.n && !d->nerror && !report->len)
        return;
    k->told = arena_new();
    if (!k->told || setjmp(*arena_guard(k->told))) {
        tell_no_memory(k);
        return;
    }
    struct buf text = buf_in(k->told);
    diags_format(d, "kaio", false, &text);
    buf_puts(&text, buf_text(report));
    k->messages = buf_text(&text);
    k->message = ARENA_ARRAY(k->told, d->list.n, struct kaio_message);
    for (size_t i = 0; i < d->list.n; i++)
        k->message[k->nmessage++] = message_of(k->told, &d->list.v[i]);
    arena_unguard(k->told);
}

void call_print(void *ctx, const char *text, size_t n)
{
    buf_add(ctx, text, n);
}

void call_printed(struct kaio *k, const struct buf *text)
{
    k->printed = text->len ? strdup(buf_text(text)) : NULL;
}

/* ---- calls ---- */

static void give_back(struct call *c)
{
    if (c->dev)
        c->ops->close(c->dev);
    if (c->run)
        run_discard_outputs(c->run);
    if (c->ref)
        ref_free(c->ref);
}

enum kaio_status call_do(struct call *c, call_work *f)
{
    volatile enum kaio_status status = KAIO_BAD_INPUT;
    free(c->k->printed);
    c->k->printed = NULL;
    c->arena = arena_new();
    if (!c->arena || setjmp(*arena_guard(c->arena))) {
        give_back(c);
        tell_failure(c->k, c->arena);
        arena_free(c->arena);
        return KAIO_BAD_INPUT;
    }
    c->d = diags_new(c->arena);
    c->report = buf_in(c->arena);
    status = f(c);
    tell(c->k, c->d, &c->report);
    arena_unguard(c->arena);
    arena_free(c->arena);
    return status;
}

/* A failed allocation here goes to the guard of no call, so the guard is set here. */
static enum kaio_status define(struct kaio *k, const char *name, uint64_t value, enum dtype type)
{
    if (setjmp(*arena_guard(k->memory))) {
        tell_no_memory(k);
        return KAIO_BAD_INPUT;
    }
    struct spec_define *e = NULL;
    for (size_t i = 0; i < k->defines.n; i++)
        if (!strcmp(k->defines.v[i].name, name))
            e = &k->defines.v[i];
    if (!e) {
        e = VEC_PUSH(k->memory, &k->defines);
        e->name = arena_strdup(k->memory, name);
    }
    e->value = value;
    e->type = type;
    arena_unguard(k->memory);
    tell_nothing(k);
    return KAIO_OK;
}

enum kaio_status kaio_define(struct kaio *k, const char *name, unsigned long value)
{
    return define(k, name, value, DT_VOID);
}

static enum kaio_status no_type(struct call *c)
{
    diag_error(c->d, SPAN_NONE, "kaio_define_type() takes the name of a type, as in \"f32\"");
    return KAIO_BAD_INPUT;
}

enum kaio_status kaio_define_type(struct kaio *k, const char *name, const char *type)
{
    enum dtype t;
    if (dtype_parse(type, strlen(type), &t))
        return define(k, name, 0, t);
    struct call c = {.k = k};
    return call_do(&c, no_type);
}

static struct spec_file *read_spec(struct call *c)
{
    return spec_read(c->arena, source_new(c->arena, c->name, c->text, c->len), c->k->defines.v,
                     c->k->defines.n, c->d);
}

static enum kaio_status do_emit(struct call *c)
{
    const char *name = c->target ? c->target : "sm_80";
    const struct ptx_target *target = ptx_target_find(name, strlen(name));
    if (!target) {
        diag_error(c->d, SPAN_NONE, "unknown target '%s'", name);
        return KAIO_BAD_INPUT;
    }
    struct spec_file *file = read_spec(c);
    if (!file)
        return KAIO_BAD_INPUT;
    struct lower_options opt = {0};
    struct ptx_module *m = lower_specs(c->arena, file->specs.v, file->specs.n, target, &opt, c->d);
    if (!m)
        return KAIO_BAD_INPUT;
    struct buf text = buf_in(c->arena);
    ptx_print(m, &text);
    char *copy = malloc(text.len + 1);
    if (!copy) {
        diag_error(c->d, SPAN_NONE, "not enough memory");
        return KAIO_BAD_INPUT;
    }
    memcpy(copy, buf_text(&text), text.len + 1);
    *c->ptx = copy;
    *c->ptx_len = text.len;
    return KAIO_OK;
}

enum kaio_status kaio_emit(struct kaio *k, const char *name, const char *yaml, size_t yaml_len,
                           const char *target, char **ptx, size_t *len)
{
    *ptx = NULL;
    *len = 0;
    struct call c = {.k = k,
                     .name = name,
                     .text = yaml,
                     .len = yaml_len,
                     .target = target,
                     .ptx = ptx,
                     .ptx_len = len};
    return call_do(&c, do_emit);
}

enum kaio_status call_status(enum device_status s)
{
    switch (s) {
    case DEVICE_OK: return KAIO_OK;
    case DEVICE_REFUSED: return KAIO_BAD_INPUT;
    case DEVICE_FAULT:
    case DEVICE_FAILED: return KAIO_FAILED;
    case DEVICE_ABSENT: return KAIO_ABSENT;
    }
    return KAIO_FAILED;
}

/* The arguments in run's form. Data is copied by nobody: it is read before the launch and written
 * after it. */
static struct run_arg *arguments(struct call *c)
{
    struct run_arg *v = ARENA_ARRAY(c->arena, c->narg + 1, struct run_arg);
    for (size_t i = 0; i < c->narg; i++) {
        v[i].name = c->arg[i].name;
        v[i].value = c->arg[i].data ? NULL : c->arg[i].value ? c->arg[i].value : "";
        v[i].data = c->arg[i].data;
        v[i].bytes = c->arg[i].bytes;
    }
    return v;
}

static void copy_results(struct call *c, struct run *r)
{
    for (size_t i = 0; i < c->narg; i++) {
        const struct run_param *p = run_find_param(r, c->arg[i].name);
        if (c->arg[i].data && p && run_is_output(p) && p->result.bytes)
            memcpy(c->arg[i].data, p->result.data, p->result.bytes);
    }
}

static enum kaio_status execute(struct call *c, struct run *r, const struct source *src,
                                const struct ptx_module *m)
{
    struct device_choice choice;
    const char *why; /* that there is no GPU is no news here */
    if (!device_parse(c->device ? c->device : "auto", &choice)) {
        diag_error(c->d, SPAN_NONE, "unknown device '%s': it is auto, cpu or cuda[:N]", c->device);
        return KAIO_BAD_INPUT;
    }
    device_settle(c->arena, &choice, &why);
    const struct device_ops *ops = choice.ops;
    if (!run_check(r, m))
        return KAIO_BAD_INPUT;
    if (!run_open_outputs(r))
        return KAIO_BAD_INPUT;
    struct buf said = buf_in(c->arena); /* by CUDA C++ */
    struct device_options opt = {.print = call_print, .print_ctx = &said};
    c->ops = ops;
    enum device_status s = ops->open(c->arena, choice.ordinal, &opt, &c->dev, c->d);
    if (s != DEVICE_OK)
        return call_status(s);
    s = ops->load(c->dev, src, c->d);
    if (s == DEVICE_OK) {
        struct buf printed = buf_in(c->arena);
        s = run_execute(r, m, ops, c->dev, NULL, NULL);
        run_print_messages(r, &printed);
        buf_add(&printed, buf_text(&said), said.len);
        call_printed(c->k, &printed);
    }
    ops->close(c->dev);
    c->dev = NULL;
    if (s != DEVICE_OK)
        return call_status(s);
    if (!run_write_outputs(r))
        return KAIO_BAD_INPUT;
    copy_results(c, r);
    return KAIO_OK;
}

static enum kaio_status do_run(struct call *c)
{
    const struct source *src = source_new(c->arena, "<ptx>", c->text, c->len);
    struct ptx_module *m = ptx_parse(c->arena, src, c->d);
    if (!m)
        return KAIO_BAD_INPUT;
    if (!*m->header) {
        diag_error(c->d, SPAN_NONE, "the PTX has no launch contract ('//@' lines)");
        return KAIO_BAD_INPUT;
    }
    struct contract_file *f = contract_read(
        c->arena, source_new(c->arena, "<contract>", m->header, strlen(m->header)), c->d);
    if (!f)
        return KAIO_BAD_INPUT;
    const struct contract *contract = contract_main(f);
    if (!contract) {
        diag_error(c->d, SPAN_NONE, "the module holds %zu kernels; give one, or a program", f->v.n);
        return KAIO_BAD_INPUT;
    }
    struct run *r = run_new(c->arena, contract, c->d);
    if (!run_bind_args(r, arguments(c), c->narg, NULL))
        return KAIO_BAD_INPUT;
    c->run = r;
    enum kaio_status status = execute(c, r, src, m);
    run_discard_outputs(r);
    c->run = NULL;
    return status;
}

enum kaio_status kaio_run(struct kaio *k, const char *device, const char *ptx, size_t ptx_len,
                          const struct kaio_arg *args, size_t narg)
{
    struct call c = {
        .k = k, .text = ptx, .len = ptx_len, .device = device, .arg = args, .narg = narg};
    return call_do(&c, do_run);
}

/* ---- verification ---------------------------------------------------------------------------- */

/* An output's contents, which the caller gave as data (out) or result (inout). */
static bool bind_result(struct call *c, struct run *r, const struct kaio_arg *arg)
{
    struct run_param *p = run_find_param(r, arg->name);
    if (!p || !run_is_output(p))
        return true;
    const void *data = p->sym->mode == MODE_OUT ? arg->data : arg->result;
    if (!data)
        return p->sym->mode == MODE_INOUT
                   ? true
                   : diag_error(c->d, SPAN_NONE, "%s is an output: give its data", arg->name);
    if (arg->bytes != p->host.bytes)
        return diag_error(c->d, SPAN_NONE, "%s: %zu bytes are given, %s takes %zu", arg->name,
                          arg->bytes, run_type_text(r, p), p->host.bytes);
    p->result = p->host;
    p->result.data = (void *)(uintptr_t)data;
    return true;
}

static enum kaio_status compare_results(struct call *c, struct spec *s, struct run *r)
{
    struct ref_input in = values_of(c->arena, s, r);
    struct ref_options opt = {0};
    struct tolerance bound = {.ulp = -1};
    if (!run_sums(r, NULL, &opt.sums))
        return KAIO_BAD_INPUT;
    struct ref *ref = c->ref = ref_evaluate(c->arena, &in, &opt, c->d);
    if (!ref)
        return KAIO_BAD_INPUT;
    enum kaio_status status = KAIO_OK;
    for (size_t k = 0; k < ref_noutput(ref); k++) {
        const char *name = ref_output(ref, k)->param->sym->name;
        const struct run_param *p = run_find_param(r, name);
        struct compare_result res;
        if (!p->result.data)
            continue;
        compare_output(ref, k, p->result.data, &bound, values_vary(r), &res);
        report_line(name, &res, &c->report);
        buf_printf(&c->report, "%s%s\n", res.status == COMPARE_MISTRUST ? ", mistrusted: " : "",
                   res.status == COMPARE_MISTRUST ? res.why : "");
        if (res.status == COMPARE_FAIL)
            report_misses(&res, 2, &c->report);
        if (res.status != COMPARE_PASS)
            status = KAIO_MISMATCH;
    }
    ref_free(ref);
    c->ref = NULL;
    return status;
}

static enum kaio_status do_verify(struct call *c)
{
    struct spec_file *file = read_spec(c);
    if (!file)
        return KAIO_BAD_INPUT;
    struct spec *s = file->specs.v[0];
    if (file->specs.n != 1) {
        diag_error(c->d, SPAN_NONE, "the file holds %zu kernels; give one", file->specs.n);
        return KAIO_BAD_INPUT;
    }
    if (!spec_oracle(s)) {
        diag_error(c->d, s->name_span, "'%s' has no reference: to check against", s->name);
        return KAIO_BAD_INPUT;
    }
    struct run *r = run_new(c->arena, contract_of_spec(c->arena, s, "sm_80"), c->d);
    struct run_arg *given = arguments(c);
    size_t n = 0; /* all but the outputs */
    for (size_t i = 0; i < c->narg; i++) {
        const struct run_param *p = run_find_param(r, given[i].name);
        if (!p || !run_is_buffer(p) || p->sym->mode != MODE_OUT)
            given[n++] = given[i];
    }
    if (!run_bind_args(r, given, n, NULL))
        return KAIO_BAD_INPUT;
    bool any = false;
    for (size_t i = 0; i < c->narg; i++)
        if (!bind_result(c, r, &c->arg[i]))
            return KAIO_BAD_INPUT;
    for (size_t i = 0; i < r->nparam; i++)
        any |= r->param[i].result.data != NULL;
    if (!any) {
        diag_error(c->d, SPAN_NONE, "no output is given, so there is nothing to check");
        return KAIO_BAD_INPUT;
    }
    return compare_results(c, s, r);
}

enum kaio_status kaio_verify(struct kaio *k, const char *name, const char *yaml, size_t yaml_len,
                             const struct kaio_arg *args, size_t narg)
{
    struct call c = {
        .k = k, .name = name, .text = yaml, .len = yaml_len, .arg = args, .narg = narg};
    return call_do(&c, do_verify);
}
