// settings: O3.80 O0.75
// AES-128 of one block for each thread: the box is made by inverses in GF(2^8), kept in shared memory and looked up bytewise;
// the state is an array of 16 bytes that PTX keeps in local memory.
static __device__ unsigned char twice(unsigned char v) { return v << 1 ^ (v & 128 ? 0x1b : 0); }

static __device__ unsigned char box_of(unsigned char v)
{
    // v^254 is the inverse
    unsigned char inverse = 1, power = v;
    for (int bit = 1; bit < 8; bit++) {
        unsigned char sum = 0;
        for (unsigned char a = power, b = power; b; b >>= 1, a = twice(a))
            sum ^= b & 1 ? a : 0;
        power = sum;
        sum = 0;
        for (unsigned char a = inverse, b = power; b; b >>= 1, a = twice(a))
            sum ^= b & 1 ? a : 0;
        inverse = sum;
    }
    unsigned r = inverse * 0x101u;
    return v ? (r ^ r >> 4 ^ r >> 5 ^ r >> 6 ^ r >> 7) & 255 ^ 0x63 : 0x63;
}

extern "C" __global__ void aes(const uint4 *x, const unsigned char *key, uint4 *y)
{
    __shared__ unsigned char box[256], keys[176];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        box[i] = box_of(i);
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned char round = 1;
        for (int i = 0; i < 176; i++) {
            if (i < 16) {
                keys[i] = key[i];
                continue;
            }
            unsigned char v = keys[i - 4];
            if (i % 16 < 4) {
                v = box[keys[i % 4 == 3 ? i - 7 : i - 3]] ^ (i % 16 == 0 ? round : 0);
                round = i % 16 == 0 ? twice(round) : round;
            }
            keys[i] = keys[i - 16] ^ v;
        }
    }
    __syncthreads();
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    union {
        uint4 words;
        unsigned char s[16];
    } u;
    u.words = x[t];
    for (int i = 0; i < 16; i++)
        u.s[i] ^= keys[i];
#pragma unroll 1
    for (int round = 1; round <= 10; round++) {
        unsigned char moved[16];
        for (int i = 0; i < 16; i++)
            moved[i] = box[u.s[(i + 4 * (i % 4)) % 16]];
        for (int c = 0; c < 4; c++) {
            unsigned char all = moved[4 * c] ^ moved[4 * c + 1] ^ moved[4 * c + 2] ^ moved[4 * c + 3];
            for (int r = 0; r < 4; r++) {
                unsigned char v = moved[4 * c + r];
                if (round < 10)
                    v ^= all ^ twice(v ^ moved[4 * c + (r + 1) % 4]);
                u.s[4 * c + r] = v ^ keys[16 * round + 4 * c + r];
            }
        }
    }
    y[t] = u.words;
}
