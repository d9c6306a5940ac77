/* Values of dimensions and scalars, shapes of buffers, requirements. */
#include <config.h>

#include "run/run.h"

#include <inttypes.h>
#include <math.h>

#include "run/plan.h"

struct run *run_new(struct arena *a, const struct contract *c, struct diags *d)
{
    struct run *r = ARENA_NEW(a, struct run);
    r->arena = a;
    r->d = d;
    r->contract = c;
    r->multiprocessors = RUN_MULTIPROCESSORS;
    r->nparam = c->params.n;
    r->ndim = c->dims.n;
    r->ntemp = c->temps.n;
    r->param = ARENA_ARRAY(a, r->nparam, struct run_param);
    r->temp = ARENA_ARRAY(a, r->ntemp, struct run_param);
    r->dim = ARENA_ARRAY(a, r->ndim, struct run_dim);
    for (size_t i = 0; i < r->nparam; i++) {
        r->param[i].decl = &c->params.v[i];
        r->param[i].sym = c->params.v[i].sym;
    }
    for (size_t i = 0; i < r->ntemp; i++)
        r->temp[i].sym = c->temps.v[i].sym;
    for (size_t i = 0; i < r->ndim; i++) {
        struct lang_symbol *s = c->dims.v[i];
        r->dim[i] = (struct run_dim){.sym = s, .known = s->has_value, .value = (int64_t)s->value};
        if (s->has_value)
            r->dim[i].from =
                arena_printf(a, "%s is fixed at %" PRIu64 " in this PTX", s->name, s->value);
    }
    return r;
}

struct run_param *run_find_param(struct run *r, const char *name)
{
    for (size_t i = 0; i < r->nparam; i++)
        if (strcmp(r->param[i].sym->name, name) == 0)
            return &r->param[i];
    return NULL;
}

struct run_dim *run_find_dim(struct run *r, const char *name)
{
    for (size_t i = 0; i < r->ndim; i++)
        if (strcmp(r->dim[i].sym->name, name) == 0)
            return &r->dim[i];
    return NULL;
}

/* ---- evaluation ---- */

static bool lookup(void *ctx, const struct lang_symbol *sym, double *f, int64_t *i)
{
    struct run *r = ctx;
    if (sym == &lang_multiprocessors) {
        *i = r->multiprocessors;
        return true;
    }
    for (size_t k = 0; k < r->nloop; k++)
        if (r->loop[k].sym == sym) {
            *i = r->loop[k].value;
            return true;
        }
    for (size_t k = 0; k < r->ndim; k++)
        if (r->dim[k].sym == sym) {
            *i = r->dim[k].value;
            *f = (double)*i;
            return r->dim[k].known;
        }
    for (size_t k = 0; k < r->nparam; k++)
        if (r->param[k].sym == sym) {
            *f = r->param[k].f;
            *i = r->param[k].i;
            return !run_is_buffer(&r->param[k]) && r->param[k].given;
        }
    return false;
}

bool run_eval(struct run *r, const struct lang_expr *e, int64_t *value)
{
    return lang_eval_int(e, lookup, r, value, r->d);
}

bool run_dim_value(struct run *r, const struct lang_symbol *sym, int64_t *value)
{
    const struct run_dim *dim = run_find_dim(r, sym->name);
    if (!dim && sym->of)
        return run_eval(r, sym->of, value);
    *value = dim ? dim->value : 0;
    return true;
}

bool run_eval_real(struct run *r, const struct lang_expr *e, double *value)
{
    return lang_eval_real(e, lookup, r, value, r->d);
}

/* A scalar's value as text. */
static void print_scalar(const struct run_param *p, struct buf *out)
{
    unsigned char bytes[8] = {0};
    struct buffer b = {.type = p->sym->type, .count = 1, .data = bytes};
    if (dtype_is_float(b.type))
        dtype_set(b.type, bytes, 0, p->f);
    else
        dtype_set_int(b.type, bytes, 0, p->i);
    buffer_print_element(&b, 0, out);
}

/* The value of a loop's index. */
static void print_index(const struct run *r, const struct lang_symbol *sym, struct buf *out)
{
    for (size_t k = 0; k < r->nloop; k++)
        if (r->loop[k].sym == sym)
            buf_printf(out, "%" PRId64, r->loop[k].value);
}

static void list_values(struct run *r, const struct lang_expr *e, struct buf *out,
                        const struct lang_symbol **seen, size_t *nseen)
{
    enum { MOST = 8 };
    const struct lang_symbol *sym = e->kind == E_NAME      ? e->sym
                                    : e->kind == E_SPECIAL ? &lang_multiprocessors
                                                           : NULL;
    if (sym && *nseen < MOST) {
        for (size_t i = 0; i < *nseen; i++)
            if (seen[i] == sym)
                return;
        seen[(*nseen)++] = sym;
        buf_printf(out, "%s%s", *nseen > 1 ? " and " : "", sym->name);
        if (sym->of)
            buf_printf(out, ", %s,", lang_expr_text(r->arena, sym->of));
        buf_puts(out, " is ");
        struct run_dim *dim = run_find_dim(r, sym->name);
        struct run_param *p = run_find_param(r, sym->name);
        int64_t v = 0;
        if (e->kind == E_SPECIAL)
            buf_printf(out, "%u", r->multiprocessors);
        else if (sym->of && run_eval(r, sym->of, &v))
            buf_printf(out, "%" PRId64, v);
        else if (dim)
            buf_printf(out, "%" PRId64, dim->value);
        else if (p)
            print_scalar(p, out);
        else
            print_index(r, sym, out);
    }
    if (sym && sym->of)
        list_values(r, sym->of, out, seen, nseen);
    for (uint32_t i = 0; i < e->nargs; i++)
        list_values(r, e->args[i], out, seen, nseen);
}

const char *run_values_text(struct run *r, const struct lang_expr *e)
{
    struct buf out = buf_in(r->arena);
    const struct lang_symbol *seen[8];
    size_t n = 0;
    list_values(r, e, &out, seen, &n);
    return buf_text(&out);
}

static const char *expr_text(struct run *r, const struct lang_expr *e)
{
    struct buf out = buf_in(r->arena);
    lang_print_expr(e, &out);
    return buf_text(&out);
}

/* "h - k is -1, h is 2 and k is 3", as far as there is more to say than the number. */
static const char *result_text(struct run *r, const struct lang_expr *e, int64_t v)
{
    const char *number = arena_printf(r->arena, "%" PRId64, v), *text = expr_text(r, e);
    const char *values = run_values_text(r, e);
    if (strcmp(text, number) == 0)
        return number;
    return arena_printf(r->arena, "%s is %s%s%s", text, number, *values ? ", " : "", values);
}

const char *run_type_text(struct run *r, const struct run_param *p)
{
    struct buf out = buf_in(r->arena);
    buf_puts(&out, dtype_name(p->sym->type));
    if (run_is_buffer(p)) {
        buf_putc(&out, '[');
        for (uint32_t i = 0; i < p->sym->rank; i++) {
            buf_puts(&out, i ? ", " : "");
            lang_print_expr(p->sym->dims[i], &out);
        }
        buf_putc(&out, ']');
    }
    return buf_text(&out);
}

static const char *shape_text(struct run *r, const struct buffer *b)
{
    struct buf out = buf_in(r->arena);
    buffer_print_type(b, &out);
    return buf_text(&out);
}

/* ---- binding ---- */

bool run_bind_dim(struct run *r, struct run_dim *dim, int64_t value, const char *from)
{
    if (value < 0 || value > UINT32_MAX)
        return diag_error(r->d, SPAN_NONE, "%s, which is not between 0 and %" PRIu32, from,
                          UINT32_MAX);
    if (dim->known && dim->value != value)
        return diag_error(r->d, SPAN_NONE, "%s, but %s", dim->from, from);
    if (!dim->known)
        dim->from = from;
    dim->known = true;
    dim->value = value;
    return true;
}

bool run_bind_scalar(struct run *r, struct run_param *p, double f, int64_t i)
{
    const char *name = p->sym->name;
    enum dtype t = p->sym->type;
    if (dtype_is_float(t)) {
        double rounded = dtype_round(t, f);
        if (isnan(f))
            return diag_error(r->d, SPAN_NONE, "%s is NaN", name);
        if (isinf(rounded) && !isinf(f))
            return diag_error(r->d, SPAN_NONE, "%s is %g; the largest %s is %g", name, f,
                              dtype_name(t), dtype_max(t));
        p->f = rounded;
        p->i = 0;
    } else {
        bool in = dtype_class(t) == DTC_I ? i >= dtype_imin(t) && i <= (int64_t)dtype_imax(t)
                                          : (uint64_t)i <= dtype_imax(t);
        if (!in)
            return diag_error(r->d, SPAN_NONE, "%s is outside the range of %s", name,
                              dtype_name(t));
        p->i = i;
        p->f = dtype_class(t) == DTC_I ? (double)i : (double)(uint64_t)i;
    }
    p->given = true;
    return true;
}

/* A dimension that is a plain name, or NULL. */
static const struct lang_symbol *plain_name(const struct lang_expr *e)
{
    while (e->kind == E_CAST && e->is_implicit)
        e = e->args[0];
    return e->kind == E_NAME && e->sym->kind == SYM_DIM ? e->sym : NULL;
}

static bool mentions(const struct lang_expr *e, const struct lang_symbol *sym)
{
    bool has = e->kind == E_NAME && (e->sym == sym || (e->sym->of && mentions(e->sym->of, sym)));
    for (uint32_t i = 0; i < e->nargs && !has; i++)
        has = mentions(e->args[i], sym);
    return has;
}

/* An extent as a * x + b of one dimension x. */
struct linear {
    const struct run_dim *x;
    bool any; /* other dimensions need no value: only whether the extent is linear in x is asked */
    int64_t a, b;
};

static bool linear(struct run *r, const struct lang_expr *e, struct linear *l);

static bool linear_product(const struct linear *y, const struct linear *z, struct linear *l)
{
    int64_t ab, ba;
    if (y->a && z->a)
        return false;
    return !__builtin_mul_overflow(y->a, z->b, &ab) && !__builtin_mul_overflow(y->b, z->a, &ba) &&
           !__builtin_add_overflow(ab, ba, &l->a) && !__builtin_mul_overflow(y->b, z->b, &l->b);
}

static bool linear_binary(struct run *r, const struct lang_expr *e, struct linear *l)
{
    struct linear y = *l, z = *l;
    if (!linear(r, e->args[0], &y) || !linear(r, e->args[1], &z))
        return false;
    switch ((int)e->op) {
    case OP_ADD:
        return !__builtin_add_overflow(y.a, z.a, &l->a) && !__builtin_add_overflow(y.b, z.b, &l->b);
    case OP_SUB:
        return !__builtin_sub_overflow(y.a, z.a, &l->a) && !__builtin_sub_overflow(y.b, z.b, &l->b);
    case OP_MUL: return linear_product(&y, &z, l);
    default: return false;
    }
}

static bool linear_name(struct run *r, const struct lang_symbol *sym, struct linear *l)
{
    const struct run_dim *dim = sym->kind == SYM_DIM ? run_find_dim(r, sym->name) : NULL;
    const struct run_param *p = sym->kind == SYM_SCALAR ? run_find_param(r, sym->name) : NULL;
    if (sym->of)
        return linear(r, sym->of, l);
    if (p) {
        l->b = p->given ? p->i : 1;
        return p->given || l->any;
    }
    l->a = dim && dim == l->x;
    l->b = dim && dim != l->x ? (dim->known ? dim->value : 1) : 0;
    return dim && (dim == l->x || dim->known || l->any);
}

static bool linear(struct run *r, const struct lang_expr *e, struct linear *l)
{
    l->a = 0;
    switch ((int)e->kind) {
    case E_CAST: return linear(r, e->args[0], l);
    case E_INT: l->b = (int64_t)e->ival; return e->ival <= INT64_MAX;
    case E_NAME: return linear_name(r, e->sym, l);
    case E_BINARY: return linear_binary(r, e, l);
    default: return false;
    }
}

/* The one dimension of an extent that has no value yet; NULL: there is none, or there are more. */
static struct run_dim *unknown_of(struct run *r, const struct lang_expr *e)
{
    struct run_dim *found = NULL;
    for (size_t i = 0; i < r->ndim; i++)
        if (!r->dim[i].known && mentions(e, r->dim[i].sym)) {
            if (found)
                return NULL;
            found = &r->dim[i];
        }
    return found;
}

/* A dimension from an extent of a given buffer that is linear in it: rows, of rows + 1. found: one
 * was. */
static bool solve_extent(struct run *r, const struct run_param *p, uint32_t k, bool *found)
{
    const struct lang_expr *e = p->sym->dims[k];
    const int64_t extent = (int64_t)p->host.dim[k];
    struct run_dim *x = unknown_of(r, e);
    struct linear l = {.x = x};
    int64_t rest;
    if (!x || !linear(r, e, &l) || l.a == 0 || __builtin_sub_overflow(extent, l.b, &rest) ||
        rest == INT64_MIN)
        return true;
    const char *shape = shape_text(r, &p->host), *text = expr_text(r, e), *name = x->sym->name;
    *found = true;
    if (rest % l.a != 0 || rest / l.a < 0)
        return diag_error(r->d, SPAN_NONE, "%s is %s, and no %s makes %s be %" PRId64, p->sym->name,
                          shape, name, text, extent);
    return run_bind_dim(r, x, rest / l.a,
                        arena_printf(r->arena, "%s is %s, so %s is %" PRId64 " and %s is %" PRId64,
                                     p->sym->name, shape, text, extent, name, rest / l.a));
}

/* All that follow from the buffers given, also where one needs another. */
static bool solve_dims(struct run *r)
{
    for (bool found = true; found;) {
        found = false;
        for (size_t i = 0; i < r->nparam; i++)
            for (uint32_t k = 0; r->param[i].given && k < r->param[i].host.rank; k++)
                if (!solve_extent(r, &r->param[i], k, &found))
                    return false;
    }
    return true;
}

bool run_bind_buffer(struct run *r, struct run_param *p, const struct buffer *b)
{
    const char *name = p->sym->name, *shape = shape_text(r, b);
    if (b->type != p->sym->type || b->rank != p->sym->rank)
        return diag_error(r->d, SPAN_NONE, "%s is %s, the kernel declares %s", name, shape,
                          run_type_text(r, p));
    p->host = *b;
    p->given = true;
    for (uint32_t k = 0; k < b->rank; k++) {
        const struct lang_symbol *sym = plain_name(p->sym->dims[k]);
        struct run_dim *dim = sym ? run_find_dim(r, sym->name) : NULL;
        if (!dim)
            continue;
        const char *from = arena_printf(r->arena, "%s is %s, so %s is %" PRIu64, name, shape,
                                        sym->name, b->dim[k]);
        if (!run_bind_dim(r, dim, b->dim[k] > INT64_MAX ? INT64_MAX : (int64_t)b->dim[k], from))
            return false;
    }
    return true;
}

/* ---- settling ---- */

/* Whether a file for a buffer tells the value of a dimension. */
static bool tells(struct run *r, const struct run_param *p, const struct run_dim *dim)
{
    for (uint32_t k = 0; run_is_buffer(p) && k < p->sym->rank; k++) {
        struct linear l = {.x = dim, .any = true};
        if (linear(r, p->sym->dims[k], &l) && l.a != 0)
            return true;
    }
    return false;
}

static bool unknown_dim(struct run *r, const struct run_dim *dim)
{
    struct buf names = buf_in(r->arena);
    for (size_t i = 0; i < r->nparam; i++)
        if (run_is_input(&r->param[i]) && tells(r, &r->param[i], dim))
            buf_printf(&names, "%s%s", names.len ? " or " : "", r->param[i].sym->name);
    if (names.len)
        return diag_error(r->d, SPAN_NONE,
                          "dimension %s is not known; give %s=..., or an npy file for %s",
                          dim->sym->name, dim->sym->name, buf_text(&names));
    return diag_error(r->d, SPAN_NONE, "dimension %s is not known; give %s=...", dim->sym->name,
                      dim->sym->name);
}

/* The value of a default, which is a constant expression. */
static bool constant(const struct lang_expr *e, double *f, int64_t *i)
{
    switch (e->kind) {
    case E_FLOAT: *f = e->fval; return true;
    case E_INT:
    case E_BOOL:
        *i = (int64_t)e->ival;
        *f = dtype_class(e->type) == DTC_U ? (double)e->ival : (double)*i;
        return true;
    case E_CAST: return constant(e->args[0], f, i);
    case E_UNARY:
        if (e->op != OP_NEG || !constant(e->args[0], f, i))
            return false;
        *f = -*f;
        *i = (int64_t)(0 - (uint64_t)*i);
        return true;
    default: return false;
    }
}

static bool settle_scalar(struct run *r, struct run_param *p)
{
    double f = 0;
    int64_t i = 0;
    if (p->given)
        return true;
    if (!p->decl->value)
        return diag_error(r->d, SPAN_NONE, "%s is not given; give %s=VALUE, a number of type %s",
                          p->sym->name, p->sym->name, dtype_name(p->sym->type));
    if (!constant(p->decl->value, &f, &i))
        return diag_error(r->d, p->decl->value->span, "the default of %s is not a constant",
                          p->sym->name);
    return run_bind_scalar(r, p, f, i);
}

/* ": oh, h - r + 1, is 4 and h is 6 and r is 3", of derived dimensions; else "". */
static const char *derived_text(struct run *r, const struct run_param *p)
{
    for (uint32_t k = 0; k < p->sym->rank; k++)
        for (size_t i = 0; i < r->contract->derived.n; i++)
            if (mentions(p->sym->dims[k], r->contract->derived.v[i]))
                return arena_printf(r->arena, ": %s", run_values_text(r, p->sym->dims[k]));
    return "";
}

static bool settle_derived(struct run *r)
{
    for (size_t i = 0; i < r->contract->derived.n; i++) {
        const struct lang_symbol *sym = r->contract->derived.v[i];
        int64_t v;
        if (!run_eval(r, sym->of, &v))
            return false;
        if (v < 0 || v > UINT32_MAX)
            return diag_error(r->d, SPAN_NONE, "%s is not between 0 and %" PRIu32 ": %s", sym->name,
                              UINT32_MAX, result_text(r, sym->of, v));
    }
    return true;
}

static bool settle_buffer(struct run *r, struct run_param *p)
{
    uint64_t dim[BUFFER_RANK];
    struct buffer b = {0};
    const char *name = p->sym->name;
    if (p->sym->rank > BUFFER_RANK)
        return diag_error(r->d, p->sym->span, "%s has more than %d dimensions", name, BUFFER_RANK);
    for (uint32_t k = 0; k < p->sym->rank; k++) {
        int64_t v;
        if (!run_eval(r, p->sym->dims[k], &v))
            return false;
        if (v < 0)
            return diag_error(r->d, SPAN_NONE, "%s has a negative dimension: %s", name,
                              result_text(r, p->sym->dims[k], v));
        dim[k] = (uint64_t)v;
    }
    if (!buffer_shape(&b, p->sym->type, p->sym->rank, dim)) {
        struct buf shape = buf_in(r->arena);
        bool packed = dtype_bits(p->sym->type) == 4;
        shape_print(p->sym->rank, dim, &shape);
        return diag_error(r->d, SPAN_NONE, "%s cannot be %s%s: %s", name, dtype_name(p->sym->type),
                          buf_text(&shape),
                          packed ? "the last dimension of a packed type is even"
                                 : "it does not fit in memory");
    }
    if (p->given && memcmp(b.dim, p->host.dim, sizeof b.dim) != 0)
        return diag_error(r->d, SPAN_NONE, "%s is %s, the kernel declares %s, which is %s here%s",
                          name, shape_text(r, &p->host), run_type_text(r, p), shape_text(r, &b),
                          derived_text(r, p));
    b.data = p->host.data;
    p->host = b;
    return true;
}

bool run_shapes(struct run *r)
{
    bool good = true;
    for (size_t i = 0; i < r->nparam && good; i++) /* by which dimensions may be known */
        if (!run_is_buffer(&r->param[i]) && r->param[i].decl->value)
            good = settle_scalar(r, &r->param[i]);
    if (!good || !solve_dims(r))
        return false;
    for (size_t i = 0; i < r->ndim; i++)
        if (!r->dim[i].known)
            good = unknown_dim(r, &r->dim[i]);
    for (size_t i = 0; i < r->nparam; i++)
        if (!run_is_buffer(&r->param[i]))
            good = settle_scalar(r, &r->param[i]) && good;
    if (!good || !settle_derived(r))
        return false;
    for (size_t i = 0; i < r->nparam; i++)
        if (run_is_buffer(&r->param[i]))
            good = settle_buffer(r, &r->param[i]) && good;
    for (size_t i = 0; i < r->ntemp && good; i++)
        good = settle_buffer(r, &r->temp[i]);
    for (size_t i = 0; i < r->contract->require.n && good; i++) {
        const struct lang_expr *e = r->contract->require.v[i];
        int64_t holds;
        if (!run_eval(r, e, &holds))
            return false;
        const char *values = run_values_text(r, e);
        if (!holds)
            good = diag_error(r->d, SPAN_NONE, "the kernel requires %s, %s%s", expr_text(r, e),
                              *values ? "but " : "which never holds", values);
    }
    return good;
}

static bool sum_value(struct run *r, const struct lang_expr *e, const char *what, uint64_t *value)
{
    int64_t v = 0;
    if (*value != RUN_NOT_GIVEN)
        return true;
    *value = 0;
    if (!e)
        return true;
    if (!run_eval(r, e, &v))
        return false;
    if (v < 0)
        return diag_error(r->d, SPAN_NONE, "the %s of the sums is negative: %s", what,
                          result_text(r, e, v));
    *value = (uint64_t)v;
    return true;
}

bool run_sums(struct run *r, const struct spec_sums *given, struct spec_sums *sums)
{
    const struct contract *c = r->contract;
    *sums = given ? *given
                  : (struct spec_sums){RUN_NOT_GIVEN, RUN_NOT_GIVEN, RUN_NOT_GIVEN, RUN_NOT_GIVEN};
    bool told = sums->depth == RUN_NOT_GIVEN && c->depth;
    if (!sum_value(r, c->depth, "depth", &sums->depth) ||
        !sum_value(r, c->truncation, "truncation", &sums->truncation) ||
        !sum_value(r, c->products, "products' error", &sums->products) ||
        !sum_value(r, c->weights, "weights' range", &sums->weights))
        return false;
    if (told && !sums->depth)
        sums->depth = 1; /* sums of one term */
    return true;
}
