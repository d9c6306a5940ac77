# Contractions by mma.sync: every type, layout, tile and number of stages gives what the equations say, on the simulator with
# all checks; the loop is made of what it should be; impossible tiles say what is in the way.
bats_require_minimum_version 1.5.0

load products

# spec KIND LAYOUT SCHEDULE: k.yaml
spec() {
    product sync "$@"
}

# whatever is in the way of vectors, of whole tiles and of a single tile: by the code for all sizes, one size by its own, too
verify() {
    local sizes
    for sizes in 'm=1 n=1 k=1' 'm=33 n=17 k=31' 'm=80 n=144 k=112'; do
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --check --code=generic $fills "$@" k.yaml $sizes
    done
    # shellcheck disable=SC2086
    run -0 kaio-verify --run -d cpu --check $fills "$@" k.yaml m=70 n=100 k=66
}

# fixed SIZES [OPTION]...: the same of code for one size
fixed() {
    local size
    local -a define=()
    for size in $1; do
        define+=(-D "$size")
    done
    # shellcheck disable=SC2086
    run -0 kaio-verify --run -d cpu --check "${define[@]}" "${@:2}" k.yaml $1
}

@test "every type in every layout" {
    for kind in f16 bf16 tf32 tf32_rn tf32_rz s8 u8 e4m3; do
        for layout in $layouts; do
            spec $kind $layout 'tile: [64, 64, 64], warps: [2, 2], stages: 3'
            verify -t sm_89
        done
    done
    # halves to even: an instruction of sm_90; before it arithmetic that leaves NaN alone
    spec tf32_rn nn 'tile: [64, 64, 64], warps: [2, 2], stages: 3'
    kaio-emit -t sm_90 k.yaml | grep -q 'cvt.rn.tf32.f32'
    kaio-emit -t sm_80 k.yaml >old.ptx
    run ! grep -q 'cvt.rn.tf32' old.ptx
    for target in sm_80 sm_90; do
        run -0 kaio-verify --run -d cpu -t $target --fill=all k.yaml m=64 n=72 k=68
    done
}

@test "tf32(): what is NaN stays NaN, whichever its bits and sign are, and what is too large is infinite" {
    spec tf32 nn 'tile: [16, 16, 8], warps: [1, 1], stages: 2'
    kaio-emit -t sm_80 -D m=5 -D n=16 -D k=8 k.yaml >k.ptx
    grep -q mma.sync k.ptx && run ! grep -q fma.rn k.ptx
    for k in 0 3 4; do
        for bits in '\xff\xff\xff\x7f' '\xff\xff\xff\xff' '\x00\xf0\xff\xff' '\x00\x00\xc0\x7f' '\x00\xf0\x7f\x7f'; do
            # shellcheck disable=SC2059
            head -c $((4 * k)) /dev/zero && printf "$bits" && head -c $((28 - 4 * k)) /dev/zero
        done >a.bin
        kaio-run -q -d cpu k.ptx a=a.bin b=@ones c=c.bin
        [ "$(od -An -v -tf4 -w64 c.bin | awk '{sub("-", ""); print $1}' | tr '\n' ' ')" = 'nan nan nan nan inf ' ]
    done
}

@test "tf32() takes halves away from zero, tf32_rn() to even, tf32_rz() cuts them off" {
    bits=('\x00\x10\x80\x3f' '\x00\x30\x80\x3f' '\x00\x10\x80\xbf' '\x01\x10\x80\xbf' '\xff\x0f\x80\x3f')
    for bits in "${bits[@]}"; do
        # shellcheck disable=SC2059
        printf "$bits" && head -c 28 /dev/zero
    done >a.bin
    for how in tf32:3f802000,3f804000,bf802000,bf802000,3f800000 tf32_rn:3f800000,3f804000,bf800000,bf802000,3f800000 \
        tf32_rz:3f800000,3f802000,bf800000,bf800000,3f800000; do
        spec ${how%:*} nn 'tile: [16, 16, 8], warps: [1, 1], stages: 2'
        for target in sm_80 sm_90; do
            kaio-emit -t $target -D m=5 -D n=16 -D k=8 k.yaml >k.ptx
            grep -q mma.sync k.ptx
            kaio-run -q -d cpu k.ptx a=a.bin b=@ones c=c.bin
            [ "$(od -An -v -tx4 -w64 c.bin | awk '{printf "%s%s", s, $1; s = ","}')" = "${how#*:}" ]
        done
    done
}

@test "any number of stages, tiles of any shape, shares" {
    [ -z "${KAIO_QUICK-}" ] || skip 'many shapes'
    for schedule in 'tile: [64, 64, 32], warps: [2, 2], stages: 1' 'tile: [64, 64, 32], warps: [2, 2], stages: 2' \
        'tile: [32, 128, 32], warps: [1, 2], stages: 5' 'tile: [96, 96, 32], warps: [2, 3], stages: 3' \
        'tile: [16, 64, 96], warps: [1, 1], stages: 2' 'tile: [128, 32, 64], warps: [4, 1], stages: 4' \
        'tile: [64, 64, 32], warps: [2, 2], stages: 3, split: 3'; do
        for layout in nn tt; do
            for kind in f16 tf32 s8; do
                spec $kind $layout "$schedule"
                verify
            done
        done
    done
}

@test "blocks that take tiles by turns: of every kind, more of them than tiles, fewer, and without terms" {
    turns() {
        local sizes
        for sizes in 'm=8 n=16 k=8' 'm=34 n=18 k=32' 'm=130 n=300 k=66' 'm=130 n=264 k=0'; do
            # shellcheck disable=SC2086
            run -0 kaio-verify --run -d cpu --check --code=generic $fills "$@" k.yaml $sizes
        done
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --check ${fills:---code=fixed} "$@" k.yaml m=130 n=264 k=112
    }
    for layout in $layouts; do
        for kind in f16 tf32 s8 e4m3 made_w4; do
            spec $kind $layout 'tile: [64, 64, 64], warps: [2, 2], stages: 3, blocks: 3'
            turns -t sm_89
        done
        spec f32 $layout 'tile: [64, 64, 32], warps: [2, 2], stages: 3, blocks: 3'
        sed -i 's/mma: sync/mma: tf32x3/' k.yaml
        turns
        run -0 kaio-verify --run -d cpu --fill=exact,edge k.yaml m=140 n=150 k=66
    done
    spec s8 nn 'tile: [64, 64, 64], warps: [2, 2], stages: 2, blocks: 3'
    turns -t sm_75
    kaio-emit k.yaml | awk -f "$KAIO_SRCDIR/tests/expand.awk" >k.ptx
    grep -q '^//@     grid: .min(ceil_div(m, 64) \* ceil_div(n, 64), 3)' k.ptx
    [ -z "${KAIO_QUICK-}" ] || return 0
    for schedule in 'tile: [64, 64, 32], warps: [2, 2], stages: 2' 'tile: [32, 128, 32], warps: [1, 2], stages: 5' \
        'tile: [96, 96, 32], warps: [2, 3], stages: 3' 'tile: [16, 64, 96], warps: [1, 1], stages: 2' \
        'tile: [128, 32, 64], warps: [4, 1], stages: 4'; do
        for kind in f16 tf32 s8; do
            spec $kind nn "$schedule, blocks: 2"
            turns
            fixed 'm=140 n=96 k=70'
        done
    done
}

@test "blocks that take tiles by turns: batches, several products, and what is read beside the sums" {
    cat >k.yaml <<'END'
kernel: k
params:
  a: in bf16[batch, m, k]
  b: in bf16[k, n]
  c: in bf16[k, n]
  r: in bf16[batch, m, n]
  s: in f32[n]
  y: inout bf16[batch, m, n]
compute: |
  g[h,i,j] = sum[l](a[h,i,l] * b[l,j])
  y[h,i,j] = y[h,i,j] * g[h,i,j] + r[h,i,j] + s[j] * sum[l](a[h,i,l] * c[l,j])
schedule: {strategy: matmul, mma: sync, tile: [64, 64, 32], warps: [2, 2], stages: 3, blocks: 4}
END
    run -0 kaio-verify --run -d cpu --check ${fills:---fill=normal} k.yaml batch=3 m=100 n=136 k=0
    for k in 300 8; do
        run -0 kaio-verify --run -d cpu --check ${fills:---fill=normal} k.yaml batch=3 m=100 n=136 k=$k
        run -0 kaio-verify --run -d cpu --check ${fills:---fill=normal} -D m=128 -D n=128 -D k=$k k.yaml batch=3 m=128 n=128 k=$k
    done
    # of a warp's two patches, the second one's while the first is stored
    kaio-emit -D batch=2 -D m=128 -D n=128 -D k=300 -o k.ptx k.yaml
    [ "$(sed '/st.shared/q' k.ptx | grep -c 'ld.global.v2.b32')" = 8 ]
    [ "$(sed '/st.global/q' k.ptx | grep -c 'ld.global.v2.b32')" = 16 ]
}

@test "blocks that take tiles by turns: as many as the device has multiprocessors, or as tiles" {
    for layout in $layouts; do
        spec f16 $layout 'tile: [64, 64, 64], warps: [2, 2], stages: 3, blocks: multiprocessors'
        for sizes in 'm=34 n=18 k=32' 'm=200 n=300 k=66' 'm=130 n=1000 k=112'; do
            # shellcheck disable=SC2086
            run -0 kaio-verify --run -d cpu --check $fills k.yaml $sizes
        done
        kaio-emit k.yaml | awk -f "$KAIO_SRCDIR/tests/expand.awk" >k.ptx
        grep -q '^//@     grid: .min(ceil_div(m, 64) \* ceil_div(n, 64), multiprocessors)' k.ptx
    done
    # the usual tile, 20 of them
    spec f16 nn 'tile: [256, 128, 64], warps: [4, 2], stages: 3'
    kaio-emit -o k.ptx k.yaml
    [ "$(grep -c 'grid: .*multiprocessors' k.ptx)" = 1 ]
    run -0 kaio-verify --run -d cpu --fill=normal k.yaml m=1030 n=392 k=72
    sed -i 's/stages: 3/stages: 3, blocks: tiles/' k.yaml
    kaio-emit -o k.ptx k.yaml
    run ! grep -q multiprocessors k.ptx
    spec f16 nn 'blocks: some'
    refuses "'blocks' is a number from 1 to 65535, multiprocessors or tiles, not 'some'"
    spec f16 nn 'blocks: 0'
    refuses "'blocks' is a number from 1 to 65535, multiprocessors or tiles, not '0'"
}

@test "blocks that take tiles by turns: the loop is as it is without, and nothing spills" {
    for kind in f16 tf32 s8; do
        spec $kind nn 'tile: [128, 128, 32], warps: [2, 2], stages: 3'
        kaio-emit -D m=4096 -D n=4096 -D k=4096 k.yaml >plain.ptx
        sed -i 's/stages: 3/stages: 3, blocks: 132/' k.yaml
        kaio-emit -D m=4096 -D n=4096 -D k=4096 k.yaml >turns.ptx
        for word in mma.sync cp.async ldmatrix ld.shared.b32 bar.sync add.s32; do
            cp plain.ptx k.ptx && plain=$(count $word) && cp turns.ptx k.ptx && turns=$(count $word)
            [ "$plain" = "$turns" ]
        done
        [ -z "$ptxas" ] || {
            run -0 "$ptxas" -arch=sm_80 -v -o k.cubin turns.ptx
            [[ $output == *'0 bytes spill stores, 0 bytes spill loads'* ]]
        }
    done
}

@test "a subnormal factor of 16 bits counts as a normal one where tensor cores add up, by way of abs(), relu(), min() and max(), too" {
    for factor in 'f32(abs(b[l,j]))' 'relu(-f32(b[l,j]))' 'max(f32(b[l,j]), 0.0)' 'min(f32(b[l,j]), 1.0)' \
        'clamp(f32(b[l,j]), -2.0, 1.0)'; do
        cat >k.yaml <<END
kernel: k
params:
  a: in f16[m, k]
  b: in f16[k, n]
  c: out f32[m, n]
compute: c[i,j] = sum[l](f32(a[i,l]) * $factor)
END
        run -0 kaio-verify --run -d cpu --fill=extreme k.yaml m=96 n=129 k=24
    done
}

@test "sm_75: halves of instructions, and no asynchronous copies" {
    for kind in f16 s8; do
        for layout in nn tt; do
            spec $kind $layout 'tile: [64, 64, 64], warps: [2, 2], stages: 2'
            verify -t sm_75
        done
    done
    run -0 kaio-emit -t sm_75 k.yaml
    [[ $output == *mma.sync.aligned.m8n8k16* && $output != *cp.async* && $output != *m16n8k32* ]]
}

@test "f32 in parts of tf32: as exact as f32 is, to the ends of its range" {
    for layout in $layouts; do
        spec f32 $layout 'tile: [64, 64, 32], warps: [2, 2], stages: 3'
        sed -i 's/mma: sync/mma: tf32x3/' k.yaml
        verify
    done
    run -0 kaio-verify --run -d cpu --fill=exact,uniform,edge k.yaml m=70 n=50 k=66
    run -0 kaio-emit -D m=64 -D n=64 -D k=64 k.yaml
    [[ $output == *"//@ truncation: 144"$'\n'"//@ products: 24"* ]]
    # of sizes of the launch only those that the entries by tensor cores are for
    run -0 kaio-emit k.yaml
    [[ $output == *"//@ truncation: '"*" ? 144 : 0'"$'\n'* && $output == *"//@ products: '"*" ? 24 : 0'"$'\n'* ]]
}

@test "f32 in parts of tf32: infinities as they are, whose sums fma makes" {
    for target in sm_80 sm_90; do
        spec f32 nn 'tile: [64, 64, 16], warps: [1, 2], stages: 3'
        sed -i 's/mma: sync/mma: tf32x3/' k.yaml
        kaio-emit -t $target -D m=64 -D n=64 -D k=64 -o k.ptx k.yaml
        # 1 and -2.5 have a second part of 0
        kaio-run -q -d cpu k.ptx a=@const:inf b=@const:1 c=c.npy
        [ "$(tail -c +129 c.npy | od -An -v -tx4 -w4 | sort -u)" = ' 7f800000' ]
        kaio-run -q -d cpu k.ptx a=@const:-2.5 b=@const:inf c=c.npy
        [ "$(tail -c +129 c.npy | od -An -v -tx4 -w4 | sort -u)" = ' ff800000' ]
        run -0 kaio-verify --run -d cpu --check -t $target --fill=edge k.yaml m=70 n=64 k=68
    done
}

@test "f32 goes in parts where that is as good as fma and faster, and what is too small for parts as by fma" {
    m=72 n=136 k=200 target=sm_80
    parts() {
        kaio-emit --explain -D m=$m -D n=$n -D k=$k "$@" | grep -q 'mma.sync of tf32 in parts'
    }
    for layout in $layouts; do
        local a=(m k) b=(k n) of_a=j of_b=i
        [[ $layout != t? ]] || a=(k m) of_a=i
        [[ $layout != ?t ]] || b=(n k) of_b=j
        # all of one factor small; small ones beside large ones, where the sum is large
        while read -r down up_a up_b; do
            factors ${!a[0]} ${!a[1]} $of_a 1 "$down" "$up_a" a.npy
            factors ${!b[0]} ${!b[1]} $of_b 2 "$up_b" 1 b.npy
            multiplied $layout parts.npy 'schedule: {split: 1}'
            multiplied $layout fma.npy 'schedule: {mma: fma, split: 1}'
            cmp parts.npy fma.npy
            multiplied $layout parts.npy \
                'schedule: {mma: tf32x3, tile: [64, 64, 32], warps: [2, 2], stages: 3, blocks: 3}'
            cmp parts.npy fma.npy
        done <<'END'
1e-36 1e-36 1
1e-37 0.5 1e36
END
    done
    f32_product nn 'schedule: {mma: fma}'
    mv nn.yaml fma.yaml
    f32_product nn
    for target in sm_80 sm_90 sm_100; do
        parts -t $target nn.yaml
    done
    for target in sm_75 sm_86 sm_89 sm_120; do
        run ! parts -t $target nn.yaml
    done
    run ! parts -t sm_80 -D k=181 nn.yaml
    run ! parts -t sm_80 fma.yaml
    f32_product nn 'math: strict'
    run ! parts -t sm_80 nn.yaml
}

@test "f32 in parts of tf32: products of 16 terms are summed from zero, then added as f32" {
    spec f32 nt 'tile: [128, 128, 16], warps: [2, 4], stages: 4'
    sed -i 's/mma: sync/mma: tf32x3/' k.yaml
    kaio-emit -D k=64 -D n=128 -o k.ptx k.yaml
    [ "$(count mma.sync.aligned.m16n8k8)" -eq 96 ] # two steps of 4 x 4, three times
    [ "$(count add.rn.f32)" -eq 64 ]
    spec f32 nt 'tile: [128, 128, 64], warps: [2, 4], stages: 2'
    sed -i 's/mma: sync/mma: tf32x3/' k.yaml
    kaio-emit -t sm_90 -D k=64 -D n=128 -o k.ptx k.yaml
    [ "$(count add.rn.f32)" -eq 256 ]
    # a long sum of numbers of one sign: what is cut off would add up
    run -0 kaio-verify --run -d cpu --fill=uniform k.yaml m=16 n=32 k=2048
}

# count PATTERN: in the loop over tiles of the first entry
count() {
    awk -v want="$1" '/\.visible \.entry k\(/ {here = 1} /^}/ {here = 0}
        here && /^\$tile_[0-9]*:/ {n = 0} here && index($0, want) {n++}
        here && /bra[ \t]*\$tile_/ {last = n} END {print last + 0}' k.ptx
}

@test "a round of the loop multiplies a tile, reads it once and sends for another" {
    spec f16 nn 'tile: [128, 128, 32], warps: [2, 2], stages: 4'
    sed -i 's/, k\]/, 64]/; s/\[k,/[64,/' k.yaml
    kaio-emit -o k.ptx k.yaml
    [ "$(count mma.sync.aligned.m16n8k16)" -eq 64 ] # 4 x 8 of 16 x 8, twice 16 of k
    [ "$(count ldmatrix.sync.aligned.m8n8.x4.shared)" -eq 8 ]
    [ "$(count ldmatrix.sync.aligned.m8n8.x4.trans)" -eq 8 ]
    [ "$(count cp.async.cg.shared.global)" -eq 8 ] # 2 x 8 KB by 128 threads
    [ "$(count cp.async.commit_group)" -eq 1 ]
    [ "$(count 'cp.async.wait_group')" -eq 1 ]
    [ "$(count bar.sync)" -eq 1 ]
    [ "$(count ld.global)" -eq 0 ]
    grep -q '\.minnctapersm 2' k.ptx
    spec tf32 nt 'tile: [128, 128, 16], warps: [2, 4], stages: 3'
    kaio-emit -D k=64 -D n=128 -o k.ptx k.yaml
    [ "$(count mma.sync.aligned.m16n8k8.row.col.f32.tf32)" -eq 32 ]
    [ "$(count setp.num.f32)" -eq 24 ] # pairs of words that are rounded
    [ "$(count ldmatrix)" -eq 12 ]
    [ "$(count bar.sync)" -eq 1 ]
    # words that lie across, of 64 columns or rows, twice 8 of k: two at once, of one operand at least
    for layout in nn tt tn; do
        spec tf32_rz $layout 'tile: [128, 128, 16], warps: [2, 2], stages: 3'
        kaio-emit -D m=128 -D k=64 -D n=128 -o k.ptx k.yaml
        [ "$(count ld.shared.v2.b32)" -eq 16 ]
        [ "$(count ld.shared.b32)" -eq "$([[ $layout = tn ]] && echo 32 || echo 0)" ]
    done
}

@test "rows that are no multiple of 16 bytes are copied in smaller pieces, computed factors pass registers" {
    spec f16 nn 'tile: [64, 64, 32], warps: [2, 2], stages: 3'
    kaio-emit -D k=66 -D n=68 -o k.ptx k.yaml
    grep -q 'cp.async.ca.shared.global \[.*\], 4,' k.ptx
    grep -q 'cp.async.ca.shared.global \[.*\], 8,' k.ptx
    sed -i 's/a\[i,l\] \*/f16(a[i,l] + 1.0) */' k.yaml
    kaio-emit -D k=64 -D n=64 -o k.ptx k.yaml
    [ "$(count st.shared.v4)" -eq 2 ]
    [ "$(count cp.async.cg)" -eq 2 ]
    verify
}

@test "what lies as the results do is asked for near the tile's end, once, and loaded before threads meet" {
    added() {
        spec f16 nn "$1"
        sed -i "s/^  c: .*/  r: in f16[m, n]\n&/; s/^  c\[i,j\] = .*/& + $2/" k.yaml
        kaio-emit "${@:3}" k.yaml >k.ptx
        grep -c 'prefetch.global.L2' k.ptx || true
    }
    # 64 rows of two lines of 128 bytes, by 128 threads; behind the products, before the last 8 of 32 terms
    [ "$(added 'tile: [64, 128, 32], warps: [2, 2], stages: 3' 'r[i,j] * (1 + r[i,j])')" = 1 ]
    [ "$(sed '/mma.sync/q' k.ptx | grep -c 'prefetch')" = 0 ]
    verify
    run -0 kaio-verify --run -d cpu --check ${fills:---fill=normal} k.yaml m=150 n=136 k=328
    [ "$(added 'tile: [64, 128, 32], warps: [2, 2], stages: 3' 'r[i,j]' -D k=288)" = 1 ]
    [ "$(added 'tile: [64, 128, 32], warps: [2, 2], stages: 3' 'r[i,j]' -D k=256)" = 0 ]
    [ "$(added 'tile: [64, 64, 32], warps: [2, 2], stages: 3, split: 2' 'r[i,j]')" = 0 ]
    verify
    [ "$(added 'tile: [64, 64, 32], warps: [2, 2], stages: 3' 'r[0,j] + r[i,0]')" = 0 ]
    verify
    # a patch of 64 x 128 sums: 16 vectors of a thread; what is stored before does not tell what is loaded
    added 'tile: [64, 128, 32], warps: [2, 2], stages: 3' 'r[i,j]' -D m=64 -D n=128 -D k=64
    [ "$(sed '/st.shared/q' k.ptx | grep -c 'ld.global.v2.b32')" = 16 ]
    [ "$(grep -c ld.global k.ptx)" = 16 ]
    # from two addresses, that of the tensor and that of the results
    [ "$(grep -c 'ld.global.*\[%rd[0-9]*+[0-9]*\]' k.ptx)" = 15 ]
    [ "$(grep -c 'st.global.*\[%rd[0-9]*+[0-9]*\]' k.ptx)" = 15 ]
    cat >k.yaml <<'END'
kernel: k
params:
  a: in bf16[batch, m, k]
  b: in bf16[k, n]
  r: in bf16[batch, m, n]
  s: in f16[batch, m, n]
  y: inout bf16[batch, m, n]
compute: |
  y[h,i,j] = y[h,i,j] * s[h,i,j] + r[h,i,j] + sum[l](a[h,i,l] * b[l,j])
schedule: {strategy: matmul, mma: sync, tile: [64, 64, 32], warps: [2, 2], stages: 3}
END
    run -0 kaio-verify --run -d cpu --check ${fills:---fill=normal} k.yaml batch=2 m=100 n=136 k=300
    [ "$(sed '/st.shared/q' <(kaio-emit k.yaml) | grep -c 'ld.global.v2.b32')" = 24 ]
}

@test "f32 in parts of tf32: of long sums one small product is of bf16, two steps at a time" {
    [ -z "${KAIO_QUICK-}" ] || skip 'many shapes'
    for layout in $layouts; do
        spec f32 $layout 'group: 8'
        sed -i 's/mma: sync/mma: tf32x3/' k.yaml
        fixed 'm=20 n=36 k=4096' --fill=exact,normal,edge
        fixed 'm=18 n=37 k=4100' --fill=uniform,normal
        kaio-emit -t sm_90 -D m=128 -D n=4096 -D k=4096 -o k.ptx k.yaml
        grep -q '^//@ products: 88$' k.ptx
        kaio-emit -t sm_90 -D m=128 -D n=4096 -D k=4080 -o k.ptx k.yaml
        [ "$(count mma.sync.aligned.m16n8k16)" -eq 0 ]
        grep -q '^//@ products: 24$' k.ptx
    done
    spec f32 nt 'tile: [128, 128, 16], warps: [2, 4], stages: 4'
    sed -i 's/mma: sync/mma: tf32x3/' k.yaml
    kaio-emit -t sm_90 -D m=128 -D n=128 -D k=4096 -o k.ptx k.yaml
    [ "$(count mma.sync.aligned.m16n8k8)" -eq 64 ] # two steps of 4 x 4, twice
    [ "$(count mma.sync.aligned.m16n8k16)" -eq 16 ]
    [ "$(count add.rn.f32)" -eq 64 ]
    # an infinite factor's first part is finite as bf16, too, and so is the largest number's
    kaio-run -q -d cpu k.ptx a=@const:inf b=@const:1 c=c.npy
    [ "$(tail -c +129 c.npy | od -An -v -tx4 -w4 | sort -u)" = ' 7f800000' ]
    kaio-run -q -d cpu k.ptx a=@const:-2.5 b=@const:inf c=c.npy
    [ "$(tail -c +129 c.npy | od -An -v -tx4 -w4 | sort -u)" = ' ff800000' ]
    kaio-run -q -d cpu k.ptx a=@const:3.4028234e38 b=@const:-1e-36 c=c.npy
    # times 4096
    tail -c +129 c.npy | od -An -v -tf4 -w4 | awk '{e = $1 / -1393796.4646 - 1; if (!(e < 1e-5 && e > -1e-5)) exit 1}'
}

@test "nothing spills where tiles are as large as they come" {
    [ -n "$ptxas" ] || skip 'no ptxas'
    for kind in f16 tf32 s8; do # bf16 has the registers of f16, and 8-bit floats those of s8
        case $kind in tf32) k=16 ;; f16) k=32 ;; *) k=64 ;; esac
        for layout in nn nt; do
            spec $kind $layout "tile: [128, 128, $k], warps: [2, 2], stages: 4"
            kaio-emit -t sm_90 -o k.ptx k.yaml
            run -0 "$ptxas" -arch=sm_90 -v -o k.cubin k.ptx
            awk '/Compiling entry function .k. /{here = 1} here && /spill/{print; exit}' <<<"$output" >spill
            grep -q '0 bytes spill stores, 0 bytes spill loads' spill
        done
    done
    for layout in nn nt tn tt; do
        spec f32 $layout 'group: 8'
        sed -i 's/mma: sync/mma: tf32x3/' k.yaml
        kaio-emit -t sm_80 -o k.ptx k.yaml
        run -0 "$ptxas" -arch=sm_90 -v -o k.cubin k.ptx
        [[ $output == *'0 bytes spill stores'* && ! $output =~ [1-9][0-9]*' bytes spill' ]]
    done
    for kind in tf32 tf32_rn tf32_rz; do
        for layout in nn nt; do
            spec $kind $layout 'group: 8'
            kaio-emit -t sm_80 -D m=4096 -D n=4096 -D k=4096 -o k.ptx k.yaml
            grep -q 'm16n8k16.*f16' k.ptx
            run -0 "$ptxas" -arch=sm_90 -v -o k.cubin k.ptx
            [[ $output == *'0 bytes spill stores'* && ! $output =~ [1-9][0-9]*' bytes spill' ]]
        done
    done
}

# refuses TEXT [OPTION]...
refuses() {
    local text=$1
    shift
    run -2 --separate-stderr kaio-emit "$@" k.yaml
    [[ $stderr == *"$text"* ]]
}

# halves KIND LAYOUT [SCHEDULE]: tf32 in tiles that are large enough to go by f16
halves() {
    spec "$1" "$2" "tile: [256, 128, 32], warps: [4, 2]${3:+, $3}"
}

@test "tf32 goes by f16 where elements allow, in every layout, with edges, shares and what is made of the sums" {
    [ -z "${KAIO_QUICK-}" ] || skip 'many shapes'
    for kind in tf32 tf32_rn tf32_rz; do
        for layout in $layouts; do
            halves $kind $layout
            fixed 'm=257 n=132 k=100' -t sm_80
            fixed 'm=12 n=12 k=36' -t sm_80 --fill=all
            fixed 'm=12 n=128 k=4' -t sm_80
            run -0 kaio-verify --run -d cpu --check -t sm_80 k.yaml m=40 n=40 k=0 # of code for all sizes
        done
    done
    halves tf32_rn nn 'split: 3'
    fixed 'm=260 n=128 k=292' -t sm_80 --fill=all
    verify -t sm_80 # rows that are no vectors: not by f16
    halves tf32_rn nt
    sed -i 's/c\[i,j\] = .*/c[i,j] = silu(sum[l](tf32_rn(a[i,l]) * tf32_rz(b[j,l]))) + a[i,j % k]/' k.yaml
    fixed 'm=300 n=136 k=68' -t sm_80 --fill=all
    cat >batch.yaml <<'END'
kernel: batch
params:
  a: in f32[h, m, k]
  b: in f32[k, n]
  c: out f32[h, m, n]
  d: out f32[h, m, n]
compute: |
  c[g,i,j] = sum[l](tf32(a[g,i,l]) * tf32(b[l,j]))
  d[g,i,j] = c[g,i,j] * 2
schedule: {strategy: matmul, mma: sync, tile: [128, 256, 32], warps: [2, 4]}
END
    kaio-emit -t sm_80 -D h=3 -D m=130 -D n=260 -D k=64 batch.yaml | grep -q 'm16n8k16.*f16'
    run -0 kaio-verify --run -d cpu --check -t sm_80 --fill=all -D h=3 -D m=130 -D n=260 -D k=64 batch.yaml
}

@test "tf32 by f16: who says so has tf32's own instructions; small tiles, and tiles by turns, have them too" {
    halves tf32_rn nn
    kaio-emit -t sm_80 -D m=512 -D n=512 -D k=512 k.yaml >k.ptx
    grep -q 'mma.sync.*m16n8k16.*f16' k.ptx && grep -q 'mma.sync.*m16n8k8.*tf32' k.ptx
    kaio-emit -t sm_80 -D m=512 -D n=512 -D k=512 --explain -v k.yaml | grep -q 'mma.sync of tf32, as f16 where elements allow'
    sed 's/mma: sync/mma: tf32/' k.yaml >own.yaml
    sed 's/tile:/blocks: 7, tile:/' k.yaml >turns.yaml
    sed 's/256, 128, 32\], warps: \[4, 2/64, 64, 32], warps: [2, 2/' k.yaml >small.yaml
    for f in own turns small; do
        kaio-emit -t sm_80 -D m=512 -D n=512 -D k=512 $f.yaml >k.ptx
        grep -q 'mma.sync.*m16n8k8.*tf32' k.ptx && run ! grep -q '[.]f16' k.ptx
    done
    sed -i 's/sync/tf32/; s/tf32_rn(/(/g' k.yaml
    refuses "'mma: tf32' is for factors that are calls of tf32()" -t sm_80
}

# gen NAME ROWS COLS ROW COL VALUE: a file of zeros and small numbers but for one, and one column of zeros
gen() {
    cat >gen.yaml <<END
kernel: gen
params:
  y: out f32[r, s]
  row: i32
  col: i32
  v: u32
compute: |
  y[i,j] = i == row && j == col ? as_f32(v) : f32(i32((i * 37 + j * 11) % 61) - $7) / 16
END
    kaio-emit -D r="$2" -D s="$3" -o gen.ptx gen.yaml
    kaio-run -q -d cpu gen.ptx y="$1" row="$4" col="$5" v="$6"
}

@test "tf32 by f16: an element that f16 has not, wherever it is, with zeros and without" {
    local m=20 n=24 k=160
    # 1e-30, 2^-29, 1e-40, infinity, NaN, 1e30, 8 and 3.5 (of which f16 has the last one)
    local values='0x0da24260 0x31000000 0x000116c2 0x7f800000 0xffc00001 0x7149f2ca 0x41000000 0x40600000'
    local places='0 33 159'
    [ -z "${KAIO_QUICK-}" ] || values='0x31000000 0x41000000' places=33
    for kind in tf32 tf32_rn tf32_rz; do
        halves $kind nt
        kaio-emit -t sm_80 -D m=$m -D n=$n -D k=$k -o k.ptx k.yaml
        for zeros in 30 -1; do # without: from 1/16 on
            gen a.bin $m $k 99 0 0 $zeros
            gen b.bin $n $k 99 0 0 $zeros
            for v in $values; do
                for at in $places; do
                    gen odd.bin $m $k 3 $at $v $zeros
                    kaio-run -q -d cpu --check k.ptx a=odd.bin b=b.bin c=c.bin
                    run -0 kaio-verify -D m=$m -D n=$n -D k=$k k.yaml a=odd.bin b=b.bin c=c.bin
                    gen odd.bin $n $k 5 $at $v $zeros
                    kaio-run -q -d cpu k.ptx a=a.bin b=odd.bin c=c.bin
                    run -0 kaio-verify -D m=$m -D n=$n -D k=$k k.yaml a=a.bin b=odd.bin c=c.bin
                done
            done
        done
    done
}

# rows NAME ROWS COLS FIRST OTHERS: a file of rows of one number, the first of its own
rows() {
    cat >rows.yaml <<'END'
kernel: rows
params:
  y: out f32[r, s]
  first: u32
  others: u32
compute: |
  y[i,j] = as_f32(i == 0 ? first : others)
END
    kaio-emit -D r="$2" -D s="$3" -o rows.ptx rows.yaml
    kaio-run -q -d cpu rows.ptx y="$1" first="$4" others="$5"
}

@test "tf32 by f16: scales of which one alone is too much for the sums, subnormal elements, and what f16 rounds to 2^-14" {
    # 2^120 times 2^-60; 2^-112 and 2^-126 times 2^110 and 2^82; subnormals; 2^-28 (1 - 2^-11) beside 1
    for kind in tf32 tf32_rn tf32_rz; do
        halves $kind nt
        while read -r m n k a b c d; do
            rows a.bin "$m" "$k" "$a" "$b"
            rows b.bin "$n" "$k" "$c" "$d"
            kaio-emit -t sm_80 -D m="$m" -D n="$n" -D k="$k" -o k.ptx k.yaml
            kaio-run -q -d cpu k.ptx a=a.bin b=b.bin c=c.bin
            run -0 kaio-verify -D m="$m" -D n="$n" -D k="$k" k.yaml a=a.bin b=b.bin c=c.bin
        done <<'END'
16 16 64 0x7b800000 0x7b800000 0x21800000 0x21800000
16 16 4 0x07800000 0x00b5c000 0x76800000 0x68a5e000
16 16 32 0x07800000 0x0000f123 0x5d800000 0x5d800000
256 128 32 0x0e800000 0x0000f123 0x5d800000 0x5d800000
256 128 32 0x3f800000 0x317fe000 0x3f800000 0x3f800000
END
    done
}

@test "impossible tiles say what is in the way" {
    spec f16 nn 'tile: [256, 128, 64], warps: [4, 2], stages: 4'
    refuses '4 stages of 49152 bytes each' -t sm_80
    kaio-emit -t sm_90 -o k.ptx k.yaml
    spec f16 nn 'tile: [128, 128, 8], warps: [2, 2], stages: 3'
    refuses 'must be a multiple of 16, not 8'
    spec f16 nn 'tile: [40, 64, 32], warps: [1, 1], stages: 3'
    refuses 'multiples of 16 rows and columns'
    spec f16 nn 'tile: [128, 256, 32], warps: [1, 2], stages: 2'
    refuses 'sums'
    spec bf16 nn 'tile: [64, 64, 32], warps: [2, 2], stages: 2'
    refuses 'no bf16' -t sm_75
    for more in 'stages: 1' 'stages: 3, split: 2'; do
        spec f16 nn "tile: [64, 64, 32], warps: [2, 2], blocks: 4, $more"
        refuses 'blocks that take tiles by turns have 2 stages or more, and share none'
    done
    spec f32 nn 'blocks: 4'
    sed -i 's/mma: sync, //' k.yaml
    refuses 'tensor cores multiply no f32' -t sm_86 # where fma is as fast as three products
}
