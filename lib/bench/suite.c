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

/* ---- convolutions ---- */

/* in: the operands' type; as: what rounds them, or nothing. */
#define CONVOLUTION(name, in, x, weight, y, places, sum, image, filter, as, cases)                \
    "kernel: conv_" name "\n"                                                                     \
    "params:\n"                                                                                   \
    "  x: in " in "[" x "]\n"                                                                     \
    "  weight: in " in "[" weight "]\n"                                                           \
    "  y: out " in "[" y "]\n"                                                                    \
    "compute: |\n"                                                                                \
    "  y[" places "] = sum[" sum "](" as "(pad(x[" image "], 0)) * " as "(weight[" filter "]))\n" \
    "cases:\n" cases

/* Images of pixels, whose channels are last, and of planes; r and s: the window. */
#define PIXELS(name, in, as, oh, ow, r, s, row, col, cases)                                      \
    CONVOLUTION(name, in, "n, h, w, c", "f, " r ", " s ", c", "n, " oh ", " ow ", f", "b,i,j,o", \
                "u,v,d", "b, " row ", " col ", d", "o,u,v,d", as, cases)
#define PLANES(name, in, as, oh, ow, r, s, row, col, cases)                                \
    CONVOLUTION(name, in, "n, c, h, w", "f, c, " r ", " s, "n, f, " oh ", " ow, "b,o,i,j", \
                "d,u,v", "b, d, " row ", " col, "o,d,u,v", as, cases)

/* A window of 3 x 3 with a border, one of 7 x 7 by 2, and one of 1 x 1 by 2. */
#define LAYOUT(FORM, type, suffix, in, as)                                                         \
    {type, "conv_3x3" suffix,                                                                      \
     FORM("3x3" suffix, in, as, "h", "w", "3", "3", "i + u - 1", "j + v - 1", NETWORKS)},          \
        {type, "conv_stem" suffix,                                                                 \
         FORM("stem" suffix, in, as, "h / 2", "w / 2", "7", "7", "2 * i + u - 3", "2 * j + v - 3", \
              "  stem: {n: 64, c: 3, h: 224, w: 224, f: 64}\n")},                                  \
    {                                                                                              \
        type, "conv_1x1" suffix,                                                                   \
            FORM("1x1" suffix, in, as, "h / 2", "w / 2", "1", "1", "2 * i + u", "2 * j + v",       \
                 "  c256_56: {n: 64, c: 256, h: 56, w: 56, f: 128}\n")                             \
    }

#define NETWORKS                                           \
    "  c64_56: {n: 64, c: 64, h: 56, w: 56, f: 64}\n"      \
    "  c128_28: {n: 64, c: 128, h: 28, w: 28, f: 128}\n"   \
    "  c256_14: {n: 64, c: 256, h: 14, w: 14, f: 256}\n"   \
    "  c512_7: {n: 64, c: 512, h: 7, w: 7, f: 512}\n"      \
    "  c320_64: {n: 8, c: 320, h: 64, w: 64, f: 320}\n"    \
    "  c1280_16: {n: 8, c: 1280, h: 16, w: 16, f: 1280}\n" \
    "  c512_64: {n: 1, c: 512, h: 64, w: 64, f: 512}\n"

/* 32 groups, each with filters of its own. */
#define GROUPS "  groups_28: {n: 64, g: 32, c: 4, h: 28, w: 28, f: 4}\n"
#define GROUPED_PIXELS(type, suffix, in, as)                                                     \
    {                                                                                            \
        type, "conv_grouped" suffix,                                                             \
            CONVOLUTION("grouped" suffix, in, "n, h, w, g, c", "g, f, 3, 3, c", "n, h, w, g, f", \
                        "b,i,j,e,o", "u,v,d", "b, i + u - 1, j + v - 1, e, d", "e,o,u,v,d", as,  \
                        GROUPS)                                                                  \
    }
#define GROUPED_PLANES(type, suffix, in, as)                                                     \
    {                                                                                            \
        type, "conv_grouped" suffix,                                                             \
            CONVOLUTION("grouped" suffix, in, "n, g, c, h, w", "g, f, c, 3, 3", "n, g, f, h, w", \
                        "b,e,o,i,j", "d,u,v", "b, e, d, i + u - 1, j + v - 1", "e,o,d,u,v", as,  \
                        GROUPS)                                                                  \
    }

/* A window of its own for each channel. */
#define DEPTHWISE_PIXELS(type, suffix, in, as, r, back, cases)                                     \
    {                                                                                              \
        type, "conv_depthwise" r suffix,                                                           \
            CONVOLUTION("depthwise" r suffix, in, "n, h, w, c", "c, " r ", " r, "n, h, w, c",      \
                        "b,i,j,d", "u,v", "b, i + u - " back ", j + v - " back ", d", "d,u,v", as, \
                        cases)                                                                     \
    }
#define DEPTHWISE_PLANES(type, suffix, in, as, r, back, cases)                                  \
    {                                                                                           \
        type, "conv_depthwise" r suffix,                                                        \
            CONVOLUTION("depthwise" r suffix, in, "n, c, h, w", "c, " r ", " r, "n, c, h, w",   \
                        "b,d,i,j", "u,v", "b, d, i + u - " back ", j + v - " back, "d,u,v", as, \
                        cases)                                                                  \
    }
#define DEPTHWISE_3 "  depthwise_28: {n: 64, c: 256, h: 28, w: 28}\n"
#define DEPTHWISE_7 "  depthwise7_14: {n: 64, c: 512, h: 14, w: 14}\n"

#define OF_PIXELS(type, suffix, in, as)                                         \
    LAYOUT(PIXELS, type, suffix, in, as), GROUPED_PIXELS(type, suffix, in, as), \
        DEPTHWISE_PIXELS(type, suffix, in, as, "3", "1", DEPTHWISE_3),          \
        DEPTHWISE_PIXELS(type, suffix, in, as, "7", "3", DEPTHWISE_7)
#define OF_PLANES(type, suffix, in, as)                                         \
    LAYOUT(PLANES, type, suffix, in, as), GROUPED_PLANES(type, suffix, in, as), \
        DEPTHWISE_PLANES(type, suffix, in, as, "3", "1", DEPTHWISE_3),          \
        DEPTHWISE_PLANES(type, suffix, in, as, "7", "3", DEPTHWISE_7)

static const struct suite_kernel conv_kernels[] = {
    OF_PIXELS("f16", "_f16", "f16", ""),
    OF_PLANES("f16-nchw", "_f16_nchw", "f16", ""),
    OF_PIXELS("tf32", "_tf32", "f32", "tf32"),
    OF_PLANES("tf32-nchw", "_tf32_nchw", "f32", "tf32"),
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
    {"conv",
     "convolutions of networks, of pixels (channels last) and of planes: 3 x 3, 7 x 7 and 1 x 1 "
     "by 2, in groups, by channel",
     conv_kernels, COUNT(conv_kernels), NULL, 0},
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

bool suite_begins_type(const struct suite *s, size_t i)
{
    return i == 0 || strcmp(s->kernel[i].type, s->kernel[i - 1].type) != 0;
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
