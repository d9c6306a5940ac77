# The command line that all tools share (lib/base/cli.h), through a program that prints what it was asked.
bats_require_minimum_version 1.5.0

setup() {
    PATH=$KAIO_BUILDDIR/tests/unit:$PATH
    cd "$BATS_TEST_TMPDIR"
}

# script(1) runs a program on a pseudo-terminal
need_terminal() {
    script -qec true /dev/null >/dev/null 2>&1 || skip "no pseudo-terminals"
}

@test "options may stand anywhere, long forms may be shortened" {
    run -0 cli_probe a -o x b --output=y --out z c
    [ "$output" = "--output x
--output y
--output z
operand a
operand b
operand c" ]
}

@test "-- ends the options, and - is an operand" {
    run -0 cli_probe - -- -o --level=3
    [ "$output" = "operand -
operand -o
operand --level=3" ]
}

@test "an optional argument is given with =" {
    run -0 cli_probe --check --check=race -c -cmemory x
    [ "$output" = "--check (none)
--check race
--check (none)
--check memory
operand x" ]
}

@test "numbers are checked, and the message names the option" {
    run -0 cli_probe --level=0x9 --rate=1e-1 --mode=odd
    [ "$output" = "level 9
rate 0.1
mode 2" ]
    run -2 cli_probe --level 10
    [ "${lines[0]}" = "cli_probe: error: --level: '10' is not between 1 and 9" ]
    run -2 cli_probe --level 3x
    [ "${lines[0]}" = "cli_probe: error: --level: '3x' is not an integer" ]
    run -2 cli_probe --rate nan
    [ "${lines[0]}" = "cli_probe: error: --rate: 'nan' is not a number" ]
    run -2 cli_probe --rate 1.01
    [ "${lines[0]}" = "cli_probe: error: --rate: '1.01' is not between 0 and 1" ]
    run -2 cli_probe --mode=fats
    [ "${lines[0]}" = "cli_probe: error: --mode: 'fats' is not one of fast, slow or odd" ]
}

@test "usage errors are two lines on stderr and exit 2" {
    run -2 --separate-stderr cli_probe --outptu=x
    [ "$output" = "" ]
    [ "$stderr" = "cli_probe: error: unknown option '--outptu'; did you mean '--output'?
Try 'cli_probe --help' for more information." ]
    run -2 cli_probe --frobnicate
    [ "${lines[0]}" = "cli_probe: error: unknown option '--frobnicate'" ]
    run -2 cli_probe -x
    [ "${lines[0]}" = "cli_probe: error: unknown option '-x'" ]
    run -2 cli_probe --s
    [ "${lines[0]}" = "cli_probe: error: option '--s' is ambiguous" ]
    run -2 cli_probe --output
    [ "${lines[0]}" = "cli_probe: error: option '--output' needs an argument" ]
    run -2 cli_probe -o
    [ "${lines[0]}" = "cli_probe: error: option '-o' needs an argument" ]
    run -2 cli_probe --output= file
    [ "${lines[0]}" = "cli_probe: error: option '--output' names no file; name one, or leave the option out" ]
    run -2 cli_probe -o '' file
    [ "${lines[0]}" = "cli_probe: error: option '--output' names no file; name one, or leave the option out" ]
    run -2 cli_probe --stop=now
    [ "${lines[0]}" = "cli_probe: error: option '--stop' takes no argument" ]
}

@test "--help prints every option on stdout" {
    run -0 --separate-stderr cli_probe --help
    [ "$stderr" = "" ]
    [ "${lines[0]}" = "Usage: cli_probe [OPTION]... [FILE]..." ]
    [ "${lines[1]}" = "  or:  cli_probe --stop" ]
    [[ $output == *"
  -o, --output=FILE         write to FILE
  -c, --check[=LIST]        check what LIST says
                            (default: all)
      --level=N             an integer from 1 to 9
"* ]]
    [[ $output == *"
Examples:
  cli_probe -o x
"* ]]
    [[ $output == *"  -h, --help "* && $output == *"  -V, --version "* ]]
}

@test "--version begins with name, package and number" {
    run -0 cli_probe --version
    [[ ${lines[0]} =~ ^"cli_probe (kaio) "[0-9]+\.[0-9]+\.[0-9]+$ ]]
    [ "${lines[1]}" = "probe details" ]
}

@test "a full disk under stdout is an error" {
    run -2 --separate-stderr bash -c 'cli_probe a >/dev/full'
    [ "$stderr" = "cli_probe: error: cannot write to standard output: No space left on device" ]
    run -2 bash -c 'cli_probe --help >/dev/full'
    run -3 bash -c 'cli_probe --status=3 a >/dev/full'
}

@test "a closed stdout is an error as soon as something is printed" {
    run -2 --separate-stderr bash -c 'cli_probe a >&-'
    [ "$stderr" = "cli_probe: error: cannot write to standard output: Bad file descriptor" ]
    run -0 bash -c 'cli_probe >&-'
}

@test "a closed pipe ends quietly" {
    run -0 --separate-stderr bash -c 'cli_probe --help; exec 2>&1; (sleep 0.1; cli_probe --help) | true; echo ${PIPESTATUS[0]} >&2'
    [ "${output##*$'\n'}" = 141 ]
    [ "$stderr" = "" ]
    # where the caller ignores SIGPIPE it is an error, without a message about it
    run -2 --separate-stderr bash -c 'trap "" PIPE; set -o pipefail; (sleep 0.1; exec cli_probe --help) | true'
    [ "$stderr" = "" ]
}

@test "colour: only on a terminal, never with NO_COLOR, and as --color says" {
    need_terminal
    probe() { TERM=xterm script -qec "$1" /dev/null; }
    export -f probe
    esc=$'\033'
    [[ $(probe 'cli_probe -x') == *"$esc"* ]]
    [[ $(NO_COLOR=1 probe 'cli_probe -x') != *"$esc"* ]]
    [[ $(NO_COLOR='' probe 'cli_probe -x') == *"$esc"* ]]
    [[ $(probe 'TERM=dumb cli_probe -x') != *"$esc"* ]]
    [[ $(probe 'cli_probe --color=never -x') != *"$esc"* ]]
    [[ $(cli_probe -x 2>&1) != *"$esc"* ]]
    [[ $(NO_COLOR=1 cli_probe --color=always -x 2>&1) == *"$esc"* ]]
    run -2 cli_probe --color=red
}

@test "diagnostics go to stderr with position and caret, and exit 2" {
    run -2 --separate-stderr cli_probe --diag
    [ "$output" = "" ]
    [ "$stderr" = "cli_probe: warning: odd
x.yaml:1:1: error: wrong
    1 | abc
      | ^~~" ]
}

# starts $1 in the background, waits until it says so, sends it signal $2; its status is in $status
interrupt() {
    mkfifo "$BATS_TEST_TMPDIR/said"
    # the test itself may run where signals are ignored (nohup, a background job)
    bash -c "exec env --default-signal=INT,TERM,HUP,QUIT,PIPE,ALRM $1" >said 3>&- &
    local pid=$!
    exec 4<said
    read -r line <&4
    [ "$line" = waiting ]
    kill -s "$2" $pid
    status=0
    wait $pid || status=$?
    rest=$(cat <&4)
    exec 4<&-
    rm said
}

@test "a signal removes the unfinished output" {
    ulimit -c 0
    mkdir out
    for sig in INT TERM HUP QUIT PIPE XCPU XFSZ; do
        interrupt "cli_probe --wait=out/x" $sig
        [ "$status" -eq $((128 + $(kill -l $sig))) ]
        [ -z "$(ls -A out)" ]
    done
}

@test "a tool may take a signal as a request to stop, and still dies of it" {
    interrupt "cli_probe --stop" TERM
    [ "$rest" = "stopped by 15" ]
    [ "$status" -eq 143 ]
}

@test "a tool that does not see the request ends by it after a while, or by the next one" {
    local sig
    for sig in INT TERM; do
        SECONDS=0
        interrupt "cli_probe --deaf" $sig
        [ "$status" -eq $((128 + $(kill -l $sig))) ]
        [ $SECONDS -ge 2 ]
        [ -z "$(find . -name '.kaio-*')" ]
    done
    bash -c "exec env --default-signal=INT,TERM,HUP,ALRM cli_probe --deaf" >said 3>&- &
    local pid=$!
    until grep -q waiting said; do sleep 0.1; done
    SECONDS=0
    kill -TERM $pid
    kill -INT $pid
    status=0
    wait $pid || status=$?
    [ "$status" -eq 130 ] || [ "$status" -eq 143 ]
    [ $SECONDS -lt 3 ]
    [ -z "$(find . -name '.kaio-*')" ]
}

@test "a request that has come ends the tool where it has nothing more to say" {
    interrupt "cli_probe --release" TERM
    [ "$rest" = "stopped by 15" ]
    [ "$status" -eq 143 ]
}

@test "an ignored signal stays ignored" {
    (trap '' HUP; exec cli_probe --wait=x) >/dev/null 3>&- &
    pid=$!
    for _ in 1 2 3 4 5 6 7 8 9 10; do ls .kaio-* >/dev/null 2>&1 && break; sleep 0.1; done
    kill -HUP $pid
    sleep 0.1
    kill -0 $pid
    kill -TERM $pid
    wait $pid || [ $? -eq 143 ]
}

@test "progress shows on a terminal only, after a second, and is wiped" {
    need_terminal
    run -0 --separate-stderr cli_probe --slow
    [ "$stderr" = "" ]
    shown=$(TERM=xterm script -qec 'cli_probe --slow' /dev/null)
    [[ $shown == *"probing: "*"/150 ("*"%), 1 s"* ]]
    [[ $shown == *$'\r\033[K' ]]
}

@test "bash completion offers options, values and files" {
    touch file.yaml
    complete() { eval "$(cli_probe --completion=bash | grep -v ^complete)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cli_probe; }
    complete cli_probe --le
    [ "${COMPREPLY[*]}" = "--level" ]
    complete cli_probe --mode s
    [ "${COMPREPLY[*]}" = "slow" ]
    complete cli_probe --mode = f
    [ "${COMPREPLY[*]}" = "fast" ]
    complete cli_probe --mode =
    [ "${COMPREPLY[*]}" = "fast slow odd" ]
    complete cli_probe --check r        # its argument comes after '=' only
    [ "${COMPREPLY[*]}" = "" ]
    complete cli_probe --check = r
    [ "${COMPREPLY[*]}" = "race" ]
    complete cli_probe --color = n
    [ "${COMPREPLY[*]}" = "never" ]
    complete cli_probe --level fil      # a number: nothing to offer
    [ "${COMPREPLY[*]}" = "" ]
    complete cli_probe -o fil
    [ "${COMPREPLY[*]}" = "file.yaml" ]
    complete cli_probe fil
    [ "${COMPREPLY[*]}" = "file.yaml" ]
    ! cli_probe --completion=bash | grep -e --completion | grep -v '^#'
}

@test "zsh completion is accepted by zsh" {
    run -2 cli_probe --completion=fish
    [[ $(cli_probe --completion=zsh) == "#compdef cli_probe"* ]]
    command -v zsh >/dev/null || skip "zsh is missing"
    cli_probe --completion=zsh >_cli_probe
    zsh -n _cli_probe
}
