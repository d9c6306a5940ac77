# What the tests of kaio-verify share: load verify

setup() {
    cd "$BATS_TEST_TMPDIR"
    specs=$KAIO_SRCDIR/specs
    saxpy=$specs/elementwise/saxpy.yaml
}

# A vector of floats as raw bytes: f32s 1 2.5 -3
f32s() {
    for v in "$@"; do
        case $v in
        0) printf '\0\0\0\0' ;;
        1) printf '\0\0\200\077' ;;
        2) printf '\0\0\0\100' ;;
        3) printf '\0\0\100\100' ;;
        4) printf '\0\0\200\100' ;;
        5) printf '\0\0\240\100' ;;
        7) printf '\0\0\340\100' ;;
        nan) printf '\0\0\300\177' ;;
        esac
    done
}
