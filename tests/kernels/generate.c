#include <config.h>

#include "kernels/generate_int.h"

#include <math.h>

/* ---- small things ---------------------------------------------------------------------------- */

bool gen_one_in(struct gen *g, unsigned n)
{
    return random_one_in(&g->r, n);
}

unsigned gen_below(struct gen *g, unsigned n)
{
    return random_below(&g->r, n);
}

const char *gen_name(struct gen *g, const char *stem)
{
    return arena_printf(g->a, "%s%u", stem, g->names++);
}

void gen_line(struct gen *g, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *s = arena_vprintf(g->a, fmt, ap);
    va_end(ap);
    buf_printf(g->out, "%*s%s\n", (int)(2 + 2 * g->indent), "", s);
}

struct var *gen_add_var(struct gen *g, const char *name, enum dtype t, bool fixed)
{
    for (size_t i = 0; i < g->vars.n; i++)
        if (strcmp(g->vars.v[i].name, name) == 0)
            g->said.n = 0; /* what was said with this name means something else now */
    struct var *v = VEC_PUSH(g->a, &g->vars);
    *v = (struct var){.name = name, .type = t, .fixed = fixed};
    return v;
}

void gen_forget(struct gen *g, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->said.n; i++)
        if (g->said.v[i].vars <= n)
            g->said.v[kept++] = g->said.v[i];
    g->said.n = kept;
    for (size_t i = n; i < g->vars.n; i++)
        for (size_t k = 0; k < n; k++)
            if (strcmp(g->vars.v[i].name, g->vars.v[k].name) == 0)
                g->said.n = 0;
    g->vars.n = n;
}

bool gen_is_visible(const struct gen *g, size_t i)
{
    for (size_t k = i + 1; k < g->vars.n; k++)
        if (strcmp(g->vars.v[k].name, g->vars.v[i].name) == 0)
            return false;
    return true;
}

const char *gen_outer_name(struct gen *g)
{
    const char *found = NULL;
    unsigned n = 0;
    for (size_t i = 0; i < g->scope && i < g->vars.n; i++) {
        const char *name = g->vars.v[i].name;
        bool here = name[0] != 'v'; /* tid, counters, parameters and arrays keep their names */
        for (size_t k = g->scope; k < g->vars.n; k++)
            here |= strcmp(g->vars.v[k].name, name) == 0;
        if (!here && gen_one_in(g, ++n))
            found = name;
    }
    return found;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static void shape(struct gen *g, struct gen_buffer *b)
{
    static const uint32_t extents[] = {1, 2, 4, 8, 16, 32, 3, 5, 6, 10, 12};
    b->rank = b->use == USE_READ ? 1 + gen_below(g, 3) : 2;
    if (b->use == USE_READ && gen_one_in(g, 12) && dtype_bits(b->type) >= 8)
        b->rank = 0;
    for (uint32_t i = 0; i < b->rank; i++)
        b->dim[i] = extents[gen_below(g, sizeof extents / sizeof *extents)];
    if (dtype_bits(b->type) < 8 && b->dim[b->rank - 1] & 1)
        b->dim[b->rank - 1]++;
    if (b->use == USE_READ && b->rank && gen_one_in(g, 3)) {
        b->named = (int)g->dims.n;
        *VEC_PUSH(g->a, &g->dims) = b->dim[0];
    }
    if (b->use == USE_WIDE)
        b->dim[0] = 16;
    if (b->use == USE_OWN) {
        b->dim[0] = 1u << gen_below(g, 3);
        b->slots_first = gen_one_in(g, 2);
        if (b->dim[0] == 1 && gen_one_in(g, 2))
            b->rank = 1;
    }
}

struct gen_buffer gen_buffer(struct gen *g, enum buffer_use use, enum dtype t)
{
    unsigned n = 0;
    struct gen_buffer *found = NULL;
    for (size_t i = 0; i < g->buffers.n; i++)
        if (g->buffers.v[i].use == use && g->buffers.v[i].type == t && gen_one_in(g, ++n))
            found = &g->buffers.v[i];
    if (found && (!gen_one_in(g, 4) || g->buffers.n > 12))
        return *found;
    struct gen_buffer *b = VEC_PUSH(g->a, &g->buffers);
    *b = (struct gen_buffer){.type = t, .use = use, .named = -1};
    b->name = gen_name(g, use == USE_READ ? "x" : use == USE_OWN ? "y" : "q");
    b->mode = use == USE_READ ? "in" : gen_one_in(g, 2) ? "out" : "inout";
    shape(g, b);
    return *b;
}

struct gen_buffer gen_sum(struct gen *g, enum dtype t, unsigned op)
{
    for (size_t i = 0; i < g->buffers.n; i++) {
        struct gen_buffer b = g->buffers.v[i];
        if (b.use == USE_SUM && b.type == t && b.op == op)
            return b;
    }
    struct gen_buffer *b = VEC_PUSH(g->a, &g->buffers);
    *b = (struct gen_buffer){.name = gen_name(g, "h"),
                             .type = t,
                             .use = USE_SUM,
                             .mode = "inout",
                             .op = op,
                             .rank = 1,
                             .dim = {1u << gen_below(g, 5)}};
    return *b;
}

static void print_buffer(struct gen *g, const struct gen_buffer *b, struct buf *out)
{
    const char *mode = b->use == USE_READ && gen_one_in(g, 3) ? "" : b->mode;
    buf_printf(out, "  %s: %s%s%s[", b->name, mode, *mode ? " " : "", dtype_name(b->type));
    if (b->use == USE_READ) {
        for (uint32_t i = 0; i < b->rank; i++)
            if (i == 0 && b->named >= 0)
                buf_printf(out, "d%d", b->named);
            else
                buf_printf(out, "%s%u", i ? ", " : "", b->dim[i]);
    } else if (b->use == USE_SUM) {
        buf_printf(out, "%u", b->dim[0]);
    } else if (b->rank == 1) {
        buf_puts(out, "n");
    } else if (b->slots_first) {
        buf_printf(out, "%u, n", b->dim[0]);
    } else {
        buf_printf(out, "n, %u", b->dim[0]);
    }
    buf_puts(out, "]\n");
}

/* ---- scalars and the launch ------------------------------------------------------------------ */

static void add_scalars(struct gen *g)
{
    for (unsigned n = gen_below(g, 4); n > 0; n--) {
        enum dtype t = gen_scalar_type(g);
        struct var *v = VEC_PUSH(g->a, &g->scalars);
        *v = (struct var){.name = gen_name(g, "s"), .type = t, .fixed = true};
        const char *value;
        if (dtype_is_float(t))
            value = arena_printf(g->a, "%d.%u", (int)gen_below(g, 40) - 20, gen_below(g, 1000));
        else if (t == DT_BOOL)
            value = gen_one_in(g, 2) ? "true" : "false";
        else if (dtype_class(t) == DTC_I)
            value = arena_printf(g->a, "%d", (int)gen_below(g, 200) - 100);
        else
            value = arena_printf(g->a, "%u", gen_below(g, 200));
        *VEC_PUSH(g->a, &g->scalar_values) = value;
    }
}

static void choose_launch(struct gen *g)
{
    static const uint32_t shapes[][3] = {{32, 1, 1},  {64, 1, 1}, {33, 1, 1}, {7, 1, 1}, {96, 1, 1},
                                         {8, 4, 1},   {16, 2, 2}, {5, 3, 2},  {1, 1, 1}, {32, 3, 1},
                                         {128, 1, 1}, {4, 16, 2}, {50, 2, 1}};
    unsigned k = gen_below(g, sizeof shapes / sizeof *shapes);
    memcpy(g->block, shapes[k], sizeof g->block);
    for (int i = 0; i < 3; i++)
        g->grid[i] = gen_one_in(g, 3) ? 1 + gen_below(g, 3) : 1;
    for (int i = 0; i < 3; i++)
        g->cluster[i] = g->sm >= 90 && gen_one_in(g, 4) ? 2 : 1;
    for (int i = 0; i < 3; i++)
        g->grid[i] *= g->cluster[i];
    g->threads = 1;
    for (int i = 0; i < 3; i++)
        g->threads *= g->block[i] * g->grid[i];
    g->n = g->threads;
    if (gen_one_in(g, 3) && g->threads > 4 && !g->together)
        g->n -= gen_below(g, g->threads / 2);
}

/* The number of this thread in the whole grid, and what lies beyond n ends. */
static void number_threads(struct gen *g)
{
    bool line = g->block[1] * g->block[2] * g->grid[1] * g->grid[2] == 1;
    if (line && !gen_one_in(g, 4) && !g->together) {
        gen_line(g, "u32 tid = blockIdx.x * blockDim.x + threadIdx.x;");
    } else {
        gen_line(g, "u32 bid = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;");
        gen_line(g, "u32 within = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + "
                    "threadIdx.x;");
        gen_line(g, "u32 tid = bid * (blockDim.x * blockDim.y * blockDim.z) + within;");
    }
    if (g->n < g->threads)
        gen_line(g, "if (tid >= n) return;");
    gen_add_var(g, "tid", DT_U32, true);
}

/* ---- functions ------------------------------------------------------------------------------- */

/* A function that stores one of its parameters; the element is the thread's own. */
static void storing_function(struct gen *g, struct gen_func *f)
{
    struct gen_buffer b = gen_buffer(g, USE_OWN, f->param[0]);
    f->result = DT_VOID;
    f->stores = true;
    const char *at = b.rank == 1 ? "at" : b.slots_first ? "0, at" : "at, 0";
    gen_line(g, "void %s(%s v, u32 at) { if (at < n) %s[%s] = v; }", f->name,
             dtype_name(f->param[0]), b.name, at);
}

static void function(struct gen *g)
{
    struct gen_func f = {.name = gen_name(g, "fn"), .nparam = 1 + gen_below(g, 3)};
    bool array = gen_one_in(g, 4);
    struct buf head = buf_in(g->a);
    f.result = gen_scalar_type(g);
    for (uint32_t i = 0; i < f.nparam; i++)
        f.param[i] = gen_one_in(g, 6) ? gen_vector_type(g, &f.param_lanes[i]) : gen_scalar_type(g);
    if (gen_one_in(g, 6))
        f.result = gen_vector_type(g, &f.lanes);
    buf_printf(&head, "%s %s(", gen_type_name(g, f.result, f.lanes), f.name);
    if (array) {
        f.param_lanes[0] = 0;
        f.param[0] = gen_scalar_type(g);
        f.array = 1 + gen_below(g, 5);
    }
    for (uint32_t i = 0; i < f.nparam; i++) {
        const char *p = gen_name(g, "p");
        if (i == 0 && array) {
            buf_printf(&head, "%s %s[%u]", dtype_name(f.param[0]), p, f.array);
            struct var *v = gen_add_var(g, p, f.param[0], false);
            v->rank = 1;
            v->dim[0] = f.array;
            v->moving = gen_one_in(g, 2);
            continue;
        }
        bool fixed = gen_one_in(g, 6);
        buf_printf(&head, "%s%s%s %s", i ? ", " : "", fixed ? "const " : "",
                   gen_type_name(g, f.param[i], f.param_lanes[i]), p);
        gen_add_var(g, p, f.param[i], fixed)->lanes = f.param_lanes[i];
    }
    gen_line(g, "%s) {", buf_text(&head));
    g->said.n = 0;
    g->in_func = true;
    g->result = f.lanes ? DT_VOID : f.result; /* an early return is of scalars */
    g->indent++;
    if (gen_one_in(g, 2))
        gen_statements(g, 1 + gen_below(g, 4), 2);
    gen_line(g, "return %s;",
             f.lanes ? gen_vector(g, f.result, f.lanes, 2).s : gen_assignable(g, f.result, 3).s);
    g->indent--;
    g->in_func = false;
    gen_line(g, "}");
    gen_forget(g, 0);
    *VEC_PUSH(g->a, &g->funcs) = f;
}

/* ---- all ------------------------------------------------------------------------------------- */

static struct gen_buffer *dump_buffer(struct gen *g, enum dtype t)
{
    for (size_t i = 0; i < g->buffers.n; i++)
        if (g->buffers.v[i].use == USE_DUMP && g->buffers.v[i].type == t)
            return &g->buffers.v[i];
    struct gen_buffer *b = VEC_PUSH(g->a, &g->buffers);
    *b = (struct gen_buffer){
        .name = gen_name(g, "z"), .type = t, .use = USE_DUMP, .mode = "out", .rank = 2};
    return b;
}

/* Every variable that is still known goes to a buffer: a wrong one shows. */
static void dump_variables(struct gen *g)
{
    for (size_t i = 0; i < g->vars.n; i++) {
        const struct var *v = &g->vars.v[i];
        if (!gen_is_visible(g, i))
            continue;
        struct gen_buffer *b = dump_buffer(g, v->type);
        uint32_t elements = 1, lanes = v->lanes ? v->lanes : 1;
        for (uint32_t k = 0; k < v->rank; k++)
            elements *= v->dim[k];
        for (uint32_t k = 0; k < elements * lanes && k < 16; k++) {
            const char *at = elements > 1 || v->rank ? arena_printf(g->a, "[%u]", k / lanes) : "";
            if (v->rank == 2)
                at = arena_printf(g->a, "[%u][%u]", k / lanes / v->dim[1], k / lanes % v->dim[1]);
            const char *lane = v->lanes ? arena_printf(g->a, "[%u]", k % lanes) : "";
            gen_line(g, "%s[tid, %u] = %s%s%s;", b->name, b->dim[0]++, v->name, at, lane);
        }
    }
}

static void print_launch(struct gen *g, const char *key, const uint32_t size[3], struct buf *out)
{
    uint32_t n = size[2] > 1 ? 3 : size[1] > 1 ? 2 : 1;
    if (n == 1 && gen_one_in(g, 2)) {
        buf_printf(out, "%s: %u\n", key, size[0]);
        return;
    }
    buf_printf(out, "%s: [%u", key, size[0]);
    for (uint32_t i = 1; i < n; i++)
        buf_printf(out, ", %u", size[i]);
    buf_puts(out, "]\n");
}

static void print_spec(struct gen *g, const char *name, const struct buf *functions,
                       const struct buf *body, struct buf *out)
{
    buf_printf(out, "kernel: %s\nparams:\n", name);
    for (size_t i = 0; i < g->buffers.n; i++)
        print_buffer(g, &g->buffers.v[i], out);
    for (size_t i = 0; i < g->scalars.n; i++)
        buf_printf(out, "  %s: %s\n", g->scalars.v[i].name, dtype_name(g->scalars.v[i].type));
    print_launch(g, "block", g->block, out);
    if (g->grid[1] * g->grid[2] * g->block[1] * g->block[2] == 1 && g->n > g->threads - g->block[0])
        buf_printf(out, "grid: ceil_div(n, %u)\n", g->block[0]);
    else
        print_launch(g, "grid", g->grid, out);
    if (g->cluster[0] * g->cluster[1] * g->cluster[2] > 1)
        print_launch(g, "cluster", g->cluster, out);
    if (gen_one_in(g, 3))
        buf_puts(out, "math: strict\n");
    if (g->dynamic != DT_VOID) {
        uint32_t n = g->block[0] * g->block[1] * g->block[2];
        buf_printf(out, "shared: %zu\n", dtype_bytes(g->dynamic, n));
    }
    if (functions->len)
        buf_printf(out, "functions: |\n%s", buf_text(functions));
    buf_printf(out, "body: |\n%s", buf_text(body));
    buf_printf(out, "cases:\n  one: {n: %u", g->n);
    for (size_t i = 0; i < g->dims.n; i++)
        buf_printf(out, ", d%zu: %u", i, g->dims.v[i]);
    for (size_t i = 0; i < g->scalars.n; i++)
        buf_printf(out, ", %s: %s", g->scalars.v[i].name, g->scalar_values.v[i]);
    buf_puts(out, "}\n");
}

const char *generate_kernel(struct arena *a, const char *name, unsigned sm, uint64_t seed,
                            uint64_t number)
{
    struct gen *g = ARENA_NEW(a, struct gen);
    struct buf functions = buf_in(a), body = buf_in(a), out = buf_in(a);
    *g = (struct gen){
        .a = a, .dynamic = DT_VOID, .sm = sm, .r = random_start(seed, number), .trips = 1};
    g->heavy = number % 6 == 0 ? 2 : 0;
    g->together = gen_one_in(g, 3);
    choose_launch(g);
    add_scalars(g);
    g->out = &functions;
    for (unsigned n = gen_below(g, 3); n > 0 && gen_one_in(g, 3); n--)
        gen_table(g);
    for (unsigned n = gen_below(g, 4); n > 0; n--)
        function(g);
    if (gen_one_in(g, 4)) {
        struct gen_func f = {.name = gen_name(g, "fn"), .param = {gen_scalar_type(g)}};
        storing_function(g, &f);
        *VEC_PUSH(a, &g->funcs) = f;
    }
    if (g->together && gen_one_in(g, 3))
        gen_meeting_function(g);
    g->out = &body;
    g->said.n = 0;
    number_threads(g);
    g->agreed = g->together;
    if (g->heavy) { /* each function of the library in turn */
        enum dtype t = gen_one_in(g, 2) ? DT_F32 : DT_F64;
        const char *v = gen_name(g, "v");
        gen_line(g, "%s %s = %s;", dtype_name(t), v, gen_library(g, (unsigned)number / 6, t, 2).s);
        gen_add_var(g, v, t, false);
    }
    bool large = gen_one_in(g, 8);
    gen_statements(g, large ? 25 : 4 + gen_below(g, 14), large ? 5 : 4);
    dump_variables(g);
    print_spec(g, name, &functions, &body, &out);
    return buf_text(&out);
}
