# The scan strategy: prefixes in one pass. On the simulator with all checks, which knows the memory model that looking back at
# other blocks relies on; through ptxas where there is one.
bats_require_minimum_version 1.5.0

load equations

strategies() { # what computes each stage of k.yaml
    kaio-emit --explain -v k.yaml 2>/dev/null | sed -n 's/.*: strategy //p' | tr '\n' ' '
}

@test "every kind of prefix computes what its mathematics says, under every check" {
    if [ -z "${KAIO_QUICK-}" ]; then
        run -0 kaio-verify --run --all -d cpu --check -t sm_70 --code=generic --fill=normal data/scans.yaml
        [[ $output == *" passed, 0 failed, "*" skipped" ]]
    fi
    local all=--all
    [ -z "${KAIO_QUICK-}" ] || all='--code=generic --fill=normal'
    # shellcheck disable=SC2086
    run -0 kaio-verify --run $all -d cpu --check -t sm_90 data/scans.yaml
    [[ $output == *" passed, 0 failed, "*" skipped" ]]
}

@test "random shapes have the same results, twice" {
    local kernels='inclusive exclusive reversed reversed_exclusive shifted tiles columns columns_reversed channels' fills=--fill=exact,normal
    [ -z "${KAIO_QUICK-}" ] || kernels='shifted tiles channels' fills='--fill=normal --code=generic'
    for kernel in $kernels; do
        # shellcheck disable=SC2086
        run -0 kaio-verify --run --all -d cpu --check --shapes=6:7 $fills --repeat --kernel=$kernel data/scans.yaml
        [[ $output == *" passed, 0 failed, "* ]]
    done
}

@test "none is left to naive, and hardly a register spills" {
    kaio-emit --explain -v data/scans.yaml >explained
    run ! grep 'strategy naive' explained
    [ "$(grep -c ': strategy scan' explained)" -ge "$(grep -c '^kernel: ' data/scans.yaml)" ]
    [ -n "$ptxas" ] || skip "no ptxas"
    kaio-emit -t sm_90 data/scans.yaml >r.ptx
    "$ptxas" -v -arch=sm_90 -o r.cubin r.ptx 2>log
    [ "$(grep -c 'bytes spill stores' log)" = "$(grep -c '^.visible .entry' r.ptx)" ]
    # ptxas saves one to three for another block of a multiprocessor
    ! grep 'bytes spill stores' log | grep -vE ' ([048]|12) bytes spill stores'
}

@test "a long row has a block for each tile, a short one lanes of a warp, and columns threads of their own" {
    kernel 'x: in f32[r, n]; y: out f32[r, n]' 'y[i, j] = sum[k in 0..j + 1](x[i, k])' >k.yaml
    run -0 kaio-emit --explain -v -D r=1 -D n=67108864 k.yaml
    [[ $output == *"along n, a block of 1024 threads for each tile of a row, 8 x 4 elements of each"* ]]
    run -0 kaio-emit --explain -v -D r=1 -D n=1048576 k.yaml
    [[ $output == *"along n, a block of 256 threads for each tile of a row, 4 x 4 elements of each"* ]]
    run -0 kaio-emit --explain -v -D r=8192 -D n=8192 k.yaml
    [[ $output == *"along n, a block of 512 threads for each row, 4 x 4 elements of each"* ]]
    run -0 kaio-emit --explain -v -D r=8192 -D n=128 k.yaml
    [[ $output == *"along n, 8 threads for each row, 4 x 4 elements of each"* ]]
    # each element is loaded and stored once, 16 bytes at a time
    kaio-emit -D r=8192 -D n=8192 k.yaml >k.ptx
    [ "$(grep -c 'ld.global.*v4.f32' k.ptx)" = 4 ]
    [ "$(grep -c 'st.global.*v4.f32' k.ptx)" = 4 ]
    kernel 'x: in f32[r, n]; y: out f32[r, n]' 'y[i, j] = sum[k in 0..i + 1](x[k, j])' >k.yaml
    run -0 kaio-emit --explain -v -D r=512 -D n=1048576 k.yaml
    [[ $output == *"down r, 256 threads side by side and 1 below each other, 8 x 4 elements of each"* ]]
}

@test "what other prefixes go another way, or are part of terms, is stored" {
    kernel 'x: in f32[r, n]; y: out f32[r, n]' 'y[i, j] = sum[k in 0..j + 1](x[i, k]) * sum[k in j..n](x[i, k])' >k.yaml
    [ "$(strategies)" = "scan scan " ]
    kernel 'x: in f32[r, n]; y: out f32[r, n]' \
        's[i, j < n] = sum[k in 0..j + 1](x[i, k]); t[i < r, j] = sum[k in 0..i + 1](x[k, j]); y[i, j] = s[i, j] * t[i, j]' >k.yaml
    [ "$(strategies)" = "scan scan " ]
    # a row's or a triangle's own terms are none of its business
    kernel 'x: in f32[n, n]; y: out f32[n]' 'y[i] = sum[k in 0..i + 1](x[i, k])' >k.yaml
    [ "$(strategies)" = "reduce " ]
}

@test "a condition up to an index makes a prefix of a sum over everything, where the terms are everybody's" {
    for term in 'sum[k](k <= j ? x[i, k] : 0)' 'prod[k](k > j ? x[i, k] : 1)' 'min[k in 0..n](j >= k && x[i, k] > 0 ? x[i, k] : inf)'; do
        kernel 'x: in f32[r, n]; y: out f32[r, n]' "y[i, j] = $term" >k.yaml
        [ "$(strategies)" = "scan " ]
    done
    # f16, which is widened around the condition
    kernel 'x: in f16[r, n]; y: out f16[r, n]' 'y[i, j] = sum[k](k <= j && k > 2 ? x[i, k] : 0)' >k.yaml
    [ "$(strategies)" = "scan " ]
    run -0 kaio-verify --run -d cpu --check k.yaml r=3 n=77
    # a triangle's rows have terms of their own, and of what is no nothing something is left
    for term in 'sum[k](k <= j ? x[j, k] : 0)' 'sum[k](k <= j ? x[i, k] : 1)' 'max[k](k <= j ? x[i, k] : 0)'; do
        kernel 'x: in f32[n, n]; y: out f32[n, n]' "y[i, j] = $term" >k.yaml
        [[ "$(strategies)" != *scan* ]]
    done
}

@test "what is read from its end on is read by vectors" {
    kernel 'x: in f32[r, n]; y: out f32[r, n]' 'y[i, j] = sum[k in 0..j + 1](x[i, n - 1 - k])' >k.yaml
    kaio-emit -D r=8192 -D n=8192 k.yaml >k.ptx
    [ "$(grep -c 'ld.global.*v4.f32' k.ptx)" = 4 ]
}

@test "a schedule says how many threads share a row, and how many vectors they hold" {
    kernel 'x: in f32[r, n]; y: out f32[r, n]' 'y[i, j] = sum[k in 0..j + 1](x[i, k])' >plain.yaml
    { cat plain.yaml; echo 'schedule: {threads: 16, held: 2, vector: 2}'; } >k.yaml
    run -0 kaio-emit --explain -v k.yaml
    [[ $output == *"along n, 16 threads for each row, 2 x 2 elements of each"* ]]
    run -0 kaio-verify --run -d cpu --check k.yaml r=5 n=77
    run -0 kaio-verify --run -d cpu --check k.yaml r=5 n=78
    { cat plain.yaml; echo 'schedule: {threads: 24}'; } >k.yaml
    run -2 kaio-emit k.yaml
    [[ $output == *"threads"*"power of two"* ]]
}

@test "what has no prefix is no scan, and the schedule is told" {
    kernel 'x: in f32[n]; y: out f32[n]' 'y[i] = sum[k in max(i - 5, 0)..i + 1](x[k])' >k.yaml
    echo 'schedule: {strategy: scan}' >>k.yaml
    run -2 kaio-emit k.yaml
    [[ $output == *"strategy 'scan' does not fit: it is for something else altogether"* ]]
}

@test "the reference takes as long for a row as the row" {
    kernel 'x: in f32[n]; y: out f32[n]; z: out f32[n]' 'y[i] = sum[k in 0..i + 1](x[k]); z[i] = max[k in i..n](x[k])' >k.yaml
    kaio-emit k.yaml >k.ptx
    # 2^33 terms if each element took its own
    run -0 timeout 60 kaio-verify --run --all -d cpu --fill=normal --code=generic k.yaml n=131072
}

@test "segments whose terms may not be there, or that are updated in place, are no scans; bounds may be negative" {
    cd "$BATS_TEST_TMPDIR"
    cat >s.yaml <<'END'
kernel: outside
params: {x: 'in f32[m]', f: 'in i32[n]', p: 'in i32[n]', y: 'out f32[n]'}
compute: y[i] = sum[k in f[i]..i+1](x[p[k]])
---
kernel: in_place
params: {x: 'inout f32[n]', f: 'in i32[n]'}
compute: x[i] = sum[k in f[i]..i+1](x[k])
---
kernel: before
params: {x: 'in f32[n]', f: 'in i32[n]', y: 'out f32[n]'}
compute: y[i] = sum[k in f[i]..i+1](pad(x[k], 100.0))
cases:
  a: {n: 1003, f: -2..40}
END
    run -0 kaio-emit -t sm_80 --kernel=outside --explain s.yaml
    [[ $output == *'outside: naive'* ]]
    run -2 kaio-emit -t sm_80 --kernel=in_place s.yaml
    [[ $output == *"'x' is updated in place"* ]]
    grep -q ': scan' < <(kaio-emit -t sm_80 --kernel=before --explain s.yaml)
    run -0 kaio-verify --run -d cpu --check --kernel=before s.yaml
    [[ ${lines[-1]} == '4 passed, 0 failed, '* ]]
}

@test "prefixes of extrema are of what is a number" {
    cd "$BATS_TEST_TMPDIR"
    cat >s.yaml <<'END'
kernel: k
params: {x: 'in f32[r, n]', y: 'out f32[r, n]', z: 'out i32[r, n]'}
compute: |
  y[q, i] = max[k](k <= i ? x[q, k] : -inf)
  z[q, i] = i32(argmin[k < i + 1](x[q, k]))
---
kernel: columns
params: {x: 'in f32[r, n]', y: 'out f32[r, n]'}
compute: y[i, q] = min[k < i + 1](x[k, q])
END
    for size in 'r=70 n=5' 'r=40 n=32' 'r=3 n=700'; do
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --fill=extreme,edge s.yaml $size
    done
}

@test "blocks of columns have no more shared memory than there is" {
    cd "$BATS_TEST_TMPDIR"
    cat >s.yaml <<'END'
kernel: k
params: {x: 'in f32[a, b]', y1: 'out i32[a, b]', y2: 'out i32[a, b]', y3: 'out i32[a, b]', y4: 'out i32[a, b]'}
compute: |
  y1[i, j] = i32(argmax[k < i + 1](x[k, j] * 1))
  y2[i, j] = i32(argmax[k < i + 1](x[k, j] * 2))
  y3[i, j] = i32(argmax[k < i + 1](f64(x[k, j]) * 3))
  y4[i, j] = i32(argmin[k < i + 1](x[k, j] * 4))
END
    run -0 kaio-verify --run -d cpu --check --fill=normal s.yaml a=70 b=40
}
