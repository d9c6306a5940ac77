/* Tensor maps among the arguments of launches. */
#include <config.h>

#include "run/plan.h"

#include <inttypes.h>

#include "run/tensor_map.h"

enum { BASE = 4096 }; /* an address as buffers have */

/* A number of the map between low and high. */
static bool number(struct run *r, const struct lang_expr *e, int64_t low, int64_t high,
                   int64_t *value)
{
    if (!run_eval(r, e, value))
        return false;
    if (*value >= low && *value <= high)
        return true;
    const char *values = run_values_text(r, e);
    return diag_error(r->d, e->span,
                      "this is %" PRId64 "; it must be %" PRId64 " to %" PRId64 "%s%s", *value, low,
                      high, *values ? "; " : "", values);
}

/* Bytes that an index of the innermost dimension counts. */
static uint64_t unit_of(const struct device_tensor_map *m)
{
    return m->interleave ? m->interleave : dtype_bytes(m->type, 1);
}

static bool read_tensor(struct run *r, const struct contract_map *src, struct device_tensor_map *m)
{
    int64_t v;
    m->stride[0] = dtype_bytes(m->type, 1);
    for (uint32_t i = 0; i < m->rank; i++) {
        if (!number(r, src->dim[i], 0, INT64_C(1) << 32, &v))
            return false;
        m->dim[i] = (uint64_t)v;
    }
    for (uint32_t i = 1; i < m->rank; i++) {
        v = 0;
        if (src->stride[i] && !number(r, src->stride[i], 0, (INT64_C(1) << 40) - 1, &v))
            return false;
        m->stride[i] = (uint64_t)v;
        uint64_t below = i == 1 ? unit_of(m) : m->stride[i - 1];
        if (!src->stride[i] && __builtin_mul_overflow(below, m->dim[i - 1], &m->stride[i]))
            m->stride[i] = UINT64_MAX; /* too much for any buffer */
    }
    return true;
}

/* Where windows of pixels begin. */
static bool read_corners(struct run *r, const struct contract_map *src, struct device_tensor_map *m)
{
    int64_t v;
    for (uint32_t i = 0; src->im2col && i + 2 < m->rank; i++) {
        if (!number(r, src->lower[i], INT16_MIN, INT16_MAX, &v))
            return false;
        m->lower[i] = (int32_t)v;
        if (!number(r, src->upper[i], INT16_MIN, INT16_MAX, &v))
            return false;
        m->upper[i] = (int32_t)v;
    }
    return true;
}

static bool read_window(struct run *r, const struct contract_map *src, struct device_tensor_map *m)
{
    int64_t v;
    for (uint32_t i = 0; i < m->rank; i++) {
        v = 1;
        if (src->box[i] && !number(r, src->box[i], 1, src->im2col && i ? 1024 : 256, &v))
            return false;
        m->box[i] = (uint32_t)v;
        v = 1;
        if (src->step[i] && !number(r, src->step[i], 1, 8, &v))
            return false;
        m->step[i] = (uint32_t)v;
    }
    return true;
}

static const struct run_param *buffer_of(const struct run *r, const struct plan_map *p)
{
    return run_buffer(r, (size_t)plan_buffer(r, p->src->sym));
}

/* What no device has a map for: one of the same rank, of an element behind the buffer, where a copy
 * through it is found. */
static bool make_up_empty(struct run *r, struct plan_map *p)
{
    enum { ALIGNED = 32 };
    struct device_tensor_map *m = &p->m;
    bool empty = false;
    for (uint32_t i = 0; i < m->rank; i++)
        empty |= m->dim[i] == 0;
    for (uint32_t i = 0; i < m->rank && empty; i++) {
        m->dim[i] = 1;
        m->stride[i] = i ? ALIGNED : m->stride[0];
    }
    for (uint32_t i = 0; i < DEVICE_TENSOR_SPACE && empty; i++)
        m->lower[i] = m->upper[i] = 0;
    if (empty)
        p->at = (buffer_of(r, p)->host.bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    return empty;
}

/* The tensor lies inside of its buffer. */
static bool check_inside(struct run *r, const struct plan_map *p)
{
    const struct device_tensor_map *m = &p->m;
    const struct run_param *b = buffer_of(r, p);
    uint64_t end, step;
    bool in = !__builtin_add_overflow(p->at, unit_of(m), &end);
    for (uint32_t i = 0; i < m->rank && in; i++)
        in = !__builtin_mul_overflow(m->dim[i] - 1, i ? m->stride[i] : unit_of(m), &step) &&
             !__builtin_add_overflow(end, step, &end);
    if (in && end <= b->host.bytes)
        return true;
    return diag_error(
        r->d, p->src->span, "the tensor of this map has its end at byte %s of '%s', which has %zu",
        in ? arena_printf(r->arena, "%" PRIu64, end) : "2^64 or more", b->sym->name, b->host.bytes);
}

static void list(struct buf *out, const char *what, unsigned n, const uint64_t *v)
{
    buf_printf(out, "%s[", what);
    for (unsigned i = 0; i < n; i++)
        buf_printf(out, "%s%" PRIu64, i ? ", " : "", v[i]);
    buf_putc(out, ']');
}

/* What the rules of tensor maps say, and the numbers that they say it of. */
static bool check_rules(struct run *r, const struct plan_map *p)
{
    struct device_tensor_map m = p->m;
    struct buf text = buf_in(r->arena);
    uint64_t box[DEVICE_TENSOR_RANK];
    m.address = BASE + p->at;
    if (device_tensor_map_check(&m, p->src->sym->name, p->src->span, r->d))
        return true;
    for (unsigned i = 0; i < m.rank; i++)
        box[i] = m.box[i];
    list(&text, "dims ", m.rank, m.dim);
    if (m.rank > 1)
        list(&text, ", strides ", m.rank - 1, m.stride + 1);
    list(&text, ", box ", m.im2col ? 2 : m.rank, box);
    diag_note(r->d, SPAN_NONE, "it is a tensor of %s, %s", m.tf32 ? "tf32" : dtype_name(m.type),
              buf_text(&text));
    return false;
}

static bool read_map(struct run *r, const struct contract_map *src, struct plan_map *p)
{
    int64_t at = 0;
    *p = (struct plan_map){.src = src,
                           .m = {.type = src->type,
                                 .tf32 = src->tf32,
                                 .rank = src->rank,
                                 .swizzle = src->swizzle,
                                 .interleave = src->interleave,
                                 .promotion = src->promote,
                                 .nan_fill = src->nan_fill,
                                 .im2col = src->im2col}};
    if (!read_tensor(r, src, &p->m) || !read_window(r, src, &p->m) ||
        !read_corners(r, src, &p->m) || (src->at && !number(r, src->at, 0, INT64_MAX, &at)))
        return false;
    if (at % 16)
        return diag_error(r->d, src->at->span,
                          "a tensor begins at a multiple of 16 bytes, not at %" PRId64, at);
    p->at = (uint64_t)at;
    if (make_up_empty(r, p))
        return check_rules(r, p);
    return check_inside(r, p) && check_rules(r, p);
}

static size_t count_maps(const struct contract_arg *v, size_t n)
{
    size_t maps = 0;
    for (size_t i = 0; i < n; i++)
        maps += v[i].fields ? count_maps(v[i].fields->args.v, v[i].fields->args.n)
                            : v[i].map != NULL;
    return maps;
}

static bool read_maps(struct run *r, const struct contract_arg *v, size_t n, struct plan_launch *p)
{
    for (size_t i = 0; i < n; i++) {
        const struct contract_struct *s = v[i].fields;
        if ((s && !read_maps(r, s->args.v, s->args.n, p)) ||
            (v[i].map && !read_map(r, v[i].map, &p->map[p->nmap++])))
            return false;
    }
    return true;
}

bool plan_read_maps(struct run *r, const struct contract_launch *src, struct plan_launch *p)
{
    p->map = ARENA_ARRAY(r->arena, count_maps(src->args.v, src->args.n), struct plan_map);
    return read_maps(r, src->args.v, src->args.n, p);
}

enum device_status plan_maps(struct plan *plan, const struct device_ops *ops, struct device *dev,
                             struct diags *d)
{
    enum device_status status = DEVICE_OK;
    for (size_t i = 0; i < plan->n; i++)
        for (size_t k = 0; k < plan->v[i].nmap && status == DEVICE_OK; k++) {
            struct plan_map *p = &plan->v[i].map[k];
            if (!ops->tensor_map) {
                diag_error(d, p->src->span, "this device has no tensor maps");
                return DEVICE_REFUSED;
            }
            status = ops->tensor_map(dev, &p->m, p->bytes, d);
            if (p->member)
                memcpy(p->member, p->bytes, sizeof p->bytes);
        }
    return status;
}
