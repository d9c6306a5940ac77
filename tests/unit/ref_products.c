/* Sums of products evaluated as products of matrices, against the same sums evaluated term by term
 * (what little memory makes of them): the same values, and bounds that are no smaller and hardly
 * larger. */
#include <config.h>

#include "ref_case.h"

enum { M = 37, N = 45, K = 131, B = 3, MOST = B * K * 64 };

struct kernel {
    const char *text, *what;
    bool exact;  /* small whole numbers are equal, whatever the order */
    double most; /* the bound may be so much larger */
    bool keeps;  /* also sums that depend on some indices, and take few operations as they are */
};

static const struct kernel kernels[] = {
    {"  x: in f32[m, k]\n  y: in f32[k, n]\n  v: in f32[k]\n  c: out f32[m, n]\n"
     "compute: |\n  c[i, j] = sum[l](x[i, l] * y[l, j])\n",
     "f32", true, 1.01},
    {"  x: in f32[m, k]\n  y: in f32[n, k]\n  v: in f32[k]\n  c: out f32[n, m]\n"
     "compute: |\n  c[j, i] = sum[l](y[j, l] * x[i, l]) * 0.5\n",
     "transposed, in an expression", true, 1.01},
    {"  x: in f32[b, k, m]\n  y: in f32[b, k, n]\n  v: in f32[k]\n  c: out f32[m, b, n]\n"
     "compute: |\n  c[i, h, j] = sum[l](x[h, l, i] * y[h, l, j])\n",
     "batches", true, 1.01},
    {"  x: in f32[b, m, k]\n  y: in f32[k, n]\n  v: in f32[k]\n  c: out f32[b, m, n]\n"
     "compute: |\n  c[h, i, j] = sum[l](f32(f16(x[h, l % m, l])) * f32(f16(y[l, j])))\n",
     "f16, an index that only the other has", true, 1.01},
    {"  x: in f32[m, k]\n  y: in f32[k, n]\n  v: in f32[k]\n  c: out f32[m, n]\n"
     "compute: |\n  c[i, j] = sum[l](exp(x[i, l] * 0.01) * (y[l, j] * v[l]))\n",
     "factors with errors", false, 1.6},
    {"  x: in f32[m, k]\n  y: in f32[k, n]\n  v: in f32[k]\n  c: out f32[m, n]\n"
     "compute: |\n  t[i, l] = x[i, l] * 0.3\n  c[i, j] = sum[l < k - 1](t[i, l + 1] * y[l, j])\n",
     "an intermediate, a shorter range", false, 1.6},
    {"  x: in f32[m, k]\n  y: in f32[k, n]\n  v: in f32[k]\n  c: out f32[m, n]\n"
     "compute: |\n  c[i, j] = x[i, 0] > 0 ? sum[l](x[i, l] * y[l, j]) : sum[l](pad(x[i, l + 1], 0) "
     "* v[l])\n",
     "under a condition", true, 1.01, true},
    {"  x: in f32[m, k]\n  y: in f32[k, n]\n  v: in f32[k]\n  c: out i32[m, n]\n"
     "compute: |\n  c[i, j] = sum[l](i32(x[i, l] * 100) * i32(y[l, j] * 1000000)) + 1\n",
     "i32, with wrapping", false, 1},
};

static float x[MOST], y[MOST], w[K];

/* kind 0: reals; 1: small whole numbers; 2: with zeros, infinities, NaN and large numbers */
static void fill(int kind, float *p, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++) {
        double r = next_random(&seed);
        p[i] = (float)(kind == 1 ? rint(8 * r) : 2 * r);
        int special = (int)(fabs(r) * 1e6) % 2000;
        if (kind == 2 && special < 6)
            p[i] = (const float[]){0, -0.0f, INFINITY, NAN, 3e38f, 1e-40f}[special];
    }
}

static bool same(double a, double b, double e)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-5 * e;
}

static void compare(const struct kernel *k, int kind)
{
    char text[1024];
    snprintf(text, sizeof text, "kernel: k\nparams:\n%s", k->text);
    struct ref_case c = case_of(text);
    const struct {
        const char *name;
        uint64_t v;
    } dims[] = {{"m", M}, {"n", N}, {"k", K}, {"b", B}};
    for (size_t i = 0; i < 4; i++)
        case_dim(&c, dims[i].name, dims[i].v);
    case_buffer(&c, "x", x);
    case_buffer(&c, "y", y);
    case_buffer(&c, "v", w);
    c.opt.memory = 1000;
    const struct ref_output *o = case_out(&c, 0);
    size_t n = (size_t)o->count;
    bool is_int = !o->v;
    double *e = ARENA_ARRAY(c.a, n, double), *v = ARENA_ARRAY(c.a, n, double), most = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = is_int ? (double)o->i[i] : o->v[i];
        e[i] = o->e[i];
    }
    uint64_t terms = ref_operations(c.ref);
    c.opt.memory = 0;
    case_run(&c);
    o = case_out(&c, 0);
    size_t wrong = 0, exact = 0;
    for (size_t i = 0; i < n; i++) {
        double got = is_int ? (double)o->i[i] : o->v[i];
        exact += o->e[i] == 0;
        wrong += !same(v[i], got, e[i]) || o->e[i] < e[i] * (1 - 1e-6);
        if (isfinite(o->e[i]) && o->e[i] > 0)
            most = fmax(most, o->e[i] / e[i]);
        else if (o->e[i] != e[i])
            wrong++;
    }
    ok(!wrong && most <= (kind == 2 ? 3 : k->most),
       "%s, %s: %zu of %zu differ, bounds are %.2f as large", k->what,
       (const char *[]){"reals", "small whole numbers", "special values"}[kind], wrong, n, most);
    if (kind == 1 && k->exact)
        ok(exact == n, "... and equality is demanded");
    /* special values, and integers that are not certain, are left to the slow way */
    if (!k->keeps && (kind == 1 || (kind == 0 && !is_int)))
        ok(ref_operations(c.ref) < terms, "... which are multiplied as matrices");
    case_end(&c);
}

int main(void)
{
    for (int kind = 0; kind < 3; kind++) {
        fill(kind, x, MOST, 1);
        fill(kind, y, MOST, 2);
        fill(kind, w, K, 3);
        for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
            compare(&kernels[k], kind);
    }
    return tap_done();
}
