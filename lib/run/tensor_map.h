/* Rules of tensor maps (struct device_tensor_map), the same for every device: those of
 * cuTensorMapEncodeTiled() and cuTensorMapEncodeIm2col() (CUDA driver API, "Tensor Map Object
 * Management"), each with a message of what is wrong and how to mend it.
 *
 *     element   dtype_bits(type) / 8 bytes; a byte for packed types, whose dimensions and boxes
 *               count bytes
 *     unit      what dimension 0 counts: an element, or with interleave a slice of so many bytes of
 *               channels
 *
 * Interleaved tensors (PTX ISA, "Interleave layout"; NC/8HWC8 and the like) have the dimensions W,
 * [H, [D,]] slice of channels, N: the units of W follow each other, and a box has one slice, of
 * index coordinate[rank - 2].
 */
#ifndef KAIO_RUN_TENSOR_MAP_H
#define KAIO_RUN_TENSOR_MAP_H

#include "run/device.h"

/* Bytes of an element, and of a unit. */
uint32_t device_tensor_element(enum dtype type);
uint32_t device_tensor_unit(const struct device_tensor_map *m);
/* The rest: of a map that device_tensor_map_check() has let through.
 * Units that a copy has along a dimension: ceil(box / step). */
uint32_t device_tensor_count(const struct device_tensor_map *m, unsigned dim);
/* How many of a map with .im2col a window begins at along dimension 1 + i. */
int64_t device_tensor_starts(const struct device_tensor_map *m, unsigned i);
/* Bytes from one row of a box (the units along dimension 0) to the next in shared memory: the row's
 * own, with a swizzle at least its span. */
uint32_t device_tensor_pitch(const struct device_tensor_map *m);
/* Bytes that a copy moves, inside of the tensor or not: what an mbarrier counts. */
uint64_t device_tensor_bytes(const struct device_tensor_map *m);
/* Bytes of shared memory from the box's start to its end, gaps between rows included. */
uint64_t device_tensor_footprint(const struct device_tensor_map *m);

/* Is m a map that a device can have? Else one error in d, at s. name: how messages call it: "a", a
 * buffer or a parameter; NULL: nothing. d NULL: only the answer is wanted. */
bool device_tensor_map_check(const struct device_tensor_map *m, const char *name, struct span s,
                             struct diags *d);

#endif
