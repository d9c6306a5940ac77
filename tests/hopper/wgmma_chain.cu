/* o = p(q k^T) v in f16 with sums in f32, where p is what is left between -8 and 8: the sums of one product are, as they lie
 * in the registers, an operand of the next, as in attention. A warp loads k and v in a ring of two stages each; of two
 * warpgroups one multiplies while the other clips, by turns. The next q k^T runs beside p v. Heads of 64, 64 keys at a time.
 */
#include "hopper.cuh"

enum { STAGES = 2, BYTES = 64 * 64 * 2 };
/* one after the other: q (128 rows), k, v */
enum { K_AT = 2 * BYTES, V_AT = K_AT + STAGES * BYTES };
enum { K_FULL = 8, K_EMPTY = K_FULL + 8 * STAGES, V_FULL = K_EMPTY + 8 * STAGES, V_EMPTY = V_FULL + 8 * STAGES };

extern __shared__ __align__(1024) unsigned char memory[]; /* V_AT + STAGES * BYTES */

/* as CUTLASS waits */
__device__ static void wait(uint32_t bar, uint32_t phase)
{
    asm volatile("{\n\t.reg .pred P1;\n\tLAB_WAIT:\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1, %2;\n\t"
                 "@P1 bra DONE;\n\tbra LAB_WAIT;\n\tDONE:\n\t}" ::"r"(bar), "r"(phase), "r"(0x989680)
                 : "memory");
}

__device__ static bool elected()
{
    uint32_t is;
    asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.b32 %0, 1, 0, p;\n\t}" : "=r"(is));
    return is;
}

__device__ static void load(uint32_t to, const tensor_map *map, uint32_t row, uint32_t bar, uint64_t policy)
{
    EXPECT("expect", bar, BYTES);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%2, %3}], [%4], %5;" AT("load")::"r"(to), "l"(map), "r"(0), "r"(row), "r"(bar), "l"(policy)
                 : "memory");
}

__device__ static void times_k(float s[32], uint64_t q, uint64_t k)
{
    KEEP_32(FLOATS, s);
    WGMMA_FENCE();
#pragma unroll
    for (int i = 0; i < 4; i++)
        asm volatile("{\n\t.reg .pred sum;\n\tsetp.ne.b32 sum, %34, 0;\n\t"
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " LIST_32
                     ", %32, %33, sum, 1, 1, 0, 0;" AT("times_k") "\n\t}"
                     : REGS_32(FLOATS, s) : "l"(q + 2 * i), "l"(k + 2 * i), "r"((int)(i > 0)) : "memory");
    WGMMA_COMMIT();
}

__device__ static void times_v(float o[32], uint32_t p[16], uint64_t v)
{
    KEEP_32(FLOATS, o);
    asm volatile("" : REGS_16("+r", p)::"memory");
    WGMMA_FENCE();
#pragma unroll
    for (int i = 0; i < 4; i++)
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " LIST_32
                     ", {%32, %33, %34, %35}, %36, 1, 1, 1, 1;" AT("times_v")
                     : REGS_32(FLOATS, o)
                     : "r"(p[4 * i]), "r"(p[4 * i + 1]), "r"(p[4 * i + 2]), "r"(p[4 * i + 3]), "l"(v + 128 * i)
                     : "memory");
    WGMMA_COMMIT();
}

__device__ static void clip(uint32_t p[16], float s[32])
{
    KEEP_32(FLOATS, s);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        __half2 h = __floats2half2_rn(fminf(fmaxf(s[2 * i], -8), 8), fminf(fmaxf(s[2 * i + 1], -8), 8));
        p[i] = *(uint32_t *)&h;
    }
}

extern "C" __global__ void __launch_bounds__(288, 1) wgmma_chain(MAP q, MAP k, MAP v, float *o, uint32_t keys)
{
    __shared__ uint64_t bars[1 + 4 * STAGES];
    uint32_t t = threadIdx.x, bar = shared_address(bars), base = shared_address(memory), steps = keys / 64;
    uint32_t stage = 0, phase = 0;
    if (t == 0) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(&k) : "memory");
        MBAR_INIT("init_q", bar, 1);
#pragma unroll
        for (uint32_t i = 0; i < STAGES; i++) {
            MBAR_INIT("init_k_full", bar + K_FULL + 8 * i, 1);
            MBAR_INIT("init_k_empty", bar + K_EMPTY + 8 * i, 256);
            MBAR_INIT("init_v_full", bar + V_FULL + 8 * i, 1);
            MBAR_INIT("init_v_empty", bar + V_EMPTY + 8 * i, 256);
        }
        FENCE_INIT();
    }
    __syncthreads();
    if (t >= 256) {
        if (elected()) {
            EXPECT("expect_q", bar, 2 * BYTES);
            TMA_LOAD("load_q", base, &q, 0, blockIdx.x * 128, bar);
#pragma unroll 1
            for (uint32_t step = 0; step < steps; step++) {
                wait(bar + K_EMPTY + 8 * stage, phase ^ 1);
                load(base + K_AT + stage * BYTES, &k, step * 64, bar + K_FULL + 8 * stage, 0x14F0000000000000);
                wait(bar + V_EMPTY + 8 * stage, phase ^ 1);
                load(base + V_AT + stage * BYTES, &v, step * 64, bar + V_FULL + 8 * stage, 0x14F0000000000000);
                if (++stage == STAGES)
                    stage = 0, phase ^= 1;
            }
        }
        return;
    }
    uint32_t group = t / 128;
    uint64_t dq = descriptor(base + group * BYTES, 16, 1024, 128);
    float s[32], sum[32];
    uint32_t p[16];
#pragma unroll
    for (int i = 0; i < 32; i++)
        sum[i] = 0;
    if (group == 1)
        asm volatile("bar.arrive 1, 256;" AT("turn_0")::: "memory");
    wait(bar, 0);
    wait(bar + K_FULL, 0);
    times_k(s, dq, descriptor(base + K_AT, 16, 1024, 128));
    WGMMA_WAIT("first_wait", 0);
    ARRIVE("release_k", bar + K_EMPTY);
    clip(p, s);
#pragma unroll 1
    for (uint32_t step = 0; step < steps; step++) {
        uint32_t next = stage ^ 1, next_phase = phase ^ stage;
        bool more = step + 1 < steps;
        asm volatile("bar.sync %0, 256;" AT("my_turn")::"r"(1 + group) : "memory");
        if (more) {
            wait(bar + K_FULL + 8 * next, next_phase);
            times_k(s, dq, descriptor(base + K_AT + next * BYTES, 16, 1024, 128));
        }
        wait(bar + V_FULL + 8 * stage, phase);
        times_v(sum, p, descriptor(base + V_AT + stage * BYTES, 16, 1024, 128));
        if (more || group == 0)
            asm volatile("bar.arrive %0, 256;" AT("your_turn")::"r"(2 - group) : "memory");
        if (more) {
            WGMMA_WAIT("wait_k", 1);
            ARRIVE("release_k", bar + K_EMPTY + 8 * next);
        }
        WGMMA_WAIT("wait_v", 0);
        ARRIVE("release_v", bar + V_EMPTY + 8 * stage);
        if (more)
            clip(p, s);
        stage = next, phase = next_phase;
    }
    o += (blockIdx.x * 128 + group * 64 + t % 128 / 32 * 16 + t % 32 / 4) * 64 + t % 4 * 2;
#pragma unroll
    for (int i = 0; i < 32; i += 2)
        *(float2 *)&o[i % 4 / 2 * 8 * 64 + i / 4 * 8] = make_float2(sum[i], sum[i + 1]);
}
