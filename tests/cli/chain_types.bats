# Strategy chain of f32 and of 8-bit floats: attention by mma.sync of tf32 and of e4m3, on the simulator and by ptxas.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
}

# attention NAME TYPES WEIGHT [LAYOUT]: appends a spec to k.yaml of these types of q, k and v, of what a weight is in the sum, and
# of operands as they are usual, or 'turned'.
attention() {
    local type
    read -ra type <<<"$2"
    local q='[b, m, d]' k='[b, n, d]' v='[b, n, e]' at=('q[z,i,c]' 'k[z,j,c]' 'v[z,j,c]')
    if [ "${4-}" = turned ]; then
        q='[b, d, m]' k='[b, d, n]' v='[b, e, n]' at=('q[z,c,i]' 'k[z,c,j]' 'v[z,c,j]')
    fi
    cat >>k.yaml <<END
---
kernel: $1
params: {q: "in ${type[0]}$q", k: "in ${type[1]}$k", v: "in ${type[2]}$v", scale: f32 = 0.1, o: "out f32[b, m, e]", lse: "out f32[b, m]"}
compute: |
  s[z,i,j] = j <= i + (n - m) ? sum[c](${at[0]} * ${at[1]}) * scale : -inf
  top[z,i] = max[j](s[z,i,j])
  p[z,i,j] = exp(s[z,i,j] - top[z,i])
  total[z,i] = sum[j](p[z,i,j])
  o[z,i,c] = sum[j](${3//P/p[z,i,j]} * ${at[2]}) / total[z,i]
  lse[z,i] = top[z,i] + log(total[z,i])
cases:
  odd: {b: 2, m: 9, n: 37, d: 21, e: 19}
  whole: {b: 1, m: 70, n: 96, d: 64, e: 32}
  wide: {b: 1, m: 17, n: 50, d: 128, e: 112}
  one: {b: 7, m: 1, n: 40, d: 48, e: 48}
END
}

# judged TARGET HOW: k.yaml is one kernel by HOW each, right under every check
judged() {
    run -0 --separate-stderr kaio-emit --explain -v -t "$1" k.yaml
    [[ $output != *"is stored"* && $output == *"mma.sync of $2, tiles "* ]]
    run -0 --separate-stderr kaio-verify --run -d cpu --check ${KAIO_QUICK:+--code=generic --fill=normal} -t "$1" k.yaml
}

@test "f32 is multiplied in parts of tf32" {
    attention exact 'f32 f32 f32' P
    attention rounded 'f32 f32 f32' 'f16(P)'
    attention turned 'f32 f32 f32' P turned
    for target in sm_80 sm_90; do
        judged $target tf32x3
    done
    kaio-emit -t sm_80 --kernel=exact k.yaml | grep -q 'mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32'
}

@test "8-bit floats are multiplied as they are from sm_89 on, as f16 before" {
    attention plain 'e4m3 e4m3 e4m3' 'e4m3(P)'
    attention turned 'e4m3 e4m3 e4m3' 'e4m3(P)' turned
    attention others 'e4m3 e5m2 e5m2' 'e4m3(P)'
    judged sm_80 f16
    local targets='sm_89 sm_90 sm_100'
    [ -z "${KAIO_QUICK-}" ] || targets=sm_89
    for target in $targets; do
        judged "$target" e4m3
    done
    kaio-emit -t sm_89 --kernel=others k.yaml | grep -q 'mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32'
}

@test "each product has types of its own" {
    attention values 'f16 f16 f32' 'f16(P)'
    attention keys 'f32 f16 f16' 'f16(P)'
    attention bytes 'f16 f16 e4m3' 'e4m3(P)'
    attention weights 'e4m3 e4m3 bf16' 'bf16(P)'
    attention parts 'f32 f32 f16' P
    judged sm_89 'f16 and tf32x3'
    [[ $(kaio-emit --explain -t sm_89 k.yaml) == *"f16 and e4m3, tiles"*"e4m3 and bf16, tiles"* ]]
}

@test "sums in two orders of columns don't meet in one kernel" {
    printf '%s\n' 'kernel: k' 'params: {q: "in e4m3[m, d]", k: "in e4m3[n, d]", v: "in e4m3[n, e]", w: "in f16[n, e]", o: "out f32[m, e]"}' \
        'compute: |' '  p[i, j] = sigmoid(0.1 * sum[c](q[i, c] * k[j, c]))' \
        '  o[i, c] = sum[j](e4m3(p[i, j]) * v[j, c]) + sum[j](f16(p[i, j]) * w[j, c])' \
        'schedule: {strategy: chain}' 'cases: {a: {m: 40, n: 70, d: 40, e: 24}}' >k.yaml
    judged sm_89 'e4m3 and f16'
}

# Sums over c that are stored, and a maximum over j of them, are no streams over one index: these have other extents.
@test "indices of different extents are not one, where a range depends on the row" {
    printf '%s\n' 'kernel: k' 'params: {q: "in f32[h, n, d]", k: "in f32[h, n, d]", v: "in f32[h, n, e]", mask: "in bool[n, n]", o: "out f32[h, n, e]"}' \
        'compute: |' '  s[z,i,j] = sum[c](k[z,j,c] * q[z,i,c]) * 0.125' '  top[z,i] = max[j in 0..min(n, i + 1)](mask[i,j] ? s[z,i,j] : -inf)' \
        '  base[z,i] = top[z,i] == -inf ? 0 : top[z,i]' '  p[z,i,j] = mask[i,j] ? exp(s[z,i,j] - base[z,i]) : 0' \
        '  total[z,i] = sum[j in 0..min(n, i + 1)](p[z,i,j])' \
        '  o[z,i,x] = total[z,i] > 0 ? sum[j in 0..min(n, i + 1)](f16(p[z,i,j]) * v[z,j,x]) / total[z,i] : 0' \
        'cases: {a: {h: 1, n: 25, d: 35, e: 64}}' >k.yaml
    run -0 kaio-verify --run -d cpu --check -t sm_80 k.yaml
    # where a key is read by its page, too
    printf '%s\n' 'kernel: k' 'params: {q: "in bf16[h, m, d]", page: "in i32[most]", k: "in bf16[pages, h, 4, d]", v: "in bf16[pages, h, 4, e]", o: "out bf16[h, m, e]", got: "out f32[4 * most, h]"}' \
        'compute: |' '  top[z,i] = max[j in max(0, i - 3)..min(4 * most, i + 3)](bf16(sum[c](rsqrt(1 + d) * q[z,i,c] * k[page[j / 4],z,j % 4,c])))' \
        '  base[z,i] = top[z,i] == -inf ? 0 : top[z,i]' \
        '  p[z,i,j < 4 * most] = exp(bf16(sum[c](rsqrt(1 + d) * q[z,i,c] * k[page[j / 4],z,j % 4,c])) - base[z,i])' \
        '  y[z,i,x] = sum[j in max(0, i - 3)..min(4 * most, i + 3)](bf16(p[z,i,j]) * v[page[j / 4],z,j % 4,x])' \
        '  o[z,i,x] = y[z,i,x]' '  got[j,z] = sum[i < m](p[z,i,j])' \
        'cases: {a: {h: 3, m: 4, most: 3, d: 16, e: 37, pages: 6, page: 0..5}}' >k.yaml
    run -0 kaio-verify --run -d cpu --check -t sm_80 k.yaml
}

@test "rows of more pieces than a block has threads" {
    attention wide 'f32 f32 f32' P
    sed -i 's/^  wide: .*/  wide: {b: 1, m: 5, n: 40, d: 256, e: 200}/' k.yaml
    judged sm_86 tf32x3
    for schedule in 'warps: 1, tile: [16, 16]' 'warps: 2, tile: [32, 32], split: 3'; do
        sed "s/^compute:/schedule: {strategy: chain, $schedule}\ncompute:/" k.yaml >scheduled.yaml
        run -0 kaio-verify --run -d cpu --check -t sm_80 scheduled.yaml
    done
}

@test "a step of bytes is a multiple of 32 terms" {
    attention plain 'e4m3 e4m3 e4m3' 'e4m3(P)'
    sed -i 's/^compute:/schedule: {strategy: chain, warps: 1, tile: [16, 48]}\ncompute:/' k.yaml
    run -2 kaio-emit -t sm_89 k.yaml
    [[ $output == *"a step takes a multiple of 32 of 'j', at most 256, not 48"* ]]
    run -0 kaio-emit -t sm_80 k.yaml
}

@test "math: strict and other types have no tensor cores, and say so" {
    attention strict 'f32 f32 f32' P
    sed -i 's/^compute:/math: strict\nschedule: {strategy: chain, mma: sync}\ncompute:/' k.yaml
    run -2 kaio-emit -t sm_80 k.yaml
    [[ $output == *"tensor cores do not fit: "*"math: strict leaves f32 as it is"* ]]
    rm k.yaml
    attention f64s 'f64 f64 f64' P
    sed -i 's/^compute:/schedule: {strategy: chain, mma: sync}\ncompute:/; s/out f32/out f64/g' k.yaml
    run -2 kaio-emit -t sm_80 k.yaml
    [[ $output == *"tensor cores do not fit: "*"its factors are neither f16, bf16, f32 nor 8-bit floats"* ]]
}

# Of a score that is no number a maximum takes no notice, and of an infinite f32 its parts are none: a row with such is computed
# again, without the losses of parts.
@test "infinities and NaN do what the equations say" {
    python3 - <<'END'
import numpy as np
r = np.random.default_rng(1)
for t in ('f32', 'e5m2'):
    def make():
        if t == 'f32':
            return r.standard_normal((1, 70, 32)).astype(np.float32)
        return (r.integers(0, 2, (1, 70, 32)) * 128 + r.integers(40, 64, (1, 70, 32))).astype(np.uint8)
    nan, inf, low = (np.nan, np.inf, -np.inf) if t == 'f32' else (0x7e, 0x7c, 0xfc)
    q, k, v = make(), make(), make()
    np.save(f'q.{t}.npy', q); np.save(f'k.{t}.npy', k); np.save(f'v.{t}.npy', v)
    q[0, 20, 3] = nan; q[0, 21] = inf; np.save(f'bad_q.{t}.npy', q)
    k[0, 60, 2] = inf; k[0, 65, 1] = low; np.save(f'bad_k.{t}.npy', k)
    v[0, 9, 3] = nan; v[0, 40, 5] = inf; np.save(f'bad_v.{t}.npy', v)
END
    for t in f32 e5m2; do
        for split in '' ', split: 3'; do
            rm -f k.yaml
            [ $t = f32 ] && attention k "$t $t $t" P || attention k "$t $t $t" 'e5m2(P)'
            sed -i "s/^compute:/schedule: {strategy: chain$split}\ncompute:/" k.yaml
            kaio-emit -t sm_90 -D b=1 -D m=70 -D n=70 -D d=32 -D e=32 k.yaml >k.ptx
            grep -q 'mma.sync' k.ptx
            losses=$(sed -nE 's,^//@ (depth|truncation): ,--\1=,p' k.ptx)
            for bad in q k v; do
                files="q=q.$t.npy k=k.$t.npy v=v.$t.npy"
                files=${files//$bad=/$bad=bad_}
                # shellcheck disable=SC2086
                kaio-run -q -d cpu k.ptx $files o=o.npy lse=lse.npy
                # shellcheck disable=SC2086
                run -0 kaio-verify $losses k.yaml b=1 m=70 n=70 d=32 e=32 $files o=o.npy lse=lse.npy
            done
        done
    done
    # there are no sums of columns whose NaN tell
    printf '%s\n' 'kernel: k' 'params: {q: "in f32[1, m, d]", k: "in f32[1, n, d]", o: "out f32[m]"}' \
        'schedule: {strategy: chain, mma: sync}' 'compute: "o[i] = max[j](sum[c](q[0, i, c] * k[0, j, c]))"' >k.yaml
    kaio-emit -t sm_80 k.yaml >k.ptx
    kaio-run -q -d cpu k.ptx m=70 n=70 d=32 q=q.f32.npy k=bad_k.f32.npy o=o.npy
    run -0 kaio-verify --truncation=144 k.yaml m=70 n=70 d=32 q=q.f32.npy k=bad_k.f32.npy o=o.npy
}

@test "nothing to stream, and no rows" {
    attention exact 'f32 f32 f32' P
    attention bytes 'e4m3 e4m3 e4m3' 'e4m3(P)'
    for kernel in exact bytes; do
        kaio-emit -t sm_89 --kernel=$kernel k.yaml >k.ptx
        for size in 'm=3 n=0 d=16 e=32' 'm=0 n=8 d=16 e=8' 'm=20 n=9 d=0 e=8' 'm=20 n=9 d=16 e=0'; do
            # shellcheck disable=SC2086
            kaio-run -q -d cpu --check k.ptx b=1 $size q=@normal k=@normal v=@normal o=o.npy lse=lse.npy
            # shellcheck disable=SC2086
            run kaio-verify --depth=100 --truncation=40000 --products=24 --kernel=$kernel k.yaml b=1 $size q=@normal k=@normal \
                v=@normal o=o.npy lse=lse.npy
            [[ $output != *FAIL* && $output != *wrong* && $output != *ERROR* ]]
        done
    done
}

@test "ptxas takes all of it, and keeps it in registers" {
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || skip "no ptxas"
    "$ptxas" --help | grep -q "'sm_89'" || skip "ptxas does not know sm_89"
    attention exact 'f32 f32 f32' P
    attention bytes 'e4m3 e4m3 e4m3' 'e4m3(P)'
    sed -i 's/j <= i + (n - m) ? \(.*\) : -inf/\1/' k.yaml
    # of f32 and 128 columns all 255 registers are taken, and some words more: 2 to 14 of them, as the code around them is ordered
    for of in exact,64,0 bytes,64,0 bytes,128,0 exact,128,64; do
        IFS=, read -r kernel size most <<<"$of"
        kaio-emit -t sm_89 -D b=64 -D m=4096 -D n=4096 -D d="$size" -D e="$size" --kernel="$kernel" k.yaml >k.ptx
        "$ptxas" -v -arch=sm_89 k.ptx -o k.cubin >log 2>&1
        [ "$(sed -nE 's/.* ([0-9]+) bytes spill stores.*/\1/p' log)" -le "$most" ]
    done
    kaio-emit -t sm_89 k.yaml >k.ptx
    "$ptxas" -arch=sm_89 k.ptx -o k.cubin
}

# far TYPE WEIGHT VALUE [CONDITION]: of one key's weight of 1, whose v is 0, and of others of e^-60 or e^-88, on the simulator; what
# the kernel says of losses are $losses.
far() {
    local ending=npy
    [ "$1" != bf16 ] || ending=bin
    files="q=q.npy k=k.npy v=$1.$ending o=o.npy m=3 n=40 d=16 e=8"
    cat >k.yaml <<END
kernel: k
params: {q: "in f16[m, d]", k: "in f16[n, d]", v: "in $1[n, e]", o: "out f32[m, e]"}
schedule: {strategy: chain}
compute: |
  s[i,j] = sum[c](q[i,c] * k[j,c])
  top[i] = max[j](s[i,j])
  p[i,j] = ${4-}exp(s[i,j] - top[i])${4:+ : 0}
  total[i] = sum[j](p[i,j])
  o[i,c] = sum[j](${2//P/p[i,j]} * ${3//V/v[j,c]}) / total[i]
END
    kaio-emit -t sm_80 k.yaml >k.ptx
    # shellcheck disable=SC2086
    kaio-run -q -d cpu k.ptx $files
    losses=$(sed -nE 's,^//@ (depth|truncation|products): .*,--\1=100,p' k.ptx)
}

@test "weights far below a row's largest count where that has a value of 0" {
    python3 - <<'END'
import numpy as np
for name, top in ("q", 1), ("k", 60), ("deep", 88):
    x = np.zeros((3 if name == "q" else 40, 16), np.float16)
    x[:1 if name != "q" else 3, 0] = top
    np.save(name + ".npy", x)
v = np.arange(40 * 8).reshape(40, 8) % 100 + 1
v[0] = 0
np.save("i8.npy", v.astype(np.int8))
np.save("f16.npy", v.astype(np.float16))
(v.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tofile("bf16.bin")
END
    # as three parts of bf16, whatever 8 bits are multiplied with
    for value in V '(0.01 * V)'; do
        far i8 P "$value"
        # shellcheck disable=SC2086
        run -0 kaio-verify $losses k.yaml $files
    done
    # as two parts of f16, which say what they lack
    far f16 P V
    grep -qx '//@ weights: 36' k.ptx
    # shellcheck disable=SC2086
    run -1 kaio-verify $losses k.yaml $files
    # shellcheck disable=SC2086
    run kaio-verify $losses --weights=36 k.yaml $files
    [[ $output == *"24 compared, "* && $output != *wrong* ]]
    # not where all of a row's may be so small
    far f16 P V 'j > 0 ? '
    run -1 grep weights k.ptx
    # shellcheck disable=SC2086
    run -0 kaio-verify $losses k.yaml $files
    # exponentials below 2^-126 are 0 by the hardware
    mv deep.npy k.npy
    far bf16 'bf16(P)' V
    # shellcheck disable=SC2086
    run kaio-verify $losses k.yaml $files
    [[ $output == *"24 compared, "* && $output != *wrong* ]]
}
