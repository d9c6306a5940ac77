#include <config.h>

#include "ref/program.h"

/* The documented errors of the language's functions in ulp of the exact result (kaio-spec(5)); tests/unit/ref_accuracy.c
 * holds them against the emitter's own table. */
static const struct {
    enum lang_builtin fn;
    double f32, f64;
} table[] = {
    {FN_EXP, 0.9, 0.9},     {FN_EXP2, 0.9, 0.8}, {FN_LOG, 1.0, 0.7},   {FN_LOG2, 1.3, 0.7},
    {FN_LOG10, 1.2, 0.7},   {FN_SIN, 0.9, 0.8},  {FN_COS, 0.9, 0.8},   {FN_TAN, 1.5, 1.0},
    {FN_SINH, 1.0, 1.1},    {FN_COSH, 1.0, 1.0}, {FN_TANH, 1.0, 1.3},  {FN_ASIN, 0.7, 0.7},
    {FN_ACOS, 0.7, 0.6},    {FN_ATAN, 0.9, 0.7}, {FN_ATAN2, 1.0, 0.8}, {FN_POW, 1.0, 1.0},
    {FN_RSQRT, 0.6, 0.6},   {FN_FMOD, 0, 0},     {FN_ERF, 1.0, 1.1},   {FN_ERFC, 2.0, 2.1},
    {FN_SIGMOID, 1.7, 1.5}, {FN_SILU, 1.9, 1.6}, {FN_GELU, 2.0, 2.0},  {FN_GELU_TANH, 2.0, 1.7},
    {FN_RCP, 0.5, 0.5},
};

double ref_func_ulp(enum lang_builtin fn, enum dtype t)
{
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (table[k].fn == fn)
            return t == DT_F64 ? table[k].f64 : table[k].f32;
    return 1;
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
