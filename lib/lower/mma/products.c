/* Instructions of mma.sync (mma/products.h). */
#include <config.h>

#include "lower/mma/products.h"

#include <stdio.h>

static void emit(struct cg *g, const char *mnemonic, uint32_t nd, const int32_t *d,
                 const int32_t *c, uint32_t na, const int32_t *a, uint32_t nb, const int32_t *b)
{
    struct ptx_operand vd[4], va[4], vb[2], vc[4];
    for (uint32_t i = 0; i < nd; i++) {
        vd[i] = ptx_r(d[i]);
        vc[i] = ptx_r(c[i]);
    }
    for (uint32_t i = 0; i < na; i++)
        va[i] = ptx_r(a[i]);
    for (uint32_t i = 0; i < nb; i++)
        vb[i] = ptx_r(b[i]);
    PTX(&g->b, mnemonic, ptx_vec(&g->b, nd, vd), ptx_vec(&g->b, na, va), ptx_vec(&g->b, nb, vb),
        ptx_vec(&g->b, nd, vc));
}

/* sm_75 has instructions of half as many k, and of 8 bits half as many rows too. */
static void emit_small(struct cg *g, bool bytes, const char *types, const int32_t *d,
                       const int32_t *a, const int32_t *b)
{
    char m[80];
    cg_joined(m, sizeof m, "mma.sync.aligned.", bytes ? "m8n8k16" : "m16n8k8", ".row.col.", types,
              NULL);
    for (uint32_t k = 0; k < 2; k++) {
        if (!bytes)
            emit(g, m, 4, d, d, 2, a + (size_t)k * 2, 1, b + k);
        for (uint32_t half = 0; bytes && half < 2; half++)
            emit(g, m, 2, d + (size_t)half * 2, d + (size_t)half * 2, 1, a + (size_t)k * 2 + half,
                 1, b + k);
    }
}

static const char *word_of(enum dtype t)
{
    return t == DT_F32 ? "tf32" : t == DT_I8 ? "s8" : dtype_name(t);
}

void mma_product(struct cg *g, const struct mma_kind *k, const int32_t *d, const int32_t *c,
                 const int32_t *a, const int32_t *b)
{
    const bool is_float = dtype_is_float(k->left);
    const char *sum = is_float ? "f32" : "s32";
    char m[80], types[32];
    cg_joined(types, sizeof types, sum, ".", word_of(k->left), ".", word_of(k->right), ".", sum,
              NULL);
    if (g->target->sm < 80) {
        emit_small(g, !is_float, types, d, a, b);
        return;
    }
    const unsigned step = MMA_STEP * 8 / dtype_bits(k->left);
    cg_joined(m, sizeof m, "mma.sync.aligned.m16n8k",
              step == 8    ? "8"
              : step == 16 ? "16"
                           : "32",
              ".row.col.", types, NULL);
    emit(g, m, 4, d, c, 4, a, 2, b);
}
