#!/bin/bash
# The kernel library on a GPU: every spec is verified there, its results are compared with the simulator's bit for
# bit, and its large cases are timed. Then what kernels print, and how their assertions fail.
#
#     tests/gpu.sh [-b BINDIR] [-d DEVICE] [-j JOBS] [-n SHAPES] [-o DIR] [-p PARTS] [-t TARGET] [SPEC|FAMILY]...
#
# BINDIR holds kaio-emit, kaio-run and kaio-verify (default: found on PATH). A FAMILY is a folder of specs/, as in "norm".
# The default is all of specs/, with tests/data/bodies, tests/data/threads.yaml and what tests/data/atomics.sh makes. DIR
# (default: a temporary one) gets the PTX, the buffers and the messages of what failed. DEVICE is cuda (the default), or cpu,
# which tries this script itself. Exit status: 0 all is well, 1 something is not, 77 there is no GPU.
#
# PARTS are those of "verify,bytes,large,time,huge,messages,mma,wgmma,opcodes,compiled" that are wanted (default: all; without SPEC and FAMILY only, huge,
# messages, mma, wgmma and compiled):
# verify    the cases, each with the types that it binds, twice: both runs must give the same bits. And SHAPES random shapes
#           of each kernel of specs/, with all types and fills (default 4; 0: none).
# bytes     of each type of each kernel, the case with the most work that the simulator does in a moment: the same bytes there.
#           Bytes may differ where a kernel uses an approximate instruction (ex2.approx, rsqrt.approx ...) or, but on sm_90,
#           tensor cores, whose bits PTX leaves open: that is reported as "near", and the verification alone decides.
# large     the cases of more than 2^22 terms, a sample of each output.
# time      the same cases, one after the other: bytes of the buffers, their speed, that of a copy of as many, the ratio. An
#           elementwise kernel must reach 0.90.
# huge      buffers of more than 2^31 elements, for each way of walking through memory: kaio-bench checks a sample of the results,
#           of inputs that repeat after a prime number of elements, so that an address that wraps around is found.
# mma       every form of mma.sync on chosen inputs, bit for bit: tests/unit/sim_mma, which must be built, on PATH or in BINDIR.
# wgmma     every form of wgmma.mma_async likewise, every layout of shared memory, kernels that use them: tests/unit/sim_wgmma*.
# opcodes   every form of every other instruction, bit for bit: tests/opcodes/sim_opcodes.
# compiled  the correct kernels of tests/hopper, tests/cuda and tests/triton, which nvcc and Triton made, give what they give on the simulator.
# attention tests/attention_gpu.sh, all of it: only where it is named, since it takes long. Alone it takes parts of its own.
# All but time run JOBS specs at once (default: half of the cores, 8 at most).
set -u

self=$(realpath "$0")
usage() {
    sed -n '5s/^# *//p' "$self" >&2
    exit 2
}

out='' target='' device=cuda shapes=4 parts='' jobs=$(($(nproc) / 2))
((jobs > 8)) && jobs=8
((jobs < 1)) && jobs=1
while getopts b:d:j:n:o:p:t: opt; do
    case $opt in
    b) PATH=$(cd "$OPTARG" && pwd):$PATH ;;
    d) device=$OPTARG ;;
    j) jobs=$OPTARG ;;
    n) shapes=$OPTARG ;;
    o) out=$OPTARG ;;
    p) parts=$OPTARG ;;
    t) target=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
for word in "$@"; do # before the folder changes
    [ ! -f "$word" ] || set -- "$@" "$(realpath "$word")"
    [ -f "$word" ] || set -- "$@" "$word"
    shift
done
cd "$(dirname "$self")/.." || exit 2
if [ -z "$out" ]; then
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
fi
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
[ -n "$parts" ] || parts=verify,bytes,large,time$([ $# -gt 0 ] || echo ,huge,messages,mma,wgmma,opcodes,compiled)

# Is part $1 wanted?
wanted() {
    [[ ,$parts, == *,$1,* ]]
}
for part in ${parts//,/ }; do
    [[ ,verify,bytes,large,time,huge,messages,mma,wgmma,opcodes,compiled,attention, == *,$part,* ]] || usage
done

specs=()
if [ $# -eq 0 ]; then
    mapfile -t specs < <(find specs tests/data/bodies -name '*.yaml' | sort)
    forms=() # what sm_90 has
    case $target in
    sm_9* | sm_1[0-9][0-9]*) forms=(cluster bf16) ;;
    esac
    bash tests/data/atomics.sh "${forms[@]}" >"$out/atomics.yaml" || exit 2
    specs+=(tests/data/threads.yaml "$out/atomics.yaml")
fi
for word; do
    if [ -f "$word" ]; then
        specs+=("$word")
    elif [ -d "specs/$word" ]; then
        specs+=("specs/$word"/*.yaml)
    else
        echo "gpu.sh: '$word' is no file and no folder of specs/" >&2
        exit 2
    fi
done

if ! kaio-run --list-devices | grep -q "^$device"; then
    echo "gpu.sh: no GPU" >&2
    exit 77
fi
kaio-run --list-devices

row() {
    printf '%-24s %-16s %-7s %-7s %s\n' "$@"
}

# fail FILE: notes it and shows the messages; $failed is a file of one line for each
failed=$out/failed
: >"$failed"
fail() {
    echo "$1" >>"$failed"
    sed 's/^/    /' "$1" | head -n 20
}

# The cases of spec $1:  KERNEL CASE TYPES TERMS VALUE...  where TYPES is "-D T=f16 -D I=i32" without its blanks, or "-".
cases_of() {
    kaio-verify --run --list ${target:+-t "$target"} --format=json "$1" |
        sed -nE 's|^\{"kernel": "([^"]*)", "test": "[^"/]*/([^"]*)", "types": \{([^}]*)\}, "values": "([^"]*)", "terms": ([^}]*)\}$|\1 \2 [\3] \5 \4|p' |
        sed -E 's/"([A-Za-z0-9_]+)": "([a-z0-9]+)"(, )?/-D\1=\2;/g; s/\[\]/[-]/; s/\[([^]]*)\]/\1/'
}

# Is the number $1 (of terms, 1e+06 perhaps) above $2?
above() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b) }'
}

# Emits kernel $2 of spec $1 with types $3; prints the name of the file, in which a failure leaves its message.
ptx_of() {
    local file=$out/${1//\//-}.$2.${3//[^A-Za-z0-9]/}.ptx types=()
    [ "$3" = - ] || read -ra types <<<"${3//;/ }"
    kaio-emit ${target:+-t "$target"} --kernel "$2" "${types[@]}" "$1" >"$file" 2>"$file.log"
    local status=$?
    echo "$file"
    return $status
}

# The parameters in the contract of PTX file $1:  NAME DIRECTION TYPE  (direction "scalar" without a buffer)
params_of() {
    awk '
        /^\/\/@ params:/ { inside = 1; next }
        /^\/\/@ [a-z]/ { inside = 0 }
        inside {
            sub(/^\/\/@ */, ""); name = $1; sub(/:$/, "", name)
            if ($0 !~ /\[/) print name, "scalar", $2
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

# Sets args and outputs for the parameters of PTX $1 and the values that follow. Results go to files named after
# device $2, or nowhere without one.
make_args() {
    local ptx=$1 device=$2 seed=0 least=1000000 name direction type value
    shift 2
    args=("$@") outputs=()
    for value; do
        [[ $value =~ ^[A-Za-z_0-9]+=([0-9]+)$ ]] && ((BASH_REMATCH[1] && BASH_REMATCH[1] < least)) && least=${BASH_REMATCH[1]}
    done
    while read -r name direction type; do
        seed=$((seed + 1))
        case $direction in
        in) args+=("$name=$(generator "$type" $seed "$least")") ;;
        inout) args+=("$name=$(generator "$type" $seed "$least")${device:+:$ptx.$device.$name.npy}") ;;
        out) [ -z "$device" ] || args+=("$name=$ptx.$device.$name.npy") ;;
        scalar) [[ " $* " == *" $name="* ]] || args+=("$name=3") ;;
        esac
        case $direction in
        out | inout) outputs+=("$name") ;;
        esac
    done < <(params_of "$ptx")
}

# Tensor cores add up in their own way: that of sm_90 is known to the bit, whatever the PTX was made for.
arch=() approximate='\.approx|mma'
if kaio-run --list-devices | grep -q "^$device.*  sm_90  "; then
    arch=(--arch=sm_90) approximate='\.approx'
fi

# Runs PTX $1 on both devices with the same inputs; prints equal, near, differ or failed. Its log is $1.log.
compare() {
    local ptx=$1 on name
    shift
    for on in cpu "$device"; do
        make_args "$ptx" "$on" "$@"
        kaio-run -d "$on" "${arch[@]}" "$ptx" "${args[@]}" >"$ptx.log" 2>&1 || { echo failed; return; }
    done
    for name in "${outputs[@]}"; do
        if ! cmp "$ptx.cpu.$name.npy" "$ptx.$device.$name.npy" >"$ptx.log" 2>&1; then
            if grep -qE "^[^/]*($approximate)" "$ptx"; then echo near; else echo differ; fi
            return
        fi
    done
    echo equal
}

# What kaio-verify --run says of spec $1 with the arguments that follow, in a row named $2. Nothing is shown of a pass.
verify() {
    local spec=$1 name=$2 log
    log=$out/${spec//\//-}.$name.log
    shift 2
    kaio-verify --run -d "$device" ${target:+-t "$target"} "$@" "$spec" >"$log" 2>&1
    local status=$?
    verdict=pass
    # a spec without a case that the arguments leave, or of few shapes all of which are empty, is nothing to worry about
    [ $status -eq 0 ] || { [ $status -eq 2 ] && ! grep -qvE '^(SKIP.*|0 passed, 0 failed, .*|kaio-verify: error: nothing was checked)$' "$log"; } || verdict=FAIL
    count=$(grep -E '^[0-9]+ passed, ' "$log")
    [ $verdict = pass ] || fail <(grep -v '^PASS\|^SKIP' "$log")
}

# One spec, all that can be done beside others.
check_spec() {
    local spec=$1 kernel name types terms values best ptx bytes large=()
    local -A most=() chosen=()
    while read -r kernel name types terms values; do
        if above "$terms" 4194304; then
            large+=("$name")
        elif ! above "$terms" 200000 && above "$terms" "${most[$kernel $types]--1}"; then
            most[$kernel $types]=$terms
            chosen[$kernel $types]="$name $values"
        fi
    done < <(cases_of "$spec")
    if wanted verify; then
        verify "$spec" cases --repeat
        row "$(basename "$spec" .yaml)" cases $verdict - "$count"
        # what tests the language is for the blocks that its cases have
        if [ "$shapes" -gt 0 ] && [[ $spec == specs/* || $spec == */specs/* ]]; then
            verify "$spec" shapes "--shapes=$shapes"
            row "$(basename "$spec" .yaml)" "random shapes" $verdict - "$count"
        fi
    fi
    if wanted large && [ ${#large[@]} -gt 0 ]; then
        verify "$spec" large --all --fill=normal --sample=1000 "${large[@]}"
        row "$(basename "$spec" .yaml)" large $verdict - "$count"
    fi
    for best in $(wanted bytes && printf '%s\n' "${!chosen[@]}" | sort | tr ' ' /); do
        kernel=${best%/*} types=${best#*/}
        read -r name values <<<"${chosen[$kernel $types]}"
        if ptx=$(ptx_of "$spec" "$kernel" "$types"); then
            # shellcheck disable=SC2086  # a list of words
            bytes=$(compare "$ptx" $values)
        else
            bytes=failed
        fi
        row "$kernel" "$name" - "$bytes" "$values"
        [ "$bytes" = equal ] || [ "$bytes" = near ] || fail "$ptx.log"
    done
}

row kernel case verify bytes remarks
running=0
for i in "${!specs[@]}"; do
    if ((running == jobs)); then
        wait -n
        running=$((running - 1))
    fi
    check_spec "${specs[i]}" >"$out/rows.$i" 2>&1 &
    running=$((running + 1))
done
wait
for i in "${!specs[@]}"; do cat "$out/rows.$i"; done

if wanted time; then
    row kernel case - - "bytes, speed, that of a copy"
    for spec in "${specs[@]}"; do
        while read -r kernel name types terms values; do
            above "$terms" 4194304 || continue
            if ! ptx=$(ptx_of "$spec" "$kernel" "$types"); then
                fail "$ptx.log"
                continue
            fi
            # shellcheck disable=SC2086
            make_args "$ptx" "" $values
            kaio-run -d "$device" --time=20 "$ptx" "${args[@]}" >"$ptx.log" 2>&1 || fail "$ptx.log"
            speed=$(sed -n 's/^bytes  *//p' "$ptx.log")
            row "$kernel" "$name" - - "$speed"
            case $spec in
            */elementwise/*)
                [ "$device" = cpu ] || awk -v line="$speed" 'BEGIN { n = split(line, w, " "); exit !(w[n] >= 0.9) }' || fail "$ptx.log"
                ;;
            esac
        done < <(cases_of "$spec")
    done
fi

# What kernel $2 of tests/data/messages.yaml says with the arguments $4... on either device, where it must exit with $3. Compared
# are its lines, or only their number where $1 is "lost": which ones have found room is for the device to choose.
say() {
    local how=$1 kernel=$2 status=$3 on verdict=equal
    shift 3
    kaio-emit ${target:+-t "$target"} --kernel "$kernel" tests/data/messages.yaml >"$out/$kernel.ptx"
    for on in cpu "$device"; do
        kaio-run -q -d "$on" "$out/$kernel.ptx" "$@" y="$out/y.npy" >"$out/said" 2>"$out/log"
        if [ $? -ne "$status" ]; then
            row "$kernel" "$*" - failed "on $on"
            fail "$out/log"
            return
        fi
        if [ "$how" = lost ]; then wc -l <"$out/said"; else cat "$out/said"; fi | cat - "$out/log" >"$out/$on.said"
    done
    diff "$out/cpu.said" "$out/$device.said" >"$out/log" || verdict=differ
    row "$kernel" "$*" - $verdict "$(wc -l <"$out/said") lines"
    [ $verdict = equal ] || fail "$out/log"
}
if wanted messages; then
    say lines say_all 0 n=300 x=@normal:1
    say lines say_many 0 n=100000 --messages=4Mi
    say lines fail_some 3 n=1000 limit=1000
    say lines fail_some 3 n=128 limit=0
    say lost say_many 0 n=100000 --messages=64Ki
fi

# huge SPEC NAME=VALUE...: the results of which are sampled.
huge() {
    local spec=$1 verdict=right
    shift
    kaio-bench ${target:+-t "$target"} --runs=1 --time-per-round=1 --sample=4096 "specs/$spec.yaml" "$@" >"$out/log" 2>&1 || verdict=failed
    row "${spec##*/}" huge - $verdict "$*"
    [ $verdict = right ] || fail "$out/log"
}
if wanted huge && [ "$device" != cpu ]; then
    huge elementwise/scale T=f16 n=2200000003
    huge elementwise/bias_add T=f16 rows=1100003 cols=2008
    huge elementwise/bias_add T=f16 rows=2200003 cols=1001
    huge layout/transpose T=u8 rows=50003 cols=44004
    huge norm/softmax T=f16 rows=2150003 cols=1000
    huge norm/softmax T=f16 rows=67001 cols=32768
    huge reduce/col_sum T=f16 rows=2200003 cols=1001
    # a sum of so many ones, whose reference would take minutes
    kaio-emit ${target:+-t "$target"} -D T=f16 specs/reduce/sum_all.yaml |
        kaio-run -q -d "$device" x=@ones n=2200000003 >"$out/log" 2>&1
    if awk '{ d = $3 / 2200000003 - 1 } END { exit !(NR == 1 && d < 1e-6 && d > -1e-6) }' "$out/log"; then
        row sum_all huge - right "T=f16 n=2200000003"
    else
        row sum_all huge - failed "T=f16 n=2200000003"
        fail "$out/log"
    fi
fi

if wanted mma; then
    if command -v sim_mma >/dev/null; then
        sim_mma --device="$device" --rounds=200 >"$out/mma.log" 2>&1 || fail "$out/mma.log"
        row mma.sync - - "$(tail -n 1 "$out/mma.log")" ""
    else
        row mma.sync - - "not run" "no sim_mma on PATH"
    fi
fi

if wanted wgmma; then
    for t in sim_wgmma sim_wgmma_layout sim_wgmma_async sim_wgmma_matmul; do
        if command -v $t >/dev/null; then
            $t --device="$device" >"$out/$t.log" 2>&1 || fail "$out/$t.log"
            row $t - - "$(tail -n 1 "$out/$t.log")" ""
        else
            row $t - - "not run" "no $t on PATH"
        fi
    done
fi

if wanted opcodes; then
    if command -v sim_opcodes >/dev/null; then
        sim_opcodes --device="$device" >"$out/opcodes.log" 2>&1 || fail "$out/opcodes.log"
        row sim_opcodes - - "$(tail -n 1 "$out/opcodes.log")" ""
    else
        row sim_opcodes - - "not run" "no sim_opcodes on PATH"
    fi
fi

if wanted compiled; then
    for f in tests/{hopper,cuda,triton}/*.launch; do
        verdict=right
        KAIO_ARGS="-d $device" tests/launch_one.sh "$f" >"$out/log" 2>&1 || verdict=wrong
        row "$(basename "$f" .launch)" "$(basename "$(dirname "$f")")" - $verdict ""
        [ $verdict = right ] || fail "$out/log"
    done
fi

if wanted attention; then tests/attention_gpu.sh -d "$device" -j "$jobs" -o "$out/attention" || fail "$out/attention/failed"; fi

failures=$(wc -l <"$failed")
if [ "$failures" -eq 0 ]; then echo "all is well"; else echo "$failures failures"; fi
[ "$failures" -eq 0 ]
