/* One trial: a kernel with one set of values, run on filled inputs and compared with the
 * reference. */
#include <config.h>

#include "trial.h"

#include "base/num.h"
#include "data/generate.h"
#include "values.h"

/* Terms that the reference adds up for a case before it counts as large, and bytes of its
 * buffers. */
static const double LARGE = 0x1p22, LARGE_BYTES = 0x1p26;
/* Bytes of the buffers up to which a case whose bound says nothing is judged step by step. */
static const double STEPS_BYTES = 0x1p32;
enum { GUARD = 4096 }; /* bytes on each side of a buffer on a GPU; the simulator knows the bounds */

/* ---- rows ------------------------------------------------------------------------------------ */

const char *trial_words(struct arena *a, const word_list *words)
{
    struct buf b = buf_in(a);
    for (size_t k = 0; k < words->n; k++) {
        buf_puts(&b, k ? " " : "");
        print_word(words->v[k], &b);
    }
    return buf_text(&b);
}

void trial_begin(struct trial *t)
{
    struct arena *a = t->k->s->a;
    const word_list *types = &t->k->types;
    t->a = arena_new();
    t->d = diags_new(t->a);
    t->seconds = 0;
    t->words = t->named ? t->named->name : trial_words(a, &t->values);
    t->test = arena_printf(a, "%s/%s%s%s", t->k->spec->name, t->words,
                           types->n && *t->words ? " " : "", trial_words(a, types));
    cli_doing(t->test);
}

void trial_add(struct trial *t, const struct row *base, const char *fill)
{
    struct session *s = t->k->s;
    struct row row = *base;
    row.test = t->test;
    row.kernel = t->k->spec->name;
    row.code = s->ops ? code_names[t->k->is_fixed ? CODE_FIXED : CODE_GENERIC] : NULL;
    row.device = s->info.kind;
    row.target = s->target->name;
    row.fill = fill;
    row.has_seed = true;
    row.seed = s->opt->seed;
    row.seconds = t->seconds;
    row.repeat = s->ops ? trial_repeat(t, fill) : NULL;
    progress_clear(&s->progress);
    rows_add(&s->rows, &row);
    if (row.status == ROW_FAIL || row.status == ROW_MISTRUST)
        session_worse(s, CLI_CHECK_FAILED);
    s->stop |= s->opt->fail_fast && row.status != ROW_PASS && row.status != ROW_SKIP;
}

void trial_error(struct trial *t, int status, const char *fill)
{
    struct session *s = t->k->s;
    progress_clear(&s->progress);
    cli_report(s->cli, t->d);
    const struct row row = row_of_errors(s->a, NULL, t->d);
    trial_add(t, &row, fill);
    session_worse(s, status);
}

static void skip(struct trial *t, const char *why, const char *fill)
{
    trial_add(t, &(struct row){.status = ROW_SKIP, .why = why}, fill);
}

void trial_skip(struct trial *t, const char *why)
{
    skip(t, why, NULL);
}

/* In the place of a kind of fill where every input has a generator. */
const char trial_given[] = "given";

/* ---- values ---------------------------------------------------------------------------------- */

static bool bind_named(struct trial *t)
{
    for (size_t i = 0; i < t->named->bind.n; i++) {
        const struct spec_binding *b = &t->named->bind.v[i];
        if (b->type != DT_VOID)
            continue; /* the kernel was read so */
        struct run_dim *dim = run_find_dim(t->run, b->name);
        struct run_param *p = run_find_param(t->run, b->name);
        if (b->made) {
            t->made[p - t->run->param] = b->made;
            continue;
        }
        const char *from =
            arena_printf(t->a, "case '%s' says %s=%lld", t->named->name, b->name, (long long)b->i);
        if (dim ? !run_bind_dim(t->run, dim, b->i, from)
            : p ? !run_bind_scalar(t->run, p, b->f, b->i)
                : false)
            return false;
    }
    return true;
}

static bool bind_word(struct trial *t, const char *word)
{
    const char *eq = strchr(word, '=');
    const char *name = arena_strndup(t->a, word, (size_t)(eq - word));
    struct run_dim *dim = run_find_dim(t->run, name);
    struct run_param *p = run_find_param(t->run, name);
    double f = 0;
    int64_t v = 0;
    bool whole = num_int(eq + 1, strlen(eq + 1), INT64_MIN, INT64_MAX, &v) == NUM_OK;
    bool number = num_double(eq + 1, strlen(eq + 1), &f) == NUM_OK || whole;
    if (spec_find_type(t->k->spec, name))
        return diag_error(t->d, SPAN_NONE, "'%s' is a type: write -D %s, or --types for several",
                          name, word);
    if (!dim && !p)
        return diag_error(t->d, SPAN_NONE, "'%s' has no dimension or scalar '%s'", t->k->spec->name,
                          name);
    if (!number || ((dim || !dtype_is_float(p->sym->type)) && !whole) || (p && run_is_buffer(p)))
        return diag_error(t->d, SPAN_NONE, "'%s': a dimension or a scalar wants a number", word);
    return dim ? run_bind_dim(t->run, dim, v, arena_printf(t->a, "%s was given", word))
               : run_bind_scalar(t->run, p, whole && f == 0 ? (double)v : f, v);
}

/* What the command line says of the inputs goes before the case. */
static bool bind_inputs(struct trial *t)
{
    struct session *s = t->k->s;
    for (size_t i = 0; i < s->inputs.n; i++) {
        const char *word = s->inputs.v[i], *eq = strchr(word, '=');
        const char *name = arena_strndup(t->a, word, (size_t)(eq - word));
        const struct run_param *p = run_find_param(t->run, name);
        if (!p || !run_is_input(p))
            continue;
        s->input_used[i] = true;
        const char *made = spec_input_text(t->a, name, eq + 1, SPAN_NONE, t->d);
        if (!made)
            return false;
        t->made[p - t->run->param] = made;
    }
    return true;
}

bool trial_bind(struct trial *t)
{
    t->run = run_new(t->a, t->k->contract, t->d);
    t->made = ARENA_ARRAY(t->a, t->run->nparam, const char *);
    if (t->named && !bind_named(t))
        return false;
    for (size_t i = 0; i < t->values.n; i++)
        if (!bind_word(t, t->values.v[i]))
            return false;
    if (!bind_inputs(t) || !run_shapes(t->run))
        return false;
    t->in = values_of(t->a, t->k->spec, t->run);
    return true;
}

double trial_cost(const struct trial *t)
{
    if (t->k->spec->program)
        return program_terms(t);
    return cost_of(t->a, &t->in, t->k->s->opt->sample);
}

/* ---- the reference --------------------------------------------------------------------------- */

/* Whether no input is left to the kind of fill. */
bool trial_all_made(const struct trial *t)
{
    bool all = true, any = false;
    for (size_t i = 0; i < t->run->nparam; i++)
        if (run_is_input(&t->run->param[i]) && !(t->run->param[i].decl->is_state && !t->made[i])) {
            all &= t->made[i] != NULL;
            any = true;
        }
    return all && any;
}

/* The kind's name, for rows. */
const char *trial_fill(const struct trial *t, enum fill_kind kind)
{
    return trial_all_made(t) ? trial_given : fill_names[kind];
}

bool trial_make_input(struct trial *t, const char *text, struct run_param *p)
{
    struct generator g;
    size_t used;
    return generator_parse(t->a, p->sym->name, text, strlen(text), &g, &used, t->d) &&
           generator_fill(&g, p->sym->name, &p->host, t->d);
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
            buffer_alloc(t->a, &p->host, p->sym->name);
        if (!t->made[i])
            fill_buffer(kind, t->k->s->opt->seed, p->sym->name, &use, terms, &p->host);
        else if (!trial_make_input(t, t->made[i], p))
            return false;
        ((const void **)(uintptr_t)t->in.buffers)[sp->sym->id] = p->host.data;
    }
    return true;
}

struct ref_options trial_ref_options(struct trial *t)
{
    const struct options *o = t->k->s->opt;
    return (struct ref_options){.threads = o->threads,
                                .sample = cost_sample(t->a, &t->in, o),
                                .seed = o->seed,
                                .sums = t->sums,
                                .interrupted = o->interrupted};
}

/* The reference of the inputs; a subscript out of range makes the range of subscripts smaller. */
static struct ref *reference(struct trial *t, enum fill_kind kind)
{
    const struct options *o = t->k->s->opt;
    const struct ref_options ro = trial_ref_options(t);
    for (unsigned halve = 0;; halve++) {
        struct diags *d = diags_new(t->a);
        if (!fill_inputs(t, kind, halve))
            return NULL;
        struct ref *ref = ref_evaluate(t->a, &t->in, &ro, d);
        if (ref)
            return ref;
        if (halve < 32 && !trial_all_made(t) && strstr(rows_first_error(d), "outside 0..") &&
            !*o->interrupted)
            continue;
        for (size_t i = 0; i < d->list.n; i++)
            diag_error(t->d, d->list.v[i].span, "%s", d->list.v[i].text);
        return NULL;
    }
}

/* ---- the run --------------------------------------------------------------------------------- */

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

bool trial_execute(struct trial *t, const char *fill)
{
    struct session *s = t->k->s;
    struct run_options ro = run_default;
    struct run_stats stats = {0};
    ro.message_bytes = s->opt->message_bytes;
    ro.guard = s->ops == &cuda_device ? GUARD : 0;
    ro.temps = t->temps;
    ro.watch = t->watch;
    ro.apart = s->opt->check != 0; /* so that reports name a program's temps */
    ro.interrupted = s->opt->interrupted;
    enum device_status st = run_execute(t->run, t->k->module, s->ops, s->dev, &ro, &stats);
    t->seconds += stats.seconds;
    print_messages(t);
    if (st == DEVICE_OK)
        return true;
    if (st != DEVICE_FAULT) {
        trial_error(t, st == DEVICE_REFUSED ? CLI_BAD_INPUT : CLI_DEVICE_FAILED, fill);
        return false;
    }
    progress_clear(&s->progress);
    cli_report(s->cli, t->d);
    trial_add(t,
              &(struct row){.status = ROW_FAIL,
                            .why = arena_strdup(s->a, rows_first_error(t->d)),
                            .said = t->d},
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

bool trial_bit_stable(struct trial *t, const char *fill)
{
    void **before = ARENA_ARRAY(t->a, t->run->nparam, void *);
    for (size_t i = 0; i < t->run->nparam; i++) {
        struct run_param *p = &t->run->param[i];
        if (!run_is_output(p) || !p->result.data)
            continue;
        before[i] = arena_alloc(t->a, p->result.bytes);
        memcpy(before[i], p->result.data, p->result.bytes);
    }
    for (uint64_t k = 0; k < t->k->s->opt->repeat && !*t->k->s->opt->interrupted; k++) {
        if (!trial_execute(t, fill))
            return false;
        if (same_bits(t, before))
            continue;
        trial_add(t, &(struct row){.status = ROW_FAIL, .why = "two runs gave different bits"},
                  fill);
        return false;
    }
    return true;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

bool trial_has_float_input(const struct spec *s)
{
    for (size_t k = 0; k < s->params.n; k++) {
        const struct lang_symbol *sym = s->params.v[k].sym;
        if (sym->kind == SYM_BUFFER && sym->mode != MODE_OUT && dtype_is_float(sym->type))
            return true;
    }
    return false;
}

/* Exact values are few, so that a reduction of many may well be the same everywhere: where another
 * fill follows, let that one say whether the reference depends on its inputs. */
bool trial_should_vary(const struct trial *t, enum fill_kind kind)
{
    unsigned fills = t->k->s->opt->fills;
    if (kind == FILL_EXACT && (!fills || fills >> FILL_NORMAL & 3) &&
        trial_has_float_input(t->k->spec))
        return false;
    return values_vary(t->run);
}

static void once(struct trial *t, word_list *list, const char *name)
{
    for (size_t k = 0; k < list->n; k++)
        if (strcmp(list->v[k], name) == 0)
            return;
    *VEC_PUSH(t->k->s->a, list) = arena_strdup(t->k->s->a, name);
}

void trial_judged(struct trial *t, const struct row *row, enum fill_kind kind)
{
    struct session *s = t->k->s;
    const struct compare_result *res = row->result;
    bool proves = res->status != COMPARE_MISTRUST;
    /* an intermediate is judged only where an output's bound says nothing, unless all are */
    bool counts = s->opt->steps || run_find_param(t->run, row->output);
    if (res->count && t->drawn && counts) {
        once(t, &t->k->seen, row->output);
        if (proves)
            once(t, &t->k->proved, row->output);
    }
    if (!res->count)
        skip(t, arena_printf(s->a, "nothing to compare: '%s' is empty", row->output),
             trial_fill(t, kind));
    else if (t->drawn && !proves)
        skip(t, arena_printf(s->a, "'%s' proves nothing here: %s", row->output, res->why),
             trial_fill(t, kind));
    else
        trial_add(t, row, trial_fill(t, kind));
}

/* The reference failed. Of a shape that nobody chose and that it has no value for, nothing is to be
 * said. */
void trial_no_reference(struct trial *t, enum fill_kind kind)
{
    struct session *s = t->k->s;
    const char *fill = trial_fill(t, kind);
    if (t->drawn && !*s->opt->interrupted)
        skip(t, arena_printf(s->a, "the reference has no value: %s", rows_first_error(t->d)), fill);
    else
        trial_error(t, *s->opt->interrupted ? CLI_CHECK_FAILED : CLI_BAD_INPUT, fill);
}

/* Compares each output with what the chain from the inputs gives. False: the bound of one says
 * nothing; those of the steps on the way may say more. */
static bool compare_all(struct trial *t, struct ref *ref, enum fill_kind kind,
                        struct compare_result *res)
{
    bool says = true;
    for (size_t k = 0; k < ref_noutput(ref) && !session_over(t->k->s); k++) {
        const struct run_param *p = run_find_param(t->run, ref_output(ref, k)->param->sym->name);
        compare_output(ref, k, p->result.data, &t->k->s->opt->tolerance, trial_should_vary(t, kind),
                       &res[k]);
        says &= !res[k].is_wide;
    }
    return says;
}

/* Whether the temps may be read back without being asked for. */
static bool may_step(struct trial *t)
{
    return trial_bytes(t) <= STEPS_BYTES && steps_any(t);
}

static void judge(struct trial *t, struct ref *ref, enum fill_kind kind)
{
    const size_t n = ref_noutput(ref);
    struct compare_result *res = ARENA_ARRAY(t->a, n, struct compare_result);
    const char *fill = trial_fill(t, kind);
    if (!t->temps && !compare_all(t, ref, kind, res) && may_step(t)) {
        t->temps = true;
        if (!trial_execute(t, fill))
            return;
    }
    if (t->temps) {
        steps_judge(t, kind);
        return;
    }
    for (size_t k = 0; k < n && !session_over(t->k->s); k++) {
        const struct row row = row_of_result(ref_output(ref, k)->param->sym->name, &res[k]);
        trial_judged(t, &row, kind);
    }
}

/* Whether --steps asks for what the kernel stores; where it stores nothing a note says so, once. */
static bool goes_in_steps(struct trial *t)
{
    struct session *s = t->k->s;
    const bool any = s->opt->steps && steps_any(t);
    if (s->opt->steps && !any && !t->k->noted) {
        progress_clear(&s->progress);
        cli_note(s->cli,
                 "--steps: '%s' is judged as one step: it stores no intermediate of the equations "
                 "that judge it",
                 t->k->spec->name);
        t->k->noted = true;
    }
    return any;
}

static void check(struct trial *t, enum fill_kind kind)
{
    struct session *s = t->k->s;
    t->d = t->run->d = diags_new(t->a); /* what was said of the inputs before has been shown */
    t->temps = goes_in_steps(t);
    struct ref *ref = reference(t, kind);
    if (ref && !s->opt->fills && kind == FILL_NORMAL && fill_makes_nan(ref)) {
        ref_free(ref); /* logarithms and roots want positive numbers */
        ref = reference(t, kind = FILL_UNIFORM);
    }
    if (!ref) {
        trial_no_reference(t, kind);
        return;
    }
    if (trial_execute(t, trial_fill(t, kind)) &&
        (!s->opt->repeat || trial_bit_stable(t, trial_fill(t, kind))))
        judge(t, ref, kind);
    ref_free(ref);
}

static bool takes(const struct trial *t, enum fill_kind kind)
{
    const struct options *o = t->k->s->opt;
    bool floats = trial_has_float_input(t->k->spec);
    if (trial_all_made(t))
        return kind == FILL_EXACT;
    if (o->fills)
        return o->fills >> kind & 1;
    switch (kind) {
    case FILL_EXACT: return !floats || fill_can_be_exact(t->k->spec);
    case FILL_NORMAL: return floats;
    case FILL_EDGE: return t->random;
    case FILL_EXTREME: return t->random && floats;
    default: return false;
    }
}

double trial_bytes(const struct trial *t)
{
    double bytes = 0;
    for (size_t k = 0; k < run_nbuffer(t->run); k++)
        bytes += (double)run_buffer(t->run, k)->host.bytes;
    return bytes;
}

/* A sample is for outputs whose elements take long; it is asked for by who knows how large the
 * buffers are. */
bool trial_skip_large(struct trial *t)
{
    const struct session *s = t->k->s;
    /* the calls of a program are a sample, each of no more than a sample */
    const double terms = t->k->spec->program ? 0 : trial_cost(t), bytes = trial_bytes(t);
    const bool few_bytes = bytes <= LARGE_BYTES || s->opt->sample;
    if ((terms <= LARGE && few_bytes) || !t->named || s->opt->all)
        return false;
    trial_skip(t, arena_printf(s->a, "large (%.2g %s); --all or --sample=N runs it",
                               terms > LARGE ? terms : bytes, terms > LARGE ? "terms" : "bytes"));
    return true;
}

void trial_run(struct trial *t)
{
    struct session *s = t->k->s;
    s->progress.what = t->test;
    progress_step(&s->progress, s->rows.n);
    if (!trial_bind(t) || !run_sums(t->run, &s->opt->sums, &t->sums)) {
        trial_error(t, CLI_BAD_INPUT, NULL);
        return;
    }
    if (trial_skip_large(t))
        return;
    if (t->k->program) {
        program_run(t);
        return;
    }
    for (int kind = 0; kind < FILL_KINDS && !session_over(s); kind++)
        if (takes(t, (enum fill_kind)kind))
            check(t, (enum fill_kind)kind);
}
