#include <config.h>

#include "bench/suite.h"

#include <stdlib.h>

/* Rows times columns; 8-bit operands with k last on both sides, as tensor cores and libraries want
 * them. */
#define PRODUCT(name, in, b, out, term) \
    "kernel: matmul_" name "\n"         \
    "params:\n"                         \
    "  a: in " in "[m, k]\n"            \
    "  b: in " in b "\n"                \
    "  c: out " out "[m, n]\n"          \
    "compute: |\n"                      \
    "  c[i, j] = sum[l](" term ")\n"

static const struct suite_kernel matmul_kernels[] = {
    {"f16", "matmul_f16", PRODUCT("f16", "f16", "[k, n]", "f16", "a[i, l] * b[l, j]")},
    {"bf16", "matmul_bf16", PRODUCT("bf16", "bf16", "[k, n]", "bf16", "a[i, l] * b[l, j]")},
    {"f32", "matmul_f32", PRODUCT("f32", "f32", "[k, n]", "f32", "a[i, l] * b[l, j]")},
    {"tf32", "matmul_tf32",
     PRODUCT("tf32", "f32", "[k, n]", "f32", "tf32_rn(a[i, l]) * tf32_rn(b[l, j])")},
    {"f64", "matmul_f64", PRODUCT("f64", "f64", "[k, n]", "f64", "a[i, l] * b[l, j]")},
    {"int8", "matmul_int8", PRODUCT("int8", "i8", "[n, k]", "i32", "a[i, l] * b[j, l]")},
    {"fp8", "matmul_fp8", PRODUCT("fp8", "e4m3", "[n, k]", "f16", "a[i, l] * b[j, l]")},
};

#define SQUARE(n) "m=" #n " k=" #n " n=" #n
/* The products of a transformer's layers, for so many tokens. */
#define LAYERS(m) "m=" #m " k=4096 n=4096", "m=" #m " k=4096 n=14336", "m=" #m " k=14336 n=4096"

static const char *const matmul_problems[] = {
    SQUARE(256),
    SQUARE(512),
    SQUARE(1024),
    SQUARE(2048),
    SQUARE(4096),
    SQUARE(8192),
    "m=4096 k=4096 n=14336",
    "m=8192 k=8192 n=1024",
    LAYERS(1),
    LAYERS(16),
    LAYERS(64),
    LAYERS(128),
    LAYERS(512),
};

#define COUNT(x) (sizeof(x) / sizeof *(x))

static const struct suite all[] = {
    {"matmul",
     "matrix products: square from 256 to 8192, long ones, and a transformer's for 1 to 512 tokens",
     matmul_kernels, COUNT(matmul_kernels), matmul_problems, COUNT(matmul_problems)},
};

const struct suite *suites(size_t *n)
{
    *n = COUNT(all);
    return all;
}

const struct suite *suite_find(const char *name)
{
    for (size_t i = 0; i < COUNT(all); i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

void suite_points(struct arena *a, const struct suite *s, struct sweep_points *out)
{
    *out = (struct sweep_points){0};
    for (size_t i = 0; i < s->nproblem; i++) {
        struct bench_point *p = VEC_PUSH(a, &out->v);
        for (const char *word = s->problem[i]; *word;) {
            size_t name = strcspn(word, "="), len = strcspn(word, " ");
            const char *text = arena_strndup(a, word + name + 1, len - name - 1);
            int64_t v = strtoll(text, NULL, 10);
            *VEC_PUSH(a, &p->values) = (struct bench_value){.name = arena_strndup(a, word, name),
                                                            .text = text,
                                                            .type = DT_VOID,
                                                            .whole = true,
                                                            .i = v,
                                                            .f = (double)v};
            word += len;
            word += strspn(word, " ");
        }
    }
}
