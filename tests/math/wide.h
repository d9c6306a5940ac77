/* What a program begins with that takes a .k file of lib/lower through millions of numbers: AVX2
 * and FMA, which the compiler makes of its loops, the prelude, and warnings that the language
 * cannot heed. It ends with wide_end.h.
 */
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__
#pragma GCC target("avx2,fma")
#elif defined __x86_64__ && defined __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#endif

#include "math/prelude.h"

/* the language has no prototypes */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wfloat-equal"
