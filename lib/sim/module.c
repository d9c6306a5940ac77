#include <config.h>

#include <inttypes.h>

#include "sim/module.h"

/* ---- launches -------------------------------------------------------------------------------- */

static const struct ptx_func *find_entry(const struct ptx_module *m, const char *name,
                                         struct diags *d)
{
    const struct ptx_func *f = ptx_find_entry(m, name);
    if (f && f->has_body)
        return f;
    struct buf have = buf_in(d->arena);
    size_t n = 0;
    for (size_t i = 0; i < m->items.n; i++)
        if (m->items.v[i].kind == PTX_I_FUNC && m->items.v[i].func->is_entry &&
            m->items.v[i].func->has_body)
            buf_printf(&have, "%s'%s'", n++ ? ", " : "", m->items.v[i].func->name);
    diag_error(d, SPAN_NONE, "the module has no entry '%s'", name);
    if (n)
        diag_note(d, SPAN_NONE, "it has %s", buf_text(&have));
    return NULL;
}

static bool check_geometry(const struct ptx_func *f, const struct device_launch *w, struct diags *d)
{
    const struct device_dim *g = &w->grid, *b = &w->block;
    if (!g->x || !g->y || !g->z || !b->x || !b->y || !b->z)
        return diag_error(d, SPAN_NONE,
                          "kernel '%s': grid (%u,%u,%u) of blocks (%u,%u,%u) has no threads",
                          f->name, g->x, g->y, g->z, b->x, b->y, b->z);
    if (g->x > INT32_MAX || g->y > 65535 || g->z > 65535)
        return diag_error(d, SPAN_NONE,
                          "kernel '%s': a grid of (%u,%u,%u) blocks is over the limit of "
                          "(2147483647,65535,65535)",
                          f->name, g->x, g->y, g->z);
    const uint64_t threads = (uint64_t)b->x * b->y * b->z;
    if (b->x > 1024 || b->y > 1024 || b->z > 64 || threads > SIM_MAX_THREADS)
        return diag_error(d, SPAN_NONE,
                          "kernel '%s': a block of (%u,%u,%u) threads is over the limit of "
                          "(1024,1024,64) and 1024 in "
                          "all",
                          f->name, b->x, b->y, b->z);
    const uint64_t most = (uint64_t)f->maxntid[0] * (f->maxntid[1] ? f->maxntid[1] : 1) *
                          (f->maxntid[2] ? f->maxntid[2] : 1);
    if (f->maxntid[0] && threads > most)
        return diag_error(d, f->span,
                          "kernel '%s' was compiled for at most %" PRIu64
                          " threads, the launch has %" PRIu64,
                          f->name, most, threads);
    const uint32_t want[3] = {f->reqntid[0], f->reqntid[1] ? f->reqntid[1] : 1,
                              f->reqntid[2] ? f->reqntid[2] : 1};
    if (f->reqntid[0] && (b->x != want[0] || b->y != want[1] || b->z != want[2]))
        return diag_error(
            d, f->span, "kernel '%s' needs blocks of (%u,%u,%u) threads, the launch has (%u,%u,%u)",
            f->name, want[0], want[1], want[2], b->x, b->y, b->z);
    return true;
}

/* .reqnctapercluster as the entry has it; 0 0 0 when it has none. */
static struct device_dim required_cluster(const struct ptx_func *f)
{
    struct device_dim c = {0, 0, 0};
    const char *p = strstr(f->directives, ".reqnctapercluster");
    if (!p || sscanf(p, ".reqnctapercluster %u , %u , %u", &c.x, &c.y, &c.z) < 1)
        return (struct device_dim){0, 0, 0};
    c.y = c.y ? c.y : 1;
    c.z = c.z ? c.z : 1;
    return c;
}

struct device_dim sim_cluster_of(const struct ptx_func *f, const struct device_launch *what)
{
    const struct device_dim req = required_cluster(f), *c = &what->cluster;
    return req.x  ? req
           : c->x ? (struct device_dim){c->x, c->y ? c->y : 1, c->z ? c->z : 1}
                  : (struct device_dim){1, 1, 1};
}

static bool check_cluster(const struct ptx_module *m, const struct ptx_func *f,
                          const struct device_launch *w, struct diags *d)
{
    const struct device_dim c = sim_cluster_of(f, w), *g = &w->grid, *have = &w->cluster;
    const uint64_t blocks = (uint64_t)c.x * c.y * c.z;
    if (have->x &&
        (have->x != c.x || (have->y ? have->y : 1) != c.y || (have->z ? have->z : 1) != c.z))
        return diag_error(
            d, f->span,
            "kernel '%s' needs clusters of (%u,%u,%u) blocks, the launch has (%u,%u,%u)", f->name,
            c.x, c.y, c.z, have->x, have->y, have->z);
    if (blocks > 1 && m->sm < 90)
        return diag_error(d, f->span, "kernel '%s': clusters of blocks need sm_90, this is sm_%u",
                          f->name, m->sm);
    if (!blocks || c.x > SIM_MAX_CLUSTER || c.y > SIM_MAX_CLUSTER || blocks > SIM_MAX_CLUSTER)
        return diag_error(d, f->span, "kernel '%s': a cluster has 1 to %d blocks, not (%u,%u,%u)",
                          f->name, SIM_MAX_CLUSTER, c.x, c.y, c.z);
    if (g->x % c.x || g->y % c.y || g->z % c.z)
        return diag_error(d, f->span,
                          "kernel '%s': a grid of (%u,%u,%u) blocks is not made of clusters of "
                          "(%u,%u,%u)",
                          f->name, g->x, g->y, g->z, c.x, c.y, c.z);
    return true;
}

uint32_t sim_resident(const struct sim_launch *l)
{
    enum { PROCESSORS = 132 };
    const struct ptx_target *t = ptx_target_find("sm_90", 5);
    const uint64_t warps = (l->threads + SIM_LANES - 1) / SIM_LANES;
    uint64_t each = t->threads_per_sm / (warps * SIM_LANES);
    if (l->shared_bytes && each > t->shared_per_sm / l->shared_bytes)
        each = t->shared_per_sm / l->shared_bytes;
    if (each > t->blocks_per_sm)
        each = t->blocks_per_sm;
    return (uint32_t)(PROCESSORS * (each ? each : 1));
}

static bool check_args(const struct ptx_func *f, const struct device_launch *w, struct diags *d)
{
    if (w->narg != f->params.n)
        return diag_error(d, f->span, "kernel '%s' has %zu parameters, the launch gives %zu",
                          f->name, f->params.n, w->narg);
    for (size_t i = 0; i < w->narg; i++) {
        const struct ptx_var *v = f->params.v[i];
        if (w->arg_bytes[i] != ptx_var_bytes(v))
            return diag_error(d, v->span,
                              "parameter '%s' of kernel '%s' has %" PRIu64
                              " bytes, the launch gives %zu",
                              v->name, f->name, ptx_var_bytes(v), w->arg_bytes[i]);
    }
    return true;
}

const struct ptx_func *sim_check_launch(const struct ptx_module *m,
                                        const struct device_launch *what, struct diags *d)
{
    const struct ptx_func *f = find_entry(m, what->entry, d);
    const bool fits = f && check_geometry(f, what, d) && check_cluster(m, f, what, d) &&
                      check_args(f, what, d);
    return fits ? f : NULL;
}

bool sim_check_shared(const struct ptx_module *m, const struct sim_code *code,
                      const struct device_launch *what, uint64_t *bytes, struct diags *d)
{
    enum { STATIC_MOST = 48 * 1024 }; /* more must be asked for at launch, as dynamic memory */
    char name[16];
    const int n = snprintf(name, sizeof name, "sm_%u", m->sm);
    const struct ptx_target *t = ptx_target_find(name, (size_t)n);
    const uint64_t most = t ? t->shared_optin : STATIC_MOST;
    *bytes = code->shared_bytes + what->shared_bytes;
    if (what->shared_bytes)
        *bytes = (code->shared_bytes + code->dynamic_align - 1) / code->dynamic_align *
                     code->dynamic_align +
                 what->shared_bytes;
    if (code->shared_bytes > STATIC_MOST)
        return diag_error(d, code->func->span,
                          "kernel '%s' declares %" PRIu64
                          " bytes of shared memory, the limit is %d; more must be dynamic",
                          what->entry, code->shared_bytes, STATIC_MOST);
    if (*bytes > most)
        return diag_error(d, code->func->span,
                          "kernel '%s' needs %" PRIu64
                          " bytes of shared memory a block, %s has %" PRIu64,
                          what->entry, *bytes, name, most);
    if (code->reserves) /* beside what the program may have */
        *bytes = (*bytes + 127) / 128 * 128 + SIM_RESERVED;
    return true;
}

struct sim_params sim_pack_params(struct arena *a, const struct ptx_func *f,
                                  const struct device_launch *what)
{
    struct sim_params p = {.offset = ARENA_ARRAY(a, f->params.n, uint64_t)};
    for (size_t i = 0; i < f->params.n; i++) {
        const uint64_t align = ptx_var_align(f->params.v[i]);
        p.offset[i] = (p.bytes + align - 1) / align * align;
        p.bytes = p.offset[i] + ptx_var_bytes(f->params.v[i]);
    }
    p.block = arena_alloc(a, (size_t)p.bytes);
    for (size_t i = 0; i < f->params.n; i++)
        memcpy(p.block + p.offset[i], what->args[i], what->arg_bytes[i]);
    return p;
}

/* ---- functions ------------------------------------------------------------------------------- */

static bool has_number(const struct ptx_item *item)
{
    return item->kind == PTX_I_FUNC && !item->func->is_entry && item->func->has_body;
}

uint32_t sim_functions(const struct ptx_module *m)
{
    uint32_t n = 0;
    for (size_t i = 0; i < m->items.n; i++)
        n += has_number(&m->items.v[i]);
    return n;
}

uint32_t sim_function_number(const struct ptx_module *m, const struct ptx_func *f)
{
    uint32_t n = 0;
    for (size_t i = 0; m->items.v[i].func != f || !has_number(&m->items.v[i]); i++)
        n += has_number(&m->items.v[i]);
    return n;
}

uint64_t sim_function_address(const struct ptx_module *m, const char *name, size_t len)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->items.n; i++) {
        const struct ptx_item *item = &m->items.v[i];
        if (!has_number(item))
            continue;
        if (strlen(item->func->name) == len && memcmp(item->func->name, name, len) == 0)
            return SIM_CODE_BASE + 16 * n;
        n++;
    }
    return 0;
}
