# kaio-verify: which cases and which shapes are run.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
}

@test "a shared array without a size may have no byte" {
    cat >tail.yaml <<'YAML'
kernel: tail
params:
  x: in f32[n]
  y: out f32[n]
block: 32
grid: ceil_div(n, 32)
shared: 4 * n + 4 * n
body: |
  shared f32 s[n], t[];
  u32 i = blockIdx.x * 32 + threadIdx.x;
  for (u32 k = threadIdx.x; k < n; k += 32) { s[k] = x[k]; t[k] = x[k]; }
  __syncthreads();
  if (i < n) y[i] = s[n - 1 - i] - 2.0f * t[i];
reference: |
  y[i] = x[n - 1 - i] - 2 * x[i]
YAML
    run -0 kaio-verify --run -d cpu --check --fill=exact --shapes=5 tail.yaml
    [[ $output == *"SKIP     tail/n=0 exact  nothing to compare: 'y' is empty"* ]]
    sed 's/^shared:.*/shared: m/; s/s\[n\], //; s/s\[k\] = x\[k\]; //; s/ t\[k\] = x\[k\];/ if (k < m \/ 4) t[k] = x[k];/; s/y\[i\] = .*/y[i] = x[i];/' \
        tail.yaml | sed 's/^  y: .*/&\n  m: u32/; s/^  y\[i\].*/  y[i] = x[i]/' >bytes.yaml
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=exact --code=generic bytes.yaml n=40 m=0
    [ "${lines[-1]}" = "1 passed, 0 failed, 0 skipped" ]
}

@test "a case is large by its bytes, too" {
    cat >gather.yaml <<'YAML'
kernel: gather
params:
  table: in f32[rows, 128]
  ids: in i32[n]
  y: out f32[n]
compute: |
  y[i] = table[ids[i], 7]
cases:
  small: {rows: 100, n: 8}
  large: {rows: 3000000, n: 8}
  edge: {rows: 131071, n: 8}
YAML
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=exact --code=generic gather.yaml
    [[ ${lines[0]} == "PASS     gather/small exact "* ]]
    [ "${lines[1]}" = "SKIP     gather/large  large (1.5e+09 bytes); --all or --sample=N runs it" ]
    [[ ${lines[2]} == "PASS     gather/edge exact "* ]]
    run -2 --separate-stderr kaio-verify --run -d cpu --fill=exact --code=fixed --format=json gather.yaml large
    [[ ${lines[0]} == *'"status": "SKIP"'*'large (1.5e+09 bytes)'*'"code": "fixed"'* ]]
}

@test "a kernel without cases is run with small, odd and aligned sizes, which it says" {
    cat >none.yaml <<'YAML'
kernel: pairs
params:
  x: in f32[rows, cols]
  y: out f32[rows - 1, cols / 4]
  scale: f32
require: [cols % 4 == 0, rows > 1]
compute: y[r < rows - 1, c < cols / 4] = (x[r, 4 * c] + x[r + 1, 4 * c + 3]) * scale
YAML
    run -0 --separate-stderr kaio-verify --run -d cpu none.yaml
    [[ $stderr == "kaio-verify: 'pairs' has no cases: it is run with small sizes (rows="*"), odd sizes (rows="*"), aligned sizes (rows="* ]]
    first=$stderr
    [ "${lines[-1]}" = "12 passed, 0 failed, 0 skipped" ]
    [[ ${lines[0]} == "PASS     pairs/rows="*" exact "* && $output == *" fixed normal "* ]]
    # the same every time; and what the values are depends on nothing else
    run -0 --separate-stderr kaio-verify --run --list none.yaml
    [ "$stderr" = "$first" ]
    [ "${#lines[@]}" = 3 ]
    while read -r _ rows cols _; do
        [ $((${cols#cols=} % 4)) = 0 ]
        [ "${rows#rows=}" -gt 1 ]
    done <<<"$output"
    # a fault at odd sizes alone is found
    cat >odd.yaml <<'YAML'
kernel: odd
params: {x: "in f32[n]", y: "out f32[n]"}
block: 32
grid: ceil_div(n, 32)
body: |
  u32 i = blockIdx.x * 32 + threadIdx.x;
  if (i < n / 2 * 2 || n < 32) y[i] = i < n ? x[i] : 0.0f;
reference: y[i] = x[i]
YAML
    run -1 --separate-stderr kaio-verify --run -d cpu --fill=exact odd.yaml
    [[ $output == *"FAIL     odd/n=67 exact "* && $output == *"PASS     odd/n=64 exact "* ]]
}

@test "sizes that are chosen respect what a kernel requires and memory, and what proves nothing is an error" {
    cat >large.yaml <<'YAML'
kernel: large
params: {x: "in f32[a, b, c, d, e]", y: "out f32[a]"}
compute: y[i] = sum[j, k, l, m](x[i, j, k, l, m])
YAML
    run -0 --separate-stderr kaio-verify --run --list large.yaml
    [ "${#lines[@]}" = 3 ]
    while read -r line; do
        [ "$(awk '{ print ($(NF - 1) <= 1048576) }' <<<"$line")" = 1 ]
    done <<<"$output"
    printf 'kernel: never\nparams: {x: "in f32[n]", y: "out f32[n]"}\nrequire: [n > 3000000000]\ncompute: y[i] = x[i]\n' >never.yaml
    run -2 --separate-stderr kaio-verify --run -d cpu never.yaml
    [[ $output == *"ERROR    never  no shape tried for 'never' will do: the kernel requires n > 3000000000"* ]]
    printf 'kernel: zero\nparams: {x: "in f32[n]", y: "out f32[n]"}\ncompute: y[i] = x[i] * 0\n' >zero.yaml
    run -1 --separate-stderr kaio-verify --run -d cpu --fill=normal zero.yaml
    [[ $output == *"no shape proved anything of 'y'"* ]]
}
