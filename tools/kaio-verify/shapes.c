/* --shapes: random values for a kernel's dimensions, of the kind that breaks kernels: 0, 1, primes,
 * and the neighbours of powers of two and of every constant in the launches' geometry, which are
 * what tiles begin and end at. */
#include <config.h>

#include "trial.h"

#include <math.h>

/* What one shape may cost: terms of the reference, and bytes of all buffers. */
static const double TERMS = 0x1p20, BYTES = 0x1p26;
enum { TRIES = 600, PER_CAP = 40, CAP = 1 << 17, FACTOR_MOST = 4096 };

struct shapes {
    struct kernel *k;
    struct arena *a;
    uint64_t state; /* of the random numbers */
    VEC(uint32_t) edges, factors;
    word_list seen;
    unsigned made;
    const char *refused;
};

static uint64_t next(struct shapes *sh, uint64_t below)
{
    uint64_t z = sh->state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

/* ---- constants of the kernel ----------------------------------------------------------------- */

static void add_edge(struct shapes *sh, uint64_t v)
{
    if (v < 2 || v > CAP)
        return;
    for (size_t k = 0; k < sh->edges.n; k++)
        if (sh->edges.v[k] == v)
            return;
    *VEC_PUSH(sh->a, &sh->edges) = (uint32_t)v;
}

static void constants_of(struct shapes *sh, const struct lang_expr *e)
{
    if (!e)
        return;
    if (e->kind == E_INT)
        add_edge(sh, e->ival);
    for (uint32_t k = 0; k < e->nargs; k++)
        constants_of(sh, e->args[k]);
}

/* n % 8 == 0: a random n hardly ever is. */
static void factors_of(struct shapes *sh, const struct lang_expr *e)
{
    int64_t v;
    if (e->kind == E_BINARY && (e->op == OP_MOD || e->op == OP_DIV) &&
        lang_const_int(e->args[1], &v) && v > 1 && v <= FACTOR_MOST)
        *VEC_PUSH(sh->a, &sh->factors) = (uint32_t)v;
    for (uint32_t k = 0; k < e->nargs; k++)
        factors_of(sh, e->args[k]);
}

static void launch_constants(struct shapes *sh, const struct contract_launch *l)
{
    uint64_t threads = 1;
    constants_of(sh, l->when);
    constants_of(sh, l->shared);
    for (int d = 0; d < 3; d++) {
        int64_t v;
        constants_of(sh, l->grid[d]);
        constants_of(sh, l->block[d]);
        constants_of(sh, l->cluster[d]);
        if (l->block[d] && lang_const_int(l->block[d], &v) && v > 0)
            threads *= (uint64_t)v;
    }
    add_edge(sh, threads);
    for (size_t k = 0; k < l->args.n; k++) {
        const struct contract_map *m = l->args.v[k].map;
        constants_of(sh, l->args.v[k].expr);
        for (uint32_t i = 0; m && i < m->rank; i++)
            constants_of(sh, m->box[i]);
    }
}

static uint64_t hash(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

struct shapes *shapes_new(struct arena *a, struct kernel *k)
{
    struct shapes *sh = ARENA_NEW(a, struct shapes);
    *sh = (struct shapes){.k = k, .a = a};
    sh->state = hash(k->s->opt->shapes_seed ^ 0xcbf29ce484222325u, k->spec->name);
    for (size_t i = 0; i < k->types.n; i++)
        sh->state = hash(sh->state, k->types.v[i]);
    for (size_t i = 0; i < k->contract->launches.n; i++)
        launch_constants(sh, &k->contract->launches.v[i]);
    for (size_t i = 0; i < k->spec->require.n; i++) {
        constants_of(sh, k->spec->require.v[i]);
        factors_of(sh, k->spec->require.v[i]);
    }
    for (size_t i = 0; i < k->spec->params.n; i++)
        for (uint32_t d = 0; d < k->spec->params.v[i].sym->rank; d++)
            constants_of(sh, k->spec->params.v[i].sym->dims[d]);
    return sh;
}

/* ---- one value ------------------------------------------------------------------------------- */

static uint32_t small_value(struct shapes *sh)
{
    static const uint32_t few[] = {1, 1, 1, 2, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33};
    return next(sh, 24) == 0 ? 0 : few[next(sh, sizeof few / sizeof *few)];
}

static uint32_t large_value(struct shapes *sh, uint32_t cap)
{
    static const uint32_t primes[] = {2,    3,    5,    7,    11,   13,   17,    31,
                                      37,   61,   97,   127,  131,  251,  257,   509,
                                      1009, 1021, 2039, 4093, 4099, 8191, 16381, 65521};
    uint64_t v = 0;
    for (int tries = 0; tries < 20 && (tries == 0 || v > cap); tries++) {
        uint64_t kind = next(sh, 16);
        if (kind < 7 && sh->edges.n) {
            v = sh->edges.v[next(sh, sh->edges.n)];
            v *= kind < 6 ? 1 : 1 + next(sh, 4);
            v += next(sh, 3) - 1;
        } else if (kind < 11) {
            v = (uint64_t)2 << next(sh, 16);
            v += next(sh, 3) - 1;
        } else if (kind < 14) {
            v = primes[next(sh, sizeof primes / sizeof *primes)];
        } else {
            v = (uint64_t)exp2((double)next(sh, 1000) * 0.0165);
        }
    }
    return v > cap ? small_value(sh) : (uint32_t)v;
}

/* Often brought to a multiple of what a requirement divides by. */
static uint32_t suitable(struct shapes *sh, uint32_t v)
{
    if (!sh->factors.n || next(sh, 3) == 0)
        return v;
    uint32_t f = sh->factors.v[next(sh, sh->factors.n)];
    return v / f * f + (next(sh, 2) || v < f ? f : 0);
}

static const char *scalar_value(struct shapes *sh, const struct spec_param *p)
{
    static const char *const whole[] = {"1", "2", "3", "7"}, *const floats[] = {"0.5", "-1.5", "2",
                                                                                "3.25"};
    const struct spec *s = sh->k->spec;
    size_t k = next(sh, 4);
    /* one that a case gives is one that means something */
    for (size_t tries = 0; tries < s->cases.n; tries++) {
        const struct spec_case *c = &s->cases.v[next(sh, s->cases.n)];
        for (size_t i = 0; i < c->bind.n; i++) {
            const struct spec_binding *b = &c->bind.v[i];
            if (strcmp(b->name, p->sym->name) == 0)
                return b->is_int ? arena_printf(sh->a, "%lld", (long long)b->i)
                                 : arena_printf(sh->a, "%.17g", b->f);
        }
    }
    if (p->sym->type == DT_BOOL)
        return k & 1 ? "1" : "0";
    return dtype_is_float(p->sym->type) ? floats[k] : whole[k];
}

/* ---- a whole shape --------------------------------------------------------------------------- */

static bool given(const struct session *s, const char *name)
{
    size_t n = strlen(name);
    for (size_t k = 0; k < s->values.n; k++)
        if (strncmp(s->values.v[k], name, n) == 0 && s->values.v[k][n] == '=')
            return true;
    return false;
}

static bool is_free(const struct shapes *sh, const struct lang_symbol *dim)
{
    return !dim->has_value && !given(sh->k->s, dim->name);
}

/* A case's value, -1 if it has none. */
static int64_t case_value(const struct spec_case *c, const char *name)
{
    for (size_t i = 0; i < c->bind.n; i++)
        if (strcmp(c->bind.v[i].name, name) == 0)
            return c->bind.v[i].i;
    return -1;
}

/* try: later ones are smaller, and keep to what a case has, but for one dimension: for requirements
 * that tie dimensions together. */
static void draw(struct shapes *sh, unsigned try, uint32_t *dim)
{
    const struct contract *c = sh->k->contract;
    const struct spec *s = sh->k->spec;
    size_t n = c->dims.n, large = n ? next(sh, n) : 0;
    uint32_t cap = CAP >> try / PER_CAP;
    bool ones = sh->made == 0 && try == 0, zero = sh->made == 1 && try < PER_CAP;
    const struct spec_case *base = s->cases.n && (try > TRIES / 4 || next(sh, 8) == 0) && !ones &&
                                           !zero
                                       ? &s->cases.v[next(sh, s->cases.n)]
                                       : NULL;
    for (size_t k = 0; k < n; k++) {
        int64_t of_case = base ? case_value(base, c->dims.v[k]->name) : -1;
        dim[k] = k == large ? large_value(sh, cap) : small_value(sh);
        if (k != large && next(sh, 4) == 0)
            dim[k] = large_value(sh, cap);
        dim[k] = ones ? 1 : zero && k == large ? 0 : suitable(sh, dim[k]);
        if (of_case >= 0 && (k != large || next(sh, 4) == 0))
            dim[k] = (uint32_t)of_case;
    }
}

static void write_values(struct shapes *sh, const uint32_t *dim, word_list *out)
{
    const struct contract *c = sh->k->contract;
    const struct session *s = sh->k->s;
    *out = (word_list){0};
    for (size_t k = 0; k < s->values.n; k++)
        *VEC_PUSH(sh->a, out) = s->values.v[k];
    for (size_t k = 0; k < c->dims.n; k++)
        if (is_free(sh, c->dims.v[k]))
            *VEC_PUSH(sh->a, out) = arena_printf(sh->a, "%s=%u", c->dims.v[k]->name, dim[k]);
    for (size_t k = 0; k < c->params.n; k++) {
        const struct spec_param *p = &c->params.v[k];
        if (p->sym->kind == SYM_SCALAR && !p->value && !given(s, p->sym->name))
            *VEC_PUSH(sh->a, out) = arena_printf(sh->a, "%s=%s", p->sym->name, scalar_value(sh, p));
    }
}

/* Whether the kernel takes these values, and the reference of them is affordable. */
static bool fits(struct shapes *sh, const word_list *values)
{
    struct trial t = {.k = sh->k, .values = *values};
    trial_begin(&t);
    bool good = trial_bind(&t);
    const double bytes = good ? trial_bytes(&t) : 0;
    if (!good)
        sh->refused = arena_strdup(sh->a, rows_first_error(t.d));
    else if (bytes > BYTES || trial_cost(&t) > TERMS)
        sh->refused = arena_printf(sh->a, "%s is too large", t.words);
    good = good && bytes <= BYTES && trial_cost(&t) <= TERMS;
    for (size_t k = 0; good && k < sh->seen.n; k++)
        good = strcmp(sh->seen.v[k], t.words) != 0;
    if (good)
        *VEC_PUSH(sh->a, &sh->seen) = t.words;
    arena_free(t.a);
    return good;
}

bool shapes_next(struct shapes *sh, word_list *values)
{
    uint32_t *dim = ARENA_ARRAY(sh->a, sh->k->contract->dims.n + 1, uint32_t);
    for (unsigned try = 0; try < TRIES; try++) {
        draw(sh, try, dim);
        write_values(sh, dim, values);
        if (fits(sh, values)) {
            sh->made++;
            return true;
        }
    }
    return false;
}

/* ---- usual shapes ---------------------------------------------------------------------------- */

const char *const shapes_usual_names[SHAPES_USUAL] = {"small", "odd", "aligned"};

/* Dimensions take a kind's sizes one after the other, each try beginning with the next, so that
 * dimensions which a requirement compares come to stand as it wants them; then sizes are brought to
 * multiples that requirements ask for, and at last taken as --shapes would draw them. */
static void draw_usual(struct shapes *sh, size_t kind, unsigned try, uint32_t *dim)
{
    enum { SIZES = 6 };
    static const uint32_t sizes[SHAPES_USUAL][SIZES] = {
        {3, 5, 2, 7, 4, 1}, {67, 33, 129, 17, 5, 35}, {64, 128, 32, 256, 16, 8}};
    const size_t n = sh->k->contract->dims.n;
    if (try >= PER_CAP) {
        draw(sh, try, dim);
        return;
    }
    for (size_t k = 0; k < n; k++) {
        dim[k] = sizes[kind][(k + try) % SIZES];
        dim[k] = try < SIZES ? dim[k] : suitable(sh, dim[k]);
    }
}

bool shapes_usual(struct shapes *sh, size_t kind, word_list *values)
{
    uint32_t *dim = ARENA_ARRAY(sh->a, sh->k->contract->dims.n + 1, uint32_t);
    sh->made = SHAPES_USUAL; /* none of the kinds that --shapes begins with */
    for (unsigned try = 0; try < TRIES; try++) {
        draw_usual(sh, kind, try, dim);
        write_values(sh, dim, values);
        if (fits(sh, values))
            return true;
    }
    return false;
}

const char *shapes_refused(const struct shapes *sh)
{
    return sh->refused ? sh->refused : "there are none";
}
