#include <config.h>

#include "run/plan.h"

#include <inttypes.h>

#include "run/program.h"

/* What every device since sm_70 has: CUDA C++ Programming Guide, "Technical Specifications per
 * Compute Capability". */
enum { BLOCK_THREADS = 1024, SHARED_MOST = 227 * 1024, CLUSTER_MOST = 16 };
static const uint32_t grid_limit[3] = {INT32_MAX, 65535, 65535};
static const uint32_t block_limit[3] = {1024, 1024, 64};
static const char axis[3] = {'x', 'y', 'z'};

/* "; n is 1001": what an expression's value came from. */
static const char *because(struct run *r, const struct lang_expr *e)
{
    const char *values = run_values_text(r, e);
    return *values ? arena_printf(r->arena, "; %s", values) : "";
}

/* One extent; a missing expression is 1. */
static bool extent(struct run *r, const struct lang_expr *e, const char *what, int k, uint32_t low,
                   uint32_t limit, uint32_t *out)
{
    int64_t v = 1;
    if (e && !run_eval(r, e, &v))
        return false;
    if (v < low || v > limit)
        return diag_error(r->d, e->span,
                          "%s %c is %" PRId64 "; it must be between %" PRIu32 " and %" PRIu32 "%s",
                          what, axis[k], v, low, limit, because(r, e));
    *out = (uint32_t)v;
    return true;
}

static bool extents(struct run *r, struct lang_expr *const e[3], const char *what, uint32_t low,
                    const uint32_t limit[3], struct device_dim *out)
{
    return extent(r, e[0], what, 0, low, limit[0], &out->x) &&
           extent(r, e[1], what, 1, low, limit[1], &out->y) &&
           extent(r, e[2], what, 2, low, limit[2], &out->z);
}

static bool has_multiprocessors(const struct lang_expr *e)
{
    bool has = e && e->kind == E_SPECIAL;
    for (uint32_t i = 0; e && i < e->nargs && !has; i++)
        has = has_multiprocessors(e->args[i]);
    return has;
}

static bool goes_by_device(const struct contract_launch *l)
{
    return has_multiprocessors(l->grid[0]) || has_multiprocessors(l->grid[1]) ||
           has_multiprocessors(l->grid[2]);
}

static bool plan_geometry(struct run *r, const struct contract_launch *src, struct device_launch *l)
{
    static const uint32_t cluster_limit[3] = {CLUSTER_MOST, CLUSTER_MOST, CLUSTER_MOST};
    int64_t shared = 0;
    const bool open = r->any_device && goes_by_device(src);
    struct diags *const d = r->d;
    if (open)
        r->d = diags_new(r->arena);
    const bool good = extents(r, src->grid, "grid", 0, grid_limit, &l->grid);
    r->d = d;
    if (!good && open)
        l->grid = (struct device_dim){0};
    if ((!good && !open) || !extents(r, src->block, "block", 1, block_limit, &l->block))
        return false;
    uint64_t threads = (uint64_t)l->block.x * l->block.y * l->block.z;
    if (threads > BLOCK_THREADS)
        return diag_error(r->d, src->block[0] ? src->block[0]->span : src->span,
                          "a block has %" PRIu64 " threads; the limit is %d", threads,
                          BLOCK_THREADS);
    if (src->shared && !run_eval(r, src->shared, &shared))
        return false;
    if (shared < 0 || shared > SHARED_MOST)
        return diag_error(r->d, src->shared->span,
                          "a block asks for %" PRId64
                          " bytes of dynamic shared memory; the limit is %d%s",
                          shared, SHARED_MOST, because(r, src->shared));
    l->shared_bytes = (uint32_t)shared;
    if (!src->cluster[0])
        return true;
    if (!extents(r, src->cluster, "cluster", 1, cluster_limit, &l->cluster))
        return false;
    struct device_dim g = l->grid, c = l->cluster;
    if ((uint64_t)c.x * c.y * c.z > CLUSTER_MOST)
        return diag_error(r->d, src->cluster[0]->span,
                          "a cluster has %" PRIu32 " blocks; the limit is %d", c.x * c.y * c.z,
                          CLUSTER_MOST);
    if (open)
        return true;
    if (g.x % c.x || g.y % c.y || g.z % c.z)
        return diag_error(r->d, src->cluster[0]->span,
                          "the grid (%" PRIu32 ", %" PRIu32 ", %" PRIu32
                          ") is not a multiple of the cluster (%" PRIu32 ", %" PRIu32 ", %" PRIu32
                          ")",
                          g.x, g.y, g.z, c.x, c.y, c.z);
    return true;
}

/* ---- arguments ---- */

static size_t up(size_t n, size_t align)
{
    return (n + align - 1) / align * align;
}

static size_t arg_align(const struct contract_arg *arg);

static size_t arg_bytes(const struct contract_arg *arg)
{
    if (arg->fields) {
        size_t n = 0;
        for (size_t i = 0; i < arg->fields->args.n; i++) {
            const struct contract_arg *member = &arg->fields->args.v[i];
            n = up(n, arg_align(member)) + arg_bytes(member);
        }
        return up(n, arg_align(arg));
    }
    if (arg->map)
        return DEVICE_TENSOR_MAP;
    if (arg->sym && arg->sym->kind == SYM_BUFFER)
        return 8;
    return dtype_bytes(arg->type, 1);
}

/* As in C; of a CUtensorMap 64. */
static size_t arg_align(const struct contract_arg *arg)
{
    size_t most = 1;
    for (size_t i = 0; arg->fields && i < arg->fields->args.n; i++) {
        const size_t align = arg_align(&arg->fields->args.v[i]);
        most = align > most ? align : most;
    }
    return arg->fields ? most : arg->map ? 64 : arg_bytes(arg);
}

int plan_buffer(const struct run *r, const struct lang_symbol *sym)
{
    for (size_t i = 0; sym && i < run_nbuffer(r); i++)
        if (run_buffer(r, i)->sym == sym)
            return (int)i;
    return -1;
}

static const struct run_param *param_of(const struct run *r, const struct lang_symbol *sym)
{
    int i = plan_buffer(r, sym);
    return i < 0 ? NULL : run_buffer(r, (size_t)i);
}

static bool plan_value(struct run *r, const struct contract_arg *arg, uint64_t *value)
{
    const struct run_param *p = param_of(r, arg->sym);
    int64_t v = 0;
    double f = p ? p->f : 0;
    *value = 0;
    if (arg->is_messages || arg->map || (p && run_is_buffer(p)))
        return true;
    if (dtype_is_float(arg->type)) {
        if (!p && !run_eval_real(r, arg->expr, &f))
            return false;
        dtype_set(arg->type, value, 0, f);
        return true;
    }
    if (p) {
        v = p->i;
    } else if (arg->sym) {
        if (!run_dim_value(r, arg->sym, &v))
            return false;
    } else if (!run_eval(r, arg->expr, &v)) {
        return false;
    }
    bool in = dtype_class(arg->type) == DTC_I
                  ? v >= dtype_imin(arg->type) && v <= (int64_t)dtype_imax(arg->type)
                  : (uint64_t)v <= dtype_imax(arg->type);
    /* a u64 scalar is any 64 bits; a computed value is a number, which may be negative */
    if (!in || (!p && dtype_class(arg->type) != DTC_I && v < 0))
        return diag_error(r->d, arg->span, "the argument is %" PRId64 ", which is no %s%s", v,
                          dtype_name(arg->type), arg->expr ? because(r, arg->expr) : "");
    /* a 4-bit scalar is passed as a byte of its value */
    enum dtype passed = arg->type == DT_I4 ? DT_I8 : arg->type == DT_U4 ? DT_U8 : arg->type;
    dtype_set_int(passed, value, 0, v);
    return true;
}

/* The argument's value, or of a struct its members', goes to `to`; map: of the next tensor map. */
static bool plan_field(struct run *r, const struct contract_arg *arg, unsigned char *to,
                       struct plan_launch *p, size_t *map)
{
    uint64_t value;
    size_t at = 0;
    if (arg->map) {
        if (*map < p->nmap)
            p->map[(*map)++].member = to;
        return true;
    }
    for (size_t i = 0; arg->fields && i < arg->fields->args.n; i++) {
        const struct contract_arg *member = &arg->fields->args.v[i];
        at = up(at, arg_align(member));
        if (!plan_field(r, member, to + at, p, map))
            return false;
        at += arg_bytes(member);
    }
    if (arg->fields)
        return true;
    *VEC_PUSH(r->arena, &p->fields) = (struct plan_field){arg, to};
    if (!plan_value(r, arg, &value))
        return false;
    memcpy(to, &value, arg_bytes(arg));
    return true;
}

/* Against the entry's own parameters, so that a kernel never reads an argument that is not
 * there. */
static bool check_entry(struct run *r, const struct ptx_module *m, const struct plan_launch *p)
{
    const struct ptx_func *f = ptx_find_entry(m, p->l.entry);
    const struct device_dim b = p->l.block;
    if (!f)
        return diag_error(r->d, p->src->span, "the module has no entry '%s'", p->l.entry);
    if (f->params.n != p->l.narg)
        return diag_error(r->d, p->src->span,
                          "entry '%s' has %zu parameters; %zu arguments are passed", f->name,
                          f->params.n, p->l.narg);
    for (size_t i = 0; i < f->params.n; i++)
        if (ptx_var_bytes(f->params.v[i]) != p->l.arg_bytes[i])
            return diag_error(r->d, p->src->args.v[i].span,
                              "parameter '%s' of entry '%s' has %" PRIu64 " bytes; %zu are passed",
                              f->params.v[i]->name, f->name, ptx_var_bytes(f->params.v[i]),
                              p->l.arg_bytes[i]);
    for (size_t i = 0; i < f->params.n; i++)
        if (p->src->args.v[i].map && ptx_var_align(f->params.v[i]) < 64)
            return diag_error(r->d, p->src->args.v[i].span,
                              "parameter '%s' of entry '%s' gets a tensor map; declare it with "
                              ".align 64",
                              f->params.v[i]->name, f->name);
    const uint32_t block[3] = {b.x, b.y, b.z};
    uint64_t most = 1;
    for (int k = 0; k < 3; k++) {
        if (f->reqntid[0] && block[k] != (f->reqntid[k] ? f->reqntid[k] : 1))
            return diag_error(r->d, p->src->span,
                              "entry '%s' requires blocks of %" PRIu32 " in %c; %" PRIu32 " given",
                              f->name, f->reqntid[k] ? f->reqntid[k] : 1, axis[k], block[k]);
        most *= f->maxntid[k] ? f->maxntid[k] : 1;
    }
    if (f->maxntid[0] && (uint64_t)b.x * b.y * b.z > most)
        return diag_error(r->d, p->src->span,
                          "entry '%s' takes blocks of at most %" PRIu64 " threads; %" PRIu64
                          " given",
                          f->name, most, (uint64_t)b.x * b.y * b.z);
    return true;
}

/* The arrays in the launch's dynamic shared memory, which its bytes must hold. */
static bool plan_arrays(struct run *r, const struct contract_launch *src, struct device_launch *l)
{
    struct device_array *v = ARENA_ARRAY(r->arena, src->arrays.n, struct device_array);
    for (size_t i = 0; i < src->arrays.n; i++) {
        const struct contract_array *a = &src->arrays.v[i];
        uint64_t *dim = ARENA_ARRAY(r->arena, a->extents.n, uint64_t);
        /* one without extents reaches to the end, which may be where it begins */
        uint64_t bytes = a->extents.n ? dtype_bytes(a->type, 1) : 0;
        int64_t n;
        if (!run_eval(r, a->at, &n))
            return false;
        v[i] = (struct device_array){a->name, dtype_name(a->type), (uint64_t)n,
                                     (unsigned)a->extents.n, dim};
        for (size_t k = 0; k < a->extents.n; k++) {
            if (!run_eval(r, a->extents.v[k], &n))
                return false;
            dim[k] = (uint64_t)n;
            if (n < 0 || __builtin_mul_overflow(bytes, dim[k], &bytes))
                bytes = UINT64_MAX;
        }
        if (v[i].at > l->shared_bytes || bytes > l->shared_bytes - v[i].at)
            return diag_error(r->d, a->at->span,
                              "array '%s' is not inside the launch's %" PRIu32
                              " bytes of shared memory",
                              a->name, l->shared_bytes);
    }
    l->array = v;
    l->narray = src->arrays.n;
    return true;
}

static bool is_empty(const struct device_dim *grid)
{
    return !grid->x || !grid->y || !grid->z;
}

static bool plan_launch(struct run *r, const struct ptx_module *m,
                        const struct contract_launch *src, struct plan_launch *p)
{
    size_t n = src->args.n;
    const void **args = ARENA_ARRAY(r->arena, n, const void *);
    size_t *bytes = ARENA_ARRAY(r->arena, n, size_t);
    *p = (struct plan_launch){.src = src, .value = ARENA_ARRAY(r->arena, n, uint64_t)};
    p->l = (struct device_launch){.entry = src->entry, .args = args, .arg_bytes = bytes, .narg = n};
    if (!plan_geometry(r, src, &p->l) || !plan_arrays(r, src, &p->l))
        return false;
    /* no launch, no maps: what is wrong with them is wrong with nothing */
    if (!is_empty(&p->l.grid) && !plan_read_maps(r, src, p))
        return false;
    for (size_t i = 0, map = 0; i < n; i++) {
        const struct contract_arg *arg = &src->args.v[i];
        bytes[i] = arg_bytes(arg);
        args[i] = &p->value[i];
        if (arg->map && map < p->nmap)
            args[i] = p->map[map++].bytes;
        else if (arg->fields)
            args[i] = arena_alloc(r->arena, bytes[i]);
        if (!arg->map && !plan_field(r, arg, (unsigned char *)(uintptr_t)args[i], p, &map))
            return false;
    }
    return !m || check_entry(r, m, p);
}

/* Of consecutive launches of a step with conditions the first that holds is taken: i moves past the
 * group, *take is the one chosen. */
static bool choose(struct run *r, size_t *i, const struct contract_launch **take)
{
    const struct contract *c = r->contract;
    size_t first = *i;
    *take = NULL;
    for (; *i < c->launches.n && c->launches.v[*i].when &&
           c->launches.v[*i].step == c->launches.v[first].step;
         ++*i) {
        int64_t holds = 0;
        if (!*take && !run_eval(r, c->launches.v[*i].when, &holds))
            return false;
        if (!*take && holds)
            *take = &c->launches.v[*i];
    }
    if (*take)
        return true;
    return diag_error(r->d, c->launches.v[first].when->span,
                      "no variant of '%s' is for these sizes%s", c->kernel,
                      because(r, c->launches.v[first].when));
}

void plan_for(struct run *r, const struct device_ops *ops, struct device *dev)
{
    struct device_info info;
    ops->info(dev, &info);
    if (info.multiprocessors)
        r->multiprocessors = info.multiprocessors;
}

bool run_skips(struct run *r, const struct contract_launch *l)
{
    int64_t n;
    for (uint32_t i = 0; i < 3; i++)
        if (l->grid[i] && run_eval(r, l->grid[i], &n) && n == 0)
            return true;
    return false;
}

bool plan_make(struct run *r, const struct ptx_module *m, struct plan *plan)
{
    const struct contract *c = r->contract;
    *plan = (struct plan){.v = ARENA_ARRAY(r->arena, c->launches.n, struct plan_launch)};
    for (size_t i = 0; i < c->launches.n;) {
        const struct contract_launch *src = &c->launches.v[i];
        if (!src->when)
            i++;
        else if (!choose(r, &i, &src))
            return false;
        struct plan_launch *p = &plan->v[plan->n];
        if (!plan_launch(r, m, src, p))
            return false;
        if (!is_empty(&p->l.grid))
            plan->n++;
    }
    return true;
}

bool plan_scalars(struct run *r, struct plan *plan)
{
    for (size_t i = 0; i < plan->n; i++)
        for (size_t k = 0; k < plan->v[i].fields.n; k++) {
            const struct plan_field *f = &plan->v[i].fields.v[k];
            uint64_t value;
            if (!f->arg->sym || f->arg->sym->kind != SYM_SCALAR)
                continue;
            if (!plan_value(r, f->arg, &value))
                return false;
            memcpy(f->to, &value, arg_bytes(f->arg));
        }
    return true;
}

bool run_check(struct run *r, const struct ptx_module *m)
{
    struct plan plan;
    r->any_device = true;
    const bool good = r->contract->is_program ? program_check(r, m) : plan_make(r, m, &plan);
    r->any_device = false;
    return good;
}

/* The buffer's address; 0 when it is none. */
static uint64_t address_of(const struct run *r, const struct lang_symbol *sym,
                           const uint64_t *address)
{
    int i = plan_buffer(r, sym);
    return i >= 0 && run_is_buffer(run_buffer(r, (size_t)i)) ? address[i] : 0;
}

void plan_addresses(const struct run *r, struct plan *plan, const uint64_t *address,
                    uint64_t messages)
{
    for (size_t i = 0; i < plan->n; i++) {
        struct plan_launch *p = &plan->v[i];
        for (size_t k = 0; k < p->fields.n; k++) {
            const struct plan_field *f = &p->fields.v[k];
            uint64_t at = f->arg->is_messages ? messages : address_of(r, f->arg->sym, address);
            if (at || f->arg->is_messages)
                memcpy(f->to, &at, sizeof at);
        }
        for (size_t k = 0; k < p->nmap; k++)
            p->map[k].m.address = address_of(r, p->map[k].src->sym, address) + p->map[k].at;
    }
}

unsigned plan_clears(const struct run *r)
{
    unsigned n = 0;
    for (size_t i = 0; i < run_nbuffer(r); i++)
        n += run_is_cleared(r, i) && run_buffer(r, i)->host.bytes;
    return n;
}

enum device_status plan_clear(const struct run *r, const struct device_queue *queue,
                              struct device *dev, const uint64_t *address, struct diags *d)
{
    enum device_status status = DEVICE_OK;
    for (size_t i = 0; i < run_nbuffer(r) && status == DEVICE_OK; i++)
        if (run_is_cleared(r, i))
            status = queue->fill(dev, address[i], 0, run_buffer(r, i)->host.bytes, d);
    return status;
}
