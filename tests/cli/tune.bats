# kaio-bench --tune, its cache, and who reads it, on a driver of our own (tests/fake_cuda.c) where the time of a launch depends on
# the threads of its blocks.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    cp "$KAIO_SRCDIR"/tests/data/bench/*.yaml .
    export KAIO_CUDA_LIB=$KAIO_BUILDDIR/tests/libfakecuda.so
    export KAIO_NVML_LIB=$KAIO_CUDA_LIB FAKE_CUDA_LOG=$BATS_TEST_TMPDIR/log
    # long enough that one execution makes a round
    export FAKE_CUDA_BLOCK_US=128:20000,256:40000,512:30000,1024:50000,64:60000 FAKE_CUDA_SM=90
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    cache=$XDG_CACHE_HOME/kaio/tuned.json
    quick="--runs=4 --time-per-round=2 -t sm_80"
}

column() {
    python3 -c 'import csv, sys
for row in csv.DictReader(sys.stdin): print(row[sys.argv[1]])' "$1"
}

# A Python expression over the cache's entries, e.
entries() {
    python3 -c 'import json, sys
top = json.load(open(sys.argv[1]))
assert top["kaio_tuned"] == 1
e = top["entries"]
print(eval(sys.argv[2]))' "$cache" "$1"
}

# The threads of a block in PTX on standard input.
block() {
    sed -n 's|^//@ *block: \[\([0-9]*\).*|\1|p'
}

@test "of large products by mma.sync tiles by turns are tried, of small ones not" {
    local nn=$KAIO_SRCDIR/specs/matmul/nn.yaml
    run -0 kaio-bench --dry-run --tune -t sm_80 "$nn" T=f16 m,n,k=4096
    [[ $output == *"{strategy: matmul, mma: sync, blocks: tiles}"* ]]
    [[ $output != *"blocks: multiprocessors}"* ]] # the default, which is tried first
    run -0 kaio-bench --dry-run --tune -t sm_80 "${nn/nn./int8_nt.}" m,n,k=4096
    [[ $output == *"{strategy: matmul, mma: sync, blocks: multiprocessors}"* ]]
    run -0 kaio-bench --dry-run --tune -t sm_80 "$nn" T=f16 m,n,k=512
    [[ $output != *"blocks:"* ]]
}

@test "--dry-run --tune says what would be tried: each code once, without a GPU" {
    KAIO_CUDA_LIB=/nonexistent run -0 kaio-bench --dry-run --tune twice.yaml T=f32 n=100000
    [[ ${lines[0]} =~ ^tune:\ twice\ T=f32\ n=100000:\ ([0-9]+)\ schedules\ and\ the\ built-in\ one$ ]]
    n=${BASH_REMATCH[1]}
    [ "$n" -ge 5 ] && [ "${#lines[@]}" = $((n + 1)) ]
    for line in "${lines[@]:1}"; do
        sed "s/^compute:/schedule: $line\n&/" twice.yaml >one.yaml
        kaio-emit -D T=f32 -D n=100000 one.yaml | grep -v '^//' | md5sum
    done >sums
    kaio-emit -D T=f32 -D n=100000 twice.yaml | grep -v '^//' | md5sum >>sums
    # launches differ where code does not
    [ "$(sort -u sums | wc -l)" -gt 3 ]
    run -0 kaio-bench --dry-run --tune --format=json twice.yaml T=f32 n=100000
    [ "$(python3 -c 'import json, sys; print(len(json.load(sys.stdin)["schedules"]))' <<<"$output")" = "$n" ]
    [ ! -e "$cache" ]
}

@test "--tune keeps the fastest schedule, and times it beside the built-in one" {
    run -0 --separate-stderr kaio-bench $quick --tune --format=csv twice.yaml T=f32 n=100000
    [[ $stderr == *"twice T=f32 n=100000: {strategy: map"*"block: 128"*", 2 times the speed of the built-in choice (of "*" schedules)"* ]]
    [ "$(column '/ built-in' <<<"$output" | cut -c1-3)" = 2 ] || [[ $(column '/ built-in' <<<"$output") =~ ^(1\.9|2\.0) ]]
    [ "$(entries 'len(e), e[0]["kernel"], e[0]["dims"], e[0]["types"], e[0]["device"], e[0]["target"], e[0]["code"]')" = \
        "(1, 'twice', {'n': 100000}, {'T': 'f32'}, 'Fake GPU 0', 'sm_80', 'fixed')" ]
    entries 'e[0]["schedule"]' | grep -q 'block: 128'
    entries '1.9 < e[0]["builtin_seconds"] / e[0]["seconds"] < 2.1 and e[0]["tried"] > 4' | grep -q True
}

@test "a second run takes it from the cache, --retune does not" {
    kaio-bench $quick --tune twice.yaml T=f32 n=100000
    first=$(grep -c '^load' log)
    rm log
    run -0 --separate-stderr kaio-bench $quick --tune twice.yaml T=f32 n=100000
    [[ $stderr == *"2 times the speed of the built-in choice (from the cache, of "* ]]
    [ "$(grep -c '^load' log)" = 2 ] # its code and the built-in one's
    [ "$first" -gt 6 ]
    # now another one is the fastest
    export FAKE_CUDA_BLOCK_US=128:20000,256:40000,512:10000,1024:50000,64:60000
    run -0 --separate-stderr kaio-bench $quick --retune twice.yaml T=f32 n=100000
    [[ $stderr == *"block: 512"*"4 times"*"(of "* ]]
    [ "$(entries 'len(e)')" = 1 ]
    entries 'e[0]["schedule"]' | grep -q 'block: 512'
}

@test "where nothing is faster the built-in choice stays, which is kept too" {
    export FAKE_CUDA_BLOCK_US=128:50000,256:10000,512:50000,1024:50000,64:60000
    run -0 --separate-stderr kaio-bench $quick --tune --format=csv twice.yaml T=f32 n=100000
    [[ $stderr == *"twice T=f32 n=100000: the built-in schedule, 1 times the speed"* ]]
    [ "$(entries 'e[0]["schedule"]')" = None ]
    kaio-emit -t sm_80 -D T=f32 -D n=100000 twice.yaml >plain.ptx
    kaio-emit -t sm_80 -D T=f32 -D n=100000 --tuned twice.yaml | cmp - plain.ptx
}

@test "kaio-emit --tuned: the schedule of the same dimensions, or of those within a factor of two" {
    kaio-bench $quick --tune twice.yaml T=f32 n=100000
    emit() { kaio-emit -t sm_80 -D T=f32 "$@" twice.yaml; }
    [ "$(emit -D n=100000 | block)" = 256 ]
    [ "$(emit -D n=100000 --tuned | block)" = 128 ]
    [ "$(emit -D n=100000 --tuned="$cache" | block)" = 128 ]
    [ "$(emit -D n=60000 --tuned | block)" = 128 ]
    [ "$(emit -D n=40000 --tuned | block)" = 256 ]
    [[ $(emit -D n=60000 --tuned --explain -v) == "twice: tuned on Fake GPU 0, for the nearest problem: {"*"block: 128"* ]]
    [[ $(emit -D n=40000 --tuned --explain -v) == "twice: not tuned: the cache has nothing for it"* ]]
    # all that was measured agrees: for any n
    [ "$(emit --tuned | block | sort -u)" = 128 ]
    # other types, targets, equations and emitters are other problems
    [ "$(kaio-emit -t sm_90 -D T=f32 -D n=100000 --tuned twice.yaml | block)" = 256 ]
    [ "$(kaio-emit -t sm_80 -D T=f16 -D n=100000 --tuned twice.yaml | block)" = 256 ]
    sed 's/2\.0/3.0/' twice.yaml >other.yaml
    run ! cmp -s other.yaml twice.yaml
    [ "$(kaio-emit -t sm_80 -D T=f32 -D n=100000 --tuned other.yaml | block)" = 256 ]
    # comments and names are not
    sed 's/^kernel: .*/# the same\nkernel: another/' twice.yaml >named.yaml
    [ "$(kaio-emit -t sm_80 -D T=f32 -D n=100000 --tuned named.yaml | block)" = 128 ]
    sed -i 's/"emitter": "[^"]*"/"emitter": "0.0.0"/' "$cache"
    [ "$(emit -D n=100000 --tuned | block)" = 256 ]
}

@test "kaio-emit --tuned: what depends on open dimensions is not guessed" {
    kaio-bench $quick --tune twice.yaml T=f32 n=100000
    FAKE_CUDA_BLOCK_US=128:20000,256:40000,512:10000,1024:50000 kaio-bench $quick --tune twice.yaml T=f32 n=300000
    run -0 kaio-emit -t sm_80 -D T=f32 --tuned --explain -v twice.yaml
    [[ ${lines[0]} == "twice: not tuned: what it has depends on dimensions that are not fixed; give them with -D" ]]
    [ "$(kaio-emit -t sm_80 -D T=f32 -D n=300000 --tuned twice.yaml | block)" = 512 ]
}

@test "kaio-emit --tuned without a cache, or with a schedule that is none: the built-in one" {
    kaio-emit -D T=f32 -D n=100000 twice.yaml >plain.ptx
    run -0 --separate-stderr kaio-emit -D T=f32 -D n=100000 --tuned -o out.ptx twice.yaml
    [ -z "$stderr" ]
    cmp out.ptx plain.ptx
    kaio-bench $quick --tune twice.yaml T=f32 n=100000
    for bad in '{strategy: row}' '{strategy: map, block: 7}' '{strategy: conjuring}' '{strategy' '{}}'; do
        sed "s/\"schedule\": \"[^\"]*\"/\"schedule\": \"$bad\"/" "$cache" >bad.json
        run -0 --separate-stderr kaio-emit -D T=f32 -D n=100000 --tuned=bad.json -o out.ptx twice.yaml
        [ "$stderr" = "kaio-emit: warning: twice: not tuned: the cache's $bad does not fit here" ]
        cmp out.ptx plain.ptx
        kaio-emit -D T=f32 -D n=100000 --tuned=bad.json --explain -v twice.yaml | grep -qF "twice: not tuned: the cache's $bad does not fit here"
        # which is searched for again, and then in the cache
        cp bad.json again.json
        run -0 --separate-stderr kaio-bench $quick --tune --tune-cache=again.json twice.yaml T=f32 n=100000
        [[ $stderr == *"warning: twice T=f32 n=100000: the cache's $bad does not fit here; searching again"*"block: 128"* ]]
        cmp again.json "$cache"
    done
    HOME='' XDG_CACHE_HOME='' run -2 kaio-emit -D T=f32 -D n=100000 --tuned twice.yaml
    [[ $output == *"neither XDG_CACHE_HOME nor HOME says where the cache is"* ]]
    HOME=$PWD XDG_CACHE_HOME='' run -0 kaio-emit -D T=f32 -D n=100000 --tuned twice.yaml
}

@test "kaio-bench --tuned times the cache's schedules and searches nothing" {
    kaio-bench $quick --tune twice.yaml T=f32 n=100000
    rm log
    run -0 --separate-stderr kaio-bench $quick --tuned --format=json twice.yaml T=f32 n=100000,40000
    [ "$(grep -c '^load' log)" = 4 ]
    python3 -c 'import json, sys
a, b = [json.loads(l) for l in sys.stdin]
assert "block: 128" in a["schedule"] and "schedule" not in b
assert 1.9 < a["results"][1]["ratio"]["median"] < 2.1 and a["results"][1]["name"] == "built-in"
assert "--tuned=" in a["repeat"]' <<<"$output"
    [[ $stderr == *"n=40000: the built-in schedule: the cache has nothing for it"* ]]
    run -0 kaio-bench --dry-run -t sm_80 --tuned twice.yaml T=f32 n=100000
    [[ $output == *", block 128"* ]]
    run -2 kaio-bench $quick --tune --tuned twice.yaml n=5
}

@test "a corrupt cache is named with its line, ignored, and kept aside when a new one is written" {
    mkdir -p "$(dirname "$cache")"
    while IFS='|' read -r where what text; do
        printf "$text" >"$cache"
        run -0 --separate-stderr kaio-emit -D T=f32 -D n=1000 --tuned -o out.ptx twice.yaml
        [[ $stderr == "$cache:$where: warning: "*"$what"*"this is left away"* ]] || { echo "$text: $stderr"; false; }
        rm -f "$cache".corrupt
        run -0 kaio-bench $quick --tune twice.yaml T=f32 n=1000
        [ "$(entries 'len(e)')" = 1 ]
        [ "$(cat "$cache.corrupt")" = "$(printf "$text")" ]
    done <<'LIST'
2:1||{"kaio_tuned": 1, "entries": [\n
1:1|this is no cache|[1, 2]
1:1|this is no cache|{"kaio_tuned": 2, "entries": []}
1:1|this is no cache|{"kaio_tuned": 1, "entries": {}}
1:1|this is no cache|words
1:1||\001\002
LIST
}

@test "a corrupt entry is named with its line, and the others stay" {
    kaio-bench $quick --tune twice.yaml T=f32 n=100000
    cp "$cache" good.json
    while IFS='|' read -r edit what; do
        { sed -n 1p good.json; sed -n 2p good.json | sed -E "$edit" | tr -d '\n'; echo ,; sed -n '2,$p' good.json; } >bad.json
        run -0 --separate-stderr kaio-emit -t sm_80 -D T=f32 -D n=100000 --tuned=bad.json -o out.ptx twice.yaml
        [[ $stderr == bad.json:2:*": warning: $what; this is left away"* ]] || { echo "$edit: $stderr"; false; }
        [ "$(block <out.ptx)" = 128 ]
    done <<'LIST'
s/"hash"/"hush"/|this entry has no 'hash'
s/"dims"/"sizes"/|this entry has no 'types' and 'dims'
s/"n": 100000/"n": -5/|this is no dimension
s/"T": "f32"/"T": "f33"/|this is no type
s/"seconds": [^,]*/"seconds": 0/|this is no time
s/"schedule": "[^"]*"/"schedule": "naive"/|this is no schedule
s/.*/7/|this is no entry
LIST
}

@test "a cache that cannot be read is named, ignored, and left as it is" {
    mkdir folder
    kaio-emit -t sm_80 -D T=f32 -D n=100000 twice.yaml >plain.ptx
    run -0 --separate-stderr kaio-emit -t sm_80 -D T=f32 -D n=100000 --tuned=folder -o out.ptx twice.yaml
    [[ $stderr == *"warning: cannot read 'folder': Is a directory; this is left away"* ]]
    cmp out.ptx plain.ptx
    run -0 --separate-stderr kaio-bench $quick --tuned=folder twice.yaml T=f32 n=100000
    [[ $stderr == *"warning: cannot read 'folder': Is a directory; this is left away"* ]]
    run -2 --separate-stderr kaio-bench $quick --tune --tune-cache=folder twice.yaml T=f32 n=100000
    [[ $stderr == *"error: cannot read 'folder'"* && $output == *"100000"* ]]
    [ -d folder ]
}

@test "several writers lose nothing, and leave no temporary files" {
    for n in 1000 2000 3000 4000 5000 6000; do
        kaio-bench --runs=1 --time-per-round=0.2 -t sm_80 --tune twice.yaml T=f32 n=$n >/dev/null 2>&1 &
    done
    wait
    [ "$(entries 'sorted(x["dims"]["n"] for x in e)')" = "[1000, 2000, 3000, 4000, 5000, 6000]" ]
    [ "$(ls "$(dirname "$cache")" | tr '\n' ' ')" = "tuned.json tuned.json.lock " ]
}

@test "a cache that cannot be written is an error after the search, and the row is there" {
    run -2 --separate-stderr kaio-bench $quick --tune --tune-cache=/proc/none/tuned.json --format=csv twice.yaml T=f32 n=1000
    [[ $stderr == *"cannot lock '/proc/none/tuned.json.lock'"* ]]
    [ "$(column 'median us' <<<"$output" | grep -c .)" = 1 ]
}

@test "a cache whose name is empty is refused before anything is timed" {
    run -2 --separate-stderr kaio-bench $quick --tune --tune-cache= twice.yaml T=f32 n=1000
    [[ -z $output && $stderr == "kaio-bench: error: option '--tune-cache' names no file; name one, or leave the option out"* ]]
    [ ! -e log ]
    run -2 --separate-stderr kaio-bench $quick --tuned= twice.yaml T=f32 n=1000
    [[ -z $output && $stderr == "kaio-bench: error: option '--tuned' names no file; name one, or leave the '=' out"* ]]
    run -2 --separate-stderr kaio-emit --tuned= -D T=f32 twice.yaml
    [[ -z $output && $stderr == "kaio-emit: error: option '--tuned' names no file; name one, or leave the '=' out"* ]]
}

@test "--tune: more candidates than a few, all of them right" {
    export FAKE_CUDA_US=matmul_f32:100000 FAKE_CUDA_MEMORY=1000000000
    unset FAKE_CUDA_BLOCK_US
    run -0 --separate-stderr kaio-bench $quick --tune --suite matmul --types f32 --format=csv m,n=128 k=32
    [ "$(column status <<<"$output")" = ok ]
    [[ $stderr != *'left out'* ]]
    [ "$(grep -c '^load' log)" -gt 64 ]
}

@test "--tune: what the driver's compiler refuses is said, and left out" {
    export FAKE_CUDA_JIT_REFUSES='block: [128'
    run -0 --separate-stderr kaio-bench $quick --tune --format=csv twice.yaml T=f32 n=100000
    [[ $stderr == *"warning: schedule {strategy: map, block: 128} is left out: the driver's compiler says: it is refused"* ]]
    [[ $stderr == *"twice T=f32 n=100000: {strategy: map"*"block: 512"*" times the speed of the built-in choice"* ]]
    # the built-in choice is another matter
    FAKE_CUDA_JIT_REFUSES='block: [256' run -2 --separate-stderr kaio-bench $quick --retune twice.yaml T=f32 n=100000
    [[ $stderr == *"error: the driver's compiler says: it is refused"*"twice T=f32 n=100000: not tuned: "* ]]
}

@test "--tune compiles in several threads, and finds the same with any number" {
    export FAKE_CUDA_JIT_REFUSES='block: [512'
    for threads in 1 2 16; do
        rm -f log
        FAKE_CUDA_JIT_MEET=$threads run -0 --separate-stderr kaio-bench $quick --tune --threads=$threads --tune-cache=$threads.json twice.yaml T=f32 n=100000
        echo "$stderr" >said.$threads
        sed -E 's/"(builtin_)?seconds": [^,]*//g' $threads.json >found.$threads
        cmp said.1 said.$threads
        cmp found.1 found.$threads
        [ "$(sed -n 's/ are compiled at a time//p' log | sort -n | tail -1)" = "${threads#1}" ] || [ "$threads" = 16 ]
        [ "$threads" != 16 ] || grep -q '^16 are compiled at a time$' log
        # in a driver that cannot do that, too
        [ "$(grep -c '^load' log)" = "$(grep -c '^unload' log)" ]
    done
    # shellcheck disable=SC2086
    $CC $BASE_CFLAGS -DFAKE_CUDA_OLD -I"$KAIO_BUILDDIR" -fPIC -shared -o old.so "$KAIO_SRCDIR/tests/fake_cuda.c" -lm -lpthread
    rm log
    KAIO_CUDA_LIB=$PWD/old.so FAKE_CUDA_VERSION=11070 run -0 --separate-stderr kaio-bench $quick --tune --threads=16 --tune-cache=old.json twice.yaml T=f32 n=100000
    run ! grep -q 'at a time' log
    cmp said.1 <(echo "$stderr")
}

@test "--tune that is interrupted keeps what it found until then" {
    FAKE_CUDA_JIT_MS=200 kaio-bench $quick --tune --threads=8 twice.yaml T=f32 n=1000,2000,3000,4000,5000,6000 >rows 2>said &
    for ((i = 0; i < 300; i++)); do
        [ -e "$cache" ] && [ "$(grep -c '"kernel"' "$cache")" -ge 2 ] && break
        sleep 0.1
    done
    kill -TERM $!
    wait $! || status=$?
    [ "$status" = 143 ]
    n=$(entries 'len(e)')
    [ "$n" -ge 2 ] && [ "$n" -lt 6 ]
    [ "$(ls "$(dirname "$cache")" | tr '\n' ' ')" = "tuned.json tuned.json.lock " ]
    run -0 --separate-stderr kaio-bench $quick --tune twice.yaml T=f32 n=1000,2000
    [ "$(grep -c 'from the cache' <<<"$stderr")" = 2 ]
}

@test "--tune on a terminal says what is being done" {
    cat >terminal.py <<'PY'
import os, pty, sys
out = b""
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
while True:
    try:
        part = os.read(fd, 4096)
    except OSError:
        break
    if not part:
        break
    out += part
sys.stdout.buffer.write(out)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
    TERM=xterm FAKE_CUDA_JIT_MS=200 run -0 python3 terminal.py kaio-bench $quick --tune --threads=4 twice.yaml T=f32 n=1000
    [[ $output =~ timing:\ 0/1\ .*\;\ compiling\ [0-9]+\ of\ [0-9]+\ schedules ]]
}

@test "--tune of an empty problem is a warning: there is nothing to launch" {
    run -0 --separate-stderr kaio-bench $quick --tune twice.yaml T=f32 n=0
    [[ $stderr == *"warning: twice T=f32 n=0: not tuned: nothing is launched"* ]]
    [[ $stderr != *error* ]]
}

@test "--tune of what has no schedules: a body" {
    cat >body.yaml <<'YAML'
kernel: twice
params:
  x: in f32[n]
  y: out f32[n]
block: 256
grid: ceil_div(n, 256)
body: |
  u32 i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
reference: |
  y[i] = 2 * x[i]
YAML
    run -0 --separate-stderr kaio-bench $quick --tune body.yaml n=1000
    [[ $stderr == *"twice n=1000: the built-in schedule, 1 times the speed of the built-in choice (of 1 schedules)"* ]]
}

@test "--tune of code that is given its dimensions: an entry for each problem" {
    kaio-bench $quick --generic --tune twice.yaml T=f32 n=100000
    FAKE_CUDA_BLOCK_US=128:20000,256:40000,512:10000,1024:50000 kaio-bench $quick --generic --tune twice.yaml T=f32 n=300000
    [ "$(entries 'sorted((x["code"], x["dims"]["n"]) for x in e)')" = "[('generic', 100000), ('generic', 300000)]" ]
    run -0 --separate-stderr kaio-bench $quick --generic --tune twice.yaml T=f32 n=100000
    [[ $stderr == *"block: 128"*"from the cache"* ]]
    # which says nothing of fixed code
    [ "$(kaio-emit -t sm_80 -D T=f32 -D n=100000 --tuned twice.yaml | block)" = 256 ]
    # nor of any n
    [[ $(kaio-emit -t sm_80 -D T=f32 --tuned --explain -v twice.yaml) == "twice: not tuned: what it has depends on dimensions"* ]]
}

@test "a tuned kernel is compared with a baseline like any other" {
    kaio-bench $quick --tune -o rows.json twice.yaml T=f32 n=1000
    run -0 kaio-bench $quick --tuned --baseline=rows.json twice.yaml T=f32 n=1000
    # without the schedule it is slower
    run -1 kaio-bench $quick --baseline=rows.json twice.yaml T=f32 n=1000
    [[ $output == *"twice T=f32 n=1000"*": 0.5"*" of its speed"* ]]
}

@test "a schedule for whose temps there is no memory is left out, and the search goes on" {
    FAKE_CUDA_MEMORY=$((12 << 20)) run -0 --separate-stderr kaio-bench $quick --tune --suite=matmul --types=f32 m,n,k=32
    [[ $stderr == *"is left out: the GPU has no memory left for the "* && $stderr == *"the speed of the built-in choice"* ]]
    [[ $stderr != *error* ]]
    [ "$(entries 'len(e)')" = 1 ]
}
