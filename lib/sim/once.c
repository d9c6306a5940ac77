/* The handlers that are compiled once, whatever the machine has: they go through memory and tables,
 * not through lanes. */
#include <config.h>

#include "sim/flight.h"
#include "sim/heap.h"
#include "sim/mbarrier.h"
#include "sim/system.h"
#include "sim/tensor.h"

void sim_fill_once(struct sim_build *b)
{
    static const struct {
        enum sim_handler_id id;
        sim_fn fn;
    } all[] = {
        /* cp.async */
        {SIM_H_COPY, sim_copy_issue},
        {SIM_H_COPY_COMMIT, sim_copy_commit},
        {SIM_H_COPY_WAIT, sim_copy_wait},
        /* in flight, and what is waited on for it */
        {SIM_H_BULK, sim_bulk_copy},
        {SIM_H_BULK_PREFETCH, sim_bulk_prefetch},
        {SIM_H_LINE, sim_line},
        {SIM_H_BULK_COMMIT, sim_bulk_commit},
        {SIM_H_BULK_WAIT, sim_bulk_wait},
        {SIM_H_ST_ASYNC, sim_st_async},
        {SIM_H_MBAR, sim_mbar_do},
        {SIM_H_MBAR_COPIES, sim_mbar_copies},
        {SIM_H_MBAR_WAIT, sim_mbar_wait},
        {SIM_H_TENSOR, sim_tensor_issue},
        {SIM_H_TENSOR_REPLACE, sim_tensor_replace},
        {SIM_H_TENSOR_PUBLISH, sim_tensor_publish},
        {SIM_H_TENSOR_FENCE, sim_tensor_fence},
        /* calls of the machine */
        {SIM_H_PRINTF, system_printf},
        {SIM_H_ASSERTFAIL, system_assertfail},
        {SIM_H_MALLOC, sim_heap_malloc},
        {SIM_H_FREE, sim_heap_give},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        b->h[all[i].id] = (struct sim_handler){all[i].fn, all[i].fn, NULL};
}
