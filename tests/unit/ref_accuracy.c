/* The errors that the reference grants each function are those that the emitter's library documents. */
#include <config.h>

#include "ref/program.h"
#include "tap.h"

static bool is_builtin(const char *name, enum lang_builtin *fn)
{
    for (int k = 0; k < FN_COUNT; k++)
        if (strcmp(lang_builtin_name((enum lang_builtin)k), name) == 0) {
            *fn = (enum lang_builtin)k;
            return true;
        }
    return false;
}

int main(void)
{
    static const struct {
        const char *name;
        double f32, f64;
    } documented[] = {
#define MATH(name, nargs, f32, f64, doc) {#name, f32, f64},
#include "lower/math.def"
#undef MATH
    };
    size_t known = 0;
    for (size_t k = 0; k < sizeof documented / sizeof *documented; k++) {
        enum lang_builtin fn;
        if (!is_builtin(documented[k].name, &fn)) /* a helper of the library's own */
            continue;
        known++;
        ok(ref_func_ulp(fn, DT_F32) == documented[k].f32 &&
               ref_func_ulp(fn, DT_F64) == documented[k].f64,
           "%s: %g ulp in f32, %g in f64", documented[k].name, documented[k].f32,
           documented[k].f64);
    }
    ok(known > 20, "%zu functions are documented", known);
    return tap_done();
}
