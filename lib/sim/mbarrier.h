/* mbarrier objects: 64 bits of shared memory that count arrivals and bytes (PTX ISA, "mbarrier"). Private to lib/sim.
 *
 *     bits  0..19   arrivals that the phase still waits for
 *     bits 20..39   arrivals of a phase
 *     bits 40..60   bytes that the phase still waits for, two's complement
 *     bit  62       the phase's parity
 *     bit  63       set: this is an mbarrier
 *
 * A phase is complete when both counts are 0; the next begins at once. (The hardware's layout is not published; that
 * of a state that arrive returns is the same here.)
 */
#ifndef KAIO_SIM_MBARRIER_H
#define KAIO_SIM_MBARRIER_H

#include "sim/sim.h"

enum { SIM_MBARRIER_MOST = (1 << 20) - 1 }; /* arrivals, bytes */

enum sim_mbar_error {
    SIM_MBAR_FINE,
    SIM_MBAR_NONE,  /* there is no mbarrier */
    SIM_MBAR_COUNT, /* more arrivals than the phase waits for */
    SIM_MBAR_BYTES, /* more bytes than can be counted */
};
/* Arrivals and bytes at the object at an offset of a block's shared memory; phases that complete wake those that wait. */
enum sim_mbar_error sim_mbar_arrive(struct sim_block *b, uint32_t offset, uint32_t count,
                                    uint64_t *state);
enum sim_mbar_error sim_mbar_expect(struct sim_block *b, uint32_t offset, uint32_t bytes);
enum sim_mbar_error sim_mbar_complete(struct sim_block *b, uint32_t offset, uint32_t bytes);
/* Is the phase of that parity complete: is the one that goes on another? */
enum sim_mbar_error sim_mbar_test(const struct sim_block *b, uint32_t offset, unsigned parity,
                                  bool *complete);

#endif
