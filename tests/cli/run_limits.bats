# kaio-run: no more is read than is needed, and no more memory is taken than there is.
bats_require_minimum_version 1.5.0
load run

# --- inputs that do not end ---

@test "endless inputs are read as far as is needed, and refused" {
    ln -s /dev/zero zero.bin
    ln -s /dev/zero zero.npy
    ln -s /dev/zero zero.safetensors
    ulimit -t 5
    refused 2 "kaio-run: error: '/dev/zero' is not an npy file; raw bytes are read from a file whose name ends in '.bin'" \
        cpu saxpy.ptx n=3 x=/dev/zero y=@ones
    refused 2 "kaio-run: error: 'zero.npy' is not an npy file; raw bytes are read from a file whose name ends in '.bin'" \
        cpu saxpy.ptx n=3 x=zero.npy y=@ones
    refused 2 "kaio-run: error: zero.bin has more than 12 bytes; x, f32[3], takes 12" cpu saxpy.ptx n=3 x=zero.bin y=@ones
    refused 2 "kaio-run: error: 'zero.safetensors' is not a valid safetensors file: its header is not a JSON object" \
        cpu saxpy.ptx n=3 x=zero.safetensors#w y=@ones
    refused 2 "kaio-run: error: '/dev/zero' is longer than 67108864 bytes, the most that is read of a text" cpu /dev/zero
    refused 2 "kaio-run: error: '<stdin>' is longer than 67108864 bytes, the most that is read of a text" cpu < <(yes '// more')
    refused 2 "kaio-run: error: '/dev/zero' is longer than 67108864 bytes, the most that is read of a text" \
        cpu plain.ptx --launch /dev/zero
    run -2 kaio-verify --golden /dev/zero /dev/zero
    [[ "$output" == *"'/dev/zero' is not an npy file; raw bytes are read from a file whose name ends in '.bin'"* ]]
    run -2 kaio-verify --golden zero.bin zero.bin
    [[ "$output" == *"'zero.bin' is no regular file, and nothing says how many bytes are needed"* ]]
    refused 2 "kaio-emit: error: '<stdin>' is longer than 67108864 bytes, the most that is read of a text" kaio-emit < <(yes)
}

@test "pipes that go on behind what they promise" {
    cpu saxpy.ptx n=3 x=@arange y=@ones:three.npy
    run -0 cpu saxpy.ptx x=- y=@ones <three.npy
    refused 2 "kaio-run: error: '<stdin>' is too long: its header promises 12 bytes of data, it has more" \
        cpu saxpy.ptx x=- y=@ones < <(cat three.npy /dev/zero)
    head -c 135 three.npy >"cut"
    refused 2 "kaio-run: error: '<stdin>' is too short: its header promises 12 bytes of data, it has 7" \
        cpu saxpy.ptx x=- y=@ones < <(cat "cut")
    # a pipe of raw bytes, as many as are needed
    mkfifo x.bin
    printf '\0\0\200?\0\0\0@' >x.bin &
    run -0 cpu saxpy.ptx n=2 x=x.bin y=@zeros:y.raw alpha=1
    [ "$(od -An -tx1 y.raw | tr -d ' ')" = 0000803f00000040 ]
    # of a large file nothing is read where its size is wrong
    truncate -s 100G large.bin
    ulimit -t 5
    refused 2 "kaio-run: error: large.bin has 107374182400 bytes; x, f32[3], takes 12" cpu saxpy.ptx n=3 x=large.bin y=@ones
}

# --- memory ---

@test "more memory than the machine has is refused with the figures" {
    ulimit -t 5
    copy_of f64 'n, 1000' n >c.ptx
    local left='(the machine|its control group|the limit of address space) has [0-9.]+ [GM]B left$'
    run -2 --separate-stderr cpu c.ptx n=4G x=@zeros y=y.npy
    [[ "${stderr_lines[0]}" =~ ^"kaio-run: error: the buffers of 'copy' take 128 TB of memory on the simulator, but "$left ]]
    [ "${stderr_lines[1]}" = "kaio-run: note: x, f64[4000000000, 1000], takes 64 TB" ]
    [ "${stderr_lines[2]}" = "kaio-run: note: y, f64[4000000000, 1000], takes 64 TB" ]
    [ "${stderr_lines[3]}" = "kaio-run: note: with overcommit it is tried nevertheless" ]
    [ ! -e y.npy ]
    # on a GPU what the host keeps: inputs that are made, and results
    run -2 --separate-stderr cuda c.ptx n=4G x=@zeros y=y.npy
    [[ "${stderr_lines[0]}" =~ ^"kaio-run: error: the buffers of 'copy' take 64 TB of memory, but "$left ]]
}

@test "a limit of the address space is respected, and what there is no memory for is named" {
    [ -z "${KAIO_QUICK-}" ] || skip "the sanitizers take more address space than that"
    ulimit -v 600000
    run -2 --separate-stderr cpu saxpy.ptx n=40M x=@zeros y=@zeros
    [[ "${stderr_lines[0]}" == "kaio-run: error: the buffers of 'saxpy' take 800 MB of memory on the simulator, but the limit of address space has "*" MB left" ]]
    run -2 --separate-stderr cpu --overcommit saxpy.ptx n=400M x=@zeros y=@zeros
    [[ "$stderr" =~ ^"kaio-run: error: out of memory: x takes 1.6 GB; the limit of address space has "[0-9]+" MB left"$ ]]
    run -0 cpu saxpy.ptx n=1M x=@zeros y=@zeros
    truncate -s 700M x.bin
    copy_of u8 n n >c.ptx
    run -2 --separate-stderr cpu --overcommit c.ptx n=700Mi x=x.bin
    [[ "$stderr" =~ ^"kaio-run: error: out of memory: x.bin takes 734 MB; the limit of address space has "[0-9]+" MB left"$ ]]
}

@test "registers that are declared and not used cost nothing" {
    local n
    sed -i 's/%r<[0-9]*>/%r<1000000>/' saxpy.ptx
    grep -q "r<1000000>" saxpy.ptx
    ulimit -t 10
    [ -n "${KAIO_QUICK-}" ] || ulimit -v 1000000
    for n in "" --check; do
        run -0 cpu $n saxpy.ptx n=100000 x=@arange y=@ones
        [ "${output:0:28}" = "y  f32[100000]  1 3 5 7 9 11" ]
    done
}
