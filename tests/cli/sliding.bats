# Windows: reductions over neighbouring elements, of known size or open, share what neighbours have in common.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    data=$KAIO_SRCDIR/tests/data/sliding.yaml
}

@test "windows give what their equations say, under every check" {
    local few=
    [ -z "${KAIO_QUICK-}" ] || few='--code=generic --fill=normal'
    for target in sm_80 sm_90a; do
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --check $few -t $target "$data"
    done
}

@test "rows of any number and vectors of any width do" {
    while read -r how; do
        sed '/^---/,$d; /^cases/,$d' "$data" >k.yaml
        echo "schedule: {strategy: map, $how}" >>k.yaml
        run -0 kaio-verify --run -d cpu --check --code=fixed --fill=normal k.yaml n=1 c=2 h=11 w=8 r=3 s=5
    done <<'END'
rows: 2
rows: 7, vector: 1
rows: 4, vector: 8, block: 64
rows: 11, vector: 2
END
}

@test "no window is left to naive" {
    run -0 --separate-stderr kaio-emit --explain "$data"
    [[ -z $stderr ]]
    [ "$(grep -c ': map$' <<<"$output")" -eq "$(grep -c '^kernel' "$data")" ]
    # but what is none: rows that are chosen by a rest
    printf '%s\n' 'kernel: k' 'params: {x: "in f32[n, m]", y: "out f32[n]"}' 'compute: "y[i] = max[k](x[i * k % n, k])"' >k.yaml
    run -0 --separate-stderr kaio-emit k.yaml
    [[ $stderr == *slow* ]]
}

@test "what windows of several rows have in common is loaded once" {
    cat >k.yaml <<'END'
kernel: k
params: {x: 'in f32[n, 16, 64]', y: 'out f32[n, 14, 64]'}
compute: y[b,i,j] = max[u < 3](x[b, i + u, j])
END
    kaio-emit -D n=65536 k.yaml >k.ptx
    rows=$(kaio-emit --explain -D n=65536 k.yaml | sed -n 's/.*windows of \([0-9]*\) x 4 .*/\1/p')
    [ "$rows" -gt 1 ]
    [ "$(grep -c 'ld.global' k.ptx)" -eq $((rows + 2)) ]
    [ "$(grep -c 'st.global' k.ptx)" -eq "$rows" ]
}

@test "of large windows that lie apart a thread has one, whose rows it walks one after the other" {
    cat >k.yaml <<'END'
kernel: k
params: {x: 'in f32[n, h, w]', y: 'out f32[n, oh, ow]'}
dims: {oh: h / 17, ow: w / 8}
compute: y[b,i,j] = mean[u < 17, v < 8](x[b, 17 * i + u, 8 * j + v])
END
    kaio-emit -D n=2 -D h=40 -D w=300 k.yaml >k.ptx
    [ "$(grep -c 'ld.global' k.ptx)" -eq 8 ]
    for size in 'n=2 h=40 w=300' 'n=3 h=20 w=41'; do
        # shellcheck disable=SC2086
        run -0 kaio-verify --run -d cpu --check --fill=normal k.yaml $size
    done
}
