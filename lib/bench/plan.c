#include <config.h>

#include "bench/plan.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/num.h"
#include "bench/blas.h"
#include "bench/convolution.h"
#include "bench/report.h"

static void dims_text(struct buf *out, const char *what, const struct device_dim *d)
{
    buf_printf(out, ", %s %" PRIu32, what, d->x);
    if (d->y != 1 || d->z != 1)
        buf_printf(out, "x%" PRIu32, d->y);
    if (d->z != 1)
        buf_printf(out, "x%" PRIu32, d->z);
}

static const char *size_text(struct arena *a, uint64_t bytes)
{
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    char digits[32];
    double v = (double)bytes;
    size_t k = 0;
    for (; v >= 1024 && k < 4; k++)
        v /= 1024;
    return arena_printf(a, "%s %s", num_print_digits(v, 4, digits), unit[k]);
}

static bool is_library(const struct bench_rival *who)
{
    return who->ops != &rival_kernel && who->ops != &rival_copy;
}

/* What cuDNN is asked for, as a line; NULL and *why: nothing. */
static const char *cudnn_asked(const struct bench_plan *p, struct arena *a, const char **why)
{
    const struct attention_at at = {a, p->code->spec, p->point, NULL};
    struct buf text = buf_in(a);
    if (rival_cudnn_convolves(a, p->code->spec, p->point)) {
        const struct convolution x = convolution_find(&at);
        *why = x.why;
        if (!x.why)
            convolution_text(&x, &text);
    } else {
        const struct attention x = attention_find(&at);
        *why = x.why;
        if (!x.why)
            attention_text(&x, &text);
    }
    return *why ? NULL : buf_text(&text);
}

static void cudnn_text(const struct bench_plan *p, struct buf *out)
{
    const char *values = bench_point_text(out->arena, p->point), *why;
    const char *asked = cudnn_asked(p, out->arena, &why);
    buf_printf(out, "%s: %s%s%s\n", p->who->name, p->code->spec->name, *values ? " " : "", values);
    if (asked)
        buf_puts(out, asked);
    else
        buf_printf(out, "  nothing: %s\n", why);
}

static void library_text(const struct bench_plan *p, struct buf *out)
{
    struct arena *a = out->arena;
    const char *values = bench_point_text(a, p->point);
    struct blas_requests r = blas_requests_of(a, p->who->ops, p->code->spec, p->point);
    buf_printf(out, "%s: %s%s%s%s%s\n", p->who->name, p->code->spec->name, *values ? " " : "",
               values, r.note ? ": " : "", r.note ? r.note : "");
    blas_requests_text(p->who->ops, &r, out);
    if (r.why)
        buf_printf(out, "  nothing: %s\n", r.why);
    if (p->who->ops != &rival_cublas_unfused || r.why)
        return;
    struct diags *d = diags_new(a);
    const struct source *rest = blas_rest_of(a, p->kernel, p->point, d);
    buf_puts(out, rest ? "  then\n" : "  nothing: the spec has nothing but the product\n");
    for (const char *line = rest ? rest->text : ""; *line;) {
        size_t n = strcspn(line, "\n");
        buf_printf(out, "    %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

void bench_plan_text(const struct bench_plan *p, struct buf *out)
{
    struct arena *a = out->arena;
    const struct code *c = p->code;
    const char *values = bench_point_text(a, p->point);
    if (is_library(p->who)) {
        (p->who->ops == &rival_cudnn ? cudnn_text : library_text)(p, out);
        return;
    }
    buf_printf(out, "%s: %s%s%s (%s, %s): %s in buffers, %s moved\n", p->who->name, c->spec->name,
               *values ? " " : "", values, p->who->source.generic ? "generic" : "fixed",
               p->who->source.target->name, size_text(a, c->footprint), size_text(a, c->bytes));
    for (size_t i = 0; i < c->plan.n; i++) {
        const struct device_launch *l = &c->plan.v[i].l;
        buf_printf(out, "  %s", l->entry);
        dims_text(out, "grid", &l->grid);
        dims_text(out, "block", &l->block);
        if (l->cluster.x)
            dims_text(out, "cluster", &l->cluster);
        if (l->shared_bytes)
            buf_printf(out, ", %" PRIu32 " bytes of shared memory", l->shared_bytes);
        buf_putc(out, '\n');
    }
    if (c->plan.n == 0)
        buf_puts(out, "  nothing is launched\n");
    if (p->ptx)
        buf_printf(out, "  %s\n", p->ptx);
}

/* ---- JSON ---- */

static void json_dims(struct json *j, const char *key, const struct device_dim *d)
{
    json_array(j, key);
    json_uint(j, NULL, d->x);
    json_uint(j, NULL, d->y);
    json_uint(j, NULL, d->z);
    json_end(j);
}

static void json_shape(struct json *j, const struct buffer *b)
{
    json_array(j, "shape");
    for (uint32_t k = 0; k < b->rank; k++)
        json_uint(j, NULL, b->dim[k]);
    json_end(j);
}

/* An argument's value as a number; floats as such. */
static void json_value(struct json *j, enum dtype t, const uint64_t *value)
{
    if (dtype_is_float(t))
        json_double(j, "value", dtype_get(t, value, 0));
    else if (t == DT_U64)
        json_uint(j, "value", *value);
    else
        json_int(j, "value", dtype_get_int(t, value, 0));
}

static void json_corner(struct json *j, const char *name, const int32_t *v, unsigned n)
{
    json_array(j, name);
    for (unsigned i = 0; i < n; i++)
        json_int(j, NULL, v[i]);
    json_end(j);
}

static void json_map(struct json *j, const struct plan_map *p)
{
    const struct device_tensor_map *m = &p->m;
    json_object(j, NULL);
    json_str(j, "kind", "map");
    json_str(j, "name", p->src->sym->name);
    json_str(j, "type", m->tf32 ? "tf32" : dtype_name(m->type));
    json_uint(j, "at", p->at);
    json_array(j, "dims");
    for (unsigned i = 0; i < m->rank; i++)
        json_uint(j, NULL, m->dim[i]);
    json_end(j);
    json_array(j, "strides");
    for (unsigned i = 1; i < m->rank; i++)
        json_uint(j, NULL, m->stride[i]);
    json_end(j);
    json_array(j, "box");
    for (unsigned i = 0; i < (m->im2col ? 2 : m->rank); i++)
        json_uint(j, NULL, m->box[i]);
    json_end(j);
    if (m->im2col) {
        json_corner(j, "lower", m->lower, m->rank - 2);
        json_corner(j, "upper", m->upper, m->rank - 2);
    }
    json_array(j, "steps");
    for (unsigned i = 0; i < m->rank; i++)
        json_uint(j, NULL, m->step[i]);
    json_end(j);
    json_uint(j, "swizzle", m->swizzle);
    json_uint(j, "interleave", m->interleave);
    json_uint(j, "promote", m->promotion);
    json_str(j, "fill", m->nan_fill ? "nan" : "zero");
    json_end(j);
}

static void json_arg(struct json *j, const struct code *c, const struct contract_arg *arg,
                     const uint64_t *value)
{
    const struct run *r = c->run;
    size_t i = 0;
    while (i < run_nbuffer(r) && run_buffer(r, i)->sym != arg->sym)
        i++;
    const struct run_param *p = arg->sym && i < run_nbuffer(r) ? run_buffer(r, i) : NULL;
    bool buffer = p && run_is_buffer(p);
    json_object(j, NULL);
    json_str(j, "kind",
             arg->is_messages           ? "messages"
             : i >= r->nparam && buffer ? "temp"
             : buffer                   ? "buffer"
             : p                        ? "scalar"
             : arg->sym                 ? "dim"
                                        : "computed");
    if (arg->sym)
        json_str(j, "name", arg->sym->name);
    json_str(j, "type", arg->is_messages ? "u64" : dtype_name(arg->type));
    if (buffer)
        json_shape(j, &p->host);
    else if (!arg->is_messages)
        json_value(j, arg->type, value);
    json_end(j);
}

static void json_struct(struct json *j, const struct device_launch *l, size_t i)
{
    const unsigned char *bytes = l->args[i];
    struct buf hex = buf_in(j->out->arena);
    for (size_t k = 0; k < l->arg_bytes[i]; k++)
        buf_printf(&hex, "%02x", bytes[k]);
    json_object(j, NULL);
    json_str(j, "kind", "struct");
    json_uint(j, "bytes", l->arg_bytes[i]);
    json_str(j, "hex", buf_text(&hex));
    json_end(j);
}

static void json_launch(struct json *j, const struct code *c, const struct plan_launch *p)
{
    json_object(j, NULL);
    json_str(j, "entry", p->l.entry);
    json_dims(j, "grid", &p->l.grid);
    json_dims(j, "block", &p->l.block);
    if (p->l.cluster.x)
        json_dims(j, "cluster", &p->l.cluster);
    json_uint(j, "shared", p->l.shared_bytes);
    json_array(j, "args");
    for (size_t i = 0, map = 0; i < p->src->args.n; i++)
        if (p->src->args.v[i].map)
            json_map(j, &p->map[map++]);
        else if (p->src->args.v[i].fields)
            json_struct(j, &p->l, i);
        else
            json_arg(j, c, &p->src->args.v[i], &p->value[i]);
    json_end(j);
    json_end(j);
}

static void json_params(struct json *j, struct code *c)
{
    static const char *const modes[] = {
        [MODE_IN] = "in", [MODE_OUT] = "out", [MODE_INOUT] = "inout"};
    json_array(j, "params");
    for (size_t i = 0; i < c->run->nparam; i++) {
        const struct run_param *p = &c->run->param[i];
        if (!run_is_buffer(p))
            continue;
        json_object(j, NULL);
        json_str(j, "name", p->sym->name);
        json_str(j, "mode", modes[p->sym->mode]);
        json_str(j, "type", dtype_name(p->sym->type));
        json_shape(j, &p->host);
        json_uint(j, "bytes", p->host.bytes);
        /* integers that select elements stay below this */
        for (size_t k = 0; k < c->spec->params.n && spec_oracle(c->spec); k++)
            if (strcmp(c->spec->params.v[k].sym->name, p->sym->name) == 0) {
                struct fill_use use = fill_use_of(&c->in, &c->spec->params.v[k]);
                if (use.subscript)
                    json_uint(j, "below", use.extent);
            }
        json_end(j);
    }
    json_end(j);
}

static void json_temps(struct json *j, const struct run *r)
{
    if (r->ntemp == 0)
        return;
    json_array(j, "temps");
    for (size_t i = 0; i < r->ntemp; i++) {
        json_object(j, NULL);
        json_str(j, "name", r->temp[i].sym->name);
        json_str(j, "type", dtype_name(r->temp[i].sym->type));
        json_shape(j, &r->temp[i].host);
        json_uint(j, "bytes", r->temp[i].host.bytes);
        json_bool(j, "zero", r->contract->temps.v[i].is_zero);
        json_bool(j, "each_run", r->contract->temps.v[i].each_run);
        json_end(j);
    }
    json_end(j);
}

static void json_matrix(struct json *j, const char *name, const struct blas_matrix *m)
{
    json_object(j, name);
    json_str(j, "type", dtype_name(m->type));
    json_bool(j, "swapped", m->swapped);
    json_uint(j, "ld", m->ld);
    json_uint(j, "stride", m->stride);
    json_end(j);
}

static void library_json(const struct bench_plan *p, struct buf *out)
{
    struct blas_requests r = blas_requests_of(out->arena, p->who->ops, p->code->spec, p->point);
    struct json j = json_in(out, 0);
    json_object(&j, NULL);
    json_str(&j, "name", p->who->name);
    json_str(&j, "kernel", p->code->spec->name);
    bench_json_values(&j, p->point);
    if (r.note)
        json_str(&j, "note", r.note);
    if (r.why)
        json_str(&j, "why", r.why);
    json_array(&j, "products");
    for (size_t i = 0; i < r.v.n; i++) {
        const struct blas_product *q = &r.v.v[i].product;
        json_object(&j, NULL);
        json_str(&j, "sums", blas_math_name(q->math));
        json_uint(&j, "batch", q->batch);
        json_uint(&j, "m", q->m);
        json_uint(&j, "n", q->n);
        json_uint(&j, "k", q->k);
        json_matrix(&j, "a", &q->a);
        json_matrix(&j, "b", &q->b);
        json_matrix(&j, "c", &q->c);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    buf_putc(out, '\n');
}

static void cudnn_json(const struct bench_plan *p, struct buf *out)
{
    struct json j = json_in(out, 0);
    const char *why, *asked = cudnn_asked(p, out->arena, &why);
    json_object(&j, NULL);
    json_str(&j, "name", p->who->name);
    json_str(&j, "kernel", p->code->spec->name);
    bench_json_values(&j, p->point);
    if (why)
        json_str(&j, "why", why);
    else
        json_str(&j, "asked", arena_strndup(out->arena, asked + 2, strlen(asked) - 3));
    json_end(&j);
    buf_putc(out, '\n');
}

void bench_plan_json(const struct bench_plan *p, struct buf *out)
{
    struct code *c = p->code;
    if (is_library(p->who)) {
        (p->who->ops == &rival_cudnn ? cudnn_json : library_json)(p, out);
        return;
    }
    struct json j = json_in(out, 0);
    json_object(&j, NULL);
    json_str(&j, "name", p->who->name);
    json_str(&j, "kernel", c->spec->name);
    json_str(&j, "spec", c->spec->src->name);
    if (p->point->case_name)
        json_str(&j, "case", p->point->case_name);
    json_str(&j, "target", p->who->source.target->name);
    json_str(&j, "code", p->who->source.generic ? "generic" : "fixed");
    bench_json_values(&j, p->point);
    json_uint(&j, "bytes", c->bytes);
    json_double(&j, "operations", bench_operations(out->arena, c->spec, p->point, NULL));
    json_params(&j, c);
    json_temps(&j, c->run);
    json_array(&j, "launches");
    for (size_t i = 0; i < c->plan.n; i++)
        json_launch(&j, c, &c->plan.v[i]);
    json_end(&j);
    if (p->ptx)
        json_str(&j, "ptx", p->ptx);
    json_end(&j);
    buf_putc(out, '\n');
}
