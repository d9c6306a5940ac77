# What the tests of kaio-run share: load run

setup() {
    data=$KAIO_SRCDIR/tests/data/run
    npy=$KAIO_SRCDIR/tests/data/npy
    fake=$KAIO_BUILDDIR/tests/libfakecuda.so
    export KAIO_CUDA_LIB=/nonexistent/libcuda.so.1
    mkdir "$BATS_TEST_TMPDIR/work" # beside what bats keeps
    cd "$BATS_TEST_TMPDIR/work"
    cp "$data"/*.ptx .
    sed '/^\/\/@/d' saxpy.ptx >plain.ptx
}

# copy.ptx with a contract: copy_of TYPE DIMS BYTES, as in: copy_of f32 n 'n * 4'
copy_of() {
    printf '//@ %s\n' 'kaio: 1' 'kernel: copy' 'target: sm_70' 'params:' "  x: in $1[$2]" "  y: out $1[$2]" \
        'launches:' '  - entry: copy' '    grid: [1]' '    block: [1]' "    args: [x, y, u32 $3]"
    cat copy.ptx
}

# The bytes behind an npy file's header, in hexadecimal.
npy_data() {
    local head
    head=$(($(od -An -tu2 -j8 -N2 "$1") + 10))
    od -An -v -tx1 -j$head "$1" | tr -d ' \n'
}

npy_header() {
    head -n 1 "$1" | tr -d '\0' | sed 's/^[^{]*//; s/ *$//'
}

# The command fails with status $1 and this first line on standard error, and leaves no file behind.
refused() {
    local status_want=$1 text=$2
    shift 2
    ls -A >before
    run -"$status_want" --separate-stderr "$@"
    [ "$output" = "" ] || { echo "printed: $output"; return 1; }
    [ "${stderr_lines[0]}" = "$text" ] || { printf 'said:   %s\nwanted: %s\n' "$stderr" "$text"; return 1; }
    ls -A | diff before -
}

cpu() {
    kaio-run -d cpu "$@"
}

cuda() {
    KAIO_CUDA_LIB=$fake kaio-run -d cuda "$@"
}
