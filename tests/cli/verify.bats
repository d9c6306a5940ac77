# kaio-verify: files that hold results, and usage.
bats_require_minimum_version 1.5.0
load verify

@test "files: a right result passes, a wrong one fails with its place" {
    f32s 1 2 3 >x.bin
    f32s 1 0 1 >y.bin
    f32s 3 4 7 >z.bin
    run -0 kaio-verify "$saxpy" n=3 x=x.bin y=y.bin:z.bin
    [ "${lines[0]}" = "PASS     saxpy  y f32[3]: 3 compared, all equal" ]
    f32s 3 5 7 >z.bin
    run -1 kaio-verify "$saxpy" n=3 x=x.bin y=y.bin:z.bin
    [ "${lines[0]}" = "FAIL     saxpy  y f32[3]: 1 of 3 wrong, largest error 1, 2.1e+06 ulp" ]
    [ "${lines[1]}" = "    [1]: got 5 (0x40a00000), want 4" ]
    [ "${lines[3]}" = "    .#." ]
}

@test "files: a NaN against a number fails whatever the tolerance" {
    f32s 1 2 3 >x.bin
    f32s 1 0 1 >y.bin
    f32s 3 nan 7 >z.bin
    run -1 kaio-verify --rtol=1 --atol=1e9 --ulp=1e9 "$saxpy" n=3 x=x.bin y=y.bin:z.bin
    [[ "$output" == *"[1]: got nan (0x7fc00000), want 4"* ]]
    [[ "$output" == *"tolerance instead of the bound: rtol 1 atol 1e+09 ulp 1e+09"* ]]
}

@test "files: a tolerance replaces the bound" {
    f32s 1 2 3 >x.bin
    f32s 1 0 1 >y.bin
    f32s 3 5 7 >z.bin
    run -0 kaio-verify --atol=1 "$saxpy" n=3 x=x.bin y=y.bin:z.bin
}

@test "files: nothing to check is an error" {
    f32s 1 2 3 >x.bin
    run -2 kaio-verify -D T=f32 "$specs/elementwise/add.yaml" n=3 x=x.bin y=x.bin
    [[ "$output" == *"no output is given"* ]]
    run -2 kaio-verify -D T=f32 "$specs/elementwise/add.yaml" n=3 x=x.bin y=x.bin w=x.bin
    [[ "$output" == *"'w'"* || "$output" == *" w"* ]]
    run -2 kaio-verify -D T=f32 "$specs/elementwise/add.yaml" n=3 x=x.bin y=x.bin z=@zeros
    [[ "$output" == *"z is an output"* ]]
    run -2 kaio-verify -D T=f32 "$specs/elementwise/add.yaml" n=4 x=x.bin y=x.bin z=x.bin
    run -2 kaio-verify -D T=f32 "$specs/elementwise/add.yaml" n=3 x=x.bin y=x.bin z=missing.npy
    run -2 kaio-verify missing.yaml x=1
    run -2 kaio-verify
}

@test "files: a constant reference is not trusted" {
    f32s 1 2 3 >x.bin
    f32s 0 0 0 >z.bin
    cat >zero.yaml <<'YAML'
kernel: zero
params:
  x: in f32[n]
  z: out f32[n]
compute: |
  z[i] = x[i] * 0
YAML
    run -1 kaio-verify zero.yaml n=3 x=x.bin z=z.bin
    [ "${lines[0]}" = "MISTRUST zero  z f32[3]: 3 compared, all equal; the reference is all zero, although the inputs are not constant" ]
}

@test "files: a subscript out of range names the equation and the place" {
    cat >gather.yaml <<'YAML'
kernel: gather
params:
  x: in f32[n]
  ids: in i32[m]
  y: out f32[m]
compute: |
  y[i] = x[ids[i]]
YAML
    f32s 1 2 3 >x.bin
    printf '\0\0\0\0\003\0\0\0' >ids.bin
    f32s 1 2 >y.bin
    run -2 kaio-verify gather.yaml n=3 m=2 x=x.bin ids=ids.bin y=y.bin
    [ "${lines[0]}" = "gather.yaml:7:10: error: subscript 1 of 'x' is 3, outside 0..3, in the equation of 'y' at i = 1" ]
}

@test "golden: every bit, or a tolerance" {
    f32s 1 2 3 >a.bin
    f32s 1 2 3 >b.bin
    run -0 kaio-verify --golden a.bin b.bin
    f32s 1 2 5 >b.bin
    run -1 kaio-verify --golden a.bin b.bin
    f32s 1 2 >b.bin
    run -2 kaio-verify --golden a.bin b.bin
    run -2 kaio-verify --golden a.bin
    run -2 kaio-verify --golden a.bin missing.bin
    run -2 kaio-verify --golden --run a.bin b.bin
}

@test "golden: npy files, the types and shapes of which must agree" {
    npy=$KAIO_SRCDIR/tests/data/npy
    run -0 kaio-verify --golden "$npy/good-float64.npy" "$npy/good-float64.npy"
    [[ "${lines[0]}" == "PASS     $npy/good-float64.npy f64["* ]]
    run -2 kaio-verify --golden "$npy/good-float64.npy" "$npy/good-int64.npy"
    [[ "$output" == *"good-int64.npy' is int64["*"good-float64.npy' is float64["* ]]
    run -2 kaio-verify --golden "$npy/good-float64.npy" "$npy/bad-cut.npy"
}

@test "a body without a reference cannot be checked" {
    cat >body.yaml <<'YAML'
kernel: body
params:
  y: out f32[n]
grid: 1
block: 1
body: |
  y[0] = 1.0f;
cases:
  one: {n: 1}
YAML
    run -2 kaio-verify --run -d cpu body.yaml
    [[ "$output" == *"has a body: and no reference:"* ]]
}

@test "usage: options that need --run, unknown words" {
    run -2 kaio-verify --fill=exact "$saxpy" x=1
    run -2 kaio-verify --run --fill=random "$saxpy"
    [[ "$output" == *"'random' is not exact, normal, uniform, edge, extreme or all"* ]]
    run -2 kaio-verify --run n31
    [[ "$output" == *"no such file: 'n31'"* ]]
}

@test "a full disk is an error" {
    [ -w /dev/full ] || skip "no /dev/full"
    run -2 bash -c "kaio-verify --run -d cpu '$saxpy' n31 >/dev/full"
}

@test "files: emit, run and verify meet in a pipe, and outputs tell dimensions" {
    kaio-emit "$specs/matmul/naive.yaml" |
        kaio-run -d cpu a=@normal:1 b=@normal:2 m=33 n=20 k=17 c=- 2>/dev/null |
        kaio-verify "$specs/matmul/naive.yaml" a=@normal:1 b=@normal:2 k=17 c=- >report
    [[ "$(cat report)" == "PASS     matmul_naive  c f32[33, 20]: 660 compared, "* ]]
    kaio-emit "$saxpy" | kaio-run -d cpu n=1003 x=@normal:1 y=@normal:2:y.npy alpha=2.5
    run -0 kaio-verify "$saxpy" x=@normal:1 y=@normal:2:y.npy alpha=2.5
    run -1 kaio-verify "$saxpy" x=@normal:1 y=@normal:2:y.npy alpha=2.4
    run -2 kaio-verify "$saxpy" n=1000 x=@normal:1 y=@normal:2:y.npy alpha=2.5
    [[ "$output" == *"1003"*"1000"* || "$output" == *"1000"*"1003"* ]]
    run -2 kaio-verify "$saxpy" n=1003 x=@normal:1 y=@normal:2 alpha=2.5
    [[ "$output" == *"no output is given"* ]]
}
