#include <config.h>

#include "data/safetensors.h"
#include "tap.h"

struct file {
    char *bytes;
    size_t n;
};

/* A file with this header and n bytes of data: 0, 1, 2, ... */
static struct file make(struct arena *a, const char *header, size_t n)
{
    uint64_t len = strlen(header);
    struct file f = {arena_alloc(a, 8 + len + n), 8 + len + n};
    memcpy(f.bytes, &len, 8);
    memcpy(f.bytes + 8, header, len);
    for (size_t i = 0; i < n; i++)
        f.bytes[8 + len + i] = (char)i;
    return f;
}

static const char two[] =
    "{\"__metadata__\": {\"format\": \"pt\"},\n"
    " \"layer.0.weight\": {\"dtype\": \"U8\", \"shape\": [2, 3], \"data_offsets\": [0, 6]},"
    " \"h\\u00e9\\\"\\ud83d\\ude00\": {\"data_offsets\":[6,10],\"shape\":[],\"dtype\":\"F32\"}}  ";

static void test_good(void)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct loaded l;
    struct buffer b;
    struct buf text = buf_in(a);
    struct file f = make(a, two, 10);
    if (ok(safetensors_read(a, io_memory(a, "w", f.bytes, f.n), "w", "layer.0.weight", &l, d) &&
               loaded_as(a, &l, DT_U8, &b),
           "a tensor is found by name")) {
        loaded_print(&l, &text);
        eq_str(buf_text(&text), "U8[2, 3]", "with its type and shape");
        eq_int(dtype_get_int(DT_U8, b.data, 5), 5, "and its data");
        ok(!loaded_as(a, &l, DT_I8, &b), "as no other type");
        ok(loaded_as(a, &l, DT_E4M3, &b) && loaded_as(a, &l, DT_U4, &b) && b.dim[1] == 6,
           "but bytes may be fp8 or packed 4-bit");
    }
    ok(safetensors_read(a, io_memory(a, "w", f.bytes, f.n), "w", "h\xc3\xa9\"\xf0\x9f\x98\x80", &l,
                        d) &&
           loaded_as(a, &l, DT_F32, &b) && b.rank == 0,
       "names may have escapes");
    ok(!safetensors_read(a, io_memory(a, "w", f.bytes, f.n), "w", "layer.1.weight", &l, d) &&
           strcmp(d->list.v[0].text,
                  "'w': there is no such tensor; did you mean 'layer.0.weight'?") == 0,
       "the nearest name is offered");
    arena_free(a);
}

/* Of tensors that must not be there the shape does not matter. */
#define U8(name, range) \
    "\"" name "\": {\"dtype\": \"U8\", \"shape\": [8], \"data_offsets\": [" range "]}"

static const struct {
    const char *header, *message;
} bad[] = {
    {"", "its header is not a JSON object"},
    {"[]", "its header is not a JSON object"},
    {"{\"x\": 1}", "a tensor lacks a dtype"},
    {"{\"x\": {\"dtype\": \"F32\", \"shape\": [1]}}", "a tensor lacks a dtype"},
    {"{\"x\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4], \"more\": 1}}",
     "a tensor lacks"},
    {"{\"x\": {\"dtype\": \"F32\", \"shape\": [1,1,1,1,1,1,1,1,1], \"data_offsets\": [0, 4]}}",
     "at most 8"},
    {"{\"x\": {\"dtype\": \"F32\", \"shape\": [-1], \"data_offsets\": [0, 4]}}", "a tensor lacks"},
    {"{\"x\": {\"dtype\": \"F32\", \"shape\": [99999999999999999999], \"data_offsets\": [0, 4]}}",
     "a tensor lacks"},
    {"{\"x\": {\"dtype\": \"F32\", \"shape\": [3], \"data_offsets\": [0, 8]}}", "disagree"},
    {"{\"x\": {\"dtype\": \"F32\", \"shape\": [4294967296, 4294967296], \"data_offsets\": [0, 8]}}",
     "disagree"},
    {"{\"x\": {\"dtype\": \"F32\", \"shape\": [4], \"data_offsets\": [0, 16]}}", "is too short"},
    {"{\"x\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [8, 4]}}",
     "tensor 'x' ends before it begins"},
    {"{\"x\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}}",
     "is too long: its header promises 4 bytes of data, it has 8"},
    {"{" U8("x", "0, 6") ", " U8("y", "5, 8") "}", "tensors 'x' and 'y' overlap"},
    {"{" U8("x", "0, 8") ", " U8("y", "0, 8") "}", "tensors 'x' and 'y' overlap"},
    {"{" U8("y", "5, 8") ", " U8("x", "0, 3") "}", "no tensor has the bytes 3 to 5 of its data"},
    {"{" U8("x", "1, 8") "}", "no tensor has the bytes 0 to 1 of its data"},
    {"{" U8("x", "0, 8") ", " U8("x", "8, 8") "}", "its header has the name 'x' twice"},
    {"{" U8("x", "0, 8") ", " U8("\\u0078", "8, 8") "}", "its header has the name 'x' twice"},
    {"{\"__metadata__\": {}, " U8("x", "0, 8") ", \"__metadata__\": {}}",
     "its header has the name '__metadata__' twice"},
    {"{\"__metadata__\": {\"a\": \"1\", \"b\": \"\", \"a\": \"1\"}, " U8("x", "0, 8") "}",
     "its header has the metadata key 'a' twice"},
    {"{\"x\": {\"dtype\": \"U8\", \"dtype\": \"U8\", \"shape\": [8], \"data_offsets\": [0, 8]}}",
     "a tensor lacks"},
    {"{" U8("x", "0, 8") "} }", "there is something behind the JSON of its header"},
    {"{" U8("x", "0, 8") "}\001", "there is something behind the JSON of its header"},
    {"{" U8("x\\u0000y", "0, 8") "}", "a string in its header has a NUL"},
    {"{\"x\": {\"dtype\": \"C64\", \"shape\": [1], \"data_offsets\": [0, 8]}}",
     "an unknown type 'C64'"},
    {"{\"x\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [0, 1]}",
     "its header is not a JSON object"},
    {"{\"\\ud800\": {}}", "its header is not a JSON object"},
    {"{\"__metadata__\": {\"a\": 1}}", "its metadata are not strings"},
    {"{}", "there is no such tensor"},
};

static void test_bad(void)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena *a = arena_new();
        struct diags *d = diags_new(a);
        struct loaded l;
        struct file f = make(a, bad[i].header, strcmp(bad[i].header, "{}") ? 8 : 0);
        bool refused = !safetensors_read(a, io_memory(a, "w", f.bytes, f.n), "w", "x", &l, d);
        if (!ok(refused && d->nerror == 1 && strstr(d->list.v[0].text, bad[i].message),
                "refused: %s", bad[i].message))
            tap_note("%s: %s", bad[i].header, d->list.n ? d->list.v[0].text : "taken");
        arena_free(a);
    }
}

/* An empty tensor is nobody's neighbour, and the order in the header means nothing. */
static void test_order(void)
{
    static const char header[] = "{" U8(
        "x", "2, 10") ", \"e\": {\"dtype\": \"F32\", \"shape\": [0], \"data_offsets\": [2, 2]}, "
                      "\"y\": {\"dtype\": \"I16\", \"shape\": [], \"data_offsets\": [0, 2]}} \n\t ";
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct loaded l;
    struct file f = make(a, header, 10);
    struct safetensors all;
    ok(safetensors_read(a, io_memory(a, "w", f.bytes, f.n), "w", "x", &l, d) && l.bytes == 8 &&
           l.data[0] == 2 && l.data[7] == 9,
       "tensors in another order than in the header");
    ok(safetensors_read(a, io_memory(a, "w", f.bytes, f.n), "w", "e", &l, d) && l.bytes == 0,
       "an empty one");
    ok(safetensors_header(a, io_memory(a, "w", f.bytes, f.n), &all, d) && all.v.n == 3 &&
           strcmp(all.v.v[0].name, "y") == 0 && strcmp(all.v.v[1].name, "e") == 0 &&
           strcmp(all.v.v[2].name, "x") == 0,
       "all are listed as they lie");
    memcpy(f.bytes + 9, "\0", 1);
    ok(!safetensors_header(a, io_memory(a, "w", f.bytes, f.n), &all, d), "a NUL in the header");
    arena_free(a);
}

static void test_cut(void)
{
    struct arena *a = arena_new();
    struct loaded l;
    struct file f = make(a, two, 10);
    int taken = 0;
    for (size_t n = 0; n < f.n; n++) {
        char *exact = malloc(n ? n : 1);
        if (!exact)
            abort();
        memcpy(exact, f.bytes, n);
        taken += safetensors_read(a, io_memory(a, "w", exact, n), "w",
                                  "h\xc3\xa9\"\xf0\x9f\x98\x80", &l, diags_new(a));
        free(exact);
    }
    eq_int(taken, 0, "no cut file is taken");
    arena_free(a);
}

int main(void)
{
    test_good();
    test_bad();
    test_order();
    test_cut();
    return tap_done();
}
