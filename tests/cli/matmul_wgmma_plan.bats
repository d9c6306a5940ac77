# Contractions by wgmma: for which targets, sizes and operands, with which tiles, and what a schedule may say of them.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    specs=$KAIO_SRCDIR/specs/matmul
}

# scheduled SPEC SCHEDULE: k.yaml
scheduled() {
    cat "$specs/$1.yaml" - >k.yaml <<<"schedule: $2"
}

# plans ARGUMENT...: what --explain -v says of the entries, for sm_90a
plans() {
    kaio-emit -t sm_90a --explain -v "$@" k.yaml | grep ' tiles '
}

@test "a schedule's tile, warpgroups, stages, cluster and blocks are taken" {
    scheduled nt '{mma: wgmma, tile: [128, 192, 64], warps: [2, 1], stages: 3, cluster: [1, 2], blocks: 100}'
    kaio-emit -t sm_90a -D m=4096 -D n=4096 -D k=4096 k.yaml >k.ptx
    grep -q '^//@ *block: \[384\]' k.ptx
    grep -q '^//@ *cluster: \[2\]' k.ptx
    grep -q '^//@ *grid: \[100\]' k.ptx
    grep -q 'wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16' k.ptx
    [[ $(plans -D m=4096 -D n=4096 -D k=4096) == "  matmul_nt: wgmma of f16, tiles 128 x 192 x 64 of 64 x 192, 384 threads, 3 stages, clusters of 1 x 2, 100 blocks by turns, about "*" us" ]]
    # a number of blocks is of rows; without any there are none
    scheduled nt '{mma: wgmma, cluster: 2}'
    [[ $(plans -D m=4096 -D n=4096 -D k=4096) == *", clusters of 2 x 1,"* ]]
    scheduled nt '{mma: wgmma, cluster: 1}'
    [[ $(plans -D m=4096 -D n=4096 -D k=4096) != *cluster* ]]
    # the device's multiprocessors, in pairs; or a block for each tile
    kaio-emit -t sm_90a -D m=4096 -D n=4096 -D k=4096 "$specs/nt.yaml" >k.ptx
    grep -q '^//@ *grid: \[min(256, max(1, multiprocessors / 2)) \* 2\]' k.ptx
    scheduled nt '{mma: wgmma, cluster: 2, tile: [128, 256, 64], blocks: tiles}'
    kaio-emit -t sm_90a -D m=4096 -D n=4096 -D k=4096 k.yaml | grep -q '^//@ *grid: \[512\]'
    # what wgmma alone has asks for it
    scheduled nt '{cluster: 1}'
    [[ $(plans -D m=16 -D n=4096 -D k=4096) == *": wgmma of f16,"* ]]
    # blocks do not: both have them
    scheduled nt '{blocks: 64}'
    [[ $(plans -D m=4096 -D n=4096 -D k=4096) == *": wgmma of f16,"*", 64 blocks by turns"* ]]
    [[ $(plans -D m=16 -D n=4096 -D k=4096) == *": mma.sync of f16,"*", 64 blocks by turns"* ]]
    [[ $(plans -D m=4096 -D n=4097 -D k=4097) == *": mma.sync of f16,"*", 64 blocks by turns"* ]]
}

@test "sm_90a alone has wgmma, and has mma.sync too" {
    scheduled nt '{mma: wgmma}'
    for target in sm_80 sm_90 sm_100 sm_100a sm_120a; do
        run -2 kaio-emit -t $target k.yaml
        [[ $output == *"error: $target has no wgmma: sm_90a alone has, other targets have 'mma: sync'"* ]]
    done
    scheduled nt '{mma: sync}'
    for target in sm_90 sm_90a; do
        kaio-emit -t $target -D m=512 -D n=512 -D k=512 k.yaml >$target.ptx
        run ! grep -q wgmma $target.ptx
        grep -q mma.sync $target.ptx
    done
    cmp <(grep -v 'target' sm_90.ptx | grep -v '^.version') <(grep -v 'target' sm_90a.ptx | grep -v '^.version')
}

@test "without a schedule wgmma multiplies what it can, and --explain says what it can't" {
    for spec in nn nt tn tt batched residual bias_gelu gated_mlp qkv grouped conv2d_1x1 w8a8 w4a16 w8a16 scaled_rows; do
        kaio-emit -t sm_90a --explain -v "$specs/$spec.yaml" >explained
        grep -q ': wgmma of ' explained
        # others than rows of whole 16 bytes go elsewhere
        grep -q '_any: ' explained
        run ! grep -q 'not wgmma' explained
        run ! grep -q wgmma < <(kaio-emit -t sm_90 --explain -v "$specs/$spec.yaml")
    done
    while IFS='|' read -r spec define why; do
        # shellcheck disable=SC2086
        kaio-emit -t sm_90a --explain -v $define "$specs/$spec.yaml" >explained
        grep -q "^  not wgmma: .*$why" explained || {
            echo "$spec: $(cat explained)"
            false
        }
        run ! grep -q ': wgmma of ' explained
    done <<'END'
nn|-D T=f32 -D k=323|parts of f32 may lose more than fma in fewer than 324 terms
nn|-D T=f32 -D m=9 -D k=4096|up to 32 rows leave most of it idle
nt|-D m=16|up to 32 rows leave most of it idle
nt|-D k=4097 -D n=64|TMA copies rows of whole 16 bytes
int8||takes the right operand's i8 along k alone
END
}

@test "the library's products are right for sm_90a, under every check" {
    local few=
    [ -z "${KAIO_QUICK-}" ] || few='--code=fixed --fill=normal'
    # shellcheck disable=SC2086
    run -0 kaio-verify --run -d cpu --check $few -t sm_90a "$specs"/*.yaml
    [[ ${lines[-1]} == *" passed, 0 failed, "* ]]
}

@test "rows that are not whole 16 bytes go by mma.sync, others by tiles for their number" {
    scheduled nt '{mma: wgmma}'
    kaio-emit -t sm_90a --explain -v k.yaml | grep ' tiles ' >explained
    [ "$(wc -l <explained)" = 4 ]
    grep -q '^  matmul_nt: wgmma of f16, tiles 64 x .*, when m <= 64 && k % 8 == 0 && ' explained
    grep -q '^  matmul_nt_medium: wgmma of f16, .*, when ceil_div(m, 128) \* ceil_div(n, 256) < 88 && ' explained
    grep -q '^  matmul_nt_tile: wgmma of f16, tiles 128 x 256 x 64 .*, when k % 8 == 0 && ' explained
    grep -q '^  matmul_nt_any: mma.sync of f16,' explained
    # which the launch decides
    while read -r m n k entry; do
        run -0 kaio-bench --dry-run --generic -t sm_90a k.yaml m="$m" n="$n" k="$k"
        [[ $output == *"  $entry, grid "* ]] || {
            echo "$m $n $k: $output"
            false
        }
    done <<'END'
64 4096 4096 matmul_nt
512 512 512 matmul_nt_medium
4096 4096 4096 matmul_nt_tile
4096 4096 4092 matmul_nt_any
64 64 7 matmul_nt_any
END
    # of known sizes one is left
    for sizes in "64 4096 4096" "4096 4096 4096"; do
        read -r m n k <<<"$sizes"
        [ "$(plans -D m="$m" -D n="$n" -D k="$k" | wc -l)" = 1 ]
    done
}

@test "what can't be says what is in the way, and what could be" {
    while IFS='|' read -r spec schedule why; do
        scheduled "$spec" "$schedule"
        run -2 kaio-emit -t sm_90a -D m=512 -D n=512 -D k=512 k.yaml
        [[ $output == *"$why"* && $output != *"internal"* ]] || {
            echo "$spec $schedule: $output"
            false
        }
    done <<'END'
nt|{mma: wgmma, tile: [100, 128, 64]}|a warpgroup takes multiples of 64 rows, not 100 of 100; possible is, for instance, tile: [
nt|{mma: wgmma, tile: [128, 264, 64]}|possible is, for instance, tile: [
nt|{mma: wgmma, tile: [128, 128, 48]}|possible is, for instance, tile: [
nt|{mma: wgmma, tile: [128, 256, 64], stages: 9}|don't fit 232448 bytes of shared memory; possible is, for instance, tile: [
nt|{mma: wgmma, stages: 1}|stages must be 2 to
nt|{mma: wgmma, cluster: 4}|a cluster has 2 blocks along each side at most, not 4 x 1
nt|{mma: wgmma, split: 9}|a cluster has 8 blocks at most, those that share a tile among them, not 9
nt|{mma: wgmma, split: 2, blocks: 64}|blocks that share tiles take one each
nt|{mma: wgmma, tile: [64, 128, 64], stages: 2, split: 4}|bytes of other blocks' sums don't fit where 2 stages were
nt|{mma: wgmma, cluster: 0}|'cluster' is a number from 1 to 16 or [ROWS, COLUMNS], each from 1 to 16, not '0'
nt|{mma: wgmma, cluster: [2]}|'cluster' is a number from 1 to 16 or [ROWS, COLUMNS], each from 1 to 16, not '[2]'
nt|{mma: wgmma, blocks: 0}|'blocks' is a number from 1 to 65535, multiprocessors or tiles, not '0'
nt|{mma: wgmma, pingpong: 3}|'pingpong' is yes or no, not '3'
nt|{mma: sync, cluster: 2}|'cluster', 'pingpong' and 'windows' are for 'mma: wgmma'
nt|{mma: none, blocks: 2}|'blocks' are for products by tensor cores
w4a16|{mma: wgmma, cluster: 2}|blocks of a cluster share no operand that is computed
END
    scheduled nt '{mma: wgmma}'
    run -2 kaio-emit -t sm_90a -D T=f32 k.yaml
    [[ $output == *"wgmma multiplies no f32"* ]]
    run -2 kaio-emit -t sm_90a -D m=64 -D n=64 -D k=63 k.yaml
    [[ $output == *"TMA copies rows of whole 16 bytes"* ]]
    scheduled nt '{mma: tf32x3, tile: [128, 64, 32], cluster: 2}'
    run -2 kaio-emit -t sm_90a -D T=f32 k.yaml
    [[ $output == *"blocks of a cluster share no operand that is rounded on its way"* ]]
    # what is said to be possible is
    scheduled nt '{mma: wgmma, tile: [100, 128, 64]}'
    run -2 kaio-emit -t sm_90a k.yaml
    scheduled nt "{mma: wgmma, $(sed -n 's/.*for instance, \(tile: .*\)$/\1/p' <<<"$output")}"
    run -0 kaio-emit -t sm_90a k.yaml
}

@test "blocks of a cluster that share a tile give the sum, whatever the sizes leave over" {
    while read -r spec tile cluster split sizes; do
        scheduled "$spec" "{mma: wgmma, tile: $tile, cluster: $cluster, split: $split}"
        kaio-emit -t sm_90a k.yaml | grep -q 'st.shared::cluster.v4'
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --check --code=generic -t sm_90a k.yaml $sizes
    done <<'END'
nt [128,128,64] 1 2 m=200 n=136 k=1000
nn [128,64,64] [1,2] 3 m=130 n=200 k=328
tn [64,64,64] 2 4 m=200 n=72 k=640
nt [192,64,64] 1 2 m=100 n=64 k=129
END
    scheduled w8a8 '{mma: wgmma, tile: [64, 64, 128], split: 2}'
    run -0 kaio-verify --run -d cpu --check -t sm_90a k.yaml m=65 n=72 k=400
    # no share may be empty: of so few terms another entry is taken
    scheduled nt '{mma: wgmma, tile: [64, 64, 64], split: 4}'
    for k in 64 320 576 640; do
        run -0 kaio-bench --dry-run --generic -t sm_90a k.yaml m=64 n=64 k=$k
        [[ $output == *"  matmul_nt$([ $k = 640 ] || echo _any), grid "* ]]
    done
    # and the bits are the same, whoever is first
    kaio-emit -t sm_90a k.yaml >k.ptx
    kaio-run -d cpu k.ptx m=64 n=64 k=1000 a=@normal b=@normal:2 c=first.npy
    kaio-run -d cpu --check-seed=7 k.ptx m=64 n=64 k=1000 a=@normal b=@normal:2 c=again.npy
    cmp first.npy again.npy
}

@test "the tile is the cheapest by the model: large, of whole turns, or small" {
    scheduled nt '{mma: wgmma}'
    [[ $(plans -D m=8192 -D n=8192 -D k=8192) == *"tiles 128 x 256 x 64 of 64 x 256, 384 threads, "*" clusters of 2 x 1,"* ]]
    [[ $(plans -D m=512 -D n=14336 -D k=4096) == *"tiles 128 x 224 x 64 "* ]]
    [[ $(plans -D m=64 -D n=4096 -D k=4096) == *"tiles 64 x 64 x 64 "* ]]
    [[ $(plans -D m=512 -D n=4096 -D k=4096) == *"tiles 128 x 128 x 64 of 64 x 128, "* ]]
    read -r bm bn < <(plans -D m=512 -D n=512 -D k=512 | sed 's/.*tiles \([0-9]*\) x \([0-9]*\) x.*/\1 \2/')
    [ $((bm * bn)) -le 4096 ]
}

@test "plain results give no stage up for a way without patches, those with a function do" {
    cat >k.yaml <<'END'
kernel: plain
params:
  a: in e4m3[m, k]
  b: in e4m3[n, k]
  c: out f16[m, n]
compute: |
  c[i, j] = sum[l](a[i, l] * b[j, l])
END
    # tiles that are half as large with a stage less were 1.4 times as slow
    [[ $(plans -D m=512 -D n=14336 -D k=4096) == *" tiles 256 x 128 x 128 of 128 x 128,"*", 4 stages,"* ]]
    # of a residual registers take what there is no room for
    cp "$specs/residual.yaml" k.yaml
    [[ $(plans -D T=f16 -D m=4096 -D n=4096 -D k=4096) == *" tiles 128 x 256 x 64 of 64 x 256,"*", 4 stages,"* ]]
    for spec in nn:5 residual:5 bias_gelu:4; do
        scheduled ${spec%:*} '{mma: wgmma, tile: [192, 128, 64]}'
        [[ $(plans -D T=f16 -D m=4096 -D n=4096 -D k=4096) == *", ${spec#*:} stages,"* ]]
    done
}

@test "the tuner tries wgmma where it is, fewer than 64 schedules of it, each code once" {
    for sizes in m,k,n=4096 "m=512 k=4096 n=14336" "m=64 k=4096 n=4096"; do
        [ -z "${KAIO_QUICK-}" ] || [[ $sizes = m=64* ]] || continue
        # shellcheck disable=SC2086
        run -0 kaio-bench --dry-run --tune -t sm_90a --suite=matmul --types=f16 $sizes
        n=$(grep -c 'mma: wgmma' <<<"$output")
        [ "$n" -ge 8 ] && [ "$n" -lt 64 ]
        [ -z "$(sort <<<"$output" | uniq -d)" ]
    done
    run -0 kaio-bench --dry-run --tune -t sm_90 --suite=matmul --types=f16 m,k,n=4096
    [[ $output != *wgmma* ]]
}

@test "f32 that is computed is stored for tensor cores where its sizes are known and that takes less time" {
    cat >k.yaml <<'END'
kernel: weighted
params:
  a: in f32[m, k]
  b: in f32[k, n]
  y: out f32[m, n]
compute: y[i,j] = sum[l](exp(a[i,l]) * b[l,j])
cases:
  few: {m: 64, n: 32, k: 1500}
END
    run -0 kaio-emit -t sm_90a --explain -v -D m=64 -D n=32 -D k=1500 k.yaml
    [[ $output == *"weighted: 'a' is computed in a launch of its own: 384000 bytes"* ]]
    [[ $output == *"weighted: wgmma of tf32 in parts,"* ]]
    run -0 kaio-verify --run -d cpu --check -t sm_90a --code=fixed k.yaml
    # nor where they are open, where it takes longer, or where fma is asked for
    [[ $(kaio-emit -t sm_90a --explain k.yaml) != *"weighted_a: "* ]]
    [[ $(kaio-emit -t sm_90a --explain -D m=8 -D n=8 -D k=16 k.yaml) != *"weighted_a: "* ]]
    echo 'schedule: {mma: fma}' >>k.yaml
    [[ $(kaio-emit -t sm_90a --explain -D m=64 -D n=32 -D k=1500 k.yaml) != *"weighted_a: "* ]]
}

@test "two products of one instruction are as wide as four warpgroups' registers hold" {
    local ptxas
    cp "$specs/gated_mlp.yaml" k.yaml
    kaio-emit -t sm_90a -D m=4096 -D n=14336 -D k=4096 k.yaml -o k.ptx
    ! grep -q '^.reqntid 512' k.ptx || ! grep -q 'wgmma.mma_async.*m64n256' k.ptx
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || skip "no ptxas"
    "$ptxas" -arch=sm_90a k.ptx -o k.cubin
}
