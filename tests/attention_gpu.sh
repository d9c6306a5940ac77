#!/bin/bash
# Attention on a real GPU: whether it is right, and how fast beside cuDNN and PyTorch.
#
#     tests/attention_gpu.sh [-b BINDIR] [-d DEVICE] [-o DIR] [-n COUNT] [-s SECONDS] [-p PART,...] [-j JOBS] [-t TYPES]
#
# A machine may lend ten minutes at a time: PART,... chooses, and -s begins nothing more after so many seconds.
#
# verify     specs/attention by code for sm_80, which has mma.sync, and, where a GPU is sm_90, by that for sm_90a.
# large      their large cases, a sample of each output, likewise.
# random     COUNT (500) specs of tests/attention/generate.py, ten by each code in turn.
# sanitizer  compute-sanitizer's four tools over small cases of all specs, by both codes.
# bench      kaio-bench --suite attention [--types TYPES] beside cuDNN and, on sm_90, mma.sync, into DIR/bench.json.
# torch      tests/pytorch_attention.py: beside PyTorch's SDPA and compiled FlexAttention, into DIR/torch.csv.
# What is slow runs last. Exit status: 0, 1 something is wrong, 2 usage, 77 there is no GPU.
set -u

self=$(realpath "$0")
usage() {
    sed -n '4s/^# *//p' "$self" >&2
    exit 2
}

all=verify,random,sanitizer,large,bench,torch
device=cuda out='' count=500 parts=$all jobs=$(($(nproc) / 2)) types='' limit=1000000
((jobs > 8)) && jobs=8
((jobs < 1)) && jobs=1
while getopts b:d:j:n:o:p:s:t: opt; do
    case $opt in
    b) PATH=$(cd "$OPTARG" && pwd):$PATH ;;
    d) device=$OPTARG ;;
    j) jobs=$OPTARG ;;
    n) count=$OPTARG ;;
    o) out=$OPTARG ;;
    p) parts=$OPTARG ;;
    s) limit=$OPTARG ;;
    t) types=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 0 ] || usage
# shellcheck source=tests/gpu_parts.bash
. "$(dirname "$self")/gpu_parts.bash"
begin "$self"

# A way is a target and a spec.
ways=()
for spec in specs/attention/*.yaml; do
    for target in "${targets[@]}"; do ways+=("$target:$spec"); done
done

# way_of WAY: sets target, spec and a name.
way_of() {
    target=${1%%:*} spec=${1#*:}
    name=$(basename "$spec" .yaml).$target
}

verify_one() {
    local target spec name
    way_of "$1"
    try "$name.cases" kaio-verify --run --repeat -d "$device" -t "$target" "$spec"
    try "$name.shapes" kaio-verify --run --shapes=4 -d "$device" -t "$target" "$spec"
}
large_one() {
    local target spec name
    way_of "$1"
    try "$name.large" kaio-verify --run --all --fill=normal --sample=1000 -d "$device" -t "$target" "$spec"
}
random_one() {
    local target spec name
    way_of "$1"
    try "random.$name" kaio-verify --run -d "$device" -t "$target" "$spec"
}
sanitize_one() {
    local target spec name tool case
    way_of "$1"
    for tool in memcheck racecheck initcheck synccheck; do
        for case in odd edges whole; do
            grep -q "^  $case:" "$spec" || continue
            sanitize "$name.$case" $tool -t "$target" --fill=normal "$spec" $case
        done
    done
}

if wanted verify; then each verify_one "${ways[@]}"; fi

if wanted random; then
    # several kernels to a file: a process for each would take longer than the kernels
    mkdir -p "$out/random"
    drawn=()
    for ((i = 0; i < count; i += 10)); do
        n=$((count - i < 10 ? count - i : 10))
        file=$out/random/$(printf %05d $i).yaml
        python3 tests/attention/generate.py 20 $n $i >"$file" || exit 2
        drawn+=("${targets[i / 10 % ${#targets[@]}]}:$file")
    done
    each random_one "${drawn[@]}"
fi

if wanted sanitizer; then
    if command -v compute-sanitizer >/dev/null; then
        each sanitize_one "${ways[@]}"
    else
        echo "no compute-sanitizer on PATH"
        echo sanitizer >>"$failed"
    fi
fi

if wanted large; then each large_one "${ways[@]}"; fi

# PyTorch's wheels bring cuDNN and what that needs; the loader must know their folders before a program starts.
wheels=$(python3 - <<'END' 2>/dev/null
import glob, os, sysconfig
root = os.path.join(sysconfig.get_paths()["purelib"], "nvidia")
print(":".join(sorted(glob.glob(os.path.join(root, "*", "lib")))))
END
)
export LD_LIBRARY_PATH=$wheels${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

if wanted bench; then
    rivals=(--vs cudnn)
    [ $hopper = yes ] && rivals+=(--vs 'schedule:{mma: sync}')
    kaio-bench -d "$device" --suite attention ${types:+--types "$types"} "${rivals[@]}" --runs 12 --time-per-round 10 \
        -o "$out/bench.json" 2>"$out/bench.log" &
    bench=$!
    # what is known is in the file; the rest of the time is for others
    while kill -0 $bench 2>/dev/null; do
        if ((SECONDS >= limit)); then kill -TERM $bench && echo "the suite was interrupted after $limit seconds"; break; fi
        sleep 1
    done
    wait $bench
    status=$?
    grep -v '^$' "$out/bench.log" | head -n 20
    [ $status -eq 0 ] || [ $status -gt 128 ] || echo bench >>"$failed"
fi

if wanted torch; then
    python3 tests/pytorch_attention.py ${types:+--types "$types"} --limit $((limit - SECONDS)) --csv "$out/torch.csv"
    status=$?
    [ $status -eq 0 ] || [ $status -eq 77 ] || echo torch >>"$failed"
fi

conclude
