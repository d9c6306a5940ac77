/* Devices that run forms. */
#ifndef KAIO_TESTS_OPCODES_RUN_H
#define KAIO_TESTS_OPCODES_RUN_H

#include "opcodes.h"
#include "run/device.h"

enum opc_how {
    OPC_PLAIN,
    OPC_BASELINE, /* the simulator's code for processors without AVX2 */
    OPC_PARTIAL,  /* the odd threads and the even ones apart, so that warps are never whole */
    OPC_HOWS
};
extern const char *const opc_how_text[OPC_HOWS];

struct opc_machine {
    const struct device_ops *ops;
    struct device *dev;
    struct arena *arena;
    uint64_t in, out;
    enum opc_how how;
};

/* False: there is no such device; close it all the same. */
bool opc_open(struct opc_machine *m, const struct device_ops *ops, enum opc_how how);
void opc_close(struct opc_machine *m);

enum { OPC_MODULE = 64 }; /* forms to a module */

/* Runs n forms, at most OPC_MODULE: got[i] has OPC_TUPLES times opc_stride(nres) words, or is NULL
 * where the device can't, after a note why. */
void opc_run(struct opc_machine *m, struct arena *a, const struct opc_form *const *f, size_t n,
             uint64_t **got);
size_t opc_result_bytes(const struct opc_form *f);

#endif
