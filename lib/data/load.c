#include <config.h>

#include "data/load.h"

#include <inttypes.h>

#include "base/io.h"
#include "data/npy.h"
#include "data/safetensors.h"

static bool ends_with(const char *s, size_t n, const char *tail)
{
    size_t t = strlen(tail);
    return n >= t && memcmp(s + n - t, tail, t) == 0;
}

bool save_is_raw(const char *path)
{
    size_t n = strlen(path);
    return ends_with(path, n, ".bin") || ends_with(path, n, ".raw");
}

/* "w.safetensors#name": where the '#' is. */
static const char *tensor_mark(const char *path)
{
    for (const char *p = strchr(path, '#'); p; p = strchr(p + 1, '#'))
        if (ends_with(path, (size_t)(p - path), ".safetensors"))
            return p;
    return NULL;
}

const char *load_path(struct arena *a, const char *path)
{
    const char *mark = tensor_mark(path);
    return mark ? arena_strndup(a, path, (size_t)(mark - path)) : path;
}

bool load_file(struct arena *a, const char *path, struct loaded *out, struct diags *d)
{
    const char *mark = tensor_mark(path), *file = load_path(a, path);
    if (!mark && ends_with(path, strlen(path), ".safetensors"))
        return diag_error(d, SPAN_NONE, "'%s' holds many tensors; name one: '%s#NAME'", path, path);
    struct io_in *in = io_open(a, d, file);
    if (!in)
        return false;
    if (!mark && save_is_raw(path)) {
        *out = (struct loaded){
            .name = in->name, .raw = true, .type = DT_VOID, .in = in, .bytes = (size_t)in->left};
        return true;
    }
    const bool good = mark ? safetensors_read(a, in, arena_strdup(a, path), mark + 1, out, d)
                           : npy_read(a, in, out, d);
    io_close(in);
    return good;
}

/* What a terminal would take for a command is shown as bytes. */
static const char *shown(struct arena *a, const char *name)
{
    struct buf out = buf_in(a);
    for (; *name; name++)
        if ((unsigned char)*name < 0x20 || *name == 0x7f)
            buf_printf(&out, "\\x%02x", (unsigned char)*name);
        else
            buf_putc(&out, *name);
    return buf_text(&out);
}

bool load_list(struct arena *a, const char *path, struct buf *out, struct diags *d)
{
    struct io_in *in = io_open(a, d, path);
    struct safetensors all;
    size_t width = 0;
    const bool good = in && safetensors_header(a, in, &all, d);
    io_close(in);
    if (!good)
        return false;
    for (size_t i = 0; i < all.v.n; i++) {
        all.v.v[i].name = shown(a, all.v.v[i].name);
        const size_t len = strlen(all.v.v[i].name);
        width = len > width ? len : width;
    }
    for (size_t i = 0; i < all.v.n; i++) {
        const struct safetensor *t = &all.v.v[i];
        buf_printf(out, "%-*s  %s", (int)width, t->name, t->dtype);
        shape_print(t->rank, t->dim, out);
        buf_printf(out, "  %" PRIu64 " bytes\n", t->range[1] - t->range[0]);
    }
    return true;
}

/* One byte more than is needed tells that there are too many. */
static bool get_raw(struct arena *a, struct loaded *l, size_t need, struct diags *d)
{
    char more;
    size_t got = 0, rest = 0;
    arena_purpose(a, l->name);
    unsigned char *data = arena_alloc(a, need);
    arena_purpose(a, NULL);
    if (!io_get(l->in, data, need, &got, d) || (got == need && !io_get(l->in, &more, 1, &rest, d)))
        return false;
    l->bytes = got + rest;
    l->data = l->bytes == need ? data : NULL;
    return true;
}

bool load_raw(struct arena *a, struct loaded *l, size_t need, struct diags *d)
{
    bool good = true;
    const bool known = l->in->left != IO_UNKNOWN;
    if (need == LOAD_ALL && !known)
        good = diag_error(d, SPAN_NONE,
                          "'%s' is no regular file, and nothing says how many bytes are needed",
                          l->name);
    else if (!known || need == LOAD_ALL || need == l->in->left)
        good = get_raw(a, l, need == LOAD_ALL ? (size_t)l->in->left : need, d);
    io_close(l->in);
    l->in = NULL;
    return good;
}

/* ml_dtypes' int4: an element to a byte. */
static bool pack_nibbles(struct arena *a, const struct loaded *l, enum dtype want,
                         struct buffer *out)
{
    if (!buffer_shape(out, want, l->rank, l->dim))
        return false;
    buffer_alloc(a, out, l->name);
    for (uint64_t i = 0; i < out->count; i++)
        dtype_set_int(want, out->data, i, l->data[i] & 15);
    return true;
}

bool loaded_as(struct arena *a, const struct loaded *l, enum dtype want, struct buffer *out)
{
    uint64_t dim[BUFFER_RANK];
    bool integer = l->type != DT_VOID && dtype_is_int(l->type);
    unsigned bits = dtype_bits(want);
    memcpy(dim, l->dim, sizeof dim);
    if (l->raw)
        return false;
    if (bits == 4) {
        if (l->opaque && l->size == 1 && (l->type == DT_VOID || l->type == want))
            return pack_nibbles(a, l, want, out);
        if (!integer || l->size != 1 || l->opaque || l->rank == 0 ||
            __builtin_mul_overflow(dim[l->rank - 1], (uint64_t)2, &dim[l->rank - 1]))
            return false;
    } else if (l->type != want) {
        bool disguised = want == DT_BF16 || dtype_is_fp8(want);
        if (!disguised || l->size * 8 != bits || !(integer || (l->opaque && l->type == DT_VOID)))
            return false;
    }
    if (!buffer_shape(out, want, l->rank, dim) || out->bytes != l->bytes)
        return false;
    /* the arena owns the contents and nobody else reads them, so the buffer may be written */
    out->data = (void *)(uintptr_t)l->data;
    return true;
}

enum dtype loaded_type(const struct loaded *l)
{
    if (l->type != DT_VOID || !l->opaque)
        return l->type;
    return l->size == 1 ? DT_U8 : l->size == 2 ? DT_U16 : DT_VOID;
}

void loaded_print(const struct loaded *l, struct buf *out)
{
    if (l->raw) {
        buf_printf(out, "%zu raw bytes", l->bytes);
        return;
    }
    buf_puts(out, l->type_name);
    shape_print(l->rank, l->dim, out);
}

void save_buffer(FILE *f, bool raw, const struct buffer *b)
{
    if (!raw)
        npy_write(f, b);
    else if (b->bytes)
        fwrite(b->data, 1, b->bytes, f);
}
