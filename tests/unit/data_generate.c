#include <config.h>

#include "data/generate.h"
#include "data/philox.h"
#include "tap.h"

/* From the authors' own test vectors (Random123, kat_vectors: philox4x32 10). */
static void test_philox(void)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } v[] = {
        {{0}, {0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        uint32_t out[4];
        philox4x32(v[i].counter, v[i].key, out);
        ok(memcmp(out, v[i].out, sizeof out) == 0, "Philox4x32-10: published vector %zu", i);
    }
}

/* The quantiles are mpmath's: tests/data/generate_sums.py. */
static void test_quantiles(void)
{
    static const struct {
        uint32_t word;
        double x;
    } q[] = {
        {0x00000000, -6.3379577545537892525},    {0x00000001, -6.166429517819750247},
        {0x000003e8, -5.039851125968711549},     {0x01000000, -2.6600674585799718255},
        {0x10000000, -1.5341205434059567292},    {0x13333333, -1.4395314704450153116},
        {0x20000000, -1.1503493798104831582},    {0x7fffffff, -2.9180993729166226723e-10},
        {0x80000000, 2.9180993729166226723e-10}, {0xc0000000, 0.67448975056242505435},
        {0xf0000000, 1.5341205452991358956},     {0xffffffff, 6.3379577545537892525},
    };
    int odd = 0;
    for (size_t i = 0; i < sizeof q / sizeof *q; i++) {
        double x = normal_from_word(q[i].word);
        ok(fabs(x - q[i].x) <= 4e-15 * fabs(q[i].x), "the quantile of word 0x%08x is %.17g",
           q[i].word, x);
        odd += normal_from_word(~q[i].word) != -x;
    }
    eq_int(odd, 0, "the distribution is symmetric to the bit");
}

struct made {
    struct arena *arena;
    struct diags *d;
    struct buffer b;
    bool good;
    size_t used;
};

static struct made make(const char *name, const char *text, enum dtype t, uint64_t n)
{
    struct made m = {.arena = arena_new()};
    struct generator g;
    m.d = diags_new(m.arena);
    buffer_shape(&m.b, t, 1, &n);
    buffer_alloc(m.arena, &m.b, NULL);
    m.good = generator_parse(m.arena, name, text, strlen(text), &g, &m.used, m.d) &&
             generator_fill(&g, name, &m.b, m.d);
    return m;
}

static uint64_t sum_of(const struct buffer *b)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < b->bytes; i++)
        h = (h ^ ((unsigned char *)b->data)[i]) * UINT64_C(0x100000001b3);
    return h;
}

static bool same(const char *name1, const char *text1, const char *name2, const char *text2)
{
    struct made a = make(name1, text1, DT_F32, 1000), b = make(name2, text2, DT_F32, 1000);
    bool r = memcmp(a.b.data, b.b.data, a.b.bytes) == 0;
    arena_free(a.arena);
    arena_free(b.arena);
    return r;
}

/* Outputs are compared with files made elsewhere, so these bytes must never change. All but
 * @normal:1 as f64 (the last bit is ours) were also made independently:
 * tests/data/generate_sums.py. */
static void test_bytes(void)
{
    static const struct {
        const char *text;
        enum dtype type;
        uint64_t sum;
    } v[] = {
        {"@normal", DT_F32, 0xa4760cdfd681edb4},
        {"@normal:1", DT_F64, 0x617cafc54bbe4f48},
        {"@normal:1", DT_BF16, 0x6d238405dea5f399},
        {"@uniform:7", DT_F32, 0x32120539095c925d},
        {"@uniform:7", DT_F16, 0xe17416139f25d3c1},
        {"@uniform:7", DT_E4M3, 0x08818874ee07a704},
        {"@uniform", DT_BOOL, 0xe0eb46e4c027bcab},
        {"@randint:-8:8:3", DT_I4, 0x6f1f314987ee2da0},
        {"@randint:-100:100", DT_F16, 0xfec572328c7e2348},
        {"@randint:-0x7fffffffffffffff:0x7fffffffffffffff:5", DT_I64, 0xda8cc427da0dc295},
        {"@arange", DT_U8, 0x9ebd4ca7a79e5ddd},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct made m = make("x", v[i].text, v[i].type, 1000);
        if (!ok(m.good && sum_of(&m.b) == v[i].sum, "%s as %s has its bytes", v[i].text,
                dtype_name(v[i].type)))
            tap_note("0x%016" PRIx64, sum_of(&m.b));
        arena_free(m.arena);
    }
    ok(!same("x", "@normal", "y", "@normal"), "without a seed each name has its own numbers");
    ok(same("x", "@normal:3", "y", "@normal:3"), "with one the seed decides alone");
    ok(!same("x", "@normal:3", "x", "@normal:4"), "seeds differ");
}

/* A large tensor is filled by several threads: every element is still the function of the seed and
 * its index. */
static void test_threads(void)
{
    enum { N = 1500002 };
    struct made normal = make("x", "@normal:3", DT_F16, N),
                packed = make("x", "@randint:-8:8:3", DT_I4, N);
    struct made range = make("x", "@arange", DT_U32, N);
    int wrong_normal = 0, wrong_packed = 0, wrong_range = 0;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t counter[4] = {i / 4, 0, 0, 0}, key[2] = {3, 0}, out[4];
        philox4x32(counter, key, out);
        double want = dtype_round(DT_F16, normal_from_word(out[i % 4]));
        wrong_normal += dtype_get(DT_F16, normal.b.data, i) != want;
        wrong_packed += dtype_get_int(DT_I4, packed.b.data, i) != (int64_t)(out[i % 4] >> 28) - 8;
        wrong_range += dtype_get_int(DT_U32, range.b.data, i) != i;
    }
    eq_int(wrong_normal, 0, "@normal of many elements");
    eq_int(wrong_packed, 0, "@randint of many packed elements");
    eq_int(wrong_range, 0, "@arange of many elements");
    arena_free(normal.arena);
    arena_free(packed.arena);
    arena_free(range.arena);
}

static void test_values(void)
{
    struct made m = make("x", "@arange", DT_I8, 300);
    eq_int(dtype_get_int(DT_I8, m.b.data, 130), -126, "@arange wraps in integers");
    arena_free(m.arena);
    m = make("x", "@arange", DT_F16, 3000);
    eq_dbl(dtype_get(DT_F16, m.b.data, 2049), 2048, "@arange rounds in floats");
    arena_free(m.arena);
    m = make("x", "@const:-1.5", DT_BF16, 3);
    eq_dbl(dtype_get(DT_BF16, m.b.data, 2), -1.5, "@const");
    arena_free(m.arena);
    m = make("x", "@const:0xffffffffffffffff", DT_U64, 2);
    ok(m.good && (uint64_t)dtype_get_int(DT_U64, m.b.data, 1) == UINT64_MAX,
       "@const is exact in 64 bits");
    arena_free(m.arena);
    m = make("x", "@ones", DT_BOOL, 3);
    eq_int(dtype_get_int(DT_BOOL, m.b.data, 2), 1, "@ones");
    arena_free(m.arena);
    m = make("x", "@ones", DT_U4, 4);
    eq_int(((unsigned char *)m.b.data)[1], 0x11, "@ones, packed");
    arena_free(m.arena);
}

static void test_distributions(void)
{
    enum { N = 100000 };
    static const enum dtype floats[] = {DT_F64, DT_F32, DT_F16, DT_BF16, DT_E4M3, DT_E5M2};
    for (size_t i = 0; i < 6; i++) {
        struct made m = make("x", "@uniform", floats[i], N);
        struct buffer_summary s = buffer_summarise(&m.b);
        double p = ldexp(1, -(int)dtype_precision(floats[i]));
        ok(s.min >= 0 && s.max < 1 && fabs(s.mean - (1 - p) / 2) < 0.005,
           "@uniform of %s is in [0, 1)", dtype_name(floats[i]));
        arena_free(m.arena);
    }
    struct made m = make("x", "@normal", DT_F64, N);
    double sum = 0, sq = 0, cube = 0;
    for (size_t i = 0; i < N; i++) {
        double v = dtype_get(DT_F64, m.b.data, i);
        sum += v;
        sq += v * v;
        cube += v * v * v;
    }
    ok(fabs(sum / N) < 0.015 && fabs(sq / N - 1) < 0.02 && fabs(cube / N) < 0.05,
       "@normal has mean 0, variance 1 and no skew");
    arena_free(m.arena);
    m = make("x", "@randint:-3:4", DT_I32, N);
    int count[7] = {0}, outside = 0;
    for (size_t i = 0; i < N; i++) {
        int64_t v = dtype_get_int(DT_I32, m.b.data, i);
        if (v < -3 || v > 3)
            outside++;
        else
            count[v + 3]++;
    }
    int least = N, most = 0;
    for (int i = 0; i < 7; i++) {
        least = count[i] < least ? count[i] : least;
        most = count[i] > most ? count[i] : most;
    }
    ok(outside == 0 && least > N / 7 - 600 && most < N / 7 + 600,
       "@randint takes each number as often");
    arena_free(m.arena);
}

static const struct {
    const char *text;
    enum dtype type;
    const char *message;
} bad[] = {
    {"@normaal", DT_F32, "x: unknown generator '@normaal'"},
    {"@", DT_F32, "x: unknown generator '@'"},
    {"@:", DT_F32, "x: unknown generator '@'"},
    {"@const", DT_F32, "x: '@const' needs a value: '@const:1.5'"},
    {"@const:", DT_F32, "x: '@const:' needs a value: '@const:1.5'"},
    {"@const:a", DT_F32, "x: 'a' is not a number"},
    {"@const:1.5", DT_I32, "x: '1.5' is not a value of type i32"},
    {"@const:256", DT_U8, "x: '256' is not a value of type u8"},
    {"@const:-1", DT_U8, "x: '-1' is not a value of type u8"},
    {"@const:2", DT_BOOL, "x: '2' is not a value of type bool"},
    {"@randint", DT_I32, "x: '@randint' needs bounds: '@randint:LO:HI'"},
    {"@sorted:1", DT_I32, "x: '@sorted:1' needs bounds: '@sorted:LO:HI'"},
    {"@sorted:2:2", DT_I32, "x: '@sorted:2:2' has nothing to choose from; HI is exclusive"},
    {"@sorted:0:0x7fffffffffff", DT_I64,
     "x: '@sorted:0:0x7fffffffffff' has bounds more than 2^46 apart"},
    {"@sorted:0:300", DT_U8, "x: u8 cannot hold every value of '@sorted:0:300'"},
    {"@offsets", DT_I32, "x: '@offsets' needs how many they end at: '@offsets:TOTAL'"},
    {"@offsets:-1", DT_I32, "x: '@offsets:-1' ends below 0 or beyond 2^46"},
    {"@offsets:256", DT_U8, "x: u8 cannot hold every value of '@offsets:256'"},
    {"@randint:1", DT_I32, "x: '@randint:1' needs bounds: '@randint:LO:HI'"},
    {"@randint:1:b", DT_I32, "x: 'b' in '@randint:1:b' is not a 64-bit integer"},
    {"@randint:5:5", DT_I32, "x: '@randint:5:5' has nothing to choose from; HI is exclusive"},
    {"@randint:0:257", DT_U8, "x: u8 cannot hold every value of '@randint:0:257'"},
    {"@randint:-2049:0", DT_F16, "x: f16 cannot hold every value of '@randint:-2049:0'"},
    {"@randint:-1:1", DT_U32, "x: u32 cannot hold every value of '@randint:-1:1'"},
    {"@uniform", DT_I32, "x: '@uniform' makes fractions; for i32 use '@randint:LO:HI'"},
    {"@normal", DT_U8, "x: '@normal' makes fractions; for u8 use '@randint:LO:HI'"},
    {"@normal", DT_BOOL, "x: '@normal' makes fractions; for bool use '@randint:LO:HI'"},
};

/* Ascending, from bound to bound, the same however many threads make it. */
static void test_sorted(void)
{
    enum { M = 200003 };
    static const struct {
        const char *text;
        size_t n;
        int64_t first, last; /* bounds of all */
        bool pinned;         /* they are the first and the last */
    } v[] = {{"@sorted:-5:7", M, -5, 6, false},
             {"@sorted:-0x10000000000:0x10000000000:3", M, -0x10000000000, 0xffffffffff, false},
             {"@sorted:3:4", 9, 3, 3, true},
             {"@offsets:1000", M, 0, 1000, true},
             {"@offsets:1000000:4", 257, 0, 1000000, true},
             {"@offsets:7", 2, 0, 7, true},
             {"@offsets:0", 5, 0, 0, true}};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct made m = make("x", v[i].text, DT_I64, v[i].n);
        const int64_t *x = m.b.data;
        bool good = x[0] >= v[i].first && x[v[i].n - 1] <= v[i].last, varies = false;
        for (size_t k = 1; k < v[i].n; k++) {
            good &= x[k - 1] <= x[k];
            varies |= x[k] - x[k - 1] != x[1] - x[0];
        }
        good &= !v[i].pinned || (x[0] == v[i].first && x[v[i].n - 1] == v[i].last);
        ok(good && (varies || v[i].n < 10), "%s: ascending within its bounds", v[i].text);
        arena_free(m.arena);
    }
    struct made two = make("x", "@sorted:0:100", DT_I32, 1000);
    struct made other = make("y", "@sorted:0:100", DT_I32, 1000);
    ok(memcmp(two.b.data, other.b.data, two.b.bytes) != 0, "@sorted of another name is another");
    arena_free(two.arena);
    arena_free(other.arena);
}

static void test_bad(void)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct made m = make("x", bad[i].text, bad[i].type, 10);
        eq_str(m.good || m.d->nerror != 1 ? "" : m.d->list.v[0].text, bad[i].message, "refused: %s",
               bad[i].text);
        arena_free(m.arena);
    }
}

/* What belongs to the generator, and what is left for a destination. */
static void test_extent(void)
{
    static const struct {
        const char *text;
        size_t used;
    } v[] = {
        {"@zeros", 6},
        {"@zeros:y.npy", 6},
        {"@normal:2:/tmp/y.npy", 9},
        {"@normal:/tmp/y.npy", 7},
        {"@normal:./2", 7},
        {"@normal:2", 9},
        {"@const:1:2", 8},
        {"@randint:0:4:y.npy", 12},
        {"@randint:0:4:7:y.npy", 14},
        {"@arange:3", 7},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        struct made m = make("x", v[i].text, DT_F32, 4);
        eq_int(m.used, v[i].used, "the generator in '%s'", v[i].text);
        arena_free(m.arena);
    }
}

int main(void)
{
    test_philox();
    test_quantiles();
    test_bytes();
    test_threads();
    test_values();
    test_distributions();
    test_sorted();
    test_bad();
    test_extent();
    return tap_done();
}
