/* One value of the kernel language and the operations on it, in plain C: what kaio-spec(5) says,
 * written once more. The evaluator's arithmetic shares nothing with the emitter and the
 * simulator. */
#ifndef KAIO_TESTS_KERNELS_SCALAR_H
#define KAIO_TESTS_KERNELS_SCALAR_H

#include "lang/lang.h"

/* Integers and bool in two's complement, extended to 64 bits as their type says; floats of every
 * width as the double that equals them. NaN has no payload. */
union scalar {
    uint64_t u;
    int64_t i;
    double f;
};

union scalar scalar_load(enum dtype t, const void *p, size_t index);
void scalar_store(enum dtype t, void *p, size_t index, union scalar v);

union scalar scalar_int(enum dtype t, uint64_t v); /* cut to the type's width */
union scalar scalar_float(enum dtype t, double v); /* rounded to the type */
union scalar scalar_convert(enum dtype from, enum dtype to, union scalar v);
bool scalar_is_true(enum dtype t, union scalar v);

/* x op y, both of type t (the count of a shift: of type count). Comparisons give 0 or 1. */
union scalar scalar_binary(enum lang_op op, enum dtype t, enum dtype count, union scalar x,
                           union scalar y);
union scalar scalar_unary(enum lang_op op, enum dtype t, union scalar x);
union scalar scalar_fma(enum dtype t, union scalar x, union scalar y, union scalar z);
/* min and max: of a NaN and a number the number, -0 below +0. */
union scalar scalar_min(enum dtype t, union scalar x, union scalar y);
union scalar scalar_max(enum dtype t, union scalar x, union scalar y);

/* A builtin of scalars. type[i] is the type of x[i], t that of the result. False: not known
 * here. */
bool scalar_call(enum lang_builtin fn, enum dtype t, const enum dtype *type, const union scalar *x,
                 union scalar *r);
/* The functions of lib/lower/math_*.k, compiled as C; t is f32 or f64. False: there is none. */
bool library_call(const char *name, enum dtype t, const union scalar *x, union scalar *r);
/* Those of half.k, which are taken where a result is rounded to 16 bits at once. */
bool library_half(const char *name, const union scalar *x, union scalar *r);
double library_normal(uint32_t a, uint32_t b);

/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
 * 2011). */
void scalar_philox(uint64_t seed, uint64_t counter, uint64_t stream, uint32_t out[4]);

#endif
