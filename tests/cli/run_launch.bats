# kaio-run: launch contracts, launches by options, structs and tensor maps.
bats_require_minimum_version 1.5.0
load run

# --- contracts ---

@test "requirements show the values that break them" {
    sed -i 's|^//@ launches:|//@ require:\n//@   - n % 4 == 0 \&\& alpha > 0\n//@ launches:|' saxpy.ptx
    run -0 cpu saxpy.ptx n=4 x=@ones y=@ones
    refused 2 "kaio-run: error: the kernel requires n % 4 == 0 && alpha > 0.0, but n is 6 and alpha is 2" cpu saxpy.ptx n=6 x=@ones y=@ones
}

@test "limits of the grid and the block" {
    limit() { # LINE MESSAGE
        sed "s/^\/\/@     $1:.*/\/\/@     $1: $2/" saxpy.ptx >limit.ptx
        run -2 --separate-stderr cpu limit.ptx n=100000 x=@ones y=@ones
        [[ "${stderr_lines[0]}" = "limit.ptx:"*"$3" ]] || { echo "$stderr"; return 1; }
    }
    limit grid '[1, n]' "error: grid y is 100000; it must be between 0 and 65535; n is 100000"
    limit grid '[n * n]' "error: grid x is 10000000000; it must be between 0 and 2147483647; n is 100000"
    limit grid '[2 - n]' "error: grid x is -99998; it must be between 0 and 2147483647; n is 100000"
    limit block '[2048]' "error: block x is 2048; it must be between 1 and 1024"
    limit block '[512, 4]' "error: a block has 2048 threads; the limit is 1024"
    limit block '[0]' "error: block x is 0; it must be between 1 and 1024"
    limit args '[x, y, alpha]' "error: entry 'saxpy' has 4 parameters; 3 arguments are passed"
    limit args '[x, y, alpha, u64 n]' "error: parameter 'n' of entry 'saxpy' has 4 bytes; 8 are passed"
    limit args '[x, y, alpha, u32 n - 100001]' "error: the argument is -1, which is no u32; n is 100000"
}

@test "variants: the first whose condition holds" {
    sed '/launches/q' saxpy.ptx >"head"
    sed '1,/^\/\/@     args/d' saxpy.ptx >body
    {
        cat head
        printf '//@ %s\n' '  - {entry: none, when: n > 100, grid: [1], block: [1], args: []}' \
            '  - {entry: saxpy, when: n > 2, grid: [1], block: [32], args: [x, y, alpha, n]}' \
            '  - {entry: none, when: n > 2, grid: [1], block: [1], args: []}'
        cat body
    } >variants.ptx
    run -0 cpu variants.ptx n=3 x=@arange y=@ones
    [ "${output:0:16}" = "y  f32[3]  1 3 5" ]
    run -2 cpu variants.ptx n=2 x=@arange y=@ones
    [[ "${lines[0]}" = *"error: no variant of 'saxpy' is for these sizes; n is 2" ]]
    run -2 cpu variants.ptx n=101 x=@arange y=@ones
    [[ "${lines[0]}" = *"error: the module has no entry 'none'" ]]
}

@test "several kernels" {
    {
        sed -n '/^\/\/@/p' saxpy.ptx
        echo '//@ ---'
        sed -n '/^\/\/@/p' saxpy.ptx | sed 's/kernel: saxpy/kernel: other/'
        cat plain.ptx
    } >both.ptx
    run -0 cpu both.ptx --kernel other n=1 x=@ones y=@ones
    refused 2 "kaio-run: error: 'both.ptx' holds 2 kernels (saxpy, other); choose one with --kernel" cpu both.ptx n=1 x=@ones y=@ones
    refused 2 "kaio-run: error: 'both.ptx' has no kernel 'otter'; did you mean 'other'?" cpu both.ptx --kernel otter
}

@test "a broken contract is reported at its line" {
    sed 's/grid: \[.*/grid: [ceil_div(m, 256)]/' saxpy.ptx >broken.ptx
    run -2 --separate-stderr cpu broken.ptx n=1 x=@ones y=@ones
    [[ "${stderr_lines[0]}" = "broken.ptx:11:"*"error: "*"'m'"* ]]
}

@test "a contract from a file" {
    sed -n 's/^\/\/@ //p' saxpy.ptx >saxpy.contract
    run -0 cpu plain.ptx --launch saxpy.contract n=3 x=@arange y=@ones
    [ "${output:0:16}" = "y  f32[3]  1 3 5" ]
    run -0 cpu plain.ptx --launch saxpy.ptx n=3 x=@arange y=@ones
    [ "${output:0:16}" = "y  f32[3]  1 3 5" ]
}

# --- PTX without a contract ---

@test "geometry and arguments from options" {
    for device in cpu cuda; do
        run -0 $device plain.ptx --entry saxpy --grid 1 --block 32 --arg 'in f32[4]=@arange' --arg 'inout f32[4]=@ones:y.npy' \
            --arg f32=2 --arg u32=4
        [ "$(npy_data y.npy)" = 0000803f000040400000a0400000e040 ]
    done
    run -0 cpu plain.ptx --entry saxpy --grid 'ceil_div(n, 32), 1' --block '32' --arg 'in f32[n]=@arange' \
        --arg 'inout f32[n]=@ones' --arg f32=2 --arg 'u32=n' -D n=5
    [ "${output:0:23}" = "arg2  f32[5]  1 3 5 7 9" ]
}

@test "without them, the entries and what to say are listed" {
    run -2 --separate-stderr cpu plain.ptx
    [ "$output" = "" ]
    [ "${stderr_lines[0]}" = "kaio-run: error: 'plain.ptx' has no launch contract; say how to launch it with --entry or --launch" ]
    [[ "${stderr_lines[1]}" = "plain.ptx:5:"*"note: entry 'saxpy' takes (u64, u64, f32, u32)" ]]
    [[ "$stderr" = *"note: launch it with --entry saxpy --grid G --block 256 --arg 'in f32[N]=...' --arg 'in f32[N]=...' --arg 'f32=...' --arg 'u32=...'"* ]]
    # a tensor map can only be said in a contract
    sed '/^\/\/@/d' mapped.ptx >map.ptx
    run -2 --separate-stderr cpu map.ptx
    [[ "$stderr" = *"note: 'x' may be a tensor map, which a launch contract describes: --launch FILE, "* ]]
    sed -n 's/^\/\/@ //p' mapped.ptx >map.yaml
    run -0 cpu map.ptx --launch map.yaml m=34 k=64 bytes=2 x=@arange y=map.bin
    cmp map.bin <(printf '\000\150')
}

@test "wrong options of that kind" {
    refused 2 "kaio-run: error: --grid, --block, --cluster, --shared and --arg need --entry" cpu plain.ptx --grid 1
    refused 2 "kaio-run: error: --entry needs --grid and --block" cpu plain.ptx --entry saxpy --grid 1
    refused 2 "kaio-run: error: --entry excludes --launch and --kernel" cpu plain.ptx --entry a --grid 1 --block 1 --launch x
    refused 2 "kaio-run: error: 'f32' is not DECLARATION=VALUE: --arg 'in f32[1024]=x.npy', --arg u32=1024" \
        cpu plain.ptx --entry saxpy --grid 1 --block 1 --arg f32
    run -2 cpu plain.ptx --entry saxpy --grid 1 --block 1 --arg f33=1
    [[ "${lines[0]}" = "<options>:"*"f33"* ]]
    run -2 cpu plain.ptx --entry sexpy --grid 1 --block 1
    [[ "${lines[0]}" = *"error: the module has no entry 'sexpy'" ]]
}

# --- grids and tensor maps ---

@test "a grid goes by the multiprocessors of the device" {
    cat >k.yaml <<'END'
kernel: k
params:
  x: in f32[n]
  y: out f32[n]
  blocks: out u32[1]
grid: min(ceil_div(n, 32), 2 * multiprocessors)
block: 32
body: |
  for (u32 i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32) y[i] = 2 * x[i];
  if (blockIdx.x == 0 && threadIdx.x == 0) blocks[0] = gridDim.x;
END
    kaio-emit k.yaml >k.ptx
    run -0 cpu k.ptx n=65 x=@ones y=y.npy blocks=b.npy
    [ "$(npy_data b.npy)" = 03000000 ]
    run -0 cpu k.ptx n=1000 x=@ones y=y.npy blocks=b.npy
    [ "$(npy_data b.npy)" = 10000000 ]
    [ "$(npy_data y.npy)" = "$(printf '00000040%.0s' {1..1000})" ]
    sed "s/grid: .*/grid: ['min(3, multiprocessors) * multiprocessors']/" saxpy.ptx >s.ptx
    FAKE_CUDA_LOG=$PWD/log run -0 cuda s.ptx n=1000 x=@ones y=@ones
    grep -q 'launch 12,1,1 x' log
    run -0 cpu plain.ptx --entry saxpy --grid 'multiprocessors - 7' --block 32 --arg 'in f32[4]=@arange' \
        --arg 'inout f32[4]=@ones:y.npy' --arg f32=2 --arg u32=4
    sed 's/2 \* multiprocessors/multiprocessors - 100/' k.yaml | kaio-emit >k.ptx
    run -2 --separate-stderr cpu k.ptx n=65 x=@ones y=y.npy blocks=b.npy
    [[ "$stderr" = *"grid x is -92; it must be between 0 and 2147483647; n is 65 and multiprocessors is 8"* ]]
    # what holds on this device alone: in clusters as large as 8, which divide no 132
    sed 's/^grid: .*/grid: multiprocessors/; s/^block: 32/&\ncluster: 8/' k.yaml | kaio-emit -t sm_90 >k.ptx
    run -0 cpu k.ptx n=65 x=@ones y=y.npy blocks=b.npy
    [ "$(npy_data b.npy)" = 08000000 ]
    sed 's/2 \* multiprocessors/multiprocessors % 3/; s/^block: 32/&\ncluster: 3/' k.yaml | kaio-emit -t sm_90 >k.ptx
    run -2 --separate-stderr cpu k.ptx n=65 x=@ones y=y.npy blocks=b.npy
    [[ "$stderr" = *"the grid (2, 1, 1) is not a multiple of the cluster (3, 1, 1)"* ]]
}

@test "tensor maps are made for the addresses of the buffers" {
    export FAKE_CUDA_SM=90
    FAKE_CUDA_LOG=$PWD/log run -0 --separate-stderr cuda mapped.ptx m=34 k=64 bytes=4 x=@arange y=y.bin
    # element 32 * 64 = 2048 is 0x6800 in f16, and the next rounds to it
    cmp y.bin <(printf '\000\150\000\150')
    grep -q 'type 6: 64/64/1 2/8/1@128, interleave 0 swizzle 3 promotion 0 fill 0$' log
    # timed launches go round through copies of the buffers, each with its map
    FAKE_CUDA_LOG=$PWD/log.2 run -0 cuda mapped.ptx --time=4 m=34 k=64 bytes=4 x=@arange y=y.bin
    [ "$(sed -n 's/^map at \([0-9]*\) .*/\1/p' log.2 | sort -u | wc -l)" = 17 ]
    [ "$(grep -c '^capture mapped' log.2)" -gt 16 ]
    # the same on the simulator, which copies
    for device in cpu "kaio-run --check"; do
        rm y.bin
        $device mapped.ptx m=34 k=64 bytes=4 x=@arange y=y.bin
        cmp y.bin <(printf '\000\150\000\150')
        $device mapped.ptx m=32 k=64 bytes=0 x=@arange y=y.bin
        run $device mapped.ptx m=32 k=64 bytes=2 x=@arange y=y.bin
        [ "$status" -eq 1 ] || [ "$status" -eq 3 ]
        [[ "$output" = *"error: "*"'x'"* ]]
    done
    # an empty tensor has a map of one element; the kernel is launched
    FAKE_CUDA_LOG=$PWD/log.3 run -0 cuda mapped.ptx m=32 k=64 bytes=0 x=@ones y=y.bin
    grep -q 'type 6: 1/64/1 1/8/1@32,' log.3
    grep -q '^launch 1,1,1 x 32,1,1' log.3
}

@test "a tensor map that cannot be is refused before anything is launched" {
    export FAKE_CUDA_SM=90
    run -2 --separate-stderr cuda mapped.ptx m=34 k=65 bytes=4 x=@ones y=y.bin
    [[ "${stderr_lines[0]}" = "mapped.ptx:"*"error: tensor map of 'x': the stride of dimension 1 is 130 bytes; "* ]]
    [[ "$stderr" = *"note: it is a tensor of f16, dims [65, 2], strides [130], box [64, 8]"* ]]
    run -2 --separate-stderr cuda mapped.ptx m=31 k=64 bytes=4 x=@ones y=y.bin
    [ "${stderr_lines[0]}" = "mapped.ptx:12:40: error: this is -1; it must be 0 to 4294967296; m is 31" ]
    # but not where nothing is launched
    sed 's/grid: \[1\]/grid: [bytes]/' mapped.ptx >idle.ptx
    FAKE_CUDA_LOG=$PWD/log run -0 cuda idle.ptx m=31 k=65 bytes=0 x=@ones y=idle.bin
    [ "$(grep -c '^map\|^launch' log)" = 0 ]
    sed 's/64 \* k, dims/128 * k, dims/' mapped.ptx >beyond.ptx
    run -2 --separate-stderr cuda beyond.ptx m=34 k=64 bytes=4 x=@ones y=y.bin
    [ "${stderr_lines[0]}" = "beyond.ptx:12:9: error: the tensor of this map has its end at byte 8448 of 'x', which has 4352" ]
    sed 's/64 \* k, dims/k, dims/' mapped.ptx >odd.ptx
    run -2 --separate-stderr cuda odd.ptx m=34 k=72 bytes=4 x=@ones y=y.bin
    [ "${stderr_lines[0]}" = "odd.ptx:12:22: error: a tensor begins at a multiple of 16 bytes, not at 72" ]
    sed 's/\.align 64 //' mapped.ptx >unaligned.ptx
    run -2 --separate-stderr cuda unaligned.ptx m=34 k=64 bytes=4 x=@ones y=y.bin
    [[ "${stderr_lines[0]}" = *"error: parameter 'x' of entry 'mapped' gets a tensor map; declare it with .align 64" ]]
    sed 's/x\[128\]/x[64]/' mapped.ptx >narrow.ptx
    run -2 --separate-stderr cuda narrow.ptx m=34 k=64 bytes=4 x=@ones y=y.bin
    [[ "${stderr_lines[0]}" = *"error: parameter 'x' of entry 'mapped' has 64 bytes; 128 are passed" ]]
    sed 's/sm_90/sm_80/' mapped.ptx >old.ptx
    FAKE_CUDA_SM=80 run -2 --separate-stderr cuda old.ptx m=34 k=64 bytes=4 x=@ones y=y.bin
    [ "$stderr" = "kaio-run: error: tensor maps need sm_90; this device is sm_80" ]
    [ ! -e y.bin ]
}

@test "tensors are copied by tiles through their maps" {
    seq 100000 | head -c $((13 * 72 * 2)) >x.bin
    run -0 --separate-stderr cpu tiles.ptx m=13 k=72 x=x.bin y=y.bin
    [ "$stderr" = "" ]
    cmp x.bin y.bin
    # whole tiles; under every check, with copies that come late, early and torn
    seq 100000 | head -c $((16 * 128 * 2)) >x.bin
    for seed in 0 1 2; do
        run -0 --separate-stderr cpu tiles.ptx --check --check-seed=$seed m=16 k=128 x=x.bin y=y.bin
        [ "$stderr" = "" ]
        cmp x.bin y.bin
    done
    # a map without the swizzle that the kernel undoes
    sed 's/, swizzle: 128//' tiles.ptx >straight.ptx
    run -0 cpu straight.ptx m=16 k=128 x=x.bin y=y.bin
    ! cmp -s x.bin y.bin || false
    # a box with more bytes than the mbarrier is told of
    sed '0,/box: \[64, 8\]/s//box: [64, 16]/' tiles.ptx >more.ptx
    run -3 --separate-stderr cpu more.ptx m=16 k=128 x=x.bin y=y.bin
    [ "${stderr_lines[0]}" = "kaio-run: error: kernel 'tiles' is stuck: no thread of block (0,0,0) can go on" ]
    [[ "$stderr" = *"the mbarrier at element 0 of 'full' (shared b64), which lacks mbarrier.expect_tx of 1024 bytes"* ]]
    # bytes that are no map
    sed 's/\[%rd1, {%r2, %r3}\]/[%rd3, {%r2, %r3}]/; s/^    mov.u32 %r1, %tid.x;/    add.u64 %rd3, %rd1, 64;\n&/' tiles.ptx >shifted.ptx
    run -3 --separate-stderr cpu shifted.ptx m=16 k=128 x=x.bin y=y.bin
    [[ "${stderr_lines[0]}" = "shifted.ptx:"*"error: kernel 'tiles': the 128 bytes at byte 64 of a parameter block (256 bytes) are no tensor map" ]]
}

# --- structs ---

@test "structs by value: members in braces" {
    args=(--entry axpy --grid 1 --block 32)
    run -0 kaio-run -d cpu struct.ptx "${args[@]}" --arg 'struct{inout f32[8]=@ones, in f32[8]=@arange, i32=8, f32=2.5}'
    [[ "$output" = "arg1_1  f32[8]  1 3.5 6 8.5 11 13.5 "* ]]
    # dimensions, and commas that are not between members
    run -0 kaio-run -d cpu struct.ptx "${args[@]}" n=8 \
        --arg ' struct { inout f32[2, 4]=@ones:y.npy , in f32[n]=@arange, i32=min(n, 4), f32=2.5 } '
    [ "$(npy_data y.npy)" = "0000803f000060400000c040000008410000803f0000803f0000803f0000803f" ]
    run -0 kaio-run -d cpu struct.ptx --entry nest --grid 1 --block 1 --arg 'out f64[3]=y.npy' \
        --arg 'struct{i8=-5, struct{i16=7, f64=0.25}, bool=true}'
    [ "$(npy_data y.npy)" = "0000000000000040000000000000d03f000000000000f03f" ]
    # on a GPU, too, where the driver is told of 24 bytes
    KAIO_CUDA_LIB=$fake FAKE_CUDA_LOG=log run -2 kaio-run -d cuda struct.ptx "${args[@]}" \
        --arg 'struct{inout f32[8]=@ones, in f32[8]=@arange}'
    [[ "$output" = *"parameter 's' of entry 'axpy' has 24 bytes; 16 are passed"* ]]
}

@test "structs by value: in a launch contract" {
    printf '%s\n' 'kaio: 1' 'kernel: axpy' 'target: sm_70' 'params:' '  y: inout f32[n]' '  x: in f32[n]' '  a: f32' \
        'launches:' '  - entry: axpy' '    grid: [1]' '    block: [32]' '    args: [{struct: [y, x, n, a]}]' >axpy.launch
    run -0 kaio-run -d cpu --launch axpy.launch struct.ptx x=@arange y=@ones n=4 a=2
    [[ "$output" = "y  f32[4]  1 3 5 7 "* ]]
}

@test "structs by value: mistakes" {
    local arg text
    while IFS='|' read -r arg text; do
        run -2 kaio-run -d cpu struct.ptx --entry axpy --grid 1 --block 32 --arg "$arg"
        [[ "$output" = *"$text"* ]] || { echo "$arg: $output" && false; }
    done <<'END'
struct{}|is not a struct with members in braces
struct{inout f32[8]=@ones|is not a struct with members in braces
struct{inout f32[8]=@ones, 8}|' 8' is not DECLARATION=VALUE
struct{inout f32[8]=@ones, in g32[8]=@ones}|unknown type 'g32'
struct{inout f32[8]=@ones}|parameter 's' of entry 'axpy' has 24 bytes; 8 are passed
struct{struct{struct{struct{struct{struct{struct{struct{struct{i8=1}}}}}}}}}|more than 8 structs within each other
END
    # what fits is said where nothing is given
    run -2 kaio-run -d cpu struct.ptx
    [[ "$output" = *"--entry axpy --grid G --block 256 --arg 'struct{in f32[N]=..., in f32[N]=..., u32=..., f32=...}'"* ]]
}
