# The PTX of the library: golden text, every target, ptxas. KAIO_BLESS=1 writes the golden files anew. Of what is too long to
# be read, golden/NAME.outline has the hash and the outline (golden/outline.awk).
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    ln -s "$KAIO_SRCDIR/specs" specs
    ln -s "$KAIO_SRCDIR/tests/golden" golden
    ln -s "$KAIO_SRCDIR/tests/data/bodies" bodies
    # whose code differs; the others have that of one of these
    targets="sm_70 sm_72 sm_75 sm_80 sm_86 sm_87 sm_88 sm_89 sm_90 sm_90a sm_100 sm_101 sm_120"
    few="sm_70 sm_90"
    if [ -n "${KAIO_QUICK-}" ]; then
        few=sm_90
        targets="sm_70 sm_75 sm_80 sm_89 sm_90a sm_120" # whose code differs most
    fi
}

# emitted TARGET: a file of the whole library's PTX, which the tests of this file share
emitted() {
    local file=$BATS_FILE_TMPDIR/$1.ptx
    [ -e "$file" ] || { kaio-emit -t "$1" specs/*/*.yaml golden/*.yaml >"$file.part" && mv "$file.part" "$file"; } || return
    echo "$file"
}

# part FIRST STEP [FOLDER...]: some specs of the folders, or of all. Attention is two thirds of the library's text: three stand
# for it.
part() {
    local first=$1 step=$2 folder
    shift 2
    [ $# -gt 0 ] || set -- specs/*/
    for folder in "$@"; do
        ls "specs/$(basename "$folder")"/*.yaml
    done | grep -v '^specs/attention/' | sed -n "$first~${step}p"
    printf 'specs/attention/%s.yaml\n' causal decode backward_dkv
}

# NAME and arguments of each golden file
golden() {
    grep -v '^#' golden/list
}

# outline FILE: its hash, and what a reviewer reads of it
outline() {
    sha256sum <"$1" | sed 's/ .*//; s/^/sha256 /'
    awk -f golden/outline.awk "$1"
}

@test "an outline has what PTX does in its order, and a hash of the rest" {
    outline golden/matmul_mma.ptx >one
    grep -qx '//@ kernel: matmul_nn' one
    grep -qx '\.visible \.entry matmul_nn' one
    grep -qE '^    [0-9]+ x mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.f16\.f16\.f32$' one
    [ "$(grep -n 'cp.async.wait_group' one | head -n 1 | cut -d: -f1)" -lt "$(grep -n 'mma.sync' one | head -n 1 | cut -d: -f1)" ]
    # a register changes the hash alone, an instruction that is missing the outline too
    sed '0,/%r1\b/s//%r2/' golden/matmul_mma.ptx >other.ptx
    outline other.ptx >two
    [ "$(diff one two | grep -c '^>')" = 1 ]
    sed '0,/bar.sync/{/bar.sync/d}' golden/matmul_mma.ptx >other.ptx
    outline other.ptx >two
    [ "$(diff one two | grep -c '^<')" -ge 3 ]
}

@test "the code is what it was" {
    changed=0
    while read -r name args; do
        # shellcheck disable=SC2086
        kaio-emit $args >got.ptx
        got=got.ptx file=golden/$name.ptx
        if [ -e "golden/$name.outline" ]; then
            outline got.ptx >got.outline
            got=got.outline file=golden/$name.outline
        fi
        if [ -n "${KAIO_BLESS-}" ]; then
            cp $got "$KAIO_SRCDIR/tests/$file"
        elif ! diff -u "$file" $got; then
            changed=1
        fi
    done < <(golden)
    [ "$(golden | wc -l)" -ge 10 ]
    [ $changed = 0 ] || { echo "if this is meant: KAIO_BLESS=1 make check TESTS=tests/golden.bats"; false; }
}

@test "every golden file is listed" {
    for file in golden/*.ptx golden/*.outline; do
        name=${file#golden/}
        golden | grep -q "^${name%.*} " || { echo "$file"; false; }
        [ ! -e "golden/${name%.*}.outline" ] || [ ! -e "golden/${name%.*}.ptx" ] || { echo "$file is there twice"; false; }
        # nobody reviews more
        [ "$(wc -l <"$file")" -le 2500 ] || { echo "$file is long: make it an outline"; false; }
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
            echo "$spec" >>"of.$type"
            count=$((count + 1))
        done
    done
    [ $count -ge 150 ]
    for of in of.*; do
        type=${of#of.}
        for target in $few; do
            # shellcheck disable=SC2046
            kaio-emit -t $target -D T="$type" $(cat "$of") >typed.ptx
            [ "$(grep -c '^//@ kernel: ' typed.ptx)" -ge "$(wc -l <"$of")" ]
            # the kernels of which nothing is of this type
            awk -v type="$type" '/^\/\/@ kernel: / { if (kernel && !is) print kernel; kernel = $3; is = 0 }
                /^\/\/@   [a-z0-9]*: / && $0 ~ "[^a-z0-9_]" type "[[]" { is = 1 }
                END { if (!is) print kernel }' typed.ptx >missing
            [ ! -s missing ] || { echo "nothing is $type:"; cat missing; false; }
        done
    done
}

@test "every spec is emitted for every target whose code differs, twice the same" {
    [ "$(wc -w <<<"$targets")" -ge 6 ]
    kernels=$(cat specs/*/*.yaml golden/*.yaml | grep -c '^kernel: ')
    for target in $targets; do
        ptx=$(emitted "$target")
        grep -qx ".target $target" "$ptx"
        [ "$(grep -c '^//@ kernel: ' "$ptx")" = "$kernels" ]
    done
    again='sm_70 sm_90a'
    [ -z "${KAIO_QUICK-}" ] || again=sm_80
    for target in $again; do
        kaio-emit -t $target specs/*/*.yaml golden/*.yaml | cmp - "$(emitted $target)"
    done
}

# code TARGET: the hash of a part of the library's PTX, without the target's name and version
code() {
    # shellcheck disable=SC2046
    kaio-emit -t "$1" $(part 1 3) >code.ptx
    grep -qx ".target $1" code.ptx
    sed '/^\/\/@/d; /^\.version/d; /^\.target/d' code.ptx | md5sum
}

@test "every other target has the code of one with the same limits" {
    [ -z "${KAIO_QUICK-}" ] || skip "the same text as without sanitizers"
    while read -r first others; do
        [[ " $targets " == *" $first "* ]]
        want=$(code "$first")
        for other in $others; do
            [ "$(code "$other")" = "$want" ] || { echo "$other is not as $first"; false; }
            echo "$other" >>all
        done
    done <<'END'
sm_100 sm_100a sm_100f sm_103 sm_103a sm_103f
sm_101 sm_101a sm_101f sm_110 sm_110a sm_110f
sm_120 sm_120a sm_120f sm_121 sm_121a sm_121f
END
    # there is no other
    tr ' ' '\n' <<<"$targets" >>all
    kaio-emit --list-targets | cut -d' ' -f1 | sort | diff - <(sort all)
}

# ptxas parses and checks for a virtual architecture, and is nine times as fast: for two targets the library but for most of
# attention, for each of the others a third. It makes machine code of a third for some targets; and for sm_90a, whose speed is
# looked at, of half of what multiplies by wgmma.
@test "ptxas accepts every spec, and a part of them for every target that it knows" {
    [ -z "${KAIO_QUICK-}" ] || skip "the same text as without sanitizers"
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || skip "no ptxas"
    jobs=()
    count=0
    for target in $targets sm_103 sm_110 sm_121; do
        "$ptxas" --help | grep -q "'$target'" || continue
        count=$((count + 1))
        # one module: ptxas takes longer to start than to compile one kernel
        case $target in
        sm_80) some=$(part 1 1) ;;
        sm_90a) some=$(ls specs/*/*.yaml) ;;
        *) some=$(part $((count % 3 + 1)) 3) ;;
        esac
        # shellcheck disable=SC2086
        kaio-emit -t "$target" $some golden/*.yaml >"$target.ptx"
        jobs+=("compute_${target#sm_} $target.ptx -O3")
        case $target in
        sm_75 | sm_80 | sm_120)
            # shellcheck disable=SC2046
            kaio-emit -t "$target" $(part 1 3) golden/*.yaml >"code_$target.ptx"
            jobs+=("$target code_$target.ptx -O0")
            ;;
        sm_90a)
            # shellcheck disable=SC2046
            kaio-emit -t "$target" $(part 1 2 matmul conv) >"code_$target.ptx"
            jobs+=("$target code_$target.ptx -O3")
            ;;
        esac
    done
    [ $count -ge 4 ]
    # shellcheck disable=SC2016
    printf '%s\n' "${jobs[@]}" | xargs -P "$(nproc)" -L 1 bash -c \
        '"$0" -v "$3" -arch="$1" -o "$1.out" "$2" >"$1.log" 2>&1 || { cat "$1.log"; exit 1; }' "$ptxas"
    [ "$(ls sm_*.out | wc -l)" -ge 3 ]
    [ -e sm_90a.log ] || return 0
    [ "$(grep -c 'wgmma.mma_async' code_sm_90a.ptx)" -ge 100 ] # which is its alone
    slowed code_sm_90a.ptx sm_90a.log >slow || true
    [ ! -s slow ] || { cat slow; false; }
}

# slowed PTX LOG: the messages of ptxas -v of lost speed (C75xx: wgmma serialised, setmaxnreg ignored), and the entries that
# use wgmma and keep registers in memory.
slowed() {
    awk 'FNR == 1 { file++ }
        file == 1 && match($0, /\.entry [A-Za-z0-9_$]+/) { entry = substr($0, RSTART + 7, RLENGTH - 7) }
        file == 1 && /wgmma\.mma_async/ { uses[entry] = 1 }
        file == 2 && /\(C75/
        file == 2 && /Function properties for/ { of = $NF }
        file == 2 && /[1-9][0-9]* bytes spill/ && of in uses { print of ": " $0 }' "$1" "$2"
}

@test "what ptxas makes slower is found" {
    [ -z "${KAIO_QUICK-}" ] || skip "the same text as without sanitizers"
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || skip "no ptxas"
    "$ptxas" --help | grep -q "'sm_90a'" || skip "ptxas does not know sm_90a"
    # sums that are read before they are waited for
    cat >wgmma.ptx <<'END'
.version 8.0
.target sm_90a
.address_size 64
.visible .entry early(.param .u64 p, .param .u64 d) .reqntid 128
{
    .reg .f32 %f<9>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [d];
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd2, 1, 1, 1, 0, 0;
    add.f32 %f5, %f1, %f2;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    st.global.f32 [%rd1], %f5;
    ret;
}
END
    "$ptxas" -v -arch=sm_90a -o wgmma.cubin wgmma.ptx >wgmma.log 2>&1
    slowed wgmma.ptx wgmma.log | grep -q "(C7517) warpgroup.wait is injected"
    printf 'ptxas info    : Function properties for %s\n    0 bytes stack frame, %d bytes spill stores, 0 bytes spill loads\n' early 8 >spill.log
    slowed wgmma.ptx spill.log | grep -q '^early: .*8 bytes spill stores'
    printf 'ptxas info    : Function properties for %s\n    0 bytes stack frame, %d bytes spill stores, 0 bytes spill loads\n' late 8 early 0 >spill.log
    [ -z "$(slowed wgmma.ptx spill.log)" ]
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
        run -0 kaio-verify --run -d cpu --code=generic -t $target --fill=edge all.yaml
        [[ $output == *"195 passed, 0 failed, 0 skipped" ]]
    done
}
