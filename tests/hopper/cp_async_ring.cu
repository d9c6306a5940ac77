/* cp.async into a ring, announced by cp.async.mbarrier.arrive: .noinc, where the arrival is one of those that the barrier
 * counts (y), and without, where it is one more and each thread arrives beside it (z).
 */
#include "hopper.cuh"

enum { TILE = 256, STAGES = 3, HALF = 64 };

template <bool NOINC> __device__ static void ring(const float *x, float *y, uint32_t tiles)
{
    __shared__ alignas(128) float in[STAGES][TILE];
    __shared__ uint64_t bars[2 * STAGES];
    uint32_t t = threadIdx.x, full = shared_address(bars), empty = full + 8 * STAGES, stage = 0, phase = 0;
    if (t == 0) {
#pragma unroll
        for (uint32_t i = 0; i < STAGES; i++) {
            MBAR_INIT("init_full", full + 8 * i, HALF);
            MBAR_INIT("init_empty", empty + 8 * i, HALF);
        }
    }
    __syncthreads();
    if (t < HALF) {
#pragma unroll 1
        for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            WAIT("empty_wait", empty + 8 * stage, phase ^ 1);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" AT("copy")::"r"(shared_address(&in[stage][t * 4])),
                         "l"(x + tile * TILE + t * 4)
                         : "memory");
            if (NOINC) {
                asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" AT("copied_noinc")::"r"(full + 8 * stage)
                             : "memory");
            } else {
                asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" AT("copied")::"r"(full + 8 * stage) : "memory");
                ARRIVE("issued", full + 8 * stage);
            }
            if (++stage == STAGES)
                stage = 0, phase ^= 1;
        }
    } else {
        t -= HALF;
#pragma unroll 1
        for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            WAIT("full_wait", full + 8 * stage, phase);
#pragma unroll
            for (uint32_t i = 0; i < TILE; i += HALF) {
                float v;
                asm volatile("ld.shared.f32 %0, [%1];" AT("read")
                             : "=f"(v) : "r"(shared_address(&in[stage][(i + t + 32) % TILE])) : "memory");
                y[tile * TILE + i + t] = v;
            }
            ARRIVE("release", empty + 8 * stage);
            if (++stage == STAGES)
                stage = 0, phase ^= 1;
        }
    }
}

extern "C" __global__ void __launch_bounds__(2 * HALF) ring_noinc(const float *x, float *y, uint32_t tiles)
{
    ring<true>(x, y, tiles);
}

extern "C" __global__ void __launch_bounds__(2 * HALF) ring_inc(const float *x, float *y, uint32_t tiles)
{
    ring<false>(x, y, tiles);
}
