// settings: O3.75 O0.80 G.90a
// Memory from the device's heap: lists that grow, objects with destructors, a table that a block makes for itself; and memcpy,
// memset and their like, which PTX has as loops.
#include <string.h>

struct item {
    int value;
    item *next;
};

extern "C" __global__ void lists(const int *x, int *y, int each)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    item *head = nullptr;
    for (int i = 0; i < each; i++) {
        item *p = (item *)malloc(sizeof(item));
        p->value = x[t * each + i];
        item **at = &head;
        while (*at && (*at)->value < p->value)
            at = &(*at)->next;
        p->next = *at;
        *at = p;
    }
    for (int i = 0; head; i++) {
        item *next = head->next;
        y[t * each + i] = head->value;
        free(head);
        head = next;
    }
}

struct tally {
    int *slot, n;
    __device__ tally(int n) : slot(new int[n]), n(n) { memset(slot, 0, n * sizeof *slot); }
    __device__ ~tally() { delete[] slot; }
    __device__ int most() const
    {
        int k = 0;
        for (int i = 1; i < n; i++)
            k = slot[i] > slot[k] ? i : k;
        return k;
    }
};

extern "C" __global__ void modes(const int *x, int *y, int each)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    tally c(7);
    for (int i = 0; i < each; i++)
        c.slot[(unsigned)x[t * each + i] % 7]++;
    y[t] = c.most();
}

extern "C" __global__ void shared_table(const int *x, int *y)
{
    __shared__ int *table;
    if (threadIdx.x == 0)
        table = (int *)malloc(2 * blockDim.x * sizeof *table);
    __syncthreads();
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    table[threadIdx.x] = x[t];
    memcpy(&table[blockDim.x + threadIdx.x], &x[t], sizeof *x);
    __syncthreads();
    y[t] = table[(threadIdx.x + 1) % blockDim.x] + 2 * table[2 * blockDim.x - 1 - threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0)
        free(table);
}
