# kaio-run --lines: a run for each line, and nothing that one leaves to another.
bats_require_minimum_version 1.5.0
load run

lines() {
    kaio-run -q -d cpu --lines "$@"
}

# start COMMAND...: a process to talk to; what it says on standard error is in the file said
start() {
    coproc RUN { exec "$@" 2>said 3>&-; }
    pid=$RUN_PID to=${RUN[1]} from=${RUN[0]}
}

# ask LINE: its answer is in $answer
ask() {
    printf '%s\n' "$1" >&"$to"
    IFS= read -r -t 60 answer <&"$from"
}

# summary LINE: the outputs of its answer
summary() {
    ask "$1"
    [ "${answer%%$'\t'*}" = ok ] || { echo "$1: $answer"; return 1; }
    answer=${answer#*$'\t'}
}

# The end of standard input; the exit status is $1.
finish() {
    local status=0
    eval "exec $to>&-"
    wait "$pid" || status=$?
    [ "$status" -eq "$1" ] || { echo "exit status $status"; cat said; return 1; }
}

# Kernels of saxpy.ptx, and on the fake GPU one that faults.
two_kernels() {
    printf '//@ %s\n' 'kaio: 1' 'kernel: saxpy' 'params:' '  x: in f32[n]' '  y: inout f32[n]' '  alpha: f32 = 2' \
        'launches:' '  - {entry: saxpy, grid: [1], block: [256], args: [x, y, alpha, n]}' \
        --- 'kaio: 1' 'kernel: fault' 'params:' '  y: out f32[n]' 'launches:' \
        '  - {entry: fault, grid: [1], block: [1], args: []}'
    cat plain.ptx
    printf '.visible .entry fault()\n{\n    trap;\n}\n'
}

# old FILE...: modified long ago, so that a change would show
old() {
    touch -d '2001-01-01' "$@"
}

# --- lines and answers ---

@test "each line is a run and has an answer, at once" {
    start kaio-run -q -d cpu --lines saxpy.ptx
    ask "n=5 x=@arange y=@ones alpha=3"
    [ "$answer" = $'ok\ty  f32[5]  1 4 7 10 13  min 1 max 13 mean 7 nan 0 inf 0' ]
    ask "n=4 x=@arange y=@ones:y.npy"
    [ "$answer" = ok ]
    [ "$(npy_data y.npy)" = 0000803f000040400000a0400000e040 ]
    summary "x=y.npy y=y.npy alpha=-1"
    [ "${answer:0:18}" = "y  f32[4]  0 0 0 0" ]
    finish 0
    [ ! -s said ]
}

@test "the command line has what lines do not say" {
    start kaio-run -q -d cpu --lines saxpy.ptx -D n=2 x=@arange y=@ones alpha=10
    summary "alpha=1"
    [ "${answer:0:14}" = "y  f32[2]  1 2" ]
    summary "n=3"
    [ "${answer:0:18}" = "y  f32[3]  1 11 21" ]
    summary "x=@ones y=@zeros"
    [ "${answer:0:16}" = "y  f32[2]  10 10" ]
    finish 0
    # a mistake in its names is one of every line
    run -2 --separate-stderr lines saxpy.ptx beta=1 <<<"n=1"
    [ "$output" = "" ]
    [ "${stderr_lines[0]}" = "kaio-run: error: 'saxpy' has no parameter 'beta'" ]
}

@test "a bad line has the status that the command line would have, and harms no other" {
    good="n=2 x=@ones y=@ones"
    start kaio-run -q -d cpu --max-instructions=1Mi --lines saxpy.ptx
    while IFS='|' read -r line want; do
        summary "$good"
        ask "$line"
        [ "$answer" = "$want" ] || { printf 'said:   %s\nwanted: %s\n' "$answer" "$want"; return 1; }
        # the whole of it is on standard error, with the line's number
        n=$((n + 2))
        grep -qF "<stdin>:$n: error: ${want#error ?: }" said || { cat said; return 1; }
    done <<'END'
x|error 2: 'x' is not NAME=VALUE
n=2 x=@ones|error 2: y (inout f32[n]) is not given; give y=FILE or y=@normal, @zeros, ...
n=2 x=@ones y=@ones x=@ones|error 2: x is given twice
n=2 x=none.npy y=@ones|error 2: cannot open 'none.npy': No such file or directory
n=2 x=@ones y=@ones:none/y.npy|error 2: cannot write 'none/y.npy': No such file or directory
n=2 z=@ones|error 2: 'saxpy' has no parameter 'z'
-D n=2|error 2: '-D': of the options a line may have --kernel=NAME; give others on the command line
n=2 x=- y=@ones|error 2: standard input can be read once, by the lines or by x
n=2 x=/dev/stdin y=@ones|error 2: standard input can be read once, by the lines or by x
n=2 x=@ones y=@ones:-|error 2: standard output has the answers, so y can't go there; give y=FILE
n=2 x=@ones y=@ones:/dev/stdout|error 2: standard output has the answers, so y can't go there; give y=FILE
n=2 x="@ones y=@ones|error 2: a quote (") has no end on its line
n=2 x='@ones y=@ones|error 2: a quote (') has no end on its line
END
    ask "n=1Mi x=@ones y=@ones:y.npy"
    [[ $answer = "error 3: kernel 'saxpy' was stopped: "* ]]
    summary "$good"
    finish 3
    [ ! -e y.npy ]
    [ -z "$(find . -name '.kaio-*')" ]
}

@test "words are quoted as in a shell, by few rules" {
    lines saxpy.ptx <<<'n=2 x=@arange y=@ones:"a b.npy"'
    cp 'a b.npy' "it's"
    cp 'a b.npy' 'q"\.npy'
    cp 'a b.npy' '#$*~'
    sed 's/<tab>/\t/g' >words <<'END'
y="a b.npy"
y='a b.npy'
y=a\ b.npy
   'y=a'" b".npy # the rest is a comment x=none.npy
<tab>y="it's"<tab>
y=it\'s
y=q\"\\.npy
y="q\"\\.npy"
y='q"\.npy'
y="#$*~"
y=#$*~
END
    run -0 lines saxpy.ptx x=@zeros <words
    [ "${#lines[@]}" = 11 ]
    for line in "${lines[@]}"; do
        [ "$line" = $'ok\ty  f32[2]  1 3  min 1 max 3 mean 2 nan 0 inf 0' ]
    done
    # the end of a line of another system
    run -0 lines saxpy.ptx <<<$'n=1 x=@ones y=@ones\r'
    [ "${output:0:2}" = ok ]
    run -2 --separate-stderr lines saxpy.ptx <<<'n=1 x=@ones y=@ones\'
    [ "$output" = 'error 2: nothing follows the backslash: a line ends where it ends, and \\ is one backslash' ]
}

@test "a line without words launches nothing, and the last one needs no newline" {
    run -0 lines saxpy.ptx n=1 x=@ones y=@ones:y.npy < <(printf '\n  \t\n# n=1\n  # y=@ones')
    [ "$output" = $'skipped\nskipped\nskipped\nskipped' ]
    [ ! -e y.npy ]
    run -0 lines saxpy.ptx < <(printf 'n=1 x=@ones y=@ones')
    [ "${output:0:2}" = ok ]
    run -0 lines saxpy.ptx </dev/null
    [ "$output" = "" ]
}

@test "answers in JSON" {
    printf '%s\n' 'n=2 limit=9' '' 'n=8 limit=3' 'n="' | lines talk.ptx --format=json >answers 2>said || [ $? = 3 ]
    python3 - <<'END'
import json
a = [json.loads(line) for line in open("answers")]
assert [x["line"] for x in a] == [1, 2, 3, 4], a
assert a[0] == {"line": 1, "status": 2, "message": "the kernel requires n % 4 == 0, but n is 2"}, a[0]
assert a[1] == {"line": 2, "status": 0, "skipped": True}
assert a[2]["status"] == 3 and "assertion failed" in a[2]["message"], a[2]
assert a[2]["printed"].startswith("thread 0\nthread 1\n")
assert a[3]["status"] == 2
for line in open("said"):
    json.loads(line)
END
    lines talk.ptx --format=json <<<'n=8' | python3 -c '
import json, sys
a = json.load(sys.stdin)
assert a["outputs"] == {"y": {"type": "u32", "shape": [8], "first": [0, 1, 2, 3, 4, 5], "min": 0, "max": 7, "mean": 3.5}}, a'
    lines saxpy.ptx --format=json <<<'n=1 x=@ones y=@const:inf' | grep -qF '"first": [null], "min": null'
}

@test "what a kernel prints is no answer" {
    run -0 --separate-stderr lines talk.ptx <<<'n=4'
    [ "$output" = $'ok\ty  u32[4]  0 1 2 3  min 0 max 3 mean 1.5' ]
    [ "$stderr" = $'thread 0\nthread 1\nthread 2\nthread 3' ]
}

@test "a line may choose the kernel" {
    two_kernels >two.ptx
    start kaio-run -q -d cpu --lines two.ptx
    ask "n=2 x=@ones y=@ones"
    [ "$answer" = "error 2: 'two.ptx' holds 2 kernels (saxpy, fault); choose one with --kernel" ]
    summary "--kernel=saxpy n=2 x=@ones y=@ones"
    ask "--kernel=fault n=2"
    [ "${answer:0:8}" = "error 3:" ]
    summary "n=2 x=@ones y=@ones --kernel=saxpy"
    [ "${answer:0:14}" = "y  f32[2]  3 3" ]
    ask "--kernel=saxpi"
    [ "$answer" = "error 2: 'two.ptx' has no kernel 'saxpi'; did you mean 'saxpy'?" ]
    finish 3
    run -0 lines two.ptx --kernel=saxpy <<<"n=2 x=@ones y=@ones"
}

@test "PTX without a contract: lines replace values by the arguments' names" {
    start kaio-run -q -d cpu --lines copy.ptx --entry copy --grid 1 --block 1 --arg 'in u8[n]=@ones' \
        --arg 'out u8[n]=' --arg 'u32=n' n=3
    ask "arg1=@arange arg2=y.bin"
    [ "$answer" = ok ]
    [ "$(od -An -tx1 y.bin)" = " 00 01 02" ]
    ask "arg2=y.bin n=2"
    [ "$(od -An -tx1 y.bin)" = " 01 01" ]
    finish 0
}

@test "findings of --check fail their line" {
    sed '/^\$loop:/s/$/\n    ld.global.u8 %rs1, [%rd2];\n    st.global.u8 [%rd2], %rs1;/' copy.ptx >uninit.ptx
    start kaio-run -q --check --lines uninit.ptx --entry copy --grid 1 --block 1 --arg 'in u8[n]=@ones' \
        --arg 'out u8[n]=y.bin' --arg 'u32=n'
    ask "n=1"
    [ "${answer:0:8}" = "error 1:" ]
    ask "n=1"
    [ "${answer:0:8}" = "error 1:" ]
    finish 1
    [ ! -e y.bin ]
}

@test "what --lines does not go with" {
    refused 2 "kaio-run: error: --lines reads lines from standard input, so the PTX can't come from there: name its file, as in kaio-run --lines saxpy.ptx" \
        lines <saxpy.ptx
    refused 2 "kaio-run: error: --lines reads lines from standard input, so the PTX can't come from there: name its file, as in kaio-run --lines saxpy.ptx" \
        lines /dev/stdin <saxpy.ptx
    refused 2 "kaio-run: error: --lines reads lines from standard input, so --launch can't: name a file" \
        lines saxpy.ptx --launch=- </dev/null
    refused 2 "kaio-run: error: --lines runs each line once: leave --time out, or --lines" lines saxpy.ptx --time
    refused 2 "kaio-run: error: with --lines standard output has the answers: leave --print-suppressions out, or --lines" \
        kaio-run --check --lines --print-suppressions saxpy.ptx
    run -77 kaio-run -d cuda --lines saxpy.ptx </dev/null
    run -2 lines none.ptx </dev/null
    # a pipe that is not standard input will do
    run -0 lines <(cat saxpy.ptx) <<<"n=1 x=@ones y=@ones"
}

# --- nothing stays that should not ---

@test "each line begins with its own inputs" {
    cpu saxpy.ptx n=2 x=@zeros y=@ones:y.npy
    old y.npy
    start kaio-run -q -d cpu --lines saxpy.ptx n=2 x=@ones
    for _ in 1 2 3; do
        summary "y=y.npy"
        [ "${answer:0:14}" = "y  f32[2]  3 3" ]
        summary "y=@ones"
        [ "${answer:0:14}" = "y  f32[2]  3 3" ]
    done
    finish 0
}

@test "variables of a module begin with their values" {
    {
        printf '//@ %s\n' 'kaio: 1' 'kernel: count' 'params:' '  y: out u32[1]' 'launches:' \
            '  - {entry: count, grid: [1], block: [1], args: [y]}'
        cat <<'END'
.version 6.0
.target sm_70
.address_size 64
.global .u32 counter = 5;
.visible .entry count(.param .u64 y)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd1;
    ld.param.u64 %rd1, [y];
    ld.global.u32 %r1, [counter];
    add.u32 %r2, %r1, 1;
    st.global.u32 [counter], %r2;
    st.global.u32 [%rd1], %r1;
    ret;
}
END
    } >count.ptx
    start kaio-run -q -d cpu --lines count.ptx
    for _ in 1 2 3; do
        summary "--kernel=count"
        [ "${answer:0:12}" = "y  u32[1]  5" ]
    done
    finish 0
}

# poke FILE VALUE: both of its two floats are 1, 2 or -1, without another file in its place
poke() {
    local -A octal=([1]='\0\0\200\77' [2]='\0\0\0\100' [-1]='\0\0\200\277')
    printf '%b' "${octal[$2]}${octal[$2]}" | dd of="$1" bs=1 seek=128 conv=notrunc 2>/dev/null
}

@test "a file that changed is read again, however it changed" {
    cpu saxpy.ptx n=2 x=@zeros y=@zeros:zeros.npy
    old zeros.npy
    for device in cpu cuda; do
        cpu saxpy.ptx n=2 x=@zeros y=@ones:x.npy
        old x.npy
        KAIO_CUDA_LIB=$fake start kaio-run -q -d $device --lines saxpy.ptx y=zeros.npy alpha=1
        summary "x=x.npy"
        summary "x=x.npy"
        [ "${answer:0:14}" = "y  f32[2]  1 1" ]
        # in place, of the same size and time
        poke x.npy 2
        old x.npy
        summary "x=x.npy"
        [ "${answer:0:14}" = "y  f32[2]  2 2" ]
        # by another file in its place, as old
        cp x.npy new.npy
        poke new.npy 1
        old new.npy
        mv new.npy x.npy
        summary "x=x.npy"
        [ "${answer:0:14}" = "y  f32[2]  1 1" ]
        # by a line
        ask "x=x.npy y=x.npy:x.npy"
        [ "$answer" = ok ]
        summary "x=x.npy"
        [ "${answer:0:14}" = "y  f32[2]  2 2" ]
        # at once behind a line that has read it
        for value in 1 2 -1 1 -1; do
            poke x.npy "$value"
            summary "x=x.npy"
            [[ $answer = "y  f32[2]  $value $value "* ]]
        done
        mv x.npy gone.npy
        ask "x=x.npy"
        [ "$answer" = "error 2: cannot open 'x.npy': No such file or directory" ]
        finish 2
    done
}

@test "what did not change is neither read nor uploaded again, nor the module loaded" {
    [ "$(stat -f -c %T .)" != tmpfs ] || skip "files in memory are read each time"
    cpu saxpy.ptx n=300 x=@zeros y=@ones:x.npy
    old x.npy
    # a generator, a file, and an inout of either
    for _ in 1 2 3 4; do echo x=x.npy y=x.npy; done >words
    for _ in 1 2 3 4; do echo x=@normal:1 y=@arange n=300; done >>words
    FAKE_CUDA_LOG=log KAIO_CUDA_LIB=$fake kaio-run -d cuda --lines saxpy.ptx <words >out
    [ "$(uniq out | wc -l)" = 2 ]
    [ "$(grep -c '^retain' log)" = 1 ]
    [ "$(grep -c '^load' log)" = 1 ]
    [ "$(grep -c '^write 1200$' log)" = 4 ]
    [ "$(grep -c '^launch' log)" = 8 ]
    # each way there is one of each kind in between: seeds, shapes, views, other files
    cp x.npy z.npy
    old z.npy
    printf '%s\n' 'x=@normal:1 n=2' 'x=@normal:2 n=2' 'x=@normal:2 n=3' x=x.npy x=z.npy 'x=x.npy[300]' 'x=x.npy[2,150]' x=x.npy |
        FAKE_CUDA_LOG=log2 KAIO_CUDA_LIB=$fake kaio-run -q -d cuda --lines saxpy.ptx y=@ones 2>/dev/null >out || [ $? = 2 ]
    cut -c 1-24 out | sed 's/ *$//' | diff - <(cat <<'END'
ok	y  f32[2]  3.4558153
ok	y  f32[2]  0.62404627
ok	y  f32[3]  0.62404627
ok	y  f32[300]  3 3 3 3
ok	y  f32[300]  3 3 3 3
ok	y  f32[300]  3 3 3 3
error 2: x is f32[2, 150
ok	y  f32[300]  3 3 3 3
END
)
}

@test "raw bytes, tensors and views are kept by what they are" {
    [ "$(stat -f -c %T .)" != tmpfs ] || skip "files in memory are read each time"
    cpu saxpy.ptx n=4 x=@zeros y=@arange:x.bin
    python3 - <<'END'
import json
import struct
head = json.dumps({n: {"dtype": "F32", "shape": [4], "data_offsets": [16 * i, 16 * i + 16]} for i, n in enumerate("ab")}).encode()
open("w.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + struct.pack("<8f", *range(8)))
END
    old x.bin w.safetensors
    for words in "x=x.bin n=4" "x=x.bin[4]" "x=w.safetensors#a"; do
        printf '%s\n' "$words" "$words" x=w.safetensors#b "$words" |
            FAKE_CUDA_LOG=log KAIO_CUDA_LIB=$fake kaio-run -d cuda --lines saxpy.ptx y=@zeros alpha=1 >out
        cut -f 3-6 -d ' ' out | diff - <(printf '%s\n' "f32[4]  0 1" "f32[4]  0 1" "f32[4]  4 5" "f32[4]  0 1")
        [ "$(grep -c '^write 16$' log)" = 4 ] # x three times, y once
        rm log
    done
    # other sizes than before are noticed
    start kaio-run -q -d cpu --lines saxpy.ptx y=@zeros
    summary "x=x.bin n=4"
    ask "x=x.bin n=3"
    [ "$answer" = "error 2: x.bin has 16 bytes; x, f32[3], takes 12" ]
    summary "x=x.bin n=4"
    finish 2
}

@test "a kernel's fault on a GPU is the end of its line" {
    two_kernels >two.ptx
    export FAKE_CUDA_LOG=log KAIO_CUDA_LIB=$fake
    start kaio-run -q -d cuda --lines two.ptx --kernel=saxpy
    summary "n=2 x=@ones y=@ones"
    ask "--kernel=fault n=2"
    [ "${answer:0:8}" = "error 3:" ]
    summary "n=2 x=@ones y=@ones"
    [ "${answer:0:14}" = "y  f32[2]  3 3" ]
    finish 3
    [ "$(grep -c '^retain' log)" = 2 ]
    [ "$(grep -c '^release' log)" = 2 ]
}

@test "a GPU without room for what is kept computes without it" {
    export FAKE_CUDA_LOG=log KAIO_CUDA_LIB=$fake FAKE_CUDA_MEMORY=$((10 << 20))
    start kaio-run -q -d cuda --lines saxpy.ptx
    summary "n=2 x=@ones y=@ones"
    summary "n=1Mi x=@ones y=@ones"
    [ "${answer:0:20}" = "y  f32[1048576]  3 3" ]
    summary "n=1Mi x=@ones y=@zeros"
    [ "${answer:0:20}" = "y  f32[1048576]  2 2" ]
    ask "n=4Mi x=@ones y=@ones"
    [ "${answer:0:8}" = "error 3:" ]
    summary "n=2 x=@ones y=@ones"
    finish 3
}

@test "a line that there is no memory for ends alone" {
    start bash -c 'ulimit -v 400000; exec kaio-run -q -d cpu --threads=1 --lines saxpy.ptx'
    [ -z "${KAIO_QUICK-}" ] || skip "sanitizers take more address space than that"
    summary "n=2 x=@ones y=@ones"
    for _ in 1 2 3; do
        ask "n=400M x=@ones y=@ones"
        [ "${answer:0:8}" = "error 2:" ]
        # room for the run, and none to keep a copy of y beside it
        summary "n=15M x=@ones y=@ones"
        [ "${answer:0:21}" = "y  f32[15000000]  3 3" ]
    done
    summary "n=2 x=@ones y=@ones"
    finish 2
}

@test "reports name memory that an earlier line had" {
    cat >far.ptx <<'END'
.version 6.0
.target sm_70
.address_size 64
.visible .entry far(.param .u64 x, .param .s64 offset)
{
    .reg .b64 %rd<3>;
    .reg .b16 %rs1;
    ld.param.u64 %rd1, [x];
    ld.param.s64 %rd2, [offset];
    add.u64 %rd1, %rd1, %rd2;
    ld.global.u8 %rs1, [%rd1];
    ret;
}
END
    # buffers of the simulator are 2^36 bytes apart
    for ((i = 0; i < 30; i++)); do echo "arg1=@const:$i arg2=$(((i % 7 - 5) << 36))"; done >words
    lines far.ptx --entry far --grid 1 --block 1 --arg 'in u8[2]=@ones' --arg i64=0 <words >answers 2>said || [ $? = 3 ]
    [ "$(wc -l <answers)" = 30 ]
    grep -q "of 'arg1' (u8\[2\], 2 elements), which was released" answers
    ! grep -q 'Sanitizer' said
}

# --- clients ---

@test "bytes of any kind get one answer a line" {
    {
        printf 'x=\0 y=@ones\n'
        head -c 300000 /dev/urandom
        printf '\n'
        head -c 1048577 /dev/zero | tr '\0' x
        printf '\n'
        printf 'n=1 x=@ones y=@ones:'
        head -c 1048000 /dev/zero | tr '\0' y
        printf '\nn=1 x=@ones y=@ones'
    } >hostile
    run -2 --separate-stderr lines saxpy.ptx <hostile
    [ "${#lines[@]}" = $(($(tr -cd '\n' <hostile | wc -c) + 1)) ]
    [ "${lines[0]}" = "error 2: the line has a zero byte, which no argument can have" ]
    [ "${lines[-3]}" = "error 2: the line has more than 1048576 bytes" ]
    [ "${lines[-2]:0:23}" = "error 2: cannot write '" ]
    [ "${#lines[-2]}" -lt 1100 ]
    [ "${lines[-1]}" = $'ok\ty  f32[1]  3  min 3 max 3 mean 3 nan 0 inf 0' ]
    # an answer is plain text, whatever the line had
    [ -z "$(printf '%s' "$output" | LC_ALL=C tr -d '\n\t\40-\176')" ]
    run -2 --separate-stderr lines saxpy.ptx < <(printf '\200\n')
    [ "$output" = "error 2: '\\x80' is not NAME=VALUE" ]
    run -2 lines saxpy.ptx <.
}

@test "nobody who reads answers any more" {
    local -a status
    yes "n=1 x=@ones y=@ones" | lines saxpy.ptx 2>said | head -n 2 >out && status=("${PIPESTATUS[@]}")
    [ "$(wc -l <out)" = 2 ]
    [ "${status[1]}" = 141 ]
    [ ! -s said ]
    # where SIGPIPE is ignored
    (trap '' PIPE && yes "n=1 x=@ones y=@ones" 2>/dev/null | { lines saxpy.ptx 2>said || echo $? >rc; }) | head -n 2 >out
    [ "$(cat rc)" = 2 ]
    [ ! -s said ]
    run -2 --separate-stderr bash -c 'kaio-run -q -d cpu --lines saxpy.ptx >/dev/full <<<"n=1 x=@ones y=@ones"'
    [ "$stderr" = "kaio-run: error: cannot write to standard output: No space left on device" ]
}

@test "an output that nobody reads is the error of its line" {
    mkfifo pipe
    start kaio-run -q -d cpu --lines saxpy.ptx n=100Ki x=@ones
    { sleep 0.1 && head -c 8 pipe >/dev/null; } 3>&- &
    ask "y=@ones:pipe"
    wait $!
    [ "$answer" = "error 2: cannot write 'pipe': Broken pipe" ]
    summary "n=1 y=@ones"
    finish 2
}

# The test itself may run where signals are ignored (nohup, a background job).
told() {
    start env --default-signal=TERM,HUP,QUIT,PIPE "$@"
}

# A kernel that does not end.
endless() {
    sed 's/^\$done:/$endless:\n    bra $endless;\n&/; s/bra \$done/bra $endless/' copy.ptx >endless.ptx
    told kaio-run -q -d cpu --lines endless.ptx --entry copy --grid 1 --block 1 --arg 'in u8[2]=@ones' \
        --arg 'out u8[2]=y.npy' --arg u32=2
}

@test "signals end it in a launch and between two, and leave nothing" {
    ulimit -c 0
    for signal in TERM HUP QUIT; do
        endless
        echo arg1=@zeros >&"$to"
        sleep 0.4
        kill -s $signal "$pid"
        finish $((128 + $(kill -l $signal)))
        told kaio-run -q -d cpu --lines saxpy.ptx
        summary "n=1 x=@ones y=@ones"
        kill -s $signal "$pid"
        finish $((128 + $(kill -l $signal)))
    done
    [ ! -e y.npy ]
    [ -z "$(find . -name '.kaio-*')" ]
}

@test "a launch ends when its client is gone" {
    endless
    echo arg1=@zeros >&"$to"
    sleep 0.4
    eval "exec $from<&-"
    SECONDS=0
    finish 141
    [ $SECONDS -lt 5 ]
    [ ! -e y.npy ]
    [ -z "$(find . -name '.kaio-*')" ]
}

@test "through FIFOs, and from Python" {
    mkfifo lines answers
    lines saxpy.ptx n=2 <lines >answers 3>&- &
    exec 5>lines 6<answers
    echo x=@ones y=@ones >&5
    read -r answer <&6
    [ "${answer:0:17}" = $'ok\ty  f32[2]  3 3' ]
    exec 5>&-
    wait $!
    exec 6<&-
    python3 - <<'END'
import subprocess
import numpy
run = subprocess.Popen(["kaio-run", "-q", "-d", "cpu", "--lines", "saxpy.ptx", "alpha=2"], stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, text=True)
for i in range(100):
    numpy.save("x.npy", numpy.full(1 + i % 3, i, numpy.float32))
    print("x=x.npy y=@ones:y.npy" if i % 10 else "x=x.npy", file=run.stdin, flush=True)
    answer = run.stdout.readline()
    if i % 10 == 0:
        assert answer.startswith("error 2: y (inout f32[n]) is not given"), answer
        continue
    assert answer == "ok\n", answer
    assert (numpy.load("y.npy") == numpy.full(1 + i % 3, 2 * i + 1)).all()
run.stdin.close()
assert run.wait() == 2
END
}

# --- many ---

# cpu_seconds COMMAND...: of user and system, in hundredths
cpu_seconds() {
    local TIMEFORMAT='%2U %2S'
    local -a t
    read -r -a t < <({ time "$@" >/dev/null 2>&1; } 2>&1)
    echo $((10#${t[0]/./} + 10#${t[1]/./}))
}

runs() {
    for ((i = 0; i < $1; i++)); do cpu -q --threads=1 saxpy.ptx n=1000 x=@normal y=@ones alpha=$i; done
}

many() {
    lines --threads=1 saxpy.ptx n=1000 x=@normal y=@ones <many
}

@test "a line costs a tenth of a process at most" {
    local n=1000
    [ -z "${KAIO_QUICK-}" ] || n=200
    for ((i = 0; i < n; i++)); do echo "alpha=$i"; done >many
    [ "$(many | wc -l)" = $n ]
    of_lines=$(cpu_seconds many)
    of_runs=$(cpu_seconds runs $((n / 10)))
    [ "$of_lines" -lt "$of_runs" ] || { echo "$n lines: $of_lines, $((n / 10)) runs: $of_runs"; return 1; }
}

resident() {
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' /proc/"$pid"/status
}

@test "memory and descriptors do not grow with lines" {
    start kaio-run -q -d cpu --lines saxpy.ptx
    for ((i = 0; i < 2000; i++)); do
        case $((i % 4)) in
        0) ask "n=$((i % 7 + 1000)) x=@normal:$i y=@ones" ;;
        1) ask "n=1000 x=@normal y=@ones:y.npy" ;;
        2) ask "x=y.npy y=y.npy alpha=$i" ;;
        3) ask "x=y.npy y=none.npy" ;;
        esac
        [ $i != 400 ] || early=$(resident) files=$(find /proc/"$pid"/fd | wc -l)
    done
    [ "$(find /proc/"$pid"/fd | wc -l)" = "$files" ]
    # sanitizers keep what was freed
    [ -n "${KAIO_QUICK-}" ] || [ "$(resident)" -lt $((early + 1000)) ]
    finish 2
}

@test "a program's state goes on from line to line, unless a line gives it or fails" {
    cd "$BATS_TEST_TMPDIR"
    cat >count.yaml <<'END'
program: count
params:
  x: in f32[n]
  total: state f32[n]
  y: out f32[n]
steps: |
  total[i] = total[i] + x[i]
  y[i] = total[i]
END
    kaio-emit count.yaml -o count.ptx
    run kaio-run -q -d cpu --lines count.ptx <<'END'
x=@ones n=2
x=@const:2 n=2
x=nothing.npy n=2
x=@ones n=2
x=@ones n=3
x=@ones n=2 total=@const:10 y=y.npy
x=@ones n=2 total=:t.npy
END
    [ "$status" = 2 ]
    grep -E '^(ok|error)' <<<"$output" | cut -c 1-17 | sed 's/ *$//' >got
    diff got - <<'END'
ok	y  f32[2]  1 1
ok	y  f32[2]  3 3
error 2: cannot o
ok	y  f32[2]  4 4
ok	y  f32[3]  1 1
ok	total  f32[2]
ok	y  f32[2]  12
END
    [ "$(tail -c 8 t.npy | od -An -tf4 | tr -s ' ')" = " 12 12" ]
}
