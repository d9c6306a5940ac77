# Hopper's instructions in kernels that nvcc made, correct ones and broken ones.

bats_require_minimum_version 1.5.0

one=$KAIO_SRCDIR/tests/launch_one.sh
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
    local seed seeds='1 2 3'
    [ -z "${KAIO_QUICK-}" ] || seeds=1
    for seed in $seeds; do
        KAIO_ARGS="--check --check-seed=$seed" run -0 all . launch
        [ -z "$output" ]
    done
}

# refused FROM TO TEXT: transpose.launch with FROM replaced is refused before anything runs, and TEXT says why
refused() {
    sed "s|$1|$2|" "$here/transpose.launch" >k.launch
    run -2 kaio-run -d cpu -q --launch k.launch "$here/transpose.ptx" x=@ones rows=50 cols=76
    [[ $output == *"error: "*"$3"* ]] || { echo "$output" && false; }
    [[ $output != *"internal error"* ]]
}

@test "tensor maps that no device could use are refused" {
    cd "$BATS_TEST_TMPDIR"
    local box='box: \[32, 16\]' fine='box: [32, 16]'
    refused "$box" 'box: [32]' "'box' has 1 numbers for the 2 dimensions"
    refused "$box" 'box: [0, 16]' "this is 1 to 256, not 0"
    refused "$box" 'box: [257, 16]' "this is 1 to 256, not 257"
    refused "$box" 'box: [3, 16]' "must be a multiple of 16"
    refused "$box" 'box: [x, 16]' "the elements of 'x' are not known at launch"
    refused "$box" 'box: [1e30, 16]' "an integer is needed here"
    refused "$box" "$fine, swizzle: 48" "'swizzle' is 0, 32, 64 or 128"
    refused "$box" "$fine, swizzle: 64" "make the box narrower"
    refused "$box" "$fine, at: 8" "begins at a multiple of 16 bytes"
    refused "$box" "$fine, at: 16" "has its end at byte 15216 of 'x', which has 15200"
    refused "$box" "$fine, dims: [cols, rows + 1]" "which has 15200"
    refused "$box" "$fine, strides: [300]" "must be a multiple of 16"
    refused "$box" "$fine, strides: [9223372036854775807]" "it must be 0 to"
    refused "$box" "$fine, type: f77" "'f77' is not a type"
    refused "$box" "$fine, type: i4" "no elements of 4 bits"
    refused "$box" "$fine, steps: [9, 1]" "this is 1 to 8, not 9"
    refused "$box" "$fine, fill: three" "'fill' is zero or nan"
    refused "$box" "$fine, depth: 3" "unknown key 'depth'"
    refused 'map: x' 'map: zz' "no buffer is called 'zz'"
    refused 'map: x' 'map: rows' "only a buffer has a tensor map"
    refused '{map: x, box: \[32, 16\]}' 'x' "has 128 bytes; 8 are passed"
    refused ' y, rows' ' {map: x, box: [32, 16]}, rows' "has 8 bytes; 128 are passed"
    refused 'block: \[128\]' 'block: [128]\n    cluster: [2]' "not a multiple of the cluster"
    refused 'block: \[128\]' 'block: [128]\n    shared: 232449' "the limit is 232448"
}

# faults FROM TO TEXT: transpose.ptx with FROM replaced ends in a fault that TEXT says
faults() {
    sed "s|$1|$2|" "$here/transpose.ptx" >k.ptx
    run -3 kaio-run -d cpu -q --launch "$here/transpose.launch" k.ptx x=@ones rows=50 cols=76
    [[ $output == *"error: kernel 'transpose': "*"$3"* ]] || { echo "$output" && false; }
}

@test "a copy by what is no tensor map ends the launch" {
    cd "$BATS_TEST_TMPDIR"
    faults '\[%rd3, {' '[%rd2, {' "are no tensor map"
    faults 'tensor.2d\(.*\){%r3, %r2}' 'tensor.3d\1{%r3, %r2, %r2}' "with a tensor map of 2 dimensions"
    faults 'mbarrier.init.*' '' "there is no mbarrier"
}

@test "the sums are numpy's" {
    python3 -c 'import numpy' 2>/dev/null || skip "no numpy"
    run -0 python3 "$KAIO_SRCDIR/tests/expect.py" "$here"
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
