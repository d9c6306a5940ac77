# The operations of tests/operations, which tests/pytorch_operations.py compares with PyTorch.

bats_require_minimum_version 1.5.0

setup() {
    operations() {
        python3 "$KAIO_SRCDIR/tests/pytorch_operations.py" --bench "$(command -v kaio-bench)" --emitter "$(command -v kaio-emit)" "$@"
    }
    cd "$BATS_TEST_TMPDIR" || exit
}

@test "the comparison of operations passes its own test, and says what it does not know" {
    operations --self-test >tap
    ! grep '^not ok' tap || false
    [ "$(grep -c '^ok' tap)" -ge 6 ]
    run -0 operations --list --op=losses,4
    [ "${lines[0]}" = "4 matvec" ]
    [ "${#lines[@]}" = 7 ]
    run -2 operations --op=no_such
    [[ $output == *"unknown operation 'no_such'"* ]]
    run -2 operations --part=3/2
    [[ $output == *"'3/2' is no part"* ]]
}

@test "no operation is naive at the published sizes, fixed or open" {
    local some=()
    [ -z "${KAIO_QUICK-}" ] || some=("--op=transposed,attention")
    run -0 operations --strategies --open "${some[@]}"
    [ -n "${KAIO_QUICK-}" ] || [ "${#lines[@]}" = 200 ]
    [[ $output != *naive* ]]
}

@test "plans and their PTX are left for another machine, or why there are none" {
    run -0 operations --emit plans --op=huber,sum_middle --open
    for folder in 47-fixed 47-open 96-fixed 96-open; do
        [ -s "plans/$folder/$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["ptx"])' "plans/$folder/plan.json")" ]
    done
    run -0 operations --emit none --op=huber -t sm_1
    grep -q "\"error\": \".*sm_1" none/96-fixed/plan.json
}

@test "the operations compute what they say at small sizes" {
    [ -z "${KAIO_QUICK-}" ] || skip "golden.bats emits enough"
    for file in "$KAIO_SRCDIR"/tests/operations/*.yaml; do
        run -0 kaio-verify --run -d cpu -t sm_90a "$file"
        [[ ${lines[-1]} == *" passed, 0 failed, "* ]]
        # each kernel has a case that ran
        [ "$(grep -oE '^PASS +[a-z0-9_]+' <<<"$output" | sort -u | wc -l)" = "$(grep -c '^kernel:' "$file")" ]
    done
}
