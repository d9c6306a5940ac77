# The math library as emitted and run is the math library as C compiles it, to the bit: nothing is
# contracted, reordered or lost between the .k files and PTX. On a GPU the same holds (make check-gpu).
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    apply=$KAIO_BUILDDIR/tests/math/apply
}

# check TYPE: every function of the language that the library has
check() {
    local type=$1 name nargs tried=0
    "$apply" inputs "$type" 1 >x.bin
    "$apply" inputs "$type" 2 >y.bin
    local n=$(($(stat -c %s x.bin) / ${type#f} * 8))
    while read -r name nargs; do
        if [ "$nargs" = 1 ]; then
            printf 'kernel: t\nparams:\n  x: in %s[n]\n  r: out %s[n]\ncompute: r[i] = %s(x[i])\n' \
                "$type" "$type" "$name" >t.yaml
            set -- x=x.bin
            "$apply" "$name" "$type" x.bin >want.bin
        else
            printf 'kernel: t\nparams:\n  x: in %s[n]\n  y: in %s[n]\n  r: out %s[n]\ncompute: r[i] = %s(x[i], y[i])\n' \
                "$type" "$type" "$type" "$name" >t.yaml
            set -- x=x.bin y=y.bin
            "$apply" "$name" "$type" x.bin y.bin >want.bin
        fi
        kaio-emit t.yaml >t.ptx
        kaio-run -q -d "${KAIO_TEST_DEVICE:-cpu}" t.ptx n="$n" "$@" r=got.bin
        echo "# $name $type"
        "$apply" same "$type" want.bin got.bin
        tried=$((tried + 1))
    done < <("$apply" list)
    [ "$tried" -ge 24 ]
}

@test "the functions in f32 give the same bits as their source in C" {
    check f32
}

@test "the functions in f64 give the same bits as their source in C" {
    check f64
}

@test "calls whose results are rounded to 16 bits at once take the variants for that" {
    local name type tried=0 strict
    "$apply" inputs f32 1 >x.bin
    local n=$(($(stat -c %s x.bin) / 4))
    while read -r name; do
        for type in f16 bf16; do
            for strict in default strict; do
                printf 'kernel: t\nparams:\n  x: in f32[n]\n  r: out %s[n]\ncompute: r[i] = %s(x[i])\nmath: %s\n' \
                    "$type" "$name" "$strict" >t.yaml
                kaio-emit t.yaml >t.ptx
                kaio-run -q -d "${KAIO_TEST_DEVICE:-cpu}" t.ptx n="$n" x=x.bin r=got.bin
                "$apply" "$name$([ $strict = strict ] || echo _half)" f32 x.bin >full.bin
                "$apply" "$type" f32 full.bin >want.bin
                echo "# $name $type $strict"
                cmp want.bin got.bin
                tried=$((tried + 1))
            done
        done
    done < <("$apply" halves)
    [ "$tried" -ge 32 ]
}

# variants EQUATION...: how many calls take the variant in a kernel of these
variants() {
    printf 'kernel: t\nparams: {x: "in f32[n]", u: "in f32[n]", y: "out f32[n]", r: "out f16[n]"}\ncompute: |\n' >t.yaml
    printf '  %s\n' "$@" >>t.yaml
    kaio-emit --explain -v t.yaml | grep -c 'variant for results rounded to 16 bits'
}

@test "calls in an intermediate are rounded at once if all that reads it is" {
    [ "$(variants 'r[i] = silu(x[i]) * u[i]' 'y[i] = 0')" = 1 ]
    [ "$(variants 'h[i] = silu(x[i])' 'r[i] = h[i] * u[i]' 'y[i] = 0')" = 1 ]
    [ "$(variants 'h[i] = silu(x[i])' 'g[i] = -h[i]' 'r[i] = g[i] * h[i]' 'y[i] = f16(h[i] / u[i])')" = 1 ]
    # one reader keeps it, or adds to it, or has it through one that does
    [ "$(variants 'h[i] = silu(x[i])' 'r[i] = h[i] * u[i]' 'y[i] = h[i]')" = 0 ]
    [ "$(variants 'h[i] = silu(x[i])' 'r[i] = (h[i] + 1) * u[i]' 'y[i] = 0')" = 0 ]
    [ "$(variants 'h[i] = silu(x[i])' 'g[i] = -h[i]' 'r[i] = h[i] * u[i]' 'y[i] = g[i]')" = 0 ]
    # what the oracle allows is what was computed
    variants 'h[i] = exp(x[i])' 'r[i] = h[i] * u[i]' 'y[i] = x[i]'
    kaio-verify --run -d cpu t.yaml n=5000
}

# little VALUE...: 64-bit integers, little-endian
little() {
    local v i
    for v in "$@"; do
        for i in 7 6 5 4 3 2 1 0; do
            printf '%b' "\\x${v:2*i:2}"
        done
    done
}

# The known answers of the authors' library Random123 (kat_vectors, philox4x32 10), words in ascending order.
@test "philox gives the published test vectors" {
    cat >k.yaml <<'END'
kernel: k
params:
  seed: in u64[n]
  low: in u64[n]
  high: in u64[n]
  w: out u32[n, 4]
block: 32
grid: ceil_div(n, 32)
body: |
  u32 i = threadIdx.x;
  if (i >= n) return;
  w[i, 0] = philox(seed[i], low[i], high[i]).x;
  w[i, 1] = philox(seed[i], low[i], high[i]).y;
  w[i, 2] = philox(seed[i], low[i], high[i]).z;
  w[i, 3] = philox(seed[i], low[i], high[i]).w;
END
    little 0000000000000000 ffffffffffffffff 299f31d0a4093822 >seed.bin
    little 0000000000000000 ffffffffffffffff 85a308d3243f6a88 >low.bin
    little 0000000000000000 ffffffffffffffff 0370734413198a2e >high.bin
    kaio-emit k.yaml >k.ptx
    [ "$(grep -c mul.hi k.ptx)" = 20 ] # the four calls are one
    kaio-run -q -d "${KAIO_TEST_DEVICE:-cpu}" k.ptx n=3 seed=seed.bin low=low.bin high=high.bin w=w.bin
    [ "$(od -An -v -tx4 w.bin)" = " 6627e8d5 e169c58d bc57ac4c 9b00dbd8
 408f276d 41c83b0e a20bc7c6 6d5451fd
 d16cfe09 94fdcceb 5001e420 24126ea1" ]
}

@test "normal gives the same bits as its source in C" {
    printf 'kernel: t\nparams:\n  z: out f32[n]\ncompute: z[i] = normal(42, i)\n' >t.yaml
    kaio-emit t.yaml >t.ptx
    kaio-run -q -d "${KAIO_TEST_DEVICE:-cpu}" t.ptx n=100000 z=got.bin
    "$KAIO_BUILDDIR"/tests/math/random --write 100000 >want.bin
    cmp want.bin got.bin
}

@test "kaio-verify knows the random numbers, in equations and beside a body" {
    cat >k.yaml <<'END'
kernel: draw
params:
  u: out f32[n]
  z: out f32[n]
  w: out u32[n]
  seed: u64 = 42
compute: |
  u[i] = uniform(seed, i)
  z[i] = normal(seed, i, 3)
  w[i] = philox(seed, i * i).y ^ philox(7, i, seed).w
cases:
  small: {n: 5000}
---
kernel: walk
params:
  x: in f32[n]
  z: out f32[n]
  seed: u64 = 1
block: 64
grid: ceil_div(n, 64)
body: |
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] > 0 ? x[i] + normal(seed, i) : uniform(seed, i, 1);
reference: |
  z[i] = x[i] > 0 ? x[i] + normal(seed, i) : uniform(seed, i, 1)
cases:
  small: {n: 5000}
END
    kaio-verify --run -d cpu k.yaml
    # of other numbers the reference is far off
    sed 's/: uniform(seed, i, 1);/: uniform(seed, i, 2);/' k.yaml >wrong.yaml
    run -1 kaio-verify --run -d cpu --kernel walk wrong.yaml
}

@test "kernels measure the errors that are documented, over a sample" {
    run -0 "$KAIO_SRCDIR/tests/math/ulp.sh" -d "${KAIO_TEST_DEVICE:-cpu}" --sample 30000
    [ "${#lines[@]}" -ge 50 ]
    # and a bound that does not hold is found
    mkdir -p src/lib/lang
    sed 's/^MATH(exp, 1, [0-9.]*/MATH(exp, 1, 0.5/; s/^FAST(sin, .*/FAST(sin, 0x1p-28, 0, 0, 0)/' \
        "$KAIO_SRCDIR/lib/lang/math.def" >src/lib/lang/math.def
    ulp=$KAIO_SRCDIR/tests/math/ulp.sh
    KAIO_SRCDIR=src run -1 "$ulp" -d cpu --sample 3000 exp sin fast_sin exp_half
    [ "$(grep -c 'ABOVE THAT' <<<"$output")" = 2 ]
    [ "${#lines[@]}" = 4 ]
}

@test "philox makes the numbers of @uniform" {
    cat >u.yaml <<'END'
kernel: u
params:
  y: out f32[n]
block: 64
grid: ceil_div(n, 64)
body: |
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  u32x4 w = philox(7, i / 4);
  u32 k = i % 4;
  y[i] = f32((k == 0 ? w.x : k == 1 ? w.y : k == 2 ? w.z : w.w) >> 8) * 0x1p-24f;
END
    kaio-emit u.yaml | kaio-run -q -d cpu n=1001 y=got.bin
    printf 'kernel: c\nparams:\n  x: in f32[n]\n  y: out f32[n]\ncompute: y[i] = x[i]\n' | kaio-emit |
        kaio-run -q -d cpu n=1001 x=@uniform:7 y=want.bin
    cmp want.bin got.bin
}
