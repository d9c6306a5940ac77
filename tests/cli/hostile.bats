# Convolutions, prefixes and derived dimensions that make no sense, or are larger than anything: a message, or what they say.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    [ -n "${KAIO_QUICK-}" ] || ulimit -v 8000000 # less than the sanitizers take
}

# conv SUM [X [DIMS [HEIGHT]]]: the terms of a convolution, the shape of its images, what dims has, the height of the result
conv() {
    [ -z "${3-}" ] || printf 'dims:\n  %s\n' "$3"
    printf '%s\n' 'kernel: k' 'params:' "  x: in f16[${2:-n, h, w, c}]" '  k: in f16[f, 3, 3, c]' "  y: out f16[n, ${4:-h}, w, f]" \
        'compute: |' "  y[b,i,j,o] = sum[u,v,q]($1)"
}

# at ROW COLUMN [PADDING]: a convolution whose windows have these pixels
at() {
    conv "pad(x[b, $1, $2, q], ${3:-0}) * k[o,u,v,q]"
}

# prefix RANGE [REST]: a sum over it
prefix() {
    printf '%s\n' 'kernel: k' 'params:' '  x: in f32[r, n]' '  first: in i32[n]' '  y: out f32[r, n]' 'compute: |' \
        "  y[i,j] = sum[k in $1](x[i,k])" "${@:2}"
}

# refuses MESSAGE: of the spec in k.yaml, with its place
refuses() {
    run -2 kaio-emit k.yaml
    [[ $output == k.yaml:*": error: "*"$1"* ]] || { cat k.yaml; return 1; }
}

@test "windows with any stride, gap and border, however large, are what they say" {
    for pixel in 'i + u - 2147483648' 'i + u - 4611686018427387904' '9223372036854775807 - i - u' '-2 * i + u' 'i - 3 * u' '0 * i + u' \
        '4611686018427387904 * i + u' 'i + 4611686018427387904 * u' 'i + 0 * u' '(i + u) / 4611686018427387904'; do
        at "$pixel" 'j + v - 1' >k.yaml
        for target in sm_80 sm_90a; do
            kaio-verify --run -d cpu --check -t $target --fill=exact k.yaml n=1 h=4 w=5 c=8 f=8 >out || [ $? = 1 ]
            grep -q ' 0 failed, ' out || { cat k.yaml out; return 1; }
        done
        [ -z "${KAIO_QUICK-}" ] || break
    done
    for by in 1000003 -2 4611686018427387904; do
        conv "(i - u) % $by == 0 ? pad(x[b, (i - u) / $by, j, q], 0) * k[o,u,v,q] : 0" >k.yaml
        run -0 kaio-verify --run -d cpu --check --fill=exact k.yaml n=1 h=4 w=5 c=8 f=8
    done
    for border in inf nan 'f32(q)' 'k[o,u,v,q]'; do
        at 'i + u - 1' 'j + v - 1' "$border" >k.yaml
        run -0 kaio-verify --run -d cpu --check --code=fixed k.yaml n=1 h=4 w=5 c=8 f=8
    done
}

@test "windows of nothing, and divisions by 0, are errors" {
    at '(i + u) / 0' j >k.yaml && refuses 'division by zero'
    conv '(i - u) % 0 == 0 ? pad(x[b, i - u, j, q], 0) * k[o,u,v,q] : 0' >k.yaml && refuses 'division by zero'
    conv 'pad(pad(x[b,i,j,q], 0), 0) * k[o,u,v,q]' >k.yaml && refuses 'pad() takes an element'
    conv 'pad(x[b,i,q], 0) * k[o,u,v,q]' >k.yaml && refuses "'x' has 4 dimensions, not 3"
    for extent in 0 -3 4294967296 9223372036854775808; do
        conv 'x[b,i,j,q] * k[o,u,v,q]' "n, $extent, w, c" >k.yaml
        refuses "a dimension of $extent is out of range (1 to 4294967295)"
    done
    conv 'x[b,i,j,q] * k[o,u,v,q]' 'n, 18446744073709551616, w, c' >k.yaml && refuses 'the integer does not fit in 64 bits'
    conv 'x[b,i,j,q] * k[o,u,v,q]' >k.yaml
    run -2 kaio-emit -D n=4294967295 -D h=4294967295 -D w=9 -D f=9 k.yaml
    [[ $output == *"'y' has more than 2^63 elements"* ]]
    run -2 kaio-verify --run -d cpu k.yaml n=4294967295 h=4294967295 w=4294967295 c=1 f=1
    [[ $output == *"it does not fit in memory"* ]]
}

@test "dimensions that follow from themselves, from nothing, or from too much are errors" {
    while IFS='|' read -r dims message; do
        conv 'pad(x[b,i,j,q], 0) * k[o,u,v,q]' 'n, h, w, c' "$dims" oh >k.yaml
        refuses "$message"
    done <<'END_OF_LIST'
oh: oh + 1|'oh' is derived from itself: oh needs oh
oh: h / 0|division by zero
oh: h / 2.0|a dimension is an integer, not f32
oh: x|'x' is no integer that is known at launch
oh: x[0]|the elements of 'x' are not known at launch
oh:|nothing says what 'oh' is
END_OF_LIST
    # what the sizes decide is told at launch, and where they are known
    while IFS='|' read -r dims message; do
        conv 'pad(x[b,i,j,q], 0) * k[o,u,v,q]' 'n, h, w, c' "$dims" oh >k.yaml
        run -0 kaio-emit k.yaml
        run -2 kaio-verify --run -d cpu k.yaml n=1 h=5 w=6 c=8 f=8
        [[ $output == *"$message"* ]]
        run -2 kaio-emit -D h=5 k.yaml
    done <<'END_OF_LIST'
oh: 0 - h - 1|oh is not between 0 and 4294967295: 0 - h - 1 is -6, h is 5
oh: h * 4294967295 * 4294967295 * 4294967295|the value overflows
oh: 9223372036854775807 + h|the value overflows
oh: h / (h - h)|division by zero
END_OF_LIST
}

@test "prefixes that end before they begin are empty, and others leave their row with a message" {
    for range in 'j + 1..0' '10..3' 'j / 9223372036854775807 * 9223372036854775807..j + 1' 'j / -4 * -4..j + 1' 'j + 2..n'; do
        prefix "$range" >k.yaml
        kaio-verify --run -d cpu --check --fill=exact k.yaml r=3 n=20 >out 2>err || [ $? = 1 ]
        grep -q ' 0 failed, ' out || { cat k.yaml out; return 1; }
    done
    for range in '-5..j + 1' '0..j + 2' '0..j + 9223372036854775807' '-9223372036854775807..j + 1' 'first[j]..j + 1'; do
        prefix "$range" >k.yaml
        run -2 kaio-verify --run -d cpu --check k.yaml r=3 n=20 'first=@randint:-9:9:1'
        [[ $output == *"subscript 2 of 'x' is "*", outside 0..20"* ]]
    done
    prefix 'j / 0 * 0..j + 1' >k.yaml && refuses 'division by zero'
    prefix '0..k + 1' >k.yaml && refuses "unknown name 'k'"
    prefix '0..f32(j)' >k.yaml && refuses "a range's end is an integer"
    prefix '0..j + 1' | sed 's/(x\[/(y[/' >k.yaml && refuses 'the equations go round in a circle'
    for wrong in 'block: 33' 'vector: 3' 'threads: 0' 'split: 3' 'held: 17'; do
        prefix '0..j + 1' "schedule: {strategy: scan, $wrong}" >k.yaml
        refuses "'${wrong%:*}' is "
    done
}
