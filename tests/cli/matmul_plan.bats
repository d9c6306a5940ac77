# Contractions: which tiles are chosen for which sizes, blocks that share a tile, and few rows without tiles.
bats_require_minimum_version 1.5.0

load products

# plan SPEC M N K: what --explain -v says of the entry
plan() {
    kaio-emit --explain -v -D m="$2" -D n="$3" -D k="$4" "$specs/$1.yaml" | grep ' tiles '
}

# scheduled SPEC SCHEDULE: k.yaml
scheduled() {
    cat "$specs/$1.yaml" - >k.yaml <<<"schedule: $2"
}

@test "large tiles of 16 bits are taken by turns, where there are more of them than multiprocessors" {
    [ -z "${KAIO_QUICK-}" ] || skip "the same text as without sanitizers"
    turns=', by turns of a block on each multiprocessor, '
    for layout in nn nt tn tt residual bias_gelu; do
        [[ $(plan $layout 4096 4096 4096) == *"$turns"* ]]
        [[ $(plan $layout 2048 2048 2048) != *"turns"* ]]
    done
    for spec in int8_nt tf32_rz fp8 gated_mlp w4a16; do
        [[ $(plan $spec 4096 4096 4096) != *"turns"* ]]
    done
    kaio-emit -D m=4096 -D n=4096 -D k=4096 "$specs/nn.yaml" | grep -q '^//@     grid: \[min(512, multiprocessors)\]'
    # threads that read much beside the sums have no registers to spare
    for type in f16 f32; do
        {
            printf 'kernel: k\nparams:\n  a: in f16[m, k]\n  b: in f16[k, n]\n  p: in %s[m, n]\n  q: in %s[m, n]\n' $type $type
            printf '  c: out f16[m, n]\ncompute: |\n  c[i, j] = p[i, j] * sum[l](a[i, l] * b[l, j]) + q[i, j]\n'
        } >k.yaml
        kaio-emit -D m=4096 -D n=4096 -D k=4096 k.yaml >k.ptx
        [ "$(grep -c multiprocessors k.ptx)" = "$([ $type = f16 ] && echo 1 || echo 0)" ]
        [ -z "$ptxas" ] || "$ptxas" -arch=sm_80 -v -o k.cubin k.ptx 2>&1 | grep -q ' 0 bytes spill stores'
    done
    # of open sizes the launch sees to it
    kaio-emit "$specs/nn.yaml" | awk -f "$KAIO_SRCDIR/tests/expand.awk" |
        grep -q '^//@     grid: \[min(ceil_div(m, 256) \* ceil_div(n, 128), multiprocessors)\]'
    scheduled nn '{blocks: tiles}'
    kaio-emit -D m=4096 -D n=4096 -D k=4096 k.yaml | grep -q '^//@     grid: \[512\]'
    # where there is no room for what warps store by, one after the other, beside the stages, there are as many blocks as tiles
    for target in sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120; do
        kaio-emit -t $target -D m=4096 -D n=4096 -D k=4096 "$specs/nn.yaml" >k.ptx
        grep -q mma.sync k.ptx
        [ "$(grep -c 'grid: .*multiprocessors' k.ptx)" = "$([[ $target =~ (80|89|90|100)$ ]] && echo 1 || echo 0)" ]
    done
}

@test "few rows are multiplied as B is read, and nothing is kept" {
    for layout in nn nt; do
        for m in 1 2 4; do
            [[ $(plan $layout $m 4096 4096) == *"few rows, fma of f16, tiles $m x "* ]]
        done
        [[ $(plan $layout 64 4096 4096) == *"mma.sync of f16"* ]]
        kaio-emit -D m=1 -D n=4096 -D k=4096 "$specs/$layout.yaml" >k.ptx
        run ! grep -q 'cp.async\|mma.sync\|ldmatrix' k.ptx
        # eight accesses of 16 bytes are on the way before the first is used, none is asked for
        [ "$(awk '/fma.rn/ { exit } /ld.global.nc.v4.b32/ && !/@/' k.ptx | wc -l)" -ge 8 ]
        run ! grep -q 'ld.global.nc.b16' k.ptx
    done
    # a vector is a single row
    printf 'kernel: k\nparams:\n  x: in f16[k]\n  w: in f16[n, k]\n  y: out f16[n]\n' >k.yaml
    printf 'compute: |\n  y[j] = f16(sum[l](x[l] * w[j,l]))\n' >>k.yaml
    kaio-emit --explain -v k.yaml | grep -q 'few rows, fma of f16, tiles 1 x '
}

@test "few rows give what the equations say, whatever the sizes leave over" {
    for layout in $layouts; do
        for sizes in "m=1 n=1 k=1" "m=1 n=64 k=2048" "m=1 n=8 k=16411" "m=2 n=65 k=31" "m=3 n=8 k=16392" "m=4 n=1 k=4099"; do
            # shellcheck disable=SC2086
            run -0 kaio-verify --run -d cpu --check $fills "$specs/$layout.yaml" $sizes
        done
        for sizes in "1 24 1000" "3 40 96" "4 17 33" "1 8 33000"; do
            read -r m n k <<<"$sizes"
            run -0 kaio-verify --run -d cpu --check $fills -D n="$n" -D k="$k" "$specs/$layout.yaml" m="$m"
            run -0 kaio-verify --run -d cpu --check $fills -D m="$m" -D n="$n" -D k="$k" "$specs/$layout.yaml" m="$m"
        done
    done
}

@test "few rows of everything: types, several products, 4-bit weights" {
    run -0 kaio-verify --run -d cpu --check $fills --types=all "$specs/nn.yaml" m=2 n=40 k=72
    run -0 kaio-verify --run -d cpu --check $fills --types=all "$specs/nt.yaml" m=1 n=40 k=72
    for s in gated_mlp qkv w4a16 int8 w8a8 fp8 batched grouped; do
        run -0 kaio-verify --run -d cpu --check $fills --shapes=2 "$specs/$s.yaml"
    done
    for schedule in '{mma: none, tile: [1, 4, 512], warps: [1, 2], stages: 3}' \
        '{mma: none, tile: [16, 2, 1024], warps: [1, 4], stages: 1}' \
        '{mma: none, tile: [5, 16, 64], warps: [1, 1], stages: 2, split: 5}'; do
        scheduled nt "{strategy: matmul, ${schedule#\{}"
        kaio-emit --explain -v k.yaml | grep -q "few rows"
        run -0 kaio-verify --run -d cpu --check k.yaml m=5 n=40 k=4104
    done
}

@test "blocks share what would leave the machine idle, and only that" {
    [[ $(plan nt 64 4096 4096) == *"shares of the sum"* ]]
    [[ $(plan nt 1 128 65536) == *"few rows"*"shares of the sum"* ]]
    [[ $(plan nt 4096 4096 4096) != *"shares of the sum"* ]]
    kaio-emit -D m=64 -D n=4096 -D k=4096 "$specs/nt.yaml" >k.ptx
    grep -q 'atom.acq_rel.gpu.global.inc.u32' k.ptx
    [ "$(grep -c 'atom\.' k.ptx)" = 1 ]
    kaio-emit -D m=4096 -D n=4096 -D k=4096 "$specs/nt.yaml" >k.ptx
    run ! grep -q 'atom\.\|temps' k.ptx
    # four tiles of fma are shared by all multiprocessors
    scheduled nt '{strategy: matmul, mma: fma}'
    kaio-emit --explain -v -t sm_90 -D T=f32 -D m=256 -D n=256 -D k=524288 k.yaml | grep -q ' 33 shares of the sum'
    # with sizes that come at launch, so does the number of shares, and what is not shared takes no room
    kaio-emit "$specs/nt.yaml" | awk -f "$KAIO_SRCDIR/tests/expand.awk" >k.ptx
    grep -q '//@ *grid: \[.*clamp(ceil_div(.*k / .*\]' k.ptx
    grep -q '> 1 ? .* : 0' k.ptx
    # of a sum that is known to be too short for two shares nothing is kept, and nobody counts
    kaio-emit -D k=64 "$specs/nt.yaml" >k.ptx
    run ! grep -q 'atom\.\|temps' k.ptx
    run -0 kaio-verify --run -d cpu --check -D k=64 "$specs/nt.yaml" m=5 n=40
}

@test "every number of shares gives the sum, and leaves the counts as they were" {
    for split in 2 3 32; do
        [ -z "${KAIO_QUICK-}" ] || [ $split = 3 ] || continue
        for schedule in "{strategy: matmul, mma: sync, tile: [32, 64, 32], stages: 2, split: $split}" \
            "{strategy: matmul, mma: none, tile: [64, 64, 8], split: $split}" \
            "{strategy: matmul, mma: none, tile: [4, 8, 64], warps: [1, 1], split: $split}"; do
            scheduled nn "$schedule"
            # shares without a term, of k that is none, little, prime, and whole tiles
            for k in 1 97 512; do
                run -0 kaio-verify --run -d cpu --check $fills --repeat k.yaml m=33 n=70 k=$k
            done
        done
    done
    scheduled nn '{split: 3}'
    kaio-emit -D T=f32 k.yaml >k.ptx
    kaio-run -d cpu k.ptx m=3 n=5 k=0 a=@zeros b=@zeros c=c.bin
    [ "$(od -An -v -tx4 -w4 c.bin | sort -u | tr -d ' ')" = 00000000 ]
    scheduled gated_mlp '{strategy: matmul, split: 3}'
    run -0 kaio-verify --run -d cpu --check --shapes=2 k.yaml
}

@test "the bits do not depend on the order in which blocks that share a tile finish" {
    scheduled nn '{split: 5}'
    kaio-emit -D T=f32 k.yaml >k.ptx
    kaio-run -d cpu k.ptx m=40 n=70 k=3000 a=@normal b=@normal c=first.npy
    for _ in 1 2 3; do
        kaio-run -d cpu k.ptx m=40 n=70 k=3000 a=@normal b=@normal c=again.npy
        cmp first.npy again.npy
    done
}

@test "large tiles are for large results, small ones for small ones" {
    [[ $(plan nn 4096 4096 4096) == *" tiles 256 x 128 x "* || $(plan nn 4096 4096 4096) == *" tiles 128 x "* ]]
    read -r bm bn < <(plan nn 256 256 256 | sed 's/.*tiles \([0-9]*\) x \([0-9]*\) x.*/\1 \2/')
    [ $((bm * bn)) -le 4096 ]
    for layout in nn nt tn tt; do
        scheduled $layout '{strategy: matmul, mma: fma}'
        kaio-emit --explain -v -t sm_90 -D T=f32 -D m=4096 -D n=4096 -D k=4096 k.yaml |
            grep -q 'fma of f32, tiles 256 x 128 x 16 of 16 x 8, 256 threads, 2 stages'
    done
    kaio-emit --explain -v -t sm_90a -D m=16 -D n=4096 -D k=4096 "$specs/fp8.yaml" | grep -q ' tiles 16 x 16 x 256 '
    kaio-emit --explain -v -t sm_90a -D T=bf16 -D m=512 -D n=4096 -D k=14336 "$specs/nn.yaml" | grep -q ' tiles 128 x 128 x 64 '
    # what shared memory holds is the target's: no more than 64 KB on sm_75, 99 KB on sm_86
    while read -r target most; do
        kaio-emit -t "$target" -D m=4096 -D n=4096 -D k=4096 "$specs/nn.yaml" >k.ptx
        [ "$(sed -n 's,^//@ *shared: ,,p' k.ptx)" -le "$most" ]
    done <<<$'sm_70 98304\nsm_75 65536\nsm_80 166912\nsm_86 101376\nsm_90 232448'
}

@test "open sizes take a few variants: few rows, small results, all, and what is not aligned" {
    kaio-emit --explain -v "$specs/nt.yaml" >explained
    [ "$(grep -c ' tiles ' explained)" = 4 ]
    grep -q 'nt: few rows.*, when m <= 4 && k % 8 == 0 && n % 4 == 0' explained
    grep -q 'nt_small: .* shares of the sum, when ceil_div(m, .*) \* ceil_div(n, .*) < ' explained
    grep -q 'nt_any: mma.sync of f16' explained
    # with n and k known nothing is left to ask but m
    kaio-emit --explain -v -D n=4096 -D k=4096 "$specs/nt.yaml" >explained
    [ "$(grep -c ' tiles ' explained)" = 3 ]
    run ! grep ' tiles .* %' explained
    # no element is read but in whole vectors where they are, by single ones where they are not
    kaio-emit -D m=64 -D n=1000 -D k=1000 "$specs/nt.yaml" | grep -q 'cp.async.cg.*16'
    run ! grep -q 'cp.async.cg' < <(kaio-emit -D m=64 -D n=1001 -D k=1001 "$specs/nt.yaml")
}

@test "a tile that can't be is refused with what is in the way and what could be" {
    while IFS='|' read -r schedule why; do
        scheduled nn "$schedule"
        run -2 kaio-emit -t sm_86 k.yaml
        [[ $output == *"$why"* && $output != *"internal"* ]] || {
            echo "$schedule: $output"
            false
        }
    done <<'END'
{tile: [256, 256, 64], warps: [4, 4], stages: 8}|don't fit 101376 bytes of shared memory
{tile: [100, 20, 3]}|possible is, for instance, tile: [
{mma: none, tile: [64, 64, 7]}|no such tile, warps and stages are possible; possible is, for instance, tile: [
{mma: none, tile: [3, 5, 7]}|possible is, for instance, tile: [
{warps: [3, 1], tile: [64, 64, 32]}|possible is, for instance, tile: [
{mma: tf32x3}|'mma: tf32x3' is for factors that are f32
{mma: f16x3}|'mma: f16x3' is for factors that are f32
{mma: fp8}|'mma: fp8' is for factors that are e4m3 or e5m2
END
    scheduled nn '{mma: sync}'
    run -2 kaio-emit -t sm_70 k.yaml
    [[ $output == *"sm_70 has no mma.sync"* ]]
    # what is said to be possible is
    scheduled nn '{tile: [100, 20, 3]}'
    run -2 kaio-emit k.yaml
    scheduled nn "{$(sed -n 's/.*for instance, \(tile: .*\)$/\1/p' <<<"$output")}"
    kaio-emit k.yaml >/dev/null
    # and is for what else the schedule and the sizes say: few rows, that are no vectors; a number of shares
    while IFS='|' read -r sizes rest schedule; do
        scheduled nt "{$rest, $schedule}"
        run -2 kaio-emit -t sm_86 $sizes k.yaml
        scheduled nt "{$rest, $(sed -n 's/.*for instance, \(tile: .*\)$/\1/p' <<<"$output")}"
        run -0 kaio-emit -t sm_86 $sizes k.yaml
    done <<'END'
-D T=f32 -D m=16 -D n=2 -D k=8|strategy: matmul, mma: none|tile: [128, 64, 64], warps: [4, 1], stages: 4
-D T=f16 -D m=16 -D k=4096|mma: none, split: 4|tile: [16, 128, 128], stages: 5
END
    # tensor cores are not in the way of what they don't multiply
    scheduled nn '{tile: [16, 100, 64], stages: 3}'
    run -2 kaio-emit -t sm_72 k.yaml
    [[ $output == *"error: no such tile, warps and stages are possible; possible is"* ]]
    run -2 kaio-emit -t sm_80 k.yaml
    [[ $output != *"no such tile"* ]]
}

@test "whole groups of tiles take no division" {
    for target in sm_80 sm_90a; do
        kaio-emit -t $target -D m=4096 -D n=4096 -D k=4096 "$specs/nn.yaml" >k.ptx
        run ! grep -q 'div\.' k.ptx
    done
}

@test "a group of tiles is no larger than what its entry counts" {
    scheduled nn '{strategy: matmul, tile: [64, 64, 32], warps: [2, 2], group: 256}'
    run -0 kaio-verify --run -d cpu --check k.yaml m=200 n=200 k=40
    # 256 rows of tiles of 2 000 000 000 columns are more than 32 bits count
    kaio-emit k.yaml | awk -f "$KAIO_SRCDIR/tests/expand.awk" | grep -q 'u64 min(256 \* ceil_div(n, 64), 2147483647),'
    scheduled nn '{strategy: matmul, tile: [64, 64, 32], warps: [2, 2], group: 8}'
    kaio-emit k.yaml | awk -f "$KAIO_SRCDIR/tests/expand.awk" | grep -q 'u64 8 \* ceil_div(n, 64),'
    # sums along two dimensions, which are one of more than 2^32 elements
    printf 'kernel: k\nparams:\n  a: in f16[m, p, q]\n  b: in f16[p, q, n]\n  c: out f16[m, n]\n' >k.yaml
    printf 'compute: |\n  c[i,j] = f16(sum[r, l](a[i,r,l] * b[r,l,j]))\n' >>k.yaml
    for p in 2 3000000000 4294967295; do
        kaio-emit -D p="$p" -D q=4294967288 -D m=64 -D n=64 k.yaml >k.ptx
    done
}
