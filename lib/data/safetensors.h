/* safetensors files (https://github.com/huggingface/safetensors, "Format"): eight bytes with the
 * header's length, a JSON object that maps names to {dtype, shape, data_offsets}, the data.
 *
 * Reading is safe on any bytes. What the format rules out is refused: names given twice, anything
 * but spaces behind the JSON, and tensors that overlap or leave bytes of the data to nobody. */
#ifndef KAIO_DATA_SAFETENSORS_H
#define KAIO_DATA_SAFETENSORS_H

#include "base/io.h"
#include "data/load.h"

struct safetensor {
    const char *name, *dtype; /* as the file has them */
    uint64_t dim[BUFFER_RANK], range[2];
    uint32_t rank, nrange;
};
struct safetensors {
    VEC(struct safetensor)
    v;              /* as they lie in the file */
    uint64_t bytes; /* of data */
};

/* Reads the header, which is checked. */
bool safetensors_header(struct arena *a, struct io_in *in, struct safetensors *out,
                        struct diags *d);
/* One tensor: of the data no more than that is read. path is for messages. */
bool safetensors_read(struct arena *a, struct io_in *in, const char *path, const char *tensor,
                      struct loaded *out, struct diags *d);

/* Where tensors are: of a file all that it has, of an index (a name that ends in ".json", as
 * model.safetensors.index.json) those of the files that it names. Nothing but headers is read, and
 * of an index none. Appends to out; false with errors in d. */
struct safetensors_place {
    const char *name, *path;
};
typedef VEC(struct safetensors_place) safetensors_list;
bool safetensors_find(struct arena *a, const char *path, safetensors_list *out, struct diags *d);

#endif
