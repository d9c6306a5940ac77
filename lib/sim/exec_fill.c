/* The whole table of one build. */
#include <config.h>

#include "sim/exec.h"

#define SIM_TEXT_(x) #x
#define SIM_TEXT(x)  SIM_TEXT_(x)

void SIM_NAMED(sim_exec_fill)(struct sim_build *b)
{
    b->name = SIM_TEXT(SIM_BUILD);
    SIM_NAMED(sim_fill_int)(b);
    SIM_NAMED(sim_fill_float)(b);
    SIM_NAMED(sim_fill_half)(b);
    SIM_NAMED(sim_fill_cvt)(b);
    SIM_NAMED(sim_fill_control)(b);
    SIM_NAMED(sim_fill_warp)(b);
    SIM_NAMED(sim_fill_mem)(b);
    SIM_NAMED(sim_fill_matrix)(b);
    SIM_NAMED(sim_fill_mma)(b);
    SIM_NAMED(sim_fill_wgmma)(b);
    SIM_NAMED(sim_fill_atom)(b);
    sim_fill_once(b);
    SIM_NAMED(sim_fill_check)(b);
}
