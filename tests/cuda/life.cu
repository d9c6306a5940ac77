// settings: O3.80 G.90a
// Conway's game on a torus: a byte a cell, and 32 cells a word by logic.
extern "C" __global__ void life_bytes(const unsigned char *x, unsigned char *y, int rows, int cols)
{
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 4 + threadIdx.y, n = 0;
    if (r >= rows || c >= cols)
        return;
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++)
            if (i || j)
                n += x[(r + i + rows) % rows * cols + (c + j + cols) % cols];
    y[r * cols + c] = n == 3 || (n == 2 && x[r * cols + c]);
}

static __device__ void add(unsigned &ones, unsigned &twos, unsigned &fours, unsigned v)
{
    unsigned carry = ones & v;
    ones ^= v;
    fours |= twos & carry;
    twos ^= carry;
}

// a row is a word for each thread of a warp
extern "C" __global__ void life_words(const unsigned *x, unsigned *y, int rows, int steps)
{
    __shared__ unsigned board[2][16][32];
    int r = threadIdx.y, c = threadIdx.x;
    board[0][r][c] = x[r * 32 + c];
    __syncthreads();
    for (int s = 0; s < steps; s++) {
        unsigned ones = 0, twos = 0, fours = 0, own = 0;
        for (int i = -1; i <= 1; i++) {
            unsigned v = board[s & 1][(r + i + rows) % rows][c];
            unsigned left = __shfl_sync(~0u, v, c - 1 & 31), right = __shfl_sync(~0u, v, c + 1 & 31);
            add(ones, twos, fours, __funnelshift_l(left, v, 1));
            add(ones, twos, fours, __funnelshift_r(v, right, 1));
            if (i)
                add(ones, twos, fours, v);
            else
                own = v;
        }
        board[~s & 1][r][c] = twos & ~fours & (ones | own);
        __syncthreads();
    }
    y[r * 32 + c] = board[steps & 1][r][c];
}
