# Hopper's instructions in kernels that nvcc made, correct ones and broken ones.

bats_require_minimum_version 1.5.0

one=$KAIO_SRCDIR/tests/hopper_one.sh
here=$KAIO_SRCDIR/tests/hopper

# all FOLDER SUFFIX: each file there, but for those that hopper/pending names
all() {
    (cd "$here" && find "$1" -maxdepth 1 -name "*.$2" -printf '%P\n' | sed "s|^|$1/|; s|^\./||" | sort |
        { grep -vxFf pending || true; } | xargs -r -P "$(nproc)" -n 1 "$one")
}

@test "the correct kernels give what numpy does, and no finding" {
    run -0 all . launch
    [ -z "$output" ]
}

@test "harmless changes are harmless" {
    run -0 all harmless sed
    [ -z "$output" ]
}

@test "each of the broken kernels gives the finding it should" {
    [ "$(find "$here/broken" -name '*.sed' | wc -l)" -ge 60 ]
    run -0 all broken sed
    [ -z "$output" ]
}

@test "the sums are numpy's" {
    python3 -c 'import numpy' 2>/dev/null || skip "no numpy"
    run -0 python3 "$here/expect.py"
}

@test "ptxas takes each kernel" {
    PATH=$PATH:/usr/local/cuda/bin
    command -v ptxas >/dev/null || skip "no ptxas"
    local f
    for f in "$here"/*.ptx; do
        run -0 ptxas -arch=sm_90a "$f" -o /dev/null
        [[ $output != *C75* ]]
    done
}
