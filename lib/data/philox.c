#include <config.h>

#include "data/philox.h"

#include <math.h>

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)PHILOX_M0 * c0, p1 = (uint64_t)PHILOX_M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void philox_words(uint64_t seed, uint64_t counter, uint64_t stream, uint32_t out[4])
{
    const uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream,
                           (uint32_t)(stream >> 32)};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    philox4x32(c, key, out);
}

float philox_uniform(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

double philox_normal(uint32_t a, uint32_t b)
{
    const float u = fmaf((float)a, 0x1p-32f, 0x1p-33f);
    const uint32_t q = (b + 0x20000000u) >> 30; /* the nearest quadrant */
    const float h = (float)(int32_t)(b - (q << 30)) * 0x1p-30f;
    const long double angle = (long double)h * 1.57079632679489661923132169163975144L;
    const long double c = q & 1 ? -sinl(angle) : cosl(angle);
    return (double)(sqrtl(-2 * logl((long double)u)) * (q & 2 ? -c : c));
}
