#include <config.h>

#include "data/safetensors.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

enum { HEADER_LIMIT = 100 << 20, NAME_LIMIT = 4096, NAMES_SHOWN = 20 };

static const struct {
    const char *name;
    enum dtype type;
} types[] = {
    {"F64", DT_F64},      {"F32", DT_F32}, {"F16", DT_F16}, {"BF16", DT_BF16}, {"F8_E4M3", DT_E4M3},
    {"F8_E5M2", DT_E5M2}, {"I64", DT_I64}, {"I32", DT_I32}, {"I16", DT_I16},   {"I8", DT_I8},
    {"U64", DT_U64},      {"U32", DT_U32}, {"U16", DT_U16}, {"U8", DT_U8},     {"BOOL", DT_BOOL},
};

struct reader {
    struct arena *arena;
    const char *p, *end;
    const char *file;
    struct diags *d;
    bool told; /* what is malformed has been said already */
};

static bool malformed(struct reader *r, const char *what)
{
    return diag_error(r->d, SPAN_NONE, "'%s' is not a valid safetensors file: %s", r->file, what);
}

static void skip_space(struct reader *r)
{
    while (r->p < r->end && strchr(" \t\r\n", *r->p) && *r->p)
        r->p++;
}

static bool take(struct reader *r, char c)
{
    skip_space(r);
    if (r->p == r->end || *r->p != c)
        return false;
    r->p++;
    return true;
}

static bool take_hex4(struct reader *r, uint32_t *v)
{
    *v = 0;
    if (r->end - r->p < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = *r->p++;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return false;
        *v = *v << 4 | digit;
    }
    return true;
}

/* Names are C strings here, where it would be their end. */
static bool no_nul(struct reader *r)
{
    r->told = true;
    return malformed(r, "a string in its header has a NUL");
}

/* What follows \u: a code point, or the first half of one in UTF-16. */
static bool take_code_point(struct reader *r, struct buf *out)
{
    uint32_t c, low;
    if (!take_hex4(r, &c) || (c >= 0xdc00 && c < 0xe000))
        return false;
    if (c >= 0xd800 && c < 0xdc00) {
        if (r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u')
            return false;
        r->p += 2;
        if (!take_hex4(r, &low) || low < 0xdc00 || low >= 0xe000)
            return false;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    if (c == 0)
        return no_nul(r);
    if (c < 0x80) {
        buf_putc(out, (char)c);
    } else if (c < 0x800) {
        buf_putc(out, (char)(0xc0 | c >> 6));
        buf_putc(out, (char)(0x80 | (c & 0x3f)));
    } else {
        if (c < 0x10000) {
            buf_putc(out, (char)(0xe0 | c >> 12));
        } else {
            buf_putc(out, (char)(0xf0 | c >> 18));
            buf_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
        }
        buf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_putc(out, (char)(0x80 | (c & 0x3f)));
    }
    return true;
}

static bool take_string(struct reader *r, const char **text)
{
    static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    struct buf out = buf_in(r->arena);
    if (!take(r, '"'))
        return false;
    while (r->p < r->end && *r->p != '"') {
        char c = *r->p++;
        if (c == 0)
            return no_nul(r);
        if ((unsigned char)c < 0x20 || out.len > NAME_LIMIT)
            return false;
        if (c != '\\') {
            buf_putc(&out, c);
            continue;
        }
        if (r->p == r->end)
            return false;
        c = *r->p++;
        if (c == 'u') {
            if (!take_code_point(r, &out))
                return false;
            continue;
        }
        size_t i = 0;
        while (escapes[i] && escapes[i] != c)
            i += 2;
        if (!escapes[i])
            return false;
        buf_putc(&out, escapes[i + 1]);
    }
    *text = buf_text(&out);
    return take(r, '"');
}

static bool take_number(struct reader *r, uint64_t *v)
{
    skip_space(r);
    const char *s = r->p;
    *v = 0;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
        if (__builtin_mul_overflow(*v, (uint64_t)10, v) ||
            __builtin_add_overflow(*v, (uint64_t)(*r->p - '0'), v))
            return false;
    return r->p > s;
}

/* [1, 2, 3]: at most max numbers. */
static bool take_numbers(struct reader *r, uint64_t *v, uint32_t max, uint32_t *n)
{
    *n = 0;
    if (!take(r, '['))
        return false;
    if (take(r, ']'))
        return true;
    do {
        if (*n == max || !take_number(r, &v[(*n)++]))
            return false;
    } while (take(r, ','));
    return take(r, ']');
}

/* ---- names ---- */

typedef VEC(const char *) names;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool are_unique(struct reader *r, const names *n, const char *what)
{
    const char **v = ARENA_ARRAY(r->arena, n->n, const char *);
    for (size_t i = 0; i < n->n; i++)
        v[i] = n->v[i];
    qsort(v, n->n, sizeof *v, by_text);
    for (size_t i = 1; i < n->n; i++)
        if (strcmp(v[i - 1], v[i]) == 0) {
            r->told = true;
            return malformed(r, arena_printf(r->arena, "its header has %s '%s' twice", what, v[i]));
        }
    return true;
}

/* ---- the header ---- */

/* The members of "__metadata__": strings, whose meaning is not ours. */
static bool skip_metadata(struct reader *r)
{
    const char *s;
    names keys = {0};
    if (!take(r, '{'))
        return false;
    if (take(r, '}'))
        return true;
    do {
        if (!take_string(r, &s) || !take(r, ':'))
            return false;
        *VEC_PUSH(r->arena, &keys) = s;
        if (!take_string(r, &s))
            return false;
    } while (take(r, ','));
    return take(r, '}') && are_unique(r, &keys, "the metadata key");
}

/* One member of a tensor's object. */
static bool take_member(struct reader *r, const char *key, struct safetensor *e, bool *shaped)
{
    if (strcmp(key, "dtype") == 0)
        return !e->dtype && take_string(r, &e->dtype);
    if (strcmp(key, "data_offsets") == 0)
        return !e->nrange && take_numbers(r, e->range, 2, &e->nrange);
    if (strcmp(key, "shape") != 0 || *shaped)
        return false;
    *shaped = true;
    return take_numbers(r, e->dim, BUFFER_RANK, &e->rank);
}

static bool take_tensor(struct reader *r, struct safetensor *e)
{
    const char *key;
    bool shaped = false;
    if (!take(r, '{'))
        return false;
    do {
        if (!take_string(r, &key) || !take(r, ':') || !take_member(r, key, e, &shaped))
            return false;
    } while (take(r, ','));
    return take(r, '}') && e->dtype && shaped && e->nrange == 2;
}

/* Says what is wrong unless that has been said. */
static bool wrong(struct reader *r, const char *what)
{
    return r->told ? false : malformed(r, what);
}

static bool take_tensors(struct reader *r, struct safetensors *out)
{
    static const char no_object[] = "its header is not a JSON object";
    names keys = {0};
    if (!take(r, '{'))
        return wrong(r, no_object);
    if (take(r, '}'))
        return true;
    do {
        const char *name;
        if (!take_string(r, &name) || !take(r, ':'))
            return wrong(r, no_object);
        *VEC_PUSH(r->arena, &keys) = name;
        if (strcmp(name, "__metadata__") == 0) {
            if (!skip_metadata(r))
                return wrong(r, "its metadata are not strings");
            continue;
        }
        struct safetensor *e = VEC_PUSH(r->arena, &out->v);
        e->name = name;
        if (!take_tensor(r, e))
            return wrong(
                r, "a tensor lacks a dtype, a shape of at most 8 numbers or two data_offsets");
    } while (take(r, ','));
    return (take(r, '}') || wrong(r, no_object)) && are_unique(r, &keys, "the name");
}

static int by_offset(const void *a, const void *b)
{
    const struct safetensor *x = a, *y = b;
    for (int i = 0; i < 2; i++)
        if (x->range[i] != y->range[i])
            return x->range[i] < y->range[i] ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Each tensor begins where the one before it ends. */
static bool check_ranges(struct reader *r, struct safetensors *s)
{
    if (s->v.n)
        qsort(s->v.v, s->v.n, sizeof *s->v.v, by_offset);
    for (size_t i = 0; i < s->v.n; i++) {
        const struct safetensor *e = &s->v.v[i];
        if (e->range[0] > e->range[1])
            return malformed(r,
                             arena_printf(r->arena, "tensor '%s' ends before it begins", e->name));
        if (e->range[0] < s->bytes)
            return malformed(r, arena_printf(r->arena, "tensors '%s' and '%s' overlap",
                                             s->v.v[i - 1].name, e->name));
        if (e->range[0] > s->bytes)
            return malformed(r, arena_printf(r->arena,
                                             "no tensor has the bytes %" PRIu64 " to %" PRIu64
                                             " of its data",
                                             s->bytes, e->range[0]));
        s->bytes = e->range[1];
    }
    return true;
}

/* As many bytes as the tensors have are there. */
static bool check_end(struct reader *r, const struct io_in *in, const struct safetensors *s)
{
    if (in->left == IO_UNKNOWN || in->left == s->bytes)
        return true;
    return diag_error(r->d, SPAN_NONE,
                      "'%s' is too %s: its header promises %" PRIu64
                      " bytes of data, it has %" PRIu64,
                      r->file, in->left < s->bytes ? "short" : "long", s->bytes, in->left);
}

bool safetensors_header(struct arena *a, struct io_in *in, struct safetensors *out, struct diags *d)
{
    struct reader r = {.arena = a, .file = in->name, .d = d};
    uint64_t len = 0;
    size_t got;
    *out = (struct safetensors){0};
    if (!io_get(in, &len, sizeof len, &got, d))
        return false;
    if (got < sizeof len || len > in->left)
        return malformed(&r, "it ends within its header");
    if (len > HEADER_LIMIT)
        return malformed(&r, "its header is longer than 100 MiB");
    char *text = arena_alloc(a, (size_t)len + 1);
    if (!io_get(in, text, (size_t)len, &got, d))
        return false;
    if (got < len)
        return malformed(&r, "it ends within its header");
    r.p = text;
    r.end = text + len;
    if (!take_tensors(&r, out))
        return false;
    skip_space(&r);
    if (r.p < r.end)
        return malformed(&r, "there is something behind the JSON of its header");
    return check_ranges(&r, out) && check_end(&r, in, out);
}

/* ---- one tensor ---- */

/* What the header says of it, as ours. */
static bool describe(struct reader *r, const struct safetensor *e, struct loaded *l)
{
    struct buffer b;
    *l = (struct loaded){.name = r->file, .type = DT_VOID, .rank = e->rank};
    snprintf(l->type_name, sizeof l->type_name, "%s", e->dtype);
    memcpy(l->dim, e->dim, sizeof l->dim);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, e->dtype) == 0)
            l->type = types[i].type;
    if (l->type == DT_VOID)
        return diag_error(r->d, SPAN_NONE, "'%s' has elements of an unknown type '%s'", r->file,
                          e->dtype);
    if (!buffer_shape(&b, l->type, e->rank, e->dim) || b.bytes != e->range[1] - e->range[0])
        return malformed(r, "the tensor's shape and its number of bytes disagree");
    l->size = dtype_bits(l->type) / 8;
    l->bytes = b.bytes;
    return true;
}

static bool not_found(struct reader *r, const char *tensor, const struct safetensors *s)
{
    const char **all = ARENA_ARRAY(r->arena, s->v.n + 1, const char *);
    struct buf list = buf_in(r->arena);
    for (size_t i = 0; i < s->v.n; i++)
        all[i] = s->v.v[i].name;
    const char *near = diag_nearest(tensor, strlen(tensor), all);
    if (near)
        diag_error(r->d, SPAN_NONE, "'%s': there is no such tensor; did you mean '%s'?", r->file,
                   near);
    else
        diag_error(r->d, SPAN_NONE, "'%s': there is no such tensor", r->file);
    for (size_t i = 0; i < s->v.n && i < NAMES_SHOWN; i++)
        buf_printf(&list, "%s'%s'", i ? ", " : "", all[i]);
    if (s->v.n > NAMES_SHOWN)
        buf_printf(&list, " and %zu more: kaio-run --list-tensors shows all", s->v.n - NAMES_SHOWN);
    diag_note(r->d, SPAN_NONE, "it has %s", s->v.n ? buf_text(&list) : "none");
    return false;
}

static bool get_data(struct reader *r, struct io_in *in, const struct safetensor *e,
                     struct loaded *l)
{
    size_t got;
    if (!io_skip(in, e->range[0], r->d))
        return false;
    arena_purpose(r->arena, r->file);
    unsigned char *data = arena_alloc(r->arena, l->bytes);
    arena_purpose(r->arena, NULL);
    l->data = data;
    return io_get(in, data, l->bytes, &got, r->d) &&
           (got == l->bytes || malformed(r, "it ends within the tensor"));
}

bool safetensors_read(struct arena *a, struct io_in *in, const char *path, const char *tensor,
                      struct loaded *out, struct diags *d)
{
    struct reader r = {.arena = a, .file = path, .d = d};
    struct safetensors all;
    if (!safetensors_header(a, in, &all, d))
        return false;
    for (size_t i = 0; i < all.v.n; i++)
        if (strcmp(all.v.v[i].name, tensor) == 0)
            return describe(&r, &all.v.v[i], out) && get_data(&r, in, &all.v.v[i], out);
    return not_found(&r, tensor, &all);
}

/* ---- where the tensors of a model are ---- */

/* Any value: what it is, is not ours. */
static bool skip_value(struct reader *r, unsigned depth)
{
    enum { DEPTH = 32 };
    const char *s;
    skip_space(r);
    if (depth == DEPTH || r->p == r->end)
        return false;
    if (*r->p == '"')
        return take_string(r, &s);
    const bool object = *r->p == '{';
    if (object || *r->p == '[') {
        const char close = object ? '}' : ']';
        r->p++;
        if (take(r, close))
            return true;
        do {
            if (object && (!take_string(r, &s) || !take(r, ':')))
                return false;
            if (!skip_value(r, depth + 1))
                return false;
        } while (take(r, ','));
        return take(r, close);
    }
    const char *from = r->p;
    while (r->p < r->end && (isalnum((unsigned char)*r->p) || (*r->p && strchr("+-.", *r->p))))
        r->p++;
    return r->p > from;
}

/* The files lie beside the index. */
static bool take_map(struct reader *r, const char *folder, size_t len, safetensors_list *out)
{
    const char *name, *file;
    if (!take(r, '{'))
        return false;
    if (take(r, '}'))
        return true;
    do {
        if (!take_string(r, &name) || !take(r, ':') || !take_string(r, &file))
            return false;
        *VEC_PUSH(r->arena, out) = (struct safetensors_place){
            name, len && file[0] != '/' ? arena_printf(r->arena, "%.*s%s", (int)len, folder, file)
                                        : file};
    } while (take(r, ','));
    return take(r, '}');
}

static bool take_index(struct reader *r, safetensors_list *out)
{
    const char *slash = strrchr(r->file, '/'), *key;
    const size_t len = slash ? (size_t)(slash - r->file) + 1 : 0;
    bool mapped = false;
    if (!take(r, '{'))
        return false;
    do {
        if (!take_string(r, &key) || !take(r, ':'))
            return false;
        const bool map = strcmp(key, "weight_map") == 0;
        if ((map && mapped) || !(map ? take_map(r, r->file, len, out) : skip_value(r, 0)))
            return false;
        mapped |= map;
    } while (take(r, ','));
    if (!take(r, '}'))
        return false;
    skip_space(r);
    return mapped && r->p == r->end;
}

static bool places_of_index(struct arena *a, const char *path, safetensors_list *out,
                            struct diags *d)
{
    struct diags *unsaid = diags_new(a);
    const struct source *text = io_read(a, d, path, HEADER_LIMIT);
    if (!text)
        return false;
    struct reader r = {
        .arena = a, .p = text->text, .end = text->text + text->len, .file = path, .d = unsaid};
    return take_index(&r, out) ||
           diag_error(d, SPAN_NONE,
                      "'%s' is no index of safetensors files, which is a JSON object whose "
                      "\"weight_map\" gives each tensor's file",
                      path);
}

bool safetensors_find(struct arena *a, const char *path, safetensors_list *out, struct diags *d)
{
    struct safetensors all;
    const size_t n = strlen(path);
    if (n > 5 && strcmp(path + n - 5, ".json") == 0)
        return places_of_index(a, path, out, d);
    struct io_in *in = io_open(a, d, path);
    const bool good = in && safetensors_header(a, in, &all, d);
    for (size_t i = 0; good && i < all.v.n; i++)
        *VEC_PUSH(a, out) = (struct safetensors_place){all.v.v[i].name, path};
    io_close(in);
    return good;
}
