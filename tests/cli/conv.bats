# Convolutions: sums over several ranges, of operands whose subscripts are sums of indices, are products.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    data=$KAIO_SRCDIR/tests/data/conv.yaml
}

@test "convolutions give what their equations say, under every check" {
    for target in sm_70 sm_80 sm_90a; do
        run -0 kaio-verify --run -d cpu --check -t $target "$data"
    done
}

@test "no convolution is left to naive, with open sizes or fixed ones" {
    for target in sm_80 sm_90a; do
        run -0 --separate-stderr kaio-emit -t $target --explain -v "$data"
        [[ $output != *"strategy naive"* ]]
        [[ $stderr != *slow* ]]
        [ "$(grep -c 'strategy matmul' <<<"$output")" -eq "$(grep -c '^kernel' "$data")" ]
    done
}

@test "pixels of all images are the rows, and a window's terms are one range" {
    run -0 kaio-emit --explain -v --kernel=nhwc "$data"
    [[ $output == *"rows b.i.j < n * (h * w), columns o < f, terms u.v.d < r * (s * c)"* ]]
    run -0 kaio-emit --explain -v --kernel=nchw "$data"
    [[ $output == *"columns i.j < "*", terms d.u.v < c * (r * s); for each b < n"* ]]
    run -0 kaio-emit --explain -v --kernel=to_k "$data"
    [[ $output == *"rows o < f, columns u.v.d < "*", terms b.i.j < n * (h * w)"* ]]
}
