// settings: O3.75 fast.90a line.80
// Attention with a causal mask and grouped heads: keys and values by tiles in shared memory, a running softmax, a query for
// each thread.
enum { D = 32, TILE = 16 };

extern "C" __global__ void __launch_bounds__(64) attention(const float *q, const float *k, const float *v, float *o, int length, int groups,
                                                           float scale)
{
    __shared__ float ks[TILE][D], vs[TILE][D];
    int head = blockIdx.y, i = blockIdx.x * 64 + threadIdx.x, kv = head / groups * length * D;
    float query[D], acc[D], most = -1e30f, sum = 0;
    for (int d = 0; d < D; d++) {
        query[d] = i < length ? q[(head * length + i) * D + d] * scale : 0;
        acc[d] = 0;
    }
    int last = min((int)(blockIdx.x + 1) * 64, length);
    for (int at = 0; at < last; at += TILE) {
        __syncthreads();
        for (int e = threadIdx.x; e < TILE * D; e += 64) {
            bool in = at + e / D < length;
            ks[e / D][e % D] = in ? k[kv + at * D + e] : 0;
            vs[e / D][e % D] = in ? v[kv + at * D + e] : 0;
        }
        __syncthreads();
        float s[TILE], now = most;
#pragma unroll
        for (int j = 0; j < TILE; j++) {
            float dot = 0;
#pragma unroll
            for (int d = 0; d < D; d++)
                dot += query[d] * ks[j][d];
            s[j] = at + j <= i ? dot : -1e30f;
            now = fmaxf(now, s[j]);
        }
        float shrink = __expf(most - now);
        sum *= shrink;
        for (int d = 0; d < D; d++)
            acc[d] *= shrink;
#pragma unroll
        for (int j = 0; j < TILE; j++) {
            float p = __expf(s[j] - now);
            sum += p;
#pragma unroll
            for (int d = 0; d < D; d++)
                acc[d] += p * vs[j][d];
        }
        most = now;
    }
    if (i < length)
        for (int d = 0; d < D; d++)
            o[(head * length + i) * D + d] = acc[d] / sum;
}
