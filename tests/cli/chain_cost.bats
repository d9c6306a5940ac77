# What attention is said to take, and what is chosen by it: the cost model of strategy chain (lib/lower/chain/cost.c).
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    specs=$KAIO_SRCDIR/specs/attention
}

# estimate SPEC NAME=VALUE...: in microseconds, of sm_90a
estimate() {
    local spec=$1 said
    shift
    said=$(kaio-emit -t sm_90a --explain "${@/#/-D}" "$specs/$spec.yaml") || return 1
    [[ $said =~ 'estimate: about '([0-9.e+]+)' us' ]] || return 1
    printf '%.1f\n' "${BASH_REMATCH[1]}"
}

# near SPEC MEASURED NAME=VALUE...: is the estimate within 16 % of what was measured?
near() {
    local said
    said=$(estimate "$1" "${@:3}") || return 1
    awk -v said="$said" -v was="$2" 'BEGIN { exit !(said > was / 1.16 && said < was * 1.16) }' || {
        echo "$*: $said us"
        return 1
    }
}

@test "all attention has an estimate where sizes are known, and none where they are not" {
    sizes=(b=2 heads=4 hq=8 hk=2 m=512 n=1024 d=64 e=64)
    for spec in "$specs"/*.yaml; do
        name=$(basename "$spec" .yaml)
        case $name in
            delta) continue ;; # a sum of each row
            mla_latent | mla_wide) given=(b=2 heads=16 m=128 n=1024) ;;
            mla) given=(b=2 heads=16 m=128 n=1024 d=64 r=32 e=64) ;;
            paged_decode) given=(b=4 hq=8 hk=2 pages=128 most=32 d=64 e=64) ;;
            varlen_packed) given=(b=4 heads=4 tokens=2000 tokens_k=2000 d=64 e=64) ;;
            *)
                given=()
                for size in "${sizes[@]}"; do
                    ! grep -Eq "[[,] ?${size%=*}[],]" "$spec" || given+=("$size")
                done
                ;;
        esac
        estimate "$name" "${given[@]}" >said 2>err || { echo "$name ${given[*]}"; return 1; }
    done
    run -0 kaio-emit -t sm_90a --explain -D d=64 "$specs/forward.yaml"
    [[ $output == *"no estimate: -D could say b, heads, m, n and e" ]]
    run -0 kaio-emit -t sm_90a --explain --format=json -D b=2 -D heads=4 -D m=512 -D n=512 -D d=64 -D e=64 "$specs/forward.yaml"
    [[ $output =~ '"estimate_us": '[0-9] ]]
    # a step without a model is named
    run -0 kaio-emit -t sm_90a --explain -D b=2 -D heads=4 -D m=512 -D n=512 -D d=64 -D e=64 "$specs/backward.yaml"
    [[ $output == *"estimate: about "*" us, and what has no model: attention_backward_delta" ]]
}

# rises SPEC NAME SIZES...: more of NAME takes longer
rises() {
    local spec=$1 name=$2 before=0 n now
    shift 2
    for n in 512 1024 2048 4096 8192; do
        now=$(estimate "$spec" "$@" "$name=$n") || return 1
        awk -v a="$before" -v b="$now" 'BEGIN { exit !(b > a) }' || { echo "$spec $* $name=$n: $now after $before"; return 1; }
        before=$now
    done
}

@test "more rows, keys and heads take longer" {
    for spec in forward causal softcap sigmoid relu window fp8 backward_dq backward_dkv; do
        rises $spec m b=2 heads=16 n=8192 d=128 e=128
        rises $spec n b=2 heads=16 m=512 d=128 e=128
    done
    rises causal b heads=1 m=512 n=512 d=64 e=64
    rises decode n b=8 hq=32 hk=8 m=1 d=128 e=128
    rises decode b hq=32 hk=8 m=1 n=1024 d=128 e=128
}

@test "estimates are near what was measured" {
    near forward 177.1 b=32 heads=32 m=512 n=512 d=64 e=64
    near forward 1150 b=4 heads=32 m=4096 n=4096 d=64 e=64
    near forward 927 b=4 heads=16 m=4096 n=4096 d=128 e=128
    near forward 3463 b=1 heads=16 m=16384 n=16384 d=128 e=128
    near forward 769 b=4 heads=8 m=4096 n=4096 d=256 e=256
    near causal 227.8 b=16 heads=32 m=1024 n=1024 d=64 e=64
    near causal 480 b=4 heads=16 m=4096 n=4096 d=128 e=128
    near alibi 542 b=4 heads=16 m=4096 n=4096 d=128 e=128
    near bias 1102 b=4 heads=16 m=4096 n=4096 d=128 e=128
    near fp8 2816 b=1 heads=16 m=16384 n=16384 d=128 e=128
    near decode 15.4 b=1 hq=32 hk=8 m=1 n=8192 d=128 e=128
    near decode 177 b=64 hq=32 hk=8 m=1 n=2048 d=128 e=128
    near paged_decode 91.3 b=16 hq=32 hk=8 pages=4096 most=256 d=128 e=128
}

# tile SPEC NAME=VALUE...: the instruction and the tile
tile() {
    kaio-emit -t sm_90a --explain "${@/#/-D}" "$specs/$spec.yaml" |
        sed -nE 's/^ *launch [a-z_]+ +(mma.sync|wgmma) of [a-z0-9]+, tiles ([0-9]+ x [0-9]+).*/\1 \2/p'
}

@test "what was measured to be the fastest is chosen, and few rows of many keys leave wgmma" {
    spec=forward
    [ "$(tile b=4 heads=32 m=4096 n=4096 d=64 e=64)" = 'wgmma 192 x 128' ]
    [ "$(tile b=4 heads=16 m=4096 n=4096 d=128 e=128)" = 'wgmma 128 x 128' ]
    [ "$(tile b=4 heads=8 m=4096 n=4096 d=256 e=256)" = 'wgmma 128 x 80' ]
    [[ $(tile b=1 heads=4 m=128 n=16384 d=128 e=128) == 'mma.sync '* ]]
    [[ $(tile b=4 heads=32 m=128 n=16384 d=128 e=128) == 'wgmma '* ]]
    spec=causal
    [ "$(tile b=32 heads=32 m=512 n=512 d=64 e=64)" = 'wgmma 64 x 64' ]
    [ "$(tile b=4 heads=32 m=4096 n=4096 d=64 e=64)" = 'wgmma 192 x 96' ]
}
