/* Philox4x32-10, a counter-based random generator: J. Salmon, M. Moraes, R. Dror, D. Shaw,
 * "Parallel random numbers: as easy as 1, 2, 3", SC 2011. The same function of (counter, key) on
 * every machine. */
#ifndef KAIO_DATA_PHILOX_H
#define KAIO_DATA_PHILOX_H

#include <stdint.h>

#define PHILOX_ROUNDS 10
/* The multipliers of the two halves, and what is added to the key after each round: the golden
 * ratio, sqrt(3) - 1. */
#define PHILOX_M0 0xd2511f53u
#define PHILOX_M1 0xcd9e8d57u
#define PHILOX_W0 0x9e3779b9u
#define PHILOX_W1 0xbb67ae85u

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* The language's philox(seed, counter, stream): the seed is the key, counter and stream the low and
 * the high half of the counter, low words first. */
void philox_words(uint64_t seed, uint64_t counter, uint64_t stream, uint32_t out[4]);
/* uniform(seed, counter) of word 0: its upper 24 bits, in [0, 1). */
float philox_uniform(uint32_t word);
/* normal(seed, counter) of words 0 and 1, before rounding: sqrt(-2 log(u)) cos(2 pi t) with u and t
 * in f32 (normal_f32 in lib/lower/mathlib/f32.k computes it). */
double philox_normal(uint32_t a, uint32_t b);

#endif
