/* Tensor maps, encoded by the driver. */
#include <config.h>

#include "cuda/driver.h"

/* Bytes move as they are, but for what is filled with NaN, and f32 that become tf32. */
static int tensor_type(enum dtype t, bool tf32)
{
    if (tf32)
        return CU_TENSOR_TFLOAT32;
    switch (t) {
    case DT_F16: return CU_TENSOR_FLOAT16;
    case DT_BF16: return CU_TENSOR_BFLOAT16;
    case DT_F32: return CU_TENSOR_FLOAT32;
    case DT_F64: return CU_TENSOR_FLOAT64;
    case DT_I32: return CU_TENSOR_INT32;
    case DT_I64: return CU_TENSOR_INT64;
    case DT_E4M3:
    case DT_E5M2:
    case DT_I16:
    case DT_I8:
    case DT_U64:
    case DT_U32:
    case DT_U16:
    case DT_U8:
    case DT_BOOL:
    case DT_I4:
    case DT_U4:
    case DT_COUNT: break;
    }
    switch (dtype_bits(t)) {
    case 64: return CU_TENSOR_UINT64;
    case 32: return CU_TENSOR_UINT32;
    case 16: return CU_TENSOR_UINT16;
    default: return CU_TENSOR_UINT8;
    }
}

/* 0, first, 2 first ... -> 0, 1, 2 ... */
static int step_of(unsigned bytes, unsigned first)
{
    int n = 0;
    for (; bytes >= first; bytes /= 2)
        n++;
    return n;
}

static cu_result encode(const struct device *dev, const struct device_tensor_map *m,
                        struct cu_tensor_map *map)
{
    const int type = tensor_type(m->type, m->tf32), interleave = step_of(m->interleave, 16);
    const int swizzle = step_of(m->swizzle, 32), promotion = step_of(m->promotion, 64);
    void *const address = (void *)(uintptr_t)m->address;
    if (m->im2col)
        return dev->cu.TensorMapEncodeIm2col(map, type, m->rank, address, m->dim, m->stride + 1,
                                             m->lower, m->upper, m->box[0], m->box[1], m->step,
                                             interleave, swizzle, promotion, m->nan_fill);
    return dev->cu.TensorMapEncodeTiled(map, type, m->rank, address, m->dim, m->stride + 1, m->box,
                                        m->step, interleave, swizzle, promotion, m->nan_fill);
}

enum device_status cu_tensor_map(struct device *dev, const struct device_tensor_map *m,
                                 unsigned char to[DEVICE_TENSOR_MAP], struct diags *d)
{
    struct cu_tensor_map map;
    if (dev->sm < 90) {
        diag_error(d, SPAN_NONE, "tensor maps need sm_90; this device is sm_%u", dev->sm);
        return DEVICE_REFUSED;
    }
    if (!dev->cu.TensorMapEncodeTiled || !dev->cu.TensorMapEncodeIm2col) {
        diag_error(d, SPAN_NONE,
                   "tensor maps need a driver of CUDA 12.0; this one is of CUDA %d.%d: update it",
                   dev->version / 1000, dev->version % 1000 / 10);
        return DEVICE_REFUSED;
    }
    const cu_result r = encode(dev, m, &map);
    if (r != CU_SUCCESS)
        return cu_failed(dev, d, r, "the driver refuses a tensor map");
    memcpy(to, map.bytes, sizeof map.bytes);
    return DEVICE_OK;
}
