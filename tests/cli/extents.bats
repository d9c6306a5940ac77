# Extents that are expressions: whatever a strategy makes of them for the launch keeps their meaning.
bats_require_minimum_version 1.5.0

load equations

@test "every strategy multiplies, divides and compares extents that are expressions" {
    for target in sm_70 sm_80 sm_90a; do
        run -0 kaio-verify --run -d cpu --check -t $target data/extents.yaml
        [[ $output == *"passed, 0 failed, 0 skipped" ]]
    done
}

@test "and does so where -D fixes what they are made of, all of it or a part" {
    kernel=
    while read -r line; do
        [[ $line != kernel:* ]] || kernel=${line#kernel: }
        [[ $line == a:* ]] || continue
        mapfile -t sizes < <(grep -o '[a-z]: [0-9][0-9]*' <<<"$line" | tr -d ' ' | tr : =)
        run -0 kaio-verify --run -d cpu --kernel="$kernel" "${sizes[@]/#/-D}" data/extents.yaml
        [[ $output == *"passed, 0 failed, 0 skipped" ]]
        for size in "${sizes[@]}"; do
            run -0 kaio-verify --run -d cpu --kernel="$kernel" "-D$size" data/extents.yaml
            [[ $output == *"passed, 0 failed, 0 skipped" ]]
        done
    done < <(grep "^kernel:\|^ *a:" data/extents.yaml)
}

@test "a product of two extents with -D has as many blocks as it needs" {
    kernel 'x: in f32[batch, channels, h - k + 1, w - k + 1]; y: out f32[batch, h - k + 1, w - k + 1]' \
        'y[n, r, c] = max[o](x[n, o, r, c])' >k.yaml
    run -0 kaio-verify --run -d cpu k.yaml -D batch=2 -D channels=5 -D h=11 -D w=13 -D k=3
    [[ $output == *"198 compared, all equal"*"passed, 0 failed, 0 skipped" ]]
}
