# print() and assert(): from the kernel to the terminal, on the simulator and on a driver of our own
# (tests/fake_cuda.c, whose threads speak in the reverse order).
bats_require_minimum_version 1.5.0

setup() {
    export KAIO_CUDA_LIB=/nonexistent/libcuda.so.1
    fake=$KAIO_BUILDDIR/tests/libfakecuda.so
    mkdir "$BATS_TEST_TMPDIR/work" # beside what bats keeps
    cd "$BATS_TEST_TMPDIR/work"
    cp "$KAIO_SRCDIR"/tests/data/run/talk.ptx .
}

cpu() {
    kaio-run -d cpu "$@"
}

cuda() {
    KAIO_CUDA_LIB=$fake kaio-run -d cuda "$@"
}

# A kernel over y: out u32[n] in blocks of 4 from a body on standard input.
kernel() {
    printf 'kernel: k\nparams:\n  y: out u32[n]\nblock: 4\ngrid: ceil_div(n, 4)\nbody: |\n'
    sed 's/^/  /'
}

@test "messages are sorted by thread, and come before the outputs" {
    for device in cpu cuda; do
        run -0 --separate-stderr $device talk.ptx n=8
        [ "$stderr" = "" ]
        [ "$output" = "$(seq -f 'thread %g' 0 7; echo 'y  u32[8]  0 1 2 3 4 5 ...  min 0 max 7 mean 3.5')" ]
    done
}

@test "--messages-order=time leaves them as they were issued" {
    run -0 --separate-stderr cuda --messages-order=time talk.ptx n=8 y=y.npy
    [ "$output" = "$(seq -f 'thread %g' 7 -1 0)" ]
    run -2 cpu --messages-order=random talk.ptx n=8
    [[ "$output" == *"--messages-order: 'random' is not thread or time"* ]]
}

@test "they go to standard error when an output goes to standard output" {
    run -0 --separate-stderr cpu talk.ptx n=4 y=-
    [ "$stderr" = "$(seq -f 'thread %g' 0 3)" ]
}

@test "what does not fit is counted, and the size that suffices is named" {
    for device in cpu cuda; do
        run -0 --separate-stderr $device --messages=96 talk.ptx n=8 y=y.npy
        [ "${#lines[@]}" = 6 ]
        [ "$stderr" = "kaio-run: warning: 2 messages were lost: give --messages=128" ]
        run -0 --separate-stderr $device --messages=128 talk.ptx n=8 y=y.npy
        [ "${#lines[@]}" = 8 ]
        [ "$stderr" = "" ]
    done
    run -2 cpu --messages=1 talk.ptx n=8
}

@test "an assertion that fails names its line and the first thread, and writes no output" {
    for device in cpu cuda; do
        run -3 --separate-stderr $device talk.ptx n=8 limit=5 y=y.npy
        [ "$output" = "$(seq -f 'thread %g' 0 7)" ]
        [ "$stderr" = "kaio-run: error: talk.yaml:8: assertion failed: i < limit (\"over the limit\") block (1,0,0) thread (1,0,0)
kaio-run: note: it failed in 2 more threads" ]
        [ ! -e y.npy ]
    done
}

@test "an assertion shows the line of the spec where that can be read" {
    kernel >k.yaml <<'END'
u32 i = blockIdx.x * blockDim.x + threadIdx.x;
assert(i < 7);
if (i < n) y[i] = i;
END
    kaio-emit k.yaml >k.ptx
    run -3 --separate-stderr cpu k.ptx n=8
    [ "$stderr" = "k.yaml:8:3: error: assertion failed: i < 7 block (1,0,0) thread (3,0,0)
    8 |   assert(i < 7);
      |   ^~~~~~~~~~~~~~" ]
    mkfifo pipe
    sed 's/k.yaml/pipe/' k.ptx >p.ptx
    run -3 --separate-stderr cpu p.ptx n=8
    [ "$stderr" = "kaio-run: error: pipe:8: assertion failed: i < 7 block (1,0,0) thread (3,0,0)" ]
}

@test "an assertion whose record was lost still fails" {
    for device in cpu cuda; do
        run -3 --separate-stderr $device --messages=64 talk.ptx n=8 limit=0
        [[ "$stderr" == *"talk.yaml:8: assertion failed: i < limit"* ]]
        [[ "$stderr" == *"messages were lost: give --messages=224"* ]]
    done
}

@test "a thread whose assertion fails ends, and the others go on" {
    kernel >k.yaml <<'END'
u32 i = blockIdx.x * blockDim.x + threadIdx.x;
assert(i != 2, "two");
print("%u survives\n", i);
y[i] = i;
END
    kaio-emit k.yaml >k.ptx
    run -3 --separate-stderr cpu k.ptx n=4
    [ "$output" = "$(printf '%s survives\n' 0 1 3)" ]
}

@test "every conversion prints what C prints" {
    kernel >k.yaml <<'END'
i64 big = -5000000000;
print("%d %+5d|%-5d|%05d % d\n", -7, 7, 7, 7, 7);
print("%u %u %llu\n", 4000000000u, u8(200), u64(big));
print("%d %x %X %#o %c%c\n", big, -1, 255, 8, 72, i8(105));
print("%f %.2f %e %G %a\n", 1.5f, 2.0 / 3.0, f16(0.1h), 1e-10, 1.0f);
print("%8.3g|%-8g|%g %g %g\n", 3.14159f, 1.0f, inf, -inf, nan);
print("%d %u 100%%\ttab \x41 \"q\" \\ é\n", n == 4, true);
print("no arguments\n");
print("in two " /* rows */
      "rows %d\n", 1);
y[0] = 0;
END
    sed -i 's/block: 4/block: 1/; s/grid: .*/grid: 1/' k.yaml
    kaio-emit k.yaml >k.ptx
    run -0 --separate-stderr cpu k.ptx n=4 y=y.npy
    [ "$output" = "$(printf '%d %+5d|%-5d|%05d % d\n' -7 7 7 7 7
        printf '4000000000 200 18446744068709551616\n'
        printf '%d %x %X %#o Hi\n' -5000000000 4294967295 255 8
        printf '%f %.2f %e %G %s\n' 1.5 0.66666666666 0.0999755859375 1e-10 0x1p+0
        printf '%8.3g|%-8g|inf -inf nan\n' 3.14159 1
        printf '1 1 100%%\ttab A "q" \\ é\n'
        printf 'no arguments\nin two rows 1\n')" ]
}

@test "messages of inlined functions and of loops keep the thread's order" {
    cat >k.yaml <<'END'
kernel: k
params:
  y: out u32[n]
block: [2, 2]
grid: [2, 2, 2]
functions: |
  u32 loud(u32 v) {
    print("  v=%u\n", v);
    return v + 1;
  }
body: |
  print("block %u,%u,%u thread %u,%u\n", blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y);
  u32 v = loud(threadIdx.x);
  for (u32 i = 0; i < 2; i++) v = loud(v);
  if (threadIdx.x == 0) y[0] = 1;
END
    kaio-emit k.yaml >k.ptx
    [ "$(grep -c '//@   - {print' k.ptx)" = 2 ]
    run -0 --separate-stderr cpu k.ptx n=1 y=y.npy
    for bz in 0 1; do for by in 0 1; do for bx in 0 1; do for ty in 0 1; do for tx in 0 1; do
        printf 'block %s,%s,%s thread %s,%s\n' $bx $by $bz $tx $ty
        printf '  v=%s\n' $tx $((tx + 1)) $((tx + 2))
    done; done; done; done; done >want
    [ "$output" = "$(cat want)" ]
}

@test "what was printed before a fault is shown with it" {
    kernel >k.yaml <<'END'
print("before %u\n", threadIdx.x);
y[threadIdx.x + 1000] = 1;
END
    kaio-emit k.yaml >k.ptx
    run -3 --separate-stderr cpu k.ptx n=4
    [ "$output" = "$(seq -f 'before %g' 0 3)" ]
    [[ "$stderr" == *"element 1000 of 'y'"* ]]
}

@test "--time prints messages once" {
    run -0 --separate-stderr cpu --time=2 --quiet talk.ptx n=4 y=y.npy
    [ "$(grep -c '^thread' <<<"$output")" = 4 ]
}

@test "printf() and assert() of CUDA C++: once, in front of the results, also where the launch fails" {
    system() {
        kaio-run -d cpu --entry "$1" --grid 1 --block 64 --arg 'inout u32[64]=@arange' "${@:2}" "$KAIO_SRCDIR/tests/ptx-run/system.ptx"
    }
    run -0 --separate-stderr system talk --time=2
    [[ "${lines[0]}" = "3:  0.75|abc     |00038f73|"* ]]
    [ "${lines[1]}" = "no more" ]
    [[ "${lines[3]}" = "arg1  u32[64]  0 1 2 13 "* ]]
    [ "$(grep -c '^no more' <<<"$output")" = 1 ]
    run -3 --separate-stderr system check
    [ "$output" = "" ]
    [[ "$stderr" == *"assertion 'x[threadIdx.x] < 50 && \"too large\"' failed at system.cu:"*"thread (50,0,0)"* ]]
}

@test "kaio-verify: an assertion that fails is a failed row, and what is printed goes to standard error" {
    cat >k.yaml <<'END'
kernel: k
params:
  x: in f32[n]
  y: out f32[n]
block: 32
grid: ceil_div(n, 32)
body: |
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (i == 0) print("n is %u\n", n);
  assert(n < 50, "too many");
  y[i] = x[i] + x[i];
reference: |
  y[i] = 2 * x[i]
cases:
  small: {n: 40}
  large: {n: 60}
END
    run -0 --separate-stderr kaio-verify --run -d cpu k.yaml small
    [[ "$stderr" == "n is 40"* ]]
    run -1 --separate-stderr kaio-verify --run -d cpu --fill=normal k.yaml
    [[ "$output" == *"FAIL"*"k/large"*"assertion failed: n < 50"* ]]
    [[ "$stderr" == *"k.yaml:11:3: error: assertion failed: n < 50 (\"too many\") block (0,0,0) thread (0,0,0)"* ]]
    # lost ones are told although the case passes
    sed 's/if (i == 0) print("n is %u\\n", n)/print("%u\\n", i)/' k.yaml >many.yaml
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=normal --code=generic --messages=64 many.yaml small
    [ "$stderr" = "$(seq 0 3)
kaio-verify: warning: k/small: 36 messages were lost: give --messages=640" ]
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=normal --code=generic --messages=640 many.yaml small
    [ "$stderr" = "$(seq 0 39)" ]
}

@test "a contract with bad messages is refused" {
    bad() {
        sed "s|^//@   - {print.*|//@   - $1|" talk.ptx >bad.ptx
        run -2 --separate-stderr cpu bad.ptx n=4
        [[ "$stderr" == *"error: $2"* ]] || { echo "said: $stderr"; return 1; }
    }
    bad '{print: "%s", types: [u32]}' 'conversion 1 of this format: there are no strings to print'
    bad '{print: "%d %d", types: [u32]}' 'conversion 2 of this format: has no type'
    bad '{print: "%d", types: [u32, u32]}' 'the format has 1 conversions, not 2'
    bad '{print: "%f", types: [u32]}' 'conversion 1 of this format: prints a float'
    bad '{print: "%n", types: [u32]}' 'conversion 1 of this format: %n stores'
    bad '{print: "x", types: [f16]}' 'an argument of a message is'
    bad '{print: [a]}' "'print' is a text"
    bad '{types: [u32]}' 'a message is a map with print or assert'
    bad '{print: x, line: -1}' "'line' is a number"
    bad '{print: x, lines: 1}' "unknown key 'lines'; did you mean 'line'?"
    bad x 'a message is a map with print or assert'
}

@test "a kernel that writes over its messages is told so" {
    # a record with a number that no message has
    sed 's/or.b32  .*, 1024;/or.b32 %r4, %r2, 9216;/' talk.ptx >bad.ptx
    cmp -s talk.ptx bad.ptx && return 1
    run -3 --separate-stderr cpu bad.ptx n=4
    [[ "$stderr" == *"the kernel wrote over the buffer of its messages"* ]]
}

@test "an assertion is told before what follows from it" {
    kernel >k.yaml <<'END'
shared u32 t[4];
u32 i = blockIdx.x * blockDim.x + threadIdx.x;
assert(i < n);
t[threadIdx.x] = i;
__syncthreads();
y[i] = t[3 - threadIdx.x];
END
    kaio-emit -g k.yaml >k.ptx
    run -0 --separate-stderr cpu --check k.ptx n=8
    run -1 --separate-stderr cpu --check k.ptx n=6
    [ "${stderr_lines[0]}" = "k.yaml:9:3: error: assertion failed: i < n block (1,0,0) thread (2,0,0)" ]
    [[ "$stderr" == *"barrier is not reached by every thread"* ]]
}
