#include <config.h>

#include "lower/cg/library.h"

#include <string.h>

#include "base/internal.h"
#include "lower/mathlib/convert.k.h"
#include "lower/mathlib/f32.k.h"
#include "lower/mathlib/f64.k.h"
#include "lower/mathlib/half.k.h"
#include "lower/mathlib/more_f32.k.h"
#include "lower/mathlib/more_f64.k.h"

enum { NONE = -1, CONVERT, F32, F64, HALF, MORE_F32, MORE_F64, NFILES };

static const struct {
    const char *name, *suffix; /* what the names of its functions end in; NULL: X_from_Y */
    const char *text;
    size_t len;
    int up; /* whose functions it calls */
} files[NFILES] = {
    [CONVERT] = {"convert.k", NULL, convert_k, sizeof convert_k - 1, NONE},
    [F32] = {"f32.k", "_f32", f32_k, sizeof f32_k - 1, NONE},
    [F64] = {"f64.k", "_f64", f64_k, sizeof f64_k - 1, NONE},
    [HALF] = {"half.k", "_half", half_k, sizeof half_k - 1, F32},
    [MORE_F32] = {"more_f32.k", "_f32", more_f32_k, sizeof more_f32_k - 1, F32},
    [MORE_F64] = {"more_f64.k", "_f64", more_f64_k, sizeof more_f64_k - 1, F64},
};

struct library {
    struct arena *a;
    struct lang_scope *scope[NFILES]; /* NULL: not parsed yet */
};

struct library *library_new(struct arena *a)
{
    struct library *l = ARENA_NEW(a, struct library);
    l->a = a;
    return l;
}

static void broken(const struct diags *d, struct arena *a)
{
    struct buf b = buf_in(a);
    diags_format(d, "kaio", false, &b);
    INTERNAL_ERROR("the library's functions are not what they should be:\n%s", buf_text(&b));
}

static struct lang_scope *parse(struct library *l, size_t i)
{
    if (l->scope[i])
        return l->scope[i];
    struct diags *d = diags_new(l->a);
    struct source *src = ARENA_NEW(l->a, struct source);
    *src = (struct source){files[i].name, files[i].text, files[i].len};
    struct lang_options opt = {.lazy_functions = true};
    l->scope[i] = ARENA_NEW(l->a, struct lang_scope);
    l->scope[i]->up = files[i].up != NONE ? parse(l, (size_t)files[i].up) : NULL;
    if (!lang_functions(l->a, source_all(src), l->scope[i], &opt, d))
        broken(d, l->a);
    return l->scope[i];
}

static bool in_file(const char *name, size_t i)
{
    const char *type = strrchr(name, '_');
    const bool conversion = strstr(name, "_from_") != NULL, converts = !files[i].suffix;
    return type && conversion == converts && (converts || strcmp(files[i].suffix, type) == 0);
}

const struct lang_func *library_find(struct library *l, const char *name)
{
    struct lang_symbol *sym = NULL;
    for (size_t i = 0; i < NFILES && !sym; i++)
        if (in_file(name, i))
            sym = lang_find(parse(l, i), name);
    if (!sym || sym->kind != SYM_FUNC)
        return NULL;
    struct diags *d = diags_new(l->a);
    if (!lang_check_func(sym->func, d))
        broken(d, l->a);
    return sym->func;
}
