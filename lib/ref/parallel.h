/* A loop over 0 .. n cut into chunks that threads take in turn. */
#ifndef KAIO_REF_PARALLEL_H
#define KAIO_REF_PARALLEL_H

#include <stdint.h>

/* Calls work(ctx, k, begin, end) once for every chunk k, in any order, on several threads (0: one
 * per core). Returns when all are done. */
void ref_parallel(unsigned threads, uint64_t n, uint64_t chunk,
                  void (*work)(void *ctx, uint64_t k, uint64_t begin, uint64_t end), void *ctx);

#endif
