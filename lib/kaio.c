#include <config.h>

#include "kaio.h"

const char *kaio_version(void)
{
    return PACKAGE_VERSION;
}
