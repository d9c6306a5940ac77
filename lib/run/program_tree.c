/* The steps of a program as a tree, with what does not depend on a device or a shape: numbers of
 * the calls, which loops matter, which of a kernel's numbers decide how it is launched. */
#include <config.h>

#include "run/program.h"

/* ---- what depends on what -------------------------------------------------------------------- */

static bool mentions(const struct lang_expr *e, const struct lang_symbol *sym)
{
    bool has = e && e->kind == E_NAME &&
               (e->sym == sym || (e->sym->of && mentions(e->sym->of, sym)));
    for (uint32_t i = 0; e && i < e->nargs && !has; i++)
        has = mentions(e->args[i], sym);
    return has;
}

static bool any_mentions(struct lang_expr *const *v, size_t n, const struct lang_symbol *sym)
{
    bool has = false;
    for (size_t i = 0; i < n && !has; i++)
        has = mentions(v[i], sym);
    return has;
}

static bool shape_mentions(const struct lang_symbol *buffer, const struct lang_symbol *sym)
{
    return any_mentions(buffer->dims, buffer->rank, sym);
}

static bool map_mentions(const struct contract_map *m, const struct lang_symbol *sym)
{
    return mentions(m->at, sym) || any_mentions(m->dim, CONTRACT_MAP_RANK, sym) ||
           any_mentions(m->stride, CONTRACT_MAP_RANK, sym) ||
           any_mentions(m->box, CONTRACT_MAP_RANK, sym) ||
           any_mentions(m->step, CONTRACT_MAP_RANK, sym) ||
           any_mentions(m->lower, CONTRACT_MAP_RANK, sym) ||
           any_mentions(m->upper, CONTRACT_MAP_RANK, sym);
}

/* An argument that is the number itself travels, and decides nothing. */
static bool arg_mentions(const struct contract_arg *arg, const struct lang_symbol *sym)
{
    bool has = mentions(arg->expr, sym) || (arg->map && map_mentions(arg->map, sym));
    for (size_t i = 0; arg->fields && i < arg->fields->args.n && !has; i++)
        has = arg_mentions(&arg->fields->args.v[i], sym);
    return has;
}

static bool launch_mentions(const struct contract_launch *l, const struct lang_symbol *sym)
{
    bool has = mentions(l->when, sym) || mentions(l->shared, sym) ||
               any_mentions(l->grid, 3, sym) || any_mentions(l->block, 3, sym) ||
               any_mentions(l->cluster, 3, sym);
    for (size_t i = 0; i < l->arrays.n && !has; i++)
        has = mentions(l->arrays.v[i].at, sym) ||
              any_mentions(l->arrays.v[i].extents.v, l->arrays.v[i].extents.n, sym);
    for (size_t i = 0; i < l->args.n && !has; i++)
        has = arg_mentions(&l->args.v[i], sym);
    return has;
}

/* Do shapes, conditions or launches of the kernel depend on its scalar? */
static bool decides(const struct contract *k, const struct lang_symbol *sym)
{
    bool has = any_mentions(k->require.v, k->require.n, sym);
    for (size_t i = 0; i < k->params.n && !has; i++)
        has = k->params.v[i].sym->kind == SYM_BUFFER && shape_mentions(k->params.v[i].sym, sym);
    for (size_t i = 0; i < k->derived.n && !has; i++)
        has = mentions(k->derived.v[i]->of, sym);
    for (size_t i = 0; i < k->temps.n && !has; i++)
        has = shape_mentions(k->temps.v[i].sym, sym);
    for (size_t i = 0; i < k->launches.n && !has; i++)
        has = launch_mentions(&k->launches.v[i], sym);
    return has;
}

static bool view_mentions(const struct lang_view *v, const struct lang_symbol *sym)
{
    bool has = any_mentions(v->extent, v->nextent, sym);
    for (uint32_t i = 0; i < v->nsub && !has; i++)
        has = mentions(v->sub[i].at, sym) || mentions(v->sub[i].end, sym);
    return has;
}

static bool step_mentions(const struct contract_step *s, const struct lang_symbol *sym)
{
    bool has = mentions(s->low, sym) || mentions(s->high, sym);
    for (size_t i = 0; i < s->args.n && !has; i++)
        has = mentions(s->args.v[i].value, sym) ||
              (s->args.v[i].view.part && view_mentions(s->args.v[i].view.part, sym));
    for (size_t i = 0; i < s->body.n && !has; i++)
        has = step_mentions(s->body.v[i], sym);
    for (size_t i = 0; i < s->other.n && !has; i++)
        has = step_mentions(s->other.v[i], sym);
    return has;
}

/* ---- the tree -------------------------------------------------------------------------------- */

struct counts {
    size_t calls, loops, deepest;
};

static void count(const struct contract_step *s, struct counts *n)
{
    n->calls += s->kernel != NULL;
    n->loops += s->index != NULL;
    n->deepest = n->loops > n->deepest ? n->loops : n->deepest;
    for (size_t i = 0; i < s->body.n; i++)
        count(s->body.v[i], n);
    for (size_t i = 0; i < s->other.n; i++)
        count(s->other.v[i], n);
    n->loops -= s->index != NULL;
}

static size_t buffer_number(const struct run *r, const struct lang_symbol *sym)
{
    const int i = plan_buffer(r, sym);
    return i < 0 ? 0 : (size_t)i; /* the contract's reader found it among them */
}

static struct program_call *new_call(struct program *p, const struct contract_step *s)
{
    struct arena *a = p->r->arena;
    struct program_call *c = &p->call[p->ncall];
    const size_t n = s->args.n;
    bool *is_free = ARENA_ARRAY(a, n, bool);
    size_t *param = ARENA_ARRAY(a, n, size_t);
    *c = (struct program_call){
        .step = s, .number = (uint32_t)p->ncall++, .param = param, .free = is_free};
    c->buffer = ARENA_ARRAY(a, n, size_t);
    c->part = ARENA_ARRAY(a, n, struct program_part);
    c->value = ARENA_ARRAY(a, n, struct run_param);
    c->key = ARENA_ARRAY(a, 1 + n * (2 + BUFFER_RANK), uint64_t);
    for (size_t i = 0; i < n; i++) {
        const struct contract_actual *actual = &s->args.v[i];
        param[i] = (size_t)(actual->param - s->kernel->params.v);
        c->value[i].sym = actual->param->sym;
        c->value[i].decl = actual->param;
        if (actual->value) {
            is_free[i] = !decides(s->kernel, actual->param->sym);
            continue;
        }
        c->buffer[i] = buffer_number(p->r, actual->view.sym);
        if (actual->view.sym == s->asked && actual->param->sym->mode != MODE_IN)
            c->asked = i;
    }
    c->cost = (struct run_cost){.span = s->span, .line = s->line, .text = program_call_text(a, s)};
    return c;
}

static struct program_step *new_steps(struct program *p, struct contract_step *const *v, size_t n)
{
    struct program_step *steps = ARENA_ARRAY(p->r->arena, n, struct program_step);
    for (size_t i = 0; i < n; i++) {
        const struct contract_step *s = v[i];
        struct program_step *out = &steps[i];
        *out = (struct program_step){.src = s, .first = (uint32_t)p->ncall};
        if (s->kernel)
            out->call = new_call(p, s);
        out->nbody = s->body.n;
        out->body = new_steps(p, s->body.v, s->body.n);
        out->nother = s->other.n;
        out->other = new_steps(p, s->other.v, s->other.n);
        out->ncall = p->ncall - out->first;
        for (size_t k = 0; s->index && k < s->body.n && !out->varies; k++)
            out->varies = step_mentions(s->body.v[k], s->index);
    }
    return steps;
}

struct program *program_new(struct run *r, const struct ptx_module *m)
{
    const struct contract *c = r->contract;
    struct program *p = ARENA_NEW(r->arena, struct program);
    struct counts n = {0};
    for (size_t i = 0; i < c->steps.n; i++)
        count(c->steps.v[i], &n);
    p->r = r;
    p->m = m;
    p->loop = ARENA_ARRAY(r->arena, n.deepest, struct run_loop);
    p->call = ARENA_ARRAY(r->arena, n.calls, struct program_call);
    p->bucket = ARENA_ARRAY(r->arena, PROGRAM_BUCKETS, struct program_bound *);
    p->step = new_steps(p, c->steps.v, c->steps.n);
    p->nstep = c->steps.n;
    r->loop = p->loop;
    r->nloop = 0;
    return p;
}

/* ---- in words -------------------------------------------------------------------------------- */

/* As it was written; checking has folded its constants. */
static void print_value(const struct lang_expr *e, struct buf *out)
{
    const struct span s = e->span;
    if (s.src && s.len && !memchr(s.src->text + s.off, '\n', s.len))
        buf_add(out, s.src->text + s.off, s.len);
    else
        lang_print_expr(e, out);
}

const char *program_call_text(struct arena *a, const struct contract_step *s)
{
    struct buf out = buf_in(a);
    buf_printf(&out, "%s(", s->kernel->kernel);
    for (size_t i = 0; i < s->args.n; i++) {
        const struct contract_actual *actual = &s->args.v[i];
        buf_printf(&out, "%s%s: ", i ? ", " : "", actual->param->sym->name);
        if (actual->value)
            print_value(actual->value, &out);
        else
            lang_print_view(actual->view.part, &out);
    }
    buf_putc(&out, ')');
    return buf_text(&out);
}

typedef VEC(const char *) entry_list;

static void list_entries(struct arena *a, const struct contract *c, entry_list *list)
{
    for (size_t i = 0; i < c->launches.n; i++)
        *VEC_PUSH(a, list) = c->launches.v[i].entry;
}

static void list_steps(struct arena *a, struct contract_step *const *v, size_t n, entry_list *list)
{
    for (size_t i = 0; i < n; i++) {
        if (v[i]->kernel)
            list_entries(a, v[i]->kernel, list);
        list_steps(a, v[i]->body.v, v[i]->body.n, list);
        list_steps(a, v[i]->other.v, v[i]->other.n, list);
    }
}

const char *const *run_entries(struct arena *a, const struct contract *c)
{
    entry_list list = {0};
    list_entries(a, c, &list);
    list_steps(a, c->steps.v, c->steps.n, &list);
    *VEC_PUSH(a, &list) = NULL;
    return list.v;
}
