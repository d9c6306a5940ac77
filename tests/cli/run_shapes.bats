# kaio-run: dimensions that follow from the shapes of files, and files that are taken in another shape.
bats_require_minimum_version 1.5.0
load run

# vector N FILE: f32[N] in an npy file
vector() {
    cpu saxpy.ptx n="$1" x=@zeros y=@arange:"$2" alpha=0
}

# of DECLARATION [DECLARATION]: a kernel that does nothing but to take x and z
takes() {
    printf '//@ %s\n' 'kaio: 1' 'kernel: copy' 'target: sm_70' 'params:' "  x: in $1" "  y: out u8[0]" \
        ${2+"  z: in $2"} 'launches:' '  - {entry: copy, grid: [1], block: [1], args: [x, y, u32 0]}'
    cat copy.ptx
}

# --- dimensions that are solved for ---

@test "a dimension follows from an extent that is linear in it" {
    vector 6 six.npy
    local extent n
    while read -r n extent; do
        takes "f32[$extent]" 'f32[n]' >k.ptx
        run -0 cpu k.ptx x=six.npy z=@zeros
        vector "$n" z.npy
        run -0 cpu k.ptx x=six.npy z=z.npy
        run -2 cpu k.ptx x=six.npy z=@zeros n=$((n + 1))
    done <<'END'
5 n + 1
3 2 * n
2 n * 3
4 2 * n - 2
7 n - 1
4 10 - n
1 (n + 1) * 3
2 n + n + 2
END
}

@test "one follows from another, whatever order they are given in" {
    vector 6 six.npy
    vector 5 five.npy
    takes 'f32[rows + cols]' 'f32[cols - 1]' >k.ptx
    run -0 cpu k.ptx x=six.npy z=five.npy
    run -0 cpu k.ptx z=five.npy x=six.npy rows=0
    refused 2 "kaio-run: error: z is f32[5], the kernel declares f32[cols - 1], which is f32[4] here" \
        cpu k.ptx x=six.npy z=five.npy cols=5
    takes 'f32[rows * cols]' 'f32[cols - 1]' >k.ptx
    run -0 cpu k.ptx x=six.npy z=five.npy
    takes 'f32[n + 1]' 'f32[n]' >k.ptx
    refused 2 "kaio-run: error: z is f32[6], so n is 6, but n=5 was given" cpu k.ptx x=six.npy z=six.npy n=5
}

@test "what has no solution, or more than one, is told" {
    vector 6 six.npy
    takes 'f32[2 * n + 1]' >k.ptx
    refused 2 "kaio-run: error: x is f32[6], and no n makes 2 * n + 1 be 6" cpu k.ptx x=six.npy
    takes 'f32[n + 7]' >k.ptx
    refused 2 "kaio-run: error: x is f32[6], and no n makes n + 7 be 6" cpu k.ptx x=six.npy
    takes 'f32[n + 1]' >k.ptx
    refused 2 "kaio-run: error: dimension n is not known; give n=..., or an npy file for x" cpu k.ptx x=@ones
    takes 'f32[n / 2]' >k.ptx
    refused 2 "kaio-run: error: dimension n is not known; give n=..." cpu k.ptx x=six.npy
    takes 'f32[n + m]' >k.ptx
    refused 2 "kaio-run: error: dimension n is not known; give n=..., or an npy file for x" cpu k.ptx x=six.npy
    run -0 cpu k.ptx x=six.npy m=2
}

# --- files in another shape ---

# copies TYPE DIMS BYTES: k.ptx, which copies x to y
copies() {
    copy_of "$@" >k.ptx
}

@test "a file in another shape" {
    vector 6 six.npy
    copies f32 'r, c' 'r * c * 4'
    local view
    for view in '[2,3]' '[2, 3]' '[ -1 ,3]' '[2,-1]'; do
        run -0 cpu k.ptx "x=six.npy$view" y=y.npy
        [ "$(npy_header y.npy)" = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" ]
        [ "$(npy_data y.npy)" = "$(npy_data six.npy)" ]
    done
    run -0 cpu k.ptx 'x=-[3,2]' y=y.npy <six.npy
    [ "$(npy_header y.npy)" = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }" ]
    # back again, and empty ones
    copies f32 n 'n * 4'
    run -0 cpu k.ptx 'x=y.npy[-1]'
    [ "${output:0:25}" = "y  f32[6]  0 1 2 3 4 5  m" ]
    vector 0 none.npy
    copies f32 'r, c' 'r * c * 4'
    run -0 cpu k.ptx 'x=none.npy[0,7]'
    [ "$output" = "y  f32[0, 7]  empty" ]
    run -0 cpu k.ptx 'x=none.npy[-1,7]'
    [ "$output" = "y  f32[0, 7]  empty" ]
}

@test "a file with its axes reversed" {
    vector 6 six.npy
    copies f32 'r, c' 'r * c * 4'
    run -0 cpu k.ptx 'x=six.npy[2,3]::T'
    [ "${output:0:28}" = "y  f32[3, 2]  0 3 1 4 2 5  m" ]
    run -0 cpu k.ptx 'x=six.npy[2,3]::T' y=y.npy
    run -0 cpu k.ptx x=y.npy::T
    [ "${output:0:28}" = "y  f32[2, 3]  0 1 2 3 4 5  m" ]
    copies f32 'a, b, c' 'a * b * c * 4'
    vector 24 many.npy
    run -0 cpu k.ptx 'x=many.npy[2,3,4]::T' y=y.bin
    [ "$(od -An -v -tf4 -w96 y.bin | tr -s ' ')" = " 0 12 4 16 8 20 1 13 5 17 9 21 2 14 6 18 10 22 3 15 7 19 11 23" ]
    # of one axis nothing changes
    copies f32 n 'n * 4'
    run -0 cpu k.ptx x=six.npy::T
    [ "${output:0:25}" = "y  f32[6]  0 1 2 3 4 5  m" ]
    # large enough for several threads
    copies u16 'r, c' 'r * c * 2'
    run -0 cpu k.ptx r=500 c=700 x=@randint:0:65535 y=m.npy
    run -0 cpu k.ptx x=m.npy::T y=t.npy
    run -0 cpu k.ptx x=t.npy::T y=again.npy
    cmp m.npy again.npy
    element() { od -An -tu2 -j $((128 + 2 * $2)) -N2 "$1"; }
    [ "$(element t.npy $((699 * 500 + 3)))" = "$(element m.npy $((3 * 700 + 699)))" ]
    [ "$(element t.npy $((123 * 500 + 456)))" = "$(element m.npy $((456 * 700 + 123)))" ]
}

@test "elements of 4 bits keep their bytes together" {
    copies i4 'r, c' 'r * c / 2'
    printf '\x10\x32\x54\x76' >x.bin
    run -0 cpu k.ptx 'x=x.bin[2,4]::T'
    [ "${output:0:30}" = "y  i4[4, 2]  0 4 1 5 2 6 ...  " ]
    refused 2 "kaio-run: error: x: 'x.bin[1,8]::T' would have an odd last dimension, in i4" cpu k.ptx 'x=x.bin[1,8]::T'
    refused 2 "kaio-run: error: x: 'x.bin[8,1]' can't have that shape in i4" cpu k.ptx 'x=x.bin[8,1]'
}

@test "raw bytes, tensors of safetensors and inouts in another shape" {
    printf '\0\1\2\3\4\5' >x.bin
    copies u8 'r, c' 'r * c'
    run -0 cpu k.ptx 'x=x.bin[2,3]'
    [ "${output:0:27}" = "y  u8[2, 3]  0 1 2 3 4 5  m" ]
    run -0 cpu k.ptx 'x=x.bin[-1,3]::T'
    [ "${output:0:27}" = "y  u8[3, 2]  0 3 1 4 2 5  m" ]
    mkfifo pipe.bin
    cat x.bin /dev/zero >pipe.bin 2>/dev/null &
    run -2 cpu k.ptx 'x=pipe.bin[2,3]'
    [ "$output" = "kaio-run: error: pipe.bin has more bytes than the 6 that 'pipe.bin[2,3]' takes" ]
    copies bf16 n 'n * 2'
    cp "$KAIO_SRCDIR/tests/fuzz/corpus/fuzz_npy/two.safetensors" w.safetensors
    run -0 cpu k.ptx 'x=w.safetensors#x[4]' y=y.bin
    [ "$(od -An -tx1 y.bin | tr -d ' ')" = 0001020304050607 ]
    # of an inout the destination begins behind the view
    vector 4 four.npy
    printf '//@ %s\n' 'kaio: 1' 'kernel: copy' 'target: sm_70' 'params:' '  y: inout f32[a, b]' 'launches:' \
        '  - {entry: copy, grid: [1], block: [1], args: [y, y, u32 0]}' >k.ptx
    cat copy.ptx >>k.ptx
    run -0 cpu k.ptx 'y=four.npy[1,4]::T:out.npy'
    [ "$(npy_header out.npy)" = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 1), }" ]
    run -0 cpu k.ptx 'y=four.npy[2,2]::T:'
    [[ "$output" == "y  f32[2, 2]  0 2 1 3 "* ]]
    run -0 cpu k.ptx 'y=four.npy[2,2]::T'
    [[ "$output" == "y  f32[2, 2]  0 2 1 3 "* ]]
    run -0 cpu k.ptx 'y=four.npy[2,2]:out.npy'
    [ "$(npy_header out.npy)" = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }" ]
    refused 2 "kaio-run: error: y: 'out.npy[4]': a result is written in the shape that the kernel declares; another shape is for sources" \
        cpu k.ptx 'y=four.npy[2,2]:out.npy[4]'
}

@test "views that make no sense" {
    vector 6 six.npy
    printf '\0\1\2\3\4\5' >x.bin
    copies f32 'r, c' 'r * c * 4'
    local view
    for view in '[4,2]' '[-1,4]' '[0,-1]' '[6]' '[99999999999,99999999999]'; do
        run -2 cpu k.ptx "x=six.npy$view"
        [[ "$output" == *"'six.npy$view' has 6 elements, which is not that shape" ||
            "$view $output" == "[6] kaio-run: error: x is f32[6], the kernel declares f32[r, c]" ]]
    done
    for view in '[]' '[,]' '[2,]' '[-1,-1]' '[-2,3]' '[2.5,3]' '[2,x]' '[1,1,1,1,1,1,1,1,6]' '[2 3]'; do
        run -2 cpu k.ptx "x=six.npy$view"
        [[ "$output" == "kaio-run: error: x: '$view' is no shape: it is 1 to 8 whole numbers, of which one may be -1" ]] ||
            { echo "$view: $output"; return 1; }
    done
    refused 2 "kaio-run: error: x: in 'six.npy::T[2,3]' the shape comes first, then one ::T" cpu k.ptx 'x=six.npy::T[2,3]'
    refused 2 "kaio-run: error: x: in 'six.npy::T::T' the shape comes first, then one ::T" cpu k.ptx 'x=six.npy::T::T'
    refused 2 "kaio-run: error: x: raw bytes have no axes to reverse; give a shape, as in 'x.bin[2,-1]::T'" cpu k.ptx x=x.bin::T
    refused 2 "kaio-run: error: x: '@normal[2,3]': what is made has the shape that the kernel declares; another shape is for files" \
        cpu k.ptx 'x=@normal[2,3]'
    refused 2 "kaio-run: error: y: 'y.npy[3,2]': a result is written in the shape that the kernel declares; another shape is for sources" \
        cpu k.ptx 'x=six.npy[2,3]' 'y=y.npy[3,2]'
    refused 2 "kaio-run: error: y: 'y.npy::T': a result is written in the shape that the kernel declares; another shape is for sources" \
        cpu k.ptx 'x=six.npy[2,3]' y=y.npy::T
    ln -s /dev/zero zero.bin
    refused 2 "kaio-run: error: x: nothing says how many elements 'zero.bin[-1,2]' has" cpu k.ptx 'x=zero.bin[-1,2]'
    # a file whose own name ends so
    cp six.npy 'six[1]'
    run -0 cpu k.ptx 'x=six[1][2,3]'
}
