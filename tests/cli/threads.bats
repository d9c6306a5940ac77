# What threads do together, in bodies: barriers, exchanges, reductions, atomics, clusters; on the simulator, and
# through ptxas where there is one.
bats_require_minimum_version 1.5.0

setup() {
    mkdir "$BATS_TEST_TMPDIR/work" # beside what bats keeps
    cd "$BATS_TEST_TMPDIR/work"
    ln -s "$KAIO_SRCDIR/tests/data" data
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || ptxas=
}

# A kernel over y: out TYPE[n] in blocks of BLOCK from a body on standard input.
kernel() {
    printf 'kernel: k\nparams:\n  y: out %s[n]\nblock: %s\ngrid: 1\n%sbody: |\n' "$1" "$2" "${3-}"
    sed 's/^/  /'
}

# The bytes of npy file $1 after its header, as unsigned 32-bit integers.
values() {
    od -An -v -tu4 -w4 -j$(($(od -An -tu2 -j8 -N2 "$1") + 10)) "$1" | tr -d ' ' | tr '\n' ' '
}

@test "every construct computes what its reference says, on every target" {
    for target in sm_70 sm_80 sm_90; do
        run -0 kaio-verify --run -d cpu -t $target data/threads.yaml
        [[ $output == *"passed, 0 failed, 0 skipped" ]]
    done
}

@test "ptxas accepts them" {
    [ -n "$ptxas" ] || skip "no ptxas"
    for target in sm_75 sm_80 sm_90; do
        kaio-emit -t $target data/threads.yaml >t.ptx
        "$ptxas" -arch=$target -o t.cubin t.ptx
    done
}

@test "every form of atom, red and ordered ld and st computes what it should" {
    for more in "sm_70" "sm_90 cluster bf16"; do
        [ -z "${KAIO_QUICK-}" ] || [ "$more" != sm_70 ] || continue
        # shellcheck disable=SC2086
        set -- $more
        bash data/atomics.sh "${@:2}" >forms.yaml
        run -0 kaio-verify --run -d cpu --code=generic -t "$1" forms.yaml
        [[ $output == *"passed, 0 failed, 0 skipped" ]]
    done
}

@test "ptxas accepts every form of atom, red and ordered ld and st" {
    [ -n "$ptxas" ] || skip "no ptxas"
    [ -z "${KAIO_QUICK-}" ] || skip "the same text as without sanitizers"
    # for a virtual architecture forms are parsed and checked; machine code is made of all of them once
    for more in "sm_75 compute_75 1100" "sm_80 compute_80 1100" "sm_90 sm_90 1600 cluster bf16"; do
        # shellcheck disable=SC2086
        set -- $more
        bash data/atomics.sh "${@:4}" | kaio-emit -t "$1" >forms.ptx
        "$ptxas" -O0 -arch="$2" -o forms.cubin forms.ptx
        forms=$(grep -oE '^[[:space:]]+(atom|red|ld\.(relaxed|acquire)|st\.(relaxed|release))[a-z0-9._]*' forms.ptx | sort -u | wc -l)
        [ "$forms" -ge "$3" ] || { echo "$1: $forms forms"; false; }
    done
}

@test "what a target lacks is named whole" {
    for form in 'atomic_add(&b[0], bf16(1))|atomic_add() of bf16 (order relaxed, scope gpu) needs sm_90' \
        'atomic_sub(&b[0], bf16x2(1, 2), order = release, scope = block)|atomic_sub() of bf16x2 (order release, scope block) needs sm_90' \
        'atomic_max(&f[0], 1, scope = cluster)|atomic_max() of f32 (order relaxed, scope cluster) needs sm_90' \
        'f[0] = load(&f[1], order = seq_cst, scope = cluster)|load() of f32 (order seq_cst, scope cluster) needs sm_90' \
        'store(&b[1], b[0], order = release, scope = cluster)|store() of bf16 (order release, scope cluster) needs sm_90' \
        'fence(order = acq_rel, scope = cluster)|the scope cluster needs sm_90' \
        'cluster_sync()|cluster_sync() needs sm_90' \
        'f[0] = f32(cluster_rank())|cluster_rank() needs sm_90' \
        'f[0] = f32(clusterIdx.y)|clusterIdx.y needs sm_90'; do
        printf 'kernel: k\nparams:\n  b: inout bf16[4]\n  f: inout f32[4]\nblock: 32\ngrid: 1\nbody: |\n  f[2] = f32(b[3]);\n  b[2] = bf16(1.0);\n  %s;\n' "${form%|*}" >k.yaml
        run -2 kaio-emit -t sm_80 k.yaml
        [[ ${lines[0]} == k.yaml:10:*": error: ${form#*|}; the target is sm_80" ]] || { echo "$output"; false; }
        kaio-emit -t sm_90 k.yaml >k.ptx
        [ -z "$ptxas" ] || "$ptxas" -arch=sm_90 -o k.cubin k.ptx
    done
    printf 'kernel: k\nparams:\n  y: out f32[n]\nblock: 32\ngrid: n\ncluster: 2\nbody: |\n  y[0] = 1;\n' >k.yaml
    run -2 kaio-emit -t sm_80 k.yaml
    [ "${lines[0]}" = "k.yaml:6:10: error: a cluster needs sm_90; the target is sm_80" ]
}

@test "seq_cst is a fence.sc before the access, as the memory model's mapping says" {
    kernel u32 32 >k.yaml <<'EOF'
u32 a = load(&y[0], order = seq_cst);
store(&y[1], a, order = seq_cst, scope = system);
u32 b = atomic_add(&y[2], 1, order = seq_cst, scope = block);
atomic_add(&y[3], b, order = release);
__threadfence();
EOF
    kaio-emit -t sm_70 k.yaml | grep -oE '(fence|ld|st|atom|red)\.[a-z0-9._]*' | grep -v param >got
    diff - got <<'EOF'
fence.sc.gpu
ld.acquire.gpu.global.b32
fence.sc.sys
st.relaxed.sys.global.b32
fence.sc.cta
atom.acquire.cta.global.add.u32
red.release.gpu.global.add.u32
fence.sc.gpu
EOF
}

@test "a call that acts is compiled once and only where it is written" {
    kernel u32 64 >k.yaml <<'EOF'
u32 t = threadIdx.x, a = __ballot_sync(0xffffffff, t % 3 == 0);
u32 b = __ballot_sync(0xffffffff, t % 3 == 0);
bool some = blockIdx.x > 5 && __syncthreads_or(t > 3);
u32 c = blockIdx.x == 0 ? warp_sum(t) : 7u;
clock();
y[t] = a + b + c + u32(some);
EOF
    run -2 kaio-emit k.yaml
    [[ $output == *"the value of clock() is not used; assign it"* ]]
    grep -v 'clock()' k.yaml | kaio-emit >k.ptx
    [ "$(grep -c 'vote.sync.ballot' k.ptx)" = 2 ]
    # both in a branch of their own
    awk '/bra/ { b = NR } /bar.red|redux/ { if (!b) exit 1; n++ } END { exit n != 2 }' k.ptx
    kaio-run -d cpu k.ptx n=64 y=y.npy
    [[ $(values y.npy) == "2454267522 "* ]] # 2 * 0x49249249 + 496
}

@test "the block that comes last sees what all others wrote" {
    cat >k.yaml <<'EOF'
kernel: k
params:
  x: in u32[blocks, 64]
  part: out u32[blocks]
  count: inout u32[1]
  total: out u32[1]
grid: blocks
block: 64
body: |
  shared bool last;
  u32 t = threadIdx.x, mine = block_sum(x[blockIdx.x, t]);
  if (t == 0) {
    store(&part[blockIdx.x], mine);
    last = atomic_inc(&count[0], gridDim.x - 1, order = acq_rel) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    u32 rest = 0;
    for (u32 b = t; b < blocks; b += 64)
      rest += load(&part[b], order = acquire);
    rest = block_sum(rest);
    if (t == 0) total[0] = rest;
  }
EOF
    kaio-emit k.yaml >k.ptx
    kaio-run -d cpu k.ptx blocks=100 x=@arange count=@zeros:count.npy total=total.npy
    [ "$(values total.npy)" = "20476800 " ] # 6400 * 6399 / 2
    [ "$(values count.npy)" = "0 " ]
}

@test "clusters are launched as the spec says" {
    cat >k.yaml <<'EOF'
kernel: k
params:
  y: out u32[blocks, 4]
grid: blocks
block: 32
cluster: size
require: [size <= 8]
params2: 0
EOF
    sed -i '/^params2/d; s/^  y:.*/&\n  size: u32/' k.yaml
    cat >>k.yaml <<'EOF'
body: |
  cluster_arrive();
  u32 b = blockIdx.x;
  cluster_wait();
  if (threadIdx.x == 0) {
    y[b, 0] = cluster_rank();
    y[b, 1] = cluster_size();
    y[b, 2] = clusterIdx.x;
    y[b, 3] = clusterDim.x * 10 + clusterDim.y;
  }
  cluster_sync();
EOF
    kaio-emit -t sm_90 k.yaml >k.ptx
    grep -qx '//@     cluster: \[size\]' k.ptx
    [ -z "$ptxas" ] || "$ptxas" -arch=sm_90 -o k.cubin k.ptx
    kaio-run -d cpu k.ptx blocks=4 size=2 y=y.npy
    [ "$(values y.npy)" = "0 2 0 21 1 2 0 21 0 2 1 21 1 2 1 21 " ]
    run -2 kaio-run -d cpu k.ptx blocks=5 size=2
    [[ $output == *"is not a multiple of the cluster"* ]]
}

@test "a kernel that is accepted never waits for a thread that does not come" {
    command -v python3 >/dev/null || skip "no python3"
    run -0 python3 "$KAIO_SRCDIR/tests/kernels/stuck.py" 3 150
    [[ $output == *" ran, 0 failed" ]]
}
