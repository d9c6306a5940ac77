# Attention by equations: the specs of the library beside numpy (tests/attention).
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
}

@test "the specs of attention compute what numpy does, and one that does not is noticed" {
    run -0 python3 "$KAIO_SRCDIR/tests/attention/specs.py" "$KAIO_SRCDIR/specs/attention"
    [ "$(grep -c '^ok' <<<"$output")" -ge 31 ]
    mkdir wrong
    sed 's/+ 1 - window/- window/' "$KAIO_SRCDIR/specs/attention/window.yaml" >wrong/window.yaml
    sed 's/top\[z,h,i\] + log/log/' "$KAIO_SRCDIR/specs/attention/forward.yaml" >wrong/forward.yaml
    run -1 python3 "$KAIO_SRCDIR/tests/attention/specs.py" wrong
    [[ $output == *"not ok 1 - forward"$'\n'"# lse differs"*"not ok 2 - window"$'\n'"# o differs"* ]]
}
