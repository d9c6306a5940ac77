/* One tensor of a safetensors file (https://github.com/huggingface/safetensors, "Format"): eight bytes with the header's
 * length, a JSON object that maps names to {dtype, shape, data_offsets}, the data.
 *
 * Reading is from memory and safe on any bytes. */
#ifndef KAIO_DATA_SAFETENSORS_H
#define KAIO_DATA_SAFETENSORS_H

#include "data/load.h"

/* file is for messages; tensor is the name looked for. out points into bytes. */
bool safetensors_parse(struct arena *a, const void *bytes, size_t n, const char *file,
                       const char *tensor, struct loaded *out, struct diags *d);

#endif
