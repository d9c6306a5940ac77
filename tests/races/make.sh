#!/bin/sh
# make.sh [FILE.cu]...: compiles each kernel here, or these, twice, as it should be and with its mistake: NAME.cu to NAME.ptx and NAME.broken.ptx.
set -eu
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- *.cu
for f in "$@"; do
    name=${f%.cu}
    arch=$(sed -n 's,^// arch: ,,p' "$f")
    nvcc -arch="sm_${arch:-80}" -lineinfo --ptx "$f" -o "$name.ptx"
    nvcc -arch="sm_${arch:-80}" -lineinfo --ptx -DBROKEN "$f" -o "$name.broken.ptx"
    # files by their names alone, and no comments
    sed -i -E 's,(\.file.*")[^"]*/([^"/]*"),\1\2,; /^\/\//d; /^$/d' "$name.ptx" "$name.broken.ptx"
done
