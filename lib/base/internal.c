#include <config.h>

#include "base/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The path in the source tree, wherever that is built. */
static const char *in_tree(const char *file)
{
    const char *lib = strstr(file, "lib/");
    return lib ? lib : file;
}

void internal_error(const char *file, int line, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fflush(stdout);
    fprintf(stderr, "kaio: internal error: %s:%d: %s\n", in_tree(file), line, text);
    abort();
}
