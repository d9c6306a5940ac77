# Rows held in registers: every way to share one, what is read beside them, and what schedules may say.
bats_require_minimum_version 1.5.0

setup() {
    cd "$KAIO_SRCDIR"
    dir=$BATS_TEST_TMPDIR
}

# fixed SPEC TARGET 'r: 3, c: 5' [OPTION...]: verifies that one case, its dimensions fixed at emission
fixed() {
    local spec=$1 target=$2 dims=$3 d
    shift 3
    sed '/^cases:/,$d' "$spec" >"$dir/fixed.yaml"
    printf 'cases:\n  c: {%s}\n' "$dims" >>"$dir/fixed.yaml"
    for d in ${dims//,/}; do
        case $d in
        *:) local name=${d%:} ;;
        *) set -- "$@" -D "$name=$d" ;;
        esac
    done
    kaio-verify --run -d cpu --check -t "$target" "$@" "$dir/fixed.yaml" >"$dir/out" && return
    cat "$dir/out"
    return 1
}

plan() { # SPEC OPTION...: what --explain -v says of the first entry
    kaio-emit --explain -v "${@:2}" "$1" | grep ' elements in a vector'
}

@test "what is read and computed beside a row is right, under every check" {
    local targets='sm_70 sm_80 sm_90'
    [ -z "${KAIO_QUICK-}" ] || targets=sm_90
    for f in in_place neighbours masks wide residual; do
        for target in $targets; do
            run -0 kaio-verify --run -d cpu --check ${KAIO_QUICK:+--fill=normal} -t $target tests/data/rows/$f.yaml
        done
        kaio-emit --explain -v tests/data/rows/$f.yaml | grep -q 'strategy row'
    done
}

@test "every column count on either side of a change of plan is right" {
    local all='2 7 8 15 16 17 31 32 33 64 65 128 129 255 256 257 264 1000 1001 1023 1024'
    [ -z "${KAIO_QUICK-}" ] || all='7 64 129 1000'
    for cols in $all; do
        fixed specs/norm/softmax.yaml sm_80 "rows: 5, cols: $cols"
        fixed specs/norm/layer_norm.yaml sm_90 "rows: 3, cols: $cols" -D T=f32
    done
    fixed tests/data/rows/masks.yaml sm_70 'rows: 5, cols: 200' -D T=i32
}

@test "every number of rows fits blocks of several" {
    for rows in 2 3 4 5 15 16 17 33; do
        [ -z "${KAIO_QUICK-}" ] || [ $rows = 17 ] || continue
        fixed specs/norm/softmax.yaml sm_80 "rows: $rows, cols: 24"
        fixed tests/data/rows/in_place.yaml sm_90 "rows: $rows, cols: 72"
    done
}

@test "rows of a block, of a cluster, and read again" {
    for cols in 4096 8200 20000; do
        fixed specs/norm/softmax.yaml sm_90 "rows: 2, cols: $cols"
        fixed tests/data/rows/in_place.yaml sm_80 "rows: 2, cols: $cols"
        fixed specs/norm/layer_norm.yaml sm_90 "rows: 2, cols: $cols" -D T=f32
    done
    fixed specs/norm/layer_norm.yaml sm_90 'rows: 2, cols: 65536'
    fixed specs/norm/add_rms_norm_quant.yaml sm_90 'rows: 1, cols: 32768'
    fixed tests/data/rows/masks.yaml sm_90 'rows: 9, cols: 40000' --all
    fixed specs/norm/log_softmax.yaml sm_80 'rows: 2, cols: 300000'
}

@test "maxima and sums relative to them take one reading of long rows" {
    for fill in normal edge exact; do
        [ -z "${KAIO_QUICK-}" ] || [ $fill = edge ] || continue
        for spec in norm/softmax norm/logsumexp loss/cross_entropy; do
            fixed specs/$spec.yaml sm_80 'rows: 3, cols: 70001' -D T=f32 --fill=$fill --all
        done
    done
    kaio-emit -D cols=70001 -D T=f32 specs/norm/softmax.yaml >"$dir/k.ptx"
    [ "$(grep -c 'ld.global' "$dir/k.ptx")" -eq 6 ] # two loops of two and one
    # a sum of nothing is 0, of nothing but -inf NaN
    cat >"$dir/sums.yaml" <<'END'
kernel: sums
params: {x: "in f32[rows, cols]", y: "out f32[rows]"}
compute: |
  top[r] = max[c](x[r, c])
  y[r] = sum[c](exp(x[r, c] - top[r]))
END
    run -0 kaio-verify --run -d cpu "$dir/sums.yaml" rows=3 cols=0
    kaio-emit "$dir/sums.yaml" | kaio-run -q -d cpu rows=1 cols=9000 x=@const:-inf y="$dir/y.bin"
    [ "$(od -An -tx4 "$dir/y.bin")" = ' 7fffffff' ]
}

@test "columns known at launch only take the entry that fits them" {
    sed '/^cases:/,$d' specs/norm/softmax.yaml >"$dir/any.yaml"
    printf 'cases:\n' >>"$dir/any.yaml"
    for cols in 2 100 128 129 136 1000 2047 2049 16384 16392 33001; do
        printf '  c%d: {rows: 3, cols: %d}\n' $cols $cols >>"$dir/any.yaml"
    done
    for target in sm_70 sm_90; do
        [ -z "${KAIO_QUICK-}" ] || [ $target = sm_90 ] || continue
        run -0 kaio-verify --run -d cpu --check -t $target "$dir/any.yaml"
    done
}

@test "groups of channels: an index split where vectors do and do not cross it" {
    for pixels in 3 7 8 49 64 125; do
        fixed specs/norm/group_norm.yaml sm_80 "images: 2, groups: 3, channels: 8, pixels: $pixels"
    done
}

@test "zeros, subnormals, infinities and NaN" {
    for spec in softmax log_softmax logsumexp layer_norm rms_norm l2_normalize add_rms_norm_quant; do
        [ -z "${KAIO_QUICK-}" ] || [[ $spec = softmax || $spec = layer_norm ]] || continue
        fixed specs/norm/$spec.yaml sm_80 'rows: 9, cols: 40' --fill=edge
        fixed specs/norm/$spec.yaml sm_90 'rows: 9, cols: 3' --fill=edge -D T=f32
    done
    # rows of -inf alone: each of the many terms is 0, not nearly
    fixed specs/norm/logsumexp.yaml sm_80 'rows: 43, cols: 512' --fill=extreme -D T=bf16
}

@test "threads that share a row grow with it, up to a cluster" {
    [[ $(plan specs/norm/softmax.yaml -D cols=512) == *' 32 threads for each row, 4 rows for each block, 2 vectors'* ]]
    [[ $(plan specs/norm/softmax.yaml -D cols=16) == *' 2 threads for each row, 64 rows for each block'* ]]
    [[ $(plan specs/norm/softmax.yaml -D cols=4096) == *' 128 threads for each row, 4 vectors'* ]]
    [[ $(plan specs/norm/rms_norm.yaml -D cols=4096) == *' 256 threads for each row, 2 vectors'* ]]
    [[ $(plan specs/loss/cross_entropy.yaml -D cols=4096) == *' 128 threads for each row, 4 vectors'* ]]
    [[ $(plan specs/norm/rms_norm.yaml -D T=f32 -D cols=1024) == *' 256 threads for each row, 1 vectors'* ]]
    [[ $(plan specs/norm/layer_norm.yaml -D T=f32 -D cols=4096) == *' 512 threads for each row, 2 vectors'* ]]
    [[ $(plan specs/norm/layer_norm.yaml -D T=f32 -D cols=5120) == *' 320 threads for each row, 4 vectors'* ]]
    [[ $(plan specs/norm/softmax.yaml -D cols=768 -D rows=1) == *' 96 threads for each row, 1 vectors'* ]]
    [[ $(plan specs/norm/softmax.yaml -D cols=8192 -D rows=1) == *' 256 threads for each row, 4 vectors'* ]]
    [[ $(plan specs/norm/layer_norm.yaml -D cols=8192 -D rows=16) == *' 512 threads for each row, 2 vectors'* ]]
    [[ $(plan specs/norm/softmax.yaml -D T=f32 -D cols=768 -D rows=128) == *' 96 threads for each row, 2 vectors'* ]]
    [[ $(plan specs/norm/softmax.yaml -D T=f32 -D cols=1024 -D rows=1) == *' 128 threads for each row, 2 vectors'* ]]
    [[ $(plan specs/norm/softmax.yaml -t sm_90 -D T=f32 -D cols=8192 -D rows=16) == *' 256 threads for each row, 8 vectors'* ]]
    [[ $(plan specs/norm/softmax.yaml -t sm_90 -D T=f32 -D cols=8192 -D rows=1) == *' in 8 blocks of a cluster, 2 vectors'* ]]
    [[ $(plan specs/norm/logsumexp.yaml -t sm_90 -D T=f32 -D cols=8192 -D rows=1) == *' 256 threads for each row, 8 vectors'* ]]
    [[ $(plan specs/norm/softmax.yaml -t sm_90 -D cols=16384 -D rows=1) == *' in 8 blocks of a cluster, 2 vectors'* ]]
    [[ $(plan specs/norm/softmax.yaml -t sm_90 -D cols=8192 -D rows=16) == *' 256 threads for each row, 4 vectors'* ]]
    [[ $(plan specs/norm/layer_norm.yaml -D cols=32768) == *' as they were loaded'* ]]
    [[ $(plan specs/norm/softmax.yaml -t sm_90 -D cols=65536) == *' in 4 blocks of a cluster'* ]]
    [[ $(plan specs/norm/rms_norm.yaml -t sm_90 -D cols=65536) == *' 256 threads for each row, in 4 blocks'* ]]
    [[ $(plan specs/norm/softmax.yaml -D cols=1000000) == *' reading the row again'* ]]
}

@test "what is read once and too large for the cache leaves it first, where nothing as large is written" {
    hints() { kaio-emit "$@" | grep -c 'L1::evict_first' || true; }
    [ "$(hints -t sm_90 specs/loss/cross_entropy.yaml -D rows=65536 -D cols=1024)" -gt 0 ]
    [ "$(hints -t sm_90 specs/reduce/sum_all.yaml -D n=67108864)" -gt 0 ]
    [ "$(hints -t sm_90 specs/loss/cross_entropy.yaml -D rows=16 -D cols=1024)" = 0 ]
    [ "$(hints -t sm_90 specs/loss/cross_entropy.yaml -D cols=1024)" = 0 ]
    [ "$(hints -t sm_90 specs/norm/softmax.yaml -D rows=65536 -D cols=1024)" = 0 ]
    [ "$(hints -t sm_80 specs/reduce/sum_all.yaml -D n=67108864)" = 0 ]
}

@test "rows that are written again, too large for the cache, are last to leave it as they are read" {
    hints() { kaio-emit "$@" | grep -c 'ld.global.L2::cache_hint.*, %rd[0-9]*;' || true; }
    [ "$(hints -t sm_90 specs/norm/softmax.yaml -D T=f32 -D rows=16384 -D cols=4096)" = 2 ]
    [ "$(hints -t sm_90 specs/norm/add_rms_norm_quant.yaml -D T=f32 -D rows=16384 -D cols=4096)" = 8 ]
    [ "$(hints -t sm_90 specs/norm/softmax.yaml -D rows=1024 -D cols=1024)" = 0 ]
    [ "$(hints -t sm_90 specs/norm/softmax.yaml -D cols=1024)" = 0 ]
    [ "$(hints -t sm_80 specs/norm/softmax.yaml -D rows=65536 -D cols=1024)" = 0 ]
    [ "$(hints -t sm_90 specs/norm/logsumexp.yaml -D rows=65536 -D cols=1024)" = 0 ]
    # the simulator takes them for what they are: hints
    kaio-emit -t sm_90 specs/norm/l2_normalize.yaml -D T=f32 -D rows=131072 -D cols=64 >"$dir/l2.ptx"
    kaio-run -d cpu "$dir/l2.ptx" x=@ones y="$dir/y.npy"
    [ "$(tail -c +129 "$dir/y.npy" | od -An -v -tf4 -w4 | uniq -c | tr -s ' ')" = "8388608 0.125" ]
}

@test "lines that a row has read have their own priority back before it is written" {
    lines() { kaio-emit "$@" | awk '/applypriority.global.L2::evict_normal .*, 128;/ { n++ } /st.global/ { exit } END { print n + 0 }'; }
    [ "$(lines -t sm_90 specs/norm/l2_normalize.yaml -D rows=26214 -D cols=5120)" = 2 ]
    [ "$(lines -t sm_90 specs/norm/softmax.yaml -D T=f32 -D rows=16384 -D cols=4096)" = 2 ]
    [ "$(lines -t sm_90 specs/norm/rms_norm.yaml -D rows=26214 -D cols=5120)" = 2 ]
    # not by long rows, nor by large blocks that hold weights, too
    [ "$(lines -t sm_90 specs/norm/softmax.yaml -D T=f32 -D rows=8192 -D cols=8192)" = 0 ]
    [ "$(lines -t sm_90 specs/norm/softmax.yaml -D rows=4096 -D cols=32768)" = 0 ]
    [ "$(lines -t sm_90 specs/norm/rms_norm.yaml -D rows=16384 -D cols=8192)" = 0 ]
    # only those that are the row's alone
    [ "$(lines -t sm_90 specs/norm/l2_normalize.yaml -D rows=26214 -D cols=5112)" = 0 ]
    [ "$(lines -t sm_90 specs/norm/l2_normalize.yaml -D rows=1024 -D cols=1024)" = 0 ]
    [ "$(lines -t sm_80 specs/norm/l2_normalize.yaml -D rows=26214 -D cols=5120)" = 0 ]
    # each once, be it of one vector of each thread or of two
    [ "$(lines -t sm_90 specs/norm/l2_normalize.yaml -D T=f32 -D rows=262144 -D cols=32)" = 1 ]
    kaio-emit -t sm_90 specs/norm/l2_normalize.yaml -D T=f32 -D rows=131072 -D cols=64 >"$dir/l2.ptx"
    [ "$(grep -c applypriority "$dir/l2.ptx")" = 2 ]
    # a fault unless it is one that begins there
    kaio-run -d cpu --check "$dir/l2.ptx" x=@ones y="$dir/y.npy"
    [ "$(tail -c +129 "$dir/y.npy" | od -An -v -tf4 -w4 | uniq -c | tr -s ' ')" = "8388608 0.125" ]
}

@test "what a row reads beside its columns is loaded once, before it waits for other threads" {
    kaio-emit -t sm_90 specs/loss/cross_entropy.yaml -D T=f32 -D rows=128 -D cols=384 >"$dir/ce.ptx"
    [ "$(grep -c 'ld.global' "$dir/ce.ptx")" = 3 ] # the row, its label, and the label's element
    [ "$(awk '/ld.global/ { n++ } /shfl|bar.sync/ { print n; exit }' "$dir/ce.ptx")" = 3 ]
    grep -q '^[^@]*ld.global.b32' "$dir/ce.ptx" # not .nc, which ptxas moves
    grep -q '@%p.*ld.global.f32' "$dir/ce.ptx"
    for target in sm_70 sm_90; do
        run -0 kaio-verify --run -d cpu --check -t $target tests/data/rows/guards.yaml
    done
    kaio-emit --explain -v tests/data/rows/guards.yaml | grep -q 'strategy row'
}

@test "what fits only while an output is kept in registers is left to others" {
    cat >"$dir/k.yaml" <<'END'
kernel: k
params:
  x: in f16[n]
  w: in f32[7]
  v: out bf16[n]
  y: out f32[n]
compute: |
  v[i] = x[i] * w[i % 7]
  t = max[i < n](v[i])
  y[i] = i % 3 == 1 ? w[i % 7] : t
END
    run -0 kaio-verify --run -d cpu -D n=500 "$dir/k.yaml" n=500
}

@test "quotients by what a row has one of are products with its reciprocal, but for those that are asked to be rounded as such" {
    for e in 'x[i, j] / (1 + abs(s[i]))' 'f32(x[i, j] / (1 + abs(s[i])))'; do
        printf '%s\n' 'kernel: k' 'params:' '  x: in f32[n, 40]' '  s: out f32[n]' '  y: out f32[n, 40]' 'compute: |' \
            '  s[i] = sum[j](x[i, j])' "  y[i, j] = $e" >"$dir/k.yaml"
        kaio-emit --explain -v "$dir/k.yaml" | grep -q 'strategy row'
        run -0 kaio-verify --run -d cpu "$dir/k.yaml" n=21
        kaio-emit "$dir/k.yaml" >"$dir/k.ptx"
        [ "$(grep -c 'div.rn.f32' "$dir/k.ptx")" = "$([[ $e == f32* ]] && echo 8 || echo 0)" ]
    done
}

@test "long rows of which only sums of exponentials are wanted are read once, in rounds" {
    for spec in norm/logsumexp loss/cross_entropy; do
        [[ $(plan specs/$spec.yaml -t sm_90 -D cols=65536) == *' reading the row once'* ]]
        [[ $(plan specs/$spec.yaml -t sm_90 -D cols=65536 -D rows=2) == *' in 8 blocks of a cluster'* ]]
        kaio-emit -t sm_90 specs/$spec.yaml -D cols=65536 >"$dir/long.ptx"
        [ "$(grep -c 'ld.global.nc.v4' "$dir/long.ptx")" = 5 ] # a round of four vectors, and one of one
        fixed specs/$spec.yaml sm_90 'rows: 2, cols: 65536' --fill=normal,extreme
        # as soon as a row would take a multiprocessor for itself; a little before, it takes fewer threads that hold more
        [[ $(plan specs/$spec.yaml -t sm_90 -D T=f32 -D cols=32768) == *' 512 threads'*' reading the row once'* ]]
        [[ $(plan specs/$spec.yaml -t sm_90 -D cols=65536) == *' 256 threads'* ]]
        [[ $(plan specs/$spec.yaml -t sm_90 -D T=f32 -D cols=8192) == *' 256 threads for each row, 8 vectors'* ]]
        [[ $(plan specs/$spec.yaml -t sm_90 -D T=f32 -D cols=8192 -D rows=16) == *' 256 threads for each row, 8 vectors'* ]]
        sed 's/^cases:/&\n  here: {T: f32, rows: 2, cols: 32768}/' "specs/$spec.yaml" >"$dir/here.yaml"
        kaio-verify --run -d cpu --check -t sm_90 -D cols=32768 "$dir/here.yaml" here
    done
    fixed specs/norm/logsumexp.yaml sm_90 'rows: 5, cols: 65536' --fill=edge -D T=bf16
}

@test "an output that others read is stored first, and held instead of what it is made of" {
    for target in sm_80 sm_90; do
        [ -z "${KAIO_QUICK-}" ] || [ $target = sm_90 ] || continue
        for type in f16 f32; do
            for dims in 'rows: 3, cols: 1' 'rows: 5, cols: 33' 'rows: 2, cols: 1000' 'rows: 3, cols: 8200' \
                'rows: 2, cols: 32768'; do
                fixed tests/data/rows/residual.yaml $target "$dims" --fill=normal,edge -D T=$type
            done
        done
    done
    # four vectors of each of x, residual and gain; each sum of both once
    kaio-emit specs/norm/add_rms_norm_quant.yaml -D T=f32 -D cols=4096 >"$dir/held.ptx"
    [ "$(grep -c 'ld.global' "$dir/held.ptx")" = 12 ]
    [ "$(grep -c 'add.rn.f32' "$dir/held.ptx")" -lt 40 ]
    # stored before the first thread waits for another
    [ "$(awk '/st.global.v4/ { n++ } /bar.sync/ { print n; exit }' "$dir/held.ptx")" = 4 ]
}

schedule() { # 'threads: 8' -> softmax so scheduled
    sed "s/^compute:/schedule: {strategy: row, $1}\n&/" specs/norm/softmax.yaml >"$dir/s.yaml"
}

@test "rows that a cluster just holds are read once; longer ones are left to launches that read them less often" {
    plan() { # SPEC OPTION...: the launches
        kaio-emit --explain -t sm_90a "${@:2}" "$KAIO_SRCDIR/$1" | grep -E '^ +(or|launch) '
    }
    [[ $(plan specs/norm/softmax.yaml -D T=f32 -D rows=4096 -D cols=393216) == *' 1024 threads for each row, in 8 blocks of a cluster, 12 vectors held'* ]]
    [[ $(plan specs/norm/softmax.yaml -D T=f32 -D rows=4096 -D cols=400000) == *' reading the row again'* ]]
    run -0 kaio-verify --run -d cpu -t sm_90a --code=fixed --sample=64 -D T=f32 "$KAIO_SRCDIR/specs/norm/softmax.yaml" rows=1 cols=270001
    # a mean and a variance are read once for both, and few rows are shared by all blocks
    for images in 2 100; do
        run plan specs/norm/group_norm.yaml -D T=f32 -D images=$images -D groups=8 -D channels=8 -D pixels=262144
        [[ ${#lines[@]} == 2 && $output == *'along the reduction, 2097152'*' elements along '* ]]
    done
    # but not where a schedule says how rows are read, or the cache holds them
    run plan specs/norm/group_norm.yaml -D T=f32 -D images=1 -D groups=2 -D channels=8 -D pixels=262144
    [[ $output == *' reading the row again'* ]]
}

@test "a schedule says how threads share a row, and is told what can't be" {
    for s in 'threads: 8' 'threads: 64' 'vectors: 3' 'threads: 32, rows: 2' 'threads: 64, cluster: 2' \
        'threads: 512, vectors: 2'; do
        schedule "$s"
        fixed "$dir/s.yaml" sm_90 'rows: 5, cols: 520'
    done
    schedule 'threads: 48'
    run -2 kaio-emit -D cols=512 "$dir/s.yaml"
    [[ $output == *"'threads' is a power of two below 32, or a multiple of 32 up to 1024"* ]]
    schedule 'threads: 8, rows: 3'
    run -2 kaio-emit -D cols=512 "$dir/s.yaml"
    [[ $output == *"'rows' is a power of two"* ]]
    schedule 'threads: 8, rows: 2'
    run -2 kaio-emit -D cols=512 "$dir/s.yaml"
    [[ $output == *"2 rows of 8 threads are no block"* ]]
    schedule 'threads: 64, vectors: 1'
    run -2 kaio-emit -D cols=4096 "$dir/s.yaml"
    [[ $output == *"the row has 512 vectors of 8 elements: 64 threads hold them in 8 vectors each"* ]]
    schedule 'cluster: 2'
    run -2 kaio-emit -D cols=4096 "$dir/s.yaml"
    [[ $output == *"needs sm_90"* ]]
    schedule 'threads: 64'
    run -2 kaio-emit "$dir/s.yaml"
    [[ $output == *"fix 'cols' with -D"* ]]
    schedule 'block: 64'
    run -2 kaio-emit -D cols=512 "$dir/s.yaml"
    [[ $output == *"it takes: threads, vectors, rows, cluster"* ]]
}

@test "what rows can't be says why" {
    spec() {
        printf '%s\n' 'kernel: k' 'params:' '  x: in f32[n, m]' '  y: out f32[n, m]' \
            'schedule: {strategy: row}' 'compute: |' "$@" >"$dir/k.yaml"
        run -2 kaio-emit "$dir/k.yaml"
    }
    spec '  y[i, j] = x[i, j] + 1'
    [[ $output == *'nothing is reduced'* ]]
    spec '  s[i] = sum[k](x[i, k])' '  y[i, j] = x[i, j] - s[(i + 1) % n]'
    [[ $output == *'differs between'* || $output == *'other rows'* ]]
    spec '  y[i, j] = sum[k < m](x[i, k] * x[i, j])'
    [[ $output == *'the reduction differs between the elements of a row that read it'* ]]
}

# The registers are bounded so that blocks share a multiprocessor: a few values may have to give way.
@test "ptxas keeps the library's rows in registers" {
    command -v ptxas >/dev/null || skip "no ptxas"
    for spec in softmax log_softmax logsumexp layer_norm rms_norm l2_normalize add_rms_norm \
        add_rms_norm_quant; do
        for cols in 512 1000 8192 32768 65536; do
            for type in f16 f32; do
                kaio-emit -t sm_90 -D T=$type -D cols=$cols specs/norm/$spec.yaml >"$dir/k.ptx"
                ptxas -v -arch=sm_90 -o /dev/null "$dir/k.ptx" >"$dir/log" 2>&1
                local spilled
                spilled=$(sed -n 's/.* \([0-9]*\) bytes spill stores.*/\1/p' "$dir/log")
                [ "$spilled" -le 16 ] || { echo "$spec $type $cols: $spilled bytes"; return 1; }
            done
        done
    done
}
