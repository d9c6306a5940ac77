#include <config.h>

#include "lower/schedule.h"

#include <ctype.h>
#include <stdlib.h>

const struct strategy strategies[] = {
    {"matmul",
     matmul_fits,
     matmul_lower,
     {"mma", "tile", "warps", "stages", "split", "group", "cluster", "blocks", "pingpong", NULL},
     false,
     matmul_candidates},
    {"reduce",
     reduce_fits,
     reduce_lower,
     {"block", "vector", "unroll", "split", "tile", NULL},
     true,
     reduce_candidates},
    {"row",
     row_fits,
     row_lower,
     {"threads", "vectors", "rows", "cluster", NULL},
     true,
     row_candidates},
    {"map",
     map_fits,
     map_lower,
     {"block", "vector", "unroll", "tile", NULL},
     false,
     map_candidates},
    {"naive", naive_fits, naive_lower, {"block", NULL}, false, naive_candidates},
};
const size_t nstrategies = sizeof strategies / sizeof *strategies;

const struct spec_option *schedule_option(const struct cg *g, const char *key)
{
    for (size_t i = 0; i < g->spec->schedule.n; i++)
        if (strcmp(g->spec->schedule.v[i].key, key) == 0)
            return &g->spec->schedule.v[i];
    return NULL;
}

static const char *strategy_list(struct arena *a)
{
    struct buf b = buf_in(a);
    for (size_t i = 0; i < nstrategies; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", strategies[i].name);
    return buf_text(&b);
}

const struct strategy *schedule_named(struct cg *g, bool *good)
{
    const struct spec_option *o = schedule_option(g, "strategy");
    *good = true;
    if (!o)
        return NULL;
    for (size_t i = 0; i < nstrategies; i++)
        if (strcmp(strategies[i].name, o->value) == 0)
            return &strategies[i];
    *good = cg_error(g, o->value_span, "unknown strategy '%s'; there are: %s", o->value,
                     strategy_list(g->a));
    return NULL;
}

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

bool schedule_fits_one(struct cg *g, const struct strategy *st, const struct lower_stage *s,
                       struct buf *why)
{
    const struct lang_expr *call = NULL, *guarded = NULL;
    for (size_t i = 0; i < g->spec->compute.n; i++) {
        const struct lang_expr *e = g->spec->compute.v[i]->rhs;
        call = call ? call : find_call(e);
        guarded = guarded ? guarded : inspect_guarded_reduction(e, false);
    }
    if ((!call && !guarded) || st == &strategies[nstrategies - 1])
        return st->fits(g, s, why);
    if (guarded) {
        buf_printf(why, "%s may only be computed where a condition holds",
                   lang_reduce_name(guarded->reduce));
        return false;
    }
    buf_printf(why, "what '%s' reads is not known, since it is more than variables, if and return",
               call->func->name);
    return false;
}

const struct strategy *schedule_first(struct cg *g, const struct lower_stage *s)
{
    for (size_t i = 0; i + 1 < nstrategies; i++) {
        struct buf why = buf_in(g->a);
        if (schedule_fits_one(g, &strategies[i], s, &why))
            return &strategies[i];
        lower_explain(g, "%s: not %s: %s\n", s->entry, strategies[i].name, buf_text(&why));
    }
    return NULL;
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
    if (least == 1)
        return cg_error(g, o->value_span, "'%s' is a number from 1 to %u, not '%s'", o->key, most,
                        o->value);
    return cg_error(g, o->value_span, "'%s' is a multiple of %u up to %u, not '%s'", o->key, least,
                    most, o->value);
}

/* [128, 128, 32]: n numbers from 1 on. */
static bool numbers(struct cg *g, const struct spec_option *o, const char *what, uint32_t n,
                    uint32_t most, uint32_t *v)
{
    const char *c = o->value;
    bool good = *c++ == '[';
    for (uint32_t i = 0; i < n && good; i++) {
        char *end;
        while (isspace((unsigned char)*c))
            c++;
        const unsigned long x = isdigit((unsigned char)*c) ? strtoul(c, &end, 10) : 0;
        good = x >= 1 && x <= most;
        for (c = good ? end : c; isspace((unsigned char)*c);)
            c++;
        good = good && *c++ == (i + 1 < n ? ',' : ']');
        v[i] = (uint32_t)x;
    }
    return (good && !*c) ||
           cg_error(g, o->value_span, "'%s' is %s, each a number from 1 to %u, not '%s'", o->key,
                    what, most, o->value);
}

static bool mma_word(struct cg *g, const struct spec_option *o, enum lower_mma *mma)
{
    static const char *const word[] = {
        [LOWER_MMA_NONE] = "none",     [LOWER_MMA_SYNC] = "sync", [LOWER_MMA_TF32] = "tf32",
        [LOWER_MMA_TF32X3] = "tf32x3", [LOWER_MMA_FP8] = "fp8",   [LOWER_MMA_WGMMA] = "wgmma"};
    for (size_t i = LOWER_MMA_NONE; i < sizeof word / sizeof *word; i++)
        if (strcmp(word[i], o->value) == 0) {
            *mma = (enum lower_mma)i;
            return true;
        }
    return cg_error(g, o->value_span, "'mma' is none, sync, tf32, tf32x3, fp8 or wgmma, not '%s'",
                    o->value);
}

static bool yes_or_no(struct cg *g, const struct spec_option *o, bool *v)
{
    *v = strcmp(o->value, "yes") == 0;
    return *v || strcmp(o->value, "no") == 0 ||
           cg_error(g, o->value_span, "'%s' is yes or no, not '%s'", o->key, o->value);
}

/* 2, or [2, 1]. */
static bool read_cluster(struct cg *g, const struct spec_option *o, struct lower_plan *plan)
{
    plan->cluster_span = o->value_span;
    if (o->value[0] == '[')
        return numbers(g, o, "[ROWS, COLUMNS] of tiles of a cluster's blocks", 2, 16,
                       plan->clusters);
    plan->clusters[1] = 1;
    return number(g, o, 1, 16, false, &plan->clusters[0]);
}

/* A number, multiprocessors, or tiles. */
static bool read_blocks(struct cg *g, const struct spec_option *o, struct lower_plan *plan)
{
    plan->blocks_span = o->value_span;
    plan->tiles = strcmp(o->value, "tiles") == 0;
    if (strcmp(o->value, "multiprocessors") == 0)
        plan->blocks = LOWER_BLOCKS_ALL;
    else if (!plan->tiles && !isdigit((unsigned char)o->value[0]))
        return cg_error(g, o->value_span,
                        "'blocks' is a number, multiprocessors or tiles, not '%s'", o->value);
    return plan->tiles || plan->blocks || number(g, o, 1, 65535, false, &plan->blocks);
}

/* What only wgmma has. */
static bool read_wgmma(struct cg *g, const struct spec_option *o, struct lower_plan *plan)
{
    if (strcmp(o->key, "cluster") == 0)
        return read_cluster(g, o, plan);
    if (strcmp(o->key, "blocks") == 0)
        return read_blocks(g, o, plan);
    plan->pingpong_span = o->value_span;
    return yes_or_no(g, o, &plan->pingpong);
}

static bool read_matmul(struct cg *g, const struct spec_option *o, struct lower_plan *plan)
{
    if (strcmp(o->key, "mma") == 0) {
        plan->mma_span = o->value_span;
        return mma_word(g, o, &plan->mma);
    }
    if (strcmp(o->key, "tile") == 0) {
        plan->tile_span = o->value_span;
        return numbers(g, o, "[ROWS, COLUMNS, TERMS] of a block", 3, 65536, plan->shape);
    }
    if (strcmp(o->key, "warps") == 0) {
        plan->warps_span = o->value_span;
        return numbers(g, o, "[ROWS, COLUMNS] of a block's warps", 2, 32, plan->warps);
    }
    if (strcmp(o->key, "stages") == 0) {
        plan->stages_span = o->value_span;
        return number(g, o, 1, 16, false, &plan->stages);
    }
    if (strcmp(o->key, "split") == 0) {
        plan->split_span = o->value_span;
        return number(g, o, 1, 256, false, &plan->split);
    }
    if (strcmp(o->key, "group") == 0)
        return number(g, o, 1, 256, false, &plan->group);
    return read_wgmma(g, o, plan);
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
    if (strcmp(s->name, "matmul") == 0)
        return read_matmul(g, o, plan);
    if (strcmp(o->key, "block") == 0)
        return number(g, o, 32, 1024, false, &plan->block);
    if (strcmp(o->key, "vector") == 0) {
        plan->vector_span = o->value_span;
        return number(g, o, 1, 32, true, &plan->vector);
    }
    if (strcmp(o->key, "tile") == 0) {
        plan->tile_span = o->value_span;
        return strcmp(s->name, "map") == 0 ? number(g, o, 16, 128, true, &plan->tile)
                                           : number(g, o, 1, 256, true, &plan->tile);
    }
    if (strcmp(o->key, "threads") == 0)
        return number(g, o, 1, 1024, false, &plan->threads);
    if (strcmp(o->key, "vectors") == 0)
        return number(g, o, 1, 64, false, &plan->vectors);
    if (strcmp(o->key, "rows") == 0)
        return number(g, o, 1, 1024, true, &plan->rows);
    if (strcmp(o->key, "cluster") == 0)
        return number(g, o, 1, 16, true, &plan->cluster);
    if (strcmp(o->key, "split") == 0)
        return number(g, o, 1, 65535, false, &plan->split);
    return number(g, o, 1, 8, true, &plan->unroll);
}

bool schedule_fits(struct cg *g, const struct lower_stage *s)
{
    for (size_t i = 0; i + 1 < nstrategies; i++) {
        struct buf why = buf_in(g->a);
        if (schedule_fits_one(g, &strategies[i], s, &why))
            return true;
    }
    return false;
}

bool schedule_takes(const struct cg *g, const struct strategy *s)
{
    for (size_t i = 0; i < g->spec->schedule.n; i++) {
        const char *key = g->spec->schedule.v[i].key;
        if (strcmp(key, "strategy") != 0 && !takes(s, key))
            return false;
    }
    return true;
}

bool schedule_read(struct cg *g, const struct strategy *s, struct lower_plan *plan)
{
    *plan = (struct lower_plan){0};
    for (size_t i = 0; i < g->spec->schedule.n; i++)
        if (!read_option(g, s, &g->spec->schedule.v[i], plan))
            return false;
    return true;
}
