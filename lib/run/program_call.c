/* A call's arguments as numbers, and the kernel that is bound to them. */
#include <config.h>

#include <inttypes.h>

#include "base/io.h"
#include "run/program.h"

/* ---- where it went wrong --------------------------------------------------------------------- */

struct span program_span(struct arena *a, const struct contract *c, const struct contract_step *s)
{
    const struct span line = c->source && s->line ? io_line(a, c->source, s->line)
                                                  : (struct span){0};
    return line.src ? line : s->span;
}

/* "in the step of line 9: heat_step(x: u, y: v), where t is 3" */
static void note_call(struct program *p, const struct program_call *c, struct diags *d)
{
    struct run *r = p->r;
    struct buf loops = buf_in(r->arena), line = buf_in(r->arena);
    for (size_t i = 0; i < r->nloop; i++)
        buf_printf(&loops, "%s%s is %" PRId64, i ? " and " : ", where ", r->loop[i].sym->name,
                   r->loop[i].value);
    if (c->step->line)
        buf_printf(&line, " of line %" PRIu32, c->step->line);
    diag_note(d, program_span(r->arena, r->contract, c->step), "in the step%s: %s%s",
              buf_text(&line), c->cost.text, buf_text(&loops));
}

void program_tell(struct program *p, const struct program_call *c, struct diags *d,
                  const struct diags *more)
{
    struct diags one = *more;
    for (size_t i = 0, next; i < more->list.n; i = next) {
        const bool told = more->list.v[i].level != DIAG_NOTE;
        for (next = i + 1; next < more->list.n && more->list.v[next].level == DIAG_NOTE &&
                           !more->list.v[next].summary;
             next++)
            ;
        one.list.v = more->list.v + i;
        one.list.n = one.list.cap = next - i;
        one.nerror = more->list.v[i].level == DIAG_ERROR;
        one.nwarning = more->list.v[i].level == DIAG_WARNING;
        diags_append(d, &one);
        if (told && d->nerror <= d->limit)
            note_call(p, c, d);
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* A u64 that is passed on may be any; what is computed is a number. */
static bool is_plain(const struct run *r, const struct lang_expr *e, int64_t *value)
{
    while (e->kind == E_CAST && e->is_implicit)
        e = e->args[0];
    for (size_t i = 0; e->kind == E_NAME && i < r->nparam; i++)
        if (r->param[i].sym == e->sym && e->sym->type == DT_U64) {
            *value = r->param[i].i;
            return true;
        }
    return false;
}

static bool take_number(struct program *p, const struct contract_actual *actual,
                        struct run_param *out)
{
    struct run *r = p->r;
    const enum dtype type = actual->param->sym->type;
    const struct lang_expr *e = actual->value;
    double f = 0;
    int64_t i = 0;
    if (dtype_is_float(type))
        return run_eval_real(r, e, &f) && run_bind_scalar(r, out, f, 0);
    if (type == DT_U64 && is_plain(r, e, &i))
        return run_bind_scalar(r, out, 0, i);
    if (!run_eval(r, e, &i))
        return false;
    if (i < 0 && dtype_class(type) != DTC_I)
        return diag_error(r->d, e->span, "%s is %s and can't be %" PRId64, actual->param->sym->name,
                          dtype_name(type), i);
    return run_bind_scalar(r, out, 0, i);
}

/* ---- no part is written that another argument is --------------------------------------------- */

static bool overlap(const struct program_part *x, const struct program_part *y)
{
    return x->at < y->at + y->shape.bytes && y->at < x->at + x->shape.bytes && x->shape.bytes &&
           y->shape.bytes;
}

static const char *view_text(struct program *p, const struct contract_actual *actual)
{
    struct buf out = buf_in(p->r->arena);
    lang_print_view(actual->view.part, &out);
    return buf_text(&out);
}

static bool check_overlaps(struct program *p, const struct program_call *c)
{
    const struct contract_step *s = c->step;
    for (size_t i = 0; i < s->args.n; i++)
        for (size_t k = 0; k < i && !s->args.v[i].value; k++) {
            const struct contract_actual *x = &s->args.v[k], *y = &s->args.v[i];
            if (x->value || c->buffer[i] != c->buffer[k] ||
                (x->param->sym->mode == MODE_IN && y->param->sym->mode == MODE_IN) ||
                !overlap(&c->part[i], &c->part[k]))
                continue;
            return diag_error(
                p->r->d, y->span,
                "'%s' and '%s' of '%s' overlap, and one of them is written: %s and %s",
                x->param->sym->name, y->param->sym->name, s->kernel->kernel, view_text(p, x),
                view_text(p, y));
        }
    return true;
}

/* ---- bound kernels --------------------------------------------------------------------------- */

/* Shapes, and the numbers that decide something. Which arguments are left to their defaults is part
 * of it, too. */
static size_t make_key(const struct program_call *c)
{
    const struct contract_step *s = c->step;
    size_t n = 0;
    c->key[n++] = (uintptr_t)s->kernel;
    for (size_t i = 0; i < s->args.n; i++) {
        const struct buffer *b = &c->part[i].shape;
        const bool is_number = s->args.v[i].value != NULL;
        c->key[n++] = (uint64_t)c->param[i] << 8 | (is_number ? 255 : b->rank);
        for (uint32_t k = 0; !is_number && k < b->rank; k++)
            c->key[n++] = b->dim[k];
        if (!is_number || c->free[i])
            continue;
        c->key[n] = (uint64_t)c->value[i].i;
        if (dtype_is_float(c->value[i].sym->type))
            memcpy(&c->key[n], &c->value[i].f, sizeof c->key[n]);
        n++;
    }
    return n;
}

static uint64_t hash(const uint64_t *key, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ key[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

static bool fits(const struct program_bound *b, const uint64_t *key, size_t n)
{
    return b && b->nkey == n && memcmp(b->key, key, n * sizeof *key) == 0;
}

static void set_number(struct run_param *to, const struct run_param *value)
{
    to->f = value->f;
    to->i = value->i;
    to->given = true;
}

static bool bind_arguments(struct program_bound *b, const struct program_call *c)
{
    for (size_t i = 0; i < c->step->args.n; i++) {
        struct run_param *to = &b->run->param[c->param[i]];
        if (c->step->args.v[i].value)
            set_number(to, &c->value[i]);
        else if (!run_bind_buffer(b->run, to, &c->part[i].shape))
            return false;
    }
    return run_shapes(b->run);
}

static void measure_scratch(struct program_bound *b)
{
    for (size_t i = 0; i < b->run->ntemp; i++)
        if (!run_is_zeroed(b->run, b->run->nparam + i) ||
            run_is_cleared(b->run, b->run->nparam + i))
            b->scratch += program_aligned(b->run->temp[i].host.bytes);
}

static struct program_bound *bind(struct program *p, const struct program_call *c, size_t nkey)
{
    struct arena *a = p->cache;
    struct program_bound *b = ARENA_NEW(a, struct program_bound);
    uint64_t *key = ARENA_ARRAY(a, nkey, uint64_t);
    memcpy(key, c->key, nkey * sizeof *key);
    b->key = key;
    b->nkey = nkey;
    b->run = run_new(a, c->step->kernel, p->r->d);
    b->run->multiprocessors = p->r->multiprocessors;
    b->run->any_device = p->r->any_device;
    b->wants_messages = messages_wanted(b->run);
    b->persistent = ARENA_ARRAY(a, b->run->ntemp, uint64_t);
    b->address = ARENA_ARRAY(a, run_nbuffer(b->run), uint64_t);
    b->next_address = ARENA_ARRAY(a, run_nbuffer(b->run), uint64_t);
    if (!bind_arguments(b, c) || !plan_make(b->run, p->m, &b->plan))
        return NULL;
    measure_scratch(b);
    b->run->arena = p->r->arena; /* what is told from now on outlives it */
    return b;
}

/* Its arena has a guard of its own, for it is given up when it holds too many. */
static struct program_bound *bind_guarded(struct program *p, const struct program_call *c,
                                          size_t nkey)
{
    if (setjmp(*arena_guard(p->cache))) {
        diag_error(p->r->d, SPAN_NONE, "there is no memory left to call '%s'",
                   c->step->kernel->kernel);
        return NULL;
    }
    return bind(p, c, nkey);
}

static struct program_bound *find_bound(struct program *p, const struct program_call *c)
{
    const size_t n = make_key(c);
    if (fits(c->bound, c->key, n))
        return c->bound;
    if (p->nbound >= PROGRAM_BOUND_MOST)
        program_forget(p);
    if (!p->cache)
        p->cache = arena_new();
    if (!p->cache) {
        diag_error(p->r->d, SPAN_NONE, "there is no memory left");
        return NULL;
    }
    struct program_bound **bucket = &p->bucket[hash(c->key, n) % PROGRAM_BUCKETS];
    for (struct program_bound *b = *bucket; b; b = b->next)
        if (fits(b, c->key, n))
            return b;
    struct program_bound *b = bind_guarded(p, c, n);
    arena_unguard(p->cache);
    if (!b)
        return NULL;
    b->next = *bucket;
    *bucket = b;
    p->nbound++;
    return b;
}

void program_forget(struct program *p)
{
    for (size_t i = 0; i < PROGRAM_BUCKETS; i++) {
        for (struct program_bound *b = p->bucket[i]; b && p->job.ops; b = b->next)
            for (size_t k = 0; k < b->run->ntemp; k++)
                if (b->persistent[k])
                    p->job.ops->release(p->job.dev, b->persistent[k]);
        p->bucket[i] = NULL;
    }
    for (size_t i = 0; i < p->ncall; i++)
        p->call[i].bound = NULL;
    arena_free(p->cache);
    p->cache = NULL;
    p->nbound = 0;
}

/* ---- a call ---------------------------------------------------------------------------------- */

static bool take_arguments(struct program *p, struct program_call *c)
{
    const struct contract_step *s = c->step;
    for (size_t i = 0; i < s->args.n; i++)
        if (s->args.v[i].value ? !take_number(p, &s->args.v[i], &c->value[i])
                               : !program_view(p, &s->args.v[i].view, c->buffer[i], &c->part[i]))
            return false;
    return check_overlaps(p, c);
}

/* The numbers that only travel are the bound kernel's for this call. */
static bool send_numbers(struct program_call *c)
{
    bool changed = false;
    for (size_t i = 0; i < c->step->args.n; i++) {
        struct run_param *to = &c->bound->run->param[c->param[i]];
        if (!c->step->args.v[i].value || !c->free[i] ||
            (to->i == c->value[i].i && memcmp(&to->f, &c->value[i].f, sizeof to->f) == 0))
            continue;
        set_number(to, &c->value[i]);
        changed = true;
    }
    return !changed || plan_scalars(c->bound->run, &c->bound->plan);
}

bool program_resolve(struct program *p, struct program_call *c)
{
    struct program_bound *b = take_arguments(p, c) ? find_bound(p, c) : NULL;
    if (b)
        c->bound = b;
    if (b && send_numbers(c))
        return true;
    note_call(p, c, p->r->d);
    return false;
}

uint64_t program_scratch(const struct program_call *c)
{
    uint64_t bytes = c->bound->scratch;
    for (size_t i = 0; i < c->step->args.n; i++)
        if (!c->step->args.v[i].value && program_is_skewed(&c->part[i]))
            bytes += program_aligned(c->part[i].shape.bytes);
    return bytes;
}
