#include <config.h>

#include "run/view.h"

#include <inttypes.h>

#include "base/num.h"
#include "base/parallel.h"

static const char transposed[] = "::T";
enum { TRANSPOSED = sizeof transposed - 1 };

/* ---- text ---- */

static bool ends_with(const char *s, size_t n, const char *tail)
{
    const size_t t = strlen(tail);
    return n >= t && memcmp(s + n - t, tail, t) == 0;
}

/* Where the brackets at the end of a name of n bytes begin, if they hold what a shape may; n: there
 * are none. */
static size_t brackets(const char *s, size_t n)
{
    size_t at = n;
    if (n == 0 || s[n - 1] != ']')
        return n;
    for (at = n - 1; at > 0 && s[at] != '['; at--)
        ;
    if (at == 0)
        return n;
    for (size_t i = at + 1; i < n - 1; i++)
        if (!strchr("0123456789,- ", s[i])) {
            /* behind the end of a name they can be nothing else */
            const bool named = ends_with(s, at, ".npy") || ends_with(s, at, ".bin") ||
                               ends_with(s, at, ".raw");
            return named ? at : n;
        }
    return at;
}

size_t view_source(const char *value)
{
    const char *colon = strrchr(value, ':');
    for (const char *p = strstr(value, transposed); p; p = strstr(p + 1, transposed))
        if (p[TRANSPOSED] == '\0' || p[TRANSPOSED] == ':')
            return (size_t)(p + TRANSPOSED - value);
    return colon ? (size_t)(colon - value) : strlen(value);
}

bool view_is_behind(const char *path)
{
    const size_t n = strlen(path), at = brackets(path, n);
    return ends_with(path, n, transposed) ||
           (at < n && (ends_with(path, at, ".npy") || ends_with(path, at, ".bin") ||
                       ends_with(path, at, ".raw")));
}

static bool no_shape(const char *name, const char *text, struct diags *d)
{
    return diag_error(d, SPAN_NONE,
                      "%s: '%s' is no shape: it is 1 to %d whole numbers, of which one may be -1",
                      name, text, BUFFER_RANK);
}

/* "[2,3,-1]" */
static bool parse_shape(const char *name, const char *text, struct view *v, struct diags *d)
{
    unsigned open = 0;
    for (const char *p = text + 1; *p;) {
        const size_t blank = strspn(p, " "), len = strcspn(p, ",]");
        size_t n = len - (blank < len ? blank : len);
        while (n && p[blank + n - 1] == ' ')
            n--;
        if (v->rank == BUFFER_RANK || n == 0 ||
            num_int(p + blank, n, -1, (int64_t)1 << 48, &v->dim[v->rank]) != NUM_OK)
            return no_shape(name, text, d);
        open += v->dim[v->rank++] < 0;
        p += len + 1;
    }
    return open < 2 || no_shape(name, text, d);
}

bool view_parse(struct arena *a, const char *name, const char *text, struct view *v,
                struct diags *d)
{
    size_t n = strlen(text);
    *v = (struct view){.text = text, .transposed = ends_with(text, n, transposed)};
    if (v->transposed)
        n -= TRANSPOSED;
    const size_t at = brackets(text, n);
    v->shaped = at < n;
    v->file = arena_strndup(a, text, at);
    if (ends_with(text, at, transposed))
        return diag_error(d, SPAN_NONE, "%s: in '%s' the shape comes first, then one ::T", name,
                          text);
    return !v->shaped || parse_shape(name, arena_strndup(a, text + at, n - at), v, d);
}

/* ---- shape ---- */

bool view_shape(const struct view *v, const char *name, enum dtype type, uint64_t count,
                struct buffer *b, struct diags *d)
{
    uint64_t dim[BUFFER_RANK], known = 1;
    bool over = false;
    for (uint32_t i = 0; i < v->rank; i++) {
        dim[i] = (uint64_t)v->dim[i];
        if (v->dim[i] >= 0)
            over = over || __builtin_mul_overflow(known, dim[i], &known);
    }
    for (uint32_t i = 0; i < v->rank && !over; i++)
        if (v->dim[i] < 0) {
            dim[i] = known ? count / known : 0;
            known = known ? dim[i] * known : UINT64_MAX;
        }
    if (over || known != count)
        return diag_error(d, SPAN_NONE,
                          "%s: '%s' has %" PRIu64 " elements, which is not that shape", name,
                          v->text, count);
    return buffer_shape(b, type, v->rank, dim) ||
           diag_error(d, SPAN_NONE, "%s: '%s' can't have that shape in %s", name, v->text,
                      dtype_name(type));
}

/* ---- axes in reverse order ---- */

struct turning {
    const struct buffer *from;
    struct buffer *to;
    uint64_t stride[BUFFER_RANK]; /* elements of from, by axis of to */
};

static void move(const struct turning *t, uint64_t from, uint64_t to)
{
    const unsigned bits = dtype_bits(t->to->type), bytes = bits / 8;
    if (bits < 8)
        dtype_set_int(t->to->type, t->to->data, to,
                      dtype_get_int(t->from->type, t->from->data, from));
    else
        memcpy((char *)t->to->data + to * bytes, (const char *)t->from->data + from * bytes, bytes);
}

/* The elements begin to end of the result. */
static void turn(void *ctx, uint64_t begin, uint64_t end)
{
    const struct turning *t = ctx;
    const struct buffer *to = t->to;
    uint64_t index[BUFFER_RANK], rest = begin, from = 0;
    for (uint32_t i = to->rank; i-- > 0; rest /= to->dim[i]) {
        index[i] = rest % to->dim[i];
        from += index[i] * t->stride[i];
    }
    for (uint64_t at = begin; at < end; at++) {
        move(t, from, at);
        for (uint32_t i = to->rank; i-- > 0;) {
            from += t->stride[i];
            if (++index[i] < to->dim[i])
                break;
            from -= index[i] * t->stride[i];
            index[i] = 0;
        }
    }
}

static bool transpose(struct arena *a, const struct view *v, const char *name, struct buffer *b,
                      struct diags *d)
{
    enum { GRAIN = 1 << 16 }; /* even, so that no byte of packed elements is two threads' */
    struct buffer to;
    uint64_t dim[BUFFER_RANK], stride = 1;
    struct turning t = {.from = b, .to = &to};
    for (uint32_t i = 0; i < b->rank; i++)
        dim[i] = b->dim[b->rank - 1 - i];
    if (!buffer_shape(&to, b->type, b->rank, dim))
        return diag_error(d, SPAN_NONE, "%s: '%s' would have an odd last dimension, in %s", name,
                          v->text, dtype_name(b->type));
    for (uint32_t i = 0; i < b->rank; i++) {
        t.stride[i] = stride;
        stride *= dim[i];
    }
    buffer_alloc(a, &to, name);
    parallel_for(to.count, GRAIN, turn, &t);
    *b = to;
    return true;
}

bool view_apply(struct arena *a, const struct view *v, const char *name, struct buffer *b,
                struct diags *d)
{
    struct buffer shaped;
    if (v->shaped) {
        if (!view_shape(v, name, b->type, b->count, &shaped, d))
            return false;
        shaped.data = b->data;
        *b = shaped;
    }
    return !v->transposed || transpose(a, v, name, b, d);
}
