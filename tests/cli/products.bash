# What the tests of products by tensor cores share: load products

setup() {
    cd "$BATS_TEST_TMPDIR"
    specs=$KAIO_SRCDIR/specs/matmul
    layouts='nn nt tn tt'
    ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null) || ptxas=
    fills=
    if [ -n "${KAIO_QUICK-}" ]; then
        layouts='nt tn' # each operand either way
        fills='--fill=normal --code=generic'
        ptxas=          # what the build without sanitizers emits is the same
    fi
}

# product MMA KIND LAYOUT SCHEDULE: k.yaml; of the kinds made_*, of operands that are computed
product() {
    local a=$2 b=$2 c=f32 term='A * B' x='a[i,l]' y='b[l,j]' dx='m, k' dy='k, n' more=
    [[ $2 != made_* ]] || a=f16 b=f16
    case $2 in
    tf32) a=f32 b=f32 term='tf32(A) * tf32(B)' ;;
    tf32_rz) a=f32 b=f32 term='tf32_rz(A) * tf32_rz(B)' ;;
    tf32_rn) a=f32 b=f32 term='tf32_rn(A) * tf32_rn(B)' ;;
    left_rz) a=f32 b=f32 term='tf32_rz(A) * tf32(B)' ;;
    right_rz) a=f32 b=f32 term='tf32(A) * tf32_rz(B)' ;;
    s8) a=i8 b=i8 c=i32 term='i32(A) * i32(B)' ;;
    u8) a=u8 b=i8 c=i32 term='i32(A) * i32(B)' ;;
    e5m2) b=e4m3 ;;
    made_w4) b=u4 term='A * f16((i32(B) - 8) * s[l / 128, j])' more='s: in f16[ceil_div(k, 128), n]' ;;
    made_w8) a=bf16 b=i8 term='A * bf16(i32(B) * s[j])' more='s: in f32[n]' ;;
    made_silu) term='f16(silu(A)) * B' ;;
    made_cast) a=f32 term='f16(A) * B' ;;
    made_both) a=f32 b=f32 term='bf16(A) * bf16(B)' ;;
    made_mask) term='(l < i ? A : 0) * B' ;;
    made_norm) term='f16(A * s[i]) * B' more='s: in f32[m]' ;;
    made_place) term='f16(A * f32(l % 7 - i % 5)) * B' ;;
    made_tf32) a=f32 b=f32 term='tf32(A) * tf32(B * s[j])' more='s: in f32[n]' ;;
    made_s8) a=i8 b=i4 c=i32 term='i32(max(A, 0)) * i32(B)' ;;
    made_e4m3) b=e4m3 term='e4m3(A) * B' ;;
    esac
    [[ $3 == n? ]] || { x='a[l,i]' dx='k, m'; }
    [[ $3 == ?n ]] || { y='b[j,l]' dy='n, k'; }
    term=${term/A/$x}
    cat >k.yaml <<END
kernel: k
params:
  a: in ${a}[$dx]
  b: in ${b}[$dy]
  ${more:-# no more}
  c: out ${c}[m, n]
compute: |
  c[i,j] = sum[l](${term/B/$y})
schedule: {strategy: matmul, mma: $1, $4}
END
}

# f32_product LAYOUT [MORE]: LAYOUT.yaml, of factors that files bring
f32_product() {
    local a='m, k' b='k, n' x='a[i,l]' y='b[l,j]'
    [[ $1 != t? ]] || a='k, m' x='a[l,i]'
    [[ $1 != ?t ]] || b='n, k' y='b[j,l]'
    printf '%s\n' "kernel: $1" 'params:' "  a: in f32[$a]" "  b: in f32[$b]" '  c: out f32[m, n]' \
        'compute: |' "  c[i,j] = sum[l]($x * $y)" "${2-}" >"$1.yaml"
}

# multiplied LAYOUT FILE [MORE]: the product of a.npy and b.npy, m x n x k, for $target, to FILE
multiplied() {
    f32_product "$1" "${3-}"
    kaio-emit -t ${target:-sm_90a} -D m=$m -D n=$n -D k=$k "$1.yaml" | kaio-run -d cpu --check - a=a.npy b=b.npy c="$2"
}

# the elements of a.npy and b.npy: normal numbers, those of even terms times UP or DOWN
factors() {
    printf '%s\n' 'kernel: scaled' 'params:' '  a: out f32[r, c]' '  x: in f32[r, c]' '  even: f32' '  odd: f32' \
        'compute: |' "  a[i,j] = x[i,j] * (($3) % 2 == 0 ? even : odd)" >scaled.yaml
    kaio-emit scaled.yaml | kaio-run -d cpu - r="$1" c="$2" "x=@normal:$4" "even=$5" "odd=$6" a="$7"
}
