#include <config.h>

#include "kernels/generate_int.h"

enum { TRIPS_MOST = 48 };

static void statement(struct gen *g, unsigned depth);

/* A block in braces, with a scope of its own. */
static void block(struct gen *g, const char *head, unsigned n, unsigned depth)
{
    size_t vars = g->vars.n;
    bool agreed = g->agreed;
    size_t scope = g->scope;
    g->scope = vars;
    g->agreed = agreed && !*head; /* after a head, only some may come here */
    gen_line(g, "%s{", head);
    g->indent++;
    gen_statements(g, n, depth);
    g->indent--;
    gen_line(g, "}");
    gen_forget(g, vars);
    g->scope = scope;
    g->agreed = agreed;
}

/* ---- declarations ---------------------------------------------------------------------------- */

/* A new name, or sometimes one that hides a variable of an outer block. */
static const char *declared_name(struct gen *g)
{
    const char *outer = gen_one_in(g, 5) ? gen_outer_name(g) : NULL;
    return outer ? outer : gen_name(g, "v");
}

static void declaration(struct gen *g, unsigned depth)
{
    enum dtype t = gen_scalar_type(g);
    const char *name = gen_name(g, "v");
    bool fixed = gen_one_in(g, 8), is_auto = gen_one_in(g, 8);
    if (!fixed && !is_auto && gen_one_in(g, 8)) { /* its value comes later */
        gen_line(g, "%s %s;", dtype_name(t), name);
        gen_line(g, "if (%s) %s = %s; else %s = %s;", gen_condition(g, 1).s, name,
                 gen_expr(g, t, depth).s, name, gen_assignable(g, t, 1).s);
    } else if (is_auto) {
        name = declared_name(g);
        gen_line(g, "%sauto %s = %s;", fixed ? "const " : "", name, gen_expr(g, t, depth).s);
    } else if (gen_one_in(g, 10)) {
        const char *second = gen_name(g, "v");
        gen_line(g, "%s %s = %s, %s = %s;", dtype_name(t), name, gen_assignable(g, t, depth).s,
                 second, gen_expr(g, t, 1).s);
        gen_add_var(g, second, t, false);
        fixed = false;
    } else {
        name = declared_name(g); /* its initialiser does not see it yet */
        struct text value = gen_one_in(g, fixed ? 2 : 5) ? gen_literal(g, t)
                                                         : gen_assignable(g, t, depth);
        gen_line(g, "%s%s %s = %s;", fixed ? "const " : "", dtype_name(t), name, value.s);
    }
    gen_add_var(g, name, t, fixed);
}

/* ---- assignments ----------------------------------------------------------------------------- */

static void compound(struct gen *g, const char *place, enum dtype t, unsigned depth)
{
    static const char *const arithmetic[] = {"+=", "-=", "*="}, *const bits[] = {"&=", "|=", "^="};
    enum dtype own = gen_promoted(t), other = own;
    bool is_float = dtype_is_float(t);
    for (int tries = 0; tries < 4; tries++) { /* a weaker type will do */
        enum dtype w = gen_scalar_type(g);
        bool fits = is_float ? (w != DT_F64 || own == DT_F64)
                             : !dtype_is_float(w) && dtype_bits(w) <= dtype_bits(own);
        other = fits && gen_one_in(g, 2) ? w : other;
    }
    unsigned k = gen_below(g, 10);
    struct text e = gen_expr(g, other, depth);
    if (k < 5 || (is_float && k < 8)) {
        gen_line(g, "%s %s %s;", place, arithmetic[gen_below(g, 3)], e.s);
    } else if (is_float) {
        gen_line(g, "%s /= %s;", place, e.s);
    } else if (k < 7) {
        gen_line(g, "%s %s %s;", place, bits[gen_below(g, 3)], e.s);
    } else if (k < 8) {
        if (e.constant)
            e = gen_variable(g, other);
        gen_line(g, "%s %s (%s | 1);", place,
                 gen_one_in(g, 2) ? "/=" : "%=", gen_wrap(g, e, BIND_OR));
    } else if (k < 9) {
        gen_line(g, "%s %s (%s);", place,
                 gen_one_in(g, 2) ? "<<=" : ">>=", gen_index(g, dtype_bits(own), depth));
    } else {
        const char *op = gen_one_in(g, 2) ? "++" : "--";
        if (gen_one_in(g, 2))
            gen_line(g, "%s%s;", place, op);
        else
            gen_line(g, "%s%s;", op, place);
    }
}

static void assignment(struct gen *g, unsigned depth)
{
    const struct var *v = NULL;
    unsigned n = 0;
    for (size_t i = 0; i < g->vars.n; i++)
        if (!g->vars.v[i].fixed && !g->vars.v[i].lanes && !g->vars.v[i].rank &&
            gen_is_visible(g, i) && gen_one_in(g, ++n))
            v = &g->vars.v[i];
    const struct var *whole = gen_one_in(g, 4) ? gen_find_part(g, DT_VOID, true) : NULL;
    struct var part = {0};
    if (whole) {
        part.type = whole->type;
        part.name = gen_part(g, whole);
        v = &part;
    }
    if (!v) {
        declaration(g, depth);
        return;
    }
    struct var it = *v;
    if (it.type != DT_BOOL && gen_one_in(g, 2))
        compound(g, it.name, it.type, depth);
    else
        gen_line(g, "%s = %s;", it.name, gen_assignable(g, it.type, depth).s);
}

static void store(struct gen *g, unsigned depth)
{
    enum dtype t = gen_one_in(g, 12) ? gen_one_in(g, 2) ? DT_E4M3 : DT_E5M2 : gen_scalar_type(g);
    if (g->in_func) {
        assignment(g, depth);
        return;
    }
    struct gen_buffer b = gen_buffer(g, USE_OWN, t);
    bool plain = t == DT_BOOL || t == DT_E4M3 || t == DT_E5M2;
    const char *place = gen_own(g, b);
    if (!plain && gen_one_in(g, 3))
        compound(g, place, t, depth);
    else
        gen_line(g, "%s = %s;", place,
                 plain ? gen_expr(g, t, depth).s : gen_assignable(g, t, depth).s);
}

/* ---- control --------------------------------------------------------------------------------- */

static void if_stmt(struct gen *g, unsigned depth)
{
    const char *head = arena_printf(g->a, "if (%s) ", gen_condition(g, depth).s);
    block(g, head, 1 + gen_below(g, 3), depth);
    if (gen_one_in(g, 2))
        block(g, "else ", 1 + gen_below(g, 3), depth);
}

static void leave(struct gen *g, const char *how)
{
    gen_line(g, "if (%s) %s;", gen_condition(g, 2).s, how);
}

/* A jump under a condition, so that what follows may be reached. */
static void jump(struct gen *g)
{
    if (g->loops && !gen_one_in(g, 4)) {
        leave(g, gen_one_in(g, 2) ? "break" : "continue");
        return;
    }
    if (g->in_func && g->result == DT_VOID)
        return;
    if (g->in_func)
        leave(g, arena_printf(g->a, "return %s", gen_assignable(g, g->result, 2).s));
    else if (gen_one_in(g, 3) && !g->together)
        leave(g, "return");
}

/* "for (u32 i = 0; i < 5; i++)": ends whatever its body does. */
static const char *for_head(struct gen *g, const char *i, enum dtype t, unsigned trips)
{
    const char *type = dtype_name(t), *u = dtype_class(t) == DTC_U ? "u" : "";
    const char *most = arena_printf(g->a, "%u%s", trips, gen_one_in(g, 2) ? u : "");
    if (gen_one_in(g, 3)) /* as many trips at most */
        most = arena_printf(g->a, "%s(%s)", type, trips == 1 ? "1" : gen_index(g, trips + 1, 1));
    switch (gen_below(g, 6)) {
    case 0: return arena_printf(g->a, "for (%s %s = %u; %s > 0; %s--) ", type, i, trips, i, i);
    case 1:
        return arena_printf(g->a, "for (%s %s = 3; %s < %u; %s += 3) ", type, i, i, 3 * trips + 3,
                            i);
    case 2:
        return arena_printf(g->a, "for (%s %s = 1; %s < %u; %s <<= 1) ", type, i, i, 1u << trips,
                            i);
    case 3:
        if (dtype_class(t) == DTC_I)
            return arena_printf(g->a, "for (%s %s = %u; %s > -2; %s -= 1) ", type, i, trips, i, i);
        break;
    default: break;
    }
    if (gen_one_in(g, 4))
        return arena_printf(g->a, "for (%s %s = 0; %s < %s; ++%s) ", type, i, i, most, i);
    return arena_printf(g->a, "for (%s %s = 0; %s < %s; %s++) ", type, i, i, most, i);
}

static void while_loop(struct gen *g, const char *i, unsigned trips, unsigned depth, unsigned n)
{
    unsigned form = gen_below(g, 3);
    bool agreed = g->agreed;
    gen_line(g, "u32 %s = 0;", i);
    gen_add_var(g, i, DT_U32, true);
    size_t vars = g->vars.n;
    if (form == 0)
        gen_line(g, "while (%s < %uu && (%s)) {", i, trips, gen_condition(g, 1).s);
    else
        gen_line(g, form == 1 ? "while (true) {" : "do {");
    g->agreed = false;
    g->indent++;
    gen_line(g, "%s++;", i);
    if (form == 1)
        gen_line(g, "if (%s > %uu) break;", i, trips);
    gen_statements(g, n, depth);
    g->indent--;
    gen_forget(g, vars);
    g->agreed = agreed;
    if (form == 2)
        gen_line(g, "} while (%s < %uu && %s);", i, trips,
                 gen_wrap(g, gen_condition(g, 1), BIND_AND));
    else
        gen_line(g, "}");
}

/* A counter that the loop does not own, that its body hurries on, or that has no condition. */
static void odd_for(struct gen *g, const char *i, enum dtype t, unsigned trips, unsigned depth,
                    unsigned n)
{
    const char *type = dtype_name(t);
    unsigned form = gen_below(g, 3);
    bool agreed = g->agreed;
    if (form == 0) {
        gen_line(g, "%s %s = %u;", type, i, gen_below(g, 9));
        gen_add_var(g, i, t, true);
    }
    if (gen_one_in(g, 3))
        gen_line(g, gen_one_in(g, 2) ? "#pragma unroll" : "#pragma unroll 3");
    size_t vars = g->vars.n;
    if (form == 0)
        gen_line(g, "for (%s = 0; %s < %u; %s++) {", i, i, trips, i);
    else if (form == 1)
        gen_line(g, "for (%s %s = 0; %s < %u; %s++) {", type, i, i, 2 * trips, i);
    else
        gen_line(g, "for (%s %s = 0; ; %s++) {", type, i, i);
    if (form)
        gen_add_var(g, i, t, true);
    g->agreed = false;
    g->indent++;
    if (form == 2)
        gen_line(g, "if (%s >= %u) break;", i, trips);
    if (form == 1)
        gen_line(g, "if (%s) %s += %u;", gen_condition(g, 1).s, i, 1 + gen_below(g, 3));
    gen_statements(g, n, depth);
    g->indent--;
    g->agreed = agreed;
    gen_line(g, "}");
    gen_forget(g, vars);
}

/* "for (i32 c = -2; c <= i32(n & 7); c += 3)": to an end that is known at launch or later, in
 * strides. */
static const char *strided_head(struct gen *g, const char *i, enum dtype t)
{
    static const char *const ends[] = {"n", "blockDim.x", "gridDim.x", "tid", "laneid"};
    static const char *const tests[] = {"%s < %s", "%s <= %s"}, *const mirrored[] = {"%s > %s",
                                                                                     "%s >= %s"};
    const char *type = dtype_name(t);
    const char *end = g->in_func ? "n" : ends[gen_below(g, sizeof ends / sizeof *ends)];
    const struct var *v = NULL;
    for (size_t k = 0; k < g->vars.n; k++)
        if (dtype_is_int(g->vars.v[k].type) && !g->vars.v[k].lanes && !g->vars.v[k].rank &&
            gen_is_visible(g, k) && gen_one_in(g, 4))
            v = &g->vars.v[k];
    end = arena_printf(g->a, "%s(%s & 7)", type, v ? v->name : end);
    if (gen_one_in(g, 4))
        end = arena_printf(g->a, "%u", gen_below(g, 9));
    bool swap = gen_one_in(g, 4);
    const char *test = arena_printf(g->a, (swap ? mirrored : tests)[gen_below(g, 2)],
                                    swap ? end : i, swap ? i : end);
    return arena_printf(g->a, "for (%s %s = %s%u; %s; %s += %u) ", type, i,
                        dtype_class(t) == DTC_I && gen_one_in(g, 3) ? "-" : "", gen_below(g, 3),
                        test, i, 1 + gen_below(g, 4));
}

static void strided_for(struct gen *g, const char *i, enum dtype t, unsigned depth, unsigned n)
{
    size_t vars = g->vars.n;
    unsigned trips = g->trips;
    const char *head = strided_head(g, i, t);
    g->trips *= 3;
    if (gen_one_in(g, 2))
        gen_line(g, "#pragma unroll %u", 1 + gen_below(g, 5));
    gen_add_var(g, i, t, true);
    block(g, head, n, depth);
    gen_forget(g, vars);
    g->trips = trips;
}

/* The counter moves anywhere in the body, at its own pace; nothing jumps. */
static void pacing_while(struct gen *g, const char *i, unsigned trips, unsigned depth)
{
    bool agreed = g->agreed, is_do = gen_one_in(g, 3);
    unsigned loops = g->loops, step = 1 + gen_below(g, 3);
    gen_line(g, "i32 %s = %u;", i, gen_below(g, 3));
    gen_add_var(g, i, DT_I32, true);
    if (gen_one_in(g, 3))
        gen_line(g, gen_one_in(g, 2) ? "#pragma unroll" : "#pragma unroll 2");
    size_t vars = g->vars.n;
    if (is_do)
        gen_line(g, "do {");
    else
        gen_line(g, "while (%s < %u) {", i, trips * step);
    g->agreed = false;
    g->loops = 0;
    g->indent++;
    gen_statements(g, gen_below(g, 3), depth);
    if (step == 1)
        gen_line(g, "%s++;", i);
    else
        gen_line(g, "%s += %u;", i, step);
    gen_statements(g, gen_below(g, 3), depth);
    g->indent--;
    g->loops = loops;
    g->agreed = agreed;
    gen_forget(g, vars);
    if (is_do)
        gen_line(g, "} while (%s < %u);", i, trips * step);
    else
        gen_line(g, "}");
}

static void loop(struct gen *g, unsigned depth)
{
    static const enum dtype counters[] = {DT_U32, DT_I32, DT_U32, DT_I64, DT_U64};
    unsigned trips = 1 + gen_below(g, 5), outer = g->trips, n = 1 + gen_below(g, 3);
    const char *i = gen_name(g, "c");
    if (g->trips * trips > TRIPS_MOST) {
        declaration(g, depth);
        return;
    }
    g->trips *= trips + 1;
    g->loops++;
    if (gen_one_in(g, 4)) {
        strided_for(g, i, counters[gen_below(g, 5)], depth, n);
    } else if (gen_one_in(g, 5)) {
        pacing_while(g, i, trips, depth);
    } else if (gen_one_in(g, 5)) {
        odd_for(g, i, counters[gen_below(g, 5)], trips, depth, n);
    } else if (gen_one_in(g, 2)) {
        enum dtype t = counters[gen_below(g, 5)];
        size_t vars = g->vars.n;
        const char *head = for_head(g, i, t, trips);
        if (gen_one_in(g, 4))
            gen_line(g, gen_one_in(g, 2) ? "#pragma unroll" : "#pragma unroll 2");
        gen_add_var(g, i, t, true);
        block(g, head, n, depth);
        gen_forget(g, vars);
    } else {
        while_loop(g, i, trips, depth, n);
    }
    g->loops--;
    g->trips = outer;
}

/* A branch or a loop that all threads of the block take alike; nothing jumps in it. */
static void agreed_block(struct gen *g, unsigned depth)
{
    size_t vars = g->vars.n;
    unsigned loops = g->loops, trips = g->trips;
    if (gen_one_in(g, 2)) {
        gen_line(g, "if (%s) {", gen_agreed(g));
    } else {
        unsigned n = 1 + gen_below(g, 3);
        const char *i = gen_name(g, "c");
        g->trips *= n;
        gen_line(g, "for (u32 %s = 0; %s < %u; %s++) {", i, i, n, i);
        gen_add_var(g, i, DT_U32, true);
    }
    g->loops = 0;
    g->indent++;
    gen_meeting(g);
    gen_statements(g, 1 + gen_below(g, 3), depth);
    g->indent--;
    g->loops = loops;
    g->trips = trips;
    gen_line(g, "}");
    gen_forget(g, vars);
}

static void switch_stmt(struct gen *g, unsigned depth)
{
    static const enum dtype types[] = {DT_I32, DT_U32, DT_I64, DT_U64, DT_U8};
    enum dtype t = types[gen_below(g, 5)];
    unsigned cases = 1 + gen_below(g, 4), other = gen_below(g, cases + 2);
    bool agreed = g->agreed;
    struct text e = gen_expr(g, t, 2);
    if (e.constant)
        e = gen_variable(g, t);
    gen_line(g, "switch (%s) {",
             gen_one_in(g, 3) ? e.s : arena_printf(g->a, "%s & 7", gen_wrap(g, e, BIND_AND)));
    g->agreed = false;
    unsigned loops = g->loops;
    for (unsigned i = 0; i <= cases; i++) {
        if (i == other)
            gen_line(g, "default:");
        else
            gen_line(g, "case %u:", i == 0 ? 7 : i - 1);
        if (gen_one_in(g, 6)) /* the same as the next one */
            continue;
        g->loops = 0; /* break would leave the switch: below */
        block(g, "", 1 + gen_below(g, 2), depth);
        g->loops = loops;
        if (gen_one_in(g, 4))
            leave(g, loops && gen_one_in(g, 2) ? "continue" : "break");
        else if (!gen_one_in(g, 3))
            gen_line(g, "break;");
    }
    g->agreed = agreed;
    gen_line(g, "}");
}

static void call_stmt(struct gen *g, unsigned depth)
{
    if (gen_one_in(g, 8)) {
        struct text e = gen_expr(g, DT_U32, 2);
        const char *why = gen_one_in(g, 2) ? ", \"a number\"" : "";
        gen_line(g, "assert((%s & 3) < 4%s);", gen_wrap(g, e, BIND_AND), why);
        return;
    }
    if (gen_one_in(g, 3) && gen_array_call(g, depth))
        return;
    for (size_t i = 0; i < g->funcs.n; i++) {
        struct gen_func f = g->funcs.v[i];
        if (f.stores && !g->in_func) {
            gen_line(g, "%s(%s, tid);", f.name, gen_assignable(g, f.param[0], depth).s);
            return;
        }
    }
    assignment(g, depth);
}

static void statement(struct gen *g, unsigned depth)
{
    unsigned k = gen_below(g, 100), e = depth > 2 ? 3 : depth;
    if (g->agreed && gen_one_in(g, 3)) {
        if (depth && gen_one_in(g, 4))
            agreed_block(g, depth - 1);
        else
            gen_meeting(g);
        return;
    }
    if (depth == 0)
        k %= 60;
    if (k < 22)
        declaration(g, e);
    else if (k < 42)
        assignment(g, e);
    else if (k < 48)
        gen_data(g, e);
    else if (k < 50 && !g->in_func)
        gen_atomic(g);
    else if (k < 54)
        store(g, e);
    else if (k < 57)
        jump(g);
    else if (k < 60)
        call_stmt(g, e);
    else if (k < 80)
        if_stmt(g, depth - 1);
    else if (k < 92)
        loop(g, depth - 1);
    else if (k < 97)
        switch_stmt(g, depth - 1);
    else
        block(g, "", 1 + gen_below(g, 3), depth - 1);
}

void gen_statements(struct gen *g, unsigned n, unsigned depth)
{
    for (unsigned i = 0; i < n; i++)
        statement(g, depth);
}
