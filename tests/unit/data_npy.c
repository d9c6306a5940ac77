#include <config.h>

#include "data/load.h"
#include "data/npy.h"
#include "tap.h"

static const char *fixture(struct arena *a, const char *name)
{
    const char *src = getenv("KAIO_SRCDIR");
    return arena_printf(a, "%s/tests/data/npy/%s.npy", src ? src : ".", name);
}

static const struct good {
    const char *name;
    enum dtype type;
    const char *text; /* in the file's words */
} good[] = {
    {"good-float64", DT_F64, "float64[2, 4]"},
    {"good-float32", DT_F32, "float32[2, 4]"},
    {"good-float16", DT_F16, "float16[2, 4]"},
    {"good-int64", DT_I64, "int64[2, 4]"},
    {"good-int32", DT_I32, "int32[2, 4]"},
    {"good-int16", DT_I16, "int16[2, 4]"},
    {"good-int8", DT_I8, "int8[2, 4]"},
    {"good-uint64", DT_U64, "uint64[2, 4]"},
    {"good-uint32", DT_U32, "uint32[2, 4]"},
    {"good-uint16", DT_U16, "uint16[2, 4]"},
    {"good-uint8", DT_U8, "uint8[2, 4]"},
    {"good-bool", DT_BOOL, "bool[2, 4]"},
    {"good-bfloat16", DT_BF16, "V2[2, 4]"},
    {"good-bfloat16-as-u2", DT_BF16, "uint16[2, 4]"},
    {"good-float8_e4m3fn", DT_E4M3, "V1[2, 4]"},
    {"good-float8_e5m2", DT_E5M2, "float8_e5m2[2, 4]"},
    {"good-int4", DT_I4, "V1[2, 4]"},
    {"good-int4-packed", DT_I4, "uint8[2, 2]"},
    {"good-v2", DT_F32, "float32[2, 4]"},
    {"good-v3", DT_F32, "float32[2, 4]"},
    {"good-python2", DT_F32, "float32[2, 4]"},
};

static void test_good(const struct good *g)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct loaded l;
    struct buffer b;
    struct buf text = buf_in(a);
    if (ok(load_file(a, fixture(a, g->name), &l, d) && loaded_as(a, &l, g->type, &b), "%s is read",
           g->name)) {
        int wrong = 0;
        for (int i = 0; i < 8; i++) {
            double want = g->type == DT_BOOL ? i % 2 : dtype_class(g->type) == DTC_U ? i : i - 3;
            wrong += dtype_get(g->type, b.data, (size_t)i) != want;
        }
        eq_int(wrong, 0, "%s has its values", g->name);
        loaded_print(&l, &text);
        eq_str(buf_text(&text), g->text, "%s says its type", g->name);
        eq_int(b.rank == 2 && b.dim[0] == 2 && b.dim[1] == 4, 1, "%s has its shape", g->name);
    }
    arena_free(a);
}

/* What a file holds is taken as nothing else. */
static void test_strict(void)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    static const struct {
        const char *name;
        enum dtype type;
    } wrong[] = {
        {"good-float64", DT_F32},  {"good-float32", DT_I32},  {"good-uint32", DT_I32},
        {"good-int32", DT_U32},    {"good-uint16", DT_F16},   {"good-float16", DT_BF16},
        {"good-bool", DT_U8},      {"good-uint8", DT_BOOL},   {"good-bool", DT_E4M3},
        {"good-bfloat16", DT_F16}, {"good-bfloat16", DT_U16}, {"good-bfloat16", DT_E4M3},
        {"good-scalar", DT_I4},
    };
    struct loaded l;
    struct buffer b;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ok(load_file(a, fixture(a, wrong[i].name), &l, d) && !loaded_as(a, &l, wrong[i].type, &b),
           "%s is not %s", wrong[i].name, dtype_name(wrong[i].type));
    ok(load_file(a, fixture(a, "good-scalar"), &l, d) && loaded_as(a, &l, DT_F32, &b) &&
           b.rank == 0 && b.count == 1 && dtype_get(DT_F32, b.data, 0) == 2.5,
       "a scalar has no dimensions and one element");
    ok(load_file(a, fixture(a, "good-empty"), &l, d) && loaded_as(a, &l, DT_F32, &b) &&
           b.rank == 2 && b.count == 0 && b.bytes == 0,
       "an empty array has none");
    ok(load_file(a, fixture(a, "good-fortran-1d"), &l, d) && loaded_as(a, &l, DT_F32, &b),
       "one dimension in Fortran order is in C order too");
    eq_int(d->nerror, 0, "without a complaint");
    arena_free(a);
}

static const struct {
    const char *name, *message; /* part of it */
} bad[] = {
    {"bad-fortran", "is in Fortran order; save numpy.ascontiguousarray(x) instead"},
    {"bad-bigendian", "has big-endian elements ('>f4'); save x.astype('<f4') instead"},
    {"bad-object", "holds Python objects"},
    {"bad-string", "holds strings"},
    {"bad-dates", "holds dates or time spans"},
    {"bad-structure", "holds structures; save one field of them"},
    {"bad-rank", "has more than 8 dimensions"},
    {"bad-short", "is too short: its header promises 32 bytes of data, it has 31"},
    {"bad-long", "is too long: its header promises 32 bytes of data, it has 33"},
    {"bad-huge", "its shape is too large for any memory"},
    {"bad-huge-dim", "its shape is not a tuple of numbers below 2^64"},
    {"bad-negative", "its shape is not a tuple of numbers"},
    {"bad-shape", "its shape is not a tuple"},
    {"bad-shape-text", "its shape is not a tuple of numbers"},
    {"bad-header-length", "it ends within its header"},
    {"bad-header-huge", "its header is longer than a mebibyte"},
    {"bad-key", "its header has an unknown key"},
    {"bad-key-twice", "its header has a key twice"},
    {"bad-key-missing", "its header lacks"},
    {"bad-type", "has elements of an unknown type '<q9'"},
    {"bad-type-size", "has elements of an unknown type"},
    {"bad-order", "its 'fortran_order' is neither True nor False"},
    {"bad-text-after", "there is text after its header"},
    {"bad-unclosed", "its shape is not a tuple"},
    {"bad-version", "is an npy file of version 9; versions 1 to 3 are known"},
    {"bad-magic", "is not an npy file"},
    {"bad-cut", "it ends within its header"},
};

static void test_bad(void)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena *a = arena_new();
        struct diags *d = diags_new(a);
        struct loaded l;
        const char *path = fixture(a, bad[i].name);
        bool refused = !load_file(a, path, &l, d);
        const char *text = d->list.n ? d->list.v[0].text : "";
        if (!ok(refused && d->nerror == 1 && strstr(text, bad[i].message) && strstr(text, path),
                "%s is refused: %s", bad[i].name, bad[i].message))
            tap_note("got: %s", text);
        arena_free(a);
    }
}

static struct buffer sample(struct arena *a, enum dtype t)
{
    struct buffer b;
    uint64_t dim[3] = {2, 1, 4};
    buffer_shape(&b, t, 3, dim);
    buffer_alloc(a, &b, NULL);
    for (size_t i = 0; i < 8; i++)
        dtype_set(t, b.data, i, (double)i - 3);
    return b;
}

/* Every type comes back from its own file, and the data begins at a multiple of 64. */
static void test_write(void)
{
    for (int t = 0; t < DT_COUNT; t++) {
        struct arena *a = arena_new();
        struct diags *d = diags_new(a);
        struct buffer b = sample(a, (enum dtype)t), back;
        struct loaded l;
        char *bytes;
        size_t n;
        FILE *f = open_memstream(&bytes, &n);
        npy_write(f, &b);
        fclose(f);
        ok(npy_read(a, io_memory(a, "x.npy", bytes, n), &l, d) &&
               loaded_as(a, &l, (enum dtype)t, &back) && back.rank == 3 &&
               memcmp(back.dim, b.dim, sizeof b.dim) == 0 &&
               memcmp(back.data, b.data, b.bytes) == 0,
           "%s goes to a file and comes back", dtype_name((enum dtype)t));
        ok((n - l.bytes) % 64 == 0, "%s is aligned in it", dtype_name((enum dtype)t));
        free(bytes);
        arena_free(a);
    }
}

static const char *header_of(struct arena *a, uint32_t rank, const uint64_t *dim)
{
    struct buffer b;
    char *bytes;
    size_t n;
    buffer_shape(&b, DT_F32, rank, dim);
    buffer_alloc(a, &b, NULL);
    FILE *f = open_memstream(&bytes, &n);
    npy_write(f, &b);
    fclose(f);
    char *text = arena_strndup(a, bytes + 10, n - 10);
    free(bytes);
    char *end = strchr(text, '}');
    if (end)
        end[1] = 0;
    return text;
}

static void test_header(void)
{
    struct arena *a = arena_new();
    uint64_t dim[8] = {3, 2, 1, 1, 1, 1, 1, 1};
    eq_str(header_of(a, 0, dim), "{'descr': '<f4', 'fortran_order': False, 'shape': (), }",
           "no dimension");
    eq_str(header_of(a, 1, dim), "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
           "one");
    eq_str(header_of(a, 2, dim), "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }",
           "two");
    eq_str(header_of(a, 8, dim),
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 1, 1, 1, 1, 1, 1), }",
           "eight");
    arena_free(a);
}

/* Every cut of a good file is refused, as is every file with one byte of its header changed to a
 * bracket, unless it still says the same. Nothing crashes. */
static void test_damage(void)
{
    struct arena *a = arena_new();
    struct buffer b = sample(a, DT_F32);
    struct loaded l;
    char *bytes;
    size_t n;
    int taken = 0;
    FILE *f = open_memstream(&bytes, &n);
    npy_write(f, &b);
    fclose(f);
    for (size_t i = 0; i < n; i++)
        taken += npy_read(a, io_memory(a, "cut", bytes, i), &l, diags_new(a));
    eq_int(taken, 0, "no cut file is taken");
    taken = 0;
    for (size_t i = 0; i < 72; i++) {
        char was = bytes[i];
        bytes[i] = ']';
        taken += npy_read(a, io_memory(a, "damaged", bytes, n), &l, diags_new(a));
        bytes[i] = was;
    }
    eq_int(taken, 1, "no damaged header is taken, but for the minor version, which says nothing");
    free(bytes);
    arena_free(a);
}

/* A string that a NUL would cut is not the type in front of it. */
static void test_nul(void)
{
    static const char text[] = "{'descr': '<f4\0,<i8', 'fortran_order': False, 'shape': (1,), }\n";
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct loaded l;
    char bytes[10 + sizeof text - 1 + 4] = "\x93NUMPY\1";
    bytes[8] = (char)(sizeof text - 1);
    memcpy(bytes + 10, text, sizeof text - 1);
    ok(!npy_read(a, io_memory(a, "x.npy", bytes, sizeof bytes), &l, d) &&
           strstr(d->list.v[0].text, "its 'descr' is not a string"),
       "a type with a NUL is refused");
    arena_free(a);
}

int main(void)
{
    test_nul();
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        test_good(&good[i]);
    test_strict();
    test_bad();
    test_write();
    test_header();
    test_damage();
    return tap_done();
}
