#!/bin/bash
# The machine code of our kernels beside nvcc's for the same kernels in CUDA C.
#
#     tests/sass/compare.sh [-b BINDIR] [-t TARGET] [-o DIR] [KERNEL...]
#
# One row is printed for each kernel of tests/sass/list: SASS instructions in all and in the largest innermost loop, registers,
# and bytes of spills, ours and nvcc's, and the ratio of the instructions. nvcc unrolls loops whose rounds it does not know, by
# four and more, which we leave to '#pragma unroll': "rolled" is nvcc told not to, and the second ratio ours to that. Padding is not counted: NOPs and the branch to
# itself after the end. Both come from the same ptxas at -O3; nvcc contracts products and sums (its default), as we do.
#
# BINDIR holds kaio-emit (default: found on PATH); ptxas, nvcc and nvdisasm are looked for on PATH and in
# /usr/local/cuda/bin, nvdisasm in $NVDISASM too. DIR gets the PTX, cubins and listings.
# Exit status: 0 no kernel has more instructions than the list allows it, times the better one of nvcc's, 1 not so, 77 a tool is missing.
set -u

usage() {
    sed -n '4s/^# *//p' "$0" >&2
    exit 2
}

out='' target=sm_90
while getopts b:o:t: opt; do
    case $opt in
    b) PATH=$(cd "$OPTARG" && pwd):$PATH ;;
    o) out=$OPTARG ;;
    t) target=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
PATH=$PATH:/usr/local/cuda/bin
nvdisasm=${NVDISASM:-nvdisasm}
for tool in ptxas nvcc "$nvdisasm" kaio-emit; do
    command -v "$tool" >/dev/null || { echo "compare.sh: no $tool" >&2; exit 77; }
done
cd "$(dirname "$0")/../.." || exit 2
if [ -z "$out" ]; then
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
fi
mkdir -p "$out" || exit 2

# The instructions of listing $1 in all and in its largest innermost loop. A loop is what lies between a label and a
# branch back to it; it is innermost if no other lies in it.
count() {
    awk '
        /^\.L_x_[0-9]+:/ { label[substr($1, 1, length($1) - 1)] = n; next }
        /^ *\/\*[0-9a-f]+\*\/ / {
            if ($0 ~ /[^A-Z]NOP *;/) next
            n++
            if (match($0, /\.L_x_[0-9]+/) && $0 ~ /BRA/) {
                to = substr($0, RSTART, RLENGTH)
                if (to in label) {
                    if (label[to] == n - 1) { n--; next }   # the branch to itself after the end
                    loops++; from[loops] = label[to]; end[loops] = n
                }
            }
        }
        END {
            for (i = 1; i <= loops; i++) {
                inner = 1
                for (j = 1; j <= loops; j++)
                    if (j != i && from[j] >= from[i] && end[j] <= end[i] && (from[j] > from[i] || end[j] < end[i])) inner = 0
                if (inner && end[i] - from[i] > most) most = end[i] - from[i]
            }
            print n + 0, (most ? most : "-")
        }' "$1"
}

# registers and spills of what ptxas -v said in file $1
resources() {
    awk '
        /spill stores/ { for (i = 2; i <= NF; i++) if ($i == "spill") spill += $(i - 2) }
        match($0, /Used [0-9]+ registers/) { split(substr($0, RSTART), w, " "); registers = w[2] }
        END { print registers, spill + 0 }' "$1"
}

ratio() {
    awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'
}

listing() {
    "$nvdisasm" -c "$out/$1.cubin" >"$out/$1.sass" && count "$out/$1.sass"
}

# nvcc's code as $out/$1_$name.cubin, with $2 in front of the loops that we leave rolled
cuda() {
    nvcc -arch="$target" -O3 -DROLLED="$2" -Xptxas -v -cubin -o "$out/$1_$name.cubin" "tests/sass/$name.cu" \
        2>"$out/$1_$name.log"
}

status=0
format='%-16s %6s %6s %6s %6s %6s  %5s %5s %6s  %5s %5s %6s  %6s %6s\n'
# shellcheck disable=SC2059  # one format for all rows
row() {
    printf "$format" "$@"
}
row kernel ours nvcc ratio rolled ratio loop nvcc rolled regs nvcc rolled spills nvcc
while read -r name spec limit; do
    [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
    if ! { kaio-emit -t "$target" --kernel "$name" "$spec" >"$out/$name.ptx" &&
        ptxas -arch="$target" -O3 -v -o "$out/$name.cubin" "$out/$name.ptx"; } 2>"$out/$name.log" ||
        ! cuda nvcc '' || ! cuda rolled '_Pragma("unroll 1")'; then
        echo "$name: cannot be compiled"
        cat "$out"/{,nvcc_,rolled_}"$name.log" | head -n 5
        status=1
        continue
    fi
    read -r n loop <<<"$(listing "$name")"
    read -r n2 loop2 <<<"$(listing "nvcc_$name")"
    read -r n3 loop3 <<<"$(listing "rolled_$name")"
    read -r regs3 _ <<<"$(resources "$out/rolled_$name.log")"
    read -r regs spills <<<"$(resources "$out/$name.log")"
    read -r regs2 spills2 <<<"$(resources "$out/nvcc_$name.log")"
    over=''
    awk -v a="$n" -v b=$((n2 < n3 ? n2 : n3)) -v l="$limit" 'BEGIN { exit !(a > b * l) }' && over=" over $limit" && status=1
    row "$name" "$n" "$n2" "$(ratio "$n" "$n2")" "$n3" "$(ratio "$n" "$n3")" "$loop" "$loop2" "$loop3" \
        "$regs" "$regs2" "$regs3" "$spills" "$spills2$over"
done < <(grep -v '^#' tests/sass/list)
exit $status
