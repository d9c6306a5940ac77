/* The types of literals, by a second reading of kaio-spec(5): the front end decides on them for the
 * emitter and for the reference alike, so that neither would tell its mistakes. Here nothing is
 * taken from lib/lang or lib/data: a literal is the number that it says, and one rule for all
 * operators gives it a type.
 *
 *   An integer is of the first type of i32, i64 and u64 that holds it; a float is f64 beside an f64
 *   and else f32. Operands of less than 32 bits are widened; the stronger one's type of f64, f32,
 *   u64, i64, u32, i32 is that of the operation and its result.
 */
#include <config.h>

#include "data/dtype.h"
#include "ref_case.h"

#include <float.h>

__extension__ typedef __int128 wide;

enum rank { I32, U32, I64, U64, F32, F64 }; /* weakest first */

struct number {
    wide i;
    double f;
};

static const struct literal {
    const char *text;
    bool is_float;
    wide i;
    double f;
} literals[] = {
    {"0", false, 0, 0},
    {"1", false, 1, 0},
    {"-1", false, -1, 0},
    {"127", false, 127, 0},
    {"128", false, 128, 0},
    {"255", false, 255, 0},
    {"256", false, 256, 0},
    {"-129", false, -129, 0},
    {"2049", false, 2049, 0},
    {"65504", false, 65504, 0},
    {"65535", false, 65535, 0},
    {"100003", false, 100003, 0},
    {"16777217", false, 16777217, 0},
    {"2147483647", false, 2147483647, 0},
    {"2147483648", false, 2147483648, 0},
    {"4294967295", false, 4294967295, 0},
    {"0xffffffff", false, 4294967295, 0},
    {"4294967296", false, 4294967296, 0},
    {"9223372036854775807", false, INT64_MAX, 0},
    {"9223372036854775808", false, (wide)INT64_MAX + 1, 0},
    {"18446744073709551615", false, UINT64_MAX, 0},
    {"0.5", true, 0, 0.5},
    {"0.1", true, 0, 0.1},
    {"449.0", true, 0, 449},
    {"65505.0", true, 0, 65505},
    {"1e6", true, 0, 1e6},
    {"-1e30", true, 0, -1e30},
};
enum { LITERALS = sizeof literals / sizeof *literals, VALUES = 4 };

static const struct {
    enum dtype type;
    enum rank rank;
    double value[VALUES];
} inputs[] = {
    {DT_I8, I32, {-128, 127, 3, 0}},
    {DT_U8, I32, {255, 128, 3, 0}},
    {DT_U16, I32, {65535, 128, 3, 0}},
    {DT_I32, I32, {-2147483648.0, 2147483647, 3, 0}},
    {DT_U32, U32, {4294967295.0, 2147483648.0, 3, 0}},
    {DT_I64, I64, {-1e15, 4294967296.0, 3, 0}},
    {DT_U64, U64, {1e15, 4294967296.0, 3, 0}},
    {DT_E4M3, F32, {448, -0.5, 3, 0}},
    {DT_F16, F32, {65504, -0.5, 3, 0}},
    {DT_BF16, F32, {0x1p+120, -0.5, 3, 0}},
    {DT_F32, F32, {16777217, -0.5, 3, 0}},
    {DT_F64, F64, {1e300, -0.5, 3, 0}},
};

/* ---- the rule -------------------------------------------------------------------------------- */

static enum rank literal_rank(const struct literal *l, enum rank beside)
{
    if (l->is_float)
        return beside == F64 ? F64 : F32;
    return l->i <= INT32_MAX ? I32 : l->i <= INT64_MAX ? I64 : U64;
}

/* The number in the type, as C converts. */
static struct number in_type(enum rank t, struct number x, bool is_float)
{
    if (t >= F32) {
        const double f = is_float ? x.f : t == F32 ? (double)(float)x.i : (double)x.i;
        return (struct number){0, t == F32 ? (double)(float)f : f};
    }
    switch (t) {
    case I32: return (struct number){(int32_t)(uint32_t)x.i, 0};
    case U32: return (struct number){(uint32_t)x.i, 0};
    case I64: return (struct number){(int64_t)(uint64_t)x.i, 0};
    default: return (struct number){(uint64_t)x.i, 0};
    }
}

enum op { PICK_LEFT, PICK_RIGHT, NESTED, MAX, MIN, PLUS, EQUAL, OPS };
/* of x, the literal and a condition that holds where the test says so */
static const char *const forms[OPS] = {
    "(c[i] != 0 ? x[i] : %s)",
    "(c[i] != 0 ? %s : x[i])",
    "(c[i] != 0 ? (c[i] > 0 ? %s : x[i]) : x[i])",
    "max(x[i], %s)",
    "min(%s, x[i])",
    "(x[i] + %s)",
    "i32(x[i] == %s)",
};
static const int conditions[VALUES] = {1, 0, 0, 1};

static struct number operate(enum op op, enum rank t, bool c, struct number x, struct number l)
{
    const bool less = t >= F32 ? x.f < l.f : x.i < l.i;
    const bool equal = t >= F32 ? x.f == l.f : x.i == l.i;
    switch (op) {
    case PICK_LEFT: return c ? x : l;
    case PICK_RIGHT:
    case NESTED: return c ? l : x;
    case MAX: return less ? l : x;
    case MIN: return less ? x : l;
    case PLUS:
        return t >= F32 ? in_type(t, (struct number){0, x.f + l.f}, true)
                        : in_type(t, (struct number){x.i + l.i, 0}, false);
    default: return (struct number){equal, equal};
    }
}

/* (x op literal) * 3 */
static struct number expected(enum op op, size_t input, size_t literal, size_t at, enum rank *rank)
{
    const struct literal *l = &literals[literal];
    const enum rank lit = literal_rank(l, inputs[input].rank);
    const enum rank t = inputs[input].rank > lit ? inputs[input].rank : lit;
    const double v = inputs[input].value[at];
    const double got = inputs[input].type == DT_F32 ? (double)(float)v : v;
    const bool is_float = inputs[input].rank >= F32;
    const struct number x = in_type(t, (struct number){is_float ? 0 : (wide)got, got}, is_float);
    const struct number y = in_type(t, (struct number){l->i, l->f}, l->is_float);
    const struct number r = operate(op, t, conditions[at], x, y);
    *rank = op == EQUAL ? I32 : t;
    if (*rank >= F32)
        return in_type(t, (struct number){0, r.f * 3}, true);
    return in_type(*rank, (struct number){r.i * 3, 0}, false);
}

/* ---- the reference --------------------------------------------------------------------------- */

static const char *spec_text(struct arena *a, enum op op, size_t input)
{
    struct buf b = buf_in(a), equations = buf_in(a);
    buf_printf(&b, "kernel: k\nparams:\n  x: in %s[n]\n  c: in i32[n]\n",
               dtype_name(inputs[input].type));
    for (size_t l = 0; l < LITERALS; l++) {
        enum rank t;
        expected(op, input, l, 0, &t);
        buf_printf(&b, "  y%zu: out %s[n]\n", l,
                   t >= F32               ? "f64"
                   : t == I32 || t == I64 ? "i64"
                                          : "u64");
        buf_printf(&equations, "  y%zu[i] = ", l);
        for (const char *c = forms[op]; *c; c++)
            if (*c == '%')
                buf_puts(&equations, literals[l].text), c++;
            else
                buf_putc(&equations, *c);
        buf_puts(&equations, " * 3\n");
    }
    buf_printf(&b, "compute: |\n%s", buf_text(&equations));
    return buf_text(&b);
}

/* Is it what the reference says? Of floats its bound must be about a rounding or two, not just
 * anything. */
static bool agrees(const struct ref_output *o, size_t at, enum rank t, struct number want)
{
    if (t < F32)
        return (uint64_t)o->i[at] == (uint64_t)want.i;
    if (!isfinite(want.f))
        return !isfinite(o->v[at]) || fabs(o->v[at]) + o->e[at] >= FLT_MAX;
    return fabs(o->v[at] - want.f) <= o->e[at] + 1e-15 * fabs(want.f) &&
           o->e[at] <= 1e-6 * fabs(want.f) + 1e-30;
}

static void compare(enum op op, size_t input)
{
    struct arena *a = arena_new();
    struct ref_case c = case_of(spec_text(a, op, input));
    double x[VALUES];
    unsigned wrong = 0;
    for (size_t k = 0; k < VALUES; k++)
        if (dtype_is_float(inputs[input].type))
            dtype_set(inputs[input].type, x, k, inputs[input].value[k]);
        else
            dtype_set_int(inputs[input].type, x, k, (int64_t)inputs[input].value[k]);
    case_dim(&c, "n", VALUES);
    case_buffer(&c, "x", x);
    case_buffer(&c, "c", conditions);
    for (size_t l = 0; l < LITERALS; l++)
        for (size_t k = 0; k < VALUES; k++) {
            enum rank t;
            const struct number want = expected(op, input, l, k, &t);
            const struct ref_output *o = case_out(&c, l);
            if (agrees(o, k, t, want))
                continue;
            wrong++;
            tap_note("%s with %s and x %g: the reference has %.17g", forms[op], literals[l].text,
                     inputs[input].value[k], t < F32 ? (double)o->i[k] : o->v[k]);
        }
    eq_int(wrong, 0, "%s of %s and a literal", forms[op], dtype_name(inputs[input].type));
    case_end(&c);
    arena_free(a);
}

int main(void)
{
    for (size_t input = 0; input < sizeof inputs / sizeof *inputs; input++)
        for (enum op op = 0; op < OPS; op++)
            compare(op, input);
    return tap_done();
}
