/* Hopper's instructions as macros. Each leaves a comment "// @NAME" on its line of the PTX, by which the broken twins
 * in broken/ find what they change, and say where it is to be reported.
 */
#pragma once
#include <cuda_fp16.h>
#include <stdint.h>

#define AT(name) " // @" name

/* CUtensorMap, which is opaque anyway. */
struct alignas(64) tensor_map {
    char opaque[128];
};
#define MAP const __grid_constant__ tensor_map

__device__ static inline uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

#define MBAR_INIT(name, bar, count) \
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" AT(name)::"r"(bar), "r"(count) : "memory")
#define MBAR_INVAL(name, bar) \
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" AT(name)::"r"(bar) : "memory")
#define FENCE_INIT() asm volatile("fence.mbarrier_init.release.cluster;" AT("fence_init")::: "memory")
#define FENCE_ASYNC(name) asm volatile("fence.proxy.async.shared::cta;" AT(name)::: "memory")
#define EXPECT(name, bar, bytes)                                                              \
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" AT(name)::"r"(bar), \
                 "r"(bytes)                                                                   \
                 : "memory")
#define ARRIVE(name, bar) \
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" AT(name)::"r"(bar) : "memory")
/* At the mbarrier of the same place in the block of that rank. */
#define ARRIVE_AT(name, bar, rank)                                                  \
    asm volatile("{\n\t.reg .b32 there;\n\t"                                        \
                 "mapa.shared::cluster.u32 there, %0, %1;" AT(name "_mapa") "\n\t"  \
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];"  \
                 AT(name) "\n\t}" ::"r"(bar), "r"(rank)                             \
                 : "memory")
#define WAIT(name, bar, parity)                                                                  \
    asm volatile("{\n\t.reg .pred done;\nagain:\n\t"                                             \
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;" AT(name) "\n\t"      \
                 "@!done bra again;" AT(name "_again") "\n\t}" ::"r"(bar), "r"(parity)           \
                 : "memory")
#define WAIT_CLUSTER(name, bar, parity)                                                                    \
    asm volatile("{\n\t.reg .pred done;\nagain:\n\t"                                                       \
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;" AT(name) "\n\t" \
                 "@!done bra again;" AT(name "_again") "\n\t}" ::"r"(bar), "r"(parity)                     \
                 : "memory")

#define CLUSTER_ARRIVE(name) asm volatile("barrier.cluster.arrive.release.aligned;" AT(name)::: "memory")
#define CLUSTER_WAIT(name) asm volatile("barrier.cluster.wait.acquire.aligned;" AT(name)::: "memory")
#define CLUSTER_SYNC(name)               \
    do {                                 \
        CLUSTER_ARRIVE(name "_arrive");  \
        CLUSTER_WAIT(name "_wait");      \
    } while (0)
#define NAMED_SYNC(name, id, threads) \
    asm volatile("bar.sync %0, %1;" AT(name)::"r"(id), "r"(threads) : "memory")

#define BULK_LOAD(name, to, from, bytes, bar)                                                        \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, " \
                 "[%3];" AT(name)::"r"(to), "l"(from), "r"(bytes), "r"(bar)                          \
                 : "memory")
#define BULK_STORE(name, to, from, bytes)                                                    \
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" AT(name)::"l"(to), \
                 "r"(from), "r"(bytes)                                                       \
                 : "memory")
#define TMA_LOAD(name, to, map, x, y, bar)                                                         \
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes " \
                 "[%0], [%1, {%2, %3}], [%4];" AT(name)::"r"(to), "l"(map), "r"(x), "r"(y), "r"(bar) \
                 : "memory")
#define TMA_MULTICAST(name, to, map, x, y, bar, mask)                                              \
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" \
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" AT(name)::"r"(to), "l"(map), \
                 "r"(x), "r"(y), "r"(bar), "h"((uint16_t)(mask))                                   \
                 : "memory")
#define TMA_STORE(name, map, x, y, from)                                                           \
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" AT( \
                     name)::"l"(map), "r"(x), "r"(y), "r"(from)                                    \
                 : "memory")
#define BULK_COMMIT(name) asm volatile("cp.async.bulk.commit_group;" AT(name)::: "memory")
#define BULK_WAIT_READ(name, n) asm volatile("cp.async.bulk.wait_group.read %0;" AT(name)::"n"(n) : "memory")
#define BULK_WAIT(name, n) asm volatile("cp.async.bulk.wait_group %0;" AT(name)::"n"(n) : "memory")

#define REGISTERS_LESS(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" AT("less")::"n"(n))
#define REGISTERS_MORE(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" AT("more")::"n"(n))
#define WGMMA_FENCE() asm volatile("wgmma.fence.sync.aligned;" AT("wgmma_fence")::: "memory")
/* The compiler knows nothing of wgmma.fence: what the registers get is to be in them before it. */
#define KEEP_16(c, d) asm volatile("" : REGS_16(c, d)::"memory")
#define KEEP_32(c, d) asm volatile("" : REGS_32(c, d)::"memory")
#define WGMMA_COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" AT("wgmma_commit")::: "memory")
#define WGMMA_WAIT(name, n) asm volatile("wgmma.wait_group.sync.aligned %0;" AT(name)::"n"(n) : "memory")

/* A matrix in shared memory, for wgmma. Spans of a swizzle: 0, 32, 64, 128 bytes. */
__device__ static inline uint64_t descriptor(uint32_t address, uint32_t leading, uint32_t stride, int swizzle)
{
    uint64_t code = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    return (address & 0x3ffff) >> 4 | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 | code << 62;
}

/* N registers of a macro's argument, as operands */
#define REGS_16(c, d) c(d[0]), c(d[1]), c(d[2]), c(d[3]), c(d[4]), c(d[5]), c(d[6]), c(d[7]), \
        c(d[8]), c(d[9]), c(d[10]), c(d[11]), c(d[12]), c(d[13]), c(d[14]), c(d[15])
#define REGS_32(c, d) REGS_16(c, d), c(d[16]), c(d[17]), c(d[18]), c(d[19]), c(d[20]), c(d[21]), c(d[22]), c(d[23]), \
        c(d[24]), c(d[25]), c(d[26]), c(d[27]), c(d[28]), c(d[29]), c(d[30]), c(d[31])
#define FLOATS(x) "+f"(x)
#define INTS(x) "+r"(x)
#define LIST_16 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define LIST_32 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
