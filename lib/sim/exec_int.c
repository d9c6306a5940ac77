#include <config.h>

#include "sim/exec.h"
#include "sim/video.h"

/* ---- what the expressions of int.def call ---------------------------------------------------- */

static inline u32 clamp_to(s32 x, s32 lo, s32 hi)
{
    return (u32)(x < lo ? lo : x > hi ? hi : x);
}
static inline s64 clamp_s32(s64 x)
{
    return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x;
}
static inline u32 pair(u32 lo, u32 hi)
{
    return (lo & 0xffff) | (hi << 16);
}
static inline u32 min_u16(u32 a, u32 b)
{
    return (u16)a < (u16)b ? (u16)a : (u16)b;
}
static inline u32 max_u16(u32 a, u32 b)
{
    return (u16)a > (u16)b ? (u16)a : (u16)b;
}
static inline u32 min_s16(u32 a, u32 b)
{
    return (u16)((s16)a < (s16)b ? a : b);
}
static inline u32 max_s16(u32 a, u32 b)
{
    return (u16)((s16)a > (s16)b ? a : b);
}
static inline s32 sext24(s32 x)
{
    return (s32)((u32)x << 8) >> 8;
}
/* The product of two 24-bit values has 48 bits. */
static inline s64 mul24(s32 a, s32 b)
{
    return (s64)sext24(a) * sext24(b);
}

/* A quotient of 32-bit integers is exact in double: its distance from the next integer is at least
 * 2^-32 of it, far above half an ulp. Doubles vectorise, integer division does not. */
static inline u32 div_u32(u32 a, u32 b)
{
    const f64 q = (f64)a / (f64)(b ? b : 1);
    return b ? (u32)(u64)(s64)q : UINT32_MAX;
}
static inline s32 div_s32(s32 a, s32 b)
{
    /* INT_MIN / -1 wraps round */
    const f64 q = (f64)a / (f64)(b ? b : 1);
    return !b ? -1 : b == -1 ? (s32)(0u - (u32)a) : (s32)q;
}
static inline s32 rem_s32(s32 a, s32 b)
{
    return b ? (s32)((u32)a - (u32)div_s32(a, b) * (u32)b) : -1;
}
static inline s64 div_s64(s64 a, s64 b)
{
    return !b ? -1 : b == -1 ? (s64)(0u - (u64)a) : a / b;
}
static inline s64 rem_s64(s64 a, s64 b)
{
    return !b ? -1 : b == -1 ? 0 : a % b;
}

static inline u32 lop3(u32 a, u32 b, u32 c, u32 table)
{
    u32 r = 0;
    r |= (table & 1) ? ~a & ~b & ~c : 0;
    r |= (table & 2) ? ~a & ~b & c : 0;
    r |= (table & 4) ? ~a & b & ~c : 0;
    r |= (table & 8) ? ~a & b & c : 0;
    r |= (table & 16) ? a & ~b & ~c : 0;
    r |= (table & 32) ? a & ~b & c : 0;
    r |= (table & 64) ? a & b & ~c : 0;
    r |= (table & 128) ? a & b & c : 0;
    return r;
}
/* Bits n .. n + 31 of hi:lo, n at most 32. */
static inline u32 funnel(u32 lo, u32 hi, u32 n)
{
    return (u32)((((u64)hi << 32) | lo) >> n);
}

/* Bit fields (PTX ISA, bfe): the sign is the field's top bit that is inside the word. Position and
 * length are taken modulo 256 for 32-bit words and as they are for 64-bit words, as an H100
 * does. */
static inline u32 bfe_u32(u32 a, u32 b, u32 c)
{
    const u32 pos = b & 0xff, len = c & 0xff;
    const u32 v = pos > 31 ? 0 : a >> (pos & 31);
    return len > 31 ? v : v & ((1u << (len & 31)) - 1);
}
static inline u32 bfe_s32(u32 a, u32 b, u32 c)
{
    const u32 pos = b & 0xff, len = c & 0xff;
    if (!len)
        return 0;
    const u32 top = pos + len - 1 > 31 ? 31 : pos + len - 1;
    const u32 sign = (a >> top) & 1 ? UINT32_MAX : 0;
    const u32 v = pos > 31 ? sign : a >> (pos & 31);
    const u32 have = pos > 31 ? 0 : top - pos + 1; /* bits of the field that are there */
    return have > 31 ? v : (v & ((1u << (have & 31)) - 1)) | (sign & (UINT32_MAX << (have & 31)));
}
static inline u64 bfe_u64(u64 a, u32 b, u32 c)
{
    const u32 pos = b, len = c;
    const u64 v = pos > 63 ? 0 : a >> (pos & 63);
    return len > 63 ? v : v & (((u64)1 << (len & 63)) - 1);
}
static inline u64 bfe_s64(u64 a, u32 b, u32 c)
{
    const u32 pos = b > 64 ? 64 : b, len = c > 64 ? 64 : c;
    if (!len)
        return 0;
    const u32 top = pos + len - 1 > 63 ? 63 : pos + len - 1;
    const u64 sign = (a >> top) & 1 ? UINT64_MAX : 0;
    const u64 v = pos > 63 ? sign : a >> (pos & 63);
    const u32 have = pos > 63 ? 0 : top - pos + 1;
    return have > 63 ? v
                     : (v & (((u64)1 << (have & 63)) - 1)) | (sign & (UINT64_MAX << (have & 63)));
}
static inline u32 bfi_u32(u32 a, u32 b, u32 pos, u32 len)
{
    pos &= 0xff, len &= 0xff;
    const u32 ones = len > 31 ? UINT32_MAX : (1u << (len & 31)) - 1;
    const u32 field = pos > 31 ? 0 : ones << (pos & 31);
    return (b & ~field) | (pos > 31 ? 0 : (a << (pos & 31)) & field);
}
static inline u64 bfi_u64(u64 a, u64 b, u32 pos, u32 len)
{
    const u64 ones = len > 63 ? UINT64_MAX : ((u64)1 << (len & 63)) - 1;
    const u64 field = pos > 63 ? 0 : ones << (pos & 63);
    return (b & ~field) | (pos > 63 ? 0 : (a << (pos & 63)) & field);
}
static inline u32 bmsk(u32 pos, u32 len)
{
    const u32 ones = len > 31 ? UINT32_MAX : (1u << (len & 31)) - 1;
    return pos > 31 ? 0 : ones << (pos & 31);
}

static inline u32 clz32(u32 x)
{
    return x ? (u32)__builtin_clz(x) : 32;
}
static inline u32 clz64(u64 x)
{
    return x ? (u32)__builtin_clzll(x) : 64;
}
static inline u32 sign32(u32 x)
{
    return (u32)((s32)x >> 31);
}
static inline u64 sign64(u64 x)
{
    return (u64)((s64)x >> 63);
}
static inline u32 shiftamt(u32 clz, u32 width)
{
    return clz == width ? UINT32_MAX : clz;
}
static inline u32 popc32(u32 x)
{
    x -= (x >> 1) & 0x55555555;
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f;
    return (x * 0x01010101) >> 24;
}
static inline u32 brev32(u32 x)
{
    x = ((x >> 1) & 0x55555555) | ((x & 0x55555555) << 1);
    x = ((x >> 2) & 0x33333333) | ((x & 0x33333333) << 2);
    x = ((x >> 4) & 0x0f0f0f0f) | ((x & 0x0f0f0f0f) << 4);
    return __builtin_bswap32(x);
}
/* Find the n-th set bit (PTX ISA, fns). */
static inline u32 fns(u32 mask, u32 base, s32 offset)
{
    base &= 31;
    if (offset == 0)
        return (mask >> base) & 1 ? base : UINT32_MAX;
    const s32 step = offset > 0 ? 1 : -1;
    s32 left = offset > 0 ? offset : (s32)(0u - (u32)offset);
    for (s32 pos = (s32)base; pos >= 0 && pos < 32; pos += step)
        if ((mask >> pos) & 1 && --left == 0)
            return (u32)pos;
    return UINT32_MAX;
}

/* Four bytes picked from b:a by the nibbles of sel; bit 3 of a nibble replicates the byte's
 * sign. */
static inline u32 prmt(u32 a, u32 b, u32 sel)
{
    const u64 from = ((u64)b << 32) | a;
    u32 r = 0;
    for (unsigned k = 0; k < 4; k++) {
        const u32 s = (sel >> (4 * k)) & 15;
        const u32 byte = (u32)(from >> (8 * (s & 7))) & 0xff;
        r |= ((s & 8) ? ((byte & 0x80) ? 0xffu : 0) : byte) << (8 * k);
    }
    return r;
}
/* The special modes as selectors, byte 3 first (PTX ISA, prmt). */
static inline u32 b4e(u32 n)
{
    static const u16 sel[] = {0x5670, 0x6701, 0x7012, 0x0123};
    return sel[n];
}
static inline u32 ecl(u32 n)
{
    static const u16 sel[] = {0x3210, 0x3211, 0x3222, 0x3333};
    return sel[n];
}
static inline u32 ecr(u32 n)
{
    static const u16 sel[] = {0x0000, 0x1110, 0x2210, 0x3210};
    return sel[n];
}

static inline u32 byte_of(u32 x, unsigned k, bool is_signed)
{
    const u32 v = (x >> (8 * k)) & 0xff;
    return is_signed ? (v ^ 0x80) - 0x80 : v;
}
static inline u32 dp4a(u32 a, u32 b, u32 c, bool sa, bool sb)
{
    for (unsigned k = 0; k < 4; k++)
        c += byte_of(a, k, sa) * byte_of(b, k, sb);
    return c;
}
static inline u32 half_of(u32 x, unsigned k, bool is_signed)
{
    const u32 v = (x >> (16 * k)) & 0xffff;
    return is_signed ? (v ^ 0x8000) - 0x8000 : v;
}
static inline u32 dp2a(u32 a, u32 b, u32 c, bool sa, bool sb)
{
    for (unsigned k = 0; k < 2; k++)
        c += half_of(a, k, sa) * byte_of(b, k, sb);
    return c;
}
/* One part of vadd2, vadd4 ... (PTX ISA, "SIMD Video Instructions"). */
static inline s32 video_part(s32 a, s32 b, unsigned what)
{
    switch (what) {
    case SIM_VADD: return a + b;
    case SIM_VSUB: return a - b;
    case SIM_VAVRG: return (a + b + (a + b >= 0)) >> 1;
    case SIM_VABSDIFF: return a > b ? a - b : b - a;
    case SIM_VMIN: return a < b ? a : b;
    default: return a > b ? a : b;
    }
}
static inline s32 video_source(u32 x, unsigned k, unsigned bits, bool is_signed)
{
    const u32 v = x >> (k * bits) & ((1u << bits) - 1), top = 1u << (bits - 1);
    return (s32)(is_signed ? (v ^ top) - top : v);
}
static inline u32 video(u32 a, u32 b, u32 c, unsigned what, unsigned flags)
{
    const unsigned bits = flags & SIM_VIDEO_4 ? 8 : 16;
    const u32 mask = (1u << bits) - 1;
    const s32 most = (s32)(flags & SIM_VIDEO_D ? mask >> 1 : mask);
    const s32 least = flags & SIM_VIDEO_D ? -most - 1 : 0;
    u32 r = 0, sum = c;
    for (unsigned k = 0; k < 32 / bits; k++) {
        s32 x = video_part(video_source(a, k, bits, flags & SIM_VIDEO_A),
                           video_source(b, k, bits, flags & SIM_VIDEO_B), what);
        if (flags & SIM_VIDEO_SAT)
            x = x < least ? least : x > most ? most : x;
        r |= ((u32)x & mask) << (k * bits);
        sum += (u32)x;
    }
    return flags & SIM_VIDEO_ADD ? sum : r;
}

/* ---- handlers -------------------------------------------------------------------------------- */

#define SIM_U   SIM_DO_U
#define SIM_B   SIM_DO_B
#define SIM_T   SIM_DO_T
#define SIM_CMP SIM_DO_CMP
#define SIM_X(NAME, SPELL, D, A, B, C)
#define SIM_X2(NAME, SPELL, D, A, B, C)
#include "sim/int.def"

#define SIM_ARGS4(A, B, C, E) \
    SIM_ARGS3(A, B, C);       \
    SIM_IN(E, e, op->e)
#define SIM_LANE4(A, B, C, E) \
    SIM_LANE3(A, B, C);       \
    SIM_LANE(E, e)
SIM_BOTH(BFI_32, u32, SIM_ARGS4(u32, u32, u32, u32), SIM_LANE4(u32, u32, u32, u32),
         bfi_u32(a, b, c, e))
SIM_BOTH(BFI_64, u64, SIM_ARGS4(u64, u64, u32, u32), SIM_LANE4(u64, u64, u32, u32),
         bfi_u64(a, b, c, e))

#define SIM_ARGSP(A) \
    SIM_ARGS2(A, A); \
    const u32 c = PRED(op->c)
#define SIM_LANEP(A) SIM_LANE2(A, A)
SIM_BOTH(SELP_16, u16, SIM_ARGSP(u16), SIM_LANEP(u16), (c & sim_bit[i]) ? a : b)
SIM_BOTH(SELP_32, u32, SIM_ARGSP(u32), SIM_LANEP(u32), (c & sim_bit[i]) ? a : b)
SIM_BOTH(SELP_64, u64, SIM_ARGSP(u64), SIM_LANEP(u64), (c & sim_bit[i]) ? a : b)

/* Carries. CC is the predicate at the start of the file; SET says whether it is written. T is the
 * lane type, TT one twice as wide; WIDE is the exact sum, whose bit BITS is the carry. */
#define SIM_CARRY(NAME, T, TT, BITS, SET, WIDE)      \
    SIM_FN(NAME)                                     \
    {                                                \
        SIM_ARGS3(T, T, T);                          \
        slot_##T *const pd = SLOT(T, op->d);         \
        const u32 cc = PRED(0);                      \
        u32 out = 0;                                 \
        for (unsigned i = 0; i < SIM_LANES; i++) {   \
            const TT carry = (cc >> i) & 1;          \
            const T a = pa[i], b = pb[i], c = pc[i]; \
            (void)carry, (void)c;                    \
            const TT wide = (WIDE);                  \
            out |= (u32)((wide >> BITS) & 1) << i;   \
            if (w->em & sim_bit[i])                  \
                pd[i] = (T)wide;                     \
        }                                            \
        if (SET)                                     \
            PRED(0) = (cc & ~w->em) | (out & w->em); \
        return op + 1;                               \
    }
#define W32(x) ((u64)(x))
#define W64(x) ((unsigned __int128)(x))
/* a - b = a + ~b + 1: CC holds the carry of that, the opposite of a borrow, as on hardware; nvcc's
 * division of 128 bits ends a subtraction with addc to learn it */
SIM_CARRY(ADD_CC, u32, u64, 32, 1, W32(a) + b)
SIM_CARRY(ADDC, u32, u64, 32, 0, W32(a) + b + carry)
SIM_CARRY(ADDC_CC, u32, u64, 32, 1, W32(a) + b + carry)
SIM_CARRY(SUB_CC, u32, u64, 32, 1, W32(a) + (u32)~b + 1)
SIM_CARRY(SUBC, u32, u64, 32, 0, W32(a) + (u32)~b + carry)
SIM_CARRY(SUBC_CC, u32, u64, 32, 1, W32(a) + (u32)~b + carry)
SIM_CARRY(ADD_CC64, u64, unsigned __int128, 64, 1, W64(a) + b)
SIM_CARRY(ADDC64, u64, unsigned __int128, 64, 0, W64(a) + b + carry)
SIM_CARRY(ADDC_CC64, u64, unsigned __int128, 64, 1, W64(a) + b + carry)
SIM_CARRY(SUB_CC64, u64, unsigned __int128, 64, 1, W64(a) + (u64)~b + 1)
SIM_CARRY(SUBC64, u64, unsigned __int128, 64, 0, W64(a) + (u64)~b + carry)
SIM_CARRY(SUBC_CC64, u64, unsigned __int128, 64, 1, W64(a) + (u64)~b + carry)
#define LO32(a, b)  ((u64)(u32)((a) * (b)))
#define HIU32(a, b) (((u64)(a) * (b)) >> 32)
#define HIS32(a, b) ((u64)(u32)(((s64)(s32)(a) * (s32)(b)) >> 32))
SIM_CARRY(MADLO_CC, u32, u64, 32, 1, LO32(a, b) + c)
SIM_CARRY(MADHI_CC_U, u32, u64, 32, 1, HIU32(a, b) + c)
SIM_CARRY(MADHI_CC_S, u32, u64, 32, 1, HIS32(a, b) + c)
SIM_CARRY(MADC_LO, u32, u64, 32, 0, LO32(a, b) + c + carry)
SIM_CARRY(MADC_LO_CC, u32, u64, 32, 1, LO32(a, b) + c + carry)
SIM_CARRY(MADC_HI_U, u32, u64, 32, 0, HIU32(a, b) + c + carry)
SIM_CARRY(MADC_HI_S, u32, u64, 32, 0, HIS32(a, b) + c + carry)
SIM_CARRY(MADC_HI_CC_U, u32, u64, 32, 1, HIU32(a, b) + c + carry)
SIM_CARRY(MADC_HI_CC_S, u32, u64, 32, 1, HIS32(a, b) + c + carry)
#define LO64(a, b)  W64((a) * (b))
#define HIU64(a, b) ((W64(a) * (b)) >> 64)
#define HIS64(a, b) W64((u64)(((__int128)(s64)(a) * (s64)(b)) >> 64))
SIM_CARRY(MADLO_CC64, u64, unsigned __int128, 64, 1, LO64(a, b) + c)
SIM_CARRY(MADHI_CC_U64, u64, unsigned __int128, 64, 1, HIU64(a, b) + c)
SIM_CARRY(MADHI_CC_S64, u64, unsigned __int128, 64, 1, HIS64(a, b) + c)
SIM_CARRY(MADC_LO64, u64, unsigned __int128, 64, 0, LO64(a, b) + c + carry)
SIM_CARRY(MADC_LO_CC64, u64, unsigned __int128, 64, 1, LO64(a, b) + c + carry)
SIM_CARRY(MADC_HI_U64, u64, unsigned __int128, 64, 0, HIU64(a, b) + c + carry)
SIM_CARRY(MADC_HI_S64, u64, unsigned __int128, 64, 0, HIS64(a, b) + c + carry)
SIM_CARRY(MADC_HI_CC_U64, u64, unsigned __int128, 64, 1, HIU64(a, b) + c + carry)
SIM_CARRY(MADC_HI_CC_S64, u64, unsigned __int128, 64, 1, HIS64(a, b) + c + carry)

#undef SIM_U
#undef SIM_B
#undef SIM_T
#undef SIM_CMP
#undef SIM_X
#undef SIM_X2
#define SIM_U(NAME, SPELL, D, A, EXPR)       SIM_ENTRY(NAME);
#define SIM_B(NAME, SPELL, D, A, B, EXPR)    SIM_ENTRY(NAME);
#define SIM_T(NAME, SPELL, D, A, B, C, EXPR) SIM_ENTRY(NAME);
#define SIM_CMP(NAME, SPELL, A, EXPR)        SIM_ENTRY(NAME);
#define SIM_X2(NAME, SPELL, D, A, B, C)      SIM_ENTRY(NAME);
#define SIM_X(NAME, SPELL, D, A, B, C)       SIM_ENTRY_ONE(NAME);

void SIM_NAMED(sim_fill_int)(struct sim_build *b)
{
#include "sim/int.def"
}
