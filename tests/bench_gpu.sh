#!/bin/bash
# kaio-bench on a real GPU: that what it says can be true, and is said twice.
#
#     tests/bench_gpu.sh [-b BINDIR] [-t TARGET]
#
# Of small and large problems, elementwise, by rows and to a scalar, beside the copy and the naive schedule:
#   - every contender is right, and has a time;
#   - nothing moves faster than the memory can, where its data do not fit the cache, and the copy reaches half of that;
#   - a second run gives the same medians within a tenth (launches of microseconds vary by that);
#   - the rates of small problems are those of graphs: under 20 microseconds;
#   - NVML answers.
# Exit status: 0, 1 something is not so, 77 there is no GPU.
set -u

target=()
while getopts b:t: opt; do
    case $opt in
    b) PATH=$(cd "$OPTARG" && pwd):$PATH ;;
    t) target=(-t "$OPTARG") ;;
    *) exit 2 ;;
    esac
done
cd "$(dirname "$0")/.." || exit 2
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT

# Appends the rows of a spec to the file $1, quickly.
rows() {
    local file=$1
    shift
    kaio-bench --runs=5 --time-per-round=5 --vs=copy "${target[@]}" -o "$file" "$@"
}

for pass in first second; do
    rows "$out/$pass.json" specs/elementwise/add.yaml n=1000,134217728
    status=$?
    [ $status != 77 ] || exit 77
    [ $status = 0 ] || exit 1
    rows "$out/$pass.json" --vs='schedule:{strategy: naive}' specs/norm/rms_norm.yaml rows=16 cols=1024 || exit 1
    rows "$out/$pass.json" specs/norm/softmax.yaml T=f16,f32 rows=16384 cols=4096 || exit 1
    rows "$out/$pass.json" --generic specs/norm/softmax.yaml rows=16384 cols=4096 || exit 1
    rows "$out/$pass.json" specs/reduce/sum_all.yaml n=16777216 || exit 1
done

python3 - "$out/first.json" "$out/second.json" <<'END'
import json, sys

first, second = ([json.loads(line) for line in open(name)] for name in sys.argv[1:])
wrong = 0


def check(good, row, what):
    global wrong
    if not good:
        wrong += 1
        print(f"not so: {row['id']}: {what}")


assert [r["id"] for r in first] == [r["id"] for r in second], "two runs of the same have other rows"
for row, again in zip(first, second):
    limit = row["environment"]["bandwidth_limit"]
    cache = row["environment"]["l2_bytes"]
    for v, w in zip(row["results"], again["results"]):
        check(v["status"] == "ok", row, f"{v['name']} is {v['status']}")
        seconds = v["seconds"]["median"]
        change = w["seconds"]["median"] / seconds
        check(0.9 < change < 1.1, row, f"{v['name']} takes {change:.3f} of its time the second time")
        rate = v["bytes"] / seconds
        if v["sets"] * v["set_bytes"] > 2 * cache:
            check(rate < limit, row, f"{v['name']} moves {rate / limit:.2f} of what the memory can")
        if v["name"] == "copy" and v["bytes"] > 4 * cache:
            check(rate > 0.5 * limit, row, f"the copy moves {rate / limit:.2f} of what the memory can")
        if row["bytes"] < 1e6:
            check(v["executions_per_graph"] > 0 and seconds < 20e-6, row, f"{v['name']} takes {seconds * 1e6:.1f} us")
    check(row["conditions"].get("watts", 0) > 10, row, "no power was read")
print(f"{len(first)} problems, {wrong} statements are not so")
sys.exit(wrong > 0)
END
