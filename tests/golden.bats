# The PTX of the library: golden text, every target, ptxas. KAIO_BLESS=1 writes the golden files anew.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    ln -s "$KAIO_SRCDIR/specs" specs
    ln -s "$KAIO_SRCDIR/tests/golden" golden
    ln -s "$KAIO_SRCDIR/tests/data/bodies" bodies
    targets=$(kaio-emit --list-targets | cut -d' ' -f1)
    few="sm_70 sm_90"
    [ -z "${KAIO_QUICK-}" ] || few=sm_90
}

# NAME and arguments of each golden file
golden() {
    grep -v '^#' golden/list
}

@test "the code is what it was" {
    changed=0
    while read -r name args; do
        # shellcheck disable=SC2086
        kaio-emit $args >got.ptx
        if [ -n "${KAIO_BLESS-}" ]; then
            cp got.ptx "$KAIO_SRCDIR/tests/golden/$name.ptx"
        elif ! diff -u "golden/$name.ptx" got.ptx; then
            changed=1
        fi
    done < <(golden)
    [ "$(golden | wc -l)" -ge 10 ]
    [ $changed = 0 ] || { echo "if this is meant: KAIO_BLESS=1 make check TESTS=tests/golden.bats"; false; }
}

@test "every golden file is listed" {
    for file in golden/*.ptx; do
        name=${file#golden/}
        golden | grep -q "^${name%.ptx} " || { echo "$file"; false; }
    done
}

@test "every spec has a doc, cases, and a reference for its body" {
    count=0
    for spec in specs/*/*.yaml; do
        grep -q '^doc: ' "$spec" || { echo "$spec: no doc"; false; }
        grep -q '^cases:' "$spec" || { echo "$spec: no cases"; false; }
        ! grep -q '^body:' "$spec" || grep -q '^reference:' "$spec" || { echo "$spec: no reference"; false; }
        grep -q "^[[:space:]]*$spec\( \\\\\)\?$" "$KAIO_SRCDIR/specs/local.mk" || { echo "$spec: not shipped"; false; }
        count=$((count + 1))
    done
    [ $count -ge 80 ]
}

@test "every type that a spec is for has a case, and is emitted" {
    count=0
    for spec in specs/*/*.yaml; do
        types=$(sed -n 's/^types: {T: \[\(.*\)\]}$/\1/p' "$spec" | tr -d ,)
        ! grep -q '^types:' "$spec" || [ -n "$types" ] || { echo "$spec: another form of types"; false; }
        for type in $types; do
            [ "$type" = "${types%% *}" ] || grep -q "^  [a-z0-9_]*: {T: $type, " "$spec" || { echo "$spec: no case of $type"; false; }
            for target in $few; do
                kaio-emit -t $target -D T="$type" "$spec" >typed.ptx
                grep -q "^//@   [a-z0-9]*: .*\b$type\[" typed.ptx || { echo "$spec: nothing is $type"; false; }
            done
            count=$((count + 1))
        done
    done
    [ $count -ge 150 ]
}

@test "every spec is emitted for every target, twice the same" {
    [ "$(wc -w <<<"$targets")" -ge 8 ]
    kernels=$(cat specs/*/*.yaml golden/*.yaml | grep -c '^kernel: ')
    for target in $targets; do
        kaio-emit -t "$target" specs/*/*.yaml golden/*.yaml >a.ptx
        [ -n "${KAIO_QUICK-}" ] || kaio-emit -t "$target" specs/*/*.yaml golden/*.yaml | cmp - a.ptx
        grep -qx ".target $target" a.ptx
        [ "$(grep -c '^//@ kernel: ' a.ptx)" = "$kernels" ]
    done
}

# ptxas parses and checks for a virtual architecture, and is nine times as fast. It makes machine code of each different text
# once for every generation of GPUs.
@test "ptxas accepts every spec for every target that it knows" {
    [ -z "${KAIO_QUICK-}" ] || skip "the same text as without sanitizers"
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || skip "no ptxas"
    jobs=()
    count=0
    for target in $targets; do
        "$ptxas" --help | grep -q "'$target'" || continue
        count=$((count + 1))
        # one module: ptxas takes longer to start than to compile one kernel
        kaio-emit -t "$target" specs/*/*.yaml golden/*.yaml >"$target.ptx"
        jobs+=("compute_${target#sm_} $target.ptx")
        number=$(grep -o '[0-9]*' <<<"$target")
        text=$((number / 10)).$(sed '/^\/\/@/d; /^\.version/d; /^\.target/d' "$target.ptx" | md5sum | cut -c 1-32)
        [ -e "$text" ] || jobs+=("$target $target.ptx")
        : >"$text"
    done
    [ $count -ge 4 ]
    # shellcheck disable=SC2016
    printf '%s\n' "${jobs[@]}" | xargs -P "$(nproc)" -L 1 bash -c \
        '"$0" -arch="$1" -o "$1.out" "$2" || { echo "$1"; exit 1; }' "$ptxas"
    [ "$(ls sm_*.out | wc -l)" -ge 3 ]
}

@test "every pair of types converts, on targets with and without the instructions" {
    for from in f64 f32 f16 bf16 e4m3 e5m2 i64 i32 i16 i8 u64 u32 u16 u8 bool i4 u4; do
        for to in f64 f32 f16 bf16 e4m3 e5m2 i64 i32 i16 i8 u64 u32 u16 u8 bool i4 u4; do
            e="$to(x[i])"
            [ $to != bool ] || [ $from = bool ] || e="x[i] != 0"
            for strategy in map naive; do
                printf -- '---\nkernel: %s_%s_%s\nparams:\n  x: in %s[n]\n  y: out %s[n]\n' $strategy $from $to $from $to
                printf 'schedule: {strategy: %s}\ncompute: |\n  y[i] = %s\n' $strategy "$e"
            done
        done
    done >all.yaml
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || true
    for target in sm_70 sm_75 sm_89; do
        kaio-emit -t $target all.yaml >all.ptx
        [ "$(grep -c '\.entry' all.ptx)" = 578 ]
        [ $target = sm_70 ] || [ -z "$ptxas" ] || [ -n "${KAIO_QUICK-}" ] || "$ptxas" -O0 -arch=$target -o all.cubin all.ptx
    done
}

@test "each feature computes what its mathematics says" {
    for target in sm_70 sm_90; do
        run -0 kaio-verify --run -d cpu -t $target golden/features.yaml golden/store.yaml
        [[ $output == *" passed, 0 failed, 0 skipped" ]]
    done
}

@test "conversions round, saturate and truncate as documented, on targets with and without the instructions" {
    # edge values of every type to every narrower one; the naive strategy shares the code
    for from in f64 f32 f16 bf16 e4m3 e5m2 i64 i32 u64 u32 bool i4 u4; do
        for to in f64 f32 f16 bf16 e4m3 e5m2 i64 i32 i16 i8 u64 u32 u8 i4 u4; do
            printf -- '---\nkernel: %s_%s\nparams:\n  x: in %s[n]\n  y: out %s[n]\ncompute: |\n  y[i] = %s(x[i])\ncases:\n  c: {n: 126}\n' \
                $from $to $from $to $to
        done
    done >all.yaml
    for target in sm_70 sm_80 sm_89; do
        run -0 kaio-verify --run -d cpu -t $target --fill=edge all.yaml
        [[ $output == *"195 passed, 0 failed, 0 skipped" ]]
    done
}
