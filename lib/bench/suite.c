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

/* ---- attention ---- */

/* Softmax attention of f16, in the range of keys `in` and with scores `score`. */
#define ATTENTION(name, params, score, in, cases)                                 \
    "kernel: attention_" name "\n"                                                \
    "params:\n"                                                                   \
    "  q: in f16[b, heads, m, d]\n"                                               \
    "  k: in f16[b, heads, n, d]\n"                                               \
    "  v: in f16[b, heads, n, d]\n" params "  scale: f32 = 0.08838834764831845\n" \
    "  o: out f16[b, heads, m, d]\n"                                              \
    "require: m <= n\n"                                                           \
    "compute: |\n"                                                                \
    "  r[z,h,i,j] = sum[c](q[z,h,i,c] * k[z,h,j,c]) * scale\n"                    \
    "  s[z,h,i,j] = " score "\n"                                                  \
    "  top[z,h,i] = max[j" in "](s[z,h,i,j])\n"                                   \
    "  p[z,h,i,j] = exp(s[z,h,i,j] - top[z,h,i])\n"                               \
    "  total[z,h,i] = sum[j" in "](p[z,h,i,j])\n"                                 \
    "  o[z,h,i,c] = sum[j" in "](f16(p[z,h,i,j]) * v[z,h,j,c]) / total[z,h,i]\n"  \
    "cases:\n" cases
#define CAUSAL " in 0..i + (n - m) + 1"

/* 16384 tokens of 2048 numbers. */
#define TOKENS(d, heads, scale)       \
    LENGTH(d, 512, 32, heads, scale)  \
    LENGTH(d, 1024, 16, heads, scale) \
    LENGTH(d, 2048, 8, heads, scale)  \
    LENGTH(d, 4096, 4, heads, scale)  \
    LENGTH(d, 8192, 2, heads, scale)  \
    LENGTH(d, 16384, 1, heads, scale)
#define LENGTH(d, n, b, heads, scale)                                               \
    "  d" #d "_" #n ": {b: " #b ", heads: " #heads ", m: " #n ", n: " #n ", d: " #d \
    ", scale: " #scale "}\n"
#define TABLE TOKENS(64, 32, 0.125) TOKENS(128, 16, 0.08838834764831845) TOKENS(256, 8, 0.0625)

/* Two lengths; data: what further inputs have. */
#define TWO(data)                                                        \
    "  d128_4096: {b: 4, heads: 16, m: 4096, n: 4096, d: 128" data "}\n" \
    "  d128_16384: {b: 1, heads: 16, m: 16384, n: 16384, d: 128" data "}\n"

/* A row of queries for each sequence, whose k and v are read once. */
#define DECODE(name, params, k, v, keys, cases)                                \
    "kernel: attention_" name "\n"                                             \
    "params:\n"                                                                \
    "  q: in f16[b, hq, d]\n" params "  scale: f32 = 0.08838834764831845\n"    \
    "  o: out f16[b, hq, d]\n"                                                 \
    "require: [hk >= 1, hq % hk == 0]\n"                                       \
    "compute: |\n"                                                             \
    "  s[z,h,j < " keys "] = sum[c](q[z,h,c] * " k ") * scale\n"               \
    "  top[z,h] = max[j in 0.." keys "](s[z,h,j])\n"                           \
    "  p[z,h,j < " keys "] = exp(s[z,h,j] - top[z,h])\n"                       \
    "  total[z,h] = sum[j in 0.." keys "](p[z,h,j])\n"                         \
    "  o[z,h,c] = sum[j in 0.." keys "](f16(p[z,h,j]) * " v ") / total[z,h]\n" \
    "cases:\n" cases
#define CACHE(b, hq, n) \
    "  b" #b "_" #n ": {b: " #b ", hq: " #hq ", hk: 8, m: 1, n: " #n ", d: 128}\n"
#define CACHES         \
    CACHE(1, 32, 8192) \
    CACHE(1, 32, 65536) CACHE(16, 32, 4096) CACHE(64, 32, 2048) CACHE(8, 64, 8192)

/* All gradients. lse is about that of normally distributed scores. */
#define BACKWARD(name, keys, rows, cases)                                     \
    "kernel: attention_" name "\n"                                            \
    "params:\n"                                                               \
    "  q: in f16[b, heads, m, d]\n"                                           \
    "  k: in f16[b, heads, n, d]\n"                                           \
    "  v: in f16[b, heads, n, d]\n"                                           \
    "  o: in f16[b, heads, m, d]\n"                                           \
    "  dout: in f16[b, heads, m, d]\n"                                        \
    "  lse: in f32[b, heads, m]\n"                                            \
    "  scale: f32 = 0.08838834764831845\n"                                    \
    "  dq: out f16[b, heads, m, d]\n"                                         \
    "  dk: out f16[b, heads, n, d]\n"                                         \
    "  dv: out f16[b, heads, n, d]\n"                                         \
    "require: m <= n\n"                                                       \
    "compute: |\n"                                                            \
    "  delta[z,h,i] = sum[c](o[z,h,i,c] * dout[z,h,i,c])\n"                   \
    "  s[z,h,i,j] = sum[c](q[z,h,i,c] * k[z,h,j,c]) * scale\n"                \
    "  p[z,h,i,j] = exp(s[z,h,i,j] - lse[z,h,i])\n"                           \
    "  dp[z,h,i,j] = sum[c](dout[z,h,i,c] * v[z,h,j,c])\n"                    \
    "  ds[z,h,i,j] = p[z,h,i,j] * (dp[z,h,i,j] - delta[z,h,i])\n"             \
    "  dq[z,h,i,c] = sum[j" keys "](f16(ds[z,h,i,j]) * k[z,h,j,c]) * scale\n" \
    "  dk[z,h,j,c] = sum[i" rows "](f16(ds[z,h,i,j]) * q[z,h,i,c]) * scale\n" \
    "  dv[z,h,j,c] = sum[i" rows "](f16(p[z,h,i,j]) * dout[z,h,i,c])\n"       \
    "cases:\n" cases
#define GRADIENTS                                                                               \
    "  d64_4096: {b: 4, heads: 32, m: 4096, n: 4096, d: 64, scale: 0.125, lse: \"@const:9\"}\n" \
    "  d128_1024: {b: 16, heads: 16, m: 1024, n: 1024, d: 128, lse: \"@const:7.5\"}\n"          \
    "  d128_4096: {b: 4, heads: 16, m: 4096, n: 4096, d: 128, lse: \"@const:9\"}\n"             \
    "  d128_16384: {b: 1, heads: 16, m: 16384, n: 16384, d: 128, lse: \"@const:10.5\"}\n"

static const struct suite_kernel attention_kernels[] = {
    {"full", "attention_full", ATTENTION("full", "", "r[z,h,i,j]", "", TABLE)},
    {"causal", "attention_causal", ATTENTION("causal", "", "r[z,h,i,j]", CAUSAL, TABLE)},
    {"decode", "attention_decode",
     "kernel: attention_decode\n"
     "params:\n"
     "  q: in f16[b, hq, m, d]\n"
     "  k: in f16[b, hk, n, d]\n"
     "  v: in f16[b, hk, n, d]\n"
     "  scale: f32 = 0.08838834764831845\n"
     "  o: out f16[b, hq, m, d]\n"
     "require: [hk >= 1, hq % hk == 0]\n"
     "compute: |\n"
     "  s[z,h,i,j] = sum[c](q[z,h,i,c] * k[z, h / (hq / hk), j, c]) * scale\n"
     "  top[z,h,i] = max[j](s[z,h,i,j])\n"
     "  p[z,h,i,j] = exp(s[z,h,i,j] - top[z,h,i])\n"
     "  total[z,h,i] = sum[j](p[z,h,i,j])\n"
     "  o[z,h,i,c] = sum[j](f16(p[z,h,i,j]) * v[z, h / (hq / hk), j, c]) / total[z,h,i]\n"
     "cases:\n" CACHES},
    {"softcap", "attention_softcap",
     ATTENTION("softcap", "  cap: f32 = 30\n", "cap * tanh(r[z,h,i,j] / cap)", CAUSAL, TWO(""))},
    {"alibi", "attention_alibi",
     ATTENTION("alibi", "  slope: in f32[heads]\n", "r[z,h,i,j] - slope[h] * (i + (n - m) - j)",
               CAUSAL, TWO(", slope: \"@uniform\""))},
    {"window", "attention_window",
     ATTENTION("window", "", "r[z,h,i,j]", " in max(0, i + (n - m) + 1 - 1024)..i + (n - m) + 1",
               TWO(""))},
    {"documents", "attention_documents",
     ATTENTION("documents", "  of_row: in i32[b, m]\n  of_key: in i32[b, n]\n",
               "of_row[z,i] == of_key[z,j] && j <= i ? r[z,h,i,j] : -inf", "",
               TWO(", of_row: \"@sorted:0:7:1\", of_key: \"@sorted:0:7:1\""))},
    {"bias", "attention_bias",
     ATTENTION("bias", "  bias: in f16[heads, m, n]\n", "r[z,h,i,j] + bias[h,i,j]", "", TWO(""))},
    {"varlen", "attention_varlen",
     ATTENTION(
         "varlen", "  len: in i32[b]\n", "r[z,h,i,j]", " in 0..min(n, len[z])",
         "  d128_4096: {b: 4, heads: 16, m: 4096, n: 4096, d: 128, len: 2048..4096}\n"
         "  d64_512: {b: 64, heads: 12, m: 512, n: 512, d: 64, scale: 0.125, len: 1..512}\n")},
    {"paged", "attention_paged",
     DECODE(
         "paged",
         "  k: in f16[pages, 16, hk, d]\n  v: in f16[pages, 16, hk, d]\n"
         "  page: in i32[b, most]\n",
         "k[page[z, j / 16], j % 16, h / (hq / hk), c]",
         "v[page[z, j / 16], j % 16, h / (hq / hk), c]", "16 * most",
         "  b16_4096: {b: 16, hq: 32, hk: 8, pages: 4096, most: 256, d: 128, page: \"@arange\"}\n"
         "  b64_2048: {b: 64, hq: 32, hk: 8, pages: 8192, most: 128, d: 128, page: "
         "\"@arange\"}\n")},
    {"fp8", "attention_fp8",
     "kernel: attention_fp8\n"
     "params:\n"
     "  q: in e4m3[b, heads, m, d]\n"
     "  k: in e4m3[b, heads, n, d]\n"
     "  v: in e4m3[b, heads, n, d]\n"
     "  scale: f32 = 0.08838834764831845\n"
     "  o: out f16[b, heads, m, d]\n"
     "compute: |\n"
     "  s[z,h,i,j] = sum[c](q[z,h,i,c] * k[z,h,j,c]) * scale\n"
     "  top[z,h,i] = max[j](s[z,h,i,j])\n"
     "  p[z,h,i,j] = exp(s[z,h,i,j] - top[z,h,i])\n"
     "  total[z,h,i] = sum[j](p[z,h,i,j])\n"
     "  o[z,h,i,c] = sum[j](e4m3(p[z,h,i,j]) * v[z,h,j,c]) / total[z,h,i]\n"
     "cases:\n"
     "  d128_16384: {b: 1, heads: 16, m: 16384, n: 16384, d: 128}\n"},
    {"backward", "attention_backward", BACKWARD("backward", "", "", GRADIENTS)},
    {"backward-causal", "attention_backward_causal",
     BACKWARD("backward_causal", " in 0..i + (n - m) + 1", " in max(0, j - (n - m))..m",
              GRADIENTS)},
};

#define COUNT(x) (sizeof(x) / sizeof *(x))

static const struct suite all[] = {
    {"matmul",
     "matrix products: square from 256 to 8192, long ones, and a transformer's for 1 to 512 tokens",
     matmul_kernels, COUNT(matmul_kernels), matmul_problems, COUNT(matmul_problems)},
    {"attention",
     "attention of f16: 16384 tokens in rows of 512 to 16384, full and causal; decoding; "
     "gradients; "
     "variants",
     attention_kernels, COUNT(attention_kernels), NULL, 0},
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
