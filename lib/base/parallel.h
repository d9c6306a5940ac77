/* Independent pieces of one range, spread over the machine's cores. */
#ifndef KAIO_BASE_PARALLEL_H
#define KAIO_BASE_PARALLEL_H

#include <stdint.h>

/* Calls work(ctx, begin, end) for pieces that cover 0 .. n once, each begin a multiple of grain,
 * possibly at the same time. A range of few grains is done in one call, by the caller. Threads end
 * before it returns. */
void parallel_for(uint64_t n, uint64_t grain, void (*work)(void *ctx, uint64_t begin, uint64_t end),
                  void *ctx);

#endif
