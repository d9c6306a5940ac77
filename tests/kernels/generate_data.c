/* Vectors, arrays and tables. */
#include <config.h>

#include "kernels/generate_int.h"

static const struct {
    enum dtype type;
    uint8_t lanes;
} vector_types[] = {{DT_F32, 2},  {DT_F32, 4},  {DT_F64, 2},  {DT_I32, 2}, {DT_I32, 4}, {DT_U32, 2},
                    {DT_U32, 4},  {DT_I64, 2},  {DT_U64, 2},  {DT_F16, 2}, {DT_F16, 4}, {DT_F16, 8},
                    {DT_BF16, 2}, {DT_BF16, 4}, {DT_BF16, 8}, {DT_I16, 2}, {DT_I16, 4}, {DT_I16, 8},
                    {DT_U16, 2},  {DT_U16, 4},  {DT_U16, 8},  {DT_I8, 4},  {DT_I8, 8},  {DT_I8, 16},
                    {DT_U8, 4},   {DT_U8, 8},   {DT_U8, 16},  {DT_F32, 4}, {DT_U32, 4}};

bool gen_is_vector(enum dtype t, unsigned lanes)
{
    for (size_t i = 0; i < sizeof vector_types / sizeof *vector_types; i++)
        if (vector_types[i].type == t && vector_types[i].lanes == lanes)
            return true;
    return false;
}

enum dtype gen_vector_type(struct gen *g, uint8_t *lanes)
{
    unsigned k = gen_below(g, sizeof vector_types / sizeof *vector_types);
    *lanes = vector_types[k].lanes;
    return vector_types[k].type;
}

const char *gen_type_name(struct gen *g, enum dtype t, unsigned lanes)
{
    return lanes ? arena_printf(g->a, "%sx%u", dtype_name(t), lanes) : dtype_name(t);
}

/* ---- parts of variables ---------------------------------------------------------------------- */

/* "a[1][i & 3]", "a[2, 0]", "a[5]": an element of an array. */
static const char *element_of(struct gen *g, const struct var *v)
{
    const char *at[2] = {"0", "0"};
    for (uint32_t i = 0; i < v->rank; i++)
        at[i] = v->moving ? gen_index(g, v->dim[i], 1)
                          : arena_printf(g->a, "%u", gen_below(g, v->dim[i]));
    if (v->rank == 1)
        return arena_printf(g->a, "%s[%s]", v->name, at[0]);
    if (!v->lanes && gen_one_in(g, 4)) /* flat */
        return arena_printf(g->a, "%s[%u]", v->name, gen_below(g, v->dim[0] * v->dim[1]));
    return arena_printf(g->a, gen_one_in(g, 2) ? "%s[%s][%s]" : "%s[%s, %s]", v->name, at[0],
                        at[1]);
}

const char *gen_part(struct gen *g, const struct var *v)
{
    static const char *const names[] = {".x", ".y", ".z", ".w"};
    struct var it = *v;
    const char *s = it.rank ? element_of(g, &it) : it.name;
    unsigned k = it.lanes ? gen_below(g, it.lanes) : 0;
    if (!it.lanes)
        return s;
    return k < 4 && gen_one_in(g, 2) ? arena_printf(g->a, "%s%s", s, names[k])
                                     : arena_printf(g->a, "%s[%u]", s, k);
}

const struct var *gen_find_part(struct gen *g, enum dtype t, bool to_change)
{
    const struct var *found = NULL;
    unsigned n = 0;
    for (size_t i = 0; i < g->vars.n; i++) {
        const struct var *v = &g->vars.v[i];
        if ((v->lanes || v->rank) && gen_is_visible(g, i) && (t == DT_VOID || v->type == t) &&
            !(to_change && v->fixed) && gen_one_in(g, ++n))
            found = v;
    }
    return found;
}

/* ---- vector expressions ---------------------------------------------------------------------- */

static const char *find_vector(struct gen *g, enum dtype t, unsigned lanes)
{
    const char *found = NULL;
    unsigned n = 0;
    for (size_t i = 0; i < g->vars.n; i++) {
        struct var v = g->vars.v[i];
        if (v.lanes == lanes && v.type == t && gen_is_visible(g, i) && gen_one_in(g, ++n))
            found = v.rank ? element_of(g, &v) : v.name;
    }
    return found;
}

static struct text construct(struct gen *g, enum dtype t, unsigned lanes, unsigned depth)
{
    struct buf b = buf_in(g->a);
    unsigned n = gen_one_in(g, 4) ? 1 : lanes;
    buf_printf(&b, "%s(", gen_type_name(g, t, lanes));
    for (unsigned i = 0; i < n; i++) {
        enum dtype from = gen_one_in(g, 3) ? gen_scalar_type(g) : t;
        buf_printf(&b, "%s%s", i ? ", " : "", gen_expr(g, from, lanes > 4 ? 0 : depth).s);
    }
    buf_putc(&b, ')');
    return gen_text(buf_text(&b), BIND_PRIMARY);
}

static const char *load_of_array(struct gen *g, enum dtype t, unsigned lanes);

static uint32_t elements(struct gen_buffer b)
{
    uint32_t n = 1;
    for (uint32_t i = 0; i < b.rank; i++)
        n *= b.dim[i];
    return n;
}

static struct text load(struct gen *g, enum dtype t, unsigned lanes)
{
    const char *own = load_of_array(g, t, lanes);
    if (own)
        return gen_text(own, BIND_PRIMARY);
    struct gen_buffer b = gen_buffer(g, USE_READ, t);
    uint32_t n = elements(b);
    if (b.rank == 0 || n % lanes != 0)
        return construct(g, t, lanes, 0);
    if (b.rank > 1 && b.dim[b.rank - 1] % lanes == 0 && gen_one_in(g, 2)) {
        const char *last = gen_index(g, b.dim[b.rank - 1] / lanes, 1);
        const char *first = gen_index(g, b.dim[0], 1);
        return gen_text(arena_printf(g->a, "load%u(&%s[%s, %s(%s) * %u])", lanes, b.name, first,
                                     b.rank == 3 ? "0, " : "", last, lanes),
                        BIND_PRIMARY);
    }
    return gen_text(arena_printf(g->a, "load%u(&%s[(%s) * %u])", lanes, b.name,
                                 gen_index(g, n / lanes, 1), lanes),
                    BIND_PRIMARY);
}

/* A weaker vector of as many lanes, or a scalar that stands for all of them. */
static struct text other_side(struct gen *g, enum dtype t, unsigned lanes, unsigned depth)
{
    enum dtype w = gen_weaker_type(g, t);
    if (gen_is_vector(w, lanes) && !gen_one_in(g, 3))
        return gen_vector(g, w, lanes, depth);
    struct text e = gen_expr(g, w, depth);
    return e.constant ? gen_variable(g, w) : e;
}

static struct text vector_arithmetic(struct gen *g, enum dtype t, unsigned lanes, unsigned depth)
{
    static const char *const ops[] = {"+", "-", "*", "/"};
    unsigned k = gen_below(g, dtype_is_float(t) ? 4 : 3);
    int level = k < 2 ? BIND_ADD : BIND_MUL;
    struct text x = gen_vector(g, t, lanes, depth), y = other_side(g, t, lanes, depth);
    if (gen_one_in(g, 3)) {
        struct text s = x;
        x = y;
        y = s;
    }
    return gen_text(
        arena_printf(g->a, "%s %s %s", gen_wrap(g, x, level), ops[k], gen_wrap(g, y, level + 1)),
        level);
}

static struct text vector_call(struct gen *g, enum dtype t, unsigned lanes, unsigned depth)
{
    static const char *const names[] = {"min", "max", "abs", "fma"};
    unsigned k = gen_below(g, dtype_is_float(t) ? 4 : 3);
    struct text x = gen_vector(g, t, lanes, depth);
    if (k == 2)
        return gen_text(arena_printf(g->a, "abs(%s)", x.s), BIND_PRIMARY);
    struct text y = other_side(g, t, lanes, depth);
    if (k < 2)
        return gen_text(arena_printf(g->a, "%s(%s, %s)", names[k], x.s, y.s), BIND_PRIMARY);
    return gen_text(
        arena_printf(g->a, "fma(%s, %s, %s)", y.s, x.s, other_side(g, t, lanes, depth).s),
        BIND_PRIMARY);
}

static struct text vector_cast(struct gen *g, enum dtype t, unsigned lanes, unsigned depth)
{
    uint8_t n = 0;
    enum dtype from = t;
    for (int tries = 0; tries < 20 && n != lanes; tries++)
        from = gen_vector_type(g, &n);
    if (n != lanes)
        from = t;
    return gen_text(arena_printf(g->a, "%s(%s)", gen_type_name(g, t, lanes),
                                 gen_vector(g, from, lanes, depth).s),
                    BIND_PRIMARY);
}

static struct text vector_function(struct gen *g, enum dtype t, unsigned lanes, unsigned depth)
{
    for (size_t i = 0; i < g->funcs.n; i++)
        if (g->funcs.v[i].result == t && g->funcs.v[i].lanes == lanes && !g->funcs.v[i].array) {
            struct gen_func f = g->funcs.v[i];
            return gen_text(gen_call(g, &f, depth), BIND_PRIMARY);
        }
    if (t == DT_U32 && lanes == 4)
        return gen_text(arena_printf(g->a, "philox(%s, %s)", gen_variable(g, DT_U32).s,
                                     gen_variable(g, DT_U32).s),
                        BIND_PRIMARY);
    return load(g, t, lanes);
}

struct text gen_vector(struct gen *g, enum dtype t, unsigned lanes, unsigned depth)
{
    unsigned k = gen_below(g, 100);
    const char *v = k < 50 || depth == 0 ? find_vector(g, t, lanes) : NULL;
    g->nodes++;
    if (v && (depth == 0 || gen_one_in(g, 2)))
        return gen_text(v, BIND_PRIMARY);
    if (depth-- == 0)
        return gen_one_in(g, 2) ? load(g, t, lanes) : construct(g, t, lanes, 0);
    if (gen_is_arithmetic(t) && k < 40)
        return vector_arithmetic(g, t, lanes, depth);
    if (gen_is_arithmetic(t) && k < 46)
        return gen_text(arena_printf(g->a, "-(%s)", gen_vector(g, t, lanes, depth).s), BIND_UNARY);
    if (gen_is_arithmetic(t) && k < 56)
        return vector_call(g, t, lanes, depth);
    if (k < 66)
        return vector_cast(g, t, lanes, depth);
    if (k < 74)
        return gen_text(
            arena_printf(g->a, "%s ? %s : %s", gen_wrap(g, gen_condition(g, depth), BIND_LOR),
                         gen_vector(g, t, lanes, depth).s, gen_vector(g, t, lanes, depth).s),
            BIND_COND);
    if (k < 82)
        return vector_function(g, t, lanes, depth);
    return k < 92 ? load(g, t, lanes) : construct(g, t, lanes, depth);
}

/* ---- statements ------------------------------------------------------------------------------ */

static void vector_declaration(struct gen *g, unsigned depth)
{
    uint8_t lanes;
    enum dtype t = gen_vector_type(g, &lanes);
    const char *outer = gen_one_in(g, 5) ? gen_outer_name(g) : NULL;
    const char *name = outer ? outer : gen_name(g, "v");
    bool fixed = gen_one_in(g, 8);
    gen_line(g, "%s%s %s = %s;", fixed ? "const " : "",
             gen_one_in(g, 8) ? "auto" : gen_type_name(g, t, lanes), name,
             gen_vector(g, t, lanes, depth).s);
    struct var *v = gen_add_var(g, name, t, fixed);
    v->lanes = lanes;
}

/* The values of an array, maybe fewer than it has: "{{1, 2}, {3}}". */
static const char *list(struct gen *g, const struct var *v, bool table)
{
    struct buf b = buf_in(g->a);
    uint32_t rows = v->rank == 2 ? v->dim[0] : 1, cols = v->rank == 2 ? v->dim[1] : v->dim[0];
    if (!table && gen_one_in(g, 5))
        return "{}";
    bool braces = v->rank == 2 && gen_one_in(g, 2);
    buf_putc(&b, '{');
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t n = braces || rows == 1 ? 1 + gen_below(g, cols) : cols;
        buf_printf(&b, "%s%s", i ? ", " : "", braces ? "{" : "");
        for (uint32_t k = 0; k < n; k++)
            buf_printf(&b, "%s%s", k ? ", " : "",
                       v->lanes ? gen_vector(g, v->type, v->lanes, 0).s
                       : table  ? gen_literal(g, v->type).s
                                : gen_assignable(g, v->type, 1).s);
        buf_puts(&b, braces ? "}" : "");
    }
    buf_putc(&b, '}');
    return buf_text(&b);
}

static const char *extents(struct gen *g, const struct var *v)
{
    return v->rank == 2 ? arena_printf(g->a, "[%u][%u]", v->dim[0], v->dim[1])
                        : arena_printf(g->a, "[%u]", v->dim[0]);
}

static struct var new_array(struct gen *g, const char *stem)
{
    struct var v = {.type = gen_scalar_type(g), .rank = 1 + gen_one_in(g, 4)};
    for (uint32_t i = 0; i < v.rank; i++)
        v.dim[i] = 1 + gen_below(g, v.rank == 1 ? 6 : 3);
    if (gen_one_in(g, 6))
        v.type = gen_vector_type(g, &v.lanes);
    v.moving = gen_one_in(g, 2);
    v.name = gen_name(g, stem);
    return v;
}

static void array_declaration(struct gen *g)
{
    struct var v = new_array(g, "a");
    bool table = !v.lanes && gen_one_in(g, 3);
    v.fixed = table || gen_one_in(g, 10);
    gen_line(g, "%s%s %s%s = %s;", v.fixed ? "const " : "", gen_type_name(g, v.type, v.lanes),
             v.name, extents(g, &v), list(g, &v, table));
    *VEC_PUSH(g->a, &g->vars) = v;
}

void gen_table(struct gen *g)
{
    struct var v = new_array(g, "w");
    if (v.lanes) {
        v.type = DT_F32;
        v.lanes = 0;
    }
    v.fixed = true;
    gen_line(g, "const %s %s%s = %s;", dtype_name(v.type), v.name, extents(g, &v),
             list(g, &v, true));
    *VEC_PUSH(g->a, &g->tables) = v;
}

/* Every element in turn, by a counter that unrolling makes constant. */
static void array_loop(struct gen *g, unsigned depth)
{
    struct var v = {.name = NULL};
    for (size_t i = 0; i < g->vars.n; i++)
        if (g->vars.v[i].rank == 1 && !g->vars.v[i].lanes && !g->vars.v[i].fixed)
            v = g->vars.v[i];
    if (!v.name) {
        array_declaration(g);
        return;
    }
    const char *i = gen_name(g, "c");
    size_t vars = g->vars.n;
    unsigned trips = g->trips;
    g->trips *= v.dim[0] + 1;
    if (gen_one_in(g, 2))
        gen_line(g, gen_one_in(g, 3) ? "#pragma unroll 2" : "#pragma unroll");
    gen_line(g, "for (u32 %s = 0; %s < %u; %s++) {", i, i, v.dim[0], i);
    gen_add_var(g, i, DT_U32, true);
    g->indent++;
    bool simple = v.type == DT_BOOL || gen_one_in(g, 2);
    gen_line(g, "%s[%s] %s %s;", v.name, i, simple ? "=" : "+=",
             simple ? gen_assignable(g, v.type, depth).s : gen_expr(g, v.type, depth).s);
    g->indent--;
    gen_line(g, "}");
    gen_forget(g, vars);
    g->trips = trips;
}

static void vector_assignment(struct gen *g, unsigned depth)
{
    static const char *const ops[] = {"=", "+=", "-=", "*="};
    for (size_t i = g->vars.n; i-- > 0;) {
        struct var v = g->vars.v[i];
        if (!v.lanes || v.rank || v.fixed || !gen_is_visible(g, i) || gen_one_in(g, 3))
            continue;
        unsigned k = gen_is_arithmetic(v.type) ? gen_below(g, 4) : 0;
        gen_line(g, "%s %s %s;", v.name, ops[k],
                 k ? other_side(g, v.type, v.lanes, depth).s
                   : gen_vector(g, v.type, v.lanes, depth).s);
        return;
    }
    vector_declaration(g, depth);
}

static void vector_store(struct gen *g, unsigned depth)
{
    uint8_t lanes;
    enum dtype t = gen_vector_type(g, &lanes);
    if (g->in_func) {
        vector_assignment(g, depth);
        return;
    }
    struct gen_buffer b = gen_buffer(g, USE_WIDE, t);
    unsigned parts = b.dim[0] / lanes;
    const char *at = gen_index(g, parts, 1);
    if (gen_one_in(g, 2))
        gen_line(g, "store%u(&%s[tid, (%s) * %u], %s);", lanes, b.name, at, lanes,
                 gen_vector(g, t, lanes, depth).s);
    else
        gen_line(g, "store%u(&%s[(tid * %u + (%s)) * %u], %s);", lanes, b.name, parts, at, lanes,
                 gen_vector(g, t, lanes, depth).s);
}

bool gen_array_call(struct gen *g, unsigned depth)
{
    for (size_t i = g->funcs.n; i-- > 0;) {
        struct gen_func f = g->funcs.v[i];
        if (!f.array)
            continue;
        struct var a = {.name = gen_name(g, "a"), .type = f.param[0], .rank = 1, .dim = {f.array}};
        a.moving = gen_one_in(g, 2);
        gen_line(g, "%s %s[%u] = %s;", dtype_name(a.type), a.name, f.array, list(g, &a, false));
        *VEC_PUSH(g->a, &g->vars) = a;
        struct buf call = buf_in(g->a);
        buf_printf(&call, "%s(%s", f.name, a.name);
        for (uint32_t k = 1; k < f.nparam; k++)
            buf_printf(&call, ", %s",
                       f.param_lanes[k] ? gen_vector(g, f.param[k], f.param_lanes[k], 1).s
                                        : gen_assignable(g, f.param[k], depth).s);
        const char *name = gen_name(g, "v");
        gen_line(g, "%s %s = %s);", gen_type_name(g, f.result, f.lanes), name, buf_text(&call));
        gen_add_var(g, name, f.result, false)->lanes = f.lanes;
        return true;
    }
    return false;
}

/* load4(&a[4]) of an array of the thread's own. */
static const char *load_of_array(struct gen *g, enum dtype t, unsigned lanes)
{
    for (size_t i = 0; i < g->vars.n; i++) {
        struct var v = g->vars.v[i];
        uint32_t n = v.rank == 2 ? v.dim[0] * v.dim[1] : v.dim[0];
        if (v.rank && v.type == t && !v.lanes && n >= lanes && gen_one_in(g, 2))
            return arena_printf(g->a, "load%u(&%s[%s * %u])", lanes, v.name,
                                v.moving ? arena_printf(g->a, "(%s)", gen_index(g, n / lanes, 1))
                                         : arena_printf(g->a, "%u", gen_below(g, n / lanes)),
                                lanes);
    }
    return NULL;
}

void gen_data(struct gen *g, unsigned depth)
{
    unsigned k = gen_below(g, 10);
    if (k < 3)
        vector_declaration(g, depth);
    else if (k < 5)
        array_declaration(g);
    else if (k < 7)
        vector_assignment(g, depth);
    else if (k < 8)
        vector_store(g, depth);
    else
        array_loop(g, depth);
}
