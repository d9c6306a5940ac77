/* ldmatrix, stmatrix, movmatrix: 8 x 8 matrices of 16-bit elements, one row a lane in memory. */
#include <config.h>

#include "sim/exec.h"
#include "sim/matrix.h"

enum { ROW_BYTES = 16 };

/* A generic address may be anything, but rows are in shared memory. */
static bool is_shared(struct sim_warp *w, const struct sim_op *op, u32 lane, u64 address)
{
    if (op->more != SIM_IN_GENERIC || address >> SIM_WINDOW_BITS == SIM_WINDOW_SHARED)
        return true;
    struct sim_fault *f = &w->block->fault;
    sim_fault_at(w, op, lane, SIM_F_SPACE);
    f->address = address;
    f->bytes = ROW_BYTES;
    f->space = SIM_IN_GENERIC;
    f->store = op->flags & SIM_STORES;
    return false;
}

/* Host addresses of the rows, 8 lanes for each of n matrices. */
static inline bool rows_at(struct sim_warp *w, const struct sim_op *op, u32 n, u64 at[SIM_LANES])
{
    const struct sim_block *b = w->block;
    const u64 base = op->more == SIM_IN_SHARED ? 0 : SIM_SHARED_BASE;
    u64 bad = b->shared_bytes < ROW_BYTES;
    const u64 last = b->shared_bytes - ROW_BYTES;
    lane_addresses(w, op, at);
    for (u32 i = 0; i < 8 * n; i++) {
        const u64 off = at[i] - base;
        bad |= (u64)(off > last) | (off & (ROW_BYTES - 1));
    }
    for (u32 i = 0; bad && i < 8 * n; i++)
        if (!is_shared(w, op, i, at[i]))
            return false;
    if (bad) {
        w->em = (u32)(((u64)1 << 8 * n) - 1);
        const bool ok = sim_resolve(w, op, at);
        w->em = w->mask;
        return ok;
    }
    for (u32 i = 0; i < 8 * n; i++)
        at[i] += (u64)(uintptr_t)b->shared - base;
    return true;
}

/* Element j of row i and element i of row j change places; lane 4 r + t has elements 2 t and 2 t +
 * 1 of row r. */
static inline void transpose(u32 v[SIM_LANES])
{
    u16 e[8][8], f[8][8];
    memcpy(e, v, sizeof e);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            f[i][j] = e[j][i];
    memcpy(v, f, sizeof f);
}

SIM_FN(LDMATRIX)
{
    ALL_TOGETHER();
    const u32 n = op->round & SIM_MATRIX_COUNT, slot[4] = {op->d, op->b, op->c, op->e};
    u64 at[SIM_LANES];
    if (!rows_at(w, op, n, at))
        return NULL;
    for (u32 k = 0; k < n; k++) {
        u32 v[SIM_LANES];
        for (u32 r = 0; r < 8; r++)
            memcpy(v + 4 * r, (const void *)(uintptr_t)at[8 * k + r], ROW_BYTES);
        if (op->round & SIM_MATRIX_TRANS)
            transpose(v);
        memcpy(SLOT(u32, slot[k]), v, sizeof v);
    }
    return op + 1;
}

SIM_FN(STMATRIX)
{
    ALL_TOGETHER();
    const u32 n = op->round & SIM_MATRIX_COUNT, slot[4] = {op->d, op->b, op->c, op->e};
    u64 at[SIM_LANES];
    if (!rows_at(w, op, n, at))
        return NULL;
    for (u32 k = 0; k < n; k++) {
        u32 v[SIM_LANES];
        memcpy(v, SLOT(u32, slot[k]), sizeof v);
        if (op->round & SIM_MATRIX_TRANS)
            transpose(v);
        for (u32 r = 0; r < 8; r++)
            memcpy((void *)(uintptr_t)at[8 * k + r], v + 4 * r, ROW_BYTES);
    }
    return op + 1;
}

SIM_FN(MOVMATRIX)
{
    ALL_TOGETHER();
    u32 v[SIM_LANES];
    memcpy(v, SLOT(u32, op->a), sizeof v);
    transpose(v);
    memcpy(SLOT(u32, op->d), v, sizeof v);
    return op + 1;
}

void SIM_NAMED(sim_fill_matrix)(struct sim_build *b)
{
    SIM_ENTRY_ONE(LDMATRIX);
    SIM_ENTRY_ONE(STMATRIX);
    SIM_ENTRY_ONE(MOVMATRIX);
}
