# Contractions by fma: every layout, batches, types, computed operands and epilogues, over sizes that tiles and vectors divide
# and others; on the simulator with all checks. What the code of the loop over k looks like, and through ptxas where
# there is one.
bats_require_minimum_version 1.5.0

setup() {
    mkdir "$BATS_TEST_TMPDIR/work" # beside what bats keeps
    cd "$BATS_TEST_TMPDIR/work"
    ln -s "$KAIO_SRCDIR/tests/data" data
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || ptxas=
    cat >product.yaml <<'Y'
kernel: product
params:
  a: in f32[m, k]
  b: in f32[k, n]
  c: out f32[m, n]
compute: |
  c[i,j] = sum[l](a[i,l] * b[l,j])
schedule: {strategy: matmul, mma: none, tile: [128, 128, 8], warps: [4, 1]}
Y
}

# The instructions of the loop over k of the entry $2 of $1: the block with the most fma.
tiles() {
    awk -v entry="$2" '
        $1 == ".visible" { on = $3 ~ "^" entry "\\(?$" }
        !on { next }
        /^\$[A-Za-z0-9_]+:/ { text = ""; n = 0; next }
        { text = text $0 "\n" }
        /fma\.rn/ { if (++n > most) { most = n } }
        /bra/ { if (n && n == most) best = text; text = ""; n = 0 }
        END { printf "%s", best }' "$1"
}

@test "products of matrices are what their mathematics says, and nothing else is touched" {
    run -0 kaio-verify --run -d cpu --check -t sm_70 data/matmul_simt.yaml
    [[ $output == *" passed, 0 failed, 0 skipped" ]]
    run -0 kaio-verify --run -d cpu --check product.yaml m=5 n=260 k=0
    [[ $output == *"1300 compared, all equal"* ]]
}

@test "a thread of a wide tile spends its time on fma" {
    kaio-emit product.yaml >p.ptx
    tiles p.ptx product >loop
    [ "$(grep -c 'fma.rn.f32' loop)" = 1024 ]
    [ "$(grep -c 'ld.shared.v4.f32' loop)" = 48 ]
    [ "$(grep -c 'ld.global.nc.v4.f32' loop)" = 4 ]
    [ "$(grep -c 'st.shared' loop)" = 10 ]   # A turned, B as it is
    [ "$(grep -c 'bar.sync' loop)" = 1 ]
    [ "$(grep -c 'bra' loop)" = 1 ]
    [ "$(wc -l <loop)" -lt 1110 ]
    grep -q 'st.global.v4.f32' p.ptx
    # the same of other layouts: nothing but the stores to shared memory differs
    sed -i 's/in f32\[k, n\]/in f32[n, k]/; s/b\[l,j\]/b[j,l]/' product.yaml
    kaio-emit product.yaml >p.ptx
    tiles p.ptx product >loop
    [ "$(grep -c 'ld.global.nc.v4.f32' loop)" = 4 ]
    [ "$(grep -c 'st.shared.f32' loop)" = 16 ]
}

@test "in more stages than two tiles are copied while others are multiplied" {
    sed 's/warps/stages: 4, warps/' product.yaml >streamed.yaml
    kaio-emit -t sm_80 streamed.yaml >p.ptx
    tiles p.ptx product >loop
    [ "$(grep -c 'fma.rn.f32' loop)" = 1024 ]
    [ "$(grep -c 'cp.async.ca.shared.global' loop)" = 8 ] # A turned
    [ "$(grep -c 'cp.async.cg.shared.global' loop)" = 2 ] # B as it is
    [ "$(grep -c 'st.shared' loop)" = 0 ]
    [ "$(grep -c 'bar.sync' loop)" = 1 ]
    grep -qE 'cp.async.wait_group\s+2;' loop
    for size in 'm=130 n=68 k=36' 'm=5 n=131 k=1' 'm=33 n=7 k=57'; do
        run -0 kaio-verify --run -d cpu --check streamed.yaml $size
        [[ $output == *" passed, 0 failed, 0 skipped" ]]
    done
    run ! kaio-emit -t sm_75 streamed.yaml
}

@test "no thread's registers spill" {
    [ -n "$ptxas" ] || skip "no ptxas"
    for target in sm_80 sm_90; do
        kaio-emit -t $target data/matmul_simt.yaml >s.ptx
        "$ptxas" -v -arch=$target -o s.cubin s.ptx 2>log
        [ "$(grep -c 'bytes spill stores' log)" = "$(grep -c '^.visible .entry' s.ptx)" ]
        # but for what is only wanted behind the loop
        awk '/bytes spill stores/ { for (i = 1; i < NF; i++) if ($i == "bytes" && $(i + 2) == "stores,") bad += $(i - 1) > 32 } END { exit bad }' log
    done
}

@test "strict mathematics adds each product of a sum by one fma, and contracts nothing else" {
    sed 's/^compute/math: strict\ncompute/' product.yaml >strict.yaml
    kaio-emit strict.yaml >s.ptx
    [ "$(grep -c 'fma.rn.f32' s.ptx)" -ge 512 ]
    run ! grep -q 'mul.rn.f32' s.ptx
    run -0 kaio-verify --run -d cpu --check strict.yaml m=20 n=24 k=28
    # by every strategy, but for a product that a conversion rounds
    for strategy in row reduce naive; do
        printf '%s\n' 'kernel: k' 'params:' '  x: in f32[m, n]' '  y: out f32[m]' '  z: out f32[m]' 'math: strict' \
            "schedule: {strategy: $strategy}" 'compute: |' '  y[i] = sum[j](x[i,j] * x[i,j])' \
            '  z[i] = sum[j](f32(x[i,j] * x[i,j])) + x[i,0] * x[i,1]' >k.yaml
        kaio-emit k.yaml >s.ptx
        grep -q 'fma.rn.f32' s.ptx
        grep -q 'mul.rn.f32' s.ptx
        run -0 kaio-verify --run -d cpu --check k.yaml m=3 n=70
    done
}

@test "with dimensions that tiles divide nothing is asked of them" {
    sed 's/^schedule: {/&stages: 2, /' product.yaml >two.yaml
    kaio-emit -D m=256 -D n=256 -D k=64 two.yaml >p.ptx
    [ "$(grep -c '^.visible .entry' p.ptx)" = 1 ]
    tiles p.ptx product >loop
    [ "$(grep -c setp loop)" = 2 ] # is there a tile to load, and another one?
    run ! grep -qE '^\s*@.*st.global' p.ptx
    run -0 kaio-verify --run -d cpu --check -D m=256 -D n=128 -D k=24 product.yaml m=256
}

@test "terms of pairs that are no products are what their mathematics says, under every check" {
    [ -z "${KAIO_QUICK-}" ] || skip 'many shapes'
    for target in sm_70 sm_80; do
        run -0 kaio-verify --run -d cpu --check -t $target --fill=exact,extreme data/pairs.yaml
        [[ $output == *" passed, 0 failed, 0 skipped" ]]
    done
    # with sizes that are fixed, whole tiles and others
    for sizes in "m=70 n=132 d=40" "m=33 n=64 d=23"; do
        read -ra fixed <<<"$(sed 's/\([a-z]\)=/-D \1=/g' <<<"$sizes")"
        for kernel in squares hamming both mask ints; do
            # shellcheck disable=SC2086 # words
            run -0 kaio-verify --run -d cpu --check "${fixed[@]}" --kernel=$kernel data/pairs.yaml $sizes
        done
    done
}

@test "pairs take tiles, share what they have in common, and spill no registers" {
    [ -z "${KAIO_QUICK-}" ] || skip 'many shapes'
    kaio-emit --explain -v data/pairs.yaml >explained
    [ "$(grep -c 'strategy matmul' explained)" = 12 ] # one has two
    run ! grep 'strategy naive' explained
    grep -q 'wide: not matmul: line [0-9]*: others are no sums of products as this is' explained
    # a difference is taken once, and is both factors
    kaio-emit -D m=1024 -D n=1024 -D d=64 --kernel=squares data/pairs.yaml >p.ptx
    tiles p.ptx squares >loop
    [ "$(grep -c 'fma.rn.f32' loop)" = "$(grep -c 'sub.rn.f32' loop)" ]
    [ "$(grep -c 'fma.rn.f32' loop)" -ge 256 ]
    [ -n "$ptxas" ] || skip "no ptxas"
    for fixed in '' '-D m=1024 -D n=1024 -D d=64'; do
        for kernel in squares largest hamming both shares signs floats; do
            # shellcheck disable=SC2086 # words
            kaio-emit -t sm_90 $fixed --kernel=$kernel data/pairs.yaml >p.ptx
            "$ptxas" -v -arch=sm_90 -o p.cubin p.ptx 2>log
            grep -q 'bytes spill stores' log
            run ! grep -E '[1-9][0-9]* bytes spill stores' log
        done
    done
}

@test "what zeros behind the last term would change asks for whole tiles, what is compared for no shares" {
    kaio-emit --kernel=shortest data/pairs.yaml | grep -q '^//@ *when: .*k % 8 == 0'
    kaio-emit --kernel=squares data/pairs.yaml >k.ptx
    run ! grep '^//@ *when: .*d % 8 == 0' k.ptx
    run -0 --separate-stderr kaio-emit --explain -v -D m=64 -D n=64 -D k=201 --kernel=shortest data/pairs.yaml
    [[ $output == *"not matmul: line "*": the terms 'l' are no whole tiles, and zeros would count"* ]]
    sed -n '/^kernel: shortest/,/^---/p' data/pairs.yaml | sed '/^---/d' >one.yaml
    run -2 kaio-emit - <<<"$(cat one.yaml; echo "schedule: {strategy: matmul, split: 2}")"
    [[ $output == *"no such tile, warps and stages are possible"* ]]
    run -2 kaio-emit - <<<"$(cat one.yaml; echo "schedule: {strategy: matmul, mma: tf32x3}")"
    [[ $output == *"'mma: tf32x3' is for factors that are f32"* ]]
    # a sum may be shared
    sed -n '/^kernel: squares/,/^---/p' data/pairs.yaml | sed '/^---/d' >one.yaml
    echo "schedule: {strategy: matmul, split: 3}" >>one.yaml
    run -0 kaio-verify --run -d cpu --check one.yaml edges
}

@test "what a thread has no registers for is done in several launches" {
    for term in 'a%d[i,l] * b%d[j,l]' 'exp(a%d[i,l]) * b%d[j,l] + a%d[i,l] * exp(b%d[j,l])'; do
        {
            printf 'kernel: k\nparams:\n'
            for p in 1 2 3 4; do
                printf '  a%d: in f64[m, k]\n  b%d: in f64[n, k]\n  c%d: out f64[m, n]\n' $p $p $p
            done
            echo 'compute: |'
            for p in 1 2 3 4; do
                echo "  c${p}[i,j] = sum[l](${term//%d/$p})"
            done
        } >k.yaml
        for fixed in '' '-D m=64 -D n=64 -D k=256'; do
            # shellcheck disable=SC2086 # words
            run -0 --separate-stderr kaio-emit --explain -v $fixed k.yaml
            [[ $output == *": not matmul: line "* ]]
            [ "$(grep -c 'strategy matmul' <<<"$output")" -ge 2 ]
            [[ $output != *"strategy naive"* ]]
        done
        run -0 kaio-verify --run -d cpu k.yaml m=9 n=12 k=20
    done
}
