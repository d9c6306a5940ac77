#include <config.h>

#include "data/generate.h"

#include <inttypes.h>
#include <math.h>

#include "base/num.h"
#include "base/parallel.h"
#include "data/philox.h"

/* ---- parsing ---- */

static const char *const kinds[] = {
    [GEN_ZEROS] = "zeros",     [GEN_ONES] = "ones",
    [GEN_CONST] = "const",     [GEN_ARANGE] = "arange",
    [GEN_UNIFORM] = "uniform", [GEN_NORMAL] = "normal",
    [GEN_RANDINT] = "randint", [GEN_SORTED] = "sorted",
    [GEN_OFFSETS] = "offsets", NULL,
};

/* The range of what is sorted, so that its product with the sum of all gaps has 128 bits. */
static const int64_t SORTED_MOST = (int64_t)1 << 46;

struct fields {
    const char *text;
    size_t len, at; /* at: the ':' before the next field, or len */
};

/* The next field after a ':', without passing it; false at the end. */
static bool next_field(const struct fields *f, const char **s, size_t *n)
{
    if (f->at >= f->len)
        return false;
    *s = f->text + f->at + 1;
    const char *colon = memchr(*s, ':', f->len - f->at - 1);
    *n = colon ? (size_t)(colon - *s) : f->len - f->at - 1;
    return true;
}

static uint64_t stream_of(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return h;
}

static bool take_bound(struct fields *f, const char *name, const struct generator *g, int64_t *v,
                       struct diags *d)
{
    const char *s;
    size_t n;
    if (!next_field(f, &s, &n))
        return diag_error(d, SPAN_NONE, "%s: '%s' needs %s'@%s:%s'", name, g->text,
                          g->kind == GEN_OFFSETS ? "how many they end at: " : "bounds: ",
                          kinds[g->kind], g->kind == GEN_OFFSETS ? "TOTAL" : "LO:HI");
    if (num_int(s, n, INT64_MIN, INT64_MAX, v) != NUM_OK)
        return diag_error(d, SPAN_NONE, "%s: '%.*s' in '%s' is not a 64-bit integer", name, (int)n,
                          s, g->text);
    f->at += n + 1;
    return true;
}

/* Whether a generator makes whole numbers between bounds. */
static bool is_whole(enum generator_kind kind)
{
    return kind == GEN_RANDINT || kind == GEN_SORTED || kind == GEN_OFFSETS;
}

static bool take_bounds(struct fields *f, const char *name, struct generator *g, struct diags *d)
{
    const bool offsets = g->kind == GEN_OFFSETS;
    if ((!offsets && !take_bound(f, name, g, &g->lo, d)) || !take_bound(f, name, g, &g->hi, d))
        return false;
    if (offsets && (g->hi < 0 || g->hi >= SORTED_MOST))
        return diag_error(d, SPAN_NONE, "%s: '%s' ends below 0 or beyond 2^46", name, g->text);
    g->hi += offsets; /* the last is the total itself */
    if (g->lo >= g->hi)
        return diag_error(d, SPAN_NONE, "%s: '%s' has nothing to choose from; HI is exclusive",
                          name, g->text);
    if (g->kind == GEN_SORTED && (uint64_t)g->hi - (uint64_t)g->lo > SORTED_MOST)
        return diag_error(d, SPAN_NONE, "%s: '%s' has bounds more than 2^46 apart", name, g->text);
    return true;
}

static bool take_arguments(struct arena *a, struct fields *f, const char *name, struct generator *g,
                           struct diags *d)
{
    const char *s;
    size_t n;
    if (g->kind == GEN_CONST) {
        if (!next_field(f, &s, &n) || n == 0)
            return diag_error(d, SPAN_NONE, "%s: '%s' needs a value: '@const:1.5'", name, g->text);
        g->value = arena_strndup(a, s, n);
        f->at += n + 1;
    }
    if (is_whole(g->kind) && !take_bounds(f, name, g, d))
        return false;
    bool random = g->kind == GEN_UNIFORM || g->kind == GEN_NORMAL || is_whole(g->kind);
    g->stream = stream_of(name);
    if (!random || !next_field(f, &s, &n))
        return true;
    switch (num_uint(s, n, UINT64_MAX, &g->seed)) {
    case NUM_OK:
        g->stream = 0;
        f->at += n + 1;
        return true;
    case NUM_RANGE:
        return diag_error(d, SPAN_NONE,
                          "%s: the seed %.*s in '%s' is not between 0 and 18446744073709551615",
                          name, (int)n, s, g->text);
    case NUM_SYNTAX: return true; /* it may be where an inout goes */
    }
    return true;
}

bool generator_parse(struct arena *a, const char *name, const char *text, size_t len,
                     struct generator *g, size_t *used, struct diags *d)
{
    const char *colon = memchr(text, ':', len);
    struct fields f = {text, len, colon ? (size_t)(colon - text) : len};
    size_t word = f.at - 1; /* without the '@' */
    int k = 0;
    *g = (struct generator){.text = arena_strndup(a, text, len)};
    while (kinds[k] && !(strlen(kinds[k]) == word && memcmp(kinds[k], text + 1, word) == 0))
        k++;
    if (!kinds[k]) {
        const char *near = diag_nearest(text + 1, word, kinds);
        diag_error(d, SPAN_NONE, "%s: unknown generator '%.*s'", name, (int)f.at, text);
        if (near)
            diag_note(d, SPAN_NONE, "did you mean '@%s'?", near);
        else
            diag_note(d, SPAN_NONE,
                      "there are @zeros @ones @arange @uniform[:SEED] @normal[:SEED] @const:V "
                      "@randint:LO:HI[:SEED] @sorted:LO:HI[:SEED] @offsets:TOTAL[:SEED]; a file "
                      "whose name begins with '@' is './@...'");
        return false;
    }
    g->kind = (enum generator_kind)k;
    if (!take_arguments(a, &f, name, g, d))
        return false;
    *used = f.at < len ? f.at : len;
    return true;
}

/* ---- the normal distribution ---- */

/* ln x for 0 < x < 1, within 2 ulp: x = m 2^e with m in [sqrt(1/2), sqrt 2), ln m = 2 artanh((m -
 * 1) / (m + 1)). */
static double log_of(double x)
{
    uint64_t u;
    double m, sum = 0;
    memcpy(&u, &x, 8);
    int e = (int)(u >> 52) - 1023;
    u = (u & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
    memcpy(&m, &u, 8);
    if (m > 0x1.6a09e667f3bcdp0) {
        m *= 0.5;
        e++;
    }
    double f = (m - 1) / (m + 1), s = f * f;
    for (int k = 23; k >= 3; k -= 2) /* the next term is below 2^-60 */
        sum = sum * s + 1.0 / k;
    /* ln 2 in two parts, the first exact times e */
    return (double)e * 0x1.62e42fefap-1 +
           ((double)e * 0x1.cf79abc9e3b39p-40 + 2 * (f + f * s * sum));
}

static double ratio(const double num[8], const double den[8], double r)
{
    double n = num[7], d = den[7];
    for (int i = 6; i >= 0; i--) {
        n = n * r + num[i];
        d = d * r + den[i];
    }
    return n / d;
}

double normal_from_word(uint32_t word)
{
    static const double a[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                               1.9715909503065514427e3, 1.3731693765509461125e4,
                               4.5921953931549871457e4, 6.7265770927008700853e4,
                               3.3430575583588128105e4, 2.5090809287301226727e3};
    static const double b[] = {1,
                               4.2313330701600911252e1,
                               6.8718700749205790830e2,
                               5.3941960214247511077e3,
                               2.1213794301586595867e4,
                               3.9307895800092710610e4,
                               2.8729085735721942674e4,
                               5.2264952788528545610e3};
    static const double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                               5.76949722146069140550e0,  3.64784832476320460504e0,
                               1.27045825245236838258e0,  2.41780725177450611770e-1,
                               2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[] = {1,
                               2.05319162663775882187e0,
                               1.67638483018380384940e0,
                               6.89767334985100004550e-1,
                               1.48103976427480074590e-1,
                               1.51986665636164571966e-2,
                               5.47593808499534494600e-4,
                               1.05075007164441684324e-9};
    double p = ((double)word + 0.5) * 0x1p-32, q = p - 0.5;
    if (fabs(q) <= 0.425)
        return q * ratio(a, b, 0.180625 - q * q);
    double r = sqrt(-log_of(q < 0 ? p : 1 - p));
    double v =
        ratio(c, d, r - 1.6); /* r < 4.8: the algorithm's third case, r > 5, cannot come up */
    return q < 0 ? -v : v;
}

/* ---- filling ---- */

/* Element i's random word. */
struct words {
    uint32_t key[2], counter[4], out[4];
    uint64_t block; /* the block that out holds */
};

static struct words words_of(const struct generator *g)
{
    return (struct words){.key = {(uint32_t)g->seed, (uint32_t)(g->seed >> 32)},
                          .counter = {[2] = (uint32_t)g->stream, [3] = (uint32_t)(g->stream >> 32)},
                          .block = UINT64_MAX};
}

static uint32_t word(struct words *w, uint64_t i)
{
    if (w->block != i / 4) {
        w->block = i / 4;
        w->counter[0] = (uint32_t)w->block;
        w->counter[1] = (uint32_t)(w->block >> 32);
        philox4x32(w->counter, w->key, w->out);
    }
    return w->out[i % 4];
}

/* A tensor being filled, by several threads. */
struct filling {
    const struct generator *g;
    struct buffer *b;
    double f; /* GEN_CONST */
    int64_t i;
};

/* The high part of a random word times the range: its bias is below range / 2^32 (2^64). */
static int64_t random_integer(struct words *w, const struct generator *g, uint64_t i)
{
    uint64_t range = (uint64_t)g->hi - (uint64_t)g->lo, v;
    if (range <= (uint64_t)1 << 32) {
        v = (uint64_t)word(w, i) * range >> 32;
    } else {
        uint64_t low = word(w, 2 * i), both = (uint64_t)word(w, 2 * i + 1) << 32 | low;
        v = (uint64_t)((unsigned __int128)both * range >> 64);
    }
    return (int64_t)((uint64_t)g->lo + v);
}

static void fill_integers(const struct filling *f, uint64_t begin, uint64_t end)
{
    struct words w = words_of(f->g);
    enum dtype t = f->b->type;
    for (uint64_t i = begin; i < end; i++) {
        int64_t v = f->i;
        switch (f->g->kind) {
        case GEN_ONES: v = 1; break;
        case GEN_ARANGE: v = (int64_t)i; break;
        case GEN_UNIFORM: v = word(&w, i) >> 31; break;
        case GEN_RANDINT: v = random_integer(&w, f->g, i); break;
        default: break;
        }
        dtype_set_int(t, f->b->data, i, v);
    }
}

static void fill_floats(const struct filling *f, uint64_t begin, uint64_t end)
{
    enum { BATCH = 256 };
    struct words w = words_of(f->g);
    unsigned p = dtype_precision(f->b->type);
    p = p > 32 ? 32 : p;
    double unit = 1.0 / (double)(UINT64_C(1) << p), v[BATCH];
    for (uint64_t at = begin; at < end; at += BATCH) {
        size_t n = end - at < BATCH ? (size_t)(end - at) : BATCH;
        for (size_t k = 0; k < n; k++)
            v[k] = f->g->kind == GEN_NORMAL    ? normal_from_word(word(&w, at + k))
                   : f->g->kind == GEN_UNIFORM ? (double)(word(&w, at + k) >> (32 - p)) * unit
                                               : f->f;
        dtype_store(f->b->type, f->b->data, at, n, v);
    }
}

/* How far what is sorted is from one element to the next: squares, so that rows are short and long,
 * and one in eight is next to nothing. */
static uint64_t gap(struct words *w, uint64_t i)
{
    const uint64_t v = word(w, i), high = v >> 16;
    return v % 8 ? high * high + 1 : 1;
}

/* Sums of gaps, scaled to the range. Of offsets the first is 0 and the last the total, without gaps
 * beside them. */
static void fill_sorted(const struct filling *f)
{
    const struct generator *g = f->g;
    const uint64_t n = f->b->count, pinned = g->kind == GEN_OFFSETS;
    const uint64_t range = (uint64_t)g->hi - (uint64_t)g->lo - pinned;
    unsigned __int128 all = 0, sum = 0;
    struct words w = words_of(g);
    for (uint64_t i = pinned; i + pinned < n + 1; i++)
        all += gap(&w, i);
    for (uint64_t i = 0; i < n; i++) {
        sum += pinned && i == 0 ? 0 : gap(&w, i);
        const uint64_t v = all ? (uint64_t)(sum * range / all) : 0;
        dtype_set_int(f->b->type, f->b->data, i, (int64_t)((uint64_t)g->lo + v));
    }
}

static void fill_piece(void *ctx, uint64_t begin, uint64_t end)
{
    const struct filling *f = ctx;
    enum generator_kind k = f->g->kind;
    bool fractions = k == GEN_NORMAL || k == GEN_UNIFORM || k == GEN_CONST;
    if (fractions && dtype_is_float(f->b->type))
        fill_floats(f, begin, end);
    else
        fill_integers(f, begin, end);
}

/* The value of @const, in the tensor's type. */
static bool parse_const(struct filling *f, const char *name, struct diags *d)
{
    const char *s = f->g->value;
    enum dtype t = f->b->type;
    size_t len = strlen(s);
    uint64_t u = 0;
    if (dtype_is_float(t)) {
        if (num_double(s, len, &f->f) != NUM_OK)
            return diag_error(d, SPAN_NONE, "%s: '%s' is not a number", name, s);
        return true;
    }
    enum num_status status = dtype_class(t) == DTC_I
                                 ? num_int(s, len, dtype_imin(t), (int64_t)dtype_imax(t), &f->i)
                                 : num_uint(s, len, dtype_imax(t), &u);
    if (status != NUM_OK)
        return diag_error(d, SPAN_NONE, "%s: '%s' is not a value of type %s", name, s,
                          dtype_name(t));
    if (dtype_class(t) != DTC_I)
        f->i = (int64_t)u;
    return true;
}

/* Whether every whole number in lo..last is a value of the type. */
static bool holds(enum dtype t, int64_t lo, int64_t last)
{
    if (dtype_is_float(t)) {
        double limit = ldexp(1, (int)dtype_precision(t));
        limit = limit < dtype_max(t) ? limit : dtype_max(t);
        return (double)lo >= -limit && (double)last <= limit;
    }
    if (dtype_class(t) == DTC_I)
        return lo >= dtype_imin(t) && last <= (int64_t)dtype_imax(t);
    return lo >= 0 && (uint64_t)last <= dtype_imax(t);
}

static bool suits(struct filling *f, const char *name, struct diags *d)
{
    const struct generator *g = f->g;
    enum dtype t = f->b->type;
    bool fractions = g->kind == GEN_NORMAL || g->kind == GEN_UNIFORM;
    if (g->kind == GEN_CONST)
        return parse_const(f, name, d);
    if (is_whole(g->kind) && !holds(t, g->lo, g->hi - 1))
        return diag_error(d, SPAN_NONE, "%s: %s cannot hold every value of '%s'", name,
                          dtype_name(t), g->text);
    if (fractions && !dtype_is_float(t) && !(t == DT_BOOL && g->kind == GEN_UNIFORM))
        return diag_error(d, SPAN_NONE, "%s: '@%s' makes fractions; for %s use '@randint:LO:HI'",
                          name, kinds[g->kind], dtype_name(t));
    return true;
}

bool generator_fill(const struct generator *g, const char *name, struct buffer *b, struct diags *d)
{
    enum { GRAIN = 1 << 16 }; /* even, so that no byte of packed elements is two threads' */
    struct filling f = {.g = g, .b = b};
    if (!suits(&f, name, d))
        return false;
    if (g->kind == GEN_ZEROS)
        memset(b->data, 0, b->bytes);
    else if (g->kind == GEN_SORTED || g->kind == GEN_OFFSETS)
        fill_sorted(&f);
    else
        parallel_for(b->count, GRAIN, fill_piece, &f);
    return true;
}
