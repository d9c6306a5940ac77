# Attention by equations: the specs of the library beside numpy, and random kernels of the kind (tests/attention).
#
#     KAIO_SEED=7 KAIO_COUNT=5000 KAIO_SRCDIR=$PWD KAIO_BUILDDIR=$PWD/build nice bats -f random tests/cli/attention.bats
#
# tries 5000 random kernels of seed 7, with the tools in PATH. What fails is printed with the command that shows the kernel.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    generate=$KAIO_SRCDIR/tests/attention/generate.py
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

# of_random TARGET FIRST COUNT: tries these numbers of the seed; what is no pass, but a reference that is constant
of_random() {
    python3 "$generate" "$seed" "$3" "$2" >random.yaml
    kaio-verify --run -d cpu --check ${KAIO_QUICK:+--code=generic --fill=normal} -t "$1" random.yaml >out 2>err || [ $? = 1 ]
    ! grep -A 8 '^FAIL\|^ERROR' out || { echo "python3 $generate $seed $3 $2 >random.yaml"; return 1; }
    grep -q ' passed, 0 failed, ' out || { tail -n 5 out err; return 1; }
    [ "$(grep -c '^PASS' out)" -ge $((2 * $3)) ] || [ -n "${KAIO_QUICK-}" ]
}

@test "random kernels like attention compute what their equations say" {
    seed=${KAIO_SEED:-1}
    count=${KAIO_COUNT:-30}
    [ -z "${KAIO_QUICK-}" ] || count=12
    wrong=0
    for ((first = 0; first < count; first += 100)); do
        few=$((count - first < 100 ? count - first : 100))
        for target in sm_80 sm_90a; do
            of_random $target $first $few || wrong=1
        done
    done
    [ $wrong = 0 ]
    # the same kernels, however many are asked for
    python3 "$generate" "$seed" 2 3 >two.yaml
    python3 "$generate" "$seed" 5 | awk '/^---$/ { n++ } n > 3' | cmp - two.yaml
    python3 "$generate" "$((seed + 1))" 5 >other.yaml
    [ "$(grep -c '^kernel: ' other.yaml)" = 5 ]
}
