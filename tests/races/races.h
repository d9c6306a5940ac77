// What the kernels here have in common. BROKEN makes the wrong one of each pair.
#include <cstdint>

#define BAR_SYNC(id, n)   asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(n) : "memory")
#define BAR_ARRIVE(id, n) asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(n) : "memory")

#if __CUDA_ARCH__ >= 900
#define CLUSTER_SYNC() asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory")
#define FENCE_INIT()   asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")

static __device__ __forceinline__ unsigned in_shared(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void mbarrier_init(uint64_t *b, unsigned n)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(in_shared(b)), "r"(n) : "memory");
}

static __device__ __forceinline__ void mbarrier_expect(uint64_t *b, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(in_shared(b)), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void mbarrier_arrive(uint64_t *b)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(in_shared(b)) : "memory");
}

static __device__ __forceinline__ void mbarrier_wait(uint64_t *b, unsigned parity)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(done)
                     : "r"(in_shared(b)), "r"(parity)
                     : "memory");
}

static __device__ __forceinline__ void bulk_load(void *to, const void *from, unsigned bytes,
                                                 uint64_t *b)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(in_shared(to)),
        "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(in_shared(b))
        : "memory");
}

static __device__ __forceinline__ void bulk_store(void *to, const void *from, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     __cvta_generic_to_global(to)),
                 "r"(in_shared(from)), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ unsigned cluster_rank()
{
    unsigned r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

static __device__ __forceinline__ unsigned remote_load(const unsigned *p, unsigned rank)
{
    unsigned at, v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(in_shared(p)), "r"(rank));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
    return v;
}

static __device__ __forceinline__ void remote_store(unsigned *p, unsigned rank, unsigned v)
{
    unsigned at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(in_shared(p)), "r"(rank));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}

static __device__ __forceinline__ void remote_add(unsigned *p, unsigned rank, unsigned v)
{
    unsigned at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(in_shared(p)), "r"(rank));
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" ::"r"(at), "r"(v)
                 : "memory");
}
#endif
