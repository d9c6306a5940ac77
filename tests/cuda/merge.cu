// settings: O3.80 O0.75
// Two sorted lists become one: each thread finds by bisection where its diagonal crosses the path, and merges from there.
static __device__ int crossing(const int *a, int na, const int *b, int nb, int diagonal)
{
    int lo = max(0, diagonal - nb), hi = min(diagonal, na);
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (a[mid] <= b[diagonal - 1 - mid])
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

extern "C" __global__ void merge_path(const int *a, int na, const int *b, int nb, int *c, int each)
{
    int diagonal = min((int)(blockIdx.x * blockDim.x + threadIdx.x) * each, na + nb);
    int i = crossing(a, na, b, nb, diagonal), j = diagonal - i;
    for (int k = diagonal; k < min(diagonal + each, na + nb); k++)
        c[k] = j >= nb || (i < na && a[i] <= b[j]) ? a[i++] : b[j++];
}

extern "C" __global__ void rank_sort(const int *x, int *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, rank = 0;
    if (i >= n)
        return;
    for (int k = 0; k < n; k++)
        rank += x[k] < x[i] || (x[k] == x[i] && k < i);
    y[rank] = x[i];
}
