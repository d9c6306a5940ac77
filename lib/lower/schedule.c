#include <config.h>

#include "lower/schedule.h"

#include "lower/explain.h"

const struct strategy *const strategies[] = {
#define STRATEGY(name) &name##_strategy,
#include "lower/strategies.def"
#undef STRATEGY
};
const size_t nstrategies = sizeof strategies / sizeof *strategies;

const struct spec_option *schedule_option(const struct cg *g, const char *key)
{
    for (size_t i = 0; i < g->spec->schedule.n; i++)
        if (strcmp(g->spec->schedule.v[i].key, key) == 0)
            return &g->spec->schedule.v[i];
    return NULL;
}

struct span schedule_span(const struct cg *g, const char *key)
{
    const struct spec_option *o = schedule_option(g, key);
    return o ? o->value_span : g->spec->name_span;
}

bool schedule_names(const struct cg *g, const struct strategy *st)
{
    const struct spec_option *o = schedule_option(g, "strategy");
    return o && strcmp(o->value, st->name) == 0;
}

const struct strategy *schedule_last(void)
{
    return strategies[nstrategies - 1];
}

static const char *strategy_list(struct arena *a)
{
    struct buf b = buf_in(a);
    for (size_t i = 0; i < nstrategies; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", strategies[i]->name);
    return buf_text(&b);
}

const struct strategy *schedule_named(struct cg *g, bool *good)
{
    const struct spec_option *o = schedule_option(g, "strategy");
    *good = true;
    if (!o)
        return NULL;
    for (size_t i = 0; i < nstrategies; i++)
        if (strcmp(strategies[i]->name, o->value) == 0)
            return strategies[i];
    *good = cg_error(g, o->value_span, "unknown strategy '%s'; there are: %s", o->value,
                     strategy_list(g->a));
    return NULL;
}

/* ---- what it says ---------------------------------------------------------------------------- */

static const struct strategy_option *find_option(const struct strategy *st, const char *key)
{
    for (size_t i = 0; i < st->noption; i++)
        if (strcmp(st->options[i].key, key) == 0)
            return &st->options[i];
    return NULL;
}

static bool takes(const struct strategy *st, const struct spec_option *said)
{
    const struct strategy_option *o = find_option(st, said->key);
    return strcmp(said->key, "strategy") == 0 || (o && option_takes(o, said->value));
}

/* The first thing that the schedule says and the strategy does not take; NULL: it takes all. */
static const struct spec_option *unread_option(const struct cg *g, const struct strategy *st)
{
    for (size_t i = 0; i < g->spec->schedule.n; i++)
        if (!takes(st, &g->spec->schedule.v[i]))
            return &g->spec->schedule.v[i];
    return NULL;
}

bool schedule_takes(const struct cg *g, const struct strategy *st)
{
    return !unread_option(g, st);
}

bool schedule_asks(const struct cg *g, const struct strategy *st)
{
    return schedule_option(g, "strategy") ? schedule_names(g, st)
                                          : g->spec->schedule.n && schedule_takes(g, st);
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* A call that lang could not replace by what it returns; NULL: none. */
static const struct lang_expr *find_call(const struct lang_expr *e)
{
    const struct lang_expr *found = e->kind == E_CALL && e->func ? e : NULL;
    for (uint32_t i = 0; i < e->nargs && !found; i++)
        found = find_call(e->args[i]);
    for (uint32_t i = 0; i < e->nindex && !found; i++) {
        found = e->index[i]->dims ? find_call(e->index[i]->dims[0]) : NULL;
        if (e->index[i]->low && !found)
            found = find_call(e->index[i]->low);
    }
    return e->pad && !found ? find_call(e->pad) : found;
}

/* What any stage of the spec is asked about, looked for once. */
static void find_obstacles(struct cg *g)
{
    if (g->obstacles_of == g->spec)
        return;
    g->obstacles_of = g->spec;
    g->call = NULL;
    for (size_t i = 0; i < g->spec->compute.n; i++)
        g->call = g->call ? g->call : find_call(g->spec->compute.v[i]->rhs);
}

/* What keeps all strategies but the last from the kernel's equations; false: nothing does. */
static bool is_closed(struct cg *g, struct buf *why)
{
    find_obstacles(g);
    if (g->guarded)
        return !lower_lacks(why, g->guarded->span,
                            "%s may only be computed where a condition holds",
                            lang_reduce_name(g->guarded->reduce));
    if (g->call)
        buf_printf(why,
                   "what '%s' reads is not known, since it is more than variables, if and return",
                   g->call->func->name);
    return g->call != NULL;
}

void *schedule_analyse(struct cg *g, const struct strategy *st, const struct lower_stage *s,
                       struct buf *why)
{
    return st != schedule_last() && is_closed(g, why) ? NULL : st->analyse(g, s, why);
}

/* The first of them that fits the stage and takes what the schedule says; if there is none, the
 * first that fits. why[i]: what the stage lacks for strategy i, or that it has not all the words.
 */
static struct choice first_of(struct cg *g, const struct lower_stage *s, bool whole,
                              const char **why)
{
    struct choice first = {NULL, NULL};
    for (size_t i = 0; i + 1 < nstrategies; i++) {
        struct buf b = buf_in(g->a);
        const struct strategy *st = strategies[i];
        void *form = !whole || st->takes_whole ? schedule_analyse(g, st, s, &b) : NULL;
        const struct spec_option *other = form ? unread_option(g, st) : NULL;
        if (form && !other)
            return (struct choice){st, form};
        if (form && !first.by)
            first = (struct choice){st, form};
        why[i] = form ? arena_printf(g->a, "it has no '%s: %s'", other->key, other->value)
                      : buf_text(&b);
    }
    return first;
}

struct choice schedule_first(struct cg *g, const struct lower_stage *s)
{
    report_attempt(g);
    g->passed = ARENA_ARRAY(g->a, nstrategies, const char *);
    const struct choice first = first_of(g, s, false, g->passed);
    for (size_t i = 0; i + 1 < nstrategies && strategies[i] != first.by; i++) {
        if (g->passed[i][0] == '\0')
            continue; /* it has nothing to do with such stages */
        lower_explain(g, "%s: not %s: %s\n", s->entry, strategies[i]->name, g->passed[i]);
        lower_missed(g, strategies[i]->name, g->passed[i]);
    }
    return first;
}

struct choice schedule_first_whole(struct cg *g, const struct lower_stage *s)
{
    return first_of(g, s, true, ARENA_ARRAY(g->a, nstrategies, const char *));
}

bool schedule_fits(struct cg *g, const struct lower_stage *s)
{
    struct buf why = buf_in(g->a);
    for (size_t i = 0; i + 1 < nstrategies; i++)
        if (schedule_analyse(g, strategies[i], s, &why))
            return true;
    return false;
}

/* ---- options --------------------------------------------------------------------------------- */

static bool unknown_option(struct cg *g, const struct strategy *st, const struct spec_option *said)
{
    struct buf b = buf_in(g->a);
    for (size_t i = 0; i < st->noption; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", st->options[i].key);
    return cg_error(g, said->key_span, "strategy '%s' has no '%s'; it takes: %s", st->name,
                    said->key, buf_text(&b));
}

void *schedule_nothing(struct cg *g, const struct strategy *st)
{
    return arena_calloc(g->a, 1, st->options_size);
}

void *schedule_read(struct cg *g, const struct strategy *st)
{
    void *options = schedule_nothing(g, st);
    for (size_t i = 0; i < g->spec->schedule.n; i++) {
        const struct spec_option *said = &g->spec->schedule.v[i];
        const struct strategy_option *o = find_option(st, said->key);
        if (strcmp(said->key, "strategy") != 0 &&
            !(o ? option_read(g, o, said, options) : unknown_option(g, st, said)))
            return NULL;
    }
    return options;
}

/* Says why another strategy, which has the key, does not take what is said here. */
static void note_other(struct cg *g, size_t i, const struct spec_option *said)
{
    const char *name = strategies[i]->name;
    const struct spec_option *other = unread_option(g, strategies[i]);
    if (!takes(strategies[i], said))
        diag_note(g->d, said->value_span, "that of strategy '%s' is %s", name,
                  option_values(g->a, find_option(strategies[i], said->key)));
    else if (other)
        diag_note(g->d, other->key_span, "strategy '%s' takes that, but no '%s: %s'", name,
                  other->key, other->value);
    else if (strategies[i] == schedule_last())
        diag_note(g->d, said->key_span, "strategy '%s' takes that, where the schedule names it",
                  name);
    else
        diag_note(g->d, said->key_span, "strategy '%s' takes that, but does not fit: %s", name,
                  g->passed[i][0] ? g->passed[i] : "it is for something else altogether");
}

bool schedule_refuse(struct cg *g, const struct strategy *st)
{
    const struct spec_option *said = unread_option(g, st);
    schedule_read(g, st);
    for (size_t i = 0; i < nstrategies; i++)
        if (strategies[i] != st && find_option(strategies[i], said->key))
            note_other(g, i, said);
    return false;
}

/* ---- for the manual -------------------------------------------------------------------------- */

const struct lower_strategy *lower_strategies(struct arena *a, size_t *n)
{
    struct lower_strategy *list = ARENA_ARRAY(a, nstrategies, struct lower_strategy);
    *n = nstrategies;
    for (size_t i = 0; i < nstrategies; i++) {
        const struct strategy *st = strategies[i];
        struct lower_option *option = ARENA_ARRAY(a, st->noption, struct lower_option);
        for (size_t k = 0; k < st->noption; k++) {
            const struct strategy_option *o = &st->options[k];
            option[k] = (struct lower_option){o->key, option_values(a, o), o->help};
        }
        list[i] = (struct lower_strategy){st->name, st->takes, option, st->noption};
    }
    return list;
}
