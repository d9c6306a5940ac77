#!/bin/bash
# Makes the PTX of this folder anew, with nvcc 13, and has ptxas look at it: make.sh [NAME...]
# The first line of NAME.cu says how it is compiled: each of its  // settings:  is HOW.TARGET and gives NAME.HOW.TARGET.ptx.
# HOW is  O3,  nvcc's default;  O0,  its device compiler's lowest;  G,  with -G and debug sections;  line,  with lines;  fast,
# with --use_fast_math. Comments are left out, and long texts compressed.
set -e
cd "$(dirname "$0")"
PATH=$PATH:/usr/local/cuda/bin
# debug sections name the folder that was compiled in
dir=/tmp/kaio-cuda
mkdir -p $dir
trap 'rm -rf $dir' EXIT
[ $# -gt 0 ] || set -- *.cu
cp ./*.cu ./*.cuh $dir 2>/dev/null || true
for name; do
    name=${name%.cu}
    rm -f "$name".*.ptx "$name".*.ptx.gz
    read -ra settings < <(sed -n '1s|^// settings: ||p' "$name.cu")
    for setting in "${settings[@]}"; do
        case $setting in
        O3.*) how= ;;
        O0.*) how='-Xcicc -O0' ;;
        G.*) how=-G ;;
        line.*) how=-lineinfo ;;
        fast.*) how=--use_fast_math ;;
        *) echo "$name: what is $setting?" >&2 && exit 2 ;;
        esac
        # shellcheck disable=SC2086 # words
        (cd $dir && nvcc -arch="sm_${setting#*.}" -std=c++17 --ptx $how "$name.cu" -o "$name.ptx" &&
            ptxas -arch="sm_${setting#*.}" "$name.ptx" -o /dev/null)
        sed -E "s|\"$dir/|\"|; /^\s*\/\//d; s|\s*//.*||; s|\s+$||" $dir/"$name.ptx" | cat -s >"$name.$setting.ptx"
        [ "$(stat -c %s "$name.$setting.ptx")" -lt 60000 ] || gzip -9n "$name.$setting.ptx"
    done
done
