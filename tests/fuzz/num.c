/* Numbers from the command line: whatever is read obeys its bounds and survives being printed. */
#include <config.h>

#include "base/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *s = (const char *)data;
    char text[32];
    double v, back;
    int64_t i;
    uint64_t u;
    if (num_int(s, size, -100, 100000, &i) == NUM_OK && (i < -100 || i > 100000))
        abort();
    if (num_uint(s, size, 1000, &u) == NUM_OK && u > 1000)
        abort();
    if (num_double(s, size, &v) == NUM_OK) {
        num_print(v, text);
        if (num_double(text, strlen(text), &back) != NUM_OK ||
            (back != v && !(isnan(back) && isnan(v))))
            abort();
    }
    return 0;
}
