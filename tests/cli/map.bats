# The map strategy: broadcasts, gathers, stencils, index arithmetic and transposes, over sizes that are multiples of
# nothing and of everything; on the simulator with all checks, and through ptxas where there is one.
bats_require_minimum_version 1.5.0

load equations

@test "every kind of map computes what its mathematics says, and reads nothing else" {
    for target in sm_70 sm_90; do
        [ -z "${KAIO_QUICK-}" ] || [ $target = sm_90 ] || continue
        run -0 kaio-verify --run -d cpu --check ${KAIO_QUICK:+--fill=normal} -t $target data/maps.yaml
        [[ $output == *"passed, 0 failed, 0 skipped" ]]
    done
}

@test "they are maps, and no thread's registers spill" {
    kaio-emit --explain -v data/maps.yaml >explained 2>&1
    [ "$(grep -c ': strategy map$' explained)" = "$(grep -c '^kernel: ' data/maps.yaml)" ]
    [ -n "$ptxas" ] || skip "no ptxas"
    for target in sm_75 sm_90; do
        kaio-emit -t $target data/maps.yaml >maps.ptx
        "$ptxas" -v -arch=$target -o maps.cubin maps.ptx 2>log
        [ "$(grep -c 'bytes spill stores' log)" = "$(grep -c '^.visible .entry' maps.ptx)" ]
        [ -z "$(grep 'bytes spill stores' log | grep -v ' 0 bytes spill stores')" ]
    done
}

@test "rows that are whole vectors are moved 16 bytes at a time" {
    kernel 'x: in f16[r, c]; b: in f16[c]; s: in f32[r]; y: out f16[r, c]' 'y[i,j] = x[i,j] * s[i] + b[j]' >k.yaml
    kaio-emit -D c=4096 -D r=64 k.yaml >k.ptx
    [ "$(grep -c '^.visible .entry' k.ptx)" = 1 ]
    [ "$(grep -c 'ld.global.nc.v4.b32' k.ptx)" = 2 ]
    [ "$(grep -c 'ld.global.nc.f32' k.ptx)" = 1 ]
    [ "$(grep -c 'st.global.v4.b32' k.ptx)" = 1 ]
    run ! grep -qE 'div.[us]64|rem.[us]64' k.ptx
    # rows that are not, as long as they are so together
    kaio-emit -D c=4095 -D r=64 k.yaml >k.ptx
    [ "$(grep -c '^.visible .entry' k.ptx)" = 1 ]
    [ "$(grep -c 'v4.b32' k.ptx)" = 2 ] # x and y
    # and what is left over is done element by element
    kaio-emit -D c=4095 -D r=63 k.yaml >k.ptx
    [ "$(grep -c '^.visible .entry' k.ptx)" = 1 ]
    [ "$(grep -c 'v4.b32' k.ptx)" = 2 ]
    [ "$(grep -c 'st.global.b16' k.ptx)" = 1 ]
}

@test "the halves of a rotation are whole vectors on either side of the middle" {
    kernel 'x: in f16[t, d]; y: out f16[t, d]' 'y[i,j] = j < d / 2 ? -x[i, j + d / 2] : x[i, j - d / 2]' >k.yaml
    kaio-emit -D d=128 k.yaml >k.ptx
    sed '/^[$]exit/q' k.ptx >first
    [ "$(grep -c 'ld.global.nc.v4.b32' first)" = 2 ]
    run ! grep -q 'ld.global.nc.b16' first
    kaio-emit k.yaml >k.ptx
    grep -q 'fits_rows: d % 8 == 0 ' k.ptx
    grep -q 'when: fits_rows && d / 2 % 8 == 0' k.ptx
}

@test "neighbours share their loads" {
    kernel 'x: in f32[r, c]; y: out f32[r, c]' \
        'y[i,j] = pad(x[i,j-1], 0) + x[i,j] + pad(x[i,j+1], 0) + pad(x[i,j+2], 0)' >k.yaml
    kaio-emit -D c=64 k.yaml | sed '/^[$]exit/q' >first
    [ "$(grep -c 'ld.global.nc.v4.f32' first)" = 2 ] # this vector and the next
    [ "$(grep -c 'ld.global.nc.f32' first)" = 1 ]    # the element before
}

@test "a guard keeps reads inside" {
    kernel 'x: in f32[n]; k: in i32[n]; y: out f32[n]' \
        'y[i] = k[i] >= 0 && k[i] < n && x[k[i]] > 0.5 ? x[k[i]] : i < n - 3 ? x[i + 3] : x[i] + 1' >k.yaml
    for n in 1 3 4 64 67; do
        kaio-emit k.yaml | kaio-run -d cpu --check n=$n x=@uniform k=@randint:-100:100 y=y.npy
        kaio-verify k.yaml x=@uniform k=@randint:-100:100 y=y.npy
    done
}

@test "impossible vectors are errors" {
    kernel 'x: in f32[r, c]; b: in f32[c]; y: out i4[r, c]' 'y[i,j] = i4(x[i,j] + b[j])' >k.yaml
    echo 'schedule: {vector: 1}' >>k.yaml
    run -2 kaio-emit k.yaml
    [[ $output == *"'vector' must be at least 2"* ]]
}

@test "transposes go through tiles of shared memory, both sides in whole runs" {
    kernel 'x: in f16[b, n, m]; y: out f16[b, m, n]' 'y[i,j,k] = x[i,k,j] + 1' >k.yaml
    kaio-emit -D n=4096 -D m=4096 k.yaml >k.ptx
    [ "$(grep -c '^.visible .entry' k.ptx)" = 1 ]
    [ "$(grep -c 'ld.global.nc.b32' k.ptx)" = 8 ]
    [ "$(grep -c 'st.global.b32' k.ptx)" = 8 ]
    grep -q 'tile0\[8192\]' k.ptx
    [ "$(grep -c 'st.shared.b32' k.ptx)" = 8 ] # words, transposed in registers
    [ "$(grep -c 'ld.shared.b32' k.ptx)" = 8 ]
    run ! grep -q '^	@' k.ptx # the tiles are whole
    # a condition does not matter where no element can be outside
    kernel 'x: in f32[n, m]; f: in bool[m, n]; y: out f32[m, n]' 'y[j,k] = f[j,k] ? x[k,j] : 0' >k.yaml
    kaio-emit k.yaml | sed '/^}/q' >k.ptx
    [ "$(grep -c 'shared .align' k.ptx)" = 1 ]
    # an output that two transposes and plain reads make
    kernel 'p: in f32[n, m]; q: in f32[n, m]; r: in f32[m, n]; y: out f32[m, n]' \
        'y[j,k] = p[k,j] * q[k,j] + r[j,k] + p[k,j]' >k.yaml
    kaio-emit k.yaml | sed '/^}/q' >k.ptx
    [ "$(grep -c 'shared .align' k.ptx)" = 2 ]
    [ "$(grep -c 'ld.global' k.ptx)" = 12 ]
}

@test "tiles are as scheduled, or refused" {
    kernel 'x: in f32[n, m]; y: out f32[m, n]' 'y[j,k] = x[k,j]' >k.yaml
    for schedule in 'tile: 64' 'tile: 64, vector: 4' 'tile: 32, vector: 2, block: 128' 'tile: 64, block: 512, vector: 2' 'tile: 16, block: 64'; do
        { cat k.yaml; echo "schedule: {$schedule}"; printf 'cases: {a: {n: 64, m: 128}, b: {n: 18, m: 66}, c: {n: 67, m: 33}}\n'; } >s.yaml
        run -0 kaio-verify --run -d cpu --check s.yaml
        [[ $output == *"12 passed, 0 failed, 0 skipped" ]]
    done
    { cat k.yaml; echo 'schedule: {tile: 24}'; } >s.yaml
    run -2 kaio-emit s.yaml
    [[ $output == *"'tile' is a power of two from 16 to 128, not '24'"* ]]
    { cat k.yaml; echo 'schedule: {tile: 64, block: 96}'; } >s.yaml
    run -2 kaio-emit s.yaml
    [[ $output == *"96 threads can't walk a tile of 64 x 64 elements"* ]]
    { cat k.yaml; echo 'schedule: {tile: 128, vector: 8}'; } >s.yaml
    run -2 kaio-emit s.yaml
    [[ $output == *"66048 bytes of shared memory, more than 49152"* ]]
}

@test "nothing is computed of no elements" {
    kernel 'x: in f32[n, m]; b: in f32[m]; y: out f32[m, n]; z: out f32[m, n, 2]' \
        "$(printf 'y[j,k] = x[k,j] + b[j]\nz[j,k,i] = x[k,j] * i')" >k.yaml
    kaio-emit k.yaml >k.ptx
    for sizes in 'n=0 m=5' 'n=64 m=0' 'n=0 m=0'; do
        # shellcheck disable=SC2086
        run -0 kaio-run -d cpu --check k.ptx $sizes x=@ones b=@ones
    done
}

@test "each variant computes the same, whatever the sizes ask for" {
    kernel 'x: in f16[r, c]; b: in f32[c]; s: in f16[r, c / 2]; t: in f16[c, r]; y: out f16[r, c]' \
        'y[i,j] = x[i,j] * b[j] + pad(x[i + 1, j - 1], 1) + s[i, j / 2] + t[j,i]' >k.yaml
    kaio-emit k.yaml >k.ptx
    [ "$(grep -c '^//@ *when:' k.ptx)" = 6 ] # two with tiles, three with vectors, one with elements
    for skip in 0 1 2 3 4 5; do
        awk -v skip=$skip '/^\/\/@ *when:/ && n++ < skip { print "//@     when: 1 == 0"; next } { print }' k.ptx >v.ptx
        for sizes in 'r=16 c=32' 'r=5 c=64' 'r=5 c=14'; do
            [ "$sizes" != 'r=5 c=14' ] || [ $skip -ge 4 ] || continue # rows are no vectors
            inputs='x=@normal:1 b=@normal:2 s=@normal:3 t=@normal:4'
            # shellcheck disable=SC2086
            run -0 kaio-run -d cpu --check v.ptx $sizes $inputs y=y.npy
            # shellcheck disable=SC2086
            run -0 kaio-verify k.yaml $sizes $inputs y=y.npy
        done
    done
}

@test "axes that nothing tells apart are one" {
    kernel 'x: in f16[b, s, h, d]; w: in f16[d]; y: out f16[b, s, h, d]' 'y[i,j,k,l] = x[i,j,k,l] * w[l]' >k.yaml
    kaio-emit k.yaml | sed '/^}/q' >first
    [ "$(grep -c 'mul.hi' first)" = 1 ] # one division, of rows by columns
    # the image's axes: rows of 7 are too short for tiles, rows of 49 are not
    kernel 'x: in f32[n, h, w, c]; y: out f32[n, c, h, w]' 'y[i,l,j,k] = x[i,j,k,l]' >k.yaml
    kaio-emit -D h=7 -D w=7 -D c=64 k.yaml >k.ptx
    [ "$(grep -c 'bar.sync' k.ptx)" = 1 ]
    [ "$(grep -c '^.visible .entry' k.ptx)" = 1 ]
    kaio-emit k.yaml | kaio-run -d cpu --check n=2 h=7 w=5 c=17 x=@normal y=y.npy
    kaio-verify k.yaml x=@normal y=y.npy n=2
}

@test "random subscripts, conditions and intermediates compute what they say" {
    command -v python3 >/dev/null || skip "no python3"
    count=150
    [ -z "${KAIO_QUICK-}" ] || count=40
    python3 "$KAIO_SRCDIR/tests/kernels/maps.py" "${KAIO_SEED:-1}" $count >random.yaml
    kaio-emit --explain -v random.yaml 2>&1 | grep -c ': strategy map' >maps
    [ "$(cat maps)" = $count ]
    for target in sm_70 sm_90; do
        # some references are constant, which is no pass, but no failure either
        kaio-verify --run -d cpu --check ${KAIO_QUICK:+--code=generic} -t $target random.yaml >out 2>/dev/null || [ $? = 1 ]
        [ -z "$(grep -v '^PASS\|^MISTRUST\|^    repeat: ' out | grep -v ' passed, 0 failed, 0 skipped')" ]
        [ "$(grep -c '^PASS' out)" -ge $((6 * count)) ]
    done
    for variant in '-D a=17 -D b=16 -D c=32' '-D c=40' '-D b=5'; do
        # shellcheck disable=SC2086
        kaio-emit $variant random.yaml >random.ptx 2>/dev/null
        [ "$(grep -c '^//@ kernel: ' random.ptx)" = $count ]
    done
    [ -z "$ptxas" ] || "$ptxas" -O1 -arch=sm_80 -o random.cubin random.ptx
}

@test "large light maps take blocks of 1024 threads, of several inputs 8 bytes in blocks of 512, others of 256" {
    kernel 'x: in f32[n]; y: out f32[n]' 'y[i] = x[i] + x[i]' >light.yaml
    kernel 'x: in f32[n]; z: in f32[n]; y: out f32[n]' 'y[i] = exp(x[i]) + z[i]' >pair.yaml
    kernel 'x: in f16[n]; z: in f32[n]; y: out f32[n]' 'y[i] = exp(x[i]) + z[i]' >mixed.yaml
    kernel 'x: in f32[n]; y: out f32[n]' 'y[i] = exp(x[i])' >heavy.yaml
    kaio-emit -D n=16000001 light.yaml | grep -qx '.reqntid 1024, 1, 1'
    kaio-emit -D n=16000001 heavy.yaml | grep -qx '.reqntid 256, 1, 1'
    kaio-emit -D n=100000 light.yaml | grep -qx '.reqntid 256, 1, 1'
    kaio-emit light.yaml | grep -qx '.reqntid 256, 1, 1'
    kaio-emit -D n=16000001 mixed.yaml | grep -qx '.reqntid 256, 1, 1'
    kaio-emit -D n=100000 pair.yaml | grep -qx '.reqntid 256, 1, 1'
    # the last block is not full
    kaio-emit -D n=4194305 light.yaml >light.ptx
    grep -qx '.reqntid 1024, 1, 1' light.ptx
    kaio-run -d cpu light.ptx x=@ones y=y.npy
    [ "$(tail -c +129 y.npy | od -An -v -tf4 -w4 | uniq -c | tr -s ' ')" = "4194305 2" ]
    kaio-emit -D n=4194305 pair.yaml >pair.ptx
    grep -qx '.reqntid 512, 1, 1' pair.ptx
    grep -q 'ld.global.nc.v2.f32' pair.ptx
    run ! grep -q 'global.*v4' pair.ptx
    kaio-run -d cpu pair.ptx x=@zeros z=@ones y=y.npy
    [ "$(tail -c +129 y.npy | od -An -v -tf4 -w4 | uniq -c | tr -s ' ')" = "4194305 2" ]
}

@test "8-bit floats become f16 without f32 between, where the target converts them" {
    printf '%s\n' 'kernel: k' 'types: {T: [e4m3, e5m2]}' 'params: {x: "in T[n]", y: "out f16[n]"}' 'compute: "y[i] = f16(x[i])"' \
        >"$BATS_TEST_TMPDIR/k.yaml"
    python3 -c 'import sys; open(sys.argv[1], "wb").write(bytes(range(256)))' "$BATS_TEST_TMPDIR/x.bin"
    for type in e4m3 e5m2; do
        for target in sm_80 sm_89; do
            kaio-emit -t $target -D T=$type "$BATS_TEST_TMPDIR/k.yaml" >"$BATS_TEST_TMPDIR/k.ptx"
            kaio-run -q -d cpu "$BATS_TEST_TMPDIR/k.ptx" n=256 x="$BATS_TEST_TMPDIR/x.bin" y="$BATS_TEST_TMPDIR/$target.bin"
        done
        run ! grep 'f32' "$BATS_TEST_TMPDIR/k.ptx"
        cmp "$BATS_TEST_TMPDIR/sm_80.bin" "$BATS_TEST_TMPDIR/sm_89.bin"
    done
}

@test "a pooling window of 11 x 11 elements is written out, not a thread's loop" {
    printf '%s\n' 'kernel: k' 'params:' '  x: in f32[b, c, h, w]' '  y: out f32[b, c, h / 11, w / 11]' 'compute: |' \
        '  y[z,f,i,j] = sum[u < 11, v < 11](x[z,f,i*11+u,j*11+v]) / 121' >"$BATS_TEST_TMPDIR/k.yaml"
    run -0 --separate-stderr kaio-emit --explain -v "$BATS_TEST_TMPDIR/k.yaml"
    [[ $output == *"k: strategy map"* && -z $stderr ]]
    kaio-verify --run -d cpu --check "$BATS_TEST_TMPDIR/k.yaml" b=2 c=2 h=35 w=68
}

@test "short rows are turned a vector of them at a time, each element read once" {
    cat >"$BATS_TEST_TMPDIR/k.yaml" <<'END'
kernel: turn
types: {T: [f16, f32, i8]}
params: {x: 'in T[f, c, 3, 3]', y: 'out T[f, 3, 3, c]'}
compute: y[o,u,v,d] = x[o,d,u,v]
---
kernel: narrows
params: {x: 'in f32[c, n]', y: 'out f16[n, c]'}
compute: y[u,d] = f16(x[d,u] * 2 + u + d)
---
kernel: twice
params: {x: 'in f32[f, c, 5]', y: 'out f32[f, 5, c]', z: 'out f32[f, 5, c]'}
compute: |
  y[o,u,d] = x[o,d,u] + x[o,d,(u + 1) % 5]
  z[o,u,d] = -x[o,d,u]
END
    cd "$BATS_TEST_TMPDIR"
    run -0 kaio-emit --explain -v -D f=64 -D c=64 --kernel=turn k.yaml
    [[ $output == *"turn: 256 threads, 8 rows of 9 elements for each"* ]]
    kaio-emit -D f=64 -D c=64 --kernel=turn k.yaml >k.ptx
    [ "$(grep -c 'ld.global.*v4' k.ptx)" -eq 9 ]
    [ "$(grep -c 'ld.global' k.ptx)" -eq 9 ]
    [ "$(grep -c 'st.global.*v4' k.ptx)" -eq 9 ]
    for size in 'f=3 c=16' 'f=1 c=32' 'f=2 c=13' 'f=300 c=8'; do
        for type in f16 f32 i8; do
            # shellcheck disable=SC2086
            run -0 kaio-verify --run -d cpu --check --kernel=turn -D T=$type k.yaml $size
        done
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --check --kernel=twice k.yaml $size
    done
    for size in 'n=3 c=12' 'n=15 c=8' 'n=16 c=8' 'n=2 c=7' 'n=1 c=8'; do
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --check --kernel=narrows k.yaml $size
    done
}

@test "what a large read has for many rows is asked for by neighbouring blocks" {
    kernel 'x: in f32[n, c]; w: in f32[c]; y: out f32[n, c]' 'y[i, j] = x[i, j] * w[j]' >k.yaml
    run -0 kaio-verify --run -d cpu --code=fixed --sample=3000 k.yaml n=3 c=1048576
    kaio-emit -D n=16 -D c=1048576 k.yaml >large.ptx # the row is ctaid.x % 16
    grep -q 'and.b32 .*, 15;' large.ptx
    kaio-emit -D n=16 -D c=65536 k.yaml >small.ptx
    run ! grep 'and.b32 .*, 15;' small.ptx
}

@test "a known range of 32 bits is divided as one" {
    kernel 'x: in f32[n]; y: out f32[n]' 'y[i] = (i + 2) % 5 < 2 ? x[(2 * i + 7) / 10] : 0' >k.yaml
    kaio-emit -D n=1000 k.yaml >known.ptx
    grep -q 'rem.u32 .*, 5;' known.ptx
    grep -q 'div.u32 .*, 10;' known.ptx
    run ! grep -E '(div|rem)\.[su]64' known.ptx
    run -0 kaio-verify --run -d cpu --check k.yaml n=1000
    # what may be below 0, or is not known, is not
    kernel 'x: in f32[n]; y: out f32[n]' 'y[i] = pad(x[(i - 7) / 5], 0)' >k.yaml
    kaio-emit -D n=1000 k.yaml >below.ptx
    grep -q 'div.s64' below.ptx
    run -0 kaio-verify --run -d cpu --check k.yaml n=1000
}
