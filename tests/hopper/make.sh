#!/bin/sh
# Makes the .ptx files of this folder anew, with nvcc 13, and has ptxas look at them: make.sh [NAME...]
set -e
cd "$(dirname "$0")"
PATH=$PATH:/usr/local/cuda/bin
[ $# -gt 0 ] || set -- *.cu
for name; do
    name=${name%.cu}
    case $name in
    transpose) more=-lineinfo ;;
    bulk_reduce) more='-Xcicc -O0' ;;
    *) more= ;;
    esac
    # shellcheck disable=SC2086 # words
    nvcc -arch=sm_90a -std=c++17 --ptx $more "$name.cu" -o "$name.ptx"
    sed -i "s|\"$PWD/|\"|" "$name.ptx"
    ptxas -arch=sm_90a "$name.ptx" -o /dev/null
done
