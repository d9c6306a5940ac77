#include <config.h>

#include "ref/program.h"

/* The documented errors of the language's functions in ulp of the exact result: what the emitter's library promises. */
static const struct {
    const char *name;
    double f32, f64;
} documented[] = {
#define MATH(name, nargs, f32, f64, doc) {#name, f32, f64},
#include "lower/math.def"
    {"rcp", 0.5, 0.5},    /* one instruction */
    {"normal", 3.0, 3.0}, /* of what data/philox.h defines; measured by tests/math/random.c */
};

static const struct {
    const char *name;
    double ulp;
} half[] = {
#define HALF(name, ulp) {#name, ulp},
#include "lower/math.def"
};

double ref_half_ulp(enum lang_builtin fn)
{
    for (size_t k = 0; k < sizeof half / sizeof *half; k++)
        if (strcmp(half[k].name, lang_builtin_name(fn)) == 0)
            return half[k].ulp;
    return 0;
}

double ref_func_ulp(enum lang_builtin fn, enum dtype t)
{
    for (size_t k = 0; k < sizeof documented / sizeof *documented; k++)
        if (strcmp(documented[k].name, lang_builtin_name(fn)) == 0)
            return t == DT_F64 ? documented[k].f64 : documented[k].f32;
    return 0;
}

/* The hardware's approximations (PTX ISA manual: ex2, lg2, sin, cos, tanh, rsqrt, rcp, all .approx.f32) and what the
 * emitter makes of them. The result's error is rel |y| + abs + absx |x|, after the argument's own of arg |x|. */
static const struct fast_error fast_table[] = {
    {FN_EXP, 0x1p-21, 0, 0, 0x1p-22},
    {FN_EXP2, 0x1p-21, 0, 0, 0},
    {FN_LOG, 0x1p-21, 0x1p-22, 0, 0},
    {FN_LOG2, 0x1p-21, 0x1p-22, 0, 0},
    {FN_LOG10, 0x1p-21, 0x1p-23, 0, 0},
    {FN_SIN, 0x1p-22, 0x1.7p-21, 0, 0},
    {FN_COS, 0x1p-22, 0x1.7p-21, 0, 0},
    {FN_TAN, 0x1p-20, 0x1.7p-21, 0, 0},
    {FN_TANH, 0x1.1p-11, 0x1p-20, 0, 0},
    {FN_RSQRT, 0x1p-22, 0, 0, 0},
    {FN_RCP, 0x1p-22, 0, 0, 0},
    {FN_SQRT, 0x1p-22, 0, 0, 0},
    {FN_SIGMOID, 0x1p-20, 0, 0, 0x1p-22},
    {FN_SILU, 0x1p-20, 0, 0x1p-126, 0x1p-22},
    {FN_GELU_TANH, 0x1p-20, 0, 0x1.1p-11, 0x1p-21},
};

const struct fast_error *ref_fast_error(enum lang_builtin fn)
{
    for (size_t k = 0; k < sizeof fast_table / sizeof *fast_table; k++)
        if (fast_table[k].fn == fn)
            return &fast_table[k];
    return NULL;
}
