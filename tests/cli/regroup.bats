# Axes on which groups lie side by side, read by j / q and a * q + k, go the way of two axes (lower/regroup.h).
bats_require_minimum_version 1.5.0

load equations

group_norm() { # REQUIRE
    cat <<END
kernel: norm
params:
  x: in f32[n, c, h]
  gain: in f32[c]
  y: out f32[n, c, h]
$1
compute: |
  mu[b,g < 3] = mean[k < c/3, i](x[b, g*(c/3) + k, i])
  d[b,j,i]    = x[b,j,i] - (j / (c/3) < 3 ? mu[b, j / (c/3)] : 0.0)
  v[b,g < 3]  = mean[k < c/3, i](d[b, g*(c/3) + k, i] * d[b, g*(c/3) + k, i])
  y[b,j,i]    = d[b,j,i] * (j / (c/3) < 3 ? rsqrt(v[b, j / (c/3)] + 1e-5) : 0.0) * gain[j] + f32(j % (c/3))
cases:
  odd: {n: 2, c: 15, h: 7}
  one: {n: 3, c: 3, h: 2}
END
}

right() { # ARGS... for code of all sizes and of fixed ones
    for target in sm_70 sm_80 sm_90a; do
        run -0 kaio-verify --run -d cpu --check -t $target "$@"
        [[ $output == *"passed, 0 failed, 0 skipped" ]]
    done
}

@test "a group norm of channels on one axis is one launch that reads rows" {
    group_norm "require: c % 3 == 0" >k.yaml
    right k.yaml
    for sizes in "" "-D n=2 -D c=96 -D h=128"; do
        # shellcheck disable=SC2086
        run -0 kaio-emit --explain $sizes k.yaml
        [[ $output == *"norm: row"* && $output != *naive* && $output == *"no temps"* ]]
    done
}

@test "what is not known to be a multiple stays as it is written" {
    group_norm "" >k.yaml
    run -0 kaio-emit --explain k.yaml
    [[ $output != *"norm: row"* ]]
    run -0 kaio-verify --run -d cpu --check k.yaml n=2 c=16 h=3
}

@test "a convolution whose groups are quotients of its filters' number is a product for each group" {
    cat >k.yaml <<'END'
kernel: groups
types: {T: [f16, f32]}
params:
  x: in T[n, ci, h, w]
  k: in T[co, cg, 3, 3]
  bias: in f32[co]
  y: out T[n, co, h - 2, w - 2]
require: ci % cg == 0 && co % (ci / cg) == 0
compute: |
  y[b,o,i,j] = relu(sum[d,u,v](x[b, o / (co / (ci / cg)) * cg + d, i + u, j + v] * k[o,d,u,v]) + bias[o])
cases:
  odd: {n: 2, ci: 10, co: 6, cg: 5, h: 5, w: 6}
  wide: {n: 1, ci: 16, co: 32, cg: 8, h: 4, w: 10}
END
    right -D T=f16 k.yaml
    run -0 kaio-verify --run -d cpu --check -D T=f32 k.yaml
    for sizes in "" "-D n=16 -D ci=128 -D co=128 -D cg=64 -D h=34 -D w=34"; do
        # shellcheck disable=SC2086
        run -0 kaio-emit -t sm_90a --explain $sizes -D T=f16 k.yaml
        [[ $output == *"groups: matmul"*wgmma* && $output != *naive* ]]
    done
}

@test "groups that are a dimension of their own, and the index within one" {
    cat >k.yaml <<'END'
kernel: shuffle
params:
  x: in f32[n, g*f]
  s: in f32[g, f]
  y: out f32[n, g*f]
  t: out f32[n, g]
compute: |
  t[b,a] = max[k < f](x[b, a*f + k] * s[a,k])
  y[b,j] = x[b,j] * s[j / f, j % f] - t[b, j / f] + f32(j)
cases:
  odd: {n: 3, g: 5, f: 7}
END
    right k.yaml
}
