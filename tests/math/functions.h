/* The math library of lib/lower, compiled as C, and its functions by name. */
#ifndef KAIO_TESTS_MATH_FUNCTIONS_H
#define KAIO_TESTS_MATH_FUNCTIONS_H

#include "math/prelude.h"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include "lower/mathlib/convert.k"
#include "lower/mathlib/f32.k"
#include "lower/mathlib/f64.k"
#include "lower/mathlib/half.k"
#include "lower/mathlib/more_f32.k"
#include "lower/mathlib/more_f64.k"
#include "math/prelude_end.h"

/* Of one argument (f1, d1) or of two; a variant for 16-bit results is NAME_half, and has f1
 * only. */
static const struct {
    const char *name;
    f32 (*f1)(f32);
    f64 (*d1)(f64);
    f32 (*f2)(f32, f32);
    f64 (*d2)(f64, f64);
} functions[] = {
#define ROW_1(name)                              {#name, name##_f32, name##_f64, NULL, NULL},
#define ROW_2(name)                              {#name, NULL, NULL, name##_f32, name##_f64},
#define MATH(name, nargs, ulp_f32, ulp_f64, doc) ROW_##nargs(name)
#define HALF(name, ulp)                          {#name "_half", name##_half, NULL, NULL, NULL},
#include "lang/math.def"
};
enum { NFUNCTIONS = sizeof functions / sizeof *functions };

#endif
