/* Each block adds up the rows of a matrix of its own size, all of them parts of x, as grouped products have operands: it makes
 * a tensor map of its own from the one that it was given, and uses that, so that what is behind its matrix arrives as
 * zeros. Warp 0 makes the map, warp 1 copies. The first half of the maps go through shared memory and
 * tensormap.cp_fenceproxy, the others are changed where they are used. */
#include "hopper.cuh"

#define REPLACE_ADDRESS(name, space, map, at) \
    asm volatile("tensormap.replace.tile.global_address." space ".b1024.b64 [%0], %1;" AT(name)::map, "l"(at) : "memory")
#define REPLACE_ROWS(name, space, map, n) \
    asm volatile("tensormap.replace.tile.global_dim." space ".b1024.b32 [%0], 1, %1;" AT(name)::map, "r"(n) : "memory")

extern "C" __global__ void __launch_bounds__(64)
    grouped(MAP x, const float *all, tensor_map *maps, float *y)
{
    __shared__ alignas(128) float tile[16][32];
    __shared__ alignas(128) tensor_map mine;
    __shared__ uint64_t full;
    uint32_t t = threadIdx.x, group = blockIdx.x, bar = shared_address(&full);
    uint32_t rows = 5 + 7 * group, first = 5 * group + 7 * group * (group - 1) / 2;
    bool direct = group >= gridDim.x / 2;
    tensor_map *map = maps + group;
    uint32_t *to = direct ? (uint32_t *)map : (uint32_t *)&mine;
    if (t == 0) {
        MBAR_INIT("init", bar, 1);
        FENCE_INIT();
    }
    if (t < 32) {
        to[t] = ((const uint32_t *)&x)[t];
        __syncwarp();
        if (direct) {
            if (t == 0) {
                REPLACE_ADDRESS("address_direct", "global", "l"(map), all + first * 32);
                REPLACE_ROWS("rows_direct", "global", "l"(map), rows);
            }
            __syncwarp();
            asm volatile("fence.proxy.tensormap::generic.release.gpu;" AT("release")::: "memory");
        } else {
            if (t == 0) {
                REPLACE_ADDRESS("address", "shared::cta", "r"(shared_address(&mine)), all + first * 32);
                REPLACE_ROWS("rows", "shared::cta", "r"(shared_address(&mine)), rows);
            }
            __syncwarp();
            asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
                         "[%0], [%1], 128;" AT("publish")::"l"(map),
                         "r"(shared_address(&mine))
                         : "memory");
        }
    }
    __syncthreads();
    if (t >= 32)
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" AT("acquire")::"l"(map) : "memory");
    float sum = 0;
    for (uint32_t row = 0, parity = 0; row < rows; row += 16, parity ^= 1) {
        if (t == 32) {
            EXPECT("expect", bar, (uint32_t)sizeof tile);
            TMA_LOAD("load", shared_address(tile), map, 0, row, bar);
        }
        WAIT("wait", bar, parity);
        if (t < 32)
            for (uint32_t i = 0; i < 16; i++)
                sum += tile[i][t];
        __syncthreads();
    }
    if (t < 32)
        y[group * 32 + t] = sum;
}
