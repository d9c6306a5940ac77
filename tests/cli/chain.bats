# Strategy chain: reductions of terms that have sums of products in them, in one kernel.
bats_require_minimum_version 1.5.0

setup() {
    cd "$KAIO_SRCDIR/tests"
}

# spec TERM-RANGE EXPONENT  -> $BATS_TEST_TMPDIR/k.yaml: attention over 'j in RANGE' of terms exp(EXPONENT)
spec() {
    printf '%s\n' 'kernel: k' 'params:' '  q: in f16[m, d]' '  k: in f16[n, d]' '  v: in f16[n, e]' '  o: out f32[m, e]' \
        '  lse: out f32[m]' 'compute: |' "  s[i, j] = $2" "  top[i] = max[j$1](s[i, j])" '  p[i, j] = exp(s[i, j] - top[i])' \
        "  total[i] = sum[j$1](p[i, j])" "  o[i, c] = sum[j$1](p[i, j] * v[j, c]) / total[i]" \
        '  lse[i] = top[i] + log(total[i])' >"$BATS_TEST_TMPDIR/k.yaml"
}

@test "chains give what the equations say, under every check" {
    for target in sm_80 sm_90a; do
        # both of the code, of each target one, where the build without sanitizers runs both of both
        code=both
        [ -z "${KAIO_QUICK-}" ] || code=$([ $target = sm_80 ] && echo generic || echo fixed)
        run -0 kaio-verify --run -d cpu --check --code="$code" -t $target data/chain.yaml
    done
}

@test "by fma too, where the schedule asks for it or the target has nothing else" {
    # of a layer only a part is a chain
    sed '/^kernel: layer/,$d; s/^compute:/schedule: {strategy: chain, mma: none}\ncompute:/' data/chain.yaml |
        sed '$d' | sed '$d' >"$BATS_TEST_TMPDIR/fma.yaml"
    run -0 kaio-verify --run -d cpu --check --code=generic -t sm_80 "$BATS_TEST_TMPDIR/fma.yaml"
    sed 's/^compute:/schedule: {strategy: chain}\ncompute:/' data/chain.yaml >"$BATS_TEST_TMPDIR/old.yaml"
    run -0 kaio-emit --explain -t sm_70 --kernel=causal "$BATS_TEST_TMPDIR/old.yaml"
    [[ $output == *"launch causal  a warp for each row, by fma"* ]]
}

@test "each is one kernel, and stores no scores" {
    for kernel in causal window documents decode backward odd; do
        run -0 --separate-stderr kaio-emit --explain -v -t sm_80 --kernel=$kernel data/chain.yaml
        [[ $(grep ': strategy' <<<"$output") == "$kernel: strategy chain" && $output != *"is stored"* ]]
    done
    # an extent may be a product with a dimension that is fixed
    run -0 --separate-stderr kaio-emit --explain -v -t sm_80 -D T=f16 -D most=40 ../specs/attention/paged_decode.yaml
    [[ $(grep ': strategy' <<<"$output") == "attention_paged_decode: strategy chain" ]]
    # what a layer's attention streams from is stored, what it streams is not
    run -0 --separate-stderr kaio-emit --explain -v -t sm_80 --kernel=layer data/chain.yaml
    [[ $(grep ': strategy' <<<"$output") == "layer_q: strategy matmul
layer: strategy chain" ]]
}

@test "what divides a head's number need not be a multiple of anything" {
    # heads are the same in all lanes of what is loaded at once, and so is the quotient
    for spec in paged_decode int8_kv; do
        run -0 --separate-stderr kaio-emit --explain -v -t sm_80 ../specs/attention/$spec.yaml
        [[ $output == *" && d % 8 == 0 && e % 8 == 0"* && $output != *"hk % "* ]]
    done
}

@test "tiles, warps and shares are as the schedule says" {
    local of kernel turn=0
    for schedule in 'tile: [16, 16], warps: 1' 'tile: [64, 64], warps: 2, split: 3' 'split: 7' 'tile: [32, 48], warps: 2' \
        'tile: [16, 16], warps: 8, stages: 3' 'tile: [32, 32], warps: 3, stages: 1' 'tile: [16, 64], warps: 2, split: 3'; do
        sed "s/^compute:/schedule: {strategy: chain, $schedule}\ncompute:/" data/chain.yaml >"$BATS_TEST_TMPDIR/k.yaml"
        of=(decode causal groups)
        [ -z "${KAIO_QUICK-}" ] || of=("${of[turn++ % 3]}")
        for kernel in "${of[@]}"; do
            run -0 kaio-verify --run -d cpu --check --code=fixed -t sm_80 --kernel="$kernel" "$BATS_TEST_TMPDIR/k.yaml"
        done
    done
    for schedule in 'tile: [40, 16], warps: 1' 'tile: [16, 40], warps: 1' 'tile: [128, 16], warps: 2'; do
        sed "s/^compute:/schedule: {strategy: chain, $schedule}\ncompute:/" data/chain.yaml >"$BATS_TEST_TMPDIR/k.yaml"
        run -2 kaio-emit -t sm_80 --kernel=decode "$BATS_TEST_TMPDIR/k.yaml"
        [[ $output == *"error: "*" not "[14]* ]]
    done
    sed 's/^compute:/schedule: {strategy: chain, tile: [64, 128], warps: 2}\n&/' data/chain.yaml >"$BATS_TEST_TMPDIR/k.yaml"
    run -2 kaio-emit -t sm_80 --kernel=decode "$BATS_TEST_TMPDIR/k.yaml"
    [[ $output == *"registers have no room for tiles of 64 x 128, and of 64 columns, of 2 warps"* ]]
}

@test "warps of few rows share them, and bring tiles while others come" {
    kaio-emit -t sm_80 -D T=f16 -Db=1 -Dhq=32 -Dhk=8 -Dm=1 -Dn=8192 -Dd=128 -De=128 ../specs/attention/decode.yaml >"$BATS_TEST_TMPDIR/k.ptx"
    grep -q '^//@     block: \[128\]$' "$BATS_TEST_TMPDIR/k.ptx"
    # two stages of k and of v: all but the oldest of these are on their way while one is waited for
    [ "$(grep -c 'cp.async.wait_group *3;' "$BATS_TEST_TMPDIR/k.ptx")" = 2 ]
    # blocks wait for each other when q has come, and when warps and blocks fold what they have found
    [ "$(grep -c 'bar.sync' "$BATS_TEST_TMPDIR/k.ptx")" = 4 ]
    # where there are more blocks than multiprocessors, fewer warps share one's rows
    for of in '2 32' '1 64'; do
        kaio-emit -t sm_80 -D T=f16 -D b="${of#* }" -D hq=32 -D hk=8 -D m=1 -D n=2048 -D d=128 -D e=128 ../specs/attention/decode.yaml >"$BATS_TEST_TMPDIR/many.ptx"
        grep -q "^//@     block: \[$((${of% *} * 32))\]\$" "$BATS_TEST_TMPDIR/many.ptx"
        [ "$(grep -c '\$arrived' "$BATS_TEST_TMPDIR/many.ptx")" = 0 ]
    done
    # whole tiles have nothing to look after, and rows lie where constants say
    [ "$(grep -c 'cp.async.cg.*, 16;' "$BATS_TEST_TMPDIR/k.ptx")" -gt 90 ]
    # rows of pages don't pass registers
    kaio-emit -t sm_80 -D T=f16 -D b=1 -D hq=32 -D hk=8 -D pages=600 -D most=512 -D d=128 -D e=128 ../specs/attention/paged_decode.yaml >"$BATS_TEST_TMPDIR/k.ptx"
    [ "$(grep -c 'cp.async.cg.*, 16;' "$BATS_TEST_TMPDIR/k.ptx")" -gt 90 ]
    [ "$(grep -c 'st.shared.v4' "$BATS_TEST_TMPDIR/k.ptx")" = 0 ]
    run -2 kaio-emit -t sm_80 -D m=40 - <<<"$(sed 's/^compute:/schedule: {strategy: chain, stages: 2}\n&/' ../specs/attention/forward.yaml)"
    [[ $output == *"'stages' is for 'mma: wgmma', or for few rows"* ]]
}

# has_groups COUNT SIDE SIZE...: do so many groups of blocks share rows, each of which reads keys once? A group has a counter for
# each SIDE of its blocks, and one for these.
has_groups() {
    local count=$1 side=$2 blocks counters
    shift 2
    kaio-emit -t sm_80 -D T=f16 "${@/#/-D}" ../specs/attention/decode.yaml >"$BATS_TEST_TMPDIR/k.ptx"
    counters=$(sed -nE 's,^//@   \$arrived: u32\[([0-9]+)\].*,\1,p' "$BATS_TEST_TMPDIR/k.ptx")
    blocks=$(sed -nE 's,^//@     grid: \[([0-9]+)\]$,\1,p' "$BATS_TEST_TMPDIR/k.ptx")
    [ $((blocks % count)) -eq 0 ] && [ "$counters" -eq $((count * ((blocks / count + side - 1) / side + 1))) ]
}

@test "rows of heads that share keys are packed into tiles, and keys are read once for all of them" {
    size='n=8192 d=128 e=128'
    # shellcheck disable=SC2086
    for of in '8 32 b=1 hq=32 hk=8 m=1' '24 32 b=3 hq=32 hk=8 m=2' '4 8 b=1 hq=32 hk=4 m=8' '1 8 b=1 hq=64 hk=1 m=1' \
        '5 8 b=1 hq=64 hk=1 m=5' '32 32 b=1 hq=32 hk=32 m=1' '16 8 b=1 hq=32 hk=16 m=31'; do
        read -r count side of <<<"$of"
        has_groups "$count" "$side" $of $size
    done
    # where the sizes are not known the launch finds out, and specs without groups have nothing of it
    run -0 --separate-stderr kaio-emit --explain -v -t sm_80 -D T=f16 ../specs/attention/decode.yaml
    [[ $output == *"tiles 16 x 32, 128 columns, rows of max(hq / max(hk, 1), 1) 'h' packed, when "*" m * max(hq / max(hk, 1), 1) <= 16 "* ]]
    [[ $output == *"attention_decode_128_group: "*"tiles 64 x 64"*" packed, when "*" max(hq / max(hk, 1), 1) >= 2 && m <= 32 "* ]]
    run -0 --separate-stderr kaio-emit --explain -v -t sm_80 -D T=f16 ../specs/attention/forward.yaml
    [[ $output != *"packed"* && $output != *"_group"* ]]
}

@test "heads of a group are packed whichever way their number is written" {
    cd "$BATS_TEST_TMPDIR"
    # G, the heads' dimension, another parameter, the case
    while IFS='|' read -r by heads more case; do
        printf '%s\n' 'kernel: k' "params: {q: 'in f16[$heads, m, d]', k: 'in f16[hk, n, d]', v: 'in f16[hk, n, d]', ${more}o: 'out f16[$heads, m, d]'}" \
            'require: hk >= 1' 'compute: |' "  s[h,i,j] = sum[c](q[h,i,c] * k[h / $by, j, c]) * 0.2" '  t[h,i] = max[j](s[h,i,j])' \
            '  p[h,i,j] = exp(s[h,i,j] - t[h,i])' "  o[h,i,c] = sum[j](f16(p[h,i,j]) * v[h / $by, j, c]) / sum[j](p[h,i,j])" \
            "cases: {a: {$case, hk: 2, n: 50, d: 16}}" >k.yaml
        run -0 --separate-stderr kaio-emit --explain -v -t sm_80 k.yaml
        [[ $output == *"'h' packed"* ]]
        run -0 kaio-verify --run -d cpu --check -t sm_80 k.yaml
    done <<<'(hq / hk)|hq||hq: 14, m: 3
4|hq||hq: 8, m: 1
7|7 * hk||m: 2
g|g * hk||g: 3, m: 20
g|hq|g: i64, |hq: 5, g: 3, m: 6'
    # of other ways to share keys there is no row that is next to another one
    sed -i 's,h / g,h % hk,g' k.yaml
    run -0 --separate-stderr kaio-emit --explain -v -t sm_80 k.yaml
    [[ $output == *"mma.sync"* && $output != *"packed"* ]]
}

# A row's sum does not have what is behind its range; and 0 times what is there is NaN where the term is in the sum.
@test "infinities and NaN do what the equations say" {
    cd "$BATS_TEST_TMPDIR"
    python3 - <<'END'
import numpy as np
r = np.random.default_rng(1)
q, k, v = (r.standard_normal((n, 32)).astype(np.float16) for n in (70, 70, 70))
np.save("q.npy", q); np.save("k.npy", k); np.save("v.npy", v)
v[9, 3] = np.nan; v[40, 5] = np.inf; np.save("bad_v.npy", v)
k[60] *= 300; np.save("bad_k.npy", k) # scores of thousands
END
    size='m=70 n=70 d=32 e=32'
    for range in ' in 0..i + 1' ' in max(0, i - 7)..i + 1' ' in 0..i' ''; do
        for exponent in 'sum[c](q[i, c] * k[j, c])' 'j <= i ? sum[c](q[i, c] * k[j, c]) : -inf' \
            'j < i && i != 3 ? sum[c](q[i, c] * k[j, c]) : -inf'; do
            spec "$range" "$exponent"
            kaio-emit -t sm_80 -D m=70 -D n=70 -D d=32 -D e=32 k.yaml >k.ptx
            grep -q 'mma.sync' k.ptx
            losses=$(sed -nE 's,^//@ (depth|truncation|products): ,--\1=,p' k.ptx)
            for files in 'k=k.npy v=v.npy' 'k=k.npy v=bad_v.npy' 'k=bad_k.npy v=v.npy'; do
                # shellcheck disable=SC2086
                kaio-run -q -d cpu k.ptx q=q.npy $files o=o.npy lse=lse.npy
                # shellcheck disable=SC2086
                run -0 kaio-verify $losses k.yaml $size q=q.npy $files o=o.npy lse=lse.npy
            done
        done
    done
}

# Tiles of j without weights are skipped; 0 times what is behind them is NaN all the same, whoever has seen that.
@test "what is left out for its weight of 0 is as the equations say" {
    cd "$BATS_TEST_TMPDIR"
    python3 - <<'END'
import numpy as np
r = np.random.default_rng(1)
for name, n in ("q", 300), ("k", 400), ("v", 400), ("p", 900):
    x = r.standard_normal((n, 16)).astype(np.float16); np.save(name + ".npy", x)
    if name in "vp":
        for i, at in enumerate((1, 150, 299, 399)):
            y = x.copy(); y[at, 3 + i] = np.nan if i % 2 else np.inf; np.save(f"{name}{i}.npy", y)
END
    local turn=0
    for mask in 'j <= i' 'j <= i + (n - m)' 'j > i - 5 && j <= i + 2' 'i < 70 ? j < 20 : j >= 300' 'j >= 2 * (i / 2) && i != 3' \
        'j == n - 1 - i' 'j < 130' 'j >= 130 && j < 150 && i % 2 == 0' '!(j > i) && true'; do
        [ -z "${KAIO_QUICK-}" ] || [[ $mask == 'j <= i' || $mask == 'j > i'* ]] || continue
        spec '' "$mask ? sum[c](q[i, c] * k[j, c]) : -inf"
        fixed='-D m=300 -D n=400 -D d=16 -D e=16'
        for sizes in "$fixed" ''; do
            # shellcheck disable=SC2086
            kaio-emit -t sm_80 $sizes k.yaml >k.ptx
            [ -z "$sizes" ] || losses=$(sed -nE 's,^//@ (depth|truncation|products): ,--\1=,p' k.ptx)
            # each of infinities and NaN is repaired by a kernel of its own, which takes long to simulate
            [ -n "$sizes" ] && vs='v v0 v1 v2 v3' || vs="v v$((turn++ % 4))"
            [ -z "${KAIO_QUICK-}" ] || vs=$([ -n "$sizes" ] && echo v v1 || echo v2)
            for v in $vs; do
                size='m=300 n=400 d=16 e=16'
                kaio-run -q -d cpu --check k.ptx q=q.npy k=k.npy v=$v.npy o=o.npy lse=lse.npy
                # shellcheck disable=SC2086
                run -0 kaio-verify $losses k.yaml $size q=q.npy k=k.npy v=$v.npy o=o.npy lse=lse.npy
            done
        done
    done
    spec '' 'j <= i ? sum[c](q[i, c] * k[j, c]) : -inf'
    run -0 --separate-stderr kaio-emit -t sm_80 --explain k.yaml
    [[ $output$stderr == *"launch k_repair "* ]]
    # a maximum over all j leaves nothing out
    sed -i 's/p\[i, j\] = .*/p[i, j] = j <= i ? exp(s[i, j] - top[i]) : 0.0/; s/s\[i, j\] = .* ? \(.*\) : -inf/s[i, j] = \1/' k.yaml
    run -0 --separate-stderr kaio-emit -t sm_80 --explain k.yaml
    [[ $output$stderr == *"k: chain"* && $output$stderr != *repair* ]]
}

@test "indices of outputs are told apart by their names where their extents are equal" {
    cd "$BATS_TEST_TMPDIR"
    printf '%s\n' 'kernel: k' 'params: {q: "in f16[b, m, hq, d]", k: "in f16[b, n, hq, d]", v: "in f16[b, n, hq, e]", o: "out f16[b, m, hq, e]",' \
        '  lse: "out f32[b, hq, m]"}' 'compute: |' '  s[z, h, i, j] = sum[c](q[z, i, h, c] * k[z, j, h, c])' '  top[z, h, i] = max[j](s[z, h, i, j])' \
        '  p[z, h, i, j] = exp(s[z, h, i, j] - top[z, h, i])' '  total[z, h, i] = sum[j](p[z, h, i, j])' \
        '  o[z, i, h, c] = sum[j](f16(p[z, h, i, j]) * v[z, j, h, c]) / total[z, h, i]' '  lse[z, h, i] = top[z, h, i] + log(total[z, h, i])' \
        'cases: {equal: {b: 2, m: 3, hq: 3, n: 20, d: 16, e: 16}}' >k.yaml
    run -0 --separate-stderr kaio-emit -t sm_80 --explain -D m=3 -D hq=3 k.yaml
    [[ $output$stderr == *"k: chain"* ]]
    run -0 kaio-verify --run -d cpu --check -t sm_80 k.yaml
}

@test "weights that are stored in 16 bits are judged by what other maxima make of them" {
    run -0 kaio-verify --run -d cpu --code=fixed --fill=edge -t sm_80 "$KAIO_SRCDIR/specs/attention/int8_kv.yaml"
}

@test "infinities and NaN of one head are none of another head's, whose rows are in the same tile" {
    cd "$BATS_TEST_TMPDIR"
    python3 - <<'END'
import numpy as np
r = np.random.default_rng(1)
q, k, v = (r.standard_normal(s).astype(np.float16) for s in ((2, 7, 5, 32), (2, 2, 70, 32), (2, 2, 70, 40)))
np.save("q.npy", q); np.save("k.npy", k); np.save("v.npy", v)
v[0, 1, 69, 3] = np.nan; v[1, 0, 12, 5] = np.inf; np.save("bad_v.npy", v)
q[0, 6, 2] = np.nan; q[1, 3, 1] = np.inf; np.save("bad_q.npy", q)
k[0, 1, 60] *= 300; k[1, 0, 3] = np.inf; np.save("bad_k.npy", k)
END
    spec=$KAIO_SRCDIR/tests/data/chain.yaml
    size='b=2 hq=7 hk=2 m=5 n=70 d=32 e=40'
    others='slope=@uniform sink=@normal bias=@normal'
    kaio-emit -t sm_80 --kernel=groups "$spec" >open.ptx
    # shellcheck disable=SC2046,SC2086
    kaio-emit -t sm_80 --kernel=groups $(printf ' -D %s' $size) "$spec" >fixed.ptx
    for files in 'q=q.npy k=k.npy v=bad_v.npy' 'q=bad_q.npy k=k.npy v=v.npy' 'q=q.npy k=bad_k.npy v=v.npy'; do
        for code in open fixed; do
            # shellcheck disable=SC2086
            kaio-run -q -d cpu --check $code.ptx $files $others o=o.npy lse=lse.npy
            # shellcheck disable=SC2086
            run -0 kaio-verify --depth=200 --truncation=200 --kernel=groups "$spec" $size $files $others o=o.npy lse=lse.npy
        done
    done
}

@test "what is left out of one head's row is looked at for all heads of its group" {
    cd "$BATS_TEST_TMPDIR"
    python3 - <<'END'
import numpy as np
r = np.random.default_rng(1)
for name, shape in ("q", (2, 7, 6, 16)), ("k", (2, 2, 200, 16)), ("v", (2, 2, 200, 16)):
    x = r.standard_normal(shape).astype(np.float16); np.save(name + ".npy", x)
for i, (z, h, j) in enumerate(((0, 0, 0), (1, 1, 60), (0, 1, 120), (1, 0, 199))):
    y = x.copy(); y[z, h, j, i] = np.nan if i % 2 else np.inf; np.save(f"v{i}.npy", y)
END
    size='b=2 hq=7 hk=2 m=6 n=200 d=16'
    for mask in 'j <= i + (n - m)' 'j < 30 * h + 10' 'j >= 90 && j < 100 + i && h % 2 == 0' 'j >= 150 - 20 * h && i != 3'; do
        [ -z "${KAIO_QUICK-}" ] || [[ $mask == 'j < 30'* ]] || continue
        printf '%s\n' 'kernel: k' 'params: {q: "in f16[b, hq, m, d]", k: "in f16[b, hk, n, d]", v: "in f16[b, hk, n, d]", o: "out f16[b, hq, m, d]"}' \
            'require: 4 * hk >= hq' 'compute: |' "  s[z,h,i,j] = $mask ? sum[c](q[z,h,i,c] * k[z, h / 4, j, c]) : -inf" \
            '  t[z,h,i] = max[j](s[z,h,i,j])' '  p[z,h,i,j] = exp(s[z,h,i,j] - t[z,h,i])' \
            '  o[z,h,i,c] = sum[j](f16(p[z,h,i,j]) * v[z, h / 4, j, c]) / sum[j](p[z,h,i,j])' >k.yaml
        # shellcheck disable=SC2046,SC2086
        for sizes in "$(printf ' -D %s' $size)" ''; do
            kaio-emit -t sm_80 $sizes k.yaml >k.ptx
            grep -q k_repair k.ptx
            [ -n "$sizes" ] && vs='v v0 v1' || vs='v v2 v3'
            [ -z "${KAIO_QUICK-}" ] || vs='v v1 v2'
            for v in $vs; do
                kaio-run -q -d cpu --check k.ptx q=q.npy k=k.npy v=$v.npy o=o.npy
                run -0 kaio-verify --depth=200 --truncation=400 k.yaml $size q=q.npy k=k.npy v=$v.npy o=o.npy
            done
        done
    done
}

@test "nothing to stream, no rows, and rows without terms" {
    cd "$BATS_TEST_TMPDIR"
    spec ' in 0..min(n, i)' 'sum[c](q[i, c] * k[j, c])'
    kaio-emit -t sm_80 k.yaml >k.ptx
    for size in 'm=3 n=0 d=16 e=8' 'm=0 n=8 d=16 e=8' 'm=20 n=9 d=0 e=8' 'm=20 n=9 d=16 e=0'; do
        # shellcheck disable=SC2086
        kaio-run -q -d cpu --check k.ptx $size q=@normal k=@normal v=@normal o=o.npy lse=lse.npy
        # shellcheck disable=SC2086
        run kaio-verify --depth=100 --truncation=100 --products=4 k.yaml $size q=@normal k=@normal v=@normal o=o.npy lse=lse.npy
        [[ $output != *FAIL* && $output != *wrong* && $output != *ERROR* ]]
    done
}

@test "what does not fit is told, and goes another way" {
    cd "$BATS_TEST_TMPDIR"
    # scores that two passes need are stored
    printf '%s\n' 'kernel: k' 'params: {q: "in f16[b, m, d]", k: "in f16[b, n, d]", o: "out f32[b, m]"}' 'compute: |' \
        '  s[z, i, j] = sum[c](q[z, i, c] * k[z, j, c])' '  mean[z, i] = sum[j](s[z, i, j])' \
        '  o[z, i] = sum[j]((s[z, i, j] - mean[z, i]) * (s[z, i, j] - mean[z, i]))' 'cases: {a: {b: 2, m: 9, n: 33, d: 16}}' >k.yaml
    run -0 --separate-stderr kaio-emit --explain k.yaml
    [[ $output == *"k_s: matmul"* && $output != *": chain"* ]]
    run -0 kaio-verify --run -d cpu k.yaml
    sed 's/^compute/schedule: {strategy: chain}\ncompute/' k.yaml >named.yaml
    run -2 kaio-emit named.yaml
    [[ $output == *"strategy 'chain' does not fit: line 7: the terms need another reduction over 'j' "*"second pass"* ]]
    # two layers of a network are no attention: their sizes are not small
    printf '%s\n' 'kernel: k' 'params: {x: "in f16[m, d]", a: "in f16[n, d]", b: "in f16[n, e]", y: "out f16[m, e]"}' \
        'compute: "y[i, c] = f16(sum[j](f16(relu(sum[k](x[i, k] * a[j, k]))) * b[j, c]))"' >k.yaml
    run -0 --separate-stderr kaio-emit --explain k.yaml
    [[ $output == *"k: matmul"* && $output != *": chain"* ]]
    # f64 has no tensor cores here
    printf '%s\n' 'kernel: k' 'params: {q: "in f64[m, d]", k: "in f64[n, d]", o: "out f64[m]"}' \
        'schedule: {strategy: chain, mma: sync}' 'compute: "o[i] = max[j](sum[c](q[i, c] * k[j, c]))"' >k.yaml
    run -2 kaio-emit k.yaml
    [[ $output == *"tensor cores do not fit: line 4: its factors are neither f16, bf16, f32 nor 8-bit floats"* ]]
}

@test "ptxas keeps in registers what mma.sync multiplies, of tiles that are chosen" {
    [ -z "${KAIO_QUICK-}" ] || skip "the same text as without sanitizers"
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || skip "no ptxas"
    cd "$KAIO_SRCDIR/specs/attention"
    for size in forward:64 forward:128 causal:256 backward_dkv:64 backward_dkv:128; do
        local d=${size#*:} log=$BATS_TEST_TMPDIR/log
        kaio-emit -t sm_80 -D T=f16 -D b=4 -D heads=16 -D m=4096 -D n=4096 -D d="$d" -D e="$d" "${size%:*}.yaml" >"$log.ptx"
        "$ptxas" -v -arch=sm_80 "$log.ptx" -o "$log.cubin" >"$log" 2>&1
        grep -q ' 0 bytes spill stores, 0 bytes spill loads' "$log"
    done
}

@test "outputs are stored 16 bytes at a time, of columns that are a multiple of 8" {
    cd "$KAIO_SRCDIR/specs/attention"
    local log=$BATS_TEST_TMPDIR/ptx
    for size in e=64 e=96 bf16:e=32; do
        kaio-emit -t sm_80 -D T="$([[ $size == bf16* ]] && echo bf16 || echo f16)" -D m=4096 -D n=4096 -D d=64 -D "${size#*:}" \
            -D b=1 -D heads=1 forward.yaml >"$log"
        grep -q 'st.global.v4.b32' "$log"
        # by mma.sync there is nothing left to store but lse; the entry's rest computes rows by fma, of 16 bits each
        [ "$(grep -c 'st.global.*b32' "$log")" -eq "$(grep -c 'st.global.v4.b32' "$log")" ]
    done
    for size in e=40 e=72 e=100; do
        run -0 kaio-verify --run -d cpu --check -t sm_80 --code=both forward.yaml -D T=f16 -D b=1 -D heads=2 -D m=37 -D n=70 -D d=24 -D $size
    done
}

@test "a maximum that is infinite, of no term of its row" {
    cd "$BATS_TEST_TMPDIR"
    cat >k.yaml <<'END'
kernel: masked
params: {q: "in f16[t, m, d]", k: "in f16[t, n, d]", v: "in f16[t, e, n]", of_q: "in i32[t, m]", of_k: "in i32[t, n]",
         o: "out f16[t, m, e]"}
compute: |
  s[y,i,j] = sum[c](q[y,i,c] * k[y,j,c]) * 0.17
  base[y,i] = max(max[j](s[y,i,j]), -1e30)
  p[y,i,j] = of_q[y,i] == of_k[y,j] ? exp(s[y,i,j] - base[y,i]) : 0
  total[y,i] = sum[j](p[y,i,j])
  o[y,i,x] = total[y,i] == 0 ? 0 : sum[j](f16(p[y,i,j]) * v[y,x,j]) / total[y,i]
END
    python3 - <<'END'
import numpy as np
q, k, v = (np.ones((1, n, 16), "f2") for n in (4, 3, 16))
k[0, 2, 0] = np.inf
np.save("q", q), np.save("k", k), np.save("v", v[:, :, :3])
np.save("of_q", np.zeros((1, 4), "i4")), np.save("of_k", np.array([[0, 0, 1]], "i4"))
END
    local t
    for t in sm_80 sm_90a; do
        run -0 kaio-emit --explain -t $t k.yaml
        [[ $output == *"mma.sync of f16"* ]]
        kaio-emit -t $t k.yaml | kaio-run -d cpu --check - q=q.npy k=k.npy v=v.npy of_q=of_q.npy of_k=of_k.npy o=o.npy
        # no term is left of exp(s - inf)
        run -0 python3 -c 'import numpy; assert (numpy.load("o.npy") == 0).all()'
    done
}

@test "weights fall off from a reference that lags behind growing maxima" {
    cd "$BATS_TEST_TMPDIR"
    cat >k.yaml <<'END'
kernel: grows
params: {q: "in f16[m, d]", k: "in f16[n, d]", v: "in f16[n, e]", w: f32, o: "out f16[m, e]", lse: "out f32[m]"}
compute: |
  s[i,j] = sum[c](q[i,c] * k[j,c]) * w
  top[i] = max[j](s[i,j])
  total[i] = sum[j](exp(s[i,j] - top[i]))
  o[i,x] = sum[j](f16(exp(s[i,j] - top[i])) * v[j,x]) / total[i]
  lse[i] = top[i] + log(total[i])
END
    # scores grow by 0.004 to 12 from key to key: less than the slack in a tile, as much, and more; of both signs and 0
    run -0 python3 - <<'END'
import numpy as np
n, m, d = 300, 20, 16
q = np.zeros((m, d)); k = np.zeros((n, d))
q[:, 0] = np.arange(1, m + 1) * 0.05
k[:, 0] = np.arange(n) * 0.08
rng = np.random.default_rng(3)
v = rng.standard_normal((n, d))
q, k, v = (x.astype("f2") for x in (q, k, v))
for name, x in ("q", q), ("k", k), ("v", v):
    np.save(name, x)
q, k, v = (x.astype("f8") for x in (q, k, v))
for name, w in ("up", 10.0), ("down", -10.0), ("none", 0.0), ("huge", 3e6):
    s = q @ k.T * np.float32(w)
    p = np.exp(s - s.max(1, keepdims=True))
    np.save(name, p @ v / p.sum(1, keepdims=True))
    np.save(name + ".lse", s.max(1) + np.log(p.sum(1)))
END
    local t w
    for t in sm_80 sm_90a; do
        kaio-emit -t $t -D d=16 -D e=16 k.yaml -o k.ptx
        while read -r name w; do
            run -0 kaio-run -d cpu --check k.ptx q=q.npy k=k.npy v=v.npy w="$w" o=o.npy lse=l.npy
            run -0 python3 -c "
import numpy as np
o, want, l, lse = (np.load(f + '.npy').astype('f8') for f in ('o', '$name', 'l', '$name.lse'))
assert np.all(np.abs(o - want) <= 3e-3 * (1 + np.abs(want))), np.abs(o - want).max()
assert np.all(np.abs(l - lse) <= 1e-6 * (1 + np.abs(lse))), np.abs(l - lse).max()
"
        done <<'END'
up 10
down -10
none 0
huge 3000000
END
    done
}

@test "between products integers have 32 bits where sizes are known, and what is a row's is read once" {
    local sizes='-D T=f16 -D b=1 -D heads=2 -D m=300 -D n=300 -D d=64 -D e=64' t
    for t in sm_80 sm_90a; do
        # shellcheck disable=SC2086
        kaio-emit -t $t $sizes ../specs/attention/alibi.yaml >"$BATS_TEST_TMPDIR/k.ptx"
        # the slope is read in each copy of a tile's code; rows that are computed anew have one element at a time
        [ "$(grep -c 'cvt.rn.f32.[su]64' "$BATS_TEST_TMPDIR/k.ptx")" -le 1 ]
        [ "$(grep -c 'ld.global.nc.f32' "$BATS_TEST_TMPDIR/k.ptx")" -le 8 ]
        kaio-emit -t $t -D T=f16 ../specs/attention/alibi.yaml >"$BATS_TEST_TMPDIR/k.ptx"
        [ "$(grep -c 'cvt.rn.f32.s64' "$BATS_TEST_TMPDIR/k.ptx")" -ge 16 ]
    done
    # distances are converted once for a row's tile, and what two rows have in common is multiplied once, where no row
    # stands for another
    for m in 300 384; do
        kaio-emit -t sm_90a -D T=f16 -D b=1 -D heads=2 -D m=$m -D n=$m -D d=64 -D e=64 ../specs/attention/alibi.yaml >"$BATS_TEST_TMPDIR/$m.ptx"
        [ "$(grep -c 'cvt.rn.f32.s32' "$BATS_TEST_TMPDIR/$m.ptx")" -le 10 ]
    done
    [ "$(grep -c 'mul.rn.f32' "$BATS_TEST_TMPDIR/384.ptx")" -le $(($(grep -c 'mul.rn.f32' "$BATS_TEST_TMPDIR/300.ptx") - 60)) ]
    sed 's/^cases:/&\n  whole: {b: 1, heads: 2, m: 128, n: 180, d: 16, e: 16, slope: "@normal"}/' ../specs/attention/alibi.yaml \
        >"$BATS_TEST_TMPDIR/k.yaml"
    for t in sm_80 sm_90a; do
        run -0 kaio-verify --run -d cpu --check --code=fixed -t $t "$BATS_TEST_TMPDIR/k.yaml" whole
    done
    # as large as they get
    sed 's/slope\[h\] \* (i + (n - m) - j)/slope[h] * (i * 2000000000 - j * 2000000000) * 1e-9/' ../specs/attention/alibi.yaml >"$BATS_TEST_TMPDIR/k.yaml"
    run -0 kaio-verify --run -d cpu --code=fixed -t sm_80 --fill=normal "$BATS_TEST_TMPDIR/k.yaml" odd
}

# capped [SCHEDULE]  -> $BATS_TEST_TMPDIR/k.yaml: causal attention of f16 with a soft cap, and its maximum
capped() {
    cat >"$BATS_TEST_TMPDIR/k.yaml" <<'EOF'
kernel: k
params:
  q: in f16[m, d]
  k: in f16[n, d]
  v: in f16[n, e]
  scale: f32 = 0.25
  cap: f32 = 30
  o: out f16[m, e]
  top: out f32[m]
require: m <= n
compute: |
  s[i, j] = sum[c](q[i, c] * k[j, c]) * scale
  t[i, j] = cap * tanh(s[i, j] / cap)
  top[i] = max[j in 0..i + (n - m) + 1](t[i, j])
  p[i, j] = exp(t[i, j] - top[i])
  total[i] = sum[j in 0..i + (n - m) + 1](p[i, j])
  o[i, c] = sum[j in 0..i + (n - m) + 1](f16(p[i, j]) * v[j, c]) / total[i]
cases:
  near: {m: 70, n: 140, d: 16, e: 16}
  far: {m: 70, n: 140, d: 16, e: 16, cap: 0.5}
  either: {m: 70, n: 140, d: 16, e: 16, cap: 5}
  below: {m: 70, n: 140, d: 16, e: 16, cap: -9}
  large: {m: 70, n: 140, d: 16, e: 16, cap: 1e6, scale: -0.5}
  larger: {m: 70, n: 140, d: 16, e: 16, cap: 3e38}
  small: {m: 70, n: 140, d: 16, e: 16, cap: 1e-30, scale: 1e-30}
  zero: {m: 70, n: 140, d: 16, e: 16, scale: 0}
  nothing: {m: 70, n: 140, d: 16, e: 16, cap: 0}
EOF
}

# right TARGET SPEC ARG...: nothing is wrong; maxima that are the same in all rows are not trusted
right() {
    kaio-verify --run -d cpu --check -t "$@" >"$BATS_TEST_TMPDIR/out" 2>&1 || [ $? = 1 ]
    grep -q ' passed, 0 failed, 0 skipped' "$BATS_TEST_TMPDIR/out" || { cat "$BATS_TEST_TMPDIR/out"; return 1; }
}

@test "a soft cap stands in the products' place, and is a polynomial where scores are far below it" {
    capped
    for target in sm_80 sm_90a; do
        right $target --code=generic --fill=edge "$BATS_TEST_TMPDIR/k.yaml"
        [ -n "${KAIO_QUICK-}" ] || right $target --code=fixed --fill=normal,extreme "$BATS_TEST_TMPDIR/k.yaml"
        # one number for each product beside the exponential's
        run -0 --separate-stderr kaio-emit -t $target -D m=70 -D n=140 -D d=16 -D e=16 "$BATS_TEST_TMPDIR/k.yaml"
        [[ $output == *vote.sync.all.pred* && $output != *tanh.approx* ]]
        sed 's/^compute:/math: fast\ncompute:/' "$BATS_TEST_TMPDIR/k.yaml" >"$BATS_TEST_TMPDIR/fast.yaml"
        run -0 --separate-stderr kaio-emit -t $target -D m=70 -D n=140 -D d=16 -D e=16 "$BATS_TEST_TMPDIR/fast.yaml"
        [[ $output == *tanh.approx* && $output != *vote.sync.all.pred* ]]
        run -0 kaio-verify --run -d cpu --check -t $target "$BATS_TEST_TMPDIR/fast.yaml" near far either below
    done
    # what else is made of the scores has them as they are
    sed 's/top\[i\] = max/most[i] = max[j](s[i, j])\n  &/; s/^  top: .*/&\n  most: out f32[m]/' "$BATS_TEST_TMPDIR/k.yaml" \
        >"$BATS_TEST_TMPDIR/most.yaml"
    run -0 kaio-verify --run -d cpu --check -t sm_90a "$BATS_TEST_TMPDIR/most.yaml" near far either below
    # a function of the score that is no product with one number
    sed 's|tanh(s\[i, j\] / cap)|tanh(s[i, j] / cap + 0.125)|' "$BATS_TEST_TMPDIR/k.yaml" >"$BATS_TEST_TMPDIR/plus.yaml"
    run -0 kaio-verify --run -d cpu --check -t sm_90a "$BATS_TEST_TMPDIR/plus.yaml" near far either below
}

@test "tanh between products has 3 units in the last place, and the bound knows it" {
    # products of one term lose nothing, and what tanh has is left
    capped
    sed -i -e 's/^cases:/&\n  one: {m: 300, n: 300, d: 1, e: 1, cap: 1, scale: 1, k: "@const:1"}/' \
        -e 's/\[j in 0\.\.i + (n - m) + 1\]/[j in i..i + 1]/' "$BATS_TEST_TMPDIR/k.yaml"
    right sm_80 --code=fixed "$BATS_TEST_TMPDIR/k.yaml" one
    part=$(sed -n 's/^PASS .* top f32.* \([0-9.e-]*\) of its bound.*/\1/p' "$BATS_TEST_TMPDIR/out")
    awk -v x="$part" 'BEGIN { exit !(x > 0.1 && x < 0.5) }'
}

@test "a condition on indices and what is read by them is put on products" {
    cat >"$BATS_TEST_TMPDIR/k.yaml" <<'EOF'
kernel: k
params:
  q: in f16[m, d]
  k: in f16[n, d]
  v: in f16[n, d]
  ok: in u8[m, n]
  scale: f32 = 0.25
  o: out f16[m, d]
compute: |
  s[i, j] = ok[i, j] != 0 ? sum[c](q[i, c] * k[j, c]) * scale : -inf
  top[i] = max[j](s[i, j])
  p[i, j] = exp(s[i, j] - top[i])
  total[i] = sum[j](p[i, j])
  o[i, c] = sum[j](f16(p[i, j]) * v[j, c]) / total[i]
cases:
  some: {m: 70, n: 140, d: 16, ok: 0..2}
  few: {m: 70, n: 140, d: 16, ok: 0..20}
  below: {m: 70, n: 140, d: 16, ok: 0..2, scale: -0.25}
  none: {m: 70, n: 140, d: 16, ok: 0..0}
EOF
    for target in sm_80 sm_90a; do
        right $target "$BATS_TEST_TMPDIR/k.yaml"
        run -0 --separate-stderr kaio-emit -t $target -D m=256 -D n=256 -D d=64 "$BATS_TEST_TMPDIR/k.yaml"
        echo "$output" >"$BATS_TEST_TMPDIR/k.ptx"
        # exponentials are of products as they are: an element is selected once
        [ "$(grep -c 'selp.f32' "$BATS_TEST_TMPDIR/k.ptx")" -lt $(($(grep -c 'ex2.approx' "$BATS_TEST_TMPDIR/k.ptx") + 60)) ]
    done
}

# documents  -> $BATS_TEST_TMPDIR/docs.yaml: attention to keys that have the row's number
documents() {
    cat >"$BATS_TEST_TMPDIR/docs.yaml" <<'EOF'
kernel: docs
params:
  q: in f16[b, heads, m, d]
  k: in f16[b, heads, n, d]
  v: in f16[b, heads, n, d]
  of_row: in i32[b, m]
  of_key: in i32[b, n]
  scale: f32 = 0.25
  o: out f16[b, heads, m, d]
  lse: out f32[b, heads, m]
compute: |
  s[z,h,i,j] = of_row[z,i] == of_key[z,j] && j <= i + 7 ? sum[c](q[z,h,i,c] * k[z,h,j,c]) * scale : -inf
  top[z,h,i] = max[j](s[z,h,i,j])
  p[z,h,i,j] = exp(s[z,h,i,j] - top[z,h,i])
  total[z,h,i] = sum[j](p[z,h,i,j])
  o[z,h,i,c] = sum[j](f16(p[z,h,i,j]) * v[z,h,j,c]) / total[z,h,i]
  lse[z,h,i] = top[z,h,i] + log(total[z,h,i])
cases:
  sorted: {b: 1, heads: 2, m: 140, n: 300, d: 16, of_row: "@sorted:0:5", of_key: "@sorted:0:5"}
  same: {b: 2, heads: 1, m: 200, n: 200, d: 16, of_row: "@sorted:0:4:1", of_key: "@sorted:0:4:1"}
  random_rows: {b: 1, heads: 2, m: 140, n: 300, d: 16, of_row: 0..5, of_key: "@sorted:0:5"}
  random_keys: {b: 2, heads: 1, m: 140, n: 300, d: 16, of_row: "@sorted:0:5", of_key: 0..5}
  random: {b: 1, heads: 1, m: 140, n: 140, d: 16, of_row: 0..3, of_key: 0..3}
  none: {b: 1, heads: 1, m: 140, n: 140, d: 16, of_row: 0..3, of_key: 7..9}
  many: {b: 1, heads: 1, m: 140, n: 290, d: 16, of_row: "@sorted:0:90", of_key: "@sorted:0:90"}
  one: {b: 1, heads: 1, m: 1, n: 1, d: 16, of_row: 1..1, of_key: 1..1}
EOF
}

@test "keys that are equal to something of the row's are ranges where they are sorted, and right where they are not" {
    documents
    for target in sm_80 sm_90a; do
        right $target --code=generic --fill=extreme "$BATS_TEST_TMPDIR/docs.yaml"
        right $target --code=fixed ${KAIO_QUICK:+--kernel=docs} "$BATS_TEST_TMPDIR/docs.yaml" ${KAIO_QUICK:+sorted}
        # the comparison alone, the other way round, of bytes
        sed 's/of_row\[z,i\] == of_key\[z,j\] && j <= i + 7/of_key[z,j] == of_row[z,i]/; s/: in i32\[/: in u8[/' \
            "$BATS_TEST_TMPDIR/docs.yaml" >"$BATS_TEST_TMPDIR/bytes.yaml"
        right $target "$BATS_TEST_TMPDIR/bytes.yaml"
        run -0 --separate-stderr kaio-emit -t $target --explain "$BATS_TEST_TMPDIR/bytes.yaml"
        [[ $output$stderr == *"launch docs_runs "* && $output$stderr == *"launch docs_repair "* ]]
    done
    # keys that depend on the row, and floats, are none
    sed 's/of_row\[z,i\] == of_key\[z,j\]/of_key[z,j] != of_row[z,i]/' "$BATS_TEST_TMPDIR/docs.yaml" >"$BATS_TEST_TMPDIR/other.yaml"
    run -0 --separate-stderr kaio-emit -t sm_80 --explain "$BATS_TEST_TMPDIR/other.yaml"
    [[ $output$stderr == *"launch docs_repair "* && $output$stderr != *docs_runs* ]]
    right sm_80 "$BATS_TEST_TMPDIR/other.yaml"
}

@test "what is left out of documents is looked at, whichever rows come after each other" {
    documents
    cd "$BATS_TEST_TMPDIR"
    python3 - <<'END'
import numpy as np
r = np.random.default_rng(1)
m, n = 300, 400
for name, rows in ("q", m), ("k", n), ("v", n):
    np.save(name + ".npy", r.standard_normal((1, 1, rows, 16)).astype(np.float16))
key = np.sort(r.integers(0, 9, n)).astype(np.int32)
np.save("sorted.npy", key[None])
np.save("mixed.npy", r.permutation(key)[None])
np.save("up.npy", key[None, :m])
np.save("down.npy", key[None, :m][:, ::-1].copy())
np.save("any.npy", r.permutation(key)[None, :m])
np.save("same.npy", np.full((1, m), 3, np.int32))
v = np.load("v.npy")
for i, at in enumerate((0, 1, 130, 257, 399)):
    x = v.copy(); x[0, 0, at, 3 + i] = np.nan if i % 2 else np.inf; np.save(f"v{i}.npy", x)
END
    sizes='b=1 heads=1 m=300 n=400 d=16'
    for target in sm_80 sm_90a; do
        # shellcheck disable=SC2046,SC2086
        kaio-emit -t $target $(printf -- '-D %s ' $sizes) docs.yaml >k.ptx
        losses=$(sed -nE 's,^//@ (depth|truncation|products): ,--\1=,p' k.ptx)
        for of in 'up sorted' 'down sorted' 'any sorted' 'same sorted' 'any mixed'; do
            [ $target = sm_80 ] && vs='v v0 v2 v4' || vs='v v1 v3'
            [ -z "${KAIO_QUICK-}" ] || vs=$([ $target = sm_80 ] && echo v1 || echo v2)
            for v in $vs; do
                io="q=q.npy k=k.npy v=$v.npy of_row=${of% *}.npy of_key=${of#* }.npy o=o.npy lse=lse.npy"
                # shellcheck disable=SC2086
                kaio-run -q -d cpu --check k.ptx $io
                # shellcheck disable=SC2086
                run -0 kaio-verify $losses docs.yaml $sizes $io
            done
        done
    done
}

@test "a maximum over more keys than the sum has, far above its terms or infinite" {
    cd "$BATS_TEST_TMPDIR"
    python3 - <<'END'
import numpy as np
k = np.zeros((40, 16), np.float32)
for name, first in ("far", 90), ("infinite", np.inf):
    k[0, 0] = first
    k[1:, 1] = np.arange(39) / 64
    (k.view(np.uint32) >> 16).astype(np.uint16).tofile(name + ".bin")
one = np.zeros((3, 16), np.float32)
one[:, 0] = 1
one[:, 1] = [1, 2, 3]
(one.view(np.uint32) >> 16).astype(np.uint16).tofile("q.bin")
np.zeros((40, 16), np.uint16).tofile("v.bin") # weights of 16 bits are subnormal
END
    cat >k.yaml <<'END'
kernel: k
params: {q: "in bf16[m, d]", k: "in bf16[n, d]", v: "in bf16[n, d]", o: "out f32[m, d]", weight: "out f32[m]"}
schedule: {strategy: chain}
compute: |
  s[i,j] = sum[c](q[i,c] * k[j,c])
  top[i] = max[j](s[i,j])
  p[i,j] = j > 0 ? exp(s[i,j] - top[i]) : 0
  weight[i] = sum[j](p[i,j])
  o[i,c] = sum[j](bf16(p[i,j]) * v[j,c])
END
    sed 's/, o: "[^"]*"//; s/, v: "[^"]*"//; /  o\[/d' k.yaml >rows.yaml
    judged() { # sums of nothing but zeros are not trusted
        run kaio-verify "$1" m=3 n=40 d=16 q=q.bin k=$keys.bin weight=w.bin "${@:2}"
        [[ $output == *"weight f32[3]: 3 compared"* && $output != *wrong* ]]
        [[ $keys = infinite || $status -eq 0 ]]
    }
    for target in sm_80 sm_90a; do
        for keys in far infinite; do
            kaio-emit -t $target k.yaml | kaio-run -q -d cpu m=3 n=40 d=16 q=q.bin k=$keys.bin v=v.bin weight=w.bin
            judged k.yaml v=v.bin
            kaio-emit -t $target rows.yaml | kaio-run -q -d cpu m=3 n=40 d=16 q=q.bin k=$keys.bin weight=w.bin
            judged rows.yaml
        done
    done
}

@test "quotients by totals that are subnormal" {
    cd "$BATS_TEST_TMPDIR"
    cat >k.yaml <<'END'
kernel: k
params: {q: "in bf16[m, d]", k: "in bf16[n, d]", v: "in bf16[n, d]", o: "out f32[m, d]", weight: "out f32[m]"}
schedule: {strategy: chain}
compute: |
  s[i,j] = sum[c](q[i,c] * k[j,c])
  top[i] = max[j](s[i,j])
  p[i,j] = j + 1 < n ? exp(s[i,j] - top[i]) : 0
  weight[i] = sum[j](p[i,j])
  o[i,c] = sum[j](bf16(p[i,j]) * v[j,c]) / weight[i]
END
    for top in 86 88.5 90; do
        python3 - $top <<'END'
import sys
import numpy as np
def save(name, x):
    (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tofile(name + ".bin")
k = np.zeros((17, 16))
k[16, 0] = float(sys.argv[1])
k[1:16, 1] = -100
q = np.zeros((3, 16))
q[:, 0] = 1
q[:, 1] = [1, 2, 3]
v = np.ones((17, 16))
v[0] = -37.25
for name, x in ("q", q), ("k", k), ("v", v):
    save(name, x)
END
        for target in sm_80 sm_90a; do
            kaio-emit -t $target k.yaml | kaio-run -q -d cpu m=3 n=17 d=16 q=q.bin k=k.bin v=v.bin o=o.npy weight=w.npy
            # weights are rounded to a few bits; their quotient is about 1
            python3 -c 'import numpy as np; o = np.load("o.npy"); assert np.all(abs(o / -37.25 - 1) < 0.1), o'
            run kaio-verify k.yaml m=3 n=17 d=16 q=q.bin k=k.bin v=v.bin o=o.npy weight=w.npy
            [[ $output == *"weight f32[3]: 3 compared"* && $output != *wrong* ]]
        done
    done
}
