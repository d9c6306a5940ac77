# Programs in launch contracts: calls of kernels, views, loops, temps, and what is wrong with them.
bats_require_minimum_version 1.5.0

load run

# kernels.ptx: what the programs here call.
kernels() {
    cat >kernels.yaml <<'END'
kernel: heat_step
params:
  x: in f32[h, w]
  y: out f32[h, w]
compute: |
  y[r, c] = x[r, c] + 0.2 * (pad(x[r - 1, c], 0) + pad(x[r + 1, c], 0) + pad(x[r, c - 1], 0) + pad(x[r, c + 1], 0)
      - 4 * x[r, c])
---
kernel: scale
params:
  x: in f32[n]
  y: out f32[n]
  a: f32 = 2.0
compute: y[i] = a * x[i]
---
kernel: add
params:
  x: in f32[n]
  y: inout f32[n]
  a: u32 = 1
require: [n < 1000]
compute: y[i] = y[i] + f32(a) * x[i]
---
kernel: more
params:
  x: in f32[h, w]
  limit: f32
  y: out u32[]
compute: y = u32(sum[r, c](x[r, c]) > limit)
---
kernel: below
params:
  x: in u32[n]
  limit: u32
  y: out u32[]
grid: 1
block: 32
body: if (threadIdx.x == 0) y = u32(x[0] < limit);
---
kernel: count
params:
  x: inout u32[n]
grid: 1
block: 32
body: |
  if (threadIdx.x == 0) {
    x[0] += 1;
    print("count %u\n", x[0]);
    assert(x[0] < 5, "too many");
  }
---
kernel: total
params:
  x: in f32[n]
  y: out f32[n]
temps:
  part: f32[n]
  seen: u32[n] = 0
grid: 1
block: 32
body: |
  u32 i = threadIdx.x;
  if (i < n) {
    part[i] = 2 * x[i];
    seen[i] += 1;
    y[i] = part[i] + f32(seen[i] - 1) * 100;
  }
---
kernel: nibbles
params:
  x: in u4[n]
  y: out u4[n]
compute: y[i] = x[i]
END
    [ -e kernels.ptx ] || kaio-emit kernels.yaml -o kernels.ptx
}

# PTX with the program's contract on standard input: its lines from params: on, called p.ptx.
program() {
    kernels
    {
        grep '^//@' kernels.ptx
        printf '//@ %s\n' --- 'kaio: 1' 'program: p' 'source: p.yaml'
        sed 's|^|//@ |'
        grep -v '^//@' kernels.ptx
    } >p.ptx
}

# Python with numpy, which sees the files.
numpy() {
    /usr/bin/python3 -c "import numpy as np
$1"
}

has_numpy() {
    /usr/bin/python3 -c 'import numpy' 2>/dev/null || skip "no numpy"
}

heat() {
    program <<'END'
params:
  u: inout f32[h, w]
  rows: out f32[h, w]
  rounds: u32 = 4
  limit: f32 = 1.5
temps:
  $v: f32[h, w]
  $go: u32[]
steps: |
  repeat rounds line 8 {
    heat_step(x: u, y: v) line 9
    heat_step(x: v, y: u) line 10
  }
  for t in 0..h line 11 {
    scale(x: u[t], y: v[t], a: 1.0 / (t + 1)) line 12
    add(x: u[h - 1 - t, 0..w], y: v[t] as [w], a: t) line 13
  }
  scale(x: v as [h * w], y: rows as [w * h]) line 15
  while (more(x: u, y: go, limit: limit)) line 16 {
    heat_step(x: u, y: v) line 17
    heat_step(x: v, y: u) line 18
  }
END
}

@test "calls, loops and views compute what numpy does" {
    has_numpy
    heat
    numpy "np.save('u.npy', np.random.default_rng(1).random((7, 5), dtype=np.float32))"
    for options in '' --check; do
        # shellcheck disable=SC2086
        run -0 cpu $options p.ptx u=u.npy:v.npy rows=rows.npy
        [ "$output" = "" ]
        numpy "
def step(x):
    p = np.pad(x, 1)
    return x + 0.2 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x)
u, n = np.load('u.npy').astype(np.float64), 0
for i in range(8): u = step(u)
rows = np.array([2 * (u[t] / (t + 1) + t * u[6 - t]) for t in range(7)])
while u.sum() > 1.5: u, n = step(step(u)), n + 1
assert n > 2
np.testing.assert_allclose(np.load('v.npy'), u, rtol=1e-5)
np.testing.assert_allclose(np.load('rows.npy'), rows, rtol=1e-5)"
    done
}

@test "what the sizes of temps have in common may have a name in the contract" {
    program <<'END'
params:
  x: in f32[n, 2, k]
  y: out f32[n]
where:
  v1: n * 2 * k - n
temps:
  $s: f32[v1 + n]
  $t: f32[v1 + n]
steps: |
  scale(x: x as [n * 2 * k], y: s) line 9
  scale(x: s, y: t, a: 3.0) line 10
  scale(x: t[0..n], y: y, a: 1.0) line 11
END
    run -0 cpu p.ptx x=@ones n=3 k=5
    [ "$output" = "y  f32[3]  6 6 6  min 6 max 6 mean 6 nan 0 inf 0" ]
}

@test "a program goes before the kernels of its file, and --kernel chooses among them" {
    heat
    run -0 cpu p.ptx u=@ones h=3 w=4
    [[ ${lines[0]} = "u     f32[3, 4]  "* ]]
    run -0 cpu p.ptx --kernel scale x=@ones n=3
    [ "${lines[0]}" = "y  f32[3]  2 2 2  min 2 max 2 mean 2 nan 0 inf 0" ]
    run -0 cpu p.ptx --kernel p u=@ones h=3 w=4
    refused 2 "kaio-run: error: 'p.ptx' has no kernel 'scal'; did you mean 'scale'?" cpu --kernel scal p.ptx u=@ones h=3 w=4
}
