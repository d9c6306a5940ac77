/* Calls of builtin functions and of those that the kernel defines. */
#include <config.h>

#include "kernels/generate_int.h"

#define PICK(g, list) (list)[gen_below(g, sizeof(list) / sizeof *(list))]

struct text gen_call_of(struct gen *g, const char *name, unsigned n, const struct text *x)
{
    struct buf b = buf_in(g->a);
    buf_printf(&b, "%s(", name);
    for (unsigned i = 0; i < n; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", x[i].s);
    buf_putc(&b, ')');
    return gen_text(buf_text(&b), BIND_PRIMARY);
}

/* The bits of a float, which must not be a NaN's: those are nobody's business. */
struct text gen_bits_of(struct gen *g, enum dtype t, unsigned depth)
{
    static const struct {
        enum dtype to, from;
        const char *name;
    } rows[] = {
        {DT_U32, DT_F32, "as_u32"}, {DT_I32, DT_F32, "as_i32"}, {DT_U64, DT_F64, "as_u64"},
        {DT_I64, DT_F64, "as_i64"}, {DT_U16, DT_F16, "as_u16"}, {DT_U16, DT_BF16, "as_u16"},
        {DT_F32, DT_U32, "as_f32"}, {DT_F32, DT_I32, "as_f32"}, {DT_F64, DT_U64, "as_f64"},
        {DT_F64, DT_I64, "as_f64"}, {DT_F16, DT_U16, "as_f16"}, {DT_BF16, DT_U16, "as_bf16"},
        {DT_U32, DT_I32, "as_u32"}, {DT_I64, DT_U64, "as_i64"}};
    unsigned k = gen_below(g, sizeof rows / sizeof *rows);
    for (unsigned tries = 0; rows[k].to != t; k = (k + 1) % (sizeof rows / sizeof *rows))
        if (tries++ > sizeof rows / sizeof *rows)
            return gen_leaf(g, t);
    enum dtype from = rows[k].from;
    struct text x = gen_expr(g, from, depth);
    if (x.constant)
        x = gen_variable(g, from);
    if (!dtype_is_float(from))
        return gen_call_of(g, rows[k].name, 1, &x);
    const char *number = gen_one_in(g, 2) ? "-60000.0" : "0.5";
    bool wide = from == DT_F64;
    const char *safe = gen_is_arithmetic(from)
                           ? arena_printf(g->a, "max(%s, %s%s)", x.s, number, wide ? "" : "f")
                           : arena_printf(g->a, "%s(max(%s, %sf))", dtype_name(from), x.s, number);
    return gen_text(arena_printf(g->a, "%s(%s)", rows[k].name, safe), BIND_PRIMARY);
}

/* The math library's functions. */
static const struct {
    const char *name;
    unsigned nargs;
} library[] = {
#define MATH(name, nargs, ulp_f32, ulp_f64, doc) {#name, nargs},
#include "lang/math.def"
};

struct text gen_library(struct gen *g, unsigned number, enum dtype t, unsigned depth)
{
    unsigned k = number % (sizeof library / sizeof *library);
    struct text x[2];
    g->heavy--;
    for (unsigned i = 0; i < library[k].nargs; i++)
        x[i] = gen_expr(g, i ? gen_weaker_type(g, t) : t, depth);
    return gen_call_of(g, library[k].name, library[k].nargs, x);
}

static struct text float_builtin(struct gen *g, enum dtype t, unsigned depth)
{
    static const char *const exact[] = {"sqrt", "rcp",   "floor", "ceil",    "trunc",
                                        "rint", "round", "fma",   "copysign"};
    static const char *const how[] = {"tf32", "tf32_rn", "tf32_rz"};
    if (g->heavy > 0 && gen_one_in(g, 2))
        return gen_library(g, gen_below(g, 1000), t, depth);
    if (t == DT_F32 && gen_one_in(g, 10)) {
        struct text x = gen_expr(g, gen_one_in(g, 3) ? DT_F16 : t, depth);
        return gen_call_of(g, how[gen_below(g, 3)], 1, &x);
    }
    unsigned k = gen_below(g, sizeof exact / sizeof *exact), n = k == 7 ? 3 : k == 8 ? 2 : 1;
    struct text x[3] = {
        gen_expr(g, t == DT_F32 && k >= 2 && k < 7 && gen_one_in(g, 3) ? DT_F16 : t, depth)};
    for (unsigned i = 1; i < n; i++)
        x[i] = gen_expr(g, gen_weaker_type(g, t), depth);
    if (k == 8) /* a NaN's sign is nobody's business */
        x[1] = gen_text(arena_printf(g->a, "max(%s, -1.5%s)", x[1].s, t == DT_F32 ? "f" : ""),
                        BIND_PRIMARY);
    return gen_call_of(g, exact[k], n, x);
}

static struct text bits_builtin(struct gen *g, enum dtype t, unsigned depth)
{
    unsigned k = gen_below(g, 7), bits = dtype_bits(t);
    struct text x[4] = {gen_expr(g, t, depth)};
    if (t == DT_U32 && gen_one_in(g, 3)) {
        x[0] = gen_expr(g, gen_int_type(g), depth);
        return gen_call_of(g, gen_one_in(g, 2) ? "popc" : "clz", 1, x);
    }
    if (k == 0)
        return gen_call_of(g, "brev", 1, x);
    if (k == 1 || k == 2) {
        unsigned field = k; /* where start and length are */
        if (k == 2)
            x[1] = gen_expr(g, gen_weaker_type(g, t), depth);
        x[field] = gen_text(gen_index(g, bits, depth), BIND_COND);
        x[field + 1] = gen_text(gen_index(g, bits, depth), BIND_COND);
        return gen_call_of(g, k == 1 ? "bfe" : "bfi", field + 2, x);
    }
    if (k == 3 || k == 4) {
        x[1] = gen_expr(g, gen_weaker_type(g, t), depth);
        return gen_call_of(g, "mulhi", 2, x);
    }
    if (k == 5 && bits == 32) {
        x[1] = gen_expr(g, t == DT_I32 && gen_one_in(g, 2) ? DT_U32 : t, depth);
        x[2] = gen_expr(g, t, depth);
        return gen_call_of(g, "dp4a", 3, x);
    }
    if (x[0].constant)
        x[0] = gen_variable(g, t);
    x[1] = gen_divisor(g, t, depth);
    return gen_call_of(g, "ceil_div", 2, x);
}

static struct text random_number(struct gen *g, enum dtype t, unsigned depth)
{
    static const char *const words[] = {".x", ".y", ".z", ".w"};
    struct text x[3];
    for (int i = 0; i < 3; i++) {
        enum dtype from = gen_int_type(g);
        x[i] = gen_expr(g, from, depth);
        if (x[i].constant) /* which might be negative */
            x[i] = gen_variable(g, from);
    }
    unsigned n = gen_one_in(g, 2) ? 2 : 3;
    if (t == DT_F32)
        return gen_call_of(g, gen_one_in(g, 3) && g->heavy ? "normal" : "uniform", n, x);
    return gen_text(arena_printf(g->a, "%s%s", gen_call_of(g, "philox", n, x).s, PICK(g, words)),
                    BIND_PRIMARY);
}

struct text gen_builtin(struct gen *g, enum dtype t, unsigned depth)
{
    static const char *const both[] = {"min", "max", "min", "max", "abs", "clamp", "relu"};
    const char *name = PICK(g, both);
    struct text x[3];
    if ((t == DT_F32 || t == DT_U32) && gen_one_in(g, 12))
        return random_number(g, t, depth);
    if (gen_one_in(g, 5))
        return gen_bits_of(g, t, depth);
    if (!gen_one_in(g, 3))
        return dtype_is_float(t) ? float_builtin(g, t, depth) : bits_builtin(g, t, depth);
    unsigned n = name[0] == 'm' ? 2 : name[0] == 'c' ? 3 : 1;
    x[0] = gen_expr(g, t, depth);
    if (x[0].constant)
        x[0] = gen_variable(g, t);
    for (unsigned i = 1; i < n; i++)
        x[i] = gen_expr(g, gen_weaker_type(g, t), depth);
    if (name[0] == 'a' && dtype_is_int(t)) /* the least integer has no abs */
        x[0].s = arena_printf(g->a, "(%s) | 1", x[0].s);
    return gen_call_of(g, name, n, x);
}

const char *gen_call(struct gen *g, const struct gen_func *f, unsigned depth)
{
    struct text x[4];
    for (uint32_t i = 0; i < f->nparam; i++)
        x[i] = f->param_lanes[i] ? gen_vector(g, f->param[i], f->param_lanes[i], depth)
                                 : gen_assignable(g, f->param[i], depth);
    return gen_call_of(g, f->name, f->nparam, x).s;
}

struct text gen_function(struct gen *g, enum dtype t, unsigned depth)
{
    for (unsigned tries = 0; tries < 4 && g->funcs.n; tries++) {
        const struct gen_func *f = &g->funcs.v[gen_below(g, (unsigned)g->funcs.n)];
        if (f->result == t && !f->lanes && !f->array && !f->meets)
            return gen_text(gen_call(g, f, depth), BIND_PRIMARY);
    }
    return gen_leaf(g, t);
}
