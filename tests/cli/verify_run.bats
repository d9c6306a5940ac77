# kaio-verify --run: what passes, what fails, and what it says.
bats_require_minimum_version 1.5.0
load verify

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

@test "the whole library passes for the oldest target" {
    run -0 kaio-verify --run -d cpu ${KAIO_QUICK:+--code=generic} -t sm_70 "$specs"/*/*.yaml n1000
    [[ "${lines[-1]}" == *" passed, 0 failed, "* ]]
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

@test "of attention, a sample is whole rows: all columns of each, and the report says how many" {
    cat >attention.yaml <<'YAML'
kernel: attention
params:
  q: in f16[m, d]
  k: in f16[n, d]
  v: in f16[n, d]
  o: out f32[m, d]
  lse: out f32[m]
compute: |
  s[i, j] = j <= i + (n - m) ? sum[c](q[i, c] * k[j, c]) : -inf
  top[i] = max[j](s[i, j])
  p[i, j] = exp(s[i, j] - top[i])
  total[i] = sum[j](p[i, j])
  o[i, c] = sum[j](f16(p[i, j]) * v[j, c]) / total[i]
  lse[i] = top[i] + log(total[i])
YAML
    run -0 kaio-verify --run -d cpu --code=generic --sample=80 attention.yaml m=200 n=300 d=4
    [[ "${lines[0]}" == PASS*"o f32[200, 4]: 80 compared (a sample of 800: 20 rows)"* ]]
    [[ "${lines[1]}" == PASS*"lse f32[200]: 20 compared (a sample of 200: 20 rows)"* ]]
    run -0 kaio-verify --run -d cpu --code=generic --sample=1 attention.yaml m=200 n=300 d=4
    [[ "${lines[0]}" == PASS*"64 compared (a sample of 800: 16 rows)"* ]]
    run -0 kaio-verify --run --list --sample=80 attention.yaml m=20000 n=30000 d=64
    [[ "$output" == *" 6.29e+07 terms" ]]
    truncate -s 3200 o.bin
    run -1 kaio-verify --sample=80 attention.yaml q=@normal k=@normal v=@normal m=200 n=300 d=4 o=o.bin
    [[ "${lines[0]}" == *"80 of 80 wrong (a sample of 800: 20 rows)"* ]]
}
