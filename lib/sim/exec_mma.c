/* mma.sync. */
#include <config.h>

#include "sim/sums.h"

/* ---- A and B --------------------------------------------------------------------------------- */

/* Where element k of a row of A goes: fp8 that is converted to f16 is multiplied in two parts, of
 * the lower and of the upper two of every four. */
static inline unsigned place(const struct sim_mma *m, unsigned k)
{
    return m->as_f16 ? (k & 2 ? m->k / 2u : 0) + k / 4 * 2 + (k & 1) : k;
}

static inline void unpack(const struct sim_warp *w, const struct sim_mma *m, struct raw *raw)
{
    const unsigned halves = m->m / 8;
    u32 x[32];
    for (unsigned r = 0; r < m->na; r++)
        for (unsigned g = 0; g < 8; g++) {
            const unsigned n = spread(w->r + m->a[r] + 16 * g, m->a_type, x);
            for (unsigned i = 0; i < n; i++)
                raw->a[g + r % halves * 8][place(m, r / halves * n + i)] = x[i];
        }
    for (unsigned r = 0; r < m->nb; r++)
        for (unsigned g = 0; g < 8; g++) {
            const unsigned n = spread(w->r + m->b[r] + 16 * g, m->b_type, x);
            for (unsigned i = 0; i < n; i++)
                ((u32 *)&raw->b[place(m, r * n + i)])[column(g)] = x[i];
        }
}

static inline void multiply(const struct sim_mma *m, struct raw *raw, const v8 c[ROWS], v8 d[ROWS])
{
    struct floats f;
    const u32 seen = decode_a(m, raw, &f) | decode_b(m, raw, &f);
    sum_all(m, raw, &f, seen, c, d);
}

/* ---- what sm_90 has no instruction of its own for -------------------------------------------- */

static inline f32 up(const struct sim_mma *m, u32 x)
{
    return m->half ? up_f16(x) : from32(x);
}

/* C + x, both as C's type, rounded to nearest. */
static inline u32 add_to(const struct sim_mma *m, u32 c, u32 x)
{
    if (!m->half)
        return bits32(nan32(from32(c) + from32(x)));
    const f64 sum = (f64)up_f16(c) + (f64)up_f16(x);
    return isnan(sum) ? 0x7fff : narrow_f16(sum, SIM_RN);
}

/* fp8: products of f16 added to zero, and C to what that gives. */
static inline void multiply_fp8(const struct sim_mma *m, struct raw *raw, const v8 c[ROWS],
                                v8 d[ROWS])
{
    const v8 zero[ROWS] = {{0}};
    multiply(m, raw, zero, d);
    for (unsigned r = 0; r < m->m; r++)
        for (unsigned i = 0; i < COLS; i++)
            d[r][i] = (s32)add_to(m, (u32)c[r][i], (u32)d[r][i]);
}

/* m8n8k4: plain arithmetic in f32. */
static inline void multiply_quad(const struct sim_mma *m, const struct raw *raw, const v8 c[ROWS],
                                 v8 d[ROWS])
{
    for (unsigned r = 0; r < 8; r++)
        for (unsigned i = 0; i < COLS; i++) {
            f32 a[4], b[4];
            for (unsigned k = 0; k < 4; k++) {
                a[k] = up_f16(raw->a[r][k]);
                b[k] = up_f16(raw->b[k][i]);
            }
            const f32 old = up(m, (u32)c[r][i]);
            if (!m->half) {
                f32 sum = fmaf(a[0], b[0], 0);
                for (unsigned k = 1; k < 4; k++)
                    sum = fmaf(a[k], b[k], sum);
                d[r][i] = (s32)bits32(nan32(old + sum));
                continue;
            }
            const f32 low = fmaf(a[1], b[1], a[0] * b[0]), high = fmaf(a[3], b[3], a[2] * b[2]);
            const f32 sum = old + low;
            d[r][i] = (s32)down_f16(sum + high);
        }
}

/* ---- m8n8k4 of f16: lanes 4 q to 4 q + 3 and 16 + 4 q to 16 + 4 q + 3 have a problem of their own
 */

static inline unsigned quad_lane(unsigned q, unsigned i)
{
    return 4 * q + i % 4 + (i < 4 ? 0 : 16);
}

static inline u32 half_of(const struct sim_warp *w, const u32 *slot, unsigned lane, unsigned i)
{
    return SLOT(u32, slot[i / 2])[lane] >> (i % 2 * 16) & 0xffff;
}

/* The lane and the register of an element of C in f32. */
static inline unsigned quad_c(unsigned q, unsigned row, unsigned col, unsigned *reg)
{
    *reg = (col & 4) | (row & 2) | (col & 1);
    return quad_lane(q, (row & 4) | (col & 2) | (row & 1));
}

static void quad_unpack(const struct sim_warp *w, const struct sim_mma *m, unsigned q,
                        struct raw *raw, v8 c[ROWS])
{
    for (unsigned i = 0; i < 8; i++)
        for (unsigned k = 0; k < 4; k++) {
            const unsigned own = quad_lane(q, i), other = quad_lane(q, (i & 4) + k);
            raw->a[i][k] = m->a_col ? half_of(w, m->a, other, i % 4) : half_of(w, m->a, own, k);
            ((u32 *)&raw->b[k])[i] = m->b_row ? half_of(w, m->b, other, i % 4)
                                              : half_of(w, m->b, own, k);
        }
    for (unsigned r = 0; r < 8; r++)
        for (unsigned j = 0; j < 8; j++) {
            unsigned reg;
            const unsigned lane = quad_c(q, r, j, &reg);
            c[r][j] =
                (s32)(m->half ? half_of(w, m->c, quad_lane(q, r), j) : SLOT(u32, m->c[reg])[lane]);
        }
}

static void quad_pack(struct sim_warp *w, const struct sim_mma *m, unsigned q, const v8 d[ROWS])
{
    for (unsigned r = 0; r < 8; r++)
        for (unsigned j = 0; j < 8; j++) {
            unsigned reg;
            const unsigned lane = quad_c(q, r, j, &reg), own = quad_lane(q, r);
            if (!m->half) {
                SLOT(u32, m->d[reg])[lane] = (u32)d[r][j];
                continue;
            }
            slot_u32 *const pair = SLOT(u32, m->d[j / 2]) + own;
            *pair = j % 2 ? (*pair & 0xffff) | (u32)d[r][j] << 16 : (u32)d[r][j];
        }
}

SIM_FN(MMA_FLOAT)
{
    ALL_TOGETHER();
    const struct sim_mma *const m = sim_mma_of(op);
    struct raw raw[4];
    v8 c[4][ROWS], d[4][ROWS];
    const unsigned n = m->quads ? 4 : 1;
    for (unsigned q = 0; q < n; q++) {
        if (m->quads) {
            quad_unpack(w, m, q, &raw[q], c[q]);
        } else {
            unpack(w, m, &raw[q]);
            load_c(w, m, m->c, c[q]);
        }
        if (m->emulated)
            multiply_quad(m, &raw[q], c[q], d[q]);
        else if (m->as_f16)
            multiply_fp8(m, &raw[q], c[q], d[q]);
        else
            multiply(m, &raw[q], c[q], d[q]);
    }
    if (!m->quads)
        store_d(w, m, m->d, d[0]);
    for (unsigned q = 0; q < n && m->quads; q++)
        quad_pack(w, m, q, d[q]);
    return op + 1;
}

/* ---- integers -------------------------------------------------------------------------------- */

SIM_FN(MMA_INT)
{
    ALL_TOGETHER();
    const struct sim_mma *const m = sim_mma_of(op);
    struct raw raw;
    v8 c[ROWS], d[ROWS];
    unpack(w, m, &raw);
    load_c(w, m, m->c, c);
    for (unsigned r = 0; r < m->m; r++) {
        v8 sum = {0};
        for (unsigned k = 0; k < m->k; k++)
            sum += (v8)raw.b[k] * (s32)raw.a[r][k];
        add_c(m, &sum, &c[r], &d[r]);
    }
    store_d(w, m, m->d, d);
    return op + 1;
}

SIM_FN(MMA_BIT)
{
    ALL_TOGETHER();
    const struct sim_mma *const m = sim_mma_of(op);
    const unsigned halves = m->m / 8, words = m->k / 32;
    u32 a[ROWS][8], b[COLS][8];
    v8 c[ROWS], d[ROWS];
    load_c(w, m, m->c, c);
    for (unsigned g = 0; g < 8; g++) {
        for (unsigned r = 0; r < m->na; r++)
            memcpy(a[g + r % halves * 8] + r / halves * 4, SLOT(u32, m->a[r]) + 4 * g, 16);
        for (unsigned r = 0; r < m->nb; r++)
            memcpy(b[g] + 4 * r, SLOT(u32, m->b[r]) + 4 * g, 16);
    }
    for (unsigned r = 0; r < m->m; r++)
        for (unsigned n = 0; n < COLS; n++) {
            u32 count = 0;
            for (unsigned i = 0; i < words; i++)
                count += (u32)__builtin_popcount(m->and ? a[r][i] & b[n][i] : a[r][i] ^ b[n][i]);
            d[r][column(n)] = (s32)((u32)c[r][column(n)] + count);
        }
    store_d(w, m, m->d, d);
    return op + 1;
}

/* ---- f64: a chain of fused multiply-adds in the order of K ----------------------------------- */

SIM_FN(MMA_F64)
{
    ALL_TOGETHER();
    const struct sim_mma *const m = sim_mma_of(op);
    const unsigned halves = m->m / 8;
    volatile f64 d[ROWS][COLS]; /* so that it is computed here */
    round_set(m->round);
    for (unsigned r = 0; r < m->m; r++)
        for (unsigned n = 0; n < COLS; n++) {
            const unsigned at = r % 8 * 4 + n / 2;
            f64 sum = SLOT(f64, m->c[r / 8 * 2 + n % 2])[at];
            for (unsigned k = 0; k < m->k; k++) {
                const f64 a = SLOT(f64, m->a[r / 8 + k / 4 * halves])[r % 8 * 4 + k % 4];
                const f64 b = SLOT(f64, m->b[k / 4])[n * 4 + k % 4];
                sum = pick64(b, sum, a, fma(a, b, sum));
            }
            d[r][n] = sum;
        }
    round_reset(m->round);
    for (unsigned r = 0; r < m->m; r++)
        for (unsigned n = 0; n < COLS; n++)
            SLOT(f64, m->d[r / 8 * 2 + n % 2])[r % 8 * 4 + n / 2] = d[r][n];
    return op + 1;
}

void SIM_NAMED(sim_fill_mma)(struct sim_build *b)
{
    SIM_ENTRY_ONE(MMA_FLOAT);
    SIM_ENTRY_ONE(MMA_INT);
    SIM_ENTRY_ONE(MMA_BIT);
    SIM_ENTRY_ONE(MMA_F64);
}
