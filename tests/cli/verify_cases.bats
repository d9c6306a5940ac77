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
