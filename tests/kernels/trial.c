#include <config.h>

#include "kernels/trial.h"

#include "data/npy.h"
#include "kernels/random.h"
#include "lower/lower.h"

#include <math.h>
#include <sys/stat.h>

const char *verdict_name(enum verdict v)
{
    static const char *const names[] = {"same",  "refused",   "unknown",
                                        "fault", "different", "crashed"};
    return names[v];
}

static void fail(struct arena *a, struct trial *t, enum verdict v, const struct diags *d)
{
    struct diags *errors = diags_new(a);
    struct buf b = buf_in(a);
    bool error = false;
    for (size_t i = 0; i < d->list.n; i++) { /* without the warnings, of which there are many */
        const struct diag *one = &d->list.v[i];
        error = one->level == DIAG_ERROR || (error && one->level == DIAG_NOTE);
        if (error)
            *VEC_PUSH(a, &errors->list) = *one;
    }
    diags_format(errors, t->name, false, &b);
    t->verdict = v;
    t->why = buf_text(&b);
}

static uint64_t hash_of(const char *name)
{
    uint64_t hash = 0;
    for (const char *c = name; *c; c++)
        hash = hash * 31 + (unsigned char)*c;
    return hash;
}

static struct spec *read_spec(struct arena *a, const struct trial *t, struct diags *d)
{
    const struct source *src = source_new(a, t->name, t->text, strlen(t->text));
    struct spec_file *f = spec_read(a, src, t->fixed.v, t->fixed.n, d);
    return f && f->specs.n == 1 && f->specs.v[0]->cases.n > 0 ? f->specs.v[0] : NULL;
}

static bool is_dimension(const struct spec *s, const char *name)
{
    for (size_t i = 0; i < s->dims.n; i++)
        if (strcmp(s->dims.v[i]->name, name) == 0)
            return true;
    return false;
}

/* Some of the dimensions, or none: by their names, so that a smaller kernel with the same seed
 * fixes the same. */
static void choose_fixed(struct arena *a, struct trial *t)
{
    const struct spec_case *c = &t->spec->cases.v[0];
    if (t->seed % 3 != 0)
        return;
    for (size_t i = 0; i < c->bind.n; i++) {
        const struct spec_binding *b = &c->bind.v[i];
        struct random r = random_start(t->seed, hash_of(b->name));
        if (is_dimension(t->spec, b->name) && random_one_in(&r, 2))
            *VEC_PUSH(a, &t->fixed) = (struct spec_define){b->name, (uint64_t)b->i, DT_VOID};
    }
}

struct trial *trial_new(struct arena *a, const char *name, const char *text, uint64_t seed)
{
    struct trial *t = ARENA_NEW(a, struct trial);
    struct diags *d = diags_new(a);
    *t = (struct trial){.name = name, .text = text, .seed = seed, .why = "", .ptx = ""};
    t->spec = read_spec(a, t, d);
    if (t->spec) {
        choose_fixed(a, t);
        t->spec = t->fixed.n ? read_spec(a, t, d) : t->spec;
    }
    if (!t->spec)
        fail(a, t, REFUSED, d);
    return t;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static double random_float(struct random *r, enum dtype t)
{
    static const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 0.5, 2, 3};
    double unit = (double)(random_bits(r) >> 11) * 0x1p-53 * (random_one_in(r, 2) ? -1 : 1);
    switch (random_below(r, 16)) {
    case 0: return special[random_below(r, sizeof special / sizeof *special)];
    case 1: return random_one_in(r, 2) ? dtype_max(t) * unit : dtype_smallest(t) * unit * 20;
    case 2: return ldexp(unit, (int)random_below(r, 60) - 30);
    case 3:
    case 4:
    case 5: return (double)(int)random_below(r, 41) - 20;
    case 6:
    case 7:
    case 8:
    case 9: return unit * 1000;
    default: return unit * 2;
    }
}

static uint64_t random_int(struct random *r, enum dtype t)
{
    uint64_t power = UINT64_C(1) << random_below(r, dtype_bits(t));
    switch (random_below(r, 8)) {
    case 0: return random_bits(r);
    case 1: return random_one_in(r, 2) ? (uint64_t)dtype_imin(t) : dtype_imax(t);
    case 2: return power + random_below(r, 3) - 1;
    case 3:
    case 4: return random_below(r, 256) - UINT64_C(128);
    case 5: return random_bits(r) >> random_below(r, 64);
    default: return random_below(r, 20) - UINT64_C(4);
    }
}

static void fill(struct buffer *b, const char *name, uint64_t seed)
{
    struct random r = random_start(seed, hash_of(name));
    for (uint64_t i = 0; i < b->count; i++)
        if (dtype_is_float(b->type))
            scalar_store(b->type, b->data, i, scalar_float(b->type, random_float(&r, b->type)));
        else
            scalar_store(b->type, b->data, i, scalar_int(b->type, random_int(&r, b->type)));
}

static bool bind(struct trial *t)
{
    const struct spec_case *c = &t->spec->cases.v[0];
    for (size_t i = 0; i < c->bind.n; i++) {
        const struct spec_binding *b = &c->bind.v[i];
        struct run_dim *dim = run_find_dim(t->run, b->name);
        struct run_param *p = run_find_param(t->run, b->name);
        if (dim ? !run_bind_dim(t->run, dim, b->i, "the case says so")
                : !p || !run_bind_scalar(t->run, p, b->f, b->i))
            return false;
    }
    return run_shapes(t->run);
}

static void make_inputs(struct arena *a, struct trial *t)
{
    struct run *r = t->run;
    t->expect = ARENA_ARRAY(a, r->nparam, struct eval_param);
    for (size_t i = 0; i < r->nparam; i++) {
        struct run_param *p = &r->param[i];
        struct eval_param *e = &t->expect[i];
        if (!run_is_buffer(p)) {
            if (dtype_is_float(p->sym->type))
                e->value.f = p->f;
            else
                e->value.i = p->i;
            continue;
        }
        e->buffer = p->host;
        buffer_alloc(a, &e->buffer, NULL);
        memset(e->buffer.data, run_default.poison, e->buffer.bytes);
        if (!run_is_input(p))
            continue;
        buffer_alloc(a, &p->host, NULL);
        fill(&p->host, p->sym->name, t->seed);
        memcpy(e->buffer.data, p->host.data, p->host.bytes);
    }
}

/* ---- execution ------------------------------------------------------------------------------- */

void trial_evaluate(struct arena *a, struct trial *t)
{
    struct diags *d = diags_new(a);
    t->run = run_new(a, contract_of_spec(a, t->spec, "sm_80"), d);
    if (!bind(t)) {
        fail(a, t, REFUSED, d);
        return;
    }
    make_inputs(a, t);
    int64_t *dim = ARENA_ARRAY(a, t->run->ndim, int64_t);
    for (size_t i = 0; i < t->run->ndim; i++)
        dim[i] = t->run->dim[i].value;
    struct eval_input in = {t->spec, t->expect, dim};
    const char *fault = eval_kernel(a, &in);
    if (fault) {
        t->verdict = UNKNOWN;
        t->why = fault;
    }
}

static bool is_nan(enum dtype t, union scalar v)
{
    return dtype_is_float(t) && isnan(v.f);
}

static void compare(struct arena *a, struct trial *t)
{
    for (size_t i = 0; i < t->run->nparam; i++) {
        const struct run_param *p = &t->run->param[i];
        const struct buffer *have = &p->result, *want = &t->expect[i].buffer;
        enum dtype type = p->sym->type;
        if (!run_is_output(p) || memcmp(have->data, want->data, want->bytes) == 0)
            continue;
        for (uint64_t k = 0; k < want->count; k++) {
            size_t size = dtype_bytes(type, 1);
            const char *x = (const char *)have->data + k * size;
            const char *y = (const char *)want->data + k * size;
            if (memcmp(x, y, size) == 0 ||
                (is_nan(type, scalar_load(type, x, 0)) && is_nan(type, scalar_load(type, y, 0))))
                continue;
            struct buf b = buf_in(a);
            buf_printf(&b, "%s[%llu] is ", p->sym->name, (unsigned long long)k);
            buffer_print_element(have, k, &b);
            buf_puts(&b, ", should be ");
            buffer_print_element(want, k, &b);
            t->verdict = DIFFERENT;
            t->why = buf_text(&b);
            return;
        }
    }
}

/* The values and inputs of the evaluator's run, under the contract that the emitter wrote. */
static struct run *run_of_contract(struct arena *a, struct trial *t, const struct contract *c,
                                   struct diags *d)
{
    struct run *from = t->run, *r = t->run = run_new(a, c, d);
    bool good = bind(t);
    for (size_t i = 0; i < r->nparam && good; i++)
        r->param[i].host.data = from->param[i].host.data;
    return good ? r : NULL;
}

static void execute(struct arena *a, struct trial *t, const struct contract *c,
                    const struct ptx_module *m, const struct trial_device *on)
{
    struct diags *d = diags_new(a);
    struct run_options opt = run_default;
    opt.guard = on->guard;
    struct run *r = run_of_contract(a, t, c, d);
    if (!r || run_execute(r, m, on->ops, on->dev, &opt, NULL) != DEVICE_OK)
        fail(a, t, FAULT, d);
    else
        compare(a, t);
}

static bool single(struct arena *a, struct trial **t, size_t n, const struct trial_device *on)
{
    bool good = true;
    for (size_t i = 0; i < n && good; i++)
        good = trials_execute(a, t + i, 1, on);
    return good;
}

bool trials_execute(struct arena *a, struct trial **all, size_t n, const struct trial_device *on)
{
    struct trial **t = ARENA_ARRAY(a, n + 1, struct trial *);
    struct spec **specs = ARENA_ARRAY(a, n + 1, struct spec *);
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (all[i]->verdict == SAME) {
            specs[k] = all[i]->spec;
            t[k++] = all[i];
        }
    if (k == 0)
        return true;
    struct diags *d = diags_new(a);
    struct lower_options opt = {0};
    struct ptx_module *m = lower_specs(a, specs, k, on->target, &opt, d);
    struct buf text = buf_in(a);
    if (m)
        ptx_print(m, &text);
    const struct source *src = source_new(a, "<ptx>", buf_text(&text), text.len);
    if (k == 1)
        t[0]->ptx = buf_text(&text);
    struct contract_file *f =
        m ? contract_read(a, source_new(a, "<contract>", m->header, strlen(m->header)), d) : NULL;
    if (!f || !(m = ptx_parse(a, src, d)) || on->ops->load(on->dev, src, d) != DEVICE_OK) {
        if (k > 1)
            return single(a, t, k, on);
        fail(a, t[0], REFUSED, d);
        return true;
    }
    for (size_t i = 0; i < k; i++) {
        execute(a, t[i], f->v.v[i], m, on);
        if (t[i]->verdict == FAULT && strcmp(on->ops->kind, "cuda") == 0)
            return false;
    }
    return true;
}

void trial_emit(struct arena *a, struct trial *t, const struct ptx_target *target)
{
    struct diags *d = diags_new(a);
    struct lower_options opt = {.lines = LOWER_LINES_ALL};
    struct buf text = buf_in(a);
    struct ptx_module *m = lower_specs(a, &t->spec, 1, target, &opt, d);
    if (m)
        ptx_print(m, &text);
    if (!m || !ptx_parse(a, source_new(a, "<ptx>", buf_text(&text), text.len), d))
        fail(a, t, REFUSED, d);
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool write_text(const char *dir, const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    fputs(text, f);
    return fclose(f) == 0;
}

static bool write_npy(const char *dir, const char *name, const char *what, const struct buffer *b)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s.npy", dir, name, what);
    FILE *f = fopen(path, "wb");
    if (!f)
        return false;
    npy_write(f, b);
    return fclose(f) == 0;
}

/* "kaio-emit -D d0=3 kernel.yaml > kernel.ptx; kaio-run kernel.ptx n=64 s=3 x=x.npy
 * y=x.npy:y.npy" */
static void command(const struct trial *t, struct buf *out)
{
    const struct spec_case *c = &t->spec->cases.v[0];
    buf_puts(out, "kaio-emit");
    for (size_t i = 0; i < t->fixed.n; i++)
        buf_printf(out, " -D %s=%llu", t->fixed.v[i].name, (unsigned long long)t->fixed.v[i].value);
    buf_puts(out, " kernel.yaml > kernel.ptx\n");
    buf_puts(out, "kaio-run kernel.ptx");
    for (size_t i = 0; i < c->bind.n; i++)
        if (c->bind.v[i].is_int)
            buf_printf(out, " %s=%lld", c->bind.v[i].name, (long long)c->bind.v[i].i);
        else
            buf_printf(out, " %s=%.17g", c->bind.v[i].name, c->bind.v[i].f);
    for (size_t i = 0; i < t->run->nparam; i++) {
        const struct run_param *p = &t->run->param[i];
        const char *name = p->sym->name;
        if (run_is_buffer(p))
            buf_printf(out, run_is_input(p) ? " %s=%s.npy" : " %s=", name, name);
        if (run_is_output(p))
            buf_printf(out, "%s%s.out.npy", run_is_input(p) ? ":" : "", name);
    }
    buf_putc(out, '\n');
}

bool trial_write(const struct trial *t, const char *dir)
{
    mkdir(dir, 0777);
    bool good = write_text(dir, "kernel.yaml", t->text) && write_text(dir, "why", t->why);
    if (!t->run)
        return good;
    good = good && write_text(dir, "kernel.ptx", t->ptx);
    struct arena *a = t->run->arena;
    struct buf b = buf_in(a);
    command(t, &b);
    good = good && write_text(dir, "command", buf_text(&b));
    for (size_t i = 0; i < t->run->nparam && good; i++) {
        const struct run_param *p = &t->run->param[i];
        if (!run_is_buffer(p))
            continue;
        if (p->host.data)
            good = write_npy(dir, p->sym->name, "", &p->host);
        if (run_is_output(p))
            good = good && write_npy(dir, p->sym->name, ".expected", &t->expect[i].buffer);
        if (p->result.data)
            good = good && write_npy(dir, p->sym->name, ".result", &p->result);
    }
    return good;
}
