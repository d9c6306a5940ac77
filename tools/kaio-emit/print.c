#include <config.h>

#include "print.h"

#include "base/json.h"

#include <inttypes.h>

/* ---- --stats --------------------------------------------------------------------------------- */

static void stats_text(const struct lower_stat *s, struct buf *out)
{
    buf_printf(out, "%s: %zu instructions\n  kinds: ", s->entry, s->instructions);
    size_t n = 0;
    for (int k = 0; k < LOWER_KINDS; k++)
        if (s->kind[k])
            buf_printf(out, "%s%zu %s", n++ ? ", " : "", s->kind[k],
                       lower_kind_name((enum lower_kind)k));
    buf_printf(out,
               "\n  registers: %zu pred, %zu b16, %zu b32, %zu b64, %zu f32, %zu f64 (virtual)\n",
               s->pred, s->b16, s->b32, s->b64, s->f32, s->f64);
    buf_printf(out,
               "  memory: %" PRIu64 " bytes shared, %" PRIu64 " bytes local, %" PRIu64
               " bytes const\n",
               s->shared_bytes, s->local_bytes, s->const_bytes);
    buf_printf(out, "  control: %zu branch%s (%zu conditional), %zu loop%s, %zu barrier%s\n",
               s->branches, s->branches == 1 ? "" : "es", s->conditional, s->loops,
               s->loops == 1 ? "" : "s", s->barriers, s->barriers == 1 ? "" : "s");
    buf_printf(out, "  work: %.15g flop, %.15g bytes of global memory", s->flops, s->global_bytes);
    if (s->global_bytes > 0)
        buf_printf(out, ", %.3g flop/byte", s->flops / s->global_bytes);
    buf_puts(out, " (of a thread; loops run 10 times)\n");
    for (size_t i = 0; i < s->access.n; i++) {
        const struct lower_access *x = &s->access.v[i];
        buf_printf(out, "  %6zu  %s.%s of %u bytes\n", x->count, x->name, x->space, x->bytes);
    }
    buf_puts(out, "  mix:\n");
    for (size_t i = 0; i < s->mix.n; i++)
        buf_printf(out, "  %6zu  %s\n", s->mix.v[i].count, s->mix.v[i].name);
}

static void entry_json(const struct lower_stat *s, struct json *w)
{
    json_object(w, NULL);
    json_str(w, "entry", s->entry);
    json_uint(w, "instructions", s->instructions);
    json_object(w, "kinds");
    for (int k = 0; k < LOWER_KINDS; k++)
        json_uint(w, lower_kind_name((enum lower_kind)k), s->kind[k]);
    json_end(w);
    json_object(w, "registers");
    json_uint(w, "pred", s->pred);
    json_uint(w, "b16", s->b16);
    json_uint(w, "b32", s->b32);
    json_uint(w, "b64", s->b64);
    json_uint(w, "f32", s->f32);
    json_uint(w, "f64", s->f64);
    json_end(w);
    json_uint(w, "shared_bytes", s->shared_bytes);
    json_uint(w, "local_bytes", s->local_bytes);
    json_uint(w, "const_bytes", s->const_bytes);
    json_uint(w, "branches", s->branches);
    json_uint(w, "conditional_branches", s->conditional);
    json_uint(w, "loops", s->loops);
    json_uint(w, "barriers", s->barriers);
    json_double(w, "flops", s->flops);
    json_double(w, "global_bytes", s->global_bytes);
    json_double(w, "intensity", s->flops / s->global_bytes); /* null where there are no bytes */
    json_array(w, "accesses");
    for (size_t k = 0; k < s->access.n; k++) {
        json_object(w, NULL);
        json_str(w, "op", s->access.v[k].name);
        json_str(w, "space", s->access.v[k].space);
        json_uint(w, "bytes", s->access.v[k].bytes);
        json_uint(w, "count", s->access.v[k].count);
        json_end(w);
    }
    json_end(w);
    json_object(w, "mix");
    for (size_t k = 0; k < s->mix.n; k++)
        json_uint(w, s->mix.v[k].name, s->mix.v[k].count);
    json_end(w);
    json_end(w);
}

static void stats_json(const char *target, const struct lower_stat *s, size_t n, struct buf *out)
{
    struct json w = json_in(out, 2);
    json_object(&w, NULL);
    json_str(&w, "target", target);
    json_array(&w, "entries");
    for (size_t i = 0; i < n; i++)
        entry_json(&s[i], &w);
    json_end(&w);
    json_end(&w);
    buf_putc(out, '\n');
}

void print_stats(struct arena *a, const struct ptx_module *m, const char *target, bool json,
                 struct buf *out)
{
    size_t n;
    const struct lower_stat *s = lower_stats(a, m, &n);
    if (json)
        stats_json(target, s, n, out);
    for (size_t i = 0; i < n && !json; i++)
        stats_text(&s[i], out);
}

/* ---- --explain ------------------------------------------------------------------------------- */

/* Is it launched in any case, or the first that may be in its step? */
static bool is_first(const struct lower_kernel *k, size_t i)
{
    const struct lower_launch *l = &k->launches.v[i];
    return !i || l[-1].step != l->step || !l->entry.when;
}

/* Nanoseconds of those that have a model; *all: is that each of them? */
static double modelled(const struct lower_kernel *k, bool *all)
{
    double ns = 0;
    *all = true;
    for (size_t i = 0; i < k->launches.n; i++)
        if (is_first(k, i)) {
            ns += k->launches.v[i].entry.ns;
            *all &= k->launches.v[i].entry.ns > 0;
        }
    return ns;
}

/* Nanoseconds of all steps; 0: not known. */
static double estimate(const struct lower_kernel *k)
{
    bool all;
    const double ns = modelled(k, &all);
    return all ? ns : 0;
}

/* Models are of contractions, and of chains of them. */
static bool has_model(const struct lower_kernel *k)
{
    for (size_t i = 0; i < k->parts.n; i++)
        if (strcmp(k->parts.v[i].strategy, "matmul") == 0 ||
            strcmp(k->parts.v[i].strategy, "chain") == 0)
            return true;
    return false;
}

static void without_text(const struct lower_kernel *k, struct buf *out)
{
    const char *before = ", and what has no model: ";
    for (size_t i = 0; i < k->launches.n; i++)
        if (is_first(k, i) && k->launches.v[i].entry.ns <= 0) {
            buf_printf(out, "%s%s", before, k->launches.v[i].entry.name);
            before = ", ";
        }
}

static void estimate_text(const struct lower_kernel *k, struct buf *out)
{
    bool all;
    const double ns = modelled(k, &all);
    if (ns > 0 && (all || !k->open.n)) {
        buf_printf(out, "  estimate: about %.4g us", ns / 1e3);
        without_text(k, out);
        buf_putc(out, '\n');
        return;
    }
    if (!has_model(k) || !k->open.n)
        buf_puts(out, "  no estimate: contractions alone have a model\n");
    for (size_t i = 0; has_model(k) && i < k->open.n; i++)
        buf_printf(out, "%s%s%s",
                   !i                  ? "  no estimate: -D could say "
                   : i + 1 < k->open.n ? ", "
                                       : " and ",
                   k->open.v[i], i + 1 == k->open.n ? "\n" : "");
}

static void launches_text(const struct lower_kernel *k, uint32_t step, struct buf *out)
{
    size_t n = 0, width = 0;
    for (size_t i = 0; i < k->launches.n; i++)
        if (k->launches.v[i].step == step) {
            const size_t len = strlen(k->launches.v[i].entry.name);
            width = len > width ? len : width;
        }
    for (size_t i = 0; i < k->launches.n; i++) {
        const struct lower_entry *e = &k->launches.v[i].entry;
        if (k->launches.v[i].step != step)
            continue;
        buf_printf(out, "    %6s %-*s  %s\n", n++ && e->when ? "or" : "launch", (int)width, e->name,
                   e->how ? e->how : "as written");
    }
}

static void tensor_cores_text(const struct lower_kernel *k, struct buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < k->launches.n; i++) {
        const char *by = k->launches.v[i].entry.multiplies;
        bool again = !by;
        for (size_t m = 0; m < i && !again; m++)
            again = k->launches.v[m].entry.multiplies &&
                    strcmp(k->launches.v[m].entry.multiplies, by) == 0;
        if (!again)
            buf_printf(out, "%s%s", n++ ? "; " : "  tensor cores: ", by);
    }
    buf_puts(out, n ? "\n" : "  no tensor cores\n");
}

/* Those whose sizes are short to say, and how many others. */
static void temps_text(const struct lower_kernel *k, struct buf *out)
{
    enum { SHORT = 48 };
    size_t n = 0;
    for (size_t i = 0; i < k->temps.n; i++)
        if (strlen(k->temps.v[i].bytes) <= SHORT)
            buf_printf(out, "%s%s %s bytes", n++ ? ", " : "  temps: ", k->temps.v[i].name,
                       k->temps.v[i].bytes);
    if (n < k->temps.n)
        buf_printf(out, "%s%zu%s, of bytes that the launch computes",
                   n ? "; " : "  temps: ", k->temps.n - n, n ? " more" : "");
    buf_puts(out, k->temps.n ? "\n" : "  no temps\n");
}

static void kernel_text(const struct lower_kernel *k, const char *target, struct buf *out)
{
    buf_printf(out, "%s for %s", k->name, target);
    for (size_t i = 0; i < k->types.n; i++)
        buf_printf(out, ", %s = %s", k->types.v[i].name, k->types.v[i].chosen);
    buf_putc(out, '\n');
    for (size_t i = 0; i < k->parts.n; i++) {
        const struct lower_part *p = &k->parts.v[i];
        buf_printf(out, "  %s: %s%s\n", p->entry, p->strategy,
                   p->scheduled ? ", as scheduled" : "");
        for (size_t m = 0; m < p->lacks.n; m++)
            buf_printf(out, "    not %s: %s\n", p->lacks.v[m].what, p->lacks.v[m].why);
        launches_text(k, p->step, out);
    }
    for (size_t i = 0; i < k->derived.n; i++)
        buf_printf(out, "%s%s = %s%s", i ? ", " : "  dims: ", k->derived.v[i].name,
                   k->derived.v[i].of, i + 1 == k->derived.n ? "\n" : "");
    temps_text(k, out);
    tensor_cores_text(k, out);
    estimate_text(k, out);
}

void print_explain(const struct lower_report *r, const char *target, const char *tuning, bool all,
                   struct buf *out)
{
    buf_puts(out, tuning);
    if (all)
        buf_puts(out, buf_text((struct buf *)&r->text));
    for (size_t i = 0; i < r->kernels.n && !all; i++)
        kernel_text(r->kernels.v[i], target, out);
}

static void us_json(struct json *w, double ns)
{
    if (ns > 0)
        json_double(w, "estimate_us", ns / 1e3);
    else
        json_null(w, "estimate_us");
}

static void texts_json(struct json *w, const char *key, const char *const *v, size_t n)
{
    json_array(w, key);
    for (size_t i = 0; i < n; i++)
        json_str(w, NULL, v[i]);
    json_end(w);
}

static void part_json(struct json *w, const struct lower_part *p)
{
    json_object(w, NULL);
    json_str(w, "entry", p->entry);
    json_str(w, "strategy", p->strategy);
    json_bool(w, "scheduled", p->scheduled);
    json_uint(w, "step", p->step);
    json_array(w, "lacks");
    for (size_t i = 0; i < p->lacks.n; i++) {
        json_object(w, NULL);
        json_str(w, "what", p->lacks.v[i].what);
        json_str(w, "why", p->lacks.v[i].why);
        json_end(w);
    }
    json_end(w);
    json_end(w);
}

static void launch_json(struct json *w, const struct lower_launch *l)
{
    json_object(w, NULL);
    json_str(w, "entry", l->entry.name);
    json_uint(w, "step", l->step);
    json_str(w, "how", l->entry.how);
    json_str(w, "tensor_cores", l->entry.multiplies);
    json_str(w, "when", l->entry.when);
    texts_json(w, "grid", l->grid, 3);
    texts_json(w, "block", l->block, 3);
    json_str(w, "shared_bytes", l->shared);
    us_json(w, l->entry.ns);
    json_end(w);
}

static void kernel_json(struct json *w, const struct lower_kernel *k)
{
    json_object(w, NULL);
    json_str(w, "kernel", k->name);
    json_object(w, "types");
    for (size_t i = 0; i < k->types.n; i++)
        json_str(w, k->types.v[i].name, k->types.v[i].chosen);
    json_end(w);
    texts_json(w, "open_dimensions", k->open.v, k->open.n);
    json_object(w, "derived_dimensions");
    for (size_t i = 0; i < k->derived.n; i++)
        json_str(w, k->derived.v[i].name, k->derived.v[i].of);
    json_end(w);
    json_array(w, "parts");
    for (size_t i = 0; i < k->parts.n; i++)
        part_json(w, &k->parts.v[i]);
    json_end(w);
    json_array(w, "launches");
    for (size_t i = 0; i < k->launches.n; i++)
        launch_json(w, &k->launches.v[i]);
    json_end(w);
    json_array(w, "temps");
    for (size_t i = 0; i < k->temps.n; i++) {
        json_object(w, NULL);
        json_str(w, "name", k->temps.v[i].name);
        json_str(w, "bytes", k->temps.v[i].bytes);
        json_end(w);
    }
    json_end(w);
    us_json(w, estimate(k));
    json_end(w);
}

void print_explain_json(const struct lower_report *r, const char *target, const char *tuning,
                        struct buf *out)
{
    struct json w = json_in(out, 2);
    json_object(&w, NULL);
    json_str(&w, "target", target);
    json_str(&w, "tuning", *tuning ? tuning : NULL);
    json_array(&w, "kernels");
    for (size_t i = 0; i < r->kernels.n; i++)
        kernel_json(&w, r->kernels.v[i]);
    json_end(&w);
    json_end(&w);
    buf_putc(out, '\n');
}

/* ---- programs -------------------------------------------------------------------------------- */

void print_program(const struct program *p, const char *target, struct buf *out)
{
    buf_printf(out, "%s for %s, a program of %zu kernel%s\n", p->spec->name, target, p->kernels.n,
               p->kernels.n == 1 ? "" : "s");
    lang_print_steps(&p->contract->written, 1, out);
    for (size_t i = 0; i < p->contract->temps.n; i++) {
        const struct contract_temp *t = &p->contract->temps.v[i];
        buf_printf(out, "  %s  %s", t->sym->name, dtype_name(t->sym->type));
        lang_print_shape(t->sym, out);
        buf_puts(out, t->is_zero ? " = 0\n" : "\n");
    }
    buf_puts(out, p->contract->temps.n ? "" : "  no temps\n");
}

/* ---- --list-strategies ----------------------------------------------------------------------- */

static void strategies_json(const struct lower_strategy *s, size_t n, struct buf *out)
{
    struct json w = json_in(out, 2);
    json_object(&w, NULL);
    json_array(&w, "strategies");
    for (size_t i = 0; i < n; i++) {
        json_object(&w, NULL);
        json_str(&w, "name", s[i].name);
        json_str(&w, "takes", s[i].takes);
        json_array(&w, "options");
        for (size_t k = 0; k < s[i].noption; k++) {
            json_object(&w, NULL);
            json_str(&w, "key", s[i].options[k].key);
            json_str(&w, "values", s[i].options[k].values);
            json_str(&w, "help", s[i].options[k].help);
            json_end(&w);
        }
        json_end(&w);
        json_end(&w);
    }
    json_end(&w);
    json_end(&w);
    buf_putc(out, '\n');
}

void print_strategies(struct arena *a, bool json, struct buf *out)
{
    size_t n;
    const struct lower_strategy *s = lower_strategies(a, &n);
    if (json)
        strategies_json(s, n, out);
    for (size_t i = 0; i < n && !json; i++) {
        buf_printf(out, "%-8s %s\n", s[i].name, s[i].takes);
        for (size_t k = 0; k < s[i].noption; k++)
            buf_printf(out, "  %-10s %s; %s\n", s[i].options[k].key, s[i].options[k].help,
                       s[i].options[k].values);
    }
}
