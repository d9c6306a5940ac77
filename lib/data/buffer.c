#include <config.h>

#include "data/buffer.h"

#include <inttypes.h>
#include <math.h>

#include "base/num.h"

static const uint64_t largest = (uint64_t)1 << 48;

bool buffer_shape(struct buffer *b, enum dtype type, uint32_t rank, const uint64_t *dim)
{
    struct buffer s = {.type = type, .rank = rank, .count = 1};
    bool empty = false;
    if (rank > BUFFER_RANK)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        s.dim[i] = dim[i];
        empty = empty || dim[i] == 0;
        /* without this an empty dimension would hide an absurd one */
        if (dim[i] > largest)
            return false;
    }
    for (uint32_t i = 0; i < rank && !empty; i++)
        if (__builtin_mul_overflow(s.count, dim[i], &s.count) || s.count > largest)
            return false;
    if (empty)
        s.count = 0;
    if (dtype_bits(type) == 4 && (rank == 0 || dim[rank - 1] % 2))
        return false;
    s.bytes = dtype_bytes(type, s.count);
    if (s.bytes > largest)
        return false;
    *b = s;
    return true;
}

void buffer_alloc(struct arena *a, struct buffer *b, const char *name)
{
    arena_purpose(a, name);
    b->data = arena_alloc(a, b->bytes);
    arena_purpose(a, NULL);
}

static void summarise_ints(const struct buffer *b, struct buffer_summary *s)
{
    bool is_unsigned = dtype_class(b->type) != DTC_I;
    double sum = 0;
    for (uint64_t i = 0; i < b->count; i++) {
        int64_t v = dtype_get_int(b->type, b->data, i);
        sum += is_unsigned ? (double)(uint64_t)v : (double)v;
        bool below = is_unsigned ? (uint64_t)v < (uint64_t)s->imin : v < s->imin;
        bool above = is_unsigned ? (uint64_t)v > (uint64_t)s->imax : v > s->imax;
        if (i == 0 || below)
            s->imin = v;
        if (i == 0 || above)
            s->imax = v;
    }
    if (b->count == 0)
        return;
    s->min = is_unsigned ? (double)(uint64_t)s->imin : (double)s->imin;
    s->max = is_unsigned ? (double)(uint64_t)s->imax : (double)s->imax;
    s->mean = sum / (double)b->count;
}

static void summarise_floats(const struct buffer *b, struct buffer_summary *s)
{
    enum { BATCH = 256 };
    double sum = 0, v[BATCH];
    for (uint64_t at = 0; at < b->count; at += BATCH) {
        size_t n = b->count - at < BATCH ? (size_t)(b->count - at) : BATCH;
        dtype_load(b->type, b->data, at, n, v);
        for (size_t k = 0; k < n; k++) {
            if (!isfinite(v[k])) {
                s->nan += isnan(v[k]) != 0;
                s->inf += isinf(v[k]) != 0;
                continue;
            }
            sum += v[k];
            s->min = s->min <= v[k] ? s->min : v[k];
            s->max = s->max >= v[k] ? s->max : v[k];
        }
    }
    if (b->count > s->nan + s->inf)
        s->mean = sum / (double)(b->count - s->nan - s->inf);
}

struct buffer_summary buffer_summarise(const struct buffer *b)
{
    struct buffer_summary s = {
        .count = b->count, .min = (double)NAN, .max = (double)NAN, .mean = (double)NAN};
    if (dtype_is_float(b->type))
        summarise_floats(b, &s);
    else
        summarise_ints(b, &s);
    return s;
}

void shape_print(uint32_t rank, const uint64_t *dim, struct buf *out)
{
    buf_putc(out, '[');
    for (uint32_t i = 0; i < rank; i++)
        buf_printf(out, "%s%" PRIu64, i ? ", " : "", dim[i]);
    buf_putc(out, ']');
}

void buffer_print_type(const struct buffer *b, struct buf *out)
{
    buf_puts(out, dtype_name(b->type));
    shape_print(b->rank, b->dim, out);
}

static void print_int(enum dtype t, int64_t v, struct buf *out)
{
    if (dtype_class(t) == DTC_I)
        buf_printf(out, "%" PRId64, v);
    else
        buf_printf(out, "%" PRIu64, (uint64_t)v);
}

/* The shortest decimal that rounds to v in type t. */
static void print_float(enum dtype t, double v, struct buf *out)
{
    char text[32];
    double back = 0;
    if (t == DT_F64 || isnan(v) || isinf(v)) {
        buf_puts(out, num_print(v, text));
        return;
    }
    for (int digits = 1; digits <= 9; digits++) {
        num_print_digits(v, digits, text);
        if (num_double(text, strlen(text), &back) == NUM_OK && dtype_round(t, back) == v)
            break;
    }
    buf_puts(out, text);
}

void buffer_print_element(const struct buffer *b, uint64_t i, struct buf *out)
{
    if (dtype_is_float(b->type))
        print_float(b->type, dtype_get(b->type, b->data, i), out);
    else
        print_int(b->type, dtype_get_int(b->type, b->data, i), out);
}

void buffer_print_summary(const struct buffer *b, struct buf *out)
{
    enum { SHOWN = 6 };
    struct buffer_summary s = buffer_summarise(b);
    uint64_t shown = b->count <= SHOWN + 1 ? b->count : SHOWN;
    buffer_print_type(b, out);
    buf_putc(out, ' ');
    for (uint64_t i = 0; i < shown; i++) {
        buf_putc(out, ' ');
        buffer_print_element(b, i, out);
    }
    if (shown < b->count)
        buf_puts(out, " ...");
    if (b->count == 0) {
        buf_puts(out, " empty");
        return;
    }
    if (dtype_is_float(b->type)) {
        if (s.nan + s.inf < s.count) {
            buf_puts(out, "  min ");
            print_float(b->type, s.min, out);
            buf_puts(out, " max ");
            print_float(b->type, s.max, out);
            buf_printf(out, " mean %.6g", s.mean);
        } else {
            buf_puts(out, " ");
        }
        buf_printf(out, " nan %" PRIu64 " inf %" PRIu64, s.nan, s.inf);
    } else {
        buf_puts(out, "  min ");
        print_int(b->type, s.imin, out);
        buf_puts(out, " max ");
        print_int(b->type, s.imax, out);
        buf_printf(out, " mean %.6g", s.mean);
    }
}
