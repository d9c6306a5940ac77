# kaio-verify: every verdict is a row, in each format.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    npy=$KAIO_SRCDIR/tests/data/npy
    saxpy=$KAIO_SRCDIR/specs/elementwise/saxpy.yaml
}

# kernel NAME EQUATION: a document of a spec
kernel() {
    printf -- '---\nkernel: %s\nparams: {x: "in f32[n]", y: "out f32[n]"}\ncompute: %s\ncases: {a: {n: 3}}\n' "$1" "$2"
}

# rows_are STATUS NAME TEXT: the command's only row in each format, which is an error, and its exit status
rows_are() {
    local status=$1 name=$2 text=$3 format
    shift 3
    for format in text tap json junit; do
        run "-$status" --separate-stderr "$@" --format=$format
        case $format in
        text) [[ ${lines[0]} == "ERROR    ${name:+$name  }$text"* ]] ;;
        tap) [[ ${lines[1]} == "not ok 1 - ${name:+$name }$text"* && ${lines[-1]} == 1..1 ]] ;;
        json) [[ ${lines[0]} == '{"status": "ERROR", '* && ${lines[0]} == *"\"message\": \"$text"* && ${#lines[@]} = 1 ]] ;;
        junit) [[ $output == *'tests="1" failures="0" errors="1"'*"<error type=\"ERROR\" message=\"$text"* ]] ;;
        esac || { printf '%s: %s\n' $format "$output"; return 1; }
        [[ $stderr == *"error: $text"* ]]
    done
}

@test "one bad kernel leaves the others of its file to be judged" {
    {
        kernel good 'y[i] = x[i] + 1'
        kernel unknown 'y[i] = z[i]'
        kernel good 'y[i] = x[i] + 2'
        kernel index 'y[i] = x[i, i]'
        echo '--- [1, 2]'
        kernel last 'y[i] = x[i] + 3'
    } >many.yaml
    run -2 --separate-stderr kaio-verify --run -d cpu --fill=exact --code=generic many.yaml
    [[ ${lines[0]} == "PASS     good/a exact "* ]]
    [ "${lines[1]}" = "ERROR    unknown  unknown name 'z'" ]
    [ "${lines[2]}" = "ERROR    good  there are two kernels called 'good'" ]
    [[ ${lines[3]} == "ERROR    index  "* ]]
    [ "${lines[4]}" = "ERROR    many.yaml  a kernel is a map that begins with 'kernel: NAME'" ]
    [[ ${lines[5]} == "PASS     last/a exact "* ]]
    [ "${lines[6]}" = "2 passed, 4 failed, 0 skipped" ]
    [[ $stderr == *"many.yaml:9:17: error: unknown name 'z'"* ]]
    # a kernel's neighbours are no matter of its own
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=exact --code=generic --kernel=last many.yaml
    run -2 --separate-stderr kaio-verify --run -d cpu --fill=exact --fail-fast many.yaml
    [[ $output != *last* ]]
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=exact --kernel=last -D n=7 many.yaml
    # what -D names may be the bad kernel's, unless all are good
    run -2 --separate-stderr kaio-verify --run -d cpu --fill=exact -D m=7 many.yaml
    [[ $output == *"PASS     last/a exact "* ]]
    kernel last 'y[i] = x[i] + 3' >one.yaml
    rows_are 2 one.yaml "no kernel has a dimension called 'm'" kaio-verify --run -d cpu -D m=7 one.yaml
}

@test "a kernel that one of its types has no code for is judged with the others" {
    cat >typed.yaml <<'YAML'
kernel: typed
types: {T: [f32, i32]}
params: {a: "in T[m, k]", b: "in T[k, n]", c: "out T[m, n]"}
compute: c[i, j] = sum[l](a[i, l] * b[l, j])
schedule: {strategy: matmul, mma: tf32x3}
cases:
  whole: {T: i32, m: 8, n: 8, k: 8}
  real: {T: f32, m: 8, n: 8, k: 8}
YAML
    run -2 --separate-stderr kaio-verify --run -d cpu --fill=exact --code=generic typed.yaml
    [[ ${lines[0]} == "ERROR    typed  "* && ${lines[2]} == "PASS     typed/real exact "* ]]
}

@test "what is no spec at all is a row" {
    rows_are 2 none.yaml "cannot open 'none.yaml'" kaio-verify --run -d cpu none.yaml
    : >empty.yaml
    rows_are 2 empty.yaml "the input is empty" kaio-verify --run -d cpu empty.yaml
    echo '{' >odd.yaml
    rows_are 2 odd.yaml "" kaio-verify --run -d cpu odd.yaml
    run -2 --separate-stderr kaio-verify --run -d cpu --fill=exact odd.yaml "$saxpy" n31
    [ "${lines[-1]}" = "2 passed, 1 failed, 0 skipped" ]
}

@test "files that could not be compared are a row" {
    rows_are 2 "" "'$npy/good-int64.npy' is int64[2, 4], but '$npy/good-float64.npy' is float64[2, 4]" \
        kaio-verify --golden "$npy/good-float64.npy" "$npy/good-int64.npy"
    rows_are 2 "" "cannot open 'none.npy'" kaio-verify --golden none.npy "$npy/good-int64.npy"
    rows_are 2 saxpy "cannot open 'none.npy'" kaio-verify "$saxpy" n=3 x=@normal y=@normal:none.npy alpha=1
    kernel odd 'y[i] = z[i]' >odd.yaml
    rows_are 2 odd.yaml "unknown name 'z'" kaio-verify odd.yaml n=3 x=@normal y=y.npy
    rows_are 2 odd "unknown name 'z'" kaio-verify --kernel=odd odd.yaml n=3 x=@normal y=y.npy
}
