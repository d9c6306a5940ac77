# Arrays, shared memory, vectors and loops in bodies: what only code generation can tell.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
}

# spec BODY...: a kernel with that body, a line for each argument
spec() {
    printf 'kernel: k\nparams:\n  x: in f32[n]\n  y: out f32[n]\n%sblock: 64\ngrid: ceil_div(n, 64)\nbody: |\n' "${keys-}"
    printf '  u32 i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) {\n'
    printf '  %s\n' "$@"
    printf '  }\n'
}

# refused MESSAGE TARGET BODY...
refused() {
    message=$1 target=$2
    shift 2
    spec "$@" >k.yaml
    run -2 --separate-stderr kaio-emit -t "$target" k.yaml
    [[ ${stderr:-} == *"$message"* ]] || { echo "$stderr"; false; }
    [ -z "$output" ]
}

@test "an array whose indices are constants is in registers only" {
    spec 'f32 a[4][4] = {};' \
        'for (u32 r = 0; r < n; r++)' \
        '  for (u32 p = 0; p < 4; p++)' \
        '    for (u32 q = 0; q < 4; q++) a[p][q] += x[r] * f32(p + q);' \
        'f32 s = 0;' \
        'for (u32 p = 0; p < 16; p++) s += a[p];' \
        'y[i] = s;' >k.yaml
    run -0 --separate-stderr kaio-emit -t sm_80 k.yaml
    [[ $output != *local* && $output != *const* && -z ${stderr:-} ]]
    [ "$(grep -c 'fma.rn.f32' <<<"$output")" = 16 ]
    run -0 kaio-emit -t sm_80 --explain -v k.yaml
    [[ $output != *'local memory'* ]]
}

@test "an array with another index is in local memory, and --explain says why" {
    spec 'f32 a[4] = {1};' 'a[i % 4] = x[i];' 'y[i] = a[0];' >k.yaml
    run -0 kaio-emit -t sm_80 k.yaml
    [[ $output == *'.local .align 16 .f32 a[4];'* && $output == *st.local.f32* ]]
    run -0 kaio-emit -t sm_80 --explain -v k.yaml
    [[ $output == *"'a' is in local memory: an index in line 11 is not constant"* ]]
}

@test "a table is in constant memory only where an index is no constant" {
    spec 'const f32 w[3] = {1, 2, 3};' 'y[i] = x[i] * w[1];' >k.yaml
    run -0 kaio-emit -t sm_80 k.yaml
    [[ $output != *.const* && $output == *0f40000000* ]]
    spec 'const f32 w[3] = {1, 2, 3};' 'y[i] = x[i] * w[i % 3];' >k.yaml
    run -0 kaio-emit -t sm_80 k.yaml
    [[ $output == *'.const .align 16 .f32 k$w[3] = {0f3F800000, 0f40000000, 0f40400000};'* ]]
}

@test "indices that turn out to be outside are errors in the line that has them" {
    refused "k.yaml:11:40: error: index 4 is out of range here: 'a' has 4 elements" sm_80 'f32 a[4] = {};' \
        'for (u32 k = 0; k < 4; k++) a[k] = a[k + 1];' 'y[i] = a[0];'
    refused "index -1 is out of range here" sm_80 'f32 a[2][2] = {};' \
        'for (i32 k = 0; k < 2; k++) a[k][k - 1] = 1;' 'y[i] = a[0];'
    refused "index 4 is out of range here: 'v' has 4 elements" sm_80 'f32x4 v = f32x4(1);' \
        '#pragma unroll' 'for (u32 k = 0; k < 5; k++) v[k] = 1;' 'y[i] = v.x;'
}

@test "a lane is chosen by a constant" {
    refused 'the number of a lane must be constant' sm_80 'f32x4 v = f32x4(1);' 'y[i] = v[i % 4];'
}

@test "shared memory over the target's limit is refused" {
    body=('shared f32 a[16384];' 'shared f32 b[1024];' 'a[i % 64] = x[i];' 'b[0] = a[1];' 'y[i] = b[0];')
    refused "the block's shared memory is 69632 bytes up to here, and sm_75 has 65536" sm_75 "${body[@]}"
    spec "${body[@]}" >k.yaml
    run -0 kaio-emit -t sm_80 k.yaml
    [[ $output == *'shared: 69632'* && $output == *'.extern .shared .align 16 .b8 $shared[];'* ]]
    refused 'and sm_86 has 101376' sm_86 'shared f64 a[20000];' 'a[0] = x[i];' 'y[i] = f32(a[0]);'
    refused 'and sm_90 has 232448' sm_90 'shared f64 a[40000];' 'a[0] = x[i];' 'y[i] = f32(a[0]);'
    keys=$'shared: 240000\n' refused 'and sm_90 has 232448' sm_90 'shared f64 a[];' 'a[0] = x[i];' 'y[i] = f32(a[0]);'
}

@test "the launch asks for the shared memory that its values make" {
    keys=$'shared: 4 * n\n' spec 'shared f32 b[];' 'shared f16 a[n][3];' 'shared f32 c[64];' \
        'b[i] = x[i]; a[i][1] = f16(b[i]); c[i % 64] = 1;' 'y[i] = b[i] + f32(a[i][1]) + c[i % 64];' >k.yaml
    run -0 kaio-emit -t sm_80 k.yaml
    [[ $(awk -f "$KAIO_SRCDIR/tests/expand.awk" <<<"$output") == *'//@     shared: ceil_div(n * 3 * 2, 16) * 16 + 4 * n'* ]]
    [[ $output == *'.shared .align 16 .f32 c[64];'* ]]
    run -0 --separate-stderr kaio-run -q -d cpu - n=50 x=@ones y=y.npy <<<"$output"
    run -0 kaio-emit -t sm_80 k.yaml
    run -2 --separate-stderr kaio-run -q -d cpu - n=50000 x=@ones y=y.npy <<<"$output"
    [[ $stderr == *'bytes of dynamic shared memory'* ]]
}

@test "a loop that can't be unrolled stays, with a warning that says why" {
    for line in '#pragma unroll|for (u32 k = 0; k < n; k++) y[i] += x[k];|the number of its rounds is not a constant' \
        '#pragma unroll|for (u32 k = 0; k < 2000; k++) y[i] += x[k];|it has more than 1024 rounds' \
        '#pragma unroll|while (y[i] < 3) y[i] += x[i];|nothing in its condition changes in one place only'; do
        IFS='|' read -r pragma loop why <<<"$line"
        spec 'y[i] = 0;' "$pragma" "$loop" >k.yaml
        run -0 --separate-stderr kaio-emit -t sm_80 k.yaml
        [[ $stderr == *"warning: this loop is not unrolled: $why"* ]] || { echo "$stderr"; false; }
        [ "$(grep -c 'warning' <<<"$stderr")" = 1 ]
        [[ $output == *'bra '*'$loop'* ]]
    done
}

@test "unrolled loops have as many copies as asked for" {
    spec 'f32 s = 0;' '#pragma unroll' 'for (u32 k = 0; k < 12; k++) s += x[k];' 'y[i] = s;' >k.yaml
    run -0 kaio-emit -t sm_80 k.yaml
    [ "$(grep -c 'add.rn.f32' <<<"$output")" = 12 ]
    [[ $output != *loop* ]]
    sed -i 's/unroll$/unroll 4/' k.yaml
    run -0 kaio-emit -t sm_80 k.yaml
    [ "$(grep -c 'add.rn.f32' <<<"$output")" = 4 ]
    [ "$(grep -c 'setp.lt.u32' <<<"$output")" = 2 ] # i < n, and one for all four: 12 is a multiple of 4
    sed -i 's/unroll 4$/unroll 1/' k.yaml
    run -0 kaio-emit -t sm_80 k.yaml
    [ "$(grep -c 'add.rn.f32' <<<"$output")" = 1 ]
}

@test "a vector is one access" {
    spec 'f32x4 v = load4(&x[i / 4 * 4]);' 'shared f16 h[256];' 'store8(&h[i % 32 * 8], f16x8(f16(v.x)));' \
        'f16x8 w = load8(&h[i % 32 * 8]);' 'store2(&y[i / 2 * 2], f32x2(w[0], w[7]));' >k.yaml
    run -0 kaio-emit -t sm_80 k.yaml
    [[ $output == *ld.global.nc.v4.f32* && $output == *st.shared.v4.b32* && $output == *ld.shared.v4.b32* ]]
    [[ $output == *st.global.v2.f32* ]]
    [ "$(grep -cE '(ld|st)\.(global|shared)' <<<"$output")" = 4 ]
}

@test "a vector that surely is not where one can be is refused" {
    refused 'load4() needs an address that is a multiple of 16 bytes, and this element is 4 bytes behind one' sm_80 \
        'shared f32 t[4][33];' 't[i % 4][0] = x[i];' 'f32x4 v = load4(&t[1][0]);' 'y[i] = v.x;'
    spec 'shared f32 t[4][36];' 't[i % 4][0] = x[i];' 'f32x4 v = load4(&t[1][4]);' 'y[i] = v.x;' >k.yaml
    run -0 kaio-emit -t sm_80 k.yaml
}

@test "an if that comes to nothing leaves no branch" {
    spec 'if (x[0] > 1) { f32 v = x[1]; }' 'if (x[0] > 1) { f32 v = x[2]; } else { f32 w = 2; }' 'y[i] = 1;' >k.yaml
    run -0 kaio-emit -t sm_80 k.yaml
    [ "$(grep -c bra <<<"$output")" = 1 ] # around the store
}

@test "a table of zeros has them in its own type" {
    spec 'const f32 w[3] = {};' 'const f64 u[3] = {};' 'y[i] = w[i % 3] + f32(u[i % 3]);' >k.yaml
    run -0 kaio-emit -t sm_80 k.yaml
    [[ $output == *'k$w[3] = {0f00000000};'* && $output == *'k$u[3] = {0d0000000000000000};'* ]]
}

# ptxas takes the unsigned value of bfe.s32 of a byte or a half as signed when it becomes a float
@test "no byte and no half is sign-extended by bfe.s32" {
    spec 'y[i] = f32(u32(i8(i))) + f32(u32(i16(i))) + f32(u32(bfe(i32(i), 8, 8))) + f32(bfe(i32(i), 3, 8));' >k.yaml
    run -0 kaio-emit -t sm_80 k.yaml
    [ "$(grep -c bfe.s32 <<<"$output")" = 1 ] # the last, which is neither
}

# ptxas takes a bool's 0 or 1 as a number where it is the bits of an f16
@test "the bits of an f16 are hidden from those who know that they are 0 or 1" {
    spec 'y[i] = f32(as_f16(u16(x[i] > 1)));' >k.yaml
    run -0 kaio-emit -t sm_80 k.yaml
    [[ $output == *prmt.b32*cvt.u16.u32*cvt.f32.f16* ]]
}
