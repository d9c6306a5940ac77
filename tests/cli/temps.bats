# temps: in a body: made and cleared by whoever launches it, before every run, and seen by nobody else.
bats_require_minimum_version 1.5.0

load run

# A kernel that the fake driver knows; it writes far outside of y where something has been counted before.
counted() {
    cat >twice.yaml <<END
kernel: twice
params:
  x: in f32[n]
  y: out f32[n]
temps:
  count: u32[n] = 0
  scratch: f32[ceil_div(n, 128)]
grid: ceil_div(n, 128)
block: 128
body: |
  u32 i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  u32 before = atomic_add(&count[i], 1);
  if (threadIdx.x == 0) scratch[blockIdx.x] = 1;
  y[i + before * 1000000] = 2 * x[i];
reference: y[i] = 2 * x[i]
cases: {one: {n: 300}}
END
    kaio-emit twice.yaml -o twice.ptx
}

# In the log the launch is queued or captured $1 times at least, and each time the line before it fills.
each_is_cleared() {
    awk -v least="$1" '
        $2 == "twice" { n++; bad += before != $1 " fill" }
        { before = $1 " " $2 }
        END { exit bad || n < least }' log
}

# Of how many addresses the log says that they were captured so.
addresses() {
    grep "^capture $1 " log | sort -u | wc -l
}

@test "the contract has them, and the command line does not" {
    counted
    grep -qx '//@   $count: u32\[n\] = 0 each run' twice.ptx
    grep -qx '//@   $scratch: f32\[[^=]*\]' twice.ptx
    run -0 cpu --check twice.ptx x=@ones n=300 y=y.npy
    [ "$(npy_data y.npy | cut -c1-8)" = 00000040 ]
    refused 2 "kaio-run: error: 'twice' has no parameter 'count'" cpu twice.ptx x=@ones n=300 y=y.npy count=@zeros
}

@test "the simulator clears them before each run" {
    counted
    run -0 cpu --time=3 twice.ptx x=@ones n=300
    run -0 kaio-verify --run -d cpu --check --repeat=3 twice.yaml
    [ "${lines[-1]}" = "4 passed, 0 failed, 0 skipped" ]
    # one that is zero once, as in the contracts of equations, is not cleared
    sed -i 's/ each run$//' twice.ptx
    run -3 cpu --time=3 twice.ptx x=@ones n=300
    [[ $output = *"store of 4 bytes at element 1000000 of 'y' (f32[n], 300 elements)"* ]]
}

@test "on a GPU their clearing is queued in front of each launch, in graphs too" {
    counted
    FAKE_CUDA_LOG=$PWD/log run -0 cuda twice.ptx --time=2 x=@ones n=300 y=y.npy
    each_is_cleared 20
    [ "$(grep -c ' fill ' log)" = "$(grep -cE '^(queue|capture) twice ' log)" ]
    [ "$(addresses fill)" = 16 ]
    [ "$(addresses twice)" = 16 ]
    nodes=$(sed -n 's/^replay \(.*\) nodes of twice$/\1/p' log | sort -u)
    [ "$nodes" = $(($(grep -c '^capture twice' log) * 2)) ]
    [ "$(grep -c '^alloc' log)" = "$(grep -c '^free' log)" ]
    # where they are zero once, nothing is filled
    sed -i 's/ each run$//' twice.ptx
    FAKE_CUDA_LOG=$PWD/once run -0 cuda twice.ptx --time=2 x=@ones n=300 y=y.npy
    run ! grep -q fill once
}

@test "kaio-bench clears them too, and its plan says so" {
    counted
    export KAIO_NVML_LIB=$fake KAIO_CUDA_LIB=$fake
    FAKE_CUDA_LOG=$PWD/log run -0 kaio-bench --runs=2 --time-per-round=1 twice.yaml n=300
    each_is_cleared 20
    [ "$(addresses fill)" = "$(addresses twice)" ]
    run -0 kaio-bench --dry-run --format=json twice.yaml n=300
    [[ $output = *'{"name": "$count", "type": "u32", "shape": [300], "bytes": 1200, "zero": true, "each_run": true}'* ]]
    [[ $output = *'"zero": false, "each_run": false}'* ]]
}
