# Ordinary CUDA kernels that nvcc made, and what Triton wrote: right results, and no finding.

bats_require_minimum_version 1.5.0

# each contract of a folder
all() {
    find "$KAIO_SRCDIR/tests/$1" -name '*.launch' -print0 | sort -z |
        xargs -0 -P "$(nproc)" -n 1 "$KAIO_SRCDIR/tests/launch_one.sh"
}

@test "CUDA kernels give what numpy does, and no finding" {
    run -0 all cuda
    [ -z "$output" ]
}

@test "Triton's kernels give what numpy does, and no finding" {
    run -0 all triton
    [ -z "$output" ]
}

@test "textures and surfaces are refused by name, once for each instruction" {
    run -2 kaio-run -d cpu -q --entry texture --grid 1 --block 32 --arg u64=0 --arg 'inout f32[32]=@zeros' \
        "$KAIO_SRCDIR/tests/cuda/texture.O3.80.ptx"
    [[ $output == *"error: 'tex.2d.v4.f32.f32': textures and surfaces are not supported"* ]]
    [[ $output == *"error: 'sust.b.2d.b32.trap': textures and surfaces are not supported"* ]]
    [ "$(grep -c error: <<<"$output")" = 2 ]
}

@test "what they must give is numpy's" {
    python3 -c 'import numpy' 2>/dev/null || skip "no numpy"
    run -0 python3 "$KAIO_SRCDIR/tests/expect.py" "$KAIO_SRCDIR/tests/cuda"
    run -0 python3 "$KAIO_SRCDIR/tests/expect.py" "$KAIO_SRCDIR/tests/triton"
}
