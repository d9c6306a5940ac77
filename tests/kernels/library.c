/* The math library as C. */
#include <config.h>

#include "math/functions.h"

#include "kernels/scalar.h"

#include <stdio.h>

bool library_call(const char *name, enum dtype t, const union scalar *x, union scalar *r)
{
    for (size_t k = 0; k < NFUNCTIONS; k++) {
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

bool library_half(const char *name, const union scalar *x, union scalar *r)
{
    char variant[32];
    snprintf(variant, sizeof variant, "%s_half", name);
    for (size_t k = 0; k < NFUNCTIONS; k++)
        if (strcmp(functions[k].name, variant) == 0) {
            r->f = (double)functions[k].f1((f32)x[0].f);
            return true;
        }
    return false;
}

double library_normal(uint32_t a, uint32_t b)
{
    return (double)normal_f32(a, b);
}
