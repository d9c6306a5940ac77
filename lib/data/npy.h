/* numpy's npy format (numpy/lib/format.py: magic, version, header length, a Python dict, data).
 *
 * Reading is from memory and safe on any bytes: the header's claims are checked against what is there before they
 * are used. Fortran order, big-endian numbers, Python objects, structures and more than 8 dimensions are refused, each by
 * a message that says how to save the array instead.
 */
#ifndef KAIO_DATA_NPY_H
#define KAIO_DATA_NPY_H

#include "data/load.h"

/* Whether the bytes begin as an npy file does. */
bool npy_begins(const void *bytes, size_t n);
/* name is for messages. out points into bytes. */
bool npy_parse(const void *bytes, size_t n, const char *name, struct loaded *out, struct diags *d);
/* Version 1, C order, the data aligned to 64 bytes in the file. */
void npy_write(FILE *f, const struct buffer *b);

#endif
