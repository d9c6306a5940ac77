/* Random numbers: Philox4x32-10 (data/philox.h) and what is made of its words. */
#include <config.h>

#include "data/philox.h"
#include "lower/cg/cg.h"

#include <stdlib.h>

static struct cg_val word(uint32_t v)
{
    return cg_int(DT_U32, (int64_t)v);
}

static struct cg_val low_half(struct cg *g, struct cg_val v)
{
    return cg_convert(g, v, DT_U32);
}

static struct cg_val high_half(struct cg *g, struct cg_val v)
{
    return cg_convert(g, cg_binary(g, OP_SHR, v, word(32)), DT_U32);
}

/* The upper half of m * x. */
static struct cg_val high_product(struct cg *g, uint32_t m, struct cg_val x)
{
    int64_t i;
    if (cg_is_const(x, &i))
        return word((uint32_t)((uint64_t)m * (uint32_t)i >> 32));
    return cg_value(DT_U32, CG(g, PTX_B32, "mul.hi.u32", cg_op(g, x), word(m).op));
}

static struct cg_val low_product(struct cg *g, uint32_t m, struct cg_val x)
{
    return cg_binary(g, OP_MUL, x, word(m));
}

static struct cg_val xor3(struct cg *g, struct cg_val x, struct cg_val y, struct cg_val z)
{
    return cg_binary(g, OP_XOR, cg_binary(g, OP_XOR, x, y), z);
}

void cg_philox(struct cg *g, const struct lang_expr *e, struct cg_val out[4])
{
    struct cg_val arg[3] = {cg_int(DT_U64, 0), cg_int(DT_U64, 0), cg_int(DT_U64, 0)};
    for (uint32_t i = 0; i < e->nargs; i++)
        arg[i] = cg_convert(g, cg_expr(g, e->args[i]), DT_U64);
    struct cg_val key[2] = {low_half(g, arg[0]), high_half(g, arg[0])};
    struct cg_val c[4] = {low_half(g, arg[1]), high_half(g, arg[1]), low_half(g, arg[2]),
                          high_half(g, arg[2])};
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        struct cg_val hi0 = high_product(g, PHILOX_M0, c[0]), lo0 = low_product(g, PHILOX_M0, c[0]);
        struct cg_val hi1 = high_product(g, PHILOX_M1, c[2]), lo1 = low_product(g, PHILOX_M1, c[2]);
        c[0] = xor3(g, hi1, c[1], key[0]);
        c[1] = lo1;
        c[2] = xor3(g, hi0, c[3], key[1]);
        c[3] = lo0;
        key[0] = cg_binary(g, OP_ADD, key[0], word(PHILOX_W0));
        key[1] = cg_binary(g, OP_ADD, key[1], word(PHILOX_W1));
    }
    memcpy(out, c, sizeof c);
}

struct cg_val cg_random(struct cg *g, const struct lang_expr *e)
{
    struct cg_val w[4];
    cg_philox(g, e, w);
    if (e->fn == FN_NORMAL)
        return cg_library(g, "normal_f32", 2, w);
    struct cg_val top = cg_binary(g, OP_SHR, w[0], word(8));
    return cg_binary(g, OP_MUL, cg_convert(g, top, DT_F32), cg_float(g, DT_F32, 0x1p-24));
}
