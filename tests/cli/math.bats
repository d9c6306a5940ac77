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
        case $name in
        cbrt | expm1 | log1p) continue ;; # in the library, not in the language
        esac
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
