# kaio-run: which device is taken, what a driver of our own (tests/fake_cuda.c) is told and says, and times.
bats_require_minimum_version 1.5.0
load run

@test "auto takes the GPU, or the simulator and says so once" {
    run -0 --separate-stderr kaio-run saxpy.ptx n=1 x=@ones y=@ones
    [ "${#stderr_lines[@]}" = 1 ]
    [[ "$stderr" = "kaio-run: no NVIDIA driver: "*"; running on the simulator" ]]
    run -0 --separate-stderr kaio-run -q saxpy.ptx n=1 x=@ones y=@ones
    [ "$stderr" = "" ]
    log=$PWD/log
    KAIO_CUDA_LIB=$fake FAKE_CUDA_LOG=$log run -0 --separate-stderr kaio-run saxpy.ptx n=1 x=@ones y=@ones
    [ "$stderr" = "" ]
    grep -q '^launch 1,1,1 x 256,1,1' log
    KAIO_DEVICE=cpu KAIO_CUDA_LIB=$fake FAKE_CUDA_LOG=$log.2 run -0 --separate-stderr kaio-run saxpy.ptx n=1 x=@ones y=@ones
    [ ! -e log.2 ]
}

@test "a device that is not there is exit 77" {
    run -77 kaio-run -d cuda saxpy.ptx n=1 x=@ones y=@ones:y.npy
    [[ "$output" = "kaio-run: error: no NVIDIA driver: "* ]]
    [ ! -e y.npy ]
    KAIO_CUDA_LIB=$fake run -77 kaio-run -d cuda:1 saxpy.ptx n=1 x=@ones y=@ones
    [ "$output" = "kaio-run: error: there is no GPU 1; the driver sees 1, numbered from 0" ]
    run -2 kaio-run -d gpu saxpy.ptx
    [ "${lines[0]}" = "kaio-run: error: --device: 'gpu' is not auto, cuda, cuda:N or cpu" ]
    KAIO_DEVICE=x run -2 kaio-run saxpy.ptx
    [ "${lines[0]}" = "kaio-run: error: KAIO_DEVICE: 'x' is not auto, cuda, cuda:N or cpu" ]
}

@test "the devices are listed" {
    KAIO_CUDA_LIB=$fake FAKE_CUDA_DEVICES=2 FAKE_CUDA_SM=90 run -0 --separate-stderr kaio-run --list-devices
    [ "${lines[0]}" = "cuda:0  Fake GPU 0  sm_90  16.8 MB  CUDA 13.0" ]
    [ "${lines[1]}" = "cuda:1  Fake GPU 1  sm_90  16.8 MB  CUDA 13.0" ]
    [[ "${lines[2]}" = "cpu     kaio simulator"* ]]
    run -0 --separate-stderr kaio-run --list-devices
    [[ "${lines[0]}" = "cpu     kaio simulator"* ]]
    [[ "$stderr" = *"note: no NVIDIA driver"* ]]
}

@test "a module that the GPU cannot run is refused at its line" {
    sed 's/^\.target sm_70/.target sm_90a/; s/^\.version 6.0/.version 8.0/' saxpy.ptx >new.ptx
    run -2 --separate-stderr cuda new.ptx n=1 x=@ones y=@ones:y.npy
    [ "${stderr_lines[0]}" = "new.ptx:15:1: error: the module needs sm_90a; this device is sm_80" ]
    [[ "$stderr" = *"kaio-run: note: the simulator may run it: -d cpu" ]]
    [ ! -e y.npy ]
    FAKE_CUDA_JIT_LOG="ptxas application ptx input, line 34; error   : Bad" run -2 --separate-stderr cuda saxpy.ptx n=1 x=@ones y=@ones
    [ "${stderr_lines[0]}" = "saxpy.ptx:34:5: error: the driver's compiler says: Bad" ]
}

@test "what the driver's compiler makes slower is a warning at its line, also when the driver had compiled it before" {
    export XDG_CACHE_HOME=$PWD/cache FAKE_CUDA_JIT_CACHE=$PWD/driver
    export FAKE_CUDA_JIT_INFO=$'ptxas info    : (C7504) Potential Performance Loss: \'setmaxnreg\' ignored.'
    sed 's/ret;/setmaxnreg.dec.sync.aligned.u32 24;\n&/; s/^\.target sm_70/.target sm_90a/; s/^\.version 6.0/.version 8.0/' saxpy.ptx >slow.ptx
    for _ in 1 2 3; do
        FAKE_CUDA_SM=90 run -0 --separate-stderr cuda slow.ptx n=1 x=@ones y=@ones
        [ "${stderr_lines[0]}" = "slow.ptx:$(grep -n setmaxnreg slow.ptx | cut -d: -f1):5: warning: the driver's compiler says: Potential Performance Loss: 'setmaxnreg' ignored. (C7504)" ]
        [[ "$output" = "y  f32[1]  "* ]]
    done
    [ "$(wc -l <driver)" = 1 ]
    [ "$(ls cache/kaio/jit | wc -l)" = 1 ]
}

@test "PTX that we cannot parse is left to the driver, and refused by the simulator" {
    sed 's/^\$loop:/    future.op.u32 %r1, %r1;\n&/' copy.ptx >later.ptx
    args=(--entry copy --grid 1 --block 1 --arg 'in u8[2]=@ones' --arg 'out u8[2]=y.bin' --arg u32=2)
    run -0 cuda later.ptx "${args[@]}"
    cmp y.bin <(printf '\1\1')
    run -2 --separate-stderr cpu later.ptx "${args[@]}"
    [[ "${stderr_lines[0]}" = "later.ptx:15:5: error: "* ]]
}

@test "faults of the kernel and of the device are exit 3, and write nothing" {
    echo '.visible .entry fault() { ret; }' >>plain.ptx
    run -3 cuda plain.ptx --entry fault --grid 1 --block 1
    [ "$output" = "kaio-run: error: kernel 'fault' failed: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered" ]
    FAKE_CUDA_MEMORY=100 run -3 cuda saxpy.ptx n=100 x=@ones y=@ones:y.npy
    [ "$output" = "kaio-run: error: the GPU has no memory left for the 400 bytes of 'x'" ]
    [ ! -e y.npy ]
    FAKE_CUDA_FAIL=cuMemcpyDtoH_v2:999 run -3 cuda saxpy.ptx n=100 x=@ones y=@ones:y.npy
    [ "$output" = "kaio-run: error: cannot copy from the GPU: unknown error (999): no description" ]
    [ ! -e y.npy ]
    FAKE_CUDA_LOG=$PWD/log run -0 cuda saxpy.ptx n=100 x=@ones y=@ones
    [ "$(grep -c '^alloc' log)" = "$(grep -c '^free' log)" ]
}

@test "what an older driver lacks is said" {
    # shellcheck disable=SC2086
    $CC $BASE_CFLAGS -DFAKE_CUDA_OLD -I"$KAIO_BUILDDIR" -fPIC -shared -o old.so "$KAIO_SRCDIR/tests/fake_cuda.c" -lm
    fake=$PWD/old.so
    export FAKE_CUDA_SM=90 FAKE_CUDA_VERSION=11070
    sed -i 's/^\.version 8.0/.version 7.7/' mapped.ptx
    run -2 --separate-stderr cuda mapped.ptx m=34 k=64 bytes=4 x=@arange y=y.bin
    [ "$stderr" = "kaio-run: error: tensor maps need a driver of CUDA 12.0; this one is of CUDA 11.7: update it" ]
    run -2 --separate-stderr cuda plain.ptx --entry saxpy --grid 2 --block 32 --cluster 2 --arg 'in f32[1]=@ones' --arg 'inout f32[1]=@ones' --arg f32=1 --arg u32=1
    [ "$stderr" = "kaio-run: error: clusters need a driver of CUDA 11.8; this one is of CUDA 11.7: update it" ]
    run -0 --separate-stderr cuda saxpy.ptx n=1 x=@ones y=@ones
}

@test "times are of the launches asked for, beside a copy of the same bytes" {
    # short launches are a graph: 10 us each, every third 2 % more, and no more than that
    FAKE_CUDA_LOG=$PWD/log run -0 cuda saxpy.ptx --time=4 n=1000 x=@ones y=@zeros:y.npy
    [ "${lines[0]}" = "time  median 10.1 us  min 10.1 us  max 10.1 us  of 4 x 112" ]
    [ "${lines[1]}" = "bytes  12 kB  1.19 GB/s  copy 1.5 GB/s  ratio 0.795" ]
    [ "$(grep -c '^launch' log)" = 1 ] # the one that counts
    # rotated through copies of the buffers, beside graphs of copies
    [ "$(grep '^capture saxpy' log | sort -u | wc -l)" = 16 ]
    [ "$(grep -c '^replay 112 nodes of saxpy' log)" = "$(grep -c '^replay 128 nodes of copy' log)" ]
    [ "$(grep -c '^alloc' log)" = "$(grep -c '^free' log)" ]
    [ "$(grep -c '^graph destroyed' log)" = 2 ]
    # the result is of one launch: y = 2, not 16
    [ "$(npy_data y.npy | cut -c1-8)" = 00000040 ]
    run -0 cpu saxpy.ptx --time 2 n=1000 x=@ones y=@zeros
    [[ "${lines[1]}" = "time  median "*" of 2" ]]
    # long ones are timed one by one
    FAKE_CUDA_US=saxpy:200 run -0 cuda saxpy.ptx --time=3 n=1000 x=@ones y=@zeros
    [ "${lines[1]}" = "time  median 200 us  min 200 us  max 204 us  of 3" ]
    # where memory is short the copy is of less, and its rate is its own: 4000 bytes read and written in 4 us
    FAKE_CUDA_MEMORY=16000 FAKE_CUDA_LOG=$PWD/log.2 run -0 cuda saxpy.ptx --time=4 n=1000 x=@ones y=@zeros:y.npy
    [ "${lines[1]}" = "bytes  12 kB  1.19 GB/s  copy 1 GB/s  ratio 1.192" ]
    [ "$(grep -c '^alloc 2000' log.2)" = 2 ]
    # a kernel that fails while it is timed is told, and leaves nothing behind
    FAKE_CUDA_FAIL=cuGraphInstantiateWithFlags:2 FAKE_CUDA_LOG=$PWD/log.3 run -3 cuda saxpy.ptx --time=4 n=1000 x=@ones y=@zeros
    [ "${lines[1]}" = "kaio-run: error: cannot make a graph ready: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory" ]
    [ "$(grep -c '^alloc' log.3)" = "$(grep -c '^free' log.3)" ]
    run -0 cpu saxpy.ptx --time n=1000 x=@ones y=@zeros
    [[ "${lines[1]}" = "time  median "*" of 3" ]]
    [[ "${lines[2]}" = "speed  "*" thread-instructions/s  ("*" executed)" ]]
    refused 2 "kaio-run: error: --time: '0' is not between 1 and 1000000" cpu --time=0 saxpy.ptx
}
