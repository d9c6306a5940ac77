# dims: of a spec: dimensions that others say, in every place where names of dimensions are known.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    cat >pool.yaml <<'Y'
kernel: pool
dims:
  oh: (h + 2 * p - r) / s + 1
  ow: w - r + 1
  cells: oh * ow
params:
  x: in f32[n, h, w]
  y: out f32[n, oh, ow]
  total: out f32[cells]
  r: i32 = 3
  p: i32 = 0
  s: i32 = 1
require:
  - h + 2 * p >= r
  - w >= r
compute: |
  y[b, i, j] = max[u < r, v < r](pad(x[b, i * s + u - p, j + v], -inf))
  total[k] = sum[b](x[b, k % oh, k % ow]) / cells
schedule: {strategy: naive}
cases:
  small: {n: 2, h: 9, w: 8}
  padded: {n: 3, h: 10, w: 8, p: 1, s: 2}
Y
}

@test "derived dimensions are what their expressions are, with open and with fixed sizes" {
    run -0 --separate-stderr kaio-verify --run -d cpu --check pool.yaml
    [[ $output == *"y f32[2, 7, 6]"*"y f32[3, 5, 6]"* ]]
    [[ $output == *"total f32[42]"*"total f32[30]"* ]]
    run -0 --separate-stderr kaio-verify --run -d cpu --check pool.yaml -D n=2 -D h=7 -D w=5
    [[ $output == *"y f32[2, 5, 3]"* ]]
    run -0 --separate-stderr kaio-verify --run -d cpu --shapes 6 pool.yaml
}

@test "the contract says what they are derived from, and the kernel is given them as numbers" {
    kaio-emit pool.yaml >pool.ptx
    run -0 sed -n '/^\/\/@ derived:/,/^\/\/@ require/p' pool.ptx
    [ "${lines[1]}" = '//@   oh: (h + 2 * p - r) / s + 1' ]
    [ "${lines[2]}" = '//@   ow: w - r + 1' ]
    [ "${lines[3]}" = '//@   cells: oh * ow' ]
    grep -q '^//@   y: out f32\[n, oh, ow\]' pool.ptx
    grep -q '\.param \.u32 oh' pool.ptx
    # those that -D settles are constants
    printf '%s\n' 'kernel: halves' 'dims: {m: n / 2}' params: '  x: in f32[n, k]' '  y: out f32[m, k]' \
        'compute: y[i, j] = x[2 * i, j] + x[2 * i + 1, j]' >halves.yaml
    kaio-emit halves.yaml -o open.ptx
    grep -q '^//@ .*m \* k' open.ptx
    kaio-emit -D n=64 halves.yaml -o fixed.ptx
    run -1 grep '\.param \.u32 m' fixed.ptx
    grep -q '^//@   m: n / 2' fixed.ptx
    kaio-run -d cpu fixed.ptx k=3 x=@normal y=y.npy
    run -0 head -c 128 y.npy
    [[ $output == *"(32, 3)"* ]]
    run -0 kaio-emit --explain halves.yaml
    [[ $output == *"dims: m = n / 2"* ]]
    kaio-emit --explain --format=json halves.yaml | tr -d ' \n' | grep -q '"derived_dimensions":{"m":"n/2"}'
}

@test "outputs have their extents, and one that is given otherwise is told both values" {
    kaio-emit pool.yaml -o pool.ptx
    kaio-run -d cpu pool.ptx n=2 h=9 w=8 x=@normal y=y.npy total=t.npy
    run -0 head -c 128 y.npy
    [[ $output == *"(2, 7, 6)"* ]]
    run -2 kaio-run -d cpu pool.ptx n=2 h=2 w=8 x=@normal y=y.npy total=t.npy
    [[ $output == *"the kernel requires h + 2 * p >= r, but h is 2 and p is 0 and r is 3"* ]]
    run -2 kaio-run -d cpu pool.ptx n=2 h=9 w=8 oh=7 x=@normal y=y.npy total=t.npy
    [[ $output == *"'oh' is (h + 2 * p - r) / s + 1 and is not given itself; give h"* ]]
    sed -e 's/y: out f32/z: in f32[n, oh, ow]\n  y: out f32/' -e 's/-inf))/-inf)) + z[b, i, j]/' pool.yaml >both.yaml
    kaio-emit both.yaml -o both.ptx
    kaio-run -d cpu both.ptx n=2 h=9 w=8 x=@normal z=@ones y=y.npy total=t.npy
    run -2 kaio-run -d cpu both.ptx h=10 w=8 x=@normal z=y.npy y=o.npy total=t.npy
    [[ $output == *"z is f32[2, 7, 6], the kernel declares f32[n, oh, ow], which is f32[2, 8, 6] here: oh, (h + 2 * p - r) / s + 1, is 8"* ]]
}

@test "a dimension follows from an extent that is derived from it" {
    cat >half.yaml <<'Y'
kernel: folded
dims: {m: 2 * k + lead, k: n - 1}
params:
  x: in f32[m]
  y: out f32[n]
  lead: u32 = 3
compute: y[i < n] = x[i] + x[m - 1 - i] * k
cases:
  small: {n: 5}
Y
    run -0 kaio-verify --run -d cpu --check half.yaml
    kaio-emit half.yaml -o half.ptx
    printf '%s\n' 'kernel: same' params: '  x: in f32[n]' '  y: out f32[n]' 'compute: y[i] = x[i]' |
        kaio-emit -o same.ptx
    kaio-run -d cpu same.ptx n=11 x=@arange y=x.npy
    kaio-run -d cpu half.ptx x=x.npy y=y.npy # 2 * (n - 1) + 3 is 11, so n is 5
    run -0 head -c 128 y.npy
    [[ $output == *"(5,)"* ]]
    kaio-run -d cpu same.ptx n=12 x=@arange y=x.npy
    run -2 kaio-run -d cpu half.ptx x=x.npy y=y.npy
    [[ $output == *"no n makes m be 12"* ]]
}

@test "-D does not fix what follows from others, and names them" {
    run -2 kaio-emit -D oh=5 pool.yaml
    [[ $output == *"'oh' is (h + 2 * p - r) / s + 1 and can't be defined itself; define h"* ]]
    sed -i 's/r: i32 = 3//; s/ r)/ 3)/; s/w - r/w - 3/; s/< r/< 3/g; s/>= r/>= 3/' pool.yaml
    run -2 kaio-emit -D w=2 pool.yaml
    [[ $output == *"the dimension 'ow' can't be 0 (1 to 4294967295); w is 2"* ]]
}

@test "bodies, grids and temps know derived dimensions" {
    cat >body.yaml <<'Y'
kernel: pairs
dims:
  m: ceil_div(n, 2)
params:
  x: in f32[n]
  y: out f32[m]
temps:
  t: f32[m]
grid: ceil_div(m, 64)
block: 64
body: |
  u32 i = blockIdx.x * 64 + threadIdx.x;
  if (i >= m) return;
  t[i] = x[2 * i];
  if (2 * i + 1 < n) t[i] += x[2 * i + 1];
  y[i] = t[i];
reference: |
  y[i < m] = sum[k < 2](pad(x[2 * i + k], 0))
cases:
  small: {n: 131}
Y
    run -0 kaio-verify --run -d cpu --check body.yaml
    run -0 kaio-verify --run -d cpu --check -D n=77 body.yaml
    run -0 kaio-bench --dry-run body.yaml n=1000
}
