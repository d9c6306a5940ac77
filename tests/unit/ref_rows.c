/* Equations that are evaluated by rows: the same values as those of whole intermediates, for all
 * elements and for a sample of rows. */
#include <config.h>

#include "ref/plan.h"
#include "ref_case.h"

enum { B = 2, HEADS = 4, M = 24, N = 40, D = 8, MOST = B * HEADS * N * N };
static float numbers[6][MOST];

#define HEAD                    \
    "kernel: k\n"               \
    "params:\n"                 \
    "  q: in f32[b, h, m, d]\n" \
    "  k: in f32[b, g, n, d]\n" \
    "  v: in f32[b, g, n, d]\n" \
    "  w: in f32[b, h, m, d]\n"
#define SOFTMAX                                                                        \
    "  s[z,y,i,j] = j <= i + (n - m) ? sum[c](q[z,y,i,c] * k[z,y/(h/g),j,c]) : -inf\n" \
    "  top[z,y,i] = max[j](s[z,y,i,j])\n"                                              \
    "  p[z,y,i,j] = exp(s[z,y,i,j] - top[z,y,i])\n"                                    \
    "  total[z,y,i] = sum[j](p[z,y,i,j])\n"

static const struct {
    const char *name, *text;
    int groups, kept; /* groups of equations, intermediates that are whole */
} specs[] = {
    {"attention",
     HEAD "  o: out f32[b, h, m, d]\n"
          "  lse: out f32[b, h, m]\n"
          "compute: |\n" SOFTMAX
          "  o[z,y,i,c] = sum[j](f16(p[z,y,i,j]) * v[z,y/(h/g),j,c]) / total[z,y,i]\n"
          "  lse[z,y,i] = top[z,y,i] + log(total[z,y,i])\n",
     1, 0},
    {"another layout, and p itself",
     HEAD "  o: out f32[m, b, d, h]\n"
          "  r: out f32[b, h, m, n]\n"
          "compute: |\n" SOFTMAX "  r[z,y,i,j] = p[z,y,i,j] / total[z,y,i]\n"
          "  o[i,z,c,y] = sum[j](r[z,y,i,j] * v[z,y/(h/g),j,c])\n",
     2, 0},
    {"backward",
     HEAD "  dq: out f32[b, h, m, d]\n"
          "  dk: out f32[b, h, n, d]\n"
          "  dv: out f32[b, h, n, d]\n"
          "compute: |\n" SOFTMAX "  lse[z,y,i] = top[z,y,i] + log(total[z,y,i])\n"
          "  r[z,y,i,j] = exp(s[z,y,i,j] - lse[z,y,i])\n"
          "  dp[z,y,i,j] = sum[c](w[z,y,i,c] * v[z,y/(h/g),j,c])\n"
          "  delta[z,y,i] = sum[j](r[z,y,i,j] * dp[z,y,i,j])\n"
          "  ds[z,y,i,j] = r[z,y,i,j] * (dp[z,y,i,j] - delta[z,y,i])\n"
          "  dq[z,y,i,c] = sum[j](ds[z,y,i,j] * k[z,y/(h/g),j,c])\n"
          "  dk[z,y,j,c] = sum[i](ds[z,y,i,j] * q[z,y,i,c])\n"
          "  dv[z,y,j,c] = sum[i](r[z,y,i,j] * w[z,y,i,c])\n",
     3, 2}, /* lse and delta */
    {"two layers of whole numbers",
     "kernel: k\n"
     "params:\n"
     "  q: in f32[m, n]\n"
     "  o: out i32[m, d]\n"
     "compute: |\n"
     "  a[i,l < n] = sum[j](i32(q[i,j] * 9) * i32(q[l % m,j] * 7))\n"
     "  t[i,l < n] = a[i,l] & 255\n"
     "  o[i,c] = sum[l](t[i,l] * (l + c))\n",
     1, 0},
    {"a diagonal",
     "kernel: k\n"
     "params:\n"
     "  q: in f32[m, n]\n"
     "  y: out f32[m]\n"
     "  o: out f32[m, n]\n"
     "compute: |\n"
     "  a[i,l < m] = sum[j](q[i,j] * q[l,j])\n"
     "  top[i] = max[l < m](a[i,l])\n"
     "  o[i,j] = sum[l < m](exp(a[i,l] - top[i]) * q[l,j])\n"
     "  y[i] = a[i,i]\n",
     2, 0},
    {"what is read elsewhere",
     "kernel: k\n"
     "params:\n"
     "  q: in f32[m, n]\n"
     "  o: out f32[m, n]\n"
     "compute: |\n"
     "  x[i,j] = q[i,j] - sum[l < n](q[i,l]) / n\n"
     "  a[i,l < m] = sum[j](x[i,j] * x[l,j])\n"
     "  top[i] = max[l < m](a[i,l])\n"
     "  o[i,j] = sum[l < m](exp(a[i,l] - top[i]) * x[l,j])\n",
     2, 1},
};

static struct ref_case rows_case(const char *text)
{
    struct ref_case c = case_of(text);
    const char *const dims[] = {"b", "h", "g", "m", "n", "d"};
    const uint64_t values[] = {B, HEADS, 2, M, N, D};
    for (int k = 0; k < 6; k++)
        case_dim(&c, dims[k], values[k]);
    for (size_t k = 0; k < c.spec->params.n; k++)
        if (c.spec->params.v[k].sym->mode != MODE_OUT)
            c.buffers[c.spec->params.v[k].sym->id] = numbers[k];
    c.opt.sums = (struct spec_sums){.depth = 20};
    return c;
}

/* Beside a bound of e: the reference adds doubles up in another order. */
static bool near(double a, double b, double e)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-12 * fabs(b) + 1e-6 * e;
}

/* The elements of output k that differ from those of whole: in value, or in the bound by more than
 * a hundredth. */
static int differing(struct ref_case *c, struct ref_case *whole, size_t k)
{
    const struct ref_output *o = case_out(c, k), *w = case_out(whole, k);
    int wrong = 0;
    for (uint64_t i = 0; i < o->n; i++) {
        const uint64_t at = o->where ? o->where[i] : i;
        if (o->i)
            wrong += o->i[i] != w->i[at] || o->e[i] != w->e[at];
        else
            wrong += !near(o->v[i], w->v[at], w->e[at]) ||
                     fabs(o->e[i] - w->e[at]) > 0.01 * w->e[at];
        wrong += o->where && i && o->where[i] <= o->where[i - 1];
    }
    return wrong;
}

static void same_values(const char *name, const char *text)
{
    struct ref_case whole = rows_case(text), c = rows_case(text);
    const uint64_t slabs[] = {1, 5000, 20000};
    int wrong = 0;
    whole.opt.slab = (uint64_t)1 << 40;
    case_run(&whole);
    for (int s = 0; s < 3; s++) {
        c.opt.slab = slabs[s];
        case_run(&c);
        for (size_t k = 0; k < ref_noutput(whole.ref); k++) {
            wrong += differing(&c, &whole, k);
            wrong += case_out(&c, k)->n != case_out(&whole, k)->n;
        }
    }
    eq_int(wrong, 0, "%s: rows have the values that the whole has", name);
    case_end(&c);
    case_end(&whole);
}

static void same_sample(void)
{
    struct ref_case whole = rows_case(specs[0].text), c = rows_case(specs[0].text);
    whole.opt.slab = (uint64_t)1 << 40;
    c.opt.slab = 1000;
    c.opt.sample = 20 * D;
    c.opt.seed = 3;
    case_run(&whole);
    case_run(&c);
    const struct ref_output *o = case_out(&c, 0), *lse = case_out(&c, 1);
    eq_int(differing(&c, &whole, 0) + differing(&c, &whole, 1), 0,
           "a sample of rows has the values that the whole has");
    ok(o->rows > 15 && o->rows <= 20 && o->n == o->rows * D && lse->n == lse->rows &&
           o->rows == lse->rows,
       "it has all columns of so many rows");
    ok(o->where[0] == 0 && o->where[o->n - 1] == o->count - 1, "the first and the last among them");
    c.opt.seed = 4;
    const uint64_t before = lse->where[3];
    case_run(&c);
    ok(case_out(&c, 1)->where[3] != before, "another seed has other rows");
    const double *part = ref_sampled_parts(c.a, &c.in, 20 * D);
    ok(!part, "of a small problem a sample is elements");
    case_end(&c);
    case_end(&whole);
}

/* The plan for slabs of 5000 bytes. */
static void planned(size_t s)
{
    struct ref_case c = rows_case(specs[s].text);
    c.in = (struct ref_input){.spec = c.spec, .dims = c.dims, .scalars = c.scalars};
    const struct plan *p = plan_new(c.a, &c.in, false, 5000);
    int kept = 0;
    for (size_t k = 0; p && k < p->n; k++)
        kept += p->eq[k].whole && !p->eq[k].wanted;
    eq_int(p ? (int)p->group.n : -1, specs[s].groups, "%s: so many groups", specs[s].name);
    eq_int(p ? kept : -1, specs[s].kept, "%s: so many whole intermediates", specs[s].name);
    case_end(&c);
}

int main(void)
{
    uint64_t seed = 7;
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < MOST; i++)
            numbers[k][i] = (float)next_random(&seed);
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        same_values(specs[s].name, specs[s].text);
        planned(s);
    }
    same_sample();
    return tap_done();
}
