# Hopper's instructions in kernels that nvcc made, correct ones and broken ones.

bats_require_minimum_version 1.5.0

one=$KAIO_SRCDIR/tests/hopper_one.sh
here=$KAIO_SRCDIR/tests/hopper

# all FOLDER SUFFIX: each file there
all() {
    find "$here/$1" -maxdepth 1 -name "*.$2" -print0 | sort -z | xargs -0 -P "$(nproc)" -n 1 "$one"
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

@test "a ring needs each of its waits, arrivals, fences and barriers" {
    cd "$BATS_TEST_TMPDIR"
    local name line tried=0
    for name in bulk_ring multicast cp_async_ring wgmma_ring; do
        for line in $(grep -nE '^\s*(@!?\S+ )?(bra|mbarrier|fence|bar|barrier|wgmma\.[cfw][a-z_]+|cp\.async\.(mbarrier|bulk)\.[acw][a-z_]+)[. ].*// @' \
            "$here/$name.ptx" | grep -v '\.try_wait' | cut -d: -f1); do
            sed "${line}d" "$here/$name.ptx" >less.ptx
            # shellcheck disable=SC2046 # words
            run -1 kaio-run -q --check --max-instructions=30000000 --launch "$here/$name.launch" less.ptx \
                $(sed -n 's/^# args: //p' "$here/$name.launch")
            tried=$((tried + 1))
        done
    done
    [ "$tried" -ge 60 ]
}

@test "the correct kernels are right whenever the copies arrive" {
    local seed
    for seed in 1 2 3; do
        KAIO_ARGS=--check-seed=$seed run -0 all . launch
        [ -z "$output" ]
    done
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
