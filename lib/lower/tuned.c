#include <config.h>

#include "lower/tuned.h"

#include <inttypes.h>
#include <math.h>

#include "lower/lower.h"

/* ---- what a spec is ---- */

static uint64_t add_text(uint64_t hash, const char *text)
{
    /* FNV-1a; the end counts, so that texts do not run into each other */
    for (const char *c = text;; c++) {
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
        if (!*c)
            return hash;
    }
}

static uint64_t hash_of(struct arena *a, const struct spec *s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < s->types.n; i++) {
        h = add_text(h, s->types.v[i].name);
        h = add_text(h, dtype_name(s->types.v[i].chosen));
    }
    for (size_t i = 0; i < s->params.n; i++) {
        h = add_text(h, s->params.v[i].sym->name);
        h = add_text(h, s->params.v[i].decl);
    }
    for (size_t i = 0; i < s->require.n; i++)
        h = add_text(h, lang_expr_text(a, s->require.v[i]));
    for (size_t i = 0; i < s->compute.n; i++) {
        const struct lang_equation *q = s->compute.v[i];
        h = add_text(h, q->sym->name);
        for (uint32_t k = 0; k < q->nindex; k++)
            h = add_text(h, q->index[k]->name);
        h = add_text(h, lang_expr_text(a, q->rhs));
    }
    for (size_t i = 0; i < s->schedule.n; i++) {
        h = add_text(h, s->schedule.v[i].key);
        h = add_text(h, s->schedule.v[i].value);
    }
    return (h ^ (uint64_t)s->math) * UINT64_C(0x100000001b3);
}

const char *tuned_hash(struct arena *a, const struct spec *s)
{
    VEC(struct spec_define) types = {0};
    for (size_t i = 0; i < s->types.n; i++)
        *VEC_PUSH(a, &types) = (struct spec_define){s->types.v[i].name, 0, s->types.v[i].chosen};
    /* dimensions that are fixed change the equations' text */
    struct spec_file *f = spec_read(a, s->src, types.v, types.n, diags_new(a));
    const struct spec *plain = f ? spec_find(f, s->name) : NULL;
    return arena_printf(a, "%016" PRIx64, hash_of(a, plain ? plain : s));
}

struct tuned_entry tuned_entry_of(struct arena *a, const struct spec *s,
                                  const struct ptx_target *target)
{
    struct tuned_entry e = {.kernel = s->name,
                            .hash = tuned_hash(a, s),
                            .device = "",
                            .target = target->name,
                            .emitter = PACKAGE_VERSION};
    for (size_t i = 0; i < s->types.n; i++)
        *VEC_PUSH(a, &e.types) = (struct spec_define){s->types.v[i].name, 0, s->types.v[i].chosen};
    for (size_t i = 0; i < s->dims.n; i++)
        if (s->dims.v[i]->has_value)
            *VEC_PUSH(a, &e.dims) =
                (struct spec_define){s->dims.v[i]->name, s->dims.v[i]->value, DT_VOID};
        else
            e.generic = true;
    return e;
}

/* ---- finding ---- */

static const struct spec_define *dim_of(const struct tuned_entry *e, const char *name)
{
    for (size_t i = 0; i < e->dims.n; i++)
        if (strcmp(e->dims.v[i].name, name) == 0)
            return &e->dims.v[i];
    return NULL;
}

/* Are both entries for the same kernel, target and emitter? Types are in the hash. */
static bool is_same_spec(const struct tuned_entry *e, const struct tuned_entry *p,
                         const char *device)
{
    return strcmp(e->hash, p->hash) == 0 && strcmp(e->target, p->target) == 0 &&
           strcmp(e->emitter, p->emitter) == 0 && (!device || strcmp(e->device, device) == 0);
}

/* The largest of the dimensions' ratios, as a power of two, over those that p has; INFINITY: e
 * lacks one. */
static double distance(const struct tuned_entry *e, const struct tuned_entry *p)
{
    double most = 0;
    for (size_t i = 0; i < p->dims.n; i++) {
        const struct spec_define *d = dim_of(e, p->dims.v[i].name);
        double x = (double)p->dims.v[i].value, y = d ? (double)d->value : 0;
        double apart = !d || (x > 0) != (y > 0) ? INFINITY : x > 0 ? fabs(log2(x / y)) : 0;
        most = fmax(most, apart);
    }
    return most;
}

const struct tuned_entry *tuned_find(const struct tuned_cache *c, const struct tuned_entry *problem,
                                     const char *device)
{
    const struct tuned_entry *found = NULL;
    for (size_t i = 0; i < c->v.n; i++) {
        const struct tuned_entry *e = &c->v.v[i];
        if (is_same_spec(e, problem, device) && e->generic == problem->generic &&
            e->dims.n == problem->dims.n && distance(e, problem) == 0)
            found = e;
    }
    return found;
}

static const struct tuned_entry *find_nearest(const struct tuned_cache *c,
                                              const struct tuned_entry *problem, const char *device)
{
    const struct tuned_entry *found = NULL;
    double least = 1;
    for (size_t i = 0; i < c->v.n; i++) {
        const struct tuned_entry *e = &c->v.v[i];
        double d = distance(e, problem);
        if (is_same_spec(e, problem, device) && !e->generic && d <= least) {
            found = e;
            least = d;
        }
    }
    return found;
}

static bool is_same_schedule(const struct tuned_entry *a, const struct tuned_entry *b)
{
    return a->schedule && b->schedule ? strcmp(a->schedule, b->schedule) == 0
                                      : a->schedule == b->schedule;
}

/* What all entries with the problem's dimensions, as far as it has any, agree on. */
static const struct tuned_entry *find_common(const struct tuned_cache *c,
                                             const struct tuned_entry *problem, const char *device,
                                             const char **why)
{
    const struct tuned_entry *found = NULL;
    for (size_t i = 0; i < c->v.n; i++) {
        const struct tuned_entry *e = &c->v.v[i];
        if (!is_same_spec(e, problem, device) || distance(e, problem) != 0)
            continue;
        if (found && !is_same_schedule(found, e)) {
            *why = "what it has depends on dimensions that are not fixed; give them with -D";
            return NULL;
        }
        found = e;
    }
    return found;
}

bool tuned_fits(struct arena *a, const struct spec *s, const struct spec_define *defines,
                size_t ndefine, const char *schedule, const struct ptx_target *target)
{
    const struct source *text = source_new(a, "(tuned)", schedule, strlen(schedule));
    static const struct lower_options options = {0};
    struct diags *own = diags_new(a);
    struct spec_file *f = spec_read(a, s->src, defines, ndefine, own);
    struct spec *again = f ? spec_find(f, s->name) : NULL;
    return again && spec_set_schedule(a, again, text, own) &&
           lower_specs(a, &again, 1, target, &options, own) != NULL;
}

const struct tuned_entry *tuned_apply(struct arena *a, const struct tuned_cache *c, struct spec *s,
                                      const struct spec_define *defines, size_t ndefine,
                                      const struct ptx_target *target, const char *device,
                                      bool *exact, const char **why)
{
    const struct tuned_entry problem = tuned_entry_of(a, s, target);
    *why = "the cache has nothing for it";
    const struct tuned_entry *e = tuned_find(c, &problem, device);
    *exact = e != NULL;
    if (!e)
        e = problem.generic ? find_common(c, &problem, device, why)
                            : find_nearest(c, &problem, device);
    if (!e || !e->schedule)
        return e;
    if (!s->has_compute || !tuned_fits(a, s, defines, ndefine, e->schedule, target)) {
        *why = arena_printf(a, "the cache's %s does not fit here", e->schedule);
        return NULL;
    }
    const struct source *text = source_new(a, "(tuned)", e->schedule, strlen(e->schedule));
    return spec_set_schedule(a, s, text, diags_new(a)) ? e : NULL;
}
