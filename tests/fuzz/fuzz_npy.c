/* Any bytes as an npy file, and as a safetensors file. */
#include <config.h>

#include "data/npy.h"
#include "data/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct loaded l;
    if (npy_read(a, io_memory(a, "fuzz.npy", data, size), &l, d) ||
        safetensors_read(a, io_memory(a, "fuzz.safetensors", data, size), "fuzz.safetensors#x", "x",
                         &l, d)) {
        struct buf text = buf_in(a);
        loaded_print(&l, &text);
        for (int t = 0; t < DT_COUNT; t++) {
            struct buffer b;
            if (loaded_as(a, &l, (enum dtype)t, &b))
                buffer_print_summary(&b, &text);
        }
    }
    arena_free(a);
    return 0;
}
