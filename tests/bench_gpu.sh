#!/bin/bash
# kaio-bench on a real GPU: that what it says can be true, and is said twice.
#
#     tests/bench_gpu.sh [-b BINDIR] [-t TARGET] [-p rates,products,tune]
#
# Of small and large problems, elementwise, by rows and to a scalar, beside the copy and the naive schedule:
#   - every contender is right, and has a time;
#   - nothing moves faster than the memory can, where its data do not fit the cache, and the copy reaches half of that;
#   - a second run gives the same medians within a tenth (launches of microseconds vary by that);
#   - the rates of small problems are those of graphs: under 20 microseconds;
#   - NVML answers.
# Of matrix products beside cuBLAS, where it is there:
#   - the library's results are right, in each type and layout, of fused specs those of the product only;
#   - the fastest of its choices is no slower than its own, and products of f16 take less than half the time of its sgemm.
# Of schedules by search:
#   - a tuned kernel is as fast as the built-in one at least, and a second run takes its schedule from the cache.
# Exit status: 0, 1 something is not so, 77 there is no GPU.
set -u

target=() parts=rates,products,tune
while getopts b:t:p: opt; do
    case $opt in
    p) parts=$OPTARG ;;
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

rates() {
    local pass status
    for pass in first second; do
        rows "$out/$pass.json" specs/elementwise/add.yaml n=1000,134217728
        status=$?
        [ $status != 77 ] || exit 77
        [ $status = 0 ] || return 1
        rows "$out/$pass.json" --vs='schedule:{strategy: naive}' specs/norm/rms_norm.yaml rows=16 cols=1024 || return 1
        rows "$out/$pass.json" specs/norm/softmax.yaml T=f16,f32 rows=16384 cols=4096 || return 1
        rows "$out/$pass.json" --generic specs/norm/softmax.yaml rows=16384 cols=4096 || return 1
        rows "$out/$pass.json" specs/reduce/sum_all.yaml n=16777216 || return 1
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
}

# Rows of products beside the library, into $out/products.json.
times() {
    kaio-bench --runs=5 --time-per-round=5 "${target[@]}" --vs=cublas --vs=cublaslt --vs=cublas-sgemm \
        -o "$out/products.json" "$@"
    local status=$?
    [ $status != 77 ] || exit 77
    return $status
}

products() {
    local failed=0 kernel
    for type in f16 bf16 f32 tf32 f64 int8 fp8; do
        times --suite=matmul --types=$type m=1024,48 n,k=1024 || failed=1
    done
    for kernel in gate w8a8 slice tn; do
        times --kernel=$kernel tests/data/bench/products.yaml m=256 n=512 k=384 || failed=1
    done
    times --kernel=nt_bias tests/data/bench/products.yaml x=2 m=256 n=512 k=384 || failed=1
    times --kernel=batched tests/data/bench/products.yaml x=2 y=3 m=256 n=512 k=384 || failed=1
    python3 - "$out/products.json" <<'END' || failed=1
import json, sys

wrong = 0
rows = [json.loads(line) for line in open(sys.argv[1])]
for row in rows:
    if all(v["status"] == "absent" for v in row["results"][1:]):
        continue  # there is no library, which standard error says
    statements = [(v["status"] == "ok", f"{v['name']} is {v['status']}: {v.get('why')}") for v in row["results"]]
    seconds = [v["seconds"]["median"] if "seconds" in v else None for v in row["results"]]
    if None not in seconds:
        kaio, cublas, lt, sgemm = seconds
        statements.append((lt < 1.1 * cublas, "the fastest choice takes longer than the library's own"))
        if row["kernel"] == "matmul_f16" and row["values"]["m"] == 1024:
            statements.append((2 * cublas < sgemm, "sgemm is nearly as fast as f16"))
    for good, what in statements:
        if not good:
            wrong += 1
            print(f"not so: {row['id']}: {what}")
print(f"{len(rows)} products, {wrong} statements are not so")
sys.exit(wrong > 0)
END
    return $failed
}

tune() {
    local failed=0 cache=$out/tuned.json run status
    for run in first second; do
        for problem in "specs/norm/softmax.yaml T=f16 rows=4096 cols=4096" "specs/elementwise/add.yaml n=16777216" \
            "--suite=matmul --types=f16 m,n,k=1024" "--suite=matmul --types=f16 m=64 n=4096 k=4096"; do
            # shellcheck disable=SC2086 # words
            kaio-bench "${target[@]}" --tune --tune-cache="$cache" -o "$out/$run-tune.json" $problem 2>"$out/said"
            status=$?
            cat "$out/said" >&2
            [ $status != 77 ] || exit 77
            [ $status = 0 ] || failed=1
            if [ $run = second ] && ! grep -q 'from the cache' "$out/said"; then
                echo "not so: $problem is not taken from the cache the second time"
                failed=1
            fi
        done
    done
    python3 - "$out/first-tune.json" "$out/second-tune.json" <<'END' || failed=1
import json, sys

wrong = 0
for name in sys.argv[1:]:
    for line in open(name):
        row = json.loads(line)
        ratio = row["results"][1]["ratio"]["median"]
        if ratio < 0.97:
            wrong += 1
            print(f"not so: {row['id']}: {row.get('schedule')} has {ratio:.3f} of the built-in speed")
print(f"{wrong} statements about tuning are not so")
sys.exit(wrong > 0)
END
    return $failed
}

status=0
for part in ${parts//,/ }; do
    case $part in
    rates) rates || status=1 ;;
    products) products || status=1 ;;
    tune) tune || status=1 ;;
    *)
        echo "there is no part '$part': rates, products, tune" >&2
        exit 2
        ;;
    esac
done
exit $status
