#include <config.h>

#include "run/args.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "base/io.h"
#include "base/num.h"
#include "data/generate.h"
#include "data/load.h"
#include "run/keep.h"
#include "run/view.h"

/* Where an input's contents come from, until its shape is known. */
enum source_kind { SOURCE_NONE, SOURCE_DONE, SOURCE_MADE, SOURCE_RAW, SOURCE_MEMORY };

struct input {
    enum source_kind kind;
    struct generator made;
    struct loaded raw;
    const struct run_arg *arg;
};

struct binder {
    struct run *r;
    struct input *input; /* by parameter */
    bool *seen_param, *seen_dim;
    const char *stdin_user; /* what reads standard input; NULL: nothing yet */
};

/* ---- names ---- */

bool run_arg_split(struct arena *a, const char *word, struct run_arg *arg)
{
    const char *eq = strchr(word, '=');
    bool good = eq && eq > word && !isdigit((unsigned char)word[0]);
    for (const char *p = word; good && p < eq; p++)
        good = isalnum((unsigned char)*p) || *p == '_';
    if (good)
        *arg =
            (struct run_arg){.name = arena_strndup(a, word, (size_t)(eq - word)), .value = eq + 1};
    return good;
}

static bool unknown_name(struct binder *b, const struct run_arg *arg)
{
    struct run *r = b->r;
    const char **names = ARENA_ARRAY(r->arena, r->nparam + r->ndim + 1, const char *);
    struct buf list = buf_in(r->arena);
    size_t n = 0;
    for (size_t i = 0; i < r->nparam && !arg->dim_only; i++)
        names[n++] = r->param[i].sym->name;
    for (size_t i = 0; i < r->ndim; i++)
        names[n++] = r->dim[i].sym->name;
    for (size_t i = 0; i < n; i++)
        buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    const char *near = diag_nearest(arg->name, strlen(arg->name), names);
    for (size_t i = 0; i < r->contract->derived.n; i++) {
        const struct lang_symbol *dim = r->contract->derived.v[i];
        if (strcmp(dim->name, arg->name) == 0)
            return diag_error(r->d, SPAN_NONE, "'%s' is %s and is not given itself; give %s",
                              dim->name, lang_expr_text(r->arena, dim->of),
                              spec_derived_from(r->arena, dim));
    }
    if (near)
        diag_error(r->d, SPAN_NONE, "'%s' has no %s '%s'; did you mean '%s'?", r->contract->kernel,
                   arg->dim_only ? "dimension" : "parameter", arg->name, near);
    else
        diag_error(r->d, SPAN_NONE, "'%s' has no %s '%s'", r->contract->kernel,
                   arg->dim_only ? "dimension" : "parameter", arg->name);
    if (n)
        diag_note(r->d, SPAN_NONE, "it has %s", buf_text(&list));
    enum dtype type;
    if (arg->value && dtype_parse(arg->value, strlen(arg->value), &type))
        diag_note(r->d, SPAN_NONE, "types are chosen at emission: kaio-emit -D %s=%s", arg->name,
                  arg->value);
    return false;
}

static bool once(struct binder *b, bool *seen, const char *name)
{
    if (*seen)
        return diag_error(b->r->d, SPAN_NONE, "%s is given twice", name);
    *seen = true;
    return true;
}

/* ---- dimensions and scalars ---- */

static bool bind_dim(struct binder *b, struct run_dim *dim, const struct run_arg *arg)
{
    uint64_t v;
    enum num_status status = num_uint(arg->value, strlen(arg->value), UINT32_MAX, &v);
    if (status == NUM_SYNTAX)
        return diag_error(b->r->d, SPAN_NONE, "dimension %s is a whole number; '%s' is not",
                          arg->name, arg->value);
    if (status == NUM_RANGE)
        return diag_error(b->r->d, SPAN_NONE,
                          "dimension %s is '%s', which is not between 0 and %" PRIu32, arg->name,
                          arg->value, UINT32_MAX);
    return run_bind_dim(b->r, dim, (int64_t)v,
                        arena_printf(b->r->arena, "%s=%s was given", arg->name, arg->value));
}

static bool parse_scalar(enum dtype t, const char *s, double *f, int64_t *i,
                         enum num_status *status)
{
    size_t len = strlen(s);
    uint64_t u = 0;
    *f = 0;
    *i = 0;
    if (dtype_is_float(t)) {
        *status = num_double(s, len, f);
    } else if (t == DT_BOOL && (strcmp(s, "true") == 0 || strcmp(s, "false") == 0)) {
        *i = s[0] == 't';
        *status = NUM_OK;
    } else if (dtype_class(t) == DTC_I) {
        *status = num_int(s, len, dtype_imin(t), (int64_t)dtype_imax(t), i);
    } else {
        *status = num_uint(s, len, dtype_imax(t), &u);
        *i = (int64_t)u;
    }
    return *status == NUM_OK;
}

static bool bind_scalar(struct binder *b, struct run_param *p, const struct run_arg *arg)
{
    double f;
    int64_t i;
    enum num_status status;
    const char *type = dtype_name(p->sym->type);
    if (parse_scalar(p->sym->type, arg->value, &f, &i, &status))
        return run_bind_scalar(b->r, p, f, i);
    if (status == NUM_RANGE)
        return diag_error(b->r->d, SPAN_NONE, "%s is '%s', which is outside the range of %s",
                          arg->name, arg->value, type);
    return diag_error(b->r->d, SPAN_NONE, "%s takes a value of type %s; '%s' is not", arg->name,
                      type, arg->value);
}

/* ---- buffers ---- */

static bool take_stdin(struct binder *b, const char *name)
{
    if (b->stdin_user)
        return diag_error(b->r->d, SPAN_NONE, "standard input can be read once, by %s or by %s",
                          b->stdin_user, name);
    b->stdin_user = name;
    return true;
}

static bool wrong_type(struct binder *b, const struct run_param *p, const struct loaded *l)
{
    struct buf text = buf_in(b->r->arena);
    loaded_print(l, &text);
    diag_error(b->r->d, SPAN_NONE, "%s is %s, the kernel declares %s", p->sym->name,
               buf_text(&text), run_type_text(b->r, p));
    /* a type that travels in disguise: how */
    if (dtype_bits(p->sym->type) == 4)
        diag_note(b->r->d, SPAN_NONE,
                  "%s is read from uint8, two elements to a byte, the even one in the low nibble",
                  dtype_name(p->sym->type));
    else if (p->sym->type == DT_BF16 || dtype_is_fp8(p->sym->type))
        diag_note(b->r->d, SPAN_NONE, "%s is read from ml_dtypes' own arrays or from %s",
                  dtype_name(p->sym->type), p->sym->type == DT_BF16 ? "uint16" : "uint8");
    return false;
}

/* Raw bytes of which the view says the shape. */
static bool read_shaped(struct binder *b, const struct run_param *p, struct input *in,
                        const struct view *v, struct buffer *out)
{
    struct run *r = b->r;
    const enum dtype t = p->sym->type;
    const size_t left = in->raw.bytes;
    uint64_t count = 1;
    bool open = false, over = false;
    for (uint32_t i = 0; i < v->rank; i++) {
        open = open || v->dim[i] < 0;
        over = over ||
               __builtin_mul_overflow(count, v->dim[i] < 0 ? 1 : (uint64_t)v->dim[i], &count);
    }
    if (open && in->raw.in->left != IO_UNKNOWN)
        count = (uint64_t)left * 8 / dtype_bits(t);
    if (over || (open && in->raw.in->left == IO_UNKNOWN))
        return diag_error(r->d, SPAN_NONE, "%s: nothing says how many elements '%s' has",
                          p->sym->name, v->text);
    if (!view_shape(v, p->sym->name, t, count, out, r->d) ||
        !load_raw(r->arena, &in->raw, out->bytes, r->d))
        return false;
    out->data = (void *)(uintptr_t)in->raw.data; /* only read */
    if (!out->data && in->raw.bytes > out->bytes)
        return diag_error(r->d, SPAN_NONE, "%s has more bytes than the %zu that '%s' takes",
                          in->raw.name, out->bytes, v->text);
    return out->data || diag_error(r->d, SPAN_NONE, "%s has %zu bytes; '%s' takes %zu",
                                   in->raw.name, in->raw.bytes, v->text, out->bytes);
}

static bool read_source(struct binder *b, struct run_param *p, struct input *in, const char *path)
{
    struct run *r = b->r;
    struct buffer buffer;
    struct view v;
    if (!view_parse(r->arena, p->sym->name, path, &v, r->d))
        return false;
    if ((strcmp(v.file, "-") == 0 || (b->stdin_user && io_is_stdin(v.file))) &&
        !take_stdin(b, p->sym->name))
        return false;
    const struct buffer *kept = keep_wish(r, p, path, load_path(r->arena, v.file));
    if (kept && (v.shaped || !save_is_raw(v.file))) {
        in->kind = SOURCE_DONE;
        return run_bind_buffer(r, p, kept);
    }
    if (!load_file(r->arena, v.file, &in->raw, r->d))
        return false;
    if (in->raw.raw && !v.shaped) {
        in->kind = SOURCE_RAW;
        return !v.transposed || diag_error(r->d, SPAN_NONE,
                                           "%s: raw bytes have no axes to reverse; give a shape, "
                                           "as in '%s[2,-1]::T'",
                                           p->sym->name, v.file);
    }
    if (in->raw.raw
            ? !read_shaped(b, p, in, &v, &buffer)
            : !loaded_as(r->arena, &in->raw, p->sym->type, &buffer) && !wrong_type(b, p, &in->raw))
        return false;
    if (!view_apply(r->arena, &v, p->sym->name, &buffer, r->d))
        return false;
    if (buffer.rank != p->sym->rank && !v.shaped)
        return wrong_type(b, p, &in->raw);
    in->kind = SOURCE_DONE;
    return run_bind_buffer(r, p, &buffer);
}

static bool no_view(struct binder *b, const struct run_param *p, const char *path)
{
    return diag_error(
        b->r->d, SPAN_NONE,
        "%s: '%s': a result is written in the shape that the kernel declares; another "
        "shape is for sources",
        p->sym->name, path);
}

static bool bind_source(struct binder *b, struct run_param *p, const char *value)
{
    struct run *r = b->r;
    struct input *in = &b->input[p - r->param];
    size_t len = strlen(value), used = len;
    bool inout = p->sym->mode == MODE_INOUT;
    if (value[0] == '@' && (strchr(value, '[') || strstr(value, "::T")))
        return diag_error(r->d, SPAN_NONE,
                          "%s: '%s': what is made has the shape that the kernel declares; another "
                          "shape is for files",
                          p->sym->name, value);
    if (value[0] == '@') {
        if (!generator_parse(r->arena, p->sym->name, value, len, &in->made, &used, r->d))
            return false;
        in->kind = SOURCE_MADE;
        keep_wish(r, p, arena_strndup(r->arena, value, used), NULL);
    } else if (inout) {
        used = view_source(value);
    }
    if (used < len && !inout)
        return diag_error(r->d, SPAN_NONE, "%s is an input and takes no destination: '%s'",
                          p->sym->name, value + used);
    if (used < len && value[used + 1])
        p->destination = value + used + 1;
    if (p->destination && view_is_behind(p->destination))
        return no_view(b, p, p->destination);
    p->unsourced = used == 0 && p->destination && p->decl->is_state;
    if (in->kind == SOURCE_MADE || p->unsourced)
        return true;
    if (used == 0)
        return diag_error(r->d, SPAN_NONE, "%s needs a file or a generator: %s=x.npy, %s=@normal",
                          p->sym->name, p->sym->name, p->sym->name);
    return read_source(b, p, in, arena_strndup(r->arena, value, used));
}

static bool bind_buffer(struct binder *b, struct run_param *p, const struct run_arg *arg)
{
    struct input *in = &b->input[p - b->r->param];
    if (!arg->value) {
        *in = (struct input){.kind = SOURCE_MEMORY, .arg = arg};
        return true;
    }
    if (p->sym->mode != MODE_OUT)
        return bind_source(b, p, arg->value);
    if (arg->value[0] == '@')
        return diag_error(b->r->d, SPAN_NONE,
                          "%s is an output and takes a destination; a file whose name begins with "
                          "'@' is './%s'",
                          arg->name, arg->value);
    if (view_is_behind(arg->value))
        return no_view(b, p, arg->value);
    if (!arg->value[0])
        return diag_error(b->r->d, SPAN_NONE, "%s needs a file to go to: %s=y.npy", arg->name,
                          arg->name);
    p->destination = arg->value;
    return true;
}

/* The dimension or parameter that is meant, once. */
static bool find_name(struct binder *b, const struct run_arg *arg, struct run_dim **dim,
                      struct run_param **p)
{
    struct run *r = b->r;
    *dim = run_find_dim(r, arg->name);
    *p = arg->dim_only ? NULL : run_find_param(r, arg->name);
    if (!*dim && !*p)
        return unknown_name(b, arg);
    return once(b, *dim ? &b->seen_dim[*dim - r->dim] : &b->seen_param[*p - r->param], arg->name);
}

static bool bind_one(struct binder *b, const struct run_arg *arg)
{
    struct run *r = b->r;
    struct run_dim *dim;
    struct run_param *p;
    if (!find_name(b, arg, &dim, &p))
        return false;
    if (!arg->value && (dim || !run_is_buffer(p)))
        return diag_error(r->d, SPAN_NONE, "%s takes a number, not a buffer", arg->name);
    if (dim)
        return bind_dim(b, dim, arg);
    return run_is_buffer(p) ? bind_buffer(b, p, arg) : bind_scalar(b, p, arg);
}

/* What is missing is said before anything that follows from it. */
static bool all_given(struct binder *b)
{
    struct run *r = b->r;
    bool good = true;
    for (size_t i = 0; i < r->nparam; i++) {
        const struct run_param *p = &r->param[i];
        const char *name = p->sym->name;
        if (p->decl->is_state || !run_is_input(p))
            continue;
        if (b->input[i].kind == SOURCE_NONE)
            good = diag_error(
                r->d, SPAN_NONE, "%s (%s %s) is not given; give %s=FILE or %s=@normal, @zeros, ...",
                name, p->sym->mode == MODE_IN ? "in" : "inout", run_type_text(r, p), name, name);
    }
    return good;
}

static bool wrong_bytes(struct binder *b, const struct run_param *p, const struct input *in,
                        size_t bytes)
{
    struct run *r = b->r;
    struct buf type = buf_in(r->arena);
    const bool more = in->kind == SOURCE_RAW && bytes == p->host.bytes + 1;
    buffer_print_type(&p->host, &type);
    return diag_error(r->d, SPAN_NONE, "%s has %s%zu bytes; %s, %s, takes %zu",
                      in->kind == SOURCE_RAW ? in->raw.name : "the memory given",
                      more ? "more than " : "", more ? p->host.bytes : bytes, p->sym->name,
                      buf_text(&type), p->host.bytes);
}

/* Contents of the buffers whose shapes had to be known first. */
static bool fill_buffer(struct binder *b, struct run_param *p, struct input *in)
{
    struct run *r = b->r;
    if (p->kept)
        return true;
    if (in->kind == SOURCE_MADE) {
        buffer_alloc(r->arena, &p->host, p->sym->name);
        return generator_fill(&in->made, p->sym->name, &p->host, r->d);
    }
    if (in->kind != SOURCE_RAW && in->kind != SOURCE_MEMORY)
        return true;
    if (in->kind == SOURCE_RAW && !load_raw(r->arena, &in->raw, p->host.bytes, r->d))
        return false;
    const void *data = in->kind == SOURCE_RAW ? in->raw.data : in->arg->data;
    const size_t bytes = in->kind == SOURCE_RAW ? in->raw.bytes : in->arg->bytes;
    if (bytes != p->host.bytes)
        return wrong_bytes(b, p, in, bytes);
    if (run_is_input(p))
        p->host.data = (void *)(uintptr_t)data; /* only read */
    return true;
}

/* Everything but what is still open where a step fails. */
static bool bind_all(struct binder *b, const struct run_arg *arg, size_t n)
{
    struct run *r = b->r;
    bool good = true;
    for (size_t i = 0; i < n; i++)
        good = bind_one(b, &arg[i]) && good;
    for (size_t i = 0; i < r->nparam; i++)
        r->param[i].unsourced |= r->param[i].decl->is_state && !b->seen_param[i];
    if (!good || !all_given(b) || !run_shapes(r))
        return false;
    keep_settle(r);
    if (!run_fits(r))
        return false;
    for (size_t i = 0; i < r->nparam; i++)
        if (run_is_buffer(&r->param[i]))
            good = fill_buffer(b, &r->param[i], &b->input[i]) && good;
    return good;
}

static struct binder binder_of(struct run *r, const char *stdin_user)
{
    return (struct binder){.r = r,
                           .input = ARENA_ARRAY(r->arena, r->nparam, struct input),
                           .seen_param = ARENA_ARRAY(r->arena, r->nparam, bool),
                           .seen_dim = ARENA_ARRAY(r->arena, r->ndim, bool),
                           .stdin_user = stdin_user};
}

bool run_check_names(struct run *r, const struct run_arg *arg, size_t n)
{
    struct binder b = binder_of(r, NULL);
    struct run_dim *dim;
    struct run_param *p;
    bool good = true;
    for (size_t i = 0; i < n; i++)
        good = find_name(&b, &arg[i], &dim, &p) && good;
    return good;
}

bool run_bind_args(struct run *r, const struct run_arg *arg, size_t n, const char *stdin_user)
{
    struct binder b = binder_of(r, stdin_user);
    const bool good = bind_all(&b, arg, n);
    for (size_t i = 0; i < r->nparam; i++)
        io_close(b.input[i].raw.in);
    return good;
}

/* ---- outputs ---- */

bool run_uses_stdout(const struct run *r)
{
    for (size_t i = 0; i < r->nparam; i++)
        if (r->param[i].destination && strcmp(r->param[i].destination, "-") == 0)
            return true;
    return false;
}

/* Two outputs to one place would leave one of them, or a mixture. */
static bool destinations_differ(struct run *r)
{
    for (size_t i = 0; i < r->nparam; i++)
        for (size_t k = 0; k < i; k++) {
            const char *a = r->param[i].destination, *b = r->param[k].destination;
            if (a && b && strcmp(a, b) == 0)
                return diag_error(r->d, SPAN_NONE, "%s and %s both go to '%s'",
                                  r->param[k].sym->name, r->param[i].sym->name, a);
        }
    return true;
}

bool run_open_outputs(struct run *r)
{
    if (!destinations_differ(r))
        return false;
    for (size_t i = 0; i < r->nparam; i++) {
        struct run_param *p = &r->param[i];
        if (!p->destination)
            continue;
        if (strcmp(p->destination, "-") == 0 && isatty(STDOUT_FILENO)) {
            diag_error(r->d, SPAN_NONE,
                       "%s is binary and standard output is a terminal; give %s=FILE or a pipe",
                       p->sym->name, p->sym->name);
            run_discard_outputs(r);
            return false;
        }
        p->out = io_create(r->arena, r->d, p->destination);
        if (!p->out) {
            run_discard_outputs(r);
            return false;
        }
    }
    return true;
}

/* The bytes are in the file, though not yet under its name. */
static bool write_one(struct run *r, struct run_param *p)
{
    errno = 0;
    save_buffer(p->out->file, save_is_raw(p->destination), &p->result);
    if (!ferror(p->out->file) && fflush(p->out->file) == 0)
        return true;
    return diag_error(r->d, SPAN_NONE, "cannot write '%s': %s", p->out->path,
                      strerror(errno ? errno : EIO));
}

bool run_write_outputs(struct run *r)
{
    bool good = true;
    /* what can be taken back first, what goes straight through (a pipe) last */
    for (int straight = 0; straight < 2 && good; straight++)
        for (size_t i = 0; i < r->nparam && good; i++)
            if (r->param[i].out && (r->param[i].out->tmp == NULL) == (straight == 1))
                good = write_one(r, &r->param[i]);
    for (size_t i = 0; i < r->nparam && good; i++)
        if (r->param[i].out) {
            good = io_commit(r->param[i].out, r->d);
            r->param[i].out = NULL;
        }
    if (!good)
        run_discard_outputs(r);
    return good;
}

void run_discard_outputs(struct run *r)
{
    for (size_t i = 0; i < r->nparam; i++) {
        io_discard(r->param[i].out);
        r->param[i].out = NULL;
    }
}
