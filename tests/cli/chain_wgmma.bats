# Strategy chain by wgmma: attention on sm_90a, on the simulator and by ptxas.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    few=
    [ -z "${KAIO_QUICK-}" ] || few='--code=fixed --fill=normal'
}

# attention NAME Q K V SCORE RANGE: appends a spec to k.yaml of these operands, as they are declared and read. R stands for the
# product in SCORE; j is in RANGE.
attention() {
    local product="sum[c](q[${2#*:}] * k[${3#*:}]) * 0.3"
    cat >>k.yaml <<END
---
kernel: $1
types: {T: [f16, bf16]}
params: {q: "in T[${2%%:*}]", k: "in T[${3%%:*}]", v: "in T[${4%%:*}]", w: i32, o: "out T[b, hq, m, e]", lse: "out f32[b, hq, m]"}
schedule: {strategy: chain, mma: wgmma}
compute: |
  s[z,h,i,j] = ${5//R/$product}
  top[z,h,i] = max[j$6](s[z,h,i,j])
  p[z,h,i,j] = exp(s[z,h,i,j] - top[z,h,i])
  total[z,h,i] = sum[j$6](p[z,h,i,j])
  o[z,h,i,c] = sum[j$6](T(p[z,h,i,j]) * v[${4#*:}]) / total[z,h,i]
  lse[z,h,i] = top[z,h,i] + log(total[z,h,i])
END
    [[ $3 != *hk* ]] || echo 'require: hq % hk == 0' >>k.yaml
}

# cases TEXT: of the spec before
cases() {
    printf 'cases: {%s}\n' "$1" >>k.yaml
}

heads=('b,hq,m,d:z,h,i,c' 'b,hk,n,d:z, h / (hq / hk), j, c' 'b,hk,n,e:z, h / (hq / hk), j, c')
plain=('b,hq,m,d:z,h,i,c' 'b,hq,n,d:z,h,j,c' 'b,hq,n,e:z,h,j,c')

# judged [OPTION]...: k.yaml, under every check
judged() {
    run -0 kaio-emit --explain -t sm_90a "$@" k.yaml
    [[ $output == *"wgmma of "*"f16, tiles "* ]]
    run -0 kaio-verify --run -d cpu --check=all --all ${KAIO_QUICK:+--fill=normal} -t sm_90a "$@" k.yaml
}

@test "a condition, several heads of one, tiles that are not whole" {
    attention causal "${heads[@]}" 'j <= i + (n - m) ? R : -inf' ''
    cases 'tall: {b: 1, hq: 2, hk: 1, m: 200, n: 260, d: 24, e: 40, w: 0}, one: {b: 2, hq: 4, hk: 2, m: 1, n: 33, d: 8, e: 8, w: 0},
        wide: {b: 1, hq: 1, hk: 1, m: 70, n: 170, d: 128, e: 64, w: 0},
        widest: {b: 1, hq: 1, hk: 1, m: 66, n: 200, d: 200, e: 256, w: 0}, odd: {b: 1, hq: 1, hk: 1, m: 9, n: 9, d: 9, e: 7, w: 0}'
    judged -D T=f16
}

# steps: how many shuffles are between a tile's products and the vote on its maxima
steps() {
    awk '/wgmma.wait_group/ { n = 0; on = 1 } on && /shfl.sync/ { n++ } on && /vote.sync.any/ { print n; exit }' k.ptx
}

@test "a step waits for other lanes' maxima only where these have grown, unless terms subtract more" {
    kaio-emit -t sm_90a -D b=1 -D heads=2 -D m=300 -D n=300 -D d=64 -D e=64 "$KAIO_SRCDIR/specs/attention/forward.yaml" >k.ptx
    [ "$(steps)" = 0 ]
    kaio-emit -t sm_90a -D b=1 -D hq=2 -D hk=1 -D m=300 -D n=300 -D d=64 -D e=64 "$KAIO_SRCDIR/specs/attention/sinks.yaml" >k.ptx
    [ "$(steps)" = 4 ]
    attention full "${plain[@]}" 'R' ''
    cases 'a: {b: 1, hq: 2, m: 150, n: 300, d: 32, e: 32, w: 0}'
    fills=normal,uniform,extreme
    [ -z "${KAIO_QUICK-}" ] || fills=normal,extreme
    run -0 kaio-verify --run -d cpu --check=all --all --fill="$fills" -t sm_90a -D T=f16 k.yaml
}

@test "nothing to stream, which no tensor map has" {
    attention full "${plain[@]}" 'R' ''
    cases 'none: {b: 1, hq: 2, m: 70, n: 0, d: 16, e: 16, w: 0}'
    # the reference is constant, which is not trusted
    run -1 kaio-verify --run -d cpu --check=all --code=generic -t sm_90a -D T=f16 k.yaml
    [[ $output == *" o f16[1, 2, 70, 16]: 2240 compared, all equal"* && $output == *"0 failed"* ]]
}

@test "ranges of the row: windows, the rows' own, some of them empty" {
    attention window "${plain[@]}" 'R' ' in max(0, i - w)..min(n, i + 1)'
    cases 'a: {b: 1, hq: 2, m: 300, n: 300, d: 64, e: 64, w: 90}, b: {b: 1, hq: 1, m: 200, n: 40, d: 64, e: 64, w: 3},
        c: {b: 3, hq: 50, m: 70, n: 70, d: 8, e: 8, w: 20}'
    judged -D T=f16
}

@test "tiles, stages, turns and overlap are the schedule's" {
    attention causal "${plain[@]}" 'j <= i + (n - m) ? R : -inf' ''
    cases 'a: {b: 1, hq: 2, m: 200, n: 260, d: 64, e: 64, w: 0}, b: {b: 1, hq: 1, m: 70, n: 90, d: 16, e: 16, w: 0}'
    for words in 'tile: [64, 96], stages: 1' 'tile: [192, 32], stages: 3, blocks: tiles' 'tile: [128, 160], pingpong: no' \
        'tile: [128, 64], overlap: no, blocks: multiprocessors' 'tile: [192, 32], overlap: no, pingpong: no, stages: 1' \
        'warps: 12, overlap: no' 'tile: [64, 144], overlap: no' 'tile: [64, 64], each: 2'; do
        sed "s/mma: wgmma/&, $words/" k.yaml >said.yaml
        run -0 kaio-emit --explain -t sm_90a -D T=f16 -D d=64 -D e=64 said.yaml
        local tile=${words##*tile: [}
        [[ $words != tile* || $output == *"wgmma of f16, tiles ${tile:0:3}"* || $output == *"tiles ${tile:0:2} x"* ]]
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --check=all --all $few -t sm_90a -D T=f16 said.yaml
    done
}

@test "what wgmma can't be told" {
    attention full "${plain[@]}" 'R' ''
    while IFS='|' read -r words message; do
        sed "s/{strategy: chain, mma: wgmma}/{strategy: chain, $words}/" k.yaml >said.yaml
        run -2 kaio-emit -t sm_90a -D T=f16 -D d=128 -D e=128 said.yaml
        [[ $output == *"$message"* ]]
    done <<'END'
mma: wgmma, tile: [96, 64]|by wgmma a block has 64, 128 or 192 rows, 16 of each warp, not 96 of 6
mma: wgmma, tile: [128, 64], warps: 4|by wgmma a block has 64, 128 or 192 rows, 16 of each warp, not 128 of 4
mma: wgmma, warps: 16|by wgmma a block has 64, 128 or 192 rows, 16 of each warp, not 256 of 16
mma: wgmma, tile: [128, 72]|a step takes a multiple of 16 of 'j', at most 256, not 72
mma: wgmma, tile: [128, 256]|wgmma does not fit: tiles of 128 x 256, and of 128 columns, take some
mma: sync, tile: [64, 64], stages: 2|'stages' is for 'mma: wgmma', or for few rows
split: 2, overlap: no|'overlap' is for 'mma: wgmma'
warps: 4, pingpong: yes|'pingpong' is for 'mma: wgmma'
mma: none, blocks: tiles|'blocks' is for 'mma: wgmma'
mma: sync, each: 2|'each' is for 'mma: wgmma'
mma: wgmma, tile: [128, 64], each: 3|wgmma does not fit: tiles of 128 x 64, and of 128 columns, take some
END
}

@test "rows of few keys are several blocks on each multiprocessor" {
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || skip "no ptxas"
    local sizes=(-t sm_90a -D T=f16 -D b=16 -D hq=32 -D hk=32 -D d=64 -D e=64)
    attention full "${heads[@]}" 'R' ''
    attention causal "${heads[@]}" 'R' ' in 0..i + 1'
    kaio-emit "${sizes[@]}" -D m=512 -D n=512 k.yaml >k.ptx
    [ "$(grep -c 'minnctapersm 3' k.ptx)" -eq 2 ]
    [ "$(grep -c 'grid: \[min(4096, multiprocessors \* 3)\]' k.ptx)" -eq 2 ]
    "$ptxas" -v -arch=sm_90a k.ptx -o k.cubin >log 2>&1
    [ "$(grep -c ' 0 bytes spill stores, 0 bytes spill loads' log)" -eq 2 ]
    run ! grep C75 log
    kaio-emit "${sizes[@]}" -D m=2048 -D n=2048 k.yaml >k.ptx
    run ! grep 'minnctapersm 3' k.ptx
}

@test "the tuner tries tiles of a chain that have room, each code once" {
    local shapes='b=1 hq=2 m,n=4096 d,e=128'
    attention causal "${plain[@]}" 'j <= i + (n - m) ? R : -inf' ''
    sed -i '/^schedule/d' k.yaml
    run -0 kaio-bench --dry-run --tune -t sm_90a -D T=f16 k.yaml w=0 $shapes
    [[ $output == *'{strategy: chain, mma: wgmma, tile: [128, 128]}'* && $output != *'tile: [128, 256]'* ]]
    run -0 kaio-bench --dry-run --tune -t sm_80 -D T=f16 k.yaml w=0 $shapes
    [[ $output == *'{strategy: chain, mma: sync, tile: [128, 32], warps: 8}'* && $output != *wgmma* ]]
    run -0 kaio-bench --dry-run --tune -t sm_90a -D T=f16 k.yaml w=0 b=1 hq=2 m=1 n=4096 d,e=128
    [[ $output == *'tile: [32, 32], warps: 2, split: 8}'* && $output != *wgmma* ]]
}

@test "bf16" {
    attention full "${plain[@]}" 'R' ''
    cases 'a: {b: 1, hq: 2, m: 130, n: 260, d: 64, e: 64, w: 0}'
    judged -D T=bf16
}

# bytes: makes k.yaml one of 8-bit floats
bytes() {
    sed -i 's/^types: .*/types: {T: [e4m3]}/; s/out T/out bf16/; s/\* 0.3/* 0.02/' k.yaml
}

@test "8-bit floats: v is turned, and a tile's sums are taken alone" {
    attention full "${plain[@]}" 'R' ''
    cases 'tall: {b: 1, hq: 2, m: 200, n: 260, d: 32, e: 48, w: 0}, one: {b: 2, hq: 2, m: 1, n: 33, d: 16, e: 16, w: 0},
        none: {b: 1, hq: 2, m: 70, n: 1, d: 16, e: 16, w: 0},
        wide: {b: 1, hq: 1, m: 70, n: 170, d: 128, e: 64, w: 0}, far: {b: 1, hq: 1, m: 66, n: 300, d: 64, e: 128, w: 0}'
    attention causal "${heads[@]}" 'j <= i + (n - m) ? R : -inf' ''
    cases 'tall: {b: 1, hq: 2, hk: 1, m: 200, n: 260, d: 64, e: 64, w: 0},
        widest: {b: 1, hq: 1, hk: 1, m: 66, n: 200, d: 192, e: 256, w: 0}, odd: {b: 1, hq: 1, hk: 1, m: 9, n: 9, d: 9, e: 7, w: 0}'
    attention window "${plain[@]}" 'R' ' in max(0, i - w)..min(n, i + 1)'
    cases 'a: {b: 1, hq: 1, m: 150, n: 150, d: 16, e: 32, w: 9}'
    bytes
    run -0 kaio-emit --explain -v -t sm_90a k.yaml
    [[ $(grep -c 'wgmma of e4m3, tiles' <<<"$output") -ge 3 ]]
    # shellcheck disable=SC2086
    run -0 kaio-verify --run -d cpu --check=all --all $few -t sm_90a k.yaml
    for kernel in full causal window; do
        kaio-emit -t sm_90a --kernel=$kernel k.yaml | grep -q 'stmatrix.*x4'
    done
}

# Maxima are those of products, and exponents take the scale in their fma.
@test "8-bit floats with scales of heads are rescaled rarely, and their scores are not multiplied one by one" {
    local spec=$BATS_TEST_DIRNAME/../../specs/attention/fp8.yaml
    kaio-emit -t sm_90a -D T=f16 -D b=1 -D heads=2 -D m=4096 -D n=4096 -D d=64 -D e=64 "$spec" >k.ptx
    # lanes ask each other whether a maximum has grown, and products are folded for scales of either sign
    [ "$(grep -c 'vote.sync.any' k.ptx)" -gt 1 ]
    grep -q '^[$]below' k.ptx
    run -0 kaio-verify --run -d cpu --check=all --code=fixed -t sm_90a -D T=f16 -D b=2 -D heads=2 -D m=70 -D n=300 -D d=64 -D e=64 "$spec"
}

@test "8-bit floats without maxima, and products with types of their own" {
    cat >k.yaml <<END
kernel: sums
params: {q: "in e4m3[m, d]", k: "in e5m2[n, d]", v: "in e5m2[n, e]", o: "out f32[m, e]"}
schedule: {strategy: chain, mma: wgmma}
compute: |
  p[i,j] = sigmoid(0.05 * sum[c](q[i,c] * k[j,c]))
  o[i,c] = sum[j](e4m3(p[i,j]) * v[j,c])
cases: {a: {m: 70, n: 150, d: 64, e: 48}}
---
kernel: weights
params: {q: "in e4m3[m, d]", k: "in e4m3[n, d]", v: "in bf16[n, e]", o: "out f32[m, e]"}
schedule: {strategy: chain, mma: wgmma}
compute: |
  s[i,j] = 0.05 * sum[c](q[i,c] * k[j,c])
  top[i] = max[j](s[i,j])
  p[i,j] = exp(s[i,j] - top[i])
  o[i,c] = sum[j](bf16(p[i,j]) * v[j,c]) / sum[j](p[i,j])
cases: {a: {m: 70, n: 150, d: 64, e: 64}}
END
    run -0 kaio-emit --explain -v -t sm_90a k.yaml
    [[ $output == *"sums: wgmma of e4m3, tiles "*"weights: wgmma of e4m3 and bf16, tiles "* ]]
    # shellcheck disable=SC2086
    run -0 kaio-verify --run -d cpu --check=all $few -t sm_90a k.yaml
}

@test "operands as they lie: packed, sequences first, transposed" {
    attention packed m,b,3,hq,d:i,z,0,h,c n,b,3,hq,d:j,z,1,h,c n,b,3,hq,e:j,z,2,h,c 'R' ''
    cases 'a: {b: 2, hq: 2, m: 70, n: 140, d: 32, e: 32, w: 0}'
    attention turned b,hq,d,m:z,h,c,i b,hq,d,n:z,h,c,j b,hq,e,n:z,h,c,j 'R' ''
    cases 'a: {b: 1, hq: 2, m: 72, n: 144, d: 32, e: 80, w: 0}'
    judged -D T=f16
}

@test "without maxima, of two scores, two sums, and factors of f32" {
    cat >k.yaml <<'END'
kernel: linear
params: {q: "in f16[m, d]", k: "in f16[n, d]", v: "in f16[n, e]", o: "out f32[m, e]", z: "out f32[m]"}
schedule: {strategy: chain, mma: wgmma}
compute: |
  s[i,j] = max(sum[c](q[i,c] * k[j,c]), 0)
  z[i] = sum[j](s[i,j])
  o[i,c] = sum[j](f16(s[i,j]) * v[j,c]) / (1 + z[i])
cases: {a: {m: 70, n: 150, d: 16, e: 16}}
---
kernel: two
params: {q: "in f16[m, d]", k: "in f16[n, d]", u: "in f16[n, d]", v: "in f16[n, e]", t: "in f16[n, e]", o: "out f32[m, e]"}
schedule: {strategy: chain, mma: wgmma}
compute: |
  x[i,j] = sum[c](q[i,c] * k[j,c])
  y[i,j] = sum[c](q[i,c] * u[j,c])
  o[i,c] = sum[j](f16(x[i,j] * y[i,j]) * v[j,c]) + sum[j](f16(x[i,j]) * t[j,c])
cases: {a: {m: 70, n: 150, d: 16, e: 16}}
---
kernel: exact
params: {q: "in f16[m, d]", k: "in f16[n, d]", v: "in f16[n, e]", o: "out f32[m, e]"}
schedule: {strategy: chain, mma: wgmma}
compute: |
  s[i,j] = sum[c](q[i,c] * k[j,c]) * 0.1
  top[i] = max[j](s[i,j])
  p[i,j] = exp(s[i,j] - top[i])
  total[i] = sum[j](p[i,j])
  o[i,c] = sum[j](p[i,j] * v[j,c]) / total[i]
cases: {a: {m: 70, n: 150, d: 64, e: 64}}
END
    judged
}

@test "exponentials are the hardware's where they are rounded to 16 bits" {
    attention rounded "${plain[@]}" 'R' ''
    for target in sm_80 sm_90a; do
        sed "s/, mma: wgmma//" k.yaml | kaio-emit -t $target -D T=f16 -D m=70 - | grep -q 'ex2.approx.ftz.f32'
        sed "s/, mma: wgmma//; s/T(p\[z,h,i,j\])/p[z,h,i,j]/" k.yaml | kaio-emit -t $target -D T=f16 -D m=70 - >exact.ptx
        grep -q '[wm]ma.*sync' exact.ptx
        run ! grep 'ex2.approx' exact.ptx
    done
}

@test "gradients: sums one by one, of keys and values in one pass, and of queries in another" {
    local spec=$BATS_TEST_DIRNAME/../../specs/attention/backward.yaml ptxas d
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || ptxas=''
    for d in 64 128; do
        # as many queries as keys, which have the same shape then
        kaio-emit -t sm_90a -D T=f16 -D b=4 -D heads=16 -D m=4096 -D n=4096 -D d=$d -D e=$d --explain "$spec" >plan
        grep -q "launch attention_backward_dq  wgmma of f16, tiles 128 x .*, $d columns" plan
        grep -q "launch attention_backward_dk  wgmma of f16, tiles 128 x .*, $d columns" plan
        [ "$(grep -c 'launch ' plan)" = 3 ]
        kaio-emit -t sm_90a -D T=f16 -D b=4 -D heads=16 -D m=4096 -D n=4096 -D d=$d -D e=$d "$spec" >k.ptx
        grep -q 'wgmma.wait_group.sync.aligned 1' k.ptx
        [ -n "$ptxas" ] || continue
        "$ptxas" -v -arch=sm_90a k.ptx -o k.cubin >log 2>&1
        # a lane's few numbers that are not of the products
        run ! grep -E ' [1-9][0-9][0-9]+ bytes spill stores' log
        run ! grep C75 log
    done
    kaio-verify --run -d cpu --check=all --fill=normal -t sm_90a -D T=f16 -D b=1 -D heads=2 -D m=70 -D n=70 -D d=64 -D e=64 "$spec"
}

# gradients NAME KEYS ROWS [SCHEDULE]: appends a spec to k.yaml of all gradients, whose sums over j and i are of these ranges
gradients() {
    cat >>k.yaml <<END
---
kernel: $1
types: {T: [f16, bf16]}
params:
  {q: "in T[b, hq, m, d]", k: "in T[b, hq, n, d]", v: "in T[b, hq, n, d]", dout: "in T[b, hq, m, d]", lse: "in f32[b, hq, m]",
   delta: "in f32[b, hq, m]", dq: "out T[b, hq, m, d]", dk: "out T[b, hq, n, d]", dv: "out T[b, hq, n, d]"}
schedule: {mma: wgmma, order: ${4:-fixed}}
compute: |
  p[z,h,i,j] = exp(sum[c](q[z,h,i,c] * k[z,h,j,c]) * 0.2 - lse[z,h,i])
  ds[z,h,i,j] = p[z,h,i,j] * (sum[c](dout[z,h,i,c] * v[z,h,j,c]) - delta[z,h,i])
  dq[z,h,i,c] = sum[j$2](T(ds[z,h,i,j]) * k[z,h,j,c])
  dk[z,h,j,c] = sum[i$3](T(ds[z,h,i,j]) * q[z,h,i,c])
  dv[z,h,j,c] = sum[i$3](T(p[z,h,i,j]) * dout[z,h,i,c])
END
}

@test "gradients: those of queries are a sum across those of keys and values" {
    local ptxas d
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || ptxas=''
    gradients full '' ''
    for d in 64 128; do
        # as many queries as keys, which have the same shape then
        kaio-emit -t sm_90a -D T=f16 -D b=4 -D hq=16 -D m=4096 -D n=4096 -D d=$d --explain k.yaml >plan
        grep -q "launch full  wgmma of f16, tiles 128 x 64, $d columns, and 'dq' across, by turns" plan
        [ "$(grep -c 'launch ' plan)" = 2 ]
        kaio-emit -t sm_90a -D T=f16 -D b=4 -D hq=16 -D m=4096 -D n=4096 -D d=$d k.yaml >k.ptx
        grep -q 'wgmma.wait_group.sync.aligned 1' k.ptx
        [ -n "$ptxas" ] || continue
        "$ptxas" -v -arch=sm_90a k.ptx -o k.cubin >log 2>&1
        # a lane's few numbers that are not of the products
        run ! grep -E ' [1-9][0-9][0-9]+ bytes spill stores' log
        run ! grep C75 log
    done
}

@test "gradients: tiles that are not whole, rows without terms, added by turns and in any order" {
    gradients causal ' in 0..i + (n - m) + 1' ' in max(0, j - (n - m))..m'
    cases 'a: {b: 1, hq: 1, m: 70, n: 136, d: 128, lse: "@const:3"}, hidden: {b: 1, hq: 2, m: 150, n: 70, d: 64, lse: "@const:3"}'
    gradients window ' in max(0, i - 40)..i + 1' ' in j..min(m, j + 41)' any
    cases 'a: {b: 1, hq: 1, m: 140, n: 140, d: 64, lse: "@const:3"}'
    gradients full '' ''
    cases 'a: {b: 2, hq: 1, m: 65, n: 130, d: 64, lse: "@const:3"}'
    for kernel in causal window full; do
        kaio-emit -t sm_90a -D T=f16 -D d=64 --kernel=$kernel --explain k.yaml | grep -q "and 'dq' across"
    done
    run -0 kaio-verify --run -d cpu --check=all --fill=normal -t sm_90a --code=fixed -D T=f16 k.yaml
    run -0 kaio-verify --run -d cpu --check=all --fill=normal --code=generic -t sm_90a -D T=bf16 -D d=64 --kernel=full k.yaml b=1 hq=1 m=65 n=130 lse=@const:3
}

@test "gradients: what an order is not for" {
    gradients pairs ' in 0..i + 1' ' in j + 1..m'
    run -2 kaio-emit -t sm_90a -D T=f16 -D d=64 --kernel=pairs k.yaml
    [[ $output == *"'order' is for sums that several blocks add to, of which there are none"* ]]
    gradients tiles '' '' 'any, tile: [128, 48]'
    gradients columns '' ''
    for kernel in tiles columns; do
        run -2 kaio-emit -t sm_90a -D T=f16 -D "d=$([ $kernel = tiles ] && echo 64 || echo 256)" --kernel=$kernel k.yaml
        [[ $output == *"'order' is for up to 128 columns and for sizes by wgmma, and stands beside 'mma: wgmma' alone"* ]]
    done
}

# biased NAME TYPE SHAPE INDEX: appends a spec to k.yaml, of which the score has a tensor of TYPE[SHAPE] read by [INDEX]
biased() {
    cat >>k.yaml <<END
---
kernel: $1
params: {q: "in f16[b, hq, m, d]", k: "in f16[b, hq, n, d]", v: "in f16[b, hq, n, e]", bias: "in $2[$3]", o: "out f32[b, hq, m, e]"}
schedule: {strategy: chain, mma: wgmma}
compute: |
  s[z,h,i,j] = ${5:-sum[c](q[z,h,i,c] * k[z,h,j,c]) * 0.3 + bias[$4]}
  top[z,h,i] = max[j](s[z,h,i,j])
  p[z,h,i,j] = exp(s[z,h,i,j] - top[z,h,i])
  o[z,h,i,c] = sum[j](f16(p[z,h,i,j]) * v[z,h,j,c]) / sum[j](p[z,h,i,j])
END
}

# brought NAME SIZE...: does the kernel of k.yaml bring tiles of the bias?
brought() {
    local kernel=$1
    shift
    kaio-emit -t sm_90a --kernel="$kernel" "${@/#/-D}" k.yaml | grep -q 'param.*bias[$]'
}

@test "biases and masks of rows and keys come by tiles" {
    biased plain f16 'hq, m, n' 'h,i,j'
    cases 'whole: {b: 2, hq: 2, m: 128, n: 256, d: 64, e: 64}, odd: {b: 3, hq: 2, m: 133, n: 168, d: 32, e: 16},
        wide: {b: 1, hq: 1, m: 70, n: 264, d: 128, e: 128}, widest: {b: 1, hq: 1, m: 66, n: 200, d: 256, e: 256},
        one: {b: 1, hq: 2, m: 1, n: 8, d: 16, e: 16}'
    biased own bf16 'b, hq, m, n' 'z,h,i,j'
    cases 'a: {b: 2, hq: 2, m: 133, n: 168, d: 64, e: 64}'
    biased common f32 'm, n' 'i,j'
    cases 'a: {b: 2, hq: 2, m: 133, n: 172, d: 64, e: 64}, wide: {b: 1, hq: 1, m: 70, n: 260, d: 128, e: 128}'
    biased turned f32 'm, hq, n' 'i,h,j'
    cases 'a: {b: 2, hq: 2, m: 133, n: 172, d: 64, e: 64}'
    biased few i8 '2, m, n' 'h % 2,i,j'
    cases 'a: {b: 1, hq: 3, m: 133, n: 176, d: 64, e: 64}'
    biased mask bool 'b, m, n' '' 'bias[z,i,j] || i == j ? sum[c](q[z,h,i,c] * k[z,h,j,c]) : -inf'
    cases 'a: {b: 2, hq: 2, m: 133, n: 176, d: 64, e: 64}'
    biased causal f16 'hq, m, n' '' 'j <= i ? sum[c](q[z,h,i,c] * k[z,h,j,c]) * 0.3 + bias[h,i,j] : -inf'
    cases 'a: {b: 1, hq: 2, m: 300, n: 304, d: 64, e: 64}'
    kaio-emit --explain -v -t sm_90a -D b=1 -D hq=3 -D m=133 -D n=176 -D d=64 -D e=64 k.yaml >plan
    [ "$(grep -c "wgmma.*, 'bias' by tiles" plan)" -eq 7 ]
    # three warpgroups would have narrow tiles of it, two have wide ones
    kaio-emit --explain -v -t sm_90a --kernel=causal -D b=4 -D hq=16 -D m=4096 -D n=4096 -D d=64 -D e=64 k.yaml >plan
    grep -q "tiles 128 x 128, 64 columns, 'bias' by tiles" plan
    # shellcheck disable=SC2086
    run -0 kaio-verify --run -d cpu --check=all --all $few -t sm_90a k.yaml
}

@test "tiles of biases in every way that tiles are taken" {
    biased plain f16 'hq, m, n' 'h,i,j'
    cases 'a: {b: 2, hq: 1, m: 200, n: 264, d: 64, e: 64}'
    for words in 'tile: [64, 96], stages: 1' 'tile: [192, 32], stages: 3, blocks: tiles' 'tile: [128, 160], pingpong: no' \
        'tile: [128, 64], overlap: no, blocks: multiprocessors' 'tile: [192, 32], overlap: no, pingpong: no, stages: 1'; do
        sed "s/mma: wgmma/&, $words/" k.yaml >said.yaml
        kaio-emit --explain -v -t sm_90a -D b=2 -D hq=1 -D m=200 -D n=264 -D d=64 -D e=64 said.yaml | grep -q "'bias' by tiles"
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --check=all --all ${few:---code=fixed} -t sm_90a said.yaml
    done
    # of sums one by one, as gradients have
    cat >k.yaml <<'END'
kernel: apart
params: {q: "in f16[m, d]", k: "in f16[n, d]", u: "in f16[n, d]", v: "in f16[n, e]", t: "in f16[n, e]", w: "in f32[2, n]",
  bias: "in bf16[m, n]", o: "out f32[m, e]"}
schedule: {strategy: chain, mma: wgmma}
compute: |
  x[i,j] = sum[c](q[i,c] * k[j,c]) + bias[i,j]
  y[i,j] = sum[c](q[i,c] * u[j,c]) * w[1,j]
  o[i,c] = sum[j](f16(x[i,j] * y[i,j]) * v[j,c]) + sum[j](f16(x[i,j]) * t[j,c])
cases: {a: {m: 133, n: 264, d: 16, e: 16}}
END
    kaio-emit --explain -v -t sm_90a -D m=133 -D n=264 -D d=16 -D e=16 k.yaml | grep -q "'bias' by tiles"
    # shellcheck disable=SC2086
    run -0 kaio-verify --run -d cpu --check=all $few -t sm_90a k.yaml
}

@test "biases that no box has are read where they lie" {
    biased odd f16 'hq, m, n' 'h,i,j'
    run ! brought odd b=2 hq=2 m=128 n=260 d=64 e=64
    run ! brought odd b=2 hq=2 m=128 d=64 e=64
    brought odd b=2 hq=2 n=264 d=64 e=64
    biased shifted f16 'hq, m, n' 'h,m - 1 - i,j'
    biased distance f16 'hq, m + n' 'h,i - j + n'
    biased gathered f16 'hq, m, n' 'h,i,n - 1 - j'
    biased wide f64 'hq, m, n' 'h,i,j'
    for kernel in shifted distance gathered wide; do
        run ! brought $kernel b=2 hq=2 m=128 n=256 d=64 e=64
    done
}

# A row's sum does not have what is behind its range; and 0 times what is there is NaN where the term is in the sum.
@test "infinities and NaN do what the equations say" {
    python3 - <<'END'
import numpy as np
r = np.random.default_rng(1)
q, k, v = (r.standard_normal((1, 1, 200, 32)).astype(np.float16) for n in range(3))
np.save("q.npy", q); np.save("k.npy", k); np.save("v.npy", v)
v[0, 0, 9, 3] = np.nan; v[0, 0, 140, 5] = np.inf; np.save("bad_v.npy", v)
k[0, 0, 160] *= 300; np.save("bad_k.npy", k) # scores of thousands
END
    size='b=1 hq=1 m=200 n=200 d=32 e=32'
    for range in ' in 0..i + 1' ' in 0..i' ''; do
        [ -z "${KAIO_QUICK-}" ] || [ "$range" = ' in 0..i' ] || continue
        for score in 'R' 'j < i && i != 3 ? R : -inf'; do
            rm -f k.yaml
            attention k "${plain[@]}" "$score" "$range"
            kaio-emit -t sm_90a -D T=f16 -D b=1 -D hq=1 -D m=200 -D n=200 -D d=32 -D e=32 k.yaml >k.ptx
            grep -q 'wgmma' k.ptx
            losses=$(sed -nE 's,^//@ (depth|truncation|products): ,--\1=,p' k.ptx)
            for files in 'k=k.npy v=v.npy' 'k=k.npy v=bad_v.npy' 'k=bad_k.npy v=v.npy'; do
                # shellcheck disable=SC2086
                kaio-run -q -d cpu k.ptx w=0 q=q.npy $files o=o.npy lse=lse.npy
                # shellcheck disable=SC2086
                run -0 kaio-verify $losses -D T=f16 k.yaml $size w=0 q=q.npy $files o=o.npy lse=lse.npy
            done
        done
    done
}

@test "nobody has to ask for it, and a schedule of mma.sync's does not get it" {
    attention causal "${heads[@]}" 'R' ''
    sed -i '/^schedule/d' k.yaml
    run -0 kaio-emit --explain -v -t sm_90a -D T=f16 k.yaml
    [[ $output == *"mma.sync of f16, tiles 16 x 32"*"causal_wgmma_64"*"wgmma of f16, tiles "*"causal_64"*"mma.sync"* ]]
    local words
    for words in 'mma: sync' 'split: 2' 'tile: [64, 32]' 'warps: 4'; do
        { cat k.yaml && echo "schedule: {$words}"; } >said.yaml
        run -0 kaio-emit --explain -v -t sm_90a -D T=f16 said.yaml
        [[ $output == *"mma.sync of f16"* && $output != *wgmma* ]]
    done
    # rows for few multiprocessors share long keys instead
    local sizes=(-D T=f16 -D b=1 -D d=64 -D e=64 -D hq=1 -D n=8192)
    run -0 kaio-emit --explain -v -t sm_90a "${sizes[@]}" -D m=256 k.yaml
    [[ $output == *"mma.sync of f16"* && $output != *wgmma* ]]
    run -0 kaio-emit --explain -v -t sm_90a "${sizes[@]}" -D m=16384 k.yaml
    [[ $output == *"wgmma of f16"* ]]
}

@test "what is in the way of wgmma is told" {
    attention causal "${heads[@]}" 'R' ''
    run -2 kaio-emit -t sm_90 -D T=f16 k.yaml
    [[ $output == *"wgmma does not fit: "*"sm_90 has no wgmma: sm_90a has"* ]]
    sed -i 's/sum\[c\](q\[z,h,i,c\]/sum[c](T(q[z,h,i,c] + q[z,h,i,0])/' k.yaml
    run -2 kaio-emit -t sm_90a -D T=f16 k.yaml
    [[ $output == *"wgmma does not fit: "*"the scores' factors are no matrices as they lie in memory"* ]]
    # bytes are turned in v, not in k
    rm k.yaml
    attention keys 'b,hq,m,d:z,h,i,c' 'b,hq,d,n:z,h,c,j' 'b,hq,n,e:z,h,j,c' 'R' ''
    bytes
    run -2 kaio-emit -t sm_90a k.yaml
    [[ $output == *"wgmma does not fit: "*"the scores' factors are no matrices as they lie in memory"* ]]
    sed -i 's/e4m3/f32/' k.yaml
    run -2 kaio-emit -t sm_90a k.yaml
    [[ $output == *"wgmma does not fit: "*"f32 goes in parts of tf32, which mma.sync multiplies"* ]]
}

# Sums that are read before they are waited for, or registers that are too few, make ptxas wait for each instruction.
@test "ptxas overlaps what is multiplied, and keeps all of it in registers" {
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || skip "no ptxas"
    "$ptxas" --help | grep -q "'sm_90a'" || skip "ptxas does not know sm_90a"
    attention full "${plain[@]}" 'R' ''
    attention causal "${plain[@]}" 'R' ' in 0..i + 1'
    for size in 64,64 128,128 192,128 256,256; do
        kaio-emit -t sm_90a -D T=f16 -D b=4 -D hq=16 -D m=4096 -D n=4096 -D d="${size%,*}" -D e="${size#*,}" k.yaml >"$size.ptx"
        grep -q 'wgmma' "$size.ptx"
        "$ptxas" -v -arch=sm_90a "$size.ptx" -o "$size.cubin" >log 2>&1
        [ "$(grep -c ' 0 bytes spill stores, 0 bytes spill loads' log)" -eq 2 ]
        run ! grep C75 log
    done
    local spec=$BATS_TEST_DIRNAME/../../specs/attention/bias.yaml
    for size in 64 128 256; do
        kaio-emit -t sm_90a -D T=f16 -D b=4 -D heads=16 -D m=4096 -D n=4096 -D d="$size" -D e="$size" "$spec" >"$size.ptx"
        "$ptxas" -v -arch=sm_90a "$size.ptx" -o "$size.cubin" >log 2>&1
        grep -q ' 0 bytes spill stores, 0 bytes spill loads' log
        run ! grep C75 log
    done
    bytes
    for size in 64,64 128,128 192,128 256,256; do
        kaio-emit -t sm_90a -D b=4 -D hq=16 -D m=4096 -D n=4096 -D d="${size%,*}" -D e="${size#*,}" k.yaml >"$size.ptx"
        grep -q 'wgmma.*e4m3' "$size.ptx"
        "$ptxas" -v -arch=sm_90a "$size.ptx" -o "$size.cubin" >log 2>&1
        # what is used once for all tiles of j
        run ! grep -E ' ([5-9][0-9]|[1-9][0-9][0-9]+) bytes spill stores' log
        run ! grep C75 log
    done
}
