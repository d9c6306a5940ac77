/* Every form of wgmma.mma_async on chosen inputs.
 *
 *     sim_wgmma                                   the simulator against the model of tensor cores
 *                                                 that was published for MMA-Sim (arXiv
 *                                                 2511.10909), written here element by element, as
 *                                                 TAP
 *     sim_wgmma --device=cuda [--rounds=N] [TEXT...]
 *                                                 a GPU against the simulator, N times all kinds of
 *                                                 inputs, of the forms whose names hold a TEXT
 *     sim_wgmma --print [TEXT...]                 the PTX
 *
 * Exit status: 0 all the same, 1 some not, 2 usage, 77 no such device.
 */
#include "sim/sim.h"
#include "wgmma.h"

#include <inttypes.h>
#include <math.h>

/* ---- forms ----------------------------------------------------------------------------------- */

static struct wg_form forms[2048];
static size_t nform;

static bool has_shape(const struct number *t, unsigned n)
{
    return t->exponent || n <= 32 || n % 16 == 0; /* of integers not all */
}

/* n 0: one that differs from form to form */
static void add(const char *d, const char *a, const char *b, unsigned n, bool registers,
                unsigned trans)
{
    static unsigned turn;
    struct wg_form f = wg_form(d, a, b, n ? n : 8);
    for (; !n || !has_shape(f.a, n); turn++)
        n = turn * 11 % 32 * 8 + 8;
    const unsigned sign = f.a->exponent ? (unsigned)nform / 3 % 4 : 0;
    f = wg_form(d, a, b, n);
    f.a_registers = registers;
    f.a_trans = trans & 1;
    f.b_trans = trans & 2;
    f.a_minus = sign & 1;
    f.b_minus = sign & 2;
    f.saturate = !f.a->exponent && nform % 2;
    wg_name(&f);
    forms[nform++] = f;
}

/* All shapes of one type each way, one shape of everything. */
static void list_forms(void)
{
    static const char *const wide[][2] = {{"f32", "f16"}, {"f16", "f16"}, {"f32", "bf16"}};
    static const char *const fp8[] = {"e4m3", "e5m2"}, *const int8[] = {"s8", "u8"};
    for (unsigned n = 8; n <= WG_N_MOST; n += 8)
        add("f32", "f16", "f16", n, n % 16 == 0, n % 16 == 0 ? 0 : n / 8 % 4);
    for (unsigned i = 0; i < 3; i++)
        for (unsigned trans = 0; trans < 4; trans++) {
            add(wide[i][0], wide[i][1], wide[i][1], 0, false, trans);
            if (!(trans & 1))
                add(wide[i][0], wide[i][1], wide[i][1], 0, true, trans);
        }
    for (unsigned registers = 0; registers < 2; registers++) {
        add("f32", "tf32", "tf32", 0, registers, 0);
        for (unsigned i = 0; i < 8; i++) {
            add(i & 4 ? "f16" : "f32", fp8[i & 1], fp8[i >> 1 & 1], 0, registers, 0);
            add("s32", int8[i & 1], int8[i >> 1 & 1], 0, registers, 0);
        }
    }
}

/* ---- inputs ---------------------------------------------------------------------------------- */

struct matrices {
    uint64_t a[WG_ROWS][WG_K_MOST], b[WG_K_MOST][WG_N_MOST], c[WG_ROWS][WG_N_MOST];
    bool adds;
};

static void fill(const struct wg_form *f, enum kind kind, struct matrices *x)
{
    for (unsigned i = 0; i < WG_ROWS; i++)
        for (unsigned k = 0; k < f->k; k++)
            x->a[i][k] = any(f->a, kind, false);
    for (unsigned k = 0; k < f->k; k++)
        for (unsigned j = 0; j < f->n; j++)
            x->b[k][j] = any(f->b, kind, false);
    for (unsigned i = 0; i < WG_ROWS; i++)
        for (unsigned j = 0; j < f->n; j++)
            x->c[i][j] = any(f->d, kind, true);
    for (unsigned k = 0; f->a->exponent && kind == CANCEL && k + 3 < f->k; k += 2) {
        for (unsigned i = 0; i < WG_ROWS; i++)
            x->a[i][k + 1] = x->a[i][k];
        for (unsigned j = 0; j < f->n; j++)
            x->b[k + 1][j] = x->b[k][j] ^ sign_of(f->b);
    }
    if (!f->a->exponent || kind != STEPS)
        return;
    const unsigned p = (unsigned)between(0, (int)f->k - 1), q = (p + 1) % f->k;
    for (unsigned i = 0; i < WG_ROWS; i++) {
        x->a[i][p] = some(f->a, 0, 0);
        x->a[i][q] = some(f->a, -(int)(i % 32), -(int)(i % 32));
    }
    for (unsigned j = 0; j < f->n; j++) {
        x->b[p][j] = some(f->b, 0, 0);
        x->b[q][j] = some(f->b, -(int)(j % 16), -(int)(j % 16));
    }
}

static enum kind kind_of(const struct wg_form *f, uint32_t n)
{
    return f->a->exponent ? n % KINDS : n % 2 ? HUGE : EVEN;
}

/* The numbers of a case; the same each time. */
static void make_case(const struct wg_form *f, uint32_t n, struct matrices *x)
{
    state = n;
    for (const char *p = f->name; *p; p++)
        state = state * 1099511628211u + (unsigned char)*p;
    fill(f, kind_of(f, n), x);
    x->adds = !one_in(5);
}

static void put_case(const struct wg_form *f, uint32_t n, const struct matrices *x,
                     struct wg_cases *to)
{
    const uint32_t mix = n * 7 + f->n / 8;
    const unsigned a_span = mix % 4 ? 16u << mix % 4 : 0;
    const unsigned b_span = mix / 4 % 4 ? 16u << mix / 4 % 4 : 0;
    const struct wg_place pa = wg_place(a_span, f->a_trans, 0, WG_ROWS);
    const struct wg_place pb = wg_place(b_span, f->b_trans, 12288, f->n);
    for (unsigned i = 0; i < WG_ROWS; i++)
        for (unsigned k = 0; k < f->k; k++)
            if (f->a_registers)
                wg_put_a(f, to->a + (size_t)n * WG_THREADS * 16, i, k, x->a[i][k]);
            else
                wg_put(to->image + (size_t)n * WG_IMAGE, &pa, f->a, i, k, x->a[i][k]);
    for (unsigned k = 0; k < f->k; k++)
        for (unsigned j = 0; j < f->n; j++)
            wg_put(to->image + (size_t)n * WG_IMAGE, &pb, f->b, j, k, x->b[k][j]);
    for (unsigned i = 0; i < WG_ROWS; i++)
        for (unsigned j = 0; j < f->n; j++)
            memcpy(to->c + n * to->nd + wg_at_d(f, i, j), &x->c[i][j], f->d->bits / 8);
    to->which[3 * n] = wg_descriptor(&pa);
    to->which[3 * n + 1] = wg_descriptor(&pb);
    to->which[3 * n + 2] = x->adds;
}

static struct wg_cases inputs(struct arena *arena, const struct wg_form *f, uint32_t rounds)
{
    static struct matrices x;
    struct wg_cases to = wg_cases(arena, f, rounds * (f->a->exponent ? KINDS : 2));
    for (uint32_t n = 0; n < to.n; n++) {
        make_case(f, n, &x);
        put_case(f, n, &x, &to);
    }
    return to;
}

/* ---- the model ------------------------------------------------------------------------------- */

/* An element as a number; of tf32 its upper 19 bits count. */
static double value(const struct number *t, uint64_t v)
{
    if (strcmp(t->name, "tf32") == 0)
        v &= 0xffffe000;
    const uint64_t f = v & (((uint64_t)1 << t->mantissa) - 1);
    const int e = (int)(v >> t->mantissa & ((1u << t->exponent) - 1)), bias = bias_of(t);
    const double sign = v & sign_of(t) ? -1 : 1;
    if (is_special(t, v))
        return f ? NAN : sign * INFINITY;
    const double m = (double)f + (e ? (double)((uint64_t)1 << t->mantissa) : 0);
    return sign * ldexp(m, (e ? e : 1) - bias - (int)t->mantissa);
}

/* The exponent of a number that is not 0, of the type's smallest one if it is subnormal. */
static int exponent(const struct number *t, double x)
{
    int e;
    frexp(x, &e);
    return e - 1 < 1 - bias_of(t) ? 1 - bias_of(t) : e - 1;
}

struct term {
    double v;
    int e;
};

/* All are cut off at so many bits behind the point of the largest one's exponent, and added. */
static double cut_sum(const struct term *t, unsigned n, int bits)
{
    int top = -99999;
    double sum = 0;
    for (unsigned i = 0; i < n; i++)
        if (t[i].v != 0 && t[i].e > top)
            top = t[i].e;
    if (top == -99999)
        return 0;
    for (unsigned i = 0; i < n; i++)
        sum += trunc(ldexp(t[i].v, bits - top));
    return ldexp(sum, top - bits);
}

/* Toward zero, or for 10 bits to nearest even; in the type's bits. */
static uint32_t rounded(const struct number *t, double x, int mantissa)
{
    const bool half = t->mantissa == 10;
    if (isnan(x))
        return half ? 0x7fff : 0x7fffffff;
    const uint32_t sign = x < 0 ? (uint32_t)sign_of(t) : 0;
    const uint32_t inf = (uint32_t)(((uint64_t)1 << t->exponent) - 1) << t->mantissa;
    if (x == 0 || isinf(x))
        return x == 0 ? 0 : sign | inf;
    int e = exponent(t, x);
    const double scaled = ldexp(fabs(x), mantissa - e);
    double m = half ? nearbyint(scaled) : trunc(scaled);
    if (m == 0)
        return 0;
    if (m >= ldexp(2, mantissa)) {
        m /= 2;
        e++;
    }
    if (e > bias_of(t))
        return sign | inf;
    const uint32_t f = (uint32_t)ldexp(m, (int)t->mantissa - mantissa), one = 1u << t->mantissa;
    return sign | (f < one ? f : f - one + ((uint32_t)(e + bias_of(t)) << t->mantissa));
}

static uint32_t model_float(const struct wg_form *f, const struct matrices *x, unsigned i,
                            unsigned j)
{
    const int bits = f->a->bits == 8 ? 13 : 25;
    struct term t[WG_K_MOST + 1];
    const double c = x->adds ? value(f->d, x->c[i][j]) : 0;
    double plain = c;
    for (unsigned k = 0; k < f->k; k++) {
        const double a = value(f->a, x->a[i][k]), b = value(f->b, x->b[k][j]);
        const double p = a * b * (f->a_minus != f->b_minus ? -1 : 1);
        plain += p;
        t[k].v = p;
        t[k].e = p != 0 && isfinite(p) ? exponent(f->a, a) + exponent(f->b, b) : 0;
    }
    if (!isfinite(plain))
        return rounded(f->d, plain, 1);
    t[f->k] = (struct term){c, c != 0 ? exponent(f->d, c) : 0};
    return rounded(f->d, cut_sum(t, f->k + 1, bits), f->d->bits == 16 ? 10 : bits == 13 ? 13 : 23);
}

static uint32_t model_int(const struct wg_form *f, const struct matrices *x, unsigned i, unsigned j)
{
    int64_t sum = 0;
    for (unsigned k = 0; k < f->k; k++) {
        const int64_t a = (f->a->name[0] == 's') ? (int8_t)x->a[i][k] : (int64_t)x->a[i][k];
        const int64_t b = (f->b->name[0] == 's') ? (int8_t)x->b[k][j] : (int64_t)x->b[k][j];
        sum += a * b;
    }
    if (x->adds)
        sum += (int32_t)x->c[i][j];
    if (f->saturate && sum != (int32_t)sum)
        sum = sum < 0 ? INT32_MIN : INT32_MAX;
    return (uint32_t)sum;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static bool wanted(const struct wg_form *f, int n, char **names)
{
    for (int i = 0; i < n; i++)
        if (strstr(f->name, names[i]))
            return true;
    return n == 0;
}

static uint64_t element_of(const struct wg_form *f, const unsigned char *d, unsigned i, unsigned j)
{
    uint64_t v = 0;
    memcpy(&v, d + wg_at_d(f, i, j), f->d->bits / 8);
    return v;
}

static void note(const struct wg_form *f, uint32_t n, unsigned i, unsigned j, uint64_t got,
                 uint64_t want)
{
    tap_note("%s: case %u (%s), row %u, column %u: %" PRIx64 ", not %" PRIx64, f->name, n,
             kind_text[f->a->exponent ? kind_of(f, n) : EVEN], i, j, got, want);
}

static unsigned against_model(const struct wg_form *f, const unsigned char *got, uint32_t cases,
                              size_t nd)
{
    static struct matrices x;
    unsigned wrong = 0;
    for (uint32_t n = 0; n < cases; n++) {
        make_case(f, n, &x);
        /* rows of all warps, and in the end all elements of the fragments */
        for (unsigned i = n % 7; i < WG_ROWS; i += 7)
            for (unsigned j = 0; j < f->n; j++) {
                const uint64_t v = element_of(f, got + n * nd, i, j);
                const uint64_t want = f->a->exponent ? model_float(f, &x, i, j)
                                                     : model_int(f, &x, i, j);
                if (v != want && wrong++ < 4)
                    note(f, n, i, j, v, want);
            }
    }
    return wrong;
}

static unsigned against_other(const struct wg_form *f, const unsigned char *got,
                              const unsigned char *want, uint32_t cases, size_t nd)
{
    unsigned wrong = 0, of[KINDS] = {0};
    for (uint32_t n = 0; n < cases; n++)
        for (unsigned i = 0; i < WG_ROWS; i++)
            for (unsigned j = 0; j < f->n; j++) {
                const uint64_t g = element_of(f, got + n * nd, i, j);
                const uint64_t v = element_of(f, want + n * nd, i, j);
                if (g == v)
                    continue;
                wrong++;
                if (of[n % KINDS]++ < 2)
                    note(f, n, i, j, g, v);
            }
    return wrong;
}

static void show(struct arena *arena, const struct diags *d)
{
    struct buf b = buf_in(arena);
    diags_format(d, "sim_wgmma", false, &b);
    tap_note("%s", buf_text(&b));
}

static int compare(const struct device_ops *ops, uint32_t rounds, int n, char **names)
{
    struct arena *whole = arena_new();
    struct device *dev = wg_open(whole, ops, diags_new(whole)),
                  *sim = wg_open(whole, &sim_device, diags_new(whole));
    unsigned wrong = 0, missing = 0;
    if (!dev || !sim) {
        fputs("sim_wgmma: no such device\n", stderr);
        return 77;
    }
    for (size_t i = 0; i < nform; i++) {
        const struct wg_form *f = &forms[i];
        if (!wanted(f, n, names))
            continue;
        struct arena *arena = arena_new();
        struct diags *d = diags_new(arena);
        const struct wg_cases x = inputs(arena, f, rounds);
        const unsigned char *want = wg_run(arena, &sim_device, sim, f, &x, d),
                            *got = wg_run(arena, ops, dev, f, &x, d);
        if (!want || !got) {
            show(arena, d);
            missing++;
        } else {
            const unsigned bad = against_other(f, want, got, x.n, x.nd);
            printf("%-60s %u of %u differ\n", f->name, bad, x.n * WG_ROWS * f->n);
            wrong += bad != 0;
        }
        fflush(stdout);
        arena_free(arena);
    }
    printf("%u forms differ, %u not run\n", wrong, missing);
    ops->close(dev);
    sim_device.close(sim);
    arena_free(whole);
    return wrong || missing;
}

static void check_all(bool baseline)
{
    struct arena *whole = arena_new();
    struct device *sim = wg_open(whole, &sim_device, diags_new(whole));
    if (!sim)
        abort();
    if (baseline)
        sim_use_baseline(sim);
    for (size_t i = 0; i < nform; i += baseline ? 3 : 1) {
        struct arena *arena = arena_new();
        struct diags *d = diags_new(arena);
        const struct wg_cases x = inputs(arena, &forms[i], 1);
        const unsigned char *got = wg_run(arena, &sim_device, sim, &forms[i], &x, d);
        if (!got)
            show(arena, d);
        ok(got && !against_model(&forms[i], got, x.n, x.nd), "%s%s", forms[i].name,
           baseline ? ", without AVX2" : "");
        arena_free(arena);
    }
    sim_device.close(sim);
    arena_free(whole);
}

static int print_all(int n, char **names)
{
    struct arena *arena = arena_new();
    for (size_t i = 0; i < nform; i++)
        if (wanted(&forms[i], n, names))
            fputs(wg_text(arena, &forms[i]), stdout);
    arena_free(arena);
    return 0;
}

int main(int argc, char **argv)
{
    const char *device = NULL;
    uint32_t rounds = 4;
    bool print = false;
    int i = 1;
    list_forms();
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strncmp(argv[i], "--device=", 9) == 0)
            device = argv[i] + 9;
        else if (strcmp(argv[i], "--print") == 0)
            print = true;
        else if (strncmp(argv[i], "--rounds=", 9) == 0 && atoi(argv[i] + 9) > 0)
            rounds = (uint32_t)atoi(argv[i] + 9);
        else
            return 2;
    }
    if (print)
        return print_all(argc - i, argv + i);
    if (device)
        return compare(strcmp(device, "cpu") == 0 ? &sim_device : &cuda_device, rounds, argc - i,
                       argv + i);
    check_all(false);
    check_all(true);
    return tap_done();
}
