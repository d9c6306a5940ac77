# Properties of the kernel library that its references cannot say: what several launches give together.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    specs=$KAIO_SRCDIR/specs
}

# u32s NUMBER...: as four bytes each
u32s() {
    local v
    for v; do
        # shellcheck disable=SC2059
        printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((v & 255)) $((v >> 8 & 255)) $((v >> 16 & 255)) $((v >> 24 & 255)))"
    done
}

numbers() {
    od -An -v -t"$1" -w4 "$2" | tr -d ' '
}

@test "four radix passes sort, and so does the bitonic network" {
    kaio-emit "$specs/sort/radix_pass.yaml" >radix.ptx
    kaio-emit "$specs/sort/bitonic.yaml" >bitonic.ptx
    for n in 1 255 700; do
        kaio-run -d cpu radix.ptx rows=1 n=$n shift=0 keys=@randint:0:4294967296:$n placed=a.bin
        for shift in 8 16 24; do
            kaio-run -d cpu radix.ptx rows=1 n=$n shift=$shift keys=a.bin placed=b.bin
            mv b.bin a.bin
        done
        kaio-run -d cpu bitonic.ptx n=$n keys=@randint:0:4294967296:$n sorted=c.bin
        numbers u4 a.bin | sort -n -c
        [ "$(numbers u4 a.bin | sort -u | wc -l)" -gt $((n * 9 / 10)) ]
        cmp a.bin c.bin
    done
}

@test "a radix pass keeps the order of equal digits" {
    # keys 256 * k + d for d = 2, 1, 0, 2, 1, 0 ...: by the low byte, then by k
    keys=() want=()
    for k in {0..59}; do
        keys+=($((256 * k + 2 - k % 3)))
    done
    for d in 0 1 2; do
        for k in {0..59}; do
            [ $((2 - k % 3)) != $d ] || want+=($((256 * k + d)))
        done
    done
    u32s "${keys[@]}" >keys.bin
    kaio-emit "$specs/sort/radix_pass.yaml" | kaio-run -d cpu rows=1 n=60 shift=0 keys=keys.bin placed=got.bin
    [ "$(numbers u4 got.bin | tr '\n' ' ')" = "${want[*]} " ]
}

@test "steps of a breadth-first search give every vertex its distance" {
    # a ring of 40 vertices: 0 is connected with 1 and 39, and so on
    n=40
    first=() to=()
    for ((v = 0; v < n; v++)); do
        first+=($((2 * v)))
        to+=($(((v + 1) % n)) $(((v + n - 1) % n)))
    done
    u32s "${first[@]}" $((2 * n)) >first.bin
    u32s "${to[@]}" >to.bin
    u32s 0 >level.bin
    for ((v = 1; v < n; v++)); do u32s $((-1 & 0xffffffff)); done >>level.bin
    kaio-emit "$specs/graph/bfs_step.yaml" >bfs.ptx
    for ((depth = 1; depth <= n; depth++)); do
        numbers d4 level.bin | while read -r l; do
            if [ "$l" = $((depth - 1)) ]; then printf '\001'; else printf '\000'; fi
        done >frontier.bin
        kaio-run -d cpu bfs.ptx n=$n edges=$((2 * n)) first=first.bin to=to.bin frontier=frontier.bin depth=$depth \
            level=level.bin:next.bin found=@zeros:found.bin
        mv next.bin level.bin
        found=$(numbers u4 found.bin)
        [ "$found" != 0 ] || break
    done
    [ "$depth" = $((n / 2 + 1)) ]
    distances=$(for ((v = 0; v < n; v++)); do echo $((v < n - v ? v : n - v)); done)
    [ "$(numbers d4 level.bin)" = "$distances" ]
}

@test "a lock that is not taken is noticed" {
    # the same sum without the lock: lanes overwrite each other's, and the check for races sees them
    sed '/while (atomic_cas/,/nanosleep/d; /store(&lock/d; /lock = 0;/d; /shared u32 lock;/d' "$specs/sync/spin_lock.yaml" >loose.yaml
    run -1 kaio-verify --run -d cpu --check=race loose.yaml n31
    [[ $output == *"race on element 0 of 'total' (shared u32)"* && $output == *"loose.yaml:19:5: note:"* ]]
}

@test "the script that checks the library on a GPU, tried on the simulator" {
    run -0 "$KAIO_SRCDIR/tests/gpu.sh" -d cpu -n 1 -p verify,bytes,messages "$specs/elementwise/mix4.yaml" loss
    [[ $output == *$'\n'"mix4                     cases            pass    -       "*" passed, 0 failed, 4 skipped"$'\n'* ]]
    [[ $output == *$'\n'"mix4                     mid              -       equal   n=20011 w0="* ]]
    [[ $output == *$'\n'"mix4                     bf16_n2048       -       equal   n=2048 w0="* ]]
    [[ $output == *$'\n'"mix4                     f32_n1000        -       equal   n=1000 w0="* ]]
    [[ $output == *$'\n'"cross_entropy            random shapes    pass    "* ]]
    [[ $output == *$'\n'"fail_some "*" equal "* ]]
    [[ ${lines[-1]} == "all is well" ]]
    # a kernel that computes something else, and one that is not emitted
    cat >bad.yaml <<'END'
kernel: more
params:
  x: in f32[n]
  y: out f32[n]
block: 128
grid: ceil_div(n, 128)
body: |
  u32 i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
reference: |
  y[i] = x[i]
cases:
  small: {n: 5}
  large: {n: 4200000}
END
    run -1 "$KAIO_SRCDIR/tests/gpu.sh" -d cpu -n 0 bad.yaml
    [[ $output == *$'\n'"    FAIL     more/small normal "* ]]
    [[ $output == *$'\n'"bad                      cases            FAIL "* ]]
    [[ $output == *$'\n'"bad                      large            FAIL "* ]]
    [[ $output == *$'\n'"more                     small            -       equal "* ]]
    [[ ${lines[-1]} == "2 failures" ]]
    run -2 "$KAIO_SRCDIR/tests/gpu.sh" -d cpu -p verify,nothing loss
    run -2 "$KAIO_SRCDIR/tests/gpu.sh" -d cpu no-such-family
    if ! kaio-run --list-devices 2>/dev/null | grep -q ^cuda; then
        run -77 "$KAIO_SRCDIR/tests/gpu.sh" loss
    fi
}
