/* Reductions by bulk copies: each block adds its row to y, folds it into the least of all rows in z, and sends it to its
 * neighbour in the cluster, which adds it to its own (w).
 */
#include "hopper.cuh"

enum { COLS = 128 };

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(COLS)
    bulk_reduce(const int32_t *x, float *y, int32_t *z, int32_t *w)
{
    __shared__ alignas(128) float as_float[COLS];
    __shared__ alignas(128) int32_t row[COLS], sum[COLS];
    __shared__ uint64_t bar;
    uint32_t t = threadIdx.x, rank, full = shared_address(&bar);
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (t == 0) {
        MBAR_INIT("init", full, 1);
        FENCE_INIT();
        EXPECT("expect", full, COLS * 4);
    }
    int32_t v = x[blockIdx.x * COLS + t];
    asm volatile("st.shared.f32 [%0], %1;" AT("fill_float")::"r"(shared_address(as_float + t)), "f"((float)v) : "memory");
    asm volatile("st.shared.s32 [%0], %1;" AT("fill_row")::"r"(shared_address(row + t)), "r"(v) : "memory");
    asm volatile("st.shared.s32 [%0], %1;" AT("fill_sum")::"r"(shared_address(sum + t)), "r"(v) : "memory");
    asm volatile("fence.proxy.async.shared::cluster;" AT("fence_fill")::: "memory");
    CLUSTER_SYNC("begin");
    if (t == 0) {
        uint32_t to, there;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(sum)), "r"(rank ^ 1));
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(full), "r"(rank ^ 1));
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s32 [%0], [%1], %2, "
                     "[%3];" AT("send")::"r"(to), "r"(shared_address(row)), "r"(COLS * 4), "r"(there)
                     : "memory");
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" AT("add")::"l"(y),
                     "r"(shared_address(as_float)), "r"(COLS * 4)
                     : "memory");
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%0], [%1], %2;" AT("min")::"l"(z),
                     "r"(shared_address(row)), "r"(COLS * 4)
                     : "memory");
        BULK_COMMIT("commit");
    }
    WAIT_CLUSTER("full_wait", full, 0);
    asm volatile("ld.shared.s32 %0, [%1];" AT("read") : "=r"(v) : "r"(shared_address(&sum[t])) : "memory");
    w[blockIdx.x * COLS + t] = v;
    if (t == 0)
        BULK_WAIT("wait", 0);
    CLUSTER_SYNC("end");
}
