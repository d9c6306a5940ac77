# Contractions by wgmma: every type, layout, tile, cluster and epilogue gives what the equations say, on the simulator with
# all checks; the loops are made of what they should be; ptxas neither spills registers nor puts the products one behind
# the other.
bats_require_minimum_version 1.5.0

load products

# spec KIND LAYOUT SCHEDULE: k.yaml
spec() {
    product wgmma "$@"
}

# made KIND LAYOUT SCHEDULE: k.yaml, of operands that are computed
made() {
    product wgmma "made_$1" "$2" "$3"
}

# scheduled SPEC SCHEDULE: k.yaml
scheduled() {
    sed "\$aschedule: {strategy: matmul, mma: wgmma, $2}" "$specs/$1.yaml" >k.yaml
}

verify() {
    # the schedule is for the code of all sizes; what is fixed has tests of its own
    # shellcheck disable=SC2086
    run -0 kaio-verify --run -d cpu --check --code=generic $fills -t sm_90a k.yaml "$@"
}

# assemble [OPTION...]: k.ptx through ptxas
assemble() {
    kaio-emit -t sm_90a "$@" k.yaml >k.ptx
    [ -n "$ptxas" ] || return 0
    "$ptxas" -v -arch=sm_90a -o k.cubin k.ptx 2>log
    run ! grep -E 'C75[0-9][0-9]|[1-9][0-9]* bytes (stack|spill)' log
}

@test "every type, in every layout that it has" {
    for kind in f16 bf16; do
        for layout in $layouts; do
            spec $kind $layout 'tile: [128, 64, 64], stages: 3, blocks: 3'
            verify m=136 n=200 k=200
            verify m=8 n=8 k=8
        done
    done
    # f32 is rounded in shared memory, and turned where it lies across
    for kind in tf32 tf32_rn tf32_rz left_rz right_rz; do
        for layout in $layouts; do
            spec $kind $layout 'tile: [128, 64, 32], stages: 3, blocks: 3, cluster: 1'
            verify m=136 n=200 k=100
            spec $kind $layout 'tile: [64, 96, 32], stages: 3, blocks: 2, cluster: 1, pingpong: yes'
            verify m=136 n=200 k=68
        done
    done
    for kind in s8 u8 e4m3 e5m2; do
        spec $kind nt 'tile: [128, 64, 128], stages: 2, blocks: 3'
        verify m=136 n=200 k=272
        verify m=3 n=4 k=16
    done
}

@test "f32 that lies across, or is rounded, goes by registers where it is the instruction's left operand" {
    [ -z "${KAIO_QUICK-}" ] || skip 'many shapes'
    for kind in tf32 tf32_rz left_rz right_rz; do
        for layout in $layouts; do
            # columns as the instruction's rows, and several of 64 of them for each warpgroup
            spec $kind $layout 'tile: [64, 128, 32], warps: [1, 2], stages: 3, blocks: 3, cluster: 1'
            verify m=136 n=200 k=100
            # the other operand is turned 32 terms at a time
            [[ $layout == n? ]] && terms=64 || terms=32
            spec $kind $layout "tile: [64, 256, $terms], warps: [1, 2], stages: 2, blocks: 3, cluster: 1"
            verify m=72 n=264 k=36
            [[ $layout == ?t ]] && terms=64 || terms=32
            spec $kind $layout "tile: [256, 64, $terms], warps: [2, 1], stages: 2, blocks: 3, cluster: 1"
            verify m=264 n=72 k=132
        done
    done
    # what registers hold is not written to, so that blocks may share it
    spec tf32_rz nn 'tile: [96, 128, 32], warps: [1, 2], stages: 3, blocks: 8, cluster: [2, 2]'
    verify m=300 n=392 k=136
    verify m=4 n=4 k=4
    spec tf32_rz nn 'tile: [128, 64, 32], warps: [1, 1], stages: 3, blocks: 2, cluster: [1, 2], pingpong: yes'
    verify m=300 n=392 k=68
    spec tf32_rz nn 'tile: [128, 128, 32], warps: [1, 2], stages: 3, split: 2, cluster: 1'
    verify m=136 n=136 k=200
    spec tf32_rz tt 'tile: [192, 64, 32], warps: [3, 1], stages: 3, split: 3, cluster: 1'
    verify m=136 n=136 k=200
    # by the launch: the shape of the tile says it
    spec tf32_rz nn 'tile: [256, 128, 32]'
    kaio-emit -t sm_90a --explain -v k.yaml | grep -q 'tiles 256 x 128 x 32 of 256 x 64,.* computed turned'
    kaio-emit -t sm_90a --explain -v "$specs/tf32_rn.yaml" -D m=4096 -D n=4096 -D k=4096 | grep -q 'of 256 x 64,.* computed turned'
}

@test "tensor maps round to tf32 what is to be rounded to even" {
    spec tf32_rn nn 'tile: [128, 128, 32], warps: [1, 2], stages: 2, cluster: 1'
    kaio-emit -t sm_90a -D m=512 -D n=512 -D k=512 k.yaml >k.ptx
    [ "$(grep -c 'type: tf32' k.ptx)" = 2 ]
    run ! grep -q 'cvt.*tf32' k.ptx
    # whatever is in the operands: halves, subnormals, the largest, infinities, NaN
    verify ${fills:---fill=all} m=136 n=132 k=68
    # left as it is and rounded, of one buffer: two maps
    cat >k.yaml <<'END'
kernel: k
params:
  a: in f32[m, k]
  c: out f32[m, m]
compute: |
  c[i,j] = sum[l](tf32_rn(a[i,l]) * tf32_rz(a[j,l]))
schedule: {strategy: matmul, mma: wgmma, tile: [128, 128, 32], stages: 2, cluster: 1}
END
    verify m=136 k=68
}

@test "results that are computed turned: epilogues" {
    cat >k.yaml <<'END'
kernel: k
params:
  a: in f32[batch, m, k]
  w: in f32[k, n]
  v: in f32[k, n]
  bias: in f32[n]
  scale: in f32[m]
  c: out f32[batch, m, n]
  d: out i32[batch, m, n]
compute: |
  h[b,i,j] = sum[l](tf32_rz(a[b,i,l]) * tf32(w[l,j])) * scale[i] + bias[j]
  g[b,i,j] = sum[l](tf32_rz(a[b,i,l]) * tf32_rz(v[l,j]))
  c[b,i,j] = h[b,i,j] * relu(g[b,i,j])
  d[b,i,j] = h[b,i,j] > 0 ? j : i
schedule: {strategy: matmul, mma: wgmma, tile: [64, 128, 32], warps: [1, 2], stages: 2, cluster: 1}
END
    for sizes in 'batch=2 m=136 n=200 k=68' 'batch=3 m=5 n=12 k=32'; do
        verify $sizes
    done
    grep -v ' d[:[]' k.yaml | sed 's/c: out f32/c: out f16/' >half.yaml
    mv half.yaml k.yaml
    run -2 kaio-emit -t sm_90a k.yaml
    [[ $output == *"a tile's columns are instructions' rows only of results of 4 bytes"* ]]
    sed -i 's/warps: .*stages: 2, //' k.yaml
    verify batch=2 m=136 n=200 k=68
}

@test "sizes that no tensor map has go another way" {
    spec f16 nn 'tile: [64, 64, 64]'
    for sizes in 'm=1 n=1 k=1' 'm=33 n=17 k=31' 'm=9 n=8 k=0'; do
        verify $sizes
    done
}

@test "any tile, number of stages and of warpgroups" {
    [ -z "${KAIO_QUICK-}" ] || skip 'many shapes'
    for schedule in 'tile: [64, 8, 64], stages: 2' 'tile: [64, 40, 128], stages: 3' 'tile: [64, 256, 64], stages: 2' \
        'tile: [128, 256, 64], stages: 4, blocks: 2' 'tile: [256, 128, 64], warps: [2, 1], stages: 3, blocks: 2' \
        'tile: [192, 128, 64], warps: [3, 1], stages: 3, blocks: 1' 'tile: [128, 208, 64], stages: 2, group: 2' \
        'tile: [64, 32, 64], stages: 12'; do
        spec bf16 nt "$schedule, cluster: 1"
        verify m=300 n=264 k=200
    done
}

@test "operands that are computed go through registers, in every layout" {
    [ -z "${KAIO_QUICK-}" ] || skip 'many shapes'
    for kind in w4 w8 silu cast both mask norm tf32 s8 e4m3; do
        terms=64
        [ $kind != tf32 ] || terms=32
        [[ $kind != s8 && $kind != e4m3 ]] || terms=128
        for layout in $layouts; do
            # what is copied lies along k
            [[ $kind$layout != e4m3?n ]] || continue
            made $kind $layout "tile: [128, 64, $terms], stages: 3, blocks: 3, cluster: 1"
            kaio-emit -t sm_90a --explain -v k.yaml | grep -q 'wgmma of .*, \(512\|384\) threads'
            verify m=136 n=192 k=208
            [[ $kind == w4 || $kind == s8 ]] || verify m=131 n=67 k=35
        done
    done
}

@test "small integers become 16-bit floats in pairs, without conversions" {
    scheduled w4a16 'tile: [128, 64, 64], stages: 3, blocks: 3, cluster: 1'
    for T in f16 bf16; do
        # the scales of a stage's one group are read once, before the first stage and for each next one: 4 times 8, and 32 weights
        kaio-emit -t sm_90a -D T=$T -D m=512 -D n=512 -D k=512 k.yaml >k.ptx
        run ! grep -q 'cvt.*f32[.]s32' k.ptx
        [ "$(grep -c "mul.rn.${T}x2" k.ptx)" = "$(grep -c "sub.rn.${T}x2" k.ptx)" ]
        [ "$(grep -c 'ld.global.v4' k.ptx)" = 10 ]
        verify ${fills:---fill=all} -D T=$T m=136 n=192 k=264
        verify ${fills:---fill=all} -D T=$T -D m=128 -D n=64 -D k=256 m=128 n=64 k=256
    done
    # zero points, signs, bytes, and integers alone
    for T in f16 bf16; do
        cat >k.yaml <<END
kernel: k
params:
  a: in ${T}[m, k]
  b: in i4[k, n]
  z: in u4[ceil_div(k, 64), n]
  s: in ${T}[ceil_div(k, 64), n]
  d: in i8[n, k]
  c: out f32[m, n]
  e: out f32[m, n]
compute: |
  c[i,j] = sum[l](a[i,l] * $T((i32(b[l,j]) - i32(z[l / 64, j])) * s[l / 64, j]))
  e[i,j] = sum[l](a[i,l] * $T(i32(d[j,l])))
schedule: {strategy: matmul, mma: wgmma, tile: [128, 64, 64], stages: 3, blocks: 3, cluster: 1}
END
        verify ${fills:---fill=all} m=136 n=192 k=264
        verify m=33 n=34 k=64
    done
}

@test "operands that are computed: tiles, clusters, turns and shares" {
    while read -r kind layout schedule; do
        made $kind $layout "$schedule"
        verify m=136 n=320 k=256
        verify m=8 n=32 k=32
    done <<'END'
w4 nn tile: [64, 256, 64], stages: 2, cluster: 1, blocks: 2
w4 nn tile: [128, 128, 64], stages: 3, cluster: [1, 2], blocks: 4
w4 nt tile: [128, 96, 128], stages: 2, cluster: 1
silu tn tile: [192, 64, 64], warps: [3, 1], stages: 2, cluster: 1
silu nt tile: [64, 48, 64], stages: 3, cluster: [2, 1], blocks: 4
place nn tile: [128, 256, 64], stages: 2, cluster: 1
norm tn tile: [128, 256, 64], stages: 2, cluster: 1
tf32 nn tile: [192, 64, 32], warps: [3, 1], stages: 2, cluster: 1
place tn tile: [128, 64, 64], stages: 2, cluster: 1
both tt tile: [64, 64, 128], stages: 2, cluster: 1, pingpong: yes, blocks: 3
cast nn tile: [64, 64, 64], stages: 2, cluster: 1, split: 2
tf32 nn tile: [64, 40, 32], stages: 2, cluster: 1, blocks: 2
END
    made w4 nn 'tile: [128, 128, 64], stages: 3, cluster: 2'
    run -2 kaio-emit -t sm_90a k.yaml
    [[ $output == *'blocks of a cluster share no operand that is computed'* ]]
    made w4 nn 'tile: [128, 128, 64], stages: 3, cluster: 1'
    sed -i 's/^  c: out f32/  c: out f16/; s/^  c\[i,j\].*/  c[i,j] = f16(relu(sum[l](a[i,l] * f16(i32(b[l,j]) * s[0,j]))))/' k.yaml
    verify m=136 n=224 k=64
}

@test "clusters share what they copy" {
    for cluster in 2 '[1, 2]' '[2, 2]'; do
        for layout in nn nt tt; do
            spec f16 $layout "tile: [128, 128, 64], stages: 3, cluster: $cluster, blocks: 8"
            verify m=300 n=392 k=136
        done
    done
    # columns that are no multiple of what two blocks could bring by whole atoms; tiles outside of the results
    spec bf16 nn 'tile: [64, 192, 64], stages: 2, pingpong: yes, cluster: 2, blocks: 4'
    verify m=200 n=392 k=136
    verify m=8 n=8 k=8
}

@test "warpgroups that take tiles by turns" {
    for schedule in 'tile: [64, 64, 64], stages: 3' 'tile: [128, 128, 64], stages: 4' 'tile: [64, 192, 64], stages: 2'; do
        for blocks in 1 2 100; do
            spec f16 tn "$schedule, cluster: 1, pingpong: yes, blocks: $blocks"
            verify m=200 n=328 k=136
        done
    done
    # the second warpgroup may have no tile at all
    verify m=8 n=8 k=8
}

@test "every epilogue, with and without patches" {
    while read -r spec sizes; do
        for tile in '128, 64' '64, 128'; do
            scheduled "$spec" "tile: [$tile, 64], stages: 3, blocks: 3, cluster: 1"
            verify -D $sizes
        done
    done <<'END'
batched T=bf16 batch=2 heads=2 m=136 n=72 k=72
conv2d_1x1 T=bf16 n=2 cin=72 cout=72 h=8 w=12
residual T=f16 m=136 n=72 k=72
bias_gelu T=bf16 m=136 n=136 k=80
END
    # columns that are no whole boxes, and rows that are no whole vectors
    spec f16 nt 'tile: [64, 40, 64], stages: 3, blocks: 3, cluster: 1'
    verify m=136 n=200 k=72
    verify m=136 n=67 k=72
    scheduled gated_mlp 'tile: [128, 64, 64], stages: 3, blocks: 3, cluster: 1'
    verify -D T=bf16
    scheduled qkv 'tile: [128, 64, 64], stages: 3, blocks: 3, cluster: 1'
    verify -D T=f16
    scheduled grouped 'tile: [64, 64, 64], stages: 3, blocks: 3, cluster: 1'
    verify -D T=f16
}

# epilogue EXPRESSION [TYPE [RESIDUAL]]: k.yaml, of products `p` and what else there is to read
epilogue() {
    # as large as everything else hundreds of times
    local q='batch, n, m, n'
    [[ $1 == *q[[]* ]] || q='batch'
    cat >k.yaml <<END
kernel: k
params:
  a: in f16[m, k]
  b: in f16[n, k]
  r: in ${3:-${2:-f16}}[m, n]
  q: in ${2:-f16}[$q]
  t: in ${2:-f16}[n, m]
  v: in ${2:-f16}[m]
  c: out ${2:-f16}[m, n]
compute: |
  p[i,j] = sum[l](a[i,l] * b[j,l])
  c[i,j] = $1
schedule: {strategy: matmul, mma: wgmma, tile: [128, 64, 64], blocks: 3}
END
    sizes='m=136 n=72 k=136 batch=2'
}

@test "tensors that lie as the results do are copied while products are made" {
    # four boxes for each warp, loaded as fragments and stored in their place; of four stages they leave room for two, and
    # registers take what comes first
    while read -r stages bytes times; do
        scheduled residual "tile: [128, 256, 64], stages: $stages, cluster: 2"
        assemble -D T=bf16 -D m=4096 -D n=4096 -D k=4096
        [ "$(grep -c 'cp.async.bulk.tensor.2d.shared::cluster' k.ptx)" = 7 ]
        [ "$(grep -c 'ldmatrix.sync.aligned.m8n8.x4' k.ptx)" = 16 ]
        [ "$(grep -c "expect_tx.*, $bytes;" k.ptx)" = "$times" ]
        run ! grep -E '(ld|st)[.]global' k.ptx
    done <<'END'
3 8192 1
4 4096 2
END
    # they take it 8 stages before the end, or in the only one
    scheduled residual 'tile: [128, 256, 64], stages: 4, blocks: 2, cluster: [2, 1]'
    for k in 8 136 520; do verify -D T=f16 m=264 n=520 k=$k; done
    epilogue 'relu(p[i,j]) * r[i,j]' bf16
    sed -i 's/tile: .*/tile: [64, 256, 64], stages: 5, blocks: 3}/' k.yaml
    grep -q 'expect_tx.*, 4096;' <(kaio-emit -t sm_90a k.yaml)
    verify m=136 n=264 k=328 batch=1
    for schedule in 'tile: [128, 128, 64], cluster: 2, blocks: 4' 'tile: [128, 64, 64], warps: [1, 1], blocks: 2' \
        'tile: [64, 128, 64], pingpong: yes, cluster: 2, blocks: 4' 'tile: [256, 64, 64], warps: [2, 1], blocks: 1' \
        'tile: [192, 64, 64], warps: [3, 1], blocks: 2'; do
        scheduled residual "$schedule"
        verify -D T=f16 m=328 n=200 k=136
    done
    # by the batch, of 4 bytes, two of them, one of them twice
    copies() {
        kaio-emit -t sm_90a k.yaml >k.ptx
        grep -c 'cp.async.bulk.tensor.*shared::cluster' k.ptx
    }
    for e in 'relu(p[i,j]) * r[i,j]' 'r[i,j] > 0 ? p[i,j] + r[i,j] : r[i,j]'; do
        for type in f16 f32; do
            epilogue "$e" $type
            [ "$(copies)" = "$([ $type = f16 ] && echo 3 || echo 4)" ]
            verify $sizes
        done
    done
    epilogue 'p[i,j] * r[i,j] + v[i]' f16 bf16
    [ "$(copies)" = 3 ]
    verify $sizes
    # what lies otherwise, or is longer, is read where it is needed
    for e in 'p[i,j] + t[j,i]' 'p[i,j] + q[1,i % n,i,j]' 'p[i,j] + pad(r[i,j+1], 0)'; do
        epilogue "$e"
        [ "$(copies)" = 2 ]
        verify $sizes
    done
    epilogue 'p[i,j] + r[i,j]' f16 f32
    [ "$(copies)" = 2 ]
    verify $sizes
    cat >k.yaml <<END
kernel: k
params:
  a: in bf16[batch, m, k]
  b: in bf16[batch, n, k]
  r: in bf16[m, batch, n]
  s: in bf16[m, n]
  c: out bf16[batch, m, n]
compute: |
  c[h,i,j] = s[i,j] * sum[l](a[h,i,l] * b[h,j,l]) + r[i,h,j]
schedule: {strategy: matmul, mma: wgmma, tile: [64, 128, 64], blocks: 3}
END
    [ "$(copies)" = 6 ]
    verify batch=3 m=72 n=136 k=72
}

@test "functions of results take the hardware's approximations, to the errors of the others" {
    # of every f16
    kaio-emit - >every.ptx <<'END'
kernel: every
params:
  r: out f16[1024, 64]
compute: |
  r[i,j] = as_f16(u16(i * 64 + j))
END
    kaio-run -q -d cpu every.ptx r=r.npy
    of() { # EXPRESSION TYPE [KEYS]
        printf '%s\n' 'kernel: k' 'params:' '  a: in f16[1024, 16]' '  b: in f16[16, 64]' '  r: in f16[1024, 64]' \
            "  c: out $2[1024, 64]" "compute: c[i,j] = ${1/X/r[i,j] + sum[l](a[i,l] * b[l,j])}" \
            'schedule: {strategy: matmul, mma: wgmma}' ${3:+"$3"} >k.yaml
        kaio-emit -t sm_90a k.yaml >k.ptx
        kaio-run -q -d cpu k.ptx a=@zeros b=@zeros r=r.npy c=c.npy
        run -0 kaio-verify k.yaml a=@zeros b=@zeros r=r.npy c=c.npy
    }
    for type in f16 bf16; do
        for e in 'exp(X)' 'gelu(X)' 'silu(X)' 'gelu_tanh(X)' 'sigmoid(X)' 'gelu(X) * 4096' 'silu(X) / 4096'; do
            of "$e" $type
            grep -q 'ex2.approx.ftz' k.ptx
        done
    done
    # nothing is rounded at once, or all bits are promised
    for e in 'gelu(X) + 1' 'tanh(X)' 'f32(f16(X)) + gelu(1.5)'; do
        of "$e" f16
        run ! grep 'approx' k.ptx
    done
    of 'gelu(X)' f16 'math: strict'
    run ! grep 'approx' k.ptx
}

@test "functions of results are stored by threads, others by copies" {
    [ -z "${KAIO_QUICK-}" ] || skip 'many shapes'
    scheduled bias_gelu 'tile: [128, 256, 64], cluster: 2'
    assemble -D T=f16 -D m=4096 -D n=4096 -D k=4096
    [ "$(grep -c 'stmatrix.sync.aligned.m8n8.x4' k.ptx)" = 16 ]
    [ "$(grep -c '^.st.global.v4.b32' k.ptx)" = 16 ]
    run ! grep 'bulk_group' k.ptx
    # with a residual, in place of which results are put, they are copied
    epilogue 'silu(p[i,j]) * r[i,j]'
    assemble -D m=4096 -D n=4096 -D k=4096 2>warnings
    grep -q 'bulk_group' k.ptx
    run ! grep 'st.global.v4' k.ptx
    # rows and columns that are no whole boxes, batches, several results
    for e in 'gelu(p[i,j] + v[i])' 'silu(p[i,j]) * v[i]'; do
        for schedule in 'tile: [128, 64, 64], blocks: 3' 'tile: [256, 128, 64], warps: [2, 1], blocks: 2' \
            'tile: [64, 128, 64], pingpong: yes, blocks: 2'; do
            epilogue "$e"
            sed -i "s/tile: .*/$schedule}/" k.yaml
            verify $sizes
            verify m=300 n=328 k=72 batch=1
        done
    done
    cat >k.yaml <<END
kernel: k
params:
  a: in bf16[h, m, k]
  b: in bf16[n, k]
  c: out bf16[h, m, n]
  d: out f16[h, m, n]
compute: |
  c[g,i,j] = gelu(sum[l](a[g,i,l] * b[j,l]))
  d[g,i,j] = sigmoid(sum[l](a[g,i,l] * b[j,l]))
schedule: {strategy: matmul, mma: wgmma, tile: [64, 128, 64], blocks: 3}
END
    verify h=3 m=72 n=136 k=72
    run ! grep 'bulk_group' <(kaio-emit -t sm_90a k.yaml)
}

@test "what lies along columns is in registers when products end" {
    scheduled bias_gelu 'tile: [128, 256, 64], cluster: 2'
    assemble -D T=f16 -D m=4096 -D n=4096 -D k=4096
    [ "$(grep -c 'ld.global' k.ptx)" = 32 ]
    run ! grep 'ld.global' <(sed '1,/wait_group.sync.aligned *0;/d' k.ptx)
    cat >k.yaml <<'END'
kernel: k
params:
  a: in bf16[h, m, k]
  b: in bf16[k, n]
  scale: in f16[h, n]
  bias: in bf16[n]
  other: in f32[n]
  r: in bf16[h, m, n]
  c: out bf16[h, m, n]
compute: |
  c[g,i,j] = EPILOGUE
schedule: {strategy: matmul, mma: wgmma, tile: [128, 128, 64], stages: 3, blocks: 3}
END
    cp k.yaml all.yaml
    # a tensor for each batch; 4 bytes; not of columns alone
    while read -r loads epilogue; do
        sed "s/EPILOGUE/$epilogue/; s/P/sum[l](a[g,i,l] * b[l,j])/" all.yaml >k.yaml
        [ "$(sed '/wait_group.sync.aligned *0;/q' <(kaio-emit -t sm_90a -D n=264 k.yaml) | grep -c 'ld.global')" = "$loads" ]
        for sizes in 'h=2 m=136 n=264 k=72' 'h=3 m=300 n=8 k=264'; do verify $sizes; done
    done <<'END'
16 gelu(P + bias[j])
32 gelu(P * scale[g,j] + bias[j])
16 P + bias[j] + r[g,i,j] * bias[j]
0 silu(P + other[j])
0 P + bias[0] + bias[j + 0 * i]
END
}

@test "warpgroups end a tile one after the other where results take work" {
    [ -z "${KAIO_QUICK-}" ] || skip 'many shapes'
    in_order() {
        kaio-emit -t sm_90a "$@" k.yaml >k.ptx
        [ "$(grep -c 'bar.sync *1, 256;' k.ptx)" = "$order" ]
        [ "$(grep -c 'bar.arrive *1, 256;' k.ptx)" = "$order" ]
    }
    order=0
    spec f16 nt 'tile: [128, 64, 64], stages: 3, blocks: 2'
    in_order
    epilogue 'gelu(p[i,j])' # of a single warpgroup, and where tiles are shorter than the ring
    sed -i 's/tile: .*/tile: [64, 64, 64], stages: 3, blocks: 2}/' k.yaml
    in_order
    sed -i 's/tile: .*/tile: [128, 64, 64], stages: 3, blocks: 2}/' k.yaml
    in_order -D k=128
    order=1
    in_order -D k=192
    for e in 'gelu(p[i,j])' 'p[i,j] + r[i,j]' 'tanh(p[i,j])'; do
        for stages in 2 4; do
            epilogue "$e"
            sed -i "s/tile: .*/tile: [128, 64, 64], stages: $stages, blocks: 2, cluster: [1, 2]}/" k.yaml
            in_order
            # tiles of one stage, of one less than the ring and as many, and of more
            for k in 64 192 256 328; do verify m=392 n=136 k=$k batch=1; done
        done
    done
}

@test "products that share their left operand are one instruction's" {
    for layout in 'f16[k, n]' 'f16[n, k]'; do
        [[ $layout == *'n]' ]] && at=l,j || at=j,l
        for schedule in 'tile: [128, 128, 64], cluster: 2, blocks: 2' 'tile: [64, 64, 64], pingpong: yes, blocks: 2' \
            'tile: [256, 64, 64], warps: [2, 1], blocks: 2' 'tile: [64, 128, 128], blocks: 1'; do
            cat >k.yaml <<END
kernel: k
params:
  x: in f16[m, k]
  g: in $layout
  u: in $layout
  y: out f16[m, n]
compute: |
  y[i,j] = silu(sum[l](x[i,l] * g[$at])) * sum[l](x[i,l] * u[$at])
schedule: {strategy: matmul, mma: wgmma, $schedule}
END
            verify m=200 n=136 k=264
        done
    done
    scheduled gated_mlp 'tile: [128, 128, 64], cluster: 2'
    assemble
    [ "$(grep -c 'm64n256k16' k.ptx)" = 4 ]
    # a stage of two atoms along the sum, and more columns than an instruction has
    scheduled gated_mlp 'tile: [128, 64, 128]'
    assemble
    [ "$(grep -c 'm64n64k16' k.ptx)" = 16 ]
    scheduled gated_mlp 'tile: [64, 192, 64]'
    assemble
    [ "$(grep -c 'm64n192k16' k.ptx)" = 8 ]
}

@test "the loops wait, copy, multiply and give back, each as often as needed" {
    scheduled nt 'tile: [128, 256, 64], stages: 4, cluster: 2'
    assemble -D m=4096 -D n=4096 -D k=4096
    # a stage: four products of 16 terms, of which the first begins the sum or adds to it
    [ "$(grep -c 'wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16' k.ptx)" = 4 ]
    [ "$(grep -c 'wgmma.fence' k.ptx)" = 1 ]
    [ "$(grep -c 'wgmma.commit_group' k.ptx)" = 1 ]
    grep -A1 'wgmma.commit_group' k.ptx | grep -q 'wait_group.sync.aligned 1;'
    # A is the block's own, half of B is brought for both
    [ "$(grep -c 'cp.async.bulk.tensor.2d.shared::cluster' k.ptx)" = 2 ]
    [ "$(grep -c 'multicast::cluster' k.ptx)" = 1 ]
    [ "$(grep -c '16384\|49152;' <(grep 'expect_tx' k.ptx))" = 1 ]
    # descriptors take 18 bits of an address: in a cluster the block's number is above
    [ "$(grep -c 'and.b32 .*, 262143;' k.ptx)" = 2 ]
    # no fence of all memory where a stage is given back to the other block
    run ! grep -E 'mbarrier[.](try_wait|arrive).*(acquire|release)' k.ptx
    # results by boxes of 64 columns of each warp's 16 rows
    [ "$(grep -c 'stmatrix.sync.aligned.m8n8.x4' k.ptx)" = 16 ]
    [ "$(grep -c 'bulk_group' k.ptx)" = 4 ]
    [ "$(grep -c 'st.global' k.ptx)" = 0 ]
    grep -q '^//@ *grid: \[min(256, max(1, multiprocessors / 2)) \* 2\]' k.ptx
    grep -q '^//@ *cluster: \[2\]' k.ptx
}

@test "8-bit floats are added in f32 proper every 128 terms, unless the math is fast" {
    scheduled fp8 'tile: [128, 128, 128], cluster: 1'
    assemble -D k=4096
    # 64 words of four products begin at 0, are waited for and added
    [ "$(grep -c 'wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3' k.ptx)" = 4 ]
    [ "$(sed -n '/wait_group.sync.aligned 0/,/bra/p' k.ptx | grep -c 'add.rn.f32')" = 64 ]
    grep -q '^//@ truncation: .*\b278528\b' k.ptx
    echo 'math: fast' >>k.yaml
    assemble -D k=4096
    [ "$(sed -n '/wait_group.sync.aligned 0/,/bra/p' k.ptx | grep -c 'add.rn.f32')" = 0 ]
    grep -q '^//@ truncation: .*\b8912896\b' k.ptx
    verify m=72 n=136 k=272 a_scale=0.01 b_scale=0.03
}

# parted LAYOUT SCHEDULE: k.yaml, f32 as two parts of tf32 each
parted() {
    spec f32 "$1" "$2"
    sed -i 's/mma: wgmma/mma: tf32x3/' k.yaml
}

@test "f32 in parts of tf32: as exact as f32 is, infinities as they are" {
    for layout in $layouts; do
        parted $layout 'tile: [128, 64, 32], stages: 3, blocks: 3'
        verify m=136 n=200 k=100
        parted $layout 'tile: [64, 96, 32], stages: 2, blocks: 2, pingpong: yes'
        verify m=136 n=200 k=68
        kaio-verify --run -d cpu -t sm_90a --fill=exact,uniform,edge k.yaml m=68 n=72 k=132
        for wide in 1 2; do
            parted $layout "tile: [128, 128, 32], warps: [$((3 - wide)), $wide], cluster: [$wide, $((3 - wide))]"
            verify m=256 n=260 k=100
        done
    done
    # what rows of whole 16 bytes have not, by mma.sync
    kaio-emit -t sm_90a k.yaml >k.ptx
    grep -q 'wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32' k.ptx
    grep -q 'mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32' k.ptx
    verify m=33 n=35 k=37
    # a row and a column of infinities, the other factor 1, whose second part is 0
    parted nt 'tile: [64, 64, 32]'
    kaio-emit -t sm_90a -D m=64 -D n=64 -D k=64 -o k.ptx k.yaml
    kaio-run -q -d cpu k.ptx a=@const:inf b=@const:1 c=c.npy
    [ "$(tail -c +129 c.npy | od -An -v -tx4 -w4 | sort -u)" = ' 7f800000' ]
    kaio-run -q -d cpu k.ptx a=@const:-2.5 b=@const:inf c=c.npy
    [ "$(tail -c +129 c.npy | od -An -v -tx4 -w4 | sort -u)" = ' ff800000' ]
}

@test "f32 in parts of tf32: the smallest products first, 32 terms from zero" {
    parted nt 'tile: [128, 128, 32], warps: [2, 1], stages: 4, cluster: 1'
    assemble -D m=4096 -D n=4096 -D k=4096
    [ "$(grep -c 'wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32' k.ptx)" = 12 ]
    [ "$(grep -c 'wgmma.fence' k.ptx)" = 1 ]
    grep -A1 'wgmma.commit_group' k.ptx | grep -q 'wait_group.sync.aligned 0;'
    grep -q '^//@ truncation: 288' k.ptx
    grep -q '^//@ products: 24' k.ptx
    # A and B come by copies; the second part of B does not
    grep -q 'expect_tx.*32768;' k.ptx
    # a warpgroup and three warps make the parts
    grep -q "reqntid 512" k.ptx
    grep -q 'setmaxnreg.inc.sync.aligned.u32 208;' k.ptx
    # rows of the left operand's stay with whoever multiplies them: a cluster may share it, the other one not
    parted nt 'tile: [128, 128, 32], warps: [2, 1], cluster: [2, 1]'
    run -2 --separate-stderr kaio-emit -t sm_90a k.yaml
    # the choice, where nothing but tf32x3 is said
    for layout in nn nt tn tt; do
        parted $layout 'group: 8'
        assemble -D m=4096 -D n=4096 -D k=4096
        grep -q 'wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32' k.ptx
    done
}

# in_f16 LAYOUT SCHEDULE: k.yaml, f32 as two parts of f16 each
in_f16() {
    spec f32 "$1" "$2"
    sed -i 's/mma: wgmma/mma: f16x3/' k.yaml
}

@test "f32 in parts of f16: every layout as it lies, no worse than parts of tf32" {
    for layout in $layouts; do
        for schedule in 'tile: [128, 64, 64], stages: 2' 'tile: [256, 128, 64], cluster: [1, 2]' \
            'tile: [128, 128, 64], cluster: 1, split: 2'; do
            in_f16 $layout "$schedule"
            # shellcheck disable=SC2086
            run -0 kaio-verify --run -d cpu --check --code=fixed ${fills% --code=generic} -t sm_90a k.yaml m=136 n=200 k=136
        done
    done
    # parts are copied as they lie, both at once; rests' products come first, and are scaled down in between
    in_f16 tn 'tile: [256, 128, 64], cluster: 1'
    assemble -D m=4096 -D n=4096 -D k=4096
    [ "$(grep -c 'wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16' k.ptx)" = 24 ]
    grep -q 'expect_tx.*98304;' k.ptx
    grep -q '^//@ products: 25' k.ptx
    # what the model takes without a schedule, and what says no
    kaio-emit -t sm_90a --explain -D T=f32 -D m=4096 -D n=4096 -D k=4096 "$specs/nt.yaml" | grep -q 'wgmma of f16 in parts'
    in_f16 nt 'tile: [128, 128, 64]'
    run -2 kaio-emit -t sm_90a k.yaml
    [[ $output == *"'mma: f16x3' is for sizes that are known"* ]]
    run -2 kaio-emit -t sm_90a -D m=64 -D n=64 -D k=4100 k.yaml
    [[ $output == *"TMA copies rows of whole 16 bytes"* ]]
    run -2 kaio-emit -t sm_90 -D m=64 -D n=64 -D k=64 k.yaml
    [[ $output == *"sm_90 has no wgmma"* ]]
}

@test "ptxas keeps sums in registers, and products under way" {
    [ -n "$ptxas" ] || skip 'no ptxas'
    for layout in nn nt tn tt; do
        scheduled $layout 'tile: [128, 256, 64], stages: 4, cluster: 2'
        assemble -D T=bf16
        # three warpgroups share 64512 registers, of which setmaxnreg gives the consumers more
        grep -q 'Used 168 registers' log
    done
    for schedule in 'tile: [256, 192, 64], warps: [2, 1], stages: 3' 'tile: [192, 128, 64], warps: [3, 1]' \
        'tile: [128, 192, 64], pingpong: yes, cluster: 2' 'tile: [256, 128, 64], warps: [2, 1], cluster: [2, 2]' \
        'tile: [64, 256, 64]'; do
        scheduled nt "$schedule"
        assemble
    done
    scheduled bias_gelu 'tile: [128, 256, 64], cluster: 2'
    assemble
    scheduled gated_mlp 'tile: [128, 128, 64], cluster: 2'
    assemble
    spec s8 nt 'tile: [128, 256, 128], cluster: 2'
    assemble
    spec e4m3 nt 'tile: [256, 128, 128], warps: [2, 1], cluster: 2'
    assemble
    spec tf32 nn 'tile: [128, 256, 32]'
    assemble
    for layout in nn nt tn tt; do
        for kind in tf32 tf32_rn tf32_rz; do
            spec $kind $layout 'tile: [256, 128, 32]'
            assemble
        done
    done
    for kind in w4 w8 silu both tf32 s8; do
        terms=64
        [ $kind != tf32 ] || terms=32
        [ $kind != s8 ] || terms=128
        for schedule in "tile: [128, 256, $terms]" "tile: [128, 128, $terms]" "tile: [64, 256, $terms]"; do
            made $kind nn "$schedule, cluster: 1"
            assemble -D m=4096 -D n=4096 -D k=4096
        done
    done
    # as many registers as a thread keeps
    spec tf32_rz tt 'tile: [256, 160, 32]'
    assemble
    spec tf32_rz nn 'tile: [160, 256, 32], warps: [1, 2]'
    assemble
    spec tf32 nn 'tile: [192, 192, 32], warps: [1, 3]'
    assemble
}

@test "f32 goes in parts where that is as good as fma, and what is too small for parts as by fma" {
    m=72 n=136 k=352
    for layout in nt tn; do # each factor either way
        f32_product $layout
        kaio-emit -t sm_90a --explain -D m=$m -D n=$n -D k=$k $layout.yaml | grep -q 'wgmma of tf32 in parts'
        run ! grep -q 'in parts' < <(kaio-emit -t sm_90a --explain -D m=$m -D n=$n -D k=320 $layout.yaml)
        f32_product $layout 'math: strict'
        run ! grep -q 'in parts' < <(kaio-emit -t sm_90a --explain -D m=$m -D n=$n -D k=$k $layout.yaml)
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
            # a warp adds up what is too small for parts of f16, in another order than fma's: within the bound of f32 all the same
            multiplied $layout f16.npy 'schedule: {mma: f16x3, split: 1}'
            kaio-verify $layout.yaml a=a.npy b=b.npy c=f16.npy
        done <<'END'
1e-36 1e-36 1
1e-40 1e-40 1e30
1e-37 0.5 1e36
END
    done
    # a NaN elsewhere hides no small factor, and an infinite one makes no NaN of others' parts
    m=72 n=136 k=352
    printf '%s\n' 'kernel: made' 'params:' '  a: out f32[m, k]' '  b: out f32[k, n]' '  x: in f32[m, k]' '  y: in f32[k, n]' \
        'compute: |' '  a[i,l] = i == 5 && l == 7 ? nan : i == 9 && l == 3 ? inf : i == 11 ? x[i,l] * 1e-39 : x[i,l]' \
        '  b[l,j] = l == 3 ? (j % 3 == 0 ? 10005.0 : j % 3 == 1 ? 1e-42 : 4099.0) : y[l,j]' >made.yaml
    kaio-emit made.yaml | kaio-run -d cpu - m=$m n=$n k=$k x=@normal:1 y=@normal:2 a=a.npy b=b.npy
    multiplied nn parts.npy 'schedule: {split: 1}'
    multiplied nn f16.npy 'schedule: {mma: f16x3, split: 1}'
    multiplied nn fma.npy 'schedule: {mma: fma, split: 1}'
    printf '%s\n' 'kernel: same' 'params:' '  p: in f32[m, n]' '  q: in f32[m, n]' '  wrong: out i32[]' 'compute: |' \
        '  wrong = sum[i,j](i == 5 ? i32(!isnan(p[i,j])) : i == 9 || i == 11 ? i32(p[i,j] != q[i,j]) : i32(abs(p[i,j] - q[i,j]) > 1e-3 * (abs(q[i,j]) + 1)))' >same.yaml
    kaio-emit same.yaml | kaio-run -d cpu - m=$m n=$n p=parts.npy q=fma.npy | grep -q '^wrong .* 0'
    kaio-verify nn.yaml a=a.npy b=b.npy c=f16.npy
}
