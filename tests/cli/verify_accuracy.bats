# kaio-verify: the reference and the emitter agree, and what is documented of functions and types holds.
bats_require_minimum_version 1.5.0
load verify

# one kernel a function: kernel NAME TYPE EXPRESSION [MATH]
kernel() {
    printf -- '---\nkernel: k_%s_%s\nparams:\n  x: in %s[n]\n  y: in %s[n]\n  z: out %s[n]\n' "$1" "$2" "$2" "$2" "$2"
    [ -z "$4" ] || echo "math: $4"
    printf 'compute: |\n  z[i] = y[i] == 77 ? 0 : %s\ncases:\n  c: {n: 2000}\n' "$3"
}

@test "every function is within its documented error, in f32 and f64" {
    for type in f32 f64; do
        for f in exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan sinpi cospi tanh sinh cosh asin acos atan \
            asinh acosh atanh sqrt rsqrt cbrt rcp erf erfc sigmoid silu gelu gelu_tanh relu abs floor ceil trunc round rint; do
            kernel $f $type "$f(x[i])"
        done
        for f in atan2 pow fmod hypot copysign min max; do
            kernel $f $type "$f(x[i], y[i])"
        done
        kernel div $type "x[i] / y[i]"
        kernel third $type "x[i] / 3"
        kernel part $type "x[i] / 4194303 + y[i] / 768"
        kernel mix $type "exp(sin(x[i]) * 3 + y[i]) / (1 + abs(x[i] * y[i]))"
    done >functions.yaml
    for fill in normal edge; do
        run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=$fill functions.yaml
        [ "${lines[-1]}" = "100 passed, 0 failed, 0 skipped" ]
    done
}

@test "a subnormal quotient halfway between two goes to the even one where math is strict, to any of both else" {
    quotient() { # MATH: 9 of the least subnormal number, by 6
        printf 'kernel: k\nparams:\n  x: in f32[n]\n  y: out f32[n]\ncompute: |\n  y[i] = x[i] / 6\nmath: %s\n' "$1" >k.yaml
        kaio-emit k.yaml >k.ptx
        kaio-run -q -d cpu k.ptx n=1 x=@const:1.2611687e-44 y=y.npy
        tail -c +129 y.npy | od -An -v -tx4
    }
    [ "$(quotient strict)" = ' 00000002' ]
    [[ "$(quotient default)" = ' 0000000'[12] ]]
}

@test "the hardware's approximations are within the manual's bounds" {
    for f in exp exp2 log log2 log10 sin cos tan tanh sqrt rsqrt rcp sigmoid silu gelu_tanh; do
        kernel $f f32 "$f(x[i])" fast
    done >fast.yaml
    kernel pow f32 "pow(abs(x[i]), y[i])" fast >>fast.yaml
    kernel mix f32 "exp(sin(x[i]) * 3 + y[i]) / (1 + abs(x[i] * y[i]))" fast >>fast.yaml
    run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=normal fast.yaml
    [ "${lines[-1]}" = "17 passed, 0 failed, 0 skipped" ]
    run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=edge fast.yaml
}

@test "narrow floats round as they should" {
    for type in f16 bf16 e4m3 e5m2; do
        kernel mix $type "silu(x[i]) * y[i] + 0.5"
        kernel div $type "x[i] / y[i]"
        for f in exp exp2 tanh erf sigmoid silu gelu gelu_tanh; do
            kernel $f $type "$f(x[i])"
            kernel ${f}_scaled $type "(y[i] < 0 ? $f(x[i]) : -abs($f(y[i]))) * x[i] / y[i]"
        done
    done >narrow.yaml
    for fill in normal uniform edge; do
        run -0 --separate-stderr kaio-verify --run -d cpu --code=generic --fill=$fill narrow.yaml
    done
}

@test "a reference need not say which calls are rounded to 16 bits at once" {
    cat >body.yaml <<'END'
kernel: t
params:
  x: in f16[n]
  y: out f16[n]
grid: ceil_div(n, 256)
block: 256
body: |
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = f16(gelu(x[i]));
reference: |
  g[i] = gelu(x[i])
  y[i] = g[i]
cases:
  c: {n: 20000}
END
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=normal body.yaml
    # and the bound still has teeth: half an ulp and a little more
    [[ "${lines[0]}" =~ "PASS " ]]
}

@test "the emitter and the reference agree on every construct" {
    for fill in exact normal uniform edge; do
        run -0 --separate-stderr kaio-verify --run -d cpu --fill=$fill "$KAIO_SRCDIR/tests/data/constructs.yaml"
        [ "${lines[-1]}" = "58 passed, 0 failed, 0 skipped" ]
    done
}

@test "equations may call functions of variables, if and return" {
    cat >calls.yaml <<'YAML'
kernel: calls
params:
  x: in f32[n]
  y: out f32[n + 6]
  z: out f32[n]
functions: |
  i64 mirror(i64 i, i64 n) {
    if (i < 0) return -i;
    if (i >= n) return 2 * n - 2 - i;
    return i;
  }
  f32 twice(f32 a) {
    f32 b = a;
    b += a;
    if (b > 1.0f) { b = b * 0.5f; } else b = -b;
    return b;
  }
  f32 fold(f32 a) { return twice(twice(a)) + twice(a); }
compute: |
  y[i] = x[mirror(i - 3, n)]
  z[i] = fold(x[i] * 0.7)
cases:
  a: {n: 40}
---
kernel: written_out
params:
  x: in f32[n]
  z: out f32[n]
compute: |
  a[i] = x[i] * 0.7
  b[i] = a[i] + a[i] > 1 ? (a[i] + a[i]) * 0.5 : -(a[i] + a[i])
  c[i] = b[i] + b[i] > 1 ? (b[i] + b[i]) * 0.5 : -(b[i] + b[i])
  z[i] = c[i] + b[i]
cases:
  a: {n: 40}
YAML
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=normal,edge,extreme calls.yaml
    # the reference of the one is that of the other
    kaio-run -d cpu <(kaio-emit <(sed '/^---/,$d' calls.yaml) 2>/dev/null) n=40 x=@normal:3 y=y.npy z=z.npy
    run -0 --separate-stderr kaio-verify --kernel=written_out calls.yaml x=@normal:3 z=z.npy
    # too long to be written out in the equation
    cat >long.yaml <<'YAML'
kernel: lengthy
params:
  x: in f32[n]
  ids: in i64[n]
  y: out f32[n]
  k: out i64[n]
functions: |
  f32 often(f32 a) {
    f32 b = a;
    b = b * b + a; b = b * b - a; b = b * b + a; b = b * b - 0.5f;
    b = b * 0.5f + b * a; b = b * 0.5f + b * a; b = b * 0.5f + b * a; b = b * 0.5f + b * a;
    b = b * 0.5f + b * a; b = b * 0.5f + b * a; b = b * 0.5f + b * a; b = b * 0.5f + b * a;
    return b;
  }
  i64 bits(i64 a) {
    i64 b = a;
    b <<= 3u; b ^= a; b += b; b ^= b >> 2; b += b; b ^= b >> 5; b += b; b ^= b >> 3; b += b; b ^= b >> 7; b >>= 1u;
    b += b; b ^= b >> 1; b += b; b ^= b >> 1;
    return b;
  }
compute: |
  y[i] = often(x[i])
  k[i] = bits(ids[i])
cases:
  a: {n: 40}
YAML
    run -0 --separate-stderr kaio-verify --run -d cpu --fill=uniform long.yaml
    sed 's/f32 b = a;/f32 b = a; for (u32 i = 0; i < 3; i++) b = b * a;/' calls.yaml >loop.yaml
    run -2 kaio-verify --run -d cpu --kernel=calls loop.yaml
    [[ "$output" == *"the reference can't follow 'twice': it knows variables, if and return alone"* ]]
}

@test "tensor cores' products of subnormal factors are within the bound that their code says" {
    python3 - <<'PY'
import numpy
r = numpy.random.default_rng(1)
for e in 125, 130, 134:
    numpy.save(f"a{e}.npy", numpy.ldexp(r.standard_normal((64, 4)), -e).astype("f4"))
    numpy.save(f"b{e}.npy", numpy.ldexp(r.standard_normal((4, 64)), e - 100).astype("f4"))
PY
    for round in tf32 tf32_rn tf32_rz; do
        printf 'kernel: k\nparams: {a: "in f32[m, k]", b: "in f32[k, n]", c: "out f32[m, n]"}\n' >k.yaml
        printf 'schedule: {strategy: matmul, mma: tf32}\ncompute: "c[i,j] = sum[l](%s(a[i,l]) * %s(b[l,j]))"\n' $round $round >>k.yaml
        kaio-emit -t sm_80 k.yaml >k.ptx
        grep -q 'mma.sync.*tf32' k.ptx
        for e in 125 130 134; do
            kaio-run -q -d cpu k.ptx a=a$e.npy b=b$e.npy c=c.npy
            # 6 for each 4 terms, as the contract has it
            run -0 kaio-verify --truncation=6 k.yaml a=a$e.npy b=b$e.npy c=c.npy
            # and no more than that: a sum that is a thousandth off is wrong
            python3 -c 'import numpy; numpy.save("d.npy", numpy.load("c.npy") * numpy.float32(1.001))'
            run -1 kaio-verify --truncation=6 k.yaml a=a$e.npy b=b$e.npy c=d.npy
        done
    done
}

@test "products of a sum may be too large for f32 where math is strict, but for those that are converted" {
    python3 - <<'PY'
import numpy
a = numpy.full((64, 64), 0x7f00, "u2") # 2^127, times 2 and -2
b = numpy.full((64, 64), 0x4000, "u2")
b[1::2] = 0xc000
b[0] = 0x3f80
for name, of in ("a", a), ("b", b):
    of.tofile(name + ".bin")
    (of.astype("u4") << 16).tofile(name + "32.bin")
PY
    for how in 'matmul, mma: sync' naive; do
        printf 'kernel: k\nparams: {a: "in bf16[m, k]", b: "in bf16[k, n]", c: "out f32[m, n]"}\nmath: strict\n' >k.yaml
        printf 'schedule: {strategy: %s}\ncompute: "c[i,j] = sum[l](a[i,l] * b[l,j])"\n' "$how" >>k.yaml
        kaio-emit -t sm_80 k.yaml | kaio-run -q -d cpu a=a.bin b=b.bin c=c.bin m=64 k=64 n=64
        run kaio-verify k.yaml a=a.bin b=b.bin c=c.bin m=64 k=64 n=64
        [[ $output == *"4096 where any value is allowed"* && $output != *wrong* ]]
    done
    # f32() rounds, to infinity
    sed 's/bf16/f32/g; s/^schedule.*/schedule: {strategy: naive}/; s/a.i,l. \* b.l,j./f32(&)/' k.yaml >k32.yaml
    kaio-emit -t sm_80 k32.yaml | kaio-run -q -d cpu a=a32.bin b=b32.bin c=c.bin m=64 k=64 n=64
    run kaio-verify k32.yaml a=a32.bin b=b32.bin c=c.bin m=64 k=64 n=64
    echo "$output"
    [[ $output == *"4096 compared, all equal"* ]]
}

@test "a product that overflows on its way, in the order of the reference, may be a number" {
    printf 'kernel: k\nparams: {a: "in f64[m, n]", b: "in f64[n]", y: "out f64[m]"}\ncompute: "y[i] = prod[k](a[i, k] * b[k])"\n' >k.yaml
    run -0 kaio-verify --run -d cpu --fill=edge --code=generic k.yaml m=5 n=70
}

@test "small weights of a softmax that are stored in 16 bits may be a little less exact" {
    printf 'kernel: k\nparams: {a: "in bf16[m, n]", y: "out bf16[m, n]"}\ncompute: "y[i, j] = softmax[j](a[i, j] * 0.5)"\n' >k.yaml
    # e^-70, next to the middle of two numbers
    run -0 kaio-verify --run -d cpu --fill=edge --seed=21 --code=fixed k.yaml m=40 n=33
    [[ $output == *" of its bound at [19, 4]"* ]]
}

@test "subnormal factors behind a condition reach as far as others, and so do sums beyond f64" {
    cat >k.yaml <<'Y'
kernel: convolution4_16
params:
  x: in f16[H, W, N, C]
  k: in f16[C, 1, 3, F]
  y: out f32[W, N, 3 * H, F]
compute: |
  y[j,b,i,o] = sum[q,u,v]((i + 1 - u) % 3 == 0 ? k[q,v,u,o] * pad(x[(i + 1 - u) / 3,j - 3 * v,b,q], 0) : 0)
Y
    run -0 kaio-verify --run -d cpu --fill=extreme --code=generic k.yaml H=16 W=1 N=1 C=5 F=8
    # partial sums are infinite in one order, and NaN in another
    printf 'kernel: k\nparams: {x: "in f64[m, n]", y: "out f64[m]"}\ncompute: "y[i] = sum[k](x[i, k] + 1)"\n' >k.yaml
    python3 - <<'PY'
import numpy
most = numpy.finfo("f8").max
numpy.save("x.npy", numpy.array([[most, most, -numpy.inf, 1], [1, 2, 3, 4], [1, 1, 1, 1], [1, 5, 1, 7]]))
numpy.save("y.npy", numpy.array([-numpy.inf, 14, 8, 18]))
PY
    run -0 kaio-verify k.yaml x=x.npy y=y.npy
    [[ $output == *"1 where any value is allowed"* ]]
}

@test "a product that is an intermediate may become part of a sum, and is not infinite then" {
    cat >k.yaml <<'Y'
kernel: loss4_348
params:
  left: in f32[7, B, I]
  right: in f32[B, I]
  weight: in f32[I]
  y: out f32[7, B]
compute: |
  y[a, b] = mean[r]((softplus(left[a,b,r]) - left[a,b,r] * sigmoid(right[b,r])) * weight[r])
Y
    run -0 kaio-verify --run -d cpu --fill=extreme --code=generic k.yaml B=9 I=3
}
