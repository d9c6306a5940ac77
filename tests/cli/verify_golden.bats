# kaio-verify --golden: two files.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    printf 'kernel: to\nparams: {x: "in f32[n]", h: "out f16[n]", s: "out f32[n]", d: "out f64[n]", i: "out i32[n]"}\n' >to.yaml
    printf 'compute: |\n  h[j] = f16(x[j])\n  s[j] = x[j] * 1\n  d[j] = f64(x[j])\n  i[j] = i32(x[j] * 100)\n' >>to.yaml
    kaio-emit to.yaml >to.ptx 2>/dev/null
    kaio-run -q -d cpu to.ptx n=1000 x=@normal:3 h=h.npy s=s.npy d=d.npy i=i.npy
}

@test "floats of two types are compared as the narrower one" {
    run -0 --separate-stderr kaio-verify --golden s.npy h.npy
    [ "$stderr" = "kaio-verify: f32 and f16 are compared as f16" ]
    [ "${lines[0]}" = "PASS     h.npy f16[1000]: 1000 compared, all equal" ]
    # either way round, and f64 to f16
    run -0 --separate-stderr kaio-verify --golden h.npy s.npy
    run -0 --separate-stderr kaio-verify --golden d.npy s.npy
    [ "$stderr" = "kaio-verify: f64 and f32 are compared as f32" ]
    [ "${lines[0]}" = "PASS     s.npy f32[1000]: 1000 compared, all equal" ]
}

@test "beyond the rounding nothing but the tolerance is allowed" {
    # one unit in the last place of f16 more in the first element, and a half of the last one's sign
    head=$(($(od -An -tu2 -j8 -N2 h.npy) + 10))
    byte=$(od -An -tu1 -j$head -N1 h.npy)
    cp h.npy off.npy
    printf "\\$(printf %o $((byte ^ 1)))" | dd of=off.npy bs=1 seek=$head conv=notrunc 2>/dev/null
    run -1 --separate-stderr kaio-verify --golden s.npy off.npy
    [[ ${lines[0]} == "FAIL     off.npy f16[1000]: 1 of 1000 wrong"* && ${lines[1]} == "    [0]: got "* ]]
    run -0 --separate-stderr kaio-verify --golden --ulp=1 s.npy off.npy
    run -1 --separate-stderr kaio-verify --golden --ulp=0.5 s.npy off.npy
    run -0 --separate-stderr kaio-verify --golden --rtol=1e-2 s.npy off.npy
    run -1 --separate-stderr kaio-verify --golden --rtol=1e-5 s.npy off.npy
}

@test "NaN, infinities and zeros are what they are in the narrower type" {
    kaio-run -q -d cpu to.ptx n=4 x=@const:70000 h=h.npy s=s.npy d=d.npy i=i.npy
    run -0 --separate-stderr kaio-verify --golden s.npy h.npy # f16 ends below it
    kaio-run -q -d cpu to.ptx n=4 x=@const:nan h=h.npy s=s.npy d=d.npy i=i.npy
    run -0 --separate-stderr kaio-verify --golden s.npy h.npy
    kaio-run -q -d cpu to.ptx n=4 x=@const:-1e-30 h=h.npy s=s.npy d=d.npy i=i.npy
    run -0 --separate-stderr kaio-verify --golden s.npy h.npy
    kaio-run -q -d cpu to.ptx n=4 x=@zeros h=zero.npy s=s.npy d=d.npy i=i.npy
    run -1 --separate-stderr kaio-verify --golden h.npy s.npy # -0 is not 0, bit for bit
}

@test "unlike kinds and shapes are refused with a row" {
    run -2 --separate-stderr kaio-verify --golden s.npy i.npy
    [ "${lines[0]}" = "ERROR    'i.npy' is int32[1000], but 's.npy' is float32[1000]" ]
    run -2 --separate-stderr kaio-verify --golden --ulp=3 i.npy h.npy
    [[ ${lines[0]} == "ERROR    "* ]]
    kaio-run -q -d cpu to.ptx n=4 x=@zeros h=h.npy s=s4.npy d=d.npy i=i.npy
    run -2 --separate-stderr kaio-verify --golden --format=tap s.npy h.npy
    [[ ${lines[1]} == "not ok 1 - 'h.npy' is float16[4], but 's.npy' is float32[1000]"* ]]
}
