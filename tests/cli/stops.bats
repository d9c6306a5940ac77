# Whatever goes wrong with a kernel that nvcc made ends in a report that names the line, of the PTX and of the source.
bats_require_minimum_version 1.5.0

setup() {
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work" || exit
    cp "$KAIO_SRCDIR"/tests/data/stops/* .
}

# stops STATUS ENTRY [OPTION]...: two blocks of 64 threads of stops.ptx, or of $ptx
stops() {
    local status=$1 entry=$2
    shift 2
    run "-$status" --separate-stderr timeout 60 kaio-run -d cpu --max-instructions=2000000 "${ptx:-stops.ptx}" \
        --entry "$entry" --grid "${grid:-2}" --block 64 "$@"
}

# says TEXT [LINE]: stderr has it, and (with -G, too) names this line of stops.cu
says() {
    [[ $stderr == *"$1"* ]] || { echo "$stderr" && false; }
    [[ -z ${2-} || $stderr == *"stops.cu:$2:"*": note: "* ]] || { echo "$stderr" && false; }
    [[ $stderr == *"${ptx:-stops.ptx}:"*": "* ]]
}

x='--arg=inout u32[128]=@const:27'

@test "an endless loop" {
    for ptx in stops.ptx stops_G.ptx; do
        stops 3 endless "$x"
        says "kernel 'endless' was stopped: it executed more than 2000000 thread-instructions"
        [[ $stderr == *"block (0,0,0), warp"*": can go on"* ]]
        [[ $stderr =~ stops.cu:(8|9): ]]
        stops 1 endless "$x" --check
    done
}

@test "a loop that nobody can end" {
    for ptx in stops.ptx stops_G.ptx; do
        stops 3 spins '--arg=inout u32[128]=@zeros' --max-instructions=0
        says "kernel 'spins' is stuck: its threads go round in loops, and nothing changes" 15
    done
}

@test "a deadlock" {
    for ptx in stops.ptx stops_G.ptx; do
        stops 3 deadlock "$x"
        says "kernel 'deadlock' is stuck: no thread of block (0,0,0) can go on" 23
        says "block (0,0,0), warp 0, lanes 0-31: wait at barrier 1, where 32 of 64 threads have come" 26
        says "block (0,0,0), warp 1, lanes 0-31: wait at barrier 2, where 32 of 64 threads have come"
    done
}

@test "a wild pointer" {
    for ptx in stops.ptx stops_G.ptx; do
        local at
        for at in 0 4096 123456789012345 18446744073709551600 81604378624 77309411328 1099511627776; do
            stops 3 wild "$x" "--arg=u64=$at"
            says "error: kernel 'wild': store of 4 bytes at " 35
            says "block (0,0,0), thread (5,0,0)"
        done
    done
}

@test "a stack that overflows" {
    stops 3 recursion "$x"
    says "kernel 'recursion': calls go too deep: a thread's stack has 16384 bytes" 38
    ptx=stops_G.ptx
    stops 3 recursion "$x"
    says "kernel 'recursion': calls go too deep: a thread's stack has 16384 bytes" 43
}

@test "a trap" {
    for ptx in stops.ptx stops_G.ptx; do
        stops 3 traps "$x"
        says "kernel 'traps' executed a trap" 55
        says "block (0,0,0), thread (41,0,0)"
    done
}

@test "an assertion that does not hold" {
    for ptx in stops.ptx stops_G.ptx; do
        stops 3 asserts "$x"
        says "kernel 'asserts': assertion 'threadIdx.x < 40' failed at stops.cu:66, in " 66
        says "block (0,0,0), thread (40,0,0)"
    done
}

@test "a huge grid" {
    grid=2147483647
    stops 3 counts '--arg=inout u64[1]=@zeros'
    says "stops.ptx:541:17: error: kernel 'counts' was stopped: its 2147483647 blocks together executed more than 2000000 "
    grid=2147483647,65535,65535
    stops 1 counts '--arg=inout u64[1]=@zeros' --check
    says "its 9223090559730712575 blocks together executed more than 2000000 "
    grid=2147483648
    stops 2 counts '--arg=inout u64[1]=@zeros'
    [[ $stderr == *"grid x is 2147483648; it must be between 0 and 2147483647"* ]]
    # the first block that goes wrong is told of at once
    grid=2147483647
    stops 3 traps "$x"
    says "kernel 'traps' executed a trap" 55
}

@test "the first place of what is stuck is in the JSON object, too" {
    command -v python3 >/dev/null || skip "no python3"
    local entry want
    while read -r entry want; do
        stops 3 "$entry" '--arg=inout u32[128]=@zeros' --format=json
        [ "$(printf '%s\n' "${stderr_lines[0]}" | python3 -c '
import json, sys
v = json.loads(sys.stdin.read())
print(v["kind"], v["check"], v["file"], v["source"]["file"], v["source"]["line"])')" = "$want" ] || {
            echo "$stderr"
            false
        }
    done <<'END'
spins livelock fault stops.ptx stops.cu 15
deadlock deadlock fault stops.ptx stops.cu 23
recursion stack-overflow fault stops.ptx stops.cu 38
traps trap fault stops.ptx stops.cu 55
asserts assert fault stops.ptx stops.cu 66
END
}

@test "malformed PTX" {
    local change line text
    while IFS='|' read -r line change text; do
        sed "${line}${change}" stops.ptx >bad.ptx
        run -2 --separate-stderr timeout 60 kaio-run -d cpu bad.ptx --entry traps --grid 1 --block 32 "$x"
        [[ ${stderr_lines[0]} =~ ^bad.ptx:([0-9]+):[0-9]+:\ error:\ (.*)$ && ${BASH_REMATCH[2]} == *"$text"* ]] ||
            { echo "$change: $stderr" && false; }
        # at the line, or at the next token
        ((BASH_REMATCH[1] >= line && BASH_REMATCH[1] <= line + 2)) || { echo "$change: $stderr" && false; }
    done <<'END'
258|s/trap/tarp/|unknown instruction 'tarp'
397|s/;//|';'
395|s/\]/}/|']'
405|s/%r2/%r2000/|'%r2000'
405|s/%rd4/%f99/|'%f99'
253|s/41/41e/|
253|s/u32/u33/|u33
252|s/$/ "open/|
405|s/st.global/st.nowhere/|st.nowhere
405|s/st.global.u32/st.const.u32/|
405|s/20/99999999999999999999/|
405|s/%r2;/%r2, %r2;/|
405|s/%rd4+20/%rd4*20/|
END
    # cut off anywhere
    local n
    for n in 0 1 100 3000 9000 12000 12500; do
        head -c "$n" stops.ptx >bad.ptx
        run -2 --separate-stderr timeout 60 kaio-run -d cpu bad.ptx --entry traps --grid 1 --block 32 "$x"
        [[ $stderr == *error:* && $stderr != *"internal"* ]]
    done
}
