/* The math library as C. */
#include <config.h>

#include "math/prelude.h"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include "lower/math_f32.k"
#include "lower/math_f64.k"
#include "lower/math_half.k"
#include "lower/more_f32.k"
#include "lower/more_f64.k"
#include "math/prelude_end.h"

#include "kernels/scalar.h"

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
#include "lower/math.def"
};

bool library_call(const char *name, enum dtype t, const union scalar *x, union scalar *r)
{
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        if (strcmp(functions[k].name, name) != 0)
            continue;
        if (functions[k].f2)
            r->f = t == DT_F64 ? functions[k].d2(x[0].f, x[1].f)
                               : (double)functions[k].f2((f32)x[0].f, (f32)x[1].f);
        else
            r->f = t == DT_F64 ? functions[k].d1(x[0].f) : (double)functions[k].f1((f32)x[0].f);
        return true;
    }
    return false;
}

static const struct {
    const char *name;
    f32 (*f)(f32);
} halves[] = {
#define HALF(name, ulp) {#name, name##_half},
#include "lower/math.def"
};

bool library_half(const char *name, const union scalar *x, union scalar *r)
{
    for (size_t k = 0; k < sizeof halves / sizeof *halves; k++)
        if (strcmp(halves[k].name, name) == 0) {
            r->f = (double)halves[k].f((f32)x[0].f);
            return true;
        }
    return false;
}

double library_normal(uint32_t a, uint32_t b)
{
    return (double)normal_f32(a, b);
}
