#include <config.h>

#include "ptx/ptx.h"

unsigned ptx_type_bits(enum ptx_mod type)
{
    switch ((int)type) {
    case PTX_PRED:
    case PTX_B1: return 1;
    case PTX_U4:
    case PTX_S4: return 4;
    case PTX_B8:
    case PTX_U8:
    case PTX_S8:
    case PTX_E4M3:
    case PTX_E5M2: return 8;
    case PTX_B16:
    case PTX_U16:
    case PTX_S16:
    case PTX_F16:
    case PTX_BF16:
    case PTX_E4M3X2:
    case PTX_E5M2X2: return 16;
    case PTX_B32:
    case PTX_U32:
    case PTX_S32:
    case PTX_F32:
    case PTX_TF32:
    case PTX_F16X2:
    case PTX_BF16X2:
    case PTX_U16X2:
    case PTX_S16X2: return 32;
    case PTX_B64:
    case PTX_U64:
    case PTX_S64:
    case PTX_F64:
    case PTX_F32X2: return 64;
    case PTX_B128: return 128;
    default: return 0;
    }
}

bool ptx_type_is_float(enum ptx_mod type)
{
    switch ((int)type) {
    case PTX_F16:
    case PTX_F16X2:
    case PTX_BF16:
    case PTX_BF16X2:
    case PTX_F32:
    case PTX_F64:
    case PTX_F32X2:
    case PTX_TF32:
    case PTX_E4M3:
    case PTX_E5M2:
    case PTX_E4M3X2:
    case PTX_E5M2X2: return true;
    default: return false;
    }
}

bool ptx_type_is_signed(enum ptx_mod type)
{
    switch ((int)type) {
    case PTX_S4:
    case PTX_S8:
    case PTX_S16:
    case PTX_S32:
    case PTX_S64:
    case PTX_S16X2: return true;
    default: return ptx_type_is_float(type);
    }
}

enum ptx_mod ptx_space(enum ptx_mod space)
{
    switch ((int)space) {
    case PTX_SHARED_CTA:
    case PTX_SHARED_CLUSTER:
    case PTX_FROM_SHARED_CTA: return PTX_SHARED;
    case PTX_PARAM_ENTRY:
    case PTX_PARAM_FUNC: return PTX_PARAM;
    case PTX_FROM_GLOBAL: return PTX_GLOBAL;
    default: return space;
    }
}
