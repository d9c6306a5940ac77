#include <config.h>

#include "equations/generate.h"

#include "equations/gen.h"

#include <inttypes.h>

/* ---- dimensions ------------------------------------------------------------------------------ */

static int64_t long_size(struct gen *g)
{
    static const int64_t sizes[] = {5,  7,   8,   13,  15,  16,  17,  31,  32,  33,  63,   64,
                                    65, 100, 127, 128, 129, 255, 256, 257, 500, 519, 1000, 1031};
    return sizes[gen_below(g, sizeof sizes / sizeof *sizes)];
}

/* One dimension at most is empty. */
static int64_t short_size(struct gen *g)
{
    if (g->empty || !gen_one_in(g, 40))
        return 1 + gen_below(g, 9);
    g->empty = true;
    return 0;
}

const char *generate_extent(struct arena *a, struct random *r, const char *name, int64_t value,
                            int64_t *of)
{
    const int64_t by = 2 + random_below(r, 3), more = random_below(r, (unsigned)by);
    switch (random_below(r, value > 1 ? 6 : 4)) {
    case 0:
    case 1: *of = value + 2; return arena_printf(a, "%s - " GENERATE_FILTER " + 1", name);
    case 2: *of = value * by + more; return arena_printf(a, "%s / %" PRId64, name, by);
    case 3: *of = value * by - more; return arena_printf(a, "ceil_div(%s, %" PRId64 ")", name, by);
    case 4: *of = value / 2; return arena_printf(a, "2 * %s + %" PRId64, name, value % 2);
    default: *of = value; return arena_printf(a, "max(%s, " GENERATE_FILTER " - 2)", name);
    }
}

static unsigned add_dim(struct gen *g, int64_t value)
{
    struct extent *e = &g->dim[g->ndim];
    const char *name = arena_printf(g->a, "d%u", g->ndim);
    int64_t of = value ? value : 1;
    e->value = value;
    e->named = value == 0 || !gen_one_in(g, 4);
    e->text = !e->named ? arena_printf(g->a, "%" PRId64, value)
              : value == 0 || gen_one_in(g, g->written ? 4 : 2) ? name
              : g->written || gen_one_in(g, 6) ? generate_extent(g->a, &g->r, name, value, &of)
                                               : name;
    e->binds = e->named ? arena_printf(g->a, "%s: %" PRId64 ", ", name, of) : "";
    return g->ndim++;
}

/* The shape that the kernel is about, and which of its axes are reduced. */
static void choose_base(struct gen *g)
{
    g->nbase = 1 + gen_below(g, MOST_RANK);
    const unsigned large = gen_one_in(g, 3) ? gen_below(g, g->nbase) : g->nbase - 1;
    double total = 1;
    for (unsigned i = 0; i < g->nbase; i++) {
        int64_t v = i == large ? long_size(g) : short_size(g);
        if (total * (double)v > 3000)
            v = 1 + gen_below(g, 3);
        total *= (double)v;
        g->base[i] = add_dim(g, v);
    }
    const unsigned cut = gen_below(g, g->nbase + 1);
    const unsigned how = gen_below(g, 5);
    for (unsigned i = 0; i < g->nbase; i++)
        switch (how) {
        case 0:
        case 1: g->kept[i] = i + 1 < g->nbase; break; /* the last is reduced */
        case 2: g->kept[i] = i < cut; break;          /* the trailing ones */
        case 3: g->kept[i] = i >= cut; break;         /* the leading ones */
        default: g->kept[i] = gen_one_in(g, 2); break;
        }
    add_dim(g, short_size(g)); /* and another one, for what does not fit the rest */
}

/* ---- tensors --------------------------------------------------------------------------------- */

static enum sort sort_of(enum dtype t)
{
    return dtype_is_float(t) ? SORT_FLOAT : t == DT_BOOL ? SORT_BOOL : SORT_INT;
}

static enum dtype pick_type(struct gen *g)
{
    static const enum dtype types[] = {DT_F32,  DT_F32,  DT_F32,  DT_F32, DT_F16, DT_F16, DT_F16,
                                       DT_BF16, DT_BF16, DT_F64,  DT_I32, DT_I32, DT_I8,  DT_U8,
                                       DT_BOOL, DT_E4M3, DT_E5M2, DT_I64, DT_U16};
    return types[gen_below(g, sizeof types / sizeof *types)];
}

static void shape_of(struct gen *g, struct tensor *t, unsigned how)
{
    t->rank = 0;
    for (unsigned i = 0; i < g->nbase; i++) {
        bool has = how == 0   ? true
                   : how == 1 ? g->kept[i]
                   : how == 2 ? !g->kept[i]
                              : gen_one_in(g, 2);
        if (has)
            t->dim[t->rank++] = g->base[i];
    }
    if (how == 4) /* any order */
        for (unsigned i = t->rank; i > 1; i--) {
            unsigned k = gen_below(g, i), d = t->dim[k];
            t->dim[k] = t->dim[i - 1];
            t->dim[i - 1] = d;
        }
    if (how == 5 && t->rank < MOST_RANK)
        t->dim[t->rank++] = g->ndim - 1;
}

static struct tensor *add_tensor(struct gen *g, enum role role, const char *letter)
{
    struct tensor *t = &g->tensor[g->ntensor];
    t->name = arena_printf(g->a, "%s%u", letter, g->ntensor++);
    t->role = role;
    t->type = pick_type(g);
    t->sort = sort_of(t->type);
    return t;
}

/* A table of subscripts: one for each row, for each column, or for both. */
static void add_ids(struct gen *g)
{
    static const enum dtype types[] = {DT_I32, DT_I32, DT_I64, DT_U16, DT_U8};
    struct tensor *t = add_tensor(g, ROLE_IN, "");
    t->name = "ids";
    t->type = types[gen_below(g, sizeof types / sizeof *types)];
    t->sort = SORT_INT;
    shape_of(g, t, gen_one_in(g, 4) ? 3 : gen_one_in(g, 3) ? 2 : 1);
    if (t->rank == 0)
        t->dim[t->rank++] = gen_below(g, g->ndim);
}

static void add_inputs(struct gen *g)
{
    const unsigned n = 1 + gen_below(g, 4);
    bool floats = false;
    for (unsigned i = 0; i < n; i++) {
        struct tensor *t = add_tensor(g, ROLE_IN, "x");
        shape_of(g, t, i == 0 || gen_one_in(g, 3) ? 0 : 1 + gen_below(g, 5));
        t->readable = true;
        floats |= t->sort == SORT_FLOAT;
        if (i + 1 == n && !floats)
            t->type = DT_F32, t->sort = SORT_FLOAT;
    }
    if (gen_one_in(g, 2))
        add_ids(g);
}

/* A dimension that no parameter has would be an unknown name. */
static void add_missing(struct gen *g)
{
    struct tensor *t = add_tensor(g, ROLE_IN, "w");
    t->type = DT_F32;
    t->sort = SORT_FLOAT;
    t->readable = true;
    for (unsigned d = 0; d < g->ndim; d++) {
        bool has = !g->dim[d].named;
        for (unsigned i = 0; i + 1 < g->ntensor && !has; i++)
            for (unsigned k = 0; k < g->tensor[i].rank; k++)
                has |= g->tensor[i].dim[k] == d;
        if (!has)
            t->dim[t->rank++] = d;
    }
    if (t->rank == 0)
        g->ntensor--;
}

/* ---- equations ------------------------------------------------------------------------------- */

static void print_left(struct gen *g, const struct tensor *t, struct buf *b)
{
    buf_puts(b, t->name);
    for (unsigned i = 0; i < t->rank; i++) {
        const struct index *x = &g->index[i];
        buf_printf(b, "%s%s", i ? ", " : "[", x->name);
        if (t->role == ROLE_INTERMEDIATE && (!x->bare || gen_one_in(g, 5)))
            buf_printf(b, " < %s", g->dim[x->dim].text);
    }
    buf_puts(b, t->rank ? "] = " : " = ");
}

static void add_equation(struct gen *g, struct tensor *t, struct buf *out)
{
    struct buf right = buf_in(g->a);
    g->nindex = g->names = 0;
    g->work = 1;
    g->own = t;
    g->room = 3 + gen_below(g, 10);
    for (unsigned i = 0; i < t->rank; i++) {
        gen_index_push(g, t->dim[i]);
        g->work *= (double)g->dim[t->dim[i]].value;
    }
    bool cast = t->sort == SORT_INT && t->role != ROLE_INTERMEDIATE;
    if (cast)
        buf_printf(&right, "%s(", dtype_name(t->type));
    bool small = t->rank < g->nbase;
    if (!small || gen_one_in(g, 5) || !gen_reduction(g, t->sort, &right))
        gen_expr(g, t->sort, &right);
    if (cast)
        buf_puts(&right, ")");
    buf_puts(out, "  ");
    print_left(g, t, out);
    buf_puts(out, buf_text(&right));
    buf_puts(out, "\n");
    t->readable = t->role == ROLE_INTERMEDIATE || t->role == ROLE_INOUT || gen_one_in(g, 3);
}

static void add_equations(struct gen *g, struct buf *out)
{
    unsigned intermediates = gen_below(g, 4), outputs = 1 + gen_below(g, 3);
    while (intermediates + outputs > 0) {
        bool inner = intermediates && (outputs == 1 || !gen_one_in(g, 4));
        bool inout = !inner && gen_one_in(g, 6);
        struct tensor *t = inner ? add_tensor(g, ROLE_INTERMEDIATE, "t")
                                 : add_tensor(g, inout ? ROLE_INOUT : ROLE_OUT, "y");
        if (inner && gen_one_in(g, 2))
            t->sort = SORT_FLOAT, t->type = DT_F32;
        bool small = gen_one_in(g, 2);
        shape_of(g, t, small ? 1 : gen_one_in(g, 2) ? 0 : gen_below(g, 6));
        t->readable = inout;
        add_equation(g, t, out);
        intermediates -= inner;
        outputs -= !inner;
    }
}

static const char *schedule(struct gen *g, unsigned sm)
{
    static const char *const word[] = {"1", "2", "4", "8", "16", "32", "64", "128", "256"};
    switch (gen_below(g, 9)) {
    case 0: return arena_printf(g->a, "{strategy: row, threads: %s}", word[gen_below(g, 9)]);
    case 1: return arena_printf(g->a, "{strategy: row, vectors: %s}", word[gen_below(g, 5)]);
    case 2:
        return arena_printf(g->a, "{strategy: row, %s: %s}", sm >= 90 ? "cluster" : "rows",
                            word[gen_below(g, 4)]);
    case 3: return arena_printf(g->a, "{strategy: reduce, block: %s}", word[5 + gen_below(g, 4)]);
    case 4:
        return arena_printf(g->a, "{strategy: reduce, split: %s, unroll: %s}",
                            word[gen_below(g, 5)], word[gen_below(g, 4)]);
    case 5: return arena_printf(g->a, "{strategy: reduce, tile: %s}", word[gen_below(g, 9)]);
    case 6: return arena_printf(g->a, "{strategy: map, block: %s}", word[5 + gen_below(g, 4)]);
    case 7: return arena_printf(g->a, "{strategy: map, vector: %s}", word[gen_below(g, 5)]);
    default: return arena_printf(g->a, "{strategy: map, tile: %s}", word[4 + gen_below(g, 4)]);
    }
}

/* ---- the spec -------------------------------------------------------------------------------- */

static void print_params(struct gen *g, struct buf *b)
{
    static const char *const roles[] = {"in", "inout", "out"};
    for (unsigned i = 0; i < g->ntensor; i++) {
        const struct tensor *t = &g->tensor[i];
        if (t->role == ROLE_INTERMEDIATE)
            continue;
        buf_printf(b, "  %s: %s %s[", t->name, roles[t->role], dtype_name(t->type));
        for (unsigned d = 0; d < t->rank; d++)
            buf_printf(b, "%s%s", d ? ", " : "", g->dim[t->dim[d]].text);
        buf_puts(b, "]\n");
    }
    buf_puts(b, "  s: f32\n  n: i32\n");
}

static void print_case(struct gen *g, struct buf *b)
{
    buf_puts(b, "cases:\n  c: {");
    bool filter = false;
    for (unsigned d = 0; d < g->ndim; d++) {
        filter |= strstr(g->dim[d].text, GENERATE_FILTER) != NULL;
        buf_puts(b, g->dim[d].binds);
    }
    buf_printf(b, "%ss: %s, n: %u}\n", filter ? GENERATE_FILTER ": 3, " : "",
               gen_one_in(g, 2) ? "0.75" : "-1.5", gen_below(g, 9));
}

struct generated generate_equations(struct arena *a, const char *name,
                                    const struct ptx_target *target, uint64_t seed, uint64_t number)
{
    struct gen *g = ARENA_NEW(a, struct gen);
    *g = (struct gen){.a = a, .r = random_start(seed, number)};
    struct buf params = buf_in(a), equations = buf_in(a), binds = buf_in(a);
    g->written = gen_one_in(g, 2);
    choose_base(g);
    add_inputs(g);
    add_missing(g);
    add_equations(g, &equations);
    print_params(g, &params);
    print_case(g, &binds);
    const char *start = arena_printf(a, "kernel: %s\nparams:\n%scompute: |\n%s", name,
                                     buf_text(&params), buf_text(&equations));
    const char *how = gen_one_in(g, 8) ? arena_printf(a, "schedule: %s\n", schedule(g, target->sm))
                                       : "";
    struct generated made = {.scheduled = *how != 0};
    made.text = arena_printf(a, "%s%s%s", start, how, buf_text(&binds));
    for (unsigned d = 0; d < g->ndim; d++)
        if (g->dim[d].value == 0)
            made.zero = g->dim[d].text;
    return made;
}
