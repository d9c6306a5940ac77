# Convolutions: sums over several ranges, of operands whose subscripts are sums of indices, are products.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    data=$KAIO_SRCDIR/tests/data/conv.yaml
}

@test "convolutions give what their equations say, under every check" {
    local some='--code=generic --fill=normal'
    # shellcheck disable=SC2086
    run -0 kaio-verify --run -d cpu --check $some -t sm_70 "$data"
    for target in sm_80 sm_90a; do
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --check ${KAIO_QUICK:+$some} -t $target "$data"
    done
}

@test "no convolution is left to naive, with open sizes or fixed ones" {
    for target in sm_80 sm_90a; do
        run -0 --separate-stderr kaio-emit -t $target --explain -v "$data"
        [[ $output != *"strategy naive"* ]]
        [[ $stderr != *slow* ]]
        [ "$(grep -c 'strategy matmul' <<<"$output")" -eq "$(grep -c '^kernel' "$data")" ]
    done
}

@test "pixels of all images are the rows, and a window's terms are one range" {
    run -0 kaio-emit --explain -v --kernel=nhwc "$data"
    [[ $output == *"rows b.i.j < n * (h * w), columns o < f, terms u.v.d < r * (s * c)"* ]]
    run -0 kaio-emit --explain -v --kernel=nchw "$data"
    [[ $output == *"columns i.j < "*", terms d.u.v < c * (r * s); for each b < n"* ]]
    run -0 kaio-emit --explain -v --kernel=to_k "$data"
    [[ $output == *"rows o < f, columns u.v.d < "*", terms b.i.j < n * (h * w)"* ]]
}

@test "a window is copied as it lies, 16 bytes at once or 4, and what is outside is 0" {
    kaio-emit -t sm_80 -D n=64 -D h=28 -D w=28 -D c=64 -D f=64 -D r=3 -D s=3 --kernel=nhwc "$data" >k.ptx
    [ "$(grep -c 'ld.global' k.ptx)" -eq 1 ] # of the bias
    [ "$(grep -c 'cp.async.cg.shared.global.* 16, %r' k.ptx)" -ge 8 ]
    # quotients of a tile are found once, not for each of the pieces that a thread copies
    sed -n '/^$tile_3:/,/bra .*$tile_3/p' k.ptx >loop.ptx
    [ "$(grep -c 'cp.async.cg.shared.global' loop.ptx)" -ge 8 ]
    [ "$(grep -cE 'div|rem' loop.ptx)" -le 4 ]
    # of other types and sizes, too
    kaio-emit -t sm_80 -D n=64 -D h=28 -D w=28 -D c=64 -D f=64 --kernel=nhwc_s8 "$data" >k.ptx
    run ! grep ld.global k.ptx
    run -0 kaio-emit -t sm_80 --explain -v --kernel=nhwc_tf32 "$data"
    [[ $output == *"left, gathered: tf32(pad(x["* ]]
}

@test "a ring of windows goes on from tile to tile, in any number of stages" {
    local fills=
    [ -z "${KAIO_QUICK-}" ] || fills='--code=generic --fill=normal'
    while read -r tile; do
        sed -n '1,/^---/{/^---/d;/^cases/,$d;p}' "$data" >k.yaml
        echo "schedule: {strategy: matmul, mma: wgmma, $tile}" >>k.yaml
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu -t sm_90a --check $fills k.yaml n=3 h=9 w=11 c=72 f=72 r=3 s=3
    done <<'END'
tile: [64, 64, 64], stages: 2, blocks: 2
tile: [128, 64, 64], stages: 3, blocks: 2
tile: [64, 64, 64], stages: 5, blocks: 3, pingpong: yes
tile: [128, 64, 64], stages: 4, cluster: 2, blocks: 2
tile: [64, 64, 64], stages: 4, split: 2
tile: [128, 64, 128], stages: 3, blocks: 2
END
}

@test "a condition that makes terms 0 makes a factor 0 of integers, which are never infinite" {
    run -0 kaio-emit -t sm_90a --explain -v --kernel=zeroed "$data"
    [[ $output == *"1 product of int8, summed as i32"* ]]
    run -0 kaio-emit -t sm_90a --explain -v -D T=f16 --kernel=transposed "$data"
    [[ $output == *"no product"* ]]
}

@test "places by quotients and rests that do not fit each other are right, and what a condition guards is not read without it" {
    cd "$BATS_TEST_TMPDIR"
    cat >s.yaml <<'END'
kernel: wraps_inside
params: {x: 'in f16[m, 2, 8]', w: 'in f16[24, n]', y: 'out f32[m, n]'}
compute: y[i,j] = sum[t](x[i, t % 12 / 8, t % 8] * w[t,j])
cases: {a: {m: 64, n: 64}}
---
kernel: rest_of_rest
params: {x: 'in f16[m, 8]', w: 'in f16[24, n]', y: 'out f32[m, n]'}
compute: y[i,j] = sum[t](x[i, t % 20 % 8] * w[t,j])
cases: {a: {m: 64, n: 64}}
---
kernel: rest_of_quotient
params: {x: 'in f16[m, 16]', w: 'in f16[48, n]', y: 'out f32[m, n]'}
compute: y[i,j] = sum[t](x[i, t / 3 % 16] * w[t,j])
cases: {a: {m: 64, n: 64}}
---
kernel: guards
params: {x: 'in i8[m, k]', w: 'in i8[h, n]', y: 'out i32[m, n]'}
compute: 'y[i,j] = sum[d](d < h ? i32(x[i,d]) * i32(w[d,j]) : 0)'
cases: {a: {m: 64, n: 64, k: 40, h: 24}}
---
kernel: guards_roots
math: fast
params: {x: 'in f16[m, k]', w: 'in f16[k, n]', s: 'in f32[k]', y: 'out f32[m, n]'}
compute: 'y[i,j] = sum[d](s[d] > 0 ? f32(x[i,d]) * f32(w[d,j]) * rsqrt(s[d]) : 0)'
cases: {a: {m: 32, n: 32, k: 64}}
END
    for target in sm_80 sm_90a; do
        run -0 kaio-verify --run -d cpu --check -t $target s.yaml
        [[ ${lines[-1]} == *' passed, 0 failed, '* ]]
    done
}
