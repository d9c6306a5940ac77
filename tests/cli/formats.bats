# kaio-verify: TAP, JSON and JUnit, with everything in them that must be escaped.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return
    # a pass, a failure with a picture, a skip, an error; names with every quote there is
    mkdir "a <b> & \"c\" #1"
    dir="a <b> & \"c\" #1"
    cat >"$dir/k.yaml" <<'YAML'
kernel: good
params:
  x: in f32[n]
  y: out f32[n]
compute: |
  y[i] = x[i] + 1
cases:
  small: {n: 40}
  huge: {n: 50000000}
---
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
---
kernel: beyond
params:
  x: in f32[n]
  y: out f32[n]
block: 32
grid: ceil_div(n, 32)
body: |
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(x[i] < 0.0f, "less < \"zero\" & more # than");
  y[i] = x[i];
reference: |
  y[i] = x[i]
cases:
  small: {n: 32}
YAML
}

@test "TAP 14: a plan, escaped names, YAML below what failed" {
    run -1 --separate-stderr kaio-verify --run -d cpu --fill=exact --code=generic --format=tap "$dir/k.yaml"
    [ "${lines[0]}" = "TAP version 14" ]
    [ "${lines[1]}" = "ok 1 - good/small exact y f32[40]: 40 compared, all equal" ]
    [ "${lines[2]}" = "ok 2 - good/huge # SKIP large (5e+07 terms); --all or --sample=N runs it" ]
    [[ "${lines[3]}" == "not ok 3 - halves/small exact y f32[64]: 32 of 64 wrong"* ]]
    [ "${lines[4]}" = "  ---" ]
    [ "${lines[5]}" = '  status: "FAIL"' ]
    [[ "$output" == *'# than"'* ]] # within quotes it is no comment
    [[ "$output" == *'not ok 4 - beyond/small exact'*'\#'* ]]
    [ "${lines[-1]}" = "1..4" ]
    if command -v python3 >/dev/null && python3 -c 'import yaml' 2>/dev/null; then
        python3 - <<'PY' "$output"
import sys, yaml
docs, block = [], None
for line in sys.argv[1].split("\n"):
    if line == "  ---": block = []
    elif line == "  ...": docs.append(yaml.safe_load("\n".join(block))); block = None
    elif block is not None: block.append(line[2:])
assert [d["status"] for d in docs] == ["FAIL", "FAIL"], docs
assert docs[0]["mismatches"].startswith("[32]: got nan"), docs
assert docs[0]["map"].count("#") == 33, docs
assert docs[0]["repeat"].endswith("small"), docs
assert "less < \"zero\" & more # than" in docs[1]["message"], docs
PY
    fi
}

@test "JSON: a line a row, keys that stay" {
    command -v python3 >/dev/null || skip "no python3"
    run -1 --separate-stderr kaio-verify --run -d cpu --fill=exact --code=generic --format=json "$dir/k.yaml"
    python3 - <<'PY' "$output"
import json, sys
rows = [json.loads(l) for l in sys.argv[1].split("\n")]
assert [r["status"] for r in rows] == ["PASS", "SKIP", "FAIL", "FAIL"], rows
p, f = rows[0], rows[2]
for key in "kernel test device target code fill seed seconds output type shape count compared wrong exact unbounded max_abs max_ulp max_bound relative_l2 repeat".split():
    assert key in p, key
assert p["shape"] == [40] and p["type"] == "f32" and p["kernel"] == "good"
assert f["wrong"] == 32 and len(f["mismatches"]) == 10
assert f["mismatches"][0]["index"] == "32" and f["mismatches"][0]["got"] is None # NaN
assert "zero" in rows[3]["why"]
PY
}

@test "JUnit: as the schema says" {
    run -1 --separate-stderr kaio-verify --run -d cpu --fill=exact --code=generic --format=junit "$dir/k.yaml"
    printf '%s\n' "$output" >report.xml
    [ "${lines[0]}" = '<?xml version="1.0" encoding="UTF-8"?>' ]
    [[ "${lines[1]}" == '<testsuites name="kaio-verify" tests="4" failures="2" errors="0" skipped="1" time="'* ]]
    [ "$(grep -c '<testsuite ' report.xml)" = 3 ]
    if command -v xmllint >/dev/null; then
        xmllint --noout --schema "$KAIO_SRCDIR/tests/data/junit.xsd" report.xml
        [[ "$(xmllint --xpath 'string(//testsuite[@name="beyond"]/testcase/failure/@message)' report.xml)" == *'less < "zero" & more # than'* ]]
        [[ "$(xmllint --xpath 'string(//testsuite[@name="halves"]/testcase/failure)' report.xml)" == *"repeat: kaio-verify"* ]]
    fi
}

@test "JUnit: bytes that are no text, and no rows at all" {
    printf 'kernel: k\nparams:\n  y: out f32[n]\ncompute: |\n  y[i] = 1\ncases: {a: {n: 3}}\n' >$'odd\xff\x01.yaml'
    run -1 --separate-stderr kaio-verify --run -d cpu --format=junit --atol=0 $'odd\xff\x01.yaml' n=4 n=5 || true
    kaio-verify --run -d cpu --format=junit $'odd\xff\x01.yaml' n=x >report.xml 2>/dev/null || true
    grep -q '<error type="ERROR"' report.xml
    if command -v xmllint >/dev/null; then
        xmllint --noout --schema "$KAIO_SRCDIR/tests/data/junit.xsd" report.xml
    fi
    run -2 --separate-stderr kaio-verify --run -d cpu --format=junit "$dir/k.yaml" nothing
    printf '%s\n' "$output" >report.xml
    grep -q 'tests="0"' report.xml
    if command -v xmllint >/dev/null; then
        xmllint --noout --schema "$KAIO_SRCDIR/tests/data/junit.xsd" report.xml
    fi
}

@test "a session in which nothing was compared is no pass" {
    run -2 kaio-verify --run -d cpu --kernel=good --fill=exact "$dir/k.yaml" n=0
    [ "${lines[0]}" = "SKIP     good/n=0 exact  nothing to compare: 'y' is empty" ]
    [ "${lines[-1]}" = "kaio-verify: error: nothing was checked" ]
    run -2 kaio-verify --run -d cpu "$KAIO_SRCDIR/specs/elementwise/saxpy.yaml" large
    [[ "${lines[0]}" == "SKIP     saxpy/large  large"* ]]
    [ "${lines[-1]}" = "kaio-verify: error: nothing was checked" ]
}

@test "--fail-fast stops at the first failure, --list runs nothing" {
    run -1 --separate-stderr kaio-verify --run -d cpu --fill=exact --code=generic --fail-fast "$dir/k.yaml"
    [ "${lines[-1]}" = "1 passed, 1 failed, 1 skipped" ]
    [[ "$output" != *beyond* ]]
    run -0 --separate-stderr kaio-verify --run --list "$dir/k.yaml"
    [ "${#lines[@]}" = 4 ]
    [ "${lines[0]}" = "good/small  n=40  40 terms" ]
    run -0 --separate-stderr kaio-verify --run --list --format=json "$dir/k.yaml" small
    [ "${lines[0]}" = '{"kernel": "good", "test": "good/small", "types": {}, "values": "n=40", "terms": 40}' ]
    run -2 kaio-verify --run --list --format=tap "$dir/k.yaml"
    run -2 kaio-verify --list "$dir/k.yaml" small
    run -2 kaio-verify --run --list "$dir/k.yaml" missing
}
