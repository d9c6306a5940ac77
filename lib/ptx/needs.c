/* What an instruction asks for: PTX version, target, registers of its groups. */
#include <config.h>

#include "ptx/table.h"

unsigned ptx_access_bits(const struct ptx_inst *in)
{
    unsigned bits = ptx_type_bits((enum ptx_mod)in->type[0]);
    switch (in->mod[PTX_MC_VECTOR]) {
    case PTX_V2: return 2 * bits;
    case PTX_V4: return 4 * bits;
    case PTX_V8: return 8 * bits;
    default: return bits;
    }
}

void ptx_inst_needs(const struct ptx_inst *in, struct ptx_needs *needs)
{
    const struct ptx_row *r = ptx_row(in->op);
    size_t ntype = 0;
    *needs = (struct ptx_needs){.ptx = r->min_ptx, .sm = r->min_sm};
    if (in->mod[PTX_MC_VECTOR] != PTX_NONE && ptx_access_bits(in) > 128)
        *needs = (struct ptx_needs){.ptx = 88, .sm = 100};
    if (in->op == PTX_OP_WGMMA_INT8 && in->type[1] != in->type[2])
        needs->ptx = 84;
    for (unsigned i = 0; i < r->nslot && r->has_minima; i++) {
        const struct ptx_slot *s = &r->slot[i];
        if (s->cls == PTX_MC_COUNT)
            continue;
        unsigned m = s->cls == PTX_MC_TYPE ? in->type[ntype++] : in->mod[s->cls];
        for (unsigned k = 0; k < s->nalt && s->has_minima; k++) {
            if (s->alt[k].mod != m || m == PTX_NONE)
                continue;
            if (s->alt[k].min_ptx > needs->ptx)
                needs->ptx = s->alt[k].min_ptx;
            if (s->alt[k].min_sm % 1000 > needs->sm % 1000)
                needs->sm = s->alt[k].min_sm;
        }
    }
}

unsigned ptx_group_length(const struct ptx_inst *in)
{
    /* A thread of a warpgroup holds n/2 of the 64 x n elements: in .f16 two to a register. */
    const unsigned columns = ptx_shape(in).n;
    return in->type[0] == PTX_F16 ? columns / 4 : columns / 2;
}

bool ptx_sm_allows(unsigned min_sm, unsigned sm, char suffix)
{
    switch (min_sm / 1000) {
    case 1: return sm == min_sm % 1000 && suffix == 'a';
    case 2: return sm >= min_sm % 1000 && suffix;
    default: return sm >= min_sm;
    }
}

const char *ptx_sm_text(struct arena *a, unsigned min_sm)
{
    return arena_printf(a, "sm_%u%s", min_sm % 1000, min_sm >= 1000 ? "a" : "");
}
