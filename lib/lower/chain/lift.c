/* Functions of scores that stand in the products' place (chain.h).
 *
 * Where every stream has of a score no more than w tanh(x), x being the product and what is the
 * same everywhere, the product's registers become tanh(x), and go on as any products that are
 * multiplied by w: their maximum is that of what the registers have, and the exponential's fma
 * multiplies them.
 *
 * x of a product r is r times one number f where it is r times and by some: that rounds as often as
 * the factors do one by one. Where no |x| of the warp's tile exceeds NEAR, tanh(x) is r times a
 * short polynomial of r^2, whose coefficients have the powers of f in them. Soft caps are far above
 * most scores, so that this is most often so.
 */
#include <config.h>

#include "lower/chain/chain.h"

#include <math.h>

#define NEAR      0.35
#define NEAR_FROM 0x1p-17 /* factors whose powers are no subnormal numbers */
#define NEAR_TO   0x1p17

/* ---- what is lifted -------------------------------------------------------------------------- */

static bool is_score(const struct chain_tile *x, const struct lang_expr *e, uint32_t n)
{
    return e->kind == E_NAME && e->sym == x->t->f->score[n].sym;
}

bool chain_can_lift(const struct chain_tile *x, const struct lang_expr *e, uint32_t n)
{
    const struct chain_form *f = x->t->f;
    if (e->kind != E_CALL || e->func || e->fn != FN_TANH || e->type != DT_F32 ||
        !x->g->contract_fma || !chain_mentions(e, f->score[n].sym) ||
        chain_mentioned_stream(f, e) >= 0)
        return false;
    for (uint32_t i = 0; i < f->nscore; i++)
        if (i != n && chain_mentions(e, f->score[i].sym))
            return false;
    return true;
}

/* Is e the score times and by what is not one? */
static bool is_linear(const struct chain_tile *x, const struct lang_expr *e)
{
    if (is_score(x, e, x->scaled))
        return true;
    if (e->kind != E_BINARY || e->type != DT_F32 || (e->op != OP_MUL && e->op != OP_DIV))
        return false;
    const struct lang_symbol *score = x->t->f->score[x->scaled].sym;
    const bool left = chain_mentions(e->args[0], score), right = chain_mentions(e->args[1], score);
    return left != right && (left || e->op == OP_MUL) && is_linear(x, e->args[left ? 0 : 1]);
}

/* v, or NaN where it is so large or small that a product with it might not be what its factors make
 * one by one. */
static struct cg_val moderate(struct cg *g, struct cg_val v)
{
    const struct cg_val size = cg_value(DT_F32, CG(g, PTX_F32, "abs.f32", cg_op(g, v)));
    const struct cg_val below = cg_binary(g, OP_LE, size, chain_f32(g, 0x1p60));
    const struct cg_val fits =
        cg_binary(g, OP_LAND, cg_binary(g, OP_GE, size, chain_f32(g, 0x1p-60)), below);
    return cg_select(g, cg_reg(g, fits), v, chain_f32(g, NAN));
}

/* By what the score is multiplied in e, which is linear. */
static struct cg_val factor_of(const struct chain_tile *x, const struct lang_expr *e)
{
    struct cg *g = x->g;
    if (is_score(x, e, x->scaled))
        return chain_f32(g, 1);
    const bool left = chain_mentions(e->args[0], x->t->f->score[x->scaled].sym);
    const struct cg_val before = factor_of(x, e->args[left ? 0 : 1]);
    const struct cg_val by = moderate(g, cg_expr(g, e->args[left ? 1 : 0]));
    if (is_score(x, e->args[left ? 0 : 1], x->scaled) && e->op == OP_MUL)
        return by;
    struct cg_val all;
    if (e->op == OP_MUL || !chain_rough_quotient(g, before, by, &all))
        all = cg_binary(g, e->op, before, by);
    return moderate(g, all);
}

/* ---- a tile ---------------------------------------------------------------------------------- */

struct lift {
    struct chain_tile *x;
    const int32_t *reg;
    uint32_t n;
    bool linear;
    struct cg_val by;       /* where it is linear: what products are multiplied by */
    struct cg_val most;     /* the largest product that is near 0 */
    struct cg_val times[4]; /* of the odd powers of products that are */
};

static struct cg_val value(const struct lift *l, uint32_t i)
{
    return cg_value(DT_F32, l->reg[i]);
}

/* The function's argument for a product. */
static struct cg_val argument(const struct lift *l, uint32_t i)
{
    struct chain_tile *x = l->x;
    struct cg *g = x->g;
    const size_t bound = g->bindings.n;
    if (l->linear)
        return cg_binary(g, OP_MUL, value(l, i), l->by);
    cg_bind(g, x->t->f->score[x->scaled].sym, value(l, i), false);
    const struct cg_val v = cg_expr(g, x->lifted->args[0]);
    g->bindings.n = bound;
    return v;
}

static struct cg_val approximation(struct cg *g, struct cg_val x)
{
    return cg_value(DT_F32, CG(g, PTX_F32, "tanh.approx.f32", cg_op(g, x)));
}

static void apply(const struct lift *l, struct cg_val (*to)(struct cg *g, struct cg_val x))
{
    for (uint32_t i = 0; i < l->n; i++)
        if (chain_tile_uses(l->x, i))
            cg_move(l->x->g, l->reg[i], to(l->x->g, argument(l, i)));
}

/* Finds .most and .times. */
static void find_near(struct lift *l)
{
    /* of x, x^3, ..., for |x| <= NEAR: 1.2 units in the last place, by a minimax fit */
    static const double c[COUNT(l->times)] = {1, -0x1.555394p-2, 0x1.106164p-3, -0x1.929fe2p-5};
    struct cg *g = l->x->g;
    const struct cg_val size = cg_value(DT_F32, CG(g, PTX_F32, "abs.f32", cg_op(g, l->by)));
    const struct cg_val from = cg_binary(g, OP_GE, size, chain_f32(g, NEAR_FROM));
    const struct cg_val to = cg_binary(g, OP_LE, size, chain_f32(g, NEAR_TO));
    const struct cg_val all = cg_value(DT_F32, CG(g, PTX_F32, "rcp.rn.f32", cg_op(g, size)));
    const struct cg_val square = cg_binary(g, OP_MUL, l->by, l->by);
    struct cg_val power = l->by;
    const struct cg_val near = cg_binary(g, OP_MUL, all, chain_f32(g, NEAR));
    const int32_t is_between = cg_reg(g, cg_binary(g, OP_LAND, from, to));
    l->most = cg_select(g, is_between, near, chain_f32(g, -1));
    for (size_t i = 0; i < COUNT(c); i++) {
        l->times[i] = cg_binary(g, OP_MUL, power, chain_f32(g, c[i]));
        power = cg_binary(g, OP_MUL, power, square);
    }
}

/* Is none of the warp's products far from 0? Those that are no numbers are as near as any. */
static int32_t are_near(const struct lift *l)
{
    enum { CHAINS = 4 };
    struct cg *g = l->x->g;
    struct cg_val most[CHAINS];
    for (uint32_t i = 0; i < l->n; i++) {
        const struct cg_val size = cg_value(DT_F32, CG(g, PTX_F32, "abs.f32", ptx_r(l->reg[i])));
        most[i % CHAINS] = i < CHAINS ? size : cg_minmax(g, true, most[i % CHAINS], size);
    }
    for (uint32_t i = 1; i < CHAINS; i++)
        most[0] = cg_minmax(g, true, most[0], most[i]);
    const struct cg_val is_near = cg_binary(g, OP_LE, most[0], l->most);
    const int32_t all = cg_new(g, DT_BOOL);
    warp_vote(g, true, all, cg_reg(g, is_near));
    return all;
}

static void apply_near(const struct lift *l)
{
    struct cg *g = l->x->g;
    for (uint32_t i = 0; i < l->n; i++) {
        if (!chain_tile_uses(l->x, i))
            continue;
        const struct cg_val square = cg_binary(g, OP_MUL, value(l, i), value(l, i));
        struct cg_val p = l->times[COUNT(l->times) - 1];
        for (size_t k = COUNT(l->times) - 1; k-- > 0;)
            p = cg_fma(g, p, square, l->times[k]);
        cg_move(g, l->reg[i], cg_binary(g, OP_MUL, p, value(l, i)));
    }
}

static void apply_either(struct lift *l)
{
    struct cg *g = l->x->g;
    const uint32_t near = cg_label(g, "near"), done = cg_label(g, "lifted");
    find_near(l);
    cg_jump_if(g, are_near(l), true, near);
    size_t mark = cg_scope_open(g);
    apply(l, chain_rough_tanh);
    cg_scope_close(g, mark);
    cg_jump(g, done);
    cg_place(g, near);
    cg_loop_head(g);
    mark = cg_scope_open(g);
    apply_near(l);
    cg_scope_close(g, mark);
    cg_place(g, done);
    cg_loop_head(g); /* either way has assigned registers */
}

void chain_lift(struct chain_tile *x, const int32_t *reg)
{
    const struct lang_expr *e = x->lifted->args[0];
    struct lift l = {.x = x, .reg = reg, .n = x->high * x->wide / 2, .linear = is_linear(x, e)};
    if (l.linear)
        l.by = factor_of(x, e);
    if (x->g->fast)
        apply(&l, approximation);
    else if (l.linear)
        apply_either(&l);
    else
        apply(&l, chain_rough_tanh);
}
