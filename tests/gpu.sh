#!/bin/bash
# The kernel library on a GPU: every spec is verified there, its results are compared with the simulator's bit for
# bit, and elementwise kernels are timed. Then what kernels print, and how their assertions fail.
#
#     tests/gpu.sh [-b BINDIR] [-o DIR] [-t TARGET] [SPEC...]
#
# BINDIR holds kaio-emit, kaio-run and kaio-verify (default: found on PATH); specs default to all of specs/, with
# tests/data/threads.yaml and what tests/data/atomics.sh makes. One row is printed for each case of each kernel; DIR
# (default: a temporary one) gets the PTX, the buffers and the messages of what failed. Exit status: 0 all is well, 1
# something is not, 77 there is no GPU.
#
# The case "large" is timed. An elementwise kernel must reach 0.90 of the speed of a copy of as many bytes.
#
# Bytes may differ where a kernel uses an approximate instruction (ex2.approx, rsqrt.approx ...) or tensor cores, whose
# bits PTX leaves open: that is reported as "near", and the verification alone decides.
set -u

usage() {
    sed -n '5s/^# *//p' "$0" >&2
    exit 2
}

out='' target=''
while getopts b:o:t: opt; do
    case $opt in
    b) PATH=$(cd "$OPTARG" && pwd):$PATH ;;
    o) out=$OPTARG ;;
    t) target=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
cd "$(dirname "$0")/.." || exit 2
if [ -z "$out" ]; then
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
fi
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
if [ $# -eq 0 ]; then
    mapfile -t specs < <(find specs -name '*.yaml' | sort)
    forms=() # what sm_90 has
    case $target in
    sm_9* | sm_1[0-9][0-9]*) forms=(cluster bf16) ;;
    esac
    bash tests/data/atomics.sh "${forms[@]}" >"$out/atomics.yaml" || exit 2
    specs+=(tests/data/threads.yaml "$out/atomics.yaml")
else
    specs=("$@")
fi

if ! kaio-run --list-devices | grep -q '^cuda'; then
    echo "gpu.sh: no GPU" >&2
    exit 77
fi
kaio-run --list-devices

failures=0
row() {
    printf '%-34s %-14s %-7s %-7s %s\n' "$@"
}

# fail FILE: counts it and shows the messages
fail() {
    failures=$((failures + 1))
    sed 's/^/    /' "$1" | head -n 20
}

# The cases of kernel $2 in spec $1:  NAME dim=value dim=value ...
cases_of() {
    awk -v want="$2" '
        /^(kernel|pipeline):/ { kernel = $2; inside = 0 }
        /^[a-z]/ { inside = $1 == "cases:" && kernel == want; next }
        inside && match($0, /^  [A-Za-z0-9_]+: *\{.*\}/) {
            line = substr($0, RSTART, RLENGTH)
            name = line; sub(/^ */, "", name); sub(/:.*/, "", name)
            sub(/^[^{]*\{/, "", line); sub(/\}.*/, "", line)
            gsub(/ /, "", line); gsub(/,/, " ", line); gsub(/:/, "=", line)
            print name, line
        }' "$1"
}

# The parameters in the contract of PTX file $1:  NAME DIRECTION TYPE  (direction "scalar" without a buffer)
params_of() {
    awk '
        /^\/\/@ params:/ { inside = 1; next }
        /^\/\/@ [a-z]/ { inside = 0 }
        inside {
            sub(/^\/\/@ */, ""); name = $1; sub(/:$/, "", name)
            if ($0 !~ /\[/) print name, "scalar", $2, ($0 ~ /=/ ? "default" : "needed")
            else if ($2 ~ /^(in|out|inout)$/) { sub(/\[.*/, "", $3); print name, $2, $3 }
            else { sub(/\[.*/, "", $2); print name, "in", $2 }
        }' "$1"
}

# A generator for a buffer of type $1, the $2th of the kernel; integers stay below $3, so that they can be indices.
generator() {
    case $1 in
    f* | bf16 | e4m3 | e5m2) echo "@normal:$2" ;;
    bool) echo "@randint:0:2:$2" ;;
    i8 | i4) echo "@randint:-8:8:$2" ;;
    u8 | u4) echo "@randint:0:16:$2" ;;
    *) echo "@randint:0:$3:$2" ;;
    esac
}

# Sets args and outputs for the parameters of PTX $1 and the dimensions that follow. Results go to files named after
# device $2, or nowhere without one.
make_args() {
    local ptx=$1 device=$2 seed=0 least=1000000 name direction type rest dim
    shift 2
    args=("$@") outputs=()
    for dim; do
        [[ $dim =~ ^[A-Za-z_0-9]+=([0-9]+)$ ]] && ((BASH_REMATCH[1] && BASH_REMATCH[1] < least)) && least=${BASH_REMATCH[1]}
    done
    while read -r name direction type rest; do
        seed=$((seed + 1))
        case $direction in
        in) args+=("$name=$(generator "$type" $seed "$least")") ;;
        inout) args+=("$name=$(generator "$type" $seed "$least")${device:+:$out/$device.$name.npy}") ;;
        out) [ -z "$device" ] || args+=("$name=$out/$device.$name.npy") ;;
        scalar) [ "$rest" = default ] || [[ " $* " == *" $name="* ]] || args+=("$name=3") ;;
        esac
        case $direction in
        out | inout) outputs+=("$name") ;;
        esac
    done < <(params_of "$ptx")
}

# Runs PTX $1 on both devices with the same inputs; prints equal, near, differ or failed.
compare() {
    local ptx=$1 device name
    shift
    for device in cpu cuda; do
        make_args "$ptx" $device "$@"
        kaio-run -d $device "$ptx" "${args[@]}" >"$out/log" 2>&1 || { echo failed; return; }
    done
    for name in "${outputs[@]}"; do
        if ! cmp "$out/cpu.$name.npy" "$out/cuda.$name.npy" >"$out/log" 2>&1; then
            if grep -qE '^[^/]*(\.approx|mma)' "$ptx"; then echo near; else echo differ; fi
            return
        fi
    done
    echo equal
}

# Cases above this many elements are left to the verification: the simulator would take minutes.
too_large() {
    local product=1 dim
    for dim; do
        [[ $dim =~ =([0-9]+)$ ]] && product=$((product * BASH_REMATCH[1]))
    done
    ((product > 1 << 27))
}

# What kaio-run --time says of PTX $1 with the dimensions that follow: bytes, speed, the copy's speed, their ratio.
timed() {
    local ptx=$1
    shift
    make_args "$ptx" "" "$@"
    kaio-run -d cuda --time=50 "$ptx" "${args[@]}" 2>&1 | tee "$out/log" | sed -n 's/^bytes  *//p'
}

row kernel case verify bytes "speed of the kernel and of a copy"
for spec in "${specs[@]}"; do
    verdict=pass
    kaio-verify --run -d cuda --all --repeat ${target:+-t "$target"} "$spec" >"$out/verify.log" 2>&1 || verdict=FAIL
    [ $verdict = pass ] || fail "$out/verify.log"
    while read -r kernel; do
        ptx=$out/$kernel.ptx
        if ! kaio-emit ${target:+-t "$target"} --kernel "$kernel" "$spec" >"$ptx" 2>"$out/log"; then
            row "$kernel" - $verdict FAIL "cannot be emitted"
            fail "$out/log"
            continue
        fi
        while read -r name dims; do
            bytes=- speed=''
            # shellcheck disable=SC2086  # dims is a list of words
            too_large $dims || bytes=$(compare "$ptx" $dims)
            case $bytes in
            differ | failed) fail "$out/log" ;;
            esac
            if [ "$name" = large ]; then
                # shellcheck disable=SC2086
                speed=$(timed "$ptx" $dims)
                case $spec in
                */elementwise/*)
                    awk -v line="$speed" 'BEGIN { n = split(line, w, " "); exit !(w[n] >= 0.9) }' || fail "$out/log" ;;
                esac
            fi
            row "$kernel" "$name" $verdict "$bytes" "$speed"
        done < <(cases_of "$spec" "$kernel")
    done < <(sed -nE 's/^kernel: *([A-Za-z0-9_]+).*/\1/p' "$spec")
done

# What kernel $2 of tests/data/messages.yaml says with the arguments $4... on either device, where it must exit with $3. Compared
# are its lines, or only their number where $1 is "lost": which ones have found room is for the device to choose.
say() {
    local how=$1 kernel=$2 status=$3 device verdict=equal
    shift 3
    kaio-emit ${target:+-t "$target"} --kernel "$kernel" tests/data/messages.yaml >"$out/$kernel.ptx"
    for device in cpu cuda; do
        kaio-run -q -d $device "$out/$kernel.ptx" "$@" y="$out/y.npy" >"$out/said" 2>"$out/log"
        if [ $? -ne "$status" ]; then
            row "$kernel" "$*" - failed "on $device"
            fail "$out/log"
            return
        fi
        if [ "$how" = lost ]; then wc -l <"$out/said"; else cat "$out/said"; fi | cat - "$out/log" >"$out/$device.said"
    done
    diff "$out/cpu.said" "$out/cuda.said" >"$out/log" || verdict=differ
    row "$kernel" "$*" - $verdict "$(wc -l <"$out/said") lines"
    [ $verdict = equal ] || fail "$out/log"
}
say lines say_all 0 n=300 x=@normal:1
say lines say_many 0 n=100000 --messages=4Mi
say lines fail_some 3 n=1000 limit=1000
say lines fail_some 3 n=128 limit=0
say lost say_many 0 n=100000 --messages=64Ki

if [ $failures -eq 0 ]; then echo "all is well"; else echo "$failures failures"; fi
[ $failures -eq 0 ]
