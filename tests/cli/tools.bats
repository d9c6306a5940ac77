# What holds for all four programs alike.
bats_require_minimum_version 1.5.0

tools="kaio-emit kaio-run kaio-verify kaio-bench"

setup() {
    cd "$BATS_TEST_TMPDIR"
    ln -s "$KAIO_SRCDIR/specs" specs
}

@test "--help and --version: on stdout, status 0, whatever else is given" {
    for tool in $tools; do
        run -0 --separate-stderr $tool --help
        [[ ${lines[0]} == "Usage: $tool "* ]]
        [ -z "$stderr" ]
        run -0 --separate-stderr $tool --version
        [[ ${lines[0]} =~ ^"$tool (kaio) "[0-9.]+$ ]]
        [ -z "$stderr" ]
    done
}

@test "help fits a terminal of 100 columns" {
    for tool in $tools; do
        $tool --help | awk -v tool=$tool 'length > 100 { print tool ": " $0; bad = 1 } END { exit bad }'
    done
}

@test "an unknown option: one line, the hint, status 2, nothing on stdout" {
    for tool in $tools; do
        run -2 --separate-stderr $tool --no-such-option
        [ -z "$output" ]
        [ "$stderr" = "$tool: error: unknown option '--no-such-option'
Try '$tool --help' for more information." ]
    done
}

@test "a full disk or a closed descriptor under stdout: status 2" {
    for tool in $tools; do
        run -2 bash -c "$tool --help >/dev/full"
        [ "$output" = "$tool: error: cannot write to standard output: No space left on device" ]
        run -2 bash -c "$tool --help >&-"
    done
    run -2 bash -c 'kaio-emit specs/elementwise/saxpy.yaml >/dev/full'
    run -2 bash -c 'kaio-emit specs/elementwise/saxpy.yaml | kaio-run -d cpu n=10 x=@ones y=@ones >/dev/full'
    run -2 bash -c 'kaio-emit specs/elementwise/saxpy.yaml | kaio-run -d cpu n=10 x=@ones y=@ones:/dev/full'
    run -2 bash -c 'kaio-verify --run -d cpu specs/elementwise/saxpy.yaml >/dev/full'
}

@test "a reader that goes away ends the program quietly" {
    run -0 bash -c 'kaio-emit specs/elementwise/*.yaml | head -n 1 >/dev/null; exit $((PIPESTATUS[0] != 0 && PIPESTATUS[0] != 141))'
    [ -z "$output" ]
}

@test "an empty or missing input, a folder, bytes that are no text: status 2 and a message" {
    head -c 4096 /dev/urandom >noise
    for input in /dev/null nowhere . noise; do
        for tool in kaio-emit kaio-verify kaio-run; do
            run -2 --separate-stderr $tool $input
            # a verdict on each input has its row
            [ -z "$(grep -v '^ERROR' <<<"$output")" ]
            [ -z "$output" ] || [ $tool = kaio-verify ]
            [ -n "$stderr" ]
        done
    done
}

@test "messages name no source file of ours and hold no control characters" {
    printf 'kernel: "\\e[2J\\a"\n' >evil.yaml
    run -2 kaio-emit evil.yaml
    [[ $output != *$'\e'* && $output != *$'\a'* ]]
}

@test "nothing is written when the input is bad" {
    echo 'kernel: [' >bad.yaml
    run -2 kaio-emit -o out.ptx bad.yaml
    run -2 kaio-run -d cpu bad.yaml n=1 y=out.npy
    [ ! -e out.ptx ]
    [ ! -e out.npy ]
}
