/* Sizes of a contraction's tiles (matmul.h). */
#include <config.h>

#include "lower/matmul.h"

/* As many elements as 16 bytes of the widest thing have, at most what tiles are made of. */
static uint32_t elements(unsigned bits)
{
    return bits >= 128 ? 1 : bits < 16 ? 8 : 128 / bits;
}

static void align(const struct matmul_form *f, struct matmul_plan *p)
{
    for (uint32_t i = 0; i < f->noperand; i++)
        p->align[i] = elements(f->operand[i].bits);
    p->store = elements(f->out_bits);
}

/* ---- by tensor cores -------------------------------------------------------------------------------- */

static void pick(uint32_t *v, uint32_t want, uint32_t otherwise)
{
    *v = want ? want : otherwise;
}

/* What multiplies, and as what; false: tensor cores are not to, or there are none for it. */
static bool mma_type(const struct cg *g, const struct matmul_form *f, enum lower_mma mma,
                     struct matmul_plan *p)
{
    p->type = f->type;
    p->parts = 1;
    if (f->type == MATMUL_FP8 && mma != LOWER_MMA_FP8)
        p->type = MATMUL_F16;
    if (f->type == MATMUL_F32 && mma == LOWER_MMA_TF32X3) {
        p->type = MATMUL_TF32;
        p->parts = 2;
    }
    return mma != LOWER_MMA_NONE && g->target->sm >= 75;
}

static struct matmul_plan mma_plan(const struct matmul_form *f, const struct lower_plan *want)
{
    const uint32_t size = dtype_bits(f->operand[0].type) / 8;
    struct matmul_plan p = {.how = MATMUL_MMA, .split = 1, .store = 1, .entry = "any"};
    pick(&p.bm, want->shape[0], 128);
    pick(&p.bn, want->shape[1], f->nproduct > 1 ? 64 : 128);
    pick(&p.bk, want->shape[2], 64 / size);
    p.wm = p.bm / (want->warps[0] ? want->warps[0] : 2);
    p.wn = p.bn / (want->warps[1] ? want->warps[1] : 4);
    p.threads = p.wm && p.wn ? p.bm / p.wm * (p.bn / p.wn) * 32 : 0;
    pick(&p.stages, want->stages, 3);
    pick(&p.group, want->group, 8);
    for (uint32_t i = 0; i < f->noperand; i++)
        p.align[i] = 1;
    return p;
}

/* ---- by fma ----------------------------------------------------------------------------------------- */

static struct matmul_plan simt_plan(const struct matmul_form *f, const struct lower_plan *want)
{
    struct matmul_plan p = {.how = MATMUL_SIMT,
                            .type = f->type,
                            .parts = 1,
                            .stages = 2,
                            .split = 1,
                            .group = want->group ? want->group : 8,
                            .store = 1};
    if (f->sum == DT_F64) {
        p.bm = p.bn = 64;
        p.wm = p.wn = 4;
    } else {
        p.bm = 128;
        p.bn = f->nproduct > 1 ? 64 : 128;
        p.wm = 8;
        p.wn = f->nproduct > 1 ? 4 : 8;
    }
    p.bk = 8;
    p.threads = p.bm / p.wm * (p.bn / p.wn);
    for (uint32_t i = 0; i < f->noperand; i++)
        p.align[i] = 1;
    p.entry = "any";
    return p;
}

bool matmul_plan(struct cg *g, const struct matmul_form *f, const struct lower_plan *want,
                 struct matmul_plan *v, uint32_t *n)
{
    struct buf why = buf_in(g->a);
    struct matmul_plan p = mma_plan(f, want), vector = p;
    bool tensor = mma_type(g, f, want->mma, &p);
    vector.type = p.type;
    vector.parts = p.parts;
    align(f, &vector);
    tensor = tensor && matmul_mma_fits(g, f, &p, &why) && matmul_mma_fits(g, f, &vector, &why);
    if (!tensor && want->mma > LOWER_MMA_NONE)
        return cg_error(g, want->mma_span, "%s",
                        why.len ? buf_text(&why) : "this target has no tensor cores");
    if (!tensor) {
        p = vector = simt_plan(f, want);
        align(f, &vector);
    }
    vector.entry = "vector";
    v[0] = vector;
    v[1] = p;
    *n = 2;
    return true;
}
