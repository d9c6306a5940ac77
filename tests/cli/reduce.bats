# The reduce strategy: results by whole blocks, several of which share one where there are few. On the simulator with all
# checks, which knows the memory model that the last block relies on; through ptxas where there is one.
bats_require_minimum_version 1.5.0

load equations

@test "every kind of reduction computes what its mathematics says, under every check" {
    local targets='sm_70 sm_80 sm_90'
    [ -z "${KAIO_QUICK-}" ] || targets=sm_90
    for target in $targets; do
        run -0 kaio-verify --run -d cpu --check ${KAIO_QUICK:+--fill=normal} -t $target data/reductions.yaml
        [[ $output == *"passed, 0 failed, 0 skipped" ]]
    done
}

@test "whole blocks compute them, and no thread's registers spill" {
    kaio-emit --explain -v data/reductions.yaml >explained
    run ! grep 'strategy naive' explained
    [ "$(grep -c ': strategy reduce' explained)" -ge "$(grep -c '^kernel: ' data/reductions.yaml)" ]
    [ -n "$ptxas" ] || skip "no ptxas"
    for target in sm_75 sm_90; do
        kaio-emit -t $target data/reductions.yaml >r.ptx
        "$ptxas" -v -arch=$target -o r.cubin r.ptx 2>log
        [ "$(grep -c 'bytes spill stores' log)" = "$(grep -c '^.visible .entry' r.ptx)" ]
        ! grep 'bytes spill stores' log | grep -v ' 0 bytes spill stores'
    done
}

@test "a sum of everything is one launch of as many blocks as there is work for" {
    kernel 'x: in f32[n]; s: out f32[]' 's = sum[i](x[i])' >k.yaml
    kaio-emit k.yaml >k.ptx
    [ "$(grep -c '^//@   - entry:' k.ptx)" = 1 ]
    [ "$(grep -c '^.visible .entry' k.ptx)" = 1 ]
    grep -qx '//@   v1: clamp(ceil_div(n / 4, 2048), 1, 528)' k.ptx
    grep -qx '//@     grid: \[v1\]' k.ptx
    # 16 bytes at a time, eight of them on the way before the first is used
    [ "$(awk '/^\$batch/ { on = 1 } /add.rn.f32/ { on = 0 } on' k.ptx | grep -c 'ld.global.nc.v4.f32')" = 8 ]
    # nothing but the count is atomic
    [ "$(grep -c 'atom\.' k.ptx)" = 1 ]
    grep -q 'atom.acq_rel.gpu.global.inc.u32' k.ptx
    # less at a time of what is too large for a cache
    kaio-emit -D n=67108864 k.yaml | grep -qx '//@     grid: \[396\]'
    kaio-emit -D n=16777216 k.yaml | grep -qx '//@     grid: \[528\]'
    # where one block is enough nothing is shared
    kaio-emit -D n=5000 k.yaml >one.ptx
    ! grep -q 'atom\.\|temps' one.ptx
}

@test "tails and every number of blocks give the sum, and leave the count as it was" {
    kernel 'x: in f32[n]; s: out f32[]; m: out i64[]' "$(printf 's = sum[i](x[i])\nm = argmax[i](x[i])')" >k.yaml
    for split in '' 1 2 7 300; do
        [ -z "${KAIO_QUICK-}" ] || [ "$split" = 7 ] || continue
        { cat k.yaml; [ -z "$split" ] || echo "schedule: {strategy: reduce, split: $split}"; } >s.yaml
        echo 'cases: {a: {n: 1}, b: {n: 3}, c: {n: 1023}, d: {n: 1024}, e: {n: 1025}, f: {n: 8192}, g: {n: 40001}}' >>s.yaml
        run -0 kaio-verify --run -d cpu --check --repeat --fill=normal,exact s.yaml
        [[ $output == *"passed, 0 failed, 0 skipped" ]]
    done
}

@test "the bits do not depend on the order in which blocks finish" {
    kernel 'x: in f32[n]; s: out f32[]' 's = sum[i](x[i])' >k.yaml
    kaio-emit k.yaml >k.ptx
    kaio-run -d cpu k.ptx n=300000 x=@normal s=first.npy
    for _ in 1 2 3; do
        kaio-run -d cpu k.ptx n=300000 x=@normal s=again.npy
        cmp first.npy again.npy
    done
}

@test "columns are read a line at a time, and rows shared by blocks" {
    kernel 'x: in f32[r, c]; s: out f32[c]' 's[j] = sum[i](x[i, j])' >k.yaml
    kaio-emit -D c=4096 k.yaml >k.ptx
    grep -qx '//@   v1: clamp(ceil_div(r, 128), 1, 5)' k.ptx
    grep -q 'grid: \[128 \* v1\]' k.ptx
    grep -q 'ld.global.nc.v4.f32' k.ptx
    run ! grep -q 'ld.global.nc.f32' k.ptx
    grep -q 'st.global.v4.f32' k.ptx
    # 1000 columns of f16 are whole vectors, 1001 are not
    kernel 'x: in f16[r, c]; s: out f32[c]' 's[j] = sum[i](x[i, j])' >h.yaml
    kaio-emit -D c=1000 h.yaml | grep -q 'ld.global.nc.v4.b32'
    ! kaio-emit -D c=1001 h.yaml | grep -q 'ld.global.nc.v'
}

@test "a variance is done in the sweep of its mean, and is exact where the equations are" {
    sums='x: in f32[n]; mean: out f32[]; var: out f32[]'
    kernel "$sums" "$(printf 'mean = sum[i](x[i]) / n\nvar = sum[i]((x[i] - mean) * (x[i] - mean)) / n')" >k.yaml
    kaio-emit k.yaml >k.ptx
    [ "$(grep -c '^.visible .entry' k.ptx)" = 1 ]
    local shapes=12
    [ -z "${KAIO_QUICK-}" ] || shapes=4
    run -0 kaio-verify --run -d cpu --fill=all --shapes=$shapes k.yaml
    # the mean of something else, or over another number, is none; nor is anything under math: strict
    kernel "$sums" "$(printf 'mean = sum[i](x[i]) / (n + 1)\nvar = sum[i]((x[i] - mean) * (x[i] - mean)) / n')" >other.yaml
    [ "$(kaio-emit other.yaml | grep -c '^.visible .entry')" = 2 ]
    kernel "$sums" "$(printf 'mean = sum[i](x[i] + 1) / n\nvar = sum[i]((x[i] - mean) * (x[i] - mean)) / n')" >other.yaml
    [ "$(kaio-emit other.yaml | grep -c '^.visible .entry')" = 2 ]
    { cat k.yaml; echo 'math: strict'; } >strict.yaml
    [ "$(kaio-emit strict.yaml | grep -c '^.visible .entry')" = 2 ]
    # far from zero, where the square of the mean is nearly all there is of the mean of squares
    python3 - <<'END'
import struct
x = [16777216.0 - 2 * (i % 2) for i in range(20000)]
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (20000,), }"
head += ' ' * (-(len(head) + 11) % 64) + '\n'
open('x.npy', 'wb').write(b'\x93NUMPY\1\0' + struct.pack('<H', len(head)) + head.encode() + struct.pack('<20000f', *x))
END
    kaio-run -d cpu k.ptx x=x.npy mean=mean.npy var=var.npy
    [ "$(tail -c 4 var.npy | od -An -tf4 | tr -d ' ')" = 1 ]
}

@test "few long rows are shared by blocks, many have one or less" {
    kernel 'x: in f32[r, c]; s: out f32[r]' 's[i] = sum[j](x[i, j])' >k.yaml
    strategy() { kaio-emit --explain -v "$@" k.yaml | sed -n 's/^k: strategy //p'; }
    [ "$(strategy -D r=2 -D c=1000000)" = reduce ]
    [ "$(strategy -D r=4096 -D c=1000000)" = row ]
    [ "$(strategy -D r=2 -D c=1000)" = row ]
    kaio-emit k.yaml | grep -q 'fits_split: r <= 132 && c >= 65536'
    echo 'cases: {few: {r: 3, c: 65541}, whole: {r: 2, c: 65536}, many: {r: 133, c: 40}, none: {r: 1, c: 1}}' >>k.yaml
    run -0 kaio-verify --run -d cpu --check k.yaml
    [[ $output == *"passed, 0 failed, 0 skipped" ]]
}

@test "of nothing there is the neutral element, and nothing for no results" {
    kernel 'x: in f32[r, c]; s: out f32[c]; m: out f32[c]; a: out i32[c]; b: out bool[c]' \
        "$(printf '%s\n' 's[j] = sum[i](x[i, j]) + 1' 'm[j] = max[i](x[i, j])' 'a[j] = i32(argmin[i](x[i, j]))' 'b[j] = all[i](x[i, j] > 0)')" >k.yaml
    kaio-emit k.yaml >k.ptx
    kaio-run -d cpu --check k.ptx r=0 c=40 x=@zeros s=s.npy m=m.npy a=a.npy b=b.npy
    python3 - <<'END'
import struct
def data(name):
    raw = open(name, 'rb').read()
    return raw[10 + struct.unpack('<H', raw[8:10])[0]:]
assert data('s.npy') == struct.pack('<f', 1) * 40
assert data('m.npy') == struct.pack('<f', float('-inf')) * 40
assert data('a.npy') == bytes(160)
assert data('b.npy') == b'\1' * 40
END
    run -0 kaio-run -d cpu --check k.ptx r=7 c=0 x=@zeros
    kernel 'x: in f32[n]; s: out f32[]' 's = prod[i](x[i])' >p.yaml
    run -0 --separate-stderr bash -c 'kaio-emit p.yaml | kaio-run -d cpu --check n=0 x=@zeros'
    [[ $output == *" 1"* ]]
}

@test "of equals the first is found, and NaN never, however the work is shared" {
    kernel 'x: in f32[n]; at: out i64[]; v: out f32[]' "$(printf 'at = argmax[i](x[i])\nv = max[i](x[i])')" >k.yaml
    python3 - <<'END'
import struct
x = [0.0] * 50000
x[0] = float('nan')
x[31234] = x[31235] = x[49999] = 2.0
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (50000,), }"
head += ' ' * (-(len(head) + 11) % 64) + '\n'
open('x.npy', 'wb').write(b'\x93NUMPY\1\0' + struct.pack('<H', len(head)) + head.encode() + struct.pack('<50000f', *x))
END
    for schedule in '{}' '{split: 5}' '{block: 64, vector: 1}' '{unroll: 1}'; do
        { cat k.yaml; echo "schedule: $schedule"; } >s.yaml
        kaio-emit s.yaml | kaio-run -d cpu --check x=x.npy at=at.npy v=v.npy
        [ "$(tail -c 8 at.npy | od -An -td8 | tr -d ' ')" = 31234 ]
        kaio-verify s.yaml x=x.npy at=at.npy v=v.npy
    done
}

@test "a few results of many terms are worth reading all of these for each, others are not" {
    kernel 'x: in f32[n]; y: in f32[m]; o: out i32[m]' 'o[b] = sum[i](x[i] < y[b] ? 1 : 0)' >k.yaml
    strategy() { kaio-emit --explain -v "$@" k.yaml | sed -n 's/^k: strategy //p'; }
    [ "$(strategy -D m=100)" = reduce ]
    [ "$(strategy -D m=100 -D n=1000000)" = reduce ]
    [ "$(strategy -D m=100 -D n=1000)" = naive ]
    [ "$(strategy -D m=100000)" = naive ]
    kernel 'x: in f32[r, n]; o: out i32[r, n]' 'o[i, j] = sum[k](x[i, k] < x[i, j] ? 1 : 0)' >rank.yaml
    kaio-emit --explain -v -D r=4 -D n=4096 rank.yaml | grep -q 'strategy reduce'
    kaio-emit --explain -v -D r=128 -D n=4096 rank.yaml | grep -q 'strategy naive'
    [ "$(strategy)" = naive ]
}

@test "one sum for all results is computed once, however few they are" {
    kernel 'x: in f32[n]; z: in f32[m]; y: out f32[n]' 'y[i] = x[i] / sqrt(sum[j](z[j] * z[j]))' >k.yaml
    run kaio-emit --explain -v -D n=100 -D m=100000 k.yaml
    [[ $output == *"'sum' is stored, to be computed once"*"k_sum: strategy reduce"*"k: strategy map"* ]]
    kernel 'x: in f32[n]; z: in f32[m]; y: out f32[n, 3]' 'y[i, j] = x[i] / sum[k](abs(z[k] - f32(i)))' >k.yaml
    run kaio-emit --explain -v -D n=100 -D m=100000 k.yaml
    [[ $output == *"'sum' is stored, to be computed once"*"k_sum: strategy reduce"*"k: strategy map"* ]]
}

@test "what is normalised over an axis that is not the last is held, so that it is read once" {
    local targets='sm_70 sm_80 sm_90a'
    [ -z "${KAIO_QUICK-}" ] || targets=sm_90a
    for target in $targets; do
        run -0 kaio-verify --run -d cpu --check -t $target --fill=normal data/tiles.yaml
        [[ $output == *"passed, 0 failed, 0 skipped" ]]
    done
    kaio-emit --explain data/tiles.yaml >explained
    [ "$(grep -c 'whose terms they hold: read once' explained)" = "$((2 * $(grep -c '^kernel: ' data/tiles.yaml)))" ]
    run ! grep 'temps: ' explained
    # 64 terms: 16 threads hold 4 of them each
    kaio-emit --kernel=tile_rms -D T=f32 -D n=2 -D p=1024 data/tiles.yaml >k.ptx
    [ "$(grep -c 'ld.global.*v4.*f32' k.ptx)" = 4 ]
    [ "$(grep -c 'st.global.v4.f32' k.ptx)" = 4 ]
    [ "$(grep -c 'bar.sync' k.ptx)" = 1 ]
}

@test "extrema of tiles that are held are of what is a number, first terms too" {
    kernel 'x: in f32[n, c]; o: out f32[c]; u: out f32[c]; a: out i32[c]; y: out f32[n, c]' \
        'o[j] = max[p](x[p, j]); u[j] = min[p](x[p, j]); a[j] = argmax[p](x[p, j]); y[i, j] = x[i, j] - o[j]' >k.yaml
    run grep -c 'they hold' <(kaio-emit -D n=4 -D c=2 --explain k.yaml)
    [ "$output" = 1 ]
    for size in 'n=2 c=1024' 'n=32 c=256'; do
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --fill=extreme,edge --code=fixed k.yaml $size
    done
    python3 -c "import struct; n = float('nan'); open('x.bin', 'wb').write(struct.pack('<8f', n, n, 1, n, 5, n, 2, n))"
    kaio-emit -D n=4 -D c=2 k.yaml | kaio-run -q -d cpu - x=x.bin a=a.bin o=o.bin u=u.bin
    [ "$(od -An -tdI a.bin | xargs)" = '2 0' ]
    [ "$(od -An -tfF o.bin | xargs) $(od -An -tfF u.bin | xargs)" = '5 -inf 1 inf' ]
}

@test "tiles have the sides that the schedule says, and all of their terms" {
    kernel 'x: in f32[n, 40, p]; y: out f32[n, 40, p]' 'y[b, k, i] = x[b, k, i] / (sum[q](abs(x[b, q, i])) + 1)' >k.yaml
    for schedule in 'tile: 8' 'block: 512' 'vector: 2' 'block: 384' 'block: 128, tile: 8, vector: 1'; do
        { cat k.yaml; echo "schedule: {$schedule}"; printf 'cases: {a: {n: 2, p: 64}, b: {n: 1, p: 37}, c: {n: 3, p: 2}}\n'; } >s.yaml
        run -0 kaio-verify --run -d cpu --check s.yaml
        [[ $output == *"passed, 0 failed, 0 skipped" ]]
    done
    { cat k.yaml; echo 'schedule: {split: 2}'; } >s.yaml
    run -2 kaio-emit s.yaml
    [[ $output == *"a block holds its tile: it has no 'split'"* ]]
    { cat k.yaml; echo 'schedule: {block: 32, tile: 32}'; } >s.yaml
    run -2 kaio-emit s.yaml
    [[ $output == *"the tile does not fit: line 6: it is more than a block holds"* ]]
    # too many terms, or a sum that differs between those that need it
    for body in 'y[b, k, i] = x[b, k, i] / (sum[c](abs(x[b, c, i] - x[b, k, i])) + 1)' 'y[b, k, i] = x[b, k, i] / (sum[c < k + 1](x[b, c, i]) + 1)'; do
        kernel 'x: in f32[n, 40, p]; y: out f32[n, 40, p]' "$body" >k.yaml
        run ! grep 'they hold' <(kaio-emit --explain k.yaml)
    done
    kernel 'x: in f32[n, 20000, p]; y: out f32[n, 20000, p]' 'y[b, k, i] = x[b, k, i] / (sum[q](abs(x[b, q, i])) + 1)' >k.yaml
    run ! grep 'they hold' <(kaio-emit --explain k.yaml)
}

@test "tiles of sizes that the launch knows are held, and what is too long for them has other launches" {
    kernel 'x: in f32[a, b, c]; y: out f32[a, b, c]; m: out f32[a, c]; at: out i32[a, c]; of: out i32[a, c]' \
        'm[i, k] = mean[q](x[i, q, k]); at[i, k] = argmax[q](x[i, q, k]); of[i, k] = argmin[q](x[i, q, k]); y[i, j, k] = exp(x[i, j, k] - max[q](x[i, q, k])) + var[q](x[i, q, k])' >k.yaml
    run -0 kaio-emit --explain k.yaml
    [ "$(grep -c 'whose terms they hold: read once' <<<"$output")" = 4 ]
    [[ $output == *'k_y: map'* ]]
    # one thread to many below each other, several tiles to a block, whole vectors or not, nothing at all, and the rest
    for size in 'a=1 b=1 c=1' 'a=130 b=3 c=1' 'a=2 b=130 c=64' 'a=3 b=33 c=5' 'a=1 b=1100 c=4' 'a=2 b=0 c=3' 'a=1 b=4099 c=3'; do
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --check --code=generic --fill=normal k.yaml $size
        [[ $output == *' passed, 0 failed'* ]]
    done
    run -0 kaio-verify --run -d cpu --code=generic --fill=extreme,edge --steps k.yaml a=3 b=20 c=9
    # too many terms whatever else there is
    kernel 'x: in f32[9000, c]; y: out f32[9000, c]' 'y[i, j] = x[i, j] - max[q](x[q, j])' >m.yaml
    run ! grep 'they hold' <(kaio-emit --explain m.yaml)
    # a tile of several axes, neither of which is next to the other
    kernel 'x: in f16[a, b, c, d]; g: in f16[b]; y: out f16[a, b, c, d]' \
        'y[i, j, k, l] = x[i, j, k, l] / (norm2[q, s](x[q, j, s, l]) + 1) * g[j]' >k.yaml
    for size in 'a=3 b=2 c=5 d=7' 'a=9 b=3 c=17 d=8'; do
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --check --code=generic --fill=normal k.yaml $size
    done
}

@test "many results of many terms, as single elements, are tiles of wide rows" {
    kernel 'x: in f32[b, d, e]; s: out f32[b, e]' 's[i, j] = sum[k](x[i, k, j])' >k.yaml
    run -0 kaio-emit --explain -D b=128 -D d=4096 -D e=4095 k.yaml
    [[ $output == *'1024 threads as 4 rows of a tile of 256 results'* ]]
    run -0 kaio-emit --explain -D b=128 -D d=64 -D e=4095 k.yaml
    [[ $output == *'256 threads with results of their own'* ]]
    run -0 kaio-emit --explain -D b=128 -D d=4096 -D e=4096 k.yaml
    [[ $output == *'256 threads with results of their own'* ]]
}

@test "a variance of differences that have a name takes the mean's sweep, too" {
    kernel 'x: in f32[n, c]; m: out f32[n]; v: out f32[n]' "$(printf 'm[i] = sum[k](x[i, k]) / c\nd[i, k] = x[i, k] - m[i]\nv[i] = sum[k](d[i, k] * d[i, k]) / c')" >k.yaml
    echo 'schedule: {strategy: reduce}' >>k.yaml
    kaio-emit k.yaml >k.ptx
    grep -q 'fma.rn.f64' k.ptx
    echo 'cases: {a: {n: 3, c: 5000}, b: {n: 1, c: 1}, c: {n: 2, c: 33}}' >>k.yaml
    run -0 kaio-verify --run -d cpu --check k.yaml
    [[ $output == *"passed, 0 failed, 0 skipped" ]]
}

@test "what does not fit is left to others, and says why" {
    kernel 'a: in f32[n, k]; b: in f32[k, m]; c: out f32[n, m]' 'c[i, j] = sum[l](a[i, l] * b[l, j])' >k.yaml
    echo 'schedule: {strategy: reduce}' >>k.yaml
    run -2 kaio-emit k.yaml
    [[ $output == *"strategy 'reduce' does not fit: line 7: several results need the same elements of 'a'"* ]]
    kernel 'p: in i32[n]; x: in f32[m]; y: out f32[n]' 'y[i] = sum[k < p[i]](x[k])' >k.yaml
    run -0 kaio-emit --explain -v k.yaml
    [[ $output == *"not reduce: line 7: the range of 'k' depends on more than dimensions and integers"* ]]
}

@test "the schedule is obeyed, or refused with what would be possible" {
    kernel 'x: in f32[r, c]; s: out f32[c]' 's[j] = sum[i](x[i, j])' >k.yaml
    for schedule in 'tile: 16' 'tile: 1, block: 64' 'vector: 2, unroll: 4' 'tile: 64, split: 3' 'block: 96, tile: 32'; do
        { cat k.yaml; echo "schedule: {$schedule}"; printf 'cases: {a: {r: 65, c: 64}, b: {r: 300, c: 37}, c: {r: 1, c: 2}}\n'; } >s.yaml
        run -0 kaio-verify --run -d cpu --check s.yaml
        [[ $output == *"passed, 0 failed, 0 skipped" ]]
    done
    { cat k.yaml; echo 'schedule: {block: 96, tile: 64}'; } >s.yaml
    run -2 kaio-emit s.yaml
    [[ $output == *"'tile' must divide 'block'"* ]]
    kernel 'x: in f32[n]; s: out f32[]' 's = sum[i](x[i])' >k.yaml
    { cat k.yaml; echo 'schedule: {tile: 8}'; } >s.yaml
    run -2 kaio-emit s.yaml
    [[ $output == *"'tile' is for results that lie side by side in memory"* ]]
    { cat k.yaml; echo 'schedule: {split: 0}'; } >s.yaml
    run -2 kaio-emit s.yaml
    [[ $output == *"'split' is a number from 1 to 65535, not '0'"* ]]
}

@test "one result of much from two buffers has as many threads as there is room for" {
    cat >k.yaml <<'END'
kernel: distance
params:
  x: in f32[n]
  y: in f32[n]
  d: out f32[]
compute: d = sum[i](abs(x[i] - y[i]))
END
    run -0 kaio-emit -t sm_90 --explain -v -D n=268435456 k.yaml
    [[ $output == *"1024 threads, 1 x 4 elements in flight"* && $output == *"grid 264, block 1024"* ]]
    # of what caches have, of one buffer, or where a schedule speaks, it has not
    [[ $(kaio-emit -t sm_90 --explain -v -D n=1048576 k.yaml) == *"block 256"* ]]
    sed 's/ - y\[i\]/ + 1/; /  y: /d' k.yaml >one.yaml
    [[ $(kaio-emit -t sm_90 --explain -v -D n=268435456 one.yaml) == *"grid 396, block 256"* ]]
    echo 'schedule: {unroll: 4}' >>k.yaml
    [[ $(kaio-emit -t sm_90 --explain -v -D n=268435456 k.yaml) == *"grid 396, block 256"* ]]
}
