# kaio-verify --run: inputs that are given, by cases and by the command line.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    cat >rows.yaml <<'YAML'
kernel: rows
params:
  first: in u32[n + 1]
  cols: in u32[e]
  x: in f32[n]
  y: out f32[n]
grid: ceil_div(n, 64)
block: 64
body: |
  u32 r = blockIdx.x * 64 + threadIdx.x;
  if (r < n) {
    f32 s = 0.0f;
    for (u32 k = first[r]; k < first[r + 1]; k++) s += x[cols[k]];
    y[r] = s;
  }
reference: |
  y[r] = sum[k < e](k >= first[r] && k < first[r + 1] ? x[cols[k]] : 0)
cases:
  plain: {n: 30, e: 60, first: "@offsets:60", cols: 0..29}
---
kernel: counts
params:
  ids: in i32[n]
  state: inout u32[8]
grid: 1
block: 1
body: |
  for (u32 i = 0; i < n; i++) state[ids[i]] += 1u;
reference: |
  state[b] = state[b] + u32(sum[i](ids[i] == i32(b) ? 1 : 0))
cases:
  some: {n: 100, ids: "@randint:0:8", state: "@zeros"}
YAML
}

@test "a case says what inputs are filled with, and the others are filled" {
    run -0 --separate-stderr kaio-verify --run -d cpu --check --kernel=rows rows.yaml
    [[ ${lines[0]} == "PASS     rows/plain exact "* && ${lines[1]} == "PASS     rows/plain normal "* ]]
    [ "${lines[-1]}" = "4 passed, 0 failed, 0 skipped" ]
}

@test "where all inputs are given there is one row, named so, and its command repeats it" {
    run -0 --separate-stderr kaio-verify --run -d cpu --check --kernel=counts --code=generic rows.yaml
    [ "${lines[0]}" = "PASS     counts/some given  state u32[8]: 8 compared, all equal" ]
    [ "${lines[1]}" = "1 passed, 0 failed, 0 skipped" ]
    kaio-emit --kernel=counts rows.yaml | sed 's/\(add\.[us]32 .*\), 1;/\1, 2;/' >wrong.ptx
    run -1 --separate-stderr kaio-verify --run -d cpu --kernel=counts --ptx=wrong.ptx --format=json rows.yaml state=@const:5
    [[ ${lines[0]} == *'"fill": "given"'* && ${lines[0]} == *' some state=@const:5"'* && ${lines[0]} != *--fill* ]]
    command=$(sed 's/.*"repeat": "\([^"]*\)".*/\1/' <<<"${lines[0]}")
    run -1 --separate-stderr bash -c "$command"
    [[ ${lines[0]} == "FAIL     counts/some given "* ]]
}

@test "the command line goes before the case, and is for every problem" {
    # 8 is no element of state
    run -1 --separate-stderr kaio-verify --run -d cpu --kernel=counts --code=generic rows.yaml ids=@const:8
    [[ ${lines[0]} == "FAIL     counts/some given "* && $stderr == *"element 8 of 'state'"* ]]
    run -0 --separate-stderr kaio-verify --run -d cpu --kernel=counts --code=generic rows.yaml ids=0..3 some n=50
    [[ ${lines[0]} == "PASS     counts/some given"* && ${lines[1]} == "PASS     counts/n=50 exact"* ]]
    run -0 --separate-stderr kaio-verify --run -d cpu --shapes=3 --kernel=counts rows.yaml ids=@sorted:0:8 state=@zeros
    [[ $output == *"PASS     counts/n="*" given"* ]]
}

@test "what is no input, and what it cannot be" {
    run -2 --separate-stderr kaio-verify --run -d cpu rows.yaml mask=@zeros
    [ "${stderr_lines[0]}" = "kaio-verify: error: no kernel has the input of 'mask=@zeros'" ]
    run -2 --separate-stderr kaio-verify --run -d cpu --kernel=rows rows.yaml y=@zeros
    [[ $stderr == *"no kernel has the input of 'y=@zeros'"* ]]
    run -2 --separate-stderr kaio-verify --run -d cpu --kernel=counts rows.yaml ids=@zero
    [[ $output == *"ERROR    counts/some  ids: unknown generator '@zero'"* && $stderr == *"did you mean '@zeros'?"* ]]
    run -2 --separate-stderr kaio-verify --run -d cpu --kernel=counts rows.yaml ids=1..x
    [[ $output == *"ids is an input: it takes a generator, as in @zeros or @randint:0:10, or a range, as in 0..9; not '1..x'"* ]]
    run -2 --separate-stderr kaio-verify --run -d cpu --kernel=counts rows.yaml ids=@zeros:y.npy
    [[ $output == *"there is more behind the generator"* ]]
    run -2 --separate-stderr kaio-verify --run -d cpu --kernel=counts rows.yaml ids=@normal
    [[ $output == *"'@normal' makes fractions; for i32 use '@randint:LO:HI'"* ]]
    sed 's/state: "@zeros"/state: "@sorted:3"/' rows.yaml >bad.yaml
    run -2 --separate-stderr kaio-verify --run -d cpu bad.yaml
    [[ $stderr == *"bad.yaml:32:46: error: state: '@sorted:3' needs bounds: '@sorted:LO:HI'"* ]]
}
