/* What threads do together. It stands only where all threads of the block come by, and gives the
 * same whatever their order: sums of floats are of small whole numbers. */
#include <config.h>

#include "kernels/generate_int.h"

static const char *full_mask(struct gen *g)
{
    static const char *const masks[] = {"0xffffffffu", "0xffffffff", "4294967295u", "~0u"};
    return masks[gen_below(g, sizeof masks / sizeof *masks)];
}

static struct text non_literal(struct gen *g, enum dtype t)
{
    struct text e = gen_expr(g, t, 2);
    return e.constant ? gen_variable(g, t) : e;
}

/* lanes: of a vector, 0: a scalar. */
static const char *shuffle(struct gen *g, enum dtype t, unsigned lanes)
{
    static const char *const names[] = {"__shfl_sync", "__shfl_up_sync", "__shfl_down_sync",
                                        "__shfl_xor_sync"};
    static const char *const widths[] = {", 32", ", 16", ", 8u", ", 4", ", 2", ", 1"};
    const char *width = gen_one_in(g, 2) ? "" : widths[gen_below(g, 6)];
    static const enum dtype small[] = {DT_U32, DT_I32, DT_U8, DT_I16};
    const char *lane = gen_one_in(g, 2) ? arena_printf(g->a, "%u", gen_below(g, 32))
                                        : arena_printf(g->a, "(%s) & 31",
                                                       non_literal(g, small[gen_below(g, 4)]).s);
    return arena_printf(g->a, "%s(%s, %s, %s%s)", names[gen_below(g, 4)], full_mask(g),
                        lanes ? gen_vector(g, t, lanes, 2).s : non_literal(g, t).s, lane, width);
}

/* What is reduced: of floats whole numbers, so that every order gives the same sum. */
static const char *summand(struct gen *g, enum dtype t, bool sum)
{
    if (!dtype_is_float(t) || !sum)
        return non_literal(g, t).s;
    return arena_printf(g->a, "%s(%s)", dtype_name(t), non_literal(g, DT_I8).s);
}

static const char *reduction(struct gen *g, enum dtype *result)
{
    static const char *const names[] = {"warp_sum",  "warp_max",  "warp_min", "warp_scan",
                                        "block_sum", "block_max", "block_min"};
    unsigned k = gen_below(g, 7);
    enum dtype t = gen_scalar_type(g);
    bool sum = k == 0 || k == 3 || k == 4;
    *result = gen_promoted(t);
    return arena_printf(g->a, "%s(%s)", names[k], summand(g, t, sum));
}

static const char *vote(struct gen *g, enum dtype *result)
{
    static const char *const names[] = {"__ballot_sync", "__any_sync", "__all_sync"};
    unsigned k = gen_below(g, 3);
    *result = k ? DT_BOOL : DT_U32;
    return arena_printf(g->a, "%s(%s, %s)", names[k], full_mask(g), gen_condition(g, 2).s);
}

static const char *match(struct gen *g, enum dtype *result)
{
    static const enum dtype types[] = {DT_I32, DT_U32, DT_U8, DT_I64, DT_U64};
    *result = DT_U32;
    enum dtype t = types[gen_below(g, 5)];
    const char *value = non_literal(g, t).s;
    if (gen_one_in(g, 2)) /* so that some are alike */
        value = arena_printf(g->a, "(%s) & 3", value);
    return arena_printf(g->a, "__match_%s_sync(%s, %s)", gen_one_in(g, 3) ? "all" : "any",
                        full_mask(g), value);
}

static const char *reduce_sync(struct gen *g, enum dtype *result)
{
    static const char *const names[] = {"add", "min", "max", "and", "or", "xor"};
    static const enum dtype types[] = {DT_I32, DT_U32, DT_I16, DT_U8};
    enum dtype t = types[gen_below(g, 4)];
    *result = gen_promoted(t);
    return arena_printf(g->a, "__reduce_%s_sync(%s, %s)", names[gen_below(g, 6)], full_mask(g),
                        non_literal(g, t).s);
}

static const char *barrier_vote(struct gen *g, enum dtype *result)
{
    static const char *const names[] = {"count", "and", "or"};
    unsigned k = gen_below(g, 3);
    *result = k ? DT_BOOL : DT_I32;
    return arena_printf(g->a, "__syncthreads_%s(%s)", names[k], gen_condition(g, 2).s);
}

static const char *some_value(struct gen *g, enum dtype *result)
{
    bool warps = g->block[0] * g->block[1] * g->block[2] % 32 == 0;
    unsigned k = gen_below(g, warps ? 12 : 5);
    if (k < 4)
        return reduction(g, result);
    if (k < 5)
        return barrier_vote(g, result);
    if (k < 6)
        return match(g, result);
    if (k < 8)
        return reduce_sync(g, result);
    if (k < 9)
        return vote(g, result);
    *result = gen_scalar_type(g);
    return shuffle(g, *result, 0);
}

/* What only some warps do; all lanes of these. */
static void warp_branch(struct gen *g)
{
    enum dtype t = gen_scalar_type(g);
    const char *name = gen_name(g, "v");
    static const char *const tests[] = {"warpid == 0", "warpid != 1", "warpid % 2 == 1",
                                        "(warpid & 2) == 0"};
    gen_line(g, "%s %s = %s;", dtype_name(t), name, gen_expr(g, t, 1).s);
    gen_line(g, "if (%s) {", tests[gen_below(g, 4)]);
    gen_line(g, "  %s = %s;", name, shuffle(g, t, 0));
    gen_line(g, "}");
    gen_add_var(g, name, t, false);
}

static void vector_shuffle(struct gen *g)
{
    uint8_t lanes;
    enum dtype t = gen_vector_type(g, &lanes);
    const char *name = gen_name(g, "v");
    gen_line(g, "%s %s = %s;", gen_type_name(g, t, lanes), name, shuffle(g, t, lanes));
    gen_add_var(g, name, t, false)->lanes = lanes;
}

/* A function in which threads meet. */
void gen_meeting_function(struct gen *g)
{
    struct gen_func f = {.name = gen_name(g, "fn"), .nparam = 1, .meets = true};
    enum dtype t;
    const char *p = gen_name(g, "p"), *v = gen_name(g, "v");
    g->in_func = true;
    f.param[0] = gen_scalar_type(g);
    gen_add_var(g, p, f.param[0], false);
    const char *value = some_value(g, &t);
    f.result = t;
    gen_line(g, "%s %s(%s %s) {", dtype_name(t), f.name, dtype_name(f.param[0]), p);
    gen_line(g, "  %s %s = %s;", dtype_name(t), v, value);
    if (gen_one_in(g, 2))
        gen_line(g, "  if (%s) return %s;", gen_condition(g, 1).s, gen_expr(g, t, 1).s);
    gen_line(g, "  return %s;", v);
    gen_line(g, "}");
    gen_forget(g, 0);
    g->in_func = false;
    *VEC_PUSH(g->a, &g->funcs) = f;
}

static const char *meeting_call(struct gen *g, enum dtype *t)
{
    for (size_t i = 0; i < g->funcs.n; i++) {
        struct gen_func f = g->funcs.v[i];
        if (!f.meets)
            continue;
        *t = f.result;
        return gen_call(g, &f, 2);
    }
    return some_value(g, t);
}

static void effect(struct gen *g)
{
    static const char *const lines[] = {
        "__syncthreads();",        "__syncwarp();",           "__threadfence();",
        "__threadfence_block();",  "__threadfence_system();", "fence();",
        "fence(order = seq_cst);", "fence(scope = block);",   "barrier_sync(3);"};
    if (g->sm >= 90 && g->indent == 0 && gen_one_in(g, 2)) {
        bool halves = gen_one_in(g, 2);
        gen_line(g, halves ? "cluster_arrive();" : "cluster_sync();");
        if (halves)
            gen_line(g, "cluster_wait();");
        return;
    }
    gen_line(g, "%s", lines[gen_below(g, sizeof lines / sizeof *lines)]);
}

void gen_meeting(struct gen *g)
{
    enum dtype t;
    if (gen_one_in(g, 8)) {
        effect(g);
        return;
    }
    if (gen_one_in(g, 3)) {
        gen_shared(g);
        return;
    }
    if (gen_one_in(g, 8) && g->block[0] * g->block[1] * g->block[2] % 32 == 0) {
        warp_branch(g);
        return;
    }
    if (gen_one_in(g, 8) && g->block[0] * g->block[1] * g->block[2] % 32 == 0) {
        vector_shuffle(g);
        return;
    }
    const char *value = gen_one_in(g, 4) ? meeting_call(g, &t) : some_value(g, &t);
    const char *name = gen_name(g, "v");
    if (gen_one_in(g, 4) && gen_is_arithmetic(t))
        gen_line(g, "%s %s = %s + %s;", dtype_name(t), name, value,
                 gen_wrap(g, gen_variable(g, t), BIND_MUL));
    else
        gen_line(g, "%s %s = %s;", gen_one_in(g, 6) ? "auto" : dtype_name(t), name, value);
    gen_add_var(g, name, t, false);
}

/* A condition that all threads of a block agree on. */
const char *gen_agreed(struct gen *g)
{
    static const char *const specials[] = {"blockIdx.x", "blockIdx.y", "gridDim.x", "blockDim.x",
                                           "n"};
    const char *x = specials[gen_below(g, sizeof specials / sizeof *specials)];
    if (g->dims.n && gen_one_in(g, 3))
        x = arena_printf(g->a, "d%u", gen_below(g, (unsigned)g->dims.n));
    for (size_t i = 0; i < g->scalars.n; i++)
        if (dtype_is_int(g->scalars.v[i].type) && gen_one_in(g, 3))
            x = g->scalars.v[i].name;
    switch (gen_below(g, 4)) {
    case 0: return arena_printf(g->a, "%s > %u", x, gen_below(g, 6));
    case 1: return arena_printf(g->a, "%s %% 2 == %u", x, gen_below(g, 2));
    case 2: return arena_printf(g->a, "%s < %u", x, 1 + gen_below(g, 40));
    default: return arena_printf(g->a, "(%s & %u) != 0", x, 1 + gen_below(g, 15));
    }
}
