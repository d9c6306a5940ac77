/* require: what sizes a kernel is for. */
#include <config.h>

#include "spec/spec_int.h"

bool read_requires(struct spec_reader *r, const struct yaml_value *v)
{
    span_list list = {0};
    bool good = text_list(r->a, v, "require", &list, r->d);
    for (size_t i = 0; i < list.n; i++) {
        struct lang_expr *e = read_launch_expr(r, list.v[i], DT_BOOL, false);
        if (e)
            *VEC_PUSH(r->a, &r->spec->require) = e;
        else
            good = false;
    }
    return good;
}

const struct lang_expr *spec_ruled_out(const struct spec *s)
{
    int64_t holds;
    for (size_t i = 0; i < s->require.n; i++)
        if (lang_const_int(s->require.v[i], &holds) && !holds)
            return s->require.v[i];
    return NULL;
}

const char *spec_ruled_out_text(struct arena *a, const struct lang_expr *require)
{
    const char *values = lang_fixed_text(a, require);
    return arena_printf(a, "the kernel requires %s, %s%s", lang_expr_text(a, require),
                        *values ? "but " : "which never holds", values);
}
