# Contractions: what is recognised as one and as what, what is refused, what a schedule may say, and that what runs is what
# the equations say.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    data=$KAIO_SRCDIR/tests/data/contractions.yaml
    specs=$KAIO_SRCDIR/specs/matmul
}

# spec DECLARATIONS EQUATIONS [MORE]: k.yaml; DECLARATIONS and EQUATIONS are lines
spec() {
    printf 'kernel: k\nparams:\n' >k.yaml
    sed 's/^/  /' <<<"$1" >>k.yaml
    printf 'compute: |\n' >>k.yaml
    sed 's/^/  /' <<<"$2" >>k.yaml
    [ -z "${3-}" ] || printf '%s\n' "$3" >>k.yaml
}

explain() {
    run -0 kaio-emit --explain -v "$@"
}

@test "contractions give what the equations say, under every check" {
    for target in sm_70 sm_80 sm_90a; do
        run -0 kaio-verify --run -d cpu --check -t $target "$data"
    done
}

@test "a product in any layout, with any tile, on tensor cores and off them" {
    for layout in nn nt tn tt; do
        for schedule in '{strategy: matmul, mma: none}' '{strategy: matmul, mma: sync}' \
            '{strategy: matmul, tile: [32, 64, 32], stages: 2, group: 1}' '{strategy: matmul, split: 3}'; do
            sed "\$aschedule: $schedule" "$specs/$layout.yaml" >k.yaml
            run -0 kaio-verify --run -d cpu --check k.yaml m=67 n=50 k=130
        done
    done
}

@test "the roles of axes follow from the subscripts, and neighbours become one" {
    explain --kernel=norm_mm "$data"
    [[ $output == *"rows i < m, columns j < n, terms l < k"* ]]
    explain --kernel=merged "$data"
    [[ $output == *"rows e,i < b * t, columns j < n, terms p,q < h * d"* ]]
    [[ $output == *"left, as it is: x[e,i, p,q] of f32 along p,q"* ]]
    explain --kernel=swapped "$data"
    [[ $output == *"rows i < m, columns e,j < t * n, terms l < k"* ]]
    [[ $output == *"left, as it is: a[l, i] of f32 along i"* ]]
    explain "$specs/grouped.yaml"
    [[ $output == *"; for each h < heads"* ]]
    [[ $output == *"right, as it is: keys[h / group, j, l] of f16 along l"* ]]
    explain --kernel=experts "$data"
    [[ $output == *"right, as it is: w[id[t], l, j] of f16 along j"* ]]
    explain "$specs/conv2d_1x1.yaml"
    [[ $output == *"rows o < cout, columns r,c < h * w, terms i < cin; for each b < n"* ]]
    explain "$specs/tt.yaml"
    [[ $output == *"left, as it is: a[l, i] of f16 along i"*"right, as it is: b[j, l] of f16 along l"* ]]
}

@test "what multiplies follows from the values that factors can have" {
    explain --kernel=mixed "$data"
    [[ $output == *"1 product of tf32, summed as f32"* ]]
    explain --kernel=widened "$data"
    [[ $output == *"1 product of f16, summed as f32"* ]]
    explain --kernel=nibbles "$data"
    [[ $output == *"1 product of int8, summed as i32"*"right, computed: i32(b[l, j]) - 8 of i8 along j, from b of u4"* ]]
    explain --kernel=masked "$data"
    [[ $output == *"1 product of f32, summed as f32"*"right, computed: b[j, l] * s[l] of f32"* ]]
    explain "$specs/tf32.yaml"
    [[ $output == *"1 product of tf32"*"left, as it is but for rounding: tf32(a[i, l]) of f32 along l"* ]]
    explain "$specs/tf32_rz.yaml"
    [[ $output == *"1 product of tf32"*"left, as it is but for bits that are left out: tf32_rz(a[i, l]) of f32 along l"* ]]
    explain "$specs/w4a16.yaml"
    [[ $output == *"1 product of f16"*"right, computed: "*", from w of u4"* ]]
    explain -D T=e5m2 "$specs/fp8.yaml"
    [[ $output == *"1 product of fp8"*"a[i, l] of e5m2"*"b[j, l] of e4m3"* ]]
    explain -D T=f64 "$specs/nn.yaml"
    [[ $output == *"1 product of f64, summed as f64"* ]]
}

@test "products share what they have in common" {
    explain "$specs/qkv.yaml"
    [[ $output == *"3 products of f16"* ]]
    [ "$(grep -c '^  left' <<<"$output")" = 1 ]
    [ "$(grep -c '^  right' <<<"$output")" = 3 ]
    # an intermediate that is read several times is one product
    spec $'a: in f32[m, k]\nb: in f32[k, n]\ny: out f32[m, n]' \
        $'h[i,j] = sum[l](a[i,l] * b[l,j])\ny[i,j] = h[i,j] * h[i,j] + exp(h[i,j])'
    explain k.yaml
    [[ $output == *"1 product of f32"* ]]
}

@test "factors are multiplied in another order where nothing can overflow for it" {
    declared=$'a: in f16[m, k]\nb: in i8[k, n]\nc: in bf16[k, n]\ns: in f32[n]\nt: f32\ny: out f32[m, n]'
    while IFS='|' read -r equation left right math; do
        spec "$declared" "y[i,j] = $equation" "${math:+math: $math}"
        run -0 --separate-stderr kaio-emit --explain -v k.yaml
        [[ $output == *"left, $left along"*"right, $right along"* ]] || {
            echo "$equation: $output"
            false
        }
    done <<'END'
sum[l](-0.5 * f32(b[l,j]) * t * -a[i,l])|as it is: a[i, l] of f16|computed: b[l, j] of f16
sum[l](a[i,l] * f32(b[l,j]) * (1 / t) / 3)|as it is: a[i, l] of f16|computed: b[l, j] of f16
sum[l](a[i,l] * (f32(b[l,j]) * s[j]))|computed: a[i, l] of f32|computed: f32(b[l, j]) * s[j] of f32
sum[l](a[i,l] * (f32(b[l,j]) * s[j]))|as it is: a[i, l] of f16|computed: b[l, j] of f16|fast
sum[l]((a[i,l] * t) * c[l,j])|computed: a[i, l] * t of f32|computed: c[l, j] of f32
sum[l](a[i,l] * c[l,j] * -2)|computed: a[i, l] of f32|computed: c[l, j] of f32
sum[l](a[i,l] * c[l,j] / 0.5)|computed: a[i, l] of f32|computed: c[l, j] of f32
sum[l](a[i,l] * c[l,j] / 0.5 * s[j])|computed: a[i, l] of f32|computed: c[l, j] of f32|fast
sum[l]((l < i ? a[i,l] : 0) * c[l,j])|computed: l < i ? a[i, l] : 0.0 of f32|computed: c[l, j] of f32
END
    while IFS='|' read -r equation math; do
        spec "$declared" "y[i,j] = $equation" "${math:+math: $math}"
        run -0 --separate-stderr kaio-emit --explain -v k.yaml
        [[ $output == *"  no product: line 10: in this order the factors may overflow where in another they would not"*": pairs of f32"* ]] || {
            echo "$equation: $output"
            false
        }
    done <<'END'
sum[l](a[i,l] * c[l,j] * 0.25)
sum[l](a[i,l] * c[l,j] * t)
sum[l](c[l,j] * s[j] * a[i,l] * t)
sum[l](a[i,l] * f32(b[l,j]) * 3)|strict
END
}

@test "what is no contraction says why" {
    two=$'a: in f32[m, k]\nb: in f32[m, k]\nc: in f32[k, n]\ny: out f32[m, n]'
    while IFS='|' read -r equation why; do
        spec "$two" "$equation"
        explain k.yaml
        [[ $output == *"k: not matmul: line 8: $why"* ]] || {
            echo "$equation: $output"
            false
        }
    done <<'END'
y[i,j] = sum[l](a[i,l] * b[i,l])|no factor of the sum depends on 'j', the last index
y[i,j] = sum[l](c[l,j] * c[l,j])|the sum is of no product of one factor with the last index, 'j', and one without
y[i,j] = prod[l](a[i,l] * c[l,j])|prod is no sum of products
y[i,j] = max[l](a[i,l] * 2)|max is no sum of products
y[i,j] = sum[l](a[i,l] * max[p](c[p,j]))|this max is inside a sum
y[i,j] = sum[l < i](pad(a[i,l], 0) * pad(c[l,j], 0))|the range of 'l' is more than 0 to a number known at launch
y[i,j] = sum[l](a[i,l] * c[l,j]) + sum[p < 7](a[i,p] * c[p,j])|'p' has another range than the first sum's
END
    spec $'a: in i16[k]\nb: in i16[k, n]\ny: out i32[n]' 'y[j] = sum[l](a[l] * b[l,j])'
    explain k.yaml
    [[ $output == *"not matmul: line 7: this factor is an integer of more than 8 bits"* ]]
    spec $'a: in i64[m, k]\nb: in i64[k, n]\ny: out i64[m, n]' 'y[i,j] = sum[l](a[i,l] * b[l,j])'
    explain k.yaml
    [[ $output == *"not matmul: line 7: the sum is of i64, not f32, f64 or i32"* ]]
    spec $'x: in f32[h, m, k]\nw: in f32[k, h, n]\ny: out f32[m, n]' 'y[i,j] = sum[p,l](x[p,i,l] * w[l,p,j])'
    explain k.yaml
    [[ $output == *"rows i < m, columns j < n, terms p.l < h * k"* ]]
}

@test "a schedule may only say what there is" {
    while IFS='|' read -r schedule why; do
        run -2 kaio-emit - <<<"$(cat "$specs/nn.yaml"; echo "schedule: $schedule")"
        [[ $output == *"$why"* ]] || {
            echo "$schedule: $output"
            false
        }
    done <<'END'
{strategy: matmul, tile: 64}|'tile' is [ROWS, COLUMNS, TERMS], each from 1 to 65536, not '64'
{strategy: matmul, tile: [64, 64]}|'tile' is [ROWS, COLUMNS, TERMS], each from 1 to 65536, not '[64, 64]'
{strategy: matmul, tile: [64, 64, 4, 2]}|not '[64, 64, 4, 2]'
{strategy: matmul, tile: [64, 64, 99999]}|not '[64, 64, 99999]'
{strategy: matmul, tile: [64, x, 32]}|not '[64, x, 32]'
{strategy: matmul, tile: [64, -64, 32]}|not '[64, -64, 32]'
{strategy: matmul, tile: [99999999999999999999, 64, 32]}|not '[99999999999999999999, 64, 32]'
{strategy: matmul, warps: [2, 64]}|'warps' is [ROWS, COLUMNS], each from 1 to 32, not '[2, 64]'
{strategy: matmul, mma: wmma}|'mma' is none, fma, sync, tf32, tf32x3, f16x3, fp8 or wgmma, not 'wmma'
{strategy: matmul, stages: 99}|'stages' is a number from 1 to 16, not '99'
{strategy: matmul, mma: sync, tile: [64, 64, 32], stages: 9}|stages must be 1 to 8, not 9
{strategy: matmul, split: 0}|'split' is a number from 1 to 256, not '0'
{strategy: matmul, block: 128}|strategy 'matmul' has no 'block'; it takes: mma, tile, warps, stages, split, group, cluster, blocks, pingpong, turn, windows
{strategy: reduce, mma: sync}|strategy 'reduce' does not fit
END
    run -2 kaio-emit - <<<"$(cat "$KAIO_SRCDIR/specs/elementwise/saxpy.yaml"; echo "schedule: {strategy: matmul}")"
    [[ $output == *"strategy 'matmul' does not fit: there is no sum"* ]]
}

@test "rows of a product that is stored are one launch, and products of two shapes two" {
    explain --kernel=mm_softmax "$data"
    [[ $output == *"'s' is stored"*"mm_softmax_s: strategy matmul"*"mm_softmax: strategy row"* ]]
    explain --kernel=gqa_qkv "$data"
    [[ $output == *"gqa_qkv_q: strategy matmul"*"gqa_qkv_k: strategy matmul"*"2 products"* ]]
    explain --kernel=attention "$data"
    [[ $output == *"attention: strategy chain"* ]]
    # the sum does not depend on the first index: once is enough
    explain --kernel=bcast "$data"
    [[ $output == *"bcast_sum: strategy matmul"*"bcast: strategy map"* ]]
}

@test "sums of no terms are zero, and results without elements need no launch" {
    kaio-emit "$specs/bias_gelu.yaml" -D T=f32 >k.ptx
    kaio-run -d cpu k.ptx m=3 n=5 k=0 x=@zeros w=@zeros bias=@ones y=y.bin
    # gelu(1) = 0.8413447
    [ "$(od -An -v -tf4 -w4 y.bin | sort -u | tr -d ' ')" = 0.8413447 ]
    [ "$(od -An -v -tf4 -w4 y.bin | wc -l)" = 15 ]
    kaio-run -d cpu k.ptx m=0 n=5 k=7 x=@zeros w=@zeros bias=@ones y=y.bin
    [ ! -s y.bin ]
}

@test "tf32() rounds to 10 bits, halves away from zero, the same on every target" {
    spec $'x: in u32[n]\ny: out u32[n]' 'y[i] = as_u32(tf32(as_f32(x[i])))'
    # 1 + 2^-10 and about it, ties of both signs, the largest f32, inf, nan, subnormals
    bits=(0x3f800000 0x3f801000 0x3f800fff 0x3f801001 0x3f803000 0xbf801000 0xbf800fff 0x7f7fffff 0x7f7fefff 0x7f800000
        0xff800000 0x7fc00000 0x00001000 0x00000fff 0x80001000 0x007fffff 0x80000000)
    want=(3f800000 3f802000 3f800000 3f802000 3f804000 bf802000 bf800000 7f800000 7f7fe000 7f800000
        ff800000 7fc00000 00002000 00000000 80002000 00800000 80000000)
    for b in "${bits[@]}"; do
        # shellcheck disable=SC2059
        printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((b & 255)) $((b >> 8 & 255)) $((b >> 16 & 255)) $((b >> 24)))"
    done >x.bin
    for target in sm_70 sm_80 sm_90; do
        kaio-emit -t $target k.yaml | kaio-run -d cpu n=${#bits[@]} x=x.bin y=y.bin
        [ "$(od -An -v -tx4 -w4 y.bin | tr -d ' ' | tr '\n' ' ')" = "${want[*]} " ]
    done
    kaio-emit -t sm_80 k.yaml | grep -q cvt.rna.tf32.f32
    kaio-emit -t sm_75 k.yaml >old.ptx
    run ! grep -q tf32.f32 old.ptx
    spec $'x: in f32[n]\ny: out f32[n]' 'y[i] = tf32(x[i] * 3)' 'cases: {odd: {n: 1001}}'
    run -0 kaio-verify --run -d cpu --fill=all k.yaml
    for type in f64 i32; do
        spec "x: in ${type}[n]"$'\ny: out f32[n]' 'y[i] = tf32(x[i])'
        run -2 kaio-emit k.yaml
        [[ $output == *"tf32() is for f32, not $type"* ]]
    done
}

@test "tf32_rz() leaves 13 bits out, the same on every target" {
    spec $'x: in u32[n]\ny: out u32[n]' 'y[i] = as_u32(tf32_rz(as_f32(x[i])))'
    bits=(0x3f800000 0x3f801000 0x3f801fff 0x3f803fff 0xbf801fff 0x7f7fffff 0x7f800000 0xff800000 0x7fc00000 0x7f800001
        0x7fffe123 0x00001fff 0x80003fff 0x007fffff 0x80000000)
    want=(3f800000 3f800000 3f800000 3f802000 bf800000 7f7fe000 7f800000 ff800000 7fc00000 7f800001
        7fffe123 00000000 80002000 007fe000 80000000)
    for b in "${bits[@]}"; do
        # shellcheck disable=SC2059
        printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((b & 255)) $((b >> 8 & 255)) $((b >> 16 & 255)) $((b >> 24)))"
    done >x.bin
    for target in sm_70 sm_90; do
        kaio-emit -t $target k.yaml | kaio-run -d cpu n=${#bits[@]} x=x.bin y=y.bin
        [ "$(od -An -v -tx4 -w4 y.bin | tr -d ' ' | tr '\n' ' ')" = "${want[*]} " ]
    done
    spec $'x: in f32[n]\ny: out f32[n]' 'y[i] = tf32_rz(x[i] * 3)' 'cases: {odd: {n: 1001}}'
    run -0 kaio-verify --run -d cpu --fill=all k.yaml
    spec $'x: in f64[n]\ny: out f32[n]' 'y[i] = tf32_rz(x[i])'
    run -2 kaio-emit k.yaml
    [[ $output == *"tf32_rz() is for f32, not f64"* ]]
    # a constant of the launch
    spec $'y: out f32[n]' 'y[i] = f32(tf32_rz(1.2345f) == 1.234375f)'
    kaio-emit k.yaml | kaio-run -d cpu n=1 y=y.bin
    [ "$(od -An -v -tf4 y.bin | tr -d ' ')" = 1 ]
}

@test "tf32_rn() rounds to 10 bits, halves to even, the same on every target" {
    spec $'x: in u32[n]\ny: out u32[n]' 'y[i] = as_u32(tf32_rn(as_f32(x[i])))'
    bits=(0x3f800000 0x3f801000 0x3f800fff 0x3f801001 0x3f803000 0xbf801000 0xbf803000 0x7f7fffff 0x7f7fefff 0x7f7ff000
        0x7f800000 0xff800000 0x00001000 0x00003000 0x80001001 0x007fffff 0x80000000)
    want=(3f800000 3f800000 3f800000 3f802000 3f804000 bf800000 bf804000 7f800000 7f7fe000 7f800000
        7f800000 ff800000 00000000 00004000 80002000 00800000 80000000)
    for b in "${bits[@]}"; do
        # shellcheck disable=SC2059
        printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((b & 255)) $((b >> 8 & 255)) $((b >> 16 & 255)) $((b >> 24)))"
    done >x.bin
    for target in sm_70 sm_80 sm_90; do
        kaio-emit -t $target k.yaml | kaio-run -d cpu n=${#bits[@]} x=x.bin y=y.bin
        [ "$(od -An -v -tx4 -w4 y.bin | tr -d ' ' | tr '\n' ' ')" = "${want[*]} " ]
    done
    kaio-emit -t sm_90 k.yaml | grep -q cvt.rn.tf32.f32
    spec $'x: in f32[n]\ny: out f32[n]' 'y[i] = tf32_rn(x[i] * 3)' 'cases: {odd: {n: 1001}}'
    for target in sm_80 sm_90; do
        run -0 kaio-verify --run -d cpu -t $target --fill=all k.yaml
    done
}

@test "what tensor cores leave out of factors, fma leaves out, too" {
    for how in tf32_rn tf32_rz; do
        for mma in none sync; do
            spec $'a: in f32[m, k]\nb: in f32[k, n]\nc: out f32[m, n]' \
                "c[i,j] = sum[l]($how(a[i,l]) * $how(b[l,j]))" "schedule: {strategy: matmul, mma: $mma}"
            run -0 kaio-verify --run -d cpu -t sm_80 k.yaml m=67 n=130 k=36
            run -0 kaio-verify --run -d cpu -t sm_80 k.yaml m=5 n=132 k=36
        done
    done
    # tensor cores do it by themselves
    [ "$(kaio-emit -t sm_80 k.yaml | grep -c 'cvt.rna')" = 0 ]
    kaio-emit -t sm_80 k.yaml | grep -q 'mma.sync.aligned.m16n8k8.row.col.f32.tf32'
}

@test "dozens of products, of which each is a stage, are one module" {
    {
        printf 'kernel: many\nparams:\n  a: in f32[m, k]\n  b: in f32[k, n]\n'
        for i in {0..39}; do
            printf '  y%s: out f32[m, n]\n' "$i"
        done
        printf 'compute: |\n'
        for i in {0..39}; do
            printf '  y%s[i,j] = sum[l](a[i,l] * b[l,j] * %s) + sum[p < k - %s](a[i,p] * b[p,j])\n' "$i" $((i + 1)) $((i + 1))
        done
    } >many.yaml
    run -0 kaio-emit --explain -v many.yaml
    [ "$(grep -c 'strategy matmul$' <<<"$output")" -ge 40 ]
    [[ $output != *"strategy naive"* ]]
}

@test "a cast that would let tensor cores in is named, and where there is none nothing is said" {
    cd "$BATS_TEST_TMPDIR"
    spec() { # TYPE of x, TYPE of y, EXPRESSION [SCHEDULE]
        printf '%s\n' 'kernel: k' 'params:' "  x: in $1[m, k]" "  y: in $2[k, n]" '  z: out f32[m, n]' "${4:-compute: |}" \
            ${4:+'compute: |'} "  z[i, j] = sum[l]($3)" >k.yaml
    }
    told() { run -0 --separate-stderr kaio-emit "$@" k.yaml; }
    for t in f16 bf16; do
        spec f32 $t 'x[i, l] * y[l, j]'
        told -t sm_80
        [[ $stderr == *"k.yaml:7:20: warning: tensor cores do not multiply this, which is f32, by what is $t; they do if it is rounded: $t(x[i, l])"* ]]
        spec f32 $t "$t(x[i, l]) * y[l, j]"
        told -t sm_80
        [[ -z $stderr ]]
        kaio-emit -t sm_80 --explain k.yaml | grep -q "mma.sync of $t"
        spec $t f32 'x[i, l] * exp(y[l, j])'
        told -t sm_90a
        [[ $stderr == *"they do if it is rounded: $t(exp(y[l, j]))"* ]]
    done
    # none of these has an operand that they would take, or wants them, or is for them
    spec f32 f32 'x[i, l] * y[l, j]'
    told -t sm_80
    [[ -z $stderr ]]
    spec f16 bf16 'x[i, l] * y[l, j]'
    told -t sm_80
    [[ -z $stderr ]]
    spec f32 f16 'x[i, l] * y[l, j]' 'schedule: {strategy: matmul, mma: none}'
    told -t sm_80
    [[ -z $stderr ]]
    spec f32 f16 'x[i, l] * y[l, j]'
    told -t sm_70
    [[ -z $stderr ]]
    told -t sm_80 -D m=4
    [[ -z $stderr ]]
    spec f32 f16 'abs(x[i, l] - y[l, j])'
    told -t sm_80
    [[ -z $stderr ]]
}
