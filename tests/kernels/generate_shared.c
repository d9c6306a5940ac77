/* Shared memory between barriers, and atomic operations: on elements of the thread's own, where the
 * value before is known, and on elements of all, where the order of the updates makes no difference
 * and nobody looks. */
#include <config.h>

#include "kernels/generate_int.h"

static struct text value_of(struct gen *g, enum dtype t)
{
    struct text e = gen_expr(g, t, 2);
    return e.constant ? gen_variable(g, t) : e;
}

static void add_result(struct gen *g, enum dtype t, unsigned lanes, const char *value)
{
    const char *name = gen_name(g, "v");
    gen_line(g, "%s %s = %s;", gen_type_name(g, t, lanes), name, value);
    gen_add_var(g, name, t, false)->lanes = (uint8_t)lanes;
}

/* ---- through shared memory ------------------------------------------------------------------- */

/* Every thread leaves a value and takes another's. */
static void exchange(struct gen *g)
{
    uint32_t n = g->block[0] * g->block[1] * g->block[2];
    uint8_t lanes = 0;
    enum dtype t = gen_one_in(g, 5) ? gen_vector_type(g, &lanes) : gen_scalar_type(g);
    const char *s = gen_name(g, "t"), *type = gen_type_name(g, t, lanes);
    const char *mine = "within", *shape = arena_printf(g->a, "[%u]", n);
    const char *other = gen_index(g, n, 1);
    if (n % 32 == 0 && gen_one_in(g, 3)) {
        shape = arena_printf(g->a, gen_one_in(g, 2) ? "[%u][32]" : "[%u][33]", n / 32);
        mine = "warpid, laneid";
        other = arena_printf(g->a, "%s, %s", gen_index(g, n / 32, 0), gen_index(g, 32, 1));
    } else if (g->dynamic == DT_VOID && !lanes && gen_one_in(g, 3)) { /* as shared: says */
        g->dynamic = t;
        shape = "[]";
    } else if (gen_one_in(g, 4)) { /* known at launch only */
        shape = "[blockDim.x * blockDim.y * blockDim.z]";
    } else if (gen_one_in(g, 4)) {
        shape = arena_printf(g->a, "[%u]", n + gen_below(g, 40));
    }
    gen_line(g, "shared %s %s%s;", type, s, shape);
    gen_line(g, "%s[%s] = %s;", s, mine,
             lanes ? gen_vector(g, t, lanes, 2).s : gen_assignable(g, t, 2).s);
    gen_line(g, "__syncthreads();");
    unsigned wide = 2u << gen_below(g, 3); /* some neighbouring elements, maybe */
    if (!lanes && strcmp(mine, "within") == 0 && gen_is_vector(t, wide) && n >= wide)
        add_result(
            g, t, wide,
            arena_printf(g->a, "load%u(&%s[(%s) * %u])", wide, s, gen_index(g, n / wide, 1), wide));
    add_result(g, t, lanes, arena_printf(g->a, "%s[%s]", s, other));
    gen_line(g, gen_one_in(g, 3) ? "barrier_sync(%u);" : "__syncthreads();", 1 + gen_below(g, 15));
}

/* One thread tells all. */
static void broadcast(struct gen *g)
{
    enum dtype t = gen_scalar_type(g);
    const char *s = gen_name(g, "t");
    gen_line(g, "shared %s %s;", dtype_name(t), s);
    gen_line(g, "if (within == 0) %s = %s;", s, gen_assignable(g, t, 2).s);
    gen_line(g, "__syncthreads();");
    add_result(g, t, 0, s);
    gen_line(g, "__syncthreads();");
}

/* The first warp writes and goes on, the others wait for it. */
static void produce(struct gen *g)
{
    uint32_t n = g->block[0] * g->block[1] * g->block[2];
    enum dtype t = gen_scalar_type(g);
    const char *s = gen_name(g, "t"), *v = gen_name(g, "v");
    if (n % 32 != 0 || n < 64) {
        broadcast(g);
        return;
    }
    unsigned barrier = 1 + gen_below(g, 15);
    gen_line(g, "shared %s %s[32];", dtype_name(t), s);
    gen_line(g, "%s %s = %s;", dtype_name(t), v, gen_expr(g, t, 1).s);
    gen_line(g, "if (warpid == 0) {");
    gen_line(g, "  %s[laneid] = %s;", s, gen_assignable(g, t, 2).s);
    gen_line(g, "  barrier_arrive(%u, %u);", barrier, n);
    gen_line(g, "} else {");
    gen_line(g, "  barrier_sync(%u, %u);", barrier, n);
    gen_line(g, "  %s = %s[%s];", v, s, gen_index(g, 32, 1));
    gen_line(g, "}");
    gen_line(g, "__syncthreads();");
    gen_add_var(g, v, t, false);
}

/* ---- atomic operations ----------------------------------------------------------------------- */

static const char *how(struct gen *g, enum memory_act act)
{
    static const char *const orders[3][5] = {
        {"relaxed", "acquire", "release", "acq_rel", "seq_cst"},
        {"relaxed", "acquire", "seq_cst", "relaxed", "acquire"},
        {"relaxed", "release", "seq_cst", "relaxed", "release"}};
    static const char *const scopes[] = {"block", "gpu", "system"};
    const char *order = "", *scope = "";
    if (gen_one_in(g, 2))
        order = arena_printf(g->a, ", order = %s", orders[act][gen_below(g, 5)]);
    if (gen_one_in(g, 3))
        scope = arena_printf(g->a, ", scope = %s", scopes[gen_below(g, 3)]);
    return arena_printf(g->a, "%s%s", order, scope);
}

/* Operations that commute with themselves, and what they are of. */
static const struct {
    const char *names[2];
    bool u32_only;
} shared_ops[] = {{{"add", "sub"}, false}, {{"min", "min"}, false}, {{"max", "max"}, false},
                  {{"and", "and"}, false}, {{"or", "or"}, false},   {{"xor", "xor"}, false},
                  {{"inc", "inc"}, true},  {{"dec", "dec"}, true}};

static void update(struct gen *g, const char *place, enum dtype t, unsigned op)
{
    /* the limit of inc and dec is the same for all: then their order does not matter */
    const char *x = shared_ops[op].u32_only ? "11u" : value_of(g, t).s;
    gen_line(g, "atomic_%s(&%s, %s%s);", shared_ops[op].names[gen_below(g, 2)], place, x,
             how(g, ACT_UPDATE));
}

static enum dtype updated_type(struct gen *g, unsigned op)
{
    static const enum dtype types[] = {DT_U32, DT_I32, DT_U64, DT_I64};
    return shared_ops[op].u32_only ? DT_U32 : types[gen_below(g, 4)];
}

static void update_of_all(struct gen *g)
{
    unsigned op = gen_below(g, sizeof shared_ops / sizeof *shared_ops);
    enum dtype t = updated_type(g, op);
    struct gen_buffer b = gen_sum(g, t, op);
    update(g, arena_printf(g->a, "%s[%s]", b.name, gen_index(g, b.dim[0], 1)), t, op);
}

/* A histogram, or the like, of the block. */
static void update_shared(struct gen *g)
{
    unsigned op = gen_below(g, sizeof shared_ops / sizeof *shared_ops);
    enum dtype t = updated_type(g, op);
    const char *s = gen_name(g, "t");
    bool one = gen_one_in(g, 4);
    if (one) {
        gen_line(g, "shared %s %s;", dtype_name(t), s);
        gen_line(g, "if (within == 0) %s = %s;", s, gen_expr(g, t, 1).s);
    } else {
        gen_line(g, "shared %s %s[8];", dtype_name(t), s);
        gen_line(g,
                 "for (u32 c = within; c < 8; c += blockDim.x * blockDim.y * blockDim.z) "
                 "%s[c] = %s(c + %u);",
                 s, dtype_name(t), gen_below(g, 100));
    }
    gen_line(g, "__syncthreads();");
    update(g, one ? s : arena_printf(g->a, "%s[%s]", s, gen_index(g, 8, 2)), t, op);
    gen_line(g, "__syncthreads();");
    add_result(g, t, 0, one ? s : arena_printf(g->a, "%s[%s]", s, gen_index(g, 8, 1)));
    gen_line(g, "__syncthreads();");
}

/* What an atomic addition of floats adds: never tiny, as a GPU's f32 additions to global memory
 * lose what is subnormal. */
static const char *addend(struct gen *g, enum dtype t)
{
    return dtype_is_float(t) ? arena_printf(g->a, "%s(%s | 1)", dtype_name(t),
                                            gen_wrap(g, value_of(g, DT_I8), BIND_OR))
                             : value_of(g, t).s;
}

/* Of the thread's own element any operation, with its result. */
static void update_own(struct gen *g)
{
    static const char *const any[] = {"add", "sub",  "min", "max", "and", "or",
                                      "xor", "exch", "cas", "inc", "dec"};
    static const enum dtype types[11][8] = {
        {DT_U32, DT_I32, DT_U64, DT_I64, DT_F32, DT_F64, DT_F16, DT_BF16},
        {DT_U32, DT_I32, DT_U64, DT_I64, DT_F32, DT_F64, DT_F16, DT_BF16},
        {DT_U32, DT_I32, DT_U64, DT_I64, DT_F32, DT_F64, DT_U32, DT_I32},
        {DT_U32, DT_I32, DT_U64, DT_I64, DT_F32, DT_F64, DT_U32, DT_I32},
        {DT_U32, DT_I32, DT_U64, DT_I64, DT_U32, DT_I32, DT_U64, DT_I64},
        {DT_U32, DT_I32, DT_U64, DT_I64, DT_U32, DT_I32, DT_U64, DT_I64},
        {DT_U32, DT_I32, DT_U64, DT_I64, DT_U32, DT_I32, DT_U64, DT_I64},
        {DT_U32, DT_I32, DT_U64, DT_I64, DT_F32, DT_F64, DT_U32, DT_I32},
        {DT_U32, DT_I32, DT_U64, DT_I64, DT_F32, DT_F64, DT_U16, DT_F16},
        {DT_U32, DT_U32, DT_U32, DT_U32, DT_U32, DT_U32, DT_U32, DT_U32},
        {DT_U32, DT_U32, DT_U32, DT_U32, DT_U32, DT_U32, DT_U32, DT_U32}};
    unsigned op = gen_below(g, 11);
    enum dtype t = types[op][gen_below(g, op < 2 && g->sm < 90 ? 7 : 8)];
    const char *place = gen_own(g, gen_buffer(g, USE_OWN, t));
    const char *x = op < 2 ? addend(g, t) : value_of(g, t).s;
    if (op == 8 && dtype_is_float(t)) /* no NaN, whose bits would matter */
        x = arena_printf(g->a, "%s(max(%s, -1.5f))", dtype_name(t), x);
    if (op == 8) /* with what is there, sometimes */
        x = arena_printf(g->a, "%s, %s", gen_one_in(g, 2) ? place : x, value_of(g, t).s);
    const char *call =
        arena_printf(g->a, "atomic_%s(&%s, %s%s)", any[op], place, x, how(g, ACT_UPDATE));
    if (gen_one_in(g, 4))
        gen_line(g, "%s;", call);
    else
        add_result(g, t, 0, call);
}

static void update_pair(struct gen *g)
{
    enum dtype t = g->sm < 90 || gen_one_in(g, 2) ? DT_F16 : DT_BF16;
    struct gen_buffer b = gen_buffer(g, USE_WIDE, t);
    const char *pair =
        arena_printf(g->a, "%sx2(%s, %s)", dtype_name(t), addend(g, t), addend(g, t));
    add_result(g, t, 2,
               arena_printf(g->a, "atomic_%s(&%s[tid, (%s) * 2], %s%s)",
                            gen_one_in(g, 3) ? "exch" : "add", b.name, gen_index(g, 8, 1), pair,
                            how(g, ACT_UPDATE)));
}

static void load_or_store(struct gen *g)
{
    enum dtype t = gen_scalar_type(g);
    const char *place = gen_own(g, gen_buffer(g, USE_OWN, t));
    if (gen_one_in(g, 2))
        gen_line(g, "store(&%s, %s%s);", place, gen_assignable(g, t, 2).s, how(g, ACT_STORE));
    else
        add_result(g, t, 0, arena_printf(g->a, "load(&%s%s)", place, how(g, ACT_LOAD)));
}

/* ---- statements ------------------------------------------------------------------------------ */

void gen_atomic(struct gen *g)
{
    unsigned k = gen_below(g, 10);
    if (k < 3)
        update_of_all(g);
    else if (k < 7)
        update_own(g);
    else if (k < 8)
        update_pair(g);
    else
        load_or_store(g);
}

void gen_shared(struct gen *g)
{
    unsigned k = gen_below(g, 10);
    if (k < 4)
        exchange(g);
    else if (k < 6)
        broadcast(g);
    else if (k < 7)
        produce(g);
    else
        update_shared(g);
}
