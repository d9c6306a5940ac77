# kaio-verify --run --steps: what a kernel stores on its way is judged by the kernel's own values that it was made from.
bats_require_minimum_version 1.5.0

sizes="t=16 heads=2 d=16"
inputs="x=@normal:1 gain=@normal:2 shift=@normal:3 wqkv=@normal:4 bqkv=@normal:5 wo=@normal:6 bo=@normal:7 w1=@normal:8 b1=@normal:9 w2=@normal:10 b2=@normal:11"

setup() {
    cd "$BATS_TEST_TMPDIR"
    layer=$KAIO_SRCDIR/tests/steps/gpt2.yaml
    names=$KAIO_SRCDIR/tests/steps/names.yaml
}

# steps STATUS: of $output's rows, the values that have it, in one line
steps() {
    local row words=
    while read -r row; do
        [[ $row == "$1 "* ]] && row=${row#*  } && row=${row#* normal  } && words+="${row%% *} "
    done <<<"$output"
    echo "${words% }"
}

# wrong EQUATION: the layer's PTX, with this one a hundredth off
wrong() {
    sed "s/^\(  $1\[.*\] = \)\(.*\)/\1(\2) * 1.01/" "$layer" >wrong.yaml
    ! cmp -s wrong.yaml "$layer"
    kaio-emit wrong.yaml -o wrong.ptx
}

@test "the bound of a whole layer says nothing, of the right one and of one that is wrong" {
    wrong head
    kaio-emit "$layer" -o right.ptx
    local ptx
    for ptx in right wrong; do
        # shellcheck disable=SC2086 # words
        kaio-run -d cpu $ptx.ptx $sizes $inputs y=$ptx.npy
        # shellcheck disable=SC2086
        run -1 kaio-verify "$layer" $sizes $inputs y=$ptx.npy
        [[ ${lines[0]} == "MISTRUST"*"y f32[16, 32]: "* ]]
        [ "${lines[1]}" = "    --run --steps judges what a kernel stores on its way, step by step" ]
    done
    run -1 kaio-verify --golden --rtol=1e-3 right.npy wrong.npy
}

@test "step by step the right layer passes, without being asked where the bound says nothing" {
    # shellcheck disable=SC2086 # words
    run -0 --separate-stderr kaio-verify --run -d cpu --code=generic "$layer" $sizes
    [ "$(steps PASS)" = "mean1 var1 qkv head mixed mean2 var2 wide y" ]
    [[ ${lines[0]} == *" of its bound at "* && ${lines[0]} != *own* ]]
    [[ ${lines[3]} == *"; from the kernel's own qkv" ]]
    # at this size the chain's bound still says something
    run -0 --separate-stderr kaio-verify --run -d cpu --code=generic "$layer" small
    [ "$(steps PASS)" = y ]
    run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --steps "$layer" small
    [ "$(steps PASS)" = "mean1 var1 qkv head mixed mean2 var2 wide y" ]
    run -0 --separate-stderr kaio-verify --run -d cpu --steps --sample=7 --threads=2 "$layer" small
    [[ $output == *"qkv f32[3, 2, 5, 4]: 7 compared (a sample of 120)"* ]]
}

@test "an equation that is a hundredth off fails by its name" {
    local pair
    # what is not stored shows in what is made from it
    for pair in mean1:mean1 n1:qkv score:head head:head mixed:mixed gelu:y y:y; do
        wrong "${pair%:*}"
        # shellcheck disable=SC2086 # words
        run -1 kaio-verify --run -d cpu --ptx=wrong.ptx "$layer" $sizes
        [[ "$(steps FAIL) " == "${pair#*:} "* ]]
        [[ $output == *"    repeat: "*" --ptx=wrong.ptx "* ]]
    done
    wrong qkv
    run -1 kaio-verify --run -d cpu --steps --ptx=wrong.ptx "$layer" small
    [ "$(steps FAIL)" = qkv ]
    [[ $output == *"    repeat: "*" --steps --ptx=wrong.ptx "* ]]
}

@test "steps are rows in every format" {
    local format
    wrong head
    for format in tap json junit; do
        run -1 --separate-stderr kaio-verify --run -d cpu --steps --ptx=wrong.ptx --format=$format "$layer" small
        case $format in
        tap) [[ ${lines[4]} == "not ok 4 - gpt2_layer/small normal head f32[5, 2, 4]: "* && ${lines[-1]} == 1..9 ]] ;;
        json) [[ ${lines[3]} == '{"status": "FAIL", '*'"output": "head", '*'"from": ["qkv"], '* ]] ;;
        junit) [[ $output == *'tests="9" failures="1" '*'name="gpt2_layer/small normal head"'* ]] ;;
        esac || { printf '%s: %s\n' $format "$output"; return 1; }
    done
}

@test "intermediates of all types and extents, whatever their names" {
    run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --steps --fill=normal "$names"
    [ "$(steps PASS)" = "sum2 part y arrived z y a b y row best y m s y t y q y y" ]
    [ -z "$(steps MISTRUST)" ]
    [[ $stderr == *"--steps: 'passing' is judged as one step: "* && $stderr == *"--steps: 'apart' is judged as one step: "* ]]
    run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --steps --shapes=12 "$names"
}

@test "--steps needs --run" {
    run -2 --separate-stderr kaio-verify --steps "$layer" y=y.npy
    [[ $stderr == *" need --run"* ]]
}
