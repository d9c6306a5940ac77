/* setmaxnreg: warps hand registers to each other. The simulator needs none, but who waits for some
 * that nobody releases waits for ever. */
#include <config.h>

#include "sim/wgmma.h"

enum { REGISTERS = 65536, MOST = 256, UNIT = 8 }; /* of a multiprocessor, a thread */

/* Entries with .maxnreg have that many; the compiler gives those that say how many blocks of how
 * many threads are to fit on a multiprocessor what each thread can have (ptxas 13.0). */
uint32_t sim_registers_at_entry(const struct ptx_func *f)
{
    const uint32_t *n = f->reqntid[0] ? f->reqntid : f->maxntid;
    const uint64_t threads = (uint64_t)n[0] * (n[1] ? n[1] : 1) * (n[2] ? n[2] : 1);
    uint64_t most = ((uint64_t)f->maxnreg + UNIT - 1) / UNIT * UNIT;
    if (!most && f->minnctapersm && threads)
        most = REGISTERS / (threads * f->minnctapersm) / UNIT * UNIT;
    return (uint32_t)(most > MOST ? MOST : most);
}

static void wake(struct sim_block *b)
{
    for (uint32_t i = 0; i < b->nwarp; i++)
        for (uint32_t g = 0; b->warp[i].started && g < b->warp[i].ngroup; g++)
            if (b->warp[i].group[g].waits == SIM_WAIT_REGISTERS)
                b->warp[i].group[g].waits = 0;
}

const struct sim_op *sim_set_registers(struct sim_warp *w, const struct sim_op *op)
{
    struct sim_block *b = w->block;
    const uint32_t n = (uint32_t)op->imm, have = w->registers;
    if (have && !op->more && n > have) {
        sim_fault_at(w, op, (uint32_t)__builtin_ctz(w->mask), SIM_F_REGISTERS);
        b->fault.others = have;
        return NULL;
    }
    if (have && op->more && n > have && (n - have) * SIM_LANES > b->spare_registers) {
        sim_count(w, op);
        sim_push(w, sim_pc(w, op), w->mask, SIM_WAIT_REGISTERS);
        return sim_next_group(w);
    }
    if (!sim_wgmma_agree(w, op, n, 0, false))
        return NULL;
    if (!have || (op->more && n < have)) /* the compiler ignores it then */
        return op + 1;
    if (op->more) {
        b->spare_registers -= (n - have) * SIM_LANES;
    } else {
        b->spare_registers += (have - n) * SIM_LANES;
        wake(b);
    }
    w->registers = n;
    return op + 1;
}
