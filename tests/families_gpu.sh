#!/bin/bash
# Random kernels of families on a real GPU, and compute-sanitizer over what the library has of them.
#
#     tests/families_gpu.sh [-b BINDIR] [-d DEVICE] [-o DIR] [-n COUNT] [-f FIRST] [-r SEED] [-s SECONDS] [-p PART,...] [-j JOBS] [FAMILY]...
#
# A FAMILY is one of tests/families/generate.py (default: all). A machine may lend ten minutes at a time: PART,... chooses, and
# -s begins nothing more after so many seconds.
#
# random     COUNT (100) specs of each family, from number FIRST (0) of SEED (20) on: ten by code for sm_80, which has mma.sync,
#            ten by that for sm_90a where the GPU is sm_90, and so on, by code for all sizes and for each.
# special    the same specs with special and extreme inputs.
# sanitizer  compute-sanitizer's four tools over small cases of specs/conv, scan, norm, loss, stencil and others, by both codes, and
#            over ten random specs of each family. With -d cpu the simulator's checks.
# Exit status: 0, 1 something is wrong, 2 usage, 77 there is no GPU.
set -u

self=$(realpath "$0")
usage() {
    sed -n '4s/^# *//p' "$self" >&2
    exit 2
}

all=random,special,sanitizer
device=cuda out='' count=100 first=0 seed=20 parts=$all jobs=$(($(nproc) / 2)) limit=1000000
((jobs > 8)) && jobs=8
((jobs < 1)) && jobs=1
while getopts b:d:f:j:n:o:p:r:s: opt; do
    case $opt in
    b) PATH=$(cd "$OPTARG" && pwd):$PATH ;;
    d) device=$OPTARG ;;
    f) first=$OPTARG ;;
    j) jobs=$OPTARG ;;
    n) count=$OPTARG ;;
    o) out=$OPTARG ;;
    p) parts=$OPTARG ;;
    r) seed=$OPTARG ;;
    s) limit=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
# shellcheck source=tests/gpu_parts.bash
. "$(dirname "$self")/gpu_parts.bash"
begin "$self"
generate=tests/families/generate.py
families=("$@")
[ $# -gt 0 ] || mapfile -t families < <(python3 $generate)
check=()
[ "$device" != cpu ] || check=(--check) targets=(sm_70 sm_80 sm_90a)

# draw COUNT: files of ten specs each, several to a process: one for each would take longer than the kernels. Sets drawn to ways,
# which are a target, and a file.
draw() {
    local family i n file
    drawn=()
    mkdir -p "$out/random"
    for family in "${families[@]}"; do
        for ((i = 0; i < $1; i += 10)); do
            n=$(($1 - i < 10 ? $1 - i : 10))
            file=$out/random/$family.$(printf %05d $((first + i))).yaml
            # sm_70 has no tensor cores for the parts of f32
            python3 $generate "$family" "$seed" $n $((first + i)) |
                sed "$([ "${targets[i / 10 % ${#targets[@]}]}" != sm_70 ] || echo '/^schedule: .*tf32x3/d')" >"$file" || exit 2
            drawn+=("${targets[i / 10 % ${#targets[@]}]}:$file")
        done
    done
}

random_one() {
    try "random.$(basename "$1" .yaml).${1%%:*}" kaio-verify --run -d "$device" "${check[@]}" -t "${1%%:*}" "${1#*:}"
}
special_one() {
    try "special.$(basename "$1" .yaml).${1%%:*}" kaio-verify --run -d "$device" "${check[@]}" -t "${1%%:*}" --fill=edge,extreme "${1#*:}"
}

# The specs of folder $1 whose names follow (none: all), each with its two smallest cases of more than 100 terms, if it has some.
small_cases() {
    local spec name
    for spec in "${@:2}"; do
        while read -r _ name; do
            sed -n "s/^  $name: /&/p" "$spec"
        done < <(kaio-verify --run --list --format=json "$spec" |
            sed -nE 's|^\{"kernel": "[^"]*", "test": "[^"/]*/([^"]*)",.*"terms": ([^}]*)\}$|\2 \1|p' | sort -g | awk '$1 > 100 && n++ < 2') >"$out/lines"
        [ -s "$out/lines" ] || continue
        echo '---'
        sed '/^cases:/,$d' "$spec"
        echo 'cases:'
        cat "$out/lines"
    done >"$1"
}

sanitize_one() {
    local target=${1%%:*} rest=${1#*:} tool
    tool=${rest%%:*}
    if [ "$device" = cpu ]; then
        try "check.$(basename "$rest" .yaml).$target" kaio-verify --run -d cpu --check -t "$target" --fill=normal "${rest#*:}"
    else
        sanitize "$(basename "$rest" .yaml).$target" "$tool" -t "$target" --fill=normal "${rest#*:}"
    fi
}

if wanted random || wanted special; then draw "$count"; fi
if wanted random; then each random_one "${drawn[@]}"; fi
if wanted special; then each special_one "${drawn[@]}"; fi

if wanted sanitizer; then
    tools=(memcheck racecheck initcheck synccheck)
    [ "$device" != cpu ] || tools=(check)
    if [ "$device" = cpu ] || command -v compute-sanitizer >/dev/null; then
        files=()
        for folder in conv scan norm loss stencil; do
            small_cases "$out/$folder.yaml" specs/$folder/*.yaml
            files+=("$out/$folder.yaml")
        done
        small_cases "$out/others.yaml" specs/elementwise/activations.yaml specs/matmul/{nn,nt,tn,tt,batched,residual}.yaml \
            specs/reduce/{norms,variance,sum_middle,sum_two_axes}.yaml
        files+=("$out/others.yaml")
        draw 10
        ways=()
        for file in "${files[@]}" "${drawn[@]#*:}"; do
            for tool in "${tools[@]}"; do
                for target in "${targets[@]}"; do ways+=("$target:$tool:$file"); done
            done
        done
        each sanitize_one "${ways[@]}"
    else
        echo "no compute-sanitizer on PATH"
        echo sanitizer >>"$failed"
    fi
fi
conclude
