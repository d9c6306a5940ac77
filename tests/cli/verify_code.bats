# kaio-verify: code for all sizes, and code with the sizes fixed in it.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    saxpy=$KAIO_SRCDIR/specs/elementwise/saxpy.yaml
}

@test "both codes are run, and rows of the fixed one are named so" {
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=exact "$saxpy" n31 n33
    [ "${lines[0]}" = "PASS     saxpy/n31 exact  y f32[31]: 31 compared, all equal" ]
    [ "${lines[2]}" = "PASS     saxpy/n31 fixed exact  y f32[31]: 31 compared, all equal" ]
    [ "${lines[3]}" = "PASS     saxpy/n33 fixed exact  y f32[33]: 33 compared, all equal" ]
    [ "${lines[4]}" = "4 passed, 0 failed, 0 skipped" ]
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=exact --code=generic "$saxpy" n31
    [ "${lines[1]}" = "1 passed, 0 failed, 0 skipped" ]
    [[ ${lines[0]} != *fixed* ]]
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=exact --code=fixed "$saxpy" n31 n=7 alpha=2
    [ "${lines[2]}" = "2 passed, 0 failed, 0 skipped" ]
    [[ ${lines[0]} == "PASS     saxpy/n31 fixed "* && ${lines[1]} == "PASS     saxpy/n=7 alpha=2 fixed "* ]]
    run -0 --separate-stderr kaio-verify --run -d cpu --shapes=3 --fill=exact "$saxpy"
    [ "$(grep -c '^PASS .* fixed exact ' <<<"$output")" = 2 ]
    [ "${lines[-1]}" = "4 passed, 0 failed, 2 skipped" ]
}

@test "what goes wrong in the fixed code alone fails the case, with the command that repeats it" {
    # at n = 5 the depth is negative, which --depth makes up for where n is not known before the launch
    cat >deep.yaml <<'YAML'
kernel: deep
params:
  x: in f32[n]
  y: out f32[1]
block: 64
grid: 1
depth: 10 / (n - 1) - 3
body: |
  u32 i = threadIdx.x;
  f32 t = block_sum(i < n ? x[i] : 0.0f);
  if (i == 0) y[0] = t;
reference: |
  y[i < 1] = sum[j](x[j])
cases:
  five: {n: 5}
YAML
    for format in text tap json junit; do
        run -2 --separate-stderr kaio-verify --run -d cpu --fill=normal --depth=6 --format=$format deep.yaml
        case $format in
        text)
            [[ ${lines[0]} == "PASS     deep/five normal"* && ${lines[1]} == "ERROR    deep/five fixed  "* ]]
            command=${lines[2]#*repeat: }
            ;;
        tap) [[ ${lines[1]} == "ok 1 - deep/five normal"* && ${lines[2]} == "not ok 2 - deep/five fixed "* ]] ;;
        json) [[ ${lines[0]} == *'"code": "generic"'* && ${lines[1]} == *'"status": "ERROR"'*'"code": "fixed"'* ]] ;;
        junit) [[ $output == *'name="deep/five normal y"'* && $output == *'name="deep/five fixed -"'*'<error type="ERROR"'* ]] ;;
        esac
    done
    [[ $command == *" --code=fixed "* ]]
    run -2 --separate-stderr bash -c "$command"
    [[ ${lines[0]} == "ERROR    deep/five fixed  "* ]]
}

@test "a dimension that makes an extent 0 is no constant, and one that is 0 neither" {
    cat >pool.yaml <<'YAML'
kernel: pool
params:
  x: in f32[images, rows]
  y: out f32[images, rows / 2]
  z: out f32[images]
compute: |
  y[n, r] = x[n, 2 * r] + x[n, 2 * r + 1]
  z[n] = x[n, 0]
cases:
  pair: {images: 3, rows: 2}
  one: {images: 3, rows: 1}
  none: {images: 0, rows: 1}
YAML
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=exact --code=fixed pool.yaml
    [ "${lines[0]}" = "PASS     pool/pair fixed exact  y f32[3, 1]: 3 compared, all equal" ]
    [ "${lines[2]}" = "SKIP     pool/one fixed exact  nothing to compare: 'y' is empty" ]
    [ "${lines[3]}" = "PASS     pool/one fixed exact  z f32[3]: 3 compared, all equal" ]
    [ "${lines[4]}" = "SKIP     pool/none fixed  no dimension can be fixed at emission: each makes an extent 0" ]
}

@test "where there is one code, it is run and named by what it is" {
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=exact -D n=9 "$saxpy" alpha=2
    [ "${lines[1]}" = "1 passed, 0 failed, 0 skipped" ]
    [[ ${lines[0]} == "PASS     saxpy/alpha=2 fixed exact"* ]]
    kaio-emit "$saxpy" >any.ptx
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=exact --ptx=any.ptx --format=json "$saxpy" n31
    [ "${#lines[@]}" = 1 ]
    [[ ${lines[0]} == *'"code": "generic"'* && ${lines[0]} != *--code=* ]]
    printf 'kernel: k\nparams: {x: "in f32[4]", y: "out f32[4]"}\ncompute: y[i] = x[i] + 1\ncases: {a: {}}\n' >none.yaml
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=exact --code=fixed none.yaml
    [ "${lines[0]}" = "PASS     k/a exact  y f32[4]: 4 compared, all equal" ]
}

@test "--code: what is no such thing" {
    run -2 kaio-verify --run -d cpu --code=any "$saxpy" n31
    [[ ${lines[0]} == *"--code: 'any' is not one of both, generic or fixed" ]]
    run -2 kaio-verify --code=fixed "$saxpy" n=3
    kaio-emit "$saxpy" >any.ptx
    run -2 kaio-verify --run -d cpu --code=fixed --ptx=any.ptx "$saxpy" n31
    [[ ${lines[0]} == *"--code says what is emitted, and --ptx gives it" ]]
}
