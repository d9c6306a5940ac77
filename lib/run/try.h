/* For functions that end with the first device_status that is not DEVICE_OK. */
#ifndef KAIO_RUN_TRY_H
#define KAIO_RUN_TRY_H

#include "run/device.h"

#define TRY(call)                            \
    do {                                     \
        enum device_status status_ = (call); \
        if (status_ != DEVICE_OK)            \
            return status_;                  \
    } while (0)

#endif
