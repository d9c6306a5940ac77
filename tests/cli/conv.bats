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
    # shellcheck disable=SC2086
    run -0 kaio-verify --run -d cpu --check ${KAIO_QUICK:+$some} -t sm_90a "$data"
    [ -n "${KAIO_QUICK-}" ] || some=--fill=exact
    # shellcheck disable=SC2086
    run -0 kaio-verify --run -d cpu --check $some -t sm_80 "$data"
}

@test "no convolution is left to naive, with open sizes or fixed ones" {
    for target in sm_80 sm_90a; do
        run -0 --separate-stderr kaio-emit -t $target --explain -v "$data"
        [[ $output != *"strategy naive"* ]]
        [[ $stderr != *slow* ]]
        for kernel in $(sed -n 's/^kernel: //p' "$data"); do
            grep -qE "^ *${kernel}(_phase[_0-9]*)?: strategy matmul" <<<"$output"
        done
    done
}

@test "pixels of all images are the rows, and a window's terms are one range" {
    run -0 kaio-emit --explain -v --kernel=nhwc "$data"
    [[ $output == *"rows b.i.j < n * (h * w), columns o < f, terms u.v.d < r * (s * c)"* ]]
    run -0 kaio-emit --explain -v --kernel=nchw "$data"
    [[ $output == *"columns i.j < "*", terms u.v.d < r * (s * c); for each b < n"* ]]
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
    # two warpgroups that end a tile one after the other go on, though windows that threads copy are handed over later
    for n in 3 6; do
        cat >k.yaml <<END
kernel: k
params: {x: 'in f16[n, h, w, c]', k: 'in f16[f, 3, 3, c]', y: 'out f16[n, h, w, f]'}
compute: y[b,i,j,o] = sum[u,v,d](pad(x[b, i + u - 1, j + v - 1, d], 0) * k[o,u,v,d])
schedule: {windows: threads, tile: [128, 16, 64], stages: $n, cluster: [2, 1], blocks: 2}
END
        run -0 kaio-verify --run -d cpu -t sm_90a --check --code=fixed --fill=normal k.yaml n=2 h=12 w=12 c=64 f=16
    done
}

@test "images of many pixels are the rows of tiles, as long as subscripts fit; else --explain says why not" {
    sed -n '1,/^---/{/^---/d;p}' "$data" >k.yaml
    run -0 kaio-emit -t sm_90a --explain -v -D n=8192 -D h=256 -D w=256 -D c=16 -D f=16 -D r=3 -D s=3 k.yaml
    [[ $output == *"rows b.i.j < 536870912"* && $output == *"tiles"* && $output != *"one thread for each"* ]]
    run -0 kaio-emit -t sm_90a --explain -v -D n=40000 -D h=256 -D w=256 -D c=16 -D f=16 -D r=3 -D s=3 k.yaml
    [[ $output == *"not by tiles: more than 2000000000 rows, columns or terms"*"one thread for each"* ]]
}

@test "channels of groups that are counted by one axis, o / f * c + d, are products for each group" {
    cat >g.yaml <<'END'
kernel: planes
params: {x: 'in f16[n, g * c, h, w]', k: 'in f16[g * f, c, 3, 3]', y: 'out f16[n, g * f, h, w]'}
compute: |
  y[b,o,i,j] = sum[d,u,v](pad(x[b, o / f * c + d, i + u - 1, j + v - 1], 0) * k[o,d,u,v])
cases: {a: {n: 2, g: 3, c: 8, f: 9, h: 4, w: 5}, b: {n: 1, g: 2, c: 5, f: 4, h: 3, w: 6}}
---
kernel: pixels
params: {x: 'in f16[n, h, w, 24]', k: 'in f16[36, 3, 3, 8]', bias: 'in f32[36]', y: 'out f16[n, h, w, 36]', z: 'out f16[n, h, w, 36]'}
compute: |
  s[b,i,j,o] = sum[u,v,d](pad(x[b, i + u - 1, j + v - 1, d + 8 * (o / 12)], 0) * k[o,u,v,d]) + bias[o]
  y[b,i,j,o] = relu(s[b,i,j,o])
  z[b,i,j,o] = f16(o % 12 + o)
cases: {a: {n: 2, h: 4, w: 5}}
---
kernel: other_pad
params: {x: 'in f32[n, 2 * c, l]', k: 'in f32[g * f, c, 3]', y: 'out f32[n, g * f, l]'}
compute: |
  y[b,o,i] = sum[d,u](tf32(pad(x[b, o / f * c + d, i + u - 1], 7)) * tf32(k[o,d,u]))
cases: {a: {n: 2, g: 3, c: 4, f: 5, l: 9}}
END
    run -0 kaio-emit -t sm_90a --explain -v g.yaml
    [ "$(grep -c ': strategy matmul' <<<"$output")" -eq 3 ]
    [[ $output == *"rows o < f, columns i.j < h * w, terms u.v.d < 3 * (3 * c); for each b < n, o_group < g"* ]]
    for target in sm_80 sm_90a; do
        run -0 kaio-verify --run -d cpu --check -t $target ${KAIO_QUICK:+--code=generic --fill=normal} g.yaml
    done
    # where a group's filters may leave a rest it is one axis still
    sed 's/g \* f/f/; s/g \* f/f/; s,o / f,o / 4,' g.yaml | sed '/^---/,$d' >rest.yaml
    run -0 kaio-emit -t sm_90a --explain -v rest.yaml
    [[ $output != *o_group* ]]
    run -0 kaio-emit -t sm_90a --explain -v -D f=12 rest.yaml
    [[ $output == *"o_group < 3"* ]]
}

@test "a condition that makes terms 0 makes a factor 0 of integers, which are never infinite" {
    run -0 kaio-emit -t sm_90a --explain -v --kernel=zeroed "$data"
    [[ $output == *"1 product of int8, summed as i32"* ]]
    cat >c.yaml <<'END'
kernel: c
params: {x: 'in f16[n, c, h]', k: 'in f16[c, f, r]', y: 'out f16[n, f, h]'}
compute: |
  y[b,o,i] = sum[d,u](i >= u ? pad(x[b, d, i - u], 0) * k[d,o,u] : 0)
END
    run -0 kaio-emit -t sm_90a --explain -v c.yaml
    [[ $output == *"no product"* ]]
}

@test "a strided transposed convolution is a product for each phase, whose terms are all met" {
    run -0 kaio-emit -t sm_90a --explain -v -D T=f16 -D r=3 -D s=3 --kernel=transposed "$data"
    for phase in 0_0 0_1 1_0 1_1; do
        [[ $output == *"transposed_phase_$phase: strategy matmul"* ]]
    done
    [[ $output != *"no product"* ]]
    # with padding, gaps, conditions in place of pad(), other strides along other axes, groups, and phases of no term
    cd "$BATS_TEST_TMPDIR"
    local few=
    [ -z "${KAIO_QUICK-}" ] || few='--code=generic --fill=normal'
    for target in sm_80 sm_90a; do
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --check $few -t $target "$KAIO_SRCDIR/tests/data/phases.yaml"
    done
    # with a gap that has a divisor in common with the stride other elements are nothing but the bias
    for gap in '2 \* u) % 2 == 0' '4 \* u) % 6 == 0' '6 \* u) % 3 == 0'; do
        sed "s/3 \* u) % 2 == 0/$gap/; s,3 \* u) / 2,${gap% % *} / $(sed 's/.*% \(.\).*/\1/' <<<"$gap")," "$KAIO_SRCDIR/tests/data/phases.yaml" | sed '/^---/,$d' >k.yaml
        run -0 kaio-emit --explain k.yaml
        [[ $output == *phase* ]]
        run -0 kaio-verify --run -d cpu --check --code=generic --fill=normal -t sm_80 k.yaml
    done
}

@test "only what whole terms have to meet leaves terms of a stride away" {
    cd "$BATS_TEST_TMPDIR"
    cat >k.yaml <<'END'
kernel: other_factor
params: {x: 'in f16[h, c]', w: 'in f16[4, c, f]', y: 'out f16[2*h + 3, f]'}
compute: |
  y[i, o] = sum[u, d]((i - u) % 2 == 0 ? (i - u >= 0 ? w[u, d, o] : 0) * pad(x[(i - u) / 2, d], 0) : 0)
---
kernel: whole_product
params: {x: 'in f16[h, c]', w: 'in f16[3, c, f]', s: 'f32 = 0.5', y: 'out f16[2*h + 1, f]'}
compute: |
  y[i, o] = f16(sum[u, d]((i - u) % 2 == 0 ? s * ((i - u) / 2 < h ? f32(pad(x[(i - u) / 2, d], 0)) * f32(w[u, d, o]) : 0) : 0))
---
kernel: factor
params: {x: 'in f16[h, c]', w: 'in f16[3, c, f]', y: 'out f16[2*h + 1, f]'}
compute: |
  y[i, o] = sum[u, d](((i - u) % 2 == 0 ? pad(x[(i - u) / 2, d], 0) : 0) * w[u, d, o])
END
    run -0 kaio-emit --explain --kernel=factor k.yaml
    [[ $output != *phase* ]]
    run -0 kaio-verify --run -d cpu --fill=edge,extreme k.yaml h=5 c=16 f=16
    # what is infinite at a border that its condition leaves out
    python3 -c "
import struct
open('x.bin', 'wb').write(struct.pack('<80e', *[1] * 80))
open('w.bin', 'wb').write(struct.pack('<1024e', *[float('inf') if i // 256 == 2 else 1 for i in range(1024)]))"
    kaio-emit --kernel=other_factor k.yaml | kaio-run -q -d cpu - h=5 c=16 f=16 x=x.bin w=w.bin y=y.bin
    [ "$(python3 -c "import struct; print(struct.unpack('<208e', open('y.bin', 'rb').read())[0])")" = 16.0 ]
    # of open sizes no more phases than a contract can tell apart
    cat >k.yaml <<'END'
kernel: k
params: {x: 'in f16[n, c, t, h, w]', k: 'in f16[c, f, q, r, s]', y: 'out f16[n, f, 2*t + q, 2*h + r, 2*w + s]'}
compute: |
  y[b, o, l, i, j] = sum[d, p, u, v]((l - p) % 2 == 0 && (i - u) % 2 == 0 && (j - v) % 2 == 0 ? pad(x[b, d, (l - p)/2, (i - u) / 2, (j - v) / 2], 0) * k[d, o, p, u, v] : 0)
END
    run -0 kaio-verify --run -d cpu --check --fill=exact k.yaml n=1 c=1 t=2 h=2 w=2 f=2 q=2 r=2 s=2
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

# A spec of convolutions of planes, of so many dimensions and this type.
planes() { # dimensions type [schedule]
    local i=(i j l) u=(u v t) h=(h w q) r=(r s z) in='' out='' window='' filter='' at='' n
    for ((n = 0; n < $1; n++)); do
        in+=", ${h[n]}" filter+=", ${r[n]}" at+=",${u[n]}"
        out+=", (${h[n]} + 2 * (${r[n]} / 2) - (${r[n]} - 1) * e - 1) / g + 1"
        window+=", g * ${i[n]} + e * ${u[n]} - ${r[n]} / 2"
    done
    local x="pad(x[b, d$window], 0)" k="k[o,d$at]" t=$2
    [ "$t" != tf32 ] || { x="tf32($x)" k="tf32($k)" t=f32; }
    [ "$t" != f16_of_f32 ] || { x="f16($x)" k="f16($k)" t=f32; }
    local index=${i[*]:0:$1}
    cat <<END
kernel: planes
params: {x: 'in ${t}[n, c$in]', k: 'in ${t}[f, c$filter]', y: 'out f32[n, f$out]'}
compute: y[b,o,${index// /,}] = sum[d$at]($x * $k)
${3:+schedule: $3}
END
}

@test "channels of planes come to lie side by side by a launch of their own, and filters" {
    planes 2 f16 >k.yaml
    run -0 kaio-emit -t sm_90a --explain -v -D n=64 -D c=64 -D h=56 -D w=56 -D f=64 -D r=3 -D s=3 -D e=1 -D g=1 k.yaml
    [[ $output == *"'x' is turned in a launch of its own: 25690112 bytes"* ]]
    [[ $output == *"'k' is turned in a launch of its own: 73728 bytes"* ]]
    [[ $output == *"terms u.v.d < 576; for each b < n"* ]]
    [[ $output == *"left, as it is: k[o, u.v.d]"*"right, gathered: pad(x[b, "*"planes: wgmma of f16"* ]]
    [ "$(grep -c '^  launch ' <<<"$output")" -eq 3 ]
    # not where that would take longer, or a schedule says no, or a target has no cp.async
    planes 2 f16 '{turn: no}' >no.yaml
    run -0 kaio-emit -t sm_90a --explain -v no.yaml
    [[ $output != *turned* && $output == *"terms d.u.v < "* ]]
    run -0 kaio-emit -t sm_90a --explain -v -D n=1 -D c=64 -D h=4 -D w=4 -D f=64 -D r=1 -D s=1 -D e=1 -D g=2 k.yaml
    [[ $output != *turned* ]]
    run -0 kaio-emit -t sm_75 --explain -v k.yaml
    [[ $output != *turned* ]]
    # f32 is turned only on demand
    planes 2 f32 >k.yaml
    run -0 kaio-emit -t sm_90a --explain -v k.yaml
    [[ $output != *turned* ]]
    planes 2 f32 '{turn: yes}' >k.yaml
    run -0 kaio-emit -t sm_90a --explain -v k.yaml
    [[ $output == *"'x' is turned in a launch of its own: 4 * n"* ]]
}

@test "what rounds does so while it is turned, and few channels are filled up with zeros" {
    local size='-D n=16 -D c=3 -D h=64 -D w=64 -D f=64 -D r=7 -D s=7 -D e=1 -D g=1'
    planes 2 tf32 '{turn: yes}' >k.yaml
    # shellcheck disable=SC2086
    run -0 kaio-emit -t sm_90a --explain -v $size k.yaml
    [[ $output == *"'x' is turned in a launch of its own: 1048576 bytes"* ]] # of 4 channels
    [[ $output == *"terms u.v.d < 196;"*"left, as it is but for bits that are left out: tf32_rz(k["* ]]
    planes 2 f16_of_f32 '{turn: yes}' >k.yaml
    # shellcheck disable=SC2086
    run -0 kaio-emit -t sm_90a --explain -v ${size/c=3/c=9} k.yaml
    [[ $output == *"'x' is turned in a launch of its own: 2097152 bytes"* ]] # 16 of f16
    [[ $output == *"1 product of f16, summed as f32"*"left, as it is: k["* ]]
}

@test "a row of a window with few channels comes to lie side by side as a whole" {
    cat >rows.yaml <<'END'
kernel: line
params: {x: 'in f16[n, 3, l]', k: 'in f16[f, 3, 5]', y: 'out f16[n, f, (l + 1) / 2]'}
compute: 'y[b,o,i] = sum[d,u](pad(x[b, d, 2*i + u - 2], 0) * k[o,d,u])'
schedule: {turn: yes}
cases: {a: {n: 3, l: 19, f: 9}}
---
kernel: backwards
params: {x: 'in bf16[n, h, w, 2]', k: 'in bf16[2, 3, 4, f]', y: 'out f32[n, h, w, f]'}
compute: 'y[b,i,j,o] = sum[u,v,d](pad(x[b, i - u + 1, j - 2*v + 3, d], 0) * k[d,u,v,o])'
schedule: {turn: yes}
cases: {a: {n: 2, h: 5, w: 7, f: 17}}
---
kernel: no_border
params: {x: 'in f32[n, 3, h, w]', k: 'in f32[f, 3, 3, 3]', bias: 'in f32[f]', y: 'out f32[n, f, h - 2, w - 2]'}
compute: 'y[b,o,i,j] = relu(sum[d,u,v](tf32(x[b, d, i + u, j + v]) * tf32(k[o,d,u,v])) + bias[o])'
schedule: {turn: yes}
cases: {a: {n: 2, h: 6, w: 9, f: 24}}
---
kernel: bytes
params: {x: 'in i8[n, h, w, 3]', k: 'in i8[f, 3, 3, 3]', y: 'out i32[n, h, w, f]'}
compute: 'y[b,i,j,o] = sum[u,v,d](pad(x[b, i + u - 1, j + v - 1, d], 0) * k[o,u,v,d])'
schedule: {turn: yes}
cases: {a: {n: 2, h: 5, w: 7, f: 12}}
---
kernel: volume
params: {x: 'in f16[n, 1, e, h, w]', k: 'in f16[f, 1, 3, 2, 3]', y: 'out f16[n, f, e, h - 1, w]'}
compute: 'y[b,o,l,i,j] = sum[d,t,u,v](pad(x[b, d, l + t - 1, i + u, j + v - 1], 0) * k[o,d,t,u,v])'
schedule: {turn: yes}
cases: {a: {n: 1, e: 3, h: 4, w: 5, f: 9}}
END
    run -0 kaio-emit -t sm_90a --explain -v rows.yaml
    [[ $output == *"terms u_d < 16;"*"terms u.v_d < 24"*"terms u.v_d < 36;"*"terms u.v_d < 48"*"terms t.u.v_d < 48;"* ]]
    for target in sm_80 sm_90a; do
        run -0 kaio-verify --run -d cpu --check -t $target ${KAIO_QUICK:+--code=generic --fill=normal} rows.yaml
    done
    # the 3 channels of an image's pixels, without being told
    run -0 kaio-emit -t sm_90a --explain -v -D T=f16 -D n=64 -D h=224 -D w=224 -D f=64 "$KAIO_SRCDIR/specs/conv/conv2d_stem.yaml"
    [[ $output == *"turned in a launch of its own"*"terms u.v_d < 168"* ]]
}

@test "'turn' is refused where nothing can be turned" {
    cat >k.yaml <<'END'
kernel: k
params: {x: 'in f16[m, k]', w: 'in f16[k, n]', y: 'out f32[m, n]'}
compute: y[i,j] = sum[t](x[i,t] * w[t,j])
schedule: {turn: yes}
END
    run -2 kaio-emit k.yaml
    [[ $output == *"k.yaml:4:18: error: nothing can be turned: 'turn' is for sums of products of a window"* ]]
    sed -i 's/turn: yes/turn: maybe/' k.yaml
    run -2 kaio-emit k.yaml
    [[ $output == *"'turn' is yes or no, not 'maybe'"* ]]
}

@test "turned convolutions are right for any batch, channels, filters, strides and gaps" {
    RANDOM=${KAIO_SEED:-7}
    local target size n=12
    [ -z "${KAIO_QUICK-}" ] || n=2
    while ((n-- > 0)); do
        for type in f16 bf16 tf32 f16_of_f32; do
            local rank=$((RANDOM % 3 + 1)) e=$((RANDOM % 2 + 1)) g=$((RANDOM % 3 + 1)) names=(h w q) k=(r s z)
            local c=$((RANDOM % 2 ? RANDOM % 13 + 1 : RANDOM % 3 * 8 + 8))
            size="n=$((RANDOM % 4 + 1)) c=$c f=$((RANDOM % 40 + 1)) e=$e g=$g"
            for ((i = 0; i < rank; i++)); do
                local taps=$((RANDOM % (rank == 1 ? 7 : 8 - 2 * rank) + 1))
                size+=" ${k[i]}=$taps ${names[i]}=$(((taps - 1) * e + 1 + RANDOM % (rank == 3 ? 3 : 6)))"
            done
            planes $rank $type '{turn: yes}' >k.yaml
            target=sm_$((n % 2 ? 80 : 90))
            target=${target/90/90a}
            # shellcheck disable=SC2086
            run -0 kaio-verify --run -d cpu --check -t $target --fill=normal k.yaml $size
        done
    done
}

@test "windows of one image's pixels come by TMA, and a cluster's tiles behind the last of them are none" {
    cat >k.yaml <<'END'
kernel: k
params: {x: 'in f16[n, c, h, w]', k: 'in f16[f, c, 3, 3]', y: 'out f16[n, f, h / 2, w / 3]'}
compute: y[b,o,i,j] = sum[d,u,v](pad(x[b, d, 2*i + u - 1, 3*j - 2*v + 2], 0) * k[o,d,u,v])
schedule: {turn: yes, mma: wgmma, tile: [64, 64, 64], cluster: [1, 2]}
END
    run -0 kaio-emit -t sm_90a --explain -v -D n=3 -D c=64 -D h=20 -D w=33 -D f=72 k.yaml
    [[ $output == *"columns i.j < 110,"*"for each b < n"*"right windows by TMA, clusters of 1 x 2"* ]]
    run -0 kaio-verify --run -d cpu -t sm_90a --check --code=fixed --fill=normal k.yaml n=3 c=64 h=20 w=33 f=24
    run -0 kaio-verify --run -d cpu -t sm_90a --check --code=fixed --fill=normal k.yaml n=2 c=64 h=8 w=18 f=24
}

@test "what tf32() rounds is rounded in a launch of its own where wgmma would wait for that" {
    sed -n '/^kernel: nhwc_tf32/,/^---/{/^---/d;/^cases/,$d;p}' "$data" >k.yaml
    run -0 kaio-emit -t sm_90a --explain -v -D n=8 -D h=64 -D w=64 -D c=320 -D f=320 k.yaml
    [[ $output == *"'k' is turned in a launch of its own: 3686400 bytes"*"left, gathered: tf32(pad(x["*"right, as it is but for bits that are left out: tf32_rz(k["* ]]
    [[ $output != *"'x' is turned"* ]]
    run -0 kaio-emit -t sm_80 --explain -v -D n=8 -D h=64 -D w=64 -D c=320 -D f=320 k.yaml
    [[ $output != *"is turned"* ]]
    echo 'schedule: {turn: yes}' >>k.yaml
    run -0 kaio-emit -t sm_90a --explain -v k.yaml
    [[ $output == *"is turned in a launch of its own"* ]]
    run -0 kaio-verify --run -d cpu --check -t sm_90a --fill=normal k.yaml n=2 h=5 w=7 c=5 f=9
    run -0 kaio-verify --run -d cpu --check -t sm_90a --code=fixed --fill=normal k.yaml n=2 h=9 w=8 c=32 f=40
}

@test "tiles that the columns of windows fit are taken: 160 of 320 filters, and of planes as an instruction's columns" {
    run -0 kaio-emit -t sm_90a --explain -v -D T=f16 -D n=8 -D c=320 -D h=64 -D w=64 -D f=320 -D r=3 -D s=3 --kernel=nhwc "$data"
    [[ $output == *"tiles 256 x 160 x 64 "* ]]
    planes 2 tf32 >k.yaml
    run -0 kaio-emit -t sm_90a --explain -v -D n=8 -D c=320 -D h=64 -D w=64 -D f=320 -D r=3 -D s=3 -D e=1 -D g=1 k.yaml
    [[ $output == *"tiles 160 x 128 x 32 of 160 x 64,"*"computed turned"* ]]
}

@test "pixels of all images are the columns where one image's tiles would be mostly empty" {
    planes 2 f16 >k.yaml
    run -0 kaio-emit -t sm_90a --explain -v -D n=64 -D c=512 -D h=7 -D w=7 -D f=512 -D r=3 -D s=3 -D e=1 -D g=1 k.yaml
    [[ $output == *"rows o < f, columns b.i.j < 3136, terms u.v.d < 4608"* ]]
    [[ $output != *"for each b"* ]]
    run -0 kaio-emit -t sm_90a --explain -v -D n=64 -D c=64 -D h=56 -D w=56 -D f=64 -D r=3 -D s=3 -D e=1 -D g=1 k.yaml
    [[ $output == *"columns i.j < 3136, terms u.v.d < 576; for each b < n"* ]]
    # with a residual, in every way of multiplying, split and by turns
    for mma in 'mma: wgmma' 'mma: wgmma, tile: [64, 64, 64], split: 2' 'mma: sync' 'mma: sync, split: 2' 'mma: sync, blocks: 2' 'mma: fma'; do
        cat >r.yaml <<END
kernel: residual
params: {x: 'in f16[n, c, h, w]', k: 'in f16[f, c, 3, 3]', r: 'in f16[n, f, h, w]', bias: 'in f32[f]', y: 'out f16[n, f, h, w]'}
compute: y[b,o,i,j] = relu(sum[d,u,v](pad(x[b, d, i + u - 1, j + v - 1], 0) * k[o,d,u,v]) + bias[o] + r[b,o,i,j])
schedule: {strategy: matmul, turn: yes, $mma}
END
        run -0 kaio-verify --run -d cpu --check -t sm_90a --code=fixed --fill=normal r.yaml n=5 c=16 h=6 w=6 f=72
        run -0 kaio-verify --run -d cpu --check -t sm_90a --code=fixed --fill=normal r.yaml n=3 c=8 h=5 w=7 f=40
    done
}

@test "32 filters of many pixels of planes go by mma.sync in tiles of 32 x 256, more of them by wgmma" {
    cd "$BATS_TEST_TMPDIR"
    local spec=$KAIO_SRCDIR/specs/conv/conv2d_tf32.yaml sizes=(-D n=8 -D c=32 -D h=128 -D w=128 -D r=3 -D s=3)
    [[ $(kaio-emit -t sm_90a --explain "${sizes[@]}" -D f=32 "$spec") == *"mma.sync of tf32, tiles 32 x 256 x 32"* ]]
    [[ $(kaio-emit -t sm_90a --explain "${sizes[@]}" -D f=64 "$spec") == *"wgmma of tf32, tiles "* ]]
    run -0 kaio-emit -t sm_90a --explain -v "${sizes[@]}" -D f=32 "$spec"
    [[ $output == *"not wgmma: so few filters leave half of it idle"* ]]
}
