/* Modifiers against each other: what a row's pattern alone can't say. */
#include <config.h>

#include "ptx/validate.h"

static bool clash(struct ptx_validator *v, const struct ptx_inst *in, const char *what)
{
    return diag_error(v->diags, v->span, "'%s': %s", ptx_mnemonic(v, in), what);
}

/* ld, st: which caching words go with which space, and how wide an access may be. */
static bool check_access(struct ptx_validator *v, const struct ptx_inst *in)
{
    enum ptx_mod space = ptx_space((enum ptx_mod)in->mod[PTX_MC_SPACE]);
    unsigned bits = ptx_access_bits(in), order = in->mod[PTX_MC_ORDER];
    bool global = space == PTX_NONE || space == PTX_GLOBAL;
    if (bits > 256 || (bits > 128 && in->type[0] == PTX_B128))
        return clash(v, in, "more than 256 bits in one access");
    if (bits > 128 && (!global || in->op == PTX_OP_LDU))
        return clash(v, in, "more than 128 bits in one access only work on .global");
    if (in->mod[PTX_MC_EVICT2] != PTX_NONE && bits != 256)
        return clash(v, in, "an L2 eviction priority needs .v8.b32 or .v4.b64");
    if (in->mod[PTX_MC_EVICT] != PTX_NONE && in->mod[PTX_MC_CACHE] != PTX_NONE)
        return clash(v, in, "an eviction priority and a cache operator exclude each other");
    if (!global && (in->mod[PTX_MC_EVICT] != PTX_NONE || in->mod[PTX_MC_EVICT2] != PTX_NONE ||
                    in->mod[PTX_MC_PREFETCH] != PTX_NONE || in->mod[PTX_MC_HINT] != PTX_NONE))
        return clash(v, in,
                     "eviction priorities, prefetch sizes and cache hints only work on .global");
    if (order != PTX_NONE && order != PTX_WEAK && !global && space != PTX_SHARED)
        return clash(v, in, "an ordered access is to .global or .shared memory");
    return true;
}

/* atom and red of vectors, and hints. */
static bool check_atomic(struct ptx_validator *v, const struct ptx_inst *in)
{
    enum ptx_mod space = ptx_space((enum ptx_mod)in->mod[PTX_MC_SPACE]);
    bool global = space == PTX_NONE || space == PTX_GLOBAL;
    if (in->mod[PTX_MC_HINT] != PTX_NONE && !global)
        return clash(v, in, "a cache hint only works on .global");
    if (in->mod[PTX_MC_VECTOR] == PTX_NONE)
        return true;
    if (!global)
        return clash(v, in, "vectors only work on .global");
    if (ptx_access_bits(in) > 128)
        return clash(v, in, "more than 128 bits");
    return true;
}

/* .sat on an integer conversion: only where a value may not fit. */
static bool check_sat(struct ptx_validator *v, const struct ptx_inst *in)
{
    enum ptx_mod d = (enum ptx_mod)in->type[0], a = (enum ptx_mod)in->type[1];
    unsigned dbits = ptx_type_bits(d), abits = ptx_type_bits(a);
    bool fits = ptx_type_is_signed(a)   ? ptx_type_is_signed(d) && dbits >= abits
                : ptx_type_is_signed(d) ? dbits > abits
                                        : dbits >= abits;
    if (in->mod[PTX_MC_SAT] != PTX_NONE && fits)
        return clash(v, in, ".sat where every value fits");
    return true;
}

/* .ftz on a conversion: only where a subnormal f32 may come up. */
static bool check_ftz(struct ptx_validator *v, const struct ptx_inst *in)
{
    if (in->mod[PTX_MC_FTZ] != PTX_NONE && in->type[0] != PTX_F32 && in->type[1] != PTX_F32)
        return clash(v, in, ".ftz is for conversions to or from .f32");
    return true;
}

/* Two predicates of a comparison of halves: one for each of a pair. */
static bool check_pair(struct ptx_validator *v, const struct ptx_inst *in)
{
    if (in->operand[0].kind == PTX_O_REG && in->operand[0].reg2 >= 0 &&
        (in->type[0] == PTX_F16 || in->type[0] == PTX_BF16))
        return clash(v, in, "a second predicate is for pairs of halves");
    return true;
}

static bool check_range(struct ptx_validator *v, const struct ptx_inst *in, unsigned index,
                        uint64_t from, uint64_t to, unsigned step)
{
    if (index >= in->noperand || in->operand[index].kind != PTX_O_IMM)
        return true;
    uint64_t bits = in->operand[index].bits;
    if (bits >= from && bits <= to && bits % step == 0)
        return true;
    if (from == to)
        return diag_error(v->diags, v->span, "operand %u of '%s' must be %llu", index + 1,
                          ptx_mnemonic(v, in), (unsigned long long)from);
    if (step == 1)
        return diag_error(v->diags, v->span, "operand %u of '%s' must be from %llu to %llu",
                          index + 1, ptx_mnemonic(v, in), (unsigned long long)from,
                          (unsigned long long)to);
    return diag_error(v->diags, v->span,
                      "operand %u of '%s' must be a multiple of %u from %llu to %llu", index + 1,
                      ptx_mnemonic(v, in), step, (unsigned long long)from, (unsigned long long)to);
}

static bool check_barrier(struct ptx_validator *v, const struct ptx_inst *in, unsigned first)
{
    return check_range(v, in, first, 0, 15, 1) && check_range(v, in, first + 1, 32, 1024, 32);
}

/* cp.async: 4, 8 or 16 bytes through the L1 cache, 16 past it. */
static bool check_copy(struct ptx_validator *v, const struct ptx_inst *in)
{
    const struct ptx_operand *size = &in->operand[2];
    bool past = in->mod[PTX_MC_CACHE] == PTX_CG;
    if (size->kind != PTX_O_IMM || size->bits == 16 ||
        (!past && (size->bits == 4 || size->bits == 8)))
        return true;
    return clash(v, in, past ? "the size is 16 bytes" : "the size is 4, 8 or 16 bytes");
}

/* wgmma.mma_async d, a, b, scale-d {, imm-scale-a, imm-scale-b {, imm-trans-a {, imm-trans-b}}} */
static bool check_product(struct ptx_validator *v, const struct ptx_inst *in)
{
    for (unsigned i = 4; i < 6 && i < in->noperand; i++)
        if (in->operand[i].kind == PTX_O_IMM && in->operand[i].bits != 1 &&
            in->operand[i].bits != UINT64_MAX)
            return diag_error(v->diags, v->span, "operand %u of '%s' must be 1 or -1", i + 1,
                              ptx_mnemonic(v, in));
    return check_range(v, in, 3, 0, 1, 1) && check_range(v, in, 6, 0, 1, 1) &&
           check_range(v, in, 7, 0, 1, 1);
}

bool ptx_check_words(struct ptx_validator *v, const struct ptx_inst *in)
{
    switch (in->op) {
    case PTX_OP_LD:
    case PTX_OP_LD_GLOBAL_NC:
    case PTX_OP_LD_VOLATILE:
    case PTX_OP_LD_ORDERED:
    case PTX_OP_LDU:
    case PTX_OP_ST:
    case PTX_OP_ST_VOLATILE:
    case PTX_OP_ST_ORDERED: return check_access(v, in);
    case PTX_OP_CVT_INT: return check_sat(v, in);
    case PTX_OP_CVT_INT_TO_FLOAT:
    case PTX_OP_CVT_FLOAT_TO_INT:
    case PTX_OP_CVT_F16_FLOAT:
    case PTX_OP_CVT_FLOAT_F16: return check_ftz(v, in);
    case PTX_OP_SETP_F16:
    case PTX_OP_SETP_BF16: return check_pair(v, in);
    case PTX_OP_BAR_SYNC:
    case PTX_OP_BAR_ARRIVE:
    case PTX_OP_BARRIER_SYNC:
    case PTX_OP_BARRIER_ARRIVE: return check_barrier(v, in, 0);
    case PTX_OP_BAR_RED_POPC:
    case PTX_OP_BAR_RED_BOOL:
    case PTX_OP_BARRIER_RED_POPC:
    case PTX_OP_BARRIER_RED_BOOL: return check_barrier(v, in, 1);
    case PTX_OP_SETMAXNREG: return check_range(v, in, 0, 24, 256, 8);
    case PTX_OP_WGMMA_WAIT: return check_range(v, in, 0, 0, UINT32_MAX, 1);
    case PTX_OP_WGMMA_F32:
    case PTX_OP_WGMMA_F32_REG:
        if (in->type[1] != in->type[2])
            return clash(v, in, "both factors are of one type");
        return check_product(v, in);
    case PTX_OP_PMEVENT: return check_range(v, in, 0, 0, 15, 1);
    case PTX_OP_TENSORMAP_BOX:
    case PTX_OP_TENSORMAP_DIM:
    case PTX_OP_TENSORMAP_STRIDE:
    case PTX_OP_TENSORMAP_STEP: return check_range(v, in, 1, 0, 4, 1);
    case PTX_OP_TENSORMAP_TYPE: return check_range(v, in, 1, 0, 12, 1);
    case PTX_OP_TENSORMAP_INTERLEAVE: return check_range(v, in, 1, 0, 2, 1);
    case PTX_OP_TENSORMAP_SWIZZLE:
    case PTX_OP_TENSORMAP_ATOMICITY: return check_range(v, in, 1, 0, 3, 1);
    case PTX_OP_TENSORMAP_FILL: return check_range(v, in, 1, 0, 1, 1);
    case PTX_OP_TENSORMAP_COPY: return check_range(v, in, 2, 128, 128, 1);
    case PTX_OP_APPLYPRIORITY:
    case PTX_OP_DISCARD:
    case PTX_OP_FENCE_TENSORMAP_ACQUIRE: return check_range(v, in, 1, 128, 128, 1);
    case PTX_OP_VABSDIFF2:
    case PTX_OP_VABSDIFF4:
        if (in->mod[PTX_MC_SAT] != PTX_NONE && in->mod[PTX_MC_OP] != PTX_NONE)
            return clash(v, in, ".sat and .add exclude each other");
        return true;
    case PTX_OP_ST_ASYNC: return ptx_access_bits(in) <= 128 || clash(v, in, "more than 128 bits");
    case PTX_OP_CP_ASYNC: return check_copy(v, in);
    case PTX_OP_MMA_1688_F32:
    case PTX_OP_MMA_16816_F32:
    case PTX_OP_WMMA_MMA_INT8:
    case PTX_OP_WMMA_MMA_INT8_83216:
    case PTX_OP_WMMA_MMA_INT8_32816:
        return in->type[1] == in->type[2] || clash(v, in, "both factors are of one type");
    default: break;
    }
    switch (ptx_op_family(in->op)) {
    case PTX_FAMILY_WGMMA: return check_product(v, in);
    case PTX_FAMILY_MBAR:
    case PTX_FAMILY_MBAR_WAIT:
        return (in->mod[PTX_MC_ORDER] == PTX_NONE) == (in->mod[PTX_MC_SCOPE] == PTX_NONE) ||
               clash(v, in, "an order needs a scope, and a scope an order");
    case PTX_FAMILY_ATOM:
    case PTX_FAMILY_RED: return check_atomic(v, in);
    default: return true;
    }
}
