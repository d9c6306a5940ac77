/* numpy's npy format (numpy/lib/format.py: magic, version, header length, a Python dict, data).
 *
 * Reading is safe on any bytes: no more than the header promises is read, and one byte to see that
 * there is no more. Fortran order, big-endian numbers, Python objects, structures and more than 8
 * dimensions are refused, each by a message that says how to save the array instead.
 */
#ifndef KAIO_DATA_NPY_H
#define KAIO_DATA_NPY_H

#include "base/io.h"
#include "data/load.h"

bool npy_read(struct arena *a, struct io_in *in, struct loaded *out, struct diags *d);
/* Version 1, C order, the data aligned to 64 bytes in the file. */
void npy_write(FILE *f, const struct buffer *b);

#endif
