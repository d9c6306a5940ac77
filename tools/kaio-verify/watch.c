/* The calls of a program's steps while it runs. Each is judged by what it was given, so that its
 * bound is the kernel's own: if every call is right so is the program, and one that is wrong has a
 * line and the values of the indices around it.
 *
 * Steps in loops are called often. The first calls of each are checked, and of the n-th the share
 * FIRST / n, drawn by the seed: as many between the 100th and the 200th as between the 1000th and
 * the 2000th. When a step has been called MOST times the program ends, for a loop whose condition
 * goes by random numbers may go on for long. */
#include <config.h>

#include <inttypes.h>
#include <math.h>

#include "trial.h"

#include "values.h"

enum { FIRST = 4, MOST = 1000 };

struct site {                /* a step */
    const struct spec *spec; /* NULL: nobody knows the kernel */
    const char *call;
    uint64_t calls, checked, proved;
    const char *output, *why; /* of a comparison that proved nothing */
    const char *step;
};

struct stretch { /* bytes */
    uint64_t from, to;
};
typedef VEC(struct stretch) stretch_list;

struct watcher {
    struct trial *t;
    enum fill_kind kind;
    bool may_be_nan;
    struct run_watch watch;
    struct site *site;
    size_t nsite;
    stretch_list *written; /* by the program's parameter, of the outs: in order, apart */
    uint64_t calls, checked, sampled, compared; /* sampled: not in full; compared: elements */
    double most;                                /* of the errors, as parts of their bounds */
    const char *most_step;
    bool nan, wrong, ended;
};

/* "step of line 9, t = 3, call 4: heat_step(x: u, y: v)" */
static const char *step_text(const struct watcher *w, const struct run_call *c)
{
    const struct run *r = w->t->run;
    struct buf b = buf_in(w->t->k->s->a);
    buf_puts(&b, "step");
    if (c->step->line)
        buf_printf(&b, " of line %" PRIu32, c->step->line);
    for (size_t i = 0; i < r->nloop; i++)
        buf_printf(&b, ", %s = %" PRId64, r->loop[i].sym->name, r->loop[i].value);
    if (c->before)
        buf_printf(&b, ", call %" PRIu64, c->before + 1);
    buf_printf(&b, ": %s", c->text);
    return buf_text(&b);
}

/* ---- what was given a value ------------------------------------------------------------------ */

static void add_stretch(struct arena *a, stretch_list *list, uint64_t from, uint64_t to)
{
    size_t first = 0, n = 0;
    while (first < list->n && list->v[first].to < from)
        first++;
    for (; first + n < list->n && list->v[first + n].from <= to; n++) {
        from = list->v[first + n].from < from ? list->v[first + n].from : from;
        to = list->v[first + n].to > to ? list->v[first + n].to : to;
    }
    if (!n) {
        VEC_PUSH(a, list);
        for (size_t i = list->n - 1; i > first; i--)
            list->v[i] = list->v[i - 1];
    }
    for (size_t i = first + 1; n > 1 && i + n - 1 < list->n; i++)
        list->v[i] = list->v[i + n - 1];
    list->n -= n > 1 ? n - 1 : 0;
    list->v[first] = (struct stretch){from, to};
}

static void note_written(struct watcher *w, const struct run_call *c)
{
    const struct run *r = w->t->run;
    for (size_t i = 0; i < c->step->args.n; i++) {
        const struct contract_actual *actual = &c->step->args.v[i];
        const uint64_t bytes = actual->value ? 0 : c->part[i].shape.bytes;
        for (size_t k = 0; bytes && k < r->nparam; k++)
            if (r->param[k].sym == actual->view.sym && actual->param->sym->mode != MODE_IN)
                add_stretch(w->t->a, &w->written[k], c->part[i].at, c->part[i].at + bytes);
    }
}

/* "1, 0": the element that lies there. */
static const char *index_text(struct arena *a, const struct buffer *b, uint64_t byte)
{
    uint64_t flat = byte * 8 / dtype_bits(b->type), inner = b->count;
    struct buf text = buf_in(a);
    for (uint32_t k = 0; k < b->rank; k++) {
        inner /= b->dim[k];
        buf_printf(&text, "%s%" PRIu64, k ? ", " : "", flat / inner);
        flat %= inner;
    }
    return buf_text(&text);
}

/* Of an out that not all is written of, where that begins; NULL: there is none. */
static const char *find_unwritten(const struct watcher *w)
{
    const struct run *r = w->t->run;
    for (size_t i = 0; i < r->nparam; i++) {
        const struct run_param *p = &r->param[i];
        const stretch_list *list = &w->written[i];
        if (!run_is_buffer(p) || p->sym->mode != MODE_OUT)
            continue;
        const uint64_t first = !list->n || list->v[0].from ? 0 : list->v[0].to;
        if (first < p->host.bytes)
            return arena_printf(w->t->k->s->a, "no step gives '%s' a value from [%s] on",
                                p->sym->name, index_text(w->t->a, &p->host, first));
    }
    return NULL;
}

/* ---- which calls ----------------------------------------------------------------------------- */

static bool checks_all(const struct watcher *w)
{
    return w->t->k->s->opt->all;
}

static bool is_drawn(const struct watcher *w, const struct run_call *c)
{
    const uint64_t n = c->before + 1;
    uint64_t h = w->t->k->s->opt->seed ^ (uint64_t)c->number << 40 ^ n;
    for (int i = 0; i < 3; i++) {
        h *= UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 31;
    }
    return n <= FIRST || checks_all(w) || h % n < FIRST;
}

/* To compare two runs takes whole ones. */
static bool is_enough(const struct watcher *w, const struct site *site)
{
    return !checks_all(w) && !w->t->k->s->opt->repeat && site->calls >= MOST;
}

static struct site *site_of(struct watcher *w, const struct run_call *c)
{
    struct trial *t = w->t;
    if (!w->site)
        w->site = ARENA_ARRAY(t->a, w->nsite = c->n, struct site);
    struct site *site = &w->site[c->number];
    if (!site->call) {
        site->call = c->text;
        site->spec = program_spec(t, c->step->kernel);
    }
    return site;
}

static bool has_oracle(const struct site *site)
{
    return site->spec && spec_oracle(site->spec);
}

static bool wants(void *ctx, const struct run_call *c)
{
    struct watcher *w = ctx;
    struct site *site = site_of(w, c);
    site->calls++;
    w->calls++;
    note_written(w, c);
    return is_enough(w, site) || (has_oracle(site) && is_drawn(w, c));
}

/* ---- the verdict on a call ------------------------------------------------------------------- */

static void add_wrong(struct watcher *w, struct row *row, const struct run_call *c)
{
    row->step = step_text(w, c);
    row->calls = w->calls;
    row->checked = w->checked;
    trial_add(w->t, row, trial_fill(w->t, w->kind));
    w->wrong = true;
}

static void no_reference(struct watcher *w, const struct run_call *c, struct diags *d)
{
    struct session *s = w->t->k->s;
    struct row row = row_of_errors(s->a, NULL, d);
    progress_clear(&s->progress);
    cli_report(s->cli, d);
    add_wrong(w, &row, c);
    session_worse(s, *s->opt->interrupted ? CLI_CHECK_FAILED : CLI_BAD_INPUT);
}

/* One output. False: it is wrong. */
static bool judge_output(struct watcher *w, struct site *site, const struct run_call *c,
                         struct ref *ref, size_t k, bool *proves)
{
    const char *name = ref_output(ref, k)->param->sym->name;
    const struct run_param *p = run_find_param(c->kernel, name);
    struct compare_result res;
    /* that what a step makes is constant says nothing against the reference */
    compare_output(ref, k, p->result.data, &w->t->k->s->opt->tolerance, false, &res);
    if (res.status == COMPARE_FAIL) {
        struct row row = row_of_result(name, &res);
        add_wrong(w, &row, c);
        return false;
    }
    w->compared += res.compared;
    if (res.status == COMPARE_MISTRUST && res.count) {
        *proves = false;
        site->output = name;
        site->why = res.why;
        site->step = step_text(w, c);
    }
    if (res.max_bound > w->most) {
        w->most = res.max_bound;
        w->most_step = step_text(w, c);
    }
    return true;
}

static void judge(struct watcher *w, struct site *site, const struct run_call *c, struct arena *a)
{
    const struct options *o = w->t->k->s->opt;
    const struct ref_input in = values_of(a, site->spec, c->kernel);
    struct ref_options ro = {.threads = o->threads,
                             .sample = cost_sample_of_call(a, &in, o),
                             .seed = o->seed,
                             .interrupted = o->interrupted};
    struct diags *d = diags_new(a);
    c->kernel->d = d;
    struct ref *ref = run_sums(c->kernel, &o->sums, &ro.sums) ? ref_evaluate(a, &in, &ro, d) : NULL;
    c->kernel->d = w->t->d;
    w->checked++;
    w->sampled += ro.sample != 0;
    site->checked++;
    if (!ref) {
        no_reference(w, c, d);
        return;
    }
    bool proves = true;
    w->nan = !w->may_be_nan && !c->before && fill_makes_nan(ref);
    for (size_t k = 0; !w->nan && k < ref_noutput(ref); k++)
        if (!judge_output(w, site, c, ref, k, &proves))
            break;
    site->proved += proves;
    ref_free(ref);
}

static bool saw(void *ctx, const struct run_call *c)
{
    struct watcher *w = ctx;
    struct site *site = site_of(w, c);
    if (has_oracle(site)) {
        struct arena *a = arena_new();
        judge(w, site, c, a);
        arena_free(a);
    }
    w->ended = is_enough(w, site);
    return !w->nan && !w->wrong && !w->ended && !session_over(w->t->k->s);
}

/* ---- the verdict on the program -------------------------------------------------------------- */

struct watcher *watch_new(struct trial *t, enum fill_kind kind, bool may_be_nan)
{
    struct watcher *w = ARENA_NEW(t->a, struct watcher);
    *w = (struct watcher){.t = t, .kind = kind, .may_be_nan = may_be_nan};
    w->written = ARENA_ARRAY(t->a, t->run->nparam, stretch_list);
    w->watch = (struct run_watch){.ctx = w, .wants = wants, .saw = saw};
    return w;
}

const struct run_watch *watch_of(struct watcher *w)
{
    return &w->watch;
}

bool watch_saw_nan(const struct watcher *w)
{
    return w->nan;
}

bool watch_saw_wrong(const struct watcher *w)
{
    return w->wrong;
}

static size_t count_kernels(const struct watcher *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->nsite; i++) {
        bool is_new = w->site[i].checked > 0;
        for (size_t k = 0; k < i && is_new; k++)
            is_new = !w->site[k].checked || w->site[k].spec != w->site[i].spec;
        n += is_new;
    }
    return n;
}

/* What nothing can be said of, so that nobody takes it for checked. */
static void print_unchecked(const struct watcher *w, struct buf *b)
{
    const char *before = "; without a reference: ";
    for (size_t i = 0; i < w->nsite; i++) {
        const struct site *site = &w->site[i];
        if (!site->calls || has_oracle(site))
            continue;
        buf_printf(b, "%s%.*s (%" PRIu64 " call%s)", before, (int)strcspn(site->call, "("),
                   site->call, site->calls, site->calls == 1 ? "" : "s");
        before = ", ";
    }
}

static const char *summary(const struct watcher *w)
{
    const size_t kernels = count_kernels(w);
    struct buf b = buf_in(w->t->k->s->a);
    buf_printf(&b, "%" PRIu64 " of %" PRIu64 " calls checked (%zu kernel%s)", w->checked, w->calls,
               kernels, kernels == 1 ? "" : "s");
    if (w->sampled)
        buf_printf(&b, ", %" PRIu64 " by a sample of elements", w->sampled);
    if (w->most_step)
        buf_printf(&b, ", largest error %.3g of its bound in the %s", w->most, w->most_step);
    else
        buf_puts(&b, ", all equal");
    print_unchecked(w, &b);
    if (w->ended)
        buf_printf(&b, "; ended when a step had been called %d times (--all goes on)", MOST);
    return buf_text(&b);
}

/* A step of which no call proved anything. */
static const struct site *find_unproved(const struct watcher *w)
{
    for (size_t i = 0; i < w->nsite; i++)
        if (w->site[i].checked && !w->site[i].proved)
            return &w->site[i];
    return NULL;
}

void watch_end(struct watcher *w)
{
    struct trial *t = w->t;
    const struct site *unproved = find_unproved(w);
    const char *unwritten = w->ended ? NULL : find_unwritten(w);
    struct row row = {.status = ROW_PASS, .calls = w->calls, .checked = w->checked};
    if (unwritten) {
        row.status = ROW_FAIL;
        row.why = unwritten;
    } else if (!w->compared) {
        row.status = ROW_SKIP;
        row.why = !w->calls     ? "it calls no kernel"
                  : !w->checked ? "no kernel that it calls has a reference"
                                : "nothing to compare: what its calls write is empty";
    } else if (unproved) {
        row.status = ROW_MISTRUST;
        row.step = unproved->step;
        row.output = unproved->output;
        row.why =
            arena_printf(t->k->s->a, "'%s' proves nothing: %s", unproved->output, unproved->why);
    } else {
        row.about = summary(w);
    }
    trial_add(t, &row, trial_fill(t, w->kind));
}
