# kaio-run: what is the simulator's: its limits, its reports, and options of its own.
bats_require_minimum_version 1.5.0
load run

@test "a long simulation shows its progress on a terminal, and wipes it" {
    script -qec true /dev/null >/dev/null 2>&1 || skip "no pseudo-terminals"
    cat >slow.yaml <<'END'
kernel: slow
params: {y: "out u32[n]"}
grid: 16
block: 32
body: |
  u32 s = 0;
  if (blockIdx.x >= 8)
    for (u32 k = 0; k < 4000000000u; k++) s += k ^ s;
  if (n > 0) y[0] = s;
END
    kaio-emit slow.yaml >slow.ptx
    # it appears after a second; a busy machine gets more, and there script(1) has lost what was written last
    for limit in 2 4 30; do
        shown=$(TERM=xterm script -qec "timeout -s INT $limit kaio-run -d cpu slow.ptx n=1" /dev/null) || :
        [[ $shown != *"simulating slow, block: 8/16 (50%), "[1-9]*" s, "*"/s"*$'\r\033[K'*"interrupted"* ]] || break
    done
    [[ $shown == *"simulating slow, block: 8/16 (50%), "[1-9]*" s, "*"/s"*$'\r\033[K'*"interrupted"* ]]
    shown=$(TERM=xterm script -qec 'timeout -s INT 1.4 kaio-run -q -d cpu slow.ptx n=1' /dev/null) || :
    [[ $shown != *"simulating"* ]]
}

@test "an access outside a buffer ends the simulation, with exit 1 under --check" {
    copy_of f32 n 'n * 4 + 1' >c.ptx
    run -3 --separate-stderr cpu c.ptx n=3 x=@ones y=y.npy
    [ "$output" = "" ]
    [[ "$stderr" = *"error: "* ]]
    [[ "$stderr" = *"x"* ]]
    [ ! -e y.npy ]
    run -1 kaio-run --check=memory c.ptx n=3 x=@ones y=y.npy
    run -0 kaio-run --check=memory saxpy.ptx n=3 x=@ones y=@ones
    run -0 kaio-run --check saxpy.ptx n=3 x=@ones y=@ones
    run -2 kaio-run --check=race,rice saxpy.ptx n=3 x=@ones y=@ones
    [ "${lines[0]}" = "kaio-run: error: --check: 'rice' is not memory, init, race, sync, async or all" ]
    run -2 kaio-run -d cuda --check=memory saxpy.ptx
    [ "${lines[0]}" = "kaio-run: error: --check runs on the simulator: -d cpu" ]
}

@test "a kernel that is stuck is stopped at once, and says where its threads stand" {
    cat >stuck.yaml <<'END'
kernel: stuck
params:
  lock: inout u32[1]
  total: inout u32[1]
grid: 1
block: 64
body: |
  while (atomic_cas(&lock[0], 0, 1, order = acquire) != 0) {
  }
  total[0] += 1;
END
    kaio-emit -g stuck.yaml >stuck.ptx
    run -3 cpu stuck.ptx lock=@zeros:l.npy total=@zeros:t.npy
    [[ "$output" = *"error: kernel 'stuck' is stuck: "* ]]
    [[ "$output" = *"block (0,0,0), warp 0, lanes 1-31: go round here"*"stuck.yaml:8:3: "* ]]
    [[ "$output" = *"block (0,0,0), warp 1, lanes 0-31: go round here"* ]]
    [ ! -e l.npy ]
}

@test "an endless kernel stops at its limit or at a signal" {
    sed 's/^\$done:/$endless:\n    bra $endless;\n&/; s/bra \$done/bra $endless/' copy.ptx >endless.ptx
    args=(--entry copy --grid 1 --block 1 --arg 'in u8[2]=@ones' --arg 'out u8[2]=y.npy' --arg u32=2)
    run -3 cpu --max-instructions 100000 endless.ptx "${args[@]}"
    [[ "$output" = *"error: "*"100000"* ]]
    [ ! -e y.npy ]
    kaio-run -d cpu endless.ptx "${args[@]}" 2>err &
    pid=$!
    sleep 0.5
    kill -INT $pid 2>/dev/null || true
    # a background job of a shell ignores SIGINT, so TERM follows
    kill -TERM $pid
    status=0
    wait $pid || status=$?
    [ $status = 143 ] || [ $status = 130 ]
    [ ! -e y.npy ]
    [ -z "$(find . -name "*kaio-*")" ]
}

@test "--arch chooses whose tensor cores add up" {
    kaio-emit -t sm_80 -D m=32 -D n=32 -D k=64 "$KAIO_SRCDIR/specs/matmul/tf32.yaml" >"$BATS_TEST_TMPDIR/mm.ptx"
    grep -q mma.sync "$BATS_TEST_TMPDIR/mm.ptx"
    cd "$BATS_TEST_TMPDIR"
    kaio-run -q -d cpu mm.ptx a=@normal:1 b=@normal:2 c=own.npy
    kaio-run -q -d cpu --arch=sm_80 mm.ptx a=@normal:1 b=@normal:2 c=80.npy
    kaio-run -q -d cpu --arch=sm_90 mm.ptx a=@normal:1 b=@normal:2 c=90.npy
    cmp own.npy 80.npy
    run cmp own.npy 90.npy
    [ "$status" = 1 ]
    run kaio-run -d cpu --arch=90x mm.ptx
    [ "$status" = 2 ]
    [ "${lines[0]}" = "kaio-run: error: --arch: '90x' is no target, as sm_80 or sm_90 are" ]
}

# A kernel whose threads wait for a bulk copy of as many bytes as they expect ($1: instruction of the wait, $2: bytes), or do not.
bulk() {
    cat <<END
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    .shared .align 128 .b32 tile[64];
    .shared .align 8 .b64 full;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @!%p1 mbarrier.init.shared.b64 [full], 1;
    bar.sync 0;
    @!%p1 mbarrier.arrive.expect_tx.shared.b64 _, [full], $2;
    @!%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 256, [full];
\$again:
    mbarrier.$1.parity.shared.b64 %p2, [full], 0;
    @!%p2 bra \$${3:-again};
\$on:
    mov.u32 %r3, tile;
    mad.lo.u32 %r3, %r1, 4, %r3;
    ld.shared.b32 %r4, [%r3];
    mad.wide.u32 %rd2, %r1, 4, %rd2;
    st.global.b32 [%rd2], %r4;
    ret;
}
END
}

@test "--check-seed draws when copies arrive, and a kernel that waits for them does not care" {
    args=(--entry k --grid 1 --block 64 --arg 'in i32[64]=@arange')
    bulk try_wait 256 >right.ptx
    bulk test_wait 256 on >wrong.ptx
    run -0 kaio-run -d cpu right.ptx "${args[@]}" --arg 'out i32[64]=right.npy'
    run -0 kaio-run -d cpu wrong.ptx "${args[@]}" --arg 'out i32[64]=late.npy'
    [[ "$(npy_data late.npy)" =~ ^0*$ ]]
    for seed in {1..12}; do
        run -0 kaio-run -d cpu right.ptx "${args[@]}" --check-seed="$seed" --arg 'out i32[64]=y.npy'
        cmp y.npy right.npy
        run -0 kaio-run -d cpu wrong.ptx "${args[@]}" --check-seed="$seed" --arg "out i32[64]=y$seed.npy"
        run -0 kaio-run -d cpu wrong.ptx "${args[@]}" --check-seed="$seed" --arg 'out i32[64]=again.npy'
        cmp "y$seed.npy" again.npy
    done
    cat y?.npy y1?.npy >drawn
    run ! cmp -s drawn <(for _ in {1..12}; do cat late.npy; done)
    run -2 kaio-run -d cpu right.ptx "${args[@]}" --check-seed=-1 --arg 'out i32[64]=y.npy'
    [[ "$output" = *"--check-seed"* ]]
}

@test "threads that wait for bytes which do not come are told of at once" {
    args=(--entry k --grid 4 --block 64 --arg 'in i32[64]=@arange' --arg 'out i32[64]=y.npy')
    what="the phase of parity 0 of the mbarrier at element 0 of 'full' (shared b64), which lacks 16 bytes"
    for wait in try_wait test_wait; do
        bulk $wait 272 >short.ptx
        run -3 kaio-run -q -d cpu short.ptx "${args[@]}"
        [[ "$output" = *"kernel 'k' is stuck: "*"short.ptx:20:5: note: block (0,0,0), warps 0-1, lanes 0-31: wait for $what"* ]]
    done
}

@test "a call through a register without any function that fits is wrong where it is reached, on the oldest targets too" {
    null=$KAIO_SRCDIR/tests/data/run/null_call.ptx
    run -0 kaio-run -d cpu --entry k --grid 1 --block 32 --arg 'out i32[2]=o.raw' --arg u64=0 "$null"
    [[ $(od -An -td4 o.raw) == *" 7" ]]
    run -3 kaio-run -d cpu --entry k --grid 1 --block 32 --arg 'out i32[2]=o.raw' --arg u64=4096 "$null"
    [[ $output == *"null_call.ptx:19:9: error: kernel 'k': a call through a register that holds the address of no function"* ]]
}
