#include <config.h>

#include "lower/lower.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- kinds ----------------------------------------------------------------------------------- */

static const char *const kind_names[LOWER_KINDS] = {
    [LOWER_FLOAT] = "float",     [LOWER_INTEGER] = "integer", [LOWER_LOGIC] = "logic",
    [LOWER_CONVERT] = "convert", [LOWER_COMPARE] = "compare", [LOWER_MOVE] = "move",
    [LOWER_MEMORY] = "memory",   [LOWER_ATOMIC] = "atomic",   [LOWER_WARP] = "warp",
    [LOWER_BARRIER] = "barrier", [LOWER_TENSOR] = "tensor",   [LOWER_CONTROL] = "control",
};

const char *lower_kind_name(enum lower_kind k)
{
    return kind_names[k];
}

/* The kinds of instructions by name; what is not here is arithmetic. */
static const struct {
    const char *name;
    enum lower_kind kind;
} kinds[] = {
    {"and", LOWER_LOGIC},        {"or", LOWER_LOGIC},          {"xor", LOWER_LOGIC},
    {"not", LOWER_LOGIC},        {"cnot", LOWER_LOGIC},        {"lop3", LOWER_LOGIC},
    {"shl", LOWER_LOGIC},        {"shr", LOWER_LOGIC},         {"shf", LOWER_LOGIC},
    {"prmt", LOWER_LOGIC},       {"bfe", LOWER_LOGIC},         {"bfi", LOWER_LOGIC},
    {"brev", LOWER_LOGIC},       {"cvt", LOWER_CONVERT},       {"cvta", LOWER_CONVERT},
    {"setp", LOWER_COMPARE},     {"set", LOWER_COMPARE},       {"selp", LOWER_COMPARE},
    {"slct", LOWER_COMPARE},     {"testp", LOWER_COMPARE},     {"mov", LOWER_MOVE},
    {"mapa", LOWER_MOVE},        {"ld", LOWER_MEMORY},         {"ldu", LOWER_MEMORY},
    {"st", LOWER_MEMORY},        {"cp", LOWER_MEMORY},         {"ldmatrix", LOWER_MEMORY},
    {"stmatrix", LOWER_MEMORY},  {"prefetch", LOWER_MEMORY},   {"atom", LOWER_ATOMIC},
    {"red", LOWER_ATOMIC},       {"shfl", LOWER_WARP},         {"vote", LOWER_WARP},
    {"match", LOWER_WARP},       {"redux", LOWER_WARP},        {"activemask", LOWER_WARP},
    {"elect", LOWER_WARP},       {"bar", LOWER_BARRIER},       {"barrier", LOWER_BARRIER},
    {"mbarrier", LOWER_BARRIER}, {"membar", LOWER_BARRIER},    {"fence", LOWER_BARRIER},
    {"mma", LOWER_TENSOR},       {"wmma", LOWER_TENSOR},       {"wgmma", LOWER_TENSOR},
    {"bra", LOWER_CONTROL},      {"brx", LOWER_CONTROL},       {"call", LOWER_CONTROL},
    {"ret", LOWER_CONTROL},      {"exit", LOWER_CONTROL},      {"trap", LOWER_CONTROL},
    {"brkpt", LOWER_CONTROL},    {"nanosleep", LOWER_CONTROL},
};

static enum lower_kind kind_of(const struct ptx_inst *in)
{
    const char *name = ptx_op_name(in->op);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].kind;
    return ptx_type_is_float((enum ptx_mod)in->type[0]) ? LOWER_FLOAT : LOWER_INTEGER;
}

/* ---- one instruction ------------------------------------------------------------------------- */

/* Floating-point operations of a thread: an fma is two, a packed operation two of them, an mma its
 * share. */
static double flops_of(const struct ptx_inst *in)
{
    static const char *const ones[] = {"add",   "sub", "mul", "div", "rcp", "sqrt",
                                       "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"};
    const char *name = ptx_op_name(in->op);
    enum ptx_mod t = (enum ptx_mod)in->type[0];
    double n = strcmp(name, "fma") == 0 || strcmp(name, "mad") == 0 ? 2 : 0;
    unsigned m, k, l;
    if (strcmp(name, "mma") == 0)
        return sscanf(ptx_mod_text((enum ptx_mod)in->mod[PTX_MC_SHAPE]), "m%un%uk%u", &m, &l, &k) ==
                       3
                   ? 2.0 * m * l * k / 32
                   : 0;
    for (size_t i = 0; i < sizeof ones / sizeof *ones && n == 0; i++)
        n = strcmp(name, ones[i]) == 0;
    if (!ptx_type_is_float(t))
        return 0;
    const char *type = ptx_mod_text(t);
    size_t len = strlen(type);
    return len > 2 && strcmp(type + len - 2, "x2") == 0 ? 2 * n : n;
}

static unsigned width_of(const struct ptx_inst *in)
{
    enum ptx_mod v = (enum ptx_mod)in->mod[PTX_MC_VECTOR];
    unsigned lanes = v == PTX_V2 ? 2 : v == PTX_V4 ? 4 : v == PTX_V8 ? 8 : 1;
    unsigned bits = 0; /* the last type is the one in memory */
    for (int i = 0; i < PTX_MAX_TYPES && in->type[i]; i++)
        bits = ptx_type_bits((enum ptx_mod)in->type[i]);
    return lanes * bits / 8;
}

static void add_access(struct arena *a, struct lower_stat *s, const struct ptx_inst *in)
{
    const char *name = ptx_op_name(in->op);
    enum ptx_mod space = ptx_space((enum ptx_mod)in->mod[PTX_MC_SPACE]);
    const char *where = space == PTX_NONE ? "generic" : ptx_mod_text(space);
    unsigned bytes = width_of(in);
    for (size_t i = 0; i < s->access.n; i++) {
        struct lower_access *x = &s->access.v[i];
        if (x->bytes == bytes && strcmp(x->name, name) == 0 && strcmp(x->space, where) == 0) {
            x->count++;
            return;
        }
    }
    struct lower_access *x = VEC_PUSH(a, &s->access);
    *x = (struct lower_access){name, where, bytes, 1};
}

static bool is_global(const struct ptx_inst *in)
{
    enum ptx_mod space = ptx_space((enum ptx_mod)in->mod[PTX_MC_SPACE]);
    return space == PTX_GLOBAL || space == PTX_NONE;
}

/* "ld.global", "setp", "fma": the name, with the state space where there is one. */
static const char *mix_name(struct arena *a, const struct ptx_inst *in)
{
    const char *name = ptx_op_name(in->op);
    enum ptx_mod space = (enum ptx_mod)in->mod[PTX_MC_SPACE];
    return space == PTX_NONE ? name : arena_printf(a, "%s.%s", name, ptx_mod_text(space));
}

static void add_mix(struct arena *a, struct lower_stat *s, const char *name)
{
    for (size_t i = 0; i < s->mix.n; i++)
        if (strcmp(s->mix.v[i].name, name) == 0) {
            s->mix.v[i].count++;
            return;
        }
    struct lower_mix *m = VEC_PUSH(a, &s->mix);
    *m = (struct lower_mix){name, 1};
}

static int most_first(const void *x, const void *y)
{
    const struct lower_mix *p = x, *q = y;
    if (p->count != q->count)
        return p->count < q->count ? 1 : -1;
    return strcmp(p->name, q->name);
}

/* ---- a function ------------------------------------------------------------------------------ */

/* How often each item is taken to be executed: ten times for each loop around it, a loop being what
 * a backward branch spans. */
static double *weights(struct arena *a, const struct ptx_func *f, size_t *nloop)
{
    double *w = ARENA_ARRAY(a, f->items.n, double);
    size_t *end = ARENA_ARRAY(a, f->labels.n, size_t); /* the last branch back to a label, + 1 */
    for (size_t i = 0; i < f->items.n; i++) {
        const struct ptx_item *it = &f->items.v[i];
        w[i] = 1;
        if (it->kind != PTX_I_INST || strcmp(ptx_op_name(it->inst.op), "bra") != 0)
            continue;
        const uint32_t to = it->inst.operand[0].label;
        if (f->labels.v[to].item <= i)
            end[to] = i + 1;
    }
    *nloop = 0;
    for (size_t k = 0; k < f->labels.n; k++) {
        *nloop += end[k] != 0;
        for (size_t i = f->labels.v[k].item; end[k] && i < end[k]; i++)
            w[i] = w[i] < 1e12 ? 10 * w[i] : w[i];
    }
    return w;
}

static void add_inst(struct arena *a, struct lower_stat *s, const struct ptx_inst *in,
                     double weight)
{
    enum lower_kind k = kind_of(in);
    const char *name = ptx_op_name(in->op);
    s->instructions++;
    s->kind[k]++;
    add_mix(a, s, mix_name(a, in));
    s->flops += weight * flops_of(in);
    s->branches += strcmp(name, "bra") == 0;
    s->conditional += strcmp(name, "bra") == 0 && in->guard >= 0;
    s->barriers += strcmp(name, "bar") == 0 || strcmp(name, "barrier") == 0;
    if (strcmp(name, "ld") != 0 && strcmp(name, "st") != 0 && k != LOWER_ATOMIC)
        return;
    add_access(a, s, in);
    if (is_global(in))
        s->global_bytes += weight * width_of(in);
}

static void add_var(struct lower_stat *s, const struct ptx_var *v)
{
    if (v->space == PTX_SHARED)
        s->shared_bytes += ptx_var_bytes(v);
    else if (v->space == PTX_LOCAL)
        s->local_bytes += ptx_var_bytes(v);
    else if (v->space == PTX_CONST)
        s->const_bytes += ptx_var_bytes(v);
}

static bool mentions(const struct ptx_func *f, const struct ptx_var *v)
{
    for (size_t i = 0; i < f->items.n; i++)
        for (unsigned k = 0; f->items.v[i].kind == PTX_I_INST && k < f->items.v[i].inst.noperand;
             k++)
            if (f->items.v[i].inst.operand[k].var == v)
                return true;
    return false;
}

static void add_register(struct lower_stat *s, enum ptx_mod type)
{
    unsigned bits = ptx_type_bits(type);
    *(bits == 1         ? &s->pred
      : bits == 16      ? &s->b16
      : type == PTX_F32 ? &s->f32
      : type == PTX_F64 ? &s->f64
      : bits == 64      ? &s->b64
                        : &s->b32) += 1;
}

static struct lower_stat stat_of(struct arena *a, const struct ptx_module *m,
                                 const struct ptx_func *f)
{
    struct lower_stat s = {.entry = f->name};
    const double *weight = weights(a, f, &s.loops);
    for (size_t i = 0; i < f->items.n; i++) {
        const struct ptx_item *it = &f->items.v[i];
        if (it->kind == PTX_I_INST)
            add_inst(a, &s, &it->inst, weight[i]);
        else if (it->kind == PTX_I_VAR)
            add_var(&s, it->var);
    }
    for (size_t i = 0; i < m->items.n; i++)
        if (m->items.v[i].kind == PTX_I_VAR && mentions(f, m->items.v[i].var))
            add_var(&s, m->items.v[i].var);
    for (size_t i = 0; i < f->regs.n; i++)
        add_register(&s, f->regs.v[i].type);
    if (s.mix.n)
        qsort(s.mix.v, s.mix.n, sizeof *s.mix.v, most_first);
    return s;
}

struct lower_stat *lower_stats(struct arena *a, const struct ptx_module *m, size_t *n)
{
    struct lower_stat *v = ARENA_ARRAY(a, m->items.n + 1, struct lower_stat);
    *n = 0;
    for (size_t i = 0; i < m->items.n; i++)
        if (m->items.v[i].kind == PTX_I_FUNC && m->items.v[i].func->is_entry)
            v[(*n)++] = stat_of(a, m, m->items.v[i].func);
    return v;
}
