# Equations that are computed by several launches: what is stored between them, and in which order.
bats_require_minimum_version 1.5.0

setup() {
    cd "$KAIO_SRCDIR/tests"
}

@test "stages give what the equations say, under every check" {
    for target in sm_70 sm_90; do
        run -0 kaio-verify --run -d cpu --check -t $target data/stages.yaml
    done
}

@test "an intermediate that many elements need is stored, and one stage explains it" {
    run -0 --separate-stderr kaio-emit --explain -v --kernel=batch_norm data/stages.yaml
    [[ $output == *"'mean' is stored, to be computed once"* ]]
    [[ $output == *"'var' is stored, to be computed once"* ]]
    kaio-emit --kernel=batch_norm data/stages.yaml | grep -q '^//@   \$mean: f32\[cols\]$'
}

# a sum of what is made of reductions is computed by as many threads as any other
@test "what the terms of a reduction are made of is stored, however far inside it reduces" {
    run -0 --separate-stderr kaio-emit --explain -v --kernel=mean_loss data/stages.yaml
    [[ $output == *"mean_loss_loss: strategy row"*"mean_loss_mean: strategy reduce"* && $output != *"is stored"* ]]
    run -0 --separate-stderr kaio-emit --explain -v --kernel=inner_sums data/stages.yaml
    [[ $output == *"'s' is stored, to be computed once"*"inner_sums: strategy reduce"* ]]
    # without names, too, and all at once
    run -0 --separate-stderr kaio-emit --explain -v --kernel=nested data/stages.yaml
    [[ $output == *"'sum' is stored, to be computed once"*"nested_sum: strategy row"*"nested: strategy reduce"* ]]
    [[ $output != *"strategy naive"* && $output != *"'max' is stored"* ]]
}

@test "a few terms are not stored for each pair of indices, unless one thread would be left with all of them" {
    run -0 --separate-stderr kaio-emit --explain -v --kernel=energy data/stages.yaml
    [[ $output == *"energy_part: strategy naive"*"'sum' is stored, to be computed once"*"energy_total: strategy reduce"* ]]
}

@test "an intermediate read at its own element stays inside" {
    printf '%s\n' 'kernel: k' 'params:' '  x: in f32[n, m]' '  y: out f32[n]' 'compute: |' \
        '  s[i] = sum[j](x[i, j] * j)' '  y[i] = s[i] + 1' >"$BATS_TEST_TMPDIR/k.yaml"
    kaio-emit "$BATS_TEST_TMPDIR/k.yaml" >"$BATS_TEST_TMPDIR/k.ptx"
    ! grep "^//@   .s:" "$BATS_TEST_TMPDIR/k.ptx"
}

@test "ranges that begin with 0 and end before their dimension are conditions, where rows and columns are taken whole" {
    run -0 --separate-stderr kaio-emit --explain -v --kernel=triangle data/stages.yaml
    [[ $output == *"triangle: ranges that end before their dimension are conditions"*"triangle: strategy row"* ]]
    run -0 --separate-stderr kaio-emit --explain -v -D rows=5000 -D cols=1000 --kernel=lengths data/stages.yaml
    [[ $output == *"lengths: ranges that end before their dimension are conditions"*"lengths: strategy row"* ]]
    # what a condition reads of a dimension says nothing of where the range ends
    run -0 --separate-stderr kaio-emit --explain -v --kernel=beyond data/stages.yaml
    [[ $output == *"beyond_s: strategy naive"*"beyond_p: ranges that end before their dimension are conditions"* ]]
    # a window is none of these, nor is a sum up to each element
    for e in 'sum[k in i..i + 3](x[r, k])' 'sum[k in 0..i + 1](x[r, k])'; do
        printf '%s\n' 'kernel: k' 'params:' '  x: in f32[n, m]' '  y: out f32[n, m - 3]' 'compute: |' "  y[r, i] = $e" >"$BATS_TEST_TMPDIR/k.yaml"
        run -0 --separate-stderr kaio-emit --explain -v "$BATS_TEST_TMPDIR/k.yaml"
        [[ $output == *"strategy naive"* && $output != *"are conditions"* ]]
    done
}
