#!/bin/sh
# Makes the .ptx files of this folder anew, with nvcc 13.
set -e
cd "$(dirname "$0")"
nvcc=${NVCC:-nvcc}
one() { # output, macro, further options
    out=$1 macro=$2
    shift 2
    "$nvcc" --ptx -D"$macro" "$@" kernels.cu -o "$out"
    sed -i "s|\"$PWD/|\"|" "$out"
}
one saxpy_75.ptx SAXPY -arch=sm_75
one saxpy_lineinfo.ptx SAXPY -arch=sm_80 -lineinfo
one saxpy_debug.ptx SAXPY -arch=sm_90 -G
one reduce_80.ptx REDUCE -arch=sm_80
one reduce_100.ptx REDUCE -arch=sm_100
one calls_90.ptx CALLS -arch=sm_90
one halves_89.ptx HALVES -arch=sm_89
one integers_86.ptx INTEGERS -arch=sm_86
one doubles_80.ptx DOUBLES -arch=sm_80
one doubles_fast.ptx DOUBLES -arch=sm_80 -use_fast_math
one control_75.ptx CONTROL -arch=sm_75
one control_120.ptx CONTROL -arch=sm_120
one tensor_80.ptx TENSOR -arch=sm_80
one hopper_90.ptx HOPPER -arch=sm_90 -std=c++17
