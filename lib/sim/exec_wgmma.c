/* wgmma: what a warp does of a product, and the instructions around it. */
#include <config.h>

#include "sim/sums.h"
#include "sim/wgmma.h"

enum { CHUNK = 16 };

/* ---- A and B --------------------------------------------------------------------------------- */

/* The sign bit of elements that are negated. */
static inline u32 sign_of(unsigned type, bool minus)
{
    switch ((enum sim_element)type) {
    case SIM_E_F16:
    case SIM_E_BF16: return minus ? 0x8000 : 0;
    case SIM_E_TF32: return minus ? 0x80000000 : 0;
    default: return minus ? 0x80 : 0;
    }
}

static inline void a_from_registers(const struct sim_warp *w, const struct sim_mma *m,
                                    struct raw *raw)
{
    u32 x[32];
    for (unsigned r = 0; r < m->na; r++)
        for (unsigned g = 0; g < 8; g++) {
            const unsigned n = spread(w->r + m->a[r] + CHUNK * g, m->a_type, x);
            memcpy(&raw->a[g + r % 2 * 8][r / 2 * n], x, n * sizeof *x);
        }
}

static inline void a_from_memory(const struct sim_warp *w, const struct sim_mma *m,
                                 const struct sim_tile *t, struct raw *raw)
{
    const unsigned char *const shared = w->block->shared;
    const unsigned first = w->index % SIM_WARPGROUP * 32;
    u32 x[32];
    for (unsigned i = 0; i < 32; i++) {
        const unsigned n = spread(shared + sim_tile_chunk(t, first + i), m->a_type, x);
        if (!t->mn)
            memcpy(&raw->a[i / 2][i % 2 * n], x, n * sizeof *x);
        for (unsigned e = 0; t->mn && e < n; e++)
            raw->a[i / m->k * n + e][i % m->k] = x[e];
    }
}

/* Columns 8 j to 8 j + 7. */
static inline void b_from_memory(const struct sim_warp *w, const struct sim_mma *m,
                                 const struct sim_tile *t, unsigned j, u32 flip, struct raw *raw)
{
    const unsigned char *const shared = w->block->shared;
    u32 x[32];
    for (unsigned i = 0; i < 16; i++) {
        const unsigned n = spread(shared + sim_tile_chunk(t, 16 * j + i), m->b_type, x);
        u32 *const to = t->mn ? (u32 *)&raw->b[i] : (u32 *)&raw->b[i % 2 * n] + column(i / 2);
        for (unsigned e = 0; e < n; e++)
            to[t->mn ? column(e) : COLS * e] = x[e] ^ flip;
    }
}

/* ---- products -------------------------------------------------------------------------------- */

static inline bool is_integer(const struct sim_mma *m)
{
    return m->a_type == SIM_E_U8 || m->a_type == SIM_E_S8;
}

static void multiply_int(const struct sim_mma *m, const struct raw *raw, const v8 c[ROWS],
                         v8 d[ROWS])
{
    for (unsigned r = 0; r < ROWS; r++) {
        v8 sum = {0};
        for (unsigned k = 0; k < m->k; k++)
            sum += (v8)raw->b[k] * (s32)raw->a[r][k];
        add_c(m, &sum, &c[r], &d[r]);
    }
}

SIM_FN(WGMMA_PRODUCT)
{
    const struct sim_wgmma_product *const p = (const struct sim_wgmma_product *)(uintptr_t)op->imm;
    const struct sim_wgmma *const g = p->g;
    const struct sim_mma *const m = &g->m;
    const bool integers = is_integer(m);
    const u32 a_flip = sign_of(m->a_type, g->a_minus), b_flip = sign_of(m->b_type, g->b_minus);
    const unsigned each = m->half ? 2 : 4; /* registers of eight columns */
    struct sim_tile a, b;
    struct raw raw;
    struct floats f;
    u32 seen = 0;
    sim_tile_of(p->f->b, g->b_mn, &b);
    if (m->na) {
        a_from_registers(w, m, &raw);
    } else {
        sim_tile_of(p->f->a, g->a_mn, &a);
        a_from_memory(w, m, &a, &raw);
    }
    for (unsigned r = 0; r < ROWS && a_flip; r++)
        for (unsigned k = 0; k < m->k; k++)
            raw.a[r][k] ^= a_flip;
    if (!integers)
        seen = decode_a(m, &raw, &f);
    for (unsigned j = 0; j < g->n / COLS; j++) {
        v8 c[ROWS] = {{0}}, d[ROWS];
        b_from_memory(w, m, &b, j, b_flip, &raw);
        if (p->f->adds)
            load_c(w, m, g->d + each * j, c);
        if (integers)
            multiply_int(m, &raw, c, d);
        else
            sum_all(m, &raw, &f, decode_b(m, &raw, &f) | seen, c, d);
        store_d(w, m, g->d + each * j, d);
    }
    return op;
}

/* ---- instructions ---------------------------------------------------------------------------- */

SIM_FN(WGMMA)
{
    ALL_TOGETHER();
    return sim_wgmma_issue(w, op);
}
SIM_FN(WGMMA_FENCE)
{
    ALL_TOGETHER();
    return sim_wgmma_fence(w, op);
}
SIM_FN(WGMMA_COMMIT)
{
    ALL_TOGETHER();
    return sim_wgmma_commit(w, op);
}
SIM_FN(WGMMA_WAIT)
{
    ALL_TOGETHER();
    return sim_wgmma_wait(w, op);
}
SIM_FN(SETMAXNREG)
{
    ALL_TOGETHER();
    return sim_set_registers(w, op);
}

void SIM_NAMED(sim_fill_wgmma)(struct sim_build *b)
{
    SIM_ENTRY_ONE(WGMMA);
    SIM_ENTRY_ONE(WGMMA_FENCE);
    SIM_ENTRY_ONE(WGMMA_COMMIT);
    SIM_ENTRY_ONE(WGMMA_WAIT);
    SIM_ENTRY_ONE(WGMMA_PRODUCT);
    SIM_ENTRY_ONE(SETMAXNREG);
}
