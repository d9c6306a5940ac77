# What attention_gpu.sh and families_gpu.sh share: parts that are wanted, in a time that is lent, jobs beside each other, what they
# say. The script has set all (of the parts), parts, device, out (or nothing), jobs, limit and usage, and read its options.

# begin SELF: looks at the options, goes to the sources, and finds the device and what code it takes.
begin() {
    local self=$1 part
    for part in ${parts//,/ }; do
        [[ ,$all, == *,$part,* ]] || usage
    done
    if [ -z "$out" ]; then
        out=$(mktemp -d)
        trap 'rm -rf "$out"' EXIT
    fi
    mkdir -p "$out" || exit 2
    out=$(cd "$out" && pwd)
    cd "$(dirname "$self")/.." || exit 2
    if ! kaio-run --list-devices >"$out/devices" || ! grep "^$device" "$out/devices"; then
        echo "$(basename "$self"): no GPU" >&2
        exit 77
    fi
    hopper=no
    grep -q "^$device.*  sm_90  " "$out/devices" && hopper=yes
    targets=(sm_80)
    [ $hopper = no ] || targets+=(sm_90a)
    failed=$out/failed
    : >"$failed"
}

wanted() {
    [[ ,$parts, == *,$1,* ]] && ((SECONDS < limit))
}

# What a command says goes to the file $1.log, and a line here says how it went: "right", "wrong" or the reason to leave it.
try() {
    local name=$1 status verdict=right
    shift
    "$@" >"$out/$name.log" 2>&1
    status=$?
    [ $status -eq 0 ] || verdict=wrong
    # a spec of which nothing is left to be checked is nothing to worry about
    if [ $status -eq 2 ] && grep -q 'nothing was checked' "$out/$name.log"; then verdict='nothing to check'; fi
    # a random spec whose results are all zero or all -inf tells nothing
    if [ $status -eq 1 ] && grep -q ', 0 failed, .* not trusted$' "$out/$name.log"; then verdict='says little'; fi
    printf '%-44s %-18s %s\n' "$name" "$verdict" "$(grep -E '^[0-9]+ passed, ' "$out/$name.log" | tail -n 1)"
    [ "$verdict" != wrong ] && return
    echo "$name" >>"$failed"
    grep -v '^PASS\|^SKIP' "$out/$name.log" | head -n 20 | sed 's/^/    /'
}

# sanitize NAME TOOL ARGUMENT...: kaio-verify --run with them under that tool of compute-sanitizer.
sanitize() {
    try "$1.$2" compute-sanitizer --tool "$2" --error-exitcode 9 --launch-timeout 120 kaio-verify --run -d "$device" "${@:3}"
}

# Runs the function $1 for each further word, JOBS at a time, and shows what each says in one piece.
each() {
    local f=$1 running=0 i=0 word
    shift
    for word; do
        ((SECONDS < limit)) || break
        if ((running == jobs)); then
            wait -n
            running=$((running - 1))
        fi
        "$f" "$word" >"$out/row.$i" 2>&1 &
        running=$((running + 1)) i=$((i + 1))
    done
    wait
    for ((word = 0; word < i; word++)); do cat "$out/row.$word"; done
    ((i == $#)) || echo "of $# only $i were begun in $limit seconds"
}

# The last line, and the exit status of the script.
conclude() {
    local failures
    failures=$(wc -l <"$failed")
    if [ "$failures" -eq 0 ]; then echo "all is well"; else echo "$failures failures"; fi
    [ "$failures" -eq 0 ]
}
