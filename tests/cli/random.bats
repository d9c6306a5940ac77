# What the specs of specs/random estimate, against what it should tend to.
bats_require_minimum_version 1.5.0

setup() {
    specs=$KAIO_SRCDIR/specs/random
    cd "$BATS_TEST_TMPDIR"
}

@test "monte_carlo_pi is within four standard errors of pi" {
    kaio-emit "$specs/monte_carlo_pi.yaml" >pi.ptx
    for seed in 1 2; do
        kaio-run -q -d cpu pi.ptx blocks=64 points=64 seed=$seed hits=hits.bin
        # the standard error of the share of N points is sqrt(p (1 - p) / N), p = pi / 4
        od -An -v -tu4 -w4 hits.bin | awk '{ s += $1 } END {
            n = 64 * 256 * 64; pi = 4 * s / n; e = 4 * sqrt(0.785398 * 0.214602 / n)
            printf "%d blocks: %g, standard error %g\n", NR, pi, e
            exit !(NR == 64 && pi > 3.14159265 - 4 * e && pi < 3.14159265 + 4 * e) }'
    done
}

@test "option_paths is within four standard errors of the formula, and its error shrinks" {
    cat >compare.yaml <<'END'
kernel: compare
params:
  formula: in f32[n]
  few: in f32[n]
  few_error: in f32[n]
  many: in f32[n]
  many_error: in f32[n]
  seen: out u32[n]
block: 32
grid: ceil_div(n, 32)
body: |
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  print("%2u: %.4f = %.4f +- %.4f = %.4f +- %.4f\n", i, formula[i], few[i], few_error[i], many[i], many_error[i]);
  assert(formula[i] > 0);
  assert(abs(few[i] - formula[i]) < 4 * few_error[i], "few paths");
  assert(abs(many[i] - formula[i]) < 4 * many_error[i], "many paths");
  assert(many_error[i] < 0.5 * few_error[i] && many_error[i] < 0.02 * formula[i]);
  seen[i] = 1;
END
    kaio-emit "$specs/black_scholes.yaml" >formula.ptx
    kaio-emit "$specs/option_paths.yaml" >paths.ptx
    kaio-emit compare.yaml >compare.ptx
    # at the money, and a little to both sides
    inputs=(n=12 spot=@const:1 strike=strike.npy years=@const:2)
    printf 'kernel: k\nparams:\n  s: out f32[n]\ncompute: s[i] = 0.8 + 0.03 * i\n' | kaio-emit |
        kaio-run -q -d cpu n=12 s=strike.npy
    kaio-run -q -d cpu formula.ptx "${inputs[@]}" call=formula.npy put=put.npy
    kaio-run -q -d cpu paths.ptx "${inputs[@]}" paths=4 call=few.npy error=few_error.npy
    kaio-run -q -d cpu paths.ptx "${inputs[@]}" paths=64 seed=5 call=many.npy error=many_error.npy
    kaio-run -q -d cpu compare.ptx formula=formula.npy few=few.npy few_error=few_error.npy many=many.npy \
        many_error=many_error.npy
}
