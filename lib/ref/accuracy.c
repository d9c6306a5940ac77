#include <config.h>

#include "ref/program.h"

/* The documented errors of the language's functions in ulp of the exact result: what the emitter's
 * library promises. */
static const struct {
    const char *name;
    double f32, f64;
} documented[] = {
#define MATH(name, nargs, f32, f64, doc) {#name, f32, f64},
#include "lang/math.def"
    {"rcp", 0.5, 0.5},    /* one instruction */
    {"normal", 3.0, 3.0}, /* of what data/philox.h defines; measured by tests/math/random.c */
};

static const struct {
    const char *name;
    double ulp;
} half[] = {
#define HALF(name, ulp) {#name, ulp},
#include "lang/math.def"
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

/* Of f32, between products of tensor cores (lib/lower/chain). */
double ref_between_ulp(enum lang_builtin fn)
{
    return fn == FN_TANH ? 3 : 0;
}

static const struct fast {
    const char *name;
    struct fast_error error;
} fast_table[] = {
#define FAST(name, rel, abs, absx, arg) {#name, {rel, abs, absx, arg}},
#include "lang/math.def"
};

const struct fast_error *ref_fast_error(enum lang_builtin fn)
{
    for (size_t k = 0; k < sizeof fast_table / sizeof *fast_table; k++)
        if (strcmp(fast_table[k].name, lang_builtin_name(fn)) == 0)
            return &fast_table[k].error;
    return NULL;
}
