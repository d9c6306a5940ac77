# kaio-verify --run of programs: each call of a step is judged by what it was given.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    examples=$KAIO_SRCDIR/examples
}

# walk.yaml: a program in whose third round of t a body adds too much to one element
walk() {
    cat >walk.yaml <<'END'
program: walk
params:
  x: inout f32[layers, n]
  y: out f32[n]
steps: |
  y[i] = x[0, i]
  for t in 0..layers {
    x[t, i] = x[t, i] + 1.0
    z = step(x: x[t], t: t, old: y)
    y[i] = z[i]
  }
cases:
  small: {layers: 6, n: 40}
---
kernel: step
params:
  x: in f32[n]
  old: in f32[n]
  y: out f32[n]
  t: u32
block: 64
grid: ceil_div(n, 64)
body: |
  u32 i = blockIdx.x * 64 + threadIdx.x;
  if (i < n)
    y[i] = old[i] + (t == 3 && i == 17 ? 2.0f * x[i] : x[i]);
reference: |
  y[i] = old[i] + x[i]
END
}

# rows STATUS: how many of $output's rows have it
rows() {
    grep -c "^$1 " <<<"$output" || true
}

@test "the examples are right, by code for all sizes and by code for theirs" {
    local name
    for name in heat life bfs cg mlp; do
        run -0 --separate-stderr kaio-verify --run -d cpu "$examples/$name/$name.yaml"
        [ "$stderr" = "" ]
        [[ $output == *"PASS     $name/small "*" calls checked ("* ]]
        [[ $output == *"PASS     $name/small fixed "* ]]
    done
    run -0 --separate-stderr kaio-verify --run -d cpu "$examples/heat/heat.yaml" --kernel=heat
    [[ ${lines[1]} == "PASS     heat/small normal  6 of 6 calls checked (1 kernel), largest error 0."*" of its bound in the step of line "* ]]
    [ "${lines[4]}" = "4 passed, 0 failed, 0 skipped" ]
}

@test "the sanitizer has nothing to say of them, nor do two runs differ" {
    run -0 --separate-stderr kaio-verify --run --check --repeat --code=generic --fill=normal "$examples"/{heat,life,mlp}/*.yaml
    [ "$stderr" = "" ]
    [ "$(rows PASS)" = 7 ]
}

@test "a step that is wrong has a line, its indices and a command that repeats it" {
    walk
    run -1 --separate-stderr kaio-verify --run -d cpu walk.yaml
    [[ ${lines[0]} == "FAIL     walk/small exact  step of line 9, t = 3, call 4: walk_step(x: x[t], old: y, y: z, t: t): y f32[40]: 1 of 40 wrong, "* ]]
    [[ ${lines[1]} == "    [17]: got "* ]]
    [ "$(rows FAIL)" = 4 ]
    local again
    again=$(sed -n '/repeat: /{s/.*repeat: //p;q}' <<<"$output")
    [[ $again == "kaio-verify --run -d cpu "*" --kernel=walk walk.yaml small" ]]
    run -1 --separate-stderr bash -c "$again"
    [[ ${lines[0]} == "FAIL     walk/small exact  step of line 9, t = 3, "* ]]
    [ "$(rows FAIL)" = 1 ]

    run -1 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=exact --format=json walk.yaml
    [ "$(jq -r '"\(.status) \(.output) \(.calls) \(.checked) \(.wrong)"' <<<"$output")" = "FAIL y 12 12 1" ]
    [ "$(jq -r .step <<<"$output")" = "step of line 9, t = 3, call 4: walk_step(x: x[t], old: y, y: z, t: t)" ]
    run -0 --separate-stderr kaio-verify --run -d cpu walk.yaml layers=3 n=100
    [ "$(rows PASS)" = 4 ]
}

@test "an equation that is compiled wrongly is found, though the outputs are a long way from it" {
    walk
    sed -i 's/ (t == 3.*:/ (false ? x[i] :/' walk.yaml
    run -0 kaio-verify --run -d cpu walk.yaml
    kaio-emit walk.yaml | awk '/^\.visible .entry walk_line8/ { on = 1 } on && /add(.rn)?.f32/ { sub("add", "sub"); on = 0 } { print }' >wrong.ptx
    run -1 --separate-stderr kaio-verify --run -d cpu --ptx=wrong.ptx walk.yaml
    [[ ${lines[0]} == "FAIL     walk/small exact  step of line 8, t = 0: walk_line8("* ]]
}

@test "elements that a call leaves as they were show, in its second call, too" {
    walk
    sed -i 's/if (i < n)$/if (i < n \&\& !(t == 1 \&\& i == 5))/; s/ (t == 3.*:/ (false ? x[i] :/' walk.yaml
    run -1 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=exact walk.yaml
    [[ ${lines[0]} == *"  step of line 9, t = 1, call 2: "*": 1 of 40 wrong" ]]
    [[ ${lines[1]} == "    [5]: got nan (0xffffffff), want "* ]]
}

@test "what no step writes of an output is told" {
    cat >parts.yaml <<'END'
program: parts
params:
  x: in f32[n]
  y: out f32[3, 2, n]
steps: |
  for t in 0..3 {
    y[t, 0, i] = x[i]
  }
  y[2, 1, i] = x[i]
  y[0, 1, i] = x[i]
cases:
  small: {n: 40}
END
    run -1 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=normal parts.yaml
    [ "${lines[0]}" = "FAIL     parts/small normal  no step gives 'y' a value from [1, 1, 0] on" ]
    sed -i 's/y\[2, 1, i\] .*/&\n  y[1, 1, i] = x[i]/' parts.yaml
    run -0 kaio-verify --run -d cpu --code=generic --fill=normal parts.yaml
}

@test "a kernel without a reference is not taken for checked" {
    walk
    sed -i '/^reference:/,$d' walk.yaml
    run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=exact walk.yaml
    [[ ${lines[0]} == "PASS     walk/small exact  13 of 19 calls checked (3 kernels), all equal; without a reference: walk_step (6 calls)" ]]
    sed -i '/^  y\[i\] = x\[0/d; /^    x\[t/d; s/old: y/old: x[0]/; s/^    z = /    y = /; /^    y\[i\] = z/d; s/x\[t\]/x[1]/' walk.yaml
    run -2 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=exact walk.yaml
    [ "${lines[0]}" = "SKIP     walk/small exact  no kernel that it calls has a reference" ]
    [ "$stderr" = "kaio-verify: error: nothing was checked" ]
}

@test "of many calls the first and a sample are checked, and a loop has an end" {
    run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=normal "$examples/heat/heat.yaml" h=8 w=9 rounds=300
    [[ ${lines[0]} =~ \ ([0-9]+)" of 600 calls checked (1 kernel)," ]]
    [ "${BASH_REMATCH[1]}" -gt 20 ]
    [ "${BASH_REMATCH[1]}" -lt 80 ]
    run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=normal "$examples/heat/heat.yaml" h=8 w=9 rounds=3000
    [[ ${lines[0]} == *" of 1999 calls checked (1 kernel), "*"; ended when a step had been called 1000 times (--all goes on)" ]]
    run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=normal --all "$examples/heat/heat.yaml" h=8 w=9 rounds=1010
    [[ ${lines[0]} == *"  2020 of 2020 calls checked (1 kernel), "* && ${lines[0]} != *ended* ]]
}

@test "inputs are filled by what the kernels do with them" {
    mkdir lib
    cat >lib/pick.yaml <<'END'
kernel: pick
params:
  table: in f32[rows, n]
  id: in u32[k]
  y: out f32[k, n]
compute: y[i, j] = log(table[id[i], j])
END
    cat >words.yaml <<'END'
program: words
use:
  pick: pick.yaml
params:
  table: in f32[rows, n]
  id: in u32[2, k]
  seen: state u32[1]
  y: out f32[2, k, n]
steps: |
  for t in 0..2 { y[t] = pick(table: table, id: id[t]) }
  seen[i] = seen[i] + 1
cases:
  small: {rows: 7, n: 5, k: 20}
  one: {rows: 7, n: 5, k: 1, id: 3..3}
END
    run -2 --separate-stderr kaio-verify --run -d cpu words.yaml
    [[ $stderr == *"there is no file 'pick.yaml'"* ]]
    # subscripts stay in the table; logarithms are of positive numbers
    run -0 --separate-stderr kaio-verify --run -d cpu -I lib words.yaml
    [ "$stderr" = "" ]
    [[ ${lines[0]} == "PASS     words/small uniform  3 of 3 calls checked (2 kernels), "* ]]
    KAIO_PATH=lib run -0 kaio-verify --run -d cpu --list words.yaml
    [ "${lines[0]}" = "words/small  rows=7 n=5 k=20  101 terms" ]
}

@test "types are chosen by cases and by --types, and views that begin anywhere are read back" {
    cat >typed.yaml <<'END'
program: typed
types: {T: [f16, f32]}
use:
  product: matmul/nt.yaml
params:
  a: in T[m, k]
  b: in T[l, n, k]
  c: out T[l, m, n]
steps: |
  for i in 0..l {
    p = product(a: a, b: b[i])
    c[i, r, s] = p[r, s] + T(1)
  }
cases:
  small: {m: 5, n: 7, k: 9, l: 3}
  wide: {m: 5, n: 7, k: 9, l: 2, T: f32}
END
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=normal -I "$KAIO_SRCDIR/specs" typed.yaml
    [[ ${lines[0]} == "PASS     typed/small normal  6 of 6 calls checked (2 kernels), "* ]]
    [[ ${lines[1]} == "PASS     typed/wide normal  4 of 4 calls checked (2 kernels), "* ]]
    run -0 --separate-stderr kaio-verify --run --check --fill=normal --types=all --code=generic -I "$KAIO_SRCDIR/specs" typed.yaml small
    [[ ${lines[0]} == "PASS     typed/small T=f16 normal  "* ]]
    [[ ${lines[1]} == "PASS     typed/small T=f32 normal  "* ]]
}

@test "large calls are judged by a sample, and PTX of something else by nothing" {
    run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=normal --sample=100 "$examples/heat/heat.yaml" h=30 w=50 rounds=1
    [[ ${lines[0]} == *"  2 of 2 calls checked (1 kernel), 2 by a sample of elements, "* ]]
    walk
    sed 's/old/was/g' walk.yaml >other.yaml
    kaio-emit other.yaml -o other.ptx
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=exact --ptx=other.ptx walk.yaml
    [[ ${lines[0]} == *"; without a reference: walk_step (6 calls)" ]]
    kaio-emit --kernel=step walk.yaml -o other.ptx
    run -2 --separate-stderr kaio-verify --run -d cpu --ptx=other.ptx walk.yaml
    [[ ${lines[0]} == "ERROR    walk  the PTX has no program 'walk'" ]]
}

@test "a step whose bound says nothing is not trusted" {
    cat >far.yaml <<'END'
program: far
params:
  x: in f32[n]
  y: out f32[n]
steps: |
  far[i] = 1e8 + x[i]
  y[i] = (far[i] - 1e8) * 1e-3
cases:
  small: {n: 40}
END
    run -1 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=normal far.yaml
    [[ ${lines[0]} == "MISTRUST far/small normal  step of line 6: far_line6(x: x, y: y): 'y' proves nothing: the bound is wider than the spread of the values" ]]
}

@test "what is for kernels says so" {
    walk
    local option
    for option in --shapes=3 --steps; do
        run -2 --separate-stderr kaio-verify --run -d cpu $option walk.yaml
        [[ ${lines[0]} == "ERROR    walk  'walk' is a program, and ${option%=*} is for kernels" ]]
    done
    run -2 --separate-stderr kaio-verify walk.yaml y=y.npy
    [[ ${lines[0]} == "ERROR    walk.yaml  'walk' is a program, whose steps are checked while it runs: kaio-verify --run walk.yaml" ]]
    run -2 --separate-stderr kaio-verify walk.yaml -I lib y=y.npy
    [[ $stderr == *" and -I need --run"* ]]
    run -2 kaio-bench --dry-run walk.yaml
    [ "$output" = "kaio-bench: error: 'walk' is a program, and kaio-bench times kernels; choose one with --kernel" ]
    run -2 kaio-bench --dry-run --kernel=walk walk.yaml
    [ "$output" = "kaio-bench: error: 'walk' is a program, and kaio-bench times kernels; choose one with --kernel" ]
    sed -i '/^cases:/,/small/d' walk.yaml
    run -2 --separate-stderr kaio-verify --run -d cpu walk.yaml
    [[ ${lines[0]} == "ERROR    walk  'walk' has no cases; give its dimensions, as in n=1000" ]]
}
