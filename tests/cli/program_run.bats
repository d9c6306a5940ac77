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

# one STEPS [ARGUMENT...]: a program over x with the steps, on the simulator; what it prints is in $output.
one() {
    program <<END
params:
  x: inout f32[n]
  s: state f32[2, n]
temps:
  \$v: f32[n]
  \$w: f32[n]
  \$go: u32[]
  \$z: u32[3] = 0
steps: |
$(sed 's/^/  /' <<<"$1")
END
    shift
    timeout 20 kaio-run -d cpu p.ptx x=@ones "$@"
}

# wrong STEPS MESSAGE [ARGUMENT...]: such a program is refused with this message, and nothing is launched.
wrong() {
    local steps=$1 text=$2
    shift 2
    run -2 one "scale(x: x, y: v) line 4
$steps" n=6 "$@"
    [[ $output = *"error: $text"* ]] || { echo "said: $output"; return 1; }
}

@test "both ways of an if, and loops that are not gone through" {
    run -0 one 'if (below(x: z, y: go, limit: 0)) { scale(x: x, y: v, a: 3) } else { scale(x: x, y: v, a: 7) }
if (below(x: z, y: go, limit: 1)) { scale(x: v, y: x, a: 10) }
for t in 3..3 { scale(x: v, y: x) }
repeat 0 { scale(x: v, y: x) }' n=3
    [ "${lines[0]}" = "x  f32[3]  70 70 70  min 70 max 70 mean 70 nan 0 inf 0" ]
}

@test "loops around nothing take no time" {
    run -0 one 'repeat 1000000000 {
  repeat 1000000000 { }
}
for t in 0..1000000000 { }
repeat 1000000000 { for t in 0..0 { scale(x: x, y: v) } }
repeat 1000000000 { repeat 1000000000 { for t in 1..1 { scale(x: x, y: v) } } }' n=3
    run -3 one 'for k in 0..1000000000 line 9 { for t in k..k { scale(x: x, y: v) line 10 } }' n=3
    [[ $output = *"error: 1000000 iterations in a row called no kernel"*"note: in the loop of line 9"* ]]
}

@test "numbers that only travel need no kernel of their own, those that decide do" {
    run -0 one 'for t in 0..5000 { add(x: x, y: s[0], a: t); add(x: x[0..t % 3], y: s[1, 0..t % 3]) }' n=3 s=:s.npy
    has_numpy
    numpy "
s = np.load('s.npy')
assert s.tolist() == [[12497500] * 3, [3333, 1666, 0]], s"
    # more shapes than are kept at a time
    run -0 one 'for t in 0..n { scale(x: x[0..t], y: v[0..t]) }
for t in 0..n { scale(x: v[t..n - 1], y: x[t..n - 1], a: 1) }' n=5000 -q
    [[ ${lines[0]} = *" min 1 max 2 mean 1.9998 nan 0 inf 0" ]]
}

@test "a view that begins at no multiple of 16 bytes is copied in and out" {
    has_numpy
    run -0 one 'add(x: x[1..4], y: s[0, 2..5], a: 2)
add(x: x[1..4], y: s[1, 3..6], a: 3)
scale(x: s[1, 2..6], y: x[2..6], a: 10)' n=7 s=:s.npy --check
    [[ ${lines[0]} = "x  f32[7]  1 1 0 30 30 30 1  "* ]]
    numpy "assert np.load('s.npy').tolist() == [[0, 0, 2, 2, 2, 0, 0], [0, 0, 0, 3, 3, 3, 0]]"
}

@test "what is wrong with a view, a number or a loop is said before anything is launched" {
    wrong 'for t in 0..n { scale(x: s[t], y: v) line 5 }' "'s' is f32[2, 6], and subscript 2 of 's[t]' is not below 2; t is 2"
    [[ $output = *"note: in the step of line 5: scale(x: s[t], y: v), where t is 2"* ]]
    wrong 'scale(x: s[-1], y: v)' "'s' is f32[2, 6], and subscript -1 of 's[-1]' is not below 2"
    wrong 'scale(x: x[4..2], y: v)' "range 4..2 of 'x[4..2]' ends before it begins"
    wrong 'scale(x: x[1..n + 1], y: v)' "'x' is f32[6], and range 1..7 of 'x[1..n + 1]' is not within 0..6; n is 6"
    wrong 'scale(x: s as [n, 3], y: v)' "'s as [n, 3]' has 12 elements, which are not those of [6, 3]: 's' is f32[2, 6]"
    wrong 'scale(x: x as [4294967296, 4294967296, 6], y: v)' "'x as [4294967296, 4294967296, 6]' has 6 elements"
    wrong 'scale(x: x as [n - 7], y: v)' "an extent of 'x as [n - 7]' is -1; n is 6"
    wrong 'scale(x: x as [2, 3], y: v)' "x is f32[2, 3], the kernel declares f32[n]"
    wrong 'scale(x: x[1..3], y: v)' "x is f32[2], so n is 2, but y is f32[6], so n is 6"
    wrong 'scale(x: x, y: v, a: 0.0 / 0)' "a is NaN"
    wrong 'scale(x: x, y: v, a: 1e39)' "a is 1e+39; the largest f32 is 3.40282e+38"
    wrong 'add(x: x, y: v, a: n - 7)' "a is u32 and can't be -1"
    wrong 'add(x: x, y: v, a: 4294967296)' "a is outside the range of u32"
    wrong 'add(x: x, y: v, a: 1 / (n - 6))' "division by zero"
    wrong 'repeat n - 7 { add(x: x, y: v) }' "this is -1 times; n is 6"
    wrong 'for t in 7..n { add(x: x, y: v) }' "t runs over 7..6, which ends before it begins; n is 6"
    wrong 'for t in 0..9223372036854775807 * n { add(x: x, y: v) }' "the value overflows"
    wrong 'while (below(x: z, y: go, limit: n)) { scale(x: s[2], y: v) }' "'s' is f32[2, 6], and subscript 2"
    wrong 'if (below(x: z, y: go, limit: n)) { } else { scale(x: s[3], y: v) }' "'s' is f32[2, 6], and subscript 3"
    wrong 'nothing(x: x)' "no kernel above is called 'nothing'"
    wrong 'p(x: x)' "no kernel above is called 'p'"
    wrong 'scale(x: x)' "'y' of 'scale' is not given"
}

@test "a requirement of a kernel is checked for each iteration" {
    run -2 one 'for t in 998..n { add(x: x[0..t], y: v[0..t]) line 5 }' n=1002
    [ "${lines[0]}" = "kaio-run: error: the kernel requires n < 1000, but n is 1000" ]
    [[ ${lines[1]} = *"in the step of line 5: add(x: x[0..t], y: v[0..t]), where t is 1000" ]]
}

@test "buffers of a call do not overlap where one is written" {
    wrong 'add(x: x, y: x)' "'x' and 'y' of 'add' overlap, and one of them is written: x and x"
    wrong 'for t in 0..3 { add(x: x[t..t + 2], y: x[2..4]) }' \
        "'x' and 'y' of 'add' overlap, and one of them is written: x[t..t + 2] and x[2..4]"
    [[ $output = *"where t is 1"* ]]
    run -0 one 'add(x: x[0..2], y: x[2..4])
add(x: x[2..2], y: x[2..2])' n=6
    [[ ${lines[0]} = "x  f32[6]  1 1 2 2 1 1  "* ]]
}

@test "two elements of four bits share a byte" {
    kernels
    for step in 'nibbles(x: x[1, 2..6], y: y[0..4])' \
        "nibbles(x: x[1, 1..3], y: y[0..2]) # 'x[1, 1..3]' begins at element 7, in the middle of a byte" \
        "nibbles(x: x[1, 2..5], y: y[0..3]) # 'x[1, 2..5]' can't be u4[3]: the last dimension of a packed type is even"; do
        program <<END
params:
  x: in u4[2, m]
  y: out u4[m]
steps: |
  ${step%% #*}
END
        if [[ $step = *'#'* ]]; then
            run -2 cpu p.ptx x=@ones m=6
            [[ $output = *"error: ${step#* # }"* ]]
        else
            run -0 cpu p.ptx x=@ones m=6
            [[ $output = "y  u4[6]  1 1 1 1 "* ]]
        fi
    done
}

@test "a temp lives as long as it is needed, and kernels' temps beside it" {
    steps='repeat 2 {
  scale(x: x, y: v, a: 1)
  total(x: v, y: w)
  scale(x: w, y: x)
}
for t in 0..3 {
  if (below(x: z, y: go, limit: 1)) { scale(x: x, y: s[t % 2]) }
  add(x: x, y: w, a: 1)
}
scale(x: w, y: x)'
    for options in '' --check; do
        # shellcheck disable=SC2086
        run -0 one "$steps" n=4 $options
        # x: 1, 4, 16; w: 8, and 16 three times more
        [[ ${lines[0]} = "x  f32[4]  112 112 112 112  "* ]]
    done
    run -0 one "$steps" n=4 --plan
    [[ $output = *"  \$v   temp   f32[4]  16 bytes  at "* ]]
    [[ $output = *"arena: "*" for "*", which are not all needed at the same time"* ]]
    # go needs none when total() is at work
    at() { sed -n "s/^  \\\$$1 .* at //p" <<<"$output"; }
    [[ $output = *"        scratch  512 bytes at 0"$'\n'* ]]
    [ "$(at go)" = 0 ]
    [ "$(at v)" != "$(at w)" ]
    [ "$(at z)" != "$(at w)" ]
}

@test "temps that do not fit in memory are refused, and planned" {
    program <<'END'
params:
  x: inout f32[n]
temps:
  $v: f32[n, 1000000000]
  $w: f32[n, 1000000000]
steps: |
  scale(x: x, y: v[0, 0..n])
  scale(x: x, y: w[0, 0..n])
END
    run -2 cpu p.ptx x=@ones n=1000
    [[ $output = "kaio-run: error: the temps of 'p' take 4 TB of memory on the simulator, but "* ]]
    run -0 cpu p.ptx x=@ones n=1000 --plan
    [[ $output = *"arena: 4 TB for 8 TB, which are not all needed at the same time"* ]]
    run -2 cpu p.ptx x=@ones n=4294967295
    [[ $output = *"\$v cannot be f32[4294967295, 1000000000]: it does not fit in memory"* ]]
}

@test "a temp that is zero once is the kernel's for all calls with the same shapes" {
    one 'repeat 2 { total(x: x, y: v); scale(x: v, y: x, a: 1) }' n=3 >said
    grep -q '^x  f32\[3\]  4 4 4 ' said # cleared for each run
    sed -i 's/= 0 each run$/= 0/' p.ptx
    run -0 cpu p.ptx x=@ones n=3
    [[ ${lines[0]} = "x  f32[3]  104 104 104  "* ]]
    run -0 cpu --check p.ptx x=@ones n=3
    [[ ${lines[0]} = "x  f32[3]  104 104 104  "* ]]
}

@test "state is zeros unless it is given, and not summarised unless it is named" {
    run -0 one 'add(x: x, y: s[0])' n=2
    [ "${#lines[@]}" = 1 ]
    run -0 cpu p.ptx x=@ones n=2 s=:s.npy
    [ "${#lines[@]}" = 1 ]
    run -0 cpu p.ptx x=@ones n=2 s=s.npy:t.npy
    [ "$(npy_data t.npy)" = 00000040000000400000000000000000 ]
    run -0 cpu p.ptx x=@ones n=2 s=t.npy
    [ "${lines[1]}" = "s  f32[2, 2]  3 3 0 0  min 0 max 3 mean 1.5 nan 0 inf 0" ]
    run -0 cpu p.ptx x=@ones n=2 s=@const:7
    [ "${lines[1]}" = "s  f32[2, 2]  8 8 7 7  min 7 max 8 mean 7.5 nan 0 inf 0" ]
    refused 2 "kaio-run: error: s needs a file or a generator: s=x.npy, s=@normal" cpu p.ptx x=@ones n=2 s=:
}

@test "messages come in the order of the launches, and a failed assertion names the step" {
    run -0 one 'while (below(x: z, y: go, limit: 3)) { count(x: z) }' n=1
    [ "$(printf '%s\n' "${lines[@]:0:3}")" = $'count 1\ncount 2\ncount 3' ]
    run -3 --separate-stderr one 'for t in 0..9 { count(x: z) line 7 }' n=1 s=:s.npy
    [ "${lines[-1]}" = "count 5" ]
    [[ $stderr = *"assertion failed: x[0] < 5 (\"too many\")"*"in the step of line 7: count(x: z), where t is 4"* ]]
    [ ! -e s.npy ]
    run -1 cpu --check p.ptx x=@ones n=1
}

@test "--check finds what a kernel does wrong with a temp, and names the step" {
    run -1 one 'add(x: v, y: x) line 5' n=4 --check
    [[ $output = *"error: kernel 'add': load of 4 bytes at element 0 of '\$v'"*"where nothing was written"* ]]
    [[ $output = *"note: in the step of line 5: add(x: v, y: x)"* ]]
    # a kernel that writes what it has as an input: x and y of its launch are exchanged
    one 'scale(x: v, y: x)' n=4 --plan >said
    sed -i '/entry: scale$/,/args/s/args: \[x, y, /args: [y, x, /' p.ptx
    run -1 cpu --check p.ptx x=@ones n=4
    [[ $output = *"'\$v'"*"read-only"* || $output = *"'\$v'"*"declared in"* ]] || { echo "$output"; false; }
}

@test "a while that does not end is ended" {
    run -3 one 'while (below(x: z, y: go, limit: 3)) line 6 { scale(x: x, y: v) }' n=1 --max-iterations=100 --profile
    [[ $output = *"error: this loop has not ended after 100 iterations"*"note: in the loop of line 6"* ]]
    [[ $output = *"note: more are allowed by --max-iterations, all by 0"* ]]
    run -0 one 'while (below(x: z, y: go, limit: 3)) { count(x: z) }' n=1 --max-iterations=3
    run -3 cpu p.ptx x=@ones n=1 --max-iterations=2
}

@test "--profile has a row for each step, --time times the whole" {
    run -0 one 'for t in 0..5 { scale(x: x, y: v) line 8 }
while (below(x: z, y: go, limit: 3)) line 9 { count(x: z) line 10 }' n=1 --profile
    [[ $output = *$'\n'"line     calls  launches  instructions     time/ms  share  step"$'\n'"   8         5         5  "* ]]
    [[ $output = *$'\n'"   9         4         4  "*"%  below(x: z, limit: 3, y: go)"* ]]
    [[ $output = *$'\n'"  10         3         3  "* ]]
    # each execution begins with z as it was
    run -0 cpu p.ptx x=@ones n=1 --time=4
    [ "$(grep -c '^count' <<<"$output")" = 3 ]
    [[ $output = *"time  median "*" of 4"* ]]
}

@test "a plan is of programs, and launches nothing" {
    run -0 one 'for t in 0..5 { scale(x: s[t % 2], y: v, a: t) line 8 }' n=9 --plan
    [[ $output = *"program: p"*"  for t in 0..5 {  # 5 times"*"    scale(x: s[t % 2], y: v, a: t) line 8"* ]]
    [[ $output = *"        scale  grid 1  block 256"*"        scratch  "* ]]
    [[ $output != *" min "* ]]
    refused 2 "kaio-run: error: 'scale' is a kernel, and a plan is of programs" \
        cpu --plan --kernel scale p.ptx x=@ones n=3
    refused 2 "kaio-run: error: 'scale' is a kernel, and a profile is of programs" \
        cpu --profile --kernel scale p.ptx x=@ones n=3
}

@test "a program is interrupted between its calls" {
    load signals
    one 'while (below(x: z, y: go, limit: 3)) line 6 { scale(x: x, y: v) }' n=1 --plan >said
    interrupted INT kaio-run -q -d cpu p.ptx x=@ones:x.npy n=1 --max-iterations=0
    interrupted TERM kaio-run -q -d cpu p.ptx x=@ones:x.npy n=1 --max-iterations=0
    [ ! -e x.npy ]
}

@test "a program runs on a GPU as a kernel does" {
    {
        grep '^//@' saxpy.ptx
        printf '//@ %s\n' --- 'kaio: 1' 'program: p' 'params:' '  x: in f32[n]' '  y: inout f32[2, n]' '  s: state f32[n]' \
            'temps:' '  $z: f32[n] = 0' 'steps: |' '  repeat 3 {' '    saxpy(x: x, y: y[1])' \
            '    saxpy(x: y[1], y: z, alpha: 1.0)' '    saxpy(x: z, y: s)' '  }'
        grep -v '^//@' saxpy.ptx
    } >p.ptx
    run -0 cuda p.ptx x=@ones y=@zeros n=5 s=@zeros
    [[ ${lines[0]} = "y  f32[2, 5]  0 0 0 0 0 6 ... "* ]]
    [[ ${lines[1]} = "s  f32[5]  40 40 40 40 40  "* ]]
    run -0 cuda p.ptx x=@ones y=@zeros n=5 --time=3
    [[ $output = *"time  median "*" of 3"* ]]
}

@test "a number with fractions is computed in double precision" {
    cat >k.yaml <<'END'
kernel: k
params:
  x: in f64[n]
  y: out f64[n]
  a: f64
compute: y[i] = a * x[i]
END
    kaio-emit k.yaml -o kernels.ptx
    program <<'END'
params:
  x: in f64[n]
  y: out f64[4, n]
  b: f32 = 0.5
steps: |
  k(x: x, y: y[0], a: 0.1)
  k(x: x, y: y[1], a: b * 0.1)
  k(x: x, y: y[2], a: 1.0 / (n + 2))
  k(x: x, y: y[3], a: n / 2)
END
    run -0 cpu p.ptx x=@ones n=1
    [[ $output = "y  f64[4, 1]  0.1 0.05 0.3333333333333333 0  min"* ]]
}
