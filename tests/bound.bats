# The bound of kaio-verify is tight: honest f32 kernels use at least a hundredth of it. It is sound: they use no more than
# all of it. And it has teeth: kernels that are wrong in the usual ways are refused.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return
    bound=$KAIO_SRCDIR/tests/bound
    sizes="31 129 1000"
    [ -z "${KAIO_QUICK-}" ] || sizes=31
}

# usage FILE KERNEL FILL COLS: status and the largest part of the bound that is used
usage() {
    kaio-verify --run -d cpu --code=generic --fill="$3" --format=json --kernel="$2" "$bound/$1" rows="${5:-40}" cols="$4" 2>/dev/null |
        sed -E 's/.*"status": "([A-Z]+)".*"max_bound": ([^,}]+).*/\1 \2/'
}

kernels() {
    sed -n 's/^kernel: //p' "$bound/$1"
}

@test "honest kernels use between a hundredth and all of the bound" {
    for kernel in $(kernels honest.yaml); do
        for fill in normal uniform extreme; do
            for cols in $sizes; do
                read -r status part <<<"$(usage honest.yaml "$kernel" $fill $cols 100)"
                echo "$kernel $fill $cols: $status, $part of the bound"
                [ "$status" = PASS ]
                awk -v part="$part" 'BEGIN { exit !(part >= 0.01 && part <= 1) }'
            done
        done
    done
}

# part OUTPUT...: the largest part of their bounds that the rows on stdin use
part() {
    sed -n -E "s/.*\"output\": \"($1)\".*\"max_bound\": ([^,}]+).*/\\2/p" | sort -g | tail -1
}

@test "what the library's row operations compile to uses between a hundredth and all of the bound" {
    for op in softmax log_softmax logsumexp layer_norm rms_norm l2_normalize; do
        for fill in normal uniform extreme; do
            for cols in 31 1000; do
                run -0 --separate-stderr kaio-verify --run -d cpu --code=generic -D T=f32 --fill=$fill --format=json \
                    "$KAIO_SRCDIR/specs/norm/$op.yaml" rows=40 cols=$cols
                part=$(part '[a-z]*' <<<"$output")
                echo "$op $fill $cols: $part of the bound"
                awk -v part="$part" 'BEGIN { exit !(part >= 0.01 && part <= 1) }'
            done
        done
    done
}

# Of terms of both signs what is lost cancels, too, on which a bound for the worst grouping can't count: sums are shown with
# terms of one sign. One number is soon right by chance, hence several seeds.
@test "what the library's reductions compile to uses between a hundredth and all of the bound" {
    while read -r op out fill values; do
        for seed in 1 2 3 4 5 6 7 8; do
            # shellcheck disable=SC2086 # words
            kaio-verify --run -d cpu --code=generic -D T=f32 --seed=$seed --fill="$fill" --format=json \
                "$KAIO_SRCDIR/specs/reduce/$op.yaml" $values
        done >rows.json
        part=$(part "$out" <rows.json)
        echo "$op $values: $part of the bound"
        awk -v part="$part" 'BEGIN { exit !(part >= 0.01 && part <= 1) }'
    done <<'END'
sum_all s uniform n=31
sum_all s uniform n=10000
mean mean uniform n=1000
dot s uniform n=1000
norm2 length uniform n=1000
variance mean uniform n=1000
variance var normal n=1000
row_sum s uniform rows=20 cols=1000
col_sum s uniform rows=1000 cols=40
col_mean mean uniform rows=1000 cols=40
END
}

# Which shapes are drawn is chance, and of few elements all may be exact: of each result the row that uses the most.
@test "every f32 result of the library's rows, losses and reductions uses between a hundredth and all of the bound" {
    kaio-verify --run -d cpu --code=generic --format=json --shapes=4:77 --fill=uniform,extreme \
        "$KAIO_SRCDIR"/specs/{norm,loss,quant,reduce}/*.yaml >rows.json
    run ! grep -v '"status": "\(PASS\|SKIP\)"' rows.json
    # a maximum has one value alone
    sed -n -E 's/.*"kernel": "([^"]*)".*"output": "([^"]*)", "type": "f32".*"compared": ([0-9]+),.*"exact": ([0-9]+),.*"max_bound": ([^,}]+).*/\1.\2 \3 \4 \5/p' rows.json |
        awk '$2 != $3 && $4 > most[$1] { most[$1] = $4 }
             $2 != $3 { most[$1] += 0 }
             END { for (r in most) { print r, most[r]; results++; bad += most[r] < 0.01 || most[r] > 1 }
                   exit bad || results < 30 }'
}

@test "honest kernels that do not say how deep their sums are pass, too" {
    sed '/^depth:/d' "$bound/honest.yaml" >any.yaml
    for fill in normal uniform edge extreme; do
        run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=$fill any.yaml rows=20 cols=300
    done
}

@test "wrong kernels are refused" {
    for cols in $sizes 4096; do
        for kernel in $(kernels wrong.yaml); do
            fill=$(grep -B1 "^kernel: $kernel\$" "$bound/wrong.yaml" | sed -n 's/^# fill: \([a-z]*\):.*/\1/p')
            read -r status part <<<"$(usage wrong.yaml "$kernel" "$fill" $cols)"
            echo "$kernel $fill $cols: $status, $part of the bound"
            [ "$status" = FAIL ]
        done
    done
}

@test "in any order the bound of a thousand terms still refuses what loses a term" {
    sed '/^depth:/d' "$bound/wrong.yaml" >any.yaml
    for kernel in $(kernels wrong.yaml | grep -E 'without|_off|twice|padded|other_row|f16' | grep -v tree_in_f16); do
        fill=$(grep -B1 "^kernel: $kernel\$" "$bound/wrong.yaml" | sed -n 's/^# fill: \([a-z]*\):.*/\1/p')
        for cols in $sizes; do
            echo "$kernel $fill $cols"
            run -1 --separate-stderr kaio-verify --run -d cpu --code=generic --fill="$fill" --kernel="$kernel" any.yaml rows=40 cols=$cols
        done
    done
}

@test "what is missing from many thousand terms shows where they add up exactly" {
    sed '/^depth:/d' "$bound/wrong.yaml" >any.yaml
    sed '/^depth:/d' "$bound/honest.yaml" >honest.yaml
    for kernel in softmax softmax_online log_sum_exp; do
        run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=extreme --kernel=$kernel honest.yaml rows=20 cols=9001
    done
    for kernel in softmax_without_last softmax_without_first softmax_padded; do
        echo "$kernel"
        [ "$kernel" = softmax_padded ] ||
            run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=normal --kernel=$kernel any.yaml rows=20 cols=9001
        run -1 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=extreme --kernel=$kernel any.yaml rows=20 cols=9001
    done
}

# product NAME EDIT: the straight product of matrices, edited, as a kernel of its own
product() {
    sed '/^---$/Q' "$bound/matmul.yaml" | sed "/^kernel:/s/straight/$1/; 1,/^reference:/{
$2
}" >product.yaml
    ! cmp -s product.yaml <(sed '/^---$/Q' "$bound/matmul.yaml" | sed "/^kernel:/s/straight/$1/")
}

@test "honest products of matrices use between a hundredth and all of the bound" {
    for sizes in "m=7 n=65 k=31" "m=20 n=70 k=1000"; do
        for fill in uniform extreme; do
            # shellcheck disable=SC2086 # words
            run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=$fill --format=json "$bound/matmul.yaml" $sizes
            for kernel in $(kernels matmul.yaml); do
                part=$(grep "\"kernel\": \"$kernel\"" <<<"$output" | part c)
                echo "$kernel $fill $sizes: $part of the bound"
                awk -v part="$part" 'BEGIN { exit !(part >= 0.01 && part <= 1) }'
            done
        done
    done
}

# contraction TYPE A B: as equations, of operands with these indices
contraction() {
    printf 'kernel: p\nparams:\n  a: in %s[%s]\n  b: in %s[%s]\n  c: out f32[m, n]\n' "$1" "$2" "$1" "$3"
    printf 'compute: |\n  c[m, n] = sum[k](a[%s] * b[%s])\n' "$2" "$3" | sed '2s/\<m\>/i/g; 2s/\<n\>/j/g; 2s/\<k\>/l/g'
}

@test "what contractions compile to uses between a hundredth and all of the bound" {
    while IFS='|' read -r type a b; do
        contraction "$type" "$a" "$b" >product.yaml
        for target in sm_70 sm_80; do
            for seed in 1 2 3; do
                run -0 --separate-stderr kaio-verify --run -d cpu --code=generic -t $target --seed=$seed --fill=uniform --format=json product.yaml \
                    m=33 n=40 k=150
                part=$(part c <<<"$output")
                echo "$type $a $b $target: $part of the bound"
                awk -v part="$part" 'BEGIN { exit !(part >= 0.01 && part <= 1) }'
            done
        done
    done <<'END'
f32|m, k|k, n
f32|k, m|n, k
f16|m, k|k, n
f16|k, m|k, n
bf16|m, k|n, k
END
}

@test "sizes that the launch brings are allowed no more than sizes that are fixed" {
    contraction f16 'm, k' 'k, n' >product.yaml
    verify=(kaio-verify --run -d cpu --code=generic --fill=uniform --format=json product.yaml)
    for fixed in '' '-D m=33 -D n=40 -D k=160'; do
        # shellcheck disable=SC2086 # words
        run -0 --separate-stderr "${verify[@]}" $fixed m=33 n=40 k=160
        parts+=("$(part c <<<"$output")")
    done
    echo "parts of the bound: ${parts[*]}"
    awk -v open="${parts[0]}" -v fixed="${parts[1]}" 'BEGIN { exit !(open > 0.8 * fixed && fixed > 0) }'
}

@test "wrong products of matrices are refused" {
    while IFS='|' read -r name edit most; do
        product "$name" "$edit"
        for sizes in "m=5 n=33 k=16" "m=9 n=65 k=150" "m=20 n=40 k=1001"; do
            [ "${sizes#*k=}" -le "${most:-1001}" ] || continue # beyond, errors of both signs hide among a thousand roundings
            for fill in normal uniform; do
                echo "$name $fill $sizes"
                # shellcheck disable=SC2086 # words
                run -1 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=$fill product.yaml $sizes
            done
        done
    done <<'END'
adds_in_f16|s/total = fma(\(.*\), total)/total = f32(f16(fma(\1, total)))/
rounds_products|s/fma(\(.*\), \(f32(b.*)\), total)/total + f32(f16(\1 * \2))/|150
factors_in_bf16|s/f32(a\[i, l\])/f32(bf16(a[i, l]))/|150
without_last|s/l < k;/l < k - 1;/
without_first|s/l = 0;/l = 1;/
without_one|s/total = fma/if (l != k \/ 2) total = fma/
last_twice|s/= total;/= fma(f32(a[i, k - 1]), f32(b[k - 1, j]), total);/
whole_tiles|s/l < k;/l < (k - 1) \/ 16 * 16;/
one_off|s/a\[i, l\]/a[i, l + 1 < k ? l + 1 : l]/
other_column|s/b\[l, j\]/b[l, j + 1 < n ? j + 1 : j]/
other_row|s/a\[i, l\]/a[i + 1 < m ? i + 1 : i, l]/
not_zeroed|s/total = 0.0f/total = 0.1f/
END
}
