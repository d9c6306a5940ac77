/* A small generator of random numbers: the same sequence everywhere. */
#ifndef KAIO_TESTS_KERNELS_RANDOM_H
#define KAIO_TESTS_KERNELS_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

/* splitmix64: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA
 * 2014 */
static inline uint64_t random_bits(struct random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0 .. n-1 */
static inline unsigned random_below(struct random *r, unsigned n)
{
    return (unsigned)(((random_bits(r) >> 32) * n) >> 32);
}

static inline bool random_one_in(struct random *r, unsigned n)
{
    return random_below(r, n) == 0;
}

/* An independent sequence for each (seed, number). */
static inline struct random random_start(uint64_t seed, uint64_t number)
{
    struct random a = {seed}, b = {number ^ 0x5851f42d4c957f2du};
    struct random r = {random_bits(&a) ^ random_bits(&b)};
    random_bits(&r);
    return r;
}

#endif
