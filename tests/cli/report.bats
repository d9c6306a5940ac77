# Reports of the sanitizer: as text and as JSON, counted, suppressed.
bats_require_minimum_version 1.5.0

setup() {
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work"
    cp "$KAIO_SRCDIR"/tests/data/report/reduce.* .
}

# reduce [OPTION]...: runs it with eight blocks
reduce() {
    kaio-run --check reduce.ptx --entry reduce --grid 8 --block 64 --arg 'in f32[512]=@ones' \
        --arg 'inout f32[1]=@zeros' "$@"
}

# line N KEY: what the N-th JSON line of stderr has there, by a path as  other.source.line
line() {
    command -v python3 >/dev/null || skip "no python3"
    printf '%s\n' "${stderr_lines[$1]}" | python3 -c '
import json, sys
v = json.loads(sys.stdin.read())
for k in sys.argv[1].split("."):
    v = v[int(k)] if k.isdigit() else v[k]
print(v)' "$2"
}

@test "a finding names both accesses, the lines of the source and how often it occurred" {
    run -1 --separate-stderr reduce
    [ "$output" = "" ]
    [[ $stderr == *"reduce.ptx:65:2: error: kernel 'reduce': race on byte 64 of 'part in block_sum' "* ]]
    [[ $stderr == *"block (0,0,0), thread (0,0,0); 248 such accesses in all, in 8 blocks"* ]]
    [[ $stderr == *"reduce.cu:10:13: note: this is where this instruction comes from"* ]]
    [[ $stderr == *"reduce.cu:16:5: note: in 'block_sum', which is called here"* ]]
    # the last six steps are the same line unrolled: one finding
    [ "$(grep -c ' error: ' <<<"$stderr")" = 2 ]
    [ "${stderr_lines[-1]}" = "kaio-run: note: 2 findings in kernel 'reduce': 2 race" ]
}

@test "each finding is an object on a line of standard error" {
    run -1 --separate-stderr reduce --format=json
    [ "${#stderr_lines[@]}" = 3 ]
    [ "$output" = "" ]
    [ "$(line 0 kind) $(line 0 level) $(line 0 check) $(line 0 entry)" = "race error race reduce" ]
    [ "$(line 0 file):$(line 0 line):$(line 0 column)" = reduce.ptx:65:2 ]
    [ "$(line 0 access) $(line 0 other.access)" = "load store" ]
    [ "$(line 0 block) $(line 0 thread) $(line 0 other.thread)" = "[0, 0, 0] [0, 0, 0] [16, 0, 0]" ]
    [ "$(line 0 source.file):$(line 0 source.line):$(line 0 source.column)" = reduce.cu:10:13 ]
    [ "$(line 0 inlined_at.0.function):$(line 0 inlined_at.0.line)" = block_sum:16 ]
    [ "$(line 0 other.line) $(line 0 other.source.line)" = "56 10" ]
    [ "$(line 0 space) $(line 0 address) $(line 0 bytes) $(line 0 buffer)" = "shared 0x40 4 _ZZ9block_sumfE4part" ]
    [ "$(line 0 count) $(line 0 blocks)" = "248 8" ]
    [ "$(line 0 notes.1.file):$(line 0 notes.1.line)" = reduce.cu:10 ]
    [ "$(line 1 buffer) $(line 1 space) $(line 1 count) $(line 1 blocks)" = "arg2 global 14 7" ]
    [ "$(line 2 kind) $(line 2 findings) $(line 2 by_kind.race)" = "summary 2 2" ]
}

@test "errors in the PTX and faults have the same form" {
    sed 's/ld.shared.f32/ld.shared.f33/' reduce.ptx >bad.ptx
    run -2 --separate-stderr kaio-run -d cpu --format=json bad.ptx --entry reduce --grid 8 --block 64 \
        --arg 'in f32[512]=@ones' --arg 'inout f32[1]=@zeros'
    [ "$(line 0 kind) $(line 0 level) $(line 0 file) $(line 0 line)" = "error error bad.ptx 53" ]
    run -1 --separate-stderr kaio-run --check --format=json reduce.ptx --entry reduce --grid 9 --block 64 \
        --arg 'in f32[512]=@ones' --arg 'inout f32[1]=@zeros'
    [ "$(line 0 kind) $(line 0 check) $(line 0 access)" = "out-of-bounds fault load" ]
    [ "$(line 0 block) $(line 0 buffer) $(line 0 source.line)" = "[8, 0, 0] arg1 16" ]
    # a message of the runner, too, and no word of which device was taken
    run -2 --separate-stderr kaio-run --format=json nowhere.ptx x=@ones
    [ "${#stderr_lines[@]}" = 1 ]
    [[ $(line 0 message) == *"nowhere.ptx"* ]]
}

@test "suppressions leave out what they name, and nothing else" {
    printf '%s\n' '# known' '' 'race buffer=*4part # the tree' >one
    run -1 --separate-stderr reduce --suppressions one
    [[ $stderr != *"4part"* ]]
    [[ $stderr == *"race on element 0 of 'arg2'"* ]]
    [ "${stderr_lines[-1]}" = "kaio-run: note: 1 finding in kernel 'reduce': 1 race; 1 suppressed" ]
    echo 'race entry=red* buffer=arg2 file=reduce.cu line=15-20' >two
    run -0 --separate-stderr reduce --suppressions one --suppressions two
    [[ $output == arg2*"f32[1]"* ]] # the outputs are there
    [ "$stderr" = "kaio-run: note: 0 findings in kernel 'reduce'; 2 suppressed" ]
    # by a line of the PTX, by the call that was inlined
    echo 'race file=reduce.ptx line=122' >two
    run -0 reduce --suppressions one --suppressions two
    echo 'r?ce file=reduce.cu line=16' >one
    run -0 reduce --suppressions one --suppressions two
}

@test "suppressions that do not fit suppress nothing, and are told of" {
    local rule
    for rule in 'race entry=other' 'race buffer=x' 'uninitialised' 'race file=other.cu' 'race file=reduce.cu line=11' \
        'race file=reduce.ptx line=10' 'race file=dir/reduce.cu'; do
        echo "$rule" >one
        run -1 --separate-stderr reduce --suppressions one
        [ "$(grep -c ' error: ' <<<"$stderr")" = 2 ]
        if [[ $rule == *other ]]; then # another kernel's
            [[ $stderr != *"not needed"* ]]
        else
            [[ $stderr == *"one:1:1: note: this suppression was not needed"* ]]
        fi
        run -1 --separate-stderr reduce --suppressions one -q
        [[ $stderr != *"not needed"* ]]
    done
    echo '*' >one
    run -1 --separate-stderr kaio-run --check --suppressions one reduce.ptx --entry reduce --grid 9 --block 64 \
        --arg 'in f32[512]=@ones' --arg 'inout f32[1]=@zeros' # a fault stays one
    [[ $stderr == *"load of 4 bytes at element 512 of 'arg1'"* ]]
}

@test "a suppression that is no rule is an error at its line" {
    local rule text
    while IFS='|' read -r rule text; do
        printf '%s\n' '# first' "$rule" >bad
        run -2 --separate-stderr reduce --suppressions bad
        [[ ${stderr_lines[0]} == "bad:2:"*"error: $text" ]] || { echo "$rule: $stderr" && false; }
    done <<'END'
rase|no finding is of the kind 'rase'; did you mean 'race'?
deadlock-of-mine|no finding is of the kind 'deadlock-of-mine'; kaio-run(1) lists the kinds
race kernel=x|unknown condition 'kernel'; it is entry, buffer, file or line
race reduce.cu|'reduce.cu' is not entry=, buffer=, file= or line=
race file=|'file=' has no value
race line=0|'0' is no line, as 31 or 31-40 are
race line=7-3|'7-3' is no line, as 31 or 31-40 are
race line=3- line=4|'3-' is no line, as 31 or 31-40 are
race line=3-4 line=4|'line' is given twice
race line=99999999999|'99999999999' is no line, as 31 or 31-40 are
race entry=a entry=b|'entry' is given twice
race file="a b|this quote has no end
END
    run -2 reduce --suppressions nowhere
    run -2 --separate-stderr kaio-run -d cpu --suppressions bad reduce.ptx
    [[ $stderr == *"need --check"* ]]
}

@test "suppressions are printed ready to use" {
    run -1 --separate-stderr reduce --print-suppressions
    [ "${lines[0]}" = 'race entry=reduce buffer=_ZZ9block_sumfE4part file=reduce.cu line=10' ]
    [ "${lines[1]}" = 'race entry=reduce buffer=arg2 file=reduce.cu line=18' ]
    [ "${#lines[@]}" = 2 ]
    printf '%s\n' "$output" >known
    run -0 reduce --suppressions known
    # names that are patterns or have blanks come back as themselves
    mkdir 'a [b]'
    sed 's/^.*\.loc.*$//; s/^.*\.file.*$//' reduce.ptx >'a [b]/k #1.ptx'
    run -1 --separate-stderr kaio-run --check --print-suppressions 'a [b]/k #1.ptx' --entry reduce --grid 8 --block 64 \
        --arg 'in f32[512]=@ones' --arg 'inout f32[1]=@zeros'
    printf '%s\n' "$output" >known
    run -0 kaio-run --check --suppressions known 'a [b]/k #1.ptx' --entry reduce --grid 8 --block 64 \
        --arg 'in f32[512]=@ones' --arg 'inout f32[1]=@zeros'
}

@test "the first findings are shown, all are counted" {
    run -1 --separate-stderr reduce --max-findings=1
    [ "$(grep -c ' error: ' <<<"$stderr")" = 1 ]
    [ "${stderr_lines[-1]}" = "kaio-run: note: 2 findings in kernel 'reduce': 2 race; 1 more than --max-findings shows" ]
    # more than there are by default
    {
        printf '%s\n' .version\ 8.0 .target\ sm_80 .address_size\ 64 '.visible .entry many(.param .u64 x)' '{' \
            '.reg .b32 %r<3>;' '.reg .b64 %rd<3>;' 'ld.param.u64 %rd1, [x];' 'mov.u32 %r1, %tid.x;'
        local i
        for ((i = 0; i < 40; i++)); do
            echo "st.global.u32 [%rd1+$((4 * i))], %r1;"
        done
        printf '%s\n' 'ret;' '}'
    } >many.ptx
    many() { kaio-run --check many.ptx --entry many --grid 1 --block 2 --arg 'inout u32[40]=@zeros' "$@"; }
    run -1 --separate-stderr many
    [ "$(grep -c ' error: ' <<<"$stderr")" = 20 ]
    [ "${stderr_lines[-1]}" = "kaio-run: note: 40 findings in kernel 'many': 40 race; 20 more than --max-findings shows" ]
    run -1 --separate-stderr many --max-findings=256
    [ "$(grep -c ' error: ' <<<"$stderr")" = 40 ]
    echo 'race line=1-30 file=many.ptx' >some
    run -1 --separate-stderr many --suppressions some --max-findings=40
    [ "$(grep -c ' error: ' <<<"$stderr")" = 19 ]
    run -2 many --max-findings=257
}

@test "kaio-verify says the same, and takes suppressions" {
    cp "$KAIO_SRCDIR/tests/broken/tile_loop_war.yaml" k.yaml
    printf '%s\n' 'reference: |' '  y[i] = sum[k < 4](x[k*64 + 63 - i])' 'cases:' '  one: {}' >>k.yaml
    run -1 --separate-stderr kaio-verify --run -d cpu --check k.yaml --fill=exact --format=json
    stderr_lines=("${lines[@]}")
    [ "$(line 0 status) $(line 0 findings.0.kind) $(line 0 findings.0.buffer)" = "fail race tile" ] || line 0 findings
    echo 'race buffer=tile' >known
    run -1 kaio-verify --run -d cpu --check k.yaml --fill=exact --suppressions known
    [[ $output == *" of 64 wrong, "* && $output != *"race on"* ]] # what it did is still wrong
    run -2 kaio-verify --run -d cpu k.yaml --suppressions known
    [[ $output == *"--suppressions needs --check"* ]]
}

@test "what malloc() gave and nobody freed is told at the end" {
    heap=$KAIO_SRCDIR/tests/ptx-run/heap.ptx
    run -0 --separate-stderr kaio-run -d cpu "$heap" --entry take --grid 1 --block 64 --arg 'out u64[64]=p.npy'
    [ -z "$stderr" ]
    run -1 --separate-stderr kaio-run --check "$heap" --entry take --grid 1 --block 64 --arg 'out u64[64]=p.npy'
    [[ $stderr == *"heap.ptx:"*": error: kernel 'take': 512 bytes that malloc() gave here were never freed, 64 pieces"* ]]
    run -1 --separate-stderr kaio-run --check --format=json "$heap" --entry take --grid 1 --block 64 --arg 'out u64[64]=p.npy'
    [ "$(line -1 kind) $(line -1 check) $(line -1 entry) $(line -1 count)" = "leak memory take 64" ]
    echo 'leak entry=take' >known
    run -0 kaio-run -q --check --suppressions known "$heap" --entry take --grid 1 --block 64 --arg 'out u64[64]=p.npy'
    run -1 kaio-run -q --check=race,memory "$heap" --entry take --grid 1 --block 64 --arg 'out u64[64]=p.npy'
    run -0 kaio-run -q --check=race "$heap" --entry take --grid 1 --block 64 --arg 'out u64[64]=p.npy'
}

@test "the heap is as large as it is said to be" {
    heap=$KAIO_SRCDIR/tests/ptx-run/heap.ptx
    run -0 kaio-run -d cpu "$heap" --entry exhaust --grid 1 --block 1 --arg 'inout i32[1]=@zeros' --arg u64=1000000
    [[ $output == "arg1  i32[1]  8 "* ]]
    run -0 kaio-run -d cpu --heap 3M "$heap" --entry exhaust --grid 1 --block 1 --arg 'inout i32[1]=@zeros' --arg u64=1000000
    [[ $output == "arg1  i32[1]  2 "* ]]
    run -2 kaio-run -d cpu --heap 3 "$heap" --entry exhaust --grid 1 --block 1 --arg 'inout i32[1]=@zeros' --arg u64=1000000
}

# shared NAME OFFSET: runs a kernel that writes a word of a shared array behind it by a generic address, and with no offset
# reads one that nothing has written
shared() {
    cat >generic.ptx <<END
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 y)
{
	.reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .f32 %f<2>;
	.shared .align 4 .b8 $1[128];
	ld.param.u64 %rd1, [y];
	mov.u32 %r1, %tid.x;
	mov.u64 %rd2, $1;
	cvta.shared.u64 %rd3, %rd2;
	${2:+st.f32 [%rd3+$2], 0f3f800000;}
	ld.f32 %f1, [%rd3+32];
	mad.wide.u32 %rd4, %r1, 4, %rd1;
	st.global.f32 [%rd4], %f1;
	ret;
}
END
    kaio-run --check --entry k --grid 1 --block 32 --arg 'out f32[32]=/dev/null' generic.ptx
}

@test "generic addresses of shared memory are offsets in the variable or in the block's memory" {
    run -1 --separate-stderr shared _ZZ4fillILi32EEvPfE4tile
    [[ $stderr == *"load of 4 bytes at byte 32 of 'tile in fill<32>' (shared b8[128]), where nothing was written"* ]]
    run -1 --separate-stderr shared tile 200
    [[ $stderr == *"store of 4 bytes at byte 200 of 'tile' (shared b8[128])"* ]]
    run -1 --separate-stderr shared tile 4000
    [[ $stderr == *"store of 4 bytes at byte 4000 of 'tile' (shared b8[128])"* ]]
    run -1 --separate-stderr shared tile -200
    [[ $stderr == *"store of 4 bytes at byte -200 of 'tile' (shared b8[128])"* ]]
    run -3 --separate-stderr kaio-run -d cpu --entry k --grid 1 --block 32 --arg 'out f32[32]=/dev/null' generic.ptx
    [[ $stderr == *"store of 4 bytes at byte -200 of the block's shared memory (128 bytes)"* ]]
}

@test "PTX without lines of its source is told once how to get them, under checks" {
    say="does not name the lines of its source: make it with 'kaio-emit -g' or 'nvcc -lineinfo'"
    grep -v '\.loc' reduce.ptx >bare.ptx
    checked=(--entry reduce --grid 8 --block 64 --arg 'in f32[512]=@ones' --arg 'inout f32[1]=@zeros')
    run -1 --separate-stderr kaio-run --check bare.ptx "${checked[@]}"
    [ "$(grep -c "note: the PTX $say" <<<"$stderr")" = 1 ]
    [ "$(grep -c ' error: ' <<<"$stderr")" -gt 1 ]
    [[ "${stderr_lines[-2]}" == *"$say" && "${stderr_lines[-1]}" == *findings* ]]
    # of a fault, too; not where lines are named, nothing is found or nobody checks
    run -1 --separate-stderr shared tile 4000
    [ "$(grep -c "note: the PTX $say" <<<"$stderr")" = 1 ]
    run -3 --separate-stderr kaio-run -d cpu --entry k --grid 1 --block 32 --arg 'out f32[32]=/dev/null' generic.ptx
    [[ $stderr != *"lines of its source"* ]]
    run -1 --separate-stderr reduce
    [[ $stderr != *"lines of its source"* ]]
    kaio-emit "$KAIO_SRCDIR/specs/elementwise/saxpy.yaml" >saxpy.ptx
    run -0 --separate-stderr kaio-run --check saxpy.ptx n=64 x=@ones y=@ones:/dev/null
    [ "$stderr" = "" ]
}
