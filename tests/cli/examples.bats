# The programs of examples/ do what numpy does, at small sizes.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return
}

examples() {
    python3 -B "$KAIO_SRCDIR/tests/examples.py" "$KAIO_SRCDIR/examples" "$@"
}

@test "heat, life, bfs, cg and mlp" {
    if [ -n "${KAIO_QUICK-}" ]; then
        examples bfs cg
    else
        examples heat life bfs cg mlp
    fi
}

@test "a tiny llama writes the tokens that numpy writes, the likeliest and drawn ones, and stops at its end" {
    examples llama
}

@test "a llama of 30 layers is emitted in the time of five specs, the process included" {
    local TIMEFORMAT='%U %S' limit=$((5 * ${KAIO_EMIT_LIMIT_MS:-30})) best=10000 user sys ms i
    dims=(-D vocab=49152 -D width=576 -D layers=30 -D heads=9 -D kv=3 -D d=64 -D inner=1536 -D room=512)
    # other tests run beside this one: the best of many is what it takes
    for ((i = 0; i < 20 && best >= limit; i++)); do
        { time kaio-emit "${dims[@]}" "$KAIO_SRCDIR/examples/llama/llama.yaml" -o llama.ptx; } 2>took
        read -r user sys <took
        ms=$((10#${user/./} + 10#${sys/./}))
        [ $ms -ge $best ] || best=$ms
    done
    [ $best -lt $limit ] || { echo "$best ms"; false; }
}
