#include <config.h>

#include "print.h"

#include "base/json.h"

#include <inttypes.h>

/* ---- --stats -------------------------------------------------------------------------------------- */

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

/* ---- --list-strategies ---------------------------------------------------------------------------- */

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
