# kaio-run: each form of argument, each mistake in one, and outputs that are whole or absent.
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
