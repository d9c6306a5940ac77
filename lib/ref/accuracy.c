#include <config.h>

#include "ref/program.h"

/* The documented errors of the language's functions in ulp (kaio-spec(5)); tests/unit/ref_bounds.c holds them against the
 * emitter's table. */
static const struct accuracy {
    enum lang_builtin fn;
    double f32, f64;
    double
        fast; /* the hardware's approximation in ulp of f32, as the PTX manual bounds it; 0: there is none */
} table[] = {
    {FN_EXP, 2, 2, 4},     {FN_EXP2, 2, 2, 4}, {FN_LOG, 2, 2, 8},      {FN_LOG2, 2, 2, 8},
    {FN_LOG10, 2, 2, 8},   {FN_SIN, 2, 2, 4},  {FN_COS, 2, 2, 4},      {FN_TAN, 4, 4, 16},
    {FN_TANH, 2, 2, 8192}, {FN_SINH, 3, 3, 0}, {FN_COSH, 3, 3, 0},     {FN_ASIN, 3, 3, 0},
    {FN_ACOS, 3, 3, 0},    {FN_ATAN, 3, 3, 0}, {FN_ATAN2, 3, 3, 0},    {FN_POW, 8, 8, 16},
    {FN_RSQRT, 2, 2, 4},   {FN_RCP, 1, 1, 2},  {FN_ERF, 2, 2, 0},      {FN_ERFC, 5, 5, 0},
    {FN_SIGMOID, 3, 3, 8}, {FN_SILU, 4, 4, 8}, {FN_GELU, 6, 6, 16384}, {FN_GELU_TANH, 6, 6, 16384},
};

double ref_func_ulp(enum lang_builtin fn, enum dtype t, bool fast)
{
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (table[k].fn == fn) {
            double ulp = t == DT_F64 ? table[k].f64 : table[k].f32;
            return fast && t != DT_F64 && table[k].fast > ulp ? table[k].fast : ulp;
        }
    return 1;
}
