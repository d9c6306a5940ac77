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
