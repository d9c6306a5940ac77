/* Blocks of threads, run by a worker. Private to lib/sim. */
#ifndef KAIO_SIM_BLOCK_H
#define KAIO_SIM_BLOCK_H

#include "sim/sim.h"

/* What a worker runs together: a block, or the blocks of a cluster; the first one stands for
 * all. */

/* Those of that turn, not begun; NULL when the host has no memory. */
struct sim_block *sim_unit_new(struct sim_worker *k, uint64_t turn);
void sim_unit_free(struct sim_block *b);
/* It is done: the worker may use it again. */
void sim_unit_retire(struct sim_block *b);
/* Gives every warp that can run its slice, up to so many times: SIM_DONE, SIM_FAULT (b->fault) or
 * SIM_YIELD. */
enum sim_stop sim_unit_run(struct sim_block *b, unsigned rounds);
/* Thread-instructions executed. */
uint64_t sim_unit_count(const struct sim_block *b);
/* One of the n blocks in the queue has had its turn: is it sure that they will spin for ever
 * (stuck.c)? */
bool sim_stuck(struct sim_watch *w, const struct sim_launch *l, const struct sim_block *queue,
               uint32_t n);
/* The unit's threads all wait, and it has been given time now and then: is it sure that this
 * changes nothing? Nothing but the unit itself is looked at. */
bool sim_unit_stuck(struct sim_block *b);
/* Does every thread of it wait, so that none goes round in a loop? */
bool sim_unit_waits(const struct sim_block *b);
/* A single block with all it has; b may be NULL. */
void sim_block_free(struct sim_block *b);
/* Does the simulator have this special register as a slot (clocks are instructions)? */
bool sim_special_known(enum ptx_sreg reg);

#endif
