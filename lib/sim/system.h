/* Functions that the machine has and no module: vprintf and __assertfail, what printf() and
 * assert() become in CUDA C++ (CUDA C++ Programming Guide, "Formatted Output", "Assertion"), and
 * those of heap.h. Private to lib/sim.
 *
 * A call keeps its place in the copy of an entry (inline.h), with its arguments and results in
 * registers.
 */
#ifndef KAIO_SIM_SYSTEM_H
#define KAIO_SIM_SYSTEM_H

#include "sim/sim.h"

struct system_function {
    const char *name;
    enum sim_handler_id handler;
    uint32_t narg, nresult;
    bool wide[5]; /* which arguments have 64 bits; the others have 32 */
    bool wide_result;
};
/* NULL: there is none of that name. */
const struct system_function *system_function(const char *name);

/* Text of threads, in the order of the blocks; one list for a launch. Bytes beyond SIM_PRINT_MOST
 * are counted alone. */
enum { SIM_PRINT_MOST = 16 << 20 };
/* To device_options.print, and empties the list. */
void system_print(struct sim_launch *l, void (*print)(void *ctx, const char *text, size_t n),
                  void *ctx, struct diags *d);

/* d: the number of arguments; a: the format, b: where its arguments are. */
const struct sim_op *system_printf(struct sim_warp *w, const struct sim_op *op);
/* a: the condition, b: the file, c: the line, e: the function, of bytes imm a character */
const struct sim_op *system_assertfail(struct sim_warp *w, const struct sim_op *op);

#endif
