/* 16-bit float conversions as plain loops over lanes want them: no branches, no calls. Private to
 * lib/sim; included by files that are compiled once per build. */
#ifndef KAIO_SIM_HALF_H
#define KAIO_SIM_HALF_H

#include "sim/exec.h"

/* Exact. A NaN of f16 becomes the canonical one, one of bf16 keeps its bits, as an H100 does. */
static inline f32 up_f16(u32 x)
{
    const u32 mag = (x & 0x7fff) << 13, sign = (x & 0x8000) << 16;
    const u32 tiny = bits32(from32(mag + (113u << 23)) - from32(113u << 23));
    const u32 inf = mag == 0x0f800000 ? 0x7f800000 : 0x7fffffff;
    const u32 r = mag < 0x00800000 ? tiny : mag >= 0x0f800000 ? inf : mag + (112u << 23);
    return from32(r == 0x7fffffff ? r : r | sign);
}
static inline f32 up_bf16(u32 x)
{
    return from32(x << 16);
}

/* To nearest even; NaN gives 0x7fff. Needs the host's mode to be to-nearest. */
static inline u32 down_f16(f32 x)
{
    const u32 u = bits32(x), sign = (u >> 16) & 0x8000, mag = u & 0x7fffffff;
    const u32 normal = (mag + 0xfff + ((mag >> 13) & 1) - (112u << 23)) >> 13;
    /* the spacing of floats at 1/2 is that of subnormal halves: the addition rounds */
    const u32 tiny = bits32(from32(mag) + 0.5f) - 0x3f000000;
    const u32 r = mag >= 0x477ff000 ? 0x7c00 : mag < 0x38800000 ? tiny : normal;
    return mag > 0x7f800000 ? 0x7fff : r | sign;
}
static inline u32 down_bf16(f32 x)
{
    const u32 u = bits32(x);
    return (u & 0x7fffffff) > 0x7f800000 ? 0x7fff : (u + 0x7fff + ((u >> 16) & 1)) >> 16;
}

/* Any double to a format of so many stored mantissa bits and exponent bias, in any mode; a NaN
 * keeps the top of its payload. */
static inline u32 narrow(f64 x, unsigned mbits, int bias, unsigned mode)
{
    const u64 u = bits64(x);
    const u32 sign = (u32)(u >> 63) << 15;
    const int e = (int)((u >> 52) & 0x7ff) - 1023, emin = 1 - bias, emax = bias;
    const u32 inf = ((u32)(2 * bias + 1)) << mbits;
    if (e == 1024)
        return sign | inf |
               ((u << 12) ? 1u << (mbits - 1) | ((u32)(u >> (52 - mbits)) & ((1u << mbits) - 1))
                          : 0);
    if (!(u << 1))
        return sign;
    const u64 m = e == -1023 ? u & 0xfffffffffffff : (u & 0xfffffffffffff) | (u64)1 << 52;
    unsigned shift = 52 - mbits + (unsigned)(e < emin ? emin - e : 0);
    shift = shift > 60 ? 60 : shift;
    const u64 q = m >> shift, rest = m & (((u64)1 << shift) - 1), half = (u64)1 << (shift - 1);
    const bool up = mode == SIM_RN   ? rest > half || (rest == half && (q & 1))
                    : mode == SIM_RM ? sign && rest
                    : mode == SIM_RP ? !sign && rest
                                     : false;
    u32 r = (u32)(q + up);
    if (e >= emin)
        r += (u32)(e - emin) << mbits;
    if (e > emax || r >= inf) {
        const bool to_inf = mode == SIM_RN || (mode == SIM_RM && sign) || (mode == SIM_RP && !sign);
        r = to_inf ? inf : inf - 1;
    }
    return sign | r;
}
static inline u32 narrow_f16(f64 x, unsigned mode)
{
    return narrow(x, 10, 15, mode);
}
static inline u32 narrow_bf16(f64 x, unsigned mode)
{
    return narrow(x, 7, 127, mode);
}

#endif
