# Windows of pixels that TMA copies to wgmma's stages: convolutions of known sizes.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    data=$KAIO_SRCDIR/tests/data/windows.yaml
}

# The kernel of the file, by itself.
kernel() { # NAME
    sed -n "/^kernel: $1\$/,/^---/{/^---/d;p}" "$data"
}

@test "windows that TMA copies give what their equations say, under every check" {
    run -0 kaio-verify --run -d cpu --check --all --code=fixed ${KAIO_QUICK:+--fill=normal} -t sm_90a "$data"
    [[ $output == *" passed, 0 failed, 0 skipped"* ]]
}

@test "one thread issues them, and corners, steps and offsets are the convolution's" {
    local n=0 name sizes map
    while IFS='|' read -r name sizes map; do
        kernel "$name" >k.yaml
        # shellcheck disable=SC2086
        run -0 kaio-emit -t sm_90a $sizes k.yaml
        [[ $output == *"{map: x, box: $map"* || $output == *"{map: g, box: $map"* ]] || { echo "$name: $output"; false; }
        [[ $output == *"d.shared::cluster.global.im2col"* ]]
        [[ $output != *cp.async.cg* && $output != *ld.global* ]] || [ "$name" = image ]
        n=$((n + 1))
    done <<'END'
line|-D T=f16 -D n=3 -D w=40 -D c=128 -D f=24|[64, 64], lower: [0], upper: ['-9'], steps: [1, 3, 1]
image|-D T=f16 -D n=2 -D h=9 -D w=8 -D c=64 -D f=72 -D r=3 -D s=3|[64, 64], lower: ['-1', '-1'], upper: ['-1', '-1'], steps: [1, 1, 1, 1]
steps|-D n=3 -D h=9 -D w=7 -D c=64 -D f=40|[64, 64], lower: ['-1', '-4'], upper: [0, '-2'], steps: [1, 1, 2, 1]
points|-D n=2 -D h=9 -D w=8 -D c=72 -D f=72|[64, 64], lower: [0, 0], upper: ['-1', 0], steps: [1, 2, 2, 1]
volume|-D n=2 -D e=4 -D h=4 -D w=5 -D c=64 -D f=40|[64, 64], lower: ['-1', 0, '-1'], upper: ['-1', '-1', '-1'], steps: [1, 1, 1, 1, 1]
to_x|-D n=2 -D h=9 -D w=8 -D f=64 -D c=72|[64, 64], lower: ['-2', '-1'], upper: ['-2', '-1'], steps: [1, 1, 1, 1]
to_k|-D n=3 -D h=9 -D w=6 -D f=40 -D c=64|[64, 64], lower: ['-1', '-1'], upper: ['-1', '-1'], steps: [1, 1, 1, 1]
END
    [ $n -eq 7 ]
}

@test "--explain says what copies windows, and why it is not TMA" {
    kernel image >k.yaml
    local sizes='-D T=f16 -D n=2 -D h=9 -D w=8 -D f=72 -D r=3 -D s=3'
    # shellcheck disable=SC2086
    run -0 kaio-emit -t sm_90a -v --explain $sizes -D c=64 k.yaml
    [[ $output == *"left windows by TMA"* ]]
    # shellcheck disable=SC2086
    run -0 kaio-emit -t sm_90a -v --explain $sizes -D c=24 k.yaml
    [[ $output == *"left windows by threads (a window's pixels have no multiples of 64 channels)"* ]]
    run -0 kaio-emit -t sm_90a -v --explain k.yaml
    [[ $output == *"left windows by threads (its sizes are not known"* ]]
    # an open number of images is no obstacle: what is behind the last one reads as 0
    run -0 kaio-emit -t sm_90a -v --explain -D T=f16 -D h=9 -D w=8 -D c=64 -D f=72 -D r=3 -D s=3 k.yaml
    [[ $output == *"left windows by TMA"* ]]
    kernel to_k >k.yaml
    run -0 kaio-emit -t sm_90a -v --explain -D h=9 -D w=8 -D c=64 -D f=72 k.yaml
    [[ $output == *"right windows by threads (the number of images is not known)"* ]]
    kernel to_x >k.yaml
    run -0 kaio-emit -t sm_90a -v --explain -D n=2 -D h=9 -D w=8 -D f=64 -D c=72 k.yaml
    [[ $output == *"left windows by TMA, right windows by TMA"* ]]
    run -0 kaio-emit -t sm_90a -v --explain -D n=2 -D h=9 -D w=200 -D f=64 -D c=72 k.yaml
    [[ $output == *"left windows by TMA"* ]]
}

@test "a schedule says what copies windows" {
    kernel image >k.yaml
    local sizes='-D T=f16 -D n=2 -D h=9 -D w=8 -D f=72 -D r=3 -D s=3'
    echo 'schedule: {strategy: matmul, windows: threads}' >>k.yaml
    # shellcheck disable=SC2086
    run -0 kaio-emit -t sm_90a $sizes -D c=64 k.yaml
    [[ $output == *cp.async.cg* && $output != *im2col* ]]
    sed -i '$s/threads/tma/' k.yaml
    # shellcheck disable=SC2086
    run -0 kaio-emit -t sm_90a $sizes -D c=64 k.yaml
    [[ $output != *cp.async.cg* && $output == *im2col* ]]
    # shellcheck disable=SC2086
    run -2 kaio-emit -t sm_90a $sizes -D c=24 k.yaml
    [[ $output == *"TMA does not copy these windows: a window's pixels have no multiples of 64 channels"* ]]
    sed -i '$s/windows: tma/mma: sync, windows: tma/' k.yaml
    # shellcheck disable=SC2086
    run -2 kaio-emit -t sm_90a $sizes -D c=64 k.yaml
    [[ $output == *"'windows' are for 'mma: wgmma'"* ]]
}

@test "tiles of every kind take them: clusters, shares, warpgroups by turns, stages of several rows of channels" {
    while read -r name tile; do
        kernel "$name" >k.yaml
        echo "schedule: {strategy: matmul, mma: wgmma, $tile}" >>k.yaml
        run -0 kaio-emit -t sm_90a -D n=3 -D h=9 -D w=11 -D c=64 -D f=64 -D r=3 -D s=3 -D T=f16 -v --explain k.yaml
        [[ $output == *"windows by TMA"* ]] || { echo "$name $tile: $output"; false; }
        run -0 kaio-verify --run -d cpu --check --all --code=fixed --fill=normal -t sm_90a k.yaml n=3 h=9 w=11 c=64 f=64 r=3 s=3
    done < <(if [ -n "${KAIO_QUICK-}" ]; then sed 3q; else cat; fi <<'END'
image tile: [128, 64, 128], stages: 3, blocks: 2
image tile: [128, 64, 64], cluster: 2, blocks: 2
image tile: [128, 64, 64], cluster: [1, 2]
image tile: [64, 64, 64], stages: 5, blocks: 3, pingpong: yes
image tile: [64, 64, 64], stages: 4, split: 2
image tile: [192, 64, 64]
END
    )
}

@test "one operand goes by TMA and the other by threads" {
    kernel to_x >k.yaml
    echo 'schedule: {strategy: matmul, mma: wgmma, tile: [64, 64, 128], stages: 3}' >>k.yaml
    run -0 kaio-emit -t sm_90a -D n=2 -D h=9 -D w=8 -D f=64 -D c=72 -v --explain k.yaml
    [[ $output == *"left windows by TMA, right windows by threads"* ]]
    run -0 kaio-verify --run -d cpu --check --all --code=fixed --fill=normal -t sm_90a k.yaml
}

@test "narrow results get tall tiles, whose windows are fewer bytes for each product" {
    kernel image >k.yaml
    # measured: 192 x 64 40 us, 64 x 64 in clusters 56; 128 x 112 38, 128 x 128 27
    run -0 kaio-emit -t sm_90a -v --explain -D T=f16 -D n=64 -D h=56 -D w=56 -D c=64 -D f=64 -D r=3 -D s=3 k.yaml
    [[ $output == *"tiles 192 x 64 x 64"* || $output == *"tiles 256 x 64 x 64"* ]]
    run -0 kaio-emit -t sm_90a -v --explain -D T=f16 -D n=64 -D h=7 -D w=7 -D c=512 -D f=512 -D r=3 -D s=3 k.yaml
    [[ $output != *"x 112 x"* ]]
}
