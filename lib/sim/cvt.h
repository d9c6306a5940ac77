/* What decode_cvt.c tells exec_cvt.c in a record's flags, besides the modifiers. Private to
 * lib/sim. */
#ifndef KAIO_SIM_CVT_H
#define KAIO_SIM_CVT_H

enum {
    SIM_CVT_FROM_SIGNED = 4,
    SIM_CVT_TO_SIGNED = 8,
};

#endif
