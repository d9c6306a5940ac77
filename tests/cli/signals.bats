# kaio-verify and kaio-bench: a signal ends them, whatever they are doing, and leaves no file behind.
bats_require_minimum_version 1.5.0
load signals

setup() {
    cd "$BATS_TEST_TMPDIR"
    ulimit -c 0
    export KAIO_CUDA_LIB=$KAIO_BUILDDIR/tests/libfakecuda.so
    export KAIO_NVML_LIB=$KAIO_CUDA_LIB
    cp "$KAIO_SRCDIR/tests/data/bench/twice.yaml" .
}

# A kernel whose 27e9 terms no library multiplies.
heavy() {
    printf '%s\n' 'kernel: heavy' 'params:' '  a: in f32[n, n]' '  b: in f32[n, n]' '  c: out f32[n, n]' \
        'cases:' '  big: {n: 3000}' 'compute: c[i, j] = sum[k](max(a[i, k] * b[k, j], exp(a[i, k])))'
}

# A kernel of 28,000 lines of PTX.
lengthy() {
    local k before=x
    printf '%s\n' 'kernel: lengthy' 'params:' '  x: in f32[n]' '  y: out f32[n]' 'compute: |'
    for ((k = 0; k < 100; k++)); do
        echo "  t${k}[i] = (sin(${before}[i] * $k) + cos(x[i] + $k)) * exp(x[i] / 3)"
        before=t$k
    done
    echo "  y[i] = ${before}[i]"
}

# --- kaio-verify ---

@test "while the reference of a long case is evaluated" {
    local sig
    heavy >heavy.yaml
    truncate -s 36000000 z.bin
    for sig in INT TERM QUIT; do
        interrupted $sig kaio-verify --sample=0 heavy.yaml n=3000 a=z.bin b=z.bin c=z.bin
    done
}

@test "while a long case runs" {
    local sig
    heavy >heavy.yaml
    for sig in INT TERM; do
        interrupted $sig kaio-verify --run -d cpu --all --code=generic heavy.yaml big
    done
}

@test "while kernels are emitted, each of which takes its time" {
    local sig
    lengthy >lengthy.yaml
    for sig in INT TERM; do
        interrupted $sig kaio-verify --run -d cpu --shapes=1000000 --code=fixed lengthy.yaml
    done
}

@test "while two files are compared, which have nothing to say before the end" {
    local sig
    truncate -s 400M z.bin
    for sig in INT TERM; do
        interrupted $sig kaio-verify --golden z.bin z.bin
    done
}

@test "while kaio-verify waits where it looks at no signal, after three seconds" {
    mkfifo pipe
    sleep 30 >pipe 3>&- &
    local writer=$!
    most=4 interrupted INT kaio-verify --run -d cpu pipe
    most=4 interrupted TERM kaio-verify pipe
    kill $writer
}

# --- kaio-bench ---

@test "while a dry run emits" {
    local sig
    lengthy >lengthy.yaml
    for sig in INT TERM QUIT; do
        interrupted $sig kaio-bench --dry-run lengthy.yaml n=1000..10000+1
        interrupted $sig kaio-bench --dry-run --keep=. twice.yaml n=1000..10000+1
    done
    interrupted TERM kaio-bench --dry-run --tune lengthy.yaml n=1000..10000+1
}

@test "while kernels are timed, the file of their rows is not there yet" {
    local sig
    for sig in INT TERM QUIT; do
        meanwhile='.kaio-*' interrupted $sig kaio-bench --runs=4 -o rows.csv twice.yaml n=1000..10000+1
        [ ! -e rows.csv ]
    done
}

@test "while the inputs of a large problem are made, and its results checked" {
    heavy >heavy.yaml
    export FAKE_CUDA_MEMORY=$((1 << 30)) # so that a fast machine does not come to its end first
    interrupted INT kaio-bench --runs=4 --sample=10000000 -o rows.csv heavy.yaml n=3000
    interrupted TERM kaio-bench --runs=4 --sample=10000000 -o rows.csv heavy.yaml n=3000
}

@test "while schedules are tried" {
    interrupted INT kaio-bench --tune --tune-cache=./cache --runs=4 twice.yaml n=1000..10000+1
    interrupted TERM kaio-bench --tune --tune-cache=./cache --runs=4 twice.yaml n=1000..10000+1
}

@test "while kaio-bench waits for a spec" {
    mkfifo pipe
    sleep 30 >pipe 3>&- &
    local writer=$!
    interrupted INT kaio-bench --dry-run pipe
    interrupted TERM kaio-bench pipe
    kill $writer
}
