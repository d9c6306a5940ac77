/* Philox4x32-10, a counter-based random generator: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as
 * easy as 1, 2, 3", SC 2011. The same function of (counter, key) on every machine. */
#ifndef KAIO_DATA_PHILOX_H
#define KAIO_DATA_PHILOX_H

#include <stdint.h>

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
