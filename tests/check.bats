# The sanitizer: what is wrong is found, what is right is not.

bats_require_minimum_version 1.5.0

one=$KAIO_SRCDIR/tests/check_one.sh

all_of() {
    find "$KAIO_SRCDIR/tests/$1" -name '*.yaml' | sort |
        xargs -P "$(nproc)" -n 1 "$one" "$1"
}

@test "each of the broken kernels gives the finding it should" {
    [ "$(find "$KAIO_SRCDIR/tests/broken" -name '*.yaml' | wc -l)" -ge 60 ]
    run all_of broken
    echo "$output"
    [ "$status" = 0 ]
}

@test "the correct kernels of each pattern give none" {
    run all_of clean
    echo "$output"
    [ "$status" = 0 ]
}

@test "the library of specs gives none" {
    run -0 kaio-verify --run -d cpu --check "$KAIO_SRCDIR"/specs/*/*.yaml "$KAIO_SRCDIR"/tests/data/bodies/*.yaml
    [[ $output != *warning:* ]]
    [[ ${lines[-1]} == *" passed, 0 failed, "* ]]
}
