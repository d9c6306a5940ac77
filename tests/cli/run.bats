# kaio-run: each form of argument, each mistake, on the simulator and on a driver of our own (tests/fake_cuda.c).
bats_require_minimum_version 1.5.0

load run

# --- arguments ---

@test "dimensions, generators and scalars by name; outputs are summarised" {
    for device in cpu cuda; do
        run -0 --separate-stderr $device saxpy.ptx n=5 x=@arange y=@ones alpha=3
        [ "$output" = "y  f32[5]  1 4 7 10 13  min 1 max 13 mean 7 nan 0 inf 0" ]
        [ "$stderr" = "" ]
    done
}

@test "a scalar's default, -D, and numbers with suffixes" {
    run -0 cpu saxpy.ptx -D n=1Ki x=@ones y=@zeros
    [ "$output" = "y  f32[1024]  2 2 2 2 2 2 ...  min 2 max 2 mean 2 nan 0 inf 0" ]
    run -0 cpu saxpy.ptx n=1e3 x=@ones y=@zeros alpha=-1e-3
    [ "$output" = "y  f32[1000]  -0.001 -0.001 -0.001 -0.001 -0.001 -0.001 ...  min -0.001 max -0.001 mean -0.001 nan 0 inf 0" ]
}

@test "options and arguments in any order, and the PTX from standard input" {
    want="y  f32[3]  1 3 5  min 1 max 5 mean 3 nan 0 inf 0"
    run -0 cpu n=3 x=@arange saxpy.ptx y=@ones
    [ "$output" = "$want" ]
    run -0 cpu n=3 x=@arange y=@ones <saxpy.ptx
    [ "$output" = "$want" ]
    run -0 cpu - n=3 x=@arange y=@ones <saxpy.ptx
    [ "$output" = "$want" ]
    run -0 cpu x=@arange y=@ones -q -- saxpy.ptx n=3
    [ "$output" = "$want" ]
}

@test "an inout goes from a source to a destination" {
    run -0 cpu saxpy.ptx n=4 x=@arange y=@ones:y.npy
    [ "$output" = "" ]
    [ "$(npy_header y.npy)" = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }" ]
    [ "$(npy_data y.npy)" = 0000803f000040400000a0400000e040 ]
    # a file onto itself; its shape binds n
    run -0 cpu saxpy.ptx x=@zeros y=y.npy:y.npy
    [ "$(npy_data y.npy)" = 0000803f000040400000a0400000e040 ]
    # a seed, then a destination; a number alone is a seed
    run -0 cpu saxpy.ptx n=4 x=@zeros y=@normal:7:z.npy
    run -0 cpu saxpy.ptx n=4 x=@normal:7 y=@zeros:w.npy alpha=1
    cmp z.npy w.npy
    run -0 cpu saxpy.ptx n=4 x=@zeros y=@normal:./7
    [ -f 7 ]
    # the last colon of a file's name
    cp y.npy a:b.npy
    run -0 cpu saxpy.ptx x=@zeros y=a:b.npy:c.npy
    cmp y.npy c.npy
    run -0 cpu saxpy.ptx x=@zeros y=a:b.npy:
    [ "${output:0:18}" = "y  f32[4]  1 3 5 7" ]
}

@test "standard input and output carry npy" {
    cpu saxpy.ptx n=3 x=@arange y=@ones:y.npy
    cpu saxpy.ptx n=3 x=@arange y=@ones:- >z.npy
    cmp y.npy z.npy
    cpu saxpy.ptx x=- y=@zeros:- alpha=1 <y.npy | cmp - y.npy
    # what would be summarised goes to standard error then
    copy_of f32 n 'n * 4' | sed 's/y: out/y: out/' >c.ptx
    run -0 --separate-stderr cpu --time=1 c.ptx x=y.npy y=-
    [[ "$stderr" = "time  median "* ]]
}

@test "raw bytes take their shape from the dimensions" {
    printf '\0\0\200?\0\0\0@' >x.bin
    run -0 cpu saxpy.ptx n=2 x=x.bin y=@zeros:y.bin alpha=1
    cmp x.bin y.bin
    refused 2 "kaio-run: error: x.bin has 8 bytes; x, f32[3], takes 12" cpu saxpy.ptx n=3 x=x.bin y=@zeros
    refused 2 "kaio-run: error: dimension n is not known; give n=..., or an npy file for x or y" \
        cpu saxpy.ptx x=x.bin y=@zeros
}

@test "a tensor of a safetensors file" {
    two=$KAIO_SRCDIR/tests/fuzz/corpus/fuzz_npy/two.safetensors
    cp "$two" w.safetensors
    copy_of bf16 'n, 2' 'n * 4' >c.ptx
    run -0 cpu c.ptx x=w.safetensors#x y=y.bin
    [ "$(od -An -tx1 y.bin | tr -d ' ')" = 0001020304050607 ]
    refused 2 "kaio-run: error: 'w.safetensors' holds many tensors; name one: 'w.safetensors#NAME'" \
        cpu c.ptx x=w.safetensors
    refused 2 "kaio-run: error: 'w.safetensors#z': there is no such tensor" cpu c.ptx x=w.safetensors#z
    [ "${stderr_lines[1]}" = "kaio-run: note: it has 'x', 'yé'" ]
    run -0 kaio-run --list-tensors=w.safetensors
    [ "$output" = "$(printf 'x    BF16[2, 2]  8 bytes\nyé  F8_E4M3[1]  1 bytes')" ]
    refused 2 "kaio-run: error: cannot open 'none': No such file or directory" kaio-run --list-tensors=none
    refused 2 "kaio-run: error: 'saxpy.ptx' is not a valid safetensors file: it ends within its header" \
        kaio-run --list-tensors=saxpy.ptx
}

@test "every type goes through a kernel and comes back" {
    while read -r type file; do
        copy_of "$type" 'r, c' "r * c * $(case $type in
            f64 | i64 | u64) echo 8 ;; f32 | i32 | u32) echo 4 ;; f16 | bf16 | i16 | u16) echo 2 ;;
            i4 | u4) echo '1 / 2' ;; *) echo 1 ;; esac)" >c.ptx
        run -0 cpu c.ptx x="$npy/good-$file.npy" y=y.npy
        run -0 cpu c.ptx x=y.npy y=z.npy
        cmp y.npy z.npy
        run -0 cpu c.ptx x=y.npy
        case $type in
        bool) want="y  bool[2, 4]  0 1 0 1 0 1 ...  min 0 max 1 mean 0.5" ;;
        u*) want="y  ${type}[2, 4]  0 1 2 3 4 5 ...  min 0 max 7 mean 3.5" ;;
        i*) want="y  ${type}[2, 4]  -3 -2 -1 0 1 2 ...  min -3 max 4 mean 0.5" ;;
        *) want="y  ${type}[2, 4]  -3 -2 -1 0 1 2 ...  min -3 max 4 mean 0.5 nan 0 inf 0" ;;
        esac
        [ "$output" = "$want" ] || { printf '%s\n' "$output" "$want"; return 1; }
    done <<'END'
f64 float64
f32 float32
f16 float16
bf16 bfloat16
bf16 bfloat16-as-u2
e4m3 float8_e4m3fn
e5m2 float8_e5m2
i64 int64
i32 int32
i16 int16
i8 int8
u64 uint64
u32 uint32
u16 uint16
u8 uint8
bool bool
i4 int4
i4 int4-packed
END
}

@test "scalars of every width reach the kernel, and so does a computed argument" {
    run -0 cpu scalars.ptx y=y.bin
    [ "$(od -An -v -tx8 -w8 y.bin | tr -d ' ' | tr '\n' ' ')" = "00000000000000ff 000000000000ffff 0000000000003e00 \
0000000000000001 000000003dcccccd fffffffffffffffe 3fb999999999999a 000000000000012c " ]
    run -0 cpu scalars.ptx y=y.bin a=-128 b=0x10 c=-inf d=false e=-0 f=-9223372036854775808 g=1e-320
    [ "$(od -An -v -tx8 -w8 y.bin | tr -d ' ' | tr '\n' ' ')" = "0000000000000080 0000000000000010 000000000000fc00 \
0000000000000000 0000000080000000 8000000000000000 00000000000007e8 000000000000012c " ]
}

@test "the same numbers on both devices" {
    cpu saxpy.ptx n=100000 x=@normal:1 y=@normal:2:a.npy alpha=0.3
    cuda saxpy.ptx n=100000 x=@normal:1 y=@normal:2:b.npy alpha=0.3
    cmp a.npy b.npy
    cpu --threads 1 saxpy.ptx n=100000 x=@normal:1 y=@normal:2:c.npy alpha=0.3
    cmp a.npy c.npy
}

@test "an empty grid is skipped" {
    for device in cpu cuda; do
        run -0 $device saxpy.ptx n=0 x=@zeros y=@zeros:y.npy
        [ "$(npy_header y.npy)" = "{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }" ]
    done
    run -0 cpu saxpy.ptx n=0 x=@zeros y=@zeros
    [ "$output" = "y  f32[0]  empty" ]
}

@test "what the kernel does not write shows" {
    copy_of f32 n 'n * 4 - 4' >c.ptx
    for device in cpu cuda; do
        run -0 $device c.ptx n=3 x=@ones
        [ "$output" = "y  f32[3]  1 1 nan  min 1 max 1 mean 1 nan 1 inf 0" ]
    done
}

# --- mistakes in arguments ---

@test "wrong types and shapes" {
    refused 2 "kaio-run: error: x is float64[2, 4], the kernel declares f32[n]" cpu saxpy.ptx x="$npy/good-float64.npy" y=@ones
    refused 2 "kaio-run: error: x is float32[2, 4], the kernel declares f32[n]" cpu saxpy.ptx x="$npy/good-float32.npy" y=@ones
    copy_of bf16 n 'n * 2' >c.ptx
    refused 2 "kaio-run: error: x is float16[2, 4], the kernel declares bf16[n]" cpu c.ptx x="$npy/good-float16.npy"
    [ "${stderr_lines[1]}" = "kaio-run: note: bf16 is read from ml_dtypes' own arrays or from uint16" ]
}

@test "shapes that disagree name both buffers" {
    cpu saxpy.ptx n=3 x=@ones y=@ones:three.npy
    cpu saxpy.ptx n=4 x=@ones y=@ones:four.npy
    refused 2 "kaio-run: error: x is f32[3], so n is 3, but y is f32[4], so n is 4" cpu saxpy.ptx x=three.npy y=four.npy
    refused 2 "kaio-run: error: x is f32[3], so n is 3, but n=5 was given" cpu saxpy.ptx x=three.npy y=@ones n=5
    copy_of f32 'n, n + 1' '4' >c.ptx
    cp "$npy/good-float32.npy" x.npy
    refused 2 "kaio-run: error: x is f32[2, 4], the kernel declares f32[n, n + 1], which is f32[2, 3] here" cpu c.ptx x=x.npy
}

@test "what is missing, unknown or given twice" {
    refused 2 "kaio-run: error: x (in f32[n]) is not given; give x=FILE or x=@normal, @zeros, ..." cpu saxpy.ptx y=@ones n=1
    refused 2 "kaio-run: error: dimension n is not known; give n=..., or an npy file for x or y" cpu saxpy.ptx x=@ones y=@ones
    refused 2 "kaio-run: error: 'saxpy' has no parameter 'alhpa'; did you mean 'alpha'?" cpu saxpy.ptx x=@ones y=@ones n=1 alhpa=2
    [ "${stderr_lines[1]}" = "kaio-run: note: it has x, y, alpha, n" ]
    refused 2 "kaio-run: error: 'saxpy' has no parameter 'whatever'" cpu saxpy.ptx x=@ones y=@ones n=1 whatever=2
    refused 2 "kaio-run: error: 'saxpy' has no dimension 'x'" cpu saxpy.ptx -D x=1
    refused 2 "kaio-run: error: x is given twice" cpu saxpy.ptx x=@ones x=@ones y=@ones n=1
    refused 2 "kaio-run: error: n is given twice" cpu saxpy.ptx x=@ones y=@ones n=1 -D n=1
    sed -i 's/ = 2$//' saxpy.ptx
    refused 2 "kaio-run: error: alpha is not given; give alpha=VALUE, a number of type f32" cpu saxpy.ptx x=@ones y=@ones n=1
}

@test "wrong numbers" {
    refused 2 "kaio-run: error: alpha is NaN" cpu saxpy.ptx n=1 x=@ones y=@ones alpha=nan
    refused 2 "kaio-run: error: alpha takes a value of type f32; 'two' is not" cpu saxpy.ptx n=1 x=@ones y=@ones alpha=two
    refused 2 "kaio-run: error: alpha is 1e+39; the largest f32 is 3.40282e+38" cpu saxpy.ptx n=1 x=@ones y=@ones alpha=1e39
    refused 2 "kaio-run: error: a is '128', which is outside the range of i8" cpu scalars.ptx a=128
    refused 2 "kaio-run: error: b takes a value of type u16; '1.5' is not" cpu scalars.ptx b=1.5
    refused 2 "kaio-run: error: d takes a value of type bool; 'yes' is not" cpu scalars.ptx d=yes
    refused 2 "kaio-run: error: dimension n is a whole number; '1.5' is not" cpu saxpy.ptx n=1.5 x=@ones y=@ones
    refused 2 "kaio-run: error: dimension n is '-1', which is not between 0 and 4294967295" cpu saxpy.ptx n=-1 x=@ones y=@ones
    refused 2 "kaio-run: error: n is fixed at 3 in this PTX, but n=4 was given" cpu scalars.ptx n=4
}

@test "a negative dimension is named with what made it so, if something did" {
    copy_of f32 -1 0 >c.ptx
    refused 2 "kaio-run: error: x has a negative dimension: -1" cpu c.ptx x=@ones
    copy_of f32 'n - 3' n >c.ptx
    refused 2 "kaio-run: error: x has a negative dimension: n - 3 is -1, n is 2" cpu c.ptx n=2 x=@ones
}

@test "wrong sources and destinations" {
    refused 2 "kaio-run: error: x: unknown generator '@normla'" cpu saxpy.ptx n=1 x=@normla y=@ones
    [ "${stderr_lines[1]}" = "kaio-run: note: did you mean '@normal'?" ]
    refused 2 "kaio-run: error: x is an input and takes no destination: ':z.npy'" cpu saxpy.ptx n=1 x=@ones:z.npy y=@ones
    refused 2 "kaio-run: error: x: the seed 99999999999999999999 in '@normal:99999999999999999999' is not between 0 and 18446744073709551615" \
        cpu saxpy.ptx n=1 x=@normal:99999999999999999999 y=@ones
    refused 2 "kaio-run: error: x: the seed -1 in '@normal:-1' is not between 0 and 18446744073709551615" cpu saxpy.ptx n=1 x=@normal:-1 y=@ones
    refused 2 "kaio-run: error: x needs a file or a generator: x=x.npy, x=@normal" cpu saxpy.ptx n=1 x= y=@ones
    refused 2 "kaio-run: error: cannot open 'none.npy': No such file or directory" cpu saxpy.ptx n=1 x=none.npy y=@ones
    refused 2 "kaio-run: error: cannot write 'none/y.npy': No such file or directory" cpu saxpy.ptx n=1 x=@ones y=@ones:none/y.npy
    copy_of f32 n 'n * 4' >c.ptx
    refused 2 "kaio-run: error: y is an output and takes a destination; a file whose name begins with '@' is './@ones'" \
        cpu c.ptx n=1 x=@ones y=@ones
    refused 2 "kaio-run: error: y needs a file to go to: y=y.npy" cpu c.ptx n=1 x=@ones y=
    refused 2 "kaio-run: error: 'c.ptx' is not an npy file; raw bytes are read from a file whose name ends in '.bin'" \
        cpu saxpy.ptx x=c.ptx y=@ones
    refused 2 "kaio-run: error: '$npy/bad-fortran.npy' is in Fortran order; save numpy.ascontiguousarray(x) instead" \
        cpu saxpy.ptx x="$npy/bad-fortran.npy" y=@ones
}

@test "standard input is read once" {
    refused 2 "kaio-run: error: standard input can be read once, by the PTX or by x" cpu x=- y=@ones <saxpy.ptx
    refused 2 "kaio-run: error: standard input can be read once, by x or by y" cpu saxpy.ptx x=- y=- <"$npy/good-fortran-1d.npy"
}

@test "an empty or cut input on standard input" {
    refused 2 "kaio-run: error: '<stdin>' is empty; an npy file is expected" cpu saxpy.ptx x=- y=@ones </dev/null
    head -c 100 "$npy/good-float32.npy" >"cut"
    refused 2 "kaio-run: error: '<stdin>' is not a valid npy file: it ends within its header" cpu saxpy.ptx x=- y=@ones <"cut"
}

# --- outputs are whole or absent ---

@test "a full disk" {
    refused 2 "kaio-run: error: cannot write '/dev/full': No space left on device" cpu saxpy.ptx n=9 x=@ones y=@ones:/dev/full
    run -2 bash -c 'kaio-run -d cpu saxpy.ptx n=9 x=@ones y=@ones:- >/dev/full'
    [[ "$output" = *"cannot write '<stdout>': No space left on device"* ]]
    run -2 bash -c 'kaio-run -d cpu saxpy.ptx n=9 x=@ones y=@ones >/dev/full'
    [[ "$output" = *"cannot write to standard output: No space left on device"* ]]
}

# Two outputs: y may be written, z may not.
@test "of several outputs all are written or none" {
    printf '//@ %s\n' 'kaio: 1' 'kernel: copy' 'params:' '  x: in u8[n]' '  y: out u8[n]' '  z: out u8[n]' 'launches:' \
        '  - {entry: copy, grid: [1], block: [1], args: [x, y, n]}' '  - {entry: copy, grid: [1], block: [1], args: [y, z, n]}' \
        >two.ptx
    cat copy.ptx >>two.ptx
    run -0 cpu two.ptx n=3 x=@arange y=y.bin z=z.bin
    cmp y.bin z.bin
    echo old >y.bin
    rm z.bin
    refused 2 "kaio-run: error: cannot write '/dev/full': No space left on device" cpu two.ptx n=3 x=@arange y=y.bin z=/dev/full
    [ "$(cat y.bin)" = old ]
    refused 2 "kaio-run: error: cannot write 'no/z.bin': No such file or directory" cpu two.ptx n=3 x=@arange y=y.bin z=no/z.bin
    [ "$(cat y.bin)" = old ]
    refused 2 "kaio-run: error: y and z both go to 'y.bin'" cpu two.ptx n=3 x=@arange y=y.bin z=y.bin
}

@test "a closed pipe ends it quietly" {
    run bash -c 'set -o pipefail; kaio-run -d cpu saxpy.ptx n=1000000 x=@ones y=@ones:- | true; echo "${PIPESTATUS[0]}"'
    [ "$output" = 141 ] || [ "$output" = 0 ]
}

@test "binary is not written to a terminal" {
    script -qec true /dev/null >/dev/null 2>&1 || skip "no pseudo-terminals"
    run script -qec 'kaio-run -d cpu saxpy.ptx n=1 x=@ones y=@ones:-' /dev/null
    [[ "$output" = *"y is binary and standard output is a terminal; give y=FILE or a pipe"* ]]
}

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

# --- devices ---

@test "auto takes the GPU, or the simulator and says so once" {
    run -0 --separate-stderr kaio-run saxpy.ptx n=1 x=@ones y=@ones
    [ "${#stderr_lines[@]}" = 1 ]
    [[ "$stderr" = "kaio-run: no NVIDIA driver: "*"; running on the simulator" ]]
    run -0 --separate-stderr kaio-run -q saxpy.ptx n=1 x=@ones y=@ones
    [ "$stderr" = "" ]
    log=$PWD/log
    KAIO_CUDA_LIB=$fake FAKE_CUDA_LOG=$log run -0 --separate-stderr kaio-run saxpy.ptx n=1 x=@ones y=@ones
    [ "$stderr" = "" ]
    grep -q '^launch 1,1,1 x 256,1,1' log
    KAIO_DEVICE=cpu KAIO_CUDA_LIB=$fake FAKE_CUDA_LOG=$log.2 run -0 --separate-stderr kaio-run saxpy.ptx n=1 x=@ones y=@ones
    [ ! -e log.2 ]
}

@test "a long simulation shows its progress on a terminal, and wipes it" {
    script -qec true /dev/null >/dev/null 2>&1 || skip "no pseudo-terminals"
    cat >slow.yaml <<'END'
kernel: slow
params: {y: "out u32[n]"}
grid: 16
block: 32
body: |
  u32 s = 0;
  if (blockIdx.x >= 8)
    for (u32 k = 0; k < 4000000000u; k++) s += k ^ s;
  if (n > 0) y[0] = s;
END
    kaio-emit slow.yaml >slow.ptx
    # it appears after a second; a busy machine gets more, and there script(1) has lost what was written last
    for limit in 2 4 30; do
        shown=$(TERM=xterm script -qec "timeout -s INT $limit kaio-run -d cpu slow.ptx n=1" /dev/null) || :
        [[ $shown != *"simulating slow, block: 8/16 (50%), "[1-9]*" s, "*"/s"*$'\r\033[K'*"interrupted"* ]] || break
    done
    [[ $shown == *"simulating slow, block: 8/16 (50%), "[1-9]*" s, "*"/s"*$'\r\033[K'*"interrupted"* ]]
    shown=$(TERM=xterm script -qec 'timeout -s INT 1.4 kaio-run -q -d cpu slow.ptx n=1' /dev/null) || :
    [[ $shown != *"simulating"* ]]
}

@test "a device that is not there is exit 77" {
    run -77 kaio-run -d cuda saxpy.ptx n=1 x=@ones y=@ones:y.npy
    [[ "$output" = "kaio-run: error: no NVIDIA driver: "* ]]
    [ ! -e y.npy ]
    KAIO_CUDA_LIB=$fake run -77 kaio-run -d cuda:1 saxpy.ptx n=1 x=@ones y=@ones
    [ "$output" = "kaio-run: error: there is no GPU 1; the driver sees 1, numbered from 0" ]
    run -2 kaio-run -d gpu saxpy.ptx
    [ "${lines[0]}" = "kaio-run: error: --device: 'gpu' is not auto, cuda, cuda:N or cpu" ]
    KAIO_DEVICE=x run -2 kaio-run saxpy.ptx
    [ "${lines[0]}" = "kaio-run: error: KAIO_DEVICE: 'x' is not auto, cuda, cuda:N or cpu" ]
}

@test "the devices are listed" {
    KAIO_CUDA_LIB=$fake FAKE_CUDA_DEVICES=2 FAKE_CUDA_SM=90 run -0 --separate-stderr kaio-run --list-devices
    [ "${lines[0]}" = "cuda:0  Fake GPU 0  sm_90  16.8 MB  CUDA 13.0" ]
    [ "${lines[1]}" = "cuda:1  Fake GPU 1  sm_90  16.8 MB  CUDA 13.0" ]
    [[ "${lines[2]}" = "cpu     kaio simulator"* ]]
    run -0 --separate-stderr kaio-run --list-devices
    [[ "${lines[0]}" = "cpu     kaio simulator"* ]]
    [[ "$stderr" = *"note: no NVIDIA driver"* ]]
}

@test "a module that the GPU cannot run is refused at its line" {
    sed 's/^\.target sm_70/.target sm_90a/; s/^\.version 6.0/.version 8.0/' saxpy.ptx >new.ptx
    run -2 --separate-stderr cuda new.ptx n=1 x=@ones y=@ones:y.npy
    [ "${stderr_lines[0]}" = "new.ptx:15:1: error: the module needs sm_90a; this device is sm_80" ]
    [[ "$stderr" = *"kaio-run: note: the simulator may run it: -d cpu" ]]
    [ ! -e y.npy ]
    FAKE_CUDA_JIT_LOG="ptxas application ptx input, line 34; error   : Bad" run -2 --separate-stderr cuda saxpy.ptx n=1 x=@ones y=@ones
    [ "${stderr_lines[0]}" = "saxpy.ptx:34:5: error: the driver's compiler says: Bad" ]
}

@test "what the driver's compiler makes slower is a warning at its line, also when the driver had compiled it before" {
    export XDG_CACHE_HOME=$PWD/cache FAKE_CUDA_JIT_CACHE=$PWD/driver
    export FAKE_CUDA_JIT_INFO=$'ptxas info    : (C7504) Potential Performance Loss: \'setmaxnreg\' ignored.'
    sed 's/ret;/setmaxnreg.dec.sync.aligned.u32 24;\n&/; s/^\.target sm_70/.target sm_90a/; s/^\.version 6.0/.version 8.0/' saxpy.ptx >slow.ptx
    for _ in 1 2 3; do
        FAKE_CUDA_SM=90 run -0 --separate-stderr cuda slow.ptx n=1 x=@ones y=@ones
        [ "${stderr_lines[0]}" = "slow.ptx:$(grep -n setmaxnreg slow.ptx | cut -d: -f1):5: warning: the driver's compiler says: Potential Performance Loss: 'setmaxnreg' ignored. (C7504)" ]
        [[ "$output" = "y  f32[1]  "* ]]
    done
    [ "$(wc -l <driver)" = 1 ]
    [ "$(ls cache/kaio/jit | wc -l)" = 1 ]
}

@test "PTX that we cannot parse is left to the driver, and refused by the simulator" {
    sed 's/^\$loop:/    future.op.u32 %r1, %r1;\n&/' copy.ptx >later.ptx
    args=(--entry copy --grid 1 --block 1 --arg 'in u8[2]=@ones' --arg 'out u8[2]=y.bin' --arg u32=2)
    run -0 cuda later.ptx "${args[@]}"
    cmp y.bin <(printf '\1\1')
    run -2 --separate-stderr cpu later.ptx "${args[@]}"
    [[ "${stderr_lines[0]}" = "later.ptx:15:5: error: "* ]]
}

@test "faults of the kernel and of the device are exit 3, and write nothing" {
    echo '.visible .entry fault() { ret; }' >>plain.ptx
    run -3 cuda plain.ptx --entry fault --grid 1 --block 1
    [ "$output" = "kaio-run: error: kernel 'fault' failed: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered" ]
    FAKE_CUDA_MEMORY=100 run -3 cuda saxpy.ptx n=100 x=@ones y=@ones:y.npy
    [ "$output" = "kaio-run: error: the GPU has no memory left for the 400 bytes of 'x'" ]
    [ ! -e y.npy ]
    FAKE_CUDA_FAIL=cuMemcpyDtoH_v2:999 run -3 cuda saxpy.ptx n=100 x=@ones y=@ones:y.npy
    [ "$output" = "kaio-run: error: cannot copy from the GPU: unknown error (999): no description" ]
    [ ! -e y.npy ]
    FAKE_CUDA_LOG=$PWD/log run -0 cuda saxpy.ptx n=100 x=@ones y=@ones
    [ "$(grep -c '^alloc' log)" = "$(grep -c '^free' log)" ]
}

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

@test "an access outside a buffer ends the simulation, with exit 1 under --check" {
    copy_of f32 n 'n * 4 + 1' >c.ptx
    run -3 --separate-stderr cpu c.ptx n=3 x=@ones y=y.npy
    [ "$output" = "" ]
    [[ "$stderr" = *"error: "* ]]
    [[ "$stderr" = *"x"* ]]
    [ ! -e y.npy ]
    run -1 kaio-run --check=memory c.ptx n=3 x=@ones y=y.npy
    run -0 kaio-run --check=memory saxpy.ptx n=3 x=@ones y=@ones
    run -0 kaio-run --check saxpy.ptx n=3 x=@ones y=@ones
    run -2 kaio-run --check=race,rice saxpy.ptx n=3 x=@ones y=@ones
    [ "${lines[0]}" = "kaio-run: error: --check: 'rice' is not memory, init, race, sync, async or all" ]
    run -2 kaio-run -d cuda --check=memory saxpy.ptx
    [ "${lines[0]}" = "kaio-run: error: --check runs on the simulator: -d cpu" ]
}

@test "a kernel that is stuck is stopped at once, and says where its threads stand" {
    cat >stuck.yaml <<'END'
kernel: stuck
params:
  lock: inout u32[1]
  total: inout u32[1]
grid: 1
block: 64
body: |
  while (atomic_cas(&lock[0], 0, 1, order = acquire) != 0) {
  }
  total[0] += 1;
END
    kaio-emit -g stuck.yaml >stuck.ptx
    run -3 cpu stuck.ptx lock=@zeros:l.npy total=@zeros:t.npy
    [[ "$output" = *"error: kernel 'stuck' is stuck: "* ]]
    [[ "$output" = *"block (0,0,0), warp 0, lanes 1-31: go round here"*"stuck.yaml:8:3: "* ]]
    [[ "$output" = *"block (0,0,0), warp 1, lanes 0-31: go round here"* ]]
    [ ! -e l.npy ]
}

@test "an endless kernel stops at its limit or at a signal" {
    sed 's/^\$done:/$endless:\n    bra $endless;\n&/; s/bra \$done/bra $endless/' copy.ptx >endless.ptx
    args=(--entry copy --grid 1 --block 1 --arg 'in u8[2]=@ones' --arg 'out u8[2]=y.npy' --arg u32=2)
    run -3 cpu --max-instructions 100000 endless.ptx "${args[@]}"
    [[ "$output" = *"error: "*"100000"* ]]
    [ ! -e y.npy ]
    kaio-run -d cpu endless.ptx "${args[@]}" 2>err &
    pid=$!
    sleep 0.5
    kill -INT $pid 2>/dev/null || true
    # a background job of a shell ignores SIGINT, so TERM follows
    kill -TERM $pid
    status=0
    wait $pid || status=$?
    [ $status = 143 ] || [ $status = 130 ]
    [ ! -e y.npy ]
    [ -z "$(find . -name "*kaio-*")" ]
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

@test "what an older driver lacks is said" {
    # shellcheck disable=SC2086
    $CC $BASE_CFLAGS -DFAKE_CUDA_OLD -I"$KAIO_BUILDDIR" -fPIC -shared -o old.so "$KAIO_SRCDIR/tests/fake_cuda.c" -lm
    fake=$PWD/old.so
    export FAKE_CUDA_SM=90 FAKE_CUDA_VERSION=11070
    sed -i 's/^\.version 8.0/.version 7.7/' mapped.ptx
    run -2 --separate-stderr cuda mapped.ptx m=34 k=64 bytes=4 x=@arange y=y.bin
    [ "$stderr" = "kaio-run: error: tensor maps need a driver of CUDA 12.0; this one is of CUDA 11.7: update it" ]
    run -2 --separate-stderr cuda plain.ptx --entry saxpy --grid 2 --block 32 --cluster 2 --arg 'in f32[1]=@ones' --arg 'inout f32[1]=@ones' --arg f32=1 --arg u32=1
    [ "$stderr" = "kaio-run: error: clusters need a driver of CUDA 11.8; this one is of CUDA 11.7: update it" ]
    run -0 --separate-stderr cuda saxpy.ptx n=1 x=@ones y=@ones
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

@test "times are of the launches asked for, beside a copy of the same bytes" {
    # short launches are a graph: 10 us each, every third 2 % more, and no more than that
    FAKE_CUDA_LOG=$PWD/log run -0 cuda saxpy.ptx --time=4 n=1000 x=@ones y=@zeros:y.npy
    [ "${lines[0]}" = "time  median 10.1 us  min 10.1 us  max 10.1 us  of 4 x 112" ]
    [ "${lines[1]}" = "bytes  12 kB  1.19 GB/s  copy 1.5 GB/s  ratio 0.795" ]
    [ "$(grep -c '^launch' log)" = 1 ] # the one that counts
    # rotated through copies of the buffers, beside graphs of copies
    [ "$(grep '^capture saxpy' log | sort -u | wc -l)" = 16 ]
    [ "$(grep -c '^replay 112 nodes of saxpy' log)" = "$(grep -c '^replay 128 nodes of copy' log)" ]
    [ "$(grep -c '^alloc' log)" = "$(grep -c '^free' log)" ]
    [ "$(grep -c '^graph destroyed' log)" = 2 ]
    # the result is of one launch: y = 2, not 16
    [ "$(npy_data y.npy | cut -c1-8)" = 00000040 ]
    run -0 cpu saxpy.ptx --time 2 n=1000 x=@ones y=@zeros
    [[ "${lines[1]}" = "time  median "*" of 2" ]]
    # long ones are timed one by one
    FAKE_CUDA_US=saxpy:200 run -0 cuda saxpy.ptx --time=3 n=1000 x=@ones y=@zeros
    [ "${lines[1]}" = "time  median 200 us  min 200 us  max 204 us  of 3" ]
    # where memory is short the copy is of less, and its rate is its own: 4000 bytes read and written in 4 us
    FAKE_CUDA_MEMORY=16000 FAKE_CUDA_LOG=$PWD/log.2 run -0 cuda saxpy.ptx --time=4 n=1000 x=@ones y=@zeros:y.npy
    [ "${lines[1]}" = "bytes  12 kB  1.19 GB/s  copy 1 GB/s  ratio 1.192" ]
    [ "$(grep -c '^alloc 2000' log.2)" = 2 ]
    # a kernel that fails while it is timed is told, and leaves nothing behind
    FAKE_CUDA_FAIL=cuGraphInstantiateWithFlags:2 FAKE_CUDA_LOG=$PWD/log.3 run -3 cuda saxpy.ptx --time=4 n=1000 x=@ones y=@zeros
    [ "${lines[1]}" = "kaio-run: error: cannot make a graph ready: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory" ]
    [ "$(grep -c '^alloc' log.3)" = "$(grep -c '^free' log.3)" ]
    run -0 cpu saxpy.ptx --time n=1000 x=@ones y=@zeros
    [[ "${lines[1]}" = "time  median "*" of 3" ]]
    [[ "${lines[2]}" = "speed  "*" thread-instructions/s  ("*" executed)" ]]
    refused 2 "kaio-run: error: --time: '0' is not between 1 and 1000000" cpu --time=0 saxpy.ptx
}

# --- the command line ---

@test "other mistakes on the command line" {
    refused 2 "kaio-run: error: 'b.ptx' is not NAME=VALUE, and the PTX is 'a.ptx' already" cpu a.ptx b.ptx
    refused 2 "kaio-run: error: -D takes DIM=N, as in -D n=1024, not 'n'" cpu -D n saxpy.ptx
    refused 2 "kaio-run: error: cannot open 'none.ptx': No such file or directory" cpu none.ptx
    : >empty.ptx
    refused 2 "kaio-run: error: 'empty.ptx' is empty; PTX is expected" cpu empty.ptx
    printf '\177ELF' >x.cubin
    refused 2 "kaio-run: error: 'x.cubin' is a cubin, which runs on a GPU only" cpu x.cubin
    run -0 kaio-run --help
    [ "${lines[0]}" = "Usage: kaio-run [OPTION]... [PTX] [NAME=VALUE]..." ]
}

@test "--arch chooses whose tensor cores add up" {
    kaio-emit -t sm_80 -D m=32 -D n=32 -D k=64 "$KAIO_SRCDIR/specs/matmul/tf32.yaml" >"$BATS_TEST_TMPDIR/mm.ptx"
    grep -q mma.sync "$BATS_TEST_TMPDIR/mm.ptx"
    cd "$BATS_TEST_TMPDIR"
    kaio-run -q -d cpu mm.ptx a=@normal:1 b=@normal:2 c=own.npy
    kaio-run -q -d cpu --arch=sm_80 mm.ptx a=@normal:1 b=@normal:2 c=80.npy
    kaio-run -q -d cpu --arch=sm_90 mm.ptx a=@normal:1 b=@normal:2 c=90.npy
    cmp own.npy 80.npy
    run cmp own.npy 90.npy
    [ "$status" = 1 ]
    run kaio-run -d cpu --arch=90x mm.ptx
    [ "$status" = 2 ]
    [ "${lines[0]}" = "kaio-run: error: --arch: '90x' is no target, as sm_80 or sm_90 are" ]
}

# A kernel whose threads wait for a bulk copy of as many bytes as they expect ($1: instruction of the wait, $2: bytes), or do not.
bulk() {
    cat <<END
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    .shared .align 128 .b32 tile[64];
    .shared .align 8 .b64 full;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @!%p1 mbarrier.init.shared.b64 [full], 1;
    bar.sync 0;
    @!%p1 mbarrier.arrive.expect_tx.shared.b64 _, [full], $2;
    @!%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 256, [full];
\$again:
    mbarrier.$1.parity.shared.b64 %p2, [full], 0;
    @!%p2 bra \$${3:-again};
\$on:
    mov.u32 %r3, tile;
    mad.lo.u32 %r3, %r1, 4, %r3;
    ld.shared.b32 %r4, [%r3];
    mad.wide.u32 %rd2, %r1, 4, %rd2;
    st.global.b32 [%rd2], %r4;
    ret;
}
END
}

@test "--check-seed draws when copies arrive, and a kernel that waits for them does not care" {
    args=(--entry k --grid 1 --block 64 --arg 'in i32[64]=@arange')
    bulk try_wait 256 >right.ptx
    bulk test_wait 256 on >wrong.ptx
    run -0 kaio-run -d cpu right.ptx "${args[@]}" --arg 'out i32[64]=right.npy'
    run -0 kaio-run -d cpu wrong.ptx "${args[@]}" --arg 'out i32[64]=late.npy'
    [[ "$(npy_data late.npy)" =~ ^0*$ ]]
    for seed in {1..12}; do
        run -0 kaio-run -d cpu right.ptx "${args[@]}" --check-seed="$seed" --arg 'out i32[64]=y.npy'
        cmp y.npy right.npy
        run -0 kaio-run -d cpu wrong.ptx "${args[@]}" --check-seed="$seed" --arg "out i32[64]=y$seed.npy"
        run -0 kaio-run -d cpu wrong.ptx "${args[@]}" --check-seed="$seed" --arg 'out i32[64]=again.npy'
        cmp "y$seed.npy" again.npy
    done
    cat y?.npy y1?.npy >drawn
    run ! cmp -s drawn <(for _ in {1..12}; do cat late.npy; done)
    run -2 kaio-run -d cpu right.ptx "${args[@]}" --check-seed=-1 --arg 'out i32[64]=y.npy'
    [[ "$output" = *"--check-seed"* ]]
}

@test "threads that wait for bytes which do not come are told of at once" {
    args=(--entry k --grid 4 --block 64 --arg 'in i32[64]=@arange' --arg 'out i32[64]=y.npy')
    what="the phase of parity 0 of the mbarrier at element 0 of 'full' (shared b64), which lacks 16 bytes"
    for wait in try_wait test_wait; do
        bulk $wait 272 >short.ptx
        run -3 kaio-run -q -d cpu short.ptx "${args[@]}"
        [[ "$output" = *"kernel 'k' is stuck: "*"short.ptx:20:5: note: block (0,0,0), warps 0-1, lanes 0-31: wait for $what"* ]]
    done
}

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
