#!/bin/bash
# How fast the simulator is: thread-instructions per second for kernels of one kind each.
#
#     tests/sim_speed.sh [-b BINDIR] [-c CHECKS] [-j THREADS] [-n RUNS]
#
# BINDIR holds kaio-run (default: found on PATH). CHECKS: also with --check=CHECKS, several of these with spaces between
# them; "each" stands for all of them one by one and then together. One row is printed for each kernel:
# thread-instructions per second, the median of RUNS (default 3), unchecked and for each of CHECKS. Under checks other
# than memory a launch runs on one thread.
set -u

usage() {
    sed -n '4s/^# *//p' "$0" >&2
    exit 2
}

checks='' threads='' runs=3
while getopts b:c:j:n: opt; do
    case $opt in
    b) PATH=$(cd "$OPTARG" && pwd):$PATH ;;
    c) checks=${OPTARG/each/memory init race sync async all} ;;
    j) threads=--threads=$OPTARG ;;
    n) runs=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 0 ] || usage
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT

# kernel NAME LOOPS BODY: the body LOOPS times, in blocks of 256 threads that own 1 KiB of out and of tile each
kernel() {
    cat > "$dir/$1.ptx" << EOF
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .pred %p<8>;
    .reg .b32 %r<32>;
    .reg .f32 %f<32>;
    .reg .b64 %rd<8>;
    .shared .align 16 .b8 tile[1024];
    .shared .align 16 .b8 table[1024];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    shl.b32 %r3, %r2, 8;
    add.u32 %r3, %r3, %r1;
    mul.wide.u32 %rd2, %r3, 4;
    add.u64 %rd1, %rd1, %rd2;
    mov.u32 %r4, tile;
    shl.b32 %r5, %r1, 2;
    add.u32 %r4, %r4, %r5;
    cvt.rn.f32.u32 %f1, %r1;
    mov.f32 %f2, 0f3F000000;
    mov.f32 %f3, 0f3F800000;
    mov.f32 %f4, 0f40000000;
    mov.f32 %f5, 0f40400000;
    mov.u32 %r6, 0;
    mov.u32 %r7, %r1;
    mov.u32 %r8, 1;
    st.shared.f32 [%r4], %f1;
    mov.u32 %r11, table;
    mov.u32 %r10, table;
    add.u32 %r11, %r11, %r5;
    st.shared.f32 [%r11], %f1;
    bar.sync 0;
\$loop:
$3
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r6, $2;
    @%p1 bra \$loop;
    cvt.rn.f32.u32 %f6, %r7;
    add.f32 %f1, %f1, %f2;
    add.f32 %f1, %f1, %f3;
    add.f32 %f1, %f1, %f6;
    st.global.f32 [%rd1], %f1;
    ret;
}
EOF
}

rate() {
    kaio-run -q -d cpu "$dir/$1.ptx" --entry k --grid "${2:-256}" --block 256 --arg "inout f32[65536]=@zeros:$dir/out.bin" \
        ${threads:+"$threads"} --time="$runs" "${@:3}" 2>&1 | sed -n 's/^speed *\([0-9.e+]*\) thread.*/\1/p'
}

row() {
    local check speed
    speed=$(rate "$1")
    printf '%-14s %9s' "$1" "${speed:--}"
    for check in $checks; do
        speed=$(rate "$1" 256 "--check=$check")
        printf ' %9s' "${speed:--}"
    done
    printf '\n'
}

fma=$(for _ in 1 2 3 4; do
    printf '    fma.rn.f32 %%f1, %%f1, %%f2, %%f3;\n    fma.rn.f32 %%f4, %%f4, %%f2, %%f3;\n'
    printf '    fma.rn.f32 %%f5, %%f5, %%f2, %%f1;\n    fma.rn.f32 %%f2, %%f2, %%f3, %%f4;\n'
done)
int=$(for _ in 1 2 3; do
    printf '    mad.lo.u32 %%r7, %%r7, 1664525, %%r8;\n    xor.b32 %%r9, %%r7, %%r1;\n'
    printf '    shr.u32 %%r10, %%r9, 3;\n    add.u32 %%r8, %%r8, %%r10;\n    and.b32 %%r8, %%r8, 1023;\n'
done)
kernel alu-float 1000 "$fma"
kernel alu-integer 1000 "$int"
kernel memory-global 500 '    ld.global.f32 %f6, [%rd1];
    fma.rn.f32 %f1, %f6, %f2, %f3;
    st.global.f32 [%rd1], %f1;'
kernel memory-vector 300 '    shl.b32 %r9, %r1, 4;
    and.b32 %r9, %r9, 1008;
    add.u32 %r9, %r9, %r10;
    ld.shared.v4.f32 {%f6, %f7, %f8, %f9}, [%r9];
    add.f32 %f1, %f1, %f6;
    add.f32 %f1, %f1, %f7;
    add.f32 %f1, %f1, %f8;
    add.f32 %f1, %f1, %f9;'
kernel memory-shared 500 '    ld.shared.f32 %f6, [%r4];
    ld.shared.f32 %f7, [table+64];
    fma.rn.f32 %f1, %f6, %f7, %f1;
    st.shared.f32 [%r4], %f1;'
kernel memory-gather 200 '    mad.lo.u32 %r7, %r7, 1664525, 1013904223;
    shr.u32 %r9, %r7, 24;
    shl.b32 %r9, %r9, 2;
    mov.u32 %r10, tile;
    add.u32 %r9, %r9, %r10;
    ld.shared.f32 %f6, [%r9];
    add.f32 %f1, %f1, %f6;'
kernel barrier 500 '    xor.b32 %r9, %r5, 128;
    st.shared.f32 [%r4], %f1;
    bar.sync 0;
    mov.u32 %r10, tile;
    add.u32 %r9, %r9, %r10;
    ld.shared.f32 %f6, [%r9];
    bar.sync 0;
    fma.rn.f32 %f1, %f6, %f2, %f3;'
kernel shuffle 500 '    mov.b32 %r9, %f1;
    shfl.sync.bfly.b32 %r10, %r9, 16, 31, -1;
    mov.b32 %f6, %r10;
    add.f32 %f1, %f1, %f6;
    shfl.sync.down.b32 %r10, %r9, 1, 31, -1;
    mov.b32 %f6, %r10;
    fma.rn.f32 %f1, %f6, %f2, %f1;'
# shellcheck disable=SC2016  # labels of PTX
kernel divergent 300 '    and.b32 %r9, %r1, 3;
    setp.eq.u32 %p2, %r9, 0;
    @%p2 bra $a;
    setp.eq.u32 %p3, %r9, 1;
    @%p3 bra $b;
    mad.lo.u32 %r7, %r7, 3, 7;
    xor.b32 %r7, %r7, %r1;
    bra $c;
$b:
    add.u32 %r7, %r7, %r9;
    mul.lo.u32 %r7, %r7, 5;
    bra $c;
$a:
    shr.u32 %r7, %r7, 1;
    add.u32 %r7, %r7, 77;
$c:'
kernel atomic-shared 100 '    and.b32 %r9, %r1, 31;
    shl.b32 %r9, %r9, 2;
    mov.u32 %r10, tile;
    add.u32 %r9, %r9, %r10;
    red.shared.add.u32 [%r9], 1;'

printf '%-14s %9s' kernel unchecked
# shellcheck disable=SC2086 # words
[ -n "$checks" ] && printf ' %9s' $checks
printf '\n'
for k in alu-float alu-integer memory-global memory-vector memory-shared memory-gather barrier shuffle divergent atomic-shared; do
    row "$k"
done
