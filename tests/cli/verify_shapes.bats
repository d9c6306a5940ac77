# kaio-verify --shapes: shapes that nobody chose.
bats_require_minimum_version 1.5.0
load verify

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

@test "shapes: an intermediate that is judged for an output's sake need not prove anything" {
    cat >pair.yaml <<'YAML'
kernel: pair
params:
  a: in bf16[m, k]
  b: in bf16[k, n]
  y: out f32[]
compute: |
  s[i, j] = sum[c](a[i, c] * b[c, j])
  y = sum[i, j](sigmoid(s[i, j]))
YAML
    run -0 kaio-verify --run -d cpu --seed=8 --code=generic --shapes=1 --fill=normal,extreme pair.yaml
    [[ "$output" == *"SKIP     pair/m=1 k=1 n=1 extreme  's' proves nothing here"* ]]
    [[ "$output" == *"PASS     pair/m=1 k=1 n=1 extreme  y f32[]: 1 compared, "*"from the kernel's own s"* ]]
    # where each is asked for, it must
    run -1 kaio-verify --run -d cpu --steps --seed=8 --code=generic --shapes=1 --fill=extreme pair.yaml
    [[ "$output" == *"no shape proved anything of 's'"* ]]
}

@test "shapes: the library passes, and the sanitizer finds nothing" {
    shapes=3
    [ -z "${KAIO_QUICK-}" ] || shapes=1
    # shellcheck disable=SC2207
    most=($(printf '%s\n' "$specs"/*/*.yaml | grep -v /attention/))
    run -0 --separate-stderr kaio-verify --run -d cpu --shapes=$shapes:7 --code=fixed --fill=exact,normal "${most[@]}"
    run -0 --separate-stderr kaio-verify --run -d cpu --shapes=$(((shapes + 1) / 2)):7 --code=generic "${most[@]}"
    # each of these takes as long as twenty others
    run -0 --separate-stderr kaio-verify --run -d cpu --shapes=1:7 "$specs"/attention/{forward,causal,decode,backward_dkv}.yaml
    run -0 --separate-stderr kaio-verify --run -d cpu --check --shapes=1:8 --fill=normal "$specs"/norm/*.yaml \
        "$specs"/reduce/*.yaml "$specs"/elementwise/*.yaml
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
