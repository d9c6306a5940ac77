/* Tensor maps among a launch's arguments. */
#include <config.h>

#include "spec/contract_int.h"

#include <inttypes.h>

#include "base/num.h"

static bool read_buffer(struct contract_reader *r, const struct yaml_value *v,
                        struct contract_map *m)
{
    const char *name = NULL;
    if (!contract_word(r, v, "map", false, &name))
        return false;
    if (!name)
        return diag_error(
            r->d, v->span,
            "an argument in braces is a tensor map or a struct, {map: BUFFER, box: [...]}");
    m->sym = contract_symbol(r->c, name);
    if (!m->sym)
        return diag_error(r->d, yaml_get(v, "map")->span, "no buffer is called '%s'", name);
    if (m->sym->kind != SYM_BUFFER)
        return diag_error(r->d, yaml_get(v, "map")->span,
                          "'%s' is no buffer; only a buffer has a tensor map", name);
    return true;
}

static bool read_type(struct contract_reader *r, const struct yaml_value *v, struct contract_map *m)
{
    const struct yaml_value *at = yaml_get(v, "type");
    const char *type = NULL;
    m->type = m->sym->type;
    if (!contract_word(r, v, "type", false, &type))
        return false;
    m->tf32 = type && strcmp(type, "tf32") == 0;
    if (m->tf32)
        m->type = DT_F32;
    else if (type && !dtype_parse(type, strlen(type), &m->type))
        return diag_error(r->d, at->span, "'%s' is not a type", type);
    if (dtype_bits(m->type) < 8)
        return diag_error(r->d, at ? at->span : v->span,
                          "a tensor map has no elements of %u bits; write type: u8, and dims in "
                          "bytes",
                          dtype_bits(m->type));
    if (dtype_bits(m->type) != dtype_bits(m->sym->type) && !yaml_get(v, "dims"))
        return diag_error(
            r->d, at->span, "'%s' has elements of %u bits, and %s has %u; write dims as well",
            m->sym->name, dtype_bits(m->sym->type), dtype_name(m->type), dtype_bits(m->type));
    return true;
}

/* As many integers as there are between low and high; *n of them. A missing key is none. */
static bool read_list(struct contract_reader *r, const struct yaml_value *map, const char *key,
                      struct lang_expr **out, uint32_t *n)
{
    const struct yaml_value *v = yaml_get(map, key);
    span_list list = {0};
    *n = 0;
    if (!v)
        return true;
    if (!text_list(r->a, v, key, &list, r->d))
        return false;
    if (list.n > CONTRACT_MAP_RANK)
        return diag_error(r->d, v->span, "'%s' has %zu numbers; a tensor has up to %d dimensions",
                          key, list.n, CONTRACT_MAP_RANK);
    for (; *n < list.n; ++*n)
        if (!(out[*n] = contract_integer(r, list.v[*n])))
            return false;
    return true;
}

/* The buffer's extents, innermost first. */
static bool take_shape(struct contract_reader *r, const struct yaml_value *v,
                       struct contract_map *m)
{
    uint32_t rank = m->sym->rank;
    if (rank < 1 || rank > CONTRACT_MAP_RANK)
        return diag_error(r->d, v->span,
                          "'%s' has %" PRIu32
                          " dimensions, a tensor map 1 to %d; write its dims as well",
                          m->sym->name, rank, CONTRACT_MAP_RANK);
    for (uint32_t i = 0; i < rank; i++)
        m->dim[i] = m->sym->dims[rank - 1 - i];
    m->rank = rank;
    return true;
}

static bool read_shape(struct contract_reader *r, const struct yaml_value *v,
                       struct contract_map *m)
{
    const struct yaml_value *strides = yaml_get(v, "strides");
    uint32_t n;
    if (!read_list(r, v, "dims", m->dim, &m->rank))
        return false;
    if (yaml_get(v, "dims") && m->rank == 0)
        return diag_error(r->d, yaml_get(v, "dims")->span, "a tensor map has a dimension at least");
    if (m->rank == 0 && !take_shape(r, v, m))
        return false;
    struct lang_expr *stride[CONTRACT_MAP_RANK];
    if (!read_list(r, v, "strides", stride, &n))
        return false;
    if (strides && n != m->rank - 1)
        return diag_error(r->d, strides->span,
                          "there are %" PRIu32 " dimensions, so there are %" PRIu32
                          " strides, not %" PRIu32 ": the innermost has none",
                          m->rank, m->rank - 1, n);
    for (uint32_t i = 0; i < n; i++)
        m->stride[i + 1] = stride[i];
    return true;
}

/* A list with one number for each of `rank` dimensions; those that are known are in their range. */
static bool read_window(struct contract_reader *r, const struct yaml_value *v, const char *key,
                        struct lang_expr **out, uint32_t rank, int least, int most)
{
    const struct yaml_value *at = yaml_get(v, key);
    uint32_t n;
    int64_t known;
    if (!read_list(r, v, key, out, &n))
        return false;
    if (at && n != rank)
        return diag_error(r->d, at->span,
                          "'%s' has %" PRIu32 " numbers for the %" PRIu32 " dimensions of %s", key,
                          n, rank, least < 1 ? "pixels" : "the tensor");
    for (uint32_t i = 0; i < n; i++)
        if (lang_const_int(out[i], &known) && (known < least || known > most))
            return diag_error(r->d, out[i]->span, "this is %d to %d, not %" PRId64, least, most,
                              known);
    return true;
}

/* box: of pixels, their channels and how many there are. */
static bool read_pixels(struct contract_reader *r, const struct yaml_value *v,
                        struct contract_map *m)
{
    enum { CHANNELS = 256, PIXELS = 1024, CORNER = 32768 };
    const struct yaml_value *at = yaml_get(v, "box");
    static const int most[] = {CHANNELS, PIXELS};
    uint32_t n;
    int64_t known;
    if (m->rank < 3)
        return diag_error(
            r->d, v->span,
            "a tensor of pixels has channels, 1 to 3 dimensions of pixels and images, "
            "and this has %" PRIu32 " dimensions",
            m->rank);
    if (!read_list(r, v, "box", m->box, &n))
        return false;
    if (n != 2)
        return diag_error(
            r->d, at->span,
            "'box' has %" PRIu32 " numbers; of a map with corners it is channels and pixels", n);
    for (uint32_t i = 0; i < n; i++)
        if (lang_const_int(m->box[i], &known) && (known < 1 || known > most[i]))
            return diag_error(r->d, m->box[i]->span, "this is 1 to %d, not %" PRId64, most[i],
                              known);
    return read_window(r, v, "lower", m->lower, m->rank - 2, -CORNER, CORNER - 1) &&
           read_window(r, v, "upper", m->upper, m->rank - 2, -CORNER, CORNER - 1);
}

/* box: of a tensor, or of the pixels that windows begin at. */
static bool read_box(struct contract_reader *r, const struct yaml_value *v, struct contract_map *m)
{
    const struct yaml_value *lower = yaml_get(v, "lower"), *upper = yaml_get(v, "upper");
    if (!yaml_get(v, "box"))
        return diag_error(r->d, v->span, "this map has no box, the elements that a copy moves");
    if (!lower != !upper)
        return diag_error(r->d, (lower ? lower : upper)->span,
                          "a map of pixels has two corners, 'lower' and 'upper'");
    m->im2col = lower != NULL;
    return m->im2col ? read_pixels(r, v, m) : read_window(r, v, "box", m->box, m->rank, 1, 256);
}

/* One of four numbers of bytes; 0 when the key is missing. */
static bool read_bytes(struct contract_reader *r, const struct yaml_value *map, const char *key,
                       const unsigned choices[4], unsigned *out)
{
    const struct yaml_value *v = yaml_get(map, key);
    struct buf all = buf_in(r->a);
    int64_t n = 0;
    if (!v)
        return true;
    bool is = v->kind == YAML_SCALAR && num_int(v->text, v->len, 0, 1024, &n) == NUM_OK;
    for (int i = 0; i < 4; i++) {
        if (is && choices[i] == n) {
            *out = (unsigned)n;
            return true;
        }
        if (i == 0 || choices[i])
            buf_printf(&all, "%s%u",
                       i == 0                      ? ""
                       : i == 3 || !choices[i + 1] ? " or "
                                                   : ", ",
                       choices[i]);
    }
    return diag_error(r->d, v->span, "'%s' is %s, a number of bytes", key, buf_text(&all));
}

static bool read_fill(struct contract_reader *r, const struct yaml_value *v, struct contract_map *m)
{
    const char *fill = "zero";
    if (!contract_word(r, v, "fill", false, &fill))
        return false;
    m->nan_fill = strcmp(fill, "nan") == 0;
    if (!m->nan_fill && strcmp(fill, "zero") != 0)
        return diag_error(r->d, yaml_get(v, "fill")->span, "'fill' is zero or nan");
    if (m->nan_fill && (!dtype_is_float(m->type) || dtype_bits(m->type) < 16))
        return diag_error(r->d, yaml_get(v, "fill")->span,
                          "only floats of 16 bits and more are filled with nan, not %s",
                          dtype_name(m->type));
    return true;
}

bool contract_read_map(struct contract_reader *r, const struct yaml_value *v,
                       struct contract_map **out)
{
    static const char *const keys[] = {"map",        "type",    "at",    "dims",  "strides",
                                       "box",        "lower",   "upper", "steps", "swizzle",
                                       "interleave", "promote", "fill",  NULL};
    static const unsigned swizzle[4] = {0, 32, 64, 128}, interleave[4] = {0, 16, 32, 0},
                          promote[4] = {0, 64, 128, 256};
    const struct yaml_value *at = yaml_get(v, "at");
    struct contract_map *m = ARENA_NEW(r->a, struct contract_map);
    struct span text;
    m->span = v->span;
    *out = m;
    if (!contract_only_keys(r, v, keys) || !read_buffer(r, v, m) || !read_type(r, v, m) ||
        !read_shape(r, v, m))
        return false;
    if (at && (!text_span(at, "at", &text, r->d) || !(m->at = contract_integer(r, text))))
        return false;
    return read_box(r, v, m) && read_window(r, v, "steps", m->step, m->rank, 1, 8) &&
           read_bytes(r, v, "swizzle", swizzle, &m->swizzle) &&
           read_bytes(r, v, "interleave", interleave, &m->interleave) &&
           read_bytes(r, v, "promote", promote, &m->promote) && read_fill(r, v, m);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Are the dimensions those of the buffer? */
static bool has_shape(const struct contract_map *m, struct arena *a)
{
    bool same = m->rank == m->sym->rank && dtype_bits(m->type) == dtype_bits(m->sym->type);
    for (uint32_t i = 0; i < m->rank && same; i++)
        same = strcmp(lang_expr_text(a, m->dim[i]),
                      lang_expr_text(a, m->sym->dims[m->rank - 1 - i])) == 0;
    return same;
}

static void write_list(const char *key, struct lang_expr *const *e, uint32_t n,
                       struct contract_names *w, struct buf *out)
{
    buf_printf(out, ", %s: [", key);
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(out, i ? ", " : "");
        contract_write_expr(e[i], w, false, out);
    }
    buf_putc(out, ']');
}

void contract_write_map(const struct contract_map *m, struct contract_names *w, struct buf *out)
{
    buf_printf(out, "{map: %s", m->sym->name);
    if (m->tf32 || m->type != m->sym->type)
        buf_printf(out, ", type: %s", m->tf32 ? "tf32" : dtype_name(m->type));
    if (m->at) {
        buf_puts(out, ", at: ");
        contract_write_expr(m->at, w, true, out);
    }
    if (!has_shape(m, out->arena))
        write_list("dims", m->dim, m->rank, w, out);
    if (m->rank > 1 && m->stride[1])
        write_list("strides", m->stride + 1, m->rank - 1, w, out);
    write_list("box", m->box, m->im2col ? 2 : m->rank, w, out);
    if (m->im2col) {
        write_list("lower", m->lower, m->rank - 2, w, out);
        write_list("upper", m->upper, m->rank - 2, w, out);
    }
    if (m->step[0])
        write_list("steps", m->step, m->rank, w, out);
    if (m->swizzle)
        buf_printf(out, ", swizzle: %u", m->swizzle);
    if (m->interleave)
        buf_printf(out, ", interleave: %u", m->interleave);
    if (m->promote)
        buf_printf(out, ", promote: %u", m->promote);
    buf_puts(out, m->nan_fill ? ", fill: nan}" : "}");
}
