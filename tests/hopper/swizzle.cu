/* Boxes of every swizzle: each is loaded by tensor copy, read where the swizzle puts its elements, written to a second box of
 * the next swizzle, and stored from there by tensor copy. In a box whose rows are SPAN bytes, the 16-byte chunk c of row r
 * lies at chunk c ^ (r * SPAN / 128) % (SPAN / 16) of the row.
 */
#include "hopper.cuh"

enum { ROWS = 16 };

template <int SPAN> __device__ static uint32_t at(uint32_t row, uint32_t word)
{
    uint32_t chunk = (word / 4) ^ (row * SPAN / 128) % (SPAN / 16);
    return row * (SPAN / 4) + chunk * 4 + word % 4;
}

/* in and out: boxes of SPAN bytes by ROWS rows; the row of threads is the row of the box */
template <int SPAN, int TO>
__device__ static void pass(uint32_t *in, uint32_t *out, const tensor_map *from, const tensor_map *to, uint32_t bar)
{
    uint32_t t = threadIdx.x, row = blockIdx.x * ROWS;
    if (t == 0) {
        EXPECT("expect", bar, SPAN * ROWS);
        TMA_LOAD("load", shared_address(in), from, 0, row, bar);
    }
    /* one thread waits for all */
    if (t == 0)
        WAIT("full_wait", bar, 0);
    asm volatile("bar.sync 0;" AT("loaded")::: "memory");
    for (uint32_t i = t; i < SPAN / 4 * ROWS; i += 64) {
        uint32_t r = i / (SPAN / 4), w = i % (SPAN / 4);
        /* the same words in a box of rows of TO bytes: a row here is several or a part of one there */
        uint32_t there = TO >= SPAN ? at<TO>(r, w) : (w / (TO / 4)) * (ROWS * TO / 4) + at<TO>(r, w % (TO / 4));
        uint32_t v;
        asm volatile("ld.shared.b32 %0, [%1];" AT("read") : "=r"(v) : "r"(shared_address(in + at<SPAN>(r, w))) : "memory");
        asm volatile("st.shared.b32 [%0], %1;" AT("write")::"r"(shared_address(out + there)), "r"(v + 1) : "memory");
    }
    FENCE_ASYNC("fence_store");
    asm volatile("bar.sync 0;" AT("written")::: "memory");
    if (t == 0) {
        if (TO >= SPAN)
            TMA_STORE("store", to, 0, row, shared_address(out));
        else
            for (int k = 0; k < SPAN / TO; k++)
                TMA_STORE("store", to, k * (TO / 4), row, shared_address(out) + (uint32_t)k * ROWS * TO);
        BULK_COMMIT("commit");
        BULK_WAIT_READ("wait_read", 0);
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(64)
    swizzle(MAP x128, MAP x64, MAP x32, MAP y64, MAP y32, MAP y128)
{
    __shared__ alignas(1024) uint32_t in[ROWS * 32];
    __shared__ alignas(1024) uint32_t out[ROWS * 32];
    __shared__ uint64_t full[3];
    uint32_t bar = shared_address(full);
    if (threadIdx.x == 0) {
        for (uint32_t i = 0; i < 3; i++)
            MBAR_INIT("init", bar + 8 * i, 1);
        FENCE_INIT();
    }
    __syncthreads();
    pass<128, 64>(in, out, &x128, &y64, bar);
    pass<64, 32>(in, out, &x64, &y32, bar + 8);
    pass<32, 128>(in, out, &x32, &y128, bar + 16);
}
