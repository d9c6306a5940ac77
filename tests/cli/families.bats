# Random kernels of families (tests/families): convolutions, prefixes, norms, windows, losses, products of f32, activations.
#
#     KAIO_SEED=7 KAIO_COUNT=1000 KAIO_SRCDIR=$PWD KAIO_BUILDDIR=$PWD/build nice bats tests/cli/families.bats
#
# tries 1000 of each family of seed 7, with the tools in PATH. What fails is printed with the command that shows the kernel.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    generate=$KAIO_SRCDIR/tests/families/generate.py
    seed=${KAIO_SEED:-1}
    count=${KAIO_COUNT:-12}
    [ -z "${KAIO_QUICK-}" ] || count=4
}

# of_family NAME: some by code for each target; what is no pass, but a reference that is constant
of_family() {
    local i n target targets=(sm_80 sm_90a sm_70)
    for ((i = 0; i < count; i += n)); do
        n=$((count < 60 ? (count + 2) / 3 : 20))
        target=${targets[i / n % 3]}
        # sm_70 has no tensor cores for the parts of f32
        python3 "$generate" "$1" "$seed" $n $i | sed "$([ $target != sm_70 ] || echo '/^schedule: .*tf32x3/d')" >random.yaml
        kaio-verify --run -d cpu --check ${KAIO_QUICK:+--code=generic} -t $target "${@:2}" random.yaml >out 2>err || [ $? = 1 ]
        ! grep -A 8 '^FAIL\|^ERROR' out || { echo "python3 $generate $1 $seed $n $i >random.yaml # for $target"; return 1; }
        grep -q ' passed, 0 failed, ' out || { tail -n 5 out err; return 1; }
        [ "$(grep -c '^PASS' out)" -ge $n ]
    done
}

@test "random kernels of each family compute what their equations say" {
    families=$(python3 "$generate")
    [ "$(wc -w <<<"$families")" = 7 ]
    for family in $families; do of_family "$family"; done
    # the same kernels, however many are asked for
    python3 "$generate" norm "$seed" 2 3 >two.yaml
    python3 "$generate" norm "$seed" 5 | awk '/^---$/ { n++ } n > 3' | cmp - two.yaml
}

@test "and of special and extreme inputs, too" {
    for family in $(python3 "$generate"); do of_family "$family" --fill=edge,extreme --code=generic; done
}

@test "the script for a GPU tries them, and the simulator's checks find what is wrong" {
    [ -z "${KAIO_QUICK-}" ] || skip
    run -0 "$KAIO_SRCDIR/tests/families_gpu.sh" -d cpu -n 3 -j 1 -p random,special -o o norm
    [[ $output == *"random.norm.00000.sm_70 "*right*"special.norm.00000.sm_70 "*"all is well"* ]]
    run -2 "$KAIO_SRCDIR/tests/families_gpu.sh" -d cpu -p nothing
    run -77 "$KAIO_SRCDIR/tests/families_gpu.sh" -d nothing
}
