#include <config.h>

#include "sim/exec.h"

/* Host addresses of the lanes' accesses: at[i] for each lane. For lanes outside w->em it is another
 * lane's, so that loads can read all 32 and blend. */
struct access {
    u64 at[SIM_LANES];
    bool unit;    /* lane i + 1 follows lane i in memory, all lanes active */
    bool uniform; /* all lanes read one place */
};

/* What the whole warp may use without a look-up per lane: for global memory the buffer this
 * instruction used last time, for shared memory the block's, for local memory the warp's. */
static inline struct sim_cached region(const struct sim_warp *w, const struct sim_op *op)
{
    if (op->more == SIM_IN_GLOBAL || op->more == SIM_IN_GENERIC)
        return w->cache[op->cache];
    const bool shared = op->more == SIM_IN_SHARED;
    const u64 bytes = shared ? w->block->shared_bytes : w->local_bytes;
    if (bytes < op->size)
        return (struct sim_cached){0};
    return (struct sim_cached){0, bytes - op->size, shared ? w->block->shared : w->local};
}

static inline bool reach(struct sim_warp *w, const struct sim_op *op, struct access *x)
{
    lane_addresses(w, op, x->at);
    u64 *const at = x->at;
    if (w->em != UINT32_MAX) {
        const u32 *const lm = sim_lanes(w);
        const u64 other = at[__builtin_ctz(w->em)];
        SIM_LANES_LOOP
        {
            at[i] = lm[i] ? at[i] : other;
        }
    }
    const struct sim_cached c = region(w, op);
    const u64 first = at[0], step = op->size, skew = op->size - 1u;
    const u64 host = (u64)(uintptr_t)c.host;
    u64 bad = 0, gap = 0, spread = 0;
    SIM_LANES_LOOP
    {
        const u64 off = at[i] - c.base;
        bad |= (u64)(off > c.limit) | (at[i] & skew);
        gap |= at[i] ^ (first + (u64)i * step);
        spread |= at[i] ^ first;
    }
    if (bad || !c.host) {
        x->unit = x->uniform = false;
        return sim_resolve(w, op, at);
    }
    /* a lane's local memory follows that of the lane before it */
    const u64 stride = op->more == SIM_IN_LOCAL ? w->local_bytes : 0;
    x->unit = gap == 0 && !stride && w->em == UINT32_MAX;
    x->uniform = spread == 0 && !stride;
    const u64 move = host - c.base;
    SIM_LANES_LOOP
    {
        at[i] += move + (u64)i * stride;
    }
    return true;
}

#define HOST(i) ((unsigned char *)(uintptr_t)x.at[i])

/* A load of memory type M into slots of type S. */
#define SIM_LOAD(NAME, M, S)                                     \
    SIM_FN(NAME)                                                 \
    {                                                            \
        typedef M __attribute__((may_alias, aligned(1))) mem;    \
        struct access x;                                         \
        if (!reach(w, op, &x))                                   \
            return NULL;                                         \
        slot_##S *const pd = SLOT(S, op->d);                     \
        if (x.unit) {                                            \
            const mem *const from = (const mem *)HOST(0);        \
            SIM_LANES_LOOP                                       \
            {                                                    \
                pd[i] = PUT_##S(from[i]);                        \
            }                                                    \
            return op + 1;                                       \
        }                                                        \
        slot_##S v[SIM_LANES];                                   \
        if (x.uniform) {                                         \
            const slot_##S one = PUT_##S(*(const mem *)HOST(0)); \
            for (int i = 0; i < SIM_LANES; i++)                  \
                v[i] = one;                                      \
        } else {                                                 \
            for (int i = 0; i < SIM_LANES; i++)                  \
                v[i] = PUT_##S(*(const mem *)HOST(i));           \
        }                                                        \
        if (w->em == UINT32_MAX) {                               \
            memcpy(pd, v, sizeof v);                             \
            return op + 1;                                       \
        }                                                        \
        const u32 *const lm = sim_lanes(w);                      \
        SIM_LANES_LOOP                                           \
        {                                                        \
            pd[i] = lm[i] ? v[i] : pd[i];                        \
        }                                                        \
        return op + 1;                                           \
    }
SIM_LOAD(LD_U8, uint8_t, u32)
SIM_LOAD(LD_S8, int8_t, s32)
SIM_LOAD(LD_S8_H, int8_t, u16) /* a 16-bit register's slot is zero-extended */
SIM_LOAD(LD_U16, uint16_t, u32)
SIM_LOAD(LD_S16, int16_t, s32)
SIM_LOAD(LD_32, uint32_t, u32)
SIM_LOAD(LD_U8_W, uint8_t, u64)
SIM_LOAD(LD_S8_W, int8_t, s64)
SIM_LOAD(LD_U16_W, uint16_t, u64)
SIM_LOAD(LD_S16_W, int16_t, s64)
SIM_LOAD(LD_U32_W, uint32_t, u64)
SIM_LOAD(LD_S32_W, int32_t, s64)
SIM_LOAD(LD_64, uint64_t, u64)

/* A store of the low bits of slots of type S. Where lanes write one place, the highest lane's value
 * stays. */
#define SIM_STORE(NAME, M, S)                                 \
    SIM_FN(NAME)                                              \
    {                                                         \
        typedef M __attribute__((may_alias, aligned(1))) mem; \
        struct access x;                                      \
        if (!reach(w, op, &x))                                \
            return NULL;                                      \
        const slot_##S *const pd = SLOT(S, op->d);            \
        if (x.unit) {                                         \
            mem *const to = (mem *)HOST(0);                   \
            SIM_LANES_LOOP                                    \
            {                                                 \
                to[i] = (M)pd[i];                             \
            }                                                 \
            return op + 1;                                    \
        }                                                     \
        FOR_LANES(i, w->em) {                                 \
            *(mem *)HOST(i) = (M)pd[i];                       \
        }                                                     \
        return op + 1;                                        \
    }
SIM_STORE(ST_8, uint8_t, u32)
SIM_STORE(ST_16, uint16_t, u32)
SIM_STORE(ST_32, uint32_t, u32)
SIM_STORE(ST_8_W, uint8_t, u64)
SIM_STORE(ST_16_W, uint16_t, u64)
SIM_STORE(ST_32_W, uint32_t, u64)
SIM_STORE(ST_64, uint64_t, u64)

/* One element of a vector, k elements of so many bytes from the start. */
static inline void load_element(struct sim_warp *w, const struct access *x, u32 slot, u32 k,
                                u32 bytes, u32 how)
{
    const bool is_signed = how & SIM_V_SIGNED, wide = how & SIM_V_WIDE;
    const u32 kept = how & SIM_V_HALF ? UINT16_MAX : UINT32_MAX;
    FOR_LANES(i, w->em) {
        const unsigned char *from = (const unsigned char *)(uintptr_t)x->at[i] + k * bytes;
        u64 v = 0;
        memcpy(&v, from, bytes);
        if (is_signed)
            v = (u64)((s64)(v << (64 - 8 * bytes)) >> (64 - 8 * bytes));
        if (wide)
            SLOT(u64, slot)[i] = v;
        else
            SLOT(u32, slot)[i] = (u32)v & kept;
    }
}

/* All lanes, N elements of type M in slots of that size: between a lane's memory (from, to) and p0
 * to p3. */
#define SIM_VECTOR(M, N)                                                                         \
    typedef M __attribute__((may_alias, aligned(1))) mem;                                        \
    slot_##M *const p0 = SLOT(M, op->d), *const p1 = SLOT(M, op->b);                             \
    slot_##M *const p2 = SLOT(M, (N) > 2 ? op->c : op->d), *const p3 =                           \
                                                               SLOT(M, (N) > 2 ? op->e : op->d); \
    (void)p2;                                                                                    \
    (void)p3
#define SIM_LOAD_VECTOR(M, N)                                                      \
    static inline void load_##M##_##N(struct sim_warp *w, const struct sim_op *op, \
                                      const struct access *x)                      \
    {                                                                              \
        SIM_VECTOR(M, N);                                                          \
        for (int i = 0; i < SIM_LANES; i++) {                                      \
            const mem *const from = (const mem *)(uintptr_t)x->at[i];              \
            p0[i] = from[0];                                                       \
            p1[i] = from[1];                                                       \
            if ((N) > 2) {                                                         \
                p2[i] = from[2];                                                   \
                p3[i] = from[3];                                                   \
            }                                                                      \
        }                                                                          \
    }
#define SIM_STORE_VECTOR(M, N)                                                      \
    static inline void store_##M##_##N(struct sim_warp *w, const struct sim_op *op, \
                                       const struct access *x)                      \
    {                                                                               \
        SIM_VECTOR(M, N);                                                           \
        for (int i = 0; i < SIM_LANES; i++) {                                       \
            mem *const to = (mem *)(uintptr_t)x->at[i];                             \
            to[0] = p0[i];                                                          \
            to[1] = p1[i];                                                          \
            if ((N) > 2) {                                                          \
                to[2] = p2[i];                                                      \
                to[3] = p3[i];                                                      \
            }                                                                       \
        }                                                                           \
    }
SIM_LOAD_VECTOR(u32, 2)
SIM_LOAD_VECTOR(u32, 4)
SIM_LOAD_VECTOR(u64, 2)
SIM_STORE_VECTOR(u32, 2)
SIM_STORE_VECTOR(u32, 4)
SIM_STORE_VECTOR(u64, 2)

/* The usual ones, for all lanes; false: it is not one of them. */
static inline bool load_all(struct sim_warp *w, const struct sim_op *op, const struct access *x)
{
    const u32 n = op->elems, bytes = op->size / n;
    if (w->em != UINT32_MAX || (bytes == 4 && op->round & SIM_V_WIDE))
        return false;
    if (bytes == 4 && n == 4)
        load_u32_4(w, op, x);
    else if (bytes == 4)
        load_u32_2(w, op, x);
    else if (bytes == 8 && n == 2)
        load_u64_2(w, op, x);
    else
        return false;
    return true;
}
static inline bool store_all(struct sim_warp *w, const struct sim_op *op, const struct access *x)
{
    const u32 n = op->elems, bytes = op->size / n;
    if (w->em != UINT32_MAX || (bytes == 4 && op->round & SIM_V_WIDE))
        return false;
    if (bytes == 4 && n == 4)
        store_u32_4(w, op, x);
    else if (bytes == 4)
        store_u32_2(w, op, x);
    else if (bytes == 8 && n == 2)
        store_u64_2(w, op, x);
    else
        return false;
    return true;
}

/* Vectors: op->elems elements of op->size / op->elems bytes in slots d, b, c, e; op->round: enum
 * sim_vector. */
SIM_FN(LD_VEC)
{
    struct access x;
    if (!reach(w, op, &x))
        return NULL;
    if (load_all(w, op, &x))
        return op + 1;
    const u32 slot[4] = {op->d, op->b, op->c, op->e};
    const u32 n = op->elems, bytes = op->size / n;
    for (u32 k = 0; k < n; k++) {
        if (bytes == 4 && !(op->round & SIM_V_WIDE))
            load_element(w, &x, slot[k], k, 4, 0);
        else if (bytes == 8)
            load_element(w, &x, slot[k], k, 8, SIM_V_WIDE);
        else if (bytes == 2 && !(op->round))
            load_element(w, &x, slot[k], k, 2, 0);
        else
            load_element(w, &x, slot[k], k, bytes, op->round);
    }
    return op + 1;
}
SIM_FN(ST_VEC)
{
    struct access x;
    if (!reach(w, op, &x))
        return NULL;
    if (store_all(w, op, &x))
        return op + 1;
    const u32 slot[4] = {op->d, op->b, op->c, op->e};
    const u32 n = op->elems, bytes = op->size / n;
    FOR_LANES(i, w->em) {
        for (u32 k = 0; k < n; k++) {
            const u64 v = op->round & SIM_V_WIDE ? SLOT(u64, slot[k])[i] : SLOT(u32, slot[k])[i];
            memcpy((unsigned char *)(uintptr_t)x.at[i] + k * bytes, &v, bytes);
        }
    }
    return op + 1;
}

void SIM_NAMED(sim_fill_mem)(struct sim_build *b)
{
    SIM_ENTRY_ONE(LD_U8);
    SIM_ENTRY_ONE(LD_S8);
    SIM_ENTRY_ONE(LD_S8_H);
    SIM_ENTRY_ONE(LD_U16);
    SIM_ENTRY_ONE(LD_S16);
    SIM_ENTRY_ONE(LD_32);
    SIM_ENTRY_ONE(LD_U8_W);
    SIM_ENTRY_ONE(LD_S8_W);
    SIM_ENTRY_ONE(LD_U16_W);
    SIM_ENTRY_ONE(LD_S16_W);
    SIM_ENTRY_ONE(LD_U32_W);
    SIM_ENTRY_ONE(LD_S32_W);
    SIM_ENTRY_ONE(LD_64);
    SIM_ENTRY_ONE(ST_8);
    SIM_ENTRY_ONE(ST_16);
    SIM_ENTRY_ONE(ST_32);
    SIM_ENTRY_ONE(ST_8_W);
    SIM_ENTRY_ONE(ST_16_W);
    SIM_ENTRY_ONE(ST_32_W);
    SIM_ENTRY_ONE(ST_64);
    SIM_ENTRY_ONE(LD_VEC);
    SIM_ENTRY_ONE(ST_VEC);
}
