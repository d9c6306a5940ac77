/* Blocks of threads, run by a worker. Private to lib/sim. */
#ifndef KAIO_SIM_BLOCK_H
#define KAIO_SIM_BLOCK_H

#include "sim/sim.h"

/* A block that has not begun; NULL when the host has no memory. */
struct sim_block *sim_block_new(struct sim_worker *k, uint64_t index);
void sim_block_free(struct sim_block *b);
/* Gives every warp that can run its slice, up to so many times: SIM_DONE, SIM_FAULT (b->fault) or SIM_YIELD. */
enum sim_stop sim_block_run(struct sim_block *b, unsigned rounds);
/* Does the simulator have this special register as a slot (clocks are instructions)? */
bool sim_special_known(enum ptx_sreg reg);

#endif
