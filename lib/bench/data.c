#include <config.h>

#include "bench/data.h"

#include <math.h>

#include "base/parallel.h"
#include "bench/work.h"
#include "data/generate.h"
#include "values.h"

/* ---- inputs ---- */

struct tiling {
    const unsigned char *from;
    unsigned char *to;
    uint64_t period;
};

static void tile(void *ctx, uint64_t begin, uint64_t end)
{
    const struct tiling *t = ctx;
    while (begin < end) {
        uint64_t at = begin % t->period, n = t->period - at;
        n = n < end - begin ? n : end - begin;
        memcpy(t->to + begin, t->from + at, n);
        begin += n;
    }
}

/* The point's case says how to make an input, "@sorted:0:7"; NULL if it does not. */
static const char *made_by_case(const struct code *c, const char *name)
{
    for (size_t i = 0; c->case_name && i < c->spec->cases.n; i++) {
        const struct spec_case *k = &c->spec->cases.v[i];
        for (size_t b = 0; strcmp(k->name, c->case_name) == 0 && b < k->bind.n; b++)
            if (strcmp(k->bind.v[b].name, name) == 0)
                return k->bind.v[b].made;
    }
    return NULL;
}

static bool make(const struct code *c, const char *text, struct run_param *p)
{
    struct diags *d = diags_new(c->a);
    struct generator g;
    size_t used;
    return generator_parse(c->a, p->sym->name, text, strlen(text), &g, &used, d) &&
           generator_fill(&g, p->sym->name, &p->host, d);
}

static const struct spec_param *param_of(const struct spec *s, const char *name)
{
    for (size_t i = 0; i < s->params.n; i++)
        if (strcmp(s->params.v[i].sym->name, name) == 0)
            return &s->params.v[i];
    return NULL;
}

void data_fill(struct code *c, enum fill_kind kind, uint64_t seed, unsigned halve)
{
    enum { GRAIN = 1 << 20 };
    uint64_t terms = fill_terms(&c->in);
    for (size_t i = 0; i < c->run->nparam; i++) {
        struct run_param *p = &c->run->param[i];
        const struct spec_param *sp = param_of(c->spec, p->sym->name);
        if (!run_is_input(p) || !sp)
            continue;
        struct fill_use use = fill_use_of(&c->in, sp);
        struct buffer first = p->host;
        use.extent = use.extent >> halve ? use.extent >> halve : 1;
        if (!p->host.data)
            buffer_alloc(c->a, &p->host, p->sym->name);
        ((const void **)(uintptr_t)c->in.buffers)[sp->sym->id] = p->host.data;
        const char *made = made_by_case(c, p->sym->name);
        if (made && make(c, made, p))
            continue;
        /* of a packed type a period of bytes */
        uint64_t per_byte = dtype_bits(p->sym->type) == 4 ? 2 : 1;
        if (first.count > DATA_PERIOD * per_byte)
            buffer_shape(&first, p->sym->type, 1, &(uint64_t){DATA_PERIOD * per_byte});
        first.data = p->host.data;
        fill_buffer(kind, seed, p->sym->name, &use, terms, &first);
        struct tiling t = {first.data, p->host.data, first.bytes};
        if (p->host.bytes > first.bytes) {
            t.to += first.bytes;
            parallel_for(p->host.bytes - first.bytes, GRAIN, tile, &t);
        }
    }
}

/* ---- the reference ---- */

/* An element that takes this many terms is as much as can be waited for. */
static const double TERMS = 0x1p24;

/* All elements are evaluated where that takes no more operations than this. Rows of attention share
 * so much that all of them take no longer than a few elements alone. */
static const double ALL = 0x1p31;

static uint64_t sample_of(const struct code *c, const struct bench_point *p, uint64_t wanted)
{
    const double all = work_operations(c->spec, p);
    double n = TERMS / work_terms(c->spec, p);
    if (n < 32 && all > 0 && all < ALL)
        return 0;
    return n < 8 ? 8 : n < (double)wanted ? (uint64_t)n : wanted;
}

static bool subscript_left(const struct diags *d)
{
    for (size_t i = 0; i < d->list.n; i++)
        if (d->list.v[i].level == DIAG_ERROR)
            return strstr(d->list.v[i].text, "outside 0..") != NULL;
    return false;
}

/* A subscript out of range makes the range of subscripts smaller. */
static struct ref *reference(struct code *c, const struct bench_point *p, enum fill_kind kind,
                             const struct data_options *o, struct diags *d)
{
    const struct ref_options ro = {.threads = o->threads,
                                   .sample = sample_of(c, p, o->sample),
                                   .seed = o->seed,
                                   .sums = c->sums,
                                   .interrupted = o->interrupted};
    for (unsigned halve = 0;; halve++) {
        struct diags *own = diags_new(c->a);
        data_fill(c, kind, o->seed, halve);
        struct ref *ref = ref_evaluate(c->a, &c->in, &ro, own);
        if (ref)
            return ref;
        if (halve < 32 && subscript_left(own))
            continue;
        diags_append(d, own);
        return NULL;
    }
}

bool data_make(struct code *c, const struct bench_point *p, const struct data_options *o,
               struct data *out, struct diags *d)
{
    *out = (struct data){.code = c, .fill = FILL_NORMAL};
    if (!spec_oracle(c->spec))
        return diag_error(d, c->spec->name_span,
                          "'%s' has a body: and no reference:, so nothing says what it computes",
                          c->spec->name);
    out->ref = reference(c, p, out->fill, o, d);
    if (out->ref && fill_makes_nan(out->ref)) { /* logarithms and roots want positive numbers */
        ref_free(out->ref);
        out->fill = FILL_UNIFORM;
        out->ref = reference(c, p, out->fill, o, d);
    }
    out->inputs_vary = out->ref && values_vary(c->run);
    return out->ref != NULL;
}

void data_free(struct data *data)
{
    if (data->ref)
        ref_free(data->ref);
    data->ref = NULL;
}

/* ---- results ---- */

static const char *describe(struct arena *a, const char *name, const struct compare_result *r)
{
    struct buf b = buf_in(a);
    char where[256];
    buf_printf(&b, "%s: %llu of %llu wrong", name, (unsigned long long)r->wrong,
               (unsigned long long)r->compared);
    if (r->nmiss) {
        const struct compare_miss *m = &r->miss[0];
        compare_position(r, m->flat, where, sizeof where);
        buf_printf(&b, ", the first at %s: ", where);
        if (m->is_int)
            buf_printf(&b, "%lld instead of %lld", (long long)m->igot, (long long)m->iwant);
        else
            buf_printf(&b, "%.9g instead of %.9g", m->got, m->want);
    }
    return buf_text(&b);
}

struct data_check data_compare(const struct data *data, struct run *run)
{
    static const struct tolerance bound = {.ulp = -1};
    struct data_check check = {.right = true};
    struct code *c = data->code;
    for (size_t k = 0; k < ref_noutput(data->ref); k++) {
        const char *name = ref_output(data->ref, k)->param->sym->name;
        const struct run_param *p = run_find_param(run, name);
        struct compare_result r;
        compare_output(data->ref, k, p->result.data, &bound, data->inputs_vary, &r);
        check.compared += r.compared;
        check.max_bound = fmax(check.max_bound, r.max_bound);
        if (r.status == COMPARE_MISTRUST)
            check.mistrust = arena_printf(c->a, "%s: %s", name, r.why);
        if (r.status != COMPARE_FAIL || !check.right)
            continue;
        check.right = false;
        check.why = describe(c->a, name, &r);
    }
    return check;
}
