#include <config.h>

#include "data/npy.h"

#include <inttypes.h>
#include <stdlib.h>

static const char magic[6] = "\x93NUMPY";

enum { HEADER_LIMIT = 1 << 20 };

/* ---- the header: a Python dict literal ---- */

struct reader {
    const char *p, *end;
    const char *name;
    struct diags *d;
    struct arena *arena;
    struct io_in *in;
};

static bool malformed(struct reader *r, const char *what)
{
    return diag_error(r->d, SPAN_NONE, "'%s' is not a valid npy file: %s", r->name, what);
}

static void skip_space(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

/* The next character after space is c: passes it. */
static bool take(struct reader *r, char c)
{
    skip_space(r);
    if (r->p == r->end || *r->p != c)
        return false;
    r->p++;
    return true;
}

static bool take_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    skip_space(r);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
        return false;
    r->p += n;
    return true;
}

/* A string without escapes, which neither keys nor simple types have. */
static bool take_string(struct reader *r, char *out, size_t size)
{
    skip_space(r);
    char quote = r->p < r->end ? *r->p : 0;
    if (quote != '\'' && quote != '"')
        return false;
    const char *s = ++r->p;
    while (r->p < r->end && *r->p != quote)
        r->p++;
    size_t n = (size_t)(r->p - s);
    if (r->p == r->end || n >= size || memchr(s, '\\', n) || memchr(s, 0, n))
        return false;
    r->p++;
    memcpy(out, s, n);
    out[n] = 0;
    return true;
}

static bool take_dim(struct reader *r, uint64_t *v)
{
    skip_space(r);
    const char *s = r->p;
    *v = 0;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
        if (__builtin_mul_overflow(*v, (uint64_t)10, v) ||
            __builtin_add_overflow(*v, (uint64_t)(*r->p - '0'), v))
            return false;
    bool any = r->p > s;
    if (any && r->p < r->end && *r->p == 'L') /* Python 2's long */
        r->p++;
    return any;
}

static bool take_shape(struct reader *r, struct loaded *l)
{
    bool comma = true;
    if (!take(r, '('))
        return malformed(r, "its shape is not a tuple");
    while (!take(r, ')')) {
        uint64_t v;
        if (!comma || !take_dim(r, &v))
            return malformed(r, "its shape is not a tuple of numbers below 2^64");
        if (l->rank == BUFFER_RANK)
            return diag_error(r->d, SPAN_NONE, "'%s' has more than %d dimensions; reshape it",
                              r->name, BUFFER_RANK);
        l->dim[l->rank++] = v;
        comma = take(r, ',');
    }
    return true;
}

/* A type that is not a plain number, in words. */
static const char *unusable(char kind)
{
    switch (kind) {
    case 'O': return "Python objects";
    case 'S':
    case 'a':
    case 'U': return "strings";
    case 'M':
    case 'm': return "dates or time spans";
    default: return NULL;
    }
}

/* "<f4" and so on: byte order, kind, bytes. */
static bool read_descr(struct reader *r, const char *s, struct loaded *l)
{
    static const struct {
        char kind;
        const char *word;
    } kinds[] = {{'f', "float"}, {'i', "int"}, {'u', "uint"}, {'c', "complex"}};
    char order = s[0] && strchr("<>|=", s[0]) ? s[0] : 0, kind, *end;
    if (!order &&
        dtype_parse(s, strlen(s), &l->type)) { /* a name that ml_dtypes registers: 'bfloat16' */
        snprintf(l->type_name, sizeof l->type_name, "%s", s);
        l->size = dtype_bits(l->type) == 4 ? 1 : dtype_bits(l->type) / 8;
        l->opaque = dtype_bits(l->type) == 4; /* one to a byte, as its V1 */
        return true;
    }
    kind = order ? s[1] : s[0];
    const char *digits = kind ? s + (order ? 2 : 1) : s;
    if (unusable(kind))
        return diag_error(r->d, SPAN_NONE, "'%s' holds %s (dtype '%s'); save numbers", r->name,
                          unusable(kind), s);
    unsigned long size = strtoul(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end || size == 0 || size > 1 << 20 ||
        !strchr("fiucbV", kind))
        return diag_error(r->d, SPAN_NONE, "'%s' has elements of an unknown type '%s'", r->name, s);
    if (order == '>' && size > 1 && kind != 'V')
        return diag_error(r->d, SPAN_NONE,
                          "'%s' has big-endian elements ('%s'); save x.astype('<%c%lu') instead",
                          r->name, s, kind, size);
    l->size = (unsigned)size;
    l->opaque = kind == 'V';
    snprintf(l->type_name, sizeof l->type_name, "%c%lu", kind, size);
    if (kind == 'b')
        snprintf(l->type_name, sizeof l->type_name, "bool");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind)
            snprintf(l->type_name, sizeof l->type_name, "%s%lu", kinds[i].word, size * 8);
    if (kind == 'f' && size == 1) { /* what numpy.save writes for ml_dtypes' float8_e5m2, alone */
        l->type = DT_E5M2;
        snprintf(l->type_name, sizeof l->type_name, "float8_e5m2");
    }
    for (int t = 0; t < DT_COUNT && !l->opaque; t++) {
        const char *own = dtype_npy((enum dtype)t) + 1;
        bool plain = t != DT_BF16 && !dtype_is_fp8((enum dtype)t) && dtype_bits((enum dtype)t) != 4;
        if (plain && own[0] == kind && strtoul(own + 1, NULL, 10) == size)
            l->type = (enum dtype)t;
    }
    return true;
}

static bool take_descr(struct reader *r, struct loaded *l)
{
    char text[40];
    skip_space(r);
    if (r->p < r->end && *r->p == '[')
        return diag_error(r->d, SPAN_NONE, "'%s' holds structures; save one field of them",
                          r->name);
    if (!take_string(r, text, sizeof text))
        return malformed(r, "its 'descr' is not a string");
    return read_descr(r, text, l);
}

static bool read_header(struct reader *r, struct loaded *l, bool *fortran)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    bool seen[3] = {0}, comma = true;
    char key[20];
    if (!take(r, '{'))
        return malformed(r, "its header is not a dictionary");
    while (!take(r, '}')) {
        int k = 0;
        if (!comma || !take_string(r, key, sizeof key) || !take(r, ':'))
            return malformed(r, "its header is not a dictionary of three keys");
        while (k < 3 && strcmp(key, keys[k]) != 0)
            k++;
        if (k == 3 || seen[k])
            return malformed(r, k == 3 ? "its header has an unknown key"
                                       : "its header has a key twice");
        seen[k] = true;
        if (k == 0 && !take_descr(r, l))
            return false;
        if (k == 1 && !(*fortran = take_word(r, "True")) && !take_word(r, "False"))
            return malformed(r, "its 'fortran_order' is neither True nor False");
        if (k == 2 && !take_shape(r, l))
            return false;
        comma = take(r, ',');
    }
    skip_space(r);
    if (r->p < r->end)
        return malformed(r, "there is text after its header");
    if (!seen[0] || !seen[1] || !seen[2])
        return malformed(r, "its header lacks 'descr', 'fortran_order' or 'shape'");
    return true;
}

/* n more bytes of the header; false when the file ends before them. */
static bool get(struct reader *r, void *to, size_t n)
{
    size_t got;
    return io_get(r->in, to, n, &got, r->d) &&
           (got == n || malformed(r, "it ends within its header"));
}

/* Reads the header's text, behind the magic. */
static bool get_header(struct reader *r)
{
    unsigned char b[6] = {0}; /* version, and two or four bytes of length */
    if (!get(r, b, 4))
        return false;
    if (b[0] < 1 || b[0] > 3)
        return diag_error(r->d, SPAN_NONE,
                          "'%s' is an npy file of version %u; versions 1 to 3 are known", r->name,
                          b[0]);
    if (b[0] > 1 && !get(r, b + 4, 2))
        return false;
    const size_t len = (size_t)b[2] | (size_t)b[3] << 8 | (size_t)b[4] << 16 | (size_t)b[5] << 24;
    if (len > HEADER_LIMIT)
        return malformed(r, "its header is longer than a mebibyte");
    char *text = arena_alloc(r->arena, len + 1);
    r->p = text;
    r->end = text + len;
    return get(r, text, len);
}

/* How many bytes of data the header promises. */
static bool promised(struct reader *r, const struct loaded *l, uint64_t *bytes)
{
    uint64_t count = 1;
    bool empty = false, over = false;
    for (uint32_t i = 0; i < l->rank; i++)
        empty = empty || l->dim[i] == 0;
    for (uint32_t i = 0; i < l->rank && !empty; i++)
        over = over || __builtin_mul_overflow(count, l->dim[i], &count);
    over = over || __builtin_mul_overflow(empty ? 0 : count, (uint64_t)l->size, bytes);
    return !(over || *bytes > SIZE_MAX / 4) ||
           malformed(r, "its shape is too large for any memory");
}

static bool wrong_size(struct reader *r, const char *how, uint64_t bytes, const char *has)
{
    return diag_error(r->d, SPAN_NONE,
                      "'%s' is too %s: its header promises %" PRIu64 " bytes of data, it has %s",
                      r->name, how, bytes, has);
}

/* The data that the header promises is there, and no more. */
static bool get_data(struct reader *r, struct loaded *l)
{
    uint64_t bytes = 0;
    size_t got, more = 0;
    char byte;
    if (!promised(r, l, &bytes))
        return false;
    if (r->in->left != IO_UNKNOWN && r->in->left != bytes)
        return wrong_size(r, r->in->left < bytes ? "short" : "long", bytes,
                          arena_printf(r->arena, "%" PRIu64, r->in->left));
    arena_purpose(r->arena, r->name);
    unsigned char *data = arena_alloc(r->arena, (size_t)bytes);
    arena_purpose(r->arena, NULL);
    l->data = data;
    l->bytes = (size_t)bytes;
    if (!io_get(r->in, data, l->bytes, &got, r->d))
        return false;
    if (got < bytes)
        return wrong_size(r, "short", bytes, arena_printf(r->arena, "%zu", got));
    return io_get(r->in, &byte, 1, &more, r->d) && (!more || wrong_size(r, "long", bytes, "more"));
}

bool npy_read(struct arena *a, struct io_in *in, struct loaded *out, struct diags *d)
{
    struct reader r = {.name = in->name, .d = d, .arena = a, .in = in};
    struct loaded l = {.name = in->name, .type = DT_VOID};
    bool fortran = false;
    char head[sizeof magic];
    size_t got;
    if (!io_get(in, head, sizeof head, &got, d))
        return false;
    if (got == 0)
        return diag_error(d, SPAN_NONE, "'%s' is empty; an npy file is expected", in->name);
    if (got < sizeof magic || memcmp(head, magic, sizeof magic) != 0)
        return diag_error(
            d, SPAN_NONE,
            "'%s' is not an npy file; raw bytes are read from a file whose name ends in '.bin'",
            in->name);
    if (!get_header(&r) || !read_header(&r, &l, &fortran))
        return false;
    /* one dimension is in both orders */
    if (fortran && l.rank > 1)
        return diag_error(d, SPAN_NONE,
                          "'%s' is in Fortran order; save numpy.ascontiguousarray(x) instead",
                          in->name);
    if (!get_data(&r, &l))
        return false;
    *out = l;
    return true;
}

/* ---- writing ---- */

void npy_write(FILE *f, const struct buffer *b)
{
    enum { FIXED = 10, ALIGN = 64 };
    char text[512];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "{'descr': '%s', 'fortran_order': False, 'shape': (",
                                dtype_npy(b->type));
    for (uint32_t i = 0; i < b->rank; i++) {
        bool packed = dtype_bits(b->type) == 4 && i == b->rank - 1;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%" PRIu64 "%s", i ? " " : "",
                              packed ? b->dim[i] / 2 : b->dim[i],
                              i + 1 < b->rank || b->rank == 1 ? "," : "");
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "), }");
    size_t len = (FIXED + n + 1 + ALIGN - 1) / ALIGN * ALIGN - FIXED;
    unsigned char head[FIXED] = {
        [6] = 1, [8] = (unsigned char)len, [9] = (unsigned char)(len >> 8)};
    memcpy(head, magic, sizeof magic);
    memset(text + n, ' ', len - n);
    text[len - 1] = '\n';
    fwrite(head, 1, FIXED, f);
    fwrite(text, 1, len, f);
    if (b->bytes)
        fwrite(b->data, 1, b->bytes, f);
}
