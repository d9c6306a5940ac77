#include <config.h>

#include "data/safetensors.h"

#include <inttypes.h>

enum { HEADER_LIMIT = 100 << 20, NAME_LIMIT = 4096, NAMES_SHOWN = 4096 };

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

/* The members of "__metadata__": strings, whose meaning is not ours. */
static bool skip_metadata(struct reader *r)
{
    const char *s;
    if (!take(r, '{'))
        return false;
    if (take(r, '}'))
        return true;
    do {
        if (!take_string(r, &s) || !take(r, ':') || !take_string(r, &s))
            return false;
    } while (take(r, ','));
    return take(r, '}');
}

struct entry {
    const char *dtype;
    uint64_t dim[BUFFER_RANK], range[2];
    uint32_t rank, nrange;
};

static bool take_entry(struct reader *r, struct entry *e)
{
    const char *key;
    *e = (struct entry){0};
    bool shaped = false;
    if (!take(r, '{'))
        return false;
    do {
        if (!take_string(r, &key) || !take(r, ':'))
            return false;
        if (strcmp(key, "dtype") == 0) {
            if (!take_string(r, &e->dtype))
                return false;
        } else if (strcmp(key, "shape") == 0) {
            if (!take_numbers(r, e->dim, BUFFER_RANK, &e->rank))
                return false;
            shaped = true;
        } else if (strcmp(key, "data_offsets") == 0) {
            if (!take_numbers(r, e->range, 2, &e->nrange))
                return false;
        } else {
            return false;
        }
    } while (take(r, ','));
    return take(r, '}') && e->dtype && shaped && e->nrange == 2;
}

static bool resolve(struct reader *r, const struct entry *e, const char *data, size_t bytes,
                    struct loaded *l)
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
    if (e->range[0] > e->range[1] || e->range[1] > bytes)
        return diag_error(r->d, SPAN_NONE,
                          "'%s' is too short: its header puts the tensor at bytes %" PRIu64
                          " to %" PRIu64 " of %zu bytes of data",
                          r->file, e->range[0], e->range[1], bytes);
    if (!buffer_shape(&b, l->type, e->rank, e->dim) || b.bytes != e->range[1] - e->range[0])
        return malformed(r, "the tensor's shape and its number of bytes disagree");
    l->size = dtype_bits(l->type) / 8;
    l->data = (const unsigned char *)data + e->range[0];
    l->bytes = b.bytes;
    return true;
}

static bool not_found(struct reader *r, const char *tensor, const char **names, size_t n)
{
    names[n] = NULL;
    const char *near = diag_nearest(tensor, strlen(tensor), names);
    if (near)
        return diag_error(r->d, SPAN_NONE, "'%s': there is no such tensor; did you mean '%s'?",
                          r->file, near);
    diag_error(r->d, SPAN_NONE, "'%s': there is no such tensor", r->file);
    struct buf list = buf_in(r->arena);
    for (size_t i = 0; i < n && i < 8; i++)
        buf_printf(&list, "%s'%s'", i ? ", " : "", names[i]);
    if (n)
        diag_note(r->d, SPAN_NONE, "it has %s%s", buf_text(&list), n > 8 ? ", ..." : "");
    return false;
}

bool safetensors_parse(struct arena *a, const void *bytes, size_t n, const char *file,
                       const char *tensor, struct loaded *out, struct diags *d)
{
    struct reader r = {.arena = a, .file = file, .d = d};
    const char **names = ARENA_ARRAY(a, NAMES_SHOWN + 1, const char *);
    uint64_t len = 0;
    size_t nname = 0;
    bool found = false;
    struct entry entry, wanted;
    if (n >= 8)
        memcpy(&len, bytes, 8);
    if (n < 8 || len > n - 8 || len > HEADER_LIMIT)
        return malformed(&r, "it ends within its header");
    r.p = (const char *)bytes + 8;
    r.end = r.p + len;
    if (!take(&r, '{'))
        return malformed(&r, "its header is not a JSON object");
    if (!take(&r, '}')) {
        do {
            const char *name;
            if (!take_string(&r, &name) || !take(&r, ':'))
                return malformed(&r, "its header is not a JSON object");
            if (strcmp(name, "__metadata__") == 0) {
                if (!skip_metadata(&r))
                    return malformed(&r, "its metadata are not strings");
                continue;
            }
            if (!take_entry(&r, &entry))
                return malformed(
                    &r, "a tensor lacks a dtype, a shape of at most 8 numbers or two data_offsets");
            if (nname < NAMES_SHOWN)
                names[nname++] = name;
            if (strcmp(name, tensor) == 0) {
                found = true;
                wanted = entry;
            }
        } while (take(&r, ','));
        if (!take(&r, '}'))
            return malformed(&r, "its header is not a JSON object");
    }
    if (!found)
        return not_found(&r, tensor, names, nname);
    return resolve(&r, &wanted, (const char *)bytes + 8 + len, n - 8 - (size_t)len, out);
}
