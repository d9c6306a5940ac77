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

bool load_file(struct arena *a, const char *path, struct loaded *out, struct diags *d)
{
    const char *mark = tensor_mark(path);
    const char *file = mark ? arena_strndup(a, path, (size_t)(mark - path)) : path;
    if (!mark && ends_with(path, strlen(path), ".safetensors"))
        return diag_error(d, SPAN_NONE, "'%s' holds many tensors; name one: '%s#NAME'", path, path);
    const struct source *s = io_read(a, d, file, SIZE_MAX / 4);
    if (!s)
        return false;
    if (mark)
        return safetensors_parse(a, s->text, s->len, path, mark + 1, out, d);
    if (save_is_raw(path)) {
        *out = (struct loaded){.name = s->name,
                               .raw = true,
                               .type = DT_VOID,
                               .data = (const unsigned char *)s->text,
                               .bytes = s->len};
        return true;
    }
    if (s->len == 0)
        return diag_error(d, SPAN_NONE, "'%s' is empty; an npy file is expected", s->name);
    if (!npy_begins(s->text, s->len))
        return diag_error(
            d, SPAN_NONE,
            "'%s' is not an npy file; raw bytes are read from a file whose name ends in '.bin'",
            s->name);
    return npy_parse(s->text, s->len, s->name, out, d);
}

/* ml_dtypes' int4: an element to a byte. */
static bool pack_nibbles(struct arena *a, const struct loaded *l, enum dtype want,
                         struct buffer *out)
{
    if (!buffer_shape(out, want, l->rank, l->dim))
        return false;
    buffer_alloc(a, out);
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
        bool disguised = want == DT_BF16 || want == DT_E4M3 || want == DT_E5M2;
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
