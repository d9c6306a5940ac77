#include <config.h>

#include "lower/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lower/convert.k.h"
#include "lower/math_f32.k.h"
#include "lower/math_f64.k.h"
#include "lower/math_half.k.h"

static const struct {
    const char *name, *text;
    size_t len;
} files[] = {
    {"convert.k", convert_k, sizeof convert_k - 1},
    {"math_f32.k", math_f32_k, sizeof math_f32_k - 1},
    {"math_f64.k", math_f64_k, sizeof math_f64_k - 1},
    {"math_half.k", math_half_k, sizeof math_half_k - 1},
};
enum { NFILES = sizeof files / sizeof *files, FILE_F32 = 1, FILE_HALF = 3 };

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
    diags_format(d, "internal error", false, &b);
    fputs(buf_text(&b), stderr);
    abort();
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
    l->scope[i]->up = i == FILE_HALF ? parse(l, FILE_F32) : NULL;
    if (!lang_functions(l->a, source_all(src), l->scope[i], &opt, d))
        broken(d, l->a);
    return l->scope[i];
}

/* convert.k has what is called X_from_Y, math_TYPE.k what ends in _TYPE. */
static bool in_file(const char *name, size_t i)
{
    const char *type = strrchr(name, '_');
    bool conversion = strstr(name, "_from_") != NULL, first = i == 0;
    return type && conversion == first && (first || strstr(files[i].name, type));
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
