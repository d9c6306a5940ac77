# softmax[j](...), log_softmax[j](...) and logsumexp[j](...): what they stand for, and what comes of it.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    data=$KAIO_SRCDIR/tests/data/notations.yaml
}

# kernel NAME "PARAMETER..." "EQUATION..."
kernel() {
    printf 'kernel: k\nparams:\n' >"$1"
    printf '  %s\n' "${@:2:$#-2}" >>"$1"
    printf 'compute: |\n%s\n' "${@: -1}" >>"$1"
}

# The code for a spec, its name and those of intermediates apart.
code_of() {
    kaio-emit "${@:2}" "$1" | sed -e '/^\/\/@ source/d' -e 's/softmax_max/top/g; s/softmax_sum/total/g'
}

@test "a notation gives what the maxima and sums give that it is short for" {
    for target in sm_70 sm_90; do
        run -0 kaio-verify --run -d cpu --check -t $target "$data"
    done
    # judged by themselves, too: by what a spec has without another reference
    sed -e '/^kernel: recurrence/Q' -e '/^reference: |/,/^cases/{/^cases/!d}' "$data" | sed '$d' >own.yaml
    [ "$(grep -c '^kernel' own.yaml)" = 13 ]
    run -1 grep '^reference' own.yaml
    run -0 kaio-verify --run -d cpu own.yaml
}

@test "softmax in one line is compiled to the code of the equations in full" {
    # softmax.yaml has the equations in full, log_softmax.yaml the one line
    sed -e '/^compute: |/,/^cases/{/^cases/!d}' -e 's/^cases:/compute: y[r, c] = softmax[c](x[r, c])\n&/' \
        "$KAIO_SRCDIR/specs/norm/softmax.yaml" >softmax.yaml
    sed '/^compute:/c\
compute: |\
  top[r] = max[c](x[r, c])\
  total[r] = sum[c](exp(x[r, c] - top[r]))\
  y[r, c] = (x[r, c] - top[r]) - log(total[r])' "$KAIO_SRCDIR/specs/norm/log_softmax.yaml" >log_softmax.yaml
    for name in softmax log_softmax; do
        for options in "-t sm_70" "-D T=bf16" "-t sm_90a -D T=f32" "-D cols=1024"; do
            # shellcheck disable=SC2086 # words
            code_of $name.yaml $options >one
            # shellcheck disable=SC2086 # words
            code_of "$KAIO_SRCDIR/specs/norm/$name.yaml" $options >other
            [ "$(grep -c ';$' one)" -gt 100 ]
            cmp one other
        done
    done
    run -0 --separate-stderr kaio-emit --explain softmax.yaml
    [[ $output == *"softmax: row"*"no temps"* ]]
}

@test "an attention's softmax has the stages of its maximum and its sum" {
    kernel one.yaml 's: in f32[m, n]' 'v: in f32[n, d]' 'o: out f32[m, d]' \
        '  o[i, c] = sum[j](softmax[j](s[i, j]) * v[j, c])'
    kernel full.yaml 's: in f32[m, n]' 'v: in f32[n, d]' 'o: out f32[m, d]' \
        '  top[i] = max[j](s[i, j])
  e[i, j] = exp(s[i, j] - top[i])
  total[i] = sum[j](e[i, j])
  o[i, c] = sum[j](e[i, j] / total[i] * v[j, c])'
    cmp <(code_of one.yaml) <(code_of full.yaml)
}

@test "notations of the same expression share what is the same in both" {
    kernel k.yaml 'q: in f16[m, d]' 'k: in f16[n, d]' 'v: in f16[n, d]' 'o: out f16[m, d]' 'lse: out f32[m]' 'w: f32' \
        '  o[i, c] = sum[j](f16(softmax[j](sum[a](q[i, a] * k[j, a]) * w)) * v[j, c])
  lse[r] = logsumexp[b](sum[e](q[r, e] * k[b, e]) * w)'
    # one kernel has both
    run -0 --separate-stderr kaio-emit --explain k.yaml
    [ "$(grep -c '^  k[a-z_]*: ' <<<"$output")" = 1 ]
    [[ $output == *'  k: chain'* ]]
    # without tensor cores the scores, their maximum and their sum, once each
    run -0 --separate-stderr kaio-emit --explain -t sm_75 k.yaml
    [[ $output == *'temps: $softmax_arg 4 * m * n bytes, $softmax_max 4 * m bytes, $softmax_sum 4 * m bytes; '* ]]
    [[ $output != *logsumexp_* ]]
}

@test "notations of expressions that differ in a function, a number or a row share nothing" {
    kernel k.yaml 'x: in f32[m, n]' 'y: out f32[m]' 'z: out f32[m]' 'w: out f32[m]' 'u: out f32[m]' 'v: out f32[m]' \
        '  y[i] = logsumexp[j](exp(x[i, j]))
  z[i] = logsumexp[j](fast_exp(x[i, j]))
  w[i] = logsumexp[j](x[m - 1 - i, j] * 2.5)
  u[i] = logsumexp[j](x[m - 1 - i, j] * 3.5)
  v[i] = logsumexp[j](x[i, j] * 3.5)
reference: |
  y[i] = log(sum[j](exp(exp(x[i, j]))))
  z[i] = log(sum[j](exp(fast_exp(x[i, j]))))
  w[i] = log(sum[j](exp(x[m - 1 - i, j] * 2.5)))
  u[i] = log(sum[j](exp(x[m - 1 - i, j] * 3.5)))
  v[i] = log(sum[j](exp(x[i, j] * 3.5)))'
    run -0 kaio-verify --run -d cpu k.yaml m=5 n=9
    kaio-emit k.yaml | grep -q 'ex2\.approx'
    sed -i '/fast_exp/d; /z: out/d' k.yaml
    run -1 grep 'ex2\.approx' <(kaio-emit k.yaml)
}

@test "an intermediate of a notation has a name that the spec does not have" {
    kernel k.yaml 's: in f32[m, n]' 'v: in f32[n, d]' 'softmax_max: in f32[m]' 'o: out f32[m, d]' 'softmax_sum: out f32[m]' \
        '  o[i, c] = sum[j](softmax[j](s[i, j]) * v[j, c])
  softmax_sum[i] = softmax_max[i]'
    run -0 --separate-stderr kaio-emit k.yaml
    [[ $output == *'$softmax_max2: f32[m]'*'$softmax_sum2: f32[m]'* ]]
    run -0 kaio-verify --run -d cpu k.yaml m=5 n=9 d=3
}

@test "the reference computes a row's sum once, not for each element" {
    kernel k.yaml 'x: in f32[m, n]' 'y: out f32[m, n]' 'z: out f32[m]' \
        '  y[i, j] = softmax[j](log_softmax[j](x[i, j]))
  z[i] = logsumexp[j](x[i, j])'
    run -0 timeout 100 kaio-verify --run -d cpu --sample=0 k.yaml m=32 n=16384
    [[ $output == *"y f32[32, 16384]: 524288 compared"* ]]
}

# A condition may be all that keeps a read in range: what is behind it is not computed ahead of it.
@test "a notation under a condition reads no more than the condition lets it" {
    run -0 kaio-verify --run -d cpu --check --kernel=guarded "$data"
    kernel k.yaml 'x: in f32[m, n]' 'z: out f32[q, n]' '  z[i, j] = i < m ? softmax[j](x[i + 0, j]) : 0'
    run -0 kaio-verify --run -d cpu --check k.yaml m=5 n=9 q=7
    sed -i 's/i < m ?/i < q ?/' k.yaml
    run -2 kaio-verify --run -d cpu --check k.yaml m=5 n=9 q=7
    [[ $output == *"'x' is 5, outside 0..5"* ]]
}

@test "mean, var, std and norms are what the sums give, and layer norm has the code of the equations in full" {
    kernel all.yaml 'x: in f32[r, c]' 'a: out f32[r]' 'b: out f32[r]' 'd: out f32[r]' 'e: out f32[r]' 'f: out f32[]' \
        '  a[i] = mean[k](x[i, k])
  b[i] = var[k < c / 2](x[i, k + 1] * 2)
  d[i] = std[k](x[i, k])
  e[i] = norm1[k](x[i, k] - a[i])
  f = norm2[i, k](x[i, k])'
    cat all.yaml - >both.yaml <<'Y'
reference: |
  a[i] = sum[k](x[i, k]) / c
  u[i] = sum[k < c / 2](x[i, k + 1] * 2) / (c / 2)
  b[i] = sum[k < c / 2]((x[i, k + 1] * 2 - u[i]) * (x[i, k + 1] * 2 - u[i])) / (c / 2)
  d[i] = sqrt(sum[k]((x[i, k] - a[i]) * (x[i, k] - a[i])) / c)
  e[i] = sum[k](abs(x[i, k] - a[i]))
  f = sqrt(sum[i, k](x[i, k] * x[i, k]))
cases:
  small: {r: 5, c: 67}
Y
    run -0 kaio-verify --run -d cpu --check both.yaml
    kernel one.yaml 'x: in f32[r, c]' 'y: out f32[r, c]' \
        '  y[i, j] = (x[i, j] - mean[k](x[i, k])) * rsqrt(var[k](x[i, k]) + 1e-5)'
    kernel full.yaml 'x: in f32[r, c]' 'y: out f32[r, c]' \
        '  m[i] = sum[k](x[i, k]) / c
  v[i] = sum[k]((x[i, k] - m[i]) * (x[i, k] - m[i])) / c
  y[i, j] = (x[i, j] - m[i]) * rsqrt(v[i] + 1e-5)'
    for options in "-t sm_80" "-t sm_90a -D c=1024"; do
        # shellcheck disable=SC2086 # words
        kaio-emit $options one.yaml | sed '/^\/\/@ source/d' >one
        # shellcheck disable=SC2086 # words
        kaio-emit $options full.yaml | sed '/^\/\/@ source/d' >other
        [ "$(grep -c ';$' one)" -gt 100 ]
        cmp one other
    done
}

@test "mean and its kin may be names of tensors, and say what they lack" {
    kernel k.yaml 'x: in f32[r, c]' 'y: out f32[r, c]' 'n: in i32[c]' \
        '  mean[i] = mean[k](x[i, k])
  var[i] = max[k](x[i, k]) * n[0]
  y[i, j] = x[i, j] - mean[i] * (var[i])'
    run -0 kaio-emit k.yaml
    kernel ints.yaml 'n: in i32[c]' 'y: out f32[]' '  y = mean[k](n[k])'
    run -2 kaio-emit ints.yaml
    [[ $output == *"mean takes floats, and this is i32; write f32(...)"* ]]
    kernel nested.yaml 'x: in f32[r, r]' 'y: out f32[]' '  y = var[i, j in 0..i + 1](x[i, j])'
    run -2 kaio-emit nested.yaml
    [[ $output == *"the range of 'j' can't depend on 'i', which var runs through"* ]]
}

@test "an intermediate of a reduction that the results read at another place is stored" {
    kernel k.yaml 'x: in f32[r, c]' 'y: out f32[r, c]' \
        '  square = sum[i, j](x[i, j] * x[i, j])
  length = sqrt(square)
  y[i, j] = x[i, j] / length'
    run -0 kaio-emit --explain k.yaml
    [[ $output == *"k_length: reduce"*"k: map"* ]]
    run -0 kaio-verify --run -d cpu --check k.yaml
}

@test "a norm over channels computes its sum once, with channels that are fixed, too" {
    kernel k.yaml 'x: in f32[n, c, p]' 'y: out f32[n, c, p]' \
        '  y[b, k, i] = x[b, k, i] * rsqrt(sum[q](x[b, q, i] * x[b, q, i]) / c + 1e-5)'
    for options in "" "-D c=20000" "-D n=2 -D c=20000 -D p=100"; do
        # shellcheck disable=SC2086 # words
        run -0 kaio-emit --explain $options k.yaml
        [[ $output == *"k_sum: reduce"*"k: map"* ]]
    done
    for options in "-D c=8" "-D c=64" "-D n=2 -D c=64 -D p=100"; do
        # shellcheck disable=SC2086 # words
        run -0 kaio-emit --explain $options k.yaml
        [[ $output == *"k: reduce"*"whose terms they hold: read once"*"no temps"* ]]
    done
    run -0 kaio-verify --run -d cpu --check -D c=64 k.yaml
}

@test "the mean over a range that ends before it begins is NaN" {
    kernel k.yaml 'x: in f32[n]' 'y: out f32[n]' 'z: out f32[n]' '  y[i] = mean[k in i..min(n, 5)](x[k])
  z[i] = var[k in i..min(n, 5)](x[k])'
    kaio-emit -o k.ptx k.yaml
    run -0 kaio-run -d cpu k.ptx n=8 x=@ones
    [ "$(grep -c 'nan 3 inf 0$' <<<"$output")" = 2 ]
    run -0 kaio-verify --run -d cpu --check k.yaml n=8
}

@test "a mean counts its terms in i64, be extents numbers or dimensions" {
    kernel k.yaml 'x: in f32[31, n]' 'y: out f32[]' '  y = mean[i, j](x[i, j])'
    run -0 kaio-verify --run -d cpu k.yaml n=5
    # 2^-32
    kernel k.yaml 'x: in f32[65536, 65536]' 'y: out f32[]' '  y = mean[i, j](x[i, j])'
    run -0 kaio-emit k.yaml
    [[ $output == *", 0f2F800000;"* ]]
}

@test "what may be anything, or is -inf, has a bound behind a slope, too" {
    kernel k.yaml 'a: in f32[m, n]' 'b: in f32[n]' 'y: out f32[m]' '  y[i] = leaky_relu(sum[k](a[i, k] * b[k]), 0.5)'
    run -0 kaio-verify --run -d cpu --fill=extreme --code=generic k.yaml m=90 n=7
    [[ $output == *"1 where any value is allowed"* ]]
}

@test "at 0 a slope counts for nothing, be it infinite" {
    for type in f32 f64; do
        kernel k.yaml "x: in ${type}[n]" "y: out ${type}[n]" "z: out ${type}[n]" '  y[i] = leaky_relu(x[i], 1 / x[i])
  z[i] = elu(x[i], 1 / x[i])'
        kaio-emit -o k.ptx k.yaml
        run -0 kaio-run -d cpu k.ptx n=8 x=@zeros
        [ "$(grep -c 'nan 0 inf 0$' <<<"$output")" = 2 ]
        run ! kaio-verify --run -d cpu k.yaml n=8 x=@zeros
        [[ $output != *FAIL* ]]
    done
}
