# kaio-bench, on a driver of our own (tests/fake_cuda.c), whose log says what was launched, on which buffers and in which order.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    cp "$KAIO_SRCDIR"/tests/data/bench/*.yaml .
    export KAIO_CUDA_LIB=$KAIO_BUILDDIR/tests/libfakecuda.so
    export KAIO_NVML_LIB=$KAIO_CUDA_LIB FAKE_CUDA_LOG=$BATS_TEST_TMPDIR/log
    quick="--runs=4 --time-per-round=5"
}

# The cells of column NAME of the CSV on standard input.
column() {
    python3 -c 'import csv, sys
for row in csv.DictReader(sys.stdin): print(row[sys.argv[1]])' "$1"
}

# For each line of JSON on standard input, what a Python expression over it, r, gives.
json() {
    python3 -c 'import json, sys
def kinds(r): return [a["kind"] for a in r["launches"][0]["args"]]
for line in sys.stdin:
    r = json.loads(line)
    v = eval("(" + sys.argv[1] + ")")
    print(v if isinstance(v, str) else json.dumps(v, separators=(",", ":")))' "$1"
}

@test "a row for each problem of the sweeps, the last one fastest" {
    run -0 --separate-stderr kaio-bench --dry-run twice.yaml T=f32,f16 n=100,1Ki
    [ "$(grep '^kaio: ' <<<"$output" | cut -d' ' -f3,4)" = "T=f32 n=100
T=f32 n=1024
T=f16 n=100
T=f16 n=1024" ]
    [ -z "$stderr" ]
}

@test "a grid goes by the multiprocessors of the GPU, in a dry run by the target's" {
    cat >k.yaml <<'END'
kernel: twice
params:
  x: in f32[n]
  y: out f32[n]
grid: min(ceil_div(n, 128), 2 * multiprocessors)
block: 128
body: |
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2 * x[i];
reference: y[i] = 2 * x[i]
END
    run -0 kaio-bench --dry-run k.yaml n=100,1Mi
    [ "${lines[1]}" = '  twice, grid 1, block 128' ]
    [ "${lines[3]}" = '  twice, grid 264, block 128' ]
    run -0 kaio-bench --dry-run -t sm_86 k.yaml n=1Mi
    [ "${lines[1]}" = '  twice, grid 168, block 128' ]
    sed -i 's/grid: .*/grid: "multiprocessors == 4 ? 8 : 0 - 1"/' k.yaml
    run -0 kaio-bench $quick k.yaml n=10Ki
    run -2 kaio-bench --dry-run k.yaml n=100Ki
    [[ $output = *"grid x is -1; "*"multiprocessors is 132"* ]]
}

@test "ranges multiply or add, and stop where they are told" {
    values() { kaio-bench --dry-run thrice.yaml "$1" | grep '^kaio' | grep -o 'n=[0-9]*' | tr '\n' ' '; }
    [ "$(values n=256..2048*2)" = "n=256 n=512 n=1024 n=2048 " ]
    [ "$(values n=100..250*2)" = "n=100 n=200 " ]
    [ "$(values n=1..9+4,100)" = "n=1 n=5 n=9 n=100 " ]
    run -2 kaio-bench --dry-run thrice.yaml n=1..9
    [[ $output == *"'1..9' does not say how to go on"* ]]
    run -2 kaio-bench --dry-run thrice.yaml n=0..9*2
    [[ $output == *"never gets on"* ]]
    run -2 kaio-bench --dry-run thrice.yaml n=9..1+1
    run -2 kaio-bench --dry-run thrice.yaml n=1..4294967295+1
    [[ $output == *"more than 10000 values"* ]]
}

@test "names that move together" {
    cat >mul.yaml <<'END'
kernel: mul
params:
  a: in f32[m, k]
  b: in f32[k, n]
  c: out f32[m, n]
compute: |
  c[i, j] = sum[l](a[i, l] * b[l, j])
END
    run -0 kaio-bench --dry-run --format=json mul.yaml m,n=16,32 k=8
    [ "$(json 'r["values"]' <<<"$output")" = '{"m":16,"k":8,"n":16}
{"m":32,"k":8,"n":32}' ]
    # 2 m n k, and every buffer once
    [ "$(json '[r["operations"], r["bytes"]]' <<<"$output")" = '[4096,2048]
[16384,6144]' ]
}

@test "cases by name, all of them by default, and sweeps over them" {
    kaio-bench --dry-run twice.yaml | grep '^kaio' | grep -o 'T=.* (' >all
    [ "$(cat all)" = "T=f32 n=1000 (
T=f32 n=300000 (" ]
    run -0 kaio-bench --dry-run twice.yaml large T=f16
    [[ ${lines[0]} == "kaio: twice T=f16 n=300000 (fixed, sm_80): "* ]]
    run -0 kaio-bench --dry-run twice.yaml large n=7
    [[ ${lines[0]} == "kaio: twice T=f32 n=7 "* ]]
    run -2 kaio-bench --dry-run twice.yaml huge
    [[ $output == *"'twice' has no case 'huge'"* ]]
}

@test "--bytes chooses the first dimension without a value, as large as fits" {
    cat >rows.yaml <<'END'
kernel: rows
types: {T: [f32, f16]}
params:
  x: in T[rows, cols]
  y: out T[rows, cols]
require: [rows % 4 == 0]
compute: |
  y[r, c] = x[r, c] + 1
END
    bytes() { kaio-bench --dry-run --format=json "$@" rows.yaml | json '[r["values"]["rows"], sum(p["bytes"] for p in r["params"])]'; }
    [ "$(bytes --bytes=1Mi cols=1000)" = '[128,1024000]' ]
    [ "$(bytes --bytes=1Mi cols=1000 T=f16)" = '[260,1040000]' ]
    run -2 kaio-bench --dry-run --bytes=1Mi rows.yaml
    [[ $output == *"dimension 'cols' has no value"* ]]
    run -2 kaio-bench --dry-run --bytes=1Mi rows.yaml rows=4 cols=4
    [[ $output == *"nothing to choose"* ]]
    run -2 kaio-bench --dry-run --bytes=1000 rows.yaml cols=1000
    [[ $output == *"no 'rows' makes the buffers"* ]]
}

@test "what is not there is named, with what is" {
    run -2 kaio-bench twice.yaml m=3
    [[ $output == *"'twice' has no dimension, type or scalar 'm'"*"it has T, n"* ]]
    run -2 kaio-bench twice.yaml T=f64
    [[ $output == *"'twice' is for T=f32, f16, not f64"* ]]
    run -2 kaio-bench twice.yaml n=1 n=2
    [[ $output == *"'n' is given twice"* ]]
    run -2 kaio-bench twice.yaml n=big
    [[ $output == *"'big' in 'n=big' is neither a number nor a type"* ]]
    run -2 kaio-bench --vs=cups twice.yaml
    [[ $output == *"unknown rival 'cups'"* ]]
    run -2 kaio-bench --vs='schedule:{strategy: hope}' --dry-run twice.yaml small
    [[ $output == *"unknown strategy 'hope'"* ]]
    run -2 kaio-bench --vs='schedule:[' twice.yaml
    run -2 kaio-bench --vs=nowhere.yaml twice.yaml
    [[ $output == *"cannot open 'nowhere.yaml'"* ]]
    run -2 kaio-bench
    [[ $output == *"no spec given"* ]]
    run -2 kaio-bench twice.yaml thrice.yaml
    [[ $output == *"there are two specs"* ]]
}

@test "without a GPU: status 77 and one line that says so; the simulator is refused" {
    KAIO_CUDA_LIB=/nonexistent run -77 --separate-stderr kaio-bench twice.yaml
    [ -z "$output" ]
    [ "${#stderr_lines[@]}" = 1 ]
    [[ $stderr == "kaio-bench: error: there is no GPU to time on: "* ]]
    run -2 kaio-bench -d cpu twice.yaml
    [[ $output == *"the simulator's time says nothing"* ]]
    KAIO_CUDA_LIB=/nonexistent run -0 kaio-bench -d cpu --dry-run twice.yaml
    FAKE_CUDA_DEVICES=2 run -77 kaio-bench -d cuda:2 twice.yaml
    [[ $output == *"there is no GPU 2"* ]]
}

@test "each contender's graph is replayed once in every round, and rounds have orders of their own" {
    FAKE_CUDA_US=thrice:13 run -0 kaio-bench --runs=24 --time-per-round=1 --vs=thrice.yaml --vs=copy twice.yaml n=1000
    # 24 rounds of a sample each: a replay behind one that does not count
    sed -n 's/^replay .* of //p' log | tail -n 144 >replays
    awk '{ n[$1]++ } NR % 6 == 0 { for (i in n) print n[i]; delete n }' replays | sort | uniq -c >counts
    [[ $(cat counts) =~ ^" "*72" 2"$ ]] || { cat replays; false; }
    # who is at work: no two follow each other always, none comes first always
    uniq replays | awk 'NR > 1 { print last, $1 } { last = $1 }' | sort | uniq -c >pairs
    [ "$(wc -l <pairs)" = 6 ] || { cat pairs; false; }
    cp replays first
    rm log
    FAKE_CUDA_US=thrice:13 run -0 kaio-bench --runs=24 --time-per-round=1 --vs=thrice.yaml --vs=copy twice.yaml n=1000
    sed -n 's/^replay .* of //p' log | tail -n 144 | cmp - first # the same in every run
}

@test "executions rotate through sets that exceed the L2 cache twice" {
    run -0 kaio-bench $quick twice.yaml n=1000
    # 8000 bytes and the cache's 1 MiB: 8192 bytes a set with their alignment
    grep '^capture twice at ' log >captured
    [ "$(sort -u captured | wc -l)" = 257 ]
    [ "$(uniq captured | wc -l)" = "$(wc -l <captured)" ]
    sort captured | uniq -c | awk '{print $1}' | sort -u >times.txt
    [ "$(wc -l <times.txt)" = 1 ]
    rm log
    FAKE_CUDA_US=twice:500 run -0 kaio-bench $quick twice.yaml n=300000
    [ "$(sed -nE 's/^(capture|queue) twice at //p' log | sort -u | wc -l)" = 1 ]
}

@test "short executions are replayed as a graph, long ones queued one by one" {
    FAKE_CUDA_US=twice:500 run -0 kaio-bench $quick twice.yaml n=1000
    ! grep -q capture log || false
    # 5 ms of half a millisecond, four rounds and those before
    [ "$(grep -c '^queue twice' log)" -gt 40 ]
    rm log
    FAKE_CUDA_US=twice:50 run -0 kaio-bench $quick twice.yaml n=1000
    grep -q '^replay [0-9]* nodes of twice' log
}

@test "a wrong result is a failed row and never a time" {
    FAKE_CUDA_WRONG=twice run -1 --separate-stderr kaio-bench $quick twice.yaml n=1000
    [[ ${lines[1]} == *" wrong: y: 1 of 1000 wrong, the first at 999: "* ]]
    ! grep -q replay log || false
    FAKE_CUDA_WRONG=twice run -1 kaio-bench $quick --format=json twice.yaml n=1000
    [ "$(json '[r["status"], r["results"][0].get("seconds")]' <<<"$output")" = '["wrong",null]' ]
    # a rival's
    FAKE_CUDA_WRONG=thrice run -1 kaio-bench $quick --format=json --vs=thrice.yaml twice.yaml n=1000
    [ "$(json '[r["status"]] + [v["status"] for v in r["results"]] + [r["results"][1].get("seconds")]' <<<"$output")" = \
        '["ok","ok","wrong",null]' ]
    json 'r["results"][1]["why"]' <<<"$output" | grep '1 of 1000 wrong'
}

@test "a result that goes wrong while it is timed is one too" {
    FAKE_CUDA_WRONG=twice:2000 run -1 kaio-bench $quick twice.yaml n=1000
    [[ ${lines[1]} == *" wrong: after it was timed, y: 1 of 1000 wrong"* ]]
}

@test "an inout is checked before it is timed, not after" {
    cp "$KAIO_SRCDIR/specs/elementwise/saxpy.yaml" .
    run -0 kaio-bench $quick --format=json -D n=1000 saxpy.yaml
    [ "$(json '[r["status"], r["bytes"], r["results"][0]["elements_checked"]]' <<<"$output")" = '["ok",12000,1000]' ]
}

@test "the same schedule is as fast; ratios are the rival's time over the kernel's" {
    FAKE_CUDA_US=thrice:20 run -0 --separate-stderr kaio-bench --format=csv $quick --vs='schedule:{strategy: naive}' --vs=thrice.yaml \
        twice.yaml n=1000,3000
    [ -z "$stderr" ]
    printf '%s\n' "$output" >rows.csv
    [ "$(column '/ {strategy: naive}' <rows.csv | tr '\n' ' ')" = "1 1 " ]
    [ "$(column '/ thrice.yaml' <rows.csv | grep -cE '^(1\.9[89]|2$|2\.0)')" = 2 ]
    [ "$(column n <rows.csv | tr '\n' ' ')" = "1000 3000 " ]
    [ "$(column status <rows.csv | tr '\n' ' ')" = "ok ok " ]
}

@test "a rival without code for a problem leaves its columns empty" {
    cat >even.yaml <<'END'
kernel: thrice
params: {x: "in f32[n]", y: "out f32[n]"}
require: [n % 2 == 0]
compute: "y[i] = 2.0 * x[i]"
END
    run -0 --separate-stderr kaio-bench --format=csv $quick --vs=even.yaml twice.yaml n=1000,1001
    printf '%s\n' "$output" >rows.csv
    [ "$(column 'even.yaml us' <rows.csv | grep -c .)" = 1 ]
    [ "$(column status <rows.csv | tr '\n' ' ')" = "ok refused " ]
    [[ $stderr == *"n % 2 == 0"* ]]
    run -2 kaio-bench $quick even.yaml n=1001
}

@test "JSON: a line for each row, with its samples, conditions and the command that repeats it" {
    FAKE_CUDA_US=twice:40 run -0 --separate-stderr kaio-bench --format=json --runs=5 --time-per-round=2 --vs=copy twice.yaml n=1000,2000
    [ "${#lines[@]}" = 2 ]
    [ "$(json '[r[k] for k in ("id", "kernel", "code", "mode")] + [r["values"]["n"], r["bytes"], r["inputs"]] +
        [r["environment"][k] for k in ("device", "driver")] +
        [r["conditions"][k] for k in ("celsius", "watts", "throttled")]' <<<"${lines[1]}")" = \
        '["twice T=f32 n=2000 fixed sm_80 burst","twice","fixed","burst",2000,16000,"normal","Fake GPU 0","999.1",51,420.5,["power"]]' ]
    for line in "${lines[@]}"; do
        [ "$(json '[len(v["samples"]) for v in r["results"]]' <<<"$line")" = '[5,5]' ]
        [ "$(json 'all(max(v["samples"]) == v["seconds"]["worst"] >= v["seconds"]["median"] >= v["seconds"]["best"] ==
            min(v["samples"]) > 0 for v in r["results"])' <<<"$line")" = true ]
        # 40 us, every third launch a fiftieth longer
        [ "$(json '40e-6 < r["results"][0]["seconds"]["median"] < 41e-6' <<<"$line")" = true ]
        # of each round, not of the medians
        [ "$(json '(lambda k, v: abs(v["ratio"]["median"] - sorted(y / x for x, y in zip(k["samples"], v["samples"]))[2]) < 1e-9 * v["ratio"]["median"]
            )(*r["results"])' <<<"$line")" = true ]
    done
    repeat=$(json 'r["repeat"]' <<<"${lines[1]}")
    [[ $repeat == "kaio-bench -d cuda:0 -t sm_80 --vs=copy --runs=5 "*" twice.yaml T=f32 n=2000" ]]
    run -0 $repeat --format=json
    [ "$(json 'r["id"]' <<<"$output")" = "twice T=f32 n=2000 fixed sm_80 burst" ]
}

@test "50 rounds, or as many as take that time where an execution is longer than a round, but 10, or those of --runs" {
    local us least most n
    while read -r us least most; do
        FAKE_CUDA_US=twice:$us run -0 --separate-stderr kaio-bench --format=json twice.yaml n=1000
        n=$(json 'len(r["results"][0]["samples"])' <<<"$output")
        ((n >= least && n <= most)) || { echo "$us: $output"; false; }
        [[ $(json 'r["repeat"]' <<<"$output") != *--runs* ]]
    done <<<$'500 50 50\n6000 32 33\n20000 10 10\n50000 10 10'
    FAKE_CUDA_US=twice:20000 run -0 --separate-stderr kaio-bench --format=json --runs=12 twice.yaml n=1000
    [ "$(json 'len(r["results"][0]["samples"])' <<<"$output")" = 12 ]
}

# The seconds before the first round that counts, and whether the times were steady then; $1: a condition on them.
warmed() {
    FAKE_CUDA_US=twice:1000 run -0 --separate-stderr kaio-bench --format=json --vs copy twice.yaml n=1000
    local got
    got=$(json 's := r["conditions"]["warm_seconds"], r["conditions"]["steady"]' <<<"$output")
    python3 -c 'import sys; s, steady = eval(sys.argv[1].replace("true", "True").replace("false", "False"))
assert eval(sys.argv[2]), sys.argv[1]' "$got" "$1"
}

@test "warm-up ends when times no longer drift, however single rounds scatter" {
    warmed '.25 <= s < .45 and steady'
    FAKE_CUDA_SCATTER=4 warmed '.25 <= s < .45 and steady'
    FAKE_CUDA_SCATTER=4 FAKE_CUDA_SLOWS=5:1000 warmed '.9 < s < 1.4 and steady'
    FAKE_CUDA_SCATTER=4 FAKE_CUDA_SLOWS=5:100000 warmed '2 <= s < 2.2 and not steady'
}

@test "--sustained: a second row after seconds of work" {
    run -0 kaio-bench $quick --format=json --sustained=0.6 twice.yaml n=1000
    [ "$(json 'r["mode"]' <<<"$output" | tr '\n' ' ')" = "burst sustained " ]
    [ "$(json 'r["conditions"]["warm_seconds"] >= 0.6' <<<"$output" | tr '\n' ' ')" = "false true " ]
}

@test "--generic emits code that is given its dimensions, save what -D fixes" {
    run -0 kaio-bench --dry-run --format=json twice.yaml n=1000
    [ "$(json '[r["code"], kinds(r)]' <<<"$output")" = '["fixed",["buffer","buffer"]]' ]
    run -0 kaio-bench --dry-run --generic --format=json twice.yaml n=1000
    [ "$(json '[r["code"], kinds(r), r["launches"][0]["args"][2]["value"]]' <<<"$output")" = \
        '["generic",["buffer","buffer","dim"],1000]' ]
    run -0 kaio-bench --dry-run --generic --format=json -D n=1000 twice.yaml
    [ "$(json 'kinds(r)' <<<"$output")" = '["buffer","buffer"]' ]
    run -0 kaio-bench $quick --generic --format=json twice.yaml n=1000
    [ "$(json 'r["id"]' <<<"$output")" = "twice T=f32 n=1000 generic sm_80 burst" ]
}

@test "--dry-run says for each launch what it is given; --keep has the PTX" {
    cat >two.yaml <<'END'
kernel: spread
params: {x: "in f16[n, 8]", y: "out f32[n, 8]", labels: "in i32[n]", alpha: f32 = 0.5}
compute: |
  top[i] = max[c](x[i, c])
  y[i, c] = alpha * (x[i, labels[i]] - top[i])
END
    run -0 kaio-bench --dry-run -t sm_90 --generic --keep=code --format=json two.yaml n=64
    [ "$(json '[[p.get(k) for k in ("name", "mode", "type", "shape", "bytes", "below")] for p in r["params"]]' <<<"$output")" = \
        '[["x","in","f16",[64,8],1024,null],["y","out","f32",[64,8],2048,null],["labels","in","i32",[64],256,8]]' ]
    [ "$(json 'len(r["launches"]) > 0 and all(len(l["grid"]) == len(l["block"]) == 3 and l["shared"] >= 0
        for l in r["launches"])' <<<"$output")" = true ]
    [ "$(json 'set(a["value"] for l in r["launches"] for a in l["args"] if a.get("name") == "alpha") == {0.5}' <<<"$output")" = true ]
    ptx=$(json 'r["ptx"]' <<<"$output")
    grep -q '^.target sm_90$' "$ptx"
    for entry in $(json '" ".join(l["entry"] for l in r["launches"])' <<<"$output"); do grep -q "\.entry $entry(" "$ptx"; done
    run -0 kaio-bench --dry-run two.yaml n=64
    [[ ${lines[0]} == "kaio: spread n=64 (fixed, sm_80): 3.25 KiB in buffers, 3.25 KiB moved" ]]
}

@test "--output: JSON is appended as it comes, other formats appear whole" {
    run -0 kaio-bench $quick -o rows.json twice.yaml n=1000
    [[ ${lines[0]} == *"median us"* ]]
    run -0 kaio-bench $quick -o rows.json twice.yaml n=2000
    [ "$(json 'r["values"]["n"]' <rows.json | tr '\n' ' ')" = "1000 2000 " ]
    echo old >rows.csv
    run -0 kaio-bench $quick -o rows.csv twice.yaml n=1000
    [ "$(column n <rows.csv)" = 1000 ]
    run -0 kaio-bench $quick --output=table.txt twice.yaml n=1000
    [ -z "$output" ]
    grep -q 'median us' table.txt
    run -2 kaio-bench $quick -o /nonexistent/rows.csv twice.yaml n=1000
    ! grep -q replay <(tail -n 1 log) || false
}

@test "Markdown has a rule under its head and as many cells in every line" {
    run -0 kaio-bench $quick --format=md --vs=copy twice.yaml n=1000,2000
    [ "${#lines[@]}" = 4 ]
    [[ ${lines[1]} =~ ^\|(:?--:?\|)+$ ]]
    for line in "${lines[@]}"; do [ "$(tr -cd '|' <<<"$line" | wc -c)" = "$(tr -cd '|' <<<"${lines[0]}" | wc -c)" ]; done
}

@test "the table's columns stand under their heads" {
    FAKE_CUDA_US=twice:500 run -0 kaio-bench $quick --vs=copy twice.yaml T=f32 n=1000,300000
    for line in "${lines[@]}"; do [ "${#line}" = "${#lines[0]}" ]; done
    [[ ${lines[2]} == "f32  300000  fixed  "* ]]
}

@test "--plot draws a line for each contender, as well-formed SVG" {
    run -0 kaio-bench $quick --vs=copy --vs='schedule:{strategy: naive}' --plot=p.svg thrice.yaml n=1000..4000*2
    command -v xmllint >/dev/null && xmllint --noout p.svg
    python3 - <<'END'
import xml.etree.ElementTree as tree
svg = tree.parse("p.svg").getroot()
ns = "{http://www.w3.org/2000/svg}"
text = [t.text for t in svg.iter(ns + "text")]
assert svg.tag == ns + "svg", svg.tag
assert {"thrice", "kaio", "copy", "{strategy: naive}", "n", "TB/s", "1000", "2000", "4000"} <= set(text), text
circles = [(float(c.get("cx")), float(c.get("cy")), c.get("fill")) for c in svg.iter(ns + "circle")]
assert len(circles) == 9, circles
first = [c for c in circles if c[2] == circles[0][2]]
steps = [b[0] - a[0] for a, b in zip(first, first[1:])]
assert len(first) == 3 and abs(steps[0] - steps[1]) < 0.2, first    # a logarithmic axis
assert first[0][1] > first[1][1] > first[2][1], first               # larger problems are faster
END
    run -2 kaio-bench --plot=p.svg thrice.yaml n=1000
    [[ $output == *"--plot has no axis"* ]]
}

@test "--baseline: a slower row fails, and what is missing is named" {
    FAKE_CUDA_US=twice:20 run -0 kaio-bench $quick -o base.json twice.yaml n=1000,2000
    FAKE_CUDA_US=twice:20 run -0 --separate-stderr kaio-bench $quick --baseline=base.json twice.yaml n=1000,2000
    [ -z "$stderr" ]
    FAKE_CUDA_US=twice:22 run -1 --separate-stderr kaio-bench $quick --baseline=base.json twice.yaml n=1000,3000
    [[ $stderr == *"error: twice T=f32 n=1000 fixed sm_80 burst: 22.15 us, and 20.13 us in the baseline: 0.909 of its speed"* ]]
    [[ $stderr == *"the baseline has no twice T=f32 n=3000 fixed sm_80 burst"* ]]
    [[ $stderr == *"of the baseline this run has no twice T=f32 n=2000 fixed sm_80 burst"* ]]
    FAKE_CUDA_US=twice:22 run -0 kaio-bench $quick --baseline=base.json --fail-below=0.9 twice.yaml n=1000,2000
    json 'r' <base.json >compact.json
    FAKE_CUDA_US=twice:22 run -1 kaio-bench $quick --baseline=compact.json twice.yaml n=1000,2000
    echo '{"id": 3}' >>base.json
    run -2 kaio-bench $quick --baseline=base.json twice.yaml n=1000
    [[ $output == *"base.json, line 3:1:1: error: this is no row of kaio-bench --format=json"* ]]
    echo '{"id": "x", ' >bad.json
    run -2 kaio-bench --baseline=bad.json twice.yaml n=1000
    : >empty.json
    run -2 kaio-bench --baseline=empty.json twice.yaml n=1000
    [[ $output == *"'empty.json' has no row with a time"* ]]
}

@test "without NVML that is said once, and everything else goes on" {
    FAKE_NVML=0 run -0 --separate-stderr kaio-bench $quick --format=json twice.yaml n=1000,2000
    [ "$stderr" = "kaio-bench: no clocks, power and temperature: libnvidia-ml.so.1 does not start" ]
    [ "$(json '[r["status"], r["conditions"]["no_sensors"], r["conditions"].get("watts")]' <<<"${lines[1]}")" = '["ok","libnvidia-ml.so.1 does not start",null]' ]
    KAIO_NVML_LIB=/nonexistent run -0 kaio-bench $quick twice.yaml n=1000
    [[ $output == *"there is no libnvidia-ml.so.1"* ]]
}

@test "a device that fails is status 3, and nothing more is tried" {
    for call in cuMemAlloc_v2:2 cuStreamBeginCapture_v2:900 cuStreamEndCapture:901 cuGraphInstantiateWithFlags:2 \
        cuGraphLaunch:700 cuStreamSynchronize:700 cuMemcpyDtoDAsync_v2:999; do
        FAKE_CUDA_FAIL=$call run -3 --separate-stderr kaio-bench $quick --vs=copy twice.yaml n=1000,2000
        [ "${#lines[@]}" = 2 ]
        [[ ${lines[1]} == *" failed: "* ]]
        [[ $stderr == *"error: "* ]]
    done
    FAKE_CUDA_JIT_LOG='ptxas error: no' run -2 kaio-bench $quick twice.yaml n=1000
    [[ $output == *"refused"* ]]
}

@test "memory and graphs are given back" {
    run -0 kaio-bench $quick --vs=copy --vs=thrice.yaml twice.yaml n=1000,5000
    [ "$(grep -c '^alloc' log)" = "$(grep -c '^free' log)" ]
    [ "$(grep -c '^begin capture' log)" = "$(grep -c '^graph destroyed' log)" ]
    [ "$(grep -c '^load' log)" = "$(grep -c '^unload' log)" ]
}

@test "nothing is launched where a dimension is 0" {
    FAKE_CUDA_US=thrice:500 run -0 kaio-bench $quick thrice.yaml n=0,10
    [[ ${lines[1]} == *"absent: nothing is launched: a dimension is 0" ]]
    [[ ${lines[2]} != *absent* ]]
}

@test "the comparison with PyTorch passes its own test" {
    python3 "$KAIO_SRCDIR/tests/pytorch.py" --self-test --bench "$(command -v kaio-bench)" --specs "$KAIO_SRCDIR/specs" >tap
    ! grep '^not ok' tap || false
    [ "$(grep -c '^ok .* plan of ' tap)" -ge 50 ]
}

@test "the comparison with PyTorch draws operations, each by its number and seed" {
    pytorch() { python3 "$KAIO_SRCDIR/tests/pytorch.py" --bench "$(command -v kaio-bench)" --specs "$KAIO_SRCDIR/specs" "$@"; }
    pytorch --random 20 --seed 3 --list >list
    [ "$(wc -l <list)" = 20 ]
    pytorch --random 40 --seed 3 --list | head -n 20 | diff list -
    ! pytorch --random 20 --seed 4 --list | diff -q list - || false
    run -0 pytorch --random 5 --family pooling --list
    [[ ${lines[4]} == "pooling_4 "* ]]
    run -2 pytorch --random 5 --family pool --list
    [[ $output == *"unknown family 'pool'; there are convolution, "* ]]
    run -2 pytorch --random 5 --op softmax
    [[ $output == *"--random goes with none of --op, "* ]]
}

@test "the comparison of attention with PyTorch finds in every plan what its launches need" {
    python3 "$KAIO_SRCDIR/tests/pytorch_attention.py" --self-test --bench "$(command -v kaio-bench)" >tap
    ! grep '^not ok' tap || false
    [ "$(grep -c '^ok - attention_full .* {mma: sync}$' tap)" = 18 ]
    run -0 python3 "$KAIO_SRCDIR/tests/pytorch_attention.py" --list --types=decode,fp8 --bench "$(command -v kaio-bench)"
    [ "${#lines[@]}" = 6 ]
    run -2 python3 "$KAIO_SRCDIR/tests/pytorch_attention.py" --no-such-option
}

@test "attention_gpu.sh checks random specs on any device, and says what is wrong" {
    run -0 "$KAIO_SRCDIR/tests/attention_gpu.sh" -d cpu -p random -n 2 -o out
    [[ ${lines[1]} == "random.00000.sm_80 "*" right "*"passed, 0 failed"* ]]
    [ "${lines[-1]}" = "all is well" ]
    [ -f out/random/00000.yaml ]
    printf '#!/bin/sh\n[ "$1" = --list-devices ] || exit 1\necho "cpu  none"\n' >kaio-run
    printf '#!/bin/sh\necho "FAIL it"; exit 1\n' >kaio-verify
    chmod +x kaio-run kaio-verify
    run -1 "$KAIO_SRCDIR/tests/attention_gpu.sh" -b . -d cpu -p random -n 11 -o out
    [[ $output == *"random.00010.sm_80 "*" wrong "*"    FAIL it"*"2 failures" ]]
    run -77 "$KAIO_SRCDIR/tests/attention_gpu.sh" -b . -d cuda
    run -2 "$KAIO_SRCDIR/tests/attention_gpu.sh" -p nothing
    # the suite in the end is interrupted when time is up, and what PyTorch is not here for is left out
    printf '#!/bin/bash\ntrap "exit 143" TERM\nfor ((i = 0; i < 300; i++)); do sleep 0.1; done\n' >kaio-bench
    chmod +x kaio-bench
    run -0 "$KAIO_SRCDIR/tests/attention_gpu.sh" -b . -d cpu -p bench -t full,causal -s 2 -o out
    [[ $output == *"the suite was interrupted after 2 seconds"*"all is well" ]]
    # with no time left nothing is begun
    run -0 "$KAIO_SRCDIR/tests/attention_gpu.sh" -b . -d cpu -s 0 -o out
    [ "${lines[-1]}" = "all is well" ]
}

# ---- matrix products ----

# A machine with the library; products of 4 x 4 by the kernel that the fake driver knows.
with_library() {
    export KAIO_CUBLAS_LIB=$KAIO_BUILDDIR/tests/libfakecublas.so FAKE_CUDA_MEMORY=200000000
    export KAIO_CUBLASLT_LIB=$KAIO_CUBLAS_LIB
    product="--suite=matmul --types=f32 m,n,k=4"
}

@test "--vs cublas: the product in the spec, in its own layout" {
    with_library
    FAKE_CUDA_US=matmul_f32:90,gemm:90 run -0 --separate-stderr kaio-bench $quick --vs cublas --vs cublas-sgemm --format=json $product
    [ "$(json '[v["status"] for v in r["results"]]' <<<"$output")" = '["ok","ok","ok"]' ]
    [ "$(json '[v["name"] for v in r["results"]]' <<<"$output")" = '["kaio","cublas","cublas-sgemm"]' ]
    # by columns: the second operand comes first
    grep -q '^gemm( NN m 4 n 4 k 4 batch 1: f32 ld 4 stride 0, f32 ld 4 stride 0, f32 ld 4, compute 68$' log
    [ -z "$stderr" ]
    grep -q '^cublas destroyed$' log
}

@test "--vs cublas: of tf32 factors are rounded or cut, as the library does it" {
    with_library
    for cut in 0 1 2; do
        [ "$cut" = 2 ] && want=wrong || want=ok
        FAKE_CUDA_US=matmul_tf32:90,gemm:90 FAKE_CUBLAS_CUT=$cut run --separate-stderr kaio-bench $quick --vs cublas --format=json --suite=matmul --types=tf32 m,n=4 k=8
        [ "$(json '[v["status"] for v in r["results"]]' <<<"$output")" = "[\"ok\",\"$want\"]" ]
    done
}

@test "--vs cublas: of f64 all is f64, and both are checked as that" {
    with_library
    run -0 kaio-bench $quick --vs cublas --vs cublaslt --format=json --suite=matmul --types=f64 m=3 n=4 k=5
    [ "$(json '[v["status"] for v in r["results"]]' <<<"$output")" = '["ok","ok","ok"]' ]
    grep -q '^gemm( NN m 4 n 3 k 5 batch 1: f64 ld 4 stride 0, f64 ld 5 stride 0, f64 ld 4, compute 70$' log
    FAKE_CUDA_WRONG=matmul_f64 run -1 --separate-stderr kaio-bench $quick --vs cublas --format=json --suite=matmul --types=f64 m=3 n=4 k=5
    [ "$(json 'r["results"][0]["status"]' <<<"$output")" = wrong ]
}

@test "--vs cublaslt takes the fastest of the choices, and says which" {
    with_library
    FAKE_CUDA_US=lt0:300,lt1:50,lt2:400,matmul_f32:100 FAKE_CUBLAS_CHOICES=4 \
        run -0 kaio-bench $quick --vs cublaslt --format=json $product
    grep -q '^heuristic: 4 of 32 wanted$' log
    [ "$(json 'r["results"][1]["choice"]' <<<"$output")" = "algorithm 10, tile 11, stages 16, split-k 12, choice 2 of 4" ]
    json '0.45 < r["results"][1]["ratio"]["median"] < 0.55' <<<"$output" | grep -q true
}

@test "products are captured like launches, and replayed in rounds with them" {
    with_library
    FAKE_CUDA_US=gemm:7 run -0 kaio-bench $quick --vs cublas --format=csv $product
    grep -q '^capture gemm at ' log
    grep -q '^replay .* nodes of gemm$' log
    [ "$(column 'cublas us' <<<"$output" | cut -c1-3)" = "7.0" ] || [ "$(column 'cublas us' <<<"$output")" = 7 ]
    # more than one set of buffers
    [ "$(grep '^capture gemm' log | sort -u | wc -l)" -gt 100 ]
}

@test "without the library its columns are empty, once said why, and the rest is timed" {
    with_library
    export KAIO_CUBLAS_LIB=/nonexistent/libcublas.so.13
    run -0 --separate-stderr kaio-bench $quick --vs cublas --vs copy --format=csv --suite=matmul --types=f32 m,n,k=8,4
    [ "$(column 'cublas us' <<<"$output" | sort -u)" = "" ]
    [ "$(column 'copy us' <<<"$output" | grep -c .)" = 2 ]
    [ "$(grep -c 'warning: cublas: KAIO_CUBLAS_LIB: /nonexistent' <<<"$stderr")" = 1 ]
}

@test "a library with wrong results fails the row" {
    with_library
    FAKE_CUBLAS_STATUS=13 run -3 kaio-bench $quick --vs cublas $product
    [[ $output == *"cublasGemmEx: the GPU failed (13)"* ]]
}

@test "what is left away of a spec is said: the product only" {
    cp "$KAIO_SRCDIR"/tests/data/bench/products.yaml .
    run -0 kaio-bench --dry-run --vs cublas --kernel=nt_bias products.yaml x=2 m=128 n=64 k=32
    [[ $output == *"cublas: nt_bias x=2 m=128 k=32 n=64: the product only
  cublasGemmEx, m 256, n 64, k 32, a f16[m][k] ld 32, b f16[n][k] ld 32, c f16[m][n] ld 64, sums in f32"* ]]
    run -0 kaio-bench --dry-run --vs cublas --kernel=batched products.yaml x=2 y=3 m=16 n=64 k=32
    [[ $output == *"cublasGemmStridedBatchedEx, m 16, n 64, k 32, batch 6, a f32[m][k] ld 32 stride 512, b f32[k][n] ld 64 stride 2048, "* ]]
    # the rest as a spec of its own, which is one
    run -0 kaio-bench --dry-run --vs cublas-unfused --kernel=nt_bias products.yaml x=2 m=128 n=64 k=32
    sed -n '/^  then$/,$p' <<<"$output" | sed '1d; s/^    //' >rest.yaml
    grep -qx '  product0: in f16\[x, m, n\]' rest.yaml
    grep -qx '  c\[h, i, j\] = gelu(product0\[h, i, j\] + bias\[j\])' rest.yaml
    run ! grep -q '^  [ab]:' rest.yaml
    kaio-emit rest.yaml >/dev/null
    run -0 kaio-bench --dry-run --vs cublaslt --kernel=no_product products.yaml m=16 k=32
    [[ $output == *"nothing: the spec has no sum[k](a * b)"* ]]
    # a scale along the sum is no matrix
    run -0 kaio-bench --dry-run --vs cublas "$KAIO_SRCDIR/specs/matmul/scaled_rows.yaml" n4096
    [[ $output == *"cublasGemmEx, m 4096, n 4096, k 4096, a f16[m][k] ld 4096, b f16[k][n] ld 4096,"* ]]
    # two operands, but no product of them
    run -0 kaio-bench --dry-run --vs cublas "$KAIO_SRCDIR/specs/matmul/squared_distances.yaml" n4096
    [[ $output == *"nothing: the spec has no sum[k](a * b)"* ]]
}

@test "--suite: every type and shape of it, or those that are wanted" {
    run -0 kaio-bench --list-suites
    [[ $output == "matmul: "*"types: f16 bf16 f32 tf32 f64 int8 fp8"*"m=64 k=4096 n=14336"* ]]
    run -0 kaio-bench --dry-run --format=json --suite=matmul --types=f16,int8
    [ "$(wc -l <<<"$output")" = 46 ]
    [ "$(json 'r["kernel"]' <<<"$output" | sort | uniq -c | awk '{print $1, $2}')" = "23 matmul_f16
23 matmul_int8" ]
    [ "$(json 'r["values"]' <<<"$output" | sort -u | wc -l)" = 23 ]
    # two operations for each term, of integers too
    [ "$(json 'r["operations"]' <<<"$output" | head -1)" = 33554432 ]
    [ "$(json 'r["operations"]' <<<"$output" | tail -1)" = 60129542144 ]
    run -0 kaio-bench --dry-run --suite=matmul --types=bf16 m=5,6 k=7 n=8
    [ "$(grep -c '^kaio: matmul_bf16' <<<"$output")" = 2 ]
}

@test "what does not go with a suite is a usage error" {
    run -2 kaio-bench --dry-run --suite=matmul twice.yaml
    [[ $output == *"--suite has specs of its own, and 'twice.yaml' is one more"* ]]
    run -2 kaio-bench --dry-run --suite=convolution
    [[ $output == *"unknown suite 'convolution'; there are: matmul, attention"* ]]
    run -2 kaio-bench --dry-run --suite=matmul --types=f16,f8
    [[ $output == *"suite 'matmul' has no type 'f8'; it has f16, bf16, f32, tf32, f64, int8, fp8"* ]]
    run -2 kaio-bench --dry-run --types=f16 twice.yaml
    [[ $output == *"--types is for --suite"* ]]
    run -2 kaio-bench --dry-run --suite=matmul small
    [[ $output == *"suite 'matmul' has no case 'small'"* ]]
    run -2 kaio-bench --dry-run --suite=matmul x=5
    [[ $output == *"has no dimension, type or scalar 'x'"* ]]
}

@test "a suite's rows have their kernel and rate, repeat alone, and end in geometric means" {
    with_library
    FAKE_CUDA_US=matmul_f32:10,gemm:20 run -0 --separate-stderr kaio-bench $quick -o rows.json --vs cublas --suite=matmul --types=f32 m,n,k=8,4
    [[ ${lines[0]} =~ ^kernel\ +m\ +k\ +n\ +code.*TFLOP/s ]]
    [[ ${lines[-1]} == "matmul_f32 / cublas: "*", the geometric mean of 2 rows" ]]
    mean=${lines[-1]#*: }
    [[ ${mean%%,*} == 2.* || ${mean%%,*} == 1.99* || ${mean%%,*} = 2 ]]
    [ "$(json 'r["repeat"].split(" --suite")[1]' <rows.json | head -1)" = "=matmul --types=f32 m=8 k=8 n=8" ]
    # and the rows are a baseline
    run -0 kaio-bench $quick --baseline=rows.json --vs cublas --suite=matmul --types=f32 m,n,k=8,4
    FAKE_CUDA_US=matmul_f32:15 run -1 kaio-bench $quick --baseline=rows.json --suite=matmul --types=f32 m,n,k=8
    [[ $output == *"matmul_f32 m=8 k=8 n=8"*"of its speed"* ]]
    [[ $output == *"of the baseline this run has no matmul_f32 m=4"* ]]
}

@test "tensor maps are made for each copy of the buffers" {
    export FAKE_CUDA_SM=90
    FAKE_CUDA_US=matmul_nt:90 run -0 --separate-stderr kaio-bench -t sm_90a --format=json --runs=2 --time-per-round=1 nt.yaml m=16 n=8 k=32
    # right before and after, by addresses out of the maps
    [ "$(json 'r["status"]' <<<"$output")" = ok ]
    sets=$(json 'r["results"][0]["sets"]' <<<"$output")
    [ "$sets" -gt 100 ]
    [ "$(grep '^map at .* type 6: 32/64/1 16/64/1@64, interleave 0 swizzle 3' log | sort -u | wc -l)" = "$sets" ]
    [ "$(grep '^capture matmul_nt' log | sort -u | wc -l)" = "$sets" ]
    run -0 --separate-stderr kaio-bench -t sm_90a --dry-run --format=json nt.yaml m=16 n=8 k=32
    [ "$(json '[[a["name"], a["dims"], a["strides"], a["swizzle"]] for a in r["launches"][0]["args"] if a["kind"] == "map"]' <<<"$output")" = '[["a",[32,16],[64],128],["b",[32,8],[64],128]]' ]
    [ "$(json '[[a["steps"], a["interleave"], a["promote"], a["fill"]] for a in r["launches"][0]["args"] if a["kind"] == "map"][0]' <<<"$output")" = '[[1,1],0,256,"zero"]' ]
}

# ---- attention ----

# A machine with the library; attention by the kernel that the fake driver knows.
with_attention() {
    export KAIO_CUDNN_LIB=$KAIO_BUILDDIR/tests/libfakecudnn.so FAKE_CUDA_MEMORY=200000000
    export FAKE_CUDA_US=attention:300,sdpa:300 # each launch computes: the shorter, the more of them fill a round
    attention="$KAIO_SRCDIR/specs/attention/forward.yaml b=1 heads=2 m=4 n=6 d=16 e=16"
}

@test "--vs cudnn: attention on the same inputs, captured, checked before and after" {
    with_attention
    FAKE_CUDA_US=attention:30,sdpa:60 run -0 --separate-stderr kaio-bench $quick --vs cudnn --format=json $attention
    [ "$(json '[v["status"] for v in r["results"]]' <<<"$output")" = '["ok","ok"]' ]
    [ "$(json '[r["results"][1]["name"], r["results"][1]["choice"]]' <<<"$output")" = '["cudnn","cuDNN 9.19.0"]' ]
    json '1.9 < r["results"][1]["ratio"]["median"] < 2.1' <<<"$output" | grep -q true
    # q, k and v, o and lse
    [ "$(json 'r["results"][1]["bytes"]' <<<"$output")" = 1312 ]
    [ "$(json 'r["results"][1]["elements_checked"]' <<<"$output")" = 136 ]
    # two products of heads x m x n x 16
    [ "$(json 'r["operations"]' <<<"$output")" = 3072 ]
    [ -z "$stderr" ]
    grep -q '^graph of 10 operations$' log
    grep -q '^replay .* nodes of sdpa$' log
    grep -q '^cudnn destroyed$' log
    grep -q '^no descriptor left$' log
    [ "$(grep -c '^alloc' log)" = "$(grep -c '^free' log)" ]
}

@test "--vs cudnn: wrong results, a library that fails, and one that is not there" {
    with_attention
    FAKE_CUDNN_WRONG=1 run -1 kaio-bench $quick --vs cudnn --format=json $attention
    [ "$(json '[v["status"] for v in r["results"]]' <<<"$output")" = '["ok","wrong"]' ]
    FAKE_CUDNN_STATUS=5000 run -3 kaio-bench $quick --vs cudnn $attention
    [[ $output == *"cudnnBackendExecute: status 5000: the fake fails"* ]]
    [[ $output != *"second line"* ]]
    FAKE_CUDNN_ENGINES=1 run -0 kaio-bench $quick --vs cudnn --format=csv $attention
    [ -n "$(column 'cudnn us' <<<"$output")" ]
    FAKE_CUDNN_ENGINES=0 run -0 kaio-bench $quick --vs cudnn --format=csv $attention
    [ -z "$(column 'cudnn us' <<<"$output")" ]
    # the first reason, in words
    [[ $output == *",refused,cudnn: the engines of cuDNN: status 3000: the fake has no engine"* ]]
    [[ $output != *engineId* && $output != *" at: "* && $output != *fallback* ]]
    FAKE_CUDNN_ENGINES=0 FAKE_CUDNN_FALLBACK=1 run -0 kaio-bench $quick --vs cudnn --format=csv $attention
    [ -n "$(column 'cudnn us' <<<"$output")" ]
    KAIO_CUDNN_LIB=/nonexistent/libcudnn.so.9 run -0 --separate-stderr kaio-bench $quick --vs cudnn --vs copy --format=csv $attention
    [ -z "$(column 'cudnn us' <<<"$output")" ]
    [ -n "$(column 'copy us' <<<"$output")" ]
    [[ $stderr == *"warning: cudnn: KAIO_CUDNN_LIB: /nonexistent"* ]]
}

@test "--vs cudnn --dry-run: what the library is asked for, by the equations alone" {
    specs=$KAIO_SRCDIR/specs/attention
    asked() { # SPEC CASE
        kaio-bench --dry-run --vs cudnn "$specs/$1.yaml" "$2" | sed -n '/^cudnn: /{n;s/^  //p}'
    }
    [ "$(asked forward d128_4096)" = "attention of f16, batch 4, heads 16, m 4096, n 4096, d 128, scale 0.0883883461, lse" ]
    [ "$(asked causal edges)" = "attention of f16, batch 1, heads 1, m 66, n 130, d 64, scale 0.125, causal to the last key, lse" ]
    [[ $(asked grouped llama_4096) == *"heads 32 on 8, m 4096"* ]]
    [[ $(asked window window_1024) == *", causal, window 1024, lse" ]]
    [[ $(asked softcap d128_4096) == *", cap 30, causal" ]]
    [[ $(asked alibi d128_4096) == *", causal, slopes" ]]
    [[ $(asked bias d128_4096) == *", bias" ]]
    [[ $(asked varlen bert) == *", lse, lengths" ]]
    [[ $(asked decode speculative) == *", causal to the last key, lengths" ]]
    [[ $(asked paged_decode b16_4096) == *"heads 32 on 8, m 1, n 4096"*", lengths, pages" ]]
    [[ $(asked strided "$(sed -n 's/^  \(odd\): .*/\1/p' "$specs/strided.yaml")") == "attention of "* ]]
    [[ $(asked backward d128_1024) == "gradients of f16, batch 16, heads 16, m 1024, n 1024, d 128, "* ]]
    # one cache of keys, whose first columns are the values
    [ "$(asked mla_latent deepseek_8192)" = "attention of f16, batch 32, heads 128 on 1, m 1, n 8192, d 576 and 512, scale 0.0721687824, lse, lengths" ]
    run -0 kaio-bench --dry-run --vs cudnn --suite=attention --types=fp8
    [[ $output == *"nothing: on Hopper cuDNN's attention of 8-bit floats gives 8-bit floats"* ]]
    [ "$(asked documents d128_4096)" = "nothing: cuDNN has no mask that depends on data but for lengths of sequences" ]
    [ "$(asked prefix edges)" = "nothing: cuDNN has no such mask" ]
    [[ $(asked linear edges) == "nothing: the spec is no attention: "* ]]
    # names say nothing
    sed 's/\bq\b/one/g; s/\bk\b/two/g; s/\bv\b/three/g; s/\bo\b/out0/g; s/\blse\b/out1/g; s/\btop\b/u/g; s/\btotal\b/w/g' "$specs/forward.yaml" >renamed.yaml
    run -0 kaio-bench --dry-run --vs cudnn renamed.yaml d128_4096
    [[ $output == *"attention of f16, batch 4, heads 16, m 4096, n 4096, d 128, scale 0.0883883461, lse"* ]]
    run -0 kaio-bench --dry-run --format=json --vs cudnn "$specs/forward.yaml" d128_4096
    [ "$(json 'r["asked"][:16]' <<<"${lines[1]}")" = "attention of f16" ]
    [ "$(json 'r["operations"]' <<<"${lines[0]}")" = 549755813888 ]
}

# ---- convolutions ----

with_convolution() {
    export KAIO_CUDNN_LIB=$KAIO_BUILDDIR/tests/libfakecudnn.so FAKE_CUDA_MEMORY=200000000 FAKE_CUDA_US=conv:300,sdpa:300
    cat >conv.yaml <<'E'
kernel: conv
params:
  x: in f32[n, c, h, w]
  weight: in f32[f, c, 3, 3]
  y: out f32[n, f, h, w]
compute: |
  y[b,o,i,j] = sum[d,u,v](pad(x[b, d, i + u - 1, j + v - 1], 0) * weight[o,d,u,v])
schedule: {strategy: naive}
E
    conv="conv.yaml n=2 c=3 h=4 w=5 f=2"
}

@test "--vs cudnn: a convolution by the fastest of what the library offers, checked before and after" {
    with_convolution
    FAKE_CUDA_US=conv:30,sdpa:60 FAKE_CUDNN_ENGINES=4 run -0 --separate-stderr kaio-bench $quick --vs cudnn --format=json $conv
    [ "$(json '[v["status"] for v in r["results"]]' <<<"$output")" = '["ok","ok"]' ]
    [[ $(json 'r["results"][1]["choice"]' <<<"$output") == "cuDNN 9.19.0, choice "[12]" of 2" ]]
    json '1.9 < r["results"][1]["ratio"]["median"] < 2.1' <<<"$output" | grep -q true
    [ "$(json '[r["results"][1]["bytes"], r["results"][1]["elements_checked"]]' <<<"$output")" = "[1016,80]" ]
    # two for each term, those in the border among them
    [ "$(json 'r["operations"]' <<<"$output")" = 4320 ]
    [ -z "$stderr" ]
    grep -q '^replay .* nodes of sdpa$' log
    grep -q '^no descriptor left$' log
    [ "$(grep -c '^alloc' log)" = "$(grep -c '^free' log)" ]
}

@test "--vs cudnn: a convolution that is wrong, that fails, and that nothing computes as precisely" {
    with_convolution
    FAKE_CUDNN_WRONG=1 run -1 kaio-bench $quick --vs cudnn --format=json $conv
    [ "$(json '[v["status"] for v in r["results"]]' <<<"$output")" = '["ok","wrong"]' ]
    [[ $output == *"the convolution at 0, 0, 0, 0 is "*" instead of "* ]]
    FAKE_CUDNN_STATUS=5000 run -3 kaio-bench $quick --vs cudnn $conv
    [[ $output == *"cudnnBackendExecute: status 5000: the fake fails"* ]]
    # tensor cores would round f32 to tf32, inputs would lose bits, and sums would be of 16 bits
    for note in 0 1 2; do
        FAKE_CUDNN_ENGINES=1 FAKE_CUDNN_FALLBACK=1 FAKE_CUDNN_NOTE=$note run -0 kaio-bench $quick --vs cudnn --format=csv $conv
        [[ $output == *",refused,cudnn: the engines of cuDNN: status 3000: none keeps the precision"* ]]
    done
    FAKE_CUDNN_ENGINES=1 FAKE_CUDNN_NOTE=5 run -0 kaio-bench $quick --vs cudnn --format=csv $conv
    [ -n "$(column 'cudnn us' <<<"$output")" ]
    FAKE_CUDNN_ENGINES=0 FAKE_CUDNN_FALLBACK=1 run -0 kaio-bench $quick --vs cudnn --format=csv $conv
    [ -n "$(column 'cudnn us' <<<"$output")" ]
    FAKE_CUDNN_ENGINES=0 run -0 kaio-bench $quick --vs cudnn --format=csv $conv
    [[ $output == *",refused,cudnn: the engines of cuDNN: status 3000: the fake has no engine"* ]]
    # where the spec says tf32, the tensor cores may
    sed -i 's/pad(\(.*\), 0) \* \(.*\))$/tf32(pad(\1, 0)) * tf32(\2))/' conv.yaml
    run -0 kaio-bench --dry-run --vs cudnn $conv
    [[ $output == *"convolution of tf32, x 2 x 3 x 4 x 5, w 2 x 3 x 3 x 3, y 2 x 2 x 4 x 5, border 1 x 1"* ]]
}

@test "--vs cudnn --dry-run: convolutions and their gradients, by the equations alone" {
    specs=$KAIO_SRCDIR/specs/conv
    asked() { # SPEC CASE
        kaio-bench --dry-run --vs cudnn "$specs/$1.yaml" "$2" | sed -n '/^cudnn: /{n;s/^  //p}'
    }
    [ "$(asked conv2d resnet)" = "convolution of f16, x 64 x 64 x 56 x 56, w 64 x 64 x 3 x 3, y 64 x 64 x 56 x 56, border 1 x 1" ]
    [[ $(asked conv2d_nhwc odd) == *", x 2 x 5 x 5 x 7 channels last, w 9 x 5 x 3 x 3 channels last, y 2 x 9 x 5 x 7 channels last, border 1 x 1" ]]
    [[ $(asked conv2d_dilated odd) == *", dilation 2 x 2, border 2 x 2" ]]
    [[ $(asked conv2d_grouped odd) == *", x 2 x 15 x 5 x 7, w 27 x 5 x 3 x 3, y 2 x 27 x 5 x 7, groups 3, border 1 x 1" ]]
    [[ $(asked depthwise odd) == *", groups 5, border 1 x 1" ]]
    [[ $(asked conv1d odd) == *", x 2 x 7 x 1 x 19, w 9 x 7 x 1 x 3, y 2 x 9 x 1 x 19, border 0 x 1" ]]
    [[ $(asked conv3d odd) == *", w 9 x 3 x 2 x 3 x 3, "* ]]
    [[ $(asked backward_x odd) == "gradient of the image of f16, x 2 x 5 x 5 x 7 channels last, "* ]]
    [[ $(asked backward_weight odd) == "gradient of the filter of f16, x 2 x 5 x 5 x 7 channels last, "* ]]
    [[ $(asked transposed odd) == "gradient of the image of f16, x 2 x 9 x 7 x 9, w 5 x 9 x 3 x 3, y 2 x 5 x 3 x 4, stride 2 x 2" ]]
    [[ $(asked conv2d_int8 odd) == "nothing: cuDNN is asked for f16, bf16 and f32, not for i8 and i8" ]]
    conv() { # EQUATION EXTENTS-OF-Y
        printf 'kernel: k\nparams:\n  x: in f32[n, c, h, w]\n  weight: in f32[f, c, 3, 3]\n  y: out f32[%s]\ncompute: |\n  %s\n' "$2" "$1" >one.yaml
        kaio-bench --dry-run --vs cudnn one.yaml n=2 c=3 h=9 w=8 f=4 | sed -n '/^cudnn: /{n;s/^  //p}'
    }
    # a stride, whose last windows end in front of the border, and a border of something else
    [[ $(conv 'y[b,o,i,j] = sum[d,u,v](pad(x[b, d, 2 * i + u - 1, 2 * j + v - 1], 0) * weight[o,d,u,v])' 'n,f,h/2,w/2') == *"x 2 x 3 x 9 x 8, "*"y 2 x 4 x 4 x 4, stride 2 x 2, border 1 x 1 and 0 x 1" ]]
    [ "$(conv 'y[b,o,i,j] = sum[d,u,v](pad(x[b, d, i + u - 1, j + v - 1], 1) * weight[o,d,u,v])' n,f,h,w)" = "nothing: cuDNN pads with zeros" ]
    # a border that is cut off
    [[ $(conv 'y[b,o,i,j] = sum[d,u,v](x[b, d, i + u + 1, j + v] * weight[o,d,u,v])' 'n,f,h-4,w-3') == *"x 2 x 3 x 7 x 7, w 4 x 3 x 3 x 3, y 2 x 4 x 5 x 5" ]]
    # a window that is turned round, what is reduced once more, and no convolution at all
    [[ $(conv 'y[b,o,i,j] = sum[d, u < 3, v < 3](pad(x[b, d, i + u - 1, j + v - 1], 0) * weight[o,d,2-u,2-v])' n,f,h,w) == "nothing: "* ]]
    [[ $(conv 'y[b,o] = max[i < h - 2, j < w - 2](sum[d,u,v](x[b, d, i + u, j + v] * weight[o,d,u,v]))' n,f) == "nothing: "* ]]
    [[ $(conv 'y[b,o] = sum[d](x[b, d, 0, 0] * weight[o,d,1,2])' n,f) == "nothing: "* ]]
}

@test "--suite=conv: the convolutions of networks, in both layouts and types" {
    run -0 kaio-bench --list-suites
    [[ $output == *"  types: f16 f16-nchw tf32 tf32-nchw"*"  tf32: c64_56 c128_28 "*" stem c256_56 groups_28 depthwise_28 depthwise7_14"* ]]
    run -0 kaio-bench --dry-run --format=json --suite=conv --vs cudnn
    [ "$(json '"asked" in r and r["asked"].split()[0]' <<<"$output" | sort | uniq -c | tr -s ' ' | tr '\n' ';')" = ' 48 convolution; 48 false;' ]
    [ "$(kaio-bench --dry-run --suite=conv --types=f16 | grep -c '^kaio: ')" = 12 ]
    [[ $(kaio-bench --dry-run --suite=conv --types=tf32-nchw --vs cudnn c1280_16 | sed -n '/^cudnn: /{n;p}') == \
        "  convolution of tf32, x 8 x 1280 x 16 x 16, w 1280 x 1280 x 3 x 3, y 8 x 1280 x 16 x 16, border 1 x 1" ]]
    run -2 kaio-bench --dry-run --suite=conv --types=f64
    [[ $output == *"suite 'conv' has no type 'f64'; it has f16, f16-nchw, tf32, tf32-nchw"* ]]
    run -2 kaio-bench --dry-run --suite=conv no_such_case
    [[ $output == *"suite 'conv' has no case 'no_such_case'"* ]]
}

@test "--suite=attention: each kernel has its own cases, and all of them or some are timed" {
    run -0 kaio-bench --list-suites
    [[ $output == *"  full: d64_512 d64_1024 "*" d256_16384"*"  decode: b1_8192 b1_65536 "* ]]
    run -0 kaio-bench --dry-run --format=json --suite=attention
    [ "$(json 'r["kernel"][10:] + " x"' <<<"$output" | uniq -c | awk '{print $1 $2}' | tr '\n' ' ')" = \
        "18full 18causal 5decode 2softcap 2alibi 2window 2documents 2bias 2varlen 2paged 1fp8 4backward 4backward_causal " ]
    # 16384 tokens of 2048 numbers, two operations for each term; half of that and the diagonal where it is causal
    [ "$(head -18 <<<"$output" | json 'r["operations"] / r["values"]["n"] / 2**26' | sort -u)" = 2.0 ]
    [ "$(sed -n 19,36p <<<"$output" | json 'r["operations"] / (r["values"]["n"] + 1) / 2**26' | sort -u)" = 1.0 ]
    # five products of the gradients
    [ "$(json 'r["operations"] / r["values"].get("n", 1) / 2**26' <<<"$output" | sed -n 57,60p | sort -u)" = 5.0 ]
    run -0 kaio-bench --dry-run --suite=attention d128_4096 b1_8192
    [ "$(grep -c '^kaio: ' <<<"$output")" = 11 ]
    run -0 kaio-bench --dry-run --suite=attention --types=full b=3 heads=2 m,n=100 d=64
    [ "$(grep '^kaio: ' <<<"$output" | cut -d' ' -f2-7)" = "attention_full b=3 heads=2 m=100 d=64 n=100" ]
    run -2 kaio-bench --dry-run --suite=attention b1_8193
    [[ $output == *"suite 'attention' has no case 'b1_8193'"* ]]
}

@test "inputs are what the case says" {
    printf '%s\n' "cases: {nans: {n: 1000, x: '@const:nan'}, other: {n: 1000}}" | cat thrice.yaml - >cases.yaml
    run -0 --separate-stderr kaio-bench $quick --format=json cases.yaml nans other
    # all of the first one's results are NaN, so that other inputs were tried
    [ "$(json 'r["inputs"]' <<<"$output" | tr '\n' ' ')" = "uniform normal " ]
    [[ $(json 'r["repeat"]' <<<"${lines[0]}") == *" cases.yaml nans n=1000" ]]
}
