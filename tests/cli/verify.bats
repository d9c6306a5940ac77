# kaio-verify: what passes, what fails, and what it says.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    specs=$KAIO_SRCDIR/specs
    saxpy=$specs/elementwise/saxpy.yaml
}

# A vector of floats as raw bytes: f32s 1 2.5 -3
f32s() {
    for v in "$@"; do
        case $v in
        0) printf '\0\0\0\0' ;;
        1) printf '\0\0\200\077' ;;
        2) printf '\0\0\0\100' ;;
        3) printf '\0\0\100\100' ;;
        4) printf '\0\0\200\100' ;;
        5) printf '\0\0\240\100' ;;
        7) printf '\0\0\340\100' ;;
        nan) printf '\0\0\300\177' ;;
        esac
    done
}

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

@test "run: every case of a spec, then a count" {
    run -0 kaio-verify --run -d cpu "$saxpy"
    [ "${lines[0]}" = "PASS     saxpy/one exact  y f32[1]: 1 compared, all equal" ]
    [[ "$output" == *"SKIP     saxpy/large"* ]]
    [ "${lines[-1]}" = "20 passed, 0 failed, 2 skipped" ]
}

@test "run: a case may have no rows, or no columns" {
    printf 'kernel: sums\nparams:\n  x: in f32[n, m]\n  y: out f32[n]\ncompute: |\n  y[i] = sum[k](x[i, k])\ncases:\n' >sums.yaml
    printf '  no_rows: {n: 0, m: 5}\n  no_columns: {n: 3, m: 0}\n' >>sums.yaml
    run -0 kaio-verify --run -d cpu --fill=exact sums.yaml
    [ "${lines[0]}" = "SKIP     sums/no_rows exact  nothing to compare: 'y' is empty" ]
    [ "${lines[1]}" = "PASS     sums/no_columns exact  y f32[3]: 3 compared, all equal" ]
    run -0 --separate-stderr kaio-bench --dry-run sums.yaml
    [[ $stderr$output == *"n=0 m=5 "*"nothing is launched"*"n=3 m=0 "* ]]
}

@test "run: cases by name, values by hand, several specs" {
    run -0 kaio-verify --run -d cpu "$saxpy" "$specs/elementwise/relu.yaml" n33 one
    [ "${lines[-1]}" = "16 passed, 0 failed, 0 skipped" ]
    run -0 kaio-verify --run -d cpu "$saxpy" n=77 alpha=-1.5 --repeat
    [[ "$output" == *"saxpy/n=77 alpha=-1.5 normal"* ]]
    run -2 kaio-verify --run -d cpu "$saxpy" n33 nothing
    [[ "$output" == *"no spec has a case 'nothing'"* ]]
    run -2 kaio-verify --run -d cpu "$saxpy" m=77
    [[ "$output" == *"'saxpy' has no dimension or scalar 'm'"* ]]
    run -2 kaio-verify --run -d cpu missing.yaml
    run -2 kaio-verify --run -d tpu "$saxpy"
    run -2 kaio-verify --run -d cpu -t sm_1 "$saxpy"
}

@test "run: where -D fixes all dimensions there is one problem, with and without cases" {
    for cases in 's/x/x/' '/^cases:/,$d'; do
        sed "$cases" "$KAIO_SRCDIR/specs/matmul/nn.yaml" >nn.yaml
        run -0 kaio-verify -d cpu --run --types T=f32 -D m=5 -D n=6 -D k=7 nn.yaml
        [[ $output == *"PASS     matmul_nn/m=5 k=7 n=6 T=f32 fixed exact"* && $output == *"2 passed, 0 failed"* ]]
        run -0 kaio-verify -d cpu --run --list -D m=5 -D n=6 -D k=7 nn.yaml
        [ "$output" = "matmul_nn  m=5 k=7 n=6  210 terms" ]
    done
    # one that is open is chosen
    run -0 kaio-verify -d cpu --run --list -D m=5 -D n=6 nn.yaml
    [[ $output == "kaio-verify: 'matmul_nn' has no cases: it is run with small sizes (k=5), odd sizes (k=33), "* ]]
    # a scalar that only the cases say is theirs
    printf 'kernel: s\nparams: {a: f32, x: "in f32[n]", y: "out f32[n]"}\ncompute: y[i] = a * x[i]\ncases: {c: {n: 9, a: 2}}\n' >s.yaml
    run -0 kaio-verify -d cpu --run -D n=9 s.yaml
    [[ $output == *"PASS     s/c fixed exact"* && $output == *"2 passed, 0 failed"* ]]
    sed -i '/^cases:/d' s.yaml
    run -2 kaio-verify -d cpu --run -D n=9 s.yaml
    [[ $output == *"a is not given; give a=VALUE"* ]]
    run -2 kaio-verify -d cpu --run -D n=9 -D n=8 s.yaml
    [[ $output == *"'n' is given twice"* ]]
    # what the command line names goes before it
    run -2 kaio-verify -d cpu --run -D m=5 -D n=6 -D k=7 "$KAIO_SRCDIR/specs/matmul/nn.yaml" one
    [[ $output == *"m is fixed at 5 in this PTX, but case 'one' says m=1"* ]]
}

@test "run: a sample makes a large case small" {
    run -0 kaio-verify --run -d cpu --sample=50 "$specs/layout/transpose.yaml" mid
    [[ "$output" == *"compared (a sample of 100487)"* ]]
}

@test "run: all fills" {
    for fill in exact normal uniform edge extreme; do
        run -0 kaio-verify --run -d cpu --fill=$fill "$saxpy" "$specs/elementwise/gelu.yaml" \
            "$specs/gather/embedding.yaml" "$specs/matmul/naive.yaml" "$specs/quant/int8_dequant.yaml" n33
        [ "${lines[-1]}" = "10 passed, 0 failed, 0 skipped" ]
    done
}

@test "run: a case's types have kernels of their own" {
    cat >typed.yaml <<'END'
kernel: k
types: {T: [f16, f32]}
params:
  x: in T[n]
  y: out T[n]
compute: |
  y[i] = 1.1 * x[i]
cases:
  first: {n: 5}
  wide: {T: f32, n: 5}
  again: {n: 6}
END
    run -0 kaio-verify --run -d cpu --code=generic typed.yaml
    [[ ${lines[0]} == "PASS     k/first normal  y f16[5]"* ]]
    [[ ${lines[1]} == "PASS     k/wide normal  y f32[5]"* ]]
    [[ ${lines[2]} == "PASS     k/again normal  y f16[6]"* ]]
    run -0 kaio-verify --run -d cpu --code=generic -D T=f16 typed.yaml
    [[ ${lines[1]} == "SKIP     k/wide "*"-D chooses another type than the case" ]]
    run -0 kaio-verify --run -d cpu --code=generic -D T=f32 typed.yaml
    [[ ${lines[0]} == "PASS     k/first normal  y f32[5]"* ]]
    [[ ${lines[3]} == "3 passed, 0 failed, 0 skipped" ]]
    run -0 kaio-verify --run -d cpu --format=json -D T=f16 typed.yaml first
    [[ $output == *" -D T=f16 "* ]]
    printf '\0\0' >x.bin
    cp x.bin y.bin
    run -0 kaio-verify -D T=f16 typed.yaml n=1 x=x.bin y=y.bin
    run -2 kaio-verify -D T=f32 typed.yaml n=1 x=x.bin y=y.bin
}

@test "run: a wrong kernel fails, with the command that repeats it" {
    kaio-emit "$saxpy" | sed -E 's/(fma\.rn\.f32 .*), (%f[0-9]+), %f[0-9]+;/\1, \2, \2;/' >wrong.ptx
    run -1 kaio-verify --run -d cpu --ptx wrong.ptx --seed=9 "$saxpy" n33
    [[ "$output" == *"repeat: kaio-verify --run -d cpu -t sm_80 --seed=9 --fill=exact --ptx=wrong.ptx --kernel=saxpy "*" n33"* ]]
    command=$(sed -n 's/^ *repeat: //p' <<<"$output" | head -1)
    run -1 bash -c "$command"
    [[ "${lines[0]}" == "FAIL     saxpy/n33 exact"* ]]
}

@test "run: an element that is never written shows" {
    kaio-emit "$specs/elementwise/saxpy_body.yaml" >good.ptx
    run -0 kaio-verify --run -d cpu --ptx good.ptx "$specs/elementwise/saxpy_body.yaml" n33
    cat >halves.yaml <<'YAML'
kernel: halves
params:
  x: in f32[n]
  y: out f32[n]
block: 32
grid: ceil_div(n, 64)
body: |
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[i];
reference: |
  y[i] = x[i]
cases:
  small: {n: 64}
YAML
    run -1 kaio-verify --run -d cpu halves.yaml
    [[ "${lines[0]}" == "FAIL     halves/small exact  y f32[64]: 32 of 64 wrong"* ]]
    [[ "$output" == *"    ................................################################"* ]]
}

@test "run: a fault of the kernel is a failure" {
    cat >beyond.yaml <<'YAML'
kernel: beyond
params:
  x: in f32[n]
  y: out f32[n]
block: 32
grid: ceil_div(n, 32)
body: |
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
reference: |
  y[i] = x[i]
cases:
  small: {n: 33}
YAML
    run -1 --separate-stderr kaio-verify --run -d cpu beyond.yaml
    [[ "${lines[0]}" == "FAIL     beyond/small exact"* ]]
    [[ "$stderr" == *"x"* ]]
}

@test "run: a tolerance of rounding is not a licence" {
    cat >sum.yaml <<'YAML'
kernel: sums
params:
  x: in f32[r, c]
  y: out f32[r]
block: 32
grid: ceil_div(r, 32)
body: |
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < r) {
    f32 s = 0.0f;
    for (u32 j = 0; j + 1 < c; ++j)
      s += x[i, j];
    y[i] = s;
  }
reference: |
  y[i] = sum[j](x[i, j])
cases:
  small: {r: 40, c: 100}
YAML
    run -1 kaio-verify --run -d cpu sum.yaml
    [[ "$output" == *"FAIL     sums/small exact"* ]]
    [[ "$output" == *"FAIL     sums/small normal"* ]]
    sed -i 's/j + 1 < c/j < c/' sum.yaml
    run -0 kaio-verify --run -d cpu sum.yaml
}

@test "run: TAP, JSON and JUnit" {
    run -0 kaio-verify --run -d cpu --code=generic --format=tap "$saxpy" n31
    [ "${lines[0]}" = "TAP version 14" ]
    [ "${lines[1]}" = "ok 1 - saxpy/n31 exact y f32[31]: 31 compared, all equal" ]
    [ "${lines[-1]}" = "1..2" ]
    run -0 --separate-stderr kaio-verify --run -d cpu --format=json "$saxpy" n31
    [[ "${lines[0]}" == '{"status": "PASS", "kernel": "saxpy", "test": "saxpy/n31", '* ]]
    if command -v python3 >/dev/null; then
        python3 -c 'import json, sys; [json.loads(l) for l in sys.stdin]' <<<"$output"
    fi
    run -0 --separate-stderr kaio-verify --run -d cpu --code=fixed --format=junit "$saxpy" n31
    [[ "${lines[0]}" == '<?xml version="1.0"'* ]]
    [[ "${lines[1]}" == '<testsuites name="kaio-verify" tests="2" failures="0" errors="0" skipped="0"'* ]]
}

@test "run: without a GPU -d cuda exits 77" {
    run kaio-verify --run -d cuda "$saxpy" n31
    [ "$status" = 77 ] || { [ "$status" = 0 ] && [[ "${lines[0]}" == PASS* ]]; }
}

@test "run: KAIO_DEVICE is the default of -d" {
    KAIO_DEVICE=cpu run -0 --separate-stderr kaio-verify --run "$saxpy" n31
    [ "$stderr" = "" ]
    KAIO_DEVICE=x run -2 kaio-verify --run "$saxpy" n31
    [ "${lines[0]}" = "kaio-verify: error: KAIO_DEVICE: 'x' is not auto, cuda, cuda:N or cpu" ]
    KAIO_DEVICE=x run -0 kaio-verify --run -d cpu "$saxpy" n31
    run -2 kaio-verify --run -d x "$saxpy" n31
    [ "${lines[0]}" = "kaio-verify: error: --device: 'x' is not auto, cuda, cuda:N or cpu" ]
}

@test "the whole library passes on the simulator" {
    [ -z "${KAIO_QUICK-}" ] || skip "check.bats runs it with all checks"
    run -0 kaio-verify --run -d cpu "$specs"/*/*.yaml "$KAIO_SRCDIR"/tests/data/bodies/*.yaml
    [[ "${lines[-1]}" == *" passed, 0 failed, "* ]]
}

@test "the whole library passes for the oldest target" {
    run -0 kaio-verify --run -d cpu ${KAIO_QUICK:+--code=generic} -t sm_70 "$specs"/*/*.yaml n1000
    [[ "${lines[-1]}" == *" passed, 0 failed, "* ]]
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

# one kernel a function: kernel NAME TYPE EXPRESSION [MATH]
kernel() {
    printf -- '---\nkernel: k_%s_%s\nparams:\n  x: in %s[n]\n  y: in %s[n]\n  z: out %s[n]\n' "$1" "$2" "$2" "$2" "$2"
    [ -z "$4" ] || echo "math: $4"
    printf 'compute: |\n  z[i] = y[i] == 77 ? 0 : %s\ncases:\n  c: {n: 2000}\n' "$3"
}

@test "every function is within its documented error, in f32 and f64" {
    for type in f32 f64; do
        for f in exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan sinpi cospi tanh sinh cosh asin acos atan \
            asinh acosh atanh sqrt rsqrt cbrt rcp erf erfc sigmoid silu gelu gelu_tanh relu abs floor ceil trunc round rint; do
            kernel $f $type "$f(x[i])"
        done
        for f in atan2 pow fmod hypot copysign min max; do
            kernel $f $type "$f(x[i], y[i])"
        done
        kernel div $type "x[i] / y[i]"
        kernel third $type "x[i] / 3"
        kernel part $type "x[i] / 4194303 + y[i] / 768"
        kernel mix $type "exp(sin(x[i]) * 3 + y[i]) / (1 + abs(x[i] * y[i]))"
    done >functions.yaml
    for fill in normal edge; do
        run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=$fill functions.yaml
        [ "${lines[-1]}" = "100 passed, 0 failed, 0 skipped" ]
    done
}

@test "a subnormal quotient halfway between two goes to the even one where math is strict, to any of both else" {
    quotient() { # MATH: 9 of the least subnormal number, by 6
        printf 'kernel: k\nparams:\n  x: in f32[n]\n  y: out f32[n]\ncompute: |\n  y[i] = x[i] / 6\nmath: %s\n' "$1" >k.yaml
        kaio-emit k.yaml >k.ptx
        kaio-run -q -d cpu k.ptx n=1 x=@const:1.2611687e-44 y=y.npy
        tail -c +129 y.npy | od -An -v -tx4
    }
    [ "$(quotient strict)" = ' 00000002' ]
    [[ "$(quotient default)" = ' 0000000'[12] ]]
}

@test "the hardware's approximations are within the manual's bounds" {
    for f in exp exp2 log log2 log10 sin cos tan tanh sqrt rsqrt rcp sigmoid silu gelu_tanh; do
        kernel $f f32 "$f(x[i])" fast
    done >fast.yaml
    kernel pow f32 "pow(abs(x[i]), y[i])" fast >>fast.yaml
    kernel mix f32 "exp(sin(x[i]) * 3 + y[i]) / (1 + abs(x[i] * y[i]))" fast >>fast.yaml
    run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=normal fast.yaml
    [ "${lines[-1]}" = "17 passed, 0 failed, 0 skipped" ]
    run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=edge fast.yaml
}

@test "narrow floats round as they should" {
    for type in f16 bf16 e4m3 e5m2; do
        kernel mix $type "silu(x[i]) * y[i] + 0.5"
        kernel div $type "x[i] / y[i]"
        for f in exp exp2 tanh erf sigmoid silu gelu gelu_tanh; do
            kernel $f $type "$f(x[i])"
            kernel ${f}_scaled $type "(y[i] < 0 ? $f(x[i]) : -abs($f(y[i]))) * x[i] / y[i]"
        done
    done >narrow.yaml
    for fill in normal uniform edge; do
        run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=$fill narrow.yaml
    done
}

@test "a reference need not say which calls are rounded to 16 bits at once" {
    cat >body.yaml <<'END'
kernel: t
params:
  x: in f16[n]
  y: out f16[n]
grid: ceil_div(n, 256)
block: 256
body: |
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = f16(gelu(x[i]));
reference: |
  g[i] = gelu(x[i])
  y[i] = g[i]
cases:
  c: {n: 20000}
END
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=normal body.yaml
    # and the bound still has teeth: half an ulp and a little more
    [[ "${lines[0]}" =~ "PASS " ]]
}

@test "the emitter and the reference agree on every construct" {
    for fill in exact normal uniform edge; do
        run -0 --separate-stderr kaio-verify --run -d cpu --fill=$fill "$KAIO_SRCDIR/tests/data/constructs.yaml"
        [ "${lines[-1]}" = "58 passed, 0 failed, 0 skipped" ]
    done
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

@test "a fault in the simulator names the line of the spec, once for each row" {
    cd "$BATS_TEST_TMPDIR"
    cat >over.yaml <<'END'
kernel: over
params:
  x: in f32[n]
  y: out f32[n]
block: 32
grid: ceil_div(n, 32)
body: |
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] =
    x[i + 1];
reference: |
  y[i] = x[i]
cases: {a: {n: 32}}
END
    run -1 --separate-stderr kaio-verify --run -d cpu --code=generic over.yaml
    [ "${#lines[@]}" = 5 ]
    [ "$(grep -c "error: kernel 'over': load of 4 bytes at element 32 of 'x'" <<<"$stderr")" = 2 ]
    [ "$(grep -c '^over.yaml:10:5: note: this is where this instruction comes from' <<<"$stderr")" = 2 ]
}

@test "shapes: the same for the same seed, others for another, each with the command that repeats it" {
    run -0 kaio-verify --run --list --shapes=6 --kernel=layer_norm "$KAIO_SRCDIR/tests/bound/honest.yaml"
    first=$output
    [ "${lines[0]%%  *}" = layer_norm ]
    [[ "${lines[0]}" == *" rows=1 cols=1 "* ]]
    [[ "${lines[1]}" == *"=0 "* ]]
    run -0 kaio-verify --run --list --shapes=6:1 --kernel=layer_norm "$KAIO_SRCDIR/tests/bound/honest.yaml"
    [ "$output" = "$first" ]
    run -0 kaio-verify --run --list --shapes=6:2 --kernel=layer_norm "$KAIO_SRCDIR/tests/bound/honest.yaml"
    [ "$output" != "$first" ]
    kaio-emit --kernel=layer_norm "$KAIO_SRCDIR/tests/bound/honest.yaml" | sed 's/sub\(.*\)\.f32/add\1.f32/' >wrong.ptx
    run -1 kaio-verify --run -d cpu --shapes=6 --ptx=wrong.ptx --kernel=layer_norm "$KAIO_SRCDIR/tests/bound/honest.yaml"
    row=$(grep -m1 ^FAIL <<<"$output")
    command=$(grep -m1 -o 'kaio-verify --run .*' <<<"$output")
    [[ "$command" == *" rows="*" cols="* ]]
    run -1 bash -c "$command"
    [ "${lines[0]}" = "$row" ]
}

@test "shapes: requirements hold, values that are given stay, edges of tiles are met" {
    cat >fours.yaml <<'YAML'
kernel: fours
params:
  x: in f32[rows, cols]
  y: out f32[rows, cols]
require: [cols % 4 == 0]
compute: |
  y[r, c] = x[r, c] * 2
YAML
    run -0 kaio-verify --run --list --shapes=60 fours.yaml
    while read -r _ rows cols _; do
        [ $((${cols#cols=} % 4)) = 0 ]
        [ "${rows%=*}" = rows ]
    done <<<"$output"
    [[ "$output" == *" cols=0 "* && "$output" == *" rows=0 "* ]]
    old=$KAIO_SRCDIR/tests/bound/honest.yaml
    run -0 kaio-verify --run --list --shapes=9 --kernel=layer_norm "$old" cols=300
    [ "$(grep -c ' cols=300 ' <<<"$output")" = 9 ]
    run -0 kaio-verify --run --list --shapes=80 --kernel=layer_norm "$old"
    [[ "$output" == *=127" "* && "$output" == *=129" "* && "$output" == *=128" "* ]]
    cat >never.yaml <<'YAML'
kernel: never
params:
  x: in f32[n]
  y: out f32[n]
require: [n > 3000000000]
compute: |
  y[i] = x[i]
YAML
    run -2 kaio-verify --run -d cpu --shapes=3 never.yaml
    [[ "$output" == *"no shape tried for 'never' will do: the kernel requires n > 3000000000, but n is "* ]]
    run -2 kaio-verify --run -d cpu --shapes=3 --kernel=layer_norm "$old" cols=300 bold=3
    [[ "$output" == *"no shape tried for 'layer_norm' will do: 'layer_norm' has no dimension or scalar 'bold'"* ]]
    run -2 kaio-verify --run -d cpu --shapes=3 --kernel=layer_norm "$old" cols=300000000
    [[ "$output" == *" is too large"* ]]
}

@test "shapes: every type of the spec, or those of --types" {
    cat >typed.yaml <<'YAML'
kernel: typed
types: {T: [f16, bf16, f32], U: [i32, u8]}
params:
  x: in T[n]
  u: in U[n]
  y: out T[n]
compute: |
  y[i] = T(f32(x[i]) * 0.5 + f32(u[i] & 7))
cases:
  small: {n: 20}
  typed: {n: 20, T: f32}
YAML
    run -0 kaio-verify --run --list --shapes=1 typed.yaml
    [ "${#lines[@]}" = 6 ]
    run -0 kaio-verify --run -d cpu --shapes=3 --fill=normal typed.yaml
    for t in f16 bf16 f32; do
        [[ "$output" == *"PASS     typed/n=1 T=$t U=u8 normal"* ]]
    done
    run -0 kaio-verify --run -d cpu --shapes=1 --types=T=f16,f32 typed.yaml
    [[ "$output" != *bf16* && "$output" == *"T=f32"* && "$output" != *U=* ]]
    run -0 kaio-verify --run -d cpu --shapes=1 -D T=f32 typed.yaml
    [[ "$output" != *f16* ]]
    run -0 kaio-verify --run -d cpu --types=all typed.yaml small
    [ "${lines[-1]}" = "24 passed, 0 failed, 0 skipped" ]
    [[ "$output" == *"typed/small T=bf16 U=i32 normal"* ]]
    # a case with a type of its own is run with that one
    run -0 kaio-verify --run -d cpu --types=T=all typed.yaml typed
    [ "${lines[-1]}" = "4 passed, 0 failed, 0 skipped" ]
    [[ "$output" == *"typed/typed T=f32 exact"* ]]
    run -2 kaio-verify --run -d cpu --types=T=f64 typed.yaml
    [[ "$output" == *"--types: 'T' is one of f16, bf16, f32, not f64"* ]]
    run -2 kaio-verify --run -d cpu --types=V=f16 typed.yaml
    [[ "$output" == *"--types: no kernel has a type 'V'"* ]]
}

@test "shapes: a kernel that fails at one edge of its tile alone is found" {
    cat >edge.yaml <<'YAML'
kernel: edge
params:
  x: in f32[n]
  y: out f32[n]
block: 96
grid: ceil_div(n, 96)
body: |
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && (n % 96 != 1 || i + 1 < n))
    y[i] = x[i] * 2.0f;
reference: |
  y[i] = x[i] * 2.0
cases:
  fine: {n: 1000}
YAML
    run -0 kaio-verify --run -d cpu edge.yaml
    run -1 kaio-verify --run -d cpu --shapes=40 --fail-fast edge.yaml
    [[ "$output" == *"FAIL     edge/n="* ]]
}

@test "shapes: an output of which nothing is proved is an error" {
    cat >zero.yaml <<'YAML'
kernel: zero
params:
  x: in f32[n]
  z: out f32[n]
compute: |
  z[i] = x[i] * 0
YAML
    run -1 kaio-verify --run -d cpu --shapes=8 --fill=normal zero.yaml n=5
    [[ "$output" == *"no shape proved anything of 'z'"* ]]
}

@test "shapes, types and fills: what is no such thing" {
    for bad in --shapes=0 --shapes=x --shapes= --shapes=3: --shapes=3:x --shapes=-1 --shapes=99999999999 \
        --types=f16 --types= --types==f16 --types=T= '--types=T=f16,' --types=T=,f16 --types=T=half3 \
        --fill= '--fill=exact,' --fill=,exact --fill=exactly --fill=exact:1 --depth=-1 --depth=x --truncation=-1 --products=x; do
        run -2 kaio-verify --run -d cpu $bad "$saxpy" n31
        [[ "${lines[0]}" == "kaio-verify: error: --"* ]]
    done
    run -2 kaio-verify --run -d cpu --shapes=2 "$saxpy" n31
    [[ "$output" == *"not with the case 'n31'"* ]]
    run -2 kaio-verify --shapes=2 "$saxpy" x=1
    run -2 kaio-verify --run -d cpu --types=all --ptx=x.ptx "$saxpy"
    run -0 kaio-verify --run -d cpu --fill=edge,exact,exact "$saxpy" n31
    [ "${lines[-1]}" = "4 passed, 0 failed, 0 skipped" ]
}

@test "shapes: the library passes, and the sanitizer finds nothing" {
    shapes=3
    [ -z "${KAIO_QUICK-}" ] || shapes=1
    run -0 --separate-stderr kaio-verify --run -d cpu --shapes=$shapes:7 "$specs"/*/*.yaml
    run -0 --separate-stderr kaio-verify --run -d cpu --check --shapes=1:8 --fill=normal "$specs"/norm/*.yaml \
        "$specs"/reduce/*.yaml "$specs"/elementwise/*.yaml
}

@test "equations may call functions of variables, if and return" {
    cat >calls.yaml <<'YAML'
kernel: calls
params:
  x: in f32[n]
  y: out f32[n + 6]
  z: out f32[n]
functions: |
  i64 mirror(i64 i, i64 n) {
    if (i < 0) return -i;
    if (i >= n) return 2 * n - 2 - i;
    return i;
  }
  f32 twice(f32 a) {
    f32 b = a;
    b += a;
    if (b > 1.0f) { b = b * 0.5f; } else b = -b;
    return b;
  }
  f32 fold(f32 a) { return twice(twice(a)) + twice(a); }
compute: |
  y[i] = x[mirror(i - 3, n)]
  z[i] = fold(x[i] * 0.7)
cases:
  a: {n: 40}
---
kernel: written_out
params:
  x: in f32[n]
  z: out f32[n]
compute: |
  a[i] = x[i] * 0.7
  b[i] = a[i] + a[i] > 1 ? (a[i] + a[i]) * 0.5 : -(a[i] + a[i])
  c[i] = b[i] + b[i] > 1 ? (b[i] + b[i]) * 0.5 : -(b[i] + b[i])
  z[i] = c[i] + b[i]
cases:
  a: {n: 40}
YAML
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=normal,edge,extreme calls.yaml
    # the reference of the one is that of the other
    kaio-run -d cpu <(kaio-emit <(sed '/^---/,$d' calls.yaml) 2>/dev/null) n=40 x=@normal:3 y=y.npy z=z.npy
    run -0 --separate-stderr kaio-verify --kernel=written_out calls.yaml x=@normal:3 z=z.npy
    # too long to be written out in the equation
    cat >long.yaml <<'YAML'
kernel: lengthy
params:
  x: in f32[n]
  ids: in i64[n]
  y: out f32[n]
  k: out i64[n]
functions: |
  f32 often(f32 a) {
    f32 b = a;
    b = b * b + a; b = b * b - a; b = b * b + a; b = b * b - 0.5f;
    b = b * 0.5f + b * a; b = b * 0.5f + b * a; b = b * 0.5f + b * a; b = b * 0.5f + b * a;
    b = b * 0.5f + b * a; b = b * 0.5f + b * a; b = b * 0.5f + b * a; b = b * 0.5f + b * a;
    return b;
  }
  i64 bits(i64 a) {
    i64 b = a;
    b <<= 3u; b ^= a; b += b; b ^= b >> 2; b += b; b ^= b >> 5; b += b; b ^= b >> 3; b += b; b ^= b >> 7; b >>= 1u;
    b += b; b ^= b >> 1; b += b; b ^= b >> 1;
    return b;
  }
compute: |
  y[i] = often(x[i])
  k[i] = bits(ids[i])
cases:
  a: {n: 40}
YAML
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=uniform long.yaml
    sed 's/f32 b = a;/f32 b = a; for (u32 i = 0; i < 3; i++) b = b * a;/' calls.yaml >loop.yaml
    run -2 kaio-verify --run -d cpu --kernel=calls loop.yaml
    [[ "$output" == *"the reference can't follow 'twice': it knows variables, if and return alone"* ]]
}

@test "a failure says where: the picture, and the indices in each dimension" {
    cat >where.yaml <<'YAML'
kernel: plane
params:
  x: in f32[a, b, c]
  y: out f32[a, b, c]
block: 64
grid: ceil_div(a * b * c, 64)
body: |
  u32 i = blockIdx.x * 64 + threadIdx.x;
  if (i < a * b * c) y[i] = i / c % b == 3 ? 0.0f : x[i];
reference: |
  y[i, j, k] = x[i, j, k]
---
kernel: scalar
params:
  x: in f32[a]
  y: out f32[]
block: 1
grid: 1
body: |
  y = x[0] + 1.0f;
reference: |
  y = x[0]
---
kernel: line
params:
  x: in f32[a]
  y: out f32[a]
block: 64
grid: ceil_div(a, 64)
body: |
  u32 i = blockIdx.x * 64 + threadIdx.x;
  if (i < a) y[i] = i % 100 == 7 ? 0.0f : x[i];
reference: |
  y[i] = x[i]
YAML
    run -1 kaio-verify --run -d cpu --fill=normal --kernel=plane where.yaml a=5 b=7 c=20
    [ "${lines[1]%%:*}" = "    [0, 3, 0]" ]
    [[ "$output" == *"    all in [0..4, 3, 0..19]"* ]]
    run -1 kaio-verify --run -d cpu --fill=normal --kernel=scalar where.yaml a=5
    [[ "${lines[1]}" == "    []: got "* ]]
    [[ "$output" != *"where ("* && "$output" != *"all in"* ]]
    # so many that several threads compare
    run -1 kaio-verify --run -d cpu --fill=normal --kernel=line where.yaml a=1000000
    [[ "$output" == *"    all in [7..999907 step 100]"* ]]
    run -1 --separate-stderr kaio-verify --run -d cpu --fill=normal --format=json --kernel=plane where.yaml a=5 b=7 c=20
    [[ "$output" == *'"within": "0..4, 3, 0..19"'* ]]
}

@test "a depth that is none is an error, whatever the shape" {
    cat >deep.yaml <<'YAML'
kernel: deep
params:
  x: in f32[n]
  y: out f32[1]
block: 64
grid: 1
depth: 10 / (n - 1) - 3
body: |
  u32 i = threadIdx.x;
  f32 t = block_sum(i < n ? x[i] : 0.0f);
  if (i == 0) y[0] = t;
reference: |
  y[i < 1] = sum[j](x[j])
YAML
    run -0 kaio-verify --run -d cpu --fill=normal deep.yaml n=3
    run -2 kaio-verify --run -d cpu --fill=normal deep.yaml n=5
    [[ "$output" == *"the depth of the sums is negative: 10 / (n - 1) - 3 is -1, n is 5"* ]]
    run -2 kaio-verify --run -d cpu --shapes=5 deep.yaml n=1
    [[ "$output" == *"division by zero"* ]]
    run -0 kaio-verify --run -d cpu --fill=normal --code=generic --depth=6 deep.yaml n=5
    run -2 kaio-verify --golden --depth=6 deep.yaml deep.yaml
}

@test "repeat: so many times more" {
    run -0 kaio-verify --run -d cpu --repeat=5 --fill=normal "$saxpy" n31
    run -2 kaio-verify --run -d cpu --repeat=0 "$saxpy" n31
    run -2 kaio-verify --run -d cpu --repeat=x "$saxpy" n31
    kaio-emit "$specs/elementwise/relu.yaml" | sed 's/max.f32/min.f32/' >wrong.ptx
    run -1 --separate-stderr kaio-verify --run -d cpu --repeat=3 --fill=exact --ptx=wrong.ptx "$specs/elementwise/relu.yaml" n=9
    [[ "$output" == *"repeat: kaio-verify "*" --repeat=3 "* ]]
}

@test "of what is too large, a sample is evaluated, and the report says so" {
    cat >large.yaml <<'YAML'
kernel: large
params:
  x: in i8[n]
  y: out i8[n, n]
compute: |
  y[i, j] = i8(sum[l < 100](i32(x[i]) * i32(x[j]) * (x[l] > 3 ? 1 : 0)) & 7)
YAML
    truncate -s 67108864 y.bin
    run -1 kaio-verify large.yaml x=@randint:-50:50 n=8192 y=y.bin
    [[ "${lines[0]}" == *"wrong (a sample of 67108864)"* ]]
    truncate -s 65536 y.bin
    run -1 kaio-verify large.yaml x=@randint:-50:50 n=256 y=y.bin
    [[ "${lines[0]}" == *" of 65536 wrong"* ]]
}
