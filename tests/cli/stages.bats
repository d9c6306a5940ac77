# Equations that are computed by several launches: what is stored between them, and in which order.
bats_require_minimum_version 1.5.0

setup() {
    cd "$KAIO_SRCDIR/tests"
}

@test "stages give what the equations say, under every check" {
    for target in sm_70 sm_90; do
        [ -z "${KAIO_QUICK-}" ] || [ $target = sm_90 ] || continue
        run -0 kaio-verify --run -d cpu --check ${KAIO_QUICK:+--fill=normal} -t $target data/stages.yaml
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
    for e in 'naive sum[k in i..i + 3](x[r, k])' 'scan sum[k in 0..i + 1](x[r, k])'; do
        printf '%s\n' 'kernel: k' 'params:' '  x: in f32[n, m]' '  y: out f32[n, m - 3]' 'compute: |' "  y[r, i] = ${e#* }" >"$BATS_TEST_TMPDIR/k.yaml"
        run -0 --separate-stderr kaio-emit --explain -v "$BATS_TEST_TMPDIR/k.yaml"
        [[ $output == *"strategy ${e%% *}"* && $output != *"are conditions"* ]]
    done
}

@test "a sum under a condition is computed for all elements, where reads are in range or can be made so" {
    strategies() { # KERNEL TARGET [OPTION...]: what computes each stage
        kaio-emit --explain -v --kernel="$1" -t "$2" "${@:3}" data/stages.yaml 2>/dev/null | grep ': strategy'
    }
    for target in sm_80 sm_90a; do
        run -0 strategies grouped_heads $target
        [[ $output == "grouped_heads: strategy chain" ]]
        run -0 strategies grouped_heads $target -D hq=8 -D hk=2 -D m=512 -D n=512 -D d=64
        [[ $output != *naive* ]]
        run -0 strategies packed_heads $target
        [[ $output == "packed_heads: strategy matmul" ]]
        run -0 strategies guarded_products $target
        [[ $output != *naive* ]]
    done
    # what is read in any case is read as it is; of the rest it is asked whether it is there
    run -0 kaio-emit --explain -v --kernel=grouped_heads data/stages.yaml
    [[ $output == *"right, as it is: k[h / (hq / hk), j, c]"* ]]
    run -0 kaio-emit --explain -v --kernel=guarded_products data/stages.yaml
    [[ $output == *"pad(y[j / 2, l], 0"* ]]
    run -0 kaio-emit --explain -v --kernel=never data/stages.yaml
    [[ $output == *"pad(x[h * 3, c], 0"* && $output != *"as it is: x["* ]]
    # and with sizes fixed
    kaio-verify --run -d cpu --check -t sm_90a --kernel=grouped_heads -D hq=6 -D hk=2 -D m=9 -D n=21 -D d=16 data/stages.yaml
    sed '/^kernel: never/,/^---/!d; /^cases:/,$d' data/stages.yaml >"$BATS_TEST_TMPDIR/never.yaml"
    echo 'cases: {odd: {few: 4, heads: 5, m: 37, n: 12, least: 12}}' >>"$BATS_TEST_TMPDIR/never.yaml"
    kaio-verify --run -d cpu --check -t sm_90a -D few=4 -D m=37 -D heads=5 -D n=12 "$BATS_TEST_TMPDIR/never.yaml"
}

@test "what is left to naive is warned of, with the reason and what to write instead, from 2^16 terms on" {
    spec() { # PARAMS EQUATION [LINE]: writes k.yaml
        printf '%s\n' 'kernel: k' 'params:' "  x: in f32[n, m]" "  y: out f32[$1]" "${3:-compute: |}" ${3:+'compute: |'} "  $2" >k.yaml
    }
    cd "$BATS_TEST_TMPDIR"
    # a window is a few terms, and each of the ways that are named is taken
    spec 'n, m - 3' 'y[r, i] = sum[k in i..i + 3](x[r, k])'
    run -0 --separate-stderr kaio-emit k.yaml
    [[ $stderr == *"k.yaml:6:13: warning: each thread computes whole elements of 'y' by itself, which is slow: strategy row does not fit (line 6: "* ]]
    [[ $stderr == *"k.yaml:6:17: note: write sum[k < 3](...), and i + k where k is"*"'schedule: {strategy: naive}' says that this is meant"* ]]
    spec 'n, m - 3' 'y[r, i] = sum[k < 3](x[r, i + k])'
    run -0 --separate-stderr kaio-emit k.yaml
    [[ -z $stderr ]]
    spec 'n' 'y[i] = min[k in i + 1..m](x[i, k])'
    run -0 --separate-stderr kaio-emit k.yaml
    [[ $stderr == *"write its range as a condition: k >= i + 1 && k < m ? ... : inf"* ]]
    spec 'n' 'y[i] = min[k](k >= i + 1 && k < m ? x[i, k] : inf)'
    run -0 --separate-stderr kaio-emit k.yaml
    [[ -z $stderr ]]
    spec 'n' 'y[i] = i >= 4 ? sum[k](x[i - 4, k]) : 0'
    run -0 --separate-stderr kaio-emit k.yaml
    [[ $stderr == *"k.yaml:6:28: note: give 'i - 4' an index of its own, in an equation that this one reads"* ]]
    spec 'n' 's[i] = sum[k](x[i, k]); y[i] = i >= 4 ? s[i - 4] : 0'
    run -0 --separate-stderr kaio-emit k.yaml
    [[ -z $stderr ]]
    # nobody need be told who asked for it, or who has little to compute
    spec 'n, m - 3' 'y[r, i] = sum[k in i..i + 3](x[r, k])' 'schedule: {strategy: naive}'
    run -0 --separate-stderr kaio-emit k.yaml
    [[ -z $stderr ]]
    spec 'n' 'y[i] = max[k](x[i * k % n, k])'
    run -0 --separate-stderr kaio-emit -D n=64 -D m=1024 k.yaml
    [[ -z $stderr ]]
    run -0 --separate-stderr kaio-emit -D n=65 -D m=1024 k.yaml
    [[ $stderr == *"warning: each thread"* ]]
    # nor does a spec of the library say so, but for those whose sums go over a part of a dimension that depends on the row,
    # where there are no tensor cores for them: of 512 columns, and for the number of a token's sequence
    cd "$KAIO_SRCDIR"
    others=$(printf '%s\n' specs/*/*.yaml | grep -v '/mla_latent.yaml\|/varlen_packed.yaml')
    # shellcheck disable=SC2046 # names without blanks
    tensorless=$(grep -v '^specs/attention/' <<<"$others"; grep -L '\[[ij] in ' $(grep '^specs/attention/' <<<"$others"))
    [ "$(wc -l <<<"$tensorless")" -ge 150 ]
    # shellcheck disable=SC2086
    kaio-emit -t sm_70 $tensorless 2>&1 >/dev/null | { ! grep "each thread"; }
    [ -z "${KAIO_QUICK-}" ] || return 0
    # shellcheck disable=SC2086
    kaio-emit -t sm_90a $others 2>&1 >/dev/null | { ! grep "each thread"; }
}

@test "what a later stage needs is stored by an earlier one that computes it, so that rows are read once" {
    run -0 kaio-emit --explain -v -t sm_90a --kernel=weighted_by_rows data/stages.yaml
    [[ $(grep ': strategy' <<<"$output") == "weighted_by_rows_lse: strategy row
weighted_by_rows_o: strategy matmul" ]]
    # in either order, of scores that a stage before them stores, since the target has no tensor cores for them
    for last in 'lse[i] = top[i] + log(total[i])' 'o[i, c] = sum[j](p[i, j] * v[j, c]) / total[i]'; do
        first='o[i, c] = sum[j](p[i, j] * v[j, c]) / total[i]'
        [[ $last == o* ]] && first='lse[i] = top[i] + log(total[i])'
        printf '%s\n' 'kernel: k' 'params:' '  q: in f32[m, d]' '  k: in f32[n, d]' '  v: in f32[n, e]' '  o: out f32[m, e]' \
            '  lse: out f32[m]' 'compute: |' '  s[i, j] = j <= i ? sum[c](q[i, c] * k[j, c]) : -inf' '  top[i] = max[j](s[i, j])' \
            '  p[i, j] = exp(s[i, j] - top[i])' '  total[i] = sum[j](p[i, j])' "  $first" "  $last" \
            'cases: {odd: {m: 9, n: 37, d: 16, e: 8}}' >"$BATS_TEST_TMPDIR/k.yaml"
        run -0 kaio-emit --explain -v -t sm_70 "$BATS_TEST_TMPDIR/k.yaml"
        [[ $(grep -c ': strategy row' <<<"$output") == 1 && $(grep -c ': strategy' <<<"$output") == 3 ]]
        kaio-verify --run -d cpu --check -t sm_70 "$BATS_TEST_TMPDIR/k.yaml"
    done
}

@test "the temp with an intermediate's name holds that intermediate, and no strategy's own temp has it" {
    run -0 --separate-stderr kaio-emit --kernel=names steps/names.yaml
    [[ $output == *$'\n//@   $part: f32[n]\n'* && $output == *$'\n//@   $arrived: f32[n, n]\n'* ]]
    # 'part' is not stored here
    run -0 --separate-stderr kaio-emit --kernel=passing steps/names.yaml
    [[ $output == *$'\n//@ temps:\n//@   $part2: f32['* && $output != *$'\n//@   $part:'* ]]
    # the buffer of messages keeps its own, and nobody gets that of another in its place
    printf '%s\n' 'kernel: k' 'params:' '  x: in f32[n, m]' '  y: out f32[n, n]' 'compute: |' '  messages[i] = sum[j](x[i,j])' \
        '  messages2[i] = sum[j](x[i,j] * x[i,j])' '  y[i,j] = messages[i] * messages2[j] - messages[j] * messages2[i]' \
        'cases: {odd: {n: 9, m: 37}}' >"$BATS_TEST_TMPDIR/k.yaml"
    run -0 --separate-stderr kaio-emit "$BATS_TEST_TMPDIR/k.yaml"
    [[ $output == *$'\n//@   $messages3: f32[n]\n//@   $messages2: f32[n]\n'* ]]
    kaio-verify --run -d cpu "$BATS_TEST_TMPDIR/k.yaml"
}
