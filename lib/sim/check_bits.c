/* Which bits of a result are undefined: compilers put fields beside each other into words that
 * nothing has written yet, by masks, shifts and bytes, and take them out again. */
#include <config.h>

#include "sim/check.h"

#include "sim/cvt.h"
#include "sim/decode.h"

struct bits {
    uint64_t value, undefined;
};

static bool is_wide(uint8_t type)
{
    return type == SIM_T_u64 || type == SIM_T_s64 || type == SIM_T_f64;
}

static struct bits operand(struct sim_warp *w, uint32_t slot, uint8_t type, uint32_t lane)
{
    const bool wide = is_wide(type);
    const uint64_t undefined = check_undefined_bits(w, slot, lane);
    return (struct bits){wide ? sim_wide(w, slot, lane) : sim_word(w, slot, lane),
                         wide ? undefined : undefined & UINT32_MAX};
}

/* The lower n bits, extended by the sign or by zeros, which are defined. */
static uint64_t field(uint64_t x, unsigned n, bool is_signed)
{
    if (n == 0 || n >= 64)
        return x;
    return is_signed ? (uint64_t)((int64_t)(x << (64 - n)) >> (64 - n)) : x << (64 - n) >> (64 - n);
}

static uint64_t permuted(uint64_t from, uint64_t selector)
{
    uint64_t r = 0;
    for (unsigned k = 0; k < 4; k++) {
        const unsigned s = selector >> 4 * k & 15;
        const uint64_t byte = from >> 8 * (s & 7) & 0xff;
        r |= (s & 8 ? (byte & 0x80 ? 0xff : 0) : byte) << 8 * k;
    }
    return r;
}

/* Inserts bits of a into b from `at` on, as bfi.b32 does: those where ones(length) are. */
static uint64_t inserted(uint64_t a, uint64_t b, uint64_t at, uint64_t length)
{
    at &= 255;
    length &= 255;
    if (at > 63 || !length)
        return b;
    const uint64_t mask = (length > 63 ? UINT64_MAX : ((uint64_t)1 << length) - 1) << at;
    return (b & ~mask) | (a << at & mask);
}

static bool extended(const struct sim_op *op, uint64_t undefined, uint64_t *out)
{
    const uint64_t in = field(undefined, op->size, op->flags & SIM_CVT_FROM_SIGNED);
    *out = field(in, op->more, op->flags & SIM_CVT_TO_SIGNED);
    return true;
}

static bool shifted(uint16_t row, struct bits a, struct bits b, uint64_t *out)
{
    const unsigned width = row == SIM_H_SHL_64 || row == SIM_H_SHR_U64 || row == SIM_H_SHR_S64 ? 64
                           : row == SIM_H_SHL_16 || row == SIM_H_SHR_U16 || row == SIM_H_SHR_S16
                               ? 16
                               : 32;
    const bool is_signed = row == SIM_H_SHR_S16 || row == SIM_H_SHR_S32 || row == SIM_H_SHR_S64;
    const uint64_t in = field(a.undefined, width, is_signed);
    if (b.undefined)
        return false;
    if (row == SIM_H_SHL_16 || row == SIM_H_SHL_32 || row == SIM_H_SHL_64)
        *out = b.value >= width ? 0 : in << b.value;
    else if (is_signed)
        *out = (uint64_t)((int64_t)in >> (b.value >= width ? width - 1 : b.value));
    else
        *out = b.value >= width ? 0 : in >> b.value;
    return true;
}

bool check_result_bits(struct sim_warp *w, const struct sim_op *op, uint16_t row, uint32_t lane,
                       uint64_t *out)
{
    const struct sim_row *r = &sim_rows[row];
    const struct bits a = operand(w, op->a, r->a, lane),
                      b = r->b ? operand(w, op->b, r->b, lane) : (struct bits){0};
    switch (row) {
    case SIM_H_MOV_32:
    case SIM_H_MOV_64:
    case SIM_H_NOT_16:
    case SIM_H_NOT_32:
    case SIM_H_NOT_64:
    case SIM_H_U64_U32: *out = a.undefined; return true;
    case SIM_H_U32_U64: *out = a.undefined & UINT32_MAX; return true;
    case SIM_H_S64_S32: *out = field(a.undefined, 32, true); return true;
    case SIM_H_EXT_32_32:
    case SIM_H_EXT_64_32: return extended(op, a.undefined, out) && (*out &= op->imm, true);
    case SIM_H_EXT_32_64:
    case SIM_H_EXT_64_64: return extended(op, a.undefined, out);
    case SIM_H_AND_16:
    case SIM_H_AND_32:
    case SIM_H_AND_64:
        *out = (a.undefined & b.undefined) | (a.undefined & b.value) | (b.undefined & a.value);
        return true;
    case SIM_H_OR_16:
    case SIM_H_OR_32:
    case SIM_H_OR_64:
        *out = (a.undefined & b.undefined) | (a.undefined & ~b.value) | (b.undefined & ~a.value);
        return true;
    case SIM_H_XOR_16:
    case SIM_H_XOR_32:
    case SIM_H_XOR_64: *out = a.undefined | b.undefined; return true;
    case SIM_H_SHL_16:
    case SIM_H_SHL_32:
    case SIM_H_SHL_64:
    case SIM_H_SHR_U16:
    case SIM_H_SHR_U32:
    case SIM_H_SHR_U64:
    case SIM_H_SHR_S16:
    case SIM_H_SHR_S32:
    case SIM_H_SHR_S64: return shifted(row, a, b, out);
    default: break;
    }
    const bool three = row == SIM_H_PRMT || row == SIM_H_BFE_U32 || row == SIM_H_BFE_U64;
    if (!three && row != SIM_H_BFI_32 && row != SIM_H_BFI_64)
        return false;
    const struct bits c = operand(w, op->c, SIM_T_u32, lane);
    if (c.undefined)
        return false;
    if (row == SIM_H_PRMT) {
        *out = permuted(b.undefined << 32 | a.undefined, c.value);
        return true;
    }
    if (three) {
        if (!b.undefined)
            *out = b.value > 63 || !c.value
                       ? 0
                       : field(a.undefined >> b.value, (unsigned)c.value, false);
        return !b.undefined;
    }
    const struct bits e = operand(w, op->e, SIM_T_u32, lane);
    *out = inserted(a.undefined, b.undefined, c.value, e.value);
    return !e.undefined;
}
