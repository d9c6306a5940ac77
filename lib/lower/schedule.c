#include <config.h>

#include "lower/schedule.h"

#include <ctype.h>
#include <stdlib.h>

const struct strategy strategies[] = {
    {"map", map_fits, map_lower, {"block", "vector", "unroll", NULL}},
    {"naive", naive_fits, naive_lower, {"block", NULL}},
};
const size_t nstrategies = sizeof strategies / sizeof *strategies;

static const struct spec_option *find_option(const struct spec *s, const char *key)
{
    for (size_t i = 0; i < s->schedule.n; i++)
        if (strcmp(s->schedule.v[i].key, key) == 0)
            return &s->schedule.v[i];
    return NULL;
}

static const char *strategy_list(struct arena *a)
{
    struct buf b = buf_in(a);
    for (size_t i = 0; i < nstrategies; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", strategies[i].name);
    return buf_text(&b);
}

static const struct strategy *named(struct cg *g, const struct spec_option *o)
{
    for (size_t i = 0; i < nstrategies; i++) {
        if (strcmp(strategies[i].name, o->value) != 0)
            continue;
        struct buf why = buf_in(g->a);
        if (strategies[i].fits(g, &why))
            return &strategies[i];
        cg_error(g, o->value_span, "strategy '%s' does not fit: %s", o->value, buf_text(&why));
        return NULL;
    }
    cg_error(g, o->value_span, "unknown strategy '%s'; there are: %s", o->value,
             strategy_list(g->a));
    return NULL;
}

static const struct strategy *first_that_fits(struct cg *g)
{
    for (size_t i = 0; i < nstrategies; i++) {
        struct buf why = buf_in(g->a);
        if (strategies[i].fits(g, &why)) {
            lower_explain(g, "%s: strategy %s\n", g->spec->name, strategies[i].name);
            return &strategies[i];
        }
        lower_explain(g, "%s: not %s: %s\n", g->spec->name, strategies[i].name, buf_text(&why));
    }
    abort(); /* the last one always fits */
}

static bool number(struct cg *g, const struct spec_option *o, uint32_t least, uint32_t most,
                   bool power, uint32_t *v)
{
    uint64_t n = 0;
    const char *c = o->value;
    for (; isdigit((unsigned char)*c) && n <= most; c++)
        n = n * 10 + (uint64_t)(*c - '0');
    bool good = c != o->value && !*c && n >= least && n <= most;
    if (power)
        good = good && (n & (n - 1)) == 0;
    else
        good = good && n % least == 0;
    *v = (uint32_t)n;
    if (good)
        return true;
    if (power)
        return cg_error(g, o->value_span, "'%s' is a power of two from %u to %u, not '%s'", o->key,
                        least, most, o->value);
    return cg_error(g, o->value_span, "'%s' is a multiple of %u up to %u, not '%s'", o->key, least,
                    most, o->value);
}

static bool takes(const struct strategy *s, const char *key)
{
    for (size_t i = 0; s->keys[i]; i++)
        if (strcmp(s->keys[i], key) == 0)
            return true;
    return false;
}

static bool read_option(struct cg *g, const struct strategy *s, const struct spec_option *o,
                        struct lower_plan *plan)
{
    if (strcmp(o->key, "strategy") == 0)
        return true;
    if (!takes(s, o->key)) {
        struct buf b = buf_in(g->a);
        for (size_t i = 0; s->keys[i]; i++)
            buf_printf(&b, "%s%s", i ? ", " : "", s->keys[i]);
        return cg_error(g, o->key_span, "strategy '%s' has no '%s'; it takes: %s", s->name, o->key,
                        buf_text(&b));
    }
    if (strcmp(o->key, "block") == 0)
        return number(g, o, 32, 1024, false, &plan->block);
    if (strcmp(o->key, "vector") == 0) {
        plan->vector_span = o->value_span;
        return number(g, o, 1, 32, true, &plan->vector);
    }
    return number(g, o, 1, 8, true, &plan->unroll);
}

const struct strategy *schedule_choose(struct cg *g, struct lower_plan *plan)
{
    const struct spec *spec = g->spec;
    const struct spec_option *o = find_option(spec, "strategy");
    const struct strategy *s = o ? named(g, o) : first_that_fits(g);
    if (o && s)
        lower_explain(g, "%s: strategy %s, as scheduled\n", spec->name, s->name);
    for (size_t i = 0; s && i < spec->schedule.n; i++)
        if (!read_option(g, s, &spec->schedule.v[i], plan))
            s = NULL;
    return s;
}
