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

bool matmul_plan(struct cg *g, const struct matmul_form *f, const struct lower_plan *want,
                 struct matmul_plan *v, uint32_t *n)
{
    struct matmul_plan p = {.how = MATMUL_SIMT,
                            .type = f->type,
                            .parts = 1,
                            .stages = 2,
                            .split = 1,
                            .group = want->group ? want->group : 8,
                            .store = 1};
    (void)g;
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
    v[1] = p;
    p.entry = "vector";
    align(f, &p);
    v[0] = p;
    *n = 2;
    return true;
}
